"""Lines of files in record batches: the same whatever the blocks are, in bounded memory and quickly."""

from __future__ import annotations

import base64
import bz2
import gzip
import json
import random
from pathlib import Path

import pyarrow as pa
import pytest

from cdcavro.errors import FileError
from cdcavro.files.lines import KEPT
from cdcavro.sync.reading import file_source
from cdcavro.sync.reading.file_source import read_lines, read_rejects
from cdcavro.sync.reading.message_columns import MOST_ROWS, SCHEMA

BOM = b"\xef\xbb\xbf"


def lines_of(path: Path, size: int = 1 << 16, notes: list[str] | None = None) -> list[tuple[bytes, int]]:
    """Return the lines that are read from a file, with their lengths."""
    found = []
    for batch in read_lines(str(path), "file:/x", [].append if notes is None else notes.append, size):
        assert batch.schema == SCHEMA
        assert batch.num_rows <= MOST_ROWS
        assert {*batch.column("file").to_pylist()} == {"file:/x"}
        assert batch.column("key").null_count == batch.num_rows
        found += zip(batch.column("raw").to_pylist(), batch.column("length").to_pylist(), strict=True)
    return found


def put(folder: Path, content: bytes, name: str = "in") -> Path:
    """Write a file."""
    (folder / name).write_bytes(content)
    return folder / name


def split(content: bytes) -> list[tuple[bytes, int]]:
    """Return the lines of a text, with their lengths."""
    lines = content.split(b"\n")
    return [(line, len(line)) for line in (lines if lines[-1] else lines[:-1])]


@pytest.mark.parametrize("content", [b"", b"\n", b"a", b"a\n", b"\n\na", b"a\r\nb\r", b"\xff\0\n\x85", b"a\n" * 40_000])
@pytest.mark.parametrize("size", [1, 3, 64, 1 << 20])
def test_lines_end_at_line_feeds_only(tmp_path, content, size):
    """Lines end at line feeds only."""
    if len(content) < 100 or size > 3:
        assert lines_of(put(tmp_path, content), size) == split(content)


def test_blocks_make_no_difference(tmp_path):
    """Blocks make no difference."""
    draw = random.Random(7)
    for _ in range(40):
        content = b"\n".join(draw.randbytes(draw.choice([0, 1, 5, 30, 200])).replace(b"\n", b"") for _ in range(50))
        path = put(tmp_path, content.removeprefix(BOM))
        assert lines_of(path, draw.choice([1, 7, 64, 300])) == split(content)


@pytest.mark.parametrize("extra", [-1, 0, 1, 2, 500])
@pytest.mark.parametrize("end", [b"", b"\n", b"\nlast"])
def test_a_line_that_is_too_long_has_its_beginning(tmp_path, monkeypatch, extra, end):
    """A line that is too long has its beginning."""
    most = 2 * KEPT
    monkeypatch.setattr(file_source, "MAX_LENGTH", most)
    long = b"x" * (most + extra)
    expected = [(b"first", 5), (long if extra <= 0 else long[:KEPT], len(long)), *([(b"last", 4)] if end[1:] else [])]
    assert lines_of(put(tmp_path, b"first\n" + long + end), 1_000) == expected


@pytest.mark.parametrize("content", [BOM, BOM + b"a\nb", BOM + b"\n"])
def test_a_mark_is_passed_over_and_said(tmp_path, content):
    """A mark is passed over and said."""
    notes: list[str] = []
    path = put(tmp_path, content)
    assert lines_of(path, notes=notes) == split(content.removeprefix(BOM))
    assert notes == [f"{path}: a byte order mark at the start is skipped"]


def zstandard(content: bytes) -> bytes:
    """Return bytes, packed."""
    sink = pa.BufferOutputStream()
    with pa.CompressedOutputStream(sink, "zstd") as stream:
        stream.write(content)
    return sink.getvalue().to_pybytes()


@pytest.mark.parametrize(
    ("pack", "name"),
    [
        (gzip.compress, "a.gz"),
        (gzip.compress, "a.jsonl"),
        (bz2.compress, "a.bz2"),
        (zstandard, "a.zst"),
        (zstandard, "a"),
    ],
)
@pytest.mark.parametrize("content", [b"one\ntwo", BOM + b"one\n" + b"x" * 300_000 + b"\n"])
def test_packed_files(tmp_path, pack, name, content):
    """Packed files."""
    notes: list[str] = []
    assert lines_of(put(tmp_path, pack(content), name), notes=notes) == split(content.removeprefix(BOM))
    assert len(notes) == content.startswith(BOM)


@pytest.mark.parametrize(
    ("content", "name"),
    [
        (gzip.compress(b"one" * 1_000, mtime=0)[:-9], "a.gz"),
        (b"text", "a.gz"),
        (gzip.compress(b"one", mtime=0) + b"text", "a"),
        (bz2.compress(b"one" * 1_000)[:-9], "a.bz2"),
        (b"text", "a.bz2"),
        (b"text", "a.zst"),
        (b"text", "a.lz4"),
        (b"text", "a.snappy"),
    ],
)
def test_packed_files_that_are_damaged_or_none(tmp_path, content, name):
    """Packed files that are damaged or none."""
    with pytest.raises(FileError, match=name):
        lines_of(put(tmp_path, content, name))


def test_an_empty_file_has_no_lines_whatever_it_is_called(tmp_path):
    """An empty file has no lines whatever it is called."""
    for name in ("a.gz", "a.bz2", "a.zst", "a"):
        assert lines_of(put(tmp_path, b"", name)) == []


def test_a_file_that_is_gone(tmp_path):
    """A file that is gone."""
    with pytest.raises(FileError, match="a file that can be read"):
        lines_of(tmp_path / "gone")


def test_rejects_come_in_batches(tmp_path, monkeypatch):
    """Rejects come in batches."""
    monkeypatch.setattr(file_source, "MOST_ROWS", 3)
    path = put(tmp_path, b'{"raw":"QQ=="}\n' * 7)
    assert [batch.num_rows for batch in read_rejects(str(path))] == [3, 3, 1]


@pytest.mark.parametrize(
    ("text", "raw"),
    [
        ("QQ", b"A"),
        ("QQ==", b"A"),
        (" Q\tQ\r\n==", b"A"),
        ("QQ= =", b""),
        ("QQ==\n", b""),
        ("Q", b""),
        ("QQ=", b""),
        ("=", b""),
        ("Q-==", b""),
        ("", b""),
    ],
)
def test_bytes_in_base64(tmp_path, text, raw):
    """Bytes in base64."""
    (batch,) = read_rejects(str(put(tmp_path, json.dumps({"raw": text}).encode())))
    assert batch.column("raw").to_pylist() == [raw]


@pytest.mark.parametrize(
    ("kept", "reason", "length"),
    [
        (KEPT, "expected at most 67108864 bytes, got 73400482", 73_400_482),
        (KEPT, "expected at most 67108863 bytes, got 73400482", KEPT),
        (KEPT, None, KEPT),
        (KEPT - 1, "expected at most 67108864 bytes, got 73400482", KEPT - 1),
    ],
)
def test_a_reject_that_has_only_the_beginning_of_its_message_is_as_long_as_that(tmp_path, kept, reason, length):
    """So that the limit is the reason again, and not where the text ends; one that somebody has repaired is whole."""
    reject = {"raw": base64.b64encode(b"x" * kept).decode(), "reason": reason}
    (batch,) = read_rejects(str(put(tmp_path, json.dumps(reject).encode())))
    assert (len(batch.column("raw")[0].as_py()), batch.column("length").to_pylist()) == (kept, [length])
