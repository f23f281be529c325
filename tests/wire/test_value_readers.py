"""Where a payload is wrong is told, however deep: in items of arrays and maps, behind them, and in what stands beside."""

from __future__ import annotations

import json

import pytest

from cdcavro.avro.schema import parse_schema
from cdcavro.wire.message_reader import message_reader
from cdcavro.wire.value_readers import PayloadDecoder
from support.roundtrip import error_of
from support.wire import EXTRAS, REST, array, mapping, mine, record, required

_INNER = record(required("x", "string"), required("y", array("long")), name="Item")
NESTED = mine(
    required("a", "long"),
    required("rows", array(_INNER)),
    required("map", mapping(record(required("z", mapping("long")), required("w", "long"), name="Entry"))),
    required("s", record(required("t", "string"), required("lists", array(array("long"))), name="Sub")),
    required("n", "long"),
)
MESSAGE = {
    "a": 1,
    "rows": [{"x": "p", "y": [1, 2]}, {"x": "q", "y": []}],
    "map": {"k/": {"z": {"i": 3}, "w": 4}, "l": {"z": {}, "w": 5}},
    "s": {"t": "u", "lists": [[6], []]},
    "n": 7,
    "o": 8,
}
# What the payload is made of, byte after byte: where each stands.
PLACES = [
    *["$.a", "$.rows"],
    *["$.rows[0].x", "$.rows[0].x", "$.rows[0].y", "$.rows[0].y[0]", "$.rows[0].y[1]", "$.rows[0].y"],
    *["$.rows[1].x", "$.rows[1].x", "$.rows[1].y", "$.rows"],
    *["$.map"] * 4,
    *['$.map["k/"].z', '$.map["k/"].z', '$.map["k/"].z', '$.map["k/"].z.i', '$.map["k/"].z', '$.map["k/"].w'],
    *["$.map", "$.map", "$.map.l.z", "$.map.l.w", "$.map"],
    *["$.s.t", "$.s.t", "$.s.lists"],
    *["$.s.lists[0]", "$.s.lists[0][0]", "$.s.lists[0]", "$.s.lists[1]", "$.s.lists"],
    *["$.n", "$"],
    *["$"] * 3,
    *['$["/o"]', '$["/o"]', "$"],
]


# A count is held against the bytes that are left, before any item is read.
ANNOUNCED = {2: "$.rows", 3: "$.rows", 5: "$.rows[0].y", 6: "$.rows[0].y", 30: "$.s.lists", 31: "$.s.lists"}
PAYLOAD = NESTED.encode(json.dumps(MESSAGE))
BROKEN = b"\xff" * 40


def test_the_message_is_what_the_places_are_said_of():
    """One place for each byte."""
    assert json.loads(NESTED.decode(PAYLOAD)) == MESSAGE
    assert len(PAYLOAD) == len(PLACES)


@pytest.mark.parametrize("way", [NESTED.decode, NESTED.read], ids=["text", "record"])
def test_the_place_is_told_wherever_a_payload_is_cut(way):
    """That of what is missing."""
    for length, place in enumerate(PLACES):
        sentence = error_of(way, PAYLOAD[:length])
        assert sentence.partition(": expected ")[0] == f"mine: {ANNOUNCED.get(length, place)}", length


@pytest.mark.parametrize("way", [NESTED.decode, NESTED.read], ids=["text", "record"])
def test_the_place_is_told_wherever_a_payload_is_damaged(way):
    """No number and no text holds so many bytes of all ones."""
    for length, place in enumerate(PLACES):
        sentence = error_of(way, PAYLOAD[:length] + BROKEN)
        assert sentence.partition(": expected ")[0] == f"mine: {place}", length


def test_a_member_that_hides_a_field_is_told_where_its_object_stands():
    """Not where the field read last stands."""
    inside = mine(required("s", record(required("x", "string"), REST, name="Sub")))
    payload = b"\x02a" + b"\x02\x02x\x02\x02b\x00" + b"\x00"
    for way in (inside.decode, inside.read):
        assert error_of(way, payload) == "mine: $.s: expected a member that has no field, got 'x'"


def test_a_place_in_extras_stands_for_itself_wherever_extras_stand():
    """A writer's schema may have fields behind them."""
    fields = [EXTRAS, required("s", record(required("x", "string"), name="Sub"))]
    reader = message_reader(parse_schema(json.dumps(record(*fields, name="M"))).root)
    payload = b"\x02\x08/t/u\x020\x00" + b"\x02a"
    sentence = "message: $.t.u: expected a parent in the record for a pointer in extras, got none"
    assert error_of(reader.read, PayloadDecoder(payload)) == sentence
    assert error_of(reader.decode, payload) == sentence
