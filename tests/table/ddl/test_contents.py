"""Statements whose text is not understood, and which say what their tables become."""

from __future__ import annotations

import json
from typing import Any

import pytest

from cdcavro.change.model import Arrival, Change, from_record, replace, to_record
from cdcavro.errors import DdlError, SchemaError
from cdcavro.lake.typed_rows import TypedRows
from cdcavro.table.ddl.steps import TableName
from cdcavro.table.tables import Tables
from cdcavro.transcoding.mapping import from_changes
from support.table_changes import changes, column, table_change


def _unread(connector: str, number: int, ddl: str, kind: str, *columns: dict[str, Any]) -> dict[str, Any]:
    """Return a statement about the table T whose text is `ddl`."""
    id, names = ('"db"."S"."T"', {"schemaName": "S"}) if connector == "oracle" else ('"db"."T"', {"schemaName": None})
    at = {"scn": f"{number}", "commit_scn": f"{number}"} if connector == "oracle" else {"file": "b.1", "pos": number}
    source = {"connector": connector, "db": "db", "table": "T", "schema": names["schemaName"]} | at
    made = table_change(kind, id, *columns, key=["ID"])
    return {"source": source, "ts_ms": 1, "databaseName": "db", **names, "ddl": ddl, "tableChanges": [made]}


@pytest.mark.parametrize("connector", ["oracle", "mysql"])
def test_columns_of_a_statement_count_where_its_text_is_not_understood(connector):
    """A finding of the table says so for each."""
    id, n, z = column("ID", "DECIMAL", 3, length=9, scale=0), column("N", "DECIMAL", 3, length=8, scale=2), "Z"
    texts = ["create table T of a new kind", "alter table T frobnicate N", "drop table T into the void"]
    tables = Tables()

    def add(number: int, ddl: str, kind: str, *columns: dict[str, Any]) -> None:
        for change in changes(_unread(connector, number, ddl, kind, *columns)):
            tables.add(change)

    add(10, texts[0], "CREATE", id, n)
    add(20, texts[1], "ALTER", id, n, column(z, "DATE", 91))
    add(20, texts[1], "ALTER", id, n, column(z, "DATE", 91))
    add(25, "create table if not exists T of a new kind", "CREATE", id, n, column(z, "DATE", 91))
    (table,) = tables.tables
    assert [[one.type for one in version.columns] for version in table.versions] == [
        ["DECIMAL(9,0)", "DECIMAL(8,2)"],
        ["DECIMAL(9,0)", "DECIMAL(8,2)", "DATE"],
    ]
    assert not table.is_gone
    add(30, texts[2], "DROP")
    assert table.is_gone
    for text in texts:
        assert f"a text is not understood, and what its table became counts: {text!r}" in table.findings


@pytest.mark.parametrize(
    ("ddl", "kind"),
    [
        ("alter table T frobnicate rename column N to M", "ALTER"),
        ("alter table T frobnicate, change N M int", "ALTER"),
        ("alter table T frobnicate; truncate table T", "ALTER"),
        ("alter table T frobnicate; drop table U", "ALTER"),
        ("alter table T frobnicate drop partition p", "ALTER"),
        ("drop table T, U into the void", "DROP"),
        ("drop table U into the void", "DROP"),
        ("drop something else of T", "DROP"),
    ],
)
def test_text_that_is_not_understood_is_refused_where_it_may_do_what_columns_do_not_show(ddl, kind):
    """So are those whose table changes are of another table than their text."""
    tables = Tables()
    id = column("ID", "DECIMAL", 3, length=9, scale=0)
    (made,) = changes(_unread("oracle", 10, "create table T (ID number(9))", "CREATE", id))
    (sent,) = changes(_unread("oracle", 20, ddl, kind, *([] if kind == "DROP" else [id])))
    tables.add(made)
    with pytest.raises(DdlError):
        tables.add(sent)
    assert (len(tables.tables[0].versions), tables.tables[0].is_gone, tables.tables[0].findings) == (1, False, [])


