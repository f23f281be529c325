"""Values of payloads in Python, in the forms that Arrow takes: the exact way, where nothing is compiled."""

from __future__ import annotations

from decimal import Context, Decimal
from typing import TYPE_CHECKING, Any, Final

from cdcavro.avro.logical import logical_type
from cdcavro.avro.skip import READ_PRIMITIVE
from cdcavro.avro.types import Array, Enum, Fixed, Map, Primitive, Record, Type, Union, has_bytes
from cdcavro.errors import SchemaError

if TYPE_CHECKING:
    from collections.abc import Callable

    from cdcavro.avro.decoder import Decoder

    Read = Callable[[Decoder], Any]

_WIDE: Final = Context(prec=100)


def reader(declared: Type) -> Read:
    """Return a function that reads a datum of a type, which has been checked to be one.

    Dates, times and instants are integers, records are tuples, maps lists of pairs, unions of several branches tuples
    with a place for each branch that is not null.
    """
    match declared:
        case Primitive() | Fixed():
            return _datum(declared)
        case Enum(symbols=symbols):
            return lambda source: symbols[source.read_index(len(symbols), "a symbol")]
        case Array(items):
            read, weightless = reader(items), not has_bytes(items, {})
            return lambda source: [read(source) for count in source.blocks(weightless) for _ in range(count)]
        case Map(values):
            read = reader(values)
            return lambda source: [
                (source.read_string(), read(source)) for count in source.blocks() for _ in range(count)
            ]
        case Union(branches):
            return _union(branches)
        case Record(fields=fields):
            reads = [reader(field.type) for field in fields]
            return lambda source: tuple([read(source) for read in reads])
    raise SchemaError("$", f"{type(declared).__name__} is no type")


def _datum(declared: Primitive | Fixed) -> Read:
    read: Callable[[Decoder], Any] = (
        READ_PRIMITIVE[declared.name] if isinstance(declared, Primitive) else _taken(declared)
    )
    logical = logical_type(declared)
    if logical is None or logical.name != "decimal":
        return read
    scale = -logical.scale
    return lambda source: Decimal(int.from_bytes(read(source), "big", signed=True)).scaleb(scale, _WIDE)


def _taken(declared: Fixed) -> Read:
    return lambda source: source.take(declared.size)


def _union(branches: tuple[Type, ...]) -> Read:
    reads = [reader(branch) for branch in branches]
    others = [at for at, branch in enumerate(branches) if branch != Primitive("null")]
    if len(others) <= 1:
        return lambda source: reads[source.read_index(len(reads), "a branch")](source)
    places = {at: place for place, at in enumerate(others)}

    def read(source: Decoder) -> tuple[Any, ...] | None:
        at = source.read_index(len(reads), "a branch")
        value = reads[at](source)
        if at not in places:
            return None
        members = [None] * len(others)
        members[places[at]] = value
        return tuple(members)

    return read
