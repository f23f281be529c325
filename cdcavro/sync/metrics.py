"""Metrics of a pipeline and its health, which are served over HTTP while it runs, or sent by OpenTelemetry.

Metrics count from the start of the process on, as Prometheus expects it; what became of all messages since the first
batch is in the account. Names of tables and reasons of rejects come from messages, so their number and their length are
bounded: others are counted together.
"""

from __future__ import annotations

import threading
import time
from abc import ABC, abstractmethod
from collections import Counter
from contextlib import contextmanager
from http import HTTPStatus
from socket import AF_INET, AF_INET6
from socketserver import ThreadingMixIn
from typing import TYPE_CHECKING, Any, Final, NamedTuple, cast
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer

from msgspec import Struct

from cdcavro.errors import SetupError, number_of, shown
from cdcavro.lake.account import bounded_name

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from cdcavro.sync.batches import BatchReport, Lag
    from cdcavro.sync.status import Status

# What tables, and reasons of rejects, are counted under that have no room of their own.
OTHERS: Final = "(others)"
_REASONS: Final = 100
# How many tables that have stopped an answer names.
_NAMED: Final = 20
_HIGHEST: Final = 65_535
# How long a client may take to say what it wants, in seconds.
_SLOW: Final = 10
_PREFIX: Final = "cdcavro"


# How many operations of rows there can be, which is more than there are.
_OPERATIONS: Final = 10


class MetricsConfig(Struct, forbid_unknown_fields=True):
    """Metrics and health of the pipeline over HTTP, while it runs; metrics also by OpenTelemetry.

    * `listen`: `host:port` where they are served, `/metrics` and `/healthz`; anyone who can reach it sees the names of tables.
    * `opentelemetry`: whether OpenTelemetry sends metrics, and a span for each batch, as configured by `OTEL_*`.
    * `tables`: how many tables have metrics of their own; the others are counted together.
    * `patience`: how many seconds a batch or the maintenance of a table may take, or pass without a look for new
      messages, before the pipeline counts as unhealthy.
    """

    listen: str | None = None
    opentelemetry: bool = False
    tables: int = 1000
    patience: float = 600

    def __post_init__(self) -> None:
        """Raise `ValueError` for an address that is none, for bounds below 1, and if metrics go nowhere."""
        if self.listen is None and not self.opentelemetry:
            raise ValueError("[metrics] needs listen, opentelemetry = true, or both")
        _ = self.address
        if self.tables < 1:
            raise ValueError(f"tables in [metrics] is a number of tables, at least 1, not {self.tables}")
        if not self.patience >= 1:
            raise ValueError(f"patience in [metrics] is a number of seconds, at least 1, not {self.patience:g}")

    @property
    def address(self) -> tuple[str, int] | None:
        """The host and the port; None if nothing is served."""
        if self.listen is None:
            return None
        host, colon, port = self.listen.rpartition(":")
        host = host[1:-1] if host.startswith("[") and host.endswith("]") else host
        is_port = port.isascii() and port.isdecimal() and len(port) <= len(str(_HIGHEST)) and int(port) <= _HIGHEST
        if not (host and colon and is_port) or (":" in host and not self.listen.startswith("[")):
            raise ValueError(f'metrics are served at host:port, such as "127.0.0.1:9400", not {shown(self.listen)}')
        return host, int(port)


class Measurement(NamedTuple):
    """What is measured, by the values of its labels."""

    # Its name, without what stands before and behind it where it is shown.
    name: str
    text: str
    # What a value is a number of, as OpenTelemetry writes it: `s`, or a noun such as `{message}`.
    unit: str
    # Whether it only grows.
    is_counter: bool
    labels: tuple[str, ...]
    values: Sequence[tuple[tuple[str, ...], float]]


class MetricsSource(ABC):
    """What measures something, and is served over HTTP, with its health, or sent by OpenTelemetry."""

    def __init__(self, config: MetricsConfig) -> None:
        self._config, self._lock = config, threading.Lock()
        self._created = time.time()

    @abstractmethod
    def measure(self) -> list[Measurement]:
        """Return all measurements as they are now."""

    @abstractmethod
    def health(self) -> str | None:
        """Return a sentence on why what is measured is not healthy; None if it is."""

    @property
    @abstractmethod
    def most(self) -> int:
        """How many values a measurement has at most."""

    def collect(self) -> Iterable[Any]:
        """Return the metrics as prometheus_client's families; it is its protocol of a collector."""
        from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily  # noqa: PLC0415  only it needs them

        families: list[Any] = []
        for one in self.measure():
            kind: Any = CounterMetricFamily if one.is_counter else GaugeMetricFamily
            created = {"created": self._created} if one.is_counter else {}
            family = kind(f"{_PREFIX}_{one.name}", one.text, labels=one.labels)
            for own, value in one.values:
                family.add_metric(own, value, **created)
            families.append(family)
        return families

    @contextmanager
    def served(self) -> Iterator[str]:
        """Serve metrics and health in a thread, and yield the address of the metrics; port 0 takes a free one.

        Raises `SetupError` if the address is in use, or prometheus_client is not installed.
        """
        try:
            from prometheus_client import CollectorRegistry, make_wsgi_app  # noqa: PLC0415  as above
        except ModuleNotFoundError as error:
            raise SetupError(f"{error.name} is not installed: pip install 'cdcavro[metrics]'") from error
        registry = CollectorRegistry(auto_describe=False)
        registry.register(cast("Any", self))
        if self._config.address is None:
            raise SetupError("metrics are served where listen says, which is not stated")
        host, port = self._config.address
        kind = type("Server", (_Server,), {"address_family": AF_INET6 if ":" in host else AF_INET})
        try:
            server = kind((host, port), _Handler)
        except OSError as error:
            reason = error.strerror or str(error)
            raise SetupError(f"metrics cannot be served at {self._config.listen}: {reason}") from error
        server.set_app(_app(self, make_wsgi_app(registry)))
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            named = f"[{host}]" if ":" in host else host
            yield f"http://{named}:{server.server_port}/metrics"
        finally:
            server.shutdown()
            server.server_close()


