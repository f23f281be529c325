"""Sinks whose tables are compacted, and of which snapshots and files are removed: no batch is lost or appended twice."""

from __future__ import annotations

import json
import threading
import time
from datetime import UTC, datetime
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as sf

from cdcavro import to_changes
from cdcavro.avro.schema import parse_schema
from cdcavro.errors import JobError
from cdcavro.lake import TypedRows
from cdcavro.lake.lake_columns import spark_type, wanted_columns
from cdcavro.lake.lakes import Attempt
from cdcavro.spark.lake import Changelog, Delta
from cdcavro.spark.lake.sinks import Sink, retry
from cdcavro.spark.version_columns import _sql_type, true_type
from cdcavro.table import TableName
from cdcavro.table.older_fields import ROW
from cdcavro.table.tables import Tables
from support.column_types import typed_columns, version_of
from support.maintenance import compact, forget
from support.messages import canal
from support.shop_lake import frame_of

pytestmark = pytest.mark.timeout(600)
TRUNCATE = canal("TRUNCATE", [], id=3, isDdl=True, sql="TRUNCATE TABLE t")


def insert(id: int) -> bytes:
    """Return the message of an INSERT."""
    return canal("INSERT", [{"id": str(id)}], id=id)


def test_a_batch_whose_snapshot_is_gone_is_not_appended_twice(spark: SparkSession, sink: Sink):
    """A TRUNCATE, which has no key, among its rows; the batches behind it are appended, and one that is older than they."""
    log = Changelog(sink, TableName(f"kept {type(sink).__name__}", None, "t"))
    maker = TypedRows(Tables())
    batches = [
        maker.of_batch([to_changes(one, "canal") for one in messages]).rows
        for messages in ([insert(1), insert(2), TRUNCATE], [insert(5)], [insert(4)])
    ]
    versions = maker.tables.tables[0].versions
    log.prepare(spark, versions)

    def append(number: int) -> int:
        log.append(frame_of(spark, batches[number]), versions, job="it's", batch=number)
        return spark.table(log.identifier).count()

    found = []
    for number in range(3):
        found.append(append(number))
        compact(spark, sink, log.identifier)
        forget(spark, sink, log.identifier)
        found.append(append(number))
    assert found == [3, 3, 4, 4, 5, 5]


def test_an_append_of_which_the_history_says_nothing_more_stops(spark: SparkSession, tmp_path: Path):
    """A batch that was tried before the oldest commit that is known may be in the table or not: nothing is guessed."""
    sink, table = Delta(str(tmp_path)), TableName("d", None, "t")
    spark.sql(
        f"CREATE TABLE {sink.identifier(table)} (id int) USING delta TBLPROPERTIES ('delta.checkpointInterval' = '1')"
    )
    rows, now = spark.createDataFrame([(1,)], "id int"), datetime.now(UTC)
    for batch in range(2):
        sink.append(rows, table, "", "job", batch, Attempt(is_first=True))
    sink.append(rows, table, "", "job", 1, Attempt(since=now))
    sink.append(rows, table, "", "job", 2, Attempt(since=now))
    assert spark.table(sink.identifier(table)).count() == 3
    log = Path(sink.path(table), "_delta_log")
    for path in [*log.glob("*00.json"), *log.glob(".*00.json.crc")]:
        path.unlink()
    with pytest.raises(JobError, match=r"does not reach back to .* so it cannot be known whether the batch"):
        sink.append(rows, table, "", "job", 3, Attempt(since=now))
    assert spark.table(sink.identifier(table)).count() == 3


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
    retry(merge)
    other.join()
    assert len(tries) == 2
    assert [tuple(row) for row in spark.table(table).orderBy("id").collect()] == [(1, 7), (2, 7)]
    with pytest.raises(Exception, match="nowhere"):
        retry(lambda: tries.append(spark.sql(f"DROP TABLE {sink.identifier(TableName('d', None, 'nowhere'))}")))
    assert len(tries) == 2


NESTED = [
    {"type": "array", "items": "string"},
    {"type": "map", "values": ["null", "bytes"]},
    {"type": "array", "items": {"type": "map", "values": {"type": "long", "logicalType": "timestamp-millis"}}},
    {
        "type": "record",
        "name": "Inner",
        "fields": [{"name": "a", "type": "int"}, {"name": "b", "type": ["null", "string"]}],
    },
    {"type": "enum", "name": "Flag", "symbols": ["A"]},
    {"type": "fixed", "name": "Sixteen", "size": 16},
    {"type": "fixed", "name": "Money", "size": 8, "logicalType": "decimal", "precision": 12, "scale": 2},
    {"type": "long", "logicalType": "local-timestamp-millis"},
    {"type": "long", "logicalType": "timestamp-nanos"},
    {"type": "int", "logicalType": "time-millis"},
    {"type": "string", "logicalType": "uuid"},
    ["null", "int", "long"],
    ["float", "double"],
    ["null", "int", "string"],
    ["int", "boolean", "null"],
    ["null"],
]


def test_types_of_columns_are_those_of_spark(spark: SparkSession):
    """Of all that any format's columns may be."""
    schema = version_of(typed_columns())
    fields = true_type(schema, ROW).fields[: len(schema.columns)]
    assert [(column.name, column.type) for column in wanted_columns(schema)] == [
        (field.name, field.dataType.simpleString()) for field in fields
    ]


def test_types_of_schemas_of_other_makers_are_those_of_spark(spark: SparkSession):
    """Types within others, and unions."""
    declared = {
        "type": "record",
        "name": "R",
        "fields": [{"name": f"f{i}", "type": avro} for i, avro in enumerate(NESTED)],
    }
    schema = parse_schema(json.dumps(declared))
    found = [spark_type(field.type, field.name) for field in schema.root.fields]
    assert found == [field.dataType.simpleString() for field in _sql_type(schema.json).fields]
