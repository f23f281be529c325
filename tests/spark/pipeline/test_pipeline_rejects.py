"""Rejects in a lake table beside their folder, once for each batch, and what is kept out of it; the topic's are with those of Kafka."""

from __future__ import annotations

import json
import shutil
from base64 import b64decode
from datetime import UTC, datetime
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from cdcavro.errors import FileError, JobError
from cdcavro.spark.lake import Delta, Iceberg
from cdcavro.spark.lake.sinks import UNKNOWN_ATTEMPT
from cdcavro.spark.pipeline import Formats, Kafka, LakeSettings, Pipeline, Settings
from cdcavro.spark.pipeline.pipeline_rejects import RejectPlaces, Rejects, RejectTable, replay
from cdcavro.table import TableName
from support.maintenance import compact, forget
from support.pipelines import canal

pytestmark = pytest.mark.timeout(600)
LAKE = LakeSettings(Delta("lake"))
OUTCOMES = (
    "raw binary, record_key binary, topic string, partition int, offset bigint, file string, line bigint,"
    " format string, path string, reason string, note string"
)


def test_rejects_are_in_the_table_once_and_are_read_again_once(job):
    """Also if the first run failed before; the data's table of that name waits, and one of something else is left alone."""
    made, told = job(), {"formats": Formats("canal"), "rejects_table": "ops.rejects"}
    made.spark.sql(f"CREATE TABLE {made.sink.identifier(TableName('ops', None, 'rejects'))} (id INT) USING delta")
    made.send(
        canal("INSERT", [{"id": "1", "a": "1"}], id=1),
        b"\xff{",
        canal("INSERT", [{"id": "2", "a": "y"}], id=2),
        canal("INSERT", [{"id": "3"}], id=3, database="ops", table="rejects"),
    )
    other = r"the rejects of batch 0 cannot be written to the table ops\.rejects of Delta Lake at .*other columns: 'id'"
    strict = {"options": {"on_misfit": "reject"}}
    with pytest.raises(JobError, match=other):
        made.run(**told, **strict)
    assert not (made.folder / "lake" / "d").exists()
    shutil.rmtree(made.folder / "lake" / "ops")
    (report,) = made.run(**told, **strict)
    assert report.waiting == {"ops.rejects": "its place in the lake is that of the rejects, ops.rejects"}
    columns = ("raw", "record_key", "topic", "partition", "offset", "line", "format", "path", "reason", "batch")
    first = made.rows("ops.rejects", *columns)
    folder = made.folder / "state" / "rejects"
    lines = [json.loads(line) for path in folder.rglob("*.json") for line in path.open()]
    assert first == sorted((*[_value(one, name) for name in columns[:-1]], 0) for one in lines)
    assert len(first) == 2
    found = made.rows("ops.rejects", "time", "file")
    assert {(time.astimezone(UTC).isoformat(), file) for time, file in found} == {
        (one["time"], one["file"]) for one in lines
    }
    made.run_again(**told, **strict)
    assert made.rows("ops.rejects", *columns) == first
    replay(folder, made.folder / "state" / "replay")
    (again,) = made.run(**told)
    assert (again.counts["read"], again.counts["written"], again.counts["rejected"]) == (2, 1, 1)
    assert made.rows("d.t", "id", "_cdc_unparsed['a']") == [(1, None), (2, "y")]
    assert [row[:1] + row[-1:] for row in made.rows("ops.rejects", *columns) if row[-1]] == [(b"\xff{", 1)]


def _value(line: dict[str, str | None], name: str) -> object:
    value = line[name]
    return b64decode(value) if name in ("raw", "record_key") and value is not None else value


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
    RejectPlaces.of(None, "shop.Rejects", source, LAKE).check(spark, source)


@pytest.mark.parametrize(
    ("table", "is_refused"),
    [
        (TableName("ops", None, "rejects"), True),
        (TableName("OPS", None, "Rejects"), True),
        (TableName("Ops", None, "re\uff4aects"), True),
        (TableName("ops", "rejects", "t"), False),
        (TableName(None, None, "ops"), False),
        (TableName(None, "ops", "rejects"), False),
        (TableName("ops", None, "rejects~2"), False),
        (TableName("ops", None, "x" * 300), False),
    ],
)
def test_a_table_in_the_folder_of_the_rejects_is_refused(table: TableName, is_refused: bool):
    """Those whose names are in it, or around it, have other folders."""
    places = RejectPlaces.of("ops.rejects", None, Kafka("a", ("t",)), LAKE)
    assert (places.clash(table, None) is not None) is is_refused


def test_a_table_whose_topic_is_that_of_the_rejects_is_refused():
    """Readers of framed payloads would meet lines of JSON."""
    places = RejectPlaces.of(None, "cdc.shop.rejects", Kafka("a", ("t",)), LAKE)
    assert (
        places.clash(TableName("shop", None, "rejects"), "cdc.{name}")
        == "its topic is that of the rejects, cdc.shop.rejects"
    )
    assert places.clash(TableName("shop", None, "rejects"), "{name}") is None
    assert places.clash(TableName("shop", None, "rejects"), None) is None


def test_the_topic_has_what_the_source_says_of_connecting():
    """Not what only a source has."""
    options = {"Kafka.security.protocol": "SSL", "startingOffsets": "latest", "kafka.client.id": "me"}
    kafka = RejectPlaces.of(None, "r", Kafka("a:1", ("t",), options=options), LAKE).kafka
    assert kafka is not None
    assert (kafka.servers, kafka.topic) == ("a:1", "r")
    assert kafka.options == {"Kafka.security.protocol": "SSL", "kafka.client.id": "me"}
