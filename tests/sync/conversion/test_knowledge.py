"""Tasks that learn statements on their own: a batch is converted once where they did what others do that know all."""

from __future__ import annotations

import sys
from array import array
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from cdcavro.engine.machine import COMPILED
from cdcavro.lake import TypedRows
from cdcavro.sync.conversion import knowledge as of_tasks
from cdcavro.sync.conversion import rounds, task
from cdcavro.sync.conversion.knowledge import Evidence, Knowledge
from cdcavro.sync.conversion.rounds import Outcomes
from cdcavro.sync.conversion.task import are_confirmed, converter
from cdcavro.sync.local.local_runner import Lane, LocalBatch
from cdcavro.sync.protection import Protection, RowRule
from cdcavro.sync.settings import Formats, Settings
from cdcavro.table.history import Table
from cdcavro.table.table_schema import TableSchema
from cdcavro.table.tables import Tables
from support.messages import canal
from support.rows_trial import ZONE
from support.statement_streams import lanes_of
from support.task_batches import batch_of

SETTINGS = Settings(formats=Formats("canal"), options={"zone": ZONE})
# A column is masked, another left out, and rows kept by a third.
RULES = (
    RowRule("a", ("x",), {"b": "sha256"}, ("*",), "salt", None, "id > 0"),
    RowRule("b", (), {"a": "sha256"}, ("*",), "salt"),
    RowRule("r", where="n > 0"),
)
# How many messages of a lane come at a time.
PIECE = 300


def lanes_with(lanes: Sequence[Sequence[bytes]]) -> list[Lane]:
    """Return lanes, each a topic partition with messages."""

    def batches(partition: int, _: Any) -> Iterator[pa.RecordBatch]:
        for start in range(0, len(lanes[partition]), PIECE):
            records = [(None, one) for one in lanes[partition][start : start + PIECE]]
            yield batch_of(records, partition=partition, first=start)

    return [Lane(len(one), partial(batches, i)) for i, one in enumerate(lanes) if one]


def facts(outcomes: Outcomes, tables: Sequence[Table]) -> dict[str, Any]:
    """Return all that a batch comes to; which table has which number depends on what tasks ask first."""
    names = [one.schema.table.table for one in tables]
    labels = [f"{name} {names[:i].count(name)}" for i, name in enumerate(names)]
    rows = {
        labels[number]: sorted(map(repr, outcomes.store.rows(name, 0).read().to_pylist()))
        for number, name in outcomes.names.items()
    }
    rejects = [(one["partition"], one["offset"], one["reason"]) for one in outcomes.store.rejects().to_pylist()]
    return {
        "rows": rows,
        "rejects": sorted(rejects),
        "counts": {name: count for name, count in outcomes.counts.items() if count and name != "unplaced"},
        "tables": {labels[i]: {**one, "ops": sorted(one["ops"].items())} for i, one in outcomes.tables.items()},
        "lanes": [sorted(map(repr, part)) for part in (outcomes.lanes, outcomes.clock, outcomes.times)],
        "versions": {label: one.versions for label, one in zip(labels, tables, strict=True)},
    }


def count_rounds(
    messages: Sequence[Sequence[bytes]],
    folder: Path,
    *,
    threads: int = 2,
    has_states: bool = True,
    rules: Sequence[RowRule] = (),
) -> int:
    """Check that a batch comes to the same as without evidence; return how often it is converted."""
    batch, settings = (
        LocalBatch(lanes_with(messages), folder, threads=threads),
        replace(SETTINGS, rules=tuple(rules), rejects_raw="omit"),
    )
    found, counts = [], []
    for is_kept in (True, False):
        seen: list[Knowledge] = []

        def run(knowledge: Knowledge, seen: list[Knowledge] = seen, is_kept: bool = is_kept) -> Outcomes:
            seen.append(knowledge)
            outcomes = batch.convert(knowledge)
            return outcomes if is_kept else outcomes._replace(evidence=())

        with pytest.MonkeyPatch.context() as patch:
            if not is_kept:
                patch.setattr(task, "Evidence", lambda: None)
            maker = TypedRows(settings.tables())
            outcomes, _ = rounds.convert(run, maker, settings, is_reduced=False, has_states=has_states)
        found.append(facts(outcomes, maker.tables.tables))
        counts.append(len(seen))
    assert found[0] == found[1]
    return counts[0]


