"""The names of types, each with how its values are stored: an Avro type, and the rule by which they are converted.

An entry of a table is a `Storage`, or a function that returns it for a `Declaration`, or None if the
type is not known in that form. The names that a `Declaration` allows are tried longest first, and each
of them among the format's names, then among the database's, then among the common ones.

A new type is a row of a table here. If its values are converted as no other type's are, it has a rule
of its own: a reader in `readers` or `times`, and a cell of the engine, or the reason why it has none,
in `table.writing.cells`.

Source: as in `column_type`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from cdcavro.change.model import Rule

if TYPE_CHECKING:
    from cdcavro.table.columns.column_type import Declaration

MILLIS: Final = {"type": "long", "logicalType": "timestamp-millis"}
MICROS: Final = {"type": "long", "logicalType": "timestamp-micros"}
LOCAL: Final = {"type": "long", "logicalType": "local-timestamp-micros"}
DATE: Final = {"type": "int", "logicalType": "date"}
TIME: Final = {"type": "long", "logicalType": "time-micros"}
MAX_PRECISION: Final = 38
_MAX_SINGLE: Final = 24
_INT: Final = 32
_LONG: Final = 64
# A number may come as a string.
_AS_TEXT: Final = True


class Storage(NamedTuple):
    """How values are stored."""

    # The Avro type as a JSON value.
    avro: Any
    # How values are converted to it.
    rule: Rule
    # A remark for the user.
    note: str | None = None


Entry = Storage | Callable[["Declaration"], Storage | None]
"""How the values of a type are stored; a function of the declaration if it depends on that."""
YEAR: Final = Storage("int", Rule("whole", 0, 2155))
SINGLE: Final = Storage("float", Rule("single"))
DOUBLE: Final = Storage("double", Rule("double"))
BOOLEAN: Final = Storage("boolean", Rule("flag"))
STRING: Final = Storage("string", Rule("string"))
JSON: Final = Storage("string", Rule("json"))
BYTES: Final = Storage("bytes", Rule("binary", None))
GEOMETRY: Final = Storage("bytes", Rule("geometry"))
DIGITS: Final = Storage("string", Rule("digits", _AS_TEXT))
TIME_OF_DAY: Final = Storage(TIME, Rule("clock", None))
ZONED: Final = Storage(MICROS, Rule("instant", None, "seconds"))
JSON_TEXT: Final = Storage("string", Rule("json"), "an array, a map or a struct: its JSON text")


def integer_of_bits(bits: int) -> Callable[[Declaration], Storage]:
    """Return the entry of integers of so many bits, signed or unsigned: int, long, or decimal beyond 63 bits."""

    def make(declaration: Declaration) -> Storage:
        least, most = (0, 2**bits - 1) if declaration.parts.unsigned else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)
        if most >= 2 ** (_LONG - 1):
            return Storage(decimal_type(20, 0), Rule("decimal", least, most, 0, declaration.is_digits))
        return Storage("int" if most < 2 ** (_INT - 1) else "long", Rule("whole", least, most))

    return make


def tinyint(declaration: Declaration) -> Storage:
    """Return the storage of TINYINT, an int; TINYINT(1) is MySQL's boolean, but may hold any number of eight bits."""
    storage = integer_of_bits(8)(declaration)
    return storage._replace(note="TINYINT(1) is an int, not a boolean") if declaration.argument(0) == 1 else storage


def signed(bits: int) -> Storage:
    """Return the storage of integers that are never unsigned."""
    return Storage("int" if bits <= _INT else "long", Rule("whole", -(2 ** (bits - 1)), 2 ** (bits - 1) - 1))


def oms_bigint(declaration: Declaration) -> Storage:
    """Return the storage of OMS's BIGINT, a decimal since it may be unsigned; OMS's type of 64 signed bits is INT64."""
    rule = Rule("decimal", 0 if declaration.parts.unsigned else -(2**63), 2**64 - 1, 0, _AS_TEXT)
    return Storage(decimal_type(20, 0), rule, "OMS's BIGINT may pass 64 bits: decimal(20,0)")


