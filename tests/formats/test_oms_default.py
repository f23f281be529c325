"""The facts of `oms_default`: OMS's Default serialization."""

from __future__ import annotations

import pytest

import cdcavro
from cdcavro.change.model import Change, Source
from cdcavro.exact.numbers import ExactNumber
from cdcavro.transcoding.mapping import from_changes, to_changes
from support.roundtrip import assert_fast, assert_golden, assert_round_trip, avro, error_of, exact, golden_cases

_NUMBERS = ["1.20", "-0", "-0.0", "1E400", "1e-999", "10223372036854775806", "9" * 700, f"0.{'3' * 700}"]


@pytest.mark.parametrize("golden", golden_cases("oms_default"))
def test_golden_message_round_trips_and_is_told(golden):
    """Every sample of the document comes back as it was sent and is sniffed as Default."""
    assert_golden("oms_default", golden)


def test_image_that_is_null_and_image_left_out_differ():
    """The absent image is null by convention: left out is noted in extras, and neither is slow."""
    null = '{"prevStruct":null,"postStruct":{},"recordType":"INSERT"}'
    absent = '{"postStruct":{},"recordType":"INSERT"}'
    assert avro("oms_default", null)["extras"] == {}
    assert avro("oms_default", absent)["extras"] == {"/prevStruct": ""}
    assert_fast("oms_default", null)
    assert_fast("oms_default", absent)


def test_empty_image_is_not_a_missing_one():
    """A row without columns is an empty map."""
    assert avro("oms_default", '{"prevStruct":{},"recordType":"UPDATE"}')["prevStruct"] == {}


@pytest.mark.parametrize("sent", ["160934467100001", '"160934467100001"', '"007"', '""'])
def test_store_data_sequence_is_a_number_or_a_string(sent):
    """`storeDataSequence` keeps which of the two it was, without a note and without a slow path."""
    message = f'{{"prevStruct":null,"postStruct":null,"allMetaData":{{"storeDataSequence":{sent}}},"recordType":"ROW"}}'
    sequence = avro("oms_default", message)["allMetaData"]["storeDataSequence"]
    assert sequence == (sent.strip('"') if '"' in sent else int(sent))
    assert_fast("oms_default", message)


@pytest.mark.parametrize(
    ("sent", "converted"), [("1.0", 1), ("1.5", "1.5"), ("18446744073709551616", "18446744073709551616"), ("-0", 0)]
)
def test_store_data_sequence_of_another_kind_is_converted(sent, converted):
    """A number that is no long is a long if it converts exactly, else a string, and comes back as sent."""
    record = avro("oms_default", f'{{"allMetaData":{{"storeDataSequence":{sent}}},"recordType":"ROW"}}')
    assert record["allMetaData"]["storeDataSequence"] == converted
    assert record["extras"]["/allMetaData/storeDataSequence"] == sent


@pytest.mark.parametrize("type", ["INSERT/UPDATE", "insert", "OTHER", " ", "EHEARTBEAT"])
def test_unknown_operation_is_kept(type):
    """A `recordType` that is no symbol reads as OTHER, and its text stands in extras."""
    record = avro("oms_default", f'{{"prevStruct":null,"postStruct":null,"recordType":"{type}"}}')
    assert record["recordType"] == "OTHER"
    assert record["extras"] == {"/recordType": f'"{type}"'}


@pytest.mark.parametrize("sent", ["7", "true", "1.50"])
def test_operation_that_is_no_text_is_kept(sent):
    """A number or boolean as `recordType` reads as OTHER and comes back as it was."""
    assert avro("oms_default", f'{{"recordType":{sent}}}')["extras"]["/recordType"] == sent


def test_statement_is_a_column():
    """A DDL message has its statement in the column `ddl`, and a row may have a column of that name too."""
    ddl = '{"prevStruct":null,"postStruct":{"ddl":"ALTER TABLE t"},"allMetaData":{},"recordType":"DDL"}'
    assert avro("oms_default", ddl)["postStruct"] == {"ddl": "ALTER TABLE t"}
    row = avro("oms_default", '{"postStruct":{"ddl":"x","recordType":"DDL","allMetaData":null},"recordType":"INSERT"}')
    assert row["postStruct"] == {"ddl": "x", "recordType": "DDL", "allMetaData": None}


def test_heartbeat_is_its_type_alone():
    """A heartbeat may have no images and no metadata."""
    assert avro("oms_default", '{"recordType":"HEARTBEAT"}')["allMetaData"] is None


def test_row_of_a_full_load():
    """In the full phase `checkpoint` holds key values and the incremental members are left out, without a note."""
    meta = '"checkpoint":"3\\u0001129","record_primary_key":"a","source_identity":"1","record_primary_value":"3",'
    message = f'{{"prevStruct":null,"postStruct":{{"a":3}},"allMetaData":{{{meta}'
    record = avro("oms_default", message + '"dbType":"OB_MYSQL","table_name":"t","db":"x.y"},"recordType":"ROW"}')
    assert record["recordType"] == "ROW"
    assert record["allMetaData"]["checkpoint"] == "3\x01129"
    assert record["extras"] == {}


def test_incremental_members_may_be_null():
    """`timestamp`, `uniqueId` and `storeDataSequence` are left out by convention; null in them comes back too."""
    message = '{"allMetaData":{"timestamp":null,"uniqueId":null,"storeDataSequence":null},"recordType":"INSERT"}'
    extras = avro("oms_default", message)["extras"]
    assert {pointer for pointer, text in extras.items() if text == "null"} == {
        "/allMetaData/timestamp",
        "/allMetaData/uniqueId",
        "/allMetaData/storeDataSequence",
    }
    assert_fast("oms_default", message)


