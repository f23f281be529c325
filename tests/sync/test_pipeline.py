"""Pipelines from files into lake tables: what is in the tables, in the rejects and in the reports; whose a state is.

Tests that show what is Spark's as well are run there, too: `tests/spark/pipeline/test_pipeline.py` takes them.
"""

from __future__ import annotations

import gzip
import json
import os
import re
import shutil
from base64 import b64decode, b64encode
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from cdcavro.errors import FileError, JobError
from cdcavro.files.rejects import MaxRejects
from cdcavro.lake.account import Unparsed, read_account
from cdcavro.lake.evolution import EXCEPTION
from cdcavro.lake.job_state import JobState
from cdcavro.lake.lakes import CURRENT, HISTORY, SOFT, DeltaLake
from cdcavro.sync import pipeline
from cdcavro.sync.batches import Batches
from cdcavro.sync.native.delta_lake import NativeDeltaTable
from cdcavro.sync.native.native_tables import NativeTables
from cdcavro.sync.outputs.reject_places import RAW, RejectCipher, replay
from cdcavro.sync.outputs.sink_settings import LakeSettings, StatementRules, excluded_kinds
from cdcavro.sync.outputs.table_rows import WaitingRows
from cdcavro.sync.pipeline import finish_reset, job_of, pause, reset
from cdcavro.sync.protection import Constant, RowRule
from cdcavro.sync.settings import Chosen, Formats
from cdcavro.sync.sources import Files
from cdcavro.table.columns.column_type import TypeOverrides
from support.messages import canal
from support.moved_keys import moving
from support.roundtrip import error_of
from support.shop_tables import MESSAGES
from support.swap_streams import SwapStream
from sync.outputs.test_reject_cipher import PRIVATE, PUBLIC


def test_the_state_of_a_pipeline_is_not_that_of_one_into_another_lake(tmp_path: Path):
    """Everything that was written before would be missing there."""
    job = job_of(tmp_path, "Delta Lake at /a")
    assert job_of(tmp_path, "Delta Lake at /a") == job
    expected = (
        f"{tmp_path}: expected the state of a pipeline into Delta Lake at /b, got that of one into Delta Lake at /a"
    )
    assert error_of(job_of, tmp_path, "Delta Lake at /b") == expected


def test_a_damaged_folder_of_a_job_is_told(tmp_path: Path):
    """As all else that is damaged there."""
    job_of(tmp_path, "Delta Lake at /a")
    stated = json.loads((tmp_path / "job.json").read_text())
    (tmp_path / "job.json").write_text(json.dumps({**stated, "folder": 5}))
    assert error_of(job_of, tmp_path, "Delta Lake at /a") == f"{tmp_path}/job.json: expected what tells a job, got int"


def test_hadoops_name_of_s3_is_that_of_the_same_lake(tmp_path: Path):
    """So that one runner goes on with what the other has begun, whichever of them each is told."""
    job = job_of(tmp_path, 'Delta Lake at s3a://b/l, form = "soft"')
    assert job_of(tmp_path, 'Delta Lake at s3://b/l/, form = "soft"') == job
    for other in ("s3://b/m", "s3://c/l", "gs://b/l"):
        with pytest.raises(FileError, match=f"a pipeline into Delta Lake at {other}, form"):
            job_of(tmp_path, f'Delta Lake at {other}, form = "soft"')


@pytest.mark.slow
@pytest.mark.parametrize(("producer", "sink", "size"), [("canal", "delta", 188), ("debezium", "iceberg", 80)])
def test_the_tables_of_the_shop_are_those_of_the_server(job, producer: str, sink: str, size: int):
    """Every table that there is in the end, by its rows; statements, moved keys and TRUNCATE between them."""
    made = job(sink)
    messages = MESSAGES[producer]()
    for i in range(0, len(messages), size):
        made.send(*messages[i : i + size])
    reports = made.run(formats=Formats(producer))
    assert [report.counts["read"] for report in reports] == [
        len(messages[i : i + size]) for i in range(0, len(messages), size)
    ]
    assert all(not report.counts["rejected"] and not report.waiting for report in reports)
    made.check_shop(producer)


@pytest.mark.every_spark
@pytest.mark.classic
def test_a_run_goes_on_where_the_one_before_stopped(job):
    """Tables, versions and clocks are known again; what was read is not read twice."""
    made = job(is_changelog=True)
    made.send(canal("INSERT", [{"id": "1", "a": "1"}], id=1), canal("INSERT", [{"id": "2", "a": "1"}], id=2))
    (first,) = made.run()
    assert made.run() == []
    made.send(
        canal("UPDATE", [{"id": "1", "a": "5"}], id=3, old=[{"a": "1"}]), canal("DELETE", [{"id": "2", "a": "1"}], id=4)
    )
    (second,) = made.run()
    assert (first.number, second.number) == (0, 1)
    assert first.counts == {"read": 2, "written": 2, "rejected": 0, "statements": 0, "left out": 0, "tombstones": 0}
    assert second.operations == {"d.t": {"u": 1, "d": 1}}
    assert made.rows("d.t", "id", "a") == [(1, 5)]
    log = made.rows("d.t", "_cdc_op", "id", "a", suffix="changes")
    assert log == [("b", 1, 1), ("c", 1, 1), ("c", 2, 1), ("d", 2, 1), ("u", 1, 5)]


def test_what_is_no_message_or_fits_no_table_is_a_reject_with_its_bytes_and_place(job):
    """The others of its batch are written, and read = written + rejected + statements."""
    made = job()
    good = canal("INSERT", [{"id": "1", "a": "1"}], id=1)
    other = canal("INSERT", [{"id": "2", "a": "x"}], id=3, table="", database="")
    statement = canal("ALTER", [], id=4, isDdl=True, sql="ALTER TABLE t FROBNICATE", data=None)
    made.send(good, b"\xff{", other, statement)
    (report,) = made.run(formats=Formats("canal"))
    assert report.counts == {"read": 4, "written": 1, "rejected": 3, "statements": 0, "left out": 0, "tombstones": 0}
    lines = [
        json.loads(line) for path in sorted((made.folder / "state" / "rejects").rglob("*.json")) for line in path.open()
    ]
    found = {reject["line"]: reject for reject in lines}
    assert {line: b64decode(reject["raw"]) for line, reject in found.items()} == {2: b"\xff{", 3: other, 4: statement}
    assert all(reject["file"].endswith("0000.jsonl") and reject["format"] == "canal" for reject in lines)
    assert all(reject["time"].endswith("+00:00") for reject in lines)
    assert "UTF-8" in found[2]["reason"]
    places = {one.place for one in report.rejects}
    assert places == {f"{made.folder}/in/0000.jsonl line {line}" for line in (2, 3, 4)}
    assert sum(one.count for one in report.rejects) == 3
    assert all(one.format == "canal" and one.reason and one.example for one in report.rejects)
    assert "FROBNICATE" in found[4]["reason"] or "statement" in found[4]["reason"]
    assert made.rows("d.t", "id") == [(1,)]


def test_rejects_that_differ_in_values_alone_have_one_reason(job):
    """It says no value; its example is that of one of them, and how many there are is counted."""
    made = job()
    made.send(
        canal("INSERT", [{"id": "1", "a": "1"}], id=1),
        *[canal("INSERT", [{"id": str(i), "a": f"<b>{i}</b>"}], id=i) for i in range(2, 9)],
        *[f"no {i} message".encode() for i in range(3)],
        *[canal("INSERT", [{"id": "1"}] * i, id=9).replace(b"}]", b"}, 5]") for i in range(1, 3)],
    )
    (report,) = made.run(formats=Formats("canal"), options={"on_misfit": "reject"})
    found = {one.path: (one.count, one.reason) for one in report.rejects}
    assert {path: count for path, (count, _) in found.items()} == {"$.after.a": 7, "$": 3, "$.data[*]": 2}
    assert not set("0123456789<") & set("".join(reason for _, reason in found.values()))
    assert "…" in found["$"][1]
    examples = [one.example for one in report.rejects]
    assert any("<b>2</b>" in example for example in examples)
    account = read_account(made.folder / "state")
    assert [(one.path, one.count) for one in account.rejects] == [("$.after.a", 7), ("$", 3), ("$.data[*]", 2)]


def test_reasons_of_equally_many_rejects_are_in_the_order_of_their_texts(job):
    """Behind those of more, so that both runners say them, and leave out the last of very many, alike."""
    made, names = job(), ["table", "sqlType", "database", "mysqlType", "sql"]
    broken = [canal("INSERT", [{"id": "1"}], id=1, **{name: [[5]]}) for name in names]
    made.send(*broken, b"no message", broken[0])
    (report,) = made.run(formats=Formats("canal"))
    found = [(one.count, one.path) for one in report.rejects]
    assert found[0] == (2, "$.table")
    assert found[1:] == [(1, one) for one in sorted(path for _, path in found[1:])]
    assert len(found) > 4


