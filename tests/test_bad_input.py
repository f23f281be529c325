"""Bad text and bad payloads, end to end: one clear sentence each, in bounded time.

No clock is read here. What is to be done soon is so large that work which grows faster than its input would take far
longer than the limit on each test.
"""

from __future__ import annotations

import functools
import io
import json
import math
import re
import tracemalloc

import fastavro
import pytest

import cdcavro
from cdcavro.avro import binary
from cdcavro.exact import jsontext
from cdcavro.wire import extras, value_writers
from cdcavro.wire.formats import REGISTRY
from support.messages import goldens
from support.roundtrip import Leaving, assert_round_trip, error_of, fast, fastavro_schema, outcome

_DIGITS = "1" * 1_000_000


@pytest.mark.parametrize(
    ("sent", "sentence"),
    [
        ("", "$: expected JSON, got an empty line"),
        (b"\xff", "$: expected UTF-8, got byte 0xff at byte 0"),
        (b'{"recordType":"ROW","postStruct":{"\xc3":1}}', "$: expected UTF-8, got byte 0xc3 at byte 35"),
        ("not JSON", "$: expected JSON, got 'not JSON' at character 0"),
        ('{"recordType":"ROW"', "$: expected JSON, got text that ends too early, at character 19"),
        ('{"recordType":"RO', "$: expected JSON, got text that ends too early, at character 17"),
        ('\ufeff{"recordType":"ROW"}', "$: expected JSON, got a byte order mark before it"),
        ('{"recordType":"ROW"}{"recordType":"ROW"}', "$: expected JSON, got more than one value, from character 20"),
        (
            '{"recordType":"ROW"},',
            "$: expected JSON, got a comma behind the value, at character 20",
        ),
        ('{"recordType":"ROW","recordType":"ROW"}', "$: expected each member once, got 'recordType' twice"),
        (
            '{"recordType":"ROW","postStruct":{"a":{"b":[{"c":1,"c":1}]}}}',
            "$.postStruct.a.b[0]: expected each member once, got 'c' twice",
        ),
        (
            '{"recordType":"ROW","postStruct":{"a":1,"\\u0061":2}}',
            "$.postStruct: expected each member once, got 'a' twice",
        ),
        ('{"recordType":"ROW","postStruct":{"a":1, "a" :2}}', "$.postStruct: expected each member once, got 'a' twice"),
        (
            '{"recordType":"ROW","postStruct":{"a\\\\":1,"b":2,"b":3}}',
            "$.postStruct: expected each member once, got 'b' twice",
        ),
        (
            '{"recordType":"ROW","postStruct":{"a":"\\":","b":2,"b":3}}',
            "$.postStruct: expected each member once, got 'b' twice",
        ),
        ('{"recordType":"ROW","postStruct":{"a":NaN}}', "$: expected JSON, got NaN, which is no JSON number"),
        ('{"recordType":"ROW","postStruct":{"a":Infinity}}', "$: expected JSON, got Infinity, which is no JSON number"),
        (
            '{"recordType":"ROW","postStruct":{"a b":["\\udfff"]}}',
            '$.postStruct["a b"][0]: expected Unicode text, got a lone surrogate at character 0',
        ),
        ('{"recordType":"\ud800"}', "$: expected Unicode text, got a lone surrogate at character 15"),
        ("[" * 100_000, "$: expected at most 128 levels, got a level more at byte 128"),
        (
            '{"recordType":"ROW","postStruct":{"a":' + "[" * 127 + "]" * 127 + "}}",
            "$: expected at most 128 levels, got a level more at byte 164",
        ),
        (f'{{"recordType":"ROW","postStruct":{_DIGITS}}}', "$.postStruct: expected object, got number"),
        (f'{{"recordType":{"[" * 9}{"]" * 9}}}', "$.recordType: expected a symbol, got array"),
    ],
    ids=lambda given: repr(given)[:40],
)
def test_text_that_is_refused(sent, sentence):
    """Every format refuses it alike; the sentence names the format, the place and what was expected."""
    assert error_of(cdcavro.encode, sent, "oms_default") == f"oms_default: {sentence}"


