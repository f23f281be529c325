"""Runner of a pipeline on Spark: a Structured Streaming query whose batches are those of the pipeline.

Its source is a stream of frames with the columns of `sources.COLUMNS`.
"""

from __future__ import annotations

import logging
import math
import time
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any, Final, TypeVar

import pyarrow as pa
from py4j.protocol import Py4JError
from pyspark import cloudpickle
from pyspark.errors import PySparkException
from pyspark.sql import functions as sf

from cdcavro.errors import CdcAvroError, JobError, shown
from cdcavro.exact.jsontext import MAX_LENGTH
from cdcavro.files.lines import KEPT
from cdcavro.files.streams import local_folder
from cdcavro.lake.account import AccountFile
from cdcavro.lake.catalogs import spark_catalog
from cdcavro.lake.job_state import JobState
from cdcavro.lake.lakes import IcebergLake
from cdcavro.spark.lake.sinks import lake_settings
from cdcavro.spark.lake.spark_tables import frame_of
from cdcavro.spark.pipeline.batch_progress import Reports, check_unchanged, is_idle, lag_of
from cdcavro.spark.pipeline.lake_tables import LakeSink
from cdcavro.spark.pipeline.outcome_frames import PIECES, FrameBatch, FrameFiles, check_shared
from cdcavro.spark.pipeline.pipeline_rejects import check_places, outputs_of, schema_change_output
from cdcavro.spark.pipeline.record_sinks import FileSink, TopicSink, admin_of_source
from cdcavro.spark.registry import with_id_header
from cdcavro.spark.session import REDACTED, classic, coordinate, first_line
from cdcavro.spark.source.line_frame import glob_free, text_options, whole_files
from cdcavro.sync import pipeline
from cdcavro.sync.batches import Batches
from cdcavro.sync.outputs.reject_places import CUT, SeparatingWriter
from cdcavro.sync.outputs.shard_schemas import SHARDS, ShardWriter
from cdcavro.sync.outputs.sink_settings import AvroFiles, KafkaTopics, LakeNames, LakeSettings
from cdcavro.sync.outputs.writer import PublishingWriter
from cdcavro.sync.pipeline import BATCHES, CHECKPOINT, JOB, REPLAY, job_of
from cdcavro.sync.reading.checkpoint import Checkpoint
from cdcavro.sync.reading.file_source import FileProgress, ReplayReader
from cdcavro.sync.reading.topic_ids import BatchTopics, CheckedMessages, TopicIds
from cdcavro.sync.sources import STATED, Files, Kafka

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

    from pyspark.sql import Column, DataFrame, DataFrameReader, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery
    from pyspark.sql.streaming.readwriter import DataStreamReader

    from cdcavro.sync.batches import BatchReport, Lag
    from cdcavro.sync.config import Config
    from cdcavro.sync.outputs.writer import Writer
    from cdcavro.sync.protection import RowRule

# What writes to each kind of sink on Spark.
SINKS: Final[Mapping[type, Callable[[Any], LakeSink | TopicSink | FileSink]]] = {
    LakeSettings: LakeSink,
    KafkaTopics: TopicSink,
    AvroFiles: FileSink,
}
_POLL: Final = 1
# The number of the rejects that are read again among the sources of the checkpoint.
_REPLAYED: Final = 1
# What Spark says where messages are lost, in its versions.
_LOST: Final = ("KAFKA_DATA_LOSS", "failOnDataLoss", "may have been missed", "OffsetOutOfRange")
# How often files that were read are looked at, in seconds, or as a multiple of the time that this takes.
_LOOK: Final = 30
_SHARE: Final = 50
_STREAMS: Final = "org.apache.spark.sql.execution.streaming"
_BRIDGE: Final = "py4j.clientserver"
_NEVER: Final = logging.CRITICAL + 1
# What is raised where Spark logs by something else than Log4j.
_NO_LOG4J: Final = (Py4JError, TypeError)
# Levels are the process's: of two streams that end at once, the first puts them back.
_SILENCING: Final = Lock()


