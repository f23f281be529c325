"""The merge of typed rows: the shop's tables from any order of arrival, and each of its rules."""

from __future__ import annotations

import json
import os
import random
from collections.abc import Sequence
from itertools import permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from cdcavro.change.model import Arrival, Change, Column, Source, replace
from cdcavro.change.order_value import is_of_full_load, order_value
from cdcavro.errors import OrderError
from cdcavro.lake import TableState, TypedRow, TypedRows, check_keys, last_changes
from cdcavro.lake.evolution import BEHIND, EVOLVE, LENIENT
from cdcavro.lake.merge import (
    End,
    Origin,
    Progress,
    Statement,
    progress_of,
    properties_behind,
    replay,
    values_of,
    without_repetitions,
    written_behind,
)
from cdcavro.lake.typed_rows import DROP
from cdcavro.table import TableName, create_table, evolve
from cdcavro.table.table_schema import TableSchema
from cdcavro.table.tables import Tables
from cdcavro.transcoding.mapping import to_changes
from support.messages import canal
from support.roundtrip import error_of
from support.shop_losses import assert_as_the_server
from support.shop_state import as_came, image, learned, merged, shown, whole
from support.shop_streams import REPEATS, shuffled
from support.shop_tables import MESSAGES, ORACLE, shop

SIZES = (1, 7, 100_000)
KEYS = {"all_types": ["id"], "orders_v3": ["tenant", "order_id"], "we ird-tab.le": ["id"], "big": ["id"]}
SHUFFLES, PARTS = 500, 10


