"""Telemetry of a pipeline: what receivers of OTLP, over HTTP and over gRPC, decode of its metrics and spans."""

from __future__ import annotations

import gzip
import logging
import socket
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import (
    ExportMetricsServiceRequest,
    ExportMetricsServiceResponse,
)
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from cdcavro.errors import SetupError
from cdcavro.lake.account import RejectReason
from cdcavro.sync.batches import COUNTS, BatchReport
from cdcavro.sync.config import read_config
from cdcavro.sync.metrics import OTHERS, Metrics, MetricsConfig
from cdcavro.sync.outputs import telemetry
from cdcavro.sync.outputs.telemetry import Telemetry
from support.messages import canal
from support.roundtrip import error_of

KINDS = {"/v1/metrics": ExportMetricsServiceRequest, "/v1/traces": ExportTraceServiceRequest}
Points = dict[tuple[str, tuple[tuple[str, Any], ...]], float]


@pytest.fixture(autouse=True)
def variables(monkeypatch: pytest.MonkeyPatch) -> Callable[[str, str], None]:
    """Set a variable; none of the test's own environment counts."""
    for signal in ("METRICS", "TRACES"):
        monkeypatch.delenv(f"OTEL_{signal}_EXPORTER", raising=False)
    for name in ("SERVICE_NAME", "RESOURCE_ATTRIBUTES", "EXPORTER_OTLP_PROTOCOL", "EXPORTER_OTLP_ENDPOINT"):
        monkeypatch.delenv(f"OTEL_{name}", raising=False)
    # Here the machine may be busy, and every receiver that is there is heard to the end.
    monkeypatch.setattr(telemetry, "_PATIENCE", 50.0)
    return monkeypatch.setenv


def attributes(pairs: Any) -> dict[str, Any]:
    """Return attributes as values of Python."""
    return {one.key: getattr(one.value, one.value.WhichOneof("value")) for one in pairs}


@dataclass
class Received:
    """What a receiver was sent, in order."""

    metrics: list[ExportMetricsServiceRequest] = field(default_factory=list)
    spans: list[Any] = field(default_factory=list)

    def take(self, request: Any) -> None:
        """Take what was decoded."""
        if isinstance(request, ExportMetricsServiceRequest):
            self.metrics.append(request)
        else:
            self.spans += [one for of in request.resource_spans for scope in of.scope_spans for one in scope.spans]

    @property
    def last(self) -> list[Any]:
        """The metrics that were sent last."""
        return [one for of in self.metrics[-1].resource_metrics for scope in of.scope_metrics for one in scope.metrics]

    @property
    def points(self) -> Points:
        """The values that were sent last, by the name of the metric and its attributes."""
        return {
            (one.name, tuple(sorted(attributes(point.attributes).items()))): point.as_int or point.as_double
            for one in self.last
            for point in getattr(one, one.WhichOneof("data")).data_points
        }


@contextmanager
def receiver(status: int = 200) -> Iterator[tuple[str, Received]]:
    """Receive OTLP over HTTP at an address, and answer with a status."""
    found = Received()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            if self.headers["Content-Encoding"] == "gzip":
                body = gzip.decompress(body)
            assert self.headers["Content-Type"] == "application/x-protobuf"
            found.take(KINDS[self.path].FromString(body))
            self.send_response(status)
            self.send_header("Content-Type", "application/x-protobuf")
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", found
    finally:
        server.shutdown()
        server.server_close()


def report_of(number: int, **facts: Any) -> BatchReport:
    """Return the report of a batch that began at 1000 and took four seconds."""
    counts = dict.fromkeys(COUNTS, 0) | facts.pop("counts", {})
    return BatchReport(number, counts, began=1000.0, ended=1004.0, **facts)


def values_of(metrics: Metrics) -> Points:
    """Return what metrics are, as a receiver has them."""
    return {
        (f"cdcavro.{one.name}", tuple(sorted(zip(one.labels, own, strict=True)))): value
        for one in metrics.measure()
        for own, value in one.values
    }


