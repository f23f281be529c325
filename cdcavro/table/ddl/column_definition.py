"""A column's definition: its name, its type as spelled, its default, and its other attributes.

A default is a constant, exactly, or an expression, as written.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING, Final

from cdcavro.exact.numbers import ExactNumber
from cdcavro.table.ddl.cursor import ALONE, IDENTITY_OPTIONS, INTERVAL_WORDS, STOPS, TYPE_ENDS, TYPE_WORDS, VALUED
from cdcavro.table.ddl.steps import ColumnDef, Constant, Expression

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from cdcavro.table.ddl.cursor import Token, TokenCursor


@dataclass(slots=True)
class _Definition:
    """What a column's definition has stated so far, as in `ColumnDef`."""

    type: str | None
    nullable: bool | None = None
    default: Constant | Expression | None = None
    key: bool = False
    generated: bool = False
    numbered: bool = False
    charset: bool = False


def parse_column(cursor: TokenCursor, *, typed: bool = True) -> ColumnDef:
    """Parse a column's definition. With `typed`, it must have a type, unless the column is computed."""
    name = cursor.column_name()
    has_type = cursor.token.kind in ("word", "name") and not cursor.sees_one_of(_NO_TYPES)
    definition = _Definition(parse_type(cursor) if has_type else None)
    place = cursor.at
    while cursor.sees_one_of(_ATTRIBUTES):
        _ATTRIBUTES[cursor.take().key](cursor, definition)
    if definition.type is None and not definition.generated and (typed or cursor.dialect.is_mysql):
        cursor.at = place
        raise cursor.fail("a type")
    charset = definition.charset or (definition.type is not None and states_charset(definition.type))
    return ColumnDef(
        name,
        definition.type,
        definition.nullable,
        definition.default,
        definition.key,
        definition.generated,
        numbered=definition.numbered,
        charset=charset,
    )


def skip_charset(cursor: TokenCursor) -> bool:
    """Skip the character set that follows CHARACTER or CHARSET, or the collation that follows COLLATE.

    Return whether it is MySQL's `binary`, which turns characters into bytes.
    """
    if cursor.tokens[cursor.at - 1].key not in {"CHARSET", "COLLATE"}:
        cursor.expect("SET")
    cursor.accept("=")
    is_binary = cursor.take().text.lower() == "binary" and cursor.dialect.is_mysql
    while cursor.accept("."):
        cursor.take()
    return is_binary


def in_binary_table(column: ColumnDef) -> ColumnDef:
    """Return a column as MySQL makes it in a table of the character set `binary`: bytes, unless it states another."""
    type = None if column.type is None or column.charset else binary_type(column.type)
    return column if type is None else replace(column, type=type)


def _charset(cursor: TokenCursor, definition: _Definition) -> None:
    definition.charset = True
    if skip_charset(cursor) and definition.type is not None:
        definition.type = binary_type(definition.type) or definition.type


def _own_charset(_: TokenCursor, definition: _Definition) -> None:
    definition.charset = True  # ASCII and UNICODE


def _not(cursor: TokenCursor, definition: _Definition) -> None:
    if cursor.accept("NULL"):
        definition.nullable = False
    elif not cursor.accept_one_of({"DEFERRABLE", "ENFORCED", "VALID", "VISIBLE", "HIDDEN", "SECONDARY"}):
        raise cursor.fail("NULL")


def _null(_: TokenCursor, definition: _Definition) -> None:
    definition.nullable = True


def _default(cursor: TokenCursor, definition: _Definition) -> None:
    if cursor.accept("ON", "NULL"):  # Oracle: the default stands for NULL too
        definition.nullable = False
        if cursor.accept("FOR", "INSERT") and not cursor.accept("ONLY"):
            cursor.expect("AND", "UPDATE")
    definition.default = parse_default(cursor, DEFAULT_STOPS, definition.type)


def _key(_: TokenCursor, definition: _Definition) -> None:
    definition.key = True


def _primary(cursor: TokenCursor, definition: _Definition) -> None:
    cursor.expect("KEY")
    definition.key = True


def _unique(cursor: TokenCursor, _: _Definition) -> None:
    cursor.accept("KEY")
    if cursor.accept("NULLS"):
        cursor.accept("NOT")
        cursor.expect("DISTINCT")


def _serial(cursor: TokenCursor, definition: _Definition) -> None:
    cursor.expect("DEFAULT", "VALUE")
    definition.nullable, definition.numbered = False, True


