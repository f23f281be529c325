"""Lake tables of a pipeline: what each is called, whose it is, and how a batch is written to each by itself."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime
from functools import partial, reduce
from typing import TYPE_CHECKING, Final, NamedTuple, cast

import pyarrow as pa
from py4j.protocol import Py4JError
from pyspark.errors import (
    AnalysisException,
    ArithmeticException,
    DateTimeException,
    IllegalArgumentException,
    NumberFormatException,
    PySparkException,
)
from pyspark.sql import DataFrame
from pyspark.sql import functions as sf

from cdcavro.errors import CdcAvroError, SchemaError, SetupError
from cdcavro.lake.account import LakeMark
from cdcavro.lake.catalogs import metastore_settings, spark_catalog
from cdcavro.lake.evolution import LENIENT
from cdcavro.lake.lakes import (
    COMPLETE,
    CURRENT,
    NAME,
    OWNER,
    SCHEME,
    SUFFIXES,
    CompletionTimes,
    DeltaLake,
    IcebergLake,
    adopted_properties,
    adopted_until,
    adopts,
    foreign_table_error,
)
from cdcavro.lake.merge import Origin, changelog_reason
from cdcavro.lake.sql_statements import OPERATION, ORDER
from cdcavro.lake.typed_rows import CREATED, facts_of_parts
from cdcavro.spark.lake.current_state import CurrentState, LakeTableCache, floor_of
from cdcavro.spark.lake.sinks import (
    Delta,
    Iceberg,
    check_separate,
    locate,
    present_columns,
    properties_of,
    put_properties,
    register,
    retry,
)
from cdcavro.spark.lake.spark_tables import (
    CHANGES,
    COLLECTED,
    Changelog,
    SparkLake,
    check_spaces,
    pieces_of,
    rows_not_held,
)
from cdcavro.spark.session import first_line, reach_s3, session_of
from cdcavro.sync.local.local_sinks import native_tables
from cdcavro.sync.native.delta_log import local_path, newest_version
from cdcavro.sync.native.native_state import NativeCache, NativeState
from cdcavro.sync.native.native_tables import NativeChangelog, followed_rows
from cdcavro.sync.native.native_versions import NativeVersions
from cdcavro.sync.native.shard_tables import ShardTable, ShardVersions, steps_done
from cdcavro.sync.outputs.table_rows import ROW_TYPES
from cdcavro.sync.outputs.writer import BatchRows, WriteResult, lake_marks
from cdcavro.table.ddl.steps import TableName

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pyspark.sql import SparkSession
    from pyspark.sql.types import StructType

    from cdcavro.lake.evolution import Step
    from cdcavro.lake.typed_rows import RowFacts
    from cdcavro.spark.lake.sinks import Sink
    from cdcavro.spark.lake.spark_tables import Reading
    from cdcavro.sync.native.native_columns import NativeLake
    from cdcavro.sync.native.native_tables import NativeTables
    from cdcavro.sync.outputs.sink_settings import Job, LakeSettings
    from cdcavro.sync.outputs.writer import Rows, Waiting, Writer
    from cdcavro.table.history import Table

    # What a table is called in the lake, and what tells it from others there.
    _Place = tuple[TableName, str | None]

# Faults of one table. With `ignore`, a value may be too large for its column in the lake.
_REFUSALS: Final = (
    CdcAvroError,
    AnalysisException,
    IllegalArgumentException,
    ArithmeticException,
    NumberFormatException,
    DateTimeException,
)


def spark_lake(lake: DeltaLake | IcebergLake) -> Sink:
    """Return a lake as Spark writes it."""
    own, shapes = (lake.is_older, lake.owner), lake.shapes
    if isinstance(lake, DeltaLake):
        return Delta(lake.root, *own, shapes=shapes, is_readable=lake.is_readable)
    return Iceberg(lake.catalog, *own, shapes=shapes, is_shared=lake.is_shared, is_plain=lake.is_plain)


def spark_folder(sink: Sink, spark: SparkSession) -> str | None:
    """Return the folder of a lake whose tables are in files; None for an Iceberg catalog of another kind."""
    if isinstance(sink, Delta):
        return sink.root
    catalog = f"spark.sql.catalog.{sink.catalog}"
    return spark.conf.get(f"{catalog}.warehouse", None) if spark.conf.get(f"{catalog}.type", None) == "hadoop" else None


@dataclass(frozen=True)
class LakeSink:
    """The lake of a pipeline on Spark; `settings` are its own."""

    settings: LakeSettings

    @property
    def sink(self) -> Sink:
        """The lake, as Spark writes it."""
        return spark_lake(self.settings.lake)

    def identity(self, spark: SparkSession) -> str:  # noqa: ARG002  as that of topics
        """Return what identifies the lake, and the form of its tables."""
        return self.settings.identity

    def connect(self, spark: SparkSession) -> None:
        """Tell a session the properties of the lake's catalog, if it has any.

        Raises `SetupError`, which shows no value, for a session that has others, as its tables may be elsewhere.
        """
        own, lake = self.settings, self.settings.lake
        reach_s3(spark)
        if isinstance(lake, DeltaLake):
            for name, value in (metastore_settings(own.catalog) if own.catalog else {}).items():
                if spark.conf.get(name, None) != value:
                    raise SetupError(f"{own.name}: names in Hive's metastore need a session with {name} = {value}")
            return
        settings = spark_catalog(lake.catalog, own.catalog) if own.catalog else {}
        for name, value in settings.items():
            if spark.conf.get(name, value) != value:
                raise SetupError(f"{own.name}: the session has another value of {name} than catalog of the lake says")
            spark.conf.set(name, str(value))

    def folders(self, spark: SparkSession) -> list[str]:
        """Return the folders in which the tables are, if they are known."""
        return self.sink.folders(spark)

    def check(self, spark: SparkSession) -> None:
        """Look for the lake. Raises as the sink's own check does."""
        self.sink.check(spark)

    def check_owner(
        self, spark: SparkSession, job: Job | None, names: Sequence[TableName], is_ours: Callable[[TableName], bool]
    ) -> None:
        """Look for lake tables of other pipelines: of tables with these names, or without names of all that `is_ours` has.

        If such tables are to be adopted, nothing is looked for. Raises `FileError`, and `SchemaError` as
        `check_separate` and `check_spaces` do.
        """
        if self.settings.is_adopting:
            return
        own_id, unmarked = ("", frozenset[TableName]()) if job is None else (job.id, job.unmarked)
        sink = replace(self.sink, owner=own_id)
        for name in names:
            own_sink = locate(spark, sink, name)
            check_separate(spark, own_sink, name)
            check_spaces(spark, own_sink, name)
            for identifier, owner in foreign_tables(spark, own_sink, name).items():
                if owner is not None or name not in unmarked:
                    raise foreign_table_error(identifier, owner)
        if not names:
            for identifier in sink.tables(spark):
                properties = properties_of(spark, identifier)
                owner, named = properties.get(OWNER), properties.get(NAME)
                if owner not in (None, own_id) and (named is None or is_ours(TableName(*json.loads(named)))):
                    raise foreign_table_error(identifier, owner)

    def look(self, spark: SparkSession, name: TableName, suffix: str, *, is_opened: bool) -> LakeMark | None:
        """Return the mark of a lake table, whose properties are read if it is opened; None if it is not there.

        Also not under its first name. Of one that cannot be looked at, nothing is known, nor of one that is not opened, if
        it is not in files of this machine: that is a request for each.
        """
        both = {one.identifier(name, suffix): one for one in (self.sink, replace(self.sink, is_older=True))}
        folder = spark_folder(self.sink, spark)
        try:
            if not is_opened and (folder is None or local_path(folder) is None):
                return LakeMark(suffix, None, None)
            for sink in both.values():
                if sink.is_there(spark, name, suffix):
                    held = properties_of(spark, sink.identifier(name, suffix)) if is_opened else {}
                    return LakeMark(suffix, held.get(CREATED), None, version_of(sink, name, suffix))
        except (PySparkException, Py4JError):
            return LakeMark(suffix, None, None)
        return None

    def writer(self, job: Job, publisher: object) -> LakeTables:  # noqa: ARG002  as that of topics
        """Return what writes batches of a pipeline."""
        return LakeTables(self.settings, job.id, job.unmarked, check=job.check)

    def collect(self, spark: SparkSession, writer: Writer, job: Job) -> int:
        """Let a writer write what was collected without Spark; return how many bytes of a batch are to be collected.

        None are if this process does not reach the lake, lacks the library, or must not, nor where a catalog has names.
        """
        folder, own = spark_folder(self.sink, spark), self.settings
        if (
            own.catalog
            or not own.is_native
            or folder is None
            or SCHEME.match(folder)
            or not isinstance(writer, LakeTables)
        ):
            return 0
        try:
            writer.native = native_tables(replace(own, warehouse=folder), job)
        except SetupError:
            return 0
        writer.spark = spark
        return COLLECTED


