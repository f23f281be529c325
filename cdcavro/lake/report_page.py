"""The page of a job's report: one file, which loads nothing. Each section says how much it leaves out."""

from __future__ import annotations

import re
import time
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Final

from cdcavro.errors import number_of
from cdcavro.lake.account import bound_text, bounded_name, read_account
from cdcavro.lake.job_state import replace_file
from cdcavro.lake.markup import Series, bar, chart, duration, moment, number, table, text, time_axis

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cdcavro.lake.account import Account, Point, Version

# If anything else got into the page by mistake, a browser would neither run nor load it.
_POLICY: Final = "default-src 'none'; style-src 'unsafe-inline'"
# How many of each are shown.
_TABLES: Final = 100
_VERSIONS: Final = 150
_STEPS: Final = 100
_REASONS: Final = 50
_BATCHES: Final = 50
# How many tables the title names, and how many characters of each; how long a path is that stands on one line.
_NAMED: Final = 2
_TITLE: Final = 60
_WHOLE: Final = 48
# What an error says of an option of the command line, which nobody reads a page with.
_OPTION: Final = re.compile(r" \(--[a-z-]+\)")
_OR_SETTING: Final = re.compile(r"--[a-z-]+, or (?=[a-z]+ in \[[a-z]+\]\)$)")
# What a version says of a column whose declared type is the same in other letters.
_RESPELLED: Final = re.compile(r"column .+ is ([^']+), and was ([^']+): stored the same way")
# What stands before what came.
_GOT: Final = ", got "
# A path is broken before a member or an index.
_MEMBER: Final = re.compile(r"(?<=.)(?=[.\[])")
# What operations are called, and their colours.
_OPERATIONS: Final = {
    "c": ("inserts", "green"),
    "u": ("updates", "blue"),
    "d": ("deletes", "red"),
    "r": ("loaded", "sky"),
    "t": ("truncates", "gold"),
    "x": ("drops", "rose"),
}
_PARTS: Final = {"convert": "blue", "state": "gold", "rejects": "red", "write": "green"}
_COLOURS: Final = ("sky", "rose")


def write_report(state: str | Path, file: str | Path, *, called: str | None = None) -> None:
    """Write the page on the job whose state is in a folder; at any time there is the old page or the new one, whole.

    `called` is what the page calls the folder, by default its path. Raises `FileError` for an account that no job
    wrote, and `OSError`.
    """
    folder = Path(state)
    replace_file(Path(file), page_of(read_account(folder), called or str(state), time.time()))


def page_of(account: Account, state: str, now: float) -> str:
    """Return the page on an account; `state` is what its folder is called."""
    sections = [
        _tiles(account),
        _waiting_tables(account),
        _lacking_tables(account),
        _charts(account),
        _tables(account),
        _versions(account),
        _rejects(account),
        _steps(account),
        _batches(account),
    ]
    body = "\n".join(section for section in sections if section)
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">'
        '<meta name="viewport" content="width=device-width,initial-scale=1">'
        f"<title>{escape(_title(account))}</title><style>{_STYLE}</style></head>\n<body>"
        f"<header><h1>{text(_title(account))}</h1>{_about(account, state, now)}</header>\n{body}\n</body></html>\n"
    )


def _title(account: Account) -> str:
    """Return what the page is about: the tables with the most rows, as many pipelines have a state of the same name."""
    ordered = sorted(account.rows, key=lambda name: (-sum(account.rows[name].values()), name))
    names = [bound_text(name, _TITLE) for name in ordered[:_NAMED]]
    more = [f"{number_of(len(ordered) - _NAMED, 'more table')}"] if len(ordered) > _NAMED else []
    return f"cdcavro sync: {', '.join([*names, *more])}" if names else "cdcavro sync"


def _about(account: Account, state: str, now: float) -> str:
    head = f'<p class="soft">The pipeline whose state is in {text(state)}, as it was at {moment(now)}. All times are UTC.</p>'
    if not account.points:
        return f"{head}<p>It has read nothing yet.</p>"
    first = account.points[0]
    which = f"Batch {first.first:,}" if first.first == account.last else f"Batches {first.first:,} to {account.last:,}"
    since = f"{which}, since {moment(first.began)}."
    return f'{head}<p class="soft">{since}</p>'


