"""Rejects of a pipeline: messages that are in no table, as JSON lines in a folder, by batch.

They may also go to a table of the lake and to a topic of Kafka. `replay` moves them to where they are read again.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final, NamedTuple
from uuid import uuid4

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import functions as sf

from cdcavro.errors import CdcAvroError, FileError, JobError, SchemaError, shown
from cdcavro.lake.escaped_names import MAX_TOPIC_LENGTH, TABLE_NAME, caseless_name, folder_names, topic_name
from cdcavro.lake.sql_statements import create_table
from cdcavro.spark.lake.columns import properties_of, put_properties
from cdcavro.spark.lake.ownership import foreign_table_error
from cdcavro.spark.lake.sinks import OWNER, locate, retry
from cdcavro.spark.pipeline.conversion.outcome_rows import REJECT, STATEMENT
from cdcavro.spark.pipeline.outputs.kafka_topics import BATCH, JOB, KafkaTopics, headers, kafka_reason, send
from cdcavro.spark.pipeline.outputs.lake_tables import LakeSettings
from cdcavro.spark.pipeline.outputs.writer import WriteResult
from cdcavro.spark.pipeline.shared_folders import check_written, local_folder
from cdcavro.spark.pipeline.sources import Kafka
from cdcavro.table.ddl.steps import TableName

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence
    from datetime import datetime
    from pathlib import Path

    from pyspark.sql import Column, DataFrame, SparkSession

    from cdcavro.spark.lake.sinks import Attempt, Sink
    from cdcavro.spark.pipeline.outputs.avro_files import AvroFiles
    from cdcavro.spark.pipeline.outputs.writer import Rows, Writer
    from cdcavro.spark.pipeline.sources import Files

_BATCH: Final = re.compile(r"batch=([0-9]{1,18})", re.ASCII)
_PLACE: Final = ("topic", "partition", "offset", "file", "line")
_COLUMNS: Final = {
    "raw": "binary",
    "record_key": "binary",
    "topic": "string",
    "partition": "int",
    "offset": "bigint",
    "file": "string",
    "line": "bigint",
    "format": "string",
    "path": "string",
    "reason": "string",
    "time": "timestamp",
    "batch": "bigint",
}
# What identifies a reject; the first one bounds what is looked at.
_IDENTITY: Final = ("batch", "topic", "partition", "offset", "file", "line", "raw")
_PARTS: Final = 2
_PREFIX: Final = "kafka."
# The largest request that Kafka's client sends by default, and room in it for headers and what stands around a record.
_LARGEST: Final = ("kafka.max.request.size", 1 << 20)
_ROOM: Final = 4096


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
        *[sf.col(name) for name in (*_PLACE, "format", "path", "reason")],
        sf.lit(now.isoformat()).alias("time"),
        sf.col("note").alias("clock"),
    ]


def replay(rejects: Path, folder: Path, batches: Collection[int] = ()) -> list[Path]:
    """Move the rejects of some batches, by default all, to where the next batch reads them again; return their folders.

    `folder` is in that of the state. Rejects of a batch that is not done stay, as it writes them again. Raises
    `FileError` if there are no others.
    """
    numbers = {path: number for path in rejects.glob("batch=*") if (number := batch_of(path)) is not None}
    found = sorted(path for path, number in numbers.items() if not batches or number in batches)
    done = _last_done(folder.parent)
    ready = [path for path in found if numbers[path] <= done]
    if not ready:
        raise FileError(
            str(rejects), "rejects", "those of a batch that is not done, which sync ends" if found else "none"
        )
    moved = []
    for path in ready:
        # Files of one batch may be replayed more than once, if they were rejected again.
        target = folder / f"{path.name}-{uuid4().hex}"
        folder.mkdir(parents=True, exist_ok=True)
        path.rename(target)
        moved.append(target)
    return moved


def batch_of(folder: Path) -> int | None:
    """Return the number of a batch's folder, `batch=7`; None for one with another name, such as a copy of it.

    >>> from pathlib import Path
    >>> batch_of(Path("rejects/batch=7")), batch_of(Path("rejects/batch=7.bak"))
    (7, None)
    """
    number = _BATCH.fullmatch(folder.name)
    return None if number is None else int(number[1])


def _last_done(state: Path) -> int:
    """Return the number of the last batch that Spark's checkpoint says is done."""
    commits = (state / "checkpoint" / "commits").glob("*")
    return max((int(path.name) for path in commits if path.name.isdecimal()), default=-1)


