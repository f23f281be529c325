"""Defaults of fields: Python values for the JSON in a schema."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from cdcavro.avro.binary import nearest_float
from cdcavro.avro.defaults import default_branch, is_usable
from cdcavro.avro.logical import value_check
from cdcavro.avro.types import Array, Enum, Fixed, Map, Primitive, Record, Type, Union
from cdcavro.errors import PayloadError, SchemaError, shown
from cdcavro.records.classes import field_names, maker
from cdcavro.records.scalars import scalar
from cdcavro.records.shapes import Key, meaning

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


def default_maker(declared: Type, value: Any, classes: Mapping[Key, type]) -> Callable[[], Any]:
    """Return a function that returns a default, a new object each time if it is mutable. Raises `SchemaError`."""
    if not is_usable(declared, value):
        raise SchemaError("$", f"the default {shown(json.dumps(value))} is no value of its type")
    default = default_value(declared, value, classes)
    if isinstance(default, (list, dict)) or type(default) in classes.values():
        return lambda: default_value(declared, value, classes)
    return lambda: default


def default_value(declared: Type, value: Any, classes: Mapping[Key, type]) -> Any:
    """Return the Python value of a default, which is in the form of a schema's JSON.

    Raises `SchemaError` for one that Python cannot represent, such as a date beyond the year 9999.
    """
    match declared:
        case Union():
            return default_value(default_branch(declared, value), value, classes)
        case Array(items):
            return [default_value(items, item, classes) for item in value]
        case Map(values):
            return {name: default_value(values, item, classes) for name, item in value.items()}
        case Record():
            cls = classes[declared.name]
            defaults = [
                default_value(field.type, value.get(field.name, field.default), classes) for field in declared.fields
            ]
            return maker(cls, field_names(cls))(defaults)
        case Enum():
            return classes[declared.name](value)
        case Fixed() if meaning(declared) is None:
            return classes[declared.name](value.encode("latin-1"))
        case Fixed() | Primitive():
            return default_scalar(declared, value)
    raise SchemaError("$", f"{type(declared).__name__} is no type")


def default_scalar(declared: Primitive | Fixed, value: Any) -> Any:
    """Return the default of a primitive, or of a decimal in a fixed. Raises `SchemaError`."""
    name = declared.name if isinstance(declared, Primitive) else "bytes"
    datum = value.encode("latin-1") if name == "bytes" else float(value) if name in ("float", "double") else value
    lift, check = scalar(declared).lift, value_check(declared)
    try:
        if check is not None:
            check(datum)
        if name == "float":
            # The schema states it in decimal digits; the value is the nearest 32-bit float.
            return nearest_float(datum)
        return datum if lift is None else lift(datum)
    except OverflowError as error:
        raise SchemaError(declared.name, "the default is no float of 32 bits") from error
    except PayloadError as error:
        raise SchemaError(declared.name, f"the default: {error.reason}") from error
