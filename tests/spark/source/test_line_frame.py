"""Lines of packed files as Spark gives them to a task, and what becomes of them."""

from __future__ import annotations

import gzip

import pyarrow as pa
import pytest

from cdcavro.errors import FileError
from cdcavro.exact import jsontext
from cdcavro.files.lines import KEPT
from cdcavro.spark.source.line_frame import unpack_lines
from support.roundtrip import error_of

TEXT = b"".join(b'{"id":%d,"text":"%s"}\n' % (i, b"x" * (i % 50)) for i in range(20_000))
MARK = b"\xef\xbb\xbf"


def zstd(raw: bytes) -> bytes:
    """Pack bytes with Zstandard."""
    return pa.Codec("zstd").compress(raw, asbytes=True)


def given(name: str, content: bytes, *, size: int | None = None, count: int = 100) -> list[pa.RecordBatch]:
    """Return a file as Spark gives it: what stands between line feeds, in batches, without a mark at its start."""
    lines = content.removeprefix(MARK).split(b"\n")
    lines = lines if lines[-1] else lines[:-1]
    columns = {
        "raw": pa.array(lines, pa.binary()),
        "length": pa.array(list(map(len, lines)), pa.int64()),
        "file": pa.array([f"file:///in/{name}"] * len(lines)),
        "block": pa.array([0] * len(lines), pa.int64()),
        "size": pa.array([len(content) if size is None else size] * len(lines), pa.int64()),
    }
    return pa.Table.from_pydict(columns).to_batches(max_chunksize=count)


def one_behind_another(*batches: pa.RecordBatch) -> list[pa.RecordBatch]:
    """Return the same lines in batches that begin and end within files."""
    whole = pa.Table.from_batches(batches).combine_chunks()
    return whole.to_batches(max_chunksize=64)


def unpacked(batches: list[pa.RecordBatch]) -> tuple[dict[str, bytes], list[str]]:
    """Return the text of each file, and what is said of them."""
    said: list[str] = []
    texts: dict[str, bytes] = {}
    for batch in unpack_lines(batches, said.append):
        assert batch.schema == batches[0].schema
        for row in batch.to_pylist():
            assert row["length"] == len(row["raw"])
            texts[row["file"]] = texts.get(row["file"], b"") + row["raw"] + b"\n"
    return {name.removeprefix("file:///in/"): text for name, text in texts.items()}, said


@pytest.mark.slow
def test_packed_files_are_told_by_their_first_bytes_or_name_and_others_pass():
    """Several files come to one task, and each is unpacked as a whole; what Spark unpacks is text already."""
    files = {"a.jsonl": TEXT, "b.zst": zstd(TEXT), "c": gzip.compress(TEXT), "d.ZSTD": zstd(TEXT), "e.gz": TEXT}
    files["f.jsonl"] = zstd(TEXT[:1000]) + zstd(TEXT[1000:])
    files["g.jsonl"] = gzip.compress(TEXT[:1000]) + gzip.compress(TEXT[1000:])
    found, said = unpacked(one_behind_another(*[one for name in files for one in given(name, files[name])]))
    assert found == dict.fromkeys(files, TEXT)
    assert said == []


@pytest.mark.parametrize("end", [b"", b"\n"])
def test_a_byte_order_mark_at_the_start_is_said(end):
    """Spark has passed over that of plain text, so that only the size tells it; one before a later line stays."""
    text = MARK + b'{"a":1}\n' + MARK + b'{"b":2}' + end
    files = {"a.jsonl": text, "b.jsonl": zstd(text), "c.jsonl": text[3:], "d.jsonl": text}
    found, said = unpacked(one_behind_another(*[one for name in files for one in given(name, files[name])]))
    assert found == dict.fromkeys(files, text[3:].removesuffix(b"\n") + b"\n")
    sentence = "a byte order mark at the start is skipped"
    assert said == [f"/in/{name}: {sentence}" for name in ("a.jsonl", "b.jsonl", "d.jsonl")]


def test_what_is_of_no_file_passes():
    """Messages of Kafka, and rejects that are read again."""
    (replayed,) = given("a", b"x", size=0)
    replayed = replayed.set_column(4, "size", pa.nulls(1, pa.int64()))
    kafka = replayed.drop_columns(["size"])
    said: list[str] = []
    assert list(unpack_lines([kafka, replayed], said.append)) == [kafka, replayed]


def test_the_last_byte_may_be_a_line_feed():
    """Spark gives no line for it; the size of the file tells that it was there."""
    text = next(TEXT[:end] for end in range(1000, len(TEXT)) if zstd(TEXT[:end]).endswith(b"\n"))
    found, _ = unpacked(given("a.zst", zstd(text)))
    assert found["a.zst"].removesuffix(b"\n") == text.removesuffix(b"\n")


@pytest.mark.parametrize(
    ("name", "content", "expected"),
    [
        ("a.zst", zstd(TEXT)[:-100], "a whole Zstandard file, got one that ends too early"),
        ("a.jsonl", gzip.compress(TEXT)[:-100], "a whole gzip file, got one that ends too early"),
        ("a.zst", TEXT[:100], "a Zstandard file, got one that is damaged or none"),
        ("a", gzip.compress(TEXT) + b"more\n", "a gzip file, got one that is damaged or none"),
    ],
)
def test_a_damaged_file_is_an_error(name, content, expected):
    """Nothing of it is taken for lines."""
    assert error_of(lambda: unpacked(given(name, content))) == f"/in/{name}: expected {expected}"


@pytest.mark.slow
def test_a_long_line_of_a_packed_file_has_its_length_and_beginning():
    """As one of plain text has."""
    content = b"first\n" + b"x" * (jsontext.MAX_LENGTH + 5) + b"\nlast"
    rows = [row for batch in unpack_lines(given("a.zst", zstd(content)), print) for row in batch.to_pylist()]
    assert [(row["length"], row["raw"]) for row in rows] == [
        (5, b"first"),
        (jsontext.MAX_LENGTH + 5, b"x" * KEPT),
        (4, b"last"),
    ]


def test_packed_bytes_without_a_line_feed_in_too_many_are_an_error():
    """Spark gives only the beginning of such a line."""
    (batch,) = given("a.zst", zstd(b"x"))
    batch = batch.set_column(1, "length", pa.array([jsontext.MAX_LENGTH + 1], pa.int64()))
    with pytest.raises(FileError, match="without a line feed"):
        list(unpack_lines([batch], print))
