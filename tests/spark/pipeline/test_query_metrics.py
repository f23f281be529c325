"""Metrics of streaming queries: what Spark tells of them, as Prometheus reads it, and how queries fail and are bounded."""

from __future__ import annotations

import json
import pickle
import time
import uuid
from collections.abc import Callable
from contextlib import nullcontext, suppress
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import functions as sf
from pyspark.sql.streaming.listener import (
    QueryIdleEvent,
    QueryProgressEvent,
    QueryStartedEvent,
    QueryTerminatedEvent,
    StreamingQueryProgress,
)

from cdcavro import spark as cdc
from cdcavro.errors import SetupError
from cdcavro.spark.pipeline import QueryMetrics
from cdcavro.sync.metrics import OTHERS, MetricsConfig
from support.messages import canal

CONFIG = MetricsConfig("127.0.0.1:0")
Values = dict[tuple[str, ...], float]


def values(metrics: QueryMetrics, *without: str) -> Values:
    """Return what is measured, by name and labels, without some."""
    return {
        (one.name, *labels): value
        for one in metrics.measure()
        if one.name not in without
        for labels, value in one.values
    }


class Events:
    """The events of a query, as Spark's JSON has them."""

    def __init__(self, name: str | None = None) -> None:
        self._own = {"id": str(uuid.uuid4()), "runId": str(uuid.uuid4()), "name": name}
        self.id = self._own["id"]

    def started(self) -> QueryStartedEvent:
        """It starts."""
        return QueryStartedEvent.fromJson({**self._own, "timestamp": "2026-01-01T00:00:00.000Z"})

    def idle(self) -> QueryIdleEvent:
        """It waits."""
        return QueryIdleEvent.fromJson({**self._own, "timestamp": "2026-01-01T00:00:00.000Z"})

    def ended(self, exception: str | None = None, error: str | None = None) -> QueryTerminatedEvent:
        """It ends."""
        return QueryTerminatedEvent.fromJson({**self._own, "exception": exception, "errorClassOnException": error})

    def progress(self, **more: Any) -> QueryProgressEvent:
        """A trigger is over, with a batch unless its parts are said to be others."""
        facts = {
            **self._own,
            "timestamp": "2026-01-01T00:00:00.000Z",
            "batchId": 0,
            "batchDuration": 30,
            "numInputRows": 5,
            "durationMs": {"addBatch": 1500, "walCommit": 250, "triggerExecution": 1800},
            "stateOperators": [],
            "sources": [],
            "sink": {"description": "x", "numOutputRows": -1},
            **more,
        }
        return QueryProgressEvent(StreamingQueryProgress.fromJson(facts))


def topic(end: dict[str, int], latest: dict[str, int]) -> dict[str, Any]:
    """Return how far a source has read a topic."""
    offsets = {"startOffset": None, "endOffset": {"t": end}, "latestOffset": {"t": latest}}
    return {"description": "KafkaV2[Subscribe[t]]", **offsets, **ROWS}


ROWS = {"numInputRows": 5, "inputRowsPerSecond": 1.0, "processedRowsPerSecond": 1.0, "metrics": {}}
FILES = {"description": "f", "startOffset": None, "endOffset": {"logOffset": 0}, "latestOffset": None, **ROWS}
# What Spark says of an operator's state, of which two members count.
ZEROS = (
    *("numRowsUpdated", "numRowsRemoved", "allUpdatesTimeMs", "allRemovalsTimeMs", "commitTimeMs"),
    *("numRowsDroppedByWatermark", "numShufflePartitions", "numStateStoreInstances"),
)
STATE = {"operatorName": "dedupe", "numRowsTotal": 7, "memoryUsedBytes": 1000, **dict.fromkeys(ZEROS, 0)}


