"""Debezium's JSON messages as lines of text (`avsc/debezium.avsc`).

Source: Debezium reference, the connectors' "Data change events", "Schema change topic" and "Transaction metadata".

* A line is a Kafka record, `{"topic", "key", "value"}`, or its value alone; key and value may each come
  with their embedded schema, as `{"schema", "payload"}`. A null value is a tombstone.
* Operations are single letters; statements, transaction marks and heartbeats are recognized by their members.
* The names of the key columns are those of the record's key: a value alone does not state them.
* How a column's value is sent depends on the column's type, which an embedded schema or a `SchemaHistory`
  provides: with the type, values are read as in `connect_values`; without it, they stay as they were sent.
* A column whose value the source did not give has a placeholder, and a change does not have the column:
  see `connect_columns`.
* An update of the primary key is a delete and a create with the same position.
* A row that an incremental snapshot has read (`source.snapshot` is "incremental") was read in mid-stream; any other
  row that was read belongs to a full load.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

from cdcavro.change.model import Change, ChangedTable, Row, Source, check_images, replace
from cdcavro.change.operations import read_operation, statement_kind
from cdcavro.errors import StructureError, shown
from cdcavro.exact.instants import MILLISECOND, from_count
from cdcavro.exact.jsontext import at, escape, render, same_text, string_at, text_or_none
from cdcavro.exact.numbers import number_text
from cdcavro.formats.bridge import Bridge
from cdcavro.formats.connect_columns import (
    Table,
    changed_table,
    former_table,
    image_columns,
    placeholders,
    read_row,
    remove_unavailable,
    schema_columns,
    table_columns,
    table_key,
)
from cdcavro.formats.connect_messages import (
    HEARTBEAT,
    IMAGES,
    MARK,
    MARKS,
    NOTHING,
    ROW,
    STATEMENT,
    connector_position,
    is_debezium,
    is_row,
    is_sendable,
    key_of,
    kind_of,
    reshape,
    restore_values,
    shape_of,
    value_of,
)
from cdcavro.wire.sniff import unsupported_format

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from datetime import tzinfo

FORMAT: Final = "debezium"
OPERATIONS: Final = {"c": "INSERT", "u": "UPDATE", "d": "DELETE", "r": "SNAPSHOT", "t": "TRUNCATE"}
# Statements without a text, as connectors send them that read no DDL: SQL Server, Db2, Informix.
TABLE_CHANGES: Final = {"CREATE": "CREATE", "ALTER": "ALTER", "DROP": "ERASE"}
# Notes among the members of a change, which record the shape of its line.
VALUE_ALONE: Final = "/value"
KEY_SCHEMA: Final = "/key/schema"
_DOCUMENTS: Final = "mongodb"
# A row that an incremental snapshot has read comes after the changes that it includes, and before later ones.
_IN_STREAM: Final = "incremental"
_NO_SNAPSHOT: Final = frozenset({None, "", "false", _IN_STREAM})
# How many members of an unknown message an error names.
_SHOWN: Final = 8


class _ParsedLine(NamedTuple):
    """The parts of a line."""

    envelope: dict[str, Any] | None
    # The envelope's JSON pointer and its embedded schema.
    pointer: str
    schema: Any
    key: Row | None
    key_schema: Any
    # Members of the change, which record the shape of the line.
    notes: dict[str, str]


def to_changes(record: dict[str, Any], _zone: tzinfo | None = None) -> list[Change]:
    """Return the change of a line. Raises `StructureError` for a row image that its operation cannot have."""
    line = _line(record)
    change = _kind(line.envelope)(line)
    return [change if change.members is not None or not line.notes else replace(change, members=line.notes)]


def from_changes(changes: Sequence[Change], _zone: tzinfo | None = None) -> list[dict[str, Any]]:
    """Return the lines of changes: key and value where the key is known, otherwise the value alone.

    Changes of other formats get no embedded schema, and their column values stay as they are.
    """
    return [_record(change) for change in changes if is_sendable(change)]


def _record(change: Change) -> dict[str, Any]:
    if is_debezium(change):
        notes = change.members or {}
        is_alone = VALUE_ALONE in notes
    else:
        notes, is_alone = {}, change.key is None or not is_row(change)
    value = value_of(change)
    if f"{'' if is_alone else '/value'}/schema" in notes:
        value = {"payload": value}
    if is_alone:
        return value or {}
    key = key_of(change)
    return {"key": {"payload": key} if KEY_SCHEMA in notes else key, "value": value}


def _line(record: dict[str, Any]) -> _ParsedLine:
    is_alone = "value" not in record
    if is_alone and "schema" not in record and "payload" not in record:
        return _ParsedLine(record, "", None, None, None, {VALUE_ALONE: ""})
    value, pointer = (record, "") if is_alone else (record["value"], "/value")
    notes = {VALUE_ALONE: ""} if is_alone else {}
    schema = None
    if value is not None and ("schema" in value or "payload" in value):
        notes[f"{pointer}/schema"] = ""
        schema, value, pointer = value.get("schema"), value.get("payload"), f"{pointer}/payload"
    _check_beside(record, value)
    key, key_schema = None if is_alone else record.get("key"), None
    if key is not None and set(key) == {"schema", "payload"} and type(key["payload"]) in (dict, type(None)):
        notes[KEY_SCHEMA] = ""
        key_schema, key = key["schema"], key["payload"]
    return _ParsedLine(value, pointer, schema, key, key_schema, notes)


def _check_beside(record: dict[str, Any], envelope: dict[str, Any] | None) -> None:
    """Raise `StructureError` for a row beside the envelope: it is no part of the change, so it would be lost."""
    value = record.get("value")
    for outer, pointer in ((record, ""), (value, "/value")):
        for name in IMAGES if outer is not envelope and outer is not None else ():
            if at(outer, name) is not None:
                raise StructureError(
                    "no row beside the value or payload of a message", "some", pointer=f"{pointer}/{name}"
                )


def _kind(envelope: dict[str, Any] | None) -> Callable[[_ParsedLine], Change]:
    if envelope is None:
        return _tombstone
    kind = kind_of(envelope)
    return _unknown if kind is None else _KINDS[kind]


def _tombstone(line: _ParsedLine) -> Change:
    columns = schema_columns(line.key_schema)
    return Change(
        op="TOMBSTONE",
        source=Source(format=FORMAT),
        key=_names(line),
        columns=columns,
        before=read_row(line.key, columns, None),
    )


def _row(line: _ParsedLine) -> Change:
    envelope = line.envelope or {}
    operation = text_or_none(envelope.get("op")) or ""
    _check_rows(line)
    before, after = envelope.get("before"), envelope.get("after")
    if line.key:
        _check_key(line, before if after is None else after)
    columns = None if line.schema is None else image_columns(line.schema)
    op, stated = read_operation(operation, OPERATIONS), _stated_fields(envelope)
    of_stream = op == "SNAPSHOT" and string_at(envelope, "source", "snapshot") == _IN_STREAM
    change = Change(
        op=op,
        operation=operation,
        snapshot=False if of_stream else None,
        key=None if op in ("OTHER", "TRUNCATE") else _names(line),
        columns=columns,
        before=read_row(before, columns, stated["source"].db_type) if columns else before,
        after=read_row(after, columns, stated["source"].db_type) if columns else after,
        members=line.notes or None,
        **stated,
    )
    return check_images(change, f"{line.pointer}/before", f"{line.pointer}/after")


def _check_rows(line: _ParsedLine) -> None:
    """Raise `StructureError` for a change in MongoDB, whose documents are text, and for one that is not Debezium's."""
    envelope = line.envelope or {}
    for name in IMAGES:
        if type(envelope.get(name)) is str:
            raise StructureError(
                "a row as an object of columns", "a document as text", pointer=f"{line.pointer}/{name}"
            )
    connector = _connector(envelope)
    strange = unsupported_format(line.envelope) if connector is None else None
    if strange is not None:
        raise StructureError("a change of Debezium", strange, pointer=line.pointer)
    if connector == _DOCUMENTS:
        pointer = f"{line.pointer}/source/connector"
        raise StructureError("a connector of tables", f"{_DOCUMENTS}, whose documents are no rows", pointer=pointer)


