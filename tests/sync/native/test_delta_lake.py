"""Delta tables without Spark: what is written is read again, once, and the log is as Spark makes it."""

from __future__ import annotations

import json
import threading
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pyarrow as pa
import pytest
from deltalake import DeltaTable
from deltalake.exceptions import DeltaError, DeltaProtocolError

from cdcavro.errors import FileError, JobError, SchemaError, SetupError
from cdcavro.lake.evolution import ADD, DROP, LENIENT, MARK, RENAME, WIDEN, LakeColumn, Step, steps_to
from cdcavro.lake.sql_statements import AT, CHANGELOG, DELETED, DELETES, KEY, OLDER, ORDER, STATE, UNPARSED
from cdcavro.sync.native import delta_files, delta_lake, delta_log
from cdcavro.sync.native.delta_lake import NativeDelta, NativeDeltaTable
from cdcavro.sync.native.delta_log import log_folder, newest_version
from cdcavro.sync.native.native_columns import WAITED, Mark
from cdcavro.table import TableName
from support.native_rows import by_key, merged_rows, orders, plain_names, state_rows

NAME = TableName("shop", None, "t")
COLUMNS = [LakeColumn("id", "id", "int"), LakeColumn("s", "s", "string"), LakeColumn("n", "n", "float")]
ODD = ["a.b", 'a"b', "a`b", "we'ird", "UPPER", "x y", "[z]", "ключ", "a,b;c{d}(e)=f", "select", "$1"]


@pytest.fixture
def lake(tmp_path: Path) -> NativeDelta:
    """A lake below a folder of the test."""
    return NativeDelta(str(tmp_path / "la ke"), owner="me")


def test_an_object_store_that_does_not_answer_is_an_error_of_the_table():
    """Also where it is asked whether there is a table."""
    options = {"endpoint": "http://127.0.0.1:9", "access_key_id": "a", "secret_access_key": "b", "region": "c"}
    own = {f"aws_{name}": value for name, value in options.items()} | {"allow_http": "true", "max_retries": "0"}
    lake = NativeDelta("s3://bucket/lake", storage_options=own)
    table = lake.table(NAME)
    for ask in (table.properties, lambda: table.create(COLUMNS, STATE, {}), lambda: lake.has(NAME)):
        with pytest.raises(JobError, match=r"^`delta`\.`s3://bucket/lake/shop/t`: "):
            ask()
    with pytest.raises(JobError, match=r"^`delta`\.`s3://bucket/lake/shop`: "):
        lake.around(NAME)


def create(lake: NativeDelta, columns=COLUMNS, own=STATE, name=NAME) -> NativeDeltaTable:
    """Return a new table."""
    table = lake.table(name)
    table.create(columns, own, lake.properties([one.name for one in columns]))
    return table


def put(table: NativeDeltaTable, *rows: dict) -> None:
    """Merge rows."""
    table.merge(merged_rows(table.schema(), *rows), plain_names(table.schema()))


def all_rows(table: NativeDeltaTable) -> list[dict]:
    """Return all rows, in the order of their keys."""
    return sorted(table.read(table.schema().names).to_pylist(), key=lambda row: row[KEY])


def last_commit(table: NativeDeltaTable) -> list[dict]:
    """Return the actions of the newest commit."""
    newest = max(log_folder(table.folder).glob("*.json"))
    return [json.loads(line) for line in newest.read_text(encoding="utf-8").splitlines()]


def test_a_new_table_has_its_columns_comments_and_properties(lake):
    """A table that is there stays as it is."""
    table = create(lake)
    assert table.identifier == f"`delta`.`{lake.root}/shop/t`"
    assert table.columns() == COLUMNS
    assert table.schema().names == ["id", "s", "n", *STATE]
    assert table.properties() == lake.properties([])
    table.create([], STATE, {"x": "y"})
    assert (table.columns(), table.properties()) == (COLUMNS, lake.properties([]))
    assert lake.table(NAME, "deletes").properties() is None


