"""Topics that were deleted and created again, and topics that lost messages, at a real broker of Kafka's."""

from __future__ import annotations

import json
import re
import zlib
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC
from pathlib import Path
from typing import Any, cast

import pytest
from click.testing import CliRunner
from confluent_kafka import TopicPartition
from confluent_kafka.admin import AdminClient, NewPartitions
from obstore.store import MemoryStore

from cdcavro.change.order import LaneTime
from cdcavro.cli import main
from cdcavro.errors import FileError, JobError
from cdcavro.lake import job_state
from cdcavro.sync.local.local_runner import reader_of
from cdcavro.sync.native.native_tables import NativeTables
from cdcavro.sync.pipeline import BATCHES, CHECKPOINT, lock_state
from cdcavro.sync.reading import checkpoint, stored_state, topic_ids
from cdcavro.sync.reading.kafka_source import KafkaReader
from cdcavro.sync.reading.topic_ids import TOPICS, KnownTopic, TopicIds, accept_loss, go_on, read_topics
from cdcavro.sync.sources import Kafka
from cdcavro.sync.status import read_status
from cdcavro.table import TableName
from cdcavro.table.tables import Tables
from support.jobs import LocalJob, local_job
from support.kafka_server import Broker, Record
from support.messages import canal
from support.shop_streams import shuffled

pytestmark = pytest.mark.timeout(300)
ANEW = "was deleted and created again"


class Topic:
    """A topic with one partition, and a pipeline that reads it into a current state and a changelog."""

    def __init__(self, kafka: Broker, job: Callable[..., LocalJob], name: str, **source: Any) -> None:
        self.kafka, self.name = kafka, name
        self.job = job(source=Kafka(kafka.servers, (name,), **source), is_changelog=True)
        kafka.create(name)

    def send(self, *ids: int, es: int = 1_000, a: int = 1, partition: int = 0) -> None:
        """Send rows that were inserted or updated; all in one second by default."""
        rows = [canal("INSERT", [{"id": str(id), "a": str(a)}], id=id, es=es) for id in ids]
        self.kafka.send([Record(self.name, partition, None, row) for row in rows])

    def create_again(self, partitions: int = 1) -> None:
        """Delete it, and create another one of its name."""
        self.kafka.delete(self.name)
        self.kafka.create(self.name, partitions)

    def expire(self, before: int) -> None:
        """Remove the messages before an offset, as the end of their retention does."""
        admin = AdminClient({"bootstrap.servers": self.kafka.servers, "log_level": 0})
        admin.delete_records([TopicPartition(self.name, 0, before)])[TopicPartition(self.name, 0)].result(60)

    def run(self) -> list[int]:
        """Run until nothing is left; return how many messages each batch read."""
        return [report.counts["read"] for report in self.job.run()]

    def refuse(self, said: str) -> None:
        """Check that a run ends with an error, and writes nothing."""
        before = self.rows
        with pytest.raises(JobError, match=said):
            self.job.run()
        assert self.rows == before

    def accept(self) -> list[str]:
        """Go on without what is lost."""
        pipeline = self.job.pipeline()
        reader = reader_of(pipeline.source, pipeline.places)
        assert isinstance(reader, KafkaReader)
        try:
            return accept_loss(self.state, reader, [self.name])
        finally:
            reader.close()

    @property
    def state(self) -> Path:
        """The folder of the state."""
        return self.job.folder / "state"

    @property
    def rows(self) -> list[tuple[Any, ...]]:
        """The current rows, and how many changes there are."""
        return [*self.job.rows("d.t", "id", "a"), (len(self.job.rows("d.t", "id", suffix="changes")),)]

    @property
    def id(self) -> str | None:
        """The id that is remembered."""
        return read_topics(self.state).get(self.name, KnownTopic()).id

    @property
    def positions(self) -> list[tuple[int | None, int]]:
        """How far the topic is read, as the status says it."""
        return [(one.partition, one.position) for one in read_status(self.state).lanes]


@pytest.fixture
def topic(kafka: Broker, job: Callable[..., LocalJob], request: pytest.FixtureRequest) -> Topic:
    """A topic of the test's own."""
    return Topic(kafka, job, f"ids.{zlib.crc32(request.node.name.encode())}")


