"""A table through its versions and names, and the version that each of its changes belongs to."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from cdcavro.change.connect_values import may_be_unsigned, unsigned_types, with_unsigned
from cdcavro.change.model import Column, seen_columns
from cdcavro.errors import SchemaError
from cdcavro.exact.caching import text_size
from cdcavro.table.beginnings import (
    FIRST,
    is_again,
    is_before,
    is_before_all,
    is_made_before,
    last_begun,
    later_of,
    texts_of,
)
from cdcavro.table.evolution import column_list
from cdcavro.table.evolution.evolve import by_columns
from cdcavro.table.evolution.explanation import Unexplained, explained
from cdcavro.table.evolution.limits import LISTED, READY, SharedLimits

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from cdcavro.change.model import Change, Source
    from cdcavro.change.order import Key
    from cdcavro.table.columns.overrides import TypeOverrides
    from cdcavro.table.ddl.steps import Action
    from cdcavro.table.schema import TableSchema

    _Columns = Sequence[Column]
    _Names = Sequence[str] | None

MAX_VERSIONS: Final = 1_000
MAX_FINDINGS: Final = 100
_NONE: Final[frozenset[str | None]] = frozenset()
OBJECTS: Final = 2_000  # bytes that a table takes beside its names and versions
_DIGEST: Final = 200


@dataclass(slots=True, eq=False)
class Table:
    """A table through its versions and names.

    Attributes: `number` (int), unique among all tables; `room` (`SharedLimits`), the space left for schemas;
    `versions` (list of `TableSchema`), from the first on; `steps` (list of tuple of str), what led to each version;
    `starts` (list), from when each holds; `is_gone` (bool), whether it was dropped; `is_stated` (bool), whether a
    statement or a list of columns has declared which columns it has; `is_written` (bool), whether payloads of it exist;
    `is_used` (bool), whether data is being written with the newest version; `unexplained` (`Unexplained`), the columns
    that came or went without a statement; `findings` (list of str), sentences on what its statements left open and how
    that was decided, at most 100.
    """

    number: int
    room: SharedLimits = field(default_factory=SharedLimits, repr=False)
    versions: list[TableSchema] = field(default_factory=list)
    steps: list[tuple[str, ...]] = field(default_factory=list)
    is_gone: bool = False
    is_stated: bool = False
    is_written: bool = False
    is_used: bool = False
    unexplained: Unexplained = field(default_factory=Unexplained)
    findings: list[str] = field(default_factory=list)
    starts: list[Any] = field(default_factory=list)
    _indexes: dict[bytes, tuple[int, ...]] = field(default_factory=dict)
    _declared: dict[bytes, None] = field(default_factory=dict)
    _unsigned: frozenset[str | None] = _NONE
    # Unlike a count of its own, it never comes again, also after edits that were undone.
    _edit: int = 0

    @property
    def schema(self) -> TableSchema:
        """The newest version."""
        return self.versions[-1]

    def check_room(self) -> None:
        """Check that there may be another version, before anything is done for it. Raises `SchemaError`."""
        if len(self.versions) >= MAX_VERSIONS:
            raise SchemaError(self.schema.table.table, f"more than {MAX_VERSIONS} versions")
        if self.versions:  # to make a version takes far more than to refuse one
            self.room.check(self.schema.size, self.schema.table.table)

    def append(
        self, schema: TableSchema, steps: Sequence[str], start: Key | None, unexplained: Unexplained | None = None
    ) -> None:
        """Append the version that holds from `start` on, and what is unexplained with it. Raises `SchemaError`."""
        self.check_room()
        known = self.unexplained if unexplained is None else unexplained
        texts = (*steps, *texts_of(start), *unsigned_types(schema.columns).keys() - self._unsigned)
        self.room.take(schema, texts, known.size - self.unexplained.size)
        self.unexplained = known
        last = self.starts[-1] if self.starts else FIRST
        self.starts.append(later_of(start, last))
        self.versions.append(schema)
        self.steps.append(tuple(steps))
        self.is_used = False
        self._enter()

    def state(
        self, columns: _Columns, source: Source, given: TypeOverrides, key: Key | None, names: _Names = None
    ) -> TableSchema:
        """Return the version with the columns that a change states, adding one if none has them.

        `names` are those of the key columns, None if unknown. As long as nothing has been written with the
        newest version, it adopts the column types as stated. Raises `SchemaError`, also for a change that
        is older than the newest version and whose columns match no version.
        """
        columns = tuple(columns)
        ready = self._ready(columns, source)
        if ready is None:
            self._settle(columns, source, given, key, names)
            self.is_stated = True
            listed = self.listed(columns, source, given)
            ready = self._indexes.get(listed.resolved, (len(self.versions) - 1,))
            # A late row may match an earlier version although its types are declared differently; others may not.
            if listed.declared in self._declared and not may_be_unsigned(columns, self._unsigned):
                self.room.remember(READY, self._edit, columns, source, ready)
        return self._at(ready, key)

    def ready(self, columns: Sequence[Column], source: Source) -> TableSchema | None:
        """Return the version of a change whatever its time: the only one with its columns, once `state` returned it."""
        indexes = self._ready(tuple(columns), source)
        return self.versions[indexes[0]] if indexes is not None and len(indexes) == 1 else None

    def extend(self, names: Collection[str], source: Source, given: TypeOverrides, key: Key | None) -> TableSchema:
        """Return the version of a change with values for these names, adding one if none has them and none is declared."""
        if not self.is_stated and not any(version.names.issuperset(names) for version in self.versions):
            old = self.schema
            added = [Column(name=name) for name in names if name not in old.names]
            self.check_room()
            schema, steps = by_columns(old, [*column_list.columns_of_version(old), *added], source, given)
            self.append(schema, steps, key, self.unexplained.taken(old, schema))
        return self.having(names, key)

    def having(self, names: Collection[str], key: Key | None) -> TableSchema:
        """Return the version at a change's time, or, if it lacks these columns, the nearest version that has them."""
        everywhere = range(len(self.versions))
        own = everywhere[: last_begun(self.starts, key) + 1]
        if self.versions[own[-1]].names.issuperset(names):
            return self.versions[own[-1]]
        matches = [i for i in everywhere if self.versions[i].names.issuperset(names)]
        return self._at(matches or own, key)

    def has(self, change: Change, given: TypeOverrides) -> bool:
        """Return whether some version has the columns that a row states, or for which it has values."""
        if change.columns is not None:
            is_clear = not may_be_unsigned(change.columns, self._unsigned)
            versions = () if is_clear else self.versions
            stated = {change.columns, *[with_unsigned(change.columns, version.columns) for version in versions]}
            return any(self.listed(columns, change.source, given).resolved in self._indexes for columns in stated)
        names = seen_columns(change)
        return any(version.names.issuperset(names) for version in self.versions)

    def at(self, columns: Sequence[Column], source: Source, given: TypeOverrides, key: Key | None) -> TableSchema:
        """Return the version that fits the columns a change states and its place in the order. Raises `SchemaError`."""
        listed = self.listed(columns, source, given)
        if listed.resolved not in self._indexes:
            raise self._contradiction(columns, source, given, key)
        return self._at(self._indexes[listed.resolved], key)

    def with_unsigned(self, columns: tuple[Column, ...], key: Key | None) -> tuple[Column, ...]:
        """Return the columns of a change, plain 64-bit integers being unsigned where the version of its time says so."""
        if not may_be_unsigned(columns, self._unsigned):
            return columns
        return with_unsigned(columns, self.having([column.name for column in columns if column.name], key).columns)

    def is_as(self, columns: Sequence[Column], source: Source, given: TypeOverrides) -> bool:
        """Return whether the newest version has exactly these columns."""
        return self.listed(columns, source, given) == column_list.list_of_version(self.schema)

    def is_late(self, key: Key | None) -> bool:
        """Return whether a time is known to come before the newest version."""
        return is_before(key, self.starts[-1])

    def is_behind(self, key: Key | None) -> bool:
        """Return whether a statement that creates the table came behind its newest version, by its time at least."""
        return is_before_all(key, self.starts[-1])

    def explain(self, actions: Sequence[Action], source: Source, given: TypeOverrides, start: Key | None) -> None:
        """Take what the actions of a statement explain about columns that came or went before it. Raises `SchemaError`."""
        is_new = self.is_used or self.is_written
        schema, steps = explained(self.schema, actions, self.unexplained, source, given, is_new=is_new)
        if not steps:
            return
        if is_new:
            self.append(schema, steps, start)
        else:
            self._replace(schema, steps)

    def find_out(self, finding: str) -> None:
        """Note a finding, once."""
        if finding not in self.findings and len(self.findings) < MAX_FINDINGS:
            self.room.reserve(text_size([finding]), self.schema.table.table)
            self.findings.append(finding)

    def use(self, schema: TableSchema) -> None:
        """Note that data is being written with a version: if it is the newest, it no longer changes."""
        self.is_used = self.is_used or schema is self.schema

    def begin_again(self, schema: TableSchema, steps: Sequence[str]) -> None:
        """Replace all versions, with which nothing has been written, by a new first version."""
        start = self.starts[0]
        for part in (self.versions, self.steps, self.starts, self._indexes, self._declared):
            part.clear()
        self.append(schema, steps, start)

    def mark(self) -> tuple[Any, ...]:
        """Return the state that `back` needs to undo everything done to the table from now on."""
        facts = [list(part) for part in (self.versions, self.steps, self.starts, self.findings)]
        flags = self.is_gone, self.is_stated, self.is_used
        return facts, dict(self._indexes), dict(self._declared), flags, (self.unexplained.copy(), self._edit)

    def back(self, mark: tuple[Any, ...]) -> None:
        """Undo everything done since the mark, which can be used again."""
        (versions, steps, starts, findings), indexes, declared, flags, (unexplained, edit) = mark
        self.versions[:], self.steps[:], self.findings[:] = versions, steps, findings
        self.starts, self._indexes = list(starts), dict(indexes)
        self._declared, self.unexplained = dict(declared), unexplained.copy()
        self.is_gone, self.is_stated, self.is_used = flags
        if self._edit != edit:
            self._edited()

    def listed(self, columns: Sequence[Column], source: Source, given: TypeOverrides) -> column_list.ColumnList:
        """Return the `column_list.ColumnList` of a list of columns, with types read as a source means them."""
        columns = tuple(columns)
        listed: column_list.ColumnList | None = self.room.recall(LISTED, self._edit, columns, source)
        if listed is None:
            listed = column_list.listed_of(column_list.marks_of(columns, source, given, self.schema))
            self.room.remember(LISTED, self._edit, columns, source, listed)
        return listed

    def _ready(self, columns: tuple[Column, ...], source: Source) -> tuple[int, ...] | None:
        """Return the places of the versions that the columns of a change fit, once `state` returned one of them."""
        return self.room.recall(READY, self._edit, columns, source) if self.is_used else None

    def _edited(self) -> None:
        self.room.edits += 1
        self._edit = self.room.edits

    def _at(self, indexes: Sequence[int], key: Key | None) -> TableSchema:
        """Return the last of these versions that had begun by the key's time, or else the first of them."""
        return self.versions[indexes[last_begun([self.starts[index] for index in indexes], key)]]

    def _settle(self, columns: _Columns, source: Source, given: TypeOverrides, key: Key | None, names: _Names) -> None:
        """Make sure that a version with the stated columns exists."""
        listed = self.listed(columns, source, given)
        is_late = is_made_before(key, self.starts[-1])
        is_known = listed.resolved in self._indexes and (is_late or listed.declared in self._declared)
        is_refined = not self.is_used and self.schema.names == {column.name for column in columns}
        if not is_known or (
            is_refined
            and not is_late
            and not is_again(key, self.starts[-1])
            and listed != column_list.list_of_version(self.schema)
        ):
            if is_late:
                raise self._contradiction(columns, source, given, key)
            self._take(columns, source, given, key, names)
            self.room.reserve(_DIGEST, self.schema.table.table)
            self._declared[listed.declared] = None

    def _contradiction(self, columns: _Columns, source: Source, given: TypeOverrides, key: Key | None) -> SchemaError:
        own = self._at(range(len(self.versions)), key)
        return column_list.contradiction(column_list.marks_of(columns, source, given, self.schema), own)

    def _take(self, columns: _Columns, source: Source, given: TypeOverrides, key: Key | None, names: _Names) -> None:
        # Rows that do not fit a statement's version were matched with earlier ones, so that version must stay.
        old, is_new = self.schema, self.is_used or self.schema.names != {column.name for column in columns}
        if is_new:
            self.check_room()
        schema, steps = by_columns(old, columns, source, given, key=names, is_new=is_new)
        if is_new and schema is not old:
            self.append(schema, steps, key, self.unexplained.taken(old, schema))
        elif schema is not old:
            self._replace(schema, steps)

    def _replace(self, schema: TableSchema, steps: Sequence[str]) -> None:
        """Replace the newest version, with which nothing has been written."""
        self.room.take(schema, (*steps, *unsigned_types(schema.columns).keys() - self._unsigned))
        self.room.left += self.schema.size
        marks, last = column_list.list_of_version(self.schema).resolved, len(self.versions) - 1
        others = tuple(place for place in self._indexes.pop(marks) if place != last)
        self._indexes |= {marks: others} if others else {}
        self.versions[-1] = schema
        self.steps[-1] += tuple(steps)
        self._enter()

    def _enter(self) -> None:
        """Index the newest version by its columns."""
        own, last = column_list.list_of_version(self.schema), len(self.versions) - 1
        self._edited()
        new = unsigned_types(self.schema.columns).keys() - self._unsigned
        self._unsigned = self._unsigned | new if new else self._unsigned
        self._indexes[own.resolved] = (*self._indexes.get(own.resolved, ()), last)
        self._declared[own.declared] = None
