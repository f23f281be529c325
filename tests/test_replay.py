"""The shop's two streams delivered in the ways in which streams are: from any message on, twice, statements apart.

Messages are delivered at least once, and Debezium's schema changes have a topic of their own. However
they come, the rows are merged by the order of their changes, and the final tables are the same.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC
from functools import cache
from typing import Any, NamedTuple

import pytest

from cdcavro.change.model import DML, Arrival, Change, replace
from cdcavro.change.order import in_order
from cdcavro.table.tables import Tables, TypedChange
from support.shop_tables import MESSAGES, ORACLE, moved, shop_changes

COUNTS = {producer: len(messages()) for producer, messages in MESSAGES.items()}


# The lines of the statements that create the tables of the end.
CREATED = {
    "canal": {"all_types": 3, "orders_v3": 11, "we ird-tab.le": 20, "big": 57},
    "debezium": {"all_types": 3, "orders_v3": 21, "we ird-tab.le": 41, "big": 80},
}
# How slow tests go through the messages: in parts and in strides, or with CDCAVRO_EVERY_MESSAGE in the environment one by one.
PARTS = 2
STRIDE = PARTS * (1 if os.environ.get("CDCAVRO_EVERY_MESSAGE") else 23)
EVERY = 1 if os.environ.get("CDCAVRO_EVERY_MESSAGE") else 31


class Final(NamedTuple):
    """What a stream ends with: the live tables' columns, their rows by key, and the names of all tables' versions."""

    columns: dict[str, list[tuple[str, str]]]
    rows: dict[str, dict[str, str]]
    versions: list[tuple[bool, list[str]]]


def final(tables: Tables, typed: Iterable[TypedChange]) -> Final:
    """Return the live tables of a stream, their rows merged by the order of the changes."""
    live = {one.number: one for one in tables.tables if not one.is_gone}
    names = [one.schema.table.table for one in live.values()]
    assert len(set(names)) == len(names)
    made: dict[int, TypedChange] = {id(one.change): one for one in typed}
    rows: dict[int, dict[str, str]] = {number: {} for number in live}
    for change in in_order([one.change for one in made.values()]):
        one = made[id(change)]
        if one.table.number in live:
            _apply(rows[one.table.number], one)
    return Final(
        {
            one.schema.table.table: [(column.name, str(column.avro)) for column in one.schema.columns]
            for one in live.values()
        },
        {one.schema.table.table: rows[one.number] for one in live.values()},
        [(one.is_gone, [schema.table.table for schema in one.versions]) for one in tables.tables],
    )


def _apply(rows: dict[str, str], typed: TypedChange) -> None:
    change = _read(typed)
    if change.op == "t":
        rows.clear()
    elif change.op == "d":
        rows.pop(repr(change.key), None)
    else:
        names = [column.name for column in typed.table.schema.columns]
        rows[repr(change.key)] = repr([(name, change.after[name]) for name in names])


_READ: dict[tuple[bytes, str, str], Any] = {}


def _read(typed: TypedChange) -> Any:
    """Return a change as its table's newest schema reads it; many replays have the same."""
    facts = (typed.payload, typed.schema.envelope.json, typed.table.schema.envelope.json)
    if facts not in _READ:
        _READ[facts] = moved(typed)
    return _READ[facts]


def added(changes: Sequence[Change]) -> Final:
    """Return what a stream ends with whose changes are added one by one."""
    tables = Tables(zone=UTC)
    typed = [one for change in changes for one in tables.add(change)]
    return final(tables, typed)


def learned(changes: Sequence[Change]) -> Final:
    """Return what a stream ends with whose statements and lists of columns are all learned in order before, as on Spark."""
    tables = Tables(zone=UTC)
    for change in in_order([one for one in changes if one.op not in {"TOMBSTONE", "OTHER"}]):
        tables.learn(change)
    typed = [
        one
        for change in changes
        if change.op in {*DML, "TRUNCATE"}
        for one in tables.write(change, tables.find(change))
    ]
    return final(tables, typed)


@cache
def whole(producer: str) -> Final:
    """Return what the stream ends with as it came."""
    ended = added(shop_changes(producer))
    assert set(ended.rows) == set(ORACLE)
    assert {name: [column for column, _ in columns] for name, columns in ended.columns.items()} == {
        name: [column for column, _ in table["columns"]] for name, table in ORACLE.items()
    }
    return ended


def again(producer: str, begin: int, *, stop: int | None = None) -> list[Change]:
    """Return the stream up to a message, and then from another message on, which goes on in the same file."""
    stop = COUNTS[producer] if stop is None else stop
    first = [one for one in shop_changes(producer) if one.place.line <= stop]
    later = [one for one in shop_changes(producer) if one.place.line > begin]
    return [*first, *(replace(one, place=replace(one.place, line=stop - begin + one.place.line)) for one in later)]


def apart(producer: str) -> tuple[list[Change], list[Change]]:
    """Return the statements and the rows of the stream, as messages of two topics."""
    both: dict[bool, list[Change]] = {True: [], False: []}
    for one in shop_changes(producer):
        both[one.op not in DML].append(one)
    return tuple(
        [replace(one, place=Arrival(topic=topic, partition=0, offset=i)) for i, one in enumerate(both[is_statement])]
        for is_statement, topic in ((True, "statements"), (False, "rows"))
    )


