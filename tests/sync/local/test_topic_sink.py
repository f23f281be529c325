"""Topics that this process writes to a real broker: framed records, their order and partitions, and what Kafka refuses."""

from __future__ import annotations

import base64
import io
import json
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

import fastavro
import pyarrow as pa
import pytest
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource, ResourceType

from cdcavro import registry, to_changes
from cdcavro.change.order import shard
from cdcavro.errors import JobError
from cdcavro.lake.lakes import UNKNOWN_ATTEMPT
from cdcavro.lake.sql_statements import SHARD
from cdcavro.lake.typed_rows import TypedRows
from cdcavro.sync.conversion.outcome_rows import SCHEMA
from cdcavro.sync.local.topic_sink import LocalRejectTopic, LocalTopicSink, LocalTopicWriter
from cdcavro.sync.outputs.reject_places import Rejects
from cdcavro.sync.outputs.sink_settings import Job, KafkaTopics
from cdcavro.sync.outputs.topic_records import BATCH, CAME_WITH, JOB, ORDER, TABLE
from cdcavro.sync.outputs.writer import Publisher, PublishingWriter
from cdcavro.sync.reading import kafka_client
from cdcavro.sync.reading.checkpoint import Checkpoint
from cdcavro.sync.settings import RegistrySettings
from cdcavro.table.tables import Tables
from support.kafka_server import Broker, broker
from support.messages import canal
from support.shard_streams import LAKE, ONE, ROUTES, TWO, FileShards
from support.waiting_rows import waiting

pytestmark = [pytest.mark.jvm, pytest.mark.timeout(600)]
OWN = Job("the job", frozenset())
PASSWORD = "hunter2 behind seven seals"
FIRST = tuple(canal("INSERT", [{"id": str(id), "a": "1"}], id=id) for id in (1, 2, 3, 4))
SECOND = (
    canal("UPDATE", [{"id": "9", "a": "1"}], id=5, old=[{"id": "1"}]),
    canal("INSERT", [{"id": "5", "a": "1", "b": "2"}], id=6),
    canal("DELETE", [{"id": "5", "a": "1", "b": "2"}], id=7),
    canal("INSERT", [{"n": "7"}], id=8, table="log/1", pkNames=None),
    canal("TRUNCATE", [], id=9, isDdl=True, sql="TRUNCATE TABLE t"),
    canal("ERASE", [], id=10, isDdl=True, sql="DROP TABLE t"),
)


class Read(NamedTuple):
    """A record as a consumer reads it, its parts opened by the registry."""

    partition: int
    key: Any
    value: Any
    headers: dict[str, bytes]


class Topics:
    """A writer to topics, with its registry in a folder."""

    def __init__(self, folder: Path, settings: KafkaTopics) -> None:
        registries = RegistrySettings(f"file:{folder}/schemas")
        self.publisher = Publisher(registries, settings.topic)
        self.schemas = registry.connect(registries.url)
        self.maker = TypedRows(Tables())
        self.inner: LocalTopicWriter = LocalTopicSink(settings).writer(OWN, self.publisher)
        self.writer = PublishingWriter(self.inner, self.publisher, lambda rows: rows.column("version").to_pylist())

    def write(self, batch: int, *messages: bytes) -> dict[int, str | None]:
        """Write messages; return the errors by table."""
        return {one.number: one.error for one in self.writer.write(waiting(self.maker, batch, *messages))}

    def read(self, kafka: Broker, topic: str) -> list[Read]:
        """Return the records of a topic, by partition."""
        return [
            Read(one.partition(), *[self._opened(part) for part in (one.key(), one.value())], dict(one.headers()))
            for one in kafka.records(topic)
        ]

    def _opened(self, framed: bytes | None) -> Any:
        if framed is None:
            return None
        writer, payload = self.schemas.open(framed)
        return fastavro.schemaless_reader(io.BytesIO(payload), json.loads(writer.schema.json))


