"""Codecs of column values as Kafka Connect and Debezium send them: decimals, geometries, times.

Times come as counts of a unit since the epoch, as ISO 8601 text in UTC ("isostring"), or as structs of their
parts ("structured"): the value itself says which of the three it is, but not the unit of a count. Their
text is that of `exact.instants`, and an instant is in seconds, as in OMS.

Source: Debezium reference, "Decimal types", `bigint.unsigned.handling.mode`, "Spatial types", "Temporal types",
and the classes `IsoDate`, `IsoTime`, `IsoTimestamp` and `Structured…` of `io.debezium.time`; Kafka Connect,
class `Decimal`; PostGIS manual, "Geometry Input/Output".
"""

from __future__ import annotations

import math
import re
import struct
from base64 import b64encode
from decimal import Decimal
from functools import partial
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from cdcavro.change.model import Rule
from cdcavro.change.operations import ADAPTIVE, CONNECT, MICROSECONDS, NANOSECONDS, STRING
from cdcavro.exact.instants import (
    day_count,
    day_text,
    instant_text,
    local_count,
    local_text,
    time_count,
    time_text,
    to_seconds_text,
)
from cdcavro.exact.jsontext import base64_bytes
from cdcavro.exact.numbers import (
    MAX_LONG,
    MIN_LONG,
    ExactNumber,
    fraction,
    is_number,
    minimal_bytes,
    number,
    plain_text,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from cdcavro.change.operations import Modes
    from cdcavro.exact.sqltype import SqlType


class ConnectCodec(NamedTuple):
    """How the values of a column are read and sent; both functions return None for a value that does not fit."""

    read: Callable[[Any], Any]
    send: Callable[[Any], Any]
    # What `read` does, for the engine; None for what the engine leaves to Python.
    rule: Rule | None = None


def first_of(*codecs: ConnectCodec) -> ConnectCodec:
    """Return a codec that reads what any of these codecs reads, and sends as the first that can."""

    def read(sent: Any) -> Any:
        return next((value for value in (codec.read(sent) for codec in codecs) if value is not None), None)

    def send(value: Any) -> Any:
        return next((sent for sent in (codec.send(value) for codec in codecs) if sent is not None), None)

    return ConnectCodec(read, send, codecs[0].rule)


def array_of(items: ConnectCodec) -> ConnectCodec:
    """Return the codec of arrays whose items have a codec; null items stay, and all others have to fit."""
    return ConnectCodec(partial(_convert_items, convert=items.read), partial(_convert_items, convert=items.send))


def _convert_items(values: Any, convert: Callable[[Any], Any]) -> list[Any] | None:
    if type(values) is not list:
        return None
    converted = [None if value is None else convert(value) for value in values]
    fit = all(value is None or item is not None for value, item in zip(values, converted, strict=True))
    return converted if fit else None


# Decimals, and integers beyond 64 bits.

_PLAIN: Final = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.([0-9]+))?", re.ASCII)
# Python refuses to parse and print longer integers, and is slow well before that.
_MAX_DIGITS: Final = 4_300
_MAX_UNSCALED: Final = 1024
_MAX_SCALE: Final = 4096
_MOST: Final = 10**_MAX_DIGITS
_NUMBERS: Final = (int, float, ExactNumber)


def decimal(scale: int) -> ConnectCodec | None:
    """Return the codec of decimals that are base64 of the unscaled number; None for an absurd scale.

    A negative scale means zeros: the unscaled 5 of scale -2 is 500.
    """
    if abs(scale) > _MAX_SCALE:
        return None
    read, send = partial(_read_decimal, scale=scale), partial(_send_decimal, scale=scale)
    return ConnectCodec(read, send, Rule("decimal", scale))


def _read_decimal(sent: Any, scale: int) -> int | float | ExactNumber | None:
    raw = base64_bytes(sent)
    if not raw or len(raw) > _MAX_UNSCALED:
        return None
    unscaled = int.from_bytes(raw, "big", signed=True) * 10 ** max(-scale, 0)
    if scale < 0 and abs(unscaled) >= _MOST:
        return None
    places = max(scale, 0)
    digits = str(abs(unscaled)).rjust(places + 1, "0")
    whole, part = digits[: len(digits) - places], digits[len(digits) - places :]
    return number(f"{'-' if unscaled < 0 else ''}{whole}{'.' if part else ''}{part}")


def _send_decimal(value: Any, scale: int) -> str | None:
    text = plain_text(value) if type(value) in _NUMBERS else ""
    match = _PLAIN.fullmatch(text)
    if match is None or len(match[1] or "") != max(scale, 0) or len(text) > _MAX_DIGITS:
        return None
    unscaled, rest = divmod(int(text.replace(".", "")), 10 ** max(-scale, 0))
    if rest or (text.startswith("-") and not unscaled):
        return None
    raw = minimal_bytes(unscaled)
    return b64encode(raw).decode() if len(raw) <= _MAX_UNSCALED else None


