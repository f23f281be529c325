"""Values as Kafka Connect and Debezium send them, converted from and to the form of every other format.

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
from typing import TYPE_CHECKING, Any, Final, Protocol

from cdcavro.change import connect_codecs as codecs
from cdcavro.change.connect_codecs import (
    ConnectCodec,
    array_of,
    bigint,
    decimal,
    declared_decimal,
    first_of,
    read_connect_geometry,
    read_scaled,
    send_connect_geometry,
    send_scaled,
)
from cdcavro.change.model import Rule, replace
from cdcavro.change.operations import BASE64_URL_SAFE, HEX, USUAL_MODES, Modes
from cdcavro.engine.machine import same
from cdcavro.exact.caching import IdentityCache, bounded_cache
from cdcavro.exact.instants import local_count, time_count
from cdcavro.exact.jsontext import base64_bytes
from cdcavro.exact.sqltype import MYSQL_FAMILY, SqlType, parse_sql_type

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Sequence

    from cdcavro.change.model import Column


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


def read_connect_value(sent: Any, codec: ConnectCodec | None) -> Any:
    """Return the JSON value of what was sent for a column; a value that does not fit its type stays as it is.

    >>> read_connect_value("AkY=", codec_of("DECIMAL(10,2)", "mysql"))
    5.82
    """
    value = None if codec is None or sent is None else codec.read(sent)
    if codec is None or value is None:
        return sent
    # What is sent in the same way is read in the same way.
    again = codec.send(value)
    return value if same(again, sent) or same(codec.read(again), value) else sent


def send_connect_value(value: Any, codec: ConnectCodec | None) -> Any:
    """Return what is sent for a column's JSON value; a value that does not fit its type stays as it is.

    >>> send_connect_value("2024-02-29", codec_of("io.debezium.time.Date"))
    19782
    """
    sent = None if codec is None or value is None else codec.send(value)
    return value if sent is None else sent


def codec_of(declared: str | None, connector: str | None = None, modes: Modes = USUAL_MODES) -> ConnectCodec | None:
    """Return the codec of a column's type; None if its values are sent as they are, or the type is unknown.

    `modes` say how the values of MySQL's types, and binary values, are sent. A type whose length, precision
    or scale exceeds what databases allow counts as unknown.
    """
    return _codec(declared or "", connector in MYSQL_FAMILY, modes)


def codecs_of(
    columns: tuple[Column, ...], connector: str | None = None, modes: Modes = USUAL_MODES
) -> dict[str | None, ConnectCodec]:
    """Return the codecs of columns by their names, without those whose values are sent as they are."""
    codecs: dict[str | None, ConnectCodec] = _CODECS[connector in MYSQL_FAMILY].of(columns, modes)
    return codecs


def _codecs(columns: tuple[Column, ...] | None, modes: Modes, *, is_mysql: bool) -> dict[str | None, ConnectCodec]:
    codecs = {column.name: _codec(column.type or "", is_mysql, modes) for column in columns or ()}
    return {name: codec for name, codec in codecs.items() if codec is not None}


_CODECS: Final = tuple(IdentityCache(partial(_codecs, is_mysql=is_mysql)) for is_mysql in (False, True))


@bounded_cache(_KEPT)
def _codec(declared: str, is_mysql: bool, modes: Modes) -> ConnectCodec | None:  # noqa: FBT001  the cache takes positional arguments only
    if declared.startswith(_ARRAY) and declared.endswith(">"):
        items = None if declared.count(_ARRAY) > _MAX_NESTED else _codec(declared[len(_ARRAY) : -1], False, modes)  # noqa: FBT003  as above
        return None if items is None else array_of(items)
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


def _binary(_: SqlType, mode: Modes) -> ConnectCodec | None:
    return _BINARIES.get(mode.binaries)


def _read_url_safe(sent: Any) -> str | None:
    text = sent.translate(_TO_STANDARD) if type(sent) is str and not _STANDARD_ONLY.search(sent) else None
    return None if base64_bytes(text) is None else text


def _send_url_safe(value: Any) -> str | None:
    return None if base64_bytes(value) is None else value.translate(_TO_URL_SAFE)


def _read_hex(sent: Any) -> str | None:
    is_hex = type(sent) is str and _HEX.fullmatch(sent) is not None
    return b64encode(bytes.fromhex(sent)).decode() if is_hex else None


def _send_hex(value: Any) -> str | None:
    return None if base64_bytes(value) is None else b64decode(value).hex()


def _day(_: SqlType, __: Modes) -> ConnectCodec:
    return first_of(codecs.DAY, codecs.ISO_DAY, codecs.structured(has_day=True, has_clock=False))


def _clock(declared: SqlType, mode: Modes) -> ConnectCodec | None:
    precision = _first_argument(declared, 0)
    if precision > codecs.MAX_PRECISION:
        return None
    count = codecs.clock(codecs.unit_of(mode.times, precision, is_clock=True), precision)
    return first_of(count, *_text_times(time_count, precision))


def _local(declared: SqlType, mode: Modes) -> ConnectCodec | None:
    precision = _first_argument(declared, 0)
    if precision > codecs.MAX_PRECISION:
        return None
    count = codecs.local(codecs.unit_of(mode.times, precision, is_clock=False), precision)
    return first_of(count, *_text_times(local_count, precision))


def _text_times(count: Any, precision: int | None = None) -> tuple[ConnectCodec, ConnectCodec]:
    """Return the codecs of times that come as ISO text and as structs."""
    struct = codecs.structured(has_day=count is local_count, has_clock=True, precision=precision)
    return codecs.iso(count, precision), struct


def _instant(declared: SqlType, _: Modes) -> ConnectCodec | None:
    precision = _first_argument(declared, 0)
    if precision > codecs.MAX_PRECISION:
        return None
    return first_of(codecs.instant(precision), codecs.zoned_structured())


def _bits(length: int | None) -> ConnectCodec | None:
    if length is not None and length < 0:
        return None
    return ConnectCodec(partial(_read_bits, length=length), partial(_send_bits, length=length), Rule("bits", length))


def _read_bits(sent: Any, length: int | None) -> str | None:
    if type(sent) is bool:
        return b64encode(bytes([sent])).decode() if length == 1 else None
    raw, size = base64_bytes(sent), -(-(length or 0) // 8)
    if raw is None or (length is not None and len(raw) > size) or len(raw) < size > _MAX_PADDED:
        return None
    return b64encode(raw[::-1].rjust(size, b"\0")).decode()


def _send_bits(value: Any, length: int | None) -> str | bool | None:
    raw = base64_bytes(value)
    if length == 1:
        return {b"\0": False, b"\1": True}.get(raw or b"")
    return None if raw is None else b64encode(raw[::-1]).decode()


def _read_label(sent: Any) -> str | None:
    r"""Return an ENUM's label, in which Debezium escapes each comma as `\,`."""
    return sent.replace("\\,", ",") if type(sent) is str else None


