"""Names of tables and columns as names of Avro: no two become one, and each comes back."""

from __future__ import annotations

import re
from itertools import product

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from cdcavro.avro.types import PRIMITIVES
from cdcavro.change.model import Source
from cdcavro.errors import StructureError
from cdcavro.table.ddl.steps import TableName
from cdcavro.table.evolution.evolve import evolve
from cdcavro.table.table_names import (
    NameAllocator,
    is_copy_of,
    mangle,
    namespace_of,
    parse_table_name,
    table_name_of,
    unmangle,
)
from support.typed import read_row, table, write

JAVA_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
HOSTILE = [
    *("we ird-tab.le", "日本", "1st", "a.b", "", "_", "__", "_x", "_x_", "_x_2", "a_x_2", "_x41_", "a_x41_b", "x41_"),
    *("_x5f_x41_", "ID", "id", "Id", "İ", "ı", "K", "k", "ß", "é", "e\u0301", "😀", "\n", "\0", "a\nb", "../../etc"),
    *("unparsed", "absent", "Unparsed", "日" * 64, "x" * 255, "_xfffff_", "_x10ffff_", "_x110000_", "'", '"', "`"),
    *sorted(PRIMITIVES),
    *("record", "enum", "array", "map", "union", "fixed", "String", "NULL"),
]
names = st.text(alphabet="_xX0129abfAB日. ", max_size=8) | st.text(max_size=6) | st.sampled_from(HOSTILE)


@example(HOSTILE)
@given(st.lists(names, unique=True, max_size=12))
def test_no_two_names_of_a_table_become_one_in_capitals_or_not(listed):
    """Avro tells capitals apart, Spark does not."""
    taken = NameAllocator()
    made = [taken.give(one) for one in listed]
    assert len({one.lower() for one in made}) == len(listed)
    assert all(JAVA_NAME.fullmatch(one) and one not in PRIMITIVES for one in made)


@example("_x_")
@example("_x10ffff_")
@given(names)
def test_a_name_comes_back(name):
    """Also one that looks like a name which was written in groups."""
    assert unmangle(mangle(name)) == name


def test_every_hostile_name_comes_back():
    """Each of the list, and any two of them joined."""
    for one, other in product(HOSTILE, HOSTILE):
        name = (one + other)[:255]
        assert unmangle(mangle(name)) == name
        assert JAVA_NAME.fullmatch(mangle(name))


def test_names_that_differ_in_capitals_differ_without_them():
    """The second is written in groups; a third has a number."""
    taken = NameAllocator()
    assert [taken.give(one) for one in ("id", "ID", "Id", "iD", "id", "id")] == [
        "id",
        "_x49__x44_",
        "_x49__x64_",
        "_x69__x44_",
        "id_x_2",
        "id_x_3",
    ]


def test_a_name_may_be_had_again_by_whom_it_belongs_to():
    """Whatever he had; nobody else may have it meanwhile or after."""
    taken = NameAllocator(["a", "b", "other"])
    assert taken.give("A", own=["a", "b"]) == "A"
    assert taken.give("b", own=["A", "a", "b"]) == "b"
    assert [taken.give(one) for one in ("a", "B", "Other")] == ["a_x_2", "_x42_", "_x4f__x74__x68__x65__x72_"]


@pytest.mark.parametrize("name", sorted(PRIMITIVES | {"record", "enum", "array", "map", "union", "fixed"}))
def test_words_of_avro_are_never_names(name):
    """Some readers take a record named `string` for the type."""
    assert mangle(name) == f"_x{ord(name[0]):x}_{name[1:]}"


@pytest.mark.parametrize("length", [256, 100_000])
def test_a_name_of_more_than_255_characters_is_refused(length):
    """No database has one."""
    with pytest.raises(StructureError) as caught:
        mangle("日" * length)
    assert (
        str(caught.value) == f"message: $: expected a name of at most 255 characters, got '{'日' * 80}...' of {length}"
    )


