"""Converting and checking parts of files, chunks of lines and blocks of payloads, in threads that share the work.

Each part is converted or checked independently and in any thread. The result for a part depends on nothing but the
part, so the whole does not depend on which thread made it.

The threads' results are written in the order of the tasks, and only a few wait in memory. The engine and zlib release
the interpreter's lock while they work, so that each thread uses a core. What is converted in Python takes turns, unless
each thread has a process for it.
"""

from __future__ import annotations

import hashlib
import pickle
import signal
import sys
from collections import Counter, deque
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from itertools import groupby
from queue import SimpleQueue
from subprocess import PIPE, Popen
from threading import Event, Thread, local
from time import monotonic
from typing import TYPE_CHECKING, Any, BinaryIO, Final, TypeVar

from cdcavro.avro.container import MARKER_BYTES, MAX_BLOCK, Framing, PackedBlock
from cdcavro.errors import CdcAvroError, MessageError, SetupError, StructureError
from cdcavro.wire.format import validate
from cdcavro.wire.formats import get_format
from cdcavro.wire.marked_members import operation_of, version_note
from cdcavro.wire.sniff import sniff

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable, Iterator

    from cdcavro.avro.schema import Schema
    from cdcavro.files.lines import Chunk, Line, Range
    from cdcavro.files.streams import SharedInput
    from cdcavro.wire.format import Format

    Kind = tuple[str, str | None]
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


T = TypeVar("T")
MOST_FAULTS: Final = 1000
_NEVER_IN_TEXT: Final = bytes((0xC0, 0xC1, *range(0xF5, 0x100)))
# For each codec, the bytes of a file that make about two mebibytes of text.
_RUN_BYTES: Final = {"null": 1 << 20, "deflate": 256 << 10}
_TEXT_BYTES: Final = 512 << 10
# A block ends with the piece that reaches the first; no piece has more than the second, so that all blocks can be read.
_BLOCK_BYTES: Final = 32 << 20
_PIECE_BYTES: Final = MAX_BLOCK - _BLOCK_BYTES
# The largest number of pieces that are written one by one; more are joined first.
_FEW: Final = 16


def sync_marker(schema: Schema, codec: str, head: bytes) -> bytes:
    """Return the sync marker of a file, made from its schema, its codec and the text that it starts with.

    So the same input gives the same file, and two files that start with the same chunk have the same
    marker. The marker consists of bytes that never occur in UTF-8, and a payload holds at most ten such
    bytes in a row, in a number. So no message, whoever sent it, can put the marker into an uncompressed
    block. Blocks are found by their lengths; the marker after each is only compared.
    """
    digest = hashlib.blake2b(
        head, digest_size=MARKER_BYTES, key=hashlib.sha256(f"{codec} {schema.json}".encode()).digest()
    )
    return bytes(_NEVER_IN_TEXT[byte % len(_NEVER_IN_TEXT)] for byte in digest.digest())


@dataclass(frozen=True, slots=True)
class Tally:
    """The counts and faults of a chunk, or of a part of it.

    Attributes: `done` (int), the number of messages in the block; `lines` (int), the number of lines in
    the chunk, 0 except in its last part; `faults`, with lines numbered from the first of the chunk; `note`
    (str or None), a sentence about a version that the chunk's messages state; `kinds`, where lines are only looked at:
    the format and operation of some, and their number, in their order. The operation of rejects is None, their format
    empty where it is not known.
    """

    done: int = 0
    lines: int = 0
    faults: tuple[tuple[MessageError, Line], ...] = ()
    note: str | None = None
    kinds: tuple[tuple[Kind, int], ...] = ()


@dataclass(frozen=True, slots=True)
class ChunkEncoder:
    """Makes a block from each chunk of lines, or more if it would be too long. Attributes: `format` (str), the format's name; `framing`."""

    format: str
    framing: Framing

    def __call__(self, task: Chunk | Range) -> Iterator[tuple[list[bytes], Tally]]:
        """Yield the faults of a chunk, some at a time, then the pieces of its blocks. Raises `FileError`."""
        chunk = task.read()
        encoded = _Payloads()
        for faults in _group(encoded.add(chunk, get_format(self.format)), lambda _: 1, MOST_FAULTS):
            yield [], Tally(faults=tuple(faults))
        *blocks, (last, count) = encoded.blocks() or [([], 0)]
        for payloads, done in blocks:
            yield self.framing.pack_pieces(payloads, done), Tally(done)
        note = version_note(chunk.raw, self.format)
        yield self.framing.pack_pieces(last, count) if count else [], Tally(count, encoded.lines, note=note)


class _Payloads:
    """The payloads of a chunk. Attribute: `lines` (int), how many lines were read."""

    def __init__(self) -> None:
        self._pieces: list[tuple[bytes, int]] = []
        self.lines = 0

    def add(self, chunk: Chunk, format: Format) -> Iterator[tuple[MessageError, Line]]:
        """Add the payloads of all lines, and yield the faults of those that cannot be encoded."""
        is_long, position = chunk.is_long, 0
        while position >= 0:
            if not is_long:
                payloads, count, behind = format.encode_text(chunk.raw, position)
                # Lines that are too long together may be short enough one by one.
                is_long = len(payloads) > _PIECE_BYTES
                if not is_long:
                    self._add(payloads, count)
                    position = behind
            line, position = chunk.line(position, self.lines + 1)
            if line is None:
                return
            try:
                self._add(format.encode(line.message()), 1)
            except MessageError as error:
                error.format = format.name
                self.lines += 1
                yield error, line

    def blocks(self) -> list[tuple[list[bytes], int]]:
        """Return the payloads of each block, in few pieces, and their number; a block stays far below what is read."""
        blocks = _group(self._pieces, lambda piece: len(piece[0]), _BLOCK_BYTES)
        return [(_join([payloads for payloads, _ in block]), sum(count for _, count in block)) for block in blocks]

    def _add(self, payloads: bytes, count: int) -> None:
        if len(payloads) > _PIECE_BYTES:
            raise StructureError(f"payloads of at most {_PIECE_BYTES} bytes", str(len(payloads)))
        if count:
            self._pieces.append((payloads, count))
            self.lines += count


