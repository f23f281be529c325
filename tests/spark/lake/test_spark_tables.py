"""Tables of Spark's under the replay of versions: the same rows as the oracle's, whatever comes, in both lakes."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import cast

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from cdcavro.lake.lakes import HISTORY, SOFT
from cdcavro.spark.lake import Delta, Iceberg
from cdcavro.spark.lake.sinks import Sink
from cdcavro.spark.lake.spark_tables import SparkLake, collect_arrow, frame_of
from cdcavro.sync.native.native_columns import NativeLake
from support.local_pipelines import DELTA
from support.versioned_lakes import check_shuffle

pytestmark = [pytest.mark.timeout(1_800), pytest.mark.classic]
# Spark takes a minute for each: more with CDCAVRO_EVERY_MESSAGE in the environment.
SEEDS = range(10) if os.environ.get("CDCAVRO_EVERY_MESSAGE") else [2]
VALUES = {
    "a b`.": pa.array([1, None], pa.int32()),
    "far": pa.array([-62_135_596_800_000_000, 253_402_300_799_999_999], pa.timestamp("us", "UTC")),
    "local": pa.array([datetime(1, 1, 1), datetime(2026, 7, 1, 2, 30)], pa.timestamp("us")),  # noqa: DTZ001  local times
    "day": pa.array([date(1500, 2, 28), None]),
    "number": pa.array([Decimal("-1.50"), Decimal("9" * 36 + ".99")], pa.decimal128(38, 2)),
    "bytes": pa.array([b"\xff\x00", None]),
    "texts": pa.array([[("a", "\0x"), ("b", None)], None], pa.map_(pa.string(), pa.string())),
    "items": pa.array([[b"\x01", None], []], pa.list_(pa.binary())),
    "parts": pa.array([{"x": 1.5, "y": None}, None], pa.struct([("x", pa.float64()), ("y", pa.bool_())])),
}


def test_rows_go_to_spark_and_come_back_as_they_are(spark: SparkSession):
    """Every type of a lake's column, in several parts and in none."""
    rows = pa.table(VALUES)
    for count in (0, 1, 7_000):
        sent = pa.concat_tables([rows] * count) if count else rows.schema.empty_table()
        assert collect_arrow(frame_of(spark, sent)).cast(sent.schema).equals(sent)


def test_a_task_has_one_part_of_the_rows(spark: SparkSession):
    """A cluster refuses larger tasks than `spark.rpc.message.maxSize`."""
    count = spark.sparkContext.defaultParallelism + 3
    sent = pa.table({"number": pa.array(range(10_000 * count), pa.int64())})
    frame = frame_of(spark, sent)
    assert frame.rdd.getNumPartitions() == count
    assert collect_arrow(frame).cast(sent.schema).equals(sent)


@pytest.fixture(autouse=True)
def room(spark: SparkSession) -> Iterator[None]:
    """Remove the tables of shuffles from Iceberg's one catalog: the next one has tables of the same names."""
    yield
    shutil.rmtree(Path(spark.conf.get("spark.sql.catalog.ice.warehouse", "")) / "d", ignore_errors=True)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize(("kind", "form"), [("delta", HISTORY), ("iceberg", SOFT)])
def test_any_order_cut_and_repetition_makes_the_rows_of_the_oracle(
    spark: SparkSession, tmp_path: Path, kind: str, form: str, seed: int
):
    """Late changes, deletes, TRUNCATE, a late full load, changes that lack columns, batches that are merged twice."""
    sink: Sink = Delta(str(tmp_path / "lake")) if kind == DELTA else Iceberg("ice")
    check_shuffle(tmp_path, form, kind, seed, cast("NativeLake", SparkLake(spark, sink)))
