"""Local runner of a pipeline: its batches one by one, in this process, from a checkpoint that Spark reads, too.

A source says what there is and where a batch ends, and gives the lanes of a batch.
"""

from __future__ import annotations

import os
import re
import threading
import time
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from shutil import rmtree
from typing import TYPE_CHECKING, Any, Final, Protocol

from cdcavro.errors import FileError, JobError, SetupError
from cdcavro.lake.account import AccountFile
from cdcavro.lake.job_state import JobState
from cdcavro.sync import pipeline
from cdcavro.sync.batches import Arrivals, Batches, Lag
from cdcavro.sync.conversion.knowledge import has_evidence
from cdcavro.sync.conversion.rounds import merge_notes
from cdcavro.sync.conversion.task import converter, left_outcomes
from cdcavro.sync.local.local_outcomes import LocalFiles, LocalStore
from cdcavro.sync.local.local_sinks import LocalLakeSink, native_lake, reject_outputs, schema_change_output, sink_of
from cdcavro.sync.outputs.reject_places import SeparatingWriter
from cdcavro.sync.outputs.shard_schemas import SHARDS, ShardWriter
from cdcavro.sync.outputs.sink_settings import LakeNames
from cdcavro.sync.outputs.writer import PublishingWriter
from cdcavro.sync.pipeline import BATCHES, CHECKPOINT, JOB, REPLAY, job_of
from cdcavro.sync.reading.checkpoint import REPLAY_SOURCE, Checkpoint
from cdcavro.sync.reading.file_source import FileProgress, FileReader, ReplayReader, check_unchanged
from cdcavro.sync.reading.topic_ids import CheckedMessages, TopicIds
from cdcavro.sync.sources import Files

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    import pyarrow as pa

    from cdcavro.sync.batches import BatchReport
    from cdcavro.sync.conversion.knowledge import Knowledge
    from cdcavro.sync.conversion.rounds import Outcomes
    from cdcavro.sync.outputs.reject_places import RejectPlaces
    from cdcavro.sync.outputs.sink_settings import Job
    from cdcavro.sync.outputs.writer import Writer
    from cdcavro.sync.reading.checkpoint import End, FileLog
    from cdcavro.sync.reading.file_source import TakenFile
    from cdcavro.sync.reading.kafka_source import KafkaLane, KafkaReader
    from cdcavro.sync.sources import Kafka

    Say = Callable[[str], None]
    Warn = Callable[[Sequence[str]], None]

# How many bytes of a batch's rows are held in memory before they go to files.
ROOM: Final = 256 << 20
_SPILL: Final = "spill"
# For how long the main thread waits before it looks whether it was interrupted, in seconds.
_MOMENT: Final = 0.1
_UNITS: Final = {
    "microsecond": 1e-6,
    "millisecond": 1e-3,
    "second": 1.0,
    "minute": 60.0,
    "hour": 3600.0,
    "day": 86400.0,
    "week": 604800.0,
}
_PART: Final = re.compile(r"([0-9.]+)\s+([a-z]+?)s?(?=\s|\Z)", re.IGNORECASE)


class Seen(Protocol):
    """Is told how many messages of a batch are converted, and whether these are all."""

    def __call__(self, count: int, /, *, is_all: bool) -> None:
        """Take note of it."""


@dataclass(frozen=True)
class LocalBatch:
    """The messages of a batch in this process: `lanes`, each of which can be read more than once.

    * `spill` (Path): the folder for what does not fit in memory; `room` (int): how many bytes do.
    * `threads` (int): how many lanes are converted at a time.
    * `seen`: is called with how many messages are converted, and whether these are all.
    * `notes` (list[str]): what was said of files.
    """

    lanes: Sequence[Lane]
    spill: Path
    room: int = ROOM
    threads: int = 1
    seen: Seen = lambda _, *, is_all: None  # noqa: ARG005
    notes: list[str] = field(default_factory=list)

    def convert(self, knowledge: Knowledge) -> Outcomes:
        """Convert the messages with what is known. Raises `JobError` and others, for what is no message's fault."""
        store = LocalStore(self.spill, self.room)
        self.notes.clear()
        # As each task of Spark's has, a task has knowledge of its own, to which it adds what it learns.
        copied = knowledge.of_tasks.copier()
        shares = _shares(self.lanes, self.threads)
        counts, is_over = [0] * len(shares), threading.Event()

        def batches(own: int) -> Iterator[pa.RecordBatch]:
            for batch in _batches(shares[own], self.notes.append, is_over):
                yield batch
                counts[own] += batch.num_rows
                self.seen(sum(counts), is_all=False)

        def run(own: int) -> None:
            with _ending(is_over):
                for outcomes in converter(copied())(batches(own)):
                    store.add(outcomes)

        try:
            if len(shares) == 1:
                run(0)
            else:
                _run_all(run, len(shares), is_over)
            self.seen(sum(counts), is_all=True)
            halves = store.take_halves()
            if halves or knowledge.halves.kept:
                for outcomes in left_outcomes(knowledge, halves):
                    store.add(outcomes)
            evidence = store.take_evidence()
            merged = merge_notes(store, store.notes)._replace(halves=store.take_halves())
            return merged._replace(evidence=evidence) if has_evidence(store.notes) else merged
        except BaseException:
            store.free()
            raise

    def marks(self, files: Iterable[str]) -> list[str]:  # noqa: ARG002  the lanes say it themselves
        """Return what was said of files while they were read."""
        return sorted(set(self.notes))


