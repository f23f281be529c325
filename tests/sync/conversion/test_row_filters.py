"""Filters of rows by functions: what these are given, what becomes of rows and of errors, and how they are named in TOML."""

from __future__ import annotations

import dataclasses
import json
from base64 import b64decode
from collections.abc import Callable, Mapping
from datetime import UTC, date, datetime, time
from decimal import Decimal
from pathlib import Path
from threading import Lock
from typing import Any

import pytest

from cdcavro.errors import FileError
from cdcavro.lake.placing import rows_batch
from cdcavro.lake.typed_rows import TypedRows
from cdcavro.sync.batches import BatchReport
from cdcavro.sync.config import read_config
from cdcavro.sync.protection import Protection, RowRule
from cdcavro.table.tables import Tables
from cdcavro.table.writing.table_writer import WHOLE_ROWS
from cdcavro.transcoding.mapping import to_changes
from support.local_pipelines import LocalJob, lake_section
from support.messages import canal

Row = Mapping[str, Any]


@pytest.fixture
def job(tmp_path: Path) -> Callable[..., LocalJob]:
    """Make a job of the local runner, whose lake is Delta Lake."""

    def make(name: str = "j", **lake: Any) -> LocalJob:
        return LocalJob(tmp_path / name, lake_section("delta", tmp_path / name, **lake))

    return make


def run(made: LocalJob, where: str | Callable[[Row], bool], **more: Any) -> list[BatchReport]:
    """Run a job whose rows a function or a condition keeps; return the reports of its batches."""
    pipeline, reports = made.pipeline(), list[BatchReport]()
    settings = dataclasses.replace(pipeline.settings, rules=(RowRule("d.t", where=where, **more),), rejects_raw="keep")
    dataclasses.replace(pipeline, settings=settings).run(once=True, say=reports.append)
    return reports


def rejects(made: LocalJob) -> list[dict[str, Any]]:
    """Return the rejects of a job."""
    files = sorted((made.folder / "state" / "rejects").rglob("*.json"))
    return [json.loads(line) for path in files for line in path.open()]


def is_positive(row: Row) -> bool:
    """Return whether a row has a positive `n`."""
    return bool(row["n"] > 0)


def test_a_function_is_given_the_values_of_rows_as_python_has_them():
    """Also those of columns that are masked, or left out; each by its name in any case, and no other."""
    types = {
        "id": "int",
        "money": "decimal(12,3)",
        "text": "varchar(9)",
        "raw": "varbinary(9)",
        "day": "date",
        "at": "datetime(6)",
        "stamp": "timestamp(3)",
        "clock": "time",
        "real": "double",
        "flag": "tinyint(1)",
        "nothing": "int",
    }
    sent = ["1", "1.500", "é", "ab", "2024-02-29", "2024-02-29 01:02:03.000004", "2024-02-29 01:02:03.5", "23:59:59"]
    row = dict(zip(types, [*sent, "1.5", "1", None], strict=True))
    tables, seen = Tables(zone=UTC), list[Row]()

    def keep(row: Row) -> bool:
        seen.append(row)
        return True

    message = canal("INSERT", [row], id=1, mysqlType=types)
    typed = TypedRows(tables).of_batch([to_changes(message, "canal")]).rows
    rule = RowRule("d.t", ("text",), {"money": "sha256"}, salt="x", where=keep)
    made, undecided = Protection([rule]).rows(rows_batch(list(enumerate(typed))), tables.tables)
    assert (made.num_rows, undecided) == (1, {})
    (image,) = seen
    assert dict(image) == {
        "id": 1,
        "money": Decimal("1.500"),
        "text": "é",
        "raw": b"ab",
        "day": date(2024, 2, 29),
        "at": datetime(2024, 2, 29, 1, 2, 3, 4),  # noqa: DTZ001  it is a local time
        "stamp": datetime(2024, 2, 29, 1, 2, 3, 500_000, tzinfo=UTC),
        "clock": time(23, 59, 59),
        "real": 1.5,
        "flag": 1,
        "nothing": None,
    }
    assert (image["MONEY"], "Money" in image, "x" in image, 5 in image, len(image)) == (
        Decimal("1.500"),
        True,
        False,
        False,
        11,
    )
    assert image.get("x", "none") == "none"
    assert "1.5" not in repr(image)
    with pytest.raises(KeyError):
        image["x"]


def test_rows_that_a_function_keeps_are_those_of_the_condition_that_says_the_same(job):
    """Inserts, deletes, and updates that move rows into them and out of them, with their orders."""
    messages, row = [], {"id": "1", "n": "5"}
    for i, n in enumerate(["5", "-1", "0", "7", "8", "-2"]):
        old, row = row, {"id": "1", "n": n}
        messages.append(canal("UPDATE", [row], id=2 * i, old=[{"n": old["n"]}]))
        messages.append(canal("INSERT", [{"id": str(i + 2), "n": n}], id=2 * i + 1))
    messages += [canal("DELETE", [{"id": "3", "n": "-1"}], id=50), canal("DELETE", [{"id": "2", "n": "5"}], id=51)]
    found = []
    for where in ("n > 0", is_positive):
        made = job(changelog=True)
        made.files = 0
        made.more |= {"state": str(made.folder / f"state-{len(found)}")}
        made.lake["delta"] = str(made.folder / f"lake-{len(found)}")
        made.send(*messages)
        counts = [report.counts for report in run(made, where)]
        found.append(
            (
                counts,
                made.rows("d.t", "id", "n"),
                made.rows("d.t", "_cdc_order", "_cdc_op", "id", "n", suffix="changes"),
            )
        )
    assert found[0] == found[1]
    assert found[0][1] == [(5, 7), (6, 8)]


