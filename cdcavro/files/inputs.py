"""The inputs of a command: files, all files in folders, and standard input, read one after the other, by lines or chunks.

Lines are numbered through all of them, and a number tells the file and the line in it. A chunk is the lines that start in
the same half mebibyte of the text, so that several threads can read a file. The chunks are the same whether the text comes
from a file, from gzip or from standard input, and whichever thread reads it.
"""

from __future__ import annotations

import os
from bisect import bisect_right
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from cdcavro.errors import FileError, number_of
from cdcavro.exact import jsontext
from cdcavro.files.lines import (
    BOM,
    HEAD_LINES,
    KEPT,
    MARK_NOTE,
    Line,
    choose_format,
    detect_format,
    open_text,
    packing_of,
    read_lines,
    skip_line,
)
from cdcavro.files.streams import STANDARD, ignore_progress, open_input, open_shared_input, say_nothing, shown_name
from cdcavro.wire.sniff import AUTO, MIXED, other_format

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
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
        other = other_format([raw for _, raw in lines], format)
        looking = f"it begins with {number_of(len(lines), 'message that looks/messages that look')} like {other}"
        if other is None:
            strange = next(((number, other) for number, raw in lines if (other := other_format([raw], format))), None)
            if strange is None:
                return
            looking = "its line {} looks like {}".format(*strange)
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
