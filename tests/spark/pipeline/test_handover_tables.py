"""A pipeline that goes from one runner to the other, and back, at any batch: its tables and its state are those of one alone.

With statements that add, rename, widen and drop columns, truncate and drop tables, rows that lack columns, rejects that are
read again, and rows that wait; also if a runner dies within a batch that the other one runs again.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import count
from pathlib import Path
from shutil import copytree, rmtree
from typing import Any
from uuid import uuid4

import pyarrow as pa
import pytest
from deltalake import DeltaTable
from pyiceberg.catalog import load_catalog
from pyspark.sql import SparkSession

from cdcavro import to_changes
from cdcavro.errors import SetupError
from cdcavro.lake import TypedRows
from cdcavro.lake.account import LakeTable, note_mark
from cdcavro.lake.evolution import EXCEPTION
from cdcavro.lake.lakes import CURRENT, HISTORY, SOFT, Attempt, IcebergLake
from cdcavro.spark.lake import Delta
from cdcavro.spark.pipeline import Formats
from cdcavro.spark.pipeline.lake_tables import LakeTables
from cdcavro.sync.batches import BatchReport
from cdcavro.sync.local.local_outcomes import ROWS
from cdcavro.sync.local.local_sinks import native_tables
from cdcavro.sync.native.native_state import facts_of
from cdcavro.sync.outputs import sink_settings
from cdcavro.sync.outputs.sink_settings import LakeSettings
from cdcavro.sync.outputs.table_rows import ROW_TYPES
from cdcavro.sync.outputs.writer import BatchRows
from cdcavro.sync.pipeline import reset
from cdcavro.table import TableName
from cdcavro.table.tables import Tables
from support.both_runners import BATCHES, DRIVER, LOCAL, SPARK, BothRunners, differences
from support.catalog_servers import GLUE, HIVE, NESSIE, POSTGRESQL, REST, SQL, CatalogServers, catalog_servers
from support.halves import blob
from support.java_catalog import java_catalog
from support.jobs import LocalJob
from support.lake_values import table_of
from support.local_pipelines import DELTA, ICEBERG, lake_section
from support.local_pipelines import LocalJob as ConfiguredJob
from support.messages import canal
from support.object_store import BUCKET, LOGIN
from support.pipelines import Job

pytestmark = [pytest.mark.timeout(1_800), pytest.mark.classic, pytest.mark.since("4.1")]
RUNNERS = {"S": SPARK, "L": LOCAL, "D": DRIVER}
# Who runs each batch, and the batches within which that runner dies.
TURNS = {DELTA: {"SLSDLSLL": {1, 4}}, ICEBERG: {"LSDLSLDS": {3, 6}}}
# Spark alone, which takes minutes, is run with CDCAVRO_EVERY_MESSAGE in the environment.
ALONE: dict[str, set[int]] = {
    turn * len(BATCHES): set() for turn in ("LS" if os.environ.get("CDCAVRO_EVERY_MESSAGE") else "L")
}


@pytest.mark.parametrize("kind", [DELTA, ICEBERG])
def test_tables_and_state_are_those_of_one_runner_alone(spark: SparkSession, tmp_path: Path, kind: str):
    """Names, columns, comments, properties, orders, marks, floors and deletes."""
    check_turns(spark, tmp_path, kind, {**ALONE, **TURNS[kind]})


@pytest.mark.parametrize(("kind", "form"), [(DELTA, HISTORY), (ICEBERG, SOFT)])
def test_versions_of_rows_are_those_of_one_runner_alone(spark: SparkSession, tmp_path: Path, kind: str, form: str):
    """From the local runner to Spark and back, and to Spark's driver, on the same tables."""
    check_turns(spark, tmp_path, kind, {**ALONE, "LSLSSLDS": {1, 4}}, form)


