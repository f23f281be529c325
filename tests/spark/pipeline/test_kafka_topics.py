"""Topics of a pipeline on a real broker: framed records, their order and partitions, tombstones, and each once by the headers."""

from __future__ import annotations

import io
import json
from collections import Counter
from collections.abc import Iterable
from typing import Any, NamedTuple

import fastavro
import pytest
from pyspark.sql import SparkSession

from cdcavro import registry
from cdcavro.errors import FileError, JobError
from cdcavro.formats.connect_avro import is_connect
from cdcavro.spark.pipeline import Formats, KafkaTopics, RegistrySettings
from cdcavro.spark.pipeline.record_sinks import shard_column
from cdcavro.sync.outputs.sink_settings import BLOB, TUPLE
from cdcavro.sync.outputs.topic_records import BATCH, JOB, ORDER, TABLE, shards
from cdcavro.table.ddl.steps import TableName
from support.kafka_server import Broker
from support.messages import canal
from support.pipelines import Job

pytestmark = pytest.mark.timeout(600)
FORMAT = Formats("canal")
PASSWORD = "hunter2 behind seven seals"


class Read(NamedTuple):
    """A record as a consumer reads it, its parts opened by the registry."""

    partition: int
    key: Any
    value: Any
    headers: dict[str, bytes]


def consumed(kafka: Broker, topic: str, schemas: registry.Registry) -> list[Read]:
    """Return the records of a topic, by partition."""
    return [
        Read(one.partition(), *[opened(part, schemas) for part in (one.key(), one.value())], dict(one.headers()))
        for one in kafka.records(topic)
    ]


def opened(framed: bytes | None, schemas: registry.Registry) -> Any:
    """Return what a framed payload says, by fastavro."""
    if framed is None:
        return None
    writer, payload = schemas.open(framed)
    return fastavro.schemaless_reader(io.BytesIO(payload), json.loads(writer.schema.json))


def once(records: Iterable[Read]) -> list[Read]:
    """Return records without those that a reader has, as the page says."""
    had: set[tuple[bytes, ...]] = set()
    kept = []
    for one in records:
        identity = one.headers[JOB], one.headers[TABLE], one.headers[ORDER]
        if identity not in had:
            kept.append(one)
        had.add(identity)
    return kept


def said(record: Read) -> tuple[Any, ...]:
    """Return the operation of a record, its key, and the ids before and after."""
    if record.value is None:
        return (None, record.key["id"])
    images = [record.value[name] and record.value[name]["id"] for name in ("before", "after")]
    return (record.value["op"], record.key and record.key["id"], *images)


@pytest.fixture
def made(job, kafka: Broker) -> Job:
    """A pipeline into topics of three partitions, with a prefix."""
    own = job()
    own.registry = RegistrySettings(f"file:{own.folder}/schemas")
    own.out = KafkaTopics(kafka.servers, "sink.{name}", partitions=3, shards="blob")
    return own


def test_records_are_framed_in_order_and_once_by_their_headers(made: Job, kafka: Broker):
    """A new version, a key that moves, deletes with their tombstones, a TRUNCATE; a batch that is run again adds nothing new."""
    made.send(*[canal("INSERT", [{"id": str(id), "a": "1"}], id=id) for id in (1, 2, 3, 4)])
    made.send(
        canal("UPDATE", [{"id": "9", "a": "1"}], id=5, old=[{"id": "1"}]),
        canal("INSERT", [{"id": "5", "a": "1", "b": "2"}], id=6),
        canal("DELETE", [{"id": "5", "a": "1", "b": "2"}], id=7),
        canal("INSERT", [{"n": "7"}], id=8, table="log/1", pkNames=None),
        canal("TRUNCATE", [], id=9, isDdl=True, sql="TRUNCATE TABLE t"),
    )
    reports = made.run(formats=FORMAT)
    assert [report.waiting for report in reports] == [{}, {}]
    schemas = registry.connect(made.registry.url)
    assert schemas.subjects() == ["sink.d.log_x2f_1-value", "sink.d.t-key", "sink.d.t-value"]
    first = consumed(kafka, "sink.d.t", schemas)
    assert Counter(map(said, first)) == Counter(
        [("c", id, None, id) for id in (1, 2, 3, 4, 5, 9)]
        + [("d", 1, 1, None), (None, 1), ("d", 5, 5, None), (None, 5), ("t", None, None, None)]
    )
    for one in first:
        assert (one.headers[JOB], one.headers[TABLE]) == (first[0].headers[JOB], b"0")
    assert {one.headers[BATCH] for one in first if one.key and one.key["id"] in (2, 3, 4)} == {b"0"}
    for partition in range(3):
        # What a key became is in one partition, in order.
        orders = [(int(one.headers[BATCH]), one.headers[ORDER]) for one in first if one.partition == partition]
        assert orders == sorted(orders)
    assert len({one.partition for one in first}) > 1
    log = consumed(kafka, "sink.d.log_x2f_1", schemas)
    assert [(one.key, one.value["after"]["n"]) for one in log] == [(None, 7)]
    (again,) = made.run_again(formats=FORMAT)
    assert again.number == 1
    both = consumed(kafka, "sink.d.t", schemas)
    assert len(both) == len(first) + 7
    assert Counter(map(repr, once(both))) == Counter(map(repr, first))


