"""Registries of schemas, and payloads that say which schema wrote them.

from cdcavro import registry

schemas = registry.connect("file:schemas")             # or https://…, a server with Confluent's REST API
made = schemas.publish(schema, "orders-value")         # its id and version; refused if it breaks the subject
value = registry.frame(payload, made.id)               # Confluent's wire format
writer, payload = schemas.open(value)                  # and back, checked to the last byte
"""

from cdcavro.registry.connecting import connect
from cdcavro.registry.entries import Published, Registered
from cdcavro.registry.framing import Fingerprint, Guid, SchemaId, frame, unframe
from cdcavro.registry.names import subject_name
from cdcavro.registry.registry import Registry

__all__ = [
    "Fingerprint",
    "Guid",
    "Published",
    "Registered",
    "Registry",
    "SchemaId",
    "connect",
    "frame",
    "subject_name",
    "unframe",
]
