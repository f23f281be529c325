"""Threads that share the work on a file: their results are written in the order of the tasks, and only a few wait in memory.

The engine and zlib release the interpreter's lock while they work, so that each thread uses a core. What is converted in
Python takes turns, unless each thread has a process for it.
"""

from __future__ import annotations

import pickle
import signal
import sys
from collections import deque
from contextlib import contextmanager, suppress
from functools import partial
from queue import SimpleQueue
from subprocess import PIPE, Popen
from threading import Event, Thread, local
from time import monotonic
from typing import TYPE_CHECKING, Any, BinaryIO, Final

from cdcavro.errors import CdcAvroError, SetupError

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable, Iterator

    # Pieces to be written one after another, and a note for the caller.
    Part = tuple[list[bytes], Any]
    Work = Callable[[Any], Iterable[Part]]
    Order = Callable[[], Iterable[Part]]
    Begin = Callable[[Callable[[], Any]], Callable[[], Any]]

# How many tasks are handed out beyond those that are being done, so that no thread waits for the writer.
_AHEAD: Final = 2
# How many parts of one task wait to be written; its thread then waits, too.
_WAITING: Final = 4
# Seconds: to look whether a thread is still wanted, and to wait for its end.
_MOMENT: Final = 0.1
_PATIENCE: Final = 1.0
_KEPT: Final = 8 << 20


def write_in_order(
    work: Work, tasks: Iterable[Any], jobs: int, out: BinaryIO | None, *, in_processes: bool = False
) -> Generator[Any]:
    """Do tasks in `jobs` threads, write their parts to `out` in the order of the tasks, and yield each part's note.

    Without `out` parts have only notes. `in_processes` gives each thread a process for work on chunks of lines that is
    done in Python. With one job, all is done in this thread. An error of a task, and a `CdcAvroError` of `tasks` itself, is raised at
    its place in the order; what comes before it is written. Close the iterator if you do not read it to its end.
    """
    _keep_memory()
    shared = _InProcesses(work) if in_processes and jobs > 1 else None
    parts = _work_shared(shared or work, tasks, jobs) if jobs > 1 else _work_alone(work, tasks)
    try:
        for pieces, note in parts:
            if out is not None:
                out.writelines(pieces)
            yield note
    finally:
        if shared is not None:
            shared.kill()
        parts.close()
        if shared is not None:
            shared.close()


class _InProcesses:
    """Work on chunks that each thread has done in a process of its own, to which it sends what it reads of the file.

    Everything that goes to and fro can be pickled. Processes are started as threads need them.
    """

    def __init__(self, work: Work) -> None:
        self._work = work
        self._here = local()
        self._all: list[Popen[bytes]] = []

    def __call__(self, task: Any) -> Iterator[Part]:
        """Yield the parts of a task, and raise what ended it. Raises `SetupError` if the process is gone."""
        process = self._process()
        try:
            pickle.dump(task.read(), process.stdin)
            process.stdin.flush()
            while (part := pickle.load(process.stdout)) is not None:  # noqa: S301  a process of ours wrote it
                if isinstance(part, Exception):
                    raise part
                yield part
        except (EOFError, BrokenPipeError, pickle.UnpicklingError) as error:
            raise SetupError("a process that worked on the input has ended; with --jobs 1 there is none") from error

    def kill(self) -> None:
        """End the processes, so that no thread waits for one."""
        for process in self._all:
            process.kill()

    def close(self) -> None:
        """Close what led to the processes, when no thread uses it."""
        for process in self._all:
            process.communicate()

    def _process(self) -> Any:
        if not hasattr(self._here, "process"):
            # A process that is forked from one with threads may wait for ever for what another thread had locked.
            # It imports from where this one does, and not what lies in the folder that the command runs in.
            begin = f"import sys; sys.path[:] = {sys.path!r}; from {__name__} import serve; serve()"
            command = [sys.executable, "-P", "-c", begin]
            process: Any = Popen(command, stdin=PIPE, stdout=PIPE)  # noqa: S603  Python itself
            self._here.process = process
            self._all.append(process)
            pickle.dump(self._work, process.stdin)
        return self._here.process


def serve() -> None:
    """Do the tasks that come through standard input, the work before them, until it ends."""
    # Ctrl-C reaches all processes of a terminal, and the first one ends the others.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    tasks, parts = sys.stdin.buffer, sys.stdout.buffer
    with suppress(EOFError, BrokenPipeError):
        work = pickle.load(tasks)  # noqa: S301  the process that started this one wrote it
        while True:
            task = pickle.load(tasks)  # noqa: S301  as above
            try:
                for part in work(task):
                    pickle.dump(part, parts)
            except CdcAvroError as error:
                pickle.dump(error, parts)
            else:
                pickle.dump(None, parts)
            parts.flush()


