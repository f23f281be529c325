"""Changelogs that are compacted, and of which snapshots and files are removed: no batch is appended twice."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

from cdcavro import to_changes
from cdcavro.lake import TypedRows
from cdcavro.spark.lake import Changelog
from cdcavro.spark.lake.sinks import Sink
from cdcavro.table import TableName
from cdcavro.table.tables import Tables
from support.maintenance import compact, forget
from support.pipelines import canal
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
