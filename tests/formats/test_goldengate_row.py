"""The facts of `goldengate_row`: messages of Oracle GoldenGate's JSON formatter, row model."""

from __future__ import annotations

import json
from random import Random
from zoneinfo import ZoneInfo

import pytest

import cdcavro
from cdcavro.change import Arrival
from cdcavro.change.model import Change, Source
from cdcavro.engine.machine import COMPILED
from cdcavro.table import TypeOverrides
from cdcavro.table.tables import Tables
from cdcavro.table.writing.message_typer import MessageTyper
from cdcavro.transcoding.mapping import from_changes, to_changes
from cdcavro.wire.sniff import fitting_formats, other_format
from support.local_pipelines import DELTA, LocalJob, lake_section
from support.messages import goldens
from support.mutations import mutated
from support.roundtrip import assert_fast, assert_golden, avro, error_of, golden_cases
from support.typed import read

FORMAT = "goldengate_row"
ZONE = ZoneInfo("Asia/Shanghai")
COMPILED_ONLY = pytest.mark.skipif(not COMPILED, reason="where nothing is compiled, all goes the exact way")


NULL = object()


def message(**members: object) -> str:
    """Return a message that inserts a row, with other members; those that are None are left out, and those that are NULL null."""
    usual = {
        "table": "S.T",
        "op_type": "I",
        "op_ts": "2023-11-14 22:13:21.000000",
        "current_ts": "2023-11-15T06:13:24.117000",
        "pos": "00000000120000004821",
        "ID": 1,
    }
    stated = {name: value for name, value in (usual | members).items() if value is not None}
    return json.dumps({name: None if value is NULL else value for name, value in stated.items()}, separators=(",", ":"))


def change(text: str) -> Change:
    """Return the change of a message."""
    (found,) = to_changes(text, FORMAT)
    return found


@pytest.mark.parametrize("golden", golden_cases(FORMAT))
def test_golden_message_round_trips_and_is_told(golden):
    """Every sample comes back as it was sent, by the engine, and is told from the operation model."""
    assert_golden(FORMAT, golden)
    assert_fast(FORMAT, golden)
    scores = fitting_formats(golden)
    assert scores == dict.fromkeys((FORMAT, "goldengate"), scores[FORMAT]) | {"goldengate_tx": 0}
    assert cdcavro.sniff(golden) == FORMAT


@pytest.mark.parametrize("format", [name for name in cdcavro.FORMATS if name != FORMAT])
def test_no_message_of_another_format_is_told_as_one(format):
    """One of the operation model fits, but has more that tells it; and a truncate is the same in both."""
    assert {cdcavro.sniff(text) for text in goldens(format)} == {format}


@pytest.mark.parametrize(
    ("members", "format"),
    [
        ({}, FORMAT),
        ({"op_ts": None}, FORMAT),
        ({"pos": None}, FORMAT),
        ({"op_ts": None, "pos": None}, FORMAT),
        ({"type": "INSERT", "database": "d"}, FORMAT),
        ({"before": "text", "after": 2}, FORMAT),
        ({"op_type": "T", "ID": None}, "goldengate"),
        ({"after": {"ID": 1}}, "goldengate"),
        ({"before": {"ID": 1}, "op_type": "D"}, "goldengate"),
    ],
)
def test_columns_beside_an_operation_and_a_position_or_time_tell_it(members, format):
    """Also columns that are called like members of other formats."""
    assert cdcavro.sniff(message(**members)) == format


@pytest.mark.parametrize(
    "members", [{"op_ts": None, "pos": None, "current_ts": None}, {"op_type": "INSERT"}, {"op_type": None}]
)
def test_other_flat_objects_are_none(members):
    """The operation has the words of the formatter's default, and alone it tells nothing."""
    assert "expected a message of a known format" in error_of(cdcavro.sniff, message(**members))


