"""The order of a change as one binary value, held against `order_key` and `in_order`."""

from __future__ import annotations

import os
import random
from collections.abc import Sequence
from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cdcavro.change.model import Arrival, Change, Source, replace
from cdcavro.change.order import Clock, in_order, order_key, split_key_change
from cdcavro.change.order_value import KINDS, common_order, order_kind, order_value
from cdcavro.errors import MessageError, OrderError
from support.shop_tables import MESSAGES, shop_changes

FORMATS = ("debezium", "oms_default", "canal", "datahub_blob")
NUMBERS = (0, 1, 2, 127, 128, 255, 256, 65535, 65536, 2**31, 2**53, 2**63 - 1, -1, -128, -256, -257, -(2**63))
TEXTS = ("", "a", "a\0", "a\0\0b", "a\x01", "b", "é", "\uffff", "😀", "\ud800", "part-9", "part-10", "part-010")

numbers = st.sampled_from(NUMBERS) | st.integers(-(2**200), 2**200)
texts = st.sampled_from(TEXTS) | st.text(max_size=4)
counts = st.sampled_from(NUMBERS[:12]) | st.integers(0, 400)
places = st.builds(
    Arrival,
    topic=st.none() | texts,
    partition=st.none() | counts,
    offset=st.none() | counts,
    file=st.none() | texts,
    line=st.none() | counts,
)
changes = st.builds(
    Change,
    op=st.sampled_from(["INSERT", "UPDATE", "DELETE", "SNAPSHOT", "TRUNCATE"]),
    source=st.builds(Source, format=st.sampled_from(FORMATS), table=st.just("t")),
    position=st.none() | st.lists(numbers, max_size=3).map(tuple),
    place=st.none() | places,
    row=st.integers(0, 300),
    event_time=st.none() | st.just(1),
    snapshot=st.none() | st.just(True),
)


def compared(one: Change, other: Change) -> int | str:
    """Return how Python compares the keys of two changes: -1, 0 or 1, or that it does not."""
    keys = order_key(one), order_key(other)
    try:
        return (keys[0] > keys[1]) - (keys[0] < keys[1])
    except OrderError:
        return "of two kinds"


def assert_same(one: Change, other: Change) -> int | str:
    """Check that the values of two changes compare as their keys do, and are of two kinds where the keys are."""
    first, second = order_value(one), order_value(other)
    of_python = compared(one, other)
    if first[0] == second[0] and order_kind(first) != order_kind(second):
        # Where arrival is the order and the numbers too are missing, Python goes on to the place.
        assert of_python == "of two kinds" or order_key(one)[1] == order_key(other)[1]
        return "of two kinds"
    if of_python == "of two kinds":
        # Two messages cannot have one place; Python would compare their numbers there.
        assert order_key(one)[2] == order_key(other)[2] != ("", 0, 0, "", 0)
        return of_python
    assert (first > second) - (first < second) == of_python
    return of_python


def is_ordered(change: Change) -> bool:
    """Return whether a change has an order at all, by value as by key."""
    refused = []
    for order in (order_key, order_value):
        try:
            order(change)
        except OrderError:
            refused.append(order)
    assert refused in ([], [order_key, order_value])
    return not refused


@given(changes, changes)
def test_values_compare_as_keys_do(one: Change, other: Change):
    """Whatever the numbers, places, formats and phases; what has no order has none here either."""
    if is_ordered(one) and is_ordered(other):
        assert_same(one, other)
        assert order_value(one) == order_value(replace(one))


@given(changes)
def test_what_changes_have_in_common_decides_how_their_values_begin(change: Change):
    """Whatever their numbers and places are."""
    if not is_ordered(change):
        return
    value = order_value(change)
    phase, what, is_batched = common_order(change)
    stated = 0 if change.position is None else 1 if is_batched and change.event_time is None else 2
    has_place = order_value(replace(change, position=(1,)))[1] == KINDS.index("a place that says the order")
    kinds = {0: KINDS.index("a full load"), 1: 1 + stated, 2: 4 if has_place else 1 + stated}
    assert value[:2] == bytes([phase, kinds[what]])


