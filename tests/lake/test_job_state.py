"""The state of a job: what it learned, from file to file."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from datetime import UTC
from pathlib import Path
from typing import Any

import pytest

from cdcavro.change.model import Arrival, Change, Column, Source, replace
from cdcavro.errors import FileError
from cdcavro.lake import JobState, TypedRow, TypedRows
from cdcavro.lake.job_state import _Record, _without_idle, replace_file
from cdcavro.table.tables import Tables
from support.roundtrip import error_of
from support.shop_state import as_came
from support.shop_streams import shuffled
from support.shop_tables import MESSAGES

Batches = list[list[list[Change]]]


def batches(messages: Sequence[list[Change]], size: int) -> Batches:
    """Return messages in batches of a size."""
    return [list(messages[i : i + size]) for i in range(0, len(messages), size)]


def run(folder: Path, every: Batches, first: int = 0, last: int | None = None) -> list[list[TypedRow]]:
    """Run batches in a job that starts at the first of them, as it does after a crash."""
    state, found = JobState(folder), []
    maker = state.resume(first, Tables(zone=UTC))
    for number in range(first, len(every) if last is None else last + 1):
        batch = maker.of_batch(every[number])
        state.write(number, batch.learned, maker.clock, {"rows": len(batch.rows)})
        found.append(batch.rows)
    return found


@pytest.mark.slow
@pytest.mark.parametrize("producer", MESSAGES)
@pytest.mark.parametrize("size", [pytest.param(1, marks=pytest.mark.slow), 7, 40])
def test_a_job_that_starts_again_at_any_batch_makes_the_same_rows(tmp_path: Path, producer: str, size: int):
    """Tables, versions, payloads and orders, byte for byte; a batch that was begun is run again."""
    every = batches(as_came(producer), size)
    wanted = run(tmp_path / "whole", every)
    starts = range(0, len(every), max(1, len(every) // 4))
    run(tmp_path / "again", every, 0, starts[0])
    for start, stop in zip(starts, [*starts[1:], len(every) - 1], strict=True):
        assert run(tmp_path / "again", every, start, stop) == wanted[start : stop + 1]


@pytest.mark.slow
@pytest.mark.parametrize("producer", MESSAGES)
@pytest.mark.parametrize("seed", [3, pytest.param(4, marks=pytest.mark.slow), 10])
def test_a_job_over_partitions_that_run_apart_makes_the_same_rows_again(tmp_path: Path, producer: str, seed: int):
    """Their clocks are part of the state."""
    every = batches(shuffled(producer, seed).messages, 13)
    wanted = run(tmp_path / "whole", every)
    half = len(every) // 2
    run(tmp_path / "again", every, 0, half)
    assert run(tmp_path / "again", every, half) == wanted[half:]


@pytest.mark.slow
def test_a_state_is_a_file_that_a_person_can_read_and_old_ones_without_news_go(tmp_path: Path):
    """The statements as they came, no values of rows."""
    every = batches(as_came("canal"), 1)
    run(tmp_path, every)
    files = sorted(tmp_path.iterdir())
    states = [json.loads(path.read_text(encoding="utf-8")) for path in files]
    assert [f"{state['batch']:012}.json" for state in states] == [path.name for path in files]
    assert all(state["learned"] for state in states[:-2])
    said = [change["ddl"] for state in states for change in state["learned"] if "ddl" in change]
    assert "ALTER TABLE orders RENAME COLUMN note TO remark" in said
    rows = [change for state in states for change in state["learned"] if "columns" in change and "ddl" not in change]
    assert rows
    assert all(change["after"] == {} for change in rows)
    assert len(files) < len(every) // 2


def test_a_state_that_is_missing_or_is_none_is_refused(tmp_path: Path):
    """Nothing is taken for known that is not."""
    state = JobState(tmp_path)
    expected = f"{tmp_path}/000000000004.json: expected the state behind the batch before, got none"
    assert error_of(state.resume, 5, Tables()) == expected
    path = tmp_path / "000000000000.json"
    for text, got in [
        ("{", "JSONDecodeError"),
        ("[" * 100_000, "RecursionError"),
        ("{}", "Object missing required field `format`"),
        ("[]", "Expected `object`, got `array`"),
        ('{"format":"1","learned":[],"clock":[]}', "Expected `int`, got `str` - at `$.format`"),
        ('{"format":1,"learned":[],"clock":[1]}', "Expected `array`, got `int` - at `$.clock[0]`"),
        ('{"format":1,"learned":[1],"clock":[]}', "Expected `object`, got `int` - at `$.learned[0]`"),
        (
            '{"format":1,"learned":[],"clock":[],"names":[[0,["d"],null,"t"]]}',
            "Expected `str | null`, got `array` - at `$.names[0][1]`",
        ),
        (
            '{"format":1,"learned":[],"clock":[],"begun":"yesterday"}',
            "Invalid RFC3339 encoded datetime - at `$.begun`",
        ),
        ('{"format":1,"learned":[{"op":"FLY"}],"clock":[]}', None),
        ('{"format":1,"learned":[{"op":"ALTER","ddl":"ALTER TABLE"}],"clock":[]}', None),
    ]:
        path.write_text(text, encoding="utf-8")
        said = error_of(state.resume, 1, Tables())
        assert said.startswith(f"{path}: expected a job's state, got ")
        assert got is None or said.endswith(got)
    path.write_text('{"format":2}', encoding="utf-8")
    assert error_of(state.resume, 1, Tables()) == f"{path}: expected a job's state in format 1, got one in format 2"


def test_a_file_that_was_begun_and_not_finished_is_no_state(tmp_path: Path):
    """It has another name until it is whole."""
    every = batches(as_came("canal"), 40)
    run(tmp_path, every, 0, 1)
    (tmp_path / "000000000002.new").write_text("{", encoding="utf-8")
    assert run(tmp_path, every, 2, 2)


def test_a_table_whose_rows_were_written_before_its_statement_has_a_version_of_them_again(tmp_path: Path):
    """And what rows say again behind a statement is learned again."""
    source = Source(format="debezium", db_type="mysql", database="d", table="t")
    row = Change(op="INSERT", source=source, key=("id",), after={"id": 1, "a": 2})
    create = Change(op="CREATE", source=source, ddl="CREATE TABLE t (id INT PRIMARY KEY, a INT)")
    listed = replace(row, columns=(Column(name="id", type="int"), Column(name="a", type="int")))
    rename = Change(op="ALTER", source=source, ddl="ALTER TABLE t RENAME COLUMN a TO b")
    every = [
        [[replace(one, position=(number,), place=Arrival(topic="x", partition=0, offset=number))]]
        for number, one in enumerate((row, create, listed, rename, listed, row))
    ]
    wanted = run(tmp_path / "whole", every)
    for start in range(len(every)):
        run(tmp_path / f"{start}", every, 0, start)
        assert run(tmp_path / f"{start}", every, start) == wanted[start:]
        again = JobState(tmp_path / f"{start}").resume(len(every), Tables(zone=UTC)).tables.tables
        whole = JobState(tmp_path / "whole").resume(len(every), Tables(zone=UTC)).tables.tables
        assert [table.steps for table in again] == [table.steps for table in whole]
    maker = JobState(tmp_path / "new").resume(0, Tables(zone=UTC))
    for batch in every:
        maker.of_batch(batch)
    assert [table.steps for table in maker.tables.tables] == [table.steps for table in whole]


@pytest.mark.slow
def test_a_state_whose_files_were_put_together_still_says_where_batches_ended(tmp_path: Path):
    """A version of which rows were written stays, however much is learned behind it; before that it may become another."""
    source = Source(format="debezium", db_type="mysql", database="d", table="t")
    row = Change(op="INSERT", source=source, key=("id",), after={"id": 1, "a": 2})
    create = Change(op="CREATE", source=source, ddl="CREATE TABLE t (id INT PRIMARY KEY, a INT, b INT)")
    others = [replace(create, ddl=f"CREATE TABLE x{i} (id INT)") for i in range(70)]
    every = [
        [[replace(one, position=(number,), place=Arrival(topic="x", partition=0, offset=number))]]
        for number, one in enumerate((row, create, *others))
    ]
    run(tmp_path, every)
    maker = TypedRows(Tables(zone=UTC))
    for batch in every:
        maker.of_batch(batch)
    assert len(maker.tables.tables[0].versions) == 2
    assert sum('"whole": true' in path.read_text() for path in tmp_path.iterdir()) == 1
    assert facts_of(JobState(tmp_path).resume(len(every), Tables(zone=UTC))) == facts_of(maker)


def test_a_file_is_replaced_by_way_of_a_hidden_name_that_nobody_has(tmp_path):
    """A file of the user's that is called almost so stays, and no link is written through; what a kill left goes."""
    own, target = tmp_path / "page.new", tmp_path / "page.html"
    own.write_text("mine")
    left = tmp_path / ".page.html.0123abcd.part"
    left.write_text("half")
    os.utime(left, (0, 0))
    (tmp_path / "page.html.part").symlink_to(own)
    replace_file(target, "one")
    replace_file(target, "two")
    assert (target.read_text(), own.read_text()) == ("two", "mine")
    assert {path.name for path in tmp_path.iterdir()} == {"page.html", "page.new", "page.html.part"}
    linked = tmp_path / "linked.html"
    linked.symlink_to(own)
    replace_file(linked, "three")
    assert (linked.read_text(), own.read_text(), linked.is_symlink()) == ("three", "mine", False)
    (tmp_path / "folder").mkdir()
    os.mkfifo(tmp_path / "pipe")
    os.mkfifo(tmp_path / ".page.html.0123abcd.part")
    os.utime(tmp_path / ".page.html.0123abcd.part", (0, 0))
    (tmp_path / ".page.html.01234567.part").mkdir()
    os.utime(tmp_path / ".page.html.01234567.part", (0, 0))
    for name in ("folder", "pipe"):
        assert (
            error_of(replace_file, tmp_path / name, "x")
            == f"{tmp_path}/{name}: expected a regular file, or none, got something else"
        )
    replace_file(target, "four")
    replace_file(tmp_path / ("é" * 120), "long")
    assert target.read_text() == "four"
    (tmp_path / ".page.html.0123abcd.part").unlink()
    (tmp_path / ".page.html.01234567.part").rmdir()
    assert not list(tmp_path.glob(".*"))


