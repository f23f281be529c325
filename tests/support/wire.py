"""Short notation for wire schemas in tests: `mine(required("op", "string"), nullable("a", "int"))`."""

from __future__ import annotations

import json
from typing import Any

from cdcavro.avro.schema import parse_schema
from cdcavro.wire.format import Format

EXTRAS = {
    "name": "extras",
    "type": {"type": "map", "values": "string"},
    "default": {},
    "json": {"members": "extras"},
}
REST = {
    "name": "rest",
    "type": {"type": "map", "values": ["null", "string"]},
    "default": {},
    "json": {"members": "rest"},
}


def mine(*fields: dict[str, Any], name: str = "M") -> Format:
    """Return a format named `mine` whose envelope has these fields and `extras`."""
    return Format("mine", given=parse_schema(json.dumps(record(*fields, EXTRAS, name=name))))


def record(*fields: dict[str, Any], name: str = "R", aliases: tuple[str, ...] = ()) -> dict[str, Any]:
    """Return the JSON value of a record."""
    return {"type": "record", "name": name, "aliases": list(aliases), "fields": list(fields)}


def enum(*symbols: str, name: str = "E", aliases: tuple[str, ...] = ()) -> dict[str, Any]:
    """Return the JSON value of an enum."""
    return {"type": "enum", "name": name, "symbols": list(symbols), "aliases": list(aliases)}


def array(items: Any) -> dict[str, Any]:
    """Return the JSON value of an array."""
    return {"type": "array", "items": items}


def mapping(values: Any) -> dict[str, Any]:
    """Return the JSON value of a map."""
    return {"type": "map", "values": values}


def field(name: str, type: Any = "int", **more: Any) -> dict[str, Any]:
    """Return the JSON value of a field."""
    return {"name": name, "type": type, **more}


def required(name: str, type: Any, **more: Any) -> dict[str, Any]:
    """Return a field that a message must have."""
    return field(name, type, json={"required": True}, **more)


def nullable(name: str, *types: Any, missing: str = "absent", **more: Any) -> dict[str, Any]:
    """Return a nullable field, whose default is null; `missing` is the format's convention."""
    return field(name, ["null", *types], default=None, json={"missing": missing}, **more)


def doubled(innermost: dict[str, Any], levels: int) -> dict[str, Any]:
    """Return the JSON value of a record in that many others, each of which has two fields of the next."""
    made = innermost
    for level in range(levels):
        made = record(field("a", made), field("b", made["name"]), name=f"D{level}")
    return made
