"""Changes on Spark: through Avro like any record, and in order within a shard."""

from __future__ import annotations

from zoneinfo import ZoneInfo

import pytest
from messages import goldens, shop_canal
from pyspark.sql import functions as sf
from pyspark.sql.avro.functions import from_avro, to_avro

import cdcavro
from cdcavro import spark as cdc
from cdcavro.change import Change

SCHEMA = cdcavro.load_schema("change").json


def changes_of(spark, format: str, texts: list[bytes]):
    """Give a frame of place and change payload."""
    frame = spark.createDataFrame(list(enumerate(texts)), "place int, value binary")
    made = frame.select("place", cdc.to_changes("value", format).alias("made"))
    return made.select("place", sf.posexplode("made.changes").alias("row", "change"))


@pytest.mark.parametrize("format", cdcavro.FORMATS)
def test_every_change_goes_through_from_avro_and_to_avro(spark, format):
    """What Spark reads and writes again is the change that Python makes."""
    texts = goldens(format) + (shop_canal() if format == "canal" else [])
    frame = changes_of(spark, format, texts)
    again = frame.select("place", "row", to_avro(from_avro("change", SCHEMA), SCHEMA).alias("change"))
    found = [Change.from_avro(bytes(row.change)) for row in sorted(again.collect())]
    assert found == [change for text in texts for change in cdcavro.to_changes(text, format)]


def test_a_message_that_is_none_is_an_error_beside_the_changes(spark):
    """Null for null, and one sentence for a bad message."""
    frame = spark.createDataFrame([(0, b'{"recordType":"ROW"}'), (1, b"x"), (2, None)], "place int, value binary")
    rows = sorted(frame.select("place", cdc.to_changes("value", "oms_default").alias("made")).collect())
    assert [len(rows[0].made.changes), rows[0].made.error] == [1, None]
    expected = "oms_default: $: expected JSON, got 'x' at character 0"
    assert (rows[1].made.changes, rows[1].made.error.message) == (None, expected)
    assert rows[2].made is None


def test_times_without_a_zone_are_counted(spark):
    """A sum over the column says how many stayed text."""
    text = '{"meta":{"op":"ins","time":"2020-11-25T00:01:02"},"data":{"id":1}}'
    frame = spark.createDataFrame([(text,)] * 3 + [("x",)], "value string")
    for zone, count in ((None, 3), (ZoneInfo("Asia/Shanghai"), 0)):
        made = frame.select(cdc.to_changes("value", "oms_shareplex", zone=zone).alias("made"))
        assert made.select(sf.sum("made.unzoned")).first()[0] == count


def test_a_stream_repartitioned_by_shard_keeps_the_order_within_a_key(spark):
    """The real changes of the shop, spread over shards: of each row they stand in the order they had."""
    texts = [text for text in shop_canal() if b'"table":"big"' in text and b'"isDdl":false' in text]
    frame = changes_of(spark, "canal", texts).withColumn("shard", cdc.shard("change", 4))
    sorted_in_shards = frame.repartitionByRange(4, "shard").sortWithinPartitions("shard", "place", "row")
    parts = sorted_in_shards.select("shard", "place", "row", "change").rdd.glom().collect()
    key_shards: dict[object, set[int]] = {}
    seen: dict[object, list[tuple[int, int]]] = {}
    for part in parts:
        for row in part:
            change = Change.from_avro(bytes(row.change))
            image = change.before if change.before is not None else change.after
            key_shards.setdefault(image["id"], set()).add(row.shard)
            seen.setdefault(image["id"], []).append((row.place, row.row))
    assert len(seen) == 67
    assert all(len(shards) == 1 for shards in key_shards.values())
    assert all(places == sorted(places) for places in seen.values())
    assert {shard for shards in key_shards.values() for shard in shards} == {0, 1, 2, 3}


def test_a_number_of_shards_below_one_is_refused_at_once(spark):
    """No job is started for it."""
    with pytest.raises(ValueError, match="a number of shards from 1, not 0"):
        cdc.shard("change", 0)
