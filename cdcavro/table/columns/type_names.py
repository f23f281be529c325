"""The words that declare a type, with the way in which each holds its values.

A word is looked up with what else is stated (`Declaration`): a longer one first, and each one first
among those of its format, then of its database, then of all.

Source: as in `column_type`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Final

from cdcavro.table.columns import numbers, storage, times

if TYPE_CHECKING:
    from cdcavro.table.columns.declaration import Declaration
    from cdcavro.table.columns.storage import Storage


def storage_of(stated: Declaration) -> Storage | None:
    """Return how the values of a type are held; None for a type that is not known."""
    tables: tuple[Mapping[str, Way], ...] = (stated.words, _DATABASES.get(stated.database or "", {}), _WORDS, _SEMANTIC)
    for name in stated.names:
        for table in tables:
            way = table.get(name)
            if way is not None:
                return way(stated)
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
Way = Callable[["Declaration"], "Storage | None"]
_Words = dict[str, Way]
_WORDS: Final[_Words] = {
    **dict.fromkeys(("BOOLEAN", "BOOL"), storage.BOOLEAN),
    **dict.fromkeys(("TINYINT", "INT1"), storage.tinyint),
    **dict.fromkeys(("SMALLINT", "INT2"), storage.integer_of_bits(16)),
    **dict.fromkeys(("MEDIUMINT", "INT3", "MIDDLEINT"), storage.integer_of_bits(24)),
    **dict.fromkeys(("INT", "INTEGER", "INT4"), storage.integer_of_bits(32)),
    **dict.fromkeys(("BIGINT", "INT8", "INT64", "LONG", "SERIAL"), storage.integer_of_bits(64)),
    "YEAR": storage.YEAR,
    "FLOAT": storage.float_of_bits,
    **dict.fromkeys(("FLOAT4", "BINARY_FLOAT"), storage.SINGLE),
    **dict.fromkeys(("DOUBLE", "DOUBLE PRECISION", "REAL", "FLOAT8", "BINARY_DOUBLE"), storage.DOUBLE),
    **dict.fromkeys(("DECIMAL", "DEC", "NUMERIC", "FIXED", "NUMBER"), storage.declared_decimal),
    **dict.fromkeys(_CHARACTERS, storage.STRING),
    **dict.fromkeys(("JSON", "JSONB"), storage.JSON),
    "ENUM": storage.labels,
    "SET": storage.label_set,
    **dict.fromkeys(_BINARIES, storage.BYTES),
    **dict.fromkeys(_OTHER_BINARIES, storage.other_binary),
    "BINARY": storage.binary,
    "BIT": storage.bits,
    **dict.fromkeys(_SHAPES, storage.GEOMETRY),
    "DATE": storage.date,
    **dict.fromkeys(("TIME", "TIME WITHOUT TIME ZONE"), storage.TIME_OF_DAY),
    **dict.fromkeys(("DATETIME", "DATETIME2", "SMALLDATETIME", "TIMESTAMP WITHOUT TIME ZONE"), storage.local),
    **dict.fromkeys(("TIMESTAMP", "TIMESTAMP WITH TIME ZONE", "TIMESTAMPTZ"), storage.instant),
    "TIMESTAMP WITH LOCAL TIME ZONE": storage.instant,
}
_DATABASES: Final[dict[str, _Words]] = {
    "postgresql": {
        "REAL": storage.SINGLE,
        "FLOAT": storage.float_or_double,
        **dict.fromkeys(("SERIAL", "SERIAL4"), storage.signed(32)),
        **dict.fromkeys(("SMALLSERIAL", "SERIAL2"), storage.signed(16)),
        **dict.fromkeys(("BIGSERIAL", "SERIAL8"), storage.signed(64)),
        "BIT": lambda stated: None if stated.is_sent else storage.STRING(stated),
        "TIMESTAMP": storage.local,
    },
    "oracle": {
        **dict.fromkeys(
            ("INTEGER", "INT", "SMALLINT"), lambda stated: storage.decimal(38, 0, is_digits=stated.is_digits)
        ),
        **dict.fromkeys(("FLOAT", "REAL", "DOUBLE PRECISION"), storage.DIGITS),
        "LONG": storage.STRING,
        "DATE": storage.oracle_date,
        "TIMESTAMP": storage.local,
        "TIMESTAMP WITH TIME ZONE": storage.STRING,
    },
    "sqlserver": {
        "TINYINT": storage.always("int", numbers.read_whole(0, 255)),
        "BIT": storage.BOOLEAN,
        "REAL": storage.SINGLE,
        "FLOAT": storage.float_or_double,
        "MONEY": storage.money(19),
        "SMALLMONEY": storage.money(10),
        **dict.fromkeys(("TIMESTAMP", "ROWVERSION"), storage.BYTES),
    },
}
_KAFKA: Final = "org.apache.kafka.connect.data."
_DATA: Final = "io.debezium.data."
_CLOCK: Final = "io.debezium.time."
_SEMANTIC: Final[_Words] = {
    _KAFKA + "Decimal": storage.connect_decimal,
    _DATA + "VariableScaleDecimal": storage.connect_decimal,
    **dict.fromkeys(
        (_KAFKA + "Date", _CLOCK + "Date"), storage.always(storage.DATE, times.read_date(None, is_days=True))
    ),
    **dict.fromkeys((_KAFKA + "Time", _CLOCK + "Time"), storage.connect_time(3)),
    _CLOCK + "MicroTime": storage.connect_time(6),
    _CLOCK + "NanoTime": storage.connect_time(9),
    **dict.fromkeys((_KAFKA + "Timestamp", _CLOCK + "Timestamp"), storage.connect_local(3)),
    _CLOCK + "MicroTimestamp": storage.connect_local(6),
    _CLOCK + "NanoTimestamp": storage.connect_local(9),
    _CLOCK + "ZonedTimestamp": storage.always(storage.MICROS, times.read_instant(None, times.from_seconds_text)),
    _CLOCK + "Year": storage.signed(32),
    **dict.fromkeys((_CLOCK + "ZonedTime", _CLOCK + "Interval"), storage.STRING),
    _DATA + "Bits": storage.connect_bits,
    **dict.fromkeys(
        (_DATA + "Enum", _DATA + "EnumSet", _DATA + "Uuid", _DATA + "Xml", _DATA + "Ltree"), storage.STRING
    ),
    _DATA + "Json": storage.JSON,
    **dict.fromkeys((_DATA + f"geometry.{shape}" for shape in ("Point", "Geometry", "Geography")), storage.GEOMETRY),
}
DATABASES: Final = (None, *_DATABASES)
