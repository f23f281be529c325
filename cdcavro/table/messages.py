"""Messages straight to typed rows: the engine types what is like what the exact way has typed before.

Messages of one *pattern* agree, byte for byte, in everything but the parts of their rows: values, times and positions.
What the exact way found out about one of them (its table, version, operation, and what becomes of each column) holds
for all, until a table is edited. So each pattern is learned from a message that went the exact way, and only if the
engine makes the same rows of that message.
"""

from __future__ import annotations

from array import array
from typing import TYPE_CHECKING, Final

from msgspec import structs

from cdcavro.change.model import DML, replace
from cdcavro.change.order_value import common_order, order_value
from cdcavro.change.rows import common_size
from cdcavro.engine.machine import RowEngine
from cdcavro.errors import CdcAvroError
from cdcavro.exact.instants import steady_pieces
from cdcavro.exact.jsontext import to_bytes
from cdcavro.exact.locks import one_at_a_time
from cdcavro.table.writing.journal import Journal
from cdcavro.table.writing.typed import TypedPayload
from cdcavro.table.writing.writer import NOWHERE, OPERATIONS, encoded_place
from cdcavro.transcoding.mapping import USUAL_PLACEHOLDER, placeholders, to_changes
from cdcavro.wire.attributes import PARTS
from cdcavro.wire.formats import get_format
from cdcavro.wire.program import row_parts

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import tzinfo

    from cdcavro.change.clock import Clock
    from cdcavro.change.model import Arrival, Change
    from cdcavro.engine.arrow_column import Slices
    from cdcavro.engine.row_program import RowProgram
    from cdcavro.table.history import Table
    from cdcavro.table.schema import TableSchema
    from cdcavro.table.tables import Tables
    from cdcavro.table.writing.typed import TypedChange
    from cdcavro.table.writing.writer import TableWriter
    from cdcavro.wire.format import Format

    # As `RowEngine.taken`.
    Columns = tuple[bytes, ...]
    Refused = list[tuple[Change, CdcAvroError]]

# A pattern is tried as long as most messages are of known ones.
_PATIENCE: Final = 512
_SHARE: Final = 8


def merged(own: Arrival | None, told: Arrival | None) -> Arrival | None:
    """Return where a message arrived: what is told, and for the rest what its Kafka record states itself."""
    if own is None or told is None:
        return told if own is None else own
    return replace(own, **{name: value for name, value in structs.asdict(told).items() if value is not None})


def row_engine(
    format: str, zone: tzinfo | None, unavailable: str | None, *, is_ordered: bool = False
) -> RowEngine | None:
    """Return the engine of a format's rows; None for a time zone that it cannot have. Raises `UnknownFormatError`.

    With `is_ordered`, its rows have order values.
    """
    pieces = pieces_of(zone)
    if pieces is None:
        return None
    return RowEngine(get_format(format).program, placeholders(format, unavailable), pieces, is_ordered)


def pieces_of(zone: tzinfo | None) -> bytes | None:
    """Return the pieces of a time zone, none for no zone, as the engine takes them; None if it cannot have the zone."""
    pieces = () if zone is None else steady_pieces(zone)
    if zone is not None and not pieces:
        return None
    return array("q", [number for piece in pieces for number in piece]).tobytes()


