"""JSON values of columns as Avro data: exactly, or not at all.

What a datum says is found here in another way, slowly, with Decimal and datetime, and compared with
what was sent.
"""

from __future__ import annotations

import ctypes
import io
import re
from base64 import b64encode
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from zoneinfo import ZoneInfo

import fastavro
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import cdcavro
from cdcavro.change.model import Column, Source
from cdcavro.exact.jsontext import render
from cdcavro.exact.numbers import ExactNumber, minimal_bytes, number
from cdcavro.table.columns.column_type import column_type
from cdcavro.table.columns.readers import MISFIT
from cdcavro.transcoding.mapping import SchemaHistory, to_changes
from support.messages import SAMPLES
from support.strategies import HOSTILE_NUMBERS, HOSTILE_STRINGS

SHANGHAI = ZoneInfo("Asia/Shanghai")
BERLIN = ZoneInfo("Europe/Berlin")
EPOCH = datetime(1970, 1, 1)  # noqa: DTZ001  local times have no zone
MICROSECOND = timedelta(microseconds=1)
E = ExactNumber


def made(type, format="canal", *, code=None, db_type=None, given=None, zone=None):
    """The type of a column that is stated so."""
    return column_type(
        Column(name="c", type=type, code=code), Source(format=format, db_type=db_type), given=given, zone=zone
    )


def micros(*parts, microsecond=0):
    """The microseconds from the epoch to a local time."""
    return (datetime(*parts, microsecond=microsecond) - EPOCH) // MICROSECOND  # noqa: DTZ001


def fixed(unscaled):
    """A decimal's bytes."""
    return minimal_bytes(unscaled)


def base64(*numbers):
    """The base64 text of some bytes."""
    return b64encode(bytes(numbers)).decode()


def expansion(value):
    """All digits of a double."""
    return f"{Decimal(value):f}"


WHOLE = [
    ("tinyint", -128, 127),
    ("tinyint unsigned", 0, 255),
    ("tinyint(1)", -128, 127),
    ("smallint", -(2**15), 2**15 - 1),
    ("smallint unsigned", 0, 2**16 - 1),
    ("mediumint", -(2**23), 2**23 - 1),
    ("mediumint unsigned", 0, 2**24 - 1),
    ("int", -(2**31), 2**31 - 1),
    ("int unsigned", 0, 2**32 - 1),
    ("bigint", -(2**63), 2**63 - 1),
    ("bigint unsigned", 0, 2**64 - 1),
    ("year", 0, 2155),
]


@pytest.mark.parametrize(("type", "least", "most"), WHOLE)
def test_integers_keep_to_their_width_and_sign(type, least, most):
    """Both ends fit, one beyond does not, however the number is written."""
    read = made(type).read
    hold = fixed if type == "bigint unsigned" else int
    for value in (least, most, 0, 1):
        for spelled in (number(str(value)), str(value), E(f"{value}.0"), E(f"{value}e0")):
            assert read(spelled) == hold(value)
    for value in (least - 1, most + 1, 10**700):
        assert read(number(str(value))) is MISFIT
        assert read(str(value)) is MISFIT


@pytest.mark.parametrize("type", [type for type, _, _ in WHOLE])
@pytest.mark.parametrize(
    "value", [True, False, "", "1 ", "+1", "01", "0x1", "１", 1.5, E("-0"), E("1e-1"), {}, [], [1]]
)
def test_what_is_no_integer_does_not_become_one(type, value):
    """True is not 1, and a negative zero not zero."""
    assert made(type).read(value) is MISFIT


