"""The joiner of the halves of updates across the messages of a stream."""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING, Final, NamedTuple

from msgspec import Struct

from cdcavro.change.order import HalfJoiner, Identity, identity_of, resolve_half
from cdcavro.errors import StructureError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cdcavro.change.model import Change, Source

MOST_HALVES: Final = 10_000
# Counted in the messages as they came; the changes made from them take a few times as much memory.
MOST_BYTES: Final = 8 * 1024 * 1024
Message = tuple[int, bytes | str]


class JoinedChanges(Struct, frozen=True):
    """Changes that are complete, and the messages they came in."""

    # The number and text of each message, that of the BEFORE half first.
    messages: tuple[Message, ...]
    # Empty if a half is refused.
    changes: tuple[Change, ...]
    # The reason why a half is refused.
    error: StructureError | None = None


class _Half(NamedTuple):
    """A waiting half, and the message it came in."""

    change: Change
    message: Message


class StreamJoiner:
    """Joins the halves of updates across the messages of a stream, in the order of the stream.

    A whole change is returned at once, and an update when its second half comes.

    * The half of a stated update (`UPDATE_BEFOR`, operation `U`) waits for the other half, whatever
      comes between them; if the other half never comes, it is refused at the end of the stream. With `passes_stated`
      it is returned at once, unchanged.
    * A record of a DataHub Tuple topic without `_operation_type_` may be a half, or a whole insert or
      delete. The documents number each message, show the two records of an update one after the
      other, the row before the change first, and promise order within a shard. So such a record waits
      only until something else of its table comes; then it is an insert or a delete, and is returned
      first. Records of other tables, which lie between in the same shard, do not settle it.
    * Where several shards are read into one stream, another record of the table can come between the
      two records of an update. They are then a delete and an insert, which leave the table in the same
      state. In the opposite order they would not: a row before the change is refused if it comes after
      its row after the change was settled as an insert (the last 10,000 of these are remembered).
    * At most 10,000 halves wait, whose messages have at most 8 MiB in all, so that a stream may have any length.
      Beyond that the oldest half is given up, and refused if it is of a stated update.
    """

    def __init__(self, *, passes_stated: bool = False) -> None:
        self._passes_stated = passes_stated
        self._halves = HalfJoiner(most=MOST_HALVES + 1)
        self._waiting: OrderedDict[Identity, _Half] = OrderedDict()
        self._unstated: dict[Source, Identity] = {}
        self._inserts: OrderedDict[Identity, None] = OrderedDict()
        self._bytes = 0

    @property
    def passes_whole(self) -> bool:
        """Whether whole changes pass at once, because no half of an unknown operation is waiting."""
        return not self._unstated

    def add(self, changes: Sequence[Change], number: int, message: bytes | str) -> list[JoinedChanges]:
        """Return what the changes of a message complete, and the halves that are refused, in order.

        `number` identifies the message in `JoinedChanges.messages`.
        """
        complete: list[JoinedChanges] = []
        for change in changes if self._unstated else ():
            complete += self._settle(change)
        if not any(map(self._is_to_join, changes)):
            return [*complete, JoinedChanges(((number, message),), tuple(changes))]
        for change in changes:
            complete += self._pair(_Half(change, (number, message)))
        return complete

    def finish(self) -> list[JoinedChanges]:
        """Return what each waiting half is on its own, or its error, in the order in which they came."""
        return [_resolve(self._take(identity)) for identity in list(self._waiting)]

    def _is_to_join(self, change: Change) -> bool:
        return change.half is not None and not (self._passes_stated and change.operation is not None)

    def _settle(self, newer: Change) -> list[JoinedChanges]:
        """Return the half of unknown operation that waits in the table of a change, unless the two are one update."""
        identity = self._unstated.get(newer.source)
        if identity is None or (self._is_to_join(newer) and identity_of(newer) == identity):
            return []
        half = self._take(identity)
        if half.change.half == "AFTER":
            self._inserts[identity] = None
            if len(self._inserts) > MOST_HALVES:
                self._inserts.popitem(last=False)
        return [_resolve(half)]

    def _pair(self, half: _Half) -> list[JoinedChanges]:
        identity = identity_of(half.change)
        if half.change.half == "BEFORE" and identity in self._inserts:
            expected = "the row before an update next to the row after it"
            return [_refuse(half, expected, "it after another change of the table")]
        try:
            joined = tuple(self._halves.add(half.change))
        except StructureError as error:
            return [JoinedChanges((half.message,), (), error)]
        if not joined:
            return self._keep(identity, half)
        waiting = self._forget(identity)
        first, second = (waiting, half) if waiting.change.half == "BEFORE" else (half, waiting)
        return [JoinedChanges((first.message, second.message), joined)]

    def _keep(self, identity: Identity, half: _Half) -> list[JoinedChanges]:
        """Keep a half, and give up the oldest halves until there is room for it."""
        self._waiting[identity] = half
        self._bytes += len(half.message[1])
        if half.change.operation is None:
            self._unstated[half.change.source] = identity
        abandoned = []
        while len(self._waiting) > 1 and (len(self._waiting) > MOST_HALVES or self._bytes > MOST_BYTES):
            abandoned.append(_give_up(self._take(next(iter(self._waiting)))))
        return abandoned

    def _take(self, identity: Identity) -> _Half:
        self._halves.take(identity)
        return self._forget(identity)

    def _forget(self, identity: Identity) -> _Half:
        half = self._waiting.pop(identity)
        self._bytes -= len(half.message[1])
        if self._unstated.get(half.change.source) == identity:
            del self._unstated[half.change.source]
        return half


def _resolve(half: _Half) -> JoinedChanges:
    try:
        return JoinedChanges((half.message,), (resolve_half(half.change),))
    except StructureError as error:
        return JoinedChanges((half.message,), (), error)


def _give_up(half: _Half) -> JoinedChanges:
    """Return what a half is alone; the half of a stated update is refused, because the other may still come."""
    if half.change.operation is None:
        return _resolve(half)
    missing = "BEFORE" if half.change.half == "AFTER" else "AFTER"
    expected = f"the {missing} half of the update before {MOST_HALVES} later halves, or {MOST_BYTES} bytes, wait"
    return _refuse(half, expected, f"the {half.change.half} half alone")


def _refuse(half: _Half, expected: str, got: str) -> JoinedChanges:
    error = StructureError(expected, got, format=half.change.source.format)
    return JoinedChanges((half.message,), (), error)
