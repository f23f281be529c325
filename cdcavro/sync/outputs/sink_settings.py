"""Settings of a pipeline's sinks: tables of a lake, topics of Kafka, Avro files; and what tables are called there."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, field, replace
from datetime import timedelta
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from cdcavro.avro.container import CODECS
from cdcavro.errors import FileError, SchemaError, shown
from cdcavro.lake.account import label_of
from cdcavro.lake.catalogs import check_catalog, check_metastore, has_plain_names
from cdcavro.lake.escaped_names import caseless_name, check_name_template, check_topic_template, name_by_template
from cdcavro.lake.evolution import BEHAVIORS, LENIENT, STATEMENTS
from cdcavro.lake.lakes import CURRENT, IcebergLake, check_form_name
from cdcavro.lake.sql_statements import HEADERS, check_change_columns
from cdcavro.sync.outputs.routes import Routes
from cdcavro.sync.secrets import hide_secrets
from cdcavro.sync.sources import check_prefixes
from cdcavro.table.ddl.steps import TableName
from cdcavro.table.table_names import fits_caseless

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from cdcavro.lake.lakes import DeltaLake
    from cdcavro.lake.table_shape import TableShape
    from cdcavro.table.history import Table

_SCHEME: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")
_REFUSED: Final = frozenset({"topic", "includeheaders", "kafka.bootstrap.servers"})
# What stands between a lake and the form of its tables in what identifies a sink, where that is not the usual one.
WITH_FORM: Final = ", form = "
# What stands behind a lake of which only changelogs are written.
WITHOUT_CURRENT: Final = ", current = false"
BLOB: Final = "blob"
TUPLE: Final = "tuple"
STRATEGIES: Final = (BLOB, TUPLE)


# What begins the kinds of statements that are one family, or ends them.
_FAMILIES: Final = {
    word: tuple(kind for kind in STATEMENTS if word in kind.split("."))
    for word in dict.fromkeys(word for kind in STATEMENTS for word in kind.split("."))
}
# It is always followed: a lake table is created with its first row.
_CREATE: Final = "create.table"


def excluded_kinds(include: Sequence[str] | None, exclude: Sequence[str] = ()) -> frozenset[str]:
    """Return the kinds of statements that are not followed: those that are not included, if any are, or are excluded.

    Each is one of `evolution.STATEMENTS`, or a word of it, which stands for all kinds that have it. Raises `ValueError`.

    >>> sorted(excluded_kinds(["column"], ["drop"]))
    ['drop.column', 'drop.table', 'truncate.table']
    """
    included = STATEMENTS if include is None else [kind for one in include if one != _CREATE for kind in _kinds(one)]
    return frozenset(STATEMENTS).difference(included) | {kind for one in exclude for kind in _kinds(one)}


def _kinds(stated: str) -> tuple[str, ...]:
    if stated in STATEMENTS:
        return (stated,)
    if stated in _FAMILIES:
        return _FAMILIES[stated]
    if stated == _CREATE:
        raise ValueError(f"{_CREATE} is not excluded: exclude in [tables] leaves tables out")
    near = get_close_matches(stated, [*STATEMENTS, *_FAMILIES], n=1)
    hint = f"did you mean {near[0]}?" if near else f"there are {', '.join(STATEMENTS)}"
    raise ValueError(f"{shown(stated)} is no kind of statement: {hint}")


@dataclass(frozen=True)
class StatementRules:
    """Which kinds of statements lake tables do not follow.

    * `excluded` (frozenset[str]): those of most tables, as `excluded_kinds` returns them.
    * `tables` (tuple[tuple[str, frozenset[str]], ...]): patterns of the names of tables, regardless of case, with theirs:
      the first one that fits any name that a table had counts.
    """

    excluded: frozenset[str] = frozenset()
    tables: tuple[tuple[str, frozenset[str]], ...] = ()

    def excluded_of(self, table: Table) -> frozenset[str]:
        """Return the kinds of statements that the lake table of a table does not follow."""
        return self.excluded_for(schema.table for schema in table.versions) if self.tables else self.excluded

    def excluded_for(self, names: Iterable[TableName]) -> frozenset[str]:
        """Return the same for a table that had these names."""
        known = list(names)
        for pattern, own in self.tables:
            if any(fits_caseless(name, pattern) for name in known):
                return own
        return self.excluded


@dataclass(frozen=True)
class TableForms:
    """Which form the current state of each table has. Raises `ValueError`.

    * `usual` (str): that of most tables.
    * `tables` (tuple[tuple[str, str], ...]): patterns of the names of tables, regardless of case, with theirs: the first
      name of a table that any fits counts, and of the patterns that fit it the first.
    """

    usual: str = CURRENT
    tables: tuple[tuple[str, str], ...] = ()

    def __post_init__(self) -> None:
        """Check the forms."""
        for form in self._every:
            check_form_name(form)

    @property
    def _every(self) -> tuple[str, ...]:
        return (self.usual, *[form for _, form in self.tables])

    @property
    def kept(self) -> str | None:
        """A form that keeps versions of rows, None if no table has one: every change of a row is needed then."""
        return next((form for form in self._every if form != CURRENT), None)

    def of(self, table: Table) -> str:
        """Return the form of a table. One that a statement renames keeps its form, unless none of its names had a rule."""
        names = (schema.table for schema in table.versions)
        found = (form for name in names for pattern, form in self.tables if fits_caseless(name, pattern))
        return next(found, self.usual) if self.tables else self.usual


@dataclass(frozen=True)
class LakeSettings:
    """What is written to which lake. Raises `ValueError`.

    * `sink` (`DeltaLake` or `IcebergLake`): the lake; `Delta` and `Iceberg` of `cdcavro.spark.lake` are subclasses.
    * `is_current` and `is_changelog` (bool): whether a table's current state is written, and its changelog.
    * `behavior` (str), `guard` (timedelta): as in `CurrentState`.
    * `parallel` (int): how many tables are written at a time.
    * `is_adopting` (bool): whether lake tables of other pipelines are adopted.
    * `warehouse` (str or None): the folder of an Iceberg catalog of files; Spark has it in its session's settings.
    * `is_native` (bool): whether small batches are written without Spark plans, if this process reaches the lake.
    * `catalog` (Mapping[str, str]): the properties of an Iceberg catalog that is a server or a database, as pyiceberg
      names them, or of the metastore that also names Delta Lake tables; their values are not shown.
    * `template` (str or None): what tables are called in the lake, such as `lake.{database}_{table}`; by default as they
      are in the source.
    * `change_columns` (tuple of str): the columns about the change of a row that lake tables have, by the words of
      `sql_statements.CHANGE_COLUMNS`, such as `time`.
    * `statements` (StatementRules): which statements of which tables are not followed.
    * `form` (str): the form of current states: `current`, `soft` with the rows that were deleted, or `history` with all
      versions of rows.
    * `table_forms` (tuple[tuple[str, str], ...]): patterns of the names of tables that have another form, as in
      `TableForms`.
    * `complete_minutes` (float): how many minutes apart lake tables are marked as complete up to a time, each by a
      separate commit after one with rows; 0 for each batch.
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
    catalog: Mapping[str, str] = field(default_factory=dict, repr=False)
    template: str | None = None
    change_columns: tuple[str, ...] = ()
    statements: StatementRules = StatementRules()
    form: str = CURRENT
    complete_minutes: float = 10
    table_forms: tuple[tuple[str, str], ...] = ()
    topic = None
    is_connect = False

    def __post_init__(self) -> None:
        """Check the catalog, the template, the columns about changes, the form, the behavior and the times."""
        if self.behavior not in BEHAVIORS:
            raise ValueError(f"expected {', '.join(BEHAVIORS)} as behavior, got {shown(self.behavior)}")
        if self.guard < timedelta():
            raise ValueError(f"expected a number of days as guard, got {shown(self.guard / timedelta(days=1))}")
        if not self.complete_minutes >= 0:
            raise ValueError(f"expected a number of minutes as complete_minutes, got {shown(self.complete_minutes)}")
        if self.catalog:
            object.__setattr__(self, "catalog", hide_secrets(self.catalog, "catalog"))
            (check_catalog if isinstance(self.sink, IcebergLake) else check_metastore)(self.catalog)
            if self.warehouse is not None:
                raise ValueError("a catalog has tables of Iceberg where it puts them, and a warehouse is given besides")
        if self.template is not None:
            check_name_template(self.template)
        check_change_columns(self.change_columns)
        if self.forms.kept is not None and not self.is_current:
            raise ValueError(f"the form {self.forms.kept} is one of a current state, which is not written")

    @property
    def name(self) -> str:
        """What the lake is called in messages."""
        return self.sink.name

    @property
    def identity(self) -> str:
        """What identifies the lake, and the form of most tables, which cannot change: a state is bound to both."""
        if not self.is_current:
            return self.name + WITHOUT_CURRENT
        return self.name if self.form == CURRENT else f'{self.name}{WITH_FORM}"{self.form}"'

    @property
    def has_headers(self) -> bool:
        """Whether lake tables have the headers of Kafka records."""
        return HEADERS in self.change_columns

    @property
    def forms(self) -> TableForms:
        """Which form the current state of each table has."""
        return TableForms(self.form, self.table_forms)

    @property
    def lake(self) -> DeltaLake | IcebergLake:
        """The lake, as its catalog has tables."""
        if not self.catalog or not isinstance(self.sink, IcebergLake):
            return self.sink
        return replace(self.sink, is_shared=True, is_plain=has_plain_names(self.catalog))