class Metrics(MetricsSource):
    """Counts what batches did. A runner's `say`, `begin` and `idle` call `add`, `begin` and `idle`, in any thread."""

    def __init__(self, config: MetricsConfig) -> None:
        from cdcavro.sync.batches import COUNTS  # noqa: PLC0415  a configuration is read without Arrow

        super().__init__(config)
        self._sign = time.monotonic()
        self._last: float | None = None
        self._batches = 0
        self._labels: set[str] = set()
        # From 0 on, or `increase` would not see the first reject.
        self._messages: Counter[str] = Counter(dict.fromkeys(COUNTS[1:], 0))
        self._rows: Counter[tuple[str, str]] = Counter()
        self._rejects: Counter[tuple[str, str]] = Counter()
        self._seconds: dict[str, float] = {}
        self._pending: Counter[str] = Counter()
        self._versions: dict[str, int] = {}
        self._complete: dict[str, float] = {}
        self._late: Counter[str] = Counter()
        self._stopped: list[str] = []
        self._stopped_count = 0
        self._lag: Lag | None = None
        self._lag_since: float | None = None

    def resume(self, status: Status) -> None:
        """Take from the state of a pipeline what lasts beyond a process: waiting rows, versions, stopped tables."""
        with self._lock:
            self._last = status.ended
            self._show_tables(
                {table.name: table.pending for table in status.tables if table.pending},
                {table.name: table.version for table in status.tables if table.version is not None},
                [table.name for table in status.stopped],
            )
            complete = {table.name: table.complete_until for table in status.tables if table.complete_until is not None}
            self._show_complete(complete)

    def begin(self, *_: object) -> None:
        """Note that a batch begins."""
        self._sign = time.monotonic()

    def idle(self) -> None:
        """Note that all that there was is read."""
        self._sign = time.monotonic()

    def add(self, report: BatchReport) -> None:
        """Count a batch that is done."""
        with self._lock:
            self._sign, self._last = time.monotonic(), time.time()
            self._batches += 1
            self._messages.update({name: count for name, count in report.counts.items() if name != "read"})
            for part, seconds in report.seconds.items():
                self._seconds[part] = self._seconds.get(part, 0.0) + seconds
            for name, operations in report.operations.items():
                label = self._label(name)
                self._rows.update({(label, operation): count for operation, count in operations.items()})
            for one in report.rejects:
                self._reject(bounded_name(one.format or "unknown"), bounded_name(one.reason), one.count)
            listed = sum(one.count for one in report.rejects)
            self._reject(OTHERS, OTHERS, report.counts["rejected"] - listed)
            self._show_tables(report.pending, report.versions, list(report.waiting))
            self._show_complete({name: mark / 1e6 for name, mark in report.complete.items()})
            for name, count in report.late.items():
                self._late[self._label(name)] += count
            if report.lag is not None:
                self._lag, self._lag_since = report.lag, report.lag_since

    def _show_tables(self, pending: Mapping[str, int], versions: Mapping[str, int], stopped: list[str]) -> None:
        """Replace what is shown of tables."""
        self._pending.clear()
        for name, count in pending.items():
            self._pending[self._label(name)] += count
        labelled = ((self._label(name), version) for name, version in versions.items())
        self._versions = {label: version for label, version in labelled if label != OTHERS}
        self._stopped, self._stopped_count = stopped[:_NAMED], len(stopped)

    def _show_complete(self, complete: Mapping[str, float]) -> None:
        """Replace up to when tables are complete; of those without a label of their own, it is the earliest time."""
        self._complete.clear()
        for name, until in complete.items():
            label = self._label(name)
            self._complete[label] = min(until, self._complete.get(label, until))

    def _label(self, name: str) -> str:
        """Return what a table is counted under."""
        label = bounded_name(name)
        if label not in self._labels and len(self._labels) < self._config.tables:
            self._labels.add(label)
        return label if label in self._labels else OTHERS

    def _reject(self, format: str, reason: str, count: int) -> None:
        kind = (format, reason)
        if count:
            self._rejects[kind if kind in self._rejects or len(self._rejects) < _REASONS else (OTHERS, OTHERS)] += count

    def health(self) -> str | None:
        """Return why the pipeline is not healthy: tables have stopped, or no batch went on for too long; else None."""
        with self._lock:
            if self._stopped_count:
                names = ", ".join(map(bounded_name, self._stopped))
                more = f" and {self._stopped_count - _NAMED:,} more" if self._stopped_count > _NAMED else ""
                return f"{number_of(self._stopped_count, 'table')} stopped: {names}{more}"
            silent = time.monotonic() - self._sign
            return f"no batch was done for {silent:.0f} s" if silent > self._config.patience else None

    @property
    def most(self) -> int:
        """How many values a measurement has at most."""
        return _OPERATIONS * (self._config.tables + 1) + _REASONS

    def measure(self) -> list[Measurement]:
        """Return all measurements as they are now."""
        with self._lock:
            return [*self._counters(), *self._gauges()]

    def _counters(self) -> Iterator[Measurement]:
        def counter(
            name: str, text: str, unit: str, labels: tuple[str, ...], values: Iterable[tuple[tuple[str, ...], float]]
        ) -> Measurement:
            return Measurement(name, text, unit, True, labels, [*values])  # noqa: FBT003  a tuple has no keywords

        of_messages = [((name.replace(" ", "_"),), count) for name, count in self._messages.items()]
        yield counter("messages", "Messages by what became of them.", "{message}", ("result",), of_messages)
        text = "Rows by table and operation."
        yield counter("rows", text, "{row}", ("table", "operation"), self._rows.items())
        late = [((name,), count) for name, count in self._late.items()]
        text = "Changes of times up to which their table was complete."
        yield counter("late_changes", text, "{change}", ("table",), late)
        text = "Rejected messages by format and reason."
        yield counter("rejects", text, "{message}", ("format", "reason"), self._rejects.items())
        parts = [((part,), seconds) for part, seconds in self._seconds.items()]
        yield counter("batch_seconds", "How long the parts of batches took, in all.", "s", ("part",), parts)
        yield counter("batches", "Batches that are done.", "{batch}", (), [((), self._batches)])

    def _gauges(self) -> Iterator[Measurement]:
        def gauge(name: str, text: str, unit: str, *values: tuple[tuple[str, ...], float | None]) -> Measurement:
            known = [(own, value) for own, value in values if value is not None]
            return Measurement(name, text, unit, False, ("table",) if name in of_tables else (), known)  # noqa: FBT003

        of_tables = ("pending_rows", "table_version", "complete_until_timestamp_seconds")
        complete = [((name,), until) for name, until in self._complete.items()]
        pending = [((name,), count) for name, count in self._pending.items()]
        versions = [((name,), version) for name, version in self._versions.items()]
        since = None if self._lag_since is None else max(0.0, time.time() - self._lag_since)
        is_caught_up = self._lag is not None and self._lag.unit == "messages" and not self._lag.left
        yield gauge("pending_rows", "Pending rows in the state.", "{row}", *pending)
        yield gauge("table_version", "The newest version of a table.", "{version}", *versions)
        text = "Up to when all changes of a table are in, by the clock of its source."
        yield gauge("complete_until_timestamp_seconds", text, "s", *complete)
        yield gauge("stopped_tables", "Tables that refused their rows.", "{table}", ((), self._stopped_count))
        yield gauge("last_batch_timestamp_seconds", "When the last batch was done.", "s", ((), self._last))
        for unit in ("messages", "files"):
            left = self._lag.left if self._lag is not None and self._lag.unit == unit else None
            text = f"How many {unit} were left to read after the last batch."
            yield gauge(f"lag_{unit}", text, f"{{{unit.removesuffix('s')}}}", ((), left))
        seconds = 0.0 if is_caught_up else since
        yield gauge("lag_seconds", "How long ago the oldest message that is left was first seen.", "s", ((), seconds))


def _app(metrics: MetricsSource, of_metrics: Callable[..., Any]) -> Callable[..., Any]:
    """Return what answers: metrics, the health with a sentence, and nothing else."""

    def answer(environ: dict[str, Any], start: Callable[..., Any]) -> Any:
        path = environ["PATH_INFO"]
        if path == "/metrics":
            return of_metrics(environ, start)
        reason = None if path == "/healthz" else "there are /metrics and /healthz"
        status = HTTPStatus.OK if reason is None else HTTPStatus.NOT_FOUND
        if path == "/healthz" and (reason := metrics.health()) is not None:
            status = HTTPStatus.SERVICE_UNAVAILABLE
        start(f"{status.value} {status.phrase}", [("Content-Type", "text/plain; charset=utf-8")])
        return [f"{reason or 'ok'}\n".encode()]

    return answer


class _Server(ThreadingMixIn, WSGIServer):
    """Answers each request in a thread of its own, which keeps no process alive."""

    daemon_threads = True


class _Handler(WSGIRequestHandler):
    """Says nothing on standard error, and waits for no client that says nothing."""

    timeout = _SLOW

    def log_message(self, *_: object) -> None:
        """Log nothing."""
