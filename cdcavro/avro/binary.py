"""Avro's binary encoding of primitive values (Avro 1.8.2, "Binary Encoding"), appended to a `bytearray`.

The errors for payloads that break the encoding are here as well.
"""

from __future__ import annotations

import struct
from typing import Final

from cdcavro.avro.types import STACK_EXPECTED, STACK_GOT
from cdcavro.errors import PayloadError

MAX_COUNT: Final = 10_000_000
MAX_WEIGHTLESS: Final = 100_000
# Of records, arrays and maps in each other, in data of a schema that contains itself.
MAX_LEVELS: Final = 128
_DOUBLE: Final = struct.Struct("<d")
_FLOAT: Final = struct.Struct("<f")
_CARRY: Final = 0x80


def write_long(out: bytearray, value: int) -> None:
    """Append a zig-zag variable-length integer of at most 64 bits."""
    zigzag = (value << 1) ^ (value >> 63)
    while zigzag >= _CARRY:
        out.append(zigzag & 0x7F | _CARRY)
        zigzag >>= 7
    out.append(zigzag)


def write_string(out: bytearray, value: str) -> None:
    """Append a string: its length in bytes, then its UTF-8 bytes."""
    raw = value.encode()
    size = len(raw)
    if size < 64:  # noqa: PLR2004  the length fits one byte
        out.append(size << 1)
    else:
        write_long(out, size)
    out += raw


def write_bytes(out: bytearray, value: bytes) -> None:
    """Append bytes, preceded by their length."""
    write_long(out, len(value))
    out += value


def write_float(out: bytearray, value: float) -> None:
    """Append a single-precision number: 4 bytes, IEEE 754, little-endian."""
    out += pack_float(value)


def write_double(out: bytearray, value: float) -> None:
    """Append a double-precision number: 8 bytes, IEEE 754, little-endian."""
    out += _DOUBLE.pack(value)


def pack_float(value: float) -> bytes:
    """Return the 4 bytes of the 32-bit float nearest to a number. Raises `OverflowError` beyond the largest."""
    return _FLOAT.pack(value)


def unpack_float(raw: bytes) -> float:
    """Return the 32-bit float that 4 bytes encode."""
    value: float = _FLOAT.unpack(raw)[0]
    return value


def nearest_float(value: float) -> float:
    """Return the 32-bit float nearest to a number. Raises `OverflowError` beyond the largest.

    >>> nearest_float(0.1)
    0.10000000149011612
    """
    return unpack_float(pack_float(value))


def short(expected: str, position: int, end: int) -> PayloadError:
    """Return the error for a payload that ends too early."""
    return PayloadError(expected, f"{end - position} at byte {position}, where the payload ends")


def too_nested() -> PayloadError:
    """Return the error for a payload that Python's stack has no room for."""
    return PayloadError(STACK_EXPECTED, STACK_GOT)


def too_wide(position: int) -> PayloadError:
    """Return the error for an integer of more than 64 bits."""
    return PayloadError("an integer of at most 64 bits", f"more at byte {position}")


def not_canonical(position: int) -> PayloadError:
    """Return the error for an integer with bytes that say nothing: one value would have several forms."""
    return PayloadError("an integer in as few bytes as it has", f"a needless one before byte {position}")


def no_text(byte: int, position: int) -> PayloadError:
    """Return the error for a string that is not UTF-8."""
    return PayloadError("UTF-8", f"byte 0x{byte:02x} before byte {position}")
