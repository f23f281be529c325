"""Avro files that this process writes: the changes of each table as its versions wrote them, each batch once."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import Any

import fastavro
import pyarrow as pa
import pytest

from cdcavro.errors import FileError, JobError, SetupError
from cdcavro.lake.lakes import DeltaLake
from cdcavro.lake.typed_rows import TypedRows
from cdcavro.sync.local.local_sinks import AvroFileSink, LocalFileWriter, native_lake
from cdcavro.sync.outputs import avro_folder
from cdcavro.sync.outputs.sink_settings import AvroFiles, Job, LakeSettings
from cdcavro.sync.outputs.writer import BatchRows
from cdcavro.table import TableName
from cdcavro.table.tables import Tables
from support.kafka_server import Record, broker
from support.local_pipelines import DELTA, ICEBERG, LocalJob, lake_section
from support.messages import canal
from support.waiting_rows import FACTS, as_table, typed_rows, waiting

JOB = Job("the job", frozenset())
FIRST = (
    canal("INSERT", [{"id": "1", "a": "1"}], id=1),
    canal("INSERT", [{"n": "7"}], id=2, table="log/1", pkNames=None),
)
SECOND = (
    canal("UPDATE", [{"id": "2", "a": "5"}], id=3, old=[{"id": "1"}]),
    canal("INSERT", [{"id": "3", "a": "1", "b": "9"}], id=4),
    canal("DELETE", [{"id": "3", "a": "1", "b": "9"}], id=5),
    canal("TRUNCATE", [], id=6, isDdl=True, sql="TRUNCATE TABLE t"),
)
DROP = canal("ERASE", [], id=7, isDdl=True, sql="DROP TABLE t")


def read(path: Path) -> list[tuple[Any, ...]]:
    """Return the operations in a file with the ids before and after, as fastavro reads it."""
    with path.open("rb") as stream:
        found = [dict(one) for one in fastavro.reader(stream)]  # type: ignore[arg-type]
    return [(one["op"], *[one[image] and one[image].get("id") for image in ("before", "after")]) for one in found]


def files(root: Path) -> list[str]:
    """Return the paths of all files."""
    return sorted(str(path.relative_to(root)) for path in root.rglob("*") if path.is_file())


@pytest.fixture
def writer(tmp_path: Path) -> LocalFileWriter:
    """What writes to the folder of the test."""
    return AvroFileSink(AvroFiles(str(tmp_path))).writer(JOB, None)


def test_each_batch_has_a_file_for_each_version_of_a_table_with_its_changes_in_order(
    writer: LocalFileWriter, tmp_path: Path
):
    """Names are escaped, a DROP is left out; a batch of nothing else has no folder."""
    maker = TypedRows(Tables())
    for number, messages in enumerate((FIRST, SECOND, (DROP,))):
        assert [one.error for one in writer.write(waiting(maker, number, *messages))] in ([None, None], [None])
    assert files(tmp_path) == [
        "_job.json",
        "d/log~2f~1/batch=0/table=1/v1-00000.avro",
        "d/t/batch=0/table=0/v1-00000.avro",
        "d/t/batch=1/table=0/v1-00000.avro",
        "d/t/batch=1/table=0/v2-00000.avro",
    ]
    assert read(tmp_path / "d/t/batch=1/table=0/v1-00000.avro") == [("d", 1, None), ("c", None, 2)]
    newer = [("c", None, 3), ("d", 3, None), ("t", None, None)]
    assert read(tmp_path / "d/t/batch=1/table=0/v2-00000.avro") == newer
    assert list((tmp_path / "_new").iterdir()) == []
    assert json.loads((tmp_path / "_job.json").read_bytes()) == {"job": "the job"}


def test_a_batch_that_is_run_again_replaces_its_files_as_a_whole(writer: LocalFileWriter, tmp_path: Path):
    """What a run that was killed left is gone; nothing is there twice. Files of batches that wait come with the next."""
    maker = TypedRows(Tables())
    rows = [*waiting(maker, 0, *FIRST), *waiting(maker, 1, *SECOND)]
    both = [(*rows[0][:2], [*rows[0][2], *rows[2][2]]), rows[1]]
    writer.write(both)
    before = {name: (tmp_path / name).stat().st_size for name in files(tmp_path)}
    (tmp_path / "d/t/batch=1/table=0/v1-00009.avro").write_bytes(b"left by a run that was killed")
    (tmp_path / "_new/batch=1.table=0").mkdir(parents=True)
    (tmp_path / "_new/batch=1.table=0/_v1-00000.avro.7").write_bytes(b"left by another")
    writer.write(both)
    assert {name: (tmp_path / name).stat().st_size for name in files(tmp_path)} == before
    nothing = BatchRows(1, as_table([]), FACTS)
    writer.write([(*rows[0][:2], [nothing])])
    assert not [name for name in files(tmp_path) if "batch=1" in name]


def test_plain_files_have_records_of_columns_only(tmp_path: Path):
    """Each of its version, with the same changes in the same order."""
    writer, maker = AvroFileSink(AvroFiles(str(tmp_path), is_plain=True)).writer(JOB, None), TypedRows(Tables())
    for number, messages in enumerate((FIRST, SECOND)):
        assert {one.error for one in writer.write(waiting(maker, number, *messages))} == {None}
    found = []
    for version in (1, 2):
        with (tmp_path / f"d/t/batch=1/table=0/v{version}-00000.avro").open("rb") as stream:
            reader = fastavro.reader(stream)
            found += [(row["_cdc_op"], row["_cdc_before_id"], row["id"]) for row in reader]
        assert all(one["type"][0] == "null" for one in reader.writer_schema["fields"])
    assert found == [("d", 1, None), ("c", None, 2), ("c", None, 3), ("d", 3, None), ("t", None, None)]


@pytest.mark.slow
def test_rows_of_several_lanes_are_sorted_and_large_ones_as_they_are(tmp_path: Path):
    """More than a block in payloads, and more rows than are looked at in one go."""
    settings = AvroFiles(str(tmp_path), codec="null")
    padding = "é" * 40_000
    messages = [
        canal(
            "INSERT",
            [{"id": str(i), "a": padding if i % 500 == 0 else "x"}],
            id=i,
            mysqlType={"id": "int", "a": "text"},
        )
        for i in range(1, 5_001)
    ]
    maker = TypedRows(Tables())
    rows = typed_rows(maker, *messages)[0]
    (table,) = maker.tables.tables
    mixed = as_table([*rows[2_500:], *rows[:2_500]])
    writer = AvroFileSink(settings).writer(JOB, None)
    writer.write([(table, table.schema.table, [BatchRows(0, mixed, FACTS)])])
    with (tmp_path / "d/t/batch=0/table=0/v1-00000.avro").open("rb") as stream:
        found: list[Any] = [one["after"] for one in fastavro.reader(stream)]  # type: ignore[index,call-overload]
    assert [row["id"] for row in found] == list(range(1, 5_001))
    assert {row["a"] for row in found} == {padding, "x"}


@pytest.mark.parametrize("is_plain", [False, True])
def test_headers_are_the_last_field_of_each_record(tmp_path: Path, is_plain: bool):
    """Whatever they are, of every version; the others are as they are without, and whoever reads these reads those, too."""
    found, texts = {}, ['[{"key":"é","value":"x"}]', None, "[]", "x" * 70_000]
    for name, has_headers in (("with", True), ("without", False)):
        settings = AvroFiles(str(tmp_path / name), is_plain=is_plain, has_headers=has_headers)
        maker = TypedRows(Tables())
        writer = AvroFileSink(settings).writer(JOB, None)
        for table, called, (part,) in waiting(maker, 0, *FIRST[:1], *SECOND):
            own = pa.array([texts[place % 4] for place in range(part.rows.num_rows)], pa.string())
            rows = part.rows.set_column(part.rows.schema.get_field_index("headers"), "headers", own)
            assert writer.write([(table, called, [part._replace(kept=rows)])])[0].error is None
        for version in (1, 2):
            with (tmp_path / name / f"d/t/batch=0/table=0/v{version}-00000.avro").open("rb") as stream:
                reader = fastavro.reader(stream)
                found[name, version] = [dict(one) for one in reader], reader.writer_schema  # type: ignore[arg-type]
    assert [len(found["with", version][0]) for version in (1, 2)] == [3, 3]
    came = [one.pop("_cdc_headers") for version in (1, 2) for one in found["with", version][0]]
    assert came == [*texts, *texts[:2]]
    for version in (1, 2):
        (rows, own), (others, schema) = found["with", version], found["without", version]
        assert (rows, {**own, "fields": own["fields"][:-1]}) == (others, schema)  # type: ignore[index,call-overload]
        with (tmp_path / f"without/d/t/batch=0/table=0/v{version}-00000.avro").open("rb") as stream:
            assert [one["_cdc_headers"] for one in fastavro.reader(stream, own)] == [None] * 3  # type: ignore[index,call-overload]


@pytest.mark.jvm
def test_headers_of_kafka_are_in_files(tmp_path: Path):
    """As a pipeline reads them; null where a record has none."""
    with broker(tmp_path / "kafka") as kafka:
        kafka.create("t", 1)
        for id, own in ((1, (("é", b"\xff"), ("n", None))), (2, ())):
            row = canal("INSERT", [{"id": str(id), "a": "1"}], id=id)
            kafka.send([Record("t", 0, None, row, own)])
        source = {"kafka": kafka.servers, "topics": ["t"]}
        files = {"folder": str(tmp_path / "out"), "headers": True}
        LocalJob(tmp_path, {}, {"source": source, "avro": files}).run()
    with (tmp_path / "out/d/t/batch=0/table=0/v1-00000.avro").open("rb") as stream:
        found: list[Any] = [one["_cdc_headers"] for one in fastavro.reader(stream)]  # type: ignore[index,call-overload]
    assert found == ['[{"key":"é","base64":"/w=="},{"key":"n","value":null}]', None]


def test_a_folder_belongs_to_one_pipeline(writer: LocalFileWriter, tmp_path: Path):
    """Another one would replace its files."""
    writer.write(waiting(TypedRows(Tables()), 0, *FIRST))
    other = AvroFileSink(AvroFiles(str(tmp_path))).writer(Job("another", frozenset()), None)
    with pytest.raises(FileError, match="a folder of this pipeline, got one that another pipeline has written to"):
        other.write([])


def test_a_name_that_no_folder_has_keeps_only_its_own_rows(writer: LocalFileWriter, tmp_path: Path):
    """The other tables of the batch are written."""
    rows = waiting(TypedRows(Tables()), 0, *FIRST)
    table, _, parts = rows[0]
    written = writer.write([(table, TableName("d", None, "x" * 300), parts), rows[1]])
    assert [(one.number, one.error is None) for one in written] == [(0, False), (1, True)]
    assert files(tmp_path) == ["_job.json", "d/log~2f~1/batch=0/table=1/v1-00000.avro"]


def test_a_folder_under_its_first_name_goes_on_being_used(writer: LocalFileWriter, tmp_path: Path):
    """As folders of tables in schemas were named at first."""
    rows = waiting(TypedRows(Tables()), 0, *FIRST)
    name = TableName("d", "s", "t")
    older, newer = (tmp_path.joinpath(*avro_folder.folder_names(name, is_older=one)) for one in (True, False))
    assert older != newer
    (older / "batch=0").mkdir(parents=True)
    writer.write([(rows[0][0], name, rows[0][2])])
    assert (older / "batch=0/table=0/v1-00000.avro").exists()
    assert not newer.exists()


def test_files_that_are_gone_stop_the_run(writer: LocalFileWriter, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Nothing that there was is replaced by nothing."""
    rows = waiting(TypedRows(Tables()), 0, *FIRST)
    writer.write(rows)
    before = files(tmp_path)
    monkeypatch.setattr("cdcavro.sync.local.local_sinks.write_versions", lambda *_: 1)
    with pytest.raises(JobError, match="0 of 1 files that were written to"):
        writer.write(rows)
    assert files(tmp_path) == before