def _count_lines(path: Path) -> int:
    with path.open("rb") as file:
        return sum(1 for _ in file)


def _base64(name: str, value: Column | None) -> Column:
    # Spark's own function breaks lines every 76 characters.
    return sf.translate(sf.base64(name if value is None else value), "\r\n", "").alias(name)


class Rejects(NamedTuple):
    """The rejects of a batch."""

    # Their outcomes.
    rows: DataFrame
    # The number of the batch.
    batch: int
    # When they were found.
    time: datetime
    # How often it was attempted to write them.
    attempt: Attempt


@dataclass
class RejectTable:
    """A lake table of rejects, which has those of each batch once; `job` and `is_adopting` are as in `LakeTables`."""

    sink: Sink
    table: TableName
    job: str
    is_adopting: bool = False
    _is_there: bool = field(default=False)

    @property
    def name(self) -> str:
        """What it is called in messages."""
        return f"the table {_dotted_name(self.table)} of {self.sink.name}"

    def write(self, rejects: Rejects) -> None:
        """Append rejects, unless their batch is there. Raises `FileError` if the table is none of rejects."""
        if not self._is_there:
            self._prepare(rejects.rows.sparkSession)
            self._is_there = True
        frame = rejects.rows.withColumns({"time": sf.lit(rejects.time), "batch": sf.lit(rejects.batch)})
        listed = [sf.col(name).cast(type).alias(name) for name, type in _COLUMNS.items()]
        own = frame.coalesce(1).select(*listed)
        retry(
            lambda: self.sink.append(
                own, self.table, "", f"{self.job}/rejects", rejects.batch, rejects.attempt, _IDENTITY
            )
        )

    def _prepare(self, spark: SparkSession) -> None:
        self.sink = locate(spark, replace(self.sink, owner=self.job), self.table)
        identifier = self.sink.identifier(self.table)
        self.sink.make_room(spark, self.table)
        spark.sql(create_table(identifier, [], _COLUMNS, self.sink.using, self.sink.properties(_COLUMNS)))
        found = dict(spark.table(identifier).dtypes)
        if found != _COLUMNS:
            raise FileError(
                _dotted_name(self.table), "a table of rejects", f"one with other columns: {shown(', '.join(found))}"
            )
        owner = properties_of(spark, identifier).get(OWNER)
        if owner not in (None, self.job) and not self.is_adopting:
            raise foreign_table_error(identifier, owner)
        put_properties(spark, identifier, {OWNER: self.job} if owner != self.job else {})


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
        own, rows = self.kafka, rejects.rows
        if not self._is_there:
            with own.admin(rows.sparkSession) as admin:
                admin.partitions(own.topic, own.partitions, own.replication)
            self._is_there = True
        line, none = line_columns(rejects.time), sf.lit(None).cast("binary")
        # A message that is too large must not stop the stream, and its folder has it.
        short = line_columns(rejects.time, raw=none, key=none)
        size = sf.octet_length(_json(line)) + sf.coalesce(sf.octet_length("record_key"), sf.lit(0))
        fits = size <= self._largest - _ROOM
        records = rows.coalesce(1).select(
            sf.when(fits, sf.col("record_key")).alias("key"),
            sf.when(fits, _json(line)).otherwise(_json(short)).alias("value"),
            headers({JOB: self.job, BATCH: str(rejects.batch)}).alias("headers"),
        )
        send(own, own.topic, records)

    @property
    def _largest(self) -> int:
        name, default = _LARGEST
        size = next((value for option, value in self.kafka.options.items() if option.lower() == name), "")
        # Kafka refuses what is no number.
        return int(size) if size.isdecimal() else default


