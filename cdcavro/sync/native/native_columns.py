"""Columns of native tables: how a table gets a version's, what old rows have in new ones, and what tables can do.

Where changes lack columns, rows are put together: each column is from the last change that states it. The rules are
those of `sql_statements.merge_state` with is_partial=True. All orders are numbered by their rank, so that the last
change of a column is the highest number of each key, which Arrow finds.

`NativeLake` and `NativeTable` say what the libraries that need no Java do with lakes and their tables, the same for
Delta Lake and Iceberg.
"""

from __future__ import annotations

import json
from datetime import UTC, datetime
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol

import pyarrow as pa
import pyarrow.compute as pc

from cdcavro.arrow.arrays import blank, places
from cdcavro.arrow.record_batches import VersionPayloads, fill_older_values, read_batch, reading_for
from cdcavro.errors import SchemaError, shown
from cdcavro.lake.escaped_names import plain_column
from cdcavro.lake.evolution import (
    ADD,
    DROP,
    EVOLVE,
    LENIENT,
    TRY_EVOLVE,
    columns_behind,
    in_front,
    same_column,
    steps_to,
)
from cdcavro.lake.lake_columns import dropped_columns, inherited_names, wanted_columns, with_former_names
from cdcavro.lake.sql_statements import (
    ABSENT,
    ADOPTED,
    KEY,
    OLDER,
    ORDER,
    STATE,
    UNPARSED,
    VERSION,
    change_column_steps,
)
from cdcavro.lake.table_shape import ICEBERG, property_steps
from cdcavro.sync.native.row_images import binary, in_lake, parts
from cdcavro.table.older_fields import ROW, heirs

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
    from datetime import timedelta

    from cdcavro.lake.evolution import LakeColumn, Step
    from cdcavro.lake.table_shape import Partition, TableShape
    from cdcavro.table.ddl.steps import TableName
    from cdcavro.table.table_schema import TableSchema

    TextNames = Callable[[], Mapping[str, Sequence[str]]]

# When rows were first attempted that waited from their first attempt on: later ones are told by what they leave.
WAITED: Final = datetime(1970, 1, 1, tzinfo=UTC)


class Mark(NamedTuple):
    """The mark of an append: a batch of a job that has one is not appended again."""

    # What is unique to the writer.
    job: str
    # The number of the batch, which goes up.
    batch: int
    # When the batch was first attempted; None if this attempt is surely the first, `WAITED` if its rows waited.
    since: datetime | None = None


class NativeTable(Protocol):
    """One lake table, which need not be there; its methods but `create` need it to be there.

    Each change is one commit. A commit that loses against another writer's is tried again, up to five times.
    """

    @property
    def identifier(self) -> str:
        """The name of the table in messages, the same as Spark's SQL has for it."""

    def properties(self) -> dict[str, str] | None:
        """Return the properties that the newest version of the table has; None if there is no table."""

    def is_there(self) -> bool:
        """Return whether there is the table, without opening it."""

    def version(self) -> int | None:
        """Return a number of the newest version, which grows with each change, -1 if there is no table.

        None if that is not known without opening the table.
        """

    def size(self) -> int:
        """Return how many bytes the files of the newest version have."""

    def columns(self) -> list[LakeColumn]:
        """Return the columns, without this project's own, as `cdcavro.spark.lake.sinks.present_columns` does."""

    def schema(self) -> pa.Schema:
        """Return the names and types of all columns, this project's own among them, in the table's order."""

    def create(
        self,
        columns: Sequence[LakeColumn],
        own: Mapping[str, str],
        properties: Mapping[str, str],
        partition: Sequence[Partition] = (),
    ) -> None:
        """Create the table unless there is one, as `sql_statements.create_table` does."""

    def repartition(self, partition: Sequence[Partition]) -> list[str]:
        """Let the table be partitioned so from now on; return what was done, or that it cannot be, in parts of sentences."""

    def sort_by(self, names: Sequence[str]) -> list[str]:
        """Let rows be sorted by these columns from now on, on Iceberg; return what was done, in parts of sentences."""

    def alter(self, steps: Sequence[Step], properties: Mapping[str, str]) -> None:
        """Take steps, in order, and set properties; nothing for none of both. Raises `SchemaError` for a step that the library cannot take."""

    def append(self, rows: pa.Table, mark: Mark | None = None) -> None:
        """Append rows, unless their batch is there, whichever runner appended it; without a mark nothing is looked for."""

    def merge(self, rows: pa.Table, present: Sequence[str]) -> None:
        """Merge rows as `sql_statements.merge_state` does with is_guarded=True and is_partial=False.

        `rows` has one row for each key, with the columns of `present`, those of `sql_statements.STATE`, and DELETED.
        """

    def find(self, keys: pa.Array, names: Sequence[str] | None = None) -> pa.Table:
        """Return the rows that have one of these keys in the column `sql_statements.KEY`; `names` are the columns, by default all."""

    def replace(self, keys: pa.Array, rows: pa.Table) -> None:
        """Remove the rows with these keys, and add rows, which have all columns of the table, in one commit."""

    def read(self, names: Sequence[str], filled: Sequence[str] = ()) -> pa.Table:
        """Return columns of all rows, or of those in which any of the columns `filled`, which are among them, is not null."""

    def delete_up_to(self, column: str, bound: bytes | datetime, shard: str | None = None) -> None:
        """Delete the rows whose value in a column is not above a bound, of one shard if it is given."""

    def rewrite(self, transform: Callable[[pa.RecordBatch], pa.RecordBatch]) -> None:
        """Replace all rows by what a function returns for them, some at a time, in one commit."""

    def compact(self) -> int:
        """Put small files together; return how many there are fewer. Raises `SchemaError` if the library cannot."""

    def vacuum(self, keep: timedelta) -> int:
        """Remove files that no version needs which is younger than `keep`; return how many. Raises `SchemaError` as above."""


