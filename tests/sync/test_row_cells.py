"""Conditions on rows: what they hold for, and a table's state is that of the rows for which one holds, however they move."""

from __future__ import annotations

import dataclasses
import json
import shutil
from base64 import b64decode
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import pytest

from cdcavro.arrow import to_arrow
from cdcavro.change.model import Arrival, replace
from cdcavro.lake.placing import rows_batch
from cdcavro.lake.typed_rows import TypedRows
from cdcavro.sync.batches import BatchReport
from cdcavro.sync.config import read_config
from cdcavro.sync.local import Pipeline
from cdcavro.sync.protection import Protection, RowRule
from cdcavro.sync.row_cells import Condition
from cdcavro.table.tables import Tables
from cdcavro.table.writing.table_writer import WHOLE_ROWS
from cdcavro.transcoding.mapping import to_changes
from support.local_pipelines import LocalJob, lake_section
from support.messages import canal

TYPES = {"id": "int", "state": "varchar(20)", "n": "decimal(9,2)", "day": "date"}


@pytest.fixture
def job(tmp_path: Path) -> Callable[..., LocalJob]:
    """Make a job of the local runner, whose lake is Delta Lake."""

    def make(name: str = "j", **lake: Any) -> LocalJob:
        return LocalJob(tmp_path / name, lake_section("delta", tmp_path / name, **lake))

    return make


def message(type: str, row: dict[str, Any], id: int, **more: Any) -> bytes:
    """Return a message of Canal's about a row of `d.t`."""
    old = [more.pop("old")] if "old" in more else []
    return canal(
        type, [row], id=id, old=old, **{"mysqlType": {name: TYPES.get(name, "varchar(20)") for name in row}, **more}
    )


def run(made: LocalJob, where: str, **more: Any) -> dict[str, int]:
    """Run a job with a condition, as its file states it, and return how many messages there were, by what became of them."""
    path = made.config(**more)
    path.write_text(f'{path.read_text()}\n[[table]]\nmatch = "d.*"\nwhere = "{where}"\n')
    totals: dict[str, int] = {}

    def say(report: BatchReport) -> None:
        for name, count in report.counts.items():
            totals[name] = totals.get(name, 0) + count

    read_config(path).pipeline(str(path), Pipeline).run(once=True, say=say)
    return totals


@pytest.mark.parametrize(
    ("text", "value", "holds"),
    [
        ("a = 'x'", b"x", True),
        ("a = 'it''s'", b"it's", True),
        ("a<>'x'", b"y", True),
        ("a != 'x'", None, False),
        ('"a b" >= 1.50', b"1.5", True),
        ("a < -2", b"-10", True),
        ("a<10", b"9", True),
        ("a > 9", b"nan", True),
        ("a <= 9", b"nan", False),
        ("a != 9", b"nan", True),
        ("a > 9", b"inf", True),
        ("a > -9", b"-inf", False),
        ("a IS NULL", None, True),
        ("a is  not null", None, False),
        ("a is not null", b"", True),
        ("a is null", b"", False),
        ("a > 'b'", "é".encode(), True),
    ],
)
def test_a_condition_holds_for_values_as_they_are(text: str, value: bytes | None, holds: bool):
    """Numbers as numbers, NaN as the greatest, texts by their characters; of null is known only that it is null."""
    assert Condition.of(text).holds(value) is holds


CONDITIONS: dict[str, Callable[[dict[str, Any]], bool]] = {
    "state = 'paid'": lambda row: row["state"] == "paid",
    "n >= 5": lambda row: row["n"] is not None and float(row["n"]) >= 5,
    "state is null": lambda row: row["state"] is None,
    "day < '2024-03-01'": lambda row: row["day"] is not None and row["day"] < "2024-03-01",
}


