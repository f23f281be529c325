"""How Kafka Connect and Debezium send values, and what they are: one test for each type, and the laws."""

from __future__ import annotations

import struct
from base64 import b64encode

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cdcavro.change.connect_values import codec_of, read_connect_value, send_connect_value
from cdcavro.change.operations import Modes
from cdcavro.exact.jsontext import parse, render, same
from cdcavro.exact.numbers import ExactNumber, number
from support.connect_types import CONNECT, DATA, DECLARED, TIME, TYPES, values


def read(declared: str, sent: object, connector: str | None = "mysql", **given) -> object:
    """Return the value of what was sent, and assert that sending it gives that again."""
    codec = codec_of(declared, connector, **given)
    value = read_connect_value(sent, codec)
    assert same(send_connect_value(value, codec), sent)
    return value


@pytest.mark.parametrize("declared", ["DECIMAL(10,2)", f"{CONNECT}Decimal(precision=10,scale=2)"])
@pytest.mark.parametrize(
    ("sent", "digits"),
    [
        ("AkY=", "5.82"),
        ("/w==", "-0.01"),
        ("AA==", "0.00"),
        ("bg==", "1.10"),
        ("AlQL4/8=", "99999999.99"),
        ("gA==", "-1.28"),
    ],
)
def test_a_precise_decimal_is_its_digits(declared, sent, digits):
    """The bytes are the unscaled number in two's complement, big-endian; zeros at the end are kept."""
    assert same(read(declared, sent), number(digits))


def test_a_decimal_of_65_digits_is_a_number_of_65_digits():
    """MySQL's longest."""
    digits = "99999999999999999999999999999999999.999999999999999999999999999999"
    assert read("DECIMAL(65,30)", "APMWJxx/w5CKi+9GTjlF73olNgn//////////w==") == ExactNumber(digits)


def test_a_decimal_as_string_is_a_number():
    """`decimal.handling.mode` "string": exact digits, whatever they are; what is no number stays text."""
    assert read("DECIMAL(10,2)", "5.80", modes=Modes(decimals="string")) == ExactNumber("5.80")
    assert read("DECIMAL(10)", "1234", modes=Modes(decimals="string")) == 1234
    assert read("DECIMAL(10)", "0E-10", modes=Modes(decimals="string")) == ExactNumber("0E-10")
    assert read("DECIMAL(10)", "NaN", modes=Modes(decimals="string")) == "NaN"


def test_a_decimal_of_any_scale_brings_its_scale():
    """PostgreSQL's NUMERIC without scale, Oracle's NUMBER."""
    assert read(f"{DATA}VariableScaleDecimal", {"scale": 3, "value": "AkY="}) == 0.582
    assert read(f"{DATA}VariableScaleDecimal", {"scale": 0, "value": "/w=="}) == -1


@pytest.mark.parametrize(("sent", "value"), [("AP//////////", ExactNumber(str(2**64 - 1))), ("AA==", 0), (7, 7)])
def test_an_unsigned_bigint_is_an_integer(sent, value):
    """Sent as a decimal of scale 0 (`precise`) or as a number (`long`, the default)."""
    assert read_connect_value(sent, codec_of("BIGINT UNSIGNED", "mysql")) == value


@pytest.mark.parametrize("declared", ["DATE", f"{TIME}Date", f"{CONNECT}Date"])
@pytest.mark.parametrize(("sent", "text"), [(0, "1970-01-01"), (2932896, "9999-12-31"), (-354285, "1000-01-01")])
def test_a_date_is_days(declared, sent, text):
    """Since the epoch, before it negative."""
    assert read(declared, sent) == text


@pytest.mark.parametrize(
    ("declared", "sent", "text"),
    [
        ("TIME", 3_020_399_000_000, "838:59:59"),
        ("TIME", -3_020_399_000_000, "-838:59:59"),
        ("TIME(6)", -1, "-00:00:00.000001"),
        ("TIME(6)", 0, "00:00:00.000000"),
        ("TIME(2)", 45_296_500_000, "12:34:56.50"),
        (f"{TIME}MicroTime", 45_296_500_000, "12:34:56.500000"),
        (f"{TIME}MicroTime", 45_296_000_000, "12:34:56"),
        (f"{TIME}Time", 45_296_500, "12:34:56.500"),
        (f"{TIME}NanoTime", 1, "00:00:00.000000001"),
    ],
)
def test_a_time_may_be_negative_and_longer_than_a_day(declared, sent, text):
    """MySQL's TIME is microseconds, with as many digits as are declared."""
    assert read(declared, sent) == text


