"""JSON values of columns of dates and times as Avro data: days, or micro- or milliseconds; exactly, or `MISFIT`.

Each `read_…` makes the reader of one type. A time without a zone is one, with a zone is an instant:
one becomes the other only by the source's zone, and not where summer time makes it two or none.
What a number means depends on the format: a `Count` gives its instant in microseconds.

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
from cdcavro.table.columns.strings import MISFIT

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import tzinfo

    Count = Callable[[Any], int | None]

_CLOCK: Final = r"(?:[01][0-9]|2[0-3]):[0-5][0-9](?::[0-5][0-9](?:\.[0-9]{1,6}0{0,3})?)?"
_LOCAL_TEXT: Final = rf"[0-9]{{4}}-[0-9]{{2}}-[0-9]{{2}}[T ]{_CLOCK}"
_DATE: Final = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}", re.ASCII)
_TIME: Final = re.compile(_CLOCK, re.ASCII)
_LOCAL: Final = re.compile(_LOCAL_TEXT, re.ASCII)
_ZONED: Final = re.compile(
    rf"(?P<local>{_LOCAL_TEXT}) ?(?:"
    r"(?P<offset>Z|[+-][0-9]{2}(?::?[0-5][0-9])?)"
    r"|\[(?P<id>[A-Za-z0-9_+/-]{1,64})\]|(?<= )(?P<name>[A-Za-z0-9_+/-]{1,64}))",
    re.ASCII,
)
# A zone of the database, not a file of the machine, nor one that counts leap seconds.
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
    """Return no instant for any value."""


def from_seconds_text(value: Any) -> int | None:
    """Return the instant of a text `seconds[.fraction]`, as OMS sends TIMESTAMP.

    >>> from_seconds_text("1606233662.012345"), from_seconds_text("1606233662.0123456"), from_seconds_text(1606233662)
    (1606233662012345, None, None)
    """
    if type(value) is not str:
        return None
    if len(value) <= _FEW and value.isascii() and value.isdigit() and value[0] != "0":
        return int(value) * SECOND
    found = _SECONDS.fullmatch(value)
    if found is None:
        return None
    return int(found[1] or found[0]) * SECOND + int((found[2] or "").ljust(_FRACTION, "0"))


def seconds(value: Any) -> int | None:
    """Return the instant of seconds as text or number: OMS before V3.3.0 sends the integer."""
    text = number_text(value)
    return None if text is None else from_seconds_text(text)


def milliseconds(value: Any) -> int | None:
    """Return the instant of a whole number of milliseconds: DataHub's DATE."""
    return value * MILLISECOND if type(value) is int else None


def microseconds(value: Any) -> int | None:
    """Return the instant of a whole number of microseconds: DataHub's TIMESTAMP in a Tuple."""
    return value if type(value) is int else None


def padded_milliseconds(value: Any) -> int | None:
    """Return the instant of Dataworks' DATETIME: milliseconds, with or without nine digits of nanoseconds of the second.

    None where the two disagree: the milliseconds of the second are either zero or those of the nanoseconds.

    >>> padded_milliseconds("1590315269000.123456000"), padded_milliseconds("1590315269001.123456000")
    (1590315269123456, None)
    """
    if type(value) is int:
        return value * MILLISECOND
    text = number_text(value)
    found = None if text is None else _MILLISECONDS.fullmatch(text)
    if found is None:
        return None
    if found[3] is None:
        return int(found[0]) * MILLISECOND
    if found[4] != "000" or found[2] not in ("000", found[3][:3]):
        return None
    return int(found[1]) * SECOND + int(found[3])


def dataworks_instant(value: Any) -> int | None:
    """Return the instant of Dataworks' TIMESTAMP: 13 digits are milliseconds, at most ten are seconds, others neither."""
    text = number_text(value)
    if text is not None and _MILLISECONDS.fullmatch(text):
        return padded_milliseconds(text)
    found = None if text is None else from_seconds_text(text)
    return found if found is not None and abs(found) < _MOST_SECONDS * SECOND else None


