"""Status of a pipeline: what its state says, without a batch, also while a pipeline has the state."""

from __future__ import annotations

import json
import shutil
import time
from pathlib import Path
from typing import Any

import pytest

from cdcavro.errors import FileError, JobError
from cdcavro.files.rejects import MaxRejects
from cdcavro.lake.evolution import EXCEPTION
from cdcavro.sync.batches import Batches
from cdcavro.sync.pipeline import lock_state
from cdcavro.sync.sources import Kafka
from cdcavro.sync.status import LaneStatus, Status, read_status
from support.kafka_server import Broker, Record
from support.messages import canal
from support.processes import free_ports
from support.roundtrip import error_of


def status_of(made: Any) -> Status:
    """Return the status of a pipeline of the tests'."""
    return read_status(made.folder / "state", made.source)


def files_in(folder: Path) -> dict[str, bytes]:
    """Return what is in a folder."""
    return {str(path): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_a_folder_that_is_no_state_is_told(tmp_path: Path):
    """And nothing is made in it."""
    assert error_of(read_status, tmp_path) == f"{tmp_path}: expected the state of a pipeline, got none"
    assert list(tmp_path.iterdir()) == []


def test_the_status_is_what_became_of_all_messages(job):
    """Counts, rows by operation, versions and positions; asking for it changes no file."""
    made = job()
    made.send(canal("INSERT", [{"id": "1", "a": "1"}], id=1), b"no message")
    made.send(canal("INSERT", [{"id": "2", "a": "1", "b": "2"}], id=2), canal("INSERT", [{"id": "1"}], id=3, table="u"))
    made.run()
    before = files_in(made.folder)
    status = status_of(made)
    assert files_in(made.folder) == before
    assert (status.batch, status.begun, status.is_running, status.lag, status.unit) == (1, None, False, 0, "files")
    assert (status.counts["read"], status.counts["written"], status.counts["rejected"], status.rows) == (4, 3, 1, 3)
    found = [(one.name, one.version, one.rows, one.pending, one.stopped) for one in status.tables]
    assert found == [("d.t", 2, {"c": 2}, 0, None), ("d.u", 1, {"c": 1}, 0, None)]
    assert status.lanes == [LaneStatus(None, None, f"{made.folder}/in/0001.jsonl", 2)]
    assert status.ended is not None
    assert status.began is not None
    assert status.ended >= status.began


@pytest.mark.slow
def test_a_table_that_stopped_is_told_with_the_reason_and_its_rows(job):
    """Also behind a batch whose rows wait for a later one, with which no table was written."""
    made = job(behavior=EXCEPTION)
    made.send(canal("INSERT", [{"id": "1", "a": "1"}], id=1))
    made.run()
    made.send(canal("INSERT", [{"id": "2", "a": "1", "b": "2"}], id=2), canal("INSERT", [{"id": "1"}], id=3, table="u"))
    made.run()
    made.send(canal("INSERT", [{"id": "3", "a": "1", "b": "2"}], id=4))
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(Batches, "finish", lambda *_: None)
        (report,) = made.run(merge_every=2)
    assert (list(report.waiting), report.pending, report.versions) == (["d.t"], {"d.t": 2}, {"d.t": 2, "d.u": 1})
    (stopped,) = status_of(made).stopped
    assert (stopped.name, stopped.version, stopped.pending) == ("d.t", 2, 2)
    assert "column 'b' is added" in (stopped.stopped or "")
    made.lake = {}
    made.send(canal("INSERT", [{"id": "4", "a": "1", "b": "2"}], id=5))
    made.run()
    status = status_of(made)
    assert (status.stopped, [one.pending for one in status.tables]) == ([], [0, 0])


def test_the_error_that_ended_the_last_run_is_told_until_a_batch_is_done(job):
    """On one line, and without what came from a variable."""
    made = job()
    made.send(canal("INSERT", [{"id": "1", "a": "1"}], id=1), b"no message")
    with pytest.raises(JobError):
        made.run(max_rejects=MaxRejects.of("0"))
    status = status_of(made)
    assert (status.failure or "").startswith("batch 0 brings the rejects to 1 of 2 messages")
    assert "\n" not in (status.failure or "")
    assert (status.begun, status.batch) == (0, None)
    assert 0 <= time.time() - (status.failed or 0) < 600
    made.run()
    assert (status_of(made).failure, status_of(made).failed) == (None, None)
    path = made.folder / "state" / "failure.json"
    assert not path.exists()
    # A run that is killed behind its batch leaves the file.
    path.write_text(json.dumps({"reason": "x", "time": (status.failed or 0)}))
    assert status_of(made).failure is None
    path.write_text(json.dumps({"reason": "x", "time": time.time() + 9}))
    assert status_of(made).failure == "x"
    with lock_state(made.folder / "state"):
        assert status_of(made).failure is None
    path.write_text("{}")
    assert error_of(read_status, made.folder / "state") == f"{path}: expected why the last run ended, got KeyError"


def test_the_status_says_what_has_the_state_and_which_batch_is_begun(job):
    """A batch that was cut off is run again with the next start."""
    made = job()
    made.send(canal("INSERT", [{"id": "1", "a": "1"}], id=1))
    made.run()
    shutil.rmtree(made.folder / "state" / "checkpoint" / "commits")
    with lock_state(made.folder / "state"):
        status = status_of(made)
        assert (status.is_running, status.begun) == (True, 0)
        with pytest.raises(FileError, match="one that is in use"), lock_state(made.folder / "state"):
            pass
    assert not status_of(made).is_running


def test_the_first_batch_is_told_before_it_is_done(job):
    """It may take hours: nothing is read so far, and a folder that has a pipeline is no other folder."""
    made, found = job(), []
    made.send(canal("INSERT", [{"id": "1", "a": "1"}], id=1))
    made.start(made.pipeline(), once=True, begin=lambda *_: found.append(status_of(made)))
    (status,) = found
    assert (status.is_running, status.batch, status.begun, status.ended) == (True, None, 0, None)
    assert (status.counts, status.rows, status.lag, status.tables, status.lanes) == ({}, 0, None, [], [])


@pytest.mark.jvm
def test_kafka_is_asked_for_what_is_left(job, kafka: Broker):
    """By partition; a broker that does not answer is told, and what was left behind the last batch is known."""
    topic = "status"
    kafka.create(topic, 2)
    rows = [canal("INSERT", [{"id": str(i), "a": "1"}], id=i) for i in range(5)]
    kafka.send([Record(topic, i % 2, None, row) for i, row in enumerate(rows)])
    made = job(source=Kafka(kafka.servers, (topic,)))
    made.run()
    kafka.send([Record(topic, 1, None, row) for row in rows])
    pipeline = made.pipeline()
    status = read_status(pipeline.state, pipeline.source, pipeline.places)
    assert (status.lag, status.unit, status.unanswered) == (5, "messages", None)
    assert [(one.partition, one.position, one.lag) for one in status.lanes] == [(0, 3, 0), (1, 2, 5)]
    gone = Kafka(f"127.0.0.1:{free_ports(1)[0]}", (topic,))
    status = read_status(pipeline.state, gone, pipeline.places)
    assert (status.lag, [one.lag for one in status.lanes]) == (0, [None, None])
    assert "does not answer" in (status.unanswered or "")