@pytest.mark.parametrize(
    "where", ['"postStruct":{"a":%s}', '"postStruct":{"a":[%s]}', '"other":%s', '"allMetaData":{"x":%s}']
)
def test_nesting_up_to_the_bound_comes_back(where):
    """128 levels come back wherever they stand, 129 do not."""
    levels = 128 - where.count("{") - where.count("[") - 1
    for more, accepted in ((0, True), (1, False)):
        nested = "[" * (levels + more) + "]" * (levels + more)
        sent = f'{{"recordType":"ROW",{where % nested}}}'
        if accepted:
            assert_round_trip("oms_default", sent)
        else:
            assert "expected at most 128 levels, got a level more at byte " in error_of(
                cdcavro.encode, sent, "oms_default"
            )


@pytest.mark.parametrize(
    "sent",
    [
        f'{{"recordType":"ROW","postStruct":{{"a":{_DIGITS}}}}}',
        f'{{"recordType":"ROW","postStruct":{{"a":-{_DIGITS}.{_DIGITS}E-{_DIGITS}}}}}',
        f'{{"recordType":"ROW","allMetaData":{{"db":{_DIGITS}}}}}',
        f'{{"recordType":"ROW","allMetaData":{{"storeDataSequence":{_DIGITS}}}}}',
        f'{{"recordType":{_DIGITS}}}',
    ],
    ids=["column", "fraction", "string field", "long or string field", "operation"],
)
def test_number_of_a_million_digits_comes_back_soon(sent):
    """A long number is text, in a column and in a string field, and is never computed with."""
    assert_round_trip("oms_default", sent)


def test_number_of_a_million_digits_is_refused_soon():
    """In a long field it does not convert, and the sentence stays short."""
    for number in (_DIGITS, f"1e{_DIGITS}", f'"{_DIGITS}"', f"0.{_DIGITS}"):
        assert len(error_of(cdcavro.encode, f'{{"type":"X","es":{number}}}', "oms_canal")) < 200


@pytest.mark.parametrize("sent", [None, 7, {"recordType": "ROW"}])
def test_text_of_another_type_is_the_callers_mistake(sent):
    """Python values are not guessed at."""
    with pytest.raises(TypeError, match="text is bytes or str, not"):
        cdcavro.encode(sent, "oms_default")


@pytest.mark.parametrize(
    "sent",
    [
        '{"recordType":"ROW","postStruct":{"a":-0}}',
        '{"recordType":"ROW","postStruct":{"a":[-0 ]}}',
        '{"recordType":"ROW","allMetaData":{"storeDataSequence":-0}}',
    ],
)
def test_a_negative_zero_is_kept(sent):
    """Msgspec decodes -0 to 0: such text is never taken from it."""
    assert not REGISTRY["oms_default"]._engine.is_plain(sent.encode())
    assert REGISTRY["oms_default"].parse(sent) == jsontext.parse(sent)
    assert_round_trip("oms_default", sent)


# Payloads.


@pytest.mark.parametrize("format", cdcavro.FORMATS)
@pytest.mark.slow
def test_payload_cut_short_is_refused_at_every_length(format):
    """No part of a payload is a payload; whether it is read as text or as a record, the sentence is the same."""
    payload = cdcavro.encode(goldens(format)[-1], format)
    for length in range(len(payload)):
        sentence = error_of(cdcavro.decode, payload[:length], format)
        assert sentence.startswith(f"{format}: $")
        assert error_of(REGISTRY[format].read, payload[:length]) == sentence


@pytest.mark.parametrize("format", cdcavro.FORMATS)
def test_bytes_left_over_are_refused(format):
    """What follows a payload is not ignored."""
    payload = cdcavro.encode(goldens(format)[0], format)
    sentence = f"{format}: $: expected the end of the payload at byte {len(payload)}, got 3 more"
    assert error_of(cdcavro.decode, payload + b"\0\0\0", format) == sentence


