"""Tables that began: what those call them who learned of them apart from each other; and copies that take their places."""

from __future__ import annotations

import json

import pytest

from cdcavro.change.model import Arrival, Change, replace
from cdcavro.lake.learning import Learner, NewTables, identity_of
from cdcavro.table.tables import Tables
from cdcavro.transcoding.mapping import to_changes


def canal(type: str, rows: list[dict[str, str]], *, id: int, table: str, **members: object) -> bytes:
    """Return a message of Canal's."""
    types = dict.fromkeys(rows[0], "int") if rows else None
    said = {"type": type, "database": "d", "table": table, "id": id, "es": id, "pkNames": ["id"], "mysqlType": types}
    return json.dumps({**said, "data": rows or None, "old": None, "isDdl": False, "sql": "", **members}).encode()


def said(*messages: bytes) -> list[Change]:
    """Return the changes of messages of Canal's."""
    return [change for message in messages for change in to_changes(message, "canal")]


def marks_after(known: list[Change], new: list[Change]) -> dict[str, str] | None:
    """Return the marks, by table, of those that begin with changes behind others."""
    tables = Tables()
    learner = Learner(tables)
    learner.learn(known)
    begun = NewTables(tables)
    learner.learn(new)
    marks = begun.marks
    return None if marks is None else {tables.tables[number].schema.table.table: mark for number, mark in marks.items()}


A = canal("INSERT", [{"id": "1", "a": "1"}], id=1, table="a")
B = canal("INSERT", [{"id": "1"}], id=2, table="b")


def test_the_mark_of_a_table_is_the_same_wherever_it_is_learned():
    """Whatever its number is there; and tables of other names or columns have others."""
    one, other = marks_after([], said(A, B)), marks_after([], said(B, A))
    assert one == other
    assert one is not None
    assert len({*one.values()}) == 2
    wider = marks_after([], said(canal("INSERT", [{"id": "1", "b": "1"}], id=1, table="a")))
    assert wider is not None
    assert wider["a"] != one["a"]


def test_tables_that_were_known_have_none():
    """They have numbers that everybody knows."""
    assert marks_after(said(A), said(A, B)) == marks_after([], said(B))
    assert marks_after(said(A), said(A)) == {}


def test_there_are_none_where_more_was_learned_than_new_tables():
    """A version of a table that was known, a second one of a new table, a table that is gone."""
    wider = canal("INSERT", [{"id": "1", "a": "1", "b": "1"}], id=3, table="a")
    assert marks_after(said(A), said(wider)) is None
    assert marks_after([], said(A, wider)) is None
    drop = canal("ERASE", [], id=4, table="a", isDdl=True, sql="DROP TABLE a")
    assert marks_after(said(A), said(drop)) is None
    assert marks_after([], said(A, drop)) is None


def test_a_table_that_takes_the_name_of_another_has_none():
    """To which of them a row belongs depends on when the second began."""
    drop = canal("ERASE", [], id=4, table="a", isDdl=True, sql="DROP TABLE a")
    again = canal("INSERT", [{"id": "1", "a": "1"}], id=5, table="a")
    assert marks_after(said(A, drop), said(B)) == marks_after([], said(B))
    assert marks_after(said(A, drop), said(again)) is None


def test_a_drop_that_comes_again_may_be_any_of_those_in_its_second():
    """It drops what each of them dropped, and not the table that was created since."""
    learner, dropped = Learner(Tables()), []
    texts = ["CREATE TABLE a (id int PRIMARY KEY)", "DROP TABLE a"]
    for offset, (text, second) in enumerate([(texts[0], 1), (texts[1], 1)] * 2 + [(texts[0], 9), (texts[1], 1)]):
        message = canal("ERASE", [], id=0, es=second * 1_000, table="a", isDdl=True, sql=text)
        place = Arrival(topic="t", partition=0, offset=offset)
        learned = learner.learn([replace(change, place=place) for change in said(message)])
        dropped += learned.dropped.values()
    assert dropped == [(0,), (1,), (0, 1)]
    assert [table.is_gone for table in learner.tables.tables] == [True, True, False]


# Copies of tables


def statement(id: int, sql: str) -> bytes:
    """Return a message of Canal's with a statement."""
    return canal(sql.split(" ", maxsplit=1)[0], [], id=id, table="t", isDdl=True, sql=sql)