@given(st.lists(numbers, max_size=4), st.lists(numbers, max_size=4))
def test_numbers_compare_as_python_compares_them(one: list[int], other: list[int]):
    """Negative ones, long ones, and lists of which one begins the other."""
    first, second = (order_value(Change(op="INSERT", position=tuple(each))) for each in (one, other))
    assert (first > second, first == second) == (one > other, one == other)


@given(texts, texts)
def test_names_of_topics_compare_by_code_points(one: str, other: str):
    """Zero characters and lone surrogates included."""
    first, second = (
        order_value(Change(op="INSERT", place=Arrival(topic=topic, partition=0, offset=0))) for topic in (one, other)
    )
    assert (first > second, first == second) == (one > other, one == other)


def of_shop(producer: str) -> list[Change]:
    """Return the shop's changes that have an order, some of them as rows of a full load or from other places."""
    found = [one for one in shop_changes(producer) if is_ordered(one)]
    draw = random.Random(producer)
    made = []
    for one in found:
        place = Arrival(topic="t", partition=draw.randrange(3), offset=one.place.line)
        made += [replace(one, place=place), replace(one, place=replace(one.place, file=f"part-{draw.randrange(12)}"))]
        made.append(replace(one, op="SNAPSHOT", place=place))
        made.append(replace(one, position=(*(one.position or ()), draw.choice(NUMBERS))))
    return found + made


def all_compared(changes: Sequence[Change]) -> int:
    """Compare every pair of changes, each once, and return how many there were."""
    found = [assert_same(one, other) for one, other in combinations(changes, 2)]
    assert {-1, 1} <= set(found)
    return len(found)


@pytest.mark.parametrize("producer", MESSAGES)
def test_values_of_the_shops_changes_compare_as_their_keys_do(producer: str):
    """Every tenth change beside every other of these."""
    assert all_compared(of_shop(producer)[::10]) > 2_000


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_values_of_all_changes_of_the_shop_compare_as_their_keys_do():
    """With CDCAVRO_EVERY_MESSAGE more than 300,000 pairs, made-up places and numbers among them; else each third change."""
    every = "CDCAVRO_EVERY_MESSAGE" in os.environ
    found = sum(all_compared(of_shop(producer)[:: 1 if every else 3]) for producer in MESSAGES)
    assert found > (300_000 if every else 33_000)


@pytest.mark.parametrize("values", [TEXTS, NUMBERS])
def test_odd_values_compare_with_each_other_as_python_compares_them(values: tuple):
    """All pairs, as topics or as positions."""
    is_text = values is TEXTS
    orders = {
        value: order_value(
            Change(op="INSERT", place=Arrival(topic=value, partition=0, offset=0))
            if is_text
            else Change(op="INSERT", position=(value,))
        )
        for value in values
    }
    assert sorted(values, key=orders.get) == sorted(values)


@given(st.lists(changes, max_size=6))
def test_no_value_begins_another(all_changes: list[Change]):
    """So nothing is compared with nothing: a value ends where its parts do."""
    values = {order_value(one) for one in all_changes if is_ordered(one)}
    assert not any(one != other and other.startswith(one) for one in values for other in values)


@pytest.mark.parametrize(
    ("change", "kind"),
    [
        (Change(op="SNAPSHOT", place=Arrival(file="f", line=1)), "a full load"),
        (Change(op="INSERT", place=Arrival(file="f", line=1)), "no numbers"),
        (Change(op="INSERT", position=(1,)), "numbers"),
        (Change(op="INSERT", position=(1,), source=Source(format="canal")), "the number of a batch without its time"),
        (
            Change(op="INSERT", source=Source(format="canal"), place=Arrival(file="f", line=1)),
            "a place that says the order",
        ),
    ],
)
def test_the_kind_says_what_orders_a_change(change: Change, kind: str):
    """Changes of one table have one kind; only what compares has the same."""
    assert order_kind(order_value(change)) == kind
    assert kind in KINDS


@pytest.mark.parametrize("raw", [b"", b"\2", b"\3\1", b"\2\x08"])
def test_bytes_that_are_no_order_have_no_kind(raw: bytes):
    """They are refused, not told."""
    with pytest.raises(ValueError, match="does not begin the order of a change"):
        order_kind(raw)


