"""The shop's final tables from typed rows that were merged batch by batch, and what the server says of them."""

from __future__ import annotations

import pickle
from collections.abc import Sequence
from datetime import UTC
from functools import cache
from typing import Any

from cdcavro.change.model import DDL, DML
from cdcavro.change.order import in_order
from cdcavro.lake import TableState, TypedRow, TypedRows
from cdcavro.lake.merge import values_of
from cdcavro.table.table_schema import TableSchema
from cdcavro.table.tables import Tables
from support.shop_streams import Message
from support.shop_tables import read, shop_changes, true_row

Rows = dict[str, dict[bytes, dict[str, Any]]]


def merged(messages: Sequence[Message], size: int, tables: Tables | None = None) -> Rows:
    """Return the live tables' rows by key, as the newest versions read them, after batches of a size.

    `tables` has learned what it is to know before; by default it learns batch by batch.
    """
    maker, states = TypedRows(tables or Tables(zone=UTC)), {}
    for i in range(0, len(messages), size):
        batch = maker.of_batch(messages[i : i + size])
        assert batch.rejects == []
        for row in batch.rows:
            states.setdefault(row.table, TableState())
        for number, state in states.items():
            state.merge([row for row in batch.rows if row.table == number])
    return rows_of(maker.tables, states)


def rows_of(tables: Tables, states: dict[int, TableState]) -> Rows:
    """Return the rows of live tables with a key."""
    found: Rows = {}
    for table in tables.tables:
        if not table.is_gone and table.schema.key is not None:
            state = states.get(table.number, TableState())
            assert table.schema.table.table not in found
            found[table.schema.table.table] = {
                key: values_of(pieces, lambda piece, table=table: image(piece, table.versions))
                for key, pieces in state.rows.items()
            }
    return found


def image(row: TypedRow, versions: Sequence[TableSchema]) -> dict[str, Any]:
    """Return the values that a typed row states, under the names of the newest version."""
    writer = versions[row.version - 1]
    envelope = read(row.payload, writer.envelope, versions[-1].envelope)
    values = true_row(envelope["after"] | {"absent": []}, versions[-1])
    return {name: value for name, value in values.items() if name not in row.absent}


def as_came(producer: str) -> list[Message]:
    """Return the messages of a producer as they came."""
    messages: dict[int, Message] = {}
    for change in shop_changes(producer):
        messages.setdefault(change.place.line, []).append(change)
    return list(messages.values())


@cache
def whole(producer: str) -> Rows:
    """Return what the stream as it came ends with, in one batch."""
    return merged(as_came(producer), len(shop_changes(producer)))


def shown(rows: Rows) -> dict[str, dict[bytes, str]]:
    """Return rows so that equal ones are the same in type and digits."""
    return {name: {key: repr(row) for key, row in table.items()} for name, table in rows.items()}


@cache
def _learned(producer: str) -> bytes:
    tables = Tables(zone=UTC)
    for change in in_order([one for one in shop_changes(producer) if one.op in {*DML, *DDL}]):
        tables.learn(change)
    return pickle.dumps(tables)


def learned(producer: str) -> Tables:
    """Return tables that have learned the whole stream of a producer."""
    return pickle.loads(_learned(producer))
