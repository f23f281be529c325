"""Changes to typed tables on Spark: the rows of a column of payloads of `change.avsc`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql import functions as sf

from cdcavro.change.modes import ADAPTIVE_TIME_MICROSECONDS, BYTES, PRECISE, checked_modes
from cdcavro.spark.arrow_udf import in_worker
from cdcavro.spark.messages.rows import ChangeBatch, outcome_type, rows_and_rejects
from cdcavro.spark.messages.survey import ChangeSurvey
from cdcavro.spark.tables import OUTLINE, OUTLINE_TYPE, TypedTables, learn
from cdcavro.table.evolution.evolve import NONE_GIVEN
from cdcavro.table.tables import ERROR as ERROR_POLICY
from cdcavro.table.tables import KEEP, Tables
from cdcavro.table.writing.changes import ChangeTyper

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import tzinfo

    from pyspark.sql import DataFrame

    from cdcavro.table.columns.overrides import TypeOverrides

    Batches = Iterable[pa.RecordBatch]


def to_tables(
    changes: DataFrame,
    col: str = "change",
    *,
    given: TypeOverrides = NONE_GIVEN,
    zone: tzinfo | None = None,
    on_misfit: str = KEEP,
    decimals: str = PRECISE,
    times: str = ADAPTIVE_TIME_MICROSECONDS,
    binaries: str = BYTES,
    table: str | None = None,
) -> TypedTables:
    """Return the changes of a frame as typed payloads of their tables, with the version of each.

    `col` is the column of payloads of `change.avsc`, as `to_changes` makes them with a `place`. First, in
    a pass of its own, what the changes state about tables is collected and learned in order on the driver;
    its size is that of the statements and the distinct lists of columns. So `changes` is read twice:
    persist it if that is expensive. The other arguments are those of `cdcavro.Tables`. A change with
    neither numbers nor a place fails the job, and so does a misfit if `on_misfit` is "error".
    """
    modes = checked_modes(decimals, times, binaries)
    learned = Tables(given=given, zone=zone, on_misfit=on_misfit, table=table, **modes._asdict())
    given_table, is_strict = learned.given_table, on_misfit == ERROR_POLICY
    payloads = changes.select(sf.col(col).alias("change"))

    def surveyed(batches: Batches) -> Batches:
        survey = ChangeSurvey(given_table)
        for batch in batches:
            yield pa.RecordBatch.from_struct_array(pa.array(list(survey.outlines(batch)), OUTLINE_TYPE))

    def typed(batches: Batches) -> Batches:
        typer = ChangeTyper(learned)
        for batch in batches:
            yield from ChangeBatch(typer, batch, is_strict=is_strict).batches()

    faults = learn(learned, payloads.mapInArrow(in_worker(surveyed), OUTLINE))
    outcomes = payloads.mapInArrow(in_worker(typed), outcome_type(payloads.schema, ChangeBatch))
    return TypedTables(*rows_and_rejects(outcomes), learned.tables, faults)