@pytest.mark.parametrize("number", _NUMBERS)
def test_numbers_come_back_digit_for_digit(number):
    """A number that neither a long nor a double gives back is kept as its text."""
    sent = f'{{"postStruct":{{"n":{number},"list":[{number},{{"n":{number}}}]}},"recordType":"INSERT"}}'
    value = avro("oms_default", sent)["postStruct"]["n"]
    assert value == (-0.0 if number == "-0.0" else {"text": number})


def test_timestamp_sent_as_a_number_is_text_in_the_field():
    """Times are seconds as strings; a number is converted and comes back as a number."""
    record = avro("oms_default", '{"allMetaData":{"timestamp":1609344671.0},"recordType":"INSERT"}')
    assert record["allMetaData"]["timestamp"] == "1609344671.0"
    assert record["extras"]["/allMetaData/timestamp"] == "1609344671.0"


def test_unknown_members_are_kept_where_they_were():
    """Members that the schema does not name stand in extras by their pointer, at every level."""
    message = '{"recordType":"INSERT","extras":[1.0],"a/b~c":null,"allMetaData":{"":{"x":1E2}}}'
    extras = avro("oms_default", message)["extras"]
    assert extras["/extras"] == "[1.0]"
    assert extras["/a~1b~0c"] == "null"
    assert extras["/allMetaData/"] == '{"x":1E2}'


def test_light_type_is_a_column_here():
    """In Default `__light_type` has no meaning: it is an object in a column."""
    message = '{"postStruct":{"__light_type":{"a":{"schemaType":"INT"}}},"recordType":"INSERT"}'
    assert avro("oms_default", message)["postStruct"]["__light_type"] == {"text": '{"a":{"schemaType":"INT"}}'}


@pytest.mark.parametrize(
    ("sent", "sentence"),
    [
        ("{}", "oms_default: $.recordType: expected a required member, got none"),
        ("[]", "oms_default: $: expected object, got array"),
        ('"x"', "oms_default: $: expected object, got string"),
        ("null", "oms_default: $: expected object, got null"),
        ('{"recordType":["x"]}', "oms_default: $.recordType: expected a symbol, got array"),
        ('{"recordType":"DDL","postStruct":7}', "oms_default: $.postStruct: expected object, got number"),
        ('{"recordType":"DDL","postStruct":[]}', "oms_default: $.postStruct: expected object, got array"),
        ('{"recordType":"DDL","allMetaData":""}', "oms_default: $.allMetaData: expected object, got string"),
        ('{"recordType":"DDL","allMetaData":{"db":{}}}', "oms_default: $.allMetaData.db: expected string, got object"),
        (
            '{"recordType":"DDL","allMetaData":{"storeDataSequence":{}}}',
            "oms_default: $.allMetaData.storeDataSequence: expected long or string, got object",
        ),
    ],
)
def test_structure_is_not_bent(sent, sentence):
    """What is not shaped like a Default message is refused with its place."""
    assert error_of(cdcavro.encode, sent, "oms_default") == sentence


def test_order_of_members_does_not_matter():
    """`recordType` may come first or last."""
    assert_round_trip("oms_default", '{"recordType":"INSERT","postStruct":{"a":1}}')
    assert_round_trip("oms_default", '{"postStruct":{"a":1},"recordType":"INSERT"}')


@pytest.mark.parametrize("target", ["datahub_blob", "oms_canal", "oms_dataworks"])
def test_no_key_is_no_column_with_an_empty_name(target):
    """`record_primary_key` is empty then, and other formats have an empty list."""
    text = '{"allMetaData":{"record_primary_key":""},"prevStruct":null,"postStruct":{"a":1},"recordType":"INSERT"}'
    (change,) = to_changes(text, "oms_default")
    assert change.key == ()
    (back,) = from_changes(to_changes(from_changes([change], target)[0], target), "oms_default")
    assert exact(back)["allMetaData"]["record_primary_key"] == ""


def test_a_tenant_without_a_database_has_no_place():
    """`db` is a database, with its tenant before it."""
    (text,) = from_changes([Change(op="INSERT", source=Source(tenant="x"), after={"a": 1})], "oms_default")
    assert exact(text)["allMetaData"]["db"] is None


@pytest.mark.parametrize(
    ("given", "names", "values"),
    [
        ({"key": ("a", "b"), "after": {"b": "x", "c": 3, "a": 1}}, "a\x01b", "1\x01x"),
        ({"key": ("a",), "before": {"a": 1}, "after": {"a": 2}}, "a", "1"),
        ({"key": ("a",), "before": {"a": ExactNumber("1.20")}}, "a", "1.20"),
        ({"key": ("a", "b"), "after": {"a": 1}}, "a\x01b", None),
        ({"key": ("a", "b"), "after": {"a": 1, "b": None}}, "a\x01b", None),
        ({"key": ("a",)}, "a", None),
        ({"key": (), "after": {"a": 1}}, "", None),
        ({"after": {"a": 1}}, None, None),
    ],
)
def test_key_values_are_written_from_the_row(given, names, values):
    """Of the row before the change, if there is one; not at all if one is missing."""
    (text,) = from_changes([Change(op="UPDATE", **given)], "oms_default")
    meta = exact(text)["allMetaData"]
    assert (meta["record_primary_key"], meta["record_primary_value"]) == (names, values)