def test_values_of_all_types_come_back(lake):
    """Also those at the ends of a type's range, and bytes that are no text."""
    values = {
        "tinyint": -128,
        "smallint": 32767,
        "int": -(2**31),
        "bigint": 2**63 - 1,
        "float": 1.5,
        "double": 1e308,
        "boolean": False,
        "string": "\0é\U0001f600",
        "binary": b"\xff\0\x80",
        "date": date(9999, 12, 31),
        "timestamp": datetime(1, 1, 1, 0, 0, 0, 1, tzinfo=UTC),
        "timestamp_ntz": datetime(9999, 12, 31, 23, 59, 59, 999999),  # noqa: DTZ001  a local time
        "decimal(38,18)": Decimal("-12345678901234567890.123456789012345678"),
        "array<string>": ["a", None],
        "map<string,binary>": [("k", b"\xff")],
        "array<struct<a:int,b:map<string,string>>>": [{"a": 1, "b": [("x", "y")]}],
    }
    columns = [LakeColumn(f"c{i}", f"c{i}", name) for i, name in enumerate(values)]
    table = create(lake, columns)
    assert table.columns() == columns
    row = {f"c{i}": value for i, value in enumerate(values.values())}
    put(table, row | {KEY: b"\xff", ORDER: b"\x01", OLDER: [("c0", b"\xfe")], UNPARSED: [("c1", "x")]})
    (found,) = all_rows(table)
    assert {name: found[name] for name in row} == row
    assert (found[OLDER], found[UNPARSED]) == ([("c0", b"\xfe")], [("c1", "x")])


def test_the_log_has_no_ends_of_decimals_that_are_not_exact(lake):
    """A reader would leave out a file whose ends, as doubles, are other numbers."""
    columns = [
        LakeColumn("a", "a", "decimal(38,18)"),
        LakeColumn("b b", "b", "decimal(16,0)"),
        LakeColumn("c", "c", "decimal(9,2)"),
    ]
    for name in (NAME, TableName("shop", None, "plain")):
        table = create(lake, columns if name == NAME else [columns[0], columns[2]], name=name)
        put(table, {KEY: b"k", ORDER: b"\x01", "a": Decimal("0.1"), "b b": Decimal(1), "c": Decimal("0.25")})
        (added,) = [one["add"] for one in last_commit(table) if "add" in one]
        assert list(json.loads(added["stats"])["maxValues"].values()) == [0.25]


def test_columns_may_have_any_name(lake):
    """Such columns have other names in files; they are merged, found, replaced and changed by their own."""
    columns = [LakeColumn(name, f"f{i}", "string") for i, name in enumerate(ODD)]
    table = create(lake, columns)
    assert table.columns() == columns
    assert table.properties()["delta.columnMapping.mode"] == "name"
    put(table, {name: f"v{name}" for name in ODD} | {KEY: b"k", ORDER: b"\x01"})
    put(table, {name: f"w{name}" for name in ODD} | {KEY: b"k", ORDER: b"\x02"})
    assert table.find(pa.array([b"k"], pa.binary()), ODD).to_pylist() == [{name: f"w{name}" for name in ODD}]
    table.alter([Step(RENAME, name, LakeColumn(f"{name}2", f"f{i}", "string")) for i, name in enumerate(ODD)], {})
    (row,) = all_rows(table)
    assert [row[f"{name}2"] for name in ODD] == [f"w{name}" for name in ODD]


@pytest.mark.parametrize(
    ("stands", "order", "deleted", "expected"),
    [
        (None, b"\x01", None, b"\x01"),
        (None, None, b"\x01", None),
        (b"\x7f", b"\x80", None, b"\x80"),
        (b"\x80", b"\x7f", None, b"\x80"),
        (b"\x01", b"\x01\0", None, b"\x01\0"),
        (b"\x01", b"\x01", None, b"\x01"),
        (b"\x02", None, b"\x02", None),
        (b"\x02", None, b"\x01", b"\x02"),
        (b"\x02", None, None, b"\x02"),
        (b"\x02", b"\x04", b"\x03", b"\x04"),
    ],
)
def test_the_later_change_of_a_key_stands(lake, stands, order, deleted, expected):
    """Orders are compared as unsigned bytes; a delete removes what is not above it."""
    table = create(lake)
    if stands is not None:
        put(table, {KEY: b"k", ORDER: stands, "s": "first"})
    put(table, {KEY: b"k", ORDER: order, DELETED: deleted, "s": "second"}, {KEY: b"other", ORDER: b"\x01"})
    found = orders(table.read([KEY, ORDER]))
    assert found == ({b"other": b"\x01"} if expected is None else {b"other": b"\x01", b"k": expected})


