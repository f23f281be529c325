"""Sinks of a pipeline as the local runner writes to them: lakes, topics of Kafka, Avro files, and places of rejects.

Lake tables are also maintained, while the pipeline runs, too: small files are put together, and old ones removed. It is done
by the calls of the library that writes the tables, one table at a time. What a library cannot do is said.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Final, NamedTuple, Protocol, cast

import pyarrow as pa
import pyarrow.compute as pc

from cdcavro.errors import CdcAvroError, FileError, JobError, SchemaError, SetupError, number_of, shorten, shown
from cdcavro.lake.catalogs import NESSIE
from cdcavro.lake.job_state import replace_file
from cdcavro.lake.lake_columns import arrow_type
from cdcavro.lake.lakes import NAME, OWNER, SUFFIXES, DeltaLake, foreign_table_error
from cdcavro.lake.sql_statements import HEADERS
from cdcavro.lake.typed_rows import DROP
from cdcavro.sync.local.local_outcomes import in_order
from cdcavro.sync.native.native_columns import Mark
from cdcavro.sync.native.native_state import NativeState
from cdcavro.sync.native.native_tables import NativeTables, foreign_tables, locate, look
from cdcavro.sync.outputs import schema_changes
from cdcavro.sync.outputs.avro_folder import AvroFolder, FolderWriter, write_versions
from cdcavro.sync.outputs.reject_places import COLUMNS, dotted_name
from cdcavro.sync.outputs.schema_changes import SchemaChange
from cdcavro.sync.outputs.sink_settings import AvroFiles, KafkaTopics, LakeSettings
from cdcavro.sync.pipeline import JOB, job_of, names_in
from cdcavro.sync.reading.stored_state import state_folder
from cdcavro.table.ddl.steps import TableName

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from pathlib import Path

    from cdcavro.lake.account import LakeMark
    from cdcavro.lake.lakes import Attempt
    from cdcavro.sync.native.native_columns import NativeLake, NativeTable
    from cdcavro.sync.outputs.reject_places import RejectOutput, RejectPlaces, Rejects
    from cdcavro.sync.outputs.sink_settings import Job
    from cdcavro.sync.outputs.writer import Publisher, Writer
    from cdcavro.sync.pipeline import Pipeline
    from cdcavro.table.history import Table

_EXTRA: Final = "pip install 'cdcavro[local]'"
_NO_JOB: Final = ""


class LocalSink(Protocol):
    """A sink as this process writes to it."""

    def identity(self) -> str:
        """Return what identifies the sink, the same as on Spark: a state is bound to it."""

    def check(self) -> None:
        """Check that the sink can be reached and written to. Raises `FileError` and `JobError`."""

    def writer(self, job: Job, publisher: Publisher | None) -> Writer:
        """Return what writes batches of a pipeline."""


@dataclass(frozen=True)
class LocalLakeSink:
    """The lake of a pipeline; `settings` are its own."""

    settings: LakeSettings

    @property
    def lake(self) -> NativeLake:
        """The lake. Raises `SetupError` if its library is not installed."""
        return native_lake(self.settings)

    def identity(self) -> str:
        """Return what identifies the lake, and the form of its tables, which cannot change: a state is bound to both."""
        return self.settings.identity

    def check(self) -> None:
        """Look for the lake. Raises `FileError` and `JobError`."""
        self.lake.check()

    def check_owner(self, job: Job | None, names: Sequence[TableName], is_ours: Callable[[TableName], bool]) -> None:
        """Look for lake tables of other pipelines: of tables with these names, or without names of all that `is_ours` has.

        If such tables are to be adopted, nothing is looked for. Raises `FileError`, and `SchemaError` for a table whose
        folder is around another's.
        """
        if self.settings.is_adopting:
            return
        own_id, unmarked = (_NO_JOB, frozenset[TableName]()) if job is None else (job.id, job.unmarked)
        lake = cast("NativeLake", replace(cast("Any", self.lake), owner=own_id))
        for name in names:
            own = locate(lake, name)
            own.make_room(name)
            for table, owner in foreign_tables(own, name, own_id):
                if owner is not None or name not in unmarked:
                    raise foreign_table_error(table.identifier, owner)
        for table in lake.tables() if not names else ():
            properties = table.properties() or {}
            owner, named = properties.get(OWNER), properties.get(NAME)
            if owner not in (None, own_id) and (named is None or is_ours(TableName(*json.loads(named)))):
                raise foreign_table_error(table.identifier, owner)

    def look(self, *, is_opened: bool) -> Callable[[TableName, str], LakeMark | None]:
        """Return what looks at lake tables, as `native_tables.look` does."""
        return partial(look, self.lake, is_opened=is_opened)

    def writer(self, job: Job, publisher: Publisher | None) -> Writer:  # noqa: ARG002  as that of topics
        """Return what writes batches of a pipeline."""
        return cast("Writer", native_tables(self.settings, job))


@dataclass(frozen=True)
class AvroFileSink:
    """The Avro files of a pipeline; `settings` are their own."""

    settings: AvroFiles

    def identity(self) -> str:
        """Return what identifies the files."""
        return self.settings.name

    def check(self) -> None:
        """Check that the folder can be written to. Raises `FileError`."""
        self.settings.check()

    def writer(self, job: Job, publisher: Publisher | None) -> LocalFileWriter:  # noqa: ARG002  as that of topics
        """Return what writes batches of a pipeline."""
        return LocalFileWriter(self.settings, AvroFolder(self.settings.folder, job.id))


class LocalFileWriter(FolderWriter):
    """Writes batches to files in a folder of the pipeline's."""

    def _files_of(self, table: Table, rows: pa.Table) -> Callable[[Path], int]:
        """Return what writes the rows of a batch to a folder, and returns how many files that makes."""
        schemas = {schema.version: schema.envelope.json for schema in table.versions}
        # A DROP has no payload.
        changes = rows.filter(pc.not_equal(rows.column("operation"), DROP)).select(
            ["version", "order", "payload", *([HEADERS] if self.settings.has_headers else [])]
        )
        sorted_changes = in_order(changes, "version", "order")
        return lambda fresh: write_versions(sorted_changes, fresh, schemas, self.settings)


