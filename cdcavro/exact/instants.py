"""Instants, days, times of day and local times: conversion between texts and counts since the epoch.

A spelling is converted exactly or not at all. An instant is a number of microseconds (UTC); one that is finer than
the unit of a format is rounded down when it is spelled, to the latest instant that the format can express.

The texts of SQL are `YYYY-MM-DD`, `HH:mm:ss` and `YYYY-MM-DD HH:mm:ss`, the times with an optional fraction. Their
counts are in units of 10 to the power of `-digits` seconds. With a `precision`, the fraction of a text has
that many digits; without one it has all `digits`, or none if they are all zero.
"""

from __future__ import annotations

import re
from datetime import UTC, date, datetime, timedelta, timezone, tzinfo
from difflib import get_close_matches
from functools import lru_cache
from typing import Any, Final
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError, available_timezones

from cdcavro.errors import shown
from cdcavro.exact.numbers import MAX_LONG, MIN_LONG

SECOND: Final = 1_000_000
MILLISECOND: Final = 1_000
_LONGEST_NAME: Final = 64
_INTEGER: Final = re.compile(r"-?(?:0|[1-9][0-9]{0,18})", re.ASCII)
_LOCAL: Final = re.compile(
    r"([0-9]{4})-([0-9]{2})-([0-9]{2})[T ]([0-9]{2}):([0-9]{2}):([0-9]{2})(?:\.([0-9]{1,6}))?", re.ASCII
)
# Those on days that every month has.
_USUAL_LOCAL: Final = re.compile(
    r"(?!0000)[0-9]{4}-(?:0[1-9]|1[0-2])-(?:0[1-9]|1[0-9]|2[0-8])[T ]"
    r"(?:[01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](?:\.[0-9]{1,6})?",
    re.ASCII,
)
_ZONED: Final = re.compile(r"(.{19,26})(?:Z|([+-])([01][0-9]|2[0-3]):([0-5][0-9]))", re.ASCII)
# Kinds of zones whose clocks change at most once in an hour.
REGULAR: Final = frozenset({ZoneInfo, timezone})
_HOUR_SHOWN: Final = len("YYYY-MM-DDTHH")
_SIXTY: Final = 60
_PAIRS: Final = tuple(f"{count:02}" for count in range(_SIXTY))
_SPELLED: Final = {f":{text}": count for count, text in enumerate(_PAIRS)}
_PART_SHOWN: Final = len(".ffffff")
_HOUR: Final = 3_600 * SECOND
_DAY_SECONDS: Final = 86_400
_DAY: Final = _DAY_SECONDS * SECOND
_DAYS_TO_2100: Final = 47_482
_MARGIN: Final = 3
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND: Final = timedelta(microseconds=1)
_DATE: Final = r"([0-9]{4})-([0-9]{2})-([0-9]{2})"
_TIME: Final = r"([0-9]{2}):([0-9]{2}):([0-9]{2})(?:\.([0-9]{1,9}))?"
_DAY_TEXT: Final = re.compile(_DATE, re.ASCII)
_TIME_TEXT: Final = re.compile(rf"(-?)([0-9]{{0,8}}){_TIME}", re.ASCII)
_LOCAL_TEXT: Final = re.compile(rf"{_DATE} {_TIME}", re.ASCII)
_INSTANT_TEXT: Final = re.compile(rf"{_DATE}T{_TIME}Z", re.ASCII)
_SECONDS_TEXT: Final = re.compile(r"(0|[1-9][0-9]{0,11})(?:\.([0-9]{1,9}))?", re.ASCII)
_EPOCH_ORDINAL: Final = date(1970, 1, 1).toordinal()
_MAX_HOUR: Final = 23


def check_zone(zone: object) -> None:
    """Raise `TypeError` for anything but a time zone or None; the name of a zone is refused, too."""
    if zone is None or type(zone) in REGULAR:
        return
    if not isinstance(zone, tzinfo):
        raise TypeError(f"a zone is a zoneinfo.ZoneInfo or another tzinfo, not {shown(repr(zone))[1:-1]}")
    # Used directly, a pytz zone has the local mean time of its place, such as UTC+8:06 in Shanghai.
    if hasattr(zone, "localize"):
        raise TypeError(f"a zone as of zoneinfo.ZoneInfo, not {type(zone).__module__}.{type(zone).__qualname__}")


def find_zone(name: str) -> ZoneInfo:
    """Return the time zone with a name. Raises `ValueError`, with the nearest name that a zone has."""
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError) as error:
        known = {zone.lower(): zone for zone in available_timezones()}
        near = get_close_matches(name.lower()[:_LONGEST_NAME], known, n=1, cutoff=0.8)
        hint = f": did you mean {known[near[0]]}?" if near else ""
        raise ValueError(f"no time zone is called {shown(name)}{hint}") from error


