"""Settings of the session of a configured pipeline: which packages it needs, and what is never shown."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from datetime import timedelta
from pathlib import Path

import pytest
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from cdcavro.errors import JobError
from cdcavro.lake.lakes import DeltaLake, IcebergLake
from cdcavro.spark.pipeline.runner import Pipeline, session_settings
from cdcavro.sync.config import read_config
from cdcavro.sync.local.local_sinks import Maintenance
from cdcavro.sync.outputs.sink_settings import LakeSettings
from cdcavro.sync.sources import Files
from support.messages import canal, put_messages

CANARY = re.compile("canary-password")
SECRETS = """
    state = "s"
    [source]
    kafka = "127.0.0.1:1"
    topics = ["shop"]
    [source.options]
    "kafka.sasl.jaas.config" = "org.apache.kafka.common.security.plain.PlainLoginModule required username='u' password='${CANARY}';"
    "kafka.sasl.mechanism" = "PLAIN"
    "kafka.client.rack" = "${CANARY}"
    "kafka.request.timeout.ms" = "1000"
    "kafka.default.api.timeout.ms" = "1500"
    [lake]
    iceberg = "prod"
    catalog = { type = "rest", uri = "http://127.0.0.1:1", token = "canary-password", "header.X-Login" = "canary-password" }
    [spark]
    "spark.hadoop.fs.azure.account.key.shop" = "canary-password"
    "spark.sql.catalog.ice.credential" = "client:canary-password"
    "spark.shop.proxy" = "http://user:canary-password@127.0.0.1"
    "spark.shop.own" = "${CANARY}"
    "spark.shop.other" = "shown"
    "spark.redaction.regex" = "shop[.]hidden"
    "spark.shop.hidden" = "canary-password"
"""


def written(folder: Path, text: str) -> Path:
    """Write a configuration."""
    path = folder / "sync.toml"
    path.write_text(text, encoding="utf-8")
    return path


def packages(settings: dict[str, str]) -> list[str]:
    """Return the names of the packages of a session."""
    return [package.split(":")[1].split("_")[0] for package in settings["spark.jars.packages"].split(",")]


def test_a_property_that_spark_cannot_be_told_is_refused_before_a_session_starts():
    """By its name, and without a value."""
    catalog = {"type": "rest", "uri": "https://canary", "s3.role-arn": "canary-password"}
    with pytest.raises(ValueError, match=r"the property s3[.]role-arn of a catalog of type rest") as raised:
        Pipeline(Files("in"), LakeSettings(IcebergLake("prod"), catalog=catalog), "s")
    assert "canary" not in str(raised.value)


def test_a_session_is_started_without_the_properties_of_a_catalog_which_its_pages_hide(tmp_path: Path):
    """The command line of a JVM has its settings; the pipeline sets the properties."""
    text = """
        state = "s"
        [source]
        files = "in"
        [lake]
        iceberg = "prod"
        catalog = { type = "sql", uri = "postgresql://u:canary-password@h/d", warehouse = "s3://b" }
        [spark]
        "spark.redaction.regex" = "shop"
    """
    settings = session_settings(read_config(written(tmp_path, text)))
    names = ["delta-spark", "iceberg-spark-runtime-4.1", "iceberg-aws-bundle", "postgresql"]
    assert packages(settings) == names
    assert settings["spark.redaction.regex"] == r"spark\.sql\.catalog\.prod\.|shop"
    assert "canary" not in str(settings)


def test_a_lake_has_its_packages_and_catalog_beside_what_is_configured(tmp_path: Path):
    """Those of Kafka, if messages come from there, and those that the configuration names."""
    text = """
        state = "s"
        [source]
        kafka = "a:1"
        topics = ["t"]
        [lake]
        iceberg = "ice"
        warehouse = "w"
        [spark]
        "spark.jars.packages" = "a:b:1"
    """
    settings = session_settings(read_config(written(tmp_path, text)))
    assert packages(settings) == ["delta-spark", "iceberg-spark-runtime-4.1", "spark-sql-kafka-0-10", "b"]
    assert settings["spark.sql.catalog.ice.warehouse"] == "w"


def test_topics_have_the_package_that_they_need(tmp_path: Path):
    """No lake is fetched for them."""
    text = 'state = "s"\n[source]\nfiles = "in"\n[kafka]\nservers = "a:1"\n[registry]\nurl = "file:x"\n'
    assert packages(session_settings(read_config(written(tmp_path, text)))) == ["spark-sql-kafka-0-10"]


_SHOWS = """
import json, logging, sys, urllib.request
from pathlib import Path
logging.basicConfig(level=logging.DEBUG)
from cdcavro.spark.pipeline.runner import session_settings
from cdcavro.spark.pipeline.runner import check_source, sink_of
from cdcavro.spark.session import session
from cdcavro.sync.config import read_config
from cdcavro.sync.local.local_sinks import Maintenance
config = read_config(Path(sys.argv[1]))
pipeline = config.pipeline("sync.toml")
spark = session(master="local[1]", config={**session_settings(config), "spark.ui.port": "0", "spark.ui.showConsoleProgress": "false"})
logging.debug("%r %r", config, pipeline)
try:
    check_source(pipeline.source, spark)
