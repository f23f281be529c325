"""The tables of a stream: their versions, by statements and by columns, and where each change goes."""

from __future__ import annotations

import json
import pickle
import random
import sys
import weakref
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cdcavro.avro.schema import parse_schema
from cdcavro.change.model import Arrival, Change, Column, Source, replace
from cdcavro.errors import CdcAvroError, DdlError, OrderError, SchemaError, StructureError
from cdcavro.lake.typed_rows import write_change
from cdcavro.table import history, table_schema
from cdcavro.table.columns.column_type import TypeOverrides
from cdcavro.table.ddl.parse import empties
from cdcavro.table.ddl.steps import TableName
from cdcavro.table.evolution.evolve import MAX_KEPT
from cdcavro.table.evolution.explanation import UnexplainedColumns
from cdcavro.table.tables import Tables
from cdcavro.table.writing.message_typer import MessageTyper
from cdcavro.table.writing.table_writer import OPERATIONS
from cdcavro.transcoding.mapping import from_changes, to_changes
from support import stream_trial
from support.calls import calls
from support.streams import CANAL, KINDS, CanalFile, Stream, stated
from support.typed import read, read_row

# Where versions come from


def test_a_table_comes_from_its_statement_and_its_rows_follow():
    """Types are spelled as they like: it is one version."""
    stream = Stream()
    stream.ddl("CREATE TABLE t (id INTEGER PRIMARY KEY, b BOOL, d NUMERIC(10, 2) DEFAULT 1, s CHARACTER VARYING(5))")
    made = stream.row("id int(11), b tinyint(1), d decimal(10,2), s varchar(5)")
    assert stream.versions == ["t: id b d s"]
    assert made.schema.version == 1
    assert read(made.key, made.schema.key)["id"] == 1
    assert read(made.payload, made.schema.envelope)["after"]["b"] == 1


def test_a_version_of_a_statement_has_the_types_that_its_first_rows_state():
    """As long as nothing was written in it; from then on other types are another version."""
    stream = Stream()
    stream.ddl("CREATE TABLE t (a INT)")
    assert stream.row("a bigint").schema.version == 1
    assert stream.row("a int").schema.version == 2
    stream.ddl("ALTER TABLE t ADD x INT")
    assert stream.row("a int, x bigint").schema.version == 3
    assert stream.row("a int, x int").schema.version == 4
    assert [one.field for one in stream.tables.tables[0].versions[2].all_columns] == ["a_x_2", "a", "x"]
    assert stream.tables.tables[0].steps[2] == ("column 'x' added: null in older rows", "column 'x' is long")


def test_rows_with_the_very_same_columns_go_to_another_version_once_there_is_one():
    """What was found for the rows before is not kept beyond a statement."""
    stream = Stream()
    stream.ddl("CREATE TABLE t (a INT)")
    assert [stream.row("a int").schema.version for _ in range(3)] == [1, 1, 1]
    stream.ddl("ALTER TABLE t ADD b INT")
    stream.ddl("ALTER TABLE t DROP b")
    assert [stream.row("a int").schema.version for _ in range(3)] == [3, 3, 3]


def test_rows_with_the_very_same_columns_go_to_the_table_that_has_the_name():
    """Two tables of equal columns change their names."""
    stream = Stream()
    stream.ddl("CREATE TABLE t (a INT)")
    stream.ddl("CREATE TABLE u (a INT)", table="u")
    assert [stream.row("a int").table.number for _ in range(3)] == [0, 0, 0]
    stream.ddl("RENAME TABLE t TO v, u TO t")
    assert [stream.row("a int").table.number for _ in range(3)] == [1, 1, 1]


def test_rows_with_the_very_same_columns_as_those_of_a_table_that_is_gone_are_of_another():
    """What was found for the rows before is not kept beyond the table."""
    stream = Stream()
    stream.ddl("CREATE TABLE t (a INT)")
    assert [stream.row("a int").table.number for _ in range(3)] == [0, 0, 0]
    stream.ddl("DROP TABLE t")
    assert [stream.row("a int").table.number for _ in range(3)] == [1, 1, 1]


@pytest.mark.parametrize("others", [0, 3])
def test_rows_with_the_very_same_columns_go_where_they_went_whatever_other_tables_do(others):
    """Nor does it depend on a late row, or on a statement that is undone."""
    stream = Stream()
    stream.row("a int", number=30)
    assert stream.row("a tinyint(1)", number=27).schema.version == 1
    assert stream.row("a tinyint(1)", number=50).schema.version == 2
    with pytest.raises(SchemaError):
        stream.ddl("ALTER TABLE t DROP b", number=60)
    for number in range(others):
        stream.row("a int", table="u", number=61 + number)
    assert stream.row("a tinyint(1)", number=70).schema.version == 2


def test_a_name_that_an_undone_statement_gave_is_no_name():
    """Its first row makes a table, as that of any other does."""
    stream = Stream()
    stream.row("a int", number=10)
    stream.ddl("ALTER TABLE t ADD b INT", number=30)
    with pytest.raises(SchemaError):
        stream.ddl("ALTER TABLE t RENAME TO v; ALTER TABLE v DROP nothing")
    assert stream.row("a int", table="v", number=40).table.number == 1


def test_a_subclass_and_what_it_holds_go_to_another_process():
    """As any object of Python does."""
    tables = Mine()
    tables.add(Change(op="INSERT", source=CANAL, columns=stated("a int"), after={"a": 1}, position=(1,)))
    tables.mine = 5
    again = pickle.loads(pickle.dumps(tables))
    assert (type(again), again.mine, [one.number for one in again.tables]) == (Mine, 5, [0])
    assert weakref.ref(tables)() is tables


class Mine(Tables):
    """Somebody's own."""


def test_a_version_that_its_rows_contradict_stays():
    """A row before those was taken for an earlier one, and is found there."""
    stream = Stream()
    stream.row("b int")
    stream.ddl("ALTER TABLE t ADD a INT")
    stream.row("b int, a int")
    stream.ddl("ALTER TABLE t DROP b")
    bare = stream.row(None, {"b": 1})
    stated_ = stream.row("b tinyint(1)")
    assert (bare.schema.version, stated_.schema.version) == (2, 4)
    assert stream.tables.find(stream.changes[-2]) == [(bare.table, bare.schema)]


def test_a_key_is_known_as_soon_as_a_change_says_it_with_new_columns():
    """Or its own statement does."""
    stream = Stream()
    assert stream.row("id int").schema.key is None
    assert stream.row("id int, a int", key=("id",)).schema.key_names == ("id",)


@pytest.mark.parametrize("columns", ["id int, a int", None])
def test_a_key_that_later_rows_state_is_that_of_a_new_version(columns):
    """It is learned of a row that states it, and rows behind that one have it, stated or not; those before it have none."""
    stream, values = Stream(), {"id": 1, "a": 2}
    first = stream.row(columns, values)
    stated_ = Change(op="INSERT", source=CANAL, key=("id",), columns=stream.changes[0].columns, after=values)
    assert stream.tables.lasting_writer(stated_, is_all_learned=True) is None
    rows = [stream.row(columns, values, key=key) for key in (("id",), None, ("a",), ("x",))]
    assert (first.key, [row.schema.version for row in rows]) == (None, [2] * 4)
    assert [read(row.key, row.schema.key)["id"] for row in rows] == [1 if columns else "1"] * 4
    assert [version.key_names for version in first.table.versions] == [(), ("id",)]
    assert first.table.steps[1] == ("the key is 'id'",)
    for change, row in zip(stream.changes, [first, *rows], strict=True):
        assert stream.tables.find(change) == [(row.table, row.schema)]


def test_a_row_whose_key_is_not_learned_is_not_found():
    """Whoever asks learns it; a key of columns that the table does not have is none, and needs no learning."""
    stream = Stream()
    stream.row("id int")
    (row,) = [replace(change, key=("id",)) for change in stream.changes]
    with pytest.raises(SchemaError, match="schema t: the key 'id' is not known of it"):
        stream.tables.find(row)
    other = replace(row, key=("x",))
    assert [schema.version for _, schema in stream.tables.find(other)] == [1]
    assert stream.tables.lasting_writer(other, is_all_learned=True) is not None


@pytest.mark.parametrize("first", [None, ("id", "id")])
def test_a_column_that_a_key_names_twice_is_one_of_its_columns(first):
    """No table is lost by such a row, whether it is the first one or a later one."""
    stream, values = Stream(), {"id": 7, "a": 2}
    rows = [stream.row("id int, a int", values, key=key) for key in (first, ("id", "id"), ("id",), ("a", "id", "a"))]
    schema = rows[-1].schema
    assert schema.key_names == ("id",)
    assert [read(row.key, schema.key) for row in rows[1:]] == [{"id": 7, "unparsed": {}}] * 3


