"""Current states that keep deleted rows, or all versions of rows: the same as all changes in order make, whatever comes."""

from __future__ import annotations

import os
import random
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from cdcavro.change.model import replace
from cdcavro.errors import SchemaError
from cdcavro.lake.lakes import CURRENT, HISTORY, SOFT
from cdcavro.lake.sql_statements import AGAIN, KEY, ORDER
from cdcavro.lake.typed_rows import TypedRow
from cdcavro.sync.native.delta_lake import NativeDelta, NativeDeltaTable
from cdcavro.sync.native.iceberg_lake import NativeIceberg
from cdcavro.sync.native.native_state import NativeCache, NativeState
from cdcavro.sync.native.native_versions import NativeVersions
from support.dropped_columns import dropping_stream, held_rows, kept_rows
from support.keyed_changes import texts_under_a_name_of_two_columns
from support.lake_values import table_of
from support.local_pipelines import DELTA, ICEBERG
from support.versioned_lakes import NAME, Lake, again, at, check_shuffle, made

LAKES = (DELTA, ICEBERG)
FORMS = (SOFT, HISTORY)
SHUFFLES, PARTS = 500, 10
SOME_SEEDS = [3, *[pytest.param(seed, marks=pytest.mark.slow) for seed in range(4, 14)]]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("seed", [2])
def test_any_order_cut_and_repetition_makes_the_rows_of_the_oracle(tmp_path: Path, form: str, seed: int):
    """Late changes, deletes, TRUNCATE, a late full load, changes that lack columns, messages that are delivered twice."""
    check_shuffle(tmp_path, form, DELTA, seed)


