"""Payloads of any schema, checked to be exactly one datum of it.

Avro Java, and so Spark, takes a payload's bytes as they come: it ignores bytes that are left over,
and one that ends too early fails the job or becomes a row full of nulls. So a payload from elsewhere
is walked first, by a plan made once from the schema. Fields that a reader has not are passed by likewise.
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
    r"""Check that bytes are exactly one datum of a schema. Raises `PayloadError` with the place.

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
    """Make the function that reads past a datum of a type, and checks it. It raises `PayloadError` with the place.

    The entries of a map are numbered in that place, and may have one name twice; `read_map` makes
    another reader of maps, from that of the values, and `read_record` of records, from their fields.
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
    """Read null, which has no bytes."""


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