@pytest.mark.parametrize(
    ("op_type", "op", "before", "after"),
    [
        ("I", "INSERT", None, {"ID": 1, "A": None}),
        ("U", "UPDATE", None, {"ID": 1, "A": None}),
        ("D", "DELETE", {"ID": 1, "A": None}, None),
    ],
)
def test_columns_are_the_row_after_a_change_and_before_a_delete(op_type, op, before, after):
    """Nothing is known of the row before an update, nor which columns changed."""
    text = message(op_type=op_type)[:-1] + ',"A":null}'
    found = change(text)
    assert (found.op, found.before, found.after, found.changed) == (op, before, after, None)


def test_a_truncate_is_no_message_of_another_format_where_this_one_is_named():
    """It is the same in both models, and told as one of the other; a message of a third format is strange."""
    truncate = message(op_type="T", ID=None)
    assert (list(fitting_formats(truncate)), other_format([truncate], FORMAT)) == (
        ["goldengate", "goldengate_tx"],
        None,
    )
    assert other_format(['{"type":"INSERT","table":"t","data":[],"id":1}'], FORMAT) == "canal"
    assert other_format([truncate], "goldengate_raw") == "goldengate"


def test_a_truncate_has_no_columns():
    """It is read if the format is named."""
    found = change(message(op_type="T", ID=None))
    assert (found.op, found.before, found.after) == ("TRUNCATE", None, None)
    sentence = "goldengate_row: $: expected no row for T, got some"
    assert error_of(to_changes, message(op_type="T"), FORMAT) == sentence


@pytest.mark.parametrize("name", ["before", "after"])
def test_a_message_of_the_operation_model_is_refused(name):
    """Its rows would be columns; a column of that name is one, and the message comes back."""
    text = message(**{name: {"ID": 1}})
    expected = "expected columns beside the meta columns, as in the row model"
    sentence = f"goldengate_row: $.{name}: {expected}, got a row in an object, as in the operation model"
    assert error_of(to_changes, text, FORMAT) == sentence
    assert json.loads(cdcavro.decode(cdcavro.encode(text, FORMAT), FORMAT)) == json.loads(text)
    assert change(message(**{name: "x"})).after == {"ID": 1, name: "x"}


def test_meta_columns_are_those_of_the_operation_model():
    """One that the formatter does not write by default is a column."""
    found = change(message(tokens={"6": "9.0.80330", "R": "AAA"}, csn="7", rowid="AAA", host="db1"))
    assert (found.transaction, found.position, found.after) == ("9.0.80330", (12, 4821), {"ID": 1, "host": "db1"})


def test_a_companion_says_that_a_column_is_not_stated():
    """It is a boolean beside the column, and no column; any other member of such a name is one."""
    row = {"ID_isMissing": False, "A": NULL, "A_isMissing": True, "B": "y", "B_isMissing": False}
    text = message(**row)
    assert change(text).after == {"ID": 1, "B": "y"}
    assert [json.loads(back) for back in from_changes([change(text)], FORMAT)] == [json.loads(text)]
    assert avro(FORMAT, text)["columns"].keys() == {"ID", *row}
    for columns in ({"A": 1, "A_isMissing": "no"}, {"A": 1, "B_isMissing": True}):
        assert change(message(**columns)).after == {"ID": 1} | columns
    sentence = "goldengate_row: $.A: expected null, as 'A_isMissing' is true, got a value"
    assert error_of(to_changes, message(A=5, A_isMissing=True), FORMAT) == sentence


def test_a_change_of_another_format_is_written():
    """As the formatter would have written it; the row before an update is lost, and so is a column called like another."""
    row = Change(
        op="UPDATE",
        source=Source(database="d", table="t"),
        key=("a",),
        before={"a": 1, "b": 1},
        after={"a": 1, "b": 2, "pos": "x", "b_isMissing": True},
        event_time=1_700_000_001_500_000,
    )
    (text,) = from_changes([row], FORMAT, zone=ZoneInfo("UTC"))
    assert json.loads(text) == {
        "a": 1,
        "b": 2,
        "b_isMissing": True,
        "op_type": "U",
        "table": "d.t",
        "op_ts": "2023-11-14 22:13:21.500000",
        "primary_keys": ["a"],
    }
    (text,) = from_changes([cdcavro.change.replace(row, op="DELETE", after=None)], FORMAT)
    assert json.loads(text) == {"a": 1, "b": 1, "op_type": "D", "table": "d.t", "primary_keys": ["a"]}
    assert from_changes([Change(op="HEARTBEAT"), Change(op="CREATE", ddl="CREATE TABLE t (a INT)")], FORMAT) == []


