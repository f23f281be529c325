"""The changelog of a table in a lake: every change of its rows, appended once for each batch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from pyspark.sql import functions as sf

from cdcavro.lake import statements as sql
from cdcavro.lake.evolution import LENIENT
from cdcavro.lake.names import quoted
from cdcavro.lake.row import DROP
from cdcavro.spark.lake.batch import held_columns, numbered
from cdcavro.spark.lake.columns import prepare, present_columns
from cdcavro.spark.versions.reading import read_versions

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import DataFrame, SparkSession

    from cdcavro.lake.evolution import Step
    from cdcavro.spark.lake.sinks import Sink
    from cdcavro.table.ddl.steps import TableName
    from cdcavro.table.schema import TableSchema

_CHANGES: Final = "changes"
BEFORE: Final = "b"
_FACTS: Final = ("version", "order", "key")


@dataclass(frozen=True)
class Changelog:
    """The changelog of a table in a sink.

    A change is one row with the columns of the table: as they were before a delete, and as they are after
    anything else. The row before an update, as far as the update states it, is a row of its own before it,
    whose `_cdc_op` is b. Attributes: as those of `CurrentState`.
    """

    sink: Sink
    table: TableName
    behavior: str = LENIENT

    @property
    def identifier(self) -> str:
        """The name of the lake table in SQL."""
        return self.sink.identifier(self.table, _CHANGES)

    def prepare(self, spark: SparkSession, versions: Sequence[TableSchema]) -> list[Step]:
        """Make the lake table have the columns of the newest version; return what was done to it. Raises `SchemaError`."""
        self.sink.make_room(spark, self.table)
        return prepare(spark, self.sink, self.identifier, versions[-1], sql.CHANGELOG, self.behavior)

    def append(self, rows: DataFrame, versions: Sequence[TableSchema], *, job: str, batch: int) -> None:
        """Append a batch of the table's typed rows; a batch of a job that is appended again changes nothing.

        `rows` is as in `CurrentState.merge`; `job` (str) is unique to what writes, and `batch` (int) goes up.
        """
        after, before = (numbered(sf.col("envelope")[name], versions[-1]) for name in ("after", "before"))
        changes = _read(rows, versions).select(*_FACTS, "operation", sf.coalesce(after, before).alias("image"))
        # Only updates have a row before them to be told; an array of both would be copied for each change.
        updates = _read(rows.where(sf.col("operation") == "u"), versions)
        befores = updates.select(*_FACTS, sf.lit(BEFORE).alias("operation"), before.alias("image"))
        listed = changes.unionByName(befores.where(sf.col("image").isNotNull()))
        present = present_columns(rows.sparkSession, self.identifier)
        held = {column.name: name for name, _, column in held_columns(versions[-1], present)}
        image = sf.col("image")
        own = {
            sql.OPERATION: sf.col("operation"),
            sql.ORDER: sf.col("order"),
            sql.KEY: sf.col("key"),
            sql.VERSION: sf.col("version"),
            sql.UNPARSED: sf.when(sf.size(image["unparsed"]) > 0, image["unparsed"]),
            sql.ABSENT: sf.when(sf.size(image["absent"]) > 0, image["absent"]),
        }
        columns = [
            (image.getField(held[one.name]) if one.name in held else sf.lit(None)).cast(one.type).alias(one.name)
            for one in present
        ]
        frame = listed.select(*columns, *[value.alias(name) for name, value in own.items()])
        ordered = frame.select(*[quoted(name) for name in rows.sparkSession.table(self.identifier).columns])
        self.sink.append(ordered, self.table, _CHANGES, job, batch)


def _read(rows: DataFrame, versions: Sequence[TableSchema]) -> DataFrame:
    envelope = read_versions("version", sf.when(sf.col("operation") != DROP, sf.col("payload")), versions)
    return rows.select(*_FACTS, "operation", envelope.alias("envelope"))
