"""The current state of a table in a native lake: the rules of `cdcavro.lake.merge` in Arrow.

Of each key, only the payload of the last change is read. Where changes lack columns, `native_columns` puts rows
together from all that state them.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final
from uuid import uuid4

import pyarrow as pa
import pyarrow.compute as pc

from cdcavro.lake import sql_statements as sql
from cdcavro.lake.evolution import BEHIND, IGNORE, LENIENT
from cdcavro.lake.lake_columns import held_columns, left_columns, older_names, stated_names, text_names
from cdcavro.lake.lakes import CURRENT, FORM, FORMS, adopted_columns, check_form, name_property
from cdcavro.lake.merge import Origin, first_keyed, late_version, progress_of, properties_behind
from cdcavro.lake.sql_statements import (
    AT,
    DELETED,
    KEY,
    OLDER,
    ORDER,
    STATE,
    UNPARSED,
    change_types,
    held_change_columns,
)
from cdcavro.lake.typed_rows import (
    CREATED,
    DELETE,
    DELETES_TABLE,
    DROP,
    GUARDED,
    PARTIAL,
    TRUNCATE,
    UPSERTS,
    RowFacts,
    first_properties,
    stated_properties,
)
from cdcavro.sync.native.native_columns import RowParts, StatedColumn, combine, fill, keys_with_older_values, prepare
from cdcavro.sync.native.row_images import (
    ImageReader,
    absent_of,
    binary,
    change_values,
    last_of_each,
    lengths,
    look_up,
    parts,
    read_envelopes,
    row_parts,
    texts_of,
)
from cdcavro.table.table_schema import MISSING

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from cdcavro.lake.evolution import LakeColumn, Step
    from cdcavro.sync.native.native_columns import NativeLake, NativeTable
    from cdcavro.table.ddl.steps import TableName
    from cdcavro.table.table_schema import TableSchema

_NOTHING: Final = b""


@dataclass
class NativeCache:
    """What is known of one lake table without looking at it. It belongs to the only writer of the table."""

    # None if they are not known.
    properties: dict[str, str] | None = None
    # Whether the table is surely empty, and whether its table of deletes is.
    is_empty: bool = False
    has_no_deletes: bool = False

    def look(self, table: NativeTable) -> dict[str, str]:
        """Return the properties of a lake table, and know them from now on."""
        self.properties = dict(table.properties() or {})
        return self.properties

    def put(self, table: NativeTable, properties: Mapping[str, str]) -> None:
        """Set those properties of a lake table that it does not have yet."""
        known = self.look(table) if self.properties is None else self.properties
        missing = dict(properties.items() - known.items())
        if missing:
            table.alter([], missing)
        known.update(properties)


@dataclass(frozen=True)
class NativeState:
    """The current state of a table in a native lake.

    * `lake` (`NativeLake`)
    * `table` (TableName): what the table is called in the lake.
    * `behavior` (str): how the lake table follows the table's statements, as in `cdcavro.lake.evolution`.
    * `guard` (timedelta): how long deletes are kept against late changes.
    * `known` (`NativeCache`): what is known of the lake table from call to call, if nobody else writes it; one that is
      made anew for each call looks.
    * `change_columns` (tuple of str): the columns about changes that are filled, and added to the lake table, by the
      words of `sql_statements.CHANGE_COLUMNS`.
    * `excluded` (frozenset[str]): the kinds of statements, of `evolution.STATEMENTS`, that the lake table does not follow.
    * `origin` (Origin or None): what tells the table from others that had its name; by default they are not told apart.
    """

    lake: NativeLake
    table: TableName
    behavior: str = LENIENT
    guard: timedelta = timedelta(days=7)
    known: NativeCache = field(default_factory=NativeCache)
    change_columns: tuple[str, ...] = ()
    excluded: frozenset[str] = frozenset()
    origin: Origin | None = None
    form = CURRENT

    @property
    def identifier(self) -> str:
        """The name of the lake table in messages."""
        return self._state.identifier

    @property
    def _state(self) -> NativeTable:
        return self.lake.table(self.table)

    @property
    def _deletes(self) -> NativeTable:
        return self.lake.table(self.table, DELETES_TABLE)

    def prepare(self, versions: Sequence[TableSchema], *, facts: RowFacts | None = None) -> list[Step | str]:
        """Make the lake table have the columns of the newest version; return what was done to it.

        `facts` (`RowFacts` or None) is what is known of the batch that is merged next: a table that is created then
        says at once what it is to say of it. Raises `SchemaError` for a table without a primary key, which has a
        changelog only, for a key that does not find older rows, for a lake table of another form, and for a step that
        the behavior or the lake does not allow.
        """
        version, own, table = versions[-1].version, uuid4().hex, self._state
        own_properties = table.properties()
        held = own_properties or {FORM: self.form}
        progress = progress_of(held, version, self.origin)
        keyed = first_keyed(self.table.table, versions, facts, held, progress, is_new=own_properties is None)
        self.lake.make_room(self.table)
        check_form(self.table.table, self.form, held)
        stated = self._first_properties(facts)
        if GUARDED in stated or self.form != CURRENT:
            # Whoever reads that there is a table of deletes finds it.
            self._create_deletes()
        filled = properties_behind(progress, version, self.origin, held, keyed)
        first = {**filled, **name_property(versions[-1].table), CREATED: own, **stated}
        columns = {**FORMS[self.form], **change_types(self.change_columns)}
        behavior = progress.behavior(self.behavior, self.origin)
        if behavior == BEHIND and progress.keyed is None and self.form == CURRENT:
            # None of the rows of a table that was dropped is above what the lake table has.
            behavior = IGNORE
        steps = prepare(self.lake, table, versions, columns, behavior, first, self.excluded)
        properties = self.known.look(table)
        self.known.is_empty = properties.get(CREATED) == own
        before = progress_of(properties, version, self.origin).filled
        if before < version:
            fill(table, versions[-1], before, adopted_columns(properties) or ())
        # A table that was made again begins with its first version.
        self.known.put(table, filled)
        return steps

    def _first_properties(self, facts: RowFacts | None) -> dict[str, str]:
        """Return what the lake table says at once if it is created; `facts` are as in `prepare`."""
        return first_properties(facts)

    def merge(
        self,
        rows: pa.Table,
        versions: Sequence[TableSchema],
        *,
        facts: RowFacts | None = None,
        now: datetime | None = None,
    ) -> None:
        """Merge a batch of the table's typed rows; nothing changes if it is merged again. Nothing else may write.

        `rows` has the columns version, operation, order, key and payload of `placing.ROWS`, in any order; `versions`
        are the table's, for which the lake table was prepared; `now` is the time of the batch, and `facts` (`RowFacts`
        or None) what is known of it already. If the lake table is known to have just been created for them, the rows
        are appended. Raises `OrderError`, and merges nothing, if different things order the changes, and `SchemaError`
        for a row without a key; and as `to_arrow` does.
        """
        facts = facts_of(rows, versions) if facts is None else facts
        present = self._state.columns()
        has_left = bool(left_columns(versions, present))
        for part, read in row_parts(rows, versions, present):
            self._merge_part(part, read, present, facts, now, has_left=has_left)

    def _merge_part(
        self,
        rows: pa.Table,
        versions: Sequence[TableSchema],
        present: Sequence[LakeColumn],
        facts: RowFacts,
        now: datetime | None,
        *,
        has_left: bool,
    ) -> None:
        """Merge rows of a batch that are read under the last of some versions; `facts` are those of the batch.

        `has_left` says whether the lake table has columns that the newest version of all has not.
        """
        known, table = self.known, self._state
        properties = known.properties or known.look(table)
        stated = stated_properties(self.table.table, facts, properties)
        self._check_versions(rows, bytes.fromhex(stated.get(sql.FLOOR, "")), properties, versions)
        if facts.deletes and GUARDED not in properties:
            self._create_deletes()
        known.put(table, stated)
        is_empty, known.is_empty = known.is_empty, False
        floor = bytes.fromhex(stated.get(sql.FLOOR, ""))
        if facts.floor is not None and not is_empty:
            table.delete_up_to(ORDER, floor)
        batch = _KeyedRows(rows, floor)
        deletes = self._put_deletes(batch, now or datetime.now(UTC)) if GUARDED in stated else _Deletes()
        is_partial = PARTIAL in stated
        if is_partial or has_left:
            flags = {"is_partial": is_partial, "has_floor": facts.floor is not None, "is_empty": is_empty}
            self._replace(batch, deletes, versions, present, **flags)
        else:
            self._merge(batch, deletes, versions, present, is_empty=is_empty)

    def _check_versions(
        self, rows: pa.Table, floor: bytes, properties: Mapping[str, str], versions: Sequence[TableSchema]
    ) -> None:
        """Raise `SchemaError` for rows above a floor that are of a version before the first which the state takes."""
        first = progress_of(properties, versions[-1].version, self.origin).keyed or 1
        if first > 1:
            above = rows.filter(pc.greater(binary(rows.column("order")), pa.scalar(floor)))
            least = pc.min(above.column("version")).as_py()
            if least is not None and least < first:
                raise late_version(self.table.table, least)

    def forget_deletes(self, *, now: datetime | None = None) -> None:
        """Forget the deletes whose guard is over at a time, by default now."""
        if GUARDED in (self.known.properties or self.known.look(self._state)):
            self._deletes.delete_up_to(AT, (now or datetime.now(UTC)) - self.guard)

    def _create_deletes(self) -> None:
        """Create the table of deletes unless there is one."""
        table = self._deletes
        if table.properties() is None:
            table.create([], sql.DELETES, self.lake.properties(list(sql.DELETES)))
            self.known.has_no_deletes = True

    def _put_deletes(self, batch: _KeyedRows, now: datetime) -> _Deletes:
        """Append the last deletes of a batch, and return those of its keys that stand."""
        is_new, self.known.has_no_deletes = self.known.has_no_deletes, False
        came, table = batch.deletes, self._deletes
        keys, orders = came
        if not is_new:
            looked_for = pc.unique(pa.concat_arrays([batch.upserts[0], keys]))
            held = table.find(looked_for, [KEY, ORDER]) if len(looked_for) else None
            if held is not None and len(held):
                keys, orders = _last(
                    pa.concat_arrays([binary(held.column(KEY)), keys]),
                    pa.concat_arrays([binary(held.column(ORDER)), orders]),
                )
                known = _last(binary(held.column(KEY)), binary(held.column(ORDER)))
                is_newer = pc.greater(came[1], look_up(came[0], *known).fill_null(_NOTHING))
                came = came[0].filter(is_newer), came[1].filter(is_newer)
        if len(came[0]):
            moments = pa.repeat(pa.scalar(now, pa.timestamp("us", "UTC")), len(came[0]))
            table.append(pa.table(dict(zip(sql.DELETES, [*came, moments], strict=True))))
        return _Deletes(keys, orders, batch.deletes[0])

    def _merge(
        self,
        batch: _KeyedRows,
        deletes: _Deletes,
        versions: Sequence[TableSchema],
        present: Sequence[LakeColumn],
        *,
        is_empty: bool,
    ) -> None:
        """Merge the last change of each key."""
        keys, orders = batch.upserts
        last = last_of_each(keys, orders)
        keys, orders = keys.take(last), orders.take(last)
        is_alive = deletes.are_above(keys, orders)
        keys, orders, last = keys.filter(is_alive), orders.filter(is_alive), last.filter(is_alive)
        table, pairs = self._state, held_columns(versions[-1], present)
        kinds = table.schema()
        reader = ImageReader(versions[-1], pairs, {one.name: one.type for one in kinds})
        about = held_change_columns(kinds.names)
        read = []
        for _, envelopes in read_envelopes(batch.rows, batch.places.take(last), versions):
            image, changed = envelopes.column("after"), change_values(envelopes, about, self.change_columns)
            read.append(pa.table({**reader.columns(image), **changed, UNPARSED: texts_of(image)}))
        names = [held.name for _, held in pairs] + [one.name for one in about.values()]
        source = pa.concat_tables(read) if read else pa.table({})
        columns = {name: source.column(name) for name in source.column_names}
        found = with_types({**columns, KEY: keys, ORDER: orders}, kinds, len(keys))
        if is_empty:
            if len(found):
                table.append(found)
        else:
            found = found.select([*names, *STATE]).append_column(DELETED, deletes.of_batch(keys))
            gone = deletes.without(keys)
            if len(gone):
                found = pa.concat_tables([found, gone], promote_options="default")
            if len(found):
                table.merge(found, names)

    def _replace(
        self,
        batch: _KeyedRows,
        deletes: _Deletes,
        versions: Sequence[TableSchema],
        present: Sequence[LakeColumn],
        *,
        is_partial: bool,
        is_empty: bool,
        has_floor: bool,
    ) -> None:
        """Put the last value of each column into the rows of a batch's keys; with `is_partial`, changes may lack columns."""
        alive = batch.upserts_above(deletes, is_last=not is_partial)
        table, pairs = self._state, held_columns(versions[-1], present)
        kinds = table.schema()
        about = held_change_columns(kinds.names)
        reader = ImageReader(versions[-1], pairs, {one.name: one.type for one in kinds})

        def read(envelopes: pa.RecordBatch) -> dict[str, pa.Array]:
            changed = change_values(envelopes, about, self.change_columns)
            return {**reader.columns(envelopes.column("after")), **changed}

        changes = _changes(batch, alive, versions, read)
        touched = pc.unique(pa.concat_arrays([batch.upserts[0].take(alive), deletes.batch]))
        if has_floor and not is_empty:
            below = keys_with_older_values(table.read([KEY, OLDER], [OLDER]), batch.floor)
            touched = pc.unique(pa.concat_arrays([touched, below]))
        held = kinds.empty_table() if is_empty or not len(touched) else table.find(touched)
        floors = pc.max_element_wise(
            deletes.standing(binary(held.column(KEY))).fill_null(_NOTHING), pa.scalar(batch.floor, pa.binary())
        )
        columns = _stated_columns(versions, present, [one.name for one in about.values()])
        parts = RowParts(held.cast(kinds), floors)
        replaced, found = combine(parts, changes, columns, lambda: text_names(versions, present))
        found = with_types({name: found.column(name) for name in found.column_names}, kinds, len(found))
        if is_empty and len(found):
            table.append(found)
        elif len(replaced) or len(found):
            table.replace(pc.unique(pa.concat_arrays([replaced, binary(found.column(KEY))])), found)


