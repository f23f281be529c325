"""The order of changes, the shards within which it holds, the clocks of lanes, and how halves of updates are joined.

Which order is true differs by format, and its wire schema says so (`order` in the attribute `json`):

* Usually the source's own numbers are: a log position, or a sequence made for sorting. A message that
  is delivered again has the same numbers, so it falls where it was.
* Where the numbers are a time at which statements began (`es` of the Canal formats), the order of
  arrival within one topic partition or file is: an UPDATE that waited for a row has the earlier time
  and the later place in the log. TiDB numbers its commits in these formats, too, and then its numbers are.
* So it is in Maxwell's format, whose numbers are positions. A message without one counts with the second that it states.

Each lane, a topic partition or file, has a clock, which gives a time to changes whose order is that of arrival.

Within a lane the order is that of arrival. The numbers say when statements began, and they run backwards where
one statement waited for another. Between lanes there are only the numbers. So the time of a message is the
greatest of its lane so far, as in `in_order`, and the orders of all lanes can be compared.

Lanes often have the same time, since it is in seconds. A message that moves keys deletes rows that came through
other lanes, and came earlier. So the time also counts the messages that moved keys: such a message, and what
follows it in its lane, comes behind what the other lanes have of that time.

DataHub sends an update as two messages with the same sequence number, its halves, which are joined here.
"""

from __future__ import annotations

import random
import re
import zlib
from functools import lru_cache
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from cdcavro.change.model import DML, Arrival, Change, Source, replace
from cdcavro.engine.machine import same
from cdcavro.errors import OrderError, StructureError, shown
from cdcavro.exact.jsontext import render
from cdcavro.exact.numbers import plain_text
from cdcavro.wire.attributes import ARRIVAL
from cdcavro.wire.formats import rule_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from cdcavro.change.model import Row

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


# The rank of a time with all numbers.
_TIMED: Final = 2


class LaneTime(NamedTuple):
    """The time of a message in its lane."""

    # How much the numbers say: 0 if there are none, 1 for the number of a batch, 2 for all numbers, or a time.
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


_NONE: Final = "no numbers"
_ALL: Final = "numbers"
_TIME: Final = "a time instead of numbers"
_SECOND: Final = 1_000_000
# What the numbers of a format are where they are places in a log.
_IN_LOG: Final = "file offset"
# What stands behind the second of a row.
_ROW: Final = 1
_BATCH: Final = "the number of a batch without its time"
_PLACE: Final = "a place that says the order"
_RANKS: Final = {_NONE: 0, _BATCH: 1, _ALL: _TIMED, _TIME: _TIMED}
# The type of a source whose changes have numbers of their commits, whatever the format usually has.
NUMBERED: Final = "TiDB"
_NUMBER: Final = re.compile("[0-9]+")
_WIDTH: Final = 20
_KEPT: Final = 1_000


class Numbers(tuple[int, ...]):  # noqa: SLOT001  a subclass of tuple cannot have slots that hold anything
    """The numbers by which a change's source orders it, most significant first; empty if it has none.

    Comparing changes that have such numbers with changes that have none raises `OrderError`, because
    which comes first is not guessed.
    """

    kind: str
    # The source of the change, and its time, in seconds.
    source: Source
    second: int | None

    @classmethod
    def of(cls, change: Change, kind: str, position: tuple[int, ...]) -> Numbers:
        """Return numbers of a change, of a kind."""
        numbers = cls(position)
        numbers.kind, numbers.source = kind, change.source
        is_timed = change.event_time is not None and change.op != "SNAPSHOT"
        numbers.second = (change.event_time or 0) // _SECOND if is_timed else None
        return numbers

    def __lt__(self, other: tuple[int, ...]) -> bool:
        """Return whether the numbers come before others of their kind."""
        return super().__lt__(self._check_kind(other))

    def __gt__(self, other: tuple[int, ...]) -> bool:
        """Return whether the numbers come after others of their kind."""
        return super().__gt__(self._check_kind(other))

    def __le__(self, other: tuple[int, ...]) -> bool:
        """Return whether the numbers do not come after others of their kind."""
        return super().__le__(self._check_kind(other))

    def __ge__(self, other: tuple[int, ...]) -> bool:
        """Return whether the numbers do not come before others of their kind."""
        return super().__ge__(self._check_kind(other))

    def _check_kind(self, other: tuple[int, ...]) -> tuple[int, ...]:
        if isinstance(other, Numbers) and _RANKS.get(other.kind) != _RANKS.get(self.kind):
            kinds = " and some with ".join(sorted((self.kind, other.kind), reverse=True))
            raise OrderError(self.source.format, self.source.table, f"some with {kinds}")
        return other


