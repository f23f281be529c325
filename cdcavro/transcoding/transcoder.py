"""The transcoder of any format into any other, with a report of what the target cannot hold.

Losses are measured, not listed by hand: the messages made for the target are converted back into the
source's format, and every difference from the originals is a loss (see `losses`).
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from functools import cache
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Final

from cdcavro.change.model import Change, replace
from cdcavro.change.modes import ADAPTIVE_TIME_MICROSECONDS, BYTES, PRECISE
from cdcavro.change.order import is_by_numbers
from cdcavro.change.rows import check_count
from cdcavro.errors import MessageError, StructureError, json_path
from cdcavro.exact.instants import check_zone, is_local
from cdcavro.exact.jsontext import check_collections, escape, parse, parse_fast, render, to_bytes
from cdcavro.exact.sqltype import parse_sql_type
from cdcavro.formats.connect_columns import PLACEHOLDER, check_word
from cdcavro.transcoding.joiner import JoinedChanges, StreamJoiner
from cdcavro.transcoding.losses import Loss, Route, find_losses
from cdcavro.transcoding.mapping import iterate_records, to_changes
from cdcavro.transcoding.schema_history import SchemaHistory
from cdcavro.wire.attributes import UNITS, field_rule, marked_paths, member_path
from cdcavro.wire.formats import REGISTRY, get_format

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from datetime import tzinfo

    from cdcavro.change.model import Change
    from cdcavro.transcoding.joiner import Message


_PLACES: Final = 1_000
# The messages made of each row are converted back and compared, which takes far more memory than the row itself.
MAX_ROWS: Final = 20_000
# Each object or array is parsed several times. 20,000 rows with both images have 40,000; column values add few.
MAX_COLLECTIONS: Final = 65_536


@dataclass(frozen=True, slots=True)
class Transcoded:
    """Messages in the target format, and the losses on the way there.

    Fields:

    * `texts` (list of bytes), UTF-8 JSON;
    * `losses` (list of `Loss`).

    """

    texts: list[bytes]
    losses: list[Loss]


def transcode(
    message: bytes | str,
    source: str,
    target: str,
    *,
    zone: tzinfo | None = None,
    unavailable: str | None = PLACEHOLDER,
) -> Transcoded:
    """Convert a message of one format into messages of another, and return them with the losses.

    `zone` is the time zone of the source, a `zoneinfo.ZoneInfo`; `unavailable` is as in `to_changes`.
    Raises `UnknownFormatError`, `TextError` and `StructureError`, the last also for the half of an update,
    unless the target has halves too (a `Transcoder` joins halves), and `TypeError` for a `zone` that is not
    a time zone.

    >>> transcode('{"meta":{"op":"del","size":3},"data":{"id":7}}', "oms_shareplex", "oms_canal").losses
    [Loss(path='$.meta.size', value='3', reason='oms_canal has no place for it', message=0)]
    """
    transcoder = Transcoder(source, target, zone=zone, unavailable=unavailable)
    results = [outcome.result() for outcome in (*transcoder.add(message), *transcoder.finish())]
    texts = [text for result in results for text in result.texts]
    return Transcoded(texts, [loss for result in results for loss in result.losses])


class Transcoder:
    """Converts a stream of messages into messages of another format, joining the halves of updates.

    Where an update is split into halves, for `datahub_tuple`, the id that they share is the position of
    the change, the number of its message in the stream, from 1, and its row (see `sequence_id`), so that
    no two updates share an id. Where the order of arrival is the true one, as in the Canal formats, a
    position that is smaller than an earlier one counts as the greatest before it that has as many numbers, so that
    ids sort as the messages came, except for messages that lack one of the numbers.

    The arguments are the names of the formats and the time zone of the source (`zoneinfo.ZoneInfo`). The
    columns of Debezium's tables are learned from its schema changes as they pass; `decimals`, `times` and
    `binaries` say how its connector sends values (see `SchemaHistory`), and `unavailable` is as in
    `to_changes`. Raises `UnknownFormatError`, `ValueError` for a mode that is not known and for an
    `unavailable` that cannot be such a word, and `TypeError` for a `zone` that is not a time zone.

    Attributes: `unzoned` (int), how many times came without a zone and stayed text on the way to another
    format; `unzoned_places` (Counter), their number in each column, for the first 1,000 columns.
    """

    def __init__(
        self,
        source: str,
        target: str,
        *,
        zone: tzinfo | None = None,
        decimals: str = PRECISE,
        times: str = ADAPTIVE_TIME_MICROSECONDS,
        binaries: str = BYTES,
        unavailable: str | None = PLACEHOLDER,
    ) -> None:
        source_rule, target_rule = get_format(source).rule, get_format(target).rule
        check_zone(zone)
        check_word(unavailable)
        self._route = Route(source, target, zone, unavailable)
        self._source, self._target, self._zone = source, target, zone
        self._catalog = SchemaHistory(decimals=decimals, times=times, binaries=binaries)
        # If the target has halves too, messages that are stated to be halves stay as they are.
        self._joiner = StreamJoiner(passes_stated=target_rule.has_halves)
        self._is_numbered = target_rule.id == "position" and not source_rule.has_halves
        # By the number of a position's parts: without its time, a position of Canal has one part less.
        self._greatest: dict[int, tuple[int, ...]] = {}
        self._count = 0
        self.unzoned = 0
        self.unzoned_places: Counter[str] = Counter()

    def add(self, message: bytes | str, number: int | None = None) -> list[Outcome]:
        """Return the outcomes that this message completes, refused halves included; a half may wait for the other.

        `joiner.StreamJoiner` describes how long. `number` identifies the message in losses and outcomes; by
        default messages are counted from 0. Raises `TextError` or `StructureError` for a message that is
        not one of the source's format.
        """
        number = self._count if number is None else number
        self._count += 1
        try:
            changes = self._read_changes(message)
        except MessageError as error:
            error.format = self._source
            raise
        if self._source == self._target:
            return [Outcome(((number, message),), Transcoded([render(parse_fast(message))], []))]
        self._count_unzoned(changes)
        if self._is_numbered:
            changes = [_with_number(self._raise_position(change), self._count) for change in changes]
        return list(map(self._outcome, self._joiner.add(changes, number, message)))

    def _raise_position(self, change: Change) -> Change:
        """Return a change with the greatest position so far if its own is smaller and does not state the order."""
        position = change.position
        if position is None or is_by_numbers(change):
            return change
        greatest = self._greatest[len(position)] = max(position, self._greatest.get(len(position), ()))
        return replace(change, position=greatest)

    def _read_changes(self, message: bytes | str) -> list[Change]:
        """Return the changes of a message with the columns known so far. Raises `StructureError` if it is too large."""
        check_collections(to_bytes(message), MAX_COLLECTIONS)
        read = to_changes(message, self._source, zone=self._zone, unavailable=self._route.unavailable)
        changes = list(map(self._catalog.add, read))
        if self._source != self._target:
            check_count(changes, MAX_ROWS)
        return changes

    def finish(self) -> list[Outcome]:
        """Return an outcome for each waiting half: what it is on its own, or its error."""
        return list(map(self._outcome, self._joiner.finish()))

    def _count_unzoned(self, changes: Sequence[Change]) -> None:
        for place in unzoned_places(changes):
            self.unzoned += 1
            if place in self.unzoned_places or len(self.unzoned_places) < _PLACES:
                self.unzoned_places[place] += 1

    def _outcome(self, joined: JoinedChanges) -> Outcome:
        if joined.error is not None:
            return Outcome(joined.messages, None, joined.error)
        try:
            return Outcome(joined.messages, self._convert(joined.messages, joined.changes))
        except MessageError as error:
            return Outcome(joined.messages, None, error)

    def _convert(self, messages: Sequence[tuple[int, bytes | str]], changes: Sequence[Change]) -> Transcoded:
        bare = [replace(change, members=None) for change in changes]
        texts = [render(record) for record in iterate_records(bare, self._target, self._zone)]
        return Transcoded(texts, list(find_losses(messages, changes, texts, self._route)))


@dataclass(frozen=True, slots=True)
class Outcome:
    """The outcome of a message, or of the two messages that are the halves of an update."""

    # The number and text of each message, that of the BEFORE half first.
    messages: tuple[Message, ...]
    # The result, None if the messages are refused.
    transcoded: Transcoded | None
    # The reason for a refusal.
    error: MessageError | None = None

    def result(self) -> Transcoded:
        """Return the result of the messages, or raise their error."""
        if self.transcoded is None:
            raise self.error or StructureError("a message", "none")
        return self.transcoded


def _with_number(change: Change, number: int) -> Change:
    """Return a change with the message's number in its position: a Canal batch has several messages of one position."""
    return change if not change.position else replace(change, position=(*change.position, number))