def decimal_type(precision: int, scale: int) -> dict[str, Any]:
    """Return the Avro type of a decimal."""
    return {"type": "bytes", "logicalType": "decimal", "precision": precision, "scale": scale}


def decimal(precision: int | None, scale: int, *, is_digits: bool) -> Storage:
    """Return the storage of decimals: decimals up to 38 digits, otherwise strings of the digits sent."""
    stated = f"DECIMAL({precision},{scale})"
    if precision and scale < 0:
        precision, scale = precision - scale, 0
    if not precision:
        note = "no precision is stated: a string of the digits sent"
    elif precision > MAX_PRECISION:
        note = f"{stated} has more than {MAX_PRECISION} digits: a string"
    elif scale > precision:
        note = f"{stated} has a scale beyond its precision: a string"
    else:
        most = 10**precision - 1
        return Storage(decimal_type(precision, scale), Rule("decimal", -most, most, scale, is_digits))
    return Storage("string", Rule("digits", is_digits), note)


def declared_decimal(declaration: Declaration) -> Storage:
    """Return the storage of DECIMAL(p,s), whose scale is 0 if only p is stated."""
    return decimal(declaration.argument(0), declaration.argument(1) or 0, is_digits=declaration.is_digits)


def connect_decimal(declaration: Declaration) -> Storage:
    """Return the storage of Kafka Connect's Decimal, whose precision and scale are parameters."""
    parameters = declaration.parameters
    return decimal(parameters.get("precision"), parameters.get("scale", 0), is_digits=declaration.is_digits)


def money(precision: int) -> Entry:
    """Return the entry of SQL Server's amounts of money, which have four decimal places."""
    return lambda declaration: decimal(precision, 4, is_digits=declaration.is_digits)


def float_of_bits(declaration: Declaration) -> Storage:
    """Return the storage of FLOAT(p) as in MySQL: a double beyond 24 bits, else a float; FLOAT(m,d) is a float."""
    bits = declaration.argument(0) if len(declaration.parts.arguments) == 1 else None
    return DOUBLE if bits is not None and bits > _MAX_SINGLE else SINGLE


def float_or_double(declaration: Declaration) -> Storage:
    """Return the storage of FLOAT in databases where FLOAT without arguments is a double."""
    return float_of_bits(declaration) if declaration.parts.arguments else DOUBLE


def binary(declaration: Declaration) -> Storage:
    """Return the storage of BINARY, whose bytes Canal sends without the zeros that pad them; TiCDC states no width."""
    width = declaration.argument(0) if declaration.rules.binary_is_text else None
    return Storage("bytes", Rule("binary", width))


def other_binary(declaration: Declaration) -> Storage | None:
    """Return the storage of bytes in databases other than MySQL; None for Canal, which has base64 for MySQL only."""
    return None if declaration.rules.binary_is_text else BYTES


def bits(declaration: Declaration) -> Storage | None:
    """Return the storage of BIT(n); None for an impossible width, and if the byte order of the values is unknown."""
    width = declaration.argument(0)
    if declaration.is_sent or (width is not None and not 1 <= width <= _LONG):
        return None
    if width is None:
        width = declaration.rules.bit_width
    note = None if width else "no width is stated: as many bytes as are sent, or as an integer needs"
    return Storage("bytes", Rule("bits", width), note)


def duration(unit: str) -> Storage:
    """Return the storage of Debezium's durations: counts of a unit, in which a month has an average length."""
    return signed(_LONG)._replace(note=f"a duration in {unit}, a month being 30.4375 days")


def connect_bits(declaration: Declaration) -> Storage:
    """Return the storage of Debezium's Bits."""
    width = declaration.parameters.get("length")
    return Storage("bytes", Rule("bits", width)) if width and 0 < width <= _LONG else BYTES


def labels(declaration: Declaration) -> Storage:
    """Return the storage of ENUM."""
    return Storage("string", Rule("label", declaration.parts.members))


