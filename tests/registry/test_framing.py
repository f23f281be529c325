"""Framing: what stands before a payload, told to the last byte or refused."""

from __future__ import annotations

import random
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

import cdcavro
from cdcavro import registry
from cdcavro.avro.binary import check_payload
from cdcavro.registry import Fingerprint, Guid, SchemaId
from cdcavro.registry.framing import FRAMINGS, HEADERS, ContentId, GlobalId, payload_of, with_header
from cdcavro.registry.subjects import STRATEGIES, subject_name
from support.roundtrip import error_of
from support.schema_data import cover, write
from support.wire import array, enum, field, mapping, record

FRAMES = (
    st.integers(0, 2**32 - 1).map(SchemaId)
    | st.uuids().map(Guid)
    | st.binary(min_size=8, max_size=8).map(lambda raw: Fingerprint(raw.hex()))
)
BAD_FRAMES = [
    (b"", "expected bytes that start with 00, 01 or c3 01, got none"),
    (b"\x02\x00\x00\x00\x01", "expected bytes that start with 00, 01 or c3 01, got 02 00"),
    (b"\xc3\x02" + bytes(8), "expected bytes that start with 00, 01 or c3 01, got c3 02"),
    (b"\xc3", "expected bytes that start with 00, 01 or c3 01, got c3"),
    (b'{"a":1}', "expected bytes that start with 00, 01 or c3 01, got 7b 22"),
    (b"Obj\x01", "expected bytes that start with 00, 01 or c3 01, got 4f 62"),
    (b"\x00\x00\x00\x01", "expected 5 bytes that tell the schema, got 4"),
    (b"\x01" + bytes(15), "expected 17 bytes that tell the schema, got 16"),
    (b"\xc3\x01" + bytes(7), "expected 10 bytes that tell the schema, got 9"),
]


@given(st.binary(max_size=40), FRAMES)
def test_what_is_framed_is_unframed(payload, id):
    """Each form, with any payload, an empty one too."""
    assert registry.unframe(registry.frame(payload, id)) == (id, payload)
    assert registry.unframe(payload, header=registry.frame(b"", id)) == (id, payload)


@given(st.binary(max_size=40), FRAMES)
def test_top_level_bytes_have_their_length_only_in_an_avro_payload(raw, id):
    """Confluent's serialisers leave it out behind their prefixes; a single-object encoding has it."""
    schema = cdcavro.parse_schema('{"type":"bytes"}')
    payload = write(schema.root, raw)
    value = registry.frame(payload, id, schema=schema)
    behind = registry.unframe(value)[1]
    assert behind == (payload if isinstance(id, Fingerprint) else raw)
    assert payload_of(behind, id, schema) == payload
    other = cdcavro.parse_schema('["bytes"]')
    assert registry.frame(payload, id, schema=other) == registry.frame(payload, id)
    assert payload_of(payload, id, other) == payload


def test_what_is_no_payload_of_bytes_is_not_framed_as_one():
    """Cut short, or with bytes left over."""
    schema = cdcavro.parse_schema('"bytes"')
    for payload in (b"\x04a", b"\x04abc", b""):
        with pytest.raises(cdcavro.PayloadError):
            registry.frame(payload, 7, schema=schema)


def test_a_registry_opens_top_level_bytes_as_an_avro_payload(tmp_path):
    """So that whoever reads payloads reads it; in a header's company too."""
    schemas = registry.connect(f"file:{tmp_path}")
    made = schemas.publish('"bytes"', "raws")
    assert schemas.open(b"\x00" + made.id.to_bytes(4, "big") + b"ab")[1] == b"\x04ab"
    assert schemas.open(b"\x00" + made.id.to_bytes(4, "big"))[1] == b"\x00"
    assert schemas.open(b"ab", header=registry.frame(b"", made.id))[1] == b"\x04ab"


@given(st.binary(max_size=40), st.integers(0, 2**64 - 1))
def test_ids_of_apicurio_are_told_by_its_framings_only(payload, number):
    """Of eight bytes: nothing in a value says whose id it is, so it is never guessed."""
    for framing, id in (("apicurio-global-id", GlobalId(number)), ("apicurio-content-id", ContentId(number))):
        value = registry.frame(payload, id)
        assert registry.unframe(value, framing=framing) == (id, payload)
        assert registry.unframe(value)[0] == SchemaId(number >> 32)
        assert payload_of(b"\x04ab", id, cdcavro.parse_schema('"bytes"')) == b"\x04ab"
        assert error_of(lambda: registry.unframe(value[:8], framing=framing)) == (  # noqa: B023
            "message: $: expected 9 bytes that tell the schema, got 8"
        )
        assert error_of(lambda: registry.unframe(b"\x01" + value, framing=framing)) == (  # noqa: B023
            "message: $: expected bytes that start with 00, got 01"
        )
    with pytest.raises(ValueError, match=r"an id is an integer from 0 to 2\*\*64 - 1"):
        GlobalId(2**64)


