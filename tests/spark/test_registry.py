"""Columns framed by a registry: many schemas in one column, rejects, and a stream that a new schema comes into."""

from __future__ import annotations

import io
import json
from dataclasses import replace

import fastavro
import pytest
from pyspark.sql import functions as sf

import cdcavro
from cdcavro import registry
from cdcavro import spark as cdc
from cdcavro.avro.schema import parse_schema
from cdcavro.change.model import Column
from cdcavro.errors import SchemaError
from cdcavro.formats.connect_avro import ConnectReader
from cdcavro.registry.framing import Fingerprint, frame
from cdcavro.sync.settings import RegistrySettings
from cdcavro.table.ddl.steps import TableName
from cdcavro.table.evolution.evolve import create_table, evolve
from support.connect_envelopes import ENVELOPE, KEY, ROW, envelope, written
from support.messages import shop_canal

pytestmark = pytest.mark.every_spark


@pytest.fixture
def schemas(tmp_path):
    """A registry in a folder."""
    return registry.connect(f"file:{tmp_path / 'schemas'}")


@pytest.fixture(scope="module")
def orders(spark):
    """The typed payloads of the shop's orders, and their table."""
    lines = spark.createDataFrame(list(enumerate(shop_canal(), 1)), "line long, value binary")
    place = sf.struct(sf.lit("shop.jsonl").alias("file"), "line")
    changes = lines.select(sf.explode(cdc.to_changes("value", "canal", place=place)["changes"]).alias("change"))
    typed = cdc.to_tables(changes)
    return typed.payloads("orders_v3").select("version", "payload").persist(), typed.table("orders_v3")


def note(number: int) -> str:
    """Return the text of a schema whose one field had another name in each version before."""
    older = [f"n{i}" for i in range(number)]
    field = {"name": f"n{number}", "type": "int", "default": 0, "aliases": older}
    return json.dumps({"type": "record", "name": "Note", "fields": [field]})


def payload(schema: str, value: int) -> bytes:
    """Write the one field by fastavro."""
    out = io.BytesIO()
    parsed = json.loads(schema)
    fastavro.schemaless_writer(out, fastavro.parse_schema(parsed), {parsed["fields"][0]["name"]: value})
    return out.getvalue()


def test_payloads_of_all_versions_come_back_under_the_newest_names(spark, orders, schemas):
    """As `read_versions` reads them; who wrote each row stands beside it."""
    payloads, table = orders
    framed = cdc.to_registry(payloads, "payload", schemas, "orders-value", table, version="version")
    found = cdc.from_registry(framed, "payload", schemas)
    wanted = payloads.select("version", cdc.read_versions("version", "payload", table).alias("value"))
    rows = found.select("version", "value", "schema").collect()
    assert sorted(str(row.value) for row in rows) == sorted(str(row.value) for row in wanted.collect())
    assert {(row.version, row.schema.subject, row.schema.version) for row in rows} == {
        (number, "orders-value", number) for number in range(1, 11)
    }
    assert found.where("error is not null").count() == 0
    assert "amount (until version 4)" in found.select("value.after.*").columns
    older = cdc.from_registry(framed.where("version = 1"), "payload", schemas, 1)
    assert "note" in older.select("value.after.*").columns


def test_what_is_no_payload_of_a_known_schema_is_a_reject(spark, schemas):
    """Each with its reason; the others are read, and null stays null."""
    text = note(0)
    number = schemas.publish(text, "notes").id
    good = frame(payload(text, 7), number)
    fingerprint = Fingerprint(parse_schema(text).fingerprint)
    rows = [
        (0, good),
        (1, None),
        (2, b"zz"),
        (3, b""),
        (4, b"\0\0\0"),
        (5, frame(b"\2", 999)),
        (6, good[:-1]),
        (7, good + b"\0"),
        (8, frame(payload(text, 8), fingerprint)),
    ]
    frame_ = spark.createDataFrame(rows, "at int, raw binary")
    found = cdc.from_registry(frame_, "raw", schemas, subject="notes")
    rows = {row.at: row for row in found.select("at", "value.n0", "schema.id", "error.message").collect()}
    assert [rows[at].n0 for at in range(9)] == [7, None, None, None, None, None, None, None, 8]
    assert [rows[at].message for at in range(9)] == [
        None,
        None,
        "message: $: expected bytes that start with 00, 01 or c3 01, got 7a 7a",
        "message: $: expected bytes that start with 00, 01 or c3 01, got none",
        "message: $: expected 5 bytes that tell the schema, got 3",
        f"message: $: expected a schema that {schemas.url} has, got id 999",
        "message: $.n0: expected 1 byte, got 0 at byte 0, where the payload ends",
        "message: $: expected the end of the payload at byte 1, got 1 more",
        None,
    ]


