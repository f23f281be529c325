"""Defaults of fields (Avro 1.8.2, "Records"): whether they fit their types, and how they are encoded.

Avro Java 1.12 checks less than the specification asks for, and some schemas rely on it: the default of a
union may be that of any branch, and any text is a default for bytes, an enum or a fixed. A default that it
accepts although it is no value of its type is unusable: the schema is valid, but reading fails if it is needed.
"""

from __future__ import annotations

import json
import re
import sys
from typing import TYPE_CHECKING, Any, Final

from cdcavro.avro.binary import Buffer, pack_float
from cdcavro.avro.types import Array, Enum, Field, Fixed, Map, Primitive, Record, Type, Union, logical_type, value_check
from cdcavro.errors import PayloadError, SchemaError, shown
from cdcavro.exact.jsontext import ABSENT

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping

MAX_VALUES: Final = 1_000_000
_BYTE: Final = 256
_REFUSED, _UNUSABLE, _FITS = range(3)
_UUID: Final = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\Z", re.IGNORECASE)
_NUMBER: Final = re.compile(r"\s*[+-]?(NaN|Infinity|(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?)\s*\Z", re.ASCII)


def _is_bytes(value: Any) -> bool:
    return isinstance(value, str) and all(ord(char) < _BYTE for char in value)


def _is_number(value: Any) -> bool:
    return type(value) is float or (type(value) is int and abs(value) <= sys.float_info.max)


def _is_float(value: Any) -> bool:
    if not _is_number(value):
        return False
    try:
        pack_float(value)
    except OverflowError:
        return False
    return True


_VALUES: Final[dict[str, Callable[[Any], bool]]] = {
    "null": lambda value: value is None,
    "boolean": lambda value: type(value) is bool,
    "int": lambda value: type(value) is int and -(2**31) <= value < 2**31,
    "long": lambda value: type(value) is int and -(2**63) <= value < 2**63,
    "float": _is_float,
    "double": _is_number,
    "bytes": _is_bytes,
    "string": lambda value: isinstance(value, str),
}


def parse_default(declared: Type, value: Any) -> Any:
    """Return a default as a number if a float or double states it as text, such as "NaN", as Avro Java does."""
    is_float = isinstance(declared, Primitive) and declared.name in ("float", "double")
    return float(value) if is_float and isinstance(value, str) and _NUMBER.match(value) else value


def check_default(declared: Type, value: Any, where: str, grades: Grades) -> None:
    """Raise `SchemaError` unless a default is one that Avro Java accepts for a type."""
    if grades.grade(declared, value, where) == _REFUSED:
        if isinstance(declared, Record) and isinstance(value, dict):
            for field in declared.fields:
                if field.name not in value and field.default is ABSENT:
                    raise SchemaError(where, f"the default lacks {field.name}")
        raise SchemaError(where, f"the default {shown(json.dumps(value))} does not fit its type")


def is_accepted(declared: Type, default: Any, renames: Mapping[str, Mapping[str, str]]) -> bool:
    """Return whether Avro Java accepts a default for a type whose fields have been renamed, by record and old name."""
    return Grades(renames).grade(declared, default, "$") != _REFUSED


def is_usable(declared: Type, default: Any) -> bool:
    """Return whether a default is a value of its type."""
    return Grades().grade(declared, default, "$") == _FITS


def default_branch(union: Union, default: Any) -> Type:
    """Return the branch that a default is of: the first that it fits. Raises `SchemaError` if there is none.

    >>> default_branch(Union((Primitive("null"), Primitive("int"), Primitive("long"))), 7).name
    'int'
    """
    grades = Grades()
    for branch in union.branches:
        if grades.grade(branch, default, "$") == _FITS:
            return branch
    raise SchemaError("$", f"the default {shown(json.dumps(default))} fits no branch")


