"""Statements of a stream applied to its tables: which they create, drop, rename and alter."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Final, NamedTuple

from cdcavro.change.model import Change, Source, replace
from cdcavro.errors import SchemaError, shown
from cdcavro.table.ddl.parse import parse_ddl
from cdcavro.table.ddl.steps import (
    AddKey,
    AlterTable,
    CreateTable,
    DropDatabase,
    DropTable,
    NoChange,
    RenameTable,
    RenameTo,
    TableName,
    Truncate,
)
from cdcavro.table.evolution.evolve import by_columns, by_step, columns_of_statement, create_table
from cdcavro.table.history import columns_of_version
from cdcavro.table.names import statement_table, table_name_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from cdcavro.change.model import Column
    from cdcavro.change.order import Key
    from cdcavro.table.catalog import TableCatalog
    from cdcavro.table.columns.overrides import TypeOverrides
    from cdcavro.table.ddl.steps import Action, Step
    from cdcavro.table.history import Table

_REMEMBERED: Final = 10_000


class _Statement(NamedTuple):
    """What identifies a statement: its place in the order, its source, and a digest of its text."""

    key: Key | None
    source: Source
    text: bytes

    @classmethod
    def of(cls, change: Change, key: Key | None) -> _Statement:
        text = (change.ddl or "").encode(errors="surrogatepass")
        return cls(key, change.source, hashlib.sha256(text).digest())

    def is_as(self, other: _Statement | None) -> bool:
        """Return whether another statement has the same order numbers, source and text, wherever it arrived."""
        if other is None or self.key is None or other.key is None:
            return False
        return (self.key[1], self.source, self.text) == (other.key[1], other.source, other.text)


class StatementFollower:
    """Applies the statements of a stream to a catalog of tables, with the column types that the user gives."""

    def __init__(self, tables: TableCatalog, given: TypeOverrides) -> None:
        self._tables, self._given = tables, given
        self._applied: dict[_Statement, None] = {}
        self._last: _Statement | None = None
        self._appliers: dict[type, Callable[..., None]] = {
            CreateTable: self._on_create,
            DropTable: self._on_drop,
            DropDatabase: self._on_drop_database,
            RenameTable: self._on_rename,
            AlterTable: self._on_alter,
            Truncate: self._on_nothing,
            NoChange: self._on_nothing,
        }

    def follow(self, change: Change, key: Key | None) -> None:
        """Apply a statement wholly or not at all, skipping repeated deliveries. Raises `DdlError`, `SchemaError`."""
        statement = _Statement.of(change, key)
        if statement in self._applied or (change.position is not None and statement.is_as(self._last)):
            return
        source = replace(change.source, format=None)
        with self._tables.whole():
            for step in steps_of(change):
                self._appliers[type(step)](step, change, source, key)
        self._last = statement
        if change.place is not None and key is not None:
            if len(self._applied) >= _REMEMBERED:
                del self._applied[next(iter(self._applied))]
            self._applied[statement] = None

    def _on_create(self, step: CreateTable, change: Change, source: Source, start: Key | None) -> None:
        name = statement_table(step.table, change.source)
        live = self._tables.live(name)
        if live is not None and step.if_not_exists:
            return
        columns, key, own = self._created(step, change, source)
        if live is not None and (columns is None or self._is_that(live, columns, key, own, start)):
            return
        self._tables.drop(name, start)
        if columns is not None:
            schema = create_table(name, columns, key, own, self._given)
            self._tables.create(name, schema, sentence(name, columns), start).is_stated = True

    def _created(
        self, step: CreateTable, change: Change, source: Source
    ) -> tuple[Sequence[Column] | None, Sequence[str], Source]:
        """Return a new table's columns (None if unknown), its key, and the source whose type names they use."""
        like = None if step.like is None else self._tables.live(statement_table(step.like, change.source))
        key = step.key or (like.schema.key_names if like is not None else ())
        if change.columns is not None and table_name_of(change.source) == statement_table(step.table, change.source):
            return change.columns, change.key or key, change.source
        if step.as_select or (step.like is not None and like is None):
            return None, key, source
        lent = [] if like is None else columns_of_version(like.schema)
        return [*lent, *columns_of_statement(step, source)] or None, key, source

    def _is_that(
        self, live: Table, columns: Sequence[Column], key: Sequence[str], source: Source, start: Key | None
    ) -> bool:
        """Return whether a statement creates a table that already exists, and adopt what else it declares.

        Such a statement declares the same columns: it belongs to a snapshot, whose statements come after its
        rows, or is delivered again. If the table's columns were never declared, it includes those seen so far.
        """
        names, new = {column.name for column in live.schema.columns}, {column.name for column in columns}
        if names != new and (live.is_stated or not names < new):
            return False
        self._tables.touch(live)
        if not live.is_stated:
            table = live.schema.table
            if live.is_written:
                live.append(*by_columns(live.schema, columns, source, self._given), start)
            else:
                live.begin_again(create_table(table, columns, key, source, self._given), [sentence(table, columns)])
            live.is_stated = True
        if key and not live.schema.key_names:
            self._evolve(
                live, AlterTable(live.schema.table, (AddKey(tuple(key)),)), replace(source, db_type=None), start
            )
        return True

    def _on_drop(self, step: DropTable, change: Change, _source: Source, start: Key | None) -> None:
        for table in step.tables:
            self._tables.drop(statement_table(table, change.source), start)

    def _on_drop_database(self, step: DropDatabase, change: Change, _source: Source, start: Key | None) -> None:
        dropped = statement_table(TableName(step.database, step.schema, ""), change.source)
        for name in self._tables.names():
            if name.database == dropped.database and step.schema in (None, name.schema):
                self._tables.drop(name, start)

    def _on_rename(self, step: RenameTable, change: Change, source: Source, start: Key | None) -> None:
        old, new = statement_table(step.old, change.source), statement_table(step.new, change.source)
        table = self._tables.live(old)
        if table is not None and old != new:
            self._tables.touch(table)
            self._evolve(table, RenameTable(old, new), source, start)
            self._tables.move(old, new, start)

    def _on_alter(self, step: AlterTable, change: Change, source: Source, start: Key | None) -> None:
        name, own = statement_table(step.table, change.source), table_name_of(change.source)
        table, columns = self._tables.live(name), change.columns
        if table is not None:
            self._tables.touch(table)
            try:
                self._evolve(table, AlterTable(name, _full(step.actions, change.source)), source, start)
            except SchemaError:
                if columns is None or own != name or not table.is_as(columns, change.source, self._given):
                    raise
            self._tables.move(name, table.schema.table, start)
        if columns is None or own not in (name, table and table.schema.table):
            return
        if table is None:
            schema = create_table(name, columns, change.key or (), change.source, self._given)
            table = self._tables.create(name, schema, sentence(name, columns), start)
        table.state(columns, change.source, self._given, start, change.key)

    def _evolve(self, table: Table, step: Step, source: Source, start: Key | None) -> None:
        schema, steps = by_step(table.schema, step, source, self._given)
        if steps:
            table.append(schema, steps, start)

    def _on_nothing(self, step: NoChange | Truncate, change: Change, source: Source, start: Key | None) -> None:
        """Do nothing: removing rows does not affect schemas."""


def steps_of(change: Change) -> tuple[Step, ...]:
    """Return the steps that a change's statement consists of. Raises `DdlError`."""
    return parse_ddl(change.ddl or "", change.source.db_type, database=change.source.database)


def truncated(change: Change) -> list[TableName]:
    """Return the names of the tables that a change empties. Raises `DdlError`."""
    if change.ddl is None:
        name = table_name_of(change.source)
        return [] if name is None else [name]
    steps = [step for step in steps_of(change) if isinstance(step, Truncate)]
    return [statement_table(table, change.source) for step in steps for table in step.tables]


def sentence(name: TableName, columns: Sequence[Column]) -> str:
    """Return the sentence that says a table was made."""
    return f"table {shown(name.table)} with {len(columns)} columns"


def _full(actions: Sequence[Action], source: Source) -> tuple[Action, ...]:
    """Return actions in which a table's new name is written as row changes have it."""
    return tuple(
        RenameTo(statement_table(action.new, source)) if isinstance(action, RenameTo) else action for action in actions
    )
