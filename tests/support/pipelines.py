"""Pipelines of tests that Spark runs, and what their lake tables hold."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from pyspark.sql import SparkSession

from cdcavro.spark.pipeline import Pipeline
from cdcavro.table import TableName
from cdcavro.table.table_names import parse_table_name
from support.jobs import PipelineJob
from support.messages import canal  # noqa: F401  tests take it from here
from support.shop_lake import rows_in
from support.shop_tables import Row


@dataclass
class Job(PipelineJob):
    """A pipeline that Spark runs, over a folder of files or another source."""

    spark: SparkSession = field(kw_only=True)

    def pipeline(self, **settings: Any) -> Pipeline:
        """Return the pipeline."""
        # Most tests on Spark are of what Spark writes; small batches are written by its driver otherwise.
        return Pipeline(*self.parts({"is_native": False}, settings))

    def start(self, pipeline: Pipeline, **how: Any) -> None:
        """Run a pipeline."""
        pipeline.run(self.spark, **how)

    def check(self, pipeline: Pipeline | None = None) -> None:
        """Check a pipeline, by default the job's own."""
        (pipeline or self.pipeline()).check(self.spark)

    def rows(self, table: str, *columns: str, suffix: str = "") -> list[tuple[Any, ...]]:
        """Return rows of a lake table."""
        identifier = self.sink.identifier(parse_table_name(table), suffix)
        found = self.spark.sql(f"SELECT {', '.join(columns)} FROM {identifier} ORDER BY ALL").collect()
        return [tuple(row) for row in found]

    def whole_rows(self, table: TableName) -> list[Row]:
        """Return the rows of a current state by true names."""
        return rows_in(self.spark, self.sink.identifier(table))
