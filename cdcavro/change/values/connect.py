"""Column values converted between Kafka Connect or Debezium and the form that every other format uses.

How a value is sent depends on its column's type: a semantic type of the embedded schema
(`io.debezium.time.Date`), or MySQL's declared type where there is no schema. As a JSON value, a
number is a number with the digits sent, days and local times are text, instants are seconds as in
OMS, and bytes are base64: big-endian for BIT, EWKB for a geometry.

Source: Debezium reference, MySQL connector, "Data type mappings", with the connector's own defaults.
"""

from __future__ import annotations

import re
from base64 import b64decode, b64encode
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from cdcavro.change.values import modes, temporal
from cdcavro.change.values.decimals import bigint, decimal, declared_decimal, read_scaled, send_scaled
from cdcavro.change.values.geometry import read_connect_geometry, send_connect_geometry
from cdcavro.change.values.modes import USUAL_MODES, Modes
from cdcavro.change.values.value_codec import ValueCodec, each, either
from cdcavro.exact.base64_text import bytes_of
from cdcavro.exact.caching import bounded_cache
from cdcavro.exact.diff import same
from cdcavro.exact.sqltimes import local_count, time_count
from cdcavro.exact.sqltype import MYSQL_FAMILY, SqlType, parse_sql_type

if TYPE_CHECKING:
    from collections.abc import Callable

_SPELLED: Final = re.compile(r"([\w.]+)(?:\(([^()]*)\))?", re.ASCII)
_PARAMETER: Final = re.compile(r"-?[0-9]{1,9}", re.ASCII)
_HEX: Final = re.compile(r"(?:[0-9a-f]{2})*", re.ASCII)
_STANDARD_ONLY: Final = re.compile(r"[+/]")
_ARRAY: Final = "array<"
_MAX_NESTED: Final = 8
_KEPT: Final = 4096
# What a schema claims must not cost more than the message: lengths are those of the databases, padding is bounded.
_MAX_BIT: Final = 64
_MAX_PADDED: Final = 8 * 1024


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


def codec_of(declared: str | None, connector: str | None = None, modes: Modes = USUAL_MODES) -> ValueCodec | None:
    """Return the codec of a column's type; None if its values are sent as they are, or the type is unknown.

    `modes` say how the values of MySQL's types, and binary values, are sent. A type whose length, precision
    or scale exceeds what databases allow counts as unknown.
    """
    return _codec(declared or "", connector in MYSQL_FAMILY, modes)


@bounded_cache(_KEPT)
def _codec(declared: str, is_mysql: bool, modes: Modes) -> ValueCodec | None:  # noqa: FBT001  the cache takes positional arguments only
    if declared.startswith(_ARRAY) and declared.endswith(">"):
        items = None if declared.count(_ARRAY) > _MAX_NESTED else _codec(declared[len(_ARRAY) : -1], False, modes)  # noqa: FBT003  as above
        return None if items is None else each(items)
    match = _SPELLED.fullmatch(declared)
    if match is not None and match[1] in _SEMANTIC:
        parameters = dict(item.partition("=")[::2] for item in (match[2] or "").split(",") if "=" in item)
        if not all(map(_PARAMETER.fullmatch, parameters.values())):
            return None
        return _SEMANTIC[match[1]]({name: int(text) for name, text in parameters.items()})
    sql_type = parse_sql_type(declared) if declared else None
    if sql_type is None or not (is_mysql or sql_type.name in _OF_ALL):
        return None
    if "(" in declared and not sql_type.arguments and not sql_type.members:
        return None
    make_codec = _DECLARED.get(sql_type.name)
    return None if make_codec is None else make_codec(sql_type, modes)


def _binary(_: SqlType, mode: Modes) -> ValueCodec | None:
    return _BINARIES.get(mode.binaries)


def _read_url_safe(sent: Any) -> str | None:
    text = sent.translate(_TO_STANDARD) if type(sent) is str and not _STANDARD_ONLY.search(sent) else None
    return None if bytes_of(text) is None else text


def _send_url_safe(value: Any) -> str | None:
    return None if bytes_of(value) is None else value.translate(_TO_URL_SAFE)


def _read_hex(sent: Any) -> str | None:
    is_hex = type(sent) is str and _HEX.fullmatch(sent) is not None
    return b64encode(bytes.fromhex(sent)).decode() if is_hex else None


def _send_hex(value: Any) -> str | None:
    return None if bytes_of(value) is None else b64decode(value).hex()


def _day(_: SqlType, __: Modes) -> ValueCodec:
    return either(temporal.DAY, temporal.ISO_DAY, temporal.structured(has_day=True, has_clock=False))


def _clock(declared: SqlType, mode: Modes) -> ValueCodec | None:
    precision = _first(declared, 0)
    if precision > temporal.MAX_PRECISION:
        return None
    count = temporal.clock(temporal.unit_of(mode.times, precision, is_clock=True), precision)
    return either(count, *_spelled_times(time_count, precision))


def _local(declared: SqlType, mode: Modes) -> ValueCodec | None:
    precision = _first(declared, 0)
    if precision > temporal.MAX_PRECISION:
        return None
    count = temporal.local(temporal.unit_of(mode.times, precision, is_clock=False), precision)
    return either(count, *_spelled_times(local_count, precision))


def _spelled_times(count: Any, precision: int | None = None) -> tuple[ValueCodec, ValueCodec]:
    """Return the codecs of times that come as ISO text and as structs."""
    struct = temporal.structured(has_day=count is local_count, has_clock=True, precision=precision)
    return temporal.iso(count, precision), struct


def _instant(declared: SqlType, _: Modes) -> ValueCodec | None:
    precision = _first(declared, 0)
    if precision > temporal.MAX_PRECISION:
        return None
    return either(temporal.instant(precision), temporal.zoned_structured())


