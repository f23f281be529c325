"""Completeness of tables: no mark is later than a change that is not in, whatever way lanes are read, and marks move on."""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from cdcavro.lake.account import AccountFile, read_account
from cdcavro.lake.job_state import JobState
from cdcavro.lake.lakes import COMPLETE
from cdcavro.sync.batches import Batches, BatchReport
from cdcavro.sync.local.local_runner import LocalBatch
from cdcavro.sync.local.local_sinks import sink_of
from cdcavro.sync.outputs.completeness import Completeness, instant_text, partitions_of
from cdcavro.sync.outputs.sink_settings import Job
from cdcavro.sync.reading.checkpoint import Checkpoint
from cdcavro.sync.status import read_status
from support.kafka_server import Record
from support.local_pipelines import DELTA, LocalJob, lake_section
from support.local_shop import Placed, lanes_of
from support.messages import canal

FIRST = 1_700_000_000_000
NOW = datetime(2030, 1, 1, tzinfo=UTC)
# A mark is in microseconds, and times of messages are in milliseconds.
MILLISECOND = 1_000


@dataclass
class Sent:
    """A message: what it is, and its time in milliseconds; `table` is None for what is no row."""

    topic: str
    partition: int
    time: int
    value: bytes
    table: str | None = None
    id: int = 0


@dataclass
class Source:
    """Commits changes of tables, and sends each to a partition of its table's topic; heartbeats go to all."""

    draw: random.Random
    topics: dict[str, tuple[int, Sequence[str]]]
    is_tidb: bool = False
    time: int = FIRST
    count: int = 0
    sent: list[Sent] = field(default_factory=list)

    def change(self) -> None:
        """Commit a change."""
        topic = self.draw.choice(sorted(self.topics))
        partitions, tables = self.topics[topic]
        self.time += self.draw.choice([0, 1, 7, 1000])
        self.count += 1
        table = self.draw.choice(tables)
        more = {"_tidb": {"commitTs": self.time << 18}} if self.is_tidb else {}
        value = canal("INSERT", [{"id": str(self.count)}], id=self.count, es=self.time, table=table, **more)
        self.sent.append(Sent(topic, self.draw.randrange(partitions), self.time, value, table, self.count))

    def heartbeat(self) -> None:
        """Say to all partitions that everything before now was sent: TiCDC sorts changes only by this."""
        self.time += 1
        beat: dict[str, Any] = {"type": "MHEARTBEAT", "es": self.time, "data": None, "isDdl": False}
        if self.is_tidb:
            beat = {"type": "TIDB_WATERMARK", "es": FIRST, "id": 0, "_tidb": {"watermarkTs": self.time << 18}}
        for topic, (partitions, _) in self.topics.items():
            self.sent += [Sent(topic, i, self.time, json.dumps(beat).encode()) for i in range(partitions)]
        self.time += 1

    def garbage(self) -> None:
        """Send what nobody can read, in place of a change of any table of a topic."""
        topic = self.draw.choice(sorted(self.topics))
        self.time += 1
        self.sent.append(Sent(topic, self.draw.randrange(self.topics[topic][0]), self.time, b"{"))

    def lanes(self) -> dict[tuple[str, int], list[Sent]]:
        """Return the messages of each partition as they lie there: TiCDC's changes between watermarks in any order."""
        found: dict[tuple[str, int], list[Sent]] = {}
        for one in self.sent:
            found.setdefault((one.topic, one.partition), []).append(one)
        for own in found.values() if self.is_tidb else ():
            borders = [-1, *(i for i, one in enumerate(own) if one.table is None), len(own)]
            for start, end in pairwise(borders):
                part = own[start + 1 : end]
                self.draw.shuffle(part)
                own[start + 1 : end] = part
        return found


