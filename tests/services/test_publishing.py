"""Schemas of a pipeline's tables on a real registry: published once, whoever asks again, and read by Confluent's client."""

from __future__ import annotations

import pytest
from confluent_kafka.schema_registry import SchemaRegistryClient
from confluent_kafka.schema_registry.avro import AvroDeserializer
from confluent_kafka.serialization import MessageField, SerializationContext

import cdcavro
from cdcavro import registry
from cdcavro.errors import IncompatibleError
from cdcavro.sync.outputs.writer import Publisher
from cdcavro.sync.settings import RegistrySettings
from support.messages import canal

pytestmark = pytest.mark.timeout(300)


def test_versions_are_published_once_and_what_they_frame_is_read(apicurio: str):
    """A second pipeline, or the same after a crash, publishes nothing anew; a version that breaks the level is refused."""
    tables = cdcavro.Tables()
    messages = [
        canal("INSERT", [{"id": "1", "a": "x"}], id=1, table="published", mysqlType={"id": "int", "a": "text"}),
        canal(
            "INSERT",
            [{"id": "2", "a": "y", "b": "3"}],
            id=2,
            table="published",
            mysqlType={"id": "int", "a": "text", "b": "int"},
        ),
    ]
    typed = [
        one for message in messages for change in cdcavro.to_changes(message, "canal") for one in tables.add(change)
    ]
    table = typed[0].table
    settings = RegistrySettings(apicurio, topic="{name}", compatibility="FULL_TRANSITIVE")
    publisher = Publisher(settings)
    said = [publisher.publish(table, table.schema.table, version) for version in (1, 2)]
    # The key is the same, and so is its schema: a row that is written again replaces the one before in a compacted topic.
    assert [len(steps) for steps in said] == [2, 1]
    assert publisher.known(table)[1].key == publisher.known(table)[2].key
    again = Publisher(settings)
    assert [again.publish(table, table.schema.table, version) for version in (1, 2)] == [[], []]
    assert again.known(table) == publisher.known(table)
    with settings.connect() as schemas:
        assert [schemas.versions(f"d.published-{part}") for part in ("value", "key")] == [[1, 2], [1]]
    client = SchemaRegistryClient({"url": apicurio})
    read = AvroDeserializer(client)
    context = SerializationContext("d.published", MessageField.VALUE)
    ids = again.known(table)
    found = [read(registry.frame(one.payload, ids[one.schema.version].value), context) for one in typed]
    assert [(one["op"], one["after"]["id"], one["after"].get("b")) for one in found] == [("c", 1, None), ("c", 2, 3)]
    other = Publisher(RegistrySettings(apicurio, strategy="record"))
    with settings.connect() as schemas:
        foreign = '{"type":"record","name":"d.published.Envelope","fields":[{"name":"op","type":"long"}]}'
        schemas.publish(foreign, "d.published.Envelope", compatibility="FULL")
    with pytest.raises(IncompatibleError, match="is FULL, and the schema is not"):
        other.publish(table, table.schema.table, 1)
    for one in (publisher, again, other):
        one.close()
