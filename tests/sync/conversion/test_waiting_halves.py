"""Halves of updates: joined in whatever lanes, batches and repetitions they come, they leave what whole updates leave."""

from __future__ import annotations

import json
import random
import zlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from cdcavro.errors import FileError, JobError
from cdcavro.lake import TableState
from cdcavro.lake.account import AccountFile
from cdcavro.lake.job_state import JobState
from cdcavro.lake.typed_rows import TypedRow
from cdcavro.sync.batches import Batches, BatchReport
from cdcavro.sync.conversion import waiting_halves
from cdcavro.sync.local.local_runner import LocalBatch
from cdcavro.sync.outputs.reject_places import replay
from cdcavro.sync.outputs.writer import WriteResult
from cdcavro.sync.protection import RowRule
from cdcavro.sync.settings import Chosen, Formats, Settings
from support.halves import Row, blob
from support.kafka_server import Record
from support.local_pipelines import DELTA, LocalJob, lake_section
from support.local_shop import Placed, lanes_of
from support.typed import read

LANES = 3
# More than any test takes.
LONG = 1e6


def tuple_record(number: int, row: Row, side: str, operation: str | None = "U") -> bytes:
    """Return a record of a Tuple topic; `side` is B or A."""
    stated = {} if operation is None else {"_operation_type_": operation}
    images = {"_before_image_": "NY"[side == "B"], "_after_image_": "NY"[side == "A"]}
    return json.dumps({"_sequence_id_": str(number), **stated, "_source_table_": "t", **images, **row}).encode()


Change = tuple[str, Row | None, Row | None, int]


@dataclass
class History:
    """What a database did with the rows of a table."""

    draw: random.Random
    rows: dict[int, str] = field(default_factory=dict)
    changes: list[Change] = field(default_factory=list)

    def change(self) -> None:
        """Insert, update, delete a row, or move it to another key."""
        draw, number = self.draw, len(self.changes) + 1
        free = [id for id in range(8) if id not in self.rows]
        if not self.rows or (free and draw.random() < 0.3):
            new = {"id": draw.choice(free), "v": f"v{number}"}
            change: Change = "INSERT", None, new, number
        else:
            old = {"id": (id := draw.choice([*self.rows])), "v": self.rows.pop(id)}
            moved = draw.choice(free) if free and draw.random() < 0.5 else id
            kind = draw.choice(["UPDATE"] * 4 + ["DELETE"])
            change = kind, old, {"id": moved, "v": f"v{number}"} if kind == "UPDATE" else None, number
        if change[2] is not None:
            self.rows[change[2]["id"]] = change[2]["v"]
        self.changes.append(change)

    @property
    def wanted(self) -> set[str]:
        """What a changelog has of whole updates: one that moves a row is a delete and an insert."""
        found = []
        for op, before, after, number in self.changes:
            if before is not None and after is not None and before["id"] != after["id"]:
                found += [("d", before, None, number), ("c", None, after, number)]
            else:
                found.append((op[0].lower().replace("i", "c"), before, after, number))
        return set(map(repr, found))

    def lanes(self, *, is_halved: bool, again: float) -> dict[int, list[bytes]]:
        """Return the messages of each lane, chosen by the key; with a probability, some are sent again by then."""
        lanes: dict[int, list[bytes]] = {i: [] for i in range(LANES)}

        def send(key: int, message: bytes) -> None:
            own = lanes[zlib.crc32(b"%d" % key) % LANES]
            own.append(message)
            while self.draw.random() < again:
                # One alone, or what was sent from somewhere on.
                own.extend([self.draw.choice(own)] if self.draw.random() < 0.5 else own[-self.draw.randrange(1, 12) :])

        for op, before, after, number in self.changes:
            if is_halved and op == "UPDATE" and before is not None and after is not None:
                send(before["id"], blob("UPDATE_BEFOR", number, before=before))
                send(after["id"], blob("UPDATE_AFTER", number, after=after))
            else:
                send((before or after or {})["id"], blob(op, number, before, after))
        return lanes


class KilledError(JobError):
    """The process is killed."""


@dataclass
class Writer:
    """Keeps the rows that it gets; it dies before or after it does if it is told so."""

    rows: list[tuple[Any, TypedRow]] = field(default_factory=list)
    dies: str = ""
    has_changes: bool = True
    has_states: bool = True

    def write(self, tables: Sequence[Any]) -> list[WriteResult]:
        """Keep the rows of tables."""
        if self.dies == "before the rows":
            raise KilledError(self.dies)
        for table, _, parts in tables:
            for part in parts:
                rows = part.rows.drop_columns("headers").to_pylist()
                self.rows += [(table.versions[row["version"] - 1], TypedRow(table.number, **row)) for row in rows]
        if self.dies == "behind the rows":
            raise KilledError(self.dies)
        return [WriteResult(table.number, [], None) for table, _, _ in tables]


