"""OMS Community Edition, Default serialization (`avsc/oms_default.avsc`).

Source: OMS data formats, "Default JSON message format".

* The row images are `prevStruct` and `postStruct`; an absent one is null, not left out. An empty one is none
  where the operation has no such row.
* `recordType` is ROW for a row of a full load. It is DDL for every kind of statement: `postStruct.ddl` holds its text.
* Times are seconds since the epoch, as strings.
* `storeDataSequence`, `timestamp` and `uniqueId` come in the incremental phase only: a `ROW` with the first is a row
  that was read in mid-stream, and has its place there.
* Binary values are base64; DECIMAL and 64-bit values are JSON numbers of any length.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from cdcavro.change.model import DDL, Change, Row, Source, check_images
from cdcavro.change.operations import read_operation, spell_operation, statement_kind, statement_text
from cdcavro.exact.instants import SECOND, from_count, to_count
from cdcavro.exact.jsontext import at, drop_nulls, string_at
from cdcavro.exact.numbers import plain_text
from cdcavro.formats.bridge import Bridge

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import tzinfo

FORMAT: Final = "oms_default"
OPERATIONS: Final = {
    "INSERT": "INSERT",
    "UPDATE": "UPDATE",
    "DELETE": "DELETE",
    "ROW": "SNAPSHOT",
    "HEARTBEAT": "HEARTBEAT",
}
SPELLINGS: Final = {op: spelling for spelling, op in OPERATIONS.items()} | dict.fromkeys(DDL, "DDL")
SEPARATORS: Final = ("\x01", "/u0001")
_SECONDS_DIGITS: Final = 10
_SEQUENCE: Final = re.compile(r"[0-9]{10,15}", re.ASCII)


def to_changes(record: dict[str, Any], _zone: tzinfo | None = None) -> list[Change]:
    """Return the change of a Default record."""
    return [change_of(record, FORMAT, record.get("prevStruct"), record.get("postStruct"))]


def from_changes(changes: Sequence[Change], _zone: tzinfo | None = None) -> list[dict[str, Any]]:
    """Return the Default records of changes; transaction marks have none."""
    return [record_of(change, FORMAT) for change in changes if spell_operation(change, FORMAT, SPELLINGS) is not None]


def change_of(record: dict[str, Any], format: str, before: Row | None, after: Row | None) -> Change:
    """Return the change of a record of the Default family; its row images are passed separately."""
    meta = at(record, "allMetaData")
    operation = string_at(record, "recordType") or ""
    is_ddl = operation.upper() == "DDL"
    ddl = string_at(after, "ddl") if is_ddl and after is not None and set(after) == {"ddl"} else None
    op = statement_kind(ddl or "") if is_ddl else read_operation(operation, OPERATIONS)
    db_type = string_at(meta, "dbType")
    tenant, database = _database(string_at(meta, "db"), db_type)
    number = store_sequence(at(meta, "storeDataSequence"))
    change = Change(
        op=op,
        operation=operation,
        source=Source(
            format=format, db_type=db_type, tenant=tenant, database=database, table=string_at(meta, "table_name")
        ),
        key=_split_names(string_at(meta, "record_primary_key")),
        before=before,
        after=None if ddl is not None else after,
        position=number,
        event_time=from_count(at(meta, "timestamp"), SECOND),
        checkpoint_time=from_count(at(meta, "checkpoint"), SECOND) if op != "SNAPSHOT" else None,
        transaction=string_at(meta, "uniqueId"),
        ddl=ddl,
        snapshot=False if op == "SNAPSHOT" and at(meta, "storeDataSequence") is not None else None,
    )
    return check_images(change, "/prevStruct", "/postStruct")


def record_of(change: Change, format: str) -> dict[str, Any]:
    """Return a change as a record of the Default family."""
    source = change.source
    timestamp = to_count(change.event_time, SECOND)
    checkpoint = to_count(change.checkpoint_time, SECOND)
    key = change.key or ()
    ddl = statement_text(change)
    image = change.before if change.before is not None else change.after
    values = [plain_text(image[name]) for name in key if image is not None and type(image.get(name)) not in _NO_TEXT]
    meta = {
        "checkpoint": None if checkpoint is None else str(checkpoint),
        "record_primary_key": SEPARATORS[0].join(key) if change.key is not None else None,
        "source_identity": None,
        "record_primary_value": SEPARATORS[0].join(values) if key and len(values) == len(key) else None,
        "dbType": source.db_type,
        "table_name": source.table,
        "db": _name(source.tenant, source.database),
    }
    optional = {
        "storeDataSequence": _store_number(change.position) if source.format in SEQUENCED else None,
        "timestamp": None if timestamp is None else str(timestamp),
        "uniqueId": change.transaction,
    }
    return {
        "prevStruct": change.before,
        "postStruct": change.after if ddl is None else {"ddl": ddl},
        "allMetaData": meta | drop_nulls(optional),
        "recordType": spell_operation(change, format, SPELLINGS),
    }


SEQUENCED: Final = frozenset({"oms_default", "oms_default_extend_column_type"})
_NO_TEXT: Final = (type(None), dict, list)


def store_sequence(value: Any) -> tuple[int, ...] | None:
    """Return the two parts of a `storeDataSequence`, seconds and a number of at most five digits; else None.

    The padding of the number is not documented, so the digits must not be compared as a single number.

    >>> store_sequence(160934467100012)
    (1609344671, 12)
    """
    digits = str(value) if type(value) is int else value
    if type(digits) is not str or not _SEQUENCE.fullmatch(digits):
        return None
    return int(digits[:_SECONDS_DIGITS]), int(digits[_SECONDS_DIGITS:] or "0")


def _store_number(position: tuple[int, ...] | None) -> int | None:
    return int(f"{position[0]}{position[1]:05}") if position is not None and len(position) == 2 else None  # noqa: PLR2004


def _database(name: str | None, db_type: str | None) -> tuple[str | None, str | None]:
    kind = (db_type or "").upper()
    if name is not None and (kind == "OCEANBASE" or kind.startswith("OB_")):
        tenant, dot, database = name.partition(".")
        if dot:
            return tenant, database
    return None, name


def _name(tenant: str | None, database: str | None) -> str | None:
    """Return the name that `_database` splits; a tenant without a database cannot be written."""
    return database if tenant is None or database is None else f"{tenant}.{database}"


def _split_names(names: str | None) -> tuple[str, ...] | None:
    if not names:
        return None if names is None else ()
    separator = next((separator for separator in SEPARATORS if separator in names), SEPARATORS[0])
    return tuple(names.split(separator))


BRIDGE: Final = Bridge(to_changes=to_changes, from_changes=from_changes)
