"""Typers of messages: the engine types a message straight to rows if the exact way has typed one like it before.

Messages of one *pattern* agree, byte for byte, in everything but the parts of their rows: values, times and positions;
types of columns may stand in any order.
What the exact way found out about one of them (its table, version, operation, and what becomes of each column) holds
for all, until a table is edited. So each pattern is learned from a message that went the exact way, and only if the
engine makes the same rows of that message.

Of a message that is a packet of changes of any tables, each group of rows is a line, which has a pattern.
"""

from __future__ import annotations

from array import array
from functools import lru_cache
from typing import TYPE_CHECKING, Final

from msgspec import structs

from cdcavro.change.model import DML, Change, common_size, replace
from cdcavro.change.order_value import common_order, order_value
from cdcavro.engine.machine import RowEngine
from cdcavro.engine.payloads import MAX_BYTES, Slices, pack
from cdcavro.errors import CdcAvroError
from cdcavro.exact.instants import steady_stretches
from cdcavro.exact.jsontext import loads, to_bytes
from cdcavro.exact.locks import one_at_a_time
from cdcavro.exact.numbers import MAX_LONG, MIN_LONG
from cdcavro.table.tables import TypedPayload
from cdcavro.table.writing.table_writer import NOWHERE, OPERATIONS, encoded_place
from cdcavro.transcoding.mapping import USUAL_PLACEHOLDER, placeholders, to_changes
from cdcavro.wire.attributes import PARTS
from cdcavro.wire.format import CODECS
from cdcavro.wire.formats import change_format, row_format
from cdcavro.wire.message_program import row_parts

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence
    from datetime import tzinfo

    from cdcavro.change.model import Arrival
    from cdcavro.change.order import Clock
    from cdcavro.engine.payloads import Batch
    from cdcavro.engine.program import RowProgram
    from cdcavro.table.history import Table
    from cdcavro.table.table_schema import TableSchema
    from cdcavro.table.tables import Tables, TypedChange
    from cdcavro.table.writing.table_writer import TableWriter
    from cdcavro.wire.format import Format
    from cdcavro.wire.message_program import RowParts

    # Rows in columns, as `RowEngine.taken` returns them.
    RowBuffers = tuple[bytes, ...]
    # Changes that are refused, each with its error.
    Refused = list[tuple[Change, CdcAvroError]]


# At most 512 patterns are tried, and one more for every 8 messages that were of a known one.
_PATIENCE: Final = 512
_UPDATE: Final = "UPDATE"
_SHARE: Final = 8


def merge_places(stated: Arrival | None, given: Arrival | None) -> Arrival | None:
    """Return where a message arrived: as it is given, and for the rest as its Kafka record states it itself."""
    if stated is None or given is None:
        return given if stated is None else stated
    return replace(stated, **{name: value for name, value in structs.asdict(given).items() if value is not None})


def row_engine(
    format: str, zone: tzinfo | None, unavailable: str | None, *, is_ordered: bool = False
) -> RowEngine | None:
    """Return the engine of a format's rows; None for a time zone that it cannot have. Raises `UnknownFormatError`.

    With `is_ordered`, its rows have order values.
    """
    pieces = pieces_of(zone)
    if pieces is None:
        return None
    program, words = row_format(format).program, placeholders(format, unavailable)
    return RowEngine(program, words, pieces, is_ordered, False, _lines_of(format) is not None)  # noqa: FBT003


@lru_cache(maxsize=64)
def _parts_of(format: Format) -> RowParts:
    """Return the parts of a format's rows: looking for them takes longer than reading a message."""
    return row_parts(format.envelope)


def _lines_of(format: str) -> Batch | None:
    """Return what makes lines of a format's messages, None if the engine types these themselves."""
    codec = CODECS.get(format)
    return None if codec is None or codec.lines is None else codec.column


def pieces_of(zone: tzinfo | None) -> bytes | None:
    """Return the pieces of a time zone, none for no zone, as the engine takes them; None if it cannot have the zone."""
    pieces = () if zone is None else steady_stretches(zone)
    if zone is not None and not pieces:
        return None
    return array("q", [number for piece in pieces for number in piece]).tobytes()


def _column_of(message: bytes) -> Slices:
    """Return a column of one message."""
    return Slices(message, array("i", [0, len(message)]).tobytes(), None, 0, 1)


