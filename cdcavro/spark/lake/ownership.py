"""Ownership of lake tables on Spark: the rules of `cdcavro.lake.lakes` for the tables of a sink."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as sf

from cdcavro.lake.lakes import (
    OWNER,
    SUFFIXES,
    adopted_properties,
    adopts,
)
from cdcavro.lake.sql_statements import KEY, OPERATION, ORDER
from cdcavro.spark.lake.columns import present_columns, properties_of, put_properties

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from cdcavro.spark.lake.sinks import Sink
    from cdcavro.table.ddl.steps import TableName

# What the pipeline takes from here.


def claim(spark: SparkSession, sink: Sink, table: TableName, *, is_known: bool, is_adopting: bool) -> None:
    """Make the lake tables of a table that are there those of the sink's owner, if they are nobody else's.

    A table without an owner is somebody else's, too, unless the owner wrote it when tables had none (`is_known`). With
    `is_adopting`, tables of others are adopted. Raises `FileError`, and changes nothing.
    """
    foreign = foreign_tables(spark, sink, table)
    is_adopted = {one: adopts(one, own, is_known=is_known, is_adopting=is_adopting) for one, own in foreign.items()}
    for identifier, adopted in is_adopted.items():
        if adopted:
            _adopt(spark, sink, identifier)
        else:
            put_properties(spark, identifier, {OWNER: sink.owner or ""})


def foreign_tables(spark: SparkSession, sink: Sink, table: TableName) -> dict[str, str | None]:
    """Return the lake tables of a table that are not those of the sink's owner, each with its own owner."""
    found = {}
    for suffix in SUFFIXES:
        if sink.is_there(spark, table, suffix):
            identifier = sink.identifier(table, suffix)
            owner = properties_of(spark, identifier).get(OWNER)
            if owner != sink.owner:
                found[identifier] = owner
    return found


def _adopt(spark: SparkSession, sink: Sink, identifier: str) -> None:
    lake, until = spark.table(identifier), None
    if OPERATION in lake.columns:
        until = bytes(lake.agg(sf.max(ORDER).alias("last")).collect()[0]["last"] or b"")
    columns = [one.name for one in present_columns(lake)]
    put_properties(spark, identifier, adopted_properties(sink.owner or "", columns, until))


def rows_not_held(rows: DataFrame, identifier: str, until: bytes) -> DataFrame:
    """Return the typed rows that a changelog does not hold, which was adopted when its last order was `until`."""
    first = rows.agg(sf.min("order").alias("first")).collect()[0]["first"]
    if first is None or bytes(first) > until:
        return rows
    held = rows.sparkSession.table(identifier).where(sf.col(ORDER).between(sf.lit(first), sf.lit(until)))
    held = held.select(*[sf.col(name).alias(f"held{name}") for name in (ORDER, OPERATION, KEY)])
    same = (
        (rows["order"] == held[f"held{ORDER}"])
        & (rows["operation"] == held[f"held{OPERATION}"])
        & rows["key"].eqNullSafe(held[f"held{KEY}"])
    )
    return rows.join(held, same, "left_anti")
