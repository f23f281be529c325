"""What people do to lake tables beside a pipeline: small files made large ones, and what is not needed any more removed."""

from __future__ import annotations

from pyspark.sql import SparkSession

from cdcavro.lake.sql_statements import literal
from cdcavro.spark.lake.sinks import Delta, Sink

_CHECK = "spark.databricks.delta.retentionDurationCheck.enabled"


def compact(spark: SparkSession, sink: Sink, identifier: str) -> None:
    """Write all rows of a table anew, in as few files as can be."""
    if isinstance(sink, Delta):
        spark.sql(f"OPTIMIZE {identifier}").collect()
    else:
        spark.sql(
            f"CALL {sink.catalog}.system.rewrite_data_files("
            f"table => {literal(identifier)}, options => map('rewrite-all', 'true'))"
        ).collect()


def forget(spark: SparkSession, sink: Sink, identifier: str) -> None:
    """Keep no file and no snapshot but those of the table as it is now."""
    if isinstance(sink, Delta):
        spark.conf.set(_CHECK, "false")
        try:
            spark.sql(f"VACUUM {identifier} RETAIN 0 HOURS").collect()
        finally:
            spark.conf.unset(_CHECK)
    else:
        spark.sql(
            f"CALL {sink.catalog}.system.expire_snapshots("
            f"table => {literal(identifier)}, older_than => current_timestamp(), retain_last => 1)"
        ).collect()