@pytest.mark.parametrize("size", [1, 2, 5])
def test_typed_rows_of_a_lake_follow_statements_whose_text_is_not_understood(size):
    """However the stream is cut into batches."""
    id, z = column("ID", "BINARY_FLOAT", 100), column("Z", "VARCHAR2", 12, length=9)

    def row(number: int, **image: Any) -> dict[str, Any]:
        made = _unread("oracle", number, "", "ALTER")
        return {"source": made["source"], "op": "c", "before": None, "after": image}

    sent = changes(
        _unread("oracle", 1, "create table T of a new kind", "CREATE", id),
        row(2, ID=1),
        _unread("oracle", 3, "alter table T frobnicate", "ALTER", id, z),
        row(4, ID=2, Z="x"),
        _unread("oracle", 5, "drop table T into the void", "DROP"),
    )
    sent = [replace(one, place=Arrival(file="f", line=line)) for line, one in enumerate(sent, 1)]
    maker = TypedRows(Tables())
    batches = [maker.of_batch([[one] for one in sent[at : at + size]]) for at in range(0, len(sent), size)]
    assert [(row.version, row.operation) for batch in batches for row in batch.rows] == [(1, "c"), (2, "c"), (2, "x")]
    assert [batch.rejects for batch in batches] == [[]] * len(batches)


# Words


@pytest.mark.parametrize(
    ("connector", "ddl"),
    [
        ("mysql", "alter table T frobnicate exchange_rate"),
        ("mysql", "alter table T frobnicate `change` comment 'to RENAME; or TRUNCATE'"),
        ("mysql", "alter table T frobnicate /* CHANGE */ partition_id"),
        ("oracle", 'alter table T frobnicate "PARTITION"'),
        ("oracle", "alter table T frobnicate truncated_at, renamed, changes"),
    ],
)
def test_names_literals_and_comments_are_no_words_of_a_statement(connector, ddl):
    """Only a word that stands alone may do what columns do not show."""
    tables = Tables()
    for change in changes(_unread(connector, 10, ddl, "ALTER", column("ID", "DECIMAL", 3, length=9, scale=0))):
        tables.add(change)
    (table,) = tables.tables
    assert [one.name for one in table.schema.columns] == ["ID"]
    assert any("is not understood" in finding for finding in table.findings)


@pytest.mark.parametrize("ddl", ["alter table T 'CHANGE", "alter table T exchange partition p 'x", "alter table T; 'x"])
def test_words_of_a_text_that_is_cut_short_count_wherever_they_stand(ddl):
    """Nothing says what is a literal there, and a statement may end anywhere."""
    (change,) = changes(_unread("mysql", 10, ddl, "ALTER", column("ID", "INT", 4)))
    with pytest.raises(DdlError):
        Tables().add(change)


# Object tables


@pytest.mark.parametrize(
    "ddl",
    [
        "CREATE TABLE T OF shop_type (CONSTRAINT pk PRIMARY KEY (id)) OBJECT IDENTIFIER IS PRIMARY KEY",
        "CREATE TABLE T OF XMLTYPE",
        "CREATE TABLE T OF XMLTYPE XMLTYPE STORE AS BINARY XML VIRTUAL COLUMNS (D AS (EXTRACTVALUE(OBJECT_VALUE, '/d')))",
    ],
)
def test_an_object_table_has_the_columns_that_its_table_change_states(ddl):
    """Its text names a type; without a table change it is not understood."""
    whole = _unread("oracle", 10, ddl, "CREATE", column("ID", "NUMBER", 2, length=9, scale=0))
    tables = Tables()
    for change in changes(whole):
        tables.add(change)
    (table,) = tables.tables
    assert [(one.name, one.type) for one in table.schema.columns] == [("ID", "NUMBER(9,0)")]
    (alone,) = changes(whole | {"tableChanges": []})
    with pytest.raises(DdlError, match="expected columns, LIKE or AS SELECT, got 'OF'"):
        Tables().add(alone)


# Several tables, and both names of a table


