"""Kafka records as JSON objects, with a message of any format as their value.

    {"topic": "shop", "partition": 0, "offset": 41, "timestamp": 1700000000000, "key": null, "value": {...}}

A message in a Kafka record is a message of its format: the payload has the fields of the value, and the
other members of the record are together in `extras`, as the text of an object, under the key `kafka`,
which no JSON pointer can be. A format whose wire schema describes Kafka records itself, with a member
`value`, takes them as they are.
"""

from __future__ import annotations

from base64 import b64encode
from typing import TYPE_CHECKING, Any, Final

import msgspec

from cdcavro.errors import PayloadError, TextError, shown
from cdcavro.exact.jsontext import parse, render

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

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


_ONE: Final = msgspec.json.Decoder(msgspec.Raw)


def is_record(value: Any) -> bool:
    """Return whether a JSON value has the members of a Kafka record, its value among them, whatever it is.

    >>> is_record({"topic": "shop", "value": "AA=="}), is_record({"topic": "shop"}), is_record({"value": None, "op": "c"})
    (True, False, False)
    """
    return type(value) is dict and VALUE in value and value.keys() <= _MEMBERS


def record_text(members: Mapping[str, Any], key: bytes | None, value: bytes | None) -> bytes:
    """Return the JSON of a Kafka record; `value` is JSON, and so is `key`, or it becomes a string, in base64.

    >>> record_text({"topic": "shop"}, b"1:a", b'{"a":1}')
    b'{"topic":"shop","key":"MTph","value":{"a":1}}'
    """
    others = render({name: member for name, member in members.items() if name not in (KEY, VALUE)})
    own = b"null" if key is None else key if _is_json(key) else b'"%s"' % b64encode(key)
    return b"%s%s%s" % (
        others[:-1],
        b"," if len(others) > len("{}") else b"",
        b'"key":%s,"value":%s}' % (own, value or b"null"),
    )


def _is_json(text: bytes) -> bool:
    try:
        _ONE.decode(text)
    except (msgspec.MsgspecError, RecursionError):
        return False
    return True


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