def said(record: Read) -> tuple[Any, ...]:
    """Return the operation of a record, its key, and the ids before and after."""
    if record.value is None:
        return (None, record.key["id"])
    images = [record.value[name] and record.value[name].get("id") for name in ("before", "after")]
    return (record.value["op"], record.key and record.key["id"], *images)


def test_records_are_framed_in_order_and_identified_by_their_headers(kafka: Broker, tmp_path: Path):
    """A new version, a key that moves, deletes with their tombstones, a TRUNCATE; a DROP is no record."""
    topics = Topics(tmp_path, KafkaTopics(kafka.servers, "l1.{name}", partitions=3, shards="blob"))
    assert topics.write(0, *FIRST) == {0: None}
    assert topics.write(1, *SECOND) == {0: None, 1: None}
    found = topics.read(kafka, "l1.d.t")
    assert Counter(map(said, found)) == Counter(
        [("c", id, None, id) for id in (1, 2, 3, 4, 5, 9)]
        + [("d", 1, 1, None), (None, 1), ("d", 5, 5, None), (None, 5), ("t", None, None, None)]
    )
    for one in found:
        assert list(one.headers) == [JOB, TABLE, BATCH, ORDER]
        assert (one.headers[JOB], one.headers[TABLE]) == (b"the job", b"0")
        if one.value is None:
            behind = found[found.index(one) - 1]
            assert (behind.value["op"], behind.headers[ORDER] + b"\0") == ("d", one.headers[ORDER])
    for partition in range(3):
        orders = [(one.headers[BATCH], one.headers[ORDER]) for one in found if one.partition == partition]
        assert orders == sorted(orders)
    assert len({one.partition for one in found}) > 1
    assert [(one.key, one.value["after"]["n"]) for one in topics.read(kafka, "l1.d.log_x2f_1")] == [(None, 7)]


def test_records_have_the_headers_of_those_that_they_come_from_as_one(kafka: Broker, tmp_path: Path):
    """As JSON, tombstones too; a record that came with none has no such header."""
    topics = Topics(tmp_path, KafkaTopics(kafka.servers, "lh", partitions=1, has_headers=True))
    ((table, name, (part,)),) = waiting(topics.maker, 0, *FIRST[:2], canal("DELETE", [{"id": "2", "a": "1"}], id=5))
    texts = pa.array(['[{"key":"é","value":"x"}]', None, "[]"], pa.string())
    rows = part.rows.set_column(part.rows.schema.get_field_index("headers"), "headers", texts)
    assert [one.error for one in topics.writer.write([(table, name, [part._replace(kept=rows)])])] == [None]
    found = topics.read(kafka, "lh")
    assert [one.headers.get(CAME_WITH) for one in found] == [texts[0].as_py().encode(), None, b"[]", b"[]"]
    assert [list(one.headers) for one in found[:2]] == [
        [JOB, TABLE, BATCH, CAME_WITH, ORDER],
        [JOB, TABLE, BATCH, ORDER],
    ]


def test_a_topic_for_all_that_is_there_and_without_what_is_not_wanted(kafka: Broker, tmp_path: Path):
    """Rows of batches that waited are sorted with the others; the topic has as many partitions as it has."""
    kafka.create("l2", 2)
    settings = KafkaTopics(kafka.servers, "l2", tombstones=False, truncates=False, partitions=7)
    topics = Topics(tmp_path, settings)
    early, late = waiting(topics.maker, 0, *FIRST, *SECOND[3:5]), waiting(topics.maker, 1, SECOND[2])
    (own,) = (one for one in early if one[0].number == 0)
    others = [one for one in early if one is not own]
    # The rows of the older batch come second, and go first.
    written = topics.writer.write([(*own[:2], [*late[0][2], *own[2]]), *others])
    assert [one.error for one in written] == [None, None]
    records = topics.read(kafka, "l2")
    assert {one.partition for one in records if one.key is not None} == {0, 1}
    keyed = [one.headers[ORDER] for one in records if one.key is not None and one.partition == 0]
    assert keyed == sorted(keyed)
    found = [said(one) for one in records]
    assert sorted(found, key=repr) == sorted(
        [("d", 5, 5, None), ("c", None, None, None), *[("c", id, None, id) for id in (1, 2, 3, 4)]], key=repr
    )


