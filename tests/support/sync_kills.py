"""Pipelines that are killed with kill -9, at random times and at chosen points, and what is in their lakes in the end.

Run by hand: python tests/support/sync_kills.py KILLS [SEED [files|kafka [s3]]]; with s3 their states are on a server of S3.

A child process, whose JVM dies with it, runs a pipeline over files, or over a topic of a broker that it starts, into Delta
Lake or Iceberg, current states and changelogs. It dies; another one goes on and dies elsewhere; at last one runs to the
end. By hand, tables refuse a column at first, so that rows wait, which are freed later, and rejects are read again while
the pipeline lies dead. If its state is in an object store, a child falls asleep, too, and wakes up when another process has
gone on without Spark. The points are wrapped around functions in the child. What there must be in the end is counted along
while the messages are made. Its control is a pipeline with a plain append, which has rows twice.
"""

from __future__ import annotations

import json
import os
import random
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[1]))

from pyspark.sql import SparkSession

from cdcavro import spark as cdc
from cdcavro.lake.evolution import EXCEPTION, LENIENT
from cdcavro.lake.job_state import JobState
from cdcavro.spark.lake import Delta, Iceberg, current_state, lake_settings, sinks, spark_tables
from cdcavro.spark.pipeline import BatchReport, Files, Formats, Kafka
from cdcavro.spark.pipeline.lake_tables import LakeTables
from cdcavro.spark.pipeline.outcome_frames import FrameStore
from cdcavro.sync.batches import Batches
from cdcavro.sync.outputs import table_rows as waiting
from cdcavro.sync.outputs.table_rows import WaitingRows
from cdcavro.sync.reading import stored_state
from cdcavro.table.tables import REJECT
from support.kafka_server import broker, spark_settings
from support.kills import LEASE, RANDOM, STORED, KilledPipeline, at, freed, when, within
from support.local_kills import LocalTrial
from support.object_store import BUCKET, object_store
from support.pipelines import Job
from support.processes import let_spark_compile_little

CREATED = "while a lake table is created"
_SETTINGS = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.shuffle.partitions": "1",
    "spark.driver.memory": "600m",
    "spark.databricks.delta.snapshotPartitions": "1",
}


# What each point does to a child; `lake` is the folder of its data. A batch calls what is counted once, if not said otherwise.
POINTS: dict[str, Callable[[Path], None]] = {
    "before the state": lambda _: at(JobState, "write", calls=2),
    "between state and rejects": lambda _: at(JobState, "write", is_after=True, calls=2),
    "between rejects and tables": lambda _: at(FrameStore, "write_rejects", is_after=True),
    CREATED: lambda lake: when(lake, "_delta_log", "metadata"),
    "before a lake table changes": lambda _: at(sinks, "alter_table"),
    "between a lake table's steps": lambda _: at(sinks, "create_table", calls=3),
    "between deletes and MERGE": lambda _: at(current_state.CurrentState, "_put"),
    "during MERGE": lambda lake: within(current_state.CurrentState, "_put", lake, calls=2),
    "between MERGE and changelog": lambda _: at(spark_tables.Changelog, "append", calls=2),
    "during the changelog's append": lambda lake: within(spark_tables.Changelog, "append", lake, calls=2),
    "while rows wait": lambda _: at(WaitingRows, "keep", is_after=True),
    "between waiting rows and their facts": lambda _: at(waiting, "_summary"),
    "between a table that was freed and its waiting rows": lambda _: freed(),
    "between two tables": lambda _: at(LakeTables, "_write", is_after=True),
    "before the checkpoint's commit": lambda _: at(Batches, "run", is_after=True, calls=2),
}


@contextmanager
def plain_appends() -> Iterator[None]:
    """Append without what makes an append happen once."""
    owned = sinks.Delta.append, sinks.Iceberg.append

    def to_delta(self: Any, frame: Any, table: Any, suffix: str, *_: Any, **__: Any) -> None:
        frame.write.format("delta").mode("append").save(self.path(table, suffix))

    def to_iceberg(self: Any, frame: Any, table: Any, suffix: str, *_: Any, **__: Any) -> None:
        frame.writeTo(self.identifier(table, suffix)).append()

    sinks.Delta.append, sinks.Iceberg.append = to_delta, to_iceberg
    try:
        yield
    finally:
        sinks.Delta.append, sinks.Iceberg.append = owned


