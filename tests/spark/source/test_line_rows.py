"""Rows of the data source: one for each line, with its payload or with its bytes, wherever a file is cut."""

from __future__ import annotations

import gzip
import io
import json
from typing import Any

import pyarrow as pa
import pytest

import cdcavro
from cdcavro.errors import FileError, MessageError
from cdcavro.exact import jsontext
from cdcavro.files import lines
from cdcavro.files.lines import read_lines
from cdcavro.spark.source import line_frame
from cdcavro.spark.source.line_rows import SCHEMA, Piece, chunks_of, cuts, format_of, parts_of, read_part
from cdcavro.spark.source.listing import list_files
from cdcavro.wire.formats import FORMATS
from cdcavro.wire.sniff import sniff
from support.messages import SAMPLES, goldens, shop_canal, shop_debezium

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
    for module in (jsontext, lines.jsontext):
        monkeypatch.setattr(module, "MAX_LENGTH", 300)
    monkeypatch.setattr(line_frame, "MAX_LENGTH", 300)
    for module in (line_frame, lines):
        monkeypatch.setattr(module, "KEPT", 16)
    good = b'{"id":7,"type":"INSERT","database":"s","table":"t","data":[{"d":"1"}]}'
    texts = [good, b"x" * 301, good, b"y" * 5000, b"z" * 300, good, b"w" * 301]
    path = tmp_path / "a.jsonl"
    path.write_bytes(b"\n".join(texts))
    for size in (10, 64, 100, 300):
        monkeypatch.setattr("cdcavro.spark.source.line_rows._CHUNK", size)
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


TEXTS = {
    "lines": b"a\nbb\nccc\ndddd\n",
    "no newline at the end": b"a\nbb\nccc",
    "carriage returns": b"a\r\nb\rb\r\n\r\n",
    "empty lines": b"\n\na\n\n\nb\n\n",
    "one line": b"abcdefgh",
    "no text": b"\xff\n\x00\n\xc3\x28\n",
    "only ends": b"\n\n\n",
    "what gzip begins with": b"a\n\x1f\x8b\nb\n\x1f\x8b\n",
    "nothing": b"",
}


def lines_of(pieces: list[Piece]) -> list[tuple[int, bytes]]:
    """Return the lines of pieces with their numbers."""
    found = []
    for piece in pieces:
        lines = [line.raw for chunk in chunks_of(piece) for line in chunk.lines()]
        found += list(enumerate(lines, piece.line))
    return found


@pytest.mark.parametrize("text", TEXTS)
def test_lines_are_the_same_wherever_a_file_is_cut(tmp_path, text):
    """For every number of bytes of a part; and each part but the last has at least so many."""
    path = tmp_path / "a.jsonl"
    path.write_bytes(TEXTS[text])
    wanted = [(line.number, line.raw) for line in read_lines(str(path))]
    for most in range(1, len(TEXTS[text]) + 2):
        pieces = [piece for part in parts_of(list_files([str(path)]), "canal", most) for piece in part.pieces]
        assert lines_of(pieces) == wanted
        assert [piece.start for piece in pieces[1:]] == [piece.end for piece in pieces[:-1]]
        assert all(piece.end - piece.start >= most for piece in pieces[:-1])
        assert (pieces[0].start, pieces[-1].end) == (0, len(TEXTS[text]))


def test_cuts_are_the_same_however_a_stream_comes(monkeypatch):
    """A part's end may be anywhere in what is read at once."""
    text = b"".join(b"%d" % i * (i % 7) + b"\n" for i in range(40)) + b"end"
    whole = {most: list(cuts(io.BytesIO(text), most)) for most in range(1, 60)}
    for size in range(1, 20):
        monkeypatch.setattr("cdcavro.spark.source.line_rows._READ", size)
        assert {most: list(cuts(io.BytesIO(text), most)) for most in range(1, 60)} == whole


def test_small_files_share_a_part(tmp_path):
    """In the order of their names, until they have enough bytes, or there are many."""
    for i in range(100):
        (tmp_path / f"{i:03}.jsonl").write_bytes(b"x" * 9 + b"\n")
    files = list_files([str(tmp_path)])
    assert [len(part.pieces) for part in parts_of(files, "canal", 40)] == [4] * 25
    assert [len(part.pieces) for part in parts_of(files, "canal", 1 << 20)] == [32, 32, 32, 4]
    assert [piece.file for part in parts_of(files, "canal", 40) for piece in part.pieces] == [one.name for one in files]


@pytest.mark.parametrize("name", ["a.jsonl.gz", "packed"])
def test_gzip_is_one_piece(tmp_path, name):
    """By its name, or by its first bytes."""
    path = tmp_path / name
    path.write_bytes(gzip.compress(b"a\nbb\n" * 1000))
    (part,) = parts_of(list_files([str(path)]), "canal", 10)
    assert lines_of(part.pieces) == list(enumerate([b"a", b"bb"] * 1000, 1))