def test_a_merge_leaves_columns_alone_that_it_does_not_have(lake):
    """They are null in new rows."""
    table = create(lake)
    put(table, {KEY: b"a", ORDER: b"\x01", "id": 1, "s": "x", OLDER: [("s", b"\x01")]})
    rows = merged_rows(table.schema(), {KEY: b"a", ORDER: b"\x02", "id": 2}, {KEY: b"b", ORDER: b"\x02", "id": 3})
    table.merge(rows.drop_columns(["s", "n"]), ["id"])
    found = [(row["id"], row["s"], row[OLDER]) for row in all_rows(table)]
    assert found == [(2, "x", None), (3, None, None)]


def test_rows_are_found_and_replaced_by_their_keys(lake):
    """Rows that are added may have keys that are not among those removed; one commit."""
    table = create(lake)
    put(table, *[{KEY: bytes([i]), ORDER: b"\x01", "id": i} for i in range(250)])
    keys = pa.array([b"\x03", b"\xf0", b"no", b"\x03"], pa.binary())
    assert sorted(row["id"] for row in table.find(keys).to_pylist()) == [3, 240]
    assert table.find(keys, ["id"]).column_names == ["id"]
    before = len(list(log_folder(table.folder).glob("*.json")))
    schema = table.schema()
    table.replace(keys, state_rows(schema, {KEY: b"\x03", "id": 1003}, {KEY: b"new", "id": 1004}))
    found = by_key(table.read(schema.names))
    assert len(found) == 250
    assert {row["id"] for row in found.values()} == {*range(250), 1003, 1004} - {3, 240}
    assert len(list(log_folder(table.folder).glob("*.json"))) == before + 1
    table.replace(pa.array([], pa.binary()), state_rows(schema, {KEY: b"zz", "id": 9}))
    table.replace(pa.array([b"zz"], pa.binary()), schema.empty_table())
    assert table.read([KEY]).num_rows == 250


def test_rows_up_to_a_bound_are_deleted(lake):
    """By an order, and by a moment."""
    table = create(lake, [], DELETES)
    moments = [datetime(2026, 1, 1, tzinfo=UTC) + timedelta(microseconds=i) for i in range(3)]
    rows = [{KEY: bytes([i]), ORDER: bytes([126 + i]), AT: moment} for i, moment in enumerate(moments)]
    table.append(state_rows(table.schema(), *rows), Mark("j", 0))
    table.delete_up_to(AT, moments[0])
    assert orders(table.read([KEY, ORDER])) == {b"\x01": b"\x7f", b"\x02": b"\x80"}
    table.delete_up_to(ORDER, b"\x7f")
    assert orders(table.read([KEY, ORDER])) == {b"\x02": b"\x80"}


def parquet(table: NativeDeltaTable) -> set[str]:
    """Return the names of the data files, also of those that are in no version."""
    return {one.name for one in Path(table.folder).glob("*.parquet")}


def row(key: bytes, order: bytes, number: int | None = 1, text: str | None = "a") -> dict:
    """Return a row of `COLUMNS`."""
    return {KEY: key, ORDER: order, "id": number, "s": text, "n": 0.5}


def test_only_files_that_hold_keys_are_rewritten(lake):
    """And none, without a new version, if nothing changes."""
    table = create(lake)
    for number in range(3):
        table.append(
            state_rows(table.schema(), *[row(b"%d%d" % (number, i), b"1") for i in range(3)]), Mark("j", number)
        )
    before = parquet(table)
    put(table, row(b"11", b"2", 7), row(b"9", b"1"))
    actions = last_commit(table)
    assert sum("remove" in one for one in actions) == 1
    assert {one["add"]["path"] for one in actions if "add" in one} == parquet(table) - before
    assert [one["id"] for one in all_rows(table)] == [1, 1, 1, 1, 7, 1, 1, 1, 1, 1]
    put(table, row(b"11", b"2", 8))
    table.replace(pa.array([b"none"]), state_rows(table.schema()))
    table.delete_up_to(ORDER, b"0")
    assert last_commit(table) == actions


