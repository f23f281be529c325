"""Tables that begin with rows, and what they are called by those that learn of them apart from each other."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from cdcavro.table.tables import Tables

_DIGITS: Final = 16


class NewTables:
    """Tells which tables began since it was made, if `tables` (`Tables`) have learned nothing else.

    Whoever learns of a table first numbers it, but its only version is the same wherever it is learned, and the rows of a
    table with one version are the same, too. So a table is called by a mark of this version until it has a number.
    """

    def __init__(self, tables: Tables) -> None:
        self._tables = tables
        self._known = [(list(table.versions), table.is_gone) for table in tables.tables]

    @property
    def marks(self) -> dict[int, str] | None:
        """The marks of the tables that began, by number; None if any other changed, one has several versions, or two have one mark."""
        tables, count = self._tables.tables, len(self._known)
        if [(table.versions, table.is_gone) for table in tables[:count]] != self._known:
            return None
        new = tables[count:]
        if any(len(table.versions) > 1 or table.is_gone for table in new):
            return None
        marks = {table.number: _mark(table.schema.row.json) for table in new}
        return marks if len({*marks.values()}) == len(marks) else None


def _mark(text: str) -> str:
    # No number has a letter in front.
    return "n" + hashlib.sha256(text.encode()).hexdigest()[:_DIGITS]
