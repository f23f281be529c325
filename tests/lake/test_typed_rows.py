"""Typed rows of batches of changes, and facts of them: what a summary says, and what several batches hold together."""

from __future__ import annotations

from datetime import UTC

import pytest

from cdcavro.change.model import Arrival, Change, Column, Source, replace
from cdcavro.lake import TypedRows
from cdcavro.lake.typed_rows import RowFacts, facts_of_parts, facts_of_summary
from cdcavro.table.tables import Tables
from support.shop_state import as_came
from support.shop_tables import MESSAGES, shop

SOURCE = Source(format="canal", db_type="mysql", database="d", table="t")
COLUMNS = (Column(name="id", type="int"), Column(name="a", type="int"))


def message(offset: int, *rows: Change, source: Source = SOURCE) -> list[Change]:
    """Return the changes of one message, at its place."""
    place = Arrival(topic="x", partition=0, offset=offset)
    facts = {"source": source, "place": place, "position": (offset,), "event_time": 1, "rows": len(rows)}
    return [replace(one, row=i, **facts) for i, one in enumerate(rows)]


def insert(key: int) -> Change:
    """Return the insert of a row."""
    return Change(op="INSERT", key=("id",), columns=COLUMNS, after={"id": key, "a": 1})


def move(old: int, new: int) -> Change:
    """Return an update that changes a key."""
    return Change(op="UPDATE", key=("id",), columns=COLUMNS, before={"id": old, "a": 1}, after={"id": new, "a": 1})


@pytest.mark.parametrize("producer", MESSAGES)
def test_rows_have_the_payloads_keys_and_versions_of_tables(producer: str):
    """All in one batch, statements between them: as one by one."""
    found = TypedRows(Tables(zone=UTC)).of_batch(as_came(producer))
    wanted = shop(producer)[1]
    assert [(row.payload, row.key) for row in found.rows if row.operation != "x"] == [
        (typed.payload, typed.key) for typed in wanted
    ]
    assert found.rejects == []
    dropped = [row.table for row in found.rows if row.operation == "x"]
    tables = shop(producer)[0].tables
    assert {tables[number].schema.table.table for number in dropped} == {"nopk2", "ctas"}


def test_rows_of_one_message_that_take_each_others_keys_all_stay():
    """The deletes come before the inserts, and behind the message before."""
    messages = [message(1, insert(1), insert(2)), message(2, move(1, 2), move(2, 1))]
    rows = TypedRows(Tables()).of_batch(messages).rows
    assert [row.operation for row in rows] == ["c", "c", "d", "c", "d", "c"]
    assert [row.operation for row in sorted(rows, key=lambda row: row.order)] == ["c", "c", "d", "d", "c", "c"]
    assert len({row.order for row in rows}) == 6


def test_halves_of_an_update_are_a_delete_and_an_insert():
    """Neither is a row of nulls, and a key that moved is gone."""
    first = replace(insert(1), op="UPDATE", half="BEFORE", before={"id": 1, "a": 1}, after=None)
    second = replace(insert(2), op="UPDATE", half="AFTER")
    rows = TypedRows(Tables()).of_batch([message(1, insert(1)), message(2, first), message(3, second)]).rows
    assert [row.operation for row in rows] == ["c", "d", "c"]
    assert (rows[0].key, rows[0].key == rows[2].key) == (rows[1].key, False)
    assert [row.order for row in rows] == sorted(row.order for row in rows)


def test_the_row_before_an_update_comes_before_the_row_after_it_wherever_it_arrives():
    """Sent again, alone and behind it, it has the same order, and takes nothing away."""
    source = replace(SOURCE, format="datahub_blob")
    first = replace(insert(1), op="UPDATE", half="BEFORE", before={"id": 1, "a": 1}, after=None, position=(7,))
    second = replace(insert(1), op="UPDATE", half="AFTER", position=(7,))
    messages = [
        [replace(one, source=source, place=Arrival(topic="x", partition=0, offset=offset))]
        for offset, one in enumerate([first, second, first])
    ]
    orders = [row.order for row in TypedRows(Tables()).of_batch(messages).rows]
    assert orders[0] == orders[2] < orders[1]


def test_what_contradicts_its_table_is_a_reject_and_the_others_go_on():
    """A statement that is not understood, and a row that does not fit."""
    bad = Change(op="ALTER", ddl="ALTER TABLE t ADD COLUMN (")
    broken = Change(op="INSERT", key=("id",), columns=COLUMNS, after={"id": {"x": 1}, "a": 1})
    messages = [message(1, insert(1)), message(2, bad), message(3, broken), message(4, insert(2))]
    found = TypedRows(Tables(on_misfit="reject")).of_batch(messages)
    assert [(one.op, type(error).__name__) for one, error in found.rejects] == [
        ("ALTER", "DdlError"),
        ("INSERT", "MisfitError"),
    ]
    assert (len(found.rows), found.statements) == (2, 1)


