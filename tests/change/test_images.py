"""Images where the operation has none, in every format."""

from __future__ import annotations

import pytest

import cdcavro
from cdcavro.transcoding.mapping import from_changes, to_changes
from support.roundtrip import error_of, exact

ROW = '{"a":1}'
# How a format writes an operation with its images, and the pointers to these.
FORMATS = {
    "oms_default": ('{"recordType":"%s","prevStruct":%s,"postStruct":%s}', "$.prevStruct", "$.postStruct"),
    "oms_dataworks": (
        '{"version":"2.0","payload":{"op":"%s","before":%s,"after":%s}}',
        "$.payload.before",
        "$.payload.after",
    ),
    "datahub_blob": ('{"payload":{"op":"%s","before":%s,"after":%s}}', "$.payload.before", "$.payload.after"),
    "debezium": ('{"op":"%s","before":%s,"after":%s}', "$.before", "$.after"),
    "oms_canal": ('{"type":"%s","old":[%s],"data":[%s]}', "$.old[0]", "$.data[0]"),
    "oms_shareplex": ('{"meta":{"op":"%s"},"key":%s,"data":%s}', "$.key", "$.data"),
}
FORMATS["oms_default_extend_column_type"] = FORMATS["oms_default"]
FORMATS["canal"] = FORMATS["oms_canal"]
IMAGES = {"oms_dataworks": '{"data":{"a":1}}', "datahub_blob": '{"dataColumn":{"a":1}}'}
BEFORE, AFTER, BOTH = ("before",), ("after",), ("before", "after")
OMS = {"INSERT": BEFORE, "DELETE": AFTER, "ROW": BEFORE, "HEARTBEAT": BOTH}
MARKS = dict.fromkeys(("TRANSACTION_BEGIN", "TRANSACTION_END", "GTID", "XACOMMIT", "XAROLLBACK"), BOTH)
# The images that the operations of a format have not.
WITHOUT = {
    "oms_default": OMS,
    "oms_default_extend_column_type": OMS,
    "oms_dataworks": {"INSERT": BEFORE, "DELETE": AFTER, "HEARTBEAT": BOTH, "TRUNCATE": BOTH} | MARKS,
    "datahub_blob": {
        "INSERT": BEFORE,
        "DELETE": AFTER,
        "MHEARTBEAT": BOTH,
        "UPDATE_BEFOR": AFTER,
        "UPDATE_AFTER": BEFORE,
        "TRUNCATE": BOTH,
    }
    | MARKS,
    "debezium": {"c": BEFORE, "r": BEFORE, "d": AFTER, "t": BOTH},
    "oms_canal": {"INSERT": BEFORE, "MHEARTBEAT": BOTH, "GTID": BOTH},
    "canal": {"INSERT": BEFORE, "TRUNCATE": BOTH},
    "oms_shareplex": {"ins": BEFORE},
}
CASES = [
    pytest.param(format, operation, side, id=f"{format}-{operation}-{side}")
    for format, operations in WITHOUT.items()
    for operation, sides in operations.items()
    for side in sides
]


def message(format: str, operation: str, *sides: str) -> str:
    """Write a message of an operation with the images named, the others null."""
    image = IMAGES.get(format, ROW)
    return FORMATS[format][0] % (operation, *(image if side in sides else "null" for side in BOTH))


@pytest.mark.parametrize(("format", "operation", "side"), CASES)
def test_an_image_where_the_operation_has_none_is_refused(format, operation, side):
    """In every format, with the path to it; it is not dropped, and not made into another change."""
    path = FORMATS[format][1 + BOTH.index(side)]
    expected = f"{format}: {path}: expected no row {side} the change for {operation}, got some"
    assert error_of(to_changes, message(format, operation, side), format) == expected


@pytest.mark.parametrize(("format", "operation", "side"), CASES)
def test_images_that_are_null_are_none(format, operation, side):
    """And the message comes back."""
    text = message(format, operation, *({"before", "after"} - set(WITHOUT[format][operation])))
    changes = to_changes(text, format)
    assert getattr(changes[0], side) is None
    assert [exact(back) for back in from_changes(changes, format)] == [exact(text)]


@pytest.mark.parametrize("format", FORMATS)
def test_an_update_has_the_row_after_it(format):
    """The row before it alone would be typed as an update to nothing; a half that says it is one has one row."""
    operation = {"debezium": "u", "oms_shareplex": "upd"}.get(format, "UPDATE")
    text = message(format, operation, "before")
    expected = f"{format}: {FORMATS[format][2]}: expected the row after the change for {operation}, got none"
    assert error_of(to_changes, text, format) == expected


def test_a_second_row_before_a_delete_is_refused():
    """Where `data` and `key` are the row before it."""
    assert error_of(to_changes, message("oms_canal", "DELETE", *BOTH), "oms_canal") == (
        "oms_canal: $.old[0]: expected no second row before the change for DELETE, got some"
    )
    assert error_of(to_changes, message("oms_shareplex", "del", *BOTH), "oms_shareplex") == (
        "oms_shareplex: $.key: expected no second row before the change for del, got some"
    )


def test_every_format_is_tested():
    """A Tuple row has one image, and says which; that one has its own test."""
    assert {*WITHOUT, "datahub_tuple"} == set(cdcavro.FORMATS)
