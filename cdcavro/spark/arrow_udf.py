"""Functions over Arrow arrays as functions over Columns."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
from pyspark.sql.pandas.functions import arrow_udf

from cdcavro.avro.buffer import Slices
from cdcavro.errors import JobError
from cdcavro.wire.arrow_column import MAX_BYTES, pack

if TYPE_CHECKING:
    from collections.abc import Callable

    from cdcavro.errors import MessageError

_PLAIN: Final = (pa.string(), pa.binary())


def column_function(function: Callable[..., pa.Array], returns: str, name: str) -> Any:
    """Make a function of Columns from one of Arrow arrays; `returns` is the DDL of its type.

    The function's type hints tell Spark that it takes and gives whole arrays; columns are named by `name`.
    """
    function.__name__ = name
    return arrow_udf(function, returns)  # type: ignore[call-overload]


def raw_bytes(values: pa.Array) -> list[bytes | None]:
    """Return the values of a string or binary array as bytes, UTF-8 or not."""
    if pa.types.is_string(values.type) or pa.types.is_large_string(values.type):
        values = values.cast(pa.large_binary() if pa.types.is_large_string(values.type) else pa.binary())
    found: list[bytes | None] = values.to_pylist()
    return found


def converted(
    values: pa.Array,
    convert: Callable[[bytes], bytes],
    caught: Callable[[int, MessageError], object] | None = None,
    most: int = MAX_BYTES,
) -> pa.Array:
    """Convert the values of a string or binary array into a binary array, from buffer to buffer; null stays null.

    `caught` is as in `packing.pack`. Raises `MessageError`, unless it is caught; `JobError` for more than
    `most` bytes; `TypeError` for an array of anything else.
    """
    try:
        made = pack(_slices(values), convert, caught, most)
    except (OverflowError, pa.ArrowInvalid) as error:
        bound = f"the values of one Arrow batch come to more than {most} bytes"
        raise JobError(f"{bound}: lower spark.sql.execution.arrow.maxRecordsPerBatch") from error
    parts = [made.validity if made.nulls else None, made.offsets, made.data]
    buffers = [None if part is None else pa.py_buffer(part) for part in parts]
    return pa.Array.from_buffers(pa.binary(), len(values), buffers, made.nulls)


def _slices(values: pa.Array) -> Slices:
    plain = values if values.type in _PLAIN else _as_binary(values)
    validity, offsets, data = plain.buffers()
    # Arrow may leave out the offsets of an array of no values.
    return Slices(data or b"", offsets or bytes(4), validity, plain.offset if offsets else 0, len(plain))


def _as_binary(values: pa.Array) -> pa.Array:
    try:
        return values.cast(pa.binary())
    except pa.ArrowNotImplementedError as error:
        raise TypeError(f"a column is of text or bytes, not of {values.type}") from error
