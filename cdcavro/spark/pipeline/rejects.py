"""The rejects of a pipeline: messages that are in no table, as JSON lines in a folder, by batch."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pyspark.sql import functions as sf

from cdcavro.spark.pipeline.outcome_columns import REJECT, STATEMENT

if TYPE_CHECKING:
    from datetime import datetime

    from pyspark.sql import Column, DataFrame

_PLACE: Final = ("topic", "partition", "offset", "file", "line")


def rejects_of(outcomes: DataFrame) -> DataFrame:
    """Return the rows of rejects among the outcomes of a batch of which all is learned."""
    is_left = (sf.col("what") == STATEMENT) & sf.col("reason").isNotNull()
    return outcomes.where((sf.col("what") == REJECT) | is_left)


def write_rejects(outcomes: DataFrame, folder: str, batch: int, now: datetime) -> None:
    """Write the rejects of a batch, which replace those that it wrote when it was run before."""
    rejects = rejects_of(outcomes).select(
        _text("raw"), _text("record_key"), *_PLACE, "format", "path", "reason", sf.lit(now.isoformat()).alias("time")
    )
    rejects.coalesce(1).write.mode("overwrite").json(f"{folder}/batch={batch}", ignoreNullFields=False)


def _text(name: str) -> Column:
    # Spark's own function breaks lines every 76 characters.
    return sf.translate(sf.base64(name), "\r\n", "").alias(name)
