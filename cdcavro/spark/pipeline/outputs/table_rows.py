"""The rows of batches to their tables, with those that wait: that a table refused, or that are written with a later batch."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pyspark.sql import functions as sf

from cdcavro.spark.lake.sinks import Attempt
from cdcavro.spark.pipeline.conversion.outcome_columns import ROW
from cdcavro.spark.pipeline.lake_tables import Part, facts_of_summary

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime

    from pyspark.sql import SparkSession

    from cdcavro.spark.pipeline.conversion.outcomes import Outcomes
    from cdcavro.spark.pipeline.lake_tables import LakeNames, Written
    from cdcavro.spark.pipeline.outputs.waiting import WaitingRows
    from cdcavro.spark.pipeline.outputs.writer import Writer
    from cdcavro.table.history import Table

_OF_ROWS: Final = ("version", "operation", "order", "key", "payload")
# How many rows of one table are written by one task, if there are fewer than one reads.
_ROWS_OF_TASK: Final = 100_000


class TableRows:
    """Writes rows to their tables, with every n-th batch (`every`); what a table refuses waits."""

    def __init__(self, writer: Writer, waiting: WaitingRows, every: int) -> None:
        self._writer, self.waiting, self._every = writer, waiting, every

    def write(
        self, outcomes: Outcomes, number: int, tables: Sequence[Table], names: LakeNames, since: datetime | None
    ) -> list[Written]:
        """Write the rows of a batch, which was tried first at a time, if it was, and those that wait."""
        rows = outcomes.frame.where(sf.col("what") == ROW)
        facts = {table: facts_of_summary(summary) for table, summary in outcomes.tables.items()}
        if (number + 1) % self._every:
            self.waiting.keep_all(number, rows.select("number", *_OF_ROWS), facts, outcomes.names)
            return []
        parts = {}
        for table, summary in outcomes.tables.items():
            own = rows.where(sf.col("number") == outcomes.names[table]).select(*_OF_ROWS)
            # A task, and a file, for a few rows costs more than they do.
            own = own.coalesce(-(-sum(summary["ops"].values()) // _ROWS_OF_TASK))
            parts[table] = Part(number, own, facts[table], Attempt(since is None, since))
        return self._written(outcomes.frame.sparkSession, number, tables, names, parts)

    @property
    def are_delayed(self) -> bool:
        """Whether there are rows that wait for a later batch."""
        return self._every > 1 and bool(self.waiting.tables())

    def write_delayed(
        self, spark: SparkSession, number: int, tables: Sequence[Table], names: LakeNames
    ) -> list[Written]:
        """Write the rows of batches before one that wait for a later one."""
        # A batch of this number may come, and is another one.
        return self._written(spark, number, tables, names, {})

    def _written(
        self,
        spark: SparkSession,
        number: int,
        tables: Sequence[Table],
        names: LakeNames,
        parts: Mapping[int, Part],
    ) -> list[Written]:
        work = []
        for table in sorted({*parts, *self.waiting.tables()}):
            waiting = self.waiting.read(spark, table, number)
            waiting += [parts[table]] if table in parts else []
            if waiting:
                work.append((tables[table], names.name(tables[table], tables), waiting))
        written = self._writer.write(spark, work)
        for one in written:
            if one.error is None:
                self.waiting.forget(one.number)
            elif one.number in parts:
                self.waiting.keep(one.number, parts[one.number])
        return sorted(written)
