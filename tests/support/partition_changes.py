"""Changes that move rows from one partition of a table to another, and what is left of the rows."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from typing import Any

from support.messages import canal

TYPES = {"id": "int", "region": "varchar(9)", "at": "datetime", "n": "int"}
_VALUES = {
    "region": ("a", "b", "", None, "x/y=%ü "),
    "at": ("2024-01-01 00:00:00", "1969-12-31 23:00:00", "2024-03-05 10:00:00", None),
}
# What partitions tables of Delta Lake.
PLAIN_TYPES = {"id": "int", "day": "date", "big": "bigint unsigned", "kind": "tinyint", "n": "int"}
PLAIN_VALUES = {
    "day": ("2024-01-01", "1000-01-01", "9999-12-31", None),
    "big": ("0", "18446744073709551615", None),
    "kind": ("-128", "1", None),
}


def moving_rows(
    draw: random.Random,
    batches: int,
    size: int,
    types: Mapping[str, str] = TYPES,
    values: Mapping[str, Sequence[str | None]] = _VALUES,
) -> list[tuple[list[bytes], list[str]]]:
    """Return batches of messages of Canal's about `d.t`, the last ones of each sent again, each with the rows behind it, as texts.

    `types` are those of the columns, and `values` what those may have that are neither `id` nor `n`, whose values are numbers.
    """
    state: dict[str, dict[str, Any]] = {}
    made, number, sent = [], 0, list[bytes]()
    for _ in range(batches):
        # The source goes back a little.
        messages = sent[-3:]
        for _ in range(size):
            number += 1
            messages.append(_change(draw, state, number, types, values))
        sent += messages
        rows = [{**row, "id": int(row["id"]), "n": int(row["n"])} for row in state.values()]
        made.append((messages, sorted(map(str, rows))))
    return made


def _change(
    draw: random.Random,
    state: dict[str, dict[str, Any]],
    number: int,
    types: Mapping[str, str],
    values: Mapping[str, Sequence[str | None]],
) -> bytes:
    """Return a message that changes one row, and change it."""
    id = str(draw.randrange(20))
    drawn = {name: draw.choice(some) for name, some in values.items()}
    old, new = state.get(id), {"id": id, **drawn, "n": str(number)}
    if old is not None and draw.random() < 0.3:
        return canal("DELETE", [state.pop(id)], id=number, mysqlType=types)
    state[id] = new
    if old is None:
        return canal("INSERT", [new], id=number, mysqlType=types)
    changed = {name: value for name, value in old.items() if value != new[name]}
    return canal("UPDATE", [new], id=number, old=[changed], mysqlType=types)
