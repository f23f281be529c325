"""The bridge between a format's records and changes: the functions that each format's module offers.

`schema_bridge` is the default: what a wire schema says of its members (`means` and `ops`) is all that it needs.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache, partial
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from cdcavro.change.model import DDL, Change, Row, Source, check_images
from cdcavro.change.operations import as_statement, read_operation, spell_operation, statement_text
from cdcavro.errors import StructureError, shown
from cdcavro.exact.instants import from_count, from_text, to_count, to_local, to_local_microseconds, to_utc
from cdcavro.exact.jsontext import at, drop_nulls, escape, names_at, same, string_at, whole_number
from cdcavro.exact.numbers import MAX_LONG
from cdcavro.wire.attributes import (
    ARRIVAL,
    LOCAL,
    LOCAL_MICROSECONDS,
    UNITS,
    UTC_MICROSECONDS,
    WHOLE_ROW,
    FieldRule,
    field_rule,
    is_whole_number,
    marked_paths,
    member_path,
)
from cdcavro.wire.formats import get_format

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from datetime import tzinfo

    from cdcavro.avro.types import Field

Record = dict[str, Any]


def no_shape(_record: Record) -> str:
    """Return the shape of a record whose format has only one."""
    return ""


def _all_available(record: Record, _word: str | None) -> tuple[Record, tuple[str, ...]]:
    return record, ()


def _no_placeholders(_word: str | None) -> tuple[bytes, ...]:
    return ()


def _unchanged_record(record: Record, _original: Record) -> Record:
    return record


def unchanged_change(change: Change, _original: Change, _message: Record) -> Change:
    """Return a change whose values its format spells in one way only."""
    return change


def _already_one_message(change: Change) -> Change:
    return change


def _lacks_nothing(_change: Change) -> str | None:
    return None


def _left_text(_text: bytes, _members: Record) -> bytes | None:
    return None


@dataclass(frozen=True, kw_only=True)
class Bridge:
    """The functions that a format's module offers. The defaults of the last nine suit most formats."""

    # Converts a record, with the source's zone, to changes.
    to_changes: Callable[[Record, tzinfo | None], list[Change]]
    # Converts changes that came as the rows of one message, with the zone, to records.
    from_changes: Callable[[Sequence[Change], tzinfo | None], list[Record]]
    # Returns a record without the columns that hold a placeholder made of a word (None for no word), and their names.
    remove_unavailable: Callable[[Record, str | None], tuple[Record, tuple[str, ...]]] = _all_available
    # Returns the texts of the placeholders made of a word.
    placeholders: Callable[[str | None], tuple[bytes, ...]] = _no_placeholders
    # Returns which of several shapes a record has: its text says so in words, and is another one for another shape.
    shape_of: Callable[[Record], object] = no_shape
    # Puts a record into the shape of an original.
    reshape: Callable[[Record, Record], Record] = _unchanged_record
    # Spells the values of a change that was read back as they are spelled in an original, which came in a message.
    restore_values: Callable[[Change, Change, Record], Change] = unchanged_change
    # Turns an update into what it is when one message holds both images.
    as_one_message: Callable[[Change], Change] = _already_one_message
    # Says what a change lacks to be a message, None if nothing.
    missing_part: Callable[[Change], str | None] = _lacks_nothing
    # Adds the members that the headers of its Kafka record state to a message. Raises `StructureError` for others there.
    add_members: Callable[[Record, Record], Record] = _unchanged_record
    # Adds them to a text; returns None for one that has to be looked at closer.
    splice_members: Callable[[bytes, Record], bytes | None] = _left_text


class _Words(NamedTuple):
    """The words of an operation in one member."""

    # The path to the member, what its words mean, and how each operation is spelled.
    path: tuple[str, ...]
    ops: Mapping[str, str]
    spellings: Mapping[str, str]


