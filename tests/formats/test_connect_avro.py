"""Avro of Kafka Connect's converters: schemas with their types and true names, and data as its JSON converter has them."""

from __future__ import annotations

import io
import json
import math
import struct
from array import array as array_of_ints
from collections.abc import Callable
from dataclasses import replace
from itertools import accumulate
from random import Random
from types import SimpleNamespace
from typing import Any

import fastavro
import pytest
from hypothesis import given
from hypothesis import strategies as st

import cdcavro
from cdcavro.avro.types import Record
from cdcavro.engine.machine import COMPILED
from cdcavro.engine.payloads import MAX_BYTES, pack
from cdcavro.engine.program import MARK
from cdcavro.errors import PayloadError, SchemaError
from cdcavro.exact.numbers import ExactNumber
from cdcavro.formats.connect_avro import ConnectReader, is_connect, whole_text
from cdcavro.wire.formats import get_format
from cdcavro.wire.message_program import engine_of
from support.columns import column
from support.columns import read as read_column
from support.connect_envelopes import ENVELOPE, HEARTBEAT, KEY, ROW, envelope, envelope_of, written
from support.roundtrip import outcome
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


@pytest.mark.parametrize(("own", "stated", "name"), [("a", "c d", "c d"), ("_x_", "", ""), ("a", "b", "a")])
def test_a_true_name_is_taken_if_all_of_a_rows_names_differ(own: str, stated: str, name: str):
    """It may be empty. Names that two columns would share stay as they are."""
    named = {"type": "string", "connect.parameters": {"__debezium.source.column.name": stated}}
    whole = record(field(own, named), field("b", "string"), name="a.R")
    out = io.BytesIO()
    fastavro.schemaless_writer(out, whole, {own: "1", "b": "2"})
    made = ConnectReader(cdcavro.parse_schema(json.dumps(whole))).text(out.getvalue())
    assert json.loads(made)["payload"] == {name: "1", "b": "2"}


# Schemas and data at random: each has what writes a datum of its own.
Write = Callable[[Random], bytes]
TEXTS = ["", "a", "naïve 北京", 'a"\\\n\t', "\x1f\x0b\x7f", "\u2028\U0001f600", "x" * 70, "é" * 40]
DOUBLES = [
    0.0,
    -0.0,
    1e7,
    9999999.999999999,
    0.001,
    0.00099999,
    1e-4,
    5e-5,
    1e15,
    123456789.25,
    2.0**53,
    5e-324,
    2e-323,
]
DOUBLES += [math.inf, -math.inf, math.nan, 0.1, 1 / 3, 16777216.0, 8388607.5, 3.4028234663852886e38, 999999.94]


def a_long(value: int) -> bytes:
    """Return an integer as Avro writes it."""
    rest, out = (value << 1) ^ (value >> 63), bytearray()
    while rest > 0x7F:
        out.append(rest & 0x7F | 0x80)
        rest >>= 7
    return bytes([*out, rest])


def counted(raw: bytes) -> bytes:
    """Return bytes behind their length."""
    return a_long(len(raw)) + raw


def a_double(random: Random) -> float:
    """Return one of those that are odd, or of any size, or as amounts are."""
    bits = struct.unpack("<d", random.randbytes(8))[0]
    return random.choice([random.choice(DOUBLES), bits, random.randrange(10**9) / 10 ** random.randrange(12)])


def a_single(random: Random) -> bytes:
    """Return a number of single precision, or the nearest to one of double precision that has one."""
    value = a_double(random)
    is_wide = math.isfinite(value) and abs(value) > 3.4e38
    return random.randbytes(4) if is_wide or random.random() < 0.3 else struct.pack("<f", value)


SCALARS: dict[str, Write] = {
    "boolean": lambda random: random.choice([b"\0", b"\1"]),
    "int": lambda random: a_long(random.choice([0, -1, random.randrange(-(2**31), 2**31)])),
    "long": lambda random: a_long(random.choice([0, 63, random.randrange(-(2**63), 2**63)])),
    "float": a_single,
    "double": lambda random: struct.pack("<d", a_double(random)),
    "bytes": lambda random: counted(random.randbytes(random.choice([0, 1, 2, 3, 50, 200]))),
    "string": lambda random: counted(random.choice(TEXTS).encode()),
}


