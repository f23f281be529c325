r"""Reading JSON lines from files, plain or packed, and standard input, one by one or in chunks, in constant memory.

A line ends at `\n` and nowhere else: values may hold U+0085, U+2028 and a lone `\r`. An empty line is a
line, but what follows the last `\n` is one only if it is not empty.

The inputs of a command are files, all files in folders, and standard input, read one after the other, by lines or
chunks. Lines are numbered through all of them, and a number tells the file and the line in it. A chunk is the lines
that start in the same half mebibyte of the text, so that several threads can read a file. The chunks are the same
whether the text comes from a file, from gzip or from standard input, and whichever thread reads it.
"""

from __future__ import annotations

import gzip
import io
import os
import re
import zlib
from bisect import bisect_right
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from cdcavro.errors import FileError, MessageError, SetupError, TextError, UnknownMessageError, number_of
from cdcavro.exact import jsontext
from cdcavro.files.streams import (
    CHUNK,
    STANDARD,
    ignore_progress,
    open_input,
    open_shared_input,
    say_nothing,
    shown_name,
)
from cdcavro.wire.sniff import AUTO, MIXED, best_format, fitting_formats, other_format, sniff

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from io import BufferedReader

    from cdcavro.files.streams import Advance, Say, SharedInput

    ChunkFile = tuple[str, "Iterator[Chunk | Range]"]

_HIDDEN: Final = ("_", ".")
# The first messages of at most this many files are compared with the stated format.
_MOST_LOOKS: Final = 100
# In bytes: larger messages are not compared, because that takes as long as reading them.
_LARGE: Final = 1 << 20


