"""Charts over time as inline SVG: it stretches with the page, and what is written beside it does not."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from cdcavro.lake.report.axis import WIDTH, round_marks
from cdcavro.lake.report.cells import short

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cdcavro.lake.report.axis import TimeAxis

HEIGHT: Final = 200


@dataclass(frozen=True)
class Series:
    """Values along the axis: `name` is what the legend says, `kind` the class of the colour; None is unknown."""

    name: str
    kind: str
    values: Sequence[float | None]


def chart(
    title: str, axis: TimeAxis, series: Sequence[Series], hints: Sequence[str], marks: Sequence[tuple[int, str]] = ()
) -> str:
    """Return a chart of series that stand one on another.

    `hints` says something of each point where it is pointed at; `marks` are points at which something happened.
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
    said = {i: f"&#10;{hint}" for i, hint in marks}
    rects = "".join(
        f'<rect x="{left:.1f}" width="{right - left:.1f}" height="{HEIGHT}"><title>{hint}{said.get(i, "")}</title></rect>'
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
