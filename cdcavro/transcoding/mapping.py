"""The mapping of messages to changes and back, in any format.

What a change does not hold of its message is found by comparison: the message that the format makes
from the bare changes is compared with the original, and every difference is kept in `Change.members`,
which only the same format can use. So a message comes back whole.

A member that spells a value of a row holds for that value only. Where the two have the same text, as a JSON number and
a string of it, this is seen from the value that stands there now; where they have not, the members keep under `BARE`
what the format makes of the value itself. A value that somebody has changed is written as the format writes it.

Without an embedded schema, a Debezium message does not state how its values are to be read: `AkY=` is a DECIMAL or a
BLOB. The connector's schema changes state it, in the order of all messages: `SchemaHistory` learns columns from them.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from cdcavro.change.connect_values import with_unsigned
from cdcavro.change.model import (
    DML,
    Arrival,
    Change,
    Column,
    Row,
    check_repeated,
    group_rows,
    is_whole,
    plain_numbers,
    replace,
    with_rows,
)
from cdcavro.change.operations import (
    ADAPTIVE_TIME_MICROSECONDS,
    BYTES,
    PRECISE,
    USUAL_MODES,
    Modes,
    check_modes,
    check_operation,
)
from cdcavro.engine.machine import differences
from cdcavro.errors import MessageError, PayloadError, StructureError, TextError, shown
from cdcavro.exact.instants import check_zone
from cdcavro.exact.jsontext import ABSENT, at, at_pointer, copy_of, escape, parse, parse_fast, render, same_text
from cdcavro.exact.numbers import MAX_LONG, ExactNumber, decimals, number_text, plain_text
from cdcavro.formats import BRIDGES
from cdcavro.formats.bridge import pointer_of
from cdcavro.formats.connect_columns import PLACEHOLDER, Table, changed_table, read_row, table_columns, table_key
from cdcavro.formats.connect_messages import has_connect_values
from cdcavro.wire import extras
from cdcavro.wire.attributes import field_rule, marked_paths, member_path
from cdcavro.wire.formats import get_format
from cdcavro.wire.kafka import KAFKA, OF_RECORDS, VALUE, without_value

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from datetime import tzinfo

    from cdcavro.exact.jsontext import Difference
    from cdcavro.wire.format import Format

WHOLE: Final = ""
# The key among members of an object: JSON pointers of spelled values to what the bare changes have there, as JSON text.
BARE: Final = "bare"
EXACT: Final = "exact"
DECIMAL: Final = "decimal"
_NUMBERS: Final = frozenset("-0123456789")
_NUMERIC: Final = (int, ExactNumber)
_TEXTLESS: Final = (dict, list, type(None))
_ROWS: Final = frozenset({"before", "after", "row", "rows", "old"})
USUAL_PLACEHOLDER: Final = PLACEHOLDER


def to_changes(
    message: bytes | str,
    format: str,
    *,
    zone: tzinfo | None = None,
    members: bool = True,
    unavailable: str | None = PLACEHOLDER,
    numbers: str = EXACT,
) -> list[Change]:
    """Return the changes of a message: one for each row that it holds, or one for anything else.

    `zone` is the time zone of the source, a `zoneinfo.ZoneInfo`: times that come as text without a zone become instants
    only with it. Every row carries what its message states for all rows; a message is refused if that takes more than 4
    MiB and 64 times its length, or if it has more than 100,000 rows. `members=False` leaves out `Change.members`, which
    only `from_changes` into the same format needs and which take a while to find. `unavailable` is the word that stands
    for a column's value which the source did not give, the connector's `unavailable.value.placeholder`: the rows do not
    have that column, whose name is in `Change.unavailable`. None takes every value as it is. `numbers` says what a
    number in a row is: with "exact" an int or a float where that gives the same text again, else an `ExactNumber`; with
    "decimal" always a `Decimal`. Raises `UnknownFormatError`, `TextError`, `StructureError`, `TypeError` for a `zone`
    that is not a time zone, and `ValueError` for an `unavailable` that cannot be such a word and for other `numbers`.

    >>> to_changes('{"meta":{"op":"del"},"data":{"id":7}}', "oms_shareplex")[0].before
    {'id': 7}
    """
    check_zone(zone)
    if numbers not in (EXACT, DECIMAL):
        raise ValueError(f"numbers: expected {EXACT!r} or {DECIMAL!r}, got {numbers!r}")
    read = parse_message(message, format, zone=zone, unavailable=unavailable)
    changes = all_with_members(read, zone) if members else read.changes
    return changes if numbers == EXACT else [with_rows(change, decimals) for change in changes]


class ParsedMessage(NamedTuple):
    """What is read of a message: its changes without members, its record, and the message in that."""

    changes: list[Change]
    record: Any
    value: Any
    format: str


def parse_message(
    message: bytes | str, format: str, *, zone: tzinfo | None = None, unavailable: str | None = PLACEHOLDER
) -> ParsedMessage:
    """Return what is read of a message, without members. Raises what `to_changes` raises of a message."""
    target = get_format(format)
    record = target.parse(message)
    is_alone, bridge = record.keys().isdisjoint(OF_RECORDS), BRIDGES[format]
    value = record if is_alone else target.message_in(record)
    added = {} if value is record else target.members_in_headers(record)
    try:
        available, names = bridge.remove_unavailable(bridge.add_members(value, added) if added else value, unavailable)
        changes = bridge.to_changes(available, zone)
        if not is_alone:
            changes = with_kafka_record(changes, target.kafka_record(record), target.rule.key)
        changes = [replace(change, unavailable=names) for change in changes] if names else changes
        check_repeated(changes, len(message))
    except MessageError as error:
        raise _placed(error, record, value, format) from None
    if value is not record and target.keys_are_of_rows:
        _check_key(changes, record, format)
    return ParsedMessage(changes, record, value, format)


def _placed(error: MessageError, record: Any, value: Any, format: str) -> MessageError:
    """Return an error of a message with its format, and with its place in the record around the message."""
    if value is not record:
        error.below(f"/{VALUE}")
    error.format = format
    return error


def all_with_members(read: ParsedMessage, zone: tzinfo | None) -> list[Change]:
    """Return the changes of a message with all members, those of the Kafka record around it among them."""
    changes, record, value, format = read
    try:
        changes = with_members(changes, value, format, zone)
    except MessageError as error:
        raise _placed(error, record, value, format) from None
    if value is not record:
        all_members = {**(changes[0].members or {}), KAFKA: render(without_value(record)).decode()}
        changes[0] = replace(changes[0], members=all_members)
    return changes


def placeholders(format: str, unavailable: str | None) -> tuple[bytes, ...]:
    """Return the texts that stand for unavailable values in a format. Raises `UnknownFormatError`."""
    return BRIDGES[get_format(format).name].placeholders(unavailable)


def with_members(changes: list[Change], record: Any, format: str, zone: tzinfo | None = None) -> list[Change]:
    """Return the changes of a message, the first with `members`, which holds what the changes do not.

    Members that the first change has already are its format's notes on the shape of the message.
    """
    bare = BRIDGES[format].from_changes(changes, zone)
    members = (changes[0].members or {}) | _members(bare, record, changes, format)
    return [replace(changes[0], members=members), *changes[1:]] if members else changes


def from_changes(changes: Sequence[Change], format: str, *, zone: tzinfo | None = None) -> list[bytes]:
    """Return the messages of changes as UTF-8 JSON texts; changes for which the format has no message are left out.

    Rows that came in one message become one message again if they follow each other here. `members` belong to the first
    row; those that concern the rows are restored only if no row is missing, and those that say how the message spelled
    a value only if the row still has that value. `zone` is the time zone of the source, as in `to_changes`. Raises
    `UnknownFormatError`; `StructureError` for the half of an update, unless the format has halves
    (`cdcavro.change.order.join_halves` joins them), and for a row with an unknown operation of another format;
    `PayloadError` for `members` that do not fit their change; `TypeError` for a `zone` that is not a time zone. A
    `Decimal` in a row is the number of its digits; JSON has no NaN and no infinities, so that a float or a Decimal that
    is not finite is a `StructureError` as well.

    >>> from_changes(to_changes('{"recordType":"HEARTBEAT"}', "oms_default"), "oms_default")
    [b'{"recordType":"HEARTBEAT"}']
    """
    check_zone(zone)
    plain = [plain_numbers(change, format) for change in changes]
    return [render(record) for record in iterate_records(plain, format, zone)]


def records(changes: Sequence[Change], format: str, zone: tzinfo | None = None) -> list[Any]:
    """Return the messages of changes as JSON values. Raises what `from_changes` raises."""
    if len(changes) == 1 and not changes[0].members:
        return _bare_records(changes, get_format(format), zone)
    return list(iterate_records(changes, format, zone))


def iterate_records(changes: Sequence[Change], format: str, zone: tzinfo | None = None) -> Iterator[Any]:
    """Yield the messages of changes as JSON values, one after the other. Raises what `from_changes` raises."""
    target = get_format(format)
    for rows in group_rows(changes, is_mixed=target.rule.mixed):
        batch = _bare_records(rows, target, zone)
        members = _applicable_members(rows, target.rule.rows) if rows[0].source.format == format else {}
        if WHOLE in members:
            batch = [target.parse(members[WHOLE])]
            members = {KAFKA: members[KAFKA]} if KAFKA in members else {}
        if members and batch:
            batch[0] = extras.apply(copy_of(batch[0]), _unedited(members, batch[0], rows, format))
        yield from batch


def _bare_records(rows: Sequence[Change], target: Format, zone: tzinfo | None) -> list[Any]:
    """Return the messages of changes that came in one message, as they are without `members`."""
    first, format = rows[0], target.name
    if first.half is not None and not target.rule.has_halves:
        expected = f"both halves of the update, joined, for {format}"
        raise StructureError(expected, f"the {first.half} half alone", format=first.source.format)
    if first.op == "OTHER" and first.source.format != format:
        for change in rows:
            check_operation(change)
    return BRIDGES[format].from_changes(rows, zone)


def _applicable_members(rows: Sequence[Change], row_members: Sequence[str]) -> Mapping[str, str]:
    """Return the members of a message that apply to these rows; `row_members` need all rows."""
    members = rows[0].members or {}
    if is_whole(rows):
        return members
    return {
        pointer: text
        for pointer, text in members.items()
        if pointer == KAFKA or (pointer != WHOLE and pointer[1:].partition("/")[0] not in row_members)
    }


def _members(bare: list[Any], record: Any, changes: Sequence[Change], format: str) -> dict[str, str]:
    if len(bare) != 1:
        return {WHOLE: render(record).decode()}
    cells, members, unlike = _cells(format), {}, []
    starts = cells.starts
    for pointer, value, sent in differences(bare[0], record):
        text = plain_text(sent) if type(sent) in _NUMERIC else "" if sent is ABSENT else render(sent).decode()
        members[pointer] = text
        # Most spelled values are numbers, of which the bare message has the digits as a string.
        if (value != text or text[:1] not in _NUMBERS) and pointer.startswith(starts):
            unlike.append((pointer, value, sent))
    return members | _noted(unlike, cells, bare[0], changes[0]) if unlike else members


def _noted(found: Sequence[Difference], cells: _Cells, bare: Any, change: Change) -> dict[str, str]:
    """Return the member that says what the bare message has where that is not seen from the spelled value."""
    noted = {one: _text(value) for one, value, sent in found if not cells.is_spelling(one, sent, value, bare, change)}
    return {BARE: render(noted).decode()} if noted else {}


def _unedited(members: Mapping[str, str], bare: Any, rows: Sequence[Change], format: str) -> Mapping[str, str]:
    """Return the members without those that spell a value which `bare`, the message of these rows, has no longer."""
    cells = _cells(format)
    starts, last, row, unlike = cells.starts, None, None, []
    for pointer, text in members.items():
        if pointer.startswith(starts):
            above, _, name = pointer.rpartition("/")
            if above != last:
                last, row = above, at_pointer(bare, above)
            if type(row) is not dict or row.get(name) != text or text[:1] not in _NUMBERS:
                unlike.append(pointer)
    if not unlike and BARE not in members:
        return members
    noted = _notes(members[BARE]) if BARE in members else {}
    looked, change = {*unlike, *noted} & members.keys(), rows[0]
    edited = {one for one in looked if not cells.is_kept(one, members[one], noted.get(one), bare, change)}
    if not edited and BARE not in members:
        return members
    kept = {pointer: text for pointer, text in members.items() if pointer != BARE and pointer not in edited}
    for pointer in edited:
        kept |= cells.values_of_key(pointer, change) if members[pointer].startswith("[") else {}
    return kept


def _notes(text: str) -> dict[str, str]:
    """Return what members have under `BARE`. Raises `PayloadError` for anything else than an object of texts."""
    notes = parse_fast(text) if text.startswith("{") else None
    if type(notes) is not dict or not all(type(note) is str for note in notes.values()):
        raise PayloadError("an object of texts", shown(text), pointer=f"/members/{BARE}", format="change")
    return notes


def _text(value: Any) -> str:
    return "" if value is ABSENT else render(value).decode()


class _Cells(NamedTuple):
    """Where the values of rows stand in the messages of a format, as its wire schema says."""

    # The beginnings of the JSON pointers to them, and to the values of the key.
    starts: tuple[str, ...]
    # JSON pointers to the values of the key, which stand beside the row.
    keys: tuple[str, ...]
    # JSON pointers that are none of a value, though they begin so.
    beside: frozenset[str]
    # What stands behind a column's name in the name of the member that says whether it is stated; empty for none.
    unstated: str

    def is_kept(self, pointer: str, text: str, note: str | None, bare: Any, change: Change) -> bool:
        """Return whether a text among the members spells the value that the bare message has there."""
        if note is not None:
            return note == _text(at_pointer(bare, pointer))
        if pointer in self.keys and self.values_of_key(pointer, change).get(pointer) == text:
            return True
        try:
            sent = ABSENT if not text else None if text == "null" else parse_fast(text)
        except TextError:
            return True  # It is refused where it is put in.
        return self.is_spelling(pointer, sent, at_pointer(bare, pointer), bare, change)

    def is_spelling(self, pointer: str, sent: Any, value: Any, bare: Any, change: Change) -> bool:
        """Return whether what was sent spells the value that the bare message has there."""
        if pointer in self.beside and pointer not in self.keys:
            return True
        if value is ABSENT and self.unstated and type(sent) is bool and pointer.endswith(self.unstated):
            column = at_pointer(bare, pointer.removesuffix(self.unstated))
            return column is ABSENT or column is None if sent else column is not ABSENT
        if pointer in self.keys and (sent is ABSENT or value is ABSENT):
            return sent is ABSENT or _is_of_key(sent, change)
        if sent is None or sent is ABSENT:
            return value is None or value is ABSENT
        return value is not ABSENT and same_text(value, sent)

    def values_of_key(self, pointer: str, change: Change) -> dict[str, str]:
        """Return the member that lists the values of the key as the row has them; none if they are not known."""
        row, key = change.before if change.after is None else change.after, change.key
        if pointer not in self.keys or not key or row is None or not all(name in row for name in key):
            return {}
        return {pointer: _text([row[name] for name in key])}


def _is_of_key(sent: Any, change: Change) -> bool:
    """Return whether values of a key, in a list or behind the last dot of a text, are those of a row."""
    row = (change.before if change.after is None else change.after) or {}
    if type(sent) is not list:
        texts = [plain_text(value) for value in row.values() if type(value) not in _TEXTLESS]
        return any(sent == text or str(sent).endswith(f".{text}") for text in texts)
    if change.key is None:
        return all(any(same_text(value, cell) for cell in row.values()) for value in sent)
    return len(sent) == len(change.key) and all(map(same_text, sent, map(row.get, change.key)))


@cache
def _cells(format: str) -> _Cells:
    target = get_format(format)
    parts = marked_paths(target.envelope, "part")
    fields = [(field_rule(path[-1]).members, member_path(path)) for path, part in parts if part in _ROWS]
    means = marked_paths(target.envelope, "means")
    keys = tuple(pointer_of(member_path(path)) for path, meaning in means if meaning == "key values")
    return _Cells(
        starts=(*(f"{pointer_of(path[:-1] if rest else path)}/" for rest, path in fields), *keys),
        keys=keys,
        beside=frozenset(pointer_of((field_rule(field).name,)) for field in target.envelope.fields),
        unstated=target.rule.unstated,
    )


def with_kafka_record(changes: Sequence[Change], record: dict[str, Any] | None, prefix: str = "") -> list[Change]:
    """Return the changes of a message with what the Kafka record around it states; None if there is none.

    That is the place where it arrived. For a row whose message does not say which columns are the key, it is also
    the record's key, if that is an object of columns that have the same values in the row. Values are compared as
    text, because a producer may write a number in the key and a string in the message; those of Kafka Connect's types
    are read as the row's are. With a prefix, as a format's
    `key` has it, the columns are those members of the key that begin so, in lower case.
    """
    if record is None:
        return list(changes)
    place, key = _place(record), _key(record)
    placed = []
    for change in changes:
        own = _key_in_row(key, prefix, change) if prefix else key
        is_key = _is_key_of(own, change)
        is_other = is_key or place is not None
        placed.append(replace(change, place=place, key=tuple(own) if is_key else change.key) if is_other else change)
    return placed


def _check_key(changes: Sequence[Change], record: dict[str, Any], format: str) -> None:
    """Raise `StructureError` for the key of a record that is none of its row's, where a key alone deletes its row.

    Where the converters of key and value send a type as text and as numbers, the two cannot be compared.
    """
    sent, pointer = record.get("key"), "/key"
    if type(sent) is dict and sent.keys() == {"schema", "payload"}:
        sent, pointer = sent["payload"], "/key/payload"
    for change in changes:
        row = change.before if change.after is None else change.after
        if sent is None or row is None or change.op not in DML:
            continue
        if type(sent) is not dict:
            got = shown(render(sent).decode())
            raise StructureError("an object of columns as the key", got, format=format, pointer=pointer)
        for name, value in _key_as_row(sent, change).items():
            at_column = f"{pointer}/{escape(name)}"
            if name not in row and name not in (change.unavailable or ()):
                raise StructureError("a column of the row in the key", shown(name), format=format, pointer=at_column)
            if name in row and _are_different(value, row[name]):
                expected, got = (shown(render(one).decode()) for one in (row[name], value))
                raise StructureError(f"the value of the row, {expected}", got, format=format, pointer=at_column)


def _are_different(value: Any, column: Any) -> bool:
    is_comparable = type(value) is type(column) or not {number_text(value), number_text(column)} & {None}
    return is_comparable and not same_text(value, column)


def _key_as_row(key: Row, change: Change) -> Row:
    """Return a key with values of Kafka Connect's types read as those of the row are."""
    is_read = change.columns is not None and has_connect_values(change)
    return read_row(key, change.columns, change.source.db_type) or {} if is_read else key


