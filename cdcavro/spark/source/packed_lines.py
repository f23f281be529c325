r"""Packed lines: those of files that Spark reads as text although they are packed, unpacked in its workers.

Spark unpacks a file by its name, such as `.gz`. Of any other file it gives what stands between two bytes `\n`, also of
packed bytes, so a task that has a file as a whole has all its bytes. Plain text passes unchanged.
"""

from __future__ import annotations

import io
from pathlib import PurePath
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from cdcavro.errors import FileError
from cdcavro.exact.jsontext import MAX_LENGTH
from cdcavro.files.inputs import cut
from cdcavro.files.lines import BOM, KEPT, MARK_NOTE, is_packed, unpack
from cdcavro.files.streams import CHUNK, plain_path
from cdcavro.spark.source.line_frame import UNPACKED

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from cdcavro.files.inputs import Chunk

    Say = Callable[[str], None]

# The size of its file in bytes, beside each line.
SIZE: Final = "size"
_CHUNK_BYTES: Final = 2 << 20
# An error has up to some kilobytes, however short its line is.
_MOST_ROWS: Final = 4096


def unpack_lines(batches: Iterable[pa.RecordBatch], say: Say) -> Iterator[pa.RecordBatch]:
    r"""Yield the lines of files, each of which is there as a whole, its lines one behind another.

    The columns are `raw` (binary, what stands between two bytes `\n`), `length` (long, that of the whole line), `file`
    (string), `size` (long, null for what is of no file), and any others, which are the same for all lines of a file.
    `say` is called with a sentence for each file that begins with a byte order mark; Spark has passed over that of
    plain text. Raises `FileError` for a packed file that is damaged, that is none, or that ends too early.
    """
    every = _Batches(batches)
    file, left = None, 0
    for batch in every:
        if SIZE not in batch.schema.names or batch.column(SIZE).null_count:
            yield batch
            continue
        own = every.first_file(batch)
        name, size = own.column("file")[0].as_py(), own.column(SIZE)[0].as_py()
        if name != file:
            file, left = name, size
            if _is_packed(plain_path(name), own.column("raw")[0].as_py()):
                yield from _unpack(own, every, say)
                continue
        # Each line but the last has an end. What is left then is a mark, which Spark has passed over.
        left -= pc.sum(own.column("length")).as_py() + own.num_rows
        yield own
        if len(BOM) - 1 <= left <= len(BOM) and every.is_at_end_of(name) and not _is_unpacked(name):
            say(f"{plain_path(name)}: {MARK_NOTE}")


def line_arrays(chunk: Chunk) -> Iterator[tuple[pa.Array, int | None]]:
    """Yield the lines of a chunk, some at a time; one longer than a message may be comes alone, with its length."""
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


class _Batches:
    """Batches one behind another, of which one may be put back."""

    def __init__(self, batches: Iterable[pa.RecordBatch]) -> None:
        self._batches = iter(batches)
        self._back: pa.RecordBatch | None = None

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        while (batch := self._next()) is not None:
            yield batch

    def _next(self) -> pa.RecordBatch | None:
        batch, self._back = self._back, None
        return batch if batch is not None else next((batch for batch in self._batches if batch.num_rows), None)

    def first_file(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Return the lines of a batch that are of its first file; the others come next."""
        files = batch.column("file")
        if files[-1] == files[0]:
            return batch
        end = pc.index(pc.equal(files, files[0]), value=False).as_py()
        self._back = batch.slice(end)
        return batch.slice(0, end)

    def more_of(self, file: str) -> pa.RecordBatch | None:
        """Return the next lines of a file; None if there are no more."""
        batch = self._next()
        if batch is not None and batch.column("file")[0].as_py() == file:
            return self.first_file(batch)
        self._back = batch
        return None

    def is_at_end_of(self, file: str) -> bool:
        """Whether no more lines of a file come."""
        self._back = self._next()
        return self._back is None or self._back.column("file")[0].as_py() != file

    def pieces(self, first: pa.RecordBatch) -> Iterator[bytes]:
        """Yield the bytes of a file whose first lines are in a batch.

        Raises `FileError` for a line that Spark does not give as a whole.
        """
        file, left = first.column("file")[0].as_py(), first.column(SIZE)[0].as_py()
        batch: pa.RecordBatch | None = first
        while batch is not None:
            if pc.max(batch.column("length")).as_py() > MAX_LENGTH:
                raise FileError(plain_path(file), "packed bytes", f"more than {MAX_LENGTH} of them without a line feed")
            # The last line of the file may have no end.
            piece = b"\n".join([*batch.column("raw").to_pylist(), b""])[: max(0, left)]
            left -= len(piece)
            yield piece
            batch = self.more_of(file)


class _Joined(io.RawIOBase):
    """A raw stream of pieces of bytes."""

    def __init__(self, pieces: Iterator[bytes]) -> None:
        super().__init__()
        self._pieces, self._piece = pieces, memoryview(b"")

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        while not self._piece:
            piece = next(self._pieces, None)
            if piece is None:
                return 0
            self._piece = memoryview(piece)
        size = min(len(buffer), len(self._piece))
        buffer[:size], self._piece = self._piece[:size], self._piece[size:]
        return size


def _unpack(first: pa.RecordBatch, batches: _Batches, say: Say) -> Iterator[pa.RecordBatch]:
    """Yield the lines of a packed file, whose first bytes are in a batch."""
    pieces = batches.pieces(first)
    path = plain_path(first.column("file")[0].as_py())
    with unpack(path, io.BufferedReader(_Joined(pieces), CHUNK), say) as text:
        for chunk in cut(text, _CHUNK_BYTES):
            for lines, length in line_arrays(chunk):
                yield _like(first, lines, length)
    if any(pieces):
        raise FileError(path, "one packed file", "bytes behind its end")


def _like(first: pa.RecordBatch, lines: pa.Array, length: int | None) -> pa.RecordBatch:
    """Return lines with what stands beside the first one of their file; `length` is that of one that is too long."""
    same = pa.nulls(len(lines), pa.int32()).fill_null(0)
    columns = {name: first.column(name).take(same) for name in first.schema.names if name not in ("raw", "length")}
    columns["raw"] = lines.cast(first.schema.field("raw").type)
    columns["length"] = pa.array([length], pa.int64()) if length else pc.binary_length(lines).cast(pa.int64())
    return pa.RecordBatch.from_arrays([columns[name] for name in first.schema.names], schema=first.schema)


def _is_packed(path: str, raw: bytes) -> bool:
    return not _is_unpacked(path) and is_packed(path, raw)


def _is_unpacked(name: str) -> bool:
    """Whether Spark unpacks a file of this name."""
    return PurePath(name).suffix in UNPACKED
