"""Telemetry and lineage of a pipeline: what it tells OpenTelemetry and OpenLineage while it runs.

Telemetry is its metrics and a span for each batch, which OpenTelemetry's SDK sends in threads of its own. Where they go,
and how often, the variables `OTEL_*` of the environment say.

Lineage is events on its run, on what its batches read, and on the tables that they wrote. Where they go, the variables
`OPENLINEAGE_*` or a file `openlineage.yml` say, as OpenLineage's client reads them. They are sent in a thread of their own.

A receiver that does not answer neither stops nor slows a pipeline, and is told once.
"""

from __future__ import annotations

import inspect
import logging
import math
import os
import re
import threading
import time
from collections import Counter
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import partial
from importlib import import_module, metadata
from pathlib import Path
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from cdcavro.errors import SchemaError, SetupError, hide_credentials, shorten, shown, visible
from cdcavro.lake.escaped_names import folder_names, topic_name
from cdcavro.lake.lakes import FORMS, DeltaLake
from cdcavro.lake.sql_statements import CHANGELOG, SHARD, change_types
from cdcavro.sync.outputs.sink_settings import AvroFiles, KafkaTopics, LakeSettings
from cdcavro.sync.sources import Files

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from cdcavro.lake.lakes import IcebergLake
    from cdcavro.sync.batches import BatchReport, WrittenTable
    from cdcavro.sync.metrics import MetricsSource
    from cdcavro.sync.pipeline import Pipeline
    from cdcavro.sync.status import Status

_NAME: Final = "cdcavro"
# What the SDK and its exporters log below.
_LOGGER: Final = logging.getLogger("opentelemetry")
# What the service is called if nothing says it.
_UNKNOWN: Final = "unknown_service"
# The packages of exporters by protocol, below that of all exporters.
_PROTOCOLS: Final = {"http/protobuf": "http", "grpc": "grpc"}
_EXPORTERS: Final = ("otlp", "none")
# How long the end of a pipeline waits for what is still to be sent, in seconds.
# Of events on batches half of that, so that the run is over for receivers of lineage, too.
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


_PRODUCER: Final = f"urn:{_NAME}:{metadata.version(_NAME)}"
_CHANGES: Final = "changes"
_BATCH: Final = "RUNNING"
# Where OpenLineage's client logs what it does with events that have no place to go to, and what it says.
_LOGGERS: Final = ("openlineage.client.client", "openlineage.client.transport.factory")
_FALLBACK: Final = "print events to console"
# How many events on batches wait to be sent, and how many tables an event has.
_WAITING: Final = 1_000
_TABLES: Final = 100
# How OpenLineage calls stores that have several names, and which have names without a slash before them.
_SCHEMES: Final = {"s3a": "s3", "s3n": "s3", "abfs": "abfss", "wasb": "wasbs"}
_STORES: Final = frozenset({"s3", "gs", "abfss", "wasbs"})
_SCHEME: Final = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://([^/?#]*)([^?#]*)")
# A password may have a slash; what looks like a port is one.
_PASSWORD: Final = re.compile(r"[^/@]*://[^/@]*:(?![0-9]{1,5}/)[^@]*@")
_PLACE_QUERY: Final = re.compile(r"[?#].*", re.DOTALL)
_FILE: Final = re.compile("file:(?://)?(?=/)")


class DatasetName(NamedTuple):
    """What OpenLineage calls a topic, a folder or a table."""

    namespace: str
    name: str


