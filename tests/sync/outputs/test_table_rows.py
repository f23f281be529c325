"""Table rows that wait: what a kill leaves of them. And what is said of lake tables that lack rows that were written.

They are not there, were made anew, or are older.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable
from pyiceberg.table import Table
from pyiceberg.table.update import SetSnapshotRefUpdate

from cdcavro.errors import FileError
from cdcavro.lake import TypedRows
from cdcavro.lake.account import LakeTable
from cdcavro.lake.lakes import Attempt
from cdcavro.sync.batches import BatchReport
from cdcavro.sync.local.local_outcomes import ROWS, LocalFiles
from cdcavro.sync.native.delta_lake import NativeDelta, NativeDeltaTable
from cdcavro.sync.native.iceberg_lake import NativeIceberg
from cdcavro.sync.native.native_state import facts_of
from cdcavro.sync.native.native_tables import NativeTables, TableResult, look
from cdcavro.sync.outputs.routes import Route, Routes
from cdcavro.sync.outputs.sink_settings import LakeNames
from cdcavro.sync.outputs.table_rows import TableRows, WaitingRows
from cdcavro.sync.outputs.writer import BatchRows
from cdcavro.sync.pipeline import finish_reset, pause, reset
from cdcavro.sync.status import read_status
from cdcavro.table import TableName
from cdcavro.table.tables import Tables
from support.local_pipelines import DELTA, ICEBERG, LocalJob, lake_section
from support.messages import canal
from support.waiting_rows import FACTS, as_table, typed_rows


def test_rows_of_which_forgetting_was_cut_off_do_not_wait(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """What is left of them is no half of a table's rows, which could not be read."""
    waiting = WaitingRows(tmp_path)
    (tmp_path / "3" / "batch=7" / "rows").mkdir(parents=True)
    assert waiting.tables() == [3]

    def killed(path: Path, **_: Any) -> None:
        if path.exists():
            raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(shutil, "rmtree", killed)
        with pytest.raises(KeyboardInterrupt):
            waiting.forget(3)
    assert waiting.tables() == []
    (tmp_path / "3" / "batch=9").mkdir(parents=True)
    waiting.forget(3)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("since", [None, datetime(2026, 1, 2, tzinfo=UTC)])
def test_rows_that_wait_know_since_when_they_may_be_written(tmp_path: Path, since: datetime | None):
    """A batch that was run before it had to wait may have left them in the table, without a transaction on Spark."""
    rows = pa.table([[None] * 3] * len(ROWS), schema=ROWS)
    waiting = WaitingRows(tmp_path)
    waiting.keep(LocalFiles(), 3, BatchRows(7, rows, FACTS, Attempt(since is None, since)))
    (found,) = waiting.read(LocalFiles(), 3, 8)
    assert (found.batch, found.rows.num_rows, found.attempt) == (7, 3, Attempt(since=since))
    assert waiting.counts() == {3: 3}
    waiting.forget(3)
    assert waiting.counts() == {}


GONE = "d.t: its lake table is not there, so rows up to batch {} may be missing: `cdcavro sync reset d.t` and a new snapshot bring them back"
OTHER = GONE.replace("is not there", "was made anew or restored")


class Job(LocalJob):
    """A pipeline whose runs say which lake tables lack rows."""

    def __init__(self, folder: Path, kind: str = DELTA, **lake: Any) -> None:
        super().__init__(folder, lake_section(kind, folder, **lake))
        self.ids = 0

    def place(self, table: str = "t", suffix: str = "") -> Path:
        """Return the folder of a lake table."""
        return self.folder / ("lake" if "delta" in self.lake else "wh") / "d" / f"{table}{suffix}"

    def insert(self, *tables: str) -> None:
        """Send a row of each of some tables, by default of one."""
        rows = []
        for table in tables or ("t",):
            self.ids += 1
            rows.append(canal("INSERT", [{"id": str(self.ids)}], id=self.ids, table=table))
        self.send(*rows)

    def state(self, sql: str, table: str = "t") -> None:
        """Send a statement."""
        self.ids += 1
        self.send(
            canal(sql.partition(" ")[0].replace("DROP", "ERASE"), [], id=self.ids, isDdl=True, sql=sql, table=table)
        )

    def told(self, **more: Any) -> list[str]:
        """Run, and return what is said of lake tables that lack rows, before the first batch and by batches."""
        said: list[str] = []
        reports: list[BatchReport] = []
        self.pipeline(**more).run(once=True, say=reports.append, warn=said.extend)
        assert [report.waiting for report in reports if report.waiting] == []
        return said + [step for report in reports for step in report.steps if "may be missing" in step]

    def checked(self, **more: Any) -> list[str]:
        """Check, and return what is said."""
        said: list[str] = []
        self.pipeline(**more).check(said.extend)
        return said