class Run:
    """A pipeline over the partitions of a topic, whose batches end anywhere."""

    def __init__(self, folder: Path, minutes: float | None = LONG, **settings: Any) -> None:
        self.folder, self.number, self.read = folder, 0, dict[int, int]()
        options = {"formats": Formats("datahub_blob"), "halves_minutes": minutes, **settings}
        self.settings, self.writer, self.reports = Settings(**options), Writer(), list[BatchReport]()
        self.begin()

    def begin(self) -> None:
        """Begin as a new process does."""
        state = self.folder / "state"
        self.state = JobState(state / "batches")
        self.batches = Batches(self.settings, self.state, self.writer, AccountFile(state), self.reports.append)

    def batch(self, lanes: dict[int, list[bytes]], ends: dict[int, int], dies: str = "") -> None:
        """Run a batch up to some offsets; if it dies at a point, another process runs it again."""
        placed = [
            Placed(Record("shop", lane, None, own[i]), i)
            for lane, own in lanes.items()
            for i in range(self.read.get(lane, 0), ends[lane])
        ]
        if dies:
            self.die(placed, dies)
            self.begin()
        self.batches.run(LocalBatch(lanes_of(placed), self.folder / "spill"), self.number)
        self.read, self.number = ends, self.number + 1

    def die(self, placed: list[Placed], dies: str) -> None:
        """Run a batch until it dies."""

        def write(*_: Any) -> None:
            raise KilledError(dies)

        self.writer.dies = dies
        if dies == "before the state":
            self.state.write = write  # type: ignore[method-assign]
        with pytest.raises(KilledError, match=dies):
            self.batches.run(LocalBatch(lanes_of(placed), self.folder / "spill"), self.number)
        self.writer.dies = ""

    @property
    def waiting(self) -> int:
        """How many halves wait behind the last batch."""
        count: int = self.state.facts(self.number).get("halves", 0)
        return count

    @property
    def counts(self) -> dict[str, int]:
        """What became of all messages."""
        names = self.reports[0].counts
        return {name: sum(report.counts[name] for report in self.reports) for name in names}

    @property
    def changes(self) -> list[str]:
        """The changes that were written, without what says where they arrived."""
        found = [read(row.payload, version.envelope) for version, row in self.writer.rows]
        return [
            repr((one["op"], *(_image(one[side]) for side in ("before", "after")), *one["source"]["position"]))
            for one in found
        ]

    @property
    def current(self) -> dict[int, str]:
        """The current state of the table."""
        state, versions = TableState("t"), {}
        for version, row in self.writer.rows:
            versions[row.version] = version
            state.merge([row])
        images = [read(last.payload, versions[last.version].envelope)["after"] for last, *_ in state.rows.values()]
        return {one["id"]: one["v"] for one in images}


def _image(row: Row | None) -> Row | None:
    return None if row is None else {"id": row["id"], "v": row["v"]}


DEATHS = ("", "", "before the state", "before the rows", "behind the rows")


def check(folder: Path, seed: int, *, is_joined: bool = True, again: float = 0.0) -> Run:
    """Check that halves, cut into batches anywhere and killed, leave what whole updates leave; return the run."""
    history = History(draw := random.Random(seed))
    for _ in range(60):
        history.change()
    lanes = history.lanes(is_halved=True, again=again)
    run = Run(folder, LONG if is_joined else None)
    while any(run.read.get(lane, 0) < len(own) for lane, own in lanes.items()):
        ends = {lane: min(len(own), run.read.get(lane, 0) + draw.choice([0, 1, 5, 20])) for lane, own in lanes.items()}
        if ends != run.read:
            run.batch(lanes, ends, draw.choice(DEATHS))
    assert run.current == history.rows, seed
    counts, sent = run.counts, sum(map(len, lanes.values()))
    assert counts["rejected"] == 0
    assert counts["read"] + run.waiting == sent
    if is_joined:
        assert {*run.changes} == history.wanted, seed
    return run


SEEDS = [0, *[pytest.param(seed, marks=pytest.mark.slow) for seed in range(1, 80)]]


@pytest.mark.slow
@pytest.mark.parametrize("seed", SEEDS)
def test_halves_that_are_joined_leave_what_whole_updates_leave(tmp_path: Path, seed: int):
    """Keys move, also to other partitions; batches are cut anywhere and run again in part; no half is left."""
    run = check(tmp_path, seed)
    assert run.waiting == 0


