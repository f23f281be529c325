"""Topics and Avro files that Spark and the local runner write by turns: the same records in the same places."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import fastavro
import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from cdcavro.lake.lakes import UNKNOWN_ATTEMPT
from cdcavro.lake.typed_rows import TypedRows
from cdcavro.spark.pipeline.pipeline_rejects import RejectTopic
from cdcavro.spark.pipeline.record_sinks import FileSink, TopicSink
from cdcavro.sync.conversion.outcome_rows import COLUMNS, SCHEMA
from cdcavro.sync.local.local_sinks import AvroFileSink
from cdcavro.sync.local.topic_sink import LocalRejectTopic, LocalTopicSink
from cdcavro.sync.outputs.reject_places import Rejects
from cdcavro.sync.outputs.sink_settings import AvroFiles, Job, KafkaTopics
from cdcavro.sync.outputs.writer import BatchRows, Publisher
from cdcavro.sync.settings import RegistrySettings
from cdcavro.table.tables import Tables
from support.kafka_server import Broker
from support.messages import canal
from support.shop_lake import frame_of
from support.waiting_rows import FACTS, as_table, typed_rows

pytestmark = pytest.mark.timeout(600)
OWN = Job("the job", frozenset())
BATCHES = (
    (
        *[canal("INSERT", [{"id": str(id), "a": "1"}], id=id) for id in range(1, 40)],
        canal("UPDATE", [{"id": "99", "a": "1"}], id=50, old=[{"id": "1"}]),
        *[canal("INSERT", [{"n": str(n)}], id=60 + n, table="log", pkNames=None) for n in range(9)],
    ),
    (
        canal("INSERT", [{"id": "5", "a": "1", "b": "2"}], id=100),
        canal("DELETE", [{"id": "5", "a": "1", "b": "2"}], id=101),
        canal("DELETE", [{"id": "7", "a": "1", "b": None}], id=102),
        canal("TRUNCATE", [], id=103, isDdl=True, sql="TRUNCATE TABLE t"),
        canal("ERASE", [], id=104, isDdl=True, sql="DROP TABLE t"),
    ),
)


def both_rows(spark: SparkSession, maker: TypedRows) -> tuple[list[Any], list[Any]]:
    """Return the rows of two batches by table, as Spark and as the local runner hold them."""
    held: tuple[dict[int, Any], dict[int, Any]] = {}, {}
    for batch, messages in enumerate(BATCHES):
        for number, rows in typed_rows(maker, *messages).items():
            for own, part in zip(held, (frame_of(spark, rows), as_table(rows)), strict=True):
                own.setdefault(number, []).append(BatchRows(batch, part, FACTS))
    known = maker.tables.tables
    on_spark, here = (
        [(known[number], known[number].schema.table, parts) for number, parts in own.items()] for own in held
    )
    return on_spark, here


def records(kafka: Broker, topic: str, *, is_placed: bool) -> list[Any]:
    """Return the records of a topic in their order; without partitions of those without a key if Kafka chose them."""
    found = [(one.partition(), one.key(), one.value(), one.headers()) for one in kafka.records(topic)]
    return [one if is_placed or one[1] is not None else (None, *one[1:]) for one in found]


@pytest.mark.parametrize(
    ("name", "shards", "partitions", "more"),
    [
        ("blob", "blob", 5, {}),
        ("tuple", "tuple", 5, {"tombstones": False}),
        ("one", None, 1, {"truncates": False}),
    ],
)
def test_records_are_the_same_to_the_byte_and_in_the_same_partitions(
    spark: SparkSession, kafka: Broker, tmp_path: Path, name: str, shards: str | None, partitions: int, more: Any
):
    """Keys, values, headers, tombstones, and the order within a partition of what must have one."""
    found = []
    for runner in range(2):
        settings = KafkaTopics(kafka.servers, f"{name}{runner}.{{name}}", shards=shards, partitions=partitions, **more)
        publisher = Publisher(RegistrySettings(f"file:{tmp_path}/schemas"), f"{name}.{{name}}")
        maker = TypedRows(Tables())
        rows = both_rows(spark, maker)[runner]
        for table, own, _ in rows:
            for version in table.versions:
                publisher.publish(table, own, version.version)
        if runner:
            writer: Any = LocalTopicSink(settings).writer(OWN, publisher)
            assert LocalTopicSink(settings).identity() == TopicSink(settings).identity(spark)
        else:
            writer = TopicSink(settings).writer(OWN, publisher)
        assert [one.error for one in writer.write(rows)] == [None, None]
        is_placed = shards is not None or partitions == 1
        found.append([records(kafka, f"{name}{runner}.d.{table}", is_placed=is_placed) for table in ("t", "log")])
    for on_spark, here in zip(*found, strict=True):
        assert len(on_spark) > 8
        assert sorted(map(repr, on_spark)) == sorted(map(repr, here))
        assert _by_lane(on_spark) == _by_lane(here)


def _by_lane(records: Sequence[Any]) -> dict[bytes | None, list[Any]]:
    """Return records with a key by it, each lane in its order."""
    lanes: dict[bytes | None, list[Any]] = {}
    for one in records:
        if one[1] is not None:
            lanes.setdefault(one[1], []).append(one)
    return lanes


def test_rejects_are_the_same_lines(spark: SparkSession, kafka: Broker):
    """With the bytes of their messages, unless they are too large; they have the key of the message."""
    none = dict.fromkeys(SCHEMA.names) | {"what": 1, "topic": "in", "partition": 0, "format": "canal", "path": "$.a"}
    rows = [
        {**none, "offset": 1, "raw": b"\xff" * 100, "record_key": b"k", "reason": "expected a/b \"é\", got '\u2028'"},
        {**none, "offset": 2, "raw": b"x" * 9_000, "record_key": b"", "reason": "large", "note": "[1]"},
        {**none, "offset": 3, "record_key": b"", "reason": "a tombstone"},
        # The largest that fits, and one more.
        *[{**none, "offset": 10 + i, "raw": b"x" * (4_000 + i), "reason": "x"} for i in range(60)],
    ]
    now = datetime(2024, 1, 2, 3, 4, 5, 678, tzinfo=UTC)
    found = []
    for runner in range(2):
        settings = KafkaTopics(kafka.servers, f"rejects{runner}", {"kafka.max.request.size": "10000"}, partitions=3)
        held: Any = pa.Table.from_pylist(rows, SCHEMA)
        held = (
            held
            if runner
            else spark.createDataFrame([tuple(row[name] for name in SCHEMA.names) for row in rows], COLUMNS)
        )
        topic: Any = (RejectTopic, LocalRejectTopic)[runner](settings, OWN.id)
        topic.write(Rejects(held, 7, now, UNKNOWN_ATTEMPT))
        found.append(sorted(map(repr, records(kafka, settings.topic, is_placed=False))))
    assert found[0] == found[1]
    assert 0 < sum("'eHh4" not in one and '"eHh4' not in one for one in found[0]) < 60


def test_a_folder_of_files_goes_on_with_the_other_runner(spark: SparkSession, tmp_path: Path):
    """Whichever began; a batch that the other wrote is replaced, and the names are the same."""
    found = []
    for first in range(2):
        root = tmp_path / str(first)
        settings = AvroFiles(str(root))
        writers: list[Any] = [FileSink(settings).writer(OWN, None), AvroFileSink(settings).writer(OWN, None)]
        assert FileSink(settings).identity(spark) == AvroFileSink(settings).identity()
        rows = both_rows(spark, TypedRows(Tables()))
        begun = [(table, name, parts[:1]) for table, name, parts in rows[first]]
        assert not any(one.error for one in writers[first].write(begun))
        # The other one goes on, and runs the first batch again.
        assert not any(one.error for one in writers[1 - first].write(rows[1 - first]))
        names = sorted(str(path.relative_to(root)) for path in root.rglob("*") if path.is_file())
        found.append((names, [_changes(root / name) for name in names if name.endswith(".avro")]))
    assert found[0] == found[1]
    assert [name for name in found[0][0] if "batch=1" in name] == ["d/t/batch=1/table=0/v2-00000.avro"]
    assert (tmp_path / "0/_job.json").read_bytes() == (tmp_path / "1/_job.json").read_bytes()


def _changes(path: Path) -> list[Any]:
    with path.open("rb") as stream:
        return list(fastavro.reader(stream))