def learned(*messages: bytes, exclude: str = "none") -> Learner:
    """Return what has learned messages in one batch; those that were learned again from what it recorded know the same."""
    made = Learner(Tables())
    batch = made.learn(said(*messages), lambda name: not name.table.startswith(exclude))
    again = Learner(Tables())
    again.relearn(batch.changes)
    assert described(again) == described(made)
    return made


def described(learner: Learner) -> list[tuple[object, ...]]:
    """Return the columns and names of all versions of each table, whether it is gone, and what was found of it."""
    return [
        ([(one.table.table, one.row.json) for one in table.versions], table.is_gone, table.findings)
        for table in learner.tables.tables
    ]


def names(learner: Learner) -> list[tuple[str, list[str], bool]]:
    """Return of each table its name, the names of its columns, and whether it is gone."""
    return [
        (table.schema.table.table, [one.name for one in table.schema.columns], table.is_gone)
        for table in learner.tables.tables
    ]


ROW = canal("INSERT", [{"id": "1", "a": "1"}], id=1, table="t")


def swap(copy: str) -> list[bytes]:
    """Return the statements with which a tool swaps a table for a copy that has another column."""
    return [
        statement(2, f"CREATE TABLE {copy} LIKE t"),
        statement(3, f"ALTER TABLE {copy} ADD COLUMN b INT DEFAULT 5"),
        canal("INSERT", [{"id": "1", "a": "1", "b": "5"}], id=4, table=copy),
        statement(5, f"RENAME TABLE t TO _t_old, {copy} TO t"),
    ]


@pytest.mark.parametrize("copy", ["_t_gho", "_t_new", "__t_new"])
def test_a_table_that_a_tool_swaps_for_its_copy_goes_on_with_the_columns_of_the_copy(copy: str):
    """By the name of the copy, whatever is wanted; what it added has its default in older rows."""
    made = learned(ROW, *swap(copy))
    assert names(made) == [("t", ["id", "a", "b"], False), (copy, ["id", "a", "b"], True)]
    table = made.tables.tables[0]
    assert table.findings == [f"'{copy}', a copy, was renamed to 't': taken for this table"]
    assert table.steps[-1] == ("column 'b' added: 5 in older rows",)


def test_a_table_that_is_left_out_and_takes_the_place_of_one_that_is_wanted_counts_as_its_copy():
    """Whatever it is called. If nothing is left out, it is another table."""
    assert names(learned(ROW, *swap("u"), exclude="u")) == [
        ("t", ["id", "a", "b"], False),
        ("u", ["id", "a", "b"], True),
    ]
    assert names(learned(ROW, *swap("u"))) == [("_t_old", ["id", "a"], False), ("t", ["id", "a", "b"], False)]


def test_a_table_that_is_left_out_and_takes_a_wanted_name_that_no_table_has_begins_anew():
    """With its columns, and without its rows: whether these came in the same batch makes no difference."""
    made = learned(*swap("u"), exclude="u")
    assert names(made) == [("u", ["id", "a", "b"], True), ("t", ["id", "a", "b"], False)]
    assert made.tables.tables[1].findings == ["was 'u', whose rows are not here: what came under that name is missing"]


def test_a_table_that_is_left_out_and_altered_to_a_wanted_name_begins_with_its_types_and_key():
    """As with RENAME TABLE, whatever else the statement does."""
    made = learned(
        statement(2, "CREATE TABLE u (id BIGINT UNSIGNED PRIMARY KEY, p DECIMAL(10,2))"),
        statement(3, "ALTER TABLE u ADD COLUMN at DATETIME(6), RENAME TO t"),
        exclude="u",
    )
    (copy, table) = made.tables.tables
    types = [("id", "BIGINT UNSIGNED"), ("p", "DECIMAL(10,2)"), ("at", "DATETIME(6)")]
    assert [(one.name, one.type) for one in table.schema.columns] == types
    assert (table.schema.table.table, table.schema.key_names, copy.is_gone) == ("t", ("id",), True)
    assert table.findings == ["was 'u', whose rows are not here: what came under that name is missing"]


