"""Payloads of any schema: exactly one datum, or an error with the place."""

from __future__ import annotations

import io
import json

import fastavro
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import cdcavro
from cdcavro.avro import binary
from cdcavro.avro.binary import check_payload, write_long
from cdcavro.avro.schema import parse_schema
from cdcavro.avro.translation import translator
from cdcavro.avro.types import Record, has_bytes
from support.messages import goldens, shop_canal
from support.roundtrip import error_of, outcome
from support.wire import array, doubled, field, mapping, record

EVERYTHING = {
    "type": "record",
    "name": "R",
    "fields": [
        {"name": "n", "type": "null"},
        {"name": "b", "type": "boolean"},
        {"name": "i", "type": "int"},
        {"name": "l", "type": "long"},
        {"name": "f", "type": "float"},
        {"name": "d", "type": "double"},
        {"name": "y", "type": "bytes"},
        {"name": "s", "type": "string"},
        {"name": "x", "type": {"type": "fixed", "name": "X", "size": 3}},
        {"name": "e", "type": {"type": "enum", "name": "E", "symbols": ["A", "B"]}},
        {"name": "a", "type": {"type": "array", "items": {"type": "map", "values": ["null", "string"]}}},
    ],
}
SCHEMA = parse_schema(json.dumps(EVERYTHING))
VALUE = {
    "n": None,
    "b": True,
    "i": -(2**31),
    "l": 2**63 - 1,
    "f": 0.5,
    "d": 0.1,
    "y": b"\xff",
    "s": "ü",
    "x": b"abc",
    "e": "B",
    "a": [{}, {"k": None, "m": "v"}],
}


def written(value=VALUE) -> bytes:
    """Write a datum by fastavro."""
    out = io.BytesIO()
    fastavro.schemaless_writer(out, EVERYTHING, value)
    return out.getvalue()


def test_a_datum_of_every_type_is_one():
    """What fastavro wrote."""
    check_payload(written(), SCHEMA)


@pytest.mark.parametrize("format", cdcavro.FORMATS)
def test_our_own_payloads_are_data_of_their_schemas(format):
    """All goldens, and the messages of the shop."""
    for text in goldens(format) + (shop_canal() if format == "canal" else []):
        check_payload(cdcavro.encode(text, format), cdcavro.load_schema(format))


def test_every_cut_is_refused():
    """A payload that ends too early is never a datum, nor is one with bytes left over."""
    whole = written()
    for size in range(len(whole)):
        assert error_of(check_payload, whole[:size], SCHEMA)
    assert error_of(check_payload, whole + b"\0", SCHEMA).startswith("message: $: expected the end of the payload")


@pytest.mark.parametrize(
    ("schema", "raw", "sentence"),
    [
        ('"boolean"', b"\2", "message: $: expected a boolean, 0 or 1, got 2 at byte 0"),
        ('["null"]', b"\2", "message: $: expected a branch from 0 to 0, got 1 at byte 1"),
        (
            '{"type":"array","items":"int"}',
            b"\2\2",
            "message: $[1]: expected 1 byte, got 0 at byte 2, where the payload ends",
        ),
        (
            '{"type":"array","items":"null"}',
            b"\xfe\xff\xff\xff\x0f\0",
            "message: $[0]: expected at most 100000 items without bytes, got more by byte 5",
        ),
        (json.dumps(EVERYTHING), b"\2", "message: $.b: expected a boolean, 0 or 1, got 2 at byte 0"),
    ],
)
def test_a_fault_is_told_with_its_place(schema, raw, sentence):
    """As everywhere."""
    assert error_of(check_payload, raw, parse_schema(schema)) == sentence


@pytest.mark.parametrize(
    ("declared", "first", "last", "reason"),
    [
        ("date", -719_162, 2_932_896, "a date of the years 1 to 9999"),
        ("time-millis", 0, 86_399_999, "a time of a day"),
        ("time-micros", 0, 86_399_999_999, "a time of a day"),
        ("timestamp-millis", -62_135_596_800_000, 253_402_300_799_999, "an instant of the years 1 to 9999"),
        ("timestamp-micros", -62_135_596_800_000_000, 253_402_300_799_999_999, "an instant of the years 1 to 9999"),
        ("local-timestamp-millis", -62_135_596_800_000, 253_402_300_799_999, "an instant of the years 1 to 9999"),
        (
            "local-timestamp-micros",
            -62_135_596_800_000_000,
            253_402_300_799_999_999,
            "an instant of the years 1 to 9999",
        ),
    ],
)
def test_dates_and_times_have_bounds(declared, first, last, reason):
    """The first and the last are data, those beside them are not."""
    base = "int" if declared in ("date", "time-millis") else "long"
    schema = parse_schema(json.dumps({"type": base, "logicalType": declared}))
    for value in (first, last):
        check_payload(_long(value), schema)
    for value in (first - 1, last + 1):
        assert error_of(check_payload, _long(value), schema).startswith(f"message: $: expected {reason}, got ")