def test_tables_for_all_readers_are_those_of_one_runner_alone(spark: SparkSession, tmp_path: Path):
    """Whoever writes all files anew."""
    check_turns(spark, tmp_path, DELTA, {**ALONE, "LSDLSLDS": {3, 6}}, is_readable=True)
    for folder in (tmp_path / "lake0", tmp_path / "lake1"):
        for log in folder.rglob("_delta_log"):
            needed = DeltaTable(log.parent).protocol()
            assert needed.min_reader_version == 1 or needed.reader_features == ["timestampNtz"]


@pytest.mark.parametrize("kind", [DELTA, ICEBERG])
def test_a_lake_table_that_lacks_rows_is_told_by_either_runner(spark: SparkSession, tmp_path: Path, kind: str):
    """What one of them wrote, the other one misses; and neither misses what the other one wrote, or a reset emptied."""
    both, database, ids = BothRunners(spark, tmp_path, kind, tmp_path / "lake"), f"d{uuid4().hex}", count(1)
    name = f"{database}.t"
    again = f"so rows up to batch {{}} may be missing: `cdcavro sync reset {name}` and a new snapshot bring them back"
    gone, other = (f"{name}: its lake table {why}, {again}" for why in ("is not there", "was made anew or restored"))

    def told(runner: str, rows: int = 1) -> list[str]:
        own = next(ids)
        both.local.send(*[canal("INSERT", [{"id": str(own)}], id=own, database=database)][:rows])
        both.on_spark.files = both.local.files
        said: list[str] = []
        reports: list[BatchReport] = []
        how: dict[str, Any] = {"once": True, "say": reports.append, "warn": said.extend}
        both.local.pipeline().run(**how) if runner == "L" else both.on_spark.pipeline().run(spark, **how)
        return said + [step for report in reports for step in report.steps if "missing" in step]

    def checked() -> list[list[str]]:
        said: list[list[str]] = []
        both.on_spark.pipeline().check(spark, said.append)
        both.local.pipeline().check(said.append)
        return said

    table, parsed = tmp_path / "lake" / database / "t", TableName(database, None, "t")

    def remove() -> None:
        rmtree(table) if kind == DELTA else spark.sql(f"DROP TABLE {both.sink.identifier(parsed)} PURGE")

    assert [told(runner) for runner in "SLSSLL"] == [[]] * 6
    remove()
    assert checked() == [[gone.format(5)]] * 2
    assert (told("S", 0), told("S"), told("L")) == (
        [gone.format(5)],
        [gone.format(5), other.format(5)],
        [other.format(5)],
    )
    remove()
    reset(tmp_path / "state", [name])
    assert [told(runner) for runner in "SLS"] == [[]] * 3
    remove()
    last = both.local.files - 1
    assert (told("L"), told("S")) == ([gone.format(last), other.format(last)], [other.format(last)])
    reset(tmp_path / "state", [name])
    assert [*map(told, "SS"), *checked()] == [[]] * 4
    if kind == DELTA:
        copytree(table, tmp_path / "old")
        assert told("S") == []
        rmtree(table)
        (tmp_path / "old").rename(table)
        last = both.local.files - 1
        # Before the batch that writes the table, and by it.
        assert [*checked(), told("S")[:1], told("L")] == [[other.format(last)]] * 4