def _typed_lines(
    lines: bytes, parts: Collection[str], changes: Sequence[Change], typed: Sequence[TypedChange]
) -> Iterator[tuple[int, bytes, Sequence[Change], Sequence[TypedChange]]]:
    """Yield the number of the first row of each line, the line, its changes and its rows; none if these do not match.

    A line with the part `rows` has them in `data`, and any other one is a row.
    """
    each = lines.split(b"\n")[:-1]
    counts = [0 if not line else len(loads(line)["data"]) if "rows" in parts else 1 for line in each]
    if len(typed) != sum(counts) or len(changes) != sum(count or 1 for count in counts):
        return
    number = first = 0
    for line, count in zip(each, counts, strict=True):
        if count:
            yield number, line, changes[number : number + count], typed[first : first + count]
        number, first = number + (count or 1), first + count


def _is_moved(changes: Sequence[Change], typed: Sequence[TypedChange]) -> bool:
    """Return whether a message is one update that moves a row to another key."""
    is_update = len(changes) == 1 and changes[0].op == _UPDATE and changes[0].half is None
    return is_update and [one.change.op for one in typed] == ["DELETE", "INSERT"]


class MessageTyper:
    """Converts the messages of one format to typed rows, with the same `Tables` as the exact path.

    `unavailable` is as in `to_changes`. `is_all_learned` says that the tables learn nothing more, so that what
    `Tables.find` returns for a pattern holds. With a `clock` (`Clock`), rows in columns have their order values, and
    the clock moves on with their lanes. With `is_of_one_topic`, everything arrives in the same topic, which may name
    its table. One thread at a time may use it. If nothing is compiled, everything takes the exact path.

    Fields:

    * `clock` (`Clock` or None), as given
    * `taken` (int), how many messages the engine has typed
    * `user` (dict), the thread that uses it, for `one_at_a_time`
    """

    def __init__(
        self,
        format: str,
        tables: Tables,
        *,
        unavailable: str | None = USUAL_PLACEHOLDER,
        is_all_learned: bool = False,
        clock: Clock | None = None,
        is_of_one_topic: bool = False,
    ) -> None:
        self._is_of_one_topic = is_of_one_topic
        self._format, self._tables, self._unavailable = self._format_of(format), tables, unavailable
        self._lines = _lines_of(format)
        # The column that was taken last, and its lines.
        self._column: tuple[Slices, Slices] | None = None
        self._parts = _parts_of(self._format)
        self._is_all_learned, self.clock = is_all_learned, clock
        self._has_engine = self._make_engine() is not None
        self._engine = self.new_engine()
        self._known: list[tuple[Table, TableSchema, str]] = []
        self._edits, self._journal = tables.edits, Journal()
        self._tried = self.taken = self._turn = 0
        self.user: dict[str, int] = {}

    def add(self, message: bytes | str, place: Arrival | None = None) -> list[TypedPayload]:
        """Return a message's rows, as `to_changes` and `Tables.add` make them, and raise what these raise.

        `place` is where it arrived, as far as its Kafka record does not say so. The halves of an update are not
        joined here.
        """
        raw = message if type(message) is bytes else to_bytes(message)
        rows = self.type_by_pattern(raw, place)
        if rows is not None:
            return rows
        changes = self.changes(raw)
        placed = [replace(change, place=merge_places(change.place, place)) for change in changes]
        typed = [typed_change for change in placed for typed_change in self._tables.add(change)]
        self.learn(raw, changes, typed, place)
        return [TypedPayload(one.table, one.schema, one.change.op, one.key, one.payload) for one in typed]

    def write(self, message: bytes, place: Arrival | None = None) -> tuple[list[TypedChange], Refused]:
        """Return a message's changes as `Tables.find` and `Tables.write` make them, and those that these refuse.

        The tables must have learned all. Raises what `to_changes` raises.
        """
        changes = self.changes(message)
        typed: list[TypedChange] = []
        refused: Refused = []
        for change in changes:
            placed = self._tables.with_given_table(replace(change, place=merge_places(change.place, place)))
            try:
                typed += self._tables.write(placed, self._tables.find(placed))
            except CdcAvroError as error:
                refused.append((placed, error))
        if not refused:
            self.learn(message, changes, typed, place)
        return typed, refused

    def changes(self, message: bytes) -> list[Change]:
        """Return the changes of a message, by the exact path. Raises as `to_changes` does."""
        return to_changes(
            message, self._format.name, zone=self._tables.zone, members=False, unavailable=self._unavailable
        )

    def type_by_pattern(self, message: bytes, place: Arrival | None = None) -> list[TypedPayload] | None:
        """Return the rows of a message whose pattern is known; None for one that must take the exact path."""
        if self._edits != self._tables.edits:
            self._forget()
        is_named, turn = self._is_named_by_topic(place), self._turn
        if self._lines is not None:
            message = self._lines(_column_of(message), 0, 0, MAX_BYTES)[0]
        rows = None if is_named else self._engine.rows(message, NOWHERE if place is None else encoded_place(place))
        if rows is None:
            return None
        self.taken += 1
        patterns = self._patterns()
        if self._turn != turn or turn % 2:
            raise RuntimeError("one thread at a time may use a MessageTyper, and another does")
        return [TypedPayload(*patterns[number], key, payload) for number, key, payload, *_ in rows]

    @one_at_a_time
    def learn(
        self, message: bytes, changes: Sequence[Change], typed: Sequence[TypedChange], place: Arrival | None = None
    ) -> bool:
        """Learn the pattern of a message that took the exact path, and return whether it is known now.

        `changes` are what `to_changes` made of the message, and `typed` what `Tables.add` made of these at `place`. If
        the message is a packet, the patterns of its lines are learned, and it is not said whether all are known.
        """
        if self._lines is None:
            return self._learn(message, message, changes, typed, place)
        lines = self._lines(_column_of(message), 0, 0, MAX_BYTES)[0]
        for number, line, own, rows in _typed_lines(lines, self._parts.names, changes, typed):
            self._learn(line, b"\n" * number + line + b"\n", own, rows, place)
        return False

    def _learn(
        self,
        line: bytes,
        message: bytes,
        changes: Sequence[Change],
        typed: Sequence[TypedChange],
        place: Arrival | None,
    ) -> bool:
        """Learn the pattern of a line, which is a message or stands in one."""
        if self._edits != self._tables.edits:
            self._forget()
        is_row = len(typed) == len(changes) > 0 and changes[0].op in DML and changes[0].half is None
        # Where the order is kept, the engine moves a row to another key, too.
        is_row = is_row or (self.clock is not None and _is_moved(changes, typed))
        if (
            not (self._has_engine and is_row)
            or self._is_named_by_topic(place)
            or self._tried > _PATIENCE + self.taken // _SHARE
        ):
            return False
        fixed = self._engine.pattern(line)
        if fixed is None or self._engine.has(fixed):
            return False
        self._tried += 1
        first = changes[0]
        if self._is_of_one_topic:
            first = replace(first, place=merge_places(first.place, place))
        program = self._program(line, first)
        if program is None:
            return False
        # Odd while a pattern is not known to be right; it counts on, so that no other thread misses that.
        self._turn += 1
        try:
            return self._learn_pattern(message, fixed, program, first.op, typed, place)
        finally:
            self._turn += 1

    def _learn_pattern(
        self,
        message: bytes,
        fixed: bytes,
        program: RowProgram,
        op: str,
        typed: Sequence[TypedChange],
        place: Arrival | None,
    ) -> bool:
        if not self._engine.add(fixed, program):
            return False
        self._known.append((typed[0].table, typed[0].schema, op))
        rows = self._engine.rows(message, encoded_place(place))
        parts = (1, 2) if typed[0].change.op != op else [0] * len(typed)
        is_right = rows is not None and rows == list(map(self._expected_row, typed, parts))
        if not is_right:
            self._engine.drop_last()
        self._journal.add(fixed, program, typed[0].table, typed[0].schema, is_right=is_right)
        return is_right

    def take_column(
        self,
        messages: Slices,
        places: Slices | None,
        first: int,
        most: int,
        head: bytes = b"",
        *,
        is_read: bool = False,
    ) -> tuple[int, bool]:
        """Take messages of known patterns from an index on, as `RowEngine.take_column`; the rows wait for `pop_rows`.

        Where a topic names tables, `places` have none. The tables must have learned all.
        """
        if self._lines is None:
            return self._engine.take_column(messages, places, first, most, self.clock, head, is_read)
        if self._column is None or self._column[0] is not messages:
            packed = pack(messages, lambda _: b"", batch=self._lines)
            validity = packed.validity if packed.nulls else None
            self._column = messages, Slices(packed.data, packed.offsets, validity, 0, messages.count)
        end, is_full = self._engine.take_column(self._column[1], places, first, most, self.clock)
        if end + 1 >= messages.count:
            self._column = None
        return end, is_full

    def pop_rows(self) -> tuple[list[tuple[Table, TableSchema, str]], RowBuffers]:
        """Return the table, version and operation of each number of a pattern, and the rows that wait.

        Both are as in `RowEngine.taken`.
        """
        rows = self._engine.taken()
        self.taken += len(rows[0]) // 4
        return self._patterns(), rows

    def _patterns(self) -> list[tuple[Table, TableSchema, str]]:
        """Return the table, version and operation of each number that the engine gives a pattern."""
        if self.clock is None:
            return self._known
        moved = [(table, schema, op) for op in ("DELETE", "INSERT") for table, schema, _ in self._known]
        return [*self._known, *moved]

    def _expected_row(self, typed: TypedChange, part: int) -> tuple[object, ...]:
        """Return what the engine must make of a row of the pattern that was learned last.

        Part 1 is the delete of a key that an update moves away, 2 the insert of the other, and 0 any other row.
        """
        row = (part + 1) * len(self._known) - 1, typed.key, typed.payload
        return row if self.clock is None else (*row, order_value(typed.change, is_left=part == 1), bool(typed.absent))

    def new_engine(self) -> RowEngine:
        """Return another engine for the same messages, which has learned nothing."""
        engine = self._make_engine()
        return RowEngine(self._format.program) if engine is None else engine

    def _make_engine(self) -> RowEngine | None:
        """Return the engine of the format's rows; None for a time zone that it cannot have."""
        return row_engine(self._format.name, self._tables.zone, self._unavailable, is_ordered=self.clock is not None)

    @staticmethod
    def _format_of(name: str) -> Format:
        return row_format(name)

    @property
    def journal(self) -> Journal:
        """The patterns that hold, for the engines of other threads."""
        if self._edits != self._tables.edits:
            self._forget()
        return self._journal

    def _is_named_by_topic(self, place: Arrival | None) -> bool:
        """Return whether a row may be of the table that is called like its topic."""
        is_by_topic = self._tables.given_table.by_topic and not self._is_of_one_topic
        return is_by_topic and place is not None and place.topic is not None

    def _forget(self) -> None:
        """Forget all patterns, because a table was edited since they were learned."""
        self._engine.clear()
        self._known.clear()
        self._edits, self._journal = self._tables.edits, Journal()

    def _program(self, message: bytes, change: Change) -> RowProgram | None:
        """Return the program of the pattern of a change's message, None if the engine cannot have it."""
        settled = (
            None
            if change.unavailable is not None
            else self._tables.lasting_writer(change, is_all_learned=self._is_all_learned)
        )
        position = self._parts.position(change.source.db_type, message)
        if settled is None or not self._is_clear(message, change, settled[2]):
            return None
        table, writer, completed = settled
        key = writer.schema.key_names if completed.key is None else completed.key
        program = writer.row_program(key, is_sent=self._is_sent(change, completed))
        latest = self._tables.last_number(table, change)
        if program is not None and latest is not None:
            program.latest = max(MIN_LONG, min(latest, MAX_LONG))
        if program is not None:
            # Under its new key, a row would lack the values of columns that may still be there.
            program.is_split = not table.unexplained.dropped
        return None if program is None else self._fill_program(program, writer, completed, position)

    def _is_clear(self, message: bytes, change: Change, _completed: Change) -> bool:
        """Return whether a message's change was made of just its parts."""
        return self._parts.are_complete(self._format.encode(message), self._format.read, change.key)

    def _is_sent(self, _change: Change, _completed: Change) -> bool:
        """Return whether the values in a message are as the format sends them, and not as in its change."""
        return True

    def _fill_program(self, program: RowProgram, writer: TableWriter, change: Change, position: int) -> RowProgram:
        before, after = self._images(change)
        program.head, program.place = writer.head(is_snapshot=change.op == "SNAPSHOT"), encoded_place(change.place)
        program.position, program.before, program.after = position, PARTS.index(before), PARTS.index(after)
        program.phase, program.order, program.is_batched = common_order(change)
        program.operation, program.weight = ord(OPERATIONS[change.op]), common_size(change)
        program.is_empty_none = not change.transaction
        program.fills_absent = self._tables.fills_absent
        return program

    def _images(self, change: Change) -> tuple[str, str]:
        """Return which parts are the rows before and after a change."""
        if "rows" in self._parts.names:
            return ("rows", "") if change.after is None else ("", "rows")
        after = "row" if "row" in self._parts.names else "after"
        if (after == "row" or self._parts.is_whole) and change.after is None:
            return after, ""
        before = "old" if "old" in self._parts.names else "before"
        return before if change.before is not None else "", after if change.after is not None else ""


