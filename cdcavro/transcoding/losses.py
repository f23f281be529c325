"""Losses: what a target format does not preserve. Its messages are converted back and compared with the originals."""

from __future__ import annotations

from dataclasses import dataclass
from operator import is_
from typing import TYPE_CHECKING, Any, Final

from cdcavro.change.halves import HalfJoiner
from cdcavro.change.model import Change, replace
from cdcavro.errors import json_path
from cdcavro.exact.jsontext import parse_fast, render
from cdcavro.exact.jsonvalues import ABSENT, differences
from cdcavro.formats import BRIDGES
from cdcavro.formats.connect_columns import PLACEHOLDER
from cdcavro.transcoding.mapping import records, to_changes
from cdcavro.wire.formats import get_format
from cdcavro.wire.kafka import VALUE

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from datetime import tzinfo

    from cdcavro.transcoding.joiner import Message

SAME_VALUE: Final = "the same value in another form"
_HALVES: Final = 2


@dataclass(frozen=True, slots=True)
class Loss:
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


def find_losses(
    messages: Sequence[Message], changes: Sequence[Change], texts: Sequence[bytes], route: Route
) -> Iterator[Loss]:
    """Yield what a message, or the two halves of an update, lost when the target's texts were made.

    `changes` are the changes of the messages, with halves joined. Messages are compared in the shape of
    the originals: rows of one message as rows of one, each half with its own half, Debezium's lines as
    records or values. If they come back in another shape, that is one more loss, without a value; if the
    source's format has no message for what the target's texts say, each whole message is one more.
    """
    originals = [parse_fast(text) for _, text in messages]
    read = list(_read_back(texts, route))
    natural = records(read, route.source, route.zone)
    back = sent = _in_form_of(originals, read, natural, route)
    as_sent = _restore_values(read, changes, route.source)
    if as_sent is not read:
        sent = _in_form_of(originals, as_sent, records(as_sent, route.source, route.zone), route)
    for i, (number, _) in enumerate(messages):
        if i >= len(back) or back[i] is None:
            yield Loss(
                "$", render(originals[i]).decode(), f"{route.target} {_describe_lack(changes, route.target)}", number
            )
        else:
            yield from _compare(originals[i], back[i], sent[i], route.target, number)
    if back and not natural:
        reason = f"does not come back from {route.target}: {route.source} {_describe_lack(read, route.source)}"
        for (number, _), original in zip(messages, originals, strict=True):
            yield Loss("$", render(original).decode(), reason, number)
    form = _describe_form(originals, read, natural, texts, route)
    if form is not None and back:
        yield Loss("$", "", form, messages[-1][0])


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
    message = get_format(format).message_in(original)
    shaped = BRIDGES[format].reshape(record, message)
    return shaped if message is original else {VALUE: shaped}


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


def _read_back(texts: Sequence[bytes], route: Route) -> Iterator[Change]:
    halves = HalfJoiner()
    for text in texts:
        for change in to_changes(text, route.target, zone=route.zone, unavailable=route.unavailable):
            bare = replace(change, members=None)
            # A half without a number came from a half alone: there is nothing to join it with.
            yield from halves.add(bare) if bare.position is not None else [bare]
    yield from halves.pending()


def _restore_values(read: Sequence[Change], originals: Sequence[Change], source: str) -> Sequence[Change]:
    """Return changes with values spelled as in the originals, since another spelling is not another value."""
    if len(read) != len(originals):
        return read
    as_sent = [BRIDGES[source].restore_values(*pair) for pair in zip(read, originals, strict=True)]
    return read if all(map(is_, as_sent, read)) else as_sent


def _compare(original: Any, back: Any, sent: Any, target: str, number: int) -> Iterator[Loss]:
    found_differences = list(differences(original, back))
    different = {pointer for pointer, _, _ in (found_differences if sent is back else differences(original, sent))}
    for pointer, value, value_back in found_differences:
        text = "" if value is ABSENT else render(value).decode()
        reason = (
            _describe_difference(value, value_back, target)
            if pointer in different
            else f"comes back from {target} as {SAME_VALUE}"
        )
        yield Loss(json_path(pointer), text, reason, number)


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
    shape_of, message_in = BRIDGES[route.source].shape_of, get_format(route.source).message_in
    if natural and message_in(originals[0]) is not originals[0]:
        return f"comes back from {route.target} without its Kafka record"
    if natural and shape_of(natural[0]) != shape_of(originals[0]):
        return f"comes back from {route.target} as {shape_of(natural[0])}"
    return None


def _describe_lack(changes: Sequence[Change], target: str) -> str:
    """Return in words why a target has no message for changes."""
    lacks = map(BRIDGES[target].missing_part, changes)
    return next((f"needs {lack} for it" for lack in lacks if lack is not None), "has no message for it")


def _describe_difference(value: Any, value_back: Any, target: str) -> str:
    if value_back is ABSENT:
        return f"{target} has no place for it"
    if value is ABSENT:
        return f"absent here, but present when it comes back from {target}"
    return f"comes back from {target} as another value"