class NativeLake(Protocol):
    """A lake of native tables."""

    @property
    def using(self) -> str:
        """The kind of lake: `delta` or `iceberg`."""

    @property
    def name(self) -> str:
        """What the lake is called in messages, the same as on Spark: a state is bound to it."""

    @property
    def is_stepwise(self) -> bool:
        """Whether each step on the columns of a table is a commit of its own, so that a kill may leave some of them."""

    @property
    def is_here(self) -> bool:
        """Whether the tables are in files of this machine, so that a look at one is no request."""

    def table(self, name: TableName, suffix: str = "") -> NativeTable:
        """Return a lake table of a table; `suffix` is one of `SUFFIXES`."""

    def tables(self) -> Iterator[NativeTable]:
        """Yield all tables of the lake."""

    def properties(self, names: Sequence[str]) -> Mapping[str, str]:
        """Return what a table with columns of such names is created with."""

    def properties_for(self, steps: Sequence[Step]) -> Mapping[str, str]:
        """Return the properties that a table needs for steps."""

    def is_rewritten(self, properties: Mapping[str, str]) -> bool:
        """Return whether steps on the columns of a table with some properties write its files anew."""

    def shape_of(self, table: TableName) -> TableShape:
        """Return what is said of the shape of a table."""

    def can_widen(self, old: str, new: str) -> bool:
        """Return whether a column of a type can become one of another, as Spark spells types."""

    def make_room(self, table: TableName) -> None:
        """Prepare the place of a table, as Spark's sinks do. Raises `SchemaError` as `check_separate` does."""

    def check(self) -> None:
        """Check that the lake can be reached and written to. Raises `FileError` or `JobError`."""


def prepare(
    lake: NativeLake,
    table: NativeTable,
    versions: Sequence[TableSchema],
    own: Mapping[str, str],
    behavior: str,
    properties: Mapping[str, str],
    excluded: Collection[str] = (),
) -> list[Step | str]:
    """Create a lake table, or change it so that it has the columns of the last version; return the steps that were taken.

    A new table has `properties` besides the lake's, and any table has those of its shape; those that were set are told
    behind the steps. Statements of the kinds `excluded` are not followed. Raises `SchemaError` for a step that the
    behavior or the lake does not allow, before the first step is taken.
    """
    schema, known = versions[-1], table.properties()
    shape, is_rewritten = lake.shape_of(schema.table), lake.is_rewritten(known or {})
    wanted = wanted_columns(schema, is_plain=is_rewritten)
    # What cannot be is told before anything is done.
    shape.order_in(schema.table.table, wanted, lake.using)
    if known is None:
        usual = lake.properties([one.name for one in wanted])
        parts = shape.partitions_in(schema.table.table, wanted, lake.using)
        table.create(wanted, own, {**usual, **shape.properties_in(lake.using), **properties}, parts)
        known = table.properties() or {}
    if behavior in (EVOLVE, TRY_EVOLVE) and ADOPTED in known:
        # The table begins anew for the pipeline that adopted it, and may yet get columns that the lake table has.
        behavior = LENIENT
    spelled, present = plain_column if is_rewritten else str, table.columns()
    dropped = dropped_columns(versions, present)
    steps = steps_to(schema.table.table, present, wanted, behavior, lake.can_widen, excluded, spelled, dropped)
    kept = columns_behind(present, [step for step in steps if step.kind != DROP])
    held = with_former_names([column for _, column in kept], wanted)
    # Before steps are taken: rows that stand get their values in new columns behind them. Of a dropped column they say more.
    parting = shape.partitions_in(schema.table.table, held, lake.using)
    _check_parting(lake, schema, parting, [column for _, column in columns_behind(present, steps)])
    names = _checked_names(table, own)
    steps = [*in_front(steps, names), *change_column_steps(own, names)]
    needed = lake.properties_for([one for one in steps if one.kind == ADD] if is_rewritten else steps)
    off = {name: value for name, value in needed.items() if known.get(name, "none") in ("none", "false")}
    left = shape.properties_left(known, lake.using)
    table.alter(steps, off | left)
    told = property_steps(left)
    if parting:
        told += table.repartition(parting)
    return [*steps, *told, *_sort(lake, table, schema, wanted)]


