"""The shop's typed rows as frames, and a lake table's rows held against what the merge in plain Python has."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf
from pyspark.sql.types import TimestampType

from cdcavro.lake import TypedRow
from cdcavro.lake.sql_statements import STATE, UNPARSED
from support.lake_values import as_in_lake, shown
from support.shop_tables import Row, Unparsed

__all__ = ["as_in_lake", "frame_of", "rows_in", "shown"]

SCHEMA = "version int, operation string, order binary, key binary, payload binary"


def frame_of(spark: SparkSession, rows: Sequence[TypedRow]) -> DataFrame:
    """Return the typed rows of one table as a frame."""
    listed = [
        (row.version, row.operation, bytearray(row.order), row.key and bytearray(row.key), bytearray(row.payload))
        for row in rows
    ]
    return spark.createDataFrame(listed, SCHEMA).coalesce(1)


def rows_in(spark: SparkSession, identifier: str) -> list[Row]:
    """Return the rows of a current state by true names: instants in microseconds, texts of misfits as `Unparsed`."""
    frame = spark.table(identifier)
    columns = [
        sf.unix_micros(f"`{field.name}`").alias(field.name)
        if field.dataType == TimestampType()
        else sf.col("`" + field.name.replace("`", "``") + "`")
        for field in frame.schema
    ]
    found = []
    for row in frame.select(*columns).collect():
        values = row.asDict()
        texts = values[UNPARSED] or {}
        shown = {name: _plain(value) for name, value in values.items() if name not in STATE}
        found.append(shown | {name: Unparsed(text) for name, text in texts.items()})
    return found


def _plain(value: Any) -> Any:
    return bytes(value) if isinstance(value, bytearray) else value
