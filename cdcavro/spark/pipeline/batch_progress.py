"""Progress of a pipeline: what is left behind a batch, why messages were rejected, reports, and metrics of queries.

Spark's source of Kafka says how many messages are left to read; files are counted. What is written into a file that was
read already will never be read, which is an error.

Metrics of Spark's streaming queries have the names that those of a pipeline have, and come from what Spark tells a
listener.
"""

from __future__ import annotations

import json
import os
import re
import time
from collections import Counter, deque
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from glob import glob
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import functions as sf
from pyspark.sql.streaming.listener import StreamingQueryListener

from cdcavro.errors import FileError, SetupError
from cdcavro.files.streams import plain_path
from cdcavro.lake.account import RejectReason, bounded_name
from cdcavro.spark.pipeline.pipeline_rejects import rejects_of
from cdcavro.sync.batches import COUNTS, Arrivals, Lag
from cdcavro.sync.metrics import OTHERS, Measurement, MetricsSource
from cdcavro.sync.outputs.reject_places import GOT, INDEX, LONGEST, MOST_REASONS, PLACE, SHOWN_VALUE, place_of
from cdcavro.sync.sources import Files

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping
    from uuid import UUID

    from pyspark.sql import Column, DataFrame, SparkSession
    from pyspark.sql.streaming.listener import (
        QueryIdleEvent,
        QueryProgressEvent,
        QueryStartedEvent,
        QueryTerminatedEvent,
    )
    from pyspark.sql.streaming.query import StreamingQuery

    from cdcavro.lake.account import AccountFile
    from cdcavro.sync.batches import BatchReport
    from cdcavro.sync.metrics import MetricsConfig
    from cdcavro.sync.sources import Kafka

    Progress = Mapping[str, Any]

# What an observation is called whose values say what became of messages.
OBSERVATION: Final = "cdcavro"
_RESULTS: Final = frozenset(name.replace(" ", "_") for name in COUNTS[1:])
# How many parts of a batch, and errors, a query has at most: Spark has fewer.
_KINDS: Final = 30
# A trigger that ran a batch has the first of these parts; the second one is the time of all others.
_BATCH: Final = "addBatch"
_WHOLE: Final = "triggerExecution"
# The name of a class of Java's before what it says.
_CLASS: Final = re.compile(r"(?:\w+\.)+(\w+)")
# How many queries that ended with an error a sentence names.
_NAMED: Final = 20


@dataclass
class _Query:
    """What is known of a query. Times are in seconds since 1970, but `sign`, when it was last heard of."""

    sign: float = 0.0
    is_running: bool = True
    error: str | None = None
    last: float | None = None
    lag: int | None = None
    lag_since: float | None = None
    watermark: float | None = None
    state_rows: int | None = None
    state_bytes: int | None = None
    batches: int = 0
    input_rows: int = 0
    messages: Counter[str] = field(default_factory=Counter)
    milliseconds: Counter[str] = field(default_factory=Counter)
    failures: Counter[str] = field(default_factory=Counter)
    # By the number of a source.
    arrivals: dict[int, Arrivals] = field(default_factory=dict)

    def take(self, progress: Mapping[str, Any]) -> None:
        """Take what a trigger did, as Spark tells it in JSON."""
        self._take_lag(progress)
        mark = (progress.get("eventTime") or {}).get("watermark")
        self.watermark = None if mark is None else datetime.fromisoformat(mark).timestamp()
        operators = progress.get("stateOperators") or []
        self.state_rows = sum(one["numRowsTotal"] for one in operators) if operators else None
        self.state_bytes = sum(one["memoryUsedBytes"] for one in operators) if operators else None
        parts = progress.get("durationMs") or {}
        # Spark tells of triggers that found nothing, too.
        if _BATCH not in parts:
            return
        self.batches, self.last = self.batches + 1, time.time()
        self.input_rows += progress.get("numInputRows") or 0
        for part, milliseconds in parts.items():
            if part != _WHOLE:
                self.milliseconds[_bounded(part, self.milliseconds)] += milliseconds
        observed = (progress.get("observedMetrics") or {}).get(OBSERVATION) or {}
        self.messages.update({name: count for name, count in observed.items() if name in _RESULTS and count})

    def _take_lag(self, progress: Mapping[str, Any]) -> None:
        """Take how much topics have behind what is read, and since when; nothing is known of other sources."""
        lags, times = [], []
        for number, source in enumerate(progress["sources"]):
            alone = {**progress, "sources": [source]}
            lag = messages_left(alone)
            if lag is not None:
                lags.append(lag.left)
                times.append(left_since(alone, self.arrivals.setdefault(number, Arrivals())))
        self.lag = sum(lags) if lags else None
        known = [since for since in times if since is not None]
        self.lag_since = min(known) if known else None

    @property
    def lag_seconds(self) -> float | None:
        """How long ago the oldest message that is left was first seen; 0 if none is left."""
        if self.lag is None or self.lag_since is None:
            return None if self.lag else self.lag
        return max(0.0, time.time() - self.lag_since)


