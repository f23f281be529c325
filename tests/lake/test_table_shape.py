"""The shape of lake tables: what can be said of them, and what the local runner makes of it."""

from __future__ import annotations

import json
import random
import re
import shutil
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, write_deltalake
from pyiceberg.expressions import EqualTo, IsNull

from cdcavro.errors import FileError, SchemaError
from cdcavro.lake.evolution import DROP, RENAME, WIDEN, LakeColumn, Step
from cdcavro.lake.table_shape import DELTA, ICEBERG, Partition, TableShape, check_partitioned
from cdcavro.sync.config import read_config
from cdcavro.sync.local.local_sinks import maintain
from cdcavro.sync.native.hadoop_catalog import HadoopCatalog
from cdcavro.sync.outputs.sink_settings import StatementRules, excluded_kinds
from cdcavro.sync.pipeline import reset
from cdcavro.table import TableName
from support.jobs import LocalJob, local_job
from support.local_pipelines import lake_section
from support.messages import canal
from support.partition_changes import PLAIN_TYPES, PLAIN_VALUES, TYPES, moving_rows

RETENTION = {
    "delta": ("delta.logRetentionDuration", "interval 60 days"),
    "iceberg": ("write.target-file-size-bytes", 9),
}


@pytest.fixture
def job(tmp_path: Path) -> Callable[..., LocalJob]:
    """Return what makes pipelines."""
    return partial(local_job, tmp_path)


def properties_of(made: LocalJob, suffix: str = "") -> dict[str, str]:
    """Return the properties of the lake table of `d.t`."""
    return made.lake_table(TableName("d", None, "t"), suffix).properties() or {}


@pytest.mark.parametrize(
    ("lake", "name", "value", "said"),
    [
        (DELTA, "cdcavro.pipeline", "x", "the property 'cdcavro.pipeline' is kept for what writes the table"),
        (DELTA, "parquet.enable.dictionary#_cdc_key", True, "is kept for what writes the table"),
        (ICEBERG, "Owner", "me", "is kept for what writes the table"),
        (ICEBERG, "format-version", 3, "is kept for what writes the table"),
        (ICEBERG, "delta.checkpointInterval", 5, "is of Delta Lake, and tables are of Iceberg"),
        (DELTA, "write.format.default", "orc", "is of Iceberg, and tables are of Delta Lake"),
        (DELTA, "dleta.checkpointInterval", 5, "means nothing: did you mean one that begins with delta.?"),
        (DELTA, "delta.checkpointIntervall", 5, "cannot be set: did you mean delta.checkpointInterval?"),
        (DELTA, "delta.enableChangeDataFeed", True, "is unknown, or needs something of each writer"),
        (DELTA, "delta.appendOnly", True, "is unknown, or needs something of each writer"),
        (DELTA, "delta.checkpointInterval", 0, "the property delta.checkpointInterval cannot be '0'"),
        (DELTA, "delta.logRetentionDuration", "60 days", "cannot be '60 days': it is like interval 60 days"),
        (DELTA, "delta.targetFileSize", "big", "cannot be 'big': it is a size such as 128mb"),
        (ICEBERG, "write.merge.mode", "quick", "cannot be 'quick'"),
        (ICEBERG, "write.metadata.path", "/x", "is unknown, or needs something of each writer"),
        (DELTA, "a b", "x", "has letters, digits, dots, _ and -, which 'a b' is not"),
        (DELTA, "team", "x\ny", "the value of the property team is a text of a line"),
        (DELTA, "team", "${x}", "the value of the property team is a text of a line"),
    ],
)
def test_properties_that_mean_nothing_or_are_kept_are_refused(lake: str, name: str, value: Any, said: str):
    """Before anything starts."""
    with pytest.raises(ValueError, match=re.escape(said)):
        TableShape("t", properties={name: value}).check_for(lake)


@pytest.mark.slow
@pytest.mark.parametrize("kind", [DELTA, ICEBERG])
def test_properties_are_set_in_a_new_table_and_in_one_that_has_others(job: Callable[..., LocalJob], kind: str):
    """In its changelog as well; of two shapes that fit, the first counts as a whole, and what is not stated stays."""
    name, value = RETENTION[kind]
    made = job(kind, is_changelog=True)
    made.send(canal("INSERT", [{"id": "1"}], id=1))
    first = TableShape("D.*", properties={name: value, "team": "web"})
    (report,) = made.run(shapes=(first, TableShape("d.t", properties={"other": "x"})))
    assert report.steps == []
    for suffix in ("", "changes"):
        own = properties_of(made, suffix)
        assert (own[name], own["team"]) == (str(value), "web")
        assert "other" not in own
        assert own["cdcavro.pipeline"]
    made.send(canal("INSERT", [{"id": "2", "a": "1"}], id=2))
    (report,) = made.run(shapes=(TableShape("d.t", properties={"team": "shop", "own.x": True}),))
    said = ["d.t: property team is set to shop", "d.t: property own.x is set to true"]
    assert [step for step in report.steps if "property" in step] == said
    assert {**properties_of(made), name: str(value), "team": "shop", "own.x": "true"} == properties_of(made)
    assert made.rows("d.t", "id", "a") == [(1, None), (2, 1)]


