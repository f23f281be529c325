"""Rows of framed payloads: what `registry.open` and generated classes accept and refuse, `from_registry` does."""

from __future__ import annotations

import json
import pickle
import random
import re
import struct
from contextlib import suppress

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyspark.errors import PythonException
from pyspark.sql.avro.functions import from_avro

from cdcavro import registry
from cdcavro import spark as cdc
from cdcavro.avro.binary import write_long
from cdcavro.avro.schema import parse_schema
from cdcavro.avro.translation import translator
from cdcavro.errors import CdcAvroError, RegistryError, SchemaError
from cdcavro.registry import client
from cdcavro.registry.client import PrefixSchema
from cdcavro.registry.framing import Fingerprint, frame
from cdcavro.spark import registry as framed_rows
from cdcavro.spark import registry as spark_registry
from cdcavro.spark.registry import FramedRows
from support.generated_modules import module, parsed, root
from support.mutations import damaged
from support.roundtrip import outcome
from support.schema_data import cover, write
from support.schema_pairs import Maker, pairs
from support.wire import array, enum, field, mapping, record

DATE = {"type": "int", "logicalType": "date"}
TIME = {"type": "long", "logicalType": "time-micros"}
MICROS = {"type": "long", "logicalType": "timestamp-micros"}
MILLIS = {"type": "long", "logicalType": "timestamp-millis"}
LOCAL = {"type": "long", "logicalType": "local-timestamp-millis"}
DECIMAL = {"type": "bytes", "logicalType": "decimal", "precision": 5, "scale": 2}
WIDER = {**DECIMAL, "precision": 9}
FIXED = {"type": "fixed", "name": "F", "size": 4, "logicalType": "decimal", "precision": 5, "scale": 2}


def long(value: int) -> bytes:
    """Encode an integer."""
    out = bytearray()
    write_long(out, value)
    return bytes(out)


# The writer's type of a field, the reader's, and payloads, with whether they are accepted.
CASES = [
    ("int", "int", {b"\x0e": True, b"\x82\x80\x80\x80\x80\x00": False, long(2**31): False, b"": False, b"\x0e\x00": False}),
    ("int", "long", {b"\x0e": True, b"\x82\x80\x80\x80\x80\x00": False}),
    ("long", "long", {b"\x82\x80\x80\x80\x80\x00": False, b"\xff" * 9 + b"\x01": True, b"\xff" * 9 + b"\x02": False}),
    ("boolean", "boolean", {b"\x01": True, b"\x02": False}),
    ("string", "string", {b"\x02a": True, b"\x02\xff": False, b"\x06\xed\xa0\x80": False, b"\x04a": False}),
    (DATE, DATE, {long(2_932_896): True, long(2_932_897): False, long(-719_162): True, long(-719_163): False}),
    (DATE, "int", {long(2_932_896): True, long(2_932_897): False}),
    (TIME, TIME, {long(86_399_999_999): True, long(86_400_000_000): False, long(-1): False}),
    (MICROS, MICROS, {long(253_402_300_799_999_999): True, long(253_402_300_800_000_000): False}),
    (MILLIS, MILLIS, {long(253_402_300_799_999): True, long(253_402_300_800_000): False, long(-(2**63)): False}),
    (LOCAL, LOCAL, {long(-62_135_596_800_000): True, long(-62_135_596_800_001): False, long(2**63 - 1): False}),
    (DECIMAL, DECIMAL, {b"\x06\x01\x86\x9f": True, b"\x06\x01\x86\xa0": False, b"\x00": False, b"\x08\x00\x00\x00\x01": True}),
    (DECIMAL, WIDER, {b"\x06\x01\x86\x9f": True, b"\x06\x01\x86\xa0": False, b"\x00": False}),
    (FIXED, FIXED, {b"\x00\x01\x86\x9f": True, b"\x00\x01\x86\xa0": False, b"\x00": False}),
    (enum("A", "B"), enum("A", "B"), {b"\x02": True, b"\x04": False, b"\x01": False, b"\x82\x80\x80\x80\x80\x00": False}),
    (enum("A", "B"), enum("B", "C"), {b"\x02": True, b"\x00": False}),
    (["null", "int"], ["null", "int"], {b"\x00": True, b"\x02\x0e": True, b"\x04": False, b"\x80\x80\x80\x80\x80\x00": False}),
    (["null", "int", "string"], ["int", "null"], {b"\x00": True, b"\x02\x0e": True, b"\x04\x02a": False}),
    (["null", "int"], "int", {b"\x00": False, b"\x02\x0e": True}),
    (["null", "bytes"], ["null", "string"], {b"\x00": True, b"\x02\x02a": False}),
    ("bytes", "string", {b"\x02a": False}),
    ("long", MICROS, {b"\x02": False}),
    ("int", DATE, {b"\x02": False}),
    (MICROS, "long", {b"\x02": True, long(2**63 - 1): False}),
    ("bytes", DECIMAL, {b"\x02\x01": False}),
    (mapping("int"), mapping("int"), {b"\x04\x02k\x02\x02l\x04\x00": True, b"\x04\x02k\x02\x02k\x04\x00": False}),
    (mapping("int"), mapping("long"), {b"\x02\x02k\x02\x02\x02k\x04\x00": False, b"\x00": True}),
    (mapping("int"), mapping("double"), {b"\x04\x02k\x02\x02l\x04\x00": True, b"\x04\x02k\x02\x02k\x04\x00": False}),
    (array(DATE), array(DATE), {b"\x02\x02\x00": True, b"\x02" + long(2_932_897) + b"\x00": False, b"\xfe\xff\xff\xff\x0f": False}),
    (array("int"), array("double"), {b"\x03\x04\x02\x02\x00": True, b"\x03\x7e\x02\x02\x00": False}),
    ("float", "double", {struct.pack("<f", 0.5): True, b"\x00": False}),
    (record(field("x"), field("y"), name="S"), record(field("y"), field("z", default=7), name="S"), {b"\x02\x04": True, b"\x02": False}),
]  # fmt: skip


