"""What Spark's driver writes itself: small batches, and the tables of large ones that are small, are those that Spark writes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from cdcavro.spark.lake import Delta
from cdcavro.spark.pipeline import Files, lake_tables
from cdcavro.sync.native import native_tables
from support.jobs import DELTA, ICEBERG
from support.messages import SAMPLES, canal
from support.pipelines import Job

Made = Callable[..., Job]
# Not orders: they have the names of files, and the jobs read different ones.
STATE = ("id", "v", "cast(_cdc_unparsed AS string)")
LOG = ("_cdc_op", "_cdc_version", "id", "v")


def pair(spark: Any, tmp_path: Path, **lake: Any) -> list[Job]:
    """Return two jobs: what one writes Spark plans, what the other writes its driver."""
    jobs = []
    for is_native in (False, True):
        folder = tmp_path / str(is_native)
        folder.mkdir()
        jobs.append(Job(folder, Delta(str(folder / "lake")), {**lake, "is_native": is_native}, spark=spark))
    return jobs


def messages(first: int, count: int, type: str = "INSERT", at: int = 1, **more: Any) -> list[bytes]:
    """Return messages of rows with successive keys; `at` is the number of the first one."""
    return [canal(type, [{"id": str(first + i), "v": str(at)}], id=at + i, **more) for i in range(count)]


@pytest.fixture
def commits(monkeypatch) -> list[str]:
    """Return what counts the writes of the driver by their tables."""
    found: list[str] = []
    write = native_tables.NativeTables.write

    def counted(self: Any, tables: Any) -> Any:
        found.extend(name.table for _, name, _ in tables)
        return write(self, tables)

    monkeypatch.setattr(native_tables.NativeTables, "write", counted)
    return found


@pytest.mark.parametrize("kind", [DELTA, ICEBERG])
def test_the_shop_is_the_same(job: Made, commits, kind):
    """Types, renames, drops, truncates and deletes of a real server, in one batch."""
    own = job(kind, is_native=True, is_changelog=True)
    own.send(*(SAMPLES / "canal" / "shop.jsonl").read_bytes().splitlines())
    (report,) = own.run()
    assert report.counts["rejected"] == 0
    assert len(set(commits)) == 6
    own.check_shop("canal")


def test_batches_of_any_size_end_in_the_same_tables(spark, tmp_path, monkeypatch, commits):
    """A table of a large batch is collected if it is small; one that is large in the lake is merged by Spark."""
    monkeypatch.setattr(lake_tables, "COLLECTED", 20_000)
    planned, written = pair(spark, tmp_path, is_changelog=True)
    cuts = [
        messages(0, 60),
        [*messages(0, 20, "DELETE", 100), *messages(10, 30, "UPDATE", 200), *messages(0, 5, at=300, table="other")],
        messages(50, 20, "UPDATE", 400),
    ]
    for cut in cuts:
        for job in (planned, written):
            job.send(*cut)
            job.run()
    for suffix, columns in (("", STATE), ("changes", LOG)):
        assert written.rows("d.t", *columns, suffix=suffix) == planned.rows("d.t", *columns, suffix=suffix)
    assert commits


def test_a_table_that_is_large_in_the_lake_is_merged_by_spark(job: Made, monkeypatch, commits):
    """And goes on being written by the driver when it is small again."""
    own = job(is_native=True)
    for most in (1 << 30, -1, 1 << 30):
        monkeypatch.setattr(native_tables, "MOST_BYTES", most)
        own.send(*messages(own.files * 5, 10, at=1 + own.files * 1_000))
        own.run()
    assert commits == ["t", "t"]
    assert [row[0] for row in own.rows("d.t", "id")] == list(range(20))


def test_rows_that_wait_are_written_by_whichever_writes_the_next_batch(job: Made, monkeypatch):
    """They are in files that both read."""
    own = job(is_native=True)
    for room in (1 << 30, 1, 1 << 30):
        monkeypatch.setattr(lake_tables, "COLLECTED", room)
        own.send(*messages(own.files * 5, 5, at=1 + own.files * 5))
    own.run(merge_every=2)
    assert [row[0] for row in own.rows("d.t", "id")] == list(range(15))


def test_what_the_library_does_not_reach_is_written_by_spark(spark, tmp_path, commits):
    """Such as a folder whose name looks like a code."""
    folder = tmp_path / "100%41"
    folder.mkdir()
    own = Job(folder, Delta(str(folder / "lake")), {"is_native": True}, spark=spark)
    own.source = Files(str(tmp_path / "in"), most=1)
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "0.jsonl").write_bytes(b"\n".join(messages(0, 5)))
    (report,) = own.run()
    assert (report.waiting, commits) == ({}, [])
    assert [row[0] for row in own.rows("d.t", "id")] == list(range(5))


def test_what_the_library_refuses_is_tried_by_spark_in_the_same_batch(spark, job: Made, monkeypatch):
    """The rows wait only if Spark refuses them as well."""

    def refused(self: Any, tables: Any) -> Any:
        return [native_tables.TableResult(table.number, [], "a feature that is not known") for table, *_ in tables]

    monkeypatch.setattr(native_tables.NativeTables, "write", refused)
    own = job(is_native=True)
    own.send(*messages(0, 5))
    (report,) = own.run()
    assert report.waiting == {}
    assert [row[0] for row in own.rows("d.t", "id")] == list(range(5))