@pytest.mark.jvm
@pytest.mark.parametrize("ids", [(3,), (3, 2, 1), (7, 6, 5, 4, 3, 2, 1)])
def test_a_topic_that_was_created_again_is_told_and_then_read_from_its_beginning(topic: Topic, ids: tuple[int, ...]):
    """Whether it has fewer messages than were read, as many, or more; rows come behind those of the same second."""
    topic.send(1, 2, 3, es=2_000)
    assert topic.run() == [3]
    first = topic.id
    topic.create_again()
    topic.send(*ids, a=2, es=2_000)
    topic.refuse(f"the topic {topic.name} {ANEW}: its id is .*, and messages were read of {first},")
    # Once more, with whatever the run has left.
    topic.refuse(ANEW)
    assert topic.id == first
    assert topic.accept() == [
        f"the topic {topic.name} is read from its beginning, as another one than the one that was deleted",
        "tables with changes of it: d.t. Reset those that are loaded again, before they are",
    ]
    assert (topic.positions, topic.id == first) == ([(0, 0)], False)
    assert topic.run() == [len(ids)]
    current = {**dict.fromkeys((1, 2, 3), 1), **dict.fromkeys(ids, 2)}
    assert topic.rows == [*sorted(current.items()), (3 + len(ids),)]
    assert topic.positions == [(0, len(ids))]
    topic.send(9)
    assert topic.run() == [1]


@pytest.mark.jvm
def test_a_topic_is_told_while_a_stream_runs(topic: Topic):
    """It was created again while the stream waits for messages."""
    topic.send(1)

    def idle() -> None:
        topic.create_again()
        topic.send(1, 2, 3, a=2)

    with pytest.raises(JobError, match=ANEW):
        topic.job.start(topic.job.pipeline(), every="0 seconds", idle=idle)
    assert topic.rows == [(1, 1), (1,)]


@pytest.mark.jvm
def test_nothing_is_written_of_a_topic_that_was_created_again_before_its_batch_was_read(topic: Topic):
    """After offsets were asked for, and before messages came; nor by a run that repeats the batch."""
    topic.send(1, 2)
    assert topic.run() == [2]
    topic.send(3, 4)

    def begin(*_: object) -> None:
        topic.create_again()
        topic.send(1, 2, 3, 4, a=2)

    with pytest.raises(JobError, match=ANEW):
        topic.job.start(topic.job.pipeline(), once=True, begin=begin)
    topic.refuse(ANEW)
    assert topic.rows == [(1, 1), (2, 1), (2,)]
    assert [one.position for one in read_status(topic.state).lanes] == [2]
    topic.accept()
    # The batch that was planned has no messages of the old topic any more.
    assert topic.run() == [0, 4]
    assert topic.rows == [(1, 2), (2, 2), (3, 2), (4, 2), (6,)]


@pytest.mark.jvm
def test_a_topic_that_was_created_again_before_its_first_batch_was_written(topic: Topic):
    """The ids of what is read for the first time are compared, too."""
    topic.send(1, 2)

    def begin(*_: object) -> None:
        topic.create_again()
        topic.send(1, 2, 3, 4, a=2)

    with pytest.raises(JobError, match=ANEW):
        topic.job.start(topic.job.pipeline(), once=True, begin=begin)
    assert topic.id is None


@pytest.mark.jvm
def test_a_topic_with_more_partitions_is_the_same_one(topic: Topic):
    """It goes on, with the new partition."""
    topic.send(1)
    assert topic.run() == [1]
    first = topic.id
    admin = AdminClient({"bootstrap.servers": topic.kafka.servers, "log_level": 0})
    admin.create_partitions([NewPartitions(topic.name, 2)])[topic.name].result(60)
    topic.send(2, partition=1)
    topic.send(3)
    assert topic.run() == [2]
    assert (topic.id, topic.positions) == (first, [(0, 2), (1, 1)])


@pytest.mark.jvm
def test_a_state_without_ids_learns_them_with_the_next_batch(topic: Topic):
    """A shorter topic is told by its offsets before that, and then accepted."""
    topic.send(1, 2)
    assert topic.run() == [2]
    (topic.state / TOPICS).unlink()
    topic.send(3)
    assert (topic.run(), topic.id) == ([1], read_topics(topic.state)[topic.name].id)
    assert topic.id is not None
    (topic.state / TOPICS).unlink()
    topic.create_again()
    topic.send(4)
    topic.refuse("ends at offset 1 and was read up to offset 3: it was created again.* accept-loss")
    assert topic.id is None
    topic.accept()
    assert topic.run() == [1]
    assert topic.rows == [(1, 1), (2, 1), (3, 1), (4, 1), (4,)]


