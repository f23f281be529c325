"""The facts of `oms_dataworks`: OMS's Dataworks serialization, version 2.0."""

from __future__ import annotations

import pytest

import cdcavro
from support.roundtrip import assert_fast, assert_golden, avro, error_of, golden_cases


def _payload(members: str) -> str:
    return f'{{"version":"2.0","payload":{{"before":null,"after":null,"ddl":null,{members}}}}}'


@pytest.mark.parametrize("golden", golden_cases("oms_dataworks"))
def test_golden_message_round_trips_and_is_told(golden):
    """Every sample of the document comes back as it was sent and is told from DataHub's."""
    assert_golden("oms_dataworks", golden)


def test_heartbeat_has_no_schema():
    """A heartbeat holds neither schema nor images; what is usually null there is noted as absent."""
    message = '{"version":"2.0","payload":{"timestamp":{"eventTime":1620457659000},"op":"HEARTBEAT"}}'
    record = avro("oms_dataworks", message)
    assert record["schema"] is None
    assert record["extras"] == {"/payload/before": "", "/payload/after": "", "/payload/ddl": ""}
    assert_fast("oms_dataworks", message)


@pytest.mark.parametrize("instant", ["1590315269000.123456789", "1590315269000.000000000", "-1.000000001"])
def test_instant_with_nanoseconds_is_exact(instant):
    """Milliseconds with nine digits behind the point do not go through a float."""
    record = avro(
        "oms_dataworks", _payload(f'"op":"INSERT","after":{{"data":{{"ts":{instant}}}}}').replace('"after":null,', "")
    )
    value = record["payload"]["after"]["data"]["ts"]
    assert value == ({"text": instant} if instant != "-1.000000001" else -1.000000001)


def test_scn_may_be_the_text_null():
    """The string `"null"`, null and absence are three things."""
    text, null, absent = (
        avro("oms_dataworks", _payload(s + '"op":"QUERY"')) for s in ('"scn":"null",', '"scn":null,', "")
    )
    assert text["payload"]["scn"] == "null"
    assert (null["payload"]["scn"], null["extras"]) == (None, {"/payload/scn": "null"})
    assert (absent["payload"]["scn"], absent["extras"]) == (None, {})


def test_times_are_numbers_of_their_own_units():
    """`checkpointTime` in seconds and the others in milliseconds are carried as they are."""
    record = avro(
        "oms_dataworks", _payload('"op":"INSERT","timestamp":{"eventTime":1,"systemTime":2,"checkpointTime":3}')
    )
    assert record["payload"]["timestamp"] == {"eventTime": 1, "systemTime": 2, "checkpointTime": 3}


def test_column_list_may_hold_nulls():
    """A null among the columns or keys stays where it is."""
    message = '{"schema":{"column":[null,{"name":"a","type":null},{}],"pk":[null,"a"]},"payload":{"op":"INSERT"}}'
    schema = avro("oms_dataworks", message)["schema"]
    assert schema["column"] == [None, {"name": "a", "type": None}, {"name": None, "type": None}]
    assert schema["pk"] == [None, "a"]
    assert_fast("oms_dataworks", message)


def test_extensions_are_values_of_any_kind():
    """`extend` takes whatever a sender puts there."""
    message = '{"payload":{"op":"INSERT"},"extend":{"load_fm":"CIBS","n":1.20,"list":[1],"none":null}}'
    assert avro("oms_dataworks", message)["extend"] == {
        "load_fm": "CIBS",
        "n": {"text": "1.20"},
        "list": {"text": "[1]"},
        "none": None,
    }


@pytest.mark.parametrize("op", ["insert", "TRUNCATE TABLE", "OTHER", "MHEARTBEAT"])
def test_unknown_operation_is_kept(op):
    """An `op` that is no symbol reads as OTHER, and its text stands in extras."""
    record = avro("oms_dataworks", _payload(f'"op":"{op}"'))
    assert record["payload"]["op"] == "OTHER"
    assert record["extras"] == {"/payload/op": f'"{op}"'}


def test_operations_of_other_formats_symbols_are_known():
    """Every operation that the document names is a symbol: none of them needs extras."""
    for op in ["TRANSACTION_BEGIN", "TRANSACTION_END", "CREATE", "ERASE", "CINDEX", "XAROLLBACK"]:
        assert avro("oms_dataworks", _payload(f'"op":"{op}"'))["extras"] == {}


def test_image_without_data_is_not_a_missing_image():
    """`before: {}` , `before: {"data": {}}` and `before: null` are three things."""
    payloads = {
        assert_fast("oms_dataworks", f'{{"payload":{{"before":{before},"op":"UPDATE"}}}}')
        for before in ("{}", '{"data":{}}', '{"data":null}', "null")
    }
    assert len(payloads) == 4


def test_member_called_extras_is_not_ours():
    """`extras` as a member of the message, of its payload and of an image is an unknown member each time."""
    message = '{"payload":{"op":"INSERT","extras":1,"after":{"extras":2,"data":{"extras":3}}},"extras":{}}'
    record = avro("oms_dataworks", message)
    kept = {pointer: text for pointer, text in record["extras"].items() if text}
    assert kept == {"/payload/extras": "1", "/payload/after/extras": "2", "/extras": "{}"}
    assert record["payload"]["after"]["data"] == {"extras": 3}


@pytest.mark.parametrize(
    ("sent", "sentence"),
    [
        ('{"version":"2.0"}', "oms_dataworks: $.payload: expected a required member, got none"),
        ('{"payload":null}', "oms_dataworks: $.payload: expected a required member, got null"),
        ('{"payload":{}}', "oms_dataworks: $.payload.op: expected a required member, got none"),
        ('{"payload":{"op":null}}', "oms_dataworks: $.payload.op: expected a required member, got null"),
        ('{"payload":[]}', "oms_dataworks: $.payload: expected object, got array"),
        (
            '{"payload":{"op":"X","after":{"data":[]}}}',
            "oms_dataworks: $.payload.after.data: expected object, got array",
        ),
        (
            '{"payload":{"op":"X"},"schema":{"column":[{"name":"a"},"b"]}}',
            "oms_dataworks: $.schema.column[1]: expected object, got string",
        ),
        (
            '{"payload":{"op":"X","timestamp":{"eventTime":"now"}}}',
            "oms_dataworks: $.payload.timestamp.eventTime: expected long, got string 'now'",
        ),
    ],
)
def test_structure_is_not_bent(sent, sentence):
    """What is not shaped like a Dataworks message is refused with its place."""
    assert error_of(cdcavro.encode, sent, "oms_dataworks") == sentence
