"""Shard histories: whatever is done to names, and whenever shards follow it, no column gets the values of another one."""

from __future__ import annotations

import os

import pytest

from cdcavro.lake.evolution import LakeColumn
from cdcavro.sync.native.shard_histories import Kin, Origin, Point, ShardHistory
from support.shard_runs import ShardRun

RUNS = int(os.environ.get("CDCAVRO_EXAMPLES") or 150)
C, D, AGAIN = LakeColumn("c", "c", "int"), LakeColumn("d", "d", "int", ("c",)), LakeColumn("C", "c_2", "int")
DROPPED = ShardHistory([[C], [D], [], [AGAIN]])


def test_a_column_is_told_by_which_one_it_is_that_was_added_under_a_name():
    """Whatever it is called since, and whether others know of the columns before."""
    lineage = DROPPED.lineage([])
    first, second = Origin("c", 0), Origin("c", 1)
    assert lineage.origins == {"c": first, "d": first, "c_2": second}
    assert lineage.names == {first: ["c", "d"], second: ["c"]}
    assert lineage.last == {second}
    assert ShardHistory([[C]]).lineage(DROPPED.changes).origins == {"c": second}


def test_columns_that_are_exchanged_in_one_statement_or_by_two_are_told_alike():
    """As is a column that is dropped and added again, which is not the one that goes on with its values."""
    once, twice = ShardHistory([[C], [AGAIN]]), ShardHistory([[C], [], [AGAIN]])
    assert once.changes == twice.changes == [[[None, "c"]], [["c", None]], [[None, "c"]]]
    until = LakeColumn("c (until version 1)", "c", "int", until=1)
    assert ShardHistory([[C], [until, LakeColumn("c", "c_2", "string")]]).changes == once.changes


def test_a_shard_has_begun_where_its_columns_and_statements_fit():
    """At any of several points, but where others have followed the same rather than where none has; or at none."""
    kins = [Kin(DROPPED.changes, {})]
    assert ShardHistory([[C]]).points(kins) == [Point(0, 0), Point(0, 3)]
    assert ShardHistory([[C], [D]]).points(kins) == [Point(0, 0)]
    assert ShardHistory([[C], []]).points(kins) == [Point(0, 3)]
    assert ShardHistory([[LakeColumn("d", "d", "int")], []]).points(kins) == [Point(0, 1)]
    assert ShardHistory([[C, LakeColumn("e", "e", "int")]]).points(kins) == []


@pytest.mark.parametrize("seed", [*range(4), 65, 68, 163])
def test_no_column_gets_values_of_another_one(seed: int):
    """Names that are exchanged, dropped and used again, by shards that follow several statements at once.

    Told by names alone, 0, 65 and 68 had united different columns, and 163 had put one in two.
    """
    run = ShardRun(seed, 7)
    assert (run.faults, run.stuck) == ([], [])


@pytest.mark.slow
def test_no_column_gets_values_of_another_one_in_many_runs():
    """Of which CDCAVRO_EXAMPLES asks for more; in the end no shard waits."""
    for seed in range(RUNS):
        run = ShardRun(1000 + seed, 7 + 5 * (seed % 4 == 0), shards=3 + seed % 3)
        assert (run.faults, run.stuck) == ([], []), seed


@pytest.mark.slow
def test_a_shard_that_is_created_late_gets_no_values_into_another_column():
    """It may wait to the end, as nobody can tell it from one that was there before, if it is not ahead of all others."""
    for seed in range(RUNS):
        run = ShardRun(seed, 7, late=2)
        assert run.faults == [], seed
