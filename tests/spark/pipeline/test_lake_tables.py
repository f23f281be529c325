"""Batches to the tables of a lake, one behind another, by one process."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import zip_longest
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from cdcavro import to_changes
from cdcavro.errors import FileError, SchemaError
from cdcavro.lake import TypedRows
from cdcavro.lake.lakes import CURRENT, HISTORY
from cdcavro.lake.sql_statements import literal
from cdcavro.lake.typed_rows import RowFacts
from cdcavro.spark.lake import spark_tables
from cdcavro.spark.lake.current_state import facts_of
from cdcavro.spark.lake.sinks import Delta, Iceberg, Sink
from cdcavro.spark.lake.spark_tables import Changelog
from cdcavro.spark.pipeline import LakeSettings
from cdcavro.spark.pipeline.lake_tables import LakeSink
from cdcavro.sync.outputs.sink_settings import Job as PipelineId
from cdcavro.sync.outputs.writer import BatchRows
from cdcavro.sync.settings import Chosen, Formats
from cdcavro.table import TableName
from cdcavro.table.table_names import parse_table_name
from cdcavro.table.tables import Tables
from support import shuffled_streams
from support.jobs import ICEBERG, local_job
from support.messages import canal
from support.pipelines import Job
from support.shop_lake import frame_of
from sync.outputs import test_lake_owners

NAME = TableName("changed columns", None, "t")


@pytest.mark.parametrize("is_delta", [True, False], ids=["delta", "iceberg"])
def test_a_changelog_goes_on_behind_what_somebody_does_to_its_columns(
    spark: SparkSession, tmp_path: Path, *, is_delta: bool
):
    """What is kept from batch to batch of how rows are read is made anew, and no batch waits for the next one; a table that is gone is not made by an append."""
    sink = Delta(str(tmp_path)) if is_delta else Iceberg("ice")
    tables = LakeSink(LakeSettings(sink, is_current=False, is_changelog=True)).writer(
        PipelineId("the job", frozenset()), None
    )
    maker, identifier = TypedRows(Tables()), sink.identifier(NAME, "changes")

    def written(number: int) -> list[str | None]:
        message = canal("INSERT", [{"id": str(number), "n": "7", "m": "8"}], id=number)
        rows = frame_of(spark, maker.of_batch([to_changes(message, "canal")]).rows)
        part = BatchRows(number, rows, RowFacts(None, 0, 0, 0, []))
        return [one.error for one in tables.write([(maker.tables.tables[0], NAME, [part])])]

    def write(number: int) -> None:
        assert written(number) == [None]

    write(1)
    write(2)
    spark.sql(f"ALTER TABLE {identifier} ADD COLUMNS (mine int)")
    write(3)
    if is_delta:
        spark.sql(f"ALTER TABLE {identifier} SET TBLPROPERTIES ('delta.columnMapping.mode' = 'name')")
    # Names change places: a column is found by its comment.
    for old, new in (("n", "other"), ("m", "n"), ("other", "m")):
        spark.sql(f"ALTER TABLE {identifier} RENAME COLUMN {old} TO {new}")
    write(4)
    spark.sql(f"ALTER TABLE {identifier} DROP COLUMN n")
    write(5)
    found = spark.sql(f"SELECT id, m, mine FROM {identifier} ORDER BY id").collect()
    assert [tuple(row) for row in found] == [(number, 7, None) for number in range(1, 6)]
    spark.sql(f"DROP TABLE {identifier}")
    if is_delta:
        shutil.rmtree(sink.path(NAME, "changes"))
    (refused,) = written(6)
    assert refused is not None


def test_a_first_batch_is_appended_in_one_step_behind_the_creation(spark: SparkSession, tmp_path: Path):
    """What is known of the batch is told to the table that is created for it; the second batch is merged."""
    sink, maker = Delta(str(tmp_path)), TypedRows(Tables())
    tables = LakeSink(LakeSettings(sink)).writer(PipelineId("the job", frozenset()), None)
    for number in range(2):
        message = canal("INSERT", [{"id": str(number)}], id=number + 1)
        rows = maker.of_batch([to_changes(message, "canal")]).rows
        begins = sorted({row.order[:2] for row in rows})
        part = BatchRows(number, frame_of(spark, rows), RowFacts(None, 0, 0, 0, begins))
        (written,) = tables.write([(maker.tables.tables[0], NAME, [part])])
        assert written.error is None
    history = spark.sql(f"DESCRIBE HISTORY {sink.identifier(NAME)}").orderBy("version").collect()
    assert [step["operation"] for step in history] == ["CREATE TABLE", "WRITE", "MERGE"]


@pytest.fixture(params=["delta", "iceberg"])
def sink(request: pytest.FixtureRequest, spark: SparkSession, tmp_path: Path) -> Iterator[Sink]:
    """A lake of the test's own."""
    yield Delta(str(tmp_path / "lake")) if request.param == "delta" else Iceberg("ice")
    for left in Path(spark.conf.get("spark.sql.catalog.ice.warehouse")).iterdir():
        shutil.rmtree(left)


