"""Shard tables: a lake table of several tables of the source, its shards, as if it were that of one of them alone.

So a shard is written as any table is: it has its own columns, under its own names, its own keys, floors and deletes. What it
has in common with others is done here: rows say in `_cdc_shard` which one they are of, keys begin with that, so that equal
keys of two shards are two rows, and properties of a shard have its number. What is done to columns, `shard_columns` says.
"""

from __future__ import annotations

import json
import re
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Final, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from cdcavro.avro.binary import write_string
from cdcavro.errors import SchemaError, shown
from cdcavro.lake.escaped_names import OWN, plain_column
from cdcavro.lake.evolution import ADD, LENIENT, LakeColumn, Step, columns_behind, steps_left, steps_of, steps_text
from cdcavro.lake.lake_columns import arrow_type, wanted_columns
from cdcavro.lake.lakes import OWNER, name_property
from cdcavro.lake.sql_statements import CHANGE_COLUMNS, DELETED, KEY, SHARD, change_column_steps
from cdcavro.lake.typed_rows import DELETES_TABLE, GUARDED
from cdcavro.sync.native.shard_columns import (
    HeldNames,
    ShardColumn,
    SharedColumns,
    columns_of,
    columns_text,
    follow,
    is_aside,
)
from cdcavro.sync.native.shard_histories import Point

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from datetime import datetime, timedelta

    from cdcavro.lake.table_shape import Partition, TableShape
    from cdcavro.sync.native.native_columns import Mark, NativeLake, NativeTable
    from cdcavro.table.ddl.steps import TableName
    from cdcavro.table.history import Table
    from cdcavro.table.table_schema import TableSchema

_FAMILY: Final = "cdcavro."
_OF_SHARDS: Final = f"{_FAMILY}shard."
# What a shard is called, its columns, and where it began, behind its number; and the names that columns had, of all shards.
_CALLED: Final = "name"
_COLUMNS: Final = "columns"
_POINT: Final = "point"
_NAMES: Final = f"{_FAMILY}names"
# Steps that are being taken, where each is a commit of its own, with the properties that are set behind the last one.
_BEGUN: Final = f"{_FAMILY}begun"
_NOTHING: Final = "[]"
# What columns of the lake are called in truth, by their fields, where it spells names as every reader has them.
_TRUE: Final = f"{_FAMILY}true"
# How a person lets rows go on that wait.
_OUT: Final = (
    ": let all shards follow the same statements; or start again, with a CREATE TABLE before the first statement of each"
    " shard, or without this one in the route"
)

_NUMBERED: Final = re.compile(rf"{re.escape(_OF_SHARDS)}([0-9]+)\.(.+)", re.DOTALL)
_ABOUT_CHANGES: Final = frozenset(column.name for column in CHANGE_COLUMNS.values())


class ShardLake:
    """A native lake as a shard sees it.

    * `lake` (`NativeLake`): the lake.
    * `shard` (str): what tells the shard from others of its lake table.
    * `versions` (sequence of TableSchema): those of the shard.
    * `others` (dict from str to TableSchema): the newest version of other shards, as far as it is known.
    * `number` (int): that of the table, of which a shard has several if it is dropped and comes again.
    """

    def __init__(
        self,
        lake: NativeLake,
        shard: str,
        versions: Sequence[TableSchema],
        others: Mapping[str, TableSchema],
        number: int = 0,
    ) -> None:
        self.lake, self.shard, self.versions, self.others, self.number = lake, shard, versions, others, number
        # What was done to columns of lake tables.
        self._steps: list[Step] = []
        self._tables: dict[tuple[TableName, str], ShardTable] = {}

    @property
    def is_here(self) -> bool:
        """Whether the tables are in files of this machine."""
        return self.lake.is_here

    @property
    def using(self) -> str:
        """The kind of lake."""
        return self.lake.using

    @property
    def name(self) -> str:
        """What the lake is called in messages."""
        return self.lake.name

    def table(self, name: TableName, suffix: str = "") -> ShardTable:
        """Return a lake table of a table as the shard sees it, whose columns nobody else changes."""
        return self._tables.setdefault((name, suffix), ShardTable(self, name, suffix))

    def tables(self) -> Iterator[NativeTable]:
        """Yield all tables of the lake, as they are."""
        return self.lake.tables()

    def properties(self, names: Sequence[str]) -> Mapping[str, str]:
        """Return what a table with columns of such names is created with."""
        return self.lake.properties([plain_column(name) for name in names] if self.lake.is_rewritten({}) else names)

    def properties_for(self, steps: Sequence[Step]) -> Mapping[str, str]:  # noqa: ARG002  as that of other lakes
        """Return nothing: what the lake table needs depends on the steps that are taken for all shards."""
        return {}

    def is_rewritten(self, properties: Mapping[str, str]) -> bool:  # noqa: ARG002  as that of other lakes
        """Return false: a shard has its columns under their true names, whatever the lake calls them."""
        return False

    @property
    def is_stepwise(self) -> bool:
        """Whether each step is a commit of its own."""
        return self.lake.is_stepwise

    def shape_of(self, table: TableName) -> TableShape:
        """Return what is said of the shape of a table."""
        return self.lake.shape_of(table)

    def can_widen(self, old: str, new: str) -> bool:
        """Return whether a column of a type can become one of another."""
        return self.lake.can_widen(old, new)

    def make_room(self, table: TableName) -> None:
        """Prepare the place of a table."""
        self.lake.make_room(table)

    def check(self) -> None:
        """Check that the lake can be reached and written to."""
        self.lake.check()

    def note(self, steps: Sequence[Step]) -> None:
        """Note what was done to columns of a lake table."""
        self._steps += steps

    def done(self, steps: Sequence[Step | str]) -> list[Step | str]:
        """Return what was done to lake tables since the last call, of the `steps` of the shard those that are texts."""
        done, self._steps = self._steps, []
        return [*done, *(step for step in steps if isinstance(step, str))]