def test_the_account_of_a_pipeline_is_that_of_all_its_runs(job):
    """Versions with their statements, rows by table, what was left to read; a batch that is run again is in it once."""
    made = job()
    made.send(canal("INSERT", [{"id": "1", "a": "1"}], id=1))
    made.send(canal("ALTER", [], id=2, isDdl=True, sql="ALTER TABLE t ADD b INT"))
    (first, second) = made.run()
    assert (first.lag, second.lag) == ((1, "files"), (0, "files"))
    shutil.rmtree(made.folder / "state" / "checkpoint" / "commits")
    made.send(canal("INSERT", [{"id": "2", "a": "1", "b": "2"}], id=3))
    made.run()
    account = read_account(made.folder / "state")
    assert account.rows == {"d.t": {"c": 2}}
    assert (account.counts["read"], account.counts["statements"]) == (3, 1)
    assert [point.last for point in account.points] == [0, 1, 2]
    assert account.points[-1].lag == 0
    added = next(one for one in account.versions if one.statement)
    assert (added.table, added.version, added.statement, added.since) == (
        "d.t",
        2,
        "ALTER TABLE t ADD b INT",
        1_700_000_002,
    )
    assert added.steps == ["column 'b' added: null in older rows"]


@pytest.mark.slow
def test_rejects_are_read_again_once_at_their_place_in_the_order(job):
    """A later change of the same row still wins; what was a reject for a value is a row now, and none is there twice."""
    made = job(is_changelog=True)
    made.send(
        canal("INSERT", [{"id": "1", "a": "1"}], id=1),
        canal("UPDATE", [{"id": "1", "a": "x"}], id=2, old=[{"a": "1"}]),
        canal("INSERT", [{"id": "2", "a": "y"}], id=3),
        canal("UPDATE", [{"id": "1", "a": "3"}], id=4, old=[{"a": "x"}]),
    )
    (first,) = made.run(formats=Formats("canal"), options={"on_misfit": "reject"})
    assert first.counts["rejected"] == 3
    rejects, again = made.folder / "state" / "rejects", made.folder / "state" / "replay"
    assert len(replay(rejects, again)) == 1
    (again / "foreign.json").write_text('{"raw": "?"}\nno JSON\n')
    (second,) = made.run(formats=Formats("canal"))
    assert (second.counts["read"], second.counts["written"], second.counts["rejected"]) == (5, 3, 2)
    assert len(replay(rejects, again)) == 1
    assert made.rows("d.t", "id", "a", "_cdc_unparsed['a']") == [(1, 3, None), (2, None, "y")]
    log = made.rows("d.t", "_cdc_order", "_cdc_op", "id", "a", suffix="changes")
    assert [row[1:] for row in log if row[1] != "b"] == [("c", 1, 1), ("u", 1, None), ("c", 2, None), ("u", 1, 3)]
    with pytest.raises(FileError, match="expected rejects of a batch, got none: no batch has rejects left to replay"):
        replay(rejects, again)


@pytest.mark.slow
def test_a_message_for_which_where_cannot_be_decided_is_a_reject_that_is_read_again_at_its_place(job):
    """Those around it are written. Under a rule that decides, all is as if it had never been a reject, or it is one again."""
    made = job(is_changelog=True)
    messages = [
        canal("INSERT", [{"id": "1", "a": "1"}], id=1),
        canal("INSERT", [{"id": "2", "a": "many"}], id=2),
        canal("UPDATE", [{"id": "2", "a": "7"}], id=3, old=[{"a": "many"}]),
        canal("INSERT", [{"id": "3", "a": "lots"}], id=4),
        canal("INSERT", [{"id": "4", "a": "0"}], id=5),
        *[canal("INSERT", [{"id": str(i), "a": "1"}], id=i) for i in range(6, 9)],
    ]
    made.send(*messages)
    (first,) = made.run(rules=(RowRule("d.t", where="a > 0"),))
    assert [first.counts[name] for name in ("read", "written", "left out", "rejected")] == [8, 5, 1, 2]
    assert made.rows("d.t", "id", "a") == [(1, 1), (2, 7), (6, 1), (7, 1), (8, 1)]
    rejects, again = made.folder / "state" / "rejects", made.folder / "state" / "replay"
    lines = [json.loads(line) for path in sorted(rejects.rglob("*.json")) for line in path.open()]
    assert [(one["line"], b64decode(one["raw"])) for one in lines] == [(2, messages[1]), (4, messages[3])]
    assert all("expected a value of the column a in a row of d.t" in one["reason"] for one in lines)
    assert not any("many" in one["reason"] or "lots" in one["reason"] for one in lines)
    replay(rejects, again)
    (second,) = made.run(rules=(RowRule("d.t", where="a > 0"),))
    assert [second.counts[name] for name in ("read", "written", "rejected")] == [2, 0, 2]
    replay(rejects, again)
    (third,) = made.run(rules=(RowRule("d.t", where="id > 0"),))
    assert [third.counts[name] for name in ("read", "written", "rejected")] == [2, 2, 0]
    assert made.rows("d.t", "id", "a") == [(1, 1), (2, 7), (3, None), (6, 1), (7, 1), (8, 1)]
    log = made.rows("d.t", "_cdc_order", "_cdc_op", "id", suffix="changes")
    ids = [row[2] for row in log if row[1] != "b"]
    assert ids == [1, 2, 2, 3, 6, 7, 8]


def test_a_function_decides_which_rows_are_written_and_its_errors_are_rejects(job):
    """It may be a lambda; a reject names it, and the exception."""
    made = job(is_changelog=True)
    made.send(
        *[canal("INSERT", [{"id": str(i), "a": str(i % 2)}], id=i) for i in range(1, 5)],
        canal("INSERT", [{"id": "5", "a": None}], id=5),
        canal("UPDATE", [{"id": "1", "a": "0"}], id=6, old=[{"a": "1"}]),
        canal("INSERT", [{"id": "6", "a": "many"}], id=7),
    )
    (report,) = made.run(rules=(RowRule("d.t", where=lambda row: row["a"] > 0),))
    assert [report.counts[name] for name in ("read", "written", "left out", "rejected")] == [7, 3, 2, 2]
    assert made.rows("d.t", "id", "a") == [(3, 1)]
    lines = [json.loads(line) for path in (made.folder / "state" / "rejects").rglob("*.json") for line in path.open()]
    reasons = {one["line"]: one["reason"] for one in lines}
    assert "<lambda>, by which where decides for a row of d.t, got the exception TypeError" in reasons[5]
    assert "a value of the column a in a row of d.t, by which where decides" in reasons[7]


@pytest.mark.slow
def test_encrypted_rejects_are_read_again_with_the_key(job):
    """And are rejects again without it, whose bytes are not lost."""
    made = job()
    bad, own = (
        canal("INSERT", [{"id": "1", "a": "canary"}], id=1),
        {"rejects_raw": "encrypt", "rejects_public_key": PUBLIC},
    )
    made.send(bad, canal("INSERT", [{"id": "2", "a": "5"}], id=2))
    (first,) = made.run(**own, options={"on_misfit": "reject"})
    assert (first.counts["written"], first.counts["rejected"]) == (1, 1)
    rejects, again = made.folder / "state" / "rejects", made.folder / "state" / "replay"
    (line,) = [json.loads(line) for path in rejects.rglob("*.json") for line in path.open()]
    assert RejectCipher.of_private(PRIVATE).decrypt(b64decode(line["raw"]), RAW) == bad
    replay(rejects, again)
    (second,) = made.run(**own)
    assert (second.counts["read"], second.counts["rejected"]) == (1, 1)
    assert "expected rejects_private_key, the key by which" in second.rejects[0].example
    replay(rejects, again)
    (third,) = made.run(**own, rejects_private_key=PRIVATE)
    assert (third.counts["written"], third.counts["rejected"]) == (1, 0)
    assert made.rows("d.t", "id", "a") == [(1, None), (2, 5)]


@pytest.mark.slow
@pytest.mark.parametrize("has_state", [True, False])
def test_a_row_that_moves_to_another_key_and_is_stated_in_part_is_a_reject_of_a_current_state(job, *, has_state: bool):
    """Until somebody completes it: then it stands where it came in the order, and a changelog alone takes it as it is."""
    made = job(is_current=has_state, is_changelog=True)
    (insert, part), (_, whole) = moving("goldengate", "note"), moving("goldengate")
    later = (
        part.replace(b"0002", b"0003").replace(b'"n": 1', b'"n": 5').replace(b'"before": {"id": 7}', b'"tokens": {}')
    )
    own = {"formats": Formats("goldengate")}
    for message in (insert, part, later):
        made.send(message)
    reports = made.run(**own)
    assert [report.counts["rejected"] for report in reports] == [0, int(has_state), 0]
    if not has_state:
        log = made.rows("d.t", "_cdc_order", "_cdc_op", "id", "n", "note", suffix="changes")
        assert [row[1:] for row in log] == [
            ("c", "7", "1", "long"),
            ("d", "7", None, None),
            ("c", "8", "1", None),
            ("u", "8", "5", None),
        ]
        return
    assert made.rows("d.t", "id", "n", "note") == [("7", "1", "long"), ("8", "5", None)]
    rejects, again = made.folder / "state" / "rejects", made.folder / "state" / "replay"
    (folder,) = replay(rejects, again)
    (path,) = folder.glob("*.json")
    reject = json.loads(path.read_text())
    assert b64decode(reject["raw"]) == part
    assert "all columns of d.t in a row that an update puts under another key" in reject["reason"]
    assert reject["reason"].endswith("got none for 'note'")
    path.unlink()  # Spark has a checksum of it
    (folder / "completed.json").write_text(json.dumps(reject | {"raw": b64encode(whole).decode()}) + "\n")
    assert [report.counts["written"] for report in made.run(**own)] == [1]
    assert made.rows("d.t", "id", "n", "note") == [("8", "5", "long")]


