"""The main job in this process: files of JSON lines into Avro container files, and rejects, as Spark's job writes them.

Lines are read one file behind another, and converted by several threads, some mebibytes at a time; what becomes of them
is written in their order, so that little of it is in memory at a time.
"""

from __future__ import annotations

import os
import shutil
from collections import Counter, deque
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from functools import partial
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Self

import pyarrow as pa
import pyarrow.compute as pc

from cdcavro.arrow.arrays import RowsError, convert_values
from cdcavro.arrow.record_batches import Reading, read_batch, reading_of
from cdcavro.avro.binary import Decoder
from cdcavro.avro.container import Framing, header
from cdcavro.errors import FileError, number_of
from cdcavro.files.block_codec import start_threads, sync_marker
from cdcavro.files.lines import HEAD_BYTES, Line
from cdcavro.files.rejects import Reject, Report, convert_line, formats_of, note_of_hidden
from cdcavro.files.streams import local_folder, open_output, plain_path
from cdcavro.sync.reading.file_source import FileReader, is_hidden
from cdcavro.wire.formats import get_format
from cdcavro.wire.marked_members import NONE, TOMBSTONE, operation_paths, tombstone_pointers
from cdcavro.wire.sniff import AUTO, MIXED

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from types import TracebackType
    from typing import BinaryIO

    from cdcavro.errors import MessageError
    from cdcavro.files.streams import Say
    from cdcavro.sync.reading.file_source import TakenFile

    Show = Callable[[int, int], None]

# A task is full when it has so many bytes, or so many lines: an error has up to some kilobytes, however short its line.
_TASK_BYTES: Final = 4 << 20
_TASK_ROWS: Final = 1 << 14
# How many tasks wait beyond those that are being done.
_AHEAD: Final = 2
# Every reader's standard library has it.
_CODEC: Final = "deflate"
# A block of payloads is full when it has so many bytes.
_BLOCK_BYTES: Final = 1 << 20
_DONE: Final = "_SUCCESS"


class Lines(NamedTuple):
    """Lines of a file, one after another."""

    # The file's path.
    file: str
    # The number of the first, from 1.
    first: int
    # The format of all; an empty text if each is to be sniffed.
    format: str
    # Columns `raw` and `length`.
    batch: pa.RecordBatch

    def line(self, i: int) -> Line:
        """Return a line."""
        raw, length = self.batch.column("raw")[i].as_py(), self.batch.column("length")[i].as_py()
        return Line(self.first + i, raw, length)


@dataclass
class Converted:
    """What becomes of some lines."""

    # Of each format the blocks of a container file, in pieces.
    blocks: dict[str, list[bytes]] = field(default_factory=dict)
    # How many messages there are, by format and operation.
    written: Counter[tuple[str, str]] = field(default_factory=Counter)
    rejects: list[Reject] = field(default_factory=list)
    # How many lines were read.
    read: int = 0


def run(
    inputs: Sequence[str],
    out: str,
    *,
    format: str = AUTO,
    force: bool = False,
    say: Say = lambda _: None,
    show: Show = lambda _, __: None,
) -> Report:
    """Convert files as `cdcavro.spark.job.run` does, without Spark, and return the counts.

    `show` is called from time to time with the number of messages that are converted, and of the file that is read.
    Raises `UnknownFormatError`, and `FileError` if an input is missing or cannot be read, if the output exists, and for
    addresses of other machines.
    """
    if format not in (AUTO, MIXED):
        get_format(format)
    folder = local_folder(out)
    if folder is None:
        raise FileError(out, "a folder of this machine, as Spark is not used", "an address of others")
    for name in ("payloads", "rejects"):
        make_room(folder / name, f"{out}/{name}", force=force)
    passed_over = note_of_hidden(inputs)
    if passed_over is not None:
        say(passed_over)
    files = _files_of(inputs)
    say(f"converting {number_of(len(files), 'file')}")
    reading = _Inputs(files, format, say)
    with _Output(folder) as output:
        for done in _convert(reading.lines()):
            output.write(done)
            show(output.read, reading.begun)
    return output.report


def make_room(folder: Path, called: str, *, force: bool) -> None:
    """Remove a folder of an earlier run, if that is allowed. Raises `FileError` if it is not."""
    if not os.path.lexists(folder):
        return
    if not force:
        raise FileError(called, "a new folder (--force replaces one)", "one that exists")
    shutil.rmtree(folder) if folder.is_dir() and not folder.is_symlink() else folder.unlink()