@pytest.fixture(params=[DELTA, ICEBERG])
def kind(request: pytest.FixtureRequest) -> str:
    """Return a kind of lake."""
    return str(request.param)


@pytest.mark.slow
def test_a_lake_table_that_was_removed_is_told_until_it_is_reset(tmp_path: Path, kind: str):
    """At the start and by a check, before and behind the batch that makes it anew; then by status; other tables are not named."""
    job = Job(tmp_path, kind)
    job.insert("t", "other")
    job.insert()
    assert (job.told(), job.told(), job.checked()) == ([], [], [])
    shutil.rmtree(job.place())
    assert (job.told(), job.checked(), job.told()) == ([GONE.format(1)], [GONE.format(1)], [GONE.format(1)])
    job.insert("t", "other")
    assert job.told() == [GONE.format(1), OTHER.format(1)]
    assert job.rows("d.t", "id") == [(4,)]
    job.insert()
    assert (job.told(), job.checked()) == ([OTHER.format(1)], [OTHER.format(1)])
    told = {table.name: table.lacks for table in read_status(tmp_path / "state").tables}
    assert told == {"d.t": OTHER.format(1).removeprefix("d.t: "), "d.other": None}
    reset(tmp_path / "state", ["d.t"])
    job.insert()
    assert (job.told(), job.told(), job.checked()) == ([], [], [])
    shutil.rmtree(job.place())
    assert job.told() == [GONE.format(4)]


@pytest.mark.slow
def test_a_lake_table_that_is_older_is_told(tmp_path: Path, kind: str):
    """Once rows come, and by a check; also if it lacks but the last rows, and no more if the newer one is put back before."""
    job = Job(tmp_path, kind)
    job.insert()
    job.told()
    shutil.copytree(job.place(), tmp_path / "old")
    job.insert()
    job.told()
    job.place().rename(tmp_path / "new")
    shutil.copytree(tmp_path / "old", job.place())
    assert job.checked() == [OTHER.format(1)]
    shutil.rmtree(job.place())
    shutil.copytree(tmp_path / "new", job.place())
    assert (job.checked(), job.told()) == ([], [])
    shutil.rmtree(job.place())
    shutil.copytree(tmp_path / "old", job.place())
    job.insert()
    assert OTHER.format(1) in job.told()
    assert job.told() == job.checked() == [OTHER.format(1)]


def _dropped(job: Job) -> None:
    job.state("DROP TABLE t")
    job.told()
    shutil.rmtree(job.place())


def _dropped_meanwhile(job: Job) -> None:
    shutil.rmtree(job.place())
    job.state("DROP TABLE t")
    job.run()


def _truncated(job: Job) -> None:
    job.state("TRUNCATE TABLE t")
    job.told()
    shutil.rmtree(job.place())


def _truncated_meanwhile(job: Job) -> None:
    shutil.rmtree(job.place())
    job.state("TRUNCATE TABLE t")
    job.run()


def _reset(job: Job) -> None:
    shutil.rmtree(job.place())
    reset(job.folder / "state", ["d.t"])


def _kept(job: Job) -> None:
    shutil.rmtree(job.place())
    reset(job.folder / "state", ["d.t"], is_kept=True)
    job.insert()
    assert job.told() == []
    finish_reset(job.folder / "state", ["d.t"])


def _adopted(job: Job) -> None:
    shutil.rmtree(job.place())
    job.run(lake={**job.lake, "adopt": True})


def _paused(job: Job) -> None:
    shutil.rmtree(job.place())
    pause(job.folder / "state", ["d.t"], is_paused=True)


def _left_out(job: Job) -> None:
    shutil.rmtree(job.place())
    job.more["tables"] = {"zone": "UTC", "exclude": ["d.t"]}


def _renamed(job: Job) -> None:
    job.state("RENAME TABLE t TO u")
    job.insert("u")


def _swapped(job: Job) -> None:
    for table in ("_t_gho", "t"):
        job.insert(table)
    job.state("RENAME TABLE t TO _t_del, _t_gho TO t")
    job.insert()