def test_a_receiver_has_what_a_pipeline_measures(job, variables):
    """The metrics of all batches when it ends, and a span for each batch with its parts within it."""
    made, metrics, said = job(), Metrics(MetricsConfig(opentelemetry=True)), []
    made.send(canal("INSERT", [{"id": "1", "a": "1"}], id=1), b"no message")
    made.send(canal("INSERT", [{"id": "2", "a": "1"}], id=2))
    with receiver() as (address, found):
        variables("OTEL_EXPORTER_OTLP_ENDPOINT", address)
        variables("OTEL_EXPORTER_OTLP_COMPRESSION", "gzip")
        own = Telemetry(metrics)
        reports: list[BatchReport] = []

        def say(report: BatchReport) -> None:
            metrics.add(report)
            own.add(report)
            reports.append(report)

        with own.sending(said.append):
            made.pipeline().run(once=True, say=say)
    assert said == []
    assert found.points == values_of(metrics)
    assert found.points["cdcavro.rows", (("operation", "c"), ("table", "d.t"))] == 2
    assert found.points["cdcavro.messages", (("result", "rejected"),)] == 1
    kinds = {one.name: (one.WhichOneof("data"), one.unit) for one in found.last}
    assert (kinds["cdcavro.batch_seconds"], kinds["cdcavro.table_version"]) == (("sum", "s"), ("gauge", "{version}"))
    assert all(one.sum.is_monotonic for one in found.last if one.WhichOneof("data") == "sum")
    (resource,) = {one.resource.SerializeToString() for one in found.metrics[-1].resource_metrics}
    assert b"cdcavro" in resource
    batches = [one for one in found.spans if one.name == "batch"]
    assert [attributes(one.attributes)["cdcavro.messages.read"] for one in batches] == [2, 1]
    for batch, report in zip(batches, reports, strict=True):
        parts = [one for one in found.spans if one.parent_span_id == batch.span_id]
        assert [one.name for one in parts] == [*report.seconds]
        assert all(one.trace_id == batch.trace_id for one in parts)
        assert parts[0].start_time_unix_nano == batch.start_time_unix_nano == int(report.began * 1e9)
        assert parts[-1].end_time_unix_nano <= batch.end_time_unix_nano


def test_parts_of_a_batch_follow_each_other(variables):
    """Each as long as it took; a report without times, as of rows that are written at the end, is no span."""
    with receiver() as (address, found):
        variables("OTEL_EXPORTER_OTLP_ENDPOINT", address)
        variables("OTEL_METRICS_EXPORTER", "none")
        own = Telemetry(Metrics(MetricsConfig(opentelemetry=True)))
        with own.sending(pytest.fail):
            own.add(report_of(7, counts={"read": 3, "left out": 3}, seconds={"convert": 1.5, "write": 2.0}))
            own.add(BatchReport(8, dict.fromkeys(COUNTS, 0), seconds={"write": 1.0}))
    times = {one.name: (one.start_time_unix_nano / 1e9, one.end_time_unix_nano / 1e9) for one in found.spans}
    assert times == {"batch": (1000.0, 1004.0), "convert": (1000.0, 1001.5), "write": (1001.5, 1003.5)}
    (batch,) = (one for one in found.spans if one.name == "batch")
    assert attributes(batch.attributes) == {
        "cdcavro.batch": 7,
        "cdcavro.tables": 0,
        **{f"cdcavro.messages.{name.replace(' ', '_')}": 3 * (name in ("read", "left out")) for name in COUNTS},
    }
    assert found.metrics == []


