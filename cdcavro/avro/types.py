"""The types of Avro schemas, as values (Avro 1.8.2, "Schema Declaration")."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from cdcavro.errors import SchemaError

if TYPE_CHECKING:
    from collections.abc import Mapping

PRIMITIVES: Final = frozenset({"null", "boolean", "int", "long", "float", "double", "bytes", "string"})


@dataclass(frozen=True, slots=True)
class Primitive:
    """A primitive type, with its logical type if it has one."""

    name: str
    attributes: Mapping[str, Any] = field(default_factory=dict, compare=False)


@dataclass(frozen=True, slots=True)
class Array:
    """An array of items."""

    items: Type


@dataclass(frozen=True, slots=True)
class Map:
    """A map from string to values."""

    values: Type


@dataclass(frozen=True, slots=True)
class Union:
    """A choice of branches."""

    branches: tuple[Type, ...]


@dataclass(frozen=True, slots=True)
class Named:
    """What record, enum and fixed share: the full name and the full names of aliases."""

    name: str
    aliases: tuple[str, ...]
    doc: str
    attributes: Mapping[str, Any] = field(compare=False)


@dataclass(frozen=True, slots=True)
class Enum(Named):
    """An enum."""

    symbols: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Fixed(Named):
    """Bytes of a fixed size."""

    size: int


@dataclass(frozen=True, slots=True)
class Field:
    """A field of a record; `default` is `ABSENT` where there is none."""

    name: str
    type: Type
    default: Any
    aliases: tuple[str, ...]
    doc: str
    attributes: Mapping[str, Any] = field(compare=False)


@dataclass(frozen=True, slots=True)
class Record(Named):
    """A record."""

    fields: tuple[Field, ...]


Type = Primitive | Array | Map | Union | Enum | Fixed | Record


def branch_name(branch: Type) -> str:
    """Name a branch of a union as the specification tells branches apart.

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
