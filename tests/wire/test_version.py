"""Versions of a format that no document describes: told once, whatever else is called version in a message."""

from __future__ import annotations

import pytest

from cdcavro.wire.version import version_note

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


def test_a_format_without_a_documented_version_is_passed():
    """DataHub's may be any."""
    assert version_note(b'{"version":"1.0","type":"INSERT"}', "canal") is None
    assert version_note(b'{"version":"9","payload":{"op":"INSERT"}}', "datahub_blob") is None
