"""Changes that move rows from one partition of a table to another, and what is left of the rows."""

from __future__ import annotations

import random
from typing import Any

from support.messages import canal

TYPES = {"id": "int", "region": "varchar(9)", "at": "datetime", "n": "int"}
_REGIONS = ("a", "b", "", None, "x/y=%ü ")
_TIMES = ("2024-01-01 00:00:00", "1969-12-31 23:00:00", "2024-03-05 10:00:00", None)


def moving_rows(draw: random.Random, batches: int, size: int) -> list[tuple[list[bytes], list[str]]]:
    """Return batches of messages of Canal's about `d.t`, the last ones of each sent again, each with the rows behind it, as texts."""
    state: dict[str, dict[str, Any]] = {}
    made, number, sent = [], 0, list[bytes]()
    for _ in range(batches):
        # The source goes back a little.
        messages = sent[-3:]
        for _ in range(size):
            number += 1
            messages.append(_change(draw, state, number))
        sent += messages
        rows = [{**row, "id": int(row["id"]), "n": int(row["n"])} for row in state.values()]
        made.append((messages, sorted(map(str, rows))))
    return made


def _change(draw: random.Random, state: dict[str, dict[str, Any]], number: int) -> bytes:
    """Return a message that changes one row, and change it."""
    id = str(draw.randrange(20))
    old, new = state.get(id), {"id": id, "region": draw.choice(_REGIONS), "at": draw.choice(_TIMES), "n": str(number)}
    if old is not None and draw.random() < 0.3:
        return canal("DELETE", [state.pop(id)], id=number, mysqlType=TYPES)
    state[id] = new
    if old is None:
        return canal("INSERT", [new], id=number, mysqlType=TYPES)
    changed = {name: value for name, value in old.items() if value != new[name]}
    return canal("UPDATE", [new], id=number, old=[changed], mysqlType=TYPES)
