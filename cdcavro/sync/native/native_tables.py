"""Native tables of a pipeline: how a batch is written to all tables of a native lake, each by itself.

To its changelog, every change of a table's rows is appended once for each batch.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime, timedelta
from threading import Condition
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol, cast
from uuid import uuid4

import pyarrow as pa
import pyarrow.compute as pc

from cdcavro.arrow.arrays import blank, places
from cdcavro.change.order_value import reset_order
from cdcavro.errors import CdcAvroError, SchemaError, hide_credentials
from cdcavro.lake import sql_statements as sql
from cdcavro.lake.account import LakeMark
from cdcavro.lake.evolution import LENIENT
from cdcavro.lake.lake_columns import held_columns
from cdcavro.lake.lakes import (
    CHANGE,
    COMPLETE,
    CURRENT,
    OWNER,
    SUFFIXES,
    CompletionTimes,
    adopted_properties,
    adopted_until,
    adopts,
    name_property,
)
from cdcavro.lake.merge import Origin, changelog_reason, written_behind
from cdcavro.lake.sql_statements import BEFORE, KEY, OPERATION, ORDER, change_types, held_change_columns
from cdcavro.lake.typed_rows import CREATED, DROP, ENDS, facts_of_parts
from cdcavro.sync.native.native_columns import WAITED, Mark, prepare
from cdcavro.sync.native.native_state import NativeCache, NativeState
from cdcavro.sync.native.native_versions import NativeVersions
from cdcavro.sync.native.row_images import (
    ImageReader,
    absent_of,
    binary,
    change_values,
    read_envelopes,
    row_parts,
    texts_of,
)
from cdcavro.sync.native.shard_tables import ShardVersions, steps_done
from cdcavro.sync.outputs.sink_settings import StatementRules, TableForms
from cdcavro.sync.outputs.writer import lake_marks

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Sequence

    from cdcavro.lake.evolution import Step
    from cdcavro.lake.lakes import Attempt
    from cdcavro.lake.typed_rows import RowFacts
    from cdcavro.sync.native.native_columns import NativeLake, NativeTable
    from cdcavro.sync.native.row_images import Pair
    from cdcavro.table.ddl.steps import TableName
    from cdcavro.table.history import Table
    from cdcavro.table.table_schema import TableSchema

    # What a table is called in the lake, and what tells it from others there.
    _Place = tuple[TableName, str | None]

# How large a table may be.
MOST_BYTES: Final = 1 << 30
# How many bytes of rows there are on average, at most, of those tables that are written at a time.
_OF_TABLE: Final = 12 << 20


class Part(Protocol):
    """A table's rows of one batch, as a pipeline has them."""

    @property
    def batch(self) -> int:
        """The number of the batch."""

    @property
    def rows(self) -> pa.Table:
        """The rows, as `NativeState.merge` takes them."""

    @property
    def size(self) -> int:
        """How many bytes the rows take."""

    @property
    def facts(self) -> RowFacts:
        """What is known of the rows."""

    @property
    def attempt(self) -> Attempt:
        """How often it was attempted to write them."""

    def mark(self, job: str, table: int) -> str:
        """Return what the changelog calls who appended the rows of a table."""

    @property
    def complete_until(self) -> str | None:
        """Up to when the table is complete once they are written; None if that is not known."""

    @property
    def shard(self) -> str | None:
        """What tells the table from others in its lake table; None if it is alone there."""


class TableResult(NamedTuple):
    """What became of a table's rows."""

    # The number of the table.
    number: int
    # How its lake table changed.
    steps: list[str]
    # Why the rows wait; None if they are written.
    error: str | None
    # What tells its lake tables from others.
    marks: tuple[LakeMark, ...] = ()