except Exception as error:
    print("REFUSED", error)
else:
    raise SystemExit("no error")
sink = sink_of(pipeline.sink)
sink.connect(spark)
try:
    sink.check(spark)
except Exception as error:
    print("REFUSED", error)
else:
    raise SystemExit("no error")
spark.range(3).write.format("noop").mode("overwrite").option("account.key", "canary-password").save()
page = spark.sparkContext.uiWebUrl
api = f"{page}/api/v1/applications/{spark.sparkContext.applicationId}"
for path in (f"{page}/environment/", f"{api}/environment", f"{page}/SQL/", f"{api}/sql?details=true", f"{page}/jobs/"):
    print("PAGE", path, urllib.request.urlopen(path).read().decode())
spark.stop()
"""


@pytest.mark.jvm
@pytest.mark.filterwarnings("ignore")
def test_no_secret_is_on_the_pages_of_spark_nor_in_logs(tmp_path: Path):
    """Options of Kafka and settings, given in the file or by the environment, with everything logged."""
    path = written(tmp_path, SECRETS)
    environment = {**os.environ, "CANARY": "canary-password"}
    done = subprocess.run(
        [sys.executable, "-c", _SHOWS, str(path)],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-2_000:] + done.stderr[-2_000:]
    assert done.stdout.count("PAGE ") == 5
    assert "spark.shop.other" in done.stdout
    assert done.stdout.count("REFUSED") == 2
    found = [
        text[max(0, at.start() - 200) : at.end()] for text in (done.stdout, done.stderr) for at in CANARY.finditer(text)
    ]
    assert found == []


@pytest.mark.parametrize("scheme", ["s3", "s3a"])
def test_a_lake_in_s3_is_read_as_hadoop_reads_s3a_and_one_that_is_not_reached_is_told(
    spark: SparkSession, tmp_path: Path, scheme: str
):
    """The session lacks the library for both; `s3` would be no file system at all."""
    made = Pipeline(Files(str(tmp_path)), LakeSettings(DeltaLake(f"{scheme}://bucket/lake")), str(tmp_path / "state"))
    with pytest.raises(JobError) as raised:
        made.check(spark)
    assert str(raised.value).startswith(f"Delta Lake at {scheme}://bucket/lake cannot be reached: ")
    assert str(raised.value).endswith("Class org.apache.hadoop.fs.s3a.S3AFileSystem not found")


def test_tables_are_maintained_behind_batches(spark: SparkSession, tmp_path: Path):
    """As without Spark, by the library that writes them there."""
    for number in range(3):
        put_messages(tmp_path / "in", number, [canal("INSERT", [{"id": str(number)}], id=number + 1)])
    lake = LakeSettings(DeltaLake(str(tmp_path / "lake")))
    made, said = Pipeline(Files(str(tmp_path / "in"), 1), lake, str(tmp_path / "state")), list[str]()
    made.run(spark, once=True, maintain=Maintenance(made, timedelta(microseconds=1), said.append, said.append).run)
    table = DeltaTable(tmp_path / "lake/d/t")
    assert (len(table.file_uris()), sorted(table.to_pyarrow_table()["id"].to_pylist())) == (1, [0, 1, 2])
    assert [one for one in said if "lake/d/t`: " in one and "fewer, 0 old files removed" in one]
