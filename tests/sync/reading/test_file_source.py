"""FileReader of this machine: which are new, in which order, and what was taken."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from cdcavro.errors import FileError
from cdcavro.sync.reading.checkpoint import Checkpoint
from cdcavro.sync.reading.file_source import (
    FileProgress,
    FileReader,
    ReplayReader,
    TakenFile,
    check_unchanged,
    file_uri,
)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder for files."""
    (tmp_path / "in").mkdir()
    return tmp_path / "in"


def put(folder: Path, name: str, time: float = 1_700_000_000, content: bytes = b"x\n") -> Path:
    """Write a file."""
    path = folder / name
    path.parent.mkdir(exist_ok=True, parents=True)
    path.write_bytes(content)
    os.utime(path, (time, time))
    return path


def names(folder: Path, files: list[TakenFile]) -> list[str]:
    """Return the names of files."""
    return [str(Path(one.path).relative_to(folder)) for one in files]


def test_those_come_first_that_were_modified_first(folder):
    """Those come first that were modified first."""
    for name, time in (("c", 3), ("a", 2), ("sub/b", 1), ("b", 2)):
        put(folder, name, time)
    assert names(folder, FileReader(str(folder)).new({})) == ["sub/b", "a", "b", "c"]
    assert FileReader(str(folder)).new({})[0] == TakenFile(file_uri(f"{folder}/sub/b"), 1_000)


def test_times_are_whole_milliseconds(folder):
    """Times are whole milliseconds."""
    os.utime(put(folder, "a"), ns=(0, 1_700_000_000_123_999_999))
    assert FileReader(str(folder)).new({})[0].time == 1_700_000_000_123


def test_hidden_names_are_passed_over(folder):
    """Hidden names are passed over."""
    for name in ("_a", ".b", "_sub/c", ".sub/d", "e._COPYING_", "_day=1", "f"):
        put(folder, name)
    assert names(folder, FileReader(str(folder)).new({})) == ["_day=1", "f"]


def test_what_was_taken_is_not_new(folder):
    """What was taken is not new."""
    put(folder, "a")
    put(folder, "b")
    assert names(folder, FileReader(str(folder)).new({file_uri(f"{folder}/a"): 0})) == ["b"]


def test_one_file_and_a_hidden_one(folder):
    """One file and a hidden one."""
    assert names(folder, FileReader(str(put(folder, "a"))).new({})) == ["a"]
    assert FileReader(str(put(folder, "_a"))).new({}) == []


def test_names_with_marks_of_a_pattern_are_exact(folder):
    """Names with marks of a pattern are exact."""
    put(folder, "[ab]/x")
    put(folder, "a/y")
    assert names(folder, FileReader(str(folder / "[ab]")).new({})) == ["[ab]/x"]


def test_an_address_is_a_pattern(folder):
    """An address is a pattern."""
    put(folder, "[ab]/x")
    put(folder, "a/y")
    assert names(folder, FileReader(f"file://{folder}/[ab]").new({})) == ["a/y"]
    assert names(folder, FileReader(f"file://{folder}/a").new({})) == ["a/y"]


@pytest.mark.parametrize("path", ["nothing", "file:///nothing/at/all", "s3://bucket/in", "hdfs:///in"])
def test_where_nothing_is(path):
    """Where nothing is."""
    with pytest.raises(FileError, match="file"):
        FileReader(path).check()


def test_a_pattern_may_mean_nothing_yet(folder):
    """A pattern may mean nothing yet."""
    files = FileReader(f"{folder}/*.json")
    files.check()
    assert files.new({}) == []
    put(folder, "a.json")
    assert names(folder, files.new({})) == ["a.json"]


def test_a_pattern_is_of_the_folder_in_which_the_process_runs(folder, monkeypatch):
    """A pattern is of the folder in which the process runs."""
    put(folder, "a.json")
    monkeypatch.chdir(folder)
    assert names(folder, FileReader("*.json").new({})) == ["a.json"]


def test_links_are_followed_and_may_not_lead_in_a_circle(folder):
    """Links are followed and may not lead in a circle."""
    put(folder.parent, "elsewhere/a")
    (folder / "link").symlink_to(folder.parent / "elsewhere")
    assert names(folder, FileReader(str(folder)).new({})) == ["link/a"]
    (folder.parent / "elsewhere" / "back").symlink_to(folder)
    with pytest.raises(FileError, match="read already"):
        FileReader(str(folder)).new({})


def test_a_folder_that_is_a_link_is_named_as_what_it_is(folder):
    """A folder that is a link is named as what it is."""
    put(folder, "a")
    (folder.parent / "link").symlink_to(folder)
    assert names(folder, FileReader(str(folder.parent / "link")).new({})) == ["a"]


def test_a_folder_that_a_stream_of_spark_writes_is_refused(folder):
    """A folder that a stream of Spark writes is refused."""
    put(folder, "_spark_metadata/0")
    with pytest.raises(FileError, match="_spark_metadata"):
        FileReader(str(folder)).check()


