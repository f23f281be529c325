"""Lake tables that are changed file by file: what a merge leaves is what its statement says, in both lakes."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from cdcavro.lake.evolution import LakeColumn
from cdcavro.lake.sql_statements import DELETED, KEY, OLDER, ORDER, STATE, UNPARSED
from cdcavro.sync.native import file_changes
from cdcavro.sync.native.delta_lake import NativeDelta
from cdcavro.sync.native.file_changes import Keys
from cdcavro.sync.native.iceberg_lake import NativeIceberg
from cdcavro.sync.native.native_columns import Mark, NativeTable
from cdcavro.table import TableName

COLUMNS = [LakeColumn("v", "v", "int"), LakeColumn("kept", "kept", "string")]


def made(kind: type, folder: Path) -> NativeTable:
    """Return a table that is created."""
    name = TableName("shop", "s", "t")
    lake = NativeDelta(str(folder)) if kind is NativeDelta else NativeIceberg("ice", warehouse=str(folder))
    lake.make_room(name)
    table: NativeTable = lake.table(name)
    table.create(COLUMNS, STATE, lake.properties([]))
    return table


def rows_of(table: NativeTable, rows: Sequence[Mapping[str, Any]], *more: str) -> pa.Table:
    """Return rows as Arrow has them; `more` are names of binary columns beside those of the table."""
    schema = table.schema()
    for name in more:
        schema = schema.append(pa.field(name, pa.binary()))
    return pa.Table.from_pylist([dict(row) for row in rows], schema=schema)


def state(table: NativeTable) -> dict[bytes, tuple[Any, ...]]:
    """Return what each key has."""
    rows = table.read([KEY, "v", "kept", ORDER, UNPARSED, OLDER]).to_pylist()
    assert len({row[KEY] for row in rows}) == len(rows)
    return {row[KEY]: tuple(row.values())[1:] for row in rows}


def merged_by_hand(
    held: dict[bytes, tuple[Any, ...]], rows: Sequence[Mapping[str, Any]]
) -> dict[bytes, tuple[Any, ...]]:
    """Return what `sql_statements.merge_state` makes of rows, of which the column `kept` is not in the batch."""
    found = dict(held)
    for row in rows:
        own = row["v"], row[ORDER], row[UNPARSED], row[OLDER]
        there = found.get(row[KEY])
        if there is None:
            if row[ORDER] is not None:
                found[row[KEY]] = (own[0], None, *own[1:])
        elif row[ORDER] is None and row[DELETED] is not None and row[DELETED] >= there[2]:
            del found[row[KEY]]
        elif row[ORDER] is not None and row[ORDER] > there[2]:
            found[row[KEY]] = (own[0], there[1], *own[1:])
    return found


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("kind", [NativeDelta, NativeIceberg])
def test_merges_are_those_of_the_statement(tmp_path: Path, kind: type, seed: int):
    """Keys and orders of any bytes, with the same beginning, and longer than bounds are."""
    chance = random.Random(seed)
    table = made(kind, tmp_path)
    keys = [
        bytes(chance.choice(b"\x00\x7f\x80\xff") for _ in range(chance.choice([1, 2, 16, 17, 20]))) for _ in range(40)
    ]
    orders = [bytes([one]) for one in (0, 1, 0x7F, 0x80, 0xFF)] + [b"\x80\x00", b"\x7f\xff"]
    first = [{KEY: key, ORDER: b"\x01", "v": i, "kept": "k"} for i, key in enumerate(set(keys[:20]))]
    table.append(rows_of(table, first), Mark("j", 0))
    table.append(rows_of(table, [{KEY: b"\x80other", ORDER: b"\x01", "v": -1}]), Mark("j", 1))
    wanted = state(table)
    for _ in range(6):
        rows = [
            {
                KEY: key,
                ORDER: chance.choice([None, *orders]),
                DELETED: chance.choice([None, *orders]),
                "v": chance.randrange(100),
                UNPARSED: chance.choice([None, [("v", "x")]]),
                OLDER: chance.choice([None, [("v", b"\x80")]]),
            }
            for key in set(chance.sample(keys, chance.randrange(1, 20)))
        ]
        wanted = merged_by_hand(wanted, rows)
        batch = rows_of(table, rows, DELETED).drop_columns(["kept"])
        for _ in range(chance.choice([1, 2])):
            table.merge(batch, ["v"])
            assert state(table) == wanted


def peak_of(table: NativeTable, files: int) -> int:
    """Return how many bytes Arrow held at most while a row of each of so many files was changed."""
    draw = random.Random(files)
    for number in range(files):
        rows = [
            {KEY: b"%d,%d" % (number, i), ORDER: b"\x01", "v": i, "kept": draw.randbytes(100).hex()}
            for i in range(5_000)
        ]
        table.append(rows_of(table, rows), Mark("j", number))
    changed = [{KEY: b"%d,7" % number, ORDER: b"\x02", DELETED: None, "v": -1} for number in range(files)]
    batch = rows_of(table, changed, DELETED).drop_columns(["kept"])
    before = pa.default_memory_pool()
    pool = pa.proxy_memory_pool(before)
    pa.set_memory_pool(pool)
    try:
        table.merge(batch, ["v"])
    finally:
        pa.set_memory_pool(before)
    values = table.read(["v"]).column("v").to_pylist()
    assert (len(values), values.count(-1)) == (files * 5_000, files)
    return pool.max_memory()


@pytest.mark.slow
@pytest.mark.parametrize("kind", [NativeDelta, NativeIceberg])
def test_a_merge_holds_no_more_of_a_table_that_has_more_files(
    tmp_path: Path, kind: type, monkeypatch: pytest.MonkeyPatch
):
    """So a table may be larger than the memory, also if every file of it changes."""
    monkeypatch.setattr(file_changes, "_WAITING", 1 << 21)
    few, many = (peak_of(made(kind, tmp_path / str(files)), files) for files in (4, 20))
    assert 1 << 20 < many < few * 1.5


@pytest.mark.parametrize(
    ("low", "high", "may"),
    [
        (b"a", b"a", True),
        (b"b", b"l", False),
        (b"b", b"m", True),
        (None, b"Z", False),
        (b"n", None, False),
        (None, None, True),
    ],
)
def test_a_file_is_looked_at_if_a_key_lies_within_its_bounds(low: bytes | None, high: bytes | None, may: bool):
    """A bound that is not known leaves it open."""
    assert Keys(pa.array([b"m", None, b"a"], pa.binary())).may_lie_within(low, high) is may
    assert not Keys(pa.array([None], pa.binary())).may_lie_within(None, None)
