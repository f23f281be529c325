"""Versions of a format that no document describes: told once, whatever else is called version in a message."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
import pytest

from cdcavro.wire.marked_members import key_pointer, version_note

if TYPE_CHECKING:
    from collections.abc import Callable

NOTE = "oms_dataworks: version %s is read as 2.0, which is the one that is documented"
KNOWN = b'{"version":"2.0","payload":{"op":"INSERT","after":{"data":{"version":"9"}}}}'


@pytest.mark.parametrize(
    ("lines", "version"),
    [
        (b'{"version":"1.0","payload":{"op":"INSERT"}}', "'1.0'"),
        (b'{"payload":{"op":"INSERT"},"version" : 3.1 }', "'3.1'"),
        (b'{"topic":"t","value":{"payload":{"op":"INSERT"},"version":"2.1"}}', "'2.1'"),
        (KNOWN + b"\n{\n" + KNOWN + b'\n{"version":""}\n{"version":"7"}', "''"),
        (KNOWN, None),
        (b'{"payload":{"op":"INSERT","x":{"version":"1.0"}}}', None),
        (b'{"version":null,"payload":{}}', None),
        (b'{"version":"1.0"', None),
        (b'{"version":"\xff"}', None),
        (b'[{"version":"1.0"}]', None),
        (b"", None),
    ],
)
def test_a_version_that_no_document_describes_is_told(lines, version):
    """The first of some lines; a version in a row is none of the format, and a faulty line states none."""
    assert version_note(lines, "oms_dataworks") == (None if version is None else NOTE % version)


def test_a_line_is_read_once_however_often_it_has_something_like_a_version(monkeypatch):
    """A row with a thousand of them costs what the row costs; the line behind it is read, too."""
    lines = []
    monkeypatch.setattr(msgspec.json, "decode", _noted(lines))
    row = b'{"version":"2.0","payload":{"op":"INSERT","x":[' + b",".join([b'{"version":1}'] * 1_000) + b"]}}"
    for around in (b"%s", b'{"topic":"t","value":%s}', b"%s,"):
        lines.clear()
        line = around % row
        assert version_note(b"\n".join([line, line, b'{"version":"7"}', line]), "oms_dataworks") == NOTE % "'7'"
        assert lines == [line, line, b'{"version":"7"}']


def _noted(lines: list[bytes]) -> Callable[[bytes], object]:
    """Return `msgspec.json.decode` that also notes what it is given."""
    decode = msgspec.json.decode

    def noted(line: bytes) -> object:
        lines.append(line)
        return decode(line)

    return noted


def test_a_format_without_a_documented_version_is_passed():
    """DataHub's may be any."""
    assert version_note(b'{"version":"1.0","type":"INSERT"}', "canal") is None
    assert version_note(b'{"version":"9","payload":{"op":"INSERT"}}', "datahub_blob") is None


@pytest.mark.parametrize(
    ("format", "pointer"),
    [
        ("canal", "/pkNames"),
        ("canal_protobuf", "/entries"),
        ("datahub_blob", "/schema/primaryKey"),
        ("datahub_tuple", "/key"),
        ("debezium", "/key"),
        ("debezium_flat", "/key"),
        ("dts_avro", "/key"),
        ("goldengate", "/primary_keys"),
        ("goldengate_row", "/primary_keys"),
        ("goldengate_tx", "/operations"),
        ("maxwell", "/primary_key_columns"),
        ("oms_canal", "/pkNames"),
        ("oms_dataworks", "/schema/pk"),
        ("oms_default", "/allMetaData/record_primary_key"),
        ("oms_default_extend_column_type", "/allMetaData/record_primary_key"),
        ("oms_shareplex", "/key"),
    ],
)
def test_the_member_that_says_which_columns_are_the_key_is_that_of_the_format(format: str, pointer: str):
    """Where a format has none, it is the key of the Kafka record."""
    assert key_pointer(format) == pointer


@pytest.mark.parametrize(
    ("message", "pointer"),
    [
        (b'{"type":"INSERT","pkNames":["id"]}', "/pkNames"),
        (b'{"topic":"t","key":null,"value":{"pkNames":["id"]}}', "/value/pkNames"),
        (b'{"topic":"t","key":{"id":1},"value":{"pkNames":null}}', "/key"),
        (b'{"topic":"t","key":{"id":1},"value":null}', "/key"),
        (b"[1]", "/pkNames"),
        (b"{", "/pkNames"),
    ],
)
def test_where_the_key_is_stated_depends_on_the_message(message: bytes, pointer: str):
    """A Kafka record has it in its value, or is the one that states it."""
    assert key_pointer("canal", message) == pointer
