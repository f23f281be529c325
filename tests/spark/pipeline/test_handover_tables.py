"""A pipeline that goes from one runner to the other, and back, at any batch: its tables and its state are those of one alone.

With statements that add, rename, widen and drop columns, truncate and drop tables, rows that lack columns, rejects that are
read again, and rows that wait; also if a runner dies within a batch that the other one runs again.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from support.both_runners import BATCHES, DRIVER, LOCAL, SPARK, BothRunners, differences
from support.local_pipelines import DELTA, ICEBERG

pytestmark = [pytest.mark.timeout(1_800), pytest.mark.classic, pytest.mark.since("4.1")]
RUNNERS = {"S": SPARK, "L": LOCAL, "D": DRIVER}
# Who runs each batch, and the batches within which that runner dies.
TURNS = {"LSDLSLDS": {3, 6}, "SLSDLSLL": {1, 4}}
# Spark alone, which takes minutes, is run with CDCAVRO_EVERY_MESSAGE in the environment.
ALONE: dict[str, set[int]] = {
    turn * len(BATCHES): set() for turn in ("LS" if os.environ.get("CDCAVRO_EVERY_MESSAGE") else "L")
}


@pytest.mark.parametrize("kind", [DELTA, ICEBERG])
def test_tables_and_state_are_those_of_one_runner_alone(spark: SparkSession, tmp_path: Path, kind: str):
    """Names, columns, comments, properties, orders, marks, floors and deletes."""
    found = {}
    for i, (turns, deaths) in enumerate({**ALONE, **TURNS}.items()):
        both = BothRunners(spark, tmp_path / "run", kind, tmp_path / f"lake{i}")
        for number, turn in enumerate(turns):
            both.run(RUNNERS[turn], is_killed=number in deaths)
            if number in deaths:
                both.run_again(RUNNERS["S" if turn == "L" else "L"])
        found[turns] = both.everything()
        both.keep(tmp_path / f"run{i}")
    local, *others = found.values()
    apart = [line for one in others for line in differences(local, one)]
    assert not apart, "\n".join(apart)
