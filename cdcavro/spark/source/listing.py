"""Listings of files: those that a path, a folder or a pattern means, wherever pyarrow can read them."""

from __future__ import annotations

import heapq
import os
import re
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple
from urllib.parse import unquote

import pyarrow as pa
from pyarrow import fs

from cdcavro.errors import FileError, shown

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

_MARKS: Final = frozenset("*?[{\\")
# As Spark passes names over: a folder of a partition may begin so, and Hadoop copies under another name first.
_HIDDEN: Final = re.compile(r"\..*|_[^=]*|.*\._COPYING_", re.DOTALL)
_ADDRESS: Final = re.compile(r"(?P<scheme>[A-Za-z][A-Za-z0-9+.-]*):(?://(?P<host>[^/]*))?(?P<path>/.*|$)", re.DOTALL)
# Hadoop's names of file systems that pyarrow calls otherwise.
_SCHEMES: Final = {"s3a": "s3", "s3n": "s3"}
_PASSED: Final = "one that starts with _ or ., or ends with ._COPYING_"
_FAULTS: Final = (OSError, ValueError, pa.ArrowException, re.error)


@dataclass(frozen=True, slots=True)
class FoundFile:
    """A file."""

    # A local path or an address.
    name: str
    # In bytes.
    size: int
    # In ns since the epoch.
    modified: int = 0


def list_files(paths: Iterable[str]) -> list[FoundFile]:
    """Return the files that some paths mean, each once, in the order of their names.

    A path is a file; a folder, of which all files are taken, also those in folders within it; or, if nothing has just
    this name, a pattern with `*`, `?`, `[…]` and `{…,…}`. Names that Spark passes over are passed over in folders:
    those that begin with `.`, with `_` if they have no `=`, or end with `._COPYING_`. A folder to which a path has
    several ways is read once. Raises `FileError` for a path that means nothing or cannot be read, and for a link to a
    folder that it is in.
    """
    found = {file.name: file for path in paths for file in _files_of(path)}
    return [found[name] for name in sorted(found)]


@contextmanager
def file_errors(name: str) -> Iterator[None]:
    """Raise `FileError` with the name of a file if it cannot be read."""
    try:
        yield
    except FileError:
        raise
    except UnicodeDecodeError as error:
        raise FileError(name, "names that are UTF-8", shown(error.object)) from error
    except _FAULTS as error:
        raise FileError(name, "what can be read", shown(error)) from error


def open_file(name: str) -> Any:
    """Open a file by its name, for reading at any place. Raises `FileError`."""
    with file_errors(name):
        place = _place_of(name)
        return place.system.open_input_file(place.path)


class _Place(NamedTuple):
    """A path in a file system; in the names of its files, `before` stands instead of their first `cut` characters."""

    system: fs.FileSystem
    path: str
    before: str = ""
    cut: int = 0

    def name(self, path: str) -> str:
        return self.before + path[self.cut :]

    def found(self, info: fs.FileInfo) -> FoundFile:
        return FoundFile(self.name(info.path), info.size or 0, info.mtime_ns or 0)

    def below(self, folder: str, pattern: str = "") -> list[fs.FileInfo]:
        """Return the files in a folder, and in those within, whose names are not hidden and fit a pattern."""
        wanted = re.compile(f"{_pattern(pattern)}(?:/.*)?" if pattern else ".*", re.DOTALL)
        if isinstance(self.system, fs.LocalFileSystem):
            return list(_local_files(self.system, folder, wanted, pattern.count("/")))
        infos = self.system.get_file_info(fs.FileSelector(folder, recursive=True))
        files = [info for info in infos if info.type == fs.FileType.File and wanted.fullmatch(info.path)]
        return [info for info in files if not _is_hidden(info.path[len(folder) :])]


def _local_files(system: fs.FileSystem, folder: str, wanted: re.Pattern[str], depth: int) -> Iterator[fs.FileInfo]:
    """Yield the files in a folder and in those within it that are not hidden, without those removed meanwhile.

    Folders that do not fit are searched no deeper than `depth`. No folder is read twice: one to which links lead is
    found at its own place, or else behind the link whose name comes first. Raises `FileError` for a link to a folder
    that it is in.
    """
    seen: set[str] = set()
    waiting, links = [(folder, frozenset[str]())], list[tuple[str, frozenset[str]]]()
    while waiting or links:
        path, above = waiting.pop() if waiting else heapq.heappop(links)
        real = os.path.realpath(path)
        if real in above:
            raise FileError(path, "a folder that is not within itself", f"a link to {real}")
        if wanted.fullmatch(path):
            if real in seen:
                continue
            seen.add(real)
        elif path.count("/") >= depth > 0:
            continue
        for info in _visible(system, path, is_needed=path == folder):
            if info.type == fs.FileType.File and wanted.fullmatch(info.path):
                yield info
            elif info.type == fs.FileType.Directory:
                place = info.path, above | {real}
                heapq.heappush(links, place) if Path(info.path).is_symlink() else waiting.append(place)


