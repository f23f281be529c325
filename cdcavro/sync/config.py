"""A pipeline's configuration: a file of TOML, read into a `Pipeline`.

    state = "state"
    format = "canal"

    [source]
    kafka = "127.0.0.1:9092"
    topics = ["shop"]

    [lake]
    delta = "lake"

A text may have `${NAME}`, which stands for the environment variable of that name, so that no secret has to be in the
file: whatever came from a variable is shown nowhere, and Spark's pages hide the options and settings that have one.
What is not known is an error, which names its place.
"""

from __future__ import annotations

import re
import tomllib
from datetime import timedelta
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, Final, TypeVar, cast, get_args, overload

import msgspec
from msgspec import Struct

from cdcavro.errors import FileError, RegistryError, shown
from cdcavro.exact.instants import find_zone
from cdcavro.files.rejects import MaxRejects
from cdcavro.formats.connect_columns import PLACEHOLDER
from cdcavro.lake.escaped_names import TABLE_NAME
from cdcavro.lake.evolution import BEHAVIORS, LENIENT
from cdcavro.lake.lakes import DeltaLake, IcebergLake
from cdcavro.registry.client import TIMEOUT
from cdcavro.registry.framing import CONFLUENT
from cdcavro.sync.metrics import MetricsConfig  # noqa: TC001  msgspec looks for it
from cdcavro.sync.outputs.sink_settings import AvroFiles, KafkaTopics, LakeSettings
from cdcavro.sync.pipeline import Pipeline
from cdcavro.sync.protection import RowRule  # noqa: TC001  msgspec reads it
from cdcavro.sync.secrets import (
    Redaction,
    check_addresses,
    fill_variables,
    from_variables,
    redaction_of,
    redaction_pattern,
    safe_repr,
)
from cdcavro.sync.settings import Chosen, Formats, RegistrySettings, Settings, section_of
from cdcavro.sync.sources import Files, Kafka
from cdcavro.table.columns.column_type import TypeOverrides
from cdcavro.table.tables import KEEP, UNSTATED
from cdcavro.wire.sniff import MIXED

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from cdcavro.registry.subjects import Strategy


# The setting of Spark that says what its pages hide.
REDACTED: Final = "spark.redaction.regex"
P = TypeVar("P", bound=Pipeline)
RUNNERS: Final = ("spark", "local")
# An interval of Spark's whose length never varies; only seconds may have a fraction.
_PART: Final = r"(?:[0-9]{1,9}\s+(?:micro|milli)?seconds?|[0-9]{1,9}[.][0-9]{1,9}\s+seconds?|[0-9]{1,6}\s+(?:minute|hour|day|week)s?)"
_EVERY: Final = re.compile(rf"\s*(?:interval\s+)?{_PART}(?:\s+{_PART})*\s*", re.IGNORECASE | re.ASCII)
_IS_LONG: Final = re.compile("[1-9]")
# Reading TOML takes the square of the parts of a key, and a level of Python's stack for each bracket.
MAX_SIZE: Final = 256 << 10
_MOST_PARTS: Final = 32
_LONG_KEY: Final = re.compile(
    rf"""(?:(?:[A-Za-z0-9_-]++|"(?:[^"\\\n]|\\.)*+"|'[^'\n]*+')[ \t]*+\.[ \t]*+){{{_MOST_PARTS}}}"""
)
# What msgspec says, and how TOML states a section and a setting.
_UNKNOWN: Final = re.compile(r"Object contains unknown field `(.*)`", re.DOTALL)
_MISSING: Final = re.compile(r"Object missing required field `(.*)`", re.DOTALL)
_OTHER_TYPE: Final = re.compile(r"Expected `([^`]*)`, got `([^`]*)`")
_NAME: Final = re.compile(r"[A-Za-z0-9_-]+")
_HEADER: Final = re.compile(r"\s*\[{1,2}\s*([^\[\]#]+)\]")
# Which one of several sections of one name it is, counted from 0.
_INDEX: Final = re.compile(r"(?<=^\.table)\[([0-9]+)\]")
_SETTING: Final = re.compile(r"""\s*([A-Za-z0-9_.\-"' ]+?)\s*=""")
_TYPES: Final = {
    "int": "an integer",
    "float": "a number",
    "str": "a text",
    "bool": "true or false",
    "array": "a list",
    "object": "a section",
}
# What is said of sections whose names have too few or too many brackets.
_BRACKETS: Final = {
    ("table",): "rules for tables are sections [[table]], each with two brackets",
    ("tables",): "[tables] is one section; rules for tables are sections [[table]]",
}