def native_tables(settings: LakeSettings, job: Job) -> NativeTables:
    """Return what writes batches of a pipeline to the tables of a lake. Raises as `native_lake` does."""
    return NativeTables(
        native_lake(settings, job.check),
        job.id,
        is_current=settings.is_current,
        is_changelog=settings.is_changelog,
        behavior=settings.behavior,
        guard=settings.guard,
        parallel=settings.parallel,
        is_adopting=settings.is_adopting,
        unmarked=job.unmarked,
        change_columns=settings.change_columns,
        statements=settings.statements,
        forms=settings.forms,
        complete_minutes=settings.complete_minutes,
    )


def native_lake(settings: LakeSettings, check: Callable[[], None] = lambda: None) -> NativeLake:
    """Return a lake as a library writes it; `check` is called whenever a version of a table was looked up.

    Raises `SetupError` if the library is not installed, and for a catalog that only Spark knows.
    """
    lake = settings.lake
    if isinstance(lake, DeltaLake) and settings.catalog:
        raise SetupError(
            f"{lake.name}: tables get names in Hive's metastore on Spark only: without it, leave catalog out of [lake]"
        )
    try:
        if isinstance(lake, DeltaLake):
            from cdcavro.sync.native.delta_lake import NativeDelta  # noqa: PLC0415  it takes a while to import

            owned = lake.root, lake.is_older, lake.owner
            return NativeDelta(*owned, shapes=lake.shapes, is_readable=lake.is_readable, check_held=check)
        from cdcavro.sync.native.iceberg_lake import Connection, NativeIceberg  # noqa: PLC0415
    except ModuleNotFoundError as error:
        raise SetupError(f"{error.name} is not installed: {_EXTRA}") from error
    own = lake.catalog, lake.is_older, lake.owner, lake.is_shared, lake.is_plain
    if settings.catalog:
        if settings.catalog["type"] == NESSIE:
            raise SetupError(
                f'{lake.name}: without Spark, Nessie is reached at its address of Iceberg, with type = "rest"'
            )
        connection = Connection(lake.catalog, settings.catalog)
        return NativeIceberg(*own, shapes=lake.shapes, connection=connection, check_held=check)
    if settings.warehouse is None:
        raise SetupError(
            f"{lake.name} has neither catalog nor warehouse in [lake]: without Spark, one of them says where its tables are"
        )
    return NativeIceberg(*own, shapes=lake.shapes, warehouse=settings.warehouse, check_held=check)


