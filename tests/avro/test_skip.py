"""Payloads of any schema: exactly one datum, or an error with the place."""

from __future__ import annotations

import io
import json

import fastavro
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import cdcavro
from cdcavro.avro.schema import parse_schema
from cdcavro.avro.skip import check_payload
from support.messages import goldens, shop_canal
from support.roundtrip import error_of, outcome

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
            "message: $[0]: expected 2147483647 items, got 1 at byte 5, where the payload ends",
        ),
        (json.dumps(EVERYTHING), b"\2", "message: $.b: expected a boolean, 0 or 1, got 2 at byte 0"),
    ],
)
def test_a_fault_is_told_with_its_place(schema, raw, sentence):
    """As everywhere."""
    assert error_of(check_payload, raw, parse_schema(schema)) == sentence


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
