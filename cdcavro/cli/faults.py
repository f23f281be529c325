"""What a command says on standard error, and where its rejects go."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, BinaryIO, Final, TypeVar

import click

from cdcavro.errors import MessageError
from cdcavro.files.lines import ONE_LINE
from cdcavro.files.rejects import Reject

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from cdcavro.files.lines import Line

SHOWN: Final = 20
T = TypeVar("T")


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


class Run:
    """One run over the lines of a file: it reads, counts and rejects.

    Made from where rejects go, and the name of the format that a reject is of unless its error says so.
    Attributes: `read` and `rejected` (int), messages.
    """

    def __init__(self, faults: Faults, format: str | None = None) -> None:
        self._faults = faults
        self._format = format
        self.read = 0
        self.rejected = 0

    def results(self, lines: Iterable[Line], convert: Callable[[Line], T]) -> Iterator[T]:
        """Convert each line; one that raises a `MessageError` is rejected."""
        for line in lines:
            self.read += 1
            try:
                result = convert(line)
            except MessageError as error:
                self.reject(error, line)
            else:
                yield result

    def reject(self, error: MessageError, line: Line) -> None:
        """Reject a line, which may have been read before."""
        if error.format is None:
            error.format = self._format
        self.rejected += 1
        self._faults.add(error, line)


def say(sentence: str) -> None:
    """Say a sentence on standard error; while progress is shown, above it."""
    if sys.stderr is not None:
        sys.stderr.write(sentence + "\n")
