"""Source of files of this machine: which of them are new, and their lines in record batches, as on Spark.

Also the source of rejects that are read again, whose files have a reject of JSON on each line.
"""

from __future__ import annotations

import os
import re
from collections import deque
from contextlib import suppress
from pathlib import Path
from stat import S_ISREG
from typing import TYPE_CHECKING, Any, Final, NamedTuple
from urllib.parse import quote

from cdcavro.errors import FileError
from cdcavro.files.streams import plain_path, say_nothing
from cdcavro.sync.reading.file_pattern import expand_pattern
from cdcavro.sync.reading.line_reader import read_lines, read_rejects
from cdcavro.sync.sources import check_links, check_stored

if TYPE_CHECKING:
    from collections.abc import Container, Iterable, Iterator, Mapping

    import pyarrow as pa

    from cdcavro.files.streams import Say
    from cdcavro.sync.reading.checkpoint import End, FileLog

_MILLISECOND: Final = 1_000_000
_LOG_OFFSET: Final = "logOffset"
_PATTERN: Final = "*?[{"
_SCHEME: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")
# Where a stream of Spark's notes which of the files beside it count.
_SINK_LOG: Final = "_spark_metadata"
# What a URI of Java's has as it is.
_SAFE: Final = "/-_.!~*'():@&=+$,;"


class TakenFile(NamedTuple):
    """A file of a batch; its lines are a lane of their own."""

    # Its URI, as Spark writes it.
    uri: str
    # When it was modified, in milliseconds since 1970.
    time: int

    @property
    def path(self) -> str:
        """Its path."""
        return plain_path(self.uri)


class FileReader:
    """Files of JSON lines, plain or packed: one, a pattern of paths as Hadoop has them, or a folder with new ones.

    * `path` (str): a path, or an address that begins with `file://`.
    * `most` (int or None): how many files a batch has at most.

    Raises `FileError` for an address of another machine.
    """

    def __init__(self, path: str, most: int | None = None) -> None:
        self.path, self.most = path, most
        is_address = _SCHEME.match(path) is not None
        if is_address and not path.startswith("file://"):
            raise FileError(path, "files of this machine, as Spark is not used", "an address of others")
        self._root = path.removeprefix("file://")
        # An address is a pattern, whatever is there.
        self._is_exact = not is_address and Path(path).exists()

    @property
    def name(self) -> str:
        """What the source is called in messages."""
        return self.path

    def check(self) -> None:
        """Raise `FileError` where nothing is, for links in a circle, and for what cannot be read."""
        for root in self._roots():
            if Path(root, _SINK_LOG).is_dir():
                raise FileError(root, "files that no stream of Spark has written", f"a folder with {_SINK_LOG}")
            if not os.access(root, os.R_OK):
                raise FileError(root, "a file or folder that can be read", "one that cannot")

    def new(self, taken: Container[str]) -> list[TakenFile]:
        """Return the files that were not taken, by their URIs, those first that were modified first.

        Raises `FileError` as `check` does.
        """
        self.check()
        found = {one.uri: one for root in self._roots() for one in _files_below(root) if one.uri not in taken}
        return sorted(found.values(), key=lambda one: (one.time, one.uri))

    def batches(self, file: TakenFile, say: Say = say_nothing) -> Iterator[pa.RecordBatch]:
        """Yield the lines of a file; see `line_reader.read_lines`."""
        if not _is_read(file.path):
            return iter(())
        # Spark's stream takes the files of a batch by their paths, whose URIs are shorter than those in the log.
        return read_lines(file.path, file.uri.replace("file:///", "file:/", 1), say)

    def _roots(self) -> list[str]:
        """Return the files and folders that the path means. Raises `FileError` if there is none, and no pattern."""
        if self._is_exact or Path(self.path).exists():
            root = Path(self.path).resolve()
            check_links(root)
            return [str(root)]
        if not any(mark in self._root for mark in _PATTERN):
            if self._root != self.path and Path(self._root).exists():
                return [self._root]
            raise FileError(self.path, "a file or folder", "none")
        return expand_pattern(str(Path.cwd() / self._root))


class ReplayReader:
    """The files of rejects that are read again, in a folder and those within it."""

    most: Final = None

    def __init__(self, folder: Path) -> None:
        self.folder = folder.resolve()

    def new(self, taken: Container[str]) -> list[TakenFile]:
        """Return the files that were not taken, by their URIs; none if there is no folder."""
        found = (one for one in _files_below(str(self.folder)) if one.uri not in taken)
        return sorted(found, key=lambda one: (one.time, one.uri))

    def batches(self, file: TakenFile, _: Say = say_nothing) -> Iterator[pa.RecordBatch]:
        """Yield the rejects of a file; see `line_reader.read_rejects`."""
        return read_rejects(file.path) if _is_read(file.path) else iter(())