BIG = "9" * 38
LAW = [
    # type, format, value, datum
    ("boolean", "oms_dataworks", True, True),
    ("boolean", "oms_dataworks", 1, True),
    ("boolean", "oms_dataworks", "0", False),
    ("boolean", "oms_dataworks", 2, MISFIT),
    ("boolean", "oms_dataworks", "true", MISFIT),
    ("float", "canal", 0.1, ctypes.c_float(0.1).value),
    ("float", "canal", E("3.4028E38"), ctypes.c_float(3.4028e38).value),
    ("float", "canal", E("3.4028235E38"), ctypes.c_float(3.4028235e38).value),
    ("float", "canal", E("3.4028236E38"), MISFIT),
    ("float", "canal", E("1e39"), MISFIT),
    ("float", "canal", 0.10000000149011612, ctypes.c_float(0.1).value),
    ("float", "canal", E("0.100000001490116119384765625"), ctypes.c_float(0.1).value),
    ("float", "canal", 0.100000001, ctypes.c_float(0.1).value),
    ("float", "canal", E("-6.8538022E8"), -685380224.0),
    ("float", "canal", 685380220.0, 685380224.0),
    ("float", "canal", E("1.18846831E13"), ctypes.c_float(1.18846831e13).value),
    ("float", "canal", E("1.4E-45"), ctypes.c_float(1e-45).value),
    ("float", "canal", 0.100000002, MISFIT),
    ("float", "canal", E("1.6777217E7"), MISFIT),
    ("float", "canal", 16777216, 16777216.0),
    ("float", "canal", 16777217, MISFIT),
    ("float", "canal", "1.20", ctypes.c_float(1.2).value),
    ("float", "canal", E("1.17549e-38"), ctypes.c_float(1.17549e-38).value),
    ("float", "canal", E("1e-45"), ctypes.c_float(1e-45).value),
    ("float", "canal", E("1e-60"), MISFIT),
    ("double", "canal", 1.5, 1.5),
    ("double", "canal", E("1.7976931348623157E308"), 1.7976931348623157e308),
    ("double", "canal", E("1e400"), MISFIT),
    ("double", "canal", E("1e-400"), MISFIT),
    ("double", "canal", E("0e400"), 0.0),
    ("double", "canal", 2**53 + 1, MISFIT),
    ("double", "canal", 2**53, 2.0**53),
    ("double", "canal", E(str(2**64)), 2.0**64),
    ("double", "canal", E(expansion(1e-307)), 1e-307),
    ("double", "canal", E("0.10000000000000001"), 0.1),
    ("double", "canal", E("0.100000000000000006"), MISFIT),
    ("double", "canal", E("4.9E-324"), 5e-324),
    ("double", "canal", "2.00000000000000010E+00", MISFIT),
    ("double", "canal", E(expansion(0.1)), 0.1),
    ("double", "canal", "NaN", float("nan")),
    ("double", "debezium", "Infinity", float("inf")),
    ("float", "debezium", "NaN", float("nan")),
    ("float", "canal", "-Infinity", float("-inf")),
    ("double", "canal", "nan", MISFIT),
    ("double", "canal", "+Infinity", MISFIT),
    ("float", "canal", "inf", MISFIT),
    ("decimal(9,2)", "canal", "NaN", MISFIT),
    ("int", "canal", "Infinity", MISFIT),
    ("double", "canal", E("1e99999999999999999999"), MISFIT),
    ("double", "canal", E("1e-99999999999999999999"), MISFIT),
    ("double", "datahub_blob", 1.5, "1.5"),
    ("double", "datahub_blob", "1.100000", "1.100000"),
    ("double", "datahub_blob", "x", MISFIT),
    ("decimal(10,2)", "canal", 1.2, fixed(120)),
    ("decimal(10,2)", "canal", E("1.20"), fixed(120)),
    ("decimal(10,2)", "canal", E("1.2000"), fixed(120)),
    ("decimal(10,2)", "canal", E("-1E5"), fixed(-10_000_000)),
    ("decimal(10,2)", "canal", 12345678, fixed(1234567800)),
    ("decimal(10,2)", "canal", 123456789, MISFIT),
    ("decimal(10,2)", "canal", 100000000, MISFIT),
    ("decimal(10,2)", "canal", -100000000, MISFIT),
    ("decimal(10,2)", "canal", E("1.234"), MISFIT),
    ("decimal(10,2)", "canal", "0.0", fixed(0)),
    ("decimal(10,2)", "canal", E("-0.00"), MISFIT),
    ("decimal(10,2)", "canal", E("0e999999999999"), fixed(0)),
    ("decimal(10,2)", "canal", E("1e999999999999"), MISFIT),
    ("decimal(10,2)", "canal", True, MISFIT),
    ("decimal(38,0)", "canal", E(BIG), fixed(int(BIG))),
    ("decimal(38,0)", "canal", E("-" + BIG), fixed(-int(BIG))),
    ("decimal(38,0)", "canal", E(BIG + "0"), MISFIT),
    ("decimal(38,38)", "canal", E("0." + BIG), fixed(int(BIG))),
    ("decimal(65,30)", "canal", E("9" * 35 + "." + "9" * 30), "9" * 35 + "." + "9" * 30),
    ("decimal(65,30)", "canal", E("1.20"), "1.20"),
    ("decimal(65,30)", "canal", "abc", MISFIT),
    ("number(10,-2)", "oms_default", 999_999_999_900, fixed(999_999_999_900)),
    ("number(10,-2)", "oms_default", 10**12, MISFIT),
    ("DECIMAL(10,2)", "debezium", "1234", MISFIT),
    ("bigint", "oms_canal", E("10223372036854775806"), fixed(10223372036854775806)),
    ("bigint", "oms_canal", -(2**63), fixed(-(2**63))),
    ("bigint", "oms_canal", E(str(2**64)), MISFIT),
    ("varchar(10)", "canal", "null", "null"),
    ("varchar(10)", "canal", "", ""),
    ("varchar(10)", "canal", "x" * 100_000, "x" * 100_000),
    ("varchar(10)", "canal", 1, MISFIT),
    ("varchar(10)", "canal", True, MISFIT),
    ("varchar(10)", "canal", {"a": 1}, MISFIT),
    ("enum('a','b')", "canal", "b", "b"),
    ("enum('a','b')", "canal", "", ""),
    ("enum('a','b')", "canal", "3", MISFIT),
    ("enum", "oms_canal", "b", "b"),
    ("set('a','b')", "canal", "a,b", "a,b"),
    ("set('a','b')", "canal", "", ""),
    ("set('a','b')", "canal", "9", MISFIT),
    ("json", "oms_canal", {"a": [E("1.0"), None]}, '{"a":[1.0,null]}'),
    ("json", "oms_canal", '{"a": 1}', '{"a": 1}'),
    ("json", "oms_canal", E("1.20"), "1.20"),
    ("vector(3)", "oms_canal", [1, 2.5], "[1,2.5]"),
    ("vector(3)", "oms_canal", E("1.20"), "1.20"),
    (None, "oms_shareplex", True, "true"),
    (None, "oms_shareplex", "x", "x"),
    ("blob", "oms_canal", "aGVsbG8gd29ybGQ=", b"hello world"),
    ("blob", "oms_canal", "", b""),
    ("blob", "oms_canal", "AkZ=", MISFIT),
    ("blob", "oms_canal", "aGVsbG8", MISFIT),
    ("blob", "oms_canal", "[base64 string]", MISFIT),
    ("blob", "oms_canal", 5, MISFIT),
    ("binary(4)", "canal", "AQI=", b"\1\2\0\0"),
    ("binary(1)", "canal", "AQI=", MISFIT),
    ("binary(4)", "oms_canal", "AQI=", b"\1\2"),
    ("bit(12)", "oms_canal", 2726, b"\x0a\xa6"),
    ("bit(12)", "oms_canal", base64(10, 166), b"\x0a\xa6"),
    ("bit(12)", "oms_canal", base64(16, 0), MISFIT),
    ("bit(12)", "oms_canal", base64(1), MISFIT),
    ("bit(12)", "oms_canal", 4096, MISFIT),
    ("bit(12)", "oms_canal", -1, MISFIT),
    ("bit(12)", "oms_canal", True, MISFIT),
    ("bit(64)", "oms_canal", E(str(2**64 - 1)), b"\xff" * 8),
    ("bit(64)", "oms_canal", E(str(2**64)), MISFIT),
    ("bit(1)", "oms_canal", True, b"\1"),
    ("bit", "oms_canal", 256, b"\1\0"),
    ("bit", "oms_canal", 0, b"\0"),
    ("point", "canal", "AQEAAAAAAAAAAAAAAAAAAAAAAAAA", b"\1\1" + bytes(19)),
    ("point", "canal", "AgEAAAAA", MISFIT),
    ("point", "debezium", {"x": 1.0, "y": 2.0, "wkb": "!", "srid": None}, MISFIT),
    ("date", "canal", "2024-02-29", (date(2024, 2, 29) - date(1970, 1, 1)).days),
    ("date", "canal", "0001-01-01", -719162),
    ("date", "canal", "9999-12-31", 2932896),
    ("date", "canal", "2023-02-29", MISFIT),
    ("date", "canal", "0000-00-00", MISFIT),
    ("date", "canal", "2024-00-00", MISFIT),
    ("date", "canal", "10000-01-01", MISFIT),
    ("date", "canal", "2024-2-9", MISFIT),
    ("date", "canal", 19782, MISFIT),
    ("date", "oms_canal", "2024-02-29T00:00", 19782),
    ("date", "oms_canal", "2024-02-29T00:01", MISFIT),
    ("io.debezium.time.Date", "debezium", 19782, 19782),
    ("io.debezium.time.Date", "debezium", 2932897, MISFIT),
    ("DATE", "datahub_blob", 1590315269000, 1590315269000),
    ("DATE", "datahub_blob", -1, -1),
    ("DATE", "datahub_blob", 253402300800000, MISFIT),
    ("DATE", "datahub_blob", "1590315269000", MISFIT),
    ("DATE", "datahub_blob", E("1590315269000.0"), MISFIT),
    ("time", "canal", "23:59:59", 86_399_000_000),
    ("time", "canal", "23:59:59.999999", 86_399_999_999),
    ("time", "canal", "00:00:00.000001000", 1),
    ("time", "canal", "00:00:00.000000001", MISFIT),
    ("time", "canal", "24:00:00", MISFIT),
    ("time", "canal", "838:59:59", MISFIT),
    ("time", "canal", "-838:59:59", MISFIT),
    ("time", "canal", "-00:00:01", MISFIT),
    ("time", "oms_canal", "10:11", 36_660_000_000),
    ("time", "canal", 101100, MISFIT),
    ("io.debezium.time.NanoTime", "debezium", 1001, MISFIT),
    ("io.debezium.time.NanoTime", "debezium", 86_399_999_999_000, 86_399_999_999),
    ("io.debezium.time.MicroTime", "debezium", "-838:59:59", MISFIT),
    ("io.debezium.time.MicroTime", "debezium", 86_400_000_000, MISFIT),
    ("io.debezium.time.MicroTime", "debezium", -1, MISFIT),
    ("datetime", "canal", "2020-11-25 00:01:02", micros(2020, 11, 25, 0, 1, 2)),
    ("datetime", "oms_canal", "2020-11-25T00:01", micros(2020, 11, 25, 0, 1)),
    ("datetime(6)", "canal", "2020-11-25 00:01:02.1", micros(2020, 11, 25, 0, 1, 2, microsecond=100_000)),
    ("datetime(6)", "canal", "9999-12-31 23:59:59.999999", micros(9999, 12, 31, 23, 59, 59, microsecond=999_999)),
    ("datetime", "oms_canal", "2020-11-25 00:01:02.123456000", micros(2020, 11, 25, 0, 1, 2, microsecond=123_456)),
    ("datetime", "oms_canal", "2020-11-25 00:01:02.123456789", MISFIT),
    ("datetime", "canal", "0000-00-00 00:00:00", MISFIT),
    ("datetime", "canal", "0000-01-01 00:00:00", MISFIT),
    ("datetime", "canal", "2020-11-25 24:00:00", MISFIT),
    ("datetime", "canal", "2020-11-25 00:60:00", MISFIT),
    ("datetime", "canal", "2020-11-25", MISFIT),
    ("datetime", "canal", "2020-11-25 00:01:02 ", MISFIT),
    ("datetime", "oms_canal", "2020-11-25 00:01:02 Asia/Shanghai", MISFIT),
    ("DATETIME", "oms_dataworks", 1590315269000, MISFIT),
    ("io.debezium.time.Timestamp", "debezium", "2024-02-29 23:59:59.999", 1709251199999000),
    ("io.debezium.time.MicroTimestamp", "debezium", 253402300800000000, MISFIT),
    ("io.debezium.time.NanoTimestamp", "debezium", "2024-02-29 23:59:59.999999999", MISFIT),
    ("timestamp", "oms_canal", "1606233662.012345", 1606233662012345),
    ("timestamp", "oms_canal", "1606233662.012345000", 1606233662012345),
    ("timestamp", "oms_canal", "1606233662.0123456", MISFIT),
    ("timestamp", "oms_canal", 1606233662, 1606233662000000),
    ("timestamp", "oms_canal", 1606233662.5, 1606233662500000),
    ("timestamp", "oms_canal", -1, -1_000_000),
    ("timestamp", "oms_canal", "-1.5", MISFIT),
    ("timestamp", "oms_canal", "0000-00-00 00:00:00", MISFIT),
    ("timestamp", "oms_canal", "253402300799.999999", micros(9999, 12, 31, 23, 59, 59, microsecond=999_999)),
    ("timestamp", "oms_canal", "253402300800", MISFIT),
    ("timestamp", "canal", "2020-11-25 00:01:02", MISFIT),
    ("timestamp", "canal", 1606233662, MISFIT),
    ("timestamp", "debezium", "2024-03-31T01:30:00.1Z", 1711848600100000),
    ("timestamp", "debezium", "1960-01-01T00:00:00Z", micros(1960, 1, 1)),
    ("timestamp", "debezium", "2024-03-31T01:30:00+08:00", micros(2024, 3, 30, 17, 30)),
    ("TIMESTAMP", "datahub_tuple", 1590315269000123, 1590315269000123),
    ("TIMESTAMP", "oms_dataworks", "1606233662.012345", 1606233662012345),
    ("TIMESTAMP", "oms_dataworks", 1590315269000, 1590315269000000),
    ("TIMESTAMP", "oms_dataworks", 99999999999, MISFIT),
]


