"""The sections of the report: charts over time, and tables. Each says how much it leaves out."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING, Final

from cdcavro.lake.report.account import bounded
from cdcavro.lake.report.axis import time_axis
from cdcavro.lake.report.cells import bar, moment, number, table, text
from cdcavro.lake.report.charts import Series, chart

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cdcavro.lake.report.account import Account, Point, Version

_TABLES: Final = 100
_VERSIONS: Final = 150
_STEPS: Final = 100
_REASONS: Final = 50
_BATCHES: Final = 50
# What operations are called, and their colours.
OPERATIONS: Final = {
    "c": ("inserts", "green"),
    "u": ("updates", "blue"),
    "d": ("deletes", "red"),
    "r": ("loaded", "sky"),
    "t": ("truncates", "gold"),
    "x": ("drops", "rose"),
}
_PARTS: Final = {"convert": "blue", "state": "gold", "rejects": "red", "write": "green"}
_COLOURS: Final = ("sky", "rose")


def charts(account: Account) -> str:
    """Return the charts over time, nothing before the first batch."""
    points = account.points
    if not points:
        return ""
    axis, hints = time_axis(points), [_hint(point, account.unit) for point in points]
    rates = [point.counts.get("read", 0) / point.busy if point.busy else None for point in points]
    marks = _marks(points, account.versions)
    drawn = [chart("Messages per second", axis, [Series("", "blue", rates)], hints, marks)]
    if any(point.lag is not None for point in points):
        lags = [point.lag for point in points]
        drawn.append(
            chart(escape(bounded(f"Lag: {account.unit} left to read")), axis, [Series("", "red", lags)], hints)
        )
    names = list(dict.fromkeys([*_PARTS, *(name for point in points for name in point.seconds)]))
    parts = [
        Series(escape(bounded(name)), _PARTS.get(name, _COLOURS[i % 2]), [_mean(point, name) for point in points])
        for i, name in enumerate(name for name in names if any(point.seconds.get(name) for point in points))
    ]
    if parts:
        seconds = chart("Seconds per batch", axis, parts, hints)
        drawn.append(f'<div class="stack">{seconds}</div>')
    note = ""
    if any(point.first != point.last for point in points):
        note = '<p class="soft">Old batches are put together: a step is their mean, and the lag behind the last of them.</p>'
    if axis.gaps:
        note += '<p class="soft">Gaps are pauses, which are not drawn at their length.</p>'
    return f'<h2>Over time</h2><div class="charts">{"".join(drawn)}</div>{note}'


def _mean(point: Point, part: str) -> float:
    return point.seconds.get(part, 0.0) / (point.last - point.first + 1)


def _when(seconds: float | None) -> str:
    return f'<span class="t">{moment(seconds)}</span>'


def _hint(point: Point, unit: str) -> str:
    counts = point.counts
    lag = "" if point.lag is None else f"&#10;lag {number(point.lag)} {escape(bounded(unit))}"
    return (
        f"{_numbers(point)}, {moment(point.began)}&#10;read {number(counts.get('read', 0))}, "
        f"rejected {number(counts.get('rejected', 0))}, {number(point.rows)} rows&#10;{number(point.busy)} s{lag}"
    )


def _numbers(point: Point) -> str:
    return f"batch {point.first:,}" if point.first == point.last else f"batches {point.first:,} to {point.last:,}"


def _marks(points: Sequence[Point], versions: Sequence[Version]) -> list[tuple[int, str]]:
    """Return the points with a version that is not a table's first, and which that is."""
    marks: dict[int, list[str]] = {}
    later = sorted((one for one in versions if one.version > 1), key=lambda one: one.batch)
    i = 0
    for one in later:
        while i < len(points) - 1 and points[i].last < one.batch:
            i += 1
        marks.setdefault(i, []).append(f"{escape(bounded(one.table))}: version {one.version}")
    return [
        (i, "&#10;".join([*names[:5], *([f"{len(names) - 5:,} more"] if len(names) > 5 else [])]))  # noqa: PLR2004
        for i, names in marks.items()
    ]


def tables(account: Account) -> str:
    """Return the rows of each table by operation, those with the most first."""
    if not account.rows:
        return ""
    ordered = sorted(account.rows.items(), key=lambda item: (-sum(item[1].values()), item[0]))
    kinds = [kind for kind in OPERATIONS if any(one.get(kind) for one in (*account.rows.values(), account.other_rows))]
    most = sum(ordered[0][1].values())
    last = {}
    for one in account.versions:
        last[one.table] = one.version
    rows = [
        (
            f'<span class="name">{text(name)}</span>',
            bar([(OPERATIONS[kind][1], one.get(kind, 0)) for kind in kinds], most),
            number(sum(one.values())),
            *[number(one.get(kind, 0)) for kind in kinds],
            number(last[name]) if name in last else "",
        )
        for name, one in ordered[:_TABLES]
    ]
    legend = "".join(f'<li class="{OPERATIONS[kind][1]}">{OPERATIONS[kind][0]}</li>' for kind in kinds)
    headings = ("table", "", "rows", *[OPERATIONS[kind][0] for kind in kinds], "version")
    shown = table(headings, rows, numbers=range(2, len(headings)))
    left = sum(sum(one.values()) for _, one in ordered[_TABLES:])
    more = f"<p>{len(ordered) - _TABLES:,} more tables have {left:,} rows.</p>" if len(ordered) > _TABLES else ""
    if account.other_rows:
        more += f"<p>{sum(account.other_rows.values()):,} rows are of tables beyond the first {len(ordered):,}.</p>"
    return f"<h2>Rows by table</h2><ul class=legend>{legend}</ul>{shown}{more}"


