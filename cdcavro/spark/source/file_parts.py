"""File parts, each for one task: whole files, and pieces of large ones that end where a line does."""

from __future__ import annotations

import io
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import PurePath
from typing import TYPE_CHECKING, Any, Final

from pyspark.sql.datasource import InputPartition

from cdcavro.errors import FileError
from cdcavro.files.inputs import cut
from cdcavro.files.lines import detect_format, packing_of, unpack
from cdcavro.spark.source.listing import file_errors, open_file
from cdcavro.wire.sniff import AUTO, MIXED

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from cdcavro.files.inputs import Chunk
    from cdcavro.spark.source.listing import FoundFile

# Names of files that Spark's text source decompresses, and this one does not.
_PACKED: Final = frozenset({".bz2", ".deflate", ".lz4", ".lzo", ".snappy", ".xz"})
_READ: Final = 1 << 20
_CHUNK: Final = 2 << 20
# How many files a task opens at most.
_MOST_FILES: Final = 32


@dataclass(frozen=True, slots=True)
class Piece:
    """Lines of a file."""

    # The file's name.
    file: str
    # Which of its bytes; of gzip always all.
    start: int
    end: int
    # The number of the first line.
    line: int
    # A format's name, `mixed`, or `auto` for a whole file whose first lines tell it.
    format: str


class FilePart(InputPartition):
    """The pieces that one task reads: `pieces` (list of `Piece`)."""

    def __init__(self, pieces: list[Piece]) -> None:
        super().__init__(None)
        self.pieces = pieces


def parts_of(files: Iterable[FoundFile], format: str, most: int) -> list[FilePart]:
    """Return the parts of files, each of about `most` bytes. Raises `FileError`.

    A larger plain file is cut. It is read for that, to count its lines, and to find its format if that is `auto`. gzip
    cannot be cut.
    """
    parts: list[FilePart] = []
    pieces: list[Piece] = []
    size = 0
    for file in files:
        for piece in _pieces(file, format, most):
            weight = max(piece.end - piece.start, most // _MOST_FILES)
            if pieces and size + weight > most:
                parts.append(FilePart(pieces))
                pieces, size = [], 0
            pieces.append(piece)
            size += weight
    return [*parts, *([FilePart(pieces)] if pieces else [])]


def chunks_of(piece: Piece) -> Iterator[Chunk]:
    """Yield the text of a piece in chunks of whole lines. Raises `FileError`."""
    with file_errors(piece.file), _stream(piece.file, piece.start, piece.end) as stream:
        if piece.start:
            yield from cut(stream, _CHUNK)
            return
        with unpack(piece.file, stream) as text:
            yield from cut(text, _CHUNK)


def format_of(piece: Piece) -> str:
    """Return the format of a piece; `mixed` if the first lines of a whole file do not tell it."""
    if piece.format != AUTO:
        return piece.format
    return detect_format(line for chunk in chunks_of(piece) for line in chunk.lines())[0] or MIXED


def cuts(stream: io.BufferedReader[Any], most: int) -> Iterator[tuple[int, int, int]]:
    """Yield where the pieces of a plain text begin and end, and the number of their first lines.

    Each has at least `most` bytes, but for the last one, and ends with its line.
    """
    start = position = lines = before = 0
    while raw := stream.read(_READ):
        at = 0
        while (end := raw.find(b"\n", max(at, start + most - 1 - position))) >= 0:
            yield start, position + end + 1, before + 1
            lines += raw.count(b"\n", at, end + 1)
            start, at, before = position + end + 1, end + 1, lines
        lines += raw.count(b"\n", at)
        position += len(raw)
    if start < position:
        yield start, position, before + 1


def _pieces(file: FoundFile, format: str, most: int) -> Iterator[Piece]:
    ending = PurePath(file.name).suffix.lower()
    if ending in _PACKED:
        raise FileError(file.name, "plain text, gzip or Zstandard", f"a name that ends in {ending}")
    whole = Piece(file.name, 0, file.size, 1, format)
    if file.size <= most:
        yield whole
        return
    with file_errors(file.name), _stream(file.name, 0, file.size) as stream:
        if packing_of(file.name, stream):
            yield whole
            return
        format = format_of(whole)
        for start, end, line in cuts(stream, most):
            yield Piece(file.name, start, end, line, format)


@contextmanager
def _stream(name: str, start: int, end: int) -> Iterator[Any]:
    """Open the bytes of a file from one place to another. Raises `FileError`."""
    with open_file(name) as file, io.BufferedReader(_Within(file, name, start, end), _READ) as stream:
        yield stream


class _Within(io.RawIOBase):
    """A raw stream of the bytes of an open file from one place to another.

    Raises `FileError` if it ends before that.
    """

    def __init__(self, file: Any, name: str, start: int, end: int) -> None:
        super().__init__()
        file.seek(start)
        self._file, self._name, self._left = file, name, end - start

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        raw = self._file.read(min(len(buffer), self._left))
        if not raw and self._left:
            raise FileError(self._name, "the file that was there at the start", "a shorter one")
        buffer[: len(raw)] = raw
        self._left -= len(raw)
        return len(raw)