class _KeyedRows:
    """The rows of a batch above a floor that upsert a key, and the last deletes of its keys."""

    def __init__(self, rows: pa.Table, floor: bytes) -> None:
        self.rows, self.floor = rows, floor
        operation, order, key = (binary(rows.column(name)) for name in ("operation", "order", "key"))
        is_upsert = pc.is_in(operation, pa.array(UPSERTS))
        if floor:
            is_upsert = pc.and_(is_upsert, pc.greater(order, pa.scalar(floor, pa.binary())))
        # The places of the upserts among all rows.
        self.places = pc.indices_nonzero(is_upsert)
        is_whole = len(self.places) == len(rows)
        # Keys and orders of the upserts, and of the last delete of each key.
        self.upserts = (key, order) if is_whole else (key.take(self.places), order.take(self.places))
        is_delete = pc.equal(operation, DELETE)
        self.deletes = _last(key.filter(is_delete), order.filter(is_delete))

    def upserts_above(self, deletes: _Deletes, *, is_last: bool) -> pa.Array:
        """Return the places of the upserts above the last deletes, with `is_last` of the last one of each key."""
        keys, orders = self.upserts
        above = pc.indices_nonzero(deletes.are_above(keys, orders))
        return above.take(last_of_each(keys.take(above), orders.take(above))) if is_last else above


