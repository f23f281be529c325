"""Survey of what messages state about tables, without making changes of most: one stands for all that are like it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from cdcavro.arrow.arrays import slices_of
from cdcavro.change.model import DML, Change, replace
from cdcavro.change.order_value import common_order
from cdcavro.engine.machine import SurveyEngine
from cdcavro.engine.row_program import RowProgram
from cdcavro.errors import MessageError
from cdcavro.exact.numbers import MAX_LONG, MIN_LONG
from cdcavro.lake.learning import outline_of
from cdcavro.lake.placing import Places
from cdcavro.spark.changes import KEY, KEY_TYPE, key_fields
from cdcavro.table.table_names import has_row_of_table
from cdcavro.table.writing.message_typer import merge_places, pieces_of
from cdcavro.table.writing.table_writer import NOWHERE, OPERATIONS
from cdcavro.transcoding.mapping import placeholders, to_changes
from cdcavro.wire.formats import change_format, get_format
from cdcavro.wire.message_program import row_parts

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from datetime import tzinfo

    from cdcavro.change.model import Arrival
    from cdcavro.table.table_names import GivenTable
    from cdcavro.wire.format import Format

    Outline = dict[str, Any]

OUTLINE: Final = f"digest binary, at struct<{KEY}>, outline binary"
OUTLINE_TYPE: Final = pa.struct([("digest", pa.binary()), ("at", KEY_TYPE), ("outline", pa.binary())])


class Survey:
    """Makes the outlines of messages of one kind that are needed: those of the first message of each pattern.

    Messages of one pattern whose rows have columns of the same names state the same about their table. The engine finds
    by their numbers and places which of them comes first in the order of changes; that one goes the exact way, and so
    does whatever the engine leaves. `given` is as in `Tables`.
    """

    def __init__(self, format: Format, engine: SurveyEngine | None, given: GivenTable) -> None:
        self._engine, self._given = engine, given
        self._parts = row_parts(format.envelope)

    def outlines(self, batch: pa.RecordBatch) -> Iterator[Outline]:
        """Yield the outlines that are needed of a batch of messages; its second column, if any, has their places."""
        messages, places, i = slices_of(batch.column(0)), Places(batch), 0
        encoded_places = places.encode()
        while i < messages.count:
            if self._engine is not None:
                i = self._engine.take_alike(messages, encoded_places, i)
            message = messages.get(i) if i < messages.count else None
            if message is not None:
                yield from self._learn_outlines(message, places.get(i))
            i += 1
        for alike, first in () if self._engine is None else self._engine.firsts():
            changes = self._named_changes(messages.get(first) or b"", places.get(first))
            if _are_rows(changes):
                yield from _outlines_of(changes)
                continue
            # It is no row after all, so others may be none, too.
            for i in () if self._engine is None else self._engine.mixed(alike):
                yield from _outlines_of(self._named_changes(messages.get(i) or b"", places.get(i)))

    def _learn_outlines(self, message: bytes, place: Arrival | None) -> list[Outline]:
        """Return the outlines of a message, and learn its pattern."""
        changes = self._changes(message)
        named = self._name_changes(changes, place)
        if self._engine is not None and _are_rows(named):
            self._learn(self._engine, message, changes[0])
        return _outlines_of(named)

    def _learn(self, engine: SurveyEngine, message: bytes, change: Change) -> None:
        """Learn the pattern of a message, if the engine finds the numbers that its change has."""
        fixed = engine.pattern(message)
        if fixed is None or engine.has(fixed) or not self._is_clear(message, change):
            return
        program = RowProgram(position=self._parts.position(change.source.db_type, message), place=NOWHERE)
        program.phase, program.order, program.is_batched = common_order(change)
        program.operation = ord(OPERATIONS[change.op])
        found = engine.survey(message, {fixed: program.position})
        if found is not None and found[1] is not None and found[1] == _comparable(change.position):
            engine.add(fixed, program)

    def _named_changes(self, message: bytes, place: Arrival | None) -> list[Change]:
        return self._name_changes(self._changes(message), place)

    def _name_changes(self, changes: Sequence[Change], place: Arrival | None) -> list[Change]:
        return [
            self._given.with_given_table(replace(change, place=merge_places(change.place, place))) for change in changes
        ]

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
        """Return the changes of a message; none if it is no message, which is refused when it is typed."""
        try:
            return to_changes(message, self._format.name, zone=self._zone, members=False, unavailable=self._unavailable)
        except MessageError:
            return []

    def _is_clear(self, message: bytes, change: Change) -> bool:
        """Return whether a change was made of just the parts, and the message does not say itself where it arrived."""
        format = self._format
        return change.place is None and self._parts.are_complete(format.encode(message), format.read, change.key)


class ChangeSurvey(Survey):
    """The survey of payloads of changes. Raises `PayloadError` for one that cannot be read."""

    def __init__(self, given: GivenTable) -> None:
        format = change_format()
        super().__init__(format, SurveyEngine(format.program, (), b"", False, True), given)  # noqa: FBT003

    def _changes(self, message: bytes) -> list[Change]:
        return [Change.from_avro(message)]

    def _is_clear(self, message: bytes, change: Change) -> bool:  # noqa: ARG002  as the engine sees
        return True


def outline_batches(survey: Survey, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield the outlines that are needed of batches, in batches of `OUTLINE_TYPE`."""
    for batch in batches:
        yield pa.RecordBatch.from_struct_array(pa.array(list(survey.outlines(batch)), OUTLINE_TYPE))


def _are_rows(changes: Sequence[Change]) -> bool:
    return bool(changes) and all(change.op in DML and has_row_of_table(change) for change in changes)


def _outlines_of(changes: Sequence[Change]) -> list[Outline]:
    return [outline for outline in map(survey_outline, changes) if outline is not None]


def _comparable(position: Sequence[int] | None) -> bytes | None:
    """Return a position as the engine writes it; None if the engine cannot hold it."""
    if position is None:
        return b""
    if not all(MIN_LONG <= number <= MAX_LONG for number in position):
        return None
    return b"\1" + b"".join((number - MIN_LONG).to_bytes(8, "big") for number in position)


def survey_outline(change: Change) -> dict[str, Any] | None:
    """Return what a change states about its table, if it does: its digest, its order key, and the outline."""
    found = outline_of(change)
    return found and {"digest": found[0], "at": key_fields(change), "outline": found[1].to_avro()}