@dataclass
class LakeTables:
    """Writes batches to the tables of a lake."""

    settings: LakeSettings
    # What is unique to the pipeline.
    job: str
    # The tables that it wrote when lake tables did not say whose they are.
    unmarked: frozenset[TableName] = frozenset()
    # What raises an error if another process has the state, and so writes these tables, too.
    check: Callable[[], None] = lambda: None
    # What writes rows that were collected, and the session for tables that are too large for it.
    native: NativeTables | None = None
    spark: SparkSession | None = None
    _sinks: dict[TableName, Sink] = field(default_factory=dict)
    # What the properties of changelogs say: up to where they were adopted, and what was made up when they were created.
    _logs: dict[TableName, tuple[bytes, str | None]] = field(default_factory=dict)
    # The versions of lake tables before this run wrote them.
    _found: dict[tuple[TableName, str], int | None] = field(default_factory=dict)
    # By tables and their shards, as what follows.
    _prepared: dict[tuple[_Place, str], tuple[int, int]] = field(default_factory=dict)
    # Why tables have no current state, as it was said last.
    _reasons: dict[_Place, str | None] = field(default_factory=dict)
    _forgotten: dict[_Place, date] = field(default_factory=dict)
    # The lake tables that have names in the metastore.
    _registered: set[str] = field(default_factory=set)
    _known: dict[TableName, LakeTableCache] = field(default_factory=dict)
    _kept: dict[_Place, NativeCache] = field(default_factory=dict)
    _completion: CompletionTimes = field(init=False)
    _readings: dict[_Place, tuple[tuple[int, int, StructType], Reading]] = field(default_factory=dict)
    _shards: ShardVersions = field(default_factory=ShardVersions)

    def __post_init__(self) -> None:
        """Know of no table when it was told up to when it is complete."""
        self._completion = CompletionTimes(self.settings.complete_minutes)

    @property
    def has_changes(self) -> bool:
        """Whether every change is wanted, and not only the last of each key."""
        return self.settings.is_changelog or self.settings.forms.kept is not None

    @property
    def has_states(self) -> bool:
        """Whether current states are wanted."""
        return self.settings.is_current

    @property
    def _named(self) -> dict[str, bool]:
        """The lake tables of a table that have names in a metastore, and whether each is wanted of every table."""
        return {"": self.settings.is_current, "changes": self.settings.is_changelog}

    def write(self, tables: Sequence[Rows]) -> list[WriteResult]:
        """Write the rows of tables, several at a time; those with one name in the lake one after the other.

        Rows that were collected are written without Spark, but where a table is too large to be merged so. Raises
        `FileError` for a lake table of another pipeline, and writes nothing.
        """
        if not tables:
            return []
        for table, name, waiting in tables:
            self._shards.learn(table, name, shard_of(waiting))
        native, spark = self.native, self.spark
        if native is None or spark is None:
            spark = session_of(tables)
            self._claim_all(spark, tables)
            return self._write_frames(spark, tables)
        native.shards = self._shards
        frames = {name for _, name, waiting in tables if not (_are_collected(waiting) and _fits(native, name))}
        own = [(one, name, _as_frames(spark, waiting)) for one, name, waiting in tables if name in frames]
        self._claim_all(spark, own)
        for _, name, _ in tables:
            # The other writer changes the table.
            native.forget(name) if name in frames else self._forget(name)
        collected = [one for one in tables if one[1] not in frames]
        written = [WriteResult(*one) for one in native.write(collected)] if collected else []
        # What the library cannot write, Spark may; what it refuses for the table's sake, Spark refuses as well.
        refused = {one.number for one in written if one.error is not None}
        again = [(one, name, _as_frames(spark, waiting)) for one, name, waiting in collected if one.number in refused]
        self._claim_all(spark, again)
        for _, name, _ in again:
            native.forget(name)
        return [one for one in written if one.error is None] + self._write_frames(spark, own + again)

    def _forget(self, name: TableName) -> None:
        """Forget what is known of a table, which another writer changes."""
        self._known.pop(name, None)
        for suffix in ("", CHANGES):
            self._found.pop((name, suffix), None)
        for place in [one for one in self._kept if one[0] == name]:
            self._kept.pop(place)

    def _claim_all(self, spark: SparkSession, tables: Sequence[Rows]) -> None:
        """Find the lake tables of tables, before anything is written."""
        # A name that was refused has no owner: it may be one of which a catalog knows better by now.
        names = {name: None for _, name, _ in tables if name not in self._sinks or self._sinks[name].owner is None}
        with ThreadPoolExecutor(self.settings.parallel) as pool:
            list(pool.map(partial(self._claim, spark), names))

    def _write_frames(self, spark: SparkSession, tables: Sequence[Rows]) -> list[WriteResult]:
        groups: dict[TableName, list[Rows]] = {}
        for one in tables:
            groups.setdefault(one[1], []).append(one)
        with ThreadPoolExecutor(self.settings.parallel) as pool:
            written = pool.map(partial(self._write_all, spark), groups.values())
            return [one for group in written for one in group]

    def _claim(self, spark: SparkSession, name: TableName) -> None:
        """Find the lake tables of a table, and make them this pipeline's."""
        try:
            sink = locate(spark, replace(spark_lake(self.settings.lake), owner=self.job), name)
            check_spaces(spark, sink, name)
        except SchemaError:
            # The write refuses such a name.
            sink = spark_lake(self.settings.lake)
        else:
            is_known = name in self.unmarked
            claim(spark, sink, name, is_known=is_known, is_adopting=self.settings.is_adopting)
            self._found |= {(name, suffix): version_of(sink, name, suffix) for suffix in ("", CHANGES)}
        self._sinks[name] = sink

    def _write_all(self, spark: SparkSession, tables: Sequence[Rows]) -> list[WriteResult]:
        return [self._write(spark, *one) for one in tables]

    def _write(self, spark: SparkSession, table: Table, name: TableName, waiting: Waiting) -> WriteResult:
        written, has_rows = list[str](), None
        sink, own = self._sinks[name], self.settings
        # It has what versions and shards need of a lake.
        work = _Work(spark, cast("NativeLake", SparkLake(spark, sink, self.check)), table, name, waiting, [])
        chosen = own.change_columns, own.statements.excluded_of(table), Origin.of(self.job, table)
        try:
            check_spaces(spark, sink, name)
            self._register(spark, sink, name, [one for one, is_wanted in self._named.items() if is_wanted])
            if work.shard is not None:
                behavior = LENIENT if table.is_gone else own.behavior
                work = work._replace(lake=self._shards.lake(work.lake, table, name, work.shard, behavior))
            reason = changelog_reason(table.versions)
            if own.is_current and reason is None:
                form, how = own.forms.of(table), (name, own.behavior, own.guard)
                if form == CURRENT and work.shard is None:
                    known = self._known.setdefault(name, LakeTableCache())
                    state = CurrentState(sink, *how, known, *chosen, check_held=self.check)
                    has_rows = retry(lambda: self._merge(state, work))
                else:
                    given = work.lake, *how, self._kept.setdefault(work.place, NativeCache()), *chosen
                    kept = NativeState(*given) if form == CURRENT else NativeVersions(*given, form=form)
                    has_rows = retry(lambda: self._merge_here(kept, work))
                written.append("")
            if own.is_changelog or reason is not None:
                if own.is_current and self._reasons.get(work.place) != reason:
                    self._reasons[work.place] = reason
                    work.steps.extend([] if reason is None else [reason])
                self._append(Changelog(sink, name, own.behavior, *chosen), work)
                written.append(CHANGES)
        except _REFUSALS as error:
            # Somebody may mend the lake table.
            self._forget(name)
            return WriteResult(table.number, work.steps, first_line(error))
        self._note("a name in the metastore", work.steps, partial(self._register, spark, sink, name, written))
        self._note(COMPLETE, work.steps, partial(self._tell, work, written))
        seen = [self._seen(work, suffix) for suffix in written]
        marks = lake_marks(seen, table, waiting, chosen[1], has_rows=has_rows, is_adopted=own.is_adopting)
        return WriteResult(table.number, work.steps, None, marks)

    def _seen(self, work: _Work, suffix: str) -> LakeMark:
        """Return what tells a lake table that was written from others: what is known without looking at it again."""
        name = work.name
        known = self._kept.get(work.place) or self._known.get(name)
        created = self._logs[name][1] if suffix else (known.properties or {}).get(CREATED) if known else None
        version = version_of(self._sinks[name], name, suffix)
        # Each shard says when it was begun.
        return LakeMark(suffix, None if work.shard else created, version, self._found.pop((name, suffix), None))

    def _note(self, what: str, steps: list[str], put: Callable[[], None]) -> None:
        """Let a lake table say what it is to say, or say why it does not: the rows are written all the same."""
        try:
            put()
        except _REFUSALS as error:
            steps.append(f"{what} is not set: {first_line(error)}")

    def _register(self, spark: SparkSession, sink: Sink, name: TableName, suffixes: Sequence[str]) -> None:
        """Let the lake tables of a table that are there have their names in the metastore, if the lake has one."""
        if isinstance(sink, Delta) and self.settings.catalog:
            for suffix in suffixes:
                identifier = sink.identifier(name, suffix)
                if identifier not in self._registered and register(spark, sink, name, suffix):
                    self._registered.add(identifier)

    def _tell(self, work: _Work, written: Sequence[str]) -> None:
        """Let the lake tables of a table that were written say up to when it is complete, if it is time."""
        properties = self._completion.properties(work.place, work.waiting[-1].complete_until if work.waiting else None)
        for suffix in written if properties else ():
            retry(partial(work.lake.table(work.name, suffix).alter, [], properties))

    def _merge(self, state: CurrentState, work: _Work) -> bool | None:
        """Merge rows; return None, or False if they emptied the table: whether it has rows behind that is not known."""
        self.check()
        facts, versions = work.facts, work.table.versions
        rows = reduce(DataFrame.unionByName, [part.rows for part in work.waiting]) if work.waiting else None
        if facts is not None and rows is not None:
            facts = facts._replace(floor=floor_of(rows, facts, state.excluded))
        self._prepare("state", work, lambda: state.prepare(work.spark, versions, facts=facts))
        if rows is not None:
            state.merge(rows, versions, facts=facts)
            self._forget_deletes(work, partial(state.forget_deletes, work.spark))
        return None if facts is None or facts.floor is None else False

    def _merge_here(self, state: NativeState, work: _Work) -> bool | None:
        """Merge all changes of rows in this process, some keys at a time: they make the same rows however they come.

        Return what `_merge` does.
        """
        self.check()
        floor = None
        facts, versions = work.facts, work.table.versions
        self._prepare("state", work, lambda: state.prepare(versions, facts=facts))
        if facts is not None:
            for piece in (one for part in work.waiting for one in pieces_of(part.rows)):
                rows, own = followed_rows(piece, facts, state.excluded)
                state.merge(rows, versions, facts=own)
                floor = own.floor or floor
            if state.form == CURRENT:
                self._forget_deletes(work, state.forget_deletes)
        return None if floor is None or state.form != CURRENT else False

    def _forget_deletes(self, work: _Work, forget: Callable[[], None]) -> None:
        """Let a current state forget deletes whose guard is over, once a day."""
        today = datetime.now(UTC).date()
        if self._forgotten.get(work.place) != today:
            forget()
            self._forgotten[work.place] = today

    def _append(self, log: Changelog, work: _Work) -> None:
        own = NativeChangelog(work.lake, log.table, log.behavior, log.change_columns, log.excluded, log.origin)
        versions, is_alone = work.table.versions, work.shard is None
        self._prepare("log", work, lambda: log.prepare(work.spark, versions) if is_alone else own.prepare(versions))
        if log.table not in self._logs:
            held = properties_of(work.spark, log.identifier)
            self._logs[log.table] = adopted_until(held), held.get(CREATED)
        for part in work.waiting:
            # Each by itself: what was appended before is not written again.
            retry(partial(self._append_part, log, work, part))

    def _append_part(self, log: Changelog, work: _Work, part: BatchRows) -> None:
        """Append rows, read as those before unless the table has changed, or somebody has changed its lake table."""
        frame, table = work.spark.table(log.identifier), work.table
        key = table.number, table.schema.version, frame.schema
        known = self._readings.get(work.place)
        if known is None or known[0] != key:
            own = work.lake.table(log.table, CHANGES)
            shard = (own.columns(), own.rows) if isinstance(own, ShardTable) else None
            known = self._readings[work.place] = key, log.reading(frame, table.versions, shard)
        job = part.mark(self.job, table.number)
        rows = rows_not_held(part.rows, log.identifier, until) if (until := self._logs[log.table][0]) else part.rows
        log.append(rows, table.versions, job=job, batch=part.batch, attempt=part.attempt, reading=known[1])

    def _prepare(self, kind: str, work: _Work, prepare: Callable[[], Sequence[Step | str]]) -> None:
        """Prepare a lake table for the newest version, unless that is done, or a later table goes on with it."""
        wanted = work.table.number, work.table.schema.version
        if self._prepared.get((work.place, kind), (-1, 0)) < wanted:
            work.steps.extend(steps_done(work.lake, prepare()))
            self._prepared[work.place, kind] = wanted


