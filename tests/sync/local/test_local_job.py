"""The main job without Spark: what it writes, what it says, and how it ends; `tests/spark/test_job.py` compares both."""

from __future__ import annotations

import base64
import bz2
import gzip
import json
import resource
from pathlib import Path

import fastavro
import pyarrow as pa
import pytest

from cdcavro import FORMATS
from cdcavro.arrow.arrays import RowsError
from cdcavro.errors import FileError, UnknownFormatError
from cdcavro.exact import jsontext
from cdcavro.sync.local import local_job
from cdcavro.sync.local.local_job import operations_of, run
from cdcavro.wire.formats import get_format
from support.messages import SAMPLES, goldens, shipped, shop_canal


def records(folder: Path) -> list[dict]:
    """Read the records of a folder."""
    found = []
    for path in sorted(folder.glob("*.avro")):
        with path.open("rb") as file:
            found += fastavro.reader(file)
    return found


def rejects(out: Path) -> list[dict]:
    """Read the rejects of a run."""
    return [json.loads(line) for path in (out / "rejects").glob("*.json") for line in path.read_text().splitlines()]


@pytest.mark.slow
def test_every_shipped_message_is_written(tmp_path):
    """In a folder for each format, which says that it is whole."""
    report = run([str(SAMPLES)], str(tmp_path / "out"))
    assert (report.read, report.rejected, report.is_complete) == (len(shipped()), 0, True)
    assert {path.name for path in (tmp_path / "out" / "payloads").iterdir()} == set(FORMATS)
    for format in FORMATS:
        folder = tmp_path / "out" / "payloads" / format
        count = sum(number for (name, _), number in report.written.items() if name == format)
        assert len(records(folder)) == count
        assert {path.name for path in folder.iterdir()} == {"part-00000.avro", "_SUCCESS"}
    assert not (tmp_path / "out" / "rejects").exists()


@pytest.mark.slow
def test_lines_keep_their_order_through_threads(tmp_path, monkeypatch):
    """However many tasks there are, and rejects have the numbers of their lines."""
    monkeypatch.setattr(local_job, "_TASK_ROWS", 100)
    monkeypatch.setattr("cdcavro.sync.reading.file_source.MOST_ROWS", 64)
    monkeypatch.setattr(local_job, "_BLOCK_BYTES", 10_000)
    lines = [b"\xff{" if i % 500 == 7 else b'{"type":"INSERT","ts":%d}' % i for i in range(3000)]
    (tmp_path / "a.jsonl").write_bytes(b"\n".join(lines))
    report = run([str(tmp_path / "a.jsonl")], str(tmp_path / "out"), format="canal")
    assert (report.read, report.rejects) == (3000, {"canal": 6})
    assert [one["ts"] for one in records(tmp_path / "out/payloads/canal")] == [i for i in range(3000) if i % 500 != 7]
    assert [one["line"] for one in rejects(tmp_path / "out")] == [8 + 500 * i for i in range(6)]


def test_a_line_longer_than_a_message_may_be_is_a_reject_of_its_beginning(tmp_path, monkeypatch):
    """And the lines around it are messages."""
    monkeypatch.setattr(jsontext, "MAX_LENGTH", 1 << 17)
    monkeypatch.setattr("cdcavro.sync.reading.file_source.MAX_LENGTH", 1 << 17)
    monkeypatch.setattr("cdcavro.sync.reading.file_source._BLOCK", 1 << 12)
    long = b'{"type":"INSERT","table":"' + b"x" * (9 << 20) + b'"}'
    (tmp_path / "a.jsonl").write_bytes(b"\n".join([shop_canal()[10], long, shop_canal()[11]]))
    report = run([str(tmp_path / "a.jsonl")], str(tmp_path / "out"), format="canal")
    assert (report.read, report.rejects) == (3, {"canal": 1})
    (own,) = rejects(tmp_path / "out")
    assert (own["line"], base64.b64decode(own["raw"])) == (2, long[: 64 << 10])


@pytest.mark.parametrize("ending", ["gz", "bz2", "zst", "jsonl"])
def test_packed_files_and_patterns_are_read(tmp_path, ending):
    """As they are in pipelines."""
    pack = {
        "gz": gzip.compress,
        "bz2": bz2.compress,
        "jsonl": bytes,
        "zst": lambda raw: pa.compress(raw, "zstd", asbytes=True),
    }
    (tmp_path / f"a.{ending}").write_bytes(pack[ending](b"\n".join(shop_canal())))
    assert run([f"{tmp_path}/[a-b].*"], str(tmp_path / "out")).read == 188


