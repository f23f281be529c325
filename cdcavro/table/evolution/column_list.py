"""What statements and messages declare of a column, in whichever spelling: its type, and its default."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from cdcavro.avro.types import ABSENT
from cdcavro.exact.jsontext import is_number, number
from cdcavro.exact.sqltype import Declared, declared_type
from cdcavro.table.columns.constants import constant
from cdcavro.table.columns.strings import MISFIT
from cdcavro.table.ddl.steps import Constant, Expression
from cdcavro.table.evolution.promotion import bare
from cdcavro.wire.writing.values import plain_text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cdcavro.table.columns.column_type import ColumnType

_SYNONYMS: Final = {
    **dict.fromkeys(("INTEGER", "INT4"), "INT"),
    **dict.fromkeys(("DEC", "NUMERIC", "FIXED"), "DECIMAL"),
    **dict.fromkeys(("CHARACTER VARYING", "CHAR VARYING"), "VARCHAR"),
    "CHARACTER": "CHAR",
    "DOUBLE PRECISION": "DOUBLE",
}
# What stands in brackets behind these is the width of a display.
_WIDE: Final = frozenset({"TINYINT", "SMALLINT", "MEDIUMINT", "INT", "BIGINT", "YEAR"})
_BOOLEAN: Final = ("TINYINT", (1,))
_STRING: Final = re.compile(r"'((?:[^']|'')*)'")
_BYTES: Final = re.compile(r"x'((?:[0-9a-f]{2})*)'")
_SHORT: Final = 1_000
_LONG: Final = 8
Marks = frozenset[tuple[Any, ...]]
_WORDS: Final[dict[str, bool | None]] = {"TRUE": True, "FALSE": False, "NULL": None}


def canonical(text: str | None) -> Declared | None:
    """Give a declared type in the one spelling of those that mean the same.

    >>> canonical("INTEGER") == canonical("int(11)"), canonical("tinyint(1)") == canonical("tinyint")
    (True, False)
    """
    if text is None:
        return None
    return _remembered(text) if len(text) <= _SHORT else _canonical(text)


def _canonical(text: str) -> Declared:
    made = declared_type(text)
    name = _SYNONYMS.get(made.name, made.name)
    is_width = name in _WIDE and (name, made.arguments) != _BOOLEAN
    return replace(made, name=name, arguments=() if is_width else made.arguments)


def is_same_type(one: str | None, other: str | None) -> bool:
    """Tell whether two declared types are one, spelled in two ways.

    >>> is_same_type("DECIMAL(10, 2)", "numeric(10,2)"), is_same_type("int", "bigint")
    (True, False)
    """
    return one == other or canonical(one) == canonical(other)


class Listed(NamedTuple):
    """What a list of columns says.

    Attributes: `declared`, names, types as they are declared, in one spelling, and as they are held;
    `held`, names and types as they are held: a version that has these is one that the list fits.
    """

    declared: Marks
    held: Marks


def mark_of(name: str | None, declared: str | None, avro: Any) -> tuple[Any, ...]:
    """Give what statements of one column have in common, however they spell its type."""
    return name, json.dumps(bare(avro), sort_keys=True), canonical(declared)


def listed_of(marks: Sequence[tuple[Any, ...]]) -> Listed:
    """Give what a list of columns says by those of its columns."""
    return Listed(frozenset(marks), frozenset(one[:2] for one in marks))


def filling(default: Constant | Expression | None, held: ColumnType) -> Any:
    """Give a constant as the default of an Avro field; `ABSENT` where there is none, or its type cannot carry it."""
    if not isinstance(default, Constant) or default.value is None:
        return ABSENT
    value = default.value
    datum = _of_bytes(value, held) if isinstance(value, bytes) else constant(value, held)
    if datum is MISFIT:
        return ABSENT
    return datum.decode("iso-8859-1") if isinstance(datum, bytes) else datum


def _of_bytes(raw: bytes, held: ColumnType) -> Any:
    """Give the datum of `x'…'` or `b'…'`: bytes in a column of bytes, text in one of text, else the number that they are."""
    if held.avro == "string":
        try:
            return constant(raw.decode(), held)
        except UnicodeDecodeError:
            return MISFIT
    is_bits = declared_type(held.declared or "").name == "BIT"
    if held.avro == "bytes" and not is_bits:
        return constant(f"x'{raw.hex()}'", held)
    return constant(int.from_bytes(raw, "big"), held) if len(raw) <= _LONG else MISFIT


def spelled(default: Constant | Expression) -> str:
    """Give a default as SQL.

    >>> spelled(Constant("it's"))
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
    """Undo `spelled`, of a constant; None for an expression.

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


_remembered: Final = lru_cache(maxsize=4096)(_canonical)
