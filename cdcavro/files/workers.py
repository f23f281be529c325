"""Work shared among processes: what they make is written in the order of the tasks, and only so much of it waits.

Each process is started anew, never forked, has one pipe for its orders and one for its answers, and
ends when the pipes do: also if this process is killed. One that is killed itself is an error here,
never a wait without end. An order is a task, or the place in the file of a part that was made: into a
file each process writes itself, into anything else this one does.
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
from typing import TYPE_CHECKING, Any, BinaryIO, Final, NamedTuple

from cdcavro.errors import CdcAvroError, JobError
from cdcavro.files.shared_output import OutputFile, PendingParts, SharedFile

if sys.platform == "linux":
    import fcntl
    from select import POLLIN, POLLOUT, poll

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
    from multiprocessing.connection import Connection

    # Pieces that stand one behind another, and what is told with them.
    Part = tuple[list[bytes], Any]
    Work = Callable[[Any], Iterable[Part]]

# Small inputs end before a process would have started.
ALONE: Final = 8
# A task that waits in a process's pipe while the one before it is done must fit in there: this process would wait for
# that one to read it, and that one for this one to read answers.
_AHEAD: Final = 2
_SMALL: Final = 1 << 10
_WAITING: Final = 8
# What a process holds for want of a place; beyond that it waits for one.
_HELD: Final = 8 << 20
_PATIENCE: Final = 5.0
_KEPT: Final = 8 << 20
_ROOM: Final = 1 << 20


def in_order(work: Work, tasks: Iterable[Any], jobs: int, out: BinaryIO) -> Generator[Any]:
    """Do tasks in so many processes, write what is made of them in the order of the tasks, and give what is told with each part.

    The first few tasks, all of them if `jobs` is 1, are done in this process. An error of a task, and a
    `CdcAvroError` of `tasks` itself, is raised where it stands in the order. Raises `JobError` if a
    process ends, `OSError` if `out` cannot be written. Close the iterator when it is not read to its end.
    A file of our own may then have gaps, and after an error: it is to be removed, as `open_output` does.
    """
    _keep_memory()
    target = OutputFile(out)
    tasks = iter(tasks)
    for task in islice(tasks, ALONE) if jobs > 1 else tasks:
        for pieces, told in work(task):
            target.append(pieces)
            yield told
    for first in tasks:
        yield from _shared(work, chain((first,), tasks), jobs, target)


class _Order(NamedTuple):
    """What a process is to do: a task, or to write the part that waits longest at a place; neither is to say when all is written."""

    task: Any = None
    place: int | None = None
    is_task: bool = False


class _Answer(NamedTuple):
    """What a process says of a task.

    Attributes: `pieces` and `told`, a part of what it made of it, or instead of pieces the `size` of those
    that it writes itself; `has_part`; `error`, which ended the task; `is_last`, whether it is done with it.
    """

    pieces: Sequence[bytes] = ()
    size: int = 0
    told: Any = None
    has_part: bool = False
    error: Exception | None = None
    is_last: bool = False


class _Worker:
    """A process that does tasks. Attributes: `answers`, received and not yet taken; `connection`, where others come."""

    def __init__(self, work: Work, file: SharedFile | None) -> None:
        context = get_context("spawn")
        orders, self._orders = context.Pipe(duplex=False)
        self.connection, answers = context.Pipe(duplex=False)
        self.answers: deque[_Answer] = deque()
        _widen(answers)
        self._process = context.Process(target=_serve, args=(work, file, orders, answers), daemon=True)
        with _undisturbed():
            self._process.start()
        orders.close()
        answers.close()

    def give(self, order: bytes) -> None:
        """Return it a pickled order; while it takes none, take in its answers: it may wait for that."""
        while sys.platform == "linux" and not self._takes_orders():
            self.receive()
        try:
            self._orders.send_bytes(order)
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
        self._orders.close()
        self.connection.close()

    def _takes_orders(self) -> bool:
        """Wait until there is room for an order, or an answer to take in."""
        waiting = poll()
        waiting.register(self._orders, POLLOUT)
        waiting.register(self.connection, POLLIN)
        return any(number == self._orders.fileno() for number, _ in waiting.poll())

    def _ended(self) -> JobError:
        self._process.join(_PATIENCE)
        code = self._process.exitcode or 0
        if code < 0:
            return JobError(
                f"a process of --jobs was killed by signal {-code}: perhaps there is not enough memory for all"
            )
        return JobError(f"a process of --jobs ended with exit code {code}")


def _serve(work: Work, file: SharedFile | None, orders: Connection[Any, Any], answers: Connection[Any, Any]) -> None:
    """Do what is ordered until there are no more orders; this runs in the other process."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    _keep_memory()
    # Without a reader of its answers, or a giver of orders, it is not needed any more.
    with suppress(EOFError, BrokenPipeError):
        _Servant(work, file, orders, answers).serve()