def test_a_file_says_what_its_values_lie_within(lake):
    """Readers leave out files by it; of a long text and of times that Python does not have, less is said."""
    columns = [
        LakeColumn(name, name, kind)
        for name, kind in (
            *(("i", "int"), ("s", "string"), ("d", "date"), ("t", "timestamp")),
            *(("b", "boolean"), ("x", "double"), ("y", "float")),
        )
    ]
    table = create(lake, columns)
    moment = datetime(2024, 1, 1, 0, 0, 0, 5, tzinfo=UTC)
    first = {KEY: b"a", ORDER: b"1", "i": -1, "s": "é", "d": date(2024, 1, 1), "t": moment}
    first |= {"b": True, "x": -0.5, "y": float("nan")}
    put(table, first, first | {KEY: b"b", "i": 5, "s": None})
    (added,) = [one["add"] for one in last_commit(table) if "add" in one]
    stats = json.loads(added["stats"])
    assert stats["numRecords"] == 2
    moments = {"d": "2024-01-01", "t": "2024-01-01T00:00:00.000005Z"}
    assert stats["minValues"] == {"i": -1, "s": "é", **moments, "b": True, "x": -0.5}
    assert stats["maxValues"] == stats["minValues"] | {"i": 5}
    assert (stats["nullCount"]["s"], stats["nullCount"][OLDER]) == (1, 2)
    put(table, first | {KEY: b"c", "s": "z" * 40})
    ends = [json.loads(one["add"]["stats"]) for one in last_commit(table) if "add" in one]
    assert [(one["minValues"]["s"], one["maxValues"].get("s")) for one in ends] == [("z" * 32, "z" * 32 + "\U0010ffff")]


def test_filters_of_pyarrow_find_rows_whatever_their_types(lake):
    """Where an end is missing that `deltalake` expects, they find none."""
    values = {"b": True, "x": 0.5, "y": 2.5, "s": "z" * 40, "i": 7}
    kinds = {"b": "boolean", "x": "double", "y": "float", "s": "string", "i": "int"}
    table = create(lake, [LakeColumn(name, name, kind) for name, kind in kinds.items()])
    for key in (b"a", b"b"):
        put(table, {KEY: key, ORDER: b"1", **values})
    opened = DeltaTable(table.folder)
    for name, value in values.items():
        assert opened.to_pyarrow_table(filters=[(name, "==", value)]).num_rows == 2, name


@pytest.mark.parametrize(
    ("name", "value", "sentence"),
    [
        ("delta.enableChangeDataFeed", "true", None),
        ("delta.appendOnly", "true", "[Aa]ppend"),
        ("small", "id < 5", "small|[Cc]heck|[Ii]nvariant|violat"),
    ],
)
def test_what_a_table_asks_of_its_writers_is_done(lake, name: str, value: str, sentence: str | None):
    """Whoever changes it file by file could not."""
    table = create(lake)
    table.append(state_rows(table.schema(), row(b"a", b"1")))
    if name.startswith("delta."):
        table.alter([], {name: value})
    else:
        DeltaTable(table.folder).alter.add_constraint({name: value})
    if sentence is None:
        put(table, row(b"a", b"2", 7))
        assert any("cdc" in one for one in last_commit(table))
    else:
        with pytest.raises((JobError, SchemaError), match=sentence):
            put(table, row(b"a", b"2", 7))
        assert [one["id"] for one in all_rows(table)] == [1]


def test_checkpoints_are_written_as_often_as_the_table_says(lake):
    """Else whoever opens a table that is merged into for ever reads ever more commits."""
    table = create(lake)
    table.alter([], {"delta.checkpointInterval": "3"})
    for number in range(1, 8):
        put(table, row(b"a", b"%d" % number, number))
    said = json.loads((log_folder(table.folder) / "_last_checkpoint").read_text(encoding="utf-8"))
    assert said["version"] == 6
    assert [one["id"] for one in all_rows(table)] == [7]


@pytest.mark.parametrize("is_kept", [False, True])
def test_old_commits_are_removed_behind_a_checkpoint_unless_the_table_keeps_them(lake, is_kept: bool):
    """As `deltalake` does it; a history that somebody keeps is not touched."""
    table = create(lake)
    keeping = {"delta.enableExpiredLogCleanup": "false"} if is_kept else {}
    table.alter([], {"delta.checkpointInterval": "3", "delta.logRetentionDuration": "interval 0 days"} | keeping)
    for number in range(1, 8):
        put(table, row(b"a", b"%d" % number, number))
    first = log_folder(table.folder) / f"{0:020}.json"
    assert first.exists() is is_kept
    assert [one["id"] for one in all_rows(table)] == [7]


def test_a_table_that_takes_no_nulls_gets_none(lake):
    """Whoever said so is obeyed, as by `deltalake`."""
    table = create(lake)
    table.append(state_rows(table.schema(), row(b"a", b"1")))
    opened = table._open()
    schema = delta_log.schema_of(opened)
    fields = [one | {"nullable": one["name"] != "s"} for one in schema.fields]
    assert not delta_files.is_plain(replace(schema, fields=fields))
    assert delta_files.is_plain(schema)


