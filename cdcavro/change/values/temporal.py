"""Days, local times, times of day and instants as Kafka Connect and Debezium send them, and as text.

Debezium sends them as counts of a unit since the epoch, as ISO 8601 text in UTC ("isostring"), or as structs
of their parts ("structured"): what was sent says which of the three it is, only the unit of a count does not.
The text is that of `exact.sqltimes`, and an instant is in seconds, as in OMS.

Source: Debezium reference, "Temporal types"; classes `IsoDate`, `IsoTime`, `IsoTimestamp` and `Structured…` of
`io.debezium.time`.
"""

from __future__ import annotations

import re
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from cdcavro.change.values import modes
from cdcavro.change.values.value_codec import ValueCodec
from cdcavro.exact.numbers import MAX_LONG, MIN_LONG
from cdcavro.exact.sqltimes import (
    day_count,
    day_text,
    instant_text,
    local_count,
    local_text,
    time_count,
    time_text,
    to_seconds_text,
)

if TYPE_CHECKING:
    from collections.abc import Callable

MILLIS: Final = 3
MICROS: Final = 6
NANOS: Final = 9
MAX_PRECISION: Final = 9
_ISO: Final = re.compile(r"(?:([0-9-]{10})T)?([0-9:]{8})(?:\.([0-9]{1,9}))?Z", re.ASCII)
_OFFSET: Final = 24 * 3600
_INFINITIES: Final = (MAX_LONG, MIN_LONG)
_DAY_PARTS: Final = ("year", "month", "day")
_CLOCK_PARTS: Final = ("hour", "minute", "second")
_BOUNDS: Final = {"year": 9999, "month": 12, "day": 31, "hour": 23, "minute": 59, "second": 59, "nanos": 999_999_999}


DAY: Final = ValueCodec(day_text, day_count, ("day",))


def clock(digits: int, precision: int | None = None) -> ValueCodec:
    """Return the codec of times of day, and of durations, that are counts of units of 10^-`digits` seconds."""
    read, send = partial(time_text, digits=digits, precision=precision), partial(time_count, digits=digits)
    return ValueCodec(read, send, ("clock", digits, precision))


def local(digits: int, precision: int | None = None) -> ValueCodec:
    """Return the codec of local times that are counts; the ends of 64 bits are PostgreSQL's infinities, not times."""

    def read(sent: Any) -> str | None:
        return None if sent in _INFINITIES else local_text(sent, digits, precision)

    return ValueCodec(read, partial(local_count, digits=digits), ("local", digits, precision))


def instant(precision: int | None = None) -> ValueCodec:
    """Return the codec of instants that are texts in UTC."""
    return ValueCodec(to_seconds_text, partial(instant_text, precision=precision), ("instant",))


def _read_iso_day(sent: Any) -> str | None:
    is_day = type(sent) is str and sent.endswith("Z") and day_count(sent[:-1]) is not None
    return sent[:-1] if is_day else None


def _send_iso_day(value: Any) -> str | None:
    return None if day_count(value) is None else f"{value}Z"


ISO_DAY: Final = ValueCodec(_read_iso_day, _send_iso_day)


def iso(count: Callable[[Any, int], int | None], precision: int | None = None) -> ValueCodec:
    """Return the codec of ISO texts; `count` is `time_count` or `local_count`, which tell the two kinds apart."""

    def read(sent: Any) -> str | None:
        match = _ISO.fullmatch(sent) if type(sent) is str else None
        if match is None:
            return None
        fraction = match[3] or ""
        if precision is not None:
            fraction = fraction.rstrip("0").ljust(precision, "0")
        day = "" if match[1] is None else f"{match[1]} "
        text = f"{day}{match[2]}{'.' if fraction else ''}{fraction}"
        is_whole = precision is None or len(fraction) == precision
        return text if is_whole and _is_of_a_day(text, count) else None

    def send(value: Any) -> str | None:
        if type(value) is not str or not _is_of_a_day(value, count):
            return None
        whole, point, fraction = value.replace(" ", "T").partition(".")
        digits = fraction if precision is None else fraction.rstrip("0")
        return f"{whole}{point if digits else ''}{digits}Z"

    return ValueCodec(read, send)


def _is_of_a_day(text: str, count: Callable[[Any, int], int | None]) -> bool:
    found = count(text, NANOS)
    return found is not None and (count is local_count or 0 <= found < _OFFSET * 10**NANOS)


