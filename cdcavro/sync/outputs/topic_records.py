"""Records of Kafka topics: their headers, what stands before payloads, their partitions, and what Kafka may refuse."""

from __future__ import annotations

import zlib
from decimal import Context, Decimal
from typing import TYPE_CHECKING, Final

from cdcavro.avro.binary import Decoder
from cdcavro.avro.schema import parse_schema
from cdcavro.avro.types import Primitive, Record, Union, logical_type
from cdcavro.errors import JobError
from cdcavro.exact.jsontext import render
from cdcavro.lake.typed_rows import DROP, TRUNCATE
from cdcavro.registry import frame
from cdcavro.sync.outputs.sink_settings import BLOB
from cdcavro.table.table_schema import UNPARSED

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from cdcavro.avro.schema import Schema
    from cdcavro.avro.types import Type
    from cdcavro.sync.outputs.sink_settings import KafkaTopics
    from cdcavro.sync.outputs.writer import SchemaIds
    from cdcavro.table.ddl.steps import TableName

JOB: Final = "cdcavro.job"
TABLE: Final = "cdcavro.table"
BATCH: Final = "cdcavro.batch"
ORDER: Final = "cdcavro.order"
# The headers of the record that a change comes from, as JSON.
CAME_WITH: Final = "cdcavro.headers"
# A tombstone comes right behind its delete: no order is the beginning of another.
BEHIND: Final = b"\0"
# The id of a topic, as Kafka writes it, where brokers are too old to have one.
NO_TOPIC_ID: Final = "A" * 22
UNKNOWN_TOPIC: Final = "UnknownTopicOrPartitionException"
# How a broker refuses one topic, or the records for it: the names of Kafka's client for Java, with the protocol's codes.
REFUSALS: Final = {
    "InvalidRecordException": 87,
    "InvalidTopicException": 17,
    "PolicyViolationException": 44,
    "RecordTooLargeException": 10,
    "TopicAuthorizationException": 29,
    UNKNOWN_TOPIC: 3,
}
# Kafka's code for a number of partitions or replicas that the brokers choose.
CHOSEN_BY_BROKERS: Final = -1
_EXACT: Final = Context(prec=1_000_000)


class TopicRefusedError(JobError):
    """The cluster refuses to create or to show a topic, or a record for it."""


def identity_of(topics: KafkaTopics, cluster: str) -> str:
    """Return what identifies topics, whatever brokers are named; `cluster` is the id of the cluster."""
    return f"the topics {topics.topic} of the Kafka cluster {cluster}"


def left_out(topics: KafkaTopics) -> tuple[str, ...]:
    """Return the operations of rows that are no records."""
    return (DROP,) if topics.truncates else (DROP, TRUNCATE)


def headers_of(job: str, batch: int, table: int | None = None) -> dict[str, bytes]:
    """Return the headers of all records of a batch, or of a batch's table with a number, without their order."""
    texts = {JOB: job} | ({} if table is None else {TABLE: str(table)}) | {BATCH: str(batch)}
    return {name: text.encode() for name, text in texts.items()}


def value_prefixes(ids: Mapping[int, SchemaIds]) -> dict[int, bytes]:
    """Return what stands before the values of each version whose schemas have ids."""
    return {version: frame(b"", own.value) for version, own in ids.items()}


def key_prefixes(ids: Mapping[int, SchemaIds]) -> dict[int, bytes]:
    """Return what stands before the keys of each version whose schemas have ids."""
    return {version: frame(b"", own.key) for version, own in ids.items() if own.key is not None}


def shards(
    strategy: str,
    count: int,
    table: TableName,
    keys: Mapping[int, str],
    rows: Iterable[tuple[int, bytes | None, bytes | None]],
) -> Iterator[int]:
    """Yield the shards of rows, from 0 to `count` - 1, made of their version, key and order.

    By the rules of DataHub, the shard is that of the key's values. They are those of `cdcavro.shard` for a key of
    integers, texts and decimals; a key with any other value is taken as it is encoded. `keys` has the texts of the
    keys' schemas by version. Without a key, the shard is that of the table's name; with `tuple` it is any, but chosen
    by the row's order, so that it is the same if a batch is run again.
    """
    parsed = {version: parse_schema(text) for version, text in keys.items()}
    name = [table.database, table.schema, table.table]
    for version, key, order in rows:
        if key is not None:
            said = render([*name, *key_texts(key, parsed[version])])
        else:
            said = render(name) if strategy == BLOB else order or b""
        yield zlib.crc32(said) % count


def key_texts(payload: bytes, schema: Schema) -> list[str]:
    """Return the values of a key as texts, or its bytes as one text if `cdcavro.shard` spells a value otherwise."""
    record, source, texts = schema.root, Decoder(payload), []
    for part in record.fields if isinstance(record, Record) else ():
        if part.name == UNPARSED:
            continue
        branches = part.type.branches if isinstance(part.type, Union) else (part.type,)
        branch = branches[source.read_index(len(branches), "a branch")] if len(branches) > 1 else branches[0]
        text = _key_text(source, branch)
        if text is None:
            return [payload.hex()]
        texts.append(text)
    return texts


def _key_text(source: Decoder, declared: Type) -> str | None:
    """Read a value as text, None if it is of another type."""
    if not isinstance(declared, Primitive):
        return None
    logical = logical_type(declared)
    if declared.name in ("int", "long") and logical is None:
        return str(source.read_long())
    if declared.name == "string" and logical is None:
        return source.read_bytes().decode()
    if declared.name == "bytes" and logical is not None:
        unscaled = Decimal(int.from_bytes(source.read_bytes(), "big", signed=True))
        return format(unscaled.scaleb(-logical.scale, _EXACT), "f")
    return None
