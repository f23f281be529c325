"""Avro of Kafka Connect's converters: schemas with their types and true names, and data as its JSON converter has them."""

from __future__ import annotations

import io
import json
import math
import struct
from typing import Any

import fastavro
import pytest

import cdcavro
from cdcavro.errors import PayloadError, SchemaError
from cdcavro.exact.numbers import ExactNumber
from cdcavro.formats.connect_avro import ConnectReader, is_connect
from support.connect_envelopes import ENVELOPE, ROW, envelope, written
from support.wire import array, enum, field, mapping, record

LOGICAL = "org.apache.kafka.connect.data."


def read(declared: Any, value: Any) -> dict[str, Any]:
    """Return the JSON of a datum that fastavro wrote."""
    return json.loads(text_of(declared, value))


def text_of(declared: Any, value: Any) -> str:
    """Return the text of a datum that fastavro wrote, in a record's one field `x`."""
    whole = record(field("x", declared), name="a.R")
    return ConnectReader(cdcavro.parse_schema(json.dumps(whole))).text(written(whole, {"x": value})).decode()


def doubled(declared: Any, times: int) -> dict[str, Any]:
    """Return a record of two fields of the same record of two fields, and so on."""
    made = record(field("x", declared), name="b.R0")
    for i in range(times):
        made = record(field("x", made), field("y", f"b.R{i}"), name=f"b.R{i + 1}")
    return made


def test_an_envelope_is_the_text_of_the_json_converter_with_its_schema():
    """Member by member, in the order in which Kafka's converter writes them."""
    text = ConnectReader(cdcavro.parse_schema(json.dumps(ENVELOPE))).text(written(ENVELOPE, envelope("c", ROW)))
    assert is_connect(cdcavro.parse_schema(json.dumps(ENVELOPE)))
    made = json.loads(text)
    assert list(made) == ["schema", "payload"]
    assert made["payload"]["after"] == {
        "id": 7,
        "small": -3,
        "price": "AMg=",
        "at": 1_700_000_000_123_456,
        "note": "naïve",
        "odd-name": None,
    }
    row = made["schema"]["fields"][1]
    assert (row["name"], row["optional"], row["field"]) == ("srv.shop.orders.Value", True, "after")
    assert row["fields"] == [
        {"type": "int32", "optional": False, "field": "id"},
        {"type": "int16", "optional": False, "default": 5, "field": "small"},
        {
            "type": "bytes",
            "optional": False,
            "name": LOGICAL + "Decimal",
            "version": 1,
            "parameters": {"scale": "2", "connect.decimal.precision": "10"},
            "field": "price",
        },
        {"type": "int64", "optional": True, "name": "io.debezium.time.MicroTimestamp", "version": 1, "field": "at"},
        {"type": "string", "optional": False, "field": "note"},
        {
            "type": "string",
            "optional": True,
            "parameters": {"__debezium.source.column.name": "odd-name"},
            "field": "odd-name",
        },
    ]
    assert list(row["fields"][2]) == ["type", "optional", "name", "version", "parameters", "field"]


def test_the_text_is_a_message_of_debezium_with_the_types_that_it_states():
    """The law of both ways: what reads the JSON reads the Avro."""
    text = ConnectReader(cdcavro.parse_schema(json.dumps(ENVELOPE))).text(written(ENVELOPE, envelope("u", ROW, ROW)))
    assert cdcavro.sniff(text) == "debezium"
    assert cdcavro.decode(cdcavro.encode(text, "debezium"), "debezium") == text
    (change,) = cdcavro.to_changes(text, "debezium")
    assert (change.op, change.source.table, change.position) == ("UPDATE", "orders", (3, 390, 0))
    assert change.after["price"] == ExactNumber("2.00")
    types = {column.name: column.type for column in change.columns}
    assert (types["small"], types["price"]) == ("int16", "org.apache.kafka.connect.data.Decimal(precision=10,scale=2)")