@pytest.mark.parametrize("refusing", ["S", "L"])
def test_a_writer_that_was_refused_at_first_misses_nothing_that_the_other_one_wrote(
    spark: SparkSession, tmp_path: Path, refusing: str
):
    """Spark writes what comes as a frame, this process what was collected; one of them takes no new columns."""
    settings = LakeSettings(Delta(str(tmp_path)))
    strict = replace(settings, behavior=EXCEPTION)
    job, known = sink_settings.Job("the job", frozenset()), dict[str, LakeTable]()
    maker, name = TypedRows(Tables()), TableName("d", None, "t")

    def start(own: LakeSettings, native: LakeSettings) -> LakeTables:
        return LakeTables(own, job.id, native=native_tables(native, job), spark=spark)

    def write(tables: LakeTables, runner: str, number: int, *messages: bytes) -> list[str | None]:
        typed = table_of(maker.of_batch([to_changes(one, "canal") for one in messages]).rows)
        rows = pa.Table.from_pylist(typed.to_pylist(), schema=ROWS)
        (table,) = maker.tables.tables
        kept = spark.createDataFrame(rows.to_pylist(), ROW_TYPES) if runner == "S" else rows
        part = BatchRows(number, kept, facts_of(rows, table.versions), Attempt(is_first=True))
        (result,) = tables.write([(table, name, [part])])
        return [result.error] if result.error else [note_mark(known, name, one, number) for one in result.marks]

    def insert(id_: int, **more: str) -> bytes:
        return canal("INSERT", [{"id": str(id_), **more}], id=id_)

    tables, added = (
        start(settings, settings),
        canal("ALTER", [], id=2, isDdl=True, sql="ALTER TABLE t ADD COLUMN b INT"),
    )
    assert write(tables, "S", 1, insert(1)) == [None]
    tables = start(strict, settings) if refusing == "S" else start(settings, strict)
    (error,) = write(tables, refusing, 2, added, insert(3, b="1"))
    # What this process refuses, Spark writes at once.
    assert (error is None) == (refusing == "L")
    for number, runner in enumerate("LSLS", 3):
        assert write(tables, runner, number, insert(number + 1, b="1")) == [None]


def check_turns(
    spark: SparkSession,
    tmp_path: Path,
    kind: str,
    every: Mapping[str, set[int]],
    form: str = CURRENT,
    *,
    is_readable: bool = False,
) -> None:
    """Check that tables of a form are the same whoever takes turns at them."""
    found = {}
    for i, (turns, deaths) in enumerate(every.items()):
        both = BothRunners(spark, tmp_path / "run", kind, tmp_path / f"lake{i}", form, is_readable=is_readable)
        for number, turn in enumerate(turns):
            both.run(RUNNERS[turn], is_killed=number in deaths)
            if number in deaths:
                both.run_again(RUNNERS["S" if turn == "L" else "L"])
        found[turns] = both.everything()
        both.keep(tmp_path / f"run{i}")
    local, *others = found.values()
    names = {name: [one for one, *_ in held["columns"]] for name, held in local.items() if "columns" in held}
    assert names["t "][:3] == ["id", "b", "a"]
    assert names == {name: sorted(listed, key=lambda one: one.startswith("_cdc_")) for name, listed in names.items()}
    apart = [line for one in others for line in differences(local, one)]
    assert not apart, "\n".join(apart)


@pytest.fixture(scope="module")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[CatalogServers]:
    """Catalogs, each of which runs once it is asked for."""
    with catalog_servers(tmp_path_factory) as made:
        yield made


def catalog_of(servers: CatalogServers, kind: str, folder: Path) -> dict[str, str]:
    """Return the properties of a catalog; Glue's and Nessie's have their files in S3."""
    properties = servers.properties(kind, folder)
    if kind == GLUE:
        properties |= {"warehouse": f"s3://{BUCKET}/glue", "s3.endpoint": properties["glue.endpoint"]}
    return properties