class QueryMetrics(MetricsSource, StreamingQueryListener):
    """Counts what the streaming queries of a session do, once `spark.streams.addListener` has it.

    * `config` (MetricsConfig): where the metrics are served; `patience` is how many seconds a query may be silent
      before it is unhealthy, so it must be longer than its trigger.
    * `queries` (int): how many queries have metrics of their own, the first ones; the others are counted together, and
      are not part of the health.

    A query is called by its name, else by its id. Spark Connect before Spark 4.0 would send this to its server: it
    raises `SetupError` then.
    """

    def __init__(self, config: MetricsConfig, *, queries: int = 100) -> None:
        super().__init__(config)
        self._most, self._queries = queries, dict[str, _Query]()
        # Of the queries that run, by their runs: the end of one is told without its name.
        self._names: dict[UUID, str] = {}

    def __reduce__(self) -> Any:
        """Refuse to be sent elsewhere."""
        raise SetupError("QueryMetrics counts in this process: over Spark Connect it needs Spark 4.0")

    def onQueryStarted(self, event: QueryStartedEvent) -> None:  # noqa: N802  Spark's name
        """Note that a query runs."""
        with self._lock:
            query = self._find(event.runId, event.name, event.id)
            query.is_running, query.error = True, None

    def onQueryProgress(self, event: QueryProgressEvent) -> None:  # noqa: N802  as above
        """Count what a trigger of a query did."""
        # Over Spark Connect, and by version, its members have other types than in its JSON.
        progress = json.loads(event.progress.json)
        with self._lock:
            self._find(event.progress.runId, event.progress.name, event.progress.id).take(progress)

    def onQueryIdle(self, event: QueryIdleEvent) -> None:  # noqa: N802  as above
        """Note that a query waits for what it may read."""
        with self._lock:
            self._find(event.runId, None, event.id)

    def onQueryTerminated(self, event: QueryTerminatedEvent) -> None:  # noqa: N802  as above
        """Note that a query ended, and the class of its error, whose text may contain values of messages."""
        with self._lock:
            query = self._find(event.runId, None, event.id)
            self._names.pop(event.runId, None)
            query.is_running = False
            if event.exception is not None:
                found = _CLASS.match(event.exception)
                query.error = bounded_name(event.errorClassOnException or (found[1] if found else "unknown"))
                query.failures[_bounded(query.error, query.failures)] += 1

    def _find(self, run: UUID, name: str | None, id: UUID) -> _Query:
        """Return what is known of a query, which was heard of just now."""
        old = self._names.get(run)
        label = old if old is not None and name is None else bounded_name(name or str(id))
        self._names[run] = label = label if label in self._queries or len(self._queries) < self._most else OTHERS
        if old not in (None, label, OTHERS):
            # It was heard of by its id before it was by its name.
            self._queries.pop(str(old), None)
        query = self._queries.setdefault(label, _Query())
        query.sign = time.monotonic()
        return query

    def health(self) -> str | None:
        """Return which queries ended with an error and were not started again, or are silent for too long; else None.

        Those that are counted together are left out: news of one says nothing about the others.
        """
        with self._lock:
            own = {name: one for name, one in self._queries.items() if name != OTHERS}
            failed = [f"{name}: {one.error}" for name, one in own.items() if one.error is not None]
            now = time.monotonic()
            silent = [
                f"{name}: {now - one.sign:.0f} s"
                for name, one in own.items()
                if one.is_running and now - one.sign > self._config.patience
            ]
        said = [
            f"{sentence} {'; '.join(found[:_NAMED])}" + (f" and {len(found) - _NAMED:,} more" if found[_NAMED:] else "")
            for sentence, found in (("queries ended with an error:", failed), ("queries are silent:", silent))
            if found
        ]
        return ", and ".join(said) or None

    @property
    def most(self) -> int:
        """How many values a measurement has at most."""
        return (_KINDS + 1) * (self._most + 1)

    def measure(self) -> list[Measurement]:
        """Return all measurements as they are now."""
        with self._lock:
            return [*self._counters(), *self._gauges()]

    def _counters(self) -> Iterable[Measurement]:
        def counter(name: str, text: str, unit: str, *labels: str, of: Callable[[_Query], Mapping[str, float]]) -> Any:
            values = [
                ((query, kind)[: 1 + len(labels)], value)
                for query, one in self._queries.items()
                for kind, value in of(one).items()
            ]
            return Measurement(name, text, unit, True, ("query", *labels), values)  # noqa: FBT003  a tuple has no keywords

        text = f"Messages by what became of them, as queries observe it by the name {OBSERVATION}."
        yield counter("messages", text, "{message}", "result", of=lambda one: one.messages)
        yield counter("input_rows", "Rows that sources gave.", "{row}", of=lambda one: {"": one.input_rows})
        text = "How long the parts of batches took, in all, by Spark's names of them."
        yield counter("batch_seconds", text, "s", "part", of=_seconds)
        yield counter("batches", "Batches that are done.", "{batch}", of=lambda one: {"": one.batches})
        text = "How often queries ended with an error, by its class."
        yield counter("failures", text, "{failure}", "error", of=lambda one: one.failures)

    def _gauges(self) -> Iterable[Measurement]:
        def gauge(name: str, text: str, unit: str, of: Callable[[_Query], float | None]) -> Any:
            # Of several queries that are counted together, the last one says nothing of the others.
            own = {name: one for name, one in self._queries.items() if name != OTHERS and one.is_running}
            values = [((query,), value) for query, one in own.items() if (value := of(one)) is not None]
            return Measurement(name, text, unit, False, ("query",), values)  # noqa: FBT003  as above

        text = "When the last batch was done."
        yield gauge("last_batch_timestamp_seconds", text, "s", lambda one: one.last)
        text = "How many messages topics had behind the last batch when it began."
        yield gauge("lag_messages", text, "{message}", lambda one: one.lag)
        text = "How long ago the oldest message that is left was first seen."
        yield gauge("lag_seconds", text, "s", lambda one: one.lag_seconds)
        yield gauge("state_rows", "Rows that Spark keeps as state.", "{row}", lambda one: one.state_rows)
        yield gauge("state_bytes", "Memory that Spark keeps state in.", "By", lambda one: one.state_bytes)
        text = "The watermark of event time."
        yield gauge("watermark_timestamp_seconds", text, "s", lambda one: one.watermark)
        running = [((), len(self._names))]
        yield Measurement("running_queries", "Queries that run.", "{query}", False, (), running)  # noqa: FBT003  as above