def test_a_commit_that_another_writer_took_leaves_no_files(lake, monkeypatch: pytest.MonkeyPatch):
    """It is made again for the newer version; what may have been committed stays."""
    table = create(lake)
    table.append(state_rows(table.schema(), row(b"a", b"1")))
    real, taken = delta_files.commit, []

    def commit(*given) -> None:
        if not taken:
            taken.append(parquet(table))
            put(table, row(b"a", b"2", 2))
        real(*given)

    monkeypatch.setattr(delta_files, "commit", commit)
    put(table, row(b"a", b"3", 3))
    assert [one["id"] for one in all_rows(table)] == [3]
    assert len(taken[0] - parquet(table)) == 1

    def fail(*given) -> None:
        real(*given)
        raise OSError("the disk")

    monkeypatch.setattr(delta_files, "commit", fail)
    with pytest.raises(JobError, match="the disk"):
        put(table, row(b"a", b"4", 4))
    assert [one["id"] for one in all_rows(table)] == [4]


def test_a_batch_is_appended_once(lake):
    """Whether or not the attempt is the first; batches of another job have numbers of their own."""
    table = create(lake, [], CHANGELOG)
    rows = state_rows(table.schema(), {ORDER: b"\x01", KEY: b"k"})
    now = datetime.now(UTC)
    for mark in (Mark("j", 1), Mark("j", 1, now), Mark("j", 0, now), Mark("it's", 1, now), Mark("j", 2), Mark("j", 2)):
        table.append(rows, mark)
    assert table.read([KEY]).num_rows == 3
    said = last_commit(table)
    assert said[0]["commitInfo"]["userMetadata"] == "cdcavro j 2"
    assert {"txn": {"appId": "j", "version": 2}}.items() <= next(one for one in said if "txn" in one).items()


def test_an_append_of_which_the_history_says_nothing_more_stops(lake):
    """A batch that was tried before the oldest commit that is known may be in the table or not; rows that waited are not."""
    table = create(lake, [], CHANGELOG)
    table.alter([], {"delta.checkpointInterval": "1"})
    rows, now = state_rows(table.schema(), {ORDER: b"\x01", KEY: b"k"}), datetime.now(UTC)
    for batch in range(2):
        table.append(rows, Mark("j", batch))
    for file in sorted(log_folder(table.folder).glob("*.json"))[:-1]:
        file.unlink()
    with pytest.raises(JobError, match=r"does not reach back to .* so it cannot be known whether the batch"):
        table.append(rows, Mark("j", 3, now))
    assert table.read([KEY]).num_rows == 2
    for _ in range(2):
        table.append(rows, Mark("j", 3, WAITED))
    assert table.read([KEY]).num_rows == 3


def test_all_steps_are_one_commit(lake):
    """Added, renamed, widened, marked and dropped columns, with properties; rows have their values under the new names."""
    table = create(lake)
    put(table, {KEY: b"a", ORDER: b"\x01", "id": -5, "s": "x", "n": 1.5})
    before = len(list(log_folder(table.folder).glob("*.json")))
    steps = [
        Step(DROP, "n", LakeColumn("n", "n", "float")),
        Step(RENAME, "s", LakeColumn("s new", "s", "string")),
        Step(WIDEN, "id", LakeColumn("id", "id", "bigint")),
        Step(MARK, "s new", LakeColumn("s new", "s2", "string")),
        Step(ADD, "n", LakeColumn("n", "n2", "array<struct<a:int>>")),
    ]
    table.alter(steps, {"cdcavro.filled": "2"})
    assert len(list(log_folder(table.folder).glob("*.json"))) == before + 1
    assert table.columns() == [
        LakeColumn("id", "id", "bigint"),
        LakeColumn("s new", "s2", "string"),
        LakeColumn("n", "n2", "array<struct<a:int>>"),
    ]
    assert table.properties()["cdcavro.filled"] == "2"
    (row,) = all_rows(table)
    assert (row["id"], row["s new"], row["n"]) == (-5, "x", None)
    put(table, {KEY: b"b", ORDER: b"\x01", "id": 2**40, "s new": "y", "n": [{"a": 1}]})
    found = [(row["id"], row["s new"], row["n"]) for row in all_rows(table)]
    assert found == [(-5, "x", None), (2**40, "y", [{"a": 1}])]


