"""Sharing work among processes: their results are written in the order of the tasks, and only a few wait in memory.

Each process is started afresh, never forked. It has one pipe for its orders and one for its answers, and
ends when these pipes close, even if this process is killed. If it is killed itself, that is an error
here, never an endless wait. An order is a task, or the place in the file for a part that is finished: a
file is written by each process itself, anything else by this one.
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

    # Pieces to be written one after another, and a note for the caller.
    Part = tuple[list[bytes], Any]
    Work = Callable[[Any], Iterable[Part]]

# The number of tasks done in this process: small inputs end before another process would have started.
ALONE: Final = 8
# A task that waits in a process's pipe while the task before it is done must fit into the pipe. Otherwise this
# process would wait for the other to read the task, and the other for this one to read answers.
_AHEAD: Final = 2
_SMALL: Final = 1 << 10
_WAITING: Final = 8
# How many bytes of parts without a place a process holds; beyond that it waits for a place.
_HELD: Final = 8 << 20
_PATIENCE: Final = 5.0
_KEPT: Final = 8 << 20
_ROOM: Final = 1 << 20


def in_order(work: Work, tasks: Iterable[Any], jobs: int, out: BinaryIO) -> Generator[Any]:
    """Do tasks in `jobs` processes, write their parts to `out` in the order of the tasks, and yield each part's note.

    The first few tasks, or all if `jobs` is 1, are done in this process. An error of a task, and a
    `CdcAvroError` of `tasks` itself, is raised at its place in the order. Raises `JobError` if a process
    ends, and `OSError` if `out` cannot be written. Close the iterator if you do not read it to its end. A
    file of our own may then have gaps, as after an error, and must be removed, as `open_output` does.
    """
    _keep_memory()
    target = OutputFile(out)
    tasks = iter(tasks)
    for task in islice(tasks, ALONE) if jobs > 1 else tasks:
        for pieces, note in work(task):
            target.append(pieces)
            yield note
    for first in tasks:
        yield from _shared(work, chain((first,), tasks), jobs, target)


class _Order(NamedTuple):
    """An order to a process: do a task, write the oldest waiting part at a place, or neither, to confirm all writes."""

    task: Any = None
    place: int | None = None
    is_task: bool = False


class _Answer(NamedTuple):
    """What a process reports about a task.

    Attributes: `pieces` and `note`, a part of the result, with the `size` in place of the pieces if the
    process writes them itself; `has_part`, whether there is such a part; `error`, the exception that ended
    the task; `is_last`, whether the task is finished.
    """

    pieces: Sequence[bytes] = ()
    size: int = 0
    note: Any = None
    has_part: bool = False
    error: Exception | None = None
    is_last: bool = False


class _Worker:
    """A process that does tasks. Attributes: `answers`, received but not yet used; `connection`, where more arrive."""

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

    def send(self, order: bytes) -> None:
        """Send the process a pickled order, receiving answers until there is room, since it may be waiting for that."""
        while sys.platform == "linux" and not self._takes_orders():
            self.receive()
        try:
            self._orders.send_bytes(order)
        except OSError as error:
            raise self._ended() from error

    def receive(self) -> None:
        """Receive the next answer of the process."""
        try:
            self.answers.append(self.connection.recv())
        except (EOFError, OSError) as error:
            raise self._ended() from error

    def stop(self) -> None:
        """Kill the process, whatever it is doing: it holds nothing that could be lost."""
        self._process.kill()
        self._process.join()
        self._orders.close()
        self.connection.close()

    def _takes_orders(self) -> bool:
        """Wait until there is room for an order or an answer to receive, and return whether there is room."""
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
    """Carry out orders until there are no more; this runs in the other process."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    _keep_memory()
    # When nobody reads its answers or sends it orders, the process is no longer needed.
    with suppress(EOFError, BrokenPipeError):
        _Servant(work, file, orders, answers).serve()


class _Servant:
    """Carries out orders, in its own process."""

    def __init__(
        self, work: Work, file: SharedFile | None, orders: Connection[Any, Any], answers: Connection[Any, Any]
    ) -> None:
        self._work, self._orders, self._answers = work, orders, answers
        self._waiting = None if file is None else PendingParts(file)
        self._tasks: deque[_Order] = deque()

    def serve(self) -> None:
        """Do one task after the other. Raises `EOFError` or `BrokenPipeError` when the other process is gone."""
        while True:
            while not self._tasks or self._orders.poll():
                self._take()
            order = self._tasks.popleft()
            last = _Answer()
            try:
                for pieces, note in self._work(order.task) if order.is_task else ():
                    if last.has_part:
                        self._answers.send(last)
                    last = self._answer(pieces, note)
            except Exception as error:  # noqa: BLE001  whatever it is, it is raised where the answer is used
                last = last._replace(error=error)
            self._answers.send(last._replace(is_last=True))

    def _answer(self, pieces: list[bytes], note: Any) -> _Answer:
        if self._waiting is None or not any(pieces):
            return _Answer(pieces, 0, note, has_part=True)
        while self._waiting.size > _HELD:
            self._take()
        return _Answer((), self._waiting.add(pieces), note, has_part=True)

    def _take(self) -> None:
        """Receive an order, and write a part at once if that is the order."""
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
    # The workers whose answers come next, in the order of their tasks.
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
            worker.send(order)
            turns.append(worker)
        while turns:
            yield from _answers(turns.popleft(), workers, target)
        for worker in workers:
            worker.send(pickle.dumps(_Order()))
            yield from _answers(worker, workers, target)
    finally:
        for worker in workers:
            worker.stop()
        target.end()
    for failure in failures:
        raise failure


def _answers(worker: _Worker, workers: list[_Worker], target: OutputFile) -> Iterator[Any]:
    """Write the parts of a worker's next task, or assign their places, and yield their notes.

    Meanwhile receive answers from other workers, up to a bound.
    """
    while True:
        while not worker.answers:
            receiving = [peer for peer in workers if len(peer.answers) < _WAITING]
            ready = wait([peer.connection for peer in receiving])
            for peer in receiving:
                if peer.connection in ready:
                    peer.receive()
        answer = worker.answers.popleft()
        if answer.has_part:
            if answer.size:
                worker.send(pickle.dumps(_Order(place=target.place(answer.size))))
            else:
                target.append(answer.pieces)
            yield answer.note
        if answer.error is not None:
            raise answer.error
        if answer.is_last:
            return


@contextmanager
def _undisturbed() -> Iterator[None]:
    """Let a process that is started here ignore Ctrl-C from its first moment: it ends when this one does."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _widen(connection: Connection[Any, Any]) -> None:
    """Let a pipe hold a whole answer, if the system allows it, so that the writer need not wait for the reader."""
    if sys.platform == "linux":
        with suppress(OSError):
            fcntl.fcntl(connection.fileno(), fcntl.F_SETPIPE_SZ, _ROOM)


def _keep_memory() -> None:
    """Let the allocator keep freed memory for reuse, because parts of half a mebibyte come and go all the time.

    glibc returns freed blocks above a threshold to the system, which then clears every page again: a tenth
    of the whole time. The threshold follows the largest block that was freed; the block freed here is
    never touched, so it takes no memory.
    """
    bytes(_KEPT)