def _seconds(one: _Query) -> dict[str, float]:
    return {part: milliseconds / 1000 for part, milliseconds in one.milliseconds.items()}


def _bounded(kind: str, known: Mapping[str, Any]) -> str:
    """Return what a kind is counted under, of which there are a few."""
    return kind if kind in known or len(known) < _KINDS else OTHERS


_CHUNK: Final = 1 << 16
# The number of the pipeline's source in a checkpoint.
_SOURCE: Final = "0"
_COMPACT: Final = ".compact"
_HIDDEN: Final = ("_", ".")
_MILLISECOND: Final = 1_000_000


class Reports:
    """Takes the report of each batch in Spark's thread, and passes it on in the thread that calls `tell`.

    `say` is called with each report; `account` notes the lag, which `lag` returns for Spark's progress; `maintain` lets
    tables be maintained.
    """

    def __init__(
        self,
        say: Callable[[BatchReport], None],
        account: AccountFile,
        lag: Callable[[Mapping[str, Any]], Lag | None],
        maintain: Callable[[], None],
    ) -> None:
        self._say, self._account, self._lag, self._maintain = say, account, lag, maintain
        # Whether a report was passed on and tables were not maintained behind it.
        self._is_due = False
        self._arrivals = Arrivals()
        self._queue: deque[BatchReport] = deque()

    def add(self, report: BatchReport) -> None:
        """Take the report of a batch."""
        self._queue.append(report)

    def tell(self, query: StreamingQuery, *, is_over: bool = False) -> None:
        """Pass on the reports of batches that are done; all if the stream is over."""
        if not self._queue:
            return
        try:
            # Spark 3.5 gives values of JSON; in 4.0, offsets are texts in what it gives, but not in its JSON.
            every = [json.loads(one.json) if hasattr(one, "json") else one for one in query.recentProgress]
        except (PySparkException, Py4JError, OSError):
            # A stopped session says nothing more.
            every, is_over = [], True
        # Spark reports triggers without a batch, too, under the number of the next one.
        done = {one["batchId"]: one for one in every if "addBatch" in one["durationMs"]}
        while self._queue:
            report = self._queue[0]
            progress = done.get(report.number)
            if progress is None and not is_over and not any(number > report.number for number in done):
                return
            self._queue.popleft()
            report.lag = None if progress is None else self._lag(progress)
            report.lag_since = None if progress is None else left_since(progress, self._arrivals)
            if report.lag is not None:
                self._account.note_lag(report.number, *report.lag)
            self._say(report)
            self._is_due = True

    def maintain(self) -> None:
        """Let tables be maintained, if a report was passed on since the last time."""
        if self._is_due:
            self._is_due = False
            self._maintain()


