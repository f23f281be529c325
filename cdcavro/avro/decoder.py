"""A payload read as Avro's primitive values, indexes and blocks, with counts checked before they are used."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cdcavro.avro.binary import MAX_COUNT, MAX_LEVELS, MAX_WEIGHTLESS, short, unpack_float
from cdcavro.avro.buffer import ByteReader
from cdcavro.errors import PayloadError

if TYPE_CHECKING:
    from collections.abc import Iterator

# The bytes of indexes up to 63.
_FEW = frozenset(range(0, 128, 2))


class Decoder(ByteReader):
    """The bytes of one payload and the position up to which they are read. Attributes: see `ByteReader`."""

    __slots__ = ()

    def read_int(self) -> int:
        """Read a zig-zag variable-length integer of at most 32 bits."""
        value = self.read_long()
        if not -(2**31) <= value < 2**31:
            raise PayloadError("an integer of at most 32 bits", f"{value} at byte {self.position}")
        return value

    def read_bytes(self) -> bytes:
        """Read bytes, preceded by their length."""
        return self.take(self.read_long())

    def read_boolean(self) -> bool:
        """Read a boolean: a byte that is 0 or 1."""
        byte = self.read_byte()
        if byte > 1:
            raise PayloadError("a boolean, 0 or 1", f"{byte} at byte {self.position - 1}")
        return byte == 1

    def read_float(self) -> float:
        """Read a single-precision number: 4 bytes, IEEE 754, little-endian."""
        return unpack_float(self.take(4))

    def read_index(self, count: int, what: str) -> int:
        """Read an index into `count` branches or symbols; `what` names them in the error."""
        start = self.position
        if start < self.end and self._raw[start] in _FEW and self._raw[start] < count << 1:
            self.position = start + 1
            return self._raw[start] >> 1
        index = self.read_long()
        if not 0 <= index < count:
            raise PayloadError(f"{what} from 0 to {count - 1}", f"{index} at byte {self.position}")
        return index

    def read_block(self, is_weightless: bool = False) -> int:  # noqa: FBT001, FBT002  a plain argument is fast in C
        """Read the number of items in the next block of an array or a map; 0 ends it.

        All blocks together never have more items than the payload has bytes; of items without bytes, which
        the caller must say that they are, a payload has at most 100,000. A negative count is followed by the
        block's size in bytes (Avro 1.8.2, "Arrays").
        """
        count = self.read_long()
        self._stated = -1
        if count < 0:
            size = self.read_long()
            if not 0 <= size <= self.end - self.position:
                raise self.short(f"a block of {size} bytes")
            self._stated = self.position + size
            if count < -self.end and (count < -MAX_WEIGHTLESS or not is_weightless):
                raise self.short(f"{str(count)[1:]} items")
            count = -count
        if is_weightless:
            return self._weigh(count)
        if count > self.end - self.position or count > MAX_COUNT:
            raise self.short(f"{count} items")
        self._items += count
        if self._items > self.end:
            raise PayloadError("at most one item to a byte", f"{self._items} items by byte {self.position}")
        return count

    def blocks(self, is_weightless: bool = False) -> Iterator[int]:  # noqa: FBT001, FBT002  as `read_block`
        """Yield the number of items in each block of an array or a map, which are read before the next is asked for.

        Raises `PayloadError`, also if a block that states its size in bytes has not so many.
        """
        while count := self.read_block(is_weightless):
            start, stated = self.position, self._stated
            yield count
            if stated not in (-1, self.position):
                raise PayloadError(
                    f"a block of {stated - start} bytes", f"{self.position - start} by byte {self.position}"
                )

    def _weigh(self, count: int) -> int:
        if count <= MAX_WEIGHTLESS:
            self._weightless += count
        if count > MAX_WEIGHTLESS or self._weightless > MAX_WEIGHTLESS:
            raise PayloadError(f"at most {MAX_WEIGHTLESS} items without bytes", f"more by byte {self.position}")
        return count

    def descend(self, levels: int) -> int:
        """Go down a number of levels, each a record, an array or a map, in data that have no end by their schema."""
        self._depth += levels
        if self._depth > MAX_LEVELS:
            raise PayloadError(
                f"at most {MAX_LEVELS} records, arrays and maps in each other", f"more at byte {self.position}"
            )
        return 0

    def ascend(self, levels: int) -> int:
        """Go up again."""
        self._depth -= levels
        return 0

    def short(self, expected: str) -> PayloadError:
        """Return the error for a payload that ends too early."""
        return short(expected, self.position, self.end)

    def finish(self) -> None:
        """Raise `PayloadError` unless every byte has been read."""
        if self.position != self.end:
            left = self.end - self.position
            raise PayloadError(f"the end of the payload at byte {self.position}", f"{left} more")