def write_row(spark: SparkSession, sink: Sink, name: TableName, id: int = 1) -> str | None:
    """Write one row of a table to its lake tables, as a pipeline does that has just started; return why it waits, if it does."""
    maker = TypedRows(Tables())
    message = canal("INSERT", [{"id": str(id)}], id=id)
    rows = frame_of(spark, maker.of_batch([to_changes(message, "canal")]).rows)
    part = BatchRows(id, rows, facts_of(rows, maker.tables.tables[0].versions))
    tables = LakeSink(LakeSettings(sink, is_changelog=True)).writer(PipelineId("the job", frozenset()), None)
    return tables.write([(maker.tables.tables[0], name, [part])])[0].error


def ids(spark: SparkSession, sink: Sink, name: TableName) -> list[int]:
    """Return the keys of the rows of a current state, which there must be."""
    return sorted(row["id"] for row in spark.table(sink.identifier(name)).collect())


OUTER, INNER = TableName("shop", None, "orders"), TableName("shop", "orders", "x")


def test_what_removes_old_files_of_one_table_removes_none_of_another(spark: SparkSession, sink: Sink):
    """A schema that is called as a table has a folder of its own."""
    for name in (OUTER, INNER, TableName(None, None, "shop"), TableName(None, "shop", "orders")):
        assert [write_row(spark, sink, name, id) for id in (1, 2)] == [None, None]
    lake = sink.root if isinstance(sink, Delta) else spark.conf.get("spark.sql.catalog.ice.warehouse")
    for path in Path(lake).rglob("*"):
        os.utime(path, (1_600_000_000,) * 2)
    for name in (OUTER, TableName(None, None, "shop")):
        if isinstance(sink, Delta):
            spark.sql(f"VACUUM {sink.identifier(name)}").collect()
        else:
            table = literal(sink.identifier(name).removeprefix("`ice`."))
            spark.sql(f"CALL ice.system.remove_orphan_files(table => {table})").collect()
    assert ids(spark, sink, INNER) == ids(spark, sink, OUTER) == [1, 2]


def test_a_table_that_is_there_under_its_older_name_goes_on_under_it(spark: SparkSession, sink: Sink):
    """There is never a second one, which would be empty; who writes it without a pipeline is told."""
    older = replace(sink, is_older=True)
    assert write_row(spark, older, INNER) is None
    assert write_row(spark, sink, INNER, 2) is None
    assert ids(spark, older, INNER) == [1, 2]
    assert not sink.has(spark, INNER)
    with pytest.raises(SchemaError, match=r"is there under the name that it had at first, .*move it.*is_older=True"):
        Changelog(sink, INNER).prepare(spark, [])
    # A table whose folder would be around it waits.
    assert "would be around another" in (write_row(spark, sink, OUTER) or "")
    assert not sink.has(spark, OUTER)


def test_a_table_that_is_in_the_folder_of_another_waits_and_says_where_it_belongs(spark: SparkSession, sink: Sink):
    """It goes on where it was moved to."""
    if isinstance(sink, Delta):
        older = replace(sink, is_older=True)
        assert [write_row(spark, one, name) for one, name in ((sink, OUTER), (sink, INNER))] == [None, None]
        shutil.move(Path(sink.path(INNER)).parent / "x", Path(older.path(INNER)))
        shutil.move(Path(sink.path(INNER)).parent / "x~~changes", Path(older.path(INNER)).parent / "x~~changes")
        why = write_row(spark, sink, INNER, 2) or ""
        assert f"is in the folder of another, {sink.path(OUTER)}" in why
        assert f"move it, with those beside it, to {sink.identifier(INNER)}" in why
        with pytest.raises(SchemaError, match="is in the folder of another"):
            LakeSink(LakeSettings(sink)).check_owner(
                spark, PipelineId("the job", frozenset()), [OUTER, INNER], Chosen().has
            )
        for name in ("x", "x~~changes"):
            shutil.move(Path(older.path(INNER)).parent / name, Path(sink.path(INNER)).parent / name)
        assert write_row(spark, sink, INNER, 2) is None
        assert ids(spark, sink, INNER) == [1, 2]
    else:
        assert [write_row(spark, sink, OUTER), write_row(spark, replace(sink, is_older=True), INNER)][0] is None
        assert "is in the folder of another" in (write_row(spark, replace(sink, is_older=True), INNER, 2) or "")