class _Meant(NamedTuple):
    """What a wire schema says of the members of its messages."""

    # The members that state the operation.
    operations: tuple[_Words, ...]
    # The names of all members, if all others are the columns of the row; else None.
    beside: frozenset[str] | None
    # The path to the member of each meaning, and its rule.
    paths: Mapping[str, tuple[str, ...]]
    rules: Mapping[str, FieldRule]
    # Meanings of members that are numbers, and of members of the message that are null where nothing is said.
    numbers: frozenset[str]
    nulls: frozenset[str]
    # The JSON pointers to the rows before and after a change.
    before: str
    after: str
    # How the numbers of a position are told, None if there are none.
    position: Callable[[str | None], tuple[int, ...] | None] | None
    is_read_in_stream: bool
    # Whether changes are ordered by their arrival, whatever their positions.
    is_by_arrival: bool
    # What stands behind the name of a column that another member of its row says is not stated, empty if none does.
    unstated: str
    # Whether a null in the row of a delete says nothing of its column.
    has_unstated_nulls: bool


def schema_bridge(format: str) -> Bridge:
    """Return the bridge of a format whose messages hold one change each, made of what its wire schema says."""
    return Bridge(to_changes=partial(_to_changes, format), from_changes=partial(_from_changes, format))


def _to_changes(format: str, record: Record, zone: tzinfo | None) -> list[Change]:
    meant = _meant(format)
    operation, op = _operation(meant, record)
    before, after, changed = _images(meant, record, op, operation or "")

    def stated(meaning: str) -> str | None:
        return string_at(record, *meant.paths[meaning]) if meaning in meant.paths else None

    transaction, full_name = stated("transaction"), _split_name(stated("full name"))
    change = Change(
        op=op,
        operation=operation,
        source=Source(
            format=format, **{name: stated(meaning) or None for meaning, name in _SOURCE.items()} | full_name
        ),
        key=names_at(record, *meant.paths["key"]) if "key" in meant.paths else None,
        before=before,
        after=after,
        changed=changed,
        position=_position(meant, record, stated("position")),
        event_time=_instant(meant, record, "event time", op, zone),
        system_time=_instant(meant, record, "system time", op, zone),
        checkpoint_time=_instant(meant, record, "checkpoint time", op, zone),
        transaction=stated("transaction else") if transaction is None else transaction,
        ddl=stated("statement"),
        snapshot=False if op == "SNAPSHOT" and meant.is_read_in_stream else None,
    )
    return [check_images(as_statement(change), meant.before, meant.after)]


def _operation(meant: _Meant, record: Record) -> tuple[str | None, str]:
    """Return the word of a message's operation, and what it means. Raises `StructureError` for two that disagree."""
    stated = [(string_at(record, *words.path), words) for words in meant.operations]
    found = [(word, read_operation(word, words.ops), words.path) for word, words in stated if word is not None]
    if not found:
        return None, read_operation("", meant.operations[0].ops)
    for word, op, path in found[1:]:
        if (op == "DELETE") is not (found[0][1] == "DELETE"):
            raise StructureError(f"what agrees with {found[0][0]}", word, pointer=pointer_of(path))
    return found[0][:2]


def _position(meant: _Meant, record: Record, text: str | None) -> tuple[int, ...] | None:
    """Return the numbers of a position; behind them 0 and the row's number, or 1 for the last row that has it.

    None if the format has no positions, or this message has none; no numbers if it has none where arrival is the order.
    Raises `StructureError` for a text that is no position where that is the order.
    """
    if meant.position is None:
        return None
    numbers = meant.position(text)
    if numbers is None and text is not None and not meant.is_by_arrival:
        raise StructureError("a position in the source", shown(text), pointer=pointer_of(meant.paths["position"]))
    if numbers is None:
        return () if meant.is_by_arrival else None
    if "row of position" not in meant.paths:
        return numbers
    row = at(record, *meant.paths["row of position"])
    return (*numbers, 1) if row is None else (*numbers, 0, row)


