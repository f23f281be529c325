"""`encode` and `decode` as Columns, and in SQL; row images as maps of text."""

from __future__ import annotations

import inspect
import os
from zoneinfo import ZoneInfo

import pyarrow as pa
import pyspark
import pytest
from pyspark.errors import PySparkException, PythonException
from pyspark.sql import functions as sf
from pyspark.sql.avro.functions import from_avro, to_avro

import cdcavro
from cdcavro import spark as cdc
from cdcavro.change.model import Arrival, Change, Source, replace
from cdcavro.change.order_value import order_value
from cdcavro.spark.arrow_udf import HAS_ARROW
from cdcavro.spark.functions import convert_by_format, encode_batch, key_fields, text_batch
from cdcavro.spark.sql import SQL_FUNCTIONS
from cdcavro.table import TypeOverrides
from cdcavro.transcoding.mapping import to_changes
from support.messages import SAMPLES, goldens, shop_canal

pytestmark = pytest.mark.every_spark

GOOD = b'{"recordType":"DDL"}'
PAYLOAD = cdcavro.encode(GOOD, "oms_default")
# Of an error in a worker, which begins with a traceback, Spark 3.5 sends the first 2,000 characters over Connect.
IS_CUT = os.environ.get("CDCAVRO_SPARK") == "connect" and pyspark.__version__.startswith("3.")
ENTIRE = pytest.mark.skipif(IS_CUT, reason="Spark 3.5 cuts errors over Connect")
EMPTY = "oms_default: $: expected JSON, got an empty line"
NOT_UTF8 = "oms_default: $: expected UTF-8, got byte 0xff at byte 0"


@pytest.fixture
def lines(spark):
    """A good message, two bad ones and a null."""
    return spark.createDataFrame([(0, GOOD), (1, b""), (2, b"\xff{"), (3, None)], "place int, value binary")


def test_encode_and_decode_are_columns_of_binary_and_string(spark):
    """The Columns give what the functions give."""
    frame = spark.createDataFrame([(GOOD.decode(),)], "value string")
    both = frame.select(cdc.encode("value", "oms_default").alias("p")).select("p", cdc.decode("p", "oms_default"))
    assert [field.dataType.simpleString() for field in both.schema] == ["binary", "string"]
    assert [tuple(row) for row in both.collect()] == [(PAYLOAD, GOOD.decode())]


def test_rejects_give_payload_or_error_and_null_for_null(lines):
    """One bad message never fails a job."""
    tried = lines.select("place", cdc.encode("value", "oms_default", rejects=True).alias("tried"))
    kind = tried.schema["tried"].dataType.simpleString()
    assert kind == "struct<payload:binary,error:struct<format:string,path:string,message:string>>"
    rows = [row.tried.asDict(recursive=True) if row.tried else None for row in sorted(tried.collect())]
    assert rows == [
        {"payload": PAYLOAD, "error": None},
        {"payload": None, "error": {"format": "oms_default", "path": "$", "message": EMPTY}},
        {"payload": None, "error": {"format": "oms_default", "path": "$", "message": NOT_UTF8}},
        None,
    ]


@pytest.mark.classic
def test_rejects_can_be_filtered_by_their_own_error(lines):
    """The plan holds the function once, although both the filter and the projection need it."""
    tried = lines.select(cdc.encode("value", "oms_default", rejects=True).alias("tried"))
    bad = tried.where("tried.error is not null").select("tried.error.message")
    assert sorted(row.message for row in bad.collect()) == [EMPTY, NOT_UTF8]
    plan = bad._jdf.queryExecution().executedPlan().toString()
    assert plan.count("ArrowEvalPython [") == 1


@ENTIRE
def test_without_rejects_a_bad_message_fails_the_job_with_the_sentence(lines):
    """The driver sees the project's sentence."""
    with pytest.raises(PythonException) as caught:
        lines.where("place = 1").select(cdc.encode("value", "oms_default")).collect()
    assert EMPTY in str(caught.value)


@ENTIRE
def test_a_payload_that_cannot_be_read_fails_the_job_with_the_sentence(spark):
    """`decode` says where the payload ends."""
    frame = spark.createDataFrame([(PAYLOAD[:-1],)], "payload binary")
    with pytest.raises(PythonException) as caught:
        frame.select(cdc.decode("payload", "oms_default")).collect()
    expected = "oms_default: $: expected 1 byte, got 0 at byte 31, where the payload ends"
    assert expected in str(caught.value)


