"""Avro files of a pipeline: the changes of each table as its versions wrote them, each batch once."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import fastavro
import pytest
from pyspark.sql import SparkSession

from cdcavro.errors import FileError, JobError
from cdcavro.lake.job_state import JobState
from cdcavro.spark.pipeline import AvroFiles, Formats, record_sinks
from cdcavro.sync.sections import AvroConfig
from cdcavro.table.tables import Tables
from support.messages import canal
from support.pipelines import Job

pytestmark = pytest.mark.timeout(600)
FORMAT = Formats("canal")


def read(path: Path) -> list[dict[str, Any]]:
    """Return the changes in a file, as fastavro reads it."""
    with path.open("rb") as stream:
        return list(fastavro.reader(stream))


def files(made: Job) -> list[str]:
    """Return the paths of all files."""
    return sorted(str(path.relative_to(made.folder / "out")) for path in (made.folder / "out").rglob("*.avro"))


@pytest.fixture
def written(job) -> Job:
    """A pipeline that has written two batches: a new column, a key that moves, a TRUNCATE, a table without a key."""
    made = job()
    made.out = AvroFiles(str(made.folder / "out"))
    made.send(
        canal("INSERT", [{"id": "1", "a": "1"}], id=1),
        canal("INSERT", [{"n": "7"}], id=2, table="log/1", pkNames=None),
        b"no message",
    )
    made.send(
        canal("UPDATE", [{"id": "2", "a": "5"}], id=3, old=[{"id": "1"}]),
        canal("INSERT", [{"id": "3", "a": "1", "b": "9"}], id=4),
        canal("DELETE", [{"id": "3", "a": "1", "b": "9"}], id=5),
        canal("TRUNCATE", [], id=6, isDdl=True, sql="TRUNCATE TABLE t"),
    )
    reports = made.run(formats=FORMAT)
    assert [report.counts["written"] for report in reports] == [2, 3]
    assert not any(report.waiting for report in reports)
    return made


def test_each_batch_has_a_file_for_each_version_of_a_table_with_its_changes_in_order(written: Job, spark: SparkSession):
    """With the table's own schema, by which fastavro and Spark read it; names are escaped."""
    assert files(written) == [
        "d/log~2f~1/batch=0/table=1/v1-00000.avro",
        "d/t/batch=0/table=0/v1-00000.avro",
        "d/t/batch=1/table=0/v1-00000.avro",
        "d/t/batch=1/table=0/v2-00000.avro",
    ]
    out = written.folder / "out" / "d"
    own = [
        (one["op"], one["before"] and one["before"]["id"], one["after"] and one["after"]["id"])
        for one in read(out / "t/batch=1/table=0/v1-00000.avro")
    ]
    assert own == [("d", 1, None), ("c", None, 2)]
    newer = [
        (one["op"], one["before"] and one["before"]["b"], one["after"] and one["after"]["b"])
        for one in read(out / "t/batch=1/table=0/v2-00000.avro")
    ]
    assert newer == [("c", None, 9), ("d", 9, None), ("t", None, None)]
    assert [one["after"]["n"] for one in read(out / "log~2f~1/batch=0/table=1/v1-00000.avro")] == [7]
    state = JobState(written.folder / "state" / "batches")
    table = state.resume(2, Tables(**written.pipeline().settings.options)).tables.tables[0]
    newest = table.schema.envelope.json
    found = spark.read.format("avro").option("avroSchema", newest).load(f"file://{out}/t")
    rows = found.select("batch", "op", "after.id", "after.b").orderBy("batch", "op", "id").collect()
    assert [tuple(row) for row in rows] == [
        (0, "c", 1, None),
        (1, "c", 2, None),
        (1, "c", 3, 9),
        (1, "d", None, None),
        (1, "d", None, None),
        (1, "t", None, None),
    ]


