"""Sources of a pipeline as the local runner reads them: what there is, where a batch ends, and the lanes of a batch."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final, Protocol

from cdcavro.errors import FileError, SetupError
from cdcavro.sync.batches import Lag
from cdcavro.sync.reading.file_source import FileProgress, FileReader, ReplayReader, check_unchanged
from cdcavro.sync.sources import Files

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import pyarrow as pa

    from cdcavro.sync.outputs.reject_places import RejectPlaces
    from cdcavro.sync.reading.checkpoint import Checkpoint, End, FileLog
    from cdcavro.sync.reading.file_source import TakenFile
    from cdcavro.sync.reading.kafka_source import KafkaLane, KafkaReader
    from cdcavro.sync.sources import Kafka

    Say = Callable[[str], None]

# The number of the source in the checkpoint, and that of the rejects which are read again.
_SOURCE: Final = 0
_REPLAY: Final = 1


@dataclass(frozen=True)
class Lane:
    """The messages of a topic partition or a file in a batch, which can be read more than once.

    * `size` (int): how large it is, in a unit that is the same for all lanes of a source.
    * `batches`: returns the messages in batches with the columns of `sources.COLUMNS`; it takes what is to be said of a
      file.
    """

    size: int
    batches: Callable[[Say], Iterator[pa.RecordBatch]]


class LaneSource(Protocol):
    """A source of lanes."""

    def look(self) -> None:
        """Look what there is now: the next batches read that, and no more."""

    def plan(self, start: End) -> End:
        """Return where a batch ends that begins at some place; the same place if nothing is to be read."""

    def lanes(self, start: End, end: End) -> list[Lane]:
        """Return the lanes between two places."""

    def size(self, start: End, end: End) -> Lag:
        """Return how much there is between two places."""

    def left(self, end: End) -> Lag | None:
        """Return how much there was behind a place when it was looked."""

    def check_unchanged(self) -> None:
        """Raise `FileError` for what has changed since it was read, and is not read again."""


class FileLanes:
    """Files of JSON lines, or of rejects; `log` has those that were taken."""

    def __init__(self, reader: FileReader | ReplayReader, log: FileLog) -> None:
        self._reader, self._progress = reader, FileProgress(reader, log)

    def look(self) -> None:
        """Look for new files. Raises `FileError`."""
        self._progress.look()

    def plan(self, start: End) -> End:
        """Take files into the next batch."""
        end = self._progress.advance()
        return start if end is None else end

    def lanes(self, start: End, end: End) -> list[Lane]:
        """Return the files of a batch."""
        return [Lane(_size_of(one), partial(self._reader.batches, one)) for one in self._progress.files(start, end)]

    def size(self, start: End, end: End) -> Lag:
        """Return how many files there are between two places."""
        return Lag(len(self._progress.files(start, end)), "files")

    def left(self, end: End) -> Lag:  # noqa: ARG002  as that of topics
        """Return how many files were found and are in no batch."""
        return Lag(self._progress.waiting, "files")

    def check_unchanged(self) -> None:
        """Raise `FileError` for a file that has changed since it was taken."""
        check_unchanged(self._progress.taken())


class KafkaLanes:
    """Topics of Kafka; `checkpoint` has the offsets at which they were begun."""

    def __init__(self, reader: KafkaReader, checkpoint: Checkpoint) -> None:
        self._reader, self._checkpoint = reader, checkpoint
        self._latest: dict[str, dict[str, int]] | None = None

    def look(self) -> None:
        """Ask for the offsets behind the last messages. Raises `JobError`."""
        self._latest = self._reader.latest()

    def plan(self, start: End) -> End:
        """Return the offsets at which a batch ends."""
        return start if self._latest is None else self._reader.plan(self._start(start), self._latest)

    def _start(self, start: End) -> dict[str, dict[str, int]]:
        """Return the offsets at which a batch begins: those of the first one are in a file of their own."""
        first = start or self._checkpoint.first_offsets(_SOURCE)
        if first is None:
            first = self._reader.first_offsets()
            self._checkpoint.put_first_offsets(_SOURCE, first)
        return first

    def lanes(self, start: End, end: End) -> list[Lane]:
        """Return the topic partitions of a batch."""
        found = self._reader.lanes(self._start(start), end or {})
        return [Lane(one.end - one.start, partial(self._batches, one)) for one in found]

    def _batches(self, lane: KafkaLane, _: Say) -> Iterator[pa.RecordBatch]:
        return self._reader.batches(lane)

    def size(self, start: End, end: End) -> Lag:
        """Return how many messages there are between two places, as far as offsets tell."""
        return Lag(self._reader.left(self._start(start), end or {}), "messages")

    def left(self, end: End) -> Lag | None:
        """Return how many messages there were behind a place."""
        return None if self._latest is None else self.size(end, self._latest)

    def check_unchanged(self) -> None:
        """Do nothing: what is in a topic does not change."""


def check_source(source: Kafka | Files, places: RejectPlaces) -> None:
    """Look whether a source has an answer, and that it does not read the topic to which rejects go.

    Raises `FileError` and `JobError`.
    """
    reader_of(source, places).check()


def source_of(source: Kafka | Files, places: RejectPlaces, checkpoint: Checkpoint) -> LaneSource:
    """Return a source as it is read here. Raises as `check_source` does."""
    reader = reader_of(source, places)
    if isinstance(reader, FileReader):
        return FileLanes(reader, checkpoint.files(_SOURCE))
    return KafkaLanes(reader, checkpoint)


def replay_source(folder: Path, checkpoint: Checkpoint) -> LaneSource:
    """Return the rejects that are read again, in a folder, which is made."""
    folder.mkdir(parents=True, exist_ok=True)
    return FileLanes(ReplayReader(folder), checkpoint.files(_REPLAY))


def reader_of(source: Kafka | Files, places: RejectPlaces) -> FileReader | KafkaReader:
    """Return what reads a source, of which nothing is asked yet. Raises `SetupError` without the library for it."""
    if isinstance(source, Files):
        return FileReader(source.path, source.most)
    try:
        # It is of use for this kind of source only.
        from cdcavro.sync.reading.kafka_source import KafkaReader  # noqa: PLC0415
    except ModuleNotFoundError as error:
        raise SetupError(f"{error.name} is not installed: pip install 'cdcavro[local]'") from error
    _check_pattern(source, places)
    return KafkaReader(source.servers, source.topics, source.pattern, source.options, source.most)


def _check_pattern(source: Kafka, places: RejectPlaces) -> None:
    if places.kafka is None or source.pattern is None:
        return
    from cdcavro.sync.reading.kafka_options import topic_pattern  # noqa: PLC0415  it is of use for Kafka only

    if topic_pattern(source.pattern)(places.kafka.topic):
        raise FileError(places.kafka.topic, "a rejects_topic that the source does not read", "one of its pattern")


def _size_of(file: TakenFile) -> int:
    path = Path(file.path)
    return path.stat().st_size if path.exists() else 0