def _batches(lanes: Sequence[Lane], say: Say, is_over: threading.Event) -> Iterator[pa.RecordBatch]:
    """Yield the messages of lanes, no more once `is_over` is set."""
    for lane in lanes:
        for batch in lane.batches(say):
            if is_over.is_set():
                return
            yield batch


def _run_all(run: Callable[[int], None], count: int, is_over: threading.Event) -> None:
    """Run shares, each in a thread. Raises the error of the first that has one; an interrupt sets `is_over`."""
    with ThreadPoolExecutor(count) as pool, _ending(is_over):
        running = [pool.submit(run, own) for own in range(count)]
        # Where a library such as polars handles SIGINT, too, Ctrl-C ends no wait without a time.
        while wait(running, _MOMENT).not_done:
            pass
    for one in running:
        one.result()


@contextmanager
def _ending(others: threading.Event) -> Iterator[None]:
    """Let an error, or Ctrl-C, end what other threads do, too: they would read all that there is."""
    try:
        yield
    except BaseException:
        others.set()
        raise


def _shares(lanes: Sequence[Lane], count: int) -> list[list[Lane]]:
    """Return lanes in at most `count` shares of about the same size, each in their order: older files come first."""
    shares: list[list[int]] = [[] for _ in range(max(1, min(count, len(lanes))))]
    sizes = [0] * len(shares)
    for i in sorted(range(len(lanes)), key=lambda i: -lanes[i].size):
        least = sizes.index(min(sizes))
        shares[least].append(i)
        sizes[least] += lanes[i].size
    return [[lanes[i] for i in sorted(share)] for share in shares]


@dataclass(frozen=True)
class Pipeline(pipeline.Pipeline):
    """A pipeline that this process runs; it has the fields of `cdcavro.sync.pipeline.Pipeline`."""

    def check_libraries(self) -> None:
        """Check that what the source and the sink need is installed. Raises `SetupError`."""
        with self.redaction.errors():
            reader_of(self.source, self.places)
            sink = sink_of(self.sink)
            if isinstance(sink, LocalLakeSink):
                native_lake(sink.settings)

    def check(self, warn: Warn = lambda _: None) -> None:
        """Check that the source, the sink and the registry can be reached, and that no other job uses the state.

        Also that lake tables belong to no other pipeline, if their names are known. `warn` is called with sentences on
        lake tables that lack rows, if there are any. Raises `FileError`, `JobError` and `RegistryError`.
        """
        with self.redaction.errors(), self.held():
            self.check_source_kind()
            sink = sink_of(self.sink)
            check_source(self.source, self.places)
            sink.check()
            for registry in (self.settings.framed, self.registry):
                if registry is not None:
                    registry.check()
            state = JobState(self.folder / BATCHES)
            last = max(state.batches(), default=-1) + 1
            state.resume(last, self.settings.tables())
            job = None
            if (self.folder / JOB).exists():
                job = job_of(self.folder, sink.identity(), is_checked=True)
            if isinstance(sink, LocalLakeSink):
                names = [*LakeNames.of(state.facts(last).get("names", [])).names.values()]
                sink.check_owner(job, names, self.settings.is_written_as)
                warn(self.lacking(None, sink.look(is_opened=True)))

    def run(
        self,
        *,
        once: bool = False,
        every: str = "10 seconds",
        say: Callable[[BatchReport], None] = lambda _: None,
        begin: Callable[[int, Lag | None], None] = lambda _, __: None,
        seen: Seen = lambda _, *, is_all: None,  # noqa: ARG005
        idle: Callable[[], None] = lambda: None,
        maintain: Callable[[], None] = lambda: None,
        warn: Warn = lambda _: None,
        stop: threading.Event | None = None,
        room: int = ROOM,
    ) -> None:
        """Run batches: with `once`, until all that is there now is read, else until `stop` is set.

        * `every` is how often a batch begins, in Spark's words.
        * `say` is called with the report of each batch, `begin` with the number of each before it is read, and with what it
          reads, and `seen` meanwhile with how many of its messages are converted, and whether these are all.
        * `idle` is called whenever everything available has been read.
        * `maintain` is called behind each batch that is done, once all is said of it.
        * `warn` is called before the first batch with sentences on lake tables that lack rows.
        * `room` is how many bytes of a batch's rows are held in memory.

        A run resumes where the previous one, on either runner, stopped or was killed. Raises `JobError` for faults
        other than a message's, and `FileError` for a folder of another job.
        """
        with self.redaction.errors(), self.held(), self.remembered(), self.publisher() as publisher:
            sink = sink_of(self.sink)
            self.check_source_kind()
            job = job_of(self.folder, sink.identity())._replace(check=self.verify)
            writer: Writer = sink.writer(job, publisher)
            if publisher is not None:
                writer = PublishingWriter(writer, publisher, LocalFiles().versions)
            if not isinstance(sink, LocalLakeSink):
                writer = ShardWriter(writer, self.folder / SHARDS, LocalFiles(), self.save)
            writer = SeparatingWriter(writer, self.places, self.sink.topic)
            run = _Run(self, job, writer, say, begin, seen, maintain, room)
            if isinstance(sink, LocalLakeSink):
                warn(run.lacking(sink))
            run.all_batches(once=once, every=seconds_of(every), idle=idle, stop=stop or threading.Event())