def test_a_batch_that_is_run_again_replaces_its_files_as_a_whole(written: Job):
    """What a run that was killed left is gone; nothing is there twice."""
    out = written.folder / "out"
    before = {path: read(out / path) for path in files(written)}
    (out / "d/t/batch=1/table=0/v1-00009.avro").write_bytes(b"left by a run that was killed")
    (out / "_new/batch=1.table=0").mkdir(parents=True)
    (out / "_new/batch=1.table=0/_v1-00000.avro.7").write_bytes(b"left by another")
    (again,) = written.run_again(formats=FORMAT)
    assert again.number == 1
    assert {path: read(out / path) for path in files(written)} == before
    assert list((out / "_new").iterdir()) == []


def test_a_folder_belongs_to_one_pipeline_and_a_state_to_one_sink(written: Job, job):
    """Another pipeline would replace its files; another sink would lack what was written so far."""
    (written.folder / "state" / "job.json").write_text(json.dumps({"job": "other", "sink": written.out.name}))
    written.send(canal("INSERT", [{"id": "9", "a": "1"}], id=9))
    with pytest.raises(
        FileError, match="expected a folder of this pipeline, got one that another pipeline has written"
    ):
        written.run(formats=FORMAT)
    written.out = AvroFiles(str(written.folder / "elsewhere"))
    with pytest.raises(
        FileError, match=r"expected the state of a pipeline into Avro files in .*elsewhere, got that of one into"
    ):
        written.run(formats=FORMAT)


def test_a_folder_that_cannot_be_written_stops_the_stream(job, tmp_path: Path):
    """A check says it first; no message is to blame."""
    made = job()
    (tmp_path / "out").write_text("no folder")
    made.out = AvroFiles(str(tmp_path / "out"))
    made.send(canal("INSERT", [{"id": "1"}], id=1))
    with pytest.raises(FileError, match="a folder that can be written to"):
        made.pipeline().check(made.spark)
    with pytest.raises(JobError, match="the stream stopped"):
        made.run(formats=FORMAT)


def test_files_that_the_driver_does_not_see_stop_the_stream(job, monkeypatch: pytest.MonkeyPatch):
    """A machine that has the folder for itself alone has written them; nothing that there was is replaced by nothing."""
    made = job()
    made.out = AvroFiles(str(made.folder / "out"))
    made.send(canal("INSERT", [{"id": "1"}], id=1))
    made.run(formats=FORMAT)
    elsewhere, own = made.folder / "elsewhere", record_sinks._write_task
    elsewhere.mkdir()
    monkeypatch.setattr(record_sinks, "_write_task", lambda _, *others: own(str(elsewhere), *others))
    with pytest.raises(JobError, match=r"0 of 1 files that were written to .* are there: it must be one that all"):
        made.run_again(formats=FORMAT)
    assert [change["after"]["id"] for change in made.changes("d.t")] == [1]


def test_payloads_of_any_size_go_into_files_as_they_are(job):
    """More than a block, of several partitions; their order is that of the files' names."""
    made = job()
    made.out = AvroFiles(str(made.folder / "out"), codec="null")
    padding = "é" * 40_000
    made.send(
        *[
            canal("INSERT", [{"id": str(i), "a": padding}], id=i, mysqlType={"id": "int", "a": "longtext"})
            for i in range(1, 41)
        ]
    )
    made.run(formats=FORMAT)
    rows = [one["after"] for path in files(made) for one in read(made.folder / "out" / path)]
    assert [row["id"] for row in rows] == list(range(1, 41))
    assert {row["a"] for row in rows} == {padding}


def test_plain_files_have_records_of_columns_only(job):
    """The tasks of Spark write them as the local runner does, with the settings that a configuration has."""
    made = job()
    made.out = AvroConfig(str(made.folder / "out"), plain=True).sink("sync.toml")
    made.send(canal("INSERT", [{"id": "1", "a": "1"}], id=1))
    made.send(canal("UPDATE", [{"id": "2", "a": "5"}], id=2, old=[{"id": "1"}]))
    assert [report.counts["written"] for report in made.run(formats=FORMAT)] == [1, 1]
    rows = [
        (one["_cdc_op"], one["_cdc_before_id"], one["id"])
        for name in files(made)
        for one in read(made.folder / "out" / name)
    ]
    assert rows == [("c", None, 1), ("d", 1, None), ("c", None, 2)]
