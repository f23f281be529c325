"""A follower of a stream's statements: it applies them to the tables, which they create, drop, rename and alter.

Messages are delivered at least once, so a stream may go back and repeat what it sent, at new places. A statement that
is older than the last one about a table's name is old. Where a source's numbers are its true order, a statement with
the numbers, source and text of an earlier one is that one. Where they are only a time, many statements may share it: a
statement is then taken for an equal earlier one if that was made before the newest statement, or is next in a sequence
that is being repeated, or was the last. Of two messages with one text, it does not matter which table each names.
"""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from dataclasses import replace as replace_fields
from typing import TYPE_CHECKING, Final, NamedTuple

from cdcavro.change.model import Change, Column, Source, names_of_columns, replace
from cdcavro.change.order import is_by_numbers, is_in_log
from cdcavro.errors import DdlError, SchemaError, shown
from cdcavro.exact.caching import WeightedCache, text_size
from cdcavro.table.catalog import Refusals
from cdcavro.table.columns.format_rules import RULES, USUAL
from cdcavro.table.ddl import steps as ddl
from cdcavro.table.ddl.cursor import dialect_of, has_dialect, is_mysql
from cdcavro.table.ddl.parse import (
    column_renaming,
    complete_actions,
    joined_renamings,
    parts_of,
    renamings,
    sentence,
    states_key_only,
    steps_of,
)
from cdcavro.table.evolution.actions import actions_between
from cdcavro.table.evolution.evolve import by_columns, by_step, columns_of_statement, create_table
from cdcavro.table.history import columns_of_version, is_before, time_texts
from cdcavro.table.table_names import StatedKeys, fold_case, statement_table, table_name_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from cdcavro.change.order import Key
    from cdcavro.errors import CdcAvroError
    from cdcavro.table.catalog import TableCatalog
    from cdcavro.table.columns.column_type import TypeOverrides
    from cdcavro.table.ddl.steps import Action, TableName
    from cdcavro.table.history import Table

    _Created = tuple[Sequence[Column] | None, Sequence[str], Source]


