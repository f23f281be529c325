"""The shop's messages as records of Kafka's: in one partition as they came, or through several as `shop_streams` sends them."""

from __future__ import annotations

from typing import Final

from msgspec import Raw
from msgspec.json import decode, encode

from support.kafka_server import Record
from support.shop_streams import Message, shuffled
from support.shop_tables import MESSAGES

_NULL: Final = Raw(b"null")


def as_came(producer: str, topic: str) -> list[Record]:
    """Return a producer's messages in the one partition of a topic."""
    return [_record(producer, message, topic, 0) for message in MESSAGES[producer]()]


def through_partitions(producer: str, seed: int, prefix: str) -> list[Record]:
    """Return the records of `shop_streams.shuffled`, in topics whose names begin with a prefix.

    A message with several rows is split as Canal's `partitionHash` does, and rows of a full load are those of Debezium.
    """
    stream, messages = shuffled(producer, seed), MESSAGES[producer]()
    found = []
    for placed, original in zip(stream.messages, stream.originals, strict=True):
        place = placed[0].place
        message = messages[original[0].place.line - 1]
        found.append(_record(producer, _part(message, original), f"{prefix}.{place.topic}", place.partition))
    return found


def _part(message: bytes, rows: Message) -> bytes:
    """Return a message with some of its rows; with its one row as it was read, if it belongs to a full load."""
    said = _members(message)
    if rows[0].op == "SNAPSHOT":
        value = _members(said["value"])
        source = _members(value["source"]) | {"snapshot": "true"}
        return encode(said | {"value": value | {"op": "r", "before": None, "source": source}})
    listed = {name: decode(said[name]) for name in ("data", "old") if said.get(name, _NULL) != _NULL}
    kept = [row.row for row in rows if row.row is not None]
    return encode(said | {name: [parts[i] for i in kept] for name, parts in listed.items()}) if listed else message


def _record(producer: str, message: bytes, topic: str, partition: int) -> Record:
    if producer != "debezium":
        return Record(topic, partition, None, message)
    said = _members(message)
    key, value = (None if said[name] == _NULL else bytes(said[name]) for name in ("key", "value"))
    return Record(topic, partition, key, value)


def _members(text: bytes | Raw) -> dict[str, Raw]:
    """Return the members of an object, each as it is written."""
    return decode(text, type=dict[str, Raw])
