"""Checkpoint: how far a stream has come, in files as Spark's Structured Streaming writes them.

The offsets of a batch are written before it is run and its commit behind it, so that a batch whose run was cut off is
run again with the same ends. Spark 3.5, 4.0 and 4.1 go on from what is written here, and the other way round. Sources:
`OffsetSeqLog`, `CommitLog`, `CompactibleFileStreamLog`, `FileStreamSourceLog` and `KafkaSourceInitialOffsetWriter` of
Spark, versions `v1`.
"""

from __future__ import annotations

import json
import os
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final, NamedTuple
from uuid import uuid4

from cdcavro.errors import FileError
from cdcavro.lake.job_state import replace_file

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from pathlib import Path

    # Where a source is: None for one that has not begun, `{"logOffset": 3}` for files, `{"topic": {"0": 7}}` for Kafka.
    End = dict[str, Any] | None

# The number of the source that reads rejects again; that of the messages has 0.
REPLAY_SOURCE: Final = 1
_VERSION: Final = "v1"
_NOTHING: Final = "-"
_COMPACT: Final = ".compact"
# How many batches Spark keeps: `spark.sql.streaming.minBatchesToRetain`.
_KEPT: Final = 100
# `spark.sql.streaming.fileSource.log.compactInterval` and `cleanupDelay`, the latter in seconds.
_INTERVAL: Final = 10
_DELAY: Final = 600
# How many buckets a map of Scala has at first.
_BUCKETS: Final = 16
# Spark 2.1 needed a byte before the version of Kafka's first offsets, and all Sparks since expect it.
_ZERO: Final = "\0"


class Planned(NamedTuple):
    """The last batch of a stream that was planned."""

    number: int
    # Whether it was run to its end.
    is_committed: bool


class FileEntry(NamedTuple):
    """A file that was taken."""

    # Its URI, as Spark writes it.
    uri: str
    # When it was modified, in milliseconds since 1970.
    time: int
    # The number of the log that it is in.
    batch: int


