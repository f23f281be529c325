"""Halves of an update, which DataHub sends as two messages with the same sequence number, and how they are joined."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from cdcavro.change.model import Change, Source, replace
from cdcavro.errors import StructureError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

MAX_PENDING: Final = 10_000
Identity = tuple[Source, tuple[int, ...] | None]


class HalfJoiner:
    """Joins halves as they come, in any order; everything else passes through.

    At most `most` halves wait for their other half, by default 10,000, so that memory is bounded.
    """

    def __init__(self, *, most: int = MAX_PENDING) -> None:
        self._most = most
        self._pending: dict[Identity, Change] = {}

    def add(self, change: Change) -> Iterator[Change]:
        """Yield the changes that are complete now.

        Raises `StructureError` for a half without its row or without a number, for the same half a second time,
        and for one half too many. Halves that were waiting keep waiting.
        """
        if change.half is None:
            yield change
            return
        check_half(change)
        identity = identity_of(change)
        waiting = self._pending.get(identity)
        if waiting is None:
            if len(self._pending) >= self._most:
                expected = f"at most {self._most} halves without their other half"
                raise StructureError(expected, "one more", format=change.source.format)
            self._pending[identity] = change
            return
        if waiting.half == change.half:
            got = f"the {change.half} half twice"
            raise StructureError("the other half of the update", got, format=change.source.format)
        del self._pending[identity]
        yield join_pair(waiting, change)

    def take(self, identity: Identity) -> Change:
        """Remove a waiting half and return it. Raises `KeyError` if no such half is waiting."""
        return self._pending.pop(identity)

    def pending(self) -> list[Change]:
        """Return the halves that are waiting, unchanged."""
        return list(self._pending.values())

    def finish(self) -> Iterator[Change]:
        """Yield the waiting halves that are complete changes on their own. Raises what `resolve_half` raises."""
        waiting = self.pending()
        self._pending.clear()
        yield from map(resolve_half, waiting)


def check_half(half: Change) -> None:
    """Raise `StructureError` unless a half has its row and the number that both halves share."""
    format = half.source.format
    if half.half not in ("BEFORE", "AFTER"):
        raise StructureError("BEFORE or AFTER as the half of an update", str(half.half), format=format)
    if (half.before if half.half == "BEFORE" else half.after) is None:
        raise StructureError(f"a row in the {half.half} half of an update", "none", format=format)
    if half.position is None:
        raise StructureError("a number for the halves of an update to share", "none", format=format)


def resolve_half(change: Change) -> Change:
    """Return the change that a half is if its other half never comes.

    A record that does not state its operation is an insert or a delete, since an update would have two
    records. Raises `StructureError` for the half of a stated update.
    """
    if change.operation is not None:
        missing = "BEFORE" if change.half == "AFTER" else "AFTER"
        got = f"the {change.half} half alone"
        raise StructureError(f"the {missing} half of the update too", got, format=change.source.format)
    return replace(change, op="INSERT" if change.half == "AFTER" else "DELETE", half=None)


def identity_of(change: Change) -> Identity:
    """Return what identifies the two halves of one update: their table and their number."""
    return change.source, change.position


def join_halves(changes: Iterable[Change]) -> Iterator[Change]:
    """Yield changes with their halves joined, each in the place of its second half. Raises `StructureError`."""
    halves = HalfJoiner()
    for change in changes:
        yield from halves.add(change)
    yield from halves.finish()


def join_pair(first: Change, second: Change) -> Change:
    """Join two halves of an update into one change; facts about the message are those of the AFTER half."""
    before, after = (first, second) if first.half == "BEFORE" else (second, first)
    return replace(after, op="UPDATE", half=None, operation=None, before=before.before, after=after.after, members=None)
