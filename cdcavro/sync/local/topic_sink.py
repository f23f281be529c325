"""Kafka topics of a pipeline in this process: the same records as Spark's sink writes, through librdkafka.

It writes at least once, too: what a batch wrote before it was killed is written again when the batch is run again, and
the headers of each record identify it.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
from confluent_kafka import KafkaError, KafkaException

from cdcavro.errors import CdcAvroError, JobError
from cdcavro.lake.escaped_names import topic_name
from cdcavro.lake.sql_statements import HEADERS
from cdcavro.lake.typed_rows import DELETE
from cdcavro.sync.local.local_outcomes import in_order, reject_line
from cdcavro.sync.outputs.reject_places import record_limit
from cdcavro.sync.outputs.topic_records import (
    BEHIND,
    CAME_WITH,
    ORDER,
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
from cdcavro.sync.reading.kafka_client import FATAL, KafkaCluster

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from confluent_kafka import Producer

    from cdcavro.sync.outputs.reject_places import Rejects
    from cdcavro.sync.outputs.sink_settings import Job, KafkaTopics
    from cdcavro.sync.outputs.writer import Publisher, Rows, Waiting
    from cdcavro.table.ddl.steps import TableName
    from cdcavro.table.history import Table

# How many bytes are written at once: where the topic does not tell how many it takes, as many as Java's client does.
_BATCH: Final = 1_000_000
_UNTOLD: Final = 16_384
# How many records are handed on before it is looked what became of those before, and how many seconds that may take.
_ROUND: Final = 1_000
_MOMENT: Final = 0.25
_BY_KEY: Final = -1


@dataclass(frozen=True)
class LocalTopicSink:
    """The topics of a pipeline; `settings` are their own."""

    settings: KafkaTopics

    def identity(self) -> str:
        """Return what identifies the topics, whatever brokers are named. Raises `JobError`."""
        return identity_of(self.settings, KafkaCluster(self.settings).id())

    def check(self) -> None:
        """Ask the cluster who it is. Raises `JobError`."""
        KafkaCluster(self.settings).id()

    def writer(self, job: Job, publisher: Publisher | None) -> LocalTopicWriter:
        """Return what writes batches of a pipeline. Raises `JobError` without a registry."""
        if publisher is None:
            raise JobError("framed payloads need a registry, which has the ids of their schemas")
        return LocalTopicWriter(self.settings, job.id, publisher, TopicClient(KafkaCluster(self.settings)))


class TopicRecord(NamedTuple):
    """A record that is to be written."""

    key: bytes | None
    # None for a tombstone.
    value: bytes | None
    headers: Mapping[str, bytes]
    # The number of the partition, -1 if Kafka chooses it, by the key.
    partition: int = _BY_KEY


class TopicClient:
    """Writes records to topics of a cluster: `send`, then `finish`, which says what became of them."""

    def __init__(self, cluster: KafkaCluster) -> None:
        self.cluster = cluster
        self._producer: Producer | None = None
        self._batch = _BATCH
        self._errors: deque[KafkaError] = deque(maxlen=8)
        self._partitions: dict[str, int] = {}

    def partitions(self, topic: str, settings: KafkaTopics) -> int:
        """Return how many partitions a topic has, which is created if it is not there.

        Raises `TopicRefusedError` if the cluster refuses it, `JobError` for other faults.
        """
        if topic not in self._partitions:
            count = self.cluster.partitions(topic, settings.partitions, settings.replication)
            # Where Java's client halves what is too large for a topic, librdkafka refuses it.
            batch = self.cluster.largest(topic) or _UNTOLD
            if batch < self._batch:
                self.finish()
                self._producer, self._batch = None, batch
            self._partitions[topic] = count
        return self._partitions[topic]

    def send(self, topic: str, records: Iterable[TopicRecord], faults: list[object]) -> None:
        """Hand on records in their order until the first fault, or the end. Raises `JobError` for what is no topic's fault.

        Faults come into the list until `finish` is done.
        """
        if self._producer is None:
            self._errors.clear()
            self._producer = self.cluster.producer(self._batch, self._errors)

        def report(error: KafkaError | None, _: object) -> None:
            if error is not None:
                faults.append(error)

        for number, one in enumerate(records):
            if faults:
                return
            try:
                self._produce(self._producer, topic, one, report)
            except KafkaException as error:
                faults.append(error)
                return
            if not number % _ROUND:
                self._producer.poll(0)
                self._check()

    def _produce(self, producer: Producer, topic: str, record: TopicRecord, report: Callable[..., None]) -> None:
        key, value, headers, partition = record
        own: Any = [*headers.items()]
        while True:
            try:
                producer.produce(topic, value, key, partition, headers=own, on_delivery=report)
            except BufferError:
                # It waits until there is room, as long as a record may take to arrive.
                producer.poll(_MOMENT)
                self._check()
            else:
                return

    def finish(self) -> None:
        """Wait until all records have arrived, or have not in time. Raises `JobError` for what no waiting heals."""
        while self._producer is not None and len(self._producer):
            self._producer.flush(_MOMENT)
            self._check()

    def forget(self) -> None:
        """Drop what is not written, and the connection."""
        if self._producer is not None:
            self._producer.purge(in_queue=True, in_flight=True, blocking=False)
            self._producer = None

    def error_of(self, fault: object) -> JobError:
        """Return a fault as an error: a `TopicRefusedError` if it is one topic's."""
        return self.cluster.error_of(fault, self._errors)

    def _check(self) -> None:
        if any(one.code() in FATAL for one in self._errors):
            raise self.cluster.error_of("no login", self._errors)


