"""Opening the files of commands: input is counted as it is read, output goes to a temporary file, renamed at the end.

`-` stands for standard input and standard output.
"""

from __future__ import annotations

import io
import os
import secrets
import sys
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Final, TextIO

from cdcavro.errors import FileError, shown

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from contextlib import AbstractContextManager

    Advance = Callable[[int], None]

STANDARD: Final = "-"
CHUNK: Final = 64 << 10


def unwatched(size: int) -> None:
    """Ignore the number of bytes read, where progress is not shown."""


@contextmanager
def open_input(path: str, advance: Advance = unwatched) -> Iterator[io.BufferedReader[Any]]:
    """Open a file, or standard input, for reading bytes.

    `advance` is called with the number of bytes that each read took from the file. Raises `FileError`.
    """
    with _opened(path) as raw, io.BufferedReader(_Watched(raw, path, advance), CHUNK) as stream:
        yield stream


@dataclass(frozen=True, slots=True)
class FileIdentity:
    """What identifies a regular file, so that each thread reads the very same one.

    Attributes: `path` (str); `device` and `number` (int), its device and inode numbers; `size` (int), in bytes.
    """

    path: str
    device: int
    number: int
    size: int

    @contextmanager
    def open(self, position: int) -> Iterator[io.BufferedReader[Any]]:
        """Open the file at a byte position. Raises `FileError`, also if the file was replaced or became shorter."""
        try:
            with io.BufferedReader(io.FileIO(self.path), CHUNK) as stream:
                self._check(os.fstat(stream.fileno()))
                stream.seek(position)
                yield stream
        except OSError as error:
            raise FileError(self.path, "a file that can be read", _fault(error)) from error

    def changed(self) -> FileError:
        """Return the error for a file that was replaced or became shorter."""
        return FileError(self.path, "the file that was there at the start", "another or a shorter one")

    def _check(self, status: os.stat_result) -> None:
        if (status.st_dev, status.st_ino) != (self.device, self.number) or status.st_size < self.size:
            raise self.changed()


def file_identity(path: str) -> FileIdentity | None:
    """Return what identifies a regular file that is not empty; None for all else, which is read from its start."""
    if path == STANDARD or not Path(path).is_file():
        return None
    status = Path(path).stat()
    # A file such as those in /proc has the size 0 although it is not empty.
    return FileIdentity(path, status.st_dev, status.st_ino, status.st_size) if status.st_size else None


def input_size(path: str) -> int | None:
    """Return the size of a file in bytes; None if it is not a regular file."""
    place = Path(path)
    return place.stat().st_size if path != STANDARD and place.is_file() else None


def total_size(paths: Iterable[str]) -> int | None:
    """Return the size of several files together, in bytes; None if the size of any is not known."""
    sizes = [input_size(path) for path in paths]
    known = [size for size in sizes if size is not None]
    return sum(known) if len(known) == len(sizes) else None


@contextmanager
def open_output(path: str, *, force: bool = False) -> Iterator[BinaryIO]:
    """Open a file, or standard output, for writing bytes.

    The bytes go to a temporary file beside `path`, which is renamed to it if all goes well and removed
    otherwise, so that nobody reads half a file; a device or pipe is written directly. Raises `FileError`
    if the file exists and `force` is not set, or if it cannot be written.
    """
    try:
        with _output(path, force=force) as stream:
            yield stream
            stream.flush()
    except BrokenPipeError:
        raise
    except OSError as error:
        raise FileError(path, "a file that can be written", _fault(error)) from error


def standard(stream: TextIO | None) -> TextIO:
    """Return a standard stream, or raise `FileError` if it is closed."""
    if stream is None:
        raise FileError(STANDARD, "an open standard stream", "a closed one")
    return stream


def _opened(path: str) -> AbstractContextManager[BinaryIO]:
    if path == STANDARD:
        return nullcontext(standard(sys.stdin).buffer)
    try:
        return Path(path).open("rb")
    except OSError as error:
        raise FileError(path, "a file that can be read", _fault(error)) from error


def _output(path: str, *, force: bool) -> AbstractContextManager[BinaryIO]:
    if path == STANDARD:
        return nullcontext(standard(sys.stdout).buffer)
    target = Path(os.path.realpath(path))
    if target.exists() and not target.is_file():
        return target.open("wb")
    if target.exists() and not force:
        raise FileError(path, "a new file (--force replaces one)", "one that exists")
    return _renamed(target)


@contextmanager
def _renamed(target: Path) -> Iterator[BinaryIO]:
    beside = target.with_name(f"{target.name}.{secrets.token_hex(4)}.part")
    try:
        with beside.open("xb") as stream:
            yield stream
        beside.replace(target)
    except BaseException:
        beside.unlink(missing_ok=True)
        raise


def _fault(error: OSError) -> str:
    return shown(error.strerror or error)


class _Watched(io.RawIOBase):
    """A raw stream that counts the bytes read from it."""

    def __init__(self, raw: Any, path: str, advance: Advance) -> None:
        super().__init__()
        self._raw = raw
        self._path = path
        self._advance = advance

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        try:
            size: int = self._raw.readinto1(buffer)
        except OSError as error:
            raise FileError(self._path, "a file that can be read", _fault(error)) from error
        self._advance(size)
        return size