def _moved(job: Job) -> None:
    """The state and its lake are elsewhere."""
    new = job.folder.parent / "moved"
    new.mkdir()
    for name in ("state", "lake"):
        (job.folder / name).rename(new / name)
    job.more["state"], job.lake["delta"] = str(new / "state"), str(new / "lake")


def _compacted(job: Job) -> None:
    table = DeltaTable(job.place())
    table.optimize.compact()
    table.vacuum(0, dry_run=False, enforce_retention_duration=False)
    table.create_checkpoint()
    for commit in (job.place() / "_delta_log").glob("*[0-8].json"):
        commit.unlink()


def _not_current(job: Job) -> None:
    job.lake |= {"current": False, "changelog": True}
    job.run()
    shutil.rmtree(job.place())


def _of_an_older_version(job: Job) -> None:
    """The state of an older version of this project says nothing of lake tables."""
    (job.folder / "state" / "lake_tables.json").unlink()
    shutil.rmtree(job.place())


def _killed(job: Job) -> None:
    """A batch is written, and the state does not say so."""
    shutil.copytree(job.folder / "state", job.folder / "before")
    for name in ("t", "new"):
        job.insert(name)
    job.run()
    shutil.rmtree(job.folder / "state")
    (job.folder / "before").rename(job.folder / "state")


EVENTS: list[Callable[[Job], None]] = [
    _dropped,
    _dropped_meanwhile,
    _truncated,
    _truncated_meanwhile,
    _reset,
    _kept,
    _adopted,
    _paused,
    _left_out,
    _renamed,
    _swapped,
    _moved,
    _compacted,
    _not_current,
    _of_an_older_version,
    _killed,
]


@pytest.mark.slow
@pytest.mark.parametrize("event", EVENTS, ids=[one.__name__.removeprefix("_") for one in EVENTS])
def test_nothing_is_told_of_a_lake_table_that_lacks_nothing(tmp_path: Path, event: Callable[[Job], None]):
    """Neither at the next start, nor by a check, nor once rows come; whatever was done before."""
    job = Job(tmp_path / "own")
    for _ in range(12):
        job.insert()
    job.run()
    event(job)
    assert (job.checked(), job.told()) == ([], [])
    for name in ("t", "u"):
        job.insert(name)
        assert (job.told(), job.checked(), job.told()) == ([], [], [])


@pytest.mark.slow
@pytest.mark.parametrize("form", ["current", "soft", "history"])
def test_a_lake_table_that_keeps_what_was_truncated_lacks_it(tmp_path: Path, form: str):
    """Of a current state, nothing is missing behind a TRUNCATE; what keeps versions has all rows from before it."""
    job = Job(tmp_path, form=form)
    job.insert()
    job.state("TRUNCATE TABLE t")
    assert (job.told(), job.told()) == ([], [])
    shutil.rmtree(job.place())
    job.insert()
    assert job.told() == ([] if form == "current" else [GONE.format(1), OTHER.format(1)])
    job.state("TRUNCATE TABLE t")
    assert job.told() == ([] if form == "current" else [OTHER.format(1)])
    job.state("DROP TABLE t")
    job.told()
    assert job.told() == job.checked() == []
    shutil.rmtree(job.place())
    assert job.told() == job.checked() == []


LOG = GONE.replace("lake table", "changelog")


@pytest.mark.slow
def test_a_changelog_is_told_by_itself(tmp_path: Path, kind: str):
    """It is not emptied by a TRUNCATE; and it may be removed once it is not written any more, or its table is dropped."""
    job = Job(tmp_path, kind, changelog=True)
    job.insert()
    job.run()
    shutil.rmtree(job.place(suffix="~~changes"))
    job.state("TRUNCATE TABLE t")
    job.insert()
    assert job.told() == [LOG.format(0), LOG.format(0).replace("is not there", "was made anew or restored")]
    assert job.told(lake={**job.lake, "changelog": False}) == []
    assert len(job.told()) == len(job.checked()) == 1
    job.state("DROP TABLE t")
    job.told()
    for suffix in ("", "~~changes"):
        shutil.rmtree(job.place(suffix=suffix))
    assert (job.told(), job.checked()) == ([], [])
    job.insert()
    assert (job.told(), job.checked()) == ([], [])


@pytest.mark.slow
def test_the_changelog_of_a_table_without_a_key_is_told(tmp_path: Path):
    """It has nothing else."""
    job = Job(tmp_path)
    job.send(canal("INSERT", [{"id": "1"}], id=1, pkNames=None))
    assert job.told() == job.told() == []
    shutil.rmtree(job.place(suffix="~~changes"))
    assert job.told() == job.checked() == [LOG.format(0)]


