"""Changelogs in native lakes."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pytest

from cdcavro import to_changes
from cdcavro.change.model import replace
from cdcavro.lake import TypedRows
from cdcavro.lake.sql_statements import ORDER
from cdcavro.sync.native import row_images
from cdcavro.sync.native.delta_lake import NativeDelta
from cdcavro.sync.native.native_changelog import NativeChangelog, rows_not_held
from cdcavro.sync.native.native_table import Mark
from cdcavro.table import TableName
from cdcavro.table.tables import Tables
from support.keyed_changes import change
from support.lake_values import table_of
from support.messages import canal
from support.shop_state import as_came
from support.shop_tables import MESSAGES, shop

NOW = datetime(2026, 11, 22, tzinfo=UTC)


def all_rows(log: NativeChangelog) -> pa.Table:
    """Return all rows of a changelog in their order; those before updates precede them."""
    return log.lake_table.read(log.lake_table.schema().names).sort_by([(ORDER, "ascending"), ("_cdc_op", "ascending")])


@pytest.mark.parametrize("producer", MESSAGES)
@pytest.mark.parametrize("size", [row_images._MAX_SIZE, 2_000])
def test_every_change_is_in_the_changelog_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, producer: str, size: int
):
    """In three batches, each of which is appended twice, the table's columns changing between them; without a key, too."""
    monkeypatch.setattr(row_images, "_MAX_SIZE", size)
    maker, messages = TypedRows(Tables(zone=UTC)), as_came(producer)
    count, logs = -(-len(messages) // 3), {}
    for number, i in enumerate(range(0, len(messages), count)):
        batch = maker.of_batch(messages[i : i + count])
        for table in maker.tables.tables:
            name = table.versions[0].table.table
            rows = [row for row in batch.rows if row.table == table.number]
            if rows and name in ("orders", "nopk"):
                log = logs[name] = NativeChangelog(NativeDelta(str(tmp_path)), TableName("d", None, name))
                log.prepare(table.versions)
                for since in (None, NOW):
                    log.append(table_of(rows), table.versions, Mark("test's job", number, since))
    for name, log in logs.items():
        found = [
            (row["_cdc_op"], row["_cdc_version"], row["_cdc_key"])
            for row in all_rows(log).to_pylist()
            if row["_cdc_op"] not in ("b", "x")
        ]
        typed = [one for one in shop(producer)[1] if one.table.versions[0].table.table == name]
        operations = {"INSERT": "c", "UPDATE": "u", "DELETE": "d", "TRUNCATE": "t"}
        wanted = [(operations[one.change.op], one.schema.version, one.key) for one in typed]
        assert sorted(found, key=repr) == sorted(wanted, key=repr)
    orders = all_rows(logs["orders"]).to_pylist()
    befores, updates = ([row for row in orders if row["_cdc_op"] == op] for op in "bu")
    assert len(befores) == len(updates) > 0
    moved = [row for row in orders if row["tenant"] == "t9" and row["_cdc_op"] == "c"]
    assert [(str(row["order_id"]), str(row["amount (until version 4)"])) for row in moved] == [("7", "11.10")]


def test_a_row_is_as_it_was_before_a_delete_and_as_it_is_after_anything_else(tmp_path: Path):
    """The row before an update is a row of its own before it; a TRUNCATE and a DROP have none."""
    maker = TypedRows(Tables(zone=UTC))
    messages = [change("INSERT", 1, 1), change("UPDATE", 2, 1, absent="b"), change("DELETE", 3, 1)]
    messages.append(change("TRUNCATE", 4, 1))
    row = {"id": 1, "a": 5, "b": -5}
    updated = change("UPDATE", 5, 1)[0]
    messages.append([replace(updated, before=row | {"a": 4})])
    rows = maker.of_batch(messages).rows
    (table,) = maker.tables.tables
    log = NativeChangelog(NativeDelta(str(tmp_path)), TableName("d", None, "t"))
    log.prepare(table.versions)
    log.append(table_of(rows), table.versions, Mark("job", 1))
    found = [(one["_cdc_op"], one["id"], one["a"], one["b"], one["_cdc_absent"]) for one in all_rows(log).to_pylist()]
    assert found == [
        ("c", 1, 1, -1, None),
        ("u", 1, 2, None, ["b"]),
        ("d", 1, 3, -3, None),
        ("t", None, None, None, None),
        ("b", 1, 4, -5, None),
        ("u", 1, 5, -5, None),
    ]


def test_what_an_adopted_changelog_holds_is_none_of_the_rows_that_it_lacks(tmp_path: Path):
    """Rows without a key are told apart from each other, too."""
    for key in (["id"], []):
        maker = TypedRows(Tables())
        messages = [
            canal("INSERT", [{"id": "1", "n": "1"}], id=1, pkNames=key),
            canal("UPDATE", [{"id": "1", "n": "2"}], id=2, old=[{"n": "1"}], pkNames=key),
            canal("DELETE", [{"id": "1", "n": "2"}], id=3, pkNames=key),
            canal("INSERT", [{"id": "1", "n": "3"}], id=4, pkNames=key),
        ]
        rows = [table_of(maker.of_batch([to_changes(one, "canal")]).rows) for one in messages]
        versions = maker.tables.tables[0].versions
        log = NativeChangelog(NativeDelta(str(tmp_path)), TableName("d", None, f"t{len(key)}"))
        log.prepare(versions)
        for number, part in enumerate(rows[:3]):
            log.append(part, versions, Mark("first", number))
        until = max(rows[2].column("order").to_pylist())
        left = [len(rows_not_held(part, log.lake_table, until)) for part in rows]
        assert left == [0, 0, 0, 1]
        both = pa.concat_tables([rows[3], rows[2]])
        assert rows_not_held(both, log.lake_table, until).column("operation").to_pylist() == ["c"]
