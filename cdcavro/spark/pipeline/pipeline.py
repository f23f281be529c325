"""Pipeline: messages of a source, in batches, into the tables of a lake, topics or files."""

from __future__ import annotations

import fcntl
import json
import logging
import math
import time
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any, Final
from uuid import uuid4

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException

from cdcavro.errors import CdcAvroError, FileError, JobError
from cdcavro.lake.job_state import JobState, replace_file
from cdcavro.lake.report.account import AccountFile
from cdcavro.spark.pipeline.batch_progress import Reports, check_unchanged, lag_of
from cdcavro.spark.pipeline.batches import Batches
from cdcavro.spark.pipeline.conversion.rounds import PIECES
from cdcavro.spark.pipeline.outputs.lake_tables import Job, LakeNames, LakeSettings, LakeTables
from cdcavro.spark.pipeline.outputs.publishing import Publisher, PublishingWriter
from cdcavro.spark.pipeline.outputs.table_rows import WAITING, WaitingRows
from cdcavro.spark.pipeline.pipeline_rejects import RejectPlaces, SeparatingWriter
from cdcavro.spark.pipeline.secrets import Redaction
from cdcavro.spark.pipeline.settings import Settings
from cdcavro.spark.pipeline.shared_folders import check_shared
from cdcavro.spark.pipeline.sources import Files, replay_stream
from cdcavro.spark.session import classic, first_line
from cdcavro.spark.source.line_frame import whole_files
from cdcavro.table.ddl.steps import TableName

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

    from cdcavro.spark.pipeline.batches import BatchReport
    from cdcavro.spark.pipeline.outputs.avro_files import AvroFiles
    from cdcavro.spark.pipeline.outputs.kafka_topics import KafkaTopics
    from cdcavro.spark.pipeline.outputs.writer import Writer
    from cdcavro.spark.pipeline.settings import RegistrySettings
    from cdcavro.spark.pipeline.sources import Kafka

    AnySink = LakeSettings | KafkaTopics | AvroFiles

_POLL: Final = 1
# How often files that were read are looked at, in seconds, or as a multiple of the time that this takes.
_LOOK: Final = 30
_SHARE: Final = 50
_JOB: Final = "job.json"
_UNMARKED: Final = "unmarked"
# The folder for rejects that are read again.
REPLAY: Final = "replay"
_STREAMS: Final = "org.apache.spark.sql.execution.streaming"
_BRIDGE: Final = "py4j.clientserver"
_NEVER: Final = logging.CRITICAL + 1
# What is raised where Spark logs by something else than Log4j.
_NO_LOG4J: Final = (Py4JError, TypeError)
# Levels are the process's: of two streams that end at once, the first puts them back.
_SILENCING: Final = Lock()