def test_batches_have_at_most_so_many_files(folder):
    """Batches have at most so many files."""
    progress = FileProgress(FileReader(str(folder), most=2), Checkpoint(folder.parent / "state").files(0))
    assert (progress.look(), progress.advance()) == (0, None)
    for i in range(5):
        put(folder, str(i), i)
    assert progress.look() == 5
    ends = [progress.advance() for _ in range(3)]
    assert ends == [{"logOffset": i} for i in range(3)]
    assert [names(folder, progress.files(before, end)) for before, end in zip([None, *ends], ends, strict=False)] == [
        ["0", "1"],
        ["2", "3"],
        ["4"],
    ]
    assert (progress.waiting, progress.look(), progress.advance()) == (0, 0, {"logOffset": 2})


def test_files_that_came_meanwhile_are_taken_behind_those_that_were_found(folder):
    """FileReader that came meanwhile are taken behind those that were found."""
    progress = FileProgress(FileReader(str(folder), most=1), Checkpoint(folder.parent / "state").files(0))
    put(folder, "b", 2)
    put(folder, "c", 3)
    assert progress.look() == 2
    first = progress.advance()
    put(folder, "a", 1)
    # What was found already is there once.
    assert progress.look() == 2
    second = progress.advance()
    third = progress.advance()
    found = [progress.files(None, first), progress.files(first, second), progress.files(second, third)]
    assert [names(folder, one) for one in found] == [["b"], ["c"], ["a"]]


def test_one_that_is_gone_before_it_is_taken_is_passed_over(folder):
    """One that is gone before it is taken is passed over."""
    progress = FileProgress(FileReader(str(folder), most=1), Checkpoint(folder.parent / "state").files(0))
    for name in "abc":
        put(folder, name)
    progress.look()
    progress.advance()
    (folder / "b").unlink()
    assert names(folder, progress.files({"logOffset": 0}, progress.advance())) == ["c"]


def test_files_in_the_log_that_no_batch_has_are_in_the_next_one(folder):
    """As if the process had been killed between the two."""
    log = Checkpoint(folder.parent / "state").files(0)
    put(folder, "a")
    killed = FileProgress(FileReader(str(folder)), log)
    assert (killed.look(), killed.advance()) == (1, {"logOffset": 0})
    progress = FileProgress(FileReader(str(folder)), log)
    assert progress.look() == 0
    assert names(folder, progress.files(None, progress.advance())) == ["a"]
    put(folder, "b")
    assert progress.look() == 1
    assert names(folder, progress.files(None, progress.advance())) == ["a", "b"]


def test_lag(folder):
    """The files that were not taken are the lag."""
    progress = FileProgress(FileReader(str(folder), most=1), Checkpoint(folder.parent / "state").files(0))
    for name in "abc":
        put(folder, name)
    assert progress.look() == 3
    progress.advance()
    assert progress.waiting == 2


def test_files_that_have_changed(folder):
    """FileReader that have changed."""
    paths = [put(folder, name) for name in "abc"]
    taken = {one.uri: one.time for one in FileReader(str(folder)).new({})}
    check_unchanged(taken)
    paths[0].unlink()
    check_unchanged(taken)
    put(folder, "b", 1)
    with pytest.raises(FileError, match=r"/b: .*one that has changed; what was added is not read"):
        check_unchanged(taken)
    put(folder, "c", 1)
    with pytest.raises(FileError, match=r"got one that has changed \(and 1 more\); "):
        check_unchanged(taken)


def test_lines_have_their_file_as_spark_writes_it(folder):
    """Lines have their file as Spark writes it."""
    put(folder, "a b")
    files = FileReader(str(folder))
    (batch,) = files.batches(files.new({})[0])
    assert batch.column("file").to_pylist() == [f"file:{folder}/a%20b"]


def test_rejects_are_read_again(tmp_path):
    """Rejects are read again."""
    again = ReplayReader(tmp_path / "replay")
    assert again.new({}) == []
    line = json.dumps(
        {"raw": "QQ==", "record_key": None, "topic": "t", "partition": 1, "offset": 2, "clock": "[0,[],1]"}
    )
    put(tmp_path / "replay", "batch=7-x/part-0.json", 2, line.encode())
    put(tmp_path / "replay", "batch=7-x/_SUCCESS")
    put(tmp_path / "replay", "batch=7-x/.part-0.json.crc")
    progress = FileProgress(again, Checkpoint(tmp_path / "state").files(1))
    assert progress.look() == 1
    (file,) = progress.files(None, progress.advance())
    (batch,) = again.batches(file)
    place = {"topic": "t", "partition": 1, "offset": 2, "file": None, "line": None, "size": None}
    assert batch.to_pylist() == [{"raw": b"A", "length": 1, "key": None, **place, "clock": "[0,[],1]"}]
