"""Merges beside which a table is compacted."""

from __future__ import annotations

import threading
import time
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as sf

from cdcavro.spark.lake.sinks import Sink
from cdcavro.spark.lake.trying import tried
from cdcavro.table import TableName
from support.maintenance import compact

pytestmark = pytest.mark.timeout(600)


def test_a_merge_that_meets_the_commit_of_a_compaction_is_tried_again(spark: SparkSession, sink: Sink, tmp_path: Path):
    """The compaction commits while the merge is under way, which the lake refuses; what fails for another reason does not."""
    name = TableName(f"tried {type(sink).__name__}", None, "t")
    table = sink.identifier(name)
    sink.make_room(spark, name)
    spark.sql(f"CREATE TABLE {table} (id INT, n INT) USING {sink.using}")
    for id in (1, 2):
        spark.sql(f"INSERT INTO {table} VALUES ({id}, 0)")
    began, done = tmp_path / "began", tmp_path / "done"

    @sf.udf("int")
    def waits(n: int) -> int:
        began.touch()
        until = time.monotonic() + 120
        while not done.exists() and time.monotonic() < until:
            time.sleep(0.05)
        return n

    def beside() -> None:
        while not began.exists():
            time.sleep(0.05)
        compact(spark, sink, table)
        done.touch()

    tries = []

    def merge() -> None:
        tries.append(1)
        source = spark.range(1, 3, 1, 1).select(sf.col("id").cast("int").alias("id"), waits(sf.lit(7)).alias("n"))
        source.createOrReplaceTempView("source")
        spark.sql(
            f"MERGE INTO {table} t USING source s ON t.id = s.id WHEN MATCHED THEN UPDATE SET t.n = s.n"
        ).collect()

    other = threading.Thread(target=beside, daemon=True)
    other.start()
    tried(merge)
    other.join()
    assert len(tries) == 2
    assert [tuple(row) for row in spark.table(table).orderBy("id").collect()] == [(1, 7), (2, 7)]
    with pytest.raises(Exception, match="nowhere"):
        tried(lambda: tries.append(spark.sql(f"DROP TABLE {sink.identifier(TableName('d', None, 'nowhere'))}")))
    assert len(tries) == 2
