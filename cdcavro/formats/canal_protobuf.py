"""Packets of Alibaba Canal in protobuf, as its server and its topics without flat messages have them (`avsc/canal_protobuf.avsc`).

Source: Canal, `CanalProtocol.proto` and `EntryProtocol.proto`, and the class `CanalMessageSerializerUtil`.

* A message is bytes; `canal_codec` turns them into JSON and back, as with `dts_avro`.
* A packet holds a batch: entries of several tables, statements and marks of transactions, each of which is a change or
  several. They are one message, and numbered through.
* An entry with rows is a line to the engine (`canal_codec`), which types a packet once it knows lines like all of its own.
* The order is the number of the binlog's file and the offset in it; rows of one entry share them, in their order.
* Values are those of Canal's flat messages, by the type that each column states. A null says `isNull`; a value that is
  absent without it is an empty text.
* Both rows of an update are whole, and each column says whether it changed and whether it belongs to the key.
* What is absent has a default: an entry is ROWDATA, a change an UPDATE.
* Rows of an XA transaction come when it is prepared; whether it was committed, XACOMMIT or XAROLLBACK says later.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

from cdcavro.change.canal_values import CanalRowReader, CanalRowWriter
from cdcavro.change.model import (
    DDL,
    MAX_ROWS,
    Change,
    Column,
    Row,
    Source,
    check_count,
    check_images,
    group_rows,
    replace,
)
from cdcavro.change.operations import read_operation, spell_operation
from cdcavro.errors import StructureError, shown
from cdcavro.exact.instants import MILLISECOND, from_count, to_count
from cdcavro.exact.jsontext import drop_nulls, string_at, text_or_none, whole_number
from cdcavro.exact.sqltype import parse_sql_type
from cdcavro.formats.bridge import Bridge, log_position
from cdcavro.formats.canal_codec import PLAIN_COMPRESSIONS, STORED
from cdcavro.formats.oms_canal import OPERATIONS, SPELLINGS
from cdcavro.wire.format import BINARY

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from datetime import tzinfo

    _Stated = tuple[str, str | None, int | None]

FORMAT: Final = "canal_protobuf"
_MARKS: Final = {"TRANSACTIONBEGIN": "TRANSACTION_BEGIN", "TRANSACTIONEND": "TRANSACTION_END"}
_OTHERS: Final = _MARKS | {"HEARTBEAT": "HEARTBEAT", "GTIDLOG": "GTID"}
_ENTRIES: Final = {op: entry for entry, op in _OTHERS.items()}


def to_changes(record: dict[str, Any], zone: tzinfo | None = None) -> list[Change]:
    """Return the changes of a packet. Raises `StructureError` for a body that is compressed."""
    if record.get("compression") not in PLAIN_COMPRESSIONS:
        raise StructureError("a body without compression", shown(str(record["compression"])), pointer="/compression")
    entries = [entry or {} for entry in record.get("entries") or ()]
    _check_rows(entries)
    changes: list[Change] = []
    for i, entry in enumerate(entries):
        changes += _changes(entry, f"/entries/{i}", zone)
    if not changes:
        word = string_at(record, "type") or ""
        is_heartbeat = word in ("MESSAGES", "HEARTBEAT")
        changes = [Change(op="HEARTBEAT" if is_heartbeat else "OTHER", operation=word, source=Source(format=FORMAT))]
    return [replace(change, row=row, rows=len(changes)) for row, change in enumerate(changes)]


def _check_rows(entries: list[dict[str, Any]]) -> None:
    """Raise `StructureError` for more rows than a message has, before the first of them is read."""
    count = 0
    for i, entry in enumerate(entries):
        rows = _stored(entry).get("rowDatas") or ()
        check_count(rows, MAX_ROWS, f"/entries/{i}/rowChange/rowDatas")
        count += max(1, len(rows))
    check_count(range(count), MAX_ROWS, "/entries")


def _stored(entry: dict[str, Any]) -> dict[str, Any]:
    """Return what an entry holds."""
    return entry.get("rowChange") or entry.get("transactionBegin") or entry.get("transactionEnd") or {}


def _changes(entry: dict[str, Any], pointer: str, zone: tzinfo | None) -> Iterator[Change]:
    header, kind = entry.get("header") or {}, string_at(entry, "entryType") or "ROWDATA"
    stored = _stored(entry)
    word = string_at(stored, "eventType") or "UPDATE" if kind == "ROWDATA" else kind
    op = read_operation(word, OPERATIONS if kind == "ROWDATA" else _OTHERS)
    is_statement = stored.get("isDdl") is True or op in DDL
    database = (string_at(stored, "ddlSchemaName") if is_statement else None) or string_at(header, "schemaName")
    time = header.get("executeTime") if stored.get("executeTime") is None else stored["executeTime"]
    change = Change(
        op=op,
        operation=word,
        source=Source(
            format=FORMAT,
            db_type=string_at(header, "sourceType"),
            database=database or None,
            table=string_at(header, "tableName") or None,
        ),
        position=_position(header),
        event_time=from_count(time, MILLISECOND),
        transaction=string_at(stored, "transactionId") or string_at(header, "gtid") or None,
        ddl=string_at(stored, "sql") or None,
    )
    rows = stored.get("rowDatas") or []
    if not rows:
        yield change if is_statement or kind != "ROWDATA" or change.ddl else replace(change, op="OTHER")
    for i, row in enumerate(rows):
        place = f"{pointer}/rowChange/rowDatas/{i}"
        yield check_images(_row(change, row or {}, zone), f"{place}/beforeColumns", f"{place}/afterColumns")


def _position(header: dict[str, Any]) -> tuple[int, ...] | None:
    """Return the number of the binlog's file and the offset in it."""
    offset = whole_number(string_at(header, "logfileOffset") or "0")
    return log_position(string_at(header, "logfileName"), *(offset or (None,)))


