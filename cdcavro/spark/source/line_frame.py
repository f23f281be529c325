"""Line frames: DataFrames of the raw lines of files, each with its file and block, and the heads of files."""

from __future__ import annotations

import io
import re
from contextlib import contextmanager, nullcontext, suppress
from itertools import islice
from pathlib import Path, PurePath
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from py4j.protocol import Py4JJavaError
from pyspark.errors import AnalysisException
from pyspark.sql import functions as sf

from cdcavro.errors import FileError
from cdcavro.exact.jsontext import MAX_LENGTH
from cdcavro.files.lines import BOM, HEAD_BYTES, KEPT, Line, is_packed, packing_of, skip_mark, unpack
from cdcavro.files.streams import plain_path
from cdcavro.spark.session import first_line

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from pyspark.sql import DataFrame, SparkSession

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
