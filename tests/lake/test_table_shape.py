"""The shape of lake tables: what can be said of them, and what the local runner makes of it."""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from pyiceberg.expressions import EqualTo, IsNull

from cdcavro.errors import FileError
from cdcavro.lake.table_shape import DELTA, ICEBERG, Partition, TableShape
from cdcavro.sync.config import read_config
from cdcavro.sync.native.hadoop_catalog import HadoopCatalog
from cdcavro.table import TableName
from support.jobs import LocalJob, local_job
from support.local_pipelines import lake_section
from support.messages import canal
from support.partition_changes import TYPES, moving_rows

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
    with pytest.raises(ValueError, match="is of Iceberg tables, and tables are of Delta Lake"):
        TableShape("t", partition=("a",)).check_for(DELTA)


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


def test_clusters_are_of_delta_lake_and_their_property_is_kept_for_them():
    """Whatever else a shape says; also none."""
    for cluster in (("a",), ()):
        TableShape("t", cluster=cluster).check_for(DELTA)
        with pytest.raises(
            ValueError, match=r"^cluster in \[\[table\]\] is of Delta Lake tables, and tables are of Iceberg: Spark's"
        ):
            TableShape("t", cluster=cluster).check_for(ICEBERG)
    with pytest.raises(ValueError, match=r"^the property 'cdcavro\.cluster' is kept for what writes the table"):
        TableShape("t", properties={"cdcavro.cluster": "x"}, cluster=("a",)).check_for(DELTA)
