"""Opening the files of commands: input is counted as it is read, output goes to a temporary file, renamed at the end.

`-` stands for standard input and standard output.
"""

from __future__ import annotations

import errno
import io
import os
import re
import secrets
import sys
from contextlib import contextmanager, nullcontext
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Final, TextIO
from urllib.parse import unquote, urlsplit

from cdcavro.errors import FileError, RegistryError, shown
from cdcavro.exact.locks import hold, leftovers

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from contextlib import AbstractContextManager

    Advance = Callable[[int], None]
    Say = Callable[[str], None]

STANDARD: Final = "-"
CHUNK: Final = 64 << 10
_PAGE: Final = 4 << 10
_SCHEME: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:")
_LOCAL: Final = re.compile(r"file:(//[^/]*)?(?=/)")
# How many paths are remembered.
_PATHS: Final = 1024


def ignore_progress(size: int) -> None:
    """Ignore the number of bytes read, where progress is not shown."""


def say_nothing(sentence: str) -> None:
    """Ignore a sentence, where none is printed."""


def shown_name(path: str) -> str:
    """Return the name of a file for use in a sentence: bytes that are not UTF-8 are replaced."""
    return os.fsencode(path).decode(errors="replace")


@lru_cache(maxsize=_PATHS)
def plain_path(uri: str) -> str:
    """Return a file's URI as people write it: for a local file, the path without scheme and escapes.

    >>> plain_path("file:///tmp/a%20b.jsonl")
    '/tmp/a b.jsonl'
    """
    return unquote(urlsplit(uri).path) if uri.startswith("file:") else uri


@contextmanager
def open_input(path: str, advance: Advance = ignore_progress) -> Iterator[io.BufferedReader[Any]]:
    """Open a file, or standard input, for reading bytes.

    `advance` is called with the number of bytes that each read took from the file. Raises `FileError`.
    """
    with _open(path) as raw, io.BufferedReader(_CountingStream(raw, path, advance), CHUNK) as stream:
        yield stream


class SharedInput:
    """A regular file that several threads read, each at its own positions. It stays open as long as it is used.

    Attributes: `path` (str); `size` (int), in bytes, when it was opened.
    """

    __slots__ = ("_number", "path", "size")

    def __init__(self, path: str, number: int, size: int) -> None:
        self._number = number
        self.path = path
        self.size = size

    def __del__(self) -> None:
        """Close the file."""
        os.close(self._number)

    def stream(self, position: int) -> io.BufferedReader[Any]:
        """Return a stream of the bytes from a position on. Raises `FileError` where it cannot be read."""
        return io.BufferedReader(_PositionedStream(self, position), _PAGE)

    def read(self, start: int, end: int) -> bytes:
        """Return the bytes from one position to another. Raises `FileError`, also if the file has become shorter."""
        raw = self.stream(start).read(end - start)
        if len(raw) < end - start:
            raise FileError(self.path, "the file that was there at the start", "a shorter one")
        return raw

    def read_into(self, buffer: Any, position: int) -> int:
        """Fill a buffer with the bytes at a position, and return how many there are. Raises `FileError`."""
        try:
            return os.preadv(self._number, [buffer], position)
        except OSError as error:
            raise FileError(self.path, "a file that can be read", _reason(error)) from error


def open_shared_input(path: str) -> SharedInput | None:
    """Open a regular file that is not empty; None for all else, which is read from its start, by one thread.

    Raises `FileError`.
    """
    if path == STANDARD or not hasattr(os, "preadv") or not Path(path).is_file():
        return None
    try:
        number = os.open(path, os.O_RDONLY)
        place = SharedInput(path, number, os.fstat(number).st_size)
    except OSError as error:
        raise FileError(path, "a file that can be read", _reason(error)) from error
    # A file such as those in /proc has the size 0 although it is not empty.
    return place if place.size else None


