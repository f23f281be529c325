"""The inputs of commands: which files a path means, and where a line of all of them is."""

from __future__ import annotations

import pytest

from cdcavro.errors import FileError
from cdcavro.files.chunks import Range
from cdcavro.files.inputs import Inputs
from support.messages import shop_canal

FIRST, SECOND, *_ = shop_canal()


@pytest.fixture
def folder(tmp_path):
    """Return a folder of files in folders, with what is passed over, and links that lead around and back."""
    for name in (
        "b.jsonl",
        "a.jsonl",
        "deep/er/c.jsonl",
        "_hidden.jsonl",
        ".x",
        "_SUCCESS",
        ".a.jsonl.crc",
        "_d/e.jsonl",
    ):
        file = tmp_path / "in" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(FIRST + b"\n" + SECOND)
    (tmp_path / "in" / "deep" / "back").symlink_to(tmp_path / "in")
    (tmp_path / "in" / "other").symlink_to(tmp_path / "in" / "deep")
    return tmp_path / "in"


def test_a_folder_means_its_files_in_the_order_of_their_names(folder):
    """Those in folders within as well; a link leads to no file twice, and back to none."""
    said = []
    inputs = Inputs([str(folder)], said.append)
    assert inputs.files == tuple(str(folder / name) for name in ("a.jsonl", "b.jsonl", "deep/er/c.jsonl"))
    assert said == ["passing over 2 files whose names begin with _ or ."]
    assert inputs.folders == (str(folder),)


def test_a_file_that_is_named_is_read_whatever_its_name_and_as_often_as_it_is_named(folder):
    """And once more by no folder."""
    hidden, one = str(folder / "_hidden.jsonl"), str(folder / "a.jsonl")
    assert Inputs([hidden, one, one, str(folder)]).files[:3] == (hidden, one, one)
    assert len(Inputs([hidden, one, one, str(folder)]).files) == 5
    assert Inputs([]).files == ("-",)
    assert Inputs([str(folder / "deep" / "er")]).files == (str(folder / "deep" / "er" / "c.jsonl"),)


def test_a_number_tells_the_file_and_its_line(folder):
    """Files without lines are none that a line could be of."""
    (folder / "a2.jsonl").touch()
    inputs = Inputs([str(folder)])
    lines = [line for file in inputs.files for line in inputs.lines(file)]
    assert [line.number for line in lines] == [1, 2, 3, 4, 5, 6]
    assert [inputs.place(line.number) for line in lines] == [
        (str(folder / name), number) for name in ("a.jsonl", "b.jsonl", "deep/er/c.jsonl") for number in (1, 2)
    ]


def test_the_format_is_told_by_the_first_file_with_lines(folder):
    """Nothing is lost of what was read for it."""
    (folder / "_").touch()
    empty, files = str(folder / "_"), [str(folder / name) for name in ("a.jsonl", "b.jsonl")]
    name, lines = Inputs([empty, *files]).told_lines("auto", option="--from")
    assert (name, [line.raw for line in lines]) == ("canal", [FIRST, SECOND] * 2)
    name, chunked = Inputs([empty, *files]).told_chunks("auto", option="--from")
    read = [(file, [line.raw for chunk in chunks for line in chunk.read().lines()]) for file, chunks in chunked]
    assert (name, read) == ("canal", [(file, [FIRST, SECOND]) for file in files])
    name, lines = Inputs([empty, empty]).told_lines("auto", option="--from")
    assert (name, list(lines)) == ("", [])
    name, chunked = Inputs([empty, empty]).told_chunks("auto", option="--from")
    assert (name, list(chunked)) == ("", [])


def test_a_file_of_no_known_format_is_named(folder):
    """With the option that says it."""
    (folder / "a.jsonl").write_bytes(b"{}")
    for told in (Inputs([str(folder)]).told_lines, Inputs([str(folder)]).told_chunks):
        with pytest.raises(FileError, match=r"a\.jsonl: expected a message of a known format .* or --from NAME"):
            told("auto", option="--from")


def test_a_byte_order_mark_is_no_part_of_the_first_line(tmp_path):
    """However the file is read, and it is said once."""
    path = tmp_path / "a.jsonl"
    path.write_bytes(b"\xef\xbb\xbf" + FIRST + b"\n" + SECOND)
    said = []
    inputs = Inputs([str(path)], said.append)
    assert [line.raw for line in inputs.lines(str(path))] == [FIRST, SECOND]
    assert said == [f"{path}: a byte order mark at the start is passed over"]
    _, chunked = inputs.told_chunks("canal", option="--from")
    chunks = [chunk for _, chunks in chunked for chunk in chunks]
    assert all(isinstance(chunk, Range) for chunk in chunks)
    assert [line.raw for chunk in chunks for line in chunk.read().lines()] == [FIRST, SECOND]
    assert len(said) == 2
