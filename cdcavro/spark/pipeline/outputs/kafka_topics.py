"""Topics of Kafka: the changes of each table as records of framed Avro, in a topic of its own or in one for all.

Spark's sink writes at least once: what a batch wrote before it was killed is there again when it is run again. So each
record has headers that say which one it is, and a reader drops what it has.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial, reduce
from typing import TYPE_CHECKING, Any, Final

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame
from pyspark.sql import functions as sf

from cdcavro.errors import CdcAvroError, JobError, shown
from cdcavro.lake.typed_rows import DELETE, DROP, TRUNCATE
from cdcavro.registry import frame
from cdcavro.spark.job.line_frame import first_line
from cdcavro.spark.pipeline.lake_tables import Written
from cdcavro.spark.pipeline.outputs.kafka_admin import REFUSALS, KafkaAdmin, TopicRefusedError
from cdcavro.spark.pipeline.outputs.shards import STRATEGIES, shard_column
from cdcavro.spark.pipeline.outputs.topic_names import check_template, topic_name

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pyspark.sql import Column, SparkSession

    from cdcavro.spark.pipeline.outputs.writer import Rows
    from cdcavro.spark.pipeline.registries.publishing import Publisher
    from cdcavro.table.ddl.steps import TableName
    from cdcavro.table.history import Table

JOB: Final = "cdcavro.job"
TABLE: Final = "cdcavro.table"
BATCH: Final = "cdcavro.batch"
ORDER: Final = "cdcavro.order"
# A tombstone comes behind its delete and before whatever comes behind that: no order begins another.
_BEHIND: Final = bytearray(b"\0")
_REFUSED: Final = frozenset({"topic", "includeheaders", "kafka.bootstrap.servers"})
# As long as a check of a source of Kafka waits, in milliseconds.
_PATIENCE: Final = {"kafka.request.timeout.ms": "10000", "kafka.default.api.timeout.ms": "15000"}


@dataclass(frozen=True)
class KafkaTopics:
    """Topics of a Kafka cluster, for which a pipeline needs a registry.

    Attributes: `servers` (str), `host:port` of some brokers, separated by commas; `topic` (str), what topics are called,
    with `{name}` for the name of the table, or one topic for all; `options`, those of Spark's sink of Kafka, such as
    `kafka.security.protocol` (their values are not shown); `shards` (str or None), `blob` or `tuple`, by whose rule the
    partition is chosen, by default Kafka's own; `tombstones` and `truncates` (bool), whether a record without a value
    follows a delete, and whether a TRUNCATE is a record; `partitions` and `replication` (int or None), of topics that
    are created, by default as the brokers say; `parallel` (int), how many tables are written at a time. Raises
    `ValueError`.
    """

    servers: str
    topic: str = "{name}"
    options: Mapping[str, str] = field(default_factory=dict, repr=False)
    shards: str | None = None
    tombstones: bool = True
    truncates: bool = True
    partitions: int | None = None
    replication: int | None = None
    parallel: int = 4

    def __post_init__(self) -> None:
        """Check what is told."""
        check_template(self.topic)
        if self.shards not in (None, *STRATEGIES):
            raise ValueError(f"shards are those of {' or '.join(STRATEGIES)}, not {shown(self.shards)}")
        refused = sorted(name for name in self.options if name.lower() in _REFUSED)
        if refused:
            raise ValueError(f"the options {', '.join(refused)} of Spark's sink of Kafka cannot be set")

    @property
    def name(self) -> str:
        """What the topics are called in messages."""
        return f"the topics {self.topic} of Kafka at {self.servers}"

    def identity(self, spark: SparkSession) -> str:
        """Return what tells the topics from others, whatever brokers are named. Raises `JobError`."""
        with self.admin(spark) as admin:
            return f"the topics {self.topic} of the Kafka cluster {admin.cluster()}"

    def folders(self, spark: SparkSession) -> list[str]:  # noqa: ARG002  as that of a lake
        """Return nothing: topics are in no folder."""
        return []

    def check(self, spark: SparkSession) -> None:
        """Ask the cluster who it is. Raises `JobError`."""
        with KafkaAdmin(spark, self.servers, {**_PATIENCE, **self.options}) as admin:
            admin.cluster()

    def admin(self, spark: SparkSession) -> KafkaAdmin:
        """Return a client of the cluster."""
        return KafkaAdmin(spark, self.servers, self.options)

    def writer(self, job: str, publisher: Publisher | None) -> KafkaWriter:
        """Return what writes batches; `job` is unique to the pipeline. Raises `JobError` without a registry."""
        if publisher is None:
            raise JobError("framed payloads need a registry, which has the ids of their schemas")
        return KafkaWriter(self, job, publisher)


@dataclass
class KafkaWriter:
    """Writes batches to topics; `job` (str) is unique to the pipeline, `publisher` knows the ids of schemas."""

    settings: KafkaTopics
    job: str
    publisher: Publisher
    _partitions: dict[str, int] = field(default_factory=dict)

    has_changes = True

    def write(self, spark: SparkSession, tables: Sequence[Rows]) -> list[Written]:
        """Write the rows of tables, several at a time."""
        if not tables:
            return []
        with self.settings.admin(spark) as admin, ThreadPoolExecutor(self.settings.parallel) as pool:
            return list(pool.map(partial(self._write, admin), tables))

    def _write(self, admin: KafkaAdmin, rows: Rows) -> Written:
        table, name, waiting = rows
        try:
            topic = topic_name(self.settings.topic, name)
            if topic not in self._partitions:
                own = self.settings.partitions, self.settings.replication
                self._partitions[topic] = admin.partitions(topic, *own)
            parts = [self._records(table, name, batch, part, self._partitions[topic]) for batch, part, *_ in waiting]
            if parts:
                self._send(topic, reduce(DataFrame.unionByName, parts))
        except (PySparkException, Py4JError) as error:
            if not any(f".{refusal}" in str(error) for refusal in REFUSALS):
                raise
            return Written(table.number, [], said(error))
        except JobError as error:
            if not isinstance(error, TopicRefusedError):
                raise
            return Written(table.number, [], str(error))
        except CdcAvroError as error:
            return Written(table.number, [], str(error))
        return Written(table.number, [], None)

    def _records(self, table: Table, name: TableName, batch: int, rows: DataFrame, partitions: int) -> DataFrame:
        """Return the records of a batch's rows: key, value, headers, where they belong, and their order."""
        ids = self.publisher.known(table)
        values = {version: frame(b"", own.value) for version, own in ids.items()}
        keys = {version: frame(b"", own.key) for version, own in ids.items() if own.key is not None}
        own = self.settings
        left_out = (DROP,) if own.truncates else (DROP, TRUNCATE)
        is_gone = (sf.col("operation") == DELETE) & sf.col("key").isNotNull() & sf.lit(own.tombstones)
        both = sf.explode(sf.when(is_gone, sf.array(sf.lit(False), sf.lit(True))).otherwise(sf.array(sf.lit(False))))  # noqa: FBT003
        listed = rows.where(~sf.col("operation").isin(*left_out)).select(
            "version", "key", "payload", "order", both.alias("late")
        )
        order = sf.when(sf.col("late"), sf.concat("order", sf.lit(_BEHIND))).otherwise(sf.col("order"))
        return listed.select(
            sf.when(sf.col("key").isNotNull(), sf.concat(_prefix(keys), "key")).alias("key"),
            sf.when(~sf.col("late"), sf.concat(_prefix(values), "payload")).alias("value"),
            headers({JOB: self.job, TABLE: str(table.number), BATCH: str(batch)}, order).alias("headers"),
            self._lane(table, name, partitions).alias("lane"),
            order.alias("order"),
        )

    def _lane(self, table: Table, name: TableName, partitions: int) -> Column:
        """Return what rows that must keep their order have in common: the partition, or else the key."""
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


def headers(texts: Mapping[str, str], order: Column | None = None) -> Column:
    """Return the headers of records, the order among them if there is one."""
    told = {name: sf.lit(bytearray(text.encode())) for name, text in texts.items()}
    told |= {} if order is None else {ORDER: order}
    return sf.array(*[sf.struct(sf.lit(name).alias("key"), value.alias("value")) for name, value in told.items()])


def said(error: Exception) -> str:
    """Return what Kafka said of records, which stands deep in Spark's message."""
    lines = [line.strip() for line in str(error).splitlines()]
    found = (line for line in lines if any(f".{refusal}" in line for refusal in REFUSALS))
    return next(found, first_line(error))