@pytest.mark.parametrize(("type", "format", "value", "datum"), LAW)
def test_a_value_is_read_exactly_or_is_a_misfit(type, format, value, datum):
    """The table of types, with what each carries and what it does not."""
    code = 1111 if format == "debezium" and type is not None and "." not in type else None
    found = made(type, format, code=code).read(value)
    assert found == datum or repr(found) == repr(datum) == "nan"
    assert found.__class__ is datum.__class__


def test_the_zero_of_a_float_keeps_its_sign():
    """Minus zero, as number and as text."""
    for type in ("float", "double"):
        for value in (-0.0, E("-0"), E("-0e5"), "-0.0"):
            assert str(made(type).read(value)) == "-0.0"
        assert str(made(type).read(0)) == "0.0"


@pytest.mark.parametrize(
    ("value", "zone", "datum"),
    [
        (1590315269000, SHANGHAI, micros(2020, 5, 24, 18, 14, 29)),
        (E("1590315269000.123456000"), SHANGHAI, micros(2020, 5, 24, 18, 14, 29, microsecond=123_456)),
        ("1590315269123.123456000", SHANGHAI, micros(2020, 5, 24, 18, 14, 29, microsecond=123_456)),
        (E("1590315269000.123456789"), SHANGHAI, MISFIT),
        (E("1590315269124.123456000"), SHANGHAI, MISFIT),
        (E("1590315269123.000000000"), SHANGHAI, MISFIT),
        (1590315269000.5, SHANGHAI, MISFIT),
        ("2020-11-25 00:01:02.012345 Asia/Shanghai", SHANGHAI, micros(2020, 11, 25, 0, 1, 2, microsecond=12_345)),
        ("2020-11-25 00:01:02 [Europe/Berlin]", SHANGHAI, micros(2020, 11, 25, 7, 1, 2)),
        ("2020-11-25 00:01:02", SHANGHAI, micros(2020, 11, 25, 0, 1, 2)),
        ("2020-11-25 00:01:02 Nowhere/Land", SHANGHAI, MISFIT),
        ("2020-11-25 00:01:02 localtime", SHANGHAI, MISFIT),
        ("2020-11-25 00:01:02 ../../etc/passwd", SHANGHAI, MISFIT),
        # The hour that Berlin has twice: two instants, one local time.
        ("2024-10-27 00:30:00 UTC", BERLIN, MISFIT),
        (1729989000000, BERLIN, MISFIT),
        ("2024-10-27 02:30:00 Europe/Berlin", SHANGHAI, MISFIT),
        ("2024-03-31 02:30:00 Europe/Berlin", SHANGHAI, MISFIT),
        (2**62, SHANGHAI, MISFIT),
    ],
)
def test_an_instant_in_a_column_of_local_times_needs_the_zone(value, zone, datum):
    """With it, the local time there; without it, where there are two or none, a misfit."""
    assert made("DATETIME", "oms_dataworks", zone=zone).read(value) == datum