def test_what_kafka_refuses_waits_and_the_others_are_written(kafka: Broker, tmp_path: Path):
    """By librdkafka or by the broker, for a topic; a version that is not published fails the batch."""
    big = canal("INSERT", [{"id": "1", "a": "x" * 9_000}], id=1, mysqlType={"id": "int", "a": "text"})
    small = canal("INSERT", [{"id": "2"}], id=2, table="u")
    options = {"kafka.max.request.size": "4000"}
    topics = Topics(tmp_path, KafkaTopics(kafka.servers, "l3.{name}", options=options))
    waits = topics.write(0, big, small)
    assert waits[1] is None
    assert str(waits[0]).startswith(f"Kafka at {kafka.servers}: ")
    assert str(waits[0]).endswith("Message size too large")
    assert [said(one) for one in topics.read(kafka, "l3.d.u")] == [("c", 2, None, 2)]
    assert topics.read(kafka, "l3.d.t") == []
    _limit(kafka, "l3.d.t", 5_000)
    topics = Topics(tmp_path / "2", KafkaTopics(kafka.servers, "l3.{name}"))
    waits = topics.write(0, big, small)
    assert (waits[1], "too large" in (waits[0] or "")) == (None, True)
    with pytest.raises(JobError, match="no schema is published of version 1"):
        LocalTopicSink(topics.inner.settings).writer(OWN, Publisher(RegistrySettings(f"file:{tmp_path}/3"))).write(
            waiting(TypedRows(Tables()), 0, small)
        )
    longest = Topics(tmp_path / "4", KafkaTopics(kafka.servers, "l3" + "." * 246 + "{name}"))
    assert "is longer than 249 characters" in str(longest.write(0, small)[0])


def test_many_rows_go_to_a_topic_that_takes_few_bytes_at_once(kafka: Broker, tmp_path: Path):
    """Where Java's client halves what is too large, librdkafka would refuse it."""
    kafka.create("l4")
    _limit(kafka, "l4", 2_000)
    topics = Topics(tmp_path, KafkaTopics(kafka.servers, "l4", options={"kafka.buffer.memory": "65536"}))
    assert topics.write(0, *[canal("INSERT", [{"id": str(id)}], id=id) for id in range(1, 3_001)]) == {0: None}
    assert [said(one)[1] for one in topics.read(kafka, "l4")] == list(range(1, 3_001))


def _limit(kafka: Broker, topic: str, size: int) -> None:
    entry = ConfigEntry("max.message.bytes", str(size), incremental_operation=AlterConfigOpType.SET)
    resource: Any = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=[entry])
    client = AdminClient({"bootstrap.servers": kafka.servers})
    client.incremental_alter_configs([resource])[resource].result(30)


def test_keys_go_to_shards_by_the_rule_of_the_change(kafka: Broker, tmp_path: Path):
    """The rules of DataHub, as on Spark."""
    topics = Topics(tmp_path, KafkaTopics(kafka.servers, "l5", partitions=5, shards="tuple"))
    topics.write(0, *FIRST)
    changes = [change for message in FIRST for change in to_changes(message, "canal")]
    wanted = {change.after["id"]: shard(change, 5) for change in changes if change.after}
    assert {(one.key["id"]): one.partition for one in topics.read(kafka, "l5")} == wanted