def test_what_is_damaged_leaves_no_file(tmp_path):
    """Of what comes before it, either."""
    (tmp_path / "a.gz").write_bytes(gzip.compress(b"\n".join(shop_canal() * 50))[:-9])
    with pytest.raises(FileError, match=r"a[.]gz"):
        run([str(SAMPLES / "canal"), str(tmp_path / "a.gz")], str(tmp_path / "out"))
    assert [path for path in (tmp_path / "out").rglob("*") if path.is_file()] == []


@pytest.mark.slow
@pytest.mark.parametrize("is_there", [False, True])
def test_a_full_disk_leaves_nothing_that_is_in_the_way_of_the_next_run(tmp_path, is_there: bool):
    """Neither a file nor an empty folder, of payloads and of rejects; what was in the folder stays."""
    (tmp_path / "a.jsonl").write_bytes(b"{\n" + b"\n".join(shop_canal() * 50))
    if is_there:
        (tmp_path / "out").mkdir()
        (tmp_path / "out" / "own").touch()
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, limits[1]))
    try:
        with pytest.raises(FileError, match="expected a file that can be written, got 'File too large'"):
            run([str(tmp_path / "a.jsonl")], str(tmp_path / "out"))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert {path.name for path in tmp_path.rglob("*")} == {"a.jsonl", "out", *(["own"] if is_there else [])}
    assert run([str(tmp_path / "a.jsonl")], str(tmp_path / "out")).read == 1 + 50 * 188


def test_an_output_that_is_there_is_kept_or_replaced(tmp_path):
    """Also a file, and one without rejects replaces one with some."""
    (tmp_path / "a.jsonl").write_bytes(b"{\n" + shop_canal()[10])
    run([str(tmp_path / "a.jsonl")], str(tmp_path / "out"))
    assert len(rejects(tmp_path / "out")) == 1
    with pytest.raises(FileError, match=r"out/payloads: expected a new folder \(--force replaces one\)"):
        run([str(SAMPLES)], str(tmp_path / "out"))
    run([str(SAMPLES / "canal")], str(tmp_path / "out"), force=True)
    assert not (tmp_path / "out" / "rejects").exists()
    assert len(records(tmp_path / "out/payloads/canal")) == 188 + len(goldens("canal"))


def test_notes_are_those_of_spark(tmp_path):
    """Files that are passed over, marks at the start of a text, and a format that seems to be another."""
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "_hidden").touch()
    (tmp_path / "in" / "a.jsonl").write_bytes(b"\xef\xbb\xbf" + b"\n".join(shop_canal()))
    said: list[str] = []
    run([str(tmp_path / "in")], str(tmp_path / "out"), format="debezium", say=said.append)
    assert said == [
        f"passing over 1 file whose name starts with _ or ., such as {tmp_path}/in/_hidden",
        "converting 1 file",
        f"{tmp_path}/in/a.jsonl: a byte order mark at the start is skipped",
        f"{tmp_path}/in/a.jsonl: messages that look like canal are read as debezium",
    ]


def test_what_is_not_of_this_machine_or_not_known_is_told(tmp_path):
    """In a sentence, before anything is written."""
    with pytest.raises(FileError, match=r"s3://b/a: expected files of this machine"):
        run(["s3://b/a"], str(tmp_path / "out"))
    with pytest.raises(FileError, match=r"s3://b/o: expected a folder of this machine"):
        run([str(SAMPLES)], "s3://b/o")
    with pytest.raises(UnknownFormatError, match="did you mean canal"):
        run([str(SAMPLES)], str(tmp_path / "out"), format="cannal")
    (tmp_path / "_a.jsonl").touch()
    with pytest.raises(FileError, match="a name that is read"):
        run([str(tmp_path / "_a.jsonl")], str(tmp_path / "out"))
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("format", FORMATS)
def test_operations_are_the_same_where_columns_have_no_room(format, monkeypatch):
    """Then each payload is read on its own."""
    payloads = pa.array([get_format(format).encode(one) for one in goldens(format)], pa.binary())
    wanted = operations_of(payloads, format)

    def refuse(*_: object) -> None:
        raise RowsError

    monkeypatch.setattr(local_job, "read_batch", refuse)
    assert wanted.total() == len(payloads)
    assert operations_of(payloads, format) == wanted
