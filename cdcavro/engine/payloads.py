"""Payloads checked, and columns of bytes converted, by the engine, and the exact way where it leaves them.

One column of bytes becomes another between buffers in Arrow's layout: in batches, or value by value.
"""

from __future__ import annotations

import struct
from array import array
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from cdcavro.avro.binary import Decoder, check_payload, skipper
from cdcavro.avro.translation_program import check_program
from cdcavro.engine.machine import Translator, payload_ends
from cdcavro.errors import MessageError

if TYPE_CHECKING:
    from collections.abc import Callable

    from cdcavro.avro.schema import Schema

    # As `Engine.encode_column`.
    Batch = Callable[["Slices", int, int, int], tuple[bytes, bytes, int]]

MAX_BYTES: Final = 2**31 - 1
_END: Final = struct.Struct("=i")


class Slices:
    """The values of a binary column as Arrow lays them out.

    Attributes: `data`, the values one after another; `offsets`, 32-bit integers in the machine's byte order, one more
    than there are values; `validity`, one bit for each value, lowest bit first, or None if no value is null; all three
    are bytes or another buffer. `first` (int), the entry of `offsets` and `validity` at which the column starts;
    `count` (int), the number of values. Raises `IndexError` if the buffers hold fewer. Source: Arrow Columnar Format,
    "Variable-size Binary Layout".
    """

    __slots__ = ("_bits", "_bytes", "_places", "count", "data", "first", "offsets", "validity")

    def __init__(self, data: Any, offsets: Any, validity: Any, first: int, count: int) -> None:
        places = memoryview(offsets).cast("B")
        self.data, self.offsets, self.validity, self.first, self.count = data, offsets, validity, first, count
        self._bytes = memoryview(data).cast("B")
        self._places = places[: len(places) // 4 * 4].cast("i")
        self._bits = None if validity is None else memoryview(validity).cast("B")
        is_short = self._bits is not None and (first + count + 7) // 8 > len(self._bits)
        if first < 0 or count < 0 or len(self._places) - first <= count or is_short:
            raise IndexError(f"a column has no {count} values behind {first}")

    def get(self, i: int) -> bytes | None:
        """Return value `i`; None for a null. Raises `IndexError` for a value outside the column or its bytes."""
        at = self.first + i
        if 0 <= i < self.count:
            if self._bits is not None and not self._bits[at >> 3] >> (at & 7) & 1:
                return None
            start, end = self._places[at], self._places[at + 1]
            if 0 <= start <= end <= len(self._bytes):
                return bytes(self._bytes[start:end])
        raise IndexError(f"value {i} is not within the bytes of its column")

    @property
    def size(self) -> int:
        """How many bytes the values have, as the offsets say, those of nulls included."""
        start, end = self._places[self.first], self._places[self.first + self.count]
        return max(0, min(end, len(self._bytes)) - max(0, start))

    def bits(self) -> bytearray:
        """Return the bits that say which values are not null, those of the column alone."""
        every = (1 << self.count) - 1
        if self._bits is not None:
            last = (self.first + self.count + 7) // 8
            every &= int.from_bytes(self._bits[self.first >> 3 : last], "little") >> (self.first & 7)
        return bytearray(every.to_bytes((self.count + 7) // 8, "little"))


@dataclass(frozen=True, slots=True)
class Longs:
    """The values of a column of 64-bit integers as Arrow lays them out.

    Attributes: `data`, the integers in the machine's byte order; the rest as in `Slices`.
    """

    data: Any
    validity: Any
    first: int
    count: int


class Packed(NamedTuple):
    """A column in Arrow's layout, as `Slices` reads it: its buffers, and how many of its values are null."""

    data: bytes
    offsets: bytes
    validity: bytearray
    nulls: int


def pack(
    values: Slices,
    convert: Callable[[bytes], bytes],
    caught: Callable[[int, MessageError], object] | None = None,
    most: int = MAX_BYTES,
    batch: Batch | None = None,
) -> Packed:
    """Return a column with each value converted; a null stays null.

    `batch` converts as many values as it can at once, as `convert` would, and leaves the next one to `convert`. With
    `caught`, a `MessageError` is passed to it after the index of the value, which becomes null; without, the error is
    raised. Raises `OverflowError` for a result of more than `most` bytes.
    """
    data: list[bytes] = []
    offsets = [_END.pack(0)]
    bits = values.bits()
    i = size = 0
    while i < values.count:
        if batch is not None:
            some, ends, i = batch(values, i, size, most)
            data.append(some)
            offsets.append(ends)
            size += len(some)
        if i < values.count:
            raw = _converted(values, i, convert, caught)
            if raw is None:
                bits[i >> 3] &= ~(1 << (i & 7))
            elif len(raw) > most - size:
                raise OverflowError(f"a column of more than {most} bytes")
            else:
                data.append(raw)
                size += len(raw)
            offsets.append(_END.pack(size))
            i += 1
    nulls = values.count - int.from_bytes(bits, "little").bit_count()
    return Packed(b"".join(data), b"".join(offsets), bits, nulls)


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


def check(raw: bytes, schema: Schema) -> None:
    r"""Raise `PayloadError`, with the place of the fault, unless bytes are exactly one datum of a schema.

    >>> from cdcavro.avro.schema import parse_schema
    >>> check(b"\x04ab", parse_schema('"string"'))
    """
    if _engine(schema).translate(raw) is None:
        check_payload(raw, schema)


def ends(raw: bytes, count: int, schema: Schema) -> array[int]:
    r"""Return where each of a number of data that stand one behind another ends.

    Raises `PayloadError`, its path beginning with the number of the datum, unless the bytes are exactly so many.

    >>> from cdcavro.avro.schema import parse_schema
    >>> ends(b"\x04ab\x00", 2, parse_schema('"string"'))
    array('i', [3, 4])
    """
    found = payload_ends(_engine(schema), raw, count)
    if found is not None:
        return array("i", found)
    places, check_one, position = array("i"), skipper(schema.root), 0
    for i in range(count):
        source = Decoder(raw, position)
        try:
            check_one(source)
        except MessageError as error:
            error.below(f"/{i}")
            raise
        position = source.position
        places.append(position)
    Decoder(raw, position).finish()
    return places


@lru_cache(maxsize=1024)
def _engine(schema: Schema) -> Translator:
    return Translator(check_program(schema))
