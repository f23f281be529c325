"""The newer form of framing, by GUID in Kafka's header: Confluent's serialisers and we read each other."""

from __future__ import annotations

import json
from uuid import UUID

import pytest
from confluent_kafka.schema_registry import SchemaRegistryClient, header_schema_id_serializer
from confluent_kafka.schema_registry.avro import AvroDeserializer, AvroSerializer
from confluent_kafka.serialization import MessageField, SerializationContext

import cdcavro
from cdcavro import registry
from cdcavro.registry.client import Registry
from cdcavro.registry.framing import KEY_HEADER, VALUE_HEADER
from cdcavro.registry.server_backend import ServerRegistry
from support.wire import field, record

SCHEMA = json.dumps(record(field("x", "string"), name="a.R"))
# Confluent's reader refuses values of less than six bytes, also those whose schema the header tells.
RECORD, PAYLOAD = {"x": "seven"}, b"\x0aseven"


@pytest.fixture
def client() -> SchemaRegistryClient:
    """Confluent's own stand-in for a registry: it has GUIDs, which Apicurio has not."""
    return SchemaRegistryClient.new_client({"url": "mock://guids"})


@pytest.fixture
def schemas(client) -> Registry:
    """Ours, by the same client."""
    return Registry(ServerRegistry("mock://guids", client))


@pytest.mark.parametrize(("kind", "header"), [(MessageField.VALUE, VALUE_HEADER), (MessageField.KEY, KEY_HEADER)])
def test_we_read_what_confluent_writes_with_a_header(client, schemas, kind, header):
    """The payload has no prefix; the header tells its schema."""
    context = SerializationContext("t", kind, headers={})
    write = AvroSerializer(client, SCHEMA, conf={"schema.id.serializer": header_schema_id_serializer})
    value = write(RECORD, context)
    found, payload = schemas.open(value, header=context.headers[header])
    assert (json.loads(found.schema.json), payload) == (json.loads(SCHEMA), PAYLOAD)


def test_confluent_reads_what_we_write_with_a_header(client):
    """As a list of headers, as Kafka has them, or before the payload."""
    client.register_schema("t-value", AvroSerializer(client, SCHEMA)._schema)
    guid = client.lookup_schema("t-value", AvroSerializer(client, SCHEMA)._schema).guid
    header = registry.frame(b"", registry.Guid(UUID(guid)))
    read = AvroDeserializer(client)
    assert read(PAYLOAD, SerializationContext("t", MessageField.VALUE, headers=[(VALUE_HEADER, header)])) == RECORD
    assert read(header + PAYLOAD, SerializationContext("t", MessageField.VALUE)) == RECORD


def test_a_guid_that_nobody_has_is_a_bad_payload(schemas):
    """As an id that nobody has."""
    guid = UUID(int=1)
    with pytest.raises(cdcavro.PayloadError) as caught:
        schemas.open(PAYLOAD, header=registry.frame(b"", registry.Guid(guid)))
    assert str(caught.value) == f"message: $: expected a schema that mock://guids has, got GUID {guid}"
