"""Rows of messages as the local runner hands them to a sink."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import pyarrow as pa

from cdcavro import to_changes
from cdcavro.lake.typed_rows import RowFacts, TypedRow, TypedRows
from cdcavro.sync.local.local_outcomes import ROWS
from cdcavro.sync.outputs.writer import BatchRows

if TYPE_CHECKING:
    from cdcavro.sync.outputs.writer import Rows

FACTS = RowFacts(None, 0, 0, 0, [])


def typed_rows(maker: TypedRows, *messages: bytes) -> dict[int, list[TypedRow]]:
    """Return the rows of Canal's messages by the number of their table."""
    found: dict[int, list[TypedRow]] = {}
    for one in maker.of_batch([to_changes(message, "canal") for message in messages]).rows:
        found.setdefault(one.table, []).append(one)
    return found


def as_table(rows: Sequence[TypedRow]) -> pa.Table:
    """Return rows as the local runner holds them."""
    return pa.table([[getattr(row, field.name, None) for row in rows] for field in ROWS], schema=ROWS)


def waiting(maker: TypedRows, batch: int, *messages: bytes) -> list[Rows]:
    """Return the rows of a batch's messages, by table."""
    known = maker.tables.tables
    return [
        (known[number], known[number].schema.table, [BatchRows(batch, as_table(rows), FACTS)])
        for number, rows in typed_rows(maker, *messages).items()
    ]
