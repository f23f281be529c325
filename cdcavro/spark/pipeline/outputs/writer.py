"""What a pipeline asks of whatever its rows are written to."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import SparkSession

    from cdcavro.spark.pipeline.lake_tables import Waiting, Written
    from cdcavro.table.ddl.steps import TableName
    from cdcavro.table.history import Table

    Rows = tuple[Table, TableName, Waiting]


class Writer(Protocol):
    """Writes batches."""

    @property
    def has_changes(self) -> bool:
        """Whether every change is wanted, and not only the last of each key."""

    def write(self, spark: SparkSession, tables: Sequence[Rows]) -> list[Written]:
        """Write the rows of tables: each with what it is called and its rows, from the oldest batch on.

        What a table itself is to blame for stops that table only, and is told; what none is to blame for is raised.
        """
