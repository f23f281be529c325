"""Rows for tests of native lakes: Arrow tables of a current state, by the columns that a test states."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa

from cdcavro.lake.sql_statements import DELETED, KEY, ORDER, STATE

if TYPE_CHECKING:
    from collections.abc import Sequence


def state_rows(schema: pa.Schema, *rows: dict[str, Any]) -> pa.Table:
    """Return rows with all columns of a table; what a row does not state is null."""
    columns = {one.name: pa.array([row.get(one.name) for row in rows], one.type) for one in schema}
    return pa.table(columns, schema=schema)


def merged_rows(schema: pa.Schema, *rows: dict[str, Any]) -> pa.Table:
    """Return rows to be merged: as `state_rows`, with the order of the key's last delete."""
    deleted = pa.array([row.get(DELETED) for row in rows], pa.binary())
    return state_rows(schema, *rows).append_column(DELETED, deleted)


def by_key(table: pa.Table) -> dict[bytes, dict[str, Any]]:
    """Return rows by their keys."""
    return {row[KEY]: row for row in table.to_pylist()}


def orders(table: pa.Table) -> dict[bytes, bytes]:
    """Return the orders of rows by their keys."""
    return {row[KEY]: row[ORDER] for row in table.to_pylist()}


def plain_names(schema: pa.Schema) -> Sequence[str]:
    """Return the names of the columns that are none of this project's own."""
    return [name for name in schema.names if name not in STATE]