def blocks(random: Random, item: Write) -> bytes:
    """Return items in blocks, of which most collections have one, and few say their size."""
    written = b""
    for _ in range(random.choice([0, 1, 1, 1, 2])):
        items = [item(random) for _ in range(random.randrange(1, 4))]
        whole = b"".join(items)
        is_sized = random.random() < 0.1
        written += (a_long(-len(items)) + a_long(len(whole)) if is_sized else a_long(len(items))) + whole
    return written + b"\0"


def any_type(random: Random, names: list[str], depth: int = 0) -> tuple[Any, Write]:
    """Return a type as Connect's converter may declare it, and what writes a datum."""
    names.append(f"n.T{len(names)}")
    kind = random.choice(["scalar", "scalar", "fixed", "enum", "array", "map", "entries", "record", "union"])
    if kind == "scalar" or depth > 3:
        name = random.choice([*SCALARS])
        return name, SCALARS[name]
    if kind == "fixed":
        size = random.randrange(5)
        return {"type": "fixed", "name": names[-1], "size": size}, lambda random: random.randbytes(size)
    if kind == "enum":
        return enum(*(f"S{i}" for i in range(70)), name=names[-1]), lambda random: a_long(random.randrange(70))
    if kind == "record":
        return any_record(random, names, depth)
    if kind == "entries":
        declared, write = any_record(random, names, depth, ["key", "value"])
        marked = declared | {"connect.internal.type": "MapEntry"}
        return array(marked), lambda random: blocks(random, write)
    inner, write = any_type(random, names, depth + 1)
    if kind == "array":
        return array(inner), lambda random: blocks(random, write)
    if kind == "map":
        keys = [name.encode() for name in TEXTS]
        return mapping(inner), lambda random: blocks(
            random, lambda random: counted(random.choice(keys)) + write(random)
        )
    if isinstance(inner, list):
        return inner, write
    at = random.randrange(2)
    both = ["null", inner] if at else [inner, "null"]
    return both, lambda random: random.choice([a_long(at) + write(random), a_long(1 - at)])


def any_record(
    random: Random, names: list[str], depth: int = 0, fields: list[str] | None = None
) -> tuple[dict[str, Any], Write]:
    """Return a record whose fields may have true names, and what writes a datum."""
    own = fields or [f"f{i}" for i in range(random.randrange(5))]
    name = names[-1] if names else "n.Root"
    names.append(name)
    types = [any_type(random, names, depth + 1) for _ in own]
    declared = [field(one, inner) for one, (inner, _) in zip(own, types, strict=True)]
    if fields is None and random.random() < 0.3:
        parameters = {"__debezium.source.column.name": random.choice(TEXTS)}
        declared.append(field("renamed", {"type": "int", "connect.parameters": parameters}))
        types.append(("int", SCALARS["int"]))
    return record(*declared, name=name), lambda random: b"".join(write(random) for _, write in types)


def compare(reader: ConnectReader, payloads: list[bytes]) -> int:
    """Hold the engine against the exact way, one by one and in a column; return how many payloads it takes."""
    exact = [outcome(PayloadError, reader._exact_text, payload) for payload in payloads]
    told = [one if type(one) is bytes else (type(one), str(one)) for one in exact]
    some = [outcome(PayloadError, reader.text, payload) for payload in payloads]
    assert [one if type(one) is bytes else (type(one), str(one)) for one in some] == told
    packed = pack(column(payloads), reader.text, lambda *_: None, batch=reader.column)
    assert read_column(packed) == [one if type(one) is bytes else None for one in exact]
    if reader.repeated and isinstance(reader.root, Record):
        brief = read_column(pack(column(payloads), reader.brief_text, lambda *_: None, batch=reader.brief_column))
        assert [one and whole_text(one, reader.head) for one in brief] == read_column(packed)
        assert brief == [one and MARK + one.removeprefix(reader.head)[:-1] for one in read_column(packed)]
    return sum(reader._engine.decode(payload) is not None for payload in payloads)


