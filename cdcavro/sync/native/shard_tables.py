"""Shard tables: a lake table of several tables of the source, its shards, as if it were that of one of them alone.

So a shard is written as any table is: it has its own columns, under its own names, its own keys, floors and deletes. What it
has in common with others is done here: rows say in `_cdc_shard` which one they are of, keys begin with that, so that equal
keys of two shards are two rows, and properties of a shard have its number. What is done to columns, `shard_columns` says.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Final

import pyarrow as pa
import pyarrow.compute as pc

from cdcavro.avro.binary import write_string
from cdcavro.errors import SchemaError, shown
from cdcavro.lake.escaped_names import OWN
from cdcavro.lake.evolution import ADD, LakeColumn, Step
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
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from datetime import datetime, timedelta

    from cdcavro.lake.table_shape import Partition, TableShape
    from cdcavro.sync.native.native_table import Mark, NativeLake, NativeTable
    from cdcavro.table.ddl.steps import TableName
    from cdcavro.table.table_schema import TableSchema

_FAMILY: Final = "cdcavro."
_OF_SHARDS: Final = f"{_FAMILY}shard."
# What a shard is called, its columns, and where it began, behind its number; and the names that columns had, of all shards.
_CALLED: Final = "name"
_COLUMNS: Final = "columns"
_POINT: Final = "point"
_NAMES: Final = f"{_FAMILY}names"
# How a person lets rows go on that wait.
_OUT: Final = (
    ": let all shards follow the same statements; or begin anew, with a CREATE TABLE before the first statement of each"
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

    @property
    def using(self) -> str:
        """The kind of lake."""
        return self.lake.using

    @property
    def name(self) -> str:
        """What the lake is called in messages."""
        return self.lake.name

    def table(self, name: TableName, suffix: str = "") -> ShardTable:
        """Return a lake table of a table as the shard sees it."""
        return ShardTable(self, name, suffix)

    def tables(self) -> Iterator[NativeTable]:
        """Yield all tables of the lake, as they are."""
        return self.lake.tables()

    def properties(self, names: Sequence[str]) -> Mapping[str, str]:
        """Return what a table with columns of such names is created with."""
        return self.lake.properties(names)

    def properties_for(self, steps: Sequence[Step]) -> Mapping[str, str]:  # noqa: ARG002  as that of other lakes
        """Return nothing: what the lake table needs depends on the steps that are taken for all shards."""
        return {}

    def is_rewritten(self, properties: Mapping[str, str]) -> bool:  # noqa: ARG002  as that of other lakes
        """Return false: `Pipeline` refuses such tables of shards."""
        return False

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
        prefix = bytearray()
        # As Avro has the first field of a key.
        write_string(prefix, lake.shard)
        self._prefix = bytes(prefix)
        # Nobody else changes columns.
        self._known: list[tuple[ShardColumn, str]] | None = None

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
        held = self._table.properties() or {}
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

    def size(self) -> int:
        """Return how many bytes the files have, of all shards."""
        return self._table.size()

    def columns(self) -> list[LakeColumn]:
        """Return the columns of the shard."""
        return [LakeColumn(column.name, column.field, column.type) for column, _ in self._columns()]

    def schema(self) -> pa.Schema:
        """Return the names and types of the shard's columns, and of this project's own."""
        typed = [pa.field(column.name, arrow_type(column.type)) for column, _ in self._columns()]
        own = [field for field in self._table.schema() if field.name.startswith(OWN) and field.name != SHARD]
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
        held, self._known = self._table.properties(), None
        if held is None:
            shared = self._follow([Step(ADD, column.name, column) for column in columns], {}, [])
            about = {_FAMILY + _CALLED: self._lake.shard}
            stated = self._stated(0, {**properties, **about}) | name_property(self._name) | self._shared(0, shared)
            self._table.create(columns, {**own, SHARD: "string"}, stated, partition)
            return
        if self._number(held) is not None:
            return
        self._check_own(own)
        steps = [Step(ADD, column.name, column) for column in columns]
        about = {_FAMILY + _CALLED: self._lake.shard}
        self._alter([*steps, *change_column_steps(own, self._table.schema().names)], {**properties, **about}, held)

    def _check_own(self, own: Mapping[str, str]) -> None:
        """Raise `SchemaError` unless the lake table has these columns of this project, those about changes aside."""
        names = {name for name in self._table.schema().names if name.startswith(OWN)}
        if SHARD not in names:
            raise SchemaError(self.identifier, "was begun for one table: let the route name another one for shards")
        if names - _ABOUT_CHANGES != {*own, SHARD} - _ABOUT_CHANGES:
            raise SchemaError(self.identifier, "was begun with another form: let all shards have the same")

    def repartition(self, partition: Sequence[Partition]) -> list[str]:
        """Let the table be partitioned so from now on."""
        names = {column.name: held for column, held in self._columns()}
        return self._table.repartition([one._replace(column=names.get(one.column, one.column)) for one in partition])

    def sort_by(self, names: Sequence[str]) -> list[str]:
        """Let rows be sorted by these columns of the shard from now on."""
        held = {column.name: name for column, name in self._columns()}
        return self._table.sort_by([held.get(name, name) for name in names])

    def alter(self, steps: Sequence[Step], properties: Mapping[str, str]) -> None:
        """Take steps of the shard's columns, as far as other shards have not taken them, and set properties.

        Raises `SchemaError` as `shard_columns.follow` and `NativeTable.alter` do.
        """
        held = self._table.properties() or {}
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
            lake = self._lake.lake
            shared = self._follow(steps, held, self._table.columns())
            taken = shared.steps
            stated |= self._shared(number, shared)
            needed = lake.properties_for(taken)
            stated |= {name: value for name, value in needed.items() if held.get(name, "none") in ("none", "false")}
        stated = {name: value for name, value in stated.items() if held.get(name) != value}
        self._table.alter([*taken, *others], stated)
        self._known = None
        self._lake.note([*taken, *others])

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
        names = {column.name: held for column, held in self._columns()}
        self._table.merge(self._to_lake(rows), [*(names.get(name, name) for name in present), SHARD])

    def find(self, keys: pa.Array, names: Sequence[str] | None = None) -> pa.Table:
        """Return the rows of the shard that have one of these keys."""
        wanted = self.schema() if names is None else self._part(names)
        return self._of_shard(self._table.find(self._put_before(keys), self._held_names(wanted.names)), wanted)

    def replace(self, keys: pa.Array, rows: pa.Table) -> None:
        """Remove the rows of the shard with these keys, and add rows."""
        self._table.replace(self._put_before(keys), self._to_lake(rows))

    def read(self, names: Sequence[str], filled: Sequence[str] = ()) -> pa.Table:
        """Return columns of all rows of the shard, or of those in which any of the columns `filled` is not null."""
        wanted = self._part(names)
        rows = self._table.read([*self._held_names(names), SHARD], self._held_names(filled))
        return self._of_shard(rows.filter(self._are_own(rows)), wanted)

    def delete_up_to(self, column: str, bound: bytes | datetime) -> None:
        """Delete the rows of the shard whose value in a column is not above a bound; deletes of all shards by their time."""
        if self._suffix == DELETES_TABLE:
            self._table.delete_up_to(column, bound)
            return
        rows = self.read([KEY, column])
        limit = pa.scalar(bound, rows.schema.field(column).type)
        gone = rows.filter(pc.fill_null(pc.less_equal(rows.column(column), limit), fill_value=False)).column(KEY)
        if len(gone):
            self._table.replace(self._put_before(_whole(gone)), self._table.schema().empty_table())

    def rewrite(self, transform: Callable[[pa.RecordBatch], pa.RecordBatch]) -> None:
        """Replace all rows of the shard by what a function returns for them, some at a time, in one commit."""
        # While its rows are read, the lake table is not asked for anything.
        wanted, to_lake = self.schema(), self._to_lake_of()
        held = self._held_names(wanted.names)

        def rewritten(batch: pa.RecordBatch) -> pa.RecordBatch:
            is_own = self._are_own(batch)
            if not pc.any(is_own).as_py():
                return batch
            others, own = batch.filter(pc.invert(is_own)), pa.Table.from_batches([batch.filter(is_own)])
            given = self._of_shard(own.select(held), wanted).combine_chunks()
            made = to_lake(pa.Table.from_batches([transform(one) for one in given.to_batches()], wanted))
            columns = {
                name: made.column(name) if name in made.column_names else own.column(name) for name in own.column_names
            }
            typed = pa.table(columns).cast(batch.schema)
            whole = pa.concat_tables([pa.Table.from_batches([others]), typed]).combine_chunks()
            (one,) = whole.to_batches()
            return one

        self._table.rewrite(rewritten)

    def compact(self) -> int:
        """Put small files together, of all shards."""
        return self._table.compact()

    def vacuum(self, keep: timedelta) -> int:
        """Remove files that no version needs, of all shards."""
        return self._table.vacuum(keep)

    def _part(self, names: Sequence[str]) -> pa.Schema:
        schema = self.schema()
        return pa.schema([schema.field(name) for name in names])

    def _held_names(self, names: Sequence[str]) -> list[str]:
        """Return what the lake calls columns of the shard."""
        held = {column.name: name for column, name in self._columns()}
        return [held.get(name, name) for name in names]

    def _are_own(self, rows: pa.Table | pa.RecordBatch) -> pa.Array:
        is_own = pc.equal(rows.column(SHARD), pa.scalar(self._lake.shard))
        return pc.fill_null(is_own, fill_value=False)

    def _put_before(self, keys: pa.Array) -> pa.Array:
        """Return keys with the shard before them; null stays null."""
        return pc.binary_join_element_wise(pa.scalar(self._prefix), keys.cast(pa.binary()), pa.scalar(b""))

    def _to_lake(self, rows: pa.Table) -> pa.Table:
        return self._to_lake_of()(rows)

    def _to_lake_of(self) -> Callable[[pa.Table], pa.Table]:
        """Return a function that returns rows of the shard as the lake has them, under its names and in its types."""
        names = {column.name: held for column, held in self._columns()}
        types = {field.name: field.type for field in self._table.schema()} | {DELETED: pa.binary()}

        def to_lake(rows: pa.Table) -> pa.Table:
            columns = {names.get(name, name): rows.column(name) for name in rows.column_names}
            if KEY in columns:
                columns[KEY] = self._put_before(_whole(columns[KEY]))
            columns[SHARD] = pa.repeat(pa.scalar(self._lake.shard), rows.num_rows)
            return pa.table({name: column.cast(types[name]) for name, column in columns.items()})

        return to_lake

    def _of_shard(self, rows: pa.Table, wanted: pa.Schema) -> pa.Table:
        """Return rows of the lake as the shard has them, with the columns of a schema, in whose order they come."""
        columns = []
        for field, column in zip(wanted, rows.columns, strict=False):
            values = column
            if field.name == KEY:
                # Arrow's own slice fails for some arrays of short values.
                values = pc.binary_replace_slice(_whole(column).cast(pa.binary()), 0, len(self._prefix), b"")
            columns.append(values.cast(field.type))
        return pa.Table.from_arrays(columns, schema=wanted)


def _whole(column: pa.ChunkedArray) -> pa.Array:
    whole = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    return whole if isinstance(whole, pa.Array) else pa.concat_arrays(whole.chunks)
