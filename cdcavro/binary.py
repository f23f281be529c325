"""Avro's binary encoding of primitive values (Avro 1.8.2, "Binary Encoding").

Writing appends to a `bytearray`. Reading goes through a `Source`, which checks every length and
count against the bytes that are there before anything is built from them.
"""

from __future__ import annotations

import struct
from typing import Final

from cdcavro.errors import PayloadError

MAX_COUNT: Final = 10_000_000
_DOUBLE: Final = struct.Struct("<d")
_FLOAT: Final = struct.Struct("<f")
_LONG_BYTES: Final = 10
_CARRY: Final = 0x80


def write_long(out: bytearray, value: int) -> None:
    """Append a zig-zag variable-length integer of at most 64 bits."""
    zigzag = (value << 1) ^ (value >> 63)
    while zigzag >= _CARRY:
        out.append(zigzag & 0x7F | _CARRY)
        zigzag >>= 7
    out.append(zigzag)


def write_string(out: bytearray, value: str) -> None:
    """Append a length and UTF-8 bytes."""
    raw = value.encode()
    size = len(raw)
    if size < 64:  # noqa: PLR2004  the length fits one byte
        out.append(size << 1)
    else:
        write_long(out, size)
    out += raw


def write_bytes(out: bytearray, value: bytes) -> None:
    """Append a length and the bytes."""
    write_long(out, len(value))
    out += value


def write_float(out: bytearray, value: float) -> None:
    """Append 4 bytes, IEEE 754, little-endian."""
    out += _FLOAT.pack(value)


def write_double(out: bytearray, value: float) -> None:
    """Append 8 bytes, IEEE 754, little-endian."""
    out += _DOUBLE.pack(value)


class Source:
    """The bytes of one payload and how far they are read.

    Attributes: `position` and `end` (int), in bytes.
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
            raise self.short("1 byte")
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
        raise PayloadError("an integer of at most 64 bits", f"more at byte {self.position}")

    def read_int(self) -> int:
        """Read a zig-zag variable-length integer of at most 32 bits."""
        value = self.read_long()
        if not -(2**31) <= value < 2**31:
            raise PayloadError("an integer of at most 32 bits", f"{value} at byte {self.position}")
        return value

    def read_bytes(self) -> bytes:
        """Read a length and that many bytes."""
        return self.take(self.read_long())

    def take(self, size: int) -> bytes:
        """Read so many bytes."""
        start = self.position
        end = start + size
        if size < 0 or end > self.end:
            raise self.short(f"{size} bytes")
        self.position = end
        return self._raw[start:end]

    def read_string(self) -> str:
        """Read a length and UTF-8 bytes."""
        raw = self.read_bytes()
        try:
            return raw.decode()
        except UnicodeDecodeError as error:
            raise PayloadError("UTF-8", f"byte 0x{raw[error.start]:02x} before byte {self.position}") from error

    def read_boolean(self) -> bool:
        """Read a byte that is 0 or 1."""
        byte = self.read_byte()
        if byte > 1:
            raise PayloadError("a boolean, 0 or 1", f"{byte} at byte {self.position - 1}")
        return byte == 1

    def read_float(self) -> float:
        """Read 4 bytes, IEEE 754, little-endian."""
        return float(_FLOAT.unpack(self.take(4))[0])

    def read_double(self) -> float:
        """Read 8 bytes, IEEE 754, little-endian."""
        return float(_DOUBLE.unpack(self.take(8))[0])

    def read_index(self, count: int, what: str) -> int:
        """Read an index into `count` branches or symbols."""
        found = self.read_long()
        if not 0 <= found < count:
            raise PayloadError(f"{what} from 0 to {count - 1}", f"{found} at byte {self.position}")
        return found

    def read_block(self) -> int:
        """Read the number of items in the next block of an array or a map; 0 ends it.

        There are never more items than bytes, all blocks together: items without bytes are refused. A count may be negative, with the block's size in bytes behind it (Avro 1.8.2, "Arrays").
        """
        count = self.read_long()
        if count < 0:
            count = -count
            size = self.read_long()
            if not 0 <= size <= self.end - self.position:
                raise self.short(f"a block of {size} bytes")
        self._items += count
        if count > min(self.end - self.position, MAX_COUNT):
            raise self.short(f"{count} items")
        if self._items > self.end:
            raise PayloadError("at most one item to a byte", f"{self._items} items by byte {self.position}")
        return count

    def short(self, expected: str) -> PayloadError:
        """Make the error for a payload that ends too early."""
        return PayloadError(expected, f"{self.end - self.position} at byte {self.position}, where the payload ends")

    def finish(self) -> None:
        """Check that every byte is read."""
        if self.position != self.end:
            left = self.end - self.position
            raise PayloadError(f"the end of the payload at byte {self.position}", f"{left} more")
