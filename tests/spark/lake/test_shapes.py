"""The shape of lake tables on Spark: both runners make the same, and go on with what the other one made."""

from __future__ import annotations

import random
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as sf

pytest.importorskip("pyiceberg")

from cdcavro import to_changes
from cdcavro.errors import SchemaError
from cdcavro.lake import TypedRows
from cdcavro.lake.evolution import DROP, LakeColumn, Step
from cdcavro.lake.table_shape import Partition, TableShape
from cdcavro.spark.lake import CurrentState, Delta, Iceberg
from cdcavro.spark.lake.sinks import partition_columns, properties_of, repartition, take_steps
from cdcavro.sync.native.delta_lake import NativeDelta
from cdcavro.sync.native.iceberg_lake import NativeIceberg
from cdcavro.sync.native.native_state import NativeState
from cdcavro.table import TableName
from cdcavro.table.tables import Tables
from support.lake_values import table_of
from support.messages import canal
from support.partition_changes import PLAIN_TYPES, PLAIN_VALUES, TYPES, moving_rows
from support.shop_lake import frame_of

pytestmark = [pytest.mark.timeout(600), pytest.mark.classic]
NOW = datetime(2026, 11, 24, tzinfo=UTC)
PROPERTIES: dict[str, str | int | bool] = {"write.target-file-size-bytes": 1 << 20, "team": "web"}
FIRST = TableShape("d.*", partition=("days(At)", "bucket(4, id)", "region"), properties=PROPERTIES)
SECOND = TableShape("d.*", partition=("months(at)", "truncate(1, region)"), properties={"team": "shop"})
NAMES = [TableName("d", None, name) for name in ("spark_first", "native_first")]


