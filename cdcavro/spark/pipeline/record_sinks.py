"""Sinks of records on Spark, into which the changes of tables are written: Kafka topics and Avro files.

In topics, they are records of framed Avro, in a topic for each table or in one for all. Spark's sink writes at least once: what a batch wrote before it was killed is written again when the batch is run again.
So the headers of each record identify it, and a reader drops what it has already. Topics are looked for and created by
the client that Spark's sink brings along.

Of Avro files, each task writes those of its rows, and the driver puts them in their place.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial, reduce
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
from py4j.protocol import Py4JError, Py4JJavaError
from pyspark import TaskContext
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame
from pyspark.sql import functions as sf

from cdcavro.errors import CdcAvroError, JobError
from cdcavro.lake.escaped_names import topic_name
from cdcavro.lake.sql_statements import HEADERS
from cdcavro.lake.typed_rows import DELETE, DROP
from cdcavro.spark.arrow_udf import column_function, in_worker, raw_bytes
from cdcavro.spark.session import first_line, session_of
from cdcavro.sync.outputs.avro_folder import AvroFolder, FolderWriter, write_versions
from cdcavro.sync.outputs.topic_records import (
    BEHIND,
    CAME_WITH,
    CHOSEN_BY_BROKERS,
    NO_TOPIC_ID,
    ORDER,
    REFUSALS,
    UNKNOWN_TOPIC,
    ConnectPayloads,
    TopicRefusedError,
    headers_of,
    identity_of,
    key_prefixes,
    left_out,
    shards,
    value_prefixes,
)
from cdcavro.sync.outputs.writer import WriteResult

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from types import TracebackType
    from typing import Self

    from pyspark.sql import Column, SparkSession

    from cdcavro.sync.outputs.sink_settings import AvroFiles, Job, KafkaTopics
    from cdcavro.sync.outputs.writer import Publisher, Rows
    from cdcavro.sync.sources import Kafka
    from cdcavro.table.ddl.steps import TableName
    from cdcavro.table.history import Table
    from cdcavro.table.table_schema import TableSchema

# In milliseconds, as for a check of a source of Kafka.
_PATIENCE: Final = {"kafka.request.timeout.ms": "10000", "kafka.default.api.timeout.ms": "15000"}
_PREFIX: Final = "kafka."
_EXISTS: Final = "TopicExistsException"
# The settings of a client of a source by which it reaches the brokers; its other ones are of reading.
_CONNECTION: Final = ("kafka.security.", "kafka.sasl.", "kafka.ssl.", "kafka.client.", "kafka.socket.", *_PATIENCE)
# What waiting may heal.
_PASSING: Final = frozenset({"TimeoutException", "DisconnectException", "NetworkException"})


@dataclass(frozen=True)
class TopicSink:
    """The topics of a pipeline on Spark; `settings` are their own."""

    settings: KafkaTopics

    def identity(self, spark: SparkSession) -> str:
        """Return what identifies the topics, whatever brokers are named. Raises `JobError`."""
        with admin_of(self.settings, spark) as admin:
            return identity_of(self.settings, admin.cluster())

    def folders(self, spark: SparkSession) -> list[str]:  # noqa: ARG002  as that of a lake
        """Return nothing: topics are in no folder."""
        return []

    def check(self, spark: SparkSession) -> None:
        """Ask the cluster who it is. Raises `JobError`."""
        with KafkaAdmin(spark, self.settings.servers, {**_PATIENCE, **self.settings.options}) as admin:
            admin.cluster()

    def writer(self, job: Job, publisher: Publisher | None) -> KafkaWriter:
        """Return what writes batches of a pipeline. Raises `JobError` without a registry."""
        if publisher is None:
            raise JobError("framed payloads need a registry, which has the ids of their schemas")
        return KafkaWriter(self.settings, job.id, publisher)


def admin_of(settings: KafkaTopics, spark: SparkSession) -> KafkaAdmin:
    """Return a client of the cluster of topics."""
    return KafkaAdmin(spark, settings.servers, settings.options)


def admin_of_source(source: Kafka, spark: SparkSession) -> KafkaAdmin:
    """Return a client of the cluster of a source."""
    own = {name: value for name, value in source.options.items() if name.lower().startswith(_CONNECTION)}
    return KafkaAdmin(spark, source.servers, {**_PATIENCE, **own})


@dataclass
class KafkaWriter:
    """Writes batches to topics; `job` (str) is unique to the pipeline, `publisher` knows the ids of schemas."""

    settings: KafkaTopics
    job: str
    publisher: Publisher
    _partitions: dict[str, int] = field(default_factory=dict)

    has_changes = True
    has_states = False

    def write(self, tables: Sequence[Rows]) -> list[WriteResult]:
        """Write the rows of tables, several at a time."""
        if not tables:
            return []
        with admin_of(self.settings, session_of(tables)) as admin, ThreadPoolExecutor(self.settings.parallel) as pool:
            return list(pool.map(partial(self._write, admin), tables))

    def _write(self, admin: KafkaAdmin, rows: Rows) -> WriteResult:
        table, name, waiting = rows
        try:
            topic = topic_name(self.settings.topic, name)
            if topic not in self._partitions:
                own = self.settings.partitions, self.settings.replication
                self._partitions[topic] = admin.partitions(topic, *own)
            count = self._partitions[topic]
            parts = [self._records(table, name, part.batch, part.rows, count) for part in waiting]
            if parts:
                self._send(topic, reduce(DataFrame.unionByName, parts))
        except (PySparkException, Py4JError) as error:
            if not any(f".{refusal}" in str(error) for refusal in REFUSALS):
                raise
            return WriteResult(table.number, [], kafka_reason(error))
        except JobError as error:
            if not isinstance(error, TopicRefusedError):
                raise
            return WriteResult(table.number, [], str(error))
        except CdcAvroError as error:
            return WriteResult(table.number, [], str(error))
        return WriteResult(table.number, [], None)

    def _records(self, table: Table, name: TableName, batch: int, rows: DataFrame, partitions: int) -> DataFrame:
        """Return the records of a batch's rows: key, value, headers, lane and order."""
        ids = self.publisher.known(table)
        is_gone = (sf.col("operation") == DELETE) & sf.col("key").isNotNull() & sf.lit(self.settings.tombstones)
        both = sf.explode(sf.when(is_gone, sf.array(sf.lit(False), sf.lit(True))).otherwise(sf.array(sf.lit(False))))  # noqa: FBT003
        listed = rows.where(~sf.col("operation").isin(*left_out(self.settings))).select(
            "version", "key", "payload", "order", both.alias("late"), *([HEADERS] if self.settings.has_headers else [])
        )
        came_with = sf.col(HEADERS) if self.settings.has_headers else None
        own_key, payload = sf.col("key"), sf.col("payload")
        if self.settings.is_connect:
            schemas = [schema for schema in table.versions if schema.version in ids]
            own_key, payload = (_as_connect(schemas, one, is_key=one == "key") for one in ("key", "payload"))
        order = sf.when(sf.col("late"), sf.concat("order", sf.lit(bytearray(BEHIND)))).otherwise(sf.col("order"))
        return listed.select(
            sf.when(sf.col("key").isNotNull(), sf.concat(_prefix(key_prefixes(ids)), own_key)).alias("key"),
            sf.when(~sf.col("late"), sf.concat(_prefix(value_prefixes(ids)), payload)).alias("value"),
            headers(headers_of(self.job, batch, table.number), order, came_with).alias("headers"),
            self._lane(table, name, partitions).alias("lane"),
            order.alias("order"),
        )

    def _lane(self, table: Table, name: TableName, partitions: int) -> Column:
        """Return what is the same for rows that must keep their order: the partition, or else the key."""
        if partitions == 1:
            return sf.lit(0)
        if self.settings.shards is None:
            return sf.col("key")
        schemas = {schema.version: schema.key.json for schema in table.versions if schema.key is not None}
        return shard_column(self.settings.shards, partitions, name, schemas)

    def _send(self, topic: str, records: DataFrame) -> None:
        """Write records, those of one lane by one task, in their order."""
        sorted_records = records.repartition("lane").sortWithinPartitions("order")
        columns: list[Any] = ["key", "value", "headers"]
        if dict(records.dtypes)["lane"] == "int":
            columns.append(sf.col("lane").alias("partition"))
        send(self.settings, topic, sorted_records.select(*columns))


