"""How each format departs from the usual rules for columns: `RULES`. A format that is not listed follows them.

Source: OMS data formats, the table of data types and the changes with V3.3.0; DataHub message
formats, "Field types"; Canal, class `FlatMessage`; Debezium reference, "Data type mappings".
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from cdcavro.change.canal_values import read_canal_value, value_rule, write_canal_value
from cdcavro.change.connect_values import BYTES, codec_of, read_connect_value
from cdcavro.exact.sqltype import parse_sql_type
from cdcavro.table.columns import storage, times
from cdcavro.table.columns.declaration import FormatRules, Given

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import tzinfo

    from cdcavro.change.modes import Modes
    from cdcavro.table.columns.reader_rules import Rule


def _given_to_canal(given: Given) -> Callable[[Any], Any]:
    """Return a reader that undoes a value's conversion to its declared type and converts it to the given one."""
    own = None if given.declared is None else parse_sql_type(given.declared)
    new = parse_sql_type(given.type)
    return lambda value: given.read(read_canal_value(write_canal_value(value, own, given.zone), new, given.zone))


def _given_to_debezium(given: Given) -> Callable[[Any], Any]:
    """Return a reader of values that are still as they were sent because no type was declared."""
    # A plain integer of 64 bits says no more about its meaning than JSON does, nor does the text of bytes.
    declared = None if given.declared is None else given.declared.lower()
    is_binary = declared == "string" and parse_sql_type(given.type).name in BYTES
    is_plain = declared in (None, "int64") or is_binary
    codec = codec_of(given.type, given.connector, given.modes) if is_plain else None
    return given.read if codec is None else lambda value: given.read(read_connect_value(value, codec))


def _sent_by_canal(declared: str | None, _connector: str | None, zone: tzinfo | None, _modes: Modes) -> Rule | None:
    return value_rule(None if declared is None else parse_sql_type(declared), zone)


def _sent_by_debezium(declared: str | None, connector: str | None, _zone: tzinfo | None, modes: Modes) -> Rule | None:
    codec = codec_of(declared, connector, modes)
    return () if codec is None else codec.rule


_BIGINT: Final = {"BIGINT": storage.oms_bigint}
_OMS: Final = FormatRules(words=_BIGINT, instant=times.seconds)
RULES: Final[dict[str, FormatRules]] = {
    **dict.fromkeys(("oms_default", "oms_default_extend_column_type", "oms_canal", "oms_shareplex"), _OMS),
    "oms_dataworks": FormatRules(words=_BIGINT, datetime=times.padded_milliseconds, instant=times.dataworks_instant),
    "canal": FormatRules(binary_is_text=True, bit_width=1, reader_of_given=_given_to_canal, sent=_sent_by_canal),
    "datahub_blob": FormatRules(
        words={
            "BOOLEAN": storage.BOOLEAN,
            "DOUBLE": storage.datahub_double,
            "LONG": storage.signed(64),
            "STRING": storage.STRING,
            "BYTES": storage.BYTES,
            "DATE": storage.always(storage.MILLIS, times.read_milliseconds()),
        },
        datetime=times.milliseconds,
        instant=times.milliseconds,
    ),
    "datahub_tuple": FormatRules(datetime=times.microseconds, instant=times.microseconds),
    "debezium": FormatRules(
        words={
            "INT8": storage.signed(8),
            "INT16": storage.signed(16),
            "INT32": storage.signed(32),
            "INT64": storage.signed(64),
            **dict.fromkeys(("FLOAT", "FLOAT32"), storage.SINGLE),
            **dict.fromkeys(("DOUBLE", "FLOAT64"), storage.DOUBLE),
            "BOOLEAN": storage.BOOLEAN,
            "STRING": storage.STRING,
            "BYTES": storage.BYTES,
            **dict.fromkeys(("ARRAY", "MAP", "STRUCT"), storage.json_text),
        },
        date_is_days=True,
        bit_width=1,
        is_connect=True,
        reader_of_given=_given_to_debezium,
        sent=_sent_by_debezium,
    ),
}
