"""The model of a change, the pivot between all formats (`avsc/change.avsc`), with a message's rows and columns' rules.

A `Change` is one change of a row, or one statement, transaction mark or heartbeat. A message may
hold several (Canal's rows), and an update may come as two halves (DataHub's). Column values are
JSON values with the source's digits; the envelope's own instants are microseconds since the epoch, UTC.

The rows of messages are looked at here: which row images a change can have, which changes came in one message, and how
many may. Each row of a message carries everything the message states.

A rule says what is done with each value of a column, as data from which Python and the engine make what does it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from decimal import Decimal
from functools import cache
from math import isfinite
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct, ValidationError, convert, structs

from cdcavro.errors import PayloadError, StructureError, shown
from cdcavro.exact.caching import IdentityCache
from cdcavro.exact.jsontext import escape
from cdcavro.exact.numbers import without_decimals
from cdcavro.wire.formats import change_format

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


@dataclass(frozen=True, slots=True, init=False)
class Rule:
    """What is done with each value of a column: `Rule("whole", 0, 255)`.

    Python's readers and the engine's cells are found by its name.
    """

    # What is done.
    name: str
    # What it is done with: bounds, labels, a time zone and the like.
    operands: tuple[Any, ...]

    def __init__(self, name: str, *operands: Any) -> None:
        object.__setattr__(self, "name", name)
        object.__setattr__(self, "operands", operands)


AS_SENT: Final = Rule("as sent")
"""The rule of values that a format sends as all formats have them."""


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


_NO_ROW: Final = frozenset(
    {"TRUNCATE", "HEARTBEAT", "TRANSACTION_BEGIN", "TRANSACTION_END", "GTID", "XACOMMIT", "XAROLLBACK"}
)
_NO_BEFORE: Final = frozenset({"INSERT", "SNAPSHOT"}) | _NO_ROW
_NO_AFTER: Final = frozenset({"DELETE"}) | _NO_ROW
_OF_A_ROW: Final = frozenset({"before", "after", "changed", "unavailable", "row", "members"})
MAX_ROWS: Final = 100_000
_FREE: Final = 4 * 1024 * 1024
_PROPORTION: Final = 64
# What is a Decimal or a float that is not finite, or may hold one.
_MAY_BE_NO_JSON: Final = (Decimal, float, dict, list, tuple)
# The characters that formats write around each text, roughly.
_BESIDE: Final = 8
_OF_ANY_MESSAGE: Final = attrgetter("source.format", "place", "rows")
_OF_THE_MESSAGE: Final = attrgetter(*(name for name in Change.__struct_fields__ if name not in _OF_A_ROW))


def check_images(change: Change, before: str, after: str, index: int | None = None) -> Change:
    """Return a change after checking that it has the row images that its operation needs, and no others.

    An image that the operation cannot have would be lost, or would make it another change; an empty one there is none,
    as some writers send it. `before` and `after` are the JSON pointers to the images, or to arrays of images if `index`
    is given. Raises `StructureError`.

    >>> from cdcavro.change.model import Change
    >>> check_images(Change(op="DELETE", before={"id": 1}), "/before", "/after").before
    {'id': 1}
    """
    if change.before is not None and (change.op in _NO_BEFORE or change.half == "AFTER"):
        if change.before:
            expected = f"no row before the change for {change.operation}"
            raise StructureError(expected, "some", pointer=_pointer(before, index))
        change = replace(change, before=None, changed=None)
    if change.after is not None and (change.op in _NO_AFTER or change.half == "BEFORE"):
        if change.after:
            expected = f"no row after the change for {change.operation}"
            raise StructureError(expected, "some", pointer=_pointer(after, index))
        change = replace(change, after=None)
    if change.op == "UPDATE" and change.half is None and change.after is None and change.before is not None:
        raise StructureError(f"the row after the change for {change.operation}", "none", pointer=_pointer(after, index))
    return change


def group_rows(changes: Sequence[Change], *, is_mixed: bool = False) -> list[list[Change]]:
    """Return changes in groups, each of consecutive rows of one message.

    The numbers of the rows in the message are consecutive, and everything that belongs to the message
    is equal: operation, source, place, position, times, transaction, key, columns and statement. If a message may hold
    changes of any kind (`is_mixed`), only its place and the number of all are.

    >>> [len(rows) for rows in group_rows([Change(op="INSERT", row=0, rows=2), Change(op="DELETE", row=1, rows=2)])]
    [1, 1]
    """
    if len(changes) == 1:
        return [[*changes]]
    groups: list[list[Change]] = []
    for change in changes:
        last = groups[-1][-1] if groups else None
        of_message = _OF_ANY_MESSAGE if is_mixed else _OF_THE_MESSAGE
        if last is not None and change.row == last.row + 1 and of_message(change) == of_message(last):
            groups[-1].append(change)
        else:
            groups.append([change])
    return groups


def with_rows(change: Change, convert: Callable[[Row], Row]) -> Change:
    """Return a change with its rows converted."""
    before, after = (None if image is None else convert(image) for image in (change.before, change.after))
    return replace(change, before=before, after=after)


def plain_numbers(change: Change, format: str | None = None) -> Change:
    """Return a change in whose rows each `Decimal` is the JSON number of its digits, as all else here reads them.

    Raises `StructureError`, which names the format and the column, for a Decimal or a float that is not finite.
    """
    for image in (change.before, change.after):
        if image and not all(map(_is_plain, image.values())):
            try:
                before, after = _plain_row(change.before, "before"), _plain_row(change.after, "after")
            except StructureError as error:
                error.format = format or change.source.format
                raise
            return replace(change, before=before, after=after)
    return change


def _is_plain(value: Any) -> bool:
    return isfinite(value) if type(value) is float else not isinstance(value, _MAY_BE_NO_JSON)


def _plain_row(image: Row | None, member: str) -> Row | None:
    if image is None:
        return None
    plain = {}
    for name, value in image.items():
        try:
            plain[name] = without_decimals(value)
        except StructureError as error:
            error.below(f"/{member}/{escape(name)}")
            raise
    return plain


def check_count(rows: Sequence[Any], most: int, pointer: str = "") -> None:
    """Raise `StructureError` if a message has more than `most` rows, each of which becomes a change."""
    if len(rows) > most:
        raise StructureError(f"at most {most} rows in a message", str(len(rows)), pointer=pointer)


def check_repeated(rows: Sequence[Change], length: int) -> None:
    """Raise `StructureError` if the changes of a message are far larger than its `length` in characters.

    Each row carries what belongs to the message, above all its columns, so a message with many short
    rows and many columns would grow to the product of both. No real table comes near the bound: rows
    hold a value for each column, and for narrow tables with long types (an ENUM of 4 KB) MySQL puts at
    most 8 KB of rows into one event.
    """
    if len(rows) == 1:
        return
    most, repeated = _FREE + _PROPORTION * length, len(rows) * common_size(rows[0])
    if repeated > most:
        expected = f"at most {most} characters of what {len(rows)} rows have in common, once for each row"
        raise StructureError(expected, str(repeated))


def common_size(change: Change) -> int:
    """Return roughly how many characters a change has in common with the other rows of its message."""
    source = change.source
    texts = [change.operation, change.transaction, change.ddl, change.ddl_meta, *(change.key or ())]
    texts += [source.database, source.schema, source.table]
    texts += [text for column in change.columns or () for text in (column.name, column.type)]
    return sum(_BESIDE + len(text or "") for text in texts)


def is_whole(rows: Sequence[Change]) -> bool:
    """Return whether consecutive rows are all the rows of their message."""
    return rows[0].row == 0 and len(rows) == rows[0].rows


def _pointer(images: str, index: int | None) -> str:
    return images if index is None else f"{images}/{index}"