class FileProgress:
    """How far a source of files has been read, as the log of a checkpoint has it."""

    def __init__(self, source: FileReader | ReplayReader, log: FileLog) -> None:
        self._source, self._log = source, log
        self._taken: dict[str, int] = {}
        self._seen = -1
        self._waiting: deque[TakenFile] = deque()

    def look(self) -> int:
        """Look for new files, which the next batches take, and return how many wait. Raises `FileError`."""
        waiting = {one.uri for one in self._waiting}
        self._waiting.extend(one for one in self._source.new(self.taken()) if one.uri not in waiting)
        return len(self._waiting)

    def advance(self) -> End:
        """Take the files of the next batch, and return where the source is behind it; None if it never had a file.

        They are in the log before they are in a batch. One that is there already, as a run was cut off between, is
        in the next batch.
        """
        files: list[TakenFile] = []
        while self._waiting and (self._source.most is None or len(files) < self._source.most):
            # One that is gone since it was found is passed over.
            files += _taken(self._waiting.popleft().path)
        if files:
            self._log.add(files)
        last = self._log.last
        return None if last < 0 else {_LOG_OFFSET: last}

    @property
    def waiting(self) -> int:
        """How many files were found and are in no batch."""
        return len(self._waiting)

    def files(self, start: End, end: End) -> list[TakenFile]:
        """Return the files of a batch. Raises `FileError` if the log does not have them."""
        first = -1 if start is None else start[_LOG_OFFSET]
        last = -1 if end is None else end[_LOG_OFFSET]
        return [TakenFile(one.uri, one.time) for one in self._log.entries(first + 1, last)]

    def taken(self) -> dict[str, int]:
        """Return the files that were taken, by URI, with their times of modification then, in milliseconds."""
        last = self._log.last
        if last > self._seen:
            self._taken.update((one.uri, one.time) for one in self._log.every(self._seen))
            self._seen = last
        return self._taken


def check_unchanged(taken: Mapping[str, int]) -> None:
    """Raise `FileError` for a file that has changed since it was taken, as it is not read again.

    `taken` has the URIs of all files that were taken, with the times at which they were modified then, in milliseconds.
    """
    changed = sorted(path for uri, time in taken.items() if _time_of(path := plain_path(uri), time) != time)
    if changed:
        more = f" (and {len(changed) - 1:,} more)" if len(changed) > 1 else ""
        hint = "what was added is not read: put it into a file of its own, and move this one away"
        raise FileError(changed[0], "the file as it was when it was read", f"one that has changed{more}; {hint}")


def file_uri(path: str) -> str:
    """Return the URI of an absolute path, as Hadoop and Spark write it.

    >>> file_uri("/tmp/a b/é%.jsonl")
    'file:///tmp/a%20b/é%25.jsonl'
    """
    return "file://" + "".join(one if _is_kept(one) else quote(one, safe=_SAFE) for one in path)


def is_hidden(name: str) -> bool:
    """Whether Spark passes over a file or folder of this name in a folder.

    >>> [is_hidden(name) for name in ("_new", ".a", "a._COPYING_", "_day=1", "_metadata", "a")]
    [True, True, True, False, False, False]
    """
    is_excluded = (name.startswith("_") and "=" not in name) or name.startswith(".") or name.endswith("._COPYING_")
    return is_excluded and not name.startswith(("_common_metadata", "_metadata"))


def _is_read(path: str) -> bool:
    """Whether Spark reads a file that it has taken: it takes metadata of Parquet as well."""
    name = Path(path).name
    return not name.startswith(".") and (not name.startswith("_") or "=" in name)


def _is_kept(one: str) -> bool:
    """Whether a URI of Java's has a character as it is that is none of ASCII."""
    return not one.isascii() and (one == "\u00ad" or one.isprintable()) and not one.isspace()


def _files_below(root: str) -> Iterable[TakenFile]:
    """Yield the files that Spark would read in a file or folder."""
    waiting = [root]
    if not Path(root).is_dir():
        waiting = []
        if not is_hidden(Path(root).name):
            yield from _taken(root)
    while waiting:
        # What somebody moves away meanwhile is not there.
        with suppress(FileNotFoundError, NotADirectoryError), os.scandir(waiting.pop()) as entries:
            for entry in entries:
                if is_hidden(entry.name):
                    continue
                if entry.is_dir():
                    waiting.append(entry.path)
                else:
                    yield from _taken(entry.path)


def _taken(path: str) -> Iterable[TakenFile]:
    with suppress(FileNotFoundError, NotADirectoryError):
        status = os.stat(path)  # noqa: PTH116  it is called often
        if not S_ISREG(status.st_mode):
            check_stored(path)
        yield TakenFile(file_uri(path), status.st_mtime_ns // _MILLISECOND)


def _time_of(path: str, otherwise: int) -> int:
    """Return when a file was modified, in milliseconds; what is given for one that is gone, which is no change."""
    try:
        status: Any = os.stat(path)  # noqa: PTH116
    except (FileNotFoundError, NotADirectoryError):
        return otherwise
    return int(status.st_mtime_ns) // _MILLISECOND
