"""Defaults of columns: constants as defaults of Avro fields, and as SQL text and back."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from cdcavro.exact.members import ABSENT
from cdcavro.exact.numbers import number, plain_text
from cdcavro.exact.scan import is_number
from cdcavro.exact.sqltype import parse_sql_type
from cdcavro.table.columns.constants import constant
from cdcavro.table.columns.strings import MISFIT
from cdcavro.table.ddl.steps import Constant, Expression

if TYPE_CHECKING:
    from cdcavro.table.columns.column_type import ColumnType


_STRING: Final = re.compile(r"'((?:[^']|'')*)'")
_BYTES: Final = re.compile(r"x'((?:[0-9a-f]{2})*)'")
_LONG: Final = 8
_WORDS: Final[dict[str, bool | None]] = {"TRUE": True, "FALSE": False, "NULL": None}


def filling(default: Constant | Expression | None, type: ColumnType) -> Any:
    """Return a constant as the default of an Avro field; `ABSENT` if there is none or the type cannot carry it."""
    if not isinstance(default, Constant) or default.value is None:
        return ABSENT
    value = default.value
    datum = _of_bytes(value, type) if isinstance(value, bytes) else constant(value, type)
    if datum is MISFIT:
        return ABSENT
    return datum.decode("iso-8859-1") if isinstance(datum, bytes) else datum


def _of_bytes(raw: bytes, type: ColumnType) -> Any:
    """Return the datum of `x'…'` or `b'…'`: bytes in a binary column, text in a text column, else a number."""
    if type.avro == "string":
        try:
            return constant(raw.decode(), type)
        except UnicodeDecodeError:
            return MISFIT
    is_bits = parse_sql_type(type.declared or "").name == "BIT"
    if type.avro == "bytes" and not is_bits:
        return constant(f"x'{raw.hex()}'", type)
    return constant(int.from_bytes(raw, "big"), type) if len(raw) <= _LONG else MISFIT


def default_text(default: Constant | Expression) -> str:
    """Return a default as SQL text.

    >>> default_text(Constant("it's"))
    "'it''s'"
    """
    if isinstance(default, Expression):
        return default.text
    value = default.value
    if isinstance(value, str):
        return "'" + value.replace("'", "''") + "'"
    if isinstance(value, bytes):
        return f"x'{value.hex()}'"
    return "NULL" if value is None else str(value).upper() if isinstance(value, bool) else plain_text(value)


def constant_of(text: str) -> Constant | None:
    """Return the constant behind a text made by `default_text`; None for an expression.

    >>> constant_of("'it''s'"), constant_of("now()")
    (Constant(value="it's"), None)
    """
    string, raw = _STRING.fullmatch(text), _BYTES.fullmatch(text)
    if string is not None:
        return Constant(string[1].replace("''", "'"))
    if raw is not None:
        return Constant(bytes.fromhex(raw[1]))
    if text in _WORDS:
        return Constant(_WORDS[text])
    return Constant(number(text)) if is_number(text) else None  # type: ignore[arg-type]