def _checked_names(table: NativeTable, own: Mapping[str, str]) -> list[str]:
    """Return the names of the columns of a lake table.

    Raises `SchemaError` for a current state that somebody has changed so that it has not all columns of a state.
    """
    types = {one.name: one.type for one in table.schema()}
    for name, declared in STATE.items() if OLDER in own else ():
        is_as_created = pa.types.is_binary if declared == "binary" else pa.types.is_map
        if name not in types or not is_as_created(types[name]):
            what = f"column {name}" if name not in types else f"column {name} of type {declared}, but {types[name]}"
            raise SchemaError(
                table.identifier,
                f"has no {what}, as a current state needs it: put it back, or remove the lake table, reset the table and"
                " let its source send it again",
            )
    return list(types)


def _check_parting(
    lake: NativeLake, schema: TableSchema, parting: Sequence[Partition], behind: Sequence[LakeColumn]
) -> None:
    """Raise `SchemaError` for a column that is to partition a table of Iceberg, and is not among those behind all steps.

    A table of Delta Lake keeps its partitions.
    """
    names = {column.name for column in behind}
    gone = next((one.column for one in parting if one.column not in names), None)
    if gone is not None and lake.using == ICEBERG:
        raise SchemaError(schema.table.table, f"partition in [[table]] names {shown(gone)}, which is dropped")


def _sort(lake: NativeLake, table: NativeTable, schema: TableSchema, wanted: Sequence[LakeColumn]) -> list[str]:
    """Give a lake table that has the columns of a version the sort order of its shape; return what is said of it."""
    shape = lake.shape_of(schema.table)
    if shape.cluster is None:
        return []
    order = shape.order_in(schema.table.table, with_former_names(table.columns(), wanted), lake.using)
    return [] if order is None else table.sort_by(order)


def fill(table: NativeTable, schema: TableSchema, before: int, kept: Collection[str] = frozenset()) -> None:
    """Give the rows of versions up to `before` what the newest version reads in their payloads.

    Columns that came since get their default, and columns that took over from retired ones get the values of these,
    where that is exact, and are as old in each row. Rows that are merged later have both already. Columns of the lake
    that are in `kept` are left alone.
    """
    present, record = table.columns(), schema.record
    named = [(one.field, same_column(present, one)) for one in wanted_columns(schema)]
    names = {field: found.name for field, found in named if found is not None}
    held = {field: name for field, name in names.items() if name not in kept}
    stated = {field["name"] for field in record["fields"] if field.get("default") is not None}
    added = [one.field for one in schema.all_columns if one.since > before and one.field in stated.intersection(held)]
    is_retired = any(one.until is not None and one.until >= before for one in schema.all_columns)
    is_inherited = is_retired and bool(heirs((field["name"], field) for field in record["fields"]))
    if not added and not is_inherited:
        return
    defaults = {held[field]: value for field, value in _defaults(schema).items() if field in added}
    inherited = inherited_names(schema, held)

    def transform(rows: pa.RecordBatch) -> pa.RecordBatch:
        values = dict(zip(rows.schema.names, rows.columns, strict=True))
        for name, default in defaults.items():
            column = default.take(pa.repeat(0, rows.num_rows))
            values[name] = in_lake(column, rows.schema.field(name).type, name)
        if is_inherited:
            values |= {name: value for name, value in _inherited(values, schema, names).items() if name not in kept}
            values[OLDER] = _inherited_orders(values[OLDER], inherited)
        return pa.RecordBatch.from_arrays(list(values.values()), schema=rows.schema)

    table.rewrite(transform)


