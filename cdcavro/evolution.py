"""Schema resolution: how a reader's schema reads what a writer's schema wrote.

Source: Avro 1.8.2, "Schema Resolution" and "Aliases". The two schemas are compared once; the
outcome is a tree of small steps that knows nothing of bytes. It differs from the specification in
one point, on purpose: named types match by full name or alias, so that a record renamed without an
alias is refused rather than read by chance.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from cdcavro.errors import ResolutionError
from cdcavro.types import ABSENT, Array, Enum, Field, Fixed, Map, Named, Primitive, Record, Type, Union

PROMOTIONS: Final = {
    "int": ("int", "long", "float", "double"),
    "long": ("long", "float", "double"),
    "float": ("float", "double"),
    "string": ("string", "bytes"),
    "bytes": ("bytes", "string"),
}
_UNITS: Final = {"logicalType": None, "scale": 0, "precision": None}


@dataclass(frozen=True, slots=True)
class ReadPrimitive:
    """Read `writer`, give it as `reader`."""

    writer: Primitive
    reader: Primitive


@dataclass(frozen=True, slots=True)
class ReadFixed:
    """Read so many bytes."""

    size: int


@dataclass(frozen=True, slots=True)
class ReadEnum:
    """Read an index into the writer's symbols; None where the reader has no such symbol."""

    reader: Enum
    symbols: tuple[str | None, ...]


@dataclass(frozen=True, slots=True)
class ReadArray:
    """Read items."""

    items: Step


@dataclass(frozen=True, slots=True)
class ReadMap:
    """Read values."""

    values: Step


@dataclass(frozen=True, slots=True)
class ReadUnion:
    """Read a branch index of the writer's, then the branch; a text where the reader cannot read it."""

    branches: tuple[Step | str, ...]


@dataclass(frozen=True, slots=True)
class ReadRecord:
    """Read the writer's fields in order, each into a field of the reader's or into nothing; then fill in defaults."""

    reader: Record
    fields: tuple[tuple[Step, Field, Field | None], ...]
    defaults: tuple[Field, ...]


Step = ReadPrimitive | ReadFixed | ReadEnum | ReadArray | ReadMap | ReadUnion | ReadRecord


def resolve(writer: Type, reader: Type, where: str = "$") -> Step:
    """Compare two types and give the steps that read the writer's data into the reader's shape.

    Raises `ResolutionError` with the place and what does not fit.
    """
    if isinstance(writer, Union):
        return _from_union(writer, reader, where)
    if isinstance(reader, Union):
        return _into_union(writer, reader, where)
    match writer, reader:
        case Primitive(), Primitive():
            return _primitive(writer, reader, where)
        case Array(), Array():
            return ReadArray(resolve(writer.items, reader.items, where + "[]"))
        case Map(), Map():
            return ReadMap(resolve(writer.values, reader.values, where + "{}"))
        case Fixed(), Fixed() if is_same_name(writer, reader) and writer.size == reader.size:
            _check_units(writer, reader, where)
            return ReadFixed(writer.size)
        case Enum(), Enum() if is_same_name(writer, reader):
            return ReadEnum(reader, tuple(one if one in reader.symbols else None for one in writer.symbols))
        case Record(), Record() if is_same_name(writer, reader):
            return _record(writer, reader, where)
    raise ResolutionError(where, f"{_label(reader)} cannot read {_label(writer)}")


def is_same_name(writer: Named, reader: Named) -> bool:
    """Tell whether the reader's full name or one of its aliases is the writer's full name."""
    return writer.name == reader.name or writer.name in reader.aliases


def _primitive(writer: Primitive, reader: Primitive, where: str) -> Step:
    if reader.name not in PROMOTIONS.get(writer.name, (writer.name,)):
        raise ResolutionError(where, f"{reader.name} cannot read {writer.name}")
    _check_units(writer, reader, where)
    return ReadPrimitive(writer, reader)


def _check_units(writer: Primitive | Fixed, reader: Primitive | Fixed, where: str) -> None:
    """Refuse logical types that would read a value as another one: 1.23 as 0.123, seconds as milliseconds."""
    for unit, default in _UNITS.items():
        was, now = writer.attributes.get(unit, default), reader.attributes.get(unit, default)
        if "logicalType" in writer.attributes and "logicalType" in reader.attributes and was != now:
            raise ResolutionError(where, f"{unit} {now} cannot read {unit} {was}")


def _from_union(writer: Union, reader: Type, where: str) -> Step:
    branches: list[Step | str] = []
    for branch in writer.branches:
        try:
            branches.append(resolve(branch, reader, where))
        except ResolutionError as error:
            branches.append(error.reason)
    if all(isinstance(branch, str) for branch in branches):
        raise ResolutionError(where, f"{_label(reader)} reads no branch of {_label(writer)}")
    return ReadUnion(tuple(branches))


def _into_union(writer: Type, reader: Union, where: str) -> Step:
    exact = [one for one in reader.branches if _label(one) == _label(writer)]
    for branch in (*exact, *reader.branches):
        try:
            return resolve(writer, branch, where)
        except ResolutionError:
            continue
    raise ResolutionError(where, f"no branch of {_label(reader)} reads {_label(writer)}")


def _record(writer: Record, reader: Record, where: str) -> Step:
    own = {one.name for one in writer.fields}
    wanted = {alias: one for one in reader.fields if one.name not in own for alias in one.aliases}
    wanted |= {one.name: one for one in reader.fields}
    fields: list[tuple[Step, Field, Field | None]] = []
    found: set[str] = set()
    for written in writer.fields:
        into = wanted.get(written.name)
        place = f"{where}.{written.name}"
        if into is not None and into.name in found:
            raise ResolutionError(place, f"{into.name} reads another field already")
        found.update(() if into is None else (into.name,))
        fields.append((resolve(written.type, into.type if into else written.type, place), written, into))
    missing = tuple(one for one in reader.fields if one.name not in found)
    for one in missing:
        if one.default is ABSENT:
            raise ResolutionError(where, f"{one.name} is new and has no default")
    return ReadRecord(reader, tuple(fields), missing)


def _label(declared: Type) -> str:
    match declared:
        case Primitive() | Named():
            return declared.name
        case Union(branches):
            return "[" + ", ".join(map(_label, branches)) + "]"
        case Array() | Map():
            return type(declared).__name__.lower()
    raise ResolutionError("$", f"{type(declared).__name__} is no type")
