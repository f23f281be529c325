"""Schemas that the prefixes of framed payloads identify, as a registry has them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from cdcavro.errors import UnknownSchemaError
from cdcavro.registry.backend import UnusableError
from cdcavro.registry.framing import Fingerprint, Guid, SchemaId, unframe

if TYPE_CHECKING:
    from collections.abc import Iterable

    from cdcavro.registry import Registered, Registry
    from cdcavro.registry.framing import SchemaPrefix

# How many schemas are known at a time, and after how many that are missing no other is looked for.
MAX_SCHEMAS: Final = 10_000
MAX_MISSING: Final = 1_000
# How long a prefix is, by its first bytes.
PREFIXES: Final = {b"\x00": 5, b"\x01": 17, b"\xc3\x01": 10}


@dataclass(frozen=True, slots=True)
class PrefixSchema:
    """The schema that a prefix identifies, or why its payloads are rejects."""

    # The text of the schema, None if there is none.
    schema: str | None
    # None if they are not known.
    id: int | None = None
    subject: str | None = None
    version: int | None = None
    # What was expected and what came if there is no schema.
    fault: tuple[str, str] = ("", "")


def look_up_schemas(prefixes: Iterable[bytes], registry: Registry) -> dict[bytes, PrefixSchema]:
    """Return what is known about prefixes; once 1,000 were not there, the registry is not asked for others."""
    known: dict[bytes, PrefixSchema] = {}
    missing = 0
    for prefix in prefixes:
        if missing < MAX_MISSING:
            known[prefix] = _look_up_schema(prefix, registry)
            missing += known[prefix].schema is None
        else:
            expected = f"a schema that is looked for: {MAX_MISSING:,} others are missing"
            known[prefix] = PrefixSchema(None, fault=(expected, str(unframe(prefix)[0])))
    return known


def _look_up_schema(prefix: bytes, registry: Registry) -> PrefixSchema:
    identifier, _ = unframe(prefix)
    try:
        found = _fetch(identifier, registry)
    except UnknownSchemaError:
        return PrefixSchema(None, fault=(f"a schema that {registry.url} has", str(identifier)))
    except UnusableError as error:
        return PrefixSchema(None, fault=(f"a schema that can be used for {identifier}", error.reason))
    return PrefixSchema(found.schema.json, found.id, found.subject, found.version)


def _fetch(identifier: SchemaPrefix, registry: Registry) -> Registered:
    match identifier:
        case SchemaId(number):
            return registry.fetch(id=number)
        case Guid(uuid):
            return registry.fetch(guid=uuid)
        case Fingerprint(digits):
            return registry.fetch(fingerprint=digits)
    raise TypeError(f"{type(identifier).__name__} is no frame")
