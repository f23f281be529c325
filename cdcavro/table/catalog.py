"""A catalog of tables by name: which table bears a name, and bore it at what time. Names pass from table to table.

Beside it are the statements about them that were not understood.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final, NamedTuple, cast

from cdcavro.change.model import DML, names_of_columns
from cdcavro.change.order import began_together, precedes
from cdcavro.errors import CdcAvroError, SchemaError, plain, shown
from cdcavro.exact.caching import text_size
from cdcavro.table.columns.format_rules import RULES, USUAL
from cdcavro.table.ddl.parse import sentence
from cdcavro.table.ddl.steps import TableName
from cdcavro.table.evolution.evolve import SharedLimits, create_table
from cdcavro.table.history import (
    FIRST,
    OBJECTS,
    StatementTime,
    Table,
    is_before,
    is_before_all,
    is_made_before,
    is_repeat,
    last_arrived,
    last_begun,
    later_of,
    time_of,
)
from cdcavro.table.table_names import fold_case, table_name_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from cdcavro.change.model import Change, Column, Source
    from cdcavro.change.order import Key
    from cdcavro.table.columns.column_type import TypeOverrides

    _Place = tuple[str | None, ...]

_MOVES: Final = 100  # renames of one time that can be undone
_COPIES: Final = 8  # of a table's name at most: as it is, in lower case, or escaped
_SMALLEST: Final = 700  # bytes of a version


class TableCatalog:
    """The tables of a stream by name, over time.

    Fields:

    * `tables` (list of `Table`), all that ever existed
    * `room` (`SharedLimits`), which they share
    """

    def __init__(self, given: TypeOverrides) -> None:
        self._given = given
        self.tables: list[Table] = []
        self.room = SharedLimits()
        # The table that bears a name now.
        self._bearers: dict[TableName, Table] = {}
        # Of each name, the times at which it passed to a table, or to none.
        self._entries: dict[TableName, list[tuple[Any, Table | None]]] = {}
        # The names that tables bear now, by their spelling in lower case.
        self._spellings: dict[TableName, dict[TableName, None]] = {}
        # The names that rows have spelled.
        self._seen: set[TableName] = set()
        # The names in each database and schema, by its spelling in lower case and its own.
        self._within: dict[_Place, dict[_Place, dict[TableName, None]]] = {}
        # Of each name that a table lost in the last renaming, its time, the new name, the table's state before, and whether
        # rows had spelled it.
        self._moves: dict[TableName, tuple[Key | None, TableName, Any, bool]] = {}
        # The tables that statements of the last such time dropped, by name, with that time.
        self._dropped: dict[TableName, tuple[Key | None, Table]] = {}
        # The last spelling of each name that was lost at the last such time, by the spelling in lower case, with that time.
        self._lost: dict[TableName, tuple[Key | None, TableName]] = {}
        # What undoes a statement's edits, from last to first, and the numbers of the tables whose states it restores.
        self._undo: list[Callable[[], object]] = []
        self._saved: set[int] = set()

    def bearer(self, name: TableName) -> Table | None:
        """Return the table that bears a name now, or None."""
        return self._bearers.get(name)

    def other_spelling(self, name: TableName) -> TableName | None:
        """Return the name that a table bears now and that differs from this one in case only, if it is the only one."""
        names = self._spellings.get(fold_case(name), ())
        return next(iter(names)) if len(names) == 1 else None

    def note_spelling(self, name: TableName) -> None:
        """Note that rows spell a table's name like this."""
        self._seen.add(name)

    def table_of_unseen_spelling(self, name: TableName) -> Table | None:
        """Return the table whose name only statements have spelled, in another case than this name of a row."""
        alike = None if name in self._entries else self.other_spelling(name)
        return None if alike is None or alike in self._seen else self._bearers[alike]

    def known_spelling(
        self, name: TableName, columns: set[str | None], start: Key | None, *, is_kept: bool
    ) -> TableName:
        """Return the name, in another case, of the table that a statement creates again, or else the statement's name.

        A table that rows spell in another case is that table only if the statement is late or has IF NOT EXISTS: a
        server to which case means nothing would have refused any other statement.
        """
        alike = self.other_spelling(name)
        table = None if alike is None else self._bearers[alike]
        if alike is None or table is None or {column.name for column in table.schema.columns} != columns:
            return name
        return alike if is_kept or alike not in self._seen or table.is_behind(start) else name

    def is_late(self, name: TableName, key: Key | None) -> bool:
        """Return whether a time is known to come before the one at which a name got its bearer, or lost it."""
        entries = self._entries.get(name)
        return entries is not None and is_before(key, entries[-1][0])

    def is_behind(self, name: TableName, key: Key | None) -> bool:
        """Return whether a statement that gives a table a name came behind the rows or statements that gave it one."""
        entries = self._entries.get(name)
        return entries is not None and is_before_all(key, entries[-1][0])

    def names_in(self, database: TableName, *, is_folded: bool) -> list[TableName]:
        """Return the names of the tables in a database, or in its schema if one is named.

        If `is_folded`, a database without tables may be the one whose name differs in case only.
        """
        place = _places(database)[database.schema is not None]
        spellings = self._within.get(_fold_place(place), {})
        names = spellings.get(place)
        if names is None and is_folded and len(spellings) == 1:
            (names,) = spellings.values()
        return list(names or ())

    def bearer_at(self, name: TableName, key: Key | None, change: Change) -> Table | None:
        """Return the table that bore a name when a row was made, or else the first that bore it.

        A change that arrived when no table bore the name any more, or another did, but was made before
        that, is delivered again, and belongs to the table that bore it then.
        """
        entries = self._entries.get(name)
        if entries is None or len(entries) == 1:
            return None if entries is None else entries[0][1]
        starts = [start for start, _ in entries]
        place, arrived = last_begun(starts, key), last_arrived(starts, key)
        while place and entries[place][1] is None and is_repeat(key, starts[place]):
            place -= 1
        last, bearer = entries[arrived][1], entries[place][1]
        if last is None or bearer is last:
            is_fitting = last is None or last.fits(change, self._given)
            # Nothing may say whether a row came before a DROP of its second.
            is_open = bearer is None and change.op in DML and not _is_behind(starts[arrived], key)
            is_sought = is_open or not is_fitting
            return self._of_second(entries[: arrived + 1], key, change, bearer) if is_sought else bearer
        if bearer is None or (last.fits(change, self._given) and not bearer.fits(change, self._given)):
            return last
        is_renamed = last.versions[0].table != name and _is_same_time(starts[arrived], starts[arrived - 1])
        if is_renamed and last.fits(change, self._given):
            # Such a row may have waited for the locks of a tool that swaps a table for its copy.
            last.add_finding(
                f"rows that began before it was renamed to {shown(name.table)} came behind that: taken for its own"
            )
            return last
        return bearer

    def _of_second(
        self, entries: list[tuple[Any, Table | None]], key: Key | None, change: Change, bearer: Table | None
    ) -> Table | None:
        """Return a table that has the row's columns and lost the name in the row's second, or else `bearer`."""
        for place in range(len(entries) - 1, 0, -1):
            table = entries[place - 1][1]
            start = entries[place][0]
            if key is None or not (isinstance(start, StatementTime) and began_together(key, cast("Key", start))):
                break
            if table is not None and table.fits(change, self._given):
                return table
        return bearer

    def only_bearer(self, name: TableName) -> Table | None:
        """Return the table that bears a name if no other table ever bore it."""
        entries = self._entries.get(name)
        return entries[0][1] if entries is not None and len(entries) == 1 else None

    def bearer_and_time(self, name: TableName, change: Change) -> tuple[Table | None, Key | None]:
        """Return the table of a change and the change's time."""
        key = time_of(change)
        return self.bearer_at(name, key, change), key

    def all_bearers(self, name: TableName) -> list[Table]:
        """Return the tables that bear a name or bore it once, or the one that only statements have spelled otherwise."""
        found = [table for _, table in self._entries.get(name, ()) if table is not None]
        alike = self.table_of_unseen_spelling(name)
        return found if alike is None else [alike]

    def create(
        self, name: TableName, columns: Sequence[Column], key: Sequence[str], source: Source, start: Key | None
    ) -> Table:
        """Create a table. Raises `SchemaError`, and for want of room before anything is made of its columns."""
        self.room.reserve(OBJECTS + _COPIES * text_size((name.database, name.schema, name.table)), name.table)
        self.room.check(_SMALLEST, name.table)
        table = Table(len(self.tables), self.room)
        table.append(create_table(name, columns, key, source, self._given), (sentence(name, columns),), start)
        self.tables.append(table)
        self._undo.append(self.tables.pop)
        self._name(name, table, start)
        return table

    def drop(self, name: TableName, start: Key | None, unseen: str | None = None) -> None:
        """Mark the table that bears a name as gone, and free the name; `unseen` says why, if no statement drops it."""
        table = self._bearers.get(name)
        if table is not None:
            self.save(table)
            table.is_gone = True
            if unseen is not None:
                table.add_finding(f"is taken for dropped without a statement that says so: {unseen}")
            if self._dropped and not _is_same_time(start, next(iter(self._dropped.values()))[0]):
                self._dropped.clear()
            if len(self._dropped) < _MOVES:
                self._dropped[name] = start, table
            self._name(name, None, start)

    def dropped_now(self, name: TableName, start: Key | None) -> Table | None:
        """Return the table that lost a name at this very time, as it was dropped; None if no table did."""
        time, table = self._dropped.get(name, (None, None))
        is_dropped = table is not None and table.is_gone and name not in self._bearers
        return table if is_dropped and start is not None and _is_same_time(start, time) else None

    def move_dropped(self, name: TableName, new: TableName) -> None:
        """Rename a table that `dropped_now` returns."""
        self._dropped[new] = dropped = self._dropped.pop(name)
        self._undo.append(lambda: self._dropped.update({name: self._dropped.pop(new, dropped)}))

    def lost_spelling(self, name: TableName, start: Key | None) -> TableName:
        """Return the name that a table lost at this very time and that differs from this one in case only, or this one."""
        time, lost = self._lost.get(fold_case(name), (None, name))
        own = [names[name][0] for names in (self._moves, self._dropped) if name in names]
        is_lost = start is not None and _is_same_time(start, time)
        return lost if is_lost and not any(_is_same_time(start, one) for one in own) else name

    def has_rows(self, name: TableName, start: Key | None) -> bool:
        """Return whether rows come of the table that bears a name, or was renamed away from it at this very time.

        They have come, or will, if they are in other partitions: the table was created in the stream.
        """
        time, new, _, is_seen = self._moves.get(name, (None, name, None, False))
        is_moved = name in self._moves and _is_same_time(start, time)
        own = new if is_moved else name
        table = self._bearers.get(own)
        is_known = own in self._seen or (is_moved and is_seen)
        return table is not None and (table.is_from_birth or table.is_written or is_known)

    def move(self, old: TableName, new: TableName, start: Key | None, snapshot: Any = None) -> None:
        """Rename a table. A table that still bears the new name must have been dropped unseen, and is dropped.

        `snapshot` is the table's state before it was renamed, which `undo_move` restores.
        """
        table = self._bearers.get(old)
        if table is not None and old != new:
            # All of them have one time.
            if self._moves and not _is_same_time(start, next(iter(self._moves.values()))[0]):
                self._moves.clear()
            if snapshot is not None and new not in self._bearers and len(self._moves) < _MOVES:
                self._moves[old] = start, new, snapshot, old in self._seen
            self.drop(new, start, f"{shown(old.table)} was renamed to {shown(new.table)}")
            self._name(old, None, start)
            self._name(new, table, start)

    def undo_move(self, name: TableName, start: Key | None) -> Table | None:
        """Undo that a table was renamed away from a name at this very time; return the table, or None if none was."""
        time, new, snapshot, is_seen = self._moves.pop(name, (None, name, None, False))
        table = self._bearers.get(new)
        if snapshot is None or table is None or table.is_used or not _is_same_time(start, time):
            return None
        renamed_state = table.snapshot()
        table.restore(snapshot)
        entries = [self._entries[spelling].pop() for spelling in (name, new)]
        seen = self._seen & {name, new}
        self._set(name, table)
        self._set(new, None)
        self._seen |= {name} if is_seen else set()

        def undo() -> None:
            table.restore(renamed_state)
            for spelling, entry in zip((name, new), entries, strict=True):
                self._entries.setdefault(spelling, []).append(entry)
                self._set(spelling, entry[1])
            self._seen |= seen

        self._undo.append(undo)
        if not self._entries[new]:
            del self._entries[new]
        return table

    def save(self, table: Table) -> None:
        """Record the state of a table before it is first changed, so that `transaction` can restore it."""
        if table.number not in self._saved:
            self._saved.add(table.number)
            snapshot = table.snapshot()
            self._undo.append(lambda: table.restore(snapshot))

    @contextmanager
    def transaction(self, *, is_trial: bool = False) -> Iterator[None]:
        """Undo everything done in the `with` block if it ends in a `CdcAvroError`, or if this is only a trial."""
        self._undo.clear()
        self._saved.clear()
        self.room.begin()
        left, characters = self._moves, self.room.left
        # Without a time, only the parts of one statement are of one time.
        self._moves = {name: left for name, left in self._moves.items() if left[0] is not None}
        is_undone = is_trial
        try:
            yield
        except CdcAvroError:
            is_undone = True
            raise
        finally:
            if is_undone:
                for undo in reversed(self._undo):
                    undo()
                self._moves, self.room.left = left, characters
            self._undo.clear()
            self.room.end()

    def _name(self, name: TableName, table: Table | None, start: Key | None) -> None:
        entries, before = self._entries.setdefault(name, []), self._bearers.get(name)
        is_seen = name in self._seen
        last = entries[-1][0] if entries else FIRST
        entries.append((later_of(start, last), table))
        self._set(name, table)
        if table is None:
            self._note_lost(name, start)
        self._undo.append(lambda: self._unname(name, before, is_seen=is_seen))

    def _note_lost(self, name: TableName, start: Key | None) -> None:
        if self._lost and not _is_same_time(start, next(iter(self._lost.values()))[0]):
            self._lost.clear()
        if len(self._lost) < _MOVES:
            self._lost[fold_case(name)] = start, name

    def _unname(self, name: TableName, before: Table | None, *, is_seen: bool) -> None:
        self._entries[name].pop()
        if not self._entries[name]:
            del self._entries[name]
        self._set(name, before)
        if is_seen:
            self._seen.add(name)

    def _set(self, name: TableName, table: Table | None) -> None:
        self.room.edits += 1
        if table is None:
            self._bearers.pop(name, None)
            self._seen.discard(name)
            self._spellings.get(fold_case(name), {}).pop(name, None)
            for place in _places(name):
                spellings = self._within.get(_fold_place(place), {})
                spellings.get(place, {}).pop(name, None)
                if not spellings.get(place):
                    spellings.pop(place, None)
        else:
            self._bearers[name] = table
            self._spellings.setdefault(fold_case(name), {})[name] = None
            for place in _places(name):
                self._within.setdefault(_fold_place(place), {}).setdefault(place, {})[name] = None


