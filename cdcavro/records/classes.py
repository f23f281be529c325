"""Classes of records, whichever library they are derived from: their fields, and how they are made."""

from __future__ import annotations

import dataclasses
import operator
from typing import TYPE_CHECKING, Any

from cdcavro.errors import SchemaError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


def field_names(cls: type) -> tuple[str, ...]:
    """Return the names of a class's fields in order: a dataclass, a msgspec Struct or a pydantic model.

    Raises `SchemaError` for any other.
    """
    for attribute in ("__struct_fields__", "__pydantic_fields__"):
        names = getattr(cls, attribute, None)
        if names is not None:
            return tuple(names)
    if dataclasses.is_dataclass(cls):
        return tuple(one.name for one in dataclasses.fields(cls))
    raise SchemaError(cls.__name__, "no dataclass, Struct or model")


def getter(names: Sequence[str]) -> Callable[[Any], tuple[Any, ...]]:
    """Make the function that gives the values of attributes."""
    if len(names) > 1:
        return operator.attrgetter(*names)
    return lambda value: tuple(getattr(value, name) for name in names)


def maker(cls: type, names: Sequence[str]) -> Callable[[list[Any]], Any]:
    """Make the function that gives an instance of a class with these values, which are right."""
    # A model would check again what was just read.
    make: Callable[..., Any] = getattr(cls, "model_construct", cls)
    return lambda values: make(**dict(zip(names, values, strict=True)))