def test_what_kafka_refuses_waits_and_the_others_are_in_the_one_topic_for_all(made: Job, kafka: Broker):
    """Kafka's own partitions; no tombstones and no TRUNCATE if they are not wanted. A state belongs to its topics."""
    small = {"kafka.max.request.size": "4000"}
    made.out = KafkaTopics(kafka.servers, "all", options=small, tombstones=False, truncates=False, partitions=2)
    made.send(
        canal("INSERT", [{"id": "1", "a": "x" * 5000}], id=1, mysqlType={"id": "int", "a": "text"}),
        canal("INSERT", [{"id": "2"}], id=2, table="u"),
        canal("DELETE", [{"id": "2"}], id=3, table="u"),
        canal("TRUNCATE", [], id=4, isDdl=True, sql="TRUNCATE TABLE u", table="u"),
    )
    (report,) = made.run(formats=FORMAT)
    assert list(report.waiting) == ["d.t"]
    assert "RecordTooLargeException" in report.waiting["d.t"]
    schemas = registry.connect(made.registry.url)
    assert schemas.subjects() == [f"all-d.{table}.{part}" for table in "tu" for part in ("Envelope", "Key")]
    assert [said(one) for one in consumed(kafka, "all", schemas)] == [("c", 2, None, 2), ("d", 2, 2, None)]
    made.out = KafkaTopics(kafka.servers, "all")
    made.send(canal("INSERT", [{"id": "3"}], id=5, table="u"))
    (report,) = made.run(formats=FORMAT)
    assert report.waiting == {}
    found = {(one.headers[BATCH], said(one)) for one in consumed(kafka, "all", schemas)}
    assert {(b"0", ("c", 1, None, 1)), (b"1", ("c", 3, None, 3))} < found
    made.out = KafkaTopics(kafka.servers, "other")
    with pytest.raises(
        FileError, match=r"a pipeline into the topics other of the Kafka cluster .*that of one into the topics all"
    ):
        made.run(formats=FORMAT)


def test_a_cluster_that_is_gone_is_an_error_in_bounded_time(made: Job):
    """In a check and in a run; no password is in it."""
    login = f'org.apache.kafka.common.security.plain.PlainLoginModule required username="me" password="{PASSWORD}";'
    options = {
        "kafka.security.protocol": "SASL_PLAINTEXT",
        "kafka.sasl.mechanism": "PLAIN",
        "kafka.sasl.jaas.config": login,
        "kafka.request.timeout.ms": "1000",
        "kafka.default.api.timeout.ms": "1500",
    }
    made.out = KafkaTopics("127.0.0.1:9", options=options)
    made.send(canal("INSERT", [{"id": "1"}], id=1))
    for act in (lambda: made.pipeline().check(made.spark), lambda: made.run(formats=FORMAT)):
        with pytest.raises(JobError, match=r"Kafka at 127\.0\.0\.1:9: Timed out") as gone:
            act()
        assert PASSWORD not in str(gone.value) + repr(made.out)


def test_the_column_of_shards_has_those_of_rows(spark: SparkSession):
    """With a key of its version, and without one."""
    key = '{"type":"record","name":"Key","fields":[{"name":"id","type":"int"}]}'
    table, rows = (
        TableName("d", None, "t"),
        [(1, b"\x02", b"a"), (2, None, b"b"), (1, b"\x04", b"c"), (1, b"\x06", b"d")],
    )
    frame = spark.createDataFrame(rows, "version int, key binary, order binary")
    for strategy in (BLOB, TUPLE):
        found = frame.select(shard_column(strategy, 7, table, {1: key})).collect()
        assert [row[0] for row in found] == [*shards(strategy, 7, table, {1: key}, rows)]


def test_records_for_debeziums_consumers_have_columns_only(made: Job, kafka: Broker):
    """As without Spark: Connect's names, no members of a typed row's own, of values and of keys; a tombstone."""
    made.out = KafkaTopics(kafka.servers, "connect.{name}", partitions=1, is_connect=True)
    made.send(
        canal("INSERT", [{"id": "1", "a": "1"}], id=1),
        canal("INSERT", [{"id": "1", "a": "1", "b": "x"}], id=2),
        canal("DELETE", [{"id": "1", "a": "1", "b": "x"}], id=3),
    )
    made.run(formats=FORMAT)
    schemas = registry.connect(made.registry.url)
    found = consumed(kafka, "connect.d.t", schemas)
    assert [one.value and (one.value["op"], [*(one.value["after"] or one.value["before"])]) for one in found] == [
        ("c", ["id", "a"]),
        ("c", ["id", "a", "b"]),
        ("d", ["id", "a", "b"]),
        None,
    ]
    assert [one.key for one in found] == [{"id": 1}] * 4
    for subject in schemas.subjects():
        assert is_connect(schemas.fetch(subject=subject).schema)
