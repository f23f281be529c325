"""Messages of several formats in which a row moves to another key: whole, and stated in part."""

from __future__ import annotations

import json
from typing import Any, Final

_TYPES: Final = {"id": "int", "n": "int", "note": "text"}
_ROW: Final = {"id": 7, "n": 1, "note": "long"}
_MOVED: Final = {"id": 8, "n": 1, "note": "long"}


def _canal(number: int, op: str, row: dict[str, Any], before: dict[str, Any] | None, names: list[str]) -> Any:
    message = {"type": op, "database": "d", "table": "t", "id": number, "es": 1000 * number, "pkNames": ["id"]}
    message["mysqlType"] = {name: _TYPES[name] for name in names}
    message["data"] = [{name: str(value) for name, value in row.items()}]
    return message if before is None else message | {"old": [{"id": str(before["id"])}]}


def _oms_default(number: int, op: str, row: dict[str, Any], before: dict[str, Any] | None, _: object) -> Any:
    meta = {"db": "d", "table_name": "t", "dbType": "MYSQL", "timestamp": str(number), "record_primary_key": "id"}
    meta["storeDataSequence"] = 160_000_000_000_000_000 + number
    return {"recordType": op, "prevStruct": before, "postStruct": row, "allMetaData": meta}


def _maxwell(number: int, op: str, row: dict[str, Any], before: dict[str, Any] | None, _: object) -> Any:
    message = {"database": "d", "table": "t", "type": op.lower(), "ts": 1_700_000_000 + number, "xid": number}
    message |= {"primary_key_columns": ["id"], "data": row}
    return message if before is None else message | {"old": {"id": before["id"]}}


def _goldengate(number: int, op: str, row: dict[str, Any], before: dict[str, Any] | None, _: object) -> Any:
    message = {"table": "d.t", "op_type": op[0], "op_ts": "2023-11-14 22:13:20.000000", "pos": f"{number:020}"}
    message |= {"primary_keys": ["id"], "after": row}
    return message if before is None else message | {"before": {"id": before["id"]}}


def _debezium(number: int, op: str, row: dict[str, Any], before: dict[str, Any] | None, _: object) -> Any:
    image = {name: row.get(name, "__debezium_unavailable_value") for name in _TYPES}
    source = {"connector": "postgresql", "db": "d", "table": "t", "lsn": number}
    old = before and {"id": before["id"], "n": None, "note": None}
    value = {"op": {"INSERT": "c"}.get(op, "u"), "before": old, "after": image, "source": source}
    return {"key": {"id": row["id"]}, "value": value}


def _datahub(number: int, op: str, row: dict[str, Any], before: dict[str, Any] | None, _: object) -> Any:
    schema = {
        "dataColumn": [{"name": "id", "type": "LONG"}, *({"name": one, "type": "STRING"} for one in ("n", "note"))]
    }
    schema |= {"source": {"dbName": "d", "dbType": "MySQL", "tableName": "t"}, "primaryKey": ["id"]}
    payload = {"op": op if before is None else "UPDATE_AFTER", "after": {"dataColumn": row}, "sequenceId": str(number)}
    return {"schema": schema, "payload": payload, "version": "0.0.1"}


# By a name: the format, what makes a message of it, and whether a message lists the columns of its row only.
_MAKERS: Final[dict[str, tuple[str, Any, bool]]] = {
    "canal": ("canal", _canal, False),
    "canal, columns of the row": ("canal", _canal, True),
    "oms_canal": ("oms_canal", _canal, False),
    "oms_default": ("oms_default", _oms_default, False),
    "maxwell": ("maxwell", _maxwell, False),
    "goldengate": ("goldengate", _goldengate, False),
    "debezium": ("debezium", _debezium, False),
    "datahub_blob": ("datahub_blob", _datahub, False),
}
MOVES: Final = tuple(_MAKERS)
"""Names of ways in which rows are moved."""


def format_of(name: str) -> str:
    """Return the format of a way."""
    return _MAKERS[name][0]


def moving(name: str, *unstated: str) -> tuple[bytes, bytes]:
    """Return the insert of row 7 of the table `d.t`, and the update of its key to 8 that does not state some columns."""
    format, make, is_of_row = _MAKERS[name]
    after = {column: value for column, value in _MOVED.items() if column not in unstated}
    listed = [*after] if is_of_row else [*_TYPES]
    messages = make(1, "INSERT", _ROW, None, [*_TYPES]), make(2, "UPDATE", after, _ROW, listed)
    if format == "oms_canal":
        # With a number, they would be told as those of Canal.
        messages = tuple({name: value for name, value in one.items() if name != "id"} for one in messages)
    first, second = (json.dumps(one).encode() for one in messages)
    return first, second
