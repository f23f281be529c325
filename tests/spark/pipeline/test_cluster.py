"""`cdcavro sync` on a standalone cluster of two workers: one of them is killed, and one does not see the state's folder.

`python tests/support/sync_cluster.py 10` kills more often, at all points, in both lakes.
"""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from support.cluster import Cluster, cluster
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
    if subprocess.run(["unshare", "-rm", "true"], capture_output=True, check=False).returncode:
        pytest.skip("no machine can be had here that sees other files")
    trial = Trial(tmp_path / "blind", "delta", str(tmp_path), seed=1, most=LANES)
    trial.feed()
    own.add_worker(hidden=trial.folder)
    done = submitted(own, trial, {})
    assert done.returncode == 2
    said = (trial.folder / "driver.log").read_text(errors="replace")
    assert "expected a folder that all machines of Spark share, got one that" in said
    assert not list((trial.folder / "state" / "batches").glob("*"))
