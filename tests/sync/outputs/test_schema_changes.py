"""Schema changes: what was decided for each statement, in a lake table that has each once."""

from __future__ import annotations

import pytest

from cdcavro.lake.evolution import EXCEPTION, IGNORE
from cdcavro.lake.table_shape import TableShape
from cdcavro.sync.outputs.sink_settings import StatementRules, excluded_kinds
from cdcavro.sync.protection import RowRule
from cdcavro.sync.settings import Chosen, Formats
from support.messages import canal
from support.roundtrip import error_of

TOLD = {"schema_changes_table": "ops.schema_changes", "formats": Formats("canal")}


def statement(id: int, sql: str, table: str = "t", type: str = "ALTER") -> bytes:
    """Return a statement of Canal's."""
    return canal(type, [], id=id, table=table, isDdl=True, sql=sql)


@pytest.mark.every_spark
@pytest.mark.classic
@pytest.mark.parametrize("sink", ["delta", pytest.param("iceberg", marks=pytest.mark.slow)])
def test_each_statement_is_in_the_table_once_with_what_was_decided(job, sink: str):
    """Step by step, with its place, also if its batch is run again; those of tables that are left out are not."""
    made = job(sink, statements=StatementRules(excluded_kinds(None, ["drop", "truncate", "rename.column"])))
    own = {**TOLD, "chosen": Chosen(exclude=("u",))}
    made.send(
        statement(1, "CREATE TABLE t (id INT PRIMARY KEY, a INT, b INT)", type="CREATE"),
        canal("INSERT", [{"id": "1", "a": "1", "b": "1"}], id=2),
        statement(3, "ALTER TABLE t DROP COLUMN b, ADD c INT, CHANGE a a2 BIGINT"),
        statement(4, "CREATE TABLE u (id INT PRIMARY KEY)", "u", "CREATE"),
    )
    made.send(
        statement(5, "ALTER TABLE t FROBNICATE"),
        statement(6, "CREATE INDEX i ON t (c)", type="CINDEX"),
        statement(7, "ALTER TABLE t DROP COLUMN b, ADD c INT, CHANGE a a2 BIGINT"),
        statement(8, "TRUNCATE TABLE t", type="TRUNCATE"),
        canal("INSERT", [{"id": "2"}], id=9, database="ops", table="schema_changes"),
    )
    first, second = made.run(**own)
    assert [one for one in first.steps if "excluded" in one] == [
        "d.t: drop.column is excluded: not followed: column 'b' is dropped",
        "d.t: rename.column is excluded: not followed: column 'a' is renamed to 'a2'",
    ]
    assert "d.t: truncate.table is excluded: not followed: the table loses all its rows" in second.steps
    assert second.waiting == {
        "ops.schema_changes": "its place in the lake is that of the schema changes, ops.schema_changes"
    }
    names = ("batch", "line", "table_name", "kind", "step", "decision")
    rows = made.rows("ops.schema_changes", *names)
    assert [row[:2] + row[3:] for row in rows if row[3] is not None and row[2] == "d.t"] == [
        (0, 1, "create.table", "the table is created", "applied"),
        (0, 3, "add.column", "column 'c' is added", "applied"),
        (0, 3, "alter.column.type", "column 'a2' is BIGINT", "applied"),
        (0, 3, "drop.column", "column 'b' is dropped", "excluded"),
        (0, 3, "rename.column", "column 'a' is renamed to 'a2'", "excluded"),
        (1, 4, "truncate.table", "the table loses all its rows", "excluded"),
    ]
    others = {(row[1], row[5]) for row in rows if row[3] is None}
    assert others == {(1, "not understood"), (2, "no change"), (3, "refused")}
    assert {row[2] for row in rows} == {"d.t"}
    texts = made.rows("ops.schema_changes", "statement", "reason", "format")
    assert all(text and format == "canal" for text, _, format in texts)
    assert sum(reason is not None for _, reason, _ in texts) == 2
    assert made.rows("d.t", "id") == [(1,)]
    made.run_again(**own)
    assert made.rows("ops.schema_changes", *names) == rows