def versions(account: Account) -> str:
    """Return the versions of tables, the newest first."""
    if not account.versions:
        return ""
    shown = account.versions[-_VERSIONS:][::-1]
    rows = [
        (
            f'<span class="name">{text(one.table)}</span>',
            number(one.version),
            f'<div class="wide">{_listed(one.steps)}{f"<code>{text(one.statement)}</code>" if one.statement else ""}</div>',
            _when(one.since),
            f"{number(one.batch)}, {_when(one.at)}",
        )
        for one in shown
    ]
    more = _more(account.version_count - len(shown), "older versions")
    headings = ("table", "version", "what changed", "made at the source", "came with batch")
    return f"<h2>Versions of tables</h2>{table(headings, rows, numbers=[1])}{more}"


def _listed(steps: Sequence[str]) -> str:
    return f"<ul>{''.join(f'<li>{text(step)}</li>' for step in steps)}</ul>"


def _more(count: int, what: str) -> str:
    return f"<p>{count:,} {what} are not shown.</p>" if count > 0 else ""


def rejects(account: Account) -> str:
    """Return the rejects by reason, those with the most first."""
    total = account.counts.get("rejected", 0)
    if not total:
        return ""
    shown = account.rejects[:_REASONS]
    rows = [
        (
            number(one.count),
            bar([("red", one.count)], total),
            f'<div class="wide">{text(one.reason)}</div>',
            text(one.format) if one.format else "",
            f"<code>{text(one.path)}</code>" if one.path else "",
            f'<div class="wide">{text(one.place)}{f"<br><code>{text(one.example)}</code>" if one.example else ""}</div>',
        )
        for one in shown
    ]
    left = total - sum(one.count for one in shown)
    more = _more(left, "rejects with other reasons")
    headings = ("rejects", "", "reason", "format", "path", "one of them")
    return f"<h2>Rejects by reason</h2>{table(headings, rows, numbers=[0])}{more}"


def waiting(account: Account) -> str:
    """Return the tables whose rows wait, and why."""
    if not account.waiting:
        return ""
    shown = list(account.waiting.items())[:_REASONS]
    rows = [(f'<span class="name">{text(name)}</span>', text(reason)) for name, reason in shown]
    more = _more(account.waiting_count - len(shown), "more tables")
    return f'<h2 class="bad">Tables whose rows wait</h2>{table(("table", "reason"), rows)}{more}'


def steps(account: Account) -> str:
    """Return how lake tables changed, newest first."""
    if not account.steps:
        return ""
    shown = account.steps[-_STEPS:][::-1]
    rows = [(number(batch), text(step)) for batch, step in shown]
    return f"<details><summary>How lake tables changed, newest first ({len(shown):,})</summary>{table(('batch', 'step'), rows, numbers=[0])}</details>"


def batches(account: Account) -> str:
    """Return the last batches, newest first."""
    points = account.points[-_BATCHES:][::-1]
    if not points:
        return ""
    counts = [name for name in account.counts if account.counts[name] or name in ("read", "written", "rejected")]
    parts = list(dict.fromkeys(name for point in points for name in point.seconds))
    rows = [
        (
            f"{point.first:,}" if point.first == point.last else f"{point.first:,} to {point.last:,}",
            _when(point.began),
            *[number(point.counts.get(name, 0)) for name in counts],
            number(point.rows),
            number(point.tables),
            number(point.counts.get("read", 0) / point.busy) if point.busy else "",
            "" if point.lag is None else number(point.lag),
            *[f"{point.seconds.get(name, 0):,.2f}" for name in parts],
            f"{point.busy:,.2f}",
        )
        for point in points
    ]
    headings = ["batch", "began", *counts, "rows", "tables", "messages/s", f"lag, {account.unit}"]
    headings += [*[f"{name}, s" for name in parts], "all, s"]
    shown = table(headings, rows, numbers=[0, *range(2, len(headings))])
    more = _more(
        (account.points[0].first != points[-1].first and points[-1].first - account.points[0].first) or 0,
        "older batches",
    )
    return f"<h2>Batches</h2>{shown}{more}"
