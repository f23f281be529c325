"""What a command says on standard error, and where its rejects go."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, BinaryIO, Final

import click

from cdcavro.rejects import Reject

if TYPE_CHECKING:
    from cdcavro.errors import MessageError
    from cdcavro.lines import Line

SHOWN: Final = 20


class Faults:
    """Takes the faults of a file: each goes to a stream as a reject, if there is one, and to standard error.

    Made from the file's name, the stream, and how many sentences are shown; None shows all.
    """

    def __init__(self, file: str, stream: BinaryIO | None = None, *, shown: int | None = None) -> None:
        self._file = click.format_filename(file)
        self._stream = stream
        self._shown = shown
        self._count = 0

    def add(self, error: MessageError, line: Line) -> None:
        """Take the fault of a line."""
        reject = Reject.of(error, line, self._file)
        self._count += 1
        if self._shown is None or self._count <= self._shown:
            note(str(reject))
        if self._stream is not None:
            self._stream.write(reject.json() + b"\n")

    @property
    def count(self) -> int:
        """How many were taken."""
        return self._count

    def finish(self) -> None:
        """Say how many sentences were not shown."""
        if self._shown is not None and self._count > self._shown:
            note(f"... and {self._count - self._shown:,} more")


def note(sentence: str) -> None:
    """Say a sentence on standard error; while progress is shown, above it."""
    sys.stderr.write(sentence + "\n")
