"""The halves of updates, joined across the messages of a stream."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple

from cdcavro.change.halves import HalfJoiner, Identity, alone, identity_of
from cdcavro.errors import StructureError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cdcavro.change.model import Change, Source

MOST_HALVES: Final = 10_000
# Of messages as they came; the changes made of them take a few times as much memory.
MOST_BYTES: Final = 64 * 1024 * 1024
Message = tuple[int, bytes | str]


@dataclass(frozen=True, slots=True)
class Joined:
    """Changes that are complete, and the messages they came in.

    Attributes: `messages`, number and text of each, that of the BEFORE half before that of the AFTER half;
    `changes`; `error`, why a half is refused: then `changes` is empty.
    """

    messages: tuple[Message, ...]
    changes: tuple[Change, ...]
    error: StructureError | None = None


class _Half(NamedTuple):
    """A half that waits, and the message it came in."""

    change: Change
    message: Message


class StreamJoiner:
    """Joins the halves of updates across the messages of a stream, in the order of the stream.

    A whole change is given at once, an update where its second half came.

    * The half of a stated update (`UPDATE_BEFOR`, operation `U`) waits for the other one, whatever
      comes between; alone at the end of the stream it is refused. With `passes_stated` it is given
      at once as it is.
    * A record of a DataHub Tuple topic without `_operation_type_` may be a half or a whole insert or
      delete. The documents number each message, show the two records of an update one after the
      other, the row before first, and promise order within a shard. So such a record waits only until
      something else of its table comes; then it is an insert or a delete, and is given before that.
      Other tables, whose records lie between in one shard, do not settle it.
    * Where several shards are read into one stream, the records of an update can be parted by another
      of their table. They are then a delete and an insert, which leave the same table behind. The
      other way round they would not: a row before that comes later than its row after was settled as
      an insert is refused (the last 10,000 of these are known).
    * At most 10,000 halves wait, of messages of 64 MiB in all. Beyond that the oldest is given up,
      refused if it is of a stated update; a stream of any length goes on.
    """

    def __init__(self, *, passes_stated: bool = False) -> None:
        self._passes_stated = passes_stated
        self._halves = HalfJoiner(most=MOST_HALVES + 1)
        self._waiting: dict[Identity, _Half] = {}
        self._unstated: dict[Source, Identity] = {}
        self._inserts: dict[Identity, None] = {}
        self._bytes = 0

    def add(self, changes: Sequence[Change], number: int, message: bytes | str) -> list[Joined]:
        """Return what is complete with the changes of a message, and the halves that are refused, in order.

        `number` is what the message is called in `Joined.messages`.
        """
        given: list[Joined] = []
        for change in changes:
            given += self._settle(change)
        if not any(map(self._is_to_join, changes)):
            return [*given, Joined(((number, message),), tuple(changes))]
        for change in changes:
            given += self._pair(_Half(change, (number, message)))
        return given

    def finish(self) -> list[Joined]:
        """Return what the halves that wait are alone, or their errors, in the order in which they came."""
        return [_alone(self._take(identity)) for identity in list(self._waiting)]

    def _is_to_join(self, change: Change) -> bool:
        return change.half is not None and not (self._passes_stated and change.operation is not None)

    def _settle(self, newer: Change) -> list[Joined]:
        """Return the half of unknown operation that waits in the table of a change, unless they are of one update."""
        identity = self._unstated.get(newer.source)
        if identity is None or (self._is_to_join(newer) and identity_of(newer) == identity):
            return []
        half = self._take(identity)
        if half.change.half == "AFTER":
            self._inserts[identity] = None
            if len(self._inserts) > MOST_HALVES:
                del self._inserts[next(iter(self._inserts))]
        return [_alone(half)]

    def _pair(self, half: _Half) -> list[Joined]:
        identity = identity_of(half.change)
        if half.change.half == "BEFORE" and identity in self._inserts:
            expected = "the row before an update next to the row after it"
            return [_refused(half, expected, "it after another change of the table")]
        try:
            joined = tuple(self._halves.add(half.change))
        except StructureError as error:
            return [Joined((half.message,), (), error)]
        if not joined:
            return self._keep(identity, half)
        other = self._forget(identity)
        first, second = (other, half) if other.change.half == "BEFORE" else (half, other)
        return [Joined((first.message, second.message), joined)]

    def _keep(self, identity: Identity, half: _Half) -> list[Joined]:
        """Keep a half, and give up the oldest ones that there is no room for beside it."""
        self._waiting[identity] = half
        self._bytes += len(half.message[1])
        if half.change.operation is None:
            self._unstated[half.change.source] = identity
        given = []
        while len(self._waiting) > 1 and (len(self._waiting) > MOST_HALVES or self._bytes > MOST_BYTES):
            given.append(_given_up(self._take(next(iter(self._waiting)))))
        return given

    def _take(self, identity: Identity) -> _Half:
        self._halves.take(identity)
        return self._forget(identity)

    def _forget(self, identity: Identity) -> _Half:
        half = self._waiting.pop(identity)
        self._bytes -= len(half.message[1])
        if self._unstated.get(half.change.source) == identity:
            del self._unstated[half.change.source]
        return half


def _alone(half: _Half) -> Joined:
    try:
        return Joined((half.message,), (alone(half.change),))
    except StructureError as error:
        return Joined((half.message,), (), error)


def _given_up(half: _Half) -> Joined:
    """Return what a half is alone; the half of a stated update may have another one, further on."""
    if half.change.operation is None:
        return _alone(half)
    other = "BEFORE" if half.change.half == "AFTER" else "AFTER"
    expected = f"the {other} half of the update before {MOST_HALVES} later halves, or {MOST_BYTES} bytes, wait"
    return _refused(half, expected, f"the {half.change.half} half alone")


def _refused(half: _Half, expected: str, got: str) -> Joined:
    error = StructureError(expected, got, format=half.change.source.format)
    return Joined((half.message,), (), error)