def test_settings_of_lake_tables_need_a_lake(tmp_path: Path):
    """Python is told as the configuration is, and the key of a table is of any sink."""
    section = '[[table]]\nmatch = "t"\n{}\n'
    head = 'state = "s"\n[source]\nfiles = "in"\n[avro]\nfolder = "out"\n'
    path = tmp_path / "sync.toml"
    path.write_text(head + section.format("properties = { team = 'x' }"))
    with pytest.raises(FileError, match=r"properties in \[\[table\]\] is of lake tables, and rows go to Avro files in"):
        read_config(path).pipeline("x")
    path.write_text(head + section.format('key = ["id"]'))
    assert read_config(path).pipeline("x").settings.shapes == (TableShape("t", ("id",)),)
    path.write_text(head + section.format('key = ["id", "ID"]'))
    with pytest.raises(FileError, match="key names each column once, and 'id' twice"):
        read_config(path)


def test_the_first_section_of_each_aspect_counts(tmp_path: Path):
    """One may be about rows, the next about the shape."""
    lake = "\n".join(f'{name} = "{value}"' for name, value in lake_section(DELTA, tmp_path).items())
    path = tmp_path / "sync.toml"
    path.write_text(
        f'state = "s"\nrejects_raw = "omit"\n[source]\nfiles = "in"\n[lake]\n{lake}\n[[table]]\nmatch = "t"\n'
        'leave_out = ["a"]\n[[table]]\nmatch = "t*"\nkey = ["id"]\nwhere = "id > 1"\n'
    )
    settings = read_config(path).pipeline("x").settings
    assert [rule.match for rule in settings.rules] == ["t", "t*"]
    assert [shape.match for shape in settings.shapes] == ["t*"]


@pytest.mark.parametrize(
    ("partition", "said"),
    [
        (("day(a)",), "partition has no transform 'day': did you mean days?"),
        (("md5(a)",), "partition has no transform 'md5': there are identity, years"),
        (("bucket(a)",), "partition has bucket(16, column), which 'bucket(a)' is not"),
        (("days(3, a)",), "partition has days(column), which 'days(3, a)' is not"),
        (("bucket(0, a)",), "partition has a number from 1 to 1,000,000, which 'bucket(0, a)' has not"),
        (("bucket(12345678901, a)",), "partition has a number from 1 to 1,000,000"),
        (("bucket(2, a)", "bucket(4, a)"), "partition names each column once, and 'bucket(a)' twice"),
        (("a", "A"), "partition names each column once, and 'a' twice"),
        (("days(a)", "hours(A)"), "partition by times names each column once, and 'a' twice"),
        (("",), "partition has names of columns, not an empty one"),
    ],
)
def test_partitions_that_mean_nothing_are_refused(partition: tuple[str, ...], said: str):
    """Before anything starts."""
    with pytest.raises(ValueError, match=re.escape(said)):
        TableShape("t", partition=partition)
    assert str(Partition.of(" Bucket( 16,id )")) == "bucket(16, id)"
    assert Partition.of("truncate(4, a`b)").sql == "truncate(4, `a``b`)"
    TableShape("t", partition=("a",), cluster=("b",)).check_for(DELTA)
    with pytest.raises(ValueError, match=r"has days\(a\), and Delta Lake partitions tables by columns as they are"):
        TableShape("t", partition=("b", "days(a)")).check_for(DELTA)
    with pytest.raises(
        ValueError, match=r"partition and cluster in .* both name 'A', which has one value in each file"
    ):
        TableShape("t", partition=("a",), cluster=("b", "A")).check_for(DELTA)


def check_found(made: LocalJob) -> None:
    """Check that files which a condition leaves out, by their partitions, have no row for which it holds."""
    table = HadoopCatalog("ice", str(made.folder_of_lake)).load_table(("d", "t"))
    rows = table.scan().to_arrow()
    held = [(name, value) for name in ("id", "region", "at") for value in rows[name].to_pylist()]
    for name, value in dict.fromkeys(held):
        found = table.scan(
            row_filter=IsNull(name) if value is None else EqualTo(name, shown_in_filter(value))
        ).to_arrow()
        assert len(found) == sum(one == value for one in rows[name].to_pylist()), (name, value)


