"""Typed rows of a task, put together by table, and of each key only the last where no more is wanted."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from cdcavro.lake.row import DELETE, UPSERTS

if TYPE_CHECKING:
    from collections.abc import Sequence


def by_table(rows: Sequence[pa.RecordBatch], reduced: Sequence[int] = ()) -> pa.Table:
    """Return rows, in batches of `placing.ROWS`, one table behind the other; each table's in the order in which they came.

    Of the tables with the numbers `reduced`, only the last change of each key is returned, as far as the current state is
    the same without the others: a change that lacks columns needs those before it, and what has no key, or ends all
    rows, stays.
    """
    table = pa.Table.from_batches(rows).combine_chunks()
    if len(reduced):
        table = table.filter(_is_wanted(table, reduced))
    return table.take(pc.sort_indices(table, sort_keys=[("number", "ascending")]))


def _is_wanted(table: pa.Table, reduced: Sequence[int]) -> pa.Array:
    number, key = table.column("number"), table.column("key")
    is_change = pc.is_in(table.column("operation"), pa.array([*UPSERTS, DELETE]))
    partial = pc.unique(number.filter(table.column("lacks")))
    is_reduced = pc.and_(
        pc.is_in(number, pa.array(sorted({*reduced} - {*partial.to_pylist()}), number.type)), is_change
    )
    is_reduced = pc.and_(is_reduced, key.is_valid())
    places = pc.indices_nonzero(is_reduced)
    changes = table.select(["number", "key", "order"]).take(places)
    ascending = pc.sort_indices(changes, sort_keys=[("order", "ascending")])
    sorted_changes = changes.select(["number", "key"]).take(ascending).append_column("place", places.take(ascending))
    # Those without threads come in their order, so that the last one is the last.
    last = sorted_changes.group_by(["number", "key"], use_threads=False).aggregate([("place", "last")])
    is_last = pc.is_in(pa.array(range(len(table)), pa.uint64()), last.column("place_last").combine_chunks())
    return pc.or_(pc.invert(is_reduced), is_last)
