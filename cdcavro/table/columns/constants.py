"""Constant defaults of statements as Avro data, as the server fills them into old rows; exactly, or `MISFIT`."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from cdcavro.exact.numbers import ExactNumber, is_number, number, number_text, plain_text, unscaled
from cdcavro.exact.sqltype import parse_sql_type
from cdcavro.table.columns.readers import MISFIT

if TYPE_CHECKING:
    from collections.abc import Callable

    from cdcavro.table.columns.column_type import ColumnType

_BITS: Final = re.compile(r"(?:b'([01]{1,64})'|0b([01]{1,64}))", re.IGNORECASE | re.ASCII)
_HEX: Final = re.compile(r"(?:x'((?:[0-9a-f]{2})*)'|0x((?:[0-9a-f]{2})+))", re.IGNORECASE | re.ASCII)
_DATE: Final = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}", re.ASCII)
_DATED: Final = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}(?:[T ].{5,64})?", re.ASCII)
_MAX_DIGITS: Final = 1_000


def constant(value: str | float | ExactNumber, type: ColumnType) -> Any:
    r"""Return the Avro datum of a constant without its quotes: `'0.00'`, 5, `new`, TRUE, `b'101'`, `x'4142'`.

    Return `MISFIT` for a value that the server would round, cut or refuse, and for an expression.

    >>> from cdcavro.change.model import Column, Source
    >>> from cdcavro.table.columns.column_type import column_type
    >>> def type_of(type): return column_type(Column(name="n", type=type), Source(format="canal"))
    >>> constant("5", type_of("int")), constant(1.5, type_of("decimal(10,2)")), constant(1.5, type_of("int"))
    (5, b'\x00\x96', MISFIT)
    """
    avro = type.avro if isinstance(type.avro, str) else type.avro.get("logicalType", type.avro["type"])
    # MySQL's TRUE and FALSE are 1 and 0.
    return _MAKERS[avro](int(value) if isinstance(value, bool) else value, type)


def _number(value: Any, type: ColumnType) -> Any:
    if isinstance(value, str):
        bits = _BITS.fullmatch(value)
        if bits is not None:
            value = int(bits[1] or bits[2], 2)
        elif not is_number(value):
            return MISFIT
        else:
            value = number(value)
    return type.read(value)


def _date(value: Any, type: ColumnType) -> Any:
    return type.read(value) if isinstance(value, str) and _DATE.fullmatch(value) else MISFIT


def _local(value: Any, type: ColumnType) -> Any:
    if not isinstance(value, str) or not _DATED.fullmatch(value):
        return MISFIT
    return type.read(f"{value} 00:00:00" if _DATE.fullmatch(value) else value)


def _time(value: Any, type: ColumnType) -> Any:
    return type.read(value) if isinstance(value, str) else MISFIT


def _string(value: Any, type: ColumnType) -> Any:
    """Return a string: in a character column a number's digits, in a column of long decimals padded to the scale."""
    text = number_text(value)
    if text is None or type.read("x") is not MISFIT:
        return type.read(plain_text(value))
    arguments = parse_sql_type(type.declared or "").arguments
    if len(arguments) != 2 or max(arguments) > _MAX_DIGITS:  # noqa: PLR2004  precision and scale
        return type.read(number(text))
    precision, scale = arguments
    if scale < 0:
        return type.read(number(text))
    whole = unscaled(text, scale, precision)
    if whole is None:
        return MISFIT
    digits = str(abs(whole)).rjust(scale + 1, "0")
    point = len(digits) - scale
    return f"{'-' if whole < 0 else ''}{digits[:point]}{'.' if scale else ''}{digits[point:]}"


def _bytes(value: Any, type: ColumnType) -> Any:
    """Return the bytes of a text, of hexadecimal digits or of a BIT value; zeros pad BINARY to its width."""
    declared = parse_sql_type(type.declared or "")
    bits, pairs = (form.fullmatch(value) if isinstance(value, str) else None for form in (_BITS, _HEX))
    if declared.name == "BIT":
        count = int(bits[1] or bits[2], 2) if bits is not None else value
        return type.read(count) if isinstance(count, int) else MISFIT
    if bits is not None:
        return MISFIT
    raw = plain_text(value).encode() if pairs is None else bytes.fromhex(pairs[1] if pairs[2] is None else pairs[2])
    if declared.name != "BINARY":
        return raw
    width = declared.arguments[0] if declared.arguments else 1
    return raw.ljust(width, b"\0") if len(raw) <= width <= _MAX_DIGITS else MISFIT


_MAKERS: Final[dict[str, Callable[[Any, ColumnType], Any]]] = {
    **dict.fromkeys(("boolean", "int", "long", "float", "double", "decimal"), _number),
    "date": _date,
    "time-micros": _time,
    **dict.fromkeys(("local-timestamp-micros", "timestamp-micros", "timestamp-millis"), _local),
    "string": _string,
    "bytes": _bytes,
}
