"""Values as Alibaba's Canal sends them, single and in rows, converted from and to the form of every other format.

Canal sends each value as a string, to be read by the declared type of its column. As a JSON value, a
number is a number with the digits sent, ENUM and SET are labels, and bytes are base64; a geometry is
base64 of EWKB. A string is read only if writing its value produces the same string again; any other
string stays as it is.

Source: messages that Canal 1.1.7 produced from a MySQL binlog; MySQL reference manual, "Data Types".
"""

from __future__ import annotations

import re
from base64 import b64encode
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from cdcavro.change.model import AS_SENT, Rule
from cdcavro.engine.machine import read_numbers, write_numbers
from cdcavro.exact.instants import REGULAR, SECOND, from_local, to_local
from cdcavro.exact.jsontext import base64_bytes, render
from cdcavro.exact.numbers import ExactNumber, integer, is_number, number, plain_text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from datetime import tzinfo

    from cdcavro.exact.sqltype import SqlType


_COUNT: Final = re.compile(r"0|[1-9][0-9]{0,19}", re.ASCII)
_YEAR: Final = re.compile(r"[0-9]{4}", re.ASCII)
_SECONDS: Final = re.compile(r"(0|[1-9][0-9]{0,11})(?:\.([0-9]{1,9}))?", re.ASCII)
_NUMBERS: Final = (int, float, ExactNumber)
# Integers of fewer digits than these fit into 64 bits.
_DIGITS: Final = 19
_MAX_YEAR: Final = 9999
_MAX_BITS: Final = 64
_MAX_PRECISION: Final = 6
_SECOND_SHOWN: Final = len("YYYY-MM-DD HH:mm:ss")
_SRID: Final = 4
_KIND: Final = 5
_SRID_FLAG: Final = 0x20


class CanalCodec(NamedTuple):
    """How the values of a type are read and written; both functions return None for a value that does not fit."""

    read: Callable[[str, SqlType, tzinfo | None], Any]
    write: Callable[[Any, SqlType, tzinfo | None], str | None]
    # The name of what `read` does, for the engine; None for what the engine leaves to Python.
    rule: str | None = None
    # Whether writing a value that was read always produces the string that was sent.
    is_reversible: bool = False


def read_canal_value(sent: Any, declared: SqlType | None, zone: tzinfo | None = None) -> Any:
    """Return the JSON value of what Canal sent for a column.

    A value stays as it is if it is not a string, does not fit its type or has no declared type, and
    so does a TIMESTAMP without the zone in which it was written.

    >>> from cdcavro.exact.sqltype import parse_sql_type
    >>> read_canal_value("5", parse_sql_type("set('x','y','z')"))
    'x,z'
    >>> read_canal_value("1.20", parse_sql_type("decimal(10,2)"))
    ExactNumber('1.20')
    """
    read = value_reader(declared, zone)
    return sent if read is None else read(sent)


def value_reader(declared: SqlType | None, zone: tzinfo | None = None) -> Callable[[Any], Any] | None:
    """Return a function that reads values as `read_canal_value` does; None for a type whose values stay as they are."""
    codec = None if declared is None else _CODECS.get(declared.name)
    if declared is None or codec is None or (codec.rule == _ZONED and zone is None):
        return None
    read, write, _, is_reversible = codec

    def read_sent(sent: Any) -> Any:
        if type(sent) is not str:
            return sent
        value = read(sent, declared, zone)
        return sent if value is None or not (is_reversible or write(value, declared, zone) == sent) else value

    return read_sent


def value_rule(declared: SqlType | None, zone: tzinfo | None = None) -> Rule | None:
    """Return what `value_reader` does, for the engine; None for what the engine leaves to Python."""
    codec = None if declared is None else _CODECS.get(declared.name)
    if declared is None or codec is None:
        return AS_SENT
    if codec.rule is None or (codec.rule == _ZONED and zone is None):
        return None
    if codec.rule == _ZONED:
        return Rule(_ZONED, declared.arguments[0] if declared.arguments else 0)
    return Rule(codec.rule, declared.members) if codec.rule in _OF_LABELS else Rule(codec.rule)


