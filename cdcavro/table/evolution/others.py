"""The next version of a schema that was made elsewhere: a row, or an envelope around it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from cdcavro.avro.definitions import defined_name, definitions, pin, settled
from cdcavro.table.fields import is_own
from cdcavro.table.schema import as_schema, is_envelope, row_of

if TYPE_CHECKING:
    from cdcavro.avro.schema import Schema
    from cdcavro.table.schema import TableSchema


def with_row(schema: Schema, made: TableSchema) -> Schema:
    """Give a schema, of which `from_schema` gave the table, with the next version of its row. Raises `SchemaError`."""
    declared = json.loads(schema.json)
    if not is_envelope(declared):
        return made.row
    if is_own(made.record):
        return made.envelope
    pin(declared)
    known = definitions(declared)
    old, new = _full(row_of(declared) or {}), _full(made.record)
    for one in declared["fields"]:
        one["type"] = _with(one["type"], old, new, made.record)
    known = {name: one for name, one in known.items() if name != old} | definitions(made.record)
    space, _, name = _full(declared).rpartition(".")
    if space == old.rpartition(".")[0] != new.rpartition(".")[0]:
        aliases = [one if "." in one or not space else f"{space}.{one}" for one in declared.get("aliases", ())]
        declared["aliases"] = list(dict.fromkeys([*aliases, f"{space}.{name}".lstrip(".")]))
        declared["namespace"], declared["name"] = new.rpartition(".")[0], name
    return as_schema(settled(declared, known))


def _full(declared: dict[str, Any]) -> str:
    return defined_name(declared, "") or ""


def _with(declared: Any, old: str, new: str, row: dict[str, Any]) -> Any:
    """Put a row's record where the old one is defined, and its name where that is named."""
    if isinstance(declared, list):
        return [_with(one, old, new, row) for one in declared]
    if declared == old:
        return new
    return (
        row if isinstance(declared, dict) and declared.get("type") == "record" and _full(declared) == old else declared
    )
