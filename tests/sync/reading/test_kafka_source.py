"""Kafka without Java's client: offsets, messages and errors of a real broker."""

from __future__ import annotations

import ctypes
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, cast

import confluent_kafka
import pyarrow as pa
import pytest
from confluent_kafka import Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from cdcavro.errors import JobError
from cdcavro.files.lines import KEPT
from cdcavro.sync.reading import kafka_source, message_columns
from cdcavro.sync.reading.kafka_source import KafkaLane, KafkaReader
from cdcavro.sync.reading.message_columns import SCHEMA, KafkaMessages
from support.kafka_server import NOWHERE, Broker, Record, broker

JAAS = "kafka.sasl.jaas.config"


def rows_of(source: KafkaReader, start: dict | None = None, end: dict | None = None) -> list[dict]:
    """Return the messages between some offsets, by default all."""
    lanes = source.lanes(start or source.first_offsets(), end or source.latest())
    found = []
    for lane in lanes:
        for batch in source.batches(lane):
            assert batch.schema == SCHEMA
            found += batch.to_pylist()
    return found


def values(rows: list[dict]) -> list[bytes | None]:
    """Return what messages hold."""
    return [row["raw"] for row in rows]


def delete(kafka: Broker, before: TopicPartition) -> None:
    """Delete the messages before an offset, as the end of their retention does."""
    admin = AdminClient({"bootstrap.servers": kafka.servers})
    for future in admin.delete_records([before]).values():
        future.result(60)


def test_messages_with_their_places(kafka: Broker):
    """Messages with their places."""
    kafka.create("places", 2)
    kafka.send([Record("places", i % 2, b"k" if i else None, None if i == 2 else b"v%d" % i) for i in range(4)])
    source = KafkaReader(kafka.servers, ("places",))
    none = {"topic": "places", "file": None, "size": None, "line": None, "clock": None}
    expected = [
        {"raw": b"v0", "length": 2, "key": None, "partition": 0, "offset": 0},
        {"raw": None, "length": None, "key": b"k", "partition": 0, "offset": 1},
        {"raw": b"v1", "length": 2, "key": b"k", "partition": 1, "offset": 0},
        {"raw": b"v3", "length": 2, "key": b"k", "partition": 1, "offset": 1},
    ]
    assert rows_of(source) == [{**none, **row} for row in expected]
    # A batch may be read again.
    assert values(rows_of(source)) == [b"v0", None, b"v1", b"v3"]
    source.close()


def test_a_batch_has_what_is_between_its_offsets(kafka: Broker):
    """A batch has what is between its offsets."""
    kafka.create("between")
    kafka.send([Record("between", 0, None, b"%d" % i) for i in range(50)])
    source = KafkaReader(kafka.servers, ("between",))
    for start, end in ((0, 1), (7, 9), (49, 50), (0, 50), (10, 10)):
        found = rows_of(source, {"between": {"0": start}}, {"between": {"0": end}})
        assert values(found) == [b"%d" % i for i in range(start, end)]
    source.close()


def test_first_offsets(kafka: Broker):
    """First offsets."""
    kafka.create("first", 2)
    kafka.send([Record("first", 0, None, b"%d" % i) for i in range(5)])

    def first(text: str) -> dict:
        return KafkaReader(kafka.servers, ("first",), options={"startingOffsets": text}).first_offsets()

    assert first("earliest") == {"first": {"0": 0, "1": 0}}
    assert first("latest") == {"first": {"0": 5, "1": 0}}
    assert first('{"first":{"0":-1,"1":-2}}') == {"first": {"0": 5, "1": 0}}
    assert first('{"first":{"0":3,"1":0}}') == {"first": {"0": 3, "1": 0}}
    with pytest.raises(JobError, match="topic first partition 1"):
        first('{"first":{"0":3}}')
    with pytest.raises(JobError, match="startingOffsets must be"):
        first("yesterday")


def test_topics_by_a_pattern(kafka: Broker):
    """Topics by a pattern."""
    for name in ("pattern.a", "pattern.b", "pattern"):
        kafka.create(name)
    assert {*KafkaReader(kafka.servers, pattern=r"pattern\..").latest()} == {"pattern.a", "pattern.b"}
    assert KafkaReader(kafka.servers, pattern="nothing.*").latest() == {}
    assert not [name for name in KafkaReader(kafka.servers, pattern=".*").latest() if name.startswith("__")]