@pytest.mark.parametrize(
    ("old", "new", "value", "expected"),
    [
        ("int", "bigint", -(2**31), -(2**31)),
        ("int", "double", 2**31 - 1, 2.0**31 - 1),
        ("float", "double", 0.1, 0.10000000149011612),
        ("decimal(12,2)", "decimal(20,4)", Decimal("-1234567890.12"), Decimal("-1234567890.1200")),
    ],
)
def test_a_column_is_widened(lake, old, new, value, expected):
    """No file has the narrower type afterwards, so any reader reads the table."""
    table = create(lake, [LakeColumn("c", "c", old)])
    put(table, {KEY: b"a", ORDER: b"\x01", "c": value}, {KEY: b"b", ORDER: b"\x01"})
    assert lake.can_widen(old, new)
    table.alter([Step(WIDEN, "c", LakeColumn("c", "c", new))], {})
    assert [row["c"] for row in all_rows(table)] == [expected, None]
    assert "delta.enableTypeWidening" not in table.properties()


def test_where_every_reader_is_to_read_a_table_its_columns_change_in_all_files(tmp_path: Path):
    """In one commit; the table asks nothing of its readers, and a column that comes under the name of one that went is empty."""
    table = create(NativeDelta(str(tmp_path), is_readable=True))
    put(table, {KEY: b"a", ORDER: b"\x01", "id": 1, "s": "x", "n": 0.5})
    put(table, {KEY: b"b", ORDER: b"\x02", "id": 2, "s": "y", "n": 1.5})
    before = len(list(log_folder(table.folder).glob("*.json")))
    steps = [
        Step(DROP, "n", LakeColumn("n", "n", "float")),
        Step(RENAME, "id", LakeColumn("~~moving 0", "id", "int")),
        Step(RENAME, "s", LakeColumn("id", "s", "string")),
        Step(RENAME, "~~moving 0", LakeColumn("s", "id", "int")),
        Step(WIDEN, "s", LakeColumn("s", "id", "bigint")),
        Step(MARK, "s", LakeColumn("s", "new", "bigint")),
        Step(ADD, "n", LakeColumn("n", "n2", "string"), "id"),
    ]
    table.alter(steps, {})
    assert len(list(log_folder(table.folder).glob("*.json"))) == before + 1
    opened = DeltaTable(table.folder)
    assert (opened.protocol().min_reader_version, opened.protocol().min_writer_version) == (1, 2)
    assert [(one.name, one.field) for one in table.columns()] == [("s", "new"), ("id", "s"), ("n", "n2")]
    put(table, {KEY: b"c", ORDER: b"\x03", "s": 2**40, "id": "z", "n": "new"})
    expected = [{"s": 1, "id": "x", "n": None}, {"s": 2, "id": "y", "n": None}, {"s": 2**40, "id": "z", "n": "new"}]
    for rows in (all_rows(table), opened.to_pyarrow_table().sort_by(KEY).to_pylist()):
        assert [{name: row[name] for name in ("s", "id", "n")} for row in rows] == expected[: len(rows)]


@pytest.mark.parametrize("lost", range(3))
def test_where_all_files_cannot_be_written_anew_no_new_ones_are_left(tmp_path: Path, lost: int):
    """Neither whole ones nor a part of one, however often it is tried; here, one of the files is gone."""
    table = create(NativeDelta(str(tmp_path), is_readable=True))
    for i in range(3):
        table.append(state_rows(table.schema(), row(b"%d" % i, b"1")))
    Path(unquote(urlsplit(DeltaTable(table.folder).file_uris()[lost]).path)).unlink()
    before = parquet(table)
    for _ in range(2):
        with pytest.raises(JobError, match="No such file"):
            table.alter([Step(RENAME, "n", LakeColumn("m", "n", "double"))], {})
    assert (len(before), parquet(table)) == (2, before)


def test_readers_make_of_mapped_names_and_wider_types_what_the_page_says(tmp_path: Path):
    """Some refuse them, and pyarrow's gives nulls."""
    polars = pytest.importorskip("polars")
    table = create(NativeDelta(str(tmp_path)))
    put(table, {KEY: b"a", ORDER: b"\x01", "id": 1, "s": "x"})
    step = Step(RENAME, "s", LakeColumn("new", "s", "string"))
    table.alter([step], table.lake.properties_for([step]))
    opened = DeltaTable(table.folder)
    assert pa.table(opened.scan(["id", "new"])).to_pylist() == [{"id": 1, "new": "x"}]
    assert opened.to_pyarrow_table(columns=["id", "new"]).to_pylist() == [{"id": 1, "new": None}]
    with pytest.raises(DeltaProtocolError, match="column mapping"):
        polars.read_delta(table.folder)
    held = delta_log.schema_of(opened)
    wider = replace(held, protocol=held.protocol.with_features([delta_log.WIDENING_FEATURE]))
    delta_log.commit(table.folder, opened.version() + 1, "CHANGE COLUMN", wider.actions(held))
    opened = DeltaTable(table.folder)
    for read in (
        lambda: pa.table(opened.scan(["id"])),
        opened.to_pyarrow_table,
        lambda: polars.read_delta(table.folder),
    ):
        with pytest.raises(DeltaError, match=r"(?i)type_?widening"):
            read()


