"""Messages of Debezium: their kinds and shapes, the positions that they state, and how they are made from changes.

A message is of the kind for which exactly its members are documented. Rows without an envelope may have columns
of the same names, `id` and `status` or `ts_ms`. So a message without a row image that has any further member, or
another value than its kind has, is of no kind.

Source: Debezium reference, the connectors' "Data change events", "Schema change topic", "Transaction metadata"
and "Heartbeats".
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from cdcavro.change.connect_values import codecs_of, send_connect_value
from cdcavro.change.model import DDL, Change, Row, replace
from cdcavro.change.operations import spell_operation
from cdcavro.engine.machine import same
from cdcavro.exact.instants import MILLISECOND
from cdcavro.exact.jsontext import at, drop_nulls, string_at, whole_number
from cdcavro.exact.numbers import MAX_LONG
from cdcavro.exact.sqltype import MYSQL_FAMILY
from cdcavro.formats.bridge import log_numbers, log_position

if TYPE_CHECKING:
    from collections.abc import Callable, Collection


ROW: Final = "row"
STATEMENT: Final = "statement"
MARK: Final = "mark"
HEARTBEAT: Final = "heartbeat"
NOTHING: Final = "nothing"
MARKS: Final = {"BEGIN": "TRANSACTION_BEGIN", "END": "TRANSACTION_END"}
IMAGES: Final = ("before", "after")
_TIMES: Final = frozenset({"ts_ms", "ts_us", "ts_ns"})
_OF_A_ROW: Final = _TIMES | {*IMAGES, "source", "op", "transaction", "message"}
_OF_A_STATEMENT: Final = _TIMES | {"source", "transaction", "databaseName", "schemaName", "ddl", "tableChanges"}
_WITH_SOURCE: Final = frozenset({"op", "ddl", "tableChanges"})
_EVERY_MARK: Final = frozenset({"status", "id", "event_count", "data_collections"})
_OF_A_MARK: Final = _TIMES | {"status", "id", "event_count", "data_collections"}


def kind_of(envelope: dict[str, Any]) -> str | None:
    """Return the kind of an envelope: `ROW`, `STATEMENT`, `MARK`, `HEARTBEAT`, or `NOTHING` if it is empty; else None.

    >>> kind_of({"ts_ms": 1}), kind_of({"ts_ms": 1, "id": 5}), kind_of({"op": "c", "after": {"id": 5}, "more": 1})
    ('heartbeat', None, 'row')
    """
    if envelope.get("before") is not None or envelope.get("after") is not None:
        return ROW
    names = envelope.keys()
    if type(envelope.get("op")) is str and (names <= _OF_A_ROW or type(envelope.get("source")) is dict):
        return ROW
    if ("ddl" in names or "tableChanges" in names) and names <= _OF_A_STATEMENT:
        return STATEMENT
    if "id" in names and names <= _OF_A_MARK:
        is_mark = envelope.get("status") in list(MARKS) and type(envelope["id"]) in (str, type(None))
        return MARK if is_mark else None
    if names <= _TIMES:
        return _kind_of_times(envelope)
    return None


def is_enveloped(message: dict[str, Any]) -> bool:
    """Return whether a message is one of Debezium that no transform took the envelope from, by members that each has.

    >>> is_enveloped({"ts_ms": 1}), is_enveloped({"ts_ms": 1, "id": 5}), is_enveloped({"op": "c", "after": {"id": 5}})
    (True, False, False)
    """
    has_source = type(message.get("source")) is dict and not _WITH_SOURCE.isdisjoint(message)
    is_heartbeat = bool(message) and message.keys() <= _TIMES and kind_of(message) == HEARTBEAT
    return has_source or is_heartbeat or (message.keys() >= _EVERY_MARK and kind_of(message) == MARK)


def may_be_enveloped(names: Collection[str]) -> bool:
    """Return whether a message with members of these names may be one for which `is_enveloped` is true."""
    return "source" in names or _TIMES.issuperset(names) or _EVERY_MARK.issubset(names)


def _kind_of_times(envelope: dict[str, Any]) -> str | None:
    if not envelope:
        return NOTHING
    return HEARTBEAT if all(type(time) in (int, type(None)) for time in envelope.values()) else None


# The shape of a line: a Kafka record or a value alone, with or without embedded schemas.

_WRAPPED = frozenset({"schema", "payload"})


class LineShape(NamedTuple):
    """The shape of a line."""

    # Whether it is a Kafka record, and not the value of one.
    is_record: bool
    # Whether its value and its key come with schemas.
    has_schema: bool
    has_key_schema: bool

    def __str__(self) -> str:
        kind = "a Kafka record" if self.is_record else "a value alone"
        return f"{kind}, {'with' if self.has_schema or self.has_key_schema else 'without'} embedded schemas"


def shape_of(line: dict[str, Any]) -> LineShape:
    """Return the shape of a line.

    >>> str(shape_of({"key": {"id": 1}, "value": {"op": "d"}}))
    'a Kafka record, without embedded schemas'
    """
    is_record = "value" in line
    value, key = (line["value"], line.get("key")) if is_record else (line, None)
    has_schema = type(value) is dict and not _WRAPPED.isdisjoint(value)
    return LineShape(is_record, has_schema, type(key) is dict and key.keys() == _WRAPPED)


def reshape(line: dict[str, Any], shape: LineShape) -> dict[str, Any]:
    """Return a line without schemas in another shape; missing schemas and keys are not made up.

    >>> reshape({"op": "d"}, LineShape(True, True, False))
    {'value': {'payload': {'op': 'd'}}}
    """
    value = line.get("value", line)
    if shape.has_schema:
        value = {"payload": value}
    if not shape.is_record:
        return value if type(value) is dict else line
    if "key" not in line:
        return {"value": value}
    return {"key": {"payload": line["key"]} if shape.has_key_schema else line["key"], "value": value}


# The position of a change in its source's own order, as connectors state it.

Position = tuple[int, ...]

_SEQUENCE: Final = re.compile(r'\[\s*(?:null|"([0-9]{1,18})")\s*,\s*"([0-9]{1,18})"\s*\]', re.ASCII)
_NO_LSN: Final = "00000000:00000000:0000"
_LSN: Final = re.compile(r"([0-9a-fA-F]{8}):([0-9a-fA-F]{8}):([0-9a-fA-F]{4})", re.ASCII)


def connector_position(source: Any) -> Position | None:
    """Return the numbers that order the changes of one connector, most significant first; None if it states none.

    >>> connector_position({"connector": "mysql", "file": "bin.000002", "pos": 704, "row": 1})
    (2, 704, 1)
    >>> connector_position({"connector": "postgresql", "lsn": 9, "sequence": '["7","9"]'})
    (7, 9)
    """
    connector = source.get("connector") if type(source) is dict else None
    find = _POSITIONS.get(connector) if type(connector) is str else None
    return None if find is None else find(source)


def _in_binlog(source: Any) -> Position | None:
    """Return the number of the binlog file, the offset in it, and the row of the event."""
    return log_position(string_at(source, "file"), source.get("pos"), source.get("row"))


def _in_log(source: Any) -> Position | None:
    """Return the log sequence numbers of the last commit and of the change: transactions come in commit order."""
    match = _SEQUENCE.fullmatch(string_at(source, "sequence") or "")
    return log_numbers(at(source, "lsn")) if match is None else (int(match[1] or "0"), int(match[2]))


def _in_redo(source: Any) -> Position | None:
    """Return the system change numbers of the commit and of the change, and the number of the statement."""
    commit = whole_number(string_at(source, "commit_scn"))
    change = whole_number(string_at(source, "scn"))
    return None if commit is None or change is None else (*commit, *change, *(log_numbers(at(source, "ssn")) or (0,)))


def _in_change_table(source: Any) -> Position | None:
    """Return the parts of the log sequence numbers of the commit and of the change, and the number of the event.

    A schema change and a row of a snapshot have no number of their own, and come before the changes of the commit.
    """
    change = string_at(source, "change_lsn")
    matches = [_LSN.fullmatch(text or "") for text in (string_at(source, "commit_lsn"), change or _NO_LSN)]
    parts = [int(part, 16) for match in matches if match is not None for part in match.groups()]
    return None if None in matches else (*parts, *(log_numbers(at(source, "event_serial_no")) or (0,)))


def _in_logical_log(source: Any) -> Position | None:
    """Return the log sequence numbers of the commit and of the change, which Informix writes as decimal text."""
    commit, change = (whole_number(string_at(source, name)) for name in ("commit_lsn", "change_lsn"))
    return None if commit is None or change is None else (*commit, *change)


def _in_commits(source: Any) -> Position | None:
    """Return TiDB's time stamp of the commit."""
    return log_numbers(at(source, "commit_ts"))


