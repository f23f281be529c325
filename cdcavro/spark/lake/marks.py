"""The marks of batches in an Iceberg table: whether the rows of a batch are in it already."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from pyspark.sql import functions as sf

from cdcavro.lake.statements import KEY, OPERATION, ORDER

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

# What tells a change in a changelog from all others.
_CHANGE: Final = (OPERATION, ORDER, KEY)


def is_appended(frame: DataFrame, identifier: str, mark: str, batch: int) -> bool:
    """Return whether the rows of a batch are in a changelog, whose snapshots say their batch under a name (`mark`).

    Snapshots are followed from the current one back to the last that says a batch. Where older ones are expired before
    that, the rows tell: an append adds all of a batch or none.
    """
    spark: Any = frame.sparkSession
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
            return _are_there(frame, identifier)
    return False


def _are_there(frame: DataFrame, identifier: str) -> bool:
    """Return whether a changelog has all changes of a frame, looking at files with such orders only."""
    changes = frame.select(*[sf.col(name).alias(f"own{name}") for name in _CHANGE])
    order = f"own{ORDER}"
    ends = changes.agg(sf.min(order).alias("first"), sf.max(order).alias("last")).collect()[0]
    if ends["first"] is None:
        return True
    held = frame.sparkSession.table(identifier).select(*_CHANGE)
    held = held.where(sf.col(ORDER).between(sf.lit(bytes(ends["first"])), sf.lit(bytes(ends["last"]))))
    same = [changes[f"own{name}"].eqNullSafe(held[name]) for name in _CHANGE]
    return not changes.join(held, same, "left_anti").take(1)
