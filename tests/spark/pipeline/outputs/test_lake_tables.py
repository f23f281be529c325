"""Batches to the tables of a lake, one behind another, by one process."""

from __future__ import annotations

import json
import os
import shutil
import unicodedata
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession

from cdcavro import to_changes
from cdcavro.change.model import Change, Source
from cdcavro.errors import FileError, SchemaError
from cdcavro.lake import TypedRows
from cdcavro.lake.escaped_names import topic_name
from cdcavro.lake.sql_statements import literal
from cdcavro.spark.lake.changelog import Changelog
from cdcavro.spark.lake.current_state import RowFacts, facts_of
from cdcavro.spark.lake.sinks import Delta, Iceberg, Sink
from cdcavro.spark.pipeline import LakeSettings
from cdcavro.spark.pipeline.outputs.lake_tables import Job as PipelineId
from cdcavro.spark.pipeline.outputs.lake_tables import LakeNames
from cdcavro.spark.pipeline.outputs.writer import BatchRows
from cdcavro.spark.pipeline.settings import Chosen
from cdcavro.table import TableName
from cdcavro.table.table_names import parse_table_name
from cdcavro.table.tables import Tables
from support.names import FORMS, paths, told
from support.pipelines import Job, canal
from support.shop_lake import frame_of

NAME = TableName("changed columns", None, "t")


@pytest.mark.parametrize("is_delta", [True, False], ids=["delta", "iceberg"])
def test_a_changelog_goes_on_behind_what_somebody_does_to_its_columns(
    spark: SparkSession, tmp_path: Path, *, is_delta: bool
):
    """What is kept from batch to batch of how rows are read is made anew, and no batch waits for the next one; a table that is gone is not made by an append."""
    sink = Delta(str(tmp_path)) if is_delta else Iceberg("ice")
    tables = LakeSettings(sink, is_current=False, is_changelog=True).writer("the job", None)
    maker, identifier = TypedRows(Tables()), sink.identifier(NAME, "changes")

    def written(number: int) -> list[str | None]:
        message = canal("INSERT", [{"id": str(number), "n": "7", "m": "8"}], id=number)
        rows = frame_of(spark, maker.of_batch([to_changes(message, "canal")]).rows)
        part = BatchRows(number, rows, RowFacts(None, 0, 0, 0, []))
        return [one.error for one in tables.write(spark, [(maker.tables.tables[0], NAME, [part])])]

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
    tables = LakeSettings(sink).writer("the job", None)
    for number in range(2):
        message = canal("INSERT", [{"id": str(number)}], id=number + 1)
        rows = maker.of_batch([to_changes(message, "canal")]).rows
        begins = sorted({row.order[:2] for row in rows})
        part = BatchRows(number, frame_of(spark, rows), RowFacts(None, 0, 0, 0, begins))
        (written,) = tables.write(spark, [(maker.tables.tables[0], NAME, [part])])
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
    tables = LakeSettings(sink, is_changelog=True).writer("the job", None)
    return tables.write(spark, [(maker.tables.tables[0], name, [part])])[0].error


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
            LakeSettings(sink).check_owner(spark, PipelineId("the job", frozenset()), [OUTER, INNER], Chosen())
        for name in ("x", "x~~changes"):
            shutil.move(Path(older.path(INNER)).parent / name, Path(sink.path(INNER)).parent / name)
        assert write_row(spark, sink, INNER, 2) is None
        assert ids(spark, sink, INNER) == [1, 2]
    else:
        assert [write_row(spark, sink, OUTER), write_row(spark, replace(sink, is_older=True), INNER)][0] is None
        assert "is in the folder of another" in (write_row(spark, replace(sink, is_older=True), INNER, 2) or "")


ROWS = [
    canal("INSERT", [{"id": "1", "a": "1"}], id=1),
    canal("INSERT", [{"id": "2", "a": "2"}], id=2),
    canal("UPDATE", [{"id": "1", "a": "3"}], id=3, old=[{"a": "1"}]),
    canal("DELETE", [{"id": "2", "a": "2"}], id=4),
]
MORE = [
    canal("ALTER", [], id=5, isDdl=True, sql="ALTER TABLE t ADD COLUMN b INT NOT NULL DEFAULT 7"),
    canal("INSERT", [{"id": "3", "a": "4", "b": "5"}], id=6),
]
LAST = canal("INSERT", [{"id": "4", "a": "4", "b": "6"}], id=7)