class Inputs:
    """Files that are read one after the other.

    `paths` are files, folders, of which all files are taken in the order of their names, those in folders within as well,
    and `-` for standard input, which is also read if there is no path. In folders, names that begin with `_` or `.` are passed
    over, as Spark does. `say` is called with a sentence for what is passed over. Attributes: `files` and `folders` (tuples
    of str), all files and the folders among the paths. Raises `FileError` for a folder that cannot be read.
    """

    def __init__(self, paths: Sequence[str], say: Say = say_nothing) -> None:
        self._say = say
        self._hidden = 0
        self._seen: set[str] = set()
        self.files = tuple(file for path in paths or (STANDARD,) for file in self._list(path))
        self.folders = tuple(path for path in paths if path != STANDARD and Path(path).is_dir())
        self._begun: list[tuple[int, str]] = []
        self._count = self._looks = 0
        if self._hidden:
            names = number_of(self._hidden, "file whose name begins/files whose names begin")
            say(f"passing over {names} with _ or .")

    def begin(self, file: str, before: int) -> None:
        """Note that the next file begins after `before` lines of other files."""
        self._begun.append((before, file))

    def place(self, number: int) -> tuple[str, int]:
        """Return the file of a line and its number there; `number` counts the lines of all files."""
        i = bisect_right(self._begun, number - 1, key=lambda begun: begun[0]) - 1
        before, file = self._begun[max(i, 0)] if self._begun else (0, STANDARD)
        return file, number - before

    def lines(self, file: str, advance: Advance = ignore_progress, format: str = AUTO) -> Iterator[Line]:
        """Yield the lines of a file, numbered on from those yielded before. Raises `FileError`.

        If the first of them look like another format than the stated one, that is said, once for all files.
        """
        before = self._count
        self.begin(file, before)
        head: list[bytes] = []
        for line in read_lines(file, advance, self._say):
            self._count += 1
            if len(head) < HEAD_LINES:
                head.append(line.raw)
                if len(head) == HEAD_LINES:
                    self._compare(file, head, format)
            yield line._replace(number=before + line.number) if before else line
        if len(head) < HEAD_LINES:
            self._compare(file, head, format)

    def open_lines(self, format: str, *, option: str, advance: Advance = ignore_progress) -> tuple[str, Iterator[Line]]:
        """Return the name of the format, and the lines of all files.

        If `format` is `auto`, the first lines of the first file that has some tell it. The name is empty if there are no
        lines. Raises `FileError`, which names the file, if they are of no known format.
        """
        rest = iter(self.files)
        for file in rest:
            name, lines = choose_format(self.lines(file, advance, format), format, file=shown_name(file), option=option)
            if name:
                return name, chain(lines, (line for other in rest for line in self.lines(other, advance, format)))
        return "", iter(())

    def open_chunks(
        self, format: str, *, option: str, advance: Advance = ignore_progress
    ) -> tuple[str, Iterator[ChunkFile]]:
        """Return the name of the format, as `open_lines` does, and each file with its chunks; `begin` notes each."""
        rest = iter(self.files)
        for file in rest:
            name, chunks = _choose_format_of_chunks(
                self._chunks(file, advance, format), format, file=shown_name(file), option=option
            )
            if name:
                return name, chain([(file, chunks)], ((other, self._chunks(other, advance, format)) for other in rest))
        return "", iter(())

    def chunks(
        self, file: str, format: str = AUTO, advance: Advance = ignore_progress
    ) -> tuple[str, Iterator[Chunk | Range]]:
        """Return the name of a file's format, which its first lines tell if `format` is `auto`, and its chunks.

        The name is empty if these tell none, and for `mixed`. Raises `FileError`.
        """
        chunks = self._chunks(file, advance, format)
        if format != AUTO:
            return "" if format == MIXED else format, chunks
        consumed: list[Chunk | Range] = []
        name, _ = detect_format(_lines_of_chunks(chunks, consumed))
        return name, chain(consumed, chunks)

    def _chunks(self, file: str, advance: Advance, format: str) -> Iterator[Chunk | Range]:
        for i, chunk in enumerate(read_chunks(file, advance, say=self._say)):
            if i == 0 and format not in (AUTO, MIXED):
                self._compare(file, [line.raw for line in islice(chunk.read().lines(), HEAD_LINES)], format)
            yield chunk

    def _compare(self, file: str, head: Sequence[bytes], format: str) -> None:
        """Say, once for all files, if the first messages of one, or some, look like another format than the stated one."""
        if format in (AUTO, MIXED) or self._looks >= _MOST_LOOKS:
            return
        self._looks += 1
        lines = [(number, raw) for number, raw in enumerate(head, start=1) if len(raw) <= _LARGE]
        strange = [(number, look) for number, raw in lines if (look := other_format([raw], format))]
        if not strange:
            return
        looking = "its line {} looks like {}".format(*strange[0])
        if len(strange) == len(lines):
            other = other_format([raw for _, raw in lines], format)
            looking = f"it begins with {number_of(len(lines), 'message that looks/messages that look')} like {other}"
        self._looks = _MOST_LOOKS
        self._say(f"{shown_name(file)}: {looking}, read as {format}")

    def _list(self, path: str) -> Iterator[str]:
        """Yield the files that a path means. A file found twice in folders, for example through a link, is read once."""
        if path == STANDARD or not Path(path).is_dir():
            self._seen.add(_key(path))
            yield path
            return
        for folder, folders, files in os.walk(path, onerror=_refuse, followlinks=True):
            if not self._is_new(folder):
                folders.clear()
                continue
            shown = sorted(name for name in files if not name.startswith(_HIDDEN))
            self._hidden += sum(not name.endswith(".crc") and name != "_SUCCESS" for name in files) - len(shown)
            folders[:] = sorted(name for name in folders if not name.startswith(_HIDDEN))
            yield from (file for file in (str(Path(folder, name)) for name in shown) if self._is_new(file))

    def _is_new(self, path: str) -> bool:
        key = _key(path)
        is_new = key not in self._seen
        self._seen.add(key)
        return is_new


def _key(file: str) -> str:
    return file if file == STANDARD else os.path.realpath(file)


def _refuse(error: OSError) -> None:
    raise FileError(str(error.filename), "a folder that can be read", str(error.strerror)) from error


CHUNK_BYTES: Final = 512 << 10


@dataclass(frozen=True, slots=True)
class Chunk:
    r"""A chunk of whole lines.

    Attributes: `raw` (bytes), the lines as far as they lie in the chunk's own bytes; `rest` (bytes), the
    rest of the last line, without its `\n`, kept apart because `raw` is large; `missing` (int), how many
    bytes of the last line are in neither, if it is longer than a message may be.
    """

    raw: bytes
    rest: bytes = b""
    missing: int = 0

    def read(self) -> Chunk:
        """Return the chunk itself, as `Range.read` returns the chunk that the range stands for."""
        return self

    @property
    def is_long(self) -> bool:
        """Whether a line may be longer than a message."""
        return len(self.raw) + len(self.rest) + self.missing > jsontext.MAX_LENGTH

    def lines(self) -> Iterator[Line]:
        """Yield the lines, numbered from 1."""
        number = position = 0
        while position >= 0:
            number += 1
            line, position = self.line(position, number)
            if line is not None:
                yield line

    def line(self, position: int, number: int) -> tuple[Line | None, int]:
        """Return the line at a position in `raw`, None behind the last one, and the position of the next, -1 if none."""
        end = self.raw.find(b"\n", position)
        if end >= 0:
            return _line(number, self.raw[position:end]), end + 1
        last = self.raw[position:] + self.rest
        return _line(number, last, self.missing) if last else None, -1


