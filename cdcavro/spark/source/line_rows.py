"""Line rows of the data source: each line with its payload, operation and table, or why it has none."""

from __future__ import annotations

from array import array
from typing import TYPE_CHECKING, Final

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.types import BinaryType, LongType, StringType, StructField, StructType

from cdcavro.arrow.arrays import blank, convert_values, slices_of
from cdcavro.change.model import DML
from cdcavro.change.rows import common_size
from cdcavro.engine.machine import FactEngine
from cdcavro.engine.row_program import RowProgram
from cdcavro.errors import MessageError
from cdcavro.files.lines import Line
from cdcavro.spark.arrow_udf import in_worker, raw_bytes
from cdcavro.spark.functions import ERROR, convert_by_format
from cdcavro.spark.source.file_parts import chunks_of, format_of
from cdcavro.spark.source.packed_lines import line_arrays
from cdcavro.transcoding.mapping import USUAL_PLACEHOLDER, placeholders, to_changes
from cdcavro.wire.formats import get_format
from cdcavro.wire.message_program import row_parts
from cdcavro.wire.sniff import MIXED, sniff

if TYPE_CHECKING:
    from collections.abc import Callable

    from cdcavro.change.model import Change
    from cdcavro.engine.arrow_column import Slices

    Caught = Callable[[int, MessageError], object]
    from collections.abc import Iterator

    from cdcavro.spark.source.file_parts import FilePart, Piece

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
