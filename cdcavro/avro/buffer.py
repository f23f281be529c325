"""Writing and reading the bytes of a payload."""

from __future__ import annotations

import struct
from typing import Final

from cdcavro.avro.binary import no_text, not_canonical, short, too_wide, write_double, write_long, write_string

_DOUBLE: Final = struct.Struct("<d")
_LONG_BYTES: Final = 10
_CARRY: Final = 0x80


class Buffer(bytearray):
    """A growing payload or JSON text; `append` appends one byte."""

    __slots__ = ()

    write_long = write_long
    write_string = write_string
    write_double = write_double

    def fits(self, value: int, most: int) -> bool:
        """Return whether an integer is between `-most - 1` and `most`, both included."""
        return -most - 1 <= value <= most

    def write_raw(self, raw: bytes) -> None:
        """Append bytes as they are."""
        self += raw

    def write_again(self, start: int, end: int) -> None:
        """Append a copy of the bytes from one place in the buffer to another."""
        self += self[start:end]

    def taken(self) -> bytes:
        """Return a copy of the bytes written so far."""
        return bytes(self)


class ByteReader:
    """The bytes of one payload and the position up to which they are read.

    Attributes: `position` and `end` (int), in bytes. Every length is checked against the bytes that
    are left before anything is built from it.
    """

    __slots__ = ("_depth", "_items", "_raw", "_stated", "_weightless", "end", "position")

    def __init__(self, raw: bytes, position: int = 0) -> None:
        self._raw = raw
        self._items = 0
        self._weightless = 0
        self._depth = 0
        # Where the last block ends by the size that it states, -1 without one.
        self._stated = -1
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
        """Read a zig-zag variable-length integer of at most 64 bits, in as few bytes as it has."""
        position = self.position
        if position < self.end:
            byte = self._raw[position]
            if byte < _CARRY:  # as nearly all are
                self.position = position + 1
                return (byte >> 1) ^ -(byte & 1)
        return self._read_wide()

    def _read_wide(self) -> int:
        byte = self.read_byte()
        value = byte & 0x7F
        for shift in range(7, 7 * _LONG_BYTES, 7):
            byte = self.read_byte()
            value |= (byte & 0x7F) << shift
            if byte < _CARRY:
                if value >> 64:
                    break
                if byte == 0:
                    raise not_canonical(self.position)
                return (value >> 1) ^ -(value & 1)
        raise too_wide(self.position)

    def take(self, size: int) -> bytes:
        """Read `size` bytes."""
        start = self.position
        end = start + size
        if size < 0 or end > self.end:
            raise short(f"{size} bytes", start, self.end)
        self.position = end
        return self._raw[start:end]

    def read_string(self) -> str:
        """Read a string: its length in bytes, then its UTF-8 bytes."""
        size = self.read_long()
        start = self.position
        end = start + size
        if size < 0 or end > self.end:
            raise short(f"{size} bytes", start, self.end)
        self.position = end
        try:
            return str(self._raw[start:end], "utf-8")
        except UnicodeDecodeError as error:
            raise no_text(self._raw[start + error.start], end) from error

    def slice(self, start: int, end: int) -> bytes:
        """Return the bytes from one position to another."""
        return self._raw[start:end]

    def skip_string(self) -> None:
        """Skip a string: its length and that many bytes."""
        self.take(self.read_long())

    def read_name(self) -> str:
        """Read a string that is likely to recur, such as a column's name."""
        return self.read_string()

    def read_double(self) -> float:
        """Read a double-precision number: 8 bytes, IEEE 754, little-endian."""
        return float(_DOUBLE.unpack(self.take(8))[0])