def _tiles(account: Account) -> str:
    """Return the numbers that come first."""
    counts = account.counts
    read, rejected = counts.get("read", 0), counts.get("rejected", 0)
    busy = sum(point.busy for point in account.points)
    rows = sum(sum(operations.values()) for operations in (*account.rows.values(), account.other_rows))
    share = f" <small>{rejected / read:.2%}</small>" if read and rejected else ""
    lag = account.points[-1].lag if account.points else None
    tiles = [
        *([] if lag is None else [(f"lag, {account.unit}", number(lag))]),
        ("messages read", number(read)),
        *((name, number(count)) for name, count in counts.items() if name not in ("read", "rejected") and count),
        ("rejected", f'<span class="{"bad" if rejected else ""}">{number(rejected)}</span>{share}'),
        ("rows", number(rows)),
        ("tables", number(len(account.rows))),
        ("messages/s", number(read / busy if busy else 0)),
        ("busy", duration(busy)),
    ]
    return f'<dl class="tiles">{"".join(f"<div><dt>{escape(bound_text(name))}</dt><dd>{value}</dd></div>" for name, value in tiles)}</dl>'


def _charts(account: Account) -> str:
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
            chart(escape(bound_text(f"Lag: {account.unit} left to read")), axis, [Series("", "red", lags)], hints)
        )
    names = list(dict.fromkeys([*_PARTS, *(name for point in points for name in point.seconds)]))
    parts = [
        Series(escape(bound_text(name)), _PARTS.get(name, _COLOURS[i % 2]), [_mean(point, name) for point in points])
        for i, name in enumerate(name for name in names if any(point.seconds.get(name) for point in points))
    ]
    if parts:
        seconds = chart("Seconds per batch", axis, parts, hints)
        drawn.append(f'<div class="stack">{seconds}</div>')
    note = ""
    if any(point.first != point.last for point in points):
        note = (
            '<p class="soft">Old batches are combined: a step shows their mean, and the lag after the last of them.</p>'
        )
    if axis.gaps:
        note += '<p class="soft">Gaps are pauses, which are not drawn at their length.</p>'
    return f'<h2>Over time</h2><div class="charts">{"".join(drawn)}</div>{note}'


def _mean(point: Point, part: str) -> float:
    return point.seconds.get(part, 0.0) / (point.last - point.first + 1)


def _when(seconds: float | None) -> str:
    return f'<span class="t">{moment(seconds)}</span>'


def _hint(point: Point, unit: str) -> str:
    counts = point.counts
    lag = "" if point.lag is None else f"&#10;lag {number(point.lag)} {escape(bound_text(unit))}"
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
        marks.setdefault(i, []).append(f"{escape(bound_text(one.table))}: version {one.version}")
    return [
        (i, "&#10;".join([*names[:5], *([f"{len(names) - 5:,} more"] if len(names) > 5 else [])]))  # noqa: PLR2004
        for i, names in marks.items()
    ]


def _tables(account: Account) -> str:
    """Return the rows of each table by operation, those with the most first."""
    if not account.rows:
        return ""
    ordered = sorted(account.rows.items(), key=lambda item: (-sum(item[1].values()), item[0]))
    kinds = [kind for kind in _OPERATIONS if any(one.get(kind) for one in (*account.rows.values(), account.other_rows))]
    most = sum(ordered[0][1].values())
    last = {}
    for one in account.versions:
        last[one.table] = one.version
    rows = [
        (
            f'<span class="name">{text(name)}</span>',
            bar([(_OPERATIONS[kind][1], one.get(kind, 0)) for kind in kinds], most),
            number(sum(one.values())),
            *[number(one.get(kind, 0)) for kind in kinds],
            number(last[name]) if name in last else "",
        )
        for name, one in ordered[:_TABLES]
    ]
    legend = "".join(f'<li class="{_OPERATIONS[kind][1]}">{_OPERATIONS[kind][0]}</li>' for kind in kinds)
    headings = ("table", "", "rows", *[_OPERATIONS[kind][0] for kind in kinds], "version")
    shown = table(headings, rows, numbers=range(2, len(headings)))
    left = sum(sum(one.values()) for _, one in ordered[_TABLES:])
    more = f"<p>{len(ordered) - _TABLES:,} more tables have {left:,} rows.</p>" if len(ordered) > _TABLES else ""
    if account.other_rows:
        more += f"<p>{sum(account.other_rows.values()):,} rows are of tables beyond the first {len(ordered):,}.</p>"
    if account.unparsed.count:
        more += f"<p>{text(_OR_SETTING.sub('', account.unparsed.sentence))}</p>"
    return f"<h2>Rows by table</h2><ul class=legend>{legend}</ul>{shown}{more}"