@pytest.mark.slow
@pytest.mark.parametrize("where", CONDITIONS)
@pytest.mark.parametrize("cut", [3, 17, 1000])
def test_a_current_state_has_the_rows_for_which_a_condition_holds(job, where: str, cut: int):
    """Inserts, deletes, and updates that move rows into the condition, out of it, and under other keys."""
    # Without a changelog, a task keeps only the last change of each key.
    made, chance, rows, messages = job(changelog=cut == 17), Random(f"{where} {cut}"), {}, []
    made.more["source"] = {"files": str(made.folder / "in")}

    def values() -> dict[str, str | None]:
        return {
            "state": chance.choice(["paid", "open", None]),
            "n": chance.choice(["4.99", "5.00", "17", None]),
            "day": chance.choice(["2024-02-29", "2024-03-01", None]),
        }

    for i in range(120):
        key, op = str(chance.randrange(12)), chance.random()
        if key not in rows:
            rows[key] = {"id": key, **values()}
            messages.append(message("INSERT", rows[key], i))
        elif op < 0.2:
            messages.append(message("DELETE", rows.pop(key), i))
        else:
            old, new = rows.pop(key), {"id": key, **values()}
            if op > 0.9 and "99" not in rows:
                new["id"] = "99"
            rows[new["id"]] = new
            changed = {name: old[name] for name in old if old[name] != new[name]}
            messages.append(message("UPDATE", new, i, old=changed))
    for first in range(0, len(messages), cut):
        made.send(*messages[first : first + cut])
    totals = run(made, where)
    wanted = sorted(int(key) for key, row in rows.items() if CONDITIONS[where](row))
    assert sorted(key for (key,) in made.rows("d.t", "id")) == wanted
    assert totals["read"] == 120 == totals["written"] + totals["left out"]
    assert 0 < totals["left out"] < 120


def test_the_changelog_says_how_a_row_came_in_and_went(job):
    """An update that moves it is an insert, or a delete; its columns are those of the whole row."""
    made = job(changelog=True)
    row = {"id": "1", "state": "open", "n": "1.00"}
    made.send(
        message("INSERT", row, 1),
        message("UPDATE", row | {"state": "paid"}, 2, old={"state": "open"}),
        message("UPDATE", row | {"state": "paid", "n": "2.00"}, 3, old={"n": "1.00"}),
        message("UPDATE", row | {"state": "open", "n": "2.00"}, 4, old={"state": "paid"}),
        message("DELETE", row | {"n": "2.00"}, 5),
    )
    assert run(made, "STATE = 'paid'")["left out"] == 2
    assert made.rows("d.t", "id") == []
    # An update is two rows, of which the first has the row before it.
    wanted = [("b", 1, "paid"), ("c", 1, "paid"), ("d", 2, "paid"), ("u", 2, "paid")]
    assert sorted(made.rows("d.t", "_cdc_op", "n", "state", suffix="changes")) == wanted


def test_a_condition_follows_its_column_under_another_name(job):
    """A statement renames it."""
    made = job()
    made.send(message("INSERT", {"id": "1", "state": "paid"}, 1), message("INSERT", {"id": "2", "state": "open"}, 2))
    made.send(canal("ALTER", [], id=3, isDdl=True, sql="ALTER TABLE d.t RENAME COLUMN state TO s"))
    made.send(message("INSERT", {"id": "3", "s": "paid"}, 4), message("INSERT", {"id": "4", "s": "open"}, 5))
    run(made, "state = 'paid'")
    assert made.rows("d.t", "id", "s") == [(1, "paid"), (3, "paid")]


def test_what_is_kept_as_text_of_rows_that_are_left_out_is_neither_counted_nor_shown(job):
    """Nor shown of another row of the same message."""
    own, reports = job("own"), []
    rows = [{"id": "1", "n": "five", "state": "open"}, {"id": "2", "n": "six", "state": "paid"}]
    types = {"id": "int", "n": "int", "state": "varchar(9)"}
    for i, some in enumerate((rows[:1], rows)):
        own.send(canal("INSERT", some, id=i, mysqlType=types))
    pipeline = own.pipeline()
    rule = RowRule("d.t", where="state = 'paid'")
    settings = dataclasses.replace(pipeline.settings, rules=(rule,))
    dataclasses.replace(pipeline, settings=settings).run(once=True, say=reports.append)
    assert reports[0].unparsed.count == 0
    assert [report.unparsed.example for report in reports] == ["", "d.t.n: …"]


OF_COLUMN = f"a value of the column {{}} in a row of d.t, by which where decides ({WHOLE_ROWS})"
KINDS = "where can compare: a number is compared with a number, and anything else with a text"