@dataclass
class LocalTopicWriter:
    """Writes batches to topics through a client; `job` (str) is unique to the pipeline.

    `publisher` knows the ids of schemas. Tables are handed on one after another, as librdkafka writes many at a time.
    """

    settings: KafkaTopics
    job: str
    publisher: Publisher
    client: TopicClient

    has_changes = True
    has_states = False

    def write(self, tables: Sequence[Rows]) -> list[WriteResult]:
        """Write the rows of tables. Raises `JobError` for what is no table's fault."""
        faults: dict[int, list[object]] = {}
        try:
            for table, name, waiting in tables:
                own = faults.setdefault(table.number, [])
                try:
                    self._send(table, name, waiting, own)
                except TopicRefusedError as error:
                    own.append(error)
                except JobError:
                    raise
                except CdcAvroError as error:
                    own.append(error)
            self.client.finish()
            return [WriteResult(number, [], self._why(own)) for number, own in faults.items()]
        except BaseException:
            self.client.forget()
            raise

    def _send(self, table: Table, name: TableName, waiting: Waiting, faults: list[object]) -> None:
        topic = topic_name(self.settings.topic, name)
        partitions = self.client.partitions(topic, self.settings)
        self.client.send(topic, self._records(table, name, waiting, partitions), faults)

    def _why(self, faults: Sequence[object]) -> str | None:
        """Return why a table's rows wait, None if they are written. Raises `JobError` for faults of no table."""
        found = [one if isinstance(one, CdcAvroError) else self.client.error_of(one) for one in faults]
        for error in found:
            if isinstance(error, JobError) and not isinstance(error, TopicRefusedError):
                raise error
        return str(found[0]) if found else None

    def _records(self, table: Table, name: TableName, waiting: Waiting, partitions: int) -> Iterator[TopicRecord]:
        """Yield the records of batches' rows, in order."""
        ids = self.publisher.known(table)
        values, keys = value_prefixes(ids), key_prefixes(ids)
        common = {batch: headers_of(self.job, batch, table.number) for batch in {part.batch for part in waiting}}
        names = (*_COLUMNS, HEADERS) if self.settings.has_headers else _COLUMNS
        for rows in in_order(_rows_of(waiting, names, left_out(self.settings)), "order"):
            columns: Any = [rows.column(one).to_pylist() for one in _COLUMNS]
            texts = rows.column(HEADERS).to_pylist() if self.settings.has_headers else [None] * rows.num_rows
            places = self._places(table, name, partitions, columns)
            if self.settings.is_connect:
                columns = _as_connect(table, columns)
            for (batch, version, operation, order, key, payload), text, place in zip(
                zip(*columns, strict=True), texts, places, strict=True
            ):
                own = common[batch] if text is None else {**common[batch], CAME_WITH: text.encode()}
                framed = None if key is None else _prefix(keys, version) + key
                value = _prefix(values, version) + payload
                yield TopicRecord(framed, value, {**own, ORDER: order}, place)
                if operation == DELETE and key is not None and self.settings.tombstones:
                    yield TopicRecord(framed, None, {**own, ORDER: order + BEHIND}, place)

    def _places(self, table: Table, name: TableName, partitions: int, columns: Sequence[Any]) -> Iterable[int]:
        """Return the partitions of rows with these columns."""
        _, versions, _, orders, keys, _ = columns
        if partitions == 1:
            return [0] * len(versions)
        if self.settings.shards is None:
            return [_BY_KEY] * len(versions)
        schemas = {schema.version: schema.key.json for schema in table.versions if schema.key is not None}
        return shards(self.settings.shards, partitions, name, schemas, zip(versions, keys, orders, strict=True))