def rows(table: str, *ids: int, type: str = "INSERT", **values: str) -> list[bytes]:
    """Return messages of rows, in the seconds of their numbers."""
    old = [dict.fromkeys(values, "0")] if type == "UPDATE" else []
    return [canal(type, [{"id": str(i), **values}], id=i, table=table, old=old) for i in ids]


def added(table: str, id: int, name: str = "b", **members: Any) -> bytes:
    """Return a statement that adds a column."""
    return canal("ALTER", [], id=id, table=table, isDdl=True, sql=f"ALTER TABLE {table} ADD {name} int", **members)


@pytest.mark.parametrize(
    "lanes",
    [
        [[*rows("a", *range(1, 900)), added("a", 900), *rows("a", *range(901, 1800), b="1")]],
        [
            [*rows(name, *range(1, 400)), added(name, 400), *rows(name, *range(401, 800), type="UPDATE", b="1")]
            for name in "ab"
        ],
        [[*rows("a", 1, 3), added("a", 4)], rows("a", 2) + rows("a", 5, 6, b="1"), rows("b", 1)],
        [
            [*rows("a", *range(1, 5), a="1", type="UPDATE"), added("a", 5)],
            rows("a", *range(1, 6), a="2", type="UPDATE"),
        ],
    ],
    ids=["one lane", "a table in each", "another lane sees its columns only", "updates before it in both"],
)
@pytest.mark.parametrize("rules", [(), RULES])
def test_a_batch_with_a_statement_in_its_middle_is_converted_once(
    tmp_path: Path, lanes: Sequence[Sequence[bytes]], rules: Sequence[RowRule]
):
    """What stands before the statement, and behind it, is typed as it is with all that was learned, and ruled alike."""
    assert count_rounds(lanes, tmp_path, rules=rules) == 1


def renamed(id: int, old: str, new: str, table: str = "a", type: str = "ALTER") -> bytes:
    """Return a statement that renames a column, or a table where there is no old name of a column."""
    sql = f"ALTER TABLE {table} RENAME COLUMN {old} TO {new}" if old else f"RENAME TABLE {table} TO {new}"
    return canal(type, [], id=id, table=table, isDdl=True, sql=sql)


@pytest.mark.parametrize(
    ("lanes", "count"),
    [
        ([[*rows("a", 1, 2, b="1"), renamed(3, "b", "c"), *rows("a", 4, 5, c="1"), renamed(6, "c", "d")]], 1),
        ([[*rows("a", 1, b="1"), renamed(9, "b", "c"), *rows("a", 10, c="1")], rows("a", 2, 11, c="1")], 2),
        ([rows("a", 1, b="1"), [*rows("a", 2, b="1"), renamed(3, "b", "c"), *rows("a", 4, c="1")]], 1),
        ([rows("e", 1, b="1"), [*rows("a", 2, b="1"), renamed(3, "", "e", type="RENAME"), *rows("e", 4, b="1")]], 2),
        ([[*rows("r", 1, n="1"), added("r", 2), *rows("r", 3), *rows("r", 4, n="2")]], 2),
    ],
    ids=["renamed in one lane", "in another lane", "behind it", "a table", "rows that are refused"],
)
def test_rows_count_if_rules_decide_the_same_by_all_that_a_batch_says(
    tmp_path: Path, lanes: Sequence[Sequence[bytes]], count: int
):
    """What is protected by all that the batch says is written, whatever a lane knew of it."""
    assert count_rounds(lanes, tmp_path, rules=RULES) == count


def test_rows_are_not_confirmed_by_knowledge_that_protects_them_otherwise(tmp_path: Path):
    """Another column is masked, a table gets a rule, or its rows may not be written: who knows that converts again."""
    lane = [*rows("a", *range(1, 9), b="1"), added("a", 9), *rows("a", 10, b="1")]
    settings, kept = replace(SETTINGS, rules=RULES, rejects_raw="omit"), list[Outcomes]()

    def run(knowledge: Knowledge) -> Outcomes:
        kept.append(LocalBatch(lanes_with([lane, rows("c", 1)]), tmp_path).convert(knowledge))
        return kept[-1]

    maker = TypedRows(settings.tables())
    outcomes, _ = rounds.convert(run, maker, settings, is_reduced=False)
    assert [one.is_ahead for one in kept] == [True]

    def is_confirmed(*rules: RowRule) -> bool:
        own = Knowledge(maker.tables, [], settings.formats, None, is_all=True, protection=Protection(rules))
        return are_confirmed(kept[0].evidence, own, outcomes.names)

    assert is_confirmed(*RULES)
    assert not is_confirmed()
    assert not is_confirmed(RowRule("a", ("x", "b"), where="id > 0"), *RULES)
    assert not is_confirmed(RowRule("a", ("x",), {"b": "hmac-sha256"}, ("*",), None, "s", "id > 0"), *RULES)
    assert not is_confirmed(RowRule("a", ("x",), {"b": "sha256"}, ("*",), "salt", None, "b > 0"), *RULES)
    assert not is_confirmed(*RULES, RowRule("c", where="id > 0"))
    assert not is_confirmed(*RULES, RowRule("c", ("id",)))


