"""The facts of `maxwell`: messages of Maxwell's daemon."""

from __future__ import annotations

import json
from random import Random
from zoneinfo import ZoneInfo

import pytest

import cdcavro
from cdcavro.change import Arrival
from cdcavro.change.model import Change, Source
from cdcavro.change.order import Clock, began_before, in_order, order_key, precedes
from cdcavro.engine.machine import COMPILED
from cdcavro.lake import TypedRows
from cdcavro.table.tables import Tables
from cdcavro.table.writing.message_typer import MessageTyper
from cdcavro.transcoding.mapping import from_changes, to_changes
from cdcavro.wire.formats import get_format
from support.messages import goldens
from support.mutations import mutated
from support.roundtrip import assert_fast, assert_golden, avro, error_of, golden_cases
from support.typed import read


def message(**members: object) -> str:
    """Return a message that inserts a row, with other members."""
    usual = {"database": "d", "table": "t", "type": "insert", "ts": 1_700_000_001, "xid": 7, "data": {"id": 1}}
    return json.dumps(usual | members, separators=(",", ":"))


def change(**members: object) -> Change:
    """Return the change of such a message."""
    (found,) = to_changes(message(**members), "maxwell")
    return found


@pytest.mark.parametrize("golden", golden_cases("maxwell"))
def test_golden_message_round_trips_and_is_told(golden):
    """Every sample comes back as it was sent, and is told from Canal's."""
    assert_golden("maxwell", golden)


def test_operations_with_a_dash_are_symbols():
    """Their text is no note in `extras`, and comes back by the engine, too."""
    text = message(type="bootstrap-insert")
    assert avro("maxwell", text)["type"] == "bootstrap_insert"
    assert avro("maxwell", text)["extras"] == {}
    assert_fast("maxwell", text)
    assert avro("maxwell", message(type="bootstrap_insert"))["type"] == "OTHER"


def test_an_update_has_its_changed_columns_as_they_were():
    """`old` is laid over `data`, also where it has a column that `data` lacks."""
    found = change(type="update", data={"id": 1, "a": 2, "b": 3}, old={"a": 1, "gone": None})
    assert found.before == {"id": 1, "a": 1, "b": 3, "gone": None}
    assert (found.after, found.changed) == ({"id": 1, "a": 2, "b": 3}, ("a", "gone"))


def test_an_update_of_which_no_changed_column_is_left_has_no_row_before_it():
    """Maxwell writes `old` only if a column changed: all that did were NULL, and were left out as such."""
    text = message(type="update", data={"id": 1, "a": 2}, old={})
    (found,) = to_changes(text, "maxwell")
    assert (found.before, found.after, found.changed) == (None, {"id": 1, "a": 2}, None)
    assert [json.loads(back) for back in from_changes([found], "maxwell")] == [json.loads(text)]
    typer = MessageTyper("maxwell", Tables())
    create = message(type="table-create", data=None, sql="CREATE TABLE t (id INT PRIMARY KEY, a INT)")
    typer.add(create, Arrival(file="f", line=1))
    for line in (2, 3):
        (typed,) = typer.add(text, Arrival(file="f", line=line))
        row = read(typed.payload, typed.schema.envelope)
        assert (row["before"], row["after"]["a"], typed.key is None) == (None, 2, False)


def test_a_delete_has_the_row_before_it():
    """In `data`; with `old` beside it the message is refused."""
    assert (change(type="delete").before, change(type="delete").after) == ({"id": 1}, None)
    sentence = "maxwell: $.old: expected no second row before the change for delete, got some"
    assert error_of(to_changes, message(type="delete", old={"id": 1}), "maxwell") == sentence


@pytest.mark.parametrize("kind", ["table-create", "table-alter", "table-drop", "database-create"])
def test_the_time_of_a_statement_is_in_milliseconds(kind):
    """That of a row is in seconds; both are written as they are read."""
    text = message(type=kind, ts=1_700_000_001_500, data=None, sql="ALTER TABLE t ADD c INT")
    (found,) = to_changes(text, "maxwell")
    assert found.event_time == 1_700_000_001_500_000
    assert change().event_time == 1_700_000_001_000_000
    assert [json.loads(back) for back in from_changes([found], "maxwell")] == [json.loads(text)]


def test_a_statement_has_no_row():
    """Its `old` is a table."""
    sentence = "maxwell: $.data: expected no row for table-alter, got some"
    assert error_of(to_changes, message(type="table-alter"), "maxwell") == sentence
    assert change(type="table-alter", data=None, old={"table": "t"}, sql="ALTER TABLE t ADD c INT").before is None


