"""Typed tables on Spark: the same payloads as in one stream, and every version read under the newest names.

Source of Flink's reader schema: Apache Flink, `AvroSchemaConverter.convertToSchema` and
`DebeziumAvroDeserializationSchema.createDebeziumAvroRowType`.
"""

from __future__ import annotations

import io
import json
import random
from collections import Counter
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import fastavro
import pytest
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException, PythonException
from pyspark.sql import DataFrame
from pyspark.sql import functions as sf
from pyspark.sql.avro.functions import from_avro
from pyspark.sql.types import (
    BinaryType,
    DataType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    StringType,
    TimestampNTZType,
    TimestampType,
)

from cdcavro import spark as cdc
from cdcavro.change.model import Change
from cdcavro.errors import CdcAvroError
from cdcavro.spark.typed_tables import TypedTables, to_tables
from cdcavro.spark.version_columns import read_versions
from cdcavro.table.history import Table
from cdcavro.table.table_schema import TableSchema
from support.shop_tables import (
    MESSAGES,
    Moved,
    filled,
    is_same,
    key_values,
    moved,
    orders,
    replayed,
    shop,
    shown,
    true_row,
)

pytestmark = pytest.mark.every_spark

FILE = "shop.jsonl"
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
# Avro types as Spark shows them; a time of day is a number of microseconds there.
SPARK_TYPES: dict[str, DataType] = {
    "int": IntegerType(),
    "long": LongType(),
    "float": FloatType(),
    "double": DoubleType(),
    "string": StringType(),
    "bytes": BinaryType(),
    "date": DateType(),
    "time-micros": LongType(),
    "timestamp-micros": TimestampType(),
    "local-timestamp-micros": TimestampNTZType(),
}
TABLES = ["all_types", "orders_v3", "nopk2", "we ird-tab.le", "ctas", "big"]
HOSTILE = ["id", "select", "Col Name", "日本", "a.b", "$x", "1st", "CASE", "case2"]
BAD_DDL = "ALTER TABLE orders ADD COLUMN qty INT UNSIGNED NOT NULL DEFAULT (1 AFTER"


@dataclass
class Typed:
    """What Spark makes of a producer's messages."""

    tables: TypedTables
    frame: DataFrame


def changes_of(spark, format: str, messages: list[bytes]) -> DataFrame:
    """Return the changes of messages in a frame, thrown over its partitions, each with its place."""
    lines = random.Random(5).sample(list(enumerate(messages, 1)), len(messages))
    frame = spark.createDataFrame(lines, "line long, value binary")
    place = sf.struct(sf.lit(FILE).alias("file"), "line")
    turned = cdc.to_changes("value", format, zone=UTC, place=place)["changes"]
    return frame.select(sf.explode(turned).alias("change"))


@pytest.fixture(scope="module", params=MESSAGES)
def typed(request, spark):
    """Both producers, one after the other: the name, and what Spark makes of its messages."""
    changes = changes_of(spark, request.param, MESSAGES[request.param]()).persist()
    made = to_tables(changes, zone=UTC)
    frame = made.frame.persist()
    yield request.param, Typed(made, frame)
    frame.unpersist()
    changes.unpersist()


def test_changes_in_any_order_give_the_payloads_of_the_stream(typed):
    """The tables, their versions, what led to them, and every key and payload, byte for byte."""
    producer, made = typed
    tables, payloads = shop(producer)
    assert [(one.number, one.steps, one.is_gone) for one in made.tables.tables] == [
        (one.number, one.steps, one.is_gone) for one in tables.tables
    ]
    assert [[schema.envelope.json for schema in one.versions] for one in made.tables.tables] == [
        [schema.envelope.json for schema in one.versions] for one in tables.tables
    ]
    found = Counter(
        (row.number, row.table, row.version, row.key and bytes(row.key), bytes(row.payload))
        for row in made.frame.collect()
    )
    assert found == Counter(
        (one.table.number, one.table.schema.table.table, one.schema.version, one.key, one.payload) for one in payloads
    )
    assert sum(found.values()) == {"canal": 181, "debezium": 180}[producer]
    assert made.tables.faults == []
    assert made.tables.rejects.count() == 0


