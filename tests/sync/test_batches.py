"""Batches of a pipeline: what a batch learns, wherever the stream is cut."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from cdcavro.errors import FileError
from cdcavro.lake.job_state import JobState
from cdcavro.lake.merge import NO_KEY
from cdcavro.sync.batches import ALL_TEXT, BatchReport, other_look
from cdcavro.sync.settings import Chosen, Formats, RegistrySettings, Settings
from cdcavro.sync.status import read_status
from cdcavro.table import TableName
from cdcavro.table.history import Table
from cdcavro.table.tables import Tables
from support.jobs import PipelineJob
from support.messages import canal


def statement(type: str, sql: str, id: int) -> bytes:
    """Return a statement of Canal's."""
    return canal(type, [], id=id, isDdl=True, sql=sql)


def debezium(id: int, position: int, op: str = "c") -> bytes:
    """Return a row of Debezium's without a schema, or a TRUNCATE."""
    source = {"connector": "mysql", "name": "s", "ts_ms": 1, "db": "d", "table": "t", "file": "b.1", "pos": position}
    after = None if op == "t" else {"id": id, "a": 1}
    return json.dumps({"before": None, "after": after, "source": {**source, "row": 0}, "op": op, "ts_ms": 1}).encode()


LATE_KEY = (
    "its key, 'id', became known only after its first rows: only a changelog is written; for a current state, begin again with"
    " another state and lake, from where rows state the key"
)


def tables(job: PipelineJob, reports: list[BatchReport]) -> list[Table]:
    """Return what is remembered of the tables."""
    state = JobState(Path(job.folder, "state", "batches"))
    return state.resume(reports[-1].number + 1, Tables(**job.pipeline().settings.options)).tables.tables


def test_a_truncate_that_is_alone_in_its_batch_empties_the_table(job):
    """It edits no table, but it ends its rows."""
    made = job()
    made.send(canal("INSERT", [{"id": "1", "a": "1"}], id=1))
    made.send(statement("TRUNCATE", "TRUNCATE TABLE t", 2))
    made.send(canal("INSERT", [{"id": "2", "a": "1"}], id=3))
    reports = made.run()
    assert reports[1].operations == {"d.t": {"t": 1}}
    assert made.rows("d.t", "id") == [(2,)]


@pytest.mark.parametrize("form", ["current", "history"])
def test_a_drop_that_comes_again_ends_the_rows_that_came_again_before_it(job, form: str):
    """And the table that was created since keeps its own, which come again behind it."""
    made = job(form=form)
    create, drop = statement("CREATE", "CREATE TABLE t (id int PRIMARY KEY)", 1), statement("ERASE", "DROP TABLE t", 3)
    sent = [
        create,
        canal("INSERT", [{"id": "1"}], id=2),
        drop,
        statement("CREATE", "CREATE TABLE t (id int PRIMARY KEY)", 4),
    ]
    last = canal("INSERT", [{"id": "2"}], id=5)
    made.send(*sent, last, *sent[1:], last)
    (report,) = made.run()
    assert report.operations == {"d.t": {"c": 4, "x": 2}}
    rows = made.rows("d.t", "id", *(["_cdc_end"] if form == "history" else []))
    assert [row[0] for row in rows if form == "current" or row[-1] is None] == [2]


def test_rows_behind_a_drop_whose_columns_no_statement_declares_are_of_a_new_table(job):
    """CREATE TABLE ... AS declares none, and the table before had the same."""
    made = job()
    made.send(canal("INSERT", [{"id": "1", "a": "1"}], id=1))
    made.send(
        statement("ERASE", "DROP TABLE t", 2),
        statement("CREATE", "CREATE TABLE t AS SELECT * FROM u", 3),
        canal("INSERT", [{"id": "2", "a": "1"}], id=4),
    )
    reports = made.run()
    assert (reports[1].counts["written"], reports[1].counts["rejected"]) == (1, 0)
    assert made.rows("d.t", "id") == [(2,)]
    assert len(tables(made, reports)) == 2


