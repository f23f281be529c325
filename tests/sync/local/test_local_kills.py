"""Pipelines of the local runner that are killed with kill -9 and started again: nothing is there twice, nothing is missing.

`python tests/support/local_kills.py 200` kills more often, at all points, at random times and at calls of functions.
"""

from __future__ import annotations

from pathlib import Path
from re import fullmatch

import pytest

from cdcavro.cli.group import INTERRUPTED
from cdcavro.lake.evolution import EXCEPTION, LENIENT
from cdcavro.table.tables import REJECT
from support.kafka_server import Broker
from support.local_kills import AVRO, CREATED, DELTA, ICEBERG, LAST, SINKS, LocalTrial

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]
POINTS = {
    DELTA: [CREATED, "during an append", "between deletes and merge", "behind an append's commit", LAST],
    ICEBERG: [CREATED, "during the merge", "between merge and changelog", "before the state", LAST],
    AVRO: ["between state and rejects", "while a file is written", "between two tables", LAST],
}


@pytest.mark.parametrize("sink", SINKS)
def test_what_is_killed_goes_on_as_if_it_had_not_been(tmp_path: Path, sink: str):
    """Current states, changelogs or files, rejects, and the account of all messages."""
    trial = LocalTrial(tmp_path / "killed", sink, str(tmp_path / "wh"), seed=16)
    for point in POINTS[sink]:
        trial.feed(2)
        assert trial.kill(point), point
    assert trial.finish() == []


@pytest.mark.parametrize("sink", SINKS)
def test_an_interrupt_within_a_batch_ends_with_a_sentence_and_the_next_run_goes_on(tmp_path: Path, sink: str):
    """Wherever in it Ctrl-C comes: the sentence says which batch was done, there is no traceback, the exit code is 130."""
    trial = LocalTrial(tmp_path / "interrupted", sink, str(tmp_path / "wh"), seed=16)
    for point in ("behind the plan", "before the state", *POINTS[sink]):
        trial.feed(2)
        done = trial.interrupt(point)
        (said,) = [line for line in done.stderr.splitlines() if line.startswith("interrupted")]
        assert (done.returncode, "Traceback" in done.stderr) == (INTERRUPTED, False), (point, done)
        assert fullmatch(
            r"interrupted: (no batch of this run was done|batch \d+ was the last that was done)\."
            rf" The same command resumes from there, with the state in {trial.folder}/state",
            said,
        ), (point, done)
    assert trial.finish() == []


@pytest.mark.parametrize("merge_every", [1, 2])
def test_rows_that_wait_and_rejects_that_are_read_again_are_written_once(tmp_path: Path, merge_every: int):
    """Killed while rows wait for a table that refuses them, when it takes them, and while rejects are read again."""
    own = {"behavior": EXCEPTION, "on_misfit": REJECT, "merge_every": merge_every}
    trial = LocalTrial(tmp_path / "killed", DELTA, str(tmp_path / "wh"), 16, **own)
    for point in ("behind a claim", "while rows wait"):
        trial.feed(3)
        assert trial.kill(point), point
    trial.behavior = LENIENT
    trial.feed(1)
    assert trial.kill("between a table that was freed and its waiting rows")
    trial.job().run()
    assert trial.replay() > 0
    for point in ("between rejects and tables", LAST):
        trial.feed(2)
        assert trial.kill(point), point
    assert trial.finish() == []


@pytest.mark.jvm
def test_messages_of_kafka_are_written_once(kafka: Broker, tmp_path: Path):
    """A batch has the messages again that it had, though more have come."""
    own = {"servers": kafka.servers, "broker": kafka, "most": 20}
    trial = LocalTrial(tmp_path / "killed_locally", ICEBERG, str(tmp_path / "wh"), 16, **own)
    for point in ("behind the plan", "behind an append's commit", LAST):
        trial.feed(2)
        assert trial.kill(point), point
    assert trial.finish() == []


@pytest.mark.parametrize("sink", SINKS)
def test_a_writer_without_marks_has_rows_twice(tmp_path: Path, sink: str):
    """The control: the same trial sees what an append does that happens again."""
    trial = LocalTrial(tmp_path / "control", sink, str(tmp_path / "wh"), seed=16, is_plain=True)
    trial.feed(2)
    for _ in range(2):
        assert trial.kill(LAST)
    trial.kill("nowhere")
    faults = trial.finish()
    assert faults
    assert all(fault.startswith("change") and fault.endswith(" times instead of 1") for fault in faults)
