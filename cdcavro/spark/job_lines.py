"""Files of JSON lines as a DataFrame of raw lines that know where they come from."""

from __future__ import annotations

import re
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import unquote, urlsplit

from py4j.protocol import Py4JJavaError
from pyspark.errors import AnalysisException
from pyspark.sql import functions as sf

from cdcavro.errors import FileError
from cdcavro.exact.jsontext import MAX_LENGTH
from cdcavro.files.lines import HEAD_BYTES, KEPT, Line

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pyspark.sql import DataFrame, SparkSession

_GZIP: Final = b"\x1f\x8b"
_KEPT: Final = 1024
_CREDENTIALS: Final = re.compile(r"://[^/@\s]+@")
_GLOB: Final = re.compile(r"([\\*?\[\]{}])")


def read_line_frame(spark: SparkSession, inputs: Sequence[str]) -> DataFrame:
    r"""Read files, or all files in folders, plain or gzip, as lines.

    Columns: `raw` (binary, without `\n`; of a line longer than a message may be its first 64 KiB),
    `length` (long, of the whole line), `file` (string), `block` (long, the byte at which the part of
    the file starts that one task reads). Lines end at `\n` only, and bytes that are not UTF-8 stay
    as they are. Files whose names start with `_` or `.` are passed over in folders, as Spark does.
    Raises `FileError`: an input that is not there, or a file with such a name.
    """
    paths = [_path(one) for one in inputs]
    for one in inputs:
        if one.rstrip("/").rpartition("/")[2].startswith(("_", ".")) and Path(one).is_file():
            raise FileError(one, "a name that Spark reads", "one that starts with _ or .")
    try:
        text = spark.read.option("recursiveFileLookup", "true").text(paths, lineSep="\n")
    except AnalysisException as error:
        if error.getCondition() != "PATH_NOT_FOUND":
            raise
        missing = next((one for one in inputs if "://" not in one and not Path(one).exists()), inputs[0])
        raise FileError(missing, "a file or folder", "none") from error
    raw = sf.col("value").cast("binary")
    length = sf.octet_length(raw)
    return text.select(
        sf.when(length > MAX_LENGTH, sf.substring(raw, 1, KEPT)).otherwise(raw).alias("raw"),
        length.cast("bigint").alias("length"),
        sf.col("_metadata.file_path").alias("file"),
        sf.col("_metadata.file_block_start").alias("block"),
    )


@lru_cache(maxsize=_KEPT)
def plain_path(uri: str) -> str:
    """Return a file's URI as people write it: a local path without scheme and escapes.

    >>> plain_path("file:///tmp/a%20b.jsonl")
    '/tmp/a b.jsonl'
    """
    return unquote(urlsplit(uri).path) if uri.startswith("file:") else uri


def read_head(spark: SparkSession, uri: str, size: int = HEAD_BYTES) -> Iterator[Line]:
    """Read the complete lines in the first bytes of a file, decompressed; `size` is in bytes.

    Raises `FileError`: a file that cannot be read.
    """
    jvm: Any = spark._jvm  # noqa: SLF001  Hadoop's file systems have no Python interface
    conf = spark._jsc.hadoopConfiguration()  # noqa: SLF001
    path = jvm.org.apache.hadoop.fs.Path(jvm.java.net.URI(uri))
    try:
        stream = path.getFileSystem(conf).open(path)
        try:
            codec = jvm.org.apache.hadoop.io.compress.CompressionCodecFactory(conf).getCodec(path)
            head = bytes((codec.createInputStream(stream) if codec else stream).readNBytes(size))
        finally:
            stream.close()
    except Py4JJavaError as error:
        raise FileError(plain_path(uri), "a file that can be read", first_line(error)) from error
    if codec is None and head.startswith(_GZIP):
        raise FileError(plain_path(uri), "a name that ends in .gz, since it is gzip", "another")
    lines = head.split(b"\n")
    if len(head) == size or not lines[-1]:
        lines.pop()
    return (Line(number, raw, len(raw)) for number, raw in enumerate(lines, 1))


def hidden_files(inputs: Sequence[str]) -> list[str]:
    """Return the files in local folders that Spark passes over for their names, but for the marks that Hadoop leaves."""
    found = (path for one in inputs if Path(one).is_dir() for path in Path(one).rglob("[_.]*"))
    return sorted(str(path) for path in found if path.is_file() and path.suffix != ".crc" and path.name != "_SUCCESS")


def glob_free(path: str) -> str:
    """Escape the characters of a path that Spark would read as a pattern."""
    return _GLOB.sub(r"\\\1", path)


def first_line(error: Exception) -> str:
    """Return the first line of what Java says of an error, without credentials of a URI."""
    java = getattr(error, "java_exception", None)
    said = str(java if java is not None else error).partition("\n")[0]
    return _CREDENTIALS.sub("://", said)


def _path(given: str) -> str:
    local = Path(given)
    return "file://" + glob_free(str(local.resolve())) if local.exists() else given