@pytest.mark.parametrize(
    ("declared", "sent", "text"),
    [
        ("DATETIME", 253_402_300_799_000, "9999-12-31 23:59:59"),
        ("DATETIME", -30_610_224_000_000, "1000-01-01 00:00:00"),
        ("DATETIME(3)", 1, "1970-01-01 00:00:00.001"),
        ("DATETIME(3)", 1_710_037_800_500, "2024-03-10 02:30:00.500"),
        ("DATETIME(4)", 1_709_251_199_999_900, "2024-02-29 23:59:59.9999"),
        ("DATETIME(6)", 1_709_251_199_999_999, "2024-02-29 23:59:59.999999"),
        (f"{TIME}Timestamp", 1_709_251_199_999, "2024-02-29 23:59:59.999"),
        (f"{TIME}MicroTimestamp", 1_709_251_199_000_000, "2024-02-29 23:59:59"),
        (f"{TIME}NanoTimestamp", -1, "1969-12-31 23:59:59.999999999"),
    ],
)
def test_a_datetime_is_a_local_time(declared, sent, text):
    """In milliseconds up to three digits, in microseconds up to six, in no zone."""
    assert read(declared, sent) == text


@pytest.mark.parametrize(
    ("declared", "sent", "text"),
    [
        ("TIMESTAMP", "2038-01-19T03:14:07Z", "2147483647"),
        ("TIMESTAMP(6)", "2024-03-31T01:30:00.100000Z", "1711848600.1"),
        ("TIMESTAMP(6)", "1970-01-01T00:00:00.000000Z", "0"),
        (f"{TIME}ZonedTimestamp", "2024-03-31T01:30:00.1Z", "1711848600.1"),
    ],
)
def test_a_timestamp_is_seconds_as_in_oms(declared, sent, text):
    """Text in UTC with the declared number of digits."""
    assert read(declared, sent) == text


@pytest.mark.parametrize(
    "sent", ["1969-12-31T23:59:59Z", "2024-03-31T01:30:00+02:00", "2024-02-30T00:00:00Z", "infinity"]
)
def test_an_instant_that_oms_cannot_say_stays_as_it_is(sent):
    """Before 1970, with an offset, on a day that is none, without an end."""
    assert read(f"{TIME}ZonedTimestamp", sent) == sent


@pytest.mark.parametrize(
    ("declared", "sent", "value"),
    [
        ("BIT(1)", True, "AQ=="),
        ("BIT(1)", False, "AA=="),
        ("BIT", True, "AQ=="),
        ("BIT(12)", "qgo=", "Cqo="),
        ("BIT(64)", "AwAAAAAAAAA=", "AAAAAAAAAAM="),
        (f"{DATA}Bits(length=12)", "qgo=", "Cqo="),
        (f"{DATA}Bits", "qgo=", "Cqo="),
    ],
)
def test_bits_are_big_endian_bytes(declared, sent, value):
    """Debezium sends them little-endian, and a single one as true or false."""
    assert read(declared, sent) == value


def test_fewer_bytes_than_bits_are_filled_up():
    """PostgreSQL's connector cuts zeros: how they were sent is not the value's business."""
    assert read_connect_value("qg==", codec_of(f"{DATA}Bits(length=12)")) == "AKo="


@pytest.mark.parametrize("declared", ["ENUM('a','b,c')", f"{DATA}Enum"])
def test_a_comma_in_a_label_loses_its_backslash(declared):
    """Debezium escapes commas in the labels of an ENUM."""
    assert read(declared, "b\\,c") == "b,c"
    assert read(declared, "d'e") == "d'e"


@pytest.mark.parametrize("declared", ["POINT", f"{DATA}geometry.Point"])
@pytest.mark.parametrize(
    ("x", "y", "srid", "flag"),
    [(1.5, -2.25, None, ""), (0.0, 0.0, None, ""), (180.0, 90.0, 4326, "e6100000"), (0.001, 9999999.0, 0, "00000000")],
)
def test_a_point_is_ewkb(declared, x, y, srid, flag):
    """Little-endian, with a reference system only if one is set."""
    wkb = b"\1\1\0\0\0" + struct.pack("<dd", x, y)
    ewkb = (b"\1\1\0\0\x20" if flag else b"\1\1\0\0\0") + bytes.fromhex(flag) + struct.pack("<dd", x, y)
    sent = {"x": x, "y": y, "wkb": b64encode(wkb).decode(), "srid": srid}
    assert read(declared, sent) == b64encode(ewkb).decode()


