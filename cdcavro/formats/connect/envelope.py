"""Making Debezium's values and keys from changes.

What a change does not state is left out, or is null where MySQL's connector always sends the member.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from cdcavro.change.connect_values import codec_of, send_connect_value
from cdcavro.change.model import DDL, Change, Row, replace
from cdcavro.change.operations import spelled
from cdcavro.exact.diff import same
from cdcavro.exact.instants import MILLISECOND
from cdcavro.exact.jsontext import escape, parse
from cdcavro.exact.members import given
from cdcavro.exact.numbers import MAX_LONG
from cdcavro.exact.sqltype import MYSQL_FAMILY

if TYPE_CHECKING:
    from collections.abc import Callable

OWN: Final = "debezium"
# Where an envelope stands in a line.
_ABOVE: Final = ("", "/payload", "/value", "/value/payload")
_LETTERS: Final = {"INSERT": "c", "UPDATE": "u", "DELETE": "d", "SNAPSHOT": "r", "TRUNCATE": "t"}
_MARKS: Final = {"TRANSACTION_BEGIN": "BEGIN", "TRANSACTION_END": "END"}
_GTID: Final = re.compile(r"[0-9a-fA-F-]{36}:(?:\w+:)?[0-9]+|[0-9]+-[0-9]+-[0-9]+", re.ASCII)
_SENT_AS_NULL: Final = ("sequence", "table", "gtid", "thread", "query")
_BINLOG_PARTS: Final = 3
_NANOSECONDS: Final = 1_000


def is_debezium(change: Change) -> bool:
    """Return whether a change came from Debezium."""
    return change.source.format == OWN


def is_sendable(change: Change) -> bool:
    """Return whether Debezium has a message for this kind of change."""
    return is_debezium(change) or change.op in DDL or change.op in _LETTERS or change.op in _VALUES


def is_row(change: Change) -> bool:
    """Return whether a change affects a row, or all rows of a table."""
    return not _is_statement(change) and change.op not in _ROWLESS


def value_of(change: Change) -> dict[str, Any] | None:
    """Return the value of a change's message, without a schema; None for a tombstone."""
    return _statement(change) if _is_statement(change) else _VALUES.get(change.op, _row)(change)


def key_of(change: Change) -> Row | None:
    """Return the key of a change's message, without a schema; None if it has no key."""
    if _is_statement(change):
        return {"databaseName": change.source.database}
    if change.op in _MARKS:
        return {"id": change.transaction}
    image = _sent(change, change.before if change.after is None else change.after) or {}
    return {name: image[name] for name in change.key or () if name in image} or None


def with_sent_values(change: Change, original: Change) -> Change:
    """Return a change read from another format with its values as they were sent in the original from Debezium.

    A change without columns stays as it is: its reader cannot know how the values would be sent.
    """
    if change.columns is None or not is_debezium(original):
        return change
    before, after = _sent_as(original, change.before, "before"), _sent_as(original, change.after, "after")
    return replace(change, before=before, after=after)


def _sent_as(original: Change, image: Row | None, name: str) -> Row | None:
    """Return a row as it is sent, with values that are those of the original as they were sent there."""
    sent, own, members = _sent(original, image), getattr(original, name) or {}, original.members or {}
    if image is None or sent is None or not members:
        return sent
    sent = dict(sent)
    for column, value in image.items():
        texts = [members.get(f"{above}/{name}/{escape(column)}") for above in _ABOVE]
        text = next((text for text in texts if text), None)
        if text is not None and column in own and same(own[column], value):
            sent[column] = parse(text)
    return sent


def _is_statement(change: Change) -> bool:
    return change.op in DDL and (change.op != "TRUNCATE" or change.ddl is not None)


def _row(change: Change) -> dict[str, Any]:
    return {
        "before": _sent(change, change.before),
        "after": _sent(change, change.after),
        "source": _source(change),
        "op": spelled(change, OWN, _LETTERS),
        **_times(change.system_time),
        "transaction": _block(change),
    }


def _statement(change: Change) -> dict[str, Any]:
    return {
        "source": _source(change),
        **_time(change.system_time),
        **given({"transaction": _block(change)}),
        "databaseName": change.source.database,
        "schemaName": change.source.schema,
        "ddl": change.ddl,
        "tableChanges": [],
    }


def _mark(change: Change) -> dict[str, Any]:
    mark = {"status": _MARKS[change.op], "id": change.transaction, "event_count": None, "data_collections": None}
    return mark | _time(change.event_time)


def _heartbeat(change: Change) -> dict[str, Any]:
    return {"ts_ms": None} | _time(change.system_time)


def _source(change: Change) -> dict[str, Any]:
    source = change.source
    is_mysql = source.db_type in MYSQL_FAMILY
    known = {
        "connector": source.db_type,
        **_times(change.event_time),
        "snapshot": _snapshot(change),
        "db": source.database,
        "schema": source.schema,
        "table": source.table,
        "gtid": change.transaction if _is_gtid(change) else None,
    }
    if is_debezium(change) and is_mysql and change.position is not None and len(change.position) == _BINLOG_PARTS:
        known |= {"pos": change.position[1], "row": change.position[2]}
    return dict.fromkeys(_SENT_AS_NULL if is_mysql else ()) | given(known)


def _snapshot(change: Change) -> str:
    if change.op == "SNAPSHOT" and change.snapshot is False:
        return "incremental"
    return "true" if change.op == "SNAPSHOT" or change.snapshot else "false"


def _block(change: Change) -> dict[str, Any] | None:
    return None if change.transaction is None or _is_gtid(change) else {"id": change.transaction}


def _is_gtid(change: Change) -> bool:
    return change.transaction is not None and _GTID.fullmatch(change.transaction) is not None


def _sent(change: Change, image: Row | None) -> Row | None:
    """Return a row as Debezium sends it; a row from another format is sent as it is."""
    if image is None or change.columns is None or not is_debezium(change):
        return image
    codecs = {column.name: codec_of(column.type, change.source.db_type) for column in change.columns}
    return {name: send_connect_value(value, codecs.get(name)) for name, value in image.items()}


def _times(instant: int | None) -> dict[str, Any]:
    if instant is None:
        return {}
    nanoseconds = instant * _NANOSECONDS
    times = {"ts_ms": instant // MILLISECOND, "ts_us": instant}
    return times | ({"ts_ns": nanoseconds} if -MAX_LONG <= nanoseconds <= MAX_LONG else {})


def _time(instant: int | None) -> dict[str, Any]:
    """Return an instant in milliseconds, and in finer units only where milliseconds are not exact."""
    if instant is None or instant % MILLISECOND:
        return _times(instant)
    return {"ts_ms": instant // MILLISECOND}


_VALUES: Final[dict[str, Callable[[Change], dict[str, Any] | None]]] = {
    "TRANSACTION_BEGIN": _mark,
    "TRANSACTION_END": _mark,
    "HEARTBEAT": _heartbeat,
    "TOMBSTONE": lambda _: None,
}
_ROWLESS: Final = frozenset({*_MARKS, "HEARTBEAT"})