def input_size(path: str) -> int | None:
    """Return the size of a regular file in bytes; None for anything else."""
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
    otherwise, so that nobody reads half a file. Then temporary files that a killed run left beside it are removed as well. A device or pipe is written directly. Raises `FileError`
    if the file exists and `force` is not set, or if it cannot be written.
    """
    try:
        with _open_target(path, force=force) as stream:
            yield stream
            stream.flush()
    except (BrokenPipeError, RegistryError):
        raise
    except OSError as error:
        raise FileError(path, "a file that can be written", _reason(error)) from error


def check_new(path: str, *, force: bool) -> None:
    """Check that a file can be written: it is new, or may be replaced, and has a folder. Raises `FileError`."""
    if path == STANDARD:
        return
    target = Path(os.path.realpath(path))
    if target.is_file() and not force:
        raise FileError(path, "a new file (--force replaces one)", "one that exists")
    if not target.parent.is_dir():
        raise FileError(path, "a file that can be written", shown(os.strerror(errno.ENOENT)))


def check_folder(path: str) -> None:
    """Check that a folder can be written to, or created. Raises `FileError`."""
    place = Path(path).absolute()
    nearest = next(folder for folder in (place, *place.parents) if os.path.lexists(folder))
    if not nearest.is_dir():
        raise FileError(path, "a folder, or a place for one", f"{shown(nearest)}, which is no folder")
    if not os.access(nearest, os.W_OK | os.X_OK):
        raise FileError(path, "a folder that can be written", f"{shown(nearest)}, which cannot")


def check_standard(stream: TextIO | None) -> TextIO:
    """Return a standard stream, or raise `FileError` if it is closed."""
    if stream is None:
        raise FileError(STANDARD, "an open standard stream", "a closed one")
    return stream


def _open(path: str) -> AbstractContextManager[BinaryIO]:
    if path == STANDARD:
        return nullcontext(check_standard(sys.stdin).buffer)
    try:
        return Path(path).open("rb")
    except OSError as error:
        raise FileError(path, "a file that can be read", _reason(error)) from error


def _open_target(path: str, *, force: bool) -> AbstractContextManager[BinaryIO]:
    if path == STANDARD:
        return nullcontext(check_standard(sys.stdout).buffer)
    check_new(path, force=force)
    target = Path(os.path.realpath(path))
    return target.open("wb") if target.exists() and not target.is_file() else _replace(target)


@contextmanager
def _replace(target: Path) -> Iterator[BinaryIO]:
    beside = target.with_name(f"{target.name}.{secrets.token_hex(4)}.part")
    try:
        with beside.open("xb") as stream, hold(beside):
            yield stream
        beside.replace(target)
        for left in leftovers(target, ["part"]):
            if left.is_file():
                left.unlink(missing_ok=True)
    except BaseException:
        beside.unlink(missing_ok=True)
        raise


def _reason(error: OSError) -> str:
    return shown(error.strerror or error)


class _CountingStream(io.RawIOBase):
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
            raise FileError(self._path, "a file that can be read", _reason(error)) from error
        self._advance(size)
        return size


class _PositionedStream(io.RawIOBase):
    """A raw stream of a shared file from a position on."""

    def __init__(self, place: SharedInput, position: int) -> None:
        super().__init__()
        self._place = place
        self._position = position

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        """Move on, or to a position from the start of the file; its end is not known to this stream."""
        if whence not in {os.SEEK_SET, os.SEEK_CUR}:
            raise io.UnsupportedOperation("seek from the end")
        self._position = offset if whence == os.SEEK_SET else self._position + offset
        return self._position

    def readinto(self, buffer: Any) -> int:
        size = self._place.read_into(buffer, self._position)
        self._position += size
        return size


def local_folder(address: str | Path) -> Path | None:
    """Return the path of a folder, None if its address is one of another file system than this machine's."""
    text = str(address)
    if not _SCHEME.match(text):
        return Path(text).absolute()
    own = _LOCAL.match(text)
    return None if own is None else Path(text[own.end() :])