class LakeConfig(Struct, forbid_unknown_fields=True):
    """Lake tables, one or two for each table of the database. Either `delta` or `iceberg` is stated.

    * `delta`: the folder or address of tables of Delta Lake.
    * `iceberg`: the name of a catalog of Iceberg's.
    * `warehouse`: the folder of an Iceberg catalog of files.
    * `current`: whether the current state of a table is kept.
    * `changelog`: whether each change is appended to a second table.
    * `behavior`: how lake tables follow statements: `exception`, `evolve`, `try_evolve`, `lenient` or `ignore`.
    * `guard_days`: how many days a delete is guarded against late changes of its key.
    * `parallel`: how many tables are written at a time.
    * `adopt`: whether lake tables of another pipeline are taken over.
    * `native`: whether Spark's driver writes small batches itself.
    """

    delta: str | None = None
    iceberg: str | None = None
    warehouse: str | None = None
    current: bool = True
    changelog: bool = False
    behavior: str = LENIENT
    guard_days: float = 7
    parallel: int = 4
    adopt: bool = False
    # Whether Spark's driver writes small batches itself.
    native: bool = True

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
        lake = DeltaLake(self.delta) if self.delta is not None else IcebergLake(self.iceberg or "")
        try:
            guard = timedelta(days=self.guard_days)
        except (ValueError, OverflowError) as error:
            raise FileError(file, "a number of days as guard_days in [lake]", shown(self.guard_days)) from error
        if guard < timedelta():
            raise FileError(file, "a number of days as guard_days in [lake]", shown(self.guard_days))
        return LakeSettings(
            lake,
            is_current=self.current,
            is_changelog=self.changelog,
            behavior=self.behavior,
            guard=guard,
            parallel=max(1, self.parallel),
            is_adopting=self.adopt,
            warehouse=self.warehouse,
            is_native=self.native,
        )


class KafkaConfig(Struct, forbid_unknown_fields=True):
    """Topics of Kafka, instead of a lake; they need a registry.

    * `servers`: `host:port` of some brokers, separated by commas.
    * `topic`: the name of a table's topic; `{name}` is the table. Without it, one topic has all tables.
    * `options`: options of Spark's sink of Kafka; their values are not shown.
    * `shards`: the rule that chooses the partition: `blob` or `tuple`, by default Kafka's own.
    * `tombstones`: whether a record without a value follows a delete, as a compacted topic needs it.
    * `truncates`: whether a TRUNCATE is a record. It has no key, which a compacted topic does not take.
    * `partitions`: how many partitions a new topic has, by default as the brokers say.
    * `replication`: how many replicas a new topic has, by default as the brokers say.
    * `parallel`: how many tables are written at a time.
    * `connect`: whether values and keys are Debezium's Avro, for consumers with Kafka Connect's converter.
    """

    servers: str
    topic: str = TABLE_NAME
    options: dict[str, str] = {}
    shards: str | None = None
    tombstones: bool = True
    truncates: bool = True
    partitions: int | None = None
    replication: int | None = None
    parallel: int = 4
    connect: bool = False

    def __post_init__(self) -> None:
        """Raise `ValueError` for an address with a password."""
        check_addresses({"kafka": self.servers})

    def __repr__(self) -> str:
        return safe_repr(self, "options")

    def sink(self, file: str) -> KafkaTopics:
        """Return the topics that are configured. Raises `FileError`, which names the file."""
        settings = {name: getattr(self, name) for name in self.__struct_fields__ if name != "connect"}
        try:
            return KafkaTopics(**{**settings, "parallel": max(1, self.parallel)}, is_connect=self.connect)
        except ValueError as error:
            raise FileError(file, "topics in [kafka]", str(error)) from error