@dataclass(frozen=True)
class Pipeline:
    """A pipeline from a source into a sink.

    * `source` (`Kafka` or `Files`)
    * `sink` (`LakeSettings`, `KafkaTopics` or `AvroFiles`)
    * `state` (str): a folder for all that it remembers: how far it has read, what it learned of tables, rows that wait,
      and rejects. If Spark has several machines, all see it under the same path.
    * `settings` (Settings)
    * `registry` (RegistrySettings or None): where the schemas of tables are published.
    * `redaction` (Redaction): what hides values of variables in errors and reports.
    """

    source: Kafka | Files
    sink: AnySink
    state: str
    settings: Settings = field(default_factory=Settings)
    registry: RegistrySettings | None = None
    redaction: Redaction = field(default_factory=Redaction, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Raise `ValueError` for impossible subjects, places of rejects and sources of framed payloads."""
        _ = self._places
        if self.settings.framed is not None and isinstance(self.source, Files):
            raise ValueError("framed payloads are read from Kafka: files hold lines of text")
        if self.registry is None:
            if self.sink.topic is not None:
                raise ValueError("framed payloads need a registry, which has the ids of their schemas")
            return
        if self.sink.topic is not None and self.registry.topic is not None:
            raise ValueError("subjects are named after the topics of Kafka: the registry takes no topic of its own")
        self.registry.strategy_for(self.sink.topic or self.registry.topic)

    @property
    def rejects(self) -> str:
        """The folder for rejects."""
        return self.settings.rejects or str(Path(self.state) / "rejects")

    @property
    def _places(self) -> RejectPlaces:
        return RejectPlaces.of(self.settings.rejects_table, self.settings.rejects_topic, self.source, self.sink)

    @property
    def waiting(self) -> int:
        """How many tables have rows that wait."""
        return len(WaitingRows(Path(self.state) / WAITING).tables())

    def check(self, spark: SparkSession) -> None:
        """Check that the source, the sink and the registry can be reached, and that no other job uses the state.

        Also that lake tables are no other pipeline's, if their names are known: those that the state has or, for a
        state that begins, all in the lake that are chosen. Raises `FileError`, `JobError` and `RegistryError`, and
        `SetupError` over Spark Connect.
        """
        classic(spark, "a pipeline")
        with self.redaction.errors(), _lock_state(Path(self.state)):
            self._check_shared(spark)
            self._places.check(spark, self.source)
            for name, part in ((self.source.name, self.source), (self.sink.name, self.sink)):
                try:
                    part.check(spark)
                except (PySparkException, Py4JError) as error:
                    reason = first_line(error)
                    reason = self.source.explain(reason) if part is self.source else reason
                    raise JobError(f"{name} cannot be reached: {reason}") from error
            for registry in (self.settings.framed, self.registry):
                if registry is not None:
                    registry.check()
            state = JobState(Path(self.state) / "batches")
            last = max(state.batches(), default=-1) + 1
            state.resume(last, self.settings.tables())
            job = None
            if (Path(self.state) / _JOB).exists():
                job = _job(Path(self.state), self.sink.identity(spark), is_checked=True)
            if isinstance(self.sink, LakeSettings):
                names = [*LakeNames.of(state.facts(last).get("names", [])).names.values()]
                self.sink.check_owner(spark, job, names, self.settings.chosen)

    def run(
        self,
        spark: SparkSession,
        *,
        once: bool = False,
        every: str = "10 seconds",
        say: Callable[[BatchReport], None] = lambda _: None,
    ) -> None:
        """Run until the stream ends: with `once` when all that there is now is read, else when the process ends.

        `every` is how often a batch begins, in Spark's words; `say` is called with the report of each batch. A run goes
        on where the one before stopped or was killed. Raises `JobError` for faults of no message, `FileError` for a
        folder of another job or one that not all machines of Spark share, and `SetupError` over Spark Connect.
        """
        classic(spark, "a pipeline")
        folder = Path(self.state)
        with self.redaction.errors(), _lock_state(folder), whole_files(spark, PIECES), self._publisher() as publisher:
            self._places.check(spark, self.source)
            job = _job(folder, self.sink.identity(spark))
            writer: Writer = self.sink.writer(job.id, publisher)
            if isinstance(writer, LakeTables):
                writer.unmarked = job.unmarked
            if publisher is not None:
                writer = PublishingWriter(writer, publisher)
            writer = SeparatingWriter(writer, self._places, self.sink.topic)
            account = AccountFile(folder, self.redaction.of)
            reports = Reports(
                lambda report: say(self.redaction.of(report)), account, lag_of(self.source, folder / "checkpoint")
            )
            outputs = self._places.outputs(job.id)
            batches = Batches(self.settings, JobState(folder / "batches"), writer, account, reports.add, outputs)
            try:
                self._check_shared(spark)
                try:
                    self._stream(spark, batches, reports, once=once, every=every)
                except PySparkException as error:
                    if batches.failure is not None or not _is_lag_bug(error):
                        raise
                    self._stream(spark, batches, reports, once=once, every=every)
            except PySparkException as error:
                raise _error_of(batches.failure or error, self.source) from error

    def _stream(self, spark: SparkSession, batches: Batches, reports: Reports, *, once: bool, every: str) -> None:
        """Run a stream to its end."""
        with quiet_logger(spark, batches.run) as run:
            query = self._start(spark, run, once=once, every=every)
            try:
                try:
                    self._await(spark, query, reports, once=once)
                    batches.finish(spark)
                finally:
                    reports.tell(query, is_over=True)
            finally:
                query.stop()

    def _await(self, spark: SparkSession, query: StreamingQuery, reports: Reports, *, once: bool) -> None:
        """Pass on the reports of batches until the stream ends.

        Raises `FileError` for files that change after they were read.
        """
        look, is_over = math.inf if once else time.monotonic(), False
        while not is_over:
            is_over = bool(query.awaitTermination(_POLL))
            reports.tell(query)
            began = time.monotonic()
            if isinstance(self.source, Files) and (is_over or began >= look):
                check_unchanged(spark, self.source, Path(self.state).resolve() / "checkpoint")
                # However many files there are, looking at them is a small part of the work.
                look = time.monotonic() + max(_LOOK, _SHARE * (time.monotonic() - began))

    def _check_shared(self, spark: SparkSession) -> None:
        check_shared(spark, [Path(self.state).resolve(), self.rejects, *self.sink.folders(spark)])

    @contextmanager
    def _publisher(self) -> Iterator[Publisher | None]:
        if self.registry is None:
            yield None
            return
        publisher = Publisher(self.registry, self.sink.topic)
        try:
            yield publisher
        finally:
            publisher.close()

    def _start(
        self, spark: SparkSession, run: Callable[[DataFrame, int], None], *, once: bool, every: str
    ) -> StreamingQuery:
        again = Path(self.state).resolve() / REPLAY
        again.mkdir(exist_ok=True)
        messages = self.source.stream(spark).unionByName(
            replay_stream(spark, f"file://{again}"), allowMissingColumns=True
        )
        writer = messages.writeStream.foreachBatch(run)
        writer = writer.option("checkpointLocation", f"file://{Path(self.state).resolve() / 'checkpoint'}")
        writer = writer.trigger(availableNow=True) if once else writer.trigger(processingTime=every)
        return writer.start()


def _is_lag_bug(error: PySparkException) -> bool:
    """Return whether a stream ended by a bug of Spark 4.1: Kafka's source knows no lag behind a repeated batch.

    Source: https://github.com/apache/spark/issues/55236.
    """
    java: Any = getattr(error, "_origin", None)
    while java is not None:
        if any("KafkaMicroBatchStream" in one.getClassName() for one in list(java.getStackTrace())[:2]):
            return bool(java.getClass().getSimpleName() == "NullPointerException")
        java = java.getCause()
    return False


def _error_of(error: Exception, source: Kafka | Files) -> CdcAvroError:
    """Return what ended a stream as an error of this project."""
    return (
        error
        if isinstance(error, CdcAvroError)
        else JobError(f"the stream stopped: {source.explain(first_line(error))}")
    )


@contextmanager
def _lock_state(folder: Path) -> Iterator[None]:
    """Keep other jobs out of a folder, which is created if there is none. Raises `FileError` if one is in it."""
    folder.mkdir(parents=True, exist_ok=True)
    lock = folder / "lock"
    if lock.is_symlink() or (lock.exists() and not lock.is_file()):
        raise FileError(str(lock), "a regular file", "something else")
    with lock.open("a") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            raise FileError(str(folder), "a state that no other job uses", "one that is in use") from error
        yield


def _facts_of_last_batch(folder: Path) -> dict[str, Any]:
    """Return the facts of the last batch of a state."""
    state = JobState(folder / "batches")
    return state.facts(max(state.batches(), default=-1) + 1)


def _job(folder: Path, sink: str, *, is_checked: bool = False) -> Job:
    """Return the job of a folder, which is made if there is none; if `is_checked`, nothing is written.

    Raises `FileError` if it writes to another sink.
    """
    path = folder / _JOB
    if not path.exists():
        replace_file(path, json.dumps({"job": uuid4().hex, "sink": sink, _UNMARKED: []}))
    names = LakeNames.of(_facts_of_last_batch(folder).get("names", [])).names.values()
    try:
        stated = json.loads(path.read_bytes())
        # A state from before there were marks has none.
        unmarked = stated.get(_UNMARKED, [[name.database, name.schema, name.table] for name in names])
        job, other, known = str(stated["job"]), str(stated["sink"]), frozenset(TableName(*name) for name in unmarked)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise FileError(str(path), "what tells a job", type(error).__name__) from error
    if _UNMARKED not in stated and other == sink and not is_checked:
        replace_file(path, json.dumps({**stated, _UNMARKED: unmarked}))
    if other != sink:
        raise FileError(str(folder), f"the state of a pipeline into {sink}", f"that of one into {other}")
    return Job(job, known)


@contextmanager
def quiet_logger(
    spark: SparkSession, run: Callable[[DataFrame, int], None]
) -> Iterator[Callable[[DataFrame, int], None]]:
    """Yield a function that runs batches as `run` does, and whose errors of this project Spark does not log.

    Such errors are sentences, and are raised when the stream has ended; for each, Spark and its bridge to Python would
    log some hundred lines on where they saw it. Other errors are logged as ever, and so is everything behind the block.
    """
    with ExitStack() as stack:

        def run_quietly(frame: DataFrame, number: int) -> None:
            try:
                run(frame, number)
            except CdcAvroError:
                # A log of another kind is no reason to fail.
                with suppress(*_NO_LOG4J):
                    _silence(spark, stack)
                raise

        yield run_quietly


def _silence(spark: SparkSession, stack: ExitStack) -> None:
    """Silence both loggers, until the stack is left. Raises `_NO_LOG4J`."""
    if not _SILENCING.acquire(blocking=False):
        return
    stack.callback(_SILENCING.release)
    bridge = logging.getLogger(_BRIDGE)
    stack.callback(bridge.setLevel, bridge.level)
    bridge.setLevel(_NEVER)
    jvm: Any = spark._jvm  # noqa: SLF001  Spark's log has no Python interface but for its root
    log4j = jvm.org.apache.logging.log4j
    context = log4j.LogManager.getContext(False)  # noqa: FBT003  that which is in use
    put, own = log4j.core.config.Configurator.setLevel, context.getConfiguration().getLoggers().containsKey(_STREAMS)
    before = log4j.LogManager.getLogger(_STREAMS).getLevel()
    put(_STREAMS, log4j.Level.OFF)
    stack.callback(put, _STREAMS, before) if own else stack.callback(_forget, context)


def _forget(context: Any) -> None:
    """Let streams log at the level of all again."""
    context.getConfiguration().removeLogger(_STREAMS)
    context.updateLoggers()