ROUTE = Route("d.s*", "d.t", shards=True)
SHARDS = {"route": [{"from": "d.s*", "to": "d.t", "shards": True}]}


@pytest.mark.slow
def test_the_lake_table_of_shards_is_told_once(tmp_path: Path, kind: str):
    """Each shard begins when its rows come, and may be emptied and dropped; what others lack stays missing."""
    job = Job(tmp_path, kind)
    job.more |= SHARDS
    for tables in (["s1"], ["s1", "s2"], ["s2"]):
        job.insert(*tables)
        assert (job.told(), job.checked()) == ([], [])
    for statement in ("TRUNCATE TABLE s1", "DROP TABLE s1"):
        job.state(statement, "s1")
        assert (job.told(), job.checked()) == ([], [])
    job.insert("s1")
    assert (job.told(), job.checked()) == ([], [])
    shutil.rmtree(job.place())
    assert job.told() == job.checked() == [GONE.format(5)]
    job.insert("s1", "s2")
    first, second = job.told()
    assert (first, re.sub(r" \(d\.s[12]\)", "", second)) == (GONE.format(5), OTHER.format(5))
    job.state("DROP TABLE s1", "s1")
    assert job.told() == job.told() == job.checked() == [OTHER.format(5)]
    reset(tmp_path / "state", ["d.t"])
    assert (job.told(), job.checked()) == ([], [])


@pytest.mark.slow
def test_of_a_drop_that_is_not_followed_nothing_is_told(tmp_path: Path):
    """The lake table keeps its rows behind the DROP, and no source could bring them back if somebody removes it."""
    job = Job(tmp_path, exclude_statements=["drop.table"])
    job.insert()
    job.state("DROP TABLE t")
    assert (job.told(), job.told()) == ([], [])
    shutil.rmtree(job.place())
    assert job.told() == job.checked() == []
    job.insert()
    assert job.told() == job.checked() == []
    shutil.rmtree(job.place())
    assert job.told() == job.checked() == [GONE.format(2)]


@pytest.mark.slow
def test_of_shards_that_are_all_dropped_nothing_is_told(tmp_path: Path):
    """Until the last one is dropped, rows of others may be missing."""
    job = Job(tmp_path)
    job.more |= SHARDS
    job.insert("s1", "s2")
    job.state("DROP TABLE s1", "s1")
    job.run()
    job.place().rename(tmp_path / "kept")
    assert job.told() == job.checked() == [GONE.format(0)]
    (tmp_path / "kept").rename(job.place())
    job.state("DROP TABLE s2", "s2")
    job.run()
    shutil.rmtree(job.place())
    assert job.told() == job.checked() == []


class _Reversed(NativeTables):
    """Writes the last shard first, as Spark comes behind a writer that refuses one of them."""

    def write(self, tables: Sequence[Any]) -> list[TableResult]:
        return super().write(tables[::-1])


@pytest.mark.slow
def test_shards_that_are_written_in_another_order_miss_nothing(tmp_path: Path):
    """Whichever comes first found the lake table as it was before, and not as the other one left it."""
    maker, known, names = TypedRows(Tables()), dict[str, LakeTable](), LakeNames(routes=Routes((ROUTE,)))
    waiting = WaitingRows(tmp_path / "waiting")
    for number in range(2):
        messages = [canal("INSERT", [{"id": "1"}], id=number + 1, table=table) for table in ("s1", "s2")]
        for table, typed in typed_rows(maker, *messages).items():
            rows, own = as_table(typed), maker.tables.tables[table]
            names.name(own, maker.tables.tables)
            waiting.keep(
                LocalFiles(), table, BatchRows(number, rows, facts_of(rows, own.versions), Attempt(is_first=True))
            )
        # Each with a start.
        writer = _Reversed(NativeDelta(str(tmp_path / "lake")), "the job")
        written = TableRows(writer, waiting, 1, lake=known).write_delayed(
            LocalFiles(), number + 1, maker.tables.tables, names
        )
        assert [(one.number, one.error) for one in written] == [(0, None), (1, None)]
        assert [step for one in written for step in one.steps if "missing" in step] == []


