"""Days, times of day and local times as counts since the epoch, to text and back; exactly or not at all.

Texts are those of SQL: `YYYY-MM-DD`, `HH:mm:ss` and `YYYY-MM-DD HH:mm:ss`, a fraction behind. A
count is of units of which a second has 10 to the power of `digits`. With a `precision`, a text has
so many digits in its fraction; without one, all `digits` if any is not zero, and otherwise none.
"""

from __future__ import annotations

import re
from datetime import date
from typing import Any, Final

_DATE: Final = r"([0-9]{4})-([0-9]{2})-([0-9]{2})"
_TIME: Final = r"([0-9]{2}):([0-9]{2}):([0-9]{2})(?:\.([0-9]{1,9}))?"
_DAY_TEXT: Final = re.compile(_DATE, re.ASCII)
_TIME_TEXT: Final = re.compile(rf"(-?)([0-9]{{0,8}}){_TIME}", re.ASCII)
_LOCAL_TEXT: Final = re.compile(rf"{_DATE} {_TIME}", re.ASCII)
_INSTANT_TEXT: Final = re.compile(rf"{_DATE}T{_TIME}Z", re.ASCII)
_SECONDS_TEXT: Final = re.compile(r"(0|[1-9][0-9]{0,11})(?:\.([0-9]{1,9}))?", re.ASCII)
_EPOCH: Final = date(1970, 1, 1).toordinal()
_DAY: Final = 86_400
_MINUTE: Final = 60
_MAX_HOUR: Final = 23


def day_text(count: Any) -> str | None:
    """Return a number of days since the epoch as a date; None before year 1 and after 9999.

    >>> day_text(19782)
    '2024-02-29'
    """
    if type(count) is not int or not 1 <= count + _EPOCH <= date.max.toordinal():
        return None
    return date.fromordinal(count + _EPOCH).isoformat()


def day_count(text: Any) -> int | None:
    """Undo `day_text`."""
    found = _DAY_TEXT.fullmatch(text) if type(text) is str else None
    return None if found is None else _days(*found.groups())


def time_text(count: Any, digits: int, precision: int | None = None) -> str | None:
    """Return a time of day, or a span of time, which may be negative and longer than a day.

    >>> time_text(-3_020_399_000_000, 6, 0)
    '-838:59:59'
    """
    if type(count) is not int:
        return None
    seconds, part = divmod(abs(count), 10**digits)
    fraction = _fraction(part, digits, precision)
    if fraction is None:
        return None
    return f"{'-' if count < 0 else ''}{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}{fraction}"


def time_count(text: Any, digits: int) -> int | None:
    """Undo `time_text`."""
    found = _TIME_TEXT.fullmatch(text) if type(text) is str else None
    if found is None:
        return None
    sign, more, hours, minutes, seconds, fraction = found.groups()
    part = _part(fraction, digits)
    if part is None or more.startswith("0") or int(minutes) >= _MINUTE or int(seconds) >= _MINUTE:
        return None
    count: int = (int(more + hours) * 3600 + int(minutes) * 60 + int(seconds)) * 10**digits + part
    if not sign:
        return count
    return -count or None


def local_text(count: Any, digits: int, precision: int | None = None) -> str | None:
    """Return a local time; None before year 1 and after 9999.

    >>> local_text(1709251199999, 3, 3)
    '2024-02-29 23:59:59.999'
    """
    if type(count) is not int:
        return None
    seconds, part = divmod(count, 10**digits)
    day, fraction = day_text(seconds // _DAY), _fraction(part, digits, precision)
    if day is None or fraction is None:
        return None
    return f"{day} {seconds // 3600 % 24:02}:{seconds // 60 % 60:02}:{seconds % 60:02}{fraction}"


def local_count(text: Any, digits: int) -> int | None:
    """Undo `local_text`."""
    found = _LOCAL_TEXT.fullmatch(text) if type(text) is str else None
    seconds = None if found is None else _seconds(found)
    part = None if found is None else _part(found[7], digits)
    return None if seconds is None or part is None else seconds * 10**digits + part


def to_seconds_text(text: Any) -> str | None:
    """Return an instant `YYYY-MM-DDTHH:mm:ss[.fraction]Z` as OMS does: seconds, a fraction without zeros at its end.

    None before 1970, which OMS does not document.

    >>> to_seconds_text("2024-03-31T01:30:00.100000Z")
    '1711848600.1'
    """
    found = _INSTANT_TEXT.fullmatch(text) if type(text) is str else None
    seconds = None if found is None else _seconds(found)
    if found is None or seconds is None or seconds < 0:
        return None
    fraction = (found[7] or "").rstrip("0")
    return f"{seconds}.{fraction}" if fraction else str(seconds)


def instant_text(text: Any, precision: int | None = None) -> str | None:
    """Undo `to_seconds_text`; `precision` says how many digits the fraction had, if that is known."""
    found = _SECONDS_TEXT.fullmatch(text) if type(text) is str else None
    local = None if found is None else local_text(int(found[1]), 0, 0)
    if found is None or local is None:
        return None
    fraction = (found[2] or "").rstrip("0")
    if precision is not None:
        if len(fraction) > precision:
            return None
        fraction = fraction.ljust(precision, "0")
    return local.replace(" ", "T") + (f".{fraction}Z" if fraction else "Z")


def _days(year: str, month: str, day: str) -> int | None:
    try:
        return date(int(year), int(month), int(day)).toordinal() - _EPOCH
    except ValueError:
        return None


def _seconds(found: re.Match[str]) -> int | None:
    days = _days(found[1], found[2], found[3])
    hours, minutes, seconds = int(found[4]), int(found[5]), int(found[6])
    if days is None or hours > _MAX_HOUR or minutes >= _MINUTE or seconds >= _MINUTE:
        return None
    return days * _DAY + hours * 3600 + minutes * 60 + seconds


def _fraction(part: int, digits: int, precision: int | None) -> str | None:
    """Return a fraction with its point, empty without digits; None if it has more digits than the precision."""
    text = f"{part:0{digits}}" if digits else ""
    if precision is None:
        precision = digits if part else 0
    if text[precision:].strip("0"):
        return None
    shown = text[:precision].ljust(precision, "0")
    return f".{shown}" if shown else ""


def _part(fraction: str | None, digits: int) -> int | None:
    text = fraction or ""
    if text[digits:].strip("0"):
        return None
    return int(text[:digits].ljust(digits, "0") or "0")