def _defaults(schema: TableSchema) -> dict[str, pa.Array]:
    """Return the values that a payload of no column has under a version, each in an array, by fields."""
    record = schema.record
    nothing: dict[str, Any] = {name: record[name] for name in ("type", "name", "namespace") if name in record}
    payloads = VersionPayloads([json.dumps(nothing | {"fields": []})], schema.row.json)
    column = payloads.translate(pa.array([0], pa.int32()), pa.array([b""]))
    values = parts(read_batch(column, reading_for(schema, ROW)))
    return dict(zip([field["name"] for field in record["fields"]], values.values(), strict=True))


def _inherited(values: Mapping[str, pa.Array], schema: TableSchema, names: Mapping[str, str]) -> dict[str, pa.Array]:
    """Return the columns of rows, those that took over from retired ones with the values of these.

    `names` are those of the lake's columns, by their fields.
    """
    fields = [field for field in schema.record["fields"] if names.get(field["name"]) in values]
    columns = [values[names[field["name"]]] for field in fields]
    filled = fill_older_values(columns, fields)
    return {names[field["name"]]: column for field, column in zip(fields, filled, strict=True)}


def _inherited_orders(older: pa.Array, inherited: Mapping[str, tuple[Sequence[str], Sequence[str]]]) -> pa.Array:
    """Return `_cdc_older` of rows, with the orders of columns that took over; `inherited` is that of `inherited_names`."""
    if older.null_count == len(older):
        return older
    rows = older.to_pylist()
    names = {name: own for own, others in inherited.values() for name in others}
    for orders in filter(None, rows):
        known = {name for name, _ in orders}
        for name, order in tuple(orders):
            own = names.get(name)
            if own is not None and known.isdisjoint(own):
                orders.append((own[0], order))
                known.add(own[0])
    return pa.array(rows, older.type)


_NOTHING: Final = b""


class RowParts(NamedTuple):
    """Rows that stand, with all columns of their table, and what is a floor to each: only what is above it counts."""

    rows: pa.Table
    floors: pa.Array


def keys_with_older_values(rows: pa.Table, floor: bytes) -> pa.Array:
    """Return the keys of rows, given with their older values, of which one is not above a floor."""
    rows = rows.filter(rows.column(OLDER).is_valid())
    maps = binary(rows.column(OLDER))
    older = pa.ListArray.from_arrays(maps.offsets, maps.items)
    orders = older.flatten()
    is_below = pc.and_(pc.less_equal(orders, pa.scalar(floor, pa.binary())), pc.not_equal(orders, pa.scalar(_NOTHING)))
    return binary(rows.column(KEY)).take(pc.unique(pc.list_parent_indices(older).filter(is_below)))


class StatedColumn(NamedTuple):
    """How it is known which changes state a column of the lake, and since when a row has its value."""

    # What each version calls it, by their numbers; None for one that was dropped, which no change states.
    called: Mapping[int, str] | None
    # What `_cdc_older` may call it, as `lake_columns.older_names` has it.
    names: tuple[str, ...]


def combine(
    held: RowParts, changes: pa.Table, columns: Mapping[str, StatedColumn], texts: TextNames
) -> tuple[pa.Array, pa.Table]:
    """Return the keys of held rows that change or go, and the rows that there are then.

    `changes` have the lake's columns, key, order and texts, what they lack, and their version, and all are above all
    floors; `columns` are all of the lake's, but those that say this of rows. The rows have all columns of `held`. `texts`
    returns what `lake_columns.text_names` does, and is called if any row has a text.
    """
    combination = _Combination(held, changes, columns, texts)
    return combination.replaced, combination.rows


