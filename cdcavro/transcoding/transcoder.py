"""Any format into any other, with a report of what the other cannot hold.

Losses are measured, not listed by hand: the messages made for the target are turned back into the
source's format, and every difference from what came in is a loss (see `losses`).
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from cdcavro.change.model import Change, replace
from cdcavro.errors import MessageError, StructureError
from cdcavro.exact.instants import check_zone
from cdcavro.exact.jsontext import parse, render
from cdcavro.transcoding.joiner import Joined, StreamJoiner
from cdcavro.transcoding.losses import Loss, Way, find_losses
from cdcavro.transcoding.mapping import records, to_changes
from cdcavro.transcoding.schema_history import PRECISE, SchemaHistory
from cdcavro.transcoding.unzoned import unzoned_places
from cdcavro.wire.formats import get_format

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import tzinfo

    from cdcavro.transcoding.joiner import Message

_PLACES: Final = 1_000


@dataclass(frozen=True, slots=True)
class Transcoded:
    """Messages in the target format (UTF-8 JSON texts), and what they do not hold."""

    texts: list[bytes]
    losses: list[Loss]


def transcode(message: bytes | str, source: str, target: str, *, zone: tzinfo | None = None) -> Transcoded:
    """Turn a message of one format into messages of another.

    `zone` is that of the source, a `zoneinfo.ZoneInfo`. Raises `UnknownFormatError`, `TextError`,
    `StructureError`; the latter also for the half of an update, unless the target has halves too: a
    `Transcoder` joins them; `TypeError` for a `zone` that is none.

    >>> transcode('{"meta":{"op":"del","size":3},"data":{"id":7}}', "oms_shareplex", "oms_canal").losses
    [Loss(path='$.meta.size', value='3', reason='oms_canal has no place for it', message=0)]
    """
    transcoder = Transcoder(source, target, zone=zone)
    made = [outcome.result() for outcome in (*transcoder.add(message), *transcoder.finish())]
    return Transcoded([text for one in made for text in one.texts], [loss for one in made for loss in one.losses])


class Transcoder:
    """Turns a stream of messages into those of another format, the halves of updates joined.

    Where the halves of an update are made, for `datahub_tuple`, the id that they share is the position
    of the change, the number of its message in the stream, from 1, and its row (see `sequence_ids`):
    no two updates share one.

    Made from the names of the formats and the zone of the source; the columns of Debezium's tables are
    learned from its schema changes as they pass, and `decimals` is how its connector sends decimals,
    "precise" or "string" (see `SchemaHistory`). Raises `UnknownFormatError`, `ValueError` for other `decimals`,
    `TypeError` for a `zone` that is none.
    Attributes: `unzoned` (int), times that came without a zone and stayed text on the way to another
    format; `unzoned_places` (Counter), how many of them in which column, the first 1,000 by name.
    """

    def __init__(self, source: str, target: str, *, zone: tzinfo | None = None, decimals: str = PRECISE) -> None:
        halved, into = get_format(source).rule.has_halves, get_format(target).rule
        check_zone(zone)
        self._source, self._target, self._zone = source, target, zone
        self._catalog = SchemaHistory(decimals=decimals)
        # Where the target has halves too, those that are known to be some stay as they are.
        self._joiner = StreamJoiner(passes_stated=into.has_halves)
        self._is_numbered = into.id == "position" and not halved
        self._count = 0
        self.unzoned = 0
        self.unzoned_places: Counter[str] = Counter()

    def add(self, message: bytes | str, number: int | None = None) -> list[Outcome]:
        """Return what is complete with this message, and the halves that are refused; a half may wait for the other.

        See `joining.StreamJoiner` for how long. `number` is what losses and outcomes call the message; by
        default messages are counted from 0. Raises `TextError`, `StructureError` for a message that is
        none of the source's format.
        """
        number = self._count if number is None else number
        self._count += 1
        changes = list(map(self._catalog.add, to_changes(message, self._source, zone=self._zone)))
        if self._source == self._target:
            return [Outcome(((number, message),), Transcoded([render(parse(message))], []))]
        self._count_unzoned(changes)
        if self._is_numbered:
            changes = [_numbered(change, self._count) for change in changes]
        return list(map(self._outcome, self._joiner.add(changes, number, message)))

    def finish(self) -> list[Outcome]:
        """Return an outcome for each half that waits: what it is alone, or its error."""
        return list(map(self._outcome, self._joiner.finish()))

    def _count_unzoned(self, changes: Sequence[Change]) -> None:
        for place in unzoned_places(changes):
            self.unzoned += 1
            if place in self.unzoned_places or len(self.unzoned_places) < _PLACES:
                self.unzoned_places[place] += 1

    def _outcome(self, joined: Joined) -> Outcome:
        if joined.error is not None:
            return Outcome(joined.messages, None, joined.error)
        try:
            return Outcome(joined.messages, self._made(joined.messages, joined.changes))
        except MessageError as error:
            return Outcome(joined.messages, None, error)

    def _made(self, messages: Sequence[tuple[int, bytes | str]], changes: Sequence[Change]) -> Transcoded:
        made = records([replace(change, members=None) for change in changes], self._target, self._zone)
        texts = [render(record) for record in made]
        way = Way(self._source, self._target, self._zone)
        return Transcoded(texts, list(find_losses(messages, changes, texts, way)))


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of a message, or of the two that are the halves of an update.

    Attributes: `messages`, number and text of each, that of the BEFORE half first; `made`, what they
    gave, None if they are refused; `error`, why they are.
    """

    messages: tuple[Message, ...]
    made: Transcoded | None
    error: MessageError | None = None

    def result(self) -> Transcoded:
        """Return what the messages gave. Raises their error."""
        if self.made is None:
            raise self.error or StructureError("a message", "none")
        return self.made


def _numbered(change: Change, number: int) -> Change:
    """Put the place of arrival into the position: a batch of Canal is several messages of one position."""
    return change if change.position is None else replace(change, position=(*change.position, number))
