"""Kafka records as JSON objects, with a message of any format as their value.

    {"topic": "shop", "partition": 0, "offset": 41, "timestamp": 1700000000000, "key": null, "value": {...}}

A message in a Kafka record is a message of its format: the payload has the fields of the value, and the
other members of the record are together in `extras`, as the text of an object, under the key `kafka`,
which no JSON pointer can be. A format whose wire schema describes Kafka records itself, with a member
`value`, takes them as they are.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from cdcavro.errors import PayloadError, TextError, shown
from cdcavro.exact.jsontext import parse

if TYPE_CHECKING:
    from collections.abc import Iterable

KAFKA: Final = "kafka"
KEY: Final = "key"
VALUE: Final = "value"
# The names that Kafka's clients and Spark's source of Kafka use.
_MEMBERS: Final = frozenset(
    {
        *("topic", "partition", "offset", "timestamp", "timestampType", "timestamp_type"),
        *("key", "value", "headers"),
    }
)


def is_kafka_record(value: Any) -> bool:
    """Return whether a JSON value is a Kafka record with an object as its value.

    >>> is_kafka_record({"topic": "shop", "value": {}}), is_kafka_record({"topic": "shop", "value": {}, "op": "c"})
    (True, False)
    """
    return type(value) is dict and type(value.get(VALUE)) is dict and value.keys() <= _MEMBERS


def is_tombstone(value: Any) -> bool:
    """Return whether a JSON value is a Kafka record without a value, but with an object as its key.

    >>> is_tombstone({"topic": "shop", "key": {"id": 1}, "value": None}), is_tombstone({"key": 1, "value": None})
    (True, False)
    """
    is_of_key = type(value) is dict and type(value.get(KEY)) is dict and value.keys() <= _MEMBERS
    return is_of_key and value.get(VALUE, value) is None


def lacks_value(value: dict[str, Any]) -> bool:
    """Return whether an object is a Kafka record, of a topic that it names, without a value.

    >>> lacks_value({"topic": "shop", "key": 1, "value": None}), lacks_value({"key": 1, "value": None})
    (True, False)
    """
    return "topic" in value and value.keys() <= _MEMBERS and value.get(VALUE) is None


def without_value(record: dict[str, Any]) -> dict[str, Any]:
    """Return the members of a Kafka record other than its value."""
    return {name: member for name, member in record.items() if name != VALUE}


def wrap_message(message: dict[str, Any], text: str) -> dict[str, Any]:
    """Return the Kafka record around a message; `text` is that of its other members. Raises `PayloadError`."""
    try:
        members = parse(text, above=0)
    except TextError as error:
        raise PayloadError(f"{error.expected} in extras", error.got, pointer=error.pointer) from error
    if type(members) is not dict or VALUE in members or not members.keys() <= _MEMBERS:
        raise PayloadError("the members of a Kafka record in extras", shown(text))
    return {**members, VALUE: message}


def unwraps_records(names: Iterable[str]) -> bool:
    """Return whether messages of a format with these members are the values of Kafka records, and not the records."""
    return VALUE not in names
