"""Types that the user gives."""

from __future__ import annotations

import pytest

from cdcavro.change.model import Source
from cdcavro.errors import FileError
from cdcavro.table.columns.overrides import TypeOverrides, read_types

ORDERS = Source(database="shop", table="orders")


def test_the_most_specific_table_counts():
    """A table of a database before a table of any, and that before all; column by column."""
    given = TypeOverrides.from_mapping(
        {
            "*": {"a": "int", "b": "int", "c": "int"},
            "orders": {"a": "bigint", "b": "bigint"},
            "shop.orders": {"a": "double"},
        }
    )
    assert [given.of(ORDERS, name) for name in "abcd"] == ["double", "bigint", "int", None]
    assert given.of(Source(database="other", table="orders"), "a") == "bigint"
    assert given.of(Source(table="x"), "a") == "int"
    assert given.of(Source(), "a") == "int"
    assert given.of(ORDERS, None) is None


def test_a_column_matches_as_it_is_and_else_without_case():
    """Two names that differ in case only are told apart, and stand for no third."""
    given = TypeOverrides.from_mapping({"*": {"Id": "int", "x": "int", "X": "double", "straße": "text"}})
    assert [given.of(ORDERS, name) for name in ("ID", "x", "X", "STRASSE")] == ["int", "int", "double", "text"]
    given = TypeOverrides.from_mapping({"*": {"xy": "int", "XY": "double"}})
    assert given.of(ORDERS, "Xy") is None


def test_a_table_without_a_database_is_not_the_database_none():
    """Names are not made of what is not there."""
    assert TypeOverrides.from_mapping({"None.orders": {"a": "int"}}).of(Source(table="orders"), "a") is None


def test_nothing_given():
    """The default gives no type."""
    assert TypeOverrides().of(ORDERS, "a") is None


def test_a_file_is_read(tmp_path):
    """JSON in UTF-8."""
    file = tmp_path / "types.json"
    file.write_text('{"shop.orders": {"größe": "decimal(10,2)"}}', encoding="utf-8")
    assert read_types(file).of(ORDERS, "Größe") == "decimal(10,2)"
    assert read_types(str(file)) == TypeOverrides.from_mapping({"shop.orders": {"größe": "decimal(10,2)"}})


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "expected JSON, got an empty line"),
        ("{", "expected JSON, got text that ends too early, at character 1"),
        ("[]", "expected an object from table to columns, got '[]'"),
        ('{"": {}}', """expected a table's name, database.table or *, got "''\""""),
        ('{"t": []}', "expected an object from column to type for 't', got '[]'"),
        ('{"t": {"c": 1}}', "expected the text of a type for 't' 'c', got '1'"),
        ('{"t": {"c": "decmal(1)"}}', "expected a type that is known for 't' 'c', got 'decmal(1)'"),
        ('{"t": {}, "t": {}}', "expected each member once, got 't' twice"),
    ],
)
def test_a_bad_file_is_an_error_that_says_where(tmp_path, text, reason):
    """The file, what was expected and what stands there."""
    file = tmp_path / "types.json"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(FileError) as raised:
        read_types(file)
    assert str(raised.value) == f"{file}: {reason}"


def test_a_bad_mapping_is_the_same_error():
    """Without a file, under the name of types."""
    with pytest.raises(FileError) as raised:
        TypeOverrides.from_mapping({"t": {"c": "foo"}})
    assert str(raised.value) == "types: expected a type that is known for 't' 'c', got 'foo'"
