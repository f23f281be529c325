"""What a command says on standard error, and where its rejects go."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, BinaryIO, Final

import click

from cdcavro.errors import FileError
from cdcavro.files.lines import HEAD_LINES
from cdcavro.files.rejects import Reject

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cdcavro.errors import MessageError
    from cdcavro.files.lines import Line

SHOWN: Final = 20
ONE_LINE: Final = "a message must stand on one line"


class Faults:
    """Takes the faults of a file: each goes to a stream as a reject, if there is one, and to standard error.

    Made from the file's name, the stream, and how many sentences are shown; None shows all.
    """

    def __init__(self, file: str, stream: BinaryIO | None = None, *, shown: int | None = None) -> None:
        self._file = click.format_filename(file)
        self._stream = stream
        self._shown = shown
        self._count = 0
        self._is_spread = False

    def add(self, error: MessageError, line: Line) -> None:
        """Take the fault of a line."""
        reject = Reject.of(error, line, self._file)
        self._count += 1
        self._is_spread |= line.is_opening
        if self._shown is None or self._count <= self._shown:
            say(str(reject))
        if self._stream is not None:
            self._stream.write(reject.json() + b"\n")

    @property
    def count(self) -> int:
        """How many were taken."""
        return self._count

    def finish(self) -> None:
        """Say how many sentences were not shown, and what is wrong with a file of messages on several lines."""
        if self._shown is not None and self._count > self._shown:
            say(f"... and {self._count - self._shown:,} more")
        if self._is_spread:
            say(f"{self._file}: {ONE_LINE}")


def untold(file: str, lines: Iterator[Line], option: str) -> FileError:
    """Return the error of a file whose format is not told by its first lines."""
    first = next(lines, None)
    expected = f"a message of a known format among the first {HEAD_LINES}, or {option} NAME"
    got = "none" if first is None or not first.is_opening else f"one on several lines: {ONE_LINE}"
    return FileError(click.format_filename(file), expected, got)


def say(sentence: str) -> None:
    """Say a sentence on standard error; while progress is shown, above it."""
    if sys.stderr is not None:
        sys.stderr.write(sentence + "\n")
