"""Metrics of a pipeline, read over HTTP while it runs by Prometheus's own parser; its health, and how both are bounded."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families as families_of_openmetrics
from prometheus_client.parser import text_string_to_metric_families as families_of_text

from cdcavro.errors import SetupError
from cdcavro.lake.account import RejectReason, bounded_name
from cdcavro.lake.evolution import EXCEPTION
from cdcavro.sync.batches import COUNTS, Arrivals, BatchReport, Lag
from cdcavro.sync.config import read_config
from cdcavro.sync.metrics import OTHERS, Metrics, MetricsConfig
from cdcavro.sync.status import read_status
from support.messages import canal
from support.roundtrip import error_of

OPENMETRICS = "application/openmetrics-text; version=1.0.0"
Samples = dict[tuple[str, ...], float]


def ask(address: str, path: str, **headers: str) -> tuple[int, str, str]:
    """Return what the server says: status, type and text."""
    host = address.removeprefix("http://").partition("/")[0]
    connection = HTTPConnection(host, timeout=10)
    connection.request("GET", path, headers=headers)
    answer = connection.getresponse()
    return answer.status, answer.getheader("Content-Type") or "", answer.read().decode()


def samples(address: str) -> Samples:
    """Return the metrics, by name and values of labels in the order of their names, as OpenMetrics."""
    status, kind, text = ask(address, "/metrics", Accept=OPENMETRICS)
    assert (status, kind.partition(";")[0]) == (200, "application/openmetrics-text")
    assert text.endswith("# EOF\n")
    found = {
        (sample.name, *sample.labels.values()): sample.value
        for family in families_of_openmetrics(text)
        for sample in family.samples
        if not sample.name.endswith("_created")
    }
    return {name: value for name, value in found.items() if name[0] != "cdcavro_batch_seconds_total"}


def report_of(number: int, **facts: Any) -> BatchReport:
    """Return the report of a batch that read as many messages as it says."""
    counts = dict.fromkeys(COUNTS, 0) | facts.pop("counts", {})
    return BatchReport(number, counts, **facts)


def test_metrics_are_read_while_a_pipeline_runs(job):
    """They are those of its batches: a row, no message, a new column that the lake table refuses."""
    made, stop, found = job(behavior=EXCEPTION), threading.Event(), []
    made.send(canal("INSERT", [{"id": "1", "a": "1"}], id=1), b"no message")
    metrics = Metrics(MetricsConfig("127.0.0.1:0"))
    began = time.time()

    def idle() -> None:
        metrics.idle()
        found.append((samples(address), ask(address, "/healthz")))
        if len(found) == 1:
            made.send(canal("INSERT", [{"id": "2", "a": "1", "b": "1"}], id=2))
        else:
            stop.set()

    with metrics.served() as address:
        made.start(made.pipeline(), every="1 millisecond", say=metrics.add, begin=metrics.begin, idle=idle, stop=stop)
    (first, healthy), (second, stopped) = found
    assert healthy == (200, "text/plain; charset=utf-8", "ok\n")
    assert stopped[::2] == (503, "1 table stopped: d.t\n")
    last = first.pop(("cdcavro_last_batch_timestamp_seconds",))
    assert began <= last <= second.pop(("cdcavro_last_batch_timestamp_seconds",)) <= time.time()
    assert first == {
        ("cdcavro_messages_total", "written"): 1,
        ("cdcavro_messages_total", "rejected"): 1,
        ("cdcavro_messages_total", "statements"): 0,
        ("cdcavro_messages_total", "left_out"): 0,
        ("cdcavro_messages_total", "tombstones"): 0,
        ("cdcavro_rows_total", "c", "d.t"): 1,
        ("cdcavro_rejects_total", "unknown", "expected JSON, got … at character …"): 1,
        ("cdcavro_batches_total",): 1,
        ("cdcavro_table_version", "d.t"): 1,
        ("cdcavro_stopped_tables",): 0,
        ("cdcavro_lag_files",): 0,
    }
    changed = {name: value for name, value in second.items() if first.get(name) != value}
    assert changed == {
        ("cdcavro_messages_total", "written"): 2,
        ("cdcavro_rows_total", "c", "d.t"): 2,
        ("cdcavro_batches_total",): 2,
        ("cdcavro_pending_rows", "d.t"): 1,
        ("cdcavro_table_version", "d.t"): 2,
        ("cdcavro_stopped_tables",): 1,
    }
    with pytest.raises(OSError, match="refused"):
        ask(address, "/healthz")


def test_a_process_that_begins_again_serves_what_the_state_says(job):
    """Before its first batch: a table that has stopped, its rows that wait, versions, the last batch; and counts of 0."""
    made = job(behavior=EXCEPTION)
    for columns in ({"a": "1"}, {"a": "1", "b": "1"}):
        made.send(canal("INSERT", [{"id": "1", **columns}], id=len(columns)))
        made.run()
    status, metrics = read_status(made.folder / "state"), Metrics(MetricsConfig("127.0.0.1:0"))
    metrics.resume(status)
    with metrics.served() as address:
        assert samples(address) == {
            **{("cdcavro_messages_total", name.replace(" ", "_")): 0 for name in COUNTS[1:]},
            ("cdcavro_batches_total",): 0,
            ("cdcavro_pending_rows", "d.t"): 1,
            ("cdcavro_table_version", "d.t"): 2,
            ("cdcavro_stopped_tables",): 1,
            ("cdcavro_last_batch_timestamp_seconds",): status.ended,
        }
        assert ask(address, "/healthz")[::2] == (503, "1 table stopped: d.t\n")


def test_the_text_is_that_of_prometheus_for_whoever_does_not_ask_for_openmetrics():
    """Parts of batches have their seconds, and other paths have nothing."""
    metrics = Metrics(MetricsConfig("127.0.0.1:0"))
    for number in range(2):
        metrics.add(report_of(number, seconds={"convert": 1.5, "write": 0.25}))
    with metrics.served() as address:
        status, kind, text = ask(address, "/metrics")
        assert ask(address, "/")[0] == ask(address, "/metrics/secret")[0] == 404
    assert (status, kind.partition(";")[0]) == (200, "text/plain")
    found = {family.name: family for family in families_of_text(text)}
    seconds = {one.labels["part"]: one.value for one in found["cdcavro_batch_seconds"].samples if "part" in one.labels}
    assert seconds == {"convert": 3.0, "write": 0.5}
    assert {family.type for name, family in found.items() if name.endswith("_created")} <= {"gauge"}
    assert (found["cdcavro_batch_seconds"].type, found["cdcavro_stopped_tables"].type) == ("counter", "gauge")


def test_no_metric_grows_without_a_bound():
    """Tables beyond the bound are counted under one label, also those that come again, and so are reasons; none is lost."""
    metrics = Metrics(MetricsConfig("127.0.0.1:0", tables=3))
    for number in range(2):
        names = [f"d.{i}" + "x" * 10_000 for i in range(50)]
        metrics.add(
            report_of(
                number,
                counts={"read": 3000, "rejected": 3000},
                operations={name: {"c": 1} for name in names},
                pending=dict.fromkeys(names, 2),
                versions=dict.fromkeys(names, 1),
                waiting=dict.fromkeys(names, "why"),
                rejects=[RejectReason("canal", "$", f"reason {number} {i}" + "y" * 10_000, 10) for i in range(200)],
            )
        )
    with metrics.served() as address:
        found = samples(address)
        health = ask(address, "/healthz")[2]
    rows = {name: value for name, value in found.items() if name[0] == "cdcavro_rows_total"}
    assert (len(rows), rows["cdcavro_rows_total", "c", OTHERS], sum(rows.values())) == (4, 94, 100)
    pending = {name: value for name, value in found.items() if name[0] == "cdcavro_pending_rows"}
    assert (len(pending), sum(pending.values())) == (4, 100)
    assert len([name for name in found if name[0] == "cdcavro_table_version"]) == 3
    rejects = {name: value for name, value in found.items() if name[0] == "cdcavro_rejects_total"}
    assert (len(rejects), sum(rejects.values())) == (101, 6000)
    assert max(len(part) for name in found for part in name) <= 200
    assert health.startswith("50 tables stopped: ")
    assert len(health) < 10_000
    assert health.endswith(" and 30 more\n")


def test_labels_hold_whatever_a_message_calls_a_table():
    """Quotes, line breaks and backslashes are escaped, so that no name looks like another metric."""
    name = 'd."} 1\nfake_total 7\n\\'
    metrics = Metrics(MetricsConfig("127.0.0.1:0"))
    metrics.add(report_of(0, operations={name: {"c": 1}}))
    with metrics.served() as address:
        found = samples(address)
    assert [key[0] for key in found if key[0].startswith("fake")] == []
    assert [key[1:] for key in found if key[0] == "cdcavro_rows_total"] == [("c", bounded_name(name))]


def test_a_pipeline_of_which_nothing_is_heard_is_not_healthy(monkeypatch: pytest.MonkeyPatch):
    """A batch that takes too long, or no look for the next one; with either, it is healthy again."""
    now = [1000.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    metrics = Metrics(MetricsConfig("127.0.0.1:0", patience=60))
    signs: list[Callable[[], None]] = [metrics.begin, metrics.idle, lambda: metrics.add(report_of(0))]
    for sign in signs:
        now[0] += 60
        assert metrics.health() is None
        now[0] += 1
        assert metrics.health() == "no batch was done for 61 s"
        sign()
        assert metrics.health() is None


def test_lag_in_seconds_grows_until_what_was_seen_is_read(monkeypatch: pytest.MonkeyPatch):
    """It counts from when the oldest message that is left was first seen, and is 0 when none is left."""
    arrivals, metrics = Arrivals(), Metrics(MetricsConfig("127.0.0.1:0"))
    with metrics.served() as address:
        assert ("cdcavro_lag_seconds",) not in samples(address)
        for at, latest, end, seconds in [
            (100.0, {"t": {"0": 5, "1": 5}}, {"t": {"0": 5, "1": 5}}, 0),
            (110.0, {"t": {"0": 6, "1": 5}}, {"t": {"0": 5, "1": 5}}, 10),
            (115.0, {"t": {"0": 9, "1": 9}}, {"t": {"0": 5, "1": 9}}, 10),
            (118.0, {"t": {"0": 9, "1": 9}, "u": {"0": 1}}, {"t": {"0": 8, "1": 9}}, 5),
            (119.0, {"t": {"0": 9, "1": 9}, "u": {"0": 1}}, {"t": {"0": 9, "1": 9}}, 2),
            (119.0, {"t": {"0": 9, "1": 9}, "u": {"0": 1}}, {"t": {"0": 9, "1": 9}, "u": {"0": 1}}, 0),
        ]:
            arrivals.look(latest, at)
            since = arrivals.since(end)
            left = sum(n - end.get(topic, {}).get(p, 0) for topic, own in latest.items() for p, n in own.items())
            metrics.add(report_of(0, lag=Lag(left, "messages"), lag_since=since))
            with monkeypatch.context() as patched:
                patched.setattr(time, "time", lambda: 120.0)
                found = samples(address)
            assert (found["cdcavro_lag_messages",], found["cdcavro_lag_seconds",]) == (left, seconds)


def test_looks_at_topics_that_nobody_reads_are_bounded():
    """The first one stays, by which the lag is told."""
    arrivals = Arrivals()
    for i in range(10_000):
        arrivals.look({"t": {"0": i + 1}}, float(i))
    assert len(arrivals._looks) <= 101
    assert arrivals.since({"t": {"0": 0}}) == 0.0
    assert 9_000 < (arrivals.since({"t": {"0": 9_999}}) or 0.0) <= 9_999


def test_an_address_in_use_is_told(tmp_path: Path):
    """As what it is, and a client that says nothing keeps no other one waiting."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        listen = f"127.0.0.1:{taken.getsockname()[1]}"
        with pytest.raises(SetupError) as error, Metrics(MetricsConfig(listen)).served():
            pass
    assert str(error.value) == f"metrics cannot be served at {listen}: Address already in use"
    with Metrics(MetricsConfig("127.0.0.1:0")).served() as address:
        host, port = address.removeprefix("http://").removesuffix("/metrics").split(":")
        with socket.create_connection((host, int(port))):
            assert ask(address, "/healthz")[0] == 200


@pytest.mark.parametrize(
    ("section", "said"),
    [
        ('listen = "9400"', "host:port, such as \"127.0.0.1:9400\", not '9400'"),
        ('listen = "::1:9400"', "host:port"),
        ('listen = "a:70000"', "host:port"),
        ('listen = "a:1"\ntables = 0', "at least 1, not 0"),
        ('listen = "a:1"\npatience = nan', "at least 1, not nan"),
        ('listen = "a:1"\npatiense = 1', "patiense"),
    ],
)
def test_a_mistake_in_the_section_is_told(tmp_path: Path, section: str, said: str):
    """With its place in the file."""
    path = tmp_path / "sync.toml"
    path.write_text(f'state = "s"\n[source]\nfiles = "in"\n[lake]\ndelta = "lake"\n[metrics]\n{section}\n')
    assert said in error_of(read_config, path)
