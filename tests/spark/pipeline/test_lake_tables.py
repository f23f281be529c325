"""Batches to the tables of a lake, one behind another, by one process."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from cdcavro import to_changes
from cdcavro.lake import TypedRows
from cdcavro.spark.lake.batch import Facts
from cdcavro.spark.lake.sinks import Delta, Iceberg
from cdcavro.spark.pipeline import LakeSettings
from cdcavro.spark.pipeline.lake_tables import Part
from cdcavro.table import TableName
from cdcavro.table.tables import Tables
from support.pipelines import canal
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
        part = Part(number, rows, Facts(None, 0, 0, 0, []))
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
        part = Part(number, frame_of(spark, rows), Facts(None, 0, 0, 0, begins))
        (written,) = tables.write(spark, [(maker.tables.tables[0], NAME, [part])])
        assert written.error is None
    history = spark.sql(f"DESCRIBE HISTORY {sink.identifier(NAME)}").orderBy("version").collect()
    assert [step["operation"] for step in history] == ["CREATE TABLE", "WRITE", "MERGE"]
