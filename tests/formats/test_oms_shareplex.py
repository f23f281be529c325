"""The facts of `oms_shareplex`: OMS's SharePlex serialization."""

from __future__ import annotations

import json
from zoneinfo import ZoneInfo

import pytest

import cdcavro
from cdcavro.change import Arrival
from cdcavro.change.order import in_order
from cdcavro.engine.machine import COMPILED
from cdcavro.table import TypeOverrides
from cdcavro.table.tables import Tables
from cdcavro.table.writing.message_typer import MessageTyper
from support.roundtrip import assert_fast, assert_golden, avro, error_of, golden_cases
from support.typed import read


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


def of_dts(op: str, seq: int, data: dict[str, object], key: dict[str, object] | None = None, **members: object) -> str:
    """Return a message as Alibaba DTS sends it from Oracle: all of `meta` that it documents, and texts as values."""
    meta = {
        "time": "2023-11-14T22:13:21",
        "userid": 84,
        "op": op,
        "scn": "14589063118712",
        "rowid": "AAATGpAAIAAItcIAAA",
    }
    meta |= {"trans": "7.0.411499", "seq": seq, "size": 3, "table": "SHOP.ORDERS", "idx": f"{seq}/3"}
    meta |= {"posttime": "2023-11-14T22:13:52"} | members
    message = {"meta": meta, "data": data} | ({} if key is None else {"key": key})
    return json.dumps(message, separators=(",", ":"))


OF_DTS = [
    of_dts("ins", 1, {"ID": "7", "AMOUNT": "1.20", "NOTE": None}),
    of_dts("upd", 2, {"AMOUNT": "2.40"}, {"ID": "7", "AMOUNT": "1.20", "NOTE": None}),
    of_dts("del", 3, {"ID": "7", "AMOUNT": "2.40", "NOTE": None}),
]


@pytest.mark.parametrize("text", OF_DTS)
def test_a_message_of_alibaba_dts_is_one(text):
    """Its `userid`, which OMS does not send, comes back, and so does the order of its members."""
    assert cdcavro.sniff(text) == "oms_shareplex"
    assert json.loads(cdcavro.decode(cdcavro.encode(text, "oms_shareplex"), "oms_shareplex")) == json.loads(text)
    assert avro("oms_shareplex", text)["extras"]["/meta/userid"] == "84"


def test_changes_of_alibaba_dts_have_times_in_utc_and_oracles_order():
    """`scn` is one number, whatever its length, then `idx` and `seq` count; the transaction is Oracle's."""
    changes = [cdcavro.to_changes(text, "oms_shareplex", zone=ZoneInfo("UTC"))[0] for text in OF_DTS]
    assert [(one.op, one.before, one.after) for one in changes] == [
        ("INSERT", None, {"ID": "7", "AMOUNT": "1.20", "NOTE": None}),
        ("UPDATE", {"ID": "7", "AMOUNT": "1.20", "NOTE": None}, {"ID": "7", "AMOUNT": "2.40", "NOTE": None}),
        ("DELETE", {"ID": "7", "AMOUNT": "2.40", "NOTE": None}, None),
    ]
    assert [one.position for one in changes] == [(14_589_063_118_712, place, place) for place in (1, 2, 3)]
    assert {(one.event_time, one.system_time) for one in changes} == {(1_700_000_001_000_000, 1_700_000_032_000_000)}
    assert {(one.source.database, one.source.table, one.transaction) for one in changes} == {
        ("SHOP", "ORDERS", "7.0.411499")
    }
    longer = cdcavro.to_changes(of_dts("ins", 1, {"ID": "8"}, scn="100000000000000"), "oms_shareplex")
    assert in_order([*longer, *changes]) == [*changes, *longer]
    (zoned,) = cdcavro.to_changes(of_dts("ins", 1, {"ID": "8"}, time="2023-11-14T22:13:21Z"), "oms_shareplex")
    assert zoned.event_time == 1_700_000_001_000_000


@pytest.mark.parametrize("op", ["TRUNCATE", "DROP COLUMN", "UPDATE BEFORE", "UPDATE AFTER"])
def test_operations_that_alibaba_dts_documents_without_a_sample_change_no_rows(op):
    """Nothing says what stands beside them; with a row they are rejects."""
    (change,) = cdcavro.to_changes(of_dts(op, 1, {}), "oms_shareplex")
    assert change.op == "OTHER"


def test_rows_of_alibaba_dts_are_typed_by_the_engine():
    """As the exact way types them, by the types and the key that are given."""
    types = TypeOverrides.from_mapping({"SHOP.ORDERS": {"ID": "bigint", "AMOUNT": "decimal(10,2)"}})
    typer = MessageTyper("oms_shareplex", Tables(given=types, zone=ZoneInfo("UTC")))
    rows = [list(typer.add(text, Arrival(file="f", line=1))) for _ in range(2) for text in OF_DTS]
    if COMPILED:
        assert [typer.type_by_pattern(text.encode()) is not None for text in OF_DTS] == [True] * 3
    found = [read(row.payload, row.schema.envelope) for made in rows[3:] for row in made]
    images = [
        tuple(one[side] and (one[side]["ID"], str(one[side]["AMOUNT"])) for side in ("before", "after"))
        for one in found
    ]
    assert images == [(None, (7, "1.20")), ((7, "1.20"), (7, "2.40")), ((7, "2.40"), None)]