class _Run:
    """One run of a pipeline."""

    def __init__(
        self,
        own: Pipeline,
        job: Job,
        writer: Writer,
        say: Callable[[BatchReport], None],
        begin: Callable[[int, Lag | None], None],
        seen: Seen,
        maintain: Callable[[], None],
        room: int,
    ) -> None:
        folder = own.folder
        self._pipeline, self._room, self._begin, self._seen = own, room, begin, seen
        self._spill = folder / _SPILL
        # What a run that was killed has left; nobody else has the state.
        rmtree(self._spill, ignore_errors=True)
        self._checkpoint = Checkpoint(folder / CHECKPOINT)
        self._source = source_of(own.source, own.places, self._checkpoint, folder, **own.headers)
        self._replay = replay_source(folder / REPLAY, self._checkpoint)
        self._account = AccountFile(folder, own.redaction.of)
        self._say, self._maintain = say, maintain
        self._reports: list[BatchReport] = []
        outputs = reject_outputs(own.places, job.id)
        # What a batch reads and learned is saved before anything of it is written.
        state = JobState(folder / BATCHES, own.save)
        decided = own.schema_changes(schema_change_output(own.places, job.id))
        to = writer, self._account, self._reports.append, outputs, own.sink.template, decided
        self._batches = Batches(own.settings, state, *to)

    def lacking(self, sink: LocalLakeSink) -> list[str]:
        """Return which lake tables lack rows; if lake tables are adopted, they are taken as they are."""
        if sink.settings.is_adopting:
            self._account.forget_lake()
        return self._pipeline.lacking(self._account.lake, sink.look(is_opened=False))

    def all_batches(self, *, once: bool, every: float, idle: Callable[[], None], stop: threading.Event) -> None:
        """Run batches."""
        if not once:
            self._source.wait_long(stop)
        last = self._checkpoint.last
        if last is not None and not last.is_committed:
            # What is left behind it is only known by looking.
            self._look()
            self._run(last.number)
        while not stop.is_set():
            began = time.monotonic()
            self._look()
            while not stop.is_set() and self._next():
                if not once:
                    self._look()
            self._source.check_unchanged()
            self._pipeline.save()
            idle()
            if once:
                break
            stop.wait(max(0.0, every - (time.monotonic() - began)))
        self._batches.finish(LocalFiles())
        self._pipeline.save()
        self._tell(None)

    def _look(self) -> None:
        self._source.look()
        self._replay.look()

    def _next(self) -> bool:
        """Plan and run the next batch; return whether there was anything to read."""
        number = self._checkpoint.next
        start = self._checkpoint.start_of(number)
        ends = [self._source.plan(start[0]), self._replay.plan(start[1])]
        if ends == start:
            return False
        self._checkpoint.plan(number, ends)
        self._run(number)
        return True

    def _run(self, number: int) -> None:
        start, end = self._checkpoint.start_of(number), self._checkpoint.end_of(number)
        lanes = [*self._source.lanes(start[0], end[0]), *self._replay.lanes(start[1], end[1])]
        self._begin(number, self._source.size(start[0], end[0]))
        threads = max(1, len(os.sched_getaffinity(0)))
        with _failed_writes(number):
            messages = LocalBatch(lanes, self._spill, self._room, threads, self._seen)
            self._batches.run(CheckedMessages(messages, partial(self._source.check_read, end[0])), number)
            self._checkpoint.commit(number)
        self._pipeline.save()
        self._tell(self._source.left(end[0]), self._source.since(end[0]))

    def _tell(self, lag: Lag | None, since: float | None = None) -> None:
        """Pass on the reports of batches that are done, and let tables be maintained behind them."""
        reports, self._reports[:] = list(self._reports), []
        for report in reports:
            report.lag, report.lag_since = lag, since
            if lag is not None:
                self._account.note_lag(report.number, *lag)
            self._say(self._pipeline.redaction.of(report))
        if reports:
            self._maintain()


