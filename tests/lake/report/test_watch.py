"""Versions of tables as a batch brings them: which are new, what led to each, and since when it holds."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC

from cdcavro.change.model import Change
from cdcavro.lake import TypedRows
from cdcavro.lake.report.account import Version
from cdcavro.lake.report.watch import VersionWatch
from cdcavro.table.tables import Tables
from support.shop_state import as_came


def versions(every: Sequence[Sequence[Change]], size: int) -> list[Version]:
    """Return the versions that are told where messages come in batches of a size; the last word on each counts."""
    maker, watch = TypedRows(Tables(zone=UTC)), VersionWatch()
    found: dict[tuple[int, int], Version] = {}
    for number, i in enumerate(range(0, len(every), size)):
        batch = maker.of_batch([list(changes) for changes in every[i : i + size]])
        told = watch.new(
            maker.tables,
            batch.learned,
            number,
            float(number),
            lambda table: str(table.versions[0].table.table),
            lambda name: not name.table.startswith("nopk"),
        )
        found |= {(one.number, one.version): one for one in told}
    return list(found.values())


def test_the_versions_of_the_shop_are_told_with_what_led_to_them():
    """However the messages are cut into batches; a table that is not wanted is not among them."""
    every = as_came("canal")
    whole, cut = versions(every, len(every)), versions(every, 7)
    orders = [one for one in cut if one.table == "orders"]
    assert [one.version for one in orders] == list(range(1, len(orders) + 1))
    assert len(orders) >= 9
    assert all(one.statement and one.since is not None for one in orders)
    (renamed,) = [one for one in orders if one.steps == ["column 'note' renamed to 'remark'"]]
    assert renamed.statement == "ALTER TABLE orders RENAME COLUMN note TO remark"
    (event,) = [change.event_time for changes in every for change in changes if change.ddl == renamed.statement]
    assert renamed.since == event / 1e6
    assert "nopk" not in {one.table for one in cut}
    assert {(one.table, one.version, one.statement, one.since) for one in whole} == {
        (one.table, one.version, one.statement, one.since) for one in cut
    }


def test_a_watch_that_starts_later_tells_only_what_is_new():
    """As a run that goes on with a state."""
    every = [list(changes) for changes in as_came("canal")]
    maker = TypedRows(Tables(zone=UTC))
    maker.of_batch(every[:30])
    watch = VersionWatch(maker.tables.tables, maker.tables.edits)
    assert watch.new(maker.tables, [], 1, 1.0, lambda _: "t", lambda _: True) == []
    before = {(table.number, schema.version) for table in maker.tables.tables for schema in table.versions}
    behind = maker.of_batch(every[30:])
    found = watch.new(maker.tables, behind.learned, 2, 2.0, lambda _: "t", lambda _: True)
    after = {(table.number, schema.version) for table in maker.tables.tables for schema in table.versions}
    assert {(one.number, one.version) for one in found} - before == after - before
    assert len(found) < len(after)
