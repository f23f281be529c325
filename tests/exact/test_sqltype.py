"""Declared column types, taken apart."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cdcavro.exact.sqltype import SqlType, parse_sql_type


@pytest.mark.parametrize(
    ("text", "declared"),
    [
        ("bigint", SqlType("BIGINT")),
        ("BIGINT unsigned", SqlType("BIGINT", unsigned=True)),
        ("int(8) unsigned zerofill", SqlType("INT", (8,), unsigned=True, zerofill=True)),
        ("INT ZEROFILL", SqlType("INT", unsigned=True, zerofill=True)),
        ("SERIAL", SqlType("SERIAL", unsigned=True)),
        ("decimal(65,30)", SqlType("DECIMAL", (65, 30))),
        ("DECIMAL(8, 0) unsigned", SqlType("DECIMAL", (8, 0), unsigned=True)),
        ("double  precision(10,7)", SqlType("DOUBLE PRECISION", (10, 7))),
        (" long\tvarbinary ", SqlType("LONG VARBINARY")),
        ("char(10) character set latin1", SqlType("CHAR", (10,))),
        ("char byte(3)", SqlType("CHAR BYTE", (3,))),
        ("character varying(5)", SqlType("CHARACTER VARYING", (5,))),
        ("national varchar(5)", SqlType("NATIONAL VARCHAR", (5,))),
        ("timestamp(6)", SqlType("TIMESTAMP", (6,))),
        ("enum('a','b,c','d''e','?')", SqlType("ENUM", members=("a", "b,c", "d'e", "?"))),
        ("SET( 'x' , '' , 'y)' ) CHARACTER SET utf8mb4", SqlType("SET", members=("x", "", "y)"))),
        ("enum('a\\','日本\n','unsigned')", SqlType("ENUM", members=("a\\", "日本\n", "unsigned"))),
        ("enum('a','b", SqlType("ENUM")),
        ("enum()", SqlType("ENUM")),
        ("enum('a',)", SqlType("ENUM")),
        ("set('a', 'b' ,) unsigned", SqlType("SET", unsigned=True)),
        ("NUMBER(10, -2)", SqlType("NUMBER", (10, -2))),
        ("NUMBER(-10, 2)", SqlType("NUMBER")),
        ("decimal(10,)", SqlType("DECIMAL")),
        ("decimal(1234567890123)", SqlType("DECIMAL")),
        ("", SqlType("")),
        ("(10)", SqlType("(10)")),
        ("整数", SqlType("整数")),
    ],
)
def test_a_declared_type_is_taken_apart(text, declared):
    """Name, arguments, labels, unsigned and zerofill; what is not understood is left out."""
    assert parse_sql_type(text) == declared


def test_a_label_that_stands_twice_has_its_first_index():
    """Two emoji have both become `?` in Canal's `mysqlType`."""
    declared = parse_sql_type("enum('a','?','?')")
    assert declared.members == ("a", "?", "?")
    assert declared.indexes == {"a": 0, "?": 1}


@given(st.lists(st.text()))
def test_any_labels_come_back(labels):
    """An apostrophe is written twice; nothing else is special."""
    written = ",".join("'" + label.replace("'", "''") + "'" for label in labels)
    assert parse_sql_type(f"set({written})").members == tuple(labels)


@given(st.text(alphabet="(),'\\ 0aA\n", max_size=40))
def test_any_text_is_a_declared_type(text):
    """None fails: a message may hold anything."""
    assert parse_sql_type(f"enum{text}").name.startswith("ENUM")


@pytest.mark.parametrize("part", ["'a',", "(", "' ", "0,", " ", "''", "national ", "a"])
def test_a_long_text_takes_no_longer_than_its_length(part):
    """A megabyte of what a type may hold, and never ends, is done in a moment."""
    parse_sql_type("enum(" + part * (1_000_000 // len(part)))
