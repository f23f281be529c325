"""A table through its versions and names, and which version a change of it belongs to."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from cdcavro.change.model import Column
from cdcavro.errors import SchemaError, shown
from cdcavro.table.columns.column_type import column_type
from cdcavro.table.evolution.column_list import ColumnList, ColumnMarks, listed_of, mark_of
from cdcavro.table.evolution.evolve import by_columns

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from cdcavro.change.model import Source
    from cdcavro.change.order import Key
    from cdcavro.table.columns.overrides import TypeOverrides
    from cdcavro.table.schema import TableSchema

MAX_VERSIONS: Final = 1_000
MAX_TEXT: Final = 128 << 20
_REMEMBERED: Final = 64
# Before every key: that of what has none.
FIRST: Final = ()


class SharedLimits:
    """What all tables share: the characters that are `left` for the text of their schemas, and how many `edits` there were of them and their names."""

    __slots__ = ("edits", "left")

    def __init__(self) -> None:
        self.left = MAX_TEXT
        self.edits = 0

    def take(self, schema: TableSchema) -> None:
        """Take the room of a schema. Raises `SchemaError`."""
        if len(schema.row.json) > self.left:
            raise SchemaError(schema.table.table, f"the schemas of all tables have more than {MAX_TEXT} characters")
        self.left -= len(schema.row.json)


@dataclass(slots=True, eq=False)
class Table:
    """A table through its versions and names.

    Attributes: `number` (int), unlike any other's; `room`, for its schemas; `versions` (list of `TableSchema`), from the first;
    `steps` (list of tuple of str), what led to each; `is_gone` (bool), it was dropped; `is_stated`
    (bool), a statement or a list said which columns it has; `is_written` (bool), there are payloads of it.
    """

    number: int
    room: SharedLimits = field(default_factory=SharedLimits, repr=False)
    versions: list[TableSchema] = field(default_factory=list)
    steps: list[tuple[str, ...]] = field(default_factory=list)
    is_gone: bool = False
    is_stated: bool = False
    is_written: bool = False
    _starts: list[Any] = field(default_factory=list)
    _names: list[frozenset[str]] = field(default_factory=list)
    _held: dict[ColumnMarks, list[int]] = field(default_factory=dict)
    _declared: dict[ColumnMarks, None] = field(default_factory=dict)
    _seen: dict[tuple[Any, ...], ColumnList] = field(default_factory=dict)
    _ready: dict[tuple[Any, ...], list[int]] = field(default_factory=dict)
    _is_used: bool = False

    @property
    def schema(self) -> TableSchema:
        """The newest version."""
        return self.versions[-1]

    def append(self, schema: TableSchema, steps: Sequence[str], start: Key | None) -> None:
        """Take a newer version, that of changes from `start` on. Raises `SchemaError` for more than 1,000, or no room."""
        if len(self.versions) >= MAX_VERSIONS:
            raise SchemaError(schema.table.table, f"more than {MAX_VERSIONS} versions")
        self.room.take(schema)
        last = self._starts[-1] if self._starts else FIRST
        self._starts.append(max(comparable(start, last) or FIRST, last))
        self.versions.append(schema)
        self.steps.append(tuple(steps))
        self._names.append(frozenset())
        self._is_used = False
        self._enter()

    def time(self, key: Key | None) -> Key | None:
        """Return the time of a change, if those of the versions compare with it."""
        return comparable(key, self._starts[-1])

    def state(
        self,
        columns: Sequence[Column],
        source: Source,
        given: TypeOverrides,
        key: Key | None,
        names: Sequence[str] | None = None,
    ) -> TableSchema:
        """Return the version with the columns that a change states; a new one if there is none.

        `names` are those of the key, None if they are not known. A version that nothing was written in
        yet takes the types of its columns as they are stated. Raises `SchemaError`, also for a change from before the
        newest version whose columns no version has.
        """
        facts = (tuple(columns), source)
        ready = self._ready.get(facts) if self._is_used else None
        if ready is None:
            self._settle(columns, source, given, key, names)
            self.is_stated = True
            listed = self.listed(columns, source, given)
            ready = self._held.get(listed.held, [self._last])
            # A late row is taken as an earlier one though its types are declared otherwise; one in time is not.
            if listed.declared in self._declared and len(self._ready) < _REMEMBERED:
                self._ready[facts] = ready
        return self._at(ready, key)

    def ready(self, columns: Sequence[Column], source: Source) -> TableSchema | None:
        """Return the version of a change, whatever its time is: the only one with its columns, if `state` gave it before."""
        found = self._ready.get((columns, source)) if self._is_used else None
        return self.versions[found[0]] if found is not None and len(found) == 1 else None

    def extend(self, names: Collection[str], source: Source, given: TypeOverrides, key: Key | None) -> TableSchema:
        """Return the version of a change that states no columns but has these.

        Where nobody said which columns there are, the newest version gets those that no version has.
        """
        if not self.is_stated and not any(one.issuperset(names) for one in self._names):
            added = [Column(name=name) for name in names if name not in self._names[-1]]
            self.append(*by_columns(self.schema, [*columns_of_version(self.schema), *added], source, given), key)
        return self.having(names, key)

    def having(self, names: Collection[str], key: Key | None) -> TableSchema:
        """Return the version of a change's time, or the nearest that has these columns, if there is one."""
        everywhere = range(len(self.versions))
        own = everywhere if key is None else everywhere[: max(bisect_right(self._starts, key), 1)]
        if self._names[own[-1]].issuperset(names):
            return self.versions[own[-1]]
        found = [i for i in everywhere if self._names[i].issuperset(names)]
        return self._at(found or own, key)

    def at(self, columns: Sequence[Column], source: Source, given: TypeOverrides, key: Key | None) -> TableSchema:
        """Return the version of a change by the columns that it states, and by its place in the order. Raises `SchemaError`."""
        listed = self.listed(columns, source, given)
        if listed.held not in self._held:
            raise self._late(listed, key)
        return self._at(self._held[listed.held], key)

    def is_as(self, columns: Sequence[Column], source: Source, given: TypeOverrides) -> bool:
        """Return whether the newest version has exactly these columns."""
        return self.listed(columns, source, given) == self._own()

    def use(self, schema: TableSchema) -> None:
        """Note that something is written in a version: the newest stays as it is from now on."""
        self._is_used = self._is_used or schema is self.schema

    def begin_again(self, schema: TableSchema, steps: Sequence[str]) -> None:
        """Take another first version for all that there are, which nothing was written in."""
        start = self._starts[0]
        for one in (self.versions, self.steps, self._starts, self._names, self._held, self._declared, self._seen):
            one.clear()
        self.append(schema, steps, start)

    def mark(self) -> tuple[Any, ...]:
        """Return what `back` needs to undo all that is done to the table from now on."""
        facts = [list(one) for one in (self.versions, self.steps, self._starts, self._names)]
        held = {marks: list(found) for marks, found in self._held.items()}
        return facts, held, dict(self._declared), (self.is_gone, self.is_stated, self._is_used)

    def back(self, mark: tuple[Any, ...]) -> None:
        """Undo all that was done since the mark."""
        (self.versions[:], self.steps[:], self._starts, self._names), self._held, self._declared, flags = mark
        self.is_gone, self.is_stated, self._is_used = flags
        self.room.edits += 1
        self._ready.clear()

    def listed(self, columns: Sequence[Column], source: Source, given: TypeOverrides) -> ColumnList:
        """Return what a list of columns says, as a source means it."""
        facts = (tuple(columns), source)
        found = self._seen.get(facts)
        if found is None:
            if len(self._seen) >= _REMEMBERED:
                self._seen.clear()
            known = {one.name: one.given for one in self.schema.columns if one.given is not None}
            marks = []
            for one in columns:
                own = given.of(source, one.name) or known.get(one.name or "")
                marks.append(mark_of(one.name, one.type, column_type(one, source, given=own).avro))
            found = self._seen[facts] = listed_of(marks)
        return found

    @property
    def _last(self) -> int:
        return len(self.versions) - 1

    def _at(self, indexes: Sequence[int], key: Key | None) -> TableSchema:
        """Return the last of these versions that had begun by a time, or the first of them."""
        if len(indexes) == 1 or key is None:
            return self.versions[indexes[-1]]
        place = bisect_right([self._starts[one] for one in indexes], key)
        return self.versions[indexes[max(place - 1, 0)]]

    def _settle(
        self,
        columns: Sequence[Column],
        source: Source,
        given: TypeOverrides,
        key: Key | None,
        names: Sequence[str] | None,
    ) -> None:
        """See that there is a version with columns as they are stated."""
        listed = self.listed(columns, source, given)
        is_late = self._is_late(key)
        is_known = listed.held in self._held and (is_late or listed.declared in self._declared)
        is_refined = not self._is_used and self._names[-1] == {one.name for one in columns}
        if not is_known or (is_refined and not is_late and listed != self._own()):
            if is_late:
                raise self._late(listed, key)
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
        # Rows that a statement's version does not fit were taken for earlier ones: it stays.
        is_new = self._is_used or self._names[-1] != {one.name for one in columns}
        if is_new and len(self.versions) >= MAX_VERSIONS:
            raise SchemaError(self.schema.table.table, f"more than {MAX_VERSIONS} versions")
        schema, steps = by_columns(self.schema, columns, source, given, key=names, is_new=is_new)
        if schema is self.schema:
            return
        if is_new:
            self.append(schema, steps, key)
            return
        self.room.take(schema)
        held = self._own().held
        self._held[held].remove(self._last)
        if not self._held[held]:
            del self._held[held]
        self.versions[-1] = schema
        self.steps[-1] += tuple(steps)
        self._enter()

    def _enter(self) -> None:
        """Note which columns the newest version has."""
        own = self._own()
        self.room.edits += 1
        self._ready.clear()
        self._names[-1] = frozenset(one.name for one in self.schema.columns)
        self._held.setdefault(own.held, []).append(self._last)
        self._declared[own.declared] = None

    def _own(self) -> ColumnList:
        return listed_of([mark_of(one.name, one.type, one.avro) for one in self.schema.columns])

    def _is_late(self, key: Key | None) -> bool:
        """Return whether a key stands before the newest version's, as far as the two can be compared.

        Numbers of the source compare with such numbers, places with those of one partition or file.
        """
        start = self._starts[-1]
        if comparable(key, start) is None or key is None or start == FIRST:
            return False
        if key[:2] != start[:2]:
            return bool(key < start)
        partition, other = [(*one[2][:2], one[2][3]) for one in (key, start)]
        return partition == other and bool(key[2:] < start[2:])

    def _late(self, listed: ColumnList, key: Key | None) -> SchemaError:
        schema = self._at(range(len(self.versions)), key)
        own = listed_of([mark_of(one.name, one.type, one.avro) for one in schema.columns])
        name = min(str(one[0]) for one in listed.held ^ own.held) if listed.held != own.held else ""
        return SchemaError(
            schema.table.table, f"column {shown(name)} is not as in version {schema.version}, nor any other"
        )


def comparable(key: Key | None, start: Any) -> Key | None:
    """Return a key if it compares with another: numbers of an order do not with none."""
    if key is None or start == FIRST:
        return key
    return key if getattr(key[1], "kind", "") == getattr(start[1], "kind", "") else None


def columns_of_version(schema: TableSchema) -> list[Column]:
    """Return the columns of a version, as declared."""
    return [Column(name=one.name, type=one.type, code=one.code) for one in schema.columns]
