"""Records of DataHub's Python SDK (pydatahub), converted from and to messages of `datahub_tuple`.

pydatahub is imported only to create its records: `pip install 'cdcavro[datahub]'`.
"""

from __future__ import annotations

from decimal import Decimal, InvalidOperation
from math import isfinite
from typing import TYPE_CHECKING, Any, Final, Protocol

from cdcavro.errors import SetupError, StructureError, shown
from cdcavro.exact.jsontext import escape, kind, parse, render
from cdcavro.exact.numbers import MAX_LONG, MIN_LONG, ExactNumber, integer, number

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

__all__ = ["tuple_record", "tuple_text"]

NAME: Final = "datahub_tuple"


class RecordField(Protocol):
    """A field of a pydatahub schema."""

    name: str
    # A member of an enum.
    type: Any


class TupleRecord(Protocol):
    """The part of a pydatahub TupleRecord that is used here: its fields, and a value for each."""

    field_list: Sequence[RecordField]
    values: Sequence[Any]


def tuple_text(record: TupleRecord) -> bytes:
    """Return a pydatahub TupleRecord as JSON text: an object from column name to value, numbers digit for digit.

    Raises `StructureError` for a value that JSON cannot express, and for a repeated column name.
    """
    row: dict[str, Any] = {}
    for field, value in zip(record.field_list, record.values, strict=True):
        if field.name in row:
            raise StructureError("each column once", f"{shown(field.name)} twice", format=NAME)
        row[field.name] = _json_value(value, field.name)
    return render(row)


def tuple_record(text: bytes | str, schema: Any) -> Any:
    """Return a pydatahub TupleRecord with the values of a JSON text; `schema` is its RecordSchema.

    Raises `SetupError` if pydatahub is not installed, `TextError`, and `StructureError` for a column
    that the schema lacks or a value that the column's type cannot hold exactly.
    """
    try:
        from datahub.exceptions import DatahubException  # noqa: PLC0415  an optional dependency
        from datahub.models import TupleRecord as SdkRecord  # noqa: PLC0415
    except ModuleNotFoundError as error:
        raise SetupError("pydatahub is not installed: pip install 'cdcavro[datahub]'") from error
    row = parse(text)
    if type(row) is not dict:
        raise StructureError("object", kind(row), format=NAME)
    types = {field.name: str(field.type.value) for field in schema.field_list}
    for name in row:
        if name not in types:
            raise StructureError("a column of the schema", "none", pointer=f"/{escape(name)}", format=NAME)
    record = SdkRecord(schema=schema)
    for name, value in row.items():
        python_value = None if value is None else _python_value(value, types[name], name)
        try:
            record.set_value(name, python_value)
        except DatahubException as error:
            raise _misfit(value, types[name], name) from error
    return record


def _json_value(value: Any, name: str) -> Any:
    if value is None or isinstance(value, (bool, str)):
        return value
    if isinstance(value, int):
        return integer(str(value))
    if isinstance(value, float) and isfinite(value):
        return number(repr(value))
    if isinstance(value, Decimal) and value.is_finite():
        return number(str(value))
    raise StructureError("a JSON value", shown(repr(value)), pointer=f"/{escape(name)}", format=NAME)


def _python_value(value: Any, type_name: str, name: str) -> Any:
    convert = _PYTHON.get(type_name)
    converted = None if convert is None else convert(value)
    if converted is None:
        raise _misfit(value, type_name, name)
    return converted


def _misfit(value: Any, type_name: str, name: str) -> StructureError:
    got = f"{kind(value)} {shown(render(value).decode())}"
    return StructureError(type_name, got, pointer=f"/{escape(name)}", format=NAME)


def _to_long(value: Any) -> int | None:
    return value if type(value) is int and MIN_LONG <= value <= MAX_LONG else None


def _to_float(value: Any) -> float | None:
    if type(value) not in (int, float, ExactNumber):
        return None
    digits = value.text if type(value) is ExactNumber else repr(value)
    nearest, exact = float(digits), _read_decimal(digits)
    return nearest if isfinite(nearest) and exact is not None and Decimal(repr(nearest)) == exact else None


def _to_decimal(value: Any) -> Decimal | None:
    if type(value) is ExactNumber:
        return _read_decimal(value.text)
    return Decimal(repr(value)) if type(value) in (int, float) else None


def _read_decimal(digits: str) -> Decimal | None:
    """Return a number exactly, or None if its exponent is too large for Python's decimals."""
    try:
        return Decimal(digits)
    except InvalidOperation:
        return None


def _to_string(value: Any) -> str | None:
    return value if type(value) is str else None


def _to_boolean(value: Any) -> bool | None:
    return value if type(value) is bool else None


_PYTHON: Final[dict[str, Callable[[Any], Any]]] = {
    "tinyint": _to_long,
    "smallint": _to_long,
    "integer": _to_long,
    "bigint": _to_long,
    "timestamp": _to_long,
    "string": _to_string,
    "boolean": _to_boolean,
    "float": _to_float,
    "double": _to_float,
    "decimal": _to_decimal,
}
