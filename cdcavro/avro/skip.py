"""Skipping of data, and so the check that a payload is exactly one datum of its schema, whatever that schema is.

Avro Java, and so Spark, does not check payloads: it ignores bytes that are left over, and a payload
that ends too early fails the job or becomes a row full of nulls. A payload from elsewhere is
therefore skipped first, by functions that are built once per schema: what passes is read by Avro Java, by
Spark and by generated records alike. Hence a date, a time and a decimal must be valid, and a map has
each name once. Fields that a reader lacks are skipped in the same way.
"""

from __future__ import annotations

from functools import lru_cache
from operator import methodcaller
from typing import TYPE_CHECKING, Any, Concatenate, Final, ParamSpec, TypeVar

from cdcavro.avro.binary import MAX_COUNT, Decoder, too_nested
from cdcavro.avro.types import (
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

    Check = Callable[[Decoder], object]

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
