"""Native Iceberg tables: what each method does to rows, columns, files and versions, without Java."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any
from uuid import uuid4

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

pytest.importorskip("pyiceberg")

from pyiceberg.table.sorting import NullOrder, SortDirection, SortField, SortOrder
from pyiceberg.transforms import BucketTransform

from cdcavro.errors import FileError, JobError, SchemaError
from cdcavro.lake.catalogs import has_plain_names
from cdcavro.lake.evolution import ADD, DROP, MARK, RENAME, WIDEN, LakeColumn, Step
from cdcavro.lake.sql_statements import AT, CHANGELOG, DELETED, DELETES, KEY, OLDER, OPERATION, ORDER, STATE, UNPARSED
from cdcavro.sync.native import file_changes
from cdcavro.sync.native.hadoop_catalog import HadoopCatalog, version_of
from cdcavro.sync.native.iceberg_files import IcebergFiles
from cdcavro.sync.native.iceberg_lake import Connection, NativeIceberg, NativeIcebergTable
from cdcavro.sync.native.native_columns import Mark
from cdcavro.table import TableName
from support.catalog_servers import GLUE, HIVE, NESSIE, POSTGRESQL, REST, SQL, CatalogServers
from support.jobs import local_job
from support.local_kills import LAST, LocalTrial
from support.local_pipelines import ICEBERG
from support.messages import canal
from support.processes import free_ports
from support.roundtrip import error_of

NOW = datetime(2026, 11, 24, 1, 2, 3, 456_789, tzinfo=UTC)
# Types as Spark spells them, each with a value.
VALUES: Mapping[str, Any] = {
    "boolean": True,
    "int": -(2**31),
    "bigint": 2**63 - 1,
    "float": 0.5,
    "double": -1e300,
    "decimal(9,2)": Decimal("-1234567.89"),
    "decimal(18,0)": Decimal(10**18 - 1),
    "decimal(38,10)": Decimal("9" * 28 + ".1234567890"),
    "date": date(1, 1, 1),
    "timestamp": NOW,
    "timestamp_ntz": NOW.replace(tzinfo=None),
    "string": "ünïcode\0",
    "binary": bytes(range(256)),
    "array<string>": ["a", None],
    "array<array<int>>": [[1], None, []],
    "map<string,binary>": [("k", b"\xff\x00"), ("n", None)],
    "struct<a:int,b:array<string>>": {"a": 1, "b": ["x"]},
}
# Names that are none in other places.
NAMES = ("a.b", "c d", "`", "ü", "*", "1", "x=y;", "'", '"', "\\", "_c", "{}", "a", "A_", "#", "..", "-")
COLUMNS = [LakeColumn(name, f"field_{i}", type) for i, (name, type) in enumerate(zip(NAMES, VALUES, strict=True))]
PLAIN = [LakeColumn("v", "v", "int"), LakeColumn("kept", "kept", "string")]


@pytest.fixture
def lake(tmp_path: Path) -> NativeIceberg:
    """An empty lake."""
    return NativeIceberg("ice", owner="me", warehouse=str(tmp_path / "ware house"))


def made(
    lake: NativeIceberg, columns: Sequence[LakeColumn] = PLAIN, own: Mapping[str, str] = STATE
) -> NativeIcebergTable:
    """Return a table that is created."""
    name = TableName("shop", "s", "t")
    lake.make_room(name)
    table = lake.table(name)
    table.create(columns, own, lake.properties([]))
    return table


def rows_of(table: NativeIcebergTable, rows: Sequence[Mapping[str, Any]], *more: str) -> pa.Table:
    """Return rows as Arrow has them; `more` are names of binary columns beside those of the table."""
    schema = table.schema()
    for name in more:
        schema = schema.append(pa.field(name, pa.binary()))
    return pa.Table.from_pylist([dict(row) for row in rows], schema=schema)


def state(table: NativeIcebergTable) -> dict[bytes, tuple[Any, ...]]:
    """Return what each key has."""
    rows = table.read([KEY, "v", "kept", ORDER, UNPARSED, OLDER]).to_pylist()
    assert len({row[KEY] for row in rows}) == len(rows)
    return {row[KEY]: tuple(row.values())[1:] for row in rows}


def files_of(table: NativeIcebergTable) -> list[str]:
    """Return the names of the data files."""
    return sorted(task.file.file_path for task in IcebergFiles(table._load()).files)


def versions(table: NativeIcebergTable) -> int:
    """Return the number of the newest version."""
    return version_of(table._load().metadata_location)


def test_a_table_has_the_columns_and_properties_it_is_created_with(lake: NativeIceberg):
    """Each type, hostile names, comments; again, nothing happens."""
    table = made(lake, COLUMNS)
    made(lake, PLAIN)
    assert table.identifier == "`ice`.`shop`.`s~~`.`t`"
    assert table.columns() == COLUMNS
    assert table.schema().names == [*NAMES, *STATE]
    found = table.properties()
    assert found is not None
    assert found.pop("owner")
    assert found == {"cdcavro.pipeline": "me", "write.parquet.compression-codec": "zstd"}
    assert (versions(table), table._load().format_version) == (1, 2)
    assert lake.table(TableName("shop", None, "t"), "deletes").properties() is None


def test_values_come_back_exactly(lake: NativeIceberg):
    """Those of each type, nulls, and NaN."""
    table = made(lake, COLUMNS)
    row = dict(zip(NAMES, VALUES.values(), strict=True)) | {KEY: b"\x00\xff", ORDER: b"\xff" * 40}
    row |= {OLDER: [("a", b"\x80")], UNPARSED: [("b", "text")]}
    others = [dict.fromkeys(row), dict.fromkeys(row) | {"ü": float("inf")}]
    table.append(rows_of(table, [row, *others]), Mark("j", 0))
    table.append(rows_of(table, [dict.fromkeys(row) | {"*": float("nan")}]), Mark("j", 1))
    found = table.read(table.schema().names)
    assert found.schema == table.schema()
    # The newest rows are read first.
    assert found.slice(1).equals(rows_of(table, [row, *others]))
    assert str(found.column("*")[0].as_py()) == "nan"


FAR: Mapping[str, Sequence[Any]] = {
    "timestamp": (253_402_300_800_000_000, -62_135_596_800_000_001, 2**63 - 1, -(2**63) + 1),
    "timestamp_ntz": (253_402_300_800_000_000, -62_135_596_800_000_001),
    "date": (2_932_897, -719_163),
    "string": ("\ud7ff" * 17,),
}


@pytest.mark.parametrize("type", FAR)
def test_values_of_which_pyiceberg_finds_no_bounds_are_written(lake: NativeIceberg, type: str):
    """Times that are not Python's, as PostgreSQL's are; the keys beside them have bounds, and no file is left over."""
    table = made(lake, [LakeColumn("v", "v", type)])
    numbers = pa.array(FAR[type])
    values = (numbers.cast(pa.int32()) if type == "date" else numbers).cast(table.schema().field("v").type)
    keys = pa.array([b"%d" % i for i in range(len(values))])
    table.append(pa.table({"v": values, KEY: keys, ORDER: keys}), Mark("j", 0))
    assert table.read(["v"]).column("v").combine_chunks().equals(values)
    (task,) = IcebergFiles(table._load()).files
    assert len(task.file.lower_bounds) == len(task.file.upper_bounds) == 2
    assert len(list(lake.files.folder.rglob("*.parquet"))) == 1


@pytest.mark.slow
def test_a_batch_is_appended_once(lake: NativeIceberg):
    """Also an empty one, also behind another job's, and after older snapshots are forgotten."""
    table = made(lake, [], CHANGELOG)

    def append(job: str, batch: int, *orders: bytes) -> int:
        rows = [{ORDER: one, OPERATION: "c", KEY: None} for one in orders]
        table.append(rows_of(table, rows), Mark(job, batch, NOW))
        return table.read([ORDER]).num_rows

    assert append("it's", 3, b"a", b"b") == 2
    assert append("it's", 3, b"a", b"b") == append("it's", 2, b"0") == 2
    assert append("other", 3, b"c") == 3
    assert append("it's", 4) == append("it's", 4, b"x") == 3
    assert append("it's", 5, b"d") == 4
    current = table._load().current_snapshot()
    assert current is not None
    assert current.summary is not None
    assert current.summary["cdcavro.batch.it's"] == "5"
    append("other", 4, b"e")
    whole = table._load()
    kept = whole.current_snapshot()
    expire = whole.maintenance.expire_snapshots()
    for snapshot in whole.snapshots():
        if snapshot != kept:
            expire.by_id(snapshot.snapshot_id)
    expire.commit()
    assert append("it's", 5, b"d") == 5
    assert append("it's", 6, b"d", b"f") == 7