def _versions(account: Account) -> str:
    """Return the versions of tables, the newest first."""
    if not account.versions:
        return ""
    shown = account.versions[-_VERSIONS:][::-1]
    rows = [
        (
            f'<span class="name">{text(one.table)}</span>',
            number(one.version),
            f'<div class="wide">{_list([step for step in one.steps if not _is_respelling(step)])}{f"<code>{text(one.statement)}</code>" if one.statement else ""}</div>',
            _when(one.since),
            f"{number(one.batch)}, {_when(one.at)}",
        )
        for one in shown
    ]
    more = _more(account.version_count - len(shown), "older versions")
    headings = ("table", "version", "what changed", "made at the source", "came with batch")
    return f"<h2>Versions of tables</h2>{table(headings, rows, numbers=[1])}{more}"


def _list(steps: Sequence[str]) -> str:
    return f"<ul>{''.join(f'<li>{text(step)}</li>' for step in steps)}</ul>"


def _more(count: int, what: str) -> str:
    return f"<p>{count:,} {what} are not shown.</p>" if count > 0 else ""


def _rejects(account: Account) -> str:
    """Return the rejects by reason, those with the most first."""
    total = account.counts.get("rejected", 0)
    if not total:
        return ""
    shown = account.rejects[:_REASONS]
    rows = [
        (
            number(one.count),
            bar([("red", one.count)], total),
            f'<div class="wide">{text(_without_option(one.reason))}</div>',
            text(one.format) if one.format else "",
            _pointer(one.path),
            f'<div class="wide">{text(one.place)}{example}</div>',
        )
        for one in shown
        for example in [f"<br><code>{text(_without_option(one.example))}</code>" if one.example else ""]
    ]
    left = total - sum(one.count for one in shown)
    more = _more(left, "rejects with other reasons")
    headings = ("rejects", "", "reason", "format", "path", "one of them")
    return f"<h2>Rejects by reason</h2>{table(headings, rows, numbers=[0])}{more}"


def _is_respelling(step: str) -> bool:
    """Return whether a step says only that a type is declared in other letters, as rows do after a CREATE TABLE."""
    types = _RESPELLED.fullmatch(step)
    return types is not None and types[1].casefold() == types[2].casefold()


def _without_option(reason: str) -> str:
    """Return a reason without an option in what was expected; what came is as it came."""
    expected, got, came = reason.partition(_GOT)
    return _OPTION.sub("", expected) + got + came


def _pointer(path: str) -> str:
    """Return a path: a short one stands on one line, a longer one is broken between its members, or within a long one."""
    if len(path) <= _WHOLE:
        return f"<code class=t>{text(path)}</code>" if path else ""
    members = "<wbr>".join(
        f"<span{'' if len(member) > _WHOLE else ' class=t'}><bdi>{escape(member)}</bdi></span>"
        for member in _MEMBER.split(bound_text(path))
    )
    return f"<code>{members}</code>"


def _waiting_tables(account: Account) -> str:
    """Return the tables whose rows wait, and why."""
    if not account.waiting:
        return ""
    shown = list(account.waiting.items())[:_REASONS]
    rows = [(f'<span class="name">{text(name)}</span>', text(reason)) for name, reason in shown]
    more = _more(account.waiting_count - len(shown), "more tables")
    return f'<h2 class="bad">Tables with pending rows</h2>{table(("table", "reason"), rows)}{more}'


