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
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, Final, TypeVar, cast, get_args, overload

import msgspec
from msgspec import Struct

from cdcavro.errors import FileError, shown
from cdcavro.files.rejects import MaxRejects
from cdcavro.registry.framing import CONFLUENT
from cdcavro.sync.metrics import MetricsConfig  # noqa: TC001  msgspec looks for it
from cdcavro.sync.outputs.reject_places import PEM
from cdcavro.sync.outputs.routes import Route  # noqa: TC001  msgspec looks for it
from cdcavro.sync.pipeline import Pipeline
from cdcavro.sync.secrets import (
    FromVariable,
    Redaction,
    check_addresses,
    fill_variables,
    from_variables,
    redaction_of,
    redaction_pattern,
    safe_repr,
)
from cdcavro.sync.sections import (
    AvroConfig,
    KafkaConfig,
    LakeConfig,
    RegistryConfig,
    SourceConfig,
    TableConfig,
    TablesConfig,
)
from cdcavro.sync.settings import Chosen, Formats, Settings, section_of
from cdcavro.wire.sniff import MIXED

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from cdcavro.sync.outputs.sink_settings import AvroFiles, KafkaTopics, LakeSettings
    from cdcavro.sync.settings import RegistrySettings


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
# How many unknown settings an error names, and how much alike names in different sections must be.
_MOST_MISTAKES: Final = 10
_SAME: Final = 0.8
# What msgspec says, and how TOML states a section and a setting.
_AT: Final = " - at `$"
_UNKNOWN: Final = re.compile(r"Object contains unknown field `(.*)`", re.DOTALL)
_MISSING: Final = re.compile(r"Object missing required field `(.*)`", re.DOTALL)
_OTHER_TYPE: Final = re.compile(r"Expected `([^`]*)`, got `([^`]*)`")
_NAME: Final = re.compile(r"[A-Za-z0-9_-]+")
_HEADER: Final = re.compile(r"\s*\[{1,2}\s*([^\[\]#]+)\]")
# Which one of several sections of one name it is, counted from 0.
_INDEX: Final = re.compile(r"(?:(?<=^\.table)|(?<=^\.route))\[([0-9]+)\]")
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
    ("route",): "routes are sections [[route]], each with two brackets",
    ("tables",): "[tables] is one section; rules for tables are sections [[table]]",
}
# Sections of which there may be several of one name.
_LISTED: Final = ("table", "route")


