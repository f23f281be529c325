"""OMS Community Edition, Canal serialization (`avsc/oms_canal.avsc`).

Source: OMS data formats, "Canal-compatible JSON message format"; the event types are Alibaba Canal's.

* One message holds many rows: `data[]`, and row by row beside it `old[]`, which has the changed columns only.
* An empty row in `old` is no row before the change: the columns that changed were not logged as they were.
* Numbers are JSON numbers and binary values are base64; Alibaba's own messages, all strings, are `canal`.
* `type` also names the kinds of DDL; `sql` then holds the statement and `isDdl` is true.
* Many real messages lack `es`, `ts`, `id`, `isDdl` and `sql`.
* TiCDC's `_tidb` has the number of a commit, which is the order, and says where a message has the key of a row alone;
  such a message has no changes, as its other values stand elsewhere.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

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
from cdcavro.change.operations import as_statement, read_operation, spell_operation
from cdcavro.change.order import NUMBERED, is_batched
from cdcavro.engine.machine import same
from cdcavro.errors import StructureError
from cdcavro.exact.caching import MOST_COLUMNS, IdentityCache, WeightedCache, weight_of
from cdcavro.exact.instants import MILLISECOND, from_count, to_count
from cdcavro.exact.jsontext import at, drop_nulls, member_names, string_at, text_or_none, whole_number
from cdcavro.formats.bridge import Bridge

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import tzinfo

    from cdcavro.change.canal_values import CanalRowReader, CanalRowWriter

FORMAT: Final = "oms_canal"
OPERATIONS: Final = {op: op for op in (*DDL, "INSERT", "UPDATE", "DELETE", "GTID", "XACOMMIT", "XAROLLBACK")} | {
    "MHEARTBEAT": "HEARTBEAT",
    "TIDB_WATERMARK": "HEARTBEAT",
}
SPELLINGS: Final = {op: spelling for spelling, op in OPERATIONS.items()} | {
    "SNAPSHOT": "INSERT",
    "HEARTBEAT": "MHEARTBEAT",
}
# Members of `_tidb` that say that a row has its key alone, since it was too large for a message.
_ELSEWHERE: Final = ("onlyHandleKey", "claimCheckLocation")


class _KnownTable(NamedTuple):
    """A table and its columns, as its last message listed them."""

    source: Source
    columns: tuple[Column, ...]
    types: dict[str, Any]
    codes: dict[str, Any]


# The `_KnownTable` of each source.
_LAST: Final = WeightedCache(MOST_COLUMNS)


def to_changes(record: dict[str, Any], _zone: tzinfo | None = None) -> list[Change]:
    """Return a change for each row of a Canal message, or one change for a statement."""
    return changes_of(record, FORMAT)


def from_changes(changes: Sequence[Change], _zone: tzinfo | None = None) -> list[dict[str, Any]]:
    """Return the Canal messages of changes, joining the rows that came in one message."""
    return records_of(changes, FORMAT)


def changes_of(
    record: dict[str, Any], format: str, converters: IdentityCache | None = None, zone: tzinfo | None = None
) -> list[Change]:
    """Return the changes of a message of the Canal family.

    Column values stay as they came, unless `converters` holds the `CanalRowReader` for the columns and the zone.
    """
    operation = text_or_none(record.get("type")) or ""
    database, table = text_or_none(record.get("database")), text_or_none(record.get("table"))
    transaction = text_or_none(record.get("gtid"))
    tidb = record.get("_tidb")
    commit = None if tidb is None else _commit(tidb)
    db_type = None if commit is None else NUMBERED
    source, columns = _table(record, Source(format=format, db_type=db_type, database=database, table=table))
    event, batch = from_count(record.get("es"), MILLISECOND), record.get("id")
    base = Change(
        op=read_operation(operation, OPERATIONS),
        operation=operation,
        source=source,
        key=member_names(record.get("pkNames")),
        columns=columns,
        position=_position(event, batch) if commit is None else (commit,),
        event_time=event,
        system_time=from_count(record.get("ts"), MILLISECOND),
        transaction=transaction if transaction or format == FORMAT else None,
        ddl=text_or_none(record.get("sql")) or None,
    )
    rows = record.get("data") or []
    olds = record.get("old") or []
    if olds and not rows and base.op == "DELETE":
        got = "it in old, as Alibaba DTS sends it of instances that were not restarted since March 20, 2022"
        raise StructureError("the row of a delete in data", got, pointer="/old")
    if olds and len(olds) != len(rows):
        raise StructureError(f"as many rows in old as in data ({len(rows)})", f"{len(olds)}", pointer="/old")
    if not rows:
        return [as_statement(base) if record.get("isDdl") is True else base]
    check_count(rows, MAX_ROWS, "/data")
    if record.get("isDdl") is True and base.op not in DDL:
        raise StructureError("no row in a statement (isDdl)", "some", pointer="/data")
    if converters is not None:
        converter = converters.of(columns, zone)
        rows, olds = [row and converter.convert(row) for row in rows], [row and converter.convert(row) for row in olds]
    return [_row(base, row, olds[i] if olds else None, i, len(rows)) for i, row in enumerate(rows)]


def _commit(tidb: Any) -> int | None:
    """Return the number of the commit, or of the watermark, of a message of TiCDC; None if it has none.

    Raises `StructureError` for a message that has the key of a row alone.
    """
    for name in _ELSEWHERE:
        if at(tidb, name) not in (None, False, ""):
            got = "its key alone, as it was too large for TiCDC's message"
            raise StructureError("a whole row", got, pointer=f"/_tidb/{name}")
    numbers = (whole_number(string_at(tidb, name)) for name in ("commitTs", "watermarkTs"))
    return next((number[0] for number in numbers if number is not None), None)


def _position(event: int | None, batch: Any) -> tuple[int, ...] | None:
    """Return the time in milliseconds and the number of the batch, as far as the message has them."""
    numbers = [] if event is None else [event // MILLISECOND]
    numbers += [batch] if type(batch) is int else []
    return tuple(numbers) or None


def _row(base: Change, row: Row | None, old: Row | None, index: int, count: int) -> Change:
    if not old and base.op != "UPDATE":
        old = None  # an empty one is none where there is no row before
    if base.op == "DELETE":
        if old is not None:
            raise StructureError("no second row before the change for DELETE", "some", pointer=f"/old/{index}")
        return replace(base, before=row, row=index, rows=count)
    before = None if old is None else (row or {}) | old
    changed = None if old is None else tuple(old)
    change = replace(base, before=before, after=row, changed=changed, row=index, rows=count)
    change = check_images(change, "/old", "/data", index)
    # Where no changed column is left, the source did not log what they were.
    return change if old or old is None else replace(change, before=None, changed=None)


def records_of(
    changes: Sequence[Change], format: str, converters: IdentityCache | None = None, zone: tzinfo | None = None
) -> list[dict[str, Any]]:
    """Return changes as messages of the Canal family, their column values as they are or converted by `converters`."""
    wanted = [change for change in changes if spell_operation(change, format, SPELLINGS) is not None]
    return [
        _message(rows, format, None if converters is None else converters.of(rows[0].columns, zone))
        for rows in group_rows(wanted)
    ]


def _message(rows: list[Change], format: str, converter: CanalRowReader | CanalRowWriter | None) -> dict[str, Any]:
    first = rows[0]
    source = first.source
    images = [change.before if change.op == "DELETE" else change.after for change in rows]
    has_rows = any(image is not None for image in images)
    columns = first.columns
    if converter is not None:
        images = [image and converter.convert(image) for image in images]
    olds = [_old(change, image, converter) for change, image in zip(rows, images, strict=True)]
    position, before = first.position or (), int(first.event_time is not None)
    types, codes = (None, None) if columns is None else _MEMBERS.of(columns)
    scalars = {
        "id": position[before] if is_batched(first) and len(position) > before else None,
        "database": source.database,
        "table": source.table,
        "isDdl": first.op in DDL,
        "es": to_count(first.event_time, MILLISECOND),
        "ts": to_count(first.system_time, MILLISECOND),
        "sql": first.ddl or "",
        "gtid": first.transaction,
    }
    record: dict[str, Any] = drop_nulls(scalars)
    record["type"] = spell_operation(first, format, SPELLINGS)
    record["pkNames"] = None if first.key is None else list(first.key)
    record["sqlType"] = None if codes is None else dict(codes)
    record["mysqlType"] = None if types is None else dict(types)
    record["data"] = images if has_rows else None
    record["old"] = olds if any(old is not None for old in olds) else None
    return record


def _old(change: Change, image: Row | None, converter: CanalRowReader | CanalRowWriter | None) -> Row | None:
    """Return the `old` row of an update, None for other changes; `image` is its row in `data`, as it is sent."""
    if change.before is None or change.op not in ("UPDATE", "OTHER"):
        return None
    before = change.before
    if change.changed is not None:
        before = {name: before[name] for name in change.changed if name in before}
    if converter is not None:
        before = converter.convert(before)
    if change.changed is not None:
        return before
    after = image or {}
    return {name: value for name, value in before.items() if name not in after or not same(value, after[name])}


def _table(record: dict[str, Any], source: Source) -> tuple[Source, tuple[Column, ...] | None]:
    """Return the source and columns of a message: the very objects of the table's last message if they are equal."""
    types, codes = record.get("mysqlType"), record.get("sqlType")
    if types is None and codes is None:
        return source, None
    types, codes = types or {}, codes or {}
    last: _KnownTable | None = _LAST.get(source)
    if last is not None and same(types, last.types) and same(codes, last.codes) and _are_in_order(types, codes, last):
        return last.source, last.columns
    columns = _columns(types, codes)
    _LAST.put(source, _KnownTable(source, columns, dict(types), dict(codes)), weight_of(columns))
    return source, columns