@pytest.mark.parametrize("name", ["a.jsonl.gz", "packed"])
def test_damaged_gzip_is_an_error(tmp_path, name):
    """What of it can be read would not be all."""
    path = tmp_path / name
    path.write_bytes(gzip.compress(b"a\nbb\n" * 1000)[:-9])
    (part,) = parts_of(list_files([str(path)]), "canal", 10)
    with pytest.raises(FileError, match="expected a whole gzip file, got one that ends too early"):
        lines_of(part.pieces)


@pytest.mark.parametrize("ending", [".bz2", ".XZ", ".lz4", ".snappy", ".deflate"])
def test_other_compression_is_an_error(tmp_path, ending):
    """Spark's text source would decompress it, so its lines would be no messages here."""
    path = tmp_path / f"a{ending}"
    path.write_bytes(b"BZh")
    with pytest.raises(FileError) as caught:
        parts_of(list_files([str(path)]), "canal", 10)
    assert (
        str(caught.value) == f"{path}: expected plain text, gzip or Zstandard, got a name that ends in {ending.lower()}"
    )


@pytest.mark.parametrize("name", ["a.ZST", "a.jsonl"])
@pytest.mark.parametrize("most", [4, 1000])
def test_zstandard_is_one_piece_and_a_byte_order_mark_no_part_of_a_line(tmp_path, name, most):
    """Whatever the file is called; also where it has more bytes than a part, and where a plain one is cut."""
    text = b"\xef\xbb\xbfa\nbb\nccc\ndddd\n"
    path = tmp_path / name
    path.write_bytes(pa.Codec("zstd").compress(text, asbytes=True))
    (part,) = parts_of(list_files([str(path)]), "canal", most)
    wanted = [(1, b"a"), (2, b"bb"), (3, b"ccc"), (4, b"dddd")]
    assert lines_of(part.pieces) == wanted
    plain = tmp_path / "plain"
    plain.write_bytes(text)
    pieces = [piece for part in parts_of(list_files([str(plain)]), "canal", most) for piece in part.pieces]
    assert lines_of(pieces) == wanted


def test_what_is_written_behind_a_file_later_is_not_read(tmp_path):
    """A file ends where it ended when it was listed; one that became shorter is an error."""
    path = tmp_path / "a.jsonl"
    path.write_bytes(b"a\nbb\nccc\n")
    parts = parts_of(list_files([str(path)]), "canal", 4)
    pieces = [piece for part in parts for piece in part.pieces]
    path.write_bytes(b"a\nbb\nccc\ndddd\n")
    assert lines_of(pieces) == [(1, b"a"), (2, b"bb"), (3, b"ccc")]
    path.write_bytes(b"a\nbb\ncc")
    with pytest.raises(FileError) as caught:
        lines_of(pieces)
    assert str(caught.value) == f"{path}: expected the file that was there at the start, got a shorter one"
    path.unlink()
    with pytest.raises(FileError, match="expected what can be read"):
        lines_of(pieces)


def test_the_first_lines_tell_a_format(tmp_path):
    """Of a file that is cut when it is planned; of any other when it is read; each message, where they do not."""
    path = tmp_path / "a.jsonl"
    path.write_bytes(b"{\n" + b"\n".join(goldens("oms_dataworks")) + b"\n")
    (whole,) = [piece for part in parts_of(list_files([str(path)]), "auto", 1 << 20) for piece in part.pieces]
    assert (whole.format, format_of(whole)) == ("auto", "oms_dataworks")
    pieces = [piece for part in parts_of(list_files([str(path)]), "auto", 500) for piece in part.pieces]
    assert len(pieces) > 2
    assert {piece.format for piece in pieces} == {"oms_dataworks"}
    path.write_bytes(b"{\n[]\n")
    (whole,) = [piece for part in parts_of(list_files([str(path)]), "auto", 1 << 20) for piece in part.pieces]
    assert format_of(whole) == "mixed"


def test_parts_of_real_files_have_all_lines():
    """The samples that ship with the project, in parts of many sizes."""
    files = list_files([str(SAMPLES)])
    wanted = [(file.name, line.number, line.raw) for file in files for line in read_lines(file.name)]
    for most in (100, 1000, 10_000, 100_000, 1 << 30):
        pieces = [piece for part in parts_of(files, "mixed", most) for piece in part.pieces]
        found = [(piece.file, *line) for piece in pieces for line in lines_of([piece])]
        assert found == wanted


def test_an_empty_file_has_no_lines(tmp_path):
    """And a folder without files no parts."""
    (tmp_path / "a.jsonl").touch()
    (part,) = parts_of(list_files([str(tmp_path)]), "auto", 10)
    assert lines_of(part.pieces) == []
    assert format_of(part.pieces[0]) == "mixed"
    assert parts_of([], "auto", 10) == []
