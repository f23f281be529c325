"""Maintenance of lake tables: no row changes by it, also while a pipeline writes them; what a library cannot do is said."""

from __future__ import annotations

import itertools
import json
import re
import threading
import time
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner
from deltalake import DeltaTable, write_deltalake

from cdcavro.cli import main
from cdcavro.errors import CdcAvroError, FileError, SetupError
from cdcavro.lake.sql_statements import AT
from cdcavro.lake.table_shape import TableShape
from cdcavro.sync.local.local_sinks import MAINTAINED, Maintenance, maintain
from cdcavro.sync.native import delta_lake
from cdcavro.sync.outputs.sink_settings import AvroFiles
from cdcavro.table import TableName
from support.jobs import ICEBERG, LocalJob
from support.local_pipelines import DELTA, lake_section
from support.local_pipelines import LocalJob as ConfiguredJob
from support.messages import canal

COLUMNS = ("id", "a")


def send(made: LocalJob, start: int, *others: bytes) -> None:
    """Send a row with others, and a message of another table."""
    made.send(canal("INSERT", [{"id": str(start), "a": "1"}], id=10 * start), *others)


def files_of(made: LocalJob | ConfiguredJob, name: str) -> int:
    """Return how many files a table of `d` has in its newest version."""
    return len(DeltaTable(made.folder / "lake" / "d" / name).file_uris())


def contents(made: LocalJob) -> list[Any]:
    """Return the rows of the current state and of the changelog."""
    return [made.rows("d.t", *COLUMNS), made.rows("d.t", "_cdc_op", "_cdc_order", *COLUMNS, suffix="changes")]


@pytest.mark.slow
def test_small_files_become_one_and_no_row_changes(job):
    """In the current state and the changelog; the pipeline goes on with the tables, and appends no batch again."""
    made = job(is_changelog=True)
    for i in range(6):
        send(made, i)
        made.run()
    before = contents(made)
    assert (files_of(made, "t"), files_of(made, "t~~changes")) == (6, 6)
    found = {Path(one.table.strip("`").split("`.`")[-1]).name: one for one in maintain(made.pipeline())}
    assert {name: (one.fewer, one.left) for name, one in found.items()} == {"t": (5, None), "t~~changes": (5, None)}
    assert contents(made) == before
    assert (files_of(made, "t"), files_of(made, "t~~changes")) == (1, 1)
    made.run_again()
    assert contents(made) == before
    made.send(canal("UPDATE", [{"id": "3", "a": "9"}], id=900, old=[{"a": "1"}]))
    made.run()
    assert (3, 9) in made.rows("d.t", *COLUMNS)
    assert len(made.rows("d.t", "id")) == 6


@pytest.mark.slow
def test_files_that_no_version_needs_are_removed_when_they_are_old(job):
    """Those of the last days stay, as readers may be at them."""
    made = job()
    for i in range(3):
        send(made, i)
        made.run()
    next(iter(maintain(made.pipeline())))
    folder = made.folder / "lake" / "d" / "t"
    young = {path for path in folder.rglob("*.parquet") if "_delta_log" not in path.parts}
    assert [one.removed for one in maintain(made.pipeline())] == [0]
    assert {path for path in folder.rglob("*.parquet") if "_delta_log" not in path.parts} == young
    before = made.rows("d.t", *COLUMNS)
    for path in (folder / "_delta_log").glob("*.json"):
        # Eight days pass.
        text = re.sub(
            '"deletionTimestamp":[0-9]+',
            f'"deletionTimestamp":{(time.time_ns() // 10**6) - 8 * 86_400_000}',
            path.read_text(),
        )
        path.write_text(text)
    assert [one.removed for one in maintain(made.pipeline())] == [3]
    assert len({path for path in folder.rglob("*.parquet") if "_delta_log" not in path.parts}) == 1
    assert made.rows("d.t", *COLUMNS) == before
    with pytest.raises(ValueError, match="at least 7 days"):
        list(maintain(made.pipeline(), timedelta(days=6)))