class _Refusal(NamedTuple):
    text: str
    start: Any


class Refusals:
    """The last statement about each table that was not understood, until another one states the columns of the table.

    It is kept with the table if there is one, else with the name that it may have created.
    """

    def __init__(self, tables: TableCatalog) -> None:
        self._tables = tables
        self._of: dict[int | TableName, _Refusal] = {}

    def note(self, change: Change, start: Key | None) -> None:
        """Note a statement that was not understood. Raises `SchemaError` for want of room."""
        refusal = _Refusal(shown(change.ddl or ""), FIRST if start is None else start)
        for name in _names_of_tables(change):
            own = self._own(name, self._tables.bearer(name))
            if own not in self._of:
                self._tables.room.reserve(text_size([name.database, name.schema, name.table, refusal.text]), name.table)
            if own not in self._of or self._of[own].text != refusal.text:
                self._of[own] = refusal
                self._tables.room.edits += 1

    def release(self, change: Change) -> None:
        """Forget what was not understood of a table about which a statement says all: its columns."""
        name = table_name_of(change.source) if self._of and change.columns is not None else None
        if name is not None and self._of.pop(self._own(name, self._tables.bearer(name)), None) is not None:
            self._tables.room.edits += 1

    def check(
        self, change: Change, name: TableName, table: Table | None, key: Key | None, given: TypeOverrides
    ) -> None:
        """Raise `SchemaError`, which names the statement, for a row behind it whose columns can only be guessed.

        That is one with columns that its table did not have, unless it states their types as its database does.
        """
        refusal = self._of.get(self._own(name, table)) if self._of else None
        if refusal is None or is_made_before(key, refusal.start) or _states_types(change):
            return
        if table is None or (not table.fits(change, given) and (table.is_used or not _has_own_names(table, change))):
            raise SchemaError(
                name.table,
                f"the row has columns that are not known, behind a statement that is not understood: {refusal.text}",
            )

    def _own(self, name: TableName, table: Table | None) -> int | TableName:
        return name if table is None else table.number


