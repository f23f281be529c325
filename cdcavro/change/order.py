"""The order of changes, and the shards within which that order holds."""

from __future__ import annotations

import random
import zlib
from typing import TYPE_CHECKING, Any, Final

from cdcavro.change.model import Arrival, Change, Source, replace
from cdcavro.errors import OrderError, shown
from cdcavro.exact.diff import same
from cdcavro.exact.jsontext import render
from cdcavro.exact.numbers import plain_text
from cdcavro.wire.formats import rule_of

if TYPE_CHECKING:
    from collections.abc import Callable

_NONE: Final = "no numbers"
_ALL: Final = "numbers"
_BATCH: Final = "the number of a batch without its time"


class Numbers(tuple[int, ...]):  # noqa: SLOT001  a subclass of tuple cannot have slots that hold anything
    """The numbers by which a change's source orders it, most significant first; empty if it has none.

    Comparing changes that have such numbers with changes that have none raises `OrderError`, because
    which comes first is not guessed. Attributes: `kind` (str), and the change's `source` (`Source`).
    """

    kind: str
    source: Source

    @classmethod
    def of(cls, change: Change) -> Numbers:
        """Return the numbers of a change, of its `position`."""
        numbers = cls(change.position or ())
        numbers.kind, numbers.source = _kind(change), change.source
        return numbers

    def __lt__(self, other: tuple[int, ...]) -> bool:
        """Return whether the numbers come before others of their kind."""
        return super().__lt__(self._checked(other))

    def __gt__(self, other: tuple[int, ...]) -> bool:
        """Return whether the numbers come after others of their kind."""
        return super().__gt__(self._checked(other))

    def __le__(self, other: tuple[int, ...]) -> bool:
        """Return whether the numbers do not come after others of their kind."""
        return super().__le__(self._checked(other))

    def __ge__(self, other: tuple[int, ...]) -> bool:
        """Return whether the numbers do not come before others of their kind."""
        return super().__ge__(self._checked(other))

    def _checked(self, other: tuple[int, ...]) -> tuple[int, ...]:
        if isinstance(other, Numbers) and other.kind != self.kind:
            kinds = " and some with ".join(sorted((self.kind, other.kind), reverse=True))
            raise OrderError(self.source.format, self.source.table, f"some with {kinds}")
        return other


Key = tuple[int, tuple[int, ...], tuple[Any, ...], int]


def order_key(change: Change) -> Key:
    """Return the key that sorts the changes of one table.

    Its parts are a phase (-1 for a statement read in a snapshot, which created the table; 0 for a row
    of a full load; 1 for any other change), the format's own numbers, the place of arrival, and the
    row's number in its message. A place is a topic, partition and offset, or an offset alone if
    everything comes from one unnamed topic, or a file and line; files are ordered by name, `part-10`
    before `part-9`.

    Raises `OrderError` for a change that has neither numbers nor a place, such as tombstones and
    heartbeats of most formats. Comparing the key of a change with numbers to that of one without
    raises it too: such changes can only be ordered by place, all with `position=None`.
    """
    if change.position is None and not _is_place(change.place):
        raise OrderError(change.source.format, change.source.table)
    if change.op == "SNAPSHOT":
        return 0, (), _arrival(change), change.row
    return -1 if change.snapshot else 1, Numbers.of(change), _arrival(change), change.row


def _kind(change: Change) -> str:
    if change.position is None:
        return _NONE
    return _BATCH if change.event_time is None and rule_of(change.source.format).batched else _ALL


def _is_place(place: Arrival | None) -> bool:
    """Return whether a place orders arrivals: an offset needs the partition of its topic, a line needs its file."""
    if place is None:
        return False
    if place.offset is not None:
        return place.topic is None or place.partition is not None
    return place.file is not None and place.line is not None


def _arrival(change: Change) -> tuple[Any, ...]:
    place = change.place or Arrival()
    return place.topic or "", place.partition or 0, place.offset or 0, place.file or "", place.line or 0


def split_key_change(change: Change) -> list[Change]:
    """Return an update of the primary key as a delete and an insert, and any other change unchanged.

    A merge by key needs the two; Debezium sends them, Canal sends one update. Both are spelled as their
    format spells a delete and an insert, and neither has `members`, which describe the one message.
    """
    before, after = change.before, change.after
    if change.op != "UPDATE" or not change.key or before is None or after is None:
        return [change]
    if not any([not same(before.get(name), after.get(name)) for name in change.key]):  # noqa: C419  no generator
        return [change]
    bare = replace(change, operation=None, changed=None, members=None)
    return [replace(bare, op="DELETE", after=None), replace(bare, op="INSERT", before=None)]


def shard(change: Change, count: int, *, choose: Callable[[int], int] = random.randrange) -> int:
    """Return the shard of a change, from 0 to `count` - 1, chosen by DataHub's rules.

    The shard depends on the values of the primary key; without a key it depends on the table's name,
    except in Tuple topics, where it is random (`choose`). Order holds only within a shard. Source:
    DataHub message formats, "Sharding strategies". Raises `ValueError` unless `count` is an integer
    of at least 1.
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
