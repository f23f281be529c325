"""The order of changes, changes of a key, and shards."""

from __future__ import annotations

import operator
import pickle
import random
import zlib
from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st

import cdcavro
from cdcavro.change.model import Arrival, Change, Row, Source, replace
from cdcavro.change.order import file_order, in_order, join_halves, order_key, precedes, shard, split_key_change
from cdcavro.errors import OrderError
from cdcavro.exact.numbers import ExactNumber
from cdcavro.transcoding.mapping import from_changes, to_changes
from support.facts import facts_of, text_of
from support.roundtrip import error_of, exact

BLOB = Source(format="datahub_blob", database="d", table="t")


def line(number: int) -> Arrival:
    """Return a line of one file."""
    return Arrival(file="a.jsonl", line=number)


def test_the_formats_numbers_come_first_then_the_place_then_the_row():
    """Ties inside one transaction or second are broken by arrival, and by the row in a message."""
    wanted = [
        Change(op="SNAPSHOT", place=line(90)),
        Change(op="INSERT", position=(1609344671, 9), place=line(5)),
        Change(op="INSERT", position=(1609344671, 12), place=line(4), row=0, rows=2),
        Change(op="INSERT", position=(1609344671, 12), place=line(4), row=1, rows=2),
        Change(op="INSERT", position=(1609344671, 12), place=line(6)),
        Change(op="INSERT", position=(1609344672, 1), place=line(1)),
    ]
    for seed in range(20):
        shuffled = random.Random(seed).sample(wanted, len(wanted))
        assert sorted(shuffled, key=order_key) == wanted


def test_a_full_load_row_sorts_before_any_change_whatever_its_number():
    """It never beats a newer change."""
    load = Change(op="SNAPSHOT", position=(99,), place=line(9))
    assert order_key(load) < order_key(Change(op="DELETE", position=(1,), place=line(1)))


def test_arrival_is_topic_partition_and_offset():
    """Or file and line."""
    first = Change(op="INSERT", place=Arrival(topic="t", partition=0, offset=9))
    second = Change(op="INSERT", place=Arrival(topic="t", partition=0, offset=10))
    assert order_key(first) < order_key(second)


def test_an_offset_alone_is_one_of_an_unnamed_topic():
    """It is not passed over, and neither is its partition."""
    places = [Arrival(offset=3), Arrival(offset=10), Arrival(partition=1, offset=2)]
    keys = [order_key(Change(op="INSERT", place=place)) for place in places]
    assert sorted(keys) == keys
    assert len(set(keys)) == 3


def test_a_place_beside_a_number_breaks_ties_as_far_as_it_goes():
    """The number alone would do."""
    places = [None, Arrival(), Arrival(offset=1), Arrival(topic="t", offset=2), Arrival(topic="t", offset=3)]
    keys = [order_key(Change(op="INSERT", position=(1,), place=place)) for place in places]
    assert sorted(keys) == keys
    assert len(set(keys)) == 4


def test_an_offset_counts_before_a_line_and_a_line_before_a_topic_alone():
    """The records of a topic in a file may come from many partitions; without offsets the file says the order."""
    shown = [Arrival(topic="b", partition=0, offset=1), Arrival(topic="a"), Arrival(topic="a", offset=7)]
    places = [replace(place, file="f", line=9 - i) for i, place in enumerate(shown)]
    keys = [order_key(Change(op="INSERT", place=place))[2] for place in places]
    assert keys == [("b", 0, 1, "", 0), ("", 0, 0, "f", 8), ("", 0, 0, "f", 7)]
    assert order_key(Change(op="INSERT", position=(1,), place=Arrival(topic="a")))[2] == ("", 0, 0, "", 0)


CANAL = Source(format="oms_canal", table="t")
OMS = Source(format="oms_default", table="t")