def test_a_local_time_in_a_column_of_instants_needs_the_zone():
    """The same the other way round."""
    read = made("timestamp", zone=SHANGHAI).read
    assert read("2020-11-25 00:01:02.5") == micros(2020, 11, 24, 16, 1, 2, microsecond=500_000)
    assert made("timestamp", zone=BERLIN).read("2024-10-27 02:30:00") is MISFIT
    assert made("timestamp", zone=BERLIN).read("2024-03-31 02:30:00") is MISFIT


GIVEN = [
    ("DOUBLE", "datahub_blob", "decimal(10,6)", "1.100000", fixed(1_100_000)),
    ("DOUBLE", "datahub_blob", "double", 1.5, 1.5),
    ("DATE", "datahub_blob", "timestamp", 1590315269000, 1590315269000000),
    ("DATE", "datahub_blob", "datetime", 1590315269000, micros(2020, 5, 24, 18, 14, 29)),
    ("DATE", "datahub_blob", "date", 1590249600000, 18406),
    ("DATE", "datahub_blob", "date", 1590315269000, MISFIT),
    ("DATETIME", "oms_dataworks", "timestamp", 1590315269000, 1590315269000000),
    ("DATETIME", "oms_dataworks", "timestamp", "2020-11-25 00:00:00 UTC", micros(2020, 11, 25)),
    (None, "oms_shareplex", "int", 5, 5),
    (None, "canal", "blob", "abcd", b"abcd"),
    (None, "canal", "bit(12)", "2726", b"\x0a\xa6"),
    (None, "canal", "set('x','y','z')", "5", "x,z"),
    (None, "canal", "timestamp", "1970-01-01 08:00:01", 1_000_000),
    ("blob", "canal", "varchar(9)", base64(0xE9), "é"),
    ("bit(12)", "canal", "int", base64(10, 166), 2726),
    ("varchar(9)", "canal", "varbinary(9)", "abcd", b"abcd"),
    ("string", "debezium", "decimal(10,2)", "1.20", fixed(120)),
]