@pytest.mark.jvm
def test_messages_that_were_removed_before_they_were_read(topic: Topic):
    """The first that there is comes next; nothing is read twice, and a repetition changes nothing."""
    topic.send(1, 2)
    assert topic.run() == [2]
    topic.send(3, 4, 5, 6)
    topic.expire(4)
    why = "begins at offset 4 and is to be read from offset 2: the messages between are not there any more"
    topic.refuse(f"{why}. To go on without them: cdcavro sync accept-loss {topic.name} --config FILE")
    lost = [f"topic {topic.name} partition 0 is read from offset 4: 2 messages lost"]
    assert topic.accept() == lost
    assert topic.accept() == [f"the topic {topic.name} has lost nothing that was not read"]
    assert topic.positions == [(0, 4)]
    # The batch that was planned is run from there.
    assert topic.run() == [2]
    assert topic.rows == [(1, 1), (2, 1), (5, 1), (6, 1), (4,)]


@pytest.mark.jvm
def test_a_pipeline_may_be_cut_off_while_it_accepts_a_loss(topic: Topic, monkeypatch: pytest.MonkeyPatch):
    """At each file that is written; until the last one is, the pipeline refuses the topic, and then it is accepted."""
    topic.send(1, 2)
    assert topic.run() == [2]
    topic.create_again()
    topic.send(1, 2, 3, a=2)
    topic.refuse(ANEW)
    own, left = job_state.replace_file, 0

    def replace(path: Path, text: str) -> None:
        nonlocal left
        left -= 1
        if left < 0:
            raise KeyboardInterrupt
        own(path, text)

    steps = 0
    with monkeypatch.context() as patch:
        for module in (job_state, checkpoint, topic_ids):
            patch.setattr(module, "replace_file", replace)
        for steps in range(9):
            left = steps
            try:
                topic.accept()
                break
            except KeyboardInterrupt:
                pass
            left = 99
            topic.refuse(ANEW)
    # The state of the batch, where it ends, and the ids.
    assert steps >= 3
    assert topic.run() == [3]
    assert topic.rows == [(1, 2), (2, 2), (3, 2), (5,)]


