"""The account of a job: what became of its messages since its first batch, in bounded space.

Old batches are put together, so that what is known of a year has no more points than what is known of an
hour; of names, reasons and statements, which come from messages, there are so many and so long ones.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Final

from msgspec import Struct, field

from cdcavro.errors import visible

if TYPE_CHECKING:
    from collections.abc import Mapping

_POINTS: Final = 300
# So many of the last batches are left as they are.
_RECENT: Final = 60
_TABLES: Final = 10_000
_VERSIONS: Final = 1_000
_STEPS: Final = 200
_REASONS: Final = 200
_WAITING: Final = 200
_NAME: Final = 200
# Between two batches there is a pause if it is so many times as long as they, and a minute more.
_PAUSE: Final = 10
_MINUTE: Final = 60
_TEXT: Final = 300
_STEPS_EACH: Final = 12


class Reject(Struct, array_like=True):
    """Rejects with one format, path and reason: how many, where one of them is, and the reason of that one."""

    format: str
    path: str
    reason: str
    count: int
    place: str = ""
    example: str = ""


class Version(Struct):
    """A version of a table.

    Attributes: `table` (str), what it is called in the lake; `number` (int), that of the table; `version` (int);
    `batch` (int) and `at` (float), the batch that brought it and when that was, in seconds since the epoch; `since`
    (float or None), since when it holds, as the source says; `steps` (list of str), what led to it; `statement` (str).
    """

    table: str
    number: int
    version: int
    batch: int
    at: float
    since: float | None
    steps: list[str]
    statement: str = ""


class BatchFacts(Struct):
    """What a batch did: `began` and `ended` are in seconds since the epoch, `seconds` says how long its parts took."""

    number: int
    began: float
    ended: float
    counts: dict[str, int]
    operations: dict[str, dict[str, int]] = {}
    seconds: dict[str, float] = {}
    steps: list[str] = []
    waiting: dict[str, str] = {}
    rejects: list[Reject] = []
    versions: list[Version] = []


class Point(Struct):
    """One batch or several, one behind another: `first` and `last` are their numbers.

    `rows` is the number of rows, `tables` the greatest number of tables in one of them, `lag` how much was left to read
    behind the last of which that is known.
    """

    first: int
    last: int
    began: float
    ended: float
    counts: dict[str, int]
    rows: int
    tables: int
    seconds: dict[str, float]
    lag: int | None = None

    @property
    def busy(self) -> float:
        """How many seconds the batches took."""
        return sum(self.seconds.values())


class Account(Struct):
    """What became of all messages.

    Attributes: `counts` (dict), the messages by what became of them; `rows` (dict from table to a dict), the rows by
    operation, and `other_rows`, those of tables beyond 10,000; `points` (list of `Point`); `versions` (list of
    `Version`), the newest, and `version_count`; `steps` (list of pairs of a batch and a str), the newest changes of
    lake tables; `rejects` (list of `Reject`), by count, and `other_rejects`, those with other reasons; `waiting`, tables
    whose rows wait, and why, and `waiting_count`, how many there are; `unit` (str), what a lag counts.
    """

    format: int = 1
    counts: dict[str, int] = {}
    rows: dict[str, dict[str, int]] = {}
    other_rows: dict[str, int] = {}
    points: list[Point] = []
    versions: list[Version] = []
    version_count: int = 0
    steps: list[tuple[int, str]] = []
    rejects: list[Reject] = field(default_factory=list)
    other_rejects: int = 0
    waiting: dict[str, str] = {}
    waiting_count: int = 0
    unit: str = "messages"

    @property
    def last(self) -> int:
        """The number of the last batch, -1 if there was none."""
        return self.points[-1].last if self.points else -1

    def add(self, facts: BatchFacts) -> None:
        """Add a batch; one that is there already was run again, and did the same."""
        if facts.number <= self.last:
            return
        _count(self.counts, facts.counts)
        for name, operations in facts.operations.items():
            label = bounded_name(name)
            is_room = label in self.rows or len(self.rows) < _TABLES
            _count(self.rows.setdefault(label, {}) if is_room else self.other_rows, operations)
        rows = sum(sum(operations.values()) for operations in facts.operations.values())
        counts, tables = dict(facts.counts), len(facts.operations)
        ends = facts.number, facts.number, facts.began, facts.ended
        self.points.append(Point(*ends, counts, rows, tables, dict(facts.seconds)))
        _thin_out(self.points)
        self._add_versions(facts.versions)
        self._add_rejects(facts.rejects, facts.counts.get("rejected", 0))
        self.note_written(facts.number, facts.steps, facts.waiting)

    def note_written(self, batch: int, steps: list[str], waiting: dict[str, str]) -> None:
        """Note how lake tables changed, and which do not take their rows."""
        self.steps = [*self.steps, *((batch, bounded(step)) for step in steps[-_STEPS:])][-_STEPS:]
        self.waiting_count = len(waiting)
        self.waiting = {bounded_name(name): bounded(reason) for name, reason in list(waiting.items())[:_WAITING]}

    def note_lag(self, batch: int, lag: int, unit: str) -> None:
        """Note how much was left to read behind a batch."""
        point = next((one for one in reversed(self.points) if one.first <= batch), None)
        if point is not None and point.last == batch:
            point.lag, self.unit = lag, unit

    def _add_versions(self, versions: list[Version]) -> None:
        known = {(one.number, one.version): i for i, one in enumerate(self.versions)}
        self.version_count += max(0, len(versions) - _VERSIONS)
        for one in versions[-_VERSIONS:]:
            place = known.get((one.number, one.version))
            own = Version(
                bounded_name(one.table),
                one.number,
                one.version,
                one.batch,
                one.at,
                one.since,
                _first(one.steps),
                bounded(one.statement),
            )
            if place is None:
                self.versions.append(own)
                self.version_count += 1
            else:
                # Nothing was written with it, so it could become another.
                self.versions[place] = own
        del self.versions[:-_VERSIONS]

    def _add_rejects(self, rejects: list[Reject], count: int) -> None:
        """Add the rejects of a batch, of which there are `count`; those whose reason is not listed are counted."""
        known = {(one.format, one.path, one.reason): one for one in self.rejects}
        for one in rejects:
            own = Reject(bounded_name(one.format), bounded(one.path), bounded(one.reason), 0, "", bounded(one.example))
            found = known.setdefault((own.format, own.path, own.reason), own)
            found.place = found.place or bounded(one.place)
            found.count += one.count
        self.other_rejects += count - sum(one.count for one in rejects)
        self.rejects = sorted(known.values(), key=lambda one: -one.count)
        self.other_rejects += sum(one.count for one in self.rejects[_REASONS:])
        del self.rejects[_REASONS:]


def bounded_name(name: str) -> str:
    """Return a name of at most 200 characters that can be printed; two names that are not the same stay so.

    >>> len(bounded_name("a" * 10_000))
    200
    """
    text = bounded(name[: _NAME + 1], _NAME + 1)
    if len(name) <= _NAME and len(text) <= _NAME:
        return text
    digest = f"... ({len(name):,} characters, {hashlib.sha256(name.encode(errors='surrogatepass')).hexdigest()[:12]})"
    return text[: _NAME - len(digest)] + digest


def bounded(text: str, most: int = _TEXT) -> str:
    r"""Return a text with what cannot be seen escaped, and cut where it is long.

    >>> bounded("a\u202eb")
    'a\\u202eb'
    """
    return visible(text if len(text) <= most else text[:most] + "...")


def _first(steps: list[str]) -> list[str]:
    left = len(steps) - _STEPS_EACH
    return [*map(bounded, steps[:_STEPS_EACH]), *([f"... and {left:,} more"] if left > 0 else [])]


def _count(sums: dict[str, int], more: Mapping[str, int]) -> None:
    for name, count in more.items():
        sums[name] = sums.get(name, 0) + count


def is_pause(one: Point, other: Point) -> bool:
    """Return whether much more time went by between two points than their batches took."""
    count = one.last - one.first + other.last - other.first + 2
    usual = (one.ended - one.began + other.ended - other.began) / count
    return other.began - one.ended > _MINUTE + _PAUSE * usual


def _thin_out(points: list[Point]) -> None:
    """Put two neighbours together, those that are the fewest batches, if there are too many points."""
    while len(points) > _POINTS:
        old = range(len(points) - _RECENT - 1)
        i = min(old, key=lambda i: (is_pause(points[i], points[i + 1]), points[i + 1].last - points[i].first))
        points[i : i + 2] = [_together(points[i], points[i + 1])]


def _together(one: Point, other: Point) -> Point:
    counts, seconds = dict(one.counts), dict(one.seconds)
    _count(counts, other.counts)
    for part, taken in other.seconds.items():
        seconds[part] = round(seconds.get(part, 0) + taken, 3)
    return Point(
        one.first,
        other.last,
        one.began,
        other.ended,
        counts,
        one.rows + other.rows,
        max(one.tables, other.tables),
        seconds,
        one.lag if other.lag is None else other.lag,
    )