def test_a_version_with_which_rows_are_written_stays_as_it_is(job):
    """Also if a statement declared it in a batch before, and no row had to be learned."""
    made = job()
    made.send(statement("CREATE", "CREATE TABLE t (id INT PRIMARY KEY, a INT)", 1))
    made.send(canal("INSERT", [{"id": "1", "a": "1"}], id=2))
    made.send(canal("INSERT", [{"id": "2", "a": "9999999999"}], id=3, mysqlType={"id": "int", "a": "bigint"}))
    reports = made.run()
    assert [len(table.versions) for table in tables(made, reports)] == [2]
    assert made.rows("d.t", "id", "a") == [(1, 1), (2, 9999999999)]


def test_a_version_that_rows_made_stays_when_the_statement_comes_late(job):
    """The column that only the statement has is added, and a run that goes on knows the same versions."""
    made, formats = job(), Formats("debezium")
    made.send(debezium(1, 10))
    source = {"connector": "mysql", "name": "s", "ts_ms": 1, "db": "d", "table": "t", "file": "b.1", "pos": 5, "row": 0}
    sql = "CREATE TABLE t (id INT PRIMARY KEY, a INT, b INT)"
    made.send(json.dumps({"source": source, "ts_ms": 1, "databaseName": "d", "ddl": sql, "tableChanges": []}).encode())
    reports = made.run(formats=formats)
    (table,) = tables(made, reports)
    assert [column.name for column in table.versions[0].columns] == ["id", "a"]
    assert [column.name for column in table.schema.columns] == ["id", "a", "b"]


def test_statements_without_a_text_are_learned(job):
    """SQL Server's have columns alone, and a TRUNCATE in a topic of rows has nothing but its table."""
    made, formats = job(), Formats("debezium")
    place = {"version": "2", "connector": "sqlserver", "name": "s", "ts_ms": 1, "db": "d", "schema": "dbo"}
    column = {"name": "id", "jdbcType": 4, "typeName": "int", "typeExpression": "int", "position": 1, "optional": False}
    change = {"type": "CREATE", "id": '"d"."dbo"."t"', "table": {"primaryKeyColumnNames": ["id"], "columns": [column]}}
    source = {**place, "table": "t", "commit_lsn": "00000027:00000758:0003"}
    said = {"source": source, "ts_ms": 1, "databaseName": "d", "schemaName": "dbo", "ddl": None}
    both = [change, change | {"id": '"d"."dbo"."u"'}]
    made.send(json.dumps({**said, "tableChanges": both}).encode())
    reports = made.run(formats=formats)
    assert reports[0].counts["statements"] == 1
    found = [(table.schema.table.table, table.schema.key_names) for table in tables(made, reports)]
    assert found == [("t", ("id",)), ("u", ("id",))]


def test_a_statement_whose_text_is_not_understood_is_said_once_with_what_was_decided(job):
    """Its table is as the message says that it became; of tables that are left out nothing is said."""
    made, own = job(), {"formats": Formats("debezium"), "chosen": Chosen(exclude=("u",))}
    column = {"name": "id", "jdbcType": 4, "typeName": "INT", "typeExpression": "INT", "position": 1, "optional": False}
    for number, table in enumerate("tu"):
        content = {"primaryKeyColumnNames": ["id"], "columns": [column]}
        change = {"type": "CREATE", "id": f'"d"."{table}"', "table": content}
        source = {
            "connector": "mysql",
            "name": "s",
            "ts_ms": 1,
            "db": "d",
            "table": table,
            "file": "b.1",
            "pos": number,
        }
        said = {"databaseName": "d", "ddl": f"FROBNICATE {table} {'x' * 500}", "tableChanges": [change]}
        made.send(json.dumps({"source": source | {"row": 0}, "ts_ms": 1, **said}).encode())
    reports = made.run(**own)
    (step,) = [step for report in reports for step in report.steps]
    assert step.startswith("d.t: a text is not understood, and what its table became counts: 'FROBNICATE t xxx")
    assert len(step) < 300
    assert sum(report.counts["statements"] for report in reports) == 2
    made.send(debezium(1, 10))
    assert [step for report in made.run(**own) for step in report.steps] == []


