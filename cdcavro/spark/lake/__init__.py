"""Lake tables on Spark: changelogs and current states in Delta Lake and Iceberg."""

from cdcavro.spark.lake.current_state import CurrentState
from cdcavro.spark.lake.sinks import Delta, Iceberg, lake_settings
from cdcavro.spark.lake.spark_tables import Changelog

__all__ = ["Changelog", "CurrentState", "Delta", "Iceberg", "lake_settings"]