@pytest.mark.parametrize(
    ("one", "other", "format", "got"),
    [
        (
            Change(op="INSERT", source=OMS, position=(5,), place=line(1)),
            Change(op="DELETE", source=OMS, place=line(2)),
            "oms_default",
            "some with numbers and some with no numbers",
        ),
        (
            Change(op="INSERT", source=CANAL, position=(5, 9), event_time=5000),
            Change(op="DELETE", source=CANAL, position=(10,)),
            "oms_canal",
            "some with the number of a batch without its time and some with numbers",
        ),
        (
            Change(op="INSERT", source=CANAL, position=(5,), event_time=5000, place=line(1)),
            Change(op="DELETE", source=CANAL, position=(4,), event_time=4000),
            "oms_canal",
            "some with numbers and some with a place that says the order",
        ),
    ],
)
def test_changes_whose_keys_say_different_things_are_not_put_in_order(one, other, format, got):
    """Neither by numbers that one lacks nor by the place, which may contradict those of the others."""
    expected = f"{format}: expected the same kind of position in all changes of 't', got {got}"
    for changes in ([one, other], [other, one], [one, one, other]):
        assert error_of(partial(sorted, changes, key=order_key)) == expected
        assert error_of(partial(max, changes, key=order_key)) == expected
    for compare in (operator.le, operator.ge):
        assert error_of(compare, order_key(one), order_key(other)) == expected
    bare = [replace(change, position=None, place=line(i)) for i, change in enumerate((other, one))]
    assert [change.op for change in sorted(bare, key=order_key)] == ["DELETE", "INSERT"]


def canal(es: int, partition: int, offset: int, *, id: int = 1) -> Change:
    """Return a change of Canal, made at a time, that arrived at a place."""
    text = f'{{"type":"INSERT","id":{id},"gtid":"","es":{es},"table":"t","data":[{{"a":"1"}}]}}'
    return replace(to_changes(text, "canal")[0], place=Arrival(topic="x", partition=partition, offset=offset))


def test_an_update_that_waited_for_a_row_comes_behind_the_one_that_it_waited_for():
    """Canal's `es` is when the statement began: it has the earlier time and the later place in the binlog."""
    short, long = canal(5_000, 0, 1), canal(2_000, 0, 2)
    assert sorted([long, short], key=order_key) == [short, long]
    assert in_order([long, short]) == [short, long]
    assert precedes(order_key(short), order_key(long)) is True
    assert precedes(order_key(long), order_key(short)) is False
    numbered = [replace(one, source=replace(one.source, format="debezium")) for one in (short, long)]
    assert sorted(numbered, key=order_key) == numbered[::-1], "numbers that are the true order stay it"


def test_changes_of_two_partitions_are_merged_by_their_numbers_and_keep_their_order():
    """A partition's number that falls back counts with the greatest before it."""
    left = [canal(1_000, 0, 1), canal(4_000, 0, 2), canal(2_000, 0, 3), canal(7_000, 0, 4)]
    right = [canal(3_000, 1, 1), canal(5_000, 1, 2), canal(6_000, 1, 3)]
    wanted = [left[0], right[0], left[1], left[2], *right[1:], left[3]]
    for seed in range(20):
        assert in_order(random.Random(seed).sample(wanted, len(wanted))) == wanted


def lacking(partition: int, offset: int, *, batch: int | None = None) -> Change:
    """Return a change of Canal without its time, and without the number of its batch by default."""
    position = None if batch is None else (batch,)
    return replace(canal(1, partition, offset), event_time=None, position=position)


def test_a_change_that_lacks_numbers_stays_where_it_arrived():
    """It counts with the greatest before it in its partition, or with the first."""
    left = [lacking(0, 1), canal(2_000, 0, 2), lacking(0, 3, batch=9_000), lacking(0, 4), canal(7_000, 0, 5)]
    right = [canal(1_000, 1, 1), canal(5_000, 1, 2)]
    wanted = [right[0], *left[:4], right[1], left[4]]
    for seed in range(20):
        assert in_order(random.Random(seed).sample(wanted, len(wanted))) == wanted