class _Deletes:
    """The last deletes of keys that stand, and the keys of which a batch has deletes."""

    def __init__(
        self, keys: pa.Array | None = None, orders: pa.Array | None = None, batch: pa.Array | None = None
    ) -> None:
        none = pa.array([], pa.binary())
        self._keys = none if keys is None else keys
        self._orders = none if orders is None else orders
        self.batch = none if batch is None else batch

    def standing(self, keys: pa.Array) -> pa.Array:
        """Return the order of the last delete of each key, null if none stands."""
        return look_up(keys, self._keys, self._orders)

    def are_above(self, keys: pa.Array, orders: pa.Array) -> pa.Array:
        """Return whether the change of each key, with its order, is above the last delete."""
        if not len(self._keys):
            return pa.repeat(True, len(keys))  # noqa: FBT003  the value that is repeated
        return pc.greater(orders, self.standing(keys).fill_null(_NOTHING))

    def of_batch(self, keys: pa.Array) -> pa.Array:
        """Return the order of the last delete of each key of which the batch has one, otherwise null."""
        return look_up(keys, self.batch, self.standing(self.batch))

    def without(self, keys: pa.Array) -> pa.Table:
        """Return the deletes of the batch, as `merge_state` takes them, of keys that are not among others."""
        left = self.batch.filter(pc.invert(pc.is_in(self.batch, keys)))
        return pa.table({KEY: left, DELETED: self.standing(left)})


