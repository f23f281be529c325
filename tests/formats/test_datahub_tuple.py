"""The facts of `datahub_tuple`: the records of DataHub Tuple topics."""

from __future__ import annotations

import pytest
from msgspec import UNSET

import cdcavro
from cdcavro.wire.formats import get_format
from support.roundtrip import assert_fast, assert_golden, avro, error_of, exact, golden_cases

_METADATA = {
    "_sequence_id_",
    "_operation_type_",
    "_excute_time_",
    "_source_table_",
    "_before_image_",
    "_after_image_",
}


@pytest.mark.parametrize("golden", golden_cases("datahub_tuple"))
def test_golden_message_round_trips_and_is_told(golden):
    """Every row of the document's sample table comes back as it was and is sniffed as Tuple."""
    assert_golden("datahub_tuple", golden)


def test_the_tables_own_columns_stand_beside_the_metadata():
    """Whatever is no metadata column goes into the map of columns."""
    record = avro(
        "datahub_tuple", '{"_sequence_id_":"1","_operation_type_":"I","_before_image_":"N","id":1,"name":null}'
    )
    assert record["columns"] == {"id": 1, "name": None}
    assert (record["_sequence_id_"], record["_operation_type_"], record["_before_image_"]) == ("1", "I", "N")
    assert record["extras"] == {}


@pytest.mark.parametrize("column", ["columns", "extras", "_sequence_id", "_execute_time_", "", "a/b", "\\u0000"])
def test_column_named_nearly_like_a_field_is_a_column(column):
    """Columns called `columns` and `extras`, and a metadata column spelled otherwise, are the table's own."""
    record = avro("datahub_tuple", f'{{"{column}":"x"}}')
    assert list(record["columns"].values()) == ["x"]
    assert record["extras"] == {}


@pytest.mark.parametrize("message", ["{}", '{"id":1}', '{"_source_table_":"t"}'])
def test_metadata_columns_may_be_absent(message):
    """A topic without metadata columns converts; it is for `sniff` to say that it tells nothing."""
    record = avro("datahub_tuple", message)
    assert {name for name in _METADATA if record[name] is not None} <= {"_source_table_"}
    assert_fast("datahub_tuple", message)


@pytest.mark.parametrize("column", sorted(_METADATA))
def test_metadata_column_may_be_null(column):
    """A null metadata column is not an absent one, and neither is slow."""
    message = f'{{"{column}":null,"id":1}}'
    assert avro("datahub_tuple", message)["extras"] == {f"/{column}": "null"}
    assert_fast("datahub_tuple", message)


def test_both_halves_of_an_update_share_a_sequence_id():
    """The images are told apart by Y and N."""
    before = avro(
        "datahub_tuple", '{"_sequence_id_":"5","_operation_type_":"U","_before_image_":"Y","_after_image_":"N"}'
    )
    after = avro(
        "datahub_tuple", '{"_sequence_id_":"5","_operation_type_":"U","_before_image_":"N","_after_image_":"Y"}'
    )
    assert before["_sequence_id_"] == after["_sequence_id_"]
    assert (before["_before_image_"], after["_before_image_"]) == ("Y", "N")


@pytest.mark.parametrize("op", ["i", "INSERT", "", "OTHER"])
def test_unknown_operation_is_kept(op):
    """An operation that is no symbol reads as OTHER, and its text stands in extras."""
    record = avro("datahub_tuple", f'{{"_operation_type_":"{op}"}}')
    assert (record["_operation_type_"], record["extras"]) == ("OTHER", {"/_operation_type_": f'"{op}"'})


def test_unknown_image_mark_is_kept():
    """An image mark beyond Y and N reads as OTHER; a boolean does too."""
    record = avro("datahub_tuple", '{"_before_image_":"X","_after_image_":true}')
    assert (record["_before_image_"], record["_after_image_"]) == ("OTHER", "OTHER")
    assert record["extras"] == {"/_before_image_": '"X"', "/_after_image_": "true"}


def test_sequence_sent_as_a_number_comes_back_as_a_number():
    """The sequence id is text in the field, whatever came."""
    record = avro("datahub_tuple", '{"_sequence_id_":1649991610688000002,"_excute_time_":"1649991774000"}')
    assert (record["_sequence_id_"], record["_excute_time_"]) == ("1649991610688000002", 1649991774000)


def test_columns_hold_any_value():
    """A column may hold numbers of any length, objects and arrays."""
    record = avro("datahub_tuple", '{"a":1.0,"b":1.00,"c":[1E5],"d":true,"e":18446744073709551616}')
    assert record["columns"] == {
        "a": 1.0,
        "b": {"text": "1.00"},
        "c": {"text": "[1E5]"},
        "d": True,
        "e": {"text": "18446744073709551616"},
    }


@pytest.mark.parametrize(
    ("sent", "sentence"),
    [
        ("[]", "datahub_tuple: $: expected object, got array"),
        ('{"_sequence_id_":{}}', "datahub_tuple: $._sequence_id_: expected string, got object"),
        ('{"_operation_type_":["I"]}', "datahub_tuple: $._operation_type_: expected a symbol, got array"),
        ('{"_excute_time_":"yesterday"}', "datahub_tuple: $._excute_time_: expected long, got string 'yesterday'"),
    ],
)
def test_structure_is_not_bent(sent, sentence):
    """What does not fit a metadata column is refused with its place."""
    assert error_of(cdcavro.encode, sent, "datahub_tuple") == sentence


@pytest.mark.parametrize("operation", ['"_operation_type_":"I",', ""])
def test_a_row_with_the_number_of_a_full_load_is_one(operation):
    """As in Blob: nothing orders it, and it does not wait for another half."""
    text = f'{{"_sequence_id_":"-1",{operation}"_before_image_":"N","_after_image_":"Y","_excute_time_":-1,"id":1}}'
    (change,) = cdcavro.to_changes(text, "datahub_tuple")
    assert (change.op, change.half, change.position, change.event_time) == ("SNAPSHOT", None, None, None)
    assert [exact(one) for one in cdcavro.from_changes([change], "datahub_tuple")] == [exact(text)]
    (row,) = cdcavro.transcode(text, "datahub_tuple", "oms_default").texts
    assert exact(row)["recordType"] == "ROW"


def test_a_row_of_a_full_load_has_its_number_from_any_format():
    """And comes back as one."""
    (text,) = cdcavro.transcode('{"recordType":"ROW","postStruct":{"id":1}}', "oms_default", "datahub_tuple").texts
    assert exact(text)["_sequence_id_"] == "-1"
    assert cdcavro.to_changes(text, "datahub_tuple")[0].op == "SNAPSHOT"


def test_a_member_that_is_left_out_of_a_record_is_no_column():
    """`UNSET` stands for a member that is not there, in records made by hand too."""
    format = get_format("datahub_tuple")
    payload = format.write({"_source_table_": UNSET, "a": "x"})
    assert format.read(payload) == {"a": "x"}
    assert format.read(format.write({"_source_table_": UNSET})) == {}
