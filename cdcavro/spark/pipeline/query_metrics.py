"""Metrics of Spark's streaming queries, by the names that those of a pipeline have, from what Spark tells a listener."""

from __future__ import annotations

import json
import re
import time
from collections import Counter
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final

from pyspark.sql.streaming.listener import StreamingQueryListener

from cdcavro.errors import SetupError
from cdcavro.lake.account import bounded_name
from cdcavro.spark.pipeline.batch_progress import left_since, messages_left
from cdcavro.sync.batches import COUNTS, Arrivals
from cdcavro.sync.metrics import OTHERS, Measurement, MetricsSource

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from uuid import UUID

    from pyspark.sql.streaming.listener import (
        QueryIdleEvent,
        QueryProgressEvent,
        QueryStartedEvent,
        QueryTerminatedEvent,
    )

    from cdcavro.sync.metrics import MetricsConfig

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