def statements(count: int, *, effective: int = 25) -> Batches:
    """Return batches of a row and of a statement that changes nothing, but for every 25th, which adds a column, say."""
    source = Source(format="debezium", db_type="mysql", database="d", table="t")
    create = "CREATE TABLE IF NOT EXISTS t (id INT PRIMARY KEY)"
    found: list[Change] = []
    for number in range(count):
        sql = f"ALTER TABLE t ADD c{number} INT" if number % effective == effective - 1 else create
        made = Change(op="ALTER" if sql != create else "CREATE", source=source, ddl=sql)
        row = Change(op="INSERT", source=source, key=("id",), after={"id": number})
        found += [made, row]
    return [
        [
            [replace(one, position=(2 * i + j,), place=Arrival(topic="x", partition=0, offset=2 * i + j))]
            for j, one in enumerate(found[2 * i : 2 * i + 2])
        ]
        for i in range(count)
    ]


def facts_of(maker: TypedRows) -> list[Any]:
    """Return what is known of tables, and the time of the lanes."""
    return [
        [(one.schema.table, one.steps, one.is_gone, one.versions) for one in maker.tables.tables],
        maker.clock.state,
    ]


@pytest.mark.slow
def test_a_state_does_not_grow_with_statements_that_change_nothing(tmp_path: Path):
    """Files are put together, and what such statements said is kept of the last ones only; rows are what they were."""
    every = statements(600)
    rows = run(tmp_path / "state", every)
    maker = TypedRows(Tables(zone=UTC))
    assert [maker.of_batch(batch).rows for batch in every] == rows
    files = sorted((tmp_path / "state").iterdir())
    assert len(files) < 70
    learned = [one for path in files for one in json.loads(path.read_bytes())["learned"]]
    said = [one["ddl"] for one in learned if "ddl" in one]
    assert sum("ADD" in one for one in said) == 600 // 25
    assert sum("IF NOT EXISTS" in one for one in said) < 200
    assert facts_of(JobState(tmp_path / "state").resume(600, Tables(zone=UTC))) == facts_of(maker)
    # It goes on from there, with the last batch again, and of a batch before those that are put together it says that it cannot.
    more = statements(640)
    assert run(tmp_path / "state", more, 599) == rows[599:] + [maker.of_batch(batch).rows for batch in more[600:]]
    with pytest.raises(FileError, match="expected the state behind the batch before, got none"):
        JobState(tmp_path / "state").resume(300, Tables(zone=UTC))