@pytest.fixture
def schemas(tmp_path):
    """A registry in a folder."""
    return registry.connect(f"file:{tmp_path / 'schemas'}")


def refusal_fields(call, *arguments, **named):
    """Return the sentence of a refusal without its source, or None."""
    result = outcome(CdcAvroError, lambda: call(*arguments, **named))
    return str(result).partition(": ")[2] if isinstance(result, CdcAvroError) else None


@pytest.mark.slow
def test_all_three_accept_and_refuse_the_same_payloads(schemas):
    """The registry and the class of the writer; the class of the reader and what is brought to Spark."""
    for at, (was, now, payloads) in enumerate(CASES):
        writer, reader = parsed(record(field("a", was))), parsed(record(field("a", now)))
        id = schemas.publish(writer, f"case{at}").id
        made, own = root(module(reader)), root(module(writer))
        rows = FramedRows({frame(b"", id): PrefixSchema(writer.json, id)}, reader.json, reinterpret=False)
        brought = rows.translate(pa.array([frame(payload, id) for payload in payloads], pa.binary())).to_pylist()
        for (payload, is_good), row in zip(payloads.items(), brought, strict=True):
            by_class = refusal_fields(made.from_avro, payload, writer=writer)
            assert (by_class is None) is is_good, (was, now, payload, by_class)
            assert (row["error"] and row["error"]["message"].partition(": ")[2]) == by_class
            assert (row["start"] is None and row["payload"] is None) is not is_good
            assert refusal_fields(schemas.open, frame(payload, id)) == refusal_fields(own.from_avro, payload), (
                was,
                payload,
            )


def test_spark_reads_what_is_accepted_and_tells_of_the_rest(spark, schemas):
    """All cases in one column, with a schema for each, under one reader that has them all."""
    boxes = [
        [json.dumps(record(field("a", one), name=f"C{at}")) for one in (was, now)]
        for at, (was, now, _) in enumerate(CASES)
    ]
    # Enums and other types of one name are others in each case.
    boxes = [
        [re.sub(r'"name": "([EFS])"', rf'"name": "\g<1>{at}"', text) for text in pair] for at, pair in enumerate(boxes)
    ]
    news = [field(f"c{at}", ["null", json.loads(now)], default=None) for at, (_, now) in enumerate(boxes)]
    reader = parsed(record(*news))
    made = root(module(reader))
    rows = []
    for at, (was, _) in enumerate(boxes):
        writer = parsed(record(field(f"c{at}", json.loads(was))))
        id = schemas.publish(writer, f"case{at}").id
        for payload, is_good in CASES[at][2].items():
            fault = refusal_fields(made.from_avro, payload, writer=writer)
            assert (fault is None) is is_good
            rows.append((at, bytearray(frame(payload, id)), fault))
    read = cdc.from_registry(spark.createDataFrame(rows, "at int, raw binary, fault string"), "raw", schemas, reader)
    # As text, since Python has no instants of the last hours before the year 10000 east of Greenwich.
    found = read.selectExpr("at", "to_json(value) AS value", "error.message", "fault", "schema.subject").collect()
    assert len(found) == len(rows)
    assert [row.message and row.message.partition(": ")[2] for row in found] == [row.fault for row in found]
    assert [row.value is None for row in found] == [row.fault is not None for row in found]
    assert all(row.subject == f"case{row.at}" for row in found)


