"""The facts of `oms_canal`: OMS's Canal serialization, which Alibaba Canal's flat messages fit as well."""

from __future__ import annotations

import json

import pytest

import cdcavro
from support.messages import lines, shop_canal
from support.roundtrip import assert_fast, assert_golden, assert_round_trip, avro, error_of, golden_cases, left


@pytest.mark.parametrize("golden", golden_cases("oms_canal"))
def test_golden_message_round_trips_and_is_told(golden):
    """Every sample of the document comes back as it was sent and is sniffed as Canal."""
    assert_golden("oms_canal", golden)


def test_real_messages_round_trip():
    """All 188 messages that Canal itself made of a MySQL binlog come back as they were sent, but are told as its own."""
    messages = shop_canal()
    assert len(messages) == 188
    for message in messages:
        assert_round_trip("oms_canal", message)
        assert cdcavro.sniff(message) == "canal"


def test_real_messages_are_taken_by_the_engine():
    """JSON inside a column's text does not slow a message down."""
    messages = shop_canal()
    assert sum(b'\\":' in message for message in messages) > 2
    assert left("oms_canal", messages) == []


def test_public_messages_round_trip(shared_samples):
    """Canal messages from the tests of Paimon and Flink CDC come back as they were sent."""
    messages = lines(shared_samples / "public-canal.jsonl")
    assert len(messages) == 68
    for message in messages:
        assert_round_trip("oms_canal", message)
    assert [cdcavro.sniff(message) for message in messages] == ["canal"] * 48 + ["oms_canal"] * 20


def test_only_the_type_is_required():
    """A message of a type and nothing else has null in every other field and nothing in extras but absent members."""
    record = avro("oms_canal", '{"type":"GTID"}')
    assert record.pop("type") == "GTID"
    assert record.pop("extras") == dict.fromkeys(["/pkNames", "/sqlType", "/mysqlType", "/data", "/old"], "")
    assert set(record.values()) == {None}


@pytest.mark.parametrize("member", ["gtid", "old", "data", "pkNames", "es", "isDdl", "database"])
def test_null_and_absent_are_both_ordinary(member):
    """Whichever of null and absence a sender writes, it comes back, without a slow path."""
    absent = '{"type":"UPDATE"}'
    null = f'{{"type":"UPDATE","{member}":null}}'
    assert assert_fast("oms_canal", absent) != assert_fast("oms_canal", null)


def test_rows_and_their_old_values_stand_side_by_side():
    """A column missing from `old` is unchanged, one that is null in it was NULL, and neither becomes the other."""
    record = avro("oms_canal", '{"type":"UPDATE","data":[{"a":1,"b":2},{"a":3,"b":null}],"old":[{"b":null},{"a":"4"}]}')
    assert record["data"] == [{"a": 1, "b": 2}, {"a": 3, "b": None}]
    assert record["old"] == [{"b": None}, {"a": "4"}]


def test_row_may_be_null():
    """A null in place of a row is a null, not an empty row."""
    message = '{"type":"UPDATE","data":[null,{}],"old":[null]}'
    assert avro("oms_canal", message)["data"] == [None, {}]
    assert_fast("oms_canal", message)


def test_statement_message():
    """A DDL message keeps its statement, its kind and that it is one."""
    message = '{"data":null,"database":"shop","es":1,"id":2,"isDdl":true,"mysqlType":null,"old":null,"pkNames":null,'
    record = avro("oms_canal", message + '"sql":"CREATE INDEX i ON t (a)","sqlType":null,"table":"t","type":"CINDEX"}')
    assert (record["type"], record["isDdl"], record["sql"]) == ("CINDEX", True, "CREATE INDEX i ON t (a)")
    assert record["extras"] == {}


@pytest.mark.parametrize("format", ["oms_canal", "canal"])
@pytest.mark.parametrize("type", ["INIT", "INSERT", "x"])
def test_a_row_in_a_statement_is_refused(format, type):
    """The message says that it is a statement (`isDdl`), whose text would be lost."""
    sql = "ALTER TABLE t ADD a int"
    line = json.dumps({"type": type, "isDdl": True, "sql": sql, "table": "t", "data": [{"id": "1"}]})
    sentence = f"{format}: $.data: expected no row in a statement (isDdl), got some"
    assert error_of(cdcavro.to_changes, line, format) == sentence


@pytest.mark.parametrize("type", ["DDL", "insert", "INIT_DDL", "", "OTHER", "\u0000"])
def test_unknown_operation_is_kept(type):
    """A `type` that is no symbol reads as OTHER; the text itself stands in extras and comes back."""
    text = cdcavro.encode(f'{{"type":"{type}"}}'.replace("\0", "\\u0000"), "oms_canal")
    record = avro("oms_canal", cdcavro.decode(text, "oms_canal"))
    assert record["type"] == "OTHER"
    assert record["extras"]["/type"] == f'"{type}"'.replace("\0", "\\u0000")


