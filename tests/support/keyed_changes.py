"""Changes of few keys of one table, numbered in their true order, some without all columns."""

from __future__ import annotations

import random

from cdcavro.change.model import Arrival, Change, Column, Source, replace

SOURCE = Source(format="debezium", db_type="mysql", database="d", table="t")
COLUMNS = tuple(Column(name=name, type="int") for name in ("id", "a", "b"))


def change(op: str, number: int, key: int, absent: str = "", *, source: Source = SOURCE) -> list[Change]:
    """Return a message with one change of a row, whose values are its number; some columns may be absent."""
    row = {"id": key, "a": number, "b": -number}
    present = {name: value for name, value in row.items() if name not in absent}
    images = {"before": row if op == "DELETE" else None, "after": None if op in ("DELETE", "TRUNCATE") else present}
    place = Arrival(topic="x", partition=0, offset=number)
    facts = {"unavailable": tuple(absent) or None, "columns": None if op == "TRUNCATE" else COLUMNS}
    made = Change(op=op, source=source, key=("id",), position=(number,), event_time=1, place=place, **images, **facts)
    return [replace(made, ddl="TRUNCATE TABLE t") if op == "TRUNCATE" else made]


def changes_by_seed(seed: int, count: int) -> list[list[Change]]:
    """Return changes of few keys, in the order of their numbers."""
    draw = random.Random(seed)
    kinds = ["INSERT", "UPDATE", "UPDATE", "DELETE", "SNAPSHOT"]
    made = []
    for number in range(1, count + 1):
        op = "TRUNCATE" if number == count // 3 else draw.choice(kinds)
        made.append(
            change(op, number, draw.randrange(6), draw.choice(["", "", "a", "b", "ab"]) if op == "UPDATE" else "")
        )
    return made
