"""A table through its versions and names, and the version that each of its changes belongs to."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from cdcavro.change.model import Column, seen_columns
from cdcavro.change.values.unsigned import may_be_unsigned, unsigned_types, with_unsigned
from cdcavro.errors import SchemaError
from cdcavro.table.beginnings import FIRST, is_again, is_before, is_before_all, is_made_before, last_begun, later_of
from cdcavro.table.columns.column_type import column_type
from cdcavro.table.evolution import column_list
from cdcavro.table.evolution.evolve import by_columns
from cdcavro.table.evolution.explanation import Unexplained, explained
from cdcavro.table.evolution.limits import SharedLimits

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from cdcavro.change.model import Change, Source
    from cdcavro.change.order import Key
    from cdcavro.table.columns.overrides import TypeOverrides
    from cdcavro.table.ddl.steps import Action
    from cdcavro.table.schema import TableSchema

MAX_VERSIONS: Final = 1_000
MAX_FINDINGS: Final = 100
_REMEMBERED: Final = 64


@dataclass(slots=True, eq=False)
class Table:
    """A table through its versions and names.

    Attributes: `number` (int), unique among all tables; `room` (`SharedLimits`), the space left for schemas;
    `versions` (list of `TableSchema`), from the first on; `steps` (list of tuple of str), what led to
    each version; `is_gone` (bool), whether it was dropped; `is_stated` (bool), whether a statement or a
    list of columns has declared which columns it has; `is_written` (bool), whether payloads of it exist;
    `is_used` (bool), whether data is being written with the newest version;
    `unexplained` (`Unexplained`), the columns that came or went without a statement; `findings` (list of
    str), sentences on what its statements left open and how that was decided, at most 100.
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
    _starts: list[Any] = field(default_factory=list)
    _names: list[frozenset[str]] = field(default_factory=list)
    _indexes: dict[column_list.ColumnMarks, list[int]] = field(default_factory=dict)
    _declared: dict[column_list.ColumnMarks, None] = field(default_factory=dict)
    _lists: dict[tuple[Any, ...], column_list.ColumnList] = field(default_factory=dict)
    _ready: dict[tuple[Any, ...], list[int]] = field(default_factory=dict)
    _unsigned: set[str | None] = field(default_factory=set)

    @property
    def schema(self) -> TableSchema:
        """The newest version."""
        return self.versions[-1]

    def append(self, schema: TableSchema, steps: Sequence[str], start: Key | None) -> None:
        """Append the version that holds for changes from `start` on.

        Raises `SchemaError` for more than 1,000 versions, or if no room is left.
        """
        if len(self.versions) >= MAX_VERSIONS:
            raise SchemaError(schema.table.table, f"more than {MAX_VERSIONS} versions")
        self.room.take(schema)
        last = self._starts[-1] if self._starts else FIRST
        self._starts.append(later_of(start, last))
        self.versions.append(schema)
        self.steps.append(tuple(steps))
        self._names.append(frozenset())
        self.is_used = False
        self._enter()

    def state(
        self,
        columns: Sequence[Column],
        source: Source,
        given: TypeOverrides,
        key: Key | None,
        names: Sequence[str] | None = None,
    ) -> TableSchema:
        """Return the version with the columns that a change states, adding one if none has them.

        `names` are those of the key columns, None if unknown. As long as nothing has been written with the
        newest version, it adopts the column types as stated. Raises `SchemaError`, also for a change that
        is older than the newest version and whose columns match no version.
        """
        facts = (tuple(columns), source)
        ready = self._ready.get(facts) if self.is_used else None
        if ready is None:
            self._settle(columns, source, given, key, names)
            self.is_stated = True
            listed = self.listed(columns, source, given)
            ready = self._indexes.get(listed.resolved, [len(self.versions) - 1])
            # A late row may match an earlier version although its types are declared differently; others may not.
            is_clear = listed.declared in self._declared and not may_be_unsigned(columns, self._unsigned)
            if is_clear and len(self._ready) < _REMEMBERED:
                self._ready[facts] = ready
        return self._at(ready, key)

    def ready(self, columns: Sequence[Column], source: Source) -> TableSchema | None:
        """Return the version of a change whatever its time: the only one with its columns, once `state` returned it."""
        indexes = self._ready.get((columns, source)) if self.is_used else None
        return self.versions[indexes[0]] if indexes is not None and len(indexes) == 1 else None

    def extend(self, names: Collection[str], source: Source, given: TypeOverrides, key: Key | None) -> TableSchema:
        """Return the version of a change that declares no columns but has values for these names.

        While nothing has declared the table's columns and no version has all these names, a new version adds them.
        """
        if not self.is_stated and not any(known.issuperset(names) for known in self._names):
            added = [Column(name=name) for name in names if name not in self._names[-1]]
            old = self.schema
            self.append(*by_columns(old, [*column_list.columns_of_version(old), *added], source, given), key)
            self.unexplained.take(old, self.schema)
        return self.having(names, key)

    def having(self, names: Collection[str], key: Key | None) -> TableSchema:
        """Return the version at a change's time, or, if it lacks these columns, the nearest version that has them."""
        everywhere = range(len(self.versions))
        own = everywhere[: last_begun(self._starts, key) + 1]
        if self._names[own[-1]].issuperset(names):
            return self.versions[own[-1]]
        matches = [i for i in everywhere if self._names[i].issuperset(names)]
        return self._at(matches or own, key)

    def has(self, change: Change, given: TypeOverrides) -> bool:
        """Return whether some version has the columns that a row states, or for which it has values."""
        if change.columns is not None:
            is_clear = not may_be_unsigned(change.columns, self._unsigned)
            versions = () if is_clear else self.versions
            stated = {change.columns, *[with_unsigned(change.columns, version.columns) for version in versions]}
            return any(self.listed(columns, change.source, given).resolved in self._indexes for columns in stated)
        return any(names.issuperset(seen_columns(change)) for names in self._names)

    def at(self, columns: Sequence[Column], source: Source, given: TypeOverrides, key: Key | None) -> TableSchema:
        """Return the version that fits the columns a change states and its place in the order. Raises `SchemaError`."""
        listed = self.listed(columns, source, given)
        if listed.resolved not in self._indexes:
            raise column_list.contradiction(listed, self._at(range(len(self.versions)), key))
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
        return is_before(key, self._starts[-1])

    def is_behind(self, key: Key | None) -> bool:
        """Return whether a statement that creates the table came behind its newest version, by its time at least."""
        return is_before_all(key, self._starts[-1])

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
            self.findings.append(finding)

    def use(self, schema: TableSchema) -> None:
        """Note that data is being written with a version: if it is the newest, it no longer changes."""
        self.is_used = self.is_used or schema is self.schema

    def begin_again(self, schema: TableSchema, steps: Sequence[str]) -> None:
        """Replace all versions, with which nothing has been written, by a new first version."""
        start = self._starts[0]
        for part in (self.versions, self.steps, self._starts, self._names, self._indexes, self._declared, self._lists):
            part.clear()
        self.append(schema, steps, start)

    def mark(self) -> tuple[Any, ...]:
        """Return the state that `back` needs to undo everything done to the table from now on."""
        facts = [list(part) for part in (self.versions, self.steps, self._starts, self._names, self.findings)]
        indexes = {marks: list(places) for marks, places in self._indexes.items()}
        flags = self.is_gone, self.is_stated, self.is_used
        return facts, indexes, dict(self._declared), flags, self.unexplained.copy()

    def back(self, mark: tuple[Any, ...]) -> None:
        """Undo everything done since the mark, which can be used again."""
        (versions, steps, starts, names, findings), indexes, declared, flags, unexplained = mark
        self.versions[:], self.steps[:], self.findings[:] = versions, steps, findings
        self._starts, self._names = list(starts), list(names)
        self._indexes = {marks: list(places) for marks, places in indexes.items()}
        self._declared, self.unexplained = dict(declared), unexplained.copy()
        self.is_gone, self.is_stated, self.is_used = flags
        self.room.edits += 1
        self._ready.clear()

    def listed(self, columns: Sequence[Column], source: Source, given: TypeOverrides) -> column_list.ColumnList:
        """Return the `column_list.ColumnList` of a list of columns, with types read as a source means them."""
        facts = (tuple(columns), source)
        listed = self._lists.get(facts)
        if listed is None:
            if len(self._lists) >= _REMEMBERED:
                self._lists.clear()
            known = {column.name: column.given for column in self.schema.columns if column.given is not None}
            marks = []
            for column in columns:
                own = given.of(source, column.name) or known.get(column.name or "")
                marks.append(column_list.mark_of(column.name, column.type, column_type(column, source, given=own).avro))
            listed = self._lists[facts] = column_list.listed_of(marks)
        return listed

    def _at(self, indexes: Sequence[int], key: Key | None) -> TableSchema:
        """Return the last of these versions that had begun by the key's time, or else the first of them."""
        return self.versions[indexes[last_begun([self._starts[index] for index in indexes], key)]]

    def _settle(
        self,
        columns: Sequence[Column],
        source: Source,
        given: TypeOverrides,
        key: Key | None,
        names: Sequence[str] | None,
    ) -> None:
        """Make sure that a version with the stated columns exists."""
        listed = self.listed(columns, source, given)
        is_late = is_made_before(key, self._starts[-1])
        is_known = listed.resolved in self._indexes and (is_late or listed.declared in self._declared)
        is_refined = not self.is_used and self._names[-1] == {column.name for column in columns}
        if not is_known or (
            is_refined
            and not is_late
            and not is_again(key, self._starts[-1])
            and listed != column_list.list_of_version(self.schema)
        ):
            if is_late:
                raise column_list.contradiction(listed, self._at(range(len(self.versions)), key))
            self._take(columns, source, given, key, names)
            self._declared[listed.declared] = None

    def _take(
        self,
        columns: Sequence[Column],
        source: Source,
        given: TypeOverrides,
        key: Key | None,
        names: Sequence[str] | None,
    ) -> None:
        # Rows that do not fit a statement's version were matched with earlier ones, so that version must stay.
        is_new = self.is_used or self._names[-1] != {column.name for column in columns}
        if is_new and len(self.versions) >= MAX_VERSIONS:
            raise SchemaError(self.schema.table.table, f"more than {MAX_VERSIONS} versions")
        old = self.schema
        schema, steps = by_columns(old, columns, source, given, key=names, is_new=is_new)
        if schema is old:
            return
        if is_new:
            self.append(schema, steps, key)
            self.unexplained.take(old, schema)
        else:
            self._replace(schema, steps)

    def _replace(self, schema: TableSchema, steps: Sequence[str]) -> None:
        """Replace the newest version, with which nothing has been written."""
        self.room.take(schema)
        marks = column_list.list_of_version(self.schema).resolved
        self._indexes[marks].remove(len(self.versions) - 1)
        if not self._indexes[marks]:
            del self._indexes[marks]
        self.versions[-1] = schema
        self.steps[-1] += tuple(steps)
        self._enter()

    def _enter(self) -> None:
        """Index the newest version by its columns."""
        own = column_list.list_of_version(self.schema)
        self.room.edits += 1
        self._ready.clear()
        self._names[-1] = frozenset(column.name for column in self.schema.columns)
        self._unsigned.update(unsigned_types(self.schema.columns))
        self._indexes.setdefault(own.resolved, []).append(len(self.versions) - 1)
        self._declared[own.declared] = None