@pytest.mark.parametrize("away", ["RENAME TABLE t TO _t_old", "ALTER TABLE t RENAME TO _t_old"])
@pytest.mark.parametrize("is_read", [True, False])
def test_a_copy_may_take_the_name_of_its_table_by_an_alteration(away: str, is_read: bool):
    """Within the text that takes the name from the table; and so may one that the source does not send."""
    swapped = statement(5, f"{away}; ALTER TABLE _t_new RENAME TO t, ALTER COLUMN a SET DEFAULT 3")
    made = learned(ROW, *(swap("_t_new")[:3] if is_read else []), swapped)
    table = made.tables.tables[0]
    assert [name for name in names(made) if not name[2]] == [("t", ["id", "a", *"b" * is_read], False)]
    what = "a copy" if is_read else "which is not known"
    assert table.findings == [f"'_t_new', {what}, was renamed to 't': taken for this table"]


def test_a_copy_stays_if_the_statement_that_swaps_it_is_refused():
    """Nothing of such a statement is learned; and the one that then swaps the two does so."""
    learner = Learner(Tables())
    learner.learn(said(ROW, *swap("_t_gho")[:3]))
    before = described(learner)
    wrong = "RENAME TABLE t TO _t_del, _t_gho TO t; ALTER TABLE t DROP COLUMN nope"
    batch = learner.learn(said(statement(5, wrong)))
    assert [str(error) for _, error in batch.faults] == ["schema t: there is no column 'nope'"]
    assert (batch.changes, batch.dropped, described(learner)) == ([], {}, before)
    batch = learner.learn(said(statement(6, "RENAME TABLE t TO _t_del, _t_gho TO t")))
    assert ([*batch.dropped.values()], batch.faults) == ([(1,)], [])
    assert names(learner) == [("t", ["id", "a", "b"], False), ("_t_gho", ["id", "a", "b"], True)]


CHAINS = [
    "RENAME TABLE u TO u_y, t TO _t_old, u_y TO t",
    "RENAME TABLE u TO y, t TO u, y TO t",
    "ALTER TABLE u RENAME TO u_y; RENAME TABLE t TO _t_old; ALTER TABLE u_y RENAME TO u_z; RENAME TABLE u_z TO t",
    "DROP TABLE t; RENAME TABLE u TO u_y, u_y TO t",
]


@pytest.mark.parametrize("sql", CHAINS)
def test_a_table_that_is_left_out_may_take_a_wanted_name_by_way_of_others(sql: str):
    """Within one statement, whose first and last names count: that rows are missing is said, and no other table is left."""
    made = learned(ROW, *swap("u")[:3], statement(5, sql), exclude="u")
    assert [name for name in names(made) if not name[2]] == [("t", ["id", "a", "b"], False)]
    (findings,) = [table.findings for table in made.tables.tables if not table.is_gone]
    taken = "'u', a copy, was renamed to 't': taken for this table"
    anew = "was 'u', whose rows are not here: what came under that name is missing"
    assert findings == [anew if "DROP" in sql else taken]


def test_tables_that_swap_their_names_by_way_of_another_are_no_copies():
    """If both are wanted, each goes on under its other name, whatever was left out for a time."""
    made = learned(ROW, *swap("w")[:3], statement(5, "RENAME TABLE w TO u, t TO w, u TO t"), exclude="u")
    assert names(made) == [("w", ["id", "a"], False), ("t", ["id", "a", "b"], False)]


SWAPS = [
    "RENAME TABLE T TO _T_del, _T_gho TO T",
    "ALTER TABLE T RENAME TO _T_del; ALTER TABLE _T_gho RENAME TO T",
    "DROP TABLE T; RENAME TABLE _T_gho TO T",
]


@pytest.mark.parametrize("sql", SWAPS)
def test_a_swap_may_spell_tables_in_another_case_than_their_rows(sql: str):
    """As where a server takes names in any case and keeps them in lower case: older rows keep what they had."""
    made = learned(
        ROW,
        statement(2, "CREATE TABLE _T_gho LIKE T"),
        statement(3, "ALTER TABLE _T_gho CHANGE COLUMN a z INT, ADD COLUMN b INT DEFAULT 5"),
        canal("INSERT", [{"id": "1", "z": "1", "b": "5"}], id=4, table="_t_gho"),
        canal("RENAME", [], id=5, table="T", isDdl=True, sql=sql),
        canal("INSERT", [{"id": "2", "z": "1", "b": "5"}], id=6, table="t"),
    )
    table = made.tables.tables[-1 if "DROP" in sql else 0]
    assert [name for name in names(made) if not name[2]] == [("t", ["id", "z", "b"], False)]
    if "DROP" not in sql:
        assert table.findings == ["'_t_gho', a copy, was renamed to 't': taken for this table"]
        assert table.steps[-1] == ("column 'a' renamed to 'z'", "column 'b' added: 5 in older rows")