def _names_of_tables(change: Change) -> list[TableName]:
    """Return the names of the tables that a message says its statement is about, those before a renaming included."""
    stated = table_name_of(change.source)
    found: dict[TableName, None] = {} if stated is None else {stated: None}
    for table in change.tables or ():
        names = [(table.old_database, table.old_schema, table.old_table), (table.database, table.schema, table.table)]
        found |= {TableName(database, schema, table): None for database, schema, table in names if table}
    return list(found)


def _states_types(change: Change) -> bool:
    """Return whether a row states its columns with the types that its database declares, not those of its format."""
    columns, is_connect = change.columns, RULES.get(change.source.format or "", USUAL).is_connect
    return columns is not None and not is_connect and all(column.type is not None for column in columns)


def _has_own_names(table: Table, change: Change) -> bool:
    if change.columns is None:
        return table.schema.names.issuperset(names_of_columns(change))
    return table.schema.names == {column.name for column in change.columns}


def _places(name: TableName) -> tuple[_Place, _Place]:
    """Return the database that a name is in, and its schema."""
    return (name.database,), (name.database, name.schema)


def _fold_place(place: _Place) -> _Place:
    return tuple(part and part.lower() for part in place)


def _is_behind(start: Any, key: Key | None) -> bool:
    """Return whether a change is known to come behind a beginning, or the beginning is no statement's."""
    return key is None or not isinstance(start, StatementTime) or precedes(cast("Key", start), key) is True


def _is_same_time(one: Key | None, other: Key | None) -> bool:
    """Return whether two statements are parts of one: their times or numbers are equal, wherever they arrived."""
    return one == other or (one is not None and other is not None and one[1] == other[1] != ())


_SHOWN: Final = 20
_NO_KEY: Final = (
    "no primary key is known, so payloads have no key and a merge cannot tell rows apart:"
    " neither a message nor a statement nor a Kafka record's key with the row's values names one"
)


def notes_of(tables: Iterable[Table]) -> list[str]:
    """Return sentences about tables: on those without a key, on types that are not as declared, and on statements."""
    known = list(tables)
    keyless = [plain(table.schema.table.table) for table in known if table.schema.key is None]
    more = f" and {len(keyless) - _SHOWN:,} more" if len(keyless) > _SHOWN else ""
    keys = [f"{', '.join(keyless[:_SHOWN])}{more}: {_NO_KEY}"] if keyless else []
    findings = [f"{plain(table.schema.table.table)}: {finding}" for table in known for finding in table.findings]
    types = [
        f"{plain(table.schema.table.table)}: {plain(column.name)}: {column.note}"
        for table in known
        for column in table.schema.columns
        if column.note is not None
    ]
    return keys + types + findings