def test_a_string_column_with_invalid_utf8_is_a_reject_too(lines):
    """Bytes that are not UTF-8 in a string column do not kill the batch."""
    strings = lines.select(sf.col("value").cast("string").alias("value"))
    tried = strings.select(cdc.encode("value", "oms_default", rejects=True).alias("tried"))
    assert tried.where("tried.error is null and tried.payload is not null").count() == 1
    assert tried.where(sf.col("tried.error.message") == NOT_UTF8).count() == 1


@pytest.mark.parametrize("function", [cdc.encode, cdc.decode])
def test_an_unknown_format_is_refused_when_the_column_is_made(spark, function):
    """No job is started for it."""
    with pytest.raises(cdcavro.UnknownFormatError) as caught:
        function("value", "oms_cana")
    assert str(caught.value) == "unknown format 'oms_cana': did you mean oms_canal?"


def test_sql_encodes_decodes_and_tries(lines, spark):
    """The four functions of `register`; the format may be a column."""
    lines.createOrReplaceTempView("lines")
    rows = spark.sql(
        "SELECT cdc_encode(value, 'oms_default') AS p, cdc_decode(cdc_encode(value, 'oms_default'), 'oms_default') AS t"
        " FROM lines WHERE place IN (0, 3) ORDER BY place"
    ).collect()
    assert [tuple(row) for row in rows] == [(PAYLOAD, GOOD.decode()), (None, None)]
    rows = spark.sql(
        "SELECT tried.error.message AS m FROM (SELECT cdc_try_encode(value, f) AS tried FROM lines CROSS JOIN"
        " (VALUES ('oms_default'), ('oms_canal'), (NULL)) AS formats(f) WHERE place = 0)"
    ).collect()
    missing = "oms_canal: $.type: expected a required member, got none"
    assert sorted(row.m or "" for row in rows) == ["", "", missing]


def test_the_functions_that_a_session_has_are_those_of_the_table(spark):
    """What documents say of SQL functions is made from it."""
    assert {function.name for function in spark.catalog.listFunctions(pattern="cdc_*")} == set(SQL_FUNCTIONS)


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=pytest.mark.since("4.1") if name == "cdc_text" else ()) for name in SQL_FUNCTIONS],
)
def test_the_example_of_an_sql_function_runs(name, spark):
    """The indented lines of its docstring, which calls it by its arguments, on a table of messages."""
    text = (SAMPLES / "oms_canal" / "insert.json").read_text(encoding="utf-8")
    spark.createDataFrame([(text,)], "value string").createOrReplaceTempView("messages")
    function = SQL_FUNCTIONS[name]
    example = "\n".join(line for line in inspect.getdoc(function.convert).splitlines() if line.startswith("    "))
    assert f"{name}(" in example
    rows = spark.sql(example.replace("<schema>", cdcavro.load_schema("oms_canal").json)).collect()
    assert len(rows) == 1


@pytest.mark.parametrize("name", SQL_FUNCTIONS)
def test_an_sql_function_has_the_type_that_is_stated(name, spark):
    """Of arguments of its own types."""
    function = SQL_FUNCTIONS[name]
    image = (
        "CAST(NULL AS map<string, struct<b:boolean,l:bigint,d:double,s:string,n:struct<t:string>,j:struct<t:string>>>)"
    )
    values = {"text": "value", "payload": "unhex('00')", "format": "'oms_canal'", "image": image}
    arguments = ", ".join(values[argument] for argument in inspect.signature(function.convert).parameters)
    made = spark.sql(f"SELECT {name}({arguments}) AS made FROM (SELECT '' AS value)").schema["made"].dataType
    stated = f"struct<{function.returns}>" if name == "cdc_try_encode" else function.returns
    assert made == spark.createDataFrame([], f"made {stated}").schema["made"].dataType


def test_sql_with_an_unknown_format_fails_the_query_with_the_sentence(lines, spark):
    """In SQL the name is known only when the query runs."""
    lines.createOrReplaceTempView("lines")
    with pytest.raises(PythonException, match="unknown format 'nope': known are oms_default, "):
        spark.sql("SELECT cdc_encode(value, 'nope') FROM lines WHERE place = 0").collect()


def test_a_column_of_another_type_fails(spark):
    """A number does not become text unseen."""
    with pytest.raises(PySparkException, match=r"(not of int32|DATATYPE_MISMATCH)"):
        spark.range(1).select(cdc.encode(sf.col("id").cast("int"), "oms_default")).collect()


