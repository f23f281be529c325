"""Records of Kafka topics: headers, payloads and what stands before them, partitions, and what Kafka may refuse.

Typed payloads can be as a converter of Kafka Connect's would have written them for Debezium's envelopes. The layout of
a typed envelope is Debezium's already. What differs:

* Types have Connect's names (`connect.name`), by which Debezium's consumers know a decimal, a date or JSON, in place of
  Avro's logical types for times. A column whose name is none in Avro states its true one.
* A row has its columns and nothing else: not the texts of values that their types cannot hold, nor the names of columns
  that the message did not have. Both are null, and nothing tells that any more.
* An instant is a `MicroTimestamp`, as a local time is: nothing tells them apart. An enum is a plain string.
"""

from __future__ import annotations

import json
import zlib
from decimal import Context, Decimal
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from cdcavro.avro.binary import Decoder
from cdcavro.avro.schema import Schema, parse_schema
from cdcavro.avro.translation import translator
from cdcavro.avro.translation_program import pair_program
from cdcavro.avro.types import Primitive, Record, Union, logical_type
from cdcavro.engine.machine import Translator
from cdcavro.errors import JobError
from cdcavro.exact.jsontext import render
from cdcavro.formats.connect_avro import TRUE_NAME
from cdcavro.lake.typed_rows import DROP, TRUNCATE
from cdcavro.registry import frame
from cdcavro.sync.outputs.sink_settings import BLOB
from cdcavro.table.table_schema import UNPARSED

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from cdcavro.avro.types import Type
    from cdcavro.sync.outputs.sink_settings import KafkaTopics
    from cdcavro.sync.outputs.writer import SchemaIds
    from cdcavro.table.ddl.steps import TableName
    from cdcavro.table.table_schema import TableSchema

    Translate = Callable[[bytes], bytes]

_TIMES: Final = {
    "date": "io.debezium.time.Date",
    "time-millis": "io.debezium.time.Time",
    "time-micros": "io.debezium.time.MicroTime",
    "timestamp-millis": "io.debezium.time.Timestamp",
    "timestamp-micros": "io.debezium.time.MicroTimestamp",
    "timestamp-nanos": "io.debezium.time.NanoTimestamp",
    "local-timestamp-millis": "io.debezium.time.Timestamp",
    "local-timestamp-micros": "io.debezium.time.MicroTimestamp",
    "local-timestamp-nanos": "io.debezium.time.NanoTimestamp",
    "uuid": "io.debezium.data.Uuid",
}
# By what a declared type begins with, and the type in Avro.
_DECLARED: Final = {
    ("year", "int"): "io.debezium.time.Year",
    ("json", "string"): "io.debezium.data.Json",
    ("jsonb", "string"): "io.debezium.data.Json",
    ("xml", "string"): "io.debezium.data.Xml",
}
_DECIMAL: Final = "org.apache.kafka.connect.data.Decimal"
# Members of every source of Debezium's that no change states.
_OF_A_SOURCE: Final = [{"name": name, "type": "string", "default": "cdcavro"} for name in ("version", "name")]
_BLOCK: Final = {
    "type": "record",
    "name": "block",
    "namespace": "event",
    "connect.name": "event.block",
    "connect.version": 1,
    "fields": [
        {"name": "id", "type": "string"},
        {"name": "total_order", "type": "long"},
        {"name": "data_collection_order", "type": "long"},
    ],
}


class ConnectSchemas(NamedTuple):
    """The schemas of a table's version as a converter of Connect's has them."""

    envelope: Schema
    # None without a key.
    key: Schema | None


@lru_cache(maxsize=64)
def connect_schemas(schema: TableSchema, name: TableName | None = None) -> ConnectSchemas:
    """Return the schemas with Connect's types for a version of a table; with `name`, the key has that table's name."""
    envelope = json.loads(schema.envelope.json)
    columns = {column.field for column in schema.columns}
    before, after, source, *others = envelope["fields"]
    row = _record(before["type"][1], columns)
    source["type"] = _record(source["type"], None)
    source["type"]["fields"] += _OF_A_SOURCE
    before = {"name": "before", "type": ["null", row], "default": None}
    after = {"name": "after", "type": after["type"], "default": None}
    transaction = {"name": "transaction", "type": ["null", _BLOCK], "default": None}
    whole = _record(envelope, None) | {"fields": [before, after, source, *others, transaction]}
    key = schema.key if name is None else schema.key_named(name)
    own_key = None if key is None else parse_schema(json.dumps(_key(json.loads(key.json), row)))
    return ConnectSchemas(parse_schema(json.dumps(whole | {"connect.version": 1})), own_key)


