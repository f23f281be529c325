"""The two halves of an update, joined: DataHub sends them as two messages with one sequence number."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from cdcavro.change.model import Change, Source, replace
from cdcavro.errors import StructureError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

PENDING: Final = 10_000
Identity = tuple[Source, tuple[int, ...] | None]


class HalfJoiner:
    """Joins halves as they come, in any order; everything else passes through.

    At most `most` halves wait for their other half, by default 10,000, so that memory is bounded.
    """

    def __init__(self, *, most: int = PENDING) -> None:
        self._most = most
        self._waiting: dict[Identity, Change] = {}

    def add(self, change: Change) -> Iterator[Change]:
        """Return the changes that are complete now.

        Raises `StructureError` for a half that is not taken: without its row, without a number, the
        same half again, or one too many. What waited before still waits.
        """
        if change.half is None:
            yield change
            return
        _check(change)
        identity = identity_of(change)
        other = self._waiting.get(identity)
        if other is None:
            if len(self._waiting) >= self._most:
                expected = f"at most {self._most} halves without their other half"
                raise StructureError(expected, "one more", format=change.source.format)
            self._waiting[identity] = change
            return
        if other.half == change.half:
            found = f"the {change.half} half twice"
            raise StructureError("the other half of the update", found, format=change.source.format)
        del self._waiting[identity]
        yield join_pair(other, change)

    def take(self, identity: Identity) -> Change:
        """Return a half that waits, which waits no longer. Raises `KeyError` for one that does not wait."""
        return self._waiting.pop(identity)

    def waiting(self) -> list[Change]:
        """Return the halves that wait, as they are."""
        return list(self._waiting.values())

    def finish(self) -> Iterator[Change]:
        """Return what waits and is whole alone. Raises as `alone`."""
        waiting = self.waiting()
        self._waiting.clear()
        yield from map(alone, waiting)


def _check(half: Change) -> None:
    """Check that a half is one of two: it has its row, and a number that both share."""
    format = half.source.format
    if half.half not in ("BEFORE", "AFTER"):
        raise StructureError("BEFORE or AFTER as the half of an update", str(half.half), format=format)
    if (half.before if half.half == "BEFORE" else half.after) is None:
        raise StructureError(f"a row in the {half.half} half of an update", "none", format=format)
    if half.position is None:
        raise StructureError("a number for the halves of an update to share", "none", format=format)


def alone(change: Change) -> Change:
    """Return the change that a half without its other half is.

    A record whose operation is not stated is an insert or a delete, since an update has two of them.
    Raises `StructureError` for the half of an update.
    """
    if change.operation is not None:
        missing = "BEFORE" if change.half == "AFTER" else "AFTER"
        found = f"the {change.half} half alone"
        raise StructureError(f"the {missing} half of the update too", found, format=change.source.format)
    return replace(change, op="INSERT" if change.half == "AFTER" else "DELETE", half=None)


def identity_of(change: Change) -> Identity:
    """Return what the two halves of an update have in common: their table and their number."""
    return change.source, change.position


def join_halves(changes: Iterable[Change]) -> Iterator[Change]:
    """Join the halves among changes; the joined change stands where the second half stood. Raises `StructureError`."""
    halves = HalfJoiner()
    for change in changes:
        yield from halves.add(change)
    yield from halves.finish()


def join_pair(one: Change, other: Change) -> Change:
    """Join two halves of an update into one change; what belongs to the message is that of the AFTER half."""
    before, after = (one, other) if one.half == "BEFORE" else (other, one)
    return replace(after, op="UPDATE", half=None, operation=None, before=before.before, after=after.after, members=None)
