"""Several inputs, read one behind the other, by lines and in chunks that several threads can read."""

from __future__ import annotations

import gc
import gzip
import io
import re
from pathlib import Path
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cdcavro.errors import FileError
from cdcavro.exact import jsontext
from cdcavro.files.lines import CHUNK_BYTES, KEPT, Chunk, Inputs, Range, read_chunks, read_lines
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
    name, lines = Inputs([empty, *files]).open_lines("auto", option="--from")
    assert (name, [line.raw for line in lines]) == ("canal", [FIRST, SECOND] * 2)
    name, chunked = Inputs([empty, *files]).open_chunks("auto", option="--from")
    read = [(file, [line.raw for chunk in chunks for line in chunk.read().lines()]) for file, chunks in chunked]
    assert (name, read) == ("canal", [(file, [FIRST, SECOND]) for file in files])
    name, lines = Inputs([empty, empty]).open_lines("auto", option="--from")
    assert (name, list(lines)) == ("", [])
    name, chunked = Inputs([empty, empty]).open_chunks("auto", option="--from")
    assert (name, list(chunked)) == ("", [])


def test_a_file_of_no_known_format_is_named(folder):
    """With the option that says it."""
    (folder / "a.jsonl").write_bytes(b"{}")
    for told in (Inputs([str(folder)]).open_lines, Inputs([str(folder)]).open_chunks):
        with pytest.raises(FileError, match=r"a\.jsonl: expected a message of a known format .* or --from NAME"):
            told("auto", option="--from")


def test_a_byte_order_mark_is_no_part_of_the_first_line(tmp_path):
    """However the file is read, and it is said once."""
    path = tmp_path / "a.jsonl"
    path.write_bytes(b"\xef\xbb\xbf" + FIRST + b"\n" + SECOND)
    said = []
    inputs = Inputs([str(path)], said.append)
    assert [line.raw for line in inputs.lines(str(path))] == [FIRST, SECOND]
    assert said == [f"{path}: a byte order mark at the start is skipped"]
    _, chunked = inputs.open_chunks("canal", option="--from")
    chunks = [chunk for _, chunks in chunked for chunk in chunks]
    assert all(isinstance(chunk, Range) for chunk in chunks)
    assert [line.raw for chunk in chunks for line in chunk.read().lines()] == [FIRST, SECOND]
    assert len(said) == 2


CONTENTS = st.lists(st.sampled_from([b"\n", b"\n", b"a", b"\r\n", b"bcd", b"x" * 20]), max_size=40).map(b"".join)


def put_together(chunks):
    """Return the lines of chunks, numbered through the file."""
    found = []
    for chunk in chunks:
        first = len(found)
        found += [line._replace(number=first + line.number) for line in chunk.lines()]
    return found


def texts(chunk):
    """Return the bytes of a chunk's lines."""
    return [line.raw for line in chunk.lines()]


def non_empty(chunks):
    """Return the lines of each chunk that has some."""
    return [texts(chunk) for chunk in chunks if texts(chunk)]


@given(CONTENTS, st.integers(1, 30))
def test_chunks_hold_every_line_once_wherever_the_bytes_come_from(tmp_path_factory, content, size):
    """A file is read in ranges, gzip and standard input in a row: the chunks are the same, and their lines those of the file."""
    folder = tmp_path_factory.mktemp("chunks")
    plain, packed = folder / "a.jsonl", folder / "a.jsonl.gz"
    plain.write_bytes(content)
    packed.write_bytes(gzip.compress(content))
    ranges = list(read_chunks(str(plain), size=size))
    assert all(type(one) is Range for one in ranges)
    chunks = [one.read() for one in ranges]
    assert put_together(chunks) == list(read_lines(str(plain)))
    assert non_empty(read_chunks(str(packed), size=size)) == non_empty(chunks)


