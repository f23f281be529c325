"""Routines, and the statements in them, which touch no table when the routine is created: they are skipped."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from cdcavro.table.ddl.keywords import NOUNS, ROUTINES
from cdcavro.table.ddl.steps import NoChange

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cdcavro.table.ddl.cursor import TokenCursor
    from cdcavro.table.ddl.steps import Step
    from cdcavro.table.ddl.tokens import Token

_LOOKED_AT: Final = 32
_LOOPS: Final = frozenset({"LOOP", "WHILE", "REPEAT"})
_CLOSED: Final = frozenset({"IF", *_LOOPS})
# What stands before a statement within a routine.
_STARTS: Final = frozenset({";", ":", "ATOMIC", "BEGIN", "DO", "ELSE", "LOOP", "REPEAT", "THEN"})


def skip_routine(cursor: TokenCursor) -> list[Step]:
    """Skip a routine with the statements in it: to its END, or in Oracle to the end of the text."""
    depth = 0
    while cursor.token.kind != "end" and (depth > 0 or cursor.dialect.is_oracle or not _is_over(cursor)):
        before, key = cursor.tokens[cursor.at - 1].key, cursor.token.key
        if key in {"BEGIN", "CASE"} and before not in {"END", "."}:
            depth += 1
        elif key == "END" and before != "." and cursor.ahead().key not in {"FOR", *_CLOSED}:
            depth -= 1
        cursor.at += 1
    if depth > 0 and not cursor.dialect.is_oracle:
        raise cursor.fail("END")
    return [NoChange("routine")]


def _is_over(cursor: TokenCursor) -> bool:
    """Return whether a routine ends here; move on to the END of an IF or a loop that is all of its body."""
    if not cursor.sees(";"):
        return False
    if cursor.ends_behind is None:
        cursor.ends_behind = _ends_behind(cursor.tokens)
    end = cursor.ends_behind.get(cursor.at)
    cursor.at = end or cursor.at
    return end is None


def _ends_behind(tokens: Sequence[Token]) -> dict[int, int]:
    """Return for each semicolon within an IF or a loop the index of the END that closes it.

    They are found in one go, since a text may have a semicolon in every other place. What opens is not always
    known from its place (it follows what a routine declares), but what opens behind a semicolon is.
    """
    found: dict[int, int] = {}
    within: list[list[int]] = [[]]
    for i in range(1, len(tokens)):
        before, key = tokens[i - 1].key, tokens[i].key
        if key == ";":
            within[-1].append(i)
        elif key == "CREATE" and _is_of_routine(tokens[i : i + _LOOKED_AT]):
            within = [[]]  # a routine cannot create another, so this begins the next statement
        elif key in _CLOSED and before == "END":
            found.update(dict.fromkeys(within.pop(), i - 1))
            within = within or [[]]
        elif key in _CLOSED and before in _STARTS:
            within.append([])
    return found


def _is_of_routine(tokens: Sequence[Token]) -> bool:
    return next((token.key for token in tokens if token.key in NOUNS), "") in ROUTINES