class AvroConfig(Struct, forbid_unknown_fields=True):
    """Avro files, instead of a lake.

    * `folder`: a folder that no other pipeline writes to.
    * `codec`: `deflate` or `null`.
    * `parallel`: how many tables are written at a time.
    """

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
    """A registry in which the schemas of tables are published.

    * `url`: a server with Confluent's REST API, or `file:FOLDER`.
    * `strategy`: how subjects are named: `topic`, `record` or `topic-record`.
    * `topic`: the topic that subjects are named after; `{name}` is the table.
    * `compatibility`: the level that each subject is given; by default its own or the registry's counts.
    * `user`: the name to log in with; by default `CDCAVRO_REGISTRY_USER` has it.
    * `password`: the password; by default `CDCAVRO_REGISTRY_PASSWORD` has it.
    * `ca`: the file of the authority that signed the server's certificate.
    * `certificate`: the file of the certificate that this side shows.
    * `key`: the file of that certificate's key.
    * `timeout`: how many seconds one question may take.
    * `patience`: how many seconds the registry may be down or too busy before the pipeline stops.
    """

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

    def settings(self, file: str, section: str, framing: str = CONFLUENT) -> RegistrySettings:
        """Return the registry that is configured in a section. Raises `FileError`, which names the file."""
        auth = (self.user or "", self.password or "") if self.user or self.password else None
        # It is checked there.
        strategy: Strategy | None = self.strategy  # type: ignore[assignment]
        named = strategy, self.topic, self.compatibility
        try:
            return RegistrySettings(
                self.url, *named, auth, self.ca, self.certificate, self.key, self.timeout, self.patience, framing
            )
        except (ValueError, RegistryError) as error:
            raise FileError(file, f"a registry in [{section}]", str(error)) from error


class SourceConfig(Struct, forbid_unknown_fields=True):
    """Where messages come from. Either `kafka`, with `topics` or `pattern`, or `files` is stated.

    * `kafka`: `host:port` of some brokers, separated by commas.
    * `topics`: the names of topics.
    * `pattern`: a regular expression that the names of topics match.
    * `options`: options of Spark's source of Kafka; their values are not shown.
    * `files`: a file, a folder, or a pattern of paths.
    * `most`: how many messages, or files, a batch has at most.
    * `framed`: whether the values are payloads behind the id of their schema in a registry, or how they are framed.
    * `registry`: the registry of framed payloads, with the settings of `[registry]`; by default that one.
    """

    kafka: str | None = None
    topics: list[str] = []
    pattern: str | None = None
    options: dict[str, str] = {}
    files: str | None = None
    most: int | None = None
    framed: bool | str = False
    registry: RegistryConfig | None = None

    def __post_init__(self) -> None:
        """Raise `ValueError` for an address with a password."""
        check_addresses({"kafka": self.kafka, "files": self.files})

    def __repr__(self) -> str:
        return safe_repr(self, "options")


class TablesConfig(Struct, forbid_unknown_fields=True):
    """Which tables are wanted, and how their values are read, as in `cdcavro tables`.

    * `include`: patterns of the names of tables, of which one must fit.
    * `exclude`: patterns of the names of tables, of which none may fit.
    * `table`: the table of rows whose message names none.
    * `zone`: the time zone of times without one.
    * `types`: the types of columns that state none, or other ones than they state, by table and column.
    * `on_misfit`: what becomes of a value that its column's type cannot hold: `keep`, `error` or `reject`.
    * `absent`: what a column is that a row does not have: `unstated`, which leaves it as it was, or `null`.
    * `decimals`: how Debezium sends decimals, its `decimal.handling.mode`; by default `precise`.
    * `times`: how Debezium sends times, its `time.precision.mode`; by default `adaptive_time_microseconds`.
    * `binaries`: how Debezium sends binary values, its `binary.handling.mode`; by default `bytes`.
    * `unavailable`: what stands for a value that the source did not give; an empty text takes every value as it is.
    """

    include: list[str] = []
    exclude: list[str] = []
    table: str | None = None
    zone: str | None = None
    types: dict[str, dict[str, str]] = {}
    on_misfit: str = KEEP
    absent: str = UNSTATED
    decimals: str | None = None
    times: str | None = None
    binaries: str | None = None
    unavailable: str = PLACEHOLDER