def test_bombs_behind_a_reader_are_errors_of_their_rows(spark, schemas):
    """What announces a gigabyte, or items without end, never reaches `from_avro`, in which it would fail the query."""
    wide = record(
        field("texts", ["null", array("string")], default=None),
        field("nulls", ["null", array("null")], default=None),
        field("text", ["null", "string"], default=None),
        field("map", ["null", mapping("bytes")], default=None),
    )
    id = schemas.publish(parsed(wide), "bombs").id
    huge, many = b"\x80\x80\x80\x80\x08", b"\xfe\xff\xff\xff\xff\xff\xff\xff\xff\x01"
    good = b"\0\0\0\0"
    rows = [good]
    for at in range(4):
        for announced in (huge, many):
            rows += [b"\0" * at + b"\2" + announced + b"\0" * 8, good]
    framed = [(at, bytearray(frame(payload, id))) for at, payload in enumerate(rows)]
    read = cdc.from_registry(
        spark.createDataFrame(framed, "at int, raw binary").repartition(1), "raw", schemas, parsed(wide)
    )
    found = sorted(read.selectExpr("at", "value IS NOT NULL AS is_read", "error IS NULL AS is_good").collect())
    assert [(row.is_read, row.is_good) for row in found] == [(payload == good,) * 2 for payload in rows]
    assert spark.range(3).count() == 3


def test_values_are_those_of_the_reader(spark, schemas):
    """Promoted, reordered, with defaults, under the reader's names, of three writers in one column."""
    first = record(field("was", "int"), field("gone", "string"))
    second = record(field("b", array("int")), field("a", "long"))
    newest = record(
        field("a", "double", aliases=["was"]),
        field("b", array("double"), default=[1.5]),
        field("c", ["null", "string"], default=None),
        field("d", enum("X", "Y"), default="Y"),
    )
    ids = [schemas.publish(json.dumps(one), "rows", compatibility="NONE").id for one in (first, second, newest)]
    rows = [
        (0, frame(b"\x0e\x02x", ids[0])),
        (1, frame(b"\x02\x04\x00\x06", ids[1])),
        (2, frame(struct.pack("<d", 0.5) + b"\x00\x02\x02z\x00", ids[2])),
    ]
    found = cdc.from_registry(spark.createDataFrame(rows, "at int, raw binary"), "raw", schemas).orderBy("at").collect()
    assert [(tuple(row.value), row.error) for row in found] == [
        ((7.0, [1.5], None, "Y"), None),
        ((3.0, [2.0], None, "Y"), None),
        ((0.5, [], "z", "X"), None),
    ]
    assert [row.schema.version for row in found] == [1, 2, 3]


def test_what_would_be_guessed_is_read_if_the_caller_says_so(spark, schemas):
    """Bytes as text, and a number as an instant."""
    older, newer = record(field("a", "bytes"), field("b", "long")), record(field("a", "string"), field("b", MICROS))
    id = schemas.publish(json.dumps(older), "rows").id
    rows = spark.createDataFrame([(bytearray(frame(b"\x02x\x02", id)),)], "raw binary")
    (refused,) = cdc.from_registry(rows, "raw", schemas, parsed(newer)).collect()
    assert refused.error.message == "message: $.a: expected a string, got bytes: nothing says that they are text"
    read = cdc.from_registry(rows, "raw", schemas, parsed(newer), reinterpret=True)
    assert tuple(read.selectExpr("value.a", "unix_micros(value.b)", "error").first()) == ("x", 1, None)