def test_tables_of_iceberg_are_partitioned_alike_by_both_runners(spark: SparkSession):
    """Rows that are moved from partition to partition, updated, deleted and sent again are those of the source."""
    warehouse = spark.conf.get("spark.sql.catalog.ice.warehouse")
    maker, batches = TypedRows(Tables(zone=UTC)), moving_rows(random.Random(5), 6, 30)
    told: dict[str, list[str]] = {}
    for number, (messages, wanted) in enumerate(batches):
        rows = maker.of_batch([to_changes(message, "canal") for message in messages]).rows
        shapes, versions = ((FIRST, SECOND)[number // 3],), maker.tables.tables[0].versions
        for i, name in enumerate(NAMES):
            if number % 2 == i:
                on_spark = CurrentState(Iceberg("ice", shapes=shapes), name)
                told.setdefault(name.table, []).extend(map(str, on_spark.prepare(spark, versions)))
                on_spark.merge(frame_of(spark, rows), versions, now=NOW)
            else:
                native = NativeState(NativeIceberg("ice", shapes=shapes, warehouse=warehouse), name)
                told.setdefault(name.table, []).extend(map(str, native.prepare(versions)))
                native.merge(table_of(rows), versions, now=NOW)
            found = spark.table(f"ice.d.{name.table}").select(*TYPES).collect()
            for region in {row["region"] for row in found}:
                held = spark.table(f"ice.d.{name.table}").where(sf.col("region").eqNullSafe(sf.lit(region)))
                assert held.count() == sum(row["region"] == region for row in found)
            assert sorted(map(str, ({**row.asDict(), "at": row["at"] and str(row["at"])} for row in found))) == wanted
    assert told[NAMES[0].table] == told[NAMES[1].table]
    assert len(told[NAMES[0].table]) == 2, told
    first, second = (facts(warehouse, name) for name in NAMES)
    assert first == second
    spark.sql("DROP TABLE ice.d.spark_first")
    spark.sql("DROP TABLE ice.d.native_first")


@pytest.mark.parametrize("is_readable", [False, True])
def test_a_table_of_delta_lake_is_partitioned_by_both_runners(spark: SparkSession, tmp_path: Path, is_readable: bool):
    """Each goes on with what the other made, also where a column by which files are partitioned was renamed."""
    root, shapes = str(tmp_path / "lake"), (TableShape("d.*", partition=("KIND", "day", "big")),)
    sink = Delta(root, shapes=shapes, is_readable=is_readable)
    native_lake = NativeDelta(root, shapes=shapes, is_readable=is_readable)
    maker, names, state = TypedRows(Tables(zone=UTC)), [*PLAIN_TYPES], CurrentState(sink, NAMES[0])
    for number, (messages, wanted) in enumerate(moving_rows(random.Random(7), 4, 12, PLAIN_TYPES, PLAIN_VALUES)):
        sent = messages
        if number > 1:
            names[1] = "of_day"
            renamed = canal("ALTER", [], id=90, isDdl=True, sql="ALTER TABLE t CHANGE day of_day date")
            sent = [renamed, *(message.replace(b'"day"', b'"of_day"') for message in messages)]
        rows = maker.of_batch([to_changes(message, "canal") for message in sent]).rows
        versions = maker.tables.tables[0].versions
        if number % 2:
            native = NativeState(native_lake, NAMES[0])
            told = native.prepare(versions)
            native.merge(table_of(rows), versions, now=NOW)
        else:
            told = state.prepare(spark, versions)
            state.merge(frame_of(spark, rows), versions, now=NOW)
        assert not any("partition" in str(step) for step in told)
        selected = [sf.col(one) if one in ("id", "n") else sf.col(one).cast("string") for one in names]
        found = [
            dict(zip(PLAIN_TYPES, row, strict=True))
            for row in spark.table(state.identifier).select(*selected).collect()
        ]
        assert sorted(map(str, found)) == wanted
    held = spark.table(state.identifier)
    for day in {row["day"] for row in found}:
        is_same = sf.col("of_day").eqNullSafe(sf.lit(day).cast("date"))
        assert held.where(is_same).count() == sum(row["day"] == day for row in found)
    steps = [Step(DROP, "kind", LakeColumn("kind", "kind", "tinyint"))]
    with pytest.raises(SchemaError, match="'kind' is dropped: files are partitioned by it"):
        take_steps(spark, sink, state.identifier, steps, {"team": "web"})
    assert "team" not in properties_of(spark, state.identifier)
    assert partition_columns(spark, state.identifier) == ["kind", "of_day", "big"]
    assert repartition(spark, sink, state.identifier, [Partition("n")])[0].startswith(
        "rows are partitioned by kind, of_day"
    )


ORDERED = [TableShape("d.*", cluster=by) for by in (("region", "At"), ("n",), ())]
# What batches say of the order, what `region` is called in them, and the order.
TURNS: list[tuple[int, str, list[str]]] = [
    (0, "region", ["region", "at"]),
    (0, "region", ["region", "at"]),
    (1, "region", ["n"]),
    (0, "area", ["area", "at"]),
    (0, "area", ["area", "at"]),
    (2, "area", []),
]


def test_tables_of_iceberg_are_sorted_alike_by_both_runners(spark: SparkSession):
    """Each leaves the order of the other, also of a column that is renamed meanwhile, and rows are those of the source."""
    warehouse = spark.conf.get("spark.sql.catalog.ice.warehouse")
    maker, batches = TypedRows(Tables(zone=UTC)), moving_rows(random.Random(9), len(TURNS), 20)
    names = [TableName("d", None, name) for name in ("sorted_spark_first", "sorted_native_first")]
    told: dict[str, list[str]] = {one.table: [] for one in names}
    for number, ((messages, wanted), (shape, region, order)) in enumerate(zip(batches, TURNS, strict=True)):
        # The first three came before, when the column had another name.
        sent = [message.replace(b'"region"', f'"{region}"'.encode()) for message in messages[3 if number == 3 else 0 :]]
        if number == 3:
            sql = "ALTER TABLE t CHANGE region area varchar(9)"
            sent = [canal("ALTER", [], id=60, es=1_700_000_060_500, isDdl=True, sql=sql), *sent]
        rows = maker.of_batch([to_changes(message, "canal") for message in sent]).rows
        shapes, versions = (ORDERED[shape],), maker.tables.tables[0].versions
        for i, name in enumerate(names):
            if number % 2 == i:
                on_spark = CurrentState(Iceberg("ice", shapes=shapes), name)
                told[name.table] += map(str, on_spark.prepare(spark, versions))
                on_spark.merge(frame_of(spark, rows), versions, now=NOW)
            else:
                native = NativeState(NativeIceberg("ice", shapes=shapes, warehouse=warehouse), name)
                told[name.table] += map(str, native.prepare(versions))
                native.merge(table_of(rows), versions, now=NOW)
            held = spark.table(f"ice.d.{name.table}").select("id", sf.col(region).alias("region"), "at", "n").collect()
            found = [str({**row.asDict(), "at": row["at"] and str(row["at"])}) for row in held]
            assert sorted(found) == wanted
            check_order(spark, warehouse, name, order)
    assert told[names[0].table] == told[names[1].table]
    steps = [Step(DROP, "area", LakeColumn("area", "region", "string"))]
    for name in names:
        assert "write.distribution-mode" not in properties_of(spark, f"ice.d.{name.table}")
        with pytest.raises(SchemaError, match="'area' is dropped: rows are sorted by it, or were"):
            take_steps(spark, Iceberg("ice"), f"ice.d.{name.table}", steps, {})
        spark.sql(f"DROP TABLE ice.d.{name.table}")


def check_order(spark: SparkSession, warehouse: str | None, name: TableName, order: list[str]) -> None:
    """Check by what columns a table is sorted, as pyiceberg and Spark see it."""
    table = NativeIceberg("ice", warehouse=warehouse or "").files.load_table(("d", name.table))
    held = [table.schema().find_column_name(one.source_id) for one in table.sort_order().fields]
    shown = properties_of(spark, f"ice.d.{name.table}").get("sort-order")
    assert (held, shown) == (order, ", ".join(f"{one} ASC NULLS FIRST" for one in order) or None)


def facts(warehouse: str, name: TableName) -> dict[str, Any]:
    """Return how a table was partitioned first and is partitioned now, and its properties that were set.

    Spark takes one field of a partition after another out, each in a spec of its own.
    """
    table = NativeIceberg("ice", warehouse=warehouse).files.load_table(("d", name.table))
    specs = [
        [(one.name, str(one.transform), one.source_id) for one in spec.fields]
        for spec in (table.specs()[0], table.spec())
    ]
    return {"specs": specs, **{name: table.properties.get(name) for name in PROPERTIES}}


def test_properties_are_set_on_spark(spark: SparkSession, tmp_path: Any):
    """Of a new table, and of one that has others."""
    name = TableName("d", None, "t")
    ((messages, _),) = moving_rows(random.Random(5), 1, 3)
    maker = TypedRows(Tables(zone=UTC))
    maker.of_batch([to_changes(message, "canal") for message in messages])
    versions = maker.tables.tables[0].versions
    for retention, said in (("interval 60 days", []), ("interval 9 days", ["delta.logRetentionDuration"])):
        shape = TableShape("T", properties={"delta.logRetentionDuration": retention, "team": "web"})
        state = CurrentState(Delta(str(tmp_path), shapes=(shape,)), name)
        assert [*map(str, state.prepare(spark, versions))] == [f"property {one} is set to {retention}" for one in said]
        own = properties_of(spark, state.identifier)
        assert (own["delta.logRetentionDuration"], own["team"]) == (retention, "web")