def _images(
    meant: _Meant, record: Record, op: str, operation: str
) -> tuple[Row | None, Row | None, tuple[str, ...] | None]:
    """Return the rows before and after a change, and the names of the columns that it changed."""
    before, row, old = (_member(meant, record, meaning) for meaning in ("before", "row", "old"))
    if WHOLE_ROW in meant.paths:
        return *_whole_rows(meant, record, before, op, operation), None
    if "row" not in meant.paths:
        return before, _member(meant, record, "after"), None
    if op in DDL:
        if row:
            raise StructureError(f"no row for {operation}", "some", pointer=meant.after)
        return None, None, None
    if op == "DELETE":
        if before or old:
            raise StructureError(f"no second row before the change for {operation}", "some", pointer=meant.before)
        return row, None, None
    if old is not None:
        # Columns that changed were NULL if there is none left, and nothing says which they are.
        return ((row or {}) | old, row, tuple(old)) if old else (None, row, None)
    if before is None or row is None:
        # A mark may have an empty row.
        return before, row if row or op in _WITH_ROW else None, None
    return before, before | row, tuple(row)


def _whole_rows(
    meant: _Meant, record: Record, before: Row | None, op: str, operation: str
) -> tuple[Row | None, Row | None]:
    """Return the rows before and after a change, of which the row of a delete stands where other rows after do."""
    row = _member(meant, record, WHOLE_ROW)
    if op != "DELETE":
        return before, row
    if before:
        raise StructureError(f"no second row before the change for {operation}", "some", pointer=meant.before)
    return drop_nulls(row) if row is not None and meant.has_unstated_nulls else row, None


def _member(meant: _Meant, record: Record, meaning: str) -> Row | None:
    row: Row | None
    path = meant.paths.get(meaning)
    if meaning == "row" and meant.beside is not None:
        row, path = _columns(record, meant.beside), ()
    else:
        row = None if path is None else at(record, *path)
    return row if row is None or not meant.unstated else _stated_columns(row, meant.unstated, path or ())


def _columns(row: Row, beside: frozenset[str]) -> Row:
    return {name: value for name, value in row.items() if name not in beside}


def _stated_columns(row: Row, unstated: str, path: tuple[str, ...]) -> Row:
    """Return the columns of a row that are stated: a boolean beside a column says whether it is, and is no column.

    Raises `StructureError` for a value of a column that is said not to be stated; `path` is that of the row.
    """
    marks = {
        name.removesuffix(unstated): name
        for name, value in row.items()
        if type(value) is bool and name.endswith(unstated) and name.removesuffix(unstated) in row
    }
    if not marks:
        return row
    for column, name in marks.items():
        if row[name] and row[column] is not None:
            pointer = pointer_of((*path, column))
            raise StructureError(f"null, as {shown(name)} is true", "a value", pointer=pointer)
    left_out = {*marks.values(), *(column for column, name in marks.items() if row[name])}
    return {name: value for name, value in row.items() if name not in left_out}


def _split_name(text: str | None) -> dict[str, str | None]:
    """Return the names in the full name of a table, by the field of `Source`; of two, the first is the database."""
    if text is None:
        return {}
    *above, table = text.split(".", 2)
    names = [*above, "", ""]
    database, schema = names[:2]
    return {"database": database or None, "schema": schema or None, "table": table or None}


def _join_name(source: Source) -> str | None:
    """Return the full name of a table, None for no table."""
    names = (source.database, source.schema, source.table)
    return None if source.table is None else ".".join(name for name in names if name is not None)


def _instant(meant: _Meant, record: Record, meaning: str, op: str, zone: tzinfo | None) -> int | None:
    if meaning not in meant.paths:
        return None
    value, unit = at(record, *meant.paths[meaning]), _unit(meant, meaning, op)
    if UNITS[unit] > 0:
        return from_count(value, UNITS[unit])
    return from_text(value, None if unit == UTC_MICROSECONDS else zone)


def _unit(meant: _Meant, meaning: str, op: str) -> str:
    rule = meant.rules[meaning]
    return rule.units.get(op, rule.unit)


def _from_changes(format: str, changes: Sequence[Change], zone: tzinfo | None) -> list[Record]:
    meant = _meant(format)
    return [_record(meant, change, spelled, zone) for change in changes if (spelled := _spell(meant, change, format))]