def _as_connect(schemas: Sequence[TableSchema], col: str, *, is_key: bool) -> Column:
    """Return the column of typed payloads, or keys, as payloads of Kafka Connect's schemas."""
    own = ConnectPayloads.of(schemas, is_key=is_key)

    def translate(versions: pa.Array, payloads: pa.Array) -> pa.Array:
        facts = zip(versions.to_pylist(), payloads.to_pylist(), strict=True)
        made = [None if payload is None else own.translate(int(version), payload) for version, payload in facts]
        return pa.array(made, pa.binary())

    return column_function(translate, "binary", "cdc_connect")(sf.col("version").cast("string"), sf.col(col))


def send(settings: KafkaTopics, topic: str, records: DataFrame) -> None:
    """Write records, which have the columns of Spark's sink, to a topic."""
    writer = records.write.format("kafka").options(**settings.options)
    writer.option("kafka.bootstrap.servers", settings.servers).option("topic", topic).save()


def _prefix(framing: Mapping[int, bytes]) -> Column:
    """Return what stands before a payload of a row's version. A version without an id fails the batch."""
    none = sf.raise_error(sf.concat(sf.lit("no schema is published of version "), sf.col("version").cast("string")))
    if not framing:
        return none.cast("binary")
    pairs = [sf.lit(part) for version, prefix in framing.items() for part in (version, bytearray(prefix))]
    return sf.coalesce(sf.create_map(*pairs)[sf.col("version")], none.cast("binary"))


