"""The changelog of a table in a lake: every change of its rows, appended once for each batch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from pyspark.sql import functions as sf

from cdcavro.lake import statements as sql
from cdcavro.lake.evolution import LENIENT
from cdcavro.lake.names import quoted
from cdcavro.lake.row import DROP
from cdcavro.spark.lake.batch import held_columns
from cdcavro.spark.lake.columns import prepare, present_columns
from cdcavro.spark.lake.sinks import UNKNOWN
from cdcavro.spark.versions.reading import read_fields

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import DataFrame, SparkSession

    from cdcavro.lake.evolution import Step
    from cdcavro.spark.lake.sinks import Attempt, Sink
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

    def append(
        self,
        rows: DataFrame,
        versions: Sequence[TableSchema],
        *,
        job: str,
        batch: int,
        attempt: Attempt = UNKNOWN,
    ) -> None:
        """Append a batch of the table's typed rows; a batch of a job that is appended again changes nothing.

        `rows` is as in `CurrentState.merge`; `job` (str) is unique to what writes, and `batch` (int) goes up. The first
        `attempt` costs less where that is known; a later one then has to know since when. Raises `JobError` if it can
        no longer be found out whether the first one was written.
        """
        present = present_columns(rows.sparkSession, self.identifier)
        envelope, fields = read_fields("version", sf.when(sf.col("operation") != DROP, sf.col("payload")), versions)
        held = {column.name: fields[one.field] for one, column in held_columns(versions[-1], present)}
        listed = _images(rows.select(*_FACTS, "operation", envelope.alias("envelope")))
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
        self.sink.append(ordered, self.table, _CHANGES, job, batch, attempt)


def _images(envelopes: DataFrame) -> DataFrame:
    """Return the image of each change, and before it that before an update.

    Only a flag is multiplied: an array of images would be made and copied for each change.
    """
    envelope = sf.col("envelope")
    is_told = (sf.col("operation") == "u") & envelope["before"].isNotNull()
    both, one = sf.array(sf.lit(True), sf.lit(False)), sf.array(sf.lit(False))  # noqa: FBT003
    marked = envelopes.select("*", sf.explode(sf.when(is_told, both).otherwise(one)).alias("is_before"))
    image = sf.when(sf.col("is_before"), envelope["before"]).otherwise(
        sf.coalesce(envelope["after"], envelope["before"])
    )
    operation = sf.when(sf.col("is_before"), BEFORE).otherwise(sf.col("operation"))
    return marked.select(*_FACTS, operation.alias("operation"), image.alias("image"))