def _payload(**members) -> bytes:
    """Write a Default record with fastavro, as anybody could."""
    record = {"prevStruct": None, "postStruct": None, "allMetaData": None, "recordType": "ROW", "extras": {}, **members}
    out = io.BytesIO()
    fastavro.schemaless_writer(out, fastavro_schema("oms_default"), record)
    return out.getvalue()


def _column(value) -> bytes:
    return _payload(postStruct={"c": value})


def _number(text: str) -> bytes:
    return _column(("cdcavro.ExactNumber", {"text": text}))


def _json(text: str) -> bytes:
    return _column(("cdcavro.JsonText", {"text": text}))


@pytest.mark.parametrize(
    ("payload", "sentence"),
    [
        (b"", "$.prevStruct: expected 1 byte, got 0 at byte 0, where the payload ends"),
        (b"\x04", "$.prevStruct: expected a branch from 0 to 1, got 2 at byte 1"),
        (b"\x01", "$.prevStruct: expected a branch from 0 to 1, got -1 at byte 1"),
        (b"\xff" * 20, "$.prevStruct: expected an integer of at most 64 bits, got more at byte 10"),
        (b"\x00\x00\x00\x0e", "$.recordType: expected a symbol from 0 to 6, got 7 at byte 4"),
        (b"\x00\x00\x00\x01", "$.recordType: expected a symbol from 0 to 6, got -1 at byte 4"),
        (b"\x02\x06\x00", "$.prevStruct: expected 3 items, got 1 at byte 2, where the payload ends"),
        (b"\x02" + b"\xfe" * 9 + b"\x01", None),
        (b"\x02\x02\x01", "$.prevStruct: expected -1 bytes, got 0 at byte 3, where the payload ends"),
        (b"\x02\x01\x04\x00", "$.prevStruct: expected a block of 2 bytes, got 1 at byte 3, where the payload ends"),
        (
            b"\x82\x00\x00",
            "$.prevStruct: expected an integer in as few bytes as it has, got a needless one before byte 2",
        ),
        (
            b"\x02\x02\x02c\x04\x80\x00",
            "$.prevStruct.c: expected an integer in as few bytes as it has, got a needless one before byte 7",
        ),
        (b"\x02\x01\x04\x02c\x00\x00\x00\x06\x00", "$.prevStruct: expected a block of 2 bytes, got 3 by byte 6"),
        (b"\x02\x01\x08\x02c\x00\x00\x00\x06\x00", "$.prevStruct: expected a block of 4 bytes, got 3 by byte 6"),
        (
            b"\x00\x00\x00\x06\x01\x02\x04/x\x00\x00",
            "$: expected a block of 1 bytes, got 4 by byte 10",
        ),
        (b"\x02\x02\x02c\x0e\x00", "$.prevStruct.c: expected a branch from 0 to 6, got 7 at byte 5"),
        (b"\x02\x02\x02c\x02\x02", "$.prevStruct.c: expected a boolean, 0 or 1, got 2 at byte 5"),
        (b"\x02\x04\x02c\x00\x02c\x00", "$.prevStruct: expected each name once, got 'c' twice"),
        (b"\x02\x02\x02c\x00\x02\x02c\x00", "$.prevStruct: expected each name once, got 'c' twice"),
        (b"\x02\x02\x02\xff\x00", "$.prevStruct: expected UTF-8, got byte 0xff before byte 4"),
        (_column(float("nan")), "$.postStruct.c: expected a JSON number, got nan at byte 6"),
        (_column(float("-inf")), "$.postStruct.c: expected a JSON number, got -inf at byte 6"),
        (_number("1."), "$.postStruct.c: expected a JSON number, got '1.'"),
        (_number("1 "), "$.postStruct.c: expected a JSON number, got '1 '"),
        (_number(""), "$.postStruct.c: expected a JSON number, got ''"),
        (_number("NaN"), "$.postStruct.c: expected a JSON number, got 'NaN'"),
        (_number('1,"x":2'), "$.postStruct.c: expected a JSON number, got '1,\"x\":2'"),
        (_json("{"), "$.postStruct.c: expected JSON, got text that ends too early, at character 1"),
        (_json(""), "$.postStruct.c: expected JSON, got an empty line"),
        (_json("{} {}"), "$.postStruct.c: expected JSON, got more than one value, from character 3"),
        (_json('{"a":[{"b":1,"b":2}]}'), "$.postStruct.c.a[0]: expected each member once, got 'b' twice"),
        (_json('["\\ud800"]'), "$.postStruct.c[0]: expected Unicode text, got a lone surrogate at character 0"),
        (_json("[" * 127 + "]" * 127), "$.postStruct.c: expected at most 128 levels, got a level more at byte 126"),
        (_json("1"), "$.postStruct.c: expected an object or array, got number"),
        (_json(" null"), "$.postStruct.c: expected an object or array, got null"),
        (_json('"[]"'), "$.postStruct.c: expected an object or array, got string"),
        (_payload(extras={"/recordType": ""}), "$.recordType: expected a required member, got none"),
        (
            _payload(extras={"/recordType": " {}"}),
            "$.recordType: expected a scalar in extras in place of a scalar, got ' {}'",
        ),
        (
            _payload(extras={"/postStruct": "1"}),
            "$.postStruct: expected null or nothing in extras in place of an object or array, got '1'",
        ),
        (_payload(extras={"/a~b": "1"}), "$: expected ~0 and ~1 only in a JSON pointer in extras, got '/a~b'"),
        (_payload(extras={"x": "1"}), "$: expected a JSON pointer in extras, got 'x'"),
        (_payload(extras={"/x/y": "1"}), "$.x.y: expected a parent in the record for a pointer in extras, got none"),
        (
            _payload(extras={"/recordType/y": "1"}),
            "$.recordType.y: expected a parent in the record for a pointer in extras, got none",
        ),
        (_payload(extras={"/x": "{}", "/x/y": "1"}), "$.x.y: expected extras that lie apart, got one inside '/x'"),
        (_payload(extras={"/x": "{"}), "$.x: expected JSON in extras, got text that ends too early, at character 1"),
        (_payload(extras={"/x": "Infinity"}), "$.x: expected JSON in extras, got Infinity, which is no JSON number"),
        (
            _payload(extras={"/x": "1" * 9 + "."}),
            "$.x: expected JSON in extras, got more than one value, from character 9",
        ),
        (
            _payload(extras={"/x": "[" * 128 + "]" * 128}),
            "$.x: expected at most 128 levels in extras, got a level more at byte 127",
        ),
    ],
    ids=lambda given: repr(given)[:40],
)
def test_payload_that_is_refused(payload, sentence):
    """Every byte is held against the schema, and every text against JSON, before it goes into a message."""
    found = error_of(cdcavro.decode, payload, "oms_default")
    if sentence:
        assert found == f"oms_default: {sentence}"
    else:
        assert found.startswith("oms_default: $.prevStruct: expected ")


