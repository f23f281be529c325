"""The check of fields' defaults against their types (Avro 1.8.2, "Records").

Avro Java 1.12 checks less than the specification asks for, and some schemas rely on it: the default of a
union may be that of any branch, and any text is a default for bytes, an enum or a fixed. A default that is
accepted so but is no value of its type is unusable: the schema is valid, and whoever needs the default fails.
"""

from __future__ import annotations

import json
import re
import sys
from typing import TYPE_CHECKING, Any, Final

from cdcavro.avro.types import Array, Enum, Fixed, Map, Primitive, Record, Type, Union
from cdcavro.errors import SchemaError, shown
from cdcavro.exact.members import ABSENT

if TYPE_CHECKING:
    from collections.abc import Callable

MAX_VALUES: Final = 1_000_000
_BYTE: Final = 256
_REFUSED, _UNUSABLE, _FITS = range(3)
_NUMBER: Final = re.compile(r"\s*[+-]?(NaN|Infinity|(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?)\s*\Z", re.ASCII)


def _is_bytes(value: Any) -> bool:
    return isinstance(value, str) and all(ord(char) < _BYTE for char in value)


def _is_number(value: Any) -> bool:
    return type(value) is float or (type(value) is int and abs(value) <= sys.float_info.max)


_VALUES: Final[dict[str, Callable[[Any], bool]]] = {
    "null": lambda value: value is None,
    "boolean": lambda value: type(value) is bool,
    "int": lambda value: type(value) is int and -(2**31) <= value < 2**31,
    "long": lambda value: type(value) is int and -(2**63) <= value < 2**63,
    "float": _is_number,
    "double": _is_number,
    "bytes": _is_bytes,
    "string": lambda value: isinstance(value, str),
}


def stated_default(declared: Type, value: Any) -> Any:
    """Return a default as a number if a float or double states it as text, such as "NaN", as Avro Java does."""
    is_float = isinstance(declared, Primitive) and declared.name in ("float", "double")
    return float(value) if is_float and isinstance(value, str) and _NUMBER.match(value) else value


def check_default(declared: Type, value: Any, where: str, grades: Grades) -> None:
    """Raise `SchemaError` unless a default is one that Avro Java takes for a type."""
    if grades.of(declared, value, where) == _REFUSED:
        if isinstance(declared, Record) and isinstance(value, dict):
            for field in declared.fields:
                if field.name not in value and field.default is ABSENT:
                    raise SchemaError(where, f"the default lacks {field.name}")
        raise SchemaError(where, f"the default {shown(json.dumps(value))} does not fit its type")


def is_usable(declared: Type, default: Any) -> bool:
    """Return whether a default is a value of its type."""
    return Grades().of(declared, default, "$") == _FITS


def default_branch(union: Union, default: Any) -> Type:
    """Return the branch that a default is of: the first that it fits. Raises `SchemaError` if there is none.

    >>> default_branch(Union((Primitive("null"), Primitive("int"), Primitive("long"))), 7).name
    'int'
    """
    grades = Grades()
    for branch in union.branches:
        if grades.of(branch, default, "$") == _FITS:
            return branch
    raise SchemaError("$", f"the default {shown(json.dumps(default))} fits no branch")


class Grades:
    """How defaults fit types, with a bound on the values that they come to.

    A record's default may leave out fields, which then have their own defaults: a short text could come to
    billions of values, or to values without end.
    """

    def __init__(self) -> None:
        # By type and default: the grade and the number of values; None while they are being looked at.
        self._known: dict[tuple[int, int], tuple[int, int] | None] = {}

    def of(self, declared: Type, value: Any, where: str) -> int:
        """Return how a default fits. Raises `SchemaError` for one that never ends or is too large."""
        return self._of(declared, value, where)[0]

    def _of(self, declared: Type, value: Any, where: str) -> tuple[int, int]:
        if isinstance(declared, Primitive):
            return _primitive(declared.name, value), 1
        key = (id(declared), id(value))
        if key not in self._known:
            self._known[key] = None
            self._known[key] = self._graded(declared, value, where)
        known = self._known[key]
        if known is None:
            raise SchemaError(where, "the default contains itself and never ends")
        return known

    def _graded(self, declared: Type, value: Any, where: str) -> tuple[int, int]:
        match declared:
            case Union(branches):
                best = _REFUSED, 1
                for branch in branches:
                    best = max(best, self._of(branch, value, where))
                    if best[0] == _FITS:
                        break
                return best
            case Enum(symbols=symbols):
                return _text(value, is_fit=value in symbols), 1
            case Fixed(size=size):
                return _text(value, is_fit=_is_bytes(value) and len(value) == size), 1
            case Array(items):
                return self._all([(items, item) for item in value] if isinstance(value, list) else None, where)
            case Map(values):
                is_map = isinstance(value, dict)
                return self._all([(values, item) for item in value.values()] if is_map else None, where)
            case Record(fields=fields):
                is_map = isinstance(value, dict)
                filled = [(one.type, value.get(one.name, one.default)) for one in fields] if is_map else None
                return self._all(filled, where)
        raise SchemaError(where, f"no default for {type(declared).__name__}")

    def _all(self, values: list[tuple[Type, Any]] | None, where: str) -> tuple[int, int]:
        grade, count = _REFUSED if values is None else _FITS, 1
        for declared, value in values or ():
            inner = (_REFUSED, 1) if value is ABSENT else self._of(declared, value, where)
            grade, count = min(grade, inner[0]), count + inner[1]
            if count > MAX_VALUES:
                raise SchemaError(where, f"a default of more than {MAX_VALUES:,} values")
            if grade == _REFUSED:
                break
        return grade, count


def _primitive(name: str, value: Any) -> int:
    if _VALUES[name](value):
        return _FITS
    is_taken = isinstance(value, str) if name == "bytes" else name in ("float", "double") and type(value) is int
    return _UNUSABLE if is_taken else _REFUSED


def _text(value: Any, *, is_fit: bool) -> int:
    return _FITS if is_fit else _UNUSABLE if isinstance(value, str) else _REFUSED
