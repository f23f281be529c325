"""The check that a payload is exactly one datum of its schema, whatever that schema is.

Avro Java, and so Spark, does not check payloads: it ignores bytes that are left over, and a payload
that ends too early fails the job or becomes a row full of nulls. A payload from elsewhere is
therefore walked first, by a plan that is built once per schema. Fields that a reader lacks are skipped
in the same way.
"""

from __future__ import annotations

from functools import lru_cache, partial
from typing import TYPE_CHECKING, Final

from cdcavro.avro.decoder import Decoder
from cdcavro.avro.types import Array, Enum, Fixed, Map, Primitive, Record, Type, Union
from cdcavro.errors import MessageError, SchemaError
from cdcavro.exact.jsontext import escape

if TYPE_CHECKING:
    from collections.abc import Callable

    from cdcavro.avro.schema import Schema

    Check = Callable[[Decoder], object]


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


def skipper(
    declared: Type,
    *,
    read_map: Callable[[Check], Check] | None = None,
    read_record: Callable[[list[tuple[str, Check]]], Check] | None = None,
) -> Check:
    """Return a function that skips and checks a datum of a type. It raises `PayloadError` with the place.

    In that place a map's entries are numbered, and a name may occur twice. `read_map` returns a different
    function for maps, from that for their values, and `read_record` one for records, from their fields.
    """
    skip = partial(skipper, read_map=read_map, read_record=read_record)
    match declared:
        case Primitive(name):
            return READ_PRIMITIVE[name]
        case Fixed(size=size):
            return lambda source: source.take(size)
        case Enum(symbols=symbols):
            return lambda source: source.read_index(len(symbols), "a symbol")
        case Array(items):
            return _items(skip(items), is_named=False)
        case Map(values):
            return _items(skip(values), is_named=True) if read_map is None else read_map(skip(values))
        case Union(branches):
            return _union([skip(branch) for branch in branches])
        case Record(fields=fields):
            return (read_record or _record)([(field.name, skip(field.type)) for field in fields])
    raise SchemaError("$", f"{type(declared).__name__} is no type")


def _items(check: Check, *, is_named: bool) -> Check:
    def walk(source: Decoder) -> None:
        at = 0
        try:
            while count := source.read_block():
                for _ in range(count):
                    if is_named:
                        source.read_string()
                    check(source)
                    at += 1
        except MessageError as error:
            error.below(f"/{at}")
            raise

    return walk


def _union(checks: list[Check]) -> Check:
    def walk(source: Decoder) -> None:
        checks[source.read_index(len(checks), "a branch")](source)

    return walk


def _record(fields: list[tuple[str, Check]]) -> Check:
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
    "boolean": Decoder.read_boolean,
    "int": Decoder.read_int,
    "long": Decoder.read_long,
    "float": Decoder.read_float,
    "double": Decoder.read_double,
    "bytes": Decoder.read_bytes,
    "string": Decoder.read_string,
}
