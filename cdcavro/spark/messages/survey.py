"""What messages state about tables, without making changes of all of them: one stands for all that are like it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cdcavro.arrow.arrays import slices_of
from cdcavro.arrow.message_batches import Places
from cdcavro.change.model import DML, Change, replace
from cdcavro.change.order_value import order_in_common
from cdcavro.engine.machine import SurveyEngine
from cdcavro.engine.row_program import RowProgram
from cdcavro.errors import MessageError
from cdcavro.exact.numbers import MAX_LONG, MIN_LONG
from cdcavro.spark.tables import outline_of
from cdcavro.table.messages import merged, pieces_of
from cdcavro.table.names import has_row_of_table
from cdcavro.table.writing.writer import NOWHERE
from cdcavro.transcoding.mapping import placeholders, to_changes
from cdcavro.wire.formats import change_format, get_format
from cdcavro.wire.program import row_parts

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from datetime import tzinfo

    import pyarrow as pa

    from cdcavro.change.model import Arrival
    from cdcavro.table.names import GivenTable
    from cdcavro.wire.format import Format

    Outline = dict[str, Any]


class Survey:
    """Takes the outlines of messages of one kind, of which not all are needed: those of the first of each pattern.

    Messages of one pattern whose rows have columns of the same names state the same about their table. Which comes first
    in the order of changes, the engine tells by their numbers and places; that one goes the exact way. So does
    whatever the engine leaves. `given` is as in `Tables`.
    """

    def __init__(self, format: Format, engine: SurveyEngine | None, given: GivenTable) -> None:
        self._engine, self._given = engine, given
        self._parts = row_parts(format.envelope)

    def outlines(self, batch: pa.RecordBatch) -> Iterator[Outline]:
        """Yield the outlines that are needed of a column of messages, behind which their places may stand."""
        messages, places, i = slices_of(batch.column(0)), Places(batch), 0
        told = places.encode()
        while i < messages.count:
            if self._engine is not None:
                i = self._engine.take_alike(messages, told, i)
            message = messages.get(i) if i < messages.count else None
            if message is not None:
                yield from self._learned(message, places.get(i))
            i += 1
        for alike, first in () if self._engine is None else self._engine.firsts():
            placed = self._placed(messages.get(first) or b"", places.get(first))
            if _are_rows(placed):
                yield from _outlined(placed)
                continue
            # It is none of its kind: so may others be.
            for i in () if self._engine is None else self._engine.mixed(alike):
                yield from _outlined(self._placed(messages.get(i) or b"", places.get(i)))

    def _learned(self, message: bytes, place: Arrival | None) -> list[Outline]:
        """Return the outlines of a message, and learn its pattern."""
        changes = self._changes(message)
        placed = self._named(changes, place)
        if self._engine is not None and _are_rows(placed):
            self._learn(self._engine, message, changes[0])
        return _outlined(placed)

    def _learn(self, engine: SurveyEngine, message: bytes, change: Change) -> None:
        """Learn the pattern of a message, if the engine finds the numbers that its change has."""
        fixed = engine.pattern(message)
        if fixed is None or engine.has(fixed) or not self._is_clear(message, change):
            return
        program = RowProgram(position=self._parts.position(change.source.db_type), place=NOWHERE)
        program.phase, program.order, program.is_batched = order_in_common(change)
        found = engine.survey(message, {fixed: program.position})
        if found is not None and found[1] is not None and found[1] == _comparable(change.position):
            engine.add(fixed, program)

    def _placed(self, message: bytes, place: Arrival | None) -> list[Change]:
        return self._named(self._changes(message), place)

    def _named(self, changes: Sequence[Change], place: Arrival | None) -> list[Change]:
        return [self._given.named(replace(change, place=merged(change.place, place))) for change in changes]

    def _changes(self, message: bytes) -> list[Change]:
        raise NotImplementedError

    def _is_clear(self, message: bytes, change: Change) -> bool:
        raise NotImplementedError


class MessageSurvey(Survey):
    """The survey of JSON text of one format; `zone` and `unavailable` are as in `to_changes`."""

    def __init__(self, format: str, zone: tzinfo | None, unavailable: str | None, given: GivenTable) -> None:
        self._format, self._zone, self._unavailable = get_format(format), zone, unavailable
        pieces, words = pieces_of(zone), placeholders(format, unavailable)
        engine = None if pieces is None else SurveyEngine(self._format.program, words, pieces)
        super().__init__(self._format, engine, given)

    def _changes(self, message: bytes) -> list[Change]:
        """Return the changes of a message, none if it is no message, which its typing will say."""
        try:
            return to_changes(message, self._format.name, zone=self._zone, members=False, unavailable=self._unavailable)
        except MessageError:
            return []

    def _is_clear(self, message: bytes, change: Change) -> bool:
        """Return whether a change was made of just the parts, and the message does not say itself where it arrived."""
        own = self._format
        return change.place is None and self._parts.are_complete(own.encode(message), own.read, change.key)


class ChangeSurvey(Survey):
    """The survey of payloads of changes. Raises `PayloadError` for what is none."""

    def __init__(self, given: GivenTable) -> None:
        own = change_format()
        super().__init__(own, SurveyEngine(own.program, (), b"", False, True), given)  # noqa: FBT003

    def _changes(self, message: bytes) -> list[Change]:
        return [Change.from_avro(message)]

    def _is_clear(self, message: bytes, change: Change) -> bool:  # noqa: ARG002  as the engine sees
        return True


def _are_rows(changes: Sequence[Change]) -> bool:
    return bool(changes) and all(change.op in DML and has_row_of_table(change) for change in changes)


def _outlined(changes: Sequence[Change]) -> list[Outline]:
    return [outline for outline in map(outline_of, changes) if outline is not None]


def _comparable(position: Sequence[int] | None) -> bytes | None:
    """Return a position as the engine says it, None if that cannot hold it."""
    if position is None:
        return b""
    if not all(MIN_LONG <= number <= MAX_LONG for number in position):
        return None
    return b"\1" + b"".join((number - MIN_LONG).to_bytes(8, "big") for number in position)
