"""Changelogs in Delta Lake and Iceberg."""

from __future__ import annotations

from datetime import UTC
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from cdcavro import to_changes
from cdcavro.lake import TypedRows
from cdcavro.spark.lake import Changelog, Delta
from cdcavro.spark.lake.sinks import Sink
from cdcavro.table import TableName
from cdcavro.table.tables import Tables
from support.pipelines import canal
from support.shop_lake import frame_of
from support.shop_state import as_came
from support.shop_tables import MESSAGES, shop

pytestmark = pytest.mark.timeout(1_200)


@pytest.mark.parametrize("producer", MESSAGES)
def test_every_change_is_in_the_changelog_once(spark: SparkSession, sink: Sink, producer: str):
    """In three batches, each of which is appended twice, the table's columns changing between them; without a key, too."""
    maker, messages = TypedRows(Tables(zone=UTC)), as_came(producer)
    size = -(-len(messages) // 3)
    logs = {}
    for number, i in enumerate(range(0, len(messages), size)):
        batch = maker.of_batch(messages[i : i + size])
        for table in maker.tables.tables:
            name = table.versions[0].table.table
            rows = [row for row in batch.rows if row.table == table.number]
            if rows and name in ("orders", "nopk"):
                log = logs[name] = Changelog(sink, TableName(f"log {producer} {type(sink).__name__}", None, name))
                log.prepare(spark, table.versions)
                for _ in range(2):
                    log.append(frame_of(spark, rows), table.versions, job="test's job", batch=number)
    for name, log in logs.items():
        found = [
            (row["_cdc_op"], row["_cdc_version"], row["_cdc_key"] and bytes(row["_cdc_key"]))
            for row in spark.table(log.identifier).orderBy("_cdc_order").collect()
            if row["_cdc_op"] not in ("b", "x")
        ]
        typed = [one for one in shop(producer)[1] if one.table.versions[0].table.table == name]
        operations = {"INSERT": "c", "UPDATE": "u", "DELETE": "d", "TRUNCATE": "t"}
        wanted = [(operations[one.change.op], one.schema.version, one.key) for one in typed]
        assert sorted(found, key=repr) == sorted(wanted, key=repr)
    orders = spark.table(logs["orders"].identifier)
    befores = orders.where("_cdc_op = 'b'").count()
    assert befores == orders.where("_cdc_op = 'u'").count() > 0
    moved = orders.where("tenant = 't9' AND _cdc_op = 'c'").select("order_id", "`amount (until version 4)`")
    assert [tuple(map(str, row)) for row in moved.collect()] == [("7", "11.10")]


@pytest.mark.every_spark
@pytest.mark.classic
def test_a_table_has_the_features_of_delta_lake_that_its_statements_need(spark: SparkSession, tmp_path: Path):
    """Each of them costs time with every write, and keeps readers out that do not know it."""
    maker, sink = TypedRows(Tables()), Delta(str(tmp_path))
    logs = {name: Changelog(sink, TableName("d", None, name)) for name in ("t", "renamed", "spaced", "off")}

    def features(name: str, message: bytes) -> set[str]:
        maker.of_batch([to_changes(message, "canal")])
        found = {table.versions[0].table.table: table.versions for table in maker.tables.tables}
        logs[name].prepare(spark, found[name])
        rows = spark.sql(f"SHOW TBLPROPERTIES {logs[name].identifier}").collect()
        return {row["key"].removeprefix("delta.") for row in rows} & {"columnMapping.mode", "enableTypeWidening"}

    def insert(id: int, name: str, column: str = "n") -> bytes:
        return canal("INSERT", [{"id": "1", column: "1"}], id=id, table=name)

    def statement(id: int, text: str, name: str = "t") -> bytes:
        return canal("ALTER", [], id=id, isDdl=True, table=name, sql=f"ALTER TABLE {name} {text}")

    assert features("t", insert(1, "t")) == set()
    assert features("t", statement(2, "ADD COLUMN more int")) == set()
    assert features("t", statement(3, "MODIFY COLUMN n bigint")) == {"enableTypeWidening"}
    assert features("t", statement(4, "RENAME COLUMN n TO m")) == {"columnMapping.mode", "enableTypeWidening"}
    assert features("renamed", insert(5, "renamed")) == set()
    assert features("renamed", statement(6, "RENAME COLUMN n TO m", "renamed")) == {"columnMapping.mode"}
    assert features("spaced", insert(7, "spaced")) == set()
    assert features("spaced", statement(8, "ADD COLUMN `a b` int", "spaced")) == {"columnMapping.mode"}
    features("off", insert(9, "off"))
    spark.sql(f"ALTER TABLE {logs['off'].identifier} SET TBLPROPERTIES ('delta.enableTypeWidening' = 'false')")
    assert features("off", statement(10, "MODIFY COLUMN n bigint", "off")) == {"enableTypeWidening"}
    assert dict(spark.table(logs["off"].identifier).dtypes)["n"] == "bigint"
