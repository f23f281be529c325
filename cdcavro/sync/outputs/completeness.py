"""Completeness of tables: up to which time of their source all changes are in, in what a pipeline has written.

A table is complete up to the earliest time that the lanes have reached which may have its changes: all partitions of the
topics in which there were any. A rejected message may be a change of any table of its topic, so the lane stays where it
was before it, until the message is read again and written. While rows of a table wait, its mark stays, too. What was made
at the time of a mark itself may still come: clocks tick in seconds or milliseconds, and a mark says what was before it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

from cdcavro.sync.reading.checkpoint import Checkpoint

if TYPE_CHECKING:
    from collections.abc import Container, Iterable, Mapping
    from pathlib import Path

    from cdcavro.table.ddl.steps import TableName

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND: Final = timedelta(microseconds=1)


@dataclass
class _Reached:
    """How far a lane was read: times are in microseconds since the epoch, None where there are none."""

    until: int | None = None
    # How many rejects are open, and where the lane was before the first of them.
    rejects: int = 0
    held: int | None = None


@dataclass
class _Table:
    """What is known of a table."""

    topics: frozenset[str] = frozenset()
    # Its mark once the rows of the last batch are written, and before that; and how many changes came late.
    goal: int | None = None
    mark: int | None = None
    late: int = 0


@dataclass
class Completeness:
    """The marks of tables, by their numbers, and how far lanes were read; `is_held` says that rejects hold marks back."""

    is_held: bool = True
    _lanes: dict[tuple[str, int], _Reached] = field(default_factory=dict)
    _tables: dict[int, _Table] = field(default_factory=dict)

    @classmethod
    def of(cls, facts: Mapping[str, Any], *, is_held: bool = True) -> Completeness:
        """Return what the facts of a batch say, as `facts` had them."""
        lanes = {(topic, partition): _Reached(*own) for topic, partition, *own in facts.get("reached", ())}
        tables = {number: _Table(frozenset(topics), *own) for number, topics, *own in facts.get("complete", ())}
        return cls(is_held, lanes, tables)

    @property
    def facts(self) -> dict[str, Any]:
        """What is to be remembered, as values of JSON."""
        lanes = [[*lane, one.until, one.rejects, one.held] for lane, one in sorted(self._lanes.items())]
        tables = [
            [number, sorted(one.topics), one.goal, one.mark, one.late] for number, one in sorted(self._tables.items())
        ]
        return {"reached": lanes, "complete": tables}

    def take(
        self,
        lanes: Iterable[Any],
        tables: Mapping[int, Mapping[str, Any]],
        partitions: Mapping[str, Iterable[int]],
        now: datetime,
    ) -> None:
        """Take what a batch says of lanes and tables, as tasks say it, which is written from now on.

        `partitions` are those that topics have; `now` is when the batch was begun, and no mark is later.
        """
        for topic, partition, until, rejects, before, mended in lanes:
            one = self._lanes.setdefault((topic, partition), _Reached())
            if rejects and not one.rejects:
                one.held = _latest(one.until, before)
            one.until = _latest(one.until, until)
            one.rejects = max(0, one.rejects + rejects - mended)
        for topic, numbers in partitions.items():
            for number in numbers:
                self._lanes.setdefault((topic, number), _Reached())
        for number, facts in tables.items():
            table = self._tables.setdefault(number, _Table())
            table.topics |= {*facts.get("topics", ())}
            table.late += facts.get("late", 0)
        reached, latest = self._reached(), (now - _EPOCH) // _MICROSECOND
        for table in self._tables.values():
            marks = [reached[topic] for topic in table.topics if topic in reached]
            known = [one for one in marks if one is not None]
            # It stays as it was while a lane has no time.
            table.goal = min(*known, latest) if known and len(known) == len(marks) else table.mark

    def _reached(self) -> dict[str, int | None]:
        """Return up to when all lanes of each topic were read; None for one of which a lane has no time."""
        found: dict[str, int | None] = {}
        for (topic, _), one in self._lanes.items():
            mark = one.held if one.rejects and self.is_held else one.until
            before = found.get(topic, mark)
            found[topic] = None if mark is None or before is None else min(mark, before)
        return found

    def settle(self, waiting: Container[int]) -> None:
        """Note that the rows of the last batch are written, but those of tables that wait."""
        for number, table in self._tables.items():
            if number not in waiting:
                table.mark = table.goal

    def servers(self, number: int, table: TableName) -> list[str]:
        """Return a topic of each server whose topics are called like it and then like a table, if changes came from several.

        That is how Debezium names topics. A topic that ends in other words says nothing of servers.
        """
        tail = f".{table.schema or table.database}.{table.table}"
        topics = self._tables[number].topics if number in self._tables else ()
        found = sorted(topic for topic in topics if topic.endswith(tail))
        return found if len(found) > 1 else []

    def late(self, number: int) -> int:
        """Return how many changes of a table came behind its mark, though they were made before it."""
        return self._tables[number].late if number in self._tables else 0

    @property
    def goals(self) -> dict[int, int]:
        """The marks that tables have once the rows of the last batch are written."""
        return {number: one.goal for number, one in self._tables.items() if one.goal is not None}

    @property
    def marks(self) -> dict[int, int]:
        """Up to when all changes of tables are in, in microseconds since the epoch; without those of which it is not known."""
        return {number: one.mark for number, one in self._tables.items() if one.mark is not None}


def _latest(*times: int | None) -> int | None:
    return max((one for one in times if one is not None), default=None)


def instant_text(mark: int) -> str:
    """Return an instant as ISO 8601 in UTC.

    >>> instant_text(1_700_000_000_500_000)
    '2023-11-14T22:13:20.500000+00:00'
    """
    return (_EPOCH + mark * _MICROSECOND).isoformat()


def partitions_of(folder: Path, batch: int) -> dict[str, list[int]]:
    """Return the partitions of all topics that are read, by the plan of a batch in a checkpoint; none if files are."""
    if not (folder / "offsets" / str(batch)).exists():
        return {}
    end = Checkpoint(folder).end_of(batch)[0] or {}
    return {topic: [*map(int, own)] for topic, own in end.items() if isinstance(own, dict)}