def test_what_identifies_the_files_and_whether_they_can_be_written(tmp_path: Path):
    """A check makes nothing."""
    sink = AvroFileSink(AvroFiles(str(tmp_path / "new")))
    assert sink.identity() == f"Avro files in {tmp_path}/new"
    sink.check()
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "new").write_text("no folder")
    with pytest.raises(FileError, match="a folder that can be written to"):
        sink.check()


def test_names_of_delta_lake_in_a_metastore_are_refused_without_spark():
    """The library reaches none of Hive's."""
    with pytest.raises(SetupError, match="Delta Lake at /l: tables get names in Hive's metastore on Spark only"):
        native_lake(LakeSettings(DeltaLake("/l"), catalog={"type": "hive"}))


def statement(id: int, sql: str, type: str = "ALTER") -> bytes:
    """Return a statement about the table `d.t`."""
    return canal(type, [], id=id, isDdl=True, sql=sql)


def row(id: int, **values: int) -> bytes:
    """Return an inserted row, which comes `id`-th and has that as its key unless another one is given."""
    return canal("INSERT", [{name: str(value) for name, value in {"id": id, **values}.items()}], id=id)


# A table that is dropped, created again and gets a column with a default, which its rows have changed.
AGAIN = (
    (row(1, a=1), DROP, statement(8, "CREATE TABLE d.t (id INT PRIMARY KEY, a INT)", "CREATE"), row(10, a=10)),
    (statement(11, "ALTER TABLE d.t ADD m INT DEFAULT 5"), row(12, a=12, m=7)),
)