@pytest.mark.parametrize(("type", "format", "given", "value", "datum"), GIVEN)
def test_a_given_type_reads_what_was_sent(type, format, given, value, datum):
    """Where a format sends values by their type, what was sent is read anew."""
    assert made(type, format, given=given, zone=SHANGHAI).read(value) == datum


def test_a_given_type_reads_what_debezium_sends_without_a_schema():
    """As a catalog would; only the connectors whose types are known."""
    assert made(None, "debezium", db_type="mysql", given="decimal(10,2)").read("AkY=") == fixed(582)
    assert made(None, "debezium", db_type="mysql", given="datetime(6)").read(1709251199999999) == 1709251199999999
    assert made(None, "debezium", db_type="mysql", given="bit(12)").read("qgo=") == b"\x0a\xaa"
    assert made(None, "debezium", db_type="postgresql", given="decimal(10,2)").read("1234") is MISFIT
    assert made(None, "debezium", db_type="postgresql", given="date").read(19782) == 19782


# What a datum says, found in another way.


def digits_of(value):
    """A number, or the text of one, as a Decimal; None for anything else."""
    text = value.text if type(value) is E else value if type(value) is str else repr(value)
    is_number = type(value) in (int, float, E, str) and re.fullmatch(r"-?[0-9]+(\.[0-9]+)?([eE][+-]?[0-9]{1,9})?", text)
    return Decimal(text) if is_number else None


