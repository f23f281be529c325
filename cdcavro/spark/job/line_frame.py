"""Reading files of JSON lines as a DataFrame of raw lines, each with the file and block it comes from."""

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
from cdcavro.files.lines import BOM, HEAD_BYTES, KEPT, Line

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pyspark.sql import Column, DataFrame, SparkSession

_GZIP: Final = b"\x1f\x8b"
_KEPT: Final = 1024
_ALL: Final = (1 << 31) - 1
_CREDENTIALS: Final = re.compile(r"://[^/@\s]+@")
_GLOB: Final = re.compile(r"([\\*?\[\]{}])")


def read_line_frame(spark: SparkSession, inputs: Sequence[str]) -> DataFrame:
    r"""Read the lines of files, plain or gzip, or of all files in folders.

    The columns are `raw` (binary, without `\n`; only the first 64 KiB of a line that is longer than a
    message may be), `length` (long, bytes of the whole line), `file` (string) and `block` (long, the byte
    at which the part of the file starts that one task reads). Lines end at `\n` only, and bytes that are
    not UTF-8 stay as they are. As Spark does, files in folders are passed over if their names start with
    `_` or `.`. Raises `FileError` if an input does not exist, or is a file with such a name.
    """
    paths = [_path(path) for path in inputs]
    for path in inputs:
        if path.rstrip("/").rpartition("/")[2].startswith(("_", ".")) and Path(path).is_file():
            raise FileError(path, "a name that Spark reads", "one that starts with _ or .")
    try:
        text = spark.read.option("recursiveFileLookup", "true").text(paths, lineSep="\n")
    except AnalysisException as error:
        # Spark 4.0 has given it a new name.
        if getattr(error, "getCondition", error.getErrorClass)() != "PATH_NOT_FOUND":
            raise
        missing = next((path for path in inputs if "://" not in path and not Path(path).exists()), inputs[0])
        raise FileError(missing, "a file or folder", "none") from error
    raw = unmarked(sf.col("value").cast("binary"))
    length = sf.octet_length(raw)
    return text.select(
        sf.when(length > MAX_LENGTH, sf.substring(raw, 1, KEPT)).otherwise(raw).alias("raw"),
        length.cast("bigint").alias("length"),
        sf.col("_metadata.file_path").alias("file"),
        sf.col("_metadata.file_block_start").alias("block"),
    )


def unmarked(raw: Column) -> Column:
    """Return lines without a byte order mark before them, which is no part of a message."""
    return sf.when(sf.startswith(raw, sf.lit(BOM)), sf.substring(raw, len(BOM) + 1, _ALL)).otherwise(raw)


@lru_cache(maxsize=_KEPT)
def plain_path(uri: str) -> str:
    """Return a file's URI as people write it: for a local file, the path without scheme and escapes.

    >>> plain_path("file:///tmp/a%20b.jsonl")
    '/tmp/a b.jsonl'
    """
    return unquote(urlsplit(uri).path) if uri.startswith("file:") else uri


def read_head(spark: SparkSession, uri: str, size: int = HEAD_BYTES) -> Iterator[Line]:
    """Return the complete lines in the first `size` bytes of a file, decompressed.

    Raises `FileError` if the file cannot be read, or is gzip whose name does not end in `.gz`.
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
    lines = head.removeprefix(BOM).split(b"\n")
    if len(head) == size or not lines[-1]:
        lines.pop()
    return (Line(number, raw, len(raw)) for number, raw in enumerate(lines, 1))


def hidden_files(inputs: Sequence[str]) -> list[str]:
    """Return the files in local folders that Spark passes over by name, except the markers that Hadoop leaves."""
    hidden = (path for folder in inputs if Path(folder).is_dir() for path in Path(folder).rglob("[_.]*"))
    return sorted(str(path) for path in hidden if path.is_file() and path.suffix != ".crc" and path.name != "_SUCCESS")


def glob_free(path: str) -> str:
    """Return a path with those characters escaped that Spark would read as a pattern."""
    return _GLOB.sub(r"\\\1", path)


def first_line(error: Exception) -> str:
    """Return the first line of Java's message for an error that says something, without the credentials in URIs."""
    java = getattr(error, "java_exception", None)
    message = str(java if java is not None else error).strip().partition("\n")[0]
    return _CREDENTIALS.sub("://", message)


def _path(text: str) -> str:
    local = Path(text)
    return "file://" + glob_free(str(local.resolve())) if local.exists() else text
