"""An envelope of Debezium's as a converter of Kafka Connect's declares it in Avro, written by fastavro."""

from __future__ import annotations

import copy
import io
from typing import Any, Final

import fastavro

from support.wire import field, record

DECIMAL: Final = {
    "type": "bytes",
    "scale": 2,
    "precision": 10,
    "connect.version": 1,
    "connect.parameters": {"scale": "2", "connect.decimal.precision": "10"},
    "connect.name": "org.apache.kafka.connect.data.Decimal",
    "logicalType": "decimal",
}
_NAMED: Final = {"type": "string", "connect.parameters": {"__debezium.source.column.name": "odd-name"}}
MICROSECONDS: Final = {"type": "long", "connect.version": 1, "connect.name": "io.debezium.time.MicroTimestamp"}
COLUMNS: Final = (
    field("id", "int"),
    field("small", {"type": "int", "connect.type": "int16", "connect.default": 5}),
    field("price", DECIMAL),
    {"name": "at", "type": ["null", MICROSECONDS], "default": None},
    field("note", "string"),
    {"name": "odd_name", "type": ["null", _NAMED], "default": None},
)
_SOURCE: Final = record(
    *[field(name, "string") for name in ("version", "connector", "name")],
    field("ts_ms", "long"),
    *[field(name, "string") for name in ("db", "table")],
    field("server_id", "long"),
    field("file", "string"),
    field("pos", "long"),
    field("row", "int"),
    name="io.debezium.connector.mysql.Source",
) | {"connect.name": "io.debezium.connector.mysql.Source"}


def envelope_of(*columns: dict[str, Any]) -> dict[str, Any]:
    """Return the schema of an envelope whose rows have these columns."""
    name = "srv.shop.orders.Value"
    row = record(*columns, name=name) | {"connect.name": name}
    return record(
        {"name": "before", "type": ["null", row], "default": None},
        {"name": "after", "type": ["null", name], "default": None},
        field("source", _SOURCE),
        field("op", "string"),
        {"name": "ts_ms", "type": ["null", "long"], "default": None},
        name="srv.shop.orders.Envelope",
    ) | {"connect.version": 1, "connect.name": "srv.shop.orders.Envelope"}


ENVELOPE: Final = envelope_of(*COLUMNS)
KEY: Final = record(field("id", "int"), name="srv.shop.orders.Key") | {"connect.name": "srv.shop.orders.Key"}
HEARTBEAT: Final = record(field("ts_ms", "long"), name="io.debezium.connector.common.Heartbeat") | {
    "connect.name": "io.debezium.connector.common.Heartbeat"
}
ROW: Final = {
    "id": 7,
    "small": -3,
    "price": b"\x00\xc8",
    "at": 1_700_000_000_123_456,
    "note": "naïve",
    "odd_name": None,
}


def envelope(
    op: str, after: dict[str, Any] | None, before: dict[str, Any] | None = None, pos: int = 390
) -> dict[str, Any]:
    """Return the datum of a change."""
    source = {"version": "3.5.0.Final", "connector": "mysql", "name": "srv", "db": "shop", "table": "orders"}
    place = {"file": "bin.000003", "ts_ms": 1_700_000_000_000, "server_id": 1, "pos": pos, "row": 0}
    return {"before": before, "after": after, "source": source | place, "op": op, "ts_ms": 1_700_000_000_500}


def written(declared: dict[str, Any], datum: Any) -> bytes:
    """Return the payload of a datum, as fastavro writes it; logical types are left out, so that values are Avro's own."""
    out = io.BytesIO()
    fastavro.schemaless_writer(out, plain(copy.deepcopy(declared)), datum)
    return out.getvalue()


def plain(declared: Any) -> Any:
    """Return a schema without logical types."""
    if isinstance(declared, list):
        return [plain(one) for one in declared]
    if isinstance(declared, dict):
        return {name: plain(value) for name, value in declared.items() if name != "logicalType"}
    return declared
