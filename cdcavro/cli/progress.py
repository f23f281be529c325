"""A progress bar for long work: on standard error, only on a terminal, and only after a second."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING, Final, Self, TextIO

if TYPE_CHECKING:
    from types import TracebackType

    from rich.progress import Progress as Bar

DELAY: Final = 1.0


class Progress:
    """Shows how many bytes of the input have been read.

    `total` is the size of the input in bytes, None if it is unknown; `is_in_the_way` is true if the command
    prints its output to standard output, where the bar would disturb it on a terminal.
    """

    def __init__(self, label: str, total: int | None, *, is_in_the_way: bool = False) -> None:
        self._label = label
        self._total = total
        self._read = 0
        self._bar: Bar | None = None
        quiet = not _is_terminal(sys.stderr) or (is_in_the_way and _is_terminal(sys.stdout))
        self._from = float("inf") if quiet else time.monotonic() + DELAY

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
        if self._bar is None and time.monotonic() >= self._from:
            self._bar = _started(self._label, self._total)
        if self._bar is not None:
            self._bar.update(self._bar.task_ids[0], completed=self._read)

    def go_on(self, label: str, total: int) -> None:
        """Begin to show something else of the same work, whose size is `total` bytes."""
        if self._bar is not None:
            self._bar.stop()
        self._label, self._total, self._read, self._bar = label, total, 0, None


def _is_terminal(stream: TextIO | None) -> bool:
    """Return whether a standard stream, which may be closed, is a terminal."""
    return stream is not None and stream.isatty()


def _started(label: str, total: int | None) -> Bar:
    # Imported here, because importing rich takes longer than most commands do.
    from rich.console import Console  # noqa: PLC0415
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn  # noqa: PLC0415

    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TimeRemainingColumn())
    bar = Progress(*columns, console=Console(stderr=True), transient=True)
    bar.add_task(label, total=total)
    bar.start()
    return bar