def test_progress_is_counted_by_the_names_of_pipelines():
    """Batches and their parts, rows, lag of all topics, results that the query observes, and Spark's state."""
    metrics, one = QueryMetrics(CONFIG), Events("orders")
    metrics.onQueryStarted(one.started())
    began = time.time()
    sources = [FILES, topic({"0": 5, "1": 2}, {"0": 7, "1": 2}), topic({"0": 1}, {"0": 1})]
    observed = {"cdcavro": {"written": 4, "rejected": 1, "secret": 3}, "other": {"written": 100}}
    mark = {"watermark": "1970-01-01T00:01:00.000Z"}
    for _ in range(2):
        metrics.onQueryProgress(
            one.progress(sources=sources, stateOperators=[STATE, STATE], observedMetrics=observed, eventTime=mark)
        )
    # It found nothing.
    metrics.onQueryProgress(one.progress(sources=sources, durationMs={"latestOffset": 3, "triggerExecution": 3}))
    found = values(metrics)
    assert began <= found.pop(("last_batch_timestamp_seconds", "orders")) <= time.time()
    assert found.pop(("lag_seconds", "orders")) > 0
    assert found == {
        ("messages", "orders", "written"): 8,
        ("messages", "orders", "rejected"): 2,
        ("input_rows", "orders"): 10,
        ("batch_seconds", "orders", "addBatch"): 3,
        ("batch_seconds", "orders", "walCommit"): 0.5,
        ("batches", "orders"): 2,
        ("lag_messages", "orders"): 2,
        ("running_queries",): 1,
    }
    metrics.onQueryProgress(one.progress(sources=[topic({"0": 7}, {"0": 7})], stateOperators=[STATE], eventTime=mark))
    found = values(metrics)
    assert [found[name, "orders"] for name in ("lag_messages", "lag_seconds")] == [0, 0]
    assert [found[name, "orders"] for name in ("state_rows", "state_bytes", "watermark_timestamp_seconds")] == [
        7,
        1000,
        60,
    ]
    metrics.onQueryTerminated(one.ended())
    assert values(metrics, "messages", "batch_seconds") == {
        ("input_rows", "orders"): 15,
        ("batches", "orders"): 3,
        ("running_queries",): 0,
    }
    assert metrics.health() is None


def test_a_query_that_fails_is_told_without_what_its_error_says(monkeypatch: pytest.MonkeyPatch):
    """By the class of the error, until it is started again; one that says nothing for too long is told, too."""
    metrics, one, other = QueryMetrics(MetricsConfig("127.0.0.1:0", patience=60)), Events("orders"), Events()
    text = "org.apache.spark.SparkException: the value hunter2 of a row\n\tat org.apache.spark.X"
    for event in (one.ended(text), one.ended(text, "CAST_INVALID_INPUT")):
        metrics.onQueryStarted(one.started())
        assert metrics.health() is None
        metrics.onQueryTerminated(event)
    metrics.onQueryStarted(other.started())
    metrics.onQueryTerminated(other.ended("hunter2"))
    said = metrics.health()
    assert said == f"queries ended with an error: orders: CAST_INVALID_INPUT; {other.id}: unknown"
    assert "hunter2" not in repr(values(metrics))
    found = values(metrics)
    assert [found["failures", "orders", name] for name in ("SparkException", "CAST_INVALID_INPUT")] == [1, 1]
    now = time.monotonic()
    metrics.onQueryStarted(one.started())
    metrics.onQueryStarted(other.started())
    monkeypatch.setattr(time, "monotonic", lambda: now + 100)
    metrics.onQueryIdle(other.idle())
    assert metrics.health() == "queries are silent: orders: 100 s"


def test_no_metric_grows_with_the_number_of_queries():
    """Those that come later are counted together, and show nothing that is of one only; parts and errors are bounded."""
    metrics = QueryMetrics(CONFIG, queries=3)
    for number in range(50):
        one = Events("q" * 10_000 + str(number))
        parts = {f"{number} {i}": 1000 for i in range(100)}
        metrics.onQueryProgress(one.progress(durationMs={"addBatch": 1, **parts}, sources=[topic({"0": 1}, {"0": 2})]))
        metrics.onQueryTerminated(one.ended("x", f"E{number}" + "y" * 10_000))
    found = values(metrics)
    rows = {
        labels: value for (name, *labels), value in found.items() if name == "input_rows" for labels in [(*labels,)]
    }
    assert (len(rows), rows[OTHERS,], sum(rows.values())) == (4, 235, 250)
    assert sum(value for (name, *_), value in found.items() if name == "failures") == 50
    assert sum(value for (name, *_), value in found.items() if name == "batch_seconds") == pytest.approx(5000.05)
    for one in metrics.measure():
        assert len(one.values) <= metrics.most
    assert max(len(part) for name in found for part in name) <= 200
    running = [Events(f"r{number}") for number in range(5)]
    for one in running:
        metrics.onQueryProgress(one.progress(sources=[topic({"0": 1}, {"0": 2})]))
    assert not [name for name in values(metrics) if name[:2] == ("lag_messages", OTHERS)]


