"""Shape of lake tables: what a configuration says of a table beside what its messages do."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

from cdcavro.errors import shown
from cdcavro.table.table_names import fits_caseless

if TYPE_CHECKING:
    from cdcavro.table.ddl.steps import TableName


class TableShape(Struct, frozen=True, forbid_unknown_fields=True):
    """The shape of tables; of several, the first whose pattern fits a table counts. Raises `ValueError`.

    * `match` (str): a pattern of the names of tables, as in `RowRule`.
    * `key` (tuple[str, ...]): the columns of the key of a table whose source states none.
    """

    match: str
    key: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Check what does not depend on a lake."""
        _check_names("key", self.key)

    @property
    def columns(self) -> list[str]:
        """The names of the columns that it is about."""
        return [*self.key]

    def fits(self, table: TableName) -> bool:
        """Return whether it is for a table, in any case of letters."""
        return fits_caseless(table, self.match)


def _check_names(setting: str, names: tuple[str, ...]) -> None:
    """Raise `ValueError` for a column that a setting names twice, or by no name."""
    folded = [name.casefold() for name in names]
    twice = next((name for name in folded if folded.count(name) > 1), None)
    if twice is not None:
        raise ValueError(f"{setting} names each column once, and {shown(twice)} twice")
    if "" in folded:
        raise ValueError(f"{setting} has names of columns, not an empty one")