class Config(Struct, forbid_unknown_fields=True):
    """The configuration of a pipeline.

    * `state`: the folder for what the pipeline remembers; all machines see it under the same path.
    * `format`: the format of all messages, `mixed` to detect that of each, or one by pattern of topics or files.
    * `rejects`: the folder for rejects, by default `rejects` in that of the state.
    * `rejects_table`: a table of the lake where rejects go besides.
    * `rejects_topic`: a topic of Kafka where rejects go besides.
    * `rejects_raw`: whether rejects `keep` the bytes of their messages, or `omit` them; with `[[table]]` it must be said.
    * `max_rejects`: how many rejects in all stop the pipeline, as a number or a share; by default none do.
    * `every`: how often a batch begins.
    * `merge_every`: with how many batches tables are written; until then their rows wait in the state.
    * `run`: what runs the pipeline: `spark`, or `local`, which is this process.
    * `memory`: how many MiB of a batch's rows a local run holds before they go to files.
    * `spark`: settings of Spark's, which a local run passes over.
    """

    state: str
    source: SourceConfig
    # Rows go to one of these.
    lake: LakeConfig | None = None
    kafka: KafkaConfig | None = None
    avro: AvroConfig | None = None
    registry: RegistryConfig | None = None
    metrics: MetricsConfig | None = None
    format: str | dict[str, str] = MIXED
    tables: TablesConfig = msgspec.field(default_factory=TablesConfig)
    rejects: str | None = None
    rejects_table: str | None = None
    rejects_topic: str | None = None
    rejects_raw: str | None = None
    # What is written of rows: columns that are left out or masked.
    table: list[RowRule] = []
    max_rejects: str | int | None = None
    every: str = "10 seconds"
    merge_every: int = 1
    run: str = "spark"
    memory: int = 256
    spark: dict[str, str] = {}

    def __post_init__(self) -> None:
        """Raise `ValueError` for an address with a password, and for a time between batches that is none."""
        check_addresses({"state": self.state, "rejects": self.rejects})
        if self.run not in RUNNERS:
            raise ValueError(f"run is {' or '.join(RUNNERS)}, not {shown(self.run)}")
        if self.memory < 1:
            raise ValueError(f"memory is a number of MiB, at least 1, not {self.memory}")
        if _EVERY.fullmatch(self.every) is None or not _IS_LONG.search(self.every):
            raise ValueError(f'every is a time such as "10 seconds", not {shown(self.every)}')

    def __repr__(self) -> str:
        return safe_repr(self, "spark")

    @property
    def redaction(self) -> Redaction:
        """What hides whatever came from variables."""
        return redaction_of(self)

    @overload
    def pipeline(self, file: str) -> Pipeline: ...

    @overload
    def pipeline(self, file: str, kind: type[P]) -> P: ...

    def pipeline(self, file: str, kind: type[Pipeline] = Pipeline) -> Pipeline:
        """Return the pipeline that is configured, of the kind that its runner runs.

        Raises `FileError`, which names the file and the place.
        """
        with self.redaction.errors():
            return self._pipeline(file, kind)

    def _pipeline(self, file: str, kind: type[P]) -> P:
        source, sink = _source(file, self.source), self._sink(file)
        registry = None if self.registry is None else self.registry.settings(file, "registry")
        try:
            settings = Settings(
                Formats(self.format),
                Chosen(tuple(self.tables.include), tuple(self.tables.exclude)),
                _options(file, self.tables),
                self.tables.unavailable or None,
                self.rejects,
                None if self.max_rejects is None else MaxRejects.of(str(self.max_rejects)),
                self.merge_every,
                self._registry_of_source(file),
                self.rejects_table,
                self.rejects_topic,
                tuple(self.table),
                self.rejects_raw,
            )
            return kind(source, sink, self.state, settings, registry, self.redaction)
        except (ValueError, LookupError) as error:
            raise FileError(file, "a configuration", str(error)) from error

    def _registry_of_source(self, file: str) -> RegistrySettings | None:
        own = self.source.registry
        if self.source.framed is False:
            if own is not None:
                raise FileError(file, "framed = true in [source] for its registry", "none")
            return None
        framing = CONFLUENT if self.source.framed is True else self.source.framed
        if own is not None:
            return own.settings(file, "source.registry", framing)
        if self.registry is None:
            raise FileError(file, "a registry for framed payloads, in [source.registry] or [registry]", "none")
        return self.registry.settings(file, "registry", framing)

    def _sink(self, file: str) -> LakeSettings | KafkaTopics | AvroFiles:
        stated = [one for one in (self.lake, self.kafka, self.avro) if one is not None]
        if len(stated) != 1:
            raise FileError(file, "one of [lake], [kafka] and [avro]", "several" if stated else "none")
        return stated[0].sink(file)