def damaged(random: Random, payload: bytes) -> bytes:
    """Return a payload that is cut, has more, or has another byte somewhere."""
    at = random.randrange(len(payload) + 1)
    byte = random.choice([b"\0", b"\1", b"\2", b"\x7f", b"\x80", b"\xff"])
    return random.choice([payload[:at], payload + byte, payload[:at] + byte + payload[at + 1 :], payload[at:]])


# The members of envelopes and of their sources, with what Debezium writes there; a type of None is that of a row.
STRING, LONG = ("string", SCALARS["string"]), ("long", SCALARS["long"])
OPERATION = ("string", lambda random: counted(random.choice([b"c", b"u", b"d", b"r", b"x", b""])))
SOURCE = {
    **dict.fromkeys(["version", "connector", "name", "snapshot", "db", "table", "gtid", "file", "more", "scn"], STRING),
    **dict.fromkeys(["ts_ms", "pos", "ts_us", "server_id", "txId", "other"], LONG),
    "row": ("int", SCALARS["int"]),
}
ENVELOPES: dict[str, Any] = {
    **dict.fromkeys(["before", "after", "source", "transaction"]),
    **dict.fromkeys(["ts_ms", "ts_us", "ts_ns", "payload"], LONG),
    **dict.fromkeys(["unknown", "id"], STRING),
    "op": OPERATION,
}


def any_members(random: Random, names: list[str], known: dict[str, Any]) -> tuple[Any, Write]:
    """Return a record with some of the members of envelopes, as they are sent or otherwise, in any order."""
    own = random.sample([*known], random.randrange(len(known) + 1))
    made = []
    for name in own:
        names.append(f"n.T{len(names)}")
        if random.random() < 0.1:
            inner, write = any_type(random, names, 2)
        elif known[name] is None:
            inner, write = any_members(random, names, SOURCE) if name == "source" else any_record(random, names, 2)
        else:
            inner, write = known[name]
        made.append(optional(random, inner, write))
    names.append(f"n.T{len(names)}")
    declared = [field(name, inner) for name, (inner, _) in zip(own, made, strict=True)]
    return record(*declared, name=names[-1]), lambda random: b"".join(write(random) for _, write in made)


def optional(random: Random, inner: Any, write: Write) -> tuple[Any, Write]:
    """Return a type with null beside it, mostly, and what writes a datum."""
    if isinstance(inner, list) or random.random() < 0.3:
        return inner, write
    return ["null", inner], lambda random: random.choice([b"\x00", b"\x02" + write(random), b"\x02" + write(random)])


def compare_envelopes(reader: ConnectReader, keys: ConnectReader | None, records: list[tuple[bytes, bytes]]) -> int:
    """Hold the payloads that the engine makes of keys and envelopes against those of their texts; return how many.

    It takes those that are taken as texts.
    """
    format, taken = get_format("debezium"), []
    engine, texts = reader.envelope_engine(format, keys), engine_of(format.schema)
    for key, value in records:
        beside = None if keys is None else column([key])
        made, _, count = engine.read_column(column([value]), beside, b"" if keys is None else "né".encode(), MAX_BYTES)
        datum, of_key = reader._brief_engine.decode(value), b"" if keys is None else keys._engine.decode(key)
        if datum is None or of_key is None:
            assert not count
            continue
        text = b'{"schema":{},"payload":%s}' % datum.removeprefix(MARK)
        wanted = texts.encode('{"topic":"né","key":%s,"value":%s}'.encode() % (of_key, text) if keys else text)
        assert (wanted is not None) is bool(count)
        if wanted is not None:
            # In place of a schema stands a number of entries that no map has.
            assert [both for both in zip(made, wanted, strict=True) if both[0] != both[1]] == [(1, 0)]
            taken.append((key, value, made))
    values = [value for _, value, _ in taken]
    beside = None if keys is None else column([key for key, *_ in taken])
    whole, ends, count = engine.read_column(column(values), beside, b"" if keys is None else "né".encode(), MAX_BYTES)
    sizes = [len(made) for *_, made in taken]
    assert (whole, count) == (b"".join(made for *_, made in taken), len(taken))
    assert ends == array_of_ints("i", accumulate(sizes)).tobytes()
    return len(taken)