def _bits(length: int | None) -> ValueCodec | None:
    if length is not None and length < 0:
        return None
    return ValueCodec(partial(_read_bits, length=length), partial(_send_bits, length=length), ("bits", length))


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


def _flag(_: SqlType, __: Modes) -> ValueCodec:
    """Return the codec of TINYINT, which a converter of Debezium's may turn into true and false."""
    return ValueCodec(_read_flag, _send_flag, ("flag",))


def _read_flag(sent: Any) -> int | None:
    return int(sent) if type(sent) in (bool, int) else None


def _send_flag(value: Any) -> int | None:
    return value if type(value) is int else None


def _first(declared: SqlType, default: int) -> int:
    return declared.arguments[0] if declared.arguments else default


_CONNECT: Final = "org.apache.kafka.connect.data."
_DEBEZIUM: Final = "io.debezium.data."
_DEBEZIUM_TIME: Final = "io.debezium.time."
_GEOMETRY: Final = "io.debezium.data.geometry."
_SEMANTIC: Final[dict[str, Callable[[dict[str, int]], ValueCodec | None]]] = {
    _CONNECT + "Decimal": lambda parameters: decimal(parameters["scale"]) if "scale" in parameters else None,
    **dict.fromkeys((_CONNECT + "Date", _DEBEZIUM_TIME + "Date"), lambda _: temporal.DAY),
    **dict.fromkeys((_CONNECT + "Time", _DEBEZIUM_TIME + "Time"), lambda _: temporal.clock(temporal.MILLIS)),
    **dict.fromkeys((_CONNECT + "Timestamp", _DEBEZIUM_TIME + "Timestamp"), lambda _: temporal.local(temporal.MILLIS)),
    _DEBEZIUM_TIME + "MicroTime": lambda _: temporal.clock(temporal.MICROS),
    _DEBEZIUM_TIME + "NanoTime": lambda _: temporal.clock(temporal.NANOS),
    _DEBEZIUM_TIME + "MicroTimestamp": lambda _: temporal.local(temporal.MICROS),
    _DEBEZIUM_TIME + "NanoTimestamp": lambda _: temporal.local(temporal.NANOS),
    _DEBEZIUM_TIME + "ZonedTimestamp": lambda _: temporal.instant(),
    _DEBEZIUM_TIME + "IsoDate": lambda _: temporal.ISO_DAY,
    _DEBEZIUM_TIME + "IsoTime": lambda _: temporal.iso(time_count),
    _DEBEZIUM_TIME + "IsoTimestamp": lambda _: temporal.iso(local_count),
    _DEBEZIUM_TIME + "StructuredDate": lambda _: temporal.structured(has_day=True, has_clock=False),
    _DEBEZIUM_TIME + "StructuredTime": lambda _: temporal.structured(has_day=False, has_clock=True),
    _DEBEZIUM_TIME + "StructuredTimestamp": lambda _: temporal.structured(has_day=True, has_clock=True),
    _DEBEZIUM_TIME + "StructuredZonedTimestamp": lambda _: temporal.zoned_structured(),
    _DEBEZIUM + "Bits": lambda parameters: _bits(parameters.get("length")),
    _DEBEZIUM + "Enum": lambda _: ValueCodec(_read_label, _send_label, ("escaped",)),
    _DEBEZIUM + "VariableScaleDecimal": lambda _: ValueCodec(read_scaled, send_scaled),
    _GEOMETRY + "Point": lambda _: _geometry(is_point=True),
    **dict.fromkeys((_GEOMETRY + "Geometry", _GEOMETRY + "Geography"), lambda _: _geometry()),
}
BYTES: Final = (
    *("BINARY", "VARBINARY", "LONG VARBINARY", "CHAR BYTE", "TINYBLOB", "BLOB", "MEDIUMBLOB", "LONGBLOB"),
    *("BYTEA", "RAW", "IMAGE"),
)
# Types whose values all connectors send in the same way; PostgreSQL's SERIAL is signed and of 32 bits.
_OF_ALL: Final = frozenset({"BIGINT", *BYTES})
_TO_STANDARD: Final = str.maketrans("-_", "+/")
_TO_URL_SAFE: Final = str.maketrans("+/", "-_")
_BINARIES: Final = {
    modes.BASE64_URL_SAFE: ValueCodec(_read_url_safe, _send_url_safe),
    modes.HEX: ValueCodec(_read_hex, _send_hex),
}
_SHAPES: Final = (
    *("GEOMETRY", "LINESTRING", "POLYGON", "MULTIPOINT", "MULTILINESTRING", "MULTIPOLYGON"),
    *("GEOMETRYCOLLECTION", "GEOMCOLLECTION"),
)
_DECLARED: Final[dict[str, Callable[[SqlType, Modes], ValueCodec | None]]] = {
    **dict.fromkeys(("DECIMAL", "DEC", "NUMERIC", "FIXED"), declared_decimal),
    **dict.fromkeys(("BIGINT", "SERIAL"), bigint),
    **dict.fromkeys(BYTES, _binary),
    **dict.fromkeys(_SHAPES, lambda _, __: _geometry()),
    "POINT": lambda _, __: _geometry(is_point=True),
    **dict.fromkeys(("TINYINT", "INT1"), _flag),
    "DATE": _day,
    "TIME": _clock,
    "DATETIME": _local,
    "TIMESTAMP": _instant,
    "BIT": lambda declared, _: _bits(_first(declared, 1)) if _first(declared, 1) <= _MAX_BIT else None,
    "ENUM": lambda _, __: ValueCodec(_read_label, _send_label, ("escaped",)),
}