@pytest.mark.timeout(600)
@pytest.mark.parametrize(("kind", "behavior"), [("delta", "lenient"), ("iceberg", "try_evolve")])
def test_a_lake_table_of_another_pipeline_is_refused_and_once_adopted_has_nothing_twice(
    job: Callable[..., Job], kind: str, behavior: str
):
    """As on the local runner."""
    test_lake_owners.test_a_lake_table_of_another_pipeline_is_refused_and_once_adopted_has_nothing_twice(
        job, kind, behavior
    )


def test_a_lake_table_that_says_nobodys_name_is_its_states(job: Callable[..., Job]):
    """As all were at first: the state that wrote it goes on, and any other is refused."""
    made = job(ICEBERG, is_changelog=True)
    made.send(test_lake_owners.ROWS[0])
    made.run()
    for suffix in ("", "changes"):
        made.spark.sql(
            f"ALTER TABLE {made.sink.identifier(parse_table_name('d.t'), suffix)} UNSET TBLPROPERTIES ('cdcavro.pipeline')"
        )
    path = made.folder / "state" / "job.json"
    told = json.loads(path.read_bytes())
    del told["unmarked"]
    path.write_text(json.dumps(told), encoding="utf-8")
    shutil.copytree(made.folder / "state", made.folder / "older")
    shutil.rmtree(made.folder / "state")
    with pytest.raises(FileError, match="got one that another pipeline, or nobody known, has written"):
        made.run()
    # Nor is it taken over later, when its name stands in the state.
    with pytest.raises(FileError, match="got one that another pipeline, or nobody known, has written"):
        made.run()
    shutil.rmtree(made.folder / "state")
    shutil.move(made.folder / "older", made.folder / "state")
    made.pipeline().check(made.spark)
    made.send(test_lake_owners.ROWS[1])
    made.run()
    assert made.rows("d.t", "_cdc_op", "id", suffix="changes") == [("c", 1), ("c", 2)]
    shutil.rmtree(made.folder / "state")
    with pytest.raises(FileError, match="got one of another pipeline"):
        made.run()


def test_versions_are_the_same_if_a_batch_is_collected_in_pieces(
    job: Callable[..., Job], monkeypatch: pytest.MonkeyPatch
):
    """A TRUNCATE is in one piece, and what it ends in others; a table has the form of its rule, and its changelog."""
    collected: list[pa.Table] = []
    pieces = spark_tables.pieces_of_bytes

    def counted(*given: Any) -> Iterator[pa.Table]:
        for piece in pieces(*given):
            collected.append(piece)
            yield piece

    monkeypatch.setattr(spark_tables, "COLLECTED", 20_000)
    monkeypatch.setattr(spark_tables, "pieces_of_bytes", counted)
    own = job(is_changelog=True, table_forms=(("D.T", "history"), ("d.s", "soft")))
    messages = []
    for table in ("t", "s", "u"):
        messages += [canal("INSERT", [{"id": str(i), "a": "1"}], id=i, es=1000, table=table) for i in range(1, 21)]
        messages += [
            canal("UPDATE", [{"id": str(i), "a": "2"}], id=20 + i, es=2000, table=table, old=[{"a": "1"}])
            for i in range(1, 11)
        ]
        sql = f"TRUNCATE TABLE {table}"
        messages.append(canal("TRUNCATE", [], id=40, es=3000, isDdl=True, table=table, sql=sql))
        messages += [canal("INSERT", [{"id": str(i), "a": "3"}], id=40 + i, es=4000, table=table) for i in range(1, 4)]
    own.send(*messages)
    own.send(canal("DELETE", [{"id": "2", "a": "3"}], id=50, es=5000))
    own.run()
    assert len(collected) == 2 + 2 + 1
    times = ("CAST(_cdc_from AS long)", "CAST(_cdc_to AS long)")
    updated = [(i, a, since, to) for i in range(1, 11) for a, since, to in ((1, 1, 2), (2, 2, 3))]
    other = [(i, 1, 1, 3) for i in range(11, 21)]
    back = [(1, 3, 4, None), (2, 3, 4, 5), (3, 3, 4, None)]
    assert own.rows("d.t", "id", "a", *times) == sorted([*updated, *other, *back], key=lambda row: row[:3])
    flagged = [(i, 3, False) if i < 4 else (i, 2 if i < 11 else 1, True) for i in range(1, 21)]
    assert own.rows("d.s", "id", "a", "_cdc_is_deleted") == flagged
    assert own.rows("d.u", "id", "a") == [(i, 3) for i in range(1, 4)]
    assert len(own.rows("d.t", "id", suffix="changes")) == 20 + 20 + 1 + 3 + 1