def test_a_table_that_maps_names_already_goes_on_with_that(tmp_path: Path):
    """No file is written anew."""
    table = create(NativeDelta(str(tmp_path)))
    put(table, {KEY: b"a", ORDER: b"\x01", "id": 1})
    step = Step(RENAME, "id", LakeColumn("x", "id", "int"))
    table.alter([step], table.lake.properties_for([step]))
    later = NativeDelta(str(tmp_path), is_readable=True).table(NAME)
    files = parquet(later)
    later.alter([Step(RENAME, "x", LakeColumn("y y", "id", "int"))], {})
    assert parquet(later) == files
    assert [row["y y"] for row in all_rows(later)] == [1]


def test_two_columns_change_names(lake):
    """By names between, as `steps_to` gives them."""
    table = create(lake)
    put(table, {KEY: b"a", ORDER: b"\x01", "id": 1, "s": "x", "n": 2.5})
    wanted = [LakeColumn("n", "id", "int"), LakeColumn("s", "s", "string"), LakeColumn("id", "n", "float")]
    steps = steps_to("t", table.columns(), wanted, LENIENT, lake.can_widen)
    table.alter(steps, {})
    (row,) = all_rows(table)
    assert (row["n"], row["s"], row["id"]) == (1, "x", 2.5)
    assert table.columns() == wanted


def test_all_rows_are_rewritten_in_one_commit(lake):
    """A batch at a time."""
    table = create(lake)
    put(table, *[{KEY: bytes([i]), ORDER: b"\x01", "id": i} for i in range(100)])

    def negate(batch: pa.RecordBatch) -> pa.RecordBatch:
        return batch.set_column(
            0, batch.schema.field(0), pa.array([-one for one in batch.column(0).to_pylist()], pa.int32())
        )

    table.rewrite(negate)
    assert [row["id"] for row in all_rows(table)] == [-i for i in range(100)]
    assert [next(iter(one)) for one in last_commit(table)].count("commitInfo") == 1


@pytest.mark.parametrize("mark", [None, Mark("job", 1)])
def test_a_process_that_holds_a_table_no_longer_appends_nothing(lake, mark: Mark | None):
    """It looked at the table while it held it, and slept; meanwhile another one has it, and wrote to it."""
    held, asked = create(lake), []

    def check_held() -> None:
        asked.append(len(asked))
        if len(asked) > 1:
            raise JobError("in use")
        held.append(state_rows(held.schema(), row(b"b", b"2")))

    late = NativeDeltaTable(held.folder, replace(lake, check_held=check_held))
    with pytest.raises(JobError, match="in use"):
        late.append(state_rows(held.schema(), row(b"a", b"1")), mark)
    assert [one[KEY] for one in all_rows(held)] == [b"b"]


@pytest.mark.slow
def test_a_writer_whom_others_always_precede_gives_up_and_says_why(lake, monkeypatch):
    """After ten commits of theirs, all of which stay."""
    monkeypatch.setattr(delta_lake, "_PAUSE", 0)
    held, others = create(lake), []

    def check_held() -> None:
        others.append(bytes([len(others)]))
        held.append(state_rows(held.schema(), {KEY: others[-1], ORDER: b"\x01"}), Mark("other", len(others)))

    late = NativeDeltaTable(held.folder, replace(lake, check_held=check_held))
    rows = state_rows(held.schema(), {KEY: b"late", ORDER: b"\x01"})
    with pytest.raises(JobError, match="other writers committed before, 10 times: Failed to commit transaction"):
        late.append(rows, Mark("late", 0))
    assert sorted(one[KEY] for one in all_rows(held)) == others
    assert len(others) == 10