def test_a_table_with_hostile_columns_is_read_by_fastavro_under_their_true_names():
    """All in one table, `unparsed` and `absent` among them."""
    listed = [one for one in HOSTILE if one]
    schema = table(*(f"{one}|int" for one in listed), key=("日本", "a.b"))
    assert [one.name for one in schema.columns] == listed
    row = {name: i for i, name in enumerate(listed)}
    assert read_row(write(schema, row), schema) == row
    assert schema.key is not None
    assert [one["cdc"]["column"] for one in schema.record["fields"] if "cdc" in one] == listed


@pytest.mark.parametrize(
    "name", ["string", "null", "we ird-tab.le", "日本", "1st", "a.b", "../../etc", "Value", "Envelope"]
)
def test_a_table_of_a_hostile_name_has_a_namespace_of_its_own(name):
    """Its schemas parse, and say the true name."""
    schema = table("id|int", key=("id",), name=name)
    assert all(JAVA_NAME.fullmatch(one) for one in schema.full_name.split("."))
    assert schema.table == TableName("shop", None, name)
    for one in (schema.row, schema.envelope, schema.key):
        assert one.root.name.startswith(f"{schema.full_name}.")
    assert evolve(schema, f"RENAME TABLE `{name}` TO t2").schema.table.table == "t2"


@given(st.lists(st.tuples(*[st.none() | st.sampled_from(["a", "b", "a.b", "", "_x_0", "_x_"])] * 2), unique=True))
def test_no_two_tables_have_one_namespace(pairs):
    """What is missing is told from what is there, and from an empty name."""
    tables = [TableName(database, schema, "t") for database, schema in pairs]
    assert len({namespace_of(one) for one in tables}) == len(tables)
    assert namespace_of(TableName(None, "a", "b")) != namespace_of(TableName("a", None, "b"))


def test_tables_of_two_tenants_are_two():
    """On OceanBase a tenant stands before the database, or before none."""
    made = [
        table_name_of(Source(tenant=tenant, database=database, schema=schema, table="t"))
        for tenant, database, schema in product([None, "t1", "t2"], [None, "shop"], [None, "s"])
    ]
    assert len({namespace_of(one) for one in made}) == len(made)
    assert table_name_of(Source(tenant="t1")) is None


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("orders", (None, None, "orders")),
        ("shop.orders", ("shop", None, "orders")),
        ("shop.public.orders", ("shop", "public", "orders")),
        (".public.orders", (None, "public", "orders")),
        ("..orders", (None, None, "orders")),
        ('"a.b".`c``d`."e""f"', ("a.b", "c`d", 'e"f')),
        ("we ird-tab le.日本", ("we ird-tab le", None, "日本")),
    ],
)
def test_a_table_is_spelled_with_its_database_and_schema(text, parts):
    """A part with a dot stands in quotes."""
    assert parse_table_name(text) == TableName(*parts)


@pytest.mark.parametrize("text", ["", "a.", "a.b.", "a.b.c.d", 'a"b', '"a', '""', "`a`b", "a..."])
def test_another_spelling_of_a_table_is_refused(text):
    """It would be another table."""
    with pytest.raises(
        ValueError, match=r"^a table is spelled table, database\.table or database\.schema\.table, not "
    ):
        parse_table_name(text)


@pytest.mark.parametrize(
    ("copy", "own", "is_copy"),
    [
        ("shop._t_gho", "shop.t", True),
        ("shop._t_new", "shop.t", True),
        ("shop.___t_new", "shop.t", True),
        ("shop.__t_gho", "shop._t", True),
        ("SHOP._T_gho", "shop.t", True),
        (f"shop._{'t' * 59}_gho", f"shop.{'t' * 64}", True),
        (f"shop._{'語' * 20}_gho", f"shop.{'語' * 21}", True),
        ("shop.t_new", "shop.t", False),
        ("shop._t_gho", "shop.tt", False),
        ("shop._t_gho", "other.t", False),
        ("shop._t_del", "shop.t", False),
        ("shop.__gho", "shop.t", False),
        (f"shop.{'_' * 11}t_new", "shop.t", False),
        ("shop._t_gho_x", "shop.t", False),
    ],
)
def test_copies_of_tables_have_the_names_that_tools_give_them(copy, own, is_copy):
    """gh-ost and pt-online-schema-change; a name that is too long for a suffix is cut off."""
    assert is_copy_of(parse_table_name(copy), parse_table_name(own)) == is_copy
