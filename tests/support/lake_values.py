"""Rows of the shop as lake tables have them, and Arrow tables of typed rows."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, time, timedelta
from typing import Any

import pyarrow as pa

from cdcavro.lake import TypedRow
from cdcavro.lake.placing import rows_batch
from cdcavro.lake.sql_statements import STATE, UNPARSED
from cdcavro.table.table_schema import TableSchema
from support.shop_losses import EPOCH
from support.shop_tables import Moved, Row, Unparsed, filled

MICROSECOND = timedelta(microseconds=1)


def table_of(rows: Sequence[TypedRow]) -> pa.Table:
    """Return the typed rows of one table as Arrow has them."""
    return pa.Table.from_batches([rows_batch(list(enumerate(rows)))])


def rows_of(held: pa.Table) -> list[Row]:
    """Return the rows of a current state by true names: instants in microseconds, texts of misfits as `Unparsed`."""
    is_instant = {one.name: pa.types.is_timestamp(one.type) and one.type.tz is not None for one in held.schema}
    plain = pa.table(
        {name: held.column(name).cast(pa.int64()) if is_instant[name] else held.column(name) for name in is_instant}
    )
    found = []
    for values in plain.to_pylist():
        texts = dict(values[UNPARSED] or [])
        row = {name: value for name, value in values.items() if name not in STATE}
        found.append(row | {name: Unparsed(text) for name, text in texts.items()})
    return found


def as_in_lake(row: Row, reader: TableSchema) -> Row:
    """Return a row that fastavro read as a lake table has it."""
    image = filled(Moved(0, "c", None, None, row, {}), reader).after
    return {name: _as_spark(value) for name, value in image.items()}


def _as_spark(value: Any) -> Any:
    if isinstance(value, time):
        return (datetime.combine(EPOCH, value) - datetime.combine(EPOCH, time())) // MICROSECOND
    if isinstance(value, datetime) and value.tzinfo is not None:
        return (value - EPOCH) // MICROSECOND
    return value


def shown(rows: Sequence[Row]) -> list[str]:
    """Return rows in an order, so that those that are equal in type and digits are equal."""
    return sorted(repr(sorted(row.items())) for row in rows)