@dataclass
class NativeTables:
    """Writes batches to the tables of a native lake.

    * `lake` (`NativeLake`): a dataclass with the fields `is_older` and `owner`, as those of `cdcavro.lake.lakes`.
    * `job` (str): what is unique to the pipeline.
    * `is_current` and `is_changelog` (bool): whether a table's current state is written, and its changelog.
    * `behavior` (str), `guard` (timedelta): as in `NativeState`.
    * `parallel` (int): how many tables are written at a time: fewer, down to one, where their rows take more than
      12 MiB times `parallel` together.
    * `is_adopting` (bool): whether lake tables of other pipelines are adopted.
    * `unmarked`: the tables that the pipeline wrote when lake tables did not say whose they are.
    * `change_columns` (tuple of str): as in `NativeState`.
    * `statements` (`StatementRules`): which statements of which tables are not followed.
    * `forms` (`TableForms`): which form the current state of each table has.
    * `complete_minutes` (float): as in `LakeSettings`.
    * `shards` (`ShardVersions`): what is known of shards, also by who else writes these tables.
    """

    lake: NativeLake
    job: str
    is_current: bool = True
    is_changelog: bool = False
    behavior: str = LENIENT
    guard: timedelta = timedelta(days=7)
    parallel: int = 4
    is_adopting: bool = False
    unmarked: frozenset[TableName] = frozenset()
    change_columns: tuple[str, ...] = ()
    statements: StatementRules = field(default_factory=StatementRules)
    forms: TableForms = field(default_factory=TableForms)
    complete_minutes: float = 10
    shards: ShardVersions = field(default_factory=ShardVersions)
    _lakes: dict[TableName, NativeLake] = field(default_factory=dict)
    # What the properties of changelogs say: up to where they were adopted, and what was made up when they were created.
    _logs: dict[TableName, tuple[bytes, str | None]] = field(default_factory=dict)
    # The versions of lake tables before this run wrote them.
    _found: dict[tuple[TableName, str], int | None] = field(default_factory=dict)
    # By tables and their shards.
    _prepared: dict[tuple[_Place, str], tuple[int, int]] = field(default_factory=dict)
    _forgotten: dict[_Place, date] = field(default_factory=dict)
    _known: dict[_Place, NativeCache] = field(default_factory=dict)
    # Why tables have no current state, as it was said last.
    _reasons: dict[_Place, str | None] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Know of no table when it was told up to when it is complete."""
        self._completion = CompletionTimes(self.complete_minutes)
        self._turns = _Turns(self.parallel * _OF_TABLE)

    @property
    def has_changes(self) -> bool:
        """Whether every change is wanted, and not only the last of each key."""
        return self.is_changelog or self.forms.kept is not None

    @property
    def has_states(self) -> bool:
        """Whether current states are wanted."""
        return self.is_current

    def write(self, tables: Sequence[tuple[Table, TableName, Sequence[Part]]]) -> list[TableResult]:
        """Write the rows of tables, several at a time; those with one name in the lake one after the other.

        Each table comes with what it is called in the lake and its rows, from the oldest batch on. A fault of one table
        keeps only its own rows back, and the result says so. Raises `FileError` for a lake table of another pipeline,
        and writes nothing; any other fault is raised, too.
        """
        groups: dict[TableName, list[tuple[Table, TableName, Sequence[Part]]]] = {}
        for one in tables:
            groups.setdefault(one[1], []).append(one)
            self.shards.learn(one[0], one[1], one[2][0].shard if one[2] else None)
        with ThreadPoolExecutor(self.parallel) as pool:
            # Before anything is written.
            list(pool.map(self._claim, [name for name in groups if name not in self._lakes]))
            written = pool.map(self._write_all, groups.values())
            return [one for group in written for one in group]

    def fits(self, name: TableName) -> bool:
        """Return whether a batch can be merged into a table by this process: it has at most 1 GiB, or is none yet."""
        if not self.is_current:
            return True
        table = locate(self.lake, name).table(name)
        return table.properties() is None or table.size() <= MOST_BYTES

    def forget(self, name: TableName) -> None:
        """Forget what is known of a table, which another writer changes, of all its shards."""
        for place in [one for one in self._known if one[0] == name]:
            self._known.pop(place)
        for suffix in ("", _CHANGES):
            self._found.pop((name, suffix), None)

    def _claim(self, name: TableName) -> None:
        """Find the lake tables of a table, and make them this pipeline's."""
        try:
            lake = locate(_with(self.lake, owner=self.job), name)
        except SchemaError:
            # The write refuses such a name.
            lake = self.lake
        else:
            claim(lake, name, self.job, is_known=name in self.unmarked, is_adopting=self.is_adopting)
            self._found |= {(name, suffix): lake.table(name, suffix).version() for suffix in ("", _CHANGES)}
        self._lakes[name] = lake

    def _write_all(self, tables: Sequence[tuple[Table, TableName, Sequence[Part]]]) -> list[TableResult]:
        found = []
        for table, name, waiting in tables:
            with self._turns.take(sum(part.size for part in waiting)):
                found.append(self._write(table, name, waiting))
        return found

    def _write(self, table: Table, name: TableName, waiting: Sequence[Part]) -> TableResult:
        steps: list[str] = []
        written: dict[str, NativeTable] = {}
        has_rows = None
        place = name, waiting[0].shard if waiting else None
        lake = self._lakes[name]
        excluded, origin = self.statements.excluded_of(table), Origin.of(self.job, table)
        try:
            if place[1] is not None:
                lake = self.shards.lake(lake, table, name, place[1], LENIENT if table.is_gone else self.behavior)
            reason = changelog_reason(table.versions)
            if self.is_current and reason is None:
                known = self._known.setdefault(place, NativeCache())
                own = lake, name, self.behavior, self.guard, known, self.change_columns, excluded, origin
                form = self.forms.of(table)
                state = NativeState(*own) if form == CURRENT else NativeVersions(*own, form=form)
                has_rows = self._merge(state, place, table, waiting, steps)
                written[""] = lake.table(name)
            if self.is_changelog or reason is not None:
                log = NativeChangelog(lake, name, self.behavior, self.change_columns, excluded, origin)
                if self.is_current and self._reasons.get(place) != reason:
                    self._reasons[place] = reason
                    steps += [] if reason is None else [reason]
                self._append(log, place, table, waiting, steps)
                written[_CHANGES] = log.lake_table
        except CdcAvroError as error:
            # Somebody may mend the lake table.
            self._known.pop(place, None)
            return TableResult(table.number, steps, _sentence(error))
        try:
            self._tell([*written.values()], place, waiting)
        except CdcAvroError as error:
            # The rows are written all the same.
            steps.append(f"{COMPLETE} is not set: {_sentence(error)}")
        seen = [self._seen(place, suffix) for suffix in written]
        marks = lake_marks(seen, table, waiting, excluded, has_rows=has_rows, is_adopted=self.is_adopting)
        return TableResult(table.number, steps, None, marks)

    def _seen(self, place: _Place, suffix: str) -> LakeMark:
        """Return what tells a lake table that was written from others: what is known without looking at it again."""
        name, table = place[0], self._lakes[place[0]].table(place[0], suffix)
        created = self._logs[name][1] if suffix else (self._known[place].properties or {}).get(CREATED)
        # Each shard says when it was begun.
        own = created if place[1] is None else None
        return LakeMark(suffix, own, table.version(), self._found.pop((name, suffix), None))

    def _tell(self, written: Sequence[NativeTable], place: _Place, waiting: Sequence[Part]) -> None:
        """Let the lake tables of a table that were written say up to when it is complete, if it is time."""
        properties = self._completion.properties(place, waiting[-1].complete_until if waiting else None)
        for table in written if properties else ():
            table.alter([], properties)

    def _merge(
        self, state: NativeState, place: _Place, table: Table, waiting: Sequence[Part], steps: list[str]
    ) -> bool | None:
        """Merge rows; return whether there are any behind what emptied the table, None if nothing did."""
        facts = facts_of_parts([part.facts for part in waiting]) if waiting else None
        rows = pa.concat_tables([part.rows for part in waiting]) if waiting else None
        if facts is not None and rows is not None:
            rows, facts = followed_rows(rows, facts, state.excluded)
        self._prepare(
            "state",
            place,
            table,
            lambda: steps.extend(steps_done(state.lake, state.prepare(table.versions, facts=facts))),
        )
        if rows is not None:
            state.merge(rows, table.versions, facts=facts)
            today = datetime.now(UTC).date()
            if self._forgotten.get(place) != today:
                state.forget_deletes()
                self._forgotten[place] = today
        if rows is None or facts is None or facts.floor is None or state.form != CURRENT:
            return None
        return bool(pc.any(pc.greater(binary(rows.column("order")), pa.scalar(facts.floor))).as_py())

    def _append(
        self, log: NativeChangelog, place: _Place, table: Table, waiting: Sequence[Part], steps: list[str]
    ) -> None:
        self._prepare("log", place, table, lambda: steps.extend(steps_done(log.lake, log.prepare(table.versions))))
        lake_table = log.lake_table
        if log.table not in self._logs:
            properties = lake_table.properties() or {}
            self._logs[log.table] = adopted_until(properties), properties.get(CREATED)
        until = self._logs[log.table][0]
        for part in waiting:
            # Each by itself: what was appended before is not written again.
            rows = rows_not_held(part.rows, lake_table, until) if until else part.rows
            since = None if part.attempt.is_first else part.attempt.since or WAITED
            log.append(rows, table.versions, Mark(part.mark(self.job, table.number), part.batch, since))

    def _prepare(self, kind: str, place: _Place, table: Table, prepare: Callable[[], None]) -> None:
        """Prepare a lake table for the newest version, unless that is done, or a later table goes on with it."""
        wanted = table.number, table.schema.version
        if self._prepared.get((place, kind), (-1, 0)) < wanted:
            prepare()
            self._prepared[place, kind] = wanted


