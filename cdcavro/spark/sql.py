"""SQL functions of the conversions, and `register`, which makes them and the data source known to a session."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

import pyarrow as pa

from cdcavro.spark.arrow_udf import sql_function
from cdcavro.spark.functions import (
    RESULT,
    TEXTS,
    convert_by_format,
    decode_batch,
    encode_batch,
    images_of_json,
    text_batch,
    try_encode_batch,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import SparkSession


def cdc_encode(text: pa.Array, format: pa.Array) -> pa.Array:
    """Encode messages, JSON text as string or binary, as payloads of the format's wire schema.

    A message that cannot be encoded fails the query with its error.

        SELECT cdc_encode(value, 'oms_canal') AS payload FROM messages
    """
    return convert_by_format(encode_batch, text, format)


def cdc_try_encode(text: pa.Array, format: pa.Array) -> pa.Array:
    """Encode messages as `cdc_encode` does, but give a message that cannot be encoded its error instead of a payload.

    Exactly one of `payload` and `error` is null. The function is non-deterministic in Spark's sense,
    so that no filter runs it twice: it may not stand in aggregates and join conditions.

        SELECT made.payload, made.error.message
        FROM (SELECT cdc_try_encode(value, 'oms_canal') AS made FROM messages)
    """
    return convert_by_format(try_encode_batch, text, format)


def cdc_decode(payload: pa.Array, format: pa.Array) -> pa.Array:
    """Decode payloads of the format's wire schema as the JSON text of their messages.

    A payload that cannot be read fails the query with its error.

        SELECT cdc_decode(cdc_encode(value, 'oms_canal'), 'oms_canal') AS text FROM messages
    """
    return convert_by_format(decode_batch, payload, format)


def cdc_text(image: pa.Array) -> pa.Array:
    """Turn row images, as `from_avro` gives them, into maps from a column's name to the text of its value.

    Each value has the digits of the message: `1.20` stays `1.20`. A boolean is `true` or `false`, an
    object or array its compact JSON text, and a JSON null is SQL null under its column's name. Spark before 4.1 needs
    the image as JSON, which newer ones take, too: `cdc_text(to_json(message.data[0]))`.

        SELECT cdc_text(message.data[0])['col6'] AS col6
        FROM (SELECT from_avro(cdc_encode(value, 'oms_canal'), '<schema>') AS message FROM messages)
    """
    return text_batch(images_of_json(image) if pa.types.is_string(image.type) else image)


class SqlFunction(NamedTuple):
    """A function of SQL: its arguments and its docstring are those of `convert`, `returns` is the DDL of its result."""

    convert: Callable[..., pa.Array]
    returns: str
    is_deterministic: bool = True

    def over_columns(self, name: str) -> Any:
        """Return the function as Spark registers it."""
        return sql_function(self.convert, self.returns, name, is_deterministic=self.is_deterministic)


SQL_FUNCTIONS: Final[dict[str, SqlFunction]] = {
    "cdc_encode": SqlFunction(cdc_encode, "binary"),
    "cdc_try_encode": SqlFunction(cdc_try_encode, RESULT, is_deterministic=False),
    "cdc_decode": SqlFunction(cdc_decode, "string"),
    "cdc_text": SqlFunction(cdc_text, TEXTS),
}


def register(spark: SparkSession, *, functions: bool = True) -> None:
    """Register the conversions as SQL functions of a session, and, from Spark 4.0 on, the data source `cdcavro`.

    `cdc_encode(text, format)` returns a payload, `cdc_try_encode(text, format)` a struct of payload and
    error, `cdc_decode(payload, format)` JSON text, and `cdc_text(image)` a map of text. A format's name
    is a string or a column of strings; an unknown format fails the query. `cdc_try_encode` is
    non-deterministic in Spark's sense, so Spark refuses it in aggregates and join conditions.

    `spark.read.format("cdcavro")` and `spark.readStream.format("cdcavro")` read files of JSON lines, each line as a
    row with its `payload`, `format`, `operation`, `table`, `file`, `line` and `error`, and `raw` for a line that has no
    payload. Options are `path` (or `load(…)`), `format` (a format's name, `auto` or `mixed`), `maxPartitionBytes` and
    `maxFilesPerTrigger`.

    Without `functions`, only the data source is registered: Spark's declarative pipelines refuse functions.
    """
    for name, function in SQL_FUNCTIONS.items() if functions else ():
        spark.udf.register(name, function.over_columns(name))
    if hasattr(spark, "dataSource"):
        # Spark 3.5 has no such API, and so not what this module imports.
        from cdcavro.spark.source.source import CdcAvroSource  # noqa: PLC0415

        spark.dataSource.register(CdcAvroSource)
