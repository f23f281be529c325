"""The rows of one message, told from those of others: every row carries all that its message says of itself."""

from __future__ import annotations

from operator import attrgetter
from typing import TYPE_CHECKING, Final

from cdcavro.change import Change

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

OF_A_ROW: Final = frozenset({"before", "after", "changed", "row", "members"})
_OF_THE_MESSAGE: Final = attrgetter(*(name for name in Change.__struct_fields__ if name not in OF_A_ROW))


def batches(changes: Iterable[Change]) -> list[list[Change]]:
    """Put changes that follow each other as rows of one message together.

    Their numbers in the message follow each other, and everything that belongs to the message is
    equal: operation, source, place, position, times, transaction, key, columns, statement.

    >>> [len(rows) for rows in batches([Change(op="INSERT", row=0, rows=2), Change(op="DELETE", row=1, rows=2)])]
    [1, 1]
    """
    groups: list[list[Change]] = []
    for change in changes:
        last = groups[-1][-1] if groups else None
        if last is not None and change.row == last.row + 1 and _OF_THE_MESSAGE(change) == _OF_THE_MESSAGE(last):
            groups[-1].append(change)
        else:
            groups.append([change])
    return groups


def is_whole(rows: Sequence[Change]) -> bool:
    """Tell whether rows that follow each other are all rows of their message."""
    return rows[0].row == 0 and len(rows) == rows[0].rows