class _Turns:
    """Turns of tables to be written: at a time those whose rows take at most `room` bytes together, or one of any size.

    The columns that are made of rows take several times as many.
    """

    def __init__(self, room: int) -> None:
        self._room, self._taken, self._freed = room, 0, Condition()

    @contextmanager
    def take(self, size: int) -> Iterator[None]:
        """Wait until there is room for rows of so many bytes, and hold it."""
        with self._freed:
            self._freed.wait_for(lambda: not self._taken or self._taken + size <= self._room)
            self._taken += size
        try:
            yield
        finally:
            with self._freed:
                self._taken -= size
                self._freed.notify_all()


def _sentence(error: CdcAvroError) -> str:
    return hide_credentials(str(error).partition("\n")[0])


def _with(lake: NativeLake, **fields: object) -> NativeLake:
    """Return a lake with other fields: all lakes are dataclasses."""
    return cast("NativeLake", replace(cast("Any", lake), **fields))


def locate(lake: NativeLake, name: TableName) -> NativeLake:
    """Return the lake as it names a table: as at first, if the table is only there under its first name.

    Raises `SchemaError` for a name that no lake table can have.
    """
    older = _with(lake, is_older=True)
    if lake.table(name).identifier == older.table(name).identifier or _has(lake, name) or not _has(older, name):
        return lake
    return older


