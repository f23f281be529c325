"""Typed payloads in other hands: Confluent's deserialiser for Python, and what reads Debezium's envelopes.

Source of Debezium's shape: Debezium reference, MySQL connector, "Data change events": the schemas
printed under "Change event keys" and "create events", the fields described under them, and "truncate
events". Of what readers take: Apache Flink, the format debezium-avro-confluent
(`DebeziumAvroDeserializationSchema`, `DebeziumAvroDecodingFormat`); Apache Hudi, `MysqlDebeziumSource`.
"""

from __future__ import annotations

import json
from typing import Any

import pytest
from confluent_kafka.schema_registry import Schema, SchemaRegistryClient
from confluent_kafka.schema_registry.avro import AvroDeserializer
from confluent_kafka.serialization import MessageField, SerializationContext

from cdcavro.change.model import Change, Source
from cdcavro.table.history import Table
from cdcavro.table.tables import Tables, TypedChange
from support.messages import shop_debezium
from support.shop_tables import MESSAGES, is_same, moved, orders, read, shop

READ = {"orders_v3": 21, "all_types": 13, "we ird-tab.le": 3}
# What a field of Debezium's `source` is in ours, as both have it in Avro.
DEBEZIUM_SOURCE = {
    "version": "none",
    "connector": "the same",
    "name": "none",
    "ts_ms": "the same",
    "snapshot": "the same",
    "db": "the same",
    "sequence": "none",
    "ts_us": "the same",
    "ts_ns": "none",
    "table": "the same",
    "server_id": "none",
    "gtid": "none",
    "file": "none",
    "pos": "none",
    "row": "none",
    "thread": "none",
    "query": "none",
}
DOCUMENTED_TYPES = {"connector": "string", "ts_ms": "long", "db": "string", "table": "string"}


def framed(payload: bytes, number: int) -> bytes:
    """Put Confluent's frame around a payload: a zero byte, then the schema's number in four bytes."""
    return b"\0" + number.to_bytes(4, "big") + payload


def registered(client: SchemaRegistryClient, table: Table, part: str) -> dict[int, int]:
    """Store the schemas of all versions, and give their numbers by version."""
    subject = f"{table.schema.full_name}-{part}"
    return {
        one.version: client.register_schema(subject, Schema(getattr(one, part).json, "AVRO"))
        for one in table.versions
        if getattr(one, part) is not None
    }


def of_tables(producer: str) -> dict[str, list[TypedChange]]:
    """Return the changes of the tables that are read here."""
    found: dict[str, list[TypedChange]] = {name: [] for name in READ}
    for one in shop(producer)[1]:
        if one.table.schema.table.table in found:
            found[one.table.schema.table.table].append(one)
    return found


@pytest.mark.parametrize("producer", MESSAGES)
@pytest.mark.parametrize("part", ["envelope", "key"])
def test_confluents_deserialiser_reads_every_version_under_the_newest(producer: str, part: str):
    """Framed payloads and a registry of all versions give what fastavro reads with the same two schemas."""
    client = SchemaRegistryClient.new_client({"url": "mock://shop"})
    context = SerializationContext("shop", MessageField.VALUE if part == "envelope" else MessageField.KEY)
    counts = {}
    for name, payloads in of_tables(producer).items():
        table = payloads[0].table
        numbers = registered(client, table, part)
        newest = AvroDeserializer(client, getattr(table.schema, part).json)
        own = AvroDeserializer(client)
        for one in payloads:
            payload, writer = one.payload if part == "envelope" else one.key, getattr(one.schema, part)
            if payload is None:
                continue
            message = framed(payload, numbers[one.schema.version])
            assert is_same(newest(message, context), read(payload, writer, getattr(table.schema, part)))
            assert is_same(own(message, context), read(payload, writer, writer))
            counts[name] = counts.get(name, 0) + 1
    is_short = producer == "debezium" or part == "key"
    assert counts == READ | ({"orders_v3": READ["orders_v3"] - 1} if is_short else {})


def nullable(declared: Any) -> list[Any]:
    """Return the type of an optional field."""
    return ["null", declared]


@pytest.mark.parametrize("producer", MESSAGES)
def test_the_envelope_has_the_shape_that_debezium_documents(producer: str):
    """`before` and `after` are optional and of one record, Value; `source` is a record, `op` a string, `ts_ms` optional."""
    for schema in (schema for table in shop(producer)[0].tables for schema in table.versions):
        envelope, row = json.loads(schema.envelope.json), json.loads(schema.row.json)
        space = envelope["namespace"]
        fields = {one["name"]: one for one in envelope["fields"]}
        assert list(fields) == ["before", "after", "source", "op", "ts_ms", "ts_us"]
        assert (envelope["name"], row["name"], row["namespace"]) == ("Envelope", "Value", space)
        assert fields["before"]["type"] == nullable(row)
        assert fields["after"]["type"] == nullable(f"{space}.Value")
        assert fields["source"]["type"]["type"] == "record"
        assert fields["op"]["type"] == "string"
        assert fields["ts_ms"]["type"] == fields["ts_us"]["type"] == nullable("long")
        assert all(fields[name]["default"] is None for name in ("before", "after", "ts_ms"))
        assert all("default" not in fields[name] for name in ("source", "op"))
        if schema.key is not None:
            key = json.loads(schema.key.json)
            assert (key["namespace"], key["name"], key["type"]) == (space, "Key", "record")
            true_names = [one["cdc"]["column"] for one in key["fields"] if "cdc" in one]
            assert true_names == list(schema.key_names)