def test_several_topics_in_one_text(kafka: Broker):
    """Several topics in one text."""
    for name in ("several.a", "several.b"):
        kafka.create(name)
    assert {*KafkaReader(kafka.servers, ("several.a,several.b",)).latest()} == {"several.a", "several.b"}


@pytest.mark.parametrize(
    ("most", "ends"), [(None, [100, 10, 0]), (11, [10, 1, 0]), (3, [2, 1, 0]), (1, [1, 1, 0]), (1_000, [100, 10, 0])]
)
def test_partitions_share_what_a_batch_has_at_most(kafka: Broker, most: int | None, ends: list[int]):
    """Partitions share what a batch has at most."""
    if "shares" not in kafka.topics():
        kafka.create("shares", 3)
        kafka.send([Record("shares", 0, None, b"x")] * 100 + [Record("shares", 1, None, b"x")] * 10)
    source = KafkaReader(kafka.servers, ("shares",), most=most)
    latest = source.latest()
    end = source.plan(source.first_offsets(), latest)
    assert [end["shares"][number] for number in "012"] == ends
    assert source.left(end, latest) == 110 - sum(ends)


def test_marks_of_transactions_are_passed_over(kafka: Broker):
    """Marks of transactions are passed over."""
    kafka.create("transactions")
    producer = Producer({"bootstrap.servers": kafka.servers, "transactional.id": "t"})
    producer.init_transactions(30)
    for i, ends in enumerate((producer.commit_transaction, producer.abort_transaction, producer.commit_transaction)):
        producer.begin_transaction()
        producer.produce("transactions", b"%d" % i)
        # Else one that is given up is never sent.
        producer.flush(30)
        ends(30)
    committed = {"kafka.isolation.level": "read_committed"}
    for options, expected in (({}, [b"0", b"1", b"2"]), (committed, [b"0", b"2"])):
        source = KafkaReader(kafka.servers, ("transactions",), options=options)
        assert source.latest() == {"transactions": {"0": 6}}
        assert values(rows_of(source)) == expected
        # A batch may end before a mark, behind one, and have nothing but one.
        for start, end in ((0, 1), (0, 2), (1, 2), (5, 6), (4, 6)):
            found = rows_of(source, {"transactions": {"0": start}}, {"transactions": {"0": end}})
            assert values(found) == [one for one in expected if start <= 2 * int(one) < end]
        source.close()


def test_offsets_that_are_compacted_are_passed_over(kafka: Broker):
    """Offsets that are compacted are passed over."""
    admin = AdminClient({"bootstrap.servers": kafka.servers})
    config = {
        "cleanup.policy": "compact",
        "min.cleanable.dirty.ratio": "0.001",
        "segment.ms": "100",
        "delete.retention.ms": "0",
    }
    admin.create_topics([NewTopic("compacted", 1, 1, config={**config, "max.compaction.lag.ms": "100"})])[
        "compacted"
    ].result(60)
    for i in range(30):
        kafka.send([Record("compacted", 0, b"same", b"%d" % i)])
        time.sleep(0.01)
    source = KafkaReader(kafka.servers, ("compacted",))
    until = time.monotonic() + 60
    while len(found := rows_of(source)) > 20 and time.monotonic() < until:
        time.sleep(1)
        kafka.send([Record("compacted", 0, b"same", b"more")])
    assert len(found) <= 20
    end = source.latest()["compacted"]["0"]
    assert rows_of(source)[-1]["offset"] == end - 1
    # One that ends within a gap.
    gap = min({*range(end)} - {row["offset"] for row in rows_of(source)})
    assert all(
        row["offset"] < gap + 1 for row in rows_of(source, {"compacted": {"0": 0}}, {"compacted": {"0": gap + 1}})
    )
    source.close()


def test_messages_that_are_gone(kafka: Broker):
    """Messages that are gone."""
    kafka.create("gone")
    kafka.send([Record("gone", 0, None, b"%d" % i) for i in range(10)])
    source = KafkaReader(kafka.servers, ("gone",))
    start, end = source.first_offsets(), source.latest()
    delete(kafka, TopicPartition("gone", 0, 4))
    said = "topic gone partition 0 begins at offset 4 and is to be read from offset 0"
    with pytest.raises(JobError, match=said):
        source.lanes(start, end)
    with pytest.raises(JobError, match=said):
        next(source.batches(KafkaLane("gone", 0, 0, 10)))
    assert values(rows_of(source, {"gone": {"0": 4}}, end)) == [b"%d" % i for i in range(4, 10)]