def _generated(cursor: TokenCursor, definition: _Definition) -> None:
    if cursor.accept("BY", "DEFAULT"):
        cursor.accept("ON", "NULL")
    else:
        cursor.expect("ALWAYS")
    cursor.expect("AS")
    _as(cursor, definition)


def _as(cursor: TokenCursor, definition: _Definition) -> None:
    if cursor.accept("IDENTITY"):
        _identity(cursor, definition)
        return
    if cursor.accept("ROW"):
        if not cursor.accept_one_of({"START", "END", "BEGIN"}):
            raise cursor.fail("START or END")
    else:
        cursor.group()
    definition.generated = True


def _identity(cursor: TokenCursor, definition: _Definition) -> None:
    definition.numbered = True
    _maybe_group(cursor, definition)
    while cursor.dialect.is_oracle and cursor.accept_one_of(IDENTITY_OPTIONS):
        cursor.accept_one_of({"BY", "WITH"})
        if not cursor.accept("LIMIT", "VALUE"):
            cursor.accept_one_of({"+", "-"})
            if cursor.token.kind == "number":
                cursor.take()


def _encrypt(cursor: TokenCursor, _: _Definition) -> None:
    """Skip Oracle's ENCRYPT: its algorithm, password, integrity check and salt."""
    if cursor.accept("USING"):
        cursor.take()
    if cursor.accept("IDENTIFIED", "BY"):
        cursor.take()
    if cursor.token.kind == "string":
        cursor.take()
    if not cursor.accept("SALT"):
        cursor.accept("NO", "SALT")


def _annotations(cursor: TokenCursor, _: _Definition) -> None:
    cursor.group()


def _virtual(cursor: TokenCursor, _: _Definition) -> None:
    cursor.accept("BY", "USER", "FOR", "STATISTICS")  # Oracle's own, for statistics of an expression


def _numbered(_: TokenCursor, definition: _Definition) -> None:
    definition.numbered = True


def _random(cursor: TokenCursor, definition: _Definition) -> None:
    definition.numbered = True
    _maybe_group(cursor, definition)


def _maybe_group(cursor: TokenCursor, _: _Definition) -> None:
    if cursor.sees("("):
        cursor.group()


def _constraint(cursor: TokenCursor, _: _Definition) -> None:
    if not cursor.sees_one_of({"NOT", "NULL", "UNIQUE", "PRIMARY", "CHECK", "REFERENCES", "DEFAULT", "GENERATED"}):
        cursor.name("constraint's name")


def _check(cursor: TokenCursor, _: _Definition) -> None:
    cursor.group()


def _references(cursor: TokenCursor, definition: _Definition) -> None:
    cursor.table()
    _maybe_group(cursor, definition)


def _on(cursor: TokenCursor, _: _Definition) -> None:
    if not cursor.accept_one_of({"UPDATE", "DELETE"}):
        raise cursor.fail("UPDATE or DELETE")
    if cursor.accept("SET"):
        cursor.take()
    elif cursor.accept("NO"):
        cursor.expect("ACTION")
    else:
        cursor.name("function or RESTRICT or CASCADE")
        if cursor.sees("("):
            cursor.group()


def _value(cursor: TokenCursor, _: _Definition) -> None:
    cursor.accept("=")
    cursor.take()


def _word(_: TokenCursor, __: _Definition) -> None:
    """Do nothing, since nothing follows this word."""


def _compressed(cursor: TokenCursor, _: _Definition) -> None:
    if cursor.accept("="):
        cursor.take()


def _using(cursor: TokenCursor, definition: _Definition) -> None:
    cursor.expect("INDEX")
    if cursor.accept("TABLESPACE"):
        cursor.name("tablespace's name")
    _maybe_group(cursor, definition)


def _with(cursor: TokenCursor, definition: _Definition) -> None:
    if cursor.accept("SYSTEM", "VERSIONING"):
        return
    if not cursor.accept("DEFAULT"):
        cursor.group()
    elif cursor.ends() or cursor.sees_one_of(DEFAULT_STOPS) or cursor.sees(")"):
        definition.default = Expression("WITH DEFAULT")  # DB2: the default of the type
    else:
        _default(cursor, definition)


def _no(cursor: TokenCursor, _: _Definition) -> None:
    cursor.expect("INHERIT")


def _without(cursor: TokenCursor, _: _Definition) -> None:
    cursor.expect("SYSTEM", "VERSIONING")