class StatementFollower:
    """Applies the statements of a stream to a catalog of tables, with the types of columns and keys that the user gives."""

    def __init__(
        self, tables: TableCatalog, given: TypeOverrides, keys: Mapping[str, Sequence[str]] | None = None
    ) -> None:
        self._tables, self._given = tables, given
        self.keys = StatedKeys(tables, keys or {})
        self._deliveries = Deliveries()
        self._refusals = Refusals(tables)
        # The names that the statement gives to tables and takes from them again, once that was asked.
        self._passed: frozenset[ddl.TableName] | None = None
        self._appliers: dict[type, Callable[..., None]] = {
            ddl.CreateTable: self._on_create,
            ddl.DropTable: self._on_drop,
            ddl.DropDatabase: self._on_drop_database,
            ddl.RenameTable: self._on_rename,
            ddl.AlterTable: self._on_alter,
            ddl.Truncate: self._on_nothing,
            ddl.NoChange: self._on_nothing,
        }

    def follow(self, change: Change, key: Key | None) -> None:
        """Apply a statement wholly or not at all, skipping repeated deliveries. Raises `DdlError`, `SchemaError`."""
        if states_key_only(change):
            self._take_key(change, key)
            return
        if self._deliveries.is_repeated(change, key):
            return
        parts, self._passed = parts_of(change), None
        try:
            with self._tables.transaction():
                for part in parts:
                    self._apply(part, change, key)
        except DdlError:
            self._refusals.note(change, key)
            raise
        except SchemaError:
            # Nothing says that it was applied before, but that the table is as it left it.
            if not self._deliveries.is_known(change):
                raise
        else:
            self._deliveries.note(change, key)
            for part in parts:
                self._refusals.release(part)

    def refusal(self, statements: Sequence[Change], key: Key | None) -> CdcAvroError | None:
        """Return why statements, one behind the other, cannot all be applied; None if they can, or the last one was."""
        self._passed = None
        try:
            with self._tables.transaction(is_trial=True):
                for one in statements:
                    for part in parts_of(one):
                        self._apply(part, one, key)
        except (DdlError, SchemaError) as error:
            return None if self._deliveries.is_known(statements[-1]) else error
        return None

    def _take_key(self, change: Change, start: Key | None) -> None:
        """Give a table without a key the one that a statement states.

        One whose rows do not have its columns so far gets it with the first that has them. Raises `SchemaError` for a table that has another key.
        """
        name, key = table_name_of(change.source), change.key or ()
        if name is None:
            return
        table = self._tables.bearer(name)
        is_early = table is None or (table.schema.key is None and not table.schema.names.issuperset(key))
        if is_early or table is None:
            self.keys.put(name, key)
        elif table.schema.key is None:
            self.add_key(table, key, change, start)
        elif {*table.schema.key_names} != {*key}:
            listed = [", ".join(map(shown, names)) for names in (key, table.schema.key_names)]
            raise SchemaError(name.table, f"its key is stated as {listed[0]}, and its rows have {listed[1]}")

    def key_of(self, change: Change, name: TableName) -> Sequence[str]:
        """Return the key that a row states, or else the one that was stated for the name of its table."""
        return change.key or self.keys[name]

    def add_key(self, table: Table, key: Sequence[str], change: Change, start: Key | None) -> None:
        """Begin a version of a table with a key, which it did not have. Raises `SchemaError`."""
        with self._tables.transaction():
            self._tables.save(table)
            self._apply_actions(table, ddl.AlterTable(table.schema.table, (ddl.AddKey(tuple(key)),)), change, start)

    def _apply(self, part: Change, sent: Change, key: Key | None) -> None:
        """Apply a statement, or what one whose text is not understood says of one of its tables."""
        old = self._own_table(part)
        for step in steps_of(part):
            self._appliers[type(step)](step, part, key)
        if part is not sent and sent.ddl is not None and has_dialect(sent.source.db_type):
            self._note_text(self._own_table(part) or old, sent)

    def check(self, change: Change, name: ddl.TableName, table: Table | None, key: Key | None) -> None:
        """Raise `SchemaError` for a row with another key, or that only a statement which is not understood can explain."""
        self.keys.check(change, name)
        self._refusals.check(change, name, table, key, self._given)

    def _own_table(self, change: Change) -> Table | None:
        name = table_name_of(change.source)
        return None if name is None else self._tables.bearer(name)

    def _note_text(self, table: Table | None, change: Change) -> None:
        """Add a finding: the text of a statement about the table is not understood, so what it led to counted."""
        if table is not None:
            self._tables.save(table)
            table.add_finding(f"a text is not understood, and what its table became counts: {shown(change.ddl or '')}")

    def begin(self, change: Change, name: ddl.TableName, start: Key | None) -> Table:
        """Return the table of a row whose name no table bears: one that only statements have named, or a new one."""
        table = self._respell(change, name, start)
        if table is None:
            names = [Column(name=column) for column in names_of_columns(change)]
            listed = names if change.columns is None else change.columns
            with self._tables.transaction():
                key = change.key or self.keys.spelled(name, listed)
                table = self._tables.create(name, listed, key, change.source, start)
                self.keys.note_unused(table)
                table.unexplained = table.unexplained.with_differences(None, table.schema)
                table.room.reserve(table.unexplained.size, name.table)
        return table

    def _respell(self, change: Change, name: ddl.TableName, start: Key | None) -> Table | None:
        """Return the table that only statements have named, in another case than a row does, under the row's name."""
        table = self._tables.table_of_unseen_spelling(name) if is_mysql(change.source.db_type) else None
        stated = None if change.columns is None else {column.name for column in change.columns}
        if table is None or not _names_of(table).issuperset(names_of_columns(change) if stated is None else stated):
            return None
        with self._tables.transaction():
            self._tables.save(table)
            old = table.schema.table
            self._evolve(table, ddl.RenameTable(old, name), change, start)
            self._tables.move(old, name, start)
        return table

    def _on_create(self, step: ddl.CreateTable, change: Change, start: Key | None) -> None:
        name = self._own_name(step.table, change)
        columns, key, source = self._created_columns(step, change, start)
        key = key or self.keys.spelled(name, columns or ())
        if is_mysql(change.source.db_type):
            names = {column.name for column in columns or ()}
            name = self._tables.known_spelling(name, names, start, is_kept=step.if_not_exists)
        live = self._tables.bearer(name)
        if self._is_old(name, change, start) or (live is not None and step.if_not_exists and live.is_stated):
            return
        if live is not None and (columns is None or self._is_that(live, step, (columns, key, source), change, start)):
            return
        self._tables.drop(name, start, "a table of its name was created")
        if columns is not None:
            table = self._tables.create(name, columns, key, source, start)
            table.is_stated, table.is_from_birth = True, not change.snapshot
            self.keys.note_unused(table)

    def _created_columns(self, step: ddl.CreateTable, change: Change, start: Key | None) -> _Created:
        """Return a new table's columns (None if unknown), its key, and the source whose type names they use."""
        model = None if step.like is None else self._tables.bearer(self._name(step.like, change))
        like = None if model is None else model.version_with((), start)
        key = step.key or (like.key_names if like is not None else ())
        if change.columns is not None and _is_own(step.table, change):
            return change.columns, change.key or key, change.source
        source = _plain_source(change)
        if step.as_select or (step.like is not None and like is None):
            return None, key, source
        lent = [] if like is None else columns_of_version(like)
        return [*lent, *columns_of_statement(step, source)] or None, key, source

    def _is_that(
        self, live: Table, step: ddl.CreateTable, created: _Created, change: Change, start: Key | None
    ) -> bool:
        """Return whether a statement creates a table that already exists, and adopt what else it declares.

        Such a statement declares the same columns, or it is older than the rows that changed them: it belongs
        to a snapshot, whose statements come after its rows, arrives behind its rows, or is delivered again.
        If the table's columns were never declared, it includes those seen so far.
        """
        columns, key, source = created
        names, new = _names_of(live), {column.name for column in columns or ()}
        if names != new and (live.is_stated or not names < new) and not live.is_behind(start):
            return False
        self._tables.save(live)
        if not live.is_stated:
            table = live.schema.table
            listed = [
                *(columns or ()),
                *(column for column in columns_of_version(live.schema) if column.name not in new),
            ]
            if live.is_written:
                live.append(*by_columns(live.schema, listed, source, self._given), start)
            else:
                live.restart(create_table(table, listed, key, source, self._given), [sentence(table, listed)])
            live.is_stated = names <= new
        # They were there with the first row: there are no older ones for their source to fill.
        stated = [
            replace_fields(column, nullable=None, key=False, generated=False, numbered=False) for column in step.columns
        ]
        actions: list[Action] = [*map(ddl.AddColumn, stated), *([ddl.AddKey(tuple(key))] if key else [])]
        live.explain(actions, _dialect(change), self._given, start)
        return True

    def _on_drop(self, step: ddl.DropTable, change: Change, start: Key | None) -> None:
        for table in step.tables:
            self._drop(self._name(table, change), change, start)

    def _on_drop_database(self, step: ddl.DropDatabase, change: Change, start: Key | None) -> None:
        full = statement_table(ddl.TableName(step.database, step.schema, ""), change.source)
        dropped = ddl.TableName(full.database, step.schema, "")
        for name in self._tables.names_in(dropped, is_folded=is_mysql(change.source.db_type)):
            self._drop(name, change, start)

    def _drop(self, name: ddl.TableName, change: Change, start: Key | None) -> None:
        if not self._is_old(name, change, start) and not self._tables.is_late(name, start):
            self._tables.drop(name, start)

    def _on_rename(self, step: ddl.RenameTable, change: Change, start: Key | None) -> None:
        old, new = self._spelled(self._name(step.old, change), change, start), self._own_name(step.new, change)
        if not (self._is_old(old, change, start) | self._is_old(new, change, start)):
            self._rename(old, new, change, start)

    def _rename(self, old: ddl.TableName, new: ddl.TableName, change: Change, start: Key | None) -> None:
        table = self._tables.bearer(old)
        if table is None:
            self._take_over(old, new, change, start)
        elif old != new and not self._tables.is_late(old, start):
            if self._is_taken(new, start):
                self._tables.save(table)
                table.add_finding(f"was renamed to {shown(new.table)}, whose rows came before that statement")
                self._tables.drop(old, start)
                return
            snapshot = table.snapshot()
            self._tables.save(table)
            self._evolve(table, ddl.RenameTable(old, new), change, start)
            self._tables.move(old, new, start, snapshot)

    def _is_taken(self, new: ddl.TableName, start: Key | None) -> bool:
        """Return whether rows came under a table's new name before the statement that gives it the name."""
        return self._tables.bearer(new) is not None and self._tables.is_behind(new, start)

    def _take_over(self, old: ddl.TableName, new: ddl.TableName, change: Change, start: Key | None) -> None:
        """Keep the table of a name that an unknown table gets: tools change a copy of a table, and swap the two.

        One that was dropped at this very time is a copy, too: what it became, the table becomes, or a new one.
        """
        copy = self._tables.dropped_now(old, start)
        if copy is not None and self._is_passed(new, change):
            self._tables.move_dropped(old, new)
            return
        new = self._spelled(new, change, start)
        table = self._tables.undo_move(new, start) or self._tables.bearer(new)
        if self._tables.is_late(new, start):
            return
        if table is None:
            table = None if copy is None else self._begin_like(copy, new, change, start)
        else:
            self._tables.save(table)
            what = ", which is not known," if copy is None else ", a copy,"
            known = old if copy is None else copy.schema.table
            table.add_finding(f"{shown(known.table)}{what} was renamed to {shown(new.table)}: taken for this table")
            if copy is not None:
                self._take_alterations(table, copy, change, start)
        if table is None:
            return
        if change.columns is not None and table_name_of(change.source) == new:
            table.take_columns(change.columns, change.source, self._given, start, change.key)

    def _begin_like(self, copy: Table, name: ddl.TableName, change: Change, start: Key | None) -> Table:
        schema = copy.version_with((), start)
        columns, source = columns_of_version(schema), _plain_source(change)
        table = self._tables.create(name, columns, schema.key_names, source, start)
        table.is_stated = copy.is_stated
        self.keys.note_unused(table)
        table.add_finding(
            f"was {shown(schema.table.table)}, whose rows are not here: what came under that name is missing"
        )
        return table

    def _take_alterations(self, table: Table, copy: Table, change: Change, start: Key | None) -> None:
        """Do to a table what statements did to a copy that has taken its place."""
        first, last, names = copy.versions[0], copy.version_with((), start), table.schema.names
        actions = actions_between(first, last, names)
        step = ddl.AlterTable(table.schema.table, actions)
        if names == last.names != first.names or not self._apply_actions(table, step, change, start):
            self._explain(table, actions, change, start)
        table.is_stated = table.is_stated or copy.is_stated

    def renamings(self, change: Change, start: Key | None) -> list[tuple[ddl.TableName, ddl.TableName, bool]]:
        """Return the names of known tables that a statement renames, old and new, and whether rows came under the new one."""
        pairs = joined_renamings(self._renamings(change))
        spelled = [(self._spelled(old, change, None), new) for old, new in pairs]
        known = [(old, new) for old, new in spelled if old != new and self._tables.all_bearers(old)]
        return [(old, new, self._tables.has_rows(self._spelled(new, change, start), start)) for old, new in known]

    def _renamings(self, change: Change) -> list[tuple[ddl.TableName, ddl.TableName]]:
        return [(self._own_name(old, change), self._own_name(new, change)) for old, new in renamings(change)]

    def _is_passed(self, name: ddl.TableName, change: Change) -> bool:
        """Return whether a statement gives a table a name only for a time."""
        if self._passed is None:
            pairs = self._renamings(change)
            self._passed = frozenset(new for _, new in pairs) - {last for _, last in joined_renamings(pairs)}
        return name in self._passed

    def _on_alter(self, step: ddl.AlterTable, change: Change, start: Key | None) -> None:
        name = self._name(step.table, change)
        if self._is_old(name, change, start):
            return
        table, columns, named = self._tables.bearer(name), change.columns, table_name_of(change.source)
        actions = complete_actions(step.actions, change.source)
        news = [action.new for action in actions if isinstance(action, ddl.RenameTo)]
        if table is None and news:
            self._alter_copy(self._spelled(name, change, start), step, change, start)
            return
        if table is not None:
            is_late = table.is_late(start) or any(self._is_taken(new, start) for new in news)
            snapshot = table.snapshot() if news else None
            self._tables.save(table)
            if is_late or not self._apply_actions(table, ddl.AlterTable(name, actions), change, start):
                self._explain(table, actions, change, start)
            self._tables.move(name, table.schema.table, start, snapshot)
            columns = None if is_late else columns
        empties_nothing = table is None and change.op == "TRUNCATE" and change.key is None
        if columns is None or empties_nothing or named not in (name, table and table.schema.table):
            return
        if table is None:
            table = self._tables.create(name, columns, change.key or (), change.source, start)
        if change.ddl is None and not table.has_exactly(columns, change.source, self._given):
            # What the statement did is in its columns only, and rows of the version before it may come yet.
            table.mark_used(table.schema)
        table.take_columns(columns, change.source, self._given, start, change.key)

    def _alter_copy(self, name: ddl.TableName, step: ddl.AlterTable, change: Change, start: Key | None) -> None:
        """Do to a copy what a statement does that then gives it the name of another table."""
        new = [self._own_name(action.new, change) for action in step.actions if isinstance(action, ddl.RenameTo)][-1]
        if not self._is_old(new, change, start):
            copy = self._tables.dropped_now(name, start)
            if copy is not None:
                others = tuple(action for action in step.actions if not isinstance(action, ddl.RenameTo))
                self._tables.save(copy)
                self._apply_actions(copy, ddl.AlterTable(name, others), change, start)
            self._take_over(name, new, change, start)

    def _apply_actions(self, table: Table, step: ddl.AlterTable, change: Change, start: Key | None) -> bool:
        """Apply actions and return True, or return False if rows have done already what they do."""
        if not step.actions:
            return True
        table.check_room()
        try:
            schema, steps = by_step(table.schema, step, _plain_source(change), self._given)
        except SchemaError:
            columns, dialect = change.columns, dialect_of(change.source.db_type)
            is_that = columns is not None and table.has_exactly(columns, change.source, self._given)
            if not (is_that or (columns is None and table.unexplained.explains(table.schema, step.actions, dialect))):
                raise
            return False
        if steps:
            table.append(schema, steps, start)
        return True

    def _explain(self, table: Table, actions: Sequence[Action], change: Change, start: Key | None) -> None:
        """Take what late actions explain about a table, and rename it unless its new name came before them."""
        if change.ddl is not None:
            table.explain(actions, _dialect(change), self._given, start)
            # Another statement that adds them is none that came late.
            table.unexplained.added -= {action.column.name for action in actions if isinstance(action, ddl.AddColumn)}
        columns = _names_of(table)
        for action in actions:
            names = column_renaming(action)
            if names is not None and columns.issuperset(names):
                # An alias would hide the new column from those who read what was written with both.
                table.add_finding(
                    f"column {shown(names[0])} was renamed to {shown(names[1])} behind rows of both: both stay"
                )
            if isinstance(action, ddl.RenameTo) and not self._is_old(action.new, change, start):
                self._rename(table.schema.table, action.new, change, start)

    def _evolve(self, table: Table, step: ddl.RenameTable, change: Change, start: Key | None) -> None:
        table.check_room()
        schema, steps = by_step(table.schema, step, _plain_source(change), self._given)
        if steps:
            table.append(schema, steps, start)

    def _is_old(self, name: ddl.TableName, change: Change, start: Key | None) -> bool:
        """Return whether a statement is older than the last one about a name; if so, add a finding that says so."""
        table = self._tables.bearer(name)
        is_old = self._deliveries.is_old(name, start)
        if is_old and table is not None:
            self._tables.save(table)
            table.add_finding(f"a statement older than the last one changes nothing: {shown(change.ddl or change.op)}")
        return is_old

    def _own_name(self, name: ddl.TableName, change: Change) -> ddl.TableName:
        """Return a statement's name in full, in the case in which the message itself names the table."""
        full, stated = statement_table(name, change.source), table_name_of(change.source)
        is_stated = stated is not None and is_mysql(change.source.db_type) and fold_case(stated) == fold_case(full)
        return stated if is_stated and stated is not None else full

    def _name(self, name: ddl.TableName, change: Change) -> ddl.TableName:
        """Return a statement's name in full, as the table is known if only the case differs and no other is meant."""
        return self._spelled(self._own_name(name, change), change, None)

    def _spelled(self, full: ddl.TableName, change: Change, start: Key | None) -> ddl.TableName:
        """Return a name as a table is known, or was that has lost it at this time, if only the case differs."""
        if self._tables.bearer(full) is not None or not is_mysql(change.source.db_type):
            return full
        return self._tables.other_spelling(full) or self._tables.lost_spelling(full, start)

    def _on_nothing(self, step: ddl.NoChange | ddl.Truncate, change: Change, _start: Key | None) -> None:
        """Add a finding if rows are gone without a change that says so; removing rows does not affect schemas."""
        if isinstance(step, ddl.NoChange) and step.emptied_in_part is not None:
            table = self._tables.bearer(self._name(step.emptied_in_part, change))
            if table is not None:
                self._tables.save(table)
                table.add_finding(
                    f"its source removed rows by their partition, which stay here: {shown(change.ddl or '')}"
                )