def test_messages_of_new_partitions_and_topics_are_left_to_read_as_others():
    """They begin at 0, and a batch that has them says how many it reads."""
    source = KafkaReader("127.0.0.1:1", pattern="t.*")
    assert source.left({"t": {"0": 3}}, {"t": {"0": 5, "1": 4}, "t.new": {"0": 2}}) == 8


def test_partitions_that_are_not_what_they_were(kafka: Broker):
    """Partitions that are not what they were."""
    kafka.create("changed")
    source = KafkaReader(kafka.servers, ("changed",))
    latest = source.latest()
    with pytest.raises(JobError, match="topic changed partition 0 ends at offset 0 and was read up to offset 9"):
        source.plan({"changed": {"0": 9}}, latest)
    with pytest.raises(JobError, match="topic other partition 3, of which messages may be unread"):
        source.plan({"changed": {"0": 0}, "other": {"3": 1}}, latest)
    kafka.create("changed.new", 2)
    kafka.send([Record("changed.new", 1, None, b"x")])
    new = KafkaReader(kafka.servers, ("changed", "changed.new"))
    end = new.plan(latest, new.latest())
    assert [(row["topic"], row["partition"]) for row in rows_of(new, latest, end)] == [("changed.new", 1)]
    delete(kafka, TopicPartition("changed.new", 1, 1))
    with pytest.raises(JobError, match=r"topic changed.new partition 1 is new and begins at offset 1"):
        new.plan(latest, new.latest())


@pytest.mark.parametrize(
    ("named", "said"),
    [
        ({"topics": ("deleted",)}, r"has no topic deleted[.] Asked for"),
        ({"pattern": "delete.*"}, "does not have any more topic deleted partition 0, of which messages may be unread"),
    ],
)
def test_a_topic_that_was_deleted_before_its_batch_is_read_again(kafka: Broker, named: dict, said: str):
    """It is gone; the cluster answers."""
    kafka.create("deleted")
    kafka.send([Record("deleted", 0, None, b"x")])
    source = KafkaReader(kafka.servers, **named)
    start, end = source.first_offsets(), source.latest()
    admin = AdminClient({"bootstrap.servers": kafka.servers})
    admin.delete_topics(["deleted"])["deleted"].result(60)
    until = time.monotonic() + 30
    while "deleted" in kafka.topics() and time.monotonic() < until:
        time.sleep(0.1)
    for one in (source, KafkaReader(kafka.servers, **named)):
        with pytest.raises(JobError, match=said):
            one.lanes(start, end)
        one.close()


def test_a_topic_that_is_not_there(kafka: Broker):
    """A topic that is not there."""
    kafka.create("there")
    for ask in (KafkaReader.check, KafkaReader.latest, KafkaReader.first_offsets):
        with pytest.raises(JobError, match=r"has no topic missing[.] Asked for were the topics there, missing"):
            ask(KafkaReader(kafka.servers, ("there", "missing")))
    assert "missing" not in kafka.topics()


@pytest.mark.slow
@pytest.mark.timeout(60)
def test_a_broker_that_does_not_answer(capfd):
    """A broker that does not answer is told by each that asks; they wait side by side."""

    def ask(servers: str, question: Callable[[KafkaReader], object]) -> None:
        with pytest.raises(JobError, match=f"Kafka at {servers} does not answer: .*(resolve|refused)"):
            question(KafkaReader(servers, ("t",)))

    questions = (KafkaReader.check, lambda one: one.lanes({"t": {"0": 0}}, {"t": {"0": 1}}))
    with ThreadPoolExecutor() as threads:
        asked = [
            threads.submit(ask, servers, question)
            for servers in ("no.such.host.invalid:9092", "127.0.0.1:1")
            for question in questions
        ]
    for one in asked:
        one.result()
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("ask", [KafkaReader.latest, KafkaReader.earliest, KafkaReader.first_offsets])
def test_a_leader_that_is_not_reached_has_no_offsets(kafka: Broker, ask: Callable[[KafkaReader], object], monkeypatch):
    """Another broker says which one has the partition: what librdkafka then gives as its offset is none."""
    monkeypatch.setattr(kafka_source, "PATIENCE", 1.0)
    if "led" not in kafka.topics():
        kafka.create("led")
    source = KafkaReader(kafka.lost, ("led",))
    source.check()
    with pytest.raises(JobError, match=f"^Kafka at {kafka.lost} does not answer: .*{NOWHERE}"):
        ask(source)