def look(lake: NativeLake, name: TableName, suffix: str, *, is_opened: bool) -> LakeMark | None:
    """Return the mark of a lake table, whose properties are read if it is opened; None if it is not there.

    One that is not opened is only looked at if that is no request to a server or a database.
    """
    if not is_opened and not lake.is_here:
        return LakeMark(suffix, None, None)
    both = [own.table(name, suffix) for own in (lake, _with(lake, is_older=True))]
    for table in both[: 1 if both[0].identifier == both[1].identifier else 2]:
        properties = table.properties() if is_opened else {} if table.is_there() else None
        if properties is not None:
            return LakeMark(suffix, properties.get(CREATED), None, table.version())
    return None


def _has(lake: NativeLake, name: TableName) -> bool:
    return any(lake.table(name, suffix).properties() is not None for suffix in SUFFIXES)


def foreign_tables(lake: NativeLake, name: TableName, owner: str) -> list[tuple[NativeTable, str | None]]:
    """Return the lake tables of a table that are not an owner's, each with its own owner."""
    found = []
    for table in (lake.table(name, suffix) for suffix in SUFFIXES):
        properties = table.properties()
        if properties is not None and properties.get(OWNER) != owner:
            found.append((table, properties.get(OWNER)))
    return found


def claim(lake: NativeLake, name: TableName, owner: str, *, is_known: bool, is_adopting: bool) -> None:
    """Make the lake tables of a table that are there those of an owner, if they are nobody else's.

    `is_known` and `is_adopting` are as in `lakes.adopts`. Raises `FileError`, and changes nothing.
    """
    foreign = foreign_tables(lake, name, owner)
    is_adopted = [adopts(one.identifier, own, is_known=is_known, is_adopting=is_adopting) for one, own in foreign]
    for (table, _), adopted in zip(foreign, is_adopted, strict=True):
        properties = {OWNER: owner}
        if adopted:
            until = None
            if OPERATION in table.schema().names:
                until = pc.max(table.read([ORDER]).column(ORDER)).as_py() or b""
            properties = adopted_properties(owner, [one.name for one in table.columns()], until)
        table.alter([], properties)