def _topic_sink(settings: KafkaTopics) -> LocalSink:
    try:
        from cdcavro.sync.local.topic_sink import LocalTopicSink  # noqa: PLC0415  it is of use for Kafka only
    except ModuleNotFoundError as error:
        raise SetupError(f"{error.name} is not installed: {_EXTRA}") from error
    return LocalTopicSink(settings)


# What writes to each kind of sink in this process.
SINKS: Final[Mapping[type, Callable[[Any], LocalSink]]] = {
    LakeSettings: LocalLakeSink,
    KafkaTopics: _topic_sink,
    AvroFiles: AvroFileSink,
}


def sink_of(settings: LakeSettings | KafkaTopics | AvroFiles) -> LocalSink:
    """Return what writes to a sink with these settings."""
    return SINKS[type(settings)](settings)


@dataclass
class _AppendedTable:
    """A lake table of the pipeline's own, to which each batch is appended once; the fields are as those of `NativeTables`."""

    columns: ClassVar[Mapping[str, str]]
    # What the table is one of, and what marks its batches.
    what: ClassVar[str]
    mark: ClassVar[str]
    lake: NativeLake
    table: TableName
    job: str
    is_adopting: bool = False
    _own: NativeTable | None = field(default=None)

    @property
    def name(self) -> str:
        """What it is called in messages."""
        return f"the table {dotted_name(self.table)} of {self.lake.name}"

    def append(self, rows: pa.Table, batch: int, time: datetime, attempt: Attempt) -> None:
        """Append the rows of a batch, unless they are there. Raises `FileError` if the table is another one."""
        if self._own is None:
            self._own = self._prepare()
        same = {"time": pa.scalar(time, pa.timestamp("us", "UTC")), "batch": pa.scalar(batch, pa.int64())}
        columns = {
            name: pa.repeat(same[name], rows.num_rows) if name in same else rows.column(name).cast(arrow_type(type))
            for name, type in self.columns.items()
        }
        since = None if attempt.is_first else attempt.since
        self._own.append(pa.table(columns), Mark(f"{self.job}/{self.mark}", batch, since))

    def _prepare(self) -> NativeTable:
        lake = locate(cast("NativeLake", replace(cast("Any", self.lake), owner=self.job)), self.table)
        lake.make_room(self.table)
        own = lake.table(self.table)
        own.create([], self.columns, lake.properties(list(self.columns)))
        found = own.schema()
        if [(one.name, one.type) for one in found] != [(name, arrow_type(type)) for name, type in self.columns.items()]:
            got = f"one with other columns: {shown(', '.join(found.names))}"
            raise FileError(dotted_name(self.table), f"a table of {self.what}", got)
        owner = (own.properties() or {}).get(OWNER)
        if owner not in (None, self.job) and not self.is_adopting:
            raise foreign_table_error(own.identifier, owner)
        if owner != self.job:
            own.alter([], {OWNER: self.job})
        return own


