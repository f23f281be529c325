"""One Spark session for all tests that need a JVM."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pyspark
import pytest
from pyspark.sql import SparkSession

from cdcavro import spark as cdc
from cdcavro.spark.lake import lake_settings
from support.kafka_server import spark_settings

AVRO = "1.8.2"
# Times in tests are not UTC, so that nothing holds there only.
os.environ["TZ"] = "Asia/Shanghai"
time.tzset()


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """A local session as `cdcavro.spark.session` makes it, with the SQL functions, Delta Lake, Iceberg and Kafka."""
    lake = lake_settings(catalog="ice", warehouse=str(tmp_path_factory.mktemp("iceberg")))
    kafka = spark_settings(tmp_path_factory.mktemp("kafka"))
    made = cdc.session(
        "cdcavro tests",
        master="local[2]",
        config={
            "spark.ui.enabled": "false",
            "spark.sql.shuffle.partitions": "2",
            "spark.driver.memory": "1g",
            # Much code runs a few times only: to compile it well takes longer than it saves.
            "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
            "spark.databricks.delta.snapshotPartitions": "1",
            **lake,
            **kafka,
            "spark.jars.packages": ",".join([lake["spark.jars.packages"], kafka["spark.jars.packages"]]),
        },
    )
    made.sparkContext.setLogLevel("OFF")
    cdc.register(made)
    yield made
    made.stop()


@pytest.fixture(scope="session")
def jars(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder for jars that Ivy fetches."""
    return tmp_path_factory.mktemp("jars")


@pytest.fixture(scope="session")
def avro_tools(jars) -> Path:
    """The jar of Avro's tools, fetched by the Ivy that pyspark ships."""
    ivy = next((Path(pyspark.__file__).parent / "jars").glob("ivy-*.jar"))
    wanted = ["-dependency", "org.apache.avro", "avro-tools", AVRO, "-confs", "default", "-notransitive"]
    subprocess.run(
        ["java", "-jar", ivy, *wanted, "-retrieve", f"{jars}/[artifact]-[revision].[ext]"],
        check=True,
        capture_output=True,
    )
    return jars / f"avro-tools-{AVRO}.jar"
