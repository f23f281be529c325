"""Settings of a pipeline beside its source and its sink: formats, tables, rejects, and the registry.

`write_template` writes a configuration to begin with, in which every setting is explained.
"""

from __future__ import annotations

import inspect
import json
import re
import time
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from fnmatch import fnmatchcase
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, TypeVar, get_args, get_origin

from msgspec import NODEFAULT, Struct
from msgspec.structs import FieldInfo, fields

from cdcavro.errors import FileError, JobError, RegistryError, plain, shown
from cdcavro.formats.connect_columns import PLACEHOLDER, check_word
from cdcavro.lake.escaped_names import TABLE_NAME, check_topic_template
from cdcavro.registry import connect
from cdcavro.registry.backend import UnusableError
from cdcavro.registry.client import TIMEOUT
from cdcavro.registry.framing import CONFLUENT, FRAMINGS, HEADERS
from cdcavro.registry.subjects import STRATEGIES, parse_level
from cdcavro.sync.outputs.reject_places import PUBLIC_KEY, RejectCipher
from cdcavro.sync.outputs.routes import Route, Routes
from cdcavro.sync.protection import ENCRYPT, OMIT, REJECTS_RAW, Protection, RowRule
from cdcavro.table.columns.column_type import ALL, names_of_table
from cdcavro.table.evolution.evolve import NONE_GIVEN
from cdcavro.table.table_names import fits, spelled_as
from cdcavro.table.tables import Tables
from cdcavro.wire.formats import get_format
from cdcavro.wire.kafka import UNTOLD
from cdcavro.wire.sniff import MIXED

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from cdcavro.files.rejects import MaxRejects
    from cdcavro.lake.table_shape import TableShape
    from cdcavro.registry import Registry
    from cdcavro.registry.subjects import Strategy
    from cdcavro.table.columns.column_type import TypeOverrides
    from cdcavro.table.ddl.steps import TableName
    from cdcavro.table.history import Table
    from cdcavro.table.tables import TableOptions


T = TypeVar("T")
_PROBE: Final = "cdcavro"
_PAUSE: Final = 1.0
_FAILED: Final = 500
_TOO_MANY: Final = 429
# How many seconds a check of a registry takes at most.
_OF_CHECK: Final = 6.0
# Why registries are waited for in this process, by their addresses.
_AWAITED: Final[dict[str, str]] = {}


def _no_options() -> TableOptions:
    return {}


@dataclass(frozen=True)
class Formats:
    """The formats of messages. Raises `UnknownFormatError`.

    * `given` (str or Mapping[str, str]): one for all, "mixed" if each message tells its own, or one by pattern of
      topics or of paths of files (`*`, `?`, `[…]`): the first pattern that fits counts, and messages that none fits
      tell their own.
    """

    given: str | Mapping[str, str] = MIXED

    def __post_init__(self) -> None:
        """Check the names."""
        for name in [self.given] if isinstance(self.given, str) else self.given.values():
            if name != MIXED:
                get_format(name)

    def format_of(self, name: str | None) -> str:
        """Return the format of messages from a topic or file; "mixed" if each message tells its own."""
        if isinstance(self.given, str):
            return self.given
        return next((format for pattern, format in self.given.items() if fnmatchcase(name or "", pattern)), MIXED)

    def headers_of(self, name: str | None) -> frozenset[str]:
        """Return the names of the headers that are read with messages from a topic; none if each tells its own format."""
        return _headers_of(self.format_of(name))

    @property
    def headers(self) -> frozenset[str]:
        """The names of the headers that are read with messages from any topic."""
        given = [self.given] if isinstance(self.given, str) else self.given.values()
        return frozenset().union(*map(_headers_of, given))


def _headers_of(format: str) -> frozenset[str]:
    own = {} if format == MIXED else get_format(format).headers
    return frozenset({*own, UNTOLD}) if own else frozenset()


