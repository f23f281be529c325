"""Line rows of the data source: each line with its payload, operation and table, or why it has none.

A task reads parts of files: whole ones, and pieces of large ones, which end where a line does.
"""

from __future__ import annotations

import io
from array import array
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import PurePath
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.datasource import InputPartition
from pyspark.sql.types import BinaryType, LongType, StringType, StructField, StructType

from cdcavro.arrow.arrays import blank, convert_values, slices_of
from cdcavro.change.model import DML, common_size
from cdcavro.engine.machine import FactEngine
from cdcavro.engine.program import RowProgram
from cdcavro.errors import FileError, MessageError
from cdcavro.files.lines import Line, cut, detect_format, packing_of, unpack
from cdcavro.spark.arrow_udf import in_worker, raw_bytes
from cdcavro.spark.functions import ERROR, convert_by_format
from cdcavro.spark.source.line_frame import line_arrays
from cdcavro.spark.source.listing import file_errors, open_file
from cdcavro.transcoding.mapping import USUAL_PLACEHOLDER, placeholders, to_changes
from cdcavro.wire.formats import get_format
from cdcavro.wire.message_program import row_parts
from cdcavro.wire.sniff import AUTO, MIXED, sniff

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from cdcavro.change.model import Change
    from cdcavro.engine.payloads import Slices
    from cdcavro.files.lines import Chunk
    from cdcavro.spark.source.listing import FoundFile

    Caught = Callable[[int, MessageError], object]
    Fault = dict[str, str | None]

# The operation and the table of a message.
Fact = tuple[str | None, str | None]
_NO_FACT: Final[Fact] = (None, None)
_NOTHING: Final = (pa.array([], pa.string()), pa.array([], pa.string()))
_EXACT: Final = -1


class OperationFinder:
    """Finds the operations and tables of the messages of one format, as their changes name them.

    The first message of a pattern goes the exact way, and the engine finds the others. One thread at a time uses it.
    """

    def __init__(self, format: str) -> None:
        self._format = get_format(format)
        self._parts = row_parts(self._format.envelope)
        self._engine = FactEngine(self._format.program, placeholders(format, USUAL_PLACEHOLDER))
        self._known: dict[int, Fact] = {}

    def find(self, texts: pa.Array, caught: Caught) -> tuple[pa.Array, pa.Array]:
        """Return the operation and the table of each text, null for a null.

        `caught` gets the index of each text of which no changes can be made, and the error.
        """
        messages, i = slices_of(texts), 0
        if not messages.count:
            return _NOTHING
        left: dict[int, Fact] = {}
        while i < messages.count:
            i = self._engine.take_alike(messages, None, i)
            if i < messages.count:
                left[i] = self._find_exact(i, messages, caught)
            i += 1
        numbers = array("i", self._engine.numbers()) or array("i", [_EXACT]) * messages.count
        places = {number: place for place, number in enumerate(dict.fromkeys(numbers))}
        facts = [self._fact(number, messages, numbers, caught) for number in places]
        rows = array("i", map(places.__getitem__, numbers))
        for i, fact in left.items():
            rows[i] = len(facts)
            facts.append(fact)
        which = pa.array(rows, pa.int32())
        operations, tables = (pa.array(values, pa.string()) for values in zip(*facts, strict=True))
        return operations.take(which), tables.take(which)

    def _find_exact(self, i: int, messages: Slices, caught: Caught) -> Fact:
        """Return the fact of a message, and learn its pattern; a null has none."""
        message = messages.get(i)
        if message is None:
            return _NO_FACT
        try:
            changes = to_changes(message, self._format.name, members=False)
        except MessageError as error:
            caught(i, error)
            return _NO_FACT
        if changes[0].op in DML:
            self._learn(message, changes[0])
        return changes[0].op, changes[0].source.table

    def _fact(self, number: int, messages: Slices, numbers: array[int], caught: Caught) -> Fact:
        """Return the fact of the messages with a number, the first of which goes the exact way."""
        if number == _EXACT:
            return _NO_FACT
        if number not in self._known:
            refused: dict[int, MessageError] = {}
            fact = self._find_exact(numbers.index(number), messages, refused.__setitem__)
            if refused:
                # Then each of them is refused.
                for i in [i for i, other in enumerate(numbers) if other == number]:
                    self._find_exact(i, messages, caught)
                return _NO_FACT
            self._known[number] = fact
        return self._known[number]

    def _learn(self, message: bytes, change: Change) -> None:
        """Learn the pattern of a message whose change was made of just its parts."""
        fixed = self._engine.pattern(message)
        if fixed is None or self._engine.has(fixed):
            return
        format = self._format
        if self._parts.are_complete(format.encode(message), format.read, change.key):
            position = self._parts.position(change.source.db_type, message)
            self._engine.add(fixed, RowProgram(position=position, weight=common_size(change)))