def is_idle(query: StreamingQuery) -> bool:
    """Return whether a stream waits for its next batch."""
    try:
        return not query.status["isTriggerActive"]
    except (PySparkException, Py4JError, OSError):
        # A stopped session says nothing more.
        return False


def lag_of(source: Kafka | Files, checkpoint: Path) -> Callable[[Progress], Lag | None]:
    """Return a function that returns the lag behind a batch, if it is known, for Spark's progress with it as JSON."""
    if not isinstance(source, Files):
        return messages_left
    files = FilesLeft(source.path, checkpoint)
    return files.left


def messages_left(progress: Progress) -> Lag | None:
    """Return how many messages the topics had behind those of a batch when it began."""
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


def left_since(progress: Progress, arrivals: Arrivals) -> float | None:
    """Return when a message that is left behind a batch was first seen, in seconds since 1970; None if none is left."""
    at = datetime.fromisoformat(progress["timestamp"]).timestamp()
    for source in progress["sources"]:
        latest, end = _offsets(source["latestOffset"]), _offsets(source["endOffset"])
        if latest and end:
            arrivals.look(latest, at)
            return arrivals.since(end)
    return None


def _offsets(value: Any) -> dict[str, dict[str, int]]:
    """Return offsets by topic and partition; none for another value, as sources of files have it."""
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
        """Return how many files are left behind a batch; None for a path elsewhere, or a log that is not understood."""
        if "://" in self._path or "{" in self._path:
            return None
        try:
            for i, source in enumerate(progress["sources"]):
                if source["endOffset"] is not None:
                    self._take(self._checkpoint / "sources" / str(i), source["endOffset"]["logOffset"])
            there = set(_files(self._path))
        except (OSError, ValueError, KeyError, TypeError):
            return None
        # Files that are gone are of no use.
        self._taken = {path: time for path, time in self._taken.items() if path in there}
        return Lag(len(there - self._taken.keys()), "files")

    def taken(self) -> dict[str, int]:
        """Return the files that Spark has taken, with the times at which they were modified then, in milliseconds.

        Rejects that are read again are not among them: those of a working copy are new each time.
        """
        for folder in (self._checkpoint / "sources").glob(_SOURCE):
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
        # A compacted log has all entries of the logs before it.
        first = max((number for number, path in logs.items() if path.name.endswith(_COMPACT)), default=0)
        for number, path in sorted(logs.items()):
            if number > last and (last >= 0 or number >= first):
                self._taken.update((plain_path(entry["path"]), entry["timestamp"]) for entry in _entries(path, last))
                self._read[folder] = number