@dataclass(frozen=True)
class Pipeline(pipeline.Pipeline):
    """A pipeline from a source into a sink, which Spark runs.

    * `source` (`Kafka` or `Files`)
    * `sink` (`LakeSettings`, `KafkaTopics` or `AvroFiles`)
    * `state` (str): a folder for all that it remembers: how far it has read, what it learned about tables, pending
      rows, and rejects. All machines of Spark see it under the same path. Or an address in an object store, of which
      this process has a working copy, and other machines see nothing.
    * `settings` (Settings)
    * `registry` (RegistrySettings or None): where the schemas of tables are published.
    * `redaction` (Redaction): what hides values of variables in errors and reports.
    """

    def __post_init__(self) -> None:
        """Raise `ValueError` as other runners do, and for a catalog that Spark does not have.

        Also for a function as `where` that cannot be sent to Spark's workers.
        """
        super().__post_init__()
        if isinstance(self.sink, LakeSettings) and isinstance(self.sink.lake, IcebergLake) and self.sink.catalog:
            spark_catalog(self.sink.lake.catalog, self.sink.catalog)
        for rule in self.settings.rules:
            _check_function(rule)

    def check(self, spark: SparkSession, warn: Callable[[Sequence[str]], None] = lambda _: None) -> None:
        """Check that the source, the sink and the registry can be reached, and that no other job uses the state.

        Also that lake tables belong to no other pipeline, if their names are known: those in the state or, for a new
        state, all chosen ones in the lake. `warn` is called with sentences on lake tables that lack rows, if there are
        any. Raises `FileError`, `JobError` and `RegistryError`, and `SetupError` over Spark Connect.
        """
        classic(spark, "a pipeline")
        with self.redaction.errors(), self.held():
            self.check_source_kind()
            sink = self._connect(spark)
            self._check_shared(spark)
            check_places(self.places, spark, self.source)
            checks: dict[str, Callable[[SparkSession], None]] = {
                self.source.name: partial(check_source, self.source),
                self.sink.name: sink.check,
            }
            for name, check in checks.items():
                try:
                    check(spark)
                except (PySparkException, Py4JError) as error:
                    reason = first_line(error)
                    reason = self.source.explain(reason) if name == self.source.name else reason
                    raise JobError(f"{name} cannot be reached: {reason}") from error
            for registry in (self.settings.framed, self.registry):
                if registry is not None:
                    registry.check()
            state = JobState(self.folder / BATCHES)
            last = max(state.batches(), default=-1) + 1
            state.resume(last, self.settings.tables())
            job = None
            if (self.folder / JOB).exists():
                job = job_of(self.folder, sink.identity(spark), is_checked=True)
            if isinstance(sink, LakeSink):
                names = [*LakeNames.of(state.facts(last).get("names", [])).names.values()]
                sink.check_owner(spark, job, names, self.settings.is_written_as)
                warn(self.lacking(None, partial(sink.look, spark, is_opened=True)))

    def run(
        self,
        spark: SparkSession,
        *,
        once: bool = False,
        every: str = "10 seconds",
        say: Callable[[BatchReport], None] = lambda _: None,
        begin: Callable[[int, Lag | None], None] = lambda _, __: None,
        idle: Callable[[], None] = lambda: None,
        maintain: Callable[[], None] = lambda: None,
        warn: Callable[[Sequence[str]], None] = lambda _: None,
    ) -> None:
        """Run until the stream ends: with `once`, when all that is there now is read, else when the process ends.

        `every` is how often a batch begins, in Spark's words; `begin` is called with the number of each batch, and with
        None, as Spark does not say how much it reads; `say` with its report; `idle` while Spark waits for the next one;
        `maintain` behind batches that are done, once all is said of them, and not behind the error that ends a run;
        `warn` before the first one with sentences on lake tables that lack rows.
        A run resumes where the previous one stopped or was killed. Raises `JobError` for faults other than a message's,
        `FileError` for a folder of another job or one that not all machines of Spark share, and `SetupError` over Spark
        Connect.
        """
        classic(spark, "a pipeline")
        self.check_free()
        folder = self.folder
        with (
            self.redaction.errors(),
            self.held(),
            self.remembered(),
            whole_files(spark, PIECES),
            self.publisher() as publisher,
            self._watched(spark) as topics,
        ):
            self.check_source_kind()
            sink = self._connect(spark)
            check_places(self.places, spark, self.source)
            job = job_of(folder, sink.identity(spark))._replace(check=self.verify)
            writer: Writer = sink.writer(job, publisher)
            outputs = outputs_of(self.places, job.id)
            # Rejects that go to other places than a folder of this machine are taken from a frame.
            is_collecting = not outputs and (not self._is_shared or local_folder(self.rejects) is not None)
            room = sink.collect(spark, writer, job) if isinstance(sink, LakeSink) and is_collecting else 0
            if publisher is not None:
                writer = PublishingWriter(writer, publisher, FrameFiles(spark).versions)
            if not isinstance(sink, LakeSink):
                writer = ShardWriter(writer, folder / SHARDS, FrameFiles(spark), self.save)
            writer = SeparatingWriter(writer, self.places, self.sink.topic)
            account = AccountFile(folder, self.redaction.of)
            if isinstance(sink, LakeSink):
                if sink.settings.is_adopting:
                    account.forget_lake()
                warn(self.lacking(account.lake, partial(sink.look, spark, is_opened=False)))
            reports = Reports(
                lambda report: say(self.redaction.of(report)),
                account,
                lag_of(self.source, folder / CHECKPOINT),
                maintain,
            )
            decided = self.schema_changes(schema_change_output(self.places, job.id, spark))
            to = writer, account, reports.add, outputs, self.sink.template, decided
            # What a batch reads and learned is saved before anything of it is written.
            batches = Batches(self.settings, JobState(folder / BATCHES, self.save), *to)

            def run(frame: DataFrame, number: int) -> None:
                begin(number, None)
                messages = FrameBatch(self._with_rejects(frame, number), room, self._is_shared)
                batches.run(CheckedMessages(messages, partial(topics.learn_batch, number)), number)

            try:
                self._check_shared(spark)
                try:
                    self._stream(spark, run, batches, reports, idle, once=once, every=every)
                except PySparkException as error:
                    if batches.failure is not None or not _is_lag_bug(error):
                        raise
                    self._stream(spark, run, batches, reports, idle, once=once, every=every)
            except PySparkException as error:
                if batches.failure is None and _is_of_lost_messages(error):
                    topics.compare_last()
                raise _error_of(batches.failure or error, self.source) from error
            self.save()

    @contextmanager
    def _watched(self, spark: SparkSession) -> Iterator[BatchTopics]:
        """Yield what tells the topics of batches from others. Raises `JobError` if one is another than was read."""
        checkpoint = self.folder / CHECKPOINT
        if isinstance(self.source, Files):
            yield BatchTopics(None, checkpoint)
            return
        with admin_of_source(self.source, spark) as admin:
            topics = BatchTopics(TopicIds(self.folder, admin.topic_ids), checkpoint)
            topics.compare_last()
            yield topics

    def _stream(
        self,
        spark: SparkSession,
        run: Callable[[DataFrame, int], None],
        batches: Batches,
        reports: Reports,
        idle: Callable[[], None],
        *,
        once: bool,
        every: str,
    ) -> None:
        """Run a stream to its end."""
        with quiet_logger(spark, run) as run_quietly:
            query = self._start(spark, run_quietly, once=once, every=every)
            try:
                try:
                    self._await(spark, query, reports, idle, once=once)
                    batches.finish(FrameFiles(spark, self._is_shared))
                finally:
                    reports.tell(query, is_over=True)
                reports.maintain()
            finally:
                query.stop()

    def _await(
        self, spark: SparkSession, query: StreamingQuery, reports: Reports, idle: Callable[[], None], *, once: bool
    ) -> None:
        """Pass on the reports of batches until the stream ends.

        Raises `FileError` for files that change after they were read.
        """
        look, is_over = math.inf if once else time.monotonic(), False
        while not is_over:
            is_over = bool(query.awaitTermination(_POLL))
            reports.tell(query)
            if not is_over and is_idle(query):
                self.save(is_idle=True)
                idle()
            began = time.monotonic()
            if isinstance(self.source, Files) and (is_over or began >= look):
                check_unchanged(spark, self.source, self.folder.resolve() / CHECKPOINT)
                # However many files there are, looking at them is a small part of the work.
                look = time.monotonic() + max(_LOOK, _SHARE * (time.monotonic() - began))
            if not is_over:
                reports.maintain()

    def _connect(self, spark: SparkSession) -> LakeSink | TopicSink | FileSink:
        """Return what writes to the sink, once the session knows the catalog. Raises `SetupError` for another catalog."""
        sink = sink_of(self.sink)
        if isinstance(sink, LakeSink):
            sink.connect(spark)
        return sink

    def _check_shared(self, spark: SparkSession) -> None:
        folders = sink_of(self.sink).folders(spark)
        check_shared(spark, [self.folder.resolve(), self.rejects, *folders] if self._is_shared else folders)

    @property
    def _is_shared(self) -> bool:
        """Whether all machines share the folder of the state."""
        return self.stored is None

    def _start(
        self, spark: SparkSession, run: Callable[[DataFrame, int], None], *, once: bool, every: str
    ) -> StreamingQuery:
        again = self.folder.resolve() / REPLAY
        again.mkdir(exist_ok=True)
        source = stream_of(self.source, spark, **self.headers)
        rejects = replay_stream(spark, f"file://{again}")
        if not self._is_shared:
            # Spark plans which files a batch reads, and this process reads them: no other machine has them.
            rejects = rejects.where(sf.lit(False))  # noqa: FBT003
        messages = source.unionByName(rejects, allowMissingColumns=True)
        writer = messages.writeStream.foreachBatch(run)
        writer = writer.option("checkpointLocation", f"file://{self.folder.resolve() / CHECKPOINT}")
        writer = writer.trigger(availableNow=True) if once else writer.trigger(processingTime=every)
        return writer.start()

    def _with_rejects(self, frame: DataFrame, number: int) -> DataFrame:
        """Return the messages of a batch, with those rejects that this process reads again and Spark does not."""
        if self._is_shared:
            return frame
        checkpoint, reader = Checkpoint(self.folder / CHECKPOINT), ReplayReader(self.folder / REPLAY)
        ends = checkpoint.start_of(number)[_REPLAYED], checkpoint.end_of(number)[_REPLAYED]
        files = FileProgress(reader, checkpoint.files(_REPLAYED)).files(*ends)
        parts = [part for file in files for part in reader.batches(file)]
        if not parts:
            return frame
        rejects = pa.Table.from_batches(parts).drop_columns("size")
        return frame.unionByName(frame_of(frame.sparkSession, rejects), allowMissingColumns=True)