@pytest.mark.slow
@pytest.mark.parametrize("lake", [DELTA, ICEBERG])
@pytest.mark.parametrize("more", [{}, {"form": "history"}, {"behavior": "evolve"}])
def test_a_late_row_of_a_dropped_table_changes_none_of_the_table_that_goes_on(tmp_path: Path, lake: str, more: Any):
    """In a later run: neither the default of a column comes back into rows that have another value, nor a column goes."""
    job = LocalJob(tmp_path, lake_section(lake, tmp_path, **more))
    for messages in AGAIN:
        job.send(*messages)
    job.run()
    held = job.rows("d.t", "id", "a", "m")
    assert {(10, 10, 5), (12, 12, 7)} <= {*held}
    # Of a file before all others.
    (tmp_path / "in" / "0.jsonl").write_bytes(canal("UPDATE", [{"id": "1", "a": "2"}], id=0, old=[{"a": "1"}]))
    assert [report.waiting for report in job.run()] == [{}]
    job.send(row(13, a=13, m=13))
    assert [report.waiting for report in job.run()] == [{}]
    late = {one for one in job.rows("d.t", "id", "a", "m") if one not in held}
    assert (13, 13, 13) in late
    assert late - {(13, 13, 13)} <= ({(1, 2, None), (1, 1, 5)} if more.get("form") else set())


