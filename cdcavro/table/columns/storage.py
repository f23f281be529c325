"""How the values of declared types are stored in Avro.

Most functions here are rules, which return the storage for a `Declaration`, or None if the type is
not known in that form; the others return such rules.

Source: as in `column_type`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

from cdcavro.table.columns import numbers, strings, times

if TYPE_CHECKING:
    from collections.abc import Callable

    from cdcavro.table.columns.declaration import Declaration

MILLIS: Final = {"type": "long", "logicalType": "timestamp-millis"}
MICROS: Final = {"type": "long", "logicalType": "timestamp-micros"}
LOCAL: Final = {"type": "long", "logicalType": "local-timestamp-micros"}
DATE: Final = {"type": "int", "logicalType": "date"}
TIME: Final = {"type": "long", "logicalType": "time-micros"}
_MAX_SINGLE: Final = 24
_INT: Final = 32
_LONG: Final = 64


class Storage(NamedTuple):
    """How values are stored: the Avro type as a JSON value, the reader, and a remark for the user."""

    avro: Any
    read: Callable[[Any], Any]
    note: str | None = None


def always(avro: Any, read: Callable[[Any], Any]) -> Callable[[Declaration], Storage]:
    """Return a rule whose storage does not depend on the declaration."""
    storage = Storage(avro, read)
    return lambda _: storage


def integer_of_bits(bits: int) -> Callable[[Declaration], Storage]:
    """Return the rule for integers of so many bits, signed or unsigned: int, long, or decimal beyond 63 bits."""

    def make(declaration: Declaration) -> Storage:
        least, most = (0, 2**bits - 1) if declaration.parts.unsigned else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)
        if most >= 2 ** (_LONG - 1):
            return Storage(
                decimal_type(20, 0), numbers.read_bounded_decimal(least, most, is_text=declaration.is_digits)
            )
        return Storage("int" if most < 2 ** (_INT - 1) else "long", numbers.read_whole(least, most))

    return make


def tinyint(declaration: Declaration) -> Storage:
    """Return the storage of TINYINT, an int; TINYINT(1) is MySQL's boolean, but may hold any number of eight bits."""
    storage = integer_of_bits(8)(declaration)
    return storage._replace(note="TINYINT(1) is an int, not a boolean") if declaration.argument(0) == 1 else storage


def signed(bits: int) -> Callable[[Declaration], Storage]:
    """Return the rule for integers that are never unsigned."""
    return always("int" if bits <= _INT else "long", numbers.read_whole(-(2 ** (bits - 1)), 2 ** (bits - 1) - 1))


def oms_bigint(declaration: Declaration) -> Storage:
    """Return the storage of OMS's BIGINT, a decimal since it may be unsigned; OMS's type of 64 signed bits is INT64."""
    read = numbers.read_bounded_decimal(0 if declaration.parts.unsigned else -(2**63), 2**64 - 1)
    return Storage(decimal_type(20, 0), read, "OMS's BIGINT may pass 64 bits: decimal(20,0)")


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
    elif precision > numbers.MAX_PRECISION:
        note = f"{stated} has more than {numbers.MAX_PRECISION} digits: a string"
    elif scale > precision:
        note = f"{stated} has a scale beyond its precision: a string"
    else:
        return Storage(decimal_type(precision, scale), numbers.read_decimal(precision, scale, is_text=is_digits))
    return Storage("string", numbers.read_digits(is_text=is_digits), note)


def declared_decimal(declaration: Declaration) -> Storage:
    """Return the storage of DECIMAL(p,s), whose scale is 0 if only p is stated."""
    return decimal(declaration.argument(0), declaration.argument(1) or 0, is_digits=declaration.is_digits)


def connect_decimal(declaration: Declaration) -> Storage:
    """Return the storage of Kafka Connect's Decimal, whose precision and scale are parameters."""
    parameters = declaration.parameters
    return decimal(parameters.get("precision"), parameters.get("scale", 0), is_digits=declaration.is_digits)


def money(precision: int) -> Callable[[Declaration], Storage]:
    """Return the rule for SQL Server's amounts of money, which have four decimal places."""
    return lambda declaration: decimal(precision, 4, is_digits=declaration.is_digits)


def float_of_bits(declaration: Declaration) -> Storage:
    """Return the storage of FLOAT(p) as in MySQL: a double beyond 24 bits, else a float; FLOAT(m,d) is a float."""
    bits = declaration.argument(0) if len(declaration.parts.arguments) == 1 else None
    return DOUBLE(declaration) if bits is not None and bits > _MAX_SINGLE else SINGLE(declaration)


