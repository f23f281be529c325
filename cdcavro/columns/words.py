"""The words that declare a type, with the way in which each holds its values.

A word is looked up with what else is stated (`Stated`): a longer one first, and each one first
among those of its format, then of its database, then of all.

Source: as in `column_types`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from cdcavro.columns import holdings, numbers, times

if TYPE_CHECKING:
    from collections.abc import Callable

    from cdcavro.columns.holdings import Held
    from cdcavro.columns.stated import Stated


def held(stated: Stated) -> Held | None:
    """Give how the values of a type are held; None for a type that is not known."""
    tables = (_FORMATS.get(stated.words or "", {}), _DATABASES.get(stated.database or "", {}), _WORDS, _SEMANTIC)
    for name in stated.names:
        for table in tables:
            if name in table:
                return table[name](stated)
    return None


_CHARACTERS: Final = (
    *("CHAR", "VARCHAR", "CHARACTER", "CHARACTER VARYING", "CHAR VARYING", "LONG VARCHAR", "STRING", "TEXT"),
    *("NCHAR", "NVARCHAR", "NATIONAL CHAR", "NATIONAL VARCHAR", "NATIONAL CHARACTER", "NTEXT", "BPCHAR", "CITEXT"),
    *("TINYTEXT", "MEDIUMTEXT", "LONGTEXT", "VARCHAR2", "NVARCHAR2", "CLOB", "NCLOB", "NAME"),
    *("INTERVAL", "INTERVAL_DAY_TO_SECOND", "INTERVAL_YEAR_TO_MONTH", "ZONED_DATETIME", "DATETIMEOFFSET"),
    *("TIME WITH TIME ZONE", "TIMETZ", "UUID", "UNIQUEIDENTIFIER", "XML", "XMLTYPE", "ROWID", "UROWID"),
    *("INET", "CIDR", "MACADDR", "BIT VARYING", "VARBIT", "NATIONAL CHARACTER VARYING"),
)
_BINARIES: Final = (
    *("VARBINARY", "LONG VARBINARY", "CHAR BYTE", "BYTES", "TINYBLOB", "BLOB", "MEDIUMBLOB", "LONGBLOB"),
)
_OTHER_BINARIES: Final = ("BYTEA", "RAW", "LONG RAW", "IMAGE")
_SHAPES: Final = (
    *("GEOMETRY", "POINT", "LINESTRING", "POLYGON", "MULTIPOINT", "MULTILINESTRING", "MULTIPOLYGON"),
    *("GEOMETRYCOLLECTION", "GEOMCOLLECTION"),
)
_Words = dict[str, "Callable[[Stated], Held | None]"]
_WORDS: Final[_Words] = {
    **dict.fromkeys(("BOOLEAN", "BOOL"), holdings.BOOLEAN),
    **dict.fromkeys(("TINYINT", "INT1"), holdings.tinyint),
    **dict.fromkeys(("SMALLINT", "INT2"), holdings.integer(16)),
    **dict.fromkeys(("MEDIUMINT", "INT3", "MIDDLEINT"), holdings.integer(24)),
    **dict.fromkeys(("INT", "INTEGER", "INT4"), holdings.integer(32)),
    **dict.fromkeys(("BIGINT", "INT8", "INT64", "LONG", "SERIAL"), holdings.integer(64)),
    "YEAR": holdings.YEAR,
    "FLOAT": holdings.float_of_bits,
    **dict.fromkeys(("FLOAT4", "BINARY_FLOAT"), holdings.SINGLE),
    **dict.fromkeys(("DOUBLE", "DOUBLE PRECISION", "REAL", "FLOAT8", "BINARY_DOUBLE"), holdings.DOUBLE),
    **dict.fromkeys(("DECIMAL", "DEC", "NUMERIC", "FIXED", "NUMBER"), holdings.declared_decimal),
    **dict.fromkeys(_CHARACTERS, holdings.STRING),
    **dict.fromkeys(("JSON", "JSONB"), holdings.JSON),
    "ENUM": holdings.labels,
    "SET": holdings.label_set,
    **dict.fromkeys(_BINARIES, holdings.BYTES),
    **dict.fromkeys(_OTHER_BINARIES, holdings.other_binary),
    "BINARY": holdings.binary,
    "BIT": holdings.bits,
    **dict.fromkeys(_SHAPES, holdings.GEOMETRY),
    "DATE": holdings.date,
    **dict.fromkeys(("TIME", "TIME WITHOUT TIME ZONE"), holdings.TIME_OF_DAY),
    **dict.fromkeys(("DATETIME", "DATETIME2", "SMALLDATETIME", "TIMESTAMP WITHOUT TIME ZONE"), holdings.local),
    **dict.fromkeys(("TIMESTAMP", "TIMESTAMP WITH TIME ZONE", "TIMESTAMPTZ"), holdings.instant),
    "TIMESTAMP WITH LOCAL TIME ZONE": holdings.instant,
}
_DATABASES: Final[dict[str, _Words]] = {
    "postgresql": {
        "REAL": holdings.SINGLE,
        "FLOAT": holdings.float_or_double,
        **dict.fromkeys(("SERIAL", "SERIAL4"), holdings.signed(32)),
        **dict.fromkeys(("SMALLSERIAL", "SERIAL2"), holdings.signed(16)),
        **dict.fromkeys(("BIGSERIAL", "SERIAL8"), holdings.signed(64)),
        "BIT": lambda stated: None if stated.is_sent else holdings.STRING(stated),
        "TIMESTAMP": holdings.local,
    },
    "oracle": {
        **dict.fromkeys(
            ("INTEGER", "INT", "SMALLINT"), lambda stated: holdings.decimal(38, 0, is_digits=stated.is_digits)
        ),
        **dict.fromkeys(("FLOAT", "REAL", "DOUBLE PRECISION"), holdings.DIGITS),
        "LONG": holdings.STRING,
        "DATE": holdings.oracle_date,
        "TIMESTAMP": holdings.local,
        "TIMESTAMP WITH TIME ZONE": holdings.STRING,
    },
    "sqlserver": {
        "TINYINT": holdings.always("int", numbers.whole(0, 255)),
        "BIT": holdings.BOOLEAN,
        "REAL": holdings.SINGLE,
        "FLOAT": holdings.float_or_double,
        "MONEY": holdings.money(19),
        "SMALLMONEY": holdings.money(10),
        **dict.fromkeys(("TIMESTAMP", "ROWVERSION"), holdings.BYTES),
    },
}
_CONNECT: Final[_Words] = {
    "INT8": holdings.signed(8),
    "INT16": holdings.signed(16),
    "INT32": holdings.signed(32),
    "INT64": holdings.signed(64),
    **dict.fromkeys(("FLOAT", "FLOAT32"), holdings.SINGLE),
    **dict.fromkeys(("DOUBLE", "FLOAT64"), holdings.DOUBLE),
    "BOOLEAN": holdings.BOOLEAN,
    "STRING": holdings.STRING,
    "BYTES": holdings.BYTES,
}
CONNECT: Final = "kafka_connect"
_FORMATS: Final[dict[str, _Words]] = {
    **{format: {"BIGINT": holdings.oms_bigint} for format in holdings.OMS},
    "datahub_blob": {
        "BOOLEAN": holdings.BOOLEAN,
        "DOUBLE": holdings.datahub_double,
        "LONG": holdings.signed(64),
        "STRING": holdings.STRING,
        "BYTES": holdings.BYTES,
        "DATE": holdings.always(holdings.MILLIS, times.read_milliseconds()),
    },
    CONNECT: _CONNECT,
}
_KAFKA: Final = "org.apache.kafka.connect.data."
_DATA: Final = "io.debezium.data."
_CLOCK: Final = "io.debezium.time."
_SEMANTIC: Final[_Words] = {
    _KAFKA + "Decimal": holdings.connect_decimal,
    _DATA + "VariableScaleDecimal": holdings.connect_decimal,
    **dict.fromkeys(
        (_KAFKA + "Date", _CLOCK + "Date"), holdings.always(holdings.DATE, times.read_date(None, is_days=True))
    ),
    **dict.fromkeys((_KAFKA + "Time", _CLOCK + "Time"), holdings.connect_time(3)),
    _CLOCK + "MicroTime": holdings.connect_time(6),
    _CLOCK + "NanoTime": holdings.connect_time(9),
    **dict.fromkeys((_KAFKA + "Timestamp", _CLOCK + "Timestamp"), holdings.connect_local(3)),
    _CLOCK + "MicroTimestamp": holdings.connect_local(6),
    _CLOCK + "NanoTimestamp": holdings.connect_local(9),
    _CLOCK + "ZonedTimestamp": holdings.always(holdings.MICROS, times.read_instant(None, times.seconds_text)),
    _CLOCK + "Year": holdings.signed(32),
    **dict.fromkeys((_CLOCK + "ZonedTime", _CLOCK + "Interval"), holdings.STRING),
    _DATA + "Bits": holdings.connect_bits,
    **dict.fromkeys(
        (_DATA + "Enum", _DATA + "EnumSet", _DATA + "Uuid", _DATA + "Xml", _DATA + "Ltree"), holdings.STRING
    ),
    _DATA + "Json": holdings.JSON,
    **dict.fromkeys((_DATA + f"geometry.{shape}" for shape in ("Point", "Geometry", "Geography")), holdings.GEOMETRY),
}
DATABASES: Final = (None, *_DATABASES)