def trial_of_envelopes(random: Random) -> tuple[int, int]:
    """Return how many messages of any schema there were, and how many of them the engine took."""
    names: list[str] = []
    declared, write = any_members(random, names, ENVELOPES)
    of_key, write_key = any_record(random, ["k.Key"])
    reader = ConnectReader(cdcavro.parse_schema(json.dumps(declared)))
    key_reader = ConnectReader(cdcavro.parse_schema(json.dumps(of_key)), is_key=True)
    keys = key_reader if random.random() < 0.5 else None
    records = [(write_key(random), write(random)) for _ in range(5)]
    hurt = [(key, damaged(random, value)) for key, value in records for _ in range(3)]
    hurt += [(damaged(random, key), value) for key, value in records]
    compare_envelopes(reader, keys, hurt)
    return len(records), compare_envelopes(reader, keys, records)


@pytest.mark.skipif(not COMPILED, reason="nothing is compiled here")
def test_payloads_of_envelopes_are_those_of_their_texts():
    """Of many: their keys and values of any type, with members that are unknown, absent, null, or of another type."""
    trials = [trial_of_envelopes(Random(seed)) for seed in range(15)]
    assert sum(taken for _, taken in trials) > sum(count for count, _ in trials) / 4


@pytest.mark.skipif(not COMPILED, reason="nothing is compiled here")
def test_envelopes_have_as_many_keys_as_their_engine_expects():
    """Either none or one for each, since nothing else says what a key is; nulls have no bytes."""
    reader = ConnectReader(cdcavro.parse_schema(json.dumps(ENVELOPE)))
    keys = ConnectReader(cdcavro.parse_schema(json.dumps(KEY)), is_key=True)
    value, format = written(ENVELOPE, envelope("c", ROW)), get_format("debezium")
    alone, beside = (reader.envelope_engine(format, one) for one in (None, keys))
    for engine, own in ((alone, column([b"\x0e"])), (beside, None), (beside, column([b"\x0e"] * 2))):
        with pytest.raises(ValueError, match="as many keys as values"):
            engine.read_column(column([value]), own, b"t", MAX_BYTES)
    made, ends, count = beside.read_column(column([None, value]), column([None, b"\x0e"]), b"t", MAX_BYTES)
    assert (count, ends) == (2, array_of_ints("i", [0, len(made)]).tobytes())
    assert beside.read_column(column([value]), column([None]), b"t", MAX_BYTES)[2] == 0
    assert reader.envelope_engine(get_format("canal"), None) is None


@pytest.mark.skipif(not COMPILED, reason="nothing is compiled here")
def test_an_envelope_whose_text_might_be_too_long_is_left_to_it():
    """A control character takes six bytes there, and what has no type of its own as many as its text."""
    format, most = get_format("debezium"), 20_000
    shorter = SimpleNamespace(envelope=format.envelope, program=replace(format.program, bounds=(128, 1000, most)))
    declared = envelope_of(field("id", "int"), field("note", "string"), field("raw", "bytes"))
    reader = ConnectReader(cdcavro.parse_schema(json.dumps(declared)))
    engine, taken = reader.envelope_engine(shorter, None), []
    for note, raw in [(0, 0), (100, 100), (3_000, 0), (4_000, 0), (0, 9_000), (0, 16_000)]:
        value = written(declared, envelope("c", {"id": 1, "note": "\x01" * note, "raw": bytes(raw)}))
        taken.append(engine.read_column(column([value]), None, b"", MAX_BYTES)[2])
        assert not taken[-1] or len(reader.text(value)) <= most
    assert (taken[:2], taken[3], taken[5]) == ([1, 1], 0, 0)


@pytest.mark.slow
@pytest.mark.skipif(not COMPILED, reason="nothing is compiled here")
@given(st.integers(0, 2**32))
def test_payloads_of_any_envelopes_are_those_of_their_texts(seed: int):
    """As above, by many more schemas."""
    random = Random(seed)
    for _ in range(40):
        trial_of_envelopes(random)