@pytest.mark.jvm
def test_a_broker_that_stops_while_it_is_read(tmp_path: Path, monkeypatch, capfd):
    """A broker that stops while it is read."""
    monkeypatch.setattr(kafka_source, "_FIRST", 1)
    monkeypatch.setattr(kafka_source, "_TAKEN_BYTES", 1)
    monkeypatch.setattr(message_columns, "_BYTES", 1)
    with broker(tmp_path) as made:
        made.create("stops")
        made.send([Record("stops", 0, None, b"x" * 900_000) for _ in range(150)])
        source = KafkaReader(made.servers, ("stops",))
        (lane,) = source.lanes(source.first_offsets(), source.latest())
        batches = source.batches(lane)
        next(batches)
        made.stop()
        capfd.readouterr()
        with pytest.raises(JobError, match=f"Kafka at {made.servers} does not answer"):
            deque(batches, maxlen=0)
    assert capfd.readouterr() == ("", "")


def test_errors_have_no_secrets(kafka: Broker, capfd):
    """Errors have no secrets."""
    secret = "hunter2"
    login = f'org.apache.kafka.common.security.plain.PlainLoginModule required username="me" password="{secret}";'
    sasl = {"kafka.security.protocol": "SASL_PLAINTEXT", "kafka.sasl.mechanism": "PLAIN", JAAS: login}
    for options in (
        sasl,
        {"kafka.ssl.key.password": secret, "kafka.security.protocol": "SSL"},
        {"kafka.ssl.keystore.key": secret, "kafka.security.protocol": "SSL"},
    ):
        source = KafkaReader(kafka.servers, ("t",), options=options)
        with pytest.raises(JobError, match=f"Kafka at {kafka.servers}") as raised:
            source.check()
        assert secret not in str(raised.value)
        assert secret not in repr(source)
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("option", ["kafka.no.such.option", "kafka.fetch.min.bytes"])
def test_options_that_are_not_known(kafka: Broker, option: str):
    """Options that are not known."""
    with pytest.raises(JobError, match="cannot be read with these options"):
        KafkaReader(kafka.servers, ("t",), options={option: "many"}).check()


def test_a_message_that_is_too_long_has_its_beginning(kafka: Broker, monkeypatch):
    """A message that is too long has its beginning."""
    most = 2 * KEPT
    monkeypatch.setattr(message_columns, "MAX_LENGTH", most)
    kafka.create("long")
    kafka.send([Record("long", 0, None, b"x" * size) for size in (most, most + 1)] + [Record("long", 0, None, None)])
    found = rows_of(KafkaReader(kafka.servers, ("long",)))
    assert [(row["raw"] and len(row["raw"]), row["length"]) for row in found] == [
        (most, most),
        (KEPT, most + 1),
        (None, None),
    ]


def test_large_messages_come_few_at_a_time(kafka: Broker, monkeypatch):
    """Large messages come few at a time."""
    monkeypatch.setattr(kafka_source, "_TAKEN_BYTES", 4 << 20)
    monkeypatch.setattr(message_columns, "_BYTES", 4 << 20)
    monkeypatch.setattr(kafka_source, "_FIRST", 8)
    kafka.create("large")
    kafka.send([Record("large", 0, None, b"x" * 900_000) for _ in range(60)])
    source = KafkaReader(kafka.servers, ("large",))
    (lane,) = source.lanes(source.first_offsets(), source.latest())
    sizes = [batch.num_rows for batch in source.batches(lane)]
    assert sum(sizes) == 60
    assert max(sizes[1:]) <= 8


def test_many_messages_are_read_in_their_order(kafka: Broker, monkeypatch):
    """Many messages are read in their order, none twice: few of the client's objects at a time, and in large batches."""
    taken, own = [], kafka_source._Reader._taken
    monkeypatch.setattr(kafka_source._Reader, "_taken", lambda self, count: (taken.append(count), own(self, count))[1])
    count = 100_000
    kafka.create("many")
    kafka.send(Record("many", 0, b"key", b"%0600d" % i) for i in range(count))
    source = KafkaReader(kafka.servers, ("many",))
    (lane,) = source.lanes(source.first_offsets(), source.latest())
    last, rows = 0, []
    for batch in source.batches(lane):
        assert batch.column("offset")[0].as_py() == last
        rows.append(batch.num_rows)
        last += batch.num_rows
    assert last == count
    assert max(taken) == 512
    assert len(rows) < len(taken)
    assert json.loads(batch.column("raw")[-1].as_py().lstrip(b"0")) == count - 1