def _plain_source(change: Change) -> Source:
    """Return the source of a statement, whose types are the database's own; the format says how it sends them."""
    return replace(change.source, format=RULES.get(change.source.format or "", USUAL).of_statements)


def _dialect(change: Change) -> Source:
    """Return the source of a statement; without a text it needs no dialect."""
    source = _plain_source(change)
    return source if change.ddl is not None else replace(source, db_type=None)


def _is_own(name: ddl.TableName, change: Change) -> bool:
    stated = table_name_of(change.source)
    full = statement_table(name, change.source)
    return stated is not None and (
        stated == full or (is_mysql(change.source.db_type) and fold_case(stated) == fold_case(full))
    )


def _names_of(table: Table) -> set[str]:
    return {column.name for column in table.schema.columns}


_REMEMBERED: Final = 10_000
# A name and its time take about a kilobyte; each further one for longer texts counts as one more.
_NAMES: Final = 50_000
_CHARACTERS: Final = 1_000


class _Statement(NamedTuple):
    """What identifies a statement, wherever it arrives."""

    # When it was made.
    made: tuple[int, ...]
    # A digest of its source and of what it says.
    content: bytes

    @classmethod
    def of(cls, change: Change) -> _Statement:
        if change.ddl is None:
            source, content = change.source, repr((change.op, change.columns, change.key, change.tables))
        else:
            # A producer may send the text once for each of its tables.
            source, content = replace(change.source, table=None), change.ddl
        made = (change.event_time or 0,) if _is_timed(change) else change.position or ()
        return cls(made, _digest(source, content))