def _spell(meant: _Meant, change: Change, format: str) -> list[tuple[tuple[str, ...], str]]:
    """Return the members that state the operation of a change, with their words; none if the format has no word."""
    word = spell_operation(change, format, meant.operations[0].spellings)
    if word is None:
        return []
    if change.source.format == format and change.operation is not None:
        stating = next((words for words in meant.operations if word in words.ops), meant.operations[0])
        return [(stating.path, word)]
    # A row that is new is written like one that has changed by a member that cannot tell the two apart.
    spelled = [(words.path, words.spellings.get(change.op) or words.spellings["UPDATE"]) for words in meant.operations]
    return [(path, word) for path, word in spelled if word]


def _record(meant: _Meant, change: Change, spelled: list[tuple[tuple[str, ...], str]], zone: tzinfo | None) -> Record:
    """Return the record of a change; what `members` put back is not made here."""
    is_row = statement_text(change) is None
    values: dict[str, Any] = {meaning: getattr(change.source, name) for meaning, name in _SOURCE.items()}
    values["full name"] = _join_name(change.source)
    values["key"] = None if change.key is None else list(change.key)
    values["statement"] = statement_text(change)
    values["transaction"] = _number_or_text(meant, change.transaction)
    for meaning, name in _TIMES.items():
        if meaning in meant.paths:
            values[meaning] = _spell_time(getattr(change, name), _unit(meant, meaning, change.op), zone)
    if is_row or change.before is not None or change.after is not None:
        values |= _rows(meant, change)
    record: Record = {} if meant.beside is None else _columns(values.pop("row", None) or {}, meant.beside)
    for path, word in spelled:
        _put(record, path, word)
    for meaning, path in meant.paths.items():
        value = values.get(meaning)
        if value is not None or meaning in meant.nulls:
            if len(path) == 1:
                record[path[0]] = value
            else:
                _put(record, path, value)
    return record


def _spell_time(instant: int | None, unit: str, zone: tzinfo | None) -> int | str | None:
    if unit == UTC_MICROSECONDS:
        return to_utc(instant)
    spell_local = _LOCAL_TIMES.get(unit)
    return to_count(instant, UNITS[unit]) if spell_local is None else spell_local(instant, zone)


def _rows(meant: _Meant, change: Change) -> dict[str, Row | None]:
    before, after = change.before, change.after
    if WHOLE_ROW in meant.paths:
        return {WHOLE_ROW: before} if change.op == "DELETE" else {WHOLE_ROW: after, "before": before}
    if "row" not in meant.paths:
        return {"before": before, "after": after}
    if change.op == "DELETE":
        return {"row": before}
    if "old" in meant.paths:
        return {"row": after, "old": _changed(before, after, change.changed)}
    if "before" not in meant.paths:
        return {"row": after}
    return {"row": _changed(after, before, change.changed), "before": before}


def _changed(row: Row | None, other: Row | None, names: tuple[str, ...] | None) -> Row | None:
    """Return the columns of a row with these names; without names, those in which another row differs."""
    if row is None or (names is None and other is None):
        return row
    if names is not None:
        return {name: row[name] for name in names if name in row}
    beside = other or {}
    return {name: value for name, value in row.items() if name not in beside or not same(value, beside[name])}


def _number_or_text(meant: _Meant, text: str | None) -> Any:
    if "transaction" not in meant.numbers or text is None:
        return text
    number = whole_number(text)
    return number[0] if number is not None and str(number[0]) == text else None


def _put(record: Record, path: tuple[str, ...], value: Any) -> None:
    for name in path[:-1]:
        record = record.setdefault(name, {})
    record[path[-1]] = value


def file_offset(text: str | None) -> tuple[int, ...] | None:
    """Return the number of a log's file and the offset in it; None for any other text.

    >>> file_offset("master.000006:800911")
    (6, 800911)
    """
    match = _FILE_OFFSET.fullmatch(text or "")
    return None if match is None else (int(match[1]), int(match[2]))


def log_position(file: str | None, *rest: Any) -> tuple[int, ...] | None:
    """Return the number at the end of a log file's name and the numbers in it; None if any of them is not there.

    >>> log_position("mysql-bin.000003", 704, 1), log_position("75259@78", None)
    ((3, 704, 1), None)
    """
    match, numbers = _FILE.fullmatch(file or ""), log_numbers(*rest)
    return None if match is None or numbers is None else (int(match[1]), *numbers)