Place = tuple[str, int, int, str, int]
Key = tuple[int, tuple[int, ...], Place, tuple[int, ...], int]


def order_key(change: Change) -> Key:
    """Return the key that sorts the changes of one table.

    Its parts are a phase (-1 for a statement read in a snapshot, which created the table; 0 for a row
    of a full load; 1 for any other change), the format's own numbers if they are the true order, the
    place of arrival, the numbers if the place is the true order, and the row's number in its message.
    A place is a topic, partition and offset, or an offset alone if everything comes from one unnamed
    topic, or else a file and line; files are ordered by name, numbers in it by value: `part-9` before
    `part-10`.

    Changes whose order is that of arrival are in order within one topic partition or file, where all
    changes of a row belong; `in_order` puts those of several partitions or files in one order.

    Raises `OrderError` for a change that has neither numbers nor a place, such as tombstones and
    heartbeats of most formats. Comparing the key of a change with numbers to that of one without
    raises it too, as does comparing one that its place orders to one without a place: such changes can
    only be ordered by place, all with `position=None`.
    """
    place = _is_place(change.place)
    if change.position is None and not place:
        raise OrderError(change.source.format, change.source.table)
    if is_full_load(change):
        return 0, (), _arrival(change), (), change.row
    phase, position, kind = -1 if change.snapshot else 1, change.position or (), _kind(change)
    if place and not is_by_numbers(change):
        return phase, Numbers.of(change, _PLACE, ()), _arrival(change), _ties(change, kind, position), change.row
    return phase, Numbers.of(change, kind, position), _arrival(change), (), change.row


def _ties(change: Change, kind: str, position: tuple[int, ...]) -> Numbers:
    """Return what says the order of a change where places do not: its numbers, or its time if it has none.

    * No log has a file 0, so positions sort behind times.
    * A row sorts behind the statements of its second: a DROP must not end rows of the table that is created next.
    * A row that was read in mid-stream has no time but that of sending, so it counts with what came before it.
    """
    if kind == _ALL and not position and change.event_time is not None and change.op != "SNAPSHOT":
        second = change.event_time // _SECOND
        return Numbers.of(change, _TIME, (0, second, _ROW) if change.op in DML else (0, second))
    return Numbers.of(change, kind, position)


def is_full_load(change: Change) -> bool:
    """Return whether a change is a row of a full load, which comes before all changes of its table.

    A row that was read again in mid-stream is not one: it has a place among the changes.
    """
    return change.op == "SNAPSHOT" and change.snapshot is not False


def in_order(changes: Iterable[Change]) -> list[Change]:
    """Return the changes of one table, or of several, in one order.

    The order is usually that of `order_key`. Changes whose order is that of arrival keep it within their topic
    partition or file, and those of several are merged by their numbers. Since numbers may decrease, each change counts
    with the greatest so far there, and so does a change that lacks numbers where others have them; before these it
    counts with their first. Raises `OrderError` as `order_key` does, and for partitions with numbers of several kinds.
    """
    pairs = sorted([(order_key(change), change) for change in changes], key=itemgetter(0))
    raised: dict[Lane, tuple[int, ...]] = {}
    for key, _ in pairs:
        if is_by_arrival(key):
            raised[lane_of(key)] = max(raised.get(lane_of(key), key[3]), key[3], key=rank_of_numbers)
    sorted(raised.values())  # Numbers of different kinds raise the error.
    merged: list[tuple[int, tuple[int, ...], Key, Change]] = []
    for key, change in pairs:
        lane = lane_of(key)
        if is_by_arrival(key) and rank_of_numbers(key[3]) == rank_of_numbers(raised[lane]):
            raised[lane] = max(raised[lane], key[3])
        merged.append((key[0], raised[lane] if is_by_arrival(key) else (), key, change))
    merged.sort(key=itemgetter(0, 1, 2))
    return [entry[3] for entry in merged]


def rank_of_numbers(numbers: tuple[int, ...]) -> int:
    """Return the rank of the kind of numbers: the more they say, the greater."""
    return _RANKS[kind_of_numbers(numbers)]


Lane = tuple[str, int, str]