def _key_in_row(key: Row, prefix: str, change: Change) -> Row:
    """Return the columns of a key as a row spells their names; none if it has one of them twice or not at all."""
    row = change.before if change.after is None else change.after
    names: dict[str, str | None] = {}
    for name in row or {}:
        names[name.lower()] = None if name.lower() in names else name
    columns = {names.get(name.removeprefix(prefix)): value for name, value in key.items() if name.startswith(prefix)}
    return {name: value for name, value in columns.items() if name is not None} if None not in columns else {}


def _place(record: dict[str, Any]) -> Arrival | None:
    topic, partition, offset = record.get("topic"), _count(record.get("partition")), _count(record.get("offset"))
    topic = topic if type(topic) is str else None
    is_known = topic is not None or partition is not None or offset is not None
    return Arrival(topic=topic, partition=partition, offset=offset) if is_known else None


def _count(value: Any) -> int | None:
    return value if type(value) is int and 0 <= value <= MAX_LONG else None


def _key(record: dict[str, Any]) -> Row:
    key = record.get("key")
    if type(key) is dict and key.keys() == {"schema", "payload"}:
        key = key["payload"]
    return key if type(key) is dict else {}


def _is_key_of(key: Row, change: Change) -> bool:
    if not key or change.key is not None or change.op not in DML:
        return False
    image = change.before if change.after is None else change.after
    key = _key_as_row(key, change)
    return image is not None and all(name in image and same_text(key[name], image[name]) for name in key)