class Grades:
    """The grades of defaults, which say how well they fit their types, with a bound on the number of their values.

    A record's default may leave out fields, which then have their own defaults: a short text could stand for
    billions of values, or for values without end. `renames` are the new names of fields by record and old name.
    """

    def __init__(self, renames: Mapping[str, Mapping[str, str]] | None = None) -> None:
        self._renames = renames or {}
        # By type and default: the grade and the number of values; None while they are being looked at.
        self._known: dict[tuple[int, int], tuple[int, int] | None] = {}

    def grade(self, declared: Type, value: Any, where: str) -> int:
        """Return how well a default fits. Raises `SchemaError` for one that never ends or is too large."""
        return self._grade_known(declared, value, where)[0]

    def _grade_known(self, declared: Type, value: Any, where: str) -> tuple[int, int]:
        if isinstance(declared, Primitive):
            return _primitive(declared, value), 1
        key = (id(declared), id(value))
        if key not in self._known:
            self._known[key] = None
            self._known[key] = self._grade(declared, value, where)
        known = self._known[key]
        if known is None:
            raise SchemaError(where, "the default contains itself and never ends")
        return known

    def _grade(self, declared: Type, value: Any, where: str) -> tuple[int, int]:
        match declared:
            case Union(branches):
                best = _REFUSED, 1
                for branch in branches:
                    best = max(best, self._grade_known(branch, value, where))
                    if best[0] == _FITS:
                        break
                return best
            case Enum(symbols=symbols):
                return _text(value, is_fit=value in symbols), 1
            case Fixed(size=size):
                is_fit = _is_bytes(value) and len(value) == size and _is_meant(declared, value)
                return _text(value, is_fit=is_fit), 1
            case Array(items):
                return self._grade_all([(items, item) for item in value] if isinstance(value, list) else None, where)
            case Map(values):
                is_map = isinstance(value, dict)
                return self._grade_all([(values, item) for item in value.values()] if is_map else None, where)
            case Record(name, fields=fields) if isinstance(value, dict):
                new = self._renames.get(name, {})
                return self._grade_all(
                    [(one.type, value.get(new.get(one.name, one.name), one.default)) for one in fields], where
                )
            case Record():
                return _REFUSED, 1
        raise SchemaError(where, f"no default for {type(declared).__name__}")

    def _grade_all(self, values: list[tuple[Type, Any]] | None, where: str) -> tuple[int, int]:
        grade, count = _REFUSED if values is None else _FITS, 1
        for declared, value in values or ():
            inner = (_REFUSED, 1) if value is ABSENT else self._grade_known(declared, value, where)
            grade, count = min(grade, inner[0]), count + inner[1]
            if count > MAX_VALUES:
                raise SchemaError(where, f"a default of more than {MAX_VALUES:,} values")
            if grade == _REFUSED:
                break
        return grade, count


def _primitive(declared: Primitive, value: Any) -> int:
    name = declared.name
    if _VALUES[name](value):
        return _FITS if _is_meant(declared, value) else _UNUSABLE
    is_accepted = (
        isinstance(value, str) if name == "bytes" else name in ("float", "double") and type(value) in (int, float)
    )
    return _UNUSABLE if is_accepted else _REFUSED


def _is_meant(declared: Primitive | Fixed, value: Any) -> bool:
    """Return whether a default is a value of its type's logical type, such as a decimal of so many digits."""
    logical, check = logical_type(declared), value_check(declared)
    if logical is not None and logical.name == "uuid" and isinstance(declared, Primitive):
        return _UUID.match(value) is not None
    try:
        if check is not None:
            check(value.encode("latin-1") if isinstance(value, str) else value)
    except PayloadError:
        return False
    return True


def _text(value: Any, *, is_fit: bool) -> int:
    return _FITS if is_fit else _UNUSABLE if isinstance(value, str) else _REFUSED


def encoded_defaults(reader: Record, missing: Collection[Field]) -> list[bytes]:
    """Return, for each of a reader's fields, its default as Avro data, and no bytes where the writer has the field.

    Raises `SchemaError` for a default that is no value of its logical type.
    """
    lacking = {field.name for field in missing}
    return [_encode(field) if field.name in lacking else b"" for field in reader.fields]


def _encode(field: Field) -> bytes:
    out = Buffer()
    try:
        _write(out, field.type, field.default)
    except (PayloadError, OverflowError) as error:
        reason = error.reason if isinstance(error, PayloadError) else "no float of 32 bits"
        raise SchemaError(field.name, f"the default: {reason}") from error
    return out.taken()


def _write(out: Buffer, declared: Type, value: Any) -> None:
    match declared:
        case Primitive() | Fixed():
            _write_datum(out, declared, value)
        case Enum(symbols=symbols):
            out.write_long(symbols.index(value))
        case Array(items):
            out.write_long(len(value))
            for item in value:
                _write(out, items, item)
            _end(out, value)
        case Map(values):
            out.write_long(len(value))
            for name, item in value.items():
                out.write_string(name)
                _write(out, values, item)
            _end(out, value)
        case Union(branches):
            branch = default_branch(declared, value)
            out.write_long(branches.index(branch))
            _write(out, branch, value)
        case Record(fields=fields):
            for field in fields:
                _write(out, field.type, value.get(field.name, field.default))
        case _:
            raise SchemaError("$", f"{type(declared).__name__} is no type")


def _end(out: Buffer, value: Any) -> None:
    if value:
        out.write_long(0)


def _write_datum(out: Buffer, declared: Primitive | Fixed, value: Any) -> None:
    name = declared.name if isinstance(declared, Primitive) else "fixed"
    datum = value.encode("latin-1") if name in ("bytes", "fixed") else value
    check = value_check(declared)
    if check is not None:
        check(datum)
    match name:
        case "null":
            return
        case "boolean":
            out.append(int(datum))
        case "int" | "long":
            out.write_long(datum)
        case "float":
            out.write_raw(pack_float(float(datum)))
        case "double":
            out.write_double(float(datum))
        case "string":
            out.write_string(datum)
        case "bytes":
            out.write_long(len(datum))
            out.write_raw(datum)
        case "fixed":
            out.write_raw(datum)
        case _:
            raise SchemaError("$", f"no default for {name}")