def _visible(system: fs.FileSystem, folder: str, *, is_needed: bool) -> list[fs.FileInfo]:
    """Return what is in a folder and not hidden; nothing if it is not there and not needed."""
    try:
        infos = system.get_file_info(fs.FileSelector(folder))
    except FileNotFoundError:
        if is_needed:
            raise
        return []
    return [info for info in infos if not _is_hidden(info.base_name)]


def _is_hidden(path: str) -> bool:
    return any(map(_HIDDEN.fullmatch, path.split("/")))


def _files_of(path: str) -> list[FoundFile]:
    with file_errors(path):
        place = _place_of(path)
        info = place.system.get_file_info(place.path)
        base = _base(place.path)
        if info.type == fs.FileType.File:
            if _is_hidden(place.path.rpartition("/")[2]):
                raise FileError(place.name(place.path), "a name that is read", _PASSED)
            files = [info]
        elif info.type == fs.FileType.Directory:
            files = place.below(place.path)
        elif base is not None:
            files = place.below(base, place.path)
        else:
            raise FileError(place.name(place.path), "a file or folder", "none")
        return [place.found(file) for file in files]


def _place_of(name: str) -> _Place:
    """Return the place of a name.

    Raises `FileError` for a file system that pyarrow does not know, and for credentials.
    """
    address = _ADDRESS.fullmatch(name)
    if address is None or address["scheme"] == "file":
        local = name if address is None else unquote(address["path"])
        if not local:
            raise FileError(shown(name), "a path", "none")
        return _Place(fs.LocalFileSystem(), os.path.abspath(local))  # noqa: PTH100  links stay as they are
    scheme, host, path = address["scheme"], address["host"] or "", address["path"].lstrip("/")
    user, _, rest = host.rpartition("@")
    if ":" in user:
        # They would stand in the column `file`, in errors and in the checkpoint.
        expected = "an address without credentials, which pyarrow finds in the environment or a profile"
        raise FileError(f"{scheme}://…@{rest}", expected, "one with them")
    try:
        system, root = _remote(f"{_SCHEMES.get(scheme, scheme)}://{host}/")
    except pa.ArrowInvalid as error:
        expected = "a local path, or an address that pyarrow reads (s3, s3a, gs, abfss, hdfs)"
        raise FileError(name, expected, f"one of {scheme}") from error
    root = root.rstrip("/")
    return _Place(system, f"{root}/{path}".rstrip("/"), f"{scheme}://{host}", len(root))


@lru_cache(maxsize=16)
def _remote(place: str) -> tuple[fs.FileSystem, str]:
    made: tuple[fs.FileSystem, str] = fs.FileSystem.from_uri(place)
    return made


def _base(path: str) -> str | None:
    """Return the folder above the first part of a path that is a pattern; None if none is."""
    parts = path.split("/")
    for i, part in enumerate(parts):
        if _MARKS.intersection(part):
            return "/".join(parts[:i]) or "/"
    return None


def _pattern(path: str) -> str:
    """Return the regular expression of a pattern; a bracket or brace that is not closed stands for itself."""
    parts, i, depth = [], 0, 0
    while i < len(path):
        mark = path[i]
        closed = path.find("]", i + 2) if mark == "[" else -1
        if mark == "\\" and i + 1 < len(path):
            i += 1
            parts.append(re.escape(path[i]))
        elif mark == "*":
            parts.append("[^/]*")
        elif mark == "?":
            parts.append("[^/]")
        elif closed > 0:
            parts.append(_class(path[i + 1 : closed]))
            i = closed
        elif mark == "{" and "}" in path[i:]:
            depth += 1
            parts.append("(?:")
        elif mark == "}" and depth:
            depth -= 1
            parts.append(")")
        else:
            parts.append("|" if mark == "," and depth else re.escape(mark))
        i += 1
    return "".join(parts)


def _class(text: str) -> str:
    """Return the regular expression of one character among those between brackets."""
    is_other = text[0] in "!^" and len(text) > 1
    inside = re.sub(r"([\\\[\]&~|^])", r"\\\1", text[is_other:])
    return f"(?!/)[{'^' * is_other}{inside}]"
