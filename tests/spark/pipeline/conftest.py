"""Pipelines over files, into a lake of the test's own."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from cdcavro.spark.lake import Delta
from cdcavro.spark.lake.sinks import Sink
from support.pipelines import Job


@pytest.fixture
def job(spark: SparkSession, tmp_path: Path) -> Callable[..., Job]:
    """Make a job whose lake is Delta Lake, or another sink."""

    def made(sink: Sink | None = None, **lake: Any) -> Job:
        return Job(spark, tmp_path, sink or Delta(str(tmp_path / "lake")), lake)

    return made
