"""Rows of the data source: each line with its payload and what changes it holds, or with the reason why it has none."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.types import BinaryType, LongType, StringType, StructField, StructType

from cdcavro.errors import MessageError
from cdcavro.exact.jsontext import MAX_LENGTH
from cdcavro.files.lines import KEPT, Line
from cdcavro.spark.arrow_udf import converted, in_worker, raw_bytes
from cdcavro.spark.functions import ERROR, error_fields
from cdcavro.spark.source.facts import Facts
from cdcavro.spark.source.parts import chunks_of, told_format
from cdcavro.spark.sql import by_format
from cdcavro.wire.formats import get_format
from cdcavro.wire.sniff import MIXED, sniff

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cdcavro.files.chunks import Chunk
    from cdcavro.spark.source.parts import Part, Piece

    Fault = dict[str, str | None]

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
# An error has up to some kilobytes, however short its line is.
_MOST_ROWS: Final = 4096


def read_part(part: Part) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a part, piece by piece. Raises `FileError`."""
    return in_worker(RowReader().of_part)(part)


class RowReader:
    """Makes the rows of the pieces of a task, a batch at a time. One thread at a time uses it."""

    def __init__(self) -> None:
        self._facts: dict[str, Facts] = {}

    def of_part(self, part: Part) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a part. Raises `FileError`."""
        for piece in part.pieces:
            yield from self.batches(piece)

    def batches(self, piece: Piece) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a piece, in the order of its lines. Raises `FileError`."""
        format, first = told_format(piece), piece.line
        for chunk in chunks_of(piece):
            for texts, length in _texts(chunk):
                made = self._made(texts, format) if length is None else _too_long(texts, length, format)
                lines = pa.array(range(first, first + len(texts)), pa.int64())
                first += len(texts)
                columns = {**made, "file": pa.repeat(pa.scalar(piece.file), len(texts)), "line": lines}
                yield pa.RecordBatch.from_arrays([columns[name] for name in SCHEMA.names], schema=SCHEMA)

    def _made(self, texts: pa.Array, format: str) -> dict[str, pa.Array]:
        """Return the columns of some lines, but for those of where they stand."""
        unknown: dict[int, Fault] = {}
        formats = _sniffed(texts, unknown) if format == MIXED else pa.repeat(pa.scalar(format), len(texts))
        made = by_format(self._encoded, texts, formats) if format == MIXED else self._encoded(texts, format)
        payload, operation, table, error = made.flatten()
        if unknown:
            error = pc.if_else(formats.is_null(), _errors(unknown, len(texts)), error)
            formats = pc.coalesce(formats, pc.struct_field(error, "format"))
        raw = pc.if_else(payload.is_null(), texts, pa.scalar(None, pa.binary()))
        return dict(zip(_MADE, (payload, operation, table, error, formats, raw), strict=True))

    def _encoded(self, texts: pa.Array, format: str) -> pa.StructArray:
        """Return the payloads of texts of one format, what changes they are, and the errors of those that are none."""
        faults: dict[int, Fault] = {}

        def caught(place: int, error: MessageError) -> None:
            faults[place] = error_fields(error)

        own = get_format(format)
        payloads = converted(texts, own.encode, caught, batch=own.encode_column)
        told = self._facts.get(format)
        if told is None:
            told = self._facts[format] = Facts(format)
        known = pc.if_else(payloads.is_null(), pa.scalar(None, pa.binary()), texts) if faults else texts
        facts = told.batch(known, caught)
        return pa.StructArray.from_arrays([payloads, *facts, _errors(faults, len(texts))], list(_MADE[:4]))


_MADE: Final = ("payload", "operation", "table", "error", "format", "raw")


def _texts(chunk: Chunk) -> Iterator[tuple[pa.Array, int | None]]:
    """Yield the lines of a chunk, some at a time; a line that is longer than a message may be alone, with its length."""
    text = chunk.raw + chunk.rest if chunk.rest else chunk.raw
    length = len(text) - text.rfind(b"\n") - 1 + chunk.missing
    longest = length if length > MAX_LENGTH else None
    if longest is not None:
        text, last = text[: text.rfind(b"\n") + 1], text[text.rfind(b"\n") + 1 :][:KEPT]
    lines = pc.split_pattern(pa.array([text], pa.binary()), b"\n").flatten()
    # Behind the last line end is nothing, or a line that has none.
    count = len(lines) - (text.endswith(b"\n") or not text)
    for start in range(0, count, _MOST_ROWS):
        yield lines.slice(start, min(_MOST_ROWS, count - start)), None
    if longest is not None:
        yield pa.array([last], pa.binary()), longest


def _too_long(texts: pa.Array, length: int, format: str) -> dict[str, pa.Array]:
    """Return the columns of a line that is longer than a message may be, with what is kept of it."""
    name = None if format == MIXED else format
    try:
        Line(1, texts[0].as_py(), length).message()
    except MessageError as error:
        error.format = name
        errors = _errors({0: error_fields(error)}, 1)
    nothing = [pa.nulls(1, SCHEMA.field(one).type) for one in _MADE[:3]]
    return dict(zip(_MADE, (*nothing, errors, pa.array([name], pa.string()), texts), strict=True))


def _sniffed(texts: pa.Array, faults: dict[int, Fault]) -> pa.Array:
    """Return the format of each text, null for what is of none, whose fault is noted."""
    names: list[str | None] = []
    for i, raw in enumerate(raw_bytes(texts)):
        try:
            names.append(sniff(raw or b""))
        except MessageError as error:
            faults[i] = error_fields(error)
            names.append(None)
    return pa.array(names, pa.string())


def _errors(faults: dict[int, Fault], count: int) -> pa.Array:
    return pa.array([faults.get(i) for i in range(count)], ERROR) if faults else pa.nulls(count, ERROR)
