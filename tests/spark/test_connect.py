"""What a session that speaks Spark Connect is told, where something needs the process of its driver."""

from __future__ import annotations

import pytest

import cdcavro
from cdcavro import spark as cdc
from cdcavro.spark import job
from cdcavro.spark.lake import Changelog, Delta
from cdcavro.spark.pipeline import Files, LakeSettings, Pipeline
from cdcavro.spark.session import settings
from cdcavro.table import TableName

pytestmark = [pytest.mark.every_spark, pytest.mark.connect]
NEEDS = "needs a session in the process of its driver: this one speaks Spark Connect"


def test_the_session_is_one(spark):
    """Without a JVM, with the SQL functions."""
    assert type(spark).__module__.startswith("pyspark.sql.connect.")
    assert spark.sql("SELECT cdc_encode(NULL, 'canal') AS p").first().p is None


def test_what_needs_the_driver_says_so(spark, tmp_path):
    """Before it makes anything."""
    pipeline = Pipeline(Files(str(tmp_path)), LakeSettings(Delta(str(tmp_path / "lake"))), str(tmp_path / "s"))
    log = Changelog(Delta(str(tmp_path / "lake")), TableName("s", None, "t"))
    for run, what in (
        (lambda: pipeline.run(spark, once=True), "a pipeline"),
        (lambda: pipeline.check(spark), "a pipeline"),
        (lambda: job.run(spark, [str(tmp_path)], str(tmp_path / "out")), "the main job"),
        (lambda: log.prepare(spark, []), "Delta Lake"),
    ):
        with pytest.raises(cdcavro.SetupError) as caught:
            run()
        assert str(caught.value) == f"{what} {NEEDS}"
    assert list(tmp_path.iterdir()) == []


def test_a_session_of_its_own_is_not_started_beside_it(spark):
    """What its server needs is said, since it cannot be looked at."""
    with pytest.raises(cdcavro.SetupError) as caught:
        cdc.session()
    jar, bounds = (settings({})[name] for name in ("spark.jars.packages", "spark.executor.extraJavaOptions"))
    said = "session() starts Spark, and this process speaks Spark Connect: connect yourself"
    assert str(caught.value) == f"{said}; its server needs {jar} and {bounds}"
