"""The bytes of a payload, written and read: the few steps that have a version in C.

`buffer.pyx` has the same names with the same behaviour over C pointers, and takes the place of this
module where it was compiled. Everything built on these two is one source for both.
"""

from __future__ import annotations

import struct
import sys
from typing import Final

import orjson

from cdcavro.avro.binary import no_column, no_text, outside, short, too_wide, write_double, write_long, write_string

COMPILED: Final = False
_DOUBLE: Final = struct.Struct("<d")
_LONG_BYTES: Final = 10
_CARRY: Final = 0x80


class Buffer(bytearray):
    """A payload, or JSON text, that grows; `append` appends one byte."""

    __slots__ = ()

    write_long = write_long
    write_string = write_string
    write_double = write_double

    def fits(self, value: int, most: int) -> bool:
        """Return whether an integer is from -most - 1 to most."""
        return -most - 1 <= value <= most

    def write_raw(self, raw: bytes) -> None:
        """Append bytes as they are."""
        self += raw

    def write_again(self, start: int, end: int) -> None:
        """Append what stands from one place to another."""
        self += self[start:end]

    def write_digits(self, value: int) -> None:
        """Append an integer of at most 64 bits as JSON text."""
        self += b"%d" % value

    def write_int32(self, value: int) -> None:
        """Append 4 bytes in the byte order of the machine, as Arrow has them."""
        self += value.to_bytes(4, sys.byteorder, signed=True)

    def cut(self, size: int) -> None:
        """Take away what stands behind so many bytes."""
        del self[size:]

    def taken(self) -> bytes:
        """Return what is there so far."""
        return bytes(self)


class ByteReader:
    """The bytes of one payload and how far they are read.

    Attributes: `position` and `end` (int), in bytes. Every length is held against the bytes that
    are there before anything is built from it.
    """

    __slots__ = ("_items", "_raw", "end", "position")

    def __init__(self, raw: bytes, position: int = 0) -> None:
        self._raw = raw
        self._items = 0
        self.position = position
        self.end = len(raw)

    def read_byte(self) -> int:
        """Read one byte."""
        position = self.position
        if position >= self.end:
            raise short("1 byte", position, self.end)
        self.position = position + 1
        return self._raw[position]

    def read_long(self) -> int:
        """Read a zig-zag variable-length integer of at most 64 bits."""
        byte = self.read_byte()
        if byte < _CARRY:
            return (byte >> 1) ^ -(byte & 1)
        value = byte & 0x7F
        for shift in range(7, 7 * _LONG_BYTES, 7):
            byte = self.read_byte()
            value |= (byte & 0x7F) << shift
            if byte < _CARRY:
                if value >> 64:
                    break
                return (value >> 1) ^ -(value & 1)
        raise too_wide(self.position)

    def take(self, size: int) -> bytes:
        """Read so many bytes."""
        start = self.position
        end = start + size
        if size < 0 or end > self.end:
            raise short(f"{size} bytes", start, self.end)
        self.position = end
        return self._raw[start:end]

    def read_string(self) -> str:
        """Read a length and UTF-8 bytes."""
        raw = self.take(self.read_long())
        try:
            return raw.decode()
        except UnicodeDecodeError as error:
            raise no_text(raw[error.start], self.position) from error

    def slice(self, start: int, end: int) -> bytes:
        """Return the bytes from one position to another."""
        return self._raw[start:end]

    def skip_string(self) -> None:
        """Pass a length and so many bytes by."""
        self.take(self.read_long())

    def read_name(self) -> str:
        """Read a string that is likely to come again, as the name of a column."""
        return self.read_string()

    def copy_string(self, out: Buffer) -> None:
        """Read a string and append it as JSON text."""
        out += orjson.dumps(self.read_string())

    def copy_name(self, out: Buffer) -> str:
        """Read a name and append it as JSON text with a colon."""
        name = self.read_string()
        out += orjson.dumps(name)
        out += b":"
        return name

    def read_double(self) -> float:
        """Read 8 bytes, IEEE 754, little-endian."""
        return float(_DOUBLE.unpack(self.take(8))[0])


class Slices:
    """The values of a column as Arrow lays them out: bytes one behind another, where each begins and ends, which are there.

    All three are bytes, or what shows its memory as bytes: `offsets` as integers of 32 bits in the byte
    order of the machine, one more than there are values; `validity` with a bit for each value, the
    lowest first, or None. The column's own begin behind `first` of both. `count` (int) is how many
    values there are. Raises `IndexError` where there are fewer. Source: Arrow Columnar Format,
    "Variable-size Binary Layout".
    """

    __slots__ = ("_data", "_first", "_offsets", "_validity", "count")

    def __init__(self, data: bytes, offsets: bytes, validity: bytes | None, first: int, count: int) -> None:
        places = memoryview(offsets).cast("B")
        self._data = memoryview(data).cast("B")
        self._offsets = places[: len(places) // 4 * 4].cast("i")
        self._validity = None if validity is None else memoryview(validity).cast("B")
        self._first = first
        self.count = count
        if first < 0 or count < 0 or len(self._offsets) - first <= count:
            raise no_column(first, count)
        if self._validity is not None and (first + count + 7) // 8 > len(self._validity):
            raise no_column(first, count)

    def get(self, i: int) -> bytes | None:
        """Return value i; None for a null. Raises `IndexError` for one that is not within the bytes."""
        if not 0 <= i < self.count:
            raise outside(i)
        at = self._first + i
        if self._validity is not None and not self._validity[at >> 3] >> (at & 7) & 1:
            return None
        start, end = self._offsets[at], self._offsets[at + 1]
        if not 0 <= start <= end <= len(self._data):
            raise outside(i)
        return bytes(self._data[start:end])
