"""Cutting a file of JSON lines into chunks, so that several threads can read it.

A chunk is the lines that start in the same half mebibyte of the text. So the chunks are the same whether
the text comes from a file, from gzip or from standard input, and whichever thread reads it.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, Any, Final

from cdcavro.exact import jsontext
from cdcavro.files.lines import BOM, KEPT, MARKED, Line, open_text, packing_of, skip_line, told_lines
from cdcavro.files.streams import open_input, shared_input, shown_name, unsaid, unwatched

if TYPE_CHECKING:
    from collections.abc import Iterator
    from io import BufferedReader

    from cdcavro.files.streams import Advance, Say, SharedInput

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
        return _completed(self.place.read(start, self.end), self.place.stream(self.end))


def read_chunks(
    path: str, advance: Advance = unwatched, size: int = CHUNK_BYTES, say: Say = unsaid
) -> Iterator[Chunk | Range]:
    """Yield the chunks of a file, plain or packed, or of standard input (`-`), each of `size` bytes and the rest of a line.

    For a plain file, ranges are yielded instead, and `advance` is called with the bytes of each as it is
    taken. `say` is told of a byte order mark. Raises `FileError`, and `SetupError` as `read_lines` does.
    """
    place = _plain(path)
    if place is None:
        with open_text(path, advance, say) as stream:
            yield from cut(stream, size)
        return
    first = len(BOM) if place.stream(0).read(len(BOM)) == BOM else 0
    if first:
        say(f"{shown_name(path)}: {MARKED}")
    for start in range(first, place.size, size):
        end = min(start + size, place.size)
        yield Range(place, start, end, first)
        advance(end - start)


def told_chunks(
    chunks: Iterator[Chunk | Range], format: str, *, file: str, option: str
) -> tuple[str, Iterator[Chunk | Range]]:
    """Return the name of a file's format and all its chunks, as `told_lines` does with its lines. Raises `FileError`."""
    consumed: list[Chunk | Range] = []

    def lines() -> Iterator[Line]:
        for chunk in chunks:
            consumed.append(chunk)
            yield from chunk.read().lines()

    name, _ = told_lines(lines(), format, file=file, option=option)
    return name, chain(consumed, chunks)


def _line(number: int, raw: bytes, missing: int = 0) -> Line:
    length = len(raw) + missing
    return Line(number, raw if length <= jsontext.MAX_LENGTH else raw[:KEPT], length)


def _plain(path: str) -> SharedInput | None:
    place = shared_input(path)
    if place is None:
        return None
    with open_input(path) as stream:
        return None if packing_of(path, stream) else place


def cut(stream: BufferedReader[Any], size: int) -> Iterator[Chunk]:
    """Yield the chunks of a stream of text, each of `size` bytes and the rest of a line."""
    position = 0
    while raw := stream.read(size - position % size):
        chunk = _completed(raw, stream)
        yield chunk
        position += len(raw)
        if not raw.endswith(b"\n"):
            position += len(chunk.rest) + chunk.missing + 1


def _completed(raw: bytes, stream: BufferedReader) -> Chunk:
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