def test_patterns_and_types_that_nothing_had_are_told(job):
    """A table that is left out, was renamed, or is gone has fitted; so has a column of an older version."""
    types = {
        "d.t": {"a": "bigint", "A": "int", "b": "int", "amuont": "int"},
        "old": {"id": "int"},
        "d.tt": {"a": "int"},
        "*": {"a": "int", "nono": "int"},
    }
    own = {
        "chosen": Chosen(include=("d.*", "d.t", "shop.*", "it's"), exclude=("u", "v*")),
        "options": {"zone": UTC, "given": TypeOverrides.from_mapping(types)},
        "rules": (
            RowRule("t", ("a", "N"), {"amial": Constant("*")}, where="id > 0"),
            RowRule("olt", ("a",)),
            RowRule("new", ("A", "B"), where="x > 0"),
        ),
        "rejects_raw": "omit",
    }
    made = job()
    assert made.pipeline(**own).unmatched == []
    made.send(
        canal("INSERT", [{"id": "1", "a": "1"}], id=1, table="old"),
        canal("RENAME", [], id=2, isDdl=True, sql="RENAME TABLE old TO new", table="new"),
        canal("INSERT", [{"id": "1", "a": "1", "b": "1"}], id=3),
        canal("ALTER", [], id=4, isDdl=True, sql="ALTER TABLE t DROP b"),
        canal("INSERT", [{"id": "1"}], id=5, table="u"),
    )
    (report,) = made.run(**own)
    said = made.pipeline(**own).unmatched
    assert report.notes == [one for one in said if one.startswith("[[table]]")]
    assert said == [
        "include in [tables]: no table fits 'shop.*' so far",
        'include in [tables]: no table fits "it\'s" so far',
        "exclude in [tables]: no table fits 'v*' so far",
        "[tables.types]: no column of 'd.t' is called 'amuont' so far",
        "[tables.types]: no table is called 'd.tt' so far: did you mean d.t?",
        "[tables.types]: no column of any table is called 'nono' so far",
        "[[table]] of match = 't': no column is called 'N' so far",
        "[[table]] of match = 't': no column is called 'amial' so far",
        "[[table]]: no table fits 'olt' so far, so its rule protects nothing: did you mean old?",
        "[[table]] of match = 'new': no column is called 'B' so far",
        "[[table]] of match = 'new': no column is called 'x' so far",
    ]


def test_types_are_given_for_a_table_of_one_schema(job):
    """Each of two tables of one name has its own, and a name of three parts that no table has is told."""
    types = {
        "d.public.t": {"a": "int"},
        "d.audit.t": {"a": "text", "amuont": "int"},
        "d.publik.t": {"a": "int"},
    }
    own = {"formats": Formats("debezium"), "options": {"given": TypeOverrides.from_mapping(types)}}
    made = job()
    for lsn, (schema, sent) in enumerate({"public": 5, "audit": "five"}.items(), 1):
        source = {"connector": "postgresql", "db": "d", "schema": schema, "table": "t", "lsn": lsn, "ts_ms": lsn}
        made.send(json.dumps({"before": None, "after": {"a": sent}, "source": source, "op": "c"}).encode())
    reports = made.run(**own)
    assert sum(report.counts["written"] for report in reports) == 2
    assert made.rows("d.public.t", "a", suffix="changes") == [(5,)]
    assert made.rows("d.audit.t", "a", suffix="changes") == [("five",)]
    assert made.pipeline(**own).unmatched == [
        "[tables.types]: no column of 'd.audit.t' is called 'amuont' so far",
        "[tables.types]: no table is called 'd.publik.t' so far: did you mean d.public.t?",
    ]


def test_values_that_are_kept_as_text_are_counted_and_one_is_shown(job):
    """Those of tables that are wanted, once, however often their messages are converted; the account has them all."""
    made, own = job(), {"chosen": Chosen(exclude=("u",)), "formats": Formats("canal")}
    long = "9" * 500
    made.send(
        canal("INSERT", [{"id": "1", "a": "x"}], id=1, table="u"),
        canal("INSERT", [{"id": "1", "a": "5"}], id=2),
        canal("INSERT", [{"id": "2", "a": f"it's {long}"}, {"id": "3", "a": "y"}], id=3),
        canal("ALTER", [], id=4, isDdl=True, sql="ALTER TABLE t ADD b INT"),
        canal("UPDATE", [{"id": "3", "a": "z", "b": "1"}], id=5, old=[{"a": "y"}]),
    )
    made.send(
        canal("INSERT", [{"id": "9", "a": "w", "b": "1"}], id=6),
        canal("INSERT", [{"id": "8", "a": "1", "b": "1"}], id=7),
    )
    first, second = made.run(**own)
    assert (first.unparsed.count, second.unparsed) == (4, Unparsed(1, "d.t.a: 'w'"))
    assert first.unparsed.example.startswith("d.t.a: \"it's 999")
    assert len(first.unparsed.example) < 200
    assert read_account(made.folder / "state").unparsed == Unparsed(5, first.unparsed.example)
    assert made.rows("d.t", "id", "a") == [(1, 5), (2, None), (3, None), (8, 1), (9, None)]


@pytest.mark.parametrize(
    ("type", "values", "said"),
    [
        ("date", ["2024-02-29", "0000-00-00"], "'0000-00-00'"),
        (
            "timestamp",
            ["2024-02-29 10:00:00"],
            "'2024-02-29 10:00:00' (a time without a zone needs that of the source: --zone, or zone in [tables])",
        ),
        ("timestamp", ["infinity"], "'infinity'"),
    ],
)
def test_the_value_that_is_shown_is_one_that_did_not_fit_with_the_setting_that_lets_it(job, type, values, said):
    """Not another one of its column in the same message."""
    made = job()
    rows = [{"id": str(i), "a": value} for i, value in enumerate(values)]
    made.send(canal("INSERT", rows, id=1, mysqlType={"id": "int", "a": type}))
    (report,) = made.run(formats=Formats("canal"), options={"zone": None})
    assert report.unparsed.count == 1
    assert report.unparsed.example == f"d.t.a: {said}"


@pytest.mark.parametrize(
    ("sent", "said"),
    [("12.30", ' (a connector that sends decimals as texts needs decimals = "string" in [tables])'), (-0.0, "")],
)
def test_decimals_that_a_connector_sends_as_texts_name_the_setting(job, sent, said):
    """As a history of the schema says that they are decimals. A number that does not fit is none of them."""
    made = job()
    source = {"connector": "mysql", "name": "s", "db": "d", "table": "t", "ts_ms": 1}
    message = {"before": None, "after": {"id": 1, "a": sent}, "source": source, "op": "c", "ts_ms": 1}
    made.send(json.dumps(message).encode())
    given = TypeOverrides.from_mapping({"t": {"id": "int", "a": "decimal(10,2)"}})
    (report,) = made.run(formats=Formats("debezium"), options={"given": given})
    assert report.unparsed.example == f"d.t.a: '{sent}'{said}"


@pytest.mark.slow
@pytest.mark.parametrize("is_cut", [False, True])
def test_a_part_of_a_row_that_looks_like_one_from_before_a_column_was_added_leaves_that_column(job, *, is_cut: bool):
    """With `binlog_row_image` NOBLOB, by the engine and exactly; rows before the statement are as they were."""
    made = job()
    messages = [
        canal("INSERT", [{"id": "1", "a": "1"}], id=1),
        *[canal("UPDATE", [{"id": "1", "a": str(n)}], id=n, old=[{"a": str(n - 1)}]) for n in range(2, 5)],
        canal("ALTER", [], id=5, isDdl=True, sql="ALTER TABLE t ADD b INT DEFAULT 7"),
        canal("UPDATE", [{"id": "1", "a": "4", "b": "9"}], id=6, old=[{"b": "7"}]),
        *[canal("UPDATE", [{"id": "1", "a": str(n)}], id=n, old=[{"a": "0"}]) for n in range(7, 11)],
        canal("INSERT", [{"id": "2", "a": "1"}], id=11),
    ]
    for some in [[one] for one in messages] if is_cut else [messages]:
        made.send(*some)
    assert sum(report.counts["written"] for report in made.run()) == len(messages) - 1
    assert made.rows("d.t", "id", "a", "b") == [(1, 10, 9), (2, 1, 7)]


