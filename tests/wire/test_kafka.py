"""Kafka records around messages of every format: the payload is the message's, and all comes back."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

import cdcavro
from cdcavro.avro.schema import parse_schema
from cdcavro.errors import PayloadError, StructureError
from cdcavro.exact.jsontext import parse
from cdcavro.wire.format import Format, validate
from cdcavro.wire.formats import get_format
from cdcavro.wire.kafka import headers_in, headers_of, is_kafka_record, members_of_headers, put_before, split_headers
from cdcavro.wire.marked_members import operation_of
from support.messages import bare_files, golden_files
from support.roundtrip import avro, error_of, exact

OTHERS = [name for name in cdcavro.FORMATS if name != "debezium"]
RECORD = (
    '{"topic":"shop","partition":0,"offset":41,"timestamp":1.70e12,"timestampType":0,"key":%s,"value":%s,'
    '"headers":[{"key":"a","value":"Yg=="}]}'
)
INSERT = '{"type":"INSERT","data":[{"id":1.20}],"zzz":[-0]}'
GOLDENS = [pytest.param(f, g.decode(), id=f"{f}/{name}") for f in OTHERS for name, g in bare_files(f).items()]


@pytest.mark.parametrize(("format", "golden"), GOLDENS)
def test_a_message_in_a_kafka_record_comes_back_in_it(format, golden):
    """Digit for digit, whatever stands beside it; the payload has the fields of the message."""
    for key in ("null", '{"id":1.0}', '"k"', "[1]"):
        _assert_comes_back(format, golden, key)


def _assert_comes_back(format: str, golden: str, key: str) -> None:
    line = RECORD % (key, golden)
    payload = cdcavro.encode(line, format)
    assert exact(cdcavro.decode(payload, format)) == exact(line)
    validate(line, get_format(format))
    alone, within = avro(format, golden), avro(format, line)
    beside = within["extras"].pop("kafka")
    assert within == alone
    assert exact('{"value":0,' + beside[1:]) == exact(RECORD % (key, 0))
    assert operation_of(get_format(format).parse(line), get_format(format)) == operation_of(
        get_format(format).parse(golden), get_format(format)
    )


def test_a_kafka_record_of_debezium_has_fields_of_its_own():
    """Its schema describes the record."""
    found = avro("debezium", '{"topic":"t","partition":0,"key":{"id":1},"value":{"op":"c","after":{"id":1}}}')
    assert (found["topic"], found["value"]["op"], found["extras"].get("kafka")) == ("t", "c", None)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=8,
)


@given(
    st.dictionaries(st.sampled_from(["topic", "partition", "offset", "timestamp", "key", "headers"]), json_values),
    st.sampled_from([name for name in OTHERS if name != "datahub_tuple"]),
)
def test_whatever_a_record_holds_beside_its_value_comes_back(beside, format):
    """Values of any kind, and on the fast path what the exact one gives."""
    message = json.loads(next(iter(golden_files(format).values())))
    line = json.dumps({**beside, "value": message})
    assert exact(cdcavro.decode(cdcavro.encode(line, format), format)) == exact(line)
    assert get_format(format)._encode_exact(line.encode()) == cdcavro.encode(line, format)


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        ('{"value":{"type":"INSERT","data":{}}}', "oms_canal: $.value.data: expected array, got object"),
        ('{"topic":"t","value":{}}', "oms_canal: $.value.type: expected a required member, got none"),
        ('{"topic":"t","value":null}', "oms_canal: $.type: expected a required member, got none"),
        ('{"value":{"value":{"type":"INSERT"}}}', "oms_canal: $.value.type: expected a required member, got none"),
    ],
)
def test_the_place_of_a_fault_is_that_in_the_record(line, sentence):
    """A record within a record is none."""
    assert error_of(cdcavro.encode, line, "oms_canal") == sentence


def test_a_member_that_no_kafka_record_has_makes_it_none():
    """It is a message with a member called value."""
    assert not is_kafka_record({"value": {}, "type": "INSERT"})
    assert "kafka" not in avro("oms_canal", '{"value":{},"type":"INSERT"}')["extras"]


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", "$: expected JSON in extras, got an empty line"),
        ("[]", "$: expected the members of a Kafka record in extras, got '[]'"),
        ('{"value":1}', "$: expected the members of a Kafka record in extras, got '{\"value\":1}'"),
        ('{"op":1}', "$: expected the members of a Kafka record in extras, got '{\"op\":1}'"),
        ('{"key":{"a":1,"a":2}}', "$.key: expected each member once in extras, got 'a' twice"),
    ],
)
def test_a_payload_holds_the_members_of_a_kafka_record_or_is_refused(text, sentence):
    """Whoever wrote it."""
    payload = cdcavro.encode(RECORD % ("null", INSERT), "oms_canal")
    beside = avro("oms_canal", RECORD % ("null", INSERT))["extras"]["kafka"].encode()
    assert beside in payload
    written = payload.replace(_text(beside), _text(text.encode()))
    assert error_of(cdcavro.decode, written, "oms_canal") == f"oms_canal: {sentence}"


def _text(raw: bytes) -> bytes:
    """Return a string as Avro has it."""
    length, prefix = len(raw) << 1, b""
    while length > 127:
        prefix, length = prefix + bytes([length & 127 | 128]), length >> 7
    return prefix + bytes([length]) + raw


def test_debezium_refuses_a_kafka_record_in_extras():
    """Nothing that it encodes has one there."""
    payload = cdcavro.encode('{"op":"c","/kafk":1}', "debezium")
    with pytest.raises(PayloadError, match="expected a JSON pointer in extras, got 'kafka'"):
        cdcavro.decode(payload.replace(b"\x0c/~1kafk", b"\x0akafka").replace(b"\x0e/~1kafk", b"\x0akafka"), "debezium")


def test_too_deep_a_record_is_refused_whichever_path_reads_it():
    """The levels of the record count too."""
    inner = '{"type":"INSERT","x":' + "[" * 126 + "]" * 126 + "}"
    assert exact(cdcavro.decode(cdcavro.encode(inner, "oms_canal"), "oms_canal")) == exact(inner)
    sentence = error_of(cdcavro.encode, '{"topic":"t","value":{"value":' + inner + "}}", "oms_canal")
    assert "expected at most 128 levels" in sentence


def test_a_newer_schema_renames_the_members_of_the_message():
    """And leaves those of the record alone."""
    old = get_format("oms_shareplex")
    text = old.schema.json.replace('"name": "key"', '"name": "image", "aliases": ["key"]')
    if text == old.schema.json:
        text = old.schema.json.replace('"name":"key"', '"name":"image","aliases":["key"]')
    newer = Format("oms_shareplex", parse_schema(text))
    payload = old.encode('{"key":{"id":7},"value":{"meta":{"op":"upd"},"data":{"a":1},"key":{"a":0}}}')
    found = json.loads(newer.decode(payload, old.schema))
    assert found == {"key": {"id": 7}, "value": {"meta": {"op": "upd"}, "data": {"a": 1}, "image": {"a": 0}}}


NAMES = st.text(max_size=5) | st.sampled_from(["__op", "__lsn"])


@given(st.none() | st.binary(), st.lists(st.tuples(NAMES, st.none() | st.binary(max_size=20))))
def test_headers_before_a_value_are_those_of_its_record(value, headers):
    """Whatever they are, and whether there is a value: both come back, and the member that they become says the same."""
    raw = put_before(value, headers)
    head, back = split_headers(raw)
    assert (back, headers_in(head)) == (value, headers)
    assert headers_of({"headers": parse(head)}) == headers
    assert split_headers(put_before(raw, headers)) == (head, raw)


@pytest.mark.parametrize(
    "raw", [b"", b"{}", b"\x05headers", b"\x05headers[", b'\x05headers[],"value":1\n{}', b"\x05header[]"]
)
def test_what_only_looks_as_if_it_had_headers_is_a_value(raw):
    """Anybody may write it: what stands before a value is one JSON text, or becomes no member of a record."""
    assert split_headers(raw) == (None, raw)


@pytest.mark.parametrize(
    ("value", "member"),
    [
        (b"u", "u"),
        (b"", ""),
        (b'"u"', "u"),
        (b'"u', '"u'),
        (b"null", None),
        (b'["3","7"]', '["3","7"]'),
        (b"12", "12"),
        (b"{a}", "{a}"),
        (b'{"a":1}', '{"a":1}'),
        (b'{"schema":{"type":"string"},"payload":"u"}', "u"),
        (b'{"schema":null,"payload":null}', None),
        (b'{"schema":{"type":"int64"},"payload":7}', "7"),
        ("é".encode(), "é"),
    ],
)
def test_a_header_is_a_text_or_json(value, member):
    """As Kafka Connect's simple converter writes it, or its JSON converter with or without schemas."""
    assert members_of_headers([("a", value), ("b", value)], {"a": False}) == {"a": member}


@pytest.mark.parametrize(
    ("value", "member"),
    [
        *[(b"7", 7), (b"-7", -7), (b"0", 0), (b"null", None), (b"9223372036854775807", 2**63 - 1), (b" 7", 7)],
        *[(bad, "") for bad in (b"", b"x", b"07", b"1.0", b"1e3", b"true", b'"7"', b"9" * 20)],
        (b'{"schema":{"type":"int64"},"payload":7}', 7),
    ],
)
def test_a_header_is_a_whole_number(value, member):
    """Or it is refused."""
    if member == "":
        with pytest.raises(StructureError, match=r"headers\.a: expected a whole number in the header"):
            members_of_headers([("a", value)], {"a": True})
        return
    assert members_of_headers([("a", value)], {"a": True}) == {"a": member}


def test_many_headers_take_no_more_than_their_bytes():
    """Those of other names are passed by, those of one name are the same."""
    headers = [("x", b"1"), ("a", b"1")] * 50_000
    assert members_of_headers(headers, {"a": True}) == {"a": 1}
