"""The model of a change, the pivot between all formats (`avsc/change.avsc`).

A `Change` is one change of a row, or one statement, transaction mark or heartbeat. A message may
hold several (Canal's rows), and an update may come as two halves (DataHub's). Column values are
JSON values with the source's digits; the envelope's own instants are microseconds since the epoch, UTC.
"""

from __future__ import annotations

import re
from functools import cache
from typing import Any, Final

from msgspec import Struct, ValidationError, convert, structs

from cdcavro.errors import PayloadError, shown
from cdcavro.exact.caching import IdentityCache
from cdcavro.wire.formats import change_format

DML: Final = frozenset({"INSERT", "UPDATE", "DELETE", "SNAPSHOT"})
DDL: Final = frozenset({"CREATE", "ALTER", "ERASE", "QUERY", "TRUNCATE", "RENAME", "CINDEX", "DINDEX"})
Row = dict[str, Any]
_TOKEN: Final = re.compile(r"[A-Za-z0-9_]+|\.\.\.")
_MAX_STEPS: Final = 4
# Fields that are tuples here and arrays in Avro.
_TUPLE_FIELDS: Final = ("key", "changed", "unavailable", "position")


class Source(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Where a change was made and which format it came in; a field is None if the message does not state it."""

    format: str | None = None
    db_type: str | None = None
    db_version: str | None = None
    tenant: str | None = None
    database: str | None = None
    schema: str | None = None
    table: str | None = None


class Column(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A column: its name, its declared type as the source spells it, and its `java.sql.Types` code."""

    name: str | None = None
    type: str | None = None
    code: int | None = None


class ChangedTable(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a statement does to a table: CREATE, ALTER or ERASE, its names, also former ones, its key and columns."""

    op: str | None = None
    database: str | None = None
    schema: str | None = None
    table: str | None = None
    old_database: str | None = None
    old_schema: str | None = None
    old_table: str | None = None
    key: tuple[str, ...] | None = None
    columns: tuple[Column, ...] | None = None


class Arrival(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Where a message arrived: topic, partition and offset, or file and line (counted from 1)."""

    topic: str | None = None
    partition: int | None = None
    offset: int | None = None
    file: str | None = None
    line: int | None = None


class Change(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One change. The fields are those of `avsc/change.avsc`, which documents them.

    `op` is a symbol of the schema's `ChangeOp`; the times are microseconds since the epoch, UTC;
    `position` holds the numbers of the source's own order, most significant first.
    """

    op: str
    half: str | None = None
    operation: str | None = None
    source: Source = Source()
    key: tuple[str, ...] | None = None
    columns: tuple[Column, ...] | None = None
    before: Row | None = None
    after: Row | None = None
    changed: tuple[str, ...] | None = None
    unavailable: tuple[str, ...] | None = None
    position: tuple[int, ...] | None = None
    place: Arrival | None = None
    row: int = 0
    rows: int = 1
    event_time: int | None = None
    system_time: int | None = None
    checkpoint_time: int | None = None
    transaction: str | None = None
    ddl: str | None = None
    ddl_meta: str | None = None
    snapshot: bool | None = None
    tables: tuple[ChangedTable, ...] | None = None
    members: dict[str, str] | None = None

    def to_avro(self) -> bytes:
        """Return the change as a payload of `change.avsc`."""
        payload = change_format().values.write_struct(self)
        return change_format().write(_shared_record(self)) if payload is None else payload

    @classmethod
    def from_avro(cls, payload: bytes) -> Change:
        """Read a payload of `change.avsc`. Raises `PayloadError`."""
        return from_record(change_format().read(payload))


def to_record(change: Change) -> dict[str, Any]:
    """Return a change as the JSON value that `change.avsc` describes, leaving out fields that are None."""
    record = _shared_record(change)
    if "columns" in record:
        record["columns"] = [dict(column) for column in record["columns"]]
    return record


def _table_record(table: ChangedTable) -> dict[str, Any]:
    record = _stated_fields(table)
    if table.key is not None:
        record["key"] = list(table.key)
    if table.columns is not None:
        record["columns"] = [_stated_fields(column) for column in table.columns]
    return record


def _shared_record(change: Change) -> dict[str, Any]:
    """Return what `to_record` returns, but with columns that other records share and nobody may modify."""
    record = _stated_fields(change)
    record["source"] = _stated_fields(change.source)
    for name in _TUPLE_FIELDS:
        if type(record.get(name)) is tuple:
            record[name] = list(record[name])
    if change.columns is not None:
        record["columns"] = _COLUMNS.of(change.columns)
    if change.tables is not None:
        record["tables"] = [_table_record(table) for table in change.tables]
    if change.place is not None:
        record["place"] = _stated_fields(change.place)
    return record


def from_record(record: dict[str, Any]) -> Change:
    """Return the change that a JSON value of `change.avsc` describes.

    Raises `PayloadError` for a value that a newer schema or another program wrote and a `Change` cannot hold.
    """
    try:
        change: Change = convert(record, Change)
    except ValidationError as error:
        raise _payload_error(str(error)) from error
    for name, symbols in (("op", _symbols("op")), ("half", _symbols("half"))):
        word = getattr(change, name)
        if word is not None and word not in symbols:
            raise PayloadError(f"one of {', '.join(symbols)}", shown(word), pointer=f"/{name}", format="change")
    return change


def _payload_error(sentence: str) -> PayloadError:
    """Return the error for what a `Change` cannot hold, as `convert` says it."""
    what, _, place = sentence.partition(" - at ")
    expected, _, got = what.removeprefix("Expected ").replace("`", "").partition(", got ")
    pointer = "".join(f"/{token}" for token in _TOKEN.findall(place)[:_MAX_STEPS])
    if not got:
        return PayloadError("a change", shown(what.replace("`", "'")), pointer=pointer, format="change")
    return PayloadError(expected.replace(" | ", " or "), got, pointer=pointer, format="change")


@cache
def _symbols(name: str) -> tuple[str, ...]:
    """Return the words that a field of the schema allows, except the one that stands for all others."""
    declared = next(field.type for field in change_format().envelope.fields if field.name == name)
    branches = getattr(declared, "branches", (declared,))
    (symbols,) = (branch.symbols for branch in branches if hasattr(branch, "symbols"))
    return tuple(symbol for symbol in symbols if name == "op" or symbol != "OTHER")


def _stated_fields(value: Struct) -> dict[str, Any]:
    return {name: field for name, field in structs.asdict(value).items() if field is not None}


def _column_records(columns: tuple[Column, ...], _: object) -> list[dict[str, Any]]:
    return [_stated_fields(column) for column in columns]


_COLUMNS: Final = IdentityCache(_column_records)
replace = structs.replace


def without_members(change: Change) -> Change:
    """Return a change without `members`, which only the format that it came in can use."""
    return change if change.members is None else replace(change, members=None)


def names_of_columns(change: Change) -> list[str]:
    """Return the names of the columns that a change has values for, in either row, or says are unavailable."""
    images = [image for image in (change.before, change.after) if image is not None]
    return list(dict.fromkeys([*(column for image in images for column in image), *(change.unavailable or ())]))