def of_table(made: Typed, name: str) -> tuple[Table, DataFrame]:
    """Return a table and its rows of the frame that is kept."""
    table = made.tables.table(name)
    return table, made.frame.where(sf.col("number") == table.number)


def test_all_versions_read_in_one_expression_give_the_values_that_fastavro_reads_and_older_ones_filled(typed):
    """Under the true names of the newest version: its types, and every value of every image of every table."""
    producer, made = typed
    truth = [filled(moved(one), one.table.schema) for one in shop(producer)[1]]
    wanted = {_place(one): one for one in truth}
    found: dict[Any, Moved] = {}
    compared = Counter()
    for name in TABLES:
        table, frame = of_table(made, name)
        columns = [read_versions("version", "payload", table).alias("envelope")]
        if table.schema.key is not None:
            columns.append(read_versions("version", "key", table, part="key").alias("key"))
        read = frame.select("version", *columns)
        row_type = read.schema["envelope"].dataType["after"].dataType
        assert read.schema["envelope"].dataType["before"].dataType == row_type
        assert {one.name: one.dataType for one in row_type.fields[:-2]} == {
            shown(one): _spark_type(one.avro) for one in table.schema.all_columns
        }
        rows = read.collect()
        assert {row.version for row in rows} == {
            one.schema.version for one in shop(producer)[1] if one.table.number == table.number
        }
        for row in rows:
            one = _moved(row.asDict(recursive=True), table)
            assert _place(one) not in found
            found[_place(one)] = one
            compared.update(images=sum(image is not None for image in one[3:5]), payloads=1)
    assert set(found) == set(wanted)
    differing = [(found[at][:5], wanted[at][:5]) for at in wanted if not is_same(found[at][:5], wanted[at][:5])]
    assert differing == []
    inorder = sorted(found, key=lambda at: (at[0], at[1], at[2] != "d"))
    assert repr(replayed(found[at] for at in inorder)) == repr(replayed(truth))
    assert compared["payloads"] == len(shop(producer)[1])


def _place(one: Moved) -> tuple[int, int, str]:
    """Return a change from all others: a changed key is a delete and an insert of one message."""
    return one.source["message_line"], one.source["message_row"], one.op


def _moved(row: dict[str, Any], table: Table) -> Moved:
    envelope, schema = row["envelope"], table.schema
    key = None
    if row.get("key") is not None:
        fields = {one.name: one for one in schema.columns}
        texts = row["key"].pop("unparsed")
        key = key_values(
            {name: _value(value, fields[name].avro) for name, value in row["key"].items()} | {"unparsed": texts}
        )
    before, after = (_row(envelope[image], schema) for image in ("before", "after"))
    return Moved(table.number, envelope["op"], key, before, after, envelope["source"])


def _row(image: dict[str, Any] | None, schema: TableSchema) -> dict[str, Any] | None:
    if image is None:
        return None
    names = {shown(one): one for one in schema.all_columns}
    assert list(image) == [*names, "unparsed", "absent"]
    fields = {names[name].field: _value(value, names[name].avro) for name, value in image.items() if name in names}
    return true_row(fields | {"unparsed": image["unparsed"], "absent": image["absent"]}, schema)


def _value(value: Any, avro: Any) -> Any:
    """Return a value that Spark collected as fastavro gives it."""
    if value is None:
        return None
    match avro if isinstance(avro, str) else avro["logicalType"]:
        case "bytes":
            return bytes(value)
        case "time-micros":
            return (EPOCH + timedelta(microseconds=value)).time()
        case "timestamp-micros":
            return value.astimezone(UTC)
    return value


def _spark_type(avro: Any) -> DataType:
    if isinstance(avro, dict) and avro["logicalType"] == "decimal":
        return DecimalType(avro["precision"], avro["scale"])
    return SPARK_TYPES[avro if isinstance(avro, str) else avro["logicalType"]]