_CHANGES: Final = "changes"
_UPDATE: Final = "u"


@dataclass(frozen=True)
class NativeChangelog:
    """The changelog of a table in a native lake.

    A change is one row with the columns of the table: as they were before a delete, and as they are after
    anything else. The row before an update, as far as the update states it, is a row of its own before it,
    whose `_cdc_op` is b. The fields are as those of `NativeState`.
    """

    lake: NativeLake
    table: TableName
    behavior: str = LENIENT
    change_columns: tuple[str, ...] = ()
    excluded: frozenset[str] = frozenset()
    origin: Origin | None = None

    @property
    def identifier(self) -> str:
        """The name of the lake table in messages."""
        return self.lake_table.identifier

    @property
    def lake_table(self) -> NativeTable:
        """The lake table."""
        return self.lake.table(self.table, _CHANGES)

    def prepare(self, versions: Sequence[TableSchema]) -> list[Step | str]:
        """Make the lake table have the columns of the newest version; return what was done to it.

        Raises `SchemaError`.
        """
        self.lake.make_room(self.table)
        columns, held = {**sql.CHANGELOG, **change_types(self.change_columns)}, self.lake_table.properties() or {}
        behavior, written = written_behind(self.behavior, held, versions[-1].version, self.origin)
        own = {**name_property(versions[-1].table), CREATED: uuid4().hex, **written}
        steps = prepare(self.lake, self.lake_table, versions, columns, behavior, own, self.excluded)
        if held and not written.items() <= held.items():
            self.lake_table.alter([], written)
        return steps

    def append(self, rows: pa.Table, versions: Sequence[TableSchema], mark: Mark) -> None:
        """Append a batch of the table's typed rows; a batch of a job that is appended again changes nothing.

        `rows` is as in `NativeState.merge`. Raises as `to_arrow` and `NativeTable.append` do.
        """
        table = self.lake_table
        kinds, present = table.schema(), table.columns()
        made = [
            one
            for part, read in row_parts(rows, versions, present)
            for one in self._read(part, read, held_columns(read[-1], present), kinds)
        ]
        table.append(pa.concat_tables(made) if made else kinds.empty_table(), mark)

    def _read(
        self, rows: pa.Table, versions: Sequence[TableSchema], pairs: Sequence[Pair], kinds: pa.Schema
    ) -> list[pa.Table]:
        """Return the rows of the changelog for typed rows, some at a time."""
        reader = ImageReader(versions[-1], pairs, {one.name: one.type for one in kinds})
        payload = blank(rows.column("payload"), pc.equal(rows.column("operation"), DROP))
        read = rows.set_column(rows.schema.get_field_index("payload"), "payload", payload)
        made, start = [], 0
        for _, envelopes in read_envelopes(read, None, versions):
            part = rows.slice(start, envelopes.num_rows)
            about = change_values(envelopes, held_change_columns(kinds.names), self.change_columns)
            made.append(_changes(part, envelopes, reader, kinds, about))
            start += envelopes.num_rows
        return made