@dataclass
class Trial(KilledPipeline):
    """A pipeline that is killed on Spark.

    * `kafka` (dict): the settings that Spark needs for Kafka.
    * `state` (str or None): the address of its state, if that is in an object store.
    """

    kafka: dict[str, str] = field(default_factory=dict)
    state: str | None = None
    # What a child runs.
    script: ClassVar[str] = __file__
    points: ClassVar[Mapping[str, Callable[[Path], None]]] = {**POINTS, **STORED}

    @property
    def without_spark(self) -> LocalTrial:
        """The same pipeline on the local runner."""
        own = {name: getattr(self, name) for name in ("most", "behavior", "on_misfit", "servers", "state")}
        return LocalTrial(self.folder, self.sink, self.warehouse, self.seed, **own)

    def job(self, spark: SparkSession | None = None, **lake: Any) -> Job:
        """Return the pipeline."""
        sink = Delta(str(self.folder / "lake")) if self.sink == "delta" else Iceberg("ice")
        source: Files | Kafka = Files(str(self.folder / "in"), most=self.most)
        if self.servers is not None:
            source = Kafka(self.servers, (self.folder.name,), most=self.most)
        lake = {"is_changelog": True, "behavior": self.behavior, **lake}
        return Job(self.folder, sink, lake, source, state=self.state, files=self.files, spark=spark)

    @contextmanager
    def state_folder(self) -> Iterator[Path]:
        """Yield the folder of the state, or a copy of it in an object store, which is saved."""
        with stored_state.state_folder(self.state or str(self.folder / "state"), is_changed=True) as folder:
            yield folder

    def run(self, job: Job) -> list[BatchReport]:
        """Run the pipeline until nothing is left."""
        with plain_appends() if self.is_plain else nullcontext():
            return job.run(formats=Formats("canal"), options={"on_misfit": self.on_misfit})

    def command(self, point: str) -> list[str | Path]:
        """Return the command that runs the pipeline until it is killed at a point."""
        names = ("sink", "warehouse", "is_plain", "most", "behavior", "on_misfit", "servers", "kafka", "state")
        said = {name: getattr(self, name) for name in names}
        return [sys.executable, self.script, "--child", self.folder, point, json.dumps(said)]

    def longest(self) -> float:
        """Return after how many seconds it is killed at most, at a random time."""
        return 20

    def finish(self, spark: SparkSession) -> list[str]:
        """Run the pipeline to the end, and return what differs from what there must be."""
        job = self.job(spark)
        reports = self.run(job)
        waiting = [f"rows of {table} wait: {reason}" for one in reports for table, reason in one.waiting.items()]
        return waiting or [*self.faults_of_tables(job), *self.faults_of_messages()]


@contextmanager
def session_for(warehouse: str, kafka: Mapping[str, str] | None = None) -> Iterator[SparkSession]:
    """Run a session in this process, which is stopped in the end."""
    lake = {**lake_settings(catalog="ice", warehouse=warehouse), **_SETTINGS}
    let_spark_compile_little()
    packages = ",".join(filter(None, [lake.pop("spark.jars.packages"), (kafka or {}).get("spark.jars.packages")]))
    config = {**lake, **(kafka or {}), "spark.jars.packages": packages}
    made = cdc.session("kills", master="local[2]", config=config)
    made.sparkContext.setLogLevel("OFF")
    try:
        yield made
    finally:
        made.stop()


def run_child(kind: type[Trial]) -> None:
    """Run a pipeline until it is killed, as the arguments of this process say."""
    folder, point = Path(sys.argv[2]), sys.argv[3]
    trial = kind(folder, seed=0, **json.loads(sys.argv[4]))
    stored_state.LEASE = LEASE  # type: ignore[misc]
    with session_for(trial.warehouse, trial.kafka) as spark:
        if point != RANDOM:
            trial.points[point](trial.lake)
        job = trial.job(spark, parallel=2 if point == RANDOM else 1)
        print("running", flush=True)
        trial.run(job)


