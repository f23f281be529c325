"""The marks of batches in an Iceberg table: whether the rows of a batch are in it already."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pyspark.sql import functions as sf

from cdcavro.lake.statements import KEY, OPERATION, ORDER
from cdcavro.spark.session import classic

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import DataFrame

# What tells a change in a changelog from all others; the first one bounds what is looked at.
CHANGE: Final = (ORDER, OPERATION, KEY)


def is_appended(frame: DataFrame, identifier: str, mark: str, batch: int, identity: Sequence[str] = CHANGE) -> bool:
    """Return whether the rows of a batch are in a table, whose snapshots say their batch under a name (`mark`).

    Snapshots are followed from the current one back to the last that says a batch. Where older ones are expired before
    that, the rows tell, by the columns of their identity: an append adds all of a batch or none.
    """
    spark = classic(frame.sparkSession, "Iceberg")
    iceberg = spark._jvm.org.apache.iceberg.spark.Spark3Util  # noqa: SLF001  Iceberg has no Python interface on Spark
    table = iceberg.loadIcebergTable(spark._jsparkSession, identifier)  # noqa: SLF001
    snapshot = table.currentSnapshot()
    while snapshot is not None:
        said, parent = snapshot.summary().get(mark), snapshot.parentId()
        if said is not None:
            return int(said) >= batch
        if parent is None:
            return False
        snapshot = table.snapshot(parent)
        if snapshot is None:
            return _are_there(frame, identifier, identity)
    return False


def _are_there(frame: DataFrame, identifier: str, identity: Sequence[str]) -> bool:
    """Return whether a table has all rows of a frame, looking only at files with such values of the first column."""
    rows = frame.select(*[sf.col(name).alias(f"own{name}") for name in identity])
    first = identity[0]
    ends = rows.agg(sf.min(f"own{first}").alias("first"), sf.max(f"own{first}").alias("last")).collect()[0]
    if ends["first"] is None:
        return True
    held = frame.sparkSession.table(identifier).select(*identity)
    held = held.where(sf.col(first).between(*[sf.lit(end) for end in ends]))
    same = [rows[f"own{name}"].eqNullSafe(held[name]) for name in identity]
    return not rows.join(held, same, "left_anti").take(1)