@pytest.mark.slow
def test_only_files_that_hold_keys_are_rewritten(lake: NativeIceberg):
    """And none, without a new version, if nothing changes."""
    table = made(lake)
    for number in range(3):
        rows = [{KEY: b"%d%d" % (number, i), ORDER: b"1", "v": i} for i in range(3)]
        table.append(rows_of(table, rows), Mark("j", number))
    before = files_of(table)
    table.merge(rows_of(table, [{KEY: b"11", ORDER: b"2", "v": 7}, {KEY: b"9", ORDER: b"1"}], DELETED), ["v"])
    after = files_of(table)
    assert len({*before} - {*after}) == len({*after} - {*before}) == 1
    assert state(table)[b"11"][0] == 7
    count = versions(table)
    table.merge(rows_of(table, [{KEY: b"11", ORDER: b"2", "v": 8}, {KEY: b"x", DELETED: b"9"}], DELETED), ["v"])
    table.merge(rows_of(table, [], DELETED), ["v"])
    table.replace(pa.array([b"none"]), rows_of(table, []))
    table.delete_up_to(ORDER, b"0")
    assert (versions(table), files_of(table)) == (count, after)


@pytest.mark.slow
def test_many_small_files_are_put_together(lake: NativeIceberg, monkeypatch: pytest.MonkeyPatch):
    """And their manifests: a table that is merged into for ever does not become slower for ever."""
    monkeypatch.setattr(file_changes, "_MANY", 4)
    table = made(lake)
    table.alter([], {"commit.manifest.min-count-to-merge": "3"})
    for number in range(12):
        table.merge(rows_of(table, [{KEY: b"%02d" % number, ORDER: b"1", "v": number}], DELETED), ["v"])
        assert len(files_of(table)) <= 5
    assert [state(table)[b"%02d" % number][0] for number in range(12)] == list(range(12))
    for number in range(9):
        table.append(rows_of(table, [{KEY: b"a%d" % number, ORDER: b"1"}]), Mark("j", number))
    whole = table._load()
    snapshot = whole.current_snapshot()
    assert snapshot is not None
    assert len(snapshot.manifests(whole.io)) <= 4
    assert len(state(table)) == 21


