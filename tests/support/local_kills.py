"""Pipelines of the local runner that are killed with kill -9, and what is in their lakes and files in the end.

Run by hand: python tests/support/local_kills.py KILLS [SEED [files|kafka|s3]]; with s3 their states are on a server of S3.

As `sync_kills.py`, whose messages these are, and whose account; a life is a process of `cdcavro sync --local`, which takes
a second. Each pipeline dies while lake tables are created, while rows wait, when they are freed, and while rejects are read
again; then at points, at times and at calls of functions that are drawn. The sinks take turns: Delta Lake, Iceberg, Avro
files. The control is a writer without marks, which must have rows twice.
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
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any
from uuid import uuid4

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[1]))

from cdcavro.cli import main
from cdcavro.lake.account import AccountFile
from cdcavro.lake.evolution import EXCEPTION, LENIENT
from cdcavro.lake.job_state import JobState
from cdcavro.sync.local import local_sinks
from cdcavro.sync.local.local_outcomes import LocalStore
from cdcavro.sync.native import native_columns, native_state, native_tables
from cdcavro.sync.outputs import table_rows as waiting
from cdcavro.sync.outputs.avro_folder import AvroFolder
from cdcavro.sync.outputs.table_rows import WaitingRows
from cdcavro.sync.reading import stored_state
from cdcavro.sync.reading.checkpoint import Checkpoint
from cdcavro.table.tables import REJECT
from support import kills as ways
from support.avro_changes import changes_in, listed
from support.kills import (
    LEASE,
    RANDOM,
    STORED,
    KilledPipeline,
    at,
    behind_writing,
    die,
    differences,
    freed,
    when,
    within,
)
from support.local_pipelines import DELTA, ICEBERG, LocalJob, lake_section
from support.object_store import BUCKET, object_store

AVRO = "avro"
SINKS = (DELTA, ICEBERG, AVRO)
CREATED = "while a lake table is created"
LAST = "before the checkpoint's commit"
CALL = "at a call"
# The class of lake tables that this process writes.
_TABLES: list[Any] = []
# Calls of which folders count; they are those that read and write.
_COUNTED = tuple(
    f"cdcavro/{name}" for name in ("sync/native", "sync/local", "sync/outputs", "sync/reading", "lake/job")
)


def _load_tables(sink: str) -> None:
    """Import what a lake's tables are: of the two libraries only one, which takes a while."""
    if sink == DELTA:
        from cdcavro.sync.native.delta_lake import NativeDeltaTable as Own  # noqa: PLC0415
    else:
        from cdcavro.sync.native.iceberg_lake import NativeIcebergTable as Own  # type: ignore[assignment]  # noqa: PLC0415
    _TABLES.append(Own)


def _tables(name: str, **how: Any) -> Callable[[Path], None]:
    """Die at a method of lake tables, of whichever lake."""

    def put(_: Path) -> None:
        for kind in _TABLES:
            at(kind, name, **how)

    return put


def _within(name: str) -> Callable[[Path], None]:
    """Die within a method of lake tables, once it has written a file of data that nothing refers to."""

    def put(lake: Path) -> None:
        for kind in _TABLES:
            within(kind, name, lake)

    return put


