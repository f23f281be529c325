"""The facts of formats, one file for each in `tests/formats/facts/`: tests over all formats draw their messages from these.

| fact | what it is |
| --- | --- |
| `key update` | the messages of one update, which turns `id` from 1 into 2 and leaves `a` at 1 |
| `unknown operation` | a message of the operation REPLACE, with the row `{"a": 1}` |
| `row` | a message with `OPERATION`, `BEFORE` and `AFTER` in their places, the paths to the two rows, a row, the update's word |
| `no image` | the operations that cannot have a row before or after them |
| `samples` | what each sample means: its change without its source, its operation's word and its row's number |

A format whose messages have one row at most has no `row`, one without rows before a change has no `key update` either,
and one that has no `samples` does not say what they mean.
"""

from __future__ import annotations

from functools import cache
from typing import Any

from cdcavro.exact.jsontext import parse, render
from support.places import TESTS

SIDES = ("before", "after")


@cache
def facts_of(format: str) -> dict[str, Any]:
    """Return the facts of a format."""
    facts: dict[str, Any] = parse((TESTS / "formats" / "facts" / f"{format}.json").read_bytes())
    return facts


def text_of(message: Any) -> str:
    """Return a message as compact JSON text."""
    return render(message).decode()


def row_message(format: str, operation: str, *sides: str) -> str:
    """Write a message of an operation with the images named, the others null."""
    row = facts_of(format)["row"]
    text = text_of(row["message"]).replace("OPERATION", operation)
    for side in SIDES:
        text = text.replace(f'"{side.upper()}"', text_of(row["image"]) if side in sides else "null")
    return text