def read_config(path: Path | None, instead: Mapping[str, Any] | None = None) -> Config:
    """Read a configuration; the members of `instead` replace those of the file, if there is one.

    Raises `FileError`, which names the place of what is wrong, and never a value of `options` or from a variable.
    """
    name = "the options" if path is None else str(path)
    text = "" if path is None else _text(path)
    stated = {} if path is None else _read(text, name)
    for member, value in (instead or {}).items():
        old = stated.get(member, {})
        if not isinstance(value, dict):
            stated[member] = value
        elif isinstance(old, dict):
            stated[member] = {**old, **value}
    with redaction_of(stated).errors():
        try:
            return msgspec.convert(stated, Config)
        except msgspec.ValidationError as error:
            raise _mistake(name, text, str(error)) from error


def _mistake(name: str, text: str, message: str) -> FileError:
    """Return the error for what msgspec says of a configuration, with the line of its text and the nearest setting."""
    reason, _, at = message.partition(" - at `$")
    index = _INDEX.search(at)
    place = tuple(_NAME.findall(_INDEX.sub("", at)))
    unknown, missing, other = (pattern.fullmatch(reason) for pattern in (_UNKNOWN, _MISSING, _OTHER_TYPE))
    where = place
    if unknown:
        where = (*place, unknown[1])
        known = [field.encode_name for field in msgspec.structs.fields(_section(place))]
        near = get_close_matches(unknown[1], known, n=1)
        hint = f"did you mean {near[0]}?" if near else f"there are {', '.join(known)}"
        if place and any(unknown[1] == one.name and not section_of(one) for one in msgspec.structs.fields(Config)):
            hint = "it stands above the first section"
        sentence = f"{_section_name(place)} has no setting {shown(unknown[1])}: {hint}"
    elif missing:
        sentence = f"{_section_name(place)} lacks {missing[1]}"
    elif other and place in _BRACKETS:
        sentence = _BRACKETS[place]
    elif other and place:
        types = " or ".join(_TYPES.get(kind, kind) for kind in other[1].split(" | ") if kind != "null")
        sentence = f"{place[-1]} in {_section_name(place[:-1])} must be {types}, got {_TYPES.get(other[2], other[2])}"
    else:
        sentence = f"{reason}, in {_section_name(place)}" if place else reason
    line = _line_of(text, where, int(index[1]) if index else 0)
    return FileError(name, "a configuration", sentence if line is None else f"line {line}: {sentence}")


def _section_name(place: Sequence[str]) -> str:
    return f"[{'.'.join(place)}]" if place else "it"


def _section(place: Sequence[str]) -> type[Struct]:
    """Return the kind of the section at a place, which has settings."""
    kind: Any = Config
    for name in place:
        field = next(field for field in msgspec.structs.fields(kind) if field.encode_name == name)
        kind = next(one for one in _types(field.type) if isinstance(one, type) and issubclass(one, Struct))
    return cast("type[Struct]", kind)


def _types(kind: Any) -> list[Any]:
    """Return a type and those in it."""
    return [kind, *[inner for one in get_args(kind) for inner in _types(one)]]