class MessageTyper:
    """Turns the messages of one format into typed rows, by the `Tables` that the exact way works with, too.

    `unavailable` is as in `to_changes`. `is_all_learned` says that the tables learn nothing any more, so that what
    `Tables.find` finds for a pattern holds. With a `clock` (`Clock`), rows in columns have their order values, and the
    clock is told how far their lanes went. One thread at a time may use it. Where nothing is compiled, everything goes
    the exact way.
    """

    def __init__(
        self,
        format: str,
        tables: Tables,
        *,
        unavailable: str | None = USUAL_PLACEHOLDER,
        is_all_learned: bool = False,
        clock: Clock | None = None,
    ) -> None:
        self._format, self._tables, self._unavailable = self._format_of(format), tables, unavailable
        self._parts = row_parts(self._format.envelope)
        self._is_all_learned, self.clock = is_all_learned, clock
        self._is_able = self._own_engine() is not None
        self._engine = self.new_engine()
        self._known: list[tuple[Table, TableSchema, str]] = []
        self._edits, self._journal = tables.edits, Journal()
        self._tried = self.taken = self._turn = 0
        self.user: dict[str, int] = {}

    def add(self, message: bytes | str, place: Arrival | None = None) -> list[TypedPayload]:
        """Return a message's rows, as `to_changes` and `Tables.add` make them, which raise what this raises.

        `place` is where it arrived, as far as its Kafka record does not say so. The halves of an update are not
        joined here.
        """
        raw = message if type(message) is bytes else to_bytes(message)
        rows = self.known(raw, place)
        if rows is not None:
            return rows
        changes = self.changes(raw)
        placed = [replace(change, place=merged(change.place, place)) for change in changes]
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
            placed = self._tables.named(replace(change, place=merged(change.place, place)))
            try:
                typed += self._tables.write(placed, self._tables.find(placed))
            except CdcAvroError as error:
                refused.append((placed, error))
        if not refused:
            self.learn(message, changes, typed, place)
        return typed, refused

    def changes(self, message: bytes) -> list[Change]:
        """Return the changes of a message, the exact way. Raises as `to_changes` does."""
        return to_changes(
            message, self._format.name, zone=self._tables.zone, members=False, unavailable=self._unavailable
        )

    def known(self, message: bytes, place: Arrival | None = None) -> list[TypedPayload] | None:
        """Return the rows of a message whose pattern is known; None for one that has to go the exact way."""
        if self._edits != self._tables.edits:
            self._forget()
        is_named, turn = self._is_named_by(place), self._turn
        made = None if is_named else self._engine.rows(message, NOWHERE if place is None else encoded_place(place))
        if made is None:
            return None
        self.taken += 1
        known = self._known
        if self._turn != turn or turn % 2:
            raise RuntimeError("one thread at a time may use a MessageTyper, and another does")
        return [TypedPayload(*known[number], key, payload) for number, key, payload, *_ in made]

    @one_at_a_time
    def learn(
        self, message: bytes, changes: Sequence[Change], typed: Sequence[TypedChange], place: Arrival | None = None
    ) -> bool:
        """Learn the pattern of a message that went the exact way, and return whether it is known now.

        `changes` are what `to_changes` made of the message, and `typed` what `Tables.add` made of these at `place`.
        """
        if self._edits != self._tables.edits:
            self._forget()
        is_row = len(typed) == len(changes) > 0 and changes[0].op in DML and changes[0].half is None
        if not (self._is_able and is_row) or self._is_named_by(place) or self._tried > _PATIENCE + self.taken // _SHARE:
            return False
        fixed = self._engine.pattern(message)
        if fixed is None or self._engine.has(fixed):
            return False
        self._tried += 1
        program = self._program(message, changes[0])
        if program is None:
            return False
        # Odd while a pattern is not known to be right; it counts on, so that no other thread misses that.
        self._turn += 1
        try:
            return self._is_learned(message, fixed, program, typed, place)
        finally:
            self._turn += 1

    def _is_learned(
        self, message: bytes, fixed: bytes, program: RowProgram, typed: Sequence[TypedChange], place: Arrival | None
    ) -> bool:
        if not self._engine.add(fixed, program):
            return False
        self._known.append((typed[0].table, typed[0].schema, typed[0].change.op))
        made = self._engine.rows(message, encoded_place(place))
        is_right = made is not None and made == [self._made_of(one) for one in typed]
        if not is_right:
            self._engine.drop_last()
        self._journal.add(fixed, program, typed[0].table, typed[0].schema, is_right=is_right)
        return is_right

    def take_column(self, messages: Slices, places: Slices | None, first: int, most: int) -> tuple[int, bool]:
        """Take messages of known patterns from an index on, as `RowEngine.take_column` does; the rows wait to be `made`.

        Where a topic names tables, `places` have none. The tables must have learned all.
        """
        return self._engine.take_column(messages, places, first, most, self.clock)

    def made(self) -> tuple[list[tuple[Table, TableSchema, str]], Columns]:
        """Return the table, version and operation of each pattern, and the rows that wait, as `RowEngine.taken` does."""
        made = self._engine.taken()
        self.taken += len(made[0]) // 4
        return self._known, made

    def _made_of(self, typed: TypedChange) -> tuple[object, ...]:
        """Return what the engine is to make of a row, of the pattern that was learned last."""
        made = len(self._known) - 1, typed.key, typed.payload
        return made if self.clock is None else (*made, order_value(typed.change), bool(typed.absent))

    def new_engine(self) -> RowEngine:
        """Return another engine for the same messages, which has learned nothing."""
        engine = self._own_engine()
        return RowEngine(self._format.program) if engine is None else engine

    def _own_engine(self) -> RowEngine | None:
        """Return the engine of the format's rows; None for a time zone that it cannot have."""
        return row_engine(self._format.name, self._tables.zone, self._unavailable, is_ordered=self.clock is not None)

    @staticmethod
    def _format_of(name: str) -> Format:
        return get_format(name)

    @property
    def journal(self) -> Journal:
        """What was learned and holds, for the engines of other threads."""
        if self._edits != self._tables.edits:
            self._forget()
        return self._journal

    def _is_named_by(self, place: Arrival | None) -> bool:
        """Return whether a row may be of the table called as the topic that is told for it."""
        return place is not None and place.topic is not None and self._tables.given_table.by_topic

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
            else self._tables.settled(change, is_all_learned=self._is_all_learned)
        )
        position = self._parts.position(change.source.db_type)
        if settled is None or not self._is_clear(message, change):
            return None
        _, writer, completed = settled
        key = writer.schema.key_names if completed.key is None else completed.key
        program = writer.row_program(key, is_sent=self._is_sent(change, completed))
        return None if program is None else self._of_pattern(program, writer, completed, position)

    def _is_clear(self, message: bytes, change: Change) -> bool:
        """Return whether a message's change was made of just its parts."""
        return self._parts.are_complete(self._format.encode(message), self._format.read, change.key)

    def _is_sent(self, _change: Change, _completed: Change) -> bool:
        """Return whether the values in a message are as the format sends them, and not as in its change."""
        return True

    def _of_pattern(self, program: RowProgram, writer: TableWriter, change: Change, position: int) -> RowProgram:
        before, after = self._images(change)
        program.head, program.place = writer.head(is_snapshot=change.op == "SNAPSHOT"), encoded_place(change.place)
        program.position, program.before, program.after = position, PARTS.index(before), PARTS.index(after)
        program.phase, program.order, program.is_batched = common_order(change)
        program.operation, program.weight = ord(OPERATIONS[change.op]), common_size(change)
        program.is_empty_none = not change.transaction
        return program

    def _images(self, change: Change) -> tuple[str, str]:
        """Return which parts are the rows before and after a change."""
        if "rows" in self._parts.names:
            return ("rows", "") if change.after is None else ("", "rows")
        if "row" in self._parts.names and change.after is None:
            return "row", ""
        after = "row" if "row" in self._parts.names else "after"
        return "before" if change.before is not None else "", after if change.after is not None else ""