@pytest.mark.parametrize(
    ("other", "got"),
    [
        (lacking(1, 1), "some with numbers and some with no numbers"),
        (lacking(1, 1, batch=2_000), "some with the number of a batch without its time and some with numbers"),
        (lacking(1, 1, batch=1), "some with the number of a batch without its time and some with numbers"),
    ],
)
def test_partitions_whose_numbers_are_of_different_kinds_are_not_merged(other, got):
    """Nothing says which came first, not even where the numbers are the same; one partition alone has its order."""
    one = replace(canal(2_000, 0, 1), position=(2_000,))
    expected = f"canal: expected the same kind of position in all changes of 't', got {got}"
    for changes in ([one, other], [other, one], [other, one, canal(3_000, 0, 2), other]):
        assert error_of(in_order, changes) == expected
    near = replace(other, place=Arrival(topic="x", partition=0, offset=2))
    assert in_order([near, one]) == [one, near]
    assert in_order([replace(other, place=one.place), other]) == [replace(other, place=one.place), other]


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 2), st.integers(0, 5), st.integers(0, 2)), max_size=12))
def test_keys_sort_the_same_from_any_order_and_keep_each_partitions_arrival(facts):
    """Whatever the numbers say: a key is one of a total order, and so is what merges partitions."""
    changes = [canal(es, partition, offset, id=number) for es, partition, offset, number in facts]
    for arrange in (partial(sorted, key=order_key), in_order):
        found = [order_key(one) for one in arrange(changes)]
        assert found == [order_key(one) for one in arrange(changes[::-1])]
        for partition in range(3):
            offsets = [key[2][2] for key in found if key[2][1] == partition]
            assert offsets == sorted(offsets)


@pytest.mark.parametrize(
    ("one", "other", "wanted"),
    [
        (canal(1, 0, 1), canal(2, 1, 0), True),
        (canal(2, 0, 1, id=2), canal(2, 1, 0, id=3), True),
        (canal(2, 0, 1), canal(2, 1, 0), None),
        (canal(2, 0, 1), canal(2, 0, 1), None),
        (replace(canal(2, 0, 1), row=1), replace(canal(2, 0, 1), row=2), True),
        (canal(2, 0, 1), replace(canal(2, 1, 1), position=None), None),
        (replace(canal(2, 0, 1), position=None), replace(canal(2, 0, 2), position=None), True),
        (replace(canal(9, 0, 1), place=None), replace(canal(8, 0, 2), place=None), False),
        (replace(canal(9, 0, 1), op="SNAPSHOT"), canal(8, 0, 0), True),
        (replace(canal(9, 0, 1), source=OMS), replace(canal(8, 0, 2), source=OMS), False),
        (replace(canal(9, 0, 1), source=OMS), replace(canal(9, 0, 2), source=OMS), True),
    ],
)
def test_which_of_two_changes_came_first_is_said_by_arrival_or_numbers_or_by_nothing(one, other, wanted):
    """By arrival within a partition where that is the order, or where numbers tie; across partitions by numbers."""
    assert precedes(order_key(one), order_key(other)) is wanted
    assert precedes(order_key(other), order_key(one)) is (None if wanted is None else not wanted)


def test_a_full_load_may_be_without_numbers_among_changes_with_them():
    """It comes first anyway."""
    changes = [Change(op="INSERT", position=(1,), place=line(2)), Change(op="SNAPSHOT", place=line(1))]
    assert [change.op for change in sorted(changes, key=order_key)] == ["SNAPSHOT", "INSERT"]


def test_a_key_is_a_value():
    """It can be copied, sent to another process, looked up and printed."""
    for source, shown in [
        (OMS, "(1, (1, 2), ('', 0, 0, 'a.jsonl', 2), (), 0)"),
        (CANAL, "(1, (), ('', 0, 0, 'a.jsonl', 2), (1, 2), 0)"),
    ]:
        key = order_key(Change(op="INSERT", source=source, event_time=1, position=(1, 2), place=line(2)))
        again = pickle.loads(pickle.dumps(key))
        assert (again, hash(again), repr(again)) == (key, hash(key), shown)
        assert not again < key


