"""What a target format does not give back, measured: its messages are turned back and held against those that came."""

from __future__ import annotations

from dataclasses import dataclass
from operator import is_
from typing import TYPE_CHECKING, Any, Final

from cdcavro.change.halves import HalfJoiner
from cdcavro.change.model import Change, replace
from cdcavro.errors import json_path
from cdcavro.exact.diff import differences
from cdcavro.exact.jsontext import parse, render
from cdcavro.exact.members import ABSENT
from cdcavro.formats import BRIDGES
from cdcavro.transcoding.mapping import records, to_changes

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from datetime import tzinfo

    from cdcavro.transcoding.joiner import Message

SAME_VALUE: Final = "the same value in another form"
_HALVES: Final = 2


@dataclass(frozen=True, slots=True)
class Loss:
    """What a target format does not give back.

    Attributes: `path` (str), the JSON path in the message; `value` (str), its JSON text, empty for a
    member that was absent and where values come back, but in another form of message; `reason` (str);
    `message` (int), the number of the message in its stream, from 0.
    """

    path: str
    value: str
    reason: str
    message: int = 0

    @property
    def is_of_a_value(self) -> bool:
        """Whether a value is lost, not only its form or the absence of a member."""
        return self.value != "" and not self.reason.endswith(SAME_VALUE)


@dataclass(frozen=True, slots=True)
class Way:
    """The way from a source format to a target, in the zone of the source."""

    source: str
    target: str
    zone: tzinfo | None


def find_losses(
    messages: Sequence[Message], changes: Sequence[Change], texts: Sequence[bytes], way: Way
) -> Iterator[Loss]:
    """Return what was lost of a message, or of the two halves of an update, on its way to the texts made of it.

    `changes` are those of the messages, the halves joined. Messages are compared in the shape that came:
    rows of one message as rows of one, each half with its own, Debezium's lines as records or values.
    That they come back in another shape is one loss more, without a value.
    """
    came = [parse(text) for _, text in messages]
    read = list(_read_back(texts, way))
    natural = records(read, way.source, way.zone)
    back = sent = _like(came, read, natural, way)
    as_sent = _as_sent(read, changes, way.source)
    if as_sent is not read:
        sent = _like(came, as_sent, records(as_sent, way.source, way.zone), way)
    for i, (number, _) in enumerate(messages):
        if i >= len(back):
            yield Loss("$", render(came[i]).decode(), f"{way.target} {_lack(changes, way.target)}", number)
        else:
            yield from _compared(came[i], back[i], sent[i], way.target, number)
    form = _form(came, read, natural, texts, way)
    if form is not None and back:
        yield Loss("$", "", f"through {way.target} {form}", messages[-1][0])


def _like(came: Sequence[Any], read: Sequence[Change], natural: Sequence[Any], way: Way) -> Sequence[Any]:
    """Return the messages of changes that were read back in the form of those that came."""
    if len(natural) == len(came):
        made = natural
    elif len(read) == 1 and len(came) == _HALVES:
        made = records(_halves(read[0]), way.source, way.zone)
    elif len(read) == 1:
        made = records([BRIDGES[way.source].as_one_message(read[0])], way.source, way.zone)
    else:
        made = records(_rows(read), way.source, way.zone)
    in_shape = BRIDGES[way.source].in_shape
    return [in_shape(record, other) for record, other in zip(made, came, strict=False)]


def _rows(read: Sequence[Change]) -> list[Change]:
    """Return rows as rows of one message: what belongs to the message is that of the first."""
    images = ((one.before, one.after, one.changed) for one in read)
    return [
        replace(read[0], before=before, after=after, changed=changed, row=row, rows=len(read))
        for row, (before, after, changed) in enumerate(images)
    ]


def _halves(change: Change) -> list[Change]:
    bare = replace(change, operation=None)
    return [replace(bare, half="BEFORE", after=None), replace(bare, half="AFTER", before=None)]


def _read_back(texts: Sequence[bytes], way: Way) -> Iterator[Change]:
    halves = HalfJoiner()
    for text in texts:
        for change in to_changes(text, way.target, zone=way.zone):
            bare = replace(change, members=None)
            # A half alone came from a half: nothing to join it with.
            yield from halves.add(bare) if bare.position is not None else [bare]
    yield from halves.waiting()


def _as_sent(read: Sequence[Change], came: Sequence[Change], source: str) -> Sequence[Change]:
    """Put values into the form in which they came, so that it is told from another value."""
    if len(read) != len(came):
        return read
    as_sent = [BRIDGES[source].as_sent(*pair) for pair in zip(read, came, strict=True)]
    return read if all(map(is_, as_sent, read)) else as_sent


def _compared(came: Any, back: Any, sent: Any, target: str, number: int) -> Iterator[Loss]:
    others = {pointer for pointer, _, _ in differences(came, sent)}
    for pointer, value, other in differences(came, back):
        shown = "" if value is ABSENT else render(value).decode()
        reason = _reason(value, other, target) if pointer in others else f"through {target} it is {SAME_VALUE}"
        yield Loss(json_path(pointer), shown, reason, number)


def _form(
    came: Sequence[Any], read: Sequence[Change], natural: Sequence[Any], texts: Sequence[bytes], way: Way
) -> str | None:
    """Say in what other form messages come back of themselves; None if it is theirs."""
    if len(came) == _HALVES != len(natural):
        return "both halves are one message"
    if len(natural) > len(came):
        rows = f"its {len(read)} rows are" if len(read) > 1 else "both images in one message are"
        return f"{rows} {len(texts)} messages"
    shape_of = BRIDGES[way.source].shape_of
    if natural and shape_of(natural[0]) != shape_of(came[0]):
        return f"it is {shape_of(natural[0])}"
    return None


def _lack(changes: Sequence[Change], target: str) -> str:
    """Say why a target has no message for changes."""
    lacks = map(BRIDGES[target].lack, changes)
    return next((f"needs {lack} for it" for lack in lacks if lack is not None), "has no message for it")


def _reason(value: Any, other: Any, target: str) -> str:
    if other is ABSENT:
        return f"{target} has no place for it"
    if value is ABSENT:
        return f"through {target} it is there, and was absent"
    return f"through {target} it is another value"