@pytest.mark.parametrize("typed", ["canal"], indirect=True)
def test_hostile_names_are_shown_as_they_are(typed):
    """A table and columns whose names Avro cannot hold have them in Spark; an older reader has its own."""
    _, made = typed
    table, frame = of_table(made, "we ird-tab.le")
    read = frame.select(read_versions("version", "payload", table).alias("e"))
    after = read.where("e.op = 'u'").select("e.after.*").drop("unparsed", "absent")
    assert after.columns == HOSTILE
    assert [tuple(row) for row in after.collect()] == [(1, 2, "x", None, 4, 5, 60, 7, 8)]
    assert [row.table for row in frame.select("table").distinct().collect()] == ["we ird-tab.le"]


@pytest.mark.parametrize("typed", ["canal"], indirect=True)
def test_a_version_between_reads_those_before_it_under_its_names(typed):
    """With reader 5, `remark` is there, and what was `note` and `qty`; unions have the defaults of columns to come."""
    producer, made = typed
    table, frame = of_table(made, "orders_v3")
    old = frame.where("version <= 5").select("version", read_versions("version", "payload", table, 5).alias("e"))
    rows = old.where("e.after is not null").select("version", "e.after.*").collect()
    wanted = [one for one in orders(producer) if one.schema.version <= 5]
    expected = [(one.schema.version, filled(moved(one, table.versions[4]), table.versions[4]).after) for one in wanted]
    assert Counter((row.version, repr((row.remark, row.quantity, row.amount))) for row in rows) == Counter(
        (version, repr((after["remark"], after["quantity"], after["amount"]))) for version, after in expected if after
    )


@pytest.mark.since("4.0")
@pytest.mark.parametrize("typed", ["canal"], indirect=True)
def test_plain_sql_reads_a_payload_with_the_printed_schema(spark, typed):
    """What `envelope` prints stands between two apostrophes in `from_avro`, for each version."""
    _, made = typed
    table, frame = of_table(made, "orders_v3")
    frame.createOrReplaceTempView("orders_payloads")
    for version, after, amounts in ((4, "amount", ["1.00"]), (10, "amount_x_2", ["6.0000", "6.5000"])):
        printed = table.versions[version - 1].envelope.json
        rows = spark.sql(
            f"SELECT from_avro(payload, '{printed}').after.{after} AS amount FROM orders_payloads "
            f"WHERE version = {version} ORDER BY amount NULLS LAST"
        ).collect()
        assert [str(row.amount) for row in rows if row.amount is not None] == amounts


@pytest.mark.parametrize("typed", ["canal"], indirect=True)
def test_an_unknown_version_fails_with_its_number_and_null_is_null(spark, typed):
    """Nothing is read with a schema that did not write it."""
    _, made = typed
    table = made.tables.table("orders_v3")
    read = read_versions("version", "payload", table)
    none = spark.createDataFrame([(None, b"x"), (3, None)], "version int, payload binary").select(read.alias("e"))
    assert [row.e for row in none.collect()] == [None, None]
    unknown = spark.createDataFrame([(11, b"x")], "version int, payload binary").select(read.alias("e"))
    with pytest.raises((PySparkException, Py4JJavaError)) as raised:
        unknown.collect()
    assert "no version of shop.orders_v3: 11" in str(raised.value)


def flink_schema(table: Table) -> str:
    """Return the schema that Flink reads a Debezium envelope with: records by its own names, every field nullable."""
    fields = json.loads(table.schema.row.json)["fields"]
    columns = [
        {"name": one["name"], "type": ["null", one["type"][one["type"][0] == "null"]], "default": None}
        for one in fields
        if one["name"] not in ("unparsed", "absent")
    ]
    space = "org.apache.flink.avro.generated"
    rows = [
        {"type": "record", "name": f"record_{one}", "namespace": space, "fields": columns}
        for one in ("before", "after")
    ]
    source = [
        {"name": name, "type": ["null", declared], "default": None}
        for name, declared in (
            ("name", "string"),
            ("ts_ms", "long"),
            ("db", "string"),
            ("table", "string"),
            ("txId", "string"),
        )
    ]
    wanted = {
        "before": rows[0],
        "after": rows[1],
        "op": "string",
        "source": {"type": "record", "name": "record_source", "namespace": space, "fields": source},
    }
    return json.dumps(
        {
            "type": "record",
            "name": "record",
            "namespace": space,
            "fields": [{"name": name, "type": ["null", one], "default": None} for name, one in wanted.items()],
        }
    )