def test_columns_that_a_row_does_not_have_are_named():
    """They are absent, which is not null."""
    source = replace(SOURCE, format="debezium")
    partial = Change(op="UPDATE", key=("id",), columns=COLUMNS, after={"id": 1}, unavailable=("a",))
    rows = TypedRows(Tables()).of_batch([message(1, insert(1), source=source), message(2, partial, source=source)]).rows
    assert [row.absent for row in rows] == [(), ("a",)]


def test_a_full_load_is_learned_where_its_source_says_that_it_was_read():
    """Its rows state no columns, and the statement that created the table was made before them."""
    source = replace(SOURCE, format="debezium")
    create = Change(op="CREATE", ddl="CREATE TABLE t (id INT PRIMARY KEY, a INT)")
    load = Change(op="SNAPSHOT", key=("id",), after={"id": 1, "a": 2})
    maker = TypedRows(Tables())
    found = maker.of_batch([message(9, load, source=source), message(5, create, source=source)])
    assert (len(found.rows), found.rejects) == (1, [])
    assert [str(column.avro) for column in maker.tables.tables[0].schema.columns] == ["int", "int"]


def test_statements_of_a_batch_are_learned_before_its_rows_are_placed():
    """A row of another partition that arrives before them has the version of its time."""
    source = replace(SOURCE, format="debezium")
    create = Change(op="CREATE", ddl="CREATE TABLE t (id INT PRIMARY KEY, a INT)")
    rename = Change(op="ALTER", ddl="ALTER TABLE t RENAME COLUMN a TO b")
    row = Change(op="INSERT", key=("id",), after={"id": 1, "b": 2})
    maker = TypedRows(Tables())
    messages = [message(offset, one, source=source) for offset, one in ((9, row), (6, rename), (5, create))]
    (typed,) = maker.of_batch(messages).rows
    (table,) = maker.tables.tables
    assert (typed.version, table.steps) == (
        2,
        [("table 't' with 2 columns",), ("column 'a' renamed to 'b'",)],
    )


def test_what_has_no_order_is_a_reject_and_tables_may_be_ordered_by_different_things():
    """A batch goes on, whatever is in it."""
    oms = replace(SOURCE, format="oms_default")
    lost = [replace(insert(5), source=replace(oms, table="u"))]
    placed = [replace(one, position=None) for one in message(3, insert(2), source=replace(oms, table="v"))]
    found = TypedRows(Tables()).of_batch([message(1, insert(1)), message(2, insert(1), source=oms), placed, lost])
    assert len(found.rows) == 3
    assert [(one.source.table, type(error).__name__) for one, error in found.rejects] == [("u", "OrderError")]


def test_partitions_with_numbers_of_different_kinds_are_learned_each_in_its_order():
    """Whether they can be merged is another question."""
    unnumbered = [
        replace(one, position=None, place=Arrival(topic="x", partition=1, offset=1)) for one in message(1, insert(2))
    ]
    found = TypedRows(Tables()).of_batch([message(1, insert(1)), unnumbered])
    assert (len(found.rows), found.rejects) == (2, [])


def test_a_summary_is_read_as_facts():
    """A table that nothing ended has no floor."""
    summary = {"floor": "", "ops": {"c": 7, "d": 2}, "keyless": 1, "partial": 3, "begins": ["0201"]}
    assert facts_of_summary(summary) == RowFacts(None, 2, 1, 3, [b"\x02\x01"])
    assert facts_of_summary(summary | {"floor": "0a", "ops": {}}) == RowFacts(b"\x0a", 0, 1, 3, [b"\x02\x01"])


def test_batches_hold_together_what_each_holds():
    """The last end of their rows counts, and each beginning of an order once."""
    parts = [
        RowFacts(None, 1, 2, 3, [b"b", b"c"]),
        RowFacts(b"\x02", 10, 20, 30, [b"a", b"b"]),
        RowFacts(b"\x01", 0, 0, 0, []),
    ]
    assert facts_of_parts(parts) == RowFacts(b"\x02", 11, 22, 33, [b"a", b"b", b"c"])
    assert facts_of_parts(parts[:1]) == parts[0]