def log_numbers(*values: Any) -> tuple[int, ...] | None:
    """Return integers from 0 to 2^63 - 1 as a position; None if any value is no such."""
    for value in values:
        if type(value) is not int or not 0 <= value <= MAX_LONG:
            return None
    return values


def trail_place(text: str | None) -> tuple[int, ...] | None:
    """Return the number of a trail's file and the offset in it, the last ten digits; None for any other text.

    The two compare as the whole number does, however many digits it has.

    >>> trail_place("00000000220093626802"), trail_place("93626803")
    ((22, 93626802), (0, 93626803))
    """
    match = _TRAIL.fullmatch(text or "")
    return None if match is None else (int(match[1] or "0"), int(match[2]))


_SOURCE: Final = {
    "database": "database",
    "schema": "schema",
    "table": "table",
    "tenant": "tenant",
    "db type": "db_type",
    "db version": "db_version",
}
_TIMES: Final = {
    "event time": "event_time",
    "system time": "system_time",
    "checkpoint time": "checkpoint_time",
}
_WITH_ROW: Final = frozenset({"INSERT", "UPDATE", "SNAPSHOT"})
_FILE: Final = re.compile(r".*?([0-9]{1,18})", re.ASCII | re.DOTALL)
_FILE_OFFSET: Final = re.compile(r"(?:[^:]*[^:0-9])?([0-9]{1,18}):([0-9]{1,18})", re.ASCII)
_TRAIL: Final = re.compile(r"([0-9]{0,18}?)([0-9]{1,10})", re.ASCII)
_LOCAL_TIMES: Final = {LOCAL: to_local, LOCAL_MICROSECONDS: to_local_microseconds}
_POSITIONS: Final = {"whole number": whole_number, "file offset": file_offset, "trail": trail_place}


# What members mean that no change has.
_BESIDE: Final = ("nothing", "key values")


@cache
def _meant(format: str) -> _Meant:
    envelope, rule = get_format(format).envelope, get_format(format).rule
    operations = [path for path, _ in marked_paths(envelope, "operation")]
    fields = [field_rule(field) for field in envelope.fields]
    meant = {meaning: path for path, meaning in marked_paths(envelope, "means") if meaning not in _BESIDE}
    paths = {meaning: member_path(path) for meaning, path in meant.items()}
    rules = {meaning: field_rule(path[-1]) for meaning, path in meant.items()}
    pointers = {meaning: "" if rules[meaning].members else pointer_of(path) for meaning, path in paths.items()}
    position = rule.position if isinstance(rule.position, str) else ""
    return _Meant(
        operations=tuple(_words(path) for path in operations),
        beside=frozenset(field.name for field in fields if not field.members)
        if any(field.members == "rest" for field in fields)
        else None,
        paths=paths,
        rules=rules,
        numbers=frozenset(meaning for meaning, path in meant.items() if is_whole_number(path[-1].type)),
        nulls=frozenset(
            meaning for meaning, path in paths.items() if rules[meaning].missing == "null" and len(path) == 1
        ),
        before=pointers.get("old", pointers.get("before", "")),
        after=pointers.get("row", pointers.get(WHOLE_ROW, pointers.get("after", ""))),
        position=_POSITIONS.get(position),
        is_read_in_stream=rule.reads_in_stream,
        is_by_arrival=rule.order == ARRIVAL,
        unstated=rule.unstated,
        has_unstated_nulls=rule.has_unstated_nulls,
    )


def _words(path: tuple[Field, ...]) -> _Words:
    ops = field_rule(path[-1]).ops
    # Of several words for an operation the first is written; a row that was read is one that is inserted.
    spellings = {op: word for word, op in reversed([*ops.items()])}
    spellings |= {"SNAPSHOT": spellings.get("SNAPSHOT", spellings["INSERT"])} if "INSERT" in spellings else {}
    return _Words(member_path(path), ops, spellings)


def pointer_of(path: Sequence[str]) -> str:
    """Return the JSON pointer of a path of names."""
    return "".join(f"/{escape(name)}" for name in path)