def test_a_schema_that_the_reader_cannot_read_makes_rejects(spark, schemas):
    """And the rest is read."""
    text = '{"type":"record","name":"Note","fields":[{"name":"n0","type":"string"}]}'
    other = schemas.publish(text, "others").id
    number = schemas.publish(note(0), "notes").id
    rows = [(frame(payload(text, "x"), other),), (frame(payload(note(0), 5), number),)]
    found = cdc.from_registry(spark.createDataFrame(rows, "raw binary"), "raw", schemas, subject="notes")
    outcomes = sorted((row.n0 or 0, row.message or "") for row in found.select("value.n0", "error.message").collect())
    assert outcomes[1] == (5, "")
    assert outcomes[0][1].startswith("message: $: expected a schema that the reader reads, got schema $.n0: ")


def test_it_is_said_where_the_subject_is_not_clear(spark, schemas):
    """Payloads of two subjects have no one latest version."""
    rows = [(frame(payload(note(0), 1), schemas.publish(note(0), "a").id),)]
    rows += [(frame(payload(note(1), 1), schemas.publish(note(1), "b").id),)]
    frame_ = spark.createDataFrame(rows, "raw binary")
    with pytest.raises(SchemaError, match="say the subject of the reader's schema; the payloads are of 'a', 'b'"):
        cdc.from_registry(frame_, "raw", schemas)


def test_a_hundred_schemas_in_one_column(spark, schemas):
    """One expression for each, every row under the newest name."""
    texts = [note(number) for number in range(100)]
    ids = [schemas.publish(text, "notes").id for text in texts]
    rows = [(frame(payload(text, number), id),) for number, (text, id) in enumerate(zip(texts, ids, strict=True))]
    found = cdc.from_registry(spark.createDataFrame(rows, "raw binary"), "raw", schemas)
    assert sorted(row.n99 for row in found.select("value.n99").collect()) == list(range(100))


@pytest.mark.classic
def test_a_new_schema_comes_into_a_stream_without_a_restart(spark, schemas, tmp_path):
    """In `foreachBatch` each batch finds its schemas; the reader is the latest of that batch."""
    folder = tmp_path / "in"
    folder.mkdir()
    found: list[dict] = []

    def take(batch, _) -> None:
        decoded = cdc.from_registry(batch, "raw", schemas, subject="notes").persist()
        found.extend(row.asDict(recursive=True) for row in decoded.collect())

    def arrive(number: int) -> None:
        id = schemas.publish(note(number), "notes").id
        frame_ = spark.createDataFrame([(bytearray(frame(payload(note(number), number), id)),)], "raw binary")
        frame_.coalesce(1).write.mode("append").parquet(str(folder))
        query.processAllAvailable()

    stream = spark.readStream.schema("raw binary").parquet(str(folder))
    with pytest.raises(ValueError, match="from_registry takes a batch: call it in foreachBatch"):
        cdc.from_registry(stream, "raw", schemas)
    query = stream.writeStream.option("checkpointLocation", str(tmp_path / "c")).foreachBatch(take).start()
    try:
        for number in range(3):
            arrive(number)
    finally:
        query.stop()
    assert [row["value"] for row in found] == [{"n0": 0}, {"n1": 1}, {"n2": 2}]
    assert [row["schema"]["version"] for row in found] == [1, 2, 3]


def test_a_struct_is_framed_and_comes_back(spark, schemas):
    """`to_avro` writes it; Confluent's five bytes stand before it."""
    frame_ = spark.sql("SELECT named_struct('n0', 41) AS note UNION ALL SELECT NULL")
    framed = cdc.to_registry(frame_, "note", schemas, "notes", note(0))
    raw = [row.note for row in framed.collect()]
    assert sorted(raw, key=str) == sorted([bytearray(frame(payload(note(0), 41), 1)), None], key=str)
    back = cdc.from_registry(framed, "note", schemas)
    assert sorted((row.n0 or 0) for row in back.select("value.n0").collect()) == [0, 41]


def test_true_names_are_shown(spark, schemas):
    """Names that Avro cannot hold, from the attribute of the registered schema."""
    first = create_table(TableName("s", None, "t"), [Column(name="re mark", type="varchar(9)")])
    second = evolve(first, "ALTER TABLE t CHANGE `re mark` `日本` VARCHAR(9)").schema
    schemas.publish(first.row, "rows")
    schemas.publish(second.row, "rows")
    row = b"\2\4ab\0\0"
    frame_ = spark.createDataFrame([(bytearray(frame(row, 1)),)], "raw binary")
    found = cdc.from_registry(frame_, "raw", schemas)
    assert found.select("value.*").columns == ["日本", "unparsed", "absent"]
    assert found.select("value.日本").first()[0] == "ab"


@pytest.mark.parametrize("column", ["k.v", "`a.b`", "`a``b`"])
def test_a_column_is_named_as_everywhere_on_spark(spark, schemas, column):
    """A field of a struct, and names in backticks, whose payloads come back as they are and translated."""
    rows = [(frame(payload(note(at), at), schemas.publish(note(at), "notes").id),) for at in (0, 1)]
    raw = spark.createDataFrame(rows, "v binary")
    named = {"k.v": sf.struct("v").alias("k"), "`a.b`": sf.col("v").alias("a.b"), "`a``b`": sf.col("v").alias("a`b")}
    found = cdc.from_registry(raw.select(named[column]), column, schemas)
    assert sorted(tuple(row) for row in found.select("value.n1", "error.message").collect()) == [(0, None), (1, None)]


