"""Keys that are given for tables whose source states none."""

from __future__ import annotations

import json
import pickle
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from cdcavro.errors import SchemaError
from cdcavro.lake.table_shape import TableShape
from cdcavro.lake.typed_rows import TypedRows
from cdcavro.table import catalog
from cdcavro.table.tables import Tables
from cdcavro.transcoding.mapping import to_changes
from support.jobs import LocalJob, local_job
from support.messages import canal


@pytest.fixture
def job(tmp_path: Path) -> Callable[..., LocalJob]:
    """Return what makes pipelines."""
    return partial(local_job, tmp_path)


AGAIN = "is not used: for a current state by 'Id', begin again with another state and lake"
CREATE = "CREATE TABLE t (a INT, Id INT)"


def row(type: str, id: int, a: str, key: str = "7", **members: Any) -> bytes:
    """Return a row without a key."""
    values = {"Id": key, "a": a}
    return canal(type, [values], id=id, **{"pkNames": None, **members})


def moved(id: int, old: str, new: str) -> bytes:
    """Return an update that changes the key."""
    return canal("UPDATE", [{"Id": new, "a": "9"}], id=id, old=[{"Id": old}], pkNames=None)


def ddl(id: int, sql: str) -> bytes:
    """Return a statement."""
    return canal("CREATE", [], id=id, isDdl=True, sql=sql, pkNames=None)


def shapes(*key: str, match: str = "D.T") -> tuple[TableShape, ...]:
    """Return the shape of the table with a key."""
    return (TableShape(match, key),)


@pytest.mark.slow
@pytest.mark.parametrize("first", [(), (ddl(1, CREATE),), (row("INSERT", 1, "1", "6"), ddl(2, CREATE))])
def test_a_table_without_a_key_has_a_current_state_by_the_one_that_is_given(
    job: Callable[..., LocalJob], first: tuple[bytes, ...]
):
    """In any case of letters; inserted, updated, moved and deleted rows are found by it, by the engine as well."""
    made = job()
    many = [row("INSERT", 100 + i, "1", str(100 + i)) for i in range(300)]
    made.send(*first, row("INSERT", 3, "1"), row("INSERT", 4, "2", "8"), *many)
    made.send(row("UPDATE", 1005, "3"), moved(1006, "8", "9"), row("DELETE", 1007, "1", "100"))
    (one, two) = made.run(shapes=shapes("iD"))
    assert one.counts["rejected"] == two.counts["rejected"] == 0
    rows = made.rows("d.t", "Id", "a")
    assert len(rows) == 301 + (len(first) == 2)
    assert {(7, 3), (9, 9), (101, 1)} <= {*rows}
    assert not {100, 8} & {id for id, _ in rows}
    # What was learned does not depend on the setting of later runs.
    made.send(row("UPDATE", 2000, "4"))
    made.run()
    assert (7, 4) in made.rows("d.t", "Id", "a")


def test_a_row_with_null_in_a_given_key_is_a_reject(job: Callable[..., LocalJob]):
    """As with any key."""
    made = job()
    null = json.loads(row("INSERT", 2, "1"))
    null["data"][0]["Id"] = None
    made.send(row("INSERT", 1, "1"), json.dumps(null).encode())
    (report,) = made.run(shapes=shapes("Id"))
    assert (report.counts["rejected"], report.counts["written"]) == (1, 1)


@pytest.mark.parametrize(
    "messages",
    [
        (row("INSERT", 1, "1", pkNames=["Id"]), row("INSERT", 2, "1", "8", pkNames=["Id"])),
        (ddl(1, "CREATE TABLE t (a INT, Id INT PRIMARY KEY)"), row("INSERT", 2, "1"), row("INSERT", 3, "1", "8")),
    ],
)
def test_a_key_that_the_source_states_counts_and_the_given_one_is_told(
    job: Callable[..., LocalJob], messages: tuple[bytes, ...]
):
    """By rows or by a statement: rows of a given key that is not unique would fall together."""
    made = job()
    made.send(*messages)
    (report,) = made.run(shapes=shapes("a"))
    assert report.steps == ["d.t: its source states the key 'Id', so 'a', which was given, is not used"]
    assert made.rows("d.t", "Id", "a") == [(7, 1), (8, 1)]
    assert made.pipeline(shapes=shapes("a")).unmatched == [
        f"key in [[table]]: d.t has the key 'Id', by its source or since it began, so 'a' {AGAIN.replace('Id', 'a')}"
    ]


def test_a_row_that_states_another_key_than_the_given_one_is_a_reject(job: Callable[..., LocalJob]):
    """The table began with the given one, under which the row would not be found."""
    made = job()
    made.send(row("INSERT", 1, "1"))
    made.send(row("INSERT", 2, "2", "8", pkNames=["a"]), row("INSERT", 3, "3", "9", pkNames=["Id"]))
    (_, report) = made.run(shapes=shapes("Id"))
    assert report.counts["rejected"] == 1
    assert made.rows("d.t", "Id", "a") == [(7, 1), (9, 3)]


@pytest.mark.slow
def test_a_key_that_is_given_later_is_not_that_of_rows_before_it(job: Callable[..., LocalJob]):
    """So there is no current state, and it is said how to get one."""
    made = job()
    made.send(row("INSERT", 1, "1"))
    made.run()
    made.send(row("INSERT", 2, "1", "8"))
    made.send(canal("INSERT", [{"Id": "9", "b": "1"}], id=3, pkNames=None))
    (report, later) = made.run(shapes=shapes("Id"))
    assert report.notes == [f"key in [[table]]: d.t began without a key, so 'Id' {AGAIN}"]
    assert any("its key, 'Id', became known only after its first rows" in step for step in later.steps)
    assert made.rows("d.t", "Id", suffix="changes") == [(7,), (8,), (9,)]
    assert not (made.folder_of_lake / "d" / "t").exists()


def test_columns_of_a_key_that_do_not_come_are_told(job: Callable[..., LocalJob]):
    """As are tables that nothing fits, and without a key there is only a changelog."""
    made = job()
    made.send(row("INSERT", 1, "1"))
    (report,) = made.run(shapes=(*shapes("Idd"), *shapes("Id", match="other")))
    assert report.notes == [
        "[[table]] of match = 'D.T': no column is called 'Idd' so far: did you mean Id?",
        "[[table]]: no table fits 'other' so far, so its rule changes nothing",
    ]
    assert made.rows("d.t", "Id", suffix="changes") == [(7,)]


def test_tables_take_given_keys_without_a_pipeline():
    """The first pattern that fits counts, and a copy in another process goes on."""
    tables = Tables(keys={"x": ("a",), "t": ("Id",), "d.*": ("a",)})
    tables.add(to_changes(row("INSERT", 1, "1"), "canal")[0])
    tables = pickle.loads(pickle.dumps(tables))
    (typed,) = tables.add(to_changes(row("INSERT", 2, "2"), "canal")[0])
    assert typed.schema.key_names == ("Id",)
    assert typed.key is not None
    assert len(tables.tables[0].versions) == 1
    assert catalog.notes_of(tables.tables) == []
    (other,) = tables.add(to_changes(row("INSERT", 3, "2", table="u"), "canal")[0])
    assert other.schema.key_names == ("a",)
    with pytest.raises(SchemaError, match="its key was given as 'Id', and a row states 'a'"):
        tables.add(to_changes(row("INSERT", 4, "2", pkNames=["a"]), "canal")[0])
    keyless = TypedRows(Tables()).of_batch([to_changes(row("INSERT", 1, "1"), "canal")])
    assert keyless.rows[0].key is None
