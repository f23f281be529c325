"""Axes: times of batches along a line on which pauses are short, and numbers with round marks."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from math import floor, log10
from typing import TYPE_CHECKING, Final

from cdcavro.lake.report.account import is_pause
from cdcavro.lake.report.cells import moment

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cdcavro.lake.report.account import Point

WIDTH: Final = 1000
_MARKS: Final = 6
_DAY: Final = "%Y-%m-%d"
_LINES: Final = 4
_SHORTEST: Final = 0.001
# How wide a gap is, and how far apart marks are, as a share of the line.
_GAP: Final = 0.02
_APART: Final = 0.16
_APART_WITH_DATES: Final = 0.22
_ROUND: Final = (
    *(1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800),
    *(3600, 7200, 10_800, 21_600, 43_200, 86_400),
    *(86_400 * days for days in (2, 5, 10, 20, 50, 100, 200, 500, 1000, 10_000)),
)


@dataclass(frozen=True)
class TimeAxis:
    """Where each point is drawn: `slots` are its ends from 0 to 1,000; `gaps` the indexes of points behind a pause."""

    slots: list[tuple[float, float]]
    gaps: frozenset[int]
    marks: list[tuple[float, str]]


def time_axis(points: Sequence[Point]) -> TimeAxis:
    """Return the axis of points, each of which reaches to where the next begins, unless there is a pause."""
    begins = [point.began for point in points]
    gaps = {i for i, pair in enumerate(pairwise(points), 1) if is_pause(*pair)}
    ends = [
        max(point.ended if i in gaps or i == len(points) else begins[i], point.began + _SHORTEST)
        for i, point in enumerate(points, 1)
    ]
    taken = sum(end - begin for begin, end in zip(begins, ends, strict=True))
    gap = _GAP * taken
    scale = WIDTH / (taken + gap * len(gaps))
    slots, at = [], 0.0
    for i, (begin, end) in enumerate(zip(begins, ends, strict=True)):
        at += gap * scale if i in gaps else 0
        slots.append((at, at + (end - begin) * scale))
        at = slots[-1][1]
    return TimeAxis(slots, frozenset(gaps), _marks(list(zip(begins, ends, strict=True)), slots, taken))


def _marks(
    times: Sequence[tuple[float, float]], slots: Sequence[tuple[float, float]], taken: float
) -> list[tuple[float, str]]:
    """Return round times and where they are; the date stands with the first, or with all if they are of several days."""
    step = next((one for one in _ROUND if taken / one <= _MARKS), _ROUND[-1])
    days = {moment(time, _DAY) for time in (times[0][0], times[-1][1])}
    apart = (_APART if len(days) == 1 else _APART_WITH_DATES) * WIDTH
    found: list[tuple[float, float]] = []
    for (begin, end), (left, right) in zip(times, slots, strict=True):
        first = -(-begin // step) * step
        for i in range(min(int((end - first) // step) + 1, _MARKS) if first <= end else 0):
            time = first + i * step
            at = left + (time - begin) / (end - begin) * (right - left)
            if not found or at - found[-1][0] >= apart:
                found.append((at, time))
    if len(found) < 2:  # noqa: PLR2004  one mark says nothing of the distance
        found = [(slots[0][0], times[0][0]), (slots[-1][1], times[-1][1])]
        step = 1
    form = "%H:%M:%S" if step < 60 else "%H:%M"  # noqa: PLR2004
    return [
        (at, moment(time, form) if len(days) == 1 and i else f"{moment(time, form)}<br>{moment(time, _DAY)}")
        for i, (at, time) in enumerate(found)
    ]


def round_marks(most: float) -> list[float]:
    """Return round numbers from 0 to one that is not less than `most`.

    >>> round_marks(7)
    [0, 2, 4, 6, 8]
    """
    if most <= 0:
        return [0, 1]
    power = 10.0 ** (floor(log10(most)) - 1)
    size = next(power * i for i in (1, 2, 5, 10, 20, 50) if most / (power * i) <= _LINES)
    count = int(-(-most // size))
    marks = [round(size * i, 9) for i in range(count + 1)]
    return [int(mark) if mark == int(mark) else mark for mark in marks]
