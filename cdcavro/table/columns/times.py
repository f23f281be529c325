"""Times in columns: readers of JSON values as days, microseconds or milliseconds; exactly, or `MISFIT`.

Each `read_…` returns the reader of one rule. A time without a zone is a local time, a time with one is
an instant: one becomes the other only through the source's zone, and not where summer time makes a
local time ambiguous or skips it. What a number means depends on the format: `COUNTS` has by name
functions from a value to its instant in microseconds, or to None.

Source: OMS data formats, "Data formats used when data is transmitted" and its changes with V3.3.0;
DataHub message formats, "Field types"; Debezium reference, "Temporal types".
"""

from __future__ import annotations

import re
from datetime import UTC, date, datetime, timedelta, timezone
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final
from zoneinfo import ZoneInfo

from cdcavro.exact.instants import MILLISECOND, SECOND, from_local, to_local
from cdcavro.exact.numbers import number_text
from cdcavro.table.columns.readers import MISFIT

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import tzinfo

    from cdcavro.table.columns.readers import Reader

    Count = Callable[[Any], int | None]

_CLOCK: Final = r"(?:[01][0-9]|2[0-3]):[0-5][0-9](?::[0-5][0-9](?:\.[0-9]{1,6}0{0,3})?)?"
_LOCAL_TEXT: Final = rf"[0-9]{{4}}-[0-9]{{2}}-[0-9]{{2}}[T ]{_CLOCK}"
_DATE: Final = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}", re.ASCII)
_TIME: Final = re.compile(_CLOCK, re.ASCII)
_LOCAL: Final = re.compile(_LOCAL_TEXT, re.ASCII)
_LOCAL_OR_DATE: Final = re.compile(rf"[0-9]{{4}}-[0-9]{{2}}-[0-9]{{2}}(?:[T ]{_CLOCK})?", re.ASCII)
_ZONED: Final = re.compile(
    rf"(?P<local>{_LOCAL_TEXT}) ?(?:"
    r"(?P<offset>Z|[+-][0-9]{2}(?::?[0-5][0-9])?)"
    r"|\[(?P<id>[A-Za-z0-9_+/-]{1,64})\]|(?<= )(?P<name>[A-Za-z0-9_+/-]{1,64}))",
    re.ASCII,
)
# A zone of the time zone database, neither another file on the machine nor a zone that counts leap seconds.
_REGION: Final = re.compile(r"(?!posix/|right/)[A-Za-z_]+(?:/[A-Za-z0-9_+-]+){1,2}|UTC|GMT", re.ASCII)
_SECONDS: Final = re.compile(r"(0|[1-9][0-9]{0,11})(?:\.([0-9]{1,6})0{0,3})?|-[1-9][0-9]{0,11}", re.ASCII)
_MILLISECONDS: Final = re.compile(r"([0-9]{10})([0-9]{3})(?:\.([0-9]{6})([0-9]{3}))?", re.ASCII)
_FEW: Final = 12
_DATE_SHOWN: Final = 10
_MICROS_SHOWN: Final = 26
_CLOCK_SHOWN: Final = 15
_FRACTION: Final = 6
_MOST_SECONDS: Final = 10_000_000_000
_EPOCH: Final = date(1970, 1, 1).toordinal()
_HOUR: Final = 3_600 * SECOND
_DAY: Final = 24 * _HOUR
FIRST: Final = (date.min.toordinal() - _EPOCH) * _DAY
LAST: Final = (date.max.toordinal() + 1 - _EPOCH) * _DAY - 1


def no_count(_: Any) -> None:
    """Return None for any value: the format sends no numbers here."""


def from_seconds_text(value: Any) -> int | None:
    """Return the instant of a text `seconds[.fraction]`, as OMS sends TIMESTAMP; None for anything else.

    >>> from_seconds_text("1606233662.012345"), from_seconds_text("1606233662.0123456"), from_seconds_text(1606233662)
    (1606233662012345, None, None)
    """
    if type(value) is not str:
        return None
    if len(value) <= _FEW and value.isascii() and value.isdigit() and value[0] != "0":
        return int(value) * SECOND
    match = _SECONDS.fullmatch(value)
    if match is None:
        return None
    return int(match[1] or match[0]) * SECOND + int((match[2] or "").ljust(_FRACTION, "0"))