def cut_off_behind_the_first_table(topic: Topic, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run a batch that is killed when `d.t` is written, and `d.u` is not."""
    own = NativeTables._write

    def write(tables: NativeTables, table: Any, name: TableName, waiting: Any) -> Any:
        if name.table == "u":
            raise KeyboardInterrupt
        return own(tables, table, name, waiting)

    with monkeypatch.context() as patch:
        patch.setattr(NativeTables, "_write", write)
        with pytest.raises(KeyboardInterrupt):
            topic.job.run()


def send_two_tables(topic: Topic, es: int, a: int) -> None:
    """Send a row of each of two tables."""
    rows = [canal("INSERT", [{"id": "1", "a": str(a)}], id=1, es=es, table=table) for table in ("t", "u")]
    topic.kafka.send([Record(topic.name, 0, None, row) for row in rows])


@pytest.mark.jvm
def test_a_topic_is_created_again_behind_a_batch_that_was_killed_between_two_tables(
    topic: Topic, monkeypatch: pytest.MonkeyPatch
):
    """What the first one has of it stays, counts nowhere, and is overruled by the new topic, whose times are earlier."""
    topic.send(9, es=1_000)
    assert topic.run() == [1]
    send_two_tables(topic, es=9_000_000, a=5)
    cut_off_behind_the_first_table(topic, monkeypatch)
    topic.create_again()
    send_two_tables(topic, es=2_000, a=6)
    topic.refuse(ANEW)
    said = topic.accept()
    assert said[-1] == (
        "batch 1 was interrupted while it was written: d.t, d.u may have rows of messages of it that are not there any"
        " more, which no batch counts"
    )
    assert sum(topic.run()) == 2
    assert topic.job.rows("d.t", "id", "a") == [(1, 6), (9, 1)]
    assert topic.job.rows("d.u", "id", "a") == [(1, 6)]
    # That of the killed batch, and those of the new topic.
    assert topic.job.rows("d.t", "id", "a", suffix="changes") == [(1, 5), (1, 6), (9, 1)]
    assert topic.job.rows("d.u", "id", "a", suffix="changes") == [(1, 6)]
    assert read_status(topic.state).counts["read"] == 3


@pytest.mark.jvm
def test_a_topic_that_was_created_again_behind_a_first_batch_that_was_killed_is_refused(
    topic: Topic, monkeypatch: pytest.MonkeyPatch
):
    """No state before it can remember the order of its rows."""
    send_two_tables(topic, es=9_000_000, a=5)
    cut_off_behind_the_first_table(topic, monkeypatch)
    topic.create_again()
    send_two_tables(topic, es=2_000, a=6)
    with pytest.raises(
        JobError, match=r"the first batch was interrupted while it was written.* with another state and"
    ):
        topic.accept()


@pytest.mark.jvm
def test_statements_of_a_topic_that_was_created_again_come_behind(topic: Topic):
    """At lower offsets than those of the old one, by which they would be late, and so would their rows."""

    def row(id: int, **row: str) -> bytes:
        return canal("INSERT", [{"id": str(id), **row}], id=id, es=5_000, mysqlType=dict.fromkeys(("id", *row), "int"))

    def statement(id: int, sql: str) -> bytes:
        return canal("ALTER", [], id=id, es=5_000, isDdl=True, sql=sql)

    old = [row(1, a="1"), row(2, a="2"), statement(3, "ALTER TABLE t ADD b INT"), row(4, a="4", b="4")]
    new = [statement(5, "ALTER TABLE t DROP COLUMN a"), row(6, b="6"), row(1, b="7")]
    topic.kafka.send([Record(topic.name, 0, None, one) for one in old])
    assert topic.run() == [4]
    topic.create_again()
    topic.kafka.send([Record(topic.name, 0, None, one) for one in new])
    topic.accept()
    (report,) = topic.job.run()
    assert (report.counts["written"], report.counts["statements"], report.waiting) == (2, 1, {})
    assert topic.job.rows("d.t", "id", "b") == [(1, 7), (2, None), (4, 4), (6, 6)]
    # What was learned is learned again.
    topic.kafka.send([Record(topic.name, 0, None, row(8, b="8"))])
    topic.create_again()
    topic.kafka.send(
        [Record(topic.name, 0, None, one) for one in (statement(9, "ALTER TABLE t ADD c INT"), row(9, b="9", c="9"))]
    )
    topic.accept()
    assert topic.run() == [2]
    assert topic.job.rows("d.t", "id", "b", "c")[-1] == (9, 9, 9)
    assert read_topics(topic.state)[topic.name].deleted == 2


@pytest.mark.jvm
def test_a_topic_that_is_gone_is_read_no_more(kafka: Broker, job: Callable[..., LocalJob], topic: Topic):
    """Others go on; if it comes again, it is a new one."""
    kafka.create(f"{topic.name}.other")
    topic.job.source = Kafka(kafka.servers, pattern=f"{topic.name}.*")
    topic.send(1, 2)
    assert topic.run() == [2]
    kafka.delete(topic.name)
    topic.refuse("does not have any more topic")
    assert topic.accept()[0] == f"the topic {topic.name} is read no more"
    assert topic.run() == []
    kafka.create(topic.name)
    topic.send(1, a=2)
    assert topic.run() == [1]
    assert topic.rows == [(1, 2), (2, 1), (3,)]
    kafka.delete(topic.name)
    kafka.create(topic.name)
    topic.refuse(ANEW)


@pytest.mark.jvm
@pytest.mark.parametrize("is_interrupted", [False, True])
def test_a_topic_takes_the_place_of_the_only_one(kafka: Broker, topic: Topic, *, is_interrupted: bool):
    """As if the topic was renamed: the error says that it is no longer named, and the other one is read as a whole."""
    topic.send(1, 2)
    assert topic.run() == [2]
    topic.send(2, a=2)
    assert topic.run() == [1]
    if is_interrupted:
        for name in ("1", ".1.crc"):
            (topic.state / "checkpoint" / "commits" / name).unlink(missing_ok=True)
    renamed = f"{topic.name}.renamed"
    kafka.create(renamed)
    kafka.send([Record(renamed, 0, None, canal("INSERT", [{"id": str(id), "a": "9"}], id=id)) for id in (1, 7)])
    topic.job.source = Kafka(kafka.servers, (renamed,))
    if not is_interrupted:
        topic.refuse(f"the configuration does not name any more topic {topic.name} partition 0, of which messages")
    assert topic.accept()[:2] == [
        f"the topic {topic.name} is read no more",
        f"the topic {renamed} is read from its beginning",
    ]
    assert topic.run() == ([0, 2] if is_interrupted else [2])
    assert topic.rows == [(1, 9), (2, 2), (7, 9), (5,)]
    assert topic.run() == []


# Names of a topic, before and behind that of the one whose place it takes.
OTHER_NAMES = pytest.mark.parametrize("name", ["a.{}", "{}.renamed"])


def take_place(topic: Topic, name: str, *messages: bytes) -> None:
    """Let a topic of another name, which has messages, take the place of the only one, and read it."""
    topic.kafka.create(name)
    topic.kafka.send([Record(name, 0, None, message) for message in messages])
    topic.job.source = Kafka(topic.kafka.servers, (name,))
    topic.accept()
    assert sum(topic.run()) == len(messages)


def update(es: int, a: int = 9) -> bytes:
    """Return a message that updates the first row."""
    return canal("UPDATE", [{"id": "1", "a": str(a)}], id=1, es=es, old=[{"a": "1"}])


@pytest.mark.jvm
@OTHER_NAMES
@pytest.mark.parametrize("es", [1_000, 2_000])
def test_what_comes_of_a_topic_that_takes_the_place_of_another_one_comes_behind(topic: Topic, name: str, es: int):
    """Whichever of the names comes first, and also if its times are earlier."""
    topic.send(1, 2, es=2_000)
    topic.run()
    take_place(topic, name.format(topic.name), update(es))
    assert topic.job.rows("d.t", "id", "a") == [(1, 9), (2, 1)]


@pytest.mark.jvm
@OTHER_NAMES
def test_changes_without_numbers_come_behind_those_of_the_topic_before(topic: Topic, name: str):
    """Their lanes have no times, only how many messages moved keys."""

    def row(id: int, **columns: Any) -> list[bytes]:
        key, marks = {"id": id}, {"__db": "d", "__table": "t", "__op": "u"}
        return [json.dumps({"topic": "d.t", "key": key, "value": {"id": id, **columns, **marks}}).encode()]

    topic.kafka.send([Record(topic.name, 0, None, one) for one in row(1, a=1) + row(2, a=1)])
    topic.run()
    take_place(topic, name.format(topic.name), *row(1, a=9))
    assert topic.job.rows("d.t", "id", "a") == [("1", "9"), ("2", "1")]


@pytest.mark.jvm
@OTHER_NAMES
def test_a_topic_that_takes_a_place_comes_behind_a_batch_that_was_killed(
    topic: Topic, name: str, monkeypatch: pytest.MonkeyPatch
):
    """What tables have of messages that no batch counts is overruled, too."""
    topic.send(9, es=1_000)
    topic.run()
    send_two_tables(topic, es=9_000_000, a=5)
    cut_off_behind_the_first_table(topic, monkeypatch)
    take_place(topic, name.format(topic.name), update(2_000, a=6))
    assert topic.job.rows("d.t", "id", "a") == [(1, 6), (9, 1)]


@pytest.mark.jvm
@OTHER_NAMES
@pytest.mark.parametrize("is_last_kept", [False, True])
def test_a_topic_is_renamed_among_others(topic: Topic, name: str, *, is_last_kept: bool):
    """The new one comes behind all that are given up, also if they are one after the other; one that stays goes on."""
    new, other = name.format(topic.name), f"{topic.name}.other"
    for one in (new, other):
        topic.kafka.create(one)
    topic.job.source = Kafka(topic.kafka.servers, (topic.name, other))
    topic.send(1, es=5_000)
    topic.kafka.send([Record(other, 0, None, canal("INSERT", [{"id": "2", "a": "1"}], id=2, es=1_000))])
    assert sum(topic.run()) == 2
    topic.job.source = Kafka(topic.kafka.servers, (new, other) if is_last_kept else (new,))
    topic.accept()
    if not is_last_kept:
        topic.name = other
        topic.accept()
    topic.kafka.send([Record(new, 0, None, update(2_000))])
    changed = canal("UPDATE", [{"id": "2", "a": "7"}], id=3, es=1_000, old=[{"a": "1"}])
    topic.kafka.send([Record(other if is_last_kept else new, 0, None, changed)])
    assert sum(topic.run()) == 2
    assert topic.job.rows("d.t", "id", "a") == [(1, 9), (2, 7)]


@pytest.mark.jvm
def test_a_topic_that_is_renamed_back_comes_behind_itself(topic: Topic):
    """It has been read, given up and deleted before."""
    first = topic.name
    topic.send(1, es=9_000)
    topic.run()
    topic.kafka.delete(first)
    take_place(topic, f"a.{first}", update(5_000, a=2))
    assert topic.job.rows("d.t", "id", "a") == [(1, 2)]
    topic.name = f"a.{first}"
    take_place(topic, first, update(1_000, a=3))
    assert topic.job.rows("d.t", "id", "a") == [(1, 3)]


@pytest.mark.jvm
def test_a_loss_is_accepted_of_known_topics_only(topic: Topic):
    """Not of a pipeline that runs, either; and there must be something left to read."""
    topic.send(1)
    assert topic.run() == [1]
    reader = KafkaReader(topic.kafka.servers, (topic.name,))
    with pytest.raises(FileError, match="expected the name of a topic that the pipeline reads, got 'other'"):
        accept_loss(topic.state, reader, ["other"])
    with lock_state(topic.state), pytest.raises(FileError, match="a state that no other job uses"):
        accept_loss(topic.state, reader, [topic.name])
    (topic.state / TOPICS).write_text("[]")
    with pytest.raises(FileError, match="the ids of topics"):
        topic.run()
    (topic.state / TOPICS).unlink()
    reader.close()
    topic.kafka.delete(topic.name)
    reader = KafkaReader(topic.kafka.servers, pattern=f"{topic.name}.*")
    with pytest.raises(JobError, match="no topic would be left to be read"):
        accept_loss(topic.state, reader, [topic.name])
    reader.close()


@pytest.mark.parametrize("is_cut_off", [False, True])
def test_no_loss_of_topics_is_accepted_of_a_pipeline_that_reads_files(tmp_path: Path, *, is_cut_off: bool):
    """Whatever the configuration says: its state stays as it is, and nothing is asked of brokers before."""
    made = local_job(tmp_path)
    made.send(canal("INSERT", [{"id": "1", "a": "2"}], id=1))
    made.run()
    state = tmp_path / "state"
    if is_cut_off:
        (state / "checkpoint" / "commits" / "0").unlink()
    before = {path: path.read_bytes() for path in state.rglob("*") if path.is_file()}
    reader = KafkaReader("127.0.0.1:1", ("shop",))
    with pytest.raises(
        FileError, match="expected the state of a pipeline that reads topics, got that of one that read"
    ):
        accept_loss(state, reader, ["shop"])
    reader.close()
    assert {path: path.read_bytes() for path in state.rglob("*") if path.is_file()} == before


@pytest.mark.jvm
def test_a_topic_that_appears_later_and_has_lost_messages(kafka: Broker, topic: Topic):
    """It is read from the first message that there is."""
    topic.job.source = Kafka(kafka.servers, pattern=f"{topic.name}.*")
    topic.send(1)
    assert topic.run() == [1]
    later = f"{topic.name}.later"
    kafka.create(later)
    kafka.send([Record(later, 0, None, canal("INSERT", [{"id": str(id), "a": "3"}], id=id)) for id in (7, 8)])
    admin = AdminClient({"bootstrap.servers": kafka.servers, "log_level": 0})
    admin.delete_records([TopicPartition(later, 0, 1)])[TopicPartition(later, 0)].result(60)
    topic.refuse(
        f"topic {later} partition 0 is new and begins at offset 1 instead of 0: messages are lost.* accept-loss"
    )
    reader = KafkaReader(kafka.servers, pattern=f"{topic.name}.*")
    assert accept_loss(topic.state, reader, [later]) == [
        f"topic {later} partition 0 is read from offset 1: 1 message lost"
    ]
    reader.close()
    assert topic.run() == [1]
    assert topic.rows == [(1, 1), (8, 3), (2,)]


class Brokers:
    """Brokers that have two topics, of a message each."""

    def earliest(self) -> dict[str, dict[str, int]]:
        """Return where their partitions begin."""
        return {"shop.orders": {"0": 0}, "shop.items": {"0": 0}}

    latest = earliest

    def topic_ids(self, _: object) -> dict[str, str]:
        """Return no ids."""
        return {}


def test_a_topic_that_is_misspelt_is_told_with_the_one_that_is_meant(tmp_path: Path):
    """Which the pipeline reads, whether the brokers still have it or not."""
    (tmp_path / BATCHES).mkdir()
    checkpoint.Checkpoint(tmp_path / CHECKPOINT).put_first_offsets(0, {"shop.orders": {"0": 0}, "gone": {"0": 1}})
    for name, meant in (("shop.oders", "shop.orders"), ("shop.itens", "shop.items"), ("gon", "gone")):
        said = f"{name}: expected the name of a topic that the pipeline reads (did you mean {meant}?), got '{name}'"
        with pytest.raises(FileError, match=f"^{re.escape(said)}$"):
            accept_loss(tmp_path, cast(KafkaReader, Brokers()), [name])


@pytest.mark.parametrize(
    ("topics", "words"),
    [
        (["shop"], "shop --config FILE"),
        (["b", "a", "b"], "a b --config FILE"),
        (["it's", "-x"], "--config FILE -- -x 'it'\"'\"'s'"),
    ],
)
def test_what_goes_on_behind_a_loss_names_the_topics(topics: list[str], words: str):
    """For a shell, and each once."""
    assert go_on(topics) == f"To go on without them: cdcavro sync accept-loss {words}"


@pytest.mark.jvm
def test_the_command_says_how_a_pipeline_goes_on(topic: Topic):
    """With the file of the configuration, as Kafka is asked."""
    topic.send(1)
    assert topic.run() == [1]
    topic.send(2, 3)
    topic.expire(2)
    file = topic.job.folder / "sync.toml"
    lake = topic.job.folder / "lake"
    file.write_text(
        f'run = "local"\nstate = "{topic.state}"\n[lake]\ndelta = "{lake}"\n'
        f'[source]\nkafka = "{topic.kafka.servers}"\ntopics = ["{topic.name}"]\n'
    )
    words = ["sync", "accept-loss", topic.name, "--config", str(file)]
    done = CliRunner().invoke(main, words)
    assert (done.exit_code, done.stdout) == (
        0,
        f"topic {topic.name} partition 0 is read from offset 2: 1 message lost\n",
    )
    assert topic.run() == [1]
    words[2] = "other"
    done = CliRunner().invoke(main, words)
    assert (done.exit_code, done.stderr) == (
        2,
        "Error: other: expected the name of a topic that the pipeline reads, got 'other'\n",
    )


@pytest.mark.jvm
def test_a_check_says_what_the_run_would_refuse(topic: Topic):
    """Messages that expired, and a topic that was created again, also if it has more messages; it changes nothing."""
    file = topic.job.folder / "sync.toml"
    file.write_text(
        f'run = "local"\nstate = "{topic.state}"\n[lake]\ndelta = "{topic.job.folder / "lake"}"\n'
        f'[source]\nkafka = "{topic.kafka.servers}"\ntopics = ["{topic.name}"]\n'
    )

    def check() -> tuple[int, str]:
        done = CliRunner().invoke(main, ["sync", "--config", str(file), "--check"])
        return done.exit_code, done.stderr.strip()

    assert check() == (0, "")
    topic.send(1)
    assert topic.run() == [1]
    topic.send(2, 3)
    assert check()[0] == 0
    topic.expire(2)
    code, said = check()
    assert code == 2
    assert f"topic {topic.name} partition 0 begins at offset 2 and is to be read from offset 1" in said
    topic.accept()
    assert check()[0] == 0
    assert topic.run() == [1]
    topic.create_again()
    topic.send(1, 2, 3, 4, 5)
    code, said = check()
    assert code == 2
    assert re.search(ANEW, said)
    topic.refuse(ANEW)
    topic.accept()
    assert check()[0] == 0


@pytest.mark.jvm
def test_a_check_says_that_a_pattern_matches_no_topic(topic: Topic):
    """It is no error: the topics may come later. A run would be healthy, and read nothing for good."""
    for pattern, said in ((f"{topic.name}.*", ""), ("nothing[.].*", "no topic matches nothing[.].* so far\n")):
        file = topic.job.folder / "sync.toml"
        file.write_text(
            f'run = "local"\nstate = "{topic.state}"\n[lake]\ndelta = "{topic.job.folder / "lake"}"\n'
            f'[source]\nkafka = "{topic.kafka.servers}"\npattern = "{pattern}"\n'
        )
        done = CliRunner().invoke(main, ["sync", "--config", str(file), "--check"])
        assert (done.exit_code, done.stderr) == (0, said)


@pytest.mark.jvm
def test_a_state_in_an_object_store_remembers_the_ids_of_topics(topic: Topic, monkeypatch: pytest.MonkeyPatch):
    """Wherever it is held next, and a loss that was accepted is in it."""
    store = MemoryStore()
    monkeypatch.setattr(stored_state, "_connect", lambda _: store)
    address = "s3://bucket/state"

    def run() -> None:
        replace(topic.job.pipeline(), state=address).run(once=True)

    topic.send(1)
    run()
    topic.create_again()
    topic.send(1, 2, a=2)
    with pytest.raises(JobError, match=ANEW):
        run()
    reader = KafkaReader(topic.kafka.servers, (topic.name,))
    with stored_state.state_folder(address, is_changed=True) as folder:
        accept_loss(folder, reader, [topic.name])
    reader.close()
    run()
    assert topic.rows == [(1, 2), (2, 2), (3,)]
    assert [one.position for one in read_status(address).lanes] == [2]


@pytest.mark.slow
@pytest.mark.parametrize("producer", ["canal", "debezium"])
def test_what_was_learned_of_a_topic_that_is_over_is_learned_again_alike(tmp_path: Path, producer: str):
    """Once and a second time; its places are out of the way of any other topic of its name, and so is its clock."""
    changes = shuffled(producer, 3).messages
    state = job_state.JobState(tmp_path)
    maker = state.resume(0, Tables(zone=UTC))
    for number, start in enumerate(range(0, len(changes), 40)):
        state.write(number, maker.of_batch(changes[start : start + 40]).learned, maker.clock)
    last = state.batches()[-1] + 1
    topics = {change.place.topic for message in changes for change in message if change.place is not None}

    def versions() -> list[list[str]]:
        tables = state.resume(last, Tables(zone=UTC)).tables.tables
        return [[one.envelope.json for one in table.versions] for table in tables]

    before, lanes = versions(), maker.clock.state
    for deleted in (0, 1):
        over = {topic: topic_ids._Plan({"0": 0, "7": 0}, is_over=True, said=[]) for topic in topics if topic}
        known = {topic: KnownTopic(None, deleted) for topic in over}
        state.rewrite(last, lambda own, over=over, known=known: topic_ids._move_away(own, over, known))
        assert versions() == before
        places = [record["place"]["partition"] for path in tmp_path.glob("*.json") for record in learned_in(path)]
        assert places
        assert max(places) < 0
    again = state.resume(last, Tables(zone=UTC)).clock
    for topic in over:
        own = [LaneTime(*lane[2:]) for lane in lanes if lane[0][0] == topic]
        for partition in (0, 7) if own else ():
            place, time = again.get((topic, partition, "")) or ((), LaneTime(0, (), 0))
            assert (place[2], time > max(LaneTime(one.rank, tuple(one.numbers), one.moves) for one in own)) == (
                -1,
                True,
            )


def learned_in(path: Path) -> list[dict[str, Any]]:
    """Return what the file of a batch says was learned of topics."""
    return [one for one in json.loads(path.read_bytes())["learned"] if "topic" in one.get("place", {})]


def test_topics_without_ids_are_not_told_apart(tmp_path: Path):
    """As with brokers before 2.8, or where they say nothing of a topic; ids that come later are learned."""
    said: dict[str, str] = {}
    ids = TopicIds(tmp_path, lambda topics: {one: said[one] for one in topics if one in said})
    ids.learn(["a", "b"])
    assert read_topics(tmp_path) == {}
    said["a"] = "first"
    ids.learn(["a", "b"])
    assert read_topics(tmp_path) == {"a": KnownTopic("first")}
    said.clear()
    ids.compare(["a", "b"])
    said |= {"a": "second", "b": "other"}
    for one in (ids, TopicIds(tmp_path, lambda _: said)):
        with pytest.raises(JobError, match=f"the topic a {ANEW}: its id is second, and messages were read of first"):
            one.learn(["a", "b"])
    assert read_topics(tmp_path) == {"a": KnownTopic("first")}


@pytest.mark.jvm
def test_brokers_say_nothing_of_a_topic_that_is_not_there(kafka: Broker):
    """It has no id, and others have theirs."""
    kafka.create("there.with.id")
    reader = KafkaReader(kafka.servers, ("there.with.id",))
    found = reader.topic_ids(["there.with.id", "not.there"])
    assert ([*found], reader.topic_ids([])) == (["there.with.id"], {})
    assert re.fullmatch("[A-Za-z0-9_-]{22}", found["there.with.id"])
    reader.close()
