"""Lake tables of a pipeline: what each is called, and how a batch is written to all of them, each by itself."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime, timedelta
from functools import partial, reduce
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from pyspark.errors import (
    AnalysisException,
    ArithmeticException,
    DateTimeException,
    IllegalArgumentException,
    NumberFormatException,
)
from pyspark.sql import DataFrame

from cdcavro.errors import CdcAvroError, SchemaError
from cdcavro.lake.escaped_names import caseless_name
from cdcavro.lake.evolution import LENIENT
from cdcavro.spark.lake.changelog import Changelog
from cdcavro.spark.lake.columns import properties_of
from cdcavro.spark.lake.current_state import CurrentState, LakeTableCache
from cdcavro.spark.lake.ownership import adopted_until, claim, foreign_table_error, foreign_tables, rows_not_held
from cdcavro.spark.lake.sinks import NAME, OWNER, check_separate, locate, retry
from cdcavro.spark.pipeline.outputs.writer import BatchRows, WriteResult, facts_of_parts
from cdcavro.spark.session import first_line
from cdcavro.table.ddl.steps import TableName

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from pyspark.sql import SparkSession
    from pyspark.sql.types import StructType

    from cdcavro.spark.lake.changelog import Reading
    from cdcavro.spark.lake.sinks import Sink
    from cdcavro.spark.pipeline.outputs.writer import Rows, Waiting
    from cdcavro.spark.pipeline.settings import Chosen
    from cdcavro.table.history import Table


# Faults of one table. With `ignore`, a value may be too large for its column in the lake.
_REFUSALS: Final = (
    CdcAvroError,
    AnalysisException,
    IllegalArgumentException,
    ArithmeticException,
    NumberFormatException,
    DateTimeException,
)
# What is said of a table that has no current state.
NO_KEY: Final = "no primary key is known: only a changelog is written"


class Job(NamedTuple):
    """What identifies a pipeline."""

    id: str
    # The tables that it wrote when lake tables did not say whose they are.
    unmarked: frozenset[TableName]


@dataclass(frozen=True)
class LakeSettings:
    """What is written to which lake.

    * `sink` (`Delta` or `Iceberg`)
    * `is_current` and `is_changelog` (bool): whether a table's current state is written, and its changelog.
    * `behavior` (str), `guard` (timedelta): as in `CurrentState`.
    * `parallel` (int): how many tables are written at a time.
    * `is_adopting` (bool): whether lake tables of other pipelines are adopted.
    """

    sink: Sink
    is_current: bool = True
    is_changelog: bool = False
    behavior: str = LENIENT
    guard: timedelta = timedelta(days=7)
    parallel: int = 4
    is_adopting: bool = False
    topic = None

    @property
    def name(self) -> str:
        """What the lake is called in messages."""
        return self.sink.name

    def identity(self, spark: SparkSession) -> str:  # noqa: ARG002  as that of topics
        """Return what identifies the lake."""
        return self.sink.name

    def folders(self, spark: SparkSession) -> list[str]:
        """Return the folders in which the tables are, if they are known."""
        return self.sink.folders(spark)

    def check(self, spark: SparkSession) -> None:
        """Look for the lake. Raises as the sink's own check does."""
        self.sink.check(spark)

    def check_owner(self, spark: SparkSession, job: Job | None, names: Sequence[TableName], chosen: Chosen) -> None:
        """Look for lake tables of other pipelines: of tables with these names, or without names of all that are chosen.

        If such tables are to be adopted, nothing is looked for. Raises `FileError`, and `SchemaError` as
        `check_separate` does.
        """
        if self.is_adopting:
            return
        own_id, unmarked = job or Job("", frozenset())
        sink = replace(self.sink, owner=own_id)
        for name in names:
            own_sink = locate(spark, sink, name)
            check_separate(spark, own_sink, name)
            for identifier, owner in foreign_tables(spark, own_sink, name).items():
                if owner is not None or name not in unmarked:
                    raise foreign_table_error(identifier, owner)
        if not names:
            for identifier in sink.tables(spark):
                properties = properties_of(spark, identifier)
                owner, named = properties.get(OWNER), properties.get(NAME)
                if owner not in (None, own_id) and (named is None or chosen.has(TableName(*json.loads(named)))):
                    raise foreign_table_error(identifier, owner)

    def writer(self, job: str, publisher: object) -> LakeTables:  # noqa: ARG002  as that of topics
        """Return what writes batches; `job` is unique to the pipeline."""
        return LakeTables(self, job)


