"""Tests of typed rows by table, of which only the last change of each key goes on where no more is wanted."""

from __future__ import annotations

import random
from typing import Any

import pyarrow as pa
import pytest

from cdcavro.lake.reduction import by_table
from cdcavro.lake.row import DELETE, DROP, TRUNCATE

Row = dict[str, Any]
TYPES = pa.schema(
    [
        ("number", pa.int32()),
        ("operation", pa.string()),
        ("order", pa.binary()),
        ("key", pa.binary()),
        ("payload", pa.binary()),
        ("lacks", pa.bool_()),
    ]
)


def drawn(draw: random.Random, count: int) -> list[Row]:
    """Return rows of three tables, of which the third is partial; their orders are of no order."""
    orders = [i.to_bytes(4, "big") for i in range(count)]
    draw.shuffle(orders)
    return [
        {
            "number": (number := draw.randrange(3)),
            "operation": draw.choice(["c", "u", "r", DELETE, TRUNCATE, DROP]),
            "order": order,
            "key": draw.choice([None, b"1", b"2", b"3"]),
            "payload": draw.randbytes(3),
            "lacks": number == 2 and draw.random() < 0.2,
        }
        for order in orders
    ]


def batches(rows: list[Row], size: int) -> list[pa.RecordBatch]:
    """Return batches of rows."""
    return [pa.RecordBatch.from_pylist(rows[i : i + size], TYPES) for i in range(0, len(rows), size)]


@pytest.mark.parametrize("seed", range(20))
def test_of_each_key_the_last_change_stays(seed: int) -> None:
    """Whatever the order of arrival and the batches; rows of partial tables, ends of tables and rows without a key all stay."""
    draw = random.Random(seed)
    rows = drawn(draw, 60)
    found = by_table(batches(rows, draw.randrange(1, 61)), (0, 2)).to_pylist()
    is_partial = any(row["lacks"] for row in rows)
    reduced = {0} if is_partial else {0, 2}

    def stays(row: Row) -> bool:
        if row["number"] not in reduced or row["key"] is None or row["operation"] in {TRUNCATE, DROP}:
            return True
        rivals = [
            one["order"]
            for one in rows
            if (one["number"], one["key"]) == (row["number"], row["key"]) and one["operation"] not in {TRUNCATE, DROP}
        ]
        return bool(row["order"] == max(rivals))

    wanted = [row for row in rows if stays(row)]
    assert found == sorted(wanted, key=lambda row: row["number"])


def test_nothing_is_left_out_where_all_changes_are_wanted() -> None:
    """Rows are put one table behind the other, each table's in the order in which they came."""
    rows = drawn(random.Random(1), 50)
    assert by_table(batches(rows, 7)).to_pylist() == sorted(rows, key=lambda row: row["number"])