@dataclass(frozen=True)
class Chosen:
    """Which tables are wanted: those whose name fits a pattern of `include`, if there is any, and none of `exclude`.

    * `include` and `exclude` (tuple[str, ...]): a name is `table`, `database.table` or `database.schema.table`,
      whichever has as many dots as the pattern.
    """

    include: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()

    def has(self, table: TableName) -> bool:
        """Return whether a table is wanted."""
        return (not self.include or fits(table, self.include)) and not fits(table, self.exclude)


def _unmatched_patterns(chosen: Chosen, names: Collection[TableName]) -> list[str]:
    """Return sentences on the patterns that none of some names fits."""
    known = sorted({one for name in names for one in _names_of(name)})
    return [
        f"{setting} in [tables]: no table fits {shown(pattern)} so far{_hint(pattern, known)}"
        for setting, patterns in (("include", chosen.include), ("exclude", chosen.exclude))
        for pattern in patterns
        if not any(fits(name, (pattern,)) for name in names)
    ]


def _unmatched_types(given: TypeOverrides, tables: Sequence[Table]) -> list[str]:
    """Return sentences on the tables and columns of given types that there are not."""
    columns: dict[str, set[str]] = {ALL: set()}
    for schema in (schema for table in tables for schema in table.versions):
        for name in (*_names_of(schema.table), ALL):
            columns.setdefault(name, set()).update(schema.names)
    sentences = []
    for table, types in given.tables.items():
        if table not in columns:
            near = _hint(table, columns)
            sentences.append(f"[tables.types]: no table is called {shown(table)} so far{near}")
            continue
        folded, of = {name.casefold() for name in columns[table]}, "any table" if table == ALL else shown(table)
        sentences += [
            f"[tables.types]: no column of {of} is called {shown(name)} so far{_hint(name, columns[table])}"
            for name in types
            if name.casefold() not in folded
        ]
    return sentences


def _unmatched_rules(rules: Sequence[RowRule | TableShape], tables: Sequence[Table]) -> list[str]:
    """Return sentences on the rules that no table fits, and on columns of theirs that no table has which fits them."""
    sentences = []
    for rule in rules:
        own = [table for table in tables if any(rule.fits(schema.table) for schema in table.versions)]
        if not own:
            known = sorted({one for table in tables for schema in table.versions for one in _names_of(schema.table)})
            near, is_of_rows = _hint(rule.match, known), isinstance(rule, RowRule) and rule.is_about_rows
            idle = "protects nothing" if is_of_rows else "changes nothing"
            sentences.append(f"[[table]]: no table fits {shown(rule.match)} so far, so its rule {idle}{near}")
            continue
        names = {name for table in own for schema in table.versions for name in schema.names}
        folded = {name.casefold() for name in names}
        sentences += [
            f"[[table]] of match = {shown(rule.match)}: no column is called {shown(name)} so far{_hint(name, names)}"
            for name in rule.columns
            if name.casefold() not in folded
        ]
    return sentences


def _unused_keys(shapes: Sequence[TableShape], tables: Sequence[Table]) -> list[str]:
    """Return sentences on tables that have another key than the one that is given for them, or began without it."""
    sentences = []
    for schema in (table.schema for table in tables if not table.is_gone):
        shape = next((one for one in shapes if one.fits(schema.table)), None)
        key = () if shape is None else spelled_as(shape.key, schema.names)
        if not key or {*key} == {*schema.key_names} or not schema.names.issuperset(key):
            continue
        given, own = (", ".join(map(shown, names)) for names in (key, schema.key_names))
        why = f"has the key {own}, by its source or since it began" if own else "began without a key"
        sentences.append(
            f"key in [[table]]: {plain(_names_of(schema.table)[-1])} {why}, so {given} is not used: for a current state by"
            f" {given}, begin again with another state and lake"
        )
    return sentences


