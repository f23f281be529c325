"""Tables that began: what those call them who learned of them apart from each other."""

from __future__ import annotations

import json

from cdcavro.change.model import Arrival, Change, replace
from cdcavro.lake.learning import Learner, NewTables
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
