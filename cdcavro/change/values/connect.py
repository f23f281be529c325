"""Column values converted between Kafka Connect or Debezium and the form that every other format uses.

How a value is sent depends on its column's type: a semantic type of the embedded schema
(`io.debezium.time.Date`), or MySQL's declared type where there is no schema. As a JSON value, a
number is a number with the digits sent, days and local times are text, instants are seconds as in
OMS, and bytes are base64: big-endian for BIT, EWKB for a geometry.

Source: Debezium reference, MySQL connector, "Data type mappings", with the connector's own defaults.
"""

from __future__ import annotations

import re
from base64 import b64encode
from functools import partial
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from cdcavro.change.values.geometry import read_connect_geometry, send_connect_geometry
from cdcavro.exact.base64_text import bytes_of
from cdcavro.exact.caching import bounded_cache
from cdcavro.exact.diff import same
from cdcavro.exact.numbers import ExactNumber, minimal_bytes, number, plain_text
from cdcavro.exact.scan import is_number
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
from cdcavro.exact.sqltype import MYSQL_FAMILY, SqlType, parse_sql_type

if TYPE_CHECKING:
    from collections.abc import Callable

_SPELLED: Final = re.compile(r"([\w.]+)(?:\(([^()]*)\))?", re.ASCII)
_PLAIN: Final = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.([0-9]+))?", re.ASCII)
_PARAMETER: Final = re.compile(r"[0-9]{1,9}", re.ASCII)
_KEPT: Final = 4096
# What a schema claims must not cost more than the message: lengths are those of the databases, padding is bounded.
_MAX_BIT: Final = 64
_MAX_PADDED: Final = 8 * 1024
_MAX_PRECISION: Final = 9
# Python refuses to parse and print longer integers, and is slow well before that.
_MAX_DIGITS: Final = 4_300
_MAX_UNSCALED: Final = 1024
_MAX_SCALE: Final = 4096
_NUMBERS: Final = (int, float, ExactNumber)


class ValueCodec(NamedTuple):
    """How the values of a column are read and sent; both functions return None for a value that does not fit."""

    read: Callable[[Any], Any]
    send: Callable[[Any], Any]


def read_connect_value(sent: Any, codec: ValueCodec | None) -> Any:
    """Return the JSON value of what was sent for a column; a value that does not fit its type stays as it is.

    >>> read_connect_value("AkY=", codec_of("DECIMAL(10,2)", "mysql"))
    5.82
    """
    value = None if codec is None or sent is None else codec.read(sent)
    if codec is None or value is None or not same(codec.read(codec.send(value)), value):
        return sent
    return value


def send_connect_value(value: Any, codec: ValueCodec | None) -> Any:
    """Return what is sent for a column's JSON value; a value that does not fit its type stays as it is.

    >>> send_connect_value("2024-02-29", codec_of("io.debezium.time.Date"))
    19782
    """
    sent = None if codec is None or value is None else codec.send(value)
    return value if sent is None else sent


def codec_of(declared: str | None, connector: str | None = None, decimals: str = "precise") -> ValueCodec | None:
    """Return the codec of a column's type; None if its values are sent as they are, or the type is unknown.

    `decimals` says how a MySQL DECIMAL is sent: "precise" (base64 of the unscaled number) or "string".
    A type whose length, precision or scale exceeds what databases allow counts as unknown.
    """
    return _codec(declared or "", connector in MYSQL_FAMILY, decimals)


@bounded_cache(_KEPT)
def _codec(declared: str, is_mysql: bool, decimals: str) -> ValueCodec | None:  # noqa: FBT001  the cache takes positional arguments only
    match = _SPELLED.fullmatch(declared)
    if match is not None and match[1] in _SEMANTIC:
        parameters = dict(item.partition("=")[::2] for item in (match[2] or "").split(",") if "=" in item)
        if not all(map(_PARAMETER.fullmatch, parameters.values())):
            return None
        return _SEMANTIC[match[1]]({name: int(text) for name, text in parameters.items()})
    if not is_mysql or not declared:
        return None
    sql_type = parse_sql_type(declared)
    if "(" in declared and not sql_type.arguments and not sql_type.members:
        return None
    if decimals == "string" and sql_type.name in _DECIMALS:
        return ValueCodec(_read_digits, _send_digits)
    make_codec = _DECLARED.get(sql_type.name)
    return None if make_codec is None else make_codec(sql_type)