def same_number(datum, value):
    """Whether a whole number is the one that was sent."""
    sent = digits_of(value)
    return sent is not None and sent == datum and not (sent == 0 and sent.is_signed())


def shortest_single(value):
    """The shortest digits of a float, by trying all lengths."""
    texts = (f"{value:.{places}e}" for places in range(17))
    return next(text for text in texts if ctypes.c_float(float(text)).value == value)


def same_float(datum, value, shortest):
    """Whether a float is what was sent: its shortest text, that of the double, all its digits, or the first of these."""
    sent = digits_of(value)
    figures = range(9 if shortest is shortest_single else 17)
    spellings = (
        *(Decimal(shortest(datum)), Decimal(repr(datum)), Decimal(datum)),
        *(Decimal(f"{datum:.{count}e}") for count in figures),
    )
    return sent is not None and sent in spellings and sent.is_signed() == (str(datum)[0] == "-")


def read_back(avro, datum):
    """What fastavro makes of a datum of a logical type."""
    out = io.BytesIO()
    fastavro.schemaless_writer(out, avro, datum)
    out.seek(0)
    return fastavro.schemaless_reader(out, avro)


def same_decimal(avro, datum, value):
    """Whether fastavro's Decimal is the number that was sent."""
    found = read_back(avro, datum)
    number = int.from_bytes(datum, "big", signed=True)
    assert len(datum) == 1 or int.from_bytes(datum[1:], "big", signed=True) != number, "more bytes than it takes"
    return -found.as_tuple().exponent == avro["scale"] and same_number(found, value)


def clock_text(text):
    """A time with all its digits: seconds, and six places."""
    head, _, part = text.partition(".")
    assert not part[6:].strip("0")
    return f"{head if head.count(':') == 2 else head + ':00'}.{part[:6]:0<6}"


def same_time(avro, datum, value):
    """Whether a date or time is what was sent, by its text."""
    kind = avro["logicalType"]
    if kind == "date":
        shown = date.fromordinal(datum + date(1970, 1, 1).toordinal()).isoformat()
        return value in (shown, datum) or str(value).replace("T", " ").startswith(f"{shown} 00:00")
    if kind == "time-micros":
        return clock_text(value) == (EPOCH + timedelta(microseconds=datum)).strftime("%H:%M:%S.%f")
    shown = (EPOCH + timedelta(microseconds=datum)).isoformat(" ", "microseconds")
    if kind == "local-timestamp-micros" and type(value) is str:
        return clock_text(value.replace("T", " ")) == shown
    if type(value) is str and "-" in value[1:]:
        return clock_text(value.removesuffix("Z").replace("T", " ")) == shown
    sent = digits_of(value)
    if sent == Decimal("1590315269000.123456000"):
        return datum == 1590315269_123456
    return sent is not None and (sent * 1_000_000 == datum or sent * 1_000 == datum or sent == datum)


NOT_FINITE = {"NaN": "nan", "Infinity": "inf", "-Infinity": "-inf"}


def says(made, datum, value):
    """Whether a datum says exactly what was sent for a column."""
    avro = made.avro
    if isinstance(avro, dict):
        return same_decimal(avro, datum, value) if avro["logicalType"] == "decimal" else same_time(avro, datum, value)
    if avro == "boolean":
        return type(datum) is bool and (value is datum or same_number(int(datum), value))
    if avro in ("int", "long"):
        bits = 31 if avro == "int" else 63
        return type(datum) is int and -(2**bits) <= datum < 2**bits and same_number(datum, value)
    if avro in ("float", "double") and type(value) is str and value in NOT_FINITE:
        return repr(datum) == NOT_FINITE[value]
    if avro in ("float", "double"):
        return type(datum) is float and same_float(datum, value, shortest_single if avro == "float" else repr)
    if avro == "bytes":
        if type(value) is str:
            return b64encode(datum).decode() == value
        return int.from_bytes(datum, "big") == (int(value.text) if type(value) is E else int(value))
    if made.rule.name == "labels" and type(value) is list:
        return ([] if value == [""] else value) == (datum.split(",") if datum else [])
    text = value if type(value) is str else render(value).decode()
    return datum == text