def test_sql_gives_null_for_null(spark):
    """Also where the result is a struct, and where nothing else is in the batch."""
    row = spark.sql(
        "SELECT cdc_encode(CAST(NULL AS STRING), 'canal') AS e, cdc_try_encode(CAST(NULL AS BINARY), 'canal') AS t,"
        " cdc_decode(NULL, 'canal') AS d, cdc_try_encode('{}', NULL) AS f"
    ).first()
    assert tuple(row) == (None,) * 4


def test_columns_are_named_after_the_functions(lines):
    """As they are called in SQL."""
    named = lines.select(cdc.encode("value", "oms_default"), cdc.encode("value", "oms_default", rejects=True))
    assert named.columns == ["cdc_encode(value)", "cdc_try_encode(value)"]
    text = cdc.decode(cdc.encode(sf.col("value"), "oms_default"), "oms_default")
    assert lines.select(text).columns == ["cdc_decode(cdc_encode(value))"]


def test_formats_may_alternate_row_by_row():
    """Values keep their places, whatever format they are of; a null format gives null."""
    texts = pa.array([b'{"recordType":"DDL"}', b'{"type":"QUERY"}', b'{"type":"GTID"}', None, b'{"recordType":"ROW"}'])
    formats = pa.array(["oms_default", "oms_canal", None, "oms_canal", "oms_default"])
    found = convert_by_format(encode_batch, texts, formats).to_pylist()
    wanted = [cdcavro.encode(texts[i].as_py(), formats[i].as_py()) if i not in (2, 3) else None for i in range(5)]
    assert found == wanted
    assert convert_by_format(encode_batch, texts[:0], formats[:0]).to_pylist() == []


@pytest.mark.since("4.0")
def test_the_printed_schema_can_stand_in_sql(lines, spark):
    """As none has a quote, which `tests/test_guards.py` sees to."""
    lines.createOrReplaceTempView("lines")
    schema = cdcavro.load_schema("oms_default").json
    rows = spark.sql(
        f"SELECT from_avro(cdc_encode(value, 'oms_default'), '{schema}').recordType AS r FROM lines WHERE place = 0"
    ).collect()
    assert [row.r for row in rows] == ["DDL"]


def test_bombs_are_rejects_and_the_worker_lives(spark):
    """Nesting, names above many members, a number of a million digits, rows without end: of each the same process goes on."""
    inner = ",".join(f'"{i}":{{"x":1}}' for i in range(10_000))
    bombs = [
        "[" * 1_000_000,
        '{"a":' * 500_000,
        f'{{"recordType":"INSERT","postStruct":{{"__light_type":{{"{"n" * 400_000}":{{{inner}}}}}}}}}',
        f'{{"recordType":{"1" * 1_000_000}}}',
        f'{{"recordType":"DDL",{",".join(["1:1"] * 100_000)}}}',
        f'{{"recordType":"DDL",{",".join([chr(34) + "a" + chr(34) + ":1"] * 100_000)}}}',
    ]
    good = '{"recordType":"DDL"}'
    sent = [text for bomb in bombs for text in (bomb, good)]
    frame = spark.createDataFrame(list(enumerate(sent)), "place int, value string").repartition(1)
    tried = frame.select("place", cdc.encode("value", "oms_default_extend_column_type", rejects=True).alias("tried"))
    rows = sorted(tried.selectExpr("place", "tried.payload IS NULL AS is_rejected", "tried.error.message").collect())
    # The long number comes back as it is.
    assert [row.is_rejected for row in rows] == [at % 2 == 0 and at != 6 for at in range(len(sent))]
    assert all(row.message is None or len(row.message) < 1_000 for row in rows)
    assert spark.range(3).count() == 3


VALUE = pa.struct(
    [
        ("member0", pa.bool_()),
        ("member1", pa.int64()),
        ("member2", pa.float64()),
        ("member3", pa.string()),
        ("member4", pa.struct([("text", pa.string())])),
        ("member5", pa.struct([("text", pa.string())])),
    ]
)
IMAGES = pa.array(
    [[("a", {"member1": 1})], None, [], [("b", {"member2": 1e-4}), ("c", None)]], pa.map_(pa.string(), VALUE)
)
TEXTS = [[("a", "1")], None, [], [("b", "0.0001"), ("c", None)]]