@pytest.mark.parametrize(
    ("kind", "turns"),
    [
        *[(REST, "LSLS"), (SQL, "LSLS"), (SQL, "SLSL"), (POSTGRESQL, "SLSL"), (HIVE, "LSLS"), (HIVE, "SLSL")],
        *[(GLUE, "LSLS"), (GLUE, "SLSL")],
    ],
)
def test_a_table_of_a_catalog_is_one_for_both_runners(
    spark: SparkSession, tmp_path: Path, servers: CatalogServers, kind: str, turns: str
):
    """By the same section: each goes on with what the other one made, and a batch that is run again is there once."""
    catalog = catalog_of(servers, kind, tmp_path) | ({"token": "canary-password"} if kind == REST else {})
    # Spark runs since before there were variables that log in to Glue.
    for variable, value in zip(("aws.accessKeyId", "aws.secretAccessKey"), LOGIN, strict=True):
        spark._jvm.java.lang.System.setProperty(variable, value)
    name, database = f"c{uuid4().hex}", uuid4().hex
    lake = {"catalog": catalog, "is_changelog": True}
    jobs = {"L": LocalJob(tmp_path, IcebergLake(name), lake), "S": Job(tmp_path, IcebergLake(name), lake, spark=spark)}
    batches = [
        [canal("INSERT", [{"id": str(i), "a": "1"}], id=i, database=database) for i in (1, 2)],
        [
            canal("ALTER", [], id=3, database=database, isDdl=True, sql="ALTER TABLE t ADD COLUMN b int"),
            canal("UPDATE", [{"id": "1", "a": "3", "b": "4"}], id=4, old=[{"a": "1"}], database=database),
            canal("INSERT", [{"id": "1"}], id=5, database=database, table="U x"),
        ],
        [canal("DELETE", [{"id": "2", "a": "1", "b": None}], id=6, database=database)],
        [
            canal("ALTER", [], id=7, database=database, isDdl=True, sql="ALTER TABLE t CHANGE a c int"),
            canal("INSERT", [{"id": "7", "c": "7", "b": "7"}], id=8, database=database),
        ],
    ]
    for number, (turn, batch) in enumerate(zip(turns, batches, strict=True)):
        job, other = jobs[turn], jobs["S" if turn == "L" else "L"]
        job.files = number
        job.send(*batch)
        job.check()
        assert [report.waiting for report in job.run()] == [{}]
        other.run_again()
    local = jobs["L"]
    assert local.rows(f"{database}.t", "id", "c", "b") == [(1, 3, 4), (7, 7, 7)]
    assert local.rows(f"{database}.U x", "id") == [(1,)]
    changes = local.rows(f"{database}.t", "_cdc_op", "id", suffix="changes")
    assert changes == [("b", 1), ("c", 1), ("c", 2), ("c", 7), ("d", 2), ("u", 1)]
    assert spark.sql(f"SELECT id, c, b FROM {name}.`{database}`.t ORDER BY id").collect() == [(1, 3, 4), (7, 7, 7)]
    assert "canary" not in "".join(path.read_text() for path in (tmp_path / "state").rglob("*.json"))


def test_a_session_that_has_other_properties_of_a_catalog_is_refused(spark: SparkSession, tmp_path: Path):
    """Its tables may be elsewhere."""
    name = f"c{uuid4().hex}"
    catalog = {"type": "rest", "uri": "http://127.0.0.1:9", "s3.region": "eu"}
    spark.conf.set(f"spark.sql.catalog.{name}.client.region", "us")
    with pytest.raises(
        SetupError, match=r"another value of spark[.]sql[.]catalog[.]\w+[.]client[.]region than catalog"
    ):
        Job(tmp_path, IcebergLake(name), {"catalog": catalog}, spark=spark).check()


@pytest.mark.slow
@pytest.mark.jvm
@pytest.mark.parametrize("kind", [GLUE, NESSIE])
def test_iceberg_in_java_and_without_it_write_one_table_with_files_in_s3(
    tmp_path: Path, servers: CatalogServers, kind: str
):
    """By the properties and the libraries that Spark gets for the section of both."""
    catalog, namespace = catalog_of(servers, kind, tmp_path), f"d{uuid4().hex}"
    with java_catalog(tmp_path / "jars", "prod", catalog) as java:
        made = java.create(namespace, "t", "id")
        made.updateSchema().addColumn("b", java.integer).commit()
        late = java.catalog.loadTable(java.identifier(namespace, "t"))
        own = load_catalog("prod", **catalog).load_table((namespace, "t"))
        own.append(pa.table({"id": pa.array([1, 2], pa.int32()), "b": pa.array([3, None], pa.int32())}))
        # It is made again on what pyiceberg has committed meanwhile.
        late.updateProperties().set("of", "java").commit()
        made.refresh()
        files = [task.file() for task in made.newScan().planFiles().iterator()]
        lengths = [made.io().newInputFile(one.location()).getLength() for one in files]
        assert [one.recordCount() for one in files] == [2]
        assert lengths == [one.fileSizeInBytes() for one in files]
        assert files[0].location().startswith(f"s3://{BUCKET}/")
    own.refresh()
    assert own.properties["of"] == "java"
    assert own.scan().to_arrow().sort_by("id").to_pylist() == [{"id": 1, "b": 3}, {"id": 2, "b": None}]