class _Work(NamedTuple):
    """The rows of a table that are to be written."""

    spark: SparkSession
    # The lake, as a shard sees it if the table is one.
    lake: NativeLake
    table: Table
    name: TableName
    waiting: Waiting
    # What was done to its lake tables.
    steps: list[str]

    @property
    def shard(self) -> str | None:
        """What tells the table from others in its lake table; None if it is alone there."""
        return shard_of(self.waiting)

    @property
    def place(self) -> _Place:
        """What the table is called in the lake, and what tells it from others there."""
        return self.name, self.shard

    @property
    def facts(self) -> RowFacts | None:
        """What is known of the rows; None if there are none."""
        return facts_of_parts([part.facts for part in self.waiting]) if self.waiting else None


def shard_of(waiting: Waiting) -> str | None:
    """Return what tells the table of rows from others in its lake table; None if it is alone there."""
    return waiting[0].shard if waiting else None


def _frame_of(spark: SparkSession, rows: pa.Table) -> DataFrame:
    """Return rows of a table that were collected as a frame."""
    return spark.createDataFrame([tuple(row.values()) for row in rows.to_pylist()], ROW_TYPES)


def version_of(sink: Sink, name: TableName, suffix: str) -> int | None:
    """Return the newest version of a lake table on this machine; None where it is not known without opening it."""
    version = newest_version(sink.path(name, suffix)) if isinstance(sink, Delta) else None
    # A path may be one of another file system.
    return None if version == -1 else version