@pytest.fixture
def mocked() -> Producer:
    """Return a producer with a broker in it, that of librdkafka's own tests."""
    return Producer({"test.mock.num.brokers": 1, "bootstrap.servers": "none", "log_level": 0})


def servers_of(producer: Producer) -> str:
    """Return the address of the broker in a producer."""
    return str(next(iter(producer.list_topics(timeout=60).brokers.values()))).split("/")[0]


def headers_of(producer: Producer, **options: Any) -> list[dict]:
    """Return the messages of the topic `t`, from all its partitions."""
    source = KafkaReader(servers_of(producer), ("t",), **options)
    batches = [one for lane in source.lanes(source.first_offsets(), source.latest()) for one in source.batches(lane)]
    source.close()
    return pa.Table.from_batches(batches).to_pylist()


def test_headers_are_read_where_they_are_wanted(mocked: Producer):
    """As they stand: a name may come twice, a value may be null or empty, and a record may have none."""
    own: list[tuple[str, bytes | None]] = [("é", b"\xff"), ("n", None), ("n", b"")]
    mocked.produce("t", b"1", headers=own)
    mocked.produce("t", b"2")
    mocked.flush(60)
    wanted = {b"1": [{"key": key, "value": value} for key, value in own], b"2": None}
    assert {one["raw"]: one["headers"] for one in headers_of(mocked, has_headers=True)} == wanted
    assert not any("headers" in one for one in headers_of(mocked))


def test_headers_that_are_read_with_messages_are_in_a_column_of_their_own(mocked: Producer):
    """Only those that are named, beside all or without them."""
    own: list[tuple[str, bytes | None]] = [("é", b"\xff"), ("n", None), ("n", b"")]
    mocked.produce("t", b"1", headers=own)
    mocked.produce("t", b"2", headers=own[:1])
    mocked.flush(60)
    for has_headers in (True, False):
        found = {one["raw"]: one for one in headers_of(mocked, has_headers=has_headers, stated=frozenset("n"))}
        assert {raw: one["stated"] for raw, one in found.items()} == {
            b"1": [{"key": key, "value": value} for key, value in own[1:]],
            b"2": None,
        }
        assert ["headers" in one for one in found.values()] == [has_headers] * 2


class _Headed:
    """A message with a long header, as the client has it."""

    def key(self) -> None:
        """Return its key."""

    def value(self) -> bytes:
        """Return its value."""
        return b"{}"

    def offset(self) -> int:
        """Return its offset."""
        return 0

    def headers(self) -> list[tuple[str, bytes]]:
        """Return its headers."""
        return [("n", bytes(1 << 20))]


@pytest.mark.parametrize("options", [{"has_headers": True}, {"stated": {"n"}}])
def test_headers_count_as_bytes_of_a_batch(options: dict[str, Any]):
    """So that the memory that a batch takes has a bound, whatever producers put into headers."""
    held, own = KafkaMessages(**options), cast("Any", _Headed())
    assert held.add([own], {"topic": "t", "partition": 0}) > 1 << 20
    assert not held.is_full
    held.add([own] * 31, {"topic": "t", "partition": 0})
    assert held.is_full


def produce_with_name(servers: str, name: bytes) -> None:
    """Send a message with a header whose name is any bytes, which librdkafka takes and its client in Python does not."""
    folder = Path(confluent_kafka.__file__).parent.parent / "confluent_kafka.libs"
    kafka = ctypes.CDLL(str(next(folder.glob("librdkafka-*"))))
    kafka.rd_kafka_conf_new.restype = kafka.rd_kafka_new.restype = ctypes.c_void_p
    kafka.rd_kafka_headers_new.restype = ctypes.c_void_p
    error = ctypes.create_string_buffer(512)
    conf = ctypes.c_void_p(kafka.rd_kafka_conf_new())
    for setting, value in ((b"bootstrap.servers", servers.encode()), (b"log_level", b"0")):
        assert kafka.rd_kafka_conf_set(conf, setting, value, error, ctypes.c_size_t(512)) == 0
    client = ctypes.c_void_p(kafka.rd_kafka_new(0, conf, error, ctypes.c_size_t(512)))
    headers = ctypes.c_void_p(kafka.rd_kafka_headers_new(ctypes.c_size_t(1)))
    kafka.rd_kafka_header_add(headers, name, ctypes.c_ssize_t(-1), b"v", ctypes.c_ssize_t(1))
    topic, value = (1, ctypes.c_char_p(b"t")), (4, ctypes.c_char_p(b"bad"), ctypes.c_size_t(3))
    parts: Sequence = (*topic, 3, 0, 7, 2, *value, 10, headers, 0)
    typed = [ctypes.c_int(one) if isinstance(one, int) else one for one in parts]
    assert kafka.rd_kafka_producev(client, *typed) == 0
    assert kafka.rd_kafka_flush(client, 60_000) == 0
    kafka.rd_kafka_destroy(client)