def _line_of(text: str, where: Sequence[str], index: int = 0) -> int | None:
    """Return the line on which a text of TOML states a setting or a section, or what it is in; None if no line does.

    `index` says which of the sections `[[NAME]]` is meant.
    """
    section: tuple[str, ...] = ()
    found, depth = None, 0
    for number, line in enumerate(text.split("\n"), 1):
        header, setting = _HEADER.match(line), _SETTING.match(line)
        if header:
            section = tuple(_NAME.findall(header[1]))
            if line.lstrip().startswith("[[") and section == tuple(where[:1]):
                if index < 0:
                    return found
                found, depth, index = None, 0, index - 1
        stated = section if header else (*section, *_NAME.findall(setting[1])) if setting else ()
        common = min(len(stated), len(where))
        if common > depth and tuple(where[:common]) == stated[:common]:
            found, depth = number, common
    return found


def _text(path: Path) -> str:
    """Return the text of a configuration. Raises `FileError` for what takes too long to be read as TOML, too."""
    try:
        with path.open("rb") as file:
            raw = file.read(MAX_SIZE + 1)
        text = raw.decode() if len(raw) <= MAX_SIZE else None
    except OSError as error:
        raise FileError(str(path), "a file that can be read", str(error.strerror)) from error
    except UnicodeDecodeError as error:
        raise FileError(str(path), "TOML", str(error)) from error
    if text is None:
        raise FileError(str(path), f"a configuration of at most {MAX_SIZE >> 10} KiB", "more")
    long = _LONG_KEY.search(text)
    if long is not None:
        line = text.count("\n", 0, long.start()) + 1
        raise FileError(str(path), f"keys of at most {_MOST_PARTS} parts", f"a longer one in line {line}")
    return text


def _read(text: str, path: str) -> Any:
    """Return the members of a text of TOML, with variables replaced and Spark told to hide what they stand in."""
    try:
        stated = tomllib.loads(text)
        filled = fill_variables(stated, path)
    except RecursionError as error:
        raise FileError(path, "TOML", "more levels of brackets than it can have here") from error
    except tomllib.TOMLDecodeError as error:
        raise FileError(path, "TOML", str(error)) from error
    except FileError:
        raise
    except ValueError as error:
        # An integer of thousands of digits.
        raise FileError(path, "TOML", str(error).partition(";")[0]) from error
    sections = [stated.get(name) for name in ("source", "kafka")]
    options = [section.get("options") for section in sections if isinstance(section, dict)]
    names = [name for section in (stated.get("spark"), *options) for name in from_variables(section)]
    if names and isinstance(spark := filled.setdefault("spark", {}), dict):
        spark[REDACTED] = redaction_pattern(names, spark.get(REDACTED))
    return filled


def _source(file: str, config: SourceConfig) -> Kafka | Files:
    if (config.kafka is None) == (config.files is None):
        raise FileError(file, "either kafka or files in [source]", "none" if config.kafka is None else "both")
    of_kafka = [name for name in ("topics", "pattern", "options") if getattr(config, name)]
    if config.files is not None and of_kafka:
        raise FileError(
            file, "either files or kafka in [source]", f"files and {', '.join(of_kafka)}, which are of kafka"
        )
    try:
        if config.files is not None:
            return Files(config.files, config.most)
        return Kafka(config.kafka or "", tuple(config.topics), config.pattern, config.options, config.most)
    except ValueError as error:
        raise FileError(file, "a source", str(error)) from error


def _options(file: str, config: TablesConfig) -> Any:
    """Return the arguments of `Tables`."""
    try:
        zone = None if config.zone is None else find_zone(config.zone)
    except ValueError as error:
        raise FileError(file, "a time zone as zone in [tables]", str(error)) from error
    given = TypeOverrides.from_mapping(config.types, file=f"{file}: [tables.types]")
    stated = {name: getattr(config, name) for name in ("table", "decimals", "times", "binaries")}
    options = {name: value for name, value in stated.items() if value is not None}
    return {"given": given, "zone": zone, "on_misfit": config.on_misfit, "absent": config.absent, **options}