def test_the_schema_that_flink_makes_of_its_columns_reads_our_envelopes(typed):
    """Avro Java matches records of other names by their shape, so Debezium's readers need no names of ours."""
    producer, made = typed
    table, frame = of_table(made, "orders_v3")
    written = [one for one in orders(producer) if one.schema.version == 10 and one.change.op != "TRUNCATE"]
    options = {"avroSchema": flink_schema(table), "mode": "FAILFAST"}
    read = from_avro("payload", table.schema.envelope.json, options)
    rows = frame.where("version = 10").select(read.alias("e")).where("e.op != 't'").collect()
    found = [
        (row.e.op, str(row.e.after.amount_x_2), row.e.source.db, row.e.source.table, row.e.source.txId) for row in rows
    ]
    assert sorted(found) == sorted(
        (one.op, str(one.after["amount"]), "shop", "orders_v3", None) for one in map(moved, written)
    )


def test_a_change_that_contradicts_its_table_is_a_reject_and_a_bad_statement_a_fault(spark):
    """The column is named, the statement changes nothing, and all else goes on; so with a value that no type carries."""
    lines = MESSAGES["debezium"]()
    created, first, second = lines[20:23]
    ghost, bad = json.loads(second), json.loads(lines[45])
    ghost["value"]["after"]["ghost"], bad["value"]["ddl"], bad["value"]["tableChanges"] = 1, BAD_DDL, []
    types = [line for line in lines if b'"table":"all_types"' in line][:2]
    messages = [created, first, json.dumps(ghost).encode(), json.dumps(bad).encode(), second, *types]
    made = to_tables(changes_of(spark, "debezium", messages).persist(), zone=UTC, on_misfit="reject")
    assert [one.steps for one in made.tables] == [
        [("table 'all_types' with 47 columns",)],
        [("table 'orders' with 5 columns",)],
    ]
    assert [(row.table, row.version) for row in made.frame.collect()] == [("orders", 1)] * 2
    rejects = {row.error.path: row.error.asDict() for row in made.rejects.collect()}
    assert rejects == {
        path: {"format": "debezium", "path": path, "message": f"debezium: {path}: {sentence}"}
        for path, sentence in (
            ("$.after.ghost", "expected a column of orders in version 1, got none"),
            ("$.after.tm", "expected TIME, got string '838:59:59'"),
        )
    }
    ((change, error),) = made.faults
    assert (change.ddl, isinstance(error, CdcAvroError)) == (BAD_DDL, True)
    assert str(error) == "MySQL DDL: line 1, column 73: expected ')', got the end"


@pytest.mark.parametrize("policy", ["keep", "reject", "error"])
def test_a_misfit_is_kept_or_rejected_or_fails_the_job(spark, policy):
    """As the caller chose."""
    text = '{"type":"INSERT","database":"s","table":"t","id":1,"es":1,"mysqlType":{"d":"date"},"data":[{"d":"0000-00-00"}]}'
    frame = spark.createDataFrame([(text,)], "value string")
    changes = frame.select(sf.explode(cdc.to_changes("value", "canal")["changes"]).alias("change"))
    typed = cdc.to_tables(changes, on_misfit=policy)
    if policy == "error":
        with pytest.raises(PythonException, match="expected date, got string '0000-00-00'"):
            typed.frame.collect()
    else:
        assert (typed.frame.count(), typed.rejects.count()) == ((1, 0) if policy == "keep" else (0, 1))


