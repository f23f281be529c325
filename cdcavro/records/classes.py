"""Classes of records, whichever library they come from: their fields, and how instances are created."""

from __future__ import annotations

import dataclasses
import operator
from typing import TYPE_CHECKING, Any

from cdcavro.errors import SchemaError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


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