ID = bytes(7) + b"\x07"
GUID = b"\x01" + bytes(15) + b"\x07"


@pytest.mark.parametrize(
    ("headers", "id"),
    [
        ([("__value_schema_id", GUID)], Guid(UUID(int=7))),
        ([("__value_schema_id", b"\0" + ID[-4:])], SchemaId(7)),
        ([("apicurio.value.globalId", ID), ("apicurio.value.encoding", b"BINARY")], GlobalId(7)),
        ([("apicurio.value.contentId", ID)], ContentId(7)),
        ([("apicurio.value.globalId", bytes(8)), ("apicurio.value.globalId", ID)], GlobalId(7)),
        ([("apicurio.value.globalId", ID), ("__value_schema_id", GUID)], Guid(UUID(int=7))),
    ],
    ids=["a GUID", "an id of Confluent's", "a global id", "a content id", "the last of several", "Confluent's first"],
)
def test_what_a_header_says_stands_before_the_value(headers, id):
    """So that a record that is kept, such as a reject, says by itself which schema wrote it; keys have their own."""
    assert registry.unframe(with_header(b"\x00ab", headers), framing=HEADERS) == (id, b"\x00ab")
    of_keys = [(name.replace("value", "key"), value) for name, value in headers]
    assert registry.unframe(with_header(b"\x00ab", of_keys, is_key=True), framing=HEADERS) == (id, b"\x00ab")
    assert with_header(b'{"id":7}', headers, is_key=True) == b'{"id":7}'


@pytest.mark.parametrize(
    "headers",
    [
        [],
        [("apicurio.value.globalId", None)],
        [("apicurio.value.globalId", ID[1:])],
        [("__value_schema_id", GUID[:-1])],
        [("__value_schema_id", b"\x02" + GUID[1:])],
        [("apicurio.key.globalId", ID)],
    ],
    ids=["none", "null", "a short one", "a short GUID", "another magic byte", "that of the key"],
)
def test_a_value_without_a_header_has_no_schema_whatever_it_begins_with(headers):
    """As Confluent's prefix, or Apicurio's, may be the beginning of any payload; a key may be JSON."""
    for value in (b"\x00\x00\x00\x00\x07ab", GUID, b"", b"{}"):
        marked = with_header(value, headers)
        assert error_of(lambda: registry.unframe(marked, framing=HEADERS)) == (  # noqa: B023
            "message: $: expected a header of the record with the id of its schema, got none"
        )
        assert marked[1:] == value
    keys = [with_header(key, [], is_key=True) for key in (b"{}", b"", b"\x00\x00", b"\x04")]
    assert keys == [b"{}", b"", b"\x04\x00\x00", b"\x04\x04"]


@given(st.binary(max_size=40), st.sampled_from([*FRAMINGS]))
def test_any_framing_tells_or_refuses_any_bytes(value, framing):
    """Never anything but a prefix and the rest, or a PayloadError."""
    try:
        _, payload = registry.unframe(value, framing=framing)
    except cdcavro.PayloadError:
        return
    assert value.endswith(payload)
    assert len(value) > len(payload)


@given(st.binary(max_size=40))
def test_any_bytes_are_told_or_refused(value):
    """Never anything but a frame or a PayloadError; and what was told is what stands there."""
    try:
        id, payload = registry.unframe(value)
    except cdcavro.PayloadError:
        return
    assert registry.frame(payload, id) == value


@pytest.mark.parametrize(("value", "said"), BAD_FRAMES)
def test_other_bytes_are_refused(value, said):
    """With what was expected and what came."""
    assert error_of(registry.unframe, value) == f"message: $: {said}"


def test_a_header_holds_nothing_else():
    """A byte too many is no header; one too few neither."""
    header = registry.frame(b"", Guid(UUID(int=1)))
    assert (
        error_of(lambda: registry.unframe(b"", header=header + b"x"))
        == "message: $: expected a header of 17 bytes, got 18"
    )
    assert error_of(lambda: registry.unframe(b"", header=header[:-1])) == (
        "message: $: expected 17 bytes that tell the schema, got 16"
    )


def test_the_bytes_are_those_of_the_documents():
    """Confluent's and Avro's."""
    schema = cdcavro.parse_schema('"int"')
    assert registry.frame(b"\x36", 1) == bytes.fromhex("00 00000001 36")
    # Avro's own test data: the fingerprint of "int" is 0x7275d51a3f395c8f.
    assert registry.frame(b"\x36", Fingerprint(schema.fingerprint)) == bytes.fromhex("c301 8f5c393f1ad57572 36")
    assert registry.frame(b"", Guid(UUID("00112233-4455-6677-8899-aabbccddeeff"))) == bytes.fromhex(
        "01 00112233445566778899aabbccddeeff"
    )


