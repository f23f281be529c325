"""Any format into any other, with a report of what the other cannot hold.

Losses are measured, not listed by hand: the messages made for the target are turned back into the
source's format, and every difference from what came in is a loss.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from cdcavro.change import Change, replace
from cdcavro.changes import records, to_changes
from cdcavro.comparison import ABSENT, differences
from cdcavro.errors import StructureError, json_path
from cdcavro.formats import get_format
from cdcavro.halves import Halves, Identity, identity_of
from cdcavro.text import parse, render

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from datetime import tzinfo

HALVED: Final = frozenset({"datahub_blob", "datahub_tuple"})


@dataclass(frozen=True, slots=True)
class Loss:
    """What a target format does not give back.

    Attributes: `path` (str), the JSON path in the message; `value` (str), its JSON text, empty for a
    member that was absent; `reason` (str); `message` (int), which of several messages, from 0.
    """

    path: str
    value: str
    reason: str
    message: int = 0


@dataclass(frozen=True, slots=True)
class Transcoded:
    """Messages in the target format (UTF-8 JSON texts), and what they do not hold."""

    texts: list[bytes]
    losses: list[Loss]


def transcode(message: bytes | str, source: str, target: str, *, zone: tzinfo | None = None) -> Transcoded:
    """Turn a message of one format into messages of another.

    Raises `UnknownFormatError`, `TextError`, `StructureError`; the latter also for the half of an
    update, unless the target has halves too: `transcode_all` joins them.

    >>> transcode('{"meta":{"op":"del","size":3},"data":{"id":7}}', "oms_shareplex", "oms_canal").losses
    [Loss(path='$.meta.size', value='3', reason='oms_canal has no place for it', message=0)]
    """
    get_format(target)
    return _transcoded([message], to_changes(message, source, zone=zone), target, zone)


def transcode_all(
    messages: Iterable[bytes | str], source: str, target: str, *, zone: tzinfo | None = None
) -> Iterator[Transcoded]:
    """Turn a stream of messages into those of another format, the halves of updates joined.

    Raises as `transcode`, and `StructureError` at the end for a half without its other half.
    """
    get_format(target)
    halves = Halves()
    waiting: dict[Identity, bytes | str] = {}
    for message in messages:
        changes = to_changes(message, source, zone=zone)
        if target in HALVED or changes[0].half is None:
            yield _transcoded([message], changes, target, zone)
            continue
        identity = identity_of(changes[0])
        first = waiting.pop(identity, None)
        for joined in halves.add(changes[0]):
            yield _transcoded([first, message] if first is not None else [message], [joined], target, zone)
        if first is None:
            waiting[identity] = message
    for change in halves.finish():
        yield _transcoded([waiting[identity_of(change)]], [change], target, zone)


def _transcoded(
    messages: Sequence[bytes | str], changes: Sequence[Change], target: str, zone: tzinfo | None
) -> Transcoded:
    source = changes[0].source.format or ""
    half = next((change.half for change in changes if change.half is not None), None)
    if half is not None and target not in HALVED:
        missing = "BEFORE" if half == "AFTER" else "AFTER"
        raise StructureError(f"the {missing} half of the update too", f"the {half} half alone", format=source)
    if source == target:
        return Transcoded([render(parse(message)) for message in messages], [])
    made = records([replace(change, members=None) for change in changes], target, zone)
    texts = [render(record) for record in made]
    back = records(list(_read_back(texts, target, zone)), source, zone)
    return Transcoded(texts, list(_losses([parse(message) for message in messages], back, target)))


def _read_back(texts: Sequence[bytes], target: str, zone: tzinfo | None) -> Iterator[Change]:
    halves = Halves()
    for text in texts:
        for change in to_changes(text, target, zone=zone):
            yield from halves.add(replace(change, members=None))
    yield from halves.waiting()


def _losses(came: Sequence[Any], back: Sequence[Any], target: str) -> Iterator[Loss]:
    for i, message in enumerate(came):
        if i >= len(back):
            yield Loss("$", render(message).decode(), f"{target} has no message for it", i)
            continue
        for pointer, value, other in differences(message, back[i]):
            shown = "" if value is ABSENT else render(value).decode()
            yield Loss(json_path(pointer), shown, _reason(value, other, target), i)


def _reason(value: Any, other: Any, target: str) -> str:
    if other is ABSENT:
        return f"{target} has no place for it"
    if value is ABSENT:
        return f"through {target} it is there, and was absent"
    return f"through {target} it is another value"