def seconds(value: Any) -> int | None:
    """Return the instant of seconds as text or number; OMS before V3.3.0 sends an integer."""
    text = number_text(value)
    return None if text is None else from_seconds_text(text)


def milliseconds(value: Any) -> int | None:
    """Return the instant of a whole number of milliseconds, as in DataHub's DATE."""
    return value * MILLISECOND if type(value) is int else None


def microseconds(value: Any) -> int | None:
    """Return the instant of a whole number of microseconds, as in DataHub's TIMESTAMP in a Tuple."""
    return value if type(value) is int else None


def padded_milliseconds(value: Any) -> int | None:
    """Return the instant of Dataworks' DATETIME: milliseconds, optionally with nine digits of nanoseconds.

    The nanoseconds count from the full second. Return None if the two disagree: the milliseconds within
    the second must be zero or those of the nanoseconds.

    >>> padded_milliseconds("1590315269000.123456000"), padded_milliseconds("1590315269001.123456000")
    (1590315269123456, None)
    """
    if type(value) is int:
        return value * MILLISECOND
    text = number_text(value)
    match = None if text is None else _MILLISECONDS.fullmatch(text)
    if match is None:
        return None
    if match[3] is None:
        return int(match[0]) * MILLISECOND
    if match[4] != "000" or match[2] not in ("000", match[3][:3]):
        return None
    return int(match[1]) * SECOND + int(match[3])


def dataworks_instant(value: Any) -> int | None:
    """Return the instant of Dataworks' TIMESTAMP: 13 digits are milliseconds, up to ten are seconds, others neither."""
    text = number_text(value)
    if text is not None and _MILLISECONDS.fullmatch(text):
        return padded_milliseconds(text)
    instant = None if text is None else from_seconds_text(text)
    return instant if instant is not None and abs(instant) < _MOST_SECONDS * SECOND else None


COUNTS: Final[dict[str, Count]] = {
    "none": no_count,
    # Of texts, with a fraction or without.
    "seconds": from_seconds_text,
    "seconds or long": seconds,
    "milliseconds": milliseconds,
    "microseconds": microseconds,
    "padded": padded_milliseconds,
    "padded or seconds": dataworks_instant,
    # A number is a day, and no instant.
    "days": no_count,
}
"""What instant a value is that is no text of a time, by the name that rules have for it."""


def _counted(digits: int | None) -> Count:
    """Return what counts whole numbers of units of 10^-`digits` seconds, as Debezium sends them; None for no numbers."""
    if digits is None:
        return no_count
    up, down = 10 ** max(0, _FRACTION - digits), 10 ** max(0, digits - _FRACTION)
    return lambda value: None if type(value) is not int or value % down else value // down * up


def read_date(zone: tzinfo | None, count: str) -> Reader:
    """Return a reader of dates: days since the epoch.

    A local time at midnight is a date too.
    """
    instant, is_days = COUNTS[count], count == "days"

    def read(value: Any) -> Any:
        days = _days(value) if type(value) is str and len(value) == _DATE_SHOWN else None
        if days is not None:
            return days
        if is_days and type(value) is int:
            return value if FIRST <= value * _DAY <= LAST else MISFIT
        local = _to_local_count(value, zone, instant)
        return MISFIT if local is None or local % _DAY else local // _DAY

    return read


def read_time(digits: int | None) -> Reader:
    """Return a reader of times of day: microseconds since midnight; MySQL's other time spans are misfits.

    A number counts units of 10^-`digits` seconds.
    """
    count = _counted(digits)

    def read(value: Any) -> Any:
        if type(value) is str and _TIME.fullmatch(value):
            return _local_micros(f"1970-01-01 {value[:_CLOCK_SHOWN]}")
        micros = count(value)
        return micros if micros is not None and 0 <= micros < _DAY else MISFIT

    return read


def read_local(zone: tzinfo | None, count: str, digits: int | None) -> Reader:
    """Return a reader of local times: microseconds since 1970-01-01 00:00, as if that were UTC.

    An instant becomes a local time only in the source's zone. With `digits`, a number counts units of
    10^-`digits` seconds of local time.
    """
    return _local_reader(zone, count, digits, _LOCAL)