def _files_of(inputs: Sequence[str]) -> list[tuple[FileReader, TakenFile]]:
    """Return the files that are read, each once, in the order of their names. Raises `FileError`."""
    found: dict[str, tuple[FileReader, TakenFile]] = {}
    for path in inputs:
        if is_hidden(Path(path).name) and Path(path).is_file():
            raise FileError(path, "a name that is read", "one that starts with _ or .")
        reader = FileReader(path)
        files = reader.new(frozenset())
        if not files and not Path(plain_path(path)).exists():
            raise FileError(path, "a file or folder", "none")
        found.update((file.uri, (reader, file)) for file in files)
    return [found[uri] for uri in sorted(found)]


class _Inputs:
    """Reads files one after another."""

    def __init__(self, files: Sequence[tuple[FileReader, TakenFile]], format: str, say: Say) -> None:
        self._files, self._format, self._say = files, format, say
        self._is_noted = False
        # How many files have been begun.
        self.begun = 0

    def lines(self) -> Iterator[Lines]:
        """Yield the lines of all files. Raises `FileError`."""
        for reader, file in self._files:
            self.begun += 1
            batches = reader.batches(file, self._say)
            name, batches = ("", batches) if self._format == MIXED else self._begin(file.path, batches)
            first = 1
            for batch in batches:
                yield Lines(file.path, first, name, batch)
                first += batch.num_rows

    def _begin(self, path: str, batches: Iterator[pa.RecordBatch]) -> tuple[str, Iterator[pa.RecordBatch]]:
        """Return the format of a file, as its first lines show it, and all its batches."""
        begun: list[pa.RecordBatch] = []
        head: list[Line] = []
        size = 0
        for batch in batches:
            begun.append(batch)
            for line in zip(batch.column("raw").to_pylist(), batch.column("length").to_pylist(), strict=True):
                size += line[1] + 1
                if size > HEAD_BYTES:
                    break
                head.append(Line(len(head) + 1, *line))
            if size > HEAD_BYTES:
                break
        formats, notes = formats_of({path: head}, self._format)
        if notes and not self._is_noted:
            self._is_noted = True
            self._say(notes[0])
        return formats[path], chain(begun, batches)


def _convert(lines: Iterable[Lines]) -> Iterator[Converted]:
    """Yield what becomes of lines, in their order, while threads convert those that follow."""
    jobs = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    waiting: deque[Callable[[], Any]] = deque()
    with start_threads(jobs) as begin:
        for task in _tasks(lines):
            if len(waiting) == jobs + _AHEAD:
                yield waiting.popleft()()
            waiting.append(begin(partial(convert, task)))
        while waiting:
            yield waiting.popleft()()


def _tasks(lines: Iterable[Lines]) -> Iterator[list[Lines]]:
    task: list[Lines] = []
    size = count = 0
    for some in lines:
        if task and (size + some.batch.nbytes > _TASK_BYTES or count + some.batch.num_rows > _TASK_ROWS):
            yield task
            task, size, count = [], 0, 0
        task.append(some)
        size += some.batch.nbytes
        count += some.batch.num_rows
    if task:
        yield task


def convert(task: Sequence[Lines]) -> Converted:
    """Convert lines."""
    done = Converted()
    payloads: dict[str, list[pa.Array]] = {}
    for lines in task:
        done.read += lines.batch.num_rows
        for name, some in (_sniffed if not lines.format else _converted)(lines, done.rejects):
            payloads.setdefault(name, []).append(some)
    for name, parts in payloads.items():
        column = pa.concat_arrays(parts)
        for operation, count in operations_of(column, name).items():
            done.written[name, operation] += count
        done.blocks[name] = [piece for part in _cut(column) for piece in _block(part, name)]
    return done


def _converted(lines: Lines, rejects: list[Reject]) -> Iterator[tuple[str, pa.Array]]:
    """Yield the payloads of lines of one format, which is that of the file; add rejects."""
    format, raw = get_format(lines.format), lines.batch.column("raw")

    def caught(i: int, _: MessageError) -> None:
        # It is converted again, for the reject.
        rejects.append(_reject(lines, i)[1])

    if lines.batch.num_rows == 1 and lines.line(0).length > len(lines.line(0).raw):
        rejects.append(_reject(lines, 0)[1])
        return
    yield lines.format, convert_values(raw, format.encode, caught, batch=format.encode_column).drop_null()


def _sniffed(lines: Lines, rejects: list[Reject]) -> Iterator[tuple[str, pa.Array]]:
    """Yield the payloads of lines each of which is of some format, by format; add rejects."""
    found: dict[str, list[bytes]] = {}
    for i in range(lines.batch.num_rows):
        payload, reject = _reject(lines, i)
        if payload is None:
            rejects.append(reject)
        else:
            found.setdefault(reject.format or "", []).append(payload)
    for name, payloads in found.items():
        yield name, pa.array(payloads, pa.binary())


