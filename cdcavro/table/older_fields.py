"""Older fields of a column, from which a newer field of another type took over, and their values in its type.

Rows that were written before a column changed its type have their value in the older field, and the
column's own field is null there. `heirs` says which field belongs to which, `is_fillable` whether values of
one type can be values of the other, and `filled_value` what a value is in the newer type: exactly, or None.

* A column may come back to a type that it had, and has its values of then.
* A number becomes another number if that is the same number; a double is the number that its shortest
  text says.
* An integer or a decimal becomes its digits, a decimal with all of its places, as the server writes it into
  a character column. A text becomes a number if it is the plain text of one, a date if it is that of a date.
* Bytes become the text that they are in UTF-8, if they are one.
* A date becomes the local time of its midnight, and a local time at midnight a date; true and false are 1
  and 0.
* Everything else stays where it is: a local time is an instant in one zone only, and the text of a double
  or of a time is spelled in several ways.

So a reader of a part of a version (its envelope, row or key) reads the older fields of its columns as well.
"""

from __future__ import annotations

import datetime as dt
import json
import math
import re
from decimal import ROUND_HALF_UP, Context, Decimal, InvalidOperation
from typing import TYPE_CHECKING, Any, Final

from cdcavro.table.columns.type_names import MAX_PRECISION
from cdcavro.table.table_schema import ATTRIBUTE, as_schema, attributes_of, column_name

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from cdcavro.avro.schema import Schema
    from cdcavro.table.table_schema import TableSchema

ENVELOPE: Final = "envelope"
ROW: Final = "row"
KEY_PART: Final = "key"
NUMBER_TEXT: Final = r"-?(0|[1-9][0-9]{0,19})([.][0-9]{1,18})?"
DATE_TEXT: Final = r"[0-9]{4}-[0-9]{2}-[0-9]{2}"
WHOLE: Final = frozenset({"int", "long"})
EXACT_NUMBERS: Final = WHOLE | {"decimal"}
NUMBERS: Final = EXACT_NUMBERS | {"double"}
LOCAL: Final = "local-timestamp-micros"
_NUMBER: Final = re.compile(NUMBER_TEXT, re.ASCII)
_DATE: Final = re.compile(DATE_TEXT, re.ASCII)
_BITS: Final = {"int": 32, "long": 64}
_WIDE: Final = Context(prec=400, rounding=ROUND_HALF_UP)


def part_of(schema: TableSchema, part: str) -> Schema:
    """Return the schema of a part of a version. Raises `ValueError` for a key that is missing, and for other parts."""
    parts = {ENVELOPE: schema.envelope, ROW: schema.row, KEY_PART: schema.key}
    if part not in parts:
        raise ValueError(f"a part is {', '.join(parts)}, not {part}")
    avro_schema = parts[part]
    if avro_schema is None:
        raise ValueError(f"{schema.full_name} has no key in version {schema.version}")
    return avro_schema


def reader_of(schema: TableSchema, part: str) -> Schema:
    """Return the schema that a part is read with: that of a key with the older fields of the key columns."""
    whole, fields = part_of(schema, part), schema.record["fields"]
    if part != KEY_PART or not heirs((field["name"], field) for field in fields):
        return whole
    older = [field for field in fields if "until" in attributes_of(field) and column_name(field) in schema.key_names]
    declared = json.loads(whole.json)
    return as_schema(declared | {"fields": declared["fields"] + older})


def heirs(fields: Iterable[tuple[str, Mapping[str, Any]]]) -> dict[str, tuple[str, ...]]:
    """Return for each field that took over from others their names, newest first.

    `fields` are the fields of a row, each with its name and its attributes.

    >>> heirs([("n_x_2", {"cdc": {"column": "n"}}), ("n", {"cdc": {"column": "n", "until": 3}})])
    {'n_x_2': ('n',)}
    """
    present: dict[str, str] = {}
    older: dict[str, list[tuple[int, str]]] = {}
    for name, attributes in fields:
        cdc = attributes.get(ATTRIBUTE)
        column, until = (cdc.get("column"), cdc.get("until")) if isinstance(cdc, dict) else (None, None)
        # A schema that this package did not make may have anything as its attributes.
        column = column if isinstance(column, str) else name
        if type(until) is int:
            older.setdefault(column, []).append((until, name))
        else:
            present[column] = name
    return {
        present[column]: tuple(name for _, name in sorted(ended, reverse=True))
        for column, ended in older.items()
        if column in present
    }


