"""Changes of few keys of one table, numbered in their true order, some without all columns."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

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


def texts_under_a_name_of_two_columns() -> list[list[Change]]:
    """Return messages about row 1, three of whose values are texts; `b` is the name of two columns, one after the other.

    The fourth change states the new `b` alone, and the last one what was called `b` before.
    """
    renamed = statement(4, "ALTER TABLE t RENAME COLUMN b TO c, ADD COLUMN b INT")
    newer = (*COLUMNS, Column(name="c", type="int"))

    def stated(op: str, number: int, columns: Sequence[Column], **row: Any) -> list[Change]:
        absent = tuple(one.name for one in columns[1:] if one.name not in row)
        (made,) = change(op, number, 1)
        return [replace(made, after={"id": 1, **row}, columns=columns, unavailable=absent or None)]

    first = stated("INSERT", 1, COLUMNS, a="x", b="y")
    second, third = stated("UPDATE", 5, newer, b="z"), stated("UPDATE", 6, newer, c=7)
    return [first, renamed, second, third]


def text_under_a_name_in_another_case() -> list[list[Change]]:
    """Return messages about row 1, whose `b` is a text and is called `B` when another value comes alone."""
    (made,) = change("INSERT", 1, 1)
    first = [replace(made, after={"id": 1, "a": 1, "b": "y"})]
    columns = (*COLUMNS[:2], Column(name="B", type="int"))
    (made,) = change("UPDATE", 5, 1)
    second = [replace(made, after={"id": 1, "a": 5}, columns=columns, unavailable=("B",))]
    return [first, statement(4, "ALTER TABLE t RENAME COLUMN b TO B"), second]


def texts_of_a_column_that_is_dropped_at_once() -> list[list[Change]]:
    """Return messages about rows 1 to 3, whose `b` is a text where they have one: it is dropped by the fourth message.

    The others lack columns; the last but one is older than its row, and the last one is newer.
    """

    def stated(op: str, number: int, key: int, columns: Sequence[Column], **row: Any) -> list[Change]:
        absent = tuple(one.name for one in columns[1:] if one.name not in row)
        (made,) = change(op, number, key)
        return [replace(made, after={"id": key, **row}, columns=columns, unavailable=absent or None)]

    rows = [stated("INSERT", number, number, COLUMNS, a=number, b=f"text {number}") for number in (11, 12, 13)]
    dropped, late = statement(14, "ALTER TABLE t DROP COLUMN b"), stated("UPDATE", 5, 11, COLUMNS[:2])
    return [*rows, dropped, late, stated("UPDATE", 15, 12, COLUMNS[:2], a=7)]


def statement(number: int, text: str) -> list[Change]:
    """Return the message of a statement."""
    place = Arrival(topic="x", partition=0, offset=number)
    return [Change(op="ALTER", source=SOURCE, position=(number,), event_time=1, ddl=text, place=place)]
