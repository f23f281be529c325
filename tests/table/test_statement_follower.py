"""Statements that come late, twice, in another case, without a text, or not at all."""

from __future__ import annotations

import pickle
import tracemalloc
from typing import Any

import pytest

from cdcavro.change.model import Arrival, Change, Column, Source, replace
from cdcavro.errors import DdlError, SchemaError
from cdcavro.lake.learning import Learner
from cdcavro.lake.typed_rows import TypedRows
from cdcavro.table.ddl.steps import TableName
from cdcavro.table.tables import Tables
from support.calls import calls
from support.streams import CANAL, CanalFile, Stream, stated
from support.table_changes import changes, column, table_change
from support.typed import filled, read

MYSQL = Source(format="debezium", db_type="mysql", database="shop", table="t")


def after(made: Any) -> dict[str, Any]:
    """Return the row after a change as the newest version of its table reads it, under the columns' true names."""
    newest = made.table.schema
    row = read(made.payload, made.schema.envelope, newest.envelope)["after"]
    return {column.name: row[column.field] for column in newest.columns}


# Old statements


@pytest.mark.parametrize(
    "old",
    [
        "CREATE TABLE t (id INT)",
        "DROP TABLE t",
        "DROP TABLE u, t",
        "DROP DATABASE shop",
        "ALTER TABLE t ADD z INT",
        "ALTER TABLE t DROP id",
        "ALTER TABLE t RENAME TO w",
        "RENAME TABLE t TO w",
        "RENAME TABLE u TO t",
        "CREATE OR REPLACE TABLE t (x INT)",
    ],
)
def test_a_statement_that_its_position_says_is_old_changes_nothing(old):
    """Whether it was applied before or not: what it says came before what is known."""
    stream = Stream(MYSQL)
    stream.ddl("CREATE TABLE t (id INT, PRIMARY KEY (id))")
    stream.ddl("ALTER TABLE t ADD a INT")
    stream.row(None, {"id": 1, "a": 1})
    before = stream.versions
    stream.ddl(old, number=15)
    (table,) = stream.tables.tables
    assert (stream.versions, table.is_gone) == (before, False)
    assert table.findings == [f"a statement older than the last one changes nothing: '{old}'"]


def test_a_window_read_again_across_a_new_name_leaves_one_table():
    """Its statements are old, and its rows go where they went, under both names."""
    stream = Stream(MYSQL)
    window = [
        lambda at: stream.ddl("CREATE TABLE t (id INT, PRIMARY KEY (id))", number=at),
        lambda at: stream.row(None, {"id": 1}, number=at),
        lambda at: stream.ddl("ALTER TABLE t ADD a INT", number=at),
        lambda at: stream.ddl("RENAME TABLE t TO u", number=at),
        lambda at: stream.row(None, {"id": 1, "a": 2}, number=at, table="u"),
        lambda at: stream.ddl("ALTER TABLE u DROP a", table="u", number=at),
    ]
    for number, message in enumerate(window, 1):
        message(number)
    once = stream.versions
    for begin in range(len(window)):
        for number, message in enumerate(window[begin:], begin + 1):
            message(number)
    assert stream.versions == once == ["t: id | t: id a | u: id a | u: id"]
    assert stream.tables.tables[0].findings == []
    places = {number: {tuple(found)} for number, found in stream.found.items() if found}
    assert set().union(*places.values()) == {((0, 1),), ((0, 3),)}


def test_a_snapshot_read_again_changes_nothing():
    """Its statements come before all else in order, and are judged by their position all the same."""
    stream = Stream(MYSQL)
    texts = ["DROP TABLE IF EXISTS t", "CREATE TABLE t (id INT)"]

    def snapshot() -> None:
        for text in texts:
            kind = {"DROP": "ERASE", "CREATE": "CREATE"}[text.split()[0]]
            stream.tables.add(Change(op=kind, source=MYSQL, ddl=text, position=(5,), snapshot=True))

    snapshot()
    stream.row(None, {"id": 1}, number=5, op="SNAPSHOT")
    stream.ddl("ALTER TABLE t ADD a INT")
    snapshot()
    assert stream.versions == ["t: id | t: id a"]


