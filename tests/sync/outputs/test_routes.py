"""Routes: what tables are called where they are written."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from cdcavro.errors import FileError
from cdcavro.sync.outputs.routes import Route, Routes
from cdcavro.table import TableName
from support.local_pipelines import DELTA, LocalJob, lake_section
from support.messages import canal


def route(pattern: str, to: str) -> Route:
    """Return a route, as a configuration states it."""
    return msgspec.convert({"from": pattern, "to": to}, Route)


ORDERS = TableName("shop_1", None, "orders_2")


@pytest.mark.parametrize(
    ("pattern", "to", "table", "name"),
    [
        ("shop_1.orders_2", "shop.orders", ORDERS, TableName("shop", None, "orders")),
        ("orders_2", "o", ORDERS, TableName("shop_1", None, "o")),
        ("shop_*.orders_*", "s{1}.o{2}", ORDERS, TableName("s1", None, "o2")),
        ("shop_*.orders_*", "s.o_{2}_{1}_{2}", ORDERS, TableName("s", None, "o_2_1_2")),
        ("*_*.*", "{2}.{1}{3}", TableName("a_b_c", None, "t"), TableName("c", None, "a_bt")),
        ("*.o", "x.y", TableName("d", "public", "o"), TableName("d", "x", "y")),
        ("d.*.o", "e.{1}.p", TableName("d", "public", "o"), TableName("e", "public", "p")),
        ("*.o", "x.y", TableName(None, "public", "o"), TableName(None, "x", "y")),
        ("*", "a_{1}", TableName("d", None, "with.dot\nand line"), TableName("d", None, "a_with.dot\nand line")),
        ("shop.orders", "a.b", TableName("Shop", None, "orders"), None),
        ("a.b", "c.d", TableName(None, None, "b"), None),
        ("s.o", "c.d", TableName("sxo", None, "o"), None),
    ],
)
def test_a_route_names_the_tables_that_it_fits(pattern: str, to: str, table: TableName, name: TableName | None):
    """A star stays within its part, and the parts in front of those that a route has stay as they are."""
    assert route(pattern, to).target(table) == name


def test_the_first_route_that_fits_counts():
    """What none fits has its own name."""
    routes = Routes([route("a.*", "x.{1}"), route("*.b", "y.{1}b")])
    assert [routes.target(TableName(one, None, "b")).name.database for one in ("a", "c")] == ["x", "y"]
    assert routes.target(TableName("c", None, "d")).name == TableName("c", None, "d")
    assert [one.pattern for one in routes.unmatched([TableName("a", None, "t")])] == ["*.b"]


@pytest.mark.parametrize(
    ("pattern", "to", "said"),
    [
        ("", "a", "a route is from and to table"),
        ("a..b", "a.b.c", "a route is from and to table"),
        ("a.b.c.d", "a.b.c.d", "a route is from and to table"),
        ("a.b", "a", "to has as many parts as from, 2, not 'a'"),
        ("a*", "b*", "to is a name, in which {1} is what the first * of from stands for, not 'b*'"),
        ("a*", "b{x}", "to is a name, in which {1}"),
        ("a*", "b{0}", "from has 1 * for the {0} of to"),
        ("a*", "b{2}", "from has 1 * for the {2} of to"),
    ],
)
def test_a_route_that_names_nothing_is_refused(pattern: str, to: str, said: str):
    """With what is wrong."""
    with pytest.raises(msgspec.ValidationError) as raised:
        route(pattern, to)
    assert said in str(raised.value)


def job(folder: Path, *routes: tuple[str, str]) -> LocalJob:
    """Return a pipeline with routes."""
    stated = [{"from": pattern, "to": to} for pattern, to in routes]
    return LocalJob(folder, lake_section(DELTA, folder, changelog=True), {"route": stated})


def row(id: int, table: str, **members: object) -> bytes:
    """Return a row of Canal's."""
    return canal("INSERT", [{"id": str(id), "a": str(id)}], id=id, table=table, **members)


@pytest.mark.slow
def test_a_table_is_written_under_the_name_that_its_route_says(tmp_path: Path):
    """All else knows it by its own: a statement finds it, and a table that was renamed keeps its place in the lake."""
    made = job(tmp_path, ("t_*", "{1}t"), ("none", "x"))
    made.send(row(1, "t_1"), row(2, "u"))
    (report,) = made.run(tables={"include": ["t_*"]})
    assert report.operations == {"d.1t": {"c": 1}}
    sql = "ALTER TABLE t_1 CHANGE a b int; RENAME TABLE t_1 TO v"
    for id, one in enumerate(sql.split("; "), 3):
        made.send(canal("ALTER", [], id=id, table="t_1", isDdl=True, sql=one))
    made.send(canal("INSERT", [{"id": "5", "b": "5"}], id=5, table="v"), row(6, "t_2"))
    made.run()
    assert made.rows("d.1t", "id", "b") == [(1, 1), (5, 5)]
    assert made.rows("d.1t", "id", suffix="changes") == [(1,), (5,)]
    assert made.rows("d.2t", "id", "a") == [(6, 6)]
    assert [*made.pipeline().unmatched] == ["[[route]]: no table fits 'none' so far"]
    assert not (tmp_path / "lake" / "d" / "v").exists()


@pytest.mark.slow
def test_two_names_that_a_route_makes_alike_are_two_tables(tmp_path: Path):
    """As all names in the lake that are taken: a number stands behind the second one."""
    made = job(tmp_path, ("*_*", "{1}{2}"))
    made.send(row(1, "a_bc"), row(2, "ab_c"), row(3, "abc"))
    made.run()
    assert [made.rows(name, "id") for name in ("d.abc", "d.abc~2", "d.abc~3")] == [[(1,)], [(2,)], [(3,)]]


@pytest.mark.parametrize("routes", [[("t_*", "t")], [("a", "t"), ("b", "t")]])
def test_a_route_of_several_tables_into_one_is_refused_before_anything_starts(
    tmp_path: Path, routes: list[tuple[str, str]]
):
    """It says which."""
    with pytest.raises(FileError) as raised:
        job(tmp_path, *routes).pipeline()
    assert f"[[route]] from '{routes[0][0]}' to 't' writes several tables into one" in str(raised.value)
    assert "or shards = true if that is meant" in str(raised.value)


def test_shards_are_meant_by_each_of_the_routes_that_have_one_target(tmp_path: Path):
    """One without a word on it would write into the table of the others by mistake."""
    stated = [{"from": "a", "to": "t", "shards": True}, {"from": "b", "to": "t"}]
    with pytest.raises(FileError, match="from 'b' to 't' writes several tables into one"):
        job(tmp_path).pipeline(route=stated)
    stated[1]["shards"] = True
    assert job(tmp_path).pipeline(route=stated).settings.routes.target(TableName("d", None, "b")).is_shard
