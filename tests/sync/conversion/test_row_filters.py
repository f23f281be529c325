"""Filters of rows by functions: what these are given, what becomes of rows and of errors, and how they are named in TOML."""

from __future__ import annotations

import dataclasses
import json
import struct
from array import array
from base64 import b64decode
from collections.abc import Callable, Mapping
from datetime import UTC, date, datetime, time
from decimal import Decimal
from pathlib import Path
from random import Random
from threading import Lock
from typing import Any

import pyarrow as pa
import pytest
from msgspec.structs import replace

from cdcavro.arrow.arrays import slices_of
from cdcavro.engine import machine
from cdcavro.errors import FileError
from cdcavro.lake.placing import rows_batch
from cdcavro.lake.typed_rows import TypedRows
from cdcavro.sync.batches import BatchReport
from cdcavro.sync.config import read_config
from cdcavro.sync.conversion import row_filters
from cdcavro.sync.conversion.row_filters import exact_rows
from cdcavro.sync.protection import Constant, Protection, RowRule
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


TYPES = {
    "id": "int",
    "big": "bigint unsigned",
    "n": "int",
    "money": "decimal(12,3)",
    "wide": "decimal(38,30)",
    "text": "varchar(90)",
    "raw": "varbinary(20)",
    "day": "date",
    "at": "datetime(6)",
    "stamp": "timestamp(3)",
    "clock": "time",
    "real": "double",
    "flag": "bit(1)",
    "note": "varchar(9)",
}
# Values of their types, and some that these cannot carry.
SENT: dict[str, list[str]] = {
    "id": ["1", "-7", "2147483647"],
    "big": ["18446744073709551615", "0", "10", "x"],
    "n": ["-128", "0", "5", "6", "many"],
    "money": ["1.500", "-0.001", "700", "0.000", "-1234.5", "1.23456"],
    "wide": ["12345678.000000000000000000000000000001", "-0.5", "0", "1"],
    "text": ["", "a", "b", "a'b", "é" * 100, "\U0001f600"],
    "raw": ["", "\u0000\u00ff", "abc"],
    "day": ["2024-02-29", "1969-12-31", "0000-00-00"],
    "at": ["2024-02-29 01:02:03.000004", "2024-02-29 00:00:00"],
    "stamp": ["2024-02-29 01:02:03.5", "1969-12-31 23:59:59"],
    "clock": ["23:59:59", "00:00:00"],
    "real": ["1.5", "-2E+300", "0"],
    "flag": ["1", "0"],
    "note": ["x", "y", ""],
}
CONSTANTS: dict[str, list[str]] = {
    "big": ["10", "-1", "18446744073709551615", "9" * 40, "0.5"],
    "n": ["0", "5.0", "5.5", "-0.5", "-128", "9" * 30, "-" + "9" * 30],
    "money": ["1.5", "1.50001", "-0.001", "0", "-" + "9" * 40, "9" * 40 + ".5"],
    "wide": ["0.0000000000000000000000000000001", "-0.5", "1", "12345678.000000000000000000000000000001"],
    "text": ["'a'", "''", "'a''b'", "'aa'", "'é'"],
    "raw": ["'abc'", "''"],
    "day": ["'2024-02-29'", "'2024'"],
    "at": ["'2024-02-29T00:00:00'"],
    "real": ["1.5", "0", "-3"],
    "flag": ["'1'", "1"],
    "none": ["1"],
}


def condition_of(chance: Random) -> str:
    """Return a condition: on any type of column, with constants that values equal, are near to, or are far from."""
    column = chance.choice([*CONSTANTS])
    op = chance.choice(["=", "!=", "<>", "<", "<=", ">", ">=", "is null", "is not null"])
    return f"{column} {op}" if op.startswith("is") else f"{column} {op} {chance.choice(CONSTANTS[column])}"


def rule_of(chance: Random) -> RowRule:
    """Return a rule that leaves columns out, masks some, also of the key, by each method, and leaves rows out."""
    others = [*TYPES][1:]
    chance.shuffle(others)
    some, rest = others[:4], others[4:]
    methods: list[str | Constant] = ["sha256", "hmac-sha256", Constant("***")]
    mask: dict[str, str | Constant] = {name: chance.choice(methods) for name in rest if chance.random() < 0.5}
    mask |= {"id": chance.choice(["sha256", "hmac-sha256"])} if chance.random() < 0.3 else {}
    where = condition_of(chance) if chance.random() < 0.6 else None
    left_out = tuple(some[: chance.randrange(4)]) or (() if mask or where else (some[0],))
    salt = "salt" if "sha256" in mask.values() else None
    secret = "s" * chance.choice([1, 64, 65, 200]) if "hmac-sha256" in mask.values() else None
    return RowRule("d.t", left_out, mask, (), salt, secret, where)


