"""Two producers saw the same database: their changes are the same, and lead to what the database held at the end.

Canal and Debezium each made messages of the same statements, run by a MySQL server; `shop-final-tables.json`
is what a server held after them, in its own words. What differs is what a producer lost, listed below.
"""

from __future__ import annotations

import base64
import json
import random
import re
from collections import Counter, defaultdict
from decimal import Decimal
from functools import cache
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest
from messages import shop_canal, shop_debezium

import cdcavro
from cdcavro.catalog import Catalog
from cdcavro.change import DDL, DML, Change, Place, replace
from cdcavro.comparison import differences
from cdcavro.instants import SECOND
from cdcavro.order import order_key, split_key_change
from cdcavro.scalars import plain_text

UTC = ZoneInfo("UTC")
FINAL = json.loads((Path(__file__).parent / "data" / "shop-final-tables.json").read_text(encoding="utf-8"))
# Values of the two producers that differ, by table and column: how many, and whose loss it is.
LOSSES = {
    ("orders", "created"): (25, "the default CURRENT_TIMESTAMP differs between the two runs"),
    ("orders_v2", "created"): (1, "the default CURRENT_TIMESTAMP differs between the two runs"),
    ("orders_v3", "created"): (3, "the default CURRENT_TIMESTAMP differs between the two runs"),
    ("orders", "amount"): (13, "Canal shortens decimals: 0.0 for 0.00"),
    ("orders_v3", "amount"): (1, "Canal shortens decimals: 6.0 for 6.0000"),
    ("all_types", "dec10"): (2, "Canal shortens decimals: 0.0 for 0.00"),
    ("all_types", "dec65"): (2, "Canal shortens decimals: 27 digits of 30"),
    ("all_types", "bin8"): (6, "Canal cuts the zeros at the end of BINARY"),
    ("all_types", "vl"): (5, "latin1 text arrives damaged from Canal"),
    ("all_types", "js"): (5, "Canal and Debezium spell JSON with and without spaces"),
    ("all_types", "en"): (2, "Canal's mysqlType has ? for an emoji in a label"),
    ("all_types", "dt"): (4, "Debezium has null for a zero date"),
    ("all_types", "dtm"): (2, "Debezium has null for a zero date"),
    ("all_types", "dtm3"): (2, "Debezium has null for a zero date"),
    ("all_types", "dtm6"): (2, "Debezium has null for a zero date"),
    ("all_types", "ts"): (2, "Debezium has the epoch for a zero timestamp"),
    ("all_types", "ts6"): (2, "Debezium has the epoch for a zero timestamp"),
    ("all_types", "yr"): (2, "Debezium has 1900 for the year 0000"),
    ("orders", "note"): (3, "Debezium has the default for NULL"),
}
# Cells that differ from the server's, by producer: the oracle is another server, whose spelling differs too.
CELLS = {
    "canal": {("all_types", "vl"): 1, ("all_types", "js"): 1, ("all_types", "pt"): 1, ("orders_v3", "created"): 1},
    "debezium": {("all_types", "pt"): 1, ("orders_v3", "created"): 1},
}
# How many rows there are beside the server's: Debezium's connector sent nothing for TRUNCATE TABLE orders_v3.
STALE = {"canal": {}, "debezium": {"orders_v3": 6}}


@cache
def changes(producer: str) -> tuple[Change, ...]:
    """Give the changes of a producer with their places; a changed key is a delete and an insert."""
    texts = shop_canal() if producer == "canal" else shop_debezium()
    catalog = Catalog()
    found = []
    for line, text in enumerate(texts, 1):
        for change in cdcavro.to_changes(text, producer, zone=UTC):
            known = catalog.add(change) if producer == "debezium" else change
            found += split_key_change(replace(known, place=Place(file=producer, line=line)))
    return tuple(found)


def rows_by_table(producer: str) -> dict[str, list[Change]]:
    """Give the changes of rows, table by table."""
    found = defaultdict(list)
    for change in changes(producer):
        if change.op in DML:
            found[change.source.table].append(change)
    return found


def test_both_producers_have_the_same_changes_but_for_their_own_losses():
    """180 changes of rows stand against each other; 148 agree in every digit, the others only in what is listed."""
    canal, debezium = rows_by_table("canal"), rows_by_table("debezium")
    pairs = [pair for table in canal for pair in zip(canal[table], debezium[table], strict=True)]
    assert [one.op for one, _ in pairs] == [other.op for _, other in pairs]
    assert canal.keys() == debezium.keys()
    found = Counter()
    agreeing = 0
    for one, other in pairs:
        differing = list(differences({"b": one.before, "a": one.after}, {"b": other.before, "a": other.after}))
        agreeing += not differing
        found.update((one.source.table, pointer.rpartition("/")[2]) for pointer, _, _ in differing)
    assert found == {place: count for place, (count, _) in LOSSES.items()}
    assert (len(pairs), agreeing) == (180, 148)