def _several(connector: str, number: int, ddl: str | None, *made: dict[str, Any]) -> dict[str, Any]:
    """Return a statement about several tables."""
    at = {"file": "b.1", "pos": number} if connector == "mysql" else {"commit_lsn": f"00000025:00000d98:{number:04x}"}
    schema = None if connector == "mysql" else "S"
    source = {"connector": connector, "db": "db", "table": "", "schema": schema} | at
    names = {"databaseName": "db", "schemaName": schema}
    return {"source": source, "ts_ms": 1, **names, "ddl": ddl, "tableChanges": list(made)}


def _known(*names: str) -> Tables:
    """Return tables that a statement of MySQL's has made."""
    tables, id = Tables(), column("id", "INT", 4)
    for number, name in enumerate(names, 1):
        made = table_change("CREATE", f'"db"."{name}"', id, key=["id"])
        for change in changes(_several("mysql", number, f"CREATE TABLE {name} (id INT PRIMARY KEY)", made)):
            tables.add(change)
    return tables


def _state(tables: Tables) -> list[tuple[str, str, bool]]:
    """Return the name, the columns and whether it is gone of each table."""
    return [
        (table.schema.table.table, " ".join(one.name for one in table.schema.columns), table.is_gone)
        for table in tables.tables
    ]


@pytest.mark.parametrize("ddl", [None, "an unknown dialect's text"])
def test_each_table_change_of_a_statement_without_a_text_counts_for_its_table(ddl):
    """In their order: what was made is altered, and dropped."""
    id, n, tables = column("id", "int", 4), column("n", "int", 4), Tables()
    steps = [
        [table_change("CREATE", '"db"."S"."a"', id, key=["id"]), table_change("CREATE", '"db"."S"."b"', id)],
        [table_change("ALTER", '"db"."S"."a"', id, n, key=["id"]), table_change("DROP", '"db"."S"."b"')],
    ]
    for number, made in enumerate(steps, 1):
        for change in changes(_several("sqlserver", number, ddl, *made)):
            tables.add(change)
    assert _state(tables) == [("a", "id n", False), ("b", "id", True)]
    assert tables.tables[0].schema.table == TableName("db", "S", "a")
    assert tables.tables[0].schema.key_names == ("id",)


def test_each_table_change_of_a_text_that_is_not_understood_counts_for_its_table():
    """One of each statement, or of each table that a statement lists."""
    id, n = column("id", "INT", 4), column("n", "INT", 4)
    tables = _known("a", "b", "c", "d")
    texts = [
        ("DROP TABLE a, b INTO THE VOID", [table_change("DROP", '"db"."a"'), table_change("DROP", '"db"."b"')]),
        (
            "ALTER TABLE c FROBNICATE (x, y); CREATE TABLE e OF A KIND",
            [table_change("ALTER", '"db"."c"', id, n), table_change("CREATE", '"db"."e"', n)],
        ),
        (
            "RENAME TABLE c TO c2 GENTLY, other.d TO other.d2 GENTLY",
            [
                table_change("ALTER", '"db"."c2","db"."c"', id, n),
                table_change("ALTER", '"other"."d2","other"."d"', id, key=["id"]),
            ],
        ),
    ]
    for number, (ddl, made) in enumerate(texts, 10):
        for change in changes(_several("mysql", number, ddl, *made)):
            assert len(change.tables or ()) == 2
            tables.add(change)
            tables.add(change)
    assert _state(tables) == [
        ("a", "id", True),
        ("b", "id", True),
        ("c2", "id n", False),
        ("d", "id", False),
        ("e", "n", False),
        ("d2", "id", False),
    ]
    for table, (ddl, _) in zip([*tables.tables[:3], tables.tables[4]], [texts[0], *texts[:2], texts[1]], strict=True):
        assert f"a text is not understood, and what its table became counts: {ddl!r}" in table.findings


