"""Payloads of one schema as payloads of another."""

from __future__ import annotations

import json
import struct
import tracemalloc

import pytest
from hypothesis import given

from cdcavro.avro import translation
from cdcavro.avro.binary import check_payload
from cdcavro.avro.schema import parse_schema
from cdcavro.avro.translation import translator
from cdcavro.errors import PayloadError, SchemaError
from support.roundtrip import outcome
from support.schema_data import expected, is_same, write
from support.schema_pairs import UnreadableError, fastavro_reads, pairs
from support.wire import array, doubled, enum, field, mapping, record

DATE = {"type": "int", "logicalType": "date"}
MICROS = {"type": "long", "logicalType": "timestamp-micros"}
DECIMAL = {"type": "bytes", "logicalType": "decimal", "precision": 5, "scale": 2}
FIXED = {"type": "fixed", "name": "F", "size": 2}
OTHER = {**enum("O", "C"), "default": "O"}


def translated(was, now, payload, **more) -> bytes:
    """Translate a payload between the schemas of two JSON values."""
    return translator(parse_schema(json.dumps(was)), parse_schema(json.dumps(now)), **more)(payload)


@pytest.mark.parametrize(
    ("was", "now", "payload"),
    [
        ("int", "long", b"\x0e"),
        ("string", "bytes", b"\x04ab"),
        (enum("A", "B"), enum("A", "B", "C"), b"\x02"),
        (array("int"), array("long"), b"\x04\x02\x0e\x00"),
        (mapping(["null", "string"]), mapping(["null", "string"]), b"\x02\x02k\x00\x00"),
        (["null", "int"], ["null", "long", "string"], b"\x02\x0e"),
        (record(field("a"), name="Old"), record(field("b", "long", aliases=["a"]), aliases=("Old",)), b"\x0e"),
    ],
)
def test_what_both_schemas_encode_alike_is_the_payload_itself(was, now, payload):
    """Names are not in a payload; it is only checked."""
    assert translated(was, now, payload) is payload


@pytest.mark.parametrize(
    ("was", "now", "payload", "wanted"),
    [
        ("int", "double", b"\x0e", struct.pack("<d", 7.0)),
        ("long", "float", b"\x0e", struct.pack("<f", 7.0)),
        ("float", "double", struct.pack("<f", 0.5), struct.pack("<d", 0.5)),
        ("int", ["null", "long"], b"\x0e", b"\x02\x0e"),
        (["null", "int"], "long", b"\x02\x0e", b"\x0e"),
        (["null", "int"], ["int", "null"], b"\x02\x0e", b"\x00\x0e"),
        (["null", FIXED], [{**FIXED, "name": "G", "aliases": ["F"]}, "null"], b"\x02ab", b"\x00ab"),
        (enum("A", "B"), enum("B", "A"), b"\x00", b"\x02"),
        (enum("A", "B", "C"), OTHER, b"\x02", b"\x00"),
        (["null", enum("A", "B", "C")], [OTHER, "null"], b"\x02\x02", b"\x00\x00"),
        (array(enum("A", "B")), array(OTHER), b"\x04\x00\x02\x00", b"\x04\x00\x00\x00"),
        (array("int"), array("double"), b"\x02\x0e\x00", b"\x02" + struct.pack("<d", 7.0) + b"\x00"),
        (array("int"), array("double"), b"\x01\x02\x0e\x00", b"\x02" + struct.pack("<d", 7.0) + b"\x00"),
        (mapping("int"), mapping(["int"]), b"\x02\x02k\x0e\x00", b"\x02\x02k\x00\x0e\x00"),
        (record(field("a"), field("b", "string")), record(field("b", "string"), field("a")), b"\x0e\x02x", b"\x02x\x0e"),
        (record(field("a"), field("b", "string"), field("c")), record(field("a"), field("c")), b"\x02\x02x\x04", b"\x02\x04"),
        (
            record(field("a"), field("b", "string")),
            record(field("n", ["null", "int"], default=None), field("a"), field("b", "string"), field("z", default=7)),
            b"\x0e\x02x",
            b"\x00\x0e\x02x\x0e",
        ),
    ],
)  # fmt: skip
def test_a_payload_becomes_what_the_reader_would_have_written(was, now, payload, wanted):
    """Promoted, put into another branch, another order, with the defaults of what is new."""
    assert translated(was, now, payload) == wanted


@pytest.mark.parametrize(
    ("value", "single"),
    [
        (2**60 + 2**36 + 1, 2.0**60 + 2.0**37),
        (-(2**60) - 2**36 - 1, -(2.0**60) - 2.0**37),
        (2**60 + 2**36, 2.0**60),
        (2**60 + 3 * 2**36, 2.0**60 + 2.0**38),
        (2**24 + 1, 2.0**24),
        (-(2**63), -(2.0**63)),
        (2**63 - 1, 2.0**63),
        (0, 0.0),
    ],
)
def test_a_long_is_the_nearest_float_as_in_java(value, single):
    """Rounded once, to even where two are as near."""
    payload = write(parse_schema('"long"').root, value)
    assert struct.unpack("<f", translated("long", "float", payload))[0] == single


