"""One Spark session for all tests that need a JVM."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyspark
import pytest
from packaging.version import Version
from py4j.java_gateway import JavaClass, JVMView
from pyspark.sql import SparkSession

from cdcavro import spark as cdc
from cdcavro.spark import arrow_udf
from cdcavro.spark.lake import lake_settings
from support.connect_server import connect_server
from support.ivy import alone
from support.kafka_server import spark_settings

AVRO = "1.8.2"
# Times in tests are not UTC, so that nothing holds there only.
os.environ["TZ"] = "Asia/Shanghai"
time.tzset()
IS_CONNECT = os.environ.get("CDCAVRO_SPARK") == "connect"
IS_OLDER = not arrow_udf.HAS_ARROW
JAVA_OPTIONS = "spark.driver.extraJavaOptions"
SETTINGS = {
    "spark.ui.enabled": "false",
    "spark.sql.shuffle.partitions": "2",
    "spark.driver.memory": "2g",
    # Delta Lake's VACUUM has as many tasks as this, however few files there are: 10,000.
    "spark.sql.sources.parallelPartitionDiscovery.parallelism": "2",
    # Spark kills the worker of a task that was cut off after 2 s, even one that it has handed on meanwhile (SPARK-54217).
    "spark.python.task.killTimeout": "1min",
    # What is kept of jobs, stages and queries is for pages that nobody looks at.
    **dict.fromkeys(["spark.ui.retainedJobs", "spark.ui.retainedStages", "spark.sql.ui.retainedExecutions"], "10"),
    "spark.ui.retainedTasks": "100",
    "spark.sql.ui.explainMode": "simple",
    # Spark makes 80 MB of code, where the compiler that `tests/conftest.py` chooses keeps 48 by default and makes the rest
    # again and again. What a query needs is dropped soon: the more room there is for it, the less of it is copied.
    JAVA_OPTIONS: "-XX:ReservedCodeCacheSize=400m -Xmn600m -XX:MetaspaceSize=256m",
}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skip what Spark Connect, or an older Spark, does not have."""
    for item in items:
        if IS_CONNECT and item.get_closest_marker("classic"):
            item.add_marker(pytest.mark.skip("needs a session in the process of its driver"))
        if not IS_CONNECT and item.get_closest_marker("connect"):
            item.add_marker(pytest.mark.skip("needs a session that speaks Spark Connect"))
        since = item.get_closest_marker("since")
        if since and Version(pyspark.__version__) < Version(since.args[0]):
            item.add_marker(pytest.mark.skip(f"needs Spark {since.args[0]}"))


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """A session as `cdcavro.spark.session` makes it, with the SQL functions, here or behind a Spark Connect server.

    On the newest Spark, a session here has Delta Lake, Iceberg and Kafka, too.
    """
    if IS_CONNECT:
        with connect_server(SETTINGS) as address:
            made = SparkSession.builder.remote(address).getOrCreate()
            cdc.register(made)
            yield made
            made.stop()
        return
    more = _lakes(tmp_path_factory) if IS_OLDER else _lakes_and_kafka(tmp_path_factory)
    # What a session that is killed leaves goes with the folder of its run.
    scratch = str(tmp_path_factory.mktemp("scratch"))
    java = f"{SETTINGS[JAVA_OPTIONS]} -Djava.io.tmpdir={scratch}"
    own = {**SETTINGS, **more, "spark.local.dir": scratch, JAVA_OPTIONS: java}
    with alone():
        made = cdc.session("cdcavro tests", master="local[2]", config=own)
    made.sparkContext.setLogLevel("OFF")
    _keep_names()
    cdc.register(made)
    yield made
    made.stop()


def _keep_names() -> None:
    """Look for a class of Java's once: the bridge searches 287 jars for `functions` at each column of a frame.

    What is no class is looked for again: it may be one when there are more jars.
    """
    find = JVMView.__getattr__

    def found(self: JVMView, name: str) -> Any:
        value = find(self, name)
        if isinstance(value, JavaClass):
            self.__dict__[name] = value
        return value

    JVMView.__getattr__ = found


def _lakes(folders: pytest.TempPathFactory) -> dict[str, str]:
    lake = lake_settings(catalog="ice", warehouse=str(folders.mktemp("iceberg")))
    # Catalogs of tests are in databases.
    lake["spark.jars.packages"] += ",org.xerial:sqlite-jdbc:3.50.3.0,org.postgresql:postgresql:42.7.8"
    lake["spark.databricks.delta.snapshotPartitions"] = "1"
    # Delta Lake keeps what it knows of 10,000 tables for an hour; tests have each table once, and all of them fill the heap.
    return {**lake, "spark.databricks.delta.delta.log.cacheSize": "20"}


def _lakes_and_kafka(folders: pytest.TempPathFactory) -> dict[str, str]:
    lake, kafka = _lakes(folders), spark_settings(folders.mktemp("kafka"))
    # Some have their files in S3.
    aws = lake_settings(catalog="ice", properties={"type": "glue"})["spark.jars.packages"]
    packages = ",".join([lake["spark.jars.packages"], aws, kafka["spark.jars.packages"]])
    return {**lake, **kafka, "spark.jars.packages": packages}


@pytest.fixture(scope="session")
def jars(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder for jars that Ivy fetches."""
    return tmp_path_factory.mktemp("jars")


@pytest.fixture(scope="session")
def avro_tools(jars) -> Path:
    """The jar of Avro's tools, fetched by the Ivy that pyspark ships."""
    ivy = next((Path(pyspark.__file__).parent / "jars").glob("ivy-*.jar"))
    wanted = ["-dependency", "org.apache.avro", "avro-tools", AVRO, "-confs", "default", "-notransitive"]
    with alone():
        subprocess.run(
            ["java", "-jar", ivy, *wanted, "-retrieve", f"{jars}/[artifact]-[revision].[ext]"],
            check=True,
            capture_output=True,
        )
    return jars / f"avro-tools-{AVRO}.jar"