def _send_label(value: Any) -> str | None:
    return value.replace(",", "\\,") if type(value) is str else None


def _geometry(*, is_point: bool = False) -> ConnectCodec:
    return ConnectCodec(read_connect_geometry, partial(send_connect_geometry, is_point=is_point))


def _flag(_: SqlType, __: Modes) -> ConnectCodec:
    """Return the codec of TINYINT, which a converter of Debezium's may turn into true and false."""
    return ConnectCodec(_read_flag, _send_flag, Rule("flag"))


def _read_flag(sent: Any) -> int | None:
    return int(sent) if type(sent) in (bool, int) else None


def _send_flag(value: Any) -> int | None:
    return value if type(value) is int else None


def _first_argument(declared: SqlType, default: int) -> int:
    return declared.arguments[0] if declared.arguments else default


_CONNECT: Final = "org.apache.kafka.connect.data."
_DEBEZIUM: Final = "io.debezium.data."
_DEBEZIUM_TIME: Final = "io.debezium.time."
_GEOMETRY: Final = "io.debezium.data.geometry."
_SEMANTIC: Final[dict[str, Callable[[dict[str, int]], ConnectCodec | None]]] = {
    _CONNECT + "Decimal": lambda parameters: decimal(parameters["scale"]) if "scale" in parameters else None,
    **dict.fromkeys((_CONNECT + "Date", _DEBEZIUM_TIME + "Date"), lambda _: codecs.DAY),
    **dict.fromkeys((_CONNECT + "Time", _DEBEZIUM_TIME + "Time"), lambda _: codecs.clock(codecs.MILLIS)),
    **dict.fromkeys((_CONNECT + "Timestamp", _DEBEZIUM_TIME + "Timestamp"), lambda _: codecs.local(codecs.MILLIS)),
    _DEBEZIUM_TIME + "MicroTime": lambda _: codecs.clock(codecs.MICROS),
    _DEBEZIUM_TIME + "NanoTime": lambda _: codecs.clock(codecs.NANOS),
    _DEBEZIUM_TIME + "MicroTimestamp": lambda _: codecs.local(codecs.MICROS),
    _DEBEZIUM_TIME + "NanoTimestamp": lambda _: codecs.local(codecs.NANOS),
    _DEBEZIUM_TIME + "ZonedTimestamp": lambda _: codecs.instant(),
    _DEBEZIUM_TIME + "IsoDate": lambda _: codecs.ISO_DAY,
    _DEBEZIUM_TIME + "IsoTime": lambda _: codecs.iso(time_count),
    _DEBEZIUM_TIME + "IsoTimestamp": lambda _: codecs.iso(local_count),
    _DEBEZIUM_TIME + "StructuredDate": lambda _: codecs.structured(has_day=True, has_clock=False),
    _DEBEZIUM_TIME + "StructuredTime": lambda _: codecs.structured(has_day=False, has_clock=True),
    _DEBEZIUM_TIME + "StructuredTimestamp": lambda _: codecs.structured(has_day=True, has_clock=True),
    _DEBEZIUM_TIME + "StructuredZonedTimestamp": lambda _: codecs.zoned_structured(),
    _DEBEZIUM + "Bits": lambda parameters: _bits(parameters.get("length")),
    _DEBEZIUM + "Enum": lambda _: ConnectCodec(_read_label, _send_label, Rule("escaped")),
    _DEBEZIUM + "VariableScaleDecimal": lambda _: ConnectCodec(read_scaled, send_scaled),
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
    BASE64_URL_SAFE: ConnectCodec(_read_url_safe, _send_url_safe),
    HEX: ConnectCodec(_read_hex, _send_hex),
}
_SHAPES: Final = (
    *("GEOMETRY", "LINESTRING", "POLYGON", "MULTIPOINT", "MULTILINESTRING", "MULTIPOLYGON"),
    *("GEOMETRYCOLLECTION", "GEOMCOLLECTION"),
)
_DECLARED: Final[dict[str, Callable[[SqlType, Modes], ConnectCodec | None]]] = {
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
    "BIT": lambda declared, _: (
        _bits(_first_argument(declared, 1)) if _first_argument(declared, 1) <= _MAX_BIT else None
    ),
    "ENUM": lambda _, __: ConnectCodec(_read_label, _send_label, Rule("escaped")),
}