class ShardTable:
    """One lake table as a shard sees it, as `NativeTable` says."""

    def __init__(self, lake: ShardLake, name: TableName, suffix: str) -> None:
        self._lake, self._name, self._suffix = lake, name, suffix
        self._table = lake.lake.table(name, suffix)
        # What is known of its columns until they change.
        self._known: list[tuple[ShardColumn, str]] | None = None
        self._schema: pa.Schema | None = None

    @property
    def identifier(self) -> str:
        """The name of the table in messages."""
        return self._table.identifier

    def _number(self, held: Mapping[str, str]) -> int | None:
        """Return the number of the shard in a lake table with some properties; None if it is not there yet."""
        found = ((_NUMBERED.fullmatch(name), value) for name, value in held.items())
        return next(
            (int(one[1]) for one, value in found if one and one[2] == _CALLED and value == self._lake.shard), None
        )

    def properties(self) -> dict[str, str] | None:
        """Return the properties of the shard, and those that are of no pipeline's; None if it has no rows there yet."""
        held = self._held() or {}
        number = self._number(held)
        if number is None:
            return None
        found = {name: value for name, value in held.items() if not name.startswith(_FAMILY) or name == OWNER}
        own = f"{_OF_SHARDS}{number}."
        return found | {_FAMILY + name.removeprefix(own): value for name, value in held.items() if name.startswith(own)}

    def _stated(self, number: int, properties: Mapping[str, str]) -> dict[str, str]:
        """Return properties of a shard as the lake table has them."""
        own = f"{_OF_SHARDS}{number}."
        found = {
            own + name.removeprefix(_FAMILY) if name.startswith(_FAMILY) and name != OWNER else name: value
            for name, value in properties.items()
        }
        # Whoever tidies the lake finds deletes.
        return found | {name: value for name, value in properties.items() if name == GUARDED}

    def _columns(self) -> list[tuple[ShardColumn, str]]:
        """Return the columns of the shard, each with the name of the lake's column that holds it."""
        if self._known is None:
            text = (self.properties() or {}).get(_FAMILY + _COLUMNS)
            names = {} if text is None else {column.field: column.name for column in self._table.columns()}
            # A kill may have left columns that are still to be added.
            self._known = [(one, names[one.held]) for one in columns_of(text or "[]") if one.held in names]
        return self._known

    @property
    def rows(self) -> ShardRows:
        """How rows of the shard become those of the lake table."""
        return ShardRows(self._lake.shard, {column.name: held for column, held in self._columns()})

    def is_there(self) -> bool:
        """Return whether there is the lake table, which may have no rows of the shard."""
        return self._table.is_there()

    def version(self) -> int | None:
        """Return the newest version of the lake table."""
        return self._table.version()

    def size(self) -> int:
        """Return how many bytes the files have, of all shards."""
        return self._table.size()

    def columns(self) -> list[LakeColumn]:
        """Return the columns of the shard."""
        return [LakeColumn(column.name, column.field, column.type) for column, _ in self._columns()]

    def schema(self) -> pa.Schema:
        """Return the names and types of the shard's columns, and of this project's own."""
        typed = [pa.field(column.name, arrow_type(column.type)) for column, _ in self._columns()]
        own = [field for field in self._lake_schema if field.name.startswith(OWN) and field.name != SHARD]
        return pa.schema([*typed, *own])

    def create(
        self,
        columns: Sequence[LakeColumn],
        own: Mapping[str, str],
        properties: Mapping[str, str],
        partition: Sequence[Partition] = (),
    ) -> None:
        """Create the table unless there is one, and give it the columns of the shard.

        Raises `SchemaError` for a table that is none of shards, or has another form, and as `shard_columns.follow` does.
        """
        held = self._held()
        self._forget()
        if held is None:
            shared = self._follow([Step(ADD, column.name, column) for column in columns], {}, [])
            about = {_FAMILY + _CALLED: self._lake.shard}
            stated = self._stated(0, {**properties, **about}) | name_property(self._name) | self._shared(0, shared)
            names = _Spelling({}, [], is_plain=self._lake.lake.is_rewritten({}))
            spelled = [replace(column, name=names.spell(column.name)) for column in columns]
            parts = [one._replace(column=names.spell(one.column)) for one in partition]
            self._table.create(spelled, {**own, SHARD: "string"}, stated | names.properties(columns), parts)
            return
        if self._number(held) is not None:
            return
        self._check_own(own)
        steps = [Step(ADD, column.name, column) for column in columns]
        about = {_FAMILY + _CALLED: self._lake.shard}
        self._alter([*steps, *change_column_steps(own, self._lake_schema.names)], {**properties, **about}, held)

    def _check_own(self, own: Mapping[str, str]) -> None:
        """Raise `SchemaError` unless the lake table has these columns of this project, those about changes aside."""
        names = {name for name in self._lake_schema.names if name.startswith(OWN)}
        if SHARD not in names:
            raise SchemaError(self.identifier, "was begun for one table: let the route name another one for shards")
        if names - _ABOUT_CHANGES != {*own, SHARD} - _ABOUT_CHANGES:
            raise SchemaError(self.identifier, "was begun with another form: let all shards have the same")

    def repartition(self, partition: Sequence[Partition]) -> list[str]:
        """Let the table be partitioned so from now on."""
        names = self.rows.names
        return self._table.repartition([one._replace(column=names.get(one.column, one.column)) for one in partition])

    def sort_by(self, names: Sequence[str]) -> list[str]:
        """Let rows be sorted by these columns of the shard from now on."""
        return self._table.sort_by(self.rows.held_names(names))

    def alter(self, steps: Sequence[Step], properties: Mapping[str, str]) -> None:
        """Take steps of the shard's columns, as far as other shards have not taken them, and set properties.

        Raises `SchemaError` as `shard_columns.follow` and `NativeTable.alter` do.
        """
        held = self._held() or {}
        if steps or properties or self._is_further(held):
            self._alter(steps, properties, held)

    def _is_further(self, held: Mapping[str, str]) -> bool:
        """Return whether the shard has followed statements since it was written last, though they add or rename nothing."""
        table, versions, *_ = json.loads(held.get(f"{_OF_SHARDS}{self._number(held)}.{_POINT}", "[null,0]"))
        return bool(table == self._lake.number and versions < len(self._lake.versions))

    def _alter(self, steps: Sequence[Step], properties: Mapping[str, str], held: Mapping[str, str]) -> None:
        number = self._number(held)
        if number is None:
            numbers = [int(one[1]) for one in map(_NUMBERED.fullmatch, held) if one]
            number = max(numbers, default=-1) + 1
        stated = self._stated(number, properties)
        others = [step for step in steps if step.column.name in _ABOUT_CHANGES]
        steps = [step for step in steps if step not in others]
        taken: list[Step] = []
        if steps or self._is_further(held):
            lake, columns = self._lake.lake, self._table.columns()
            names = _Spelling(held, columns, is_plain=lake.is_rewritten(held))
            shared = self._follow(steps, held, names.present)
            behind = [column for _, column in columns_behind(names.present, shared.steps)]
            taken = [names.step(step) for step in shared.steps]
            stated |= self._shared(number, shared) | names.properties(behind)
            needed = lake.properties_for([one for one in taken if one.kind == ADD] if names.is_plain else taken)
            stated |= {name: value for name, value in needed.items() if held.get(name, "none") in ("none", "false")}
        stated = {name: value for name, value in stated.items() if held.get(name) != value}
        self._take([*taken, *others], stated)
        self._lake.note([*taken, *others])

    def _take(self, steps: Sequence[Step], properties: Mapping[str, str]) -> None:
        """Take steps on the lake table and set properties, so that a kill leaves both or what `_held` goes on with."""
        try:
            if steps and self._lake.lake.is_stepwise:
                self._take_each(steps, properties)
            else:
                self._table.alter(steps, properties)
        finally:
            self._forget()

    def _take_each(self, steps: Sequence[Step], properties: Mapping[str, str]) -> None:
        """Say what is begun, take steps, each a commit of its own, and set properties."""
        self._table.alter([], {_BEGUN: steps_text(self._every_column(), steps, properties)})
        needed = {name: value for name, value in properties.items() if not name.startswith(_FAMILY)}
        try:
            self._table.alter(steps, needed)
        except SchemaError:
            # None was taken.
            self._table.alter([], {_BEGUN: _NOTHING})
            raise
        self._table.alter([], {**properties, _BEGUN: _NOTHING})

    def _held(self) -> dict[str, str] | None:
        """Return the properties of the lake table, behind the steps that somebody had begun to take; None without one."""
        held = self._table.properties()
        if held is None or held.get(_BEGUN, _NOTHING) == _NOTHING:
            return held
        before, steps, properties = steps_of(held[_BEGUN])
        left = steps_left(before, steps, self._every_column())
        if left is not None:
            # Otherwise somebody else has changed columns since then, and names decide.
            self._table.alter(left, properties)
        self._table.alter([], {_BEGUN: _NOTHING})
        self._forget()
        return self._table.properties()

    def _forget(self) -> None:
        """Forget what is known of the columns, which change."""
        self._known = self._schema = None

    @property
    def _lake_schema(self) -> pa.Schema:
        """The names and types of the lake table's columns."""
        if self._schema is None:
            self._schema = self._table.schema()
        return self._schema

    def _every_column(self) -> list[LakeColumn]:
        """Return the columns of the lake table, this project's own among them by their names."""
        own = [LakeColumn(name, "", "") for name in self._lake_schema.names if name.startswith(OWN)]
        return [*self._table.columns(), *own]

    def _follow(self, steps: Sequence[Step], held: Mapping[str, str], present: Sequence[LakeColumn]) -> SharedColumns:
        """Return what a lake table with some properties and columns has behind steps of the shard."""
        own, known = self._lake, [column for column, _ in self._columns()] if present else []
        names = HeldNames.of(held.get(_NAMES, "[{},{}]"))
        versions = [wanted_columns(schema) for schema in own.versions]
        table, _, *point = json.loads(held.get(f"{_OF_SHARDS}{self._number(held)}.{_POINT}", "[null,0]"))
        began = Point(*point) if table == own.number and point else None
        for column in (column for version in versions for column in version):
            if column.until is None and is_aside(column.name):
                raise SchemaError(
                    own.shard,
                    f"column {shown(column.name)} is called as columns of shards are that were put aside{_OUT}",
                )
        try:
            return follow(own.shard, present, names, known, steps, versions, began, self._live(held), own.can_widen)
        except SchemaError as error:
            raise SchemaError(own.shard, f"{error.reason}{_OUT}") from error

    def _shared(self, number: int, shared: SharedColumns) -> dict[str, str]:
        """Return the properties that say what the columns of a shard are."""
        own = f"{_OF_SHARDS}{number}."
        facts = [self._lake.number, len(self._lake.versions), *(shared.point or ())]
        point = json.dumps(facts, separators=(",", ":"))
        return {own + _COLUMNS: columns_text(shared.columns), own + _POINT: point, _NAMES: shared.names.text}

    def _live(self, held: Mapping[str, str]) -> dict[str, set[str]]:
        """Return what other shards call their columns now, by the fields of the lake's columns that hold them."""
        found: dict[str, set[str]] = {}
        for name, shard in held.items():
            one = _NUMBERED.fullmatch(name)
            if one is None or one[2] != _CALLED or shard == self._lake.shard:
                continue
            columns = columns_of(held.get(f"{_OF_SHARDS}{one[1]}.{_COLUMNS}", "[]"))
            version = self._lake.others.get(shard)
            now = None if version is None else [one for one in wanted_columns(version) if one.until is None]
            for column in columns:
                same = {wanted.name for wanted in now or () if column.field in (wanted.field, *wanted.aliases)}
                found.setdefault(column.held, set()).update({column.name} if now is None else same)
        return found

    def append(self, rows: pa.Table, mark: Mark | None = None) -> None:
        """Append rows, unless their batch is there."""
        self._table.append(self._to_lake(rows), mark)

    def merge(self, rows: pa.Table, present: Sequence[str]) -> None:
        """Merge rows as `NativeTable.merge` does."""
        self._table.merge(self._to_lake(rows), [*self.rows.held_names(present), SHARD])

    def find(self, keys: pa.Array, names: Sequence[str] | None = None) -> pa.Table:
        """Return the rows of the shard that have one of these keys."""
        wanted, rows = self.schema() if names is None else self._part(names), self.rows
        return rows.of_shard(self._table.find(rows.put_before(keys), rows.held_names(wanted.names)), wanted)

    def replace(self, keys: pa.Array, rows: pa.Table) -> None:
        """Remove the rows of the shard with these keys, and add rows."""
        self._table.replace(self.rows.put_before(keys), self._to_lake(rows))

    def read(self, names: Sequence[str], filled: Sequence[str] = ()) -> pa.Table:
        """Return columns of all rows of the shard, or of those in which any of the columns `filled` is not null."""
        wanted, own = self._part(names), self.rows
        rows = self._table.read([*own.held_names(names), SHARD], own.held_names(filled))
        return own.of_shard(rows.filter(own.are_own(rows)), wanted)

    def delete_up_to(self, column: str, bound: bytes | datetime, shard: str | None = None) -> None:  # noqa: ARG002  its own
        """Delete the rows of the shard whose value in a column is not above a bound; deletes of all shards by their time."""
        self._table.delete_up_to(column, bound, None if self._suffix == DELETES_TABLE else self._lake.shard)

    def rewrite(self, transform: Callable[[pa.RecordBatch], pa.RecordBatch]) -> None:
        """Replace all rows of the shard by what a function returns for them, some at a time, in one commit."""
        # While its rows are read, the lake table is not asked for anything.
        self._table.rewrite(partial(_rewritten, transform, self.rows, self.schema(), self._lake_schema))

    def compact(self) -> int:
        """Put small files together, of all shards."""
        return self._table.compact()

    def vacuum(self, keep: timedelta) -> int:
        """Remove files that no version needs, of all shards."""
        return self._table.vacuum(keep)

    def _part(self, names: Sequence[str]) -> pa.Schema:
        schema = self.schema()
        return pa.schema([schema.field(name) for name in names])

    def _to_lake(self, rows: pa.Table) -> pa.Table:
        return self.rows.to_lake(rows, self._lake_schema)


