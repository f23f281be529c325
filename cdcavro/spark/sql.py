"""The conversions as SQL functions."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from cdcavro.spark.arrow import column_function
from cdcavro.spark.columns import RESULT, decode_batch, encode_batch, try_encode_batch
from cdcavro.spark.rows import TEXTS, text_batch

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import SparkSession


def register(spark: SparkSession) -> None:
    """Make the conversions available in the SQL of a session.

    `cdc_encode(text, format)` gives a payload, `cdc_try_encode(text, format)` a struct of payload
    and error, `cdc_decode(payload, format)` JSON text, `cdc_text(image)` a map of text. A format's
    name is a string or a column of strings; one that is unknown fails the query.
    """

    def encoded(texts: pa.Array, formats: pa.Array) -> pa.Array:
        return by_format(encode_batch, texts, formats)

    def tried(texts: pa.Array, formats: pa.Array) -> pa.Array:
        return by_format(try_encode_batch, texts, formats)

    def decoded(payloads: pa.Array, formats: pa.Array) -> pa.Array:
        return by_format(decode_batch, payloads, formats)

    spark.udf.register("cdc_encode", column_function(encoded, "binary"))
    spark.udf.register("cdc_try_encode", column_function(tried, RESULT).asNondeterministic())
    spark.udf.register("cdc_decode", column_function(decoded, "string"))
    spark.udf.register("cdc_text", column_function(text_batch, TEXTS))


def by_format(convert: Callable[[pa.Array, str], pa.Array], values: pa.Array, formats: pa.Array) -> pa.Array:
    """Convert each value by the format beside it; a null format gives null.

    Runs of rows with one format are converted together.
    """
    names = formats.to_pylist()
    parts = []
    start = 0
    for end in range(1, len(names) + 1):
        if end == len(names) or names[end] != names[start]:
            run = values.slice(start, end - start)
            parts.append(_converted(convert, run, names[start]))
            start = end
    return pa.concat_arrays(parts) if parts else convert(values, "oms_default")


def _converted(convert: Callable[[pa.Array, str], pa.Array], values: pa.Array, name: str | None) -> pa.Array:
    if name is None:
        return convert(pa.nulls(len(values), values.type), "oms_default")
    return convert(values, name)