@pytest.mark.slow
@pytest.mark.parametrize("types", [{}, {"t": {"id": "int", "a": "text", "late": "text"}}], ids=["untyped", "typed"])
@pytest.mark.parametrize("size", [1, 2, 30])
def test_a_column_that_only_a_placeholder_has_named_is_one_however_batches_are_cut(job, size: int, types):
    """Its values are absent until an older message has one; by the engine, too, for which ten messages are alike."""
    made, word = job(), "__debezium_unavailable_value"
    rows = [{"id": 1, "a": word}, *[{"id": n, "a": "own"} for n in range(2, 12)], {"id": 2, "a": word, "late": word}]
    rows += [{"id": n, "a": word, "late": word} for n in range(3, 12)]
    messages = []
    for lsn, row in enumerate(rows, 5):
        source = {"connector": "postgresql", "db": "d", "schema": "public", "table": "t", "lsn": lsn, "ts_ms": lsn}
        value = {"before": None, "after": row, "source": source, "op": "u", "ts_ms": lsn}
        record = {"topic": "s.public.t", "partition": 0, "offset": lsn, "key": {"id": row["id"]}, "value": value}
        messages.append(json.dumps(record).encode())
    for i in range(0, len(messages), size):
        made.send(*messages[i : i + size])
    reports = made.run(formats=Formats("debezium"), options={"given": TypeOverrides.from_mapping(types)})
    assert [reason.example for report in reports for reason in report.rejects] == []
    assert sum(report.counts["written"] for report in reports) == len(rows)
    known = [(n, "own", None) for n in range(2, 12)]
    assert made.rows("d.public.t", "CAST(id AS INT) AS id", "a", "late") == [(1, None, None), *known]


@pytest.mark.parametrize("has_state", [True, False])
def test_a_row_with_null_in_its_key_is_a_reject_of_a_current_state(job, *, has_state: bool):
    """All rows with NULL there would be one row; a changelog has them all. Rows beside them are written."""
    made = job(is_current=has_state, is_changelog=True)
    keys: dict[str, Any] = {"pkNames": ["id", "part"]}
    rows: list[dict[str, Any]] = [{"id": "1", "part": str(n), "a": "1"} for n in range(3)]
    nulls = [{"id": "1", "part": None, "a": str(n)} for n in range(3)]
    messages = [canal("INSERT", [row], id=i, **keys) for i, row in enumerate(rows[:2], 1)]
    messages += [canal("INSERT", [row], id=i, **keys) for i, row in enumerate(nulls, 3)]
    messages += [
        canal("UPDATE", [nulls[1]], id=6, old=[{"a": "0"}], **keys),
        canal("DELETE", [nulls[1]], id=7, **keys),
        canal("UPDATE", [rows[0]], id=8, old=[{"part": None}], **keys),
        canal("INSERT", [rows[2]], id=9, **keys),
    ]
    made.send(*messages)
    (report,) = made.run()
    assert (report.counts["written"], report.counts["rejected"]) == ((3, 6) if has_state else (9, 0))
    log = made.rows("d.t", "part", "a", suffix="changes")
    assert len([row for row in log if row[0] is None]) == (0 if has_state else 7)
    if has_state:
        assert made.rows("d.t", "part", "a") == [(0, 1), (1, 1), (2, 1)]
        (reason,) = report.rejects
        sentence = "expected no NULL in the key of d.t, which tells its rows apart, got null for 'part'"
        assert (reason.path, reason.count, reason.example) == ("$.key", 6, sentence)


@pytest.mark.slow
@pytest.mark.parametrize("sink", ["delta", "iceberg"])
def test_values_that_are_no_finite_numbers_are_those_of_the_lake(job, sink: str):
    """By their names in texts; what is no number is kept as text, also a name in another spelling."""
    made, types = job(sink, is_changelog=True), {"id": "int", "d": "double", "f": "float"}
    rows = [("1.5", "1.5"), ("NaN", "Infinity"), ("-Infinity", "NaN"), ("nan", "-inf"), (None, "2")]
    made.send(
        *[canal("INSERT", [{"id": str(i), "d": d, "f": f}], id=i, mysqlType=types) for i, (d, f) in enumerate(rows)]
    )
    made.send(canal("UPDATE", [{"id": "0", "d": "Infinity", "f": "1.5"}], id=9, mysqlType=types, old=[{"d": "1.5"}]))
    reports = made.run()
    assert [(report.waiting, report.unparsed.count) for report in reports] == [({}, 2), ({}, 0)]
    inf = float("inf")
    shown = {(0, inf, 1.5), (1, None, inf), (2, -inf, None), (3, None, None), (4, None, 2.0)}
    for suffix, more in (("", set()), ("changes", {(0, 1.5, 1.5)})):
        found = made.rows("d.t", "id", "d", "f", suffix=suffix)
        assert {(row[0], *(None if one != one else one for one in row[1:])) for row in found} == shown | more  # noqa: PLR0124
        assert {row[0]: [one is not None and one != one for one in row[1:]] for row in found if row[0] in (1, 2)} == {  # noqa: PLR0124
            1: [True, False],
            2: [False, True],
        }


def test_rows_with_null_in_a_key_that_came_late_are_in_the_changelog(job):
    """Their table has no current state."""
    made = job()
    made.send(canal("INSERT", [{"id": "1"}], id=1, pkNames=None), canal("INSERT", [{"id": "2"}], id=2))
    null: dict[str, Any] = {"id": None}
    made.send(canal("INSERT", [null], id=3))
    assert [report.counts["rejected"] for report in made.run()] == [0, 0]
    assert made.rows("d.t", "id", suffix="changes") == [(None,), (1,), (2,)]


def test_rejects_of_a_batch_that_is_not_done_are_not_read_again(job):
    """It writes them again when it is run again, so they would be there twice."""
    made = job()
    made.send(b"x")
    made.run()
    made.send(b"y")
    made.run()
    rejects, again, commits = (made.folder / "state" / name for name in ("rejects", "replay", "checkpoint/commits"))
    (commits / "1").unlink()
    (commits / ".1.crc").unlink(missing_ok=True)
    assert [path.name.partition("-")[0] for path in replay(rejects, again)] == ["batch=0"]
    with pytest.raises(FileError, match="expected rejects, got those of a batch that is not done"):
        replay(rejects, again)
    found = made.run()
    assert [report.number for report in found] == [1, 2]
    lines = [line for path in rejects.rglob("*.json") for line in path.open()]
    assert sorted(b64decode(json.loads(line)["raw"]) for line in lines) == [b"x", b"y"]


def test_a_file_of_long_ago_is_read_too(job):
    """It is much older than those that were read before it."""
    made = job()
    made.send(canal("INSERT", [{"id": "1"}], id=1))
    made.run()
    made.send(canal("INSERT", [{"id": "2"}], id=2))
    os.utime(made.folder / "in" / "0001.jsonl", (1_600_000_000,) * 2)
    made.run()
    assert made.rows("d.t", "id") == [(1,), (2,)]


@pytest.mark.every_spark
@pytest.mark.classic
def test_packed_files_and_byte_order_marks_are_read_as_elsewhere(job):
    """By endings and first bytes; a mark at the start is said, and the statement behind it is not lost."""
    made, mark = job(), b"\xef\xbb\xbf"
    statement = canal("CREATE", [], id=1, isDdl=True, sql="CREATE TABLE t (id int PRIMARY KEY, a decimal(5,2))")
    rows = [canal("INSERT", [{"id": str(i), "a": "1.50"}], id=i + 2, mysqlType=None) for i in range(6)]
    packs = {
        "a.jsonl": bytes,
        "b.zst": _zstd,
        "c.jsonl": _zstd,
        "d": gzip.compress,
        "e.gz": gzip.compress,
        "f.ZSTD": _zstd,
    }
    (made.folder / "in").mkdir()
    for i, (name, pack) in enumerate(packs.items()):
        first = [statement] if i == 0 else [b"{"]
        path = made.folder / "in" / name
        path.write_bytes(pack(mark + b"\n".join([*first, rows[i], mark + b"x"])))
        os.utime(path, (1_700_000_000 + i,) * 2)
    reports = made.run(formats=Formats("canal"))
    sentence = "a byte order mark at the start is skipped"
    assert [report.notes for report in reports] == [[f"{made.folder}/in/{name}: {sentence}"] for name in packs]
    assert [report.lag for report in reports] == [(left, "files") for left in reversed(range(len(packs)))]
    assert made.rows("d.t", "id", "CAST(a AS STRING)") == [(i, "1.50") for i in range(6)]
    found = (json.loads(line) for path in Path(made.folder).glob("state/rejects/**/*.json") for line in path.open())
    rejects = sorted((Path(one["file"]).name, one["line"], b64decode(one["raw"])) for one in found)
    later = [(name, line, raw) for name in packs for line, raw in ((1, b"{"), (3, mark + b"x"))]
    assert rejects == later[1:]
    made.check()