def _unmatched_routes(routes: Routes, names: Collection[TableName]) -> list[str]:
    """Return sentences on the routes that none of some names fits."""
    known = sorted({one for name in names for one in _names_of(name)})
    return [
        f"[[route]]: no table fits {shown(route.pattern)} so far{_hint(route.pattern, known)}"
        for route in routes.unmatched(names)
    ]


def _names_of(table: TableName) -> list[str]:
    """Return the names under which types are given for a table, the whole one last."""
    return names_of_table(table)[::-1]


def _hint(name: str, known: Iterable[str]) -> str:
    near = get_close_matches(name, known, n=1)
    return f": did you mean {plain(near[0])}?" if near else ""


@dataclass(frozen=True)
class Settings:
    """How messages become rows.

    * `formats` (Formats)
    * `chosen` (Chosen)
    * `options` (TableOptions): the arguments of `cdcavro.Tables`.
    * `unavailable` (str or None): as in `to_changes`.
    * `rejects` (str or None): the folder for rejects, by default one in that of the state.
    * `max_rejects` (MaxRejects or None): how many rejects are allowed in all.
    * `merge_every` (int): one in how many batches writes rows to their tables; rows of the others wait in the state's
      folder.
    * `framed` (RegistrySettings or None): the registry with the schemas of framed messages in topics, which are
      payloads instead of text.
    * `rejects_table` and `rejects_topic` (str or None): a lake table, `database.table`, and a Kafka topic, to which
      rejects go as well.
    * `rules` (tuple[RowRule, ...]): which columns are left out or masked; the first rule that fits a table counts.
    * `rejects_raw` (str or None): whether rejects "keep", "omit" or "encrypt" the bytes of their messages; "keep" by
      default, but `rules` need it stated.
    * `shapes` (tuple[TableShape, ...]): keys of tables, and properties of their lake tables; the first shape that fits a
      table counts.
    * `routed` (tuple[Route, ...]): what tables are called where they are written; the first route that fits a table counts.
    * `rejects_hold` (bool): whether rejects hold back the time up to which tables are complete.
    * `schema_changes_table` (str or None): a lake table, `database.table`, with what was decided for each statement.
    * `halves_minutes` (float or None): for how many minutes the half of an update waits for the other one, before it is a
      reject; if it is None, halves are not joined.
    * `rejects_public_key` and `rejects_private_key` (str or None): keys in PEM, or the paths of their files: the one
      that encrypts rejects, and the one that decrypts them to be read again.
    """

    formats: Formats = Formats()
    chosen: Chosen = Chosen()
    options: TableOptions = field(default_factory=_no_options)
    unavailable: str | None = PLACEHOLDER
    rejects: str | None = None
    max_rejects: MaxRejects | None = None
    merge_every: int = 1
    framed: RegistrySettings | None = None
    rejects_table: str | None = None
    rejects_topic: str | None = None
    rules: tuple[RowRule, ...] = ()
    rejects_raw: str | None = None
    shapes: tuple[TableShape, ...] = ()
    routed: tuple[Route, ...] = ()
    rejects_hold: bool = True
    schema_changes_table: str | None = None
    halves_minutes: float | None = None
    rejects_public_key: str | None = field(default=None, repr=False)
    rejects_private_key: str | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        """Raise `ValueError` for options that `Tables` refuses, and for an impossible word for unavailable values."""
        if self.merge_every < 1:
            raise ValueError(
                f"merge_every is 1 for rows that are written with every batch, 2 with every second one, not {self.merge_every}"
            )
        check_word(self.unavailable)
        if self.rejects_raw not in (None, *REJECTS_RAW):
            raise ValueError(f"rejects_raw is {', '.join(REJECTS_RAW)}, not {shown(self.rejects_raw or '')}")
        if (self.rejects_raw == ENCRYPT) != (self.rejects_public_key is not None):
            raise ValueError(f'rejects_raw = "{ENCRYPT}" needs a {PUBLIC_KEY}, which is for nothing else')
        if self.rejects_raw is None and any(rule.is_protecting for rule in self.rules):
            raise ValueError(
                'rejects have the bytes of messages, which no mask covers: say rejects_raw = "omit", after which a reject'
                ' cannot be read again, or rejects_raw = "keep", or "encrypt" with a rejects_public_key'
            )
        if self.halves_minutes is not None and not self.halves_minutes > 0:
            raise ValueError(f"halves_minutes is a number of minutes above 0, not {self.halves_minutes}")
        if self.halves_minutes is not None and (self.rejects_raw or "keep") != "keep":
            raise ValueError(
                f'halves of updates wait with the bytes of their messages, which rejects_raw = "{self.rejects_raw}" forbids:'
                " leave out halves_minutes"
            )
        _ = self.cipher
        for rule in self.rules:
            # A function that is named is imported before anything starts.
            _ = rule.function
        self.tables()

    @property
    def protection(self) -> Protection:
        """What is written of rows."""
        return Protection([rule for rule in self.rules if rule.is_about_rows])

    @property
    def routes(self) -> Routes:
        """What tables are called where they are written."""
        return Routes(self.routed)

    def is_written_as(self, name: TableName) -> bool:
        """Return whether a table with this name is wanted, and keeps it where it is written."""
        return self.chosen.has(name) and self.routes.target(name).name == name

    @property
    def has_raw(self) -> bool:
        """Whether rejects have the bytes of their messages, encrypted or not."""
        return self.rejects_raw != OMIT

    @cached_property
    def cipher(self) -> RejectCipher | None:
        """What encrypts and decrypts the bytes of rejects. Raises `ValueError` and `SetupError`."""
        return RejectCipher.of(self.rejects_public_key, self.rejects_private_key)

    @property
    def has_id_headers(self) -> bool:
        """Whether the headers of records have the ids of schemas."""
        return self.framed is not None and self.framed.framing == HEADERS

    def unmatched(self, tables: Sequence[Table]) -> list[str]:
        """Return sentences about patterns of tables, and columns of types and rules, that fit nothing in some tables.

        Routes have such patterns, too.
        """
        names = {schema.table: None for table in tables for schema in table.versions}
        types = _unmatched_types(self.options.get("given", NONE_GIVEN), tables)
        patterns = [*_unmatched_patterns(self.chosen, names), *_unmatched_routes(self.routes, names)]
        return [*patterns, *types, *self.unmatched_rules(tables)]

    def unmatched_rules(self, tables: Sequence[Table]) -> list[str]:
        """Return those of `unmatched` about rules and shapes, and about keys that are not those of tables."""
        unmatched = [*_unmatched_rules(self.rules, tables), *_unmatched_rules(self.shapes, tables)]
        return [*dict.fromkeys(unmatched), *_unused_keys(self.shapes, tables)]

    def tables(self) -> Tables:
        """Return tables that know nothing yet."""
        options = self.options.copy()
        if self.shapes:
            # Of two with one pattern, the first one counts.
            options["keys"] = {shape.match: shape.key for shape in reversed(self.shapes)}
            options["keys"] = {shape.match: options["keys"][shape.match] for shape in self.shapes}
        return Tables(**options)