def _last(keys: pa.Array, orders: pa.Array) -> tuple[pa.Array, pa.Array]:
    """Return each key once, with its highest order."""
    last = last_of_each(keys, orders)
    return keys.take(last), orders.take(last)


def _changes(
    batch: _KeyedRows,
    chosen: pa.Array,
    versions: Sequence[TableSchema],
    columns: Callable[[pa.RecordBatch], dict[str, pa.Array]],
) -> pa.Table:
    """Return changes of rows, as `native_columns.combine` takes them; `chosen` are their places among the upserts.

    `columns` returns the lake's columns of envelopes.
    """
    keys, orders = (one.take(chosen) for one in batch.upserts)
    read = []
    for places, envelopes in read_envelopes(batch.rows, batch.places.take(chosen), versions):
        image = envelopes.column("after")
        numbers = binary(batch.rows.column("version")).take(places)
        own = {UNPARSED: texts_of(image), sql.ABSENT: absent_of(image), sql.VERSION: numbers}
        read.append(pa.table({**columns(envelopes), **own}))
    if not read:
        read = [_no_changes(versions, columns)]
    return pa.concat_tables(read).append_column(KEY, keys).append_column(ORDER, orders)


def _no_changes(versions: Sequence[TableSchema], columns: Callable[[pa.RecordBatch], dict[str, pa.Array]]) -> pa.Table:
    none = pa.table({"version": pa.array([None], pa.int32()), "payload": pa.array([None], pa.binary())})
    ((_, envelopes),) = read_envelopes(none, None, versions)
    image = envelopes.column("after")
    own = {UNPARSED: texts_of(image), sql.ABSENT: absent_of(image), sql.VERSION: none.column("version")}
    return pa.table({**columns(envelopes), **own}).slice(0, 0)


