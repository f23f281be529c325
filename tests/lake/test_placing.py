"""Messages placed in whole batches, held against typed rows one by one."""

from __future__ import annotations

import json
import pickle
import random
from functools import cache
from random import Random
from typing import Any

import pyarrow as pa
import pytest

from cdcavro.change.model import DML, Arrival, Change, replace
from cdcavro.change.order import Clock
from cdcavro.change.order_value import order_value
from cdcavro.engine.machine import COMPILED
from cdcavro.lake import Batch, TypedRows
from cdcavro.lake.placing import ROWS, group_by_table
from cdcavro.lake.typed_rows import DELETE, DROP, TRUNCATE
from cdcavro.table.tables import Tables
from cdcavro.table.writing.message_typer import merge_places
from cdcavro.transcoding.mapping import to_changes
from cdcavro.wire.formats import FORMATS, rule_of
from support.messages import ROW_FORMATS
from support.order_trial import LANES, Exact, Message, Placer, batch_of, learned, row_of, rows_in, same, trial
from support.rows_trial import ZONE, shop

compiled = pytest.mark.skipif(not COMPILED, reason="where nothing is compiled, all goes the exact way")
ARRIVAL = tuple(format for format in FORMATS if rule_of(format).order == "arrival")


def canal(es: int, *ids: int, offset: int = 0, old: list | None = None, table: str = "t") -> Message:
    """Return a message of Canal that inserts rows, or updates them from old values, at a place."""
    rows = [{"id": str(one), "v": "a"} for one in ids]
    message = {
        "data": rows,
        "old": old,
        "type": "INSERT" if old is None else "UPDATE",
        "es": es,
        "ts": es + 1,
        "id": 1,
        "database": "d",
        "table": table,
        "isDdl": False,
        "sql": "",
        "pkNames": ["id"],
        "mysqlType": {"id": "bigint", "v": "varchar(9)"},
        "sqlType": {"id": -5, "v": 12},
    }
    return json.dumps(message).encode(), Arrival(topic="x", partition=0, offset=offset)


def debezium(**members: object) -> bytes:
    """Return a message of Debezium."""
    source = {"connector": "mysql", "db": "d", "table": "t", "file": "b.000001", "pos": 5, "row": 0}
    return json.dumps({"before": None, "source": source, "op": "c", **members}).encode()


def changes_of(format: str, messages: list[Message]) -> list[list[Change]]:
    """Return the changes of each message, where it arrived."""
    return [
        [
            replace(one, place=merge_places(one.place, place))
            for one in to_changes(text, format, zone=ZONE, members=False)
        ]
        for text, place in messages
    ]


def in_lanes(format: str, seed: int) -> list[Message]:
    """Return the shop's messages in some lanes, each of which has its own order; some come twice or three times."""
    random = Random(f"{format} {seed}")
    lanes = random.sample([lane for lane in LANES if lane.topic is not None], random.choice((1, 3, 6)))
    runs: list[list[bytes]] = [[]]
    for message in shop(format):
        is_row = all(one.op in DML for one in to_changes(message, format, zone=ZONE))
        runs += [] if is_row else [[message], []]
        runs[-1] += random.choice((1, 1, 1, 2, 3)) * [message] if is_row else []
    # Between statements, lanes run backwards in time, too.
    sent = [one for run in runs for one in random.sample(run, len(run) if seed % 2 else 0) or run]
    at = dict.fromkeys(range(len(lanes)), 0)
    placed = []
    for message in sent:
        number = random.randrange(len(lanes))
        at[number] += random.choice((1, 1, 2))
        placed.append((message, replace(lanes[number], offset=at[number])))
    return placed


def cut(random: Random, messages: list[Message]) -> list[list[Message]]:
    """Return messages in batches."""
    ends = sorted(random.sample(range(len(messages)), 6))
    return [messages[start:end] for start, end in zip([0, *ends], [*ends, len(messages)], strict=True)]


