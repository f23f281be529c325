"""Batches to the tables of a native lake: each table by itself, each lake table its pipeline's, and each changelog."""

from __future__ import annotations

import re
import shutil
import time
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from threading import Barrier, Lock
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, Field, write_deltalake
from deltalake.schema import PrimitiveType

from cdcavro import to_changes
from cdcavro.change.model import replace as replace_change
from cdcavro.errors import FileError
from cdcavro.lake import TypedRows
from cdcavro.lake.account import AccountFile, LakeTable, note_mark
from cdcavro.lake.evolution import EXCEPTION
from cdcavro.lake.job_state import JobState
from cdcavro.lake.lakes import FORMS, NAME, OWNER, SUFFIXES, Attempt
from cdcavro.lake.merge import NO_KEY
from cdcavro.lake.sql_statements import AT, CHANGELOG, ORDER
from cdcavro.sync.batches import Batches
from cdcavro.sync.local.local_runner import LocalBatch
from cdcavro.sync.local.local_sinks import sink_of
from cdcavro.sync.native import delta_lake, native_tables, row_images
from cdcavro.sync.native.delta_lake import NativeDelta, NativeDeltaTable
from cdcavro.sync.native.delta_log import commit, schema_of
from cdcavro.sync.native.iceberg_lake import NativeIcebergTable
from cdcavro.sync.native.native_columns import Mark, NativeTable
from cdcavro.sync.native.native_state import NativeState, facts_of
from cdcavro.sync.native.native_tables import NativeChangelog, NativeTables, TableResult, rows_not_held
from cdcavro.sync.outputs.sink_settings import Job
from cdcavro.sync.outputs.writer import BatchRows
from cdcavro.sync.pipeline import reset
from cdcavro.table import TableName
from cdcavro.table.history import Table
from cdcavro.table.tables import Tables
from support.kafka_server import Record
from support.keyed_changes import change
from support.lake_values import table_of
from support.local_pipelines import DELTA, ICEBERG, LocalJob, lake_section, tuples
from support.local_shop import Placed, lanes_of
from support.messages import canal
from support.older_values import LACKING, LATE
from support.shop_state import as_came
from support.shop_tables import MESSAGES, shop

FIRST = Attempt(is_first=True)


class Pipeline:
    """Writes messages to native tables, as a pipeline does that goes on, and one that has just started."""

    def __init__(self, folder: Path, job: str = "the job", **settings: Any) -> None:
        self.maker, self.batch = TypedRows(Tables()), 0
        self.lake, self.job, self.settings = NativeDelta(str(folder)), job, settings
        self.tables = self.start()

    def start(self) -> NativeTables:
        """Return tables that know nothing of the lake's."""
        self.tables = NativeTables(self.lake, self.job, **self.settings)
        return self.tables

    def parts(
        self, messages: Sequence[bytes], attempt: Attempt = FIRST
    ) -> list[tuple[Any, TableName, list[BatchRows]]]:
        """Return the rows of a batch of messages."""
        rows = self.maker.of_batch([to_changes(one, "canal") for one in messages]).rows
        self.batch += 1
        found = []
        for table in self.maker.tables.tables:
            own = table_of([row for row in rows if row.table == table.number])
            part = BatchRows(self.batch, own, facts_of(own, table.versions), attempt)
            found.append((table, table.versions[0].table, [part] if len(own) else []))
        return found

    def write(self, *messages: bytes) -> list[TableResult]:
        """Write a batch of messages."""
        return self.tables.write(self.parts(messages))

    def rows(self, *names: str, table: str = "t", suffix: str = "") -> list[tuple[Any, ...]]:
        """Return columns of the rows of a lake table."""
        held = self.lake.table(TableName("d", None, table), suffix).read(names)
        return sorted((tuple(row.values()) for row in held.to_pylist()), key=repr)


ROWS = [
    canal("INSERT", [{"id": "1", "a": "1"}], id=1),
    canal("INSERT", [{"id": "2", "a": "2"}], id=2),
    canal("UPDATE", [{"id": "1", "a": "3"}], id=3, old=[{"a": "1"}]),
    canal("DELETE", [{"id": "2", "a": "2"}], id=4),
]
ADD_COLUMN = canal("ALTER", [], id=5, isDdl=True, sql="ALTER TABLE t ADD COLUMN b INT NOT NULL DEFAULT 7")
MORE = canal("INSERT", [{"id": "3", "a": "4", "b": "5"}], id=6)
LAST = canal("INSERT", [{"id": "4", "a": "4", "b": "6"}], id=7)


@pytest.mark.slow
def test_who_writes_a_lake_table_by_turns_knows_of_no_version_from_before_the_other_one(tmp_path: Path):
    """The first one finds the table, and cannot write it; once it does, the other one has made the table newer."""
    pipeline, known = Pipeline(tmp_path), dict[str, LakeTable]()
    name = TableName("d", None, "t")

    def write(tables: NativeTables, *messages: bytes) -> list[str | None]:
        (result,) = tables.write(pipeline.parts(messages))
        return [result.error] if result.error else [note_mark(known, name, one, pipeline.batch) for one in result.marks]

    assert write(pipeline.start(), ROWS[0]) == [None]
    first, other = NativeTables(pipeline.lake, pipeline.job, behavior=EXCEPTION), pipeline.start()
    (error,) = write(first, ADD_COLUMN, MORE)
    assert error is not None
    first.forget(name)
    assert write(other, LAST) == [None]
    other.forget(name)
    assert write(first, canal("INSERT", [{"id": "5", "a": "4", "b": "6"}], id=8)) == [None]


