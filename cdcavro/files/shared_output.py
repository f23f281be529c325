"""Writing one file from several processes: one assigns the places, and each writes its parts at theirs.

So the parts need not pass through the process that puts them in order. This works only for a regular
file of our own; to pipes, devices and standard output, which others may write to as well, one process
writes everything.
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


# The largest file descriptor that this process inherits from the one that started it.
_STANDARD: Final = 2


class OutputFile:
    """A stream to which parts are written one after the other.

    Attributes: `shared` (`SharedFile`), through which other processes write to its file; None if they cannot.
    """

    def __init__(self, out: BinaryIO) -> None:
        self._out = out
        self.shared = _shared(out)
        self._end = 0

    def append(self, pieces: Sequence[bytes]) -> None:
        """Write a part, given as its pieces."""
        self._out.writelines(pieces)

    def begin(self) -> None:
        """Let other processes write from here on."""
        if self.shared is not None:
            self._out.flush()
            self._end = self._out.tell()

    def place(self, size: int) -> int:
        """Return the place of the next `size` bytes, which another process writes."""
        self._end += size
        return self._end - size

    def end(self) -> None:
        """Move to the end of the last part that was given a place."""
        if self.shared is not None:
            self._out.seek(self._end)


class SharedFile:
    """An open file handed to a process when it is started. Attributes: `number` (int), its file descriptor there."""

    def __init__(self, number: int) -> None:
        self.number = number

    def __reduce__(self) -> tuple[Callable[[Any], SharedFile], tuple[Any]]:
        """Hand over the file descriptor as connections do, which works only while a process is being started."""
        return _received, (reduction.DupFd(self.number),)


class PendingParts:
    """Finished parts that wait for their places in a file. Attributes: `size` (int), in bytes."""

    def __init__(self, file: SharedFile) -> None:
        self._file = file
        self._parts: deque[list[bytes]] = deque()
        self.size = 0

    def add(self, pieces: list[bytes]) -> int:
        """Add a part, and return its size in bytes."""
        size = sum(map(len, pieces))
        self._parts.append(pieces)
        self.size += size
        return size

    def write(self, place: int) -> None:
        """Write the part that has waited longest at its place. Raises `OSError`."""
        for piece in self._parts.popleft():
            self.size -= len(piece)
            rest = memoryview(piece)
            while rest:
                written = os.pwrite(self._file.number, rest, place)
                rest, place = rest[written:], place + written


def _received(passed: Any) -> SharedFile:
    return SharedFile(passed.detach())


def _shared(out: BinaryIO) -> SharedFile | None:
    """Return the file of a stream if several processes can write to it, otherwise None."""
    if sys.platform != "linux":
        return None
    try:
        number = out.fileno()
    except (AttributeError, io.UnsupportedOperation):
        return None
    return SharedFile(number) if number > _STANDARD and stat.S_ISREG(os.fstat(number).st_mode) else None
