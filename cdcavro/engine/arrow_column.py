"""Conversion of one column of bytes into another, value by value, between buffers in Arrow's layout."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from cdcavro.avro.buffer import Buffer
from cdcavro.errors import MessageError

if TYPE_CHECKING:
    from collections.abc import Callable

    from cdcavro.avro.buffer import Slices

MAX_BYTES: Final = 2**31 - 1
_LAST_BIT: Final = 7


class Packed(NamedTuple):
    """A column in Arrow's layout, as `Slices` reads it: its buffers, and how many of its values are null."""

    data: Buffer
    offsets: Buffer
    validity: Buffer
    nulls: int


def pack(
    values: Slices,
    convert: Callable[[bytes], bytes],
    caught: Callable[[int, MessageError], object] | None = None,
    most: int = MAX_BYTES,
) -> Packed:
    """Return a column with each value converted; a null stays null.

    With `caught`, a `MessageError` is passed to it after the index of the value, which becomes null; without,
    the error is raised. Raises `OverflowError` for a result of more than `most` bytes. Source: Arrow Columnar
    Format, "Variable-size Binary Layout".
    """
    data, offsets, validity = Buffer(), Buffer(), Buffer()
    bits = nulls = 0
    offsets.write_int32(0)
    for i in range(values.count):
        raw = _converted(values, i, convert, caught)
        if raw is None:
            nulls += 1
        else:
            bits |= 1 << (i & _LAST_BIT)
            if len(raw) > most - len(data):
                raise OverflowError(f"a column of more than {most} bytes")
            data.write_raw(raw)
        offsets.write_int32(len(data))
        if i & _LAST_BIT == _LAST_BIT:
            validity.append(bits)
            bits = 0
    validity.append(bits)
    return Packed(data, offsets, validity, nulls)


def _converted(
    values: Slices, i: int, convert: Callable[[bytes], bytes], caught: Callable[[int, MessageError], object] | None
) -> bytes | None:
    raw = values.get(i)
    if raw is None:
        return None
    try:
        return convert(raw)
    except MessageError as error:
        if caught is None:
            raise
        caught(i, error)
        return None
