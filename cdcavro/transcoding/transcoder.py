"""The transcoder of any format into any other, with a report of what the target cannot hold.

Losses are measured, not listed by hand: the messages made for the target are converted back into the
source's format, and every difference from the originals is a loss (see `_find_losses`).
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from functools import cache
from operator import is_, itemgetter
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct

from cdcavro.change.model import Change, check_count, replace, without_members
from cdcavro.change.operations import ADAPTIVE_TIME_MICROSECONDS, BYTES, PRECISE
from cdcavro.change.order import HalfJoiner, is_by_numbers
from cdcavro.engine.machine import differences
from cdcavro.errors import MessageError, StructureError, json_path
from cdcavro.exact.caching import IdentityCache
from cdcavro.exact.instants import check_zone, is_local
from cdcavro.exact.jsontext import ABSENT, check_collections, escape, parse, parse_fast, render, to_bytes
from cdcavro.exact.sqltype import parse_sql_type
from cdcavro.formats import BRIDGES
from cdcavro.formats.bridge import no_shape, unchanged_change
from cdcavro.formats.connect_columns import PLACEHOLDER, check_word
from cdcavro.formats.connect_messages import OF_CONNECT
from cdcavro.transcoding.joiner import JoinedChanges, Message, StreamJoiner
from cdcavro.transcoding.mapping import SchemaHistory, all_with_members, parse_message, records
from cdcavro.wire.attributes import UNITS, field_rule, marked_paths, member_path
from cdcavro.wire.formats import REGISTRY, get_format
from cdcavro.wire.kafka import VALUE

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from datetime import tzinfo

    from cdcavro.change.model import Column
    from cdcavro.transcoding.mapping import ParsedMessage

MOST_PLACES: Final = 1_000
# The messages made of each row are converted back and compared, which takes far more memory than the row itself.
MAX_ROWS: Final = 20_000
# Each object or array is parsed several times. 20,000 rows with both images have 40,000; column values add few.
MAX_COLLECTIONS: Final = 65_536
# How many messages, of how many bytes in all, go through each step together.
_TOGETHER: Final = 16
_TOGETHER_SIZE: Final = 64 << 10


class Transcoded(Struct, frozen=True):
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
        target_rule = get_format(target).rule
        check_zone(zone)
        check_word(unavailable)
        self._format = get_format(source)
        self._route = Route(source, target, zone, unavailable)
        self._source, self._target, self._zone = source, target, zone
        self._has_codec = self._format.codec is not None
        # Of what a change does not hold, only the local times as they were sent are needed.
        self._needs_members = bool(_local_times(source)) and source not in OF_CONNECT
        self._catalog = SchemaHistory(decimals=decimals, times=times, binaries=binaries)
        # If the target has halves too, messages that are stated to be halves stay as they are.
        self._joiner = StreamJoiner(passes_stated=target_rule.has_halves)
        self._is_numbered = _is_numbered(source, target)
        # By the number of a position's parts: without its time, a position of Canal has one part less.
        self._greatest: dict[int, tuple[int, ...]] = {}
        self._count = 0
        # By their ids: the messages that go through the steps now, and their records.
        self._records: dict[int, tuple[bytes | str, Any]] = {}
        self.unzoned = 0
        self.unzoned_places: Counter[str] = Counter()

    def add(self, message: bytes | str, number: int | None = None) -> list[Outcome]:
        """Return the outcomes that this message completes, refused halves included; a half may wait for the other.

        `joiner.StreamJoiner` describes how long. `number` identifies the message in losses and outcomes; by
        default messages are counted from 0. Raises `TextError` or `StructureError` for a message that is
        not one of the source's format.
        """
        (result,) = self._add_some([(self._count if number is None else number, message)])
        if isinstance(result, MessageError):
            raise result
        return result

    def add_each(self, messages: Iterable[Message]) -> Iterator[list[Outcome] | MessageError]:
        """Yield what `add` returns for each message with its number, or the error that it raises.

        Some short messages go through each step together, which takes less time: what a step uses is then at hand. So up
        to 16 messages are taken before the first result; if taking one raises, the results of those before it come first.
        """
        some: list[Message] = []
        size = 0
        try:
            for number, message in messages:
                size += len(message)
                if some and (len(some) == _TOGETHER or size > _TOGETHER_SIZE):
                    whole, some, size = some, [], len(message)
                    yield from self._add_some(whole)
                some.append((number, message))
        except Exception:
            yield from self._add_some(some)
            raise
        yield from self._add_some(some)

    def _add_some(self, messages: Sequence[Message]) -> list[list[Outcome] | MessageError]:
        joined = [self._join(number, message) for number, message in messages]
        outcomes = iter(self._outcomes([part for one in joined if isinstance(one, list) for part in one]))
        self._records.clear()
        return [[next(outcomes) for _ in one] if isinstance(one, list) else one for one in joined]

    def _join(self, number: int, message: bytes | str) -> list[JoinedChanges] | MessageError:
        """Return what a message completes, or its error."""
        self._count += 1
        route = self._route
        try:
            message = self._format.text_of(message) if self._has_codec else message
            check_collections(to_bytes(message), MAX_COLLECTIONS)
            parsed = parse_message(message, route.source, zone=route.zone, unavailable=route.unavailable)
            changes = self._with_columns(parsed)
        except MessageError as error:
            error.format = self._source
            return error
        if self._source == self._target:
            return [JoinedChanges(((number, message),), ())]
        self._count_unzoned(changes)
        if self._is_numbered:
            changes = [_with_number(self._raise_position(change), self._count) for change in changes]
        self._records[id(message)] = message, parsed.record
        return self._joiner.add(changes, number, message)

    def _raise_position(self, change: Change) -> Change:
        """Return a change with the greatest position so far if its own is smaller and does not state the order."""
        position = change.position
        if position is None or is_by_numbers(change):
            return change
        greatest = self._greatest[len(position)] = max(position, self._greatest.get(len(position), ()))
        return replace(change, position=greatest)

    def _with_columns(self, parsed: ParsedMessage) -> list[Change]:
        """Return the changes of a message with the columns known so far. Raises `StructureError` if it is too large."""
        route = self._route
        if route.source in OF_CONNECT:
            changes = self._catalog.read_parsed(parsed, route.zone, members=False)
        else:
            changes = all_with_members(parsed, route.zone) if self._needs_members else parsed.changes
        if self._source != self._target:
            check_count(changes, MAX_ROWS)
        return changes

    def finish(self) -> list[Outcome]:
        """Return an outcome for each waiting half: what it is on its own, or its error."""
        return self._outcomes(self._joiner.finish())

    def _count_unzoned(self, changes: Sequence[Change]) -> None:
        # Most tables have no columns of instants.
        for place in unzoned_places([one for one in changes if one.members or _INSTANTS.of(one.columns)]):
            self.unzoned += 1
            if place in self.unzoned_places or len(self.unzoned_places) < MOST_PLACES:
                self.unzoned_places[place] += 1

    def _outcomes(self, each: Sequence[JoinedChanges]) -> list[Outcome]:
        """Return the outcomes of changes, each step of which is done for some of them before the next."""
        outcomes: list[Outcome | None] = [None] * len(each)
        # Of many halves that waited, too, only some are at hand.
        for start in range(0, len(each), _TOGETHER):
            running = [(i, self._steps(each[i])) for i in range(start, min(start + _TOGETHER, len(each)))]
            while running:
                for i, steps in running:
                    outcomes[i] = next(steps)
                running = [(i, steps) for i, steps in running if outcomes[i] is None]
        return [outcome for outcome in outcomes if outcome is not None]

    def _steps(self, joined: JoinedChanges) -> Iterator[Outcome | None]:
        """Yield None between the steps of a conversion, and at last its outcome."""
        messages, changes = joined.messages, joined.changes
        if joined.error is not None:
            yield Outcome(messages, None, joined.error)
            return
        try:
            if self._source == self._target:
                texts, losses = [render(parse_fast(message)) for _, message in messages], []
            else:
                bare = [change if change.members is None else without_members(change) for change in changes]
                texts = [render(record) for record in records(bare, self._target, self._zone)]
                yield None
                read = _read_back(texts, self._route)
                yield None
                natural = records(read, self._source, self._zone)
                yield None
                originals = [self._original(message) for _, message in messages]
                losses = _find_losses(messages, originals, changes, texts, read, natural, self._route)
        except MessageError as error:
            yield Outcome(messages, None, error)
        else:
            yield Outcome(messages, Transcoded(texts, losses))

    def _original(self, message: bytes | str) -> Any:
        """Return the record of a message; that of the first of two halves is parsed again, since so many wait."""
        read = self._records.get(id(message))
        return self._format.parse(message) if read is None else read[1]


def needs_order(source: str, target: str) -> bool:
    """Return whether what comes of a message may depend on those before it. Raises `UnknownFormatError`.

    >>> needs_order("canal", "debezium"), needs_order("debezium", "canal")
    (False, True)
    """
    return get_format(source).rule.has_halves or source in OF_CONNECT or _is_numbered(source, target)


def _is_numbered(source: str, target: str) -> bool:
    """Return whether positions get the numbers of messages."""
    return get_format(target).rule.id == "position" and not get_format(source).rule.has_halves


class Outcome(Struct, frozen=True):
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

    >>> from cdcavro.transcoding.mapping import to_changes
    >>> count_unzoned(to_changes('{"meta":{"op":"ins","time":"2020-11-25T00:01:02"},"data":{"id":1}}', "oms_shareplex"))
    1
    """
    return sum(1 for _ in unzoned_places(changes))