def test_source_has_the_documented_fields_that_readers_take():
    """Flink takes each that there is, by name, with null for the others; Hudi's MySQL source also wants name and pos."""
    envelope = json.loads(orders("canal")[0].schema.envelope.json)
    ours = {one["name"]: one["type"] for one in envelope["fields"][2]["type"]["fields"]}
    sent = [list(json.loads(line)["value"]["source"]) for line in shop_debezium() if b'"op":"c"' in line]
    assert sent[0] == list(DEBEZIUM_SOURCE)
    assert {name for name, what in DEBEZIUM_SOURCE.items() if what != "none"} == set(ours) & set(DEBEZIUM_SOURCE)
    assert {name: ours[name] for name in DOCUMENTED_TYPES} == {
        name: nullable(declared) for name, declared in DOCUMENTED_TYPES.items()
    }
    # Debezium's own is a string too, of true, last, false and incremental; the reference still prints a boolean.
    assert ours["snapshot"] == nullable("string")


def test_what_is_the_same_in_source_has_debeziums_own_values():
    """Times and names in our envelope are those of the message that Debezium sent."""
    lines = shop_debezium()
    compared = 0
    for typed in shop("debezium")[1]:
        found, sent = moved(typed).source, json.loads(lines[typed.change.place.line - 1])["value"]
        for name in (name for name, what in DEBEZIUM_SOURCE.items() if what == "the same"):
            assert found[name] == sent["source"][name]
            compared += 1
        envelope = read(typed.payload, typed.schema.envelope, typed.schema.envelope)
        assert (envelope["ts_ms"], envelope["ts_us"]) == (sent["ts_ms"], sent["ts_us"])
        assert envelope["op"] == sent["op"]
    assert compared == 180 * 6


def test_operations_have_debeziums_letters_and_images():
    """The letters c and r have after, d has before, u has both, t has neither."""
    row = {"id": 1}
    tables, source = Tables(), Source(database="shop", table="t")
    both = {
        "INSERT": {"after": row},
        "UPDATE": {"before": row, "after": row},
        "DELETE": {"before": row},
        "SNAPSHOT": {"after": row},
    }
    made = [one for op, images in both.items() for one in tables.add(Change(op=op, source=source, **images))]
    made += tables.add(Change(op="TRUNCATE", source=source))
    found = [moved(one) for one in made]
    assert [(one.op, one.before is not None, one.after is not None) for one in found] == [
        ("c", False, True),
        ("u", True, True),
        ("d", True, False),
        ("r", False, True),
        ("t", False, False),
    ]
    assert [one.source["snapshot"] for one in found] == ["false", "false", "false", "true", "false"]


def test_a_column_renamed_twice_is_read_through_both_its_older_names():
    """Aliases accumulate: what the first version wrote has the third's name."""
    tables, source = Tables(), Source(db_type="mysql", database="shop", table="t")
    tables.add(Change(op="CREATE", source=source, ddl="CREATE TABLE t (a INT)", position=(1,)))
    (first,) = tables.add(Change(op="INSERT", source=source, after={"a": 1}, position=(2,)))
    for position, (old, new) in enumerate(("ab", "bc"), 3):
        tables.add(
            Change(op="ALTER", source=source, ddl=f"ALTER TABLE t RENAME COLUMN {old} TO {new}", position=(position,))
        )
    assert (first.table.schema.version, moved(first).after) == (3, {"c": 1})


def test_a_changed_key_is_two_changes_also_where_only_the_statement_says_the_key():
    """CREATE TABLE says it, the change does not: a reader that merges by key deletes the old row."""
    tables, source = Tables(), Source(db_type="mysql", database="shop", table="t")
    tables.add(Change(op="CREATE", source=source, ddl="CREATE TABLE t (id INT PRIMARY KEY, v INT)"))
    before, after = {"id": 1, "v": 5}, {"id": 2, "v": 5}
    made = tables.add(Change(op="UPDATE", source=source, before=before, after=after))
    assert [moved(one)[1:5] for one in made] == [("d", (1,), before, None), ("c", (2,), None, after)]
    made = tables.add(Change(op="UPDATE", source=source, before=after, after=after | {"v": 6}))
    assert [moved(one)[1:5] for one in made] == [("u", (2,), after, after | {"v": 6})]
    made = tables.add(Change(op="UPDATE", source=source, before=after, after={"v": 7}))
    assert [one.change.op for one in made] == ["UPDATE"]
