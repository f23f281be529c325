"""Schema registries, and payloads prefixed with the schema that wrote them.

from cdcavro import registry

schemas = registry.connect("file:schemas")             # or https://…, a server with Confluent's REST API
published = schemas.publish(schema, "orders-value")    # its id and version; refused if it breaks the subject
value = registry.frame(payload, published.id)          # Confluent's wire format
writer, payload = schemas.open(value)                  # and back, checked to the last byte
"""

from cdcavro.registry.backend import Published, Registered
from cdcavro.registry.client import Registry, connect
from cdcavro.registry.framing import Fingerprint, Guid, SchemaId, frame, unframe
from cdcavro.registry.subjects import subject_name

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