@pytest.mark.slow
@given(st.integers(0, 2**32))
def test_the_engine_writes_what_the_exact_way_writes(seed: int):
    """For any schema and data, and the same errors for what is damaged."""
    random = Random(seed)
    for _ in range(40):
        declared, write = any_record(random, [])
        reader = ConnectReader(cdcavro.parse_schema(json.dumps(declared)), is_key=random.random() < 0.3)
        payloads = [write(random) for _ in range(5)]
        compare(reader, payloads + [damaged(random, one) for one in payloads for _ in range(3)])


@pytest.mark.parametrize(
    ("declared", "datum"),
    [(ENVELOPE, envelope("u", ROW, ROW)), (ENVELOPE, envelope("d", None)), (KEY, {"id": 5}), (HEARTBEAT, {"ts_ms": 1})],
)
def test_the_engine_takes_what_debezium_sends(declared: dict[str, Any], datum: Any):
    """Whole, and cut or changed at every place, where it reads nothing that is not there."""
    reader, payload = ConnectReader(cdcavro.parse_schema(json.dumps(declared))), written(declared, datum)
    assert compare(reader, [payload] * 3) == (3 if COMPILED else 0)
    cut = [payload[:at] for at in range(len(payload))]
    compare(reader, cut + [payload[:at] + b"\xff" + payload[at + 1 :] for at in range(len(payload))])


@pytest.mark.parametrize(
    ("declared", "payload", "text"),
    [
        (KEY, b"\x0e", '{"id":7}'),
        (record(field("payload", "int"), name="a.K"), b"\x02", '{"payload":1}'),
        (record(field("payload", "int"), field("schema", "int"), name="a.K"), b"\x02\x04", None),
        ("string", b"\x02a", None),
    ],
)
def test_a_key_has_no_schema_unless_it_would_be_taken_for_one(declared: Any, payload: bytes, text: str | None):
    """An object of `schema` and `payload` is one with a schema, and what is no object has no names of columns."""
    schema = cdcavro.parse_schema(json.dumps(declared))
    reader, whole = ConnectReader(schema, is_key=True), ConnectReader(schema)
    wanted = whole.text(payload) if text is None else text.encode()
    assert reader.text(payload) == reader._exact_text(payload) == wanted
    assert (reader.repeated > 0) is (text is None)
    assert compare(reader, [payload, payload + b"\0", b""]) == COMPILED


@pytest.mark.slow
@pytest.mark.skipif(not COMPILED, reason="nothing is compiled here")
@pytest.mark.parametrize("declared", ["double", "float"])
def test_numbers_of_the_usual_size_are_the_engines(declared: str):
    """Amounts with some digits behind the point, and large ones."""
    random, letter = Random(1), declared[0]
    whole = record(field("x", declared), name="a.R")
    reader = ConnectReader(cdcavro.parse_schema(json.dumps(whole)))
    most = 9 if declared == "double" else 6
    values = [random.randrange(1, 10**most) / 10 ** random.randrange(3) * random.choice([1, -1]) for _ in range(3_000)]
    assert compare(reader, [struct.pack(f"<{letter}", value) for value in values]) == len(values)
    compare(reader, [random.randbytes(4 if declared == "float" else 8) for _ in range(3_000)])
    near = [
        struct.unpack("<I", struct.pack("<f", 10.0**power))[0] + i for power in range(-4, 8) for i in range(-50, 50)
    ]
    if declared == "float":
        compare(reader, [struct.pack("<I", bits) for bits in near])


@pytest.mark.timeout(20)
def test_items_without_bytes_are_no_bomb():
    """Many lists of nothing in a list are more items than the payload has bytes."""
    whole = record(field("x", array(array(record(name="a.Nothing")))), name="a.R")
    reader = ConnectReader(cdcavro.parse_schema(json.dumps(whole)))
    inner = a_long(20_000) + b"\0"
    payload = a_long(20_000) + inner * 20_000 + b"\0"
    with pytest.raises(PayloadError, match="at most one item to a byte"):
        reader.text(payload)
    compare(reader, [payload])