def test_health_is_that_of_queries_with_values_of_their_own(monkeypatch: pytest.MonkeyPatch):
    """Of those that are counted together none speaks for another; each that runs is counted."""
    metrics = QueryMetrics(MetricsConfig("127.0.0.1:0", patience=60), queries=1)
    one, *others = (Events(f"q{number}") for number in range(4))
    for each in (one, *others):
        metrics.onQueryStarted(each.started())
    metrics.onQueryTerminated(others[0].ended("x", "E"))
    metrics.onQueryTerminated(others[1].ended())
    found = values(metrics)
    assert (found["running_queries",], found["failures", OTHERS, "E"], metrics.health()) == (2, 1, None)
    now = time.monotonic()
    monkeypatch.setattr(time, "monotonic", lambda: now + 100)
    assert metrics.health() == "queries are silent: q0: 100 s"
    metrics.onQueryTerminated(one.ended("x", "E"))
    assert (values(metrics)["running_queries",], metrics.health()) == (1, "queries ended with an error: q0: E")


def test_a_query_that_ran_before_is_called_by_its_name():
    """Once that is heard."""
    metrics, one = QueryMetrics(CONFIG), Events("orders")
    metrics.onQueryIdle(one.idle())
    metrics.onQueryProgress(one.progress())
    metrics.onQueryTerminated(one.ended())
    assert {labels[0] for (_, *labels) in values(metrics, "running_queries")} == {"orders"}
    assert values(metrics)["running_queries",] == 0


def test_it_is_not_sent_to_a_server():
    """Spark 3.5 would, over Spark Connect, and what it counts would be nowhere."""
    with pytest.raises(SetupError, match=r"over Spark Connect it needs Spark 4\.0"):
        pickle.dumps(QueryMetrics(CONFIG))


def wait_for(is_so: Callable[[], Any]) -> None:
    """Wait until it is so: Spark tells what happens a moment later."""
    deadline = time.monotonic() + 60
    while not is_so():
        assert time.monotonic() < deadline
        time.sleep(0.05)


@pytest.mark.every_spark
@pytest.mark.since("4.0")
def test_a_session_tells_of_its_queries(spark, tmp_path: Path):
    """Over Spark Connect, too: two batches of messages with a reject, and a query that fails at a value."""
    metrics = QueryMetrics(CONFIG)
    (tmp_path / "in").mkdir()
    good = canal("INSERT", [{"id": "1", "a": "hunter2"}], id=1).decode()
    for number in range(2):
        (tmp_path / "in" / f"{number}.txt").write_text(f"{good}\n{{\n")
    frame = spark.readStream.option("maxFilesPerTrigger", "1").text(str(tmp_path / "in"))
    encoded = frame.select(cdc.encode("value", "canal", rejects=True).alias("e"))
    counts = sf.count("e.payload").alias("written"), sf.count("e.error").alias("rejected")
    failing = frame.select(sf.raise_error(sf.col("value")).alias("x"))
    spark.streams.addListener(metrics)
    try:
        for name, of, fails in (("good", encoded.observe("cdcavro", *counts), False), ("bad", failing, True)):
            writer = of.writeStream.queryName(name).option("checkpointLocation", str(tmp_path / name))
            query = writer.format("memory" if not fails else "noop").trigger(availableNow=True).start()
            # The class of its error is another one over Spark Connect.
            with suppress(Exception) if fails else nullcontext():
                query.awaitTermination()
            wait_for(lambda of=name: not metrics._queries.get(of) or not metrics._queries[of].is_running)
        wait_for(metrics.health)
    finally:
        spark.streams.removeListener(metrics)
    found = values(metrics)
    assert [found["messages", "good", name] for name in ("written", "rejected")] == [2, 2]
    assert [found[name, "good"] for name in ("batches", "input_rows")] == [2, 4]
    assert found["batch_seconds", "good", "addBatch"] > 0
    assert (metrics.health() or "").startswith("queries ended with an error: bad: ")
    assert "hunter2" not in json.dumps([metrics.health(), repr(found)])
