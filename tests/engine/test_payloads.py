"""Payloads checked by the engine, and the exact way where it leaves them."""

from __future__ import annotations

import json

import pytest

from cdcavro.avro.binary import check_payload
from cdcavro.avro.schema import parse_schema
from cdcavro.engine.payloads import check, ends
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


def test_payloads_one_behind_another_are_told_apart():
    """Where each ends; and what is none of them, or is not so many, says which."""
    some = [b"\x02\x0e\x00\x02\x02k\x02x\x00", b"\x00\x00", b"\x02\x8e\x00\x00\x00"]
    assert list(ends(some[0] + some[1] + some[0], 3, SCHEMA)) == [9, 11, 20]
    assert list(ends(b"", 0, SCHEMA)) == []
    for raw, count, sentence in (
        (some[1] + some[2], 2, "message: $[1].a[0]: expected an integer in as few bytes as it has, got a needless one"),
        (some[1] * 2, 1, "message: $: expected the end of the payload at byte 2, got 2 more"),
        (some[1], 2, "message: $[1].a[0]: expected 1 byte, got 0 at byte 2, where the payload ends"),
    ):
        with pytest.raises(PayloadError) as caught:
            ends(raw, count, SCHEMA)
        assert str(caught.value).startswith(sentence)