def _fits(native: NativeTables, name: TableName) -> bool:
    """Return whether this process can write a table: its library reaches it, and it is not too large."""
    try:
        return native.fits(name)
    except CdcAvroError:
        return False


def _are_collected(waiting: Waiting) -> bool:
    return all(isinstance(part.rows, pa.Table) for part in waiting)


def _as_frames(spark: SparkSession, waiting: Waiting) -> list[BatchRows]:
    """Return rows as frames, also those that were collected."""
    return [
        part._replace(kept=_frame_of(spark, part.rows)) if isinstance(part.rows, pa.Table) else part for part in waiting
    ]


# What the pipeline takes from here.


def claim(spark: SparkSession, sink: Sink, table: TableName, *, is_known: bool, is_adopting: bool) -> None:
    """Make the lake tables of a table that are there those of the sink's owner, if they are nobody else's.

    A table without an owner is somebody else's, too, unless the owner wrote it when tables had none (`is_known`). With
    `is_adopting`, tables of others are adopted. Raises `FileError`, and changes nothing.
    """
    foreign = foreign_tables(spark, sink, table)
    is_adopted = {one: adopts(one, own, is_known=is_known, is_adopting=is_adopting) for one, own in foreign.items()}
    for identifier, adopted in is_adopted.items():
        if adopted:
            _adopt(spark, sink, identifier)
        else:
            put_properties(spark, identifier, {OWNER: sink.owner or ""})


def foreign_tables(spark: SparkSession, sink: Sink, table: TableName) -> dict[str, str | None]:
    """Return the lake tables of a table that are not those of the sink's owner, each with its own owner."""
    found = {}
    for suffix in SUFFIXES:
        if sink.is_there(spark, table, suffix):
            identifier = sink.identifier(table, suffix)
            owner = properties_of(spark, identifier).get(OWNER)
            if owner != sink.owner:
                found[identifier] = owner
    return found


def _adopt(spark: SparkSession, sink: Sink, identifier: str) -> None:
    lake, until = spark.table(identifier), None
    if OPERATION in lake.columns:
        until = bytes(lake.agg(sf.max(ORDER).alias("last")).collect()[0]["last"] or b"")
    columns = [one.name for one in present_columns(lake)]
    put_properties(spark, identifier, adopted_properties(sink.owner or "", columns, until))