@pytest.mark.slow
def test_manifests_without_files_are_forgotten(lake: NativeIceberg):
    """Each change of a row would leave one, which each later change would read."""
    table = made(lake)
    for number in range(8):
        table.merge(rows_of(table, [{KEY: b"k", ORDER: b"%d" % number, "v": number}], DELETED), ["v"])
    whole = table._load()
    snapshot = whole.current_snapshot()
    assert snapshot is not None
    assert len(snapshot.manifests(whole.io)) == 2
    assert state(table)[b"k"][0] == 7


def test_columns_are_changed_by_their_numbers(lake: NativeIceberg):
    """In one commit, with properties; older rows have what they had."""
    columns = [
        LakeColumn(name, name, type)
        for name, type in {"a": "int", "b": "float", "c": "decimal(5,2)", "d.": "int"}.items()
    ]
    table = made(lake, columns)
    row = {"a": 1, "b": 0.5, "c": Decimal("1.25"), "d.": 4, KEY: b"k", ORDER: b"1"}
    table.append(rows_of(table, [row]), Mark("j", 0))
    steps = [
        Step(DROP, "d.", columns[3]),
        Step(RENAME, "a", LakeColumn("~~moving", "a", "int")),
        Step(RENAME, "b", LakeColumn("a", "b", "float")),
        Step(RENAME, "~~moving", LakeColumn("b", "a", "int")),
        Step(WIDEN, "b", LakeColumn("b", "x", "bigint")),
        Step(MARK, "b", LakeColumn("b", "x", "bigint")),
        Step(WIDEN, "a", LakeColumn("a", "b", "double")),
        Step(WIDEN, "c", LakeColumn("c", "c", "decimal(30,2)")),
        Step(ADD, "d.", LakeColumn("d.", "e", "map<string,string>")),
        Step(MARK, "d.", LakeColumn("d.", "it's", "map<string,string>")),
    ]
    table.alter(steps, {"cdcavro.floor": "00ff", "p": "`"})
    assert versions(table) == 3
    assert table.columns() == [
        LakeColumn("b", "x", "bigint"),
        LakeColumn("a", "b", "double"),
        LakeColumn("c", "c", "decimal(30,2)"),
        LakeColumn("d.", "it's", "map<string,string>"),
    ]
    assert (table.properties() or {})["cdcavro.floor"] == "00ff"
    names = ["b", "a", "c", "d."]
    assert table.read(names).to_pylist() == [{"b": 1, "a": 0.5, "c": Decimal("1.25"), "d.": None}]
    table.append(rows_of(table, [{"b": 2**40, "a": 1e300, "c": Decimal(10**20), "d.": [("k", "v")]}]), Mark("j", 1))
    assert table.read(["d.", "b"]).to_pylist() == [{"d.": [("k", "v")], "b": 2**40}, {"d.": None, "b": 1}]
    table.alter([], {})
    table.alter([], {"p": "`"})
    assert versions(table) == 4


@pytest.mark.parametrize(
    ("step", "reason"),
    [
        (Step(WIDEN, "v", LakeColumn("v", "v", "string")), "Cannot change column type"),
        (Step(WIDEN, "v", LakeColumn("v", "v", "tape")), "no type of a lake"),
        (Step(ADD, "v", LakeColumn("v", "v", "int")), "already exists"),
        (Step(RENAME, "none", LakeColumn("w", "v", "int")), "none"),
        (Step("turn", "v", LakeColumn("w", "v", "int")), "turn is none of"),
    ],
)
def test_a_step_that_cannot_be_taken_changes_nothing(lake: NativeIceberg, step: Step, reason: str):
    """Nor do those before it."""
    table = made(lake)
    with pytest.raises(SchemaError, match=reason):
        table.alter([Step(ADD, "w", LakeColumn("new", "new", "int")), step], {"p": "q"})
    assert (versions(table), table.columns()) == (1, PLAIN)