@dataclass(frozen=True)
class RejectPlaces:
    """Where rejects go beside their folder."""

    # The lake, and the table in it.
    lake: LakeSettings | None = None
    table: TableName | None = None
    # The cluster, with one topic.
    kafka: KafkaTopics | None = None

    @classmethod
    def of(
        cls,
        table: str | None,
        topic: str | None,
        source: Kafka | Files,
        sink: LakeSettings | KafkaTopics | AvroFiles,
    ) -> RejectPlaces:
        """Return the places with these names, `database.table` and that of a topic. Raises `ValueError`."""
        lake = sink if isinstance(sink, LakeSettings) else None
        if table is not None and lake is None:
            raise ValueError("rejects_table is a table of the lake, and the sink is none")
        kafka = None if topic is None else _kafka(topic, source, sink)
        return cls(lake, None if table is None else _table(table), kafka)

    def check(self, spark: SparkSession, source: Kafka | Files) -> None:
        """Check that a source does not read the topic by its pattern. Raises `FileError`."""
        if self.kafka is None or not isinstance(source, Kafka) or source.pattern is None:
            return
        jvm: Any = spark._jvm  # noqa: SLF001  the pattern is one of Java's
        try:
            is_read = jvm.java.util.regex.Pattern.matches(source.pattern, self.kafka.topic)
        except Py4JError:
            # The source says what is wrong with it.
            return
        if is_read:
            raise FileError(self.kafka.topic, "a rejects_topic that the source does not read", "one of its pattern")

    def outputs(self, job: str) -> list[RejectTable | RejectTopic]:
        """Return what writes rejects; `job` is unique to the pipeline."""
        found: list[RejectTable | RejectTopic] = []
        if self.lake is not None and self.table is not None:
            found.append(RejectTable(self.lake.sink, self.table, job, self.lake.is_adopting))
        if self.kafka is not None:
            found.append(RejectTopic(self.kafka, job))
        return found

    def clash(self, name: TableName, template: str | None) -> str | None:
        """Return why a table cannot be written under its name, or to its topic of a template; None if it can."""
        try:
            if self.table is not None and caseless_name(name) == caseless_name(self.table):
                return f"its place in the lake is that of the rejects, {_dotted_name(self.table)}"
            if self.kafka is not None and template is not None:
                topics = [topic_name(template, name), self.kafka.topic]
                if topics[0].lower() == topics[1].lower():
                    return f"its topic is that of the rejects, {self.kafka.topic}"
        except SchemaError:
            # The write refuses such a name.
            return None
        return None


@dataclass
class SeparatingWriter:
    """A writer that writes no table to where rejects go: the rows of such a table wait."""

    writer: Writer
    places: RejectPlaces
    template: str | None

    @property
    def has_changes(self) -> bool:
        """Whether every change is wanted."""
        return self.writer.has_changes

    def write(self, spark: SparkSession, tables: Sequence[Rows]) -> list[WriteResult]:
        """Write the rows of the tables that go elsewhere than rejects."""
        clashes = {table.number: self.places.clash(name, self.template) for table, name, _ in tables}
        refused = [WriteResult(number, [], why) for number, why in clashes.items() if why is not None]
        return refused + self.writer.write(spark, [one for one in tables if clashes[one[0].number] is None])


def write_to_places(outputs: Sequence[RejectTable | RejectTopic], rejects: Rejects) -> None:
    """Write rejects to all places. Raises `JobError`, which says which one failed."""
    for output in outputs:
        try:
            output.write(rejects)
        except (PySparkException, Py4JError, CdcAvroError) as error:
            why = str(error) if isinstance(error, CdcAvroError) else kafka_reason(error).lstrip(": ")
            raise JobError(f"the rejects of batch {rejects.batch} cannot be written to {output.name}: {why}") from error


def _table(text: str) -> TableName:
    parts = text.split(".")
    if len(parts) != _PARTS or not all(parts):
        raise ValueError(f"rejects_table is called database.table, not {shown(text)}")
    table = TableName(parts[0], None, parts[1])
    folder_names(table)
    return table


def _kafka(topic: str, source: Kafka | Files, sink: LakeSettings | KafkaTopics | AvroFiles) -> KafkaTopics:
    """Return the topic on the cluster of the sink, or else of the source. Raises `ValueError`."""
    if TABLE_NAME in topic or len(topic) > MAX_TOPIC_LENGTH:
        raise ValueError(f"rejects_topic is one topic of at most {MAX_TOPIC_LENGTH} characters, not {shown(topic)}")
    if isinstance(source, Kafka) and topic in ",".join(source.topics).split(","):
        raise ValueError(f"rejects_topic is one that the source reads: {shown(topic)}")
    if isinstance(sink, KafkaTopics):
        if sink.topic == topic:
            raise ValueError(f"rejects_topic is that of the tables: {shown(topic)}")
        return replace(sink, topic=topic)
    if isinstance(source, Kafka):
        options = {name: value for name, value in source.options.items() if name.lower().startswith(_PREFIX)}
        return KafkaTopics(source.servers, topic, options)
    raise ValueError("rejects_topic needs Kafka as the source or as the sink")


def _json(columns: Sequence[Column]) -> Column:
    return sf.to_json(sf.struct(*columns), {"ignoreNullFields": "false"})


def _dotted_name(table: TableName) -> str:
    return f"{table.database}.{table.table}"