def read_local_or_day(zone: tzinfo | None, count: str) -> Reader:
    """Return a reader of local times for which a date means its midnight."""
    return _local_reader(zone, count, None, _LOCAL_OR_DATE)


def _local_reader(zone: tzinfo | None, count: str, digits: int | None, form: re.Pattern[str]) -> Reader:
    instant, local = COUNTS[count], _counted(digits)

    def read(value: Any) -> Any:
        # A local time is stored as the instant that it would be in UTC.
        micros = from_local(value, UTC)
        if micros is None and type(value) is str and form.fullmatch(value):
            micros = _local_micros(value)
        elif micros is None:
            micros = local(value)
            micros = _to_local_count(value, zone, instant) if micros is None else micros
        return micros if micros is not None and FIRST <= micros <= LAST else MISFIT

    return read


def read_instant(zone: tzinfo | None, count: str) -> Reader:
    """Return a reader of instants: microseconds since the epoch, UTC.

    A local time becomes an instant only in the source's zone.
    """
    counted = COUNTS[count]

    def read(value: Any) -> Any:
        instant = counted(value)
        if instant is None and type(value) is str:
            instant = _zoned_micros(value, zone)
        return instant if instant is not None and FIRST <= instant <= LAST else MISFIT

    return read


def read_milliseconds() -> Reader:
    """Return a reader of instants that are sent and stored as whole milliseconds, as in DataHub's DATE."""

    def read(value: Any) -> Any:
        return value if type(value) is int and FIRST <= value * MILLISECOND <= LAST else MISFIT

    return read


@lru_cache(maxsize=4096)
def _days(text: str) -> Any:
    if not _DATE.fullmatch(text):
        return None
    try:
        return date.fromisoformat(text).toordinal() - _EPOCH
    except ValueError:
        return MISFIT


def _local_micros(text: str) -> int | None:
    try:
        local = datetime.fromisoformat(text[:_MICROS_SHOWN])
    except ValueError:
        return None
    clock = (local.hour * 60 + local.minute) * 60 + local.second
    return (local.toordinal() - _EPOCH) * _DAY + clock * SECOND + local.microsecond


def _zoned_micros(text: str, zone: tzinfo | None) -> int | None:
    """Return the instant of a local time, in the zone that follows it or else in the source's."""
    match = _ZONED.fullmatch(text)
    if match is not None:
        zone = _offset(match["offset"]) if match["offset"] else _region(match["id"] or match["name"])
        text = match["local"]
    elif not _LOCAL.fullmatch(text):
        return None
    try:
        local = datetime.fromisoformat(text[:_MICROS_SHOWN])
    except ValueError:
        return None
    return from_local(local.isoformat(), zone)


def _to_local_count(value: Any, zone: tzinfo | None, count: Count) -> int | None:
    """Return the microseconds of a local time, or of an instant's local time in the source's zone; None if neither."""
    if type(value) is str and _LOCAL.fullmatch(value):
        return _local_micros(value)
    instant = count(value)
    if instant is None and type(value) is str:
        instant = _zoned_micros(value, None)
    part = 0 if instant is None else instant % SECOND
    text = None if instant is None else to_local(instant - part, zone)
    local = None if text is None else _local_micros(text)
    return None if local is None else local + part


def _offset(text: str) -> tzinfo | None:
    if text == "Z":
        return timezone.utc  # noqa: UP017  beside `timezone(…)`
    digits = text[1:].replace(":", "").ljust(4, "0")
    ahead = timedelta(hours=int(digits[:2]), minutes=int(digits[2:]))
    return timezone(-ahead if text.startswith("-") else ahead) if ahead < timedelta(days=1) else None


@lru_cache(maxsize=256)
def _region(name: str) -> tzinfo | None:
    try:
        return ZoneInfo(name) if _REGION.fullmatch(name) else None
    except (LookupError, ValueError, OSError):
        return None


READERS: Final[dict[str, Callable[..., Reader]]] = {
    "day": read_date,
    "clock": read_time,
    "local": read_local,
    "local or day": read_local_or_day,
    "instant": read_instant,
    "milliseconds": read_milliseconds,
}
"""What makes the reader of a rule from its operands, by the name of the rule."""