# Beyond 2^53, a double's shortest text is not the integer that it is, and readers differ in which of the two they take.
MAX_SURE: Final = 2**53


def kind_of(avro: Any) -> str:
    """Return what decides how a column's values convert: the logical type of its Avro type, or else the type.

    >>> kind_of({"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}), kind_of("long")
    ('decimal', 'long')
    """
    return str(avro.get("logicalType", avro.get("type"))) if isinstance(avro, dict) else str(avro)


def is_fillable(old: Any, new: Any) -> bool:
    """Return whether values of one Avro type, as a JSON value, may be values of another."""
    return _rule(kind_of(old), kind_of(new)) is not None


def filled_value(value: Any, old: Any, new: Any) -> Any:
    """Return a Python value of one Avro type as one of another; None if it is not exactly that.

    >>> decimal = {"type": "bytes", "logicalType": "decimal", "precision": 5, "scale": 1}
    >>> filled_value(7, "int", decimal), filled_value(Decimal("7.0"), decimal, "int")
    (Decimal('7.0'), 7)
    >>> print(filled_value(7.25, "double", decimal))
    None
    """
    rule = _rule(kind_of(old), kind_of(new))
    return None if rule is None or value is None else rule(value, new)


def _rule(old: str, new: str) -> Callable[[Any, Any], Any] | None:
    if old in NUMBERS and new in NUMBERS:
        return _number
    if old == new:
        return lambda value, _: value
    if old == "boolean" and new in EXACT_NUMBERS:
        return lambda value, declared: _number(int(value), declared)
    if old in EXACT_NUMBERS and new == "boolean":
        return lambda value, _: bool(value) if value in (0, 1) else None
    if new == "string":
        return _TEXTS.get(old)
    if old == "string":
        return _parse_number if new in NUMBERS else _date if new == "date" else None
    return _MIDNIGHTS.get((old, new))


def _number(value: Any, new: Any) -> Any:
    kind = kind_of(new)
    if isinstance(value, float):
        if not math.isfinite(value):
            return value if new == "double" else None
        if kind != "double" and abs(value) > MAX_SURE:
            return None
        value = repr(value)
    elif kind == "double" and not isinstance(value, str) and abs(value) > MAX_SURE:
        return None
    exact = Decimal(value)
    if kind == "double":
        nearest = float(exact)
        return nearest if math.isfinite(nearest) and Decimal(repr(nearest)) == exact else None
    scale, precision = (new.get("scale", 0), new["precision"]) if kind == "decimal" else (0, MAX_PRECISION)
    try:
        quantized = exact.quantize(Decimal(1).scaleb(-scale), context=_WIDE)
    except InvalidOperation:
        return None
    if quantized != exact or abs(quantized).scaleb(scale, _WIDE) >= 10**precision:
        return None
    if kind == "decimal":
        return quantized
    most = 2 ** (_BITS[kind] - 1)
    return int(quantized) if -most <= quantized < most else None


def _parse_number(value: Any, new: Any) -> Any:
    is_number = isinstance(value, str) and _NUMBER.fullmatch(value) is not None
    return _number(value, new) if is_number else None


def _date(value: Any, _: Any) -> dt.date | None:
    try:
        return dt.date.fromisoformat(value) if isinstance(value, str) and _DATE.fullmatch(value) else None
    except ValueError:
        return None


def _utf8(value: Any, _: Any) -> str | None:
    try:
        return bytes(value).decode()
    except UnicodeDecodeError:
        return None


def _midnight(value: Any, _: Any) -> dt.datetime | None:
    # A local time has no zone; a day that Python cannot hold is read as a number.
    return dt.datetime(value.year, value.month, value.day) if isinstance(value, dt.date) else None  # noqa: DTZ001


def _day(value: Any, _: Any) -> dt.date | None:
    is_midnight = isinstance(value, dt.datetime) and value.time() == dt.time()
    return value.date() if is_midnight else None


_TEXTS: Final[dict[str, Callable[[Any, Any], Any]]] = {
    **dict.fromkeys(WHOLE, lambda value, _: str(value)),
    "decimal": lambda value, _: format(value, "f"),
    "date": lambda value, _: value.isoformat() if isinstance(value, dt.date) else None,
    "bytes": _utf8,
}
_MIDNIGHTS: Final = {("date", LOCAL): _midnight, (LOCAL, "date"): _day}