def _changes(
    rows: pa.Table, envelopes: pa.RecordBatch, reader: ImageReader, kinds: pa.Schema, about: dict[str, pa.Array]
) -> pa.Table:
    """Return the rows of a changelog for typed rows, given with their envelopes and with columns about the changes."""
    images = {name: envelopes.column(name) for name in ("before", "after")}
    operation = binary(rows.column("operation"))
    has_before = pc.and_(pc.equal(operation, _UPDATE), images["before"].is_valid())
    order = _places(images["after"].is_valid(), has_before)
    columns = {name: reader.columns(image) for name, image in images.items()}
    for name, image in images.items():
        columns[name] |= {sql.UNPARSED: texts_of(image), sql.ABSENT: absent_of(image)}
    found = {name: _choose(columns["before"][name], after, order) for name, after in columns["after"].items()}
    own = {ORDER: "order", KEY: "key", sql.VERSION: "version"}
    facts = about | {name: binary(rows.column(typed)) for name, typed in own.items()} | {OPERATION: operation}
    if order is not None:
        typed, _, is_before = order
        facts = {name: values.take(typed) for name, values in facts.items()}
        facts[OPERATION] = pc.if_else(is_before, BEFORE, facts[OPERATION])
        count = len(typed)
    else:
        count = len(rows)
    found |= facts
    arrays = [found[one.name].cast(one.type) if one.name in found else pa.nulls(count, one.type) for one in kinds]
    return pa.table(arrays, names=[one.name for one in kinds])


def _places(has_after: pa.Array, has_before: pa.Array) -> tuple[pa.Array, pa.Array, pa.Array] | None:
    """Return how changes become rows; None if each becomes one, of its image after it.

    Of each row: the place of its change, that of its image among all images before and then all after changes, and
    whether it is the row before an update.
    """
    if pc.all(has_after).as_py() and not pc.any(has_before).as_py():
        return None
    count = len(has_after)
    every = places(count)
    befores = every.filter(has_before)
    own = pc.if_else(has_after, pc.add(every, pa.scalar(count, every.type)), every)
    typed = pa.concat_arrays([befores, every])
    in_order = pc.sort_indices(typed)
    is_before = pa.concat_arrays([pa.repeat(True, len(befores)), pa.repeat(False, count)])  # noqa: FBT003
    images = pa.concat_arrays([befores, own])
    return typed.take(in_order), images.take(in_order), is_before.take(in_order)


def _choose(before: pa.Array, after: pa.Array, order: tuple[pa.Array, pa.Array, pa.Array] | None) -> pa.Array:
    return after if order is None else pa.concat_arrays([before, after]).take(order[1])


def followed_rows(rows: pa.Table, facts: RowFacts, excluded: Collection[str]) -> tuple[pa.Table, RowFacts]:
    """Return the typed rows that a state follows, without each TRUNCATE and DROP that is excluded, and what is known of them.

    A reset is always followed.
    """
    passed = [operation for operation, kind in ENDS.items() if kind in excluded]
    if facts.floor is None or not passed:
        return rows, facts
    resets = [reset_order(count) for count in range(1, facts.resets + 1)]
    is_reset = pc.is_in(rows.column("order"), pa.array(resets, pa.binary()))
    is_passed = pc.is_in(rows.column("operation"), pa.array(passed, pa.string()))
    kept = rows.filter(pc.or_(is_reset, pc.invert(is_passed)))
    ends = kept.filter(pc.is_in(kept.column("operation"), pa.array([*ENDS], pa.string())))
    floor: bytes | None = pc.max(ends.column("order")).as_py()
    return kept, facts._replace(floor=floor)


def rows_not_held(rows: pa.Table, table: NativeTable, until: bytes) -> pa.Table:
    """Return the typed rows that a changelog does not hold, which was adopted when its last order was `until`."""
    first = pc.min(rows.column("order")).as_py()
    if first is None or first > until:
        return rows
    held = table.read(list(CHANGE))
    order = held.column(ORDER)
    bounds = pc.and_(pc.greater_equal(order, pa.scalar(first)), pc.less_equal(order, pa.scalar(until)))
    names = ["order", "operation", "key"]
    keyed = _identities(held.filter(bounds).rename_columns(dict(zip(CHANGE, names, strict=True))))
    typed = _identities(rows.select(names)).append_column("place", places(len(rows)))
    # Arrow takes no null for another one.
    left = typed.join(keyed, [*names, "is_keyed"], join_type="left anti")
    return rows.take(binary(left.sort_by("place").column("place")))


def _identities(rows: pa.Table) -> pa.Table:
    """Return what identifies changes, without nulls."""
    key = rows.column("key")
    columns = {name: rows.column(name) for name in ("order", "operation")}
    return pa.table(columns | {"key": key.fill_null(b""), "is_keyed": key.is_valid()})