def _lacking_tables(account: Account) -> str:
    """Return the lake tables that lack rows, and what brings them back."""
    found = sorted({one.shown for one in account.lake.values() if one.shown is not None})
    if not found:
        return ""
    shown = [
        (f'<span class="name">{text(bounded_name(name))}</span>', text(bound_text(why)))
        for name, why in found[:_REASONS]
    ]
    more = _more(len(found) - len(shown), "more tables")
    return f'<h2 class="bad">Lake tables that lack rows</h2>{table(("table", "reason"), shown)}{more}'


def _steps(account: Account) -> str:
    """Return how lake tables changed, newest first."""
    if not account.steps:
        return ""
    shown = account.steps[-_STEPS:][::-1]
    rows = [(number(batch), text(step)) for batch, step in shown]
    return f"<details><summary>How lake tables changed, newest first ({len(shown):,})</summary>{table(('batch', 'step'), rows, numbers=[0])}</details>"


def _batches(account: Account) -> str:
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
    return f'<h2>Batches</h2><div class="dense">{shown}</div>{more}'


# Light or dark as the reader's system is, and no wider than the window.
_STYLE: Final = """
:root{color-scheme:light dark;--ink:#1c2530;--soft:#5b6776;--paper:#fff;--card:#f6f8fa;--line:#d8dee6;
--blue:#1769aa;--green:#12805c;--red:#c4471b;--sky:#3b9ad9;--gold:#b87a00;--rose:#a8508a}
@media screen and (prefers-color-scheme:dark){:root{--ink:#e4e9ef;--soft:#9aa6b4;--paper:#12171d;--card:#1a212a;--line:#323c48;
--blue:#5aa9e6;--green:#3fbf93;--red:#f0815a;--sky:#8accf2;--gold:#e0aa3e;--rose:#d58abb}}
*{box-sizing:border-box}
body{margin:0 auto;padding:1.5rem clamp(.75rem,3vw,2.5rem) 3rem;max-width:1500px;background:var(--paper);color:var(--ink);
font:15px/1.45 system-ui,-apple-system,"Segoe UI",Roboto,"Helvetica Neue",Arial,sans-serif}
h1{font-size:1.5rem;margin:0}h2{font-size:1.15rem;margin:2.2rem 0 .6rem}
p{margin:.4rem 0}.soft,figcaption small{color:var(--soft)}bdi,code{overflow-wrap:anywhere}.t bdi{overflow-wrap:normal}
code{font:.88em/1.4 ui-monospace,SFMono-Regular,Menlo,Consolas,monospace;white-space:pre-wrap}code.t,code .t{white-space:pre}
.tiles{display:grid;grid-template-columns:repeat(auto-fit,minmax(10rem,1fr));gap:.6rem;margin:1.2rem 0 0;padding:0}
.tiles div{background:var(--card);border:1px solid var(--line);border-radius:.5rem;padding:.55rem .75rem}
.tiles dt{color:var(--soft);font-size:.85rem}.tiles dd{margin:0;font-size:1.25rem;white-space:nowrap;font-variant-numeric:tabular-nums}
.tiles small{font-size:.8rem;color:var(--soft)}
.charts{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(100%,25rem),1fr));gap:1rem;margin-top:1.2rem}
figure{margin:0;padding:.8rem 1rem .6rem;background:var(--card);border:1px solid var(--line);border-radius:.5rem;min-width:0;container-type:inline-size}
figcaption{font-weight:600;margin-bottom:.2rem}figcaption small{font-weight:400}
.plot{position:relative;margin:.9rem 1.2rem 2.7rem 3.4rem}.plot svg{display:block;width:100%;height:12rem;overflow:visible}
.x,.y{position:absolute;color:var(--soft);font-size:.78rem;line-height:1.25;font-variant-numeric:tabular-nums}
.y{right:100%;top:0;height:12rem;width:3.2rem}.y span{position:absolute;right:.45rem;transform:translateY(50%);white-space:nowrap}
.x{left:0;right:0;top:12.4rem;text-align:center}.x span{position:absolute;transform:translateX(-50%);white-space:nowrap}
.grid,.mark,.edge{vector-effect:non-scaling-stroke;fill:none}.grid{stroke:var(--line);stroke-width:1}
.mark{stroke:var(--rose);stroke-width:1;stroke-dasharray:3 3}.edge{stroke:currentColor;stroke-width:1.6;fill:none}
.area{fill:currentColor;fill-opacity:.28}.stack .area{fill-opacity:.85}
.hints rect{fill:transparent}.hints rect:hover{fill:var(--ink);fill-opacity:.08}
.blue{color:var(--blue);fill:var(--blue)}.green{color:var(--green);fill:var(--green)}.red{color:var(--red);fill:var(--red)}
.sky{color:var(--sky);fill:var(--sky)}.gold{color:var(--gold);fill:var(--gold)}.rose{color:var(--rose);fill:var(--rose)}
path.edge{fill:none}
.legend{display:flex;flex-wrap:wrap;gap:.1rem 1rem;margin:.2rem 0;padding:0;list-style:none;font-size:.85rem}
.legend li::before{content:"";display:inline-block;width:.75em;height:.75em;margin-right:.4em;border-radius:2px;background:currentColor}
.legend li{color:var(--ink)}.legend li.blue::before{background:var(--blue)}.legend li.green::before{background:var(--green)}
.legend li.red::before{background:var(--red)}.legend li.sky::before{background:var(--sky)}
.legend li.gold::before{background:var(--gold)}.legend li.rose::before{background:var(--rose)}
.legend li.flag::before{width:0;height:1em;border-radius:0;border-left:1px dashed var(--rose);background:none;vertical-align:middle}
.frame{overflow-x:auto;border:1px solid var(--line);border-radius:.5rem;margin:.6rem 0;background:
linear-gradient(90deg,var(--paper) 40%,transparent) 0/2.5rem 100% no-repeat local,
linear-gradient(270deg,var(--paper) 40%,transparent) 100%/2.5rem 100% no-repeat local,
linear-gradient(90deg,var(--line),transparent) 0/1rem 100% no-repeat,
linear-gradient(270deg,var(--line),transparent) 100%/1rem 100% no-repeat}
table{border-collapse:collapse;width:100%;font-size:.9rem}
th,td{padding:.35rem .7rem;text-align:left;vertical-align:top;border-bottom:1px solid var(--line)}
th{background:var(--card);font-weight:600;white-space:nowrap}tbody tr:last-child td{border-bottom:0}
td{min-width:3rem;max-width:34rem}td ul{margin:0;padding-left:1.1rem}
.n{text-align:right;font-variant-numeric:tabular-nums;white-space:nowrap}
.bar{display:block;width:9rem;height:.75rem;margin-top:.3rem;background:var(--line);border-radius:2px}
.wide{min-width:16rem}.t{white-space:nowrap}.name{min-width:9rem;display:block}.bad{color:var(--red)}
.dense th,.dense td{padding:.3rem .45rem;min-width:0;font-size:.8rem}.dense th{white-space:normal;vertical-align:bottom}
summary{cursor:pointer;margin:.6rem 0}
@container (max-width:30rem){.x span:nth-child(even){display:none}}
@media (max-width:640px){.plot{margin-left:2.9rem}.y{width:2.8rem}.wide{min-width:12rem}
th,td{padding:.3rem .5rem}.bar{width:6rem}.charts{gap:.7rem}figure{padding:.7rem .6rem .4rem}}
@media (max-width:426px){.tiles{grid-template-columns:1fr 1fr}.tiles div:last-child:nth-child(odd){grid-column:span 2}}
@media print{:root{color-scheme:light}.frame{overflow:visible}.wide{min-width:0}.bar{width:4rem}figure,tr{break-inside:avoid}h2{break-after:avoid}.legend li::before{print-color-adjust:exact}
.dense th,.dense td{padding:.15rem .2rem;font-size:.6rem}}
"""
