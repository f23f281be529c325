"""Shards of typed rows: those of `cdcavro.shard` for the changes that they were made of."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

import cdcavro
from cdcavro.change.order import shard
from cdcavro.spark.pipeline.outputs.shards import BLOB, TUPLE, key_texts, shard_column
from support.pipelines import canal


def typed(types: dict[str, str], *rows: dict[str, str]):
    """Return changes, and what `Tables` writes of each."""
    tables = cdcavro.Tables()
    members = {"mysqlType": types, "pkNames": [name for name in types if name.startswith("k")] or None}
    changes = [
        change
        for i, row in enumerate(rows)
        for change in cdcavro.to_changes(canal("INSERT", [row], id=i, **members), "canal")
    ]
    return changes, [one for change in changes for one in tables.add(change)]


def test_the_shard_of_a_key_is_that_of_the_change(spark: SparkSession):
    """For integers, texts and decimals, of all sizes."""
    types = {"k1": "bigint unsigned", "k2": "varchar(9)", "k3": "decimal(30,2)", "n": "int"}
    rows = [{"k1": str(7**i), "k2": f"é{i}", "k3": f"{-(9**i)}.20", "n": "1"} for i in range(20)]
    changes, made = typed(types, *rows)
    keys = {one.schema.version: one.schema.key.json for one in made}
    frame = spark.createDataFrame(
        [(one.schema.version, one.key, b"") for one in made], "version int, key binary, order binary"
    )
    for strategy in (BLOB, TUPLE):
        column = shard_column(strategy, 7, made[0].schema.table, keys)
        found = [row[0] for row in frame.select(column).collect()]
        assert found == [shard(change, 7) for change in changes]
    assert len(set(found)) > 4


def test_without_a_key_it_is_that_of_the_table_or_any(spark: SparkSession):
    """With the rule of Tuple, rows are spread, and a row that is written again goes where it went."""
    changes, made = typed({"n": "int"}, {"n": "1"})
    frame = spark.createDataFrame([(1, None, bytes([i])) for i in range(50)], "version int, key binary, order binary")
    columns = [shard_column(strategy, 5, made[0].schema.table, {}) for strategy in (BLOB, TUPLE, TUPLE)]
    blob, first, again = zip(*[tuple(row) for row in frame.select(*columns).collect()], strict=True)
    assert set(blob) == {shard(changes[0], 5)}
    assert len(set(first)) == 5
    assert first == again


@pytest.mark.parametrize(("declared", "value"), [("date", "2024-01-02"), ("binary(2)", "ab"), ("int", "no number")])
def test_a_key_of_another_type_is_taken_as_it_is_encoded(declared: str, value: str):
    """So is one whose text is no value of its type: equal keys are in one shard."""
    _, (made,) = typed({"k": declared}, {"k": value})
    assert key_texts(made.key, made.schema.key) == [made.key.hex()]