@pytest.mark.slow
@pytest.mark.timeout(3_000)
@pytest.mark.parametrize("part", range(PARTS))
def test_500_shuffles_make_the_rows_of_the_oracle(tmp_path: Path, part: int):
    """All of them with CDCAVRO_EVERY_MESSAGE in the environment, else each twentieth; lakes and forms take turns."""
    stride = PARTS * (1 if os.environ.get("CDCAVRO_EVERY_MESSAGE") else 20)
    for seed in range(100 + part, 100 + SHUFFLES, stride):
        for form in FORMS:
            check_shuffle(tmp_path / f"{seed} {form}", form, LAKES[seed // PARTS % 2], seed)


def check_dropped(folder: Path, form: str, kind: str, seed: int) -> None:
    """Check that rows merged in any order, cuts and repetitions leave in each column what the last change says that has it."""
    draw, (rows, versions) = random.Random(seed), dropping_stream(seed, 40)
    lake = NativeDelta(str(folder)) if kind == DELTA else NativeIceberg("ice", warehouse=str(folder))
    table, merged, known, cache = lake.table(NAME), list[TypedRow](), 1, NativeCache()
    # The table is there before its columns go.
    waiting = [*rows[1:], *draw.sample(rows, 10)]
    # A batch has what is close to each other, or is late.
    waiting = [
        row for _, row in sorted(enumerate(waiting), key=lambda one: one[0] + draw.choice([0, 3, 60]) * draw.random())
    ]
    batches = [rows[:1]]
    while waiting:
        size = draw.randrange(1, 9)
        batches.append(waiting[:size])
        del waiting[:size]
    for batch in batches:
        known = max(known, *(row.version for row in batch))
        cache = cache if draw.random() < 0.7 else NativeCache()
        state = NativeState(lake, NAME, known=cache) if form == CURRENT else NativeVersions(lake, NAME, form=form)
        state.prepare(versions[:known])
        state.merge(table_of(batch), versions[:known])
        merged += batch
        assert held_rows(table) == kept_rows(merged, versions[:known], table.columns(), is_soft=form == SOFT), seed


@pytest.mark.slow
@pytest.mark.parametrize("form", [CURRENT, SOFT])
@pytest.mark.parametrize("seed", SOME_SEEDS)
def test_a_dropped_column_has_what_the_last_change_says_that_has_it(tmp_path: Path, form: str, seed: int):
    """However late rows and deletes from before or behind its statement are; also where it comes back, or was renamed."""
    check_dropped(tmp_path, form, LAKES[seed % 2], seed)


def told(lake: Lake, *names: str) -> list[tuple[Any, ...]]:
    """Return columns of all rows, in order; times are the numbers of their changes."""
    held = lake.held().sort_by([(KEY, "ascending"), (ORDER, "ascending")])
    columns = [held.column(name) for name in names]
    plain = [
        [None if value is None else value // 1_000_000 for value in one.cast(pa.int64()).to_pylist()]
        if pa.types.is_timestamp(one.type)
        else one.to_pylist()
        for one in columns
    ]
    return list(zip(*plain, strict=True))


@pytest.mark.slow
def test_a_late_change_splits_an_interval_and_reaches_what_was_taken_from_the_version_before(tmp_path: Path):
    """Nothing is known of a change that lacks columns but what it states."""
    lake, names = Lake(tmp_path, HISTORY), ("a", "b", "_cdc_from", "_cdc_to")
    lake.merge([made("INSERT", 1, 1), made("UPDATE", 9, 1, "b")])
    assert told(lake, *names) == [(1, -1, 1, 9), (9, -1, 9, None)]
    lake.merge([made("UPDATE", 5, 1, "a")])
    assert told(lake, *names) == [(1, -1, 1, 5), (1, -5, 5, 9), (9, -5, 9, None)]
    lake.merge([made("DELETE", 7, 1)])
    assert told(lake, *names) == [(1, -1, 1, 5), (1, -5, 5, 7), (9, None, 9, None)]
    lake.merge([made("TRUNCATE", 3, 1), made("INSERT", 4, 2)])
    assert told(lake, *names) == [(1, -1, 1, 3), (None, -5, 5, 7), (9, None, 9, None), (4, -4, 4, None)]


@pytest.mark.slow
def test_a_deleted_row_stays_as_it_was_and_comes_back(tmp_path: Path):
    """The first delete counts; a change from before it is none that brings the row back."""
    lake, names = Lake(tmp_path, SOFT), ("id", "a", "b", "_cdc_is_deleted", "_cdc_deleted_at")
    lake.merge([made("INSERT", 1, 1), made("INSERT", 2, 2), made("DELETE", 6, 1), made("DELETE", 8, 1)])
    assert told(lake, *names) == [(1, 1, -1, True, 6), (2, 2, -2, False, None)]
    lake.merge([made("DELETE", 5, 1), made("UPDATE", 4, 1, "b")])
    assert told(lake, *names) == [(1, 4, -1, True, 5), (2, 2, -2, False, None)]
    lake.merge([made("UPDATE", 7, 1, "b")])
    # What stood before a delete is nothing to a row behind it, as in other forms.
    assert told(lake, *names) == [(1, 7, None, True, 8), (2, 2, -2, False, None)]
    lake.merge([made("INSERT", 10, 1), made("TRUNCATE", 9, 0)])
    assert told(lake, *names) == [(1, 10, -10, False, None), (2, 2, -2, True, 9)]


@pytest.mark.slow
@pytest.mark.parametrize("form", FORMS)
def test_what_comes_again_changes_nothing(tmp_path: Path, form: str):
    """No commit is made for a batch that is there; a message under another offset makes no version of its own."""
    lake = Lake(tmp_path, form)
    messages = [made("INSERT", 1, 1), made("UPDATE", 2, 1, "b"), made("DELETE", 4, 1), made("TRUNCATE", 5, 1)]
    lake.merge([*messages, made("INSERT", 6, 2)])
    before, commits = lake.rows(), lake.commits()
    lake.merge(messages, is_new=True)
    assert (lake.rows(), lake.commits()) == (before, commits)
    lake.merge([again(one, 1_000 + i) for i, one in enumerate(messages)])
    assert lake.rows() == lake.wanted()
    assert len(lake.rows()) == len(before)


@pytest.mark.parametrize(
    ("op", "rows"), [("UPDATE", [(1, 1, 2), (5, 2, 1), (1, 1, None)]), ("TRUNCATE", [(1, 1, 2), (1, 1, None)])]
)
def test_a_change_that_came_twice_is_two_where_another_comes_between(tmp_path: Path, op: str, rows: list[Any]):
    """The orders of what was said again are kept, and so it says it again then."""
    lake = Lake(tmp_path, HISTORY)
    first = made("INSERT", 1, 1)
    lake.merge([first, again(first, 1_000)])
    assert told(lake, "a", "_cdc_from", "_cdc_to") == [(1, 1, None)]
    assert len(lake.held().column(AGAIN)[0].as_py()) == 1
    between = again(at(made(op, 1, 1), 2_000_000), 500)
    lake.merge([[replace(one, after=one.after and {"id": 1, "a": 5, "b": 5}) for one in between]])
    assert told(lake, "a", "_cdc_from", "_cdc_to") == rows
    assert lake.rows() == lake.wanted()


@pytest.mark.parametrize("form", FORMS)
def test_a_text_that_no_type_carries_goes_with_its_column(tmp_path: Path, form: str):
    """Also into a version that takes the column from the one before."""
    lake = Lake(tmp_path, form)
    misfit = [replace(one, after={"id": 1, "a": 1, "b": "misfit"}) for one in made("INSERT", 1, 1)]
    lake.merge([misfit, made("UPDATE", 3, 1, "b")])
    lake.merge([made("UPDATE", 2, 1, "b")])
    texts = [row for (row,) in told(lake, "_cdc_unparsed")]
    assert texts == [[("b", "misfit")]] * (1 if form == SOFT else 3)
    lake.merge([made("UPDATE", 4, 1, "a")])
    assert told(lake, "a", "b", "_cdc_unparsed")[-1] == (3, -4, None)


@pytest.mark.slow
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("size", [1, 4])
def test_a_text_goes_with_its_column_where_another_one_has_the_name_now(tmp_path: Path, form: str, size: int):
    """The text of the second one is called by its field."""
    lake, messages = Lake(tmp_path, form), texts_under_a_name_of_two_columns()
    for start in range(0, 4, size):
        lake.merge(messages[start : start + size])
    texts = [dict(row) for (row,) in told(lake, "_cdc_unparsed")]
    wanted = [{"a": "x", "b": "y"}, {"a": "x", "b": "y", "b_x_2": "z"}, {"a": "x", "b_x_2": "z"}]
    assert texts == wanted[2 if form == SOFT else 0 :]


def test_versions_that_differ_in_a_dropped_column_alone_stay_two(tmp_path: Path):
    """They are no repetition, also when the row is written again behind the statement."""
    lake = Lake(tmp_path, HISTORY)
    first, second = (at(made(op, number, 1), 0) for op, number in (("INSERT", 1), ("UPDATE", 2)))
    second = [replace(one, after={"id": 1, "a": 1, "b": -2}) for one in second]
    drop = replace(made("TRUNCATE", 20, 1)[0], op="ALTER", ddl="ALTER TABLE t DROP COLUMN b")
    third = [
        replace(
            one, after={"id": 1, "a": 3}, columns=tuple(column for column in one.columns or () if column.name != "b")
        )
        for one in made("UPDATE", 30, 1)
    ]
    lake.merge([first, second])
    lake.merge([[drop], third])
    assert told(lake, "a", "b", "_cdc_to") == [(1, -1, 0), (1, -2, 30), (3, None, None)]


@pytest.mark.slow
@pytest.mark.parametrize("form", FORMS)
def test_a_column_that_was_renamed_is_still_that_of_the_version_before(tmp_path: Path, form: str):
    """A late change reaches it."""
    lake = Lake(tmp_path, form)
    lake.merge([made("INSERT", 1, 1), made("UPDATE", 9, 1, "b")])
    rename = replace(made("TRUNCATE", 20, 1)[0], op="ALTER", ddl="ALTER TABLE t RENAME COLUMN b TO `c d`")
    lake.typed([[rename]])
    lake.merge([made("UPDATE", 5, 1, "a")])
    assert told(lake, "a", "c d") == [(9, -5)] if form == SOFT else [(1, -1), (1, -5), (9, -5)]
    lake.merge([made("UPDATE", 7, 1, "a")], is_new=True)
    assert told(lake, "a", "c d")[-1] == (9, -7)


@pytest.mark.parametrize("form", FORMS)
def test_a_table_that_is_dropped_has_no_row_that_stands(tmp_path: Path, form: str):
    """A DROP says no time."""
    lake = Lake(tmp_path, form)
    lake.merge([made("INSERT", 1, 1), made("INSERT", 2, 2)])
    drop = replace(made("TRUNCATE", 5, 1)[0], op="ERASE", ddl="DROP TABLE t")
    lake.merge([[drop]])
    ended = "_cdc_deleted_at" if form == SOFT else "_cdc_to"
    assert [(order is not None, at) for order, at in told(lake, "_cdc_end", ended)] == [(True, None)] * 2
    assert lake.rows() == lake.wanted()


@pytest.mark.parametrize("form", [SOFT, HISTORY, CURRENT])
def test_the_form_of_a_table_that_stands_cannot_change(tmp_path: Path, form: str):
    """Nothing is done to it."""
    lake = Lake(tmp_path, HISTORY if form == SOFT else SOFT)
    rows = lake.typed([made("INSERT", 1, 1)])
    if form == CURRENT:
        lake.merge_rows(rows)
        other: NativeState = NativeState(lake.lake, NAME)
    else:
        state = NativeState(lake.lake, NAME)
        state.prepare(lake.versions)
        state.merge(table_of(rows), lake.versions)
        other = NativeVersions(lake.lake, NAME, form=form)
    began = "soft" if form == CURRENT else "current"
    commits = lake.commits()
    with pytest.raises(
        SchemaError, match=f'its lake table was begun with form = "{began}", which cannot become "{form}"'
    ):
        other.prepare(lake.versions)
    assert lake.commits() == commits


@pytest.mark.slow
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("step", ["rewrite", "replace", "append"])
def test_a_batch_that_was_killed_behind_any_step_is_made_whole_by_the_next_attempt(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, form: str, step: str
):
    """A late TRUNCATE and a late delete, of which rows are told before they are known themselves."""
    lake = Lake(tmp_path, form)
    lake.merge([made("INSERT", 1, 1), made("UPDATE", 9, 1, "b"), made("INSERT", 2, 2), made("INSERT", 3, 3)])
    rows = lake.typed([made("TRUNCATE", 5, 1), made("DELETE", 4, 3), made("INSERT", 7, 2), made("UPDATE", 8, 3, "a")])
    done = getattr(NativeDeltaTable, step)

    def killed(*facts: Any, **more: Any) -> None:
        done(*facts, **more)
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(NativeDeltaTable, step, killed)
        with pytest.raises(KeyboardInterrupt):
            lake.merge_rows(rows)
    lake.merge_rows(rows, is_new=True)
    assert lake.rows() == lake.wanted()
    lake.merge([made("UPDATE", 6, 2, "a")])
    assert lake.rows() == lake.wanted()
