"""Names in a lake: quote, and escaped so that two names never become one."""

from __future__ import annotations

import re
import unicodedata

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from cdcavro.errors import SchemaError
from cdcavro.lake.escaped_names import (
    check_name_template,
    check_topic_template,
    column_names,
    folder_names,
    name_by_template,
    plain_names,
    quote,
    topic_name,
)
from cdcavro.lake.sql_statements import literal
from cdcavro.table import TableName
from support.names import FORMS, HOSTILE, names, paths, tables


@given(st.lists(names, unique=True, max_size=8))
def test_no_two_columns_have_one_name(columns: list[str]):
    """Not even where upper and lower case are the same; and none has a name of the project's own."""
    for is_plain in (False, True):
        found = column_names(columns, is_plain=is_plain)
        assert len({name.casefold() for name in found}) == len(columns)
        assert not any(name.casefold().startswith("_cdc_") or name == "" for name in found)
    assert not any(set(name) & set(" ,;{}()=\n\t") for name in found)


def test_all_hostile_names_together_stay_apart():
    """In one table, in any order."""
    odd = [*HOSTILE, "a{b", "A{b", "a~7b~b", "a{B", "a~7B~b"]
    for listed in (odd, odd[::-1]):
        for is_plain in (False, True):
            assert len({name.casefold() for name in column_names(listed, is_plain=is_plain)}) == len(odd)


@pytest.mark.parametrize(
    "name", ["id", "Col Name", "日本", "a.b", "$x", "1st", "we`ird", "a;b", "amount (until version 4)"]
)
def test_columns_have_their_true_names_wherever_that_is_possible(name: str):
    """SQL quotes them."""
    assert column_names([name]) == [name]


@pytest.mark.parametrize(
    ("name", "expected"),
    [("Col", "Col"), ("a b", "a~20~b"), ("${x}", "$~7b~x~7d~"), ("_cdc_a=b;", "~5f~cdc_a~3d~b~3b~")],
)
def test_plain_names_have_nothing_for_which_delta_lake_maps_columns(name: str, expected: str):
    """All other characters stay."""
    assert column_names([name], is_plain=True) == [expected]


@pytest.mark.parametrize(("one", "other"), [("~2/", "\x022f~"), ("~2.", "\x022e~"), ("~/", "~~2f~")])
def test_a_tilde_before_what_is_escaped_is_no_code(one: str, other: str):
    """The escape would complete it."""
    assert folder_names(TableName(None, None, one)) != folder_names(TableName(None, None, other))
    assert column_names(["~2\0", "\x020~"])[0] != column_names(["\x020~"])[0]


@pytest.mark.slow
@settings(max_examples=400)
@given(tables, tables)
@example(TableName("shop", None, "orders"), TableName("shop", "orders", "x"))
@example(TableName(None, None, "shop"), TableName("shop", None, "orders"))
@example(TableName("a", None, "o~~deletes"), TableName("a", None, "o~7e"))
@example(TableName(None, "a", "b"), TableName("", "a", "b"))
@example(TableName(None, "a", "b"), TableName(None, None, "a"))
def test_no_lake_table_is_in_the_folder_of_another(one: TableName, other: TableName):
    """Nor around it, under any normal form of Unicode; not those of deletes and changes either."""
    for first in paths(one):
        for second in paths(other):
            if one == other and first == second:
                continue
            for form in FORMS:
                folders = [[unicodedata.normalize(form, part) for part in path] for path in (first, second)]
                assert not all(mine == its for mine, its in zip(*folders, strict=False))


@given(tables)
def test_a_folder_is_never_above_or_beside_the_lake(table: TableName):
    """No name leads out of it, hides, has a meaning in an address, or looks like another."""
    for folder in folder_names(table):
        assert folder not in ("", ".", "..")
        assert not set(folder) & set('/\\:*?"<>|%#\0\n`=')
        assert folder[0] not in "._ "
        assert folder[-1] not in ". "
        assert folder.isprintable()
        assert not set(folder) & set("\u3164\u115f\u1160\u2800\ufe0f\u202e\u0301")


def test_a_name_that_no_folder_can_have_is_refused():
    """It is not cut."""
    with pytest.raises(SchemaError, match=f"'{'订' * 67}' is longer than 200 bytes, and no name in a lake"):
        folder_names(TableName("shop", None, "订" * 67))
    with pytest.raises(SchemaError, match="is longer than 200 bytes, and no name in a lake"):
        folder_names(TableName("d", None, "é" * 101))


def test_a_table_whose_name_just_fits_has_all_its_lake_tables():
    """MySQL's names may have 64 characters of three bytes: their deletes and changes have room behind them."""
    name = "订" * 64
    assert folder_names(TableName("d", None, name), "deletes")[-1] == f"{name}~~deletes"
    assert plain_names(TableName("d", None, "t" * 200), "deletes")[1] == f"{'t' * 200}_x_deletes"
    for names_of in (folder_names, plain_names):
        with pytest.raises(SchemaError, match="is longer than 200 bytes"):
            names_of(TableName("d", None, "t" * 201), "deletes")