def test_alibaba_adds_id_and_gtid():
    """`id` and `gtid` have fields of their own."""
    record = avro("oms_canal", '{"type":"INSERT","id":7,"gtid":"3E11FA47-71CA-11E1-9E33-C80AA9429562:23"}')
    assert (record["id"], record["gtid"]) == (7, "3E11FA47-71CA-11E1-9E33-C80AA9429562:23")


def test_member_called_extras_is_not_ours():
    """A message's own `extras` goes into extras as any unknown member does."""
    assert avro("oms_canal", '{"type":"INSERT","extras":{"/type":"x"}}')["extras"]["/extras"] == '{"/type":"x"}'


def test_column_called_like_a_member_is_a_column():
    """Columns named `type`, `data` and `extras` are columns."""
    row = avro("oms_canal", '{"type":"INSERT","data":[{"type":"a","data":null,"extras":"{}","":0}]}')["data"][0]
    assert row == {"type": "a", "data": None, "extras": "{}", "": 0}


def test_binary_columns_are_text():
    """Alibaba's Canal sends bytes as ISO-8859-1 characters: C1 controls and U+0085 come back."""
    characters = "".join(map(chr, [*range(32, 34), *range(35, 92), *range(93, 256)]))
    assert avro("oms_canal", f'{{"type":"INSERT","data":[{{"b":"{characters}"}}]}}')["data"] == [{"b": characters}]


def test_scalar_of_another_type_is_converted_and_kept():
    """Numbers sent as text, and text sent as a number, are typed in the field and come back as sent."""
    sent = '{"type":"INSERT","es":"1609344671000","ts":5.0,"isDdl":"false","table":12.50,"sqlType":{"a/b":"4"}}'
    record = avro("oms_canal", sent)
    assert (record["es"], record["ts"], record["isDdl"], record["table"]) == (1609344671000, 5, False, "12.50")
    assert record["sqlType"] == {"a/b": 4}
    kept = {pointer: text for pointer, text in record["extras"].items() if text}
    assert kept == {
        "/es": '"1609344671000"',
        "/ts": "5.0",
        "/isDdl": '"false"',
        "/table": "12.50",
        "/sqlType/a~1b": '"4"',
    }


@pytest.mark.parametrize(
    ("sent", "sentence"),
    [
        ('{"data":[]}', "oms_canal: $.type: expected a required member, got none"),
        ('{"type":null}', "oms_canal: $.type: expected a required member, got null"),
        ('{"type":"INSERT","data":{}}', "oms_canal: $.data: expected array, got object"),
        ('{"type":"INSERT","data":[1]}', "oms_canal: $.data[0]: expected object, got number"),
        ('{"type":"INSERT","table":[]}', "oms_canal: $.table: expected string, got array"),
        ('{"type":"INSERT","es":1.5}', "oms_canal: $.es: expected long, got number '1.5'"),
        ('{"type":"INSERT","es":""}', "oms_canal: $.es: expected long, got string ''"),
        ('{"type":"INSERT","isDdl":1}', "oms_canal: $.isDdl: expected boolean, got number '1'"),
        (
            '{"type":"INSERT","sqlType":{"a b":2147483648}}',
            "oms_canal: $.sqlType[\"a b\"]: expected int, got number '2147483648'",
        ),
        ('{"type":{"a":1}}', "oms_canal: $.type: expected a symbol, got object"),
    ],
)
def test_structure_is_not_bent(sent, sentence):
    """What is not shaped like a Canal message is refused with its place."""
    assert error_of(cdcavro.encode, sent, "oms_canal") == sentence


@pytest.mark.parametrize("format", ["canal", "oms_canal"])
@pytest.mark.parametrize(("codes", "wanted"), [((), "bid"), ("id", "idb"), ("dib", "dib"), ("bid", "bid")])
def test_the_order_of_columns_is_that_of_their_own_message(format: str, codes: tuple[str, ...] | str, wanted: str):
    """Whatever came before with the same columns in another order, as behind an ALTER TABLE ... FIRST."""
    for types in ("idb", "bid", "dbi", "bid"):
        stated = {"mysqlType": dict.fromkeys(types, "int"), "sqlType": dict.fromkeys(codes, 4)}
        message = {"type": "INSERT", "database": "d", "table": "t", "data": [dict.fromkeys(types, "1")], **stated}
        (found,) = cdcavro.to_changes(json.dumps(message), format)
    assert "".join(column.name for column in found.columns) == wanted
