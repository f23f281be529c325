"""OMS Community Edition, SharePlex serialization (`avsc/oms_shareplex.avsc`).

Source: OMS data formats, "SharePlex-compatible JSON message format"; Alibaba Cloud, "Data formats of a Kafka cluster"
of Data Transmission Service (DTS).

* Operations are `ins`, `upd` and `del`, in lower case.
* For `upd`, `key` is the whole row before the change and `data` has only the changed columns.
* The document's template has an empty `key`. For `ins` and `del`, which have none, that is no row.
* Times are text without a zone; a time with a zone is an instant already.
* `seq` is documented as a string but printed as a number.
* `size` and `idx` occur in the samples only.
* `scn` is a time and a counter of OMS, or Oracle's system change number where Alibaba DTS sends this format: it is the
  first only if its time is one at which the message can have been made, and `rowid` none of Oracle's, which has no dot.
"""

from __future__ import annotations

import re
from datetime import UTC
from typing import TYPE_CHECKING, Any, Final

from cdcavro.change.model import Change, Row, Source, check_images
from cdcavro.change.operations import read_operation, spell_operation
from cdcavro.errors import StructureError
from cdcavro.exact.instants import SECOND, from_text, to_local
from cdcavro.exact.jsontext import at, drop_nulls, same, string_at, whole_number
from cdcavro.formats.bridge import Bridge
from cdcavro.formats.oms_default import store_sequence

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import tzinfo

FORMAT: Final = "oms_shareplex"
OPERATIONS: Final = {"ins": "INSERT", "upd": "UPDATE", "del": "DELETE"}
SPELLINGS: Final = {op: spelling for spelling, op in OPERATIONS.items()} | {"SNAPSHOT": "ins"}
_PLACE: Final = re.compile(r"([0-9]{1,18})/[0-9]{1,18}", re.ASCII)
# In seconds: how far a text without a zone may be from its instant, and the years of OMS for a message without times.
_DAY: Final = 86_400
_FIRST, _LAST = 1_577_836_800, 4_102_444_800


def to_changes(record: dict[str, Any], zone: tzinfo | None = None) -> list[Change]:
    """Return the change of a SharePlex message; its times become instants only if the zone is known."""
    meta, data, key = record["meta"], record.get("data"), record.get("key")
    operation = string_at(meta, "op") or ""
    op = read_operation(operation, OPERATIONS)
    if op == "DELETE" and key:
        raise StructureError(f"no second row before the change for {operation}", "some", pointer="/key")
    database, dot, table = (string_at(meta, "table") or "").partition(".")
    change = Change(
        op=op,
        operation=operation,
        source=Source(format=FORMAT, database=database if dot else None, table=(table if dot else database) or None),
        before=data if op == "DELETE" else key,
        after=None if op == "DELETE" else _after(op, data, key),
        changed=tuple(data) if op == "UPDATE" and data is not None else None,
        position=_position(meta),
        event_time=from_text(at(meta, "time"), zone),
        system_time=from_text(at(meta, "posttime"), zone),
        transaction=string_at(meta, "trans"),
    )
    return [check_images(change, "/key", "/data")]


def from_changes(changes: Sequence[Change], zone: tzinfo | None = None) -> list[dict[str, Any]]:
    """Return the SharePlex messages of changes; statements, heartbeats and transaction marks have none."""
    return [_message(change, zone) for change in changes if spell_operation(change, FORMAT, SPELLINGS) is not None]


def _after(op: str, data: Row | None, key: Row | None) -> Row | None:
    return data if op != "UPDATE" or key is None or data is None else key | data


def _message(change: Change, zone: tzinfo | None) -> dict[str, Any]:
    source = change.source
    table = (
        None
        if source.table is None
        else source.table
        if source.database is None
        else f"{source.database}.{source.table}"
    )
    meta = {
        "posttime": to_local(change.system_time, zone),
        "op": spell_operation(change, FORMAT, SPELLINGS),
        "time": to_local(change.event_time, zone),
        "table": table,
        "trans": change.transaction,
    }
    data = change.before if change.op == "DELETE" else _changed(change)
    key = change.before if change.op in ("UPDATE", "OTHER") else None
    return drop_nulls({"data": data, "meta": drop_nulls(meta), "key": key})


def _changed(change: Change) -> Row | None:
    after = change.after
    if change.op != "UPDATE" or after is None:
        return after
    if change.changed is not None:
        return {name: after[name] for name in change.changed if name in after}
    before = change.before or {}
    return {name: value for name, value in after.items() if name not in before or not same(value, before[name])}


def _position(meta: dict[str, Any]) -> tuple[int, ...] | None:
    """Return the numbers that order changes: `scn`, then the first number of `idx` and `seq`, each to break ties."""
    scn, seq = string_at(meta, "scn"), whole_number(string_at(meta, "seq"))
    parts = store_sequence(scn)
    first = parts if parts is not None and _is_time(parts[0], meta) else whole_number(scn)
    match = _PLACE.fullmatch(string_at(meta, "idx") or "")
    place = () if match is None else (int(match[1]),)
    if first is None:
        return None if seq is None else (*seq, *place)
    return (*first, *place) if seq is None else (*first, *(place or (0,)), *seq)


def _is_time(seconds: int, meta: dict[str, Any]) -> bool:
    """Return whether OMS can have numbered a message at a time: near its own times, or in the years of OMS.

    The system change number of a source says nothing about the time. Cut like one of OMS, it would fall back when it
    gets another digit.
    """
    row = string_at(meta, "rowid")
    if row is not None and "." not in row:
        return False
    stated = (from_text(at(meta, name), UTC) for name in ("time", "posttime"))
    times = [instant // SECOND for instant in stated if instant is not None]
    return min(times) - _DAY <= seconds <= max(times) + _DAY if times else _FIRST <= seconds < _LAST


BRIDGE: Final = Bridge(to_changes=to_changes, from_changes=from_changes)
