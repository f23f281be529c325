"""Which Python type the values of an Avro type have, and which classes a schema needs.

Two branches of a union never have one Python type: where a branch would have that of a branch
before it (int and long, float and double, decimals as bytes and as fixed), it has a class of its own
around its values, a `Branch`.
"""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass
from decimal import Decimal
from types import NoneType
from typing import TYPE_CHECKING, Final, Generic, TypeVar

from cdcavro.avro.logical import Logical, logical_type
from cdcavro.avro.types import Array, Enum, Fixed, Map, Named, Primitive, Record, Type, Union, branch_name
from cdcavro.errors import SchemaError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

# The full name of a named type, or the branch's name and the type of the values in a Branch.
Key = str | tuple[str, type]
T = TypeVar("T")
MAX_DIGITS: Final = 1000
_PRIMITIVES: Final[dict[str, type]] = {
    "null": NoneType,
    "boolean": bool,
    "int": int,
    "long": int,
    "float": float,
    "double": float,
    "bytes": bytes,
    "string": str,
}
_LOGICAL: Final[dict[str, type]] = {
    "decimal": Decimal,
    "date": dt.date,
    "time-millis": dt.time,
    "time-micros": dt.time,
    "timestamp-millis": dt.datetime,
    "timestamp-micros": dt.datetime,
    "local-timestamp-millis": dt.datetime,
    "local-timestamp-micros": dt.datetime,
}


class FixedBytes(bytes):
    """The bytes of a fixed: each fixed of a schema is a class derived from this one."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class Branch(Generic[T]):
    """A value in a branch of a union that has another branch of the same Python type."""

    value: T


@dataclass(frozen=True, slots=True)
class Definition:
    """A class that a schema needs: its key, and the type whose values it has."""

    key: Key
    type: Type


def meaning(declared: Primitive | Fixed) -> Logical | None:
    """Return the logical type that Python has a type for; None for a plain one.

    Nanoseconds, uuid, duration and decimals of more than 1,000 digits stay what they are encoded as.
    """
    found = logical_type(declared)
    return found if found is not None and found.name in _LOGICAL and found.precision <= MAX_DIGITS else None


def shape(declared: Type) -> type | str:
    """Return the Python type of a type's values, or the full name of the named type whose class they have.

    >>> shape(Primitive("int", {"logicalType": "date"})), shape(Array(Primitive("long")))
    (<class 'datetime.date'>, <class 'list'>)
    """
    match declared:
        case Array():
            return list
        case Map():
            return dict
        case Primitive(name):
            found = meaning(declared)
            return _PRIMITIVES[name] if found is None else _LOGICAL[found.name]
        case Fixed():
            return declared.name if meaning(declared) is None else Decimal
        case Enum() | Record():
            return declared.name
    raise SchemaError("union", "a union holds a union")


def branch_keys(union: Union) -> list[Key | None]:
    """Return for each branch the key of the `Branch` around its values; None for one that needs none."""
    seen: set[type | str] = set()
    keys: list[Key | None] = []
    for branch in union.branches:
        own = shape(branch)
        keys.append((branch_name(branch), own) if own in seen and isinstance(own, type) else None)
        seen.add(own)
    return keys


def branch_classes(union: Union, classes: Mapping[Key, type]) -> list[type]:
    """Return the classes of the values of each branch, all different."""
    return [
        classes[key] if key is not None else class_of(branch, classes)
        for key, branch in zip(branch_keys(union), union.branches, strict=True)
    ]


def class_of(declared: Type, classes: Mapping[Key, type]) -> type:
    """Return the class of the values of a type."""
    own = shape(declared)
    return own if isinstance(own, type) else classes[own]


def class_definitions(root: Type) -> list[Definition]:
    """Find the classes that a schema needs, each behind those that it uses."""
    found: dict[Key, Definition] = {}
    _collect(root, found)
    return list(found.values())


def _collect(declared: Type, found: dict[Key, Definition]) -> None:
    if isinstance(declared, Named) and declared.name in found:
        return
    for below in _below(declared):
        _collect(below, found)
    if isinstance(declared, Union):
        for key, branch in zip(branch_keys(declared), declared.branches, strict=True):
            if key is not None:
                found.setdefault(key, Definition(key, branch))
    elif isinstance(shape(declared), str) and isinstance(declared, Named):
        found[declared.name] = Definition(declared.name, declared)


def _below(declared: Type) -> Iterator[Type]:
    match declared:
        case Array(items):
            yield items
        case Map(values):
            yield values
        case Union(branches):
            yield from branches
        case Record(fields=fields):
            yield from (one.type for one in fields)
        case Primitive() | Enum() | Fixed():
            return
        case _:
            raise SchemaError("$", f"{type(declared).__name__} is no type")