@contextmanager
def _failed_writes(number: int) -> Iterator[None]:
    """Let an error that does not say which file failed, as one of a full disk, say which batch did."""
    try:
        yield
    except OSError as error:
        if error.filename is not None:
            raise
        raise JobError(f"batch {number} cannot be written: {error.strerror or error}") from error


def seconds_of(interval: str) -> float:
    """Return the seconds of an interval in Spark's words.

    >>> seconds_of("1 minute 2.5 seconds")
    62.5
    """
    return sum(float(count) * _UNITS[unit.lower()] for count, unit in _PART.findall(interval))


# The number of the source in the checkpoint.
_SOURCE: Final = 0


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

    def wait_long(self, stop: threading.Event) -> None:
        """Wait longer for a source that does not answer, until `stop` is set."""

    def look(self) -> None:
        """Look what there is now: the next batches read that, and no more."""

    def plan(self, start: End) -> End:
        """Return where a batch ends that begins at some place; the same place if nothing is to be read."""

    def lanes(self, start: End, end: End) -> list[Lane]:
        """Return the lanes between two places."""

    def check_read(self, end: End) -> None:
        """Raise `JobError` if what was read up to a place may be of other topics than what was read before."""

    def size(self, start: End, end: End) -> Lag:
        """Return how much there is between two places."""

    def left(self, end: End) -> Lag | None:
        """Return how much there was behind a place when it was looked."""

    def since(self, end: End) -> float | None:
        """Return when a message behind a place was first seen, in seconds since 1970; None if none was, or for files."""

    def check_unchanged(self) -> None:
        """Raise `FileError` for what has changed since it was read, and is not read again."""


class FileLanes:
    """Files of JSON lines, or of rejects; `log` has those that were taken."""

    def __init__(self, reader: FileReader | ReplayReader, log: FileLog) -> None:
        self._reader, self._progress = reader, FileProgress(reader, log)

    def wait_long(self, stop: threading.Event) -> None:
        """Do nothing: a folder answers at once."""

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

    def check_read(self, end: End) -> None:
        """Do nothing: each file is checked by itself."""

    def size(self, start: End, end: End) -> Lag:
        """Return how many files there are between two places."""
        return Lag(len(self._progress.files(start, end)), "files")

    def left(self, end: End) -> Lag:  # noqa: ARG002  as that of topics
        """Return how many files were found and are in no batch."""
        return Lag(self._progress.waiting, "files")

    def since(self, end: End) -> None:
        """Return None: files tell by their names which are left."""

    def check_unchanged(self) -> None:
        """Raise `FileError` for a file that has changed since it was taken."""
        check_unchanged(self._progress.taken())


