"""Job that converts files of JSON lines into Avro container files, and rejects.

Every line is converted once, on executors, to a payload or a reject, and the outcome is kept; then the payloads of each
format are read by `from_avro` and written by Spark's own Avro writer with the wire schema. The final counts come from
reading back what was written.
"""

from __future__ import annotations

from contextlib import contextmanager
from functools import partial, reduce
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import pyarrow as pa
from py4j.protocol import Py4JError
from pyspark import StorageLevel
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, Observation
from pyspark.sql import functions as sf
from pyspark.sql.avro.functions import from_avro

from cdcavro.errors import FileError, JobError, number_of
from cdcavro.files.lines import HEAD_BYTES, Line
from cdcavro.files.rejects import Report, convert_line, formats_of, note_of_hidden
from cdcavro.files.streams import plain_path, say_nothing
from cdcavro.spark.arrow_udf import in_worker, raw_bytes
from cdcavro.spark.session import classic, first_line
from cdcavro.spark.source.line_frame import (
    SIZE,
    exact_paths,
    glob_free,
    read_head,
    read_line_frame,
    unpack_lines,
    whole_files,
)
from cdcavro.wire.formats import REGISTRY, get_format
from cdcavro.wire.marked_members import NONE, TOMBSTONE, operation_paths, tombstone_pointers
from cdcavro.wire.sniff import AUTO, MIXED

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from pyspark.sql import SparkSession

    from cdcavro.spark.source.line_frame import Head

# How many bytes show a byte order mark; how a file is packed is known before.
_MARK: Final = 4
COLUMNS: Final = (
    "file string, block bigint, index bigint, format string, payload binary, raw binary, path string, reason string"
)
_SCHEMA: Final = pa.schema(
    [
        ("file", pa.string()),
        ("block", pa.int64()),
        ("index", pa.int64()),
        ("format", pa.string()),
        ("payload", pa.binary()),
        ("raw", pa.binary()),
        ("path", pa.string()),
        ("reason", pa.string()),
    ]
)


def run(
    spark: SparkSession,
    inputs: Sequence[str],
    out: str,
    *,
    format: str = AUTO,
    force: bool = False,
    say: Callable[[str], None] = lambda _: None,
) -> Report:
    """Convert files of JSON lines into `out/payloads/<format>/*.avro` and `out/rejects/*.json`.

    `format` is a format's name, `auto` (recognized for each file by its first messages) or `mixed`
    (recognized for each message). If `auto` recognizes none of a file's first messages, that file is
    treated as `mixed`. `force` replaces what an earlier run wrote there. `say` is called with a sentence
    at each step. Returns the counts of the run. Raises `UnknownFormatError`; `FileError` if an input is
    missing or the output exists; `JobError` if the Spark job fails; `SetupError` over Spark Connect.
    """
    if format not in (AUTO, MIXED):
        get_format(format)
    try:
        return _run(classic(spark, "the main job"), inputs, out, format=format, force=force, say=say)
    except (PySparkException, Py4JError) as error:
        raise JobError(f"the Spark job failed: {first_line(error)}") from error


def _run(
    spark: SparkSession, inputs: Sequence[str], out: str, *, format: str, force: bool, say: Callable[[str], None]
) -> Report:
    payloads, rejects = f"{out}/payloads", f"{out}/rejects"
    for folder in (payloads, rejects):
        _make_room(spark, folder, force=force)
    passed_over = note_of_hidden(inputs)
    if passed_over is not None:
        say(passed_over)
    lines = read_line_frame(spark, inputs)
    heads = {file: read_head(spark, file, _MARK if format == MIXED else HEAD_BYTES) for file in lines.inputFiles()}
    for note in (note for head in heads.values() for note in head.notes):
        say(note)
    formats, notes = formats_of({plain_path(file): head.lines for file, head in heads.items()}, format)
    for note in notes[:1]:
        say(note)
    say(f"converting {number_of(len(formats), 'file')}")
    with _convert_files(spark, lines, heads, formats) as parts:
        converted = reduce(DataFrame.union, [part.converted for part in parts])
        kinds = {(row["format"], row["is_reject"]) for row in _kinds(converted).collect()}
        written: dict[tuple[str, str], int] = {}
        for name in sorted(name for name, is_reject in kinds if not is_reject):
            say(f"writing {name}")
            written |= _write_payloads(spark, converted, name, f"{payloads}/{name}")
        rejected: dict[str, int] = {}
        if any(is_reject for _, is_reject in kinds):
            say("writing rejects")
            rejected = _write_rejects(spark, converted, rejects)
        return Report(sum(part.read for part in parts), written, rejected)


class _FileGroup(NamedTuple):
    """Files that are read in one way."""

    # What their lines become, kept.
    converted: DataFrame
    # How many lines there are.
    counted: Observation

    @classmethod
    def of(cls, lines: DataFrame, formats: Mapping[str, str]) -> _FileGroup:
        counted = Observation()
        lines = lines.drop(SIZE).observe(counted, sf.count(sf.lit(1)).alias("read"))
        converted = lines.mapInArrow(in_worker(converter(formats)), COLUMNS).persist(StorageLevel.MEMORY_AND_DISK)
        return cls(converted, counted)

    @property
    def read(self) -> int:
        return int(self.counted.get["read"])


