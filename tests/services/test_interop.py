"""Confluent's serialisers and we read each other's framed payloads, by way of a real registry."""

from __future__ import annotations

import io
import json

import fastavro
import pytest
from confluent_kafka.schema_registry import Schema, SchemaReference, SchemaRegistryClient
from confluent_kafka.schema_registry.avro import AvroDeserializer, AvroSerializer
from confluent_kafka.serialization import MessageField, SerializationContext, SerializationError

import cdcavro
from cdcavro import registry
from cdcavro.registry.subjects import STRATEGIES, subject_name
from support.messages import goldens
from support.registry_suite import KNOWN, Place

ADDRESS = {"type": "record", "name": "a.Address", "fields": [{"name": "city", "type": "string"}]}
PERSON = {
    "type": "record",
    "name": "a.Person",
    "fields": [{"name": "home", "type": ADDRESS}, {"name": "work", "type": ["null", "a.Address"]}],
}
ANNE = {"home": {"city": "Xi'an"}, "work": None}


@pytest.fixture
def client(apicurio) -> SchemaRegistryClient:
    """Confluent's client."""
    return SchemaRegistryClient({"url": apicurio})


@pytest.fixture
def place(apicurio) -> Place:
    """Subjects of a test's own."""
    return Place(apicurio, KNOWN["apicurio"])


def context(place: Place, kind: str = MessageField.VALUE) -> SerializationContext:
    """The topic whose values have the place's subject."""
    return SerializationContext(place.subject.removesuffix("-value"), kind)


@pytest.mark.parametrize("format", cdcavro.FORMATS)
def test_confluent_reads_our_payloads(client, place, format):
    """Of every format, with the schema by the id that we framed."""
    made = place.registry.publish(cdcavro.load_schema(format), place.subject)
    payload = cdcavro.encode(goldens(format)[0], format)
    read = AvroDeserializer(client)(registry.frame(payload, made.id), context(place))
    expected = fastavro.schemaless_reader(io.BytesIO(payload), json.loads(cdcavro.load_schema(format).json))
    assert read == expected


@pytest.mark.parametrize("format", cdcavro.FORMATS)
def test_we_read_what_confluent_writes(client, place, format):
    """Under the subject that its serialiser takes, and the message comes out."""
    schema = cdcavro.load_schema(format)
    text = goldens(format)[0]
    record = fastavro.schemaless_reader(
        io.BytesIO(cdcavro.encode(text, format)),
        json.loads(schema.json),
        return_record_name=True,
        return_record_name_override=True,
    )
    value = AvroSerializer(client, schema.json)(record, context(place))
    found, payload = place.registry.open(value)
    assert (found.subject, found.version, found.schema.fingerprint) == (place.subject, 1, schema.fingerprint)
    assert cdcavro.decode(payload, format, writer=found.schema) == cdcavro.decode(cdcavro.encode(text, format), format)


@pytest.mark.parametrize("raw", [b"a", b"\x04ab", b"\xff" * 300])
@pytest.mark.parametrize("declared", ["bytes", {"type": "bytes"}])
def test_top_level_bytes_have_no_length_on_either_side(client, place, raw, declared):
    """Confluent's serialiser writes them as they are; what one side writes, both read."""
    schema = cdcavro.parse_schema(json.dumps(declared))
    value = AvroSerializer(client, schema.json)(raw, context(place))
    found, payload = place.registry.open(value)
    out = io.BytesIO()
    fastavro.schemaless_writer(out, declared, raw)
    assert payload == out.getvalue()
    assert registry.frame(payload, found.id, schema=found.schema) == value
    assert AvroDeserializer(client)(value, context(place)) == raw


def test_confluent_reads_what_refers_to_shared_types(client, place):
    """The shared type is a subject of its own."""
    shared = {"a.Address": place.subject + "-shared"}
    made = place.registry.publish(json.dumps(PERSON), place.subject, references=shared)
    assert len(client.get_version(place.subject, 1).schema.references) == 1
    out = io.BytesIO()
    fastavro.schemaless_writer(out, PERSON, ANNE)
    assert AvroDeserializer(client)(registry.frame(out.getvalue(), made.id), context(place)) == ANNE


def test_we_read_what_confluent_writes_with_references(client, place):
    """Its references are put in."""
    shared = place.subject + "-shared"
    client.register_schema(shared, Schema(json.dumps(ADDRESS)))
    fields = [{"name": "home", "type": "a.Address"}, {"name": "work", "type": ["null", "a.Address"]}]
    schema = Schema(json.dumps(PERSON | {"fields": fields}), "AVRO", [SchemaReference("a.Address", shared, 1)])
    value = AvroSerializer(client, schema)(ANNE, context(place))
    found, payload = place.registry.open(value)
    assert json.loads(found.schema.json) == PERSON
    assert fastavro.schemaless_reader(io.BytesIO(payload), json.loads(found.schema.json)) == ANNE


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("kind", [MessageField.VALUE, MessageField.KEY])
def test_subjects_are_named_as_confluent_names_them(client, place, strategy, kind):
    """Its serialiser finds what we published, and registers nothing."""
    topic = place.subject.removesuffix("-value")
    schema = cdcavro.parse_schema(json.dumps(ADDRESS | {"name": f"a.{topic}"}))
    subject = subject_name(strategy, schema, topic=topic, is_key=kind == MessageField.KEY)
    made = place.registry.publish(schema, subject)
    settings = {"auto.register.schemas": False, "subject.name.strategy.type": strategy.upper().replace("-", "_")}
    value = AvroSerializer(client, schema.json, conf=settings)({"city": "x"}, context(place, kind))
    assert registry.unframe(value)[0] == registry.SchemaId(made.id)


def test_what_neither_knows_neither_reads(client, place):
    """A wrong magic byte is an error on both sides."""
    place.registry.publish(json.dumps(ADDRESS), place.subject)
    with pytest.raises(SerializationError):
        AvroDeserializer(client)(b"\x07\x00\x00\x00\x01\x02a", context(place))
    with pytest.raises(cdcavro.PayloadError):
        place.registry.open(b"\x07\x00\x00\x00\x01\x02a")