def _decimal(scale: int) -> ValueCodec | None:
    return (
        ValueCodec(partial(_read_decimal, scale=scale), partial(_send_decimal, scale=scale))
        if scale <= _MAX_SCALE
        else None
    )


def _read_decimal(sent: Any, scale: int) -> int | float | ExactNumber | None:
    raw = bytes_of(sent)
    if not raw or len(raw) > _MAX_UNSCALED:
        return None
    unscaled = int.from_bytes(raw, "big", signed=True)
    digits = str(abs(unscaled)).rjust(scale + 1, "0")
    whole, part = digits[: len(digits) - scale], digits[len(digits) - scale :]
    return number(f"{'-' if unscaled < 0 else ''}{whole}{'.' if part else ''}{part}")


def _send_decimal(value: Any, scale: int) -> str | None:
    text = plain_text(value) if type(value) in _NUMBERS else ""
    match = _PLAIN.fullmatch(text)
    if match is None or len(match[1] or "") != scale or len(text) > _MAX_DIGITS:
        return None
    unscaled = int(text.replace(".", ""))
    if text.startswith("-") and not unscaled:
        return None
    raw = minimal_bytes(unscaled)
    return b64encode(raw).decode() if len(raw) <= _MAX_UNSCALED else None


def _read_digits(sent: Any) -> int | float | ExactNumber | None:
    return number(sent) if type(sent) is str and is_number(sent) else None


def _send_digits(value: Any) -> str | None:
    return plain_text(value) if type(value) in _NUMBERS else None


def _read_scaled(sent: Any) -> int | float | ExactNumber | None:
    if type(sent) is not dict or set(sent) != {"scale", "value"}:
        return None
    scale = sent["scale"]
    return _read_decimal(sent["value"], scale) if type(scale) is int and 0 <= scale <= _MAX_SCALE else None


def _send_scaled(value: Any) -> dict[str, Any] | None:
    match = _PLAIN.fullmatch(plain_text(value)) if type(value) in _NUMBERS else None
    scale = 0 if match is None else len(match[1] or "")
    sent = None if match is None else _send_decimal(value, scale)
    return None if sent is None else {"scale": scale, "value": sent}


def _time(digits: int, precision: int | None = None) -> ValueCodec | None:
    if not _is_precision(precision):
        return None
    return ValueCodec(partial(time_text, digits=digits, precision=precision), partial(time_count, digits=digits))


def _local(digits: int, precision: int | None = None) -> ValueCodec | None:
    if not _is_precision(precision):
        return None
    return ValueCodec(partial(local_text, digits=digits, precision=precision), partial(local_count, digits=digits))


def _instant(precision: int | None = None) -> ValueCodec | None:
    return ValueCodec(to_seconds_text, partial(instant_text, precision=precision)) if _is_precision(precision) else None


def _is_precision(digits: int | None) -> bool:
    return digits is None or digits <= _MAX_PRECISION


def _bits(length: int | None) -> ValueCodec:
    return ValueCodec(partial(_read_bits, length=length), partial(_send_bits, length=length))


