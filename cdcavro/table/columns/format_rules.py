"""How formats declare columns and in which form their values come: `RULES`. A format not listed follows `USUAL`.

Source: OMS data formats, the table of data types and the changes with V3.3.0; DataHub message
formats, "Field types"; Canal, class `FlatMessage`; Debezium reference, "Data type mappings";
AWS DMS API Reference, `KafkaSettings`.
"""

from __future__ import annotations

import re
from base64 import b64encode
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from cdcavro.change.canal_values import read_canal_value, value_rule, write_canal_value
from cdcavro.change.connect_values import BYTES, codec_of, read_connect_value
from cdcavro.change.model import AS_SENT, Rule
from cdcavro.exact.sqltype import SqlType, parse_sql_type
from cdcavro.table.columns import type_names
from cdcavro.table.columns.type_names import Storage

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from datetime import tzinfo

    from cdcavro.change.operations import Modes
    from cdcavro.table.columns.type_names import Entry

    Convert = Callable[[Any], Any]


class GivenType(NamedTuple):
    """A type that the user gives for a column, with what decides how its values are sent."""

    text: str
    # The type that the format declares.
    declared: str | None
    # The database, where the format says how it sends the values of its types.
    connector: str | None
    # The source's time zone.
    zone: tzinfo | None
    modes: Modes


def no_conversion(_: GivenType) -> Convert | None:
    """Return None: values are sent in the same form whatever their declared type."""
    return None


def sent_as_is(_type: str | None, _connector: str | None, _zone: tzinfo | None, _modes: Modes) -> Rule | None:
    """Return the rule of values that are sent as all formats have them, whatever their type."""
    return AS_SENT


@dataclass(frozen=True, slots=True, kw_only=True)
class FormatRules:
    """How a format declares columns, and in which form their values come."""

    # The type names of the format, which take precedence.
    words: Mapping[str, Entry] = field(default_factory=dict)
    # What a number, or the text of a number, means in a column of dates, of local times and of instants: names in
    # `times.COUNTS`.
    date: str = "none"
    datetime: str = "none"
    instant: str = "seconds"
    # Whether binary values of MySQL's types come as ISO-8859-1 text without the zeros that pad BINARY, and other binary
    # values in no known form.
    binary_is_text: bool = False
    # The name in `RULES` by which types in statements are stored; None if as in the database.
    of_statements: str | None = None
    # The width of a BIT that states none.
    bit_width: int | None = None
    # Whether types are Kafka Connect's unless they are a database's.
    is_connect: bool = False
    # Whether values are sent by the types of their columns though messages do not state these.
    is_typed_by_table: bool = False
    # Whether the types of messages may lack the arguments that the table's have: TiCDC's do, which writes Canal's form.
    has_types_in_part: bool = False
    # Makes what a value passes before it is read as a type that the user gives; None if it is read as it is.
    conversion: Callable[[GivenType], Convert | None] = no_conversion
    # How the values of a declared type are sent, by the connector, the zone and the modes; None for what the engine
    # leaves to Python.
    sent: Callable[[str | None, str | None, tzinfo | None, Modes], Rule | None] = sent_as_is


def _canal_conversion(given: GivenType) -> Convert:
    """Return what undoes a value's conversion to its declared type and converts it to the given one."""
    declared = None if given.declared is None else parse_sql_type(given.declared)
    return partial(_converted_again, declared=declared, given=parse_sql_type(given.text), zone=given.zone)


def _converted_again(value: Any, declared: SqlType | None, given: SqlType, zone: tzinfo | None) -> Any:
    return read_canal_value(write_canal_value(value, declared, zone), given, zone)


def _debezium_conversion(given: GivenType) -> Convert | None:
    """Return what reads values that are still as they were sent because no type was declared."""
    # A plain integer of 64 bits says no more about its meaning than JSON does, nor does the text of bytes.
    declared = None if given.declared is None else given.declared.lower()
    is_binary = declared == "string" and parse_sql_type(given.text).name in BYTES
    is_plain = declared in (None, "int64") or is_binary
    codec = codec_of(given.text, given.connector, given.modes) if is_plain else None
    return None if codec is None else partial(read_connect_value, codec=codec)


def _sent_by_canal(declared: str | None, _connector: str | None, zone: tzinfo | None, _modes: Modes) -> Rule | None:
    return value_rule(None if declared is None else parse_sql_type(declared), zone)


def _sent_by_maxwell(declared: str | None, _connector: str | None, zone: tzinfo | None, _modes: Modes) -> Rule | None:
    """Return the rule of a TIMESTAMP, a text of local time with just its column's digits; all else is as sent."""
    type_ = None if declared is None else parse_sql_type(declared)
    is_zoned = type_ is not None and type_.name == "TIMESTAMP" and zone is not None
    return value_rule(type_, zone) if is_zoned else AS_SENT