# Unsigned integers of 64 bits, for which Kafka Connect has no type: a column of plain integers may be one.

PLAIN_LONG: Final = "int64"


class DeclaredColumn(Protocol):
    """A column with its declared type, a `Column` or a table's own."""

    @property
    def name(self) -> str | None:
        """The name."""

    @property
    def type(self) -> str | None:
        """The declared type."""


def with_unsigned(columns: tuple[Column, ...], known: Sequence[DeclaredColumn]) -> tuple[Column, ...]:
    """Return the columns of a change, plain 64-bit integers being unsigned where the table's known columns are.

    >>> from cdcavro.change.model import Column
    >>> with_unsigned((Column(name="n", type="int64"),), [Column(name="n", type="BIGINT(20) UNSIGNED")])
    (Column(name='n', type='BIGINT(20) UNSIGNED', code=None),)
    """
    if not _HAVE_PLAIN_LONGS.of(columns):
        return columns
    types = types_of_unsigned(known)
    if not may_be_unsigned(columns, types):
        return columns
    return tuple(
        replace(column, type=types.get(column.name, PLAIN_LONG)) if column.type == PLAIN_LONG else column
        for column in columns
    )


def may_be_unsigned(columns: Sequence[Column], names: Container[str | None]) -> bool:
    """Return whether a plain 64-bit integer among the columns has one of these names, those of unsigned columns."""
    return any(column.type == PLAIN_LONG and column.name in names for column in columns)


def types_of_unsigned(columns: Sequence[DeclaredColumn]) -> dict[str | None, str]:
    """Return the types of the columns that are declared as unsigned integers of 64 bits, by their names."""
    return {column.name: column.type for column in columns if column.type is not None and is_unsigned(column.type)}


def is_unsigned(declared: str) -> bool:
    """Return whether a declared type is an unsigned integer of 64 bits."""
    sql_type = parse_sql_type(declared)
    return sql_type.unsigned and sql_type.name in ("BIGINT", "SERIAL")


def _have_plain_longs(columns: tuple[Column, ...], _: object) -> bool:
    return any(column.type == PLAIN_LONG for column in columns)


_HAVE_PLAIN_LONGS: Final = IdentityCache(_have_plain_longs)
