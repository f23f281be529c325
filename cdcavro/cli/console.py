"""What a command prints: sentences and faults on standard error, tables and counts of messages, and a progress bar."""

from __future__ import annotations

import os
import shutil
import sys
import threading
import time
from typing import TYPE_CHECKING, Any, BinaryIO, Final, Self, TextIO, TypeVar

import orjson

from cdcavro.errors import MessageError, plain, shown, visible_lines
from cdcavro.files.lines import SPLIT
from cdcavro.files.rejects import Reject
from cdcavro.files.streams import shown_name
from cdcavro.wire.marked_members import version_note
from cdcavro.wire.sniff import other_format

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from types import TracebackType

    from rich.progress import Progress as Bar

    from cdcavro.files.lines import Inputs, Line

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
        self._multiline: str | None = None

    def add(self, error: MessageError, line: Line) -> None:
        """Report the error of a line, whose number is that in all inputs."""
        file, number = self._inputs.place(line.number)
        reject = Reject.of(error, line._replace(number=number), shown_name(file))
        self._count += 1
        if line.is_opening:
            self._multiline = self._multiline or reject.file
        if self._count <= SHOWN:
            other = other_format([line.raw], error.format) if error.format else None
            say(f"{reject}{f'; the message looks like {other}' if other else ''}")
        if self._stream is not None:
            self._stream.write(reject.json() + b"\n")

    @property
    def count(self) -> int:
        """The number of faults."""
        return self._count

    def finish(self) -> None:
        """Print how many faults were not printed, and a hint if messages of a file do not stand on a line each."""
        if self._count > SHOWN:
            say(f"... and {self._count - SHOWN:,} more")
        if self._multiline is not None:
            say(f"{self._multiline}: {SPLIT}")


class Conversion:
    """The conversion of lines: it converts them, counts them and reports the rejects to `faults`.

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


class VersionNotice:
    """Says once in a run that messages state a version of their format which no document describes."""

    def __init__(self) -> None:
        self._is_said = False

    def see(self, message: bytes, format: str) -> None:
        """Look at a message."""
        if not self._is_said and format:
            self.say(version_note(message, format))

    def say(self, sentence: str | None) -> None:
        """Say a sentence about a version, if there is one and none was said before."""
        if sentence is not None and not self._is_said:
            self._is_said = True
            say(sentence)


def say(sentence: str) -> None:
    """Print a sentence on standard error, above the progress bar if there is one; what cannot be seen is escaped.

    It may have several lines.
    """
    if sys.stderr is not None:
        sys.stderr.write(visible_lines(sentence) + "\n")


MAX_ROWS: Final = 200
REJECTED_LABEL: Final = "(rejected)"
UNKNOWN: Final = "(unknown)"
OTHERS: Final = "(others)"
_WIDTH: Final = 40


class Counts:
    """Counts of messages: successful ones by format and operation, rejects by format.

    Attributes: `done` and `rejected` (int). Operations are named by the messages, so there may be any
    number of them; beyond 200 rows they are counted together.
    """

    def __init__(self) -> None:
        self.done = 0
        self.rejected = 0
        self._rows: dict[tuple[str, str], int] = {}

    @property
    def read(self) -> int:
        """The number of messages read."""
        return self.done + self.rejected

    def add(self, format: str, operation: str, count: int = 1) -> None:
        """Count successful messages."""
        self.done += count
        row = (format, _short_name(operation))
        self._add(row if row in self._rows or len(self._rows) < MAX_ROWS else (format, OTHERS), count)

    def reject(self, format: str | None, count: int = 1) -> None:
        """Count rejects."""
        self.rejected += count
        self._add((format or UNKNOWN, REJECTED_LABEL), count)

    def table(self) -> str:
        """Return the table, sorted by format and operation, with the rejects last."""
        return table(("format", "operation", "messages"), [(*row, f"{count:,}") for row, count in self._sorted()])

    def _sorted(self) -> list[tuple[tuple[str, str], int]]:
        return sorted(self._rows.items(), key=lambda item: (item[0][1] == REJECTED_LABEL, item[0]))

    def json(self, done: str) -> str:
        """Return the counts as a JSON object; `done` is as in `balance`. The operation of rejects is null.

        >>> Counts().json("valid")
        '{"read":0,"valid":0,"rejected":0,"counts":[]}'
        """
        counts = [
            {"format": format, "operation": None if operation == REJECTED_LABEL else operation, "messages": count}
            for (format, operation), count in self._sorted()
        ]
        return json_line(**{"read": self.read, done: self.done, "rejected": self.rejected, "counts": counts})

    def balance(self, done: str) -> str:
        """Return a line that accounts for every message; `done` names what happened to the successful ones.

        >>> Counts().balance("written")
        'read 0 = written 0 + rejected 0'
        """
        return f"read {self.read:,} = {done} {self.done:,} + rejected {self.rejected:,}"

    def _add(self, row: tuple[str, str], count: int) -> None:
        self._rows[row] = self._rows.get(row, 0) + count


def json_line(**members: Any) -> str:
    """Return an object as one line of JSON, for a program that reads it.

    >>> json_line(line=7, format="canal")
    '{"line":7,"format":"canal"}'
    """
    return orjson.dumps(members).decode()


def table(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return rows laid out under their headings; numbers are aligned to the right.

    What cannot be printed is escaped, so that no cell looks like another line or changes the terminal.

    >>> print(table(["format", "messages"], [["oms_canal", "188"]]))
    format     messages
    oms_canal       188
    """
    laid_out = [headings, *([cell and plain(cell) for cell in row] for row in rows)]
    widths = [max(map(len, column)) for column in zip(*laid_out, strict=True)]
    return "\n".join(_row(row, widths) for row in laid_out)


