"""A registered schema made whole: what it refers to is fetched and put in."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from cdcavro.avro.schema import Schema, parse_schema
from cdcavro.errors import SchemaError, shown
from cdcavro.registry.references import definitions, join

if TYPE_CHECKING:
    from collections.abc import Callable

    from cdcavro.registry.backend import Entry, Reference

    Fetch = Callable[[str, int | None], Entry]

MAX_PARTS: Final = 1000
MAX_CHAIN: Final = 32


def whole(entry: Entry, fetch: Fetch) -> Schema:
    """Give a registered schema with the types that it refers to.

    `fetch` gives a version of a subject. Raises `SchemaError`: it is no valid schema, a reference
    leads back to itself, or there are more than 1,000 of them or 32 in a row.
    """
    if not entry.references:
        return parse_schema(entry.text)
    known: dict[str, Any] = {}
    _gather(entry, fetch, known, {}, ())
    try:
        return parse_schema(join(entry.text, known))
    except (ValueError, RecursionError) as error:
        if isinstance(error, SchemaError):
            raise
        raise SchemaError("text", "not JSON, or nested too deeply") from error


def _gather(
    entry: Entry, fetch: Fetch, known: dict[str, Any], seen: dict[Reference, None], chain: tuple[Reference, ...]
) -> None:
    for one in entry.references:
        if one in chain:
            raise SchemaError("references", f"{shown(one.name)} leads back to itself")
        if one in seen:
            continue
        seen[one] = None
        if len(seen) > MAX_PARTS or len(chain) >= MAX_CHAIN:
            raise SchemaError("references", f"more than {MAX_PARTS:,} of them, or {MAX_CHAIN} in a row")
        found = fetch(one.subject, one.version)
        _gather(found, fetch, known, seen, (*chain, one))
        try:
            known.update(definitions(found.text))
        except (ValueError, RecursionError) as error:
            reason = str(error) if isinstance(error, SchemaError) else "not JSON, or nested too deeply"
            raise SchemaError("references", f"{shown(one.name)}: {reason}") from error