@cache
def expected(format: str, seed: int) -> tuple[list[Message], TypedRows, Batch]:
    """Return messages, and what became of them in one batch, one change after another."""
    messages = in_lanes(format, seed)
    maker = TypedRows(Tables(zone=ZONE))
    return messages, maker, maker.of_batch(changes_of(format, messages))


@pytest.mark.slow
@pytest.mark.parametrize("seed", [0, 1, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(2, 8))])
@pytest.mark.parametrize("format", FORMATS)
def test_rows_are_those_of_typed_rows_wherever_batches_are_cut(format, seed):
    """In several lanes, with statements, moved keys and repetitions, backwards in time; a task may go on elsewhere."""
    messages, maker, batch = expected(format, seed)
    random = Random(seed)
    placer = Placer(format, maker.tables, dropped=batch.dropped)
    rows, unplaced, statements = [], 0, 0
    for some in cut(random, messages):
        placed = placer.of_batch(batch_of(some))
        assert all(one.schema == ROWS for one in placed.rows)
        rows += rows_in(placed.rows)
        unplaced += len(placed.unplaced)
        statements += placed.statements
        if random.random() < 0.3:
            placer = Placer(format, maker.tables, json.loads(json.dumps(placer.clock.state)), dropped=batch.dropped)
    assert sorted(rows, key=repr) == sorted(map(row_of, batch.rows), key=repr)
    assert len(rows) > 170
    assert any(row[2] == "x" for row in rows) is bool(batch.dropped)
    assert placer.clock.state == maker.clock.state
    assert bool(placer.clock.state) is (format in ARRIVAL)
    assert statements == batch.statements
    refused = sum(change.op in DML or change.op == "TRUNCATE" for change, _ in batch.rejects)
    # A message of several tables is unplaced as a whole.
    assert unplaced == refused if format in ROW_FORMATS else 0 < unplaced <= refused or unplaced == refused == 0


@compiled
@pytest.mark.parametrize("format", ROW_FORMATS)
def test_most_rows_of_the_second_reading_are_made_by_the_engine(format):
    """A test of equality alone would pass if it left everything; halves and statements are left."""
    placer = Placer(format, learned(format))
    for base in (0, 1000):
        messages = [(one, Arrival(topic="t", partition=0, offset=base + i)) for i, one in enumerate(shop(format))]
        before = placer.taken
        placed = placer.of_batch(batch_of(messages))
    share = (placer.taken - before) / sum(one.num_rows for one in placed.rows)
    assert share > (0.0 if format == "datahub_blob" else 0.4)


@pytest.mark.slow
@pytest.mark.parametrize("format", FORMATS)
def test_damaged_messages_have_the_same_order_or_the_same_error(format):
    """Numbers of all sizes, places of all kinds, lanes that come behind: as one after another."""
    assert sum(trial(format, 300, 1).values()) > 200


@pytest.mark.slow
@pytest.mark.parametrize("format", ARRIVAL)
def test_more_lanes_than_the_engine_knows_at_a_time(format):
    """Their times come from the clock, and go back to it."""
    random, at = Random(format), [0] * 300
    exact, placer = Exact(format), Placer(format, learned(format))
    for _ in range(2):
        messages = []
        for _ in range(1500):
            lane = random.randrange(300)
            at[lane] += random.choice((0, 1))
            messages.append((random.choice(shop(format)), Arrival(topic="t", partition=lane, offset=at[lane])))
        same(placer, exact, messages)
    assert len(placer.clock.state) > 290


def placed_as_exactly(messages: list[Message], format: str = "canal") -> Placer:
    """Place messages in one batch, and check them and the clock against the exact way."""
    maker = TypedRows(Tables(zone=ZONE))
    wanted = [row_of(row) for row in maker.of_batch(changes_of(format, messages)).rows]
    placer = Placer(format, pickle.loads(pickle.dumps(maker.tables)))
    assert sorted(rows_in(placer.of_batch(batch_of(messages)).rows), key=repr) == sorted(wanted, key=repr)
    assert placer.clock.state == maker.clock.state
    return placer