def typed(id: int, key: int, value: Any, type: str = "int") -> bytes:
    """Return an inserted row with a value of a type, which comes `id`-th."""
    types = {"id": "int", "f": type}
    return canal("INSERT", [{"id": str(key), "f": str(value)}], id=id, mysqlType=types)


CREATED = statement(8, "CREATE TABLE d.t (id INT PRIMARY KEY, f INT)", "CREATE")
TEXT, ANEW = "varchar(9)", ("ALTER TABLE d.t DROP COLUMN f", "ALTER TABLE d.t ADD f INT")


@pytest.mark.slow
@pytest.mark.parametrize("lake", [DELTA, ICEBERG])
@pytest.mark.parametrize("form", ["current", "soft", "history"])
@pytest.mark.parametrize(
    ("statements", "held", "former"),
    [
        (("ALTER TABLE d.t MODIFY f VARCHAR(9)",), typed(11, 6, "x", TEXT), "f (until version 1)"),
        (ANEW, typed(11, 6, 66), "f (dropped 1)"),
    ],
)
def test_a_late_row_of_a_dropped_table_moves_no_column_of_the_table_that_goes_on(
    tmp_path: Path, lake: str, form: str, statements: tuple[str, ...], held: bytes, former: str
):
    """Its values go where those of its table are, though a column of the other has its name now; also in a changelog."""
    job = LocalJob(tmp_path, lake_section(lake, tmp_path, form=form, changelog=True))
    made = [statement(9 + i, sql) for i, sql in enumerate(statements)]
    for messages in ((typed(1, 1, 5),), (DROP, CREATED, *made, held)):
        job.send(*messages)
        job.run()
    before = job.rows("d.t", "id", "f", former)
    (tmp_path / "in" / "0.jsonl").write_bytes(typed(0, 1, 4))
    assert [(report.waiting, report.steps) for report in job.run()] == [({}, [])]
    value = json.loads(held)["data"][0]["f"]
    value = int(value) if value.isdecimal() else value
    late = [] if form == "current" else [(1, None, 5)]
    assert {*before} == {(6, value, None), *late}
    assert {*job.rows("d.t", "id", "f", former)} - {*before} <= ({(1, None, 4)} if form == "history" else set())
    logged = {one for one in job.rows("d.t", "id", "f", former, suffix="changes") if one[0]}
    assert logged == {(1, None, 5), (1, None, 4), (6, value, None)}