MAX_TABLES: Final = 100_000
MAX_COLUMNS: Final = 500_000
_TABLE_CHANGES: Final = tuple(f"{above}/tableChanges" for above in ("", "/payload", "/value", "/value/payload"))
_TABLE_PATHS: Final = [tuple(pointer.split("/")[1:]) for pointer in _TABLE_CHANGES]


class SchemaHistory:
    """Learns the columns and keys of tables from Debezium's changes as they pass, and adds them to row changes.

    `decimals` is the connector's `decimal.handling.mode`, "precise" or "string"; `times` its
    `time.precision.mode`; `binaries` its `binary.handling.mode`; each by default the connector's own default.
    Only values of the MySQL and MariaDB connectors are converted. A renamed table is known by both names
    until the old name is created again or dropped. Raises `ValueError` for a mode that is not known.
    """

    def __init__(
        self, *, decimals: str = PRECISE, times: str = ADAPTIVE_TIME_MICROSECONDS, binaries: str = BYTES
    ) -> None:
        self._modes = check_modes(decimals, times, binaries)
        self._tables: dict[Table, tuple[tuple[Column, ...], tuple[str, ...] | None]] = {}
        self._count = 0

    def read(
        self,
        message: bytes | str,
        format: str,
        *,
        zone: tzinfo | None = None,
        unavailable: str | None = PLACEHOLDER,
    ) -> list[Change]:
        """Return what `add` returns for the changes of a message of Debezium, sooner. Raises what `to_changes` and `add` raise."""
        return self.read_parsed(parse_message(message, format, zone=zone, unavailable=unavailable), zone)

    def read_parsed(self, read: ParsedMessage, zone: tzinfo | None = None, *, members: bool = True) -> list[Change]:
        """Return what `read` returns for a message that is parsed; rows need not have `members`."""
        change, *others = read.changes
        is_row = change.op in DML and not others and read.value is read.record
        table = self._tables.get(_table(change)) if is_row else None
        if table is not None and lacks_columns(change):
            # The members are those of the change with columns, so that they are looked for once.
            columns, key = table
            converted = self._with_key(_converted(change, columns, columns, self._modes), key)
            return all_with_members(read._replace(changes=[converted]), None) if members else [converted]
        if is_row and table is None and not members and not _states_tables(read.record):
            return read.changes
        return list(map(self.add, all_with_members(read, zone)))

    def add(self, change: Change) -> Change:
        """Learn from a statement, and return a row change with its table's columns, any other change as it is.

        Raises `StructureError` for a schema change of a table for which there is no room: 100,000 tables and
        500,000 columns are remembered.
        """
        if not has_connect_values(change):
            return change
        for table_change in _table_changes(change):
            self._learn(table_change, change.source.format)
        table = self._tables.get(_table(change)) if change.op in DML else None
        if table is None:
            return change
        columns, key = table
        return self._with_key(with_columns(change, columns, modes=self._modes), key)

    @staticmethod
    def _with_key(change: Change, key: tuple[str, ...] | None) -> Change:
        return change if change.key is not None else replace(change, key=key)

    def columns(self, database: str | None, table: str, schema: str | None = None) -> tuple[Column, ...] | None:
        """Return the columns that a table has now; None if it is unknown or was dropped."""
        known = self._tables.get((database, schema, table))
        return None if known is None else known[0]

    def _learn(self, table_change: Any, format: str | None) -> None:
        table, columns = changed_table(table_change), table_columns(table_change)
        if table is None:
            return
        known = self._tables.get(table)
        count = self._count - (0 if known is None else len(known[0]))
        if columns is None:
            self._tables.pop(table, None)
        elif (known is None and len(self._tables) >= MAX_TABLES) or count + len(columns) > MAX_COLUMNS:
            expected = f"at most {MAX_COLUMNS} columns of {MAX_TABLES} tables in all schema changes"
            raise StructureError(expected, "more", format=format)
        else:
            self._tables[table] = columns, table_key(table_change)
            count += len(columns)
        self._count = count


