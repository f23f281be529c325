"""Streams of changes, made one after the other and added to tables."""

from __future__ import annotations

import functools
from typing import Any

from cdcavro.change.model import Arrival, Change, Column, Source, replace
from cdcavro.table.tables import Tables

CANAL = Source(format="canal", db_type="mysql", database="shop", table="t")
KINDS = {"CREATE": "CREATE", "ALTER": "ALTER", "DROP": "ERASE", "RENAME": "RENAME", "TRUNCATE": "TRUNCATE"}


class Stream:
    """Makes changes one after the other, each with its number in the source's order, and adds them."""

    def __init__(self, source: Source = CANAL, **options: Any) -> None:
        self.tables = Tables(**options)
        self.source = source
        self.number = 0
        self.changes: list[Change] = []
        self.found: dict[int, list[tuple[int, int]]] = {}

    def ddl(self, text: str, *, columns: str | None = None, table: str | None = "t", number: int | None = None) -> None:
        """Add a statement, which is about a table and may state its columns."""
        self._add(KINDS.get(text.split(maxsplit=1)[0], "QUERY"), number, ddl=text, columns=stated(columns), table=table)

    def row(self, columns: str | None, row: Any = None, *, op="INSERT", table="t", key=None, number=None, before=None):
        """Add a row whose columns are stated as `"id int, a text"`; every value is the text of a number by default."""
        listed = stated(columns)
        if row is None:
            row = {one.name: "1" for one in listed or ()}
        return self._add(op, number, columns=listed, before=before, after=row, table=table, key=key)

    def _add(self, op: str, number: int | None, *, table: str | None, **facts: Any) -> Any:
        self.number += 10
        number = self.number if number is None else number
        change = Change(op=op, source=replace(self.source, table=table), **self._order(number), **facts)
        return self._arrive(change)

    def _order(self, number: int) -> dict[str, Any]:
        return {"position": (number,)}

    def _arrive(self, change: Change) -> Any:
        self.changes.append(change)
        made = self.tables.add(change)
        self.found[len(self.changes) - 1] = [(one.table.number, one.schema.version) for one in made]
        return made[0] if len(made) == 1 else made

    @property
    def versions(self) -> list[str]:
        """Return the columns of each version of each table."""
        return [
            " | ".join(
                f"{one.table.table}: {' '.join(column.name for column in one.columns)}" for one in table.versions
            )
            for table in self.tables.tables
        ]


class CanalFile(Stream):
    """A file of Canal's messages, whose order is that of the lines; a number is the second of `es`."""

    def _order(self, number: int) -> dict[str, Any]:
        line = len(self.changes) + 1
        place = Arrival(file="f", line=line)
        return {"position": (number * 1000, line), "event_time": number * 1_000_000, "place": place}

    def again(self, *, begin: int = 0, renumbered: bool = False) -> None:
        """Add the messages from one on once more, in batches numbered as they were or anew, and the times that they had."""
        for change in self.changes[begin:]:
            line = len(self.changes) + 1
            place = Arrival(file="f", line=line)
            assert change.position is not None
            position = (change.position[0], line) if renumbered else change.position
            self._arrive(replace(change, place=place, position=position))


@functools.cache
def stated(columns: str | None) -> tuple[Column, ...] | None:
    """Return columns that are stated as `"id int, a text"`: the same object for the same ones, as messages of a table do."""
    if columns is None:
        return None
    pairs = [one.strip().partition(" ") for one in columns.split(", ") if one]
    return tuple(Column(name=name, type=type or None) for name, _, type in pairs)