# What each point does to a process; `lake` is the folder of its data.
_ALL: dict[str, Callable[[Path], None]] = {
    "behind the plan": lambda _: at(Checkpoint, "plan", is_after=True),
    "before the state": lambda _: at(JobState, "write"),
    "between state and rejects": lambda _: at(JobState, "write", is_after=True, calls=2),
    "between rejects and tables": lambda _: at(LocalStore, "write_rejects", is_after=True),
    "before the account": lambda _: at(AccountFile, "add"),
    LAST: lambda _: at(Checkpoint, "commit"),
    "behind the checkpoint's commit": lambda _: at(Checkpoint, "commit", is_after=True),
}
_OF_LAKES: dict[str, Callable[[Path], None]] = {
    CREATED: lambda lake: when(lake, "_delta_log", "metadata"),
    "before a claim": lambda _: at(native_tables, "claim"),
    "behind a claim": lambda _: at(native_tables, "claim", is_after=True, calls=2),
    "behind a lake table's creation": _tables("create", is_after=True, calls=2),
    "before a lake table changes": _tables("alter"),
    "between a lake table's steps": lambda _: at(native_columns, "prepare", is_after=True, calls=2),
    "between deletes and merge": lambda _: at(native_state.NativeState, "_merge", calls=2),
    "during the merge": _within("merge"),
    "behind the merge's commit": _tables("merge", is_after=True, calls=2),
    "between merge and changelog": lambda _: at(native_tables.NativeChangelog, "append", calls=2),
    "during an append": _within("append"),
    "behind an append's commit": _tables("append", is_after=True, calls=3),
    "between two tables": lambda _: at(native_tables.NativeTables, "_write", is_after=True),
}
WAITING: dict[str, Callable[[Path], None]] = {
    "while rows wait": lambda _: at(WaitingRows, "keep", is_after=True),
    "between waiting rows and their facts": lambda _: at(waiting, "_summary"),
}
FREED: dict[str, Callable[[Path], None]] = {
    "between a table that was freed and its waiting rows": lambda _: freed(),
}
_OF_FILES: dict[str, Callable[[Path], None]] = {
    "while a file is written": lambda _: behind_writing(AvroFolder, "replace"),
    "before a table's files": lambda _: at(AvroFolder, "replace", calls=2),
    "between two tables": lambda _: at(local_sinks.LocalFileWriter, "_write", is_after=True),
}
POINTS: dict[str, dict[str, Callable[[Path], None]]] = {
    **{name: {**_ALL, **_OF_LAKES} for name in (DELTA, ICEBERG)},
    AVRO: {**_ALL, **_OF_FILES},
}


def remove_marks() -> None:
    """Append without what makes an append happen once, and let files of a batch that is run again stay."""
    for kind in _TABLES:
        kind.append = _without_mark(kind.append)  # type: ignore[method-assign]
    replace = AvroFolder.replace

    def beside(self: AvroFolder, table: Path, batch: int, number: int, write: Any) -> None:
        path = table / f"batch={batch}" / f"table={number}"
        if path.exists():
            path.rename(path.with_name(f"again={uuid4().hex}"))
        replace(self, table, batch, number, write)

    AvroFolder.replace = beside  # type: ignore[method-assign]


def _without_mark(append: Any) -> Any:
    def appended(self: Any, rows: Any, _: Any = None) -> None:
        append(self, rows)

    return appended


class Calls:
    """Counts calls of functions that read and write, and calls from them into C; dies at one with a number."""

    def __init__(self, last: int) -> None:
        self.last, self.count = last, 0

    def start(self) -> None:
        """Begin to count, in all threads."""
        threading.setprofile(self._note)
        sys.setprofile(self._note)

    def _note(self, frame: Any, event: str, _: Any) -> None:
        if event in ("call", "c_call", "c_return") and any(one in frame.f_code.co_filename for one in _COUNTED):
            self.count += 1
            if self.count == self.last:
                die()


