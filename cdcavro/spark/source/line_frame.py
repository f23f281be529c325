r"""Line frames: DataFrames of the raw lines of files, each with its file and block, and the heads of files.

Spark unpacks a file by its name, such as `.gz`. Of any other file it gives what stands between two bytes `\n`, also of
packed bytes, so a task that has a file as a whole has all its bytes, and unpacks them. Plain text passes unchanged.
"""

from __future__ import annotations

import io
import re
from contextlib import contextmanager, nullcontext, suppress
from itertools import islice
from pathlib import Path, PurePath
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
from py4j.protocol import Py4JJavaError
from pyspark.errors import AnalysisException
from pyspark.sql import functions as sf

from cdcavro.errors import FileError
from cdcavro.exact.jsontext import MAX_LENGTH
from cdcavro.files.lines import BOM, HEAD_BYTES, KEPT, MARK_NOTE, Line, cut, is_packed, packing_of, skip_mark, unpack
from cdcavro.files.streams import CHUNK, plain_path
from cdcavro.spark.session import first_line

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from pyspark.sql import DataFrame, SparkSession

    from cdcavro.files.lines import Chunk

    Say = Callable[[str], None]

# The endings of what Hadoop unpacks.
UNPACKED: Final = frozenset({".gz", ".bz2", ".deflate", ".lz4", ".snappy"})
# How many of these in a batch are looked at for a byte order mark.
_MOST_LOOKS: Final = 100
_CODECS: Final = "io.compression.codecs"
# Hadoop's codec that changes nothing. Its option has another name in the jar that comes with Spark.
_AS_IT_IS: Final = "org.apache.hadoop.io.compress.PassthroughCodec"
_AS_IT_IS_OF: Final = (
    "io.compress.passthrough.extension",
    "org.apache.hadoop.shaded.io.compress.passthrough.extension",
)
_WHOLE: Final = str(1 << 50)
# A file is read by one task, line by line, so that its lines can be numbered; one that a machine does not see is an
# error. Spark 4.1 has a reader besides Hadoop's, which unpacks Zstandard by the name, whatever the codec is.
_WHOLE_FILES: Final = {
    "spark.sql.files.maxPartitionBytes": _WHOLE,
    "spark.sql.files.openCostInBytes": _WHOLE,
    "spark.sql.files.ignoreMissingFiles": "false",
    "spark.sql.files.ignoreCorruptFiles": "false",
    "spark.sql.execution.datasources.hadoopLineRecordReader.enabled": "false",
}
_GLOB: Final = re.compile(r"([\\*?\[\]{}])")


def read_line_frame(spark: SparkSession, inputs: Sequence[str]) -> DataFrame:
    r"""Read the lines of files, plain or packed as their names say, or of all files in folders.

    The columns are `raw` (binary, without `\n`; only the first 64 KiB of a line that is longer than a message may be),
    `length` (long, bytes of the whole line), `file` (string), `block` (long, the byte at which the part of the file
    starts that one task reads) and `size` (long, that of the file in bytes). Lines end at `\n` only, and bytes that are
    not UTF-8 stay as they are; a byte order mark at the start of a file is passed over. As Spark does, files in folders
    are passed over if their names start with `_` or `.`. Raises `FileError` if an input does not exist, or is a file
    with such a name.
    """
    paths = [_path(path) for path in inputs]
    for path in inputs:
        if path.rstrip("/").rpartition("/")[2].startswith(("_", ".")) and Path(path).is_file():
            raise FileError(path, "a name that Spark reads", "one that starts with _ or .")
    try:
        return line_frame(spark.read.options(**text_options(spark)).text(paths))
    except AnalysisException as error:
        # Spark 4.0 has given it a new name.
        if getattr(error, "getCondition", error.getErrorClass)() != "PATH_NOT_FOUND":
            raise
        missing = next((path for path in inputs if "://" not in path and not Path(path).exists()), inputs[0])
        raise FileError(missing, "a file or folder", "none") from error


def line_frame(text: DataFrame) -> DataFrame:
    """Return the columns of `read_line_frame` of files that are read as text."""
    raw = sf.col("value").cast("binary")
    length = sf.octet_length(raw)
    return text.select(
        sf.when(length > MAX_LENGTH, sf.substring(raw, 1, KEPT)).otherwise(raw).alias("raw"),
        length.cast("bigint").alias("length"),
        sf.col("_metadata.file_path").alias("file"),
        sf.col("_metadata.file_block_start").alias("block"),
        sf.col("_metadata.file_size").alias("size"),
    )


def text_options(spark: SparkSession) -> dict[str, str]:
    r"""Return the options under which Spark reads text to the last byte: lines end at `\n`, and `.zst` is not unpacked.

    Only newer versions of Spark can unpack it. It is left to `unpack_lines`, whatever the version, within
    `whole_files`.
    """
    conf = spark._jsc.hadoopConfiguration()  # noqa: SLF001  no Python interface
    codecs = ",".join(filter(None, (conf.get(_CODECS), _AS_IT_IS)))
    return {"recursiveFileLookup": "true", "lineSep": "\n", _CODECS: codecs, **dict.fromkeys(_AS_IT_IS_OF, ".zst")}


