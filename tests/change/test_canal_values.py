"""Column values as Canal sends them, read and written."""

from __future__ import annotations

import base64
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cdcavro.change.canal_values import read_canal_value, write_canal_value
from cdcavro.exact.jsontext import same
from cdcavro.exact.numbers import ExactNumber
from cdcavro.exact.sqltype import parse_sql_type
from support.strategies import HOSTILE_NUMBERS, HOSTILE_STRINGS

UTC = ZoneInfo("UTC")
SHANGHAI = ZoneInfo("Asia/Shanghai")
BERLIN = ZoneInfo("Europe/Berlin")
ZONES = [None, UTC, SHANGHAI, BERLIN]
TYPES = [
    *("tinyint(1)", "BOOLEAN", "int(8) unsigned zerofill", "bigint unsigned", "SERIAL", "year", "bit", "bit(12)"),
    *("bit(64)", "bit(0)", "bit(65)", "float", "double precision", "decimal(65,30)", "char(3)", "varchar(9)", "json"),
    *(
        "binary(8)",
        "longblob",
        "point",
        "geomcollection",
        "enum('a','b,c','d''e','?','?','','5')",
        "enum()",
        "enum('0')",
    ),
    *("set('x','y','z')", "set('','1')", "set()", "date", "time(6)", "datetime(3)", "timestamp", "timestamp(6)"),
    *("timestamp(7)", "timestamp(999999999)", "interval", ""),
]
SET_OF_65 = "set(" + ",".join(f"'{i}'" for i in range(65)) + ")"
LABELS = st.lists(st.text().map(lambda text: text.replace(",", "")), min_size=1, max_size=64)

dates = st.datetimes().map(str)
numbers = st.integers().map(str) | st.floats().map(repr) | st.decimals().map(str) | st.sampled_from(HOSTILE_NUMBERS)
sent = st.text() | st.binary().map(lambda raw: raw.decode("iso-8859-1")) | numbers | dates
sent |= st.sampled_from(HOSTILE_STRINGS) | st.integers(0, 70).map(str)
anything = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False)
anything |= sent | st.just(ExactNumber("1.20")) | st.just([1, {"a": ExactNumber("1.20")}])


@pytest.mark.parametrize("type", TYPES)
@given(sent=sent, zone=st.sampled_from(ZONES))
@pytest.mark.slow
def test_what_is_read_as_another_value_is_written_as_it_was(type, sent, zone):
    """Whatever string came for a column of whatever type, it is kept or comes back exactly."""
    declared = parse_sql_type(type)
    value = read_canal_value(sent, declared, zone)
    assert same(value, sent) or write_canal_value(value, declared, zone) == sent


@pytest.mark.parametrize("type", TYPES)
@given(value=anything, zone=st.sampled_from(ZONES))
def test_any_value_is_written_as_a_string(type, value, zone):
    """Values of any other format, fitting the declared type or not; only null is null."""
    written = write_canal_value(value, parse_sql_type(type), zone)
    assert written is None if value is None else isinstance(written, str)


@given(value=st.integers())
def test_integers_are_numbers(value):
    """Of any size: beyond 64 bits the digits are kept."""
    declared = parse_sql_type("bigint unsigned")
    expected = value if -(2**63) <= value < 2**63 else ExactNumber(str(value))
    assert read_canal_value(str(value), declared) == expected
    assert write_canal_value(expected, declared) == str(value)


@given(raw=st.binary())
def test_bytes_are_base64(raw):
    """All 256 bytes, NUL and U+0085 among them."""
    declared = parse_sql_type("varbinary(255)")
    value = base64.b64encode(raw).decode()
    assert read_canal_value(raw.decode("iso-8859-1"), declared) == value
    assert write_canal_value(value, declared) == raw.decode("iso-8859-1")


@given(labels=LABELS, data=st.data())
def test_enum_and_set_have_any_labels(labels, data):
    """Index and bitmask to labels and back, unless a label is empty or stands twice."""
    written = ",".join("'" + label.replace("'", "''") + "'" for label in labels)
    chosen = data.draw(st.sets(st.sampled_from(range(len(labels)))))
    mask = str(sum(1 << i for i in chosen))
    values = [
        (str(index + 1), f"enum({written})", label) for index, label in enumerate(labels) if label not in labels[:index]
    ]
    if len(set(labels)) == len(labels) and "" not in labels:
        values += [(mask, f"set({written})", ",".join(labels[i] for i in sorted(chosen)))]
    for text, type, value in values:
        assert read_canal_value(text, parse_sql_type(type)) == value
        assert write_canal_value(value, parse_sql_type(type)) == text