def label_set(declaration: Declaration) -> Storage:
    """Return the storage of SET."""
    return Storage("string", Rule("labels", declaration.parts.members))


def date(declaration: Declaration) -> Storage:
    """Return the storage of DATE; Debezium's numbers are days."""
    return Storage(DATE, Rule("day", declaration.zone, declaration.rules.date))


def local(declaration: Declaration) -> Storage:
    """Return the storage of DATETIME."""
    return Storage(LOCAL, Rule("local", declaration.zone, declaration.rules.datetime, None))


def oracle_date(declaration: Declaration) -> Storage:
    """Return the storage of Oracle's DATE, which has a time of day."""
    return Storage(LOCAL, Rule("local or day", declaration.zone, declaration.rules.datetime))


def instant(declaration: Declaration) -> Storage:
    """Return the storage of TIMESTAMP."""
    return Storage(MICROS, Rule("instant", declaration.zone, declaration.rules.instant))


def connect_local(digits: int | None) -> Storage:
    """Return the storage of Debezium's local times, which may still be counts of units of 10^-`digits` seconds."""
    return Storage(LOCAL, Rule("local", None, "none", digits))


def connect_time(digits: int) -> Storage:
    """Return the storage of Debezium's times of day, which may still be counts of units of 10^-`digits` seconds."""
    return Storage(TIME, Rule("clock", digits))