def test_a_schema_that_is_none_is_an_error_of_its_rows_only(spark, schemas, tmp_path):
    """A damaged file, a schema that does not parse, one that cannot be read, one whose default is no value."""
    good = json.dumps(record(field("a")))
    ids = [schemas.publish(json.dumps(record(field("a"), field(f"x{i}"))), f"s{i}").id for i in range(3)]
    ids.append(schemas.publish(good, "good").id)
    places = {}
    for place in (tmp_path / "schemas").rglob("*.json"):
        stored = json.loads(place.read_text(encoding="utf-8"))
        if isinstance(stored, dict) and "schema" in stored:
            places[stored["schema"]] = place
    wrong = [place for text, place in places.items() if "x0" in text or "x1" in text]
    assert len(wrong) == 2
    wrong[0].write_text("{", encoding="utf-8")
    stored = json.loads(wrong[1].read_text(encoding="utf-8"))
    wrong[1].write_text(json.dumps(stored | {"schema": '{"type":"nothing"}'}), encoding="utf-8")
    rows = [(i, bytearray(frame(b"\x0e\x02" if i < 3 else b"\x0e", id))) for i, id in enumerate(ids)]
    fresh = registry.connect(f"file:{tmp_path / 'schemas'}")
    reader = parsed(record(field("a"), field("n", "string", default="y")))
    found = cdc.from_registry(spark.createDataFrame(rows, "at int, raw binary"), "raw", fresh, reader)
    outcomes = {row.at: row for row in found.collect()}
    assert [outcomes[i].value is not None for i in range(4)] == [False, False, True, True]
    for i in range(2):
        assert outcomes[i].error.message.startswith(
            f"message: $: expected a schema that can be used for id {ids[i]}, got "
        )


def test_a_fingerprint_that_several_schemas_have_is_an_error_of_its_rows_only(spark, schemas):
    """They are not read alike."""
    first, second = record(field("a", "int")), record(field("a", DATE))
    for i, schema in enumerate((first, second)):
        schemas.publish(json.dumps(schema), f"s{i}")
    digits = parsed(first).fingerprint
    with pytest.raises(RegistryError):
        schemas.fetch(fingerprint=digits)
    rows = [(bytearray(frame(b"\x0e", Fingerprint(digits))),), (bytearray(frame(b"\x0e", 1)),)]
    found = cdc.from_registry(spark.createDataFrame(rows, "raw binary"), "raw", schemas, parsed(first)).collect()
    assert sorted(row.error is None for row in found) == [False, True]


def test_of_too_many_schemas_those_of_the_most_rows_are_read(spark, schemas, monkeypatch):
    """The others are rows with an error, which says so."""
    monkeypatch.setattr(spark_registry, "MAX_SCHEMAS", 2)
    ids = [schemas.publish(json.dumps(record(field("a"), name=f"R{i}")), f"s{i}").id for i in range(3)]
    raws = [frame(b"\x0e", id) for id in (ids[0], ids[1], ids[1], ids[2], ids[2])]
    rows = spark.createDataFrame([(bytearray(raw),) for raw in raws], "raw binary")
    names = tuple(f"R{i}" for i in range(3))
    found = cdc.from_registry(rows, "raw", schemas, parsed(record(field("a"), name="All", aliases=names))).collect()
    faults = [row.error.message for row in found if row.error is not None]
    assert faults == [f"message: $: expected one of the 10,000 schemas that most rows have, got id {ids[0]}"]


def test_made_up_prefixes_do_not_keep_the_registry_busy(tmp_path, monkeypatch):
    """Once many are missing, others are not looked for: the rows have an error that says so."""
    monkeypatch.setattr(client, "MAX_MISSING", 3)
    schemas = registry.connect(f"file:{tmp_path}/schemas")
    made = schemas.publish('"int"', "s")
    prefixes = [frame(b"", id) for id in (made.id, *range(100, 110))]
    known = client.look_up_schemas(prefixes, schemas)
    assert [entry.schema is not None for entry in known.values()] == [True, *[False] * 10]
    assert [entry.fault[0] for entry in known.values()][4:] == ["a schema that is looked for: 3 others are missing"] * 7


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_more_than_a_thousand_schemas_in_a_batch(spark, schemas):
    """One expression reads them all; a nested one for each overflowed the JVM's stack."""
    count = 1100
    ids = [schemas.publish(json.dumps(record(field("a"), field(f"x{i}"))), f"s{i}").id for i in range(count)]
    rows = spark.createDataFrame(
        [(i, bytearray(frame(b"\x0e" + long(i), id))) for i, id in enumerate(ids)], "at int, raw binary"
    )
    found = cdc.from_registry(rows, "raw", schemas, parsed(record(field("a")))).cache()
    assert found.selectExpr("sum(value.a)", "count(error)", "count(distinct schema.id)").first() == (
        7 * count,
        0,
        count,
    )
    assert found.where("schema.subject <> concat('s', at)").count() == 0


