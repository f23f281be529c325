"""Sources of messages: Kafka topics, and files and folders of JSON lines, as frames of raw messages."""

from __future__ import annotations

import os
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final

from pyspark.sql import functions as sf

from cdcavro.errors import FileError, plain
from cdcavro.exact.jsontext import MAX_LENGTH
from cdcavro.files.lines import KEPT
from cdcavro.spark.source.line_frame import glob_free, text_options, whole_files

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import Column, DataFrame, SparkSession

# `length` is that of the whole message, of which `raw` has the beginning if it is longer than one may be.
# `line` and `clock` are those of a reject that is read again, whose lane was left long ago.
# Files have `size` as well, that of each in bytes.
COLUMNS: Final = ("raw", "length", "key", "topic", "partition", "offset", "file", "line", "clock")
_REJECT: Final = (
    "raw string, record_key string, topic string, partition int, offset bigint, file string, line bigint, clock string"
)
# Options of Spark's source of Kafka under which one task has no whole topic partition, or messages are passed over.
_REFUSED: Final = frozenset({"minpartitions", "maxrecordsperpartition", "failondataloss", "includeheaders"})
# How long a check waits for an answer (three times, as Spark asks), in milliseconds: Kafka wants the second to be the
# longer.
_PATIENCE: Final = {"kafka.request.timeout.ms": "10000", "kafka.default.api.timeout.ms": "15000"}
# What Kafka's client says of a topic that there is not, which it does not name.
_UNKNOWN_TOPIC: Final = ("UnknownTopicOrPartition", "does not host this topic")
# How much older than the newest a file may be: by default Spark passes over what is a week older.
_AGE: Final = {"maxFileAge": "36500d"}


@dataclass(frozen=True)
class Kafka:
    """Topics of a Kafka cluster.

    * `servers` (str): `host:port` of some brokers, separated by commas.
    * `topics` (tuple of str) or `pattern` (str): names, or a regular expression of Java's that names match.
    * `options` (dict): those of Spark's source of Kafka, such as `kafka.security.protocol`; their values are not shown.
    * `most` (int or None): how many messages a batch has at most.
    """

    servers: str
    topics: tuple[str, ...] = ()
    pattern: str | None = None
    options: Mapping[str, str] = field(default_factory=dict, repr=False)
    most: int | None = None

    def __post_init__(self) -> None:
        """Raise `ValueError` unless there are topics or a pattern, and for options that would lose messages."""
        if bool(self.topics) == (self.pattern is not None):
            raise ValueError("Kafka needs either topics or a pattern of their names")
        refused = sorted(name for name in self.options if name.lower() in _REFUSED)
        if refused:
            raise ValueError(f"the options {', '.join(refused)} of Spark's source of Kafka cannot be set")

    @property
    def name(self) -> str:
        """What the source is called in messages."""
        return f"Kafka at {self.servers}"

    def explain(self, said: str) -> str:
        """Return what is said of a failure, with the topics that were asked for if Kafka has one of them not."""
        is_unknown = self.topics and any(word in said for word in _UNKNOWN_TOPIC)
        return f"{said} Asked for were the topics {', '.join(map(plain, self.topics))}" if is_unknown else said

    def check_path(self) -> None:
        """Look at what is of this machine, which is nothing."""

    def check(self, spark: SparkSession) -> None:
        """Ask Kafka for the topics. Raises what Spark raises if there is no answer."""
        reader = spark.read.format("kafka").options(**{**_PATIENCE, **self.options, "startingOffsets": "earliest"})
        reader = reader.option("kafka.bootstrap.servers", self.servers)
        named = ("subscribePattern", self.pattern) if self.pattern else ("subscribe", ",".join(self.topics))
        reader.option(*named).load().limit(1).collect()

    def stream(self, spark: SparkSession) -> DataFrame:
        """Return the messages from the first one that Kafka has, or from where the options say."""
        reader = spark.readStream.format("kafka").options(**{"startingOffsets": "earliest", **self.options})
        reader = reader.option("kafka.bootstrap.servers", self.servers)
        reader = (
            reader.option("subscribePattern", self.pattern)
            if self.pattern
            else reader.option("subscribe", ",".join(self.topics))
        )
        if self.most is not None:
            reader = reader.option("maxOffsetsPerTrigger", self.most)
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


@dataclass(frozen=True)
class Files:
    """Files of JSON lines, plain or packed with gzip or Zstandard: one, a pattern of paths, or a folder with new ones.

    A file must be complete when it appears, and its name must not begin with `_` or `.`.

    * `path` (str): a path or an address that Spark reads.
    * `most` (int or None): how many files a batch has at most.
    """

    path: str
    most: int | None = None

    @property
    def name(self) -> str:
        """What the source is called in messages."""
        return self.path

    def stream(self, spark: SparkSession) -> DataFrame:
        """Return the lines. Raises `FileError` for a local path where nothing is."""
        reader = spark.readStream.options(**text_options(spark), **_AGE)
        if self.most is not None:
            reader = reader.option("maxFilesPerTrigger", self.most)
        raw = sf.col("value").cast("binary")
        length = sf.octet_length(raw)
        nothing = sf.lit(None)
        return reader.text(self._path()).select(
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

    def explain(self, said: str) -> str:
        """Return what is said of a failure, which names its file."""
        return said

    def check_path(self) -> None:
        """Raise `FileError` for a local path where nothing is."""
        self._path()

    def check(self, spark: SparkSession) -> None:
        """Look for the files. Raises `FileError`, and what Spark raises."""
        with whole_files(spark):
            spark.read.options(**text_options(spark)).text(self._path()).limit(1).collect()

    def _path(self) -> str:
        path = self.path
        if "://" not in path and Path(path).exists():
            check_links(Path(path).resolve())
            path = "file://" + glob_free(str(Path(path).resolve()))
        elif "://" not in path and not any(mark in path for mark in "*?[{"):
            raise FileError(path, "a file or folder", "none")
        return path


def check_links(root: Path) -> None:
    """Raise `FileError` for a folder to which links within another lead again: Spark would read it again."""
    seen: set[str] = set()
    waiting = [str(root)] if root.is_dir() else []
    while waiting:
        folder = waiting.pop()
        real = os.path.realpath(folder)
        if real in seen:
            raise FileError(folder, "a folder that is read once", f"a link to {real}, which is read already")
        seen.add(real)
        # What somebody moves away meanwhile is not there.
        with suppress(FileNotFoundError, NotADirectoryError), os.scandir(folder) as entries:
            waiting += [entry.path for entry in entries if not entry.name.startswith(("_", ".")) and entry.is_dir()]


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