@pytest.mark.parametrize(
    ("type", "sent", "value"),
    [
        ("int", "-1", -1),
        ("INT UNSIGNED", "4294967295", 4294967295),
        ("bigint unsigned", "18446744073709551615", ExactNumber("18446744073709551615")),
        ("int(8) unsigned zerofill", "42", 42),
        ("bool", "1", 1),
        ("year", "2155", 2155),
        ("year", "0000", 0),
        ("decimal(10,2)", "1.20", ExactNumber("1.20")),
        ("decimal(10,2)", "0.0", 0.0),
        ("fixed(40,3) unsigned", "1.110", ExactNumber("1.110")),
        ("float", "3.4028E38", ExactNumber("3.4028E38")),
        ("double", "1.0E-300", ExactNumber("1.0E-300")),
        ("double precision", "-0.0", -0.0),
        ("bit(1)", "1", "AQ=="),
        ("bit", "0", "AA=="),
        ("bit(12)", "2730", "Cqo="),
        ("bit(64)", "18446744073709551615", "//////////8="),
        ("binary(8)", "\0ÿ\x10\x80\x85", "AP8QgIU="),
        ("blob", "", ""),
        ("point", "\0\0\0\0\x01\x01\0\0\0ÿ", "AQEAAAD/"),
        ("geometry", "\xe6\x10\0\0\x01\x07\0\0\0ÿ", "AQcAACDmEAAA/w=="),
        ("enum('a','b,c','d''e','?')", "2", "b,c"),
        ("enum('a','b,c','d''e','?')", "3", "d'e"),
        ("enum('a','b,c','d''e','?')", "0", ""),
        ("ENUM('3','2','1')", "1", "3"),
        ("set('x','y','z')", "5", "x,z"),
        ("set('x','y','z')", "0", ""),
        (SET_OF_65.replace(",'64'", ""), str(1 << 63), "63"),
    ],
)
def test_a_string_is_read_by_its_declared_type(type, sent, value):
    """And the value is written as the string that came."""
    assert same(read_canal_value(sent, parse_sql_type(type)), value)
    assert write_canal_value(value, parse_sql_type(type)) == sent


@pytest.mark.parametrize(
    ("type", "sent"),
    [
        *(("int", text) for text in ("", " 1", "1.5", "1e3", "+1", "00000042", "١", "NaN", "0x1", "-", "1_0")),
        *(("decimal(10,2)", text) for text in ("", ".5", "1.", "1,5", "Infinity", "--1")),
        *(("year", text) for text in ("70", "", "02155", "-001", "２０２４")),
        *(("bit(1)", text) for text in ("2", "-1", "", "b'1'", "01", "99999999999999999999")),
        *(
            ("point", text)
            for text in (
                "",
                "POINT(1 2)",
                "\0\0\0\0\0\0\0\0\x01",
                "\0\0\0\0\x01\x01\0\0\x20",
                "\0\0\0\0\x01\x01\0\0\0😀",
            )
        ),
        *(("bit(65)", text) for text in ("1",)),
        *(("bit(0)", text) for text in ("0",)),
        *(("varbinary(9)", text) for text in ("Ā", "日本", "a😀")),
        *(("enum('a','b')", text) for text in ("3", "-1", "01", "1.0", "c")),
        *(("enum('a','?','?')", text) for text in ("3",)),
        *(("enum('','a')", text) for text in ("0",)),
        *(("enum", text) for text in ("0", "1", "")),
        *(("set('x','y')", text) for text in ("4", "18446744073709551616", "-1", "q")),
        *(("set('','y')", text) for text in ("1",)),
        *(("set('x','x')", text) for text in ("2", "3")),
        *(("set", text) for text in ("0", "")),
        (SET_OF_65, "1"),
        *(("timestamp(3)", text) for text in ("0000-00-00 00:00:00.000", "2024-02-30 00:00:00.000", "now", "1")),
        *(
            ("timestamp(3)", text)
            for text in ("2024-01-01 00:00:00", "2024-01-01 00:00:00.5", "1969-12-31 00:00:00.000")
        ),
        *(("timestamp(999999999)", text) for text in ("2024-01-01 00:00:00", "2024-01-01 00:00:00.5")),
        *(("char(9)", text) for text in ("1", "", "null")),
        *(("json", text) for text in ("1", '{"a": 1.0}')),
        *(("date", text) for text in ("2024-01-01", "0000-00-00")),
        *(("time(6)", text) for text in ("-838:59:59.000000",)),
        *(("datetime(6)", text) for text in ("2024-01-01 00:00:00.000001",)),
        *(("interval", text) for text in ("1",)),
    ],
)
def test_a_string_that_its_type_cannot_have_stays(type, sent):
    """So does one whose value would not be written the same."""
    assert read_canal_value(sent, parse_sql_type(type), BERLIN) == sent