@pytest.mark.parametrize("is_connect", [False, True])
def test_shards_share_a_topic_in_which_keys_say_whose_they_are(
    kafka: Broker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_connect: bool
):
    """Under one schema of rows and one of keys; a batch that is cut off is written again with the same bytes."""
    topic = f"l8.{is_connect}."
    made = FileShards(tmp_path)
    made.job.more = {
        "kafka": {"servers": kafka.servers, "topic": f"{topic}{{name}}", "partitions": 1, "connect": is_connect},
        "registry": {"url": f"file:{tmp_path}/schemas"},
        "route": ROUTES,
    }
    made.run(made.row(ONE, id="1", a="1"), made.row(TWO, id="1", a="2"), made.row(TWO, id="2", a="3"))
    made.types = {"b": "bigint"}
    sql = "ALTER TABLE orders CHANGE a b bigint, ADD c int"
    lagging = [made.row(TWO, "UPDATE", id="1", a="4"), made.row(TWO, "DELETE", id="2", a="3")]
    made.job.send(made.sql(ONE, sql), made.row(ONE, id="2", b=str(1 << 40), c="5"), *lagging)
    with monkeypatch.context() as patch:
        patch.setattr(Checkpoint, "commit", lambda *_: _cut_off())
        with pytest.raises(JobError, match="cut off"):
            made.run()
    made.run()
    said = made.run(made.sql(TWO, sql), made.row(TWO, id="3", b="6", c="7"), made.sql(ONE, "TRUNCATE TABLE orders"))
    assert not [one for one in said if "subject" in one]
    schemas, found = registry.connect(f"file:{tmp_path}/schemas"), dict[bytes, Any]()
    assert {*schemas.subjects()} == {f"{topic}{LAKE}-key", f"{topic}{LAKE}-value"}
    for one in kafka.records(f"{topic}{LAKE}"):
        identity = json.dumps([(name, value.hex()) for name, value in one.headers()]).encode()
        parts = one.key(), one.value()
        assert found.setdefault(identity, parts) == parts
    assert len(kafka.records(f"{topic}{LAKE}")) == len(found) + 4
    opened = [tuple(None if part is None else _opened(schemas, part) for part in parts) for parts in found.values()]
    keys = [key and (key[SHARD], key["id"]) for key, _ in opened]
    rows = [value and [value[image] and _stated(value[image]) for image in ("before", "after")] for _, value in opened]
    assert sorted(zip(keys, rows, strict=True), key=repr) == sorted(
        [
            ((ONE, 1), [None, {SHARD: ONE, "id": 1, "a": 1}]),
            ((TWO, 1), [None, {SHARD: TWO, "id": 1, "a": 2}]),
            ((TWO, 2), [None, {SHARD: TWO, "id": 2, "a": 3}]),
            ((ONE, 2), [None, {SHARD: ONE, "id": 2, "b": 1 << 40, "c": 5}]),
            ((TWO, 1), [None, {SHARD: TWO, "id": 1, "b": 4, "c": None}]),
            ((TWO, 2), [{SHARD: TWO, "id": 2, "b": 3, "c": None}, None]),
            ((TWO, 2), None),
            ((TWO, 3), [None, {SHARD: TWO, "id": 3, "b": 6, "c": 7}]),
            (None, [None, None]),
        ],
        key=repr,
    )


def _cut_off() -> None:
    raise OSError("cut off")


def _opened(schemas: registry.Registry, framed: bytes) -> Any:
    writer, payload = schemas.open(framed)
    return fastavro.schemaless_reader(io.BytesIO(payload), json.loads(writer.schema.json))


def _stated(row: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in row.items() if name not in ("unparsed", "absent")}


def test_what_identifies_topics_is_the_cluster(kafka: Broker):
    """A check asks for no more."""
    cluster = AdminClient({"bootstrap.servers": kafka.servers}).list_topics(timeout=30).cluster_id
    sink = LocalTopicSink(KafkaTopics(kafka.servers, "a.{name}"))
    sink.check()
    assert sink.identity() == f"the topics a.{{name}} of the Kafka cluster {cluster}"
    with pytest.raises(JobError, match="need a registry"):
        sink.writer(OWN, None)