def test_a_row_image_has_the_digits_of_the_message(spark):
    """Every kind of value, null and absent told apart."""
    text = (
        '{"recordType":"INSERT","postStruct":{"exact":1.20,"null":null,"true":true,"short":1.5,"whole":12345678.5,'
        '"list":[1.0,{"a":1E5}],"text":"null","long":9223372036854775807,"big":18446744073709551616,"empty":""}}'
    )
    record = from_avro(cdc.encode("value", "oms_default"), cdcavro.load_schema("oms_default").json)
    frame = spark.createDataFrame([(text,)], "value string").select(record.alias("r"))
    row = frame.select(cdc.cdc_text("r.postStruct").alias("post"), cdc.cdc_text("r.prevStruct").alias("prev")).first()
    assert row.prev is None
    assert row.post == {
        "exact": "1.20",
        "null": None,
        "true": "true",
        "short": "1.5",
        "whole": "12345678.5",
        "list": '[1.0,{"a":1E5}]',
        "text": "null",
        "long": "9223372036854775807",
        "big": "18446744073709551616",
        "empty": "",
    }


@pytest.mark.parametrize("start", range(5))
def test_a_batch_may_be_a_slice(start):
    """Offsets and nulls of a slice are those of its own rows."""
    assert text_batch(IMAGES.slice(start)).to_pylist() == TEXTS[start:]
    assert text_batch(IMAGES.slice(start, 1)).to_pylist() == TEXTS[start : start + 1]


def test_entries_in_the_slot_of_a_null_stay_out_of_the_row_before():
    """Arrow allows a null to have a slot that is not empty."""
    keys, items = pa.array(["a", "secret", "c"]), pa.array([{"member1": i} for i in (1, 2, 3)], VALUE)
    valid = pa.py_buffer(bytes([0b101]))
    offsets = pa.array([0, 1, 2, 3], pa.int32()).buffers()[1]
    entries = pa.StructArray.from_arrays(
        [keys, items], fields=[pa.field("key", pa.string(), False), pa.field("value", VALUE)]
    )
    images = pa.Array.from_buffers(IMAGES.type, 3, [valid, offsets], children=[entries])
    assert text_batch(images).to_pylist() == [[("a", "1")], None, [("c", "3")]]


def test_something_else_than_a_row_image_is_refused(spark):
    """The error says what was expected and what came."""
    with pytest.raises(PythonException, match=r"cdc_text takes a row image, .*, not string"):
        spark.sql("SELECT cdc_text('a')").collect()
    with pytest.raises(PythonException, match=r"cdc_text takes a row image, .*, not that of list"):
        spark.sql("SELECT cdc_text('[1]')").collect()
    with pytest.raises(PythonException, match=r"cdc_text takes a row image, .*, not that of a map of int"):
        spark.sql("SELECT cdc_text(to_json(map('a', 1)))").collect()
    assert spark.sql("SELECT cdc_text(NULL) AS t").first().t is None


@pytest.mark.since("4.1")
def test_a_struct_that_is_no_column_value_is_refused(spark):
    """By the number of its branches."""
    with pytest.raises(PythonException, match="a column value has 6 branches beside null, not 1"):
        spark.sql("SELECT cdc_text(map('a', named_struct('member0', 1)))").collect()


@pytest.mark.skipif(HAS_ARROW, reason="Spark before 4.1 only")
def test_an_older_spark_says_what_sql_lacks_there(spark):
    """And what to do instead."""
    with pytest.raises(
        PythonException, match=r"a map as an argument in SQL needs Spark 4\.1, and this is .*: give its"
    ):
        spark.sql("SELECT cdc_text(map('a', named_struct('member0', 1)))").collect()


def test_a_row_image_may_come_as_json(spark):
    """Which an older Spark needs in SQL: the same text of each kind of value, beside others and beside nulls."""
    text = '{"recordType":"INSERT","postStruct":{"n":1.20,"b":true,"l":9223372036854775807,"d":0.0001,"j":[1E5],"s":"1","z":null}}'
    other = '{"recordType":"INSERT","postStruct":{"d":123456789.125}}'
    record = from_avro(cdc.encode("value", "oms_default"), cdcavro.load_schema("oms_default").json)
    frame = spark.createDataFrame([(0, text), (1, other), (2, '{"recordType":"DDL"}')], "i int, value string")
    frame.select("i", record.alias("r")).coalesce(1).createOrReplaceTempView("records")
    rows = spark.sql("SELECT cdc_text(to_json(r.postStruct)) AS t FROM records ORDER BY i").collect()
    assert [row.t for row in rows] == [
        {"n": "1.20", "b": "true", "l": "9223372036854775807", "d": "0.0001", "j": "[1E5]", "s": "1", "z": None},
        {"d": "123456789.125"},
        None,
    ]
    assert rows == spark.table("records").orderBy("i").select(cdc.cdc_text("r.postStruct").alias("t")).collect()


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
