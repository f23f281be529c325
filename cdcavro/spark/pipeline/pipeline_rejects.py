"""Rejects of a pipeline: messages that are in no table, as JSON lines in a folder, by batch.

They may also go to a table of the lake and to a topic of Kafka. `replay` moves them to where they are read again. What
was decided for statements goes to a lake table of the same kind.
"""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, ClassVar

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import functions as sf

from cdcavro.errors import FileError, JobError, shown
from cdcavro.files.streams import local_folder
from cdcavro.lake.lakes import OWNER, foreign_table_error
from cdcavro.lake.sql_statements import create_table
from cdcavro.spark.lake.sinks import locate, properties_of, put_properties, retry
from cdcavro.spark.lake.spark_tables import check_spaces
from cdcavro.spark.pipeline.lake_tables import spark_lake
from cdcavro.spark.pipeline.record_sinks import admin_of, headers, kafka_reason, send
from cdcavro.sync.conversion.outcome_rows import REJECT, STATEMENT
from cdcavro.sync.outputs import schema_changes
from cdcavro.sync.outputs.reject_places import COLUMNS, IDENTITY, PLACE, dotted_name, record_limit
from cdcavro.sync.outputs.schema_changes import SchemaChange
from cdcavro.sync.outputs.table_rows import check_written
from cdcavro.sync.outputs.topic_records import headers_of
from cdcavro.sync.sources import Kafka

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from datetime import datetime
    from pathlib import Path

    from pyspark.sql import Column, DataFrame, SparkSession

    from cdcavro.lake.lakes import Attempt
    from cdcavro.spark.lake.sinks import Sink
    from cdcavro.sync.outputs.reject_places import RejectPlaces, Rejects
    from cdcavro.sync.outputs.sink_settings import KafkaTopics
    from cdcavro.sync.sources import Files
    from cdcavro.table.ddl.steps import TableName


def rejects_of(outcomes: DataFrame) -> DataFrame:
    """Return the rows of rejects among the outcomes of a batch of which all is learned."""
    is_left = (sf.col("what") == STATEMENT) & sf.col("reason").isNotNull()
    return outcomes.where((sf.col("what") == REJECT) | is_left)


def write_rejects(outcomes: DataFrame, folder: str, batch: int, now: datetime, count: int) -> None:
    """Write the `count` rejects of a batch, which replace those that it wrote when it was run before.

    Raises `JobError` if they are not all there.
    """
    rejects = rejects_of(outcomes).select(*line_columns(now))
    rejects.coalesce(1).write.mode("overwrite").json(f"{folder}/batch={batch}", ignoreNullFields=False)
    local = local_folder(f"{folder}/batch={batch}")
    if local is not None:
        check_written(local, sum(_count_lines(path) for path in local.glob("*.json")), count)


def line_columns(now: datetime, *, raw: Column | None = None, key: Column | None = None) -> list[Column]:
    """Return the columns of a reject's line of JSON; `raw` and `key` replace the bytes of the message."""
    return [
        _base64("raw", raw),
        _base64("record_key", key),
        *[sf.col(name) for name in (*PLACE, "format", "path", "reason")],
        sf.lit(now.isoformat()).alias("time"),
        sf.col("note").alias("clock"),
    ]


def _count_lines(path: Path) -> int:
    with path.open("rb") as file:
        return sum(1 for _ in file)


def _base64(name: str, value: Column | None) -> Column:
    # Spark's own function breaks lines every 76 characters.
    return sf.translate(sf.base64(name if value is None else value), "\r\n", "").alias(name)


@dataclass
class _AppendedTable:
    """A lake table of the pipeline's own, which has each batch once; `job` and `is_adopting` are as in `LakeTables`."""

    columns: ClassVar[Mapping[str, str]]
    identity: ClassVar[Sequence[str]]
    # What the table is one of, and what marks its batches.
    what: ClassVar[str]
    mark: ClassVar[str]
    sink: Sink
    table: TableName
    job: str
    is_adopting: bool = False
    _is_there: bool = field(default=False)

    @property
    def name(self) -> str:
        """What it is called in messages."""
        return f"the table {dotted_name(self.table)} of {self.sink.name}"

    def append(self, rows: DataFrame, batch: int, time: datetime, attempt: Attempt) -> None:
        """Append the rows of a batch, unless they are there. Raises `FileError` if the table is another one."""
        with _spark_errors():
            if not self._is_there:
                self._prepare(rows.sparkSession)
                self._is_there = True
            frame = rows.withColumns({"time": sf.lit(time), "batch": sf.lit(batch)})
            own = frame.coalesce(1).select(
                *[sf.col(name).cast(type).alias(name) for name, type in self.columns.items()]
            )
            job = f"{self.job}/{self.mark}"
            retry(lambda: self.sink.append(own, self.table, "", job, batch, attempt, self.identity))

    def _prepare(self, spark: SparkSession) -> None:
        self.sink = locate(spark, replace(self.sink, owner=self.job), self.table)
        check_spaces(spark, self.sink, self.table)
        identifier = self.sink.identifier(self.table)
        self.sink.make_room(spark, self.table)
        spark.sql(create_table(identifier, [], self.columns, self.sink.using, self.sink.properties(self.columns)))
        found = dict(spark.table(identifier).dtypes)
        if found != self.columns:
            raise FileError(
                dotted_name(self.table), f"a table of {self.what}", f"one with other columns: {shown(', '.join(found))}"
            )
        owner = properties_of(spark, identifier).get(OWNER)
        if owner not in (None, self.job) and not self.is_adopting:
            raise foreign_table_error(identifier, owner)
        put_properties(spark, identifier, {OWNER: self.job} if owner != self.job else {})