@pytest.mark.parametrize("producer", MESSAGES)
@pytest.mark.parametrize("ended", [added, learned])
def test_the_whole_stream_ends_with_the_tables_of_the_server(producer: str, ended: Callable[[Sequence[Change]], Final]):
    """Added one by one, or all learned before."""
    assert ended(shop_changes(producer)) == whole(producer)


@pytest.mark.parametrize("producer", MESSAGES)
@pytest.mark.parametrize("ended", [added, learned])
def test_the_stream_twice_over_ends_with_the_same_tables(producer: str, ended: Callable[[Sequence[Change]], Final]):
    """Nothing of the second time is new: no table, no version, no row."""
    assert ended(again(producer, 0)) == whole(producer)


def test_a_statement_that_its_table_contradicts_and_that_was_applied_before_is_delivered_again():
    """Canal's times are seconds: here the last two statements have one, and both are repeated."""
    assert added(again("canal", 19, stop=24)) == whole("canal")


FEW = {"canal": (2, 10, 40, 43, 60), "debezium": (2, 20, 62, 65, 100)}


@pytest.mark.parametrize(
    ("producer", "begin"), [(producer, begin) for producer, begins in FEW.items() for begin in begins]
)
def test_messages_delivered_again_from_some_message_on_change_nothing(producer: str, begin: int):
    """Behind the whole stream, and across a table's new name, a dropped database and others."""
    assert added(again(producer, begin)) == whole(producer)


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("part", range(PARTS))
@pytest.mark.parametrize("producer", MESSAGES)
@pytest.mark.parametrize("ended", [added, learned])
def test_messages_delivered_again_from_any_message_on_change_nothing(producer: str, ended: Any, part: int):
    """From many of them on, behind the whole stream; from each of them, if that is asked for."""
    begins = range(part, COUNTS[producer], STRIDE)
    assert [begin for begin in begins if ended(again(producer, begin)) != whole(producer)] == []


def assert_tail(producer: str, begin: int) -> None:
    """Check what the messages behind some message end with, without those before it.

    A table that is created among them ends as it does with the whole stream. Of an older one, Canal's
    rows that changed end as they do there; Debezium's cannot be read, since nothing says what their columns are.
    """
    ended = added([one for one in shop_changes(producer) if one.place.line > begin])
    for name in ended.rows:
        is_new = CREATED[producer][name] > begin
        if is_new or producer == "canal":
            assert ended.columns[name] == whole(producer).columns[name]
            assert ended.rows[name].items() <= whole(producer).rows[name].items()
        assert not is_new or ended.rows[name] == whole(producer).rows[name]
    assert {name for name, line in CREATED[producer].items() if line > begin} <= set(ended.rows)


@pytest.mark.parametrize(
    ("producer", "begin"), [(producer, begin) for producer, begins in FEW.items() for begin in begins]
)
def test_a_stream_that_is_read_from_some_message_on_ends_with_what_these_messages_say(producer: str, begin: int):
    """Nothing before it is known: statements about unknown tables change nothing."""
    assert_tail(producer, begin)


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("part", range(PARTS))
@pytest.mark.parametrize("producer", MESSAGES)
def test_a_stream_that_is_read_from_any_message_on_ends_with_what_these_messages_say(producer: str, part: int):
    """From many of them on, or from each of them."""
    for begin in range(part, COUNTS[producer], STRIDE):
        assert_tail(producer, begin)


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("back", [1, 5, 1_000])
@pytest.mark.parametrize("producer", MESSAGES)
def test_a_stream_that_goes_back_at_any_message_ends_with_the_same_tables(producer: str, back: int):
    """A connector that starts again repeats what was not acknowledged: a few messages, or all since the first."""
    stops = range(1, COUNTS[producer] + 1, EVERY)
    found = {stop: added(again(producer, max(stop - back, 0), stop=stop)) for stop in stops}
    assert [stop for stop in stops if found[stop] != whole(producer)] == []


@pytest.mark.slow
@pytest.mark.parametrize("producer", MESSAGES)
def test_statements_before_their_rows_give_the_same_tables(producer: str):
    """All of them, read from a topic of their own: each row goes to the version and the name of its time."""
    statements, rows = apart(producer)
    assert added([*statements, *rows])[:2] == whole(producer)[:2]
    assert learned([*statements, *rows])[:2] == whole(producer)[:2]


@pytest.mark.parametrize("producer", MESSAGES)
def test_statements_behind_their_rows_give_the_same_tables(producer: str):
    """All of them, if everything is learned before rows are written."""
    statements, rows = apart(producer)
    assert learned([*rows, *statements])[:2] == whole(producer)[:2]


def test_statements_behind_written_rows_that_state_their_columns_give_the_same_tables():
    """Canal's rows make their tables, under each name one; what was renamed away is gone when the statement comes."""
    statements, rows = apart("canal")
    assert added([*rows, *statements])[:2] == whole("canal")[:2]
