"""Conversion of days, times of day and local times between SQL's text and counts since the epoch.

A value is converted exactly or not at all: where that fails, the result is None. Texts are those of
SQL: `YYYY-MM-DD`, `HH:mm:ss` and `YYYY-MM-DD HH:mm:ss`, the times with an optional fraction. A count
is in units of 10 to the power of `-digits` seconds. With a `precision`, the fraction of a text has
that many digits; without one it has all `digits`, or none if they are all zero.
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
    """Return a number of days since the epoch as a date; None before the year 1 and after 9999.

    >>> day_text(19782)
    '2024-02-29'
    """
    if type(count) is not int or not 1 <= count + _EPOCH <= date.max.toordinal():
        return None
    return date.fromordinal(count + _EPOCH).isoformat()


def day_count(text: Any) -> int | None:
    """Return the number of days since the epoch of a date; the inverse of `day_text`."""
    match = _DAY_TEXT.fullmatch(text) if type(text) is str else None
    return None if match is None else _days(*match.groups())


def time_text(count: Any, digits: int, precision: int | None = None) -> str | None:
    """Return the text of a time of day, or of a duration, which may be negative or longer than a day.

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
    """Return the count of a time of day or a duration; the inverse of `time_text`."""
    match = _TIME_TEXT.fullmatch(text) if type(text) is str else None
    if match is None:
        return None
    sign, extra_hours, hours, minutes, seconds, fraction = match.groups()
    part = _part(fraction, digits)
    if part is None or extra_hours.startswith("0") or int(minutes) >= _MINUTE or int(seconds) >= _MINUTE:
        return None
    count: int = (int(extra_hours + hours) * 3600 + int(minutes) * 60 + int(seconds)) * 10**digits + part
    if not sign:
        return count
    return -count or None


def local_text(count: Any, digits: int, precision: int | None = None) -> str | None:
    """Return the text of a local time; None before the year 1 and after 9999.

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
    """Return the count of a local time; the inverse of `local_text`."""
    match = _LOCAL_TEXT.fullmatch(text) if type(text) is str else None
    seconds = None if match is None else _seconds(match)
    part = None if match is None else _part(match[7], digits)
    return None if seconds is None or part is None else seconds * 10**digits + part


def to_seconds_text(text: Any) -> str | None:
    """Return an instant `YYYY-MM-DDTHH:mm:ss[.fraction]Z` as OMS spells it: seconds, with no trailing zeros.

    Return None before 1970, for which OMS documents no spelling.

    >>> to_seconds_text("2024-03-31T01:30:00.100000Z")
    '1711848600.1'
    """
    match = _INSTANT_TEXT.fullmatch(text) if type(text) is str else None
    seconds = None if match is None else _seconds(match)
    if match is None or seconds is None or seconds < 0:
        return None
    fraction = (match[7] or "").rstrip("0")
    return f"{seconds}.{fraction}" if fraction else str(seconds)


def instant_text(text: Any, precision: int | None = None) -> str | None:
    """Return the instant of a text in OMS's seconds, the inverse of `to_seconds_text`.

    `precision` is the number of digits that the fraction had, if that is known.
    """
    match = _SECONDS_TEXT.fullmatch(text) if type(text) is str else None
    local = None if match is None else local_text(int(match[1]), 0, 0)
    if match is None or local is None:
        return None
    fraction = (match[2] or "").rstrip("0")
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


def _seconds(match: re.Match[str]) -> int | None:
    days = _days(match[1], match[2], match[3])
    hours, minutes, seconds = int(match[4]), int(match[5]), int(match[6])
    if days is None or hours > _MAX_HOUR or minutes >= _MINUTE or seconds >= _MINUTE:
        return None
    return days * _DAY + hours * 3600 + minutes * 60 + seconds


def _fraction(part: int, digits: int, precision: int | None) -> str | None:
    """Return a fraction with its point, or an empty text without digits; None if it exceeds the precision."""
    text = f"{part:0{digits}}" if digits else ""
    if precision is None:
        precision = digits if part else 0
    if text[precision:].strip("0"):
        return None
    digits_shown = text[:precision].ljust(precision, "0")
    return f".{digits_shown}" if digits_shown else ""


def _part(fraction: str | None, digits: int) -> int | None:
    text = fraction or ""
    if text[digits:].strip("0"):
        return None
    return int(text[:digits].ljust(digits, "0") or "0")