@pytest.mark.parametrize("kind", [REST, NESSIE])
def test_a_table_whose_name_has_a_space_is_none_whose_name_has_a_plus(
    spark: SparkSession, tmp_path: Path, servers: CatalogServers, kind: str
):
    """For which Iceberg in Java asks in its place: some catalogs answer with another program's table of that name.

    Then rows wait and the other table stays as it was, though tables are to be adopted.
    """
    catalog, database = catalog_of(servers, kind, tmp_path), f"d{uuid4().hex}"
    own = load_catalog("other", **catalog)
    own.create_namespace(database)
    others = own.create_table((database, "U+x"), pa.schema([("id", pa.int32()), ("a", pa.int32())]))
    others.append(pa.table({"id": pa.array([1], pa.int32()), "a": pa.array([7], pa.int32())}))
    made = Job(tmp_path, IcebergLake(f"c{uuid4().hex}"), {"catalog": catalog, "is_adopting": True}, spark=spark)
    made.send(
        canal("INSERT", [{"id": "1", "a": "1"}], id=1, database=database, table="U x"),
        canal("INSERT", [{"id": "1", "a": "1"}], id=2, database=database, table="V x"),
        canal("INSERT", [{"id": "1", "a": "1"}], id=3, database=database),
    )
    (report,) = made.run()
    assert made.rows(f"{database}.t", "id") == [(1,)]
    others.refresh()
    assert others.scan().to_arrow().to_pylist() == [{"id": 1, "a": 7}]
    assert "owner" not in others.properties
    if kind == REST:
        assert (report.waiting, made.rows(f"{database}.U x", "id", "a")) == ({}, [(1, 1)])
        return
    assert {*report.waiting} == {f"{database}.U x", f"{database}.V x"}
    assert "answers with the table that has + in place of spaces" in report.waiting[f"{database}.U x"]


def test_halves_of_updates_that_one_runner_leaves_are_joined_by_the_other(spark: SparkSession, tmp_path: Path):
    """Of a row that moves to another key, and of one that stays."""
    local = ConfiguredJob(
        tmp_path,
        lake_section(DELTA, tmp_path, changelog=True, parallel=1),
        {"format": "datahub_blob", "halves_minutes": 1e6},
    )
    on_spark = Job(tmp_path, Delta(str(tmp_path / "lake")), {"is_changelog": True, "parallel": 1}, spark=spark)
    files = [
        [
            blob("INSERT", 1, after={"id": 1, "v": "a"}),
            blob("INSERT", 2, after={"id": 2, "v": "a"}),
            blob("UPDATE_BEFOR", 3, before={"id": 1, "v": "a"}),
        ],
        [blob("UPDATE_AFTER", 3, after={"id": 1, "v": "b"}), blob("UPDATE_AFTER", 4, after={"id": 3, "v": "c"})],
        [blob("UPDATE_BEFOR", 4, before={"id": 2, "v": "a"})],
    ]
    counts = []
    for i, messages in enumerate(files):
        local.send(*messages)
        settings = {"formats": Formats("datahub_blob"), "halves_minutes": 1e6}
        (report,) = local.run() if i == 1 else on_spark.run(**settings)
        counts.append([report.counts[name] for name in ("read", "written", "rejected")])
    assert counts == [[2, 2, 0], [2, 2, 0], [2, 2, 0]]
    assert local.rows("d.t", "id", "v") == [(1, "b"), (3, "c")]
    assert sorted(row[0] for row in local.rows("d.t", "_cdc_op", suffix="changes")) == ["b", "c", "c", "c", "d", "u"]