def _stated_columns(
    versions: Sequence[TableSchema], present: Sequence[LakeColumn], others: Sequence[str]
) -> dict[str, StatedColumn]:
    """Return how it is known which changes state columns of a lake table, and `others`, which all changes state."""
    called = stated_names(versions, held_columns(versions[-1], present))
    named = older_names(versions, present)
    columns = {name: StatedColumn(called.get(name), names) for name, names in named.items()}
    return columns | {name: StatedColumn({}, (name,)) for name in others}


def with_types(columns: Mapping[str, Any], kinds: pa.Schema, count: int) -> pa.Table:
    """Return columns as all those of a lake table, in its order; those that are not given are null."""
    arrays = [columns[one.name].cast(one.type) if one.name in columns else pa.nulls(count, one.type) for one in kinds]
    return pa.table(arrays, names=[one.name for one in kinds])


def facts_of(rows: pa.Table, versions: Sequence[TableSchema]) -> RowFacts:
    """Return what a batch holds. Raises as `to_arrow` does."""
    operation, order, key = (binary(rows.column(name)) for name in ("operation", "order", "key"))
    is_end = pc.is_in(operation, pa.array([TRUNCATE, DROP]))
    upserts = pc.indices_nonzero(pc.is_in(operation, pa.array(UPSERTS)))
    partial = 0
    for _, envelopes in read_envelopes(rows.select(["version", "payload"]), upserts, versions):
        absent = parts(envelopes.column("after"))[MISSING]
        partial += pc.sum(pc.greater(lengths(absent), 0)).as_py() or 0
    return RowFacts(
        pc.max(order.filter(is_end)).as_py(),
        pc.sum(pc.equal(operation, DELETE)).as_py() or 0,
        pc.sum(pc.and_(pc.invert(is_end), key.is_null())).as_py() or 0,
        partial,
        pc.unique(pc.binary_slice(order, 0, 2)).to_pylist(),
    )