@dataclass
class LocalTrial(KilledPipeline):
    """A pipeline that is killed in a process of its own, which needs no Java.

    * `catalog` (dict or None): the properties of Iceberg's catalog, if that is a server or a database.
    * `state` (str or None): the address of its state, if that is in an object store.
    * `merge_every` (int): of how many batches one is merged.
    * `calls` (int) and `seconds` (float): how many calls a life has, and how long it takes, as was seen last.
    """

    catalog: dict[str, str] | None = None
    state: str | None = None
    merge_every: int = 1
    calls: int = 12_000
    seconds: float = 1.0

    @property
    def lake(self) -> Path:
        """The folder of its data."""
        return self.folder / "out" if self.sink == AVRO else super().lake

    def job(self) -> LocalJob:
        """Return the pipeline."""
        more: dict[str, Any] = {"merge_every": self.merge_every}
        more["tables"] = {"zone": "UTC", "on_misfit": self.on_misfit}
        if self.state is not None:
            more["state"] = self.state
        if self.servers is not None:
            more["source"] = {"kafka": self.servers, "topics": [self.folder.name], "most": self.most}
        lake: dict[str, Any] = {}
        if self.sink == AVRO:
            more["avro"] = {"folder": str(self.lake), "parallel": 2}
        else:
            said = {"changelog": True, "behavior": self.behavior, "parallel": 2}
            lake = lake_section(self.sink, self.folder, self.warehouse, **said)
            if self.catalog is not None:
                lake = {"iceberg": "ice", "catalog": self.catalog, **said}
        return LocalJob(self.folder, lake, more, self.files)

    @property
    def points(self) -> list[str]:
        """The points at which it may die whatever it reads."""
        return sorted({**POINTS[self.sink], **(STORED if self.state is not None else {})})

    @contextmanager
    def state_folder(self) -> Iterator[Path]:
        """Yield the folder of the state, or a copy of it in an object store, which is saved."""
        with stored_state.state_folder(self.state or str(self.folder / "state"), is_changed=True) as folder:
            yield folder

    def command(self, point: str, *, is_interrupted: bool = False) -> list[str | Path]:
        """Return the command that runs the pipeline until it is killed at a point, or interrupted as by Ctrl-C."""
        said = {"sink": self.sink, "lake": str(self.lake), "is_plain": self.is_plain, "calls": 0}
        said["is_interrupted"] = is_interrupted
        if point == CALL:
            said["calls"] = self.draw.randrange(1, self.calls)
        return [sys.executable, __file__, "--child", self.job().config(), point, json.dumps(said)]

    def interrupt(self, point: str) -> subprocess.CompletedProcess[str]:
        """Run the pipeline until it is interrupted at a point, and return how it ended."""
        command = self.command(point, is_interrupted=True)
        return subprocess.run(command, env=self.environment, capture_output=True, text=True, check=False)

    def longest(self) -> float:
        """Return after how many seconds it is killed at most, at a random time."""
        return self.seconds

    def heard(self, said: bytes) -> None:
        """Take how many calls a life had that was not killed, and how long it was, which its last line says."""
        words = (said.splitlines() or [b""])[-1].split()
        if len(words) == len(("calls", "seconds")):
            self.calls, self.seconds = int(words[0]) or self.calls, float(words[1])

    def finish(self) -> list[str]:
        """Run the pipeline to the end, and return what differs from what there must be."""
        job = self.job()
        reports = job.run()
        left = [f"rows of {table} wait: {reason}" for one in reports[-1:] for table, reason in one.waiting.items()]
        faults = self._faults_of_files() if self.sink == AVRO else self.faults_of_tables(job)
        return left or [*faults, *self.faults_of_messages()]

    def _faults_of_files(self) -> list[str]:
        faults: list[str] = []
        for table in self.work.tables:
            found = Counter(listed(changes_in(self.lake, f'"{self.work.database}".{table}')))
            faults += differences(f"changes of {table}", found, self.work.log[table])
        return faults


def _run_child() -> None:
    """Run a pipeline until it is killed, as the arguments of this process say."""
    config, point, said = sys.argv[2], sys.argv[3], json.loads(sys.argv[4])
    if said["sink"] != AVRO:
        _load_tables(said["sink"])
    if said["is_plain"]:
        remove_marks()
    stored_state.LEASE = LEASE  # type: ignore[misc]
    if said.get("is_interrupted"):
        ways.die = partial(os.kill, os.getpid(), signal.SIGINT)  # type: ignore[assignment]
    every: Mapping[str, Callable[[Path], None]] = {**POINTS[said["sink"]], **WAITING, **FREED, **STORED}
    if point in every:
        every[point](Path(said["lake"]))
    counted = Calls(said["calls"])
    print("running", flush=True)
    began = time.monotonic()
    if point == CALL:
        counted.start()
    try:
        main(["sync", "--config", config, "--once", "--quiet"], prog_name="cdcavro")
    finally:
        sys.setprofile(None)
        print(counted.count, time.monotonic() - began, flush=True)