def test_everything_that_is_no_row_is_a_statement_or_a_tombstone():
    """Neither producer sent anything else."""
    kinds = {producer: Counter(one.op for one in changes(producer) if one.op not in DML) for producer in CELLS}
    assert set(kinds["canal"]) <= DDL
    assert sum(kinds["canal"].values()) == 22
    assert kinds["debezium"].pop("TOMBSTONE") == 27
    assert set(kinds["debezium"]) <= DDL
    assert sum(kinds["debezium"].values()) == 22


class Database:
    """Applies changes as a database would: rows by key, or as a whole in a table without one."""

    def __init__(self) -> None:
        self.tables: dict[str, dict[object, dict]] = {}

    def apply(self, change: Change) -> None:
        """Apply a change."""
        if change.op in DML:
            rows = self.tables.setdefault(change.source.table, {})
            if change.before is not None:
                rows.pop(_key(change, change.before), None)
            if change.after is not None:
                rows[_key(change, change.after)] = change.after
        for was, now in re.findall(r"([a-z_0-9]+) TO ([a-z_0-9]+)", change.ddl or "") if change.op == "RENAME" else ():
            self.tables[now] = self.tables.pop(was, {})
        if change.op in ("TRUNCATE", "ERASE"):
            self.tables.pop(change.source.table, None)


def _key(change: Change, row: dict) -> object:
    names = change.key or sorted(row)
    return tuple(row[name] if change.key else repr(row[name]) for name in names)


def server_text(value: object, declared: str) -> str | None:
    """Render a value as the server's own text."""
    if value is None:
        return None
    if declared.startswith("bit"):
        width = int(re.search(r"\d+", declared)[0])
        return "bit:" + format(int.from_bytes(base64.b64decode(value), "big"), "b").zfill(1)[-width:]
    if re.match(r"(tiny|medium|long)?blob|(var)?binary|point", declared):
        return "hex:" + base64.b64decode(value).hex().upper()
    if declared.startswith("timestamp") and re.fullmatch(r"[0-9.]+", plain_text(value)):
        return _instant(plain_text(value), declared)
    text = plain_text(value)
    return text.zfill(8) if "zerofill" in declared else text


def _instant(text: str, declared: str) -> str:
    from datetime import datetime, timedelta  # noqa: PLC0415

    digits = int((re.search(r"\d+", declared) or ["0"])[0])
    moment = datetime(1970, 1, 1) + timedelta(microseconds=int(Decimal(text) * SECOND))  # noqa: DTZ001
    return moment.strftime("%Y-%m-%d %H:%M:%S") + (f".{moment.microsecond:06}"[: digits + 1] if digits else "")


def is_same(ours: str | None, servers: str | None, declared: str) -> bool:
    """Compare two texts; numbers by value, since producers and servers spell their zeros differently."""
    if ours is None or servers is None or not re.match(r"float|double|decimal", declared):
        return ours == servers
    return Decimal(ours) == Decimal(servers)


def assert_final(database: Database, producer: str) -> None:
    """Assert that a database holds the server's tables, but for the cells and rows that are listed."""
    found = Counter()
    for table, final in FINAL.items():
        rows = dict(database.tables[table])
        names = [name for name, _ in final["columns"]]
        wanted = {tuple(row[name] for name in _key_names(table)): row for row in final["rows"]}
        stale = [key for key in rows if tuple(map(plain_text, key)) not in wanted]
        assert len(stale) == STALE[producer].get(table, 0)
        for key in stale:
            del rows[key]
        assert len(rows) == len(wanted)
        for row in rows.values():
            server = wanted[tuple(plain_text(row[name]) for name in _key_names(table))]
            assert set(row) == set(names)
            for name, declared in final["columns"]:
                if not is_same(server_text(row[name], declared), server[name], declared):
                    found[table, name] += 1
    assert found == CELLS[producer]


def _key_names(table: str) -> list[str]:
    return ["tenant", "order_id"] if table == "orders_v3" else ["id"]


@pytest.mark.parametrize("producer", CELLS)
def test_the_changes_in_order_lead_to_what_the_database_held(producer):
    """Applied one by one in plain Python."""
    database = Database()
    for change in changes(producer):
        database.apply(change)
    assert_final(database, producer)


@pytest.mark.parametrize("producer", CELLS)
def test_the_order_key_puts_shuffled_changes_in_their_order(producer):
    """Whatever order they come in, the changes of each table sort back, ties and all."""
    for table, wanted in rows_by_table(producer).items():
        shuffled = random.Random(table).sample(wanted, len(wanted))
        found = sorted(shuffled, key=lambda one: (order_key(one), one.op != "DELETE"))
        assert [one.place for one in found] == [one.place for one in wanted], table
