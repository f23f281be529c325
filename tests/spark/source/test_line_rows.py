"""Rows of the data source: one for each line, with its payload or with its bytes."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa
import pytest

import cdcavro
from cdcavro.errors import MessageError
from cdcavro.exact import jsontext
from cdcavro.files import inputs, lines
from cdcavro.spark.source import packed_lines
from cdcavro.spark.source.file_parts import parts_of
from cdcavro.spark.source.line_rows import SCHEMA, read_part
from cdcavro.spark.source.listing import list_files
from cdcavro.wire.formats import FORMATS
from cdcavro.wire.sniff import sniff
from support.messages import goldens, shop_canal, shop_debezium

BAD = [b"", b"{", b"\xff\xfe", b"[]", b'{"a":1,"a":2}', b'{"type":"INSERT"}', b"\r"]


def read(path: Any, format: str, most: int = 1 << 20) -> list[dict[str, Any]]:
    """Return the rows of a file."""
    batches = [batch for part in parts_of(list_files([str(path)]), format, most) for batch in read_part(part)]
    assert all(batch.schema == SCHEMA for batch in batches)
    return pa.Table.from_batches(batches, SCHEMA).to_pylist()


def wanted(message: bytes, format: str, file: Any, line: int) -> dict[str, Any]:
    """Return the row of a message, made of the functions that everybody has; an empty format is sniffed."""
    row: dict[str, Any] = dict.fromkeys(SCHEMA.names) | {"format": format or None, "file": str(file), "line": line}
    try:
        row["format"] = name = format or sniff(message)
        row["payload"] = cdcavro.encode(message, name)
        change = cdcavro.to_changes(message, name)[0]
        row |= {"operation": change.op, "table": change.source.table}
    except MessageError as error:
        row["format"] = row["format"] or error.format
        row["error"] = {"format": error.format, "path": error.path, "message": str(error)}
        row["raw"] = None if row["payload"] else message
    return row


def messages_of(format: str) -> list[bytes]:
    """Return messages of a format, good ones and bad ones."""
    shop = {"canal": shop_canal, "debezium": shop_debezium}
    own = [*goldens(format), *(shop[format]() if format in shop else [])]
    return [*own, *BAD, *own[:3], b"x" * 70]


@pytest.mark.parametrize("told", ["told", "mixed", "auto"])
@pytest.mark.parametrize("format", FORMATS)
def test_each_line_is_a_row(tmp_path, format, told):
    """With what `encode` makes of it, or its bytes, and what its changes are; in parts of any size."""
    messages, path = messages_of(format), tmp_path / "a.jsonl"
    path.write_bytes(b"\n".join(messages))
    own = {"told": format, "mixed": "", "auto": lines.detect_format(lines.read_lines(str(path)))[0]}[told]
    expected = [wanted(message, own, path, line) for line, message in enumerate(messages, 1)]
    for most in (1000, 1 << 20):
        assert read(path, format if told == "told" else told, most) == expected
    assert sum(row["payload"] is None for row in expected) >= len(BAD)


def test_formats_may_be_mixed(tmp_path):
    """Each message has its own."""
    messages = [message for one in zip(*[goldens(format)[:2] for format in FORMATS], strict=True) for message in one]
    path = tmp_path / "a.jsonl"
    path.write_bytes(b"\n".join([*messages, *BAD, *messages]))
    found = read(path, "mixed")
    assert found == [wanted(message, "", path, line) for line, message in enumerate([*messages, *BAD, *messages], 1)]
    assert len({row["format"] for row in found} - {None}) >= len(FORMATS) - 1


def test_a_message_without_changes_has_its_payload_and_the_error(tmp_path):
    """It can be decoded, so its bytes are not needed."""
    message = b'{"id":7,"type":"DELETE","database":"s","table":"t","data":[{"d":"1"}],"old":[{"d":"2"}]}'
    path = tmp_path / "a.jsonl"
    path.write_bytes(message)
    (row,) = read(path, "canal")
    assert json.loads(cdcavro.decode(row["payload"], "canal")) == json.loads(message)
    assert (row["operation"], row["table"], row["raw"]) == (None, None, None)
    expected = "no second row before the change for DELETE"
    assert row["error"]["message"] == f"canal: $.old[0]: expected {expected}, got some"


@pytest.mark.parametrize("format", ["canal", "mixed"])
def test_lines_that_are_too_long_are_rejects(tmp_path, monkeypatch, format):
    """Of which the beginning is kept; the lines around them are read, wherever the text is cut."""
    for module in (jsontext, inputs.jsontext, lines.jsontext):
        monkeypatch.setattr(module, "MAX_LENGTH", 300)
    monkeypatch.setattr(packed_lines, "MAX_LENGTH", 300)
    for module in (packed_lines, lines, inputs):
        monkeypatch.setattr(module, "KEPT", 16)
    good = b'{"id":7,"type":"INSERT","database":"s","table":"t","data":[{"d":"1"}]}'
    texts = [good, b"x" * 301, good, b"y" * 5000, b"z" * 300, good, b"w" * 301]
    path = tmp_path / "a.jsonl"
    path.write_bytes(b"\n".join(texts))
    for size in (10, 64, 100, 300):
        monkeypatch.setattr("cdcavro.spark.source.file_parts._CHUNK", size)
        for most in (50, 1 << 20):
            found = read(path, format, most)
            assert [row["line"] for row in found] == list(range(1, len(texts) + 1))
            assert [row["raw"] for row in found] == [None, b"x" * 16, None, b"y" * 16, b"z" * 300, None, b"w" * 16]
            name = "message" if format == "mixed" else format
            reason = f"{name}: $: expected at most 300 bytes, got 5000"
            assert found[3]["error"]["message"] == reason


def test_batches_are_small_however_short_lines_are(tmp_path):
    """An error takes more room than its line."""
    path = tmp_path / "a.jsonl"
    path.write_bytes(b"\n" * 10_000)
    (part,) = parts_of(list_files([str(path)]), "canal", 1 << 20)
    assert [batch.num_rows for batch in read_part(part)] == [4096, 4096, 1808]
