"""One file written by several processes: one says what stands where, each writes what it made at its place.

So what is made need not go through the process that puts it in order. That takes a regular file of
our own; into pipes, devices and standard output, which others may write to as well, one process writes
alone.
"""

from __future__ import annotations

import io
import os
import stat
import sys
from collections import deque
from multiprocessing import reduction
from typing import TYPE_CHECKING, Any, BinaryIO, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


# The largest descriptor that comes from whoever started this process.
_STANDARD: Final = 2


class OutputFile:
    """A stream that parts go to, one behind the other.

    Attributes: `shared`, by which other processes write into its file; None if they cannot.
    """

    def __init__(self, out: BinaryIO) -> None:
        self._out = out
        self.shared = _shared(out)
        self._end = 0

    def append(self, pieces: Sequence[bytes]) -> None:
        """Write a part."""
        self._out.writelines(pieces)

    def begin(self) -> None:
        """Let others write from here on."""
        if self.shared is not None:
            self._out.flush()
            self._end = self._out.tell()

    def place(self, size: int) -> int:
        """Return the place of the next so many bytes, which another process writes."""
        self._end += size
        return self._end - size

    def end(self) -> None:
        """Go to the end of what has a place."""
        if self.shared is not None:
            self._out.seek(self._end)


class SharedFile:
    """An open file that goes with a process when that is started. Attributes: `number` (int), its descriptor there."""

    def __init__(self, number: int) -> None:
        self.number = number

    def __reduce__(self) -> tuple[Callable[[Any], SharedFile], tuple[Any]]:
        """Hand the descriptor over, as connections do; only while a process is started."""
        return _received, (reduction.DupFd(self.number),)


class PendingParts:
    """Parts that a process made and that wait for their places in a file. Attributes: `size` (int), in bytes."""

    def __init__(self, file: SharedFile) -> None:
        self._file = file
        self._parts: deque[list[bytes]] = deque()
        self.size = 0

    def add(self, pieces: list[bytes]) -> int:
        """Take a part; give its size."""
        size = sum(map(len, pieces))
        self._parts.append(pieces)
        self.size += size
        return size

    def write(self, place: int) -> None:
        """Write the part that waits longest at its place. Raises `OSError`."""
        for piece in self._parts.popleft():
            self.size -= len(piece)
            rest = memoryview(piece)
            while rest:
                written = os.pwrite(self._file.number, rest, place)
                rest, place = rest[written:], place + written


def _received(passed: Any) -> SharedFile:
    return SharedFile(passed.detach())


def _shared(out: BinaryIO) -> SharedFile | None:
    """Return the file of a stream if several processes can write it."""
    if sys.platform != "linux":
        return None
    try:
        number = out.fileno()
    except (AttributeError, io.UnsupportedOperation):
        return None
    return SharedFile(number) if number > _STANDARD and stat.S_ISREG(os.fstat(number).st_mode) else None
