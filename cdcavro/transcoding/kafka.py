"""Kafka records around messages: what they say about the changes in them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cdcavro.change.model import DML, Arrival, Change, Row, replace
from cdcavro.exact.diff import same_text
from cdcavro.exact.numbers import MAX_LONG

if TYPE_CHECKING:
    from collections.abc import Sequence


def with_record(changes: Sequence[Change], record: dict[str, Any] | None) -> list[Change]:
    """Return the changes of a message with what the Kafka record around it states; None if there is none.

    That is the place where it arrived and, for a row whose message does not say which columns are the key,
    the record's key, if that is an object of columns of the row with the values that the row has, by their text:
    a producer may spell in the key as a number what its message has as a string.
    """
    if record is None:
        return list(changes)
    place, key = _place(record), _key(record)
    return [
        replace(change, place=place, key=tuple(key) if _is_key_of(key, change) else change.key) for change in changes
    ]


def _place(record: dict[str, Any]) -> Arrival | None:
    topic = record.get("topic")
    place = Arrival(
        topic=topic if type(topic) is str else None,
        partition=_count(record.get("partition")),
        offset=_count(record.get("offset")),
    )
    return None if place == Arrival() else place


def _count(value: Any) -> int | None:
    return value if type(value) is int and 0 <= value <= MAX_LONG else None


def _key(record: dict[str, Any]) -> Row:
    key = record.get("key")
    if type(key) is dict and key.keys() == {"schema", "payload"}:
        key = key["payload"]
    return key if type(key) is dict else {}


def _is_key_of(key: Row, change: Change) -> bool:
    if not key or change.key is not None or change.op not in DML:
        return False
    image = change.before if change.after is None else change.after
    return image is not None and all(name in image and same_text(key[name], image[name]) for name in key)