@given(CONTENTS, st.integers(1, 30))
def test_a_chunk_holds_the_lines_that_start_in_it(tmp_path_factory, content, size):
    """No line is divided, none is moved: what depends on a chunk depends on the text alone."""
    path = tmp_path_factory.mktemp("chunks") / "a.jsonl"
    path.write_bytes(content)
    expected = {}
    for line in re.finditer(rb"([^\n]*)\n|[^\n]+", content):
        expected.setdefault(line.start() // size, []).append(line[0].removesuffix(b"\n"))
    assert non_empty(chunk.read() for chunk in read_chunks(str(path), size=size)) == list(expected.values())


@pytest.mark.parametrize("ending", [b"", b"\n", b"\n1\n2", b"\n" * 3])
@pytest.mark.parametrize("before", [b"", b"1\n", b"1\n" * 300])
@pytest.mark.parametrize("length", [99_999, 100_000, 100_001, 300_000])
@pytest.mark.slow
def test_a_line_that_is_too_long_is_cut_as_everywhere(tmp_path, monkeypatch, before, length, ending):
    """It lies across many chunks; whoever reads the one where it starts tells its whole length."""
    monkeypatch.setattr(jsontext, "MAX_LENGTH", 100_000)
    content = before + b"x" * length + ending
    plain, packed = tmp_path / "a", tmp_path / "a.gz"
    plain.write_bytes(content)
    packed.write_bytes(gzip.compress(content))
    expected = list(read_lines(str(plain)))
    for size in (1000, 99_999, 1 << 20):
        chunks = [one.read() for one in read_chunks(str(plain), size=size)]
        assert put_together(chunks) == expected
        assert put_together(read_chunks(str(packed), size=size)) == expected
        assert any(chunk.is_long for chunk in chunks) or length <= 100_000
    assert {len(line.raw) for line in expected if line.length > 100_000} <= {KEPT}


def test_standard_input_and_files_without_a_size_are_read_in_a_row(tmp_path, monkeypatch):
    """What cannot be read from the middle is read from the start."""
    monkeypatch.setattr("sys.stdin", SimpleNamespace(buffer=io.BytesIO(b"1\n2\n3")))
    assert list(read_chunks("-", size=2)) == [Chunk(b"1\n"), Chunk(b"2\n"), Chunk(b"3")]
    path = tmp_path / "empty"
    path.write_bytes(b"")
    assert list(read_chunks(str(path))) == []


@pytest.mark.slow
@pytest.mark.parametrize("content", [b"1\n" * CHUNK_BYTES, gzip.compress(b"1\n" * CHUNK_BYTES)])
def test_progress_counts_the_bytes_of_the_file(tmp_path, content):
    """They add up to its size."""
    path = tmp_path / "a"
    path.write_bytes(content)
    sizes = []
    assert sum(len(texts(chunk.read())) for chunk in read_chunks(str(path), sizes.append)) == CHUNK_BYTES
    assert sum(sizes) == len(content)


def test_a_file_that_is_cut_meanwhile_is_an_error(tmp_path):
    """Half of a file is no file."""
    path = tmp_path / "a"
    path.write_bytes(b"1\n2\n3\n")
    _, second, _ = read_chunks(str(path), size=2)
    path.write_bytes(b"1\n")
    with pytest.raises(FileError) as caught:
        second.read()
    assert str(caught.value) == f"{path}: expected the file that was there at the start, got a shorter one"


def test_a_file_that_is_replaced_or_removed_meanwhile_is_read_to_its_end(tmp_path):
    """Half of one file and half of another would be neither."""
    path, other = tmp_path / "a", tmp_path / "b"
    path.write_bytes(b"1\n2\n3\n")
    other.write_bytes(b"4\n5\n6\n")
    chunks = read_chunks(str(path), size=2)
    first = next(chunks)
    other.replace(path)
    second = next(chunks)
    path.unlink()
    assert [texts(chunk.read()) for chunk in (first, second, *chunks)] == [[b"1"], [b"2"], [b"3"]]


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="the system does not list open files")
def test_a_file_is_closed_when_nobody_reads_it_any_more(tmp_path):
    """Also when its chunks were never read."""
    path = tmp_path / "a"
    path.write_bytes(b"1\n2\n3\n")
    # Files of earlier tests that wait for the collector.
    gc.collect()
    before = len(list(Path("/proc/self/fd").iterdir()))
    chunks = list(read_chunks(str(path), size=2))
    assert len(list(Path("/proc/self/fd").iterdir())) == before + 1
    chunks.clear()
    assert len(list(Path("/proc/self/fd").iterdir())) == before


def test_a_file_that_grows_meanwhile_is_read_as_far_as_it_was_at_the_start(tmp_path):
    """Its last line may have become whole."""
    path = tmp_path / "a"
    path.write_bytes(b"1\n2")
    chunks = list(read_chunks(str(path), size=2))
    with path.open("ab") as stream:
        stream.write(b"2\n3\n")
    assert [texts(chunk.read()) for chunk in chunks] == [[b"1"], [b"22"]]