class Run:
    """A pipeline's batches over the messages of a source, each up to any offsets, and what is in the lake then."""

    def __init__(self, folder: Path, source: Source, **more: Any) -> None:
        self.folder, self.source, self.lanes = folder, source, source.lanes()
        (folder / "in").mkdir(parents=True)
        lake = lake_section(DELTA, folder, current=False, changelog=True, complete_minutes=0)
        kind = "canal" if source.is_tidb else "oms_canal"
        self.job = LocalJob(folder, lake, {"format": kind, **more})
        self.number, self.reports = 0, list[BatchReport]()
        self.read = dict.fromkeys(self.lanes, 0)
        self.written, self.merge_every = dict(self.read), more.get("merge_every", 1)
        self.checkpoint = Checkpoint(folder / "state" / "checkpoint")
        self._begin()

    def _begin(self) -> None:
        pipeline, state = self.job.pipeline(), self.folder / "state"
        writer = sink_of(pipeline.sink).writer(Job("shop", frozenset()), None)
        self.batches = Batches(
            pipeline.settings, JobState(state / "batches"), writer, AccountFile(state), self.reports.append
        )

    def batch(self, ends: dict[tuple[str, int], int], *, is_again: bool = False) -> None:
        """Run a batch up to some offsets; with `is_again` once more, in the place of a process that was killed."""
        placed = [
            Placed(Record(topic, partition, None, own[i].value), i)
            for (topic, partition), own in self.lanes.items()
            for i in range(self.read[topic, partition], ends[topic, partition])
        ]
        plan: dict[str, dict[str, int]] = {}
        for topic, (partitions, _) in self.source.topics.items():
            plan[topic] = {str(i): ends.get((topic, i), 0) for i in range(partitions)}
        self.checkpoint.plan(self.number, [plan, None])
        for _ in range(1 + is_again):
            self.batches.run(LocalBatch(lanes_of(placed), self.folder / "spill"), self.number)
            if is_again:
                self._begin()
        self.checkpoint.commit(self.number)
        self.read, self.number = dict(ends), self.number + 1
        if self.number % self.merge_every == 0:
            self.written = dict(ends)

    def some(self) -> dict[tuple[str, int], int]:
        """Return offsets that are a bit further on."""
        draw = self.source.draw
        return {lane: min(len(own), self.read[lane] + draw.choice([0, 3, 6, 12])) for lane, own in self.lanes.items()}

    def marks(self) -> dict[str, int]:
        """Return the marks of tables in milliseconds, as the status has them."""
        status = read_status(self.folder / "state")
        return {one.name: round(one.complete_until * 1e3) for one in status.tables if one.complete_until is not None}

    def missing(self, table: str, mark: int) -> list[Sent]:
        """Return the changes of a table before a mark that are not in the lake; what cannot be read may be one."""
        topics = {one.topic for one in self.source.sent if one.table == table}
        left = [one for lane, own in self.lanes.items() for one in own[self.written[lane] :] if one.table == table]
        garbage = [one for one in self.source.sent if one.value == b"{" and one.topic in topics]
        return [one for one in (*left, *garbage) if one.time < mark]


TOPICS: dict[str, tuple[int, Sequence[str]]] = {"a": (3, ["t", "u"]), "b": (2, ["v"])}


def check(
    folder: Path, seed: int, *, garbage: int = 0, is_tidb: bool = False, is_cut: bool = False, **more: Any
) -> Run:
    """Check that no mark of any batch is later than a change that is not in; return the run."""
    draw = random.Random(seed)
    source = Source(draw, TOPICS, is_tidb)
    steps = ["change"] * 40 + ["heartbeat"] * (2 if is_tidb else 5) + ["garbage"] * garbage
    draw.shuffle(steps)
    for step in steps:
        getattr(source, step)()
    source.heartbeat()
    run = Run(folder, source, **more)
    while any(run.read[lane] < len(own) for lane, own in run.lanes.items()):
        run.batch(run.some(), is_again=is_cut and run.number % 3 == 1)
        for name, mark in run.marks().items():
            assert run.missing(name.removeprefix("d."), mark) == []
    return run


SEEDS = [pytest.param(seed, marks=pytest.mark.slow) for seed in range(1, 12)]


@pytest.mark.slow
@pytest.mark.parametrize("is_tidb", [False, pytest.param(True, marks=pytest.mark.slow)])
@pytest.mark.parametrize("seed", [0, *SEEDS])
def test_no_mark_is_later_than_a_change_that_comes(tmp_path: Path, seed: int, is_tidb: bool):
    """And in the end all that was sent before the last heartbeat is in; nothing comes late."""
    run = check(tmp_path, seed, is_tidb=is_tidb, is_cut=seed % 2 == 1)
    last = run.source.time - 1
    assert run.marks() == {"d.t": last, "d.u": last, "d.v": last}
    assert len({one.complete.get("d.t") for one in run.reports}) > 1
    assert [one.late for one in run.reports if one.late] == []
    assert [table.late for table in read_status(tmp_path / "state").tables] == [0, 0, 0]


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(6))
def test_what_cannot_be_read_holds_the_tables_of_its_topic_back(tmp_path: Path, seed: int):
    """It may be a change of any of them; tables of another topic go on."""
    run = check(tmp_path, seed, garbage=1)
    topic = next(one.topic for one in run.source.sent if one.value == b"{")
    last = run.source.time - 1
    marks = run.marks()
    assert {name: mark for name, mark in marks.items() if mark == last} == dict.fromkeys(
        ["d.v"] if topic == "a" else ["d.t", "d.u"], last
    )


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_rows_that_wait_hold_their_tables_back(tmp_path: Path, seed: int):
    """Until the batch with which they are written."""
    run = check(tmp_path, seed, merge_every=3)
    while run.number % 3:
        run.batch(run.read)
    assert {*run.marks().values()} == {run.source.time - 1}