def write_canal_value(value: Any, declared: SqlType | None, zone: tzinfo | None = None) -> str | None:
    """Return a column's JSON value as Canal sends it; None for null.

    The value is written by its declared type. Without a type, or where the value does not fit it,
    numbers become their digits, true and false become 1 and 0, objects and arrays become JSON text, and
    strings stay as they are.

    >>> from cdcavro.exact.sqltype import parse_sql_type
    >>> write_canal_value("/v8=", parse_sql_type("blob")), write_canal_value(True, None)
    ('þÿ', '1')
    """
    write = value_writer(declared, zone)
    return write(value)


def value_writer(declared: SqlType | None, zone: tzinfo | None = None) -> Callable[[Any], str | None]:
    """Return a function that writes values as `write_canal_value` does."""
    codec = None if declared is None else _CODECS.get(declared.name)
    if declared is None or codec is None:
        return plain_value
    write = codec.write

    def write_value(value: Any) -> str | None:
        text = None if value is None else write(value, declared, zone)
        return plain_value(value) if text is None else text

    return write_value


def plain_value(value: Any) -> str | None:
    """Return what `write_canal_value` returns for a value without a declared type."""
    if value is None or type(value) is str:
        return value
    if type(value) in (dict, list):
        return render(value).decode()
    return str(int(value)) if type(value) is bool else plain_text(value)


def _read_integer(sent: str, _: SqlType, __: tzinfo | None) -> int | ExactNumber | None:
    if len(sent) < _DIGITS and sent.isdigit() and sent.isascii() and (sent[0] != "0" or len(sent) == 1):
        return int(sent)
    return integer(sent) if is_number(sent) and "." not in sent and "e" not in sent and "E" not in sent else None


def _read_number(sent: str, _: SqlType, __: tzinfo | None) -> int | float | ExactNumber | None:
    return number(sent) if is_number(sent) else None


def _write_number(value: Any, _: SqlType, __: tzinfo | None) -> str | None:
    return plain_text(value) if type(value) in _NUMBERS else None


def _read_year(sent: str, *_: object) -> int | None:
    return int(sent) if _YEAR.fullmatch(sent) else None


def _write_year(value: Any, *_: object) -> str | None:
    return f"{value:04}" if type(value) is int and 0 <= value <= _MAX_YEAR else None


def _read_bytes(sent: str, *_: object) -> str | None:
    try:
        return b64encode(sent.encode("iso-8859-1")).decode()
    except UnicodeEncodeError:
        return None


def _write_bytes(value: Any, *_: object) -> str | None:
    raw = base64_bytes(value)
    return None if raw is None else raw.decode("iso-8859-1")


def _read_geometry(sent: str, *_: object) -> str | None:
    """Return the EWKB of MySQL's form, a reference system (0 for none) followed by little-endian WKB."""
    raw = sent.encode("iso-8859-1", "replace")
    srid, wkb = raw[:_SRID], raw[_SRID:]
    if len(wkb) < _KIND or wkb[0] != 1 or wkb[_KIND - 1] & _SRID_FLAG:
        return None
    if any(srid):
        wkb = wkb[: _KIND - 1] + bytes([wkb[_KIND - 1] | _SRID_FLAG]) + srid + wkb[_KIND:]
    return b64encode(wkb).decode()


def _write_geometry(value: Any, *_: object) -> str | None:
    wkb = base64_bytes(value) or b""
    srid = bytes(_SRID)
    if len(wkb) < _KIND or wkb[0] != 1:
        return None
    if wkb[_KIND - 1] & _SRID_FLAG:
        srid = wkb[_KIND : _KIND + _SRID]
        wkb = wkb[: _KIND - 1] + bytes([wkb[_KIND - 1] ^ _SRID_FLAG]) + wkb[_KIND + _SRID :]
    return (srid + wkb).decode("iso-8859-1") if len(srid) == _SRID else None