def _reject(lines: Lines, i: int) -> tuple[bytes | None, Reject]:
    """Return the payload of a line, None if it is rejected, and what its reject has."""
    line = lines.line(i)
    name, payload, raw, path, reason = convert_line(line, lines.format)
    return payload, Reject(raw or b"", lines.file, line.number, name, path or "", reason or "")


def _cut(payloads: pa.Array) -> Iterator[pa.Array]:
    """Yield payloads in parts of a mebibyte or so, each of which makes a block."""
    start = size = 0
    for i, length in enumerate(pc.binary_length(payloads).to_pylist()):
        size += length
        if size >= _BLOCK_BYTES:
            yield payloads.slice(start, i + 1 - start)
            start, size = i + 1, 0
    if start < len(payloads):
        yield payloads.slice(start)


def _block(payloads: pa.Array, name: str) -> list[bytes]:
    _, offsets, data = payloads.buffers()
    ends = memoryview(offsets).cast("i")
    first, last = ends[payloads.offset], ends[payloads.offset + len(payloads)]
    return _framing(name).pack_pieces([memoryview(data)[first:last].tobytes() if data else b""], len(payloads))


def _framing(name: str) -> Framing:
    return Framing(_CODEC, sync_marker(get_format(name).schema, _CODEC, b""))


def operations_of(payloads: pa.Array, name: str) -> Counter[str]:
    """Return how many payloads of a format have which operation, as Spark's job counts them."""
    reading = reading_of(get_format(name).schema, {})
    paths, pointers = operation_paths(name), tombstone_pointers(name)
    try:
        records = read_batch(payloads, reading)
    except RowsError:
        return Counter(_operation(one, reading, paths, pointers) for one in payloads.to_pylist())
    found = [pc.struct_field(records, list(path)) for path in paths]
    extras = pc.struct_field(records, "extras")
    for pointer in pointers:
        is_null = pc.equal(pc.map_lookup(extras, pointer, "first"), "null")
        found.append(pc.if_else(is_null, pa.scalar(TOMBSTONE), pa.scalar(None, pa.string())))
    named = pc.coalesce(*[one.cast(pa.string()) for one in found], pa.repeat(NONE, len(payloads)))
    return Counter({one["values"]: one["counts"] for one in pc.value_counts(named).to_pylist()})


def _operation(payload: bytes, reading: Reading, paths: Sequence[tuple[str, ...]], pointers: Sequence[str]) -> str:
    """Return the operation of a payload whose items need more room as columns than is given to them."""
    record, root = reading.exact(Decoder(payload)), reading.layout.root.type
    extras = dict(record[root.get_field_index("extras")] or ())
    for path in paths:
        value, kind = record, root
        for name in path:
            value = None if value is None else value[kind.get_field_index(name)]
            kind = kind.field(name).type
        if value is not None:
            return str(value)
    return TOMBSTONE if any(extras.get(pointer) == "null" for pointer in pointers) else NONE


class _Output:
    """Writes the files of a run, which appear when all is done."""

    def __init__(self, folder: Path) -> None:
        self._folder, self._stack = folder, ExitStack()
        self._streams: dict[str, BinaryIO] = {}
        self._written: Counter[tuple[str, str]] = Counter()
        self._rejects: Counter[str] = Counter()
        # How many lines were read.
        self.read = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        is_done = False
        try:
            self._stack.__exit__(kind, error, trace)
            is_done = kind is None
        finally:
            for place in map(self._folder.joinpath, self._streams):
                if is_done:
                    (place / _DONE).touch()
                    continue
                # Folders that are left of a run that failed would be in the way of the next one.
                with suppress(OSError):
                    place.rmdir()
                    place.parent.rmdir()

    @property
    def report(self) -> Report:
        """The counts of what was written."""
        return Report(self.read, dict(self._written), dict(self._rejects))

    def write(self, done: Converted) -> None:
        """Write what became of some lines."""
        self.read += done.read
        self._written += done.written
        for name, pieces in done.blocks.items():
            place = f"payloads/{name}"
            if place not in self._streams:
                head = header(get_format(name).schema, _framing(name))
                self._open(place, "part-00000.avro").write(head)
            self._streams[place].writelines(pieces)
        if done.rejects:
            place = "rejects"
            stream = self._streams.get(place) or self._open(place, "part-00000.json")
            stream.writelines(reject.json() + b"\n" for reject in done.rejects)
            self._rejects.update(reject.format or "" for reject in done.rejects)

    def _open(self, place: str, name: str) -> BinaryIO:
        (self._folder / place).mkdir(parents=True, exist_ok=True)
        self._streams[place] = self._stack.enter_context(open_output(str(self._folder / place / name)))
        return self._streams[place]