class Config(Struct, forbid_unknown_fields=True):
    """The configuration of a pipeline.

    * `state`: the folder of the pipeline's state, at the same path on all machines; or an address in an object store,
      such as `s3://bucket/state`.
    * `format`: the format of all messages, `mixed` to detect that of each, or one by pattern of topics or files.
    * `rejects`: the folder for rejects, by default `rejects` in the state's folder.
    * `rejects_table`: a lake table to which rejects are also written.
    * `rejects_topic`: a Kafka topic to which rejects are also written.
    * `schema_changes_table`: a lake table that records the decision on each statement.
    * `rejects_raw`: whether rejects `keep` the bytes of their messages, `omit` or `encrypt` them; required with
      `[[table]]`.
    * `rejects_public_key`: the key with which rejects are encrypted, an X25519 key in PEM, or the path of its file.
    * `rejects_private_key`: the key with which encrypted rejects are read again: the path of its file, or a variable.
    * `rejects_hold`: whether rejects hold back the time up to which the tables of their topic are complete.
    * `halves_minutes`: how many minutes one half of an update sent in two messages waits for the other; by default not at all.
    * `max_rejects`: how many rejects in all stop the pipeline, as a number or a share; by default none do.
    * `every`: how often a batch begins.
    * `merge_every`: how many batches pass between two writes of tables; until then their rows are pending in the state.
    * `maintain_every`: how often lake tables are compacted and cleaned after a batch, as by `cdcavro maintain`; by
      default never.
    * `run`: the runner of the pipeline: `spark`, or `local`, which is this process.
    * `memory`: how many MiB of a batch's rows a local run holds in memory before it uses files; the process itself takes more.
    * `openlineage`: the name of the job for which OpenLineage events are sent, as configured by variables
      `OPENLINEAGE_*`.
    * `spark`: Spark's own settings, which a local run ignores.
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
    schema_changes_table: str | None = None
    rejects_raw: str | None = None
    rejects_public_key: str | None = None
    rejects_private_key: str | None = None
    rejects_hold: bool = True
    halves_minutes: float | None = None
    # What is written of the rows of tables, and the shape of these.
    table: list[TableConfig] = []
    # What tables are called where they are written.
    route: list[Route] = []
    max_rejects: str | int | None = None
    every: str = "10 seconds"
    merge_every: int = 1
    maintain_every: str | None = None
    run: str = "spark"
    memory: int = 256
    openlineage: str | None = None
    spark: dict[str, str] = {}

    def __post_init__(self) -> None:
        """Raise `ValueError` for an address with a password, and for a time between batches that is none."""
        check_addresses({"state": self.state, "rejects": self.rejects})
        if self.run not in RUNNERS:
            raise ValueError(f"run is {' or '.join(RUNNERS)}, not {shown(self.run)}")
        if self.memory < 1:
            raise ValueError(f"memory is a number of MiB, at least 1, not {self.memory}")
        if PEM in (key := self.rejects_private_key or "") and not isinstance(key, FromVariable):
            raise ValueError(
                "rejects_private_key is the path of a file or comes from a variable, and stands in no file itself"
            )
        if self.openlineage is not None and not self.openlineage.strip():
            raise ValueError("openlineage is the name of a job, which is not empty")
        for name, example in (("every", "10 seconds"), ("maintain_every", "1 day")):
            stated = getattr(self, name)
            if stated is not None and (_EVERY.fullmatch(stated) is None or not _IS_LONG.search(stated)):
                raise ValueError(f'{name} is a time such as "{example}", not {shown(stated)}')

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
        source, sink = self.source.source(file), self._sink(file)
        registry = None if self.registry is None else self.registry.settings(file, "registry")
        try:
            settings = Settings(
                Formats(self.format),
                Chosen(tuple(self.tables.include), tuple(self.tables.exclude)),
                self.tables.options(file),
                self.tables.unavailable or None,
                self.rejects,
                self._max_rejects,
                self.merge_every,
                self._registry_of_source(file),
                self.rejects_table,
                self.rejects_topic,
                tuple(one for one in self.table if one.is_about_rows or one.is_about_lake_tables),
                self.rejects_raw,
                tuple(one.shape for one in self.table if one.shape is not None),
                tuple(self.route),
                self.rejects_hold,
                self.schema_changes_table,
                self.halves_minutes,
                self.rejects_public_key,
                self.rejects_private_key,
            )
            return kind(source, sink, self.state, settings, registry, self.redaction)
        except FileError:
            raise
        except (ValueError, LookupError) as error:
            raise FileError(file, "a configuration", str(error)) from error

    @property
    def _max_rejects(self) -> MaxRejects | None:
        try:
            return None if self.max_rejects is None else MaxRejects.of(str(self.max_rejects))
        except ValueError as error:
            raise ValueError(f"max_rejects: {error}") from error

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
        if self.lake is not None:
            return self.lake.sink(file, self.table)
        if self.maintain_every is not None:
            raise FileError(file, "[lake] for maintain_every", "another sink")
        if any(one.is_about_statements for one in self.table):
            raise FileError(file, "[lake] for include_statements and exclude_statements of [[table]]", "another sink")
        if any(one.form is not None for one in self.table):
            raise FileError(file, "[lake] for form of [[table]]", "another sink")
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
            raise _mistake(name, text, stated, str(error)) from error


def _mistake(name: str, text: str, stated: dict[str, Any], message: str) -> FileError:
    """Return the error for what msgspec says of a configuration: of all settings that are not known, or of what else is wrong.

    In `stated`, settings that are not known get the names that are meant, or go.
    """
    sentences: list[str] = []
    while (unknown := _UNKNOWN.fullmatch(message.partition(_AT)[0])) and len(sentences) < _MOST_MISTAKES:
        place, index = _place_of(message)
        near = get_close_matches(unknown[1], [one.encode_name for one in msgspec.structs.fields(_section(place))], n=1)
        sentences.append(_with_line(text, (*place, unknown[1]), index, _unknown_setting(place, unknown[1], near)))
        section = _members_at(stated, place, index)
        if section is None or unknown[1] not in section:
            break
        value = section.pop(unknown[1])
        section.update({one: value for one in near if one not in section})
        try:
            msgspec.convert(stated, Config)
        except msgspec.ValidationError as error:
            message = str(error)
        else:
            break
    return FileError(name, "a configuration", "; ".join(sentences) or _other_mistake(text, stated, message))


def _unknown_setting(place: Sequence[str], name: str, near: Sequence[str]) -> str:
    """Return what is said of a setting that its section does not have; `near` has the one that may be meant."""
    known = [field.encode_name for field in msgspec.structs.fields(_section(place))]
    sections = [(one.name, section_of(one)) for one in msgspec.structs.fields(Config)]
    elsewhere = {own.name: title for title, section in sections if section for own in msgspec.structs.fields(section)}
    hint = f"did you mean {near[0]}?" if near else f"there are {', '.join(known)}"
    if place and (name, None) in sections:
        hint = "it stands above the first section"
    elif not near and (there := get_close_matches(name, elsewhere, n=1, cutoff=_SAME)):
        hint = f"did you mean {there[0]} in {_section_name([elsewhere[there[0]]])}?"
    said = f"{_section_name(place)} has no setting" if place else "no setting is called"
    return f"{said} {shown(name)}: {hint}"


def _other_mistake(text: str, stated: dict[str, Any], message: str) -> str:
    """Return what is said where the settings are known, with the line of the text."""
    reason = message.partition(_AT)[0]
    place, index = _place_of(message)
    missing, other = (pattern.fullmatch(reason) for pattern in (_MISSING, _OTHER_TYPE))
    where = place
    if missing:
        sentence = f"{_section_name(place)} lacks {missing[1]}" if place else f"one without {missing[1]}"
    elif other and place in _BRACKETS:
        sentence = _BRACKETS[place]
    elif other and place:
        types = " or ".join(_TYPES.get(kind, kind) for kind in other[1].split(" | ") if kind != "null")
        sentence = f"{place[-1]} in {_section_name(place[:-1])} must be {types}, got {_TYPES.get(other[2], other[2])}"
    else:
        sentence = f"{reason}, in {_section_name(place)}" if place else reason
        where = (*place, *_culprit(stated, place, index, message))
    return _with_line(text, where, index, sentence)


def _place_of(message: str) -> tuple[tuple[str, ...], int]:
    """Return the place that msgspec names, and which one of several sections of one name is meant."""
    at = message.partition(_AT)[2]
    index = _INDEX.search(at)
    return tuple(_NAME.findall(_INDEX.sub("", at))), int(index[1]) if index else 0


def _with_line(text: str, where: Sequence[str], index: int, sentence: str) -> str:
    line = _line_of(text, where, index)
    return sentence if line is None else f"line {line}: {sentence}"


def _members_at(stated: dict[str, Any], place: Sequence[str], index: int) -> dict[str, Any] | None:
    """Return the members of the section at a place; None if there is none."""
    section: Any = stated
    for name in place:
        section = section.get(name)
        section = section[index] if isinstance(section, list) else section
        if not isinstance(section, dict):
            return None
    return cast("dict[str, Any]", section)


def _culprit(stated: dict[str, Any], place: Sequence[str], index: int, message: str) -> list[str]:
    """Return the setting of a section without which this is not said of a configuration; none if there are several."""
    section = _members_at(stated, place, index)
    if section is None:
        return []
    found = []
    for name in [*section]:
        value, said = section.pop(name), ""
        try:
            msgspec.convert(stated, Config)
        except msgspec.ValidationError as error:
            said = str(error)
        section[name] = value
        found += [name] if said != message and not _MISSING.match(said) else []
    return found if len(found) == 1 else []


def _section_name(place: Sequence[str]) -> str:
    name = f"[{'.'.join(place)}]" if place else "it"
    return f"[{name}]" if place and place[0] in _LISTED else name


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
        text = raw.decode("utf-8-sig") if len(raw) <= MAX_SIZE else None
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


def _toml_fault(text: str, said: str) -> str:
    """Return what is wrong with a text that is no TOML, as the parser says it, or in plainer words."""
    if text.lstrip().startswith("{"):
        return "what looks like messages, which --files names"
    return said.replace(r"Illegal character '\n'", "a string without an end on its line")


def _read(text: str, path: str) -> Any:
    """Return the members of a text of TOML, with variables replaced and Spark told to hide what they stand in."""
    try:
        stated = tomllib.loads(text)
        filled = fill_variables(stated, path)
    except RecursionError as error:
        raise FileError(path, "TOML", "more levels of brackets than it can have here") from error
    except tomllib.TOMLDecodeError as error:
        raise FileError(path, "TOML", _toml_fault(text, str(error))) from error
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