def test_top_level_bytes_are_read_and_written_as_confluent_writes_them(spark, schemas):
    """Without their length behind an id, with it behind a fingerprint."""
    id = schemas.publish('"bytes"', "raws").id
    rows = [(bytearray(b"\x00" + id.to_bytes(4, "big") + raw),) for raw in (b"", b"ab", b"\xff" * 100)]
    rows.append((bytearray(frame(b"\x04ab", Fingerprint(parsed("bytes").fingerprint))),))
    found = cdc.from_registry(spark.createDataFrame(rows, "raw binary"), "raw", schemas, subject="raws").collect()
    assert sorted((bytes(row.value), row.error) for row in found) == [
        (b"", None), (b"ab", None), (b"ab", None), (b"\xff" * 100, None),
    ]  # fmt: skip
    payloads = spark.createDataFrame([(bytearray(b"\x04ab"),), (None,)], "raw binary")
    framed = [row.raw for row in cdc.to_registry(payloads, "raw", schemas, "raws", '"bytes"').collect()]
    assert sorted(framed, key=str) == sorted([bytearray(b"\x00" + id.to_bytes(4, "big") + b"ab"), None], key=str)
    for wrong in (b"\x06ab", b"\x04abc"):
        rows = spark.createDataFrame([(bytearray(wrong),)], "raw binary")
        with pytest.raises(PythonException, match=r"PayloadError: message: \$: expected "):
            cdc.to_registry(rows, "raw", schemas, "raws", '"bytes"').collect()


def test_what_contains_itself_is_left_out_by_a_reader_and_is_no_reader(spark, schemas):
    """Spark has no type for it."""
    node = record(field("v"), field("next", ["null", "N"]), name="N")
    id = schemas.publish(json.dumps(record(field("a"), field("list", node))), "rows").id
    rows = [(bytearray(frame(b"\x0e\x02\x02\x04\x00", id)),), (bytearray(frame(b"\x0e" + b"\x02" * 999, id)),)]
    frame_ = spark.createDataFrame(rows, "raw binary")
    with pytest.raises(SchemaError, match="N contains itself, which Spark does not read"):
        cdc.from_registry(frame_, "raw", schemas)
    found = cdc.from_registry(frame_, "raw", schemas, parsed(record(field("a")))).select("value.a", "error.message")
    assert [row.a for row in found.collect()] == [7, None]


@pytest.mark.timeout(300)
def test_what_is_brought_to_spark_never_fails_it(spark):
    """Random payloads of random schemas, of which a byte was changed, under another random schema."""
    tried = 0

    @settings(max_examples=40)
    @given(pairs(), st.integers(0, 2**32))
    def check(pair, seed):
        nonlocal tried
        rng = random.Random(seed)
        payloads = [payload for _, payload in pair.data]
        for payload in payloads[:10]:
            changed = bytearray(payload)
            for _ in range(3):
                if changed:
                    changed[rng.randrange(len(changed))] = rng.choice([0, 1, 2, 0x7F, 0x80, 0xFF, rng.randrange(256)])
                payloads.append(bytes(changed))
        rows = FramedRows({frame(b"", 1): PrefixSchema(pair.writer, 1)}, pair.reader, reinterpret=rng.random() < 0.5)
        framed = [frame(payload, 1) for payload in payloads]
        brought = rows.translate(pa.array(framed, pa.binary())).to_pylist()
        good = [
            (bytearray(row["payload"] if row["start"] is None else raw[row["start"] - 1 :]),)
            for raw, row in zip(framed, brought, strict=True)
            if row["error"] is None
        ]
        if good:
            frame_ = spark.createDataFrame(good, "payload binary").coalesce(1)
            read = frame_.select(from_avro("payload", pair.reader, {"mode": "FAILFAST"}).alias("value"))
            assert read.selectExpr("to_json(value) AS value").where("value IS NOT NULL").count() == len(good)
        tried += len(good)

    check()
    assert tried > 100