TYPES = [
    *(made(type) for type, _, _ in WHOLE),
    *(
        made(type)
        for type in (
            *("boolean", "float", "double", "decimal(10,2)", "decimal(38,10)", "decimal(65,30)", "decimal(1,1)"),
            *("varchar(10)", "enum('a','b')", "set('a','b')", "json", "foo", "blob", "varbinary(9)", "bit(1)"),
            *("bit(12)", "bit(64)", "point", "date", "time", "datetime(6)", "timestamp(6)"),
        )
    ),
    *(made(type, "oms_canal") for type in ("bigint", "decimal", "datetime", "timestamp", "bit(9)", "date", "time")),
    *(made(type, "datahub_blob") for type in ("LONG", "DOUBLE", "STRING", "BYTES", "DATE", "BOOLEAN")),
    made("TIMESTAMP", "datahub_tuple"),
    made("TIMESTAMP", "oms_dataworks"),
    made(None),
]
HOSTILE = [
    *map(number, HOSTILE_NUMBERS),
    *HOSTILE_STRINGS,
    *HOSTILE_NUMBERS,
    *(
        "0000-00-00",
        "0000-00-00 00:00:00",
        "838:59:59",
        "-838:59:59",
        "23:59:59.999999999",
        "9999-12-31 23:59:59.9999999",
    ),
    *(
        "2020-11-25 00:01:02.123456789",
        "1606233662.0123456",
        "9" * 65,
        f"{'9' * 35}.{'9' * 30}",
        "AkZ=",
        "AkY",
        "AkY=\n",
    ),
    *("2024-02-30", "2024-13-01", "99:99:99", "1e5", "NaN", "Infinity", "-Infinity", "٣", "2024-02-29T10:11:12Z"),
    *(E("3.4028E38"), E("1.17549435E-38"), E("4.9E-324"), E("1.0E-307"), E(str(2**64 - 1)), 2**63 - 1, -(2**63)),
    *(True, False, {}, [], {"a": {"b": [None]}}, [1, "2"], E("9" * 1_000_000), "9" * 1_000_000, "x" * 1_000_000),
    *(E("0." + "0" * 100_000 + "1"), E("1" + "0" * 100_000), E("1e-1" + "0" * 1_000), "A" * 1_000_000),
    *(
        19782,
        86_399_999_999,
        1590315269000,
        E("1590315269000.123456789"),
        E("1590315269000.123456000"),
        300,
        70_000,
        2**32,
    ),
]


@pytest.mark.parametrize("made", TYPES, ids=lambda made: str(made.declared))
def test_a_hostile_value_is_read_exactly_or_not_at_all(made):
    """Every hostile value through every type, within bounded time."""
    for value in HOSTILE:
        datum = made.read(value)
        assert datum is MISFIT or says(made, datum, value), repr(value)[:99]


_dates = st.dates().map(str) | st.sampled_from(["0000-00-00", "2024-02-30"])
_clocks = st.from_regex(r"-?[0-2][0-9](:[0-5][0-9]){1,2}(\.[0-9]{1,5}0{0,4})?", fullmatch=True)
_numbers = (
    st.sampled_from(HOSTILE_NUMBERS)
    | st.integers(-(2**65), 2**65).map(str)
    | st.integers(-300, 300).map(str)
    | st.floats(allow_nan=False, allow_infinity=False).map(repr)
    | st.floats(allow_nan=False, allow_infinity=False, width=32).map(shortest_single)
    | st.decimals(allow_nan=False, allow_infinity=False, places=2, min_value=-(10**9), max_value=10**9).map(str)
    | st.from_regex(r"-?(0|[1-9][0-9]{0,20})(\.[0-9]{1,20})?([eE][+-]?[0-9]{1,3})?", fullmatch=True)
)
_texts = (
    _numbers
    | _dates
    | _clocks
    | st.tuples(_dates, st.sampled_from(" T"), _clocks).map("".join)
    | st.binary(max_size=9).map(lambda raw: b64encode(raw).decode())
    | st.sampled_from(["a", "b", "a,b", "", "true", "null"])
    | st.text(max_size=9)
)
_values = (
    _numbers.map(number) | _texts | st.booleans() | st.lists(st.integers(-(2**63), 2**63 - 1) | st.none(), max_size=2)
)


@pytest.mark.slow
@settings(max_examples=400)
@given(st.sampled_from(TYPES), _values)
def test_any_value_is_read_exactly_or_not_at_all(made, value):
    """The invariant over all types and JSON values: a datum says what was sent, or there is none."""
    datum = made.read(value)
    assert datum is MISFIT or says(made, datum, value)