class Lineage:
    """Sends the events of a run; `add` is told the reports of batches.

    * `job` (str): the name of the job; its namespace is that of `OPENLINEAGE_NAMESPACE`, else `default`.
    * `pipeline` (Pipeline): what is run; `is_once` (bool): whether the run ends by itself.

    Raises `SetupError` without the client, and unless its configuration says where events go.
    """

    def __init__(self, job: str, pipeline: Pipeline, *, is_once: bool = False) -> None:
        try:
            from openlineage.client import OpenLineageClient, event_v2, facet_v2, uuid  # noqa: PLC0415  an extra
        except ModuleNotFoundError as error:
            raise SetupError(f"{error.name} is not installed: pip install 'cdcavro[openlineage]'") from error
        try:
            with _no_fallback():
                self._client: Any = OpenLineageClient()
        except Exception as error:  # it raises what its transports raise
            raise SetupError(
                f"what OPENLINEAGE_* or openlineage.yml say is not understood: {_first_line(error)}"
            ) from error
        if self._client.transport.kind == "console" and not (self._client.config.transport or {}).get("type"):
            raise SetupError("OpenLineage's events go nowhere: set OPENLINEAGE_URL, or say it in openlineage.yml")
        self._events: Any = event_v2
        self._facets: Any = facet_v2
        self._pipeline, self._of = pipeline, pipeline.redaction.of
        self._run = str(uuid.generate_new_uuid())
        self._job, self._kind = str(job), "BATCH" if is_once else "STREAMING"
        self._queue: SimpleQueue[tuple[str, Any] | None] = SimpleQueue()
        self._deadline = math.inf
        self._say: Callable[[str], None] = lambda _: None
        self._is_told = False
        self._came: Counter[str] = Counter()
        self._waited: set[str] = set()

    def resume(self, status: Status) -> None:
        """Take from the state which tables have rows that wait: how many changes these are is not known."""
        self._waited = {table.name for table in status.tables if table.pending}

    def add(self, report: BatchReport) -> None:
        """Take the report of a batch."""
        self._put(_BATCH, report)

    @contextmanager
    def sending(self, say: Callable[[str], None]) -> Iterator[None]:
        """Send that the run starts, what its batches do, and how the block ends; it waits five seconds at most for that.

        `say` is called with a sentence, once, if something cannot be sent; in a thread of its own.
        """
        self._say = say
        thread = threading.Thread(target=self._send_all, daemon=True)
        thread.start()
        self._queue.put(("START", None))
        try:
            yield
        except KeyboardInterrupt:
            self._end("ABORT", None)
            raise
        except Exception as error:
            self._end("FAIL", str(error))
            raise
        else:
            self._end("COMPLETE", None)
        finally:
            self._queue.put(None)
            thread.join(_PATIENCE)
            if thread.is_alive():
                self._tell("no answer")

    def _put(self, kind: str, fact: Any) -> None:
        if self._queue.qsize() < _WAITING:
            self._queue.put((kind, fact))
        else:
            self._tell(f"{_WAITING:,} events wait, and others are left out")

    def _end(self, kind: str, fact: Any) -> None:
        """Put the event that the run is over, whatever waits before it."""
        self._deadline = time.monotonic() + _PATIENCE / 2
        self._queue.put((kind, fact))

    def _send_all(self) -> None:
        while (item := self._queue.get()) is not None:
            try:
                self._send(*item)
            except Exception as error:  # noqa: BLE001  whatever a transport raises, the pipeline goes on
                self._tell(_first_line(error))
        try:
            self._client.close(_PATIENCE)
        except Exception as error:  # noqa: BLE001  as above
            self._tell(_first_line(error))

    def _send(self, kind: str, fact: Any) -> None:
        for event in self._events_of(kind, fact):
            if kind == _BATCH and time.monotonic() > self._deadline:
                self._tell("the run is over, and events on batches that still wait are left out")
                return
            self._client.emit(event)

    def _tell(self, text: str) -> None:
        if not self._is_told:
            self._is_told = True
            self._say(self._of(f"OpenLineage events are not sent, and the pipeline continues: {text}"))

    def _events_of(self, kind: str, fact: Any) -> Iterator[Any]:
        """Yield the events on a batch, the start or the end of the run; of many tables, each event has some."""
        at, facets = datetime.now(UTC), self._facets
        engine = facets.processing_engine_run.ProcessingEngineRunFacet
        run = {"processing_engine": engine(metadata.version(_NAME), _NAME, producer=_PRODUCER)}
        if kind == "FAIL":
            failure = facets.error_message_run.ErrorMessageRunFacet
            run["errorMessage"] = failure(_first_line(self._of(fact)), "Python", producer=_PRODUCER)
        inputs, outputs = [], []
        if kind == _BATCH:
            at = datetime.fromtimestamp(fact.ended, UTC) if fact.ended is not None else at
            inputs, outputs = self._inputs(fact), self._outputs(fact)
        of_job = facets.job_type_job.JobTypeJobFacet(self._kind, _NAME.upper(), "PIPELINE", producer=_PRODUCER)
        namespace = os.environ.get("OPENLINEAGE_NAMESPACE") or "default"
        for begin in range(0, max(1, len(outputs)), _TABLES):
            yield self._events.RunEvent(
                eventTime=at.isoformat(timespec="milliseconds"),
                producer=_PRODUCER,
                eventType=self._events.RunState[kind],
                run=self._events.Run(self._run, run),
                job=self._events.Job(namespace, self._job, {"jobType": of_job}),
                inputs=inputs,
                outputs=outputs[begin : begin + _TABLES],
            )

    def _inputs(self, report: BatchReport) -> list[Any]:
        names = self._of(input_names(self._pipeline, report.topics)) if report.counts["read"] else []
        return [self._events.InputDataset(*name) for name in names]

    def _outputs(self, report: BatchReport) -> list[Any]:
        """Return the tables that a batch wrote, with their columns and how many changes they got."""
        facets, found = self._facets, []
        for label, operations in report.operations.items():
            self._came[label] += sum(operations.values())
        for table in report.written:
            label = table.label
            count = None if label in self._waited else self._came.pop(label, 0)
            for name, columns in output_names(self._pipeline, table):
                field = facets.schema_dataset.SchemaDatasetFacetFields
                fields = [field(column, type) for column, type in columns.items()]
                of_schema = {"schema": facets.schema_dataset.SchemaDatasetFacet(fields, producer=_PRODUCER)}
                statistics = facets.output_statistics_output_dataset.OutputStatisticsOutputDatasetFacet
                known = {} if count is None else {"outputStatistics": statistics(count, producer=_PRODUCER)}
                own = self._of(name)
                found.append(self._events.OutputDataset(*own, facets=of_schema, outputFacets=known))
            self._waited.discard(label)
            self._came.pop(label, None)
        return found


