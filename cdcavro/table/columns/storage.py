"""How declared types hold their values in Avro: each function here is one way, asked with what is stated.

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
    """How values are held: the Avro type, the reader, and what a user should be told."""

    avro: Any
    read: Callable[[Any], Any]
    note: str | None = None


def always(avro: Any, read: Callable[[Any], Any]) -> Callable[[Declaration], Storage]:
    """Make a way that asks nothing of what is stated."""
    made = Storage(avro, read)
    return lambda _: made


def integer_of_bits(bits: int) -> Callable[[Declaration], Storage]:
    """Make the way of integers of so many bits, signed or unsigned: an int, a long, or a decimal beyond 63 bits."""

    def make(stated: Declaration) -> Storage:
        least, most = (0, 2**bits - 1) if stated.parts.unsigned else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)
        if most >= 2 ** (_LONG - 1):
            return Storage(decimal_type(20, 0), numbers.read_bounded_decimal(least, most, is_text=stated.is_digits))
        return Storage("int" if most < 2 ** (_INT - 1) else "long", numbers.read_whole(least, most))

    return make


def tinyint(stated: Declaration) -> Storage:
    """Hold TINYINT; TINYINT(1) is MySQL's boolean, but any number of eight bits may be in it."""
    made = integer_of_bits(8)(stated)
    return made._replace(note="TINYINT(1) is an int, not a boolean") if stated.argument(0) == 1 else made


def signed(bits: int) -> Callable[[Declaration], Storage]:
    """Make the way of integers that are never unsigned."""
    return always("int" if bits <= _INT else "long", numbers.read_whole(-(2 ** (bits - 1)), 2 ** (bits - 1) - 1))


def oms_bigint(stated: Declaration) -> Storage:
    """Hold OMS's BIGINT, which is the unsigned one too: its signed 64 bits are INT64."""
    read = numbers.read_bounded_decimal(0 if stated.parts.unsigned else -(2**63), 2**64 - 1)
    return Storage(decimal_type(20, 0), read, "OMS's BIGINT may pass 64 bits: decimal(20,0)")


def decimal_type(precision: int, scale: int) -> dict[str, Any]:
    """Return the Avro type of a decimal."""
    return {"type": "bytes", "logicalType": "decimal", "precision": precision, "scale": scale}


def decimal(precision: int | None, scale: int, *, is_digits: bool) -> Storage:
    """Hold decimals: as such up to 38 digits, otherwise as strings of the digits sent."""
    if not precision:
        note = "no precision is stated: a string of the digits sent"
    elif precision > numbers.MAX_PRECISION:
        note = f"DECIMAL({precision},{scale}) has more than {numbers.MAX_PRECISION} digits: a string"
    elif scale > precision:
        note = f"DECIMAL({precision},{scale}) has a scale beyond its precision: a string"
    else:
        return Storage(decimal_type(precision, scale), numbers.read_decimal(precision, scale, is_text=is_digits))
    return Storage("string", numbers.read_digits(is_text=is_digits), note)


def declared_decimal(stated: Declaration) -> Storage:
    """Hold DECIMAL(p,s), its scale 0 if only p is stated."""
    return decimal(stated.argument(0), stated.argument(1) or 0, is_digits=stated.is_digits)


def connect_decimal(stated: Declaration) -> Storage:
    """Hold Kafka Connect's Decimal, whose precision and scale are parameters."""
    given = stated.parameters
    return decimal(given.get("precision"), given.get("scale", 0), is_digits=stated.is_digits)


def money(precision: int) -> Callable[[Declaration], Storage]:
    """Make the way of SQL Server's amounts of money, with four decimal places."""
    return lambda stated: decimal(precision, 4, is_digits=stated.is_digits)


def float_of_bits(stated: Declaration) -> Storage:
    """Make FLOAT(p) what MySQL makes of it: a double beyond 24 bits; FLOAT(m,d) is a float."""
    bits = stated.argument(0) if len(stated.parts.arguments) == 1 else None
    return DOUBLE(stated) if bits is not None and bits > _MAX_SINGLE else SINGLE(stated)


def float_or_double(stated: Declaration) -> Storage:
    """Hold FLOAT where the word alone is a double."""
    return float_of_bits(stated) if stated.parts.arguments else DOUBLE(stated)


def datahub_double(_: Declaration) -> Storage:
    """Hold DataHub's DOUBLE, which is a DECIMAL where it comes as strings."""
    return Storage("string", numbers.read_digits(), "DataHub's DOUBLE may be a DECIMAL: a string of the digits sent")


def binary(stated: Declaration) -> Storage:
    """Make BINARY, whose bytes Canal sends without the zeros that fill them up."""
    return Storage("bytes", strings.read_binary((stated.argument(0) or 1) if stated.rules.binary_is_text else None))


def other_binary(stated: Declaration) -> Storage | None:
    """Make bytes of other databases than Canal's, who has no base64 but for MySQL's types."""
    return None if stated.rules.binary_is_text else BYTES(stated)


def bits(stated: Declaration) -> Storage | None:
    """Hold BIT(n); None where its bytes come in an order that nobody told."""
    width = stated.argument(0)
    if stated.is_sent or (width is not None and not 1 <= width <= _LONG):
        return None
    if width is None:
        width = stated.rules.bit_width
    note = None if width else "no width is stated: as many bytes as are sent, or as an integer needs"
    return Storage("bytes", strings.read_bits(width), note)


def connect_bits(stated: Declaration) -> Storage | None:
    """Hold Debezium's Bits."""
    width = stated.parameters.get("length")
    return Storage("bytes", strings.read_bits(width) if width and width <= _LONG else strings.read_binary())


def labels(stated: Declaration) -> Storage:
    """Hold ENUM."""
    return Storage("string", strings.read_label(stated.parts.members))


def label_set(stated: Declaration) -> Storage:
    """Hold SET."""
    return Storage("string", strings.read_labels(stated.parts.members))


def date(stated: Declaration) -> Storage:
    """Hold DATE; Debezium's numbers are days."""
    return Storage(DATE, times.read_date(stated.zone, stated.rules.datetime, is_days=stated.rules.date_is_days))


def local(stated: Declaration) -> Storage:
    """Hold DATETIME."""
    return Storage(LOCAL, times.read_local(stated.zone, stated.rules.datetime))


def oracle_date(stated: Declaration) -> Storage:
    """Hold Oracle's DATE, which has a time of day."""
    return Storage(LOCAL, times.read_local(stated.zone, stated.rules.datetime, is_date=True))


def instant(stated: Declaration) -> Storage:
    """Hold TIMESTAMP."""
    return Storage(MICROS, times.read_instant(stated.zone, stated.rules.instant))


def connect_local(digits: int) -> Callable[[Declaration], Storage]:
    """Make the way of Debezium's local times, which may still be counts of units of 10 to the power of -`digits` seconds."""
    return always(LOCAL, times.read_local(None, local=times.counted(digits)))


def connect_time(digits: int) -> Callable[[Declaration], Storage]:
    """Make the way of Debezium's times of day, which may still be counts."""
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