@pytest.mark.slow
@settings(max_examples=200)
@given(
    st.one_of(
        st.tuples(st.just("bigint"), st.integers(-(2**63), 2**63 - 1)),
        st.tuples(st.just("bigint unsigned"), st.integers(0, 2**64 - 1).map(lambda value: number(str(value)))),
        st.tuples(st.just("double"), st.floats(allow_nan=False, allow_infinity=False).map(lambda v: number(repr(v)))),
        st.tuples(
            st.just("float"), st.floats(width=32, allow_nan=False, allow_infinity=False).map(lambda v: number(repr(v)))
        ),
        st.tuples(
            st.just("float"),
            st.floats(width=32, allow_nan=False, allow_infinity=False).map(lambda v: E(shortest_single(v))),
        ),
        st.tuples(
            st.just("decimal(38,10)"),
            st.decimals(places=10, min_value=-(10**27), max_value=10**27).map(lambda value: E(f"{value:f}")),
        ),
        st.tuples(st.just("date"), st.dates().map(str)),
        st.tuples(st.just("time"), st.times().map(str)),
        st.tuples(st.just("datetime"), st.datetimes().map(str)),
        st.tuples(st.just("blob"), st.binary().map(lambda raw: b64encode(raw).decode())),
        st.tuples(st.just("varchar(9)"), st.text()),
        st.tuples(st.just("bit(64)"), st.integers(0, 2**64 - 1).map(lambda value: number(str(value)))),
    )
)
def test_what_a_column_can_hold_is_read(drawn):
    """Nothing that a database sends is refused for its own type."""
    type, value = drawn
    assert made(type).read(value) is not MISFIT


def test_instants_and_their_bounds_are_read_back_by_fastavro():
    """The units of the logical types are what others take them for."""
    read = made("timestamp", "oms_canal")
    assert read_back(read.avro, read.read("1606233662.012345")) == datetime(2020, 11, 24, 16, 1, 2, 12345, UTC)
    read = made("DATE", "datahub_blob")
    assert read_back(read.avro, read.read(1590315269000)) == datetime(2020, 5, 24, 10, 14, 29, tzinfo=UTC)
    read = made("datetime")
    assert read_back(read.avro, read.read("0001-01-01 00:00:00.000001")) == datetime(1, 1, 1, 0, 0, 0, 1)  # noqa: DTZ001
    read = made("time")
    assert read_back(read.avro, read.read("23:59:59.999999")).isoformat() == "23:59:59.999999"
    read = made("date")
    assert read_back(read.avro, read.read("9999-12-31")) == date(9999, 12, 31)


# By reason: format, declared type, value.
KNOWN_MISFITS = {
    "zero dates, and a month that is zero": {
        ("canal", "date", "0000-00-00"),
        ("canal", "date", "2024-00-15"),
        ("canal", "datetime", "0000-00-00 00:00:00"),
        ("canal", "datetime(3)", "0000-00-00 00:00:00.000"),
        ("canal", "datetime(6)", "0000-00-00 00:00:00.000000"),
        ("canal", "timestamp", "0000-00-00 00:00:00"),
        ("canal", "timestamp(6)", "0000-00-00 00:00:00.000000"),
    },
    "spans of time, which are no times of day": {
        ("canal", "time", "-838:59:59"),
        ("canal", "time", "838:59:59"),
        ("canal", "time(6)", "-00:00:00.000001"),
        ("canal", "time(6)", "-12:34:56.500000"),
        ("debezium", "TIME", "-838:59:59"),
        ("debezium", "TIME", "838:59:59"),
        ("debezium", "TIME(6)", "-00:00:00.000001"),
        ("debezium", "TIME(6)", "-12:34:56.500000"),
        ("debezium", "io.debezium.time.MicroTime", "-838:59:59"),
    },
    "nanoseconds": {
        ("debezium", "io.debezium.time.NanoTimestamp", "2024-02-29 23:59:59.999999999"),
        ("oms_dataworks", "datetime", "1590315269000.123456789"),
    },
    "what the documents print instead of a value": {
        ("datahub_blob", "BYTES", "[base64 string]"),
        ("oms_dataworks", "binary", "[base64 string]"),
        ("oms_canal", None, "val1"),
    },
}


def _sample_values():
    for folder in sorted(path for path in SAMPLES.iterdir() if path.is_dir()):
        catalog = SchemaHistory()
        files = sorted(folder.glob("*.json*"))
        for file in files:
            lines = file.read_bytes().split(b"\n") if file.suffix == ".jsonl" else [file.read_bytes()]
            for line in filter(None, lines):
                format = cdcavro.sniff(line) if len(lines) > 1 else folder.name
                for change in to_changes(line, format, zone=ZoneInfo("UTC")):
                    yield from _typed_values(catalog.add(change), format)


def _typed_values(change, format):
    for column in change.columns or ():
        for image in (change.before, change.after):
            value = None if image is None else image.get(column.name)
            if value is not None:
                yield format, column, change.source, value


def test_every_value_of_the_samples_is_read_or_known_not_to_be():
    """What does not fit is listed here, with its reason."""
    count, misfits = 0, set()
    for format, column, source, value in _sample_values():
        count += 1
        held = column_type(column, source, zone=ZoneInfo("UTC"))
        datum = held.read(value)
        if datum is MISFIT:
            misfits.add((format, column.type, str(value)))
        elif format != "canal" or not column.type.startswith("binary"):
            assert says(held, datum, value)
    assert misfits == set().union(*KNOWN_MISFITS.values())
    assert count > 4_000
