"""Shapes: the Python types of the values of Avro types, the classes that a schema needs, and their fields.

No two branches of a union have the same Python type: if a branch would have that of an earlier branch
(int and long, float and double, decimals as bytes and as fixed), its values are wrapped in a class of
their own, a `Branch`.
"""

from __future__ import annotations

import dataclasses
import datetime as dt
import operator
from dataclasses import dataclass
from decimal import Decimal
from types import NoneType
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar

from cdcavro.avro.types import (
    MAX_DIGITS,
    Array,
    Enum,
    Fixed,
    Logical,
    Map,
    Named,
    Primitive,
    Record,
    Type,
    Union,
    branch_name,
    inner_types,
    logical_type,
)
from cdcavro.errors import SchemaError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

# The full name of a named type, or the name of a branch and the type of the values in its Branch.
Key = str | tuple[str, type]
T = TypeVar("T")
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
    """The bytes of a fixed; each fixed type of a schema is a subclass."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class Branch(Generic[T]):
    """A value in a branch of a union that has another branch of the same Python type."""

    value: T


@dataclass(frozen=True, slots=True)
class ClassDefinition:
    """A class that a schema needs."""

    # What the class is looked up by.
    key: Key
    # The type whose values are the instances of the class.
    type: Type


def meaning(declared: Primitive | Fixed) -> Logical | None:
    """Return a type's logical type if Python has a type for it, else None.

    Nanoseconds, uuid, duration and decimals of more than 1,000 digits keep the type that they are encoded as.
    """
    logical = logical_type(declared)
    return logical if logical is not None and logical.name in _LOGICAL and logical.precision <= MAX_DIGITS else None


def shape(declared: Type) -> type | str:
    """Return the Python type of a type's values, or the full name of a named type that has a class of its own.

    >>> shape(Primitive("int", {"logicalType": "date"})), shape(Array(Primitive("long")))
    (<class 'datetime.date'>, <class 'list'>)
    """
    match declared:
        case Array():
            return list
        case Map():
            return dict
        case Primitive(name):
            logical = meaning(declared)
            return _PRIMITIVES[name] if logical is None else _LOGICAL[logical.name]
        case Fixed():
            return declared.name if meaning(declared) is None else Decimal
        case Enum() | Record():
            return declared.name
    raise SchemaError("union", "a union holds a union")


def branch_keys(union: Union) -> list[Key | None]:
    """Return, for each branch of a union, the key of the `Branch` around its values; None if it needs none."""
    seen: set[type | str] = set()
    keys: list[Key | None] = []
    for branch in union.branches:
        own = shape(branch)
        keys.append((branch_name(branch), own) if own in seen and isinstance(own, type) else None)
        seen.add(own)
    return keys


def branch_classes(union: Union, classes: Mapping[Key, type]) -> list[type]:
    """Return the class of the values of each branch of a union; no two are the same."""
    return [
        classes[key] if key is not None else class_of(branch, classes)
        for key, branch in zip(branch_keys(union), union.branches, strict=True)
    ]


def class_of(declared: Type, classes: Mapping[Key, type]) -> type:
    """Return the class of a type's values."""
    own = shape(declared)
    return own if isinstance(own, type) else classes[own]


def class_definitions(root: Type) -> list[ClassDefinition]:
    """Return the classes that a schema needs, each after those that it uses, but for a record within itself."""
    definitions: dict[Key, ClassDefinition] = {}
    _collect(root, definitions, set())
    return list(definitions.values())


def _collect(declared: Type, definitions: dict[Key, ClassDefinition], seen: set[str]) -> None:
    if isinstance(declared, Named):
        if declared.name in seen:
            return
        seen.add(declared.name)
    for inner in inner_types(declared):
        _collect(inner, definitions, seen)
    if isinstance(declared, Union):
        for key, branch in zip(branch_keys(declared), declared.branches, strict=True):
            if key is not None:
                definitions.setdefault(key, ClassDefinition(key, branch))
    elif isinstance(shape(declared), str) and isinstance(declared, Named):
        definitions[declared.name] = ClassDefinition(declared.name, declared)


def field_names(cls: type) -> tuple[str, ...]:
    """Return the names of the fields of a dataclass, msgspec Struct or pydantic model, in order.

    Raises `SchemaError` for any other class.
    """
    for attribute in ("__struct_fields__", "__pydantic_fields__"):
        names = getattr(cls, attribute, None)
        if names is not None:
            return tuple(names)
    if dataclasses.is_dataclass(cls):
        return tuple(field.name for field in dataclasses.fields(cls))
    raise SchemaError(cls.__name__, "no dataclass, Struct or model")


def getter(names: Sequence[str]) -> Callable[[Any], tuple[Any, ...]]:
    """Return a function that returns the values of an object's attributes with these names."""
    if len(names) > 1:
        return operator.attrgetter(*names)
    return lambda value: tuple(getattr(value, name) for name in names)


def maker(cls: type, names: Sequence[str]) -> Callable[[list[Any]], Any]:
    """Return a function that creates an instance from the values of its fields, without checking them."""
    make: Callable[..., Any] = cls
    if hasattr(cls, "__pydantic_fields__"):
        # A pydantic model's constructor would check again what was just read. Only there is this no field.
        make = cls.model_construct  # type: ignore[attr-defined]
    return lambda values: make(**dict(zip(names, values, strict=True)))
