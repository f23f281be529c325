"""Beginnings in time: which version of a table, or which table of a name, had begun at the time of a change.

Times are order keys. Within one topic partition or file they are compared as the changes' order is,
between partitions by the source's numbers; where nothing says which of two came first, what was
learned later holds.

Where arrival is the order and the numbers are times, a row may be delivered again behind a statement
that was made after it. MySQL lets a statement that changes a table's columns or name wait until no
transaction uses the table, and lets others wait behind it. So a row that comes behind it in the log
began after it, unless it had been waiting already, for a lock that somebody else had on the whole
table. A row that began in an earlier second is therefore one from before the statement: it belongs to
what was there then, unless only what the statement made has its columns.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, cast

from msgspec.structs import astuple

from cdcavro.change.model import DDL, Change, replace
from cdcavro.change.order import Numbers, is_begun_before, is_by_arrival, is_of_before, order_key, precedes
from cdcavro.errors import OrderError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cdcavro.change.order import Key

# The beginning of what has no time; nothing comes before it.
FIRST: Final = ()


class StatementTime(tuple[Any, ...]):  # noqa: SLOT001  a subclass of tuple cannot have slots that hold anything
    """The time of a statement whose order is that of arrival: a row that began before it is older, wherever it arrives."""


def time_of(change: Change) -> Key | None:
    """Return the time of a change on the scale on which versions begin; None if it has none.

    A row of a full load has the time at which its source says it was read, not a time before all changes.
    """
    try:
        key: Any = order_key(replace(change, op="INSERT") if change.op == "SNAPSHOT" else change)
    except OrderError:
        return None
    return StatementTime(key) if change.op in DDL and is_by_arrival(key) else key


def texts_of(key: Key | None) -> list[str]:
    """Return the texts that are kept with a time: where its change arrived, and its source."""
    parts = (
        ()
        if key is None
        else (*key[2], *[own for part in key if isinstance(part, Numbers) for own in astuple(part.source)])
    )
    return [text for text in parts if isinstance(text, str)]


def is_before(key: Key | None, start: Any) -> bool:
    """Return whether a time is known to come before a beginning."""
    return key is not None and start != FIRST and precedes(key, start) is True


def is_before_all(key: Key | None, start: Any) -> bool:
    """Return whether a time is known to come before a beginning, or, by the times of the two alone, was before it.

    Where arrival is the true order, a statement that creates or renames a table onto a name which a table
    bears contradicts that order. If it began before what is known of the table, it came late.
    """
    return is_before(key, start) or (key is not None and start != FIRST and is_begun_before(key, start))


def is_made_before(key: Key | None, start: Any) -> bool:
    """Return whether a row is known to come before a beginning, or to have been made before the statement that it is."""
    return is_before(key, start) or (
        key is not None and isinstance(start, StatementTime) and is_begun_before(key, cast("Key", start))
    )


def is_of_second(key: Key, start: Any) -> bool:
    """Return whether a row is known to have begun in the same second as the statement that a beginning is."""
    return isinstance(start, StatementTime) and key[3][:1] == start[3][:1] != ()


def is_again(key: Key | None, start: Any) -> bool:
    """Return whether a change was made before a beginning, and so is delivered again if it arrives behind it."""
    return key is not None and start != FIRST and is_of_before(key, start)


def later_of(start: Key | None, last: Any) -> Any:
    """Return a beginning if it is known to come after the last one, else the last one."""
    if start is None:
        return last
    return start if last == FIRST or precedes(last, start) is True else last


def last_arrived(starts: Sequence[Any], key: Key | None) -> int:
    """Return the index of the last beginning that is not known to come after a time, or else 0."""
    place = len(starts) - 1
    while place > 0 and is_before(key, starts[place]):
        place -= 1
    return place


def last_begun(starts: Sequence[Any], key: Key | None) -> int:
    """Return the index of the last beginning after which a row was made, or else 0."""
    place = last_arrived(starts, key)
    if key is None or not is_by_arrival(key):
        return place
    return next((i - 1 for i in range(1, place + 1) if is_made_before(key, starts[i])), place)
