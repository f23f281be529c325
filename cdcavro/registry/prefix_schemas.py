"""Schemas that the prefixes of framed payloads identify, as a registry has them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from cdcavro.errors import UnknownSchemaError
from cdcavro.registry.backend import UnusableError
from cdcavro.registry.client import fetch_arguments
from cdcavro.registry.framing import CONFLUENT, FRAMINGS, unframe

if TYPE_CHECKING:
    from collections.abc import Iterable

    from cdcavro.registry import Registry
    from cdcavro.registry.framing import SchemaPrefix

# How many schemas are known at a time, and after how many that are missing no other is looked for.
MAX_SCHEMAS: Final = 10_000
MAX_MISSING: Final = 1_000
# How long a prefix is, by its first bytes.
PREFIXES: Final = FRAMINGS[CONFLUENT].sizes


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


def look_up_schemas(
    prefixes: Iterable[bytes], registry: Registry, framing: str = CONFLUENT
) -> dict[bytes, PrefixSchema]:
    """Return what is known about prefixes; once 1,000 were not there, the registry is not asked for others."""
    known: dict[bytes, PrefixSchema] = {}
    missing = 0
    for prefix in prefixes:
        if missing < MAX_MISSING:
            known[prefix] = _look_up_schema(unframe(prefix, framing=framing)[0], registry)
            missing += known[prefix].schema is None
        else:
            expected = f"a schema that is looked for: {MAX_MISSING:,} others are missing"
            known[prefix] = PrefixSchema(None, fault=(expected, str(unframe(prefix, framing=framing)[0])))
    return known


def _look_up_schema(identifier: SchemaPrefix, registry: Registry) -> PrefixSchema:
    try:
        found = registry.fetch(**fetch_arguments(identifier))
    except UnknownSchemaError:
        return PrefixSchema(None, fault=(f"a schema that {registry.url} has", str(identifier)))
    except UnusableError as error:
        return PrefixSchema(None, fault=(f"a schema that can be used for {identifier}", error.reason))
    return PrefixSchema(found.schema.json, found.id, found.subject, found.version)
