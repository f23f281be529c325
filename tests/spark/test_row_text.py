"""Row images as maps of text."""

from __future__ import annotations

import pyarrow as pa
import pytest
from pyspark.errors import PythonException
from pyspark.sql.avro.functions import from_avro

import cdcavro
from cdcavro import spark as cdc
from cdcavro.spark.arrow_udf import HAS_ARROW
from cdcavro.spark.row_text import text_batch

pytestmark = pytest.mark.every_spark

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
