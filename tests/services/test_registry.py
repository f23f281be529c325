"""A folder and a real Apicurio do the same, but for the differences listed in `registry_suite.KNOWN`."""

from __future__ import annotations

import json

import pytest
from confluent_kafka.schema_registry import Schema, SchemaRegistryClient

import cdcavro
from support.registry_suite import *  # noqa: F403
from support.registry_suite import KNOWN, V1, Place, text


@pytest.fixture(params=["file", pytest.param("apicurio", marks=pytest.mark.jvm)])
def place(request, tmp_path) -> Place:
    """A new folder, and subjects of its own on the server."""
    if request.param == "file":
        return Place(f"file:{tmp_path / 'schemas'}", KNOWN["file"])
    return Place(request.getfixturevalue("apicurio"), KNOWN[request.param])


@pytest.fixture
def client(apicurio) -> SchemaRegistryClient:
    """Confluent's client, as another program has it."""
    return SchemaRegistryClient({"url": apicurio})


def test_apicurio_differs_as_the_table_says(apicurio, client):
    """Each known difference is one: what is mended goes from the table."""
    known = KNOWN["apicurio"]
    place = Place(apicurio, known)
    decimal = {"type": "bytes", "logicalType": "decimal", "precision": 9}
    client.register_schema(place.subject, Schema(text(decimal | {"scale": 2})))
    assert client.get_compatibility() == known.level
    client.set_compatibility(place.subject, "FULL")
    client.register_schema(place.subject, Schema(text(decimal | {"scale": 3})))
    assert client.get_versions(place.subject) == [1, 2]
    assert client.get_version(place.subject, 1).guid is None
    # By the text: the same schema written otherwise is another version to it, not to us.
    other = Place(apicurio, known)
    client.register_schema(other.subject, Schema(text(V1)))
    client.register_schema(other.subject, Schema(json.dumps(V1, sort_keys=True)))
    assert client.get_versions(other.subject) == [1, 2]
    # With `normalize`, aliases are nothing to it: it would take a renamed schema for the old one.
    client.register_schema(other.subject, Schema(text(V1 | {"aliases": ["a.Q"]})), normalize_schemas=True)
    assert client.get_versions(other.subject) == [1, 2]


def test_a_server_that_refuses_says_why(apicurio, client):
    """409 where its own check is stricter than our verdict, or another publishes at the same moment."""
    place = Place(apicurio, KNOWN["apicurio"])
    schemas = place.registry
    schemas.publish(text(V1), place.subject, compatibility="BACKWARD")
    backend = schemas._backend
    from cdcavro.registry.backend import StoredSchema  # noqa: PLC0415

    broken = text(V1 | {"fields": [{"name": "x", "type": "string"}]})
    with pytest.raises(cdcavro.RegistryError) as caught:
        backend.register(place.subject, StoredSchema(None, broken), "", force=False)
    assert (caught.value.status, caught.value.subject) == (409, place.subject)
    assert str(caught.value).startswith(
        f"registry {apicurio}: subject '{place.subject}': 409: the server refuses the schema as incompatible: '"
    )


def test_other_kinds_of_schemas_beside_ours_do_no_harm(apicurio, client):
    """A registry holds JSON Schema too, which is refused where asked for and passed over, and records within themselves."""
    place = Place(apicurio, KNOWN["apicurio"])
    recursive = {"type": "record", "name": "Rec", "fields": [{"name": "r", "type": ["null", "Rec"]}]}
    client.register_schema(place.subject + "-rec", Schema(text(recursive)))
    client.register_schema(
        place.subject + "-json",
        Schema('{"$schema": "http://json-schema.org/draft-07/schema#", "type": "object"}', "JSON"),
    )
    schema = text(V1 | {"name": "a.Beside"})
    made = place.registry.publish(schema, place.subject)
    assert place.registry.fetch(fingerprint=cdcavro.parse_schema(schema).fingerprint).id == made.id
    within_itself = place.registry.fetch(subject=place.subject + "-rec").schema
    assert within_itself.fingerprint == cdcavro.parse_schema(text(recursive)).fingerprint
    with pytest.raises(cdcavro.RegistryError, match="it is no Avro schema"):
        place.registry.fetch(subject=place.subject + "-json")