def test_rows_of_a_bootstrap_are_read_in_mid_stream():
    """They have their place among the changes; the marks around them are no rows, and stop nothing."""
    found = change(type="bootstrap-insert", xid=None)
    assert (found.op, found.snapshot, found.transaction) == ("SNAPSHOT", False, None)
    for kind in ("bootstrap-start", "bootstrap-complete"):
        mark = change(type=kind, data={})
        assert (mark.op, mark.before, mark.after) == ("OTHER", None, None)
        tables = Tables()
        assert MessageTyper("maxwell", tables).add(message(type=kind, data={})) == []


def test_a_bootstrap_is_in_the_order_of_arrival():
    """A row that is read again wins against what came before it, and loses to what comes behind."""
    places = [Arrival(topic="t", partition=0, offset=offset) for offset in range(3)]
    kinds = ("insert", "bootstrap-insert", "update")
    changes = [cdcavro.change.replace(change(type=kind), place=at) for kind, at in zip(kinds, places, strict=True)]
    assert in_order(reversed(changes)) == changes


@pytest.mark.parametrize(
    ("position", "numbers"),
    [
        ("master.000006:800911", (6, 800911, 1)),
        ("7:8", (7, 8, 1)),
        ("master:8", ()),
        ("master.000006", ()),
        ("a:1:2", ()),
        (f"m.{'1' * 19}:4", ()),
        ("", ()),
    ],
)
def test_a_position_is_a_file_and_an_offset(position, numbers):
    """Both as numbers; they order changes of several partitions. The last row of its transaction has no number of its own."""
    assert change(position=position).position == numbers
    assert change(position=position, xoffset=None).position == numbers
    assert change(position=position, xoffset=3).position == (numbers and (*numbers[:2], 0, 3))
    assert change(xoffset=3).position == ()


def test_rows_with_and_without_a_position_are_in_the_order_of_their_arrival():
    """As those of a bootstrap are that comes between changes: a table never waits for that."""
    places = [None, "b.1:5", None, "b.1:4"]
    rows = [change(position=place, data={"id": i}) for i, place in enumerate(places)]
    rows = [cdcavro.change.replace(row, place=Arrival(file="f", line=i)) for i, row in enumerate(rows)]
    assert in_order(reversed(rows)) == rows


def at(partition: int, offset: int, **members: object) -> Change:
    """Return the change of a message that arrived in a partition."""
    return cdcavro.change.replace(change(**members), place=Arrival(topic="t", partition=partition, offset=offset))


