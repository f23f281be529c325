"""Keys of a table's versions."""

from __future__ import annotations

import pytest

from cdcavro.change.model import Column, Source
from cdcavro.lake import check_keys
from cdcavro.table import TableName, create_table, evolve
from cdcavro.table.schema import TableSchema
from support.roundtrip import error_of
from support.shop_tables import MESSAGES, shop

SOURCE = Source(format="canal", db_type="mysql", database="d", table="t")


def versions(*statements: str) -> list[TableSchema]:
    """Return a table with the key (a, b) through statements."""
    columns = [Column(name=name, type=declared) for name, declared in (("a", "INT"), ("b", "VARCHAR(9)"), ("c", "INT"))]
    found = [create_table(TableName("d", None, "t"), columns, ["a", "b"], SOURCE)]
    for statement in statements:
        found.append(evolve(found[-1], statement, source=SOURCE).schema)
    return found


@pytest.mark.parametrize(
    "statement",
    [
        "ALTER TABLE t ADD COLUMN d INT FIRST",
        "ALTER TABLE t RENAME COLUMN a TO x",
        "ALTER TABLE t MODIFY a BIGINT",
        "ALTER TABLE t CHANGE b y VARCHAR(99)",
        "ALTER TABLE t DROP COLUMN c",
    ],
)
def test_keys_whose_bytes_stay_are_those_of_the_same_rows(statement: str):
    """Whatever happens to other columns, and to a name."""
    check_keys(versions(statement))


@pytest.mark.parametrize(
    ("statement", "now"),
    [
        ("ALTER TABLE t DROP PRIMARY KEY, ADD PRIMARY KEY (a)", "a"),
        ("ALTER TABLE t DROP PRIMARY KEY, ADD PRIMARY KEY (b, a)", "b, a"),
        ("ALTER TABLE t DROP PRIMARY KEY, ADD PRIMARY KEY (a, c)", "a, c"),
        ("ALTER TABLE t MODIFY a VARCHAR(20)", "a, b"),
    ],
)
def test_a_key_under_which_older_rows_are_not_found_is_refused(statement: str, now: str):
    """Other columns, another order, another type."""
    expected = f"schema t: its key (a, b) is ({now}) from version 2 on, under which older rows are not found"
    assert error_of(check_keys, versions(statement)) == expected


@pytest.mark.parametrize("producer", MESSAGES)
def test_the_shops_keys_stay(producer: str):
    """Through ten versions of `orders`."""
    for table in shop(producer)[0].tables:
        check_keys(table.versions)