def _by_hand(kills: int, seed: int, source: str, state: str = "") -> int:
    """Kill pipelines so often, some times each, and print what differs in the end; return 1 if anything does."""
    draw, done, trials, is_bad = random.Random(seed), 0, 0, False
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        warehouse, more = str(Path(folder, "warehouse")), {}
        if source == "kafka":
            started = stack.enter_context(broker(Path(folder, "broker")))
            kafka = spark_settings(Path(folder, "jars"))
            more = {"servers": started.servers, "kafka": kafka, "broker": started, "most": 20}
        if state == "s3":
            stored_state.LEASE = LEASE  # type: ignore[misc]
            os.environ.update(stack.enter_context(object_store()).environment)
        spark = stack.enter_context(session_for(warehouse, more.get("kafka")))
        while done < kills:
            trials += 1
            own = {**more, "behavior": EXCEPTION, "on_misfit": REJECT}
            own |= {"state": f"s3://{BUCKET}/kills_{trials}"} if state == "s3" else {}
            sink = ("iceberg", "delta")[(trials + seed) % 2]
            trial = Trial(Path(folder, f"kills_{trials}"), sink, warehouse, draw.random(), **own)
            _life(trial, draw, spark)
            done += len(trial.kills)
            faults = trial.finish(spark)
            print(f"{trial.sink}: {len(trial.kills)} kills, {dict(trial.work.counts)}: {faults or 'all as it must be'}")
            is_bad |= bool(faults)
        own = {**more, "most": 20 if more else 1}
        control = Trial(Path(folder, "control"), ("delta", "iceberg")[seed % 2], warehouse, seed, is_plain=True, **own)
        tell(control, "before the checkpoint's commit")
        found = control.finish(spark)
        print(f"control, {control.sink}: {len(found)} differences, {found[:2] or 'NOTHING TWICE'}")
    return is_bad


def _life(trial: Trial, draw: random.Random, spark: SparkSession) -> None:
    """Kill a pipeline while a table refuses rows, when it takes them, and while rejects are read again."""
    tell(trial, CREATED)
    tell(trial, draw.choice(["while rows wait", "between waiting rows and their facts"]))
    # What waited in the copy of a life that was killed waits in the store once the next batch is begun.
    tell(trial, RANDOM if trial.state is None else "behind the head")
    trial.behavior = LENIENT
    tell(trial, "between a table that was freed and its waiting rows")
    # What is a misfit from now on is none, so nothing of before may be left.
    trial.run(trial.job(spark))
    print(f"{trial.replay()} rejects are read again", flush=True)
    if trial.state is None:
        for point in (draw.choice(sorted(POINTS)), RANDOM):
            tell(trial, point)
        return
    tell(trial, draw.choice(sorted(STORED)))
    local = trial.without_spark
    trial.feed()
    print(f"without Spark: killed {trial.kill(draw.choice(local.points), local)}", flush=True)
    tell(trial, draw.choice(sorted(POINTS)))
    trial.feed()
    point = draw.choice(_ASLEEP)
    with trial.asleep(point):
        trial.feed(1)
        trial.kill("nowhere", local)
    print(f"{trial.sink}: woke up {point}", flush=True)


# Points of a batch that each one has, and at which its process may sleep for longer than it holds the state.
_ASLEEP = (
    "between state and rejects",
    "between rejects and tables",
    "during MERGE",
    "between MERGE and changelog",
    "during the changelog's append",
    "between two tables",
    "before the checkpoint's commit",
)


def tell(trial: Trial, point: str) -> None:
    """Kill a pipeline over new messages, and print whether it was."""
    trial.feed()
    since = time.monotonic()
    what = "killed" if trial.kill(point) else "not killed"
    print(f"{trial.sink}: {what} {point} after {time.monotonic() - since:.0f} s", flush=True)


if __name__ == "__main__":
    if sys.argv[1] == "--child":
        run_child(Trial)
    else:
        sys.exit(_by_hand(int(sys.argv[1]), int((sys.argv[2:] or [1])[0]), *(sys.argv[3:] or ["files"])))
