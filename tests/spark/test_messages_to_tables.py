"""Messages straight to typed tables on Spark: what changes in between would have given, and every fault a reject."""

from __future__ import annotations

import json
import os
from collections import Counter
from datetime import UTC
from random import Random
from typing import Any

import pytest
from pyspark.errors import PythonException
from pyspark.sql import DataFrame
from pyspark.sql import functions as sf

from cdcavro import spark as cdc
from cdcavro.change.model import Change, replace
from cdcavro.errors import UnknownFormatError
from cdcavro.spark.typed_tables import TypedTables
from cdcavro.wire.formats import FORMATS
from support.rows_trial import shop, with_value

pytestmark = pytest.mark.every_spark

QUICK = ("canal", "debezium", "datahub_blob")
BAD_DDL = "ALTER TABLE orders ADD COLUMN qty INT UNSIGNED NOT NULL DEFAULT (1 AFTER"
ROW = '{"type":"%s","database":"s","table":%s,"id":1,"es":%d,"mysqlType":{"d":"int"},"data":[{"d":"1"}]}'


def stream(format: str) -> list[bytes | None]:
    """Return the changes of a database, some of them again, some with values of other kinds, and what is no message."""
    random = Random(format)
    messages: list[bytes | None] = list(shop(format))
    messages += shop(format)[-40:]
    messages += [with_value(random, random.choice(shop(format))) for _ in range(40)]
    messages += [b"no message", b"{}", b"[", None]
    if format == "canal":
        bad = {"type": "ALTER", "isDdl": True, "database": "shop", "table": "orders", "id": 7, "es": 7, "sql": BAD_DDL}
        messages.append(json.dumps(bad).encode())
    return messages


def both_ways(
    frame: DataFrame, format: str, place: Any = None, **options: Any
) -> tuple[TypedTables, TypedTables, DataFrame]:
    """Return the tables of messages by their changes, and without; and the errors of those that are none."""
    turned = frame.select("value", cdc.to_changes("value", format, zone=options.get("zone"), place=place).alias("t"))
    turned = turned.persist()
    changes = turned.select(sf.explode("t.changes").alias("change"))
    old = cdc.to_tables(changes, **options)
    new = cdc.messages_to_tables(frame, "value", format, place=place, **options)
    return old, new, turned.where("t.error is not null").select("value", "t.error")


def rows_of(tables: TypedTables) -> Counter[Any]:
    """Return all rows."""
    return Counter(
        (row.number, row.table, row.version, row.key and bytes(row.key), bytes(row.payload))
        for row in tables.frame.collect()
    )


def facts_of(tables: TypedTables) -> list[Any]:
    """Return all about the tables, and the statements that were not understood."""
    facts: list[Any] = [
        (one.number, one.steps, one.is_gone, one.findings, [schema.envelope.json for schema in one.versions])
        for one in tables.tables
    ]
    return [facts, [(change.ddl, str(error)) for change, error in tables.faults]]


def bare(change: Any) -> Change | None:
    """Return a change without what only its own format needs."""
    return None if change is None else replace(Change.from_avro(bytes(change)), members=None)