@contextmanager
def _no_fallback() -> Iterator[None]:
    """Let the client not log that it prints events: those without a place to go to are an error here."""

    def is_told(record: logging.LogRecord) -> bool:
        return _FALLBACK not in record.getMessage()

    for name in _LOGGERS:
        logging.getLogger(name).addFilter(is_told)
    try:
        yield
    finally:
        for name in _LOGGERS:
            logging.getLogger(name).removeFilter(is_told)


def input_names(pipeline: Pipeline, topics: list[str]) -> list[DatasetName]:
    """Return the datasets that a batch read: its topics, or the folder, file or pattern of the source."""
    source = pipeline.source
    if isinstance(source, Files):
        return [dataset_name(source.path)]
    return [DatasetName(_cluster(source.servers), topic) for topic in topics]


def output_names(pipeline: Pipeline, table: WrittenTable) -> Iterator[tuple[DatasetName, Mapping[str, str]]]:
    """Yield the datasets that rows of a table went to, each with its columns and their types, as Spark spells them."""
    from cdcavro.lake.lake_columns import wanted_columns  # noqa: PLC0415  a configuration is read without Arrow

    sink = pipeline.sink
    try:
        is_plain = isinstance(sink, LakeSettings) and sink.lake.is_rewritten({})
        wanted = wanted_columns(table.schema, is_plain=is_plain)
        columns = {one.name: one.type for one in wanted if one.until is None}
        if isinstance(sink, KafkaTopics):
            yield DatasetName(_cluster(sink.servers), topic_name(sink.topic, table.name)), columns
        elif isinstance(sink, AvroFiles):
            yield dataset_name("/".join([str(sink.folder), *folder_names(table.name)])), columns
        else:
            others = change_types(sink.change_columns) | ({} if table.shard is None else {SHARD: "string"})
            if sink.is_current and table.has_key:
                yield lake_name(sink, table, ""), {**columns, **FORMS[sink.form], **others}
            if sink.is_changelog or not table.has_key:
                yield lake_name(sink, table, _CHANGES), {**columns, **CHANGELOG, **others}
    except SchemaError:
        # What has no name there was not written.
        return


def lake_name(sink: LakeSettings, table: WrittenTable, suffix: str) -> DatasetName:
    """Return what a lake table is called: by its folder, or by its catalog if that is a server or a database."""
    lake: DeltaLake | IcebergLake = sink.lake
    if isinstance(lake, DeltaLake):
        return dataset_name(lake.path(table.name, suffix))
    parts = lake.parts(table.name, suffix)
    if sink.warehouse is not None:
        return dataset_name("/".join([sink.warehouse.rstrip("/"), *parts]))
    scheme, is_address, place = sink.catalog.get("uri", "").partition("://")
    if not is_address:
        return DatasetName(f"iceberg://{lake.catalog}", ".".join(parts))
    # A password may have a slash, and stands before the last `@`.
    place = _PLACE_QUERY.sub("", place).rpartition("@")[2]
    return DatasetName(f"{scheme}://{place.rstrip('/')}", ".".join(parts))


def dataset_name(address: str) -> DatasetName:
    """Return what a folder or a file is called, without user and password.

    >>> dataset_name("s3a://bucket/lake/shop"), dataset_name("hdfs://me:secret@name:8020/lake")
    (DatasetName(namespace='s3://bucket', name='lake/shop'), DatasetName(namespace='hdfs://name:8020', name='/lake'))
    """
    address = _FILE.sub("", address)
    if _PASSWORD.match(address):
        scheme, _, place = address.partition("://")
        address = f"{scheme}://{_PLACE_QUERY.sub('', place).rpartition('@')[2]}"
    match = _SCHEME.match(address)
    if match is None:
        return DatasetName("file", str(Path(address).absolute()))
    scheme, path = _SCHEMES.get(match[1].lower(), match[1].lower()), match[3].rstrip("/")
    return DatasetName(f"{scheme}://{_host(match[2])}", (path.lstrip("/") if scheme in _STORES else path) or "/")


def _host(authority: str) -> str:
    """Return an authority without user and password; a container stands there, too, without one."""
    user, at, host = authority.rpartition("@")
    return authority if at and user and ":" not in user and host.endswith(".windows.net") else host


def _cluster(servers: str) -> str:
    first = servers.partition(",")[0].strip()
    return f"kafka://{_host(first.rpartition('://')[2])}"


def _first_line(said: object) -> str:
    """Return the first line of what is said, of a bounded length and without credentials."""
    return shorten(visible(hide_credentials(str(said).strip().partition("\n")[0])), _MOST)
