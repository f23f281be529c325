"""Batches of changes and of messages as typed rows: those of the exact way, and nearly all of them by the engine."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pyarrow as pa
import pytest

from cdcavro.change.model import DML, Change
from cdcavro.engine.machine import COMPILED
from cdcavro.errors import MisfitError, PayloadError
from cdcavro.lake.learning import refusal_fields
from cdcavro.spark.typed_tables import ChangeBatch
from cdcavro.table.writing.message_typer import ChangeTyper
from cdcavro.wire.formats import FORMATS
from support.changes_trial import Pair, changes_of
from support.rows_trial import ZONE


def batch(changes: list[bytes | None]) -> pa.RecordBatch:
    """Return payloads of changes as Spark hands them over."""
    return pa.RecordBatch.from_arrays([pa.array(changes, pa.binary())], ["change"])


def typed(typer: ChangeTyper, changes: list[bytes | None], *, is_strict: bool = False) -> list[dict[str, Any]]:
    """Return the rows and rejects of changes."""
    made = ChangeBatch(typer, batch(changes), is_strict=is_strict).batches()
    return [row for one in made for row in one.to_pylist()]


@pytest.mark.slow
@pytest.mark.parametrize("format", FORMATS)
def test_a_batch_has_the_rows_and_rejects_of_its_changes(format):
    """The engine makes nearly all rows, but those of tables that a statement renamed, of halves and of misfits."""
    changes = 20 * changes_of(format)
    pair = Pair(changes, ZONE)
    exact = [pair.exact(one) for one in changes]
    wanted = Counter(
        (number, version, key, payload)
        for rows in exact
        if type(rows) is list
        for number, version, _, key, payload in rows
    )
    typer = ChangeTyper(pair.tables)
    found = typed(typer, [*changes, None])
    rows = [row for row in found if row["error"] is None]
    assert Counter((row["number"], row["version"], row["key"], row["payload"]) for row in rows) == wanted
    names = {table.number: table.schema.table.table for table in pair.tables.tables}
    assert all(row["table"] == names[row["number"]] for row in rows)
    rejects = [(row["change"], row["error"]["message"]) for row in found if row["error"] is not None]
    assert Counter(rejects) == Counter(
        (one, rows) for one, rows in zip(changes, exact, strict=True) if type(rows) is str
    )
    if COMPILED and format not in ("datahub_blob", "datahub_tuple"):
        assert typer.taken > 0.7 * sum(Change.from_avro(one).op in DML for one in changes)


@pytest.mark.skipif(not COMPILED, reason="where nothing is compiled, all goes the exact way")
def test_the_engine_makes_all_rows_but_the_first_of_each_pattern():
    """Of one table, without a misfit."""
    changes = [one for one in changes_of("canal") if Change.from_avro(one).source.table == "big"]
    rows = [one for one in changes if Change.from_avro(one).op in DML]
    typer = ChangeTyper(Pair(changes).tables)
    assert len(typed(typer, 10 * rows)) == 10 * len(rows)
    assert typer.taken == 10 * len(rows) - len({Change.from_avro(one).op for one in rows})


def test_what_is_no_change_or_must_not_be_fails():
    """So a job does."""
    change = changes_of("canal")[5]
    typer = ChangeTyper(Pair([change]).tables)
    with pytest.raises(PayloadError):
        typed(typer, [change, change, change[:-1]])
    misfits = changes_of("datahub_blob")
    strict = Pair(misfits, on_misfit="error")
    with pytest.raises(MisfitError):
        typed(strict.typer, misfits, is_strict=True)
    assert [row for row in typed(strict.typer, misfits) if row["error"]]


def test_an_error_says_the_format_and_the_place():
    """As `refusal` says them."""
    misfits = changes_of("datahub_blob")
    strict = Pair(misfits, on_misfit="reject")
    row = next(row for row in typed(strict.typer, misfits) if row["error"])
    change = Change.from_avro(row["change"])
    with pytest.raises(MisfitError) as caught:
        strict.tables.write(change, strict.tables.find(change))
    assert row["error"] == refusal_fields(change, caught.value)