def _row(change: Change, row: dict[str, Any], zone: tzinfo | None) -> Change:
    sides = [[column or {} for column in row.get(side) or ()] for side in ("beforeColumns", "afterColumns")]
    listed = sides[1] or sides[0]
    stated = tuple(
        [
            (text_or_none(one.get("name")) or "", text_or_none(one.get("mysqlType")), _code(one.get("sqlType")))
            for one in listed
        ]
    )
    columns = _columns(stated)
    before, after = (_reader(stated, zone).convert(_plain(side)) if side else None for side in sides)
    marks = {
        mark: tuple(column.name or "" for column, one in zip(columns, listed, strict=True) if one.get(mark) is True)
        for mark in ("isKey", "updated")
    }
    changed = marks["updated"] if before is not None and after is not None else None
    # Columns that all lack their types say nothing, as in flat messages: those of a statement stay.
    declared = columns if any(column.type is not None or column.code is not None for column in columns) else None
    return replace(change, columns=declared, key=marks["isKey"] or None, before=before, after=after, changed=changed)


def _code(value: Any) -> int | None:
    return value if type(value) is int else None


def _plain(columns: list[dict[str, Any]]) -> Row:
    """Return a row as Canal's flat messages have it. Raises `StructureError` for a column that stands twice."""
    row = {
        text_or_none(one.get("name")) or "": None if one.get("isNull") is True else text_or_none(one.get("value")) or ""
        for one in columns
    }
    if len(row) != len(columns):
        raise StructureError("each column once", "one twice", pointer="/entries")
    return row


# Columns as packets state them: the name, the type, and its number.


@lru_cache(maxsize=64)
def _columns(stated: tuple[_Stated, ...]) -> tuple[Column, ...]:
    return tuple(Column(name=name, type=type, code=code) for name, type, code in stated)


@lru_cache(maxsize=64)
def _reader(stated: tuple[_Stated, ...], zone: tzinfo | None) -> CanalRowReader:
    return CanalRowReader([(name, parse_sql_type(type)) for name, type, _ in stated if type is not None], zone)


def from_changes(changes: Sequence[Change], zone: tzinfo | None = None) -> list[dict[str, Any]]:
    """Return the packet of changes, which is decoded to bytes; none if it has no entry for any."""
    entries = [_entry(rows, word, zone) for rows in group_rows(changes) if (word := _word(rows[0])) is not None]
    return [{"version": 1, "type": "MESSAGES", "entries": entries, BINARY: True}] if entries else []


def _word(change: Change) -> str | None:
    return _ENTRIES.get(change.op) or spell_operation(change, FORMAT, SPELLINGS)


def _entry(rows: list[Change], word: str, zone: tzinfo | None) -> dict[str, Any]:
    first, time = rows[0], to_count(rows[0].event_time, MILLISECOND)
    header = {"version": 1, "serverenCode": "UTF-8", "executeTime": time, "sourceType": "MYSQL"}
    header |= {"schemaName": first.source.database, "tableName": first.source.table, "gtid": first.transaction}
    if first.op in _ENTRIES:
        mark = drop_nulls({"executeTime": time, "transactionId": first.transaction})
        stored = {STORED[word][0]: mark} if word in STORED else {}
        return {"header": drop_nulls(header), "entryType": word, **stored}
    is_statement = first.op in DDL
    change = {"eventType": word, "isDdl": True if is_statement else None, "sql": first.ddl}
    change["ddlSchemaName"] = first.source.database if is_statement else None
    images = [_images(row, zone) for row in rows if row.before is not None or row.after is not None]
    stored = {"rowChange": drop_nulls(change) | ({"rowDatas": images} if images else {})}
    return {"header": drop_nulls(header | {"eventType": word}), "entryType": "ROWDATA", **stored}


def _images(change: Change, zone: tzinfo | None) -> dict[str, Any]:
    known = {one.name: one for one in change.columns or ()}
    typed = [(name or "", parse_sql_type(one.type)) for name, one in known.items() if one.type is not None]
    writer, images = CanalRowWriter(typed, zone), {}
    for side, row in (("beforeColumns", change.before), ("afterColumns", change.after)):
        if row is None:
            continue
        images[side] = [
            drop_nulls(
                {
                    "index": i,
                    "sqlType": getattr(known.get(name), "code", None),
                    "name": name,
                    "isKey": True if name in (change.key or ()) else None,
                    "updated": True if side == "afterColumns" and name in (change.changed or ()) else None,
                    "isNull": True if value is None else None,
                    "value": value,
                    "mysqlType": getattr(known.get(name), "type", None),
                }
            )
            for i, (name, value) in enumerate(writer.convert(row).items())
        ]
    return images


BRIDGE: Final = Bridge(to_changes=to_changes, from_changes=from_changes)