@contextmanager
def whole_files(spark: SparkSession, preferred: Mapping[str, str] = MappingProxyType({})) -> Iterator[None]:
    """Set what a session needs to read each file as a whole by one task, line by line.

    A stream asks the session in which it was started as long as it runs. The `preferred` settings are made, too, unless
    the user has set something else.
    """
    wanted = {name: value for name, value in preferred.items() if spark.conf.get(name, None) is None} | _WHOLE_FILES
    before = {name: spark.conf.get(name, None) for name in wanted}
    for name, value in wanted.items():
        spark.conf.set(name, value)
    try:
        yield
    finally:
        for name, old in before.items():
            spark.conf.unset(name) if old is None else spark.conf.set(name, old)


def read_head(spark: SparkSession, uri: str, size: int = HEAD_BYTES) -> Head:
    """Return the beginning of a file, of which lines are in the first `size` bytes, unpacked. Raises `FileError`."""
    path, notes = plain_path(uri), list[str]()
    try:
        with _bytes_of(spark, uri) as (stream, is_unpacked):
            is_packed = not is_unpacked and packing_of(path, stream) is not None
            mark = nullcontext(skip_mark(path, stream, notes.append))
            with unpack(path, stream, notes.append) if is_packed else mark as text:
                head = text.read(size)
    except Py4JJavaError as error:
        raise FileError(path, "a file that can be read", first_line(error)) from error
    lines = head.split(b"\n")
    if len(head) == size or not lines[-1]:
        lines.pop()
    return Head([Line(number, raw, len(raw)) for number, raw in enumerate(lines, 1)], is_packed, notes)


class Head(NamedTuple):
    """The beginning of a file."""

    # Those that are complete.
    lines: list[Line]
    # Whether the file is packed and Spark does not unpack it.
    is_packed: bool
    # What is to be said of the file.
    notes: list[str]


@contextmanager
def _bytes_of(spark: SparkSession, uri: str) -> Iterator[tuple[io.BufferedReader[Any], bool]]:
    """Open a file, unpacked if Spark does that, and yield a stream of its bytes and whether it does."""
    jvm: Any = spark._jvm  # noqa: SLF001  Hadoop's file systems have no Python interface
    conf = spark._jsc.hadoopConfiguration()  # noqa: SLF001
    path = jvm.org.apache.hadoop.fs.Path(jvm.java.net.URI(uri))
    codec = None
    if not is_packed(plain_path(uri), b""):
        codec = jvm.org.apache.hadoop.io.compress.CompressionCodecFactory(conf).getCodec(path)
    stream = path.getFileSystem(conf).open(path)
    try:
        yield io.BufferedReader(_JavaStream(codec.createInputStream(stream) if codec else stream)), codec is not None
    finally:
        stream.close()


class _JavaStream(io.RawIOBase):
    """A raw stream of a stream of Java's."""

    def __init__(self, stream: Any) -> None:
        super().__init__()
        self._stream = stream

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        raw = bytes(self._stream.readNBytes(len(buffer)))
        buffer[: len(raw)] = raw
        return len(raw)


def marked_files(spark: SparkSession, files: Iterable[str]) -> list[str]:
    """Return what is to be said of byte order marks in files that Spark unpacks, which passes over them.

    `files` are plain paths; those of other files are passed over, as are files that cannot be read any more.
    """
    jvm: Any = spark._jvm  # noqa: SLF001  Hadoop's paths have no Python interface
    notes: list[str] = []
    unpacked_files = (file for file in files if PurePath(file).suffix in UNPACKED)
    for file in islice(unpacked_files, _MOST_LOOKS):
        uri = file if "://" in file else jvm.org.apache.hadoop.fs.Path("file", None, file).toUri().toString()
        with suppress(FileError):
            notes += read_head(spark, uri, len(BOM)).notes
    return notes


def glob_free(path: str) -> str:
    """Return a path with those characters escaped that Spark would read as a pattern."""
    return _GLOB.sub(r"\\\1", path)


def exact_paths(spark: SparkSession, uris: Iterable[str]) -> list[str]:
    """Return the files that some URIs mean, as paths that Spark reads as no pattern, in their order."""
    jvm: Any = spark._jvm  # noqa: SLF001  Hadoop's paths have no Python interface
    return [glob_free(jvm.org.apache.hadoop.fs.Path(jvm.java.net.URI(uri)).toString()) for uri in sorted(uris)]


def _path(text: str) -> str:
    local = Path(text)
    return "file://" + glob_free(str(local.resolve())) if local.exists() else text


# The size of its file in bytes, beside each line.
SIZE: Final = "size"
_CHUNK_BYTES: Final = 2 << 20
# An error has up to some kilobytes, however short its line is.
_MOST_ROWS: Final = 4096


def unpack_lines(batches: Iterable[pa.RecordBatch], say: Say) -> Iterator[pa.RecordBatch]:
    r"""Yield the lines of files, each of which is there as a whole, its lines one after another.

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
    """Batches one after another, of which one may be put back."""

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
        raise FileError(path, "one compressed file", "bytes after its end")


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
