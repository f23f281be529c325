"""Rejects in a lake table beside their folder, once for each batch, and what is kept out of it; the topic's are with those of Kafka."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from cdcavro.errors import FileError
from cdcavro.lake.lakes import UNKNOWN_ATTEMPT
from cdcavro.spark.lake import Delta, Iceberg
from cdcavro.spark.pipeline import Kafka, LakeSettings, Pipeline, Settings
from cdcavro.spark.pipeline.pipeline_rejects import RejectTable, check_places
from cdcavro.sync.outputs.reject_places import RejectPlaces, Rejects
from cdcavro.table import TableName
from support.maintenance import compact, forget

pytestmark = pytest.mark.timeout(600)

LAKE = LakeSettings(Delta("lake"))

OUTCOMES = (
    "raw binary, record_key binary, topic string, partition int, offset bigint, file string, line bigint,"
    " format string, path string, reason string, note string"
)


def test_a_batch_whose_snapshot_is_gone_is_there_once(spark: SparkSession):
    """Iceberg's mark goes with the snapshot; then the rows tell, also those of Kafka, which have no file."""
    rejects = RejectTable(Iceberg("ice"), TableName("kept rejects", None, "t`"), "it's")
    identifier = rejects.sink.identifier(rejects.table)
    rows = [(b"\xff", None, "a", 0, 7, None, None, None, "$", "no", None), (b"", b"k", *[None] * 9)]
    frame, found = spark.createDataFrame(rows, OUTCOMES), []
    for batch in (0, 0, 1):
        rejects.write(Rejects(frame, batch, datetime.now(UTC), UNKNOWN_ATTEMPT))
        found.append(spark.table(identifier).count())
        compact(spark, rejects.sink, identifier)
        forget(spark, rejects.sink, identifier)
    assert found == [2, 2, 4]


def test_a_topic_that_the_source_reads_by_its_pattern_is_refused(spark: SparkSession, tmp_path: Path):
    """Rejects would be messages, and rejects again."""
    source = Kafka("127.0.0.1:9", pattern="shop[.]\\p{Lower}+")
    pipeline = Pipeline(source, LAKE, str(tmp_path / "state"), Settings(rejects_topic="shop.rejects"))
    for act in (pipeline.check, pipeline.run):
        with pytest.raises(
            FileError, match=r"shop\.rejects: expected a rejects_topic that the source does not read, got"
        ):
            act(spark)
    check_places(RejectPlaces.of(None, "shop.Rejects", source, LAKE), spark, source)
