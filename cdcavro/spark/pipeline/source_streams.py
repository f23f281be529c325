"""Source streams of Spark: the messages of a source as frames, with the columns of `sources.COLUMNS`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeVar

from pyspark.sql import functions as sf

from cdcavro.exact.jsontext import MAX_LENGTH
from cdcavro.files.lines import KEPT
from cdcavro.spark.source.line_frame import glob_free, text_options, whole_files
from cdcavro.sync.sources import Files, Kafka

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, DataFrameReader, SparkSession
    from pyspark.sql.streaming.readwriter import DataStreamReader

_REJECT: Final = (
    "raw string, record_key string, topic string, partition int, offset bigint, file string, line bigint, clock string"
)
R = TypeVar("R", bound="DataFrameReader | DataStreamReader")
# How long a check waits for an answer (three times, as Spark asks), in milliseconds: Kafka wants the second to be the
# longer.
_PATIENCE: Final = {"kafka.request.timeout.ms": "10000", "kafka.default.api.timeout.ms": "15000"}
# How much older than the newest a file may be: by default Spark passes over what is a week older.
_AGE: Final = {"maxFileAge": "36500d"}


def check_source(source: Kafka | Files, spark: SparkSession) -> None:
    """Ask for what a source has. Raises `FileError`, and what Spark raises if there is no answer."""
    if isinstance(source, Files):
        with whole_files(spark):
            spark.read.options(**text_options(spark)).text(_path(source)).limit(1).collect()
        return
    reader = spark.read.format("kafka").options(**{**_PATIENCE, **source.options, "startingOffsets": "earliest"})
    _subscribe(reader, source).load().limit(1).collect()


def stream_of(source: Kafka | Files, spark: SparkSession) -> DataFrame:
    """Return the messages of a source, from the first one, or from where its options say.

    Raises `FileError` for a local path where nothing is.
    """
    return _files_stream(source, spark) if isinstance(source, Files) else _kafka_stream(source, spark)


def _kafka_stream(source: Kafka, spark: SparkSession) -> DataFrame:
    reader = spark.readStream.format("kafka").options(**{"startingOffsets": "earliest", **source.options})
    reader = _subscribe(reader, source)
    if source.most is not None:
        reader = reader.option("maxOffsetsPerTrigger", source.most)
    value, length = sf.col("value"), sf.octet_length("value")
    return reader.load().select(
        _bounded_raw(value, length),
        length.cast("bigint").alias("length"),
        "key",
        "topic",
        "partition",
        "offset",
        sf.lit(None).cast("string").alias("file"),
        *_no_reject(),
    )


def _subscribe(reader: R, source: Kafka) -> R:
    named = ("subscribePattern", source.pattern) if source.pattern else ("subscribe", ",".join(source.topics))
    return reader.option("kafka.bootstrap.servers", source.servers).option(*named)  # type: ignore[return-value]


def _files_stream(source: Files, spark: SparkSession) -> DataFrame:
    reader = spark.readStream.options(**text_options(spark), **_AGE)
    if source.most is not None:
        reader = reader.option("maxFilesPerTrigger", source.most)
    raw = sf.col("value").cast("binary")
    length = sf.octet_length(raw)
    nothing = sf.lit(None)
    return reader.text(_path(source)).select(
        _bounded_raw(raw, length),
        length.cast("bigint").alias("length"),
        nothing.cast("binary").alias("key"),
        nothing.cast("string").alias("topic"),
        nothing.cast("int").alias("partition"),
        nothing.cast("bigint").alias("offset"),
        sf.col("_metadata.file_path").alias("file"),
        sf.col("_metadata.file_size").alias("size"),
        *_no_reject(),
    )


def _path(source: Files) -> str:
    source.check_path()
    local = "://" not in source.path and Path(source.path).exists()
    return "file://" + glob_free(str(Path(source.path).resolve())) if local else source.path


def replay_stream(spark: SparkSession, folder: str) -> DataFrame:
    """Return the stream of rejects that are put into a folder, as `write_rejects` wrote them, each once."""
    reader = spark.readStream.schema(_REJECT).options(recursiveFileLookup="true", **_AGE)
    # Whatever somebody puts there is a reject again, if it is none.
    raw = sf.coalesce(sf.try_to_binary("raw", sf.lit("base64")), sf.lit(b""))
    return reader.json(folder).select(
        raw.alias("raw"),
        sf.octet_length(raw).cast("bigint").alias("length"),
        sf.try_to_binary("record_key", sf.lit("base64")).alias("key"),
        *("topic", "partition", "offset", "file", "line"),
        sf.coalesce("clock", sf.lit("null")).alias("clock"),
    )


def _no_reject() -> list[Column]:
    return [sf.lit(None).cast("bigint").alias("line"), sf.lit(None).cast("string").alias("clock")]


def _bounded_raw(raw: Column, length: Column) -> Column:
    return sf.when(length > MAX_LENGTH, sf.substring(raw, 1, KEPT)).otherwise(raw).alias("raw")