def test_a_number_beyond_all_bounds_is_refused():
    """Nothing is cut."""
    with pytest.raises(MessageError) as caught:
        order_value(Change(op="INSERT", position=(1 << 1008,)))
    assert str(caught.value) == "message: $: expected an integer of at most 126 bytes, got one of 127"


def moves(*pairs: tuple[int, int]) -> list[Change]:
    """Return one message's updates of the key, each from and to a value, as deletes and inserts."""
    place = Arrival(topic="t", partition=0, offset=5)
    rows = [
        Change(op="UPDATE", key=("id",), before={"id": old}, after={"id": new}, position=(9,), place=place, row=row)
        for row, (old, new) in enumerate(pairs)
    ]
    return [half for one in rows for half in split_key_change(one)]


@pytest.mark.parametrize("pairs", [((1, 2), (2, 3)), ((2, 3), (1, 2)), ((1, 2), (2, 1)), ((1, 2), (2, 3), (3, 1))])
def test_the_delete_of_a_moved_key_does_not_beat_a_row_that_takes_the_key_in_the_same_message(pairs):
    """`SET id = id + 1` in either direction, and rows that change places."""
    last: dict[int, tuple[bytes, str]] = {}
    for half in moves(*pairs):
        (key,) = (half.after or half.before).values()
        last[key] = max(last.get(key, (b"", "")), (order_value(half, is_left=half.op == "DELETE"), half.op))
    assert {key for key, (_, op) in last.items() if op == "INSERT"} == {new for _, new in pairs}


def test_the_delete_of_a_moved_key_comes_behind_the_message_before():
    """What stood there is gone."""
    stood = Change(op="INSERT", position=(9,), place=Arrival(topic="t", partition=0, offset=4), row=7)
    delete, insert = moves((1, 2))
    orders = [order_value(stood), order_value(delete, is_left=True), order_value(insert)]
    assert sorted(orders) == orders


@pytest.mark.parametrize("producer", MESSAGES)
@pytest.mark.parametrize("seed", range(5))
def test_under_a_clock_values_of_several_partitions_sort_as_in_one_order(producer: str, seed: int):
    """Rows and statements apart, in three partitions each in its order, whichever partition comes first."""
    draw = random.Random(seed)
    partitions: dict[int, list[Change]] = {0: [], 1: [], 2: []}
    for one in [one for one in shop_changes(producer) if one.position is not None and one.row == 0]:
        number = draw.randrange(3)
        place = Arrival(topic="t", partition=number, offset=len(partitions[number]))
        partitions[number].append(replace(one, place=place))
    clock, values = Clock(), {}
    for number in draw.sample(range(3), 3):
        for one in partitions[number]:
            values[id(one)] = order_value(one, time=clock.time(one))
    every = [one for lane in partitions.values() for one in lane]
    assert [id(one) for one in sorted(every, key=lambda one: values[id(one)])] == [id(one) for one in in_order(every)]
    assert len({order_kind(value) for value in values.values()}) == 1


@pytest.mark.parametrize(
    ("format", "facts", "moved"),
    [
        ("goldengate", {}, {"id": 8, "n": 5, "note": "long", "none": None}),
        ("maxwell", {}, {"id": 8, "n": 5}),
        ("debezium", {"unavailable": ("note", "none", "other")}, {"id": 8, "n": 5, "note": "long"}),
    ],
)
def test_a_moved_row_has_what_did_not_change_if_that_is_sure(format, facts, moved):
    """What the row after it lacks may be null where nulls are left out, and a null before it may be no value at all."""
    row = {"id": 7, "n": 1, "note": "long", "none": None}
    source = Source(format=format, database="d", table="t")
    update = Change(op="UPDATE", source=source, key=("id",), before=row, after={"id": 8, "n": 5}, **facts)
    removed, added = split_key_change(update)
    assert (removed.before, removed.after, added.before, added.after) == (row, None, None, moved)
    assert split_key_change(replace(update, after={"id": 7, "n": 5})) == [replace(update, after={"id": 7, "n": 5})]