def headers(values: Mapping[str, bytes], order: Column | None = None, came_with: Column | None = None) -> Column:
    """Return the headers of records, the order among them if there is one, and those that a record came with, if any."""
    found = {name: sf.lit(bytearray(value)) for name, value in values.items()}
    found |= {} if came_with is None else {CAME_WITH: came_with.cast("binary")}
    found |= {} if order is None else {ORDER: order}
    stated = sf.array(*[sf.struct(sf.lit(name).alias("key"), value.alias("value")) for name, value in found.items()])
    return stated if came_with is None else sf.filter(stated, lambda one: one["value"].isNotNull())


def kafka_reason(error: Exception) -> str:
    """Return why Kafka refused records, which stands deep in Spark's message."""
    lines = [line.strip() for line in str(error).splitlines()]
    found = (line for line in lines if any(f".{refusal}" in line for refusal in REFUSALS))
    return next(found, first_line(error))


def shard_column(strategy: str, count: int, table: TableName, keys: Mapping[int, str]) -> Column:
    """Return the column of the shards of rows, which `shards` makes of their version, key and order."""

    def column(versions: pa.Array, payloads: pa.Array, orders: pa.Array) -> pa.Array:
        rows = zip(versions.to_pylist(), raw_bytes(payloads), raw_bytes(orders), strict=True)
        return pa.array(shards(strategy, count, table, keys, rows), pa.int32())

    return column_function(column, "int", "cdc_shard", from_json={0: pa.array})("version", "key", "order")