def test_names_that_iceberg_does_not_tell_apart_are_refused(lake: NativeIceberg):
    """A column that is called as the inside of another one is."""
    columns = [LakeColumn("m", "m", "map<string,int>"), LakeColumn("m.key", "k", "int")]
    with pytest.raises(SchemaError, match=r"`t`: .*multiple fields for name m\.key"):
        made(lake, columns)
    table = made(lake, columns[:1])
    with pytest.raises(SchemaError, match=r"m\.key"):
        table.alter([Step(ADD, "m.key", columns[1])], {})
    assert table.columns() == columns[:1]


def test_rows_are_found_and_replaced_by_their_keys(lake: NativeIceberg):
    """In one commit."""
    table = made(lake)
    table.append(rows_of(table, [{KEY: bytes([i]), ORDER: b"1", "v": i} for i in range(250, 256)]), Mark("j", 0))
    table.append(rows_of(table, [{KEY: None, "v": 9}, {KEY: b"", ORDER: b"1", "v": 8}]), Mark("j", 1))
    found = table.find(pa.array([b"\xff", b"", b"none"]), ["v", KEY])
    assert sorted(found.to_pylist(), key=str) == [{"v": 255, KEY: b"\xff"}, {"v": 8, KEY: b""}]
    assert table.find(pa.array([b"none"])).schema == table.schema()
    table.replace(pa.array([b"\xff", b"\xfe"]), rows_of(table, [{KEY: b"\xff", "v": 1}, {KEY: b"n", "v": 2}]))
    assert versions(table) == 4
    assert {row[KEY]: row["v"] for row in table.read([KEY, "v"]).to_pylist()} == {
        **{bytes([i]): i for i in range(250, 254)},
        None: 9,
        b"": 8,
        b"\xff": 1,
        b"n": 2,
    }


def test_rows_up_to_a_bound_are_deleted(lake: NativeIceberg):
    """By bytes, without a sign, and by time; those without a value stay."""
    table = made(lake, [], DELETES)
    moments = [NOW + timedelta(microseconds=i) for i in range(4)]
    rows = [{KEY: b"%d" % i, ORDER: bytes([i * 80]), AT: one} for i, one in enumerate(moments)]
    table.append(rows_of(table, [*rows, {KEY: b"n"}]), Mark("j", 0))
    table.delete_up_to(ORDER, b"\x50")
    assert [row[KEY] for row in table.read([KEY]).to_pylist()] == [b"2", b"3", b"n"]
    table.delete_up_to(AT, moments[2])
    assert [row[KEY] for row in table.read([KEY]).to_pylist()] == [b"3", b"n"]
    table.replace(pa.array([b"n"]), rows_of(table, []))
    table.delete_up_to(ORDER, b"\xff")
    assert (table.read([KEY]).num_rows, files_of(table)) == (0, [])
    table.append(rows_of(table, rows), Mark("j", 1))
    assert table.read([KEY]).num_rows == 4


def test_all_rows_are_rewritten_in_one_commit(lake: NativeIceberg):
    """Or none, if that fails: then no file is left of it."""
    table = made(lake)
    for number in range(3):
        table.append(rows_of(table, [{KEY: b"%d" % number, ORDER: b"1", "v": number}]), Mark("j", number))

    def double(batch: pa.RecordBatch) -> pa.RecordBatch:
        return pa.RecordBatch.from_pylist([row | {"v": row["v"] * 2} for row in batch.to_pylist()], schema=batch.schema)

    table.rewrite(double)
    assert sorted(row["v"] for row in table.read(["v"]).to_pylist()) == [0, 2, 4]
    assert versions(table) == 5
    before = sorted(lake.files.folder.rglob("*.parquet"))
    with pytest.raises(JobError, match=r"`ice`\.`shop`\.`s~~`\.`t`: .*not today"):
        table.rewrite(fail)
    assert (versions(table), sorted(lake.files.folder.rglob("*.parquet"))) == (5, before)