def lane_of(key: Key) -> Lane:
    """Return the topic and partition, and the file, within which the place in a key says the order of arrival."""
    topic, partition, _, file, _ = key[2]
    return topic, partition, file


def is_by_arrival(key: Key) -> bool:
    """Return whether a key's place says the order, and its numbers only do where places cannot be compared."""
    return getattr(key[1], "kind", None) == _PLACE


def precedes(one: Key, other: Key) -> bool | None:
    """Return whether a change comes before another, by their keys; None if nothing says which of the two does.

    Within one topic partition or file, arrival decides where it is the true order, or where the numbers
    are equal or missing; everywhere else the numbers do. This is not an order to sort by: it may go in
    circles, since numbers may contradict the arrival.
    """
    if one[0] != other[0]:
        return one[0] < other[0]
    is_near = _has_place(one) and _has_place(other) and lane_of(one) == lane_of(other)
    if not (is_near and is_by_arrival(one) and is_by_arrival(other)):
        numbers, others = _numbers(one), _numbers(other)
        if bool(numbers) != bool(others) or kind_of_numbers(numbers) != kind_of_numbers(others):
            return None
        if _known(numbers) != _known(others):
            return _known(numbers) < _known(others)
    arrival, other_arrival = (one[2], one[4]), (other[2], other[4])
    return arrival < other_arrival if is_near and arrival != other_arrival else None


def _has_place(key: Key) -> bool:
    return key[2] != _NOWHERE or kind_of_numbers(key[1]) in (_NONE, _PLACE)


def is_by_numbers(change: Change) -> bool:
    """Return whether the numbers of a change are its true order."""
    return rule_of(change.source.format).order != ARRIVAL or change.source.db_type == NUMBERED


def is_batched(change: Change) -> bool:
    """Return whether the numbers of a change without a time are those of a batch."""
    return rule_of(change.source.format).batched and not is_by_numbers(change)


def has_smaller_numbers(one: Key, other: Key) -> bool:
    """Return whether the numbers say that a change was made before another one, whatever the places say.

    Where arrival is the true order, this tells a message that was delivered again from a newer one.
    """
    numbers, others = _numbers(one), _numbers(other)
    is_known = bool(numbers) and bool(others) and kind_of_numbers(numbers) == kind_of_numbers(others)
    return is_known and _known(numbers) < _known(others) and not _is_of_new_log(one, other)


def began_before(one: Key, other: Key) -> bool:
    """Return whether one statement began before another by their times alone, wherever the two arrived.

    Always False for keys whose order is not that of arrival, and for numbers of batches, which start again. Places in a log
    are as good as times, but for those of a log that begins again.
    """
    if not (is_by_arrival(one) and is_by_arrival(other)):
        return False
    kind = kind_of_numbers(one[3])
    is_timed = kind in (_ALL, _TIME) and kind == kind_of_numbers(other[3])
    return is_timed and () != _beginning(one[3]) < _beginning(other[3]) and not _is_of_new_log(one, other)


def _is_of_new_log(one: Key, other: Key) -> bool:
    """Return whether a change has smaller numbers than another one as its log begins again, such as that of another server.

    Where arrival is the true order, its time says so; within one file of a log, smaller numbers are earlier ones.
    """
    numbers, others = _numbers(one), _numbers(other)
    second, earlier = (getattr(own, "second", None) for own in (numbers, others))
    is_later = second is not None and earlier is not None and second > earlier
    return is_by_arrival(one) and is_later and numbers[:1] != others[:1]


def is_in_log(change: Change) -> bool:
    """Return whether the numbers of a change are its place in a log, which no other statement has."""
    return bool(change.position) and rule_of(change.source.format).position == _IN_LOG


def began_together(one: Key, other: Key) -> bool:
    """Return whether two changes whose order is that of arrival have the same first number, which is usually their time."""
    return _beginning(one[3]) == _beginning(other[3]) != ()


def _beginning(numbers: tuple[int, ...]) -> tuple[int, ...]:
    """Return the first number, which is usually a time; of a place in a log, its file and its offset."""
    if isinstance(numbers, Numbers) and numbers.kind == _ALL and rule_of(numbers.source.format).position == _IN_LOG:
        return tuple(numbers[:2])
    return tuple(numbers[1:2] if kind_of_numbers(numbers) == _TIME else numbers[:1])


def _known(numbers: tuple[int, ...]) -> tuple[int, ...]:
    """Return the numbers that say the order, without what only sorts changes of one second."""
    return tuple(numbers[:2] if kind_of_numbers(numbers) == _TIME else numbers)