def test_statements_of_a_snapshot_come_before_its_rows_and_rows_before_changes():
    """Debezium's snapshot drops and creates its tables, all at one position of the binlog."""
    source = '"source":{"connector":"mysql","snapshot":"%s","db":"d","table":"t","file":"b.000003","pos":5,"row":0}'
    texts = [
        '{"databaseName":"d","ddl":"DROP TABLE t","tableChanges":[],' + source % "first" + "}",
        '{"databaseName":"d","ddl":"CREATE TABLE t (id int)","tableChanges":[],' + source % "true" + "}",
        '{"op":"r","before":null,"after":{"id":1},' + source % "last" + "}",
        '{"op":"u","before":{"id":1},"after":{"id":2},' + source % "false" + "}",
        '{"databaseName":"d","ddl":"ALTER TABLE t ADD x int","tableChanges":[],' + source % "false" + "}",
    ]
    changes = [replace(to_changes(text, "debezium")[0], place=line(i)) for i, text in enumerate(texts)]
    assert [change.snapshot for change in changes] == [True, True, None, None, None]
    for seed in range(20):
        assert sorted(random.Random(seed).sample(changes, 5), key=order_key) == changes
    for text, change in zip(texts, changes, strict=True):
        assert [exact(one) for one in from_changes([change], "debezium")] == [exact(text)]


def test_a_batch_without_a_time_orders_by_its_number():
    """Canal's `id` alone; it comes back."""
    text = '{"type":"INSERT","id":%d,"gtid":"","table":"t","data":[{"a":"1"}]}'
    changes = [to_changes(text % number, "canal")[0] for number in (9, 10)]
    assert [change.position for change in sorted(changes, key=order_key)] == [(9,), (10,)]
    assert [exact(one) for one in from_changes(changes, "canal")] == [exact(text % 9), exact(text % 10)]


def test_files_are_ordered_by_name_and_the_numbers_in_it():
    """Rotated files need no leading zeros, and those that differ only in these stay apart."""
    names = ["log.9.jsonl", "log.10.jsonl", "log.10.2.jsonl", "part-0", "part-00", "part-9", "part-09", "part-10", "z"]
    names.sort(key=file_order)
    assert names == [
        "log.9.jsonl",
        "log.10.2.jsonl",
        "log.10.jsonl",
        "part-0",
        "part-00",
        "part-9",
        "part-09",
        "part-10",
        "z",
    ]
    assert len({file_order(name) for name in names}) == len(names)
    changes = [
        Change(op="INSERT", source=source, place=Arrival(file=name, line=1))
        for source in (OMS, CANAL)
        for name in names
    ]
    for seed in range(5):
        for own in (changes[:9], changes[9:]):
            assert sorted(random.Random(seed).sample(own, 9), key=order_key) == own


@pytest.mark.parametrize(
    "place",
    [
        None,
        Arrival(),
        Arrival(topic="t"),
        Arrival(topic="t", partition=0),
        Arrival(topic="t", offset=3),
        Arrival(file="a.jsonl"),
        Arrival(line=3),
        Arrival(topic="t", line=3),
    ],
)
def test_a_change_without_number_and_place_is_refused(place):
    """Its order is not guessed: an offset has a meaning in a partition only, a line in a file."""
    with pytest.raises(OrderError) as caught:
        order_key(Change(op="INSERT", source=Source(format="oms_canal", table="t"), place=place))
    expected = "oms_canal: expected a position or a place to order the change of 't' by, got none"
    assert str(caught.value) == expected


def test_a_changed_primary_key_is_a_delete_and_an_insert():
    """Canal sends one UPDATE."""
    text = '{"type":"UPDATE","pkNames":["id"],"data":[{"id":2,"a":1}],"old":[{"id":1}]}'
    (update,) = to_changes(text, "oms_canal")
    assert [(one.op, one.before, one.after) for one in split_key_change(update)] == [
        ("DELETE", {"id": 1, "a": 1}, None),
        ("INSERT", None, {"id": 2, "a": 1}),
    ]
    same = replace(update, before={"id": 2, "a": 0})
    assert split_key_change(same) == [same]


def key_change(format: str) -> Change:
    """Return an update of the primary key as it comes in a format."""
    texts = map(text_of, facts_of(format)["key update"])
    (update,) = join_halves(change for text in texts for change in to_changes(text, format))
    return replace(update, key=("id",))