_ATTRIBUTES: Final[dict[str, Callable[[TokenCursor, _Definition], None]]] = {
    "ANNOTATIONS": _annotations,
    "AS": _as,
    "AUTO_RANDOM": _random,
    "CHAR": _charset,
    "CHARACTER": _charset,
    "CHARSET": _charset,
    "CHECK": _check,
    "COLLATE": _charset,
    "COMPRESSED": _compressed,
    "CONSTRAINT": _constraint,
    "DEFAULT": _default,
    "DECRYPT": _word,
    "ENCRYPT": _encrypt,
    "GENERATED": _generated,
    "IDENTITY": _identity,
    "KEY": _key,
    "NO": _no,
    "NOT": _not,
    "NULL": _null,
    "ON": _on,
    "PRIMARY": _primary,
    "REFERENCES": _references,
    "SERIAL": _serial,
    "SKIP_INDEX": _maybe_group,
    "UNIQUE": _unique,
    "USING": _using,
    "WITH": _with,
    "WITHOUT": _without,
    **dict.fromkeys(VALUED, _value),
    **dict.fromkeys(ALONE, _word),
    **dict.fromkeys(("AUTOINCREMENT", "AUTO_INCREMENT"), _numbered),
    **dict.fromkeys(("ASCII", "UNICODE"), _own_charset),
    "VIRTUAL": _virtual,
}
# Words that begin attributes but no types; the subtracted ones begin both.
_NO_TYPES: Final = frozenset(_ATTRIBUTES) - {"BINARY", "CHAR", "CHARACTER", "SERIAL"}
DEFAULT_STOPS: Final = frozenset(_ATTRIBUTES) | STOPS | {"FIRST", "AFTER", "PARTITION", "REMOVE"}


_NUMBER_PATTERN: Final = re.compile(r"([0-9]*)(?:\.([0-9]*))?([eE][+-]?[0-9]+)?", re.ASCII)
_CONSTANT_WORDS: Final = {"NULL": None, "TRUE": True, "FALSE": False}
_DATED: Final = frozenset({"DATE", "TIME", "TIMESTAMP"})
_UNICODE: Final = frozenset({"_UTF8", "_UTF8MB3", "_UTF8MB4"})
# Character sets that encode ASCII text as ASCII does.
_LIKE_ASCII: Final = _UNICODE | {"_ASCII", "_LATIN1", "_GBK", "_GB2312", "_GB18030", "_BIG5", "_CP1252"}
_TEXT_TYPES: Final = frozenset({"text", "varchar", "character varying", "bpchar"})


def parse_default(cursor: TokenCursor, stops: Collection[str], type: str | None = None) -> Constant | Expression:
    """Parse a default, which extends to the first of `stops` outside brackets. `type` is the column's type.

    A constant in parentheses is a constant. So is a constant with a cast that changes nothing: to the
    column's own type, or from a string to an unbounded text type.
    """
    start = cursor.at
    if cursor.ends() or cursor.sees_one_of({",", ")"}):
        raise cursor.fail("a default")
    if not cursor.sees("("):
        cursor.take()
    cursor.skip({*stops, "::"})
    while cursor.accept("::"):
        parse_type(cursor)
        cursor.skip({*stops, "::"})
    constant = _constant(_without_parentheses(cursor.tokens[start : cursor.at]), type)
    if constant is not None:
        return constant
    if cursor.dialect.is_mysql and not _is_computed(cursor, start):
        cursor.at = start
        raise cursor.fail("a constant, a call or an expression in parentheses")
    return Expression(cursor.spell(start))


def _is_computed(cursor: TokenCursor, start: int) -> bool:
    """Return whether the tokens since `start` are an expression that MySQL allows: a call, or one in parentheses."""
    end, cursor.at = cursor.at, start
    if cursor.accept("NEXT", "VALUE", "FOR"):
        cursor.table()
    elif cursor.token.raw.startswith("_") and cursor.ahead().kind in ("string", "bytes"):
        cursor.at += 2
    elif cursor.token.kind in ("word", "name"):
        cursor.table()
    if cursor.sees("("):
        cursor.group()
    return cursor.at == end


def _without_parentheses(tokens: list[Token]) -> list[Token]:
    """Return tokens without parentheses around all of them; those around only a part are kept."""
    levels = 0
    while levels < len(tokens) // 2 and tokens[levels].key == "(" and tokens[-1 - levels].key == ")":
        levels += 1
    inner = tokens[levels : len(tokens) - levels]
    depths = accumulate((token.key == "(") - (token.key == ")") for token in inner)
    return tokens if min(depths, default=0) < 0 else inner