@pytest.mark.parametrize(
    ("x", "shown"), [(1e7, "1.0E7"), (1.25e-5, "1.25E-5"), (-123456789.5, "-1.234567895E8"), (-0.0, "-0.0")]
)
def test_a_coordinate_is_printed_as_java_does(x, shown):
    """With an exponent from ten million on and below a thousandth."""
    sent = send_connect_value(b64encode(b"\1\1\0\0\0" + struct.pack("<dd", x, x)).decode(), codec_of("POINT", "mysql"))
    assert render(sent["x"]).decode() == shown


@pytest.mark.parametrize(
    "sent",
    [
        {"wkb": "AAAAAAE=", "srid": None},
        {"wkb": "AQ==", "srid": None},
        {"wkb": "AQEAAAAAAAAAAAD4PwAAAAAAAALA", "srid": -1},
        {"wkb": "AQEAAAAAAAAAAAD4PwAAAAAAAALA", "z": 1},
        {"srid": 1},
        "AQE=",
    ],
)
def test_what_is_no_little_endian_geometry_stays_as_it_is(sent):
    """Big-endian, cut short, a number that is none, members that no geometry has."""
    assert read("GEOMETRY", sent) == sent


@pytest.mark.parametrize(
    ("declared", "sent"),
    [
        ("INT", 1),
        ("YEAR", 2155),
        ("DOUBLE", ExactNumber("1.7976931348623157E308")),
        ("JSON", '{"a":1.0}'),
        ("SET('x','y')", "x,y"),
        ("BLOB", "//4A"),
        ("VARCHAR(5)", "AkY="),
        (f"{TIME}Year", 2024),
        (f"{DATA}EnumSet", "x,y"),
        (f"{DATA}Json", "{}"),
        ("bytes", "//4A"),
        ("boolean", True),
        (f"{CONNECT}Decimal", "AkY="),
        ("nobody.knows.It", 5),
        (None, 5),
    ],
)
def test_what_is_sent_as_it_is_stays_as_it_is(declared, sent):
    """Integers, floats, texts, bytes; and every value of a type that is not known."""
    assert codec_of(declared, "mysql") is None
    assert read(declared, sent) == sent


def test_a_declared_type_is_read_for_mysql_only():
    """Oracle's DATE has a time of day, and PostgreSQL's SERIAL a sign."""
    for declared, other in (("DATE", "oracle"), ("SERIAL", "postgresql"), ("serial", None)):
        assert codec_of(declared, other) is None
        assert codec_of(declared, "mariadb") is not None


@pytest.mark.parametrize(
    ("declared", "sent"),
    [
        ("DECIMAL(10,2)", "5.82"),
        ("DECIMAL(10,2)", 5.82),
        ("DECIMAL(10,2)", ""),
        ("DECIMAL(10,2)", "A" * 4096),
        ("DATE", 10**9),
        ("DATE", "2024-02-29x"),
        ("DATE", True),
        ("DATETIME", 10**15),
        ("TIME", "x"),
        ("TIME", 1),
        ("BIT(12)", "AAAAAA=="),
        ("BIT(12)", True),
        ("TIMESTAMP", 5),
    ],
)
def test_what_does_not_fit_its_type_stays_as_it_is(declared, sent):
    """Another mode of the connector, a value out of bounds, more digits than declared: nothing is guessed."""
    assert same(read_connect_value(sent, codec_of(declared, "mysql")), sent)


@given(declared=st.sampled_from(TYPES + DECLARED), sent=values)
def test_a_value_that_was_read_is_read_again_the_same(declared, sent):
    """What a codec makes of a value can be sent, and is then read as the same value."""
    codec = codec_of(declared, "mysql")
    value = read_connect_value(sent, codec)
    assert same(parse(render(value)), value)
    if not same(value, sent):
        assert same(read_connect_value(send_connect_value(value, codec), codec), value)


@given(digits=st.decimals(allow_nan=False, allow_infinity=False, places=30, max_value=10**34, min_value=-(10**34)))
def test_every_decimal_is_sent_and_read_digit_for_digit(digits):
    """Whatever its digits."""
    codec, value = (
        codec_of("DECIMAL(65,30)", "mysql"),
        number(f"{digits:f}" if digits else f"{0:.30f}"),
    )
    assert type(send_connect_value(value, codec)) is str
    assert same(read_connect_value(send_connect_value(value, codec), codec), value)


