"""Typed payloads as a converter of Kafka Connect's would have written them for Debezium's envelopes.

The layout of a typed envelope is Debezium's already. What differs:

* Types have Connect's names (`connect.name`), by which Debezium's consumers know a decimal, a date or JSON, in place of
  Avro's logical types for times. A column whose name is none in Avro states its true one.
* A row has its columns and nothing else: not the texts of values that their types cannot hold, nor the names of columns
  that the message did not have. Both are null, and nothing tells that any more.
* An instant is a `MicroTimestamp`, as a local time is: nothing tells them apart. An enum is a plain string.
"""

from __future__ import annotations

import json
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from cdcavro.avro.schema import Schema, parse_schema
from cdcavro.avro.translation import translator
from cdcavro.avro.translation_program import pair_program
from cdcavro.engine.machine import Translator
from cdcavro.errors import JobError
from cdcavro.formats.connect_avro import TRUE_NAME

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

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