@pytest.mark.slow
@pytest.mark.parametrize("first", range(0, 60, 10))
def test_random_streams_under_rules_come_to_the_same_as_without_evidence(tmp_path: Path, first: int):
    """Columns that are masked, left out or compared are added, dropped, changed and renamed in the middle of a batch."""
    counts = []
    for seed in range(first, first + 10):
        where = (None, "a = '22'", "id > 9")[seed % 3]
        rules = [RowRule("*", ("x", "c1"), {"a": "sha256", "c0": "sha256"}, ("*",), "salt", None, where)]
        counts.append(
            count_rounds(lanes_of(seed), tmp_path, threads=1 + seed % 3, has_states=bool(seed % 2), rules=rules)
        )
    assert {1} < {*counts}


def kept_of(messages: Sequence[bytes]) -> Evidence:
    """Return what a task keeps of messages."""
    knowledge: list[Knowledge] = []

    def run(own: Knowledge) -> Outcomes:
        knowledge.append(own)
        return LocalBatch([], Path()).convert(own)

    rounds.convert(run, TypedRows(SETTINGS.tables()), SETTINGS, is_reduced=False)
    evidence = Evidence()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(task, "Evidence", lambda: evidence)
        for _ in converter(knowledge[0])([batch_of([(None, one) for one in messages])]):
            pass
    return evidence


def bytes_of(value: Any, seen: set[int]) -> int:
    """Return how many bytes a value takes that no other one of those seen has; tables are all others' as well."""
    if id(value) in seen or isinstance(value, Table | TableSchema | type):
        return 0
    seen.add(id(value))
    inner: list[Any] = []
    if isinstance(value, dict):
        inner = [*value, *value.values()]
    elif isinstance(value, list | tuple):
        inner = [*value]
    elif not isinstance(value, bytes | str | int | array | None):
        slots = (name for kind in type(value).__mro__ for name in getattr(kind, "__slots__", ()))
        inner = [getattr(value, name) for name in slots if hasattr(value, name)]
        inner += [vars(value)] if hasattr(value, "__dict__") else []
    return sys.getsizeof(value) + sum(bytes_of(one, seen) for one in inner)


@pytest.mark.parametrize(
    "messages",
    [
        rows("a", *range(1, 200)),
        [canal("INSERT", [{"id": str(i)} for i in range(500)], id=1, table="a")],
        [canal("INSERT", [{"id": "1", **dict.fromkeys(f"{i:06b}", "1")}], id=i, table=f"t{i}") for i in range(1, 60)],
    ],
    ids=["a row each", "many rows", "a pattern each"],
)
def test_evidence_counts_at_least_the_bytes_that_it_keeps(messages: Sequence[bytes]):
    """Messages, the facts of their rows and the programs of their patterns, so that its bound is one."""
    evidence = kept_of(messages)
    assert not evidence.is_void
    kept = bytes_of(evidence._placed, set())
    assert kept <= evidence.size < 16 * kept


def test_evidence_that_is_too_much_is_given_up(monkeypatch: pytest.MonkeyPatch):
    """Facts and programs count: the messages alone would not be too many."""
    messages = [canal("INSERT", [{"id": str(i)} for i in range(500)], id=1, table="a")]
    size = kept_of(messages).size
    assert size > len(messages[0]) + 500 * 100
    monkeypatch.setattr(of_tasks, "_MOST", size)
    assert not kept_of(messages).is_void
    monkeypatch.setattr(of_tasks, "_MOST", size - 1)
    voided = kept_of(messages)
    assert (voided.is_void, voided.size, bytes_of(voided._placed, set())) == (True, 0, sys.getsizeof({}))


