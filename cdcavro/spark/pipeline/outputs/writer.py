"""Writer of a pipeline's rows: what each kind of output does, what it gets, and what it says became of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from cdcavro.lake.typed_rows import DELETE
from cdcavro.spark.lake.current_state import RowFacts
from cdcavro.spark.lake.sinks import UNKNOWN_ATTEMPT, Attempt

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pyspark.sql import DataFrame, SparkSession

    from cdcavro.table.ddl.steps import TableName
    from cdcavro.table.history import Table

    # The rows of a table that are to be written, from the oldest batch on.
    Waiting = Sequence["BatchRows"]
    # A table, what it is called where its rows go, and the rows.
    Rows = tuple[Table, TableName, Waiting]


class BatchRows(NamedTuple):
    """A table's rows of one batch."""

    # The number of the batch.
    batch: int
    rows: DataFrame
    # What is known of the rows.
    facts: RowFacts
    # How often it was attempted to write them.
    attempt: Attempt = UNKNOWN_ATTEMPT


class WriteResult(NamedTuple):
    """What became of a table's rows."""

    # The number of the table.
    number: int
    # How its lake table changed.
    steps: list[str]
    # Why the rows wait; None if they are written.
    error: str | None


class Writer(Protocol):
    """Writes batches."""

    @property
    def has_changes(self) -> bool:
        """Whether every change is wanted, and not only the last of each key."""

    def write(self, spark: SparkSession, tables: Sequence[Rows]) -> list[WriteResult]:
        """Write the rows of tables: each with what it is called and its rows, from the oldest batch on.

        A fault of one table keeps only its own rows back, and the result says so; any other fault is raised.
        """


def facts_of_parts(facts: Sequence[RowFacts]) -> RowFacts:
    """Return what several batches hold together."""
    floors = [one.floor for one in facts if one.floor is not None]
    begins = sorted({begin for one in facts for begin in one.begins})
    deletes, keyless, partial = (sum(numbers) for numbers in zip(*[one[1:4] for one in facts], strict=True))
    return RowFacts(max(floors, default=None), deletes, keyless, partial, begins)


def facts_of_summary(summary: Mapping[str, Any]) -> RowFacts:
    """Return what a batch holds of a table, according to a summary of tasks."""
    floor = bytes.fromhex(summary["floor"]) or None
    begins = [bytes.fromhex(begin) for begin in summary["begins"]]
    return RowFacts(floor, summary["ops"].get(DELETE, 0), summary["keyless"], summary["partial"], begins)
