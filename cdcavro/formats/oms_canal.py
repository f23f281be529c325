"""OMS Community Edition, Canal serialization (`avsc/oms_canal.avsc`).

Source: OMS data formats, "Canal-compatible JSON message format"; the event types are Alibaba Canal's.

* One message holds many rows: `data[]`, with `old[]` beside it row by row, changed columns only.
* Numbers are JSON numbers and binary values base64; Alibaba's own messages, all strings, are `canal`.
* `type` names DDL kinds as well; `sql` then holds the statement and `isDdl` is true.
* Many real messages lack `es`, `ts`, `id`, `isDdl` and `sql`.
"""

from __future__ import annotations

from functools import lru_cache
from itertools import zip_longest
from typing import TYPE_CHECKING, Any, Final

from cdcavro.batches import BATCHED, batches
from cdcavro.change import DDL, Change, Column, Row, Source, replace, spelled
from cdcavro.errors import StructureError
from cdcavro.format import Format
from cdcavro.images import check_images
from cdcavro.instants import MILLISECOND, from_count, to_count
from cdcavro.members import at, given, names_at, string_at
from cdcavro.text import same

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from datetime import tzinfo

FORMAT = Format("oms_canal")
OPERATIONS: Final = {op: op for op in (*DDL, "INSERT", "UPDATE", "DELETE", "GTID", "XACOMMIT", "XAROLLBACK")} | {
    "MHEARTBEAT": "HEARTBEAT",
}
SPELLINGS: Final = {op: spelling for spelling, op in OPERATIONS.items()} | {"SNAPSHOT": "INSERT"}
_MANY: Final = 10_000
# The members of a message that hold its rows.
ROWS: Final = "data"
OLD_ROWS: Final = "old"


def to_changes(record: dict[str, Any], zone: tzinfo | None = None) -> list[Change]:
    """Give a change for each row of a Canal message, or one for a statement."""
    del zone
    return changes_of(record, FORMAT.name)


def from_changes(changes: Sequence[Change], zone: tzinfo | None = None) -> list[dict[str, Any]]:
    """Give the Canal messages of changes; the rows of one message are put together again."""
    del zone
    return records_of(changes, FORMAT.name)


def changes_of(
    record: dict[str, Any],
    format: str,
    turner: Callable[[tuple[Column, ...] | None], Callable[[Row], Row]] | None = None,
) -> list[Change]:
    """Give the changes of a message of the Canal family, column values as they came or as `turner` turns them."""
    operation = string_at(record, "type") or ""
    event, batch = from_count(record.get("es"), MILLISECOND), record.get("id")
    whole = Change(
        op=OPERATIONS.get(operation, "OTHER"),
        operation=operation,
        source=Source(format=format, database=string_at(record, "database"), table=string_at(record, "table")),
        key=names_at(record, "pkNames"),
        columns=_columns(record),
        position=_position(event, batch),
        event_time=event,
        system_time=from_count(record.get("ts"), MILLISECOND),
        transaction=string_at(record, "gtid"),
        ddl=string_at(record, "sql") or None,
    )
    rows = record.get("data") or []
    olds = record.get("old") or []
    if len(olds) > len(rows):
        raise StructureError(f"at most {len(rows)} rows in old, as in data", f"{len(olds)}", pointer="/old")
    if not rows:
        return [whole]
    if turner is not None:
        turn = turner(whole.columns)
        rows, olds = ([row and turn(row) for row in listed] for listed in (rows, olds))
    pairs = zip_longest(rows, olds)
    return [_row(whole, row, old, i, len(rows)) for i, (row, old) in enumerate(pairs)]


def _position(event: int | None, batch: Any) -> tuple[int, ...] | None:
    """Give the time and the number of the batch, as far as they are there."""
    numbers = [] if event is None else [event // MILLISECOND]
    numbers += [batch] if type(batch) is int else []
    return tuple(numbers) or None


def _row(whole: Change, row: Row | None, old: Row | None, index: int, count: int) -> Change:
    if whole.op == "DELETE":
        if old is not None:
            raise StructureError("no second row before the change for DELETE", "some", pointer=f"/old/{index}")
        return replace(whole, before=row, row=index, rows=count)
    before = None if old is None else (row or {}) | old
    changed = None if old is None else tuple(old)
    change = replace(whole, before=before, after=row, changed=changed, row=index, rows=count)
    return check_images(change, f"/old/{index}", f"/data/{index}")


def records_of(changes: Sequence[Change], format: str) -> list[dict[str, Any]]:
    """Give the messages of the Canal family of changes, column values as they are."""
    wanted = [change for change in changes if spelled(change, format, SPELLINGS) is not None]
    return [_message(rows, format) for rows in batches(wanted)]


def _message(rows: list[Change], format: str) -> dict[str, Any]:
    first = rows[0]
    source = first.source
    images = [change.before if change.op == "DELETE" else change.after for change in rows]
    has_rows = any(image is not None for image in images)
    olds = [_old(change) for change in rows] if first.op in ("UPDATE", "OTHER") else []
    columns = first.columns
    position, before = first.position or (), int(first.event_time is not None)
    scalars = {
        "id": position[before] if source.format in BATCHED and len(position) > before else None,
        "database": source.database,
        "table": source.table,
        "isDdl": first.op in DDL,
        "es": to_count(first.event_time, MILLISECOND),
        "ts": to_count(first.system_time, MILLISECOND),
        "sql": first.ddl or "",
        "gtid": first.transaction,
    }
    return given(scalars) | {
        "type": spelled(first, format, SPELLINGS),
        "pkNames": list(first.key) if first.key is not None else None,
        "sqlType": None if columns is None else {_name(one): one.code for one in columns if one.code is not None},
        "mysqlType": None if columns is None else {_name(one): one.type for one in columns if one.type is not None},
        "data": images if has_rows else None,
        "old": olds if any(old is not None for old in olds) else None,
    }


def _old(change: Change) -> Row | None:
    if change.before is None:
        return None
    after = change.after or {}
    if change.changed is not None:
        return {name: change.before[name] for name in change.changed if name in change.before}
    return {name: value for name, value in change.before.items() if name not in after or not same(value, after[name])}


def _columns(record: dict[str, Any]) -> tuple[Column, ...] | None:
    """Give the columns of a message: the same object for the same ones, which most messages of a table have."""
    types, codes = at(record, "mysqlType"), at(record, "sqlType")
    if types is None and codes is None:
        return None
    types, codes = types or {}, codes or {}
    listed = _listed if len(types) + len(codes) <= _MANY else _listed.__wrapped__
    # 4 and 4.0 are one key, and two codes.
    return listed(tuple(types.items()), tuple(codes.items()), tuple(map(type, codes.values())))


@lru_cache(maxsize=512)
def _listed(
    types: tuple[tuple[str, Any], ...], codes: tuple[tuple[str, Any], ...], _: tuple[type, ...]
) -> tuple[Column, ...]:
    typed, coded = dict(types), dict(codes)
    names = dict.fromkeys([*typed, *coded])
    return tuple(Column(name=name, type=string_at(typed, name), code=_code(coded, name)) for name in names)


def _code(codes: Any, name: str) -> int | None:
    code = at(codes, name)
    return code if type(code) is int and -(2**31) <= code < 2**31 else None


def _name(column: Column) -> str:
    return column.name or ""