def test_a_statement_may_name_a_column_of_its_key_twice():
    """It is no other key by that."""
    stream = Stream()
    stream.ddl("CREATE TABLE t (id INT, a INT, PRIMARY KEY (id, id))")
    assert stream.row("id int, a int", {"id": 7, "a": 2}).schema.key_names == ("id",)
    stream.ddl("ALTER TABLE t DROP PRIMARY KEY, ADD PRIMARY KEY (a, id, a)")
    assert stream.row("id int, a int", {"id": 7, "a": 2}).schema.key_names == ("a", "id")


def test_a_late_row_does_not_bring_back_a_key_that_a_statement_dropped():
    """It states the key that its table had then."""
    stream = Stream()
    stream.ddl("CREATE TABLE t (id INT PRIMARY KEY, a INT)")
    stream.ddl("ALTER TABLE t DROP PRIMARY KEY")
    assert stream.row("id int, a int", key=("id",)).table.schema.key is None


def test_rows_without_a_statement_make_their_table():
    """Of the columns that they state, or of those that they have."""
    stream = Stream()
    assert stream.row("id int", key=("id",)).schema.key_names == ("id",)
    stream.row("id int, a int")
    stream.row("a int, id int", table="u")
    assert stream.versions == ["t: id | t: id a", "u: a id"]


def test_rows_that_state_no_columns_add_those_that_they_have_and_drop_none():
    """A partial row, as SharePlex sends an update, says nothing of the others."""
    stream = Stream(replace(CANAL, format="oms_shareplex"))
    for row in ({"a": 1}, {"b": "x"}, {"a": 2, "b": 3}, {"b": 1}, {"c": 1, "a": 1}):
        made = stream.row(None, row)
    assert stream.versions == ["t: a | t: a b | t: a b c"]
    shown = read(made.payload, made.schema.envelope)["after"]
    assert (shown["a"], shown["b"], shown["absent"]) == ("1", None, ["b"])


def test_an_empty_list_of_columns_states_none_and_drops_none():
    """Neither with a row nor with a statement, and the key stays."""
    stream = Stream()
    stream.row("id int, a int", key=("id",))
    stream.row("", {"id": "2", "a": "1"}, key=("id",))
    stream.ddl("ALTER TABLE t ADD b INT", columns="")
    assert stream.row("id int, a int, b int", key=("id",)).schema.key_names == ("id",)
    assert stream.versions == ["t: id a | t: id a b"]


def test_a_row_with_a_column_that_its_statement_did_not_say_is_an_error():
    """With the column: the table's columns are known."""
    stream = Stream()
    stream.ddl("CREATE TABLE t (id INT)")
    with pytest.raises(StructureError) as caught:
        stream.row(None, {"id": 1, "x": 2})
    assert str(caught.value) == "canal: $.after.x: expected a column of t in version 1, got none"


def test_columns_that_change_without_a_statement_make_a_version():
    """And those that were there before go where they were."""
    stream = Stream()
    for columns in ("id int, a int", "id int, a int, b int", "id int, a bigint, b int"):
        stream.row(columns)
    late = stream.row("id int, a int", number=5)
    assert late.schema.version == 1
    assert stream.versions == ["t: id a | t: id a b | t: id a b"]
    assert stream.tables.tables[0].steps[2] == ("column 'a' reads int as long",)


def test_a_list_that_is_part_of_the_tables_drops_no_column():
    """A row of which the source logged a part is no statement; what is listed otherwise makes a version, as ever."""
    stream = Stream()
    stream.row("id int, a int, b int")
    parts = [stream.row(columns, op="UPDATE", before={}) for columns in ("id int, a int", "b int, id int")]
    assert stream.row("id int, a int, b int").schema.version == 1
    assert stream.versions == ["t: id a b"]
    assert [part.schema.version for part in parts] == [1, 1]
    assert [list(part.absent) for part in parts] == [["b"], ["a"]]
    stream.row("id int, a bigint")
    assert stream.row("id int, c int").schema.version == 3
    assert stream.versions == ["t: id a b | t: id a | t: id c"]


def test_an_update_behind_the_statement_that_added_a_column_is_no_row_of_the_version_before_it():
    """It was logged in part, so the column keeps its value; a row that may be older, and an INSERT, are of that version."""
    stream = CanalFile()
    stream.ddl("CREATE TABLE t (id INT PRIMARY KEY, a INT)", number=1)
    old = stream.row("id int, a int", op="UPDATE", before={}, number=1)
    stream.ddl("ALTER TABLE t ADD b INT DEFAULT 7", number=5)
    stream.row("id int, a int, b int", number=6)
    part, insert, again, same = (
        stream.row("id int, a int", op=op, before={} if op == "UPDATE" else None, number=number)
        for op, number in (("UPDATE", 7), ("INSERT", 8), ("UPDATE", 4), ("UPDATE", 5))
    )
    assert [row.schema.version for row in (old, part, insert, again, same)] == [1, 2, 1, 1, 1]
    assert (part.absent, stream.versions) == (("b",), ["t: id a | t: id a b"])
    assert [stream.tables.find(change) for change in stream.changes if change.op in ("INSERT", "UPDATE")] == [
        [(row.table, row.schema)] for row in (old, stream.tables.add(stream.changes[3])[0], part, insert, again, same)
    ]
    assert [stream.tables.last_number(old.table, change) for change in stream.changes[3:6]] == [None, 5000, None]


def test_an_update_is_of_the_version_that_a_later_statement_left_with_its_columns():
    """A column was added and dropped; and of one that was renamed, no update has a part."""
    stream = CanalFile()
    for number, text in enumerate(
        ("CREATE TABLE t (id INT, a INT)", "ALTER TABLE t ADD b INT", "ALTER TABLE t DROP b"), 1
    ):
        stream.ddl(text, number=number)
    assert stream.row("id int, a int", op="UPDATE", before={}, number=5).schema.version == 3
    stream.ddl("ALTER TABLE t RENAME COLUMN a TO c", number=6)
    stream.ddl("ALTER TABLE t ADD d INT", number=7)
    assert stream.row("id int, a int", op="UPDATE", before={}, number=9).schema.version == 3


@pytest.mark.parametrize(
    ("format", "db_type", "type"),
    [("debezium", "postgresql", "int32"), ("oms_canal", "mysql", "bigint"), ("datahub_blob", None, "DOUBLE")],
)
def test_a_part_is_written_where_other_rows_alone_said_the_types(format, db_type, type):
    """Types are the format's own words, which no statement of the database has."""
    stream = Stream(Source(format=format, db_type=db_type, database="d"))
    stream.row(f"id {type}, a {type}, b {type}", {"id": "1", "a": "2", "b": "3"})
    part = stream.row(f"id {type}, a {type}", {"id": "1", "a": "4"}, op="UPDATE", before={})
    assert (part.schema.version, list(part.absent)) == (1, ["b"])


def test_a_statement_that_lists_fewer_columns_drops_the_others():
    """Its list is that of the table, and no row's."""
    stream = Stream(Source(format="debezium", db_type="sqlserver", database="d", schema="dbo"))
    for kind, columns in (("CREATE", "id int, a int, b int"), ("ALTER", "id int, a int")):
        stream._add(kind, None, table="t", columns=stated(columns))
    assert stream.versions == ["t: id a b | t: id a"]


def test_a_table_that_is_dropped_without_a_text_is_gone_although_its_key_is_said():
    """Only what makes a table says its key and nothing else."""
    stream = Stream()
    stream.row("id int", key=("id",))
    stream._add("ERASE", None, table="t", key=("id",))
    assert stream.tables.tables[0].is_gone


@pytest.mark.parametrize("types", [("enum('a')", "enum('a','b')"), ("varchar(5)", "varchar(9)")])
def test_types_that_are_held_alike_make_a_version_that_says_so(types):
    """Nothing becomes of the rows; a late one goes to the first."""
    stream = Stream()
    found = [stream.row(f"s {one}", {"s": "a"}).schema.version for one in (*types, types[1])]
    assert found == [1, 2, 2]
    assert stream.row(f"s {types[0]}", {"s": "a"}, number=1).schema.version == 1


# Statements


def test_statements_and_rows_go_version_by_version():
    """Each row is written in the version of its time, and reads as the last."""
    stream = Stream()
    stream.ddl("CREATE TABLE t (id INT, a INT)")
    made = [stream.row("id int, a int")]
    for statement, columns in [
        ("ALTER TABLE t RENAME COLUMN a TO b", "id int, b int"),
        ("ALTER TABLE t ADD c INT NOT NULL DEFAULT 7 FIRST", "c int, id int, b int"),
        ("ALTER TABLE t MODIFY b BIGINT", "c int, id int, b bigint"),
        ("ALTER TABLE t DROP id", "c int, b bigint"),
    ]:
        stream.ddl(statement)
        made.append(stream.row(columns))
    assert [one.schema.version for one in made] == [1, 2, 3, 4, 5]
    last = made[-1].schema
    rows = [read(one.payload, one.schema.envelope, last.envelope)["after"] for one in made]
    assert [(row["b"], row["c"]) for row in rows] == [(1, 7), (1, 7), (1, 1), (1, 1), (1, 1)]