@pytest.mark.parametrize(
    ("declared", "default", "encoded"),
    [
        ("null", None, b""),
        ("boolean", True, b"\x01"),
        ("int", 7, b"\x0e"),
        (DATE, 1, b"\x02"),
        ("float", 0.5, struct.pack("<f", 0.5)),
        ("double", 1, struct.pack("<d", 1.0)),
        ("string", "é", b"\x04\xc3\xa9"),
        ("bytes", "\xff", b"\x02\xff"),
        (DECIMAL, "\x7b", b"\x02\x7b"),
        (FIXED, "\x00\xff", b"\x00\xff"),
        (enum("A", "B"), "B", b"\x02"),
        (array("int"), [], b"\x00"),
        (array("int"), [7], b"\x02\x0e\x00"),
        (mapping("int"), {"k": 7}, b"\x02\x02k\x0e\x00"),
        (["int", "null"], 7, b"\x00\x0e"),
        (record(field("x"), field("y", default=7), name="S"), {"x": 1}, b"\x02\x0e"),
    ],
)
def test_a_default_is_encoded(declared, default, encoded):
    """Of each type, in the place of its field."""
    now = record(field("new", declared, default=default), field("a"))
    assert translated(record(field("a")), now, b"\x02") == encoded + b"\x02"


def test_a_default_that_is_no_value_of_its_type_is_refused():
    """A day after the last, a float that is none."""
    for declared, default in ((DATE, 2**31 - 1), ("float", 1e300)):
        with pytest.raises(SchemaError, match="new is new and its default is no value of its type"):
            translated(record(), record(field("new", declared, default=default)), b"")


@pytest.mark.parametrize(
    ("was", "now", "payload", "reason"),
    [
        (enum("A", "B"), enum("A"), b"\x02", "$.a: expected a symbol of E, got another before byte 1"),
        (["null", "int"], "int", b"\x00", "$.a: expected a branch that the reader's schema has, got 'int cannot read null'"),
        ("long", MICROS, b"\x02", "$.a: expected timestamp-micros, got a plain long: nothing says that it is one"),
        ("bytes", "string", b"\x02a", "$.a: expected a string, got bytes: nothing says that they are text"),
        (DECIMAL, "string", b"\x02\x01", "$.a: expected a string, got a decimal(5,2), whose bytes are no text"),
        (array("int"), array("double"), b"\x04\x02\x82", "$.a[1]: expected 1 byte, got 0 at byte 3, where the payload ends"),
        (mapping("int"), mapping("double"), b"\x04\x02k\x02\x02k\x02\x00", "$.a.k: expected each name once, got 'k' twice"),
        ("int", "double", b"\x02\x00", "$: expected the end of the payload at byte 1, got 1 more"),
        ("int", "long", b"\x82\x80\x80\x80\x80\x00", "$.a: expected an integer in as few bytes as it has, got a needless one before byte 6"),
    ],
)  # fmt: skip
def test_what_the_reader_cannot_have_is_an_error_with_its_place(was, now, payload, reason):
    """A symbol, a branch, a guess, and whatever is no payload of the writer's."""
    with pytest.raises(PayloadError) as error:
        translated(record(field("a", was)), record(field("a", now)), payload)
    assert str(error.value) == f"message: {reason}"


def test_what_the_caller_reinterprets_is_checked():
    """It is text, or an instant, if it can be one."""
    assert translated("bytes", "string", b"\x02a", reinterpret=True) == b"\x02a"
    assert translated("long", MICROS, b"\x02", reinterpret=True) == b"\x02"
    for was, now, payload in (("bytes", "string", b"\x02\xff"), ("int", DATE, b"\xfe\xff\xff\xff\x0f")):
        with pytest.raises(PayloadError):
            translated(was, now, payload, reinterpret=True)


def test_a_few_bytes_do_not_become_gigabytes(monkeypatch):
    """A default of a kilobyte in each of thousands of items."""
    monkeypatch.setattr(translation, "MAX_TRANSLATED", 100_000)
    item = record(field("a"), name="S")
    longer = record(field("a"), field("new", "string", default="x" * 1000), name="S")
    payload = b"\xd0\x0f" + b"\x00" * 1000 + b"\x00"
    with pytest.raises(PayloadError, match=r"\$\[99\]: expected at most 100000 bytes under the reader's schema"):
        translated(array(item), array(longer), payload)