@pytest.mark.parametrize("is_of_snapshot", [True, False])
def test_a_copy_of_a_table_that_a_snapshot_has_declared_and_of_which_no_row_has_come_is_the_table(is_of_snapshot: bool):
    """It has rows that come nowhere else. All rows of a table come that the stream itself has created."""
    (created,) = said(statement(1, "CREATE TABLE t (id INT PRIMARY KEY, a INT)"))
    learner = Learner(Tables())
    learner.learn([replace(created, snapshot=is_of_snapshot), *said(*swap("_t_gho"))])
    both = [("_t_old", ["id", "a"], False), ("t", ["id", "a", "b"], False)]
    taken = [("t", ["id", "a", "b"], False), ("_t_gho", ["id", "a", "b"], True)]
    assert names(learner) == (both if is_of_snapshot else taken)


def test_a_swap_may_come_as_two_statements_of_one_time():
    """As Debezium sends it. What comes under the older name later is another table."""
    position = (1, 5)
    first, then = (
        replace(said(statement(5, sql))[0], position=position, event_time=None)
        for sql in ("RENAME TABLE t TO _t_old", "RENAME TABLE _t_gho TO t")
    )
    learner = Learner(Tables())
    learner.learn(said(ROW, *swap("_t_gho")[:3]))
    for change in (first, then):
        learner.learn([change])
    assert names(learner) == [("t", ["id", "a", "b"], False), ("_t_gho", ["id", "a", "b"], True)]


def test_a_table_gets_the_columns_that_its_copy_had_when_it_was_swapped():
    """Those that rows of the next copy have come later, wherever they stand; a table that is like another has its of then, too."""
    wide = canal("INSERT", [{"id": "1", "a": "1", "b": "5", "c": "1"}], id=9, table="_t_gho")
    learner = Learner(Tables())
    learner.learn(said(ROW, *swap("_t_gho")[:3]))
    learner.learn(said(wide))
    learner.learn(said(*swap("_t_gho")[3:], statement(6, "CREATE TABLE u LIKE t")))
    learner.learn(said(canal("INSERT", [{"id": "1", "a": "1", "b": "5", "d": "1"}], id=9, table="t")))
    learner.learn(said(statement(7, "CREATE TABLE w LIKE t")))
    assert names(learner) == [
        ("t", ["id", "a", "b", "d"], False),
        ("_t_gho", ["id", "a", "b", "c"], True),
        *[(name, ["id", "a", "b"], False) for name in "uw"],
    ]


def test_rows_with_the_columns_of_a_copy_that_came_before_its_statement_are_explained_by_it():
    """As where each partition has another table."""
    early = canal("INSERT", [{"id": "2", "a": "1", "b": "2"}], id=9, table="t")
    tables = Tables()
    learner = Learner(tables)
    learner.learn(said(ROW))
    learner.learn(said(early))
    learner.learn(said(*swap("_t_gho")))
    table = tables.tables[0]
    assert [[one.name for one in version.columns] for version in table.versions] == [
        ["id", "a"],
        ["id", "a", "b"],
        ["id", "a", "b"],
    ]
    assert table.steps[-1] == ("column 'b' was added: 5 in older rows",)


def test_a_copy_that_is_swapped_is_dropped_where_its_statement_stands_and_again_where_that_comes_again():
    """So that the rows of the copy that come again before it go again."""
    learner, sent = Learner(Tables()), said(ROW, *swap("_t_gho"))
    first = learner.learn(sent)
    assert first.dropped == {identity_of(sent[-1]): (1,)}
    again = [replace(change, position=(*(change.position or ())[:1], 99)) for change in sent[3:]]
    assert learner.learn(again).dropped == {identity_of(again[-1]): (1,)}
    assert names(learner) == [("t", ["id", "a", "b"], False), ("_t_gho", ["id", "a", "b"], True)]


