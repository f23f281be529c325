"""Strangers: messages of formats that are known by sight, so that an error can name them, and that are not supported."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from cdcavro.exact.members import at
from cdcavro.wire.kafka import VALUE, is_kafka_record

if TYPE_CHECKING:
    from collections.abc import Callable

_MAXWELL: Final = frozenset(
    {
        *("insert", "update", "delete", "bootstrap-start", "bootstrap-insert", "bootstrap-complete"),
        *("table-create", "table-alter", "table-drop", "database-create", "database-alter", "database-drop"),
    }
)
_SIGNALS: Final = frozenset(
    {"execute-snapshot", "stop-snapshot", "pause-snapshot", "resume-snapshot", "schema-changes"}
)


def stranger(value: Any) -> str | None:
    """Return the name of the unsupported format that a JSON value is a message of; None if it is of none of them.

    >>> stranger({"database": "d", "table": "t", "type": "insert", "ts": 1, "data": {"id": 1}})
    'a message of Maxwell'
    """
    message = value[VALUE] if is_kafka_record(value) else value
    if type(message) is dict and type(message.get("payload")) is dict and message.keys() <= {"schema", "payload"}:
        message = message["payload"]
    if type(message) is not dict:
        return None
    return next((name for name, is_one in _STRANGERS.items() if is_one(message)), None)


def _is_maxwell(message: dict[str, Any]) -> bool:
    kind = message.get("type")
    is_word = type(kind) is str and kind in _MAXWELL
    return is_word and "database" in message and type(message.get("data")) in (dict, type(None)) and "id" not in message


def _is_ticdc(message: dict[str, Any]) -> bool:
    return {"commitTs", "type"} <= message.keys() and ("buildTs" in message or "schemaVersion" in message)


_STRANGERS: Final[dict[str, Callable[[dict[str, Any]], bool]]] = {
    "a message of Maxwell": _is_maxwell,
    "a message of TiCDC's Simple Protocol": _is_ticdc,
    "a message of Oracle GoldenGate": lambda message: {"op_type", "op_ts"} <= message.keys(),
    "an event of a MongoDB change stream": lambda message: {"operationType", "ns"} <= message.keys(),
    "a notification of Debezium": lambda message: {"aggregate_type", "type"} <= message.keys(),
    "a signal to Debezium": lambda message: type(message.get("type")) is str and message["type"] in _SIGNALS,
    "a row that Debezium sent without its envelope": lambda message: {"__deleted", "__op"} & message.keys() != set(),
    "a message of AWS DMS": lambda message: type(at(message, "metadata", "record-type")) is str,
}