class ChangeTyper(MessageTyper):
    """Turns payloads of changes, whatever format they came in, into typed rows, as `MessageTyper` does with messages.

    The `Tables` must have learned all. A change states its place itself, so none is given. Its `members` are left out:
    they serve the format that it came in, and no row has them.
    """

    def __init__(self, tables: Tables) -> None:
        super().__init__(change_format().name, tables, unavailable=None, is_all_learned=True)

    def changes(self, message: bytes) -> list[Change]:
        """Return the change of a payload. Raises `PayloadError`."""
        return [replace(Change.from_avro(message), members=None)]

    def _make_engine(self) -> RowEngine | None:
        pieces = pieces_of(self._tables.zone)
        return None if pieces is None else RowEngine(change_format().program, (), pieces, False, True)  # noqa: FBT003

    @staticmethod
    def _format_of(_name: str) -> Format:
        return change_format()

    def _program(self, message: bytes, change: Change) -> RowProgram | None:
        if self._tables.given_table.by_topic and not change.source.table:
            return None  # the topic, which names the table, is no part of the pattern
        return super()._program(message, change)

    def _is_clear(self, _message: bytes, change: Change, completed: Change) -> bool:
        """Return whether the values of a change are in one form: they were read by all of their types, or by none."""
        return change.columns is None or completed.columns is change.columns

    def _is_sent(self, change: Change, completed: Change) -> bool:
        """Return whether the change states no types of its own, so that its values were read by those of the table."""
        return completed.columns is not change.columns

    def _fill_program(self, program: RowProgram, writer: TableWriter, change: Change, position: int) -> RowProgram:
        made = super()._fill_program(program, writer, change, position)
        # A change has its place beside its pattern, and says itself whether it has a transaction.
        made.place, made.is_empty_none = NOWHERE, False
        return made