_COLUMNS: Final = ("batch", "version", "operation", "order", "key", "payload")


def _as_connect(table: Table, columns: Sequence[Any]) -> list[Any]:
    """Return the columns of rows with keys and payloads of Kafka Connect's schemas."""
    batches, versions, operations, orders, keys, payloads = columns
    schemas = [schema for schema in table.versions if schema.version in {*versions}]
    of_keys, of_values = (ConnectPayloads.of(schemas, is_key=is_key) for is_key in (True, False))
    own_keys = [
        None if key is None else of_keys.translate(version, key) for version, key in zip(versions, keys, strict=True)
    ]
    own = [of_values.translate(version, payload) for version, payload in zip(versions, payloads, strict=True)]
    return [batches, versions, operations, orders, own_keys, own]


def _rows_of(waiting: Waiting, names: Sequence[str], left_out: Sequence[str]) -> pa.Table:
    """Return the rows of batches, without those of some operations, each with the number of its batch."""
    parts = [
        rows.append_column("batch", pa.repeat(pa.scalar(part.batch, pa.int64()), rows.num_rows))
        for part in waiting
        for rows in [part.rows]
    ]
    rows = pa.concat_tables(parts).select(names)
    return rows.filter(pc.invert(pc.is_in(rows.column("operation"), pa.array(left_out))))


def _prefix(framing: Mapping[int, bytes], version: int) -> bytes:
    """Return what stands before a payload of a version. Raises `JobError` for a version without an id."""
    found = framing.get(version)
    if found is None:
        raise JobError(f"no schema is published of version {version}")
    return found


@dataclass
class LocalRejectTopic:
    """A topic of rejects, which has those of each batch at least once; `job` (str) is unique to the pipeline."""

    kafka: KafkaTopics
    job: str
    _client: TopicClient | None = field(default=None)

    @property
    def name(self) -> str:
        """What it is called in messages."""
        return f"the topic {self.kafka.topic}"

    def write(self, rejects: Rejects) -> None:
        """Send rejects: the lines of their folder, without the bytes of messages too large for Kafka's client.

        Raises `JobError`.
        """
        if self._client is None:
            self._client = TopicClient(KafkaCluster(self.kafka))
        client, faults = self._client, list[object]()
        try:
            client.partitions(self.kafka.topic, self.kafka)
            client.send(self.kafka.topic, self._records(rejects), faults)
            client.finish()
        except BaseException:
            client.forget()
            raise
        if faults:
            error = client.error_of(faults[0])
            client.forget()
            raise error

    def _records(self, rejects: Rejects) -> Iterator[TopicRecord]:
        limit, headers = record_limit(self.kafka), headers_of(self.job, rejects.batch)
        for batch in rejects.rows.to_batches(max_chunksize=_ROUND):
            for row in batch.to_pylist():
                key, line = row["record_key"], reject_line(row, rejects.time)
                if len(line) + len(key or b"") <= limit:
                    yield TopicRecord(key, line, headers)
                else:
                    # A message that is too large must not stop the stream, and its folder has it.
                    yield TopicRecord(None, reject_line(row, rejects.time, has_bytes=False), headers)