def _connector(envelope: Any) -> str | None:
    source = envelope.get("source")
    return text_or_none(source.get("connector")) if type(source) is dict else None


def _check_key(line: _ParsedLine, image: Row | None) -> None:
    """Raise `StructureError` for a key of another row, both as they were sent.

    The key has members that are no columns if a transform adds them; and where the converters of key and value
    send a type as text and as numbers, the two cannot be compared.
    """
    for name, value in (line.key or {}).items():
        if image is None or name not in image or same_text(value, image[name]):
            continue
        column = image[name]
        if type(value) is type(column) or (number_text(value) is not None and number_text(column) is not None):
            pointer = f"/key{'/payload' if KEY_SCHEMA in line.notes else ''}/{escape(name)}"
            expected, got = (shown(render(sent).decode()) for sent in (column, value))
            raise StructureError(f"the value of the row, {expected}", got, pointer=pointer)


def _statement(line: _ParsedLine) -> Change:
    """Return the change of a statement, with the resulting table, key and columns if it is about a single table.

    Of several tables, and of one whose former name is known, what becomes of each is in `tables`.
    """
    ddl = string_at(line.envelope, "ddl")
    changed = at(line.envelope, "tableChanges") or []
    table_change = changed[0] if len(changed) == 1 else None
    table = changed_table(table_change)
    kind = TABLE_CHANGES.get(string_at(table_change, "type") or "") if ddl is None else None
    base = _base_change(line.envelope, kind or statement_kind(ddl or ""))
    database = string_at(line.envelope, "databaseName") or base.source.database or ""
    source = replace(
        base.source,
        # Db2's is in capital letters here, and not in the source, which rows have too.
        database=base.source.database if (base.source.database or "").lower() == database.lower() else database,
        schema=string_at(line.envelope, "schemaName") or base.source.schema,
        table=base.source.table if table is None else table[-1],
    )
    return replace(
        base,
        source=source,
        key=table_key(table_change),
        columns=table_columns(table_change),
        ddl=ddl,
        snapshot=_in_snapshot(line),
        tables=_changed_tables(changed, source),
    )


