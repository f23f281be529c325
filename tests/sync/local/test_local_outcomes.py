"""Outcomes in this process: they are the same in memory and in files, and are read as often as somebody asks."""

from __future__ import annotations

import json
import pickle
import resource
import time
from base64 import b64decode
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pytest

from cdcavro.errors import JobError
from cdcavro.lake.typed_rows import TypedRows
from cdcavro.sync.conversion import knowledge, outcome_rows
from cdcavro.sync.conversion.knowledge import Knowledge
from cdcavro.sync.conversion.rounds import Outcomes, convert, merge_notes
from cdcavro.sync.conversion.task import converter
from cdcavro.sync.local.local_outcomes import LocalFiles, LocalStore
from cdcavro.sync.local.local_runner import Lane, LocalBatch
from cdcavro.sync.settings import Formats, Settings
from support.messages import canal
from support.rows_trial import ZONE
from support.shop_tables import MESSAGES
from support.task_batches import batch_of

FEW = 400
NOW = datetime(2026, 11, 24, 1, 2, 3, tzinfo=UTC)
BAD = [b"{", b"no 1", b"no 2", canal("INSERT", [{"id": "1"}], id=1, table="", database="")]


def outcomes_of(folder: Path, room: int) -> Outcomes:
    """Return the outcomes of the shop's messages in several batches, and of some that are none."""
    settings = Settings(formats=Formats("canal"), options={"zone": ZONE})
    messages = [*MESSAGES["canal"](), *BAD]
    batches = [batch_of([(None, one) for one in messages[i : i + 50]], first=i) for i in range(0, len(messages), 50)]

    def run(knowledge: Knowledge) -> Outcomes:
        store = LocalStore(folder, room)
        for some in converter(pickle.loads(pickle.dumps(knowledge)))(batches):
            store.add(some)
        return merge_notes(store, store.notes)

    return convert(run, TypedRows(settings.tables()), settings, is_reduced=False)[0]


def contents(outcomes: Outcomes, folder: Path) -> dict[str, Any]:
    """Return all that a store says."""
    store = outcomes.store
    store.write_rows(folder / "waiting")
    store.write_rejects(f"file://{folder}/rejects", 3, NOW, outcomes.counts["rejected"])
    return {
        "rows": {name: store.rows(name, 0).read().to_pylist() for name in sorted(outcomes.names.values())},
        "files": {path.name: LocalFiles().read(path).to_pylist() for path in sorted((folder / "waiting").iterdir())},
        "rejects": store.rejects().to_pylist(),
        "lines": (folder / "rejects" / "batch=3" / "part-00000.json").read_bytes().splitlines(),
        "reasons": store.reject_reasons(),
        "first": store.first_rejects(2),
        "questions": store.questions(),
    }


@pytest.mark.slow
def test_outcomes_are_the_same_in_memory_and_in_files(tmp_path: Path):
    """However little fits in memory; what was in files is gone once they are freed."""
    found = []
    for room in (1 << 30, 20_000, 0):
        own = tmp_path / str(room)
        outcomes = outcomes_of(own / "spill", room)
        found.append(contents(outcomes, own))
        assert contents(outcomes, own / "again") == found[-1]
        spilled = list((own / "spill").glob("*/*.arrow"))
        assert bool(spilled) is (room < 1 << 30)
        outcomes.store.free()
        assert not list((own / "spill").glob("*/*.arrow"))
    assert found[0] == found[1] == found[2]
    assert sum(map(len, found[0]["rows"].values())) > 150
    assert {name.removeprefix("number="): rows for name, rows in found[0]["files"].items()} == found[0]["rows"]
    assert [b64decode(json.loads(line)["raw"]) for line in found[0]["lines"]] == BAD
    assert sorted(one.count for one in found[0]["reasons"]) == [1, 1, 2]
    assert found[0]["first"] == BAD[:2]


@pytest.mark.slow
def test_rejects_are_written_instead_of_those_of_a_run_before(tmp_path: Path):
    """A batch that is run again has its own only, and one that is written half is not seen."""
    left = tmp_path / "rejects" / "batch=3"
    left.mkdir(parents=True)
    (left / "part-00007.json").write_text("of a run before")
    half = tmp_path / "rejects" / "_batch=3.new"
    half.mkdir()
    (half / "part-00000.json").write_text("half")
    outcomes = outcomes_of(tmp_path / "spill", 1 << 30)
    outcomes.store.write_rejects(f"file://{tmp_path}/rejects", 3, NOW, len(BAD))
    assert [path.name for path in (tmp_path / "rejects").iterdir()] == ["batch=3"]
    assert {path.name for path in left.glob("*.json")} == {"part-00000.json"}
    with pytest.raises(JobError, match="which s3a://b/r is not: run it on Spark"):
        outcomes.store.write_rejects("s3a://b/r", 3, NOW, len(BAD))


