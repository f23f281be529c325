"""Telemetry of a pipeline: its metrics, and a span for each batch, which OpenTelemetry's SDK sends while it runs.

Where they go, and how often, the variables `OTEL_*` of the environment say. They are sent in threads of the SDK's own:
a receiver that does not answer neither stops nor slows a pipeline, and is told once.
"""

from __future__ import annotations

import inspect
import logging
import os
import re
import threading
import time
from contextlib import contextmanager
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

from cdcavro.errors import SetupError, hide_credentials, shorten, shown, visible

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from cdcavro.sync.batches import BatchReport
    from cdcavro.sync.metrics import MetricsSource

_NAME: Final = "cdcavro"
# What the SDK and its exporters log below.
_LOGGER: Final = logging.getLogger("opentelemetry")
# What the service is called if nothing says it.
_UNKNOWN: Final = "unknown_service"
# The packages of exporters by protocol, below that of all exporters.
_PROTOCOLS: Final = {"http/protobuf": "http", "grpc": "grpc"}
_EXPORTERS: Final = ("otlp", "none")
# How long the end of a pipeline waits for what is still to be sent, in seconds.
_PATIENCE: Final = 5.0
# How much is said of a failure, in characters.
_MOST: Final = 300
_SECOND: Final = 1_000_000_000
# What an address asks for, which may be a key.
_QUERY: Final = re.compile(r"(/[^\s?#]*)\?\S+")
# It lets Python print nothing of what is logged once a pipeline has ended.
_SILENT: Final = logging.NullHandler()


class Telemetry:
    """Sends metrics, and spans of the batches whose reports `add` is told.

    Raises `SetupError` without the SDK or an exporter, and for values of variables that are not understood.
    """

    def __init__(self, metrics: MetricsSource) -> None:
        try:
            with _doubts() as self._doubts:
                from opentelemetry.sdk.resources import Resource  # noqa: PLC0415  only who asks for it needs it

                resource: Any = Resource.create()
                if str(resource.attributes["service.name"]).startswith(_UNKNOWN):
                    resource = resource.merge(Resource({"service.name": _NAME}))
                self._meters = _meter_provider(metrics, resource)
                self._tracers = _tracer_provider(resource)
        except ModuleNotFoundError as error:
            raise SetupError(f"{error.name} is not installed: pip install 'cdcavro[opentelemetry]'") from error
        except SetupError:
            raise
        except Exception as error:  # exporters have errors of their own
            raise SetupError(f"a variable OTEL_* is not understood: {_bounded(str(error))}") from error
        self._tracer = None if self._tracers is None else self._tracers.get_tracer(_NAME)

    def add(self, report: BatchReport) -> None:
        """Take the report of a batch: it becomes a span, with one for each of its parts within it."""
        if self._tracer is None or report.began is None or report.ended is None:
            return
        from opentelemetry.trace import set_span_in_context  # noqa: PLC0415  as above

        counts = {f"{_NAME}.messages.{name.replace(' ', '_')}": count for name, count in report.counts.items()}
        facts = {f"{_NAME}.batch": report.number, f"{_NAME}.tables": len(report.operations), **counts}
        batch = self._tracer.start_span("batch", start_time=int(report.began * _SECOND), attributes=facts)
        within, begin = set_span_in_context(batch), report.began
        for part, seconds in report.seconds.items():
            # Parts follow each other without a pause that counts.
            span = self._tracer.start_span(part, within, start_time=int(begin * _SECOND))
            begin += seconds
            span.end(int(begin * _SECOND))
        batch.end(int(max(report.ended, begin) * _SECOND))

    @contextmanager
    def sending(self, say: Callable[[str], None]) -> Iterator[None]:
        """Send while the block runs, and what is left at its end, for which it waits five seconds at most.

        `say` is called with a sentence for each variable that the SDK does not take as it is, and with one, once, if
        something cannot be sent; that in a thread of the SDK's.
        """
        for doubt in self._doubts:
            say(f"OpenTelemetry doubts a variable OTEL_*: {doubt}")
        log = _FirstFailure(say)
        _LOGGER.addHandler(_SILENT)
        _LOGGER.addHandler(log)
        try:
            yield
        finally:
            providers = [one for one in (self._meters, self._tracers) if one is not None]
            threads = [threading.Thread(target=one.shutdown, daemon=True) for one in providers]
            deadline = time.monotonic() + _PATIENCE
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join(max(0.0, deadline - time.monotonic()))
            _LOGGER.removeHandler(log)
            if any(thread.is_alive() for thread in threads):
                log.tell("no answer")


