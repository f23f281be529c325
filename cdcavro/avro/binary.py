"""Avro's binary encoding (Avro 1.8.2, "Binary Encoding"): parts of data written and read, and whole data skipped.

Primitive values, indexes and blocks are written and read. Counts and lengths are checked before anything is built from
them.

Data are skipped by their schema, whatever it is, and so a payload is checked to be exactly one datum of it. Avro Java,
and so Spark, does not check payloads: it ignores bytes that are left over, and a payload that ends too early fails the
job or becomes a row full of nulls. A payload from elsewhere is therefore skipped first, by functions that are built
once per schema: what passes is read by Avro Java, by Spark and by generated records alike. Hence a date, a time and a
decimal must be valid, and a map has each name once. Fields that a reader lacks are skipped in the same way.
"""

from __future__ import annotations

import struct
from functools import lru_cache
from operator import methodcaller
from typing import TYPE_CHECKING, Any, Concatenate, Final, ParamSpec, TypeVar

from cdcavro.avro.types import (
    STACK_EXPECTED,
    STACK_GOT,
    Array,
    Enum,
    Fixed,
    Map,
    Primitive,
    Record,
    Type,
    Union,
    has_bytes,
    is_nothing,
    recursion,
    value_check,
    within_stack,
)
from cdcavro.errors import MessageError, PayloadError, SchemaError, shown
from cdcavro.exact.jsontext import escape

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Iterator, Sequence

    from cdcavro.avro.schema import Schema

    Check = Callable[["Decoder"], object]

MAX_COUNT: Final = 10_000_000
MAX_WEIGHTLESS: Final = 100_000
# Of records, arrays and maps in each other, in data of a schema that contains itself.
MAX_LEVELS: Final = 128
_DOUBLE: Final = struct.Struct("<d")
_FLOAT: Final = struct.Struct("<f")
_CARRY: Final = 0x80
_LONG_BYTES: Final = 10
# The bytes of indexes up to 63.
_FEW = frozenset(range(0, 128, 2))


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


class Decoder:
    """The bytes of one payload and the position up to which they are read.

    Every length is checked against the bytes that are left before anything is built from it.

    Attributes: `position` (int), in bytes;
    `end` (int), the length of the payload in bytes.
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

        All blocks together have at most as many items as the payload has bytes. Items without bytes are weightless,
        which the caller must say; a payload has at most 100,000 of them. A negative count is followed by the
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

        Raises `PayloadError`, also if a block has another size in bytes than it states.
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
        """Go down a number of levels, each a record, an array or a map, in data of a schema that contains itself."""
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
    """Return the error for an integer with needless bytes: one value would have several forms."""
    return PayloadError("an integer in as few bytes as it has", f"a needless one before byte {position}")


def no_text(byte: int, position: int) -> PayloadError:
    """Return the error for a string that is not UTF-8."""
    return PayloadError("UTF-8", f"byte 0x{byte:02x} before byte {position}")


K = TypeVar("K")
P = ParamSpec("P")
T = TypeVar("T")


@within_stack(too_nested)
def check_payload(raw: bytes, schema: Schema) -> None:
    r"""Raise `PayloadError`, with the place of the fault, unless bytes are exactly one datum of a schema.

    >>> from cdcavro.avro.schema import parse_schema
    >>> check_payload(b"\x04ab", parse_schema('"string"'))
    """
    source = Decoder(raw)
    _plan(schema)(source)
    source.finish()


@lru_cache(maxsize=1024)
def _plan(schema: Schema) -> Check:
    return skipper(schema.root)


def skipper(declared: Type) -> Check:
    """Return a function that skips and checks a datum of a type. It raises `PayloadError` with the place."""
    return _Skippers(is_endless=recursion(declared) is not None).of(declared)


class _Skippers:
    """Builds the functions for the types of a schema, that of each record once."""

    def __init__(self, *, is_endless: bool) -> None:
        self._is_endless = is_endless
        self._built: dict[str, Check] = {}
        self._weights: dict[str, bool] = {}
        self._nothing: dict[str, bool] = {}

    def of(self, declared: Type, levels: int = 0) -> Check:
        """Return the function for a type; `levels` is how far it is below the start of the enclosing record."""
        match declared:
            case Primitive() | Fixed():
                return datum_reader(declared)
            case Enum(symbols=symbols):
                return lambda source: source.read_index(len(symbols), "a symbol")
            case Array(items):
                return array_check(self.of(items, levels + 1), is_weightless=not has_bytes(items, self._weights))
            case Map(values):
                return map_check(self.of(values, levels + 1))
            case Union(branches):
                return union_check([self.of(branch, levels) for branch in branches])
            case Record():
                return self._enter_record(declared, levels + 1)
        raise SchemaError("$", f"{type(declared).__name__} is no type")

    def _enter_record(self, declared: Record, levels: int) -> Check:
        name = declared.name
        if name not in self._built and is_nothing(declared, self._nothing):
            self._built[name] = _nothing
        elif name not in self._built:
            # While its fields are being read, a record within itself is looked up when data get there.
            self._built[name] = call_later(self._built, name)
            self._built[name] = record_check([(field.name, self.of(field.type)) for field in declared.fields])
        return with_levels(self._built[name], levels) if self._is_endless else self._built[name]


def call_later(built: dict[K, Callable[P, T]], key: K) -> Callable[P, T]:
    """Return a function that calls the function that `built` will have under a key by the time of the call."""

    def call(*args: P.args, **kwargs: P.kwargs) -> T:
        return built[key](*args, **kwargs)

    return call


def with_levels(read: Callable[Concatenate[Decoder, P], T], levels: int) -> Callable[Concatenate[Decoder, P], T]:
    """Return a function that reads a record `levels` below the last one, and checks how deep the data nest."""

    def enter(source: Decoder, /, *args: P.args, **kwargs: P.kwargs) -> T:
        source.descend(levels)
        value = read(source, *args, **kwargs)
        source.ascend(levels)
        return value

    return enter


def datum_reader(declared: Primitive | Fixed) -> Callable[[Decoder], Any]:
    """Return a function that reads a datum and checks that it is a value of its type's logical type."""
    read = READ_PRIMITIVE[declared.name] if isinstance(declared, Primitive) else _fixed_reader(declared.size)
    check = value_check(declared)
    if check is None:
        return read

    def read_checked(source: Decoder) -> Any:
        value = read(source)
        check(value)
        return value

    return read_checked