@pytest.mark.parametrize("absent", ["unstated", "null"])
def test_a_column_that_a_row_lacks_is_null_if_it_is_said_so(spark, absent):
    """By both ways."""
    text = '{"type":"INSERT","database":"s","table":"t","id":1,"es":1,"mysqlType":{"d":"int","e":"int"},"data":[{"d":"1"}]}'
    frame = spark.createDataFrame([(text,)], "value string")
    changes = frame.select(sf.explode(cdc.to_changes("value", "canal")["changes"]).alias("change"))
    made = cdc.to_tables(changes, absent=absent), cdc.messages_to_tables(frame, "value", "canal", absent=absent)
    for typed in made:
        (row,) = typed.frame.collect()
        (table,) = typed.tables
        after = fastavro.schemaless_reader(io.BytesIO(row.payload), json.loads(table.schema.envelope.json))["after"]
        assert (after["d"], after["e"], after["absent"]) == (1, None, ["e"] if absent == "unstated" else [])


def test_a_row_is_typed_or_a_reject_whatever_it_does_not_say(spark):
    """Full-load rows and operations in small letters are typed; a row of no table or operation that is known is not."""
    canal = '{"type":"%s","database":"s","table":%s,"id":1,"es":%d,"mysqlType":{"d":"int"},"data":[{"d":"1"}]}'
    texts = [canal % ("INIT", '"t"', 1), canal % ("insert", '"t"', 2), canal % ("INSERT", "null", 3)]
    texts += [canal % ("MERGE", '"t"', 4), (canal % ("INSERT", '"bare"', 5)).replace('[{"d":"1"}]', "null")]
    frame = spark.createDataFrame([(text,) for text in texts], "value string")
    changes = frame.select(sf.explode(cdc.to_changes("value", "canal")["changes"]).alias("change")).persist()
    typed = cdc.to_tables(changes)
    assert [(row.table, row.key) for row in typed.frame.collect()] == [("t", None)] * 2
    assert sorted(row.error.message for row in typed.rejects.collect()) == [
        "canal: $: expected a message that names its table, or a table given for those that do not (--table), got none",
        "canal: $: expected a row before or after the change, got none",
        "canal: $: expected an operation on a row that is known, because the message holds a row, got 'MERGE'",
    ]
    assert (typed.faults, len(typed.tables)) == ([], 1)
    assert [note.split(",")[0] for note in typed.notes] == ["t: no primary key is known"]
    named = cdc.to_tables(changes, table="other.u")
    assert sorted(row.table for row in named.frame.collect()) == ["t", "t", "u"]
    assert named.rejects.count() == 2
    assert named.table("s.u").schema.table.database == "s"


def test_messages_in_kafka_records_have_their_place_and_the_table_of_their_topic(spark):
    """What the caller states of the place counts before what the record does."""
    line = '{"topic":"%s","partition":0,"offset":%d,"key":{"id":1},"value":{"op":"c","before":null,"after":{"id":1}}}'
    frame = spark.createDataFrame([(line % ("a.b", 5),), (line % ("u", 7),)], "value string")
    place = sf.struct(
        sf.lit("f").alias("file"), sf.lit(3).cast("long").alias("line"), sf.lit(9).cast("long").alias("offset")
    )
    made = [
        frame.select(sf.explode(turned["changes"]).alias("change"))
        for turned in (cdc.to_changes("value", "debezium"), cdc.to_changes("value", "debezium", place=place))
    ]
    places = [[Change.from_avro(bytes(row.change)).place for row in changes.collect()] for changes in made]
    assert [(one.topic, one.offset, one.line) for one in places[0]] == [("a.b", 5, None), ("u", 7, None)]
    assert [(one.topic, one.offset, one.line) for one in places[1]] == [("a.b", 9, 3), ("u", 9, 3)]
    typed = cdc.to_tables(made[0].persist(), table="@topic")
    assert sorted((row.table, row.key is not None) for row in typed.frame.collect()) == [("a.b", True), ("u", True)]
    assert typed.rejects.count() == 0