def test_quoted_names_and_texts_end_where_they_end():
    """Whatever stands in them."""
    assert quote("a`; DROP TABLE x") == "`a``; DROP TABLE x`"
    assert literal("'; DROP TABLE x; \\") == "'\\'; DROP TABLE x; \\\\'"
    assert "${" not in literal("${env:HOME}") + "".join(column_names(["${env:HOME}", "$${x}"]))


PARTS = st.text(st.sampled_from("_x2f/-.a\x02é"), max_size=6)
NAMES = st.builds(TableName, st.none() | PARTS, st.none() | PARTS, PARTS)


@given(NAMES, NAMES)
@example(TableName(None, None, "_x/"), TableName(None, None, "_x_x2f_"))
@example(TableName("a.b", None, "c"), TableName("a", "b", "c"))
@example(TableName(None, "a", "b"), TableName("a", None, "b"))
@example(TableName(None, "a", "b"), TableName("", "a", "b"))
def test_two_tables_never_have_one_topic(first: TableName, second: TableName):
    """Also where names hold what escapes look like; every name is one that Kafka takes."""
    names = [topic_name("p-{name}", table) for table in (first, second)]
    assert all(re.fullmatch(r"[A-Za-z0-9._-]+", name) for name in names)
    assert (names[0] == names[1]) == (first == second)


def test_an_escaped_name_can_be_read_back():
    """Groups of hexadecimal digits are characters; nothing else is one."""
    for part in ("_x2f_", "_x/", "__x_", "a_x2f", "/_", "", "_", "é"):
        topic = topic_name("{name}", TableName(None, None, part))
        read = re.sub(r"_x([0-9a-f]*)_", lambda found: chr(int(found[1], 16)) if found[1] else "", topic)
        assert read == part


def test_one_topic_can_be_for_all_tables():
    """A template without the name."""
    assert topic_name("all", TableName("shop", None, "orders")) == "all"


def test_a_name_that_is_too_long_is_refused():
    """Kafka has 249 characters."""
    assert len(topic_name("{name}", TableName(None, None, "a" * 249))) == 249
    with pytest.raises(SchemaError, match="longer than 249 characters"):
        topic_name("{name}", TableName(None, None, "a" * 250))


@pytest.mark.parametrize("template", ["", ".", "a b", "{table}", "{name}{name}", "é"])
def test_a_template_that_names_no_topics_is_refused(template: str):
    """Before anything is written."""
    with pytest.raises(ValueError, match="a topic has letters"):
        check_topic_template(template)


@pytest.mark.parametrize(
    ("template", "found"),
    [
        ("{database}.{table}", TableName("shop", None, "orders")),
        ("lake.{database}_{schema}_{table}", TableName("lake", None, "shop_public_orders")),
        ("cdc_{database}.{schema}.{table}", TableName("cdc_shop", "public", "orders")),
        ("{table}.all", TableName("orders", None, "all")),
    ],
)
def test_a_template_names_lake_tables(template: str, found: TableName):
    """Its parts are those of the name in the lake."""
    check_name_template(template)
    assert name_by_template(template, TableName("shop", "public", "orders")) == found


def test_what_names_hold_makes_no_part_of_a_name_in_the_lake():
    """Nor another place in it."""
    assert name_by_template("l.{database}_{table}", TableName("a.b", None, "{schema}")) == TableName(
        "l", None, "a.b_{schema}"
    )


def test_a_table_whose_name_lacks_what_the_template_has_gets_no_name():
    """Nothing stands for it."""
    said = "schema t: name in \\[lake\\] is l.{schema}_{table}, and the table has no schema: leave it out"
    with pytest.raises(SchemaError, match=said):
        name_by_template("l.{schema}_{table}", TableName("d", None, "t"))


@pytest.mark.parametrize(
    "template", ["{table}", "a.{database}", "a.{tabel}", "a.{table", "a.{{table}}", "a..{table}", "a.b.c.{table}", ""]
)
def test_what_names_no_lake_tables_is_no_template(template: str):
    """It is refused with an example."""
    with pytest.raises(ValueError, match=r'such as "lake.\{database\}_\{table\}", not '):
        check_name_template(template)


@given(names, names, st.sampled_from(["", "deletes", "changes"]), st.sampled_from(["", "deletes", "changes"]))
@example("o", "o_x_deletes", "deletes", "")
@example("o_x4", "o", "deletes", "")
@example("a/", "a_x2f_", "", "")
@example("", "_x_", "", "")
def test_no_two_plain_names_are_one(one: str, other: str, suffix: str, beside: str):
    """Unless they differ in letter case only: lake tables beside a table are never another table."""
    found = [plain_names(TableName(None, None, name), end)[1] for name, end in ((one, suffix), (other, beside))]
    assert all(re.fullmatch("[a-z0-9_]+", name) for name in found)
    assert (found[0] == found[1]) == ((one.lower(), suffix) == (other.lower(), beside))


def test_a_schema_has_no_plain_name():
    """There is one level of namespaces: what to say is said."""
    with pytest.raises(SchemaError, match=r'name = "\{database\}.\{schema\}_\{table\}" in \[lake\]'):
        plain_names(TableName("d", "s", "t"))
