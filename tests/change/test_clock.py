"""The clocks of lanes, whose numbers run backwards."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cdcavro.change.model import Arrival, Change, Source, replace
from cdcavro.change.order import Clock, LaneTime, in_order
from cdcavro.change.order_value import order_value
from cdcavro.errors import OrderError


def at(partition: int, offset: int, numbers: tuple[int, ...] | None, *, format: str = "canal") -> Change:
    """Return a change of a partition with the numbers of its source."""
    source = Source(format=format, table="t")
    place = Arrival(topic="x", partition=partition, offset=offset)
    return Change(op="INSERT", source=source, position=numbers, place=place, event_time=1)


def test_the_time_of_a_message_is_the_greatest_of_its_partition_so_far():
    """It never runs backwards, and no other partition has a part in it."""
    clock = Clock()
    told = [clock.time(at(0, i, (es, 1))).numbers for i, es in enumerate((5, 9, 7, 9, 12))]
    assert told == [(5, 1), (9, 1), (9, 1), (9, 1), (12, 1)]
    assert clock.time(at(1, 0, (3, 1))).numbers == (3, 1)


def test_a_message_without_numbers_has_the_time_before_it():
    """The first ones have none."""
    clock = Clock()
    told = [clock.time(at(0, i, numbers)) for i, numbers in enumerate((None, (5,), None))]
    assert told == [LaneTime(0, (), 0), LaneTime(2, (5,), 0), LaneTime(2, (5,), 0)]


def test_only_changes_that_arrival_orders_have_a_time():
    """Neither those whose numbers are the order nor rows of a full load."""
    assert Clock().time(at(0, 1, (5,), format="debezium")) is None
    assert Clock().time(replace(at(0, 1, (5,)), op="SNAPSHOT")) is None
    assert Clock().time(replace(at(0, 1, (5,)), place=None)) is None


def test_rows_of_one_message_have_one_time():
    """It is told once, however many rows ask."""
    clock = Clock()
    first = clock.time(at(0, 1, (5,)), is_moving=True)
    assert first == clock.time(replace(at(0, 1, (5,)), row=1), is_moving=True) == LaneTime(2, (5,), 1)


def test_a_message_that_moves_keys_comes_behind_what_other_partitions_have_of_its_time():
    """The row that stood under the key came through another partition within the same second."""
    clock = Clock()
    stood = order_value(at(2, 7, (5, 1)), time=clock.time(at(2, 7, (5, 1))))
    move = at(0, 3, (5, 1))
    left = order_value(move, time=clock.time(move, is_moving=True), is_left=True)
    behind = at(0, 4, (5, 1))
    assert stood < left < order_value(behind, time=clock.time(behind))
    later = at(2, 8, (5, 2))
    assert left < order_value(later, time=clock.time(later))


def test_a_place_behind_the_last_of_its_lane_is_refused():
    """Nobody knows any more which time it had; another lane is free."""
    clock = Clock()
    clock.time(at(0, 5, (5,)))
    with pytest.raises(OrderError) as caught:
        clock.time(at(0, 4, (5,)))
    assert str(caught.value) == "canal: expected a place of its lane from offset 5 on, got offset 4"
    assert clock.time(at(1, 4, (5,))) is not None


@given(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 9), st.booleans()), max_size=30), st.integers(0, 30))
def test_a_clock_goes_on_where_another_stopped(facts: list[tuple[int, int, bool]], stop: int):
    """Its state is a JSON value; a message told again after it was restored has the time that it had."""
    changes = [at(partition, i, (es,)) for i, (partition, es, _) in enumerate(facts)]
    whole, first = Clock(), Clock()
    told = [whole.time(one, is_moving=facts[i][2]) for i, one in enumerate(changes)]
    for i, one in enumerate(changes[:stop]):
        first.time(one, is_moving=facts[i][2])
    second = Clock(json.loads(json.dumps(first.state)))
    assert [second.time(one, is_moving=facts[i][2]) for i, one in enumerate(changes[stop:], stop)] == told[stop:]
    assert second.state == whole.state


@given(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 5)), max_size=12))
def test_values_under_a_clock_are_in_the_order_of_all_partitions(facts: list[tuple[int, int]]):
    """That of `in_order`, and within each partition that of arrival."""
    changes = [at(partition, i, (es,)) for i, (partition, es) in enumerate(facts)]
    clock = Clock()
    values = {id(one): order_value(one, time=clock.time(one)) for one in changes}
    found = sorted(changes, key=lambda one: values[id(one)])
    assert found == in_order(changes)