@pytest.mark.parametrize(
    "second", ["2017-06-16T14:24:34", "2016-03-25T12:45:11", "2286-11-20T17:46:39", "1969-12-31T00:00:00"]
)
def test_a_number_of_shareplex_is_what_its_times_say(second):
    """A time with a counter or one number, by the engine as by the exact way, at both ends of a day."""
    scns = [
        "9999999999",
        "10000000000",
        "14589063118712",
        "14589063118",
        "1458906311",
        "99999999999",
        "7",
        str(2**63 - 1),
    ]
    scns += [f"{seconds}12" for seconds in (1_458_909_911 + shift for shift in range(-86_401, 86_402, 86_400))]
    texts = [
        json.dumps({"data": {"id": 1}, "meta": {"op": "ins", "table": "d.t", "scn": scn, **times}}).encode()
        for scn in scns
        for times in (
            *({"time": second}, {"posttime": second}, {"time": second, "posttime": "2017-06-16T14:33:52"}, {}),
            *({"time": second, "rowid": "AAATGpAAIAAItcIAAA"}, {"time": second, "rowid": "d.t-1"}),
        )
    ]
    messages = [(text, Arrival(topic="x", partition=0, offset=i)) for i, text in enumerate([*texts, *texts])]
    placer = placed_as_exactly(messages, "oms_shareplex")
    # The engine leaves times that its table of zones does not reach.
    assert not COMPILED or second[:3] != "201" or placer.placing._typer.taken > len(texts)


def kinds_of(placer: Placer, messages: list[Message]) -> list[bytes]:
    """Return what the order values of messages begin with, as far as they differ; the engine makes all of them."""
    taken = placer.placing._typer.taken
    rows = rows_in(placer.of_batch(batch_of(messages)).rows)
    assert not COMPILED or placer.placing._typer.taken - taken == len(rows)
    return sorted({row[3][:2] for row in rows})


def test_rows_of_full_loads_come_before_all_changes():
    """With or without a place; a row that was inserted while a snapshot was read is none."""
    told = {"connector": "mysql", "db": "d", "table": "t", "file": "b.000001", "pos": 5, "row": 0}
    texts = [debezium(op="r", after={"id": 1}), debezium(op="c", after={"id": 2}, source=told | {"snapshot": "last"})]
    messages = [(text, place) for text in texts for place in (None, Arrival(offset=7), Arrival(file="f", line=1))] * 2
    assert kinds_of(placed_as_exactly(messages, "debezium"), messages) == [b"\1\0", b"\2\3"]


def test_a_row_that_was_read_in_mid_stream_is_ordered_as_a_change():
    """By the engine, too, which tells it from a row of a full load."""
    told = {"connector": "mysql", "db": "d", "table": "t", "file": "b.000001", "pos": 5, "row": 0}
    texts = [
        debezium(op="r", after={"id": i}, source=told | {"snapshot": snapshot})
        for i, snapshot in enumerate(("incremental", "true", "incremental", "last", True, "first", "incremental"))
    ]
    messages = [(text, Arrival(topic="t", partition=0, offset=i)) for i, text in enumerate(texts * 2)]
    placer = placed_as_exactly(messages, "debezium")
    assert kinds_of(placer, messages) == [b"\1\0", b"\2\3"]
    assert kinds_of(placer, [one for one in messages if b"incremental" in one[0]]) == [b"\2\3"]


