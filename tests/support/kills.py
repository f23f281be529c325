"""Pipelines that are killed with kill -9 on either runner: the ways to die, and what there must be in the end.

The points at which a process dies are wrapped around functions in it. What must be there is counted along while messages
are made, without the package.
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import threading
import time
from base64 import b64decode
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from cdcavro.errors import FileError
from cdcavro.lake.evolution import LENIENT
from cdcavro.lake.job_state import JobState
from cdcavro.sync.outputs.reject_places import replay
from cdcavro.sync.outputs.table_rows import WaitingRows
from cdcavro.sync.reading.stored_state import StoredState
from cdcavro.table.tables import KEEP, REJECT
from support.messages import put_messages
from support.places import TESTS
from support.sync_work import Work

if TYPE_CHECKING:
    from support.kafka_server import Broker

RANDOM = "at a random time"
# For how many seconds a process is waited for.
_LONGEST = 600
# For how many seconds a state in an object store is held by a life that was killed.
LEASE = 2.0
# The variable that names the signal by which a process dies, if it is another one: by SIGSTOP, it only sleeps.
_SIGNAL = "CDCAVRO_TRIAL_SIGNAL"


def die() -> None:
    """Die at once, with all processes of this one's group."""
    os.killpg(0, signal.Signals[os.environ.get(_SIGNAL, "SIGKILL")])


def at(
    owner: Any,
    name: str,
    *,
    is_after: bool = False,
    calls: int = 1,
    given: Callable[[Mapping[str, Any]], bool] = lambda _: True,
) -> None:
    """Die at a call of a function, before it begins or once it has ended; only those with `given` arguments count."""
    own, left = getattr(owner, name), [calls]

    def wrapped(*args: Any, **named: Any) -> Any:
        if not given(named):
            return own(*args, **named)
        left[0] -= 1
        # Other threads call it meanwhile.
        is_last = left[0] == 0
        if is_last and not is_after:
            die()
        done = own(*args, **named)
        if is_last and is_after:
            die()
        return done

    setattr(owner, name, wrapped)


def freed() -> None:
    """Die before rows that waited are forgotten, once they are written."""
    own = WaitingRows.forget

    def wrapped(self: WaitingRows, table: int) -> None:
        if (self.folder / str(table)).is_dir():
            die()
        own(self, table)

    WaitingRows.forget = wrapped  # type: ignore[method-assign]


def within(owner: Any, name: str, folder: Path, *, calls: int = 1, files: str = "*.parquet") -> None:
    """Die within a call of a function, as soon as it has written a file of data, which nothing refers to yet."""
    own, left = getattr(owner, name), [calls]

    def watch(before: set[Path]) -> None:
        while set(folder.rglob(files)) <= before:
            time.sleep(0.002)
        die()

    def wrapped(*args: Any, **named: Any) -> Any:
        left[0] -= 1
        if left[0] == 0:
            threading.Thread(target=watch, args=(set(folder.rglob(files)),), daemon=True).start()
        return own(*args, **named)

    setattr(owner, name, wrapped)


def behind_writing(owner: Any, name: str, *, calls: int = 1) -> None:
    """Die within a call of a function, as soon as its last argument has written files, which nothing refers to yet."""
    own, left = getattr(owner, name), [calls]

    def wrapped(*args: Any) -> Any:
        left[0] -= 1
        *others, write = args

        def dying(folder: Path) -> None:
            write(folder)
            die()

        return own(*others, dying if left[0] == 0 else write)

    setattr(owner, name, wrapped)


def when(folder: Path, *names: str) -> None:
    """Die as soon as there is a new folder of one of these names."""

    def found() -> set[Path]:
        return {path for path in folder.rglob("*") if path.name in names}

    def watch(before: set[Path]) -> None:
        while found() <= before:
            time.sleep(0.0005)
        die()

    threading.Thread(target=watch, args=(found(),), daemon=True).start()


def _is_due(named: Mapping[str, Any]) -> bool:
    """Whether a state is saved because a batch needs it, and not because there is nothing else to do."""
    return not named.get("is_idle", False)


def _has_files(named: Mapping[str, Any]) -> bool:
    """Whether a head says what a state consists of, and not only who holds it."""
    return "files" in named


# What points of a state in an object store do to a process; a batch saves it before it is written, and when it is done.
STORED: dict[str, Callable[[Path], None]] = {
    "before the state is saved": lambda _: at(StoredState, "save", given=_is_due),
    "behind what is saved before a batch is written": lambda _: at(StoredState, "save", is_after=True, given=_is_due),
    "before the end of a batch is saved": lambda _: at(StoredState, "save", calls=2, given=_is_due),
    "while objects are written": lambda _: at(StoredState, "_upload", calls=4),
    "between objects and head": lambda _: at(StoredState, "_put", calls=2, given=_has_files),
    "behind the head": lambda _: at(StoredState, "_put", is_after=True, calls=2, given=_has_files),
    "before old objects are removed": lambda _: at(StoredState, "_remove", calls=3),
}


class LakeRows(Protocol):
    """What reads lake tables."""

    def rows(self, table: str, *columns: str, suffix: str = "") -> list[tuple[Any, ...]]:
        """Return rows of a lake table."""


