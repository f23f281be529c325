"""Streams of one table whose columns are dropped, come back and are renamed, and what a lake table that keeps them holds.

Rows are typed in their true order, and merged in any: a lane that lags sends them like that.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence
from typing import Any

from cdcavro.change.model import Arrival, Change, Column
from cdcavro.lake import TypedRow, TypedRows
from cdcavro.lake.evolution import LakeColumn
from cdcavro.lake.sql_statements import IS_DELETED, KEY
from cdcavro.lake.typed_rows import DELETE, DROP, TRUNCATE
from cdcavro.sync.native.native_columns import NativeTable
from cdcavro.table.table_schema import TableSchema
from cdcavro.table.tables import Tables
from support.keyed_changes import SOURCE, change
from support.shop_tables import read, true_row

STATEMENTS = {
    "id a b": [("DROP COLUMN b", "id a"), ("RENAME COLUMN b TO c", "id a c"), ("ADD COLUMN c int", "id a b c")],
    "id a": [("ADD COLUMN b int", "id a b"), ("DROP COLUMN a, ADD COLUMN c int", "id c")],
    "id a c": [("DROP COLUMN c", "id a"), ("DROP COLUMN a", "id c")],
    "id a b c": [("DROP COLUMN c", "id a b"), ("DROP COLUMN b, DROP COLUMN a", "id c")],
    "id c": [("ADD COLUMN a int", "id c a"), ("ADD COLUMN b int", "id c b")],
    "id c a": [("DROP COLUMN c", "id a")],
    "id c b": [("DROP COLUMN b", "id c"), ("RENAME COLUMN c TO a", "id a b")],
}
"""From the columns of a table: what may be stated of them, and the columns then."""


def dropping_stream(seed: int, count: int) -> tuple[list[TypedRow], list[TableSchema]]:
    """Return the typed rows of changes of few keys in their true order, and all versions of their table."""
    draw, names, maker = random.Random(seed), "id a b", TypedRows(Tables())
    is_partial, rows = draw.random() < 0.4, list[TypedRow]()
    for number in range(1, count + 1):
        if number > 3 and draw.random() < 0.2:
            text, names = draw.choice(STATEMENTS[names])
            message = [_statement(number, f"ALTER TABLE t {text}")]
        elif draw.random() < 0.04:
            message = [_statement(number, "TRUNCATE TABLE t")]
        else:
            op = draw.choice(["INSERT", "UPDATE", "UPDATE", "DELETE"]) if number > 1 else "INSERT"
            absent = draw.choice(["", *names.split()[1:]]) if is_partial and op == "UPDATE" else ""
            message = [_row(op, number, draw.randrange(4), names.split(), absent)]
        batch = maker.of_batch([message])
        assert batch.rejects == []
        rows += batch.rows
    (table,) = maker.tables.tables
    return rows, [*table.versions]


def _statement(number: int, text: str) -> Change:
    place = Arrival(topic="x", partition=0, offset=number)
    op = "TRUNCATE" if text.startswith("TRUNCATE") else "ALTER"
    return Change(op=op, source=SOURCE, position=(number,), event_time=1, ddl=text, place=place)


def _row(op: str, number: int, key: int, names: Sequence[str], absent: str) -> Change:
    image = {name: key if name == "id" else number * (i + 1) for i, name in enumerate(names)}
    stated = {name: value for name, value in image.items() if name != absent}
    facts: dict[str, Any] = {"before": image} if op == "DELETE" else {"after": stated}
    facts |= {
        "unavailable": (absent,) if absent else None,
        "columns": tuple(Column(name=one, type="int") for one in names),
    }
    (plain,) = change("INSERT", number, key)
    return Change(
        op=op, source=SOURCE, key=("id",), position=(number,), event_time=number * 1_000_000, place=plain.place, **facts
    )


def kept_rows(
    rows: Iterable[TypedRow], versions: Sequence[TableSchema], present: Sequence[LakeColumn], *, is_soft: bool = False
) -> list[tuple[Any, ...]]:
    """Return the rows that a lake table with some columns holds: of each column what the last change says that has it.

    A change has the columns that its version does not know yet, not those that its version knows no longer. What stood
    before a delete or a TRUNCATE is nothing.
    """
    changes: dict[bytes, dict[bytes, TypedRow]] = {}
    ends: dict[bytes, set[bytes]] = {b"": set()}
    for row in rows:
        if row.operation in (TRUNCATE, DROP, DELETE):
            ends.setdefault(row.key if row.operation == DELETE and row.key else b"", set()).add(row.order)
        elif row.key is not None:
            changes.setdefault(row.key, {})[row.order] = row
    found = []
    for key, own in changes.items():
        every, last = ends[b""] | ends.get(key, set()), max(own)
        is_deleted = any(end > last for end in every)
        if is_deleted and not is_soft:
            continue
        floor = max((end for end in every if end < last), default=b"")
        above = [own[order] for order in sorted(own, reverse=True) if order > floor]
        values = [_value(above, versions, column.field) for column in present]
        found.append((key, *([is_deleted] if is_soft else []), *values))
    return sorted(found, key=repr)


def _value(above: Sequence[TypedRow], versions: Sequence[TableSchema], field: str) -> Any:
    reader = next(
        (one, column)
        for one in reversed(versions)
        for column in one.columns
        for names in [next(f for f in one.record["fields"] if f["name"] == column.field)]
        if field in (column.field, *names.get("aliases", ()))
    )
    schema, newest = reader
    names = next(one for one in schema.record["fields"] if one["name"] == newest.field)
    fields = {newest.field, *names.get("aliases", ())}
    for row in above:
        if row.version > schema.version:
            continue
        own = [column.name for column in versions[row.version - 1].columns if column.field in fields]
        if not set(own).intersection(row.absent):
            image = read(row.payload, versions[row.version - 1].envelope, schema.envelope)["after"]
            return true_row(image | {"absent": []}, schema)[newest.name]
    return None


def held_rows(table: NativeTable) -> list[tuple[Any, ...]]:
    """Return the rows of a lake table as `kept_rows` returns them."""
    own = [name for name in (KEY, IS_DELETED) if name in table.schema().names]
    names = [*own, *(column.name for column in table.columns())]
    held = table.read(names)
    return sorted(zip(*[held.column(name).to_pylist() for name in names], strict=True), key=repr)
