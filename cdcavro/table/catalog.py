"""Which table bears a name, and bore it at what time: names pass from one table to another."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

from cdcavro.change.order import is_of_before
from cdcavro.errors import CdcAvroError, SchemaError, shown
from cdcavro.table.beginnings import FIRST, is_before, is_before_all, last_begun, later_of, time_of
from cdcavro.table.evolution.limits import SharedLimits
from cdcavro.table.history import Table
from cdcavro.table.names import folded

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from cdcavro.change.model import Change
    from cdcavro.change.order import Key
    from cdcavro.table.ddl.steps import TableName
    from cdcavro.table.schema import TableSchema

MAX_TABLES: Final = 100_000
# How many renames of one time can be undone.
_MOVES: Final = 1_000


class TableCatalog:
    """The tables of a stream by name, over time.

    Attributes: `tables` (list of `Table`), all that ever existed; `room` (`SharedLimits`), which they share.
    """

    def __init__(self) -> None:
        self.tables: list[Table] = []
        self._live: dict[TableName, Table] = {}
        self._entries: dict[TableName, list[tuple[Any, Table | None]]] = {}
        self.room = SharedLimits()
        self._undo: list[Callable[[], None]] = []
        self._alike: dict[TableName, dict[TableName, None]] = {}
        self._seen: set[TableName] = set()
        self._left: dict[TableName, tuple[Key | None, TableName, Any]] = {}

    def live(self, name: TableName) -> Table | None:
        """Return the table that bears a name now, or None."""
        return self._live.get(name)

    def alike(self, name: TableName) -> TableName | None:
        """Return the name that a table bears now and that differs from this one in case only, if it is the only one."""
        names = self._alike.get(folded(name), ())
        return next(iter(names)) if len(names) == 1 else None

    def see(self, name: TableName) -> None:
        """Note that rows spell a table's name like this."""
        self._seen.add(name)

    def unseen_alike(self, name: TableName) -> Table | None:
        """Return the table whose name only statements have spelled, in another case than this name of a row."""
        alike = None if name in self._entries else self.alike(name)
        return None if alike is None or alike in self._seen else self._live[alike]

    def is_late(self, name: TableName, key: Key | None) -> bool:
        """Return whether a time is known to come before the one at which a name got its bearer, or lost it."""
        entries = self._entries.get(name)
        return entries is not None and is_before(key, entries[-1][0])

    def is_behind(self, name: TableName, key: Key | None) -> bool:
        """Return whether a statement that gives a name to a table came behind the rows or statements that gave it one."""
        entries = self._entries.get(name)
        return entries is not None and is_before_all(key, entries[-1][0])

    def names(self) -> list[TableName]:
        """Return the names that tables bear now."""
        return list(self._live)

    def at(self, name: TableName, key: Key | None) -> Table | None:
        """Return the table that bore a name at a time, or else the first that bore it.

        A change that arrived when no table bore the name any more, but was made before that, is delivered
        again, and belongs to the table that bore it then.
        """
        entries = self._entries.get(name)
        if entries is None:
            return None
        place = last_begun([start for start, _ in entries], key) if len(entries) > 1 else 0
        while place and entries[place][1] is None and key is not None and _is_again(key, entries[place][0]):
            place -= 1
        return entries[place][1]

    def only(self, name: TableName) -> Table | None:
        """Return the table that bears a name if no other table ever bore it."""
        entries = self._entries.get(name)
        return entries[0][1] if entries is not None and len(entries) == 1 else None

    def when(self, name: TableName, change: Change) -> tuple[Table | None, Key | None]:
        """Return the table of a change and the change's time."""
        key = time_of(change)
        return self.at(name, key), key

    def create(self, name: TableName, schema: TableSchema, sentence: str, start: Key | None) -> Table:
        """Create a table. Raises `SchemaError` for more than 100,000 tables, or if no room is left for its schema."""
        if len(self.tables) >= MAX_TABLES:
            raise SchemaError(name.table, f"more than {MAX_TABLES} tables")
        table = Table(len(self.tables), self.room)
        table.append(schema, (sentence,), start)
        self.tables.append(table)
        self._undo.append(lambda: self.tables.remove(table))
        self._name(name, table, start)
        return table

    def drop(self, name: TableName, start: Key | None, unseen: str | None = None) -> None:
        """Mark the table that bears a name as gone, and free the name; `unseen` says why, if no statement drops it."""
        table = self._live.get(name)
        if table is not None:
            self.touch(table)
            table.is_gone = True
            if unseen is not None:
                table.find_out(f"is taken for dropped without a statement that says so: {unseen}")
            self._name(name, None, start)

    def move(self, old: TableName, new: TableName, start: Key | None, mark: Any = None) -> None:
        """Rename a table. A table that still bears the new name must have been dropped unseen, and is dropped.

        `mark` is the table's state before it was renamed, which `give_back` restores.
        """
        table = self._live.get(old)
        if table is not None and old != new:
            if any(not _is_same_time(start, left) for left, _, _ in self._left.values()):
                self._left.clear()
            if mark is not None and new not in self._live and len(self._left) < _MOVES:
                self._left[old] = start, new, mark
            self.drop(new, start, f"{shown(old.table)} was renamed to {shown(new.table)}")
            self._name(old, None, start)
            self._name(new, table, start)

    def give_back(self, name: TableName, start: Key | None) -> Table | None:
        """Undo that a table was renamed away from a name at this very time; return the table, or None if none was."""
        left, new, mark = self._left.pop(name, (None, name, None))
        table = self._live.get(new)
        if mark is None or table is None or table.is_used or not _is_same_time(start, left):
            return None
        moved = table.mark()
        table.back(mark)
        entries = [self._entries[one].pop() for one in (name, new)]
        self._set(name, table)
        self._set(new, None)

        def undo() -> None:
            table.back(moved)
            for one, entry in zip((name, new), entries, strict=True):
                self._entries.setdefault(one, []).append(entry)
                self._set(one, entry[1])

        self._undo.append(undo)
        if not self._entries[new]:
            del self._entries[new]
        return table

    def touch(self, table: Table) -> None:
        """Record the state of a table before it is changed, so that `whole` can restore it."""
        mark = table.mark()
        self._undo.append(lambda: table.back(mark))

    @contextmanager
    def whole(self) -> Iterator[None]:
        """Undo everything done in the `with` block if it ends in a `CdcAvroError`."""
        self._undo.clear()
        # Without a time, only the parts of one statement are of one time.
        self._left = {name: left for name, left in self._left.items() if left[0] is not None}
        try:
            yield
        except CdcAvroError:
            for undo in reversed(self._undo):
                undo()
            raise
        finally:
            self._undo.clear()

    def _name(self, name: TableName, table: Table | None, start: Key | None) -> None:
        entries, before = self._entries.setdefault(name, []), self._live.get(name)
        last = entries[-1][0] if entries else FIRST
        entries.append((later_of(start, last), table))
        self._set(name, table)
        self._undo.append(lambda: self._unname(name, before))

    def _unname(self, name: TableName, before: Table | None) -> None:
        self._entries[name].pop()
        if not self._entries[name]:
            del self._entries[name]
        self._set(name, before)

    def _set(self, name: TableName, table: Table | None) -> None:
        self.room.edits += 1
        if table is None:
            self._live.pop(name, None)
            self._seen.discard(name)
            self._alike.get(folded(name), {}).pop(name, None)
        else:
            self._live[name] = table
            self._alike.setdefault(folded(name), {})[name] = None


def _is_again(key: Key, start: Any) -> bool:
    return start != FIRST and is_of_before(key, start)


def _is_same_time(one: Key | None, other: Key | None) -> bool:
    """Return whether two statements are parts of one: their times are equal, or their numbers, wherever they arrived."""
    return one == other or (one is not None and other is not None and one[1] == other[1] != ())
