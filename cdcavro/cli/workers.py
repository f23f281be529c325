"""Work shared among processes: what they make comes back in the order of the tasks, and only so much of it waits.

Each process is started anew, never forked, has one pipe for its tasks and one for what it makes of
them, and ends when the pipes do: also if this process is killed. One that is killed itself is an
error here, never a wait without end.
"""

from __future__ import annotations

import pickle
import signal
import sys
import threading
from collections import deque
from contextlib import contextmanager, suppress
from itertools import chain, islice
from multiprocessing import get_context
from multiprocessing.connection import wait
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from cdcavro.cli.group import Fault
from cdcavro.errors import CdcAvroError

if sys.platform == "linux":
    import fcntl

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable, Iterator
    from multiprocessing.connection import Connection

    Part = tuple[bytes, Any]
    Work = Callable[[Any], Iterable[Part]]

# Small inputs end before a process would have started.
ALONE: Final = 8
# A task that waits in a process's pipe while the one before it is done must fit in there: this process would wait for
# that one to read it, and that one for this one to read answers.
_AHEAD: Final = 2
_SMALL: Final = 1 << 10
_WAITING: Final = 8
_PATIENCE: Final = 5.0
_KEPT: Final = 8 << 20
_ROOM: Final = 1 << 20


def in_order(work: Work, tasks: Iterable[Any], jobs: int) -> Generator[Part]:
    """Do tasks in so many processes and give what is made of them, bytes and what belongs to them, in the order of the tasks.

    The first few tasks, all of them if `jobs` is 1, are done in this process. An error of a task, and a
    `CdcAvroError` of `tasks` itself, is raised where it stands in the order. Raises `Fault` if a
    process ends. Close the iterator when it is not read to its end.
    """
    _keep_memory()
    tasks = iter(tasks)
    for task in islice(tasks, ALONE) if jobs > 1 else tasks:
        yield from work(task)
    for first in tasks:
        yield from _shared(work, chain((first,), tasks), jobs)


class _Answer(NamedTuple):
    """What a process says of a task: a part of what it made of it, the error that ended it, and whether it is done with it."""

    part: Part | None = None
    error: Exception | None = None
    is_last: bool = False


class _Worker:
    """A process that does tasks. Attributes: `answers`, received and not yet taken; `connection`, where others come."""

    def __init__(self, work: Work) -> None:
        context = get_context("spawn")
        tasks, self._tasks = context.Pipe(duplex=False)
        self.connection, answers = context.Pipe(duplex=False)
        self.answers: deque[_Answer] = deque()
        _widen(answers)
        self._process = context.Process(target=_serve, args=(work, tasks, answers), daemon=True)
        with _undisturbed():
            self._process.start()
        tasks.close()
        answers.close()

    def give(self, task: bytes) -> None:
        """Give it a pickled task."""
        try:
            self._tasks.send_bytes(task)
        except OSError as error:
            raise self._ended() from error

    def receive(self) -> None:
        """Take in its next answer."""
        try:
            self.answers.append(self.connection.recv())
        except (EOFError, OSError) as error:
            raise self._ended() from error

    def stop(self) -> None:
        """End it, whatever it does: it holds nothing that could be lost."""
        self._process.kill()
        self._process.join()
        self._tasks.close()
        self.connection.close()

    def _ended(self) -> Fault:
        self._process.join(_PATIENCE)
        code = self._process.exitcode or 0
        if code < 0:
            return Fault(
                f"a process of --jobs was killed by signal {-code}: perhaps there is not enough memory for all"
            )
        return Fault(f"a process of --jobs ended with exit code {code}")


def _serve(work: Work, tasks: Connection[Any, Any], answers: Connection[Any, Any]) -> None:
    """Do tasks until there are no more; this runs in the other process."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    _keep_memory()
    # Without a reader of its answers, or a giver of tasks, it is not needed any more.
    with suppress(EOFError, BrokenPipeError):
        while True:
            task = tasks.recv()
            last = _Answer()
            try:
                for part in work(task):
                    if last.part is not None:
                        answers.send(last)
                    last = _Answer(part)
            except Exception as error:  # noqa: BLE001  whatever it is, it is raised where the answer is taken
                last = last._replace(error=error)
            answers.send(last._replace(is_last=True))


def _shared(work: Work, tasks: Iterator[Any], jobs: int) -> Iterator[Part]:
    failures: list[CdcAvroError] = []

    def until_failure() -> Iterator[Any]:
        try:
            yield from tasks
        except CdcAvroError as error:
            failures.append(error)

    workers: list[_Worker] = []
    # Whose answers come next.
    turns: deque[_Worker] = deque()
    try:
        for number, task in enumerate(until_failure()):
            if len(workers) < jobs:
                workers.append(_Worker(work))
            worker = workers[number % jobs]
            pickled = pickle.dumps(task)
            while turns.count(worker) >= (_AHEAD if len(pickled) <= _SMALL else 1):
                yield from _answers(turns.popleft(), workers)
            worker.give(pickled)
            turns.append(worker)
        while turns:
            yield from _answers(turns.popleft(), workers)
    finally:
        for worker in workers:
            worker.stop()
    for failure in failures:
        raise failure


def _answers(worker: _Worker, workers: list[_Worker]) -> Iterator[Part]:
    """Give the parts of a worker's next task; meanwhile take in what others have made, up to a bound."""
    while True:
        while not worker.answers:
            open_ones = [one for one in workers if len(one.answers) < _WAITING]
            ready = wait([one.connection for one in open_ones])
            for one in open_ones:
                if one.connection in ready:
                    one.receive()
        answer = worker.answers.popleft()
        if answer.part is not None:
            yield answer.part
        if answer.error is not None:
            raise answer.error
        if answer.is_last:
            return


@contextmanager
def _undisturbed() -> Iterator[None]:
    """Let a process that is started ignore Ctrl-C from its first moment: it ends when this one does."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _widen(connection: Connection[Any, Any]) -> None:
    """Let a pipe hold a whole answer, where the system has it so: whoever writes need not wait for who reads."""
    if sys.platform == "linux":
        with suppress(OSError):
            fcntl.fcntl(connection.fileno(), fcntl.F_SETPIPE_SZ, _ROOM)


def _keep_memory() -> None:
    """Let the allocator keep what is let go for what comes next: parts of half a mebibyte come and go all the time.

    glibc gives blocks above a bound back to the system, which then clears every page anew: a tenth of
    all time. The bound follows the largest block that was let go; this one is never touched, so it
    takes no memory.
    """
    bytes(_KEPT)