class KafkaAdmin:
    """A client of a cluster, to be used as a context manager.

    `servers` are some brokers, `options` those of Spark's sink, such as `kafka.security.protocol`. Its methods raise
    `JobError`.
    """

    def __init__(self, spark: SparkSession, servers: str, options: Mapping[str, str]) -> None:
        jvm: Any = spark._jvm  # noqa: SLF001  Kafka's client has no Python interface in Spark
        self._jvm, self._servers = jvm, servers
        properties = jvm.java.util.Properties()
        own = {name.removeprefix(_PREFIX): value for name, value in options.items() if name.startswith(_PREFIX)}
        for name, value in {**own, "bootstrap.servers": servers}.items():
            properties.setProperty(name, value)
        try:
            self._client = jvm.org.apache.kafka.clients.admin.AdminClient.create(properties)
        except Py4JJavaError as error:
            raise self._error_of(error) from error

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._client.close(self._jvm.java.time.Duration.ofSeconds(5))

    def cluster(self) -> str:
        """Return the id of the cluster."""
        return str(self._answer(self._client.describeCluster().clusterId()))

    def topic_ids(self, topics: Sequence[str]) -> dict[str, str]:
        """Return the ids of topics, without those of which the brokers say none."""
        names, found = self._jvm.java.util.ArrayList(), {}
        for topic in topics:
            names.add(topic)
        futures = self._client.describeTopics(names).topicNameValues()
        for topic in topics:
            try:
                found[topic] = str(futures.get(topic).get().topicId().toString())
            except Py4JJavaError as error:
                if _java_name(error) in _PASSING:
                    raise self._error_of(error) from error
        return {topic: id for topic, id in found.items() if id != NO_TOPIC_ID}

    def partitions(self, topic: str, count: int | None, replication: int | None) -> int:
        """Return how many partitions a topic has; if it is not there, it is created, by default as the brokers say.

        Raises `TopicRefusedError` if the cluster refuses the topic.
        """
        names = self._jvm.java.util.ArrayList()
        names.add(topic)
        for is_last in (False, True):
            try:
                described = self._client.describeTopics(names).topicNameValues().get(topic).get()
                return int(described.partitions().size())
            except Py4JJavaError as error:
                if _java_name(error) != UNKNOWN_TOPIC or is_last:
                    raise self._error_of(error) from error
            created = self._create(topic, count or CHOSEN_BY_BROKERS, replication or CHOSEN_BY_BROKERS)
            if created is not None:
                return created
        raise AssertionError("the second round ends the loop")

    def _create(self, topic: str, count: int, replication: int) -> int | None:
        """Create a topic; return its number of partitions, None if somebody else has created it."""
        topics = self._jvm.java.util.ArrayList()
        topics.add(self._jvm.org.apache.kafka.clients.admin.NewTopic(topic, count, replication))
        created = self._client.createTopics(topics)
        try:
            return int(created.numPartitions(topic).get())
        except Py4JJavaError as error:
            if _java_name(error) == _EXISTS:
                return None
            raise self._error_of(error) from error

    def _answer(self, future: Any) -> Any:
        try:
            return future.get()
        except Py4JJavaError as error:
            raise self._error_of(error) from error

    def _error_of(self, error: Py4JJavaError) -> JobError:
        cause = error.java_exception.getCause() or error.java_exception
        sentence = f"Kafka at {self._servers}: {cause.getMessage() or first_line(error)}"
        return TopicRefusedError(sentence) if _java_name(error) in REFUSALS else JobError(sentence)


def _java_name(error: Py4JJavaError) -> str:
    cause = error.java_exception.getCause() or error.java_exception
    return str(cause.getClass().getSimpleName())


_COUNT: Final = pa.schema([("files", pa.int32())])


@dataclass(frozen=True)
class FileSink:
    """The Avro files of a pipeline on Spark; `settings` are their own."""

    settings: AvroFiles

    def identity(self, spark: SparkSession) -> str:  # noqa: ARG002  as that of topics
        """Return what identifies the files."""
        return self.settings.name

    def folders(self, spark: SparkSession) -> list[str]:  # noqa: ARG002  as that of a lake
        """Return where the files are, which all machines share."""
        return [str(self.settings.folder)]

    def check(self, spark: SparkSession) -> None:  # noqa: ARG002  as that of a lake
        """Check that the folder can be written to. Raises `FileError`."""
        self.settings.check()

    def writer(self, job: Job, publisher: object) -> AvroFileWriter:  # noqa: ARG002  as that of topics
        """Return what writes batches of a pipeline."""
        return AvroFileWriter(self.settings, AvroFolder(self.settings.folder, job.id))


class AvroFileWriter(FolderWriter):
    """Writes batches to files in a folder of the pipeline's."""

    def _files_of(self, table: Table, frame: DataFrame) -> Callable[[Path], int]:
        """Return what writes the rows of a batch to a folder, and returns how many files that makes."""

        def write(fresh: Path) -> int:
            schemas = {schema.version: schema.envelope.json for schema in table.versions}
            # A DROP has no payload.
            columns = ["version", "payload", *([HEADERS] if self.settings.has_headers else [])]
            changes = frame.where(sf.col("operation") != DROP).orderBy("version", "order").select(*columns)
            task = in_worker(_write_task(str(fresh), schemas, self.settings))
            return sum(row["files"] for row in changes.mapInArrow(task, "files int").collect())

        return write


def _write_task(
    folder: str, schemas: Mapping[int, str], settings: AvroFiles
) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """Return the function of a task that writes rows, sorted by their version, to a file for each version."""

    def write(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        context: Any = TaskContext.get()
        part, attempt = context.partitionId(), context.taskAttemptId()
        count = write_versions(batches, Path(folder), schemas, settings, part=part, attempt=attempt)
        yield pa.RecordBatch.from_pylist([{"files": count}], schema=_COUNT)

    return write
