"""The check of fields' defaults against their types (Avro 1.8.2, "Records")."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Any, Final

from cdcavro.avro.types import Array, Enum, Fixed, Map, Primitive, Record, Type, Union
from cdcavro.errors import SchemaError, shown
from cdcavro.exact.members import ABSENT

if TYPE_CHECKING:
    from collections.abc import Callable

_BYTE: Final = 256


def _is_bytes(value: Any) -> bool:
    return isinstance(value, str) and all(ord(char) < _BYTE for char in value)


_FITS: Final[dict[str, Callable[[Any], bool]]] = {
    "null": lambda value: value is None,
    "boolean": lambda value: type(value) is bool,
    "int": lambda value: type(value) is int and -(2**31) <= value < 2**31,
    "long": lambda value: type(value) is int and -(2**63) <= value < 2**63,
    "float": lambda value: type(value) in (int, float) and abs(value) <= sys.float_info.max,
    "double": lambda value: type(value) in (int, float) and abs(value) <= sys.float_info.max,
    "bytes": _is_bytes,
    "string": lambda value: isinstance(value, str),
}


def check_default(declared: Type, value: Any, where: str) -> None:
    """Raise `SchemaError` unless a default fits its type; that of a union must fit its first branch."""
    if not _fits(declared, value, where):
        raise SchemaError(where, f"the default {shown(json.dumps(value))} does not fit its type")


def _fits(declared: Type, value: Any, where: str) -> bool:
    match declared:
        case Primitive(name):
            return _FITS[name](value)
        case Union(branches):
            return _fits(branches[0], value, where)
        case Enum(symbols=symbols):
            return value in symbols
        case Fixed(size=size):
            return _is_bytes(value) and len(value) == size
        case Array(items):
            return isinstance(value, list) and all(_fits(items, item, where) for item in value)
        case Map(values):
            return isinstance(value, dict) and all(_fits(values, item, where) for item in value.values())
        case Record():
            return isinstance(value, dict) and _fits_record(declared, value, where)
    raise SchemaError(where, f"no default for {type(declared).__name__}")


def _fits_record(declared: Record, value: dict[str, Any], where: str) -> bool:
    for field in declared.fields:
        if field.name not in value and field.default is ABSENT:
            raise SchemaError(where, f"the default lacks {field.name}")
    return all(_fits(field.type, value[field.name], where) for field in declared.fields if field.name in value)
