"""Checkpoint: the same files as Spark's, whole at any moment."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path

import pytest

from cdcavro.errors import FileError
from cdcavro.sync.reading import checkpoint as module
from cdcavro.sync.reading.checkpoint import Checkpoint, FileLog, Planned, compact_interval, end_json, reads_files

KAFKA = {"topic": {"0": 7, "1": 9}}


@pytest.fixture
def made(tmp_path: Path) -> Checkpoint:
    """A checkpoint that has not begun."""
    return Checkpoint(tmp_path / "checkpoint")


def test_a_stream_that_has_not_begun(made):
    """A stream that has not begun."""
    assert (made.last, made.next, made.end_of(-1), made.start_of(0)) == (None, 0, [None, None], [None, None])


def test_the_id_stays(made):
    """The id stays."""
    assert Checkpoint(made.folder).id == made.id
    assert json.loads((made.folder / "metadata").read_bytes()) == {"id": made.id}


def test_a_batch_is_planned_and_committed(made):
    """A batch is planned and committed."""
    made.plan(0, [KAFKA, None])
    assert (made.last, made.next) == (Planned(0, is_committed=False), 0)
    again = Checkpoint(made.folder)
    assert (again.last, again.next, again.end_of(0)) == (Planned(0, is_committed=False), 0, [KAFKA, None])
    made.commit(0)
    assert (again.last, again.next, again.start_of(1)) == (Planned(0, is_committed=True), 1, [KAFKA, None])
    made.plan(1, [KAFKA, {"logOffset": 0}])
    assert again.end_of(1) == [KAFKA, {"logOffset": 0}]


def test_what_the_first_source_is_can_be_told_once_it_was_read(made, tmp_path: Path):
    """Also while its first batch is not planned yet, and of topics in which there was nothing."""
    assert reads_files(tmp_path / "none") is None
    assert reads_files(made.folder) is None
    made.put_first_offsets(0, KAFKA)
    assert reads_files(made.folder) is False
    made.plan(0, [{}, {"logOffset": 0}])
    assert reads_files(made.folder) is False
    other = Checkpoint(tmp_path / "other")
    other.files(0).add([("file:///a", 1)])
    assert reads_files(other.folder) is True
    other.plan(0, [{"logOffset": 0}, None])
    assert reads_files(other.folder) is True


def test_the_end_of_one_source_is_replaced(made):
    """In a batch that was planned or is done; the rest stays to the byte, and no checksum of Spark's is left."""
    made.plan(0, [KAFKA, {"logOffset": 3}])
    path = made.folder / "offsets" / "0"
    before = path.read_bytes()
    path.with_name(".0.crc").write_bytes(b"crc")
    made.put_end(0, 0, {"topic": {"0": 0}})
    assert made.end_of(0) == [{"topic": {"0": 0}}, {"logOffset": 3}]
    assert path.read_bytes() == before.replace(b'{"0":7,"1":9}', b'{"0":0}')
    assert not path.with_name(".0.crc").exists()
    made.put_end(0, 1, None)
    assert made.end_of(0) == [{"topic": {"0": 0}}, None]


def test_files_are_those_of_spark(made, monkeypatch):
    """Files are those of Spark."""
    monkeypatch.setattr(time, "time_ns", lambda: 1_700_000_000_123_456_789)
    made.plan(0, [KAFKA, None])
    made.commit(0)
    offsets = b'v1\n{"batchWatermarkMs":0,"batchTimestampMs":1700000000123,"conf":{}}\n{"topic":{"0":7,"1":9}}\n-'
    assert (made.folder / "offsets" / "0").read_bytes() == offsets
    assert (made.folder / "commits" / "0").read_bytes() == b'v1\n{"nextBatchWatermarkMs":0}'


def test_settings_that_spark_has_noted_are_kept(made):
    """Settings that Spark has noted are kept."""
    conf = {"spark.sql.shuffle.partitions": "200", "spark.sql.streaming.join.stateFormatVersion": "2"}
    facts = json.dumps({"batchWatermarkMs": 0, "batchTimestampMs": 1, "conf": conf})
    (made.folder / "offsets" / "0").write_text(f"v1\n{facts}\n-\n-")
    made.commit(0)
    made.plan(1, [KAFKA, None])
    assert json.loads((made.folder / "offsets" / "1").read_text().split("\n")[1])["conf"] == conf