def test_as_many_tables_are_written_at_a_time_as_there_is_room_for_their_rows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """A table of more rows than there is room for is written alone."""
    large = [canal("INSERT", [{"id": str(n), "x": "1"}], id=n, table="large") for n in range(1, 9)]
    small = [canal("INSERT", [{"id": "1", "x": "1"}], id=n, table=f"u{n}") for n in range(10, 16)]
    parts = Pipeline(tmp_path).parts([*large, *small])
    sizes = {table.number: sum(part.size for part in own) for table, _, own in parts}
    least, most = min(sizes.values()), max(sizes.values())
    room = 2 * least + least // 2
    assert most > room
    assert sorted(sizes.values())[-2] == least
    monkeypatch.setattr(native_tables, "_OF_TABLE", room // 4)
    pair, lock, now, seen, write = Barrier(2), Lock(), [], [], NativeTables._write

    def watched(self: NativeTables, table: Table, *own: Any) -> TableResult:
        size = sizes[table.number]
        with lock:
            now.append(size)
            seen.append(sorted(now))
        if size == least:
            # There are always two.
            pair.wait(60)
            time.sleep(0.02)
        result = write(self, table, *own)
        with lock:
            now.remove(size)
        return result

    monkeypatch.setattr(NativeTables, "_write", watched)
    results = NativeTables(NativeDelta(str(tmp_path)), "the job").write(parts)
    assert {one.error for one in results} == {None}
    assert {tuple(one) for one in seen} == {(least,), (least, least), (most,)}


@pytest.mark.slow
def test_batches_of_several_tables_are_written_and_what_changes_is_said(tmp_path: Path):
    """Each to its current state and its changelog; a batch that is written again changes nothing."""
    pipeline = Pipeline(tmp_path, is_changelog=True, parallel=2)
    others = [canal("INSERT", [{"id": str(n), "x": "1"}], id=n, table=f"u{n}") for n in range(4)]
    assert {(one.error, *one.steps) for one in pipeline.write(*ROWS, *others)} == {(None,)}
    assert pipeline.rows("id", "a") == [(1, 3)]
    assert pipeline.rows("_cdc_op", "id", "a", suffix="changes") == [
        ("b", 1, 1), ("c", 1, 1), ("c", 2, 2), ("d", 2, 2), ("u", 1, 3),
    ]  # fmt: skip
    assert [pipeline.rows("id", table=f"u{n}") for n in range(4)] == [[(n,)] for n in range(4)]
    parts = pipeline.parts([ADD_COLUMN, MORE])
    for attempt in (FIRST, Attempt(), Attempt(since=None)):
        written = pipeline.tables.write(
            [(table, name, [one._replace(attempt=attempt) for one in own]) for table, name, own in parts]
        )
        assert {one.error for one in written} == {None}
        if attempt is FIRST:
            (number,) = [table.number for table, name, _ in parts if name.table == "t"]
            assert [one.steps for one in written if one.number == number] == [["column 'b' is added"] * 2]
        pipeline.start()
    assert pipeline.rows("id", "a", "b") == [(1, 3, 7), (3, 4, 5)]
    assert len(pipeline.rows("id", suffix="changes")) == 6
    properties = pipeline.lake.table(TableName("d", None, "t"), "changes").properties() or {}
    assert (properties[OWNER], properties[NAME]) == ("the job", '["d", null, "t"]')


@pytest.mark.slow
def test_a_fault_of_a_table_keeps_only_its_own_rows_waiting(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """They are written with the next batch, from the oldest on."""
    pipeline = Pipeline(tmp_path, is_changelog=True, behavior="exception")
    pipeline.write(*ROWS, canal("INSERT", [{"id": "1"}], id=9, table="u"))
    parts = pipeline.parts([ADD_COLUMN, MORE, canal("INSERT", [{"id": "2"}], id=10, table="u")])
    written = {one.number: one.error for one in pipeline.tables.write(parts)}
    assert written == {0: "schema t: its lake table would change: column 'b' is added", 1: None}
    assert (pipeline.rows("id"), pipeline.rows("id", table="u")) == ([(1,)], [(1,), (2,)])
    later = pipeline.parts([LAST])
    pipeline.tables.behavior = "lenient"
    (table, name, waiting), (_, _, [new]) = parts[0], later[0]
    assert pipeline.tables.write([(table, name, [*waiting, new])])[0].error is None
    assert pipeline.rows("id", "b") == [(1, 7), (3, 5), (4, 6)]
    # What is none of a table's own is raised.
    monkeypatch.setattr(NativeState, "merge", lambda *_, **__: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        pipeline.write(canal("INSERT", [{"id": "9"}], id=99))


def test_a_table_without_a_key_has_a_changelog_only_which_is_said_once(tmp_path: Path):
    """Its rows are all appended."""
    pipeline = Pipeline(tmp_path)
    keyless = [canal("INSERT", [{"id": "1"}], id=n, pkNames=[]) for n in (1, 2)]
    assert [pipeline.write(one)[0].steps for one in keyless] == [[NO_KEY], []]
    assert pipeline.rows("_cdc_op", "id", suffix="changes") == [("c", 1)] * 2
    assert pipeline.lake.table(TableName("d", None, "t")).properties() is None


def test_a_table_that_goes_on_with_the_lake_table_of_one_that_is_gone_loses_nothing_to_late_rows(tmp_path: Path):
    """A DROP empties it; what comes late of the old one takes no column from the new one."""
    pipeline = Pipeline(tmp_path, behavior="evolve")
    old = pipeline.parts(ROWS[:1])
    pipeline.tables.write(old)
    pipeline.write(canal("ERASE", [], id=2, isDdl=True, sql="DROP TABLE t"))
    assert pipeline.rows("id") == []
    pipeline.write(canal("INSERT", [{"id": "7", "z": "1"}], id=3))
    assert [one.steps for one in pipeline.write(canal("INSERT", [{"id": "8", "z": "2"}], id=4))] == [[], []]
    assert pipeline.start().write(old)[0].error is None
    assert pipeline.rows("id", "z") == [(7, 1), (8, 2)]


@pytest.mark.slow
def test_a_lake_table_of_another_pipeline_is_refused_and_once_adopted_has_nothing_twice(tmp_path: Path):
    """Whose it is stands in its properties; a pipeline that begins anew reads all again."""
    first = Pipeline(tmp_path, "first", is_changelog=True)
    first.write(*ROWS)
    first.write(ADD_COLUMN, MORE)
    before = [
        first.rows("_cdc_op", "id", "_cdc_order", suffix="changes"),
        first.rows("_cdc_key", "_cdc_order", suffix="deletes"),
    ]
    second = Pipeline(tmp_path, "second", is_changelog=True, behavior="try_evolve")
    with pytest.raises(FileError, match=r"expected a lake table of this pipeline, got one of another .*--adopt"):
        second.write(*ROWS)
    assert (first.lake.table(TableName("d", None, "t")).properties() or {})[OWNER] == "first"
    second = Pipeline(tmp_path, "second", is_changelog=True, behavior="try_evolve", is_adopting=True)
    assert [one.error for one in second.write(*ROWS)] == [None]
    second.write(ADD_COLUMN, MORE, LAST)
    log = second.rows("_cdc_op", "id", "_cdc_order", suffix="changes")
    assert [row for row in log if row[1] != 4] == before[0]
    assert len(log) == len(before[0]) + 1
    assert second.rows("_cdc_key", "_cdc_order", suffix="deletes") == before[1]
    assert second.rows("id", "a", "b") == [(1, 3, 7), (3, 4, 5), (4, 4, 6)]
    # It is the second's now.
    first.start()
    with pytest.raises(FileError, match=r"got one of another pipeline \(second\)"):
        first.write(LAST)


def test_a_lake_table_that_says_nobodys_name_is_that_of_the_pipeline_that_wrote_it(tmp_path: Path):
    """As all were at first; any other pipeline is refused."""
    name = TableName("d", None, "t")
    nobody = Pipeline(tmp_path)
    table = nobody.parts(ROWS[:1])[0]
    NativeState(nobody.lake, name).prepare(table[0].versions)
    with pytest.raises(FileError, match="got one that another pipeline, or nobody known, has written"):
        nobody.tables.write([table])
    nobody.tables.unmarked = frozenset({name})
    assert [one.error for one in nobody.tables.write([table])] == [None]
    assert (nobody.lake.table(name).properties() or {})[OWNER] == "the job"


def test_a_table_that_is_there_under_its_older_name_goes_on_under_it(tmp_path: Path):
    """There is never a second one, which would be empty."""
    pipeline, name = Pipeline(tmp_path), TableName("shop", "orders", "x")
    (table, _, own) = pipeline.parts(ROWS[:1])[0]
    older = replace(pipeline.lake, is_older=True)
    assert NativeTables(older, "the job").write([(table, name, own)])[0].error is None
    (table, _, own) = pipeline.parts(ROWS[1:2])[0]
    assert pipeline.tables.write([(table, name, own)])[0].error is None
    assert sorted(older.table(name).read(["id"]).column("id").to_pylist()) == [1, 2]
    assert pipeline.lake.table(name).properties() is None


def test_a_name_that_no_lake_table_can_have_and_one_that_is_around_another_wait(tmp_path: Path):
    """They say why, and where the table belongs."""
    pipeline = Pipeline(tmp_path)
    (table, _, own) = pipeline.parts(ROWS[:1])[0]
    written = pipeline.tables.write([(table, TableName("d", None, "t" * 300), own)])
    assert "is longer than 200 bytes" in (written[0].error or "")
    inner, outer = TableName("shop", "orders", "x"), TableName("shop", None, "orders")
    assert NativeTables(replace(pipeline.lake, is_older=True), "the job").write([(table, inner, own)])[0].error is None
    assert "would be around another" in (pipeline.tables.write([(table, outer, own)])[0].error or "")


def test_deletes_are_forgotten_once_a_day(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Not with each batch; and what is known of a lake table is thrown away behind a fault."""
    calls: list[str] = []
    own = NativeState.forget_deletes
    monkeypatch.setattr(NativeState, "forget_deletes", lambda self: (calls.append(self.table.table), own(self)))
    pipeline = Pipeline(tmp_path)
    for one in ROWS:
        pipeline.write(one)
    assert calls == ["t"]
    shutil.rmtree(pipeline.lake.path(TableName("d", None, "t")))
    assert pipeline.write(canal("INSERT", [{"id": "9", "a": "1"}], id=8))[0].error is not None


NOW = datetime(2026, 11, 22, tzinfo=UTC)


def all_rows(log: NativeChangelog) -> pa.Table:
    """Return all rows of a changelog in their order; those before updates precede them."""
    return log.lake_table.read(log.lake_table.schema().names).sort_by([(ORDER, "ascending"), ("_cdc_op", "ascending")])


@pytest.mark.slow
@pytest.mark.parametrize("producer", MESSAGES)
@pytest.mark.parametrize("size", [row_images._MAX_SIZE, 2_000])
def test_every_change_is_in_the_changelog_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, producer: str, size: int
):
    """In three batches, each of which is appended twice, the table's columns changing between them; without a key, too."""
    monkeypatch.setattr(row_images, "_MAX_SIZE", size)
    maker, messages = TypedRows(Tables(zone=UTC)), as_came(producer)
    count, logs = -(-len(messages) // 3), {}
    for number, i in enumerate(range(0, len(messages), count)):
        batch = maker.of_batch(messages[i : i + count])
        for table in maker.tables.tables:
            name = table.versions[0].table.table
            rows = [row for row in batch.rows if row.table == table.number]
            if rows and name in ("orders", "nopk"):
                log = logs[name] = NativeChangelog(NativeDelta(str(tmp_path)), TableName("d", None, name))
                log.prepare(table.versions)
                for since in (None, NOW):
                    log.append(table_of(rows), table.versions, Mark("test's job", number, since))
    for name, log in logs.items():
        found = [
            (row["_cdc_op"], row["_cdc_version"], row["_cdc_key"])
            for row in all_rows(log).to_pylist()
            if row["_cdc_op"] not in ("b", "x")
        ]
        typed = [one for one in shop(producer)[1] if one.table.versions[0].table.table == name]
        operations = {"INSERT": "c", "UPDATE": "u", "DELETE": "d", "TRUNCATE": "t"}
        wanted = [(operations[one.change.op], one.schema.version, one.key) for one in typed]
        assert sorted(found, key=repr) == sorted(wanted, key=repr)
    orders = all_rows(logs["orders"]).to_pylist()
    befores, updates = ([row for row in orders if row["_cdc_op"] == op] for op in "bu")
    assert len(befores) == len(updates) > 0
    moved = [row for row in orders if row["tenant"] == "t9" and row["_cdc_op"] == "c"]
    assert [(str(row["order_id"]), str(row["amount (until version 4)"])) for row in moved] == [("7", "11.10")]


def test_a_row_is_as_it_was_before_a_delete_and_as_it_is_after_anything_else(tmp_path: Path):
    """The row before an update is a row of its own before it; a TRUNCATE and a DROP have none."""
    maker = TypedRows(Tables(zone=UTC))
    messages = [change("INSERT", 1, 1), change("UPDATE", 2, 1, absent="b"), change("DELETE", 3, 1)]
    messages.append(change("TRUNCATE", 4, 1))
    row = {"id": 1, "a": 5, "b": -5}
    updated = change("UPDATE", 5, 1)[0]
    messages.append([replace_change(updated, before=row | {"a": 4})])
    rows = maker.of_batch(messages).rows
    (table,) = maker.tables.tables
    log = NativeChangelog(NativeDelta(str(tmp_path)), TableName("d", None, "t"))
    log.prepare(table.versions)
    log.append(table_of(rows), table.versions, Mark("job", 1))
    found = [(one["_cdc_op"], one["id"], one["a"], one["b"], one["_cdc_absent"]) for one in all_rows(log).to_pylist()]
    assert found == [
        ("c", 1, 1, -1, None),
        ("u", 1, 2, None, ["b"]),
        ("d", 1, 3, -3, None),
        ("t", None, None, None, None),
        ("b", 1, 4, -5, None),
        ("u", 1, 5, -5, None),
    ]


def test_what_an_adopted_changelog_holds_is_none_of_the_rows_that_it_lacks(tmp_path: Path):
    """Rows without a key are told apart from each other, too."""
    for key in (["id"], []):
        maker = TypedRows(Tables())
        messages = [
            canal("INSERT", [{"id": "1", "n": "1"}], id=1, pkNames=key),
            canal("UPDATE", [{"id": "1", "n": "2"}], id=2, old=[{"n": "1"}], pkNames=key),
            canal("DELETE", [{"id": "1", "n": "2"}], id=3, pkNames=key),
            canal("INSERT", [{"id": "1", "n": "3"}], id=4, pkNames=key),
        ]
        rows = [table_of(maker.of_batch([to_changes(one, "canal")]).rows) for one in messages]
        versions = maker.tables.tables[0].versions
        log = NativeChangelog(NativeDelta(str(tmp_path)), TableName("d", None, f"t{len(key)}"))
        log.prepare(versions)
        for number, part in enumerate(rows[:3]):
            log.append(part, versions, Mark("first", number))
        until = max(rows[2].column("order").to_pylist())
        left = [len(rows_not_held(part, log.lake_table, until)) for part in rows]
        assert left == [0, 0, 0, 1]
        both = pa.concat_tables([rows[3], rows[2]])
        assert rows_not_held(both, log.lake_table, until).column("operation").to_pylist() == ["c"]


_OTHERS = ("_cdc_key", "_cdc_unparsed", "_cdc_older")


def waiting_reasons(job: LocalJob) -> list[str]:
    """Return why rows of the table `d.t` wait after a run, in which nothing else may wait."""
    reports = job.run()
    assert {name for report in reports for name in report.waiting} <= {"d.t"}
    return [reason for report in reports for reason in report.waiting.values()]


@pytest.mark.parametrize("type", [None, pytest.param(pa.string(), marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", ["_cdc_order", *(pytest.param(name, marks=pytest.mark.slow) for name in _OTHERS)])
def test_rows_wait_for_a_current_state_that_lacks_a_column_of_its_own(tmp_path: Path, name: str, type: Any):
    """Because somebody has written it anew; other tables go on. It begins again as the sentence says."""
    job = LocalJob(tmp_path, lake_section(DELTA, tmp_path))
    job.send(canal("INSERT", [{"id": "1"}], id=1))
    job.run()
    folder = tmp_path / "lake" / "d" / "t"
    rows = pa.table(DeltaTable(folder).scan()).drop_columns([name])
    if type is not None:
        rows = rows.append_column(name, pa.array(["x"], type))
    write_deltalake(folder, rows, mode="overwrite", schema_mode="overwrite")
    job.send(canal("INSERT", [{"id": "2"}], id=2), canal("INSERT", [{"id": "2"}], id=3, table="other"))
    (reason,) = waiting_reasons(job)
    assert f" has no column {name}" in reason
    assert job.rows("d.other", "id") == [(2,)]
    shutil.rmtree(folder)
    reset(tmp_path / "state", ["d.t"])
    job.send(canal("INSERT", [{"id": "1"}, {"id": "2"}], id=4))
    assert waiting_reasons(job) == []
    assert job.rows("d.t", "id") == [(1,), (2,)]


ABOUT = ("_cdc_time", "_cdc_source", "_cdc_line", "_cdc_transaction")


@pytest.mark.slow
@pytest.mark.parametrize("kind", [DELTA, pytest.param(ICEBERG, marks=pytest.mark.slow)])
def test_columns_about_changes_are_added_filled_and_left(tmp_path: Path, kind: str):
    """To tables that stand, in states and changelogs; the row before an update has those of the update."""
    job = LocalJob(tmp_path, lake_section(kind, tmp_path, changelog=True))
    job.send(*ROWS[:2])
    job.run()
    job.lake["change_columns"] = ["transaction", "line", "source", "time"]
    job.send(*ROWS[2:])
    (report,) = job.run()
    added = [f"d.t: column '_cdc_{word}' is added" for word in ("time", "transaction", "source", "line")]
    assert report.steps == added
    times = [datetime(2023, 11, 14, 22, 13, 20 + i, tzinfo=UTC) for i in range(8)]
    nothing = (None,) * 4
    assert job.rows("d.t", "id", "a", *ABOUT) == [(1, 3, times[3], "d.t", 1, None)]
    assert job.rows("d.t", "_cdc_op", "id", *ABOUT, suffix="changes") == [
        ("b", 1, times[3], "d.t", 1, None),
        ("c", 1, *nothing),
        ("c", 2, *nothing),
        ("d", 2, times[4], "d.t", 2, None),
        ("u", 1, times[3], "d.t", 1, None),
    ]
    job.lake["change_columns"] = []
    job.send(canal("UPDATE", [{"id": "1", "a": "9"}], id=5, old=[{"a": "3"}]), LAST)
    job.run()
    assert job.rows("d.t", "id", "a", *ABOUT) == [(1, 9, *nothing), (4, 4, *nothing)]
    assert (("u", 1, *nothing)) in job.rows("d.t", "_cdc_op", "id", *ABOUT, suffix="changes")


@pytest.mark.parametrize("form", ["soft", "history"])
def test_columns_about_changes_are_those_of_the_change_that_made_a_version(tmp_path: Path, form: str):
    """Also where a form keeps deleted rows or all versions of rows, and a later batch changes the row."""
    job = LocalJob(tmp_path, lake_section(DELTA, tmp_path, form=form, change_columns=["time", "line"]))
    job.send(*ROWS[:2])
    job.run()
    job.send(*ROWS[2:])
    job.run()
    times = [datetime(2023, 11, 14, 22, 13, 20 + i, tzinfo=UTC) for i in range(8)]
    last = [(1, 3, times[3], 1), (2, 2, times[2], 2)]
    every = [(1, 1, times[1], 1), *last]
    assert job.rows("d.t", "id", "a", "_cdc_time", "_cdc_line") == (last if form == "soft" else every)


def test_the_time_of_a_change_is_null_where_no_lake_holds_it(tmp_path: Path):
    """Behind the year 9999."""
    job, last = LocalJob(tmp_path, lake_section(DELTA, tmp_path, change_columns=["time"])), 253_402_300_799_000
    job.send(*[canal("INSERT", [{"id": str(i)}], id=i, es=last + 1_000 * i) for i in range(2)])
    job.run()
    assert job.rows("d.t", "id", "_cdc_time") == [(0, datetime(9999, 12, 31, 23, 59, 59, tzinfo=UTC)), (1, None)]


@pytest.mark.slow
@pytest.mark.parametrize("form", ["current", "history"])
@pytest.mark.parametrize(("kind", "more"), [(DELTA, {}), (DELTA, {"readers": "all"}), (ICEBERG, {})])
def test_a_column_that_is_widened_filled_and_dropped_in_one_batch_is_widened(
    tmp_path: Path, kind: str, form: str, more: dict[str, str]
):
    """The rows between its statements have values that the lake's column could not hold; they stopped the table."""
    job = LocalJob(tmp_path, lake_section(kind, tmp_path, form=form, changelog=True, **more))
    job.send(canal("INSERT", [{"id": "1", "a": "7"}], id=1))
    job.run()
    job.send(
        canal("ALTER", [], id=2, isDdl=True, sql="ALTER TABLE t MODIFY a BIGINT"),
        canal("INSERT", [{"id": "2", "a": str(2**40)}], id=3, mysqlType={"id": "int", "a": "bigint"}),
        canal("ALTER", [], id=4, isDdl=True, sql="ALTER TABLE t DROP COLUMN a"),
        canal("INSERT", [{"id": "3"}], id=5),
    )
    (report,) = job.run()
    assert (report.waiting, report.counts["written"]) == ({}, 2)
    assert {"d.t: column 'a' becomes bigint", "d.t (changelog): column 'a' becomes bigint"}.issuperset(report.steps)
    for suffix in ("", "changes"):
        assert job.rows("d.t", "id", "a", suffix=suffix) == [(1, 7), (2, 2**40), (3, None)]


@pytest.mark.slow
@pytest.mark.parametrize("form", ["current", "soft", "history"])
@pytest.mark.parametrize("cut", range(4))
@pytest.mark.parametrize("kind", [DELTA, pytest.param(ICEBERG, marks=pytest.mark.slow)])
def test_a_row_keeps_what_its_change_lacks_where_another_column_takes_over(
    tmp_path: Path, kind: str, form: str, cut: int
):
    """Wherever batches are cut: by the value that both columns can hold, and by the one that only the older can.

    A late change from before the statement gives both columns its value in each row that has it from an older one.
    """
    job = LocalJob(tmp_path, lake_section(kind, tmp_path, form=form))
    for part in filter(None, (LACKING[:cut], LACKING[cut:])):
        job.send(*part)
        assert [report.waiting for report in job.run()] == [{}]
    names = ("id", "a", "a (until version 1)", "d", "d (until version 1)", "n")
    assert job.rows("d.t", *names) == [(1, "5", 5, None, 0.1, n) for n in ([1, 2, 3] if form == "history" else [3])]
    job.send(LATE)
    job.run()
    newer = [(1, "6", 6, None, 0.1, n) for n in ([1, 2, 3] if form == "history" else [3])]
    assert job.rows("d.t", *names) == ([(1, "5", 5, None, 0.1, 1), *newer] if form == "history" else newer)


AGAIN_BEHIND_A_DROP = [
    canal("ALTER", [], id=3, isDdl=True, sql="ALTER TABLE t DROP COLUMN a"),
    canal("DELETE", [{"id": "1", "b": "1"}], id=4),
    canal("INSERT", [{"id": "1", "b": "2"}], id=5),
    canal("UPDATE", [{"id": "2", "b": "3"}], id=6, old=[{"b": "2"}]),
]


@pytest.mark.slow
@pytest.mark.parametrize("is_file_by_file", [True, False])
@pytest.mark.parametrize("form", ["current", "soft", "history"])
@pytest.mark.parametrize("kind", [DELTA, ICEBERG])
def test_a_row_that_was_deleted_and_inserted_again_has_nothing_in_a_dropped_column(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, form: str, *, is_file_by_file: bool
):
    """Also where both are in the batch of the DROP COLUMN, or the delete is late; others keep the last value of before.

    In whichever way the lake merges.
    """
    if not is_file_by_file:
        monkeypatch.setattr(delta_lake, "local_path", lambda _: None)
    drop, delete, insert, update = AGAIN_BEHIND_A_DROP
    late = canal("UPDATE", [{"id": "2", "a": "8", "b": "2"}], id=2, old=[{"a": "6"}])
    orders = [
        [[late], [drop], [delete], [insert], [update]],
        [[late, drop, delete, insert, update]],
        [[drop], [insert], [delete], [update], [late]],
        [[drop, insert, update], [delete, late]],
    ]
    for i, batches in enumerate(orders):
        folder = tmp_path / str(i)
        job = LocalJob(folder, lake_section(kind, folder, form=form))
        job.send(canal("INSERT", [{"id": "1", "a": "7", "b": "1"}, {"id": "2", "a": "6", "b": "2"}], id=1))
        job.run()
        for batch in batches:
            job.send(*batch)
            job.run()
        rows = job.rows("d.t", "id", "a", "b")
        assert [one for one in rows if one[0] == 1 and one[2] == 2] == [(1, None, 2)]
        if form != "history":
            assert rows == [(1, None, 2), (2, 8, 3)]


@pytest.mark.slow
@pytest.mark.parametrize("is_dropped", [False, True])
def test_what_somebody_wrote_into_a_column_of_their_own_stays(tmp_path: Path, *, is_dropped: bool):
    """The column is no dropped one, and with one beside it, other rows and the names of its orders are as ever."""
    job = LocalJob(tmp_path, lake_section(DELTA, tmp_path))
    job.send(canal("INSERT", [{"id": "1", "a": "7", "b": "1"}, {"id": "2", "a": "6", "b": "2"}], id=1))
    job.run()
    table = DeltaTable(job.table("d.t").folder)
    table.alter.add_columns([Field("note", PrimitiveType("string")), Field("more", PrimitiveType("string"))])
    table.update({"note": "'mine'", "more": "'too'"}, predicate="id = 1")
    row = {"id": "1", "b": "3"} if is_dropped else {"id": "1", "a": "7", "b": "3"}
    if is_dropped:
        job.send(canal("ALTER", [], id=2, isDdl=True, sql="ALTER TABLE t DROP COLUMN a"))
    job.send(canal("UPDATE", [row], id=3, old=[{"b": "1"}]))
    job.run()
    (first, second) = sorted(
        DeltaTable(job.table("d.t").folder).to_pyarrow_table().to_pylist(), key=lambda row: row["id"]
    )
    assert [first[name] for name in ("a", "b", "note", "more")] == [7, 3, "mine", "too"]
    assert [second[name] for name in ("a", "b", "note", "more")] == [6, 2, None, None]
    assert "" not in dict(first["_cdc_older"] or ())
    assert (first["_cdc_older"] is None) is not is_dropped


IN_ORDER = ["f", "id", "m", "b", "c", "z", "z (until version 2)"]
FORMS_AND_LAKES = [
    pytest.param(kind, form, marks=[] if kind == DELTA and form == "current" else pytest.mark.slow)
    for kind in (DELTA, ICEBERG)
    for form in FORMS
]


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "form"), FORMS_AND_LAKES)
def test_a_tables_own_columns_stand_first_in_its_order_also_those_that_came_later(tmp_path: Path, kind: str, form: str):
    """And behind them this project's own, with those about changes that were chosen later."""
    job = LocalJob(tmp_path, lake_section(kind, tmp_path, changelog=True, form=form))
    job.send(*ROWS[:2])
    job.run()
    job.lake["change_columns"] = ["time"]
    added = "ALTER TABLE t ADD COLUMN z INT, ADD COLUMN f INT FIRST, ADD COLUMN m INT AFTER id"
    row = {"f": "1", "id": "3", "m": "2", "a": "4", "z": "5"}
    job.send(*ROWS[2:], canal("ALTER", [], id=5, isDdl=True, sql=added), canal("INSERT", [row], id=6))
    job.run()
    own = {"": [*FORMS[form], "_cdc_time"], "changes": [*CHANGELOG, "_cdc_time"]}
    for suffix, names in own.items():
        assert job.table("d.t", suffix).schema().names == ["f", "id", "m", "a", "z", *names]
    changed = "ALTER TABLE t CHANGE a b INT, ADD c INT AFTER b, MODIFY z VARCHAR(9)"
    row = {"f": "1", "id": "4", "m": "2", "b": "4", "c": "6", "z": "text"}
    kinds = dict.fromkeys(row, "int") | {"z": "varchar(9)"}
    job.send(canal("ALTER", [], id=7, isDdl=True, sql=changed), canal("INSERT", [row], id=8, mysqlType=kinds))
    job.run()
    for suffix, names in own.items():
        assert job.table("d.t", suffix).schema().names == [*IN_ORDER, *names]
    stand = [(None, 1, None, 3, None, None, None), (1, 3, 2, 4, None, "5", 5), (1, 4, 2, 4, 6, "text", None)]
    assert {*stand} <= {*job.rows("d.t", *IN_ORDER)}
    # A changelog is only appended to.
    logged = {*job.rows("d.t", "id", "z", "z (until version 2)", suffix="changes")}
    assert {(1, None, None), (3, None, 5), (4, "text", None)} <= logged


def reorder(table: NativeTable, names: Sequence[str]) -> None:
    """Give a lake table's columns another order, as another writer may."""
    if isinstance(table, NativeDeltaTable):
        opened = table._open()
        schema = schema_of(opened)
        after = replace(schema, fields=sorted(schema.fields, key=lambda one: names.index(one["name"])))
        commit(table.folder, opened.version() + 1, "CHANGE COLUMN", after.actions(schema))
    else:
        assert isinstance(table, NativeIcebergTable)
        with table._load().update_schema() as update:
            for name in reversed(names):
                update.move_first((name,))
    assert table.schema().names == names


def everything(job: LocalJob) -> dict[str, list[tuple[Any, ...]]]:
    """Return all rows of a job's lake tables, whatever the order of their columns, but for times of the batches."""
    return {
        suffix: job.rows("d.t", *sorted({*job.table("d.t", suffix).schema().names} - {AT}), suffix=suffix)
        for suffix in SUFFIXES
    }


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "form"), FORMS_AND_LAKES)
@pytest.mark.parametrize("is_first", [True, False])
def test_tables_with_columns_in_any_order_go_on_unharmed(tmp_path: Path, kind: str, form: str, is_first: bool):
    """With this project's own in front, or among the others, as earlier versions of it left them."""
    source = {"source": {"files": str(tmp_path / "a" / "in"), "most": 1}}
    jobs = [
        LocalJob(tmp_path / name, lake_section(kind, tmp_path / name, changelog=True, form=form), source)
        for name in "ab"
    ]
    added = "ALTER TABLE t ADD COLUMN b INT NOT NULL DEFAULT 7 AFTER id, CHANGE a c BIGINT"
    kinds = {"id": "int", "b": "int", "c": "bigint"}
    batches = [
        ROWS[:2],
        [*ROWS[2:], canal("INSERT", [{"id": "5", "a": "5"}], id=5), canal("UPDATE", [{"id": "5"}], id=6, old=[{}])],
        [
            canal("ALTER", [], id=7, isDdl=True, sql=added),
            canal("INSERT", [{"id": "3", "b": "5", "c": "4"}], id=8, mysqlType=kinds),
            canal("UPDATE", [{"id": "1", "b": "7"}], id=9, mysqlType=kinds, old=[{}]),
        ],
    ]
    for number, batch in enumerate(batches):
        jobs[0].send(*batch)
        for job in jobs:
            job.folder.mkdir(exist_ok=True)
            job.run()
        if number == 0:
            for suffix in SUFFIXES[::2]:
                table = jobs[1].table("d.t", suffix)
                names = sorted(table.schema().names, key=lambda name: (name.startswith("_cdc_") != is_first, name))
                reorder(table, names if is_first else [*names[::2], *names[1::2]])
    assert everything(jobs[0]) == everything(jobs[1])
    for suffix in ("", "changes"):
        names = jobs[1].table("d.t", suffix).schema().names
        assert names[:2] == (["b", min(one for one in names if one.startswith("_cdc_"))] if is_first else ["c", "b"])


def _run(job: LocalJob, number: int, records: Sequence[Record], **more: Any) -> None:
    """Run a batch of records of Kafka's, with other settings if they are given."""
    pipeline, state = job.pipeline(**more), job.folder / "state"
    writer = sink_of(pipeline.sink).writer(Job("the job", frozenset()), None)
    account = AccountFile(state)
    batches = Batches(pipeline.settings, JobState(state / "batches"), writer, account, lambda _: None)
    placed = [Placed(one, 10 * number + i) for i, one in enumerate(records)]
    batches.run(LocalBatch(lanes_of(placed), job.folder / "spill"), number)


@pytest.mark.slow
@pytest.mark.parametrize("kind", [DELTA, pytest.param(ICEBERG, marks=pytest.mark.slow)])
def test_headers_of_records_are_written_where_they_are_chosen(tmp_path: Path, kind: str):
    """Those of the last change of a row, and of each change; also of rows that wait, behind those of an older version."""
    job = LocalJob(tmp_path, lake_section(kind, tmp_path, changelog=True, change_columns=["headers", "offset"]))
    job.folder.mkdir(exist_ok=True)
    one, two = (Record("t", 0, None, ROWS[i], (("n", b"%d" % i), ("n", b"\xff"))) for i in (0, 2))
    _run(job, 0, [one], merge_every=3)
    for path in (tmp_path / "state" / "waiting").rglob("*.parquet"):
        pq.write_table(pq.read_table(path, partitioning=None).drop_columns("headers"), path)
    _run(job, 1, [Record("t", 0, None, ROWS[1], (("n", b"1"),)), two], merge_every=3)
    _run(job, 2, [Record("t", 0, None, ROWS[3])], merge_every=3)
    texts = '[{"key":"n","value":"1"}]', '[{"key":"n","value":"2"},{"key":"n","base64":"/w=="}]'
    assert job.rows("d.t", "id", "a", "_cdc_headers") == [(1, 3, texts[1])]
    assert job.rows("d.t", "_cdc_op", "id", "_cdc_headers", suffix="changes") == [
        ("b", 1, texts[1]), ("c", 1, None), ("c", 2, texts[0]), ("d", 2, None), ("u", 1, texts[1]),
    ]  # fmt: skip
    job.lake["change_columns"] = []
    _run(job, 3, [Record("t", 0, None, canal("INSERT", [{"id": "9", "a": "9"}], id=9), (("n", b"9"),))])
    assert job.rows("d.t", "id", "_cdc_headers") == [(1, texts[1]), (9, None)]


@pytest.mark.parametrize("form", ["soft", "history"])
def test_headers_are_those_of_the_change_that_made_a_version(tmp_path: Path, form: str):
    """Also where changes lack columns: the headers are never taken from an older change."""
    job = LocalJob(tmp_path, lake_section(DELTA, tmp_path, form=form, change_columns=["headers"]))
    job.folder.mkdir(exist_ok=True)
    partial = canal("UPDATE", [{"id": "1"}], id=3, old=[{"id": "1"}])
    _run(job, 0, [Record("t", 0, None, ROWS[0], (("n", b"1"),)), Record("t", 0, None, partial)])
    rows = [(1, 1, None)] if form == "soft" else [(1, 1, '[{"key":"n","value":"1"}]'), (1, 1, None)]
    assert job.rows("d.t", "id", "a", "_cdc_headers") == rows


@pytest.mark.parametrize("form", [pytest.param(form, marks=pytest.mark.slow) for form in FORMS])
def test_tables_for_all_readers_have_the_rows_of_others_and_are_read_by_polars(tmp_path: Path, form: str):
    """Behind statements that rename, widen, retype and drop columns, and with names that need a mapping elsewhere."""
    polars = pytest.importorskip("polars")
    source = {"source": {"files": str(tmp_path / "a" / "in"), "most": 1}}
    common = {"changelog": True, "form": form, "behavior": "try_evolve"}
    jobs = [
        LocalJob(tmp_path / name, lake_section(DELTA, tmp_path / name, **common, **more), source)
        for name, more in {"a": {}, "b": {"readers": "all"}}.items()
    ]
    kinds = {"id": "int", "a": "int", "we ird": "int"}
    later = {"id": "int", "z": "bigint", "we ird": "varchar(9)", "b=": "int"}
    last = {"id": "int", "z": "bigint", "b=": "int"}
    batches: list[tuple[str, dict[str, str], list[dict[str, str]]]] = [
        ("", kinds, [{"id": str(n), "a": str(n), "we ird": "5"} for n in range(3)]),
        (
            "CHANGE a z BIGINT, MODIFY `we ird` VARCHAR(9), ADD `b=` INT AFTER id",
            later,
            [{"id": "4", "z": "4", "we ird": "text", "b=": "1"}],
        ),
        ("DROP COLUMN `we ird`", last, [{"id": "5", "z": str(2**40), "b=": "2"}]),
        ("DROP COLUMN z, ADD COLUMN z INT", {"id": "int", "b=": "int", "z": "int"}, [{"id": "1", "b=": "3", "z": "7"}]),
    ]
    for number, (changed, types, rows) in enumerate(batches):
        sql = f"ALTER TABLE t {changed}"
        statements = [canal("ALTER", [], id=10 * number, isDdl=True, sql=sql)] if changed else []
        inserts = [canal("INSERT", [row], id=10 * number + i, mysqlType=types) for i, row in enumerate(rows, 1)]
        jobs[0].send(*statements, *inserts)
        for job in jobs:
            job.folder.mkdir(exist_ok=True)
            job.run()
    for suffix in ("", "changes"):
        tables = [job.table("d.t", suffix) for job in jobs]
        names = [table.schema().names for table in tables]
        assert names[1] == [re.sub("[ =()]", lambda found: f"~{ord(found[0]):x}~", one) for one in names[0]]
        rows_of = [sorted(tuples(table.read(one)), key=repr) for table, one in zip(tables, names, strict=True)]
        assert rows_of[0] == rows_of[1]
        folder = tables[1].identifier.removeprefix("`delta`.`").removesuffix("`")
        assert sorted(polars.read_delta(folder).select("id", "b~3d~", "z").rows(), key=repr) == sorted(
            tuples(tables[0].read(["id", "b=", "z"])), key=repr
        )
