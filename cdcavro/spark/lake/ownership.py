"""Ownership of lake tables: each belongs to the pipeline that created it, which its properties name.

Two pipelines that write one table would append every change twice. So a table of another pipeline is refused, or
adopted: then what it holds already is not appended again, no column is dropped, and no column that it has is filled
anew.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final

from pyspark.sql import functions as sf

from cdcavro.errors import FileError
from cdcavro.lake.sql_statements import ADOPTED, KEY, OPERATION, ORDER
from cdcavro.spark.lake.columns import present_columns, properties_of, put_properties
from cdcavro.spark.lake.sinks import OWNER, SUFFIXES

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import DataFrame, SparkSession

    from cdcavro.spark.lake.sinks import Sink
    from cdcavro.table.ddl.steps import TableName

# The order up to which a changelog is the former owner's.
UNTIL: Final = "cdcavro.adopted.until"
REFUSAL: Final = (
    "stop that pipeline, and adopt the table (--adopt, or adopt in [lake]), to which nothing is appended twice then, or take"
    " another lake"
)


def claim(spark: SparkSession, sink: Sink, table: TableName, *, is_known: bool, is_adopting: bool) -> None:
    """Make the lake tables of a table that are there those of the sink's owner, if they are nobody else's.

    A table without an owner is somebody else's, too, unless the owner wrote it when tables had none (`is_known`). With
    `is_adopting`, tables of others are adopted. Raises `FileError`, and changes nothing.
    """
    for identifier, own in foreign_tables(spark, sink, table).items():
        if own is None and is_known:
            put_properties(spark, identifier, {OWNER: sink.owner or ""})
        elif is_adopting:
            _adopt(spark, sink, identifier)
        else:
            raise foreign_table_error(identifier, own)


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


def foreign_table_error(identifier: str, owner: str | None) -> FileError:
    """Return the error for a lake table of another pipeline."""
    got = f"one of another pipeline ({owner})" if owner else "one that another pipeline, or nobody known, has written"
    return FileError(identifier, "a lake table of this pipeline", f"{got}: {REFUSAL}")


def _adopt(spark: SparkSession, sink: Sink, identifier: str) -> None:
    lake = spark.table(identifier)
    properties = {OWNER: sink.owner or "", ADOPTED: json.dumps([one.name for one in present_columns(lake)])}
    if OPERATION in lake.columns:
        last = lake.agg(sf.max(ORDER).alias("last")).collect()[0]["last"]
        properties[UNTIL] = "" if last is None else bytes(last).hex()
    put_properties(spark, identifier, properties)


def adopted_columns(properties: Mapping[str, str]) -> frozenset[str] | None:
    """Return the columns that a lake table had when it was adopted, None if it was not."""
    return frozenset(json.loads(properties[ADOPTED])) if ADOPTED in properties else None


def adopted_until(properties: Mapping[str, str]) -> bytes:
    """Return the last order in a changelog when it was adopted, empty if it was not."""
    return bytes.fromhex(properties.get(UNTIL, ""))


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
