"""Defaults of fields, from a schema's JSON to Python values."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cdcavro.avro.binary import nearest_float
from cdcavro.avro.types import Array, Enum, Fixed, Map, Primitive, Record, Type, Union
from cdcavro.errors import PayloadError, SchemaError
from cdcavro.records.classes import field_names, maker
from cdcavro.records.scalars import scalar
from cdcavro.records.shapes import Key, meaning

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


def default_maker(declared: Type, value: Any, classes: Mapping[Key, type]) -> Callable[[], Any]:
    """Make the function that gives a default, a new one each time. Raises `SchemaError`."""
    made = default_value(declared, value, classes)
    if isinstance(made, (list, dict)) or type(made) in classes.values():
        return lambda: default_value(declared, value, classes)
    return lambda: made


def default_value(declared: Type, value: Any, classes: Mapping[Key, type]) -> Any:
    """Return a default, as a schema's JSON states it, as a Python value.

    Raises `SchemaError` for one that no Python value stands for: a date beyond the year 9999.
    """
    match declared:
        case Union(branches):
            return default_value(branches[0], value, classes)
        case Array(items):
            return [default_value(items, item, classes) for item in value]
        case Map(values):
            return {name: default_value(values, item, classes) for name, item in value.items()}
        case Record():
            cls = classes[declared.name]
            made = [default_value(one.type, value.get(one.name, one.default), classes) for one in declared.fields]
            return maker(cls, field_names(cls))(made)
        case Enum():
            return classes[declared.name](value)
        case Fixed() if meaning(declared) is None:
            return classes[declared.name](value.encode("latin-1"))
        case Fixed() | Primitive():
            return default_scalar(declared, value)
    raise SchemaError("$", f"{type(declared).__name__} is no type")


def default_scalar(declared: Primitive | Fixed, value: Any) -> Any:
    """Return the default of a primitive, or of a fixed that is a decimal. Raises `SchemaError`."""
    name = declared.name if isinstance(declared, Primitive) else "bytes"
    datum = value.encode("latin-1") if name == "bytes" else float(value) if name in ("float", "double") else value
    lift = scalar(declared).lift
    try:
        if name == "float":
            # The schema states it in decimal digits, which a float of 32 bits comes nearest to.
            return nearest_float(datum)
        return datum if lift is None else lift(datum)
    except OverflowError as error:
        raise SchemaError(declared.name, "the default is no float of 32 bits") from error
    except PayloadError as error:
        raise SchemaError(declared.name, f"the default: {error.reason}") from error