def unzoned_places(changes: Iterable[Change]) -> Iterator[str]:
    """Yield the place of each time that `count_unzoned` counts: `table.column`, or the path of a member."""
    for change in changes:
        if change.members:
            yield from _unzoned_members(change)
        table = change.source.table or ""
        for name in _INSTANTS.of(change.columns):
            for image in (change.before, change.after):
                if image is not None and name in image and is_local(image[name]):
                    yield f"{table}.{name}"


def _unzoned_members(change: Change) -> Iterator[str]:
    members = change.members or {}
    for pointer, field in _local_times(change.source.format):
        sent = members.get(pointer)
        # A time with a fraction is a member too, so that it comes back, although its instant is known.
        if sent and getattr(change, field) is None and is_local(parse(sent)):
            yield json_path(pointer)


def _instants(columns: tuple[Column, ...] | None, _: object) -> list[str | None]:
    """Return the names of the columns whose values are instants."""
    types = [(column.name, column.type) for column in columns or ()]
    return [name for name, declared in types if declared and parse_sql_type(declared).name == _TYPE]


_INSTANTS: Final = IdentityCache(_instants)


@cache
def _local_times(format: str | None) -> tuple[tuple[str, str], ...]:
    """Return pointers to the members of a format that are local times, and the `Change` fields for their instants."""
    if format not in REGISTRY:
        return ()
    paths = [path for path, unit in marked_paths(REGISTRY[format].envelope, "unit") if UNITS[unit] == 0]
    pairs = [("".join(f"/{escape(name)}" for name in member_path(path)), field_rule(path[-1]).part) for path in paths]
    return tuple(sorted(pairs, key=itemgetter(1)))