class LocalRejectTable(_AppendedTable):
    """A lake table of rejects, which has those of each batch once."""

    columns, what, mark = COLUMNS, "rejects", "rejects"

    def write(self, rejects: Rejects) -> None:
        """Append rejects. Raises as `append` does."""
        self.append(rejects.rows, rejects.batch, rejects.time, rejects.attempt)


class LocalSchemaChangeTable(_AppendedTable):
    """A lake table of what was decided for statements, which has each batch once."""

    columns, what, mark = schema_changes.COLUMNS, "schema changes", "schema_changes"

    def write(self, rows: Sequence[SchemaChange], batch: int, time: datetime, attempt: Attempt) -> None:
        """Append the rows of a batch. Raises as `append` does."""
        self.append(pa.Table.from_pylist([row._asdict() for row in rows], _SCHEMA_CHANGES), batch, time, attempt)


_SCHEMA_CHANGES: Final = pa.schema(
    [(name, arrow_type(type)) for name, type in schema_changes.COLUMNS.items() if name in SchemaChange._fields]
)


def schema_change_output(places: RejectPlaces, job: str) -> LocalSchemaChangeTable | None:
    """Return what writes what was decided for statements, if that is to be written; `job` is unique to the pipeline."""
    if places.lake is None or places.schema_changes is None:
        return None
    return LocalSchemaChangeTable(native_lake(places.lake), places.schema_changes, job, places.lake.is_adopting)


def reject_outputs(places: RejectPlaces, job: str) -> list[RejectOutput]:
    """Return what writes rejects; `job` is unique to the pipeline."""
    found: list[RejectOutput] = []
    if places.lake is not None and places.table is not None:
        found.append(LocalRejectTable(native_lake(places.lake), places.table, job, places.lake.is_adopting))
    if places.kafka is not None:
        from cdcavro.sync.local.topic_sink import LocalRejectTopic  # noqa: PLC0415  it is of use for Kafka only

        found.append(LocalRejectTopic(places.kafka, job))
    return found


# How long files are kept that no version needs, as both Delta Lake and `deltalake` have it.
KEEP: Final = timedelta(days=7)


class Maintained(NamedTuple):
    """What was done to a lake table."""

    # Its name in messages.
    table: str
    # How many files it has fewer, and how many old ones were removed.
    fewer: int
    removed: int
    # What could not be done, and why; None if all was.
    left: str | None

    def __str__(self) -> str:
        """Return a sentence."""
        done = f"{number_of(self.fewer, 'file')} fewer, {number_of(self.removed, 'old file')} removed"
        return f"{self.table}: {done}{'' if self.left is None else f'; {self.left}'}"


def maintain(pipeline: Pipeline, keep: timedelta = KEEP) -> Iterator[Maintained]:
    """Yield what was done to each lake table of a pipeline, as it is done.

    Deletes whose guard is over are forgotten, files put together, and those removed that no version needs which is
    younger than `keep`, seven days at least. Tables that are another pipeline's are left alone. What fails is told
    with its table. Raises `FileError` for a state that has none, `SetupError` without a lake or its library, and
    `JobError` for tables that cannot be reached.
    """
    settings = pipeline.sink
    if keep < KEEP:
        raise ValueError(f"files are kept for at least {KEEP.days} days, as readers may need them")
    if not isinstance(settings, LakeSettings):
        raise SetupError(f"{settings.name}: only lake tables are maintained")
    with state_folder(pipeline.state) as folder:
        if not (folder / JOB).exists():
            raise FileError(pipeline.state, "the state of a pipeline", "none")
        job, names = job_of(folder, sink_of(settings).identity(), is_checked=True).id, names_in(folder)
    for name in sorted(set(names.values()), key=str):
        lake = locate(native_lake(settings), name)
        owned = [one for one in (lake.table(name, suffix) for suffix in SUFFIXES) if _owner(one) == job]
        left: list[str] = []
        if owned and _owner(lake.table(name)) == job:
            _try(NativeState(lake, name, guard=settings.guard).forget_deletes, left)
        for table in owned:
            yield _maintain(table, keep, left)
            left = []


