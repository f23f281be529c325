"""Batches that Spark and the local runner merge into the same lake table, one behind the other."""

from __future__ import annotations

import random
from datetime import UTC, datetime
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from cdcavro.lake import TableState, TypedRows
from cdcavro.lake.merge import values_of
from cdcavro.spark.lake import CurrentState, Delta
from cdcavro.spark.lake.sinks import properties_of
from cdcavro.sync.native.delta_lake import NativeDelta
from cdcavro.sync.native.native_state import NativeState
from cdcavro.table import TableName
from cdcavro.table.tables import Tables
from support.keyed_changes import change, changes_by_seed
from support.lake_values import as_in_lake, shown, table_of
from support.shop_lake import frame_of, rows_in
from support.shop_state import image

pytestmark = [pytest.mark.timeout(1_200), pytest.mark.classic]
NOW = datetime(2026, 11, 22, tzinfo=UTC)
NAME = TableName("d", None, "t")


@pytest.mark.parametrize("is_partial", [False, True])
def test_a_state_that_two_runners_merge_in_turns_is_that_of_each_alone(
    spark: SparkSession, tmp_path: Path, *, is_partial: bool
):
    """Late deletes, a late TRUNCATE, repetitions; and what each writes into properties, the other reads."""
    maker, plain = TypedRows(Tables(zone=UTC)), TableState()
    draw = random.Random(7)
    messages = [one for one in changes_by_seed(5, 24) * 2 if is_partial or not one[0].unavailable]
    draw.shuffle(messages)
    batches = [[change("INSERT", 1, 0)], *[messages[i : i + 16] for i in range(0, len(messages), 16)]]
    names = ["spark first", "native first", "native"]
    for number, batch in enumerate(batches):
        rows = maker.of_batch(batch).rows
        plain.merge(rows)
        (table,) = maker.tables.tables
        for i, name in enumerate(names):
            root = str(tmp_path / name)
            if i < 2 and number % 2 == i:
                on_spark = CurrentState(Delta(root), NAME)
                on_spark.prepare(spark, table.versions)
                on_spark.merge(frame_of(spark, rows), table.versions, now=NOW)
            else:
                native = NativeState(NativeDelta(root), NAME)
                native.prepare(table.versions)
                native.merge(table_of(rows), table.versions, now=NOW)
        columns = [column.name for column in table.schema.all_columns]
        wanted = [
            as_in_lake(
                dict.fromkeys(columns) | values_of(pieces, lambda one, versions=table.versions: image(one, versions)),
                table.schema,
            )
            for pieces in plain.rows.values()
        ]
    for name in names:
        assert shown(rows_in(spark, Delta(str(tmp_path / name)).identifier(NAME))) == shown(wanted), name
    said = [own_properties(spark, str(tmp_path / name)) for name in names]
    assert said[0] == said[1] == said[2]
    deletes = [everything(spark, str(tmp_path / name), "deletes") for name in names]
    assert deletes[0] == deletes[1] == deletes[2] != []
    rows = [everything(spark, str(tmp_path / name), "") for name in names]
    assert rows[0] == rows[1] == rows[2]


def own_properties(spark: SparkSession, root: str) -> dict[str, str]:
    """Return what a state says of itself, without what is new for each table."""
    properties = properties_of(spark, Delta(root).identifier(NAME))
    return {
        name: value for name, value in properties.items() if name.startswith("cdcavro.") and name != "cdcavro.created"
    }


def everything(spark: SparkSession, root: str, suffix: str) -> list[str]:
    """Return all columns of all rows of a lake table, its types first."""
    frame = spark.table(Delta(root).identifier(NAME, suffix))
    rows = [
        {name: sorted(value.items()) if isinstance(value, dict) else value for name, value in row.asDict().items()}
        for row in frame.collect()
    ]
    return [str(frame.dtypes), *sorted(map(repr, rows))]