def test_offsets_of_old_sparks_without_settings(made):
    """Offsets of old Sparks without settings."""
    (made.folder / "offsets" / "0").write_text("v1\n\n-\n-")
    made.commit(0)
    made.plan(1, [None, None])
    assert made.end_of(0) == [None, None]


@pytest.mark.parametrize("number", [0, 2, 3])
def test_only_the_next_batch_is_planned(made, number):
    """Only the next batch is planned."""
    made.plan(0, [None, None])
    made.commit(0)
    with pytest.raises(ValueError, match="next one"):
        made.plan(number, [None, None])
    with pytest.raises(ValueError, match="planned"):
        made.commit(number)
    made.plan(1, [None, None])
    with pytest.raises(ValueError, match="next one"):
        made.plan(1, [None, None])
    with pytest.raises(ValueError, match="next one"):
        made.plan(2, [None, None])


@pytest.mark.parametrize(
    "content",
    [b"", b"v1", b"v2\n{}\n-\n-", b"v1\n{}\n-", b"v1\n{}\n-\n{", b"v1\n{}\n-\n7", b"\xff", b"v1\n{}\n-\n-\n-"],
)
def test_offsets_that_are_none(made, content):
    """Offsets that are none."""
    (made.folder / "offsets" / "0").write_bytes(content)
    with pytest.raises(FileError, match="offsets"):
        made.end_of(0)


def test_a_batch_that_is_not_there(made):
    """A batch that is not there."""
    with pytest.raises(FileError, match="offsets of batch 3"):
        made.end_of(3)


def test_metadata_that_is_none(made):
    """Metadata that is none."""
    (made.folder / "metadata").write_bytes(b"{")
    with pytest.raises(FileError, match="metadata"):
        Checkpoint(made.folder)


def test_hidden_files_of_runs_that_were_killed_count_for_nothing(made):
    """Hidden files of runs that were killed count for nothing."""
    for name in (".7.1f.tmp", ".7.crc", "..7.1f.tmp.crc", ".7.00000000.part", "7.tmp"):
        (made.folder / "offsets" / name).touch()
        (made.folder / "commits" / name).touch()
        (made.folder / "sources" / "0" / name).touch()
    assert (made.next, made.files(0).last) == (0, -1)


def test_a_stale_checksum_is_removed_with_what_is_written(made):
    """A stale checksum is removed with what is written."""
    stale = [made.folder / "offsets" / ".0.crc", made.folder / "commits" / ".0.crc", made.folder / "sources/0/.0.crc"]
    for path in stale:
        path.write_bytes(b"crc\0")
    made.plan(0, [None, None])
    made.commit(0)
    made.files(0).add([("file:///a", 1)])
    assert not [path for path in stale if path.exists()]


@pytest.mark.slow
def test_as_many_batches_are_kept_as_spark_keeps(made):
    """As many batches are kept as Spark keeps."""
    for number in range(103):
        made.plan(number, [{"logOffset": number}, None])
        (made.folder / "offsets" / f".{number}.crc").touch()
        made.commit(number)
    for folder in ("offsets", "commits"):
        names = {path.name for path in (made.folder / folder).iterdir()}
        assert {name for name in names if name.isdecimal()} == {str(number) for number in range(2, 103)}
        assert not {".0.crc", ".1.crc"} & names
    assert made.start_of(103) == [{"logOffset": 102}, None]


def test_nothing_is_half_written(made, monkeypatch):
    """Whatever fails when a batch is planned, it is planned or it is not."""
    made.plan(0, [None, None])
    made.commit(0)

    def fails(*_: object) -> None:
        raise OSError("no room")

    monkeypatch.setattr(os, "fsync", fails)
    with pytest.raises(OSError, match="no room"):
        made.plan(1, [KAFKA, None])
    monkeypatch.undo()
    assert made.next == 1
    made.plan(1, [KAFKA, None])


def test_first_offsets_of_kafka(made):
    """First offsets of Kafka."""
    assert made.first_offsets(0) is None
    made.put_first_offsets(0, KAFKA)
    assert (made.folder / "sources" / "0" / "0").read_bytes() == b'\0v1\n{"topic":{"0":7,"1":9}}'
    assert made.first_offsets(0) == KAFKA
    (made.folder / "sources" / "0" / "0").write_bytes(b'\0{"topic":{"0":7}}')
    assert made.first_offsets(0) == {"topic": {"0": 7}}