def _key(declared: dict[str, Any], row: dict[str, Any]) -> dict[str, Any]:
    """Return the record of a key, whose fields are those of the row's columns."""
    by_name = {field["name"]: field for field in row["fields"]}
    fields = [by_name[field["name"]] for field in declared["fields"] if field["name"] in by_name]
    return _record(declared, set()) | {"fields": fields}


def _record(declared: dict[str, Any], columns: set[str] | None) -> dict[str, Any]:
    """Return a record under its name of Connect's, with the fields of columns only, unless all are wanted."""
    full = ".".join(filter(None, (declared.get("namespace"), declared["name"])))
    fields = [field for field in declared["fields"] if columns is None or field["name"] in columns]
    made = {name: value for name, value in declared.items() if name not in ("cdc", "doc")}
    return made | {"fields": [*map(_field, fields)], "connect.name": full}


def _field(field: dict[str, Any]) -> dict[str, Any]:
    facts = field.get("cdc")
    made = {name: value for name, value in field.items() if name not in ("cdc", "doc")}
    if facts is None:
        return made
    others = [one for one in field["type"] if one != "null"] if type(field["type"]) is list else []
    if len(others) == 1:
        own = _type(others[0], str(facts.get("type") or ""))
        if facts.get("column") not in (None, field["name"]):
            own["connect.parameters"] = {**own.get("connect.parameters", {}), TRUE_NAME: facts["column"]}
        made["type"] = ["null", own]
    return made


def _type(declared: Any, text: str) -> dict[str, Any]:
    """Return a type with its name of Connect's, if it has one; `text` is the column's declared type."""
    own = dict(declared) if type(declared) is dict else {"type": declared}
    logical = own.get("logicalType")
    if logical == "decimal":
        scale = {"scale": str(own.get("scale", 0)), "connect.decimal.precision": str(own["precision"])}
        return own | {"connect.name": _DECIMAL, "connect.version": 1, "connect.parameters": scale}
    name = _TIMES.get(str(logical)) or _DECLARED.get((text.partition("(")[0].lower(), own["type"]))
    if name is None:
        return own
    own.pop("logicalType", None)
    return own | {"connect.name": name, "connect.version": 1}


class ConnectPayloads:
    """Turns the typed payloads of a table's versions into payloads of Connect's schemas.

    `versions` has the texts of schemas by version, those of values or of keys: of the typed payloads, and of Connect's.
    """

    def __init__(self, versions: dict[int, tuple[str, str]]) -> None:
        self._versions = versions

    @classmethod
    def of(cls, schemas: Iterable[TableSchema], *, is_key: bool) -> ConnectPayloads:
        """Return what turns the values or the keys of a table's versions."""
        versions = {}
        for schema in schemas:
            made = connect_schemas(schema)
            pair = (schema.key, made.key) if is_key else (schema.envelope, made.envelope)
            if pair[0] is not None and pair[1] is not None:
                versions[schema.version] = (pair[0].json, pair[1].json)
        return cls(versions)

    def translate(self, version: int, payload: bytes) -> bytes:
        """Return a payload of a version under Connect's schema. Raises `JobError` for a version without one."""
        texts = self._versions.get(version)
        if texts is None:
            raise JobError(f"there is no schema of version {version}")
        return _translate(*texts)(payload)


@lru_cache(maxsize=64)
def _translate(writer: str, reader: str) -> Translate:
    """Return the function from payloads of one schema to those of another, as the engine does it where it can."""
    schemas = parse_schema(writer), parse_schema(reader)
    exact = translator(*schemas, reinterpret=True)
    engine = Translator(pair_program(*schemas, reinterpret=True))

    def translate(payload: bytes) -> bytes:
        made = engine.translate(payload)
        return exact(payload) if made is None else made

    return translate


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