@pytest.mark.parametrize(
    ("behavior", "decisions"),
    [
        ("lenient", {"add.column": "applied", "drop.column": "kept"}),
        ("evolve", {"add.column": "applied", "drop.column": "applied"}),
        (IGNORE, {"add.column": "ignored", "drop.column": "ignored"}),
        (EXCEPTION, {"add.column": "refused", "drop.column": "refused"}),
    ],
)
def test_without_exclusions_the_behavior_decides(job, behavior: str, decisions: dict[str, str]):
    """Also of a table of which no row has come, whose statement has literals that may be values of protected columns."""
    made = job(behavior=behavior)
    made.send(
        statement(1, "CREATE TABLE t (id INT PRIMARY KEY, b INT)", type="CREATE"),
        statement(2, "ALTER TABLE t ADD c VARCHAR(9) DEFAULT 'canary'"),
        statement(3, "ALTER TABLE t DROP COLUMN b"),
        statement(4, "ALTER TABLE t FROB 'a\\', b 'canary'"),
        statement(5, "ALTER TABLE t FROB `it's` 'canary'"),
        statement(6, "ALTER TABLE t FROB 'canary"),
        statement(7, "ALTER TABLE t FROB a -- canary"),
    )
    made.run(**TOLD, rules=(RowRule("t", ("c",)),), rejects_raw="omit")
    found = made.rows("ops.schema_changes", "kind", "decision", "statement")
    assert {kind: decision for kind, decision, _ in found if kind in decisions} == decisions
    assert not [text for *_, text in found if "canary" in text]
    assert {text for kind, _, text in found if kind is None} == {
        "…",
        "ALTER TABLE t FROB `it's` …",
        "ALTER TABLE t FROB a",
    }


def test_a_key_that_the_configuration_gives_creates_no_table(job):
    """The table is there already for the source: the row says what is new."""
    made = job()
    made.send(canal("INSERT", [{"id": "1"}], id=1, pkNames=None))
    made.run(**TOLD, shapes=(TableShape("d.t", key=("id",)),))
    assert made.rows("ops.schema_changes", "kind", "step", "statement") == [("alter.table", "the key is 'id'", None)]


def test_a_table_is_called_as_the_lake_will_call_it_before_it_has_a_row(job):
    """By the template; one that would get the name of another one has that of the source."""
    made = job(template="lake.{table}")
    made.send(
        canal("INSERT", [{"id": "1"}], id=1),
        statement(2, "CREATE TABLE u (id INT PRIMARY KEY)", "u", "CREATE"),
        canal("CREATE", [], id=3, database="e", table="t", isDdl=True, sql="CREATE TABLE t (id INT PRIMARY KEY)"),
    )
    made.run(**TOLD)
    assert made.rows("ops.schema_changes", "line", "table_name") == [(2, "lake.u"), (3, "e.t")]
    made.run_again(**TOLD)
    assert made.rows("ops.schema_changes", "line", "table_name") == [(2, "lake.u"), (3, "e.t")]


def test_a_table_of_something_else_is_left_alone(job):
    """And no place of rejects."""
    made = job()
    with pytest.raises(ValueError, match=r"schema_changes_table is called database\.table, not 'x'"):
        made.pipeline(schema_changes_table="x")
    with pytest.raises(ValueError, match="rejects_table and schema_changes_table are two tables"):
        made.pipeline(schema_changes_table="Ops.x", rejects_table="ops.X")
    made.send(b"no message")
    made.run(rejects_table="ops.rejects")
    made.send(statement(1, "CREATE TABLE t (id INT PRIMARY KEY)", type="CREATE"))
    said = error_of(lambda: made.run(schema_changes_table="ops.rejects"))
    assert "the schema changes of batch 1 cannot be written to the table ops.rejects of Delta Lake" in said
    assert "expected a table of schema changes, got one with other columns: 'raw, record_key, topic" in said