_POSITIONS: Final[dict[str, Callable[[Any], Position | None]]] = {
    "mysql": _in_binlog,
    "mariadb": _in_binlog,
    "postgresql": _in_log,
    "oracle": _in_redo,
    "sqlserver": _in_change_table,
    "db2": _in_change_table,
    "informix": _in_logical_log,
    "TiCDC": _in_commits,
}


# Values and keys made from changes. What a change does not state is left out, or is null where MySQL's connector
# always sends the member.

FORMAT: Final = "debezium"
# The formats whose rows have the values of Kafka Connect's types.
OF_CONNECT: Final = frozenset({FORMAT, "debezium_flat"})
_LETTERS: Final = {"INSERT": "c", "UPDATE": "u", "DELETE": "d", "SNAPSHOT": "r", "TRUNCATE": "t"}
_MARKS: Final = {"TRANSACTION_BEGIN": "BEGIN", "TRANSACTION_END": "END"}
_GTID: Final = re.compile(r"[0-9a-fA-F-]{36}:(?:\w+:)?[0-9]+|[0-9]+-[0-9]+-[0-9]+", re.ASCII)
_SENT_AS_NULL: Final = ("sequence", "table", "gtid", "thread", "query")
_BINLOG_PARTS: Final = 3
_NANOSECONDS: Final = 1_000