@pytest.mark.parametrize("value", [None, True, 1, 1.5, ExactNumber("1.20"), [1], {"a": None}])
def test_only_strings_are_read(value):
    """Canal sends strings; whatever else is there is what it is."""
    assert read_canal_value(value, parse_sql_type("int")) is value
    assert read_canal_value(value, None) is value


@pytest.mark.parametrize(
    ("zone", "sent", "value"),
    [
        (UTC, "2038-01-19 03:14:07.999999", "2147483647.999999"),
        (SHANGHAI, "2024-01-01 08:00:00.500000", "1704067200.5"),
        (SHANGHAI, "1970-01-01 08:00:00.000001", "0.000001"),
        (BERLIN, "2024-07-01 02:00:00.000000", "1719792000"),
        (BERLIN, "2024-01-01 01:00:00.000010", "1704067200.00001"),
        (BERLIN, "2024-03-31 02:30:00.000000", "2024-03-31 02:30:00.000000"),
        (BERLIN, "2024-10-27 02:30:00.000000", "2024-10-27 02:30:00.000000"),
        (BERLIN, "0000-00-00 00:00:00.000000", "0000-00-00 00:00:00.000000"),
        (SHANGHAI, "1970-01-01 00:00:01.000000", "1970-01-01 00:00:01.000000"),
        (None, "2024-01-01 00:00:00.000000", "2024-01-01 00:00:00.000000"),
    ],
)
def test_a_timestamp_is_an_instant_only_in_its_zone(zone, sent, value):
    """Seconds without zeros at the end, as OMS has them; a time that summer time has twice or never stays text."""
    declared = parse_sql_type("timestamp(6)")
    assert read_canal_value(sent, declared, zone) == value
    assert write_canal_value(value, declared, zone) == sent


@pytest.mark.parametrize(
    ("type", "value", "sent"),
    [
        ("timestamp(6)", "1704067200.123456789", "1704067200.123456789"),
        ("timestamp(6)", "1704067200.123456000", "2024-01-01 00:00:00.123456"),
        ("timestamp", "1704067200.000000000", "2024-01-01 00:00:00"),
        ("timestamp", "1704067200", "2024-01-01 00:00:00"),
        ("timestamp", 1704067200, "1704067200"),
        ("timestamp", "2024-01-01T00:00:00Z", "2024-01-01T00:00:00Z"),
        ("timestamp", "999999999999", "999999999999"),
        ("int", True, "1"),
        ("bit(1)", False, "0"),
        ("bit(12)", 2730, "2730"),
        ("bit(12)", "AAAKqg==", "AAAKqg=="),
        ("blob", "no base64", "no base64"),
        ("blob", "QQ", "QQ"),
        ("blob", "QR==", "QR=="),
        ("point", "AQEAACDmEA==", "AQEAACDmEA=="),
        ("point", "AQEAACAAAAAA", "\0\0\0\0\x01\x01\0\0\0"),
        ("year", 70, "0070"),
        ("year", -1, "-1"),
        ("json", {"a": ExactNumber("1.20"), "ü": [None]}, '{"a":1.20,"ü":[null]}'),
        ("set('x','y','z')", "z,x,z", "5"),
        ("set('x','y','z')", "x,q", "x,q"),
        ("enum('a','b')", "c", "c"),
        ("enum", "", ""),
        ("varchar(9)", ExactNumber("1.20"), "1.20"),
        ("double", 1e22, "1e+22"),
    ],
)
def test_values_of_other_formats_are_written_as_canal_would_if_they_fit(type, value, sent):
    """What does not fit its declared type is written as it is."""
    assert write_canal_value(value, parse_sql_type(type), UTC) == sent


@pytest.mark.parametrize(
    ("value", "sent"),
    [(None, None), (True, "1"), (False, "0"), (7, "7"), (0.1, "0.1"), (ExactNumber("1E400"), "1E400"), ("x", "x")],
)
def test_values_without_a_declared_type_are_written_as_they_are(value, sent):
    """Numbers with their digits, true and false as MySQL has them."""
    assert write_canal_value(value, None) == sent
