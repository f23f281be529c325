"""Pipelines that are killed with kill -9, at random times and at chosen points, and what is in their lakes in the end.

Run by hand: python tests/support/sync_kills.py KILLS [SEED [files|kafka]]

A child process, whose JVM dies with it, runs a pipeline over files, or over a topic of a broker that it starts, into Delta
Lake or Iceberg, current states and changelogs. It dies; another one goes on and dies elsewhere; at last one runs to the
end. By hand, tables refuse a column at first, so that rows wait, which are freed later, and rejects are read again while
the pipeline lies dead. The points are wrapped around functions in the child. What there must be in the end is counted along
while the messages are made. Its control is a pipeline with a plain append, which has rows twice.
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
from base64 import b64decode
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[1]))

from pyspark.sql import SparkSession

from cdcavro import spark as cdc
from cdcavro.errors import FileError
from cdcavro.lake.evolution import EXCEPTION, LENIENT
from cdcavro.lake.job_state import JobState
from cdcavro.spark.lake import Delta, Iceberg, changelog, columns, current_state, lake_settings, sinks
from cdcavro.spark.pipeline import BatchReport, Files, Formats, Kafka, batches
from cdcavro.spark.pipeline.outputs import table_rows as waiting
from cdcavro.spark.pipeline.outputs.lake_tables import LakeTables
from cdcavro.spark.pipeline.outputs.table_rows import WaitingRows
from cdcavro.spark.pipeline.pipeline_rejects import replay
from cdcavro.table.tables import KEEP, REJECT
from support.kafka_server import Broker, Record, broker, spark_settings
from support.pipelines import Job
from support.places import TESTS
from support.sync_work import Work

RANDOM = "at a random time"
CREATED = "while a lake table is created"
_SETTINGS = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.shuffle.partitions": "1",
    "spark.driver.memory": "600m",
    "spark.databricks.delta.snapshotPartitions": "1",
    "spark.driver.extraJavaOptions": "-XX:+UseSerialGC -XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=160m",
}


def _die() -> None:
    os.killpg(0, signal.SIGKILL)


def at(owner: Any, name: str, *, is_after: bool = False, calls: int = 1) -> None:
    """Die at a call of a function, before it begins or once it has ended."""
    own, left = getattr(owner, name), [calls]

    def wrapped(*args: Any, **named: Any) -> Any:
        left[0] -= 1
        if not is_after and left[0] == 0:
            _die()
        done = own(*args, **named)
        if is_after and left[0] == 0:
            _die()
        return done

    setattr(owner, name, wrapped)


def _freed() -> None:
    """Die before rows that waited are forgotten, once they are written."""
    own = WaitingRows.forget

    def wrapped(self: WaitingRows, table: int) -> None:
        if (self.folder / str(table)).is_dir():
            _die()
        own(self, table)

    WaitingRows.forget = wrapped  # type: ignore[method-assign]


def within(owner: Any, name: str, folder: Path, *, calls: int = 1, files: str = "*.parquet") -> None:
    """Die within a call of a function, as soon as it has written a file of data, which nothing refers to yet."""
    own, left = getattr(owner, name), [calls]

    def watch(before: set[Path]) -> None:
        while set(folder.rglob(files)) <= before:
            time.sleep(0.002)
        _die()

    def wrapped(*args: Any, **named: Any) -> Any:
        left[0] -= 1
        if left[0] == 0:
            threading.Thread(target=watch, args=(set(folder.rglob(files)),), daemon=True).start()
        return own(*args, **named)

    setattr(owner, name, wrapped)


def _when(folder: Path, *names: str) -> None:
    """Die as soon as there is a new folder of one of these names."""

    def found() -> set[Path]:
        return {path for path in folder.rglob("*") if path.name in names}

    def watch(before: set[Path]) -> None:
        while found() <= before:
            time.sleep(0.0005)
        _die()

    threading.Thread(target=watch, args=(found(),), daemon=True).start()


# What each point does to a child; `lake` is the folder of its data. A batch calls what is counted once, if not said otherwise.
POINTS: dict[str, Callable[[Path], None]] = {
    "before the state": lambda _: at(JobState, "write", calls=2),
    "between state and rejects": lambda _: at(JobState, "write", is_after=True, calls=2),
    "between rejects and tables": lambda _: at(batches, "write_rejects", is_after=True),
    CREATED: lambda lake: _when(lake, "_delta_log", "metadata"),
    "before a lake table changes": lambda _: at(columns, "alter_table"),
    "between a lake table's steps": lambda _: at(columns, "create_table", calls=3),
    "between deletes and MERGE": lambda _: at(current_state.CurrentState, "_put"),
    "during MERGE": lambda lake: within(current_state.CurrentState, "_put", lake, calls=2),
    "between MERGE and changelog": lambda _: at(changelog.Changelog, "append", calls=2),
    "during the changelog's append": lambda lake: within(changelog.Changelog, "append", lake, calls=2),
    "while rows wait": lambda _: at(WaitingRows, "keep", is_after=True),
    "between waiting rows and their facts": lambda _: at(waiting, "_summary"),
    "between a table that was freed and its waiting rows": lambda _: _freed(),
    "between two tables": lambda _: at(LakeTables, "_write", is_after=True),
    "before the checkpoint's commit": lambda _: at(batches.Batches, "run", is_after=True, calls=2),
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
class Trial:
    """A pipeline that is killed.

    Attributes: `sink` is "delta" or "iceberg"; `is_plain`, whether it is the control; `most`, how many files or messages
    of Kafka a batch has; `behavior` and `on_misfit`, those of the lake and of tables; `servers`, Kafka's, if messages come
    through it, and `kafka`, the settings that Spark needs for that; `broker`, to which they are sent.
    """

    folder: Path
    sink: str
    warehouse: str
    seed: int
    is_plain: bool = False
    most: int = 1
    behavior: str = LENIENT
    on_misfit: str = KEEP
    servers: str | None = None
    kafka: dict[str, str] = field(default_factory=dict)
    broker: Broker | None = None
    kills: list[str] = field(default_factory=list)
    files: int = 0
    # What a child runs.
    script: ClassVar[str] = __file__
    points: ClassVar[Mapping[str, Callable[[Path], None]]] = POINTS

    def __post_init__(self) -> None:
        self.draw = random.Random(self.seed)
        self.work = Work(self.folder.name, self.draw, has_misfits=self.on_misfit == REJECT)
        self.folder.mkdir(parents=True, exist_ok=True)
        if self.broker is not None:
            self.broker.create(self.folder.name, 2)

    @property
    def lake(self) -> Path:
        """The folder of its data."""
        return self.folder / "lake" if self.sink == "delta" else Path(self.warehouse, self.folder.name)

    def job(self, spark: SparkSession | None = None, **lake: Any) -> Job:
        """Return the pipeline."""
        sink = Delta(str(self.folder / "lake")) if self.sink == "delta" else Iceberg("ice")
        source: Files | Kafka = Files(str(self.folder / "in"), most=self.most)
        if self.servers is not None:
            source = Kafka(self.servers, (self.folder.name,), most=self.most)
        lake = {"is_changelog": True, "behavior": self.behavior, **lake}
        return Job(spark, self.folder, sink, lake, source, files=self.files)

    def run(self, job: Job) -> list[BatchReport]:
        """Run the pipeline until nothing is left."""
        with plain_appends() if self.is_plain else nullcontext():
            return job.run(formats=Formats("canal"), options={"on_misfit": self.on_misfit})

    def replay(self) -> int:
        """Let the pipeline read its rejects again, misfits being kept from now on; return how many there are."""
        state, self.on_misfit, self.work.has_misfits = self.folder / "state", KEEP, False
        try:
            moved = replay(state / "rejects", state / "replay")
        except FileError:
            return 0
        messages = [message for folder in moved for message in _raw(folder)]
        self.work.replayed(messages)
        return len(messages)

    def feed(self, files: int = 3) -> None:
        """Put files of new messages where the pipeline finds them; each is a batch."""
        job = self.job()
        for _ in range(files):
            messages = self.work.messages()
            if self.broker is None:
                job.send(*messages)
            else:
                job.files += 1
                self.broker.send([Record(self.folder.name, job.files % 2, None, one) for one in messages])
        self.files = job.files

    def kill(self, point: str) -> bool:
        """Run the pipeline until it is killed at a point; return whether it was, and did not end before."""
        names = ("sink", "warehouse", "is_plain", "most", "behavior", "on_misfit", "servers", "kafka")
        said = {name: getattr(self, name) for name in names}
        command = [sys.executable, self.script, "--child", self.folder, point, json.dumps(said)]
        path = os.pathsep.join(filter(None, [str(TESTS), os.environ.get("PYTHONPATH")]))
        log = (self.folder / "child.log").open("ab")
        with (
            log,
            subprocess.Popen(
                command,
                stdout=subprocess.PIPE,
                stderr=log,
                start_new_session=True,
                env={**os.environ, "PYTHONPATH": path},
            ) as child,
        ):
            try:
                assert child.stdout is not None
                child.stdout.readline()
                if point == RANDOM:
                    self._wait(child, self.draw.uniform(0, 20))
                child.wait(600)
            finally:
                _kill_group(child)
        assert child.returncode in (0, -signal.SIGKILL), Path(log.name).read_text(errors="replace")[-3000:]
        if child.returncode:
            self.kills.append(point)
        return bool(child.returncode)

    def _wait(self, child: subprocess.Popen[bytes], seconds: float) -> None:
        try:
            child.wait(seconds)
        except subprocess.TimeoutExpired:
            _kill_group(child)

    def finish(self, spark: SparkSession) -> list[str]:
        """Run the pipeline to the end, and return what differs from what there must be."""
        job = self.job(spark)
        reports = self.run(job)
        waiting = [f"rows of {table} wait: {reason}" for one in reports for table, reason in one.waiting.items()]
        return waiting or [*self.faults_of_tables(job), *self._faults_of_messages()]

    def faults_of_tables(self, job: Job) -> Iterator[str]:
        """Yield what differs in tables from what there must be."""
        work = self.work
        for table in work.tables:
            name = f'"{work.database}".{table}'
            columns = ["id", "n", "b"] if table in work.wide else ["id", "n"]
            if table != work.keyless:
                found = Counter(job.rows(name, *columns))
                yield from differences(f"current state of {table}", found, Counter(work.current(table)))
                keys = job.rows(name, "count(*)", "count(DISTINCT _cdc_key)", suffix="deletes")
                yield from [f"deletes of {table}: {all} for {one} keys" for all, one in keys if all != one]
            log = Counter(job.rows(name, "_cdc_op", "id", "n", suffix="changes"))
            yield from differences(f"changelog of {table}", log, work.log[table])

    def _faults_of_messages(self) -> Iterator[str]:
        state = self.folder / "state"
        rejects = Counter(_raw(state / "rejects"))
        yield from differences("rejects", rejects, Counter(self.work.rejects))
        batches = JobState(state / "batches")
        totals = batches.facts(batches.batches()[-1] + 1)["totals"]
        found = Counter({name: count for name, count in totals.items() if count})
        yield from differences("messages", found, self.work.counts)
        if found["read"] != found["written"] + found["rejected"] + found["statements"]:
            yield f"the account does not add up: {dict(found)}"


def _raw(rejects: Path) -> list[bytes]:
    lines = [line for path in rejects.rglob("*.json") for line in path.read_bytes().splitlines()]
    return [b64decode(json.loads(line)["raw"]) for line in lines]


def differences(what: str, found: Counter[Any], wanted: Counter[Any]) -> Iterator[str]:
    """Yield what is there more or less often than it must be."""
    for one in {*(found - wanted), *(wanted - found)}:
        yield f"{what}: {one!r} {found[one]} times instead of {wanted[one]}"


def _kill_group(child: subprocess.Popen[bytes]) -> None:
    if child.poll() is None:
        os.killpg(child.pid, signal.SIGKILL)
        child.wait()


@contextmanager
def session_for(warehouse: str, kafka: Mapping[str, str] | None = None) -> Iterator[SparkSession]:
    """Run a session in this process, which is stopped in the end."""
    lake = {**lake_settings(catalog="ice", warehouse=warehouse), **_SETTINGS}
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
    with session_for(trial.warehouse, trial.kafka) as spark:
        if point != RANDOM:
            trial.points[point](trial.lake)
        job = trial.job(spark, parallel=2 if point == RANDOM else 1)
        print("running", flush=True)
        trial.run(job)


def _by_hand(kills: int, seed: int, source: str) -> int:
    """Kill pipelines so often, some times each, and print what differs in the end; return 1 if anything does."""
    draw, done, trials, is_bad = random.Random(seed), 0, 0, False
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        warehouse, more = str(Path(folder, "warehouse")), {}
        if source == "kafka":
            started = stack.enter_context(broker(Path(folder, "broker")))
            kafka = spark_settings(Path(folder, "jars"))
            more = {"servers": started.servers, "kafka": kafka, "broker": started, "most": 20}
        spark = stack.enter_context(session_for(warehouse, more.get("kafka")))
        while done < kills:
            trials += 1
            own = {**more, "behavior": EXCEPTION, "on_misfit": REJECT}
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
    tell(trial, RANDOM)
    trial.behavior = LENIENT
    tell(trial, "between a table that was freed and its waiting rows")
    # What is a misfit from now on is none, so nothing of before may be left.
    trial.run(trial.job(spark))
    print(f"{trial.replay()} rejects are read again", flush=True)
    for point in (draw.choice(sorted(POINTS)), RANDOM):
        tell(trial, point)


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
        sys.exit(_by_hand(int(sys.argv[1]), int((sys.argv[2:] or [1])[0]), (sys.argv[3:] or ["files"])[0]))