def sink_of(settings: LakeSettings | KafkaTopics | AvroFiles) -> LakeSink | TopicSink | FileSink:
    """Return what writes to a sink with these settings on Spark."""
    return SINKS[type(settings)](settings)


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


def _is_of_lost_messages(error: PySparkException) -> bool:
    """Return whether a stream ended because Kafka does not have messages any more."""
    return any(word in str(error) for word in _LOST)


def _error_of(error: Exception, source: Kafka | Files) -> CdcAvroError:
    """Return what ended a stream as an error of this project."""
    return (
        error
        if isinstance(error, CdcAvroError)
        else JobError(f"the stream stopped: {source.explain(first_line(error))}")
    )


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


def _check_function(rule: RowRule) -> None:
    try:
        dump: Callable[[object], bytes] = cloudpickle.dumps
        dump(rule.where)
    except Exception as error:  # what a function holds may raise anything
        raise ValueError(
            f"where of match = {shown(rule.match)} is the function {rule.where_text}, which cannot be pickled, as Spark's"
            f" workers need it ({type(error).__name__}): let it hold nothing such as a connection or a lock"
        ) from error


_REJECT: Final = (
    "raw string, record_key string, topic string, partition int, offset bigint, file string, line bigint, clock string,"
    " reason string"
)
R = TypeVar("R", bound="DataFrameReader | DataStreamReader")
# How long a check waits for an answer (three times, as Spark asks), in milliseconds: Kafka wants the second to be the
# longer.
_PATIENCE: Final = {"kafka.request.timeout.ms": "10000", "kafka.default.api.timeout.ms": "15000"}
# How much older than the newest a file may be: by default Spark passes over what is a week older.
_AGE: Final = {"maxFileAge": "36500d"}


