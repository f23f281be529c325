"""Beginnings in time: which version of a table, or which table of a name, had begun at the time of a change.

Times are order keys. Within one topic partition or file they are compared as the changes' order is,
between partitions by the source's numbers; where nothing says which of two came first, what was
learned later holds.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from cdcavro.change.model import Change, replace
from cdcavro.change.order import is_begun_before, order_key, precedes
from cdcavro.errors import OrderError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cdcavro.change.order import Key

# The beginning of what has no time; nothing comes before it.
FIRST: Final = ()


def time_of(change: Change) -> Key | None:
    """Return the time of a change on the scale on which versions begin; None if it has none.

    A row of a full load has the time at which its source says it was read, not a time before all changes.
    """
    try:
        return order_key(replace(change, op="INSERT") if change.op == "SNAPSHOT" else change)
    except OrderError:
        return None


def is_before(key: Key | None, start: Any) -> bool:
    """Return whether a time is known to come before a beginning."""
    return key is not None and start != FIRST and precedes(key, start) is True


def is_before_all(key: Key | None, start: Any) -> bool:
    """Return whether a time is known to come before a beginning, or, by the times of the two alone, was before it.

    Where arrival is the true order, a statement that creates or renames a table onto a name which a table
    bears contradicts that order. If it began before what is known of the table, it came late.
    """
    return is_before(key, start) or (key is not None and start != FIRST and is_begun_before(key, start))


def later_of(start: Key | None, last: Any) -> Any:
    """Return a beginning if it is known to come after the last one, else the last one."""
    if start is None:
        return last
    return start if last == FIRST or precedes(last, start) is True else last


def last_begun(starts: Sequence[Any], key: Key | None) -> int:
    """Return the index of the last beginning that is not known to come after a time, or else 0."""
    place = len(starts) - 1
    while place > 0 and is_before(key, starts[place]):
        place -= 1
    return place