@pytest.mark.slow
def test_a_catalog_that_is_a_database_is_asked_by_a_check_and_a_write_alone(tmp_path: Path):
    """At the start, each table would be a request; what is known to lack rows is told all the same."""
    job = Job(tmp_path, ICEBERG)
    catalog = {"type": "sql", "uri": f"sqlite:///{tmp_path}/catalog.db", "warehouse": f"file://{tmp_path}/wh"}
    job.lake = {"iceberg": "ice", "catalog": catalog}
    job.insert()
    assert job.told() == job.checked() == []
    lake = job.native
    assert isinstance(lake, NativeIceberg)
    lake.files.drop_table(("d", "t"))
    assert (job.told(), job.checked()) == ([], [GONE.format(0)])
    job.insert()
    assert job.told() == [OTHER.format(0)]
    assert job.told() == job.checked() == [OTHER.format(0)]


@pytest.mark.parametrize("is_opened", [False, True])
def test_a_lake_table_that_is_not_there_is_asked_for_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_opened: bool
):
    """But one that has had another name before is asked for by both."""
    asked: list[str] = []
    for method, answer in (("is_there", False), ("properties", None)):
        monkeypatch.setattr(NativeDeltaTable, method, lambda own, answer=answer: asked.append(own.folder) or answer)
    for schema, names in ((None, 1), ("s", 2)):
        asked.clear()
        assert look(NativeDelta(str(tmp_path)), TableName("d", schema, "t"), "", is_opened=is_opened) is None
        assert len(asked) == len({*asked}) == names


@pytest.mark.slow
def test_a_reset_that_cannot_be_noted_changes_nothing(tmp_path: Path):
    """Neither half of it is done."""
    job = Job(tmp_path)
    job.insert()
    job.run()
    account = tmp_path / "state" / "account.json"
    stated = account.read_bytes()
    account.write_text("{")
    before = sorted((tmp_path / "state").rglob("*"))
    with pytest.raises(FileError, match="the account of a job"):
        reset(tmp_path / "state", ["d.t"])
    assert sorted((tmp_path / "state").rglob("*")) == before
    account.write_bytes(stated)
    job.insert()
    job.run()
    assert job.rows("d.t", "id") == [(1,), (2,)]


@pytest.mark.slow
def test_rows_that_are_written_with_a_later_batch_are_told_of_once_they_are_written(tmp_path: Path):
    """Until then they are in the state."""
    job = Job(tmp_path)
    job.more["merge_every"] = 2
    for _ in range(3):
        job.insert()
    assert (job.told(), job.told()) == ([], [])
    shutil.rmtree(job.place())
    assert job.told() == job.checked() == [GONE.format(2)]


@pytest.mark.slow
def test_iceberg_may_forget_old_snapshots_and_a_rollback_is_told(tmp_path: Path):
    """The number of the newest snapshot stays; a rollback puts an older one in its place, which a batch sees, and a check."""
    job = Job(tmp_path, ICEBERG)
    for _ in range(4):
        job.insert()
    job.run()
    *old, last = (one.snapshot_id for one in _iceberg(job).metadata.snapshots)
    _iceberg(job).maintenance.expire_snapshots().by_ids(old).commit()
    assert [one.snapshot_id for one in _iceberg(job).metadata.snapshots] == [last]
    assert (job.checked(), job.told()) == ([], [])
    job.insert()
    assert (job.told(), job.checked()) == ([], [])
    with _iceberg(job).transaction() as transaction:
        # What `rollback_to_snapshot` of Spark does.
        transaction._apply((SetSnapshotRefUpdate(ref_name="main", type="branch", snapshot_id=last),))
    assert job.checked() == [OTHER.format(4)]
    job.insert()
    assert job.told() == job.checked() == [OTHER.format(4)]


def _iceberg(job: Job) -> Table:
    lake = job.native
    assert isinstance(lake, NativeIceberg)
    return lake.files.load_table(("d", "t"))


@pytest.mark.slow
def test_a_lake_table_that_is_removed_during_a_run_is_told(tmp_path: Path, kind: str):
    """Its rows are pending until it is made anew, with the next run or the next version of its table."""
    job = Job(tmp_path, kind)
    for _ in range(3):
        job.insert()
    job.state("ALTER TABLE t ADD COLUMN b int")
    said: list[tuple[list[str], list[str]]] = []

    def say(report: BatchReport) -> None:
        if report.number == 1:
            shutil.rmtree(job.place())
        said.append(([*report.waiting], [step for step in report.steps if "missing" in step]))

    job.pipeline().run(once=True, say=say)
    assert said == [([], []), ([], []), (["d.t"], []), ([], [OTHER.format(1)])]
    assert job.told() == job.checked() == [OTHER.format(1)]
    assert job.rows("d.t", "id") == [(3,)]
