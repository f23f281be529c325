"""The report of a job as a page of its own: one file, which loads nothing."""

from __future__ import annotations

import time
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Final

from cdcavro.lake.job_state import replace_file
from cdcavro.lake.report import parts
from cdcavro.lake.report.account import bounded
from cdcavro.lake.report.account_file import read_account
from cdcavro.lake.report.cells import duration, moment, number, text
from cdcavro.lake.report.style import STYLE

if TYPE_CHECKING:
    from cdcavro.lake.report.account import Account

# Whatever were to stand in the page by mistake, a browser would run and load nothing.
_POLICY: Final = "default-src 'none'; style-src 'unsafe-inline'"


def write_report(state: str | Path, file: str | Path, *, called: str | None = None) -> None:
    """Write the page on the job whose state is in a folder; there is the old page or the new one, whole.

    `called` is what the page calls the folder, by default its path.

    Raises `FileError` for an account that no job wrote, and `OSError`.
    """
    folder = Path(state)
    replace_file(Path(file), page_of(read_account(folder), called or str(state), time.time()))


def page_of(account: Account, state: str, now: float) -> str:
    """Return the page on an account; `state` is what its folder is called."""
    sections = [
        _tiles(account),
        parts.waiting(account),
        parts.charts(account),
        parts.tables(account),
        parts.versions(account),
        parts.rejects(account),
        parts.steps(account),
        parts.batches(account),
    ]
    body = "\n".join(section for section in sections if section)
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">'
        '<meta name="viewport" content="width=device-width,initial-scale=1">'
        f"<title>cdcavro sync</title><style>{STYLE}</style></head>\n<body>"
        f"<header><h1>cdcavro sync</h1>{_about(account, state, now)}</header>\n{body}\n</body></html>\n"
    )


def _about(account: Account, state: str, now: float) -> str:
    said = f'<p class="soft">The pipeline of {text(state)}, as it was at {moment(now)}. All times are UTC.</p>'
    if not account.points:
        return f"{said}<p>It has read nothing yet.</p>"
    first = account.points[0]
    which = f"Batch {first.first:,}" if first.first == account.last else f"Batches {first.first:,} to {account.last:,}"
    since = f"{which}, since {moment(first.began)}."
    return f'{said}<p class="soft">{since}</p>'


def _tiles(account: Account) -> str:
    """Return the numbers that come first."""
    counts = account.counts
    read, rejected = counts.get("read", 0), counts.get("rejected", 0)
    busy = sum(point.busy for point in account.points)
    rows = sum(sum(operations.values()) for operations in (*account.rows.values(), account.other_rows))
    share = f" <small>{rejected / read:.2%}</small>" if read and rejected else ""
    tiles = [
        ("messages read", number(read)),
        *((name, number(count)) for name, count in counts.items() if name not in ("read", "rejected") and count),
        ("rejected", f'<span class="{"bad" if rejected else ""}">{number(rejected)}</span>{share}'),
        ("rows", number(rows)),
        ("tables", number(len(account.rows))),
        ("messages/s", number(read / busy if busy else 0)),
        ("busy", duration(busy)),
    ]
    lag = account.points[-1].lag if account.points else None
    if lag is not None:
        tiles.append((f"lag, {account.unit}", number(lag)))
    return f'<dl class="tiles">{"".join(f"<div><dt>{escape(bounded(name))}</dt><dd>{value}</dd></div>" for name, value in tiles)}</dl>'