def from_count(value: Any, unit: int) -> int | None:
    """Return the instant of a count, a number or its text, of units of `unit` microseconds since the epoch.

    Return None for anything else, for a negative count (DataHub's full loads send -1) and beyond 64 bits.

    >>> from_count("1609344671", SECOND)
    1609344671000000
    """
    if type(value) is str and _INTEGER.fullmatch(value):
        value = int(value)
    if type(value) is not int or value < 0 or value * unit > MAX_LONG:
        return None
    return value * unit


def to_count(instant: int | None, unit: int) -> int | None:
    """Return an instant as a count of units of `unit` microseconds, rounded down; None beyond 64 bits.

    >>> to_count(1_500_000, SECOND), to_count(1_500_000, MILLISECOND)
    (1, 1500)
    """
    return None if instant is None or not MIN_LONG <= instant <= MAX_LONG else instant // unit


def is_local(value: Any) -> bool:
    """Return whether a value is the text of a local time: without a zone, and on a day that exists.

    >>> is_local("2020-02-29 00:00:00"), is_local("0000-00-00 00:00:00")
    (True, False)
    """
    return type(value) is str and (_USUAL_LOCAL.fullmatch(value) is not None or _parse_local(value) is not None)


def from_local(value: Any, zone: tzinfo | None) -> int | None:
    """Return the instant of a local time `YYYY-MM-DDTHH:mm:ss[.ffffff]` in a zone.

    Return None without a zone, for anything else, and where the zone has that time twice or never
    (summer time): nothing is guessed. Raises `TypeError` for a pytz zone.
    """
    if type(zone) not in REGULAR:
        check_zone(zone)
    if zone is None or type(value) is not str:
        return None
    start = _hour_start(value[:_HOUR_SHOWN], zone) if type(zone) in REGULAR else None
    within = None if start is None else _within_hour(value)
    return _instant(value, zone) if start is None or within is None else start + within


def _within_hour(text: str) -> int | None:
    """Return the microseconds since the full hour of a local time; None if it is spelled in any other form."""
    minute, second, part = _SPELLED.get(text[13:16]), _SPELLED.get(text[16:19]), text[19:]
    if minute is None or second is None:
        return None
    count = (minute * _SIXTY + second) * SECOND
    if not part:
        return count
    if part[0] != "." or len(part) > _PART_SHOWN or not part.isascii() or not part[1:].isdigit():
        return None
    return count + int(part[1:].ljust(_PART_SHOWN - 1, "0"))


def from_text(value: Any, zone: tzinfo | None) -> int | None:
    """Return the instant of a text as in `from_local` followed by `Z` or an offset; without either, in a zone.

    >>> from_text("1970-01-01T08:00:01+08:00", None), from_text("1970-01-01T08:00:01", None)
    (1000000, None)
    """
    match = _ZONED.fullmatch(value) if type(value) is str else None
    if match is None:
        return from_local(value, zone)
    offset = timedelta(hours=int(match[3] or 0), minutes=int(match[4] or 0))
    return from_local(match[1], timezone(-offset if match[2] == "-" else offset))


