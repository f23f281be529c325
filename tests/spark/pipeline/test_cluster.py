"""`cdcavro sync` on a standalone cluster of two workers: one of them is killed, and one does not see the state's folder.

Of a state in an object store, only the driver has a working copy.

`python tests/support/sync_cluster.py 10` kills more often, at all points, in both lakes.
"""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from cdcavro.lake.job_state import JobState
from cdcavro.sync.reading import stored_state
from cdcavro.table.tables import REJECT
from support.cluster import Cluster, cluster
from support.kills import LEASE
from support.local_kills import LocalTrial
from support.object_store import BUCKET, object_store
from support.sync_cluster import LANES, run_on, submitted
from support.sync_kills import Trial

pytestmark = pytest.mark.timeout(1_200)


@pytest.fixture(scope="module")
def own(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """A cluster."""
    with cluster(tmp_path_factory.mktemp("cluster")) as made:
        yield made


def test_a_batch_ends_right_though_a_worker_is_killed_in_its_middle(own: Cluster, spark: SparkSession, tmp_path: Path):
    """What it kept of the batch is converted again, and what it kept for a MERGE is made again: every row, once."""
    trial = Trial(tmp_path / "cluster", "delta", spark.conf.get("spark.sql.catalog.ice.warehouse"), seed=16, most=LANES)
    trial.feed(LANES)
    assert run_on(own, trial, 1, "before MERGE")
    assert trial.finish(spark) == []


@pytest.mark.jvm
def test_a_state_that_a_machine_does_not_see_is_refused(own: Cluster, tmp_path: Path):
    """Before anything is read: what that machine wrote there would be lost."""
    skip_without_machines()
    trial = Trial(tmp_path / "blind", "delta", str(tmp_path), seed=1, most=LANES)
    trial.feed()
    own.add_worker(hidden=trial.folder)
    done = submitted(own, trial, {})
    assert done.returncode == 2
    said = (trial.folder / "driver.log").read_text(errors="replace")
    assert "expected a folder that all machines of Spark share, got one that" in said
    assert not list((trial.folder / "state" / "batches").glob("*"))


@pytest.mark.jvm
def test_no_machine_but_the_drivers_sees_a_state_in_an_object_store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Rows that wait, rejects, and those that are read again come there through it; a run without Spark goes on."""
    skip_without_machines()
    monkeypatch.setattr(stored_state, "LEASE", LEASE)
    own = {"on_misfit": REJECT, "merge_every": 2, "state": f"s3://{BUCKET}/cluster"}
    trial = LocalTrial(tmp_path / "stored", "delta", str(tmp_path), 16, **own)
    copies = trial.folder / "copies"
    copies.mkdir()
    with object_store() as server, cluster(tmp_path / "cluster", workers=0) as made:
        for name, value in server.environment.items():
            monkeypatch.setenv(name, value)
        trial.feed(2)
        trial.job().run()
        assert trial.replay()
        for _ in range(2):
            made.add_worker(hidden=copies)
        trial.feed(2 * LANES)
        done = submitted(made, trial, {}, TMPDIR=str(copies))
        assert done.returncode == 0, (trial.folder / "driver.log").read_text(errors="replace")[-6000:]
        assert list(copies.glob("cdcavro-*")) == []
        assert trial.finish() == []
        with trial.state_folder() as state:
            assert JobState(state / "batches").batches()[-1] == 3


def skip_without_machines() -> None:
    """Skip a test where no process can have other files than this one."""
    if subprocess.run(["unshare", "-rm", "true"], capture_output=True, check=False).returncode:
        pytest.skip("no machine can be had here that sees other files")