def shown_in_filter(value: Any) -> Any:
    """Return a value as conditions have it."""
    return value.isoformat() if hasattr(value, "isoformat") else value


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("seed", [1, 2])
def test_rows_that_move_from_partition_to_partition_are_those_of_the_source(job: Callable[..., LocalJob], seed: int):
    """Inserted, updated, deleted, sent again; also behind another partition. A column that is renamed is followed."""
    made = job(ICEBERG, is_changelog=True)
    batches = moving_rows(random.Random(seed), 4, 30)
    first = TableShape("d.t", partition=("days(At)", "bucket(4, ID)", "region"))
    second = TableShape("d.t", partition=("truncate(1, region)", "months(at)"))
    told: list[str] = []
    for number, (messages, wanted) in enumerate(batches):
        made.send(*messages)
        (report,) = made.run(shapes=(second if number > 1 else first,))
        assert report.waiting == {}
        told += report.steps
        rows = made.rows("d.t", "id", "region", "strftime(\"at\", '%Y-%m-%d %H:%M:%S')", "n")
        assert sorted(str(dict(zip(TYPES, row, strict=True))) for row in rows) == wanted
    moved = "rows are partitioned by truncate(1, region), months(at) from now on; files that there are stay as they are"
    assert told == [f"d.t: {moved}"]
    paths = {path.parent.relative_to(made.folder_of_lake).as_posix() for path in made.folder_of_lake.rglob("*.parquet")}
    assert any(path.startswith("d/t/data/at_day=2024-01-01/id_bucket=") for path in paths)
    assert "d/t/data/region_trunc_1=a/at_month=2024-01" in paths
    check_found(made)
    renamed = {"area" if name == "region" else name: type for name, type in TYPES.items()}
    made.send(
        canal("ALTER", [], id=9_000, isDdl=True, sql="ALTER TABLE t CHANGE region area varchar(9)"),
        canal("INSERT", [{"id": "99", "area": "zz", "at": None, "n": "1"}], id=9_001, mysqlType=renamed),
    )
    reports = [*made.run(shapes=(second,))]
    assert [report.waiting for report in reports] == [{}]
    assert not any("partition" in step for report in reports for step in report.steps)
    assert ("zz",) in made.rows("d.t", "area")


def plain_rows(made: LocalJob, *names: str, open_if: str = "true") -> list[str]:
    """Return the rows of `d.t` that are open, as `moving_rows` has them."""
    texts = [one if one in ("id", "n") else f'CAST("{one}" AS VARCHAR)' for one in names]
    rows = made.rows("d.t", *texts, open_if)
    return sorted(str(dict(zip(PLAIN_TYPES, row, strict=False))) for row in rows if row[-1])


OPEN = {"current": "true", "soft": "NOT _cdc_is_deleted", "history": '"_cdc_end" IS NULL'}
PARTS = ("KIND", "day", "big")


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("is_readable", [False, True])
@pytest.mark.parametrize("form", OPEN)
def test_rows_that_move_in_delta_lake_are_those_of_the_source(
    job: Callable[..., LocalJob], form: str, is_readable: bool
):
    """In each form and the changelog; also where a column by which files are partitioned was renamed meanwhile."""
    made, sent = job(DELTA, is_changelog=True, form=form), set[int]()
    made.sink = replace(made.sink, is_readable=is_readable)
    shape, batches = TableShape("d.t", partition=PARTS), moving_rows(random.Random(3), 4, 25, PLAIN_TYPES, PLAIN_VALUES)
    names = [*PLAIN_TYPES]
    for number, (messages, wanted) in enumerate(batches):
        if number == 2:
            names[1] = "date of it"
            made.send(canal("ALTER", [], id=100, isDdl=True, sql="ALTER TABLE t CHANGE day `date of it` date"))
        made.send(*[message.replace(b'"day"', b'"date of it"') if number > 1 else message for message in messages])
        sent |= {int(row["n"]) for message in messages for row in json.loads(message)["data"]}
        for report in made.run(shapes=(shape,)):
            assert report.waiting == {}
            assert not any("partition" in step for step in report.steps)
        held = made.lake_table(TableName("d", None, "t")).schema().names
        assert plain_rows(made, *held[: len(names)], open_if=OPEN[form]) == wanted
        assert {n for (n,) in made.rows("d.t", "n", suffix="changes")} == sent
        for suffix in ("", "~~changes"):
            table = DeltaTable(made.folder_of_lake / "d" / f"t{suffix}")
            assert table.metadata().partition_columns == ["kind", held[1], "big"]
            check_partitions(table, held[1])
        for one in maintain(made.pipeline(shapes=(shape,))):
            assert one.left is None or (number > 1 and one.left.endswith(": OPTIMIZE on Spark can")), one.left
        assert plain_rows(made, *held[: len(names)], open_if=OPEN[form]) == wanted


def columns_of_partitions(made: LocalJob) -> list[str]:
    """Return the columns by which the table is partitioned."""
    return DeltaTable(made.folder_of_lake / "d" / "t").metadata().partition_columns


