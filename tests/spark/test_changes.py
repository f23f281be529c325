"""Changes on Spark: through Avro like any record, and in order within a shard."""

from __future__ import annotations

from zoneinfo import ZoneInfo

import pytest
from pyspark.errors import PythonException
from pyspark.sql import functions as sf
from pyspark.sql.avro.functions import from_avro, to_avro

import cdcavro
from cdcavro import spark as cdc
from cdcavro.change.model import Arrival, Change, Source, replace
from cdcavro.change.order_value import order_value
from cdcavro.spark.changes import key_fields
from cdcavro.table import TypeOverrides
from cdcavro.transcoding.mapping import to_changes
from support.messages import goldens, shop_canal

pytestmark = pytest.mark.every_spark

SCHEMA = cdcavro.load_schema("change").json
CANAL = Source(format="canal")


def changes_of(spark, format: str, texts: list[bytes]):
    """Return a frame of place and change payload."""
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


def test_a_place_has_its_whole_numbers_beside_nulls(spark):
    """Those that a double does not hold, in a batch with places that lack them, or that are none."""
    line = '{"type":"INSERT","table":"t","data":[{"id":1}]}'
    told = [("a", 2**62 + 1, line), (None, None, line), ("b", None, line), ("c", 2**53 + 1, line)]
    frame = spark.createDataFrame(told, "topic string, offset long, value string").coalesce(1)
    for place, without in (
        (sf.struct("topic", sf.lit(0).alias("partition"), "offset"), Arrival(partition=0)),
        (sf.when(sf.col("topic").isNotNull(), sf.struct("topic", sf.lit(0).alias("partition"), "offset")), None),
    ):
        made = frame.select(sf.explode(cdc.to_changes("value", "canal", place=place)["changes"]).alias("c")).collect()
        assert [Change.from_avro(bytes(row.c)).place for row in made] == [
            Arrival(topic="a", partition=0, offset=2**62 + 1),
            without,
            Arrival(topic="b", partition=0),
            Arrival(topic="c", partition=0, offset=2**53 + 1),
        ]


def test_an_order_key_has_its_whole_numbers_beside_nulls(spark):
    """Null for null, and the numbers of the source as they are."""
    changes = [
        Change(op="INSERT", position=(2**62 + 1, 3), place=Arrival(topic="t", partition=0, offset=2**53 + 1)),
        Change(op="INSERT", place=Arrival(file="f", line=7)),
    ]
    rows = [(i, bytearray(change.to_avro())) for i, change in enumerate(changes)]
    frame = spark.createDataFrame([*rows, (2, None)], "i int, change binary").coalesce(1)
    found = [row.k for row in sorted(frame.select("i", cdc.order_key("change").alias("k")).collect())]
    assert found[2] is None
    assert [one.asDict() for one in found[:2]] == [key_fields(change) for change in changes]
    both = frame.select(cdc.order_key("change"), cdc.shard("change", 3))
    assert both.columns == ["cdc_order_key(change)", "cdc_shard(change)"]


def test_times_without_a_zone_are_counted(spark):
    """A sum over the column says how many stayed text."""
    text = '{"meta":{"op":"ins","time":"2020-11-25T00:01:02"},"data":{"id":1}}'
    frame = spark.createDataFrame([(text,)] * 3 + [("x",)], "value string")
    for zone, count in ((None, 3), (ZoneInfo("Asia/Shanghai"), 0)):
        made = frame.select(cdc.to_changes("value", "oms_shareplex", zone=zone).alias("made"))
        assert made.select(sf.sum("made.unzoned")).first()[0] == count


@pytest.mark.classic
def test_a_stream_repartitioned_by_shard_keeps_the_order_within_a_key(spark):
    """All real changes of the shop, thrown about and spread over shards: of each row they come in the order they had.

    Canal's numbers have ties: a batch of many messages has one. The place of arrival breaks them.
    """
    texts = [text for text in shop_canal() if b'"isDdl":false' in text]
    frame = spark.createDataFrame(list(enumerate(texts)), "line long, value binary").repartition(7)
    place = sf.struct(sf.lit("shop.jsonl").alias("file"), "line")
    made = frame.select(sf.explode(cdc.to_changes("value", "canal", place=place)["changes"]).alias("change"))
    shards = made.withColumn("shard", cdc.shard("change", 4)).repartition(4, "shard")
    parts = shards.sortWithinPartitions("shard", cdc.order_key("change")).rdd.glom().collect()
    found = [[(row.shard, Change.from_avro(bytes(row.change))) for row in part] for part in parts]
    wanted = [change for text in texts for change in to_changes(text, "canal")]
    assert {number for part in found for number, _ in part} == {0, 1, 2, 3}
    for key in {_key(change) for change in wanted}:
        holders = [[change for _, change in part if _key(change) == key] for part in found]
        (held,) = filter(None, holders)
        assert [replace(change, place=None) for change in held] == [one for one in wanted if _key(one) == key]


def _key(change: Change) -> tuple:
    image = change.before if change.before is not None else change.after
    return change.source.table, *(str(image[name]) for name in change.key or image)


def test_a_change_that_cannot_be_ordered_fails_the_job(spark):
    """Nothing is guessed."""
    frame = changes_of(spark, "oms_canal", [b'{"type":"INSERT","table":"t","data":[{"id":1}]}'])
    with pytest.raises(PythonException, match="expected a position or a place to order the change of 't' by, got none"):
        frame.select(cdc.order_key("change")).collect()