def storage_of(declaration: Declaration) -> Storage | None:
    """Return how the values of a type are stored; None for an unknown type."""
    tables = declaration.words, TYPES.get(declaration.database, {}), TYPES[None]
    for name in declaration.names:
        for table in tables:
            entry = table.get(name)
            if entry is not None:
                return entry if isinstance(entry, Storage) else entry(declaration)
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
_WORDS: Final[dict[str, Entry]] = {
    **dict.fromkeys(("BOOLEAN", "BOOL"), BOOLEAN),
    **dict.fromkeys(("TINYINT", "INT1"), tinyint),
    **dict.fromkeys(("SMALLINT", "INT2"), integer_of_bits(16)),
    **dict.fromkeys(("MEDIUMINT", "INT3", "MIDDLEINT"), integer_of_bits(24)),
    **dict.fromkeys(("INT", "INTEGER", "INT4"), integer_of_bits(32)),
    **dict.fromkeys(("BIGINT", "INT8", "INT64", "LONG", "SERIAL"), integer_of_bits(64)),
    "YEAR": YEAR,
    "FLOAT": float_of_bits,
    **dict.fromkeys(("FLOAT4", "BINARY_FLOAT"), SINGLE),
    **dict.fromkeys(("DOUBLE", "DOUBLE PRECISION", "REAL", "FLOAT8", "BINARY_DOUBLE"), DOUBLE),
    **dict.fromkeys(("DECIMAL", "DEC", "NUMERIC", "FIXED", "NUMBER"), declared_decimal),
    **dict.fromkeys(_CHARACTERS, STRING),
    **dict.fromkeys(("JSON", "JSONB"), JSON),
    "ENUM": labels,
    "SET": label_set,
    **dict.fromkeys(_BINARIES, BYTES),
    **dict.fromkeys(_OTHER_BINARIES, other_binary),
    "BINARY": binary,
    "BIT": bits,
    **dict.fromkeys(_SHAPES, GEOMETRY),
    "DATE": date,
    **dict.fromkeys(("TIME", "TIME WITHOUT TIME ZONE"), TIME_OF_DAY),
    **dict.fromkeys(("DATETIME", "DATETIME2", "SMALLDATETIME", "TIMESTAMP WITHOUT TIME ZONE"), local),
    **dict.fromkeys(("TIMESTAMP", "TIMESTAMP WITH TIME ZONE", "TIMESTAMPTZ"), instant),
    "TIMESTAMP WITH LOCAL TIME ZONE": instant,
}
_DATABASES: Final[dict[str | None, dict[str, Entry]]] = {
    "postgresql": {
        "REAL": SINGLE,
        "FLOAT": float_or_double,
        **dict.fromkeys(("SERIAL", "SERIAL4"), signed(32)),
        **dict.fromkeys(("SMALLSERIAL", "SERIAL2"), signed(16)),
        **dict.fromkeys(("BIGSERIAL", "SERIAL8"), signed(64)),
        "BIT": lambda declaration: None if declaration.is_sent else STRING,
        "TIMESTAMP": local,
    },
    "oracle": {
        **dict.fromkeys(
            ("INTEGER", "INT", "SMALLINT"), lambda declaration: decimal(38, 0, is_digits=declaration.is_digits)
        ),
        **dict.fromkeys(("FLOAT", "REAL", "DOUBLE PRECISION"), DIGITS),
        "LONG": STRING,
        "DATE": oracle_date,
        "TIMESTAMP": local,
        "TIMESTAMP WITH TIME ZONE": STRING,
    },
    "sqlserver": {
        "TINYINT": Storage("int", Rule("whole", 0, 255)),
        "BIT": BOOLEAN,
        "REAL": SINGLE,
        "FLOAT": float_or_double,
        "MONEY": money(19),
        "SMALLMONEY": money(10),
        **dict.fromkeys(("TIMESTAMP", "ROWVERSION"), BYTES),
    },
}
_KAFKA: Final = "org.apache.kafka.connect.data."
_DATA: Final = "io.debezium.data."
_CLOCK: Final = "io.debezium.time."
_SEMANTIC: Final[dict[str, Entry]] = {
    _KAFKA + "Decimal": connect_decimal,
    _DATA + "VariableScaleDecimal": connect_decimal,
    **dict.fromkeys((_KAFKA + "Date", _CLOCK + "Date"), Storage(DATE, Rule("day", None, "days"))),
    **dict.fromkeys((_KAFKA + "Time", _CLOCK + "Time"), connect_time(3)),
    _CLOCK + "MicroTime": connect_time(6),
    _CLOCK + "NanoTime": connect_time(9),
    **dict.fromkeys((_KAFKA + "Timestamp", _CLOCK + "Timestamp"), connect_local(3)),
    _CLOCK + "MicroTimestamp": connect_local(6),
    _CLOCK + "NanoTimestamp": connect_local(9),
    _CLOCK + "ZonedTimestamp": ZONED,
    _CLOCK + "Year": signed(32),
    **dict.fromkeys((_CLOCK + "IsoDate", _CLOCK + "StructuredDate"), Storage(DATE, Rule("day", None, "none"))),
    **dict.fromkeys((_CLOCK + "IsoTime", _CLOCK + "StructuredTime"), TIME_OF_DAY),
    **dict.fromkeys((_CLOCK + "IsoTimestamp", _CLOCK + "StructuredTimestamp"), connect_local(None)),
    _CLOCK + "StructuredZonedTimestamp": ZONED,
    _CLOCK + "MicroDuration": duration("microseconds"),
    _CLOCK + "NanoDuration": duration("nanoseconds"),
    **dict.fromkeys((_CLOCK + "StructuredZonedTime", _CLOCK + "StructuredDuration"), JSON_TEXT),
    **dict.fromkeys((_CLOCK + "ZonedTime", _CLOCK + "Interval"), STRING),
    _DATA + "Bits": connect_bits,
    **dict.fromkeys((_DATA + name for name in ("Enum", "EnumSet", "Uuid", "Xml", "Ltree", "Tsvector")), STRING),
    **dict.fromkeys((_DATA + f"{kind}Vector" for kind in ("Double", "Float", "SparseDouble")), JSON_TEXT),
    **dict.fromkeys((_DATA + f"geometry.{shape}" for shape in ("Circle", "Line")), JSON_TEXT),
    _DATA + "Json": JSON,
    **dict.fromkeys((_DATA + f"geometry.{shape}" for shape in ("Point", "Geometry", "Geography")), GEOMETRY),
}
TYPES: Final[dict[str | None, Mapping[str, Entry]]] = {None: _WORDS | _SEMANTIC, **_DATABASES}
"""The common names, and those that mean something else in a database."""