@pytest.mark.slow
def test_a_table_of_delta_lake_is_partitioned_anew_only_if_it_is_made_anew(job: Callable[..., LocalJob]):
    """Until then it is told; rows are written as before."""
    made, types = job(DELTA), {"id": "int", "a": "tinyint", "s": "varchar(9)"}
    made.send(canal("INSERT", [{"id": "1", "a": "1", "s": ""}], id=1, mysqlType=types))
    made.run()
    shape = TableShape("d.t", partition=("A",))
    made.send(canal("INSERT", [{"id": "2", "a": None, "s": ""}], id=2, mysqlType=types))
    (report,) = made.run(shapes=(shape,))
    advice = "remove the lake table, reset the table and let its source send it again"
    told = f"as when their table of Delta Lake was created: for a, {advice}"
    assert (report.steps, report.waiting) == ([f"d.t: rows are in no partitions, {told}"], {})
    assert made.rows("d.t", "id", "a", "s") == [(1, 1, ""), (2, None, "")]
    reset(made.folder / "state", ["d.t"])
    shutil.rmtree(made.folder_of_lake / "d" / "t")
    for id_, value in (("1", "1"), ("2", None), ("3", "-3")):
        made.send(canal("INIT", [{"id": id_, "a": value, "s": ""}], id=3, mysqlType=types))
    reports = made.run(shapes=(shape,))
    assert [(report.waiting, [step for step in report.steps if "partition" in step]) for report in reports] == [
        ({}, [])
    ] * 3
    assert columns_of_partitions(made) == ["a"]
    assert made.rows("d.t", "id", "a", "s") == [(1, 1, ""), (2, None, ""), (3, -3, "")]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "column", "setting", "is_readable"),
    [
        (DELTA, "Day", "dAY", False),
        (DELTA, "a b-é", "A b-É", True),
        (ICEBERG, "a b-é", "bucket(2, A b-É)", False),
    ],
)
def test_a_column_that_is_renamed_is_followed_whatever_its_name_and_its_case(
    job: Callable[..., LocalJob], kind: str, column: str, setting: str, is_readable: bool
):
    """In the batch that makes the table, and in a later one."""
    shape = TableShape("d.t", partition=(setting,))
    for is_late in (True, False):
        made = job(kind)
        made.folder = made.folder / str(is_late)
        made.folder.mkdir()
        if kind == DELTA:
            made.sink = replace(made.sink, root=str(made.folder_of_lake), is_readable=is_readable)
        first = canal("INSERT", [{"id": "1", column: "1"}], id=1)
        renamed = canal("ALTER", [], id=2, isDdl=True, sql=f"ALTER TABLE t CHANGE `{column}` x int")
        second = canal("INSERT", [{"id": "2", "x": "2"}], id=3)
        for sent in [[first], [renamed, second]] if is_late else [[first, renamed, second]]:
            made.send(*sent)
            assert [report.waiting for report in made.run(shapes=(shape,))] == [{}]
        assert made.rows("d.t", "id", "x") == [(1, 1), (2, 2)]
        if kind == DELTA:
            assert columns_of_partitions(made) == ["x"]


def test_types_whose_values_delta_lake_does_not_keep_let_rows_wait(job: Callable[..., LocalJob]):
    """Until the configuration is mended, and no table is made."""
    made, types = job(DELTA), {"id": "int", "s": "varchar(9)", "at": "datetime", "m": "decimal(9,2)"}
    for i, (name, type) in enumerate({"s": "string", "at": "timestamp_ntz", "m": "decimal(9,2)"}.items()):
        made.send(canal("INSERT", [{"id": str(i), "s": "", "at": None, "m": None}], id=i, mysqlType=types))
        (report,) = made.run(shapes=(TableShape("d.t", partition=(name,)),))
        told = f"names '{name}', which is {type}: in Delta Lake, whole numbers, dates and booleans partition a table"
        assert told in report.waiting["d.t"]
    made.send(canal("INSERT", [{"id": "3", "s": "", "at": None, "m": None}], id=3, mysqlType=types))
    made.run(shapes=(TableShape("d.t", partition=("id",)),))
    assert columns_of_partitions(made) == ["id"]
    assert made.rows("d.t", "id", "s") == [(0, ""), (1, ""), (2, ""), (3, "")]


@pytest.mark.parametrize("is_readable", [False, pytest.param(True, marks=pytest.mark.slow)])
@pytest.mark.parametrize(("behavior", "change"), [("evolve", "DROP COLUMN a"), ("lenient", "MODIFY a bigint")])
def test_a_column_that_partitions_delta_lake_is_neither_dropped_nor_widened(
    job: Callable[..., LocalJob], behavior: str, change: str, is_readable: bool
):
    """The rows behind the statement wait; those of other columns are not touched by it."""
    made, shape = job(DELTA, behavior=behavior), TableShape("d.t", partition=("a",))
    types = {"id": "int", "a": "int", "b": "int"}
    made.sink = replace(made.sink, is_readable=is_readable)
    made.send(canal("INSERT", [{"id": "1", "a": "1", "b": None}], id=1, mysqlType=types))
    made.run(shapes=(shape,))
    made.send(
        canal("ALTER", [], id=2, isDdl=True, sql=f"ALTER TABLE t MODIFY b bigint, {change}"),
        canal("INSERT", [{"id": "2", "b": "9"}], id=3, mysqlType={"id": "int", "b": "bigint"}),
    )
    said = made.run(shapes=(shape,))[-1].waiting["d.t"]
    assert "files are partitioned by it, which Delta Lake does not change" in said
    assert columns_of_partitions(made) == ["a"]
    assert made.rows("d.t", "id", "a", "b") == [(1, 1, None)]