# What a journal without patterns takes, in bytes, with room for versions.
_EMPTY: Final = 1 << 12


class Journal:
    """The patterns that were learned since the last edit of a table, in order; older ones hold no longer.

    Engines of other threads learn them from here.

    Fields:

    * `versions` (list of a `Table` and a `TableSchema`), what the messages of the patterns are of
    * `groups` (array of int), of each pattern the index of its version
    * `size` (int), how many bytes the patterns and their programs take, about
    """

    __slots__ = ("_indexes", "_patterns", "groups", "size", "versions")

    def __init__(self) -> None:
        self.versions: list[tuple[Table, TableSchema]] = []
        self.groups = array("i")
        self._indexes: dict[tuple[int, int], int] = {}
        self._patterns: list[tuple[bytes, RowProgram, bool]] = []
        self.size = _EMPTY

    def __len__(self) -> int:
        return len(self._patterns)

    def add(self, fixed: bytes, program: RowProgram, table: Table, schema: TableSchema, *, is_right: bool) -> None:
        """Note a pattern that the engine learned, and that it dropped again unless `is_right`."""
        index = self._indexes.setdefault((table.number, schema.version), len(self.versions))
        if index == len(self.versions):
            self.versions.append((table, schema))
        self.groups.append(index)
        self._patterns.append((fixed, program, is_right))
        self.size += len(fixed) + program.size

    def patterns(self, count: int) -> dict[bytes, tuple[RowProgram, Table, TableSchema]]:
        """Return the first `count` patterns, as far as they hold, with their programs, tables and versions."""
        found = zip(self._patterns[:count], self.groups, strict=False)
        return {fixed: (program, *self.versions[group]) for (fixed, program, is_right), group in found if is_right}

    def play(self, engine: RowEngine, first: int, last: int) -> None:
        """Let an engine that knows the patterns before `first` learn the others before `last`."""
        for fixed, program, is_right in self._patterns[first:last]:
            engine.add(fixed, program)
            if not is_right:
                engine.drop_last()