def _read_digits(sent: Any) -> int | float | ExactNumber | None:
    return number(sent) if type(sent) is str and is_number(sent) else None


def _send_digits(value: Any) -> str | None:
    return plain_text(value) if type(value) in _NUMBERS else None


def declared_decimal(declared: SqlType, mode: Modes) -> ConnectCodec | None:
    """Return the codec of MySQL's DECIMAL."""
    if mode.decimals == STRING:
        return ConnectCodec(_read_digits, _send_digits, Rule("digits"))
    return decimal(declared.arguments[1] if len(declared.arguments) > 1 else 0)


def bigint(declared: SqlType, _: Modes) -> ConnectCodec | None:
    """Return the codec of BIGINT; None if it is signed, since its values are sent as they are then."""
    send = partial(_send_decimal, scale=0)
    return ConnectCodec(_read_unsigned, send, Rule("unsigned")) if declared.unsigned else None


def _read_unsigned(sent: Any) -> int | float | ExactNumber | None:
    """Return an unsigned integer of 64 bits, sent as a decimal or as the signed integer of the same bits."""
    if type(sent) is int and MIN_LONG <= sent < 0:
        return ExactNumber(str(sent + (1 << 64)))
    return _read_decimal(sent, 0)


def read_scaled(sent: Any) -> int | float | ExactNumber | None:
    """Return the number of an object with the unscaled number and its scale."""
    if type(sent) is not dict or set(sent) != {"scale", "value"}:
        return None
    scale = sent["scale"]
    return _read_decimal(sent["value"], scale) if type(scale) is int and abs(scale) <= _MAX_SCALE else None


def send_scaled(value: Any) -> dict[str, Any] | None:
    """Return the object that `read_scaled` reads."""
    match = _PLAIN.fullmatch(plain_text(value)) if type(value) in _NUMBERS else None
    scale = 0 if match is None else len(match[1] or "")
    sent = None if match is None else _send_decimal(value, scale)
    return None if sent is None else {"scale": scale, "value": sent}


# Geometries, between Debezium's objects of WKB and SRID (reference system) and EWKB, which holds both.

_SRID_FLAG: Final = 0x2000_0000
_HEADER: Final = 5
_POINT_SIZE: Final = 21
_SRIDS: Final = 1 << 32
_PLAIN_FROM: Final = 1e-3
_PLAIN_BELOW: Final = 1e7


def read_connect_geometry(sent: Any) -> str | None:
    """Return a geometry as base64 of little-endian EWKB, which holds the reference system only if one is stated.

    None for anything else, such as big-endian WKB or members other than `wkb`, `srid`, `x` and `y`.

    >>> read_connect_geometry({"wkb": "AQEAAAAAAAAAAAD4PwAAAAAAAALA", "srid": 4326})
    'AQEAACDmEAAAAAAAAAAA+D8AAAAAAAACwA=='
    """
    if type(sent) is not dict or not {"wkb"} <= set(sent) <= {"wkb", "srid", "x", "y"}:
        return None
    wkb, srid = base64_bytes(sent["wkb"]), sent.get("srid")
    kind = _kind(wkb)
    if wkb is None or kind is None or (srid is not None and (type(srid) is not int or not 0 <= srid < _SRIDS)):
        return None
    if kind & _SRID_FLAG or srid is None:
        return str(sent["wkb"])
    return b64encode(b"\1" + struct.pack("<II", kind | _SRID_FLAG, srid) + wkb[_HEADER:]).decode()


def send_connect_geometry(value: Any, *, is_point: bool) -> dict[str, Any] | None:
    """Return the object that `read_connect_geometry` reads; a MySQL POINT (`is_point`) has its `x` and `y` as well."""
    ewkb = base64_bytes(value)
    kind = _kind(ewkb)
    if ewkb is None or kind is None:
        return None
    srid = None
    if kind & _SRID_FLAG and len(ewkb) >= _HEADER + 4:
        srid = int.from_bytes(ewkb[_HEADER : _HEADER + 4], "little")
        ewkb = b"\1" + struct.pack("<I", kind & ~_SRID_FLAG) + ewkb[_HEADER + 4 :]
    sent = {"wkb": b64encode(ewkb).decode(), "srid": srid}
    if not is_point:
        return sent
    if len(ewkb) != _POINT_SIZE:
        return None
    x, y = struct.unpack("<dd", ewkb[_HEADER:])
    return {"x": _java_double(x), "y": _java_double(y)} | sent if math.isfinite(x) and math.isfinite(y) else None


def _kind(wkb: bytes | None) -> int | None:
    """Return the number of a WKB's geometry type; None for anything but little-endian WKB."""
    if wkb is None or len(wkb) < _HEADER or wkb[0] != 1:
        return None
    return int.from_bytes(wkb[1:_HEADER], "little")


