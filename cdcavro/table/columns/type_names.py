"""The names of types, each with the rule that says how its values are stored.

The names that a `Declaration` allows are tried longest first, and each of them among the format's
names, then among the database's, then among the common ones.

Source: as in `column_type`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Final

from cdcavro.table.columns import numbers, storage, times

if TYPE_CHECKING:
    from cdcavro.table.columns.declaration import Declaration
    from cdcavro.table.columns.storage import Storage


def storage_of(declaration: Declaration) -> Storage | None:
    """Return how the values of a type are stored; None for an unknown type."""
    tables: tuple[Mapping[str, Rule], ...] = (
        declaration.words,
        _DATABASES.get(declaration.database or "", {}),
        _WORDS,
        _SEMANTIC,
    )
    for name in declaration.names:
        for table in tables:
            rule = table.get(name)
            if rule is not None:
                return rule(declaration)
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
Rule = Callable[["Declaration"], "Storage | None"]
_Words = dict[str, Rule]
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
        "BIT": lambda declaration: None if declaration.is_sent else storage.STRING(declaration),
        "TIMESTAMP": storage.local,
    },
    "oracle": {
        **dict.fromkeys(
            ("INTEGER", "INT", "SMALLINT"), lambda declaration: storage.decimal(38, 0, is_digits=declaration.is_digits)
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
    **dict.fromkeys(
        (_CLOCK + "IsoDate", _CLOCK + "StructuredDate"), storage.always(storage.DATE, times.read_date(None))
    ),
    **dict.fromkeys((_CLOCK + "IsoTime", _CLOCK + "StructuredTime"), storage.TIME_OF_DAY),
    **dict.fromkeys(
        (_CLOCK + "IsoTimestamp", _CLOCK + "StructuredTimestamp"), storage.always(storage.LOCAL, times.read_local(None))
    ),
    _CLOCK + "StructuredZonedTimestamp": storage.always(
        storage.MICROS, times.read_instant(None, times.from_seconds_text)
    ),
    _CLOCK + "MicroDuration": storage.duration("microseconds"),
    _CLOCK + "NanoDuration": storage.duration("nanoseconds"),
    **dict.fromkeys((_CLOCK + "StructuredZonedTime", _CLOCK + "StructuredDuration"), storage.json_text),
    **dict.fromkeys((_CLOCK + "ZonedTime", _CLOCK + "Interval"), storage.STRING),
    _DATA + "Bits": storage.connect_bits,
    **dict.fromkeys((_DATA + name for name in ("Enum", "EnumSet", "Uuid", "Xml", "Ltree", "Tsvector")), storage.STRING),
    **dict.fromkeys((_DATA + f"{kind}Vector" for kind in ("Double", "Float", "SparseDouble")), storage.json_text),
    **dict.fromkeys((_DATA + f"geometry.{shape}" for shape in ("Circle", "Line")), storage.json_text),
    _DATA + "Json": storage.JSON,
    **dict.fromkeys((_DATA + f"geometry.{shape}" for shape in ("Point", "Geometry", "Geography")), storage.GEOMETRY),
}
DATABASES: Final = (None, *_DATABASES)