def _fixed_reader(size: int) -> Callable[[Decoder], bytes]:
    return lambda source: source.take(size)


def array_check(check: Check, *, is_weightless: bool) -> Check:
    """Return a function that checks an array, from the function for one item; weightless items have no bytes."""

    def walk(source: Decoder) -> None:
        at = 0
        try:
            for count in blocks(source, is_weightless=is_weightless):
                for _ in range(count):
                    check(source)
                    at += 1
        except MessageError as error:
            error.below(f"/{at}")
            raise

    return walk


def map_check(check: Check) -> Check:
    """Return a function that checks a map, from the function for one value; no name may occur twice."""

    def walk(source: Decoder) -> None:
        names: set[str] = set()
        name = ""
        try:
            for count in blocks(source):
                for _ in range(count):
                    name = source.read_string()
                    check_name(name, names)
                    names.add(name)
                    check(source)
        except MessageError as error:
            error.below(f"/{escape(name)}")
            raise

    return walk


def blocks(source: Decoder, *, is_weightless: bool = False) -> Iterator[int]:
    """Yield the number of items in each block of a collection, which are read before the next is asked for.

    Raises `PayloadError` if there are more in all than Avro Java reads.
    """
    read = 0
    for count in source.blocks(is_weightless):
        read += count
        if read > MAX_COUNT:
            raise PayloadError(f"at most {MAX_COUNT:,} items", f"{read:,}")
        yield count


def check_name(name: str, known: Container[str]) -> None:
    """Raise `PayloadError` for the name of a map's entry that is known already."""
    if name in known:
        raise PayloadError("each name once", f"{shown(name)} twice")


def union_check(checks: Sequence[Check]) -> Check:
    """Return a function that checks a union, from the functions for its branches."""

    def walk(source: Decoder) -> None:
        checks[source.read_index(len(checks), "a branch")](source)

    return walk


def record_check(fields: Sequence[tuple[str, Check]]) -> Check:
    """Return a function that checks a record, from the name of each field and the function for it."""

    def walk(source: Decoder) -> None:
        at = ""
        try:
            for name, check in fields:
                at = name
                check(source)
        except MessageError as error:
            error.below(f"/{escape(at)}")
            raise

    return walk


def _nothing(_: Decoder) -> None:
    """Read a null, which has no bytes."""


READ_PRIMITIVE: Final[dict[str, Check]] = {
    "null": _nothing,
    "boolean": methodcaller("read_boolean"),
    "int": methodcaller("read_int"),
    "long": methodcaller("read_long"),
    "float": methodcaller("read_float"),
    "double": methodcaller("read_double"),
    "bytes": methodcaller("read_bytes"),
    "string": methodcaller("read_string"),
}
