"""The names that a session is taught: the SQL functions and the data source."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cdcavro.spark.sql import SQL_FUNCTIONS

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def register(spark: SparkSession, *, functions: bool = True) -> None:
    """Register the conversions as SQL functions of a session, and, from Spark 4.0 on, the data source `cdcavro`.

    `cdc_encode(text, format)` returns a payload, `cdc_try_encode(text, format)` a struct of payload and
    error, `cdc_decode(payload, format)` JSON text, and `cdc_text(image)` a map of text. A format's name
    is a string or a column of strings; an unknown format fails the query. `cdc_try_encode` is
    non-deterministic in Spark's sense, so Spark refuses it in aggregates and join conditions.

    `spark.read.format("cdcavro")` and `spark.readStream.format("cdcavro")` read files of JSON lines, each line as a
    row with its `payload`, `format`, `operation`, `table`, `file`, `line` and `error`, and `raw` for a line that has no
    payload. Options are `path` (or `load(…)`), `format` (a format's name, `auto` or `mixed`), `maxPartitionBytes` and
    `maxFilesPerTrigger`.

    Without `functions`, only the data source is registered: a declarative pipeline of Spark refuses functions.
    """
    for name, function in SQL_FUNCTIONS.items() if functions else ():
        spark.udf.register(name, function.over_columns(name))
    if hasattr(spark, "dataSource"):
        # Spark 3.5 has no such API, and so not what this module imports.
        from cdcavro.spark.source.source import CdcAvroSource  # noqa: PLC0415

        spark.dataSource.register(CdcAvroSource)
