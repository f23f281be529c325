"""Typed payloads as Debezium's Avro: what a reader of Connect's makes of them, and what is lost."""

from __future__ import annotations

import io
import json
from datetime import UTC
from typing import Any

import fastavro
import pytest

import cdcavro
from cdcavro.avro.schema import parse_schema
from cdcavro.avro.translation import translator
from cdcavro.errors import JobError
from cdcavro.formats.connect_avro import ConnectReader
from cdcavro.sync.outputs.topic_records import ConnectPayloads, connect_schemas
from cdcavro.table.tables import TypedChange
from support.connect_envelopes import plain
from support.messages import canal

TYPES = {
    "id": "bigint unsigned",
    "price": "decimal(10,2)",
    "made": "datetime(3)",
    "sent": "timestamp",
    "day": "date",
    "clock": "time",
    "born": "year",
    "doc": "json",
    "odd-name": "varchar(9)",
    "flag": "int",
}
ROW = {
    "id": "7",
    "price": "1.20",
    "made": "2024-02-29 12:00:00.5",
    "sent": "2024-02-29 12:00:00",
    "day": "2024-02-29",
    "clock": "12:00:00",
    "born": "2024",
    "doc": '{"a":1}',
    "odd-name": "x",
    "flag": "3",
}
NAMES = {
    "price": "org.apache.kafka.connect.data.Decimal",
    "made": "io.debezium.time.MicroTimestamp",
    "sent": "io.debezium.time.MicroTimestamp",
    "day": "io.debezium.time.Date",
    "clock": "io.debezium.time.MicroTime",
    "born": "io.debezium.time.Year",
    "doc": "io.debezium.data.Json",
}


def typed(row: dict[str, Any]) -> TypedChange:
    """Return the typed change of an insert."""
    message = json.loads(canal("INSERT", [row], id=1))
    message |= {"mysqlType": {name: TYPES[name] for name in row}, "pkNames": ["id"]}
    (change,) = cdcavro.to_changes(json.dumps(message), "canal")
    (made,) = cdcavro.Tables(zone=UTC).add(change)
    return made


def translated(change: TypedChange) -> tuple[bytes, bytes]:
    """Return the value and the key for Debezium's consumers."""
    both = [ConnectPayloads.of([change.schema], is_key=is_key) for is_key in (False, True)]
    assert change.key is not None
    return both[0].translate(1, change.payload), both[1].translate(1, change.key)


def test_a_typed_change_becomes_an_envelope_with_connects_types():
    """Under the true names, with the values that it had, and nothing beside the columns; the key likewise."""
    change = typed(ROW)
    value, key = translated(change)
    made = connect_schemas(change.schema)
    text = json.loads(ConnectReader(made.envelope).text(value))
    (after,) = [one for one in text["schema"]["fields"] if one["field"] == "after"]
    assert {one["field"]: one.get("name") for one in after["fields"]} == {
        name: NAMES.get(name, "org.apache.kafka.connect.data.Decimal" if name == "id" else None) for name in TYPES
    }
    assert text["schema"]["name"].endswith("d.t.Envelope")
    payload = text["payload"]
    assert payload["after"]["price"] == "eA=="
    assert (payload["after"]["day"], payload["after"]["clock"]) == (19_782, 43_200_000_000)
    assert payload["after"]["made"] == 1_709_208_000_500_000
    assert (payload["op"], payload["before"], payload["transaction"]) == ("c", None, None)
    assert (payload["source"]["db"], payload["source"]["table"]) == ("d", "t")
    assert json.loads(ConnectReader(made.key, is_key=True).text(key)) == {"id": "Bw=="}


def test_what_debezium_reads_of_it_gives_the_same_row_again():
    """Through the text that its JSON converter would have written; an instant has become a local time."""
    change = typed(ROW)
    value, key = translated(change)
    made = connect_schemas(change.schema)
    texts = ConnectReader(made.key, is_key=True).text(key), ConnectReader(made.envelope).text(value)
    (again,) = cdcavro.to_changes(b'{"topic":"t","key":%s,"value":%s}' % texts, "debezium")
    (back,) = cdcavro.Tables(zone=UTC).add(again)
    rows = []
    for one in (change, back):
        declared = plain(json.loads(one.schema.envelope.json))
        rows.append(fastavro.schemaless_reader(io.BytesIO(one.payload), declared, None)["after"])
    assert rows[0] == rows[1]
    assert back.schema.key_names == change.schema.key_names == ("id",)
    changed = {
        one.name
        for one, other in zip(change.schema.columns, back.schema.columns, strict=True)
        if one.avro != other.avro
    }
    assert changed <= {"sent"}


def test_what_does_not_fit_and_what_was_not_there_is_null():
    """As the page says: nothing tells these two from a NULL any more."""
    change = typed({"id": "7", "flag": "many"})
    value, _ = translated(change)
    row = json.loads(ConnectReader(connect_schemas(change.schema).envelope).text(value))["payload"]["after"]
    assert row == {"id": "Bw==", "flag": None}


def test_the_engine_and_the_exact_way_write_the_same():
    """And a version without a schema is told."""
    change = typed(ROW)
    made = connect_schemas(change.schema)
    exact = translator(parse_schema(change.schema.envelope.json), made.envelope, reinterpret=True)
    assert translated(change)[0] == exact(change.payload) != change.payload
    with pytest.raises(JobError, match="there is no schema of version 2"):
        ConnectPayloads.of([change.schema], is_key=False).translate(2, change.payload)
