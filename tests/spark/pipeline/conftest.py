"""Pipelines over files or Kafka, into a lake of the test's own."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from cdcavro.spark.lake import Delta, Iceberg
from cdcavro.spark.pipeline import Files, Kafka
from support.jobs import DELTA
from support.kafka_server import Broker, broker
from support.pipelines import Job


@pytest.fixture
def job(spark: SparkSession, tmp_path: Path) -> Iterator[Callable[..., Job]]:
    """Make a job on Spark whose lake is Delta Lake, or Iceberg, and whose source are files, or another one.

    What a test leaves in Iceberg's one catalog is removed: the next one has tables of the same names.
    """

    def made(kind: str = DELTA, source: Kafka | Files | None = None, **lake: Any) -> Job:
        sink = Delta(str(tmp_path / "lake")) if kind == DELTA else Iceberg("ice")
        return Job(tmp_path, sink, lake, source, spark=spark)

    yield made
    for left in Path(spark.conf.get("spark.sql.catalog.ice.warehouse")).iterdir():
        shutil.rmtree(left)


@pytest.fixture(scope="session")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    """A broker of Kafka's that runs."""
    with broker(tmp_path_factory.mktemp("broker")) as made:
        yield made