def test_what_is_lost_on_the_way_is_reported():
    """Of an update of the operation model, the row before it."""
    text = message(ID=None, op_type="U", before={"ID": 1, "A": 1}, after={"ID": 1, "A": 2})
    made = cdcavro.transcode(text, "goldengate", FORMAT, zone=ZONE)
    assert json.loads(made.texts[0]) == json.loads(message(op_type="U", A=2, pos=None, current_ts=None))
    assert [loss.path for loss in made.losses] == ["$.current_ts", "$.pos", "$.before"]


KEY = {"primary_keys": ["ID"]}
ROWS = [
    message(**KEY, A="x", N=1.5, W="2023-11-14 22:13:21.25"),
    message(**KEY, op_type="U", A="y"),
    message(**KEY, op_type="U", N=3, A="y", current_ts="x"),
    message(**KEY, op_type="U", N=3, pos="00000000000000000000157"),
    message(**KEY, xid="1.2.3", tokens={"R": "AADPkv", "6": "9.0.1"}, A="z"),
    message(**KEY, op_type="D", pos="9", A="z"),
]
MARKED = [message(**KEY, A=NULL, A_isMissing=True), message(**KEY, A="x", A_isMissing=False)]
TYPES = {"S.T": {"ID": "int", "A": "varchar(9)", "N": "double", "W": "datetime(3)"}}


def typer_of(texts: list[str]) -> MessageTyper:
    """Return a typer that has typed each of some messages twice, and so knows their table and patterns."""
    typer = MessageTyper(FORMAT, Tables(given=TypeOverrides.from_mapping(TYPES), zone=ZONE))
    for text in (*texts, *texts):
        typer.add(text, Arrival(file="f", line=1))
    return typer


@COMPILED_ONLY
def test_the_engine_types_all_rows():
    """Those without companions, which are no columns."""
    typer = typer_of([*ROWS, *MARKED])
    assert [typer.type_by_pattern(text.encode()) is not None for text in ROWS] == [True] * len(ROWS)
    assert [typer.type_by_pattern(text.encode()) for text in MARKED] == [None, None]
    rows = [read(row.payload, row.schema.envelope)["after"] for text in MARKED for row in typer.add(text)]
    assert [(row["A"], row["absent"]) for row in rows] == [(None, ["A", "N", "W"]), ("x", ["N", "W"])]


@COMPILED_ONLY
def test_the_engine_types_as_the_exact_way_does():
    """Also messages that were damaged: they have the same rows, or are left."""
    typer, random, typed = typer_of([*ROWS, *MARKED]), Random(32), 0
    tables = typer._tables
    for _ in range(3000):
        text = mutated(random, random.choice([*ROWS, *MARKED]).encode())
        rows = typer.type_by_pattern(text)
        if rows is not None:
            exact = [one for found in to_changes(text, FORMAT, members=False, zone=ZONE) for one in tables.add(found)]
            assert [(row.key, row.payload) for row in rows] == [(one.key, one.payload) for one in exact]
            typed += 1
    assert typed > 100


def test_a_pipeline_merges_rows(tmp_path):
    """Messages of both models in one folder, each told by itself: what an update does not state is as it was."""
    lines = [
        message(**KEY, A="x", N=1),
        message(**KEY, ID=2, A="y", N=2, pos="00000000120000004822"),
        message(**KEY, op_type="U", N=3, pos="00000000120000004900"),
        message(**KEY, op_type="U", N=9, pos="00000000120000004850"),
        message(**KEY, op_type="D", ID=2, pos="00000000120000004901"),
        message(**KEY, ID=None, op_type="I", after={"ID": 3, "A": "z", "N": 4}, pos="00000000120000004902"),
    ]
    job = LocalJob(tmp_path, lake_section(DELTA, tmp_path), more={"format": "mixed"})
    job.send(*[line.encode() for line in lines])
    job.run()
    assert job.rows("S.T", "ID", "A", "N") == [("1", "x", "3"), ("3", "z", "4")]