def _is_timed(change: Change) -> bool:
    """Return whether a statement is told by its time: Canal numbers batches anew when it delivers them again."""
    return change.event_time is not None and not (is_by_numbers(change) or is_in_log(change))


def _digest(*facts: object) -> bytes:
    return hashlib.sha256(repr(facts).encode(errors="surrogatepass")).digest()


class Deliveries:
    """Remembers the last 10,000 statements that were applied, and the time of the last one about each table's name.

    It takes bounded room, however long texts and names are: of statements there are digests, and of names as many as
    have room.
    """

    def __init__(self) -> None:
        self._places: OrderedDict[bytes, None] = OrderedDict()
        self._applied: list[_Statement] = []
        self._known: set[_Statement] = set()
        self._newest: tuple[int, ...] = ()
        self._repeated: int | None = None
        self._last = WeightedCache(_NAMES)
        self._named: dict[TableName, Key] = {}

    def is_repeated(self, change: Change, key: Key | None) -> bool:
        """Return whether a statement is delivered again."""
        self._named.clear()
        statement = _Statement.of(change)
        if key is not None and change.place is not None and _digest(key, statement) in self._places:
            return True
        if self.is_known(change):
            return is_by_numbers(change) or is_in_log(change) or self._is_in_sequence(statement)
        self._repeated = None
        return False

    def is_known(self, change: Change) -> bool:
        """Return whether a statement with a position, or a time that tells it, reads as one that was applied then."""
        is_numbered = change.position is not None or _is_timed(change)
        return is_numbered and _Statement.of(change) in self._known

    def note(self, change: Change, key: Key | None) -> None:
        """Remember a statement that was applied, as the last one about each name that `is_old` was asked for."""
        for name, time in self._named.items():
            self._last.put(
                name, time, 1 + text_size((name.database, name.schema, name.table, *time_texts(time))) // _CHARACTERS
            )
        self._named.clear()
        statement = _Statement.of(change)
        if key is not None and change.place is not None:
            if len(self._places) >= _REMEMBERED:
                self._places.popitem(last=False)
            self._places[_digest(key, statement)] = None
        if len(self._applied) >= _REMEMBERED:
            self._applied = self._applied[_REMEMBERED // 2 :]
            self._known = set(self._applied)
        self._applied.append(statement)
        self._known.add(statement)
        self._newest = max(self._newest, statement.made)

    def is_old(self, name: TableName, key: Key | None) -> bool:
        """Return whether a statement about a name is older than the last one; if not, `note` makes it the last one."""
        if key is None:
            return False
        # A statement read in a snapshot begins before all else, but was not made before all else.
        time = (1, *key[1:])
        last = self._last.get(name)
        if last is not None and is_before(time, last):
            return True
        self._named[name] = time
        return False

    def _is_in_sequence(self, statement: _Statement) -> bool:
        """Return whether a statement that was applied before is repeated, and not one that only reads the same."""
        begins = [] if self._repeated is None else [self._repeated + 1]
        if statement.made < self._newest:
            begins.append(0)
        for begin in begins:
            if statement in self._applied[begin:]:
                self._repeated = self._applied.index(statement, begin)
                return True
        self._repeated = None
        return statement == self._applied[-1]
