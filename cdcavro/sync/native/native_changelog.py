"""The changelog of a table in a native lake: every change of its rows, appended once for each batch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import pyarrow as pa
import pyarrow.compute as pc

from cdcavro.arrow.arrays import blank
from cdcavro.lake import sql_statements as sql
from cdcavro.lake.evolution import LENIENT
from cdcavro.lake.lake_columns import held_columns
from cdcavro.lake.lakes import CHANGE, name_property
from cdcavro.lake.sql_statements import BEFORE, KEY, OPERATION, ORDER
from cdcavro.lake.typed_rows import DROP
from cdcavro.sync.native.native_columns import prepare
from cdcavro.sync.native.row_images import ImageReader, absent_of, binary, places, read_envelopes, texts_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cdcavro.lake.evolution import Step
    from cdcavro.sync.native.native_table import Mark, NativeLake, NativeTable
    from cdcavro.table.ddl.steps import TableName
    from cdcavro.table.table_schema import TableSchema

_CHANGES: Final = "changes"
_UPDATE: Final = "u"


@dataclass(frozen=True)
class NativeChangelog:
    """The changelog of a table in a native lake.

    A change is one row with the columns of the table: as they were before a delete, and as they are after
    anything else. The row before an update, as far as the update states it, is a row of its own before it,
    whose `_cdc_op` is b. The fields are as those of `NativeState`.
    """

    lake: NativeLake
    table: TableName
    behavior: str = LENIENT

    @property
    def identifier(self) -> str:
        """The name of the lake table in messages."""
        return self.lake_table.identifier

    @property
    def lake_table(self) -> NativeTable:
        """The lake table."""
        return self.lake.table(self.table, _CHANGES)

    def prepare(self, versions: Sequence[TableSchema]) -> list[Step]:
        """Make the lake table have the columns of the newest version; return what was done to it.

        Raises `SchemaError`.
        """
        self.lake.make_room(self.table)
        own = name_property(self.table)
        return prepare(self.lake, self.lake_table, versions[-1], sql.CHANGELOG, self.behavior, own)

    def append(self, rows: pa.Table, versions: Sequence[TableSchema], mark: Mark) -> None:
        """Append a batch of the table's typed rows; a batch of a job that is appended again changes nothing.

        `rows` is as in `NativeState.merge`. Raises as `to_arrow` and `NativeTable.append` do.
        """
        table = self.lake_table
        kinds, pairs = table.schema(), held_columns(versions[-1], table.columns())
        reader = ImageReader(versions[-1], pairs, {one.name: one.type for one in kinds})
        payload = blank(rows.column("payload"), pc.equal(rows.column("operation"), DROP))
        read = rows.set_column(rows.schema.get_field_index("payload"), "payload", payload)
        made, start = [], 0
        for _, envelopes in read_envelopes(read, None, versions):
            part = rows.slice(start, envelopes.num_rows)
            made.append(_changes(part, envelopes, reader, kinds))
            start += envelopes.num_rows
        table.append(pa.concat_tables(made) if made else kinds.empty_table(), mark)


def _changes(rows: pa.Table, envelopes: pa.RecordBatch, reader: ImageReader, kinds: pa.Schema) -> pa.Table:
    """Return the rows of a changelog for typed rows, given with their envelopes."""
    images = {name: envelopes.column(name) for name in ("before", "after")}
    operation = binary(rows.column("operation"))
    has_before = pc.and_(pc.equal(operation, _UPDATE), images["before"].is_valid())
    order = _places(images["after"].is_valid(), has_before)
    columns = {name: reader.columns(image) for name, image in images.items()}
    for name, image in images.items():
        columns[name] |= {sql.UNPARSED: texts_of(image), sql.ABSENT: absent_of(image)}
    found = {name: _choose(columns["before"][name], after, order) for name, after in columns["after"].items()}
    own = {ORDER: "order", KEY: "key", sql.VERSION: "version"}
    facts = {name: binary(rows.column(typed)) for name, typed in own.items()} | {OPERATION: operation}
    if order is not None:
        typed, _, is_before = order
        facts = {name: values.take(typed) for name, values in facts.items()}
        facts[OPERATION] = pc.if_else(is_before, BEFORE, facts[OPERATION])
        count = len(typed)
    else:
        count = len(rows)
    found |= facts
    arrays = [found[one.name].cast(one.type) if one.name in found else pa.nulls(count, one.type) for one in kinds]
    return pa.table(arrays, names=[one.name for one in kinds])


def _places(has_after: pa.Array, has_before: pa.Array) -> tuple[pa.Array, pa.Array, pa.Array] | None:
    """Return how changes become rows; None if each becomes one, of its image after it.

    Of each row: the place of its change, that of its image among all images before and then all after changes, and
    whether it is the row before an update.
    """
    if pc.all(has_after).as_py() and not pc.any(has_before).as_py():
        return None
    count = len(has_after)
    every = places(count)
    befores = every.filter(has_before)
    own = pc.if_else(has_after, pc.add(every, pa.scalar(count, every.type)), every)
    typed = pa.concat_arrays([befores, every])
    in_order = pc.sort_indices(typed)
    is_before = pa.concat_arrays([pa.repeat(True, len(befores)), pa.repeat(False, count)])  # noqa: FBT003
    images = pa.concat_arrays([befores, own])
    return typed.take(in_order), images.take(in_order), is_before.take(in_order)


def _choose(before: pa.Array, after: pa.Array, order: tuple[pa.Array, pa.Array, pa.Array] | None) -> pa.Array:
    return after if order is None else pa.concat_arrays([before, after]).take(order[1])


def rows_not_held(rows: pa.Table, table: NativeTable, until: bytes) -> pa.Table:
    """Return the typed rows that a changelog does not hold, which was adopted when its last order was `until`."""
    first = pc.min(rows.column("order")).as_py()
    if first is None or first > until:
        return rows
    held = table.read(list(CHANGE))
    order = held.column(ORDER)
    bounds = pc.and_(pc.greater_equal(order, pa.scalar(first)), pc.less_equal(order, pa.scalar(until)))
    names = ["order", "operation", "key"]
    keyed = _identities(held.filter(bounds).rename_columns(dict(zip(CHANGE, names, strict=True))))
    typed = _identities(rows.select(names)).append_column("place", places(len(rows)))
    # Arrow takes no null for another one.
    left = typed.join(keyed, [*names, "is_keyed"], join_type="left anti")
    return rows.take(binary(left.sort_by("place").column("place")))


def _identities(rows: pa.Table) -> pa.Table:
    """Return what identifies changes, without nulls."""
    key = rows.column("key")
    columns = {name: rows.column(name) for name in ("order", "operation")}
    return pa.table(columns | {"key": key.fill_null(b""), "is_keyed": key.is_valid()})
