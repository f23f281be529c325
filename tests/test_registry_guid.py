"""The newer form of framing, by GUID in Kafka's header: Confluent's serialisers and we read each other."""

from __future__ import annotations

import json
from uuid import UUID

import pytest
from confluent_kafka.schema_registry import SchemaRegistryClient, header_schema_id_serializer
from confluent_kafka.schema_registry.avro import AvroDeserializer, AvroSerializer
from confluent_kafka.schema_registry.error import SchemaRegistryError
from confluent_kafka.serialization import MessageField, SerializationContext

import cdcavro
from cdcavro import registry
from cdcavro.registry.framing import KEY_HEADER, VALUE_HEADER
from support.faulty_server import Answer, serving
from support.wire import field, record

SCHEMA = json.dumps(record(field("x", "string"), name="a.R"))
# Confluent's reader refuses values of less than six bytes, also those whose schema the header tells.
RECORD, PAYLOAD = {"x": "seven"}, b"\x0aseven"


@pytest.fixture
def client() -> SchemaRegistryClient:
    """Confluent's own stand-in for a registry: it has GUIDs, which Apicurio has not."""
    return SchemaRegistryClient.new_client({"url": "mock://guids"})


@pytest.mark.parametrize(("kind", "header"), [(MessageField.VALUE, VALUE_HEADER), (MessageField.KEY, KEY_HEADER)])
def test_we_read_what_confluent_writes_with_a_header(client, kind, header):
    """The payload has no prefix; the header tells its schema."""
    context = SerializationContext("t", kind, headers={})
    write = AvroSerializer(client, SCHEMA, conf={"schema.id.serializer": header_schema_id_serializer})
    value = write(RECORD, context)
    guid = str(registry.unframe(b"", header=context.headers[header])[0].uuid)
    with serving([Answer(200, client.get_schema_by_guid(guid).to_dict())]) as server:
        found, payload = registry.connect(server.url).open(value, header=context.headers[header])
        assert [path for _, path, _ in server.asked] == [f"/schemas/guids/{guid}"]
    assert (json.loads(found.schema.json), payload) == (json.loads(SCHEMA), PAYLOAD)


def test_confluent_reads_what_we_write_with_a_header(client):
    """As a list of headers, as Kafka has them, or before the payload."""
    client.register_schema("t-value", AvroSerializer(client, SCHEMA)._schema)
    guid = client.lookup_schema("t-value", AvroSerializer(client, SCHEMA)._schema).guid
    header = registry.frame(b"", registry.Guid(UUID(guid)))
    read = AvroDeserializer(client)
    assert read(PAYLOAD, SerializationContext("t", MessageField.VALUE, headers=[(VALUE_HEADER, header)])) == RECORD
    assert read(header + PAYLOAD, SerializationContext("t", MessageField.VALUE)) == RECORD


def test_a_guid_that_nobody_has_is_a_bad_payload(client):
    """As an id that nobody has."""
    guid = UUID(int=1)
    with pytest.raises(SchemaRegistryError) as refused:
        client.get_schema_by_guid(str(guid))
    error = refused.value
    answer = Answer(error.http_status_code, {"error_code": error.error_code, "message": error.error_message})
    with serving([answer]) as server, pytest.raises(cdcavro.PayloadError) as caught:
        registry.connect(server.url).open(PAYLOAD, header=registry.frame(b"", registry.Guid(guid)))
    assert str(caught.value) == f"message: $: expected a schema that {server.url} has, got GUID {guid}"