@pytest.mark.slow
def test_attributes_have_the_bounds_of_all_metrics(variables):
    """Tables beyond them are counted together; those within are all sent, more than the SDK takes by itself."""
    metrics = Metrics(MetricsConfig(opentelemetry=True))
    names = [f"d.{i}" + "x" * 10_000 for i in range(1_100)]
    reasons = [RejectReason("canal", "$", f"reason {i}" + "y" * 10_000, 1) for i in range(200)]
    operations = {name: {"c": 1, "u": 1, "d": 1} for name in names}
    metrics.add(report_of(0, counts={"read": 200, "rejected": 200}, operations=operations, rejects=reasons))
    with receiver() as (address, found):
        variables("OTEL_EXPORTER_OTLP_ENDPOINT", address)
        with Telemetry(metrics).sending(pytest.fail):
            pass
    rows = {dict(own).get("table"): value for (name, own), value in found.points.items() if name == "cdcavro.rows"}
    assert (len(rows), rows[OTHERS]) == (1001, 100)
    assert sum(value for (name, _), value in found.points.items() if name == "cdcavro.rows") == 3_300
    rejects = [value for (name, _), value in found.points.items() if name == "cdcavro.rejects"]
    assert (len(rejects), sum(rejects)) == (101, 200)
    assert max(len(text) for _, own in found.points for _, text in own) <= 200


def test_variables_say_what_the_service_is_called(variables):
    """And what else is said of it."""
    variables("OTEL_SERVICE_NAME", "shop-sync")
    variables("OTEL_RESOURCE_ATTRIBUTES", "deployment.environment=test")
    with receiver() as (address, found):
        variables("OTEL_EXPORTER_OTLP_ENDPOINT", address)
        with Telemetry(Metrics(MetricsConfig(opentelemetry=True))).sending(pytest.fail):
            pass
    said = attributes(found.metrics[-1].resource_metrics[0].resource.attributes)
    assert (said["service.name"], said["deployment.environment"]) == ("shop-sync", "test")


def test_a_receiver_speaks_grpc(variables):
    """If a variable says so."""
    grpc = pytest.importorskip("grpc")
    from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2_grpc import (  # noqa: PLC0415  of grpc
        MetricsServiceServicer,
        add_MetricsServiceServicer_to_server,
    )

    found, metrics = Received(), Metrics(MetricsConfig(opentelemetry=True))
    metrics.add(report_of(0, operations={"d.t": {"c": 5}}))

    class Service(MetricsServiceServicer):
        def Export(self, request: Any, _: Any) -> Any:  # noqa: N802  the service's name
            found.take(request)
            return ExportMetricsServiceResponse()

    server = grpc.server(ThreadPoolExecutor(2))
    add_MetricsServiceServicer_to_server(Service(), server)
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    try:
        variables("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc")
        variables("OTEL_EXPORTER_OTLP_ENDPOINT", f"http://127.0.0.1:{port}")
        variables("OTEL_TRACES_EXPORTER", "none")
        with Telemetry(metrics).sending(pytest.fail):
            pass
    finally:
        server.stop(None)
    assert found.points == values_of(metrics)


def test_what_is_refused_is_told_once(variables):
    """However often it is: the pipeline goes on, and later values are sent as before."""
    said: list[str] = []
    with receiver(400) as (address, found):
        variables("OTEL_EXPORTER_OTLP_ENDPOINT", address)
        variables("OTEL_METRIC_EXPORT_INTERVAL", "20")
        with Telemetry(Metrics(MetricsConfig(opentelemetry=True))).sending(said.append):
            deadline = time.monotonic() + 20
            while len(found.metrics) < 3 and time.monotonic() < deadline:
                time.sleep(0.01)
    assert len(found.metrics) >= 3
    (sentence,) = said
    start = "OpenTelemetry cannot send, and the pipeline continues: Failed to export metrics batch code: 400"
    assert sentence.startswith(start)