def test_a_statement_that_is_not_understood_changes_nothing():
    """Nor does one that the table contradicts, be it in its last step; what comes next goes on."""
    stream = Stream()
    stream.ddl("CREATE TABLE t (id INT)")
    stream.ddl("CREATE TABLE u (id INT)", table="u")
    stream.row("id int")
    before = [[schema.row.json for schema in one.versions] for one in stream.tables.tables]
    for text, error in [
        ("ALTER TABLE t FROBNICATE", DdlError),
        ("ALTER TABLE t DROP nothing", SchemaError),
        ("ALTER TABLE t ADD x INT, DROP nothing", SchemaError),
        ("ALTER TABLE t ADD x INT; ALTER TABLE t ADD x INT", SchemaError),
        ("RENAME TABLE t TO v; DROP TABLE u; CREATE TABLE t (x INT); ALTER TABLE t DROP y", SchemaError),
        ("CREATE TABLE u (id INT); DROP TABLE t, u; CREATE TABLE w (id INT, `" + "x" * 256 + "` INT)", StructureError),
    ]:
        for _ in range(2):
            with pytest.raises(error):
                stream.ddl(text)
    assert [[schema.row.json for schema in one.versions] for one in stream.tables.tables] == before
    assert [one.is_gone for one in stream.tables.tables] == [False, False]
    stream.ddl("ALTER TABLE t ADD x INT")
    assert stream.row("id int, x int").schema.version == 2
    assert stream.row("id int", table="u").schema.version == 1


def test_a_statement_that_is_delivered_again_changes_nothing():
    """From the same place, however much later; or at once, with the same numbers, from another place."""
    statements = [
        "CREATE TABLE t (id INT)",
        "ALTER TABLE t ADD a INT",
        "ALTER TABLE t RENAME COLUMN a TO b",
        "CREATE TABLE t_new (id INT, c INT)",
        "RENAME TABLE t TO t_old, t_new TO t",
        "ALTER TABLE t DROP c",
    ]
    once, twice, again = Tables(), Tables(), Tables()
    listed = [
        Change(op=KINDS[one.split()[0]], source=CANAL, ddl=one, position=(i,), place=Arrival(offset=i))
        for i, one in enumerate(statements)
    ]
    for change in listed:
        once.add(change)
        twice.add(change)
        twice.add(replace(change, place=Arrival(offset=1000)))
    for change in [*listed, *listed]:
        again.add(change)
    for tables in (twice, again):
        assert [one.versions for one in tables.tables] == [one.versions for one in once.tables]


def test_the_same_statement_is_taken_again_where_another_came_between():
    """Added, dropped and added within one second of one batch, which have the same numbers."""
    stream = Stream()
    stream.ddl("CREATE TABLE t (id INT)")
    for text in ("ADD a INT", "DROP a", "ADD a INT"):
        stream.ddl(f"ALTER TABLE t {text}", number=70)
    assert [one.field for one in stream.tables.tables[0].schema.columns] == ["id", "a_x_2"]


def test_tables_that_swap_their_names_keep_their_rows():
    """As tools that change a table beside itself do it."""
    stream = Stream()
    stream.ddl("CREATE TABLE t (id INT)")
    stream.ddl("CREATE TABLE t_new (id INT, a INT)", table="t_new")
    first = stream.row("id int")
    stream.ddl("RENAME TABLE t TO t_old, t_new TO t")
    second = stream.row("id int, a int")
    assert (first.table.number, second.table.number) == (0, 1)
    assert stream.versions == ["t: id | t_old: id", "t_new: id a | t: id a"]
    assert stream.row("id int", number=25).table is first.table
    third = stream.row("id int", table="t_old")
    assert (third.table, third.schema.version) == (first.table, 2)


def test_who_had_a_name_that_another_takes_is_gone():
    """Its DROP was not sent; rows of the name are the other's."""
    stream = Stream()
    for name in ("t", "t_old"):
        stream.ddl(f"CREATE TABLE {name} (id INT)", table=name)
    stream.ddl("RENAME TABLE t TO t_old")
    assert [one.is_gone for one in stream.tables.tables] == [False, True]
    assert stream.row("id int", table="t_old").table.number == 0


def test_a_table_that_is_dropped_and_created_is_another():
    """With the same columns or others; a late row goes to the first."""
    stream = Stream()
    for text in ("CREATE TABLE t (id INT)", "DROP TABLE t", "CREATE TABLE t (id INT)"):
        stream.ddl(text)
    row = stream.row("id int")
    assert (row.table.number, row.schema.version) == (1, 1)
    assert [one.is_gone for one in stream.tables.tables] == [True, False]
    assert stream.row("id int", number=15).table.number == 0
    stream.ddl("CREATE OR REPLACE TABLE t (id INT)")
    assert len(stream.tables.tables) == 3


@pytest.mark.parametrize(
    ("statement", "db_type", "gone"),
    [
        ("DROP DATABASE IF EXISTS shop", "mysql", "shop.t shop.s.t"),
        ("DROP SCHEMA other", "mysql", "other.t"),
        ("DROP SCHEMA s CASCADE", "postgresql", "shop.s.t"),
        ("DROP DATABASE other", "postgresql", "other.t"),
    ],
)
def test_a_database_that_is_dropped_drops_its_tables(statement, db_type, gone):
    """All of them, and no other database's; on OceanBase those of its tenant."""
    for tenant, above in ((None, ""), ("te", "te.")):
        own = replace(CANAL, tenant=tenant, db_type=db_type)
        sources = [own, replace(own, database="other"), replace(own, schema="s"), replace(own, tenant="x")]
        tables = Tables()
        for i, source in enumerate(sources):
            tables.add(Change(op="INSERT", source=source, columns=stated("id int"), after={"id": 1}, position=(i,)))
        tables.add(Change(op="QUERY", source=replace(own, table=None), ddl=statement, position=(9,)))
        names = [one.schema.full_name for one in tables.tables if one.is_gone]
        assert [name.replace("_x2e_", ".") for name in names] == [above + name for name in gone.split()]


def test_a_row_of_a_table_that_was_dropped_makes_another():
    """Its CREATE was not sent."""
    stream = Stream()
    stream.row("id int")
    stream.ddl("DROP TABLE t")
    assert stream.row("id int").table.number == 1


@pytest.mark.parametrize(
    ("statement", "versions"),
    [
        ("CREATE TABLE u LIKE t", ["t: id a | t: id a b", "u: id a b"]),
        ("CREATE TABLE u (LIKE t)", ["t: id a | t: id a b", "u: id a b"]),
        ("CREATE TABLE u LIKE nothing", ["t: id a | t: id a b"]),
        ("CREATE TABLE u AS SELECT * FROM t", ["t: id a | t: id a b"]),
        ("CREATE TABLE u (x INT) AS SELECT * FROM t", ["t: id a | t: id a b"]),
        ("CREATE TABLE IF NOT EXISTS t (x INT)", ["t: id a | t: id a b"]),
        ("CREATE TABLE IF NOT EXISTS u (x INT)", ["t: id a | t: id a b", "u: x"]),
        ("CREATE TABLE t AS SELECT 1", ["t: id a | t: id a b"]),
        ("CREATE TABLE t (id INT, a INT, b INT)", ["t: id a | t: id a b"]),
        ("CREATE TABLE t (b BIGINT, id INT, a TEXT)", ["t: id a | t: id a b"]),
        ("CREATE TABLE t (x INT)", ["t: id a | t: id a b", "t: x"]),
        ("CREATE TEMPORARY TABLE t (x INT)", ["t: id a | t: id a b"]),
    ],
)
def test_what_is_created(statement, versions):
    """A table of the same columns as the one of its name is that one: it was created once, and says so again."""
    stream = Stream()
    stream.ddl("CREATE TABLE t (id INT, a INT, PRIMARY KEY (id))")
    stream.ddl("ALTER TABLE t ADD b INT")
    stream.ddl(statement, table=None)
    assert stream.versions == versions
    if versions[1:] == ["u: id a b"]:
        assert stream.tables.tables[1].schema.key_names == ("id",)