@pytest.mark.slow
@pytest.mark.parametrize("is_cut", [False, True])
def test_rows_that_only_a_statement_which_is_not_understood_can_explain_are_rejects(job, *, is_cut):
    """In its batch and behind it, also of a run that goes on; its text is in their reason, and all others are written."""
    made = job()
    known = {"id": "1", "a": "1"}
    messages = [
        statement("CREATE", "CREATE TABLE t (id INT PRIMARY KEY, a INT)", 1),
        canal("INSERT", [known], id=2),
        statement("ALTER", "ALTER TABLE t FROBNICATE", 3),
        canal("INSERT", [known | {"id": "2", "z": "7"}], id=4, mysqlType=None),
        canal("INSERT", [known | {"id": "3"}], id=5),
        canal("INSERT", [known | {"id": "4", "z": "7"}], id=6, mysqlType=None),
    ]
    if is_cut:
        for message in messages[:5]:
            made.send(message)
    else:
        made.send(*messages[:5])
    made.run()
    made.send(messages[5])
    made.run()
    rejects = [
        json.loads(line)
        for path in Path(made.folder, "state", "rejects").rglob("*.json*")
        if path.is_file() and not path.name.startswith((".", "_"))
        for line in path.read_text().splitlines()
    ]
    reasons = [one["reason"] for one in rejects]
    assert made.rows("d.t", "id") == [(1,), (3,)]
    assert len(reasons) == 3
    assert sum("behind a statement that is not understood: 'ALTER TABLE t FROBNICATE'" in one for one in reasons) == 2


def test_a_truncate_among_the_rows_of_a_topic_empties_the_table(job):
    """It is a message without a text, and the only statement."""
    made, formats = job(is_current=False, is_changelog=True), Formats("debezium")
    made.send(debezium(1, 10))
    made.send(debezium(0, 20, "t"))
    reports = made.run(formats=formats)
    assert [report.operations for report in reports] == [{"d.t": {"c": 1}}, {"d.t": {"t": 1}}]


def test_tables_that_are_one_behind_the_other_in_a_lake_table_are_counted_together(job):
    """The rows of the one that was dropped are not forgotten."""
    made = job()
    made.send(
        canal("INSERT", [{"id": "1", "a": "1"}], id=1),
        statement("ERASE", "DROP TABLE t", 2),
        statement("CREATE", "CREATE TABLE t (id INT PRIMARY KEY, a INT)", 3),
        canal("INSERT", [{"id": "2", "a": "1"}], id=4),
    )
    assert made.run()[0].operations == {"d.t": {"c": 2, "x": 1}}


def test_a_step_that_current_state_and_changelog_both_take_is_told_once(job):
    """With the table's name; what only one of them takes would be told, too."""
    made = job(is_changelog=True)
    made.send(canal("INSERT", [{"id": "1", "a": "1"}], id=1))
    made.run()
    made.send(canal("INSERT", [{"id": "2", "a": "1", "b": "2"}], id=2))
    assert [report.steps for report in made.run()] == [["d.t: column 'b' is added"]]


def test_a_table_that_gets_its_key_later_has_a_changelog(job):
    """Its rows without a key have no current state, which is said, and none wait for one."""
    made = job()
    made.send(canal("INSERT", [{"id": "1", "a": "1"}], id=1, pkNames=None))
    made.send(
        statement("ALTER", "ALTER TABLE t ADD PRIMARY KEY (id)", 2), canal("INSERT", [{"id": "2", "a": "1"}], id=3)
    )
    reports = made.run()
    assert [report.waiting for report in reports] == [{}, {}]
    assert [report.steps for report in reports] == [[f"d.t: {NO_KEY}"], [f"d.t: {LATE_KEY}"]]
    assert made.rows("d.t", "id", suffix="changes") == [(1,), (2,)]