@pytest.mark.parametrize(
    ("format", "on_misfit"),
    [
        pytest.param(one, on_misfit, marks=() if one in QUICK else pytest.mark.slow)
        for on_misfit in ("keep", "reject")
        # Some rows of the shop as Tuple records have numbers and others none, which is an error in both ways.
        for one in (FORMATS if on_misfit == "keep" or "CDCAVRO_EVERY_MESSAGE" in os.environ else QUICK)
        if one != "datahub_tuple"
    ],
)
def test_rows_tables_and_rejects_are_those_of_changes(spark, format, on_misfit):
    """Of evolving tables, in any order of arrival; each reject is a change with its error, or a message that has none."""
    messages = stream(format)
    lines = Random(5).sample(list(enumerate(messages, 1)), len(messages))
    frame = spark.createDataFrame(lines, "line long, value binary").persist()
    place = sf.struct(sf.lit("shop.jsonl").alias("file"), "line")
    old, new, faulty = both_ways(frame, format, place, zone=UTC, on_misfit=on_misfit)
    assert facts_of(new) == facts_of(old)
    wanted = rows_of(old)
    assert rows_of(new) == wanted
    # DataHub has no types for most values of MySQL.
    assert sum(wanted.values()) > (150 if on_misfit == "keep" else 20)
    rejects = new.rejects.collect()
    assert all(bytes(row.message) == messages[row.place.line - 1] for row in rejects)
    assert Counter(repr((bare(row.change), row.error)) for row in rejects if row.change) == Counter(
        repr((bare(row.change), row.error)) for row in old.rejects.collect()
    )
    assert Counter((bytes(row.message), row.error) for row in rejects if row.change is None) == Counter(
        (bytes(row.value), row.error) for row in faulty.collect()
    )
    assert len(new.faults) == len(old.faults) >= (format == "canal")


def test_rows_without_a_table_or_an_operation_are_rejects_and_a_table_may_be_given(spark):
    """Text comes as a string here, and without a place."""
    texts = [
        ROW % ("INIT", '"t"', 1),
        ROW % ("insert", '"t"', 2),
        ROW % ("INSERT", "null", 3),
        ROW % ("MERGE", '"t"', 4),
    ]
    frame = spark.createDataFrame([(text,) for text in [*texts, "x"]], "value string")
    typed = cdc.messages_to_tables(frame, sf.col("value"), "canal")
    assert typed.rejects.columns == ["message", "change", "error"]
    assert [row.table for row in typed.frame.collect()] == ["t", "t"]
    rejects = {row.message: row.error.message for row in typed.rejects.collect()}
    assert {text: "expected" in message for text, message in rejects.items()} == dict.fromkeys([*texts[2:], "x"], True)
    named = cdc.messages_to_tables(frame, "value", "canal", table="other.u")
    assert sorted(row.table for row in named.frame.collect()) == ["t", "t", "u"]


def test_the_table_of_a_topic_is_that_of_the_place_before_that_of_the_record(spark):
    """What the caller knows goes before what the Kafka record around a message says."""
    line = '{"topic":"own","partition":0,"key":{"id":1},"value":{"op":"c","before":null,"after":{"id":1}}}'
    told = [("a", 1, line), ("b", 2, line), ("a", 3, line), (None, 4, line)]
    frame = spark.createDataFrame(told, "topic string, offset long, value string")
    place = sf.struct("topic", sf.lit(0).alias("partition"), "offset")
    old, new, _ = both_ways(frame, "debezium", place, table="@topic")
    assert rows_of(new) == rows_of(old)
    assert sorted(row.table for row in new.frame.collect()) == ["a", "a", "b", "own"]


def test_a_misfit_fails_the_job_if_it_shall(spark):
    """With the column's error; and what cannot be meant is refused at once."""
    text = (ROW % ("INSERT", '"t"', 1)).replace('{"d":"1"}', '{"d":"x"}')
    frame = spark.createDataFrame([(text,)], "value string")
    with pytest.raises(PythonException, match=r"got string 'x'"):
        cdc.messages_to_tables(frame, "value", "canal", on_misfit="error").frame.collect()
    with pytest.raises(UnknownFormatError):
        cdc.messages_to_tables(frame, "value", "csv")
    with pytest.raises(ValueError, match=r"^on_misfit is one of"):
        cdc.messages_to_tables(frame, "value", "canal", on_misfit="ignore")
    with pytest.raises(TypeError, match=r"^a zone is"):
        cdc.messages_to_tables(frame, "value", "canal", zone="UTC")
    with pytest.raises(ValueError, match=r"^the word for unavailable values"):
        cdc.messages_to_tables(frame, "value", "canal", unavailable="")