@pytest.mark.slow
def test_a_late_row_of_a_dropped_table_that_the_lakes_type_cannot_hold_waits_for_nothing(tmp_path: Path):
    """None of its values is written into a current state, which has none of before the DROP."""
    job = LocalJob(tmp_path, lake_section(DELTA, tmp_path))
    made = statement(9, "ALTER TABLE d.t MODIFY f DOUBLE")
    for messages in ((typed(1, 1, 5),), (DROP, CREATED, made, typed(11, 6, 0.5, "double"))):
        job.send(*messages)
        job.run()
    (tmp_path / "in" / "0.jsonl").write_bytes(typed(0, 1, 4))
    assert [(report.waiting, report.steps) for report in job.run()] == [({}, [])]
    assert job.rows("d.t", "id", "f") == [(6, 0.5)]


@pytest.mark.slow
def test_a_late_row_of_a_dropped_table_with_more_versions_changes_none_of_the_one_that_goes_on(tmp_path: Path):
    """Neither are its defaults put into rows of the other, nor is a column renamed as in its statements."""
    job = LocalJob(tmp_path, lake_section(DELTA, tmp_path, behavior="evolve"))
    job.send(
        row(1, a=1, c=1),
        statement(2, "ALTER TABLE d.t ADD m INT DEFAULT 5"),
        statement(3, "ALTER TABLE d.t RENAME COLUMN c TO r"),
        row(4, a=4, r=4, m=4),
        DROP,
    )
    job.send(
        statement(8, "CREATE TABLE d.t (id INT PRIMARY KEY, a INT, c INT, m INT)", "CREATE"), row(9, a=9, c=9, m=7)
    )
    job.run()
    held = job.rows("d.t", "id", "a", "c", "m")
    assert held == [(9, 9, 9, 7)]
    (tmp_path / "in" / "0.jsonl").write_bytes(row(5, a=5, r=5, m=5))
    assert [report.steps for report in job.run()] == [[]]
    job.send(row(10, a=10, c=10, m=10))
    assert [report.steps for report in job.run()] == [[]]
    assert {*job.rows("d.t", "id", "a", "c", "m")} == {*held, (10, 10, 10, 10)}