def test_a_statement_behind_the_rows_of_its_table_gives_it_a_key_and_loses_nothing():
    """Snapshots send what created a table behind, or beside, its rows."""
    stream = Stream()
    first = stream.row("id bigint, a varchar(5)")
    stream.ddl("CREATE TABLE t (id BIGINT NOT NULL, a VARCHAR(5), PRIMARY KEY (id))")
    second = stream.row("id bigint, a varchar(5)")
    assert (first.table, first.key) == (second.table, None)
    assert second.schema.key_names == ("id",)
    assert stream.versions == ["t: id a | t: id a"]


def test_a_statement_behind_untyped_rows_gives_them_types():
    """In a new version; in the same where nothing was written yet, as on Spark, where all is learned first."""
    change = Change(op="SNAPSHOT", source=replace(CANAL, format="oms_default"), after={"id": 1}, position=(1,))
    create = Change(op="CREATE", source=change.source, ddl="CREATE TABLE t (id INT, a INT)", position=(2,))
    written, learned = Tables(), Tables()
    written.add(change)
    written.add(create)
    assert [one.avro for one in written.tables[0].schema.all_columns] == ["int", "string", "int"]
    learned.learn(change)
    learned.learn(create)
    (table,) = learned.tables
    assert [one.avro for one in table.schema.columns] == ["int", "int"]
    assert learned.find(change) == [(table, table.versions[0])]
    assert read(learned.write(change, learned.find(change))[0].payload, table.schema.envelope)["after"]["id"] == 1


def test_truncate_is_written_for_each_table_that_is_known():
    """With the letter t and the table's name."""
    stream = Stream()
    for name in ("t", "u"):
        stream.row("id int", table=name)
    made = stream._add("TRUNCATE", None, table="t", ddl="TRUNCATE TABLE u", columns=None)
    shown = read(made.payload, made.schema.envelope)
    assert (shown["op"], shown["before"], shown["after"], shown["source"]["table"], made.key) == (
        "t",
        None,
        None,
        "u",
        None,
    )
    assert stream._add("TRUNCATE", None, table="u", columns=None).table.number == 1
    assert stream._add("TRUNCATE", None, table="nothing", columns=None) == []


# Keys


def test_a_change_of_the_key_is_a_delete_and_an_insert():
    """Also where the key is known from a statement only."""
    stream = Stream()
    stream.ddl("CREATE TABLE t (id INT PRIMARY KEY, a INT)")
    columns = "id int, a int"
    for key in (("id",), None):
        one, other = stream.row(columns, {"id": 2, "a": 1}, op="UPDATE", before={"id": 1, "a": 1}, key=key)
        shown = [read(made.payload, made.schema.envelope) for made in (one, other)]
        assert [
            (made["op"], made["before"] and made["before"]["id"], made["after"] and made["after"]["id"])
            for made in shown
        ] == [
            ("d", 1, None),
            ("c", None, 2),
        ]
        assert [read(made.key, made.schema.key)["id"] for made in (one, other)] == [1, 2]
    same = stream.row(columns, {"id": 1, "a": 2}, op="UPDATE", before={"id": 1, "a": 1})
    assert read(same.payload, same.schema.envelope)["op"] == "u"


# Many tables


def test_tables_of_one_name_in_two_databases_schemas_and_tenants_are_as_many():
    """Statements are about those of their own."""
    sources = [
        replace(CANAL, database="a"),
        replace(CANAL, database="b"),
        replace(CANAL, database="a", schema="s"),
        replace(CANAL, database="a", tenant="t1"),
        replace(CANAL, database="a", tenant="t2"),
    ]
    tables = Tables()
    for i, source in enumerate(sources):
        tables.add(Change(op="CREATE", source=source, ddl="CREATE TABLE t (id INT)", position=(i,)))
    tables.add(Change(op="ALTER", source=sources[3], ddl="ALTER TABLE t ADD x INT, RENAME TO t9", position=(9,)))
    tables.add(Change(op="RENAME", source=sources[4], ddl="RENAME TABLE a.t TO b.t", position=(9,)))
    assert [one.schema.table.database for one in tables.tables] == ["a", "b", "a", "t1.a", "t2.b"]
    assert len({one.schema.full_name for one in tables.tables}) == 5
    assert [len(one.versions) for one in tables.tables] == [1, 1, 1, 2, 2]


def test_types_that_are_given_hold_through_tenants_and_renames():
    """The user gives them for the database's table."""
    given = TypeOverrides.from_mapping({"shop.t": {"a": "decimal(5,2)"}})
    for tenant in (None, "te"):
        stream = Stream(replace(CANAL, tenant=tenant, format="oms_default"), given=given)
        stream.ddl("CREATE TABLE t (id INT, a TEXT)")
        stream.row(None, {"id": 1, "a": 1})
        stream.ddl("RENAME TABLE t TO t2")
        for columns in (None, "id int, a text"):
            made = stream.row(columns, {"id": 1, "a": "1.25"}, table="t2")
            assert read(made.payload, made.schema.envelope)["after"]["a"] == Decimal("1.25")
            assert stream.tables.find(stream.changes[-1]) == [(made.table, made.schema)]
        assert stream.versions == ["t: id a | t2: id a"]


# Debezium


def test_values_of_debezium_are_read_by_what_its_schema_changes_said():
    """A message alone does not say what `fQ==` is."""
    tables = Tables()
    columns = [
        {"name": "id", "jdbcType": 4, "typeName": "INT", "typeExpression": "INT", "length": None, "scale": None},
        {"name": "n", "jdbcType": 3, "typeName": "DECIMAL", "typeExpression": "DECIMAL", "length": 10, "scale": 2},
    ]
    source = '{"connector":"mysql","db":"shop","table":"t","file":"bin.1","pos":%d,"row":0}'
    change = (
        f'{{"source":{source % 1},"databaseName":"shop","ddl":"CREATE TABLE t (id INT, n DECIMAL(10,2))",'
        f'"tableChanges":[{{"type":"CREATE","id":"\\"shop\\".\\"t\\"","table":{{"primaryKeyColumnNames":["id"],'
        f'"columns":{str(columns).replace(chr(39), chr(34)).replace("None", "null")}}}}}]}}'
    )
    row = f'{{"before":null,"after":{{"id":1,"n":"fQ=="}},"source":{source % 2},"op":"c"}}'
    for text in (change, row):
        made = [one for change in to_changes(text, "debezium") for one in tables.add(change)]
    assert str(read(made[0].payload, made[0].schema.envelope)["after"]["n"]) == "1.25"
    assert read(made[0].key, made[0].schema.key)["id"] == 1
    assert len(tables.tables[0].versions) == 1


def test_a_statement_whose_columns_are_there_already_changes_nothing():
    """It comes with the columns that it leads to, and those were stated before it came."""
    stream = Stream()
    stream.row("id int, b int")
    stream.ddl("ALTER TABLE t RENAME COLUMN a TO b", columns="id int, b int")
    assert stream.versions == ["t: id b"]
    with pytest.raises(SchemaError):
        stream.ddl("ALTER TABLE t RENAME COLUMN a TO b", columns="id int, c int")
    stream.ddl("ALTER TABLE u ADD x INT", columns="id int, x int", table="u")
    assert stream.versions == ["t: id b", "u: id x"]


# Late changes


def test_a_late_change_of_columns_that_no_version_has_is_refused():
    """It would undo what came after it."""
    stream = Stream()
    stream.ddl("CREATE TABLE t (id INT, a INT)")
    stream.ddl("ALTER TABLE t ADD b INT")
    assert stream.row("id int, a int", number=15).schema.version == 1
    with pytest.raises(SchemaError) as caught:
        stream.row("id int, x int", number=15)
    assert str(caught.value) == "schema t: column 'a' is not as in version 1, nor any other"
    assert stream.versions == ["t: id a | t: id a b"]
    assert stream.row("id int, a int, b int").schema.version == 2


def test_a_late_row_may_lack_columns_that_came_without_a_statement():
    """Another partition was ahead: when the columns came is not known, but that it was before the first row with them."""
    stream = Stream(Source(format="debezium", db_type="mysql", database="d"))
    stream.row("id int32, a int32", number=10)
    stream.row("id int32, a int32, b int32, c int32", number=40)
    stream.row("id int32, a int32, b int32, c int32, e int32", number=60)
    for number, columns, version, lacked in (
        (20, "id int32, a int32, b int32", 2, ["c"]),
        (50, "id int32, a int32, b int32, c int32", 2, []),
        (30, "id int32, a int32, c int32", 2, ["b"]),
        (15, "id int32, a int32", 1, []),
    ):
        late = stream.row(columns, number=number)
        assert (late.schema.version, list(late.absent)) == (version, lacked)
        assert [schema.version for _, schema in stream.tables.find(stream.changes[-1])] == [version]
    edits = stream.tables.edits
    # A column that is not there later, another type, and a column that was there already.
    for columns in ("id int32, a int32, x int32", "id int32, a int32, b string", "id int32, b int32, c int32"):
        with pytest.raises(SchemaError, match="is not as in version 1, nor any other"):
            stream.row(columns, number=25)
    assert stream.tables.edits == edits
    # What comes behind all else is of the newest version, whatever came late.
    newest = stream.row("id int32, a int32, b int32", number=70)
    assert (newest.schema.version, list(newest.absent)) == (3, ["c", "e"])