@pytest.mark.parametrize(
    ("where", "rows", "said"),
    [
        (
            "state = 'paid'",
            [message("INSERT", {"id": "1", "n": "5"}, 1)],
            "the column state in d.t, by which where decides, got none",
        ),
        (
            "n = 'x'",
            [message("INSERT", {"id": "1", "n": "5"}, 1)],
            f"a column n of d.t that {KINDS}, got one of type decimal",
        ),
        (
            "state > 5",
            [message("INSERT", {"id": "1", "state": "x"}, 1)],
            f"a column state of d.t that {KINDS}, got one of type string",
        ),
        (
            "n = 5",
            [message("INSERT", {"id": "1", "n": "five"}, 1)],
            f"{OF_COLUMN.format('n')}, got one that its type cannot carry",
        ),
        (
            "state = 'paid'",
            [
                message("INSERT", {"id": "1", "n": "5", "state": "paid"}, 1),
                message("UPDATE", {"id": "1", "n": "6"}, 2, old={"n": "5"}),
            ],
            f"{OF_COLUMN.format('state')}, got a row without it",
        ),
        (
            "state = 'paid'",
            [
                message("INSERT", {"id": "1", "n": "5", "state": "open"}, 1),
                message("UPDATE", {"id": "1", "state": "paid"}, 2, old={"state": "open"}),
            ],
            f"a whole row of d.t, as an update may bring it in by where on state ({WHOLE_ROWS}), got one that lacks columns",
        ),
    ],
)
def test_a_message_for_whose_row_a_condition_cannot_be_decided_is_a_reject(
    job, where: str, rows: list[bytes], said: str
):
    """It has its bytes, and a reason that names the table and the column; nothing is guessed, and others are written."""
    made = job()
    made.send(*rows, message("INSERT", {"id": "9"}, 9, database="e"))
    totals = run(made, where)
    assert totals["read"] == totals["written"] + totals["left out"] + totals["rejected"] == len(rows) + 1
    (reject,) = rejects(made)
    assert b64decode(reject["raw"]) == rows[-1]
    assert (reject["format"], reject["path"], reject["line"]) == ("canal", "$.after", len(rows))
    assert reject["reason"] == f"canal: $.after: expected {said}"
    assert made.rows("e.t", "id") == [(9,)]


def test_a_condition_is_about_the_second_column_of_a_name_where_only_the_first_one_has_a_text(job):
    """And cannot be decided where the second one has."""
    made, types = job(), {"id": "int", "n": "int", "m": "int"}
    made.send(
        message("INSERT", {"id": "1", "n": "5"}, 1, mysqlType={"id": "int", "n": "int"}),
        canal("ALTER", [], id=2, isDdl=True, sql="ALTER TABLE d.t RENAME COLUMN n TO m, ADD COLUMN n INT"),
        message("INSERT", {"id": "2", "n": "5", "m": "five"}, 3, mysqlType=types),
        message("INSERT", {"id": "3", "n": None, "m": "five"}, 4, mysqlType=types),
        message("INSERT", {"id": "4", "n": "five", "m": "5"}, 5, mysqlType=types),
    )
    totals = run(made, "n = 5")
    assert (totals["rejected"], totals["left out"]) == (1, 1)
    assert f"{OF_COLUMN.format('n')}, got one that its type cannot carry" in rejects(made)[0]["reason"]
    assert (2, 5) in made.rows("d.t", "id", "n")


def rejects(made: LocalJob) -> list[dict[str, Any]]:
    """Return the rejects of a job."""
    files = sorted((made.folder / "state" / "rejects").rglob("*.json"))
    return [json.loads(line) for path in files for line in path.open()]


def test_reasons_of_undecided_messages_show_no_value_and_name_the_columns_of_protected_tables(job):
    """Neither by the reject nor by the report."""
    made, reports = job(), []
    made.send(canal("INSERT", [{"id": "1", "n": "canary"}], id=1))
    pipeline = made.pipeline()
    rule = RowRule("d.t", ("n",), where="n > 5")
    settings = dataclasses.replace(pipeline.settings, rules=(rule,), rejects_raw="omit")
    dataclasses.replace(pipeline, settings=settings).run(once=True, say=reports.append)
    (reject,) = rejects(made)
    assert "a value of the column n in a row of d.t" in reject["reason"]
    assert "canary" not in repr(reject) + repr(reports)