@pytest.mark.slow
@pytest.mark.parametrize("lake", [DELTA, ICEBERG])
@pytest.mark.parametrize("more", [{}, {"form": "soft"}, {"behavior": "evolve", "changelog": True}])
@pytest.mark.parametrize(
    ("between", "columns"),
    [
        # It does not know yet that the table is dropped.
        ((DROP, AGAIN[0][2], AGAIN[1][0], row(12, a=12, m=7), row(13, a=13, m=8)), "m"),
        ((AGAIN[1][0], row(12, a=12, m=7), row(13, a=13, m=8)), "m"),
        ((statement(11, "ALTER TABLE d.t RENAME COLUMN a TO m"), row(12, m=7)), "m"),
        (
            (statement(11, "ALTER TABLE d.t DROP COLUMN a"), statement(12, "ALTER TABLE d.t ADD a INT"), row(13, a=9)),
            "a",
        ),
    ],
)
def test_a_state_that_is_older_than_its_lake_takes_nothing_from_it(
    tmp_path: Path, lake: str, more: Any, between: tuple[bytes, ...], columns: str
):
    """The statements between the two are read again, one batch each."""
    job = LocalJob(tmp_path, lake_section(lake, tmp_path, **more))
    suffixes = ["", "changes"] if more.get("changelog") else [""]
    job.send(row(1, a=1))
    job.run()
    shutil.copytree(tmp_path / "state", tmp_path / "older")
    for message in (row(2, a=2), *between):
        job.send(message)
    job.run()
    held = [job.rows("d.t", "id", columns, suffix=suffix) for suffix in suffixes]
    shutil.rmtree(tmp_path / "state")
    shutil.copytree(tmp_path / "older", tmp_path / "state")
    reports = job.run()
    assert ([one.number for one in reports], [one.waiting for one in reports if one.waiting]) == (
        [*range(1, len(between) + 2)],
        [],
    )
    assert [job.rows("d.t", "id", columns, suffix=suffix) for suffix in suffixes] == held


@pytest.mark.slow
@pytest.mark.parametrize("lake", [DELTA, ICEBERG])
def test_a_state_that_is_older_than_its_lake_keeps_what_it_reads_for_the_first_time(tmp_path: Path, lake: str):
    """Under the name that its column has by then, as the lake does not say what its own columns were called."""
    job = LocalJob(tmp_path, lake_section(lake, tmp_path))
    job.send(row(1, a=1))
    job.run()
    shutil.copytree(tmp_path / "state", tmp_path / "older")
    job.send(statement(10, "ALTER TABLE d.t RENAME COLUMN a TO z"), row(11, z=11))
    job.run()
    shutil.rmtree(tmp_path / "state")
    shutil.move(tmp_path / "older", tmp_path / "state")
    late, behind = tmp_path / "in" / "late.jsonl", max((tmp_path / "in").iterdir())
    late.write_bytes(row(5, a=5))
    os.utime(late, (behind.stat().st_mtime - 1,) * 2)
    assert [report.waiting for report in job.run()] == [{}, {}]
    assert job.rows("d.t", "id", "a", "z") == [(1, None, 1), (11, None, 11), (5, 5, None)]


@pytest.mark.slow
@pytest.mark.parametrize("lake", [DELTA, ICEBERG])
def test_a_table_whose_key_had_changed_goes_on_when_it_is_created_again(tmp_path: Path, lake: str):
    """The first version whose rows its lake table takes is not that of the dropped one."""
    job = LocalJob(tmp_path, lake_section(lake, tmp_path))
    both = {"pkNames": ["id", "a"]}
    job.send(
        statement(1, "CREATE TABLE d.t (id INT PRIMARY KEY, a INT)", "CREATE"),
        statement(2, "ALTER TABLE d.t DROP PRIMARY KEY, ADD PRIMARY KEY (id, a)"),
        canal("INSERT", [{"id": "3", "a": "3"}], id=3, **both),
    )
    job.run()
    job.send(
        DROP,
        statement(8, "CREATE TABLE d.t (id INT, a INT, PRIMARY KEY (id, a))", "CREATE"),
        canal("INSERT", [{"id": "9", "a": "9"}], id=9, **both),
    )
    assert [report.waiting for report in job.run()] == [{}]
    assert job.rows("d.t", "id", "a") == [(9, 9)]