@pytest.mark.slow
@pytest.mark.parametrize("is_cut", [False, True])
def test_a_key_that_only_later_rows_state_is_known_from_there_on_and_no_row_before_it_is_lost(job, *, is_cut: bool):
    """Of the rows before it there is no current state, which is said with what to do; rows behind it need not state it."""
    made = job()
    messages = [
        canal("INSERT", [{"id": "1", "a": "1"}], id=1, pkNames=None),
        canal("INSERT", [{"id": "2", "a": "1"}], id=2),
        canal("UPDATE", [{"id": "2", "a": "5"}], id=3, old=[{"a": "1"}], pkNames=None),
    ]
    for some in [[one] for one in messages] if is_cut else [messages]:
        made.send(*some)
    reports = made.run()
    said = [NO_KEY, LATE_KEY] if is_cut else [LATE_KEY]
    assert [step for report in reports for step in report.steps] == [f"d.t: {one}" for one in said]
    assert [report.waiting for report in reports] == [{}] * len(reports)
    assert sum(report.counts["written"] for report in reports) == 3
    rows = made.rows("d.t", "id", "_cdc_op", "_cdc_version", "_cdc_key", suffix="changes")
    found = [(id, op, version, key is not None) for id, op, version, key in rows]
    assert found == [(1, "c", 1, False), (2, "b", 2, True), (2, "c", 2, True), (2, "u", 2, True)]
    # A run that goes on knows the same, and says it again.
    made.send(canal("INSERT", [{"id": "3", "a": "1"}], id=4))
    (report,) = made.run()
    assert report.steps == [f"d.t: {LATE_KEY}"]
    assert [version.key_names for version in tables(made, [report])[0].versions] == [(), ("id",)]


def test_a_state_whose_checkpoint_is_gone_is_refused(job):
    """All would be read again, and a changelog would skip what it takes for its own batches."""
    made = job()
    made.send(canal("INSERT", [{"id": "1", "a": "1"}], id=1))
    made.send(canal("INSERT", [{"id": "2", "a": "1"}], id=2))
    made.run()
    shutil.rmtree(made.folder / "state" / "checkpoint")
    with pytest.raises(FileError, match="its checkpoint is gone, or an older one"):
        made.run()


def test_files_leave_no_time_behind(job):
    """The state does not grow with their number."""
    made = job()
    for i in range(1, 4):
        made.send(canal("INSERT", [{"id": str(i), "a": "1"}], id=i))
    reports = made.run()
    state = JobState(Path(made.folder, "state", "batches"))
    assert [
        len(json.loads((state.folder / f"{report.number:012}.json").read_bytes())["clock"]) for report in reports[1:]
    ] == [1, 1]


@pytest.mark.slow
def test_statements_that_change_nothing_do_not_make_the_state_grow(job, monkeypatch: pytest.MonkeyPatch):
    """One in each batch; files are put together, and the next run begins with them."""
    monkeypatch.setattr("cdcavro.lake.job_state._FILES", 4)
    monkeypatch.setattr("cdcavro.lake.job_state._LAST_IDLE", 1)
    made, sql = job(), "CREATE TABLE IF NOT EXISTS t (id INT PRIMARY KEY, a INT)"
    for i in range(1, 13):
        row = canal("INSERT", [{"id": str(i), "a": "1"}], id=2 * i)
        made.send(canal("CREATE", [], id=2 * i - 1, isDdl=True, sql=sql), row)
        if i in (8, 12):
            made.run()
    state = JobState(Path(made.folder, "state", "batches"))
    said = [json.loads(path.read_bytes())["learned"] for path in sorted(state.folder.iterdir())]
    assert len(said) <= 6
    assert sum(len(one) for one in said) <= 8
    assert made.rows("d.t", "id", "a") == [(i, 1) for i in range(1, 13)]
    made.send(canal("INSERT", [{"id": "13", "a": "1"}], id=30))
    made.run()
    made.run_again()
    assert len(made.rows("d.t", "id")) == 13


@pytest.mark.slow
def test_tables_are_called_in_the_lake_what_a_template_says(job):
    """Those of a running pipeline keep the names that they have when it is changed, or taken away."""
    made = job(template="lake.{database}_{table}", is_changelog=True)
    made.send(canal("INSERT", [{"id": "1"}], id=1), canal("INSERT", [{"id": "2"}], id=2, table="u"))
    made.run()
    assert (made.rows("lake.d_t", "id"), made.rows("lake.d_u", "id", suffix="changes")) == ([(1,)], [(2,)])
    properties = made.lake_table(TableName("lake", None, "d_t")).properties()
    assert properties["cdcavro.table"] == '["d", null, "t"]'
    for template, table in (("{database}.{table}", "v"), (None, "w")):
        again = replace(made, lake={**made.lake, "template": template})
        again.send(canal("INSERT", [{"id": "3"}], id=3), canal("INSERT", [{"id": "4"}], id=4, table=table))
        again.run()
        made.files = again.files
    assert made.rows("lake.d_t", "id") == [(1,), (3,)]
    assert (made.rows("d.v", "id"), made.rows("d.w", "id")) == ([(4,)], [(4,)])