def test_a_damaged_packed_file_stops_the_stream(job):
    """It says which."""
    made = job()
    (made.folder / "in").mkdir()
    path, whole = made.folder / "in" / "a.zst", _zstd(canal("INSERT", [{"id": "1"}], id=1))
    path.write_bytes(whole[:-5])
    expected = f"{path}: expected a whole Zstandard file, got one that ends too early"
    assert error_of(made.run) == expected


def _zstd(raw: bytes) -> bytes:
    return pa.Codec("zstd").compress(raw, asbytes=True)


@pytest.mark.slow
@pytest.mark.parametrize("is_address", [False, True])
def test_a_file_that_changes_behind_its_reading_is_an_error(job, *, is_address: bool):
    """What is new elsewhere is read all the same; it goes on where what was added has a file of its own."""
    made = job()
    folder = made.folder / "in"
    made.source = Files(f"file://{folder}", most=1) if is_address else None
    made.send(canal("INSERT", [{"id": "1"}], id=1))
    made.run()
    made.send(canal("INSERT", [{"id": "2"}], id=2))
    with (folder / "0000.jsonl").open("ab") as file:
        file.write(canal("INSERT", [{"id": "3"}], id=3) + b"\n")
    said = f"{folder}/0000.jsonl: expected the file as it was when it was read"
    assert error_of(made.run).startswith(said)
    assert made.rows("d.t", "id") == [(1,), (2,)]
    lines = (folder / "0000.jsonl").read_bytes().splitlines()
    (folder / "0000.jsonl").rename(made.folder / "away")
    made.send(lines[1])
    made.run()
    assert made.rows("d.t", "id") == [(1,), (2,), (3,)]


def test_more_rejects_than_allowed_stop_the_stream_before_anything_is_written(job):
    """It goes on there once more are allowed."""
    made = job()
    made.send(canal("INSERT", [{"id": "1"}], id=1), b"x", b"y")
    with pytest.raises(JobError, match="batch 0 brings the rejects to 2 of 3 messages") as caught:
        made.run(max_rejects=MaxRejects(Fraction(1)))
    assert re.search(
        r"^2 such as .*0000[.]jsonl line [23]: [$]: expected JSON, got '[xy]'", str(caught.value), re.MULTILINE
    )
    assert not (made.folder / "lake").exists()
    (report,) = made.run(max_rejects=MaxRejects(Fraction(2)))
    assert (report.counts["written"], report.counts["rejected"]) == (1, 2)


@pytest.mark.slow
def test_a_table_that_refuses_its_rows_stops_alone_and_they_wait_for_it(job):
    """With `exception` a new column is refused; once it is allowed, no row is missing and none is there twice."""
    made = job(behavior=EXCEPTION, is_changelog=True)
    made.send(canal("INSERT", [{"id": "1", "a": "1"}], id=1))
    made.send(
        canal("INSERT", [{"id": "2", "a": "1", "b": "2"}], id=2), canal("INSERT", [{"id": "1"}], id=3, table="other")
    )
    made.send(canal("DELETE", [{"id": "1", "a": "1", "b": "3"}], id=4))
    reports = made.run()
    assert [list(report.waiting) for report in reports] == [[], ["d.t"], ["d.t"]]
    assert "column 'b' is added" in reports[1].waiting["d.t"]
    assert made.rows("d.other", "id") == [(1,)]
    assert made.rows("d.t", "id") == [(1,)]
    made.lake = {"is_changelog": True}
    made.send(canal("INSERT", [{"id": "3", "a": "1", "b": "2"}], id=5))
    (report,) = made.run()
    assert report.waiting == {}
    assert made.rows("d.t", "id", "b") == [(2, 2), (3, 2)]
    assert made.rows("d.t", "_cdc_op", "id", suffix="changes") == [("c", 1), ("c", 2), ("c", 3), ("d", 1)]
    assert not list((made.folder / "state" / "waiting").iterdir())


@pytest.mark.slow
@pytest.mark.every_spark
@pytest.mark.classic
def test_a_paused_table_waits_alone_and_is_whole_when_it_goes_on(job):
    """Its rows and statements are taken when it is resumed, once, also those of a batch that was run before it was paused."""
    made = job(is_changelog=True)
    made.send(canal("INSERT", [{"id": "1", "a": "1"}], id=1), canal("INSERT", [{"id": "1"}], id=2, table="other"))
    made.run()
    state = made.folder / "state"
    # Batch 0 was written, and is run again.
    shutil.rmtree(state / "checkpoint" / "commits")
    assert pause(state, ["d.t"], is_paused=True) == ["d.t"]
    made.send(
        canal("DELETE", [{"id": "1", "a": "1"}], id=3),
        canal("ALTER", [], id=4, isDdl=True, sql="ALTER TABLE t ADD b INT"),
        canal("INSERT", [{"id": "2", "a": "1", "b": "2"}], id=5),
        canal("INSERT", [{"id": "2"}], id=6, table="other"),
    )
    reports = made.run()
    assert [(report.waiting, report.pending) for report in reports] == [({}, {"d.t": 1}), ({}, {"d.t": 3})]
    assert (made.rows("d.t", "id"), made.rows("d.other", "id")) == ([(1,)], [(1,), (2,)])
    assert made.pipeline().waiting == 0
    assert made.run() == []
    assert pause(state, ["d.t"], is_paused=False) == []
    (report,) = made.run()
    assert (report.counts["read"], report.pending, report.waiting) == (0, {}, {})
    assert made.rows("d.t", "id", "b") == [(2, 2)]
    assert made.rows("d.t", "_cdc_op", "id", suffix="changes") == [("c", 1), ("c", 2), ("d", 1)]
    assert made.run() == []


@pytest.mark.slow
@pytest.mark.parametrize("sink", ["delta", "iceberg"])
def test_a_table_that_is_reset_has_what_is_read_from_then_on_alone(job, sink: str):
    """Also rows of a full load, which come before all changes; no change that waited or was begun, and no other table."""
    made, state = job(sink, is_changelog=True), job().folder / "state"
    made.send(
        canal("INSERT", [{"id": str(i), "a": "1"} for i in (1, 2, 3)], id=100),
        canal("DELETE", [{"id": "3", "a": "1"}], id=101),
        canal("INSERT", [{"id": "1"}], id=102, table="other"),
    )
    made.run()
    pause(state, ["d.t"], is_paused=True)
    made.send(canal("INSERT", [{"id": "4", "a": "1"}], id=103))
    made.run()
    pause(state, ["d.t"], is_paused=False)
    assert [*reset(state, ["d.t"])] == ["d.t"]
    assert [*reset(state, ["d.t"])] == ["d.t"]
    made.send(
        canal("INIT", [{"id": "2", "a": "7"}, {"id": "3", "a": "7"}], id=5),
        canal("UPDATE", [{"id": "3", "a": "8"}], id=6, old=[{"a": "7"}]),
    )
    # Batch 1 is run again, too.
    reports = made.run_again()
    said = [one for report in reports for one in report.steps]
    assert said == ["d.t: what it had is gone, by cdcavro sync reset"]
    assert made.rows("d.t", "id", "a") == [(2, 7), (3, 8)]
    assert made.rows("d.other", "id") == [(1,)]
    log = made.rows("d.t", "_cdc_order", "_cdc_op", "id", "a", suffix="changes")
    first = [("c", 1, 1), ("c", 2, 1), ("c", 3, 1), ("d", 3, 1), ("c", 4, 1)]
    assert [row[1:] for row in log] == [*first, ("t", None, None), ("r", 2, 7), ("r", 3, 7), ("b", 3, 7), ("u", 3, 8)]
    made.send(canal("DELETE", [{"id": "3", "a": "8"}], id=8))
    made.run_again()
    assert made.rows("d.t", "id", "a") == [(2, 7)]
    made.send(canal("TRUNCATE", [], id=9, isDdl=True, sql="TRUNCATE t"), canal("INSERT", [{"id": "5", "a": "1"}], id=9))
    made.run()
    assert made.rows("d.t", "id", "a") == [(5, 1)]
    reset(state, ["d.t"])
    (report,) = made.run()
    assert (report.counts["read"], made.rows("d.t", "id")) == (0, [])
    assert made.run() == []


