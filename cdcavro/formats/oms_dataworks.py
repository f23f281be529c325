"""OMS Community Edition, Dataworks serialization, version 2.0 (`avsc/oms_dataworks.avsc`).

Source: OMS data formats, "Dataworks-compatible JSON message format".

* Images are `payload.before.data` and `payload.after.data`; a heartbeat has no `schema`.
* An instant may be 13 digits of milliseconds and, after a point, nine digits of nanoseconds.
* `checkpointTime` is in seconds, the other times in milliseconds; `scn` may be the string `"null"`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from cdcavro.change.model import DDL, Change, Column, Source, check_images
from cdcavro.change.operations import as_statement, read_operation, spell_operation, statement_text
from cdcavro.exact.instants import MILLISECOND, SECOND, from_count, to_count
from cdcavro.exact.jsontext import at, drop_nulls, names_at, string_at, whole_number
from cdcavro.formats.bridge import Bridge

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import tzinfo

FORMAT: Final = "oms_dataworks"
OPERATIONS: Final = {
    op: op for op in (*DDL, "INSERT", "UPDATE", "DELETE", "HEARTBEAT", "TRANSACTION_BEGIN", "TRANSACTION_END")
} | {op: op for op in ("GTID", "XACOMMIT", "XAROLLBACK")}
SPELLINGS: Final = OPERATIONS | {"SNAPSHOT": "INSERT"}
VERSION: Final = "2.0"


def to_changes(record: dict[str, Any], _zone: tzinfo | None = None) -> list[Change]:
    """Return the change of a Dataworks message."""
    source, payload = at(record, "schema", "source"), record["payload"]
    operation = string_at(payload, "op") or ""
    scn = string_at(payload, "scn")
    columns = at(record, "schema", "column")
    change = Change(
        op=read_operation(operation, OPERATIONS),
        operation=operation,
        source=Source(
            format=FORMAT,
            db_type=string_at(source, "dbType"),
            db_version=string_at(source, "dbVersion"),
            database=string_at(source, "dbName"),
            schema=string_at(source, "schema"),
            table=string_at(source, "table"),
        ),
        key=names_at(record, "schema", "pk"),
        columns=None if columns is None else tuple(map(_column, columns)),
        before=at(payload, "before", "data"),
        after=at(payload, "after", "data"),
        position=whole_number(scn),
        event_time=from_count(at(payload, "timestamp", "eventTime"), MILLISECOND),
        system_time=from_count(at(payload, "timestamp", "systemTime"), MILLISECOND),
        checkpoint_time=from_count(at(payload, "timestamp", "checkpointTime"), SECOND),
        ddl=string_at(payload, "ddl", "text"),
    )
    return [check_images(as_statement(change), "/payload/before", "/payload/after")]


def from_changes(changes: Sequence[Change], _zone: tzinfo | None = None) -> list[dict[str, Any]]:
    """Return the Dataworks messages of changes."""
    return [_message(change) for change in changes if spell_operation(change, FORMAT, SPELLINGS) is not None]


def _message(change: Change) -> dict[str, Any]:
    timestamp = {
        "eventTime": to_count(change.event_time, MILLISECOND),
        "systemTime": to_count(change.system_time, MILLISECOND),
        "checkpointTime": to_count(change.checkpoint_time, SECOND),
    }
    is_dataworks, ddl = change.source.format == FORMAT, statement_text(change)
    payload = {
        "before": None if change.before is None else {"data": change.before},
        "after": None if change.after is None else {"data": change.after},
        "op": spell_operation(change, FORMAT, SPELLINGS),
        "timestamp": drop_nulls(timestamp),
        "ddl": None if ddl is None else {"text": ddl},
    }
    if is_dataworks and change.position is not None:
        payload["scn"] = str(change.position[0])
    schema = _schema(change)
    return {"version": VERSION, **({"schema": schema} if schema else {}), "payload": payload}


def _schema(change: Change) -> dict[str, Any]:
    source = change.source
    if change.op == "HEARTBEAT" and source.table is None:
        return {}
    named = drop_nulls({"dbType": source.db_type, "dbName": source.database, "table": source.table})
    schema: dict[str, Any] = {"source": named | {"dbVersion": source.db_version, "schema": source.schema}}
    if change.columns is not None:
        schema["column"] = [drop_nulls({"name": column.name, "type": column.type}) for column in change.columns]
    if change.key is not None:
        schema["pk"] = list(change.key)
    return schema


def _column(declared: Any) -> Column:
    return Column(name=string_at(declared, "name"), type=string_at(declared, "type"))


BRIDGE: Final = Bridge(to_changes=to_changes, from_changes=from_changes)