_BY_NAME = """
import sys
from pathlib import Path
from typing import Any
from cdcavro.spark.pipeline import Pipeline
from cdcavro.spark.pipeline.runner import session_settings
from cdcavro.spark.session import session
from cdcavro.sync.config import read_config
from support.messages import canal, put_messages
here = Path(sys.argv[1])
path = here / "sync.toml"
config = read_config(path)
own = {"spark.ui.enabled": "false", "spark.sql.shuffle.partitions": "1", "spark.driver.memory": "1g"}
spark = session(master="local[1]", config={**session_settings(config), **own})
spark.sparkContext.setLogLevel("OFF")
spark.sql("CREATE DATABASE shop")
spark.sql("CREATE TABLE shop.taken (id INT) USING delta")
pipeline = config.pipeline(str(path), Pipeline)
for i in range(2):
    of_tables = [canal("INSERT", [{"id": str(i)}], id=i + 1, database="shop", table=one) for one in ("Order s", "taken")]
    put_messages(here / "in", i, of_tables)
    pipeline.check(spark)
    reports = []
    pipeline.run(spark, once=True, say=reports.append)
    print("WAITING", reports[-1].waiting)
print("TABLES", sorted(row["tableName"] for row in spark.sql("SHOW TABLES IN shop").collect()))
print("ROWS", [row["id"] for row in spark.sql("SELECT id FROM shop.order_x20_s ORDER BY id").collect()])
print("CHANGES", spark.table("shop.order_x20_s_x_changes").count(), "TAKEN", spark.table("shop.taken").count())
spark.stop()
"""


@pytest.mark.jvm
@pytest.mark.timeout(600)
def test_delta_lake_has_names_in_a_metastore(tmp_path: Path):
    """Hive's, in a database of Derby's; the rows of a table wait whose name is that of another, which is left as it is."""
    (tmp_path / "sync.toml").write_text(
        f"""
            state = "{tmp_path}/state"
            format = "canal"
            [source]
            files = "{tmp_path}/in"
            [lake]
            delta = "{tmp_path}/lake"
            changelog = true
            catalog = {{ type = "hive" }}
            [spark]
            "spark.hadoop.javax.jdo.option.ConnectionURL" = "jdbc:derby:;databaseName={tmp_path}/metastore;create=true"
            "spark.sql.warehouse.dir" = "{tmp_path}/managed"
        """
    )
    done = subprocess.run(
        [sys.executable, "-c", _BY_NAME, str(tmp_path)],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        capture_output=True,
        text=True,
        timeout=500,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-2_000:] + done.stderr[-4_000:]
    taken = f"in the metastore, `spark_catalog`.`shop`.`taken` is a table at file:{tmp_path}/managed/shop.db/taken"
    assert done.stdout.count(taken) == 2
    assert "TABLES ['order_x20_s', 'order_x20_s_x_changes', 'taken']" in done.stdout
    assert "ROWS [0, 1]" in done.stdout
    assert "CHANGES 2 TAKEN 0" in done.stdout


@pytest.mark.slow
@pytest.mark.timeout(1_800)
@pytest.mark.parametrize("seed", [31])
@pytest.mark.parametrize(
    ("is_native", "tables", "streams"),
    [(True, {CURRENT: 4, HISTORY: 4}, 125), (False, {CURRENT: 2}, 250)],
    ids=["by the driver", "merged by Spark"],
)
def test_500_streams_leave_what_all_changes_make_in_order(
    job: Callable[..., Job], tables: dict[str, int], streams: int, seed: int, *, is_native: bool
):
    """Each stream is shuffled, sent again and cut in its own way, with late rows of a full load and a late TRUNCATE.

    The second of three batches is run again, as if it had been killed before its commit.
    """
    batches = shuffled_streams.batches_of(shuffled_streams.names_of(tables), seed, streams, 3)
    forms = tuple((f"{form}.*", form) for form in tables if form != CURRENT)
    made, settings = job(is_native=is_native, table_forms=forms), {"formats": Formats("debezium")}
    for batch in batches[:2]:
        made.send(*batch)
    reports = made.run(**settings) + made.run_again(**settings)
    made.send(*batches[2])
    reports += made.run(**settings)
    assert [(one.counts["rejected"], one.waiting) for one in reports] == [(0, {})] * 4
    reader, wrong = local_job(made.folder), []
    for name, wanted in shuffled_streams.wanted(batches).items():
        rows = sorted(reader.rows(name, *shuffled_streams.COLUMNS[shuffled_streams.form_of(name)]), key=repr)
        wrong += [(name, seed, pair) for pair in zip_longest(rows, wanted) if pair[0] != pair[1]][:1]
    assert wrong == []