class RejectTable(_AppendedTable):
    """A lake table of rejects, which has those of each batch once."""

    columns, identity, what, mark = COLUMNS, IDENTITY, "rejects", "rejects"

    def write(self, rejects: Rejects) -> None:
        """Append rejects. Raises as `append` does."""
        self.append(rejects.rows, rejects.batch, rejects.time, rejects.attempt)


@dataclass
class SchemaChangeTable(_AppendedTable):
    """A lake table of what was decided for statements, which has each batch once; `spark` is the session."""

    columns, identity = schema_changes.COLUMNS, schema_changes.IDENTITY
    what, mark = "schema changes", "schema_changes"
    spark: SparkSession = field(kw_only=True)

    def write(self, rows: Sequence[SchemaChange], batch: int, time: datetime, attempt: Attempt) -> None:
        """Append the rows of a batch. Raises as `append` does."""
        listed = ", ".join(f"`{name}` {type}" for name, type in self.columns.items() if name in SchemaChange._fields)
        with _spark_errors():
            frame = self.spark.createDataFrame([tuple(row) for row in rows], listed)
        self.append(frame, batch, time, attempt)


def schema_change_output(places: RejectPlaces, job: str, spark: SparkSession) -> SchemaChangeTable | None:
    """Return what writes what was decided for statements, if that is to be written; `job` is unique to the pipeline."""
    if places.lake is None or places.schema_changes is None:
        return None
    own = spark_lake(places.lake.lake), places.schema_changes, job, places.lake.is_adopting
    return SchemaChangeTable(*own, spark=spark)


@dataclass
class RejectTopic:
    """A topic of rejects, which has those of each batch at least once; `job` (str) is unique to the pipeline."""

    kafka: KafkaTopics
    job: str
    _is_there: bool = field(default=False)

    @property
    def name(self) -> str:
        """What it is called in messages."""
        return f"the topic {self.kafka.topic}"

    def write(self, rejects: Rejects) -> None:
        """Send rejects: the lines of their folder, without the bytes of messages too large for Kafka's client."""
        with _spark_errors():
            self._write(rejects)

    def _write(self, rejects: Rejects) -> None:
        own, rows = self.kafka, rejects.rows
        if not self._is_there:
            with admin_of(own, rows.sparkSession) as admin:
                admin.partitions(own.topic, own.partitions, own.replication)
            self._is_there = True
        line, none = line_columns(rejects.time), sf.lit(None).cast("binary")
        # A message that is too large must not stop the stream, and its folder has it.
        short = line_columns(rejects.time, raw=none, key=none)
        size = sf.octet_length(_json(line)) + sf.coalesce(sf.octet_length("record_key"), sf.lit(0))
        fits = size <= record_limit(own)
        records = rows.coalesce(1).select(
            sf.when(fits, sf.col("record_key")).alias("key"),
            sf.when(fits, _json(line)).otherwise(_json(short)).alias("value"),
            headers(headers_of(self.job, rejects.batch)).alias("headers"),
        )
        send(own, own.topic, records)


@contextmanager
def _spark_errors() -> Iterator[None]:
    """Raise errors of Spark as `JobError`, in a sentence."""
    try:
        yield
    except (PySparkException, Py4JError) as error:
        raise JobError(kafka_reason(error).lstrip(": ")) from error


def _json(columns: Sequence[Column]) -> Column:
    return sf.to_json(sf.struct(*columns), {"ignoreNullFields": "false"})


def check_places(places: RejectPlaces, spark: SparkSession, source: Kafka | Files) -> None:
    """Check that a source does not read the topic by its pattern. Raises `FileError`."""
    if places.kafka is None or not isinstance(source, Kafka) or source.pattern is None:
        return
    jvm: Any = spark._jvm  # noqa: SLF001  the pattern is one of Java's
    try:
        is_read = jvm.java.util.regex.Pattern.matches(source.pattern, places.kafka.topic)
    except Py4JError:
        # The source says what is wrong with it.
        return
    if is_read:
        raise FileError(places.kafka.topic, "a rejects_topic that the source does not read", "one of its pattern")


def outputs_of(places: RejectPlaces, job: str) -> list[RejectTable | RejectTopic]:
    """Return what writes rejects; `job` is unique to the pipeline."""
    found: list[RejectTable | RejectTopic] = []
    if places.lake is not None and places.table is not None:
        found.append(RejectTable(spark_lake(places.lake.lake), places.table, job, places.lake.is_adopting))
    if places.kafka is not None:
        found.append(RejectTopic(places.kafka, job))
    return found
