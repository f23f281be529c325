"""Operations: their words in each format, the kinds of DDL statements, and the modes in which Debezium sends values.

The kind of a statement is found from the first words of a statement, in the names that the formats use.

The modes in which a Debezium connector sends the values of columns are named as its own settings name them. With an
embedded schema only `binaries` matters, since the schema says the rest.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, NamedTuple

from cdcavro.change.model import DDL, Change, replace
from cdcavro.errors import StructureError, shown

if TYPE_CHECKING:
    from collections.abc import Mapping

PRECISE: Final = "precise"
STRING: Final = "string"
ADAPTIVE: Final = "adaptive"
ADAPTIVE_TIME_MICROSECONDS: Final = "adaptive_time_microseconds"
CONNECT: Final = "connect"
ISOSTRING: Final = "isostring"
MICROSECONDS: Final = "microseconds"
NANOSECONDS: Final = "nanoseconds"
STRUCTURED: Final = "structured"
BYTES: Final = "bytes"
BASE64: Final = "base64"
BASE64_URL_SAFE: Final = "base64-url-safe"
HEX: Final = "hex"
DECIMALS: Final = (PRECISE, STRING)
TIMES: Final = (
    *(ADAPTIVE_TIME_MICROSECONDS, ADAPTIVE, CONNECT, ISOSTRING, MICROSECONDS),
    *(NANOSECONDS, STRUCTURED),
)
BINARIES: Final = (BYTES, BASE64, BASE64_URL_SAFE, HEX)


class Modes(NamedTuple):
    """How values are sent; each mode has the default of MySQL's connector."""

    # The connector's `decimal.handling.mode`.
    decimals: str = PRECISE
    # Its `time.precision.mode`.
    times: str = ADAPTIVE_TIME_MICROSECONDS
    # Its `binary.handling.mode`.
    binaries: str = BYTES


USUAL_MODES: Final = Modes()
_KNOWN: Final = {"decimals": DECIMALS, "times": TIMES, "binaries": BINARIES}


def check_modes(decimals: str, times: str, binaries: str) -> Modes:
    """Return modes. Raises `ValueError` for one that is not known.

    >>> check_modes("string", "connect", "hex")
    Modes(decimals='string', times='connect', binaries='hex')
    """
    modes = Modes(decimals, times, binaries)
    for name, mode in zip(Modes._fields, modes, strict=True):
        if mode not in _KNOWN[name]:
            *others, last = _KNOWN[name]
            raise ValueError(f"{name} are {', '.join(others)} or {last}, not {shown(mode)}")
    return modes


_SKIPPED: Final = re.compile(r"(?:\s|--[^\n]*(?:\n|$)|#[^\n]*(?:\n|$)|/\*(?!!).*?\*/|/\*![0-9]*|\*/|\()+", re.DOTALL)
_WORD: Final = re.compile(r"[A-Za-z_]+")
_KINDS: Final = {"CREATE": "CREATE", "ALTER": "ALTER", "DROP": "ERASE", "TRUNCATE": "TRUNCATE", "RENAME": "RENAME"}
_INDEXES: Final = {"CREATE": "CINDEX", "DROP": "DINDEX"}
_BETWEEN: Final = frozenset({"UNIQUE", "FULLTEXT", "SPATIAL", "BITMAP", "ONLINE", "OFFLINE", "GLOBAL", "LOCAL"})
_LOOKED_AT: Final = 6
_FULL_LOAD: Final = {"INIT": "SNAPSHOT", "ROW": "SNAPSHOT"}


def read_operation(word: str, operations: Mapping[str, str]) -> str:
    """Return the operation that a word means, `OTHER` if it is not known; `operations` are a format's documented words.

    A word is looked up as it is documented, or else without regard to case. INIT and ROW are a row of a
    full load: Alibaba's and Tencent's DTS document INIT in Canal's form, and Flink and Paimon know both.

    >>> [read_operation(word, {"INSERT": "INSERT"}) for word in ("insert", "INIT", "MERGE")]
    ['INSERT', 'SNAPSHOT', 'OTHER']
    """
    op = operations.get(word)
    if op is not None:
        return op
    # Beyond ASCII, other letters become the same: a dotless i is I in upper case.
    folded = word.upper() if word.isascii() else word
    for documented, known in operations.items():
        if documented.upper() == folded:
            return known
    return _FULL_LOAD.get(folded, "OTHER")


def spell_operation(change: Change, format: str, spellings: Mapping[str, str]) -> str | None:
    """Return how a format spells a change's operation, None if it has no word; its own words stay as they were sent."""
    if change.source.format == format and change.operation is not None:
        return change.operation
    return spellings.get(change.op)


def check_operation(change: Change) -> None:
    """Raise `StructureError` for a change with a row and an operation of which nothing is known.

    >>> from cdcavro.change.model import Change
    >>> check_operation(Change(op="OTHER", operation="m"))
    """
    if change.before is not None or change.after is not None:
        expected = "an operation on a row that is known, because the message holds a row"
        raise StructureError(expected, shown(change.operation or "none"), format=change.source.format)


def statement_text(change: Change) -> str | None:
    """Return the text of a DDL statement; None for a change of a row, even if its message has the statement's text."""
    return change.ddl if change.op in DDL or change.op == "OTHER" else None


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
    """Return a change of an unknown operation as a statement if it has the text of a statement and no row.

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