ALTERATIONS = [
    "ADD COLUMN b INT",
    "ADD COLUMN b INT NOT NULL",
    "ADD COLUMN b VARCHAR(9) DEFAULT 'it''s' FIRST",
    "ADD COLUMN b DECIMAL(9,2) DEFAULT 1.50 AFTER id, ADD COLUMN c INT DEFAULT NULL AFTER b",
    "ADD COLUMN b DATETIME DEFAULT CURRENT_TIMESTAMP",
    "ADD COLUMN b INT DEFAULT 5, ALTER COLUMN b SET DEFAULT 6",
    "ADD COLUMN b DATE NOT NULL",
    "DROP COLUMN a",
    "DROP COLUMN a, ADD COLUMN a VARCHAR(9) DEFAULT 'x'",
    "CHANGE COLUMN a b INT",
    "CHANGE COLUMN a b BIGINT",
    "CHANGE COLUMN a id2 INT, CHANGE COLUMN id a INT, ADD COLUMN id INT",
    "MODIFY COLUMN a BIGINT",
    "MODIFY COLUMN a INT DEFAULT 3",
    "ALTER COLUMN a SET DEFAULT 4, ADD COLUMN b INT DEFAULT 1",
    "ADD COLUMN b INT DEFAULT 5, ALTER COLUMN b DROP DEFAULT",
    "MODIFY COLUMN a VARCHAR(9)",
    "DROP PRIMARY KEY, ADD PRIMARY KEY (id, a)",
    "DROP PRIMARY KEY",
    "CHANGE COLUMN id key_id INT",
]


@pytest.mark.parametrize("alteration", ALTERATIONS)
@pytest.mark.parametrize("how", ["LIKE t", "(id INT NOT NULL, a INT, PRIMARY KEY (id))"])
def test_a_swap_does_to_a_table_what_the_statement_would_have_done(alteration: str, how: str):
    """Its fields, with aliases and defaults, its key and its version are those of a table that was altered in place."""
    created = statement(1, "CREATE TABLE t (id INT NOT NULL, a INT, PRIMARY KEY (id))")
    swapped = learned(
        created,
        ROW,
        statement(2, f"CREATE TABLE _t_gho {how}"),
        statement(3, f"ALTER TABLE _t_gho {alteration}"),
        statement(5, "RENAME TABLE t TO _t_del, _t_gho TO t"),
    )
    altered = learned(created, ROW, statement(5, f"ALTER TABLE t {alteration}"))
    assert swapped.tables.tables[0].schema.record == altered.tables.tables[0].schema.record


def test_of_a_copy_that_was_never_like_its_table_the_names_of_columns_count():
    """As where a pipeline begins when a tool is at work: what the copy lacks is dropped, what it has besides is added."""
    made = learned(
        ROW,
        canal("INSERT", [{"c": "1", "id": "1", "b": "5"}], id=4, table="_t_gho"),
        statement(5, "RENAME TABLE t TO _t_del, _t_gho TO t"),
    )
    assert names(made) == [("t", ["c", "id", "b"], False), ("_t_gho", ["c", "id", "b"], True)]


@pytest.mark.parametrize(
    "sql",
    [
        f"RENAME TABLE t TO u; ALTER TABLE u ADD {'x' * 300} INT",
        f"CREATE TABLE {'x' * 300} (id INT)",
        "CREATE TABLE u (id INT, id INT)",
        "ALTER TABLE t ADD b INT, DROP COLUMN nope",
    ],
)
def test_what_was_learned_of_a_statement_that_is_refused_is_learned_again(sql: str):
    """By the next process: whatever the reason is, it is none to stop."""
    learner = Learner(Tables())
    row = {
        "type": "INSERT",
        "database": "d",
        "table": "t",
        "es": 1,
        "ts": 1,
        "id": 1,
        "isDdl": False,
        "data": [{"a": "1"}],
    }
    statement = {"type": "ALTER", "database": "d", "table": "t", "es": 2, "ts": 2, "id": 2, "isDdl": True, "sql": sql}
    learned = learner.learn([change for one in (row, statement) for change in to_changes(json.dumps(one), "canal")])
    assert len(learned.faults) == 1
    again = Learner(Tables())
    again.relearn(learned.changes)
    assert again.tables.edits == learner.tables.edits
    assert [table.schema for table in again.tables.tables] == [table.schema for table in learner.tables.tables]