@dataclass(frozen=True, slots=True)
class Range:
    """The lines of a file that start at a byte from `start` up to, but not including, `end`; the first one at `first`."""

    place: SharedInput
    start: int
    end: int
    first: int = 0

    def read(self) -> Chunk:
        """Read the lines. Raises `FileError`."""
        start = self.start
        if start > self.first:
            before = self.place.stream(start - 1).readline(self.end - start)
            if not before.endswith(b"\n"):
                return Chunk(b"")
            start += len(before) - 1
        return _complete(self.place.read(start, self.end), self.place.stream(self.end))


def read_chunks(
    path: str, advance: Advance = ignore_progress, size: int = CHUNK_BYTES, say: Say = say_nothing
) -> Iterator[Chunk | Range]:
    """Yield the chunks of a file, plain or packed, or of standard input (`-`), each of `size` bytes and the rest of a line.

    For a plain file, ranges are yielded instead, and `advance` is called with the bytes of each as it is
    taken. `say` is told of a byte order mark. Raises `FileError`, and `SetupError` as `read_lines` does.
    """
    place = _open_plain(path)
    if place is None:
        with open_text(path, advance, say) as stream:
            yield from cut(stream, size)
        return
    first = len(BOM) if place.stream(0).read(len(BOM)) == BOM else 0
    if first:
        say(f"{shown_name(path)}: {MARK_NOTE}")
    for start in range(first, place.size, size):
        end = min(start + size, place.size)
        yield Range(place, start, end, first)
        advance(end - start)


def _choose_format_of_chunks(
    chunks: Iterator[Chunk | Range], format: str, *, file: str, option: str
) -> tuple[str, Iterator[Chunk | Range]]:
    """Return the name of a file's format and all its chunks, as `choose_format` does with its lines. Raises `FileError`."""
    consumed: list[Chunk | Range] = []
    name, _ = choose_format(_lines_of_chunks(chunks, consumed), format, file=file, option=option)
    return name, chain(consumed, chunks)


def _lines_of_chunks(chunks: Iterator[Chunk | Range], consumed: list[Chunk | Range]) -> Iterator[Line]:
    """Yield the lines of chunks, and note which are consumed. Lines are numbered from 1 in each."""
    for chunk in chunks:
        consumed.append(chunk)
        yield from chunk.read().lines()


def _line(number: int, raw: bytes, missing: int = 0) -> Line:
    length = len(raw) + missing
    return Line(number, raw if length <= jsontext.MAX_LENGTH else raw[:KEPT], length)


def _open_plain(path: str) -> SharedInput | None:
    place = open_shared_input(path)
    if place is None:
        return None
    with open_input(path) as stream:
        return None if packing_of(path, stream) else place


def cut(stream: BufferedReader[Any], size: int) -> Iterator[Chunk]:
    """Yield the chunks of a stream of text, each of `size` bytes and the rest of a line."""
    position = 0
    while raw := stream.read(size - position % size):
        chunk = _complete(raw, stream)
        yield chunk
        position += len(raw)
        if not raw.endswith(b"\n"):
            position += len(chunk.rest) + chunk.missing + 1


def _complete(raw: bytes, stream: BufferedReader) -> Chunk:
    """Return the chunk of some bytes and the rest of their last line, of which only the start is kept if too long."""
    if raw.endswith(b"\n"):
        return Chunk(raw)
    start = raw.rfind(b"\n") + 1
    room = jsontext.MAX_LENGTH - (len(raw) - start)
    rest = stream.readline(max(0, room + 1))
    if rest.endswith(b"\n"):
        return Chunk(raw, rest[:-1])
    if len(rest) <= room:
        return Chunk(raw, rest)
    kept = max(0, KEPT - (len(raw) - start))
    return Chunk(raw, rest[:kept], len(rest[kept:]) + skip_line(stream))