class Checkpoint:
    """The checkpoint of a stream of `sources` sources in a folder, which is made if there is none.

    Attributes: `folder` (Path); `id` (str), that of the stream. Raises `FileError` for a file that is not understood.
    """

    def __init__(self, folder: Path, sources: int = 2) -> None:
        self.folder = folder
        self._count = sources
        self._offsets, self._commits = folder / "offsets", folder / "commits"
        for one in (self._offsets, self._commits, *(folder / "sources" / str(i) for i in range(sources))):
            one.mkdir(parents=True, exist_ok=True)
        self.id = self._identify()

    def _identify(self) -> str:
        path = self.folder / "metadata"
        if not path.exists():
            _write(path, json.dumps({"id": str(uuid4())}, separators=(",", ":")))
        return str(_parsed(path, path.read_bytes())["id"])

    @property
    def last(self) -> Planned | None:
        """The last batch that was planned; None for a stream that has not begun."""
        number = max(_numbers(self._offsets), default=None)
        return None if number is None else Planned(number, (self._commits / str(number)).exists())

    @property
    def next(self) -> int:
        """The number of the batch to be run: one that was planned and not committed, else a new one."""
        last = self.last
        return 0 if last is None else last.number + last.is_committed

    def files(self, source: int) -> FileLog:
        """Return the log of a source of files."""
        return FileLog(self.folder / "sources" / str(source))

    def end_of(self, number: int) -> list[End]:
        """Return where each source is behind a planned batch; behind the one before the first, nowhere.

        Raises `FileError` if the batch is not in the checkpoint, or has other sources.
        """
        if number < 0:
            return [None] * self._count
        path = self._offsets / str(number)
        lines = self._lines(number)
        ends: list[End] = [None if line == _NOTHING else _parsed(path, line) for line in lines[2:]]
        if len(ends) != self._count:
            raise FileError(str(path), f"the offsets of {self._count} sources", f"those of {len(ends)}")
        return ends

    def start_of(self, number: int) -> list[End]:
        """Return where each source is before a batch. Raises `FileError` as `end_of` does."""
        return self.end_of(number - 1)

    def plan(self, number: int, ends: Sequence[End]) -> None:
        """Write where each source is behind a batch, the next one. Raises `ValueError` for another number."""
        last = self.last
        if number != self.next or len(ends) != self._count or (last is not None and number == last.number):
            raise ValueError(f"batch {number} with {len(ends)} sources is not the next one to be planned")
        facts = {"batchWatermarkMs": 0, "batchTimestampMs": time.time_ns() // 1_000_000, "conf": self._conf(number - 1)}
        lines = [_VERSION, _compact_json(facts), *(_NOTHING if end is None else end_json(end) for end in ends)]
        _write(self._offsets / str(number), "\n".join(lines))

    def commit(self, number: int) -> None:
        """Write that a planned batch is done, and remove what is older than Spark keeps."""
        if self.last != (number, False):
            raise ValueError(f"batch {number} is not the one that was planned")
        _write(self._commits / str(number), f'{_VERSION}\n{{"nextBatchWatermarkMs":0}}')
        for folder in (self._offsets, self._commits):
            for old in _numbers(folder):
                if old < number - _KEPT:
                    _remove(folder / str(old))

    def put_end(self, number: int, source: int, end: End) -> None:
        """Write where a source is behind a planned batch instead of what was planned. Raises as `end_of` does."""
        ends = self.end_of(number)
        ends[source] = end
        lines = [*self._lines(number)[:2], *(_NOTHING if one is None else end_json(one) for one in ends)]
        _write(self._offsets / str(number), "\n".join(lines))

    def first_offsets(self, source: int) -> dict[str, Any] | None:
        """Return the offsets from which a source of Kafka was read at first; None if it was not."""
        path = self.folder / "sources" / str(source) / "0"
        if not path.exists():
            return None
        text = path.read_bytes()[len(_ZERO) :]
        version, _, offsets = text.partition(b"\n")
        # Before Spark 2.2 there was no version.
        return _parsed(path, offsets if version.startswith(b"v") else text)

    def put_first_offsets(self, source: int, offsets: dict[str, Any]) -> None:
        """Write the offsets from which a source of Kafka is read at first."""
        path = self.folder / "sources" / str(source) / "0"
        _write(path, f"{_ZERO}{_VERSION}\n{end_json(offsets)}")

    def _lines(self, number: int) -> list[str]:
        """Return the lines of a batch's offsets."""
        path = self._offsets / str(number)
        try:
            lines = path.read_bytes().decode(errors="replace").split("\n")
        except FileNotFoundError as error:
            raise FileError(str(path), f"the offsets of batch {number}", "none") from error
        _check_version(path, lines[0])
        if len(lines) < 2:  # noqa: PLR2004  the version and the facts
            raise FileError(str(path), "the offsets of a batch", "a file that ends too early")
        return [line.strip() for line in lines]

    def _conf(self, number: int) -> dict[str, str]:
        """Return the settings that Spark noted for a batch, and holds to as long as the stream lasts.

        They are of aggregations and joins, of which a pipeline has none; those that are missing have Spark's defaults.
        """
        if number < 0:
            return {}
        facts = self._lines(number)[1]
        return dict(_parsed(self._offsets / str(number), facts).get("conf", {})) if facts else {}


def reads_files(folder: Path) -> bool | None:
    """Return whether the first source of a stream is files and not topics; None if its checkpoint does not say yet.

    Raises `FileError` for a file that is not understood.
    """
    if not (folder / "offsets").is_dir():
        return None
    checkpoint = Checkpoint(folder)
    last = checkpoint.last
    end = None if last is None else checkpoint.end_of(last.number)[0]
    if end is not None:
        # Of files, a number is there instead of the offsets of a topic.
        return not all(isinstance(own, dict) for own in end.values())
    first = folder / "sources" / "0" / "0"
    return None if not first.exists() else not first.read_bytes().startswith(_ZERO.encode())


class FileLog:
    """The log of a source of files: which files it took, some at a time, each time under the next number.

    Each tenth number has the entries of all before it, too. `folder` is made by the checkpoint.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    @property
    def last(self) -> int:
        """The last number; -1 if there is none."""
        return max(self._files(), default=-1)

    def entries(self, first: int, last: int) -> list[FileEntry]:
        """Return the files that were taken under some numbers. Raises `FileError` if the log has one of them not."""
        files = self._files()
        found: list[FileEntry] = []
        whole: dict[int, list[FileEntry]] = {}
        for number in range(first, last + 1):
            if number in files:
                found += [one for one in _entries(files[number]) if one.batch == number]
                continue
            if not whole:
                for one in self.every():
                    whole.setdefault(one.batch, []).append(one)
            if number not in whole:
                path = self.folder / str(number)
                raise FileError(str(path), "what files were taken", "none")
            found += whole[number]
        return found

    def every(self, after: int = -1) -> Iterator[FileEntry]:
        """Yield all files that were taken, in their order; with `after`, only those of higher numbers."""
        files = self._files()
        # The entries before a compacted file are in it, too.
        start = max((number for number, path in files.items() if path.name.endswith(_COMPACT)), default=0)
        for number in sorted(files):
            if number >= start and number > after:
                yield from (one for one in _entries(files[number]) if one.batch > after)

    def rename(self, renamed: Callable[[str], str]) -> None:
        """Let files that were taken have other URIs, such as those of files that were moved."""
        for path in self._files().values():
            entries = _entries(path)
            others = [one._replace(uri=renamed(one.uri)) for one in entries]
            if others != entries:
                _write_entries(path, others)

    def add(self, files: Sequence[tuple[str, int]]) -> int:
        """Note files that are taken, by URI and time of modification in milliseconds; return the number."""
        own = self._files()
        number = max(own, default=-1) + 1
        interval = compact_interval([one for one, path in own.items() if path.name.endswith(_COMPACT)])
        entries = [FileEntry(uri, modified, number) for uri, modified in files]
        is_compact = (number + 1) % interval == 0
        entries = [*self.every(), *entries] if is_compact else entries
        _write_entries(self.folder / f"{number}{_COMPACT if is_compact else ''}", entries)
        self._clean(number, interval)
        return number

    def _clean(self, number: int, interval: int) -> None:
        """Remove what is in a later compacted file, too, when some minutes have passed, as Spark does."""
        if interval > number + 1 - _KEPT:
            return
        least = number + 1 - _KEPT
        compacted, expired = least - least % interval - 1, time.time() - _DELAY
        for old, path in self._files().items():
            if old < compacted and path.stat().st_mtime <= expired:
                _remove(path)

    def _files(self) -> dict[int, Path]:
        return {
            int(stem): path
            for path in self.folder.iterdir()
            if (stem := path.name.removesuffix(_COMPACT)).isdecimal() and stem.isascii()
        }


def compact_interval(compacted: Sequence[int]) -> int:
    """Return every how many numbers a log is compacted, for the numbers at which it was, as Spark derives it.

    >>> compact_interval([]), compact_interval([9]), compact_interval([11]), compact_interval([9, 19, 29])
    (10, 10, 12, 10)
    """
    *_, before, last = [-1, -1, *sorted(compacted)]
    if last < 0:
        return _INTERVAL
    if before >= 0:
        return last - before
    whole = last + 1
    if whole <= _INTERVAL or whole // 2 <= _INTERVAL:
        return whole
    return next((one for one in range(_INTERVAL, whole // 2 + 1) if whole % one == 0), whole)


def end_json(end: dict[str, Any]) -> str:
    """Return where a source is, as Spark writes it.

    Spark compares the texts, and runs a batch without messages where they differ. So topics have the order that a
    mutable `HashMap` of Scala 2.13 gives them; that of Spark 3.5, with Scala 2.12, is another one.
    """
    if len(end) > 1:
        *_, last = sorted(end)
        # The table grows with a topic, and before the second partition of the last one.
        most, size = len(end) + (len(end[last]) > 1), _BUCKETS
        while most >= size * 3 // 4:
            size *= 2
        end = {name: end[name] for name in sorted(end, key=lambda name: _scala_order(name, size))}
    return _compact_json(end)


def _scala_order(name: str, size: int) -> tuple[int, int]:
    """Return what orders the keys of a map with a table of some size: the bucket, and the hash as an `int`."""
    hash, units = 0, name.encode("utf-16-be")
    for high, low in zip(units[::2], units[1::2], strict=True):
        hash = (31 * hash + (high << 8 | low)) & 0xFFFFFFFF
    hash ^= hash >> 16
    return hash & (size - 1), hash - (1 << 32) if hash >> 31 else hash


def _entries(path: Path) -> list[FileEntry]:
    """Return the entries of a log. Raises `FileError`."""
    version, *lines = path.read_bytes().split(b"\n")
    _check_version(path, version.decode(errors="replace"))
    try:
        found = [json.loads(line) for line in lines if line]
        return [FileEntry(str(one["path"]), int(one["timestamp"]), int(one["batchId"])) for one in found]
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise FileError(str(path), "what files were taken", type(error).__name__) from error


def _write_entries(path: Path, entries: Iterable[FileEntry]) -> None:
    lines = [_compact_json({"path": one.uri, "timestamp": one.time, "batchId": one.batch}) for one in entries]
    _write(path, "\n".join([_VERSION, *lines]))


def _check_version(path: Path, version: str) -> None:
    if version.strip() != _VERSION:
        raise FileError(str(path), f"a file of Spark's checkpoint, version {_VERSION}", version[:20] or "none")


def _parsed(path: Path, text: str | bytes) -> dict[str, Any]:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise FileError(str(path), "a file of Spark's checkpoint", type(error).__name__) from error
    if not isinstance(value, dict):
        raise FileError(str(path), "a file of Spark's checkpoint", type(value).__name__)
    return value


def _compact_json(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


def _numbers(folder: Path) -> list[int]:
    return [int(name) for name in os.listdir(folder) if name.isascii() and name.isdecimal()]  # noqa: PTH208


def _write(path: Path, text: str) -> None:
    """Write a file, which is the old or the new one, whole, whenever the machine stops.

    Hadoop refuses a file whose checksum lies beside it and is another one's; without a checksum it takes it.
    """
    with suppress(FileNotFoundError):
        _checksum_of(path).unlink()
    replace_file(path, text)


def _remove(path: Path) -> None:
    """Remove a file and its checksum, which must not be there for a later file of this name."""
    path.unlink(missing_ok=True)
    _checksum_of(path).unlink(missing_ok=True)


def _checksum_of(path: Path) -> Path:
    return path.with_name(f".{path.name}.crc")