@pytest.mark.slow
def test_evidence_of_all_tasks_is_looked_at_up_to_a_bound(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """The driver has that of all tasks at once."""
    lanes = [[*rows(name, *range(1, 9)), added(name, 9), *rows(name, 10, b="1")] for name in "ab"]
    monkeypatch.setattr(of_tasks, "_MOST_OF_TASKS", 1 << 20)
    assert count_rounds(lanes, tmp_path) == 1
    monkeypatch.setattr(of_tasks, "_MOST_OF_TASKS", 1)
    assert count_rounds(lanes, tmp_path) == 2


@pytest.mark.parametrize(
    "lanes",
    [
        [rows("a", *range(1, 9), a="1", type="UPDATE"), [*rows("a", 1, a="1"), added("a", 5)]],
        [[*rows("a", 1), added("a", 3)], [*rows("a", 2), added("a", 4, "c"), *rows("a", 5, c="1")]],
        [[*rows("a", 1, 2), canal("TRUNCATE", [], id=3, table="a", isDdl=True, sql="TRUNCATE a"), *rows("a", 4)]],
        [[*rows("a", 1), canal("ERASE", [], id=2, table="a", isDdl=True, sql="DROP TABLE a"), *rows("a", 3)]],
        [[*rows("a", 1), canal("RENAME", [], id=2, table="a", isDdl=True, sql="RENAME TABLE a TO b"), *rows("b", 3)]],
        [
            [
                *rows("a", 1),
                canal("ERASE", [], id=2, table="a", isDdl=True, sql="DROP TABLE a"),
                *rows("a", *range(3, 99), b="1"),
            ]
        ],
    ],
    ids=[
        "updates behind the statement of another lane",
        "statements of two lanes",
        "a truncate",
        "a drop",
        "another name",
        "many rows behind a drop",
    ],
)
def test_a_batch_of_which_lanes_know_other_things_is_converted_again(tmp_path: Path, lanes: Sequence[Sequence[bytes]]):
    """It comes to the same."""
    assert count_rounds(lanes, tmp_path) > 1


@pytest.mark.skipif(not COMPILED, reason="where nothing is compiled, all goes the exact way")
def test_a_task_learns_a_statement_before_it_tries_all_rows_behind_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Each row that has no place takes a hundred times as long as others."""
    tried = []
    found = Tables.find
    monkeypatch.setattr(Tables, "find", lambda *own: tried.append(own) or found(*own))
    lane = [*rows("a", *range(1, 900)), added("a", 900), *rows("a", *range(901, 1200), b="1")]
    outcomes, _ = rounds.convert(
        LocalBatch(lanes_with([lane]), tmp_path).convert, TypedRows(SETTINGS.tables()), SETTINGS, is_reduced=False
    )
    assert outcomes.counts["written"] == 1198
    assert len(tried) < 200


@pytest.mark.slow
@pytest.mark.parametrize("is_kept", [True, False])
@pytest.mark.parametrize(("count", "behind"), [(64, 200), (100, 500), (256, 1000)])
def test_rows_behind_a_drop_have_a_place_wherever_pieces_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, count: int, behind: int, is_kept: bool
):
    """They are of a table of their own, which begins with the first of them, not with that of the next piece."""
    if not is_kept:
        monkeypatch.setattr(task, "Evidence", lambda: None)
    drop = canal("ERASE", [], id=count + 1, table="a", isDdl=True, sql="DROP TABLE a")
    lane = [*rows("a", *range(1, count + 1)), drop, *rows("a", *range(count + 2, count + 2 + behind))]

    def run(knowledge: Knowledge) -> Outcomes:
        outcomes = batch.convert(knowledge)
        return outcomes if is_kept else outcomes._replace(evidence=())

    batch = LocalBatch(lanes_with([lane]), tmp_path)
    outcomes, _ = rounds.convert(run, TypedRows(SETTINGS.tables()), SETTINGS, is_reduced=False)
    assert (outcomes.counts["written"], outcomes.counts["rejected"]) == (count + behind, 0)


@pytest.mark.slow
@pytest.mark.parametrize("first", range(0, 60, 10))
def test_random_streams_come_to_the_same_as_without_evidence(tmp_path: Path, first: int):
    """Columns are added, dropped, changed and renamed, tables emptied, dropped and renamed; messages are sent again."""
    counts = [
        count_rounds(lanes_of(seed), tmp_path, threads=1 + seed % 3, has_states=bool(seed % 2))
        for seed in range(first, first + 10)
    ]
    assert {1} < {*counts}