def no_answer(row: Row) -> bool:
    """Forget to return anything."""
    row["n"]  # type: ignore[return]


def careless(row: Row) -> bool:
    """Take a row that lacks the column for one that has null there."""
    return row.get("n") is None


def careful(row: Row) -> bool:
    """Look whether the row has the column."""
    return "n" not in row or bool(row["n"])


@pytest.mark.parametrize(
    ("where", "rows", "said"),
    [
        (is_positive, [{"id": "7", "n": None}], "{function}is_positive, by which {row}, got the exception TypeError"),
        (lambda row: bool(1 / row["n"]), [{"id": "7", "n": "0"}], "<lambda>, by which {row}, got the exception ZeroDi"),
        (lambda row: bool(row["typo"]), [{"id": "7", "n": "0"}], "<lambda>, by which {row}, got the exception KeyErr"),
        (no_answer, [{"id": "7", "n": "1"}], "{function}no_answer, by which {row}, got a value of type NoneType"),
        (is_positive, [{"id": "7", "n": "secret"}], "a value of the column n in a row of d.t, by which where decides"),
        (careless, [{"id": "6", "n": "1"}, {"id": "7"}], f"where decides ({WHOLE_ROWS}), got a row without it"),
    ],
)
def test_what_a_function_raises_and_what_it_cannot_know_are_rejects(job, where: Any, rows: list[Any], said: str):
    """They name the function and the type of the exception, and show no value; others are written."""
    made, function = job(), f"True or False of the function {is_positive.__module__}:"
    messages = [canal("INSERT", [row], id=i, mysqlType={"id": "int", "n": "int"}) for i, row in enumerate(rows)]
    made.send(*messages, canal("INSERT", [{"id": "9"}], id=9, table="u"))
    (report,) = run(made, where)
    assert report.counts["rejected"] == 1
    (reject,) = rejects(made)
    assert b64decode(reject["raw"]) == messages[-1]
    assert said.format(function=function, row="where decides for a row of d.t") in reject["reason"]
    assert reject["reason"].startswith("canal: $.after: expected ")
    assert "secret" not in repr(report) + reject["reason"]
    assert made.rows("d.u", "id") == [(9,)]


def test_a_function_may_ask_whether_a_row_has_a_column(job):
    """So it may keep what does not say it."""
    made = job()
    rows = [{"id": "6", "n": "1"}, {"id": "7"}, {"id": "8", "n": "0"}]
    made.send(*[canal("INSERT", [row], id=i, mysqlType={"id": "int", "n": "int"}) for i, row in enumerate(rows)])
    (report,) = run(made, careful)
    assert [report.counts[name] for name in ("written", "left out", "rejected")] == [2, 1, 0]


def test_a_function_of_this_process_may_hold_what_cannot_be_pickled(job):
    """The local runner calls it where it is."""
    made, lock, calls = job(), Lock(), list[int]()

    def count(row: Row) -> bool:
        with lock:
            calls.append(row["id"])
        return True

    made.send(canal("INSERT", [{"id": "1"}], id=1))
    run(made, count)
    assert set(calls) == {1}


def test_rows_that_wait_know_another_function_by_its_name():
    """As another condition, it would have made other rows."""
    layouts = [Protection([RowRule("t", where=one)]).layout for one in (is_positive, careful, "n > 0", is_positive)]
    assert layouts[0] == layouts[3]
    assert len({*layouts}) == 3


MODULE = "def paid(row):\n    return row['state'] == 'paid'\n\nstates = 5\n"


def test_a_configuration_names_a_function_by_its_module(job, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """It is imported when the pipeline is made, and not when a configuration is read, as other commands do."""
    (tmp_path / "rules_of_the_shop.py").write_text(MODULE)
    made = job()
    types = {"id": "int", "state": "varchar(9)"}
    rows = [{"id": "1", "state": "paid"}, {"id": "2", "state": "open"}, {"id": "3", "state": None}]
    made.send(*[canal("INSERT", [row], id=i, mysqlType=types) for i, row in enumerate(rows)])
    made.more["table"] = [{"match": "d.t", "where": "rules_of_the_shop:paid"}]
    config = read_config(made.config())
    with pytest.raises(FileError, match=r"'rules_of_the_shop:paid', which cannot be imported: ModuleNotFoundError"):
        config.pipeline("x")
    monkeypatch.syspath_prepend(tmp_path)
    (report,) = made.run()
    assert [report.counts[name] for name in ("written", "left out", "rejected")] == [1, 2, 0]
    for name, said in (("unpaid", "AttributeError"), ("states", "which is no function")):
        made.more["table"] = [{"match": "d.t", "where": f"rules_of_the_shop:{name}"}]
        with pytest.raises(FileError, match=said):
            made.pipeline()


@pytest.mark.parametrize("where", [5, "a:b:c", "a:", "1a:b", "os.path:exists > 5 x"])
def test_what_is_neither_a_condition_nor_a_function_is_refused(where: Any):
    """Before anything starts."""
    with pytest.raises(ValueError, match=r"^where "):
        RowRule("t", where=where)
