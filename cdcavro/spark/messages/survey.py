"""What messages state about tables, without making changes of all of them: one stands for all that are like it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

from cdcavro.change.model import DML, Arrival, Change, replace
from cdcavro.change.order import file_order, is_by_numbers
from cdcavro.errors import MessageError
from cdcavro.exact.numbers import MAX_LONG, MIN_LONG
from cdcavro.spark.tables import outline_of
from cdcavro.table.messages import merged, row_engine
from cdcavro.table.names import has_row_of_table
from cdcavro.transcoding.mapping import to_changes
from cdcavro.wire.formats import get_format
from cdcavro.wire.program import row_parts

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from datetime import tzinfo

    from cdcavro.engine.machine import RowEngine
    from cdcavro.table.names import GivenTable

    Outline = dict[str, Any]
    # Messages that state the same about tables, and the order of one among them.
    Alike = tuple[Any, ...]
    Order = tuple[Any, ...]

_MOST_PATTERNS: Final = 4096
_MOST_BYTES: Final = 1 << 26  # of patterns
_MOST_ALIKE: Final = 100_000
_NOWHERE: Final = Arrival()


class _Kind(NamedTuple):
    is_snapshot: bool
    is_by_numbers: bool


class Survey:
    """Takes the outlines of messages of one format, of which not all are needed: those of the first of each kind.

    Messages of one pattern whose rows have columns of the same names state the same about their table. Which comes first
    in the order of changes, the engine tells by their numbers and places; that one goes the exact way. So does
    whatever the engine leaves. `zone` and `unavailable` are as in `to_changes`, `given` as in `Tables`.
    """

    def __init__(self, format: str, zone: tzinfo | None, unavailable: str | None, given: GivenTable) -> None:
        self._format, self._zone, self._unavailable, self._given = format, zone, unavailable, given
        self._engine = row_engine(format, zone, unavailable)
        self._parts = row_parts(get_format(format).envelope)
        self._rules: dict[bytes, int] = {}
        self._kinds: dict[bytes, _Kind] = {}
        self._room = _MOST_BYTES
        self._first: dict[Alike, Order] = {}

    def outlines(self, messages: Sequence[bytes | None], places: Sequence[Arrival | None]) -> Iterator[Outline]:
        """Yield the outlines that are needed of messages, each with where it arrived."""
        groups: dict[Alike, list[tuple[Order, int]]] = {}
        for i, (message, place) in enumerate(zip(messages, places, strict=True)):
            if message is None:
                continue
            known = self._alike(message, place or _NOWHERE)
            if known is None:
                yield from self._learned(message, place)
            else:
                groups.setdefault(known[0], []).append((known[1], i))
        for alike, members in groups.items():
            order, first = min(members)
            if alike in self._first and self._first[alike] <= order:
                continue
            made = self._representing(messages[first] or b"", places[first])
            if made is None:
                # It is none of its kind: so may others be.
                made = [one for _, i in members for one in self._exact(messages[i] or b"", places[i])]
            elif len(self._first) < _MOST_ALIKE:
                self._first[alike] = order
            yield from made

    def _alike(self, message: bytes, place: Arrival) -> tuple[Alike, Order] | None:
        """Return what a message has in common with others that state the same, and its order among them, if known."""
        found = None if self._engine is None else self._engine.survey(message, self._rules)
        if found is None or found[1] is None:
            return None
        fixed, numbers, names = found
        is_offset = place.offset is not None and (place.topic is None or place.partition is not None)
        is_line = place.file is not None and place.line is not None
        if not (numbers or is_offset or is_line):
            return None
        at: tuple[Any, ...] = "", 0, 0, "", 0
        if is_line and not is_offset:
            at = "", 0, 0, file_order(place.file or ""), place.line
        elif place.offset is not None:
            at = place.topic or "", place.partition or 0, place.offset, "", 0
        kind = self._kinds[fixed]
        if kind.is_snapshot:
            order: Order = b"", at, b""
        elif (is_offset or is_line) and not kind.is_by_numbers:
            order = b"", at, numbers
        else:
            order = numbers, at, b""
        return (fixed, names, place.topic, at[0], at[1], at[3]), order

    def _learned(self, message: bytes, place: Arrival | None) -> list[Outline]:
        """Return the outlines of a message, and learn its pattern."""
        changes = self._changes(message)
        placed = self._placed(changes, place)
        if self._engine is not None and _are_rows(placed):
            self._learn(self._engine, message, changes[0])
        return _outlined(placed)

    def _learn(self, engine: RowEngine, message: bytes, change: Change) -> None:
        """Learn the pattern of a message, unless it says itself where it arrived, which is in all such patterns."""
        fixed = engine.pattern(message)
        if fixed is None or fixed in self._rules or change.place is not None:
            return
        own = get_format(self._format)
        is_clear = self._parts.are_clear(own.encode(message), own.read, change.key)
        if not is_clear or len(self._rules) >= _MOST_PATTERNS or len(fixed) > self._room:
            return
        rule = self._parts.position(change.source.db_type)
        found = engine.survey(message, {fixed: rule})
        if found is not None and found[1] is not None and found[1] == _comparable(change.position):
            self._rules[fixed] = rule
            self._kinds[fixed] = _Kind(change.op == "SNAPSHOT", is_by_numbers(change))
            self._room -= len(fixed)

    def _representing(self, message: bytes, place: Arrival | None) -> list[Outline] | None:
        """Return the outlines of a message, None if it is not one of rows as others of its pattern are."""
        placed = self._placed(self._changes(message), place)
        return _outlined(placed) if _are_rows(placed) else None

    def _exact(self, message: bytes, place: Arrival | None) -> list[Outline]:
        return _outlined(self._placed(self._changes(message), place))

    def _changes(self, message: bytes) -> list[Change]:
        """Return the changes of a message, none if it is no message, which its typing will say."""
        try:
            return to_changes(message, self._format, zone=self._zone, members=False, unavailable=self._unavailable)
        except MessageError:
            return []

    def _placed(self, changes: Sequence[Change], place: Arrival | None) -> list[Change]:
        return [self._given.named(replace(change, place=merged(change.place, place))) for change in changes]


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
