"""Reading JSON lines: where lines end, what is too long, gzip, standard input, and the count of bytes."""

from __future__ import annotations

import gzip
import io
from types import SimpleNamespace

import pytest

from cdcavro.errors import FileError, TextError
from cdcavro.exact import jsontext
from cdcavro.files.lines import HEAD_BYTES, HEAD_LINES, Line, detect_format, read_lines
from support.messages import shop_canal

SHOP = b"\n".join(shop_canal()) + b"\n"


def lines_of(folder, content, name="lines.jsonl"):
    """Write the content into a file and give its lines as pairs of number and bytes."""
    path = folder / name
    path.write_bytes(content)
    return [(line.number, line.message()) for line in read_lines(str(path))]


def error_of(path):
    """Return the sentence of the error that reading a file raises."""
    with pytest.raises(FileError) as caught:
        list(read_lines(str(path)))
    return str(caught.value)


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (b"", []),
        (b"\n", [(1, b"")]),
        (b"1", [(1, b"1")]),
        (b"1\n", [(1, b"1")]),
        (b"1\n\n2\n", [(1, b"1"), (2, b""), (3, b"2")]),
        (b"1\n2", [(1, b"1"), (2, b"2")]),
        (b"1\n\n", [(1, b"1"), (2, b"")]),
        (b"1\r", [(1, b"1\r")]),
    ],
)
def test_an_empty_line_counts_but_the_piece_behind_the_last_newline_only_if_it_holds_something(
    tmp_path, content, expected
):
    """Lines are numbered from 1, empty ones too."""
    assert lines_of(tmp_path, content) == expected


@pytest.mark.parametrize("inside", ["\u0085", "\r", "\u2028", "\x0b", "\x0c", "\x1e", "\x00"])
def test_only_a_newline_ends_a_line(tmp_path, inside):
    """No other character that some libraries split at does."""
    raw = f'{{"a":"{inside}"}}'.encode()
    assert lines_of(tmp_path, raw + b"\n" + raw + b"\n") == [(1, raw), (2, raw)]


def test_a_carriage_return_before_the_newline_stays(tmp_path):
    """It is white space to JSON, and nothing is dropped from the bytes of a reject."""
    assert lines_of(tmp_path, b"1\r\n2\r\n") == [(1, b"1\r"), (2, b"2\r")]


@pytest.mark.parametrize("ending", [b"", b"\n", b"\n1\n"])
def test_a_line_that_is_too_long_is_cut_and_says_its_length(tmp_path, monkeypatch, ending):
    """Its beginning is kept, the error tells its whole length, and the lines behind it go on."""
    monkeypatch.setattr(jsontext, "MAX_LENGTH", 100_000)
    path = tmp_path / "long.jsonl"
    path.write_bytes(b"x" * 300_001 + ending)
    first, *others = read_lines(str(path))
    assert (first.number, first.raw, first.length) == (1, b"x" * (64 << 10), 300_001)
    with pytest.raises(TextError) as caught:
        first.message()
    assert str(caught.value) == "message: $: expected at most 100000 bytes, got 300001"
    assert others == ([Line(2, b"1", 1)] if ending.endswith(b"1\n") else [])


@pytest.mark.parametrize("ending", [b"", b"\n"])
def test_a_line_of_just_the_greatest_length_is_whole(tmp_path, monkeypatch, ending):
    """The bound itself is allowed."""
    monkeypatch.setattr(jsontext, "MAX_LENGTH", 100)
    assert lines_of(tmp_path, b"x" * 100 + ending + b"y" * (1 if ending else 0))[0] == (1, b"x" * 100)


@pytest.mark.parametrize("name", ["shop.jsonl.gz", "shop.jsonl"])
def test_gzip_is_told_by_its_name_or_its_first_bytes(tmp_path, name):
    """A file that was compressed without being renamed is read as well."""
    packed = gzip.compress(SHOP[:2000]) + gzip.compress(SHOP[2000:])
    assert lines_of(tmp_path, packed, name) == list(enumerate(shop_canal(), 1))


def test_gzip_that_ends_too_early_is_an_error(tmp_path):
    """The lines before the end come through, then the file is refused."""
    path = tmp_path / "cut.gz"
    path.write_bytes(gzip.compress(SHOP)[:-100])
    assert error_of(path) == f"{path}: expected a whole gzip file, got one that ends too early"


@pytest.mark.parametrize("content", [b"{}\n", gzip.compress(SHOP)[:500] + b"x" * 100 + gzip.compress(SHOP)[600:]])
def test_gzip_that_is_damaged_or_none_is_an_error(tmp_path, content):
    """Neither plain text named .gz nor changed bytes are read as if they were right."""
    path = tmp_path / "bad.gz"
    path.write_bytes(content)
    assert error_of(path) == f"{path}: expected a gzip file, got one that is damaged or none"


def test_a_missing_file_is_an_error(tmp_path):
    """The sentence names the file."""
    path = tmp_path / "none.jsonl"
    assert error_of(path) == f"{path}: expected a file that can be read, got 'No such file or directory'"


def test_a_folder_is_an_error(tmp_path):
    """A folder holds no lines."""
    assert error_of(tmp_path) == f"{tmp_path}: expected a file that can be read, got 'Is a directory'"


@pytest.mark.parametrize("content", [SHOP, gzip.compress(SHOP)])
def test_progress_counts_the_bytes_of_the_file(tmp_path, content):
    """Compressed bytes where the file is compressed, so that they add up to its size."""
    path = tmp_path / "shop.jsonl"
    path.write_bytes(content)
    sizes = []
    assert len(list(read_lines(str(path), sizes.append))) == 188
    assert sum(sizes) == len(content)


def test_a_dash_reads_standard_input(monkeypatch):
    """Gzip too."""
    monkeypatch.setattr("sys.stdin", SimpleNamespace(buffer=io.BytesIO(gzip.compress(SHOP))))
    assert [line.raw for line in read_lines("-")] == shop_canal()


def test_the_format_of_a_file_is_told_by_its_first_lines_and_no_line_is_lost():
    """What is read ahead comes again, and lines that are no messages do not vote."""
    raw = [b"", b"{", *shop_canal()]
    lines = [Line(i, one, len(one)) for i, one in enumerate(raw, 1)]
    told, again = detect_format(iter(lines))
    assert told == "canal"
    assert list(again) == lines


def test_lines_behind_the_first_hundred_do_not_tell_the_format():
    """Reading ahead is bounded."""
    lines = iter([Line(i, b"{}", 2) for i in range(1, HEAD_LINES + 1)] + [Line(101, shop_canal()[0], 1)])
    told, _ = detect_format(lines)
    assert told == ""
    assert next(lines).number == HEAD_LINES + 1


@pytest.mark.slow
@pytest.mark.parametrize(("less", "expected"), [(0, ""), (1, "canal")])
def test_lines_behind_the_first_eight_mebibytes_do_not_tell_the_format(less, expected):
    """Reading ahead is bounded in bytes too: a file of huge lines is not held in memory."""
    assert HEAD_BYTES == 8 << 20
    huge = b" " * (HEAD_BYTES // 4)
    raw = [huge, huge, huge, huge[less:], shop_canal()[0]]
    lines = [Line(i, one, len(one)) for i, one in enumerate(raw, 1)]
    told, again = detect_format(iter(lines))
    assert told == expected
    assert list(again) == lines