def _changed_tables(changed: Sequence[Any], source: Source) -> tuple[ChangedTable, ...] | None:
    """Return what becomes of each table; None for one whose former name is not known, and where that is not clear."""
    if not changed or (len(changed) == 1 and former_table(changed[0]) is None):
        return None
    tables = [_changed_table(table_change, source) for table_change in changed]
    return tuple(table for table in tables if table is not None) if None not in tables else None


def _changed_table(table_change: Any, source: Source) -> ChangedTable | None:
    """Return what becomes of a table; None if a table change lacks its kind or name, or columns it must have."""
    op, columns = TABLE_CHANGES.get(string_at(table_change, "type") or ""), table_columns(table_change)
    new, old = changed_table(table_change), former_table(table_change)
    if op is None or new is None or (columns is None) is not (op == "ERASE"):
        return None
    database, schema = _container(new, source)
    old_database, old_schema = (None, None) if old is None else _container(old, source)
    return ChangedTable(
        op=op,
        database=database,
        schema=schema,
        table=new[-1],
        old_database=old_database,
        old_schema=old_schema,
        old_table=None if old is None else old[-1],
        key=table_key(table_change),
        columns=columns,
    )


def _container(table: Table, source: Source) -> tuple[str | None, str | None]:
    """Return the database and the schema of a table, spelled as rows have them; of two names the first is either."""
    database, schema, _ = table
    if schema is None and source.schema is not None:
        database, schema = None, database
    stated = source.database
    if database is None or (stated is not None and database.lower() == stated.lower()):
        database = stated
    return database, schema


def _in_snapshot(line: _ParsedLine) -> bool | None:
    """Return True for a statement read in a snapshot (`source.snapshot` is "true", "first", "last" ...), else None."""
    snapshot = string_at(line.envelope, "source", "snapshot")
    return None if snapshot in _NO_SNAPSHOT else True


def _mark(line: _ParsedLine) -> Change:
    status = string_at(line.envelope, "status") or ""
    return Change(
        op=MARKS.get(status, "OTHER"),
        operation=status,
        source=Source(format=FORMAT),
        event_time=_instant(line.envelope),
        transaction=string_at(line.envelope, "id"),
    )


def _heartbeat(line: _ParsedLine) -> Change:
    return Change(op="HEARTBEAT", source=Source(format=FORMAT), system_time=_instant(line.envelope))


def _empty(line: _ParsedLine) -> Change:
    """Return the change of an empty message."""
    return _base_change(line.envelope, "OTHER")


def _unknown(line: _ParsedLine) -> Change:
    """Raise `StructureError` for a message of no known kind, which may be a row without its envelope."""
    names = ", ".join(shown(name) for name in list(line.envelope or ())[:_SHOWN])
    expected = "a change, a statement, a mark or a heartbeat of Debezium, with just its members"
    raise StructureError(expected, f"an object with {names}", pointer=line.pointer)


def _base_change(envelope: Any, op: str) -> Change:
    return Change(op=op, **_stated_fields(envelope))


def _stated_fields(envelope: Any) -> dict[str, Any]:
    """Return the fields of a change that its envelope states, whatever its kind is."""
    source = at(envelope, "source")
    stated = source if type(source) is dict else {}
    transaction = string_at(envelope, "transaction", "id")
    return {
        "source": Source(
            format=FORMAT,
            db_type=text_or_none(stated.get("connector")),
            database=text_or_none(stated.get("db")),
            schema=text_or_none(stated.get("schema")),
            table=text_or_none(stated.get("collection" if stated.get("table") is None else "table")),
        ),
        "position": connector_position(source) if "connector" in stated else None,
        "event_time": _instant(stated),
        "system_time": _instant(envelope),
        "transaction": text_or_none(stated.get("gtid")) if transaction is None else transaction,
    }


def _names(line: _ParsedLine) -> tuple[str, ...] | None:
    """Return the names of the key columns: empty if the record has no key, None if the line is a value alone."""
    return None if VALUE_ALONE in line.notes else tuple(line.key or ())


def _instant(record: Any) -> int | None:
    if type(record) is not dict:
        return None
    instant = from_count(record["ts_us"], 1) if "ts_us" in record else None
    return from_count(record.get("ts_ms"), MILLISECOND) if instant is None else instant


def _restore_values(change: Change, original: Change, message: dict[str, Any]) -> Change:
    if change.columns is None:
        return change  # which `restore_values` leaves as it is
    envelope = _line(message).envelope
    return restore_values(change, original, at(envelope, "before"), at(envelope, "after"))


_KINDS: Final = {ROW: _row, STATEMENT: _statement, MARK: _mark, HEARTBEAT: _heartbeat, NOTHING: _empty}
BRIDGE: Final = Bridge(
    to_changes=to_changes,
    from_changes=from_changes,
    remove_unavailable=remove_unavailable,
    placeholders=placeholders,
    shape_of=shape_of,
    reshape=lambda line, original: reshape(line, shape_of(original)),
    restore_values=_restore_values,
)
