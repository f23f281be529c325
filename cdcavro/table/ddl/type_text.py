"""A column's type, as spelled."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from cdcavro.table.ddl.keywords import INTERVAL_WORDS, TYPE_ENDS, TYPE_WORDS

if TYPE_CHECKING:
    from cdcavro.table.ddl.cursor import TokenCursor
    from cdcavro.table.ddl.tokens import Token


# MySQL turns characters in the character set `binary` into bytes: the MySQL reference manual, "The binary Character
# Set", and, of LONG, "Using Data Types from Other Database Engines".
_BINARY: Final = {
    **dict.fromkeys(("CHAR", "CHARACTER", "NCHAR", "NATIONAL CHAR", "NATIONAL CHARACTER"), "binary"),
    **dict.fromkeys(("VARCHAR", "VARCHARACTER", "CHAR VARYING", "CHARACTER VARYING", "NVARCHAR"), "varbinary"),
    **dict.fromkeys(("NATIONAL VARCHAR", "NATIONAL CHAR VARYING", "NATIONAL CHARACTER VARYING"), "varbinary"),
    **dict.fromkeys(("NCHAR VARCHAR", "NCHAR VARYING", "NATIONAL VARCHARACTER", "NCHAR VARCHARACTER"), "varbinary"),
    "TINYTEXT": "tinyblob",
    "TEXT": "blob",
    **dict.fromkeys(("MEDIUMTEXT", "LONG", "LONG VARCHAR", "LONG CHAR VARYING"), "mediumblob"),
    **dict.fromkeys(("LONG CHARACTER VARYING", "LONG VARCHARACTER"), "mediumblob"),
    "LONGTEXT": "longblob",
}
_CHARACTERS: Final = re.compile(r"([a-z]+(?: [a-z]+)*?) ?(\([0-9]+\))?(?: binary)?", re.ASCII | re.IGNORECASE)
_IN_BINARY: Final = re.compile(r"(.+) (?:char(?:acter)? set|charset) binary", re.ASCII | re.IGNORECASE)


def type_of(cursor: TokenCursor) -> str:
    """Parse a type; return it as spelled, with single spaces and no spaces around brackets and commas.

    Labels are in apostrophes, with `''` for an apostrophe, as MySQL shows them. Characters in MySQL's
    character set `binary` are the bytes that MySQL makes of them: `varchar(5) character set binary` is a
    `varbinary(5)`. LONG, which is a number elsewhere, is MySQL's `mediumtext`.
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
    if cursor.dialect.is_mysql and text.upper() == "LONG":
        return "mediumtext"
    match = _IN_BINARY.fullmatch(text) if cursor.dialect.is_mysql else None
    return text if match is None or states_charset(match[1]) else binary_type(match[1]) or text


def binary_type(type: str) -> str | None:
    """Return the type of bytes that MySQL makes of a type of characters in the character set `binary`; None for others.

    >>> binary_type("VARCHAR(5)"), binary_type("enum('a')")
    ('varbinary(5)', None)
    """
    match = _CHARACTERS.fullmatch(type)
    if match is None or match[1].upper() not in _BINARY:
        return None
    return _BINARY[match[1].upper()] + (match[2] or "")


def states_charset(type: str) -> bool:
    """Return whether a type of characters states its own character set by its name, as NCHAR does."""
    return type.startswith(("N", "n"))


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