_ERROR: Final = StructType([StructField(field.name, StringType()) for field in ERROR])
_COLUMNS: Final = (
    ("payload", pa.binary(), BinaryType()),
    ("format", pa.string(), StringType()),
    ("operation", pa.string(), StringType()),
    ("table", pa.string(), StringType()),
    ("file", pa.string(), StringType()),
    ("line", pa.int64(), LongType()),
    ("error", ERROR, _ERROR),
    ("raw", pa.binary(), BinaryType()),
)
COLUMNS: Final = StructType([StructField(name, type) for name, _, type in _COLUMNS])
SCHEMA: Final = pa.schema([(name, type) for name, type, _ in _COLUMNS])


def read_part(part: FilePart) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a part, piece by piece. Raises `FileError`."""
    return in_worker(RowReader().of_part)(part)


class RowReader:
    """Makes the rows of the pieces of a task, a batch at a time. One thread at a time uses it."""

    def __init__(self) -> None:
        self._finders: dict[str, OperationFinder] = {}

    def of_part(self, part: FilePart) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a part. Raises `FileError`."""
        for piece in part.pieces:
            yield from self.batches(piece)

    def batches(self, piece: Piece) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a piece, in the order of its lines. Raises `FileError`."""
        format, first = format_of(piece), piece.line
        for chunk in chunks_of(piece):
            for texts, length in line_arrays(chunk):
                found = self._columns(texts, format) if length is None else _too_long(texts, length, format)
                lines = pa.array(range(first, first + len(texts)), pa.int64())
                first += len(texts)
                columns = {**found, "file": pa.repeat(pa.scalar(piece.file), len(texts)), "line": lines}
                yield pa.RecordBatch.from_arrays([columns[name] for name in SCHEMA.names], schema=SCHEMA)

    def _columns(self, texts: pa.Array, format: str) -> dict[str, pa.Array]:
        """Return the columns of some lines, without their file and line."""
        unknown: dict[int, Fault] = {}
        formats = _sniff_formats(texts, unknown) if format == MIXED else pa.repeat(pa.scalar(format), len(texts))
        converted_texts = (
            convert_by_format(self._encode, texts, formats) if format == MIXED else self._encode(texts, format)
        )
        payload, operation, table, error = converted_texts.flatten()
        if unknown:
            error = pc.if_else(formats.is_null(), _errors(unknown, len(texts)), error)
            formats = pc.coalesce(formats, pc.struct_field(error, "format"))
        raw = blank(texts, payload.is_valid())
        return dict(zip(_MADE, (payload, operation, table, error, formats, raw), strict=True))

    def _encode(self, texts: pa.Array, format: str) -> pa.StructArray:
        """Return the payloads of texts of one format, what changes they are, and the errors of those that are none."""
        faults: dict[int, Fault] = {}

        def caught(place: int, error: MessageError) -> None:
            faults[place] = error.fields

        codec = get_format(format)
        payloads = convert_values(texts, codec.encode, caught, batch=codec.encode_column)
        finder = self._finders.get(format)
        if finder is None:
            finder = self._finders[format] = OperationFinder(format)
        known = blank(texts, payloads.is_null()) if faults else texts
        facts = finder.find(known, caught)
        return pa.StructArray.from_arrays([payloads, *facts, _errors(faults, len(texts))], list(_MADE[:4]))


_MADE: Final = ("payload", "operation", "table", "error", "format", "raw")


def _too_long(texts: pa.Array, length: int, format: str) -> dict[str, pa.Array]:
    """Return the columns of a line that is longer than a message may be, with what is kept of it."""
    name = None if format == MIXED else format
    try:
        Line(1, texts[0].as_py(), length).message()
    except MessageError as error:
        error.format = name
        errors = _errors({0: error.fields}, 1)
    nothing = [pa.nulls(1, SCHEMA.field(one).type) for one in _MADE[:3]]
    return dict(zip(_MADE, (*nothing, errors, pa.array([name], pa.string()), texts), strict=True))


def _sniff_formats(texts: pa.Array, faults: dict[int, Fault]) -> pa.Array:
    """Return the format of each text; null, with its fault noted, for a text of no format."""
    names: list[str | None] = []
    for i, raw in enumerate(raw_bytes(texts)):
        try:
            names.append(sniff(raw or b""))
        except MessageError as error:
            faults[i] = error.fields
            names.append(None)
    return pa.array(names, pa.string())


def _errors(faults: dict[int, Fault], count: int) -> pa.Array:
    return pa.array([faults.get(i) for i in range(count)], ERROR) if faults else pa.nulls(count, ERROR)


# Names of files that Spark's text source decompresses, and this one does not.
_PACKED: Final = frozenset({".bz2", ".deflate", ".lz4", ".lzo", ".snappy", ".xz"})
_READ: Final = 1 << 20
_CHUNK: Final = 2 << 20
# How many files a task opens at most.
_MOST_FILES: Final = 32


@dataclass(frozen=True, slots=True)
class Piece:
    """Lines of a file."""

    # The file's name.
    file: str
    # Which of its bytes; of gzip always all.
    start: int
    end: int
    # The number of the first line.
    line: int
    # A format's name, `mixed`, or `auto` for a whole file whose first lines tell it.
    format: str


class FilePart(InputPartition):
    """The pieces that one task reads: `pieces` (list of `Piece`)."""

    def __init__(self, pieces: list[Piece]) -> None:
        super().__init__(None)
        self.pieces = pieces


def parts_of(files: Iterable[FoundFile], format: str, most: int) -> list[FilePart]:
    """Return the parts of files, each of about `most` bytes. Raises `FileError`.

    A larger plain file is cut. It is read for that, to count its lines, and to find its format if that is `auto`. gzip
    cannot be cut.
    """
    parts: list[FilePart] = []
    pieces: list[Piece] = []
    size = 0
    for file in files:
        for piece in _pieces(file, format, most):
            weight = max(piece.end - piece.start, most // _MOST_FILES)
            if pieces and size + weight > most:
                parts.append(FilePart(pieces))
                pieces, size = [], 0
            pieces.append(piece)
            size += weight
    return [*parts, *([FilePart(pieces)] if pieces else [])]


def chunks_of(piece: Piece) -> Iterator[Chunk]:
    """Yield the text of a piece in chunks of whole lines. Raises `FileError`."""
    with file_errors(piece.file), _stream(piece.file, piece.start, piece.end) as stream:
        if piece.start:
            yield from cut(stream, _CHUNK)
            return
        with unpack(piece.file, stream) as text:
            yield from cut(text, _CHUNK)


def format_of(piece: Piece) -> str:
    """Return the format of a piece; `mixed` if the first lines of a whole file do not tell it."""
    if piece.format != AUTO:
        return piece.format
    return detect_format(line for chunk in chunks_of(piece) for line in chunk.lines())[0] or MIXED


def cuts(stream: io.BufferedReader[Any], most: int) -> Iterator[tuple[int, int, int]]:
    """Yield where the pieces of a plain text begin and end, and the number of their first lines.

    Each has at least `most` bytes, but for the last one, and ends with its line.
    """
    start = position = lines = before = 0
    while raw := stream.read(_READ):
        at = 0
        while (end := raw.find(b"\n", max(at, start + most - 1 - position))) >= 0:
            yield start, position + end + 1, before + 1
            lines += raw.count(b"\n", at, end + 1)
            start, at, before = position + end + 1, end + 1, lines
        lines += raw.count(b"\n", at)
        position += len(raw)
    if start < position:
        yield start, position, before + 1


def _pieces(file: FoundFile, format: str, most: int) -> Iterator[Piece]:
    ending = PurePath(file.name).suffix.lower()
    if ending in _PACKED:
        raise FileError(file.name, "plain text, gzip or Zstandard", f"a name that ends in {ending}")
    whole = Piece(file.name, 0, file.size, 1, format)
    if file.size <= most:
        yield whole
        return
    with file_errors(file.name), _stream(file.name, 0, file.size) as stream:
        if packing_of(file.name, stream):
            yield whole
            return
        format = format_of(whole)
        for start, end, line in cuts(stream, most):
            yield Piece(file.name, start, end, line, format)


@contextmanager
def _stream(name: str, start: int, end: int) -> Iterator[Any]:
    """Open the bytes of a file from one place to another. Raises `FileError`."""
    with open_file(name) as file, io.BufferedReader(_Within(file, name, start, end), _READ) as stream:
        yield stream


class _Within(io.RawIOBase):
    """A raw stream of the bytes of an open file from one place to another.

    Raises `FileError` if it ends before that.
    """

    def __init__(self, file: Any, name: str, start: int, end: int) -> None:
        super().__init__()
        file.seek(start)
        self._file, self._name, self._left = file, name, end - start

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        raw = self._file.read(min(len(buffer), self._left))
        if not raw and self._left:
            raise FileError(self._name, "the file that was there at the start", "a shorter one")
        buffer[: len(raw)] = raw
        self._left -= len(raw)
        return len(raw)