class KafkaLanes:
    """Topics of Kafka; `checkpoint` has the offsets at which they were begun, and `ids` what tells them from others."""

    def __init__(self, reader: KafkaReader, checkpoint: Checkpoint, ids: TopicIds) -> None:
        self._reader, self._checkpoint, self._ids = reader, checkpoint, ids
        self._latest: dict[str, dict[str, int]] | None = None
        # Where nothing new is there, it is enough to compare the ids of topics once.
        self._is_compared = False
        self._arrivals = Arrivals()

    def wait_long(self, stop: threading.Event) -> None:
        """Wait for brokers as Kafka's clients do."""
        self._reader.wait_long(stop)

    def look(self) -> None:
        """Ask for the offsets behind the last messages. Raises `JobError`."""
        self._latest = self._reader.latest()
        self._arrivals.look(self._latest, time.time())

    def plan(self, start: End) -> End:
        """Return the offsets at which a batch ends. Raises `JobError` if messages are lost."""
        latest = self._latest
        if latest is None:
            return start
        if (start or {}) != latest or not self._is_compared:
            self._ids.compare(latest)
            self._is_compared = True
        return self._reader.plan(self._start(start), latest)

    def _start(self, start: End) -> dict[str, dict[str, int]]:
        """Return the offsets at which a batch begins: those of the first one are in a file of their own."""
        first = start or self._checkpoint.first_offsets(_SOURCE)
        if first is None:
            first = self._reader.first_offsets()
            self._checkpoint.put_first_offsets(_SOURCE, first)
        return first

    def lanes(self, start: End, end: End) -> list[Lane]:
        """Return the topic partitions of a batch. Raises `JobError` if messages are lost."""
        if self._latest is None:
            # The batch was planned by an earlier run.
            self._ids.compare(end or {})
        found = self._reader.lanes(self._start(start), end or {})
        return [Lane(one.end - one.start, partial(self._batches, one)) for one in found]

    def _batches(self, lane: KafkaLane, _: Say) -> Iterator[pa.RecordBatch]:
        try:
            yield from self._reader.batches(lane)
        except JobError:
            # Messages may have been missed because the topic is another one by now, which says more.
            self._ids.compare([lane.topic])
            raise

    def check_read(self, end: End) -> None:
        """Raise `JobError` if a topic was deleted and created again before all was read."""
        self._ids.learn([*(end or {})])

    def size(self, start: End, end: End) -> Lag:
        """Return how many messages there are between two places, as far as offsets tell."""
        return Lag(self._reader.left(self._start(start), end or {}), "messages")

    def left(self, end: End) -> Lag | None:
        """Return how many messages there were behind a place."""
        return None if self._latest is None else self.size(end, self._latest)

    def since(self, end: End) -> float | None:
        """Return when a message behind a place was first seen."""
        return self._arrivals.since(self._start(end))

    def check_unchanged(self) -> None:
        """Do nothing: what is in a topic does not change."""


def check_source(source: Kafka | Files, places: RejectPlaces) -> None:
    """Look whether a source has an answer, and that it does not read the topic to which rejects go.

    Raises `FileError` and `JobError`.
    """
    reader_of(source, places).check()


def source_of(
    source: Kafka | Files, places: RejectPlaces, checkpoint: Checkpoint, state: Path, **headers: Any
) -> LaneSource:
    """Return a source as it is read here; `headers` are as in `KafkaReader`. Raises as `check_source` does.

    `state` is the folder that remembers the ids of topics.
    """
    reader = reader_of(source, places, **headers)
    if isinstance(reader, FileReader):
        return FileLanes(reader, checkpoint.files(_SOURCE))
    return KafkaLanes(reader, checkpoint, TopicIds(state, reader.topic_ids))


def replay_source(folder: Path, checkpoint: Checkpoint) -> LaneSource:
    """Return the rejects that are read again, in a folder, which is made."""
    folder.mkdir(parents=True, exist_ok=True)
    return FileLanes(ReplayReader(folder), checkpoint.files(REPLAY_SOURCE))


def reader_of(source: Kafka | Files, places: RejectPlaces, **headers: Any) -> FileReader | KafkaReader:
    """Return what reads a source, of which nothing is asked yet. Raises `SetupError` without the library for it."""
    if isinstance(source, Files):
        return FileReader(source.path, source.most)
    try:
        # It is of use for this kind of source only.
        from cdcavro.sync.reading.kafka_source import KafkaReader  # noqa: PLC0415
    except ModuleNotFoundError as error:
        raise SetupError(f"{error.name} is not installed: pip install 'cdcavro[local]'") from error
    _check_pattern(source, places)
    return KafkaReader(source.servers, source.topics, source.pattern, source.options, source.most, **headers)


def _check_pattern(source: Kafka, places: RejectPlaces) -> None:
    if places.kafka is None or source.pattern is None:
        return
    from cdcavro.sync.reading.brokers import topic_pattern  # noqa: PLC0415  it is of use for Kafka only

    if topic_pattern(source.pattern)(places.kafka.topic):
        raise FileError(places.kafka.topic, "a rejects_topic that the source does not read", "one of its pattern")


def _size_of(file: TakenFile) -> int:
    path = Path(file.path)
    return path.stat().st_size if path.exists() else 0
