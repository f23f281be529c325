"""Stated keys: the keys of tables that their rows do not state, but a statement or the user does."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cdcavro.change.model import DDL, DML, Change, names_of_columns
from cdcavro.errors import SchemaError, shown
from cdcavro.exact.caching import text_size
from cdcavro.table.table_names import fits_caseless, spelled_as, table_name_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from cdcavro.change.model import Column
    from cdcavro.table.catalog import TableCatalog
    from cdcavro.table.ddl.steps import TableName
    from cdcavro.table.history import Table


class StatedKeys:
    """The keys that were stated for the names of tables.

    `given` has the columns of keys that the user gives, by patterns of the names of tables; the first one that fits
    counts. A key that the source states is that of the table, and then a given one is not used.
    """

    def __init__(self, tables: TableCatalog, given: Mapping[str, Sequence[str]]) -> None:
        self._tables = tables
        self._given = {pattern: tuple(names) for pattern, names in given.items()}
        # The keys of tables that have no rows yet, or none with the columns of their key, and those that were given.
        self._keys: dict[TableName, tuple[str, ...]] = {}
        # The names for which `statement` was asked.
        self._asked: set[TableName] = set()

    def __getitem__(self, name: TableName) -> Sequence[str]:
        """Return the key that was stated for a name, empty if none was."""
        return self._keys.get(name, ())

    def statement(self, change: Change) -> Change | None:
        """Return the statement of the key that is given for the table of a change; None if it has one, or none is given.

        It is to be learned before the change, and comes once for each name of a table.
        """
        name = table_name_of(change.source) if self._given and (change.op in DML or change.op in DDL) else None
        if name is None or name in self._asked:
            return None
        key = next((names for pattern, names in self._given.items() if fits_caseless(name, pattern)), None)
        if not key:
            return None
        self._asked.add(name)
        table = self._tables.bearer(name)
        if table is not None and table.schema.key_names:
            return None
        stated = names_of_columns(change) if change.columns is None else [column.name for column in change.columns]
        key = spelled_as(key, [*stated, *([] if table is None else table.schema.names)])
        return Change(
            op="CREATE",
            source=change.source,
            key=key,
            position=change.position,
            event_time=change.event_time,
            place=change.place,
            row=change.row,
        )

    def put(self, name: TableName, key: tuple[str, ...]) -> None:
        """Remember the key that is stated for a name. Raises `SchemaError` for want of room."""
        former, room = self._keys.get(name), self._tables.room
        if former != key:
            room.left += 0 if former is None else _size_of(name, former)
            room.reserve(_size_of(name, key), name.table)
            self._keys[name] = key
            room.edits += 1

    def spelled(self, name: TableName, columns: Sequence[Column]) -> Sequence[str]:
        """Return the key that was stated for a name, from now on spelled as the columns of its table are."""
        if name in self._keys:
            self._keys[name] = spelled_as(self._keys[name], [column.name for column in columns])
        return self[name]

    def is_other(self, change: Change, name: TableName) -> bool:
        """Return whether a row states another key than that which was stated for its table, and which the table has."""
        stated, table = self._keys.get(name) if change.key else None, self._tables.bearer(name)
        if stated is None or table is None:
            return False
        return {*table.schema.key_names} == {*stated} != {*(change.key or ())}

    def check(self, change: Change, name: TableName) -> None:
        """Raise `SchemaError` for a row for which `is_other`: under another key it would not be found."""
        if self.is_other(change, name):
            listed = [", ".join(map(shown, names)) for names in (change.key or (), self[name])]
            raise SchemaError(name.table, f"its key was given as {listed[1]}, and a row states {listed[0]}")

    def note_unused(self, table: Table) -> None:
        """Add a finding if a table has another key than the one that was stated for its name."""
        stated, own = self[table.schema.table], table.schema.key_names
        if stated and own and {*stated} != {*own}:
            listed = [", ".join(map(shown, names)) for names in (own, stated)]
            table.add_finding(f"its source states the key {listed[0]}, so {listed[1]}, which was given, is not used")


def _size_of(name: TableName, key: Sequence[str]) -> int:
    """Return what a key that is stated for a name takes."""
    return text_size([name.database, name.schema, name.table, *key])
