"""Markup of a page: texts, numbers, times, tables and bars. What comes from messages is escaped, whatever it holds."""

from __future__ import annotations

from datetime import UTC, datetime
from html import escape
from typing import TYPE_CHECKING, Final

from cdcavro.lake.report.account import bound_text

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

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
