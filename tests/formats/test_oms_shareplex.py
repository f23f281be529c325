"""The facts of `oms_shareplex`: OMS's SharePlex serialization."""

from __future__ import annotations

import pytest

import cdcavro
from support.roundtrip import assert_fast, assert_golden, avro, error_of, golden_cases


def _meta(members: str) -> str:
    return f'{{"data":{{}},"meta":{{{members}}}}}'


@pytest.mark.parametrize("golden", golden_cases("oms_shareplex"))
def test_golden_message_round_trips_and_is_told(golden):
    """Every sample of the document comes back as it was sent and is sniffed as SharePlex."""
    assert_golden("oms_shareplex", golden)


def test_update_has_the_whole_row_before_and_the_changed_columns():
    """`key` is the row before the change, `data` only what changed; a null column is not an absent one."""
    record = avro("oms_shareplex", '{"data":{"b":null},"meta":{"op":"upd"},"key":{"a":1,"b":"null"}}')
    assert (record["data"], record["key"]) == ({"b": None}, {"a": 1, "b": "null"})


@pytest.mark.parametrize("sent", ["1", '"1"', "-9223372036854775808", '""', '"STRING"'])
def test_sequence_is_a_number_or_a_string(sent):
    """`seq` keeps which of the two it was, without a note and without a slow path."""
    message = _meta(f'"op":"ins","seq":{sent}')
    record = avro("oms_shareplex", message)
    assert record["meta"]["seq"] == (sent.strip('"') if '"' in sent else int(sent))
    assert record["extras"] == {}
    assert_fast("oms_shareplex", message)


def test_sequence_beyond_64_bits_is_text_and_comes_back_as_a_number():
    """A `seq` of 2^63 does not wrap: the field has its text, extras the number."""
    record = avro("oms_shareplex", _meta('"op":"ins","seq":9223372036854775808'))
    assert record["meta"]["seq"] == "9223372036854775808"
    assert record["extras"] == {"/meta/seq": "9223372036854775808"}


@pytest.mark.parametrize("op", ["", "INS", "update", "OTHER", "ins "])
def test_unknown_operation_is_kept(op):
    """Operations are `ins`, `upd` and `del` in small letters; any other text reads as OTHER and comes back."""
    record = avro("oms_shareplex", _meta(f'"op":"{op}"'))
    assert record["meta"]["op"] == "OTHER"
    assert record["extras"] == {"/meta/op": f'"{op}"'}


@pytest.mark.parametrize("key", ["", ',"key":null', ',"key":{}'])
def test_key_is_absent_null_or_empty(key):
    """Whichever it is comes back, without a slow path."""
    message = f'{{"data":{{"a":1}},"meta":{{"op":"del"}}{key}}}'
    assert avro("oms_shareplex", message)["key"] == ({} if "{}" in key else None)
    assert_fast("oms_shareplex", message)


def test_row_id_may_hold_the_separator():
    """U+0001 in `rowid` is a character as any other."""
    assert avro("oms_shareplex", _meta('"op":"ins","rowid":"d.t-3\\u0001129"'))["meta"]["rowid"] == "d.t-3\x01129"


def test_members_of_samples_only_have_fields():
    """`size` and `idx` occur in samples only and are typed all the same."""
    record = avro("oms_shareplex", _meta('"op":"ins","size":10,"idx":"1/10"'))
    assert (record["meta"]["size"], record["meta"]["idx"]) == (10, "1/10")
    assert record["extras"] == {}


def test_column_called_like_a_member_is_a_column():
    """Columns named `meta`, `op`, `key` and `extras` are columns."""
    row = avro("oms_shareplex", '{"data":{"meta":{"op":"x"},"op":1,"key":null,"extras":""},"meta":{"op":"ins"}}')[
        "data"
    ]
    assert row == {"meta": {"text": '{"op":"x"}'}, "op": 1, "key": None, "extras": ""}


def test_unknown_members_are_kept_where_they_were():
    """A message's own `extras` and an unknown member of `meta` stand in extras."""
    record = avro("oms_shareplex", '{"data":{},"meta":{"op":"ins","scn2":[1]},"extras":null}')
    assert record["extras"] == {"/meta/scn2": "[1]", "/extras": "null"}


@pytest.mark.parametrize(
    ("sent", "sentence"),
    [
        ('{"data":{}}', "oms_shareplex: $.meta: expected a required member, got none"),
        ('{"meta":{}}', "oms_shareplex: $.meta.op: expected a required member, got none"),
        ('{"meta":"ins"}', "oms_shareplex: $.meta: expected object, got string"),
        ('{"meta":{"op":"ins"},"data":[{}]}', "oms_shareplex: $.data: expected object, got array"),
        ('{"meta":{"op":"ins","seq":[]}}', "oms_shareplex: $.meta.seq: expected long or string, got array"),
        ('{"meta":{"op":"ins","size":"ten"}}', "oms_shareplex: $.meta.size: expected long, got string 'ten'"),
    ],
)
def test_structure_is_not_bent(sent, sentence):
    """What is not shaped like a SharePlex message is refused with its place."""
    assert error_of(cdcavro.encode, sent, "oms_shareplex") == sentence