def _sent_by_debezium(declared: str | None, connector: str | None, _zone: tzinfo | None, modes: Modes) -> Rule | None:
    codec = codec_of(declared, connector, modes)
    return AS_SENT if codec is None else codec.rule


def _dms_conversion(given: GivenType) -> Convert | None:
    """Return what turns the hexadecimal text of bytes into base64; None for any other type."""
    return _base64_of_digits if parse_sql_type(given.text).name in _OF_DIGITS else None


def _base64_of_digits(value: Any) -> Any:
    if type(value) is not str:
        return value
    match = _HEXADECIMAL.fullmatch(value)
    return None if match is None else b64encode(bytes.fromhex(match[1])).decode()


_OF_DIGITS: Final = frozenset({*BYTES, "BYTES", "LONG RAW", "BIT"})
_HEXADECIMAL: Final = re.compile(r"(?:0x)?((?:[0-9A-Fa-f]{2})*)", re.ASCII)
USUAL: Final = FormatRules()
_BIGINT: Final = {"BIGINT": type_names.oms_bigint}
_DOUBLE: Final = type_names.DIGITS._replace(note="DataHub's DOUBLE may be a DECIMAL: a string of the digits sent")
_OMS: Final = FormatRules(words=_BIGINT, instant="seconds or long")
_DEBEZIUM: Final = FormatRules(
    words={
        "INT8": type_names.signed(8),
        "INT16": type_names.signed(16),
        "INT32": type_names.signed(32),
        "INT64": type_names.signed(64),
        **dict.fromkeys(("FLOAT", "FLOAT32"), type_names.SINGLE),
        **dict.fromkeys(("DOUBLE", "FLOAT64"), type_names.DOUBLE),
        "BOOLEAN": type_names.BOOLEAN,
        "STRING": type_names.STRING,
        "BYTES": type_names.BYTES,
        **dict.fromkeys(("ARRAY", "MAP", "STRUCT"), type_names.JSON_TEXT),
    },
    date="days",
    bit_width=1,
    is_connect=True,
    conversion=_debezium_conversion,
    sent=_sent_by_debezium,
)
_STREAM_X: Final = {
    "BOOLEAN": type_names.BOOLEAN,
    "DOUBLE": _DOUBLE,
    "LONG": type_names.signed(64),
    "STRING": type_names.STRING,
    "BYTES": type_names.BYTES,
    "DATE": Storage(type_names.MILLIS, Rule("milliseconds")),
}
# Types of databases that are stored otherwise than the one of StreamX's six in which their values come. Of BIT, BOOLEAN,
# TIME and YEAR, and Oracle's NUMBER, no document says which that is.
_OF_STREAM_X: Final = {
    "DOUBLE": ("FLOAT", "FLOAT4", "FLOAT8", "DOUBLE PRECISION", "REAL", "DECIMAL", "DEC", "NUMERIC", "FIXED", "MONEY"),
    "LONG": ("BIGINT UNSIGNED", "SERIAL"),
    "DATE": ("DATETIME", "DATETIME2", "SMALLDATETIME", "TIMESTAMP", "TIMESTAMP WITHOUT TIME ZONE", "TIMESTAMPTZ"),
}
_STATEMENTS: Final = "statements of datahub_blob"
RULES: Final[dict[str, FormatRules]] = {
    **dict.fromkeys(("oms_default", "oms_default_extend_column_type", "oms_canal", "oms_shareplex"), _OMS),
    "oms_dataworks": FormatRules(words=_BIGINT, date="padded", datetime="padded", instant="padded or seconds"),
    "canal": FormatRules(
        binary_is_text=True, has_types_in_part=True, conversion=_canal_conversion, sent=_sent_by_canal
    ),
    "canal_protobuf": FormatRules(binary_is_text=True, conversion=_canal_conversion, sent=_sent_by_canal),
    "datahub_blob": FormatRules(
        words=_STREAM_X,
        date="milliseconds",
        datetime="milliseconds",
        instant="milliseconds",
        of_statements=_STATEMENTS,
    ),
    _STATEMENTS: FormatRules(
        words=_STREAM_X | {name: _STREAM_X[word] for word, names in _OF_STREAM_X.items() for name in names}
    ),
    "maxwell": FormatRules(is_typed_by_table=True, sent=_sent_by_maxwell),
    "aws_dms": FormatRules(conversion=_dms_conversion),
    "datahub_tuple": FormatRules(date="microseconds", datetime="microseconds", instant="microseconds"),
    **dict.fromkeys(("debezium", "debezium_flat"), _DEBEZIUM),
}