@pytest.mark.slow
def test_a_column_that_is_to_partition_an_iceberg_table_is_not_dropped(job: Callable[..., LocalJob]):
    """The rows wait before anything of the table changes, until the configuration is mended."""
    made, types = job(ICEBERG, behavior="evolve", is_changelog=True), {"id": "int", "a": "int"}
    made.send(canal("INSERT", [{"id": "1", "a": "1"}], id=1, mysqlType=types))
    made.run()
    made.send(
        canal("ALTER", [], id=2, isDdl=True, sql="ALTER TABLE t DROP COLUMN a, ADD COLUMN b int"),
        canal("INSERT", [{"id": "2", "b": "9"}], id=3, mysqlType={"id": "int", "b": "int"}),
    )
    (report,) = made.run(shapes=(TableShape("d.t", partition=("a",)),))
    assert "partition in [[table]] names 'a', which is dropped" in report.waiting["d.t"]
    for suffix in ("", "changes"):
        table = made.lake_table(TableName("d", None, "t"), suffix)
        assert [column.name for column in table.columns()] == ["id", "a"]
    made.send(canal("INSERT", [{"id": "3", "b": "8"}], id=4, mysqlType={"id": "int", "b": "int"}))
    (report,) = made.run(shapes=(TableShape("d.t", partition=("b",)),))
    assert report.waiting == {}
    assert made.rows("d.t", "id", "b") == [(1, None), (2, 9), (3, 8)]


@pytest.mark.slow
@pytest.mark.parametrize("is_readable", [False, pytest.param(True, marks=pytest.mark.slow)])
@pytest.mark.parametrize(
    ("kind", "partition", "was", "became", "value", "said"),
    [
        (DELTA, "a", "int", "varchar(9)", "1", "names 'a', which is string: in Delta Lake, whole numbers"),
        (ICEBERG, "days(a)", "date", "varchar(20)", "2024-01-02", "there is no days(a): a is string"),
    ],
)
def test_a_column_whose_new_type_cannot_part_the_table_keeps_its_values(
    job: Callable[..., LocalJob],
    kind: str,
    partition: str,
    was: str,
    became: str,
    value: str,
    said: str,
    is_readable: bool,
):
    """The rows behind the statement wait, and nothing of the table changes; then all have their values."""
    if is_readable and kind == ICEBERG:
        pytest.skip("it is of Delta Lake")
    made, shape = job(kind, is_changelog=True), TableShape("d.t", partition=(partition,))
    made.sink = replace(made.sink, is_readable=is_readable) if is_readable else made.sink
    made.send(canal("INSERT", [{"id": "1", "a": value}], id=1, mysqlType={"id": "int", "a": was}))
    made.run(shapes=(shape,))
    before = [made.lake_table(TableName("d", None, "t"), suffix).read(["id", "a"]) for suffix in ("", "changes")]
    made.send(
        canal("ALTER", [], id=2, isDdl=True, sql=f"ALTER TABLE t MODIFY a {became}"),
        canal("INSERT", [{"id": "2", "a": value}], id=3, mysqlType={"id": "int", "a": became}),
    )
    (report,) = made.run(shapes=(shape,))
    assert said in report.waiting["d.t"]
    for suffix, rows in zip(("", "changes"), before, strict=True):
        table = made.lake_table(TableName("d", None, "t"), suffix)
        assert [column.name for column in table.columns()] == ["id", "a"]
        assert table.read(["id", "a"]).equals(rows)
    made.send(canal("INSERT", [{"id": "3", "a": value}], id=4, mysqlType={"id": "int", "a": became}))
    (report,) = made.run()
    assert report.waiting == {}
    assert made.rows("d.t", "id", "a") == [(1, value), (2, value), (3, value)]


@pytest.mark.slow
@pytest.mark.parametrize("column", ["a:b", "a/../b"])
def test_rows_wait_where_folders_of_partitions_could_not_be_read_again(job: Callable[..., LocalJob], column: str):
    """No table is made, and a rename leads there only where files of partitions are in folders that have no such names."""
    made = job(DELTA, is_changelog=True)
    made.send(canal("INSERT", [{"id": "1", column: "1"}], id=1))
    (report,) = made.run(shapes=(TableShape("d.t", partition=(column,)),))
    assert "deltalake has no folders with such a name" in report.waiting["d.t"]
    assert not [*made.folder_of_lake.rglob("*.json")]
    renamed = canal("ALTER", [], id=2, isDdl=True, sql=f"ALTER TABLE t CHANGE a `{column}` int")
    sent = (
        [canal("INSERT", [{"id": "1", "a": "1"}], id=1)],
        [renamed, canal("INSERT", [{"id": "2", column: "2"}], id=3)],
    )
    for is_readable in (False, True):
        made = job(DELTA, is_changelog=True)
        made.folder = made.folder / str(is_readable)
        made.folder.mkdir()
        made.sink = replace(made.sink, root=str(made.folder_of_lake), is_readable=is_readable)
        for messages in sent:
            made.send(*messages)
            (report,) = made.run(shapes=(TableShape("d.t", partition=("a",)),))
        assert ("d.t" in report.waiting) == is_readable
        for suffix in ("", "changes"):
            assert made.rows("d.t", "id", suffix=suffix) == ([(1,)] if is_readable else [(1,), (2,)])