SAME_VALUE: Final = "the same value in another form"
_HALVES: Final = 2


class Loss(Struct, frozen=True):
    """Something that a target format does not preserve.

    Fields:

    * `path` (str), the JSON path in the message;
    * `value` (str), the JSON text there, empty for a member that was absent and if all values come back, but in
      another form of message;
    * `reason` (str);
    * `message` (int), the number of the message in its stream, from 0.

    """

    path: str
    value: str
    reason: str
    message: int = 0

    @property
    def is_of_a_value(self) -> bool:
        """Whether a value is lost, and not only its form or the absence of a member."""
        return self.value != "" and not self.reason.endswith(SAME_VALUE)


@dataclass(frozen=True, slots=True)
class Route:
    """A route from a source format to a target format."""

    source: str
    target: str
    # The time zone of the source.
    zone: tzinfo | None
    # The word of which the placeholders of unavailable values are made.
    unavailable: str | None = PLACEHOLDER


def _find_losses(
    messages: Sequence[Message],
    originals: Sequence[Any],
    changes: Sequence[Change],
    texts: Sequence[bytes],
    read: Sequence[Change],
    natural: Sequence[Any],
    route: Route,
) -> list[Loss]:
    """Return what a message, or the two halves of an update, lost when the target's texts were made.

    `originals` are the records of the messages, and `changes` their changes, with halves joined; `read` is what the
    texts are read as, and `natural` what that is in the source's format. Messages are
    compared in the shape of the originals: rows of one message as rows of one, each half with its own half,
    Debezium's lines as records or values. If they come back in another shape, that is one more loss, without a value; if the
    source's format has no message for what the target's texts say, each whole message is one more.
    """
    back = sent = _in_form_of(originals, read, natural, route)
    as_sent = _restore_values(read, changes, originals, route.source)
    if as_sent is not read:
        sent = _in_form_of(originals, as_sent, records(as_sent, route.source, route.zone), route)
    losses: list[Loss] = []
    for i, (number, _) in enumerate(messages):
        if i >= len(back) or back[i] is None:
            lack = f"{route.target} {_describe_lack(changes, route.target)}"
            losses.append(Loss("$", render(originals[i]).decode(), lack, number))
        else:
            losses += _compare(originals[i], back[i], sent[i], route.target, number)
    if back and not natural:
        reason = f"does not come back from {route.target}: {route.source} {_describe_lack(read, route.source)}"
        for (number, _), original in zip(messages, originals, strict=True):
            losses.append(Loss("$", render(original).decode(), reason, number))
    form = _describe_form(originals, read, natural, texts, route)
    if form is not None and back:
        losses.append(Loss("$", "", form, messages[-1][0]))
    return losses