@pytest.mark.slow
def test_commits_of_many_writers_are_all_there(lake):
    """Appends, merges and steps beside each other: whoever is second tries again."""
    table = create(lake)
    failed = []

    def run(number: int) -> None:
        try:
            for turn in range(4):
                if number == 0:
                    table.alter([Step(ADD, f"c{turn}", LakeColumn(f"c{turn}", f"c{turn}", "int"))], {})
                else:
                    rows = state_rows(table.schema(), {KEY: bytes([number, turn]), ORDER: b"\x01"})
                    table.append(rows, Mark(f"j{number}", turn))
        except BaseException as error:  # noqa: BLE001
            failed.append(error)

    writers = [threading.Thread(target=run, args=(number,)) for number in range(3)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    assert failed == []
    assert table.read([KEY]).num_rows == 8
    assert [column.name for column in table.columns()] == ["id", "s", "n", "c0", "c1", "c2", "c3"]


def test_a_kill_leaves_no_half_table(lake):
    """A log without a commit is no table, and is removed before one is made."""
    table = lake.table(NAME)
    log = log_folder(table.folder)
    log.mkdir(parents=True)
    (log / ".0.tmp").write_text("{")
    assert table.properties() is None
    lake.make_room(NAME)
    assert not log.exists()
    create(lake)
    lake.make_room(NAME)
    assert table.columns() == COLUMNS


def test_tables_do_not_lie_in_each_other(lake, tmp_path):
    """What the lake tables of a schema would be around, or in, is refused; all tables are listed."""
    older = NativeDelta(lake.root, is_older=True)
    create(older, name=TableName("d", None, "s"))
    table_folder = create(lake).folder
    assert sorted(one.folder for one in lake.tables()) == [f"{lake.root}/d/s", f"{lake.root}/shop/t"]
    with pytest.raises(SchemaError, match="is in the folder of another"):
        older.make_room(TableName("d", "s", "t"))
    Path(lake.root, "d", "u").mkdir()
    Path(table_folder).rename(f"{lake.root}/d/u/t")
    with pytest.raises(SchemaError, match="would be around another"):
        lake.make_room(TableName("d", None, "u"))
    lake.check()
    (tmp_path / "file").write_text("")
    with pytest.raises(FileError):
        NativeDelta(str(tmp_path / "file")).check()


def test_errors_name_the_table(lake):
    """A table that is not there, a step that does not fit, features that are not known, folders that are not found."""
    missing = lake.table(TableName("shop", None, "no"))
    with pytest.raises(JobError, match="shop/no`: there is no such table"):
        missing.columns()
    table = create(lake)
    with pytest.raises(SchemaError, match="there is no column 'x'"):
        table.alter([Step(DROP, "x", LakeColumn("x", "x", "int"))], {})
    with pytest.raises(SchemaError, match="there is a column 'ID' already"):
        table.alter([Step(ADD, "ID", LakeColumn("ID", "x", "int"))], {})
    with pytest.raises(SetupError, match="reads a percent sign in a path as an escape"):
        NativeDelta(f"{lake.root}/a%41").table(NAME)
    file = min(log_folder(table.folder).glob("*.json"))
    features = '"minReaderVersion":3,"minWriterVersion":7,"readerFeatures":["odd"],"writerFeatures":["odd"]'
    file.write_text(file.read_text().replace('"minReaderVersion":1,"minWriterVersion":2', features))
    with pytest.raises(SchemaError, match="run this batch on Spark"):
        table.alter([], {"x": "y"})
    with pytest.raises(SchemaError, match="run this batch on Spark"):
        put(table, {KEY: b"k", ORDER: b"\x01"})


@pytest.mark.parametrize(
    ("pointer", "commits", "checkpoints", "newest"),
    [
        (None, range(3), [], 2),
        (10, range(10, 13), [10], 12),
        (10, range(10, 11), [10], 10),
        # The pointer is the one of a copy, or of a writer that was slower.
        (10, range(16, 26), [20], 25),
        (10, [], [20], 20),
        (20, range(5), [], 4),
        (10, [], [], -1),
    ],
)
def test_the_newest_version_is_that_of_the_log_whatever_points_to_a_checkpoint(
    tmp_path: Path, pointer: int | None, commits: Sequence[int], checkpoints: Sequence[int], newest: int
):
    """What is behind the pointer may be cleaned up, and what it points to may be gone."""
    log = log_folder(str(tmp_path))
    log.mkdir()
    names = [f"{one:020}.json" for one in commits] + [f"{one:020}.checkpoint.parquet" for one in checkpoints]
    for name in names:
        (log / name).touch()
    if pointer is not None:
        (log / "_last_checkpoint").write_text(json.dumps({"version": pointer, "size": 1}))
    assert newest_version(str(tmp_path)) == newest