class _Servant:
    """Does what is ordered, in its own process."""

    def __init__(
        self, work: Work, file: SharedFile | None, orders: Connection[Any, Any], answers: Connection[Any, Any]
    ) -> None:
        self._work, self._orders, self._answers = work, orders, answers
        self._waiting = None if file is None else PendingParts(file)
        self._tasks: deque[_Order] = deque()

    def serve(self) -> None:
        """Do one task after the other. Raises `EOFError`, `BrokenPipeError` when nobody is there any more."""
        while True:
            while not self._tasks or self._orders.poll():
                self._take()
            order = self._tasks.popleft()
            last = _Answer()
            try:
                for pieces, told in self._work(order.task) if order.is_task else ():
                    if last.has_part:
                        self._answers.send(last)
                    last = self._answer(pieces, told)
            except Exception as error:  # noqa: BLE001  whatever it is, it is raised where the answer is taken
                last = last._replace(error=error)
            self._answers.send(last._replace(is_last=True))

    def _answer(self, pieces: list[bytes], told: Any) -> _Answer:
        if self._waiting is None or not any(pieces):
            return _Answer(pieces, 0, told, has_part=True)
        while self._waiting.size > _HELD:
            self._take()
        return _Answer((), self._waiting.add(pieces), told, has_part=True)

    def _take(self) -> None:
        """Take an order: do what can be done at once."""
        order: _Order = self._orders.recv()
        if order.place is None or self._waiting is None:
            self._tasks.append(order)
            return
        try:
            self._waiting.write(order.place)
        except OSError as error:
            self._answers.send(_Answer(error=error))


def _shared(work: Work, tasks: Iterator[Any], jobs: int, target: OutputFile) -> Iterator[Any]:
    failures: list[CdcAvroError] = []

    def until_failure() -> Iterator[Any]:
        try:
            yield from tasks
        except CdcAvroError as error:
            failures.append(error)

    workers: list[_Worker] = []
    # Whose answers come next.
    turns: deque[_Worker] = deque()
    target.begin()
    try:
        for number, task in enumerate(until_failure()):
            if len(workers) < jobs:
                workers.append(_Worker(work, target.shared))
            worker = workers[number % jobs]
            order = pickle.dumps(_Order(task, is_task=True))
            while turns.count(worker) >= (_AHEAD if len(order) <= _SMALL else 1):
                yield from _answers(turns.popleft(), workers, target)
            worker.give(order)
            turns.append(worker)
        while turns:
            yield from _answers(turns.popleft(), workers, target)
        for worker in workers:
            worker.give(pickle.dumps(_Order()))
            yield from _answers(worker, workers, target)
    finally:
        for worker in workers:
            worker.stop()
        target.end()
    for failure in failures:
        raise failure


def _answers(worker: _Worker, workers: list[_Worker], target: OutputFile) -> Iterator[Any]:
    """Write, or place, the parts of a worker's next task, and give what is told with them.

    Meanwhile take in what others have made, up to a bound.
    """
    while True:
        while not worker.answers:
            open_ones = [one for one in workers if len(one.answers) < _WAITING]
            ready = wait([one.connection for one in open_ones])
            for one in open_ones:
                if one.connection in ready:
                    one.receive()
        answer = worker.answers.popleft()
        if answer.has_part:
            if answer.size:
                worker.give(pickle.dumps(_Order(place=target.place(answer.size))))
            else:
                target.append(answer.pieces)
            yield answer.told
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