def test_rejects_that_hold_nothing_are_passed_over(tmp_path: Path):
    """If it is said so; and what is read again and written holds nothing."""
    source = Source(random.Random(1), {"a": (1, ["t"])})
    source.change()
    source.garbage()
    source.heartbeat()
    held, free = (Run(tmp_path / name, source, **more) for name, more in (("h", {}), ("f", {"rejects_hold": False})))
    for run in (held, free):
        run.batch({lane: len(own) for lane, own in run.lanes.items()})
    first, *_, last = source.sent
    assert (held.marks(), free.marks()) == ({"d.t": first.time}, {"d.t": last.time})


def test_a_table_says_its_mark_behind_its_rows(tmp_path: Path):
    """In a property of the lake table, and in the report; a change that comes late is counted and said."""
    source = Source(random.Random(1), {"a": (1, ["t"])})
    for step in (source.change, source.heartbeat, source.change, source.heartbeat):
        step()
    run = Run(tmp_path, source)
    run.batch({("a", 0): 3})
    mark = source.sent[2].time
    assert run.reports[-1].complete == {"d.t": mark * MILLISECOND}
    assert (run.job.table("d.t", "changes").properties() or {})[COMPLETE] == instant_text(mark * MILLISECOND)
    assert run.reports[-1].facts["complete_until"] == {"d.t": instant_text(mark * MILLISECOND)}
    late = canal("INSERT", [{"id": "9"}], id=9, es=FIRST - 1)
    run.lanes["a", 0] += [Sent("a", 0, FIRST - 1, late, "t", 9), Sent("a", 0, FIRST - 1, late, "t", 9)]
    run.batch({("a", 0): 6}, is_again=True)
    report = run.reports[-1]
    assert report.late == {"d.t": 2}
    assert "d.t: 2 changes came late, of times up to which all were in" in report.notes
    assert [(one.late, one.complete_until) for one in read_status(tmp_path / "state").tables] == [
        (2, source.sent[3].time / 1e3)
    ]


LANES = {"a": [0, 1], "b": [0]}


def taken(one: Completeness, *lanes: list[Any], tables: dict[int, dict[str, Any]] | None = None) -> dict[int, int]:
    """Let a batch be taken and written, through what is remembered of it; return the marks."""
    one.take(lanes, tables or {}, LANES, NOW)
    facts = json.loads(json.dumps(one.facts))
    again = Completeness.of(facts)
    again.settle(())
    one.settle(())
    assert again.marks == one.marks
    return one.marks


def test_a_mark_is_the_least_of_all_lanes_that_may_have_changes():
    """Without a time of one of them there is none; a table of another topic has nothing to do with them."""
    one = Completeness()
    assert taken(one, ["a", 0, 5, 0, None, 0], tables={1: {"topics": ["a"], "late": 0}}) == {}
    assert taken(one, ["a", 1, 3, 0, None, 0], ["b", 0, 1, 0, None, 0]) == {1: 3}
    assert taken(one, ["a", 1, 9, 0, None, 0]) == {1: 5}
    assert taken(one, ["a", 0, 4, 0, None, 0], tables={2: {"topics": ["b"], "late": 0}}) == {1: 5, 2: 1}
    # Its changes come through another topic, too, which is behind.
    assert taken(one, tables={1: {"topics": ["b"], "late": 3}}) == {1: 1, 2: 1}
    assert (one.late(1), one.late(2), one.late(3)) == (3, 0, 0)


def test_no_mark_is_later_than_its_batch():
    """Whatever the clock of the source says."""
    one, ahead = Completeness(), int(NOW.timestamp() * 1e6) + 5
    lanes = [["a", 0, ahead, 0, None, 0], ["a", 1, ahead, 0, None, 0]]
    assert taken(one, *lanes, tables={1: {"topics": ["a"], "late": 0}}) == {1: ahead - 5}


