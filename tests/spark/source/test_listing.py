"""Listings of files: what a path means, and what is passed over."""

from __future__ import annotations

import os
import shutil
import threading
from pathlib import Path

import pytest

from cdcavro.errors import FileError
from cdcavro.spark.source.listing import list_files, open_file

FILES = (
    "_part=1/a.jsonl",
    "a.jsonl",
    "b.jsonl.gz",
    "c d%20.txt",
    "day=1/a.jsonl",
    "day=2/[x].jsonl",
    "day=2/deep/a.jsonl",
)
HIDDEN = ("_SUCCESS", ".a.jsonl.crc", "_temporary/0/a.jsonl", "day=1/.part", ".x=1/a", "day=1/b.jsonl._COPYING_")


@pytest.fixture
def folder(tmp_path) -> Path:
    """A folder of files, some of which are hidden."""
    for name in (*FILES, *HIDDEN):
        path = tmp_path / "in" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(name)
    return tmp_path / "in"


def listed(folder: Path, *patterns: str) -> list[str]:
    """Return the names of the files that patterns mean, within the folder."""
    found = list_files([f"{folder}/{pattern}".rstrip("/") for pattern in patterns])
    assert all(file.size == Path(file.name).stat().st_size for file in found)
    assert all(open_file(file.name).read() == Path(file.name).read_bytes() for file in found)
    return [str(Path(file.name).relative_to(folder)) for file in found]


@pytest.mark.parametrize(
    ("pattern", "wanted"),
    [
        ("", FILES),
        ("a.jsonl", ["a.jsonl"]),
        ("c d%20.txt", ["c d%20.txt"]),
        ("day=1", ["day=1/a.jsonl"]),
        ("*", FILES),
        ("*.jsonl", ["a.jsonl"]),
        ("*/*.jsonl", ["_part=1/a.jsonl", "day=1/a.jsonl", "day=2/[x].jsonl"]),
        ("day=?", ["day=1/a.jsonl", "day=2/[x].jsonl", "day=2/deep/a.jsonl"]),
        ("day=[12]/a*", ["day=1/a.jsonl"]),
        ("day=[!1]/*/*", ["day=2/deep/a.jsonl"]),
        ("{a,b}.jsonl*", ["a.jsonl", "b.jsonl.gz"]),
        ("{day={1,3},nothing}", ["day=1/a.jsonl"]),
        ("day=2/[x].jsonl", ["day=2/[x].jsonl"]),
        (r"day=*/\[x\].jsonl", ["day=2/[x].jsonl"]),
        ("*.parquet", []),
        ("[", []),
        ("{", []),
        ("a.jsonl/*", []),
    ],
)
def test_a_path_means_a_file_a_folder_or_what_is_like_it(folder, pattern, wanted):
    """What has just this name comes first; folders are taken with all that is in them and is not hidden."""
    if pattern == "a.jsonl/*":
        with pytest.raises(FileError):
            listed(folder, pattern)
        return
    assert listed(folder, pattern) == list(wanted)


def test_what_several_paths_mean_comes_once(folder):
    """However often it is meant."""
    assert listed(folder, "day=1", "day=*/a.jsonl", "a.jsonl") == ["a.jsonl", "day=1/a.jsonl"]


def test_addresses_of_local_files_are_their_paths(folder):
    """With the characters that an address escapes."""
    assert [file.name for file in list_files([f"file://{folder}/a.jsonl"])] == [f"{folder}/a.jsonl"]
    assert [file.name for file in list_files([f"file:{folder}/c%20d%2520.txt"])] == [f"{folder}/c d%20.txt"]


def test_paths_may_be_relative(folder, monkeypatch):
    """To where Spark was started; names are whole paths, in errors too, as workers run elsewhere."""
    monkeypatch.chdir(folder)
    assert [file.name for file in list_files(["a.jsonl"])] == [f"{folder}/a.jsonl"]
    with pytest.raises(FileError, match=f"{folder}/nothing: expected a file or folder, got none"):
        list_files(["nothing"])


@pytest.mark.parametrize(
    ("path", "sentence"),
    [
        ("nothing", "{folder}/nothing: expected a file or folder, got none"),
        (
            "_SUCCESS",
            "{folder}/_SUCCESS: expected a name that is read, got one that starts with _ or ., or ends with ._COPYING_",
        ),
    ],
)
def test_a_path_that_means_nothing_is_an_error(folder, path, sentence):
    """Nothing is passed over without a word."""
    with pytest.raises(FileError) as caught:
        list_files([f"{folder}/{path}"])
    assert str(caught.value) == sentence.format(folder=folder)