@pytest.mark.parametrize(
    ("raw", "fault"),
    [
        (b"\x04\x01\x86", "None"),
        (b"\x06\x00\x00\x7b", "None"),
        (b"\x00", "message: $: expected decimal(3,1), got 0 bytes that are none"),
        (b"\x04\x03\xe8", "message: $: expected decimal(3,1), got 2 bytes that are none"),
    ],
)
def test_a_decimal_has_bytes_and_no_more_digits_than_its_precision(raw, fault):
    """Avro Java fails on one without bytes, and Spark on the other."""
    schema = parse_schema('{"type":"bytes","logicalType":"decimal","precision":3,"scale":1}')
    assert str(outcome(cdcavro.PayloadError, check_payload, raw, schema)) == fault


def test_a_decimal_of_absurd_precision_is_plain_bytes():
    """Ten to the power of it would fill the memory."""
    schema = parse_schema('{"type":"bytes","logicalType":"decimal","precision":1000000000}')
    check_payload(b"\x00", schema)


@pytest.mark.parametrize(
    "declared",
    [
        *("int", "long", "string", "bytes", ["null"]),
        {"type": "enum", "name": "E", "symbols": ["A"]},
    ],
)
def test_an_integer_has_as_few_bytes_as_it_can(declared):
    """Whether it is a number, a symbol, a branch, a count or a length: one value has one form."""
    for padded in (b"\x80\x00", b"\x80\x80\x80\x80\x80\x00"):
        fault = error_of(check_payload, padded, parse_schema(json.dumps(declared)))
        sentence = f"expected an integer in as few bytes as it has, got a needless one before byte {len(padded)}"
        assert fault == f"message: $: {sentence}"


@pytest.mark.parametrize("declared", ["array", "map"])
def test_a_collection_has_at_most_ten_million_items(declared, monkeypatch):
    """In all of its blocks together, as Avro Java counts them."""
    monkeypatch.setattr(binary, "MAX_COUNT", 3)
    item = {"array": b"\x02", "map": b"\x02%c\x02"}[declared]
    schema = parse_schema(json.dumps({"type": declared, {"array": "items", "map": "values"}[declared]: "int"}))
    blocks = [b"\x04" + b"".join(item.replace(b"%c", b"abcd"[i : i + 1]) for i in (at, at + 1)) for at in (0, 2)]
    check_payload(blocks[0] + b"\x00", schema)
    assert "expected at most 3 items, got 4" in error_of(check_payload, blocks[0] + blocks[1] + b"\x00", schema)


def test_a_map_has_each_name_once():
    """Readers keep one of two values, and not all the same."""
    raw = b"\x02\x02k\x02\x02\x02k\x04\x00"
    fault = error_of(check_payload, raw, parse_schema('{"type":"map","values":"int"}'))
    assert fault == "message: $.k: expected each name once, got 'k' twice"


def _long(value: int) -> bytes:
    out = bytearray()
    write_long(out, value)
    return bytes(out)


@pytest.mark.slow
@settings(max_examples=300)
@given(st.integers(0, len(written()) - 1), st.integers(0, 255))
def test_a_payload_with_another_byte_is_a_datum_or_refused(at, byte):
    """What passes is read to its end by fastavro."""
    raw = bytearray(written())
    raw[at] = byte
    if outcome(cdcavro.PayloadError, check_payload, bytes(raw), SCHEMA) is None:
        stream = io.BytesIO(raw)
        fastavro.schemaless_reader(stream, EVERYTHING)
        assert stream.tell() == len(raw)


# Records that contain themselves, and items without bytes

TREE = json.dumps(record(field("kids", array("T")), name="T"))
NEXT = json.dumps(record(field("v"), field("next", ["null", "L"]), name="L"))
TURNS = json.dumps(record(field("b", ["null", record(field("m", mapping("A")), name="B")]), name="A"))


@pytest.mark.parametrize(
    ("schema", "level", "end", "levels"),
    [
        (NEXT, b"\x02\x02", b"\x02\0", 128),
        (TREE, b"\x02", b"\0", 64),
        (TURNS, b"\x02\x02\x02k", b"\0", 43),
        (json.dumps(array(json.loads(NEXT))), b"\x02\x02", b"\x02\0", 127),
    ],
)
def test_data_of_a_record_within_itself_have_a_bound(schema, level, end, levels):
    """Of 128 records, arrays and maps in each other; what is far beyond does not reach Python's own limit."""
    declared = parse_schema(schema)
    is_list, tail = schema.startswith('{"type": "array"'), {TREE: b"\0", TURNS: b"\0"}.get(schema, b"")

    def payload(count):
        inside = level * (count - 1) + end + tail * (count - 1)
        return b"\x02" + inside + b"\0" if is_list else inside

    check_payload(payload(levels), declared)
    for count in (levels + 1, 100_000):
        said = error_of(check_payload, payload(count), declared)
        assert "expected at most 128 records, arrays and maps in each other, got more at byte" in said


def test_a_record_that_has_to_contain_itself_has_no_data():
    """The schema is one, and no payload fits."""
    declared = parse_schema(json.dumps(record(field("a", "R"), field("b"), name="R")))
    assert "in each other" in error_of(check_payload, b"\0" * 1000, declared)
    assert "in each other" in error_of(check_payload, b"", declared)