class Taken(NamedTuple):
    """How many bytes Arrow held at most, and how many bytes of rows were kept, in memory and in files."""

    held: int
    kept: int


def peak_of(count: int, folder: Path, room: int) -> Taken:
    """Return what so many rows of 20 tables took while they were converted, kept and read."""
    settings, before = Settings(formats=Formats("canal"), options={"zone": ZONE}), pa.default_memory_pool()
    types = {"id": "int", "a": "varchar(200)"}
    messages = [
        canal("INSERT", [{"id": str(i), "a": "x" * 200}], id=i, table=f"t{i % 20}", mysqlType=types)
        for i in range(1, count + 1)
    ]
    pieces = [(i, [(None, one) for one in messages[i : i + 1000]]) for i in range(0, count, 1000)]
    lane = Lane(count, lambda _: (batch_of(piece, first=first) for first, piece in pieces))
    pool = pa.proxy_memory_pool(before)
    pa.set_memory_pool(pool)
    try:
        batch = LocalBatch([lane], folder, room=room)
        outcomes, _ = convert(batch.convert, TypedRows(settings.tables()), settings, is_reduced=False)
        tables = {name: outcomes.store.rows(name, count) for name in outcomes.names.values()}
        size = sum(kept.size for kept in tables.values())
        assert sum(kept.read().num_rows for kept in tables.values()) == count
        outcomes.store.free()
    finally:
        pa.set_memory_pool(before)
    return Taken(pool.max_memory(), size)


@pytest.mark.slow
def test_what_is_held_does_not_grow_with_the_batch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Rows beyond the room are in files, and those that are read from there take none of Arrow's memory."""
    monkeypatch.setattr(outcome_rows, "_HELD", 1 << 18)
    # Without the engine, all messages are among what a task tells beside its rows.
    monkeypatch.setattr(knowledge, "_MOST", 1 << 18)
    few, many = (peak_of(count, tmp_path, 1 << 19) for count in (5_000, 20_000))
    # The rows on their way to the store, and the messages that they are made of, are beside those that it holds.
    most = (1 << 19) + 8 * (1 << 18)
    assert few.held < most
    assert many.held < most
    assert few.kept * 2 < many.kept > 2 * most


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/maps").exists(), reason="only Linux tells what a process maps")
def test_rows_in_files_are_mapped_only_while_somebody_has_them(tmp_path: Path):
    """What is read of a file that stays mapped counts as memory of the process until the batch ends."""

    def are_mapped() -> bool:
        return str(tmp_path) in Path("/proc/self/maps").read_text()

    def stay_mapped() -> bool:
        # A thread of Arrow's that has just read may hold its buffers for a moment.
        end = time.monotonic() + 10
        while are_mapped() and time.monotonic() < end:
            time.sleep(0.001)
        return are_mapped()

    outcomes = outcomes_of(tmp_path, 0)
    (name, *others) = outcomes.names.values()
    rows = outcomes.store.rows(name, 0).read()
    assert rows.num_rows
    assert are_mapped()
    del rows
    assert not stay_mapped()
    assert others
    assert outcomes.store.reject_reasons()
    assert not stay_mapped()
    outcomes.store.free()


@pytest.fixture
def few_files() -> Iterator[int]:
    """The number of files that this process may have open, which is small."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (FEW, hard))
    yield FEW
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@pytest.mark.slow
def test_rows_of_more_tables_than_a_process_may_have_files_are_kept_in_files(tmp_path: Path, few_files: int):
    """None is lost."""
    count = few_files * 2
    settings = Settings(formats=Formats("canal"), options={"zone": ZONE})
    records = [(None, canal("INSERT", [{"id": "1"}], id=i, table=f"t{i}")) for i in range(1, count + 1)]

    def run(knowledge: Knowledge) -> Outcomes:
        store = LocalStore(tmp_path / "spill", 0)
        for some in converter(pickle.loads(pickle.dumps(knowledge)))([batch_of(records)]):
            store.add(some)
        return merge_notes(store, store.notes)

    outcomes, _ = convert(run, TypedRows(settings.tables()), settings, is_reduced=False)
    rows = pa.concat_tables([outcomes.store.rows(name, 1).read() for name in outcomes.names.values()])
    outcomes.store.free()
    assert (rows.num_rows, len(outcomes.names)) == (count, count)