def check_unchanged(spark: SparkSession, source: Files, checkpoint: Path) -> None:
    """Raise `FileError` for a file that has changed since Spark has taken it, which Spark will not read again.

    The checkpoint has the files, by whatever links or patterns they were found. A log of another Spark that is not
    understood counts for nothing.
    """
    try:
        taken = FilesLeft(source.path, checkpoint).taken()
        there = _modification_times(spark, source.path, taken)
    except (OSError, ValueError, KeyError, TypeError):
        return
    changed = sorted(path for path, time in taken.items() if there.get(path, time) != time)
    if changed:
        more = f" (and {len(changed) - 1:,} more)" if len(changed) > 1 else ""
        hint = "what was added is not read: put it into a file of its own, and move this one away"
        raise FileError(changed[0], "the file as it was when it was read", f"one that has changed{more}; {hint}")


def _modification_times(spark: SparkSession, path: str, taken: Iterable[str]) -> dict[str, int]:
    """Return the files among those that were taken which are there, with the times at which they were modified."""
    times: dict[str, int] = {}
    is_local = True
    for file in taken:
        if "://" in file:
            is_local = False
            continue
        # A file that is gone by now is left out.
        with suppress(FileNotFoundError, NotADirectoryError):
            times[file] = Path(file).stat().st_mtime_ns // _MILLISECOND
    if not is_local:
        found = spark.read.format("binaryFile").option("recursiveFileLookup", "true").load(path)
        rows = found.selectExpr("path", "unix_millis(modificationTime) AS time").collect()
        times |= {plain_path(row["path"]): row["time"] for row in rows}
    return times


def _entries(path: Path, last: int) -> list[dict[str, Any]]:
    """Return the entries of a log of batches behind one; they are at its end."""
    with path.open("rb") as file:
        length, size = file.seek(0, os.SEEK_END), _CHUNK
        while True:
            file.seek(max(0, length - size))
            # The first line is cut, or has the version.
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


def rejects_by_reason(outcomes: DataFrame) -> list[RejectReason]:
    """Return the rejects of a batch by reason, at most 200 reasons, each with an example; all of the batch is learned.

    The reasons of most rejects come first, and those of equally many in the order of their texts.
    Values of messages are left out of a reason, so that there are few reasons.
    """
    reason = sf.coalesce("reason", sf.lit(""))
    prefix = sf.concat(sf.coalesce("format", sf.lit("message")), sf.lit(": "), sf.coalesce("path", sf.lit("$")))
    prefix = sf.concat(prefix, sf.lit(": "))
    sentence = sf.when(sf.startswith(reason, prefix), sf.substr(reason, sf.length(prefix) + 1)).otherwise(reason)
    found = rejects_of(outcomes).select(
        sf.coalesce("format", sf.lit("")).alias("own"),
        sf.regexp_replace(sf.coalesce("path", sf.lit("")), INDEX, "[*]").alias("at"),
        kind_of(sentence).alias("kind"),
        sf.struct(*PLACE, sf.substring(sentence, 1, LONGEST).alias("said")).alias("one"),
    )
    counted = found.groupBy("own", "at", "kind").agg(sf.count("*").alias("count"), sf.min("one").alias("one"))
    return [
        RejectReason(
            row["own"], row["at"], row["kind"], row["count"], place_of(row["one"].asDict()), row["one"]["said"]
        )
        for row in counted.orderBy(sf.desc("count"), "own", "at", "kind").limit(MOST_REASONS).collect()
    ]


def kind_of(sentence: Column) -> Column:
    """Return a sentence without its values, which stand behind what was expected."""
    at = sf.locate(GOT, sentence)
    got = sf.regexp_replace(sf.substr(sentence, at), SHOWN_VALUE, "…")
    whole = sf.when(at > 0, sf.concat(sf.substr(sentence, sf.lit(1), at - 1), got)).otherwise(sentence)
    return sf.substring(whole, 1, LONGEST)