@pytest.mark.slow
@pytest.mark.parametrize("seed", SEEDS)
def test_messages_that_come_again_join_no_other_halves(tmp_path: Path, seed: int):
    """One message alone, or all from somewhere on; what has no other half waits."""
    check(tmp_path, seed, again=0.1)


@pytest.mark.slow
@pytest.mark.parametrize("seed", SEEDS)
def test_halves_that_are_not_joined_leave_the_same_current_state(tmp_path: Path, seed: int):
    """A row before an update that comes again, behind the row after it, takes nothing away."""
    check(tmp_path, seed, is_joined=False, again=0.1)


def test_a_row_before_an_update_that_comes_again_alone_takes_nothing_away(tmp_path: Path):
    """Where halves are not joined."""
    halves = [blob("UPDATE_BEFOR", 2, before={"id": 1, "v": "a"}), blob("UPDATE_AFTER", 2, after={"id": 1, "v": "b"})]
    run = Run(tmp_path, None)
    run.batch({0: [blob("INSERT", 1, after={"id": 1, "v": "a"}), *halves, halves[0]]}, {0: 4})
    assert run.current == {1: "b"}


BEFORE = blob("UPDATE_BEFOR", 2, before={"id": 1, "v": "a"})
AFTER = blob("UPDATE_AFTER", 2, after={"id": 5, "v": "b"})
UPDATE = {repr(("d", {"id": 1, "v": "a"}, None, 2)), repr(("c", None, {"id": 5, "v": "b"}, 2))}


@pytest.mark.parametrize("order", ["BA", "AB"])
@pytest.mark.parametrize("lanes", [1, 2])
@pytest.mark.parametrize("batches", [1, 2])
def test_two_halves_are_one_update_wherever_they_come(tmp_path: Path, order: str, lanes: int, batches: int):
    """In either order, in one partition or two, in one batch or two; a table that begins with them, too."""
    messages = {"B": BEFORE, "A": AFTER}
    streams: dict[int, list[bytes]] = {i: [] for i in range(lanes)}
    for i, side in enumerate(order):
        streams[i % lanes].append(messages[side])
    run = Run(tmp_path)
    if batches == 2:
        run.batch(streams, dict.fromkeys(streams, 0) | {0: 1})
        assert (run.counts["read"], run.waiting, run.reports[0].notes) == (
            0,
            1,
            ["1 half of an update waits for the other half"],
        )
    run.batch(streams, {lane: len(own) for lane, own in streams.items()})
    assert ({*run.changes}, run.waiting) == (UPDATE, 0)
    places = {read(row.payload, version.envelope)["source"]["partition"] for version, row in run.writer.rows}
    assert places == {order.index("A") % lanes}
    assert run.counts == {**run.counts, "read": 2, "written": 2, "rejected": 0}
    assert not [*(tmp_path / "state" / "halves").glob("1.json")]


def test_an_update_that_moves_no_row_has_both_rows(tmp_path: Path):
    """And may state a part of its row, which a current state refuses of a row that comes alone."""
    part = blob("UPDATE_AFTER", 3, after={"id": 1})
    insert = blob("INSERT", 1, after={"id": 1, "v": "a"})
    stream = {0: [insert, blob("UPDATE_BEFOR", 3, before={"id": 1, "v": "a"}), part]}
    for minutes, rejected in ((LONG, 0), (None, 1)):
        run = Run(tmp_path / str(minutes), minutes)
        run.batch(stream, {0: 3})
        assert run.counts["rejected"] == rejected
        assert [read(row.payload, one.envelope)["op"] for one, row in run.writer.rows] == [
            "c",
            "d" if rejected else "u",
        ]


def test_halves_of_other_updates_are_not_joined(tmp_path: Path):
    """Another number, another table, another topic."""
    others = [blob("UPDATE_AFTER", 3, after={"id": 1, "v": "b"}), blob("UPDATE_AFTER", 2, after={"id": 1}, table="u")]
    run = Run(tmp_path)
    run.batch({0: [BEFORE, *others]}, {0: 3})
    assert (run.waiting, run.changes, run.counts["read"]) == (3, [], 0)
    lanes = lanes_of([Placed(Record("other", 0, None, AFTER), 0)])
    run.batches.run(LocalBatch(lanes, tmp_path / "spill"), 1)
    assert run.state.facts(2)["halves"] == 4