def tell(trial: LocalTrial, point: str, files: int = 2) -> None:
    """Kill a pipeline over new messages."""
    trial.feed(files)
    trial.kill(point)


def live(trial: LocalTrial, draw: random.Random, kills: int) -> None:
    """Kill a pipeline while a table refuses rows, when it takes them, while rejects are read again, and so many times more."""
    own = trial.points
    if trial.sink == AVRO:
        tell(trial, draw.choice(own))
    else:
        tell(trial, draw.choice([CREATED, "behind a lake table's creation", CALL]))
        tell(trial, draw.choice(sorted(WAITING)), 3)
        tell(trial, draw.choice([RANDOM, CALL]))
    trial.behavior = LENIENT
    if trial.sink != AVRO:
        tell(trial, draw.choice(sorted(FREED)))
    # What is a misfit from now on is none, so nothing of before may be left.
    trial.job().run()
    for _ in range(2):
        trial.replay()
        tell(trial, draw.choice([draw.choice(own), RANDOM, CALL]))
        trial.kill(CALL)
        # Rejects of a batch that is not done are not read again.
        trial.job().run()
    for _ in range(kills):
        tell(trial, draw.choice([draw.choice(own), RANDOM, CALL]), draw.choice((0, 1, 1, 2)))


def _by_hand(kills: int, seed: int, source: str) -> int:
    """Kill pipelines so often, and print what differs in the end; return 1 if anything does."""
    draw, done, lives, bad, points = random.Random(seed), 0, 0, 0, Counter[str]()
    from support.kafka_server import broker  # noqa: PLC0415  it takes pyspark, which a life does without

    own_kill = LocalTrial.kill

    def counted(self: LocalTrial, point: str) -> bool:
        nonlocal lives
        lives += 1
        return own_kill(self, point)

    LocalTrial.kill = counted  # type: ignore[method-assign]
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        more: dict[str, Any] = {}
        if source == "kafka":
            started = stack.enter_context(broker(Path(folder, "broker")))
            more = {"servers": started.servers, "broker": started, "most": 20}
        if source == "s3":
            stored_state.LEASE = LEASE  # type: ignore[misc]
            os.environ.update(stack.enter_context(object_store()).environment)
        number = 0
        while done < kills:
            sink, number = SINKS[number % 3], number + 1
            own = {"behavior": EXCEPTION, "on_misfit": REJECT, "merge_every": draw.choice((1, 1, 2)), **more}
            own |= {"state": f"s3://{BUCKET}/kills_{number}"} if source == "s3" else {}
            trial = LocalTrial(Path(folder, f"kills_{number}"), sink, f"{folder}/wh", draw.random(), **own)
            live(trial, draw, 8)
            faults = trial.finish()
            done, bad = done + len(trial.kills), bad + len(faults)
            points.update(trial.kills)
            every = f"every {trial.merge_every}"
            print(
                f"{sink}, {every}: {len(trial.kills)} kills, {dict(trial.work.counts)}: {faults[:3] or 'ok'}",
                flush=True,
            )
        print(f"{done} kills, {lives} lives, {number} pipelines, {bad} differences; {dict(points)}", flush=True)
        for sink in SINKS:
            control = LocalTrial(Path(folder, f"control_{sink}"), sink, f"{folder}/wh", seed, is_plain=True, **more)
            control.feed()
            control.kill(LAST)
            control.kill(LAST)
            control.feed(1)
            control.kill("none")
            control.is_plain = False
            found = control.finish()
            print(f"control, {sink}: {len(found)} differences, {found[:2] or 'NOTHING TWICE'}")
            bad += not found
    return int(bool(bad))


if __name__ == "__main__":
    if sys.argv[1] == "--child":
        _run_child()
    else:
        sys.exit(_by_hand(int(sys.argv[1]), int((sys.argv[2:] or [1])[0]), (sys.argv[3:] or ["files"])[0]))