@contextmanager
def _convert_files(
    spark: SparkSession, lines: DataFrame, heads: Mapping[str, Head], formats: Mapping[str, str]
) -> Iterator[list[_FileGroup]]:
    """Convert the lines of files, in blocks if Spark can cut a file, and those of a packed file by one task."""
    packed = [file for file, head in heads.items() if head.is_packed]
    parts: list[_FileGroup] = []
    try:
        if packed:
            with whole_files(spark):
                parts.append(_FileGroup.of(_unpacked_lines(spark, packed), formats))
                # How files are cut is decided when they are first read.
                parts[0].converted.count()
        plain = heads.keys() - packed
        if plain or not heads:
            parts.append(_FileGroup.of(read_line_frame(spark, exact_paths(spark, plain)) if packed else lines, formats))
        yield parts
    finally:
        for part in parts:
            part.converted.unpersist()


def _unpacked_lines(spark: SparkSession, files: Sequence[str]) -> DataFrame:
    """Return the lines of packed files, which are read as a whole. Call it within `whole_files`."""
    lines = read_line_frame(spark, exact_paths(spark, files))
    # Their notes are said already.
    return lines.mapInArrow(in_worker(partial(unpack_lines, say=say_nothing)), lines.schema)


def _kinds(converted: DataFrame) -> DataFrame:
    return converted.select("format", sf.col("payload").isNull().alias("is_reject")).distinct()


def _write_payloads(spark: SparkSession, converted: DataFrame, name: str, folder: str) -> dict[tuple[str, str], int]:
    schema = REGISTRY[name].schema.json
    payloads = converted.where((sf.col("format") == name) & sf.col("payload").isNotNull())
    records = payloads.select(from_avro("payload", schema).alias("record")).select("record.*")
    # Every reader's standard library has deflate; it does not have Spark's own default, snappy.
    records.write.format("avro").option("avroSchema", schema).option("compression", "deflate").save(folder)
    operations = [sf.col(".".join(path)) for path in operation_paths(name)]
    operations += [sf.when(sf.col("extras")[pointer] == "null", TOMBSTONE) for pointer in tombstone_pointers(name)]
    operation = sf.coalesce(*operations, sf.lit(NONE))
    counts = spark.read.format("avro").load(glob_free(folder)).groupBy(operation.alias("operation")).count().collect()
    return {(name, row["operation"]): row["count"] for row in counts}


def _write_rejects(spark: SparkSession, converted: DataFrame, folder: str) -> dict[str, int]:
    rows = converted.where(sf.col("payload").isNull())
    first = _first_lines(spark, converted)
    placed = rows.join(sf.broadcast(first), ["file", "block"])
    placed.select(
        # Spark's own function breaks lines every 76 characters.
        sf.translate(sf.base64("raw"), "\r\n", "").alias("raw"),
        "file",
        (sf.col("first") + sf.col("index")).alias("line"),
        "format",
        "path",
        "reason",
    ).write.json(folder, ignoreNullFields=False)
    shape = "raw string, file string, line bigint, format string, path string, reason string"
    counts = spark.read.schema(shape).json(glob_free(folder)).groupBy("format").count().collect()
    return {row["format"] or "": row["count"] for row in counts}


def _first_lines(spark: SparkSession, converted: DataFrame) -> DataFrame:
    """Return the number of the first line of each block, counted from 1."""
    blocks = converted.groupBy("file", "block").count().orderBy("file", "block").collect()
    following: dict[str, int] = {}
    rows = []
    for row in blocks:
        first = following.get(row["file"], 1)
        following[row["file"]] = first + row["count"]
        rows.append((row["file"], row["block"], first))
    return spark.createDataFrame(rows, "file string, block bigint, first bigint")


def _make_room(spark: SparkSession, folder: str, *, force: bool) -> None:
    jvm: Any = spark._jvm  # noqa: SLF001  Hadoop's file systems have no Python interface
    path = jvm.org.apache.hadoop.fs.Path(folder)
    files = path.getFileSystem(spark._jsc.hadoopConfiguration())  # noqa: SLF001
    if not files.exists(path):
        return
    if not force:
        raise FileError(folder, "a new folder (--force replaces one)", "one that exists")
    files.delete(path, True)  # noqa: FBT003  recursive


def converter(formats: Mapping[str, str]) -> Callable[[Iterable[pa.RecordBatch]], Iterable[pa.RecordBatch]]:
    """Return the function that converts batches of `read_line_frame` into batches of `COLUMNS`.

    `formats` maps each file's plain path to the format of its messages, which is an empty text if each
    message is to be sniffed. `index` counts the lines of a block from 0; `raw`, `path` and `reason` are
    set for rejects only.
    """

    def convert(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        count: dict[tuple[str, int], int] = {}
        for batch in batches:
            files = [plain_path(uri) for uri in batch.column("file").to_pylist()]
            blocks = batch.column("block").to_pylist()
            indexes = []
            for place in zip(files, blocks, strict=True):
                indexes.append(count.get(place, 0))
                count[place] = indexes[-1] + 1
            lengths = batch.column("length").to_pylist()
            lines = zip(indexes, raw_bytes(batch.column("raw")), lengths, files, strict=True)
            rows = [convert_line(Line(i, raw or b"", length), formats[file]) for i, raw, length, file in lines]
            columns: list[Any] = [files, blocks, indexes, *zip(*rows, strict=True)] if rows else [[]] * len(_SCHEMA)
            yield pa.RecordBatch.from_arrays(
                [pa.array(column, field.type) for column, field in zip(columns, _SCHEMA, strict=True)], schema=_SCHEMA
            )

    return convert