def _constant(tokens: list[Token], type: str | None) -> Constant | None:
    cast = next((i for i, token in enumerate(tokens) if token.key == "::"), None)
    if cast is not None:
        return _cast(_constant(_without_parentheses(tokens[:cast]), type), tokens[cast + 1 :], type)
    kinds = [token.kind for token in tokens]
    if set(kinds) == {"string"}:
        return Constant("".join(token.text for token in tokens))
    if kinds == ["word"] and tokens[0].key in _CONSTANT_WORDS:
        return Constant(_CONSTANT_WORDS[tokens[0].key])
    if kinds == ["bytes"]:
        return Constant(_bytes(tokens[0].text))
    if kinds == ["word", "string"]:
        return _marked_constant(tokens[0].key, tokens[1].text)
    return _number(tokens)


def _cast(value: Constant | None, to: list[Token], type: str | None) -> Constant | None:
    if value is None or value.value is None:
        return value
    spelled = " ".join(token.raw.lower() for token in to)
    declared = "" if type is None else " ".join(re.findall(r"\w+|\S", type.lower()))
    is_text = isinstance(value.value, str) and spelled in _TEXT_TYPES
    return value if spelled == declared or is_text else None


def _bytes(digits: str) -> bytes:
    if digits.startswith("0x"):
        even = digits[2:].zfill(len(digits) - 2 + len(digits) % 2)
        return bytes.fromhex(even)
    return int(digits or "0", 2).to_bytes((len(digits) + 7) // 8, "big")


def _marked_constant(mark: str, text: str) -> Constant | None:
    """Return the constant of a string after a word: DATE and the like, or MySQL's name of its character set."""
    if mark in _DATED or mark in _UNICODE or (mark in _LIKE_ASCII and text.isascii()):
        return Constant(text)
    return Constant(text.encode()) if mark == "_BINARY" else None


def _number(tokens: list[Token]) -> Constant | None:
    """Return a number as JSON writes it: `+.50` becomes 0.50, `007.` becomes 7; None for anything else."""
    written = "".join(token.raw for token in tokens)
    sign = "-" if written.startswith("-") else ""
    match = _NUMBER_PATTERN.fullmatch(written[1:] if written[:1] in {"+", "-"} else written)
    if match is None or not (match[1] or match[2]) or _has_gap(tokens):
        return None
    whole, fraction, exponent = match[1].lstrip("0") or "0", match[2], match[3] or ""
    return Constant(ExactNumber(f"{sign}{whole}{'.' + fraction if fraction else ''}{exponent}"))


def _has_gap(tokens: list[Token]) -> bool:
    signed = tokens[0].key in {"+", "-"}
    digits = tokens[1:] if signed else tokens
    return any(before.end != after.start for before, after in pairwise(digits))


# MySQL turns characters in the character set `binary` into bytes: the MySQL reference manual, "The binary Character
# Set", and, of LONG, "Using Data Types from Other Database Engines".
_BINARY_TYPES: Final = {
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


def parse_type(cursor: TokenCursor) -> str:
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
    text = _spell_type(cursor.tokens[start : cursor.at])
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
    if match is None or match[1].upper() not in _BINARY_TYPES:
        return None
    return _BINARY_TYPES[match[1].upper()] + (match[2] or "")


def states_charset(type: str) -> bool:
    """Return whether a type of characters states its own character set by its name, as NCHAR does."""
    return type.startswith(("N", "n"))


def _spell_type(tokens: list[Token]) -> str:
    parts: list[str] = []
    for i, token in enumerate(tokens):
        joined = i == 0 or token.key in {"(", ")", ",", "["} or tokens[i - 1].key in {"(", ",", "["}
        label = "'" + token.text.replace("'", "''") + "'" if token.kind == "string" else token.raw
        parts += ["" if joined or tokens[i - 1].end == token.start else " ", label]
    return "".join(parts)


def _type_goes_on(cursor: TokenCursor, *, is_interval: bool) -> bool:
    if _sees_charset(cursor):
        return _accept_binary_charset(cursor)
    if cursor.dialect.is_mysql and cursor.accept("BINARY"):
        # A collation, and no part of the type, unless the character set is binary, too.
        if _sees_charset(cursor) and _accept_binary_charset(cursor):
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


def _accept_binary_charset(cursor: TokenCursor) -> bool:
    """Skip a character set if it is binary, and return whether it is: it is part of the type, which it makes binary."""
    start = cursor.at
    cursor.take()
    cursor.accept("SET")
    if cursor.take().text.lower() == "binary":
        return True
    cursor.at = start
    return False