def _row(cells: Sequence[str], widths: Sequence[int]) -> str:
    padded = (
        cell.rjust(width) if cell[:1].isdigit() and cell.replace(",", "").isdigit() else cell.ljust(width)
        for cell, width in zip(cells, widths, strict=True)
    )
    return "  ".join(padded).rstrip()


def _short_name(operation: str) -> str:
    if len(operation) <= _WIDTH:
        return plain(operation)
    return shown(operation if len(operation) <= _WIDTH else operation[:_WIDTH] + "...")


# Seconds until a bar is shown on a terminal, and between two lines elsewhere.
DELAY: Final = 1.0
INTERVAL: Final = 30.0


class Progress:
    """Shows how many bytes of the input have been read: by a bar on a terminal, elsewhere by a line every 30 seconds.

    `total` is the size of the input in bytes, None if it is unknown; `shares_terminal` (bool) says that the command
    prints its output to standard output, where the bar would disturb it on a terminal.
    """

    def __init__(self, label: str, total: int | None, *, shares_terminal: bool = False) -> None:
        self._label = label
        self._total = total
        self._read = 0
        self._bar: Bar | None = None
        self._is_live = _is_terminal(sys.stderr)
        is_quiet = shares_terminal and _is_terminal(sys.stdout)
        self._from = float("inf") if is_quiet else time.monotonic() + (DELAY if self._is_live else INTERVAL)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._bar is not None:
            self._bar.stop()

    def advance(self, size: int) -> None:
        """Record that `size` more bytes were read."""
        self._read += size
        if self._bar is None and (now := time.monotonic()) >= self._from:
            if self._is_live:
                self._bar = _start_bar(self._label, self._total)
            else:
                self._from = now + INTERVAL
                total = f" of {self._total / 1e6:,.1f}" if self._total else ""
                say(f"{self._label}: {self._read / 1e6:,.1f}{total} MB")
        if self._bar is not None:
            self._bar.update(self._bar.task_ids[0], completed=self._read)

    def restart(self, label: str, total: int) -> None:
        """Show the next step of the same work, whose size is `total` bytes."""
        if self._bar is not None:
            self._bar.stop()
        self._label, self._total, self._read, self._bar = label, total, 0, None


# Seconds between two lines on how far work is: on a terminal, where each replaces the one before, and elsewhere.
_LIVE: Final = 0.5
_SLOW: Final = 5.0
ERASE: Final = "\r\x1b[K"


class ProgressLine:
    """Says on standard error how far work is: on a terminal on one line, elsewhere on a line every 5 seconds.

    Several threads may call it. `is_quiet` says that nothing is wanted but sentences.
    """

    def __init__(self, *, is_quiet: bool = False) -> None:
        self._is_live, self._is_quiet = _is_terminal(sys.stderr), is_quiet
        self._lock = threading.Lock()
        self._next = time.monotonic() + (_LIVE if self._is_live else _SLOW)
        self._is_shown = False

    def show(self, what: str) -> None:
        """Say how far the work is, unless that was said a moment ago."""
        if self._is_quiet or time.monotonic() < self._next:
            return
        with self._lock:
            now = time.monotonic()
            if now < self._next:
                return
            self._next = now + (_LIVE if self._is_live else _SLOW)
            if not self._is_live:
                say(what)
                return
            # The last column stays free: a line that reaches it is two.
            sys.stderr.write(ERASE + plain(what)[: shutil.get_terminal_size().columns - 1])
            sys.stderr.flush()
            self._is_shown = True

    def clear(self) -> None:
        """Take away what stands on the line; the next is due after a while."""
        with self._lock:
            self._next = time.monotonic() + (_LIVE if self._is_live else _SLOW)
            if self._is_shown:
                sys.stderr.write(ERASE)
                sys.stderr.flush()
                self._is_shown = False

    def say(self, sentence: str) -> None:
        """Print a sentence above the line."""
        self.clear()
        say(sentence)

    def finish(self, result: T) -> T:
        """Take away what stands on the line, and return what the work gave."""
        self.clear()
        return result


def _is_terminal(stream: TextIO | None) -> bool:
    """Return whether a standard stream, which may be closed, is a terminal."""
    return stream is not None and stream.isatty()


def is_one_stream() -> bool:
    """Return whether standard output and standard error go to the same place, a terminal or a file."""
    try:
        places = [os.fstat(stream.fileno()) for stream in (sys.stdout, sys.stderr)]
    except (AttributeError, OSError, ValueError):
        return False
    return os.path.samestat(*places)


def _start_bar(label: str, total: int | None) -> Bar:
    # Importing rich takes longer than most commands do.
    from rich.console import Console  # noqa: PLC0415
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn  # noqa: PLC0415

    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TimeRemainingColumn())
    bar = Progress(*columns, console=Console(stderr=True), transient=True)
    bar.add_task(label, total=total)
    bar.start()
    return bar