def check_source(source: Kafka | Files, spark: SparkSession) -> None:
    """Ask for what a source has. Raises `FileError`, and what Spark raises if there is no answer."""
    if isinstance(source, Files):
        with whole_files(spark):
            spark.read.options(**text_options(spark)).text(_path(source)).limit(1).collect()
        return
    reader = spark.read.format("kafka").options(**{**_PATIENCE, **source.options, "startingOffsets": "earliest"})
    _subscribe(reader, source).load().limit(1).collect()


def stream_of(
    source: Kafka | Files,
    spark: SparkSession,
    *,
    has_id_headers: bool = False,
    has_headers: bool = False,
    stated: Collection[str] = (),
) -> DataFrame:
    """Return the messages of a source, from the first one, or from where its options say.

    `has_id_headers` says that what headers say of schemas is put before keys and values, as `with_header` does, and
    `has_headers` that all headers of Kafka's records are in a column of their own, as are those with names in `stated`.
    Raises `FileError` for a local path where nothing is.
    """
    if isinstance(source, Files):
        return _files_stream(source, spark)
    return _kafka_stream(source, spark, has_id_headers=has_id_headers, has_headers=has_headers, stated=stated)


def _kafka_stream(
    source: Kafka, spark: SparkSession, *, has_id_headers: bool, has_headers: bool, stated: Collection[str]
) -> DataFrame:
    reader = spark.readStream.format("kafka").options(**{"startingOffsets": "earliest", **source.options})
    reader = _subscribe(reader, source)
    if source.most is not None:
        reader = reader.option("maxOffsetsPerTrigger", source.most)
    key, value = sf.col("key"), sf.col("value")
    if has_id_headers or has_headers or stated:
        reader = reader.option("includeHeaders", "true")
    if has_id_headers:
        key, value = with_id_header(key, is_key=True), with_id_header(value, is_key=False)
    length = sf.octet_length(value)
    return reader.load().select(
        _bounded_raw(value, length),
        length.cast("bigint").alias("length"),
        key.alias("key"),
        "topic",
        "partition",
        "offset",
        sf.lit(None).cast("string").alias("file"),
        *_no_reject(),
        *(["headers"] if has_headers else []),
        *([sf.filter("headers", lambda one: one["key"].isin(*stated)).alias(STATED)] if stated else []),
    )


