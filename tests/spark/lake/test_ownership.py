"""Whose lake tables are, and what of rows an adopted changelog holds already."""

from __future__ import annotations

from dataclasses import replace

import pytest
from pyspark.sql import SparkSession

from cdcavro import to_changes
from cdcavro.errors import FileError
from cdcavro.lake import TypedRows
from cdcavro.lake.lakes import OWNER, adopted_columns, adopted_until
from cdcavro.spark.lake import Changelog, CurrentState
from cdcavro.spark.lake.sinks import Sink, properties_of
from cdcavro.spark.lake.spark_tables import rows_not_held
from cdcavro.spark.pipeline.lake_tables import claim, foreign_tables
from cdcavro.table import TableName
from cdcavro.table.tables import Tables
from support.messages import canal
from support.shop_lake import frame_of


def test_a_table_is_its_makers_until_another_adopts_it(spark: SparkSession, sink: Sink):
    """What is refused is as it was; what an adopted changelog holds is none of the rows that it lacks."""
    name, maker = TableName(f"owned {type(sink).__name__}", None, "t"), TypedRows(Tables())
    messages = [
        canal("INSERT", [{"id": "1", "n": "1"}], id=1),
        canal("UPDATE", [{"id": "1", "n": "2"}], id=2, old=[{"n": "1"}]),
        canal("DELETE", [{"id": "1", "n": "2"}], id=3),
        canal("INSERT", [{"id": "1", "n": "3"}], id=4),
    ]
    rows = [frame_of(spark, maker.of_batch([to_changes(one, "canal")]).rows) for one in messages]
    versions = maker.tables.tables[0].versions
    first, second = (replace(sink, owner=owner) for owner in ("first", "second"))
    claim(spark, first, name, is_known=False, is_adopting=False)
    log, state = Changelog(first, name), CurrentState(first, name)
    for one in (log, state):
        one.prepare(spark, versions)
    for number, frame in enumerate(rows[:3]):
        log.append(frame, versions, job="first", batch=number)
        state.merge(frame, versions)
    assert foreign_tables(spark, first, name) == {}
    assert set(foreign_tables(spark, second, name)) == {log.identifier, state.identifier, state.deletes}
    before = properties_of(spark, log.identifier)
    for is_known in (True, False):
        with pytest.raises(FileError, match="expected a lake table of this pipeline, got one of another pipeline"):
            claim(spark, second, name, is_known=is_known, is_adopting=False)
    assert properties_of(spark, log.identifier) == before
    assert (adopted_columns(before), adopted_until(before)) == (None, b"")
    claim(spark, second, name, is_known=False, is_adopting=True)
    assert foreign_tables(spark, second, name) == {}
    found = properties_of(spark, log.identifier)
    assert found[OWNER] == "second"
    assert adopted_columns(found) == {"id", "n"}
    left = [rows_not_held(frame, log.identifier, adopted_until(found)).count() for frame in rows]
    assert left == [0, 0, 0, 1]
    both = rows[2].unionByName(rows[3])
    assert [row["operation"] for row in rows_not_held(both, log.identifier, adopted_until(found)).collect()] == ["c"]