def counted(digits: int) -> Count:
    """Make the count of whole numbers of units of which a second has 10 to the power of `digits`: Debezium's."""
    up, down = 10 ** max(0, _FRACTION - digits), 10 ** max(0, digits - _FRACTION)

    def count(value: Any) -> int | None:
        return None if type(value) is not int or value % down else value // down * up

    return count


def read_date(zone: tzinfo | None, count: Count = no_count, *, is_days: bool = False) -> Callable[[Any], Any]:
    """Make the reader of dates: days since the epoch. A local time is one at midnight; `is_days` lets numbers be days."""

    def read(value: Any) -> Any:
        days = _days(value) if type(value) is str and len(value) == _DATE_SHOWN else None
        if days is not None:
            return days
        if is_days and type(value) is int:
            return value if FIRST <= value * _DAY <= LAST else MISFIT
        found = _to_local_count(value, zone, count)
        return MISFIT if found is None or found % _DAY else found // _DAY

    return read


def read_time(count: Count = no_count) -> Callable[[Any], Any]:
    """Make the reader of times of day: microseconds since midnight. Spans of time, which MySQL has too, do not fit."""

    def read(value: Any) -> Any:
        if type(value) is str and _TIME.fullmatch(value):
            return _local_micros(f"1970-01-01 {value[:_CLOCK_SHOWN]}")
        found = count(value)
        return found if found is not None and 0 <= found < _DAY else MISFIT

    return read


def read_local(
    zone: tzinfo | None, count: Count = no_count, *, local: Count = no_count, is_date: bool = False
) -> Callable[[Any], Any]:
    """Make the reader of local times: microseconds since 1970-01-01 00:00, as if that were UTC.

    An instant is one only in the source's zone. `local` gives the count of numbers that are local
    times themselves, and `is_date` lets a date be its midnight.
    """

    def read(value: Any) -> Any:
        # A local time is the instant that it would be at longitude zero.
        found = from_local(value, UTC)
        if found is None and type(value) is str and (_LOCAL.fullmatch(value) or (is_date and _DATE.fullmatch(value))):
            found = _local_micros(value)
        elif found is None:
            found = local(value)
            found = _to_local_count(value, zone, count) if found is None else found
        return found if found is not None and FIRST <= found <= LAST else MISFIT

    return read


def read_instant(zone: tzinfo | None, count: Count = no_count) -> Callable[[Any], Any]:
    """Make the reader of instants: microseconds since the epoch, UTC. A local time is one only in the source's zone."""

    def read(value: Any) -> Any:
        found = count(value)
        if found is None and type(value) is str:
            found = _zoned_micros(value, zone)
        return found if found is not None and FIRST <= found <= LAST else MISFIT

    return read


def read_milliseconds() -> Callable[[Any], Any]:
    """Make the reader of instants that come as a whole number of milliseconds and stay one: DataHub's DATE."""

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
        found = datetime.fromisoformat(text[:_MICROS_SHOWN])
    except ValueError:
        return None
    clock = (found.hour * 60 + found.minute) * 60 + found.second
    return (found.toordinal() - _EPOCH) * _DAY + clock * SECOND + found.microsecond


def _zoned_micros(text: str, zone: tzinfo | None) -> int | None:
    """Return the instant of a local time, in the zone behind it or else in the source's."""
    found = _ZONED.fullmatch(text)
    if found is not None:
        zone = _offset(found["offset"]) if found["offset"] else _region(found["id"] or found["name"])
        text = found["local"]
    elif not _LOCAL.fullmatch(text):
        return None
    try:
        local = datetime.fromisoformat(text[:_MICROS_SHOWN])
    except ValueError:
        return None
    return from_local(local.isoformat(), zone)


def _to_local_count(value: Any, zone: tzinfo | None, count: Count) -> int | None:
    """Return a local time, or an instant in the source's zone, as the count of a local time."""
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