@dataclass(frozen=True)
class KafkaTopics:
    """Topics of a Kafka cluster, for which a pipeline needs a registry. Raises `ValueError`.

    * `servers` (str): `host:port` of some brokers, separated by commas.
    * `topic` (str): what topics are called, with `{name}` for the name of the table, or one topic for all.
    * `options` (Mapping[str, str]): those of Spark's Kafka sink, such as `kafka.security.protocol`; their values are
      not shown.
    * `shards` (str or None): `blob` or `tuple`, the rule by which the partition is chosen, as `cdcavro.shard` does; by
      default Kafka's own.
    * `tombstones` (bool): whether a record without a value follows a delete.
    * `truncates` (bool): whether a TRUNCATE is a record.
    * `partitions` and `replication` (int or None): those of created topics; by default as the brokers say.
    * `parallel` (int): how many tables are written at a time.
    * `is_connect` (bool): whether keys and values have the schemas of Kafka Connect's converters, for Debezium's consumers.
    * `has_headers` (bool): whether records have the headers of the Kafka record that they come from, as JSON in a header.
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
    is_connect: bool = False
    has_headers: bool = False
    template = None

    def __post_init__(self) -> None:
        """Check the settings."""
        check_topic_template(self.topic)
        if self.shards not in (None, *STRATEGIES):
            raise ValueError(f"shards are those of {' or '.join(STRATEGIES)}, not {shown(self.shards)}")
        refused = sorted(name for name in self.options if name.lower() in _REFUSED)
        if refused:
            raise ValueError(f"the options {', '.join(refused)} of Spark's sink of Kafka cannot be set")
        check_prefixes(self.options)

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
    * `is_plain` (bool): whether the records are flat, as `cdcavro.arrow.write_plain` writes them.
    * `has_headers` (bool): whether records have the headers of the Kafka record that they come from, as JSON in a field.
    """

    root: str
    codec: str = "deflate"
    parallel: int = 4
    is_plain: bool = False
    has_headers: bool = False
    topic = None
    is_connect = False
    template = None

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