def test_topics_have_the_order_of_spark():
    """Topics have the order of their hashes, 113 and 98, in a table of 16 buckets: 1 and 2."""
    assert end_json({"a": {"0": 1}}) == '{"a":{"0":1}}'
    assert end_json({"b": {"0": 1}, "q": {"0": 1, "1": 2}}) == '{"q":{"0":1,"1":2},"b":{"0":1}}'


def files(first: int, last: int) -> list[tuple[str, int]]:
    """Return files by their numbers, with those as times."""
    return [(f"file:///in/{number}", number) for number in range(first, last)]


@pytest.fixture
def log(made) -> FileLog:
    """The log of the checkpoint's first source."""
    return made.files(0)


def names(log: FileLog) -> set[str]:
    """Return the names of the log's files."""
    return {path.name for path in log.folder.iterdir()}


def test_the_log_of_files_is_that_of_spark(log):
    """The log of files is that of Spark."""
    assert (log.last, [*log.every()]) == (-1, [])
    assert log.add([("file:///a%20b", 5), ("file:///ä", 6)]) == 0
    lines = b'v1\n{"path":"file:///a%20b","timestamp":5,"batchId":0}\n'
    assert (log.folder / "0").read_bytes() == lines + '{"path":"file:///ä","timestamp":6,"batchId":0}'.encode()


def test_each_tenth_number_is_compacted(log):
    """Each tenth number is compacted."""
    for number in range(25):
        assert log.add(files(2 * number, 2 * number + 2)) == number
    assert {"9.compact", "19.compact"} < names(log)
    assert not {"9", "19"} & names(log)
    assert [one.uri for one in log.every()] == [uri for uri, _ in files(0, 50)]
    assert [one.uri for one in log.every(18)] == [uri for uri, _ in files(38, 50)]
    assert [one.uri for one in log.entries(8, 20)] == [uri for uri, _ in files(16, 42)]
    assert [one.batch for one in log.entries(9, 9)] == [9, 9]
    assert log.entries(5, 4) == []


def test_entries_of_logs_that_were_removed_are_in_the_compacted_one(log):
    """Entries of logs that were removed are in the compacted one."""
    for number in range(12):
        log.add(files(number, number + 1))
    for number in range(9):
        (log.folder / str(number)).unlink()
    assert [one.uri for one in log.entries(3, 11)] == [uri for uri, _ in files(3, 12)]
    assert [one.uri for one in log.every()] == [uri for uri, _ in files(0, 12)]
    (log.folder / "10").unlink()
    with pytest.raises(FileError, match="what files were taken"):
        log.entries(9, 11)


@pytest.mark.parametrize(
    ("compacted", "interval"),
    [
        ([], 10),
        ([4], 5),
        ([9], 10),
        ([11], 12),
        ([19], 20),
        ([29], 10),
        ([34], 35),
        ([43], 11),
        ([9, 19, 29], 10),
        ([2, 5], 3),
    ],
)
def test_the_interval_is_what_spark_derives(compacted, interval):
    """The interval is what Spark derives."""
    assert compact_interval(compacted) == interval


def test_another_interval_goes_on(log):
    """Another interval goes on."""
    for number in range(4):
        (log.folder / str(number)).write_text(f'v1\n{{"path":"file:///{number}","timestamp":1,"batchId":{number}}}')
    (log.folder / "4.compact").write_text(
        "\n".join(["v1", *(f'{{"path":"file:///{n}","timestamp":1,"batchId":{n}}}' for n in range(5))])
    )
    for number in range(5, 10):
        log.add(files(number, number + 1))
    assert "9.compact" in names(log)
    assert len([*log.every()]) == 10


def test_old_logs_are_removed_as_spark_does(log, monkeypatch):
    """Old logs are removed as Spark does."""
    for number in range(110):
        log.add(files(number, number + 1))
    assert "0" in names(log)
    later = time.time() + 3_600
    monkeypatch.setattr(module.time, "time", lambda: later)
    log.add(files(110, 111))
    left = sorted(int(name.removesuffix(".compact")) for name in names(log) if not name.startswith("."))
    assert left == [*range(9, 111)]
    assert len([*log.every()]) == 111


@pytest.mark.parametrize(
    "content", [b"", b"v2\n{}", b"v1\n{}", b"v1\n[]", b"v1\n{", b'v1\n{"path":"a","timestamp":null,"batchId":0}']
)
def test_a_log_that_is_none(log, content):
    """A log that is none."""
    (log.folder / "0").write_bytes(content)
    with pytest.raises(FileError, match="sources"):
        [*log.every()]
