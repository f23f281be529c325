"""The sections of a configuration that say where rows go, and where schemas are published."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from msgspec import Struct

from cdcavro.errors import FileError, RegistryError, shown
from cdcavro.lake.evolution import BEHAVIORS, LENIENT
from cdcavro.registry.client import TIMEOUT
from cdcavro.spark.lake.sinks import Delta, Iceberg
from cdcavro.spark.pipeline.lake_tables import LakeSettings
from cdcavro.spark.pipeline.outputs.avro_files import AvroFiles
from cdcavro.spark.pipeline.outputs.kafka_topics import KafkaTopics
from cdcavro.spark.pipeline.outputs.topic_names import NAME
from cdcavro.spark.pipeline.registries.access import RegistrySettings
from cdcavro.spark.pipeline.registries.secrets import check_addresses, safe_repr

if TYPE_CHECKING:
    from cdcavro.registry.subjects import Strategy


class LakeConfig(Struct, forbid_unknown_fields=True):
    """Where tables go: `delta` (a folder), or `iceberg` (the name of a catalog) with `warehouse`, if that is a folder."""

    delta: str | None = None
    iceberg: str | None = None
    warehouse: str | None = None
    current: bool = True
    changelog: bool = False
    behavior: str = LENIENT
    guard_days: float = 7
    parallel: int = 4
    adopt: bool = False

    def __post_init__(self) -> None:
        """Raise `ValueError` for an address with a password."""
        check_addresses({"delta": self.delta, "warehouse": self.warehouse})

    def sink(self, file: str) -> LakeSettings:
        """Return the lake that is configured. Raises `FileError`, which names the file."""
        if (self.delta is None) == (self.iceberg is None):
            raise FileError(file, "either delta or iceberg in [lake]", "none" if self.delta is None else "both")
        if self.behavior not in BEHAVIORS:
            raise FileError(file, f"{', '.join(BEHAVIORS)} as behavior in [lake]", shown(self.behavior))
        if not (self.current or self.changelog):
            raise FileError(file, "current or changelog in [lake]", "neither")
        sink = Delta(self.delta) if self.delta is not None else Iceberg(self.iceberg or "")
        try:
            guard = timedelta(days=self.guard_days)
        except (ValueError, OverflowError) as error:
            raise FileError(file, "a number of days as guard_days in [lake]", shown(self.guard_days)) from error
        return LakeSettings(sink, self.current, self.changelog, self.behavior, guard, max(1, self.parallel), self.adopt)


class KafkaConfig(Struct, forbid_unknown_fields=True):
    """Topics of Kafka: the settings of `KafkaTopics`."""

    servers: str
    topic: str = NAME
    options: dict[str, str] = {}
    shards: str | None = None
    tombstones: bool = True
    truncates: bool = True
    partitions: int | None = None
    replication: int | None = None
    parallel: int = 4

    def __post_init__(self) -> None:
        """Raise `ValueError` for an address with a password."""
        check_addresses({"kafka": self.servers})

    def __repr__(self) -> str:
        return safe_repr(self, "options")

    def sink(self, file: str) -> KafkaTopics:
        """Return the topics that are configured. Raises `FileError`, which names the file."""
        told = {name: getattr(self, name) for name in self.__struct_fields__}
        try:
            return KafkaTopics(**{**told, "parallel": max(1, self.parallel)})
        except ValueError as error:
            raise FileError(file, "topics in [kafka]", str(error)) from error


class AvroConfig(Struct, forbid_unknown_fields=True):
    """Avro files: `folder`, `codec` (deflate or null), and how many tables are written at a time."""

    folder: str
    codec: str = "deflate"
    parallel: int = 4

    def __post_init__(self) -> None:
        """Raise `ValueError` for an address with a password."""
        check_addresses({"folder": self.folder})

    def sink(self, file: str) -> AvroFiles:
        """Return the files that are configured. Raises `FileError`, which names the file."""
        try:
            return AvroFiles(self.folder, self.codec, max(1, self.parallel))
        except ValueError as error:
            raise FileError(file, "Avro files in [avro]", str(error)) from error


class RegistryConfig(Struct, forbid_unknown_fields=True):
    """A registry: `url`, how subjects are named, and who asks; `timeout` and `patience` are seconds."""

    url: str
    strategy: str | None = None
    topic: str | None = None
    compatibility: str | None = None
    user: str | None = None
    password: str | None = None
    ca: str | None = None
    certificate: str | None = None
    key: str | None = None
    timeout: float = TIMEOUT
    patience: float = 60

    def __repr__(self) -> str:
        return f"RegistryConfig(strategy={self.strategy!r}, ...)"

    def settings(self, file: str, section: str) -> RegistrySettings:
        """Return the registry that is configured in a section. Raises `FileError`, which names the file."""
        auth = (self.user or "", self.password or "") if self.user or self.password else None
        # It is checked there.
        strategy: Strategy | None = self.strategy  # type: ignore[assignment]
        named = strategy, self.topic, self.compatibility
        try:
            return RegistrySettings(
                self.url, *named, auth, self.ca, self.certificate, self.key, self.timeout, self.patience
            )
        except (ValueError, RegistryError) as error:
            raise FileError(file, f"a registry in [{section}]", str(error)) from error