def test_a_column_that_is_renamed_and_widened_at_once_is_found_by_what_it_was_called():
    """And one that takes the name of another one is not that one."""
    big = LakeColumn("x", "a", "bigint")
    renamed = [Step(RENAME, "a", replace(big, type="int")), Step(RENAME, "b", LakeColumn("a", "b", "int"))]
    for step in (Step(WIDEN, "x", big), Step(DROP, "x", big)):
        with pytest.raises(SchemaError, match=r"column 'x' .*: files are partitioned by it"):
            check_partitioned([*renamed, step], ["a"])
    check_partitioned([*renamed, Step(WIDEN, "a", LakeColumn("a", "b", "bigint"))], ["a"])


@pytest.mark.slow
def test_a_table_that_somebody_else_partitioned_keeps_its_partitions(job: Callable[..., LocalJob]):
    """Whatever their types are: columns that come, and properties that are set, change nothing of them."""
    made, types = job(DELTA), {"id": "int", "s": "varchar(9)", "b": "bigint"}
    made.send(canal("INSERT", [{"id": "1", "s": "x/y=%"}], id=1, mysqlType={"id": "int", "s": "varchar(9)"}))
    made.run()
    folder = made.folder_of_lake / "d" / "t"
    table = DeltaTable(folder)
    properties, rows = table.metadata().configuration, pa.table(table.scan())
    write_deltalake(
        table, rows, mode="overwrite", partition_by=["s"], schema_mode="overwrite", configuration=properties
    )
    added = "ALTER TABLE t ADD COLUMN b bigint"
    for number, row in enumerate([{"id": "2", "s": None, "b": "2"}, {"id": "1", "s": "z", "b": "1"}]):
        made.send(
            canal("ALTER", [], id=2, isDdl=True, sql=added), canal("INSERT", [row], id=3 + number, mysqlType=types)
        )
        made.run(shapes=(TableShape("d.t", properties={"team": "web"}),))
    assert columns_of_partitions(made) == ["s"]
    assert made.rows("d.t", "id", "s", "b") == [(1, "z", 1), (2, None, 2)]


def check_partitions(table: DeltaTable, day: str) -> None:
    """Check that the log has of each file the values of its partition, by which readers leave it out."""
    files = pa.table(table.get_add_actions()).to_pylist()
    held: Counter[tuple[Any, ...]] = Counter()
    for one in files:
        assert {*one["partition"]} == {"kind", day, "big"}
        held[tuple(one["partition"].values())] += one["num_records"]
    names = [*files[0]["partition"]]
    rows = pa.table(table.scan(names)).select(names).to_pylist()
    assert held == Counter(tuple(row.values()) for row in rows)


@pytest.mark.slow
def test_a_change_writes_the_partitions_of_its_rows_anew_and_no_others(job: Callable[..., LocalJob]):
    """However many small files other partitions have."""
    made, shape = job(ICEBERG), TableShape("d.t", partition=("id",))
    made.send(*[canal("INSERT", [{"id": str(i), "n": "1"}], id=i) for i in range(1, 41)])
    made.run(shapes=(shape,))
    before = {*made.folder_of_lake.rglob("*.parquet")}
    made.send(canal("UPDATE", [{"id": "7", "n": "2"}], id=50, old=[{"n": "1"}]))
    made.run(shapes=(shape,))
    new = {*made.folder_of_lake.rglob("*.parquet")} - before
    assert [path.parent.name for path in new] == ["id=7"]
    assert len(made.rows("d.t", "id")) == 40


@pytest.mark.slow
def test_a_partition_that_a_table_cannot_have_lets_its_rows_wait(job: Callable[..., LocalJob]):
    """Until the configuration is mended."""
    made, types = job(ICEBERG), {"id": "int", "f": "double", "id_bucket": "int"}
    for i, (partition, said) in enumerate(
        [
            ("nono", "partition in [[table]] names 'nono', which is no column of it"),
            ("F", "partition in [[table]] names 'F', and a lake has no partitions of double"),
            ("days(id)", "there is no days(id): id is int"),
            ("bucket(2, id)", "bucket(2, id) would be called id_bucket, as a column is"),
        ]
    ):
        made.send(canal("INSERT", [{"id": str(i), "f": "1", "id_bucket": "1"}], id=i, mysqlType=types))
        (report,) = made.run(shapes=(TableShape("d.t", partition=(partition,)),))
        assert said in report.waiting["d.t"]
    made.send(canal("INSERT", [{"id": "9", "f": "1", "id_bucket": "1"}], id=9, mysqlType=types))
    made.run(shapes=(TableShape("d.t", partition=("truncate(2, id)",)),))
    assert made.rows("d.t", "id") == [(0,), (1,), (2,), (3,), (9,)]