def assert_same_tables(producer: str, seeds: Sequence[int]) -> None:
    """Check that shuffled streams end with the tables of the stream as it came.

    Each either learns its statements batch by batch, which come no later than what was made after them, or
    knows them before, and they come when they like.
    """
    wanted, wrong = shown(whole(producer)), []
    for seed in seeds:
        is_learning = seed % 2 == 0
        stream = shuffled(producer, seed, is_waiting=is_learning)
        size = SIZES[seed // len(REPEATS) % len(SIZES)]
        found = merged(stream.messages, size, None if is_learning else learned(producer))
        if shown(found) != wanted:
            wrong.append((seed, size, stream.facts))
    assert wrong == []


@pytest.mark.slow
@pytest.mark.parametrize("producer", MESSAGES)
def test_the_stream_as_it_came_gives_the_tables_of_the_server(producer: str):
    """Rows, columns and values, in batches of one message and in one batch; differences are those listed."""
    final = {name: list(rows.values()) for name, rows in whole(producer).items()}
    assert_as_the_server(producer, final, {name: KEYS.get(name, ["id"]) for name in ORACLE})
    assert shown(merged(as_came(producer), 1)) == shown(whole(producer))


@pytest.mark.slow
@pytest.mark.parametrize("producer", MESSAGES)
def test_the_tables_are_the_same_however_the_stream_comes(producer: str):
    """Some shuffles: partitions, repetitions, batches, a late full load."""
    assert_same_tables(producer, range(18, 20))


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("part", range(PARTS))
@pytest.mark.parametrize("producer", MESSAGES)
def test_the_tables_are_the_same_in_500_shuffles(producer: str, part: int):
    """All of them with CDCAVRO_EVERY_MESSAGE in the environment, else each twentieth."""
    stride = PARTS * (1 if os.environ.get("CDCAVRO_EVERY_MESSAGE") else 20)
    assert_same_tables(producer, range(18 + part, 18 + SHUFFLES, stride))


CANAL, OMS = Source(format="canal", table="t"), Source(format="oms_default", table="t")


def order(number: int, op: str = "UPDATE", *, source: Source = OMS) -> bytes:
    """Return the order of a change with this number, which is also its place."""
    place = Arrival(topic="x", partition=0, offset=number)
    return order_value(Change(op=op, source=source, position=(number,), event_time=1, place=place))


def row(operation: str, number: int, key: bytes | None = b"k", absent: str = "") -> TypedRow:
    """Return a row whose payload is what it was made as."""
    kind = "SNAPSHOT" if operation == "r" else "UPDATE"
    return TypedRow(1, 1, operation, order(number, kind), key, f"{operation}{number}".encode(), tuple(absent))


def state_of(*batches: Sequence[TypedRow]) -> TableState:
    """Return the state after batches."""
    state = TableState("t")
    for batch in batches:
        state.merge(batch)
    return state


def payloads(state: TableState) -> dict[bytes, list[str]]:
    """Return the payloads that make each row."""
    return {key: [piece.payload.decode() for piece in pieces] for key, pieces in state.rows.items()}


def test_a_late_older_change_does_not_win():
    """Nor does the same change again."""
    assert payloads(state_of([row("u", 5)], [row("c", 3)], [row("u", 5)])) == {b"k": ["u5"]}
    assert payloads(state_of([row("d", 5)], [row("d", 3)], [row("u", 4)])) == {}


def test_what_versions_call_differently_is_not_taken_for_stated():
    """Column `a` is `d` in version 2: that an older change lacks `a` and `c` does not say that it has `d`."""
    newest = structs.replace(row("u", 5, absent="dbe"), version=2)
    changes = [row("c", 1), row("u", 2, absent="cb"), newest, row("u", 3, absent="ac"), row("u", 4, absent="ac")]
    assert payloads(state_of(changes)) == {b"k": ["u5", "u4", "u2", "c1"]}
    assert payloads(state_of(*[[one] for one in changes])) == {b"k": ["u5", "u4", "u2", "c1"]}
    assert payloads(state_of(changes, [row("u", 6)])) == {b"k": ["u6"]}


def test_a_late_row_of_a_full_load_wins_against_nothing():
    """Neither a change, nor a delete, nor a TRUNCATE; where nothing is known, it is the row."""
    assert payloads(state_of([row("u", 5)], [row("r", 9)])) == {b"k": ["u5"]}
    assert payloads(state_of([row("d", 5)], [row("r", 9)])) == {}
    assert payloads(state_of([row("t", 5, None)], [row("r", 9)])) == {}
    assert payloads(state_of([row("r", 9)], [row("r", 8)])) == {b"k": ["r9"]}


def test_a_delete_is_guarded_as_long_as_configured():
    """Later, a late change is taken for a new one."""
    state = TableState("t")
    state.merge([row("d", 5)], now=100.0, guard=60.0)
    state.merge([row("u", 4)], now=159.0, guard=60.0)
    assert payloads(state) == {}
    state.merge([], now=160.0, guard=60.0)
    assert state.deletes == {}
    state.merge([row("u", 4)], now=161.0, guard=60.0)
    assert payloads(state) == {b"k": ["u4"]}


def test_a_truncate_takes_what_came_before_it_and_leaves_what_came_after():
    """At its place in the order, whenever it arrives."""
    rows = [row("c", 3, b"a"), row("t", 5, None), row("c", 7, b"b"), row("c", 4, b"c"), row("d", 6, b"a")]
    for arrived in permutations(rows):
        state = state_of(*[[one] for one in arrived])
        assert (payloads(state), state.floor) == ({b"b": ["c7"]}, order(5))
        assert {key: delete.order for key, delete in state.deletes.items()} == {b"a": order(6)}
    assert state_of([row("d", 4)], [row("t", 5, None)]).deletes == {}


def test_a_drop_is_the_end_of_all_rows():
    """Those that come late, too."""
    drop = TypedRow(1, 1, DROP, order(9), None, b"")
    assert payloads(state_of([row("c", 3, b"a")], [drop], [row("u", 8, b"b")])) == {}


def test_a_table_without_a_key_has_no_current_state():
    """Its rows cannot be told apart: that is counted."""
    state = state_of([row("c", 1)], [row("c", 2, None), row("d", 3, None)], [row("c", 4)])
    assert (payloads(state), state.keyless) == ({}, 2)


def test_a_column_that_a_change_does_not_have_keeps_the_value_of_the_last_change_that_has_it():
    """Whatever comes first; a complete change ends it, and so does a delete."""
    rows = [row("c", 1), row("u", 2, absent="ab"), row("u", 3, absent="bc"), row("u", 4, absent="b")]
    stated = {b"c1": dict.fromkeys("abc", 1), b"u2": {"c": 2}, b"u3": {"a": 3}, b"u4": {"a": 4, "c": 4}}
    for arrived in permutations(rows):
        (pieces,) = state_of(*[[one] for one in arrived]).rows.values()
        assert [piece.payload for piece in pieces] == [b"u4", b"c1"]
        assert values_of(pieces, lambda piece: stated[piece.payload]) == {"a": 4, "b": 1, "c": 4}
    assert payloads(state_of(rows, [row("u", 5)])) == {b"k": ["u5"]}
    for arrived in permutations([row("c", 1), row("d", 2), row("c", 3, absent="b")]):
        assert payloads(state_of(*[[one] for one in arrived])) == {b"k": ["c3"]}


def test_changes_that_are_ordered_by_different_things_are_refused_and_nothing_is_merged():
    """Which of them is the later one is not guessed; rows of a full load come first in any case."""
    other = TypedRow(1, 1, "u", order(9, source=CANAL), b"k", b"")
    expected = "change: expected the same kind of position in all changes of 't', got some with"
    state = state_of([row("c", 1)])
    for batch in ([other], [row("u", 2), other]):
        assert error_of(state.merge, batch).startswith(expected)
        assert payloads(state) == {b"k": ["c1"]}
    with pytest.raises(OrderError):
        state_of([other, row("u", 2)])
    assert payloads(state_of([row("r", 1, b"a")], [other])).keys() == {b"a", b"k"}


def test_an_operation_that_is_none_is_refused():
    """No row is passed over."""
    with pytest.raises(ValueError, match="'z' is no operation of a row"):
        last_changes([row("z", 1)])


rows_of_few_keys = st.builds(
    row,
    st.sampled_from(["c", "u", "d", "r", "u", "t"]),
    st.integers(0, 8),
    st.sampled_from([b"a", b"b"]),
    st.sampled_from(["", "", "x", "y", "xy"]),
)


@given(st.lists(rows_of_few_keys, max_size=9, unique_by=lambda one: (one.order, one.key)), st.randoms())
def test_the_state_depends_on_the_changes_and_not_on_how_they_come(rows: list[TypedRow], draw: random.Random):
    """Any order, any cuts, any repetition: the same rows, deletes and floor as in one batch."""
    wanted = state_of(rows)
    arrived = draw.sample(rows * 3, len(rows) * 3)
    cuts = sorted(draw.randrange(len(arrived) + 1) for _ in range(draw.randrange(5)))
    batches = [arrived[i:j] for i, j in zip([0, *cuts], [*cuts, len(arrived)], strict=True)]
    found = state_of(*batches)
    assert (found.rows, found.deletes, found.floor) == (wanted.rows, wanted.deletes, wanted.floor)


def _position(connector: str, number: int) -> dict[str, object]:
    """Return the members of Debezium's source that say a position."""
    return {
        "mysql": {"file": "b.000001", "pos": number, "row": 0},
        "postgresql": {"lsn": number, "sequence": f'["{number}","{number}"]'},
        "oracle": {"scn": f"{number}", "commit_scn": f"{number}"},
        "sqlserver": {"commit_lsn": f"00000025:00000d98:{number:04x}", "change_lsn": f"00000025:00000d98:{number:04x}"},
    }[connector]


def _sent(producer: str, kind: str, number: int, id: int, value: int | None) -> bytes:
    """Return a message about a row: a change, one of a full load (`r`), or one that was read in mid-stream (`i`)."""
    row = {"id": id, "v": value}
    images = {"before": row, "after": None} if kind == "d" else {"before": None, "after": row}
    if producer == "oms_default":
        operation = {"c": "INSERT", "u": "UPDATE", "d": "DELETE", "r": "ROW", "i": "ROW"}[kind]
        meta = {"table_name": "t", "db": "d", "record_primary_key": "id"}
        meta |= {} if kind == "r" else {"storeDataSequence": f"16093{number:05}00001"}
        structs = {"prevStruct": images["before"], "postStruct": images["after"]}
        return json.dumps(structs | {"allMetaData": meta, "recordType": operation}).encode()
    source = {"connector": producer, "db": "d", "table": "t", **_position(producer, number)}
    source |= {"snapshot": {"r": "first_in_data_collection", "i": "incremental"}.get(kind, "false")}
    envelope = images | {"source": source, "op": "r" if kind in "ri" else kind, "ts_ms": 1}
    return json.dumps({"key": {"id": id}, "value": envelope}).encode()


def _history(random: random.Random, producer: str) -> tuple[list[tuple[bytes, Arrival]], dict[int, int]]:
    """Return what a source sends, in the order of its arrival, and what its table holds in the end.

    Some changes are never sent: what was lost before a table was read again. A reading has the position of the last change.
    """
    table = dict.fromkeys(range(6), 0)
    sent = [_sent(producer, "r", 1, id, value) for id, value in table.items()]
    number = 1
    for _ in range(40):
        id, number = random.randrange(9), number + random.choice((0, 1)) + 1
        is_lost = random.random() < 0.2
        if id in table and random.random() < 0.3:
            del table[id]
            sent += [] if is_lost else [_sent(producer, "d", number, id, None)]
            # What a reading does not find is no row, but its source deletes it there, too.
            sent += [_sent(producer, "d", number, id, None)] if is_lost else []
        else:
            kind = "u" if id in table else "c"
            table[id] = number
            sent += [] if is_lost else [_sent(producer, kind, number, id, number)]
        if random.random() < 0.1:
            sent += [_sent(producer, "i", number, one, value) for one, value in table.items()]
    sent += [_sent(producer, "i", number, one, value) for one, value in table.items()]
    for _ in range(3):
        id, number = random.randrange(9), number + 1
        sent.append(_sent(producer, "u" if id in table else "c", number, id, number))
        table[id] = number
    return [(text, Arrival(topic="t", partition=0, offset=i)) for i, text in enumerate(sent)], table


@pytest.mark.slow
@pytest.mark.parametrize("producer", ["mysql", "postgresql", "oracle", "sqlserver", "oms_default"])
def test_a_row_that_is_read_again_in_mid_stream_has_its_place_there(producer: str):
    """It wins against what came before and loses to what comes behind, however all of it is cut and shuffled."""
    for seed in range(60):
        draw = random.Random(f"{producer} {seed}")
        messages, table = _history(draw, producer)
        came = draw.sample(messages, len(messages)) if seed % 3 else messages
        format = producer if producer == "oms_default" else "debezium"
        changes = [[replace(one, place=place) for one in to_changes(text, format)] for text, place in came]
        size = draw.choice((1, 7, 1000))
        maker, state = TypedRows(Tables()), TableState("t")
        for i in range(0, len(changes), size):
            batch = maker.of_batch(changes[i : i + size])
            assert batch.rejects == []
            state.merge(batch.rows)
        (made,) = maker.tables.tables
        rows = [
            values_of(pieces, lambda piece, made=made: image(piece, made.versions)) for pieces in state.rows.values()
        ]
        assert {int(row["id"]): int(row["v"]) for row in rows} == table, seed


def test_a_statement_comes_before_what_was_read_behind_it():
    """In one batch with the CREATE of its table, a row that an incremental snapshot has read is one of that table."""
    create = {"source": {"connector": "mysql", "db": "d", "table": "t", "file": "b.000001", "pos": 5, "row": 0}}
    create |= {"databaseName": "d", "ddl": "CREATE TABLE t (id INT PRIMARY KEY, v INT)", "tableChanges": [], "ts_ms": 1}
    drop = {**create, "ddl": "DROP TABLE t", "source": create["source"] | {"pos": 2}}
    texts = [json.dumps(drop).encode(), json.dumps(create).encode(), _sent("mysql", "i", 9, 1, 7)]
    messages = [
        [replace(one, place=Arrival(file="f", line=i)) for one in to_changes(text, "debezium")]
        for i, text in enumerate([_sent("mysql", "c", 1, 1, 3), *texts], 1)
    ]
    maker = TypedRows(Tables())
    batch = maker.of_batch(messages)
    assert batch.rejects == []
    read = [row for row in batch.rows if row.operation == "r"]
    assert [(row.table, is_of_full_load(row.order)) for row in read] == [(1, False)]


SOURCE = Source(format="canal", db_type="mysql", database="d", table="t")


def versions(*statements: str) -> list[TableSchema]:
    """Return a table with the key (a, b) through statements."""
    columns = [Column(name=name, type=declared) for name, declared in (("a", "INT"), ("b", "VARCHAR(9)"), ("c", "INT"))]
    found = [create_table(TableName("d", None, "t"), columns, ["a", "b"], SOURCE)]
    for statement in statements:
        found.append(evolve(found[-1], statement, source=SOURCE).schema)
    return found


@pytest.mark.parametrize(
    "statement",
    [
        "ALTER TABLE t ADD COLUMN d INT FIRST",
        "ALTER TABLE t RENAME COLUMN a TO x",
        "ALTER TABLE t MODIFY a BIGINT",
        "ALTER TABLE t CHANGE b y VARCHAR(99)",
        "ALTER TABLE t DROP COLUMN c",
    ],
)
def test_keys_whose_bytes_stay_are_those_of_the_same_rows(statement: str):
    """Whatever happens to other columns, and to a name."""
    check_keys(versions(statement))


@pytest.mark.parametrize(
    ("statement", "now"),
    [
        ("ALTER TABLE t DROP PRIMARY KEY, ADD PRIMARY KEY (a)", "a"),
        ("ALTER TABLE t DROP PRIMARY KEY, ADD PRIMARY KEY (b, a)", "b, a"),
        ("ALTER TABLE t DROP PRIMARY KEY, ADD PRIMARY KEY (a, c)", "a, c"),
        ("ALTER TABLE t MODIFY a VARCHAR(20)", "a VARCHAR(20), b VARCHAR(9)"),
    ],
)
def test_a_key_under_which_older_rows_are_not_found_is_refused(statement: str, now: str):
    """Other columns, another order, another type."""
    was = "a INT, b VARCHAR(9)" if "20" in now else "a, b"
    expected = f"schema t: its key ({was}) is ({now}) from version 2 on, under which older rows are not found"
    assert error_of(check_keys, versions(statement)) == expected


@pytest.mark.parametrize(
    ("old", "new", "is_same"),
    [
        ("BINARY(4)", "binary (4)", True),
        ("BINARY(4)", "VARBINARY(9)", True),
        ("VARBINARY(4)", "VARBINARY(9)", True),
        ("BIT(1)", "BIT(8)", True),
        ("BINARY(4)", "BINARY(8)", False),
        ("VARBINARY(8)", "BINARY(8)", False),
        ("BIT(8)", "BIT(9)", False),
        ("DECIMAL(40,2)", "DECIMAL(42,2)", True),
        ("DECIMAL(40,2)", "VARCHAR(50)", True),
        ("DECIMAL(40,2)", "DECIMAL(42,4)", False),
        ("DECIMAL(40)", "NUMERIC(42, 2)", False),
        ("VARCHAR(50)", "DECIMAL(40,2)", False),
    ],
)
def test_values_that_are_filled_up_to_another_length_are_another_key(old: str, new: str, is_same: bool):
    """MySQL fills values of BINARY and BIT up with zeros, and decimals behind their point; long ones are texts."""
    first = create_table(TableName("d", None, "t"), [Column(name="a", type=old)], ["a"], SOURCE)
    second = evolve(first, f"ALTER TABLE t MODIFY a {new} NOT NULL", source=SOURCE).schema
    if is_same:
        check_keys([first, second])
    else:
        assert "under which older rows are not found" in error_of(check_keys, [first, second])


def test_a_value_of_a_key_that_its_type_cannot_carry_is_found_under_each_name_of_its_column():
    """It is a text beside the name, which is the first that the column had."""

    def row(id: int, name: str, type: str = "INSERT") -> bytes:
        types = {name: "date", "n": "int"}
        return canal(type, [{name: "0000-00-00", "n": str(id)}], id=id, pkNames=[name], mysqlType=types)

    def rename(id: int, old: str, new: str) -> bytes:
        return canal("ALTER", [], id=id, isDdl=True, sql=f"ALTER TABLE t RENAME COLUMN {old} TO {new}")

    messages = [row(1, "d"), rename(2, "d", "e"), row(3, "e"), rename(4, "e", "`f g`"), row(5, "f g", "DELETE")]
    rows = TypedRows(Tables()).of_batch([to_changes(one, "canal") for one in messages]).rows
    assert [one.version for one in rows] == [1, 2, 3]
    assert len({one.key for one in rows}) == 1


@pytest.mark.parametrize("producer", MESSAGES)
def test_the_shops_keys_stay(producer: str):
    """Through ten versions of `orders`."""
    for table in shop(producer)[0].tables:
        check_keys(table.versions)


def test_the_versions_of_a_row_are_ended_by_what_comes_first_behind_them():
    """A later change, a delete of the key, or what ends all rows; only a change hands on what the next one lacks."""
    changes = {bytes([one]): Statement(one, one) for one in (1, 3, 5)}
    changes |= {bytes([one]): Statement(one, one, frozenset("ab")) for one in (2, 6)}
    deletes, floors = [End(b"\4", 4), End(b"\7", 7)], [End(b"\6\0", None), End(b"\7\0", 8)]
    versions = replay(changes, deletes, floors)
    assert [(one.change.place, one.end) for one in versions] == [
        (1, End(b"\2", 2)),
        (2, End(b"\3", 3)),
        (3, End(b"\4", 4)),
        (5, End(b"\6", 6)),
        (6, End(b"\6\0", None)),
    ]
    assert [one.others for one in versions] == [
        {},
        {"a": (b"\1", 1), "b": (b"\1", 1)},
        {},
        {},
        {"a": (b"\5", 5), "b": (b"\5", 5)},
    ]
    assert replay({b"\5": Statement(5, 5, frozenset("a"))}, deletes)[0].others == {"a": None}
    assert replay({}, deletes) == []


def test_what_is_said_again_is_one_version_where_nothing_is_between():
    """Its orders are kept, and the end is that of the last."""
    versions = replay({bytes([one]): Statement(0, one % 2) for one in (1, 3, 4, 5, 7)}, [End(b"\6", 6)])
    found = without_repetitions(versions, lambda one, other: one.change.place == other.change.place)
    assert [(one.order, one.again, one.end) for one in found] == [
        (b"\1", (b"\3",), End(b"\4", 0)),
        (b"\4", (), End(b"\5", 0)),
        (b"\5", (), End(b"\6", 6)),
        (b"\7", (), None),
    ]


HELD = {"cdcavro.filled": "3", "cdcavro.keyed": "2", "cdcavro.origin": "job 5 abc"}


@pytest.mark.parametrize(
    ("origin", "version", "progress", "said"),
    [
        # The table itself, and the same as a state has it that is older than its lake.
        (Origin("job", 5), 4, Progress(3, 2, is_ahead=False), {"filled": "4", "keyed": "2", "origin": "job 5"}),
        (Origin("job", 5, is_gone=True, beginning="abc"), 3, Progress(3, 2, is_ahead=False), {**HELD}),
        (Origin("job", 5), 2, Progress(3, 2, is_ahead=True), {}),
        # A table that was dropped before the one that goes on, and one that goes on itself.
        (Origin("job", 4, is_gone=True), 7, Progress(7, None, is_ahead=True), {}),
        (
            Origin("job", 6),
            1,
            Progress(1, 1, is_ahead=False),
            {"filled": "1", "keyed": "1", "origin": "job 6"},
        ),
        (
            Origin("job", 6, is_gone=True),
            2,
            Progress(2, 1, is_ahead=False),
            {"filled": "2", "origin": "job 6"},
        ),
        # A state that is older than its lake may not know yet that the table is dropped.
        (Origin("job", 4, beginning="xyz"), 2, Progress(2, None, is_ahead=True), {}),
        # Two tables that were begun in one batch may have each other's number when it is run again.
        (Origin("job", 4), 2, Progress(2, 1, is_ahead=False), {"filled": "2", "origin": "job 4"}),
        (Origin("job", 4, beginning="abc"), 3, Progress(3, 2, is_ahead=False), {"filled": "3", "origin": "job 4 abc"}),
        (Origin("job", 6, beginning="abc"), 2, Progress(3, 2, is_ahead=True), {}),
        (
            Origin("job", 6, beginning="xyz"),
            1,
            Progress(1, 1, is_ahead=False),
            {"filled": "1", "origin": "job 6 xyz"},
        ),
        # Another pipeline's numbers say nothing.
        (Origin("other", 5), 2, Progress(3, 2, is_ahead=False), {"filled": "2", "origin": "other 5"}),
        (Origin("other", 5, is_gone=True), 2, Progress(2, None, is_ahead=True), {}),
        (None, 2, Progress(3, 2, is_ahead=False), {"filled": "2"}),
        (None, 1, Progress(3, 1, is_ahead=False), {"filled": "1"}),
    ],
)
def test_how_far_a_lake_table_is_depends_on_whose_rows_it_takes(
    origin: Origin | None, version: int, progress: Progress, said: dict[str, str]
):
    """And what it is to say behind a write: nothing that another table, or its own later versions, would miss."""
    assert progress_of(HELD, version, origin) == progress
    found = properties_behind(progress, version, origin, HELD, progress.keyed or 1)
    keyed = {} if progress.is_ahead else {"keyed": str(progress.keyed)}
    assert found == {f"cdcavro.{name.removeprefix('cdcavro.')}": value for name, value in {**keyed, **said}.items()}


def test_a_changelog_says_whose_rows_it_takes_and_how_far_it_is_if_it_ever_dropped_a_column():
    """So what it said of another table is not taken for what it says of this one; nothing where no job is known."""
    origin = Origin("job", 6, beginning="xyz")
    assert written_behind(LENIENT, {}, 2, origin) == (LENIENT, {"cdcavro.origin": "job 6 xyz"})
    behind = {"cdcavro.filled": "2", "cdcavro.keyed": "1", "cdcavro.origin": "job 6 xyz"}
    assert written_behind(LENIENT, HELD, 2, origin) == (LENIENT, behind)
    assert written_behind(LENIENT, HELD | behind, 3, origin) == (LENIENT, behind | {"cdcavro.filled": "3"})
    assert written_behind(EVOLVE, {}, 2, origin)[1] == {"cdcavro.filled": "2", "cdcavro.origin": "job 6 xyz"}
    assert written_behind(EVOLVE, {}, 2, None) == (EVOLVE, {})
    # The dropped table that had it before.
    assert written_behind(LENIENT, HELD, 7, Origin("job", 4, is_gone=True)) == (BEHIND, {})