def test_a_header_whose_name_is_no_text_stops_nothing(mocked: Producer):
    """Anybody may send one: the message has no headers then, and none that says what its schema is."""
    produce_with_name(servers_of(mocked), b"k\xff")
    assert [(one["raw"], one["headers"]) for one in headers_of(mocked, has_headers=True)] == [(b"bad", None)]
    assert [one["raw"] for one in headers_of(mocked, has_id_headers=True)] == [b"\x04bad"]
    (told,) = headers_of(mocked, stated=frozenset("n"))
    assert told["stated"] == [{"key": "\0untold", "value": None}]


@pytest.mark.slow
@pytest.mark.timeout(60)
def test_many_small_topics_are_read_without_waiting(mocked: Producer):
    """By a connection that knows none of them, as each thread but one has; each lane more than once."""
    names = [f"t{i}" for i in range(12)]
    for name in names:
        mocked.produce(name, name.encode(), partition=0)
        mocked.produce(name, b"last", partition=0)
    assert mocked.flush(30) == 0
    source = KafkaReader(servers_of(mocked), tuple(names))
    lanes = source.lanes(source.first_offsets(), source.latest())
    held = source.batches(lanes[0])
    assert next(held).num_rows
    began = time.monotonic()
    found = {lane.topic: values(pa.Table.from_batches(source.batches(lane)).to_pylist()) for lane in lanes}
    # With a wait of a quarter of a second for each it were three seconds, and twelve where it looks for each.
    assert time.monotonic() - began < 2.5
    assert found == {name: [name.encode(), b"last"] for name in names}
    held.close()
    source.close()


_MOCKED = """
import time
from confluent_kafka import Producer
made = Producer({"test.mock.num.brokers": 1, "bootstrap.servers": "none", "log_level": 0})
made.produce("t", b"1", partition=0)
made.flush(60)
print(str(next(iter(made.list_topics(timeout=60).brokers.values()))).split("/")[0], flush=True)
time.sleep(300)
"""


@pytest.fixture
def stalled() -> Iterator[tuple[str, Callable[[], None]]]:
    """Return the address of a broker that stalls, and what lets it go on after some seconds."""
    process = subprocess.Popen([sys.executable, "-c", _MOCKED], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    servers = process.stdout.readline().strip()
    timer = threading.Timer(3, lambda: process.send_signal(signal.SIGCONT))
    process.send_signal(signal.SIGSTOP)
    # Its threads stop one by one; until the last has, the broker may answer.
    os.waitid(os.P_PID, process.pid, os.WSTOPPED)
    yield servers, timer.start
    timer.cancel()
    process.kill()
    process.communicate()


@pytest.mark.slow
@pytest.mark.timeout(60)
@pytest.mark.parametrize("ask", [KafkaReader.check, lambda one: one.lanes({"t": {"0": 0}}, {"t": {"0": 1}})])
def test_a_running_stream_waits_for_a_broker_that_stalls(
    stalled: tuple[str, Callable[[], None]], monkeypatch, ask: Callable[[KafkaReader], object]
):
    """Until it is to stop; whoever is not told to wait does not."""
    monkeypatch.setattr(kafka_source, "PATIENCE", 1.0)
    servers, go_on = stalled
    stop = threading.Event()
    stop.set()
    for is_told in (False, True):
        source = KafkaReader(servers, ("t",))
        if is_told:
            source.wait_long(stop)
        with pytest.raises(JobError, match="does not answer"):
            ask(source)
    stop.clear()
    go_on()
    ask(source)
    source.close()