def contents(job: Job) -> list[list[tuple[Any, ...]]]:
    """Return what all lake tables of a table hold."""
    order = "hex(_cdc_order)"
    return [
        job.rows("d.t", "id", "a", "b", order),
        job.rows("d.t", "_cdc_op", "id", "a", "b", order, suffix="changes"),
        job.rows("d.t", order, "hex(_cdc_key)", suffix="deletes"),
    ]


@pytest.mark.parametrize("is_delta", [True, False], ids=["delta", "iceberg"])
@pytest.mark.parametrize("behavior", ["lenient", "try_evolve"])
def test_a_lake_table_of_another_pipeline_is_refused_and_once_adopted_has_nothing_twice(
    job: Callable[..., Job], *, is_delta: bool, behavior: str
):
    """Whose it is stands in its properties; a state that was lost begins anew, and reads all again."""
    made = job(None if is_delta else Iceberg("ice"), is_changelog=True, behavior=behavior)
    for message in (*ROWS, *MORE):
        made.send(message)
    made.run()
    before = contents(made)
    assert len(before[1]) == 6
    shutil.move(made.folder / "state", made.folder / "lost")
    for act in (made.pipeline().check, made.run):
        with pytest.raises(FileError, match=r"expected a lake table of this pipeline, got one of another .*--adopt"):
            act(*([made.spark] if act != made.run else []))
    assert contents(made) == before
    made.lake["is_adopting"] = True
    made.send(LAST)
    made.pipeline().check(made.spark)
    made.run()
    made.run_again()
    state, log, deletes = contents(made)
    assert [row[:3] for row in state] == [(1, 3, 7), (3, 4, 5), (4, 4, 6)]
    assert [row for row in log if row[1] != 4] == before[1]
    assert len(log) == 7
    assert deletes == before[2]
    # It is this pipeline's now, and the other one's no more.
    del made.lake["is_adopting"]
    assert made.run() == []
    made.send(canal("INSERT", [{"id": "5", "a": "4", "b": "6"}], id=8))
    made.run()
    assert len(contents(made)[1]) == 8
    shutil.rmtree(made.folder / "state")
    shutil.move(made.folder / "lost", made.folder / "state")
    for act in (made.pipeline().check, made.run):
        with pytest.raises(FileError, match="got one of another pipeline"):
            act(*([made.spark] if act != made.run else []))
    assert len(contents(made)[1]) == 8


@pytest.mark.parametrize("is_delta", [True, False], ids=["delta", "iceberg"])
def test_a_lake_table_that_says_nobodys_name_is_its_states(job: Callable[..., Job], *, is_delta: bool):
    """As all were at first: the state that wrote it goes on, and any other is refused."""
    made = job(None if is_delta else Iceberg("ice"), is_changelog=True)
    made.send(ROWS[0])
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
    made.send(ROWS[1])
    made.run()
    assert made.rows("d.t", "_cdc_op", "id", suffix="changes") == [("c", 1), ("c", 2)]
    shutil.rmtree(made.folder / "state")
    with pytest.raises(FileError, match="got one of another pipeline"):
        made.run()


@settings(max_examples=400)
@given(st.lists(st.builds(TableName, st.none() | told, st.none() | told, told), min_size=2, max_size=5, unique=True))
@example([TableName("d", None, "Orders"), TableName("D", None, "orders"), TableName("d", None, "orders~2")])
@example([TableName("d", None, "\u00e9"), TableName("d", None, "e\u0301"), TableName("d", None, "\u00c9")])
def test_tables_whose_names_differ_in_letter_case_only_have_other_folders_and_topics(named: list[TableName]):
    """The first keeps its own: folders, topics, subjects and Avro files go by the names that these are given."""
    known = Tables()
    for i, name in enumerate(named):
        source = Source(db_type="mysql", database=name.database, schema=name.schema, table=name.table or "x")
        known.add(Change(op="INSERT", source=source, key=("id",), after={"id": i}, position=(i,)))
    made = LakeNames()
    given_names = [made.name(table, known.tables) for table in known.tables]
    assert made.state == LakeNames.of(made.state).state
    folders = [path for name in given_names for path in paths(name)]
    for form in FORMS:
        folded = [[unicodedata.normalize(form, part).casefold() for part in path] for path in folders]
        for i, first in enumerate(folded):
            assert not any(all(a == b for a, b in zip(first, second, strict=False)) for second in folded[:i])
    topics = [topic_name("{name}", name).lower() for name in given_names]
    assert len({*topics}) == len(topics)