@pytest.mark.parametrize(
    "items", ["null", {"type": "fixed", "name": "F", "size": 0}, record(name="S"), record(field("a", "null"), name="S")]
)
def test_items_without_bytes_are_bounded_by_a_count(items):
    """Whatever stands behind them, and of all arrays of a payload together."""
    one = parse_schema(json.dumps(record(field("a", array(items)), field("b"))))
    for count in (1, 7, 100_000):
        out = bytearray()
        write_long(out, count)
        check_payload(bytes(out) + b"\0\x02", one)
        out = bytearray()
        write_long(out, -count)
        check_payload(bytes(out) + b"\0\0\x02", one)
    several = parse_schema(json.dumps(array(array(items))))
    out = bytearray()
    write_long(out, 60_000)
    check_payload(b"\x02" + bytes(out) + b"\0\0", several)
    said = error_of(check_payload, b"\x04" + (bytes(out) + b"\0") * 2 + b"\0", several)
    assert said.endswith("expected at most 100000 items without bytes, got more by byte 8")
    for count in (2**62, -(2**63)):
        out = bytearray()
        write_long(out, count)
        assert "items" in error_of(check_payload, bytes(out) + b"\0\0", one)


def test_items_of_records_within_themselves_have_bytes_or_none():
    """An array of the record itself takes a byte; a record of which there are no data has none."""
    declared = parse_schema(TREE).root
    assert isinstance(declared, Record)
    assert has_bytes(declared, {})
    empty = parse_schema(json.dumps(record(field("a", "R"), field("n", "null"), name="R"))).root
    assert not has_bytes(empty, {})


def test_records_without_bytes_that_stand_for_endlessly_many_are_no_work():
    """Each of 60 refers twice to the next; also beside a record within itself, which has its bound as ever."""
    huge = doubled(record(name="X"), 60)
    check_payload(b"", parse_schema(json.dumps(huge)))
    check_payload(b"\xc0\x9a\x0c\0", parse_schema(json.dumps(array(huge))))
    beside = parse_schema(json.dumps(record(field("h", huge), field("next", ["null", "L"]), name="L")))
    check_payload(b"\2" * 126 + b"\0", beside)
    assert "in each other" in error_of(check_payload, b"\2" * 127 + b"\0", beside)
    endless = parse_schema(json.dumps(doubled(record(field("a", "X"), name="X"), 60)))
    assert "in each other" in error_of(check_payload, b"", endless)


def test_records_without_bytes_still_count_as_items():
    """Of an array of them there are as many as of nulls."""
    items = parse_schema(json.dumps(array(doubled(record(name="X"), 60))))
    assert "at most 100000 items without bytes" in error_of(check_payload, b"\xc2\x9a\x0c\0", items)


@pytest.mark.parametrize(
    ("declared", "raw", "sentence"),
    [
        ("long", b"\x80" * 10, "expected an integer of at most 64 bits, got more at byte 10"),
        ("int", b"\x80" * 5, "expected 1 byte, got 0 at byte 5, where the payload ends"),
        ({"type": "array", "items": "int"}, b"\xff" * 9 + b"\x01\x02", "expected a block of 1 bytes, got 0 at byte 11"),
        ("bytes", b"\x01", "expected -1 bytes, got 0 at byte 1"),
        ("string", b"\x01", "expected -1 bytes, got 0 at byte 1"),
        (["null", "int"], b"\x01", "expected a branch from 0 to 1, got -1 at byte 1"),
        (["null", "int"], b"\x0a", "expected a branch from 0 to 1, got 5 at byte 1"),
        (
            {"type": "enum", "name": "E", "symbols": ["A", "B"]},
            b"\x01",
            "expected a symbol from 0 to 1, got -1 at byte 1",
        ),
        (
            {"type": "enum", "name": "E", "symbols": ["A", "B"]},
            b"\x0a",
            "expected a symbol from 0 to 1, got 5 at byte 1",
        ),
    ],
)
def test_what_every_reader_of_avro_must_refuse_is_refused(declared, raw, sentence):
    """Integers without an end, a count that has no opposite, negative lengths, and indices out of range.

    Avro's own tests list these nine kinds for all its implementations (AVRO-4304).
    """
    schema = parse_schema(json.dumps(declared))
    for longer in (raw, raw + b"\x00" * 20):
        found = outcome(cdcavro.PayloadError, check_payload, longer, schema)
        assert isinstance(found, cdcavro.PayloadError)
    assert f": {sentence}" in error_of(check_payload, raw, schema)
    record = {"type": "record", "name": "R", "fields": [{"name": "a", "type": declared}]}
    reader = {**record, "fields": [*record["fields"], {"name": "b", "type": "int", "default": 7}]}
    translate = translator(parse_schema(json.dumps(record)), parse_schema(json.dumps(reader)))
    assert error_of(translate, raw).replace("$.a[0]", "$.a").startswith(f"message: $.a: {sentence}")