@pytest.mark.slow
def test_a_table_that_a_template_gives_the_name_of_another_waits(job):
    """Nothing is mixed; a table that took the name of one that was renamed is written, with a number behind its name."""
    made = job(template="lake.{table}")
    made.send(canal("INSERT", [{"id": "1"}], id=1))
    made.send(
        statement("RENAME", "RENAME TABLE t TO u", 2),
        canal("INSERT", [{"id": "2"}], id=3),
        canal("INSERT", [{"id": "3"}], id=4, table="u"),
    )
    made.send(canal("INSERT", [{"id": "4"}], id=5, database="e"))
    report = made.run()[-1]
    said = (
        "schema t: name in [lake], lake.{table}, gives e.t the name of d.t, lake.t: let it tell them apart, or leave one of"
        " them out"
    )
    assert (report.waiting, report.pending) == ({"e.t": said}, {"e.t": 1})
    assert (made.rows("lake.t", "id"), made.rows("lake.t~2", "id")) == ([(1,), (3,)], [(2,)])
    status = read_status(made.folder / "state", made.source)
    found = [(one.name, one.version, one.pending, one.stopped) for one in status.tables]
    assert found == [("e.t", None, 1, said), ("lake.t", 2, 0, None), ("lake.t~2", 1, 0, None)]
    # It gets its name with a batch, whose state says it.
    own = replace(made, lake={**made.lake, "template": "lake.{database}_{table}"})
    assert own.run() == []
    own.send(canal("INSERT", [{"id": "6"}], id=6))
    (report,) = own.run()
    assert (report.waiting, made.rows("lake.e_t", "id"), made.rows("lake.t~2", "id")) == ({}, [(4,)], [(2,), (6,)])


def test_a_dropped_table_leaves_its_lake_table_to_none_of_another_name(job):
    """Only one of its own name goes on with it."""
    made = job(template="lake.{table}")
    made.send(canal("INSERT", [{"id": "1"}], id=1), statement("ERASE", "DROP TABLE t", 2))
    made.send(canal("INSERT", [{"id": "2"}], id=3, database="e"), canal("INSERT", [{"id": "3"}], id=4))
    assert list(made.run()[-1].waiting) == ["e.t"]
    assert made.rows("lake.t", "id") == [(3,)]


def test_rejects_that_are_framed_or_not_unlike_what_the_settings_say_are_told():
    """A format that was given is beside the point then."""
    framed, texts = [b"\0\0\0\0\1rest", b"\0\0\0\0\2"], [canal("INSERT", [{"id": "1"}], id=1), b"{"]
    plain, opened = Settings(formats=Formats("debezium")), Settings(framed=RegistrySettings("file:x"))
    said = "all rejects look like Avro by a registry's schemas, which is read with framed = true in [source]"
    assert other_look(framed, plain) == said
    like = "like canal, unlike the --format given"
    looks = [other_look(some, plain) for some in ([*framed, *texts], texts, texts[:1])]
    assert looks == [f"1 of 4 rejects looks {like}", f"1 of 2 rejects looks {like}", f"all rejects look {like}"]
    assert other_look(texts[:1] * 20, plain) == f"the first 20 rejects look {like}"
    assert other_look(texts, opened) == "all rejects look like JSON, which is read without framed in [source]"
    assert other_look([*framed, *texts], opened) is None


def test_a_table_whose_messages_state_no_types_is_told_once(job):
    """With its first rows, and not by a later run."""
    made = job()
    made.send(debezium(1, 1))
    (first,) = made.run()
    made.send(debezium(2, 2))
    (second,) = made.run()
    assert [f"d.t: {ALL_TEXT}" in report.steps for report in (first, second)] == [True, False]
    other = canal("INSERT", [{"id": "1", "a": "1"}], id=1, table="u")
    made.send(other)
    (third,) = made.run()
    assert third.steps == []