@pytest.mark.every_spark
@pytest.mark.classic
@pytest.mark.parametrize(
    ("sink", "form"),
    [
        ("delta", CURRENT),
        *[
            pytest.param(*own, marks=pytest.mark.slow)
            for own in (("iceberg", CURRENT), ("delta", SOFT), ("delta", HISTORY), ("iceberg", HISTORY))
        ],
    ],
)
def test_a_reset_keeps_rows_until_they_are_read_again_or_it_is_finished(job, sink: str, form: str):
    """What is read overrules them whatever its order; those that are not read again go when the reset is finished."""
    made, state = job(sink, is_changelog=True, form=form), job().folder / "state"
    standing = {CURRENT: "true", SOFT: "NOT _cdc_is_deleted", HISTORY: "_cdc_end IS NULL"}[form]

    def found() -> list[tuple[Any, ...]]:
        return [row[:2] for row in made.rows("d.t", "id", "a", standing) if row[2]]

    made.send(
        canal("INSERT", [{"id": str(i), "a": "1"} for i in (1, 2, 3, 4, 5)], id=100),
        canal("DELETE", [{"id": "5", "a": "1"}], id=101),
    )
    made.run()
    orders = reset(state, ["d.t"], is_kept=True)
    assert reset(state, ["d.t"], is_kept=True) == orders
    assert made.run() == []
    assert found() == [(1, 1), (2, 1), (3, 1), (4, 1)]
    # A full load, then changes of a source whose numbers begin anew, and that are ordered by something else.
    tidb = {"commitTs": 7, "watermarkTs": None}
    made.send(canal("INIT", [{"id": "1", "a": "1"}, *({"id": i, "a": "7"} for i in "25")], id=5))
    made.send(canal("UPDATE", [{"id": "3", "a": "8"}], id=6, old=[{"a": "7"}], _tidb=tidb))
    made.send(canal("DELETE", [{"id": "2", "a": "7"}], id=7, _tidb={**tidb, "commitTs": 8}))
    assert [report.waiting for report in made.run_again()] == [{}] * 4
    assert found() == [(1, 1), (3, 8), (4, 1), (5, 7)]
    assert finish_reset(state, ["d.t"]) == ["d.t"]
    (report,) = made.run()
    assert report.steps == ["d.t: what it had is gone, by cdcavro sync reset"]
    assert found() == [(1, 1), (3, 8), (5, 7)]
    log = made.rows("d.t", "_cdc_order", "_cdc_op", "id", suffix="changes")
    assert [row[1] for row in log] == [*"cccccd", *"t", *"rrrbud"]
    assert [row[0] for row in log if row[1] == "t"] == [*orders.values()]
    said = error_of(finish_reset, state, ["d.t"])
    assert said == "d.t: expected a table that was reset with --keep, got one that was not"
    assert made.run_again() != []
    assert found() == [(1, 1), (3, 8), (5, 7)]