def test_index_of_extras_out_of_range():
    """An array's items are counted."""
    out = io.BytesIO()
    record = {one["name"]: None for one in fastavro_schema("oms_canal")["fields"]}
    record |= {"type": "INSERT", "pkNames": ["a"], "extras": {"/pkNames/1": "2"}}
    fastavro.schemaless_writer(out, fastavro_schema("oms_canal"), record)
    sentence = "oms_canal: $.pkNames[1]: expected an index below 1 in extras, got '1'"
    assert error_of(cdcavro.decode, out.getvalue(), "oms_canal") == sentence


def test_rest_map_cannot_hold_a_field():
    """A column by the name of a metadata column would hide it."""
    out = io.BytesIO()
    record = dict.fromkeys(one["name"] for one in fastavro_schema("datahub_tuple")["fields"])
    fastavro.schemaless_writer(
        out, fastavro_schema("datahub_tuple"), {**record, "columns": {"_source_table_": "t"}, "extras": {}}
    )
    sentence = "datahub_tuple: $: expected a member that has no field, got '_source_table_'"
    assert error_of(cdcavro.decode, out.getvalue(), "datahub_tuple") == sentence


@pytest.mark.parametrize(
    "payload",
    [
        b"\x02" + b"\xfe\xff\xff\xff\x0f",
        b"\x02" + b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01" * 2,
        b"\x02\x01\x00" * 400_000,
        b"\x00\x02" + b"\x80\x80\x04" + b"\x00" * 65_536,
        _payload(extras={"/a" * 300_000: "", "/b": ""}),
        _payload(extras={f"/{i}": "" for i in range(100_000)}),
        _json("[" * 100_000),
        _number("1" * 3_000_000 + "x"),
    ],
    ids=["count", "negative count", "empty blocks", "equal names", "long pointer", "many extras", "nesting", "number"],
)
def test_bomb_is_handled_soon(payload):
    """A few bytes cannot keep a reader busy, and a megabyte only for a moment."""
    found = outcome(cdcavro.PayloadError, cdcavro.decode, payload, "oms_default")
    assert isinstance(found, bytes) or len(str(found)) < 1_000


