"""The rows of one message, told from those of others: every row carries all that its message says of itself."""

from __future__ import annotations

from operator import attrgetter
from typing import TYPE_CHECKING, Final

from cdcavro.change.model import Change
from cdcavro.errors import StructureError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

_OF_A_ROW: Final = frozenset({"before", "after", "changed", "row", "members"})
_FREE: Final = 4 * 1024 * 1024
_PROPORTION: Final = 64
# What formats write beside a text.
_BESIDE: Final = 8
_OF_THE_MESSAGE: Final = attrgetter(*(name for name in Change.__struct_fields__ if name not in _OF_A_ROW))


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


def check_repeated(rows: Sequence[Change], length: int) -> None:
    """Check that the changes of a message of `length` characters are not out of all proportion to it.

    Each row carries what belongs to the message, its columns above all, so that many rows of a few
    values beside many columns would be the product of both. No table of a database comes near the
    bound: its rows hold its columns, and of the narrow tables with long types (an ENUM of 4 KB) MySQL
    puts at most 8 KB of rows into one event. Raises `StructureError`.
    """
    if len(rows) == 1:
        return
    most, repeated = _FREE + _PROPORTION * length, len(rows) * _size(rows[0])
    if repeated > most:
        expected = f"at most {most} characters of what {len(rows)} rows have in common, once for each row"
        raise StructureError(expected, str(repeated))


def _size(change: Change) -> int:
    """Return about the characters of what a change has in common with the other rows of its message."""
    source = change.source
    texts = [change.operation, change.transaction, change.ddl, change.ddl_meta, *(change.key or ())]
    texts += [source.database, source.schema, source.table]
    texts += [text for column in change.columns or () for text in (column.name, column.type)]
    return sum(_BESIDE + len(text or "") for text in texts)


def is_whole(rows: Sequence[Change]) -> bool:
    """Return whether rows that follow each other are all rows of their message."""
    return rows[0].row == 0 and len(rows) == rows[0].rows