def test_data_that_have_no_end_by_their_schema_are_translated_to_a_bound():
    """A list of records in each other, as long as readers take it."""
    older = record(field("v"), field("next", ["null", "N"]), name="N")
    newer = record(field("z", default=7), field("next", ["N", "null"]), field("v", "double"), name="N")
    payload = b"\x02\x02" * 127 + b"\x02\x00"
    assert translated(older, older, payload) == payload
    assert translated(older, newer, payload) == b"\x0e\x00" * 127 + b"\x0e\x02" + struct.pack("<d", 1.0) * 128
    for now in (older, newer):
        with pytest.raises(PayloadError, match="expected at most 128 records, arrays and maps in each other"):
            translated(older, now, b"\x02\x02" + payload)


@given(pairs())
def test_random_payloads_are_translated_as_resolution_says(pair):
    """What fastavro reads of the translation, with the reader's schema alone, is what the steps say."""
    if pair.step is None:
        return
    writer, reader = parse_schema(pair.writer), parse_schema(pair.reader)
    translate = translator(writer, reader)
    for datum, payload in pair.data:
        if (fault := outcome(PayloadError, check_payload, payload, writer)) is not None:
            assert str(outcome(PayloadError, translate, payload)) == str(fault)
            continue
        made = translate(payload)
        check_payload(made, reader)
        try:
            assert is_same(expected(pair.step, datum), fastavro_reads(pair.reader, pair.reader, made))
        except UnreadableError:
            assert "decimal" in pair.reader


NODE = record(field("v"), field("next", ["null", "N"], default=None), field("kids", array("N"), default=[]), name="N")
WIDE = record(
    field("next", ["N", "null"], default=None), field("v", "double"), field("kids", array("N"), default=[]), name="N"
)


@pytest.mark.parametrize("now", [NODE, WIDE, record(field("v"), name="N"), {**NODE, "name": "M", "aliases": ["N"]}])
def test_records_within_themselves_are_translated(now):
    """To what fastavro reads, as deep as data may be; the same bytes if nothing differs."""
    if now.get("name") == "M":
        now = json.loads(json.dumps(now).replace('"N"]', '"M"]').replace('"items": "N"', '"items": "M"'))
        now["aliases"] = ["N"]
    payload = b"\x02" * 127 * 2 + b"\x02\0\0" + b"\0" * 127
    check_payload(payload, parse_schema(json.dumps(NODE)))
    made = translated(NODE, now, payload)
    check_payload(made, parse_schema(json.dumps(now)))
    plain = {**NODE, "aliases": []}
    inner = b"\x02\0\x02\x04\0\0\0"
    found = fastavro_reads(json.dumps(plain), json.dumps(now), inner)
    assert fastavro_reads(json.dumps(now), json.dumps(now), translated(NODE, now, inner)) == found
    if now is NODE:
        assert made == payload
    with pytest.raises(PayloadError, match="in each other"):
        translated(NODE, now, b"\x02" * 1000)


def test_items_without_bytes_are_translated():
    """Up to their number, and also where the reader's have bytes."""
    assert translated(array("null"), array(["null", "int"]), b"\x04\0") == b"\x04\0\0\0"
    assert translated(array("null"), array("null"), b"\x04\0") == b"\x04\0"
    with pytest.raises(PayloadError, match="at most 100000 items without bytes"):
        translated(array("null"), array(["null", "int"]), b"\xfe\xff\xff\xff\x0f\0")


def test_records_without_bytes_that_stand_for_endlessly_many_are_no_work():
    """Each of 60 refers twice to the next: the same, as a field that the reader lacks, and with fields of the reader's."""
    huge = doubled(record(name="X"), 60)
    assert translated(huge, huge, b"") == b""
    was, now = record(field("h", huge), field("v")), record(field("v", "double"))
    assert translated(was, now, b"\2") == struct.pack("<d", 1.0)
    assert translated(huge, doubled(record(field("n", "null", default=None), name="X"), 60), b"") == b""
    pair = doubled(record(field("v", default=7), name="X"), 2)
    assert translated(array(doubled(record(name="X"), 2)), array(pair), b"\4\0") == b"\4" + b"\x0e" * 8 + b"\0"


@pytest.mark.slow
def test_data_that_become_too_long_are_refused_before_they_are():
    """Defaults of 16 kilobytes in each of 2^40 records without bytes, and in each of those with some."""
    long = field("d", "string", default="x" * 16_000)
    with pytest.raises(PayloadError, match="expected at most 67108864 bytes under the reader's schema"):
        translated(doubled(record(name="X"), 40), doubled(record(long, name="X"), 40), b"")
    tracemalloc.start()
    try:
        with pytest.raises(PayloadError, match="expected at most 67108864 bytes under the reader's schema"):
            translated(
                doubled(record(field("v"), name="X"), 13),
                doubled(record(long, field("v"), name="X"), 13),
                b"\2" * 2**13,
            )
        assert tracemalloc.get_traced_memory()[1] < 4 << 26
    finally:
        tracemalloc.stop()