def test_records_that_do_not_say_what_they_are_are_not_held_back(tmp_path: Path):
    """They may be an insert or a delete; those that say it wait."""
    rows = {"id": 1, "v": "a"}
    run = Run(tmp_path, formats=Formats("datahub_tuple"))
    run.batch({0: [tuple_record(1, rows, "A", None), tuple_record(2, rows, "B")]}, {0: 2})
    assert (run.waiting, run.counts["written"], len(run.writer.rows)) == (1, 1, 1)
    run.batch({0: [b"", b"", tuple_record(2, {"id": 1, "v": "b"}, "A")]}, {0: 3})
    assert run.waiting == 0
    assert repr(("u", {"id": "1", "v": "a"}, {"id": "1", "v": "b"}, 2)) in run.changes


def test_halves_of_tables_that_are_not_wanted_do_not_wait(tmp_path: Path):
    """They are left out at once."""
    run = Run(tmp_path, chosen=Chosen(exclude=("t",)))
    run.batch({0: [BEFORE]}, {0: 1})
    assert (run.waiting, run.counts["left out"], run.counts["rejected"]) == (0, 1, 0)


def test_a_half_that_cannot_be_joined_is_refused_at_once(tmp_path: Path):
    """One without a number, and one with another row than that of the same half before."""
    other = blob("UPDATE_BEFOR", 2, before={"id": 2, "v": "x"})
    nameless = json.loads(BEFORE)
    del nameless["payload"]["sequenceId"]
    run = Run(tmp_path)
    run.batch({0: [BEFORE, other, json.dumps(nameless).encode(), AFTER]}, {0: 4})
    assert sorted(one.example for one in run.reports[0].rejects) == [
        "expected a number for the halves of an update to share, got none",
        "expected the other half of the update, got another row as its BEFORE half",
    ]
    assert ({*run.changes}, run.counts["rejected"]) == (UPDATE, 2)


def test_both_halves_of_an_update_that_contradicts_its_table_are_rejects(tmp_path: Path):
    """With the same reason, and each with its bytes."""
    moved = blob("UPDATE_AFTER", 2, after={"id": 5})
    run = Run(tmp_path)
    run.batch({0: [blob("INSERT", 1, after={"id": 1, "v": "a"}), BEFORE]}, {0: 2})
    run.batch({0: [b"", b"", moved]}, {0: 3})
    lines = (tmp_path / "state" / "rejects" / "batch=1" / "part-00000.json").read_text().splitlines()
    assert len({json.loads(line)["raw"] for line in lines}) == len(lines) == 2
    assert len({json.loads(line)["reason"] for line in lines}) == 1
    assert run.counts == {**run.counts, "read": 3, "written": 1, "rejected": 2}


@pytest.mark.parametrize(("ends", "alone"), [([{0: 8}], 1), ([{0: 1}, {0: 8}], 0), ([{0: 3}, {0: 8}], 1)])
def test_both_halves_of_an_update_for_which_where_cannot_be_decided_are_rejects(
    tmp_path: Path, ends: list[dict[int, int]], alone: int
):
    """With the same reason, in one batch or several, also where one comes again; `alone` of them wait then."""
    lane = [
        *[blob("UPDATE_BEFOR", 2, before={"id": 5, "v": "a"})] * 2,
        *[blob("UPDATE_AFTER", 2, after={"id": 5})] * 2,
        *[blob("UPDATE_BEFOR", 3, before={"id": 6, "v": "a"}), blob("UPDATE_AFTER", 3, after={"id": 6, "v": "b"})],
        *[blob("INSERT", 4, after={"id": 7, "v": "a"}), blob("INSERT", 5, after={"id": 8})],
    ]
    run = Run(tmp_path, rules=(RowRule("d.t", where="v > ''"),), rejects_raw="keep")
    for end in ends:
        run.batch({0: lane}, end)
    assert (run.waiting, len(run.changes)) == (alone, 2)
    assert run.counts == {**run.counts, "read": 8 - alone, "written": 3, "rejected": 5 - alone}
    reasons = {one.example.partition(", by which")[0] for report in run.reports for one in report.rejects}
    assert reasons == {"expected a value of the column v in a row of d.t"}