class _Spelling:
    """What a lake table calls the columns that the algebra of shards knows by their true names.

    `held` are its properties, `columns` those of now; with `is_plain`, new ones are spelled as every reader has them.
    """

    def __init__(self, held: Mapping[str, str], columns: Sequence[LakeColumn], *, is_plain: bool) -> None:
        self.is_plain = is_plain
        known = json.loads(held.get(_TRUE, "{}"))
        self.present = [
            # Otherwise somebody else has renamed it.
            replace(one, name=known[one.field]) if plain_column(known.get(one.field, "")) == one.name else one
            for one in columns
        ]
        self._names = {true.name: one.name for true, one in zip(self.present, columns, strict=True)}

    def spell(self, name: str) -> str:
        """Return what the lake table calls a column with a true name."""
        return self._names.get(name, plain_column(name) if self.is_plain else name)

    def step(self, step: Step) -> Step:
        """Return a step as the lake table takes it."""
        after = self.spell(step.after) if step.after else step.after
        return Step(step.kind, self.spell(step.name), replace(step.column, name=self.spell(step.column.name)), after)

    def properties(self, columns: Iterable[LakeColumn]) -> dict[str, str]:
        """Return what the lake table says of the names of columns, given by their true names."""
        spelled = {one.field: one.name for one in columns if self.spell(one.name) != one.name}
        return {_TRUE: json.dumps(spelled, separators=(",", ":"))} if spelled else {}