def test_a_cluster_that_is_gone_is_an_error_in_bounded_time(capfd: pytest.CaptureFixture[str]):
    """No password is in it, and librdkafka says nothing on its own."""
    login = f'org.apache.kafka.common.security.plain.PlainLoginModule required username="me" password="{PASSWORD}";'
    options = {
        "kafka.security.protocol": "SASL_PLAINTEXT",
        "kafka.sasl.mechanism": "PLAIN",
        "kafka.sasl.jaas.config": login,
    }
    sink = LocalTopicSink(KafkaTopics("127.0.0.1:9", options=options))
    for act in (sink.check, sink.identity):
        with pytest.raises(JobError, match=r"Kafka at 127\.0\.0\.1:9: .*Connection refused") as gone:
            act()
        assert PASSWORD not in str(gone.value)
    wrong = KafkaTopics("127.0.0.1:9", options={"kafka.acks": PASSWORD, "kafka.ssl.key.password": PASSWORD})
    with pytest.raises(JobError, match=r"Kafka at 127\.0\.0\.1:9: Invalid value") as refused:
        kafka_client.KafkaCluster(wrong).producer(1000, kafka_client.deque())
    assert PASSWORD not in str(refused.value)
    with pytest.raises(JobError, match=r"partitioner\.class names a class of Java"):
        LocalTopicSink(KafkaTopics("127.0.0.1:9", options={"kafka.partitioner.class": "a.B"})).check()
    assert capfd.readouterr() == ("", "")


def test_a_broker_that_dies_ends_a_write_in_bounded_time_and_the_next_one_goes_on(
    tmp_path: Path, tmp_path_factory: pytest.TempPathFactory, capfd: pytest.CaptureFixture[str]
):
    """The connection is dropped, and what was not written."""
    with broker(tmp_path_factory.mktemp("dying")) as dying:
        options = {"kafka.delivery.timeout.ms": "3000"}
        topics = Topics(tmp_path, KafkaTopics(dying.servers, "l6", options=options))
        assert topics.write(0, *FIRST) == {0: None}
        dying.stop()
        capfd.readouterr()
        for batch in (1, 2):
            with pytest.raises(JobError, match=f"Kafka at {dying.servers}: .*"):
                topics.write(batch, *SECOND[:2])
        assert capfd.readouterr() == ("", "")


def _rejects(*rows: dict[str, Any]) -> Rejects:
    names = dict.fromkeys(SCHEMA.names) | {"what": 1, "reason": "none", "topic": "in", "partition": 0}
    table = pa.Table.from_pylist([{**names, "offset": i, **row} for i, row in enumerate(rows)], schema=SCHEMA)
    return Rejects(table, 7, datetime(2024, 1, 2, tzinfo=UTC), UNKNOWN_ATTEMPT)


def test_rejects_are_lines_of_json_and_short_if_they_are_too_large(kafka: Broker):
    """The key of a message is that of its reject; headers say whose it is."""
    topic = LocalRejectTopic(KafkaTopics(kafka.servers, "l7"), "the job")
    assert topic.name == "the topic l7"
    topic.write(_rejects({"raw": b"\xff", "record_key": b"k"}, {"raw": b"x" * 790_000}, {"raw": b"x" * 770_000}, {}))
    found = kafka.records("l7")
    lines = [json.loads(one.value()) for one in found]
    assert [one.key() for one in found] == [b"k", None, None, None]
    assert [one["raw"] and len(base64.b64decode(one["raw"])) for one in lines] == [1, None, 770_000, None]
    assert [(one["offset"], one["time"]) for one in lines] == [(i, "2024-01-02T00:00:00+00:00") for i in range(4)]
    assert {tuple(one.headers()) for one in found} == {((JOB, b"the job"), (BATCH, b"7"))}
    _limit(kafka, "l7", 100)
    with pytest.raises(JobError, match="too large"):
        topic.write(_rejects({"raw": b"\xff" * 200}))
    _limit(kafka, "l7", 10_000)
    topic.write(_rejects({"raw": b"\xff" * 200}))
    assert len(kafka.records("l7")) == 5