@pytest.mark.parametrize(
    ("declared", "value", "schema", "payload"),
    [
        ("boolean", True, {"type": "boolean", "optional": False}, True),
        (["string", "null"], "a", {"type": "string", "optional": True}, "a"),
        ({"type": "fixed", "name": "F", "size": 2}, b"\x00\xff", {"type": "bytes", "optional": False}, "AP8="),
        (enum("E", "A", "B"), "B", {"type": "string", "optional": False}, "B"),
        (
            array("long"),
            [1, 2],
            {"type": "array", "items": {"type": "int64", "optional": False}, "optional": False},
            [1, 2],
        ),
        (
            mapping("int"),
            {"k": 1},
            {
                "type": "map",
                "keys": {"type": "string", "optional": False},
                "values": {"type": "int32", "optional": False},
                "optional": False,
            },
            {"k": 1},
        ),
        (
            {"type": "int", "logicalType": "date"},
            5,
            {"type": "int32", "optional": False, "name": LOGICAL + "Date", "version": 1},
            5,
        ),
        (
            {"type": "bytes", "connect.default": "\u00ff", "connect.doc": "d"},
            b"",
            {"type": "bytes", "optional": False, "doc": "d", "default": "/w=="},
            "",
        ),
    ],
)
def test_types_are_those_of_connect(declared: Any, value: Any, schema: dict[str, Any], payload: Any):
    """With their optionality, names, versions, parameters and defaults; values are what Avro has."""
    made = read(declared, value)
    (own,) = made["schema"]["fields"]
    assert own == {**schema, "field": "x"}
    assert made["payload"] == {"x": payload}


@pytest.mark.parametrize(
    ("declared", "value", "text"),
    [
        ("double", 1e7, "1.0E7"),
        ("double", 9999999.5, "9999999.5"),
        ("double", 0.001, "0.001"),
        ("double", 0.00099, "9.9E-4"),
        ("double", -0.0, "-0.0"),
        ("double", 5e-324, "4.9E-324"),
        ("double", math.nan, '"NaN"'),
        ("double", -math.inf, '"-Infinity"'),
        ("float", 0.1, "0.1"),
        ("float", 3.4028234663852886e38, "3.4028235E38"),
        ("float", math.inf, '"Infinity"'),
        ("string", 'a"\\\n\x1f\\u001f\x7f', r'"a\"\\\n\u001F\\u001f' + '\x7f"'),
    ],
)
def test_numbers_and_texts_are_spelled_as_java_spells_them(declared: str, value: Any, text: str):
    """Numbers in the fewest digits, control characters in capitals."""
    made = text_of(declared, value)
    assert made.endswith(f'"payload":{{"x":{text}}}}}')


@pytest.mark.parametrize("bits", [1, 0x00800000, 0x3DCCCCCD, 0x4B189680, 0x7F7FFFFF, 0x80000000])
def test_a_number_of_single_precision_comes_back_from_its_text(bits: int):
    """At the ends of its range, too."""
    (value,) = struct.unpack("<f", struct.pack("<I", bits))
    spelled = json.loads(text_of("float", value))["payload"]["x"]
    assert struct.pack("<f", spelled) == struct.pack("<f", value)


@pytest.mark.parametrize(
    ("declared", "sentence"),
    [
        (["null", "int", "string"], "a union of Kafka Connect's is one of null and one other type"),
        ("null", "Kafka Connect has no type for null"),
        (record(field("next", ["null", "a.R"]), name="a.R"), "a.R contains itself"),
        ({"type": "int", "connect.name": 5}, "connect.name is a text"),
        ({"type": "int", "connect.version": "1"}, "connect.version is an integer"),
        ({"type": "int", "connect.parameters": [1]}, "connect.parameters is an object of texts"),
        ({"type": "int", "connect.parameters": {"scale": 2}}, "connect.parameters is an object of texts"),
        ({"type": "bytes", "connect.default": 5}, "the default of bytes is a text whose characters are bytes"),
        ({"type": "bytes", "connect.default": "é中"}, "the default of bytes is a text whose characters are bytes"),
        ({"type": "int", "connect.doc": "\ud800"}, "a text of Kafka Connect's is UTF-8"),
        (doubled({"type": "int"}, 25), "it stands for more than 100,000 types, which Kafka Connect does not read"),
        (doubled({"type": "int", "connect.doc": "d" * 10_000}, 13), "it has more than 16,777,216 characters"),
    ],
)
@pytest.mark.timeout(60)
def test_what_connect_has_no_type_for_is_refused(declared: Any, sentence: str):
    """Also a record in itself, before its data are read, and a schema that is short and stands for a long one."""
    whole = (
        declared
        if isinstance(declared, dict) and declared["type"] == "record"
        else record(field("x", declared), name="a.R")
    )
    with pytest.raises(SchemaError, match=sentence):
        ConnectReader(cdcavro.parse_schema(json.dumps(whole)))