def lacks_columns(change: Change) -> bool:
    """Return whether the values of a change are still as Debezium sent them, because its columns are unknown."""
    return change.columns is None and has_connect_values(change)


def with_columns(change: Change, columns: Sequence[Column], *, modes: Modes = USUAL_MODES) -> Change:
    """Return a row change of Debezium with its columns, and with its values converted from how they were sent.

    Values that do not fit their column's type stay as they were sent, as do all values of connectors
    other than MySQL's and MariaDB's. The change still yields its whole message. A change of another
    format stays as it is, and so does one that has columns already, but for integers that are unsigned.
    """
    format, stated = change.source.format, tuple(columns) if lacks_columns(change) else _known(change, columns)
    if format is None or stated is None or stated is change.columns:
        return change
    known = frozenset(change.columns or ())
    unread = [column for column in stated if column not in known]
    (record,) = records([change], format)
    (unconverted,) = BRIDGES[format].to_changes(record, None)
    converted = replace(_converted(change, stated, unread, modes), members=unconverted.members)
    return with_members([converted], record, format)[0]


def _converted(change: Change, columns: tuple[Column, ...], unread: Sequence[Column], modes: Modes) -> Change:
    """Return a row change with its columns, and with the values of those that are unread converted."""
    return replace(
        change,
        columns=columns,
        before=read_row(change.before, unread, change.source.db_type, modes),
        after=read_row(change.after, unread, change.source.db_type, modes),
    )


def _known(change: Change, known: Sequence[Column]) -> tuple[Column, ...] | None:
    return with_unsigned(change.columns, known) if change.columns is not None and has_connect_values(change) else None


def _table(change: Change) -> Table:
    return change.source.database, change.source.schema, change.source.table


def _states_tables(record: Any) -> bool:
    """Return whether a message has table changes, wherever its envelope is."""
    return any(at(record, *path) is not None for path in _TABLE_PATHS)


def _table_changes(change: Change) -> list[Any]:
    """Return the table changes of a statement, which are among its members."""
    members = change.members or {}
    texts = [members[pointer] for pointer in _TABLE_CHANGES if members.get(pointer)]
    table_changes = parse(texts[0]) if texts else None
    return table_changes if type(table_changes) is list else []