def _are_in_order(types: dict[str, Any], codes: dict[str, Any], last: _KnownTable) -> bool:
    """Return whether columns are in the order of the last ones: that of their codes, and of types without a code."""
    return [*codes] == [*last.codes] and ([*types] == [*last.types] or types.keys() <= codes.keys())


def _columns(types: dict[str, Any], codes: dict[str, Any]) -> tuple[Column, ...]:
    # TiCDC lists the types in any order, another one in each message, but the codes in that of the table.
    names = dict.fromkeys([*codes, *types])
    return tuple(Column(name=name, type=text_or_none(types.get(name)), code=_code(codes, name)) for name in names)


def _code(codes: Any, name: str) -> int | None:
    code = at(codes, name)
    return code if type(code) is int and -(2**31) <= code < 2**31 else None


def _types_and_codes(columns: tuple[Column, ...], _: object) -> tuple[dict[str, str], dict[str, int]]:
    """Return the types and the codes of columns by their names."""
    types = {column.name or "": column.type for column in columns if column.type is not None}
    codes = {column.name or "": column.code for column in columns if column.code is not None}
    return types, codes


_MEMBERS: Final = IdentityCache(_types_and_codes)


BRIDGE: Final = Bridge(to_changes=to_changes, from_changes=from_changes)