@pytest.mark.parametrize(
    ("cluster", "reason"),
    [
        (("a", "A"), "cluster names each column once, and 'a' twice"),
        (("",), "cluster has names of columns, not an empty one"),
        (tuple("abcde"), "cluster has at most 4 columns, not 5"),
    ],
)
def test_columns_of_clusters_that_are_none_are_an_error(cluster: tuple[str, ...], reason: str):
    """Before anything starts."""
    with pytest.raises(ValueError, match=f"^{reason}$"):
        TableShape("t", cluster=cluster)


def test_clusters_are_of_both_lakes_and_their_property_is_kept_for_them():
    """Whatever else a shape says; also none. Columns of partitions are of one value in each file, but for transforms."""
    for lake in (DELTA, ICEBERG):
        for cluster in (("a",), ()):
            TableShape("t", cluster=cluster).check_for(lake)
        with pytest.raises(ValueError, match=r"^the property 'cdcavro\.cluster' is kept for what writes the table"):
            TableShape("t", properties={"cdcavro.cluster": "x"}, cluster=("a",)).check_for(lake)
        with pytest.raises(ValueError, match="both name 'A', which has one value in each file"):
            TableShape("t", partition=("a",), cluster=("b", "A")).check_for(lake)
    TableShape("t", partition=("days(a)",), cluster=("b", "A")).check_for(ICEBERG)


def test_rows_are_sorted_by_columns_of_single_values():
    """By their names in the table; a table that lacks one of the columns is left as it is."""
    columns = [LakeColumn("a~20~b", "a b", "string", ("old",)), LakeColumn("c", "c", "binary")]
    nested = [LakeColumn("n", "n", one) for one in ("array<int>", "map<string,int>", "struct<a:int>")]
    by = partial(TableShape, "t")
    for cluster, order in [(("C", "A B"), ["c", "a~20~b"]), (("Old", "a b"), ["a~20~b"]), ((), []), (("c", "x"), None)]:
        assert by(cluster=cluster).order_in("t", columns, ICEBERG) == order
        assert by(cluster=cluster).order_in("t", columns, DELTA) is None
    assert by().order_in("t", columns, ICEBERG) is None
    for one in nested:
        told = f"cluster in [[table]] names 'N', which is {one.type}: Iceberg sorts by columns of single values"
        with pytest.raises(SchemaError, match=re.escape(told)):
            by(cluster=("c", "N")).order_in("t", [*columns, one], ICEBERG)


def order_of(made: LocalJob, suffix: str = "") -> list[str]:
    """Return the columns by which the rows of `d.t` in Iceberg are sorted, upwards and nulls first."""
    table = made.lake_table(TableName("d", None, "t"), suffix)._load()
    names = [str(table.schema().find_column_name(one.source_id)) for one in table.sort_order().fields]
    assert [str(one) for one in table.sort_order().fields] == [
        f"{table.schema().find_field(name).field_id} ASC NULLS FIRST" for name in names
    ]
    return names


def files_in_order(made: LocalJob, *names: str, suffix: str = "") -> list[tuple[int | None, list[tuple[Any, ...]]]]:
    """Return of each file of `d.t` in Iceberg the number of its order, and its rows as they stand there."""
    table = made.lake_table(TableName("d", None, "t"), suffix)._load()
    return [
        (
            one["sort_order_id"],
            [
                tuple(row.values())
                for row in pq.read_table(one["file_path"].removeprefix("file://"), partitioning=None)
                .select(names)
                .to_pylist()
            ],
        )
        for one in table.inspect.files().to_pylist()
    ]