KEPT: Final = 64 << 10
HEAD_LINES: Final = 100
HEAD_BYTES: Final = 8 << 20
ONE_LINE: Final = "a message must stand on one line"
# What puts messages on lines.
SPLIT: Final = f"{ONE_LINE}: `jq -c . FILE` writes each on one, and `jq -c '.[]' FILE` those of an array"
_OPENINGS: Final = (b"{", b"[")
# How an array of messages begins, and no line of a log such as `[INFO] started`.
_ARRAY: Final = re.compile(rb"\s*\[\s*\{")
BOM: Final = b"\xef\xbb\xbf"
MARK_NOTE: Final = "a byte order mark at the start is skipped"
GZIP: Final = "gzip"
ZSTANDARD: Final = "Zstandard"
_MARKS: Final = {GZIP: b"\x1f\x8b", ZSTANDARD: b"\x28\xb5\x2f\xfd"}
_ENDINGS: Final = {".gz": GZIP, ".zst": ZSTANDARD, ".zstd": ZSTANDARD}
# What files start with that are no text, whatever they are called.
_OTHERS: Final = {
    b"Obj\x01": "an Avro container file, which `cdcavro decode` reads",
    b"PK\x03\x04": "a zip archive",
    b"\xfd7zXZ\x00": "an xz file",
    b"\x04\x22\x4d\x18": "an lz4 file",
    **{b"BZh%d1AY&SY" % level: "a bzip2 file" for level in range(1, 10)},
    b"\xff\xfe": "text in UTF-16: messages are UTF-8",
    b"\xfe\xff": "text in UTF-16: messages are UTF-8",
}
_LONGEST_MARK: Final = max(map(len, _OTHERS))


class Line(NamedTuple):
    r"""A line: its number from 1, its bytes without the `\n`, and its length in bytes.

    A line longer than `jsontext.MAX_LENGTH` has only its first 64 KiB in `raw`.
    """

    number: int
    raw: bytes
    length: int

    @classmethod
    def of(cls, number: int, message: bytes | str) -> Line:
        """Return the line on which a message stood."""
        raw = jsontext.to_bytes(message)
        return cls(number, raw, len(raw))

    @property
    def is_opening(self) -> bool:
        """Whether the line is only the bracket that opens a message printed on several lines, or an array."""
        is_array = self.length == len(self.raw) and _ARRAY.match(self.raw) is not None
        return is_array or (self.length < KEPT and self.raw.strip() in _OPENINGS)

    def message(self) -> bytes:
        """Return the whole line. Raises `TextError` if it is longer than a message may be."""
        if self.length > len(self.raw):
            raise TextError(f"at most {jsontext.MAX_LENGTH} bytes", f"{self.length}")
        return self.raw


def read_lines(path: str, advance: Advance = ignore_progress, say: Say = say_nothing) -> Iterator[Line]:
    """Yield the lines of a file, plain, gzip or Zstandard (recognized by name or first bytes), or of standard input (`-`).

    `advance` is called with the number of bytes that each read took from the file, compressed bytes for what is packed,
    and `say` with a sentence about a byte order mark at the start, which is no part of the first line. Raises `FileError`
    if the file cannot be read, is packed and damaged or ends too early, or is of another kind, and `SetupError` for
    Zstandard where pyarrow is not installed.
    """
    with open_text(path, advance, say) as stream:
        yield from _lines_of(stream)


@contextmanager
def open_text(
    path: str, advance: Advance = ignore_progress, say: Say = say_nothing
) -> Iterator[io.BufferedReader[Any]]:
    """Open a file or standard input and yield a stream of its unpacked text; see `read_lines`."""
    with open_input(path, advance) as stream, unpack(path, stream, say) as text:
        yield text


@contextmanager
def unpack(path: str, stream: io.BufferedReader[Any], say: Say = say_nothing) -> Iterator[io.BufferedReader[Any]]:
    """Yield a stream of the text in a file's stream, which may be packed, without a byte order mark; see `read_lines`."""
    packing = packing_of(path, stream)
    if packing is None:
        yield skip_mark(path, stream, say)
        return
    try:
        yield skip_mark(path, io.BufferedReader(_UNPACK[packing](stream), CHUNK), say)
    except EOFError as error:
        raise FileError(path, f"a whole {packing} file", "one that ends too early") from error
    except (gzip.BadGzipFile, zlib.error) as error:
        raise FileError(path, f"a {packing} file", "one that is damaged or none") from error


def packing_of(path: str, stream: io.BufferedReader[Any]) -> str | None:
    """Return how a file is packed, by its first bytes or its name: "gzip", "Zstandard", or None for plain text.

    Raises `FileError` for a file that is no text by its first bytes.
    """
    start = stream.peek(_LONGEST_MARK)
    for mark, kind in _OTHERS.items():
        if start.startswith(mark):
            raise FileError(path, "JSON lines, plain or packed with gzip or Zstandard", kind)
    by_content = next((name for name, mark in _MARKS.items() if start.startswith(mark)), None)
    return by_content or _ENDINGS.get(PurePath(path).suffix.lower())