@given(count=st.integers(-(2**55), 2**55), precision=st.integers(0, 6))
def test_every_count_of_microseconds_is_its_text(count, precision):
    """Where the text has digits enough."""
    for declared in (
        f"TIME({precision})",
        f"DATETIME({max(precision, 4)})",
        f"{TIME}MicroTimestamp",
        f"{TIME}MicroTime",
    ):
        codec = codec_of(declared, "mysql")
        assert send_connect_value(read_connect_value(count, codec), codec) == count


@pytest.mark.parametrize(
    "declared",
    [
        *(f"{DATA}Bits(length={length})" for length in ("99999999999", "8000000000", "9" * 30, "٣")),
        *(f"{CONNECT}Decimal(scale={scale})" for scale in ("4097", "9" * 10, "9" * 5000, "-4097", "x")),
        *(f"BIT({length})" for length in (65, 2_000_000_000, 999_999_999)),
        *(f"{name}({digits})" for name in ("TIME", "DATETIME", "TIMESTAMP") for digits in (10, 999_999_999)),
        "DECIMAL(9,4097)",
        "DECIMAL(1234567890,2)",
    ],
)
def test_a_type_of_absurd_size_is_not_known(declared):
    """Values of such a column stay as they were sent: nothing is filled up to what a schema claims."""
    assert codec_of(declared, "mysql") is None


@pytest.mark.parametrize("length", [65_537, 83_886_080, 999_999_999])
def test_bits_are_not_filled_up_beyond_8_kilobytes(length):
    """They stay as they were sent."""
    codec = codec_of(f"{DATA}Bits(length={length})")
    assert codec.read("AQ==") is None
    assert read_connect_value("AQ==", codec) == "AQ=="


def test_long_bits_that_came_whole_are_read():
    """PostgreSQL has bit strings of up to 83,886,080 bits; only as many bytes are made as came."""
    codec = codec_of(f"{DATA}Bits(length=65544)")
    sent = b64encode(b"\1" + bytes(8192)).decode()
    assert read_connect_value(sent, codec) == b64encode(bytes(8192) + b"\1").decode()
    assert send_connect_value(read_connect_value(sent, codec), codec) == sent


@pytest.mark.parametrize("declared", [f"{CONNECT}Decimal(scale=4096)", f"{DATA}VariableScaleDecimal"])
def test_a_number_of_thousands_of_digits_is_not_sent_as_a_decimal(declared):
    """Python does not read an integer of more than 4,300 digits, and more than 1,024 bytes are not read back."""
    for value in (ExactNumber("1" * 1_000 + "." + "1" * 4_096), ExactNumber("1" * 100 + "." + "1" * 4_096)):
        assert send_connect_value(value, codec_of(declared)) is value


def test_types_of_any_length_are_taken_and_long_ones_not_kept():
    """What messages claim takes no lasting memory."""
    declared = "ENUM('" + "x" * 100_000 + "')"
    assert codec_of(declared, "mysql") is not codec_of(declared, "mysql")
    assert codec_of("ENUM('x')", "mysql") is codec_of("ENUM('x')", "mysql")


@pytest.mark.parametrize(
    ("declared", "value", "sent"),
    [
        ("NanoTimestamp", "0001-01-01 00:00:00", None),
        ("NanoTimestamp", "9999-12-31 23:59:59.999999", None),
        ("NanoTimestamp", "2262-04-11 23:47:16.854775806", 2**63 - 2),
        ("NanoTimestamp", "2262-04-11 23:47:16.854775807", None),
        ("NanoTimestamp", "1677-09-21 00:12:43.145224193", 1 - 2**63),
        ("NanoTimestamp", "1677-09-21 00:12:43.145224192", None),
        ("NanoTime", "2562047:47:16.854775806", 2**63 - 2),
        ("NanoTime", "9999999999:00:00", None),
    ],
)
def test_a_time_whose_count_64_bits_do_not_hold_stays_text(declared, value, sent):
    """The ends of 64 bits are PostgreSQL's infinities, and beyond them is no message: neither may be written."""
    assert send_connect_value(value, codec_of(f"{TIME}{declared}")) == (value if sent is None else sent)
    assert read_connect_value(value, codec_of(f"{TIME}{declared}")) == value