def in_order(rows: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    """Return rows sorted, None first."""
    return sorted(rows, key=lambda row: [(value is not None, value) for value in row])


@pytest.fixture(params=["folder", "sql"])
def iceberg(request: pytest.FixtureRequest, job: Callable[..., LocalJob], tmp_path: Path) -> Callable[..., LocalJob]:
    """Return what makes pipelines into Iceberg, in a catalog that is a folder, and in one in a database."""
    database = {"type": "sql", "uri": f"sqlite:///{tmp_path}/c.db", "warehouse": f"file://{tmp_path}/lake"}
    return partial(job, ICEBERG, **({"catalog": database} if request.param == "sql" else {}))


TYPED = {"id": "int", "a": "varchar(9)", "b": "double", "n": "int"}


@pytest.mark.slow
def test_rows_of_iceberg_are_sorted_by_clusters_and_their_files_say_so(iceberg: Callable[..., LocalJob]):
    """In the current state and the changelog, from the first batch on; by another order, or none, once that is said."""
    made, draw, state = iceberg(is_changelog=True), random.Random(1), dict[str, dict[str, Any]]()
    told: list[str] = []
    numbers: list[Any] = []
    turns: list[tuple[tuple[TableShape, ...], list[str]]] = [
        ((TableShape("D.t", cluster=("B", "a")),), ["b", "a"]),
        ((TableShape("d.t", cluster=("a",)),), ["a"]),
        ((), ["a"]),
        ((TableShape("d.*", cluster=()),), []),
        ((TableShape("d.t", cluster=("b", "A")),), ["b", "a"]),
    ]
    for number, (shapes, order) in enumerate(turns):
        messages = []
        for i in range(12):
            row = {"id": str(draw.randrange(30)), "n": str(100 * number + i)}
            row |= {"a": draw.choice(["x", "", "é", None]), "b": draw.choice(["-1.5", "0", "1e300", None])}
            kind = "UPDATE" if row["id"] in state else "INSERT"
            old = [{"n": state[row["id"]]["n"]}] if row["id"] in state else []
            messages.append(canal(kind, [row], id=100 * number + i, old=old, mysqlType=TYPED))
            state[row["id"]] = row
        made.send(*messages)
        (report,) = made.run(shapes=shapes)
        assert report.waiting == {}
        told += report.steps
        wanted = [(int(row["id"]), row["a"], row["b"] and float(row["b"]), int(row["n"])) for row in state.values()]
        assert in_order(made.rows("d.t", *TYPED)) == in_order(wanted)
        changes = [row for row in made.rows("d.t", "_cdc_op", "id", suffix="changes") if row[0] != "b"]
        assert len(changes) == 12 * (number + 1)
        for suffix in ("", "changes"):
            assert order_of(made, suffix) == order
            table = made.lake_table(TableName("d", None, "t"), suffix)._load()
            files = files_in_order(made, *order, "n", suffix=suffix)
            one, rows = max(files, key=lambda file: max(row[-1] for row in file[1]))
            assert one == (table.sort_order().order_id or None)
            keys = [row[:-1] for row in rows]
            assert keys == in_order(keys)
            assert len(keys) > 5
        numbers.append(one)
    by = "d.t: rows are sorted by {} from now on; files that there are stay as they are"
    assert told == [by.format(one) for one in ("a", "no column", "b, a")]
    assert numbers == [1, 2, 2, None, 1]


@pytest.mark.slow
def test_a_column_of_an_order_is_followed_where_it_is_renamed_and_rows_wait_where_it_is_dropped(
    iceberg: Callable[..., LocalJob],
):
    """Also if the order is another one by now; rows go on where the statement is not followed."""
    made, shape = iceberg(behavior="evolve"), TableShape("d.t", cluster=("a", "b"))
    made.send(canal("INSERT", [{"id": "1", "a": "1", "b": "2"}], id=1))
    made.send(
        canal("ALTER", [], id=10, isDdl=True, sql="ALTER TABLE t CHANGE a x int, ADD COLUMN c int"),
        canal("INSERT", [{"id": "2", "x": "1", "b": "1", "c": "1"}], id=11),
    )
    reports = made.run(shapes=(shape,))
    assert [report.waiting for report in reports] == [{}, {}]
    assert not any("sorted" in step for report in reports for step in report.steps)
    assert order_of(made) == ["x", "b"]
    for number, off in enumerate([shape, TableShape("d.t", cluster=())], 3):
        change = "ALTER TABLE t DROP COLUMN x" if number == 3 else "ALTER TABLE t ADD COLUMN d int"
        made.send(
            canal("ALTER", [], id=10 * number, isDdl=True, sql=change),
            canal("INSERT", [{"id": str(number), "b": "5", "c": "1"}], id=10 * number + 1),
        )
        (report,) = made.run(shapes=(off,))
        assert "'x' is dropped: rows are sorted by it, or were" in report.waiting["d.t"]
    made.lake |= {"statements": StatementRules(excluded_kinds(None, ["drop.column"]))}
    made.send(canal("INSERT", [{"id": "5", "b": "0", "c": "0"}], id=90))
    (report,) = made.run(shapes=(shape,))
    assert (report.waiting, order_of(made)) == ({}, ["x", "b"])
    assert made.rows("d.t", "id", "x", "b", "c") == [
        (1, 1, 2, None),
        (2, 1, 1, 1),
        (3, None, 5, 1),
        (4, None, 5, 1),
        (5, None, 0, 0),
    ]


@pytest.mark.slow
def test_an_order_by_a_column_that_there_is_not_waits_for_the_column_and_no_row_does(job: Callable[..., LocalJob]):
    """As on Delta Lake, where files are then not clustered."""
    made, shape = job(ICEBERG), TableShape("d.t", cluster=("a", "late"))
    made.send(canal("INSERT", [{"id": "1", "a": "1"}], id=1))
    (report,) = made.run(shapes=(shape,))
    assert (report.waiting, order_of(made)) == ({}, [])
    made.send(canal("INSERT", [{"id": "2", "a": "1", "late": "0"}], id=2))
    (report,) = made.run(shapes=(shape,))
    assert report.steps[-1] == "d.t: rows are sorted by a, late from now on; files that there are stay as they are"
    assert made.rows("d.t", "id", "late") == [(1, None), (2, 0)]
    assert order_of(made) == ["a", "late"]