class LakeNames:
    """What each table is called in the lake; `names` maps numbers to names, as another one had them.

    A table keeps the name that it had when it was first written. A table that takes the name of one that was dropped
    goes on with its lake table. A number is put behind a name that another table still has, or that differs from
    another's only in letter case or in the normal form of Unicode.
    """

    def __init__(self, names: Mapping[int, TableName] | None = None) -> None:
        self.names: dict[int, TableName] = dict(names or {})
        self._numbers: dict[tuple[str | None, ...], list[int]] = {}
        for number, name in self.names.items():
            self._numbers.setdefault(caseless_name(name), []).append(number)

    def name(self, table: Table, tables: Sequence[Table]) -> TableName:
        """Return the name of a table in the lake."""
        known = self.names.get(table.number)
        if known is not None:
            return known
        own = table.schema.table
        name, count = own, 1
        while self._is_taken(name, tables):
            count += 1
            name = TableName(own.database, own.schema, f"{own.table}~{count}")
        self.names[table.number] = name
        self._numbers.setdefault(caseless_name(name), []).append(table.number)
        return name

    def _is_taken(self, name: TableName, tables: Sequence[Table]) -> bool:
        """Return whether an existing table has a name, or any has one that differs in letter case or normal form."""
        numbers = self._numbers.get(caseless_name(name), ())
        return any(name != self.names[number] or not tables[number].is_gone for number in numbers)

    def label(self, table: Table) -> str:
        """Return the name of a table in the lake for people: its own if it is not written yet."""
        name = self.names.get(table.number, table.schema.table)
        return ".".join(part for part in (name.database, name.schema, name.table) if part is not None)

    @property
    def state(self) -> list[list[Any]]:
        """The names as a JSON value."""
        return [[number, name.database, name.schema, name.table] for number, name in sorted(self.names.items())]

    @classmethod
    def of(cls, state: Sequence[Sequence[Any]]) -> LakeNames:
        """Return the names that `state` returned."""
        return cls({number: TableName(*parts) for number, *parts in state})