def is_debezium(change: Change) -> bool:
    """Return whether a change came from Debezium."""
    return change.source.format == FORMAT


def has_connect_values(change: Change) -> bool:
    """Return whether a change came from Debezium, in its envelope or without."""
    return change.source.format in OF_CONNECT


def is_sendable(change: Change) -> bool:
    """Return whether Debezium has a message for this kind of change."""
    return is_debezium(change) or change.op in DDL or change.op in _LETTERS or change.op in _VALUES


def is_row(change: Change) -> bool:
    """Return whether a change affects a row, or all rows of a table."""
    return change.op not in _ROWLESS and not _is_statement(change)


def value_of(change: Change) -> dict[str, Any] | None:
    """Return the value of a change's message, without a schema; None for a tombstone."""
    return _statement(change) if _is_statement(change) else _VALUES.get(change.op, _row)(change)


def key_of(change: Change) -> Row | None:
    """Return the key of a change's message, without a schema; None if it has no key."""
    if _is_statement(change):
        return {"databaseName": change.source.database}
    if change.op in _MARKS:
        return {"id": change.transaction}
    image = send_row(change, change.before if change.after is None else change.after) or {}
    return {name: image[name] for name in change.key or () if name in image} or None


def restore_values(change: Change, original: Change, before: Any, after: Any) -> Change:
    """Return a change read from another format with its values as Debezium sent them in the rows of the original.

    A change without columns stays as it is: its reader cannot know how the values would be sent.
    """
    if change.columns is None or not has_connect_values(original):
        return change
    return replace(
        change,
        before=_restore_row(original, change.before, original.before, before),
        after=_restore_row(original, change.after, original.after, after),
    )


def _restore_row(original: Change, image: Row | None, first: Row | None, sent: Any) -> Row | None:
    """Return a row as Debezium sends it; values that are equal to those of the original are spelled as it sent them."""
    if image is None or first is None or type(sent) is not dict:
        return send_row(original, image)
    kept = {name: sent[name] for name, value in image.items() if name in sent and _has(first, name, value)}
    others = {name: value for name, value in image.items() if name not in kept}
    return image | (send_row(original, others) or {}) | kept