@pytest.mark.parametrize("first", [0, 1])
@pytest.mark.parametrize("other", ["0", "-1", "", "abc", 0, -1, None])
def test_a_row_of_oms_with_a_place_is_ordered_as_a_change_whatever_comes_before_it(other, first):
    """A member that is there tells it from a row of a full load, in the engine as in the exact way."""
    told = {"dbType": "MYSQL", "db": "d", "table_name": "t", "record_primary_key": "id", "record_primary_value": "1"}
    texts = []
    for sequence in [other, "160933333300001"][:: 1 if first else -1] * 2:
        meta = told | {"storeDataSequence": sequence}
        texts.append({"prevStruct": None, "postStruct": {"id": "1"}, "allMetaData": meta, "recordType": "ROW"})
    messages = [(json.dumps(text).encode(), Arrival(topic="t", partition=0, offset=i)) for i, text in enumerate(texts)]
    placed_as_exactly(messages, "oms_default")


def test_what_orders_a_message_is_the_most_that_it_states():
    """A time, the number of a batch alone, or nothing but the place; without a place numbers have to do."""
    whole = json.loads(canal(1000, 1)[0])
    texts = [whole, {**whole, "es": None}, {**whole, "es": None, "id": None}, {**whole, "type": "INIT"}]
    raw = [json.dumps(one).encode() for one in texts]
    messages = [(one, Arrival(topic="x", partition=i, offset=k)) for k in range(3) for i, one in enumerate(raw)]
    again = [(text, replace(place, offset=place.offset + 3)) for text, place in messages]
    assert kinds_of(placed_as_exactly(messages), again) == [b"\1\0", b"\2\5", b"\2\6", b"\2\7"]
    unplaced = [(one, None) for one in raw[:2]] * 2
    assert kinds_of(placed_as_exactly(unplaced), unplaced) == [b"\2\2", b"\2\3"]


def test_commits_of_tidb_are_ordered_by_their_numbers():
    """By the engine as by the exact way, also where some messages of the table have none, or what is no number."""
    whole = json.loads(canal(1000, 1)[0])
    extensions = [{"commitTs": 5 - i, "rowkey": f"{i}"} for i in range(3)] + [{"rowkey": "x"}, {"commitTs": -1}, None]
    raw = [json.dumps({**whole, "_tidb": one}).encode() for one in (*extensions[:3], {"commitTs": 7})]
    messages = [(one, Arrival(topic="x", partition=i % 2, offset=i)) for i, one in enumerate([*raw, *raw, *raw])]
    assert kinds_of(placed_as_exactly(messages), messages) == [b"\2\3"]
    for one in extensions[3:]:
        other = (json.dumps({**whole, "_tidb": one}).encode(), Arrival(topic="x", partition=5, offset=1))
        placed_as_exactly([*messages, other, *messages])
    large = (json.dumps({**whole, "_tidb": {"commitTs": 9, "onlyHandleKey": True}}).encode(), None)
    placer = placed_as_exactly(messages)
    assert len(rows_in(placer.of_batch(batch_of([*messages, large])).rows)) == len(messages)


def test_a_lane_has_the_most_that_was_stated_there():
    """Whatever comes behind with less, or with fewer numbers."""
    whole = json.loads(canal(1000, 1)[0])
    texts = [{**whole, "es": None}, {**whole, "es": None, "id": 7}, whole, {**whole, "id": None}]
    raw = [json.dumps(one).encode() for one in (*texts, {**whole, "es": None, "id": 9})] * 2
    messages = [(one, Arrival(topic="x", partition=0, offset=i)) for i, one in enumerate(raw)]
    assert placed_as_exactly(messages).clock.state[0][2:] == [2, [1000, 1], 0]
    other = [(raw[i], Arrival(topic="x", partition=1, offset=k)) for k, i in enumerate((1, 2, 4))]
    assert placed_as_exactly(messages + other).clock.state[1][2:] == [2, [1000, 1], 0]
    raised = [raw[3], raw[3], raw[2], raw[2]]
    messages = [(one, Arrival(topic="x", partition=0, offset=i)) for i, one in enumerate(raised)]
    assert placed_as_exactly(messages).clock.state[0][2:] == [2, [1000, 1], 0]


