"""Messages of DataHub Blob topics, and those that DataWorks writes to Kafka (`avsc/datahub_blob.avsc`).

Source: DataHub message formats, "Blob message format", English and Chinese.

* An update is two messages with the same `sequenceId`: `UPDATE_BEFOR` (sic; `UPDATE_BEFORE` is read as
  the same) and `UPDATE_AFTER`; the Chinese document also has plain `UPDATE`.
* Empty members are null in some messages and left out in others.
* DATE is milliseconds since the epoch, BYTES is base64, and a DOUBLE may come as a string.
* A `sequenceId` is one number as a string, which the two messages of an update share. For a change of another format
  it is made of the numbers of the position.
* `ddlMeta` is base64 of Java-serialized bytes: carried as it is, never deserialized.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from cdcavro.change.model import DDL, Change, Column, Source, check_images, replace
from cdcavro.change.operations import as_statement, read_operation, spell_operation, statement_text
from cdcavro.exact.instants import MILLISECOND, from_count, to_count
from cdcavro.exact.jsontext import at, drop_nulls, names_at, string_at, whole_number
from cdcavro.exact.numbers import MAX_LONG
from cdcavro.formats.bridge import Bridge
from cdcavro.wire.formats import rule_of

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import tzinfo

FORMAT: Final = "datahub_blob"
OPERATIONS: Final = {op: op for op in (*DDL, "INSERT", "UPDATE", "DELETE", "TRANSACTION_BEGIN", "TRANSACTION_END")} | {
    "GTID": "GTID",
    "XACOMMIT": "XACOMMIT",
    "XAROLLBACK": "XAROLLBACK",
    "UPDATE_BEFOR": "UPDATE",
    "UPDATE_BEFORE": "UPDATE",
    "UPDATE_AFTER": "UPDATE",
    "MHEARTBEAT": "HEARTBEAT",
}
SPELLINGS: Final = {op: op for op in OPERATIONS.values()} | {"HEARTBEAT": "MHEARTBEAT", "SNAPSHOT": "INSERT"}
HALVES: Final = {"UPDATE_BEFOR": "BEFORE", "UPDATE_BEFORE": "BEFORE", "UPDATE_AFTER": "AFTER"}
HALF_SPELLINGS: Final = {"BEFORE": "UPDATE_BEFOR", "AFTER": "UPDATE_AFTER"}
FULL_LOAD: Final = "-1"
VERSION: Final = "0.0.1"
_DIGITS: Final = 19
_MOST: Final = 32


def to_changes(record: dict[str, Any], _zone: tzinfo | None = None) -> list[Change]:
    """Return the change of a Blob message; each of the two messages of an update is a half."""
    schema, payload = record.get("schema"), record["payload"]
    operation = string_at(payload, "op") or ""
    before, after = at(payload, "before", "dataColumn"), at(payload, "after", "dataColumn")
    half = HALVES.get(operation.upper()) if before is None or after is None else None
    number = string_at(payload, "sequenceId")
    op = read_operation(operation, OPERATIONS)
    columns = at(schema, "dataColumn")
    change = Change(
        op="SNAPSHOT" if op == "INSERT" and number == FULL_LOAD else op,
        half=half,
        operation=operation,
        source=Source(
            format=FORMAT,
            db_type=string_at(schema, "source", "dbType"),
            db_version=string_at(schema, "source", "dbVersion"),
            database=string_at(schema, "source", "dbName"),
            schema=string_at(schema, "source", "schemaName"),
            table=string_at(schema, "source", "tableName"),
        ),
        key=names_at(schema, "primaryKey"),
        columns=None if columns is None else tuple(map(_column, columns)),
        before=before,
        after=after,
        position=sequence_position(number),
        event_time=from_count(at(payload, "timestamp", "eventTime"), MILLISECOND),
        system_time=from_count(at(payload, "timestamp", "systemTime"), MILLISECOND),
        checkpoint_time=from_count(at(payload, "timestamp", "checkpointTime"), MILLISECOND),
        ddl=string_at(payload, "ddl", "text"),
        ddl_meta=string_at(payload, "ddl", "ddlMeta"),
    )
    return [check_images(as_statement(change), "/payload/before", "/payload/after")]


def from_changes(changes: Sequence[Change], _zone: tzinfo | None = None) -> list[dict[str, Any]]:
    """Return the Blob messages of changes.

    An update with both images becomes two messages with the same `sequenceId`, or a single
    UPDATE_AFTER if it came as one or has no position that DataHub could number it by.
    """
    return [_message(half) for change in changes for half in _halves(change) if _operation(half) is not None]


def _halves(change: Change) -> list[Change]:
    """Return an update as two halves if there is a number that both can share, and any other change alone."""
    if change.op != "UPDATE" or change.half is not None or change.before is None or _sequence(change) is None:
        return [change]
    if change.operation is not None and change.source.format == FORMAT:
        return [change]
    return [replace(change, half="BEFORE", after=None), replace(change, half="AFTER", before=None)]


def _operation(change: Change) -> str | None:
    if change.op == "UPDATE" and (change.operation is None or change.source.format != FORMAT):
        # An UPDATE_AFTER without the row before the change would be read as half an update.
        return "UPDATE" if change.half is None and change.before is None else HALF_SPELLINGS[change.half or "AFTER"]
    return spell_operation(change, FORMAT, SPELLINGS)


def as_one_message(change: Change) -> Change:
    """Return an update as it would be if one message had brought both images."""
    source = replace(change.source, format=FORMAT)
    return replace(change, source=source, operation=HALF_SPELLINGS["AFTER"])


def _message(change: Change) -> dict[str, Any]:
    timestamp = {
        "eventTime": to_count(change.event_time, MILLISECOND),
        "systemTime": to_count(change.system_time, MILLISECOND),
        "checkpointTime": to_count(change.checkpoint_time, MILLISECOND),
    }
    payload = {
        "before": None if change.before is None else {"dataColumn": change.before},
        "after": None if change.after is None else {"dataColumn": change.after},
        "op": _operation(change),
        "sequenceId": _sequence(change),
        "timestamp": drop_nulls(timestamp) or None,
        "ddl": drop_nulls({"text": statement_text(change), "ddlMeta": change.ddl_meta}) or None,
    }
    return {"schema": _schema(change), "payload": drop_nulls(payload), "version": VERSION}


def _sequence(change: Change) -> str | None:
    if change.op == "SNAPSHOT":
        return FULL_LOAD
    return sequence_id(change.position) if rule_of(change.source.format).has_halves else None


def _schema(change: Change) -> dict[str, Any]:
    source = change.source
    columns = change.columns
    members = {
        "dataColumn": None
        if columns is None
        else [drop_nulls({"name": column.name, "type": column.type}) for column in columns],
        "primaryKey": None if change.key is None else list(change.key),
        "source": drop_nulls(
            {
                "dbType": source.db_type,
                "dbVersion": source.db_version,
                "dbName": source.database,
                "schemaName": source.schema,
                "tableName": source.table,
            }
        )
        or None,
    }
    return drop_nulls(members)


def _column(declared: Any) -> Column:
    return Column(name=string_at(declared, "name"), type=string_at(declared, "type"))


def sequence_id(position: Sequence[int] | None) -> str | None:
    """Return the id of a position: its first number, then every further number padded to 19 digits.

    19 digits hold any 64-bit integer, so ids of positions of the same length sort as the positions do.
    None without a position, or if one of its numbers is negative or exceeds a signed 64-bit integer.

    >>> sequence_id((1605339516000000004,)), sequence_id((2, 704))
    ('1605339516000000004', '20000000000000000704')
    """
    if not position or not all(0 <= part <= MAX_LONG for part in position):
        return None
    first, *rest = position
    return str(first) + "".join(f"{part:0{_DIGITS}}" for part in rest)


def sequence_position(text: str | None) -> tuple[int, ...] | None:
    """Return the position of an id that `sequence_id` made; None if it is not a number or has more than 32 parts.

    >>> sequence_position("20000000000000000704"), sequence_position("-1")
    ((2, 704), None)
    """
    if text is None or len(text) > _MOST * _DIGITS:
        return None
    first = len(text) % _DIGITS or min(len(text), _DIGITS)
    texts = [text[:first], *(text[i : i + _DIGITS] for i in range(first, len(text), _DIGITS))]
    parts = [part for digits in texts for part in whole_number(digits) or ()]
    return tuple(parts) if len(parts) == len(texts) else None


BRIDGE: Final = Bridge(to_changes=to_changes, from_changes=from_changes, as_one_message=as_one_message)
