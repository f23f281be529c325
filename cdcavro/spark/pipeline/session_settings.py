"""Settings of the Spark session that a configured pipeline needs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from cdcavro.spark.lake.sinks import lake_settings
from cdcavro.spark.session import coordinate

if TYPE_CHECKING:
    from cdcavro.sync.config import Config

PACKAGES: Final = "spark.jars.packages"


def session_settings(config: Config) -> dict[str, str]:
    """Return the settings of the session, the configured ones among them."""
    lake = config.lake
    needed = {} if lake is None else lake_settings(catalog=lake.iceberg, warehouse=lake.warehouse)
    kafka = kafka_package() if config.source.kafka or config.kafka else None
    packages = [needed.get(PACKAGES), kafka, config.spark.get(PACKAGES)]
    return {**needed, **config.spark, PACKAGES: ",".join(filter(None, packages))}


def kafka_package() -> str:
    """Return the Maven coordinate of Spark's source of Kafka, in the version of the installed pyspark."""
    return coordinate().replace(":spark-avro_", ":spark-sql-kafka-0-10_")