class ShardVersions:
    """The newest tables that lake tables of shards have, as far as they were written."""

    def __init__(self) -> None:
        self._tables: dict[TableName, dict[str, Table]] = {}

    def learn(self, table: Table, name: TableName, shard: str | None) -> None:
        """Learn of a table that is written as a shard, or as none."""
        if shard is not None:
            shards = self._tables.setdefault(name, {})
            # Late rows of a dropped table may come with those of the one that took its place.
            shards[shard] = max(shards.get(shard, table), table, key=lambda one: one.number)

    def lake(self, lake: NativeLake, table: Table, name: TableName, shard: str, behavior: str) -> ShardLake:
        """Return a lake as a shard sees it. Raises `SchemaError` for a behavior that shards cannot have."""
        if behavior != LENIENT:
            raise SchemaError(name.table, f'is of shards, for which behavior in [lake] is "{LENIENT}"')
        newest = {one: known.schema for one, known in self._tables[name].items()}
        return ShardLake(lake, shard, table.versions, newest, table.number)


def steps_done(lake: NativeLake, steps: Sequence[Step | str]) -> list[str]:
    """Return what was done to a lake table: of the steps of a shard those that no other one had brought."""
    return [str(step) for step in (lake.done(steps) if isinstance(lake, ShardLake) else steps)]