# Times that came without a zone and stayed text.

_TYPE: Final = "TIMESTAMP"


def count_unzoned(changes: Iterable[Change]) -> int:
    """Return how many times in changes mean an instant but are still local text.

    These are SharePlex's own times and the values of TIMESTAMP columns. They came without a zone, and
    either no zone was passed for the source or that local time occurs twice or never in it.

    >>> count_unzoned(to_changes('{"meta":{"op":"ins","time":"2020-11-25T00:01:02"},"data":{"id":1}}', "oms_shareplex"))
    1
    """
    return sum(1 for _ in unzoned_places(changes))


def unzoned_places(changes: Iterable[Change]) -> Iterator[str]:
    """Yield the place of each time that `count_unzoned` counts: `table.column`, or the path of a member."""
    for change in changes:
        yield from _unzoned_members(change)
        table = change.source.table or ""
        for column in change.columns or ():
            if column.type and parse_sql_type(column.type).name == _TYPE:
                images = (change.before, change.after)
                values = (_value_in(image, column.name) for image in images)
                yield from (f"{table}.{column.name}" for value in values if is_local(value))


def _unzoned_members(change: Change) -> Iterator[str]:
    members = change.members or {}
    for pointer, field in _local_times(change.source.format) if members else ():
        sent = members.get(pointer)
        # A time with a fraction is a member too, so that it comes back, although its instant is known.
        if sent and getattr(change, field) is None and is_local(parse(sent)):
            yield json_path(pointer)


def _value_in(image: dict[str, Any] | None, name: str | None) -> Any:
    return None if image is None or name is None else image.get(name)


@cache
def _local_times(format: str | None) -> tuple[tuple[str, str], ...]:
    """Return pointers to the members of a format that are local times, and the `Change` fields for their instants."""
    if format not in REGISTRY:
        return ()
    paths = [path for path, unit in marked_paths(REGISTRY[format].envelope, "unit") if UNITS[unit] == 0]
    pairs = [("".join(f"/{escape(name)}" for name in member_path(path)), field_rule(path[-1]).part) for path in paths]
    return tuple(sorted(pairs, key=itemgetter(1)))
