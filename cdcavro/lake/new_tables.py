"""Tables that begin with rows, and what they are called by those that learn of them apart from each other."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from cdcavro.table.tables import Tables

_DIGITS: Final = 16


class NewTables:
    """Tells which tables began since it was made, if `tables` (`Tables`) have learned of no other table or version.

    Whoever learns of a table first numbers it, but its only version is the same wherever it is learned; and the rows of a
    table with one version, whose name no other table ever bore, are the same, too, whenever it began. So a table is called
    by a mark of this version until it has a number.
    """

    def __init__(self, tables: Tables) -> None:
        self._tables = tables
        self._known = [(list(table.versions), table.is_gone) for table in tables.tables]
        self._marks: dict[int, str] = {}

    @property
    def marks(self) -> dict[int, str] | None:
        """The marks of the tables that began, by number; None if any other changed, one of them is not as said, or two have one mark."""
        tables, count = self._tables.tables, len(self._known)
        if [(table.versions, table.is_gone) for table in tables[:count]] != self._known:
            return None
        for table in tables[count:]:
            if len(table.versions) > 1 or table.is_gone or not self._tables.is_alone(table):
                return None
            if table.number not in self._marks:
                self._marks[table.number] = _mark(table.schema.row.json)
        return dict(self._marks) if len({*self._marks.values()}) == len(self._marks) else None


def _mark(text: str) -> str:
    # No number has a letter in front.
    return "n" + hashlib.sha256(text.encode()).hexdigest()[:_DIGITS]