@pytest.mark.parametrize("payload", ["00", None, [0], 7])
def test_payload_of_another_type_is_the_callers_mistake(payload):
    """A payload is bytes."""
    with pytest.raises(TypeError, match="a payload is bytes, not"):
        cdcavro.decode(payload, "oms_default")


class _Bytes(bytes):
    """Bytes of a type of their own."""


def _every_second(raw):
    return memoryview(bytes(one for byte in raw for one in (byte, 0)))[::2]


BUFFERS = [bytes, bytearray, memoryview, _Bytes, _every_second]


@pytest.mark.parametrize("kind", BUFFERS)
def test_text_may_be_any_buffer(kind):
    """Kafka clients and Arrow hand over memoryviews and bytearrays, and some client has a type of its own."""
    sent = b'{"recordType":"ROW"}'
    assert cdcavro.encode(kind(sent), "oms_default") == cdcavro.encode(sent, "oms_default")
    assert cdcavro.sniff(kind(sent)) == "oms_default"


@pytest.mark.parametrize("kind", BUFFERS)
def test_payload_may_be_any_buffer(kind):
    """Spark and Arrow hand over memoryviews and bytearrays."""
    payload = cdcavro.encode('{"recordType":"ROW"}', "oms_default")
    assert cdcavro.decode(kind(payload), "oms_default") == b'{"recordType":"ROW"}'


def test_blocks_of_any_shape_are_read():
    """Other writers cut maps into several blocks and say their sizes."""
    blocks = b"\x02" + b"\x01\x06\x02a\x00" + b"\x02\x02b\x00" + b"\x00"
    payload = blocks + b"\x00\x00\x06\x00"
    assert cdcavro.decode(payload, "oms_default") == cdcavro.decode(
        _payload(prevStruct={"a": None, "b": None}), "oms_default"
    )


def test_payloads_one_behind_another():
    """A block of a container file holds so many payloads and nothing else."""
    format = REGISTRY["oms_default"]
    one = cdcavro.encode('{"recordType":"ROW"}', "oms_default")
    other = cdcavro.encode('{"recordType":"DDL","x":1}', "oms_default")
    records = list(format.read_block(one + other, 2, format.schema))
    assert records == [{"recordType": "ROW"}, {"recordType": "DDL", "x": 1}]
    left = f"oms_default: $: expected the end of the payload at byte {len(one)}, got 1 more"
    assert error_of(lambda: list(format.read_block(one + b"\0", 1, format.schema))) == left
    short = f"oms_default: $.prevStruct: expected 1 byte, got 0 at byte {len(one)}, where the payload ends"
    assert error_of(lambda: list(format.read_block(one, 2, format.schema))) == short


@pytest.mark.parametrize("count", [3, 10**18])
def test_block_of_more_payloads_than_bytes_is_refused(count):
    """No payload is without bytes, so that a count alone cannot keep a reader busy."""
    format = REGISTRY["oms_default"]
    sentence = f"oms_default: $: expected at most one payload to a byte, got {count} in 2 bytes"
    assert error_of(lambda: list(format.read_block(b"\0\0", count, format.schema))) == sentence


