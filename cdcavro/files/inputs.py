"""The inputs of a command: files, all files in folders, and standard input, which are read one behind the other.

Lines are numbered through all of them, and a number tells the file and the line in it.
"""

from __future__ import annotations

import os
from bisect import bisect_right
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING, Final

from cdcavro.errors import FileError, number_of
from cdcavro.files.chunks import read_chunks, told_chunks
from cdcavro.files.lines import HEAD_LINES, read_lines, told_lines
from cdcavro.files.streams import STANDARD, shown_name, unsaid, unwatched
from cdcavro.wire.sniff import AUTO, MIXED, other_format

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from cdcavro.files.chunks import Chunk, Range
    from cdcavro.files.lines import Line
    from cdcavro.files.streams import Advance, Say

    ChunkFile = tuple[str, Iterator[Chunk | Range]]

_HIDDEN: Final = ("_", ".")
# The beginnings of so many files are looked at, whether they look like another format than that which is stated.
_MOST_LOOKS: Final = 100
# In bytes: larger messages are not looked at, which would take as long as to read them.
_LARGE: Final = 1 << 20


class Inputs:
    """Files that are read one behind the other.

    `paths` are files, folders, of which all files are taken in the order of their names, those in folders within as well,
    and `-` for standard input, which is also what no path means. In folders, names that begin with `_` or `.` are passed
    over, as Spark does. `say` is called with a sentence for what is passed over. Attributes: `files` and `folders` (tuples
    of str), all files and the folders among the paths. Raises `FileError` for a folder that cannot be read.
    """

    def __init__(self, paths: Sequence[str], say: Say = unsaid) -> None:
        self._say = say
        self._hidden = 0
        self._seen: set[str] = set()
        self.files = tuple(file for path in paths or (STANDARD,) for file in self._listed(path))
        self.folders = tuple(path for path in paths if path != STANDARD and Path(path).is_dir())
        self._begun: list[tuple[int, str]] = []
        self._count = self._looks = 0
        if self._hidden:
            names = number_of(self._hidden, "file whose name begins/files whose names begin")
            say(f"passing over {names} with _ or .")

    def begin(self, file: str, before: int) -> None:
        """Note that the next file begins behind so many lines."""
        self._begun.append((before, file))

    def place(self, number: int) -> tuple[str, int]:
        """Return the file and its own number of the line that has a number in all."""
        i = bisect_right(self._begun, number - 1, key=lambda begun: begun[0]) - 1
        before, file = self._begun[max(i, 0)] if self._begun else (0, STANDARD)
        return file, number - before

    def lines(self, file: str, advance: Advance = unwatched, format: str = AUTO) -> Iterator[Line]:
        """Yield the lines of a file, numbered behind those that were yielded before. Raises `FileError`.

        If the first of them look like another format than that which is stated, that is said, once for all files.
        """
        before = self._count
        self.begin(file, before)
        head: list[bytes] = []
        for line in read_lines(file, advance, self._say):
            self._count += 1
            if len(head) < HEAD_LINES:
                head.append(line.raw)
                if len(head) == HEAD_LINES:
                    self._look(file, head, format)
            yield line._replace(number=before + line.number) if before else line
        if len(head) < HEAD_LINES:
            self._look(file, head, format)

    def told_lines(self, format: str, *, option: str, advance: Advance = unwatched) -> tuple[str, Iterator[Line]]:
        """Return the name of the format, and the lines of all files.

        If `format` is `auto`, the first lines of the first file that has some tell it. The name is empty if there are no
        lines. Raises `FileError`, which names the file, if they are of no known format.
        """
        rest = iter(self.files)
        for file in rest:
            name, lines = told_lines(self.lines(file, advance, format), format, file=shown_name(file), option=option)
            if name:
                return name, chain(lines, (line for other in rest for line in self.lines(other, advance, format)))
        return "", iter(())

    def told_chunks(self, format: str, *, option: str, advance: Advance = unwatched) -> tuple[str, Iterator[ChunkFile]]:
        """Return the name of the format, as `told_lines` does, and each file with its chunks; `begin` notes each."""
        rest = iter(self.files)
        for file in rest:
            name, chunks = told_chunks(
                self._chunks(file, advance, format), format, file=shown_name(file), option=option
            )
            if name:
                return name, chain([(file, chunks)], ((other, self._chunks(other, advance, format)) for other in rest))
        return "", iter(())

    def _chunks(self, file: str, advance: Advance, format: str) -> Iterator[Chunk | Range]:
        for i, chunk in enumerate(read_chunks(file, advance, say=self._say)):
            if i == 0 and format not in (AUTO, MIXED):
                self._look(file, [line.raw for line in islice(chunk.read().lines(), HEAD_LINES)], format)
            yield chunk

    def _look(self, file: str, head: Sequence[bytes], format: str) -> None:
        """Say once if the first messages of a file look like another format than that which is stated."""
        if format in (AUTO, MIXED) or self._looks >= _MOST_LOOKS:
            return
        self._looks += 1
        head = [raw for raw in head if len(raw) <= _LARGE]
        other = other_format(head, format)
        if other is not None:
            self._looks = _MOST_LOOKS
            looking = number_of(len(head), "message that looks/messages that look")
            self._say(f"{shown_name(file)}: it begins with {looking} like {other}, read as {format}")

    def _listed(self, path: str) -> Iterator[str]:
        """Yield the files that a path means; what is found twice in folders, as by a link, is read once."""
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