def fail(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Fail."""
    raise ValueError("not today")


@pytest.mark.slow
def test_writers_at_the_same_time_lose_nothing(lake: NativeIceberg):
    """Each merge is planned again on what the others have written, and files of lost tries are gone."""
    table = made(lake)
    errors: list[JobError] = []

    def write(writer: int) -> None:
        own = NativeIceberg("ice", warehouse=lake.warehouse).table(TableName("shop", "s", "t"))
        try:
            for number in range(4):
                rows = [{KEY: b"all", ORDER: b"%d%d" % (number, writer), "v": writer}]
                rows += [{KEY: b"%d %d" % (writer, number), ORDER: b"1", "v": number}]
                own.merge(rows_of(own, rows, DELETED), ["v"])
        except JobError as error:
            errors.append(error)

    writers = [threading.Thread(target=write, args=(writer,)) for writer in range(2)]
    for one in writers:
        one.start()
    for one in writers:
        one.join()
    assert errors == []
    found = state(table)
    assert len(found) == 9
    assert found[b"all"][2] == b"31"
    whole = table._load()
    known = {
        entry.data_file.file_path
        for snapshot in whole.snapshots()
        for manifest in snapshot.manifests(whole.io)
        for entry in manifest.fetch_manifest_entry(whole.io, discard_deleted=False)
    }
    assert {str(path) for path in lake.files.folder.rglob("*.parquet")} == known


@pytest.mark.slow
def test_a_commit_that_always_loses_is_an_error(lake: NativeIceberg, monkeypatch: pytest.MonkeyPatch):
    """After five tries, each of which another writer overtakes; it names the table."""
    table, tries = made(lake), []
    commit = HadoopCatalog.commit_table

    def overtaken(self: HadoopCatalog, *arguments: Any) -> Any:
        tries.append(versions(table))
        self._put(("shop", "s~~", "t"), self.load_table(("shop", "s~~", "t")).metadata, tries[-1] + 1)
        rows = made(lake)._load()
        monkeypatch.setattr(HadoopCatalog, "commit_table", commit)
        files = IcebergFiles(rows)
        files.append({})
        monkeypatch.setattr(HadoopCatalog, "commit_table", overtaken)
        return commit(self, *arguments)

    monkeypatch.setattr(HadoopCatalog, "commit_table", overtaken)
    with pytest.raises(JobError, match=r"`t`: other writers were faster, 5 times"):
        table.append(rows_of(table, [{KEY: b"k"}]), Mark("j", 0))
    assert len(tries) == 5
    assert list(lake.files.folder.rglob("*.parquet")) == []


def test_errors_name_the_table(lake: NativeIceberg):
    """One that is not there, one whose file is gone, and a value that does not fit."""
    missing = lake.table(TableName("shop", None, "none"))
    for call in (missing.columns, missing.schema, lambda: missing.read([KEY]), lambda: missing.alter([], {"p": "q"})):
        with pytest.raises(JobError, match=r"there is no table `ice`\.`shop`\.`none`"):
            call()
    table = made(lake)
    with pytest.raises(JobError, match=r"`t`: ArrowInvalid"):
        table.append(pa.table({KEY: pa.array([b"k"]), "v": pa.array(["no number"])}), Mark("j", 0))
    table.append(rows_of(table, [{KEY: b"k"}]), Mark("j", 0))
    next(lake.files.folder.rglob("*.parquet")).unlink()
    with pytest.raises(JobError, match=r"`t`: FileNotFoundError"):
        table.read([KEY])


def test_a_lake_knows_its_tables(lake: NativeIceberg, tmp_path: Path):
    """Those of databases and schemas; it can be checked before there are any."""
    lake.check()
    assert list(lake.tables()) == []
    for name in (TableName("shop", "s", "t"), TableName("shop", None, "u"), TableName(None, None, "v")):
        lake.make_room(name)
        lake.table(name, "changes").create([], CHANGELOG, {})
    assert sorted(one.identifier for one in lake.tables()) == [
        "`ice`.`shop`.`s~~`.`t~~changes`",
        "`ice`.`shop`.`u~~changes`",
        "`ice`.`~~`.`v~~changes`",
    ]
    lake.check()
    assert lake.name == "Iceberg's catalog ice"
    file = tmp_path / "file"
    file.touch()
    with pytest.raises(FileError, match="can be written to"):
        NativeIceberg("ice", warehouse=str(file)).check()
    with pytest.raises(FileError, match="a folder on this machine"):
        NativeIceberg("ice", warehouse="s3://bucket/lake").check()


def test_tables_do_not_lie_in_each_other(lake: NativeIceberg, tmp_path: Path):
    """As with Spark's sinks: what was made under first names is said, and where it is to go."""
    older = NativeIceberg("ice", is_older=True, warehouse=lake.warehouse)
    name = TableName("shop", "s", "t")
    older.make_room(name)
    older.table(name).create(PLAIN, STATE, {})
    with pytest.raises(SchemaError, match="under the name that it had at first"):
        lake.make_room(name)
    with pytest.raises(SchemaError, match="would be around another"):
        older.make_room(TableName("shop", None, "s"))
    other = NativeIceberg("ice", is_older=True, warehouse=str(tmp_path / "other"))
    other.make_room(TableName("shop", None, "s"))
    other.table(TableName("shop", None, "s")).create(PLAIN, STATE, {})
    with pytest.raises(SchemaError, match="in the folder of another"):
        other.make_room(name)


# Values of a column in the order that Iceberg has for them.
ASCENDING: Mapping[str, Sequence[Any]] = {
    "boolean": (None, False, True),
    "int": (None, -(2**31), -1, 0, 2**31 - 1),
    "bigint": (None, -(2**63), -1, 0, 2**63 - 1),
    "float": (None, -float("inf"), -1.5, -0.0, 0.0, 1.5, float("inf"), float("nan")),
    "double": (None, -float("inf"), -1e300, -5e-324, -0.0, 0.0, 5e-324, 1e300, float("inf"), float("nan")),
    "decimal(38,10)": (None, Decimal(-9), Decimal("-0.0000000001"), Decimal(0), Decimal("9" * 28)),
    "date": (None, date(1, 1, 1), date(1970, 1, 1), date(9999, 12, 31)),
    "timestamp": (None, NOW - timedelta(days=99_999), NOW, NOW + timedelta(microseconds=1)),
    "timestamp_ntz": (None, datetime(1969, 1, 1), datetime(1970, 1, 1)),  # noqa: DTZ001  local times
    "string": (None, "", "Z", "a", "a\0", "ab", "é", "\uffff", "😀"),
    "binary": (None, b"", b"\x00", b"\x7f", b"\x80", b"\xff"),
}


@pytest.mark.parametrize(
    "type",
    [one if one in {"double", "string"} else pytest.param(one, marks=pytest.mark.slow) for one in ASCENDING],
)
def test_rows_are_sorted_as_iceberg_compares_values(lake: NativeIceberg, type: str):
    """Also those of files that are written again; rows that are equal by the first column are sorted by the next."""
    values = ASCENDING[type]
    table = made(lake, [LakeColumn("v", "v", type), LakeColumn("n", "n", "int")], {KEY: "binary"})
    assert table.sort_by(["v", "n"]) == []
    rows = [{"v": value, "n": n, KEY: bytes([i, n])} for i, value in enumerate(values) for n in (1, 2)]
    shuffled = rows[::2][::-1] + rows[1::2]
    table.append(rows_of(table, shuffled))
    wanted = [row[KEY] for row in rows]
    for i in range(2):
        (task,) = IcebergFiles(table._load()).files
        assert pq.read_table(task.file.file_path).column(KEY).to_pylist() == wanted[2 * i :]
        assert task.file.sort_order_id == 1
        table.replace(pa.array([bytes([0, 1]), bytes([0, 2])]), rows_of(table, []))


def test_an_order_ends_also_where_a_table_never_was_without_one(lake: NativeIceberg):
    """As Java's libraries may create it; files do not claim to be in an order of others, and no column of one is dropped."""
    table = made(lake)
    other = SortOrder(SortField(1, BucketTransform(4), SortDirection.DESC, NullOrder.NULLS_LAST), SortField(2))
    lake.files.create_table(("shop", "u"), table._load().schema(), sort_order=other, properties={"format-version": "2"})
    foreign = lake.table(TableName("shop", None, "u"))
    foreign.append(rows_of(foreign, [{"v": 2, "kept": "b"}, {"v": 1, "kept": "a"}]))
    (task,) = IcebergFiles(foreign._load()).files
    assert task.file.sort_order_id is None
    (told,) = foreign.sort_by([])
    assert told.startswith("rows are sorted by no column from now on")
    assert foreign._load().sort_order().is_unsorted
    assert foreign.sort_by([]) == []
    steps = [
        Step(RENAME, "kept", LakeColumn("x", "kept", "string")),
        Step(DROP, "x", LakeColumn("x", "kept", "string")),
    ]
    with pytest.raises(SchemaError, match="rows are sorted by it, or were, and Iceberg keeps the columns of orders"):
        foreign.alter(steps, {})
    assert foreign.read(["v"]).column("v").to_pylist() == [2, 1]


@pytest.mark.slow
def test_nothing_of_spark_is_imported():
    """Nor anything else that is slow and not needed."""
    code = (
        "import sys, cdcavro.sync.native.iceberg_lake as _; print({'pyspark', 'py4j', 'sqlalchemy'} & {*sys.modules})"
    )
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert done.stdout == "set()\n"


@pytest.fixture(
    params=[
        SQL,
        *[pytest.param(kind, marks=pytest.mark.slow) for kind in (POSTGRESQL, GLUE)],
        *[pytest.param(kind, marks=[pytest.mark.jvm, pytest.mark.timeout(600)]) for kind in (REST, HIVE)],
    ]
)
def catalog(request: pytest.FixtureRequest, servers: CatalogServers, tmp_path: Path) -> dict[str, str]:
    """A catalog, which has the namespaces of other tests, too."""
    return servers.properties(request.param, tmp_path)


@pytest.mark.slow
def test_tables_of_a_catalog_have_each_change_once(catalog: dict[str, str], tmp_path: Path):
    """Also if a batch is run again; they follow statements, and are no other pipeline's."""
    database = uuid4().hex
    made = local_job(tmp_path, ICEBERG, is_changelog=True, catalog=catalog)
    made.send(
        canal("INSERT", [{"id": "1", "a": "1"}], id=1, database=database),
        canal("INSERT", [{"id": "2", "a": "1"}], id=2, database=database),
        canal("INSERT", [{"id": "1"}], id=3, database=database, table="U x"),
    )
    made.send(
        canal("ALTER", [], id=4, database=database, isDdl=True, sql="ALTER TABLE t ADD COLUMN b int"),
        canal("UPDATE", [{"id": "1", "a": "3", "b": "4"}], id=5, old=[{"a": "1"}], database=database),
        canal("DELETE", [{"id": "2", "a": "1", "b": "0"}], id=6, database=database),
    )
    made.check()
    made.run()
    made.run_again()
    assert made.rows(f"{database}.t", "id", "a", "b") == [(1, 3, 4)]
    assert made.rows(f"{database}.U x", "id") == [(1,)]
    changes = made.rows(f"{database}.t", "_cdc_op", "id", suffix="changes")
    assert changes == [("b", 1), ("c", 1), ("c", 2), ("d", 2), ("u", 1)]
    made.check()
    (tmp_path / "other").mkdir()
    other = local_job(tmp_path / "other", ICEBERG, catalog=catalog)
    other.send(canal("INSERT", [{"id": "9"}], id=1, database=database))
    assert "one of another pipeline" in error_of(other.run)
    adopting = replace(other, lake={**other.lake, "is_adopting": True})
    adopting.run()
    assert made.rows(f"{database}.t", "id") == [(1,), (9,)]


@pytest.mark.slow
@pytest.mark.parametrize("kind", [SQL, GLUE, pytest.param(NESSIE, marks=[pytest.mark.jvm, pytest.mark.timeout(900)])])
def test_what_is_killed_beside_a_commit_to_a_catalog_goes_on_as_if_it_had_not_been(
    servers: CatalogServers, tmp_path: Path, kind: str
):
    """Current states and changelogs have each change once."""
    catalog = servers.properties(kind, tmp_path)
    trial = LocalTrial(tmp_path / f"k{uuid4().hex}", ICEBERG, "", seed=16, catalog=catalog)
    for point in ("behind a lake table's creation", "behind an append's commit"):
        trial.feed(1)
        assert trial.kill(point), point
    for point in ("between deletes and merge", "behind the merge's commit", LAST):
        assert trial.kill(point), point
    assert trial.finish() == []


def test_threads_that_need_a_new_database_first_make_its_tables_once(servers: CatalogServers, tmp_path: Path):
    """Each of them would make what the other has made."""
    connection = Connection("ice", servers.properties(SQL, tmp_path))
    with ThreadPoolExecutor(8) as pool:
        found = {id(one) for one in pool.map(lambda _: connection.catalog, range(8))}
    assert len(found) == 1


@pytest.mark.slow
def test_a_commit_that_loses_in_a_catalog_is_made_again(catalog: dict[str, str]):
    """Nothing of the other writer's is lost, and nothing is there twice."""
    made = NativeIceberg(
        "ice", is_shared=True, is_plain=has_plain_names(catalog), connection=Connection("ice", catalog)
    )
    name = TableName(uuid4().hex, None, "t")
    made.make_room(name)
    table, rows = made.table(name), pa.table({"a": pa.array([1], pa.int32())})
    table.create([LakeColumn("a", "a", "int")], {}, made.properties([]))
    seen = []

    def change(files: IcebergFiles) -> None:
        if not seen:
            made.table(name).append(rows)
        seen.append(len(files.files))
        files.add(rows)
        files.append({})

    table._try(change)
    assert (seen, table.read(["a"]).num_rows) == ([0, 1], 2)


def test_a_catalog_keeps_the_order_of_a_table(catalog: dict[str, str]):
    """Which ends, and comes again by its number."""
    made = NativeIceberg(
        "ice", is_shared=True, is_plain=has_plain_names(catalog), connection=Connection("ice", catalog)
    )
    name = TableName(uuid4().hex, None, "t")
    made.make_room(name)
    table, rows = made.table(name), pa.table({"v": pa.array([2, None, 1], pa.int32()), "kept": ["a", "b", "a"]})
    table.create(PLAIN, {}, made.properties([]))
    numbers = []
    for names in (["v"], ["kept", "v"], [], ["v"], ["kept", "v"]):
        table.sort_by(names)
        table.append(rows)
        numbers.append(table._load().sort_order().order_id)
    assert numbers == [1, 2, 0, 1, 2]
    said = [task.file.sort_order_id for task in IcebergFiles(table._load()).files]
    assert sorted(one or 0 for one in said) == [0, 1, 1, 2, 2]
    assert table.read(["v"]).num_rows == 15


@pytest.mark.slow
def test_glue_refuses_what_was_committed_too_late(
    servers: CatalogServers, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """By the version that a writer has seen: one that comes behind the last look at the table loses, and begins again."""
    catalog, name = servers.properties(GLUE, tmp_path), TableName(uuid4().hex, None, "t")
    own, other = (
        NativeIceberg("ice", is_shared=True, is_plain=True, connection=Connection("ice", catalog)) for _ in "ab"
    )
    own.make_room(name)
    table, rows = own.table(name), pa.table({"a": pa.array([1], pa.int32())})
    table.create([LakeColumn("a", "a", "int")], {}, own.properties([]))
    update, tries = own.files._update_glue_table, []

    def late(**stated: Any) -> None:
        tries.append(stated["version_id"])
        if len(tries) == 1:
            other.table(name).append(rows)
        update(**stated)

    monkeypatch.setattr(own.files, "_update_glue_table", late)
    table.append(rows)
    assert (tries, table.read(["a"]).num_rows) == (["1", "2"], 2)


@pytest.mark.slow
@pytest.mark.parametrize("kind", [pytest.param(REST, marks=pytest.mark.jvm), SQL, GLUE])
def test_a_commit_whose_answer_was_lost_and_that_was_asked_for_again_is_there_once(
    servers: CatalogServers, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
):
    """As clients of servers ask again by themselves: what is told to have lost is in the table, whose files stay."""
    catalog, name = servers.properties(kind, tmp_path), TableName(uuid4().hex, None, "t")
    lake = NativeIceberg("ice", is_shared=True, is_plain=kind == GLUE, connection=Connection("ice", catalog))
    lake.make_room(name)
    table, rows = lake.table(name), pa.table({"a": pa.array([1], pa.int32())})
    table.create([LakeColumn("a", "a", "int")], {}, lake.properties([]))
    call = "_update_glue_table" if kind == GLUE else "commit_table"
    send = getattr(lake.files, call)

    def sent_twice(*stated: Any, **named: Any) -> None:
        send(*stated, **named)
        send(*stated, **named)

    with monkeypatch.context() as patch:
        patch.setattr(lake.files, call, sent_twice)
        table.append(rows)
    assert lake.table(name).read(["a"]).column("a").to_pylist() == [1]


def test_threads_make_a_namespace_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Hive's metastore removes the folder of one that is made twice at a time, with the tables that it has by then."""
    catalog = {"type": "sql", "uri": f"sqlite:///{tmp_path}/c.db", "warehouse": f"file://{tmp_path}/wh"}
    lake = NativeIceberg("ice", is_shared=True, connection=Connection("ice", catalog))
    made, create = [], lake.files.create_namespace

    def slowly(namespace: Any, properties: Any) -> None:
        made.append(namespace)
        time.sleep(0.1)
        create(namespace, properties)

    monkeypatch.setattr(lake.files, "create_namespace", slowly)
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lake.make_room, [TableName("shop", None, f"t{number}") for number in range(4)]))
    assert made == [("shop",)]