@pytest.mark.slow
@pytest.mark.parametrize("engine", ["", "off"])
def test_messages_around_those_that_are_undecided_are_as_if_these_were_no_messages(job, monkeypatch, engine: str):
    """Their orders, too: what becomes a reject does not move the clock of its lane. A message of many rows is one reject."""
    monkeypatch.setenv("CDCAVRO_ENGINE", engine)
    chance, messages, undecided = Random(7), list[bytes](), list[int]()
    for i in range(60):
        rows = [{"id": str(2 * i + more), "n": str(i)} for more in range(chance.randrange(1, 3))]
        if i % 7 == 3:
            undecided.append(i)
            rows[-1]["n"] = "canary"
        # Later than what follows, and it moves a row to another key.
        time = {"es": 1_800_000_000_000, "old": [{"id": "1"} for _ in rows]} if i in undecided else {}
        messages.append(canal("UPDATE" if time else "INSERT", rows, id=i, mysqlType={"id": "int", "n": "int"}, **time))
    made, found = job(changelog=True), []
    for some in (messages, [b"{" if i in undecided else one for i, one in enumerate(messages)]):
        shutil.rmtree(made.folder, ignore_errors=True)
        made.files = 0
        made.send(*some)
        totals = run(made, "n >= 9")
        assert (totals["read"], totals["rejected"]) == (60, len(undecided))
        assert [one["line"] for one in rejects(made)] == [i + 1 for i in undecided]
        found.append(made.rows("d.t", "_cdc_order", "_cdc_op", "id", "n", suffix="changes"))
    assert found[0] == found[1]
    assert len(found[0]) > 40


@pytest.mark.slow
def test_deletes_of_which_nothing_is_known_and_truncates_are_written_whatever_the_condition(job):
    """A delete deletes nothing if the row is not there; a TRUNCATE has no row, and ends those that are there."""
    made = job()
    made.send(
        *[message("INSERT", {"id": str(i), "state": "paid"}, i) for i in range(1, 4)],
        message("DELETE", {"id": "1"}, 5),
    )
    assert run(made, "state = 'paid'")["rejected"] == 0
    assert made.rows("d.t", "id") == [(2,), (3,)]
    made.send(
        canal("TRUNCATE", [], id=6, isDdl=True, sql="TRUNCATE TABLE t"), message("INSERT", {"id": "7", "n": "1"}, 7)
    )
    totals = run(made, "state = 'paid'")
    assert (totals["statements"], totals["rejected"]) == (1, 1)
    assert made.rows("d.t", "id") == []


@pytest.mark.parametrize(
    ("before", "after", "op", "wanted"),
    [
        (None, {"id": 1, "state": "open"}, "u", ("d", {"id": 1, "state": "open"}, None)),
        ({"id": 1}, {"id": 1, "state": "open"}, "u", ("d", {"id": 1, "state": None}, None)),
        (None, {"id": 1, "state": "paid"}, "u", ("u", None, {"id": 1, "state": "paid"})),
        ({"id": 1, "state": "open"}, {"id": 1, "state": "paid"}, "u", ("c", None, {"id": 1, "state": "paid"})),
        ({"id": 1, "state": "open"}, {"id": 1, "state": "x"}, "u", None),
        ({"id": 1}, None, "d", ("d", {"id": 1, "state": None}, None)),
        ({"id": 1, "state": "open"}, None, "d", None),
        (None, {"id": 1, "state": "paid"}, "r", ("r", None, {"id": 1, "state": "paid"})),
    ],
)
def test_a_row_of_which_the_source_says_little_is_still_decided(before: Any, after: Any, op: str, wanted: Any):
    """Where it was before is not known, and what stands behind the rows stays as it was: source, times and place."""
    source = {"connector": "postgresql", "db": "d", "schema": "s", "table": "t", "ts_ms": 5, "lsn": 7, "txId": 3}
    text = {"before": before, "after": after, "source": source, "op": op, "ts_ms": 9}
    tables = Tables()
    first = text | {"before": None, "after": {"id": 5, "state": "paid"}, "op": "c"}
    changes = [to_changes(json.dumps(one).encode(), "debezium") for one in (first, text)]
    placed = [
        [replace(change, place=Arrival(topic="t", partition=0, offset=i)) for change in one]
        for i, one in enumerate(changes)
    ]
    (_, row) = TypedRows(tables).of_batch(placed).rows
    protection = Protection([RowRule("t", where="state = 'paid'")])
    made, _ = protection.rows(rows_batch([(0, row)]), tables.tables)
    assert protection.public(tables.tables[0]) is not None
    if wanted is None:
        assert made.num_rows == 0
        return
    schema = tables.tables[0].versions[row.version - 1]
    (was,), (now,) = (to_arrow([one], schema).to_pylist() for one in (row.payload, made.column("payload")[0].as_py()))
    images = [one and {name: one[name] for name in ("id", "state")} for one in (now.pop("before"), now.pop("after"))]
    assert (now.pop("op"), *[one and one | {"id": int(one["id"])} for one in images]) == wanted
    assert made.column("operation")[0].as_py() == wanted[0]
    assert now == {name: value for name, value in was.items() if name not in ("before", "after", "op")}
