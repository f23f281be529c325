"""Native tables of a pipeline: how a batch is written to all tables of a native lake, each by itself."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol, cast

import pyarrow as pa
import pyarrow.compute as pc

from cdcavro.errors import CdcAvroError, SchemaError, hide_credentials
from cdcavro.lake.evolution import LENIENT
from cdcavro.lake.lakes import OWNER, SUFFIXES, adopted_properties, adopted_until, adopts
from cdcavro.lake.sql_statements import OPERATION, ORDER
from cdcavro.lake.typed_rows import facts_of_parts
from cdcavro.sync.native.native_changelog import NativeChangelog, rows_not_held
from cdcavro.sync.native.native_state import NativeCache, NativeState
from cdcavro.sync.native.native_table import Mark

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from cdcavro.lake.lakes import Attempt
    from cdcavro.lake.typed_rows import RowFacts
    from cdcavro.sync.native.native_table import NativeLake, NativeTable
    from cdcavro.table.ddl.steps import TableName
    from cdcavro.table.history import Table

# What is said of a table that has no current state.
NO_KEY: Final = "no primary key is known: only a changelog is written"
# How large a table may be.
MOST_BYTES: Final = 1 << 30
# Before any batch: the history of a table is looked through from its beginning.
_LONG_AGO: Final = datetime(1970, 1, 1, tzinfo=UTC)


class Part(Protocol):
    """A table's rows of one batch, as a pipeline has them."""

    @property
    def batch(self) -> int:
        """The number of the batch."""

    @property
    def rows(self) -> pa.Table:
        """The rows, as `NativeState.merge` takes them."""

    @property
    def facts(self) -> RowFacts:
        """What is known of the rows."""

    @property
    def attempt(self) -> Attempt:
        """How often it was attempted to write them."""


class TableResult(NamedTuple):
    """What became of a table's rows."""

    # The number of the table.
    number: int
    # How its lake table changed.
    steps: list[str]
    # Why the rows wait; None if they are written.
    error: str | None


@dataclass
class NativeTables:
    """Writes batches to the tables of a native lake.

    * `lake` (`NativeLake`): a dataclass with the fields `is_older` and `owner`, as those of `cdcavro.lake.lakes`.
    * `job` (str): what is unique to the pipeline.
    * `is_current` and `is_changelog` (bool): whether a table's current state is written, and its changelog.
    * `behavior` (str), `guard` (timedelta): as in `NativeState`.
    * `parallel` (int): how many tables are written at a time.
    * `is_adopting` (bool): whether lake tables of other pipelines are adopted.
    * `unmarked`: the tables that the pipeline wrote when lake tables did not say whose they are.
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
    _lakes: dict[TableName, NativeLake] = field(default_factory=dict)
    _until: dict[TableName, bytes] = field(default_factory=dict)
    _prepared: dict[tuple[TableName, str], tuple[int, int]] = field(default_factory=dict)
    _forgotten: dict[TableName, date] = field(default_factory=dict)
    _known: dict[TableName, NativeCache] = field(default_factory=dict)

    @property
    def has_changes(self) -> bool:
        """Whether every change is wanted, and not only the last of each key."""
        return self.is_changelog

    def write(self, tables: Sequence[tuple[Table, TableName, Sequence[Part]]]) -> list[TableResult]:
        """Write the rows of tables, several at a time; those with one name in the lake one behind the other.

        Each table comes with what it is called in the lake and its rows, from the oldest batch on. A fault of one table
        keeps only its own rows back, and the result says so. Raises `FileError` for a lake table of another pipeline,
        and writes nothing; any other fault is raised, too.
        """
        groups: dict[TableName, list[tuple[Table, TableName, Sequence[Part]]]] = {}
        for one in tables:
            groups.setdefault(one[1], []).append(one)
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
        """Forget what is known of a table, which another writer changes."""
        self._known.pop(name, None)

    def _claim(self, name: TableName) -> None:
        """Find the lake tables of a table, and make them this pipeline's."""
        try:
            lake = locate(_with(self.lake, owner=self.job), name)
        except SchemaError:
            # The write refuses such a name.
            lake = self.lake
        else:
            claim(lake, name, self.job, is_known=name in self.unmarked, is_adopting=self.is_adopting)
        self._lakes[name] = lake

    def _write_all(self, tables: Sequence[tuple[Table, TableName, Sequence[Part]]]) -> list[TableResult]:
        return [self._write(*one) for one in tables]

    def _write(self, table: Table, name: TableName, waiting: Sequence[Part]) -> TableResult:
        steps: list[str] = []
        lake = self._lakes[name]
        # Late rows of a dropped table must take nothing from the table that goes on with its lake table.
        behavior = LENIENT if table.is_gone else self.behavior
        try:
            # A table that got its key later has rows without one, of which there is no current state.
            is_keyed = all(schema.key is not None for schema in table.versions)
            if self.is_current and is_keyed:
                known = self._known.setdefault(name, NativeCache())
                self._merge(NativeState(lake, name, behavior, self.guard, known), table, waiting, steps)
            if self.is_changelog or not is_keyed:
                log = NativeChangelog(lake, name, behavior)
                if self.is_current and (name, "log") not in self._prepared:
                    steps += [] if is_keyed else [NO_KEY]
                self._append(log, table, waiting, steps)
        except CdcAvroError as error:
            # Somebody may mend the lake table.
            self._known.pop(name, None)
            return TableResult(table.number, steps, hide_credentials(str(error).partition("\n")[0]))
        return TableResult(table.number, steps, None)

    def _merge(self, state: NativeState, table: Table, waiting: Sequence[Part], steps: list[str]) -> None:
        facts = facts_of_parts([part.facts for part in waiting]) if waiting else None
        self._prepare(
            "state",
            state.table,
            table,
            lambda: steps.extend(map(str, state.prepare(table.versions, facts=facts))),
        )
        if waiting:
            rows = pa.concat_tables([part.rows for part in waiting])
            state.merge(rows, table.versions, facts=facts)
            today = datetime.now(UTC).date()
            if self._forgotten.get(state.table) != today:
                state.forget_deletes()
                self._forgotten[state.table] = today

    def _append(self, log: NativeChangelog, table: Table, waiting: Sequence[Part], steps: list[str]) -> None:
        self._prepare("log", log.table, table, lambda: steps.extend(map(str, log.prepare(table.versions))))
        lake_table = log.lake_table
        if log.table not in self._until:
            self._until[log.table] = adopted_until(lake_table.properties() or {})
        until = self._until[log.table]
        for part in waiting:
            # Each by itself: what was appended before is not written again.
            rows = rows_not_held(part.rows, lake_table, until) if until else part.rows
            since = None if part.attempt.is_first else part.attempt.since or _LONG_AGO
            log.append(rows, table.versions, Mark(f"{self.job}/{table.number}", part.batch, since))

    def _prepare(self, kind: str, name: TableName, table: Table, prepare: Callable[[], None]) -> None:
        """Prepare a lake table for the newest version, unless that is done, or a later table goes on with it."""
        wanted = table.number, table.schema.version
        if self._prepared.get((name, kind), (-1, 0)) < wanted:
            prepare()
            self._prepared[name, kind] = wanted


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
