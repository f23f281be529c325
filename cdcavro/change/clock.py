"""The clock of each lane, a topic partition or file: it gives a time to changes whose order is that of arrival.

Within a lane the order is that of arrival. The numbers say when statements began, and they run backwards where
one statement waited for another. Between lanes there are only the numbers. So the time of a message is the
greatest of its lane so far, as in `in_order`, and the orders of all lanes can be compared.

Lanes often have the same time, since it is in seconds. A message that moves keys deletes rows that came through
other lanes, and came earlier. So the time also counts the messages that moved keys: such a message, and what
follows it in its lane, comes behind what the other lanes have of that time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

from cdcavro.change.model import Change
from cdcavro.change.order import is_by_arrival, lane_of, order_key, rank_of_numbers
from cdcavro.errors import OrderError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from cdcavro.change.model import Arrival
    from cdcavro.change.order import Lane, Place

# The rank of a time with all numbers.
_TIMED: Final = 2


class LaneTime(NamedTuple):
    """The time of a message in its lane."""

    # How much the numbers say: 0 if there are none, 1 for the number of a batch, 2 for all numbers.
    rank: int
    # The greatest numbers so far in the lane.
    numbers: tuple[int, ...]
    # How many messages of the lane moved keys in that time, this one included.
    moves: int


class Clock:
    """Gives messages their time, lane by lane, continuing from the `state` of another clock if one is passed."""

    def __init__(self, state: Iterable[Any] = ()) -> None:
        self._lanes: dict[Lane, tuple[Place, LaneTime]] = {}
        for lane, place, rank, numbers, moves in state:
            self._lanes[tuple(lane)] = tuple(place), LaneTime(rank, tuple(numbers), moves)

    @property
    def state(self) -> list[Any]:
        """The state as a JSON value: for each lane its last place and its time."""
        return [
            [[*lane], [*place], time.rank, [*time.numbers], time.moves]
            for lane, (place, time) in sorted(self._lanes.items(), key=lambda entry: entry[0])
        ]

    def latest_since(self, other: Clock) -> int | None:
        """Return the greatest first number of the lanes that moved on from another clock; None if none has all numbers."""
        moved = [entry[1] for lane, entry in self._lanes.items() if other.get(lane) != entry]
        return max((time.numbers[0] for time in moved if time.rank == _TIMED and time.numbers), default=None)

    def copy(self) -> Clock:
        """Return a clock with the same state, which continues independently."""
        other = Clock()
        other._lanes = dict(self._lanes)
        return other

    def get(self, lane: Lane) -> tuple[Place, LaneTime] | None:
        """Return the last place of a lane and its time; None if the lane had no message yet."""
        return self._lanes.get(lane)

    def put(self, lane: Lane, place: Place, time: tuple[int, tuple[int, ...], int]) -> None:
        """Set the last place and the time of a lane."""
        self._lanes[lane] = place, LaneTime(*time)

    def time(self, change: Change, *, is_moving: bool = False) -> LaneTime | None:
        """Return the time of a change's message; None if its order is not that of arrival.

        Call it once for each message of a lane, with any of its changes, in the order of arrival; `is_moving` says
        whether any of its changes changes the key of a row. Raises `OrderError` for a place before the last one
        of its lane, since the time that the message had is no longer known, and where `order_key` does.
        """
        key = order_key(change)
        if not is_by_arrival(key):
            return None
        last, time = self._lanes.get(lane_of(key), (None, None))
        if last is not None and key[2] < last:
            expected = f"a place of its lane from {_describe_place(last)} on"
            raise OrderError(change.source.format, change.source.table, _describe_place(key[2]), expected)
        if time is None or last != key[2]:
            time = _next_time(time, key[3], is_moving=is_moving)
            self._lanes[lane_of(key)] = key[2], time
        return time


def _next_time(time: LaneTime | None, numbers: tuple[int, ...], *, is_moving: bool) -> LaneTime:
    latest = LaneTime(rank_of_numbers(numbers), tuple(numbers), int(is_moving))
    if time is None or latest[:2] > time[:2]:
        return latest
    return time._replace(moves=time.moves + is_moving)


def _describe_place(place: Place) -> str:
    return f"line {place[4]}" if place[3] else f"offset {place[2]}"


def lane_at(place: Arrival) -> Lane:
    """Return the lane of a place, as `lane_of` does."""
    return lane_of(order_key(Change(op="INSERT", place=place)))


def place_before(place: Arrival) -> Place:
    """Return the place right before one in its lane, in the form that order keys have."""
    topic, partition, offset, file, line = order_key(Change(op="INSERT", place=place))[2]
    return (topic, partition, offset, file, line - 1) if file else (topic, partition, offset - 1, file, line)