def _read_bits(sent: str, declared: SqlType, _: object) -> str | None:
    bits, count = _bit_length(declared), _count(sent)
    if bits is None or count is None or count >> bits:
        return None
    # Without a length, a number has as many bytes as it needs.
    return b64encode(count.to_bytes(_byte_length(bits if declared.arguments else count.bit_length()), "big")).decode()


def _write_bits(value: Any, declared: SqlType, _: object) -> str | None:
    bits, raw = _bit_length(declared), base64_bytes(value)
    if bits is None or raw is None or (declared.arguments and len(raw) != _byte_length(bits)):
        return None
    if int.from_bytes(raw, "big") >> bits:
        return None
    return str(int.from_bytes(raw, "big"))


def _bit_length(declared: SqlType) -> int | None:
    bits = declared.arguments[0] if declared.arguments else _MAX_BITS
    return bits if 1 <= bits <= _MAX_BITS else None


def _byte_length(bits: int) -> int:
    return -(-bits // 8) or 1


def _count(sent: str) -> int | None:
    return int(sent) if _COUNT.fullmatch(sent) else None


def _read_label(sent: str, declared: SqlType, _: object) -> str | None:
    """Return the label of an ENUM's index, which counts from 1; 0 is the empty string, for an invalid value."""
    count = _count(sent)
    if count is None or not declared.members or count > len(declared.members):
        return None
    return declared.members[count - 1] if count else ""


def _write_label(value: Any, declared: SqlType, _: object) -> str | None:
    if type(value) is not str or not declared.members:
        return None
    if value in declared.indexes:
        return str(declared.indexes[value] + 1)
    return None if value else "0"


def _read_labels(sent: str, declared: SqlType, _: object) -> str | None:
    """Return the labels of a SET's bitmask, in the order in which they are declared."""
    count = _count(sent)
    if count is None or not 0 < len(declared.members) <= _MAX_BITS or count >> len(declared.members):
        return None
    return ",".join(label for i, label in enumerate(declared.members) if count >> i & 1)


def _write_labels(value: Any, declared: SqlType, _: object) -> str | None:
    if type(value) is not str or not 0 < len(declared.members) <= _MAX_BITS:
        return None
    labels = set(value.split(",")) if value else set()
    return str(sum(1 << declared.indexes[label] for label in labels)) if labels <= declared.indexes.keys() else None


def _read_instant(sent: str, declared: SqlType, zone: tzinfo | None) -> str | None:
    """Return a TIMESTAMP as OMS sends it: seconds since the epoch, the fraction without trailing zeros."""
    precision = declared.arguments[0] if declared.arguments else 0
    is_spelled = len(sent) == _SECOND_SHOWN + (precision and precision + 1) and sent[10] == " "
    instant = from_local(sent, zone) if is_spelled else None
    if instant is None or instant < 0:
        return None
    if type(zone) not in REGULAR and to_local(instant, zone) != sent[:_SECOND_SHOWN].replace(" ", "T"):
        return None
    fraction = sent[_SECOND_SHOWN + 1 :].rstrip("0")
    return f"{instant // SECOND}.{fraction}" if fraction else str(instant // SECOND)


def _write_instant(value: Any, declared: SqlType, zone: tzinfo | None) -> str | None:
    match = _SECONDS.fullmatch(value) if type(value) is str else None
    local = to_local(int(match[1]) * SECOND, zone) if match else None
    if match is None or local is None:
        return None
    precision = declared.arguments[0] if declared.arguments else 0
    fraction = (match[2] or "").rstrip("0")
    if not len(fraction) <= precision <= _MAX_PRECISION:
        return None
    return local.replace("T", " ") + (f".{fraction:0<{precision}}" if precision else "")


_INTEGERS: Final = ("TINYINT", "SMALLINT", "MEDIUMINT", "INT", "INTEGER", "BIGINT", "SERIAL", "BOOL", "BOOLEAN")
_DECIMALS: Final = ("DECIMAL", "DEC", "NUMERIC", "FIXED", "FLOAT", "REAL", "DOUBLE", "DOUBLE PRECISION")
_BINARIES: Final = ("BINARY", "VARBINARY", "LONG VARBINARY", "CHAR BYTE", "BYTES")
_BLOBS: Final = ("TINYBLOB", "BLOB", "MEDIUMBLOB", "LONGBLOB")
_SHAPES: Final = ("GEOMETRY", "POINT", "LINESTRING", "POLYGON", "MULTIPOINT", "MULTILINESTRING", "MULTIPOLYGON")
_COLLECTIONS: Final = ("GEOMETRYCOLLECTION", "GEOMCOLLECTION")
# Whether the numbers of a type are whole.
NUMBERS: Final = dict.fromkeys(_INTEGERS, True) | dict.fromkeys(_DECIMALS, False)
_ZONED: Final = "zoned"
_OF_LABELS: Final = ("label", "labels")
_CODECS: Final[dict[str, CanalCodec]] = {
    **dict.fromkeys(_INTEGERS, CanalCodec(_read_integer, _write_number, "number", is_reversible=True)),
    **dict.fromkeys(_DECIMALS, CanalCodec(_read_number, _write_number, "number", is_reversible=True)),
    **dict.fromkeys(_BINARIES + _BLOBS, CanalCodec(_read_bytes, _write_bytes, "bytes")),
    **dict.fromkeys(_SHAPES + _COLLECTIONS, CanalCodec(_read_geometry, _write_geometry)),
    "YEAR": CanalCodec(_read_year, _write_year, "number"),
    "BIT": CanalCodec(_read_bits, _write_bits, "counted bits"),
    "ENUM": CanalCodec(_read_label, _write_label, "label"),
    "SET": CanalCodec(_read_labels, _write_labels, "labels"),
    "TIMESTAMP": CanalCodec(_read_instant, _write_instant, _ZONED, is_reversible=True),
}


class CanalRowReader:
    """Converts rows as Canal sent them, by the declared types of columns, each with its name."""

    __slots__ = ("_numbers", "_readers")

    def __init__(self, columns: Iterable[tuple[str, SqlType]], zone: tzinfo | None) -> None:
        types = dict(columns)
        self._numbers = {name: NUMBERS[declared.name] for name, declared in types.items() if declared.name in NUMBERS}
        readers = {name: value_reader(types[name], zone) for name in types.keys() - self._numbers.keys()}
        self._readers = {name: read for name, read in readers.items() if read is not None}

    def convert(self, row: Mapping[str, Any]) -> dict[str, Any]:
        """Return a row as changes have it."""
        converted = dict(row)
        read_numbers(converted, self._numbers)
        return _convert_columns(converted, self._readers)


class CanalRowWriter:
    """Converts rows of changes, by the declared types of columns, each with its name."""

    __slots__ = ("_writers",)

    def __init__(self, columns: Iterable[tuple[str, SqlType]], zone: tzinfo | None) -> None:
        writers = {name: value_writer(declared, zone) for name, declared in columns if declared.name not in NUMBERS}
        self._writers = {name: write for name, write in writers.items() if write is not plain_value}

    def convert(self, row: Mapping[str, Any]) -> dict[str, Any]:
        """Return a row as Canal sends it."""
        converted = _convert_columns(dict(row), self._writers)
        if not write_numbers(converted):
            converted = {name: plain_value(value) for name, value in converted.items()}
        return converted


def _convert_columns(row: dict[str, Any], converters: dict[str, Callable[[Any], Any]]) -> dict[str, Any]:
    """Return a row with the values of some columns converted, in place; null stays null."""
    for name in converters if len(converters) <= len(row) else row.keys() & converters.keys():
        value = row.get(name)
        if value is not None:
            row[name] = converters[name](value)
    return row