def _subscribe(reader: R, source: Kafka) -> R:
    named = ("subscribePattern", source.pattern) if source.pattern else ("subscribe", ",".join(source.topics))
    return reader.option("kafka.bootstrap.servers", source.servers).option(*named)  # type: ignore[return-value]


def _files_stream(source: Files, spark: SparkSession) -> DataFrame:
    reader = spark.readStream.options(**text_options(spark), **_AGE)
    if source.most is not None:
        reader = reader.option("maxFilesPerTrigger", source.most)
    raw = sf.col("value").cast("binary")
    length = sf.octet_length(raw)
    nothing = sf.lit(None)
    return reader.text(_path(source)).select(
        _bounded_raw(raw, length),
        length.cast("bigint").alias("length"),
        nothing.cast("binary").alias("key"),
        nothing.cast("string").alias("topic"),
        nothing.cast("int").alias("partition"),
        nothing.cast("bigint").alias("offset"),
        sf.col("_metadata.file_path").alias("file"),
        sf.col("_metadata.file_size").alias("size"),
        *_no_reject(),
    )


def _path(source: Files) -> str:
    source.check_path()
    local = "://" not in source.path and Path(source.path).exists()
    return "file://" + glob_free(str(Path(source.path).resolve())) if local else source.path


def replay_stream(spark: SparkSession, folder: str) -> DataFrame:
    """Return the stream of rejects that are put into a folder, as `write_rejects` wrote them, each once."""
    reader = spark.readStream.schema(_REJECT).options(recursiveFileLookup="true", **_AGE)
    # Whatever somebody puts there is a reject again, if it is none.
    raw = sf.coalesce(sf.try_to_binary("raw", sf.lit("base64")), sf.lit(b""))
    cut = sf.regexp_extract("reason", CUT, 1)
    return reader.json(folder).select(
        raw.alias("raw"),
        sf.when((sf.octet_length(raw) >= KEPT) & (cut != ""), cut.cast("bigint"))
        .otherwise(sf.octet_length(raw).cast("bigint"))
        .alias("length"),
        sf.try_to_binary("record_key", sf.lit("base64")).alias("key"),
        *("topic", "partition", "offset", "file", "line"),
        sf.coalesce("clock", sf.lit("null")).alias("clock"),
    )


def _no_reject() -> list[Column]:
    return [sf.lit(None).cast("bigint").alias("line"), sf.lit(None).cast("string").alias("clock")]


def _bounded_raw(raw: Column, length: Column) -> Column:
    return sf.when(length > MAX_LENGTH, sf.substring(raw, 1, KEPT)).otherwise(raw).alias("raw")


PACKAGES: Final = "spark.jars.packages"


def session_settings(config: Config) -> dict[str, str]:
    """Return the settings of the session, the configured ones among them; the pipeline sets those of a catalog's login."""
    lake = config.lake
    needed = (
        {} if lake is None else lake_settings(catalog=lake.iceberg, warehouse=lake.warehouse, properties=lake.catalog)
    )
    kafka = kafka_package() if config.source.kafka or config.kafka else None
    packages = [needed.get(PACKAGES), kafka, config.spark.get(PACKAGES)]
    hidden = [needed.get(REDACTED), config.spark.get(REDACTED)]
    joined = {PACKAGES: ",".join(filter(None, packages)), REDACTED: "|".join(filter(None, hidden))}
    return {**needed, **config.spark, **{name: value for name, value in joined.items() if value}}


def kafka_package() -> str:
    """Return the Maven coordinate of Spark's source of Kafka, in the version of the installed pyspark."""
    return coordinate().replace(":spark-avro_", ":spark-sql-kafka-0-10_")