def _has(row: Row, name: str, value: Any) -> bool:
    return name in row and same(row[name], value)


def _is_statement(change: Change) -> bool:
    return change.op in DDL and (change.op != "TRUNCATE" or change.ddl is not None)


def _row(change: Change) -> dict[str, Any]:
    return {
        "before": send_row(change, change.before),
        "after": send_row(change, change.after),
        "source": _source(change),
        "op": spell_operation(change, FORMAT, _LETTERS),
        **_all_times(change.system_time),
        "transaction": _transaction(change),
    }


def _statement(change: Change) -> dict[str, Any]:
    return {
        "source": _source(change),
        **_exact_times(change.system_time),
        **drop_nulls({"transaction": _transaction(change)}),
        "databaseName": change.source.database,
        "schemaName": change.source.schema,
        "ddl": change.ddl,
        "tableChanges": [],
    }


def _mark(change: Change) -> dict[str, Any]:
    mark = {"status": _MARKS[change.op], "id": change.transaction, "event_count": None, "data_collections": None}
    return mark | _exact_times(change.event_time)


def _heartbeat(change: Change) -> dict[str, Any]:
    return {"ts_ms": None} | _exact_times(change.system_time)


def _source(change: Change) -> dict[str, Any]:
    source = change.source
    is_mysql = source.db_type in MYSQL_FAMILY
    members = {
        "connector": source.db_type,
        **_all_times(change.event_time),
        "snapshot": _snapshot(change),
        "db": source.database,
        "schema": source.schema,
        "table": source.table,
        "gtid": change.transaction if _is_gtid(change) else None,
    }
    if not is_mysql:
        return drop_nulls(members)
    if is_debezium(change) and change.position is not None and len(change.position) == _BINLOG_PARTS:
        members |= {"pos": change.position[1], "row": change.position[2]}
    return dict.fromkeys(_SENT_AS_NULL) | drop_nulls(members)


def _snapshot(change: Change) -> str:
    if change.op == "SNAPSHOT" and change.snapshot is False:
        return "incremental"
    return "true" if change.op == "SNAPSHOT" or change.snapshot else "false"


def _transaction(change: Change) -> dict[str, Any] | None:
    return None if change.transaction is None or _is_gtid(change) else {"id": change.transaction}


def _is_gtid(change: Change) -> bool:
    return change.transaction is not None and _GTID.fullmatch(change.transaction) is not None


def send_row(change: Change, image: Row | None) -> Row | None:
    """Return a row as Debezium sends it; a row from another format is sent as it is."""
    if image is None or change.columns is None or not has_connect_values(change):
        return image
    codecs = codecs_of(change.columns, change.source.db_type)
    return {name: send_connect_value(value, codecs.get(name)) for name, value in image.items()}


def _all_times(instant: int | None) -> dict[str, Any]:
    if instant is None:
        return {}
    nanoseconds = instant * _NANOSECONDS
    if -MAX_LONG <= nanoseconds <= MAX_LONG:
        return {"ts_ms": instant // MILLISECOND, "ts_us": instant, "ts_ns": nanoseconds}
    return {"ts_ms": instant // MILLISECOND, "ts_us": instant}


def _exact_times(instant: int | None) -> dict[str, Any]:
    """Return an instant in milliseconds, and in finer units only where milliseconds are not exact."""
    if instant is None or instant % MILLISECOND:
        return _all_times(instant)
    return {"ts_ms": instant // MILLISECOND}


_VALUES: Final[dict[str, Callable[[Change], dict[str, Any] | None]]] = {
    "TRANSACTION_BEGIN": _mark,
    "TRANSACTION_END": _mark,
    "HEARTBEAT": _heartbeat,
    "TOMBSTONE": lambda _: None,
}
_ROWLESS: Final = frozenset({*_MARKS, "HEARTBEAT"})