@dataclass
class LakeTables:
    """Writes batches to the tables of a lake."""

    settings: LakeSettings
    # What is unique to the pipeline.
    job: str
    # The tables that it wrote when lake tables did not say whose they are.
    unmarked: frozenset[TableName] = frozenset()
    _sinks: dict[TableName, Sink] = field(default_factory=dict)
    _until: dict[TableName, bytes] = field(default_factory=dict)
    _prepared: dict[tuple[TableName, str], tuple[int, int]] = field(default_factory=dict)
    _forgotten: dict[TableName, date] = field(default_factory=dict)
    _known: dict[TableName, LakeTableCache] = field(default_factory=dict)
    _readings: dict[TableName, tuple[tuple[int, int, StructType], Reading]] = field(default_factory=dict)

    @property
    def has_changes(self) -> bool:
        """Whether every change is wanted, and not only the last of each key."""
        return self.settings.is_changelog

    def write(self, spark: SparkSession, tables: Sequence[Rows]) -> list[WriteResult]:
        """Write the rows of tables, several at a time; those with one name in the lake one behind the other.

        `spark` is the session of their frames, which is that of the stream. Raises `FileError` for a lake table of
        another pipeline, and writes nothing.
        """
        groups: dict[TableName, list[Rows]] = {}
        for one in tables:
            groups.setdefault(one[1], []).append(one)
        with ThreadPoolExecutor(self.settings.parallel) as pool:
            # Before anything is written.
            list(pool.map(partial(self._claim, spark), [name for name in groups if name not in self._sinks]))
            written = pool.map(partial(self._write_all, spark), groups.values())
            return [one for group in written for one in group]

    def _claim(self, spark: SparkSession, name: TableName) -> None:
        """Find the lake tables of a table, and make them this pipeline's."""
        try:
            sink = locate(spark, replace(self.settings.sink, owner=self.job), name)
        except SchemaError:
            # The write refuses such a name.
            sink = self.settings.sink
        else:
            is_known = name in self.unmarked
            claim(spark, sink, name, is_known=is_known, is_adopting=self.settings.is_adopting)
        self._sinks[name] = sink

    def _write_all(self, spark: SparkSession, tables: Sequence[Rows]) -> list[WriteResult]:
        return [self._write(spark, *one) for one in tables]

    def _write(self, spark: SparkSession, table: Table, name: TableName, waiting: Waiting) -> WriteResult:
        steps: list[str] = []
        sink = self._sinks[name]
        # Late rows of a dropped table must take nothing from the table that goes on with its lake table.
        behavior = LENIENT if table.is_gone else self.settings.behavior
        try:
            # A table that got its key later has rows without one, of which there is no current state.
            is_keyed = all(schema.key is not None for schema in table.versions)
            if self.settings.is_current and is_keyed:
                known = self._known.setdefault(name, LakeTableCache())
                state = CurrentState(sink, name, behavior, self.settings.guard, known)
                retry(lambda: self._merge(spark, state, table, waiting, steps))
            if self.settings.is_changelog or not is_keyed:
                log = Changelog(sink, name, behavior)
                if self.settings.is_current and (log.table, "log") not in self._prepared:
                    steps += [] if is_keyed else [NO_KEY]
                self._append(spark, log, table, waiting, steps)
        except _REFUSALS as error:
            # Somebody may mend the lake table.
            self._known.pop(name, None)
            return WriteResult(table.number, steps, first_line(error))
        return WriteResult(table.number, steps, None)

    def _merge(
        self, spark: SparkSession, state: CurrentState, table: Table, waiting: Waiting, steps: list[str]
    ) -> None:
        facts = facts_of_parts([part.facts for part in waiting]) if waiting else None
        self._prepare(
            "state",
            state.table,
            table,
            lambda: steps.extend(map(str, state.prepare(spark, table.versions, facts=facts))),
        )
        if waiting:
            rows = reduce(DataFrame.unionByName, [part.rows for part in waiting])
            state.merge(rows, table.versions, facts=facts)
            today = datetime.now(UTC).date()
            if self._forgotten.get(state.table) != today:
                state.forget_deletes(spark)
                self._forgotten[state.table] = today

    def _append(self, spark: SparkSession, log: Changelog, table: Table, waiting: Waiting, steps: list[str]) -> None:
        self._prepare("log", log.table, table, lambda: steps.extend(map(str, log.prepare(spark, table.versions))))
        if log.table not in self._until:
            self._until[log.table] = adopted_until(properties_of(spark, log.identifier))
        for part in waiting:
            # Each by itself: what was appended before is not written again.
            retry(partial(self._append_part, spark, log, table, part))

    def _append_part(self, spark: SparkSession, log: Changelog, table: Table, part: BatchRows) -> None:
        """Append rows, read as those before unless the table has changed, or somebody has changed its lake table."""
        lake = spark.table(log.identifier)
        key = table.number, table.schema.version, lake.schema
        known = self._readings.get(log.table)
        if known is None or known[0] != key:
            known = self._readings[log.table] = key, log.reading(lake, table.versions)
        job = f"{self.job}/{table.number}"
        rows = rows_not_held(part.rows, log.identifier, until) if (until := self._until[log.table]) else part.rows
        log.append(rows, table.versions, job=job, batch=part.batch, attempt=part.attempt, reading=known[1])

    def _prepare(self, kind: str, name: TableName, table: Table, prepare: Callable[[], None]) -> None:
        """Prepare a lake table for the newest version, unless that is done, or a later table goes on with it."""
        wanted = table.number, table.schema.version
        if self._prepared.get((name, kind), (-1, 0)) < wanted:
            prepare()
            self._prepared[name, kind] = wanted