def _work_alone(work: Work, tasks: Iterable[Any]) -> Generator[Part]:
    for task in tasks:
        yield from work(task)


def _work_shared(work: Work, tasks: Iterable[Any], jobs: int) -> Generator[Part]:
    crew = _Crew(jobs)
    begun: deque[_Result] = deque()
    try:
        for make in _orders(work, tasks):
            if len(begun) == jobs + _AHEAD:
                yield from begun.popleft().parts()
            begun.append(crew.begin(make))
        while begun:
            yield from begun.popleft().parts()
    finally:
        crew.dismiss()


def _orders(work: Work, tasks: Iterable[Any]) -> Iterator[Order]:
    """Yield what is to be done for each task; an error of `tasks` is raised by what is done last."""
    try:
        for task in tasks:
            yield partial(work, task)
    except CdcAvroError as error:
        yield partial(_fail, error)


def _fail(error: CdcAvroError) -> Iterable[Part]:
    raise error


@contextmanager
def start_threads(jobs: int) -> Iterator[Begin]:
    """Yield a function that begins a piece of work in one of `jobs` threads and returns a function that waits for its result.

    With one job, the work is done when its result is waited for. An error of a piece of work is raised there, too.
    """
    _keep_memory()
    if jobs == 1:
        yield lambda work: work
        return
    crew = _Crew(jobs)

    def begin(work: Callable[[], Any]) -> Callable[[], Any]:
        result = crew.begin(lambda: [([], work())])
        return lambda: next(result.parts())[1]

    try:
        yield begin
    finally:
        crew.dismiss()


class _Result:
    """The parts that a task yields, of which a few wait. `is_over` is set when they are not wanted any more."""

    def __init__(self, make: Order, is_over: Event) -> None:
        self._make = make
        self._is_over = is_over
        self._has_room = Event()
        self._waiting: SimpleQueue[Part | Exception | None] = SimpleQueue()

    def fill(self) -> None:
        """Do the task. Its parts are followed by None, or by the error that ended it."""
        try:
            for part in self._make():
                if not self._put(part):
                    return
        except Exception as error:  # noqa: BLE001  whatever it is, it is raised where the parts are used
            self._put(error)
        else:
            self._put(None)

    def parts(self) -> Iterator[Part]:
        """Yield the parts as they come; raise the error that ended the task."""
        while (part := self._waiting.get()) is not None:
            if isinstance(part, Exception):
                raise part
            if not self._has_room.is_set():
                self._has_room.set()
            yield part

    def _put(self, part: Part | Exception | None) -> bool:
        """Add a part when there is room, and return whether anybody wants it."""
        # A queue with a bound of its own would take a lock for each part, also while there is room.
        while self._waiting.qsize() >= _WAITING and not self._is_over.is_set():
            self._has_room.clear()
            if self._waiting.qsize() >= _WAITING:
                self._has_room.wait(_MOMENT)
        self._waiting.put(part)
        return not self._is_over.is_set()


class _Crew:
    """At most `most` threads, which are started as they are needed."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._threads: list[Thread] = []
        self._orders: SimpleQueue[_Result | None] = SimpleQueue()
        self._is_over = Event()

    def begin(self, make: Order) -> _Result:
        """Let a thread do a task, and return its result."""
        if len(self._threads) < self._most:
            # Python does not wait for these threads at its end, so that Ctrl-C is not kept by one large message.
            self._threads.append(Thread(target=self._serve, daemon=True))
            self._threads[-1].start()
        result = _Result(make, self._is_over)
        self._orders.put(result)
        return result

    def dismiss(self) -> None:
        """End the threads, whatever they are doing, and wait for them a little."""
        self._is_over.set()
        for _ in self._threads:
            self._orders.put(None)
        last = monotonic() + _PATIENCE
        for thread in self._threads:
            thread.join(max(0.0, last - monotonic()))

    def _serve(self) -> None:
        while (result := self._orders.get()) is not None and not self._is_over.is_set():
            result.fill()


def _keep_memory() -> None:
    """Let the allocator keep freed memory for reuse, because parts of half a mebibyte come and go all the time.

    glibc returns freed blocks above a threshold to the system, which then clears every page again: a tenth
    of the whole time. The threshold follows the largest block that was freed; the block freed here is
    never touched, so it takes no memory.
    """
    bytes(_KEPT)