def _in_form_of(
    originals: Sequence[Any], read: Sequence[Change], natural: Sequence[Any], route: Route
) -> Sequence[Any]:
    """Return the messages of changes that were read back, in the form of the original messages; None for none."""
    if len(natural) == len(originals):
        back = natural
    elif len(read) == 1 and len(originals) == _HALVES:
        # A target without the row before an update has nothing to make the first half of.
        halves = [records([half], route.source, route.zone) for half in _halves(read[0])]
        back = [half[0] if half else None for half in halves]
    elif len(read) == 1:
        back = records([BRIDGES[route.source].as_one_message(read[0])], route.source, route.zone)
    else:
        back = records(_rows(read), route.source, route.zone)
    return [_reshape(record, original, route.source) for record, original in zip(back, originals, strict=False)]


def _reshape(record: Any, original: Any, format: str) -> Any:
    """Return a message that was read back in the shape of the original, in a Kafka record if that was in one."""
    if record is None:
        return None
    message = _message_in(original, format)
    shaped = BRIDGES[format].reshape(record, message)
    return shaped if message is original else {VALUE: shaped}


def _message_in(original: Any, format: str) -> Any:
    """Return the message in a record, which is the record itself if it has no value."""
    return get_format(format).message_in(original) if VALUE in original else original


def _rows(read: Sequence[Change]) -> list[Change]:
    """Return changes as rows of one message; facts about the message are those of the first change."""
    images = ((change.before, change.after, change.changed) for change in read)
    return [
        replace(read[0], before=before, after=after, changed=changed, row=row, rows=len(read))
        for row, (before, after, changed) in enumerate(images)
    ]


def _halves(change: Change) -> list[Change]:
    bare = replace(change, operation=None)
    return [replace(bare, half="BEFORE", after=None), replace(bare, half="AFTER", before=None)]