def test_the_order_as_one_value_is_that_of_python_and_compares_in_sql(spark):
    """Unsigned, as bytes are compared: two numbers on either side of 128 and of 256 bytes are in order."""
    changes = [
        Change(op="INSERT", position=(first, second), place=Arrival(file="a", line=line))
        for first, second, line in [(1, 255, 1), (127, 0, 2), (128, 0, 3), (255, 9, 4), (256, 1, 5), (2**40, 0, 6)]
    ]
    rows = [(i, bytearray(change.to_avro())) for i, change in enumerate(changes)]
    frame = spark.createDataFrame(rows[::-1], "i int, change binary").withColumn("o", cdc.order_value("change"))
    assert [(row.i, bytes(row.o)) for row in frame.orderBy("o").collect()] == [
        (i, order_value(change)) for i, change in enumerate(changes)
    ]
    pairs = frame.alias("a").join(frame.alias("b"), sf.expr("a.o > b.o")).select("a.i", "b.i").collect()
    assert sorted(map(tuple, pairs)) == [(i, j) for i in range(6) for j in range(i)]
    assert spark.range(1).select(cdc.order_value(sf.lit(None).cast("binary"))).first() == (None,)
    unplaced = changes_of(spark, "oms_canal", [b'{"type":"INSERT","table":"t","data":[{"id":1}]}'])
    with pytest.raises(PythonException, match="expected a position or a place to order the change of 't' by, got none"):
        unplaced.select(cdc.order_value("change")).collect()


@pytest.mark.parametrize(
    ("change", "phase", "position"),
    [
        (Change(op="INSERT", position=(5, 1)), 1, [5, 1]),
        (Change(op="INSERT", place=Arrival(file="a", line=3)), 1, None),
        (Change(op="CREATE", position=(5,), snapshot=True), -1, [5]),
        (Change(op="SNAPSHOT", place=Arrival(file="a", line=3)), 0, []),
        (Change(op="SNAPSHOT", position=(5,)), 0, []),
        (Change(op="INSERT", source=CANAL, place=Arrival(file="a", line=3)), 1, []),
        (Change(op="INSERT", source=CANAL, position=(5,), event_time=5, place=Arrival(file="a", line=3)), 1, []),
        (Change(op="INSERT", source=CANAL, position=(5,), event_time=5), 1, [5]),
    ],
)
def test_the_key_of_a_change_without_numbers_has_none(change, phase, position):
    """Null, not empty: who merges can see that some have numbers and some have not.

    No number orders a full load, nor changes of a format whose order is that of arrival.
    """
    fields = key_fields(change)
    assert (fields["phase"], fields["position"]) == (phase, position)


def test_a_number_of_shards_below_one_is_refused_at_once(spark):
    """No job is started for it."""
    with pytest.raises(ValueError, match="a number of shards from 1, not 0"):
        cdc.shard("change", 0)


@pytest.mark.parametrize(
    ("options", "after"),
    [
        ({}, {"id": 1}),
        ({"unavailable": "other"}, {"id": 1, "doc": "__debezium_unavailable_value"}),
        ({"unavailable": None}, {"id": 1, "doc": "__debezium_unavailable_value"}),
    ],
)
def test_a_value_that_the_source_did_not_give_is_in_no_change(spark, options, after):
    """By the word of the connector, and absent in a typed row."""
    source = '"source":{"connector":"mysql","db":"d","table":"t","ts_ms":1}'
    texts = [
        f'{{"op":"{op}","before":null,"after":{{"id":1,"doc":"{doc}"}},{source}}}'
        for op, doc in (("c", "x"), ("u", "__debezium_unavailable_value"))
    ]
    frame = spark.createDataFrame(list(enumerate(texts)), "offset long, value string")
    place = sf.struct(sf.lit("t").alias("topic"), sf.lit(0).alias("partition"), "offset")
    made = frame.select(
        "offset", cdc.to_changes("value", "debezium", place=place, **options)["changes"][0].alias("change")
    )
    _, update = [Change.from_avro(bytes(row.change)) for row in sorted(made.collect())]
    assert update.after == after
    typed = cdc.to_tables(made)
    rows = typed.payloads("t").select(cdc.read_versions("version", "payload", typed.table("t")).alias("e"))
    (absent,) = [row.absent for row in rows.where("e.op = 'u'").select("e.after.absent").collect()]
    assert absent == [name for name in ("id", "doc") if name not in after]
    with pytest.raises(ValueError, match=r"^the word for unavailable values"):
        cdc.to_changes("value", "debezium", unavailable="")


def test_the_modes_of_a_connector_are_those_of_typed_tables(spark):
    """Milliseconds and hexadecimal digits, where only the given types say what a column is."""
    text = (
        '{"op":"c","before":null,"after":{"at":1500,"raw":"6869"},"source":{"connector":"mysql","db":"d","table":"t"}}'
    )
    frame = spark.createDataFrame([(7, text)], "offset long, value string")
    place = sf.struct(sf.lit("t").alias("topic"), sf.lit(0).alias("partition"), "offset")
    changes = frame.select(cdc.to_changes("value", "debezium", place=place)["changes"][0].alias("change"))
    given = TypeOverrides.from_mapping({"t": {"at": "datetime(6)", "raw": "blob"}})
    typed = cdc.to_tables(changes, given=given, times="connect", binaries="hex")
    rows = typed.payloads("t").select(cdc.read_versions("version", "payload", typed.table("t"))["after"].alias("a"))
    (row,) = rows.select(sf.col("a.at").cast("string").alias("at"), "a.raw").collect()
    assert (row["at"], bytes(row.raw)) == ("1970-01-01 00:00:01.5", b"hi")
    with pytest.raises(ValueError, match=r"^times are .*, not 'seconds'$"):
        cdc.to_tables(changes, times="seconds")