@dataclass(frozen=True)
class RegistrySettings:
    """A registry and how it is used. Raises `ValueError` and `RegistryError`.

    * `url` (str): as `registry.connect` takes it.
    * `strategy` (Strategy or None): as in `subject_name`; by default topic if each table has one, topic-record if all
      share one, else record.
    * `topic` (str or None): the topic that subjects are named after, with `{name}` for the name of the table; that of
      `KafkaTopics` if rows go there.
    * `compatibility` (str or None): the level that subjects are given, by default none.
    * `auth` (tuple[str, str] or None), `ca` (str or None), `certificate` (str or None), `key` (str or None), `timeout`
      (float): user and password, and the rest as `registry.connect` takes it.
    * `patience` (float): for how many seconds a server may fail to answer.
    * `framing` (str): one of `FRAMINGS`, how the values of a source state their schemas.
    """

    url: str = field(repr=False)
    strategy: Strategy | None = None
    topic: str | None = None
    compatibility: str | None = None
    auth: tuple[str, str] | None = field(default=None, repr=False)
    ca: str | None = None
    certificate: str | None = None
    key: str | None = None
    timeout: float = TIMEOUT
    patience: float = 60
    framing: str = CONFLUENT

    def __post_init__(self) -> None:
        """Check the settings."""
        if self.strategy is not None and self.strategy not in STRATEGIES:
            raise ValueError(f"the strategies are {', '.join(STRATEGIES)}, not {self.strategy!r:.80}")
        if not self.timeout > 0:
            raise ValueError(f"timeout is a number of seconds above 0, not {self.timeout}")
        if not self.patience >= 0:
            raise ValueError(f"patience is a number of seconds, at least 0, not {self.patience}")
        if self.framing not in FRAMINGS:
            raise ValueError(f"values are framed by {', '.join(FRAMINGS)}, not {self.framing!r:.80}")
        if self.compatibility is not None:
            parse_level(self.compatibility)
        if self.topic is not None:
            self.strategy_for(self.topic)
        self.connect().close()

    def connect(self) -> Registry:
        """Return the registry, without asking it anything yet. Raises `RegistryError` and `SetupError`."""
        return connect(
            self.url,
            auth=self.auth,
            ca=self.ca,
            certificate=self.certificate,
            key=self.key,
            timeout=self.timeout,
        )

    def check(self) -> None:
        """Ask the registry for something, for a few seconds. Raises `JobError` if it is down, and `RegistryError`."""
        own = replace(self, timeout=min(self.timeout, _OF_CHECK), patience=min(self.patience, _OF_CHECK))
        with own.connect() as registry:
            own.ask_patiently(lambda: registry.compatibility(_PROBE))

    def strategy_for(self, topic: str | None) -> Strategy:
        """Return the strategy for tables with these topics.

        Raises `ValueError` for a strategy that does not fit them.
        """
        if topic is None:
            if self.strategy not in (None, "record"):
                raise ValueError(f"the strategy {self.strategy} needs a topic")
            return "record"
        check_topic_template(topic)
        strategy: Strategy = self.strategy or ("topic" if TABLE_NAME in topic else "topic-record")
        if strategy == "topic" and TABLE_NAME not in topic:
            raise ValueError(
                f"the subject of a topic holds the versions of one table: say {TABLE_NAME} in the topic, or another strategy"
            )
        return strategy

    def ask_patiently(self, ask: Callable[[], T]) -> T:
        """Ask a registry, again and again while it is down. Raises `JobError` if that lasts too long."""
        until, is_folder = time.monotonic() + self.patience, self.url.lower().startswith("file:")
        try:
            while True:
                try:
                    return ask()
                except RegistryError as error:
                    if is_folder or not _is_down(error):
                        raise
                    if time.monotonic() + _PAUSE > until:
                        raise JobError(f"{error}, for {self.patience:g} seconds") from None
                    _AWAITED[self.url] = str(error)
                time.sleep(_PAUSE)
        finally:
            _AWAITED.pop(self.url, None)