def to_local(instant: int | None, zone: tzinfo | None) -> str | None:
    """Return an instant as the local time `YYYY-MM-DDTHH:mm:ss` in a zone, rounded down to the second.

    Return None where `from_local` could not read it back.
    """
    if type(zone) not in REGULAR:
        check_zone(zone)
    if instant is None or zone is None:
        return None
    ahead = _offset_in_hour(instant // _HOUR, zone) if type(zone) in REGULAR else None
    if ahead is None:
        return _local(instant, zone)
    days, seconds = divmod(instant // SECOND + ahead, _DAY_SECONDS)
    minutes, second = divmod(seconds, _SIXTY)
    hour, minute = divmod(minutes, _SIXTY)
    return f"{_iso_day(days)}T{_PAIRS[hour]}:{_PAIRS[minute]}:{_PAIRS[second]}"


def to_local_microseconds(instant: int | None, zone: tzinfo | None) -> str | None:
    """Return an instant as the local time `YYYY-MM-DD HH:mm:ss.ffffff` in a zone; None as in `to_local`.

    >>> to_local_microseconds(1_500_000, UTC)
    '1970-01-01 00:00:01.500000'
    """
    local = to_local(instant, zone)
    return None if local is None or instant is None else f"{local.replace('T', ' ')}.{instant % SECOND:06}"


def to_utc(instant: int | None) -> str | None:
    """Return an instant as the text `YYYY-MM-DDTHH:mm:ss.ffffffZ`; None as in `to_local`.

    >>> to_utc(1_500_000)
    '1970-01-01T00:00:01.500000Z'
    """
    local = to_local(instant, UTC)
    return None if local is None or instant is None else f"{local}.{instant % SECOND:06}Z"


@lru_cache(maxsize=4096)
def _hour_start(hour: str, zone: tzinfo) -> int | None:
    """Return the instant at which an hour `YYYY-MM-DDTHH` of a zone begins; None if the clocks change within it."""
    first, last = _instant(f"{hour}:00:00", zone), _instant(f"{hour}:59:59", zone)
    return first if first is not None and last == first + _HOUR - SECOND else None


@lru_cache(maxsize=4096)
def _offset_in_hour(hour: int, zone: tzinfo) -> int | None:
    """Return how many seconds a zone is ahead of UTC in an hour since the epoch; None if its clocks change near it."""
    offsets = set()
    for instant in (hour * _HOUR, (hour + 1) * _HOUR - SECOND):
        text = _local(instant, zone)
        if text is None:
            return None
        offsets.add((datetime.fromisoformat(text).replace(tzinfo=UTC) - _EPOCH) // _MICROSECOND - instant)
    return offsets.pop() // SECOND if len(offsets) == 1 else None


@lru_cache(maxsize=4096)
def _iso_day(days: int) -> str:
    return (_EPOCH + timedelta(days=days)).strftime("%Y-%m-%d").rjust(10, "0")


def _instant(text: str, zone: tzinfo | None) -> int | None:
    """Return the instant of a local time in a zone; None where the zone does not have it exactly once."""
    naive = _parse_local(text)
    if naive is None:
        return None
    local = naive.replace(tzinfo=zone)
    if local.utcoffset() != local.replace(fold=1).utcoffset():
        return None
    return (local - _EPOCH) // _MICROSECOND


def _local(instant: int, zone: tzinfo) -> str | None:
    """Return the local time of an instant in a zone; None where the zone does not have it exactly once."""
    instant -= instant % SECOND
    try:
        local = (_EPOCH + timedelta(microseconds=instant)).astimezone(zone)
    except OverflowError:
        return None
    text = local.strftime("%Y-%m-%dT%H:%M:%S").rjust(19, "0")
    return text if _instant(text, zone) == instant else None


def _parse_local(text: str) -> datetime | None:
    match = _LOCAL.fullmatch(text)
    if match is None:
        return None
    year, month, day, hour, minute, second = map(int, match.group(1, 2, 3, 4, 5, 6))
    try:
        return datetime(year, month, day, hour, minute, second, int((match[7] or "").ljust(6, "0")))  # noqa: DTZ001  local
    except ValueError:
        return None


@lru_cache(maxsize=16)
def steady_stretches(zone: tzinfo) -> tuple[tuple[int, int, int], ...]:
    """Return the stretches of local time in which a zone keeps its distance from UTC, from 1970 to 2100.

    Each is its first and last microsecond and the distance, in microseconds. They leave out the days around each change
    of the clocks, so that each local time in them exists exactly once. Empty for a zone whose clocks may change at any
    time (see `REGULAR`).
    """
    if type(zone) not in REGULAR:
        return ()
    pieces: list[tuple[int, int, int]] = []
    begin, last = 0, None
    for day in range(_DAYS_TO_2100 + 1):
        ahead = (_EPOCH + timedelta(days=day)).astimezone(zone).utcoffset()
        if day == _DAYS_TO_2100 or ahead != last:
            if last is not None and day - begin > _MARGIN:
                offset = last // _MICROSECOND
                pieces.append(((begin + 1) * _DAY + offset, (day - 2) * _DAY + offset, offset))
            begin, last = day, ahead
    return tuple(pieces)


def day_text(count: Any) -> str | None:
    """Return a number of days since the epoch as a date; None before the year 1 and after 9999.

    >>> day_text(19782)
    '2024-02-29'
    """
    if type(count) is not int or not 1 <= count + _EPOCH_ORDINAL <= date.max.toordinal():
        return None
    return date.fromordinal(count + _EPOCH_ORDINAL).isoformat()


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
    if part is None or extra_hours.startswith("0") or int(minutes) >= _SIXTY or int(seconds) >= _SIXTY:
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
    day, fraction = day_text(seconds // _DAY_SECONDS), _fraction(part, digits, precision)
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
        return date(int(year), int(month), int(day)).toordinal() - _EPOCH_ORDINAL
    except ValueError:
        return None


def _seconds(match: re.Match[str]) -> int | None:
    days = _days(match[1], match[2], match[3])
    hours, minutes, seconds = int(match[4]), int(match[5]), int(match[6])
    if days is None or hours > _MAX_HOUR or minutes >= _SIXTY or seconds >= _SIXTY:
        return None
    return days * _DAY_SECONDS + hours * 3600 + minutes * 60 + seconds


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
