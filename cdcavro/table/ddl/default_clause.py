"""What follows DEFAULT: a constant, exactly, or an expression, as written."""

from __future__ import annotations

import re
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING, Final

from cdcavro.exact.numbers import ExactNumber
from cdcavro.table.ddl.steps import Constant, Expression
from cdcavro.table.ddl.type_text import type_of

if TYPE_CHECKING:
    from collections.abc import Collection

    from cdcavro.table.ddl.cursor import TokenCursor
    from cdcavro.table.ddl.tokens import Token

_NUMBER: Final = re.compile(r"([0-9]*)(?:\.([0-9]*))?([eE][+-]?[0-9]+)?", re.ASCII)
_WORDS: Final = {"NULL": None, "TRUE": True, "FALSE": False}
_DATED: Final = frozenset({"DATE", "TIME", "TIMESTAMP"})
_UNICODE: Final = frozenset({"_UTF8", "_UTF8MB3", "_UTF8MB4"})
# Character sets that encode ASCII text as ASCII does.
_LIKE_ASCII: Final = _UNICODE | {"_ASCII", "_LATIN1", "_GBK", "_GB2312", "_GB18030", "_BIG5", "_CP1252"}
_TEXTS: Final = frozenset({"text", "varchar", "character varying", "bpchar"})


def default(cursor: TokenCursor, stops: Collection[str], type: str | None = None) -> Constant | Expression:
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
        type_of(cursor)
        cursor.skip({*stops, "::"})
    constant = _constant(_unwrapped(cursor.tokens[start : cursor.at]), type)
    if constant is not None:
        return constant
    if cursor.dialect.is_mysql and not _is_computed(cursor, start):
        cursor.at = start
        raise cursor.fail("a constant, a call or an expression in parentheses")
    return Expression(cursor.spelled(start))


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


def _unwrapped(tokens: list[Token]) -> list[Token]:
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
        return _cast(_constant(_unwrapped(tokens[:cast]), type), tokens[cast + 1 :], type)
    kinds = [token.kind for token in tokens]
    if set(kinds) == {"string"}:
        return Constant("".join(token.text for token in tokens))
    if kinds == ["word"] and tokens[0].key in _WORDS:
        return Constant(_WORDS[tokens[0].key])
    if kinds == ["bytes"]:
        return Constant(_bytes(tokens[0].text))
    if kinds == ["word", "string"]:
        return _marked(tokens[0].key, tokens[1].text)
    return _number(tokens)


def _cast(value: Constant | None, to: list[Token], type: str | None) -> Constant | None:
    if value is None or value.value is None:
        return value
    spelled = " ".join(token.raw.lower() for token in to)
    own = "" if type is None else " ".join(re.findall(r"\w+|\S", type.lower()))
    is_text = isinstance(value.value, str) and spelled in _TEXTS
    return value if spelled == own or is_text else None


def _bytes(digits: str) -> bytes:
    if digits.startswith("0x"):
        even = digits[2:].zfill(len(digits) - 2 + len(digits) % 2)
        return bytes.fromhex(even)
    return int(digits or "0", 2).to_bytes((len(digits) + 7) // 8, "big")


def _marked(mark: str, text: str) -> Constant | None:
    """Return the constant of a string after a word: DATE and the like, or MySQL's name of its character set."""
    if mark in _DATED or mark in _UNICODE or (mark in _LIKE_ASCII and text.isascii()):
        return Constant(text)
    return Constant(text.encode()) if mark == "_BINARY" else None


def _number(tokens: list[Token]) -> Constant | None:
    """Return a number as JSON writes it: `+.50` becomes 0.50, `007.` becomes 7; None for anything else."""
    written = "".join(token.raw for token in tokens)
    sign = "-" if written.startswith("-") else ""
    match = _NUMBER.fullmatch(written[1:] if written[:1] in {"+", "-"} else written)
    if match is None or not (match[1] or match[2]) or _has_gap(tokens):
        return None
    whole, fraction, exponent = match[1].lstrip("0") or "0", match[2], match[3] or ""
    return Constant(ExactNumber(f"{sign}{whole}{'.' + fraction if fraction else ''}{exponent}"))


def _has_gap(tokens: list[Token]) -> bool:
    signed = tokens[0].key in {"+", "-"}
    digits = tokens[1:] if signed else tokens
    return any(before.end != after.start for before, after in pairwise(digits))