MAINTAINED: Final = "maintained.json"
# How much is said of an error, in characters.
_MOST: Final = 1_000


class Maintenance:
    """Maintains the lake tables of a pipeline from time to time, as long as batches come; whichever runner runs them.

    * `pipeline` (Pipeline)
    * `every` (timedelta): how long after the last time. The state has that, for later runs.
    * `note`: takes a sentence on each table with which something was done.
    * `warn`: takes a sentence on what could not be done, for the first time.
    * `keep_on`: is called when it begins, and behind each table.

    Raises `SetupError` without a lake or its library, and for a lake that only Spark reaches.
    """

    def __init__(
        self,
        pipeline: Pipeline,
        every: timedelta,
        note: Callable[[str], None],
        warn: Callable[[str], None],
        keep_on: Callable[[], None] = lambda: None,
    ) -> None:
        if not isinstance(pipeline.sink, LakeSettings):
            raise SetupError(f"{pipeline.sink.name}: only lake tables are maintained")
        native_lake(pipeline.sink)
        self._pipeline, self._every = pipeline, every
        self._note, self._warn, self._keep_on = note, warn, keep_on
        self._last: datetime | None = None
        # What was said of what could not be done, by the table.
        self._left: set[tuple[str, str]] = set()

    def run(self) -> None:
        """Maintain the tables, if it is time; what fails is said, whatever it is, and tried when it is time again."""
        path, now = self._pipeline.folder / MAINTAINED, datetime.now(UTC)
        last = _time_of(path) if self._last is None else self._last
        if timedelta() <= now - last < self._every:
            return
        self._last = now
        self._keep_on()
        try:
            for one in maintain(self._pipeline):
                self._tell(one)
                self._keep_on()
        except Exception as error:  # noqa: BLE001  whatever a library raises, the batches are done and go on
            self._fail("lake tables are not maintained", error)
        try:
            replace_file(path, json.dumps({"at": now.isoformat()}))
        except (CdcAvroError, OSError) as error:
            self._fail("when lake tables were maintained is not written", error)

    def _tell(self, done: Maintained) -> None:
        if done.left is not None and (done.table, done.left) not in self._left:
            self._left.add((done.table, done.left))
            self._warn(str(done))
        elif done.fewer or done.removed:
            self._note(str(done))

    def _fail(self, what: str, error: Exception) -> None:
        reason = str(error) if isinstance(error, CdcAvroError | OSError) else f"{type(error).__name__}: {error}"
        reason = shorten(reason.split("\n", 1)[0], _MOST)
        if (what, reason) not in self._left:
            self._left.add((what, reason))
            self._warn(f"{what}: {reason}")


def _time_of(path: Path) -> datetime:
    """Return when tables were last maintained; a time long ago if that is not known."""
    try:
        return datetime.fromisoformat(json.loads(path.read_bytes())["at"]).astimezone(UTC)
    except (OSError, ValueError, KeyError, TypeError):
        return datetime.min.replace(tzinfo=UTC)


def _owner(table: NativeTable) -> str | None:
    return (table.properties() or {}).get(OWNER)


def _maintain(table: NativeTable, keep: timedelta, left: list[str]) -> Maintained:
    """Maintain a table; `left` is what could not be done before."""
    fewer = _try(table.compact, left)
    removed = _try(lambda: table.vacuum(keep), left)
    return Maintained(table.identifier, fewer, removed, "; ".join(left) or None)


def _try(step: Callable[[], int | None], left: list[str]) -> int:
    """Take a step, and return how many files it was about; what cannot be done is told, and holds up nothing else."""
    try:
        return step() or 0
    except (JobError, SchemaError) as error:
        left.append(str(error))
        return 0
