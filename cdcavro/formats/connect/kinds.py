"""The kinds of Debezium's messages: each is told by exactly the members that are documented for it.

Rows without an envelope may have columns of the same names, `id` and `status` or `ts_ms`. So a message without a
row image that has any further member, or another value than its kind has, is of no kind.

Source: Debezium reference, the connectors' "Data change events", "Schema change topic", "Transaction metadata"
and "Heartbeats".
"""

from __future__ import annotations

from typing import Any, Final

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
_OF_A_MARK: Final = _TIMES | {"status", "id", "event_count", "data_collections"}


def kind_of(envelope: dict[str, Any]) -> str | None:
    """Return the kind of an envelope: `ROW`, `STATEMENT`, `MARK`, `HEARTBEAT`, or `NOTHING` if it is empty; else None.

    >>> kind_of({"ts_ms": 1}), kind_of({"ts_ms": 1, "id": 5}), kind_of({"op": "c", "after": {"id": 5}, "more": 1})
    ('heartbeat', None, 'row')
    """
    names = envelope.keys()
    if any(envelope.get(name) is not None for name in IMAGES):
        return ROW
    if type(envelope.get("op")) is str and (names <= _OF_A_ROW or type(envelope.get("source")) is dict):
        return ROW
    if ("ddl" in names or "tableChanges" in names) and names <= _OF_A_STATEMENT:
        return STATEMENT
    if "id" in names and names <= _OF_A_MARK:
        is_mark = envelope.get("status") in list(MARKS) and type(envelope["id"]) in (str, type(None))
        return MARK if is_mark else None
    if names <= _TIMES:
        return _of_times(envelope)
    return None


def _of_times(envelope: dict[str, Any]) -> str | None:
    if not envelope:
        return NOTHING
    return HEARTBEAT if all(type(time) in (int, type(None)) for time in envelope.values()) else None