def test_rejects_hold_a_lane_until_all_of_them_are_mended():
    """It stays where it was before the first of them, also from batch to batch."""
    one, table = Completeness(), {1: {"topics": ["b"], "late": 0}}
    assert taken(one, ["b", 0, 5, 0, None, 0], tables=table) == {1: 5}
    assert taken(one, ["b", 0, 9, 1, 7, 0]) == {1: 7}
    assert taken(one, ["b", 0, 12, 2, 10, 0]) == {1: 7}
    assert taken(one, ["b", 0, None, 0, None, 2]) == {1: 7}
    assert taken(one, ["b", 0, None, 0, None, 1]) == {1: 12}
    assert taken(one, ["b", 0, 13, 1, None, 0]) == {1: 12}


def test_a_table_whose_rows_wait_keeps_its_mark():
    """Also after the next batch, until they are written."""
    one = Completeness()
    one.take([["b", 0, 5, 0, None, 0]], {1: {"topics": ["b"], "late": 0}}, LANES, NOW)
    one.settle(())
    for until, waiting, mark in ((6, [1], 5), (7, [1], 5), (8, [], 8)):
        one.take([["b", 0, until, 0, None, 0]], {}, LANES, NOW)
        assert one.goals == {1: until}
        one.settle(waiting)
        assert one.marks == {1: mark}


def test_the_partitions_are_those_of_the_plan(tmp_path: Path):
    """Also those that have no messages; without a plan, and of files, none are known."""
    assert partitions_of(tmp_path / "c", 0) == {}
    assert list(tmp_path.iterdir()) == []
    checkpoint = Checkpoint(tmp_path / "c")
    checkpoint.plan(0, [{"a": {"0": 7, "1": 0}}, {"logOffset": 3}])
    checkpoint.commit(0)
    checkpoint.plan(1, [{"logOffset": 1}, None])
    assert [partitions_of(tmp_path / "c", batch) for batch in range(3)] == [{"a": [0, 1]}, {}, {}]


def _run_each(made: LocalJob, batches: Sequence[Sequence[Record]]) -> list[BatchReport]:
    """Run each batch of Kafka's records as in a process of its own, and return the reports."""
    pipeline, state, reports = made.pipeline(), made.folder / "state", list[BatchReport]()
    writer = sink_of(pipeline.sink).writer(Job("shop", frozenset()), None)
    for number, records in enumerate(batches):
        own = Batches(pipeline.settings, JobState(state / "batches"), writer, AccountFile(state), reports.append)
        own.run(LocalBatch(lanes_of([Placed(one, i) for i, one in enumerate(records)]), made.folder / "spill"), number)
    return reports


@pytest.mark.slow
def test_servers_of_one_table_are_told_once(tmp_path: Path):
    """By topics that are called like Debezium's, and end in the table's name; a topic of other words is no server's."""
    batches = []
    for number, topic in enumerate(["one.d.t", "moved", "two.d.t", "one.d.u", "three.d.t"]):
        value = canal("INSERT", [{"id": "1", "a": "1"}], id=number + 1, table=topic[-1] if "." in topic else "t")
        batches.append([Record(topic, 0, None, value)])
    reports = _run_each(LocalJob(tmp_path, lake_section(DELTA, tmp_path)), batches)
    said = [[step for step in report.steps if "its rows come from" in step] for report in reports]
    assert [len(steps) for steps in said] == [0, 0, 1, 0, 0]
    assert said[2][0].startswith("d.t: its rows come from one.d.t and two.d.t, and are rows of one table: if ")
    assert said[2][0] in repr(read_account(tmp_path / "state"))


@pytest.mark.parametrize("format", ["mixed", "debezium_flat"])
def test_records_without_a_value_that_delete_nothing_are_told_once_for_each_topic(tmp_path: Path, format: str):
    """If rows of a format in which they are deletes came in their topic, in whatever batch."""
    more = {"format": format, "tables": {"zone": "UTC", "table": "@topic.database.table"}}
    made = LocalJob(tmp_path, lake_section(DELTA, tmp_path), more)
    null = Record("s.d.t", 0, b'{"id":1}', None)
    row = null._replace(value=b'{"id":1,"n":5,"__op":"c"}')
    enveloped = (
        b'{"before":null,"after":{"id":1},"op":"c","ts_ms":1,"source":{"connector":"mysql","db":"d","table":"u"}}'
    )
    other = [null._replace(topic="s.d.u", value=enveloped), null._replace(topic="s.d.u")]
    reports = _run_each(made, [[row], other, [null], [row, null]])
    said = [step for report in reports for step in report.steps if "without a value" in step]
    assert len(said) == (format == "mixed")
    if format == "mixed":
        assert said[0].startswith("topic s.d.t: its records without a value are not applied as deletes, though ")
        assert said[0] in reports[2].steps