def with_shapes(
    sink: LakeSettings | KafkaTopics | AvroFiles, shapes: tuple[TableShape, ...]
) -> LakeSettings | KafkaTopics | AvroFiles:
    """Return the settings of a sink whose tables have shapes. Raises `ValueError` for what the sink cannot have."""
    if isinstance(sink, LakeSettings):
        for shape in shapes:
            shape.check_for(sink.sink.using)
        return replace(sink, sink=replace(sink.sink, shapes=shapes)) if shapes else sink
    of_lake = sorted({name for shape in shapes for name in shape.of_lake})
    if of_lake:
        raise ValueError(f"{', '.join(of_lake)} in [[table]] is of lake tables, and rows go to {sink.name}")
    return sink


class Job(NamedTuple):
    """What identifies a pipeline."""

    id: str
    # The tables that it wrote when lake tables did not say whose they are.
    unmarked: frozenset[TableName]
    # What raises `FileError` if another process has taken the state, and writes what this one would write.
    check: Callable[[], None] = lambda: None


class LakeNames:
    """What each table is called in the lake; `names` maps numbers to names, as another one had them.

    `routes` (`Routes`) say what a table is called there; without one that fits, it has its own name. `shards` maps the
    numbers of those that are written into one lake table to what tells them apart there: the names that they had when they
    were first written, each of one table at a time.

    A table keeps the name that it had when it was first written. A table that takes the name of one that was dropped
    goes on with its lake table. A number is put behind a name that another table still has, or that differs from
    another's only in letter case or in the normal form of Unicode. With a `template`, a table is first called what that
    makes of its name, or of that which a route gives it; a second one for which it makes the same has no name.
    """

    def __init__(
        self,
        names: Mapping[int, TableName] | None = None,
        template: str | None = None,
        routes: Routes | None = None,
        shards: Mapping[int, str] | None = None,
    ) -> None:
        self.names: dict[int, TableName] = dict(names or {})
        self.shards: dict[int, str] = dict(shards or {})
        self._template, self._routes = template, routes or Routes()
        self._numbers: dict[tuple[str | None, ...], list[int]] = {}
        self._remarked: set[tuple[int, TableName]] = set()
        for number, name in self.names.items():
            self._numbers.setdefault(caseless_name(name), []).append(number)

    def name(self, table: Table, tables: Sequence[Table], first: int | None = None) -> TableName:
        """Return the name of a table in the lake. Raises `SchemaError` for one to which the template gives none.

        It comes from the name that the table had in its version `first`, which is that of its first rows, however
        batches are cut; the newest if that is not known.
        """
        known = self.names.get(table.number)
        if known is not None:
            return known
        source = next((one.table for one in table.versions if one.version == first), table.schema.table)
        name = self._free(source, tables)
        if self._routes.target(source).is_shard:
            self.shards[table.number] = self._free_shard(source, name, tables)
        self.names[table.number] = name
        self._numbers.setdefault(caseless_name(name), []).append(table.number)
        return name

    def refusal(self, table: Table, tables: Sequence[Table]) -> str:
        """Return why a table has no name in the lake."""
        try:
            self._free(table.schema.table, tables)
        except SchemaError as error:
            return str(error)
        return "it gets its name in the lake with the next batch"

    def _free(self, source: TableName, tables: Sequence[Table]) -> TableName:
        """Return the name that a table that has none would get now."""
        own, count, is_shard = self._wanted(source), 1, self._routes.target(source).is_shard
        self._check_alone(own, source, tables, is_shard=is_shard)
        name = own
        while self._is_taken(name, tables, is_shard=is_shard):
            count += 1
            name = TableName(own.database, own.schema, f"{own.table}~{count}")
        return name

    def _free_shard(self, source: TableName, name: TableName, tables: Sequence[Table]) -> str:
        """Return what a table of the source that has no name is called as a shard of a lake table."""
        own, count = label_of(source), 1
        others = [number for number in self.shards if self.names[number] == name]
        taken = {self.shards[one] for one in others if not (tables[one].is_gone and tables[one].schema.table == source)}
        shard = own
        while shard in taken:
            count += 1
            shard = f"{own}~{count}"
        return shard

    def _wanted(self, source: TableName) -> TableName:
        own = self._routes.target(source).name
        return own if self._template is None else name_by_template(self._template, own)

    def _check_alone(self, name: TableName, source: TableName, tables: Sequence[Table], *, is_shard: bool) -> None:
        """Raise `SchemaError` if the template gives a name to a table and to another one, which has it or a number behind it.

        Shards of one lake table are to have one name.
        """
        own, is_free = caseless_name(source), caseless_name(name) not in self._numbers
        for number in () if self._template is None or is_free else self.names:
            other = tables[number]
            if is_shard and number in self.shards:
                continue
            if caseless_name(other.schema.table) != own and self._is_same(other, name):
                raise SchemaError(
                    source.table,
                    f"name in [lake], {self._template}, gives {label_of(source)} the name of"
                    f" {label_of(other.schema.table)}, {label_of(name)}: let it tell them apart, or leave one of them out",
                )

    def _is_same(self, table: Table, name: TableName) -> bool:
        """Return whether the template gives a table a name; one that has that of another template may get none."""
        try:
            return caseless_name(self._wanted(table.schema.table)) == caseless_name(name)
        except SchemaError:
            return False

    def _is_taken(self, name: TableName, tables: Sequence[Table], *, is_shard: bool) -> bool:
        """Return whether an existing table has a name, or any has one that differs in letter case or normal form.

        Shards share theirs with one another, and with no table that is none, even if it is gone.
        """
        numbers = self._numbers.get(caseless_name(name), ())
        return any(
            name != self.names[number]
            or (number in self.shards) != is_shard
            or not (is_shard or tables[number].is_gone)
            for number in numbers
        )

    def label(self, table: Table) -> str:
        """Return the name of a table in the lake for people: its own if it is not written yet."""
        known = table.number in self.names
        return self.label_of(table.number) if known else label_of(table.schema.table)

    def renamed_remark(self, table: Table) -> list[str]:
        """Return what is worth knowing, once, of a table that has the name of another whose lake table keeps that name."""
        current, here = table.schema.table, self.names.get(table.number)
        others, said = self._numbers.get(caseless_name(current), ()), (table.number, current)
        is_renamed = any(one.table != current for one in table.versions)
        is_elsewhere = here is not None and caseless_name(here) != caseless_name(current)
        if table.is_gone or not (is_renamed and is_elsewhere and others) or said in self._remarked:
            return []
        self._remarked.add(said)
        there = f"{label_of(current)} has those of a table that was called so before"
        return [
            f"this lake table has the rows of what is called {shown(current.table)} now, and keeps its name; {there}"
        ]

    def coming_label(self, source: TableName, tables: Sequence[Table]) -> str:
        """Return for people what a table that has no name in the lake would be called there: its own if it gets none."""
        try:
            return label_of(self._free(source, tables))
        except SchemaError:
            return label_of(source)

    def label_of(self, number: int) -> str:
        """Return the name in the lake for people of a table that has one, by its number; a shard is named behind it."""
        shard = f" ({self.shards[number]})" if number in self.shards else ""
        return f"{label_of(self.names[number])}{shard}"

    @property
    def state(self) -> list[list[Any]]:
        """The names as a JSON value."""
        return [
            [number, name.database, name.schema, name.table, *([self.shards[number]] if number in self.shards else [])]
            for number, name in sorted(self.names.items())
        ]

    @classmethod
    def of(cls, state: Sequence[Sequence[Any]], template: str | None = None, routes: Routes | None = None) -> LakeNames:
        """Return the names that `state` returned."""
        names = {number: TableName(*parts[:3]) for number, *parts in state}
        return cls(names, template, routes, {number: parts[3] for number, *parts in state if len(parts) > 3})  # noqa: PLR2004
