"""The conversions as SQL functions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pyarrow as pa
import pyarrow.compute as pc

from cdcavro.spark.arrow_udf import column_function
from cdcavro.spark.functions import RESULT, decode_batch, encode_batch, try_encode_batch
from cdcavro.spark.row_text import TEXTS, text_batch
from cdcavro.wire.formats import FORMATS

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import SparkSession


_ANY: Final = FORMATS[0]


def register(spark: SparkSession) -> None:
    """Register the conversions as SQL functions of a session.

    `cdc_encode(text, format)` returns a payload, `cdc_try_encode(text, format)` a struct of payload and
    error, `cdc_decode(payload, format)` JSON text, and `cdc_text(image)` a map of text. A format's name
    is a string or a column of strings; an unknown format fails the query. `cdc_try_encode` is
    non-deterministic in Spark's sense, so Spark refuses it in aggregates and join conditions.
    """

    def encoded(texts: pa.Array, formats: pa.Array) -> pa.Array:
        return by_format(encode_batch, texts, formats)

    def tried(texts: pa.Array, formats: pa.Array) -> pa.Array:
        return by_format(try_encode_batch, texts, formats)

    def decoded(payloads: pa.Array, formats: pa.Array) -> pa.Array:
        return by_format(decode_batch, payloads, formats)

    def texts(images: pa.Array) -> pa.Array:
        return text_batch(images)

    functions = {
        "cdc_encode": column_function(encoded, "binary", "cdc_encode"),
        "cdc_try_encode": column_function(tried, RESULT, "cdc_try_encode").asNondeterministic(),
        "cdc_decode": column_function(decoded, "string", "cdc_decode"),
        "cdc_text": column_function(texts, TEXTS, "cdc_text"),
    }
    for name, function in functions.items():
        spark.udf.register(name, function)


def by_format(convert: Callable[[pa.Array, str], pa.Array], values: pa.Array, formats: pa.Array) -> pa.Array:
    """Return each value converted by the format beside it, one format at a time; a null format gives null."""
    places: dict[str | None, list[int]] = {}
    for place, name in enumerate(formats.to_pylist()):
        places.setdefault(name, []).append(place)
    if not places or None in places:
        # Any format will do here: only the result's type matters, and nulls convert alike in all formats.
        places.setdefault(_ANY, []).extend(places.pop(None, []))
        values = pc.if_else(formats.is_null(), pa.scalar(None, values.type), values)
    indices = {name: pa.array(rows, pa.int64()) for name, rows in places.items()}
    parts = [convert(values.take(rows), name or _ANY) for name, rows in indices.items()]
    order = pc.sort_indices(pa.concat_arrays(list(indices.values())))
    return pa.concat_arrays(parts).take(order)
