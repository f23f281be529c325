"""References: named types shared by several schemas, cut out of a schema, fetched, and put back in.

A registry stores a shared type once; the schemas that use it name it and refer to its version.
Everywhere else in cdcavro a schema is complete.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from cdcavro.avro.definitions import (
    defined_name,
    definitions,
    full_name,
    insert_definitions,
    map_types,
    with_own_namespace,
)
from cdcavro.avro.schema import MAX_LENGTH, Schema, parse_schema
from cdcavro.avro.types import PRIMITIVES
from cdcavro.errors import SchemaError, shown

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping

    from cdcavro.registry.backend import Reference, StoredSchema

    Fetch = Callable[[str, int | None], StoredSchema]


MAX_PARTS: Final = 1000
MAX_CHAIN: Final = 32


@dataclass(slots=True)
class SchemaPart:
    """A type that was cut out of a schema, or the rest of the schema."""

    # The full name of the type, "" for the rest.
    name: str
    # Its JSON.
    text: str = ""
    # The names of the parts that it refers to, in the order in which they must be defined.
    uses: dict[str, None] = field(default_factory=dict)


def split(text: str, names: Collection[str]) -> list[SchemaPart]:
    r"""Return a schema in parts, its types with these names and the rest; each part follows those that it uses.

    `text` is that of a valid schema, `names` are full names. Raises `SchemaError` if there is no such
    type, or if a part uses a type that is defined in none of the parts.

    >>> parts = split('{"type": "record", "name": "a.R", "fields": [{"name": "f", "type": {"type": "fixed", "name": "F", "size": 1}}]}', ["a.F"])
    >>> print(*((part.name, part.text) for part in parts), sep="\n")
    ('a.F', '{"type": "fixed", "name": "F", "size": 1, "namespace": "a"}')
    ('', '{"type": "record", "name": "a.R", "fields": [{"name": "f", "type": "a.F"}]}')
    """
    if not names:
        return [SchemaPart("", text)]
    return _Splitter(frozenset(names)).split(json.loads(text))


class _Splitter:
    """Walks a schema in the specification's order, and keeps track of the part in which each type is defined."""

    def __init__(self, names: frozenset[str]) -> None:
        self._names = names
        self._home: dict[str, str] = {}
        self._parts: list[SchemaPart] = []
        self._open: list[SchemaPart] = [SchemaPart("")]

    def split(self, declared: Any) -> list[SchemaPart]:
        rest = self._open[0]
        rest.text = json.dumps(self._visit(declared, "", 0))
        missing = self._names - {part.name for part in self._parts}
        if missing:
            raise SchemaError("$", f"no type within the schema is called {shown(min(missing))}: it cannot be shared")
        return [*self._parts, rest]

    def _visit(self, declared: Any, space: str, depth: int) -> Any:
        if isinstance(declared, str):
            return declared if declared in PRIMITIVES else self._name(full_name(declared, space, "$"), space)
        full = defined_name(declared, space)
        if full in self._names and depth:
            return self._cut(full, declared, space, depth)
        if full is not None:
            self._home[full] = self._open[-1].name
        return map_types(declared, space, depth, self._visit)

    def _cut(self, full: str, declared: dict[str, Any], space: str, depth: int) -> str:
        part = SchemaPart(full)
        self._open.append(part)
        self._home[full] = full
        part.text = json.dumps(map_types(with_own_namespace(declared, space), space, depth, self._visit))
        self._open.pop()
        self._parts.append(part)
        return self._name(full, space)

    def _name(self, full: str, space: str) -> str:
        own, home = self._open[-1], self._home[full]
        if home == own.name:
            return full
        if not home:
            reason = f"{shown(own.name)} uses {shown(full)}, which is defined outside: share that too"
            raise SchemaError("$", reason)
        if space and "." not in full:
            raise SchemaError("$", f"{shown(full)} has no namespace and cannot be named from within {shown(space)}")
        own.uses[home] = None
        return full


def insert_types(text: str, known: Mapping[str, Any]) -> str:
    """Return a schema's JSON with each known type defined where it is first used; `SchemaError` if that is too long.

    >>> insert_types('{"type": "array", "items": "a.F"}', {"a.F": {"type": "fixed", "name": "a.F", "size": 1}})
    '{"type": "array", "items": {"type": "fixed", "name": "a.F", "size": 1}}'
    """
    whole = json.dumps(insert_definitions(json.loads(text), known))
    if len(whole) > MAX_LENGTH:
        raise SchemaError("text", f"longer than {MAX_LENGTH} characters")
    return whole


def whole_schema(entry: StoredSchema, fetch: Fetch) -> Schema:
    """Return a registered schema, complete with the types that it refers to.

    `fetch` returns a version of a subject. Raises `SchemaError` for an invalid schema, a circular
    reference, more than 1,000 references, or a chain of more than 32.
    """
    if not entry.references:
        return parse_schema(entry.text)
    known: dict[str, Any] = {}
    _gather(entry, fetch, known, {}, ())
    try:
        return parse_schema(insert_types(entry.text, known))
    except (ValueError, RecursionError) as error:
        if isinstance(error, SchemaError):
            raise
        raise SchemaError("text", "not JSON, or nested too deeply") from error


def _gather(
    entry: StoredSchema, fetch: Fetch, known: dict[str, Any], seen: dict[Reference, None], chain: tuple[Reference, ...]
) -> None:
    for reference in entry.references:
        if reference in chain:
            raise SchemaError("references", f"{shown(reference.name)} leads back to itself")
        if reference in seen:
            continue
        seen[reference] = None
        if len(seen) > MAX_PARTS or len(chain) >= MAX_CHAIN:
            raise SchemaError("references", f"more than {MAX_PARTS:,} of them, or {MAX_CHAIN} in a row")
        referenced = fetch(reference.subject, reference.version)
        _gather(referenced, fetch, known, seen, (*chain, reference))
        try:
            known.update(definitions(json.loads(referenced.text)))
        except (ValueError, RecursionError) as error:
            reason = str(error) if isinstance(error, SchemaError) else "not JSON, or nested too deeply"
            raise SchemaError("references", f"{shown(reference.name)}: {reason}") from error