def awaited() -> list[str]:
    """Return why this process waits for registries that are down, for each of them."""
    return [*_AWAITED.values()]


def _is_down(error: RegistryError) -> bool:
    if isinstance(error, UnusableError):
        return False
    return error.status is None or error.status == _TOO_MANY or error.status >= _FAILED


# A setting and its text, as the docstring of a section's class has it.
_TEXT: Final = re.compile(r"^\* `(\w+)`: (.+(?:\n  .+)*)", re.MULTILINE)
_OPENING: Final = (
    "# Settings in lines that begin with # are not set: they show the default, or an empty value if there is none."
)
# Settings that another one of the same section leaves no room for.
_EXCLUDED: Final = {
    "files": frozenset({"kafka", "topics", "pattern", "options"}),
    "kafka": frozenset({"files"}),
}
# Sections that any pipeline may have.
_ALWAYS: Final = frozenset({"tables", "registry", "metrics", "table", "route"})


def write_template(path: Path, kind: type[Struct], stated: Mapping[str, Any]) -> None:
    """Write a configuration to a new file: what is stated, and behind `#` every other setting, each with its text.

    `kind` is the class of the configuration; of its sections those that are stated are written, and those that any
    pipeline may have. Raises `FileError` if the file exists or cannot be written, and for a text that TOML cannot hold.
    """
    lines = "\n".join([_OPENING, "", *_template_lines(kind, stated)]) + "\n"
    try:
        raw = lines.encode()
    except UnicodeEncodeError as error:
        raise FileError(str(path), "settings in UTF-8, as TOML is", shown(lines[error.start])) from error
    try:
        with path.open("xb") as stream:
            stream.write(raw)
    except FileExistsError as error:
        raise FileError(str(path), "a new file", "one that exists") from error
    except OSError as error:
        raise FileError(str(path), "a file that can be written", str(error.strerror or error)) from error