def test_a_late_row_has_the_key_of_its_time():
    """The version behind it has another one."""
    stream = Stream(Source(format="debezium", db_type="mysql", database="d"))
    stream.row("id int32, a int32", number=10, key=("id",))
    stream.row("id int32, a int32, b int32, c int32", number=40, key=("a",))
    with pytest.raises(SchemaError):
        stream.row("id int32, a int32, b int32", number=20, key=("id",))


def test_a_late_row_has_the_columns_that_a_statement_added_before_it():
    """The statement says when they came."""
    stream = Stream()
    stream.ddl("CREATE TABLE t (id INT, a INT)", number=10)
    stream.ddl("ALTER TABLE t ADD b INT, ADD c INT", number=40)
    with pytest.raises(SchemaError):
        stream.row("id int, a int, b int", number=20)


def test_a_late_statement_begins_with_the_newest_version():
    """What is late to that is late."""
    stream = Stream()
    stream.ddl("CREATE TABLE t (id INT)")
    stream.ddl("ALTER TABLE t ADD a INT", number=30)
    stream.ddl("ALTER TABLE t ADD b INT", number=20)
    assert stream.row("id int", number=25).schema.version == 1
    with pytest.raises(SchemaError):
        stream.row("id int, x int", number=25)
    assert stream.row("id int, a int, b int", number=40).schema.version == 3


def test_a_change_that_is_late_in_its_partition_is_late():
    """Offsets compare, and lines of a file."""
    for places in (
        [Arrival(topic="x", partition=1, offset=i) for i in range(3)],
        [Arrival(file="f", line=i) for i in range(3)],
    ):
        tables = Tables()
        change = Change(op="INSERT", source=CANAL, columns=stated("id int"), after={"id": 1})
        tables.add(replace(change, place=places[1]))
        tables.add(replace(change, columns=stated("id int, a int"), place=places[2]))
        assert [one.schema.version for one in tables.add(replace(change, place=places[0]))] == [1]
        with pytest.raises(SchemaError):
            tables.add(replace(change, columns=stated("b int"), after={}, place=places[0]))


def test_a_row_of_a_full_load_belongs_to_the_time_when_it_was_read():
    """Loads are made again in the middle of a stream; none is older than the table."""
    stream = Stream()
    stream.ddl("CREATE TABLE t (id INT)")
    stream.ddl("CREATE TABLE t_new (id INT, a INT)")
    stream.ddl("RENAME TABLE t TO t_old, t_new TO t")
    made = stream.row(None, {"id": 1, "a": 2}, op="SNAPSHOT")
    assert (made.table.number, made.schema.version) == (1, 2)
    assert stream.tables.find(stream.changes[-1]) == [(made.table, made.schema)]
    assert read(made.payload, made.schema.envelope)["op"] == "r"


def test_changes_of_several_partitions_are_not_late_to_each_other():
    """Places in two partitions do not compare: new columns are new."""
    tables = Tables()
    for partition, columns in [(1, "id int"), (0, "id int, a int"), (1, "id int, a int, b int"), (0, "id int, c int")]:
        place = Arrival(topic="x", partition=partition, offset=len(columns))
        row = {one.name: 1 for one in stated(columns)}
        tables.add(Change(op="INSERT", source=CANAL, columns=stated(columns), after=row, place=place))
    assert len(tables.tables[0].versions) == 4


def test_changes_without_a_place_in_the_order_go_on_in_the_order_of_arrival():
    """But cannot be found again."""
    tables = Tables()
    row = Change(op="INSERT", source=CANAL, columns=stated("id int"), after={"id": 1})
    alter = Change(op="ALTER", source=CANAL, ddl="ALTER TABLE t ADD a INT")
    assert [one.schema.version for one in tables.add(row)] == [1]
    tables.add(alter)
    assert [one.schema.version for one in tables.add(replace(row, columns=stated("id int, a int")))] == [2]
    assert [one.schema.version for one in tables.add(row)] == [1]
    with pytest.raises(OrderError):
        tables.find(row)
    numbered = replace(row, position=(5,))
    placed = replace(row, place=Arrival(offset=1))
    for one in (numbered, placed, replace(numbered, columns=stated("id int, a int, b int"))):
        assert tables.add(one)


SCRIPT = (
    *("ALTER TABLE {t} ADD {new} INT", "ALTER TABLE {t} DROP {old}", "ALTER TABLE {t} RENAME COLUMN {old} TO {new}"),
    *(
        "ALTER TABLE {t} MODIFY {old} DATE",
        "ALTER TABLE {t} MODIFY {old} BIGINT",
        "ALTER TABLE {t} ALTER {old} SET DEFAULT 3",
    ),
    *("DROP TABLE {t}", "CREATE TABLE {t} ({new} INT, b BOOL)", "CREATE TABLE {u} LIKE {t}"),
    *(
        "RENAME TABLE {t} TO {u}",
        "RENAME TABLE {t} TO x, {u} TO {t}",
        "TRUNCATE TABLE {t}",
        "CREATE TABLE {t} ({new} INT)",
    ),
)


@given(st.integers(0, 2**63), st.sampled_from(["stated", "bare", "mixed"]), st.booleans())
@pytest.mark.slow
def test_every_change_is_found_again_where_it_was_added(seed, kind, is_placed):
    """In any order, when all was learned, and after a journey to another process."""
    rng = random.Random(seed)
    tables, found = Tables(), []
    for number in range(50):
        place = {"place": Arrival(offset=number)} if is_placed else {"position": (number,)}
        name = rng.choice(["t", "u"])
        source = replace(CANAL, table=name)
        if rng.random() < 0.4:
            text = rng.choice(SCRIPT).format(
                t=name, u="u" if name == "t" else "t", old=rng.choice("abc"), new=rng.choice("abc")
            )
            change = Change(op=KINDS[text.split()[0]], source=source, ddl=text, **place)
        else:
            known = [one for one in tables.tables if one.schema.table.table == name and not one.is_gone]
            columns = (
                tuple(Column(name=one.name, type=one.type) for one in known[-1].schema.columns)
                if known
                else stated("b int")
            )
            if rng.random() < 0.2:
                columns = stated(rng.choice(["a int", "a bigint, b int", "b tinyint(1)", "c date"]))
            row = dict.fromkeys(one.name for one in columns)
            is_stated = kind == "stated" or (kind == "mixed" and rng.random() < 0.5)
            change = Change(op="INSERT", source=source, columns=columns if is_stated else None, after=row, **place)
        try:
            made = tables.add(change)
        except CdcAvroError:
            continue
        found += [(change, [(one.table.number, one.schema.version) for one in made])] if made else []
    rng.shuffle(found)
    for known in (tables, pickle.loads(pickle.dumps(tables))):
        for change, where in found:
            again = known.write(change, known.find(change))
            assert [(one.table.number, one.schema.version) for one in again] == where
    for change, _ in found:
        for one in tables.write(change, tables.find(change)):
            assert read(one.payload, one.schema.envelope, one.table.schema.envelope)


# Hostile streams


@pytest.mark.slow
def test_a_table_has_a_bounded_number_of_versions(monkeypatch):
    """Different lists of columns for one table: an error for each beyond, and what came before goes on."""
    assert history.MAX_VERSIONS == 1_000
    monkeypatch.setattr(history, "MAX_VERSIONS", 100)
    stream = Stream()
    refused = 0
    for i in range(2_000):
        try:
            stream.row(f"id int, c{i} int")
        except SchemaError as error:
            refused += 1
            assert str(error) == "schema t: more than 100 versions"  # noqa: PT017
    assert refused == 1_900
    with pytest.raises(SchemaError, match="more than 100 versions"):
        stream.ddl("ALTER TABLE t ADD x INT")
    assert stream.row("id int, c7 int", number=71).schema.version == 8


@pytest.mark.parametrize(
    ("columns", "sentence"),
    [
        (tuple(Column(name=f"c{i}") for i in range(4_097)), "schema columns: more than 4096"),
        (stated("a int, b int, a int"), "schema columns: 'a' stands there twice"),
        (
            (Column(name="x" * 100_000),),
            f"message: $: expected a name of at most 255 characters, got '{'x' * 80}...' of 100000",
        ),
        ((Column(type="int"),), "schema columns: one has no name"),
    ],
)
def test_columns_that_no_table_has_are_refused(columns, sentence):
    """For a new table and for one that is known."""
    for is_known in (False, True):
        stream = Stream()
        if is_known:
            stream.row("id int")
        with pytest.raises(CdcAvroError) as caught:
            stream.tables.add(Change(op="INSERT", source=CANAL, columns=columns, after={}, position=(99,)))
        assert str(caught.value) == sentence
        assert len(stream.tables.tables) == is_known
        assert stream.row("id int").schema.version == 1


