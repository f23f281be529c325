"""How much is left to read behind a batch: messages of topics, as Spark's source of Kafka tells, or files.

And what will never be read: what is written into a file that was read already.
"""

from __future__ import annotations

import json
import os
from contextlib import suppress
from glob import glob
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from cdcavro.errors import FileError
from cdcavro.spark.job.line_frame import plain_path
from cdcavro.spark.pipeline.sources import Files

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from pyspark.sql import SparkSession

    from cdcavro.spark.pipeline.sources import Kafka

    Progress = Mapping[str, Any]

_CHUNK: Final = 1 << 16
_COMPACT: Final = ".compact"
_HIDDEN: Final = ("_", ".")
_MILLISECOND: Final = 1_000_000


class Lag(NamedTuple):
    """How much is left to read: `left` (int) of `unit` (str), "messages" or "files"."""

    left: int
    unit: str


def lag_of(source: Kafka | Files, checkpoint: Path) -> Callable[[Progress], Lag | None]:
    """Return the function that tells the lag behind a batch from Spark's progress with it, as JSON; None if nothing tells it."""
    if not isinstance(source, Files):
        return messages_left
    files = FilesLeft(source.path, checkpoint)
    return files.left


def messages_left(progress: Progress) -> Lag | None:
    """Return how many messages the topics had behind the last that a batch read, when it began."""
    for source in progress["sources"]:
        latest, end = _offsets(source["latestOffset"]), _offsets(source["endOffset"])
        if latest and end:
            behind = [
                max(0, offset - end.get(topic, {}).get(partition, offset))
                for topic, partitions in latest.items()
                for partition, offset in partitions.items()
            ]
            return Lag(sum(behind), "messages")
    return None


def _offsets(value: Any) -> dict[str, dict[str, int]]:
    """Return offsets by topic and partition, none for what is no such value: sources of files have another."""
    is_such = isinstance(value, dict) and all(isinstance(partitions, dict) for partitions in value.values())
    return value if is_such else {}


class FilesLeft:
    """Counts the files of a path that Spark has not taken, as its checkpoint tells which it has."""

    def __init__(self, path: str, checkpoint: Path) -> None:
        self._path = path
        self._checkpoint = checkpoint
        self._taken: dict[str, int] = {}
        self._read: dict[Path, int] = {}

    def left(self, progress: Progress) -> Lag | None:
        """Return how many files are left behind a batch; None if the path is none of this machine, or a log is not understood."""
        if "://" in self._path or "{" in self._path:
            return None
        try:
            for i, source in enumerate(progress["sources"]):
                if source["endOffset"] is not None:
                    self._take(self._checkpoint / "sources" / str(i), source["endOffset"]["logOffset"])
            there = set(_files(self._path))
        except (OSError, ValueError, KeyError, TypeError):
            return None
        # What is there no more is of no use.
        self._taken = {path: time for path, time in self._taken.items() if path in there}
        return Lag(len(there - self._taken.keys()), "files")

    def taken(self) -> dict[str, int]:
        """Return the files that Spark has taken, with the times at which they were modified then, in milliseconds."""
        for folder in sorted((self._checkpoint / "sources").glob("*")):
            logs = [int(path.name.removesuffix(_COMPACT)) for path in folder.iterdir() if path.name[0].isdecimal()]
            self._take(folder, max(logs, default=-1))
        return self._taken

    def _take(self, folder: Path, last_log: int) -> None:
        """Note the files that are in the logs of a source since the last time, up to one of them."""
        last = self._read.get(folder, -1)
        if last_log <= last:
            return
        found = {int(path.name.removesuffix(_COMPACT)): path for path in folder.iterdir() if path.name[0].isdecimal()}
        logs = {number: path for number, path in found.items() if number <= last_log}
        # A log that puts the others together has all of theirs.
        first = max((number for number, path in logs.items() if path.name.endswith(_COMPACT)), default=0)
        for number, path in sorted(logs.items()):
            if number > last and (last >= 0 or number >= first):
                self._taken.update((plain_path(entry["path"]), entry["timestamp"]) for entry in _entries(path, last))
                self._read[folder] = number


def check_unchanged(spark: SparkSession, source: Files, checkpoint: Path) -> None:
    """Raise `FileError` for a file that has changed since Spark has taken it, which it will not read again.

    Its checkpoint tells which these are, by whatever links or patterns they were found. A log of another Spark, which is
    not understood, tells nothing.
    """
    try:
        taken = FilesLeft(source.path, checkpoint).taken()
        there = _modified(spark, source.path, taken)
    except (OSError, ValueError, KeyError, TypeError):
        return
    changed = sorted(path for path, time in taken.items() if there.get(path, time) != time)
    if changed:
        more = f" (and {len(changed) - 1:,} more)" if len(changed) > 1 else ""
        expected = (
            "the file as it was when it was read: what was added since is not read. Put that into a file of its own"
        )
        raise FileError(changed[0], f"{expected}, and move this one away", f"one that has changed{more}")


def _modified(spark: SparkSession, path: str, taken: Iterable[str]) -> dict[str, int]:
    """Return the files among those that were taken which are there, with the times at which they were modified."""
    times: dict[str, int] = {}
    is_local = True
    for file in taken:
        if "://" in file:
            is_local = False
            continue
        # One that is gone by now is not there.
        with suppress(FileNotFoundError, NotADirectoryError):
            times[file] = Path(file).stat().st_mtime_ns // _MILLISECOND
    if not is_local:
        found = spark.read.format("binaryFile").option("recursiveFileLookup", "true").load(path)
        rows = found.selectExpr("path", "unix_millis(modificationTime) AS time").collect()
        times |= {plain_path(row["path"]): row["time"] for row in rows}
    return times


def _entries(path: Path, last: int) -> list[dict[str, Any]]:
    """Return the entries of a log that are of batches behind one; they are at its end."""
    with path.open("rb") as file:
        length, size = file.seek(0, os.SEEK_END), _CHUNK
        while True:
            file.seek(max(0, length - size))
            # The first line is cut, or says the version.
            entries = [json.loads(line) for line in file.read().splitlines()[1:]]
            if size >= length or (entries and entries[0]["batchId"] <= last):
                return [entry for entry in entries if entry["batchId"] > last]
            size *= 4


def _files(path: str) -> Iterator[str]:
    """Yield the files that Spark would read, by their real paths."""
    roots = [path] if Path(path).exists() else glob(path)  # noqa: PTH207  a pattern may be absolute
    for root in map(os.path.realpath, roots):
        if Path(root).is_file():
            yield root
        for folder, folders, names in os.walk(root):
            folders[:] = [name for name in folders if not name.startswith(_HIDDEN)]
            yield from (os.path.join(folder, name) for name in names if not name.startswith(_HIDDEN))  # noqa: PTH118