class _Combination:
    def __init__(
        self, held: RowParts, changes: pa.Table, columns: Mapping[str, StatedColumn], texts: TextNames
    ) -> None:
        self._held, self._changes, self._columns, self._text_names = held, changes, columns, texts
        self._held_count = len(held.rows)
        self._older = binary(held.rows.column(OLDER))
        self._held_orders = binary(held.rows.column(ORDER))
        self._orders = pa.concat_arrays([self._held_orders, binary(changes.column(ORDER))])
        every = pc.unique(pa.concat_arrays([self._orders, self._older.items, held.floors, pa.array([_NOTHING])]))
        # Number 0 is that of nothing, which is before all.
        self._ranked = every.take(pc.sort_indices(every))
        keys = pa.concat_arrays([binary(held.rows.column(KEY)), binary(changes.column(KEY))])
        coded = keys.dictionary_encode()
        self._keys, self._codes = coded.dictionary, coded.indices
        self._places = places(len(keys)).cast(pa.int64())

    def _rank(self, orders: pa.Array) -> pa.Array:
        return pc.index_in(orders, self._ranked).cast(pa.int64())

    @cached_property
    def _floors(self) -> pa.Array:
        return self._rank(self._held.floors)

    def _above(self, ranks: pa.Array) -> pa.Array:
        """Return the ranks of orders of held rows, 0 of those that are not above their floors."""
        return pc.if_else(pc.greater(ranks, self._floors), ranks, 0)

    @cached_property
    def _change_ranks(self) -> pa.Array:
        return self._rank(binary(self._changes.column(ORDER)))

    @cached_property
    def _held_row_ranks(self) -> pa.Array:
        """The ranks of the held rows, 0 of those that are gone."""
        return self._above(self._rank(self._held_orders))

    @cached_property
    def _older_ranks(self) -> dict[str, pa.Array]:
        """For each column that is not as old as some held row: the rank of its order in each held row, null if as old."""
        if self._older.null_count == len(self._older):
            return {}
        named = set(pc.unique(self._older.keys).to_pylist())
        found = {
            name: [pc.map_lookup(self._older, pa.scalar(one), "first") for one in column.names if one in named]
            for name, column in self._columns.items()
        }
        return {name: self._rank(pc.coalesce(*orders)) for name, orders in found.items() if orders}

    def _since(self, name: str) -> pa.Array:
        """Return for each held row and each change the rank of the order since which it states a column, 0 for never."""
        own, older = self._held_row_ranks, self._older_ranks.get(name)
        if older is not None:
            own = pc.if_else(older.is_valid(), self._above(older), own)
        lacking = self._lacking.get(name)
        return pa.concat_arrays(
            [own, self._change_ranks if lacking is None else pc.if_else(lacking, 0, self._change_ranks)]
        )

    @cached_property
    def _lacked(self) -> tuple[pa.Array, pa.Array]:
        """What changes lack, each with its change: the place of the change, and the name with the version's number."""
        lists = binary(self._changes.column(ABSENT))
        parents = pc.list_parent_indices(lists)
        numbers = binary(self._changes.column(VERSION)).take(parents).cast(pa.string())
        return parents, pc.binary_join_element_wise(numbers, lists.flatten(), " ")

    @cached_property
    def _lacking(self) -> dict[str, pa.Array]:
        """For each column that changes lack, which of them; a change has those that its version does not know yet."""
        parents, lacked = self._lacked
        count, found = len(self._changes), {}
        for name, column in self._columns.items():
            if column.called is None:
                found[name] = pa.repeat(True, count)  # noqa: FBT003  the value that is repeated
                continue
            called = pa.array([f"{number} {own}" for number, own in column.called.items()], pa.string())
            lacking = pc.unique(parents.filter(pc.is_in(lacked, called)))
            if len(lacking):
                found[name] = pc.is_in(places(count), lacking.cast(pa.uint64()))
        return found

    @cached_property
    def _apart(self) -> set[str]:
        """The columns that may be of another change than their row."""
        return {*self._older_ranks, *self._lacking}

    @cached_property
    def _groups(self) -> dict[str, pa.Array]:
        """For each key: the highest of all ranks, and of those of each column, each with the place that has it."""
        count = max(len(self._places), 1)
        columns = {"": pa.concat_arrays([self._held_row_ranks, self._change_ranks])}
        columns |= {name: self._since(name) for name in self._apart}
        # A held row comes before a change of the same order, which is the same change.
        reversed_places = pc.subtract(count - 1, self._places)
        combined = {name: pc.add(pc.multiply(ranks, count), reversed_places) for name, ranks in columns.items()}
        numbers = list(map(str, range(len(combined))))
        table = pa.table([self._codes, *combined.values()], names=["code", *numbers])
        found = table.group_by("code").aggregate([(number, "max") for number in numbers])
        groups = {"code": binary(found.column("code"))}
        for name, number in zip(combined, numbers, strict=True):
            highest = binary(found.column(f"{number}_max"))
            rank = pc.divide(highest, count)
            groups[f"rank {name}"] = rank
            groups[f"place {name}"] = pc.subtract(count - 1, pc.subtract(highest, pc.multiply(rank, count)))
        return groups

    @cached_property
    def replaced(self) -> pa.Array:
        """The keys of held rows that change or go."""
        held_codes, codes = self._codes.slice(0, self._held_count), self._codes.slice(self._held_count)
        is_gone = pc.equal(self._held_row_ranks, 0)
        is_less = [
            pc.and_(pc.greater(ranks, 0), pc.equal(self._above(ranks), 0)) for ranks in self._older_ranks.values()
        ]
        changed = pc.is_in(held_codes, pc.unique(codes))
        for one in (is_gone, *is_less):
            changed = pc.or_(changed, one.fill_null(False))  # noqa: FBT003
        return self._keys.take(held_codes.filter(changed))

    @cached_property
    def rows(self) -> pa.Table:
        """The rows of keys that have a change, or whose held row changes and stays."""
        groups = self._groups
        changed = pa.concat_arrays([self.replaced, binary(self._changes.column(KEY))])
        is_wanted = pc.and_(
            pc.is_in(groups["code"], pc.index_in(pc.unique(changed), self._keys)), pc.greater(groups["rank "], 0)
        )
        groups = {name: values.filter(is_wanted) for name, values in groups.items()}
        count, newest = len(groups["code"]), groups["rank "]
        columns = {}
        for name in self._columns:
            columns[name] = self._both(name).take(self._place(groups, name))
        columns[KEY] = self._keys.take(groups["code"])
        columns[ORDER] = self._ranked.take(newest)
        since = {name: groups[f"rank {name}"] for name in self._columns if name in self._apart}
        older = [
            (self._columns[name].names[0], pc.not_equal(ranks, newest), self._ranked.take(ranks))
            for name, ranks in since.items()
        ]
        columns[OLDER] = _maps(count, older, pa.binary())
        columns[UNPARSED] = self._texts(groups, count)
        return pa.table({name: columns[name] for name in self._held.rows.column_names})

    def _both(self, name: str) -> pa.Array:
        held = binary(self._held.rows.column(name))
        if name not in self._changes.column_names:
            return pa.concat_arrays([held, pa.nulls(len(self._changes), held.type)])
        return pa.concat_arrays([held, binary(self._changes.column(name))])

    def _place(self, groups: Mapping[str, pa.Array], name: str) -> pa.Array:
        """Return the place of the row or change that has the value of a column of each key, null if none has."""
        own = name if name in self._apart else ""
        return pc.if_else(pc.greater(groups[f"rank {own}"], 0), groups[f"place {own}"], None)

    def _texts(self, groups: Mapping[str, pa.Array], count: int) -> pa.Array:
        texts = [binary(rows.column(UNPARSED)) for rows in (self._held.rows, self._changes)]
        # Arrow tells types of maps apart whose entries are called otherwise.
        every = pa.concat_arrays([one.cast(pa.map_(pa.string(), pa.string())) for one in texts])
        named = set(pc.unique(every.keys).to_pylist()) if every.null_count < len(every) else set()
        found = []
        for name, names in self._text_names().items() if named else ():
            for one in named.intersection(names):
                values = pc.map_lookup(every, pa.scalar(one), "first").take(self._place(groups, name))
                found.append((one, values.is_valid(), values))
        return _maps(count, found, pa.string())


def _maps(count: int, columns: Sequence[tuple[str, pa.Array, pa.Array]], kind: pa.DataType) -> pa.Array:
    """Return maps, of each row those columns for which it is in the mask; null where there are none.

    Each column has its name, its mask and its values.
    """
    used = [(name, mask, values) for name, mask, values in columns if pc.any(mask).as_py()]
    result = pa.map_(pa.string(), kind)
    if not used:
        return pa.nulls(count, result)
    rows = pa.concat_arrays([pc.indices_nonzero(mask) for _, mask, _ in used])
    names = pa.concat_arrays([pa.repeat(name, pc.sum(mask).as_py() or 0) for name, mask, _ in used])
    values = pa.concat_arrays([values.filter(mask) for _, mask, values in used])
    in_order = pc.sort_indices(rows)
    sizes = pa.repeat(pa.scalar(0, pa.int32()), count)
    for _, mask, _ in used:
        sizes = pc.add(sizes, mask.cast(pa.int32()))
    ends = pa.concat_arrays([pa.array([0], pa.int32()), pc.cumulative_sum(sizes)])
    maps = pa.MapArray.from_arrays(ends, names.take(in_order), values.take(in_order))
    return blank(maps, pc.equal(sizes, 0))
