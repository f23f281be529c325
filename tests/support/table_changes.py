"""Debezium's statements as messages: columns, table changes, and the changes of messages."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from cdcavro.transcoding.mapping import to_changes

if TYPE_CHECKING:
    from cdcavro.change.model import Change


def column(name: str, type: str, code: int, *, length: int | None = None, scale: int | None = None) -> dict[str, Any]:
    """Return a column as a table change states it."""
    sizes = {"length": length, "scale": scale}
    return {"name": name, "jdbcType": code, "typeName": type, "typeExpression": type, **sizes}


def table_change(kind: str, id: str, *columns: dict[str, Any], key: list[str] | None = None) -> dict[str, Any]:
    """Return a table change."""
    table = {"primaryKeyColumnNames": key or [], "columns": list(columns)} if columns else None
    return {"type": kind, "id": id, "table": table}


def changes(*messages: dict[str, Any]) -> list[Change]:
    """Return the changes of Debezium's messages."""
    return [change for message in messages for change in to_changes(json.dumps(message), "debezium")]
