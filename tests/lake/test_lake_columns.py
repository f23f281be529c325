"""Columns of lake tables without Spark: their types as Spark spells them, and as Arrow has them."""

from __future__ import annotations

import json

import pyarrow as pa
import pytest

from cdcavro.avro.schema import parse_schema
from cdcavro.errors import SchemaError
from cdcavro.lake.evolution import LakeColumn
from cdcavro.lake.lake_columns import arrow_type, held_columns, spark_name, spark_type, wanted_columns
from cdcavro.lake.sql_statements import CHANGELOG, DELETES, STATE
from support.column_types import typed_columns, version_of


@pytest.mark.slow
def test_columns_of_any_format_have_a_type_in_arrow_and_the_same_name_again():
    """Of each type that a column may have; the columns are in the version's order, under their true names."""
    wanted = wanted_columns(version_of(typed_columns()))
    assert [column.name for column in wanted] == ["id", *[f"c{i}" for i in range(len(wanted) - 1)]]
    assert {column.type for column in wanted} >= {"int", "bigint", "timestamp", "timestamp_ntz", "binary", "date"}
    assert [spark_name(arrow_type(column.type)) for column in wanted] == [column.type for column in wanted]


@pytest.mark.parametrize("name", sorted({*STATE.values(), *CHANGELOG.values(), *DELETES.values()}))
def test_own_columns_have_a_type_in_arrow(name):
    """Those of current states, changelogs and deletes."""
    assert spark_name(arrow_type(name)) == name


def test_nested_types_are_read():
    """Commas and colons within brackets belong to the inner type."""
    spark = "struct<a:array<map<string,struct<b:decimal(12,2),c:smallint>>>,d:tinyint>"
    inner = pa.struct([("b", pa.decimal128(12, 2)), ("c", pa.int16())])
    assert arrow_type(spark) == pa.struct([("a", pa.list_(pa.map_(pa.string(), inner))), ("d", pa.int8())])
    assert spark_name(arrow_type(spark)) == spark


@pytest.mark.parametrize("name", ["", "void", "text", "decimal(39,0)", "map<string>", "array<int,int>", "struct<a>"])
def test_a_type_that_lakes_do_not_have_is_refused(name):
    """The message names it."""
    with pytest.raises(SchemaError, match="is no type of a lake's column"):
        arrow_type(name)


def test_a_decimal_of_too_many_digits_is_refused():
    """The message names the column."""
    wide = {"type": "bytes", "logicalType": "decimal", "precision": 39, "scale": 0}
    declared = {"type": "record", "name": "R", "fields": [{"name": "n", "type": wide}]}
    root = parse_schema(json.dumps(declared)).root
    with pytest.raises(SchemaError, match="n: Spark's decimals have at most 38 digits"):
        spark_type(root.fields[0].type, "n")


def test_a_column_is_held_under_any_name():
    """By its comment, which has the name of its field."""
    present = [LakeColumn("other", "c0", "int"), LakeColumn("gone", "c9", "int")]
    assert [(wanted.name, held.name) for wanted, held in held_columns(version_of(["int"]), present)] == [
        ("c0", "other")
    ]