@pytest.mark.parametrize("name", ["../../etc", "string", "null", "日" * 64, "a`b"])
def test_a_table_of_any_name_is_a_table(name):
    """Rows, statements, and what it is called."""
    stream = Stream()
    made = stream.row("id int", table=name)
    assert made.table.schema.table.table == name
    assert read_row(read_bytes(made), made.schema) == {"id": 1}
    quoted = name.replace("`", "``")
    stream.ddl(f"ALTER TABLE `{quoted}` ADD x INT", table=name)
    assert stream.row("id int, x int", table=name).schema.version == 2


def read_bytes(made: Any) -> bytes:
    """Return the row after, as its own payload."""
    after = read(made.payload, made.schema.envelope)["after"]
    assert after["id"] == 1
    return b"\x02\x02\x00\x00"


def test_all_tables_take_a_bounded_number_of_bytes(monkeypatch):
    """Together: a table more is an error that changes nothing, and rows of those that there are go on."""
    stream = Stream()
    stream.row("id int")
    room = stream.tables.tables[0].room
    monkeypatch.setattr(room, "left", 3 * (MAX_KEPT - room.left) + 300)
    refused = []
    for i in range(6):
        try:
            stream.row("id int", table=f"t{i}")
        except SchemaError as error:
            refused.append(str(error))
    expected = "all tables and their versions take more than 268435456 bytes"
    assert refused == [f"schema t{i}: {expected}" for i in (3, 4, 5)]
    assert len(stream.tables.tables) == 4
    assert stream.row("id int").schema.version == 1


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["tables", "columns", "creates", "statements"])
def test_what_a_stream_takes_is_what_is_counted(kind):
    """Ever-new tables, columns and statements: each takes about what it is charged with, so the bound of bytes holds."""
    grown, charged = stream_trial.measured(stream_trial.growth, kind)
    assert grown < 1.5 * charged + 300_000


def test_a_table_of_a_name_that_is_too_long_is_refused():
    """Before there is a table."""
    stream = Stream()
    with pytest.raises(StructureError, match="expected a name of at most 255 characters"):
        stream.row("id int", table="x" * 100_000)
    assert stream.tables.tables == []


def test_what_becomes_of_a_misfit_is_one_of_three():
    """Kept as text and counted, or an error for the caller."""
    for policy in ("error", "reject"):
        with pytest.raises(StructureError):
            Stream(on_misfit=policy).row("id int", {"id": "x"})
    stream = Stream()
    made = stream.row("id int", {"id": "x"})
    assert read(made.payload, made.schema.envelope)["after"]["unparsed"] == {"id": "x"}
    assert stream.tables.misfits == {0: {"id": 1}}
    with pytest.raises(ValueError, match="on_misfit is one of keep, error, reject, not 'drop'"):
        Tables(on_misfit="drop")


# Rows that name no table, and operations that nobody knows

ROWS = {
    "oms_default": '{"prevStruct":null,"postStruct":{"id":1},"allMetaData":{"table_name":%s},"recordType":"%s"}',
    "oms_canal": '{"data":[{"id":1}],"table":%s,"type":"%s"}',
    "canal": '{"data":[{"id":"1"}],"table":%s,"type":"%s","id":1}',
    "oms_dataworks": '{"version":"2.0","schema":{"source":{"table":%s}},"payload":{"after":{"data":{"id":1}},"op":"%s"}}',
    "oms_shareplex": '{"data":{"id":1},"meta":{"table":%s,"op":"%s"}}',
    "datahub_blob": '{"schema":{"source":{"tableName":%s}},"payload":{"after":{"dataColumn":{"id":1}},"op":"%s"}}',
    "datahub_tuple": '{"id":1,"_source_table_":%s,"_operation_type_":"%s","_before_image_":"N","_after_image_":"Y"}',
    "debezium": '{"before":null,"after":{"id":1},"source":{"table":%s},"op":"%s"}',
}
ROWS["oms_default_extend_column_type"] = ROWS["oms_default"].replace(
    '"id":1', '"id":1,"__light_type":{"id":{"schemaType":"INT"}}'
)
INSERTS = {"oms_shareplex": "ins", "datahub_tuple": "I", "debezium": "c"}
BY_FORMAT = pytest.mark.parametrize("format", sorted(ROWS))


def typed(format: str, message: str, **options: Any) -> list[Any]:
    """Return what tables make of a message."""
    tables = Tables(**options)
    return [one for change in to_changes(message, format) for one in tables.add(change)]


def inserting(format: str, table: str = '"t"', op: str = "") -> str:
    """Return an insert of a format."""
    return ROWS[format] % (table, op or INSERTS.get(format, "INSERT"))


@BY_FORMAT
def test_an_operation_means_the_same_in_any_case(format):
    """As no document means something else by it."""
    op = INSERTS.get(format, "INSERT")
    for spelled in (op, op.swapcase(), op.capitalize()):
        (one,) = typed(format, inserting(format, op=spelled))
        assert (one.change.op, one.change.operation) == ("INSERT", spelled)
        assert read(one.payload, one.schema.envelope)["after"]["id"] in (1, "1")


@BY_FORMAT
@pytest.mark.parametrize("op", ["INIT", "ROW", "init"])
def test_init_and_row_are_rows_of_a_full_load(format, op):
    """Flink and Paimon write them."""
    (one,) = typed(format, inserting(format, op=op))
    assert one.change.op == "SNAPSHOT"
    assert read(one.payload, one.schema.envelope)["op"] == "r"


@BY_FORMAT
@pytest.mark.parametrize("op", ["MERGE", "ınıt", "", "OTHER"])
def test_a_row_with_an_operation_that_nobody_knows_is_an_error(format, op):
    """It is not passed over; a dotless i is no I."""
    with pytest.raises(StructureError) as caught:
        typed(format, inserting(format, op="?").replace('"?"', f'"{op}"'))
    expected = "an operation on a row that is known, because the message holds a row"
    assert str(caught.value) == f"{format}: $: expected {expected}, got {op or 'none'!r}"


@BY_FORMAT
@pytest.mark.parametrize("name", ["null", '""'])
def test_a_row_that_names_no_table_is_an_error_or_of_the_given_one(format, name):
    """What the message does say is kept."""
    with pytest.raises(StructureError) as caught:
        typed(format, inserting(format, name))
    expected = "a message that names its table, or a table given for those that do not (--table)"
    assert str(caught.value) == f"{format}: $: expected {expected}, got none"
    (one,) = typed(format, inserting(format, name), table='shop."my.orders"')
    assert (one.table.schema.table.database, one.table.schema.table.table) == ("shop", "my.orders")
    source = read(one.payload, one.schema.envelope)["source"]
    assert (source["db"], source["table"]) == ("shop", "my.orders")
    (one,) = typed(format, inserting(format), table="other.one")
    assert one.table.schema.table.table == "t"


def test_a_statement_with_a_row_is_an_error():
    """The row would be lost."""
    message = (
        '{"type":"ALTER","sql":"ALTER TABLE t ADD x INT","isDdl":true,"database":"d","table":"t","data":[{"a":1}]}'
    )
    with pytest.raises(StructureError, match="because the message holds a row, got 'ALTER'"):
        typed("oms_canal", message)


@pytest.mark.parametrize(
    ("format", "message"),
    [
        ("oms_canal", '{"type":"INSERT","table":"t","data":null}'),
        ("oms_canal", '{"type":"INSERT","table":"t","data":[{"id":1},null]}'),
        ("debezium", '{"key":{"id":7},"value":{"op":"d","before":null,"source":{"table":"t"}}}'),
    ],
)
def test_a_change_of_a_row_without_a_row_is_an_error(format, message):
    """Nothing says which row was changed, and no table is made of it."""
    tables = Tables()
    *_, change = to_changes(message, format)
    for refuses in (tables.add, tables.find):
        with pytest.raises(StructureError, match="expected a row before or after the change, got none"):
            refuses(change)
    assert tables.tables == []


def test_a_row_without_an_operation_is_an_error_in_debezium():
    """Neither a heartbeat nor a mark has a row."""
    for message in (
        '{"after":{"id":1},"ts_ms":1}',
        '{"before":{"id":1},"status":"BEGIN","id":"7"}',
        '{"after":{},"ddl":""}',
    ):
        with pytest.raises(StructureError, match="because the message holds a row, got 'none'"):
            typed("debezium", message)


