"""Shuffled streams of changes, many side by side: each in its own order, repetitions and cuts, and what an oracle holds in the end.

Streams that share a table have keys of their own; a TRUNCATE is that of the table. Their changes are numbered in their true
order, so whatever comes first, and however often, the table is the same.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterable, Mapping
from datetime import UTC
from typing import Any

from cdcavro.change.model import Arrival, Change, replace
from cdcavro.formats.connect_columns import PLACEHOLDER
from cdcavro.lake import TypedRow, TypedRows
from cdcavro.lake.lakes import CURRENT, HISTORY, SOFT
from cdcavro.table.history import Table
from cdcavro.table.tables import Tables
from cdcavro.transcoding.mapping import to_changes
from support.kept_versions import Kept, replayed
from support.keyed_changes import changes_by_seed
from support.shop_state import image
from support.shop_tables import read

# How a stream is sent again: not at all, every message three times, or some of them once more.
REPEATS = ((1,), (3,), (1, 2))
_BEGIN = 1_700_000_000_000
_LETTERS = {"INSERT": "c", "UPDATE": "u", "DELETE": "d", "SNAPSHOT": "r", "TRUNCATE": "t"}


def batches_of(names: Iterable[str], seed: int, streams: int, count: int) -> list[list[bytes]]:
    """Return messages in `count` batches; each of the tables with these names has the changes of `streams` streams."""
    found: list[list[bytes]] = [[] for _ in range(count)]
    for table in names:
        # A TRUNCATE of a table of which nothing is known is none.
        found[0].append(_message(changes_by_seed(0, 1)[0][0], table, 0, streams))
        for stream in range(streams):
            draw = random.Random(f"{seed} {table} {stream}")
            changes = [one for (one,) in changes_by_seed(draw.randrange(1 << 30), draw.randrange(4, 14))]
            # That of the first stream ends the rows of all.
            changes = [one for one in changes if one.op != "TRUNCATE" or stream == 0]
            times = REPEATS[draw.randrange(len(REPEATS))]
            sent = [one for one in changes for _ in range(draw.choice(times))]
            draw.shuffle(sent)
            cuts = sorted(draw.randrange(len(sent) + 1) for _ in range(count - 1))
            for batch, start, end in zip(found, [0, *cuts], [*cuts, len(sent)], strict=True):
                batch += [_message(one, table, stream, streams) for one in sent[start:end]]
    return found


def _message(change: Change, table: str, stream: int, streams: int) -> bytes:
    """Return a change of a stream as Debezium sends it."""
    assert change.position is not None
    (number,) = change.position
    images = [
        None if row is None else {"stream": stream, **{name: str(value) for name, value in row.items()}}
        for row in (change.before, change.after)
    ]
    for name in change.unavailable or ():
        images[1] = {**(images[1] or {}), name: PLACEHOLDER}
    time = _BEGIN + number * 1_000
    database, _, name = table.partition(".")
    source = {"connector": "mysql", "db": database, "table": name, "file": "b.000001", "ts_ms": time}
    source |= {"pos": number * streams + stream, "row": 0, "snapshot": str(change.op == "SNAPSHOT").lower()}
    row = images[1] or images[0]
    key = None if row is None else {"stream": stream, "id": row["id"]}
    value = {"before": images[0], "after": images[1], "source": source, "op": _LETTERS[change.op], "ts_ms": time}
    return json.dumps({"key": key, "value": value}).encode()


Rows = dict[str, list[tuple[Any, ...]]]
VALUES = ("stream", "id", "a", "b")
# The columns of rows of each form, as DuckDB selects them.
COLUMNS = {
    CURRENT: VALUES,
    SOFT: (*VALUES, "_cdc_is_deleted", "epoch_us(_cdc_deleted_at)"),
    HISTORY: (*VALUES, "epoch_us(_cdc_from)", "epoch_us(_cdc_to)"),
}


def form_of(name: str) -> str:
    """Return the form of a table: the database has its name."""
    return name.partition(".")[0]


def names_of(tables: Mapping[str, int]) -> list[str]:
    """Return the names of so many tables of each form."""
    return [f"{form}.t{i}" for form, count in tables.items() for i in range(count)]


def wanted(batches: Iterable[Iterable[bytes]]) -> Rows:
    """Return the rows of each table in its form, of all messages in their true order, replayed in plain Python."""
    maker = TypedRows(Tables(zone=UTC))
    messages = [
        [replace(one, place=Arrival(file=f"{number}", line=i + 1)) for one in to_changes(text, "debezium")]
        for number, batch in enumerate(batches)
        for i, text in enumerate(batch)
    ]
    made = maker.of_batch(messages)
    assert made.rejects == []
    rows: dict[int, list[TypedRow]] = {}
    for row in made.rows:
        rows.setdefault(row.table, []).append(row)
    names = {one.number: f"{one.schema.table.database}.{one.schema.table.table}" for one in maker.tables.tables}
    return {
        names[one.number]: _rows_in(rows[one.number], one, form_of(names[one.number])) for one in maker.tables.tables
    }


def _rows_in(rows: list[TypedRow], table: Table, form: str) -> list[tuple[Any, ...]]:
    def time(row: TypedRow) -> Any:
        envelope = table.versions[row.version - 1].envelope
        return read(row.payload, envelope, table.schema.envelope)["source"]["ts_us"] if row.payload else None

    kept = replayed(rows, lambda row: image(row, table.versions), time, VALUES).values()
    return sorted((one for versions in kept for one in _of_form(versions, form)), key=repr)


def _of_form(versions: list[Kept], form: str) -> list[tuple[Any, ...]]:
    if form == CURRENT:
        return [_values(one) for one in versions if one.is_open]
    if form == SOFT:
        return [(*_values(one), not one.is_open, one.end) for one in versions[-1:]]
    return [(*_values(one), one.begin, one.end) for one in versions]


def _values(one: Kept) -> tuple[Any, ...]:
    return tuple(one.values[name] for name in VALUES)