def test_statements_that_change_nothing_but_read_otherwise_are_not_kept_for_ever():
    """Such as those of tables that there are not, each of which has a name of its own."""
    every = [_Record({"ddl": f"DROP TABLE IF EXISTS t{i}"}, True, i % 10 == 9) for i in range(5_000)]
    every[::50] = [_Record({"ddl": "CREATE"}, is_idle=False, is_last=False)] * 100
    kept = _without_idle(every)
    assert sum(not one.is_idle for one in kept) == 100
    assert len(kept) == 1_100
    assert kept[-1] == every[-1]
    # Of the first batches one record each is left, with which they end now.
    assert [one.is_last for one in kept[:70]] == [True] * 70


@pytest.mark.slow
@pytest.mark.parametrize("after", [*range(6), 30, *range(62, 70)])
def test_a_state_is_read_whenever_a_process_is_killed_while_files_are_put_together(tmp_path: Path, after: int):
    """Before and behind each step on the disk; what is run then gives the same rows."""
    every = statements(75)
    first = 64
    run(tmp_path / "state", every, 0, first - 1)
    child = os.fork()
    if not child:
        left = [after]

        def dying(own: Any) -> Any:
            def wrapped(*args: Any, **named: Any) -> Any:
                left[0] -= 1
                if left[0] < 0:
                    os._exit(9)
                return own(*args, **named)

            return wrapped

        Path.replace, Path.unlink = dying(Path.replace), dying(Path.unlink)  # type: ignore[method-assign]
        run(tmp_path / "state", every, first, first + 3)
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == (9 if after < 68 else 0)
    state = JobState(tmp_path / "state")
    last = state.batches()[-1]
    assert first - 1 <= last <= first + 3
    wanted = run(tmp_path / "whole", every)
    # A batch is run again, as long as its checkpoint is not committed.
    assert run(tmp_path / "state", every, last) == wanted[last:]
    resumed, whole = (JobState(tmp_path / name).resume(75, Tables(zone=UTC)) for name in ("state", "whole"))
    assert facts_of(resumed) == facts_of(whole)
