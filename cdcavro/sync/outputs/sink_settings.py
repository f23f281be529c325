"""Settings of a pipeline's sinks: tables of a lake, topics of Kafka, Avro files."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Final

from cdcavro.avro.container import CODECS
from cdcavro.errors import FileError, shown
from cdcavro.lake.escaped_names import check_topic_template
from cdcavro.lake.evolution import LENIENT

if TYPE_CHECKING:
    from collections.abc import Mapping

    from cdcavro.lake.lakes import DeltaLake, IcebergLake

_SCHEME: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")
_REFUSED: Final = frozenset({"topic", "includeheaders", "kafka.bootstrap.servers"})
BLOB: Final = "blob"
TUPLE: Final = "tuple"
STRATEGIES: Final = (BLOB, TUPLE)


@dataclass(frozen=True)
class LakeSettings:
    """What is written to which lake.

    * `sink` (`DeltaLake` or `IcebergLake`): the lake; `Delta` and `Iceberg` of `cdcavro.spark.lake` are such, too.
    * `is_current` and `is_changelog` (bool): whether a table's current state is written, and its changelog.
    * `behavior` (str), `guard` (timedelta): as in `CurrentState`.
    * `parallel` (int): how many tables are written at a time.
    * `is_adopting` (bool): whether lake tables of other pipelines are adopted.
    * `warehouse` (str or None): the folder of an Iceberg catalog of files; Spark has it in its session's settings.
    * `is_native` (bool): whether small batches are written without plans of Spark's, where this process reaches the lake.
    """

    sink: DeltaLake | IcebergLake
    is_current: bool = True
    is_changelog: bool = False
    behavior: str = LENIENT
    guard: timedelta = timedelta(days=7)
    parallel: int = 4
    is_adopting: bool = False
    warehouse: str | None = None
    is_native: bool = True
    topic = None

    @property
    def name(self) -> str:
        """What the lake is called in messages."""
        return self.sink.name


@dataclass(frozen=True)
class KafkaTopics:
    """Topics of a Kafka cluster, for which a pipeline needs a registry. Raises `ValueError`.

    * `servers` (str): `host:port` of some brokers, separated by commas.
    * `topic` (str): what topics are called, with `{name}` for the name of the table, or one topic for all.
    * `options` (Mapping[str, str]): those of Spark's sink of Kafka, such as `kafka.security.protocol`; their values are
      not shown.
    * `shards` (str or None): `blob` or `tuple`, the rule by which the partition is chosen; by default Kafka's own.
    * `tombstones` (bool): whether a record without a value follows a delete.
    * `truncates` (bool): whether a TRUNCATE is a record.
    * `partitions` and `replication` (int or None): of topics that are created; by default as the brokers say.
    * `parallel` (int): how many tables are written at a time.
    """

    servers: str
    topic: str = "{name}"
    options: Mapping[str, str] = field(default_factory=dict, repr=False)
    shards: str | None = None
    tombstones: bool = True
    truncates: bool = True
    partitions: int | None = None
    replication: int | None = None
    parallel: int = 4

    def __post_init__(self) -> None:
        """Check the settings."""
        check_topic_template(self.topic)
        if self.shards not in (None, *STRATEGIES):
            raise ValueError(f"shards are those of {' or '.join(STRATEGIES)}, not {shown(self.shards)}")
        refused = sorted(name for name in self.options if name.lower() in _REFUSED)
        if refused:
            raise ValueError(f"the options {', '.join(refused)} of Spark's sink of Kafka cannot be set")

    @property
    def name(self) -> str:
        """What the topics are called in messages."""
        return f"the topics {self.topic} of Kafka at {self.servers}"


@dataclass(frozen=True)
class AvroFiles:
    """Avro object container files. Raises `ValueError`.

    * `root` (str): a folder that all machines of Spark see under the same path, and that no other pipeline writes to.
    * `codec` (str): deflate or null.
    * `parallel` (int): how many tables are written at a time.
    """

    root: str
    codec: str = "deflate"
    parallel: int = 4
    topic = None

    def __post_init__(self) -> None:
        """Check the settings."""
        if _SCHEME.match(self.root):
            raise ValueError(f"Avro files are written to a folder, not to an address such as {shown(self.root)}")
        if self.codec not in CODECS:
            raise ValueError(f"the codecs are {', '.join(CODECS)}, not {shown(self.codec)}")

    @property
    def folder(self) -> Path:
        """The folder."""
        return Path(self.root).absolute()

    @property
    def name(self) -> str:
        """What the files are called in messages."""
        return f"Avro files in {self.folder}"

    def check(self) -> None:
        """Check that the folder can be written to. Raises `FileError`."""
        there = next(path for path in (self.folder, *self.folder.parents) if path.exists())
        if not (there.is_dir() and os.access(there, os.W_OK)):
            raise FileError(self.root, "a folder that can be written to", "none")