class _Doubts(logging.Handler):
    """Keeps what the SDK logs of variables, without their values: one has the logins of receivers."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.found: dict[str, None] = {}

    def emit(self, record: logging.LogRecord) -> None:
        """Take what is logged, up to where a value begins."""
        text = str(record.msg)
        self.found[_bounded(text.partition("%")[0].rstrip(" :'\"") if record.args else text)] = None


@contextmanager
def _doubts() -> Iterator[dict[str, None]]:
    """Keep what the SDK logs in the block, which is printed nowhere else unless somebody else listens."""
    log = _Doubts()
    _LOGGER.addHandler(log)
    try:
        yield log.found
    finally:
        _LOGGER.removeHandler(log)


class _FirstFailure(logging.Handler):
    """Tells the first failure that the SDK logs, with the reason that it logged before."""

    def __init__(self, say: Callable[[str], None]) -> None:
        super().__init__(logging.WARNING)
        self._say, self._reason, self._is_told = say, "", False

    def emit(self, record: logging.LogRecord) -> None:
        """Take what is logged: warnings are of what is tried again."""
        if record.levelno < logging.ERROR:
            self._reason = self._reason or record.getMessage()
        else:
            self.tell(record.getMessage())

    def tell(self, text: str) -> None:
        """Tell a failure, unless one was told."""
        if not self._is_told:
            self._is_told = True
            reason = f" ({_bounded(self._reason)})" if self._reason else ""
            self._say(f"OpenTelemetry cannot send, and the pipeline continues: {_bounded(text)}{reason}")


def _bounded(text: str) -> str:
    """Return what a library says, in one line of a bounded length without credentials."""
    return shorten(visible(_QUERY.sub(r"\1", hide_credentials(" ".join(text.split())))), _MOST)


def _meter_provider(metrics: MetricsSource, resource: Any) -> Any:
    """Return what sends metrics, None if they are not to be sent. Raises `ModuleNotFoundError` and `SetupError`."""
    exporter = _exporter_of("metrics")
    if exporter is None:
        return None
    from opentelemetry.metrics import Observation  # noqa: PLC0415  as above
    from opentelemetry.sdk.metrics import MeterProvider, ObservableCounter, ObservableGauge  # noqa: PLC0415
    from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader  # noqa: PLC0415

    # Metrics have a bound of their own. SDKs before 1.45.1 have none, later ones one that is lower by default.
    limits: dict[str, Any] = {"cardinality_limits": dict.fromkeys((ObservableCounter, ObservableGauge), metrics.most)}
    has_limits = "cardinality_limits" in inspect.signature(PeriodicExportingMetricReader).parameters
    reader = PeriodicExportingMetricReader(exporter, **(limits if has_limits else {}))
    provider = MeterProvider([reader], resource, shutdown_on_exit=False)
    meter = provider.get_meter(_NAME)

    def observe(name: str, _: object) -> list[Any]:
        (one,) = (one for one in metrics.measure() if one.name == name)
        return [Observation(value, dict(zip(one.labels, own, strict=True))) for own, value in one.values]

    for one in metrics.measure():
        create: Any = meter.create_observable_counter if one.is_counter else meter.create_observable_gauge
        create(f"{_NAME}.{one.name}", [partial(observe, one.name)], one.unit, one.text)
    return provider


def _tracer_provider(resource: Any) -> Any:
    """Return what sends spans, None if they are not to be sent. Raises `ModuleNotFoundError` and `SetupError`."""
    exporter = _exporter_of("traces")
    if exporter is None:
        return None
    from opentelemetry.sdk.trace import TracerProvider  # noqa: PLC0415  as above
    from opentelemetry.sdk.trace.export import BatchSpanProcessor  # noqa: PLC0415

    provider = TracerProvider(resource=resource, shutdown_on_exit=False)
    provider.add_span_processor(BatchSpanProcessor(exporter))
    return provider


def _exporter_of(signal: str) -> Any:
    """Return the exporter of `metrics` or `traces`, as variables choose it; None if they choose none."""
    chosen = os.environ.get(f"OTEL_{signal.upper()}_EXPORTER", "").strip() or _EXPORTERS[0]
    if chosen not in _EXPORTERS:
        raise SetupError(f"OTEL_{signal.upper()}_EXPORTER is {' or '.join(_EXPORTERS)}, not {shown(chosen)}")
    if chosen != _EXPORTERS[0]:
        return None
    name = "OTEL_EXPORTER_OTLP_PROTOCOL"
    own = f"OTEL_EXPORTER_OTLP_{signal.upper()}_PROTOCOL"
    protocol = os.environ.get(own, "").strip() or os.environ.get(name, "").strip() or next(iter(_PROTOCOLS))
    if protocol not in _PROTOCOLS:
        raise SetupError(f"{name} is {' or '.join(_PROTOCOLS)}, not {shown(protocol)}")
    package = f"opentelemetry.exporter.otlp.proto.{_PROTOCOLS[protocol]}"
    if signal == "metrics":
        return import_module(f"{package}.metric_exporter").OTLPMetricExporter()
    return import_module(f"{package}.trace_exporter").OTLPSpanExporter()
