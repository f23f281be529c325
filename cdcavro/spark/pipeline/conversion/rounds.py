"""A batch converted: once, with what was known before and the tables that begin with it, or again with all that it says."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from cdcavro.change.model import DDL, Change
from cdcavro.lake.learning import Learned, NewTables, identity_of
from cdcavro.spark.functions import refusal_fields
from cdcavro.spark.pipeline.conversion.facts import Knowledge
from cdcavro.spark.pipeline.conversion.outcomes import asked, outcomes_of
from cdcavro.spark.pipeline.settings import Chosen
from cdcavro.table.ddl.contents import empties
from cdcavro.table.tables import ERROR

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import DataFrame

    from cdcavro.lake.typed_rows import TypedRows
    from cdcavro.spark.pipeline.conversion.outcomes import Outcomes
    from cdcavro.spark.pipeline.settings import Settings

# How often a batch is converted again, each time with something new.
_ROUNDS: Final = 4


def convert(
    frame: DataFrame, maker: TypedRows, settings: Settings, *, is_reduced: bool
) -> tuple[Outcomes, list[Change]]:
    """Return the outcomes of a batch, and what it said of tables, which `maker` learns; `is_reduced` is as in `Knowledge`.

    It is converted with what was known before. Where it says something new, tasks learn it themselves; if that is nothing
    but new tables, of which driver and tasks know the same then, that is all. Otherwise it is converted again with all that
    was learned; what is then not placed may be of a table that began behind a statement, and is learned in its turn.

    A misfit that is to end the job ends it when nothing is learned any more: Spark raises `PythonException` then, with its
    text.
    """
    new, learned, faults = NewTables(maker.tables), Learned([], [], {}), {}
    outcomes = outcomes_of(frame, _knowledge(maker, settings, None, is_reduced=is_reduced))
    for _ in range(_ROUNDS):
        edits = maker.tables.edits
        more = maker.learner.learn(asked(outcomes.frame))
        own = {identity_of(change): refusal_fields(change, error) for change, error in more.faults if change.op in DDL}
        learned.changes.extend(more.changes)
        learned.dropped.update(more.dropped)
        faults.update(own)
        # Rows that a TRUNCATE ends are ended by a row of its own, though it edits no table.
        is_ending = any(map(empties, more.changes))
        is_new = maker.tables.edits != edits or own or is_ending
        if not (is_new or outcomes.counts["given up"] or outcomes.begun):
            break
        known = None if more.faults or _has_statements(learned) else outcomes.numbered(new.marks)
        if known is not None:
            outcomes = known
            break
        outcomes.frame.unpersist()
        outcomes = outcomes_of(frame, _knowledge(maker, settings, (learned, faults), is_reduced=is_reduced))
    if outcomes.counts["misfits"] and settings.options.get("on_misfit") == ERROR:
        outcomes.frame.unpersist()
        strict = replace(_knowledge(maker, settings, (learned, faults), is_reduced=is_reduced), is_strict=True)
        outcomes = outcomes_of(frame, strict)
    # What was not placed, and about which nothing was learned, is a reject.
    outcomes.counts["rejected"] += outcomes.counts["unplaced"]
    return outcomes, learned.changes


def _has_statements(learned: Learned) -> bool:
    return any(change.op in DDL for change in learned.changes)


def _knowledge(
    maker: TypedRows,
    settings: Settings,
    learned: tuple[Learned, Mapping[bytes, Mapping[str, str | None]]] | None,
    *,
    is_reduced: bool,
) -> Knowledge:
    chosen = settings.chosen
    left_out = (table.number for table in maker.tables.tables if not chosen.has(table.schema.table))
    return Knowledge(
        maker.tables,
        maker.clock.state,
        settings.formats,
        settings.unavailable,
        {} if learned is None else learned[0].dropped,
        {} if learned is None else learned[1],
        chosen,
        frozenset(left_out) if chosen != Chosen() else frozenset(),
        is_all=learned is not None,
        is_reduced=is_reduced,
        framed=settings.framed,
    )