def test_deletes_whose_guard_is_over_are_forgotten(job):
    """A table to which nothing more comes keeps none of them."""
    made = job(guard=timedelta(0))
    send(made, 1, canal("DELETE", [{"id": "1", "a": "1"}], id=20))
    made.run()
    assert len(made.rows("d.t", AT, suffix="deletes")) <= 1
    list(maintain(made.pipeline()))
    assert made.rows("d.t", AT, suffix="deletes") == []


@pytest.mark.slow
def test_a_pipeline_that_runs_meanwhile_loses_no_row_and_has_none_twice(job):
    """Whichever of both commits first."""
    made, stop, faults = job(is_changelog=True, is_current=True), threading.Event(), []
    fewer: list[int] = []
    for i in range(40):
        send(made, i, canal("UPDATE", [{"id": str(i // 2), "a": str(i + 2)}], id=10 * i + 5, old=[{"a": "1"}]))

    def beside() -> None:
        while not stop.is_set():
            try:
                fewer.extend(one.fewer for one in maintain(made.pipeline()))
            except FileError:
                # There is no state yet.
                time.sleep(0.01)
            except CdcAvroError as error:
                faults.append(error)

    thread = threading.Thread(target=beside, daemon=True)
    thread.start()
    try:
        reports = made.run()
    finally:
        stop.set()
        thread.join()
    assert sum(fewer) > 5
    assert (faults, len(reports), [report.waiting for report in reports if report.waiting]) == ([], 40, [])
    last = {i // 2: i + 2 for i in range(40)}
    assert made.rows("d.t", *COLUMNS) == [(i, last.get(i, 1)) for i in range(40)]
    log = made.rows("d.t", "_cdc_op", "id", "a", suffix="changes")
    assert len([row for row in log if row[0] == "c"]) == 40
    assert len([row for row in log if row[0] == "u"]) == 40


@pytest.mark.slow
def test_what_a_library_cannot_do_is_said_and_left(job):
    """Of a table with a renamed column, and of Iceberg's tables; other tables are done."""
    made = job()
    for i in range(2):
        send(made, i, canal("INSERT", [{"id": str(i)}], id=10 * i + 1, table="u"))
        made.run()
    made.send(canal("ALTER", [], id=90, isDdl=True, sql="ALTER TABLE t RENAME COLUMN a TO b"))
    made.send(canal("INSERT", [{"id": "7", "b": "1"}], id=91))
    made.run()
    before = made.rows("d.t", "id", "b")
    renamed, plain = sorted(maintain(made.pipeline()), key=lambda one: one.table)
    assert "deltalake cannot compact tables with renamed columns: OPTIMIZE on Spark can" in renamed.left
    assert (renamed.fewer, plain.fewer, plain.left) == (0, 1, None)
    assert made.rows("d.t", "id", "b") == before


@pytest.mark.parametrize(
    ("values", "is_left"),
    [((None, "", "a"), True), (("a~b", "a"), True), ((b"x", b""), True), ((None, "a-1.5", "B_2"), False)],
)
def test_values_of_partitions_stay_or_their_files_are_left(job, values: tuple[Any, ...], is_left: bool):
    """Somebody else partitioned the table by them, and deltalake would make others of them, or not find their files."""
    made, folder = job(), job().folder_of_lake / "d" / "t"
    made.send(canal("INSERT", [{"id": "0", "s": None}], id=1, mysqlType={"id": "int", "s": "varchar(9)"}))
    made.run()
    own = DeltaTable(folder)
    rows, kind = pa.table(own.scan()), pa.binary() if b"x" in values else pa.string()
    for number, value in enumerate(values * 2):
        ids = rows.set_column(rows.schema.get_field_index("id"), "id", pa.array([number], pa.int32()))
        one = ids.set_column(rows.schema.get_field_index("s"), "s", pa.array([value], kind))
        how = {"configuration": own.metadata().configuration, "schema_mode": "overwrite", "partition_by": ["s"]}
        write_deltalake(folder, one, **({"mode": "append"} if number else {"mode": "overwrite", **how}))

    def held() -> list[Any]:
        return sorted(map(str, pa.table(DeltaTable(folder).scan(["id", "s"])).to_pylist()))

    before = held()
    (found,) = maintain(made.pipeline())
    said = "deltalake may not keep all values of 's', by which files are partitioned: OPTIMIZE on Spark does"
    assert (found.fewer, found.left) == ((0, f"schema {found.table}: {said}") if is_left else (len(values), None))
    assert held() == before


def test_tables_of_iceberg_are_left(job):
    """Pyiceberg would forget snapshots and leave their files."""
    made = job(ICEBERG)
    send(made, 1)
    made.run()
    (one,) = maintain(made.pipeline())
    assert (one.fewer, one.removed) == (0, 0)
    assert "Spark's rewrite_data_files does" in one.left
    assert "Spark's expire_snapshots does" in one.left


def test_only_tables_of_the_pipeline_are_touched(job, tmp_path: Path):
    """A table that another one has taken over is left alone; a state that has none is told, as is another sink."""
    made = job()
    with pytest.raises(FileError, match="expected the state of a pipeline, got none"):
        list(maintain(made.pipeline()))
    for i in range(2):
        send(made, i)
        made.run()
    made.lake_table(TableName("d", None, "t"), "").alter([], {"cdcavro.pipeline": "another"})
    assert list(maintain(made.pipeline())) == []
    assert files_of(made, "t") == 2
    pipeline = made.pipeline()
    with pytest.raises(SetupError, match="only lake tables are maintained"):
        list(maintain(type(pipeline)(pipeline.source, AvroFiles(str(tmp_path / "a")), pipeline.state)))


@pytest.mark.slow
def test_rows_of_a_clustered_table_are_put_in_order_and_none_changes(job):
    """In the current state and the changelog; nothing is done where no rows came, and another order is another work."""
    made = job(is_changelog=True)

    def values(name: str, column: str = "a") -> list[Any]:
        (path,) = DeltaTable(made.folder / "lake" / "d" / name).file_uris()
        return pq.read_table(path, partitioning=None).column(column).to_pylist()

    def maintained(shape: TableShape) -> list[tuple[int, str | None]]:
        return [(one.fewer, one.left) for one in maintain(made.pipeline(shapes=(shape,)))]

    shape = TableShape("D.t", cluster=("A",))
    for i, value in enumerate((5, 1, 4, 2, 3)):
        made.send(canal("INSERT", [{"id": str(i), "a": str(value)}], id=i))
        made.run(shapes=(shape,))
    before = contents(made)
    assert maintained(shape) == [(4, None)] * 2
    assert (values("t"), values("t~~changes"), contents(made)) == ([1, 2, 3, 4, 5], [1, 2, 3, 4, 5], before)
    version = DeltaTable(made.folder / "lake" / "d" / "t").version()
    assert maintained(shape) == [(0, None)] * 2
    assert DeltaTable(made.folder / "lake" / "d" / "t").version() == version
    made.send(canal("UPDATE", [{"id": "0", "a": "0"}], id=9, old=[{"a": "5"}]))
    (report,) = made.run(shapes=(TableShape("d.t", cluster=("ID",)),))
    assert report.steps == ["d.t: files are clustered by ID when they are put together"]
    maintained(shape)
    assert values("t", "id") == [0, 1, 2, 3, 4]
    assert made.rows("d.t", *COLUMNS) == [(0, 0), (1, 1), (2, 4), (3, 2), (4, 3)]


@pytest.mark.slow
def test_rows_are_clustered_within_the_partitions_of_a_table(job):
    """By columns that are no partitions: of these it is told, and nothing is done."""
    made, shape = job(), TableShape("d.t", cluster=("a",), partition=("p",))
    for i, value in enumerate((5, 1, 4, 2, 3)):
        row = {"id": str(i), "a": str(value), "p": str(i % 2) if i else None}
        made.send(canal("INSERT", [row], id=i))
        made.run(shapes=(shape,))
    (one,) = maintain(made.pipeline(shapes=(shape,)))
    assert (one.fewer, one.left) == (2, None)
    table = DeltaTable(made.folder / "lake" / "d" / "t")
    files = pa.table(table.get_add_actions(flatten=True)).to_pylist()
    held = {
        file["partition.p"]: pq.read_table(made.folder / "lake" / "d" / "t" / file["path"], partitioning=None)
        for file in files
    }
    assert {part: rows.column("a").to_pylist() for part, rows in held.items()} == {None: [5], 0: [3, 4], 1: [1, 2]}
    assert made.rows("d.t", "id", "a", "p") == [(0, 5, None), (1, 1, 1), (2, 4, 0), (3, 2, 1), (4, 3, 0)]
    made.send(canal("UPDATE", [{"id": "0", "a": "6", "p": "1"}], id=9, old=[{"a": "5", "p": None}]))
    made.run(shapes=(TableShape("d.t", cluster=("P",)),))
    (one,) = maintain(made.pipeline())
    assert one.left is not None
    assert one.left.endswith("cluster in [[table]] names 'p', by which files are partitioned")
    assert made.rows("d.t", "id", "a", "p")[0] == (0, 6, 1)


def test_a_column_of_clusters_that_there_is_not_is_told_and_nothing_is_done(job):
    """The files of the table stay as they are."""
    made, shape = job(), TableShape("d.t", cluster=("nope",))
    for i in range(2):
        send(made, i)
        made.run(shapes=(shape,))
    (one,) = maintain(made.pipeline(shapes=(shape,)))
    assert one.left is not None
    assert one.left.endswith("cluster in [[table]] names 'nope', which is no column of it")
    assert files_of(made, "t") == 2


@pytest.mark.slow
def test_the_other_tables_are_done_where_one_is_always_changed_meanwhile(job, monkeypatch):
    """It is told, and its old files are removed all the same; files in Z-order are not made of rows that are changed."""
    made, shape, again = job(), TableShape("d.t", cluster=("a",)), itertools.count(100)
    for i in range(2):
        send(made, i, canal("INSERT", [{"id": str(i)}], id=10 * i + 1, table="u"))
        made.run(shapes=(shape,))
    compact = delta_lake.compact_files

    def compact_late(table: DeltaTable, identifier: str, properties: Any) -> int:
        if identifier.endswith("/t`"):
            made.send(canal("UPDATE", [{"id": "1", "a": "2"}], id=next(again), old=[{"a": "1"}]))
            made.run(shapes=(shape,))
        return compact(table, identifier, properties)

    monkeypatch.setattr(delta_lake, "compact_files", compact_late)
    clustered, plain = sorted(maintain(made.pipeline(shapes=(shape,))), key=lambda one: one.table)
    assert clustered.left is not None
    assert "a concurrent transaction deleted data this operation read" in clustered.left
    assert (clustered.fewer, clustered.removed) == (0, 0)
    assert (plain.fewer, plain.left) == (1, None)


@pytest.mark.slow
def test_a_property_of_clusters_that_names_no_columns_is_told(job):
    """Whoever set it; an empty list is none."""
    made = job()
    for i in range(2):
        send(made, i)
        made.run()
    said = []
    for text in ("id", "[1]", '{"a": 1}', "[]"):
        made.lake_table(TableName("d", None, "t"), "").alter([], {"cdcavro.cluster": text})
        said += [(one.fewer, one.left and one.left.partition("`: ")[2]) for one in maintain(made.pipeline())]
    expected = "the property cdcavro.cluster is a list of columns in JSON, which {} is not"
    assert said == [(0, expected.format(text)) for text in ("'id'", "'[1]'", "'{\"a\": 1}'")] + [(1, None)]


@pytest.mark.slow
def test_clusters_end_with_an_empty_list_and_not_with_none(job):
    """Files are then put together as those of any table, and nothing is said of a table that had no clusters."""
    made, shape, off = job(), TableShape("d.t", cluster=("a",)), TableShape("d.*", cluster=())
    said = []
    for i, shapes in enumerate([(), (off,), (shape,), (), (off,), (off,)]):
        for id_ in (2 * i, 2 * i + 1):
            send(made, id_)
            said += [step for report in made.run(shapes=shapes) for step in report.steps]
        (one,) = maintain(made.pipeline(shapes=shapes))
        assert (one.fewer > 0, one.left) == (True, None)
        said.append(DeltaTable(made.folder / "lake" / "d" / "t").history(1)[0].get("cdcavro.cluster"))
    put, ended = (f"d.t: files are clustered by {what} when they are put together" for what in ("a", "no column"))
    assert [one for one in said if one is None or "luster" in one or "[" in one] == [
        None,
        None,
        put,
        '["a"]',
        '["a"]',
        ended,
        None,
        None,
    ]


@pytest.mark.slow
def test_a_table_for_all_readers_is_clustered_by_its_own_names(job):
    """The lake's, too."""
    made = job()
    made.sink = replace(made.sink, is_readable=True)
    for i, name in enumerate(("a b", "a~20~b")):
        for id_ in (2 * i, 2 * i + 1):
            made.send(canal("INSERT", [{"id": str(id_), "a b": "1"}], id=id_))
            made.run(shapes=(TableShape("d.t", cluster=(name,)),))
        (one,) = maintain(made.pipeline())
        assert (one.fewer > 0, one.left) == (True, None)


def run_as_configured(made: ConfiguredJob, *options: str) -> str:
    """Run a pipeline by the command, and return what it said."""
    arguments = ["sync", "--config", str(made.config()), "--once", *options]
    done = CliRunner().invoke(main, arguments, catch_exceptions=False)
    assert done.exit_code == 0, done.stderr
    return done.stderr


@pytest.mark.slow
def test_a_pipeline_maintains_its_tables_when_it_is_time(tmp_path: Path):
    """Behind a batch, as often as `maintain_every` says, whichever run had the last time; no row changes."""
    made = ConfiguredJob(tmp_path, lake_section(DELTA, tmp_path), {"maintain_every": "1 day"})
    for i in range(4):
        made.send(canal("INSERT", [{"id": str(i)}], id=i + 1))
    assert "fewer" not in run_as_configured(made)
    assert files_of(made, "t") == 4
    path, now = tmp_path / "state" / MAINTAINED, datetime.now(UTC)
    for hours, files in ((23, 5), (25, 1), (0, 2), (-1, 1)):
        if hours:
            path.write_text(json.dumps({"at": (now - timedelta(hours=hours)).isoformat()}))
        made.send(canal("INSERT", [{"id": str(made.files)}], id=made.files + 1))
        said = run_as_configured(made)
        assert files_of(made, "t") == files
        assert ("/lake/d/t`: " in said and "fewer, 0 old files removed" in said) == (files == 1)
    assert made.rows("d.t", "id") == [(one,) for one in range(made.files)]


@pytest.mark.slow
def test_what_a_pipeline_cannot_maintain_is_said_once_in_a_run(tmp_path: Path):
    """It stops nothing."""
    made = ConfiguredJob(tmp_path, lake_section(ICEBERG, tmp_path), {"maintain_every": "1 microsecond"})
    for i in range(3):
        made.send(canal("INSERT", [{"id": str(i)}], id=i + 1))
    assert run_as_configured(made).count("rewrite_data_files") == 1
    assert made.rows("d.t", "id") == [(0,), (1,), (2,)]


@pytest.mark.slow
def test_a_batch_is_reported_before_tables_are_maintained_behind_it(tmp_path: Path):
    """Whoever ends the run meanwhile has its line."""
    made = ConfiguredJob(tmp_path, lake_section(DELTA, tmp_path), {"maintain_every": "1 microsecond"})
    for i in range(2):
        made.send(canal("INSERT", [{"id": str(i)}], id=i + 1))
    said = run_as_configured(made).splitlines()
    (at,) = [i for i, line in enumerate(said) if "fewer, 0 old files removed" in line]
    assert said[at - 1].startswith("batch 1: read 1 ")


@pytest.mark.slow
@pytest.mark.parametrize("options", [(), ("--quiet",), ("--log", "json")])
@pytest.mark.parametrize("error", [OSError("Generic S3 error: no answer\nat all"), ValueError("no answer\nat all")])
def test_whatever_fails_in_maintenance_stops_no_pipeline_and_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: Exception, options: tuple[str, ...]
):
    """Once in a run, whatever else is wanted of it; and the time is noted, so that the next run does not begin with it."""

    def fail(*_: Any) -> int:
        raise error

    made = ConfiguredJob(tmp_path, lake_section(DELTA, tmp_path), {"maintain_every": "1 microsecond"})
    monkeypatch.setattr(delta_lake.NativeDeltaTable, "vacuum", fail)
    for i in range(2):
        made.send(canal("INSERT", [{"id": str(i)}], id=i + 1))
    said = run_as_configured(made, *options).splitlines()
    name = "" if isinstance(error, OSError) else "ValueError: "
    reason = f"lake tables are not maintained: {name}{str(error).splitlines()[0]}"
    assert said.count(reason) == 1
    if options[:1] == ("--log",):
        assert [json.loads(line)["batch"] for line in said if line != reason] == [0, 1]
    assert made.rows("d.t", "id") == [(0,), (1,)]
    assert (
        timedelta()
        <= datetime.now(UTC) - datetime.fromisoformat(json.loads((tmp_path / "state" / MAINTAINED).read_text())["at"])
        < timedelta(hours=1)
    )


@pytest.mark.slow
def test_a_time_of_maintenance_that_cannot_be_noted_is_said_and_stops_nothing(tmp_path: Path):
    """The run itself knows it: its next batch waits for no maintenance."""
    made = ConfiguredJob(tmp_path, lake_section(DELTA, tmp_path), {"maintain_every": "1 day"})
    made.send(canal("INSERT", [{"id": "0"}], id=1))
    run_as_configured(made)
    (tmp_path / "state" / MAINTAINED).unlink()
    (tmp_path / "state" / MAINTAINED).mkdir()
    for i in (1, 2):
        made.send(canal("INSERT", [{"id": str(i)}], id=i + 1))
    said = run_as_configured(made)
    assert said.count("when lake tables were maintained is not written: ") == 1
    assert (made.rows("d.t", "id"), files_of(made, "t")) == ([(0,), (1,), (2,)], 2)


@pytest.mark.parametrize(
    ("sections", "said"),
    [
        ({"maintain_every": "1 dya"}, "maintain_every is a time such as \"1 day\", not '1 dya'"),
        (
            {"maintain_every": "1 day", "avro": {"folder": "out"}},
            "expected [lake] for maintain_every, got another sink",
        ),
    ],
)
def test_a_time_between_maintenances_that_is_none_is_an_error(tmp_path: Path, sections: dict[str, Any], said: str):
    """As is one where nothing is maintained."""
    lake = {} if "avro" in sections else lake_section(DELTA, tmp_path)
    with pytest.raises(FileError) as raised:
        ConfiguredJob(tmp_path, lake, sections).pipeline()
    assert said in str(raised.value)


def test_a_lake_that_only_spark_reaches_is_refused_before_anything_starts(tmp_path: Path):
    """Its tables are maintained without it. So is one that has no lake tables."""
    lake = lake_section(DELTA, tmp_path, catalog={"type": "hive", "uri": "thrift://127.0.0.1:1"})
    made = ConfiguredJob(tmp_path, lake, {"maintain_every": "1 day"}).pipeline()
    with pytest.raises(SetupError, match="tables get names in Hive's metastore on Spark only"):
        Maintenance(made, timedelta(days=1), print, print)
    with pytest.raises(SetupError, match="only lake tables are maintained"):
        Maintenance(replace(made, sink=AvroFiles(str(tmp_path / "out"))), timedelta(days=1), print, print)
