"""The types of Avro schemas as immutable values (Avro 1.8.2, "Schema Declaration")."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from cdcavro.errors import SchemaError

if TYPE_CHECKING:
    from collections.abc import Mapping

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
    """An enum, with its symbols in order."""

    symbols: tuple[str, ...]


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


@dataclass(frozen=True, slots=True)
class Record(Named):
    """A record, with its fields in order."""

    fields: tuple[Field, ...]


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