def test_canals_statements_repeated_in_sequence_change_nothing_and_new_ones_that_read_the_same_do():
    """A batch that is delivered again has another number, and its statements the times that they had."""
    tables = Tables()

    def say(batch: int, second: int, text: str, offset: int) -> None:
        place = Arrival(topic="x", partition=0, offset=offset)
        change = Change(op="ALTER", source=CANAL, ddl=text, position=(second * 1000, batch), place=place)
        tables.add(replace(change, event_time=second * 1_000_000))

    texts = ["CREATE TABLE t (id INT)", "RENAME TABLE t TO u", "CREATE TABLE t (id INT, a INT)", "ALTER TABLE t DROP a"]
    for offset, text in enumerate(texts):
        say(1, offset // 3, text, offset)
    for offset, text in enumerate(texts, 10):
        say(2, (offset - 10) // 3, text, offset)
    assert [len(one.versions) for one in tables.tables] == [2, 2]
    say(3, 5, "DROP TABLE t", 20)
    say(3, 5, texts[2], 21)
    assert [one.is_gone for one in tables.tables] == [False, True, False]


def test_rows_of_canal_delivered_again_behind_a_new_name_keep_their_table():
    """They arrive when no table bears the name, and were made when one did."""
    tables = Tables()

    def add(second: int, offset: int, **facts: Any) -> Any:
        place = Arrival(topic="x", partition=0, offset=offset)
        change = Change(source=CANAL, position=(second * 1000, offset), event_time=second, place=place, **facts)
        return tables.add(change)

    row = {"op": "INSERT", "columns": stated("id int"), "after": {"id": 1}}
    first = add(1, 0, **row)
    add(2, 1, op="RENAME", ddl="RENAME TABLE t TO u")
    assert add(1, 2, **row)[0].table is first[0].table
    assert add(3, 3, **row)[0].table is not first[0].table
    assert len(tables.tables) == 2


AB, AC = "id int, a int", "id int, c int"
CREATE = "CREATE TABLE t (id INT, a INT, PRIMARY KEY (id))"
# Messages in seconds of their own: a statement, or a row's columns and table.
REPLAYED = {
    "renamed and created again": [CREATE, (AB, "t"), "RENAME TABLE t TO u", CREATE, (AB, "t"), (AB, "u")],
    "renamed and created with other columns": [
        CREATE,
        (AB, "t"),
        "RENAME TABLE t TO u",
        "CREATE TABLE t (id INT, c INT)",
        (AC, "t"),
    ],
    "not seen created": [(AB, "t"), "RENAME TABLE t TO u", (AB, "t"), (AB, "u")],
    "dropped and created": [CREATE, (AB, "t"), "DROP TABLE t", CREATE, (AB, "t"), "ALTER TABLE t ADD c INT"],
    "dropped and created with other columns": [
        CREATE,
        (AB, "t"),
        "DROP TABLE t",
        "CREATE TABLE t (c INT)",
        ("c int", "t"),
    ],
    "replaced": [CREATE, (AB, "t"), CREATE.replace("CREATE", "CREATE OR REPLACE"), (AB, "t")],
    "its database dropped": [CREATE, (AB, "t"), "DROP DATABASE shop", CREATE, (AB, "t")],
    "names swapped": [
        CREATE,
        "CREATE TABLE u (id INT, c INT)",
        (AB, "t"),
        (AC, "u"),
        "RENAME TABLE t TO w, u TO t, w TO u",
        (AC, "t"),
        (AB, "u"),
    ],
    "a column dropped and added": [
        CREATE,
        (AB, "t"),
        "ALTER TABLE t DROP a",
        ("id int", "t"),
        "ALTER TABLE t ADD a INT DEFAULT 9",
        (AB, "t"),
    ],
}


@pytest.mark.parametrize("renumbered", [False, True])
@pytest.mark.parametrize("messages", REPLAYED.values(), ids=REPLAYED)
def test_a_file_of_canal_that_is_repeated_from_any_message_on_changes_nothing(messages, renumbered):
    """A row goes to the table and the version of its second, though others have their names and columns now."""
    for begin in range(len(messages)):
        stream = CanalFile()
        for second, message in enumerate(messages, 1):
            if isinstance(message, str):
                stream.ddl(message, number=second)
            else:
                stream.row(message[0], table=message[1], number=second)
        once = stream.versions, [one.is_gone for one in stream.tables.tables]
        count = len(messages)
        stream.again(begin=begin, renumbered=renumbered)
        assert (stream.versions, [one.is_gone for one in stream.tables.tables]) == once
        assert [stream.found[count + i - begin] for i in range(begin, count)] == [
            stream.found[i] for i in range(begin, count)
        ]
        assert [one.findings for one in stream.tables.tables] == [[]] * len(stream.tables.tables)
        learned = Tables()
        for change in stream.changes:
            learned.learn(change)
        for number, change in enumerate(stream.changes):
            found = [(table.number, schema.version) for table, schema in learned.find(change)]
            assert found == stream.found[number]


def test_a_row_of_canal_that_waited_while_a_tool_swapped_its_table_stays_with_the_name():
    """The tool holds the table locked, so rows that began before the statement come behind it; the finding says so."""
    stream = CanalFile()
    for name in ("t", "_t_gho"):
        stream.ddl(f"CREATE TABLE {name} (id INT)", number=1)
    stream.ddl("RENAME TABLE t TO _t_del, _t_gho TO t", number=5)
    made = stream.row("id int", number=4)
    assert (made.table.number, made.table.findings) == (
        1,
        ["rows that began before it was renamed to 't' came behind that: taken for its own"],
    )
    stream.ddl("ALTER TABLE _t_del ADD a INT", number=6)
    assert stream.row("id int, a int", number=4).table.number == 0


def test_a_row_of_canal_that_began_before_a_statement_and_has_its_columns_only_belongs_behind_it():
    """It waited for a lock on the whole table, which the statement got first."""
    stream = CanalFile()
    stream.ddl("CREATE TABLE t (id INT)", number=1)
    stream.ddl("DROP TABLE t", number=5)
    stream.ddl("CREATE TABLE t (id INT, a INT)", number=5)
    assert stream.row("id int, a int", number=4).table.number == 1
    assert stream.row("id int", number=5).table.number == 0
    stream.ddl("ALTER TABLE t ADD c INT", number=7)
    with pytest.raises(SchemaError, match="column 'b' is not as in version 1"):
        stream.row("id int, a int, b int", number=6)


# Statements behind their rows


@pytest.mark.parametrize("number", [25, None], ids=["late by its position", "late by its arrival"])
def test_a_rename_behind_rows_that_have_the_new_name_is_an_alias(number):
    """Written rows of the old name are read under the new one."""
    stream = Stream()
    first = stream.row("id int, a int")
    stream.row("id bigint", number=15)
    second = stream.row("id bigint, b bigint", {"id": "1", "b": "7"}, number=30)
    assert stream.versions == ["t: id a | t: id | t: id b"]
    assert after(first) == {"id": 1, "b": None}
    stream.ddl("ALTER TABLE t RENAME COLUMN a TO b", number=number)
    assert after(first) == {"id": 1, "b": 1}
    assert after(second) == {"id": 1, "b": 7}
    assert stream.tables.tables[0].steps[-1] == ("column 'a' was renamed to 'b'",)
    assert stream.row("id bigint, b bigint", number=40).schema.version == 4


def test_names_that_a_column_had_are_in_their_order_whenever_its_renames_come():
    """The oldest first, also if the last one comes behind rows of its name."""
    stream = Stream()
    stream.row("id int, a int", number=10)
    stream.ddl("ALTER TABLE t RENAME COLUMN a TO b", number=20)
    stream.row("id int, b int", number=25)
    stream.row("id int, c int", number=90)
    stream.ddl("ALTER TABLE t RENAME COLUMN b TO c", number=30)
    fields = {field["name"]: field for field in stream.tables.tables[0].schema.record["fields"]}
    assert fields["c"]["aliases"] == ["a", "b"]


def test_renames_behind_rows_are_followed_from_one_to_the_next():
    """The name in between was in no row."""
    stream = Stream()
    first = stream.row("id int, a int", number=10)
    stream.row("id int, c int", number=90)
    stream.ddl("ALTER TABLE t RENAME COLUMN a TO b", number=30)
    stream.ddl("ALTER TABLE t CHANGE b c INT DEFAULT 3", number=40)
    assert after(first) == {"id": 1, "c": 1}
    assert stream.tables.tables[0].steps[-1] == (
        "column 'a' was renamed to 'c'",
        "column 'c' has the default '3'",
    )


@pytest.mark.parametrize("text", ["ALTER TABLE t RENAME COLUMN a TO b", "ALTER TABLE t CHANGE a b VARCHAR(9)"])
@pytest.mark.parametrize("source", [MYSQL, replace(CANAL, format="oms_default")])
def test_a_rename_behind_rows_that_state_no_columns_leaves_both_and_says_so(source, text):
    """The version of these rows has both names, so an alias would hide what they have under the new one."""
    stream = Stream(source)
    first = stream.row(None, {"id": "1", "a": "5"}, number=10)
    second = stream.row(None, {"id": "2", "b": "6"}, number=30)
    stream.ddl(text, number=20)
    (table,) = stream.tables.tables
    assert table.findings == ["column 'a' was renamed to 'b' behind rows of both: both stay"]
    assert [after(one) for one in (first, second)] == [
        {"id": "1", "a": "5", "b": None},
        {"id": "2", "a": None, "b": "6"},
    ]
    with pytest.raises(SchemaError, match="there is a column 'b' already"):
        stream.ddl(text, number=50)


def test_a_rename_behind_rows_whose_type_does_not_read_the_old_one_is_no_alias():
    """Old values would be misread; they stay readable in their own version."""
    stream = Stream()
    first = stream.row("id int, a int")
    stream.row("id int, b date", {"id": "1", "b": "2024-01-01"})
    stream.ddl("ALTER TABLE t CHANGE a b DATE", number=15)
    assert after(first) == {"id": 1, "b": None}


def test_a_dropped_column_is_not_taken_for_the_one_that_came():
    """The statement says so, and the one behind it that the new one is new."""
    stream = Stream()
    first = stream.row("id int, a int")
    stream.row("id int, b int")
    stream.ddl("ALTER TABLE t DROP a", number=12)
    stream.ddl("ALTER TABLE t ADD b INT NOT NULL DEFAULT 5", number=13)
    stream.ddl("ALTER TABLE t RENAME COLUMN a TO b", number=14)
    assert after(first) == {"id": 1, "b": 5}


@pytest.mark.parametrize("number", [15, None])
def test_an_added_column_behind_rows_that_have_it_gives_older_rows_its_default(number):
    """Rows that have it keep their values, null too."""
    stream = Stream()
    first = stream.row("id int")
    second = stream.row("id int, n int", {"id": "1", "n": None})
    stream.ddl("ALTER TABLE t ADD n INT DEFAULT 7", number=number)
    assert [after(one) for one in (first, second)] == [{"id": 1, "n": 7}, {"id": 1, "n": None}]
    assert stream.row("id int, n int").schema.version == 3


@pytest.mark.parametrize(
    ("declared", "present", "older"),
    [
        ("decimal(10,2) NOT NULL DEFAULT 0.50", "decimal(12,2)", "0.50"),
        ("decimal(10,2) NOT NULL DEFAULT 0.50", "decimal(12,4)", None),
        ("decimal(10,4) DEFAULT 0.5000", "decimal(10,2)", None),
        ("int DEFAULT 5", "int", "5"),
        ("int DEFAULT 5", "bigint", "5"),
        ("int DEFAULT 5", "double", "5"),
        ("bigint DEFAULT 5", "int", None),
        ("int DEFAULT 5", "decimal(10,2)", None),
        ("int DEFAULT 5", "varchar(9)", None),
        ("date DEFAULT '2024-01-01'", "int", None),
        ("time DEFAULT '01:00:00'", "bigint", None),
        ("datetime DEFAULT '2024-01-01 00:00:00'", "timestamp", None),
        ("varchar(9) DEFAULT 'a'", "blob", "b'a'"),
    ],
)
def test_a_default_added_behind_rows_is_older_rows_value_only_if_the_columns_type_reads_it(declared, present, older):
    """Otherwise another statement has changed the type since, and what older rows have is not known."""
    stream = Stream()
    first = stream.row("id int")
    stream.row(f"id int, n {present}", {"id": "1", "n": None})
    stream.ddl(f"ALTER TABLE t ADD n {declared}", number=15)
    (table,) = stream.tables.tables
    field = table.schema.columns[1]
    assert field.type == present
    value = filled(after(first)["n"], field.avro)
    assert (None if value is None else str(value)) == older
    text = declared.partition("DEFAULT ")[2]
    unknown, known = f"what 'n' is in older rows is not known: {text}", f"column 'n' was added: {text} in older rows"
    assert table.steps[-1] == (unknown if older is None else known,)


def test_a_statement_behind_rows_that_did_what_it_does_in_part_is_refused():
    """The columns are not those that it leads to, and nothing says that it is late."""
    stream = Stream()
    stream.row("id int")
    stream.row("id int, n int")
    before = stream.versions
    with pytest.raises(SchemaError, match="there is no column 'nothing'"):
        stream.ddl("ALTER TABLE t ADD n INT, DROP nothing")
    assert stream.versions == before
    with pytest.raises(SchemaError, match="there is no column 'x'"):
        stream.ddl("ALTER TABLE t MODIFY x INT")


@pytest.mark.parametrize(
    "actions",
    [
        "MODIFY c BIGINT, ADD PRIMARY KEY (nosuch)",
        "MODIFY c BIGINT AFTER nosuch",
        "MODIFY c BIGINT, DROP COLUMN nosuch",
        "MODIFY c INT, ADD PRIMARY KEY (nosuch)",
        "ADD n INT, ADD PRIMARY KEY (nosuch)",
        "ADD n INT, ALTER nosuch SET DEFAULT 5",
    ],
)
def test_a_statement_that_contradicts_the_table_in_part_changes_nothing_and_is_refused(actions):
    """A column that is there does not say that the statement was carried out."""
    stream = Stream()
    stream.ddl("CREATE TABLE t (id INT, c INT)")
    stream.row("id int, c int")
    stream.row("id int, c int, n int")
    before = stream.versions
    with pytest.raises(SchemaError, match=r"'nosuch'|'n' already"):
        stream.ddl(f"ALTER TABLE t {actions}")
    assert stream.versions == before


def test_a_column_that_came_with_rows_is_added_by_one_statement():
    """The next that adds it contradicts the table."""
    stream = Stream()
    stream.row("id int")
    stream.row("id int, n int")
    stream.ddl("ALTER TABLE t ADD n INT DEFAULT 5")
    with pytest.raises(SchemaError, match="there is a column 'n' already"):
        stream.ddl("ALTER TABLE t ADD n INT DEFAULT 7")


def test_a_statement_whose_types_rows_have_brought_already_changes_nothing():
    """The rest of it is about a column that went."""
    stream = Stream()
    stream.row("id int, c int, x int")
    stream.row("id int, c bigint(20)")
    before = stream.versions
    stream.ddl("ALTER TABLE t MODIFY c BIGINT, DROP x")
    stream.ddl("ALTER TABLE t MODIFY c BIGINT AFTER x")
    assert stream.versions == before


def test_a_statement_beyond_the_versions_that_a_table_may_have_is_refused(monkeypatch):
    """It is no statement that came late."""
    monkeypatch.setattr("cdcavro.table.history.MAX_VERSIONS", 2)
    stream = Stream()
    stream.ddl("CREATE TABLE t (id INT, c BIGINT)")
    stream.ddl("ALTER TABLE t ALTER c SET DEFAULT 1")
    with pytest.raises(SchemaError, match="more than 2 versions"):
        stream.ddl("ALTER TABLE t MODIFY c BIGINT")


def test_a_statement_that_creates_a_table_behind_rows_of_more_columns_drops_nothing():
    """Types, key and defaults are taken from it, and the ALTER behind it says the rest."""
    stream = Stream(MYSQL)
    first = stream.row(None, {"id": 1, "a": 2, "b": "x"}, number=50)
    stream.ddl("CREATE TABLE t (id INT, a BIGINT DEFAULT 3, PRIMARY KEY (id))", number=10)
    stream.ddl("ALTER TABLE t ADD b VARCHAR(5)", number=20)
    (table,) = stream.tables.tables
    assert (table.is_gone, table.schema.key_names) == (False, ("id",))
    made = stream.row(None, {"id": 1, "a": 2, "b": "x"}, number=60)
    assert made.table is first.table
    assert [(one.name, one.avro, one.type) for one in made.schema.columns] == [
        ("id", "int", "INT"),
        ("a", "long", "BIGINT"),
        ("b", "string", "VARCHAR(5)"),
    ]
    assert after(made) == {"id": 1, "a": 2, "b": "x"}


def test_a_table_renamed_behind_rows_of_its_new_name_is_gone_and_says_where_it_went():
    """What was written of the two cannot become one; the one with the name keeps it."""
    stream = Stream(MYSQL)
    stream.row(None, {"id": 1}, number=10)
    stream.row(None, {"id": 1}, table="u", number=30)
    stream.ddl("RENAME TABLE t TO u", number=20)
    one, other = stream.tables.tables
    assert (one.is_gone, other.is_gone) == (True, False)
    assert one.findings == ["was renamed to 'u', whose rows came before that statement"]
    assert stream.row(None, {"id": 2}, table="u").table is other


@pytest.mark.parametrize("created", ["id INT, a INT", "id INT, old INT", "id INT, a INT, gone INT"])
def test_canals_create_table_that_began_before_rows_of_the_table_drops_nothing(created):
    """It arrives behind them in the same file, and `es` says that it is older; so the table's key and defaults are taken."""
    stream = CanalFile()
    first = stream.row("id int, a int", number=2)
    second = stream.row("id int, a int, n int", number=4)
    stream.ddl(f"CREATE TABLE t ({created}, PRIMARY KEY (id))", number=1)
    stream.ddl("ALTER TABLE t ADD n INT DEFAULT 3", number=3)
    third = stream.row("id int, a int, n int", number=5)
    (table,) = stream.tables.tables
    assert (table.is_gone, table.schema.key_names) == (False, ("id",))
    assert [after(one) for one in (first, second, third)] == [
        {"id": 1, "a": 1, "n": 3},
        {"id": 1, "a": 1, "n": 1},
        {"id": 1, "a": 1, "n": 1},
    ]


@pytest.mark.parametrize("text", ["RENAME TABLE t TO u", "ALTER TABLE t RENAME TO u"])
def test_canals_rename_that_began_before_rows_of_the_new_name_leaves_their_table_alive(text):
    """It arrives behind them in the same file; the old table is gone and says where it went."""
    stream = CanalFile()
    stream.row("id int", number=1)
    stream.row("id int", table="u", number=3)
    second = stream.row("id int", table="u", number=4)
    stream.ddl(text, number=2)
    one, other = stream.tables.tables
    assert (one.is_gone, other.is_gone) == (True, False)
    assert one.findings == ["was renamed to 'u', whose rows came before that statement"]
    assert stream.row("id int", table="u", number=5).table is second.table is other


@pytest.mark.parametrize(
    ("text", "why"),
    [("CREATE TABLE t (x INT)", "a table of its name was created"), ("RENAME TABLE u TO t", "'u' was renamed to 't'")],
)
def test_a_table_that_must_have_been_dropped_says_so(text, why):
    """Another has its name, and nothing dropped it before."""
    stream = CanalFile()
    stream.row("id int", table="u", number=1)
    first = stream.row("id int", number=2)
    stream.ddl(text, number=2)
    assert first.table.is_gone
    assert first.table.findings == [f"is taken for dropped without a statement that says so: {why}"]


def test_a_table_known_from_rows_is_not_said_to_be_created_again():
    """Its first statement comes behind its rows: it creates the only table that a statement created."""
    stream = CanalFile()
    first = stream.row("id int", number=1)
    stream.ddl("CREATE TABLE t (x INT)", number=2)
    (finding,) = first.table.findings
    assert (first.table.is_gone, first.table.is_from_birth, "again" in finding) == (True, False, False)


# Statements that fail


def test_a_statement_that_fails_makes_no_other_one_old():
    """Those between the last that was applied and the one that failed are new."""
    stream = Stream(MYSQL)
    stream.ddl("CREATE TABLE t (id INT)", number=1)
    with pytest.raises(SchemaError):
        stream.ddl("ALTER TABLE t DROP nosuch", number=100)
    stream.ddl("ALTER TABLE t ADD a INT", number=50)
    assert stream.versions == ["t: id | t: id a"]
    stream.ddl("DROP TABLE t", number=60)
    assert [(table.is_gone, table.findings) for table in stream.tables.tables] == [(True, [])]


@pytest.mark.parametrize(
    ("last", "first"), [("ALTER TABLE t ADD a INT", "ALTER TABLE t ADD b INT"), ("", "RENAME TABLE t TO v")]
)
def test_a_statement_that_fails_leaves_no_finding(last, first):
    """What its first part found out is undone with the rest."""
    stream = Stream(MYSQL)
    stream.ddl("CREATE TABLE t (id INT)", number=1)
    stream.ddl("CREATE TABLE u (id INT)", number=2, table="u")
    stream.row(None, {"id": 1}, number=20)
    stream.row(None, {"id": 1}, number=21, table="v")
    stream.ddl(last or "ANALYZE TABLE t", number=20)
    with pytest.raises(SchemaError):
        stream.ddl(f"{first}; ALTER TABLE u DROP nosuch", number=10)
    assert [table.findings for table in stream.tables.tables] == [[], [], []]


def test_a_swap_repeated_after_it_failed_keeps_one_history():
    """The table that made way is the one that takes its name again, as often as it takes."""
    stream = Stream(MYSQL)
    stream.ddl("CREATE TABLE t (id INT, PRIMARY KEY (id))", number=1)
    stream.row(None, {"id": 1}, number=2)
    stream.ddl("RENAME TABLE t TO _t_del", number=7)
    for _ in range(2):
        with pytest.raises(SchemaError):
            stream.ddl("RENAME TABLE _t_gho TO t; ALTER TABLE t ADD a INT, DROP nosuch", number=7, table="_t_gho")
        with pytest.raises(SchemaError):
            stream.ddl(
                "RENAME TABLE _t_gho TO t; ALTER TABLE t ADD a INT; ALTER TABLE t DROP nosuch",
                number=7,
                table="_t_gho",
            )
    stream.ddl("RENAME TABLE _t_gho TO t", number=7, table="_t_gho")
    assert stream.versions == ["t: id"]
    made = stream.row("id int, a int", number=8)
    assert (made.table.number, stream.versions) == (0, ["t: id | t: id a"])


def test_a_statement_that_fails_leaves_a_name_that_rows_have_spelled():
    """Rows of another case are of another table, as before."""
    stream = Stream()
    stream.ddl("CREATE TABLE T (id INT)", table="T")
    stream.row("id int", table="T")
    for failing in (
        "RENAME TABLE T TO u; ALTER TABLE u DROP nosuch",
        "DROP TABLE T; CREATE TABLE v (id INT); ALTER TABLE v DROP nosuch",
    ):
        with pytest.raises(SchemaError):
            stream.ddl(failing, table="T")
    stream.row("id int", table="t")
    assert stream.versions == ["T: id", "t: id"]


def test_a_statement_that_fails_takes_no_room():
    """However often a message with it comes."""
    stream = Stream()
    stream.ddl("CREATE TABLE t (id INT)")
    left = stream.tables.tables[0].room.left
    for _ in range(3):
        with pytest.raises(SchemaError):
            stream.ddl("CREATE TABLE u (id INT); ALTER TABLE t ADD y INT; ALTER TABLE t DROP nosuch")
    assert stream.tables.tables[0].room.left == left > 0


# Names in another case


@pytest.mark.parametrize("table", ["t", "T", None])
def test_a_statement_finds_a_table_whose_name_differs_in_case_only(table):
    """With `lower_case_table_names=1` a statement is logged as it was typed, and rows have small letters."""
    stream = Stream()
    stream.row("id int")
    stream.ddl("ALTER TABLE Shop.T ADD a INT", table=table)
    stream.ddl("ALTER TABLE T RENAME TO U", table=table)
    assert stream.row("id int, a int", table="u").table.number == 0
    stream.ddl("DROP TABLE SHOP.U", table=table)
    assert [one.is_gone for one in stream.tables.tables] == [True]


def test_rows_find_the_table_that_a_statement_has_named_in_another_case():
    """It bears the rows' name then, which is the server's own."""
    stream = Stream()
    stream.ddl("CREATE TABLE Orders (id INT PRIMARY KEY)", table="Orders")
    made = stream.row("id int", table="orders")
    assert (made.table.number, made.schema.key_names, made.table.schema.table.table) == (0, ("id",), "orders")
    stream.ddl("CREATE TABLE IF NOT EXISTS ORDERS (id INT PRIMARY KEY)", table="ORDERS")
    stream.ddl("CREATE TABLE ORDERS (id INT PRIMARY KEY)", table="ORDERS", number=11)
    assert len(stream.tables.tables) == 1


@pytest.mark.parametrize("statement", ["ALTER TABLE T ADD a INT", "DROP TABLE T", "RENAME TABLE T TO u"])
def test_a_table_created_in_another_case_than_rows_spell_is_another(statement):
    """A server to which case means nothing would have refused it."""
    stream = Stream()
    stream.ddl("CREATE TABLE t (id INT)")
    stream.row("id int")
    stream.ddl("CREATE TABLE T (id INT)", table="T")
    stream.ddl(statement, table="T")
    small, capital = stream.tables.tables
    assert (len(small.versions), small.is_gone, small.schema.table.table) == (1, False, "t")
    assert len(capital.versions) == 2 or capital.is_gone
    assert stream.row("id int").table is small


@pytest.mark.parametrize(
    ("databases", "dropped"), [(["shop"], [0]), (["SHOP"], [0]), (["Shop"], [0]), (["Shop", "shoP"], [])]
)
def test_a_database_is_dropped_whose_name_differs_in_case_only(databases, dropped):
    """Unless there are two such, which both have another spelling."""
    stream = Stream()
    for database in databases:
        stream.source = replace(CANAL, database=database)
        stream.row("id int")
    stream.source = replace(CANAL, database="other")
    stream.row("id int")
    stream.ddl("DROP DATABASE SHOP", table=None)
    assert [table.number for table in stream.tables.tables if table.is_gone] == dropped


def test_case_of_databases_matters_where_the_database_says_so():
    """Outside MySQL's family, and where both spellings are known."""
    source = replace(CANAL, db_type="postgresql", format="oms_default")
    stream = Stream(source)
    stream.row(None, {"id": 1})
    stream.ddl('DROP DATABASE "SHOP"', table=None)
    both = Stream()
    both.row("id int")
    both.source = replace(CANAL, database="SHOP")
    both.row("id int")
    both.ddl("DROP DATABASE shop", table=None)
    assert [[table.is_gone for table in one.tables.tables] for one in (stream, both)] == [[False], [True, False]]


def test_tables_whose_names_differ_in_case_only_are_two_where_both_are_known():
    """Each statement is about the one that it spells, or that its message names; one that spells neither, about none."""
    stream = Stream()
    stream.row("id int")
    stream.row("id int", table="T")
    stream.ddl("ALTER TABLE T ADD a INT", table="T")
    stream.ddl("ALTER TABLE T ADD b INT", table="t")
    assert stream.versions == ["t: id | t: id b", "T: id | T: id a"]
    wide = Stream()
    for name in ("tab", "Tab"):
        wide.row("id int", table=name)
    wide.ddl("ALTER TABLE TAB ADD a INT", table=None)
    assert wide.versions == ["tab: id", "Tab: id"]


def test_case_matters_where_the_database_says_so():
    """Outside MySQL's family a quoted name is the table's own."""
    stream = Stream(replace(CANAL, db_type="postgresql", format="oms_default"))
    stream.row(None, {"id": 1})
    stream.ddl('ALTER TABLE "T" ADD a INT', table=None)
    stream.row(None, {"id": 1}, table="T")
    assert stream.versions == ["t: id", "T: id"]


# Tools that swap tables


SWAPS = [
    ["RENAME TABLE shop.t TO shop._t_del, shop._t_gho TO shop.t"],
    ["RENAME TABLE t TO _t_old, _t_new TO t", "DROP TABLE IF EXISTS _t_old"],
    ["RENAME TABLE t TO _t_del", "RENAME TABLE _t_gho TO t"],
]


@pytest.mark.parametrize("statements", SWAPS)
@pytest.mark.parametrize("source", [CANAL, MYSQL])
def test_a_table_that_a_tool_swaps_for_a_copy_that_is_not_known_keeps_its_history(statements, source):
    """The copy has the rows and columns of the table; Debezium sends the parts of one statement one by one."""
    stream = Stream(source)
    stream.ddl("CREATE TABLE t (id INT, PRIMARY KEY (id))")
    first = stream.row("id int")
    for text in statements:
        stream.ddl(text, number=70 if text.startswith("RENAME") else None, table=None)
    second = stream.row("id int, a int", number=80)
    assert first.table is second.table
    assert stream.versions == ["t: id | t: id a"]
    assert not second.table.is_gone
    name = "_t_new" if "_t_new" in statements[0] else "_t_gho"
    assert second.table.findings == [f"'{name}', which is not known, was renamed to 't': taken for this table"]


def test_a_table_that_made_way_long_before_is_not_the_one_that_takes_its_name():
    """Nothing says that the two are one; nor where rows came under the name that it was given."""
    stream = Stream()
    first = stream.row("id int")
    stream.ddl("RENAME TABLE t TO t_old")
    stream.ddl("RENAME TABLE t_new TO t")
    assert stream.row("id int").table is not first.table
    other = Stream()
    first = other.row("id int")
    other.ddl("RENAME TABLE t TO t_old", number=50)
    assert other.row("id int", table="t_old", number=60).table is first.table
    other.ddl("RENAME TABLE t_new TO t", number=50)
    assert other.row("id int", number=70).table is not first.table


def test_a_swap_that_fails_as_a_whole_leaves_the_names_as_they_were():
    """Its last part contradicts a table."""
    stream = Stream()
    first = stream.row("id int")
    with pytest.raises(SchemaError):
        stream.ddl("RENAME TABLE t TO _t_del, _t_gho TO t; ALTER TABLE t DROP nothing")
    assert stream.versions == ["t: id"]
    assert first.table.findings == []
    assert stream.row("id int").table is first.table


def test_an_unknown_table_renamed_onto_a_known_one_is_taken_for_it():
    """Its own renaming was not sent."""
    stream = Stream()
    first = stream.row("id int")
    stream.ddl("RENAME TABLE _t_gho TO t")
    assert stream.row("id int").table is first.table
    assert first.table.findings == ["'_t_gho', which is not known, was renamed to 't': taken for this table"]


# Statements without a text


POSITIONS = {
    "sqlserver": lambda n: {"commit_lsn": f"00000025:00000d98:{n:04x}", "change_lsn": None},
    "db2": lambda n: {"commit_lsn": f"00000025:00000d98:{n:04x}", "change_lsn": None},
    "informix": lambda n: {"commit_lsn": f"{n}", "change_lsn": f"{n}"},
    "oracle": lambda n: {"scn": f"{n}", "commit_scn": f"{n}"},
}


@pytest.mark.parametrize("sql", [lambda _: None, lambda kind: f"{kind} TABLE [S].[T] (...)"], ids=["null", "text"])
@pytest.mark.parametrize("connector", POSITIONS)
def test_columns_types_and_keys_come_from_the_table_changes_of_statements_that_no_parser_reads(connector, sql):
    """SQL Server, Db2, Informix and Oracle send `"ddl": null`; the text of a dialect that is not known is not read."""
    if connector in ("oracle", "db2") and sql("") is not None:
        pytest.skip("the dialect is known")

    def source(number: int) -> dict[str, Any]:
        named = {"connector": connector, "db": "db", "schema": "S", "table": "T"}
        return {"source": named | POSITIONS[connector](number), "ts_ms": 1}

    def statement(number: int, kind: str, *columns: dict[str, Any]) -> dict[str, Any]:
        id = '"S"."T"' if connector == "db2" else '"db"."S"."T"'
        names = {"databaseName": "DB" if connector == "db2" else "db", "schemaName": "S", "ddl": sql(kind)}
        return source(number) | names | {"tableChanges": [table_change(kind, id, *columns, key=["id"])]}

    columns = [column("id", "int identity", 4, length=10, scale=0), column("name", "varchar", 12, length=9)]
    wide = [*columns, column("n", "decimal() identity", 3, length=10, scale=2)]
    row = {"before": None, "after": {"id": 7, "name": "x"}, "op": "c"}
    messages = [
        statement(10, "CREATE", *columns),
        source(20) | row,
        statement(30, "ALTER", *wide),
        source(40) | row | {"after": {"id": 8, "name": "y", "n": None}},
    ]
    sent = changes(*messages)
    assert [one.op for one in sent] == ["CREATE", "INSERT", "ALTER", "INSERT"]
    tables = Tables()
    made = [typed for change in [*sent, *sent[:3]] for typed in tables.add(change)]
    (table,) = tables.tables
    assert [(one.schema.version, after(one)["id"], one.key is not None) for one in made] == [
        (1, 7, True),
        (2, 8, True),
        (1, 7, True),
    ]
    assert [(one.name, one.type) for one in table.schema.columns] == [
        ("id", "int(10,0)"),
        ("name", "varchar(9)"),
        ("n", "decimal(10,2)"),
    ]
    assert (table.schema.key_names, table.is_gone) == (("id",), False)
    assert connector == "oracle" or table.schema.columns[0].avro == "int"
    for change in changes(statement(50, "DROP")):
        tables.add(change)
    assert table.is_gone


@pytest.mark.parametrize("connector", POSITIONS)
def test_statements_without_a_text_that_come_before_all_rows_make_a_version_each(connector):
    """As those with a text do; rows whose embedded schema states Connect's types find the version of theirs."""

    def source(number: int) -> dict[str, Any]:
        return {
            "source": {"connector": connector, "db": "db", "schema": "S", "table": "T"} | POSITIONS[connector](number)
        }

    def statement(number: int, kind: str, *columns: dict[str, Any]) -> dict[str, Any]:
        id = '"S"."T"' if connector == "db2" else '"db"."S"."T"'
        names = {"databaseName": "DB" if connector == "db2" else "db", "schemaName": "S", "ddl": None}
        return source(number) | names | {"tableChanges": [table_change(kind, id, *columns, key=["id"])]}

    def row(number: int, **types: str) -> dict[str, Any]:
        image = {"type": "struct", "fields": [{"field": name, "type": one} for name, one in types.items()]}
        schema = {
            "type": "struct",
            "fields": [image | {"field": "before", "optional": True}, image | {"field": "after"}],
        }
        payload = source(number) | {"op": "c", "before": None, "after": dict.fromkeys(types, number)}
        return {"schema": schema, "payload": payload}

    # Oracle has no integers of a size: its INTEGER is a NUMBER.
    small, large = ("int", "bigint") if connector != "oracle" else ("binary_float", "binary_double")
    narrow, wide = ("int32", "int64") if connector != "oracle" else ("float", "double")
    first, second, z = column("id", small, 4), column("id", large, 4), column("z", small, 4)
    statements = changes(
        statement(10, "CREATE", first), statement(30, "ALTER", first, z), statement(50, "ALTER", second, z)
    )
    rows = changes(row(20, id=narrow), row(40, id=narrow, z=narrow), row(60, id=wide, z=narrow))
    for sent in [*statements, *rows], [*(one for pair in zip(statements, rows, strict=True) for one in pair)]:
        tables = Tables()
        made = [typed for change in sent for typed in tables.add(change)]
        (table,) = tables.tables
        assert [one.schema.version for one in made] == [1, 2, 3]
        assert [column.field for column in table.schema.all_columns] == ["id", "z"]
        assert [after(one)["id"] for one in made] == [20, 40, 60]
        newest = table.schema.key
        assert [read(one.key, one.schema.key, newest)["id"] for one in made] == [20, 40, 60]


def test_ticdc_writes_mysqls_dialect_and_both_names_of_a_renamed_table():
    """Its time stamps of commits order changes."""
    named = {"connector": "TiCDC", "db": "test", "table": "t1", "file": "", "pos": 0, "row": 0}

    def statement(number: int, ddl: str, kind: str, id: str) -> dict[str, Any]:
        columns = table_change(kind, id, column("id", "INT", 4), key=["id"])
        source = named | {"commit_ts": number}
        return {"source": source, "ts_ms": 1, "databaseName": "test", "ddl": ddl, "tableChanges": [columns]}

    sent = changes(
        statement(1, "CREATE TABLE t1 (id INT, PRIMARY KEY (id))", "CREATE", '"test"."t1"'),
        {"source": named | {"commit_ts": 2}, "op": "c", "before": None, "after": {"id": 1}},
        statement(3, "RENAME TABLE test.t1 TO test.t2", "ALTER", '"test"."t2","test"."t1"'),
        {"source": named | {"commit_ts": 4, "table": "t2"}, "op": "c", "before": None, "after": {"id": 2}},
    )
    assert [one.position for one in sent] == [(1,), (2,), (3,), (4,)]
    assert [one.source.table for one in sent] == ["t1", "t1", "t2", "t2"]
    tables = Tables()
    made = [typed for change in sent for typed in tables.add(change)]
    assert [(one.table.number, after(one)["id"]) for one in made] == [(0, 1), (0, 2)]
    assert tables.tables[0].schema.table.table == "t2"


# Hostile statements


_ADDED = ";".join(f"ALTER TABLE t ADD a{i} INT" for i in range(1_000))
# Types whose schemas are long without many columns.
_LONG, _LONGER = (f"ENUM({','.join(map(repr, range(10**7, 10**7 + count)))})" for count in (2_000, 8_000))


def _refused(text: str, columns: str = f"x {_LONG}") -> None:
    stream = Stream()
    stream.ddl(f"CREATE TABLE t (c0 INT, {columns})")
    before = stream.versions
    with pytest.raises(SchemaError, match="one text makes schemas of more than 2097152 characters"):
        stream.ddl(text)
    assert stream.versions == before
    assert stream.tables._catalog.bearer(TableName("shop", None, "t")) is stream.tables.tables[0]


@pytest.mark.slow
@pytest.mark.parametrize(
    "text",
    [
        _ADDED,
        ";".join(f"ALTER TABLE t RENAME COLUMN c{i} TO c{i + 1}" for i in range(1_000)),
        "RENAME TABLE t TO t0, " + ", ".join(f"t{i} TO t{i + 1}" for i in range(500)),
        ";".join(f"CREATE TABLE t{i} LIKE t" for i in range(1_000)),
    ],
    ids=["columns", "names of columns", "names", "copies"],
)
def test_a_text_that_makes_versions_beyond_a_bound_changes_nothing(text):
    """Each version costs what its whole schema does: of many columns, 27 KB of text would take most of a minute."""
    _refused(text)


@pytest.mark.slow
def test_a_text_that_makes_versions_takes_little_room():
    """Of a table of a hundred columns it would take gigabytes."""
    columns = ", ".join(f"x{i} INT" for i in range(100))
    _refused(_ADDED, columns)
    tracemalloc.start()
    try:
        _refused(_ADDED, columns)
        assert tracemalloc.get_traced_memory()[1] < 96 << 20
    finally:
        tracemalloc.stop()


@pytest.mark.slow
def test_versions_of_several_texts_are_counted_apart():
    """A stream of many statements, each of which is small, and rows between them."""
    stream = Stream()
    stream.ddl(f"CREATE TABLE t (x {_LONGER})")
    for i in range(30):
        stream.ddl(f"ALTER TABLE t ADD d{i} INT")
        stream.row(None, {f"d{i}": 1})
    versions = stream.tables.tables[0].versions
    assert len(versions) == 31
    assert sum(len(schema.envelope.json) for schema in versions) > 2_097_152


def test_a_table_with_a_new_name_goes_on_changing_in_the_same_statement():
    """What follows the new name is done to the table as well."""
    stream = Stream()
    stream.ddl("CREATE TABLE t (a INT, b DECIMAL(9,2))")
    stream.ddl("ALTER TABLE t RENAME TO u, MODIFY a BIGINT, ADD c INT AFTER a")
    newest = stream.tables.tables[0].schema
    assert [(column.name, column.type) for column in newest.columns] == [
        ("a", "BIGINT"),
        ("c", "INT"),
        ("b", "DECIMAL(9,2)"),
    ]
    assert newest.table.table == "u"


@pytest.mark.slow
@pytest.mark.parametrize(
    "refused",
    [
        "ALTER TABLE t " + ",".join(f"ADD x{i} INT" for i in range(10)),
        "ALTER TABLE t DROP z",
        "ALTER TABLE t ADD x INT, ADD c1 INT",
        "ALTER TABLE t RENAME TO u, DROP z",
    ],
)
def test_a_statement_that_a_wide_table_refuses_costs_little_each_time_it_comes(refused):
    """Far less than one that is applied, without a version in the making, and what is known of its rows still holds."""
    stream = Stream(MYSQL)
    stream.ddl(f"CREATE TABLE t ({','.join(f'c{i} INT' for i in range(4_090))})")
    applied = calls(lambda: stream.ddl("ALTER TABLE t ADD a INT"))
    edits = stream.tables.edits

    def refuse() -> None:
        with pytest.raises(SchemaError):
            stream.ddl(refused)

    assert [5 * calls(refuse) < applied for _ in range(3)] == [True] * 3
    assert stream.tables.edits == edits


# Rows behind statements that are not understood


UNREAD = "ALTER TABLE t FROBNICATE 'a'"
NAMED = "behind a statement that is not understood: \"ALTER TABLE t FROBNICATE 'a'\""


def refused(stream: Stream, text: str = UNREAD, **facts: Any) -> None:
    """Add a statement that is not understood."""
    with pytest.raises(DdlError):
        stream.ddl(text, **facts)


def test_a_row_with_columns_that_only_a_refused_statement_can_explain_is_not_typed_by_guess():
    """It is refused by the statement's text, whether it states columns or not; rows that agree with what is known go on."""
    stream = Stream(MYSQL)
    stream.ddl("CREATE TABLE t (id INT, PRIMARY KEY (id))")
    stream.row("id int32", {"id": 1})
    refused(stream)
    stream.row("id int32", {"id": 2})
    stream.row(None, {"id": 3})
    for columns, row in [("id int32, a string", {"id": 4, "a": "x"}), (None, {"id": 4, "a": "x"})]:
        with pytest.raises(SchemaError) as error:
            stream.row(columns, row)
        assert NAMED in str(error.value)
    with pytest.raises(SchemaError, match="FROBNICATE"):
        stream.row("id string", {"id": "4"})
    assert stream.versions == ["t: id"]


def test_a_table_that_only_a_refused_statement_can_have_created_is_not_made_of_its_rows():
    """Of another table they make one; a CREATE TABLE that is understood makes it."""
    stream = Stream(MYSQL)
    refused(stream, "CREATE TABLE t FROBNICATE")
    with pytest.raises(SchemaError, match="FROBNICATE"):
        stream.row("id int32", {"id": 1})
    with pytest.raises(SchemaError, match="FROBNICATE"):
        stream.row(None, {"id": 1})
    stream.row("id int32", {"id": 1}, table="u")
    stream.ddl("CREATE TABLE t (id INT, a INT)")
    stream.row("id int32, a int32", {"id": 1, "a": 2})
    assert stream.versions == ["u: id", "t: id a"]


def test_rows_that_state_the_types_of_their_database_need_no_statement():
    """Canal's are no guess."""
    stream = Stream(CANAL)
    stream.ddl("CREATE TABLE t (id INT)")
    stream.row("id int")
    refused(stream)
    stream.row("id int, a varchar(9)")
    assert stream.versions == ["t: id | t: id a"]
    with pytest.raises(SchemaError, match="FROBNICATE"):
        stream.row(None, {"id": "1", "z": "2"})


def test_a_row_from_before_a_refused_statement_is_what_it_was():
    """By its place in the order, wherever it arrives."""
    stream = Stream(MYSQL)
    stream.row("id int32", {"id": 1}, number=10)
    refused(stream, number=50)
    stream.row("id int32, a int32", {"id": 1, "a": 2}, number=20)
    assert stream.versions == ["t: id | t: id a"]


@pytest.mark.parametrize("position", [None, (5,)])
def test_a_refused_statement_without_a_place_in_the_order_holds_for_all_rows(position):
    """Nothing says that one came before it."""
    tables = Tables()
    with pytest.raises(DdlError):
        tables.add(Change(op="ALTER", source=MYSQL, ddl=UNREAD))
    with pytest.raises(SchemaError, match="FROBNICATE"):
        tables.add(Change(op="INSERT", source=MYSQL, after={"id": 1}, position=position))


@pytest.mark.parametrize("told", ["ALTER TABLE t ADD a INT", "DROP TABLE t"])
def test_a_statement_that_says_what_the_table_is_ends_it(told):
    """With all columns, or as the table is gone; one that says a part does not."""
    stream = Stream(MYSQL)
    stream.ddl("CREATE TABLE t (id INT)")
    refused(stream)
    stream.ddl("ALTER TABLE t ADD b INT")
    with pytest.raises(SchemaError, match="FROBNICATE"):
        stream.row("id int32, b int32, a int32", {"id": 1, "b": 1, "a": 1})
    is_drop = told.startswith("DROP")
    stream.ddl(told, columns=None if is_drop else "id int, b int, a int")
    columns = "id int32, a int32" if is_drop else "id int32, b int32, a int32"
    stream.row(columns, dict.fromkeys(["id", "a"] if is_drop else ["id", "b", "a"], 1))
    stream.row(f"{columns}, z int32", dict.fromkeys(["id", "a", "z"] if is_drop else ["id", "b", "a", "z"], 1))


def test_a_refused_statement_follows_its_table_to_another_name():
    """It is the table's."""
    stream = Stream(MYSQL)
    stream.ddl("CREATE TABLE t (id INT)")
    refused(stream)
    stream.ddl("RENAME TABLE t TO u")
    with pytest.raises(SchemaError, match="FROBNICATE"):
        stream.row("id int32, a int32", {"id": 1, "a": 2}, table="u")


@pytest.mark.parametrize("size", [1, 2, 5])
def test_rows_of_a_lake_behind_a_refused_statement_are_rejects(size):
    """However the stream is cut into batches, also for a job that goes on and a task that knows what the driver knows."""
    changes = [
        Change(op="CREATE", source=MYSQL, ddl="CREATE TABLE t (id INT)"),
        Change(op="INSERT", source=MYSQL, after={"id": 1}),
        Change(op="ALTER", source=MYSQL, ddl=UNREAD),
        Change(op="INSERT", source=MYSQL, after={"id": 2, "a": 2}),
        Change(op="INSERT", source=MYSQL, after={"id": 3}),
    ]
    changes = [
        replace(one, position=(line,), place=Arrival(file="f", line=line)) for line, one in enumerate(changes, 1)
    ]
    learned, rejects, rows = [], [], 0
    for start in range(0, len(changes), size):
        maker = TypedRows(Tables())
        maker.learner.relearn(learned)
        maker = TypedRows(pickle.loads(pickle.dumps(maker.tables)))
        batch = maker.of_batch([[one] for one in changes[start : start + size]])
        learned += batch.learned
        rejects += [(change.position, str(error)) for change, error in batch.rejects]
        rows += len(batch.rows)
    assert rows == 2
    assert [place for place, _ in rejects] == [(3,), (4,)]
    assert NAMED in rejects[1][1]


def test_a_refused_statement_that_comes_again_says_nothing_new():
    """So a state does not grow by it."""
    learner = Learner(Tables())
    sent = [Change(op="ALTER", source=MYSQL, ddl=UNREAD, position=(i,)) for i in (1, 2, 3)]
    assert [len(learner.learn([one]).changes) for one in sent] == [1, 0, 0]


# Statements whose types are not those of the rows


BLOB = Source(format="datahub_blob", db_type="MySQL", database="shop", table="t")
SENT = {"DOUBLE": "1.50", "LONG": 3, "DATE": 1600000000000, "STRING": "x", "BYTES": "AAE="}
OF_STREAM_X = {
    "DOUBLE": ["FLOAT", "FLOAT(30)", "DOUBLE PRECISION", "DOUBLE UNSIGNED", "REAL", "DECIMAL(10,2)", "NUMERIC(5)"],
    "LONG": ["TINYINT", "SMALLINT UNSIGNED", "INT", "INT UNSIGNED", "BIGINT", "BIGINT(20) UNSIGNED", "SERIAL"],
    "DATE": ["DATE", "DATETIME(6)", "TIMESTAMP"],
    "STRING": ["CHAR(3)", "LONGTEXT", "ENUM('x')", "JSON"],
    "BYTES": ["BINARY(3)", "VARBINARY(9)", "LONGBLOB"],
}


def blob(place: int, ddl: str | None = None, word: str = "", names: str = "") -> Change:
    """Return a statement of DataHub, or an insert with columns of one of its types beside the key."""
    if ddl is not None:
        return Change(op=ddl.split()[0], source=BLOB, ddl=ddl, position=(place,))
    listed = (*(Column(name=name, type=word) for name in names), Column(name="id", type="LONG"))
    row = dict.fromkeys(names, SENT[word]) | {"id": place}
    return Change(op="INSERT", source=BLOB, columns=listed, key=("id",), after=row, position=(place,))


@pytest.mark.parametrize(("word", "declared"), [(word, one) for word, types in OF_STREAM_X.items() for one in types])
def test_a_column_is_stored_as_the_rows_have_it_whatever_its_statement_calls_it(word, declared):
    """DataHub's rows state one of six types: a column whose type did not change has no older one, and no other one."""
    create = f"CREATE TABLE t (f {declared}, id BIGINT PRIMARY KEY)"
    add = [f"ALTER TABLE t ADD {name} {declared} FIRST" for name in "ghi"]
    tables = Tables()
    stored = set()
    sent = [blob(1, create), blob(2, add[0]), blob(3, None, word, "gf"), blob(4, add[1]), blob(5, add[2])]
    for one in [*sent, blob(6, None, word, "ihgf"), blob(7, "DROP TABLE t"), blob(8, create), blob(9, add[0])]:
        tables.add(one)
    for table in tables.tables:
        assert not any(one.until for version in table.versions for one in version.all_columns)
        stored |= {str(one.avro) for version in table.versions for one in version.columns if one.name in "fghi"}
    assert len(stored) == 1 or word == "LONG"  # an int becomes a long