def test_file_systems_that_are_not_known_are_an_error():
    """They are named."""
    with pytest.raises(FileError) as caught:
        list_files(["dbfs:/tmp/a.jsonl"])
    expected = "a local path, or an address that pyarrow reads (s3, s3a, gs, abfss, hdfs)"
    assert str(caught.value) == f"dbfs:/tmp/a.jsonl: expected {expected}, got one of dbfs"


@pytest.mark.parametrize("path", ["", "file:", "file://"])
def test_a_path_without_a_name_is_an_error(path):
    """It does not mean all that lies where Spark was started."""
    with pytest.raises(FileError, match="expected a path, got none"):
        list_files([path])


def test_credentials_in_an_address_are_refused_and_not_shown():
    """They would be in the checkpoint and in a column."""
    with pytest.raises(FileError) as caught:
        list_files(["s3://canary-user:canary-password@bucket/in"])
    assert str(caught.value).startswith("s3://…@bucket: expected an address without credentials")
    assert "canary" not in str(caught.value)


def test_hidden_folders_are_not_looked_into(folder):
    """Whatever is in them."""
    Path(os.fsdecode(bytes(folder) + b"/_temporary/\xff.jsonl")).write_text("{}")
    assert listed(folder, "") == list(FILES)


def test_links_are_followed_but_not_for_ever(folder, tmp_path):
    """What a folder has by a link is its own; a link to a folder that it is in, by whatever way, is an error."""
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "a.jsonl").write_text("a")
    (folder / "day=3").symlink_to(tmp_path / "other")
    assert listed(folder, "") == sorted([*FILES, "day=3/a.jsonl"])
    (tmp_path / "other" / "back").symlink_to(folder)
    for path, link in ((folder, "day=3/back"), (folder / "day=3", "back/day=3")):
        with pytest.raises(FileError) as caught:
            list_files([str(path)])
        real = (path / link).resolve()
        assert str(caught.value) == f"{path}/{link}: expected a folder that is not within itself, got a link to {real}"


def test_a_folder_that_several_links_lead_to_is_read_once(tmp_path):
    """A ladder of links would have 2 to the power of its steps; each is where it is itself, or behind the first link."""
    for step in range(40):
        (tmp_path / f"{step}").mkdir()
        (tmp_path / f"{step}" / "a.jsonl").write_text("{}")
        for name in ("x", "y"):
            (tmp_path / f"{step}" / name).symlink_to(tmp_path / f"{step + 1}")
    (tmp_path / "40").mkdir()
    (tmp_path / "40" / "b.jsonl").write_text("{}")
    assert (
        listed(tmp_path, "")
        == listed(tmp_path, "*")
        == sorted([f"{step}/a.jsonl" for step in range(40)] + ["40/b.jsonl"])
    )
    assert listed(tmp_path, "0") == sorted(
        [f"0/{'x/' * step}a.jsonl" for step in range(40)] + [f"0/{'x/' * 40}b.jsonl"]
    )
    assert listed(tmp_path, "39/?/b.jsonl") == ["39/x/b.jsonl", "39/y/b.jsonl"]


def test_a_pattern_may_name_a_link(folder):
    """Beside the folder that it leads to, which the pattern does not mean."""
    (folder / "latest").symlink_to(folder / "day=1")
    assert listed(folder, "latest/*.jsonl") == ["latest/a.jsonl"]
    assert listed(folder, "lat*") == ["latest/a.jsonl"]
    assert listed(folder, "{latest,day=1}") == ["day=1/a.jsonl"]
    assert listed(folder, "day=1", "latest/*") == ["day=1/a.jsonl", "latest/a.jsonl"]


@pytest.mark.slow
def test_folders_that_go_while_they_are_listed_are_not_there(folder):
    """As those of which somebody moves away what was read; the files that stay are found each time."""
    went = threading.Event()

    def come_and_go() -> None:
        for i in range(1000):
            path = folder / f"gone={i % 7}" / "deep"
            path.mkdir(parents=True)
            shutil.rmtree(path.parent)
        went.set()

    thread = threading.Thread(target=come_and_go)
    thread.start()
    try:
        while not went.is_set():
            assert [file.name for file in list_files([str(folder)])] == [f"{folder}/{name}" for name in FILES]
    finally:
        thread.join()


def test_names_that_are_no_text_are_an_error(folder):
    """Pyarrow cannot tell them; they are not passed over."""
    Path(os.fsdecode(bytes(folder) + b"/\xff.jsonl")).write_text("{}")
    with pytest.raises(FileError, match=r"expected names that are UTF-8, got .*xff\.jsonl"):
        list_files([str(folder)])


def test_a_folder_that_cannot_be_read_is_an_error(folder):
    """So is a file: the sentence says which."""
    with pytest.raises(FileError, match=r"/day=1/gone: expected what can be read"):
        open_file(f"{folder}/day=1/gone")