def _numbers(key: Key) -> tuple[int, ...]:
    return key[3] if is_by_arrival(key) else key[1]


def kind_of_numbers(numbers: tuple[int, ...]) -> str:
    """Return what kind of numbers these are; empty for a row of a full load."""
    return getattr(numbers, "kind", "")


def _kind(change: Change) -> str:
    if change.position is None:
        return _NONE
    return _BATCH if change.event_time is None and is_batched(change) else _ALL


def _is_place(place: Arrival | None) -> bool:
    """Return whether a place orders arrivals: an offset needs the partition of its topic, a line needs its file."""
    return place is not None and (_is_offset(place) or _is_line(place))


def _is_offset(place: Arrival) -> bool:
    return place.offset is not None and (place.topic is None or place.partition is not None)


def _is_line(place: Arrival) -> bool:
    return place.file is not None and place.line is not None


_NOWHERE: Final[Place] = ("", 0, 0, "", 0)


def _arrival(change: Change) -> Place:
    place = change.place or Arrival()
    if _is_line(place) and not _is_offset(place):
        # A file may hold records of several topics, in the order in which they were read.
        return "", 0, 0, file_order(place.file or ""), place.line or 0
    return _NOWHERE if place.offset is None else (place.topic or "", place.partition or 0, place.offset, "", 0)


@lru_cache(maxsize=_KEPT)
def file_order(name: str) -> str:
    """Return a file's name as it sorts: numbers in it have 20 digits.

    >>> file_order("part-9.jsonl") < file_order("part-10.jsonl")
    True
    """
    padded = _NUMBER.sub(lambda number: number[0].lstrip("0").zfill(_WIDTH), name)
    return padded if padded == name or not _has_zeros(name) else f"{padded} {name}"


def _has_zeros(name: str) -> bool:
    """Return whether a number in a name has leading zeros, so that another name may have the same numbers."""
    return any(len(number) > 1 and number.startswith("0") for number in _NUMBER.findall(name))


def split_key_change(change: Change) -> list[Change]:
    """Return an update of the primary key as a delete and an insert, and any other change unchanged.

    A merge by key needs the two; Debezium sends them, Canal sends one update. Both are spelled as their format spells a
    delete and an insert, and neither has `members`, which describe the one message. The insert also has the columns
    that only the row before the update states, if it is certain that they did not change.
    """
    before, after = change.before, change.after
    if change.op != "UPDATE" or not change.key or before is None or after is None:
        return [change]
    if all(same(before.get(name), after.get(name)) for name in change.key):
        return [change]
    bare = replace(change, operation=None, changed=None, members=None)
    return [
        replace(bare, op="DELETE", after=None),
        replace(bare, op="INSERT", before=None, after=_moved_row(change, before, after)),
    ]


def _moved_row(change: Change, before: Row, after: Row) -> Row:
    """Return the row after an update, with the columns that it does not state and that are as they were before it."""
    kept = before
    if not rule_of(change.source.format).lacks_unchanged:
        # A null before the update may stand for a value that the source did not log, and no null is unavailable.
        kept = {name: before[name] for name in change.unavailable or () if before.get(name) is not None}
    unchanged = {name: value for name, value in kept.items() if name not in after}
    return after | unchanged if unchanged else after


def shard(change: Change, count: int, *, choose: Callable[[int], int] = random.randrange) -> int:
    """Return the shard of a change, from 0 to `count` - 1, chosen by DataHub's rules.

    The shard depends on the values of the primary key; without a key it depends on the table's name,
    except in Tuple topics, where it is random (`choose`). Order holds only within a shard; it is not one of
    the tables that a route writes into one lake table, which are called shards, too. Source: DataHub
    message formats, "Sharding strategies". Raises `ValueError` unless `count` is an integer of at least 1.
    """
    if type(count) is not int or count < 1:
        raise ValueError(f"a number of shards from 1, not {shown(repr(count))[1:-1]}")
    image = change.before if change.before is not None else change.after
    table = [change.source.database, change.source.schema, change.source.table]
    if change.key and image is not None and all(name in image for name in change.key):
        return zlib.crc32(render([*table, *(_key_text(image[name]) for name in change.key)])) % count
    if rule_of(change.source.format).shard == "random":
        return choose(count)
    return zlib.crc32(render(table)) % count


def _key_text(value: Any) -> str:
    return render(value).decode() if type(value) in (dict, list, type(None)) else plain_text(value)