def test_a_column_of_any_name_stands_beside_the_result(spark, schemas):
    """Even the name that is used within."""
    id = schemas.publish(json.dumps(record(field("a"))), "rows").id
    rows = spark.createDataFrame([(1, bytearray(frame(b"\x0e", id)))], "_brought0 int, `a.b``c` binary")
    found = cdc.from_registry(rows.withColumnRenamed("a.b`c", "raw"), "raw", schemas)
    assert found.columns == ["_brought0", "raw", "value", "schema", "error"]
    assert found.select("_brought0", "value.a").first() == (1, 7)


def test_payloads_that_are_longer_than_spark_reads_are_errors(monkeypatch):
    """The session's bounds on Avro Java are those of messages, 64 MiB."""
    monkeypatch.setattr(framed_rows, "MAX_TRANSLATED", 4)
    rows = FramedRows({frame(b"", 1): PrefixSchema('"string"', 1)}, '"string"', reinterpret=False)
    found = rows.translate(pa.array([frame(b"\x06abc", 1), frame(b"\x08abcd", 1)], pa.binary())).to_pylist()
    assert [row["error"] and row["error"]["message"] for row in found] == [
        None,
        "message: $: expected at most 4 bytes, got 5",
    ]


def test_payloads_that_grow_too_much_in_one_arrow_batch_are_errors(monkeypatch):
    """The others of the batch are read."""
    monkeypatch.setattr(framed_rows, "MAX_BYTES", 20)
    writer = json.dumps(record(field("a")))
    reader = json.dumps(record(field("a"), field("b", "string", default="123456789")))
    rows = FramedRows({frame(b"", 1): PrefixSchema(writer, 1)}, reader, reinterpret=False)
    found = rows.translate(pa.array([frame(b"\x0e", 1)] * 3, pa.binary())).to_pylist()
    assert [row["payload"] for row in found] == [b"\x0e\x12123456789", None, None]
    assert found[1]["error"]["message"] == "message: $: expected at most 20 bytes in an Arrow batch, got more"


def alone(known, reader, value):
    """Return what becomes of a row by the exact way, and its error."""
    try:
        entry = known[value[:5]]
        made = translator(parse_schema(entry.schema), reader)(value[5:])
    except (CdcAvroError, KeyError) as error:
        return None, type(error)
    return made, None


@pytest.mark.parametrize("seed", range(10))
def test_a_batch_of_all_kinds_of_rows_is_what_each_row_alone_would_be(seed):
    """Of many versions, with nulls, faults, what nobody knows, and what only the exact way takes."""
    rng = random.Random(seed)
    maker, known, values = Maker(rng), {}, [None, b"", b"\x00", frame(b"", 99), b"\x07abc"]
    base = maker.schema()
    for id in range(1, 20):
        with suppress(SchemaError):
            writer = parsed(maker.changed(base))
            known[frame(b"", id)] = PrefixSchema(writer.json, id, "s", id)
            payloads = [write(writer.root, datum, rng) for datum in cover(writer.root, rng)]
            values += [frame(damaged(rng, one) if rng.random() < 0.3 else one, id) for one in payloads]
    rng.shuffle(values)
    rows, whole = FramedRows(known, json.dumps(base), reinterpret=False), pa.array([b"before", *values], pa.binary())
    for kind in (pa.binary(), pa.large_binary()):
        found = rows.translate(whole.cast(kind)[1:]).to_pylist()
        for value, row in zip(values, found, strict=True):
            expected, error = (None, None) if value is None else alone(known, parsed(base), value)
            made = row["payload"] if row["start"] is None else value[row["start"] - 1 :]
            assert (made, row["error"] is None) == (expected, error is None)
            number = known.get((value or b"")[:5])
            assert row["schema"] == (number and {"id": number.id, "subject": "s", "version": number.version})
        # What has brought rows can be sent to executors all the same.
        rows = pickle.loads(pickle.dumps(rows))
    assert {row["error"] is None for row in found} == {True, False}
