"""The types of Avro schemas as immutable values (Avro 1.8.2, "Schema Declaration") and their canonical form.

A record that contains itself is a circle: one of its fields leads back to the record itself. Whoever walks
through types therefore enters each record once.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from cdcavro.errors import SchemaError
from cdcavro.exact.stack import GOT

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

MAX_DEPTH: Final = 128
MAX_TYPES: Final = 100_000
PRIMITIVES: Final = frozenset({"null", "boolean", "int", "long", "float", "double", "bytes", "string"})


@dataclass(frozen=True, slots=True)
class Primitive:
    """A primitive type; `attributes` include its logical type if it has one."""

    name: str
    attributes: Mapping[str, Any] = field(default_factory=dict, compare=False)


@dataclass(frozen=True, slots=True)
class Array:
    """An array of items."""

    items: Type


@dataclass(frozen=True, slots=True)
class Map:
    """A map from strings to values."""

    values: Type


@dataclass(frozen=True, slots=True)
class Union:
    """A union of branches."""

    branches: tuple[Type, ...]


@dataclass(frozen=True, slots=True)
class Named:
    """What records, enums and fixed types share: full name, full names of aliases, doc and other attributes."""

    name: str
    aliases: tuple[str, ...]
    doc: str
    attributes: Mapping[str, Any] = field(compare=False)


@dataclass(frozen=True, slots=True)
class Enum(Named):
    """An enum, with its symbols in order; `default` is the one that a reader takes for others (Avro 1.9), or None."""

    symbols: tuple[str, ...]
    default: str | None = None


@dataclass(frozen=True, slots=True)
class Fixed(Named):
    """Bytes of a fixed size, in bytes."""

    size: int


@dataclass(frozen=True, slots=True)
class Field:
    """A field of a record; `default` is `ABSENT` if there is none."""

    name: str
    type: Type
    default: Any
    aliases: tuple[str, ...]
    doc: str
    attributes: Mapping[str, Any] = field(compare=False)


@dataclass(frozen=True, slots=True, eq=False)
class Record(Named):
    """A record, with its fields in order."""

    fields: tuple[Field, ...]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Record) and _outline(self, set()) == _outline(other, set())

    def __hash__(self) -> int:
        return hash(self.name)


Type = Primitive | Array | Map | Union | Enum | Fixed | Record


def branch_name(branch: Type) -> str:
    """Return the name by which the specification tells a branch of a union from others.

    >>> branch_name(Primitive("long"))
    'long'
    """
    match branch:
        case Primitive() | Named():
            return branch.name
        case Array():
            return "array"
        case Map():
            return "map"
    raise SchemaError("union", f"{type(branch).__name__} is no branch")


def _outline(declared: Type, seen: set[str]) -> object:
    """Return what makes two types equal, with each record spelled out once and named after that."""
    match declared:
        case Array(inner) | Map(inner):
            return type(declared), _outline(inner, seen)
        case Union(branches):
            return Union, [_outline(branch, seen) for branch in branches]
        case Record(name, aliases, doc, fields=fields) if name not in seen:
            seen.add(name)
            own = [(field.name, repr(field.default), field.aliases, field.doc) for field in fields]
            return name, aliases, doc, own, [_outline(field.type, seen) for field in fields]
        case Record(name):
            return name
        case Primitive() | Enum() | Fixed():
            return declared
    raise SchemaError("$", f"{type(declared).__name__} is no type")


def inner_types(declared: Type) -> Iterator[Type]:
    """Yield the types that a type is made of: items, values, branches, or the types of fields."""
    match declared:
        case Array(inner) | Map(inner):
            yield inner
        case Union(branches):
            yield from branches
        case Record(fields=fields):
            yield from (field.type for field in fields)
        case Primitive() | Enum() | Fixed():
            return
        case _:
            raise SchemaError("$", f"{type(declared).__name__} is no type")


def recursion(root: Type) -> str | None:
    """Return the full name of a record that contains itself, the first that is found; None if none does.

    >>> recursion(Array(Primitive("long")))
    """
    within: dict[str, None] = {}
    done: set[str] = set()
    pending: list[tuple[Type, bool]] = [(root, False)]
    while pending:
        declared, is_left = pending.pop()
        if isinstance(declared, Record):
            if is_left:
                del within[declared.name]
                done.add(declared.name)
                continue
            if declared.name in within:
                return declared.name
            if declared.name in done:
                continue
            within[declared.name] = None
            pending.append((declared, True))
        pending.extend((inner, False) for inner in inner_types(declared) if type(inner) is not Primitive)
    return None


def check_expansion(root: Type, who: str) -> None:
    """Raise `SchemaError` for a type that `who` cannot spell out: one without end, or of more than 100,000 types.

    >>> check_expansion(Array(Primitive("long")), "Spark")
    """
    name = recursion(root)
    if name is not None:
        raise SchemaError("$", f"{name} contains itself, which {who} does not read")
    if _size_of(root, {}) > MAX_TYPES:
        raise SchemaError("$", f"it stands for more than {MAX_TYPES:,} types, which {who} does not read")


def _size_of(declared: Type, known: dict[str, int]) -> int:
    if isinstance(declared, Named) and declared.name in known:
        return known[declared.name]
    size = 1 + sum(_size_of(inner, known) for inner in inner_types(declared))
    if isinstance(declared, Named):
        known[declared.name] = size
    return size


def too_nested() -> SchemaError:
    """Return the error for a schema that Python's stack has no room for."""
    return SchemaError("$", GOT)