def _java_double(value: float) -> float | ExactNumber:
    """Return a double as Java prints it: with an exponent from ten million up and below a thousandth."""
    if value == 0 or _PLAIN_FROM <= abs(value) < _PLAIN_BELOW:
        return fraction(repr(value))
    sign, digits, exponent = Decimal(repr(value)).normalize().as_tuple()
    rest = "".join(map(str, digits[1:])) or "0"
    return fraction(f"{'-' * sign}{digits[0]}.{rest}E{int(exponent) + len(digits) - 1}")


# Days, local times, times of day and instants.

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


DAY: Final = ConnectCodec(day_text, day_count, Rule("day"))


def clock(digits: int, precision: int | None = None) -> ConnectCodec:
    """Return the codec of times of day, and of durations, that are counts of units of 10^-`digits` seconds."""
    read, send = partial(time_text, digits=digits, precision=precision), partial(_send_count, time_count, digits)
    return ConnectCodec(read, send, Rule("clock", digits, precision))


def local(digits: int, precision: int | None = None) -> ConnectCodec:
    """Return the codec of local times that are counts; the ends of 64 bits are PostgreSQL's infinities, not times."""

    def read(sent: Any) -> str | None:
        return None if sent in _INFINITIES else local_text(sent, digits, precision)

    return ConnectCodec(read, partial(_send_count, local_count, digits), Rule("local", digits, precision))


def _send_count(count: Callable[[Any, int], int | None], digits: int, value: Any) -> int | None:
    """Return the count of a time; None if 64 bits do not hold it, or if it is one of their ends."""
    units = count(value, digits)
    return units if units is not None and MIN_LONG < units < MAX_LONG else None


def instant(precision: int | None = None) -> ConnectCodec:
    """Return the codec of instants that are texts in UTC."""
    return ConnectCodec(to_seconds_text, partial(instant_text, precision=precision), Rule("instant"))


def _read_iso_day(sent: Any) -> str | None:
    is_day = type(sent) is str and sent.endswith("Z") and day_count(sent[:-1]) is not None
    return sent[:-1] if is_day else None


def _send_iso_day(value: Any) -> str | None:
    return None if day_count(value) is None else f"{value}Z"


ISO_DAY: Final = ConnectCodec(_read_iso_day, _send_iso_day)


def iso(count: Callable[[Any, int], int | None], precision: int | None = None) -> ConnectCodec:
    """Return the codec of ISO texts: `count` is `time_count` for times of day, `local_count` for local times."""

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
        return text if is_whole and _is_time(text, count) else None

    def send(value: Any) -> str | None:
        if type(value) is not str or not _is_time(value, count):
            return None
        whole, point, fraction = value.replace(" ", "T").partition(".")
        digits = fraction if precision is None else fraction.rstrip("0")
        return f"{whole}{point if digits else ''}{digits}Z"

    return ConnectCodec(read, send)


def _is_time(text: str, count: Callable[[Any, int], int | None]) -> bool:
    units = count(text, NANOS)
    return units is not None and (count is local_count or 0 <= units < _OFFSET * 10**NANOS)


def structured(*, has_day: bool, has_clock: bool, precision: int | None = None) -> ConnectCodec:
    """Return the codec of structs of a day, a time of day, or both; a zero date fits, infinity does not."""
    names = (*(_DAY_PARTS if has_day else ()), *((*_CLOCK_PARTS, "nanos") if has_clock else ()))

    def read(sent: Any) -> str | None:
        parts = _parts(sent, names)
        if parts is None:
            return None
        visible = sent.get("precision") if precision is None else precision
        return _text_of(parts, visible if type(visible) is int and 0 <= visible <= NANOS else None)

    def send(value: Any) -> dict[str, Any] | None:
        return _struct_of(value, has_day=has_day, has_clock=has_clock)

    return ConnectCodec(read, send)


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
    visible = fraction.rstrip("0") if precision is None else fraction[:precision]
    if len(fraction.rstrip("0")) > len(visible):
        return None
    time = "{hour:02}:{minute:02}:{second:02}".format(**parts) + (f".{visible}" if visible else "")
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


def zoned_structured() -> ConnectCodec:
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

    return ConnectCodec(read, send)


def unit_of(mode: str, precision: int, *, is_clock: bool) -> int:
    """Return how many digits of a second the counts of a mode have, for a column of `precision` digits."""
    fixed = {CONNECT: MILLIS, MICROSECONDS: MICROS, NANOSECONDS: NANOS}
    if mode in fixed:
        return fixed[mode]
    if is_clock and mode != ADAPTIVE:
        return MICROS
    return MILLIS if precision <= MILLIS else MICROS if precision <= MICROS else NANOS
