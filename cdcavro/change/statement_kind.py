"""Finding the kind of a DDL statement from its first words, in the names that the formats use."""

from __future__ import annotations

import re
from typing import Final

from cdcavro.change.model import Change, replace

_SKIPPED: Final = re.compile(r"(?:\s|--[^\n]*(?:\n|$)|#[^\n]*(?:\n|$)|/\*(?!!).*?\*/|/\*![0-9]*|\*/|\()+", re.DOTALL)
_WORD: Final = re.compile(r"[A-Za-z_]+")
_KINDS: Final = {"CREATE": "CREATE", "ALTER": "ALTER", "DROP": "ERASE", "TRUNCATE": "TRUNCATE", "RENAME": "RENAME"}
_INDEXES: Final = {"CREATE": "CINDEX", "DROP": "DINDEX"}
_BETWEEN: Final = frozenset({"UNIQUE", "FULLTEXT", "SPATIAL", "BITMAP", "ONLINE", "OFFLINE", "GLOBAL", "LOCAL"})
_LOOKED_AT: Final = 6


def statement_kind(ddl: str) -> str:
    """Return a DDL statement's kind: CREATE, ALTER, ERASE, TRUNCATE, RENAME, CINDEX, DINDEX, or QUERY for any other.

    >>> statement_kind("/* by hand */ create unique index i on t (a)")
    'CINDEX'
    """
    words = _words(ddl)
    first = words[0] if words else ""
    if first in _INDEXES:
        second = next((word for word in words[1:] if word not in _BETWEEN), "")
        if second == "INDEX":
            return _INDEXES[first]
    return _KINDS.get(first, "QUERY")


def as_statement(change: Change) -> Change:
    """Return a change of an operation that is not known as a statement if it has the text of one, and no row.

    >>> as_statement(Change(op="OTHER", operation="DDL", ddl="TRUNCATE TABLE t")).op
    'TRUNCATE'
    """
    if change.op != "OTHER" or change.ddl is None or change.before is not None or change.after is not None:
        return change
    return replace(change, op=statement_kind(change.ddl))


def _words(ddl: str) -> list[str]:
    words: list[str] = []
    at = 0
    while len(words) < _LOOKED_AT:
        skipped = _SKIPPED.match(ddl, at)
        at = skipped.end() if skipped else at
        word = _WORD.match(ddl, at)
        if word is None:
            break
        words.append(word[0].upper())
        at = word.end()
    return words
