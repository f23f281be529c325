"""How often a batch is converted, and that its rows are those of the exact way, one change after another."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from cdcavro.change.model import DML, Arrival, Change, replace
from cdcavro.errors import MisfitError
from cdcavro.lake import TypedRows
from cdcavro.sync.conversion import rounds
from cdcavro.sync.conversion.knowledge import Knowledge
from cdcavro.sync.conversion.rounds import Outcomes, merge_notes
from cdcavro.sync.conversion.task import converter
from cdcavro.sync.local.local_outcomes import LocalStore
from cdcavro.sync.outputs.table_rows import OF_ROWS
from cdcavro.sync.settings import Chosen, Formats, Settings
from cdcavro.table.tables import Tables
from cdcavro.transcoding.mapping import to_changes
from cdcavro.wire.formats import FORMATS
from support.messages import canal
from support.rows_trial import ZONE, shop
from support.task_batches import batch_of

Lanes = Sequence[Sequence[bytes]]
Convert = Callable[..., tuple[Outcomes, TypedRows, int]]


@pytest.fixture
def converted(tmp_path: Path) -> Convert:
    """Convert messages of partitions of a topic, a task for each; what comes of them, what was learned, and how often."""

    def convert(lanes: Lanes, *, maker: TypedRows | None = None, is_reduced: bool = False, **settings: Any) -> Any:
        seen: list[Knowledge] = []

        def run(knowledge: Knowledge) -> Outcomes:
            seen.append(knowledge)
            store = LocalStore(tmp_path, 1 << 30)
            for i, lane in enumerate(lanes):
                # Each task has knowledge of its own, to which it adds what it learns.
                own = pickle.loads(pickle.dumps(knowledge))
                for made in converter(own)([batch_of([(None, one) for one in lane], partition=i)]):
                    store.add(made)
            return merge_notes(store, store.notes)

        own = Settings(**{"formats": Formats("canal"), "options": {"zone": ZONE}, **settings})
        maker = maker or TypedRows(own.tables())
        outcomes, _ = rounds.convert(run, maker, own, is_reduced=is_reduced)
        return outcomes, maker, len(seen)

    return convert


def rows_in(outcomes: Outcomes, maker: TypedRows) -> list[tuple[Any, ...]]:
    """Return the rows, with the names of their tables, in order."""
    rows = []
    for number, name in outcomes.names.items():
        table = maker.tables.tables[number].schema.table
        found = outcomes.store.rows(name, sum(outcomes.tables[number]["ops"].values())).read()
        assert {row["headers"] for row in found.to_pylist()} <= {None}
        rows += [(table, *[row[column] for column in OF_ROWS[:-1]]) for row in found.to_pylist()]
    return sorted(rows, key=repr)


def exact(lanes: Lanes, format: str) -> tuple[list[tuple[Any, ...]], TypedRows, int]:
    """Return the rows of the exact way, what it learned, and how many changes it refused."""
    maker = TypedRows(Tables(zone=ZONE))
    messages = [
        [replace(change, place=Arrival(topic="shop", partition=i, offset=offset)) for change in changes_of(one, format)]
        for i, lane in enumerate(lanes)
        for offset, one in enumerate(lane)
    ]
    batch = maker.of_batch(messages)
    tables = maker.tables.tables
    rows = [
        (tables[row.table].schema.table, row.version, row.operation, row.order, row.key, row.payload)
        for row in batch.rows
    ]
    return sorted(rows, key=repr), maker, len(batch.rejects)


def changes_of(message: bytes, format: str) -> list[Change]:
    """Return the changes of a message as a pipeline reads it."""
    return to_changes(message, format, zone=ZONE, unavailable=Settings().unavailable)


@pytest.mark.slow
@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize(("most", "tasks"), [(8, 1), (1_000, 3)])
def test_rows_of_a_first_batch_are_those_of_the_exact_way(converted: Convert, format: str, most: int, tasks: int):
    """It is converted once only where tables do nothing but begin; of the same lane, always where they do."""
    rows = [one for one in shop(format) if all(change.op in DML for change in changes_of(one, format))][:most]
    lanes = [rows[i::tasks] for i in range(tasks)]
    outcomes, maker, count = converted(lanes, formats=Formats(format))
    wanted, learned, refused = exact(lanes, format)
    assert rows_in(outcomes, maker) == wanted
    assert (outcomes.counts["rejected"] > 0) == (refused > 0)
    is_plain = not refused and all(len(table.versions) == 1 for table in learned.tables.tables)
    assert is_plain == (tasks == 1)
    assert is_plain == (count == 1)


def test_partitions_are_in_their_order_whichever_task_ends_first(converted: Convert):
    """So two runs print the same."""
    outcomes, *_ = converted([inserts("a", 1), inserts("a", 2), inserts("a", 3)])
    turned = merge_notes(outcomes.store, outcomes.store.notes[::-1])
    assert turned.lanes == outcomes.lanes
    assert [partition for _, partition, *_ in turned.lanes] == [0, 1, 2]


def inserts(table: str, *ids: int, **values: str) -> list[bytes]:
    """Return messages that insert rows."""
    return [canal("INSERT", [{"id": str(i), **values}], id=i, table=table) for i in ids]


def test_tables_that_tasks_number_in_other_ways_are_told_from_each_other(converted: Convert):
    """What is the first table for one is the third for another; those that are known keep their numbers."""
    a, b, c = (inserts(name, *range(i, 900, 3)) for i, name in enumerate("abc"))
    _, maker, _ = converted([inserts("known", 1)])
    outcomes, maker, count = converted([a + b, b + c + inserts("known", 2), c + a], maker=maker)
    assert count == 1
    assert sorted(outcomes.tables) == [0, 1, 2, 3]
    assert {maker.tables.tables[one].schema.table.table: facts["ops"] for one, facts in outcomes.tables.items()} == {
        "known": {"c": 1},
        "a": {"c": 600},
        "b": {"c": 600},
        "c": {"c": 600},
    }
    assert len(rows_in(outcomes, maker)) == 1801


@pytest.mark.parametrize(
    "lanes",
    [
        [inserts("a", 1), inserts("a", 2, b="1")],
        [inserts("a", 1, 2) + inserts("a", 3, b="1"), inserts("b", 4)],
        [inserts("a", 1), [canal("ALTER", [], id=2, table="a", isDdl=True, sql="ALTER TABLE a ADD b int")]],
        [inserts("a", 1, 2), [canal("TRUNCATE", [], id=9, table="b", isDdl=True, sql="TRUNCATE b")], inserts("b", 3)],
        [inserts("a", 1), [canal("ERASE", [], id=2, table="a", isDdl=True, sql="DROP TABLE a")]],
        [
            [canal("INSERT", [{"id": "1", "b": "1"}], id=1, mysqlType=None)],
            [canal("INSERT", [{"id": "2"}], id=2, mysqlType=None)],
        ],
    ],
    ids=["two versions", "two versions in a task", "a statement", "a truncate", "a drop", "no lists of columns"],
)
def test_a_batch_that_says_more_than_that_tables_begin_is_converted_again(converted: Convert, lanes: Lanes):
    """Its first rows count for nothing."""
    outcomes, maker, count = converted(lanes)
    assert count > 1
    wanted, _, _ = exact(lanes, "canal")
    assert rows_in(outcomes, maker) == wanted


def test_tables_that_begin_and_are_not_wanted_are_left_out(converted: Convert):
    """They are learned nevertheless."""
    outcomes, maker, count = converted([inserts("a", 1, 3), inserts("b", 2)], chosen=Chosen(exclude=("b",)))
    assert (count, outcomes.counts["written"], outcomes.counts["left out"]) == (1, 2, 1)
    assert [row[0].table for row in rows_in(outcomes, maker)] == ["a", "a"]
    assert len(maker.tables.tables) == 2


def test_rejects_of_a_first_batch_are_there_once(converted: Convert):
    """Though their messages were converted twice, before their table was learned and behind it."""
    outcomes, _, count = converted([[*inserts("a", 1), b"no message", *inserts("a", 2)]])
    assert outcomes.store.rejects().num_rows == 1
    assert (count, outcomes.counts["read"], outcomes.counts["written"], outcomes.counts["rejected"]) == (1, 3, 2, 1)


def test_a_table_that_takes_a_name_is_not_taken_for_the_only_one(converted: Convert):
    """To which of two a late row belongs depends on when the second began, which a task knows of its own lanes only."""
    drop = canal("ERASE", [], id=80, table="a", isDdl=True, sql="DROP TABLE a")
    _, maker, _ = converted([[*inserts("a", 70), drop]])
    outcomes, maker, count = converted([inserts("b", 1), inserts("b", 2)], maker=maker)
    assert count == 1
    outcomes, maker, count = converted([inserts("a", 85), inserts("a", 90, 84)], maker=maker)
    assert count > 1
    assert outcomes.counts["written"] == 3


@pytest.mark.parametrize("word", ["reject", "error"])
def test_a_misfit_of_a_table_that_begins_is_what_the_word_says(converted: Convert, word: str):
    """Once all is learned, it still is one."""
    lanes, options = [inserts("a", 1, n="1"), inserts("a", 2, n="many")], {"zone": ZONE, "on_misfit": word}
    if word == "error":
        with pytest.raises(MisfitError, match="many"):
            converted(lanes, options=options)
    else:
        outcomes, _, _ = converted(lanes, options=options)
        assert (outcomes.counts["written"], outcomes.counts["rejected"]) == (1, 1)
        assert outcomes.store.rejects().num_rows == 1


ALTER = canal("ALTER", [], id=80, table="a", isDdl=True, sql="ALTER TABLE a MODIFY n VARCHAR(10)")
DROP = canal("ERASE", [], id=80, table="a", isDdl=True, sql="DROP TABLE a")


def texts(id: int, n: str) -> bytes:
    """Return a message that inserts a row whose `n` is declared as text."""
    return canal("INSERT", [{"id": str(id), "n": n}], id=id, table="a", mysqlType={"id": "int", "n": "varchar(10)"})


def untyped(id: int) -> bytes:
    """Return a message that inserts a row whose `n` is a text and which declares no types."""
    return canal("INSERT", [{"id": str(id), "n": "many"}], id=id, table="a", mysqlType=None)


@pytest.mark.parametrize(
    ("known", "lanes", "is_one"),
    [
        (inserts("a", 1, n="1"), [inserts("a", 90, n="many")], True),
        (inserts("a", 1, n="1"), [[untyped(90)]], True),
        (inserts("a", 1, n="1"), [[ALTER], [untyped(90)]], False),
        (inserts("a", 1, n="1"), [[ALTER, untyped(90)]], False),
        ([texts(1, "1")], [[DROP, *inserts("a", 81, n="1"), texts(82, "x"), untyped(83)]], False),
    ],
    ids=["declared", "known", "behind a statement of another lane", "behind one of its lane", "learned last"],
)
def test_a_misfit_ends_a_job_only_if_it_is_one_once_all_is_learned(
    converted: Convert, known: Sequence[bytes], lanes: Lanes, is_one: bool
):
    """What one lane's task takes for a misfit may fit behind a statement of another's, and behind what is learned last."""
    options = {"zone": ZONE, "on_misfit": "error"}
    _, maker, _ = converted([known], options=options)
    if is_one:
        with pytest.raises(MisfitError, match="many"):
            converted(lanes, options=options, maker=maker)
    else:
        outcomes, _, _ = converted(lanes, options=options, maker=maker)
        rows = sum(b'"INSERT"' in message for lane in lanes for message in lane)
        assert (outcomes.counts["written"], outcomes.counts["rejected"]) == (rows, 0)