def test_array_or_map_beyond_the_bound_is_refused(monkeypatch):
    """Nothing is written that the reader would refuse; the bound itself is allowed."""
    monkeypatch.setattr(value_writers, "MAX_COUNT", 3)
    monkeypatch.setitem(REGISTRY["oms_canal"].__dict__, "_engine", Leaving())
    for sent in ('{"type":"X","pkNames":["","",""]}', '{"type":"X","mysqlType":{"a":"","b":"","c":""}}'):
        cdcavro.encode(sent, "oms_canal")
    sentence = "oms_canal: $.pkNames: expected at most 3 items, got 4"
    assert error_of(cdcavro.encode, '{"type":"X","pkNames":["","","",""]}', "oms_canal") == sentence
    sentence = "oms_canal: $.data[0]: expected at most 3 items, got 4"
    assert error_of(cdcavro.encode, '{"type":"X","data":[{"a":1,"b":1,"c":1,"d":1}]}', "oms_canal") == sentence


def test_what_is_written_is_within_what_is_read():
    """Writer and reader share one bound, and notes stay below it."""
    assert value_writers.MAX_COUNT == binary.MAX_COUNT == 10_000_000
    assert extras.MAX_NOTES == 100_000 < binary.MAX_COUNT


@pytest.mark.parametrize(
    "made",
    [
        lambda count: {f"x{i}": 1 for i in range(count)},
        lambda count: {"pkNames": list(range(count))},
    ],
    ids=["unknown members", "items of another type"],
)
def test_notes_beyond_the_bound_are_refused(monkeypatch, made):
    """Each note costs much memory: a message may hold only so many values that have no place of their own."""
    monkeypatch.setattr(extras, "MAX_NOTES", 8)
    monkeypatch.setitem(REGISTRY["oms_canal"].__dict__, "_engine", Leaving())
    usual = {"type": "INSERT", **dict.fromkeys(["pkNames", "sqlType", "mysqlType", "data", "old"])}
    cdcavro.encode(json.dumps(usual | made(8)), "oms_canal")
    sentence = error_of(cdcavro.encode, json.dumps(usual | made(9)), "oms_canal")
    assert sentence.startswith("oms_canal: $")
    assert sentence.endswith(": expected at most 8 values that the schema has no place for, got one more")


def _noted_below(name: str, count: int) -> str:
    """Return a message with unknown members below a column's name, which the pointer to each of them spells out."""
    members = ",".join(f'"{i}":1' for i in range(count))
    return f'{{"recordType":"INSERT","postStruct":{{"__light_type":{{"{name}":{{{members}}}}}}}}}'


@pytest.mark.parametrize("character", ["n", "\U0001f600", "/"], ids=["plain", "wide", "escaped"])
@pytest.mark.parametrize("call", [cdcavro.encode, cdcavro.to_changes, lambda sent, name: REGISTRY[name].parse(sent)])
def test_pointers_beyond_the_bound_are_refused_in_little_room(character, call):
    """A long name above many unknown members is spelled out for none of them: a message of 0.5 MB would take gigabytes."""
    format = "oms_default_extend_column_type"
    sent = _noted_below(character * (100_000 if character == "\U0001f600" else 400_000), 10_000)
    tracemalloc.start()
    try:
        sentence = error_of(call, sent, format)
        assert tracemalloc.get_traced_memory()[1] < 64 << 20
    finally:
        tracemalloc.stop()
    assert sentence.startswith(f"{format}: $.postStruct.__light_type")
    assert sentence.endswith(
        ": expected at most 2097152 bytes of names repeated in pointers to what the schema has no place for, got more"
    )


