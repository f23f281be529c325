"""Both sinks, below a folder of the test."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from cdcavro.spark.lake.sinks import Delta, Iceberg, Sink


@pytest.fixture(params=["delta", "iceberg"])
def sink(request: pytest.FixtureRequest, spark: SparkSession, tmp_path: Path) -> Sink:
    """A sink; tables in Iceberg's one catalog are told apart by their databases."""
    return Delta(str(tmp_path / "lake")) if request.param == "delta" else Iceberg("ice")