@dataclass
class KilledPipeline:
    """A pipeline that is killed, on whichever runner.

    * `folder` (Path): all that is its own.
    * `sink` (str): "delta" or "iceberg", or another one that a runner names.
    * `warehouse` (str): that of Iceberg.
    * `seed`: what draws its messages.
    * `is_plain` (bool): whether it is the control.
    * `most` (int): how many files or messages of Kafka a batch has.
    * `behavior` and `on_misfit` (str): those of the lake and of tables.
    * `servers` (str or None): those of Kafka, if messages come through it; `broker`, to which they are sent.
    """

    folder: Path
    sink: str
    warehouse: str
    seed: Any
    is_plain: bool = False
    most: int = 1
    behavior: str = LENIENT
    on_misfit: str = KEEP
    servers: str | None = None
    broker: Broker | None = None
    kills: list[str] = field(default_factory=list)
    files: int = 0

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

    def replay(self) -> int:
        """Let the pipeline read its rejects again, misfits being kept from now on; return how many there are."""
        self.on_misfit, self.work.has_misfits = KEEP, False
        with self.state_folder() as state:
            try:
                moved = replay(state / "rejects", state / "replay")
            except FileError:
                return 0
            messages = [message for folder in moved for message in _raw(folder)]
        self.work.replayed(messages)
        return len(messages)

    @contextmanager
    def state_folder(self) -> Iterator[Path]:
        """Yield the folder of the state, which may be changed."""
        yield self.folder / "state"

    def feed(self, files: int = 3) -> None:
        """Put files of new messages where the pipeline finds them; each is a batch."""
        for _ in range(files):
            messages = self.work.messages()
            if self.broker is None:
                put_messages(self.folder / "in", self.files, messages)
            else:
                from support.kafka_server import Record  # noqa: PLC0415  it takes pyspark, which the local runner does without

                records = [Record(self.folder.name, self.files % 2, None, one) for one in messages]
                self.broker.send(records)
            self.files += 1

    def command(self, point: str) -> list[str | Path]:
        """Return the command that runs the pipeline until it is killed at a point."""
        raise NotImplementedError

    def longest(self) -> float:
        """Return after how many seconds it is killed at most, at a random time."""
        raise NotImplementedError

    @property
    def environment(self) -> dict[str, str]:
        """The variables of its process, which imports from the tests."""
        path = os.pathsep.join(filter(None, [str(TESTS), os.environ.get("PYTHONPATH")]))
        return {**os.environ, "PYTHONPATH": path}

    def kill(self, point: str, way: KilledPipeline | None = None) -> bool:
        """Run the pipeline until it is killed at a point; return whether it was, and did not end before.

        `way` is the same pipeline on another runner, which runs it then.
        """
        own = way or self
        with self._child(own.command(point)) as child:
            if point == RANDOM:
                self._wait(child, self.draw.uniform(0, own.longest()))
            child.wait(_LONGEST)
            assert child.stdout is not None
            own.heard(child.stdout.read())
        assert child.returncode in (0, 1, -signal.SIGKILL), self.log.read_text(errors="replace")[-3000:]
        if child.returncode < 0:
            self.kills.append(point)
        return child.returncode < 0

    @contextmanager
    def asleep(self, point: str) -> Iterator[None]:
        """Run the pipeline until it falls asleep at a point, for as long as the block; it must end with an error then.

        That is the one of a state that another process has taken meanwhile.
        """
        with self._child(self.command(point), **{_SIGNAL: "SIGSTOP"}) as child:
            found = os.waitid(os.P_PID, child.pid, os.WSTOPPED | os.WEXITED | os.WNOWAIT)
            assert found is not None
            assert found.si_code == os.CLD_STOPPED, self.log.read_text(errors="replace")[-3000:]
            yield
            os.killpg(child.pid, signal.SIGCONT)
            child.wait(_LONGEST)
        said = self.log.read_text(errors="replace")
        assert (child.returncode in (1, 2), "a state that no other job uses, got one that is in use" in said) == (
            True,
            True,
        ), said[-3000:]

    @property
    def log(self) -> Path:
        """The file of what its processes say of errors."""
        return self.folder / "child.log"

    @contextmanager
    def _child(self, command: list[str | Path], **variables: str) -> Iterator[subprocess.Popen[bytes]]:
        """Yield a process that runs the pipeline, and that is killed if it is still there behind the block."""
        own = {**self.environment, **variables}
        with (
            self.log.open("ab") as log,
            subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, start_new_session=True, env=own) as child,
        ):
            try:
                assert child.stdout is not None
                child.stdout.readline()
                yield child
            finally:
                _kill_group(child)

    def heard(self, said: bytes) -> None:
        """Take what a process printed behind its first line."""

    def _wait(self, child: subprocess.Popen[bytes], seconds: float) -> None:
        try:
            child.wait(seconds)
        except subprocess.TimeoutExpired:
            _kill_group(child)

    def faults_of_tables(self, lake: LakeRows) -> Iterator[str]:
        """Yield what differs in tables from what there must be."""
        work = self.work
        for table in work.tables:
            name = f'"{work.database}".{table}'
            columns = ["id", "n", "b"] if table in work.wide else ["id", "n"]
            if table != work.keyless:
                found = Counter(lake.rows(name, *columns))
                yield from differences(f"current state of {table}", found, Counter(work.current(table)))
                deletes = Counter(lake.rows(name, "_cdc_key", "_cdc_order", suffix="deletes"))
                yield from [f"deletes of {table}: {count} times {one}" for one, count in deletes.items() if count > 1]
            log = Counter(lake.rows(name, "_cdc_op", "id", "n", suffix="changes"))
            yield from differences(f"changelog of {table}", log, work.log[table])

    def faults_of_messages(self) -> Iterator[str]:
        """Yield what differs in rejects and in the account of messages."""
        with self.state_folder() as state:
            rejects = Counter(_raw(state / "rejects"))
            batches = JobState(state / "batches")
            totals = batches.facts(batches.batches()[-1] + 1)["totals"]
        yield from differences("rejects", rejects, Counter(self.work.rejects))
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