def test_a_row_that_moves_and_is_stated_in_part_is_a_reject_where_a_table_has_a_state():
    """So is one that comes in halves; a table without a key has none, and many columns are counted."""
    names = ("id", *(f"c{i}" for i in range(7)))
    columns = tuple(Column(name=name, type="int") for name in names)
    whole = replace(insert(1), columns=columns, after=dict.fromkeys(names, 1))
    moved = replace(move(1, 2), columns=columns, before={"id": 1}, after={"id": 2})
    half = replace(whole, op="UPDATE", half="AFTER", after={"id": 1, "c0": 1})
    messages = [message(1, whole), message(2, moved), message(3, half), message(4, replace(whole, op="UPDATE"))]
    maker = TypedRows(Tables(), has_state=lambda table: table.schema.table.table == "t")
    found = maker.of_batch(messages)
    assert [row.operation for row in found.rows] == ["c", "u"]
    assert [(change.place.offset, error.got) for change, error in found.rejects] == [
        (2, "none for 'c0', 'c1', 'c2', 'c3', 'c4', 2 more"),
        (3, "none for 'c1', 'c2', 'c3', 'c4', 'c5', 1 more"),
    ]
    assert maker.of_batch([message(5, moved, source=replace(SOURCE, table="u"))]).rejects == []
    keyless = [[replace(one, key=None) for one in changes] for changes in (messages[0], messages[2])]
    assert TypedRows(Tables(), has_state=lambda _: True).of_batch(keyless).rejects == []
    assert TypedRows(Tables()).of_batch(messages).rejects == []


def test_a_row_with_null_in_its_key_is_a_reject_where_a_table_has_a_state():
    """So is one that leaves such a key, or comes to one, and each half; an emptied table has no row."""
    whole, null = replace(insert(1), after={"id": 1, "a": 1}), {"id": None, "a": 1}
    changes = [
        whole,
        replace(whole, after=null),
        replace(whole, op="DELETE", before=null, after=None),
        replace(whole, op="UPDATE", before=null),
        replace(whole, op="UPDATE", before=whole.after, after=null),
        replace(whole, op="UPDATE", half="AFTER", after=null),
    ]
    messages = [message(number, change) for number, change in enumerate(changes)]
    found = TypedRows(Tables(), has_state=lambda table: table.schema.table.table == "t").of_batch(messages)
    assert [row.operation for row in found.rows] == ["c"]
    assert [(change.place.offset, error.got) for change, error in found.rejects] == [
        (number, "null for 'id'") for number in range(1, 6)
    ]
    assert TypedRows(Tables()).of_batch(messages).rejects == []


def test_a_row_that_states_another_key_than_its_table_has_is_a_reject_where_the_table_has_a_state():
    """A wider, a smaller or another key; none, and the same in another order or spelling, is no other."""
    wide = (*COLUMNS, Column(name="B", type="int"))
    usual = replace(insert(1), key=("id", "B"), columns=wide, after={"id": 1, "a": 1, "B": 1})
    keys = [("id", "B"), ("B", "id"), ("id", "b"), None, ("id", "B", "a"), ("id",), ("id", "x")]
    messages = [message(number, replace(usual, key=key)) for number, key in enumerate(keys)]
    found = TypedRows(Tables(), has_state=lambda table: table.schema.table.table == "t").of_batch(messages)
    assert [row.operation for row in found.rows] == ["c"] * 4
    assert [(change.place.offset, error.got) for change, error in found.rejects] == [
        (4, "'id', 'B', 'a'"),
        (5, "'id'"),
        (6, "'id', 'x'"),
    ]
    assert str(found.rejects[0][1]).startswith(
        "canal: $.pkNames: expected the key of d.t, 'id', 'B': under another one"
    )
    assert TypedRows(Tables()).of_batch(messages).rejects == []


def test_a_key_in_another_order_beside_new_columns_is_the_same_key():
    """Its table has one key in all versions."""
    wide = (*COLUMNS, Column(name="b", type="int"))
    first = replace(insert(1), key=("id", "a"))
    second = replace(first, key=("a", "id"), columns=wide, after={"id": 1, "a": 1, "b": 1})
    maker = TypedRows(Tables(), has_state=lambda _: True)
    assert maker.of_batch([message(1, first), message(2, second)]).rejects == []
    assert [version.key_names for version in maker.tables.tables[0].versions] == [("id", "a")] * 2


def test_a_column_that_a_list_of_columns_has_dropped_is_lacked_by_a_moved_row_until_a_statement_drops_it():
    """Some sources list nothing but the columns that a row states; a row of an older version lacks nothing newer."""
    lists = COLUMNS, (*COLUMNS, Column(name="b", type="int")), (COLUMNS[0], Column(name="c", type="int"))
    _, long, short = (replace(insert(1), columns=one, after={column.name: 1 for column in one}) for one in lists)
    moved = replace(short, op="UPDATE", before={"id": 1}, after={"id": 2, "c": 1})
    maker = TypedRows(Tables(), has_state=lambda _: True)
    before = [message(1, insert(1)), message(2, move(1, 4)), message(3, long), message(5, moved)]
    half = replace(short, op="UPDATE", half="AFTER")  # whole: it would be that of each update
    (reject,) = maker.of_batch([*before, message(6, half)]).rejects
    assert (reject[0].place.offset, reject[1].got) == (5, "none for 'a', 'b'")
    drop = Change(op="ALTER", ddl="ALTER TABLE t DROP COLUMN a, DROP COLUMN b")
    assert maker.of_batch([message(4, drop), message(7, moved)]).rejects == []