def test_a_catalog_that_does_not_answer_is_no_traceback(tmp_path: Path):
    """Nor is one that only Spark knows, and what came is not lost."""
    (port,) = free_ports(1)
    made = local_job(tmp_path, ICEBERG, catalog={"type": "rest", "uri": f"http://127.0.0.1:{port}"})
    made.send(canal("INSERT", [{"id": "1"}], id=1))
    said = "Iceberg's catalog ice: ConnectionError: "
    assert error_of(made.check).startswith(said)
    assert error_of(made.run).startswith(said)
    database = {"type": "sql", "uri": f"sqlite:///{tmp_path}/none/c.db", "warehouse": str(tmp_path)}
    said = "Iceberg's catalog ice: OperationalError: (sqlite3.OperationalError) unable to open database file"
    assert error_of(replace(made, lake={"catalog": database}).check) == said
    metastore = {"type": "hive", "uri": f"thrift://127.0.0.1:{port}"}
    said = "Iceberg's catalog ice: TTransportException: Could not connect to any of "
    assert error_of(replace(made, lake={"catalog": metastore}).check).startswith(said)
    nessie = replace(made, lake={"catalog": {"type": "nessie", "uri": "x", "warehouse": "y"}})
    assert error_of(nessie.check) == (
        'Iceberg\'s catalog ice: without Spark, Nessie is reached at its address of Iceberg, with type = "rest"'
    )


def test_a_catalog_of_plain_names_has_them_for_tables_and_those_beside_them():
    """As Hive's, Glue's and S3 Tables' are."""
    table = TableName("Shop", None, "order-items")
    lake = NativeIceberg("g", is_shared=True, is_plain=True, connection=Connection("g", {"type": "glue"}))
    assert lake.table(table, "deletes").identifier == "`g`.`shop`.`order_x2d_items_x_deletes`"