def _read_bits(sent: Any, length: int | None) -> str | None:
    if type(sent) is bool:
        return b64encode(bytes([sent])).decode() if length == 1 else None
    raw, size = bytes_of(sent), -(-(length or 0) // 8)
    if raw is None or (length is not None and len(raw) > size) or len(raw) < size > _MAX_PADDED:
        return None
    return b64encode(raw[::-1].rjust(size, b"\0")).decode()


def _send_bits(value: Any, length: int | None) -> str | bool | None:
    raw = bytes_of(value)
    if length == 1:
        return {b"\0": False, b"\1": True}.get(raw or b"")
    return None if raw is None else b64encode(raw[::-1]).decode()


def _read_label(sent: Any) -> str | None:
    r"""Return an ENUM's label, in which Debezium escapes each comma as `\,`."""
    return sent.replace("\\,", ",") if type(sent) is str else None


def _send_label(value: Any) -> str | None:
    return value.replace(",", "\\,") if type(value) is str else None


def _geometry(*, is_point: bool = False) -> ValueCodec:
    return ValueCodec(read_connect_geometry, partial(send_connect_geometry, is_point=is_point))


def _first(declared: SqlType, default: int) -> int:
    return declared.arguments[0] if declared.arguments else default


def _second(declared: SqlType) -> int:
    return declared.arguments[1] if len(declared.arguments) > 1 else 0


_CONNECT: Final = "org.apache.kafka.connect.data."
_DEBEZIUM: Final = "io.debezium.data."
_DEBEZIUM_TIME: Final = "io.debezium.time."
_GEOMETRY: Final = "io.debezium.data.geometry."
_SEMANTIC: Final[dict[str, Callable[[dict[str, int]], ValueCodec | None]]] = {
    _CONNECT + "Decimal": lambda parameters: _decimal(parameters["scale"]) if "scale" in parameters else None,
    _CONNECT + "Date": lambda _: ValueCodec(day_text, day_count),
    _CONNECT + "Time": lambda _: _time(3),
    _CONNECT + "Timestamp": lambda _: _local(3),
    _DEBEZIUM_TIME + "Date": lambda _: ValueCodec(day_text, day_count),
    _DEBEZIUM_TIME + "Time": lambda _: _time(3),
    _DEBEZIUM_TIME + "MicroTime": lambda _: _time(6),
    _DEBEZIUM_TIME + "NanoTime": lambda _: _time(9),
    _DEBEZIUM_TIME + "Timestamp": lambda _: _local(3),
    _DEBEZIUM_TIME + "MicroTimestamp": lambda _: _local(6),
    _DEBEZIUM_TIME + "NanoTimestamp": lambda _: _local(9),
    _DEBEZIUM_TIME + "ZonedTimestamp": lambda _: _instant(),
    _DEBEZIUM + "Bits": lambda parameters: _bits(parameters.get("length")),
    _DEBEZIUM + "Enum": lambda _: ValueCodec(_read_label, _send_label),
    _DEBEZIUM + "VariableScaleDecimal": lambda _: ValueCodec(_read_scaled, _send_scaled),
    _GEOMETRY + "Point": lambda _: _geometry(is_point=True),
    _GEOMETRY + "Geometry": lambda _: _geometry(),
    _GEOMETRY + "Geography": lambda _: _geometry(),
}
_DECIMALS: Final = ("DECIMAL", "DEC", "NUMERIC", "FIXED")
_SHAPES: Final = (
    *("GEOMETRY", "LINESTRING", "POLYGON", "MULTIPOINT", "MULTILINESTRING", "MULTIPOLYGON"),
    *("GEOMETRYCOLLECTION", "GEOMCOLLECTION"),
)
_MILLISECONDS: Final = 3
_DECLARED: Final[dict[str, Callable[[SqlType], ValueCodec | None]]] = {
    **dict.fromkeys(_DECIMALS, lambda declared: _decimal(_second(declared))),
    **dict.fromkeys(("BIGINT", "SERIAL"), lambda declared: _decimal(0) if declared.unsigned else None),
    **dict.fromkeys(_SHAPES, lambda _: _geometry()),
    "POINT": lambda _: _geometry(is_point=True),
    "DATE": lambda _: ValueCodec(day_text, day_count),
    "TIME": lambda declared: _time(6, _first(declared, 0)),
    "DATETIME": lambda declared: _local(3 if _first(declared, 0) <= _MILLISECONDS else 6, _first(declared, 0)),
    "TIMESTAMP": lambda declared: _instant(_first(declared, 0)),
    "BIT": lambda declared: _bits(_first(declared, 1)) if _first(declared, 1) <= _MAX_BIT else None,
    "ENUM": lambda _: ValueCodec(_read_label, _send_label),
}