def created(column: str, ts: int, **members: object) -> Change:
    """Return the change of a statement that creates the table with a column, in a partition of its own."""
    text = f"CREATE TABLE t (id INT PRIMARY KEY, {column})"
    return at(0, ts // 1_000, type="table-create", data=None, sql=text, ts=ts, **members)


def test_statements_of_another_partition_stand_among_rows_by_their_times():
    """Where no message has a position, as Maxwell sends none unless it is told to: of the second itself nothing is known."""
    tables = Tables()
    dropped = at(0, 10, type="table-drop", data=None, sql="DROP TABLE t", ts=10_000)
    altered = at(0, 30, type="table-alter", data=None, sql="ALTER TABLE t CHANGE b a VARCHAR(9)", ts=30_000)
    for one in (created("a INT", 1_000), dropped, created("b INT", 11_000), altered):
        tables.learn(one)
    rows = [
        (5, {"id": 1, "a": 1}, (0, 1)),
        (20, {"id": 1, "b": 1}, (1, 1)),
        (29, {"id": 2, "b": 1}, (1, 1)),
        (31, {"id": 2, "a": "x"}, (1, 2)),
        (9, {"id": 3, "a": 1}, (0, 1)),
    ]
    for offset, (ts, data, wanted) in enumerate(rows):
        row = at(1, offset, ts=ts, data=data)
        tables.learn(row)
        ((table, schema),) = tables.find(row)
        assert (table.number, schema.version) == wanted


@pytest.mark.parametrize("size", [1, 3, 7])
@pytest.mark.parametrize("lane", [0, 1])
def test_no_drop_ends_a_row_of_the_table_that_is_created_within_its_second(lane, size):
    """Lake tables have all rows of a name, so the order says which of them a DROP ends; in its own partition, all before it."""
    texts = [
        {"type": "table-create", "ts": 1_000, "data": None, "sql": "CREATE TABLE t (id INT PRIMARY KEY)"},
        {"ts": 9, "data": {"id": 9}},
        {"type": "table-drop", "ts": 10_000, "data": None, "sql": "DROP TABLE t"},
        {"type": "table-create", "ts": 10_000, "data": None, "sql": "CREATE TABLE t (id INT PRIMARY KEY)"},
        {"ts": 10, "data": {"id": 10}},
        {"ts": 11, "data": {"id": 11}},
    ]
    sent = [at(lane if "sql" not in one else 0, i, **one) for i, one in enumerate(texts)]
    maker, orders = TypedRows(Tables()), []
    for start in range(0, len(sent), size):
        orders += [
            (row.operation, row.order) for row in maker.of_batch([[one] for one in sent[start : start + size]]).rows
        ]
    (drop,) = [order for operation, order in orders if operation == "x"]
    assert [order > drop for operation, order in orders if operation != "x"] == [False, True, True]


@pytest.mark.parametrize("position", [{}, {"position": "b.1:5"}])
def test_a_row_behind_a_statement_in_its_partition_is_of_no_table_that_was_there_before(position):
    """Though it is of the same second, and of the same file of the log."""
    maker = TypedRows(Tables())
    renamed = at(0, 2, type="table-alter", data=None, sql="RENAME TABLE t TO o", ts=5_000, **position)
    later = {"position": "b.1:900"} if position else {}
    sent = [created("a INT", 1_000), renamed, at(0, 3, ts=5, data={"id": 1, "a": 1}, **later)]
    rows = maker.of_batch([[one] for one in sent]).rows
    assert [maker.tables.tables[row.table].schema.table.table for row in rows] == ["t"]


def sent_again(*parts: tuple[int, dict[str, object]], again: int) -> list[Change]:
    """Return messages, each with its second and its position, of which those from `again` on come twice in one partition."""
    texts: list[dict[str, object]] = []
    for number, (second, members) in enumerate(parts, 1):
        is_statement = "sql" in members
        texts.append({"ts": second * 1_000 if is_statement else second, "position": f"b.12:{number}00", **members})
        texts[-1] |= {"type": "table-alter", "data": None} if is_statement else {}
    return [at(0, offset, **one) for offset, one in enumerate([*texts, *texts[again:]])]


CREATED = {"sql": "CREATE TABLE t (id INT PRIMARY KEY, n INT)"}


@pytest.mark.parametrize("size", [1, 100])
def test_rows_that_are_sent_again_with_their_positions_go_where_they_went(size):
    """Also to a table that is dropped, or to a version that lacks a column, wherever the newer one would fit."""
    dropped = sent_again(
        (1, {"sql": "CREATE TABLE t (id INT PRIMARY KEY, n INT, x INT)"}),
        (2, {"sql": "ALTER TABLE t DROP COLUMN x"}),
        (3, {"data": {"id": 1, "n": 1}}),
        (4, {"sql": "DROP TABLE t"}),
        (5, CREATED),
        again=2,
    )
    altered = sent_again(
        (1, CREATED),
        (2, {"data": {"id": 1, "n": 1}}),
        (3, {"type": "update", "data": {"id": 2, "n": 1}, "old": {"id": 1}}),
        (4, {"sql": "ALTER TABLE t ADD k INT"}),
        (5, {"type": "update", "data": {"id": 2, "n": 5, "k": 7}, "old": {"n": 1, "k": None}}),
        again=1,
    )
    for stream in (dropped, altered):
        maker, found = TypedRows(Tables()), []
        for start in range(0, len(stream), size):
            batch = maker.of_batch([[one] for one in stream[start : start + size]])
            assert batch.rejects == []
            found += [(one.table, one.version, one.operation, one.key) for one in batch.rows if one.key]
        half = len(found) // 2
        assert found[:half] == found[half:]
        assert len(found) == (2 if stream is dropped else 8)


def test_statements_of_one_second_that_are_sent_again_are_told_by_their_positions():
    """The second of two is newer, and the first is not applied again behind it."""
    added = {"sql": "ALTER TABLE t ADD e INT DEFAULT 3"}
    stream = sent_again((1, CREATED), (2, added), (2, {"sql": "ALTER TABLE t RENAME COLUMN e TO r"}), again=1)
    maker = TypedRows(Tables())
    assert maker.of_batch([[one] for one in stream]).rejects == []
    assert [column.name for column in maker.tables.tables[0].schema.columns] == ["id", "n", "r"]


def test_a_statement_that_waited_for_a_lock_ends_rows_that_are_sent_again():
    """Its time is that at which it began, and its position that at which it was done: rows before it may be later."""
    stream = sent_again((1, CREATED), (9, {"data": {"id": 1, "n": 1}}), (5, {"sql": "DROP TABLE t"}), again=1)
    maker = TypedRows(Tables())
    batch = maker.of_batch([[one] for one in stream])
    assert batch.rejects == []
    assert [table.is_gone for table in maker.tables.tables] == [True]


def test_a_log_that_begins_again_with_smaller_positions_is_not_sent_again():
    """After a failover to another server: where arrival is the order, the time says that a row is newer."""
    stream = sent_again((1, CREATED), (2, {"sql": "ALTER TABLE t ADD k INT"}), again=2)
    stream += [at(0, 9, ts=2, position="b.3:4", data={"id": 1, "n": 1, "k": 1})]
    maker = TypedRows(Tables())
    (row,) = maker.of_batch([[one] for one in stream]).rows
    assert row.version == len(maker.tables.tables[0].versions)
    older, newer = (order_key(at(0, 10 - ts, ts=ts, position=f"b.{9 - ts}:1")) for ts in (3, 5))
    assert not began_before(newer, older)
    assert not began_before(older, newer)
    assert began_before(order_key(at(0, 10, ts=3, position="b.4:1")), order_key(at(0, 9, ts=3, position="b.4:2")))


def test_a_row_of_a_bootstrap_counts_with_what_its_partition_has():
    """It was read when the bootstrap began, and has the time at which it was sent: changes elsewhere may be newer."""
    rows = [at(0, 1, ts=100), at(0, 2, type="bootstrap-insert", xid=None, ts=180), at(1, 1, type="update", ts=110)]
    assert in_order(rows) == rows
    clock = Clock()
    assert [clock.time(one).numbers for one in rows] == [(0, 100, 1), (0, 100, 1), (0, 110, 1)]


def test_times_and_positions_are_not_compared_but_sort():
    """Nothing says which of the two comes first, but rows of several partitions need some order: positions come last."""
    timed, placed = at(0, 5, ts=2_000_000_000), at(1, 3, position="b.1:5")
    assert precedes(order_key(timed), order_key(placed)) is None
    assert precedes(order_key(placed), order_key(timed)) is None
    assert in_order([placed, timed]) == [timed, placed]
    later = at(1, 0, ts=2_000_000_001)
    assert precedes(order_key(timed), order_key(later)) is True
    assert began_before(order_key(timed), order_key(later))
    assert not began_before(order_key(timed), order_key(placed))
    assert not began_before(order_key(placed), order_key(timed))
    assert precedes(order_key(timed), order_key(at(1, 0, ts=2_000_000_000))) is None
    part = at(1, 0, type="table-drop", data=None, sql="DROP TABLE t", ts=2_000_000_000_400)
    assert order_key(part)[3] < order_key(timed)[3]
    same = at(1, 0, type="table-drop", data=None, sql="DROP TABLE t", ts=2_000_000_000_000)
    assert precedes(order_key(timed), order_key(same)) is precedes(order_key(same), order_key(timed)) is None
    assert not began_before(order_key(same), order_key(timed))
    assert in_order([timed, same]) == [same, timed]
    assert precedes(order_key(timed), order_key(at(1, 0, ts=None))) is None


def test_rows_of_a_statement_that_went_to_several_partitions_are_in_its_order():
    """By the numbers that they have in their transaction; the last one has none, and comes last."""
    last = change(position="b.1:5", commit=True, data={"id": 2})
    rows = [change(position="b.1:5", xoffset=number, data={"id": number}) for number in (0, 1)]
    moved = [
        cdcavro.change.replace(one, place=Arrival(topic="t", partition=at, offset=9))
        for at, one in enumerate((last, rows[1], rows[0]))
    ]
    assert [one.after for one in in_order(moved)] == [{"id": 0}, {"id": 1}, {"id": 2}]


def test_ties_are_broken_by_arrival():
    """Rows of one statement share their position."""
    one, other = (
        cdcavro.change.replace(change(position="b.1:5"), place=Arrival(file="f", line=line)) for line in (1, 2)
    )
    assert order_key(one) < order_key(other)


def test_an_encrypted_row_is_refused_by_name():
    """It cannot be read; the message itself comes back."""
    text = message(data=None, encrypted={"iv": "AA==", "bytes": "AA=="})
    assert json.loads(cdcavro.decode(cdcavro.encode(text, "maxwell"), "maxwell")) == json.loads(text)
    sentence = "maxwell: $.encrypted: expected a row that can be read, got one that Maxwell has encrypted"
    assert error_of(to_changes, text, "maxwell") == sentence


@pytest.mark.parametrize(
    ("key", "names"),
    [
        ({"database": "d", "table": "t", "pk.id": 1}, ("ID",)),
        ({"database": "d", "table": "t", "pk.id": 1, "pk.part": "x"}, ("ID", "Part")),
        ({"database": "d", "table": "t", "pk.id": 2}, None),
        ({"database": "d", "table": "t", "pk.other": 1}, None),
        ({"database": "d", "table": "t", "_uuid": "5f"}, None),
        (None, None),
    ],
)
def test_the_key_of_a_record_names_columns_in_lower_case(key, names):
    """They are spelled as in the row, and have its values; a table without a key has a random one."""
    text = f'{{"topic":"x","key":{json.dumps(key)},"value":{message(data={"ID": 1, "Part": "x"})}}}'
    assert to_changes(text, "maxwell")[0].key == names


def test_columns_that_differ_in_case_alone_are_no_key():
    """The record does not say which of the two is meant."""
    text = f'{{"topic":"x","key":{{"pk.id":1}},"value":{message(data={"ID": 1, "id": 1})}}}'
    assert to_changes(text, "maxwell")[0].key is None


def test_a_change_of_another_format_is_written():
    """Its transaction only if it is a number."""
    row = Change(op="UPDATE", source=Source(database="d", table="t"), before={"a": 1, "b": 2}, after={"a": 1, "b": 3})
    (text,) = from_changes([row], "maxwell")
    assert json.loads(text) == {
        "database": "d",
        "table": "t",
        "type": "update",
        "data": {"a": 1, "b": 3},
        "old": {"b": 2},
    }
    for transaction, xid in (("12", 12), ("012", None), ("a:1", None)):
        (text,) = from_changes([cdcavro.change.replace(row, transaction=transaction)], "maxwell")
        assert json.loads(text).get("xid") == xid


ROWS = [
    message(
        type="update",
        position="b.000002:77",
        data={"id": 1, "a": "x", "n": 1.5, "w": "2024-01-02 03:04:05.678"},
        old={"a": None},
    ),
    message(type="update", data={"id": 1, "a": "x", "n": 1.5, "w": "2024-01-02 03:04:05.678"}, old={"a": "w", "n": 2}),
    message(type="update", data={"id": 1, "a": "x", "n": 1.5, "w": "2024-01-02 03:04:05.678"}, old={}),
    message(commit=True, xid=0, data={"id": 2, "a": None, "n": 7, "w": None}),
    message(xid=2**63 - 1, data={"id": 2, "a": "y", "n": 7, "w": None}, primary_key=[2], primary_key_columns=["id"]),
    message(type="delete", data={"id": 2, "a": "y", "n": 7, "w": None}),
    message(type="delete", position="b.000002:78", xoffset=5, data={"id": 2, "a": "y", "n": 7, "w": None}),
    message(push_ts=1700000001.250125, xoffset=6, data={"id": 2, "a": "y", "n": 7, "w": None}),
    message(type="bootstrap-insert", xid=None, data={"id": 3, "a": "z", "n": 0, "w": "2001-09-09 09:46:40.000"}),
]
CREATE = message(
    type="table-create",
    data=None,
    sql="CREATE TABLE t (id INT PRIMARY KEY, a VARCHAR(9), n DOUBLE, w TIMESTAMP(3) NULL)",
    ts=1_700_000_000_000,
)


def typer_of_rows() -> MessageTyper:
    """Return a typer that knows the table, and has typed each of the rows once."""
    typer = MessageTyper("maxwell", Tables(zone=ZoneInfo("Asia/Shanghai")))
    for text in (CREATE, *ROWS, *ROWS):
        typer.add(text, Arrival(file="f", line=1))
    return typer


@pytest.mark.skipif(not COMPILED, reason="where nothing is compiled, all goes the exact way")
def test_the_engine_types_all_rows():
    """An update with `old` beside its row, and a number as transaction, too."""
    typer = typer_of_rows()
    assert [typer.type_by_pattern(text.encode()) is not None for text in ROWS] == [True] * len(ROWS)


@pytest.mark.skipif(not COMPILED, reason="where nothing is compiled, all goes the exact way")
def test_the_engine_types_as_the_exact_way_does():
    """Also messages that were damaged: they have the same rows, or are left."""
    typer, random, typed = typer_of_rows(), Random(32), 0
    tables = typer._tables
    for _ in range(3000):
        text = mutated(random, random.choice(ROWS).encode())
        rows = typer.type_by_pattern(text)
        if rows is not None:
            exact = [
                one
                for found in to_changes(text, "maxwell", members=False, zone=tables.zone)
                for one in tables.add(found)
            ]
            assert [(row.key, row.payload) for row in rows] == [(one.key, one.payload) for one in exact]
            typed += 1
    assert typed > 100


def statement(sql: str, table: str, **members: object) -> str:
    """Return the message of a statement about a table."""
    return message(type="table-alter", table=table, data=None, sql=sql, **members)


@pytest.mark.parametrize("place", [{}, {"position": "b.1:5"}])
def test_a_statement_that_is_sent_for_each_of_its_tables_is_done_once(place):
    """Two renamings of which the second takes the name of the first, as tools have them, are not done twice."""
    tables = Tables()
    typer = MessageTyper("maxwell", tables)
    swap = "RENAME TABLE t TO t_old, t_new TO t"
    sent = [
        statement("CREATE TABLE t (id INT PRIMARY KEY)", "t", ts=1_000),
        statement("CREATE TABLE t_new (id INT PRIMARY KEY, a INT)", "t_new", ts=2_000),
        *(statement(swap, table, ts=3_000, **place) for table in ("t", "t_new")),
        message(ts=4, data={"id": 1, "a": 2}),
    ]
    for line, text in enumerate(sent, 1):
        rows = typer.add(text, Arrival(file="f", line=line))
    assert [(row.table.number, row.schema.table.table) for row in rows] == [(1, "t")]
    assert [table.schema.table.table for table in tables.tables] == ["t_old", "t"]


def test_types_of_a_table_are_those_of_the_statement():
    """`def` says a decimal without its digits, and a text without its length."""
    typer = MessageTyper("maxwell", Tables())
    columns = [{"type": "int", "name": "id", "signed": True}, {"type": "decimal", "name": "n"}]
    members = {"def": {"database": "d", "table": "t", "columns": columns, "primary-key": ["id"]}}
    text = message(
        type="table-create", data=None, sql="CREATE TABLE t (id INT PRIMARY KEY, n DECIMAL(12,3))", **members
    )
    assert change(type="table-create", data=None, sql="CREATE TABLE t (id INT)", **members).columns is None
    for line, sent in enumerate((text, message(data={"id": 1, "n": 1.5})), 1):
        made = typer.add(sent, Arrival(file="f", line=line))
    (typed,) = made
    assert str(read(typed.payload, typed.schema.envelope)["after"]["n"]) == "1.500"


def test_what_is_not_known_stays():
    """Members that no field has, and those of filters, come back."""
    text = message(push_ts=1700000012.250125, mine={"a": [1.0]})
    assert avro("maxwell", text)["extras"] == {"/push_ts": "1700000012.250125", "/mine": '{"a":[1.0]}'}
    assert len(goldens("maxwell")) == len(golden_cases("maxwell"))
    assert get_format("maxwell").rule.key == "pk."


@pytest.mark.parametrize(
    ("sent", "stored", "unparsed"),
    [
        (["a", "b"], "a,b", {}),
        ([], "", {}),
        ([""], "", {}),
        ("b", "b", {}),
        (["c"], None, {"s": '["c"]'}),
        (["a", ""], None, {"s": '["a",""]'}),
        ([1], None, {"s": "[1]"}),
    ],
)
def test_an_array_of_labels_is_a_set(sent, stored, unparsed):
    """It becomes what its column says, and is kept as text if it has a label that the column has not."""
    typer = MessageTyper("maxwell", Tables())
    create = message(type="table-create", data=None, sql="CREATE TABLE t (id INT PRIMARY KEY, s SET('a','b'))")
    typer.add(create, Arrival(file="f", line=1))
    for line in (2, 3):
        (made,) = typer.add(message(data={"id": 1, "s": sent}), Arrival(file="f", line=line))
        after = read(made.payload, made.schema.envelope)["after"]
        assert (after["s"], after["unparsed"]) == (stored, unparsed)