def _read_back(texts: Sequence[bytes], route: Route) -> list[Change]:
    read: list[Change] = []
    halves = HalfJoiner()
    for text in texts:
        for change in parse_message(text, route.target, zone=route.zone, unavailable=route.unavailable).changes:
            bare = change if change.members is None else without_members(change)
            # A half without a number came from a half alone: there is nothing to join it with.
            if bare.half is None or bare.position is None:
                read.append(bare)
            else:
                read += halves.add(bare)
    return read + halves.pending()


def _restore_values(
    read: Sequence[Change], changes: Sequence[Change], originals: Sequence[Any], source: str
) -> Sequence[Change]:
    """Return changes with values spelled as in the originals, since another spelling is not another value."""
    restore_values = BRIDGES[source].restore_values
    if len(read) != len(changes) or restore_values is unchanged_change:
        return read
    message = _message_in(originals[-1], source)
    as_sent = [restore_values(change, original, message) for change, original in zip(read, changes, strict=True)]
    return read if all(map(is_, as_sent, read)) else as_sent


def _compare(original: Any, back: Any, sent: Any, target: str, number: int) -> list[Loss]:
    found = differences(original, back)
    if not found:
        return []
    different = None if sent is back else {pointer for pointer, _, _ in differences(original, sent)}
    has_no_place, is_new, is_another, is_same = _reasons(target)
    losses = []
    for pointer, value, value_back in found:
        if different is not None and pointer not in different:
            reason = is_same
        elif value_back is ABSENT:
            reason = has_no_place
        else:
            reason = is_new if value is ABSENT else is_another
        losses.append(Loss(_PATHS.get(pointer) or _path(pointer), _text(value), reason, number))
    return losses


def _text(value: Any) -> str:
    if type(value) is str and value.isprintable() and '"' not in value and "\\" not in value:
        return f'"{value}"'
    return str(value) if type(value) is int else "" if value is ABSENT else render(value).decode()


def _path(pointer: str) -> str:
    """Return the JSON path of a pointer, which is remembered with the last few: most messages lose the same members."""
    path = json_path(pointer)
    if len(_PATHS) >= MOST_PLACES:
        _PATHS.clear()
    if len(pointer) <= _LONGEST:
        _PATHS[pointer] = path
    return path


_LONGEST: Final = 1_000
_PATHS: Final[dict[str, str]] = {}


def _describe_form(
    originals: Sequence[Any], read: Sequence[Change], natural: Sequence[Any], texts: Sequence[bytes], route: Route
) -> str | None:
    """Return in words the form in which messages naturally come back; None if it is that of the originals."""
    returned = f"come back from {route.target}"
    if len(originals) == _HALVES != len(natural):
        return f"both halves {returned} as one message" if natural else None
    if len(natural) > len(originals):
        rows = f"its {len(read)} rows" if len(read) > 1 else "both images in one message"
        return f"{rows} {returned} as {len(texts)} messages"
    if natural and _message_in(originals[0], route.source) is not originals[0]:
        return f"comes back from {route.target} without its Kafka record"
    shape_of = BRIDGES[route.source].shape_of
    if natural and shape_of is not no_shape:
        shape, original = shape_of(natural[0]), shape_of(originals[0])
        if shape != original and str(shape) != str(original):
            return f"comes back from {route.target} as {shape}"
    return None


def _describe_lack(changes: Sequence[Change], target: str) -> str:
    """Return in words why a target has no message for changes."""
    lacks = map(BRIDGES[target].missing_part, changes)
    return next((f"needs {lack} for it" for lack in lacks if lack is not None), "has no message for it")


@cache
def _reasons(target: str) -> tuple[str, str, str, str]:
    """Return in words why a value is lost: it is absent when it comes back, or was absent; it is another, or the same."""
    return (
        f"{target} has no place for it",
        f"absent here, but present when it comes back from {target}",
        f"comes back from {target} as another value",
        f"comes back from {target} as {SAME_VALUE}",
    )
