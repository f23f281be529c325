"""Functions of Columns, text ⇄ payload, over Arrow batches, with the converter of the whole package."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pyarrow as pa
import pyarrow.compute as pc

from cdcavro.arrow.arrays import blank, convert_values
from cdcavro.spark.arrow_udf import column_function
from cdcavro.wire.formats import FORMATS, get_format

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import Column

    from cdcavro.errors import MessageError

    ColumnOrName = Column | str

ERROR: Final = pa.struct([("format", pa.string()), ("path", pa.string()), ("message", pa.string())])
RESULT: Final = "payload binary, error struct<format: string, path: string, message: string>"


def encode(col: ColumnOrName, format: str, *, rejects: bool = False) -> Column:
    """Encode a column of JSON text (string or binary) as payloads of the format's wire schema (binary).

    With `rejects`, the result is `struct<payload binary, error struct<format, path, message>>`, of which
    exactly one field is null, so that a bad message never fails a job; without it, the job fails with
    the message's error. SQL null gives null. Raises `UnknownFormatError` at once, before the job runs.
    """
    get_format(format)
    if not rejects:

        def encode_all(texts: pa.Array) -> pa.Array:
            return encode_batch(texts, format)

        return column_function(encode_all, "binary", "cdc_encode")(col)

    def try_encode_all(texts: pa.Array) -> pa.Array:
        return try_encode_batch(texts, format)

    # Declared non-deterministic, because Spark would otherwise run the function twice for a filter on error.
    return column_function(try_encode_all, RESULT, "cdc_try_encode", is_deterministic=False)(col)


def decode(col: ColumnOrName, format: str) -> Column:
    """Decode a column of payloads (binary) as JSON text (string).

    A payload that cannot be read fails the job with its error. SQL null gives null. Raises
    `UnknownFormatError` at once, before the job runs.
    """
    get_format(format)

    def decode_all(payloads: pa.Array) -> pa.Array:
        return decode_batch(payloads, format)

    return column_function(decode_all, "string", "cdc_decode")(col)


def encode_batch(texts: pa.Array, format: str) -> pa.Array:
    """Encode an array of texts. Raises `MessageError`."""
    own = get_format(format)
    return convert_values(texts, own.encode, batch=own.encode_column)


def decode_batch(payloads: pa.Array, format: str) -> pa.Array:
    """Decode an array of payloads. Raises `PayloadError`."""
    own = get_format(format)
    return convert_values(payloads, own.decode, batch=own.decode_column).cast(pa.string())


def try_encode_batch(texts: pa.Array, format: str) -> pa.Array:
    """Encode an array of texts into a struct array of payload and error, of which one is null."""
    faults: dict[int, dict[str, str | None]] = {}

    def caught(place: int, error: MessageError) -> None:
        faults[place] = error.fields

    own = get_format(format)
    payloads = convert_values(texts, own.encode, caught, batch=own.encode_column)
    errors = pa.array([faults.get(i) for i in range(len(texts))], ERROR) if faults else pa.nulls(len(texts), ERROR)
    return pa.StructArray.from_arrays([payloads, errors], ["payload", "error"], mask=texts.is_null())


def convert_by_format(convert: Callable[[pa.Array, str], pa.Array], values: pa.Array, formats: pa.Array) -> pa.Array:
    """Convert each value by the format beside it, one format at a time; a null format gives null."""
    places: dict[str | None, list[int]] = {}
    for place, name in enumerate(formats.to_pylist()):
        places.setdefault(name, []).append(place)
    if not places or None in places:
        # Any format will do here: only the result's type matters, and nulls convert alike in all formats.
        places.setdefault(FORMATS[0], []).extend(places.pop(None, []))
        values = blank(values, formats.is_null())
    indices = {name: pa.array(rows, pa.int64()) for name, rows in places.items()}
    parts = [convert(values.take(rows), name or FORMATS[0]) for name, rows in indices.items()]
    order = pc.sort_indices(pa.concat_arrays(list(indices.values())))
    return pa.concat_arrays(parts).take(order)