def messages_of(chance: Random, count: int) -> list[bytes]:
    """Return messages about rows of a table: null, misfits, absent columns, keys that move, and a renamed column."""
    messages, types = list[bytes](), dict(TYPES)
    for i in range(count):
        if i == count // 2 and chance.random() < 0.5:
            messages.append(canal("ALTER", [], id=i, isDdl=True, sql="ALTER TABLE d.t RENAME COLUMN note TO memo"))
            types = {"memo" if name == "note" else name: kind for name, kind in TYPES.items()}
        some = [name for name in types if name == "id" or i == 0 or chance.random() < 0.9]
        # Misfits are the last of their lists.
        sent = {name: SENT["note" if name == "memo" else name] for name in some}
        sent = sent if chance.random() < 0.2 else {name: values[:3] for name, values in sent.items()}
        row = {name: None if name != "id" and chance.random() < 0.1 else chance.choice(sent[name]) for name in some}
        kind = chance.choice(["INSERT", "UPDATE", "UPDATE", "DELETE"])
        old = {name: chance.choice(sent[name]) for name in row if chance.random() < 0.3}
        more = {"old": [old]} if kind == "UPDATE" else {}
        messages.append(canal(kind, [row], id=i, mysqlType={name: types[name] for name in row}, **more))
    return messages


def exactly(protection: Protection, tables: Tables, rows: pa.RecordBatch) -> tuple[pa.RecordBatch, dict[int, Any]]:
    """Return rows as Python writes them, without the engine."""
    (table,) = tables.tables
    versions = protection.versions(table)
    made, _, errors = exact_rows(rows, [versions[one - 1] for one in rows.column("version").to_pylist()])
    return made, errors


@pytest.mark.parametrize("seed", range(80))
def test_rows_of_a_batch_are_those_of_the_exact_way(seed: int):
    """Random rows under random rules: the same rows byte for byte, and the same errors of the same messages."""
    chance = Random(seed)
    tables, protection = Tables(zone=UTC), Protection([rule_of(chance)])
    typed = TypedRows(tables).of_batch([to_changes(text, "canal") for text in messages_of(chance, 40)])
    # Rows that end all others have no payload, and rows may be a part of a batch.
    ending = replace(typed.rows[0], operation="t", key=None, payload=b"")
    rows = rows_batch([(i // 2, row) for i, row in enumerate([*typed.rows, ending, *typed.rows])]).slice(3)
    wanted, errors = exactly(protection, tables, rows)
    made, found = protection.rows(rows, tables.tables)
    assert made.equals(wanted)
    assert {i: str(error) for i, error in found.items()} == {i: str(error) for i, error in errors.items()}


@pytest.mark.skipif(not machine.COMPILED, reason="nothing is compiled")
@pytest.mark.parametrize(
    "rule",
    [
        RowRule("d.t", ("big", "note")),
        RowRule("d.t", (), {"text": "sha256", "money": "hmac-sha256", "day": Constant("*")}, (), "salt", "s" * 70),
        RowRule("d.t", (), {"id": "sha256", "at": "sha256"}, (), "salt"),
        RowRule("d.t", ("raw",), where="money >= -10000"),
        RowRule("d.t", where="text <= '\U0010ffff'"),
        RowRule("d.t", where="day > '1900-01-01'"),
        RowRule("d.t", where="real is not null"),
    ],
)
def test_python_looks_at_no_row_that_says_enough(rule: RowRule, monkeypatch: pytest.MonkeyPatch):
    """The engine writes inserts, deletes and updates that do not move the row in or out, whatever the rule."""
    tables, texts = Tables(zone=UTC), []
    for i, kind in enumerate(["INSERT", "UPDATE", "DELETE"] * 2):
        row = {name: values[i % 2] for name, values in SENT.items()}
        more = {"old": [{"n": SENT["n"][2], "id": row["id"]}]} if kind == "UPDATE" else {}
        texts.append(canal(kind, [row], id=i, mysqlType=TYPES, **more))
    typed = TypedRows(tables).of_batch([to_changes(text, "canal") for text in texts])
    rows, protection = rows_batch(list(enumerate(typed.rows))), Protection([rule])
    wanted, errors = exactly(protection, tables, rows)
    monkeypatch.setattr(row_filters, "exact_rows", lambda *_: pytest.fail("a row is left to Python"))
    assert protection.rows(rows, tables.tables)[0].equals(wanted)
    assert (len(wanted), errors) == (6, {})


@pytest.mark.skipif(not machine.COMPILED, reason="nothing is compiled")
@pytest.mark.parametrize("seed", range(8))
def test_damaged_payloads_are_read_within_their_bytes(seed: int):
    """No task has any, but whatever the engine reads, it stays within the column, and leaves what makes no sense."""
    chance = Random(seed)
    tables, protection = Tables(zone=UTC), Protection([rule_of(chance)])
    typed = TypedRows(tables).of_batch([to_changes(text, "canal") for text in messages_of(chance, 20)])
    (table,) = tables.tables
    rules = [None if one is None else one.rules for one in protection.versions(table)]
    for row in typed.rows:
        raw = bytearray(row.payload)
        for _ in range(chance.randrange(1, 4)):
            raw[chance.randrange(len(raw))] = chance.randrange(256)
        for payload in (bytes(raw), row.payload[: chance.randrange(len(row.payload))]):
            columns = [pa.array([one], pa.binary()) for one in (row.operation.encode(), row.key, payload)]
            try:
                place = array("i", [row.version - 1]).tobytes()
                outcomes, *_ = machine.apply_rules(rules, place, *map(slices_of, columns), b"\0")
            except (struct.error, OverflowError, IndexError, ArithmeticError, ValueError, AssertionError):
                continue  # what makes texts in Python found it
            assert outcomes[0] in (0, 1, 2)
