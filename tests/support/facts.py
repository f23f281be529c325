"""The facts of formats, one file for each in `tests/formats/facts/`: tests over all formats draw their messages from these.

| fact | what it is |
| --- | --- |
| `key update` | the messages of one update, which turns `id` from 1 into 2 and leaves `a` at 1 |
| `unknown operation` | a message of the operation REPLACE, with the row `{"a": 1}` |
| `row` | a message with `OPERATION`, `BEFORE` and `AFTER` in their places, the paths to the two rows, a row, the update's word |
| `no image` | the operations that cannot have a row before or after them |
| `samples` | what each sample means: its change without its source, its operation's word and its row's number |

Of a format that reads headers of Kafka records, tests also draw each sample with its members in headers (`with_headers`).

A format whose messages have one row at most has no `row`, one without rows before a change has no `key update` either,
and one that has no `samples` does not say what they mean.
"""

from __future__ import annotations

from functools import cache
from typing import Any

from cdcavro.exact.jsontext import parse, render
from cdcavro.wire.formats import get_format
from cdcavro.wire.kafka import is_kafka_record
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


def with_headers(format: str, message: bytes) -> bytes | None:
    """Return a message as a Kafka record whose headers state the members that the format reads from there.

    None if that is no other message: the format reads none, the message is a record itself, or it has none of them.
    """
    value, names = parse(message), get_format(format).headers
    stated = {name: member for name, member in value.items() if name in names}
    if not stated or is_kafka_record(value):
        return None
    texts = [one if isinstance(one, str | None) else text_of(one) for one in stated.values()]
    headers = [part for pair in zip(stated, texts, strict=True) for part in pair]
    rest = {name: member for name, member in value.items() if name not in stated}
    return render({"topic": "t", "headers": headers, "key": None, "value": rest or None})


def row_message(format: str, operation: str, *sides: str, empty: str | None = None) -> str:
    """Write a message of an operation with the images named, the others null; the image `empty` has no column."""
    row = facts_of(format)["row"]
    text, image = text_of(row["message"]).replace("OPERATION", operation), text_of(row["image"])
    for side in SIDES:
        one = image.replace(text_of({"a": 1}), "{}") if side == empty else image if side in sides else "null"
        text = text.replace(f'"{side.upper()}"', one)
    return text
