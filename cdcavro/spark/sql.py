"""The conversions as SQL functions: `SQL_FUNCTIONS` holds all that `register` makes available."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from cdcavro.spark.arrow_udf import sql_function
from cdcavro.spark.functions import RESULT, decode_batch, encode_batch, try_encode_batch
from cdcavro.spark.row_text import TEXTS, images_of_json, text_batch
from cdcavro.wire.formats import FORMATS

if TYPE_CHECKING:
    from collections.abc import Callable


_ANY: Final = FORMATS[0]


def cdc_encode(text: pa.Array, format: pa.Array) -> pa.Array:
    """Encode messages, JSON text as string or binary, as payloads of the format's wire schema.

    A message that cannot be encoded fails the query with its error.

        SELECT cdc_encode(value, 'oms_canal') AS payload FROM messages
    """
    return by_format(encode_batch, text, format)


def cdc_try_encode(text: pa.Array, format: pa.Array) -> pa.Array:
    """Encode messages as `cdc_encode` does, but give a message that cannot be encoded its error instead of a payload.

    Exactly one of `payload` and `error` is null. The function is non-deterministic in Spark's sense,
    so that no filter runs it twice: it may not stand in aggregates and join conditions.

        SELECT made.payload, made.error.message
        FROM (SELECT cdc_try_encode(value, 'oms_canal') AS made FROM messages)
    """
    return by_format(try_encode_batch, text, format)


def cdc_decode(payload: pa.Array, format: pa.Array) -> pa.Array:
    """Decode payloads of the format's wire schema as the JSON text of their messages.

    A payload that cannot be read fails the query with its error.

        SELECT cdc_decode(cdc_encode(value, 'oms_canal'), 'oms_canal') AS text FROM messages
    """
    return by_format(decode_batch, payload, format)


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
