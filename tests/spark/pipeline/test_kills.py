"""Pipelines that are killed with kill -9 and started again: nothing is there twice and nothing is missing.

Each kill costs the start of a JVM, so there are eleven here, one of which only sleeps. `python tests/support/sync_kills.py 50`
and `output_kills.py 50` kill more often, at all points and at random times; `sync_kills.py 50 1 files s3` does so with states
in an object store.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import obstore
import pytest
from pyspark.sql import SparkSession

from cdcavro.sync.reading import stored_state
from cdcavro.table.tables import REJECT
from support.kafka_server import Broker, spark_settings
from support.kills import LEASE
from support.object_store import BUCKET, object_store
from support.output_kills import OutputTrial
from support.sync_kills import CREATED, Trial

pytestmark = pytest.mark.timeout(1_200)
LAST = "before the checkpoint's commit"


@pytest.fixture
def trial(spark: SparkSession, tmp_path: Path):
    """Make a pipeline that can be killed."""
    warehouse = spark.conf.get("spark.sql.catalog.ice.warehouse")

    def made(name: str, sink: str, **more: Any) -> Trial:
        return Trial(tmp_path / name, sink, warehouse, seed=16, **more)

    return made


@pytest.fixture
def address(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """That of a state in an object store, which this process and its children find, and hold for a moment."""
    with object_store() as server:
        for name, value in server.environment.items():
            monkeypatch.setenv(name, value)
        monkeypatch.setattr(stored_state, "LEASE", LEASE)
        # What is in a store of this process stays for the next test.
        yield f"s3://{BUCKET}/{tmp_path.name}"


@pytest.mark.parametrize(
    ("sink", "points"), [("delta", [CREATED, LAST]), ("iceberg", ["between MERGE and changelog", LAST])]
)
def test_what_is_killed_goes_on_as_if_it_had_not_been(trial, spark: SparkSession, sink: str, points: list[str]):
    """Current states, changelogs, rejects and the account of all messages."""
    made = trial(f"killed_{sink}", sink)
    for point in points:
        made.feed()
        assert made.kill(point)
    assert made.finish(spark) == []


def everything(address: str) -> tuple[stored_state.Head, set[str]]:
    """Return the head of a state that is free, and the objects that there are."""
    state = stored_state.StoredState(address)
    head = state._find().head
    assert head.holder is None
    return head, {one["path"] for some in obstore.list(state._store) for one in some}


def test_with_its_state_in_a_store_messages_of_kafka_and_rejects_that_are_read_again_are_written_once(
    trial, spark: SparkSession, kafka: Broker, tmp_path: Path, address: str
):
    """Killed before a batch is written, in the middle of a MERGE, and between two tables while rejects are read again."""
    own = {"servers": kafka.servers, "broker": kafka, "kafka": spark_settings(tmp_path / "jars"), "most": 20}
    made = trial("killed_stored", "iceberg", state=address, on_misfit=REJECT, **own)
    for point in ("between rejects and tables", "during MERGE"):
        made.feed(2)
        assert made.kill(point), point
    made.run(made.job(spark))
    assert made.replay() > 0
    made.feed(1)
    assert made.kill("between two tables")
    assert made.finish(spark) == []


def test_runners_take_a_state_in_a_store_over_from_each_other(trial, spark: SparkSession, address: str):
    """From one that was killed behind its writes or while it saved, and from one that sleeps, which saves nothing then.

    It sleeps in the middle of a MERGE for longer than it holds the state, until a run without Spark has written that batch
    and the next ones: whatever it still commits must leave the same rows.
    """
    made = trial("turns", "delta", state=address)
    local = made.without_spark
    made.feed(1)
    assert made.kill("between two tables", local)
    made.feed(1)
    assert made.kill("before the end of a batch is saved")
    made.feed(1)
    assert made.kill("between objects and head", local)
    made.feed(2)
    with made.asleep("during MERGE"):
        made.feed(2)
        assert not made.kill("nowhere", local)
        saved = everything(address)
    assert everything(address) == saved
    assert made.finish(spark) == []


def test_a_plain_append_has_rows_twice(trial, spark: SparkSession):
    """The control: the same trial, killed at one of the same points, sees what an append without idempotence does."""
    made = trial("control", "delta", is_plain=True)
    made.feed()
    assert made.kill(LAST)
    faults = made.finish(spark)
    assert faults
    assert all(fault.startswith("changelog of") and fault.endswith("2 times instead of 1") for fault in faults)


def test_avro_files_have_each_change_once(spark: SparkSession, tmp_path: Path):
    """Killed while the second table of a batch is written: what is there of that batch is replaced."""
    made = OutputTrial(tmp_path / "killed_avro", "avro", str(tmp_path), seed=16)
    made.feed()
    assert made.kill("avro: while a file is written")
    assert made.finish(spark) == []


def test_topics_have_each_change_once_for_a_reader_of_the_headers(spark: SparkSession, kafka: Broker, tmp_path: Path):
    """Killed behind a batch that is written, and so is written again: without the headers, it would be there twice."""
    own = {"servers": kafka.servers, "target": kafka, "kafka": spark_settings(tmp_path / "jars")}
    made = OutputTrial(tmp_path / "killed_topics", "topics", str(tmp_path), 16, **own)
    made.feed()
    assert made.kill("topics: before the checkpoint's commit")
    assert made.finish(spark) == []
    assert made.again > 0
