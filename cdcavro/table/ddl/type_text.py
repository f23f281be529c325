"""A column's type, as spelled."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from cdcavro.table.ddl.keywords import INTERVAL_WORDS, TYPE_ENDS, TYPE_WORDS

if TYPE_CHECKING:
    from cdcavro.table.ddl.cursor import TokenCursor
    from cdcavro.table.ddl.tokens import Token


# MySQL turns characters in the character set `binary` into bytes.
_BINARY: Final = {
    "CHAR": "binary",
    "CHARACTER": "binary",
    "VARCHAR": "varbinary",
    "TINYTEXT": "tinyblob",
    "TEXT": "blob",
    "MEDIUMTEXT": "mediumblob",
    "LONGTEXT": "longblob",
}
_IN_BINARY: Final = re.compile(
    r"(\w+)(\([0-9]+\))?(?: binary)? (?:char(?:acter)? set|charset) binary", re.ASCII | re.IGNORECASE
)


def type_of(cursor: TokenCursor) -> str:
    """Parse a type; return it as spelled, with single spaces and no spaces around brackets and commas.

    Labels are in apostrophes, with `''` for an apostrophe, as MySQL shows them. Characters in MySQL's
    character set `binary` are the bytes that MySQL makes of them: `varchar(5) character set binary` is a
    `varbinary(5)`.
    """
    start = cursor.at
    if cursor.token.kind not in ("word", "name"):
        raise cursor.fail("a type")
    is_interval = cursor.sees("INTERVAL")
    cursor.take()
    while cursor.accept("."):
        cursor.name("type")
    while _type_goes_on(cursor, is_interval=is_interval):
        pass
    text = _spelled(cursor.tokens[start : cursor.at])
    match = _IN_BINARY.fullmatch(text) if cursor.dialect.is_mysql else None
    if match is None or match[1].upper() not in _BINARY:
        return text
    return _BINARY[match[1].upper()] + (match[2] or "")


def _spelled(tokens: list[Token]) -> str:
    parts: list[str] = []
    for i, token in enumerate(tokens):
        joined = i == 0 or token.key in {"(", ")", ",", "["} or tokens[i - 1].key in {"(", ",", "["}
        label = "'" + token.text.replace("'", "''") + "'" if token.kind == "string" else token.raw
        parts += ["" if joined or tokens[i - 1].end == token.start else " ", label]
    return "".join(parts)


def _type_goes_on(cursor: TokenCursor, *, is_interval: bool) -> bool:
    if _sees_charset(cursor):
        return _charset(cursor)
    if cursor.dialect.is_mysql and cursor.accept("BINARY"):
        # A collation, and no part of the type, unless the character set is binary, too.
        if _sees_charset(cursor) and _charset(cursor):
            return True
        cursor.at -= 1
        return False
    if cursor.accept_one_of(TYPE_WORDS) or (is_interval and cursor.accept_one_of(INTERVAL_WORDS)):
        return True
    if any(cursor.accept(*words) for words in TYPE_ENDS):
        return True
    if cursor.sees("(") and cursor.tokens[cursor.at - 1].key != ")":
        cursor.group()
        return True
    if cursor.accept("["):
        cursor.skip()
        cursor.expect("]")
        return True
    return False


def _sees_charset(cursor: TokenCursor) -> bool:
    return cursor.sees("CHARSET") or cursor.sees("CHARACTER", "SET") or cursor.sees("CHAR", "SET")


def _charset(cursor: TokenCursor) -> bool:
    """Skip a character set if it is binary, and return whether it is: it is part of the type, which it makes binary."""
    start = cursor.at
    cursor.take()
    cursor.accept("SET")
    if cursor.take().text.lower() == "binary":
        return True
    cursor.at = start
    return False
