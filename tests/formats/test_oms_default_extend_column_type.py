"""The facts of `oms_default_extend_column_type`: Default with declared types inside the row images."""

from __future__ import annotations

import pytest

import cdcavro
from support.roundtrip import assert_fast, assert_golden, avro, error_of, golden_cases

_NAME = "oms_default_extend_column_type"


def _message(row: str) -> str:
    return f'{{"prevStruct":null,"postStruct":{row},"recordType":"INSERT"}}'


@pytest.mark.parametrize("golden", golden_cases(_NAME))
def test_golden_message_round_trips_and_is_told(golden):
    """Every sample of the document comes back as it was sent and is told from plain Default."""
    assert_golden(_NAME, golden)


def test_light_type_is_not_a_column():
    """`__light_type` has a field of its own; the columns stand beside it in a map."""
    row = avro(_NAME, _message('{"__light_type":{"a":{"schemaType":"TINYINT"}},"a":1}'))["postStruct"]
    assert row == {"__light_type": {"a": {"schemaType": "TINYINT"}}, "columns": {"a": 1}}


def test_delete_has_its_types_in_the_image_before():
    """A DELETE says the types in `prevStruct`."""
    message = '{"prevStruct":{"a":1,"__light_type":{"a":{"schemaType":"INT"}}},"postStruct":null,"recordType":"DELETE"}'
    record = avro(_NAME, message)
    assert record["prevStruct"]["__light_type"] == {"a": {"schemaType": "INT"}}
    assert record["extras"] == {}
    assert cdcavro.sniff(message) == _NAME


def test_columns_named_like_our_fields_are_columns():
    """Columns called `columns`, `extras` and `recordType` are columns as any other."""
    row = avro(_NAME, _message('{"columns":{"a":1},"extras":"x","recordType":"ROW","":null}'))["postStruct"]
    assert row["columns"] == {"columns": {"text": '{"a":1}'}, "extras": "x", "recordType": "ROW", "": None}


@pytest.mark.parametrize(
    "row",
    [
        "{}",
        '{"__light_type":{}}',
        '{"__light_type":null}',
        '{"__light_type":{"a":null,"b":{},"c":{"schemaType":null}},"a":1}',
        '{"a":1,"b":null,"c":"null"}',
    ],
)
def test_types_may_be_empty_null_or_absent(row):
    """Whatever of the types is empty, null or left out comes back so, without a slow path."""
    assert_fast(_NAME, _message(row))


def test_what_a_type_says_beside_its_name_is_kept():
    """An unknown member of a type stands in extras by its pointer, the column's name escaped."""
    record = avro(_NAME, _message('{"__light_type":{"a/b":{"schemaType":"DECIMAL","precision":10}}}'))
    assert record["extras"] == {"/postStruct/__light_type/a~1b/precision": "10"}


@pytest.mark.parametrize(
    "message",
    ['{"recordType":"HEARTBEAT"}', '{"prevStruct":null,"postStruct":{"ddl":"DROP TABLE t"},"recordType":"DDL"}'],
)
def test_message_without_types_looks_like_default(message):
    """DDL and heartbeats have no types: they convert here too, and alone they are told as Default."""
    assert_fast(_NAME, message)
    assert cdcavro.sniff(message) == "oms_default"


def test_unknown_operation_is_kept():
    """A `recordType` that is no symbol reads as OTHER, and its text stands in extras."""
    record = avro(_NAME, '{"prevStruct":null,"postStruct":null,"recordType":"REPLACE"}')
    assert (record["recordType"], record["extras"]) == ("OTHER", {"/recordType": '"REPLACE"'})


@pytest.mark.parametrize("sequence", ["1609344671000", '"1609344671000"'])
def test_store_data_sequence_is_a_number_or_a_string(sequence):
    """`storeDataSequence` keeps which of the two it was."""
    assert_fast(_NAME, f'{{"allMetaData":{{"storeDataSequence":{sequence}}},"recordType":"INSERT"}}')


@pytest.mark.parametrize(
    ("row", "sentence"),
    [
        ("[]", f"{_NAME}: $.postStruct: expected object, got array"),
        ('{"__light_type":"x"}', f"{_NAME}: $.postStruct.__light_type: expected object, got string"),
        ('{"__light_type":{"a":"INT"}}', f"{_NAME}: $.postStruct.__light_type.a: expected object, got string"),
        (
            '{"__light_type":{"a":{"schemaType":[]}}}',
            f"{_NAME}: $.postStruct.__light_type.a.schemaType: expected string, got array",
        ),
    ],
)
def test_structure_is_not_bent(row, sentence):
    """What is not shaped like a typed row is refused with its place."""
    assert error_of(cdcavro.encode, _message(row), _NAME) == sentence