@dataclass(frozen=True, slots=True)
class ChunkSniffer:
    """Detects the format of each line of a chunk; `kinds` are the lines in their order, those that are alike together."""

    def __call__(self, task: Chunk | Range) -> Iterator[tuple[list[bytes], Tally]]:
        """Yield the faults of a chunk, some at a time, then its kinds. Raises `FileError`."""
        seen = _Kinds(lambda message: (sniff(message), ""))
        yield from seen.faults(task.read())
        kinds = tuple((kind, sum(1 for _ in run)) for kind, run in groupby(seen.kinds))
        yield [], Tally(lines=len(seen.kinds), kinds=kinds)


@dataclass(frozen=True, slots=True)
class ChunkValidator:
    """Checks that each line of a chunk survives the conversion to Avro and back; `kinds` are counts of all lines.

    Attribute: `format` (str), the format's name, empty if it is to be detected for each line.
    """

    format: str

    def __call__(self, task: Chunk | Range) -> Iterator[tuple[list[bytes], Tally]]:
        """Yield the faults of a chunk, some at a time, then its kinds. Raises `FileError`."""
        notes: list[str] = []

        def check(message: bytes) -> Kind:
            format = get_format(self.format or sniff(message))
            note = None if notes else version_note(message, format.name)
            notes.extend([] if note is None else [note])
            return format.name, operation_of(validate(message, format), format)

        seen = _Kinds(check, self.format)
        yield from seen.faults(task.read())
        yield [], Tally(lines=len(seen.kinds), note=next(iter(notes), None), kinds=tuple(Counter(seen.kinds).items()))


class _Kinds:
    """The kinds of a chunk's lines (`kinds`), as a function tells them; `format` is that of rejects that name none."""

    def __init__(self, kind_of: Callable[[bytes], Kind], format: str = "") -> None:
        self._kind_of, self._format = kind_of, format
        self.kinds: list[Kind] = []

    def faults(self, chunk: Chunk) -> Iterator[tuple[list[bytes], Tally]]:
        """Look at all lines, and yield the faults, some at a time."""
        for faults in _group(self._look(chunk), lambda _: 1, MOST_FAULTS):
            yield [], Tally(faults=tuple(faults))

    def _look(self, chunk: Chunk) -> Iterator[tuple[MessageError, Line]]:
        for line in chunk.lines():
            try:
                self.kinds.append(self._kind_of(line.message()))
            except MessageError as error:
                error.format = error.format or self._format or None
                self.kinds.append((error.format or "", None))
                yield error, line


@dataclass(frozen=True, slots=True)
class BlockRun:
    """Consecutive blocks: as they were read, or only where they lie in the file `place`."""

    blocks: tuple[PackedBlock, ...]
    place: SharedInput | None = None

    def frames(self) -> Iterator[PackedBlock]:
        """Yield the blocks. Raises `FileError`."""
        for block in self.blocks:
            end = block.start + block.size
            packed = block.packed if self.place is None else self.place.read(block.start, end)
            yield PackedBlock(block.count, block.place, block.start, block.size, packed)


def group_blocks(frames: Iterable[PackedBlock], framing: Framing, place: SharedInput | None) -> Iterator[BlockRun]:
    """Yield runs of consecutive blocks: where they lie, if the file has a `place`, otherwise the blocks themselves."""
    for run in _group(frames, lambda frame: frame.size, _RUN_BYTES[framing.codec]):
        yield BlockRun(tuple(run), place)


@dataclass(frozen=True, slots=True)
class BlockDecoder:
    """Makes lines from blocks.

    Attributes: `format` (str), the format's name; `writer`, the schema that wrote the payloads; `framing`;
    `file` (str), the file's name for errors.
    """

    format: str
    writer: Schema
    framing: Framing
    file: str

    def __call__(self, task: BlockRun) -> Iterator[tuple[list[bytes], int]]:
        """Yield some pieces of text at a time, and how many lines they hold.

        Raises `FileError`, `PayloadError`, `ResolutionError`.
        """
        for group in _group(self._pieces(task), lambda piece: len(piece[0]), _TEXT_BYTES):
            yield _join([lines for lines, _ in group]), sum(count for _, count in group)

    def _pieces(self, task: BlockRun) -> Iterator[tuple[bytes, int]]:
        format = get_format(self.format)
        for frame in task.frames():
            block = self.framing.unpack(frame, self.file)
            yield from format.decode_block(block.payloads, block.count, self.writer)


def _join(pieces: list[bytes]) -> list[bytes]:
    return pieces if len(pieces) <= _FEW else [b"".join(pieces)]


def _group(items: Iterable[T], size: Callable[[T], int], most: int) -> Iterator[list[T]]:
    """Yield lists of consecutive items, each until its size reaches `most`; the items before an error are yielded first."""
    group: list[T] = []
    room = most
    try:
        for item in items:
            group.append(item)
            room -= size(item)
            if room <= 0:
                yield group
                group, room = [], most
    except CdcAvroError:
        if group:
            yield group
        raise
    if group:
        yield group
