"""Text through Spark's own Avro and back."""

from __future__ import annotations

import json

import pytest
from pyspark.sql.avro.functions import from_avro, to_avro

import cdcavro
from cdcavro import spark as cdc
from support.messages import goldens, shop_canal
from support.roundtrip import exact

pytestmark = pytest.mark.every_spark


def through_spark(spark, format: str, texts: list[str]) -> list[str]:
    """Text → encode → from_avro → to_avro → decode, in the order of the texts."""
    schema = cdcavro.load_schema(format).json
    frame = spark.createDataFrame(list(enumerate(texts)), "place int, value string")
    record = from_avro(cdc.encode("value", format), schema).alias("record")
    rewritten = frame.select("place", record).select("place", to_avro("record", schema).alias("payload"))
    rows = rewritten.select("place", cdc.decode("payload", format).alias("value")).collect()
    return [row.value for row in sorted(rows)]


@pytest.mark.parametrize("format", cdcavro.FORMATS)
def test_every_golden_message_comes_back_the_same_through_from_avro_and_to_avro(spark, format):
    """Spark reads our payloads and writes them again, and the JSON value is the one that went in."""
    texts = [text.decode() for text in goldens(format)]
    assert [exact(text) for text in through_spark(spark, format, texts)] == [exact(text) for text in texts]


def test_every_real_canal_message_comes_back_the_same_through_from_avro_and_to_avro(spark):
    """The 188 messages of the shop, with every MySQL type at its limits."""
    texts = [text.decode() for text in shop_canal()]
    assert len(texts) == 188
    found = through_spark(spark, "canal", texts)
    assert [exact(text) for text in found] == [exact(text) for text in texts]


def test_from_avro_reads_an_older_schema_under_newer_names(spark):
    """A record renamed, a field renamed and a field added: aliases and a default at work in Spark and in Python."""
    newer = cdcavro.load_schema("oms_default").json
    older = json.loads(newer)
    older["name"] = "OldDefault"
    older["fields"][0]["name"] = "before"
    older["fields"][0]["json"]["name"] = "prevStruct"
    del older["fields"][2]
    reader = json.loads(newer)
    reader["aliases"] = ["OldDefault"]
    reader["fields"][0]["aliases"] = ["before"]

    from cdcavro.wire.format import Format  # noqa: PLC0415

    text = b'{"prevStruct":{"a":1.20},"postStruct":null,"recordType":"DELETE"}'
    old = cdcavro.parse_schema(json.dumps(older))
    new = Format("oms_default", cdcavro.parse_schema(json.dumps(reader)))
    payload = Format("oms_default", old).encode(text)
    assert new.decode(payload, old) == text

    frame = spark.createDataFrame([(payload,)], "payload binary")
    read = from_avro("payload", old.json, {"avroSchema": new.schema.json}).alias("record")
    row = (
        frame.select(read).select("record.recordType", "record.allMetaData", cdc.cdc_text("record.prevStruct")).first()
    )
    assert tuple(row) == ("DELETE", None, {"a": "1.20"})