@pytest.mark.parametrize("character", ["n", "\U0001f600"])
def test_pointers_out_of_proportion_are_refused(character):
    """A message of 6 KB would have pointers of a megabyte, and a file of such messages grow three hundred times."""
    format = "oms_default_extend_column_type"
    name = character * (3_000 // len(character.encode()))
    sentence = error_of(cdcavro.encode, _noted_below(name, 400), format)
    most = re.search(
        r": expected at most (\d+) bytes of names repeated in pointers to what the schema has no", sentence
    )
    assert most is not None
    assert int(most[1]) < 1_000_000


@pytest.mark.slow
def test_pointers_up_to_the_bound_come_back():
    """Long names with some unknown members below them are no bomb."""
    format = "oms_default_extend_column_type"
    for count in (1, 5, 20):
        assert_round_trip(format, _noted_below("n" * 5_000, count))
    assert_round_trip(format, _noted_below("n" * 4_000_000, 1))
    assert_round_trip(format, _noted_below("n" * 1_000_000, 2))


@pytest.mark.parametrize(
    ("record", "path"),
    [
        ({"recordType": math.nan}, "$.recordType"),
        ({"recordType": "ROW", "postStruct": {"c": math.nan}}, "$.postStruct.c"),
        ({"recordType": "ROW", "postStruct": {"c": -math.inf}}, "$.postStruct.c"),
        ({"recordType": "ROW", "postStruct": {"c": [{"d": math.nan}]}}, "$.postStruct.c"),
        ({"recordType": "ROW", "allMetaData": {"db": math.nan}}, "$.allMetaData.db"),
        ({"recordType": "ROW", "x/y": math.nan}, '$["x/y"]'),
        ({"recordType": "ROW", "x": {"y": [math.inf]}}, "$.x"),
    ],
)
def test_number_that_is_not_finite_is_not_written(record, path):
    """JSON has no NaN: it becomes neither null nor a text that no reader takes."""
    sentence = error_of(REGISTRY["oms_default"].write, record)
    assert sentence.startswith(f"oms_default: {path}: expected a JSON number, got ")


def test_nesting_beyond_the_bound_is_not_written():
    """Wherever it stands in a Python value."""
    deep = functools.reduce(lambda inner, _: [inner], range(200), [])
    for record, path in (({"x": deep}, "$.x"), ({"postStruct": {"c": deep}}, "$.postStruct.c")):
        sentence = f"oms_default: {path}: expected at most 128 levels, got a level more"
        assert error_of(REGISTRY["oms_default"].write, {"recordType": "ROW", **record}) == sentence


@pytest.mark.parametrize("space", [" ", "\t", "\n", "\r"])
@pytest.mark.parametrize("sent", ['{{"type":"INSERT","type"{}:"DELETE"}}', '{{"type"{}:"INSERT","type":"DELETE"}}'])
def test_white_space_before_a_colon_hides_no_repetition(space, sent):
    """Each kind that JSON has: msgspec alone would keep the last of the two."""
    sentence = "oms_canal: $: expected each member once, got 'type' twice"
    assert fast("oms_canal", sent.format(space)) is None
    assert error_of(cdcavro.encode, sent.format(space), "oms_canal") == sentence


# Work that takes each of a long name's letters up again for each of many items would take minutes.
_LONG_NAME = "n" * 10_000_000
_MANY_ITEMS = ",".join(["7"] * 99_990)


@pytest.mark.slow
def test_long_names_with_many_items_are_read_and_written_soon():
    """The time grows as the text does: by the exact way, with the search for surrogates."""
    sent = (
        f'{{"type":"\\ud83d\\ude00","{_LONG_NAME}":[{_MANY_ITEMS}],'
        f'"pkNames":[{_MANY_ITEMS}],"data":[{{"{_LONG_NAME}":[{_MANY_ITEMS}]}}]}}'
    )
    assert jsontext.parse(cdcavro.decode(cdcavro.encode(sent, "oms_canal"), "oms_canal")) == jsontext.parse(sent)


def test_long_name_above_many_items_is_parsed_soon():
    """The path to an item is not spelled out for each item."""
    assert len(jsontext.parse(f'{{"{_LONG_NAME}":["\\ud83d\\ude00",{_MANY_ITEMS}]}}')[_LONG_NAME]) == 99_991


def test_record_that_is_not_shaped_like_the_schema_is_refused():
    """What is written from Python is checked as what was parsed."""
    format = REGISTRY["oms_default"]
    assert error_of(format.write, {}) == "oms_default: $.recordType: expected a required member, got none"
    assert error_of(format.write, []) == "oms_default: $: expected object, got array"