def test_a_truncate_of_no_table_is_an_error_or_of_the_given_one():
    """It would empty a table that nobody knows."""
    with pytest.raises(StructureError, match="expected a message that names its table"):
        typed("debezium", '{"op":"t","source":{}}')
    stream = Stream(replace(CANAL, database=None), table="shop.t")
    stream.row("id int", table=None)
    (emptied,) = [stream._add("TRUNCATE", None, table=None)]
    assert (emptied.change.op, emptied.table.schema.table.table) == ("TRUNCATE", "t")


CONNECT_ROWS = {
    "type": "struct",
    "optional": True,
    "fields": [{"type": "int32", "field": "id"}, {"type": "int32", "field": "n"}, {"type": "int32", "field": "m"}],
}


def in_connect(op: str, at: int, names: str) -> Change:
    """Return a change of Debezium's with the schema of its rows, which have some of the columns id, n and m."""
    rows = CONNECT_ROWS | {"fields": [one for one in CONNECT_ROWS["fields"] if one["field"] in names.split()]}
    after = None if op == "t" else dict.fromkeys(names.split(), 1)
    source = {"connector": "postgresql", "db": "d", "schema": "p", "table": "t", "lsn": at}
    value = {
        "schema": {"type": "struct", "fields": [rows | {"field": "before"}, rows | {"field": "after"}]},
        "payload": {"before": None, "after": after, "source": source, "op": op},
    }
    (change,) = to_changes(json.dumps({"key": None if op == "t" else {"id": 1}, "value": value}), "debezium")
    return change


def test_a_truncate_of_debezium_states_no_key():
    """Its record has none, whatever the table's is, which a TRUNCATE with other columns than before would have lost."""
    tables = Tables()
    for change in (in_connect("c", 1, "id n m"), in_connect("t", 2, "id n"), in_connect("c", 3, "id n")):
        tables.add(change)
    (table,) = tables.tables
    assert [(one.key_names, one.names) for one in table.versions] == [
        (("id",), {"id", "n", "m"}),
        (("id",), {"id", "n"}),
    ]


def test_a_row_without_a_key_takes_none_away():
    """A record whose producer left the key out may be the first with a new column; it is a row of the table as others are."""
    tables = Tables()
    tables.add(in_connect("c", 1, "id n"))
    (keyless,) = tables.add(replace(in_connect("c", 2, "id n m"), key=()))
    (keyed,) = tables.add(in_connect("c", 3, "id n m"))
    assert keyless.schema.version == keyed.schema.version == 2
    assert keyless.key == keyed.key is not None
    assert [one.key_names for one in tables.tables[0].versions] == [("id",), ("id",)]


def test_a_truncate_before_all_rows_of_its_table_begins_no_table():
    """It would be one without a key, whose rows have a changelog only."""
    tables = Tables()
    assert tables.add(in_connect("t", 1, "id n")) == []
    tables.add(in_connect("c", 2, "id n"))
    assert [[one.key_names for one in table.versions] for table in tables.tables] == [[("id",)]]


def test_a_statement_that_names_no_database_is_about_that_of_the_given_table():
    """As the rows around it are."""
    stream = Stream(replace(CANAL, database=None), table="shop.t")
    stream.row("id int", table=None)
    stream.ddl("ALTER TABLE t ADD x INT", table=None)
    assert stream.row("id int, x int", table=None).schema.version == 2
    assert stream.versions == ["t: id | t: id x"]


def test_a_row_is_of_the_table_that_its_topic_names_if_that_is_asked_for():
    """No topic is taken for a table unasked: one topic may carry many tables."""
    change = Change(
        op="INSERT", source=Source(format="canal"), after={"id": 1}, place=Arrival(topic="a.b"), position=(1,)
    )
    for options, found in (
        ({"table": "@topic"}, (None, "a.b")),
        ({"table": '"@topic"'}, (None, "@topic")),
        ({"table": "d.t"}, ("d", "t")),
    ):
        (one,) = Tables(**options).add(change)
        assert (one.table.schema.table.database, one.table.schema.table.table) == found
    with pytest.raises(StructureError):
        Tables().add(change)
    with pytest.raises(StructureError):
        Tables(table="@topic").add(replace(change, place=None))


@pytest.mark.parametrize(
    ("given", "topic", "found"),
    [
        ("@topic.database.table", "prefix.shop.orders", TableName("shop", None, "orders")),
        ("@topic.schema.table", "some.prefix.public.orders", TableName(None, "public", "orders")),
        ("@topic.database.schema.table", "p.d.s.t", TableName("d", "s", "t")),
        ("@topic.table", "p.d.t", TableName(None, None, "t")),
        ("@topic.table", "t", TableName(None, None, "t")),
        ("@topic.database.table", "orders", None),
        ("@topic.database.table", "p..t", None),
        ("@topic.database.table", "", None),
    ],
)
def test_a_row_is_of_the_table_that_the_last_parts_of_its_topic_name(given, topic, found):
    """As Debezium names topics; one of too few parts names none."""
    change = Change(
        op="INSERT", source=Source(format="debezium_flat"), after={"id": 1}, place=Arrival(topic=topic), position=()
    )
    tables = Tables(table=given)
    if found is None:
        with pytest.raises(StructureError):
            tables.add(change)
    else:
        (one,) = tables.add(change)
        assert one.table.schema.table == found
    named = replace(change, source=Source(format="debezium_flat", table="x"))
    assert tables.add(named)[0].table.schema.table == TableName(None, None, "x")


@pytest.mark.parametrize("given", ["@topic.", "@topic.x", "@topic.table.database", "@topic.schema.database.table"])
def test_parts_of_a_topic_end_in_the_table_and_are_in_order(given):
    """Any other text is no table."""
    with pytest.raises(ValueError, match="the last parts of a topic"):
        Tables(table=given)


def test_what_begins_like_a_topic_is_no_table_unless_it_is_quoted():
    """A slip of the pen is not the name of a table."""
    for text in ("@topics", "@topics.database.table"):
        with pytest.raises(ValueError, match=f"@topic, or a name in quotes that begins so, not '{text}'"):
            Tables(table=text)
    assert Tables(table='"@topics"').given_table.name == TableName(None, None, "@topics")


def test_tables_with_a_given_table_go_to_another_process():
    """Whatever was given goes along."""
    tables = pickle.loads(pickle.dumps(Tables(table="d.t")))
    (one,) = tables.add(Change(op="INSERT", after={"id": 1}, position=(1,)))
    assert one.table.schema.full_name == "d.t"


def test_find_refuses_what_add_refuses():
    """On Spark it is asked for each change."""
    for change in (
        Change(op="OTHER", after={}),
        Change(op="DELETE", before={}),
        Change(op="ALTER", ddl="x", before={}),
    ):
        with pytest.raises(StructureError):
            Tables().find(change)


def test_where_no_room_is_left_nothing_is_made_of_what_is_refused(monkeypatch):
    """A version that could not be kept takes no work: a stream of those beyond the bound goes on as fast as others."""
    stream = Stream()
    stream.row("id int")
    stream.ddl("CREATE TABLE u (id INT)")
    monkeypatch.setattr(stream.tables.tables[0].room, "left", 500)
    made = []
    monkeypatch.setattr(table_schema, "parse_schema", lambda text: made.append(text) or parse_schema(text))
    rows = [lambda i=i: stream.row(f"id int, c{i} int", table=f"t{i}" if i % 2 else "t") for i in range(20)]
    texts = [f"ALTER TABLE t ADD a{i} INT" for i in range(10)] + [f"CREATE TABLE v{i} (id INT)" for i in range(10)]
    texts += [f"RENAME TABLE u TO u{i}" for i in range(10)]
    for refused in [*rows, *[lambda text=text: stream.ddl(text) for text in texts]]:
        with pytest.raises(SchemaError, match="all tables and their versions take more than 268435456 bytes"):
            refused()
    assert made == []
    assert stream.row("id int").schema.version == 1


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["misfits", "columns"])
def test_counts_of_misfits_and_columns_without_a_statement_are_counted(monkeypatch, kind):
    """What is kept beside the versions takes of the same room, byte for byte."""
    made, _, _ = stream_trial.followed(kind, 300)
    room = made._room
    kept = sum(one.size for table in made.tables for one in table.versions)
    kept += sum(table.unexplained.size for table in made.tables)
    names = [name for counts in made.misfits.values() for name in counts]
    kept += sum(150 + sys.getsizeof(name) for name in names)
    assert bool(names) == (kind == "misfits")
    assert MAX_KEPT - room.left >= kept + 2_000 * len(made.tables)