FRAMED = [
    (registry.frame(written(ENVELOPE, envelope("c", ROW)), 1), registry.frame(written(KEY, {"id": 7}), 2)),
    (None, registry.frame(written(KEY, {"id": 7}), 2)),
    (registry.frame(b"x", 9), None),
    (None, None),
]


@pytest.mark.parametrize("framing", ["confluent", "headers"])
def test_framed_avro_of_debezium_becomes_the_text_of_its_messages(spark, schemas, tmp_path, framing):
    """And from there changes, as any text does; what cannot be read is told beside it."""
    assert [schemas.publish(json.dumps(one), name).id for one, name in ((ENVELOPE, "v"), (KEY, "k"))] == [1, 2]
    access = RegistrySettings(f"file:{tmp_path / 'schemas'}", framing=framing)
    rows = []
    for value, key in FRAMED:
        sides = {"value": value, "key": key}
        headers = [(f"__{side}_schema_id", raw[:5]) for side, raw in sides.items() if raw is not None]
        cut = [raw if raw is None or framing == "confluent" else raw[5:] for raw in (value, key)]
        rows.append((*cut, headers))
    frame = spark.createDataFrame(rows, "value binary, key binary, headers array<struct<key: string, value: binary>>")
    more = {"headers": "headers"} if framing == "headers" else {}
    one = frame.select(cdc.from_framed("value", access, **more).alias("m")).select("m.*").collect()
    assert json.loads(one[0].text) == json.loads(ConnectReader(schemas.fetch(id=1).schema).text(FRAMED[0][0][5:]))
    assert [(row.format, row.error and row.error.message) for row in one[1:]] == [
        (None, None),
        (None, f"message: $: expected a schema that {access.url} has, got id 9"),
        (None, None),
    ]
    whole = frame.select(cdc.from_framed("value", access, key="key", format="debezium", **more).alias("m"))
    records = whole.select("m.*").collect()
    assert json.loads(records[0].text) == {"key": {"id": 7}, "value": json.loads(one[0].text)}
    assert [row.text for row in records[1:]] == [None] * 3
    changes = whole.select(cdc.to_changes("m.text", "debezium").alias("c")).select("c.*").first()
    declared = json.loads(cdcavro.load_schema("change").json)
    change = fastavro.schemaless_reader(io.BytesIO(bytes(changes.changes[0])), declared, None)
    assert (change["op"], change["key"]) == ("INSERT", ["id"])


def test_a_null_is_a_delete_beside_a_key_if_its_format_says_so(spark, schemas, tmp_path):
    """Flattened rows: the key alone says which."""
    assert schemas.publish(json.dumps(KEY), "k").id == 1
    access = RegistrySettings(f"file:{tmp_path / 'schemas'}")
    frame = spark.createDataFrame([(None, registry.frame(written(KEY, {"id": 7}), 1))], "value binary, key binary")
    (row,) = frame.select(cdc.from_framed("value", access, key="key", format="debezium_flat").alias("m")).collect()
    assert row.m.text == '{"key":{"id":7},"value":null}'
    own = sf.array(sf.struct(sf.lit("__table").alias("key"), sf.lit(b"t").alias("value")))
    text = cdc.from_framed("value", access, key="key", headers=own, format="debezium_flat").alias("m")
    ((text,),) = frame.select(text).select("m.text").collect()
    assert text == '{"headers":[{"key":"__table","value":"dA=="}],"key":{"id":7},"value":null}'
    assert cdcavro.to_changes(text, "debezium_flat")[0].source.table == "t"
    # Without a key, too, what headers state is a message: those of the format, not others.
    stated = [[("__op", b"t"), ("__table", b"t")], [("trace", b"t")], [("__op", b"u")], [], None]
    alone = spark.createDataFrame(
        [(None, None, one) for one in stated],
        "value binary, key binary, headers array<struct<key: string, value: binary>>",
    )
    text = cdc.from_framed("value", access, key="key", headers="headers", format="debezium_flat").alias("m")
    texts = [row.text for row in alone.select(text).select("m.text").collect()]
    assert [text is None for text in texts] == [False, True, False, True, True]
    (change,) = cdcavro.to_changes(texts[0], "debezium_flat")
    assert (change.op, change.source.table) == ("TRUNCATE", "t")
    with pytest.raises(cdcavro.StructureError, match="without a value, got none"):
        cdcavro.to_changes(texts[2], "debezium_flat")
    with pytest.raises(ValueError, match="ids in headers are read from a column of headers, and none is given"):
        cdc.from_framed("value", replace(access, framing="headers"))
