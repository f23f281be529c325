"""Records of pydatahub as messages of `datahub_tuple`, and back."""

from __future__ import annotations

import subprocess
import sys
from decimal import Decimal

import pytest
from datahub.models import FieldType, RecordSchema, TupleRecord

import cdcavro
from cdcavro.wire.pydatahub import tuple_record, tuple_text
from support.roundtrip import error_of

NAMES = ["_sequence_id_", "_before_image_", "_after_image_", "id", "price", "rate", "ok", "at", "note"]
TYPES = [FieldType.STRING] * 3 + [
    FieldType.BIGINT,
    FieldType.DECIMAL,
    FieldType.DOUBLE,
    FieldType.BOOLEAN,
    FieldType.TIMESTAMP,
    FieldType.STRING,
]
SCHEMA = RecordSchema.from_lists(NAMES, TYPES)
VALUES = ["1649991610688000000", "N", "Y", 2**63 - 1, Decimal("1.20"), 0.1, True, 1649991726000000, None]
TEXT = (
    b'{"_sequence_id_":"1649991610688000000","_before_image_":"N","_after_image_":"Y","id":9223372036854775807,'
    b'"price":1.20,"rate":0.1,"ok":true,"at":1649991726000000,"note":null}'
)


def test_a_record_is_a_tuple_message_with_its_digits():
    """And its change has the columns beside the metadata."""
    text = tuple_text(TupleRecord(schema=SCHEMA, values=VALUES))
    assert text == TEXT
    (change,) = cdcavro.to_changes(text, "datahub_tuple")
    assert list(change.after) == NAMES[3:]
    assert cdcavro.decode(cdcavro.encode(text, "datahub_tuple"), "datahub_tuple").count(b"1.20") == 1


def test_a_tuple_message_is_a_record_of_a_schema():
    """Values have the Python types that pydatahub gives them."""
    record = tuple_record(TEXT, SCHEMA)
    assert list(record.values) == VALUES
    assert [type(value) for value in record.values] == [type(value) for value in VALUES]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("[]", "datahub_tuple: $: expected object, got array"),
        ('{"x":1}', "datahub_tuple: $.x: expected a column of the schema, got none"),
        ('{"id":1.5}', "datahub_tuple: $.id: expected bigint, got number '1.5'"),
        (
            '{"rate":0.10000000000000000001}',
            "datahub_tuple: $.rate: expected double, got number '0.10000000000000000001'",
        ),
        ('{"ok":1}', "datahub_tuple: $.ok: expected boolean, got number '1'"),
        ('{"tiny":300}', "datahub_tuple: $.tiny: expected tinyint, got number '300'"),
        (
            '{"at":-99999999999999999}',
            "datahub_tuple: $.at: expected timestamp, got number '-99999999999999999'",
        ),
        *(
            (
                f'{{"{name}":1e{sign}9999999999999999999999}}',
                f"datahub_tuple: $.{name}: expected {type}, got number '1e{sign}9999999999999999999999'",
            )
            for name, type in (("price", "decimal"), ("rate", "double"))
            for sign in ("", "-")
        ),
        ('{"note":7}', "datahub_tuple: $.note: expected string, got number '7'"),
    ],
)
def test_a_value_that_a_column_does_not_hold_is_refused(text, expected):
    """Nothing is rounded on the way."""
    schema = RecordSchema.from_lists([*NAMES, "tiny"], [*TYPES, FieldType.TINYINT])
    assert error_of(tuple_record, text, schema) == expected


def test_a_value_that_json_has_no_place_for_is_refused():
    """NaN is no JSON number."""
    record = TupleRecord(schema=RecordSchema.from_lists(["d"], [FieldType.DECIMAL]), values=[Decimal(1)])
    record._values[0] = Decimal("NaN")
    assert error_of(tuple_text, record) == "datahub_tuple: $.d: expected a JSON value, got \"Decimal('NaN')\""


def test_pydatahub_is_not_imported_unless_asked_for():
    """Reading its records needs none of its code."""
    code = "import sys, cdcavro.wire.pydatahub; print('datahub' in sys.modules)"
    done = subprocess.run([sys.executable, "-P", "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"