def _template_lines(kind: type[Struct], stated: Mapping[str, Any]) -> Iterator[str]:
    sections = [(one, section) for one in fields(kind) if (section := section_of(one)) is not None]
    yield from _setting_lines(kind, stated)
    for one, section in sections:
        name = one.encode_name
        if name in stated or name in _ALWAYS:
            said = stated.get(name) or {}
            is_set = bool(said) or _stands_alone(section)
            header = f"[[{name}]]" if get_origin(one.type) is list else f"[{name}]"
            yield from ("", header if is_set else f"# {header}")
            yield from _setting_lines(section, said)


def _stands_alone(section: type[Struct]) -> bool:
    """Return whether a section may stand without any setting."""
    try:
        section()
    except (TypeError, ValueError):
        return False
    return True


def _setting_lines(kind: type[Struct], stated: Mapping[str, Any]) -> Iterator[str]:
    """Yield the lines of the settings of a section, but for those for which others leave no room."""
    texts = setting_texts(kind)
    excluded = {name for one in stated for name in _EXCLUDED.get(one, ())}
    for one in fields(kind):
        name = one.encode_name
        if section_of(one) is None and name not in excluded:
            yield f"# {texts.get(name, name)}"
            yield f"{name} = {_toml(stated[name])}" if name in stated else f"# {name} = {_toml(_usual(one))}"


def setting_texts(kind: type[Struct]) -> dict[str, str]:
    """Return the texts of the settings of a section, which the docstrings of its class and of those it extends have."""
    docs = [inspect.cleandoc(one.__doc__ or "") for one in reversed(kind.__mro__)]
    return {name: " ".join(text.split()) for doc in docs for name, text in _TEXT.findall(doc)}


def section_of(one: FieldInfo) -> type[Struct] | None:
    """Return the class of the section that a setting is; None if it is none."""
    kinds = (one.type, *get_args(one.type))
    return next((kind for kind in kinds if isinstance(kind, type) and issubclass(kind, Struct)), None)


def _usual(one: FieldInfo) -> Any:
    """Return the default of a setting, or an empty value of its type where there is none."""
    if one.default is not NODEFAULT and one.default is not None:
        return one.default
    if one.default_factory is not NODEFAULT:
        return one.default_factory()
    first = next((kind for kind in get_args(one.type) if get_origin(one.type) not in (list, dict)), one.type)
    return (get_origin(first) or first)()


def _toml(value: Any) -> str:
    """Return a text, number, list or empty table as TOML; a JSON text is one but for the character DEL."""
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
