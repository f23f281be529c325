"""`cdcavro sync` with spark-submit on a standalone cluster, of which a worker is killed in the middle of a batch.

Run by hand: nice python tests/support/sync_cluster.py KILLS [SEED]

The program that is submitted is this module, too: it runs the command, and at a chosen point of a batch it kills a worker
with its executor, as if the machine were gone, and with it what it kept of the batch. The batch has to end all the same,
with the rows that there must be. Each task notes that it converts its part, so that it is seen that some did it again.
"""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[1]))

import pyarrow as pa
from pyspark import TaskContext

from cdcavro.cli import main
from cdcavro.lake.job_state import JobState
from cdcavro.spark.lake import current_state, lake_settings, spark_tables
from cdcavro.spark.pipeline import outcome_frames as outcomes
from cdcavro.sync.conversion.knowledge import Knowledge
from support.cluster import Cluster, cluster, environment, kill_group
from support.local_kills import LocalTrial
from support.places import TESTS
from support.sync_kills import Trial, session_for

LANES = 4
_SHUFFLE = {"spark.sql.shuffle.partitions": "2", "spark.databricks.delta.snapshotPartitions": "1"}
# Functions that a batch calls; the worker dies before the call, the batch being kept in the memory of both.
POINTS: dict[str, tuple[Any, str]] = {
    "before the state": (JobState, "write"),
    "before the rejects": (outcomes.FrameStore, "write_rejects"),
    "before deletes": (current_state, "deletes_of"),
    "before MERGE": (current_state.CurrentState, "_put"),
    "before the changelog's append": (spark_tables.Changelog, "append"),
}


def run_on(own: Cluster, trial: Trial, worker: int, point: str | None = None, call: int = 1) -> list[str]:
    """Run a pipeline to the end of what there is, a worker being killed at a point; return what it did again.

    That are the conversions which were begun more than once, as the number of the conversion and of its part.
    """
    notes = trial.folder / f"notes-{uuid4().hex}"
    notes.mkdir()
    said = {"notes": str(notes), "point": point, "call": call, "group": own.workers[worker].pid}
    done = submitted(own, trial, said)
    assert done.returncode == 0, (trial.folder / "driver.log").read_text(errors="replace")[-6000:]
    begun = Counter(note.name.rpartition("-")[0] for note in notes.iterdir())
    if point is not None:
        assert (notes / "killed").exists(), f"nothing came to {point}"
        own.workers.pop(worker).wait()
    return sorted(part for part, count in begun.items() if count > 1)


def submitted(
    own: Cluster, trial: Trial | LocalTrial, said: dict[str, Any], **more: str
) -> subprocess.CompletedProcess[bytes]:
    """Run the command on a cluster; `said` is what this program is told beside the configuration.

    `more` are variables of the driver's environment.
    """
    config = trial.folder / "sync.toml"
    config.write_text(_config(trial), encoding="utf-8")
    lake = lake_settings(catalog="ice", warehouse=trial.warehouse)
    packages = lake.pop("spark.jars.packages")
    told = json.dumps({**said, "config": str(config)})
    command = own.submit(Path(__file__), told, packages=packages, config={**lake, **_SHUFFLE})
    path = os.pathsep.join(filter(None, [str(TESTS), os.environ.get("PYTHONPATH")]))
    with (trial.folder / "driver.log").open("ab") as log:
        return subprocess.run(command, stdout=log, stderr=log, env=environment(PYTHONPATH=path, **more), check=False)


def _config(trial: Trial | LocalTrial) -> str:
    lake = {"delta": str(trial.folder / "lake")} if trial.sink == "delta" else {"iceberg": "ice"}
    told = {"format": "canal", "state": trial.state or str(trial.folder / "state")}
    told |= {"merge_every": trial.merge_every} if isinstance(trial, LocalTrial) else {}
    parts = {"source": {"files": str(trial.folder / "in"), "most": LANES}}
    parts["tables"] = {"zone": "UTC", "on_misfit": trial.on_misfit}
    parts["lake"] = {**lake, "changelog": True, "parallel": 2, "native": False}
    return "\n".join(
        [
            *[f"{name} = {json.dumps(value)}" for name, value in told.items()],
            *[
                f"[{name}]\n" + "\n".join(f"{key} = {json.dumps(value)}" for key, value in part.items())
                for name, part in parts.items()
            ],
        ]
    )


def _noting(make: Callable[..., Any], notes: str) -> Callable[..., Any]:
    """Return a maker of converters of which each notes when it begins."""
    made = [0]

    def noting(knowledge: Knowledge, *others: Any, **own: Any) -> Any:
        made[0] += 1
        convert, number = make(knowledge, *others, **own), made[0]

        def converted(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            context = TaskContext.get()
            part = 0 if context is None else context.partitionId()
            Path(notes, f"{number}/{part}".replace("/", ".") + f"-{uuid4().hex}").touch()
            yield from convert(batches)

        return converted

    return noting


def _killing(owner: Any, name: str, group: int, calls: int, notes: Path) -> None:
    own, left = getattr(owner, name), [calls]

    def wrapped(*args: Any, **named: Any) -> Any:
        left[0] -= 1
        if left[0] == 0:
            kill_group(group)
            (notes / "killed").touch()
        return own(*args, **named)

    setattr(owner, name, wrapped)


def _program(said: dict[str, Any]) -> None:
    if "notes" in said:
        notes = Path(said["notes"])
        outcomes.converter = _noting(outcomes.converter, str(notes))
        if said["point"] is not None:
            _killing(*POINTS[said["point"]], said["group"], said["call"], notes)
    main(["sync", "--config", said["config"], "--once"], prog_name="cdcavro")


def _by_hand(kills: int, seed: int) -> int:
    """Kill workers so often, and print what differs in the end; return 1 if anything does."""
    draw, is_bad = random.Random(seed), False
    with tempfile.TemporaryDirectory() as folder, cluster(Path(folder, "cluster")) as own:
        warehouse = str(Path(folder, "warehouse"))
        points: list[str] = []
        for sink in ("delta", "iceberg"):
            trial = Trial(Path(folder, f"cluster_{sink}"), sink, warehouse, draw.random(), most=LANES)
            for _ in range(kills // 2):
                points = points or draw.sample(sorted(POINTS), len(POINTS))
                trial.feed(LANES)
                point, since = points.pop(), time.monotonic()
                again = run_on(own, trial, draw.randrange(2), point)
                own.add_worker()
                seconds = time.monotonic() - since
                print(
                    f"{sink}: a worker killed {point}, {len(again)} parts converted again, {seconds:.0f} s", flush=True
                )
            with session_for(warehouse) as spark:
                faults = trial.finish(spark)
            print(f"{sink}: {dict(trial.work.counts)}: {faults or 'all as it must be'}", flush=True)
            is_bad |= bool(faults)
    return is_bad


if __name__ == "__main__":
    if sys.argv[1].startswith("{"):
        _program(json.loads(sys.argv[1]))
    else:
        sys.exit(_by_hand(int(sys.argv[1]), int((sys.argv[2:] or [1])[0])))