def has_bytes(declared: Type, known: dict[str, bool]) -> bool:
    """Return whether every datum of a type has at least one byte: null has none, nor has what is made of it only.

    `known` keeps what is found out about records, for the next call.
    """
    match declared:
        case Primitive(name):
            return name != "null"
        case Fixed(size=size):
            return size > 0
        case Record(name):
            if name not in known:
                known[name] = _has_bytes(declared, known, set())
            return known[name]
        case Array() | Map() | Union() | Enum():
            return True
    raise SchemaError("$", f"{type(declared).__name__} is no type")


def _has_bytes(record: Record, known: dict[str, bool], seen: set[str]) -> bool:
    # A record within itself adds nothing to what its other fields have.
    seen.add(record.name)
    for inner in inner_types(record):
        if not isinstance(inner, Record):
            found = has_bytes(inner, known)
        elif inner.name in seen:
            found = known.get(inner.name, False)
        else:
            found = _has_bytes(inner, known, seen)
        if found:
            return True
    return False


def is_nothing(declared: Type, known: dict[str, bool]) -> bool:
    """Return whether all data of a type are no bytes: what is read of nothing need not be walked, however much it is.

    `known` keeps what is found out about records, for the next call. A record that has to contain itself has no data.
    """
    if isinstance(declared, Record):
        if declared.name not in known:
            known[declared.name] = False
            known[declared.name] = all(is_nothing(field.type, known) for field in declared.fields)
        return known[declared.name]
    return isinstance(declared, Primitive | Fixed) and not has_bytes(declared, known)


def canonical_form(root: Type) -> str:
    """Return the Parsing Canonical Form of a type (Avro 1.8.2, "Transforming into Parsing Canonical Form").

    It is derived from the parsed types, so that every valid schema has one, whatever its attributes say.

    >>> canonical_form(Array(Primitive("long", {"logicalType": "timestamp-millis"})))
    '{"type":"array","items":"long"}'
    """
    return _form(root, set())


def _form(declared: Type, defined: set[str]) -> str:
    if isinstance(declared, Named):
        name = _text(declared.name)
        if declared.name in defined:
            return name
        defined.add(declared.name)
        return f'{{"name":{name},{_definition(declared, defined)}}}'
    match declared:
        case Primitive(name):
            return _text(name)
        case Array(items):
            return f'{{"type":"array","items":{_form(items, defined)}}}'
        case Map(values):
            return f'{{"type":"map","values":{_form(values, defined)}}}'
        case Union(branches):
            return f"[{','.join(_form(branch, defined) for branch in branches)}]"
    raise SchemaError("$", f"{type(declared).__name__} has no canonical form")


def _definition(declared: Named, defined: set[str]) -> str:
    match declared:
        case Enum(symbols=symbols):
            return f'"type":"enum","symbols":[{",".join(map(_text, symbols))}]'
        case Fixed(size=size):
            return f'"type":"fixed","size":{size}'
        case Record(fields=fields):
            listed = [f'{{"name":{_text(field.name)},"type":{_form(field.type, defined)}}}' for field in fields]
            return f'"type":"record","fields":[{",".join(listed)}]'
    raise SchemaError(declared.name, f"{type(declared).__name__} has no canonical form")


def _text(name: str) -> str:
    """Return a name as JSON text; the letters of other scripts stand for themselves."""
    return json.dumps(name, ensure_ascii=False)