@pytest.mark.parametrize("cut", range(0, 85, 7))
def test_a_payload_that_is_cut_or_has_more_is_an_error(cut: int):
    """At every place."""
    reader = ConnectReader(cdcavro.parse_schema(json.dumps(ENVELOPE)))
    payload = written(ENVELOPE, envelope("c", ROW))
    for broken in (payload[:cut], payload + b"\x00"):
        with pytest.raises(PayloadError):
            reader.text(broken)


@pytest.mark.parametrize(("declared", "key"), [(array("double"), "items"), (mapping("double"), "values")])
def test_an_array_and_a_map_have_their_own_names_and_parameters(declared: dict[str, Any], key: str):
    """As pgvector's columns do; a field of theirs has its true name, too."""
    parameters = {"__debezium.source.column.name": "em bed"}
    facts = {"connect.name": "io.debezium.data.DoubleVector", "connect.version": 1, "connect.parameters": parameters}
    made = read(declared | facts, [0.5] if key == "items" else {"a": 0.5})
    assert made["payload"] == {"em bed": [0.5] if key == "items" else {"a": 0.5}}
    (own,) = made["schema"]["fields"]
    assert (own["name"], own["version"], own["parameters"]) == ("io.debezium.data.DoubleVector", 1, parameters)
    assert own[key] == {"type": "double", "optional": False}


@pytest.mark.parametrize(
    "marked", [{"name": "io.confluent.connect.avro.MapEntry"}, {"name": "a.E", "connect.internal.type": "MapEntry"}]
)
@pytest.mark.parametrize(
    ("key", "keys", "payload"),
    [("int", [1, -2], [[1, True], [-2, False]]), (["null", "string"], ['a"', None], {'a"': True, "null": False})],
)
def test_a_map_whose_keys_are_no_plain_strings_is_one_again(
    marked: dict[str, str], key: Any, keys: list[Any], payload: Any
):
    """As the JSON converter writes it: pairs, or members if the keys are strings."""
    entry = record(field("key", key), field("value", "boolean"), name=marked["name"]) | marked
    made = read(array(entry), [{"key": key, "value": i == 0} for i, key in enumerate(keys)])
    assert made["payload"]["x"] == payload
    (own,) = made["schema"]["fields"]
    assert (own["type"], own["values"]) == ("map", {"type": "boolean", "optional": False})
    assert own["keys"]["type"] == ("int32" if key == "int" else "string")
    other = record(*entry["fields"], field("more", "int"), name=marked["name"]) | marked
    assert read(array(other), [])["schema"]["fields"][0]["type"] == "array"


def test_names_that_two_columns_would_share_stay_as_they_are():
    """A true name is taken only if all of a row's names differ."""
    renamed = {"type": "string", "connect.parameters": {"__debezium.source.column.name": "b"}}
    whole = record(field("a", renamed), field("b", "string"), name="a.R")
    out = io.BytesIO()
    fastavro.schemaless_writer(out, whole, {"a": "1", "b": "2"})
    made = ConnectReader(cdcavro.parse_schema(json.dumps(whole))).text(out.getvalue())
    assert json.loads(made)["payload"] == {"a": "1", "b": "2"}