@pytest.mark.slow
@pytest.mark.parametrize("is_silent", [False, True])
def test_a_receiver_that_is_not_there_holds_nothing_up(job, variables, monkeypatch, capfd, is_silent: bool):
    """Nobody listens there, or who does never answers: it is told once, without a password, and the end waits briefly."""
    monkeypatch.setattr(telemetry, "_PATIENCE", 2.0)
    made, metrics, said = job(), Metrics(MetricsConfig(opentelemetry=True)), []
    made.send(canal("INSERT", [{"id": "1"}], id=1))
    with socket.create_server(("127.0.0.1", 0)) as taken:
        if not is_silent:
            taken.close()
        port = taken.getsockname()[1] if is_silent else 9
        variables("OTEL_EXPORTER_OTLP_ENDPOINT", f"http://user:hunter2@127.0.0.1:{port}")
        own = Telemetry(metrics)
        with own.sending(said.append):
            made.pipeline().run(once=True, say=lambda one: (metrics.add(one), own.add(one)))
            began = time.monotonic()
        assert time.monotonic() - began < 10
    (sentence,) = said
    assert sentence.startswith("OpenTelemetry cannot send, and the pipeline continues: ")
    assert "hunter2" not in sentence
    assert made.rows("d.t", "id") == [(1,)]
    logging.getLogger("opentelemetry.exporter").error("later")
    assert capfd.readouterr().err == ""


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("OTEL_METRICS_EXPORTER", "prometheus", "OTEL_METRICS_EXPORTER is otlp or none, not 'prometheus'"),
        (
            "OTEL_EXPORTER_OTLP_PROTOCOL",
            "http/json",
            "OTEL_EXPORTER_OTLP_PROTOCOL is http/protobuf or grpc, not 'http/json'",
        ),
        ("OTEL_METRIC_EXPORT_INTERVAL", "-1", "a variable OTEL_* is not understood: interval value -1.0 is invalid"),
    ],
)
def test_a_variable_that_is_not_understood_is_told(variables, name: str, value: str, said: str):
    """Before anything starts."""
    variables(name, value)
    with pytest.raises(SetupError) as error:
        Telemetry(Metrics(MetricsConfig(opentelemetry=True)))
    assert str(error.value).startswith(said)


def test_what_the_sdk_says_of_variables_shows_no_value_of_them(variables, capfd, caplog):
    """A header of another form has a login all the same, and an address may ask for a key."""
    variables("OTEL_EXPORTER_OTLP_HEADERS", "Authorization Bearer s3cr3t")
    variables("OTEL_EXPORTER_OTLP_TIMEOUT", "s3cr3t")
    variables("OTEL_METRICS_EXPORTER", "none")
    caplog.handler.setLevel(logging.CRITICAL)
    said: list[str] = []
    with receiver(400) as (address, _):
        variables("OTEL_EXPORTER_OTLP_ENDPOINT", address)
        with Telemetry(Metrics(MetricsConfig(opentelemetry=True))).sending(said.append):
            pass
    assert any("Header format invalid" in one for one in said)
    assert "OpenTelemetry doubts a variable OTEL_*: Invalid timeout value" in said
    assert "s3cr3t" not in "".join([*said, *capfd.readouterr()])
    assert "s3cr3t" not in telemetry._bounded("no answer of https://c/v1/traces?api_key=s3cr3t (refused)")


def test_what_is_said_of_a_failure_ends_behind_a_word():
    """It is bounded; a word that is long by itself is cut."""
    said = telemetry._bounded("Transient error of a collector " * 20)
    assert said.endswith(" of a ...")
    assert len(said) <= 304
    assert telemetry._bounded("x" * 1_000) == "x" * 300 + " ..."
    assert telemetry._bounded("no answer") == "no answer"


def test_an_error_of_an_exporters_own_is_told(variables):
    """It is no `ValueError`."""
    variables("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc")
    variables("OTEL_EXPORTER_OTLP_COMPRESSION", "zst")
    said = error_of(lambda: Telemetry(Metrics(MetricsConfig(opentelemetry=True))))
    assert said.startswith('a variable OTEL_* is not understood: Invalid value "zst"')


def test_metrics_that_go_nowhere_are_a_mistake(tmp_path):
    """Either they are served, or sent."""
    path = tmp_path / "sync.toml"
    path.write_text('state = "s"\n[source]\nfiles = "in"\n[lake]\ndelta = "lake"\n[metrics]\ntables = 5\n')
    assert "[metrics] needs listen, opentelemetry = true, or both" in error_of(read_config, path)
