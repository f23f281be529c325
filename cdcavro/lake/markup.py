"""Markup of a page: texts, numbers, times, tables, bars, and charts over time. Whatever comes from messages is escaped.

Charts are inline SVG, which stretches with the page while texts do not.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from html import escape
from itertools import pairwise
from math import floor, log10
from typing import TYPE_CHECKING, Final

from cdcavro.lake.account import bound_text, is_pause

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from cdcavro.lake.account import Point

_THOUSAND: Final = 1000
_MINUTE: Final = 60
_HOUR: Final = 3600
_DAY: Final = 86_400


def text(value: str) -> str:
    r"""Return a text as HTML: nothing in it is markup, is invisible, or changes the direction of what stands beside it.

    >>> text("<b>\u202e")
    '<bdi>&lt;b&gt;\\u202e</bdi>'
    """
    return f"<bdi>{escape(bound_text(value))}</bdi>"


def number(value: float) -> str:
    """Return a number with separators; a small one has digits behind the point.

    >>> number(1234567), number(0.25), number(12.3456)
    ('1,234,567', '0.25', '12.3')
    """
    if isinstance(value, int) or value >= _THOUSAND:
        return f"{value:,.0f}"
    return f"{value:,.1f}" if value >= 1 or value == 0 else f"{value:.2g}"


def short(value: float) -> str:
    """Return a number for an axis.

    >>> [short(value) for value in (0, 0.5, 2500, 40_000, 1_200_000)]
    ['0', '0.5', '2,500', '40 k', '1.2 M']
    """
    for unit, size in (("G", 1e9), ("M", 1e6), ("k", 1e3)):
        if value >= size and value >= 1e4:  # noqa: PLR2004  four digits are read as they are
            return f"{value / size:.4g} {unit}"
    return f"{value:,.4g}" if value < _THOUSAND else f"{value:,.0f}"


def duration(seconds: float) -> str:
    """Return a duration in its two largest units.

    >>> duration(0.25), duration(75), duration(90_000)
    ('0.25 s', '1 min 15 s', '1 d 1 h')
    """
    if seconds < _MINUTE:
        return f"{number(round(seconds, 2))} s"
    if seconds < _HOUR:
        return f"{seconds // _MINUTE:.0f} min {seconds % _MINUTE:.0f} s"
    if seconds < _DAY:
        return f"{seconds // _HOUR:.0f} h {seconds % _HOUR // _MINUTE:.0f} min"
    return f"{seconds // _DAY:,.0f} d {seconds % _DAY // _HOUR:.0f} h"


def moment(seconds: float | None, form: str = "%Y-%m-%d %H:%M:%S") -> str:
    """Return a time in UTC; an empty text for none, and for one that no calendar has.

    >>> moment(0)
    '1970-01-01 00:00:00'
    """
    try:
        return "" if seconds is None else datetime.fromtimestamp(seconds, UTC).strftime(form)
    except (OverflowError, ValueError, OSError):
        return ""


def table(headings: Sequence[str], rows: Iterable[Sequence[str]], *, numbers: Sequence[int] = ()) -> str:
    """Return a table whose cells are HTML; the columns at `numbers` are aligned to the right."""
    right = ['<{0} class="n">' if i in numbers else "<{0}>" for i in range(len(headings))]

    def line(cells: Sequence[str], tag: str) -> str:
        return (
            "<tr>"
            + "".join(f"{form.format(tag)}{cell}</{tag}>" for form, cell in zip(right, cells, strict=True))
            + "</tr>"
        )

    body = "\n".join(line(row, "td") for row in rows)
    # The frame can be reached and scrolled by the keyboard.
    return f'<div class="frame" tabindex="0"><table><thead>{line([escape(bound_text(one)) for one in headings], "th")}</thead>\n<tbody>{body}</tbody></table></div>'


def bar(parts: Sequence[tuple[str, float]], whole: float) -> str:
    """Return a bar of parts, each with its class; its length is their share of the whole."""
    drawn, left = [], 0.0
    for name, value in parts:
        width = 100 * value / whole if whole else 0
        if width:
            drawn.append(f'<rect class="{name}" x="{left:.2f}" width="{width:.2f}" height="1"/>')
        left += width
    return f'<svg class="bar" viewBox="0 0 100 1" preserveAspectRatio="none" aria-hidden="true">{"".join(drawn)}</svg>'


# Of a chart, in units of its own.
WIDTH: Final = 1000
HEIGHT: Final = 200
_MARKS: Final = 6
_DATE: Final = "%Y-%m-%d"
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
    """Times of batches along a line on which pauses are short."""

    # Where each point begins and ends, from 0 to 1,000.
    slots: list[tuple[float, float]]
    # The indexes of the points behind a pause.
    gaps: frozenset[int]
    # Where a time is written, and its text.
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
    """Return round times and where they are; the first has its date, or each has if they are of several days."""
    step = next((one for one in _ROUND if taken / one <= _MARKS), _ROUND[-1])
    days = {moment(time, _DATE) for time in (times[0][0], times[-1][1])}
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
        (at, moment(time, form) if len(days) == 1 and i else f"{moment(time, form)}<br>{moment(time, _DATE)}")
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


@dataclass(frozen=True)
class Series:
    """Values along the axis."""

    # What the legend says.
    name: str
    # The class of the colour.
    kind: str
    # None where the value is unknown.
    values: Sequence[float | None]


def chart(
    title: str, axis: TimeAxis, series: Sequence[Series], hints: Sequence[str], marks: Sequence[tuple[int, str]] = ()
) -> str:
    """Return a chart of series that stand one on another.

    `hints` are shown where the pointer is on a point; `marks` are points at which something happened.
    """
    sums = [sum(one.values[i] or 0 for one in series) for i in range(len(axis.slots))]
    ticks = round_marks(max(sums, default=0))
    top = ticks[-1]
    grid = "".join(
        f'<line class="grid" x1="0" x2="{WIDTH}" y1="{_y(tick, top)}" y2="{_y(tick, top)}"/>' for tick in ticks
    )
    base: list[float] = [0.0] * len(axis.slots)
    areas = []
    for one in series:
        areas.append(f'<path class="area {one.kind}" d="{_area(axis, one.values, base, top)}"/>')
        base = [below + (value or 0) for below, value in zip(base, one.values, strict=True)]
    edge = _edge(
        axis, [None if all(one.values[i] is None for one in series) else sums[i] for i in range(len(sums))], top
    )
    is_stacked = len(series) > 1
    line = "" if is_stacked else f'<path class="edge {series[0].kind}" d="{edge}"/>'
    flags = "".join(
        f'<line class="mark" x1="{axis.slots[i][0]:.1f}" x2="{axis.slots[i][0]:.1f}" y1="0" y2="{HEIGHT}"/>'
        for i, _ in marks
    )
    events = {i: f"&#10;{hint}" for i, hint in marks}
    rects = "".join(
        f'<rect x="{left:.1f}" width="{right - left:.1f}" height="{HEIGHT}"><title>{hint}{events.get(i, "")}</title></rect>'
        for i, ((left, right), hint) in enumerate(zip(axis.slots, hints, strict=True))
    )
    legend = "".join(f'<li class="{one.kind}">{one.name}</li>' for one in series) if is_stacked else ""
    if marks:
        legend += '<li class="flag">new version of a table</li>'
    return (
        f"<figure><figcaption>{title}</figcaption>{f'<ul class=legend>{legend}</ul>' if legend else ''}"
        f'<div class="plot"><div class="y">{_y_labels(ticks)}</div>'
        f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" preserveAspectRatio="none" role="img" aria-label="{title}">'
        f'{grid}{"".join(areas)}{line}{flags}<g class="hints">{rects}</g></svg>'
        f'<div class="x">{_x_labels(axis)}</div></div></figure>'
    )


def _y(value: float, top: float) -> str:
    return f"{HEIGHT - HEIGHT * value / top:.1f}"


def _area(axis: TimeAxis, values: Sequence[float | None], base: Sequence[float], top: float) -> str:
    """Return the path of steps between a base and the values upon it."""
    drawn = []
    for (left, right), value, below in zip(axis.slots, values, base, strict=True):
        if value:
            drawn.append(f"M{left:.1f} {_y(below, top)}V{_y(below + value, top)}H{right:.1f}V{_y(below, top)}z")
    return "".join(drawn)


def _edge(axis: TimeAxis, values: Sequence[float | None], top: float) -> str:
    """Return the line along the steps, broken at pauses and where nothing is known."""
    drawn: list[str] = []
    is_open = False
    for i, ((left, right), value) in enumerate(zip(axis.slots, values, strict=True)):
        if value is None:
            is_open = False
            continue
        if is_open and i not in axis.gaps:
            drawn.append(f"V{_y(value, top)}H{right:.1f}")
        else:
            drawn.append(f"M{left:.1f} {_y(value, top)}H{right:.1f}")
        is_open = True
    return "".join(drawn)


def _y_labels(ticks: Sequence[float]) -> str:
    return "".join(f'<span style="bottom:{100 * tick / ticks[-1]:.1f}%">{short(tick)}</span>' for tick in ticks)


def _x_labels(axis: TimeAxis) -> str:
    return "".join(f'<span style="left:{at / WIDTH * 100:.1f}%">{label}</span>' for at, label in axis.marks)
