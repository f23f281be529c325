"""Writer of a pipeline's rows: what each kind of output does, what it gets, and what it says became of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from cdcavro.lake.lakes import UNKNOWN_ATTEMPT, Attempt

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cdcavro.lake.typed_rows import RowFacts
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
    # With the columns of `table_rows.OF_ROWS`, as the runner holds rows.
    rows: Any
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

    def write(self, tables: Sequence[Rows]) -> list[WriteResult]:
        """Write the rows of tables: each with what it is called and its rows, from the oldest batch on.

        A fault of one table keeps only its own rows back, and the result says so; any other fault is raised.
        """
