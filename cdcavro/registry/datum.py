"""Whether a payload is exactly one datum of a schema. Avro's own readers overlook bytes that are left over."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from cdcavro.binary import Source
from cdcavro.errors import SchemaError
from cdcavro.types import Array, Enum, Fixed, Map, Primitive, Record, Union

if TYPE_CHECKING:
    from collections.abc import Callable

    from cdcavro.types import Type


def check_datum(payload: bytes, declared: Type) -> None:
    r"""Check that a payload is one datum of a type, to its last byte. Raises `PayloadError`.

    >>> check_datum(b"\x02", Primitive("long"))
    >>> check_datum(b"\x02\x02", Primitive("long"))
    Traceback (most recent call last):
    cdcavro.errors.PayloadError: message: $: expected the end of the payload at byte 1, got 1 more
    """
    source = Source(payload)
    _pass(source, declared)
    source.finish()


def _pass(source: Source, declared: Type) -> None:
    match declared:
        case Primitive(name):
            _PRIMITIVES[name](source)
        case Record(fields=fields):
            for one in fields:
                _pass(source, one.type)
        case Union(branches):
            _pass(source, branches[source.read_index(len(branches), "a branch")])
        case Enum(symbols=symbols):
            source.read_index(len(symbols), "a symbol")
        case Fixed(size=size):
            source.take(size)
        case Array(items):
            _pass_blocks(source, items, has_keys=False)
        case Map(values):
            _pass_blocks(source, values, has_keys=True)
        case _:
            raise SchemaError("$", f"{type(declared).__name__} is no type")


def _pass_blocks(source: Source, items: Type, *, has_keys: bool) -> None:
    while count := source.read_block():
        for _ in range(count):
            if has_keys:
                source.read_string()
            _pass(source, items)


_PRIMITIVES: Final[dict[str, Callable[[Source], object]]] = {
    "null": lambda _source: None,
    "boolean": Source.read_boolean,
    "int": Source.read_int,
    "long": Source.read_long,
    "float": Source.read_float,
    "double": Source.read_double,
    "bytes": Source.read_bytes,
    "string": Source.read_string,
}