@pytest.mark.parametrize(
    ("declared", "sent", "value"),
    [
        (f"{CONNECT}Decimal(scale=-2)", "BQ==", 500),
        (f"{CONNECT}Decimal(scale=-2)", "AA==", 0),
        (f"{CONNECT}Decimal(scale=-2)", "+w==", -500),
        (f"array<{CONNECT}Decimal(scale=2)>", ["AkY=", None, "AA=="], [5.82, None, ExactNumber("0.00")]),
        (f"array<array<{TIME}Date>>", [[0], [], None], [["1970-01-01"], [], None]),
        (f"{TIME}IsoDate", "2024-02-29Z", "2024-02-29"),
        (f"{TIME}IsoTime", "23:59:59.999999999Z", "23:59:59.999999999"),
        (f"{TIME}IsoTimestamp", "2024-02-29T12:00:00Z", "2024-02-29 12:00:00"),
        ("DATETIME(3)", 1, "1970-01-01 00:00:00.001"),
        ("BIGINT UNSIGNED", "AP//////////", ExactNumber(str(2**64 - 1))),
    ],
)
def test_a_value_is_sent_as_it_was(declared, sent, value):
    """What is read of it is sent in the very same form."""
    assert read(declared, sent) == value


@pytest.mark.parametrize(
    ("declared", "sent", "value"),
    [
        ("BIGINT UNSIGNED", -1, ExactNumber(str(2**64 - 1))),
        ("BIGINT UNSIGNED", -(2**63), ExactNumber(str(2**63))),
        ("TINYINT(1)", True, 1),
        ("DATE", "2024-02-29Z", "2024-02-29"),
        ("DATETIME(3)", "2024-02-29T12:00:00.5Z", "2024-02-29 12:00:00.500"),
        ("TIME", "12:00:00Z", "12:00:00"),
        (f"{TIME}StructuredDate", {"year": 0, "month": 0, "day": 0, "specialValue": None}, "0000-00-00"),
        (f"{TIME}StructuredTime", {"hour": 1, "minute": 2, "second": 3, "nanos": 40_000_000}, "01:02:03.04"),
        (f"{TIME}StructuredTime", {"hour": 1, "minute": 2, "second": 3, "nanos": 0, "precision": 2}, "01:02:03.00"),
        (f"{DATA}VariableScaleDecimal", {"scale": -2, "value": "BQ=="}, 500),
    ],
)
def test_a_value_that_can_be_sent_in_several_ways_is_the_same_value(declared, sent, value):
    """Which way it was is not in the value, but beside it."""
    assert read_connect_value(sent, codec_of(declared, "mysql")) == value


@pytest.mark.parametrize(
    ("declared", "sent"),
    [
        (f"{TIME}NanoTimestamp", 2**63 - 1),
        (f"{TIME}NanoTimestamp", -(2**63)),
        (f"{TIME}MicroTimestamp", 9_223_372_036_825_200_000),
        (f"{TIME}IsoDate", "2023-02-29Z"),
        (f"{TIME}IsoDate", "2024-02-29"),
        (f"{TIME}IsoDate", "+292278994-08-17Z"),
        (f"{TIME}IsoTime", "24:00:00Z"),
        (f"{TIME}IsoTime", "2024-02-29T12:00:00Z"),
        (f"{TIME}IsoTimestamp", "2024-02-29T12:00:00+08:00"),
        (f"{TIME}IsoTimestamp", "12:00:00Z"),
        (f"{TIME}StructuredDate", {"year": None, "month": None, "day": None, "specialValue": "POSITIVE_INFINITY"}),
        (f"{TIME}StructuredDate", {"year": 2024, "month": 13, "day": 1}),
        (f"{TIME}StructuredTime", {"hour": 1, "minute": 2, "second": 3, "nanos": 45, "precision": 2}),
        (f"{TIME}StructuredZonedTimestamp", {"year": 2024, "month": 1, "day": 1, "hour": 0, "minute": 0, "second": 0}),
        (f"array<{CONNECT}Decimal(scale=2)>", ["AkY=", 5]),
        (f"array<{CONNECT}Decimal(scale=2)>", "AkY="),
        ("array<" * 9 + f"{TIME}Date" + ">" * 9, [[[[[[[[[0]]]]]]]]]),
        ("BIGINT UNSIGNED", -(2**63) - 1),
        ("BIGINT", -1),
    ],
)
def test_what_is_no_value_of_its_type_stays_as_it_was_sent(declared, sent):
    """An infinity, a time of another kind or zone, an array of which one item does not fit, a signed number."""
    assert same(read_connect_value(sent, codec_of(declared, "mysql")), sent)
