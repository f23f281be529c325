"""What a command prints on standard error, and where its rejects go."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, BinaryIO, Final, TypeVar

from cdcavro.errors import MessageError, visible_lines
from cdcavro.files.lines import ONE_LINE
from cdcavro.files.rejects import Reject
from cdcavro.files.streams import shown_name
from cdcavro.wire.marked_members import version_note

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from cdcavro.files.inputs import Inputs
    from cdcavro.files.lines import Line

SHOWN: Final = 20
T = TypeVar("T")


class Faults:
    """Reports the faulty messages of a run on standard error, and writes each as a reject to a stream, if there is one.

    `inputs` (`Inputs`) says where a line is. The first 20 faults are printed.
    """

    def __init__(self, inputs: Inputs, stream: BinaryIO | None = None) -> None:
        self._inputs = inputs
        self._stream = stream
        self._count = 0
        self._spread: str | None = None

    def add(self, error: MessageError, line: Line) -> None:
        """Report the error of a line, whose number is that in all inputs."""
        file, number = self._inputs.place(line.number)
        reject = Reject.of(error, line._replace(number=number), shown_name(file))
        self._count += 1
        if line.is_opening:
            self._spread = self._spread or reject.file
        if self._count <= SHOWN:
            say(str(reject))
        if self._stream is not None:
            self._stream.write(reject.json() + b"\n")

    @property
    def count(self) -> int:
        """The number of faults."""
        return self._count

    def finish(self) -> None:
        """Print how many faults were not printed, and a hint if messages of a file are spread over several lines."""
        if self._count > SHOWN:
            say(f"... and {self._count - SHOWN:,} more")
        if self._spread is not None:
            say(f"{self._spread}: {ONE_LINE}")


class Run:
    """A run over lines: it converts them, counts them and reports the rejects to `faults`.

    `format` is the name of the rejects' format, for errors that do not name one. Attributes: `read` and
    `rejected` (int), the numbers of messages.
    """

    def __init__(self, faults: Faults, format: str | None = None) -> None:
        self._faults = faults
        self._format = format
        self.read = 0
        self.rejected = 0

    def results(self, lines: Iterable[Line], convert: Callable[[Line], T]) -> Iterator[T]:
        """Yield what each line is converted to; a line for which `convert` raises `MessageError` is rejected."""
        for line in lines:
            self.read += 1
            try:
                result = convert(line)
            except MessageError as error:
                self.reject(error, line)
            else:
                yield result

    def reject(self, error: MessageError, line: Line) -> None:
        """Reject a line, which may be an earlier one."""
        if error.format is None:
            error.format = self._format
        self.rejected += 1
        self._faults.add(error, line)


class VersionWatch:
    """Says once in a run that messages state a version of their format which no document describes."""

    def __init__(self) -> None:
        self._is_said = False

    def see(self, message: bytes, format: str) -> None:
        """Look at a message."""
        if not self._is_said and format:
            self.note(version_note(message, format))

    def note(self, sentence: str | None) -> None:
        """Say a sentence about a version, if there is one and none was said before."""
        if sentence is not None and not self._is_said:
            self._is_said = True
            say(sentence)


def say(sentence: str) -> None:
    """Print a sentence on standard error, above the progress bar if there is one; what cannot be seen is escaped.

    It may list what it is about in lines of their own.
    """
    if sys.stderr is not None:
        sys.stderr.write(visible_lines(sentence) + "\n")