class ShardRows(NamedTuple):
    """How rows of a shard become those of its lake table and come back, wherever that is done.

    * `shard` (str): what tells the shard from others.
    * `names` (dict from str to str): what the lake table calls the columns of the shard.
    """

    shard: str
    names: Mapping[str, str]

    @property
    def prefix(self) -> bytes:
        """What keys of the lake table begin with: the shard, as Avro has the first field of a key."""
        prefix = bytearray()
        write_string(prefix, self.shard)
        return bytes(prefix)

    def held_names(self, names: Sequence[str]) -> list[str]:
        """Return what the lake calls columns of the shard."""
        return [self.names.get(name, name) for name in names]

    def are_own(self, rows: pa.Table | pa.RecordBatch) -> pa.Array:
        """Return whether each row of the lake is one of the shard."""
        return pc.fill_null(pc.equal(rows.column(SHARD), pa.scalar(self.shard)), fill_value=False)

    def put_before(self, keys: pa.Array) -> pa.Array:
        """Return keys with the shard before them; null stays null."""
        return pc.binary_join_element_wise(pa.scalar(self.prefix), keys.cast(pa.binary()), pa.scalar(b""))

    def to_lake(self, rows: pa.Table, lake: pa.Schema) -> pa.Table:
        """Return rows of the shard as the lake has them, under its names and in its types."""
        types = {field.name: field.type for field in lake} | {DELETED: pa.binary()}
        columns = dict(zip(self.held_names(rows.column_names), rows.columns, strict=True))
        if KEY in columns:
            columns[KEY] = self.put_before(_whole(columns[KEY]))
        columns[SHARD] = pa.repeat(pa.scalar(self.shard), rows.num_rows)
        return pa.table({name: column.cast(types[name]) for name, column in columns.items()})

    def of_shard(self, rows: pa.Table, wanted: pa.Schema) -> pa.Table:
        """Return rows of the lake as the shard has them, with the columns of a schema, in whose order they come."""
        columns = []
        for field, column in zip(wanted, rows.columns, strict=False):
            values = column
            if field.name == KEY:
                # Arrow's own slice fails for some arrays of short values.
                values = pc.binary_replace_slice(_whole(column).cast(pa.binary()), 0, len(self.prefix), b"")
            columns.append(values.cast(field.type))
        return pa.Table.from_arrays(columns, schema=wanted)


def _rewritten(
    transform: Callable[[pa.RecordBatch], pa.RecordBatch],
    rows: ShardRows,
    wanted: pa.Schema,
    lake: pa.Schema,
    batch: pa.RecordBatch,
) -> pa.RecordBatch:
    """Return rows of a lake table, those of a shard as a function of rows with its columns, `wanted`, returns them."""
    is_own = rows.are_own(batch)
    if not pc.any(is_own).as_py():
        return batch
    others, own = batch.filter(pc.invert(is_own)), pa.Table.from_batches([batch.filter(is_own)])
    given = rows.of_shard(own.select(rows.held_names(wanted.names)), wanted).combine_chunks()
    made = rows.to_lake(pa.Table.from_batches([transform(one) for one in given.to_batches()], wanted), lake)
    columns = {name: made.column(name) if name in made.column_names else own.column(name) for name in own.column_names}
    typed = pa.table(columns).cast(batch.schema)
    whole = pa.concat_tables([pa.Table.from_batches([others]), typed]).combine_chunks()
    (one,) = whole.to_batches()
    return one


def _whole(column: pa.ChunkedArray) -> pa.Array:
    whole = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    return whole if isinstance(whole, pa.Array) else pa.concat_arrays(whole.chunks)