def is_packed(path: str, start: bytes) -> bool:
    """Return whether a file is packed: by its first bytes, or with Zstandard by its name.

    A name that ends in `.gz` shows nothing: Spark may have unpacked the file already.
    """
    is_named = _ENDINGS.get(PurePath(path).suffix.lower()) == ZSTANDARD
    return is_named or start.startswith(tuple(_MARKS.values()))


def skip_mark(path: str, stream: io.BufferedReader[Any], say: Say) -> io.BufferedReader[Any]:
    """Skip the byte order mark at the start of a text, if there is one, and say so. Return the stream."""
    if stream.peek(len(BOM))[: len(BOM)] == BOM:
        stream.read(len(BOM))
        say(f"{shown_name(path)}: {MARK_NOTE}")
    return stream


class _Zstandard(io.RawIOBase):
    """A raw stream of what is packed with Zstandard in another. Raises `SetupError` where pyarrow is not installed."""

    def __init__(self, stream: io.BufferedReader[Any]) -> None:
        super().__init__()
        try:
            import pyarrow as pa  # noqa: PLC0415  it takes long to import, and an extra brings it
        except ImportError as error:
            sentence = "pyarrow is not installed, which unpacks Zstandard: pip install 'cdcavro[arrow]'"
            raise SetupError(sentence) from error
        self._text = pa.CompressedInputStream(pa.PythonFile(stream, "r"), "zstd")

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        try:
            raw = self._text.read(len(buffer))
        except OSError as error:
            # Of an end that comes too early Arrow says so; its other errors are of bytes that are none of Zstandard's.
            raise (EOFError if "truncated" in str(error).lower() else zlib.error)(str(error)) from error
        buffer[: len(raw)] = raw
        return len(raw)


_UNPACK: Final[dict[str, Callable[[io.BufferedReader[Any]], Any]]] = {
    GZIP: lambda stream: gzip.GzipFile(fileobj=stream),
    ZSTANDARD: _Zstandard,
}


def detect_format(lines: Iterator[Line]) -> tuple[str, Iterator[Line]]:
    """Return the name of the format that fits a file's first lines best, and all its lines again.

    At most 100 lines and about 8 MiB are read. The name is empty if no line is a message of a known format.
    """
    head: list[Line] = []
    size = 0
    for line in lines:
        head.append(line)
        size += len(line.raw)
        if len(head) == HEAD_LINES or size >= HEAD_BYTES:
            break
    return best_format(map(_fitting_formats, head)), chain(head, lines)


def choose_format(lines: Iterator[Line], format: str, *, file: str, option: str) -> tuple[str, Iterator[Line]]:
    """Return the name of a file's format, recognized by its first lines if `format` is `auto`, and all lines again.

    The name is empty for a file without lines, which fits any format. Raises `FileError`, which names the
    file and the option that states its format, if no message is of a known format.
    """
    if format != AUTO:
        return format, lines
    first = next(lines, None)
    if first is None:
        return "", lines
    name, lines = detect_format(chain([first], lines))
    if not name:
        raise unknown_format(first, file=file, option=option)
    return name, lines


def unknown_format(first: Line | None, *, file: str, option: str) -> FileError:
    """Return the error for a file whose format its first lines do not show; `first` is the first of them."""
    expected = f"a message of a known format among the first {HEAD_LINES}, or {option} NAME"
    if first is None or not first.is_opening:
        return FileError(file, expected, _describe(first) or "none")
    return FileError(file, expected, f"{_describe(first) or 'one on several lines'}: {SPLIT}")


def _describe(first: Line | None) -> str | None:
    """Return what a line is, or why it is refused; None if it is no JSON."""
    try:
        if first is not None:
            sniff(first.message())
    except UnknownMessageError as error:
        return error.got
    except TextError:
        return None
    except MessageError as error:
        return f"one that is refused: {error}"
    return None


def _fitting_formats(line: Line) -> dict[str, int]:
    try:
        return fitting_formats(line.message())
    except MessageError:
        return {}


def _lines_of(stream: io.BufferedReader) -> Iterator[Line]:
    number = 0
    while raw := stream.readline(jsontext.MAX_LENGTH + 1):
        number += 1
        if raw.endswith(b"\n"):
            yield Line(number, raw[:-1], len(raw) - 1)
        elif len(raw) <= jsontext.MAX_LENGTH:
            yield Line(number, raw, len(raw))
        else:
            yield Line(number, raw[:KEPT], len(raw) + skip_line(stream))


def skip_line(stream: io.BufferedReader[Any]) -> int:
    r"""Skip the rest of a line and return its length without the `\n`."""
    skipped = 0
    while raw := stream.readline(CHUNK):
        skipped += len(raw)
        if raw.endswith(b"\n"):
            return skipped - 1
    return skipped