def test_misfits_beyond_the_room_are_counted_together(monkeypatch):
    """Without it the counts of ever-new columns would grow with the stream; no row is refused for that."""
    stream = Stream()
    stream.row("a int, b int, c int", {"a": "x"})
    monkeypatch.setattr(stream.tables.tables[0].room, "left", 250)
    for _ in range(3):
        stream.row("a int, b int, c int", {"a": "x", "b": "x", "c": "x"})
    assert stream.tables.misfits == {0: {"a": 4, "b": 3, "other columns": 3}}
    assert stream.tables.tables[0].room.left == 250 - 150 - sys.getsizeof("b")


@pytest.mark.slow
def test_a_version_costs_little_more_where_there_are_many():
    """A list of columns that are ever new: what came and went before is not gone through again for each."""
    typer, counted = MessageTyper("canal", Tables()), {}
    for i in range(601):
        message = stream_trial.row(i, "t", ["id", f"c{i}"])
        if i in (100, 600):
            counted[i] = calls(lambda message=message: typer.add(message))
        else:
            typer.add(message)
    assert counted[600] < 1.4 * counted[100]
    (table,) = typer._tables.tables
    again = UnexplainedColumns()
    again.added, again.dropped = table.unexplained.added, table.unexplained.dropped
    assert len(again.dropped) == 600
    assert again.size == table.unexplained.size


# What a statement does, its text says


STATEMENTS = ["QUERY", "ALTER", "CREATE", "ERASE", "RENAME", "CINDEX", "DINDEX", "TRUNCATE"]


def emptied_by(ddl: str, kind: str) -> list[tuple[str | None, int]]:
    """Return the name and the number of each table, of t and u, that a statement empties, both ways of reading."""
    made = []
    for is_learned_first in (False, True):
        stream = CanalFile()
        for name in ("t", "u"):
            stream.row("id int", table=name)
        change = Change(op=kind, ddl=ddl, source=CANAL, **stream._order(50))
        if is_learned_first:
            stream.tables.learn(change)
        typed = write_change(stream.tables, change) if is_learned_first else stream.tables.add(change)
        assert all(read(one.payload, one.schema.envelope)["op"] == OPERATIONS[one.change.op] == "t" for one in typed)
        made.append([(one.change.source.table, one.table.number) for one in typed])
    assert made[0] == made[1]
    return made[0]


@pytest.mark.parametrize("kind", STATEMENTS)
@pytest.mark.parametrize(
    ("ddl", "emptied"),
    [
        ("TRUNCATE TABLE t", [("t", 0)]),
        ("truncate t", [("t", 0)]),
        ("/* by hand */ TRUNCATE TABLE shop.u; TRUNCATE t", [("u", 1), ("t", 0)]),
        ("/*!50000 TRUNCATE TABLE t */", [("t", 0)]),
        ("-- all\nTRUNCATE TABLE t", [("t", 0)]),
        ("ALTER TABLE t ADD k INT; TRUNCATE TABLE t", [("t", 0)]),
        ("TRUNCATE TABLE t; ALTER TABLE t ADD k INT", [("t", 0)]),
        ("RENAME TABLE t TO v; TRUNCATE TABLE v", [("v", 0)]),
        ("TRUNCATE TABLE t; RENAME TABLE t TO v", [("v", 0)]),
        ("TRUNCATE TABLE t; ALTER TABLE t RENAME TO v", [("v", 0)]),
        ("TRUNCATE TABLE t; DROP TABLE t", []),
        ("CREATE TABLE w (id INT); TRUNCATE TABLE u", [("u", 1)]),
        ("TRUNCATE TABLE `T`", [("t", 0)]),
        ("TRUNCATE TABLE nothing", []),
        ("ALTER TABLE t ADD truncate_me INT COMMENT 'TRUNCATE TABLE t'", []),
        ("DROP TABLE t", []),
    ],
)
def test_a_statement_empties_what_its_text_says_whatever_it_is_called(kind, ddl, emptied):
    """Canal calls a statement QUERY that it does not know, and by its first words one that has several."""
    assert emptied_by(ddl, kind) == emptied


@pytest.mark.parametrize("word", ["DDL", "TRUNCATE_TABLE", "..."])
@pytest.mark.parametrize(
    ("format", "message"),
    [
        ("canal", '{"type":"%s","isDdl":true,"sql":"%s","database":"d","table":"t","es":5,"id":5}'),
        ("oms_canal", '{"type":"%s","isDdl":true,"sql":"%s","database":"d","table":"t","es":5}'),
        (
            "oms_dataworks",
            (
                '{"version":"2.0","schema":{"source":{"dbType":"MySQL","dbName":"d","table":"t"}},'
                '"payload":{"op":"%s","scn":"5","timestamp":{"eventTime":5},"ddl":{"text":"%s"}}}'
            ),
        ),
        (
            "datahub_blob",
            (
                '{"schema":{"source":{"dbType":"MySQL","dbName":"d","tableName":"t"}},'
                '"payload":{"op":"%s","sequenceId":"5","timestamp":{"eventTime":5},"ddl":{"text":"%s"}},"version":"0.0.1"}'
            ),
        ),
    ],
)
def test_a_statement_of_a_kind_that_is_not_known_does_what_its_text_says(format, message, word):
    """It empties, drops and alters, is refused if it is not understood, and goes back as it came."""
    tables, source = Tables(), Source(format=format, database="d", table="t")
    tables.add(Change(op="INSERT", after={"id": 1}, columns=(Column(name="id", type="int"),), source=source))
    for ddl, op in (("ALTER TABLE t ADD k INT", "ALTER"), ("truncate t", "TRUNCATE"), ("DROP TABLE t", "ERASE")):
        text = message % (word, ddl)
        (change,) = to_changes(text, format)
        assert (change.op, change.operation) == (op, word)
        assert [made.change.op for made in tables.add(change)] == ["TRUNCATE"] * (op == "TRUNCATE")
        (back,) = from_changes([change], format)
        assert to_changes(back, format) == [change]
    assert [column.name for column in tables.tables[0].schema.columns] == ["id", "k"]
    assert tables.tables[0].is_gone
    with pytest.raises(DdlError):
        tables.add(to_changes(message % (word, "EMPTY t"), format)[0])


def test_a_statement_that_is_called_a_truncate_may_do_something_else():
    """Its text is followed."""
    stream = Stream()
    stream.row("id int", table="t")
    assert stream._add("TRUNCATE", None, table="t", ddl="ALTER TABLE t ADD k INT", columns=None) == []
    assert [column.name for column in stream.tables.tables[0].schema.columns] == ["id", "k"]


def test_a_text_in_no_known_dialect_empties_nothing_unless_it_is_called_so():
    """Which columns it leads to is stated beside it."""
    change = Change(op="ALTER", ddl="TRUNCATE TABLE t", source=Source(db_type="sqlserver", table="t"), columns=())
    assert not empties(change)


@pytest.mark.parametrize(
    ("ddl", "db_type"),
    [
        ("ALTER TABLE t TRUNCATE PARTITION p0, p1", None),
        ("ALTER TABLE t DROP PARTITION p0", None),
        ("ALTER TABLE t EXCHANGE PARTITION p0 WITH TABLE v", None),
        ("ALTER TABLE t DROP SUBPARTITION p0", "OB_ORACLE"),
        ("ALTER TABLE t TRUNCATE PARTITION p0 UPDATE INDEXES", "OB_ORACLE"),
        ("ALTER TABLE t DETACH PARTITION p", "postgresql"),
    ],
)
def test_rows_that_go_with_their_partition_are_said_to_stay(ddl, db_type):
    """No change tells which they are."""
    stream = Stream(replace(CANAL, db_type=db_type))
    name = "T" if db_type == "OB_ORACLE" else "t"
    stream.row("id int", table=name)
    stream._add("ALTER", None, table=name, ddl=ddl, columns=None)
    (finding,) = stream.tables.tables[0].findings
    assert finding == f"its source removed rows by their partition, which stay here: {ddl!r}"


@pytest.mark.parametrize("is_late", [False, True])
def test_rows_that_stand_have_the_zero_of_a_column_that_is_added_not_null(*, is_late: bool):
    """Whether the statement comes before the first rows with the column or behind them; a CREATE fills no rows."""
    stream = Stream()
    stream.row("id int", {"id": 1})
    steps = [
        lambda: stream.ddl("ALTER TABLE t ADD q INT NOT NULL"),
        lambda: stream.row("id int, q int", {"id": 2, "q": 5}),
    ]
    for step in reversed(steps) if is_late else steps:
        step()
    (table,) = stream.tables.tables
    old = parse_schema(table.versions[0].row.json)
    assert read(b"\2\2\0\0", old, table.schema.row)["q"] == 0
    created = Stream()
    created.row("id int", {"id": 1})
    created.row("id int, q int", {"id": 2, "q": 5})
    created.ddl("CREATE TABLE t (id INT NOT NULL, q INT NOT NULL)", number=5)
    assert read(b"\2\2\0\0", old, created.tables.tables[0].schema.row)["q"] is None