def test_of_too_many_halves_those_that_wait_longest_are_rejects(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """In memory, and in the state."""
    monkeypatch.setattr(waiting_halves, "MOST_HALVES", 2)
    run = Run(tmp_path)
    halves = [blob("UPDATE_BEFOR", number, before={"id": number, "v": "a"}) for number in range(5)]
    run.batch({0: halves, 1: []}, {0: 3, 1: 0})
    assert (run.waiting, run.counts["rejected"]) == (2, 1)
    run.batch({0: halves, 1: []}, {0: 5, 1: 0})
    assert (run.waiting, run.counts["rejected"], run.counts["read"]) == (2, 3, 3)
    assert run.reports[0].rejects[0].example == (
        "expected the AFTER half of the update before 2 later halves, or 8388608 bytes, wait, got the BEFORE half alone"
    )


def let_pass(state: Path, batch: int) -> None:
    """Let an hour pass for the halves that a batch left."""
    path = state / "halves" / f"{batch}.json"
    path.write_text(json.dumps([{**one, "since": one["since"] - 3600} for one in json.loads(path.read_bytes())]))


@pytest.mark.slow
def test_a_half_that_waited_too_long_is_a_reject_that_can_be_read_again(tmp_path: Path):
    """In a lake: the reject has its bytes, and is joined once both are there."""
    lake = lake_section(DELTA, tmp_path, changelog=True)
    job = LocalJob(tmp_path, lake, {"format": "datahub_blob", "halves_minutes": 59})
    job.send(blob("INSERT", 1, after={"id": 1, "v": "a"}), BEFORE)
    job.run()
    let_pass(tmp_path / "state", 0)
    job.send(blob("INSERT", 4, after={"id": 2, "v": "c"}))
    (report,) = job.run()
    assert [one.example for one in report.rejects] == [
        "expected the AFTER half of the update within 59 minutes, got the BEFORE half alone"
    ]
    assert report.counts == {**report.counts, "read": 2, "written": 1, "rejected": 1}
    job.send(AFTER)
    (report,) = job.run()
    assert (report.counts["read"], job.rows("d.t", "id", "v")) == (0, [(1, "a"), (2, "c")])
    replay(tmp_path / "state" / "rejects", tmp_path / "state" / "replay")
    (report,) = job.run()
    assert report.counts == {**report.counts, "read": 2, "written": 2, "rejected": 0}
    assert job.rows("d.t", "id", "v") == [(2, "c"), (5, "b")]


def test_a_half_waits_since_it_came(tmp_path: Path):
    """However many batches do not bring the other one."""
    run = Run(tmp_path)
    run.batch({0: [BEFORE]}, {0: 1})
    let_pass(tmp_path / "state", 0)
    run.begin()
    run.batch({0: [BEFORE, blob("INSERT", 4, after={"id": 2, "v": "c"})]}, {0: 2})
    (first, second) = (json.loads((tmp_path / "state" / "halves" / f"{i}.json").read_bytes()) for i in range(2))
    assert first == second


def test_a_half_that_waited_too_long_is_joined_if_the_other_one_comes_with_the_next_batch(tmp_path: Path):
    """A pipeline that runs once a day waits for its next run, whatever the minutes are."""
    run = Run(tmp_path, 59)
    run.batch({0: [BEFORE, AFTER]}, {0: 1})
    let_pass(tmp_path / "state", 0)
    run.begin()
    run.batch({0: [BEFORE, AFTER]}, {0: 2})
    assert ({*run.changes}, run.counts["rejected"], run.waiting) == (UPDATE, 0, 0)


def test_halves_that_wait_are_rows_of_their_own_once_halves_are_not_joined(tmp_path: Path):
    """As they would have been from the beginning."""
    run = Run(tmp_path)
    run.batch({0: [BEFORE, AFTER]}, {0: 1})
    run.settings = Settings(formats=Formats("datahub_blob"))
    run.begin()
    run.batch({0: [BEFORE, AFTER]}, {0: 2})
    assert ({*run.changes}, run.counts["written"], run.waiting) == (UPDATE, 2, 0)


def test_a_state_without_its_halves_is_refused(tmp_path: Path):
    """They are nowhere else."""
    run = Run(tmp_path)
    run.batch({0: [BEFORE, AFTER]}, {0: 1})
    (tmp_path / "state" / "halves" / "0.json").unlink()
    run.begin()
    with pytest.raises(FileError, match="expected the halves of updates that wait"):
        run.batch({0: [BEFORE, AFTER]}, {0: 2})


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({"halves_minutes": 0}, "halves_minutes is a number of minutes above 0, not 0"),
        ({"halves_minutes": float("nan")}, "halves_minutes is a number of minutes above 0, not nan"),
        ({"halves_minutes": 1, "rejects_raw": "omit"}, 'rejects_raw = "omit" forbids: leave out halves_minutes'),
        (
            {"halves_minutes": 1, "rejects_raw": "encrypt", "rejects_public_key": "-"},
            'rejects_raw = "encrypt" forbids: leave out halves_minutes',
        ),
    ],
)
def test_minutes_that_are_none_are_refused(settings: dict[str, Any], expected: str):
    """So is a wait with bytes that are to be kept nowhere."""
    with pytest.raises(ValueError, match=expected):
        Settings(**settings)
