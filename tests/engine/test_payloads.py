"""Payloads checked by the engine, and the exact way where it leaves them."""

from __future__ import annotations

import json

import pytest

from cdcavro.avro.schema import parse_schema
from cdcavro.avro.skip import check_payload
from cdcavro.engine.payloads import check
from cdcavro.errors import PayloadError
from support.roundtrip import outcome
from support.wire import array, field, mapping, record

SCHEMA = parse_schema(json.dumps(record(field("a", array("int")), field("m", mapping("string")))))


@pytest.mark.parametrize(
    "payload",
    [
        b"\x02\x0e\x00\x02\x02k\x02x\x00",
        b"\x02\x8e\x00\x00\x00",
        b"\x02\x0e\x00\x00\x00",
        b"\x02\x0e",
        b"\x02\x0e\x00\x02\x02k\x02\xff\x00",
        b"\x00\x04\x02k\x00\x02k\x00\x00",
        b"",
    ],
)
def test_a_check_is_that_of_the_exact_way(payload):
    """Whether the payload is plain, odd, or faulty, which is said with the place."""
    expected = outcome(PayloadError, check_payload, payload, SCHEMA)
    found = outcome(PayloadError, check, payload, SCHEMA)
    assert str(found) == str(expected)