@pytest.mark.parametrize(
    ("ddl", "kind"),
    [
        ("ALTER TABLE a FROBNICATE, RENAME TO z", "ALTER"),
        ("RENAME TABLE a TO z GENTLY", "ALTER"),
    ],
)
def test_a_renaming_that_is_not_understood_counts_where_both_names_are_said(ddl, kind):
    """The table goes on under the other name, with the columns that are stated."""
    made = table_change(kind, '"db"."z","db"."a"', column("id", "INT", 4), column("n", "INT", 4), key=["id"])
    tables = _known("a")
    for change in changes(_several("mysql", 10, ddl, made)):
        tables.add(change)
    assert _state(tables) == [("z", "id n", False)]


_A, _B = table_change("DROP", '"db"."a"'), table_change("DROP", '"db"."b"')
_ID = column("id", "INT", 4)
_Z = table_change("ALTER", '"db"."z","db"."a"', _ID)


@pytest.mark.parametrize(
    ("ddl", "made"),
    [
        ("DROP TABLE a, b INTO THE VOID", [_B, _A]),
        ("DROP TABLE a, b, c INTO THE VOID", [_A, _B]),
        ("DROP TABLE a, b INTO THE VOID", [_A, table_change("ALTER", '"db"."b"', _ID)]),
        ("DROP TABLE a, b INTO THE VOID", [_A, table_change("DROP", "b")]),
        ("DROP VIEWS a, b INTO THE VOID", [_A, _B]),
        ("RENAME TABLE a TO z GENTLY", [table_change("ALTER", '"db"."z"', _ID)]),
        ("RENAME TABLE a TO z GENTLY, b TO y", [_Z]),
        ("RENAME TABLE z TO a GENTLY", [_Z]),
        ("RENAME TABLE b TO z GENTLY", [_Z]),
        ("ALTER TABLE a FROBNICATE", [_Z]),
        ("ALTER TABLE a FROBNICATE, RENAME COLUMN a TO z", [_Z]),
        ("ALTER TABLE a FROBNICATE, RENAME TO z, RENAME COLUMN c TO d", [_Z]),
        ("MOVE TABLE a GENTLY, RENAME TO z", [_Z]),
        ("ALTER TABLE a FROBNICATE; TRUNCATE b", [table_change("ALTER", f'"db"."{name}"', _ID) for name in "ab"]),
    ],
)
def test_a_text_about_several_tables_is_refused_where_it_is_not_clear_what_became_of_each(ddl, made):
    """Nothing is done then; rows with columns that are not known are refused behind it, of each table that is named."""
    tables = _known("a", "b")
    (change,) = changes(_several("mysql", 10, ddl, *made))
    with pytest.raises(DdlError):
        tables.add(change)
    assert _state(tables) == [("a", "id", False), ("b", "id", False)]
    assert [table.findings for table in tables.tables] == [[], []]


def test_rows_behind_a_refused_text_about_several_tables_are_refused_of_each():
    """With the text, if they have columns that their table has not."""
    tables = _known("a", "b")
    made = [table_change("ALTER", f'"db"."{name}"', _ID) for name in "ab"]
    (change,) = changes(_several("mysql", 10, "ALTER TABLE a FROBNICATE; TRUNCATE b", *made))
    with pytest.raises(DdlError):
        tables.add(change)
    for number, name in enumerate("ab", 20):
        source = {"connector": "mysql", "db": "db", "table": name, "file": "b.1", "pos": number}
        (row,) = changes({"source": source, "op": "c", "before": None, "after": {"id": 1, "n": 2}})
        with pytest.raises(SchemaError, match="behind a statement that is not understood: 'ALTER TABLE a FROBNICATE"):
            tables.add(row)


def test_a_statement_about_several_tables_is_one_message_in_every_format():
    """Its tables go through Avro, and its text is sent once."""
    made = [table_change("DROP", '"db"."a"'), table_change("ALTER", '"db"."z","db"."y"', _ID, key=["id"])]
    (change,) = changes(_several("mysql", 10, "DROP TABLE a; RENAME TABLE y TO z", *made))
    assert Change.from_avro(change.to_avro()) == change
    assert from_record(to_record(change)) == change
    assert [one.old_table for one in change.tables or ()] == [None, "y"]
    assert len(from_changes([change], "oms_canal")) == 1
    assert json.loads(from_changes([change], "debezium")[0])["tableChanges"] == made