def _cut_off(monkeypatch: pytest.MonkeyPatch, run: Callable[[], object], owner: object, name: str) -> None:
    """Let a call end as if it had been killed where it calls a function."""

    def killed(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(owner, name, killed)
        with pytest.raises(KeyboardInterrupt):
            run()


@pytest.mark.slow
@pytest.mark.parametrize(("form", "standing"), [(CURRENT, "true"), (HISTORY, "_cdc_end IS NULL")])
def test_rows_are_kept_of_no_table_that_is_to_be_emptied_and_of_any_behind_a_reset_that_was_cut_off(
    job, monkeypatch: pytest.MonkeyPatch, form: str, standing: str
):
    """A state that does not know of the reset writes nothing behind it; a later reset empties all."""
    made, state = job(form=form), job().folder / "state"
    made.send(canal("INSERT", [{"id": str(i), "a": "1"} for i in (1, 2)], id=10))
    made.run()
    _cut_off(monkeypatch, lambda: reset(state, ["d.t"]), pipeline, "put_resets")
    reset(state, ["d.t"], is_kept=True)
    made.send(canal("INSERT", [{"id": "1", "a": "3"}], id=3))
    made.run()
    assert [row for row in made.rows("d.t", "id", "a", standing) if row[2]] == [(1, 3, True), (2, 1, True)]
    known = (state / "resets.json").read_bytes()
    (state / "resets.json").unlink()
    made.send(canal("INSERT", [{"id": "2", "a": "4"}], id=12))
    (report,) = made.run()
    assert report.waiting["d.t"].startswith("schema t: was reset 1 times, of which this state knows 0: ")
    (state / "resets.json").write_bytes(known)
    reset(state, ["d.t"])
    said = error_of(lambda: reset(state, ["d.t"], is_kept=True))
    assert said == "d.t: expected a table with rows to keep, got one that the next run empties"
    assert "one that was not" in error_of(finish_reset, state, ["d.t"])
    made.run()
    assert not any(is_standing for (is_standing,) in made.rows("d.t", standing))


@pytest.mark.slow
def test_a_table_that_stopped_waits_for_the_end_of_a_reset_that_keeps_its_rows(job):
    """Which of two changes that different things order is the later one, and what a row's new key is, is not known."""
    made, state, keys = job(), job().folder / "state", ["id", "a"]
    tidb = {"commitTs": 7, "watermarkTs": None}
    made.send(canal("INSERT", [{"id": "1", "a": "1"}], id=1, es=1000))
    made.run()
    made.send(canal("INSERT", [{"id": "2", "a": "1"}], id=2, es=1000, _tidb=tidb))
    made.run()
    reset(state, ["d.t"], is_kept=True)
    made.send(canal("INSERT", [{"id": "3", "a": "1"}], id=3, es=1000, _tidb=tidb))
    (report,) = made.run()
    assert ("numbers" in report.waiting["d.t"], made.rows("d.t", "id")) == (True, [(1,)])
    finish_reset(state, ["d.t"])
    (report,) = made.run()
    assert (report.waiting, made.rows("d.t", "id")) == ({}, [(3,)])
    reset(state, ["d.t"], is_kept=True)
    sql = "ALTER TABLE t DROP PRIMARY KEY, ADD PRIMARY KEY (id, a)"
    made.send(
        canal("ALTER", [], id=4, es=2000, isDdl=True, sql=sql),
        canal("INSERT", [{"id": "4", "a": "2"}], id=5, es=3000, pkNames=keys),
    )
    (report,) = made.run()
    assert "its key (id) is (id, a) from version 2 on" in report.waiting["d.t"]
    assert made.rows("d.t", "id") == [(3,)]
    finish_reset(state, ["d.t"])
    (report,) = made.run()
    assert (report.waiting, made.rows("d.t", "id")) == ({}, [(4,)])


@pytest.mark.slow
@pytest.mark.parametrize(
    ("owner", "name"),
    [
        (NativeDeltaTable, "delete_up_to"),
        (NativeTables, "_append"),
        (WaitingRows, "forget"),
        (JobState, "write"),
        (Batches, "_note"),
    ],
)
def test_a_reset_that_is_cut_off_is_as_one_that_is_not(job, monkeypatch: pytest.MonkeyPatch, owner: object, name: str):
    """Before it is written down it is none; behind that, the run that goes on ends it, once."""
    made = job(is_changelog=True)
    made.send(canal("INSERT", [{"id": "1", "a": "1"}], id=10))
    made.run()
    state = made.folder / "state"
    _cut_off(monkeypatch, lambda: reset(state, ["d.t"]), pipeline, "put_resets")
    made.send(canal("INSERT", [{"id": "2", "a": "1"}], id=11))
    made.run()
    assert made.rows("d.t", "id") == [(1,), (2,)]
    reset(state, ["d.t"])
    made.send(canal("INSERT", [{"id": "1", "a": "3"}], id=3))
    _cut_off(monkeypatch, made.run, owner, name)
    made.run()
    assert made.rows("d.t", "id", "a") == [(1, 3)]
    log = made.rows("d.t", "_cdc_order", "_cdc_op", "id", suffix="changes")
    assert [row[1:] for row in log] == [("c", 1), ("c", 2), ("t", None), ("c", 1)]
    made.run_again()
    assert made.rows("d.t", "id", "a") == [(1, 3)]


@pytest.mark.slow
def test_behind_a_reset_other_things_may_order_the_changes(job):
    """A table that stopped because its changes come from elsewhere now is ordered by what orders those behind it."""
    made = job()
    made.send(canal("INSERT", [{"id": "1", "a": "1"}], id=1))
    made.run()
    made.send(canal("INSERT", [{"id": "2", "a": "1"}], id=2, _tidb={"commitTs": 7, "watermarkTs": None}))
    (report,) = made.run()
    assert "numbers" in report.waiting["d.t"]
    reset(made.folder / "state", ["d.t"])
    made.send(canal("INSERT", [{"id": "3", "a": "1"}], id=3, _tidb={"commitTs": 8, "watermarkTs": None}))
    (report,) = made.run()
    assert (report.waiting, made.rows("d.t", "id")) == ({}, [(3,)])
    made.send(canal("INSERT", [{"id": "4", "a": "1"}], id=4))
    (report,) = made.run()
    assert "numbers" in report.waiting["d.t"]
    reset(made.folder / "state", ["d.t"])
    made.send(canal("INSERT", [{"id": "5", "a": "1"}], id=3, _tidb={"commitTs": 9, "watermarkTs": None}))
    (report,) = made.run()
    assert (report.waiting, made.rows("d.t", "id")) == ({}, [(5,)])


@pytest.mark.every_spark
@pytest.mark.classic
@pytest.mark.parametrize(
    ("sink", "form"),
    [
        ("delta", CURRENT),
        *[
            pytest.param(*own, marks=pytest.mark.slow)
            for own in (("iceberg", CURRENT), ("delta", SOFT), ("delta", HISTORY))
        ],
    ],
)
def test_a_table_that_a_key_change_stopped_begins_again_behind_its_reset(job, sink: str, form: str):
    """With the new key, in later runs as well, even if another column comes; a row of the old key stops it again."""
    made, state, keys = job(sink, is_changelog=True, form=form), job().folder / "state", ["id", "a"]
    made.send(canal("INSERT", [{"id": "1", "a": "1"}], id=1, es=1000))
    made.run()
    sql = "ALTER TABLE t DROP PRIMARY KEY, ADD PRIMARY KEY (id, a)"
    made.send(
        canal("ALTER", [], id=2, es=2000, isDdl=True, sql=sql),
        canal("INSERT", [{"id": "1", "a": "2"}], id=3, es=3000, pkNames=keys),
    )
    (report,) = made.run()
    assert "its key (id) is (id, a) from version 2 on" in report.waiting["d.t"]
    reset(state, ["d.t"])
    (report,) = made.run()
    assert (report.waiting, report.pending) == ({}, {})
    assert "d.t: what it had is gone, by cdcavro sync reset" in report.steps
    standing = {CURRENT: "true", SOFT: "NOT _cdc_is_deleted", HISTORY: "_cdc_end IS NULL"}[form]

    def found() -> list[tuple[Any, ...]]:
        return [row[:2] for row in made.rows("d.t", "id", "a", standing) if row[2]]

    assert found() == []
    rows = [{"id": "1", "a": str(i)} for i in (1, 2, 3)]
    made.send(canal("INSERT", rows, id=4, es=4000, pkNames=keys))
    made.run()
    made.send(
        canal("DELETE", rows[:1], id=5, es=5000, pkNames=keys),
        canal("INSERT", [{"id": "1", "a": "4", "b": "5"}], id=6, es=6000, pkNames=keys),
    )
    (report,) = made.run()
    assert report.waiting == {}
    assert found() == [(1, 2), (1, 3), (1, 4)]
    made.send(canal("INSERT", [{"id": "1", "a": "9"}], id=7, es=1500))
    (report,) = made.run()
    assert report.waiting == {"d.t": "schema t: has rows of version 1, whose key is not that of its current state"}
    reset(state, ["d.t"])
    (report,) = made.run()
    assert (report.waiting, found()) == ({}, [])


def test_a_lake_table_that_was_reset_takes_no_rows_of_a_state_that_does_not_know_it(job):
    """All of them would be taken for older ones, such as those of a copy of the state from before."""
    made = job()
    made.send(canal("INSERT", [{"id": "1", "a": "1"}], id=1))
    made.run()
    reset(made.folder / "state", ["d.t"])
    made.run()
    (made.folder / "state" / "resets.json").unlink()
    made.send(canal("INSERT", [{"id": "2", "a": "1"}], id=2))
    (report,) = made.run()
    assert report.waiting["d.t"].startswith("schema t: was reset 1 times, of which this state knows 0: ")


@pytest.mark.slow
@pytest.mark.parametrize(("form", "standing"), [(SOFT, "NOT _cdc_is_deleted"), (HISTORY, "_cdc_end IS NULL")])
def test_forms_that_keep_versions_pass_over_statements_and_end_rows_at_a_reset(job, form: str, standing: str):
    """A TRUNCATE and a DROP that are excluded end no row, a reset ends all; a state that does not know it is told so."""
    made = job(form=form, statements=StatementRules(excluded_kinds(None, ["truncate.table", "drop.table"])))
    made.send(
        canal("INSERT", [{"id": "1", "a": "1"}], id=1),
        canal("TRUNCATE", [], id=2, isDdl=True, sql="TRUNCATE t"),
        canal("ERASE", [], id=3, isDdl=True, sql="DROP TABLE t"),
        canal("INSERT", [{"id": "2", "a": "1"}], id=4),
    )
    made.run()
    assert made.rows("d.t", "id", standing) == [(1, True), (2, True)]
    reset(made.folder / "state", ["d.t"])
    made.send(
        canal("INSERT", [{"id": "2", "a": "1"}], id=1),
        canal("TRUNCATE", [], id=2, isDdl=True, sql="TRUNCATE t"),
    )
    made.run()
    assert [row for row in made.rows("d.t", "id", standing) if row[1]] == [(2, True)]
    (made.folder / "state" / "resets.json").unlink()
    made.send(canal("INSERT", [{"id": "3", "a": "1"}], id=2))
    (report,) = made.run()
    assert report.waiting["d.t"].startswith("schema t: was reset 1 times, of which this state knows 0: ")


def test_a_reset_waits_for_no_rules_and_is_one_of_lakes_alone(job):
    """What is said of columns may change with it."""
    made = job()
    made.send(canal("INSERT", [{"id": "1", "a": "1"}], id=1))
    made.run()
    reset(made.folder / "state", ["d.t"])
    rules = {"rules": (RowRule("t", ("a",)),), "rejects_raw": "omit"}
    made.send(canal("INSERT", [{"id": "2", "a": "2"}], id=2))
    (report,) = made.run(**rules)
    assert (report.waiting, made.rows("d.t", "id", "a")) == ({}, [(2, None)])
    path = made.folder / "state" / "job.json"
    path.write_text(path.read_text().replace("Delta Lake at ", "Avro files in "))
    said = error_of(reset, made.folder / "state", ["d.t"])
    assert "expected the state of a pipeline into a lake, got that of one into Avro files in " in said


@pytest.mark.every_spark
@pytest.mark.classic
@pytest.mark.parametrize("sink", ["delta", pytest.param("iceberg", marks=pytest.mark.slow)])
def test_statements_that_are_excluded_are_not_followed_and_rows_go_on(job, sink: str):
    """No column goes and none is renamed, no row is lost by a TRUNCATE; another table follows all, and so does a reset."""
    rules = StatementRules(frozenset(), (("d.t", excluded_kinds(["add.column"])),))
    made = job(sink, is_changelog=True, behavior="evolve", statements=rules)
    for table in ("t", "u"):
        made.send(
            canal(
                "CREATE",
                [],
                id=1,
                table=table,
                isDdl=True,
                sql=f"CREATE TABLE {table} (id INT PRIMARY KEY, a INT, b INT)",
            ),
            canal("INSERT", [{"id": "1", "a": "1", "b": "1"}], id=2, table=table),
        )
        made.send(
            canal("TRUNCATE", [], id=3, table=table, isDdl=True, sql=f"TRUNCATE TABLE {table}"),
            canal("ALTER", [], id=4, table=table, isDdl=True, sql=f"ALTER TABLE {table} DROP COLUMN b, ADD c INT"),
            canal("ALTER", [], id=5, table=table, isDdl=True, sql=f"ALTER TABLE {table} RENAME COLUMN a TO a2"),
            canal("INSERT", [{"id": "2", "a2": "2", "c": "2"}], id=6, table=table),
        )
    made.run()
    made.send(
        canal("ALTER", [], id=7, isDdl=True, sql="ALTER TABLE t ADD a INT"),
        canal("INSERT", [{"id": "3", "a2": "3", "c": "3", "a": "4"}], id=8),
        canal("INSERT", [{"id": "9", "a2": "9", "c": "9", "a": "9"}], id=9),
        canal("DELETE", [{"id": "9", "a2": "9", "c": "9", "a": "9"}], id=10),
    )
    (report,) = made.run()
    assert report.steps == ["d.t: column 'a (added 1)' is added"]
    rows = made.rows("d.t", "id", "a", "b", "c")
    assert rows == [(1, 1, 1, None), (2, 2, None, 2), (3, 3, None, 3)]
    assert made.rows("d.u", "id", "a2", "c") == [(2, 2, 2)]
    log = made.rows("d.t", "_cdc_order", "_cdc_op", "id", suffix="changes")
    assert [row[1:] for row in log] == [("c", 1), ("t", None), ("c", 2), ("c", 3), ("c", 9), ("d", 9)]
    reset(made.folder / "state", ["d.t"])
    made.send(canal("ERASE", [], id=11, isDdl=True, sql="DROP TABLE t"), canal("INSERT", [{"id": "4"}], id=12))
    made.run()
    assert made.rows("d.t", "id") == [(4,)]


@pytest.mark.slow
def test_rows_that_wait_of_tables_that_had_one_name_one_after_another_are_counted_together(job):
    """A paused table is dropped and made anew: the rows of both wait, and go into the same lake table in the end."""
    made = job()
    made.send(canal("INSERT", [{"id": "1"}], id=1))
    made.run()
    pause(made.folder / "state", ["d.t"], is_paused=True)
    made.send(
        canal("INSERT", [{"id": "2"}], id=2),
        canal("ERASE", [], id=3, isDdl=True, sql="DROP TABLE t"),
        canal("CREATE", [], id=4, isDdl=True, sql="CREATE TABLE t (id INT PRIMARY KEY)"),
        canal("INSERT", [{"id": "3"}], id=5),
    )
    (report,) = made.run()
    assert report.pending == {"d.t": 3}
    pause(made.folder / "state", ["d.t"], is_paused=False)
    made.run()
    assert made.rows("d.t", "id") == [(3,)]


@pytest.mark.slow
def test_tables_are_merged_with_every_nth_batch_and_at_the_end(job, monkeypatch: pytest.MonkeyPatch):
    """What a stopped run leaves waits for the next one; in the end each row is there, and in the changelog once."""
    made = job(is_changelog=True)
    for i in range(5):
        made.send(canal("INSERT", [{"id": str(i), "a": "1"}], id=3 * i), canal("INSERT", [{"id": "9"}], id=3 * i + 1))
    with monkeypatch.context() as patched:
        patched.setattr(Batches, "finish", lambda *_: None)
        reports = made.run(merge_every=2)
    assert ["write" in report.seconds for report in reports] == [True] * 5
    assert made.rows("d.t", "id") == [(0,), (1,), (2,), (3,), (9,)]
    assert made.pipeline().waiting == 1
    (last,) = made.run(merge_every=2)
    assert last.counts["read"] == 0
    assert made.rows("d.t", "id") == [(0,), (1,), (2,), (3,), (4,), (9,)]
    assert made.rows("d.t", "id", suffix="changes") == [(i,) for i in (0, 1, 2, 3, 4, *[9] * 5)]
    assert made.pipeline().waiting == 0
    assert made.run(merge_every=2) == []


@pytest.mark.slow
def test_another_pipeline_starts_from_what_one_remembers(job):
    """Where it stands in its source, and with its tables: rows are known of which no statement comes again."""
    first = job()
    first.send(
        canal("CREATE", [], id=1, isDdl=True, sql="CREATE TABLE t (id int PRIMARY KEY, a decimal(5,2))"),
        canal("INSERT", [{"id": "1", "a": "1.50"}], id=2, mysqlType=None),
    )
    assert first.run()[0].counts["rejected"] == 0
    other = first.folder / "other"
    for name in ("batches", "checkpoint"):
        shutil.copytree(first.folder / "state" / name, other / "state" / name)
    second = replace(
        first, folder=other, source=Files(str(first.folder / "in"), most=1), sink=DeltaLake(str(other / "lake"))
    )
    first.send(canal("INSERT", [{"id": "2", "a": "2.50"}], id=3, mysqlType=None))
    for made in (first, second):
        assert made.run()[0].counts["written"] == 1
    assert second.rows("d.t", "id", "CAST(a AS STRING)") == [(2, "2.50")]
    assert first.rows("d.t", "id") == [(1,), (2,)]


def test_tables_are_chosen_by_patterns(job):
    """What is left out is counted, and its statements are learned all the same."""
    made = job()
    made.send(*[canal("INSERT", [{"id": "1"}], id=i, table=name) for i, name in enumerate(("t", "tmp_x", "u"), 1)])
    (report,) = made.run(chosen=Chosen(include=("d.t*",), exclude=("tmp_*",)))
    assert (report.counts["written"], report.counts["left out"]) == (1, 2)
    assert list(report.operations) == ["d.t"]
    assert sorted(path.name for path in (made.folder / "lake" / "d").iterdir()) == ["t"]


@pytest.mark.slow
@pytest.mark.parametrize("exclude", [(), ("*._*",)])
def test_a_table_that_a_tool_swaps_for_its_copy_goes_on_with_the_columns_of_the_copy(job, exclude: tuple[str, ...]):
    """In three batches, whether the copy is read or left out; of its rows nothing is left."""
    made, stream = job(), SwapStream(35, "canal", "gh-ost")
    third = len(stream.messages) // 3
    for start in (0, third, 2 * third):
        made.send(*stream.messages[start : start + third if start < 2 * third else None])
    reports = made.run(formats=Formats("canal"), chosen=Chosen(exclude=exclude))
    assert [(one.counts["rejected"], one.waiting) for one in reports] == [(0, {})] * 3
    assert sorted(made.rows("d.orders", *stream.columns), key=repr) == stream.held
    assert exclude or made.rows("d._orders_gho", "id") == []


def test_a_truncate_in_a_batch_that_says_nothing_new_empties_its_table(job):
    """Rows behind it stay."""
    made = job(is_changelog=True)
    made.send(canal("INSERT", [{"id": "1"}], id=1), canal("INSERT", [{"id": "2"}], id=2))
    made.send(canal("TRUNCATE", [], id=3, isDdl=True, sql="TRUNCATE TABLE t"), canal("INSERT", [{"id": "3"}], id=4))
    reports = made.run()
    assert [report.operations for report in reports] == [{"d.t": {"c": 2}}, {"d.t": {"c": 1, "t": 1}}]
    assert made.rows("d.t", "id") == [(3,)]
    assert made.rows("d.t", "_cdc_op", "id", suffix="changes") == [("c", 1), ("c", 2), ("c", 3), ("t", None)]


@pytest.mark.slow
def test_a_table_that_is_made_again_goes_on_in_its_lake_table(job):
    """What stood there when it was dropped is gone; a table that takes a name that is in use gets another."""
    made = job()
    made.send(
        canal("INSERT", [{"id": "1", "a": "1"}], id=1),
        canal("ERASE", [], id=2, isDdl=True, sql="DROP TABLE t"),
        canal("CREATE", [], id=3, isDdl=True, sql="CREATE TABLE t (id INT PRIMARY KEY, a INT, b INT)"),
        canal("INSERT", [{"id": "2", "a": "1", "b": "2"}], id=4),
    )
    (report,) = made.run()
    assert report.operations == {"d.t": {"c": 2, "x": 1}}
    assert made.rows("d.t", "id", "a", "b") == [(2, 1, 2)]
    made.send(
        canal("RENAME", [], id=5, isDdl=True, sql="RENAME TABLE t TO t_old"),
        canal("CREATE", [], id=6, isDdl=True, sql="CREATE TABLE t (id INT PRIMARY KEY)"),
        canal("INSERT", [{"id": "9"}], id=7),
        canal("INSERT", [{"id": "3", "a": "1", "b": "2"}], id=8, table="t_old"),
    )
    made.run()
    assert made.rows("d.t", "id") == [(2,), (3,)]
    assert made.rows('d."t~2"', "id") == [(9,)]


@pytest.mark.slow
def test_a_table_that_is_made_again_with_a_smaller_type_keeps_the_wider_one(job):
    """In the lake, which keeps the changes of the old one."""
    made = job(is_changelog=True)
    big = str(1 << 40)
    old = {"id": "int", "a": "bigint", "n": "decimal(20,2)"}
    made.send(
        canal("CREATE", [], id=1, isDdl=True, sql="CREATE TABLE t (id INT PRIMARY KEY, a BIGINT, n DECIMAL(20,2))"),
        canal("INSERT", [{"id": "1", "a": big, "n": "1.50"}], id=2, mysqlType=old),
    )
    made.run()
    made.send(
        canal("ERASE", [], id=3, isDdl=True, sql="DROP TABLE t"),
        canal("CREATE", [], id=4, isDdl=True, sql="CREATE TABLE t (id INT PRIMARY KEY, a INT, n DECIMAL(5,2))"),
        canal("INSERT", [{"id": "2", "a": "7", "n": "2.50"}], id=5, mysqlType=old | {"a": "int", "n": "decimal(5,2)"}),
    )
    made.run()
    assert made.rows("d.t", "id", "a", "n") == [(2, 7, Decimal("2.50"))]
    changes = [("c", 1, int(big), Decimal("1.50")), ("c", 2, 7, Decimal("2.50")), ("x", None, None, None)]
    assert made.rows("d.t", "_cdc_op", "id", "a", "n", suffix="changes") == changes


def test_a_folder_that_another_job_uses_is_refused(job):
    """Two would write the same batches."""
    made = job()
    made.send(canal("INSERT", [{"id": "1"}], id=1))
    found: list[str] = []
    pipeline = made.pipeline()
    made.start(pipeline, once=True, say=lambda _: found.append(error_of(made.run)))
    assert found == [f"{made.folder}/state: expected a state that no other job uses, got one that is in use"]


def test_a_check_refuses_the_state_of_a_pipeline_into_another_lake(job):
    """As a run does."""
    made = job()
    made.send(canal("INSERT", [{"id": "1"}], id=1))
    made.run()
    made.check()
    other = replace(made.pipeline(), sink=LakeSettings(DeltaLake(f"{made.folder}/other")))
    wanted = f"Delta Lake at {made.folder}/other, got that of one into Delta Lake at {made.folder}/lake"
    assert error_of(made.check, other).endswith(wanted)
    assert not (made.folder / "other").exists()


def test_a_source_that_is_not_there_is_said(job):
    """Before anything is started."""
    made = job()
    with pytest.raises(FileError, match="a file or folder"):
        made.run()
