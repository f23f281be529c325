"""Debezium's rows without their envelope (`avsc/debezium_flat.avsc`), as ExtractNewRecordState leaves them.

Source: Debezium reference, "New Record State Extraction", and the class `ExtractNewRecordState`.

* Columns are members of the message, beside those that the transform adds (`add.fields`), which begin with two
  underscores. A column that is called like one of these has no place here.
* Without `__op` an insert cannot be told from an update: each is an UPDATE without the row before it.
* A deleted row has `__deleted` "true"; by default there is none, but a Kafka record without a value, which here is the
  delete of its key, and has the columns of the key.
* No member is sure to be there, and a record without a value has none: the order is that of arrival. Numbers, those of
  the connector, else the time of the change, compare several partitions. `__ts_ms` is no order.
* A row beside its schema, as `{"schema", "payload"}`, has its values read by it.
* Headers of a Kafka record (`add.headers`) are read as the members of the same names. A record without a value is a
  delete with these, or a truncate.
* Statements, marks, heartbeats and changes that the transform passed by are read as in `debezium`, without headers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import msgspec

from cdcavro.change.model import Change, Source, replace
from cdcavro.errors import StructureError, shown
from cdcavro.exact.instants import MILLISECOND, from_count
from cdcavro.exact.jsontext import render, same_text
from cdcavro.formats import debezium
from cdcavro.formats.bridge import Bridge, schema_bridge
from cdcavro.formats.connect_columns import placeholders, read_row, remove_unavailable, schema_columns
from cdcavro.formats.connect_messages import (
    connector_position,
    is_enveloped,
    may_be_enveloped,
    restore_values,
    send_row,
)
from cdcavro.wire.formats import get_format
from cdcavro.wire.kafka import KEY, is_tombstone, lacks_value

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import tzinfo

    from cdcavro.change.model import Row

FORMAT: Final = "debezium_flat"
_PLAIN: Final = schema_bridge(FORMAT)
# Connectors by the members of their positions, and what stands for those that were not added. Others have the same, so
# nothing more is said of the database.
_CONNECTORS: Final[tuple[tuple[str, set[str], dict[str, Any]], ...]] = (
    ("postgresql", {"__lsn"}, {}),
    ("mysql", {"__file", "__pos"}, {"row": 0}),
    ("oracle", {"__scn"}, {"commit_scn": "__scn"}),
    ("sqlserver", {"__change_lsn"}, {"commit_lsn": "__change_lsn"}),
)
# The times of a change, the finest first, and how many of their units are in a microsecond.
_FINE_TIMES: Final = {"__source_ts_ns": 1_000, "__source_ts_us": 1}
# Where a change notes that its row came beside a schema.
_SCHEMA: Final = "/schema"
_DELETE: Final = "d"
_TRUNCATE: Final = "t"
_WRAPPED: Final = frozenset({"schema", "payload"})
_MEMBERS: Final = msgspec.json.Decoder(dict[str, msgspec.Raw])


def to_changes(record: Row, zone: tzinfo | None = None) -> list[Change]:
    """Return the change of a row, of a record without a value, or of a message that the transform passed by."""
    if is_tombstone(record):
        return [_delete_of_key(record)]
    if lacks_value(record):
        stated = {} if record.get(KEY) is not None else get_format(FORMAT).members_in_headers(record)
        if stated.get("__op") == _TRUNCATE:
            return [_with_position(one, stated) for one in _PLAIN.to_changes(stated, zone)]
        expected = "an object as the key of a Kafka record without a value"
        raise StructureError(expected, "none" if record.get(KEY) is None else shown(record[KEY]), pointer="/key")
    row, schema = _unwrap(record)
    if is_enveloped(row):
        changes = debezium.to_changes(record, zone)
        return [replace(one, source=replace(one.source, format=FORMAT), members=None) for one in changes]
    try:
        (change,) = _PLAIN.to_changes(row, zone)
    except StructureError as error:
        if row is not record:
            error.below("/payload")
        raise
    change = _with_position(change, row)
    return [change if row is record else _with_columns(change, schema_columns(schema))]


def _delete_of_key(record: Row) -> Change:
    """Return the delete that a record without a value is, with what its headers state."""
    key, _ = _unwrap(record[KEY])
    if type(key.get("schema")) is dict:
        raise StructureError("an object of columns as the key", "a key without columns", pointer="/key/payload")
    stated = get_format(FORMAT).members_in_headers(record)
    if not stated:
        return Change(op="DELETE", source=Source(format=FORMAT), key=tuple(key), before=key, position=())
    operation = stated.get("__op")
    if operation not in (None, _DELETE) or stated.get("__deleted") == "false":
        got = "__deleted" if operation in (None, _DELETE) else "__op"
        expected = f"{_DELETE} in the header of a Kafka record without a value"
        raise StructureError(expected, shown(stated[got]), pointer=f"/headers/{got}")
    (change,) = _PLAIN.to_changes({**stated, "__op": _DELETE}, None)
    return _with_position(replace(change, operation=operation, key=tuple(key), before=key), stated)


def from_changes(changes: Sequence[Change], zone: tzinfo | None = None) -> list[Row]:
    """Return the rows of changes, those beside a schema that came so."""
    sent = [replace(one, before=send_row(one, one.before), after=send_row(one, one.after)) for one in changes]
    records = _PLAIN.from_changes(sent, zone)
    noted = changes[0].members or {} if changes[0].source.format == FORMAT else {}
    is_wrapped = _SCHEMA in noted and "schema" not in (changes[0].unavailable or ())
    return [{"payload": record} for record in records] if is_wrapped else records


def _with_position(change: Change, row: Row) -> Change:
    """Return a change with its time, as fine as it is stated, and its position."""
    fine = (from_count(row[name] // units, 1) for name, units in _FINE_TIMES.items() if type(row.get(name)) is int)
    time = next((one for one in (*fine, change.event_time) if one is not None), None)
    stated = {name for name, value in row.items() if value is not None}
    for connector, names, others in _CONNECTORS:
        if names <= stated:
            source = {name: row[other] if type(other) is str else other for name, other in others.items()}
            source |= {name.removeprefix("__"): value for name, value in row.items() if value is not None}
            position = connector_position(source | {"connector": connector})
            return replace(change, position=position, event_time=time)
    return replace(change, position=() if time is None else (time // MILLISECOND,), event_time=time)


def _with_columns(change: Change, columns: Sequence[Any] | None) -> Change:
    """Return the change of a row that came beside a schema, with its columns and its values read by them."""
    beside = {field.name for field in get_format(FORMAT).envelope.fields}
    own = None if columns is None else tuple(column for column in columns if column.name not in beside)
    before, after = (read_row(image, own, change.source.db_type) for image in (change.before, change.after))
    return replace(change, columns=own, before=before, after=after, members={_SCHEMA: ""})


def _unwrap(value: Row) -> tuple[Row, Any]:
    """Return what stands beside its schema, and the schema; any other value alone."""
    is_wrapped = value.keys() == _WRAPPED and type(value["payload"]) is dict
    return (value["payload"], value["schema"]) if is_wrapped else (value, None)


def _add_members(message: Row, members: Row) -> Row:
    """Return a message with members that headers state. Raises `StructureError` where it has others of their names."""
    row, _ = _unwrap(message)
    if not members or is_enveloped(row):
        return message
    for name, value in members.items():
        if name in row and not same_text(row[name], value):
            expected = f"what the header {name} says, {shown(render(value).decode())}"
            pointer = f"/{name}" if row is message else f"/payload/{name}"
            raise StructureError(expected, shown(render(row[name]).decode()), pointer=pointer)
    whole = row | {name: value for name, value in members.items() if name not in row}
    return whole if row is message else message | {"payload": whole}


def _splice_members(text: bytes, members: Row) -> bytes | None:
    """Return the text of a row with members that headers state behind its own; None if it might be anything else."""
    if not members:
        return text
    try:
        row, ends = _MEMBERS.decode(text), b"}"
        if row.keys() == _WRAPPED:
            inner, ends = bytes(row["payload"]), b"}}"
            row = _MEMBERS.decode(inner) if text.endswith(inner + b"}") else {}
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        return None
    if not row or not text.endswith(ends) or may_be_enveloped(row) or not members.keys().isdisjoint(row):
        return None
    return b"%s,%s%s" % (text[: -len(ends)], render(members)[1:-1], ends)


def _remove_unavailable(record: Row, word: str | None) -> tuple[Row, tuple[str, ...]]:
    row, _ = _unwrap(record)
    if is_enveloped(row):
        return remove_unavailable(record, word)
    images, names = remove_unavailable({"after": row}, word)
    available = images["after"]
    return (available if row is record else record | {"payload": available}), names


def _restore_values(change: Change, original: Change, message: Row) -> Change:
    row, _ = _unwrap(message)
    return restore_values(change, original, row, row)


BRIDGE: Final = Bridge(
    to_changes=to_changes,
    from_changes=from_changes,
    remove_unavailable=_remove_unavailable,
    placeholders=placeholders,
    shape_of=lambda record: f"a row {'alone' if _unwrap(record)[0] is record else 'beside its schema'}",
    reshape=lambda record, original: record if _unwrap(original)[0] is original else {"payload": record},
    restore_values=_restore_values,
    add_members=_add_members,
    splice_members=_splice_members,
)
