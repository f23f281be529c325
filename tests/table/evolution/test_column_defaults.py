"""Constant defaults of statements as the server stores them."""

from __future__ import annotations

from zoneinfo import ZoneInfo

import pytest

from cdcavro.change.model import Column, Source
from cdcavro.exact.numbers import ExactNumber, minimal_bytes
from cdcavro.table.columns.column_type import column_type
from cdcavro.table.columns.readers import MISFIT
from cdcavro.table.ddl.steps import Constant
from cdcavro.table.older_fields import constant_datum, constant_of, default_text
from support.strategies import HOSTILE_STRINGS


def made(type, format="canal", *, code=1111, zone=None):
    """The type of a column that is declared so."""
    return column_type(Column(name="c", type=type, code=code), Source(format=format, db_type="mysql"), zone=zone)


@pytest.mark.parametrize(
    ("type", "value", "datum"),
    [
        ("int", 5, 5),
        ("int", "5", 5),
        ("int", "5.0", 5),
        ("int", 1.5, MISFIT),
        ("int", "", MISFIT),
        ("int", "new", MISFIT),
        ("int", True, 1),
        ("tinyint(1)", False, 0),
        ("tinyint", 300, MISFIT),
        ("tinyint", "b'101'", 5),
        ("bigint unsigned", str(2**64 - 1), minimal_bytes(2**64 - 1)),
        ("boolean", True, True),
        ("boolean", 0, False),
        ("float", "0.5", 0.5),
        ("double", 1, 1.0),
        ("decimal(10,2)", "0.00", minimal_bytes(0)),
        ("decimal(10,2)", 1.5, minimal_bytes(150)),
        ("decimal(10,2)", ExactNumber("1.50"), minimal_bytes(150)),
        ("decimal(10,2)", "1.234", MISFIT),
        ("decimal(65,30)", 0, "0." + "0" * 30),
        ("decimal(65,30)", "-1.5", "-1.5" + "0" * 29),
        ("decimal(65,0)", "7", "7"),
        ("decimal(65,30)", "x", MISFIT),
        ("varchar(10)", "new", "new"),
        ("varchar(10)", "", ""),
        ("varchar(10)", 1.5, "1.5"),
        ("varchar(10)", ExactNumber("1.50"), "1.50"),
        ("varchar(10)", True, "1"),
        ("enum('new','done')", "new", "new"),
        ("enum('new','done')", "old", MISFIT),
        ("enum('1','2')", "1", "1"),
        ("enum('1','2')", 1, MISFIT),
        ("set('x','y')", "x,y", "x,y"),
        ("date", "2020-01-01", 18262),
        ("date", "2020-02-30", MISFIT),
        ("date", 20200101, MISFIT),
        ("datetime", "2020-01-01 00:00:01", 1577836801000000),
        ("datetime(6)", "2020-01-01 00:00:01.5", 1577836801500000),
        ("datetime", "2020-01-01", 1577836800000000),
        ("datetime", "0000-00-00 00:00:00", MISFIT),
        ("datetime", "CURRENT_TIMESTAMP", MISFIT),
        ("timestamp", "2020-01-01 00:00:00", MISFIT),
        ("timestamp", "1606233662", MISFIT),
        ("time", "10:00:00", 36_000_000_000),
        ("time", "10:00", 36_000_000_000),
        ("time", 100000, MISFIT),
        ("year", "2020", 2020),
        ("varbinary(9)", "abcd", b"abcd"),
        ("varbinary(9)", "é", "é".encode()),
        ("varbinary(9)", "x'00FF'", b"\x00\xff"),
        ("varbinary(9)", "0x00FF", b"\x00\xff"),
        ("varbinary(9)", 5, b"5"),
        ("binary(4)", "a", b"a\0\0\0"),
        ("binary(4)", "abcde", MISFIT),
        ("bit(12)", "b'101'", b"\0\5"),
        ("bit(12)", 5, b"\0\5"),
        ("bit(12)", "0b101", b"\0\5"),
        ("bit(1)", "b'11'", MISFIT),
        ("bit(1)", True, b"\1"),
        ("bit(12)", "AQI=", MISFIT),
    ],
)
def test_a_constant_is_stored_as_the_server_would(type, value, datum):
    """The same whether the column's own messages are Canal's or Debezium's."""
    for format in ("canal", "debezium"):
        found = constant_datum(value, made(type, format))
        assert found == datum
        assert found.__class__ is datum.__class__


def test_an_instant_needs_the_zone_of_the_session():
    """The default of a TIMESTAMP is local time."""
    assert constant_datum("1970-01-01 08:00:01", made("timestamp", zone=ZoneInfo("Asia/Shanghai"))) == 1_000_000


@pytest.mark.parametrize("value", [*HOSTILE_STRINGS, "9" * 100_000, 10**30, -1, 1e300, ExactNumber("1e99999999")])
def test_a_hostile_constant_is_a_datum_or_a_misfit(value):
    """Nothing is raised."""
    types = ("int", "float", "decimal(10,2)", "decimal(65,30)", "text", "blob", "bit(9)", "date", "time", "datetime")
    for type in types:
        constant_datum(value, made(type))


@pytest.mark.parametrize(
    ("declared", "avro", "datum"), [("number(10,-2)", "bytes", b"\x01\xf4"), ("number(38,-84)", "string", "500")]
)
def test_a_constant_of_a_negative_scale_is_the_number(declared, avro, datum):
    """Oracle's NUMBER(10,-2) has hundreds; of more digits than a decimal may have it is a string."""
    type = column_type(Column(name="n", type=declared), Source(format="oms_default", db_type="OB_ORACLE"))
    assert (type.avro if isinstance(type.avro, str) else type.avro["type"], constant_datum(500, type)) == (avro, datum)


@pytest.mark.parametrize("value", [True, False, None, "it's", "", "TRUE", b"A\xff", ExactNumber("-1.50")])
def test_a_constant_comes_back_from_its_text_in_a_schema(value):
    """Older rows are filled by it when the column changes its type."""
    found = constant_of(default_text(Constant(value)))
    assert found == Constant(value)
    assert type(found.value) is type(value)
