"""Older fields of columns: what their values are in the type that took over."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cdcavro.change.model import Change, Column, Source
from cdcavro.table.ddl.steps import TableName
from cdcavro.table.evolution.evolve import create_table, evolve
from cdcavro.table.older_fields import filled_value, heirs
from cdcavro.table.table_schema import TableSchema
from cdcavro.table.writing.table_writer import TableWriter
from support.generated_modules import RECORD_KINDS, module, root
from support.older_values import CASES, LOCAL, MICROS, NOON, decimal


@pytest.mark.parametrize(("old", "new", "value", "expected"), CASES)
def test_a_value_of_an_older_type_is_the_same_value_in_the_newer_type_or_none(old, new, value, expected):
    """Nothing is rounded, cut or spelled as the source might not have spelled it."""
    made = filled_value(value, old, new)
    assert (made, type(made), str(made)) == (expected, type(expected), str(expected))


@pytest.mark.parametrize(("old", "new"), [(LOCAL, MICROS), (MICROS, "string"), ("bytes", "int"), ("string", "boolean")])
def test_types_that_say_different_things_are_not_filled(old, new):
    """A local time is an instant in one zone only."""
    assert filled_value(NOON, old, new) is None


@given(
    digits=st.integers(-(10**12), 10**12),
    scales=st.tuples(st.integers(0, 9), st.integers(0, 9)),
    precision=st.integers(9, 20),
)
def test_a_decimal_is_filled_if_and_only_if_it_is_the_same_number(digits, scales, precision):
    """Whatever the two types are."""
    value, new = Decimal(digits).scaleb(-scales[0]), decimal(precision, scales[1])
    made = filled_value(value, decimal(20, scales[0]), new)
    shifted = value.scaleb(scales[1])
    fits = shifted == int(shifted) and abs(shifted) < 10**precision
    assert (made is not None) is fits
    assert made is None or (made == value and -made.as_tuple().exponent == scales[1])


def versions_of(*statements: str) -> list[TableSchema]:
    """Return the versions of a table whose columns are an id, and what the statements make of it."""
    versions = [create_table(TableName("s", None, "t"), [Column(name="id", type="int")], key=["id"])]
    for statement in statements:
        versions.append(evolve(versions[-1], statement).schema)
    return versions


def row_of(schema: TableSchema, image: dict[str, Any]) -> bytes:
    """Return a row as a payload of a version."""
    source = Source(format="canal")
    return TableWriter(schema, source, Change(op="INSERT", source=source, after=image).columns).row(image)


def test_the_older_fields_of_a_column_come_newest_first():
    """Of a column that changed its type twice; a column that did not has none."""
    newest = versions_of(
        "ALTER TABLE t ADD c INT, ADD d INT", "ALTER TABLE t MODIFY c DATE", "ALTER TABLE t MODIFY c DOUBLE"
    )[-1]
    assert heirs((field["name"], field) for field in newest.record["fields"]) == {"c_x_3": ("c_x_2", "c")}


@pytest.mark.parametrize(
    "said", [{"column": ["x"]}, {"column": {}}, {"until": "3"}, {"until": True}, {"until": [1]}, [], 1]
)
def test_attributes_from_elsewhere_that_say_something_else_are_passed(said):
    """A field whose column is no text is its own, and one whose last version is no whole number is present."""
    fields = [("n", {"cdc": {"until": 1}}), ("x", {"cdc": said}), ("y", {"cdc": {"column": "n"}})]
    assert heirs(fields) == {"y": ("n",)}


def test_the_last_versions_of_fields_from_elsewhere_may_be_of_several_kinds():
    """Only whole numbers are compared."""
    untils = [("a", 2), ("b", "3"), ("c", 3), ("d", None)]
    fields = [(name, {"cdc": {"column": "n", "until": until}}) for name, until in untils]
    assert heirs([*fields, ("n", {})]) == {"n": ("c", "a")}


@pytest.mark.slow
@pytest.mark.parametrize("kind", RECORD_KINDS)
def test_a_generated_record_has_the_values_of_older_rows_in_the_present_field(kind):
    """Wherever they are exact; where they are not the field is None, and the older one has the value."""
    versions = versions_of(
        "ALTER TABLE t ADD c DECIMAL(5,2) NOT NULL DEFAULT 0.50",
        "ALTER TABLE t MODIFY c DECIMAL(12,4) NOT NULL DEFAULT 0.50",
        "ALTER TABLE t MODIFY c DECIMAL(3,1) NOT NULL DEFAULT 0.5",
    )
    row = root(module(versions[-1].row, kind))
    images = [{"id": 1}, {"id": 2, "c": "7.10"}, {"id": 3, "c": "7.1234"}, {"id": 4, "c": "9.9"}]
    read = [
        row.from_avro(row_of(version, image), writer=version.row)
        for version, image in zip(versions, images, strict=True)
    ]
    assert [str(one.c_x_3) for one in read] == ["0.5", "7.1", "None", "9.9"]
    assert [(one.c, one.c_x_2) for one in read] == [
        (Decimal("0.50"), None),
        (Decimal("7.10"), None),
        (None, Decimal("7.1234")),
        (None, None),
    ]


@pytest.mark.parametrize(
    ("types", "held"),
    [
        (["INT|5", "BIGINT|5", "VARCHAR(9)|'5'", "DECIMAL(10,3)|5"], ["5", "5", "5", "5.000"]),
        (["DECIMAL(5,2)|0.50", "DECIMAL(10,2)|0.50", "DECIMAL(12,4)|0.50"], ["0.50", "0.50", "0.5000"]),
        (["DECIMAL(10,2)|0.50", "DECIMAL(5,2)|0.50", "DECIMAL(5,1)|0.5"], ["0.50", "0.50", "0.5"]),
        (["BIGINT|5", "INT|5", "BIGINT|5"], ["5", "5", "5"]),
        (["VARCHAR(9)|'5'", "INT|5", "VARCHAR(9)|'5'"], ["5", "5", "5"]),
        (["VARCHAR(9)|'x'", "INT|5", "VARCHAR(9)|'y'"], ["x", "None", "x"]),
    ],
)
def test_a_default_survives_changes_of_type(types, held):
    """A row older than the column has the default that it was added with, wherever the present type holds it."""
    (first, *others) = [declared.replace("|", " NOT NULL DEFAULT ") for declared in types]
    versions = versions_of(f"ALTER TABLE t ADD c {first}", *[f"ALTER TABLE t MODIFY c {other}" for other in others])
    payload = row_of(versions[0], {"id": 1})
    found = []
    for version in versions[1:]:
        read = root(module(version.row)).from_avro(payload, writer=versions[0].row)
        present = next(column.field for column in version.columns if column.name == "c")
        found.append(str(getattr(read, present)))
    assert found == held