@pytest.mark.parametrize("source", [one for one in cdcavro.FORMATS if "key update" in facts_of(one)])
@pytest.mark.parametrize("target", cdcavro.FORMATS)
def test_a_changed_primary_key_is_written_as_a_delete_and_an_insert(source, target):
    """In every format, also in the one that the update came in."""
    texts = from_changes(split_key_change(key_change(source)), target)
    back = [change for text in texts for change in to_changes(text, target)]
    assert [(one.op, one.half) for one in back] == [("DELETE", None), ("INSERT", None)]
    assert [one.before and number_texts(one.before) for one in back] == [{"id": "1", "a": "1"}, None]
    assert [one.after and number_texts(one.after) for one in back] == [None, {"id": "2", "a": "1"}]


def number_texts(row: Row) -> dict[str, str]:
    """Return the values of a row as text: Canal's are."""
    return {name: str(value) for name, value in row.items()}


def test_shards_are_chosen_by_primary_key():
    """All changes of a row go to one shard, whatever else they hold, and the rows to all shards."""
    rows = [Change(op="INSERT", source=BLOB, key=("id",), after={"id": i, "x": 1}) for i in range(100)]
    later = [Change(op="UPDATE", source=BLOB, key=("id",), before={"id": i}, after={"id": i}) for i in range(100)]
    found = [shard(one, 4) for one in rows]
    assert found == [shard(one, 4) for one in later]
    assert set(found) == {0, 1, 2, 3}


def test_a_key_is_compared_by_its_text():
    """1, "1" and an exact 1 are one key, since formats spell numbers differently."""
    values = (1, "1", ExactNumber("1"))
    keys = [Change(op="INSERT", source=BLOB, key=("id",), after={"id": value}) for value in values]
    assert len({shard(one, 1000) for one in keys}) == 1


def test_without_a_key_a_blob_goes_by_table_and_a_tuple_at_random():
    """The order of a table holds for Blob only."""
    blob = [shard(Change(op="INSERT", source=BLOB, after={"id": i}), 8) for i in range(20)]
    assert len(set(blob)) == 1
    tuple_source = replace(BLOB, format="datahub_tuple")
    assert shard(Change(op="INSERT", source=tuple_source), 8, choose=lambda count: count - 3) == 5


@pytest.mark.parametrize(("count", "said"), [(0, "0"), (-1, "-1"), (1.5, "1.5"), ("4", "'4'"), (True, "True")])
def test_a_number_of_shards_is_a_whole_number_from_1(count, said):
    """Whatever the change is: by key, by table or at random."""
    for change in (Change(op="INSERT", source=BLOB, key=("id",), after={"id": 1}), Change(op="INSERT")):
        with pytest.raises(ValueError, match=f"^a number of shards from 1, not {said}$"):
            shard(change, count)


@pytest.mark.parametrize(
    ("source", "key", "text"),
    [
        (BLOB, "7", b'["d",null,"t","7"]'),
        (BLOB, None, b'["d",null,"t"]'),
        (replace(BLOB, database=None, schema="s"), "7", b'[null,"s","t","7"]'),
        (replace(BLOB, table="u"), "7", b'["d",null,"u","7"]'),
    ],
)
def test_a_shard_is_the_same_in_every_process(source, key, text):
    """By the CRC-32 of the table's names and the values of the key, as JSON: Python's own hash differs from run to run."""
    one = Change(op="INSERT", source=source, key=key and ("id",), after={"id": key, "x": 1})
    assert shard(one, 1_000_000) == zlib.crc32(text) % 1_000_000
    assert shard(Change(op="INSERT", source=BLOB, key=("id",), after={"id": 7}), 1000) == 866


def test_an_update_goes_to_the_shard_of_the_row_before_it():
    """So that it follows the changes of that row; a delete has no other."""
    update = Change(op="UPDATE", source=BLOB, key=("id",), before={"id": 1}, after={"id": 2})
    found = shard(update, 1_000_000)
    assert found == shard(replace(update, op="DELETE", after=None), 1_000_000)
    assert found != shard(replace(update, op="INSERT", before=None), 1_000_000)


def test_rows_of_different_tables_with_one_key_are_spread():
    """Otherwise the first row of every table would go to one shard."""
    tables = [replace(BLOB, table=f"t{i}") for i in range(50)]
    assert len({shard(Change(op="INSERT", source=one, key=("id",), after={"id": 1}), 8) for one in tables}) == 8
