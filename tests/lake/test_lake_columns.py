"""Columns of lake tables without Spark: their types as Spark spells them, and as Arrow has them."""

from __future__ import annotations

import json

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cdcavro.avro.schema import parse_schema
from cdcavro.change.model import Source
from cdcavro.errors import SchemaError
from cdcavro.lake.evolution import LakeColumn
from cdcavro.lake.lake_columns import arrow_type, held_columns, spark_name, spark_type, text_names, wanted_columns
from cdcavro.lake.sql_statements import CHANGELOG, DELETES, STATE
from cdcavro.table.evolution.evolve import evolve
from support.column_types import typed_columns, version_of
from support.typed import table


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


def test_what_texts_call_a_column_is_never_what_they_call_another():
    """Also where its type changes and comes back, and where a name is taken by one column after another."""
    versions = [table("id|int", "d|date", "d_x_2|date", key=("id",))]
    for statement in (
        "ALTER TABLE t MODIFY COLUMN d INT",
        "ALTER TABLE t MODIFY COLUMN d DATE",
        "ALTER TABLE t RENAME COLUMN d TO e, ADD COLUMN d DATE",
        "ALTER TABLE t DROP COLUMN d, ADD COLUMN D INT",
        "ALTER TABLE t DROP COLUMN D",
        "ALTER TABLE t ADD COLUMN d INT, ADD COLUMN unparsed INT",
        "ALTER TABLE t RENAME COLUMN d TO f, RENAME COLUMN e TO d",
    ):
        versions.append(evolve(versions[-1], statement).schema)
    called = [{one.name: schema.text_names[one.field] for one in schema.columns} for schema in versions]
    assert [one.get("d") for one in called] == ["d", "d", "d", "d_x_4", None, None, "d_x_5", "d"]
    # It looks like the field of another `d`.
    assert {one["d_x_2"] for one in called} == {"d_x5f_x_2"}
    assert (called[-1]["f"], called[-1]["unparsed"], called[4]["D"]) == ("f", "unparsed_x_2", "_x44_")
    present = [LakeColumn(f"in the lake {one.field}", one.field, one.type) for one in wanted_columns(versions[-1])]
    left = [LakeColumn("dropped", "d_x_4", "date"), LakeColumn("somebody else's", "", "int")]
    found = text_names(versions, [*present, *left])
    every = [name for names in found.values() for name in names]
    assert len(every) == len({*every})
    fields = {one.name: f"in the lake {one.field}" for one in versions[-1].columns}
    assert {name: {*found[fields[name]]} for name in ("id", "d", "f", "unparsed")} == {
        "id": {"id"},
        "d": {"d", "e"},
        "f": {"d_x_5", "f"},
        "unparsed": {"unparsed_x_2"},
    }
    assert (found["dropped"], found["somebody else's"]) == (("d_x_4",), ("somebody else's",))


NAMES = ("a", "b", "A", "a_x_2", "unparsed", "d (until version 1)")


@given(st.data())
def test_no_text_is_called_as_one_of_another_column_was_ever(data: st.DataObject):
    """Whatever columns are added, dropped and renamed, change their types, and have names that look like those that are made."""
    versions, held, count = [table("id|int", "a|date", "a_x_2|date", key=("id",))], {"id": 0, "a": 1, "a_x_2": 2}, 2
    owners = {}
    for _ in range(data.draw(st.integers(1, 7))):
        name, other = (
            data.draw(st.sampled_from(sorted(held.keys() - {"id"}) or ["id"])),
            data.draw(st.sampled_from(NAMES)),
        )
        kind = data.draw(st.sampled_from(["ADD", "DROP", "RENAME", "MODIFY"]))
        if kind == "ADD" and other not in held:
            held[other] = count = count + 1
            statement = f'ADD "{other}" DATE'
        elif kind == "RENAME" and other not in held and name != "id":
            held[other] = held.pop(name)
            statement = f'RENAME COLUMN "{name}" TO "{other}"'
        elif kind == "DROP" and name != "id":
            statement = f'DROP COLUMN "{name}"'
            del held[name]
        elif kind == "MODIFY" and name != "id":
            statement = f'ALTER COLUMN "{name}" TYPE {data.draw(st.sampled_from(["DATE", "INT", "TEXT"]))}'
        else:
            continue
        versions.append(evolve(versions[-1], f"ALTER TABLE t {statement}", source=Source(db_type="postgresql")).schema)
        called = {column.name: versions[-1].text_names[column.field] for column in versions[-1].columns}
        assert called.keys() == held.keys()
        for column, text_name in called.items():
            assert owners.setdefault(text_name, held[column]) == held[column], versions[-1].row.json
    present = [LakeColumn(f"in the lake {one.field}", one.field, one.type) for one in wanted_columns(versions[-1])]
    found = text_names(versions, present)
    every = [name for names in found.values() for name in names]
    assert len(every) == len({*every})
    for column in versions[-1].columns:
        owned = {name for name, owner in owners.items() if owner == held[column.name]}
        assert owned <= {*found[f"in the lake {column.field}"]}


def test_a_column_is_held_under_any_name():
    """By its comment, which has the name of its field."""
    present = [LakeColumn("other", "c0", "int"), LakeColumn("gone", "c9", "int")]
    assert [(wanted.name, held.name) for wanted, held in held_columns(version_of(["int"]), present)] == [
        ("c0", "other")
    ]