def test_rows_of_one_message_are_in_its_order():
    """However many there are; the engine makes those of the second message."""
    messages = [canal(1000 + i, *range(300), offset=i) for i in range(3)]
    placer = placed_as_exactly(messages)
    assert placer.placing._typer.taken == (600 if COMPILED else 0)
    orders = [row[3] for row in rows_in(placer.of_batch(batch_of([canal(2000, *range(300), offset=9)])).rows)]
    assert orders == sorted(set(orders))


def test_a_moved_key_counts_for_what_comes_behind_it_in_its_lane():
    """Whether the engine makes its rows or leaves it; a later time begins to count anew."""
    move = [{"id": "9"}]
    messages = [canal(1000, 1), canal(2000, 2, offset=1), canal(2000, 3, offset=2, old=move), canal(1500, 4, offset=3)]
    messages += [canal(2000, 5, offset=4), canal(2000, 6, offset=5, old=move), canal(2000, 7, offset=6)]
    assert placed_as_exactly(messages).clock.state[0][2:] == [2, [2000, 1], 2]
    assert placed_as_exactly([*messages, canal(3000, 8, offset=7)]).clock.state[0][2:] == [2, [3000, 1], 0]


@compiled
def test_the_engine_makes_the_delete_and_the_insert_of_a_moved_key():
    """Beside rows that stay, with the times of their lane; what is only spelled otherwise goes the exact way."""
    olds = [{"id": "9"}, {"id": "8", "v": "b"}, {"v": "b"}, {}]
    known = [
        canal(1000, 1),
        canal(1000, 1, offset=1, old=[{"v": "b"}]),
        canal(1000, 1, 2, offset=2, old=[{"v": "b"}] * 2),
    ]
    messages = [canal(1000, 3, 4, offset=3 + i, old=[olds[i % 4], olds[i // 4 % 4]]) for i in range(16)]
    placer = placed_as_exactly([*known, *messages])
    assert placer.taken > 2 * len(messages)
    before, moved = placer.taken, batch_of([canal(5000, 3, offset=20, old=[{"id": "9"}])])
    assert [row[2] for row in rows_in(placer.of_batch(moved).rows)] == ["d", "c"]
    assert placer.taken == before + 2
    spelled = [canal(6000, 3, offset=21 + i, old=[{"id": text}]) for i, text in enumerate(("03", "+3", "3"))]
    placed_as_exactly([*known, *messages, *spelled])


@compiled
def test_an_update_that_moves_a_key_teaches_the_engine_its_pattern():
    """Where all updates of a table do, only the first takes the exact way; others of the pattern may stay."""
    moves = [canal(1000, 2, offset=1 + i, old=[{"id": f"{9 + i}"}]) for i in range(5)]
    assert placed_as_exactly([canal(1000, 1), *moves]).taken == 2 * 4
    stay = [canal(2000, 2, offset=9 + i, old=[{"v": "b"}]) for i in range(3)]
    assert placed_as_exactly([canal(1000, 1), *moves, *stay]).taken == 2 * 4 + 3


@pytest.mark.parametrize("seed", range(2))
def test_rows_with_moved_keys_are_those_of_typed_rows(seed):
    """Any number of rows, keys that are null, missing or spelled otherwise, rows that lack columns, times that go back."""
    random, messages = Random(seed), [canal(1000, 1), canal(1000, 1, offset=1, old=[{"v": "b"}])]
    olds = [
        None,
        {},
        {"v": "b"},
        {"id": "7"},
        {"id": "7"},
        {"id": "8", "v": None},
        {"id": "03"},
        {"id": None},
        {"id": "x"},
    ]
    for i in range(400):
        ids = [random.randrange(5) for _ in range(random.choice((1, 1, 2, 3)))]
        old = [random.choice(olds) for _ in ids] if random.random() < 0.8 else None
        text, place = canal(
            random.choice((1000, 2000, 3000)), *ids, offset=2 + i - random.choice((0, 0, i % 2)), old=old
        )
        if random.random() < 0.1:
            text = text.replace(b', "v": "a"}', b"}", 1)
        messages.append((text, replace(place, partition=i % 2)))
    placer = placed_as_exactly(messages)
    assert not COMPILED or placer.taken > 300


@pytest.mark.parametrize("seed", range(3))
def test_a_message_without_a_position_counts_with_its_time_whoever_makes_its_rows(seed):
    """In its lane the greatest so far, and a position is greater than all times; rows of a bootstrap and others have neither."""
    random, at, messages = Random(seed), [0] * 4, []
    for i in range(300):
        lane = random.randrange(4)
        at[lane] += random.choice((0, 1, 1))
        kind = random.choice(("insert", "insert", "bootstrap-insert"))
        row = {"database": "d", "table": "t", "type": kind, "xid": 7, "data": {"id": i % 50, "v": 1}}
        row |= {"ts": random.randrange(1, 1 + i)} if i and random.random() < 0.9 else {}
        is_positioned = lane == 3 and random.random() < 0.1
        row |= {"position": f"b.{random.randrange(1, 3)}:{random.randrange(9)}"} if is_positioned else {}
        create = {"database": "d", "table": "t", "type": "table-create", "ts": 0}
        create |= {"sql": "CREATE TABLE t (id INT PRIMARY KEY, v INT)"}
        messages.append(
            (json.dumps(row if i else create).encode(), Arrival(topic="x", partition=lane, offset=at[lane]))
        )
    placer = placed_as_exactly(messages, "maxwell")
    assert not COMPILED or placer.taken > 200
    times = [lane[3] for lane in placer.clock.state]
    assert [one[0] > 0 for one in times] == [False, False, False, True]
    assert all(one[1] > 0 for one in times)


def test_a_message_at_the_place_of_the_last_has_its_time():
    """Whatever numbers it has: a place is told once."""
    messages = [canal(1000, 1), canal(1000, 2, offset=1), canal(5000, 3, offset=1), canal(2000, 4, offset=2)]
    assert placed_as_exactly(messages).clock.state[0][2:] == [2, [2000, 1], 0]


@pytest.mark.parametrize("numbers", [[2**70, 1], [2**62, *range(40)]])
def test_a_clock_may_know_times_that_no_message_states_plainly(numbers):
    """Numbers of more than 64 bits, or too many of them: the exact way goes on with them."""
    state = [[["x", 0, ""], ["x", 0, 5, "", 0], 2, numbers, 3]]
    clock, messages = Clock(state), [canal(1000, one, offset=5 + one) for one in range(1, 5)]
    tables = Tables(zone=ZONE)
    for change in changes_of("canal", messages)[0]:
        tables.learn(change)
    wanted = [order_value(one, time=clock.time(one)) for (one,) in changes_of("canal", messages)]
    placer = Placer("canal", tables, state)
    assert sorted(row[3] for row in rows_in(placer.of_batch(batch_of(messages)).rows)) == sorted(wanted)
    assert placer.clock.state == clock.state


def test_a_message_behind_in_its_lane_is_not_placed():
    """Nobody knows its time any more; the others go on."""
    placer = placed_as_exactly([canal(1000, one, offset=one) for one in range(5)])
    placed = placer.of_batch(batch_of([canal(1000, 8, offset=8), canal(1000, 9, offset=3), canal(1000, 9, offset=9)]))
    ((index, error),) = placed.unplaced
    assert (index, str(error)) == (1, "canal: expected a place of its lane from offset 8 on, got offset 3")
    assert placer.clock.state[0][1] == ["x", 0, 9, "", 0]
    assert len(rows_in(placed.rows)) == 2


def test_what_could_not_be_placed_is_told_with_its_message():
    """What is no message, a row of an unknown table, a row without an order; statements and heartbeats are only counted."""
    tables = Tables()
    (change,) = to_changes(debezium(after={"id": 1}), "debezium")
    tables.learn(change)
    unordered = json.loads(debezium(after={"id": 1}))
    unordered["source"] = {"connector": "mysql", "db": "d", "table": "t"}
    other = json.loads(debezium(after={"id": 1}))
    other["source"]["table"] = "u"
    messages = [debezium(after={"id": 1}), None, b"{", json.dumps(unordered).encode(), json.dumps(other).encode()]
    messages += [b'{"ts_ms":1}', debezium(after={"id": 2})]
    placed = Placer("debezium", tables).of_batch(pa.RecordBatch.from_arrays([pa.array(messages)], ["message"]))
    assert [(i, type(error).__name__) for i, error in placed.unplaced] == [
        (2, "TextError"),
        (3, "OrderError"),
        (4, "SchemaError"),
    ]
    assert (sum(one.num_rows for one in placed.rows), placed.statements) == (2, 1)


def test_rows_that_lack_columns_say_so():
    """As `absent` of typed rows does, by the engine and exactly; a deleted row lacks nothing."""
    texts = [debezium(after={"id": 1, "v": 2})] * 2 + [debezium(after={"id": 1})] * 3
    texts += [debezium(before={"id": 1}, after=None, op="d")] * 3
    tables = Tables()
    for change in to_changes(texts[0], "debezium"):
        tables.learn(change)
    placer = Placer("debezium", tables)
    rows = rows_in(placer.of_batch(batch_of([(one, None) for one in texts])).rows)
    assert sorted((row[2], row[-1]) for row in rows) == [("c", False)] * 2 + [("c", True)] * 3 + [("d", False)] * 3


def test_a_topic_that_names_tables_goes_the_exact_way():
    """Rows that name none are of the table called as their topic."""
    message = b'{"op":"c","before":null,"after":{"id":1}}'
    tables = Tables(table="@topic")
    messages = [(message, Arrival(topic=topic, partition=0, offset=i)) for i, topic in enumerate("abab")]
    for changes in changes_of("debezium", messages):
        tables.learn(tables.with_given_table(changes[0]))
    placed = Placer("debezium", tables).of_batch(batch_of(messages))
    assert sorted(row[0] for row in rows_in(placed.rows)) == [0, 0, 1, 1]


def test_a_place_has_no_other_fields():
    """What is told and not known would be lost."""
    told = pa.StructArray.from_arrays([pa.array([1])], ["offzet"])
    with pytest.raises(TypeError, match="a place has topic, partition, offset, file, line, not 'offzet'"):
        Placer("canal", Tables()).of_batch(pa.RecordBatch.from_arrays([pa.array([b"{}"]), told], ["m", "p"]))


def test_places_may_have_some_fields_of_other_widths_and_begin_anywhere():
    """As a slice of a larger batch has them."""
    messages = [canal(1000 + one, one, offset=one) for one in range(8)]
    placer = placed_as_exactly(messages)
    told = pa.StructArray.from_arrays(
        [pa.array(range(8), pa.int32()), pa.array([None, "x"] * 4, pa.large_string())],
        ["offset", "topic"],
        mask=pa.array([False] * 6 + [True] * 2),
    )
    narrow = pa.RecordBatch.from_arrays([pa.array([one for one, _ in messages], pa.large_binary()), told], ["m", "p"])
    whole = [
        replace(place, topic=None, partition=None) if i % 2 == 0 else None for i, (_, place) in enumerate(messages)
    ]
    clock = Clock()
    wanted = []
    for (text, _), place in [(one, place) for one, place in zip(messages, whole, strict=True) if place][1:3]:
        (change,) = changes_of("canal", [(text, place)])[0]
        wanted.append(order_value(change, time=clock.time(change)))
    again = Placer("canal", placer.tables)
    found = {row[3] for row in rows_in(again.of_batch(narrow.slice(2, 4)).rows)}
    assert found >= set(wanted)
    assert again.clock.state == clock.state


Row = dict[str, Any]
TYPES = pa.schema(
    [
        ("number", pa.int32()),
        ("version", pa.int32()),
        ("operation", pa.string()),
        ("order", pa.binary()),
        ("key", pa.binary()),
        ("payload", pa.binary()),
        ("lacks", pa.bool_()),
    ]
)


def drawn(draw: random.Random, count: int) -> list[Row]:
    """Return rows of three tables, of which the third is partial; their orders are of no order."""
    orders = [i.to_bytes(4, "big") for i in range(count)]
    draw.shuffle(orders)
    return [
        {
            "number": (number := draw.randrange(3)),
            "version": draw.choice([1, 1, 2]),
            "operation": draw.choice(["c", "u", "r", DELETE, TRUNCATE, DROP]),
            "order": order,
            "key": draw.choice([None, b"1", b"2", b"3"]),
            "payload": draw.randbytes(3),
            "lacks": number == 2 and draw.random() < 0.2,
        }
        for order in orders
    ]


def table_of(rows: list[Row], size: int) -> pa.Table:
    """Return rows that come in batches."""
    batches = [pa.RecordBatch.from_pylist(rows[i : i + size], TYPES) for i in range(0, len(rows), size)]
    return pa.Table.from_batches(batches)


@pytest.mark.parametrize("seed", range(20))
def test_of_each_key_the_last_change_of_a_version_stays(seed: int) -> None:
    """Whatever the order of arrival and the batches; the last deletes of a table with dropped columns, rows of partial tables, ends of tables and rows without a key all stay."""
    draw = random.Random(seed)
    rows = drawn(draw, 60)
    if seed % 3 == 0:
        rows.sort(key=lambda row: row["order"])
    dropped = {2} if seed % 2 else set()
    found = group_by_table(table_of(rows, draw.randrange(1, 61)), (0, 2), dropped).to_pylist()
    is_partial = any(row["lacks"] for row in rows)
    reduced = {0} if is_partial else {0, 2}

    def stays(row: Row) -> bool:
        if row["number"] not in reduced or row["key"] is None or row["operation"] in {TRUNCATE, DROP}:
            return True
        rivals = [
            one["order"]
            for one in rows
            if all(one[name] == row[name] for name in ("number", "key", "version"))
            and one["operation"] not in {TRUNCATE, DROP}
            and (row["number"] not in dropped or (one["operation"] == DELETE) is (row["operation"] == DELETE))
        ]
        return bool(row["order"] == max(rivals))

    wanted = [row for row in rows if stays(row)]
    assert found == sorted(wanted, key=lambda row: row["number"])


@pytest.mark.parametrize("keys", [b"", b"1", b"123", b"121", b"1231", b"11"])
def test_keys_that_are_new_stay(keys: bytes) -> None:
    """All rows, where each has a key of its own."""
    rows = [
        {**row, "number": 0, "version": 1, "operation": "c", "key": bytes([key]), "order": b"%d" % i, "lacks": False}
        for i, (row, key) in enumerate(zip(drawn(random.Random(1), len(keys)), keys, strict=True))
    ]
    found = group_by_table(table_of(rows, 2) if rows else TYPES.empty_table(), (0,)).to_pylist()
    assert found == [row for i, row in enumerate(rows) if row["key"] not in [one["key"] for one in rows[i + 1 :]]]


def test_nothing_is_left_out_where_all_changes_are_wanted() -> None:
    """Rows are put one table behind the other, each table's in the order in which they came."""
    rows = drawn(random.Random(1), 50)
    assert group_by_table(table_of(rows, 7)).to_pylist() == sorted(rows, key=lambda row: row["number"])