def structured(*, has_day: bool, has_clock: bool, precision: int | None = None) -> ValueCodec:
    """Return the codec of structs of a day, a time of day, or both; a zero date is one, infinity is not."""
    names = (*(_DAY_PARTS if has_day else ()), *((*_CLOCK_PARTS, "nanos") if has_clock else ()))

    def read(sent: Any) -> str | None:
        parts = _parts(sent, names)
        if parts is None:
            return None
        shown = sent.get("precision") if precision is None else precision
        return _text_of(parts, shown if type(shown) is int and 0 <= shown <= NANOS else None)

    def send(value: Any) -> dict[str, Any] | None:
        return _struct_of(value, has_day=has_day, has_clock=has_clock)

    return ValueCodec(read, send)


def _parts(sent: Any, names: tuple[str, ...]) -> dict[str, int] | None:
    if type(sent) is not dict or sent.get("specialValue") is not None:
        return None
    parts = {name: sent.get(name) for name in names}
    if parts.get("nanos", 0) is None:
        parts["nanos"] = 0
    is_whole = all(type(part) is int and 0 <= part <= _BOUNDS[name] for name, part in parts.items())
    return parts if is_whole else None  # type: ignore[return-value]


def _text_of(parts: dict[str, int], precision: int | None) -> str | None:
    day = "{year:04}-{month:02}-{day:02}".format(**parts) if "day" in parts else ""
    if "hour" not in parts:
        return day
    fraction = f"{parts['nanos']:09}"
    shown = fraction.rstrip("0") if precision is None else fraction[:precision]
    if len(fraction.rstrip("0")) > len(shown):
        return None
    time = "{hour:02}:{minute:02}:{second:02}".format(**parts) + (f".{shown}" if shown else "")
    return f"{day} {time}" if day else time


_STRUCT_TEXT: Final = re.compile(
    r"(?P<day>([0-9]{4})-([0-9]{2})-([0-9]{2}))?(?: ?(?P<clock>([0-9]{2}):([0-9]{2}):([0-9]{2}))(?:\.([0-9]{1,9}))?)?",
    re.ASCII,
)


def _struct_of(value: Any, *, has_day: bool, has_clock: bool) -> dict[str, Any] | None:
    match = _STRUCT_TEXT.fullmatch(value) if type(value) is str else None
    if match is None or (match["day"] is None) is has_day or (match["clock"] is None) is has_clock:
        return None
    sent: dict[str, Any] = {}
    if has_day:
        sent |= dict(zip(_DAY_PARTS, map(int, match.group(2, 3, 4)), strict=True))
    if has_clock:
        fraction = match[9] or ""
        sent |= dict(zip(_CLOCK_PARTS, map(int, match.group(6, 7, 8)), strict=True))
        sent |= {"nanos": int(fraction.ljust(NANOS, "0")), "precision": len(fraction)}
    return sent | ({"specialValue": None} if has_day else {})


def zoned_structured() -> ValueCodec:
    """Return the codec of structs of an instant, a local time and its offset from UTC in seconds."""
    base = structured(has_day=True, has_clock=True)

    def read(sent: Any) -> str | None:
        text = base.read(sent)
        offset = sent.get("offsetSeconds") if text is not None else None
        count = local_count(text, NANOS)
        if count is None or type(offset) is not int or not -_OFFSET < offset < _OFFSET:
            return None
        utc = local_text(count - offset * 10**NANOS, NANOS, NANOS)
        return None if utc is None else to_seconds_text(utc.replace(" ", "T") + "Z")

    def send(value: Any) -> dict[str, Any] | None:
        text = instant_text(value)
        sent = None if text is None else base.send(text[:-1].replace("T", " "))
        return None if sent is None else sent | {"offsetSeconds": 0}

    return ValueCodec(read, send)


def unit_of(mode: str, precision: int, *, is_clock: bool) -> int:
    """Return how many digits of a second the counts of a mode have, for a column with so many digits."""
    fixed = {modes.CONNECT: MILLIS, modes.MICROSECONDS: MICROS, modes.NANOSECONDS: NANOS}
    if mode in fixed:
        return fixed[mode]
    if is_clock and mode != modes.ADAPTIVE:
        return MICROS
    return MILLIS if precision <= MILLIS else MICROS if precision <= MICROS else NANOS
