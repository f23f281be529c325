"""The session: its jar, its limits, and a machine without Java."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pyspark
import pytest
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql.avro.functions import from_avro

import cdcavro
from cdcavro.avro.binary import write_long
from cdcavro.spark.session import check_java, coordinate, settings

pytestmark = pytest.mark.classic

HOW = "install one (apt-get install openjdk-17-jre-headless, or adoptium.net) and set JAVA_HOME to it"


def fake_java(folder: Path, said: str) -> Path:
    """Make a java that says a version."""
    java = folder / "bin" / "java"
    java.parent.mkdir()
    java.write_text(f"#!/bin/sh\necho '{said}' >&2\n")
    java.chmod(0o755)
    return folder


@pytest.mark.every_spark
def test_the_jar_fits_the_installed_pyspark():
    """Its version is pyspark's, its Scala that of the jars of pyspark."""
    scala = "2.12" if pyspark.__version__.startswith("3.") else "2.13"
    assert coordinate() == f"org.apache.spark:spark-avro_{scala}:{pyspark.__version__}"


def test_settings_of_the_caller_are_added():
    """Packages and Java options are joined, not replaced."""
    own = {"spark.redaction.regex": "mine"}
    found = settings({"spark.jars.packages": "a:b:1", "spark.driver.extraJavaOptions": "-Dx=1", "spark.y": "2", **own})
    hidden, options = found.pop("spark.redaction.regex"), found.pop("spark.sql.redaction.options.regex")
    assert [bool(re.search(hidden, name)) for name in ("sasl.jaas", "MY_PASSWORD", "mine", "yours")] == [True] * 3 + [
        False
    ]
    assert re.search(options, "url")
    limits = (
        "-Dorg.apache.avro.limits.bytes.maxLength=67108864 -Dorg.apache.avro.limits.string.maxLength=67108864"
        " -Dorg.apache.avro.limits.collectionItems.maxLength=10000000"
    )
    assert found == {
        "spark.jars.packages": f"{coordinate()},a:b:1",
        "spark.sql.session.timeZone": "UTC",
        "spark.executorEnv.PYTHONSAFEPATH": "1",
        "spark.sql.codegen.cache.maxEntries": "1000",
        "spark.sql.avro.datetimeRebaseModeInRead": "CORRECTED",
        "spark.sql.avro.datetimeRebaseModeInWrite": "CORRECTED",
        "spark.sql.parquet.datetimeRebaseModeInRead": "CORRECTED",
        "spark.sql.parquet.datetimeRebaseModeInWrite": "CORRECTED",
        "spark.y": "2",
        "spark.driver.extraJavaOptions": f"{limits} -Dx=1",
        "spark.executor.extraJavaOptions": limits,
    }


@pytest.mark.every_spark
def test_workers_import_what_the_driver_imports(spark, monkeypatch):
    """Not what lies in the folder that the driver was started in, such as a checkout."""
    found = spark.sparkContext.parallelize([0], 1).map(lambda _: __import__("cdcavro").__file__).collect()
    assert found == [cdcavro.__file__]


def test_without_java_one_sentence_says_how_to_get_it(monkeypatch, tmp_path):
    """Neither JAVA_HOME nor the PATH has one."""
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    with pytest.raises(cdcavro.SetupError) as caught:
        check_java()
    assert str(caught.value) == f"Spark needs Java 17 or newer, and there is no java on the PATH: {HOW}"
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(cdcavro.SetupError) as caught:
        check_java()
    assert str(caught.value) == f"Spark needs Java 17 or newer, and JAVA_HOME={tmp_path} has no bin/java: {HOW}"


@pytest.mark.parametrize(("said", "version"), [('java version "1.8.0_402"', "8"), ('openjdk version "11.0.2"', "11")])
def test_an_old_java_is_named(monkeypatch, tmp_path, said, version):
    """Java 8 says 1.8."""
    monkeypatch.setenv("JAVA_HOME", str(fake_java(tmp_path, said)))
    with pytest.raises(cdcavro.SetupError) as caught:
        check_java()
    found = f"{tmp_path}/bin/java is Java {version}"
    assert str(caught.value) == f"Spark needs Java 17 or newer, and {found}: {HOW}"


@pytest.mark.jvm
def test_a_session_without_the_jar_is_refused():
    """A session that was started elsewhere cannot get the jar any more."""
    code = (
        "import cdcavro\n"
        "from pyspark.sql import SparkSession\n"
        "SparkSession.builder.master('local[1]').config('spark.ui.enabled', 'false').getOrCreate()\n"
        "from cdcavro import spark\n"
        "try:\n    spark.session()\n"
        "except cdcavro.SetupError as error:\n    print(error)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    expected = f"the Spark session that runs already has no {coordinate()}: start it with cdcavro.spark.session()"
    assert done.stdout.strip() == expected


def bomb(announced: int) -> bytes:
    """Make a payload that announces so many bytes or items and has none."""
    out = bytearray()
    write_long(out, announced)
    return bytes(out)


@pytest.mark.jvm
def test_a_session_without_the_bounds_is_refused():
    """The jar alone does not stop a bomb."""
    code = (
        "import cdcavro\n"
        "from pyspark.sql import SparkSession\n"
        "from cdcavro.spark.session import coordinate\n"
        "builder = SparkSession.builder.master('local[1]').config('spark.ui.enabled', 'false')\n"
        "builder.config('spark.jars.packages', coordinate()).getOrCreate()\n"
        "from cdcavro import spark\n"
        "try:\n    spark.session()\n"
        "except cdcavro.SetupError as error:\n    print(error)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    said = "the Spark session that runs already has no bounds on what a payload announces: start it with"
    limits = settings({})["spark.executor.extraJavaOptions"]
    # Ivy says where its settings are on a line of its own.
    assert done.stdout.splitlines()[-1] == f"{said} cdcavro.spark.session(), or its JVMs with {limits}"


@pytest.mark.every_spark
@pytest.mark.parametrize(
    ("schema", "announced", "said"),
    [
        ('"string"', 1_000_000_000, "String length 1000000000 exceeds maximum allowed"),
        ('"bytes"', 1_000_000_000, "Bytes length 1000000000 exceeds maximum allowed"),
        (
            '{"type": "array", "items": "null"}',
            20_000_000,
            "Collection length 20000000 exceeds (the )?maximum allowed",
        ),
        (
            '{"type": "map", "values": "null"}',
            20_000_000,
            "Collection length 20000000 exceeds (the )?maximum allowed",
        ),
    ],
)
def test_a_bomb_fails_the_query_at_our_limit_and_not_the_jvm(spark, schema, announced, said):
    """A few bytes that announce a gigabyte: the limits of Avro are set in the JVM."""
    frame = spark.createDataFrame([(bomb(announced),)], "payload binary")
    with pytest.raises((PySparkException, Py4JJavaError), match=said):
        frame.select(from_avro("payload", schema)).collect()
    assert spark.range(3).count() == 3