def float_or_double(declaration: Declaration) -> Storage:
    """Return the storage of FLOAT in databases where FLOAT without arguments is a double."""
    return float_of_bits(declaration) if declaration.parts.arguments else DOUBLE(declaration)


def datahub_double(_: Declaration) -> Storage:
    """Return the storage of DataHub's DOUBLE: a string of digits, since it may come from a DECIMAL."""
    return Storage("string", numbers.read_digits(), "DataHub's DOUBLE may be a DECIMAL: a string of the digits sent")


def binary(declaration: Declaration) -> Storage:
    """Return the storage of BINARY, whose bytes Canal sends without the zeros that pad them."""
    return Storage(
        "bytes", strings.read_binary((declaration.argument(0) or 1) if declaration.rules.binary_is_text else None)
    )


def other_binary(declaration: Declaration) -> Storage | None:
    """Return the storage of bytes in databases other than MySQL; None for Canal, which has base64 for MySQL only."""
    return None if declaration.rules.binary_is_text else BYTES(declaration)


def bits(declaration: Declaration) -> Storage | None:
    """Return the storage of BIT(n); None for an impossible width, and if the byte order of the values is unknown."""
    width = declaration.argument(0)
    if declaration.is_sent or (width is not None and not 1 <= width <= _LONG):
        return None
    if width is None:
        width = declaration.rules.bit_width
    note = None if width else "no width is stated: as many bytes as are sent, or as an integer needs"
    return Storage("bytes", strings.read_bits(width), note)


def duration(unit: str) -> Callable[[Declaration], Storage]:
    """Return the rule for Debezium's durations: counts of a unit, in which a month has an average length."""
    storage = signed(_LONG)
    return lambda declaration: storage(declaration)._replace(note=f"a duration in {unit}, a month being 30.4375 days")


def json_text(_: Declaration) -> Storage:
    """Return the storage of arrays, maps and structs of Kafka Connect."""
    return Storage("string", strings.read_json(), "an array, a map or a struct: its JSON text")


def connect_bits(declaration: Declaration) -> Storage | None:
    """Return the storage of Debezium's Bits."""
    width = declaration.parameters.get("length")
    return Storage("bytes", strings.read_bits(width) if width and 0 < width <= _LONG else strings.read_binary())


def labels(declaration: Declaration) -> Storage:
    """Return the storage of ENUM."""
    return Storage("string", strings.read_label(declaration.parts.members))


def label_set(declaration: Declaration) -> Storage:
    """Return the storage of SET."""
    return Storage("string", strings.read_labels(declaration.parts.members))


def date(declaration: Declaration) -> Storage:
    """Return the storage of DATE; Debezium's numbers are days."""
    return Storage(
        DATE, times.read_date(declaration.zone, declaration.rules.datetime, is_days=declaration.rules.date_is_days)
    )


def local(declaration: Declaration) -> Storage:
    """Return the storage of DATETIME."""
    return Storage(LOCAL, times.read_local(declaration.zone, declaration.rules.datetime))


def oracle_date(declaration: Declaration) -> Storage:
    """Return the storage of Oracle's DATE, which has a time of day."""
    return Storage(LOCAL, times.read_local(declaration.zone, declaration.rules.datetime, is_date=True))


def instant(declaration: Declaration) -> Storage:
    """Return the storage of TIMESTAMP."""
    return Storage(MICROS, times.read_instant(declaration.zone, declaration.rules.instant))


def connect_local(digits: int) -> Callable[[Declaration], Storage]:
    """Return the rule for Debezium's local times, which may still be counts of units of 10^-`digits` seconds."""
    return always(LOCAL, times.read_local(None, local=times.counted(digits)))


def connect_time(digits: int) -> Callable[[Declaration], Storage]:
    """Return the rule for Debezium's times of day, which may still be counts of units of 10^-`digits` seconds."""
    return always(TIME, times.read_time(times.counted(digits)))


YEAR: Final = always("int", numbers.read_whole(0, 2155))
SINGLE: Final = always("float", numbers.read_single())
DOUBLE: Final = always("double", numbers.read_double())
BOOLEAN: Final = always("boolean", numbers.read_boolean())
STRING: Final = always("string", strings.read_string())
JSON: Final = always("string", strings.read_json())
BYTES: Final = always("bytes", strings.read_binary())
GEOMETRY: Final = always("bytes", strings.read_geometry())
DIGITS: Final = always("string", numbers.read_digits())
TIME_OF_DAY: Final = always(TIME, times.read_time())