@pytest.mark.parametrize("id", [-1, 2**32, True, 1.0, "1", None])
def test_what_is_no_id_frames_nothing(id):
    """A wrong value or type is the caller's error."""
    with pytest.raises((ValueError, TypeError)):
        registry.frame(b"", id)


@pytest.mark.parametrize("digits", ["", "0" * 15, "0" * 17, "G" * 16, "0" * 16 + "\n", "ABCDEF0123456789"])
def test_what_is_no_fingerprint_is_refused(digits):
    """Only the form that `Schema.fingerprint` has."""
    with pytest.raises(ValueError, match="16 hex digits"):
        Fingerprint(digits)


SHAPES = record(
    field("a", array(["null", "long"])),
    field("m", mapping("double")),
    field("e", enum("A", "B")),
    field("f", {"type": "fixed", "name": "F", "size": 3}),
    field("b", "boolean"),
    field("s", "string"),
    field("r", record(field("x", "float"), name="S")),
)


def _shapes() -> cdcavro.Schema:
    import json  # noqa: PLC0415

    return cdcavro.parse_schema(json.dumps(SHAPES))


@pytest.mark.parametrize("value", cover(_shapes().root, random.Random(6)))
def test_a_datum_is_read_to_its_last_byte(value):
    """Every byte missing or left over is told."""
    schema = _shapes()
    payload = write(schema.root, value)
    check_payload(payload, schema)
    with pytest.raises(cdcavro.PayloadError, match="got 1 more"):
        check_payload(payload + b"\x00", schema)
    for end in range(len(payload)):
        with pytest.raises(cdcavro.PayloadError):
            check_payload(payload[:end], schema)


@pytest.mark.parametrize(
    ("schema", "payload", "said"),
    [
        ('["null", "int"]', b"\x04", "expected a branch from 0 to 1, got 2 at byte 1"),
        ('["null", "int"]', b"\x01", "expected a branch from 0 to 1, got -1 at byte 1"),
        ('{"type": "enum", "name": "E", "symbols": ["A"]}', b"\x02", "expected a symbol from 0 to 0, got 1 at byte 1"),
        ('"boolean"', b"\x02", "expected a boolean, 0 or 1, got 2 at byte 0"),
        ('"int"', b"\x80\x80\x80\x80\x20", "expected an integer of at most 32 bits, got 4294967296 at byte 5"),
        ('"string"', b"\x02\xff", "expected UTF-8, got byte 0xff before byte 2"),
        (
            '{"type": "array", "items": "null"}',
            b"\xfe\xff\xff\xff\x0f\x00",
            "expected at most 100000 items without bytes, got more by byte 5",
        ),
    ],
)
def test_what_other_readers_pass_over_is_refused(schema, payload, said):
    """An index below zero, a symbol that is none, an array bomb."""
    assert error_of(check_payload, payload, cdcavro.parse_schema(schema)).endswith(f": {said}")


@pytest.mark.parametrize(
    ("strategy", "is_key", "expected"),
    [
        ("topic", False, "t-value"),
        ("topic", True, "t-key"),
        ("record", False, "a.R"),
        ("record", True, "a.R"),
        ("topic-record", False, "t-a.R"),
    ],
)
def test_a_subject_is_named_by_its_strategy(strategy, is_key, expected):
    """As Confluent's serialisers name it."""
    schema = cdcavro.parse_schema('{"type": "record", "name": "a.R", "fields": []}')
    assert subject_name(strategy, schema, topic="t", is_key=is_key) == expected


@pytest.mark.parametrize("strategy", STRATEGIES[1:])
@pytest.mark.parametrize(
    ("schema", "kind"), [('"int"', "int"), ('["null", "int"]', "union"), ('{"type": "map", "values": "int"}', "map")]
)
def test_a_schema_without_a_name_has_no_record_for_its_subject(strategy, schema, kind):
    """Nothing stands in for it."""
    with pytest.raises(cdcavro.SchemaError) as caught:
        subject_name(strategy, cdcavro.parse_schema(schema), topic="t")
    assert str(caught.value) == f"schema $: expected a type with a name for the subject, got {kind}"


@pytest.mark.parametrize(
    ("strategy", "topic"), [("topic", None), ("topic", ""), ("topic-record", None), ("other", "t")]
)
def test_a_strategy_without_its_topic_names_nothing(strategy, topic):
    """That is the caller's error."""
    with pytest.raises(ValueError, match="strateg"):
        subject_name(strategy, cdcavro.parse_schema('{"type": "record", "name": "a.R", "fields": []}'), topic=topic)
