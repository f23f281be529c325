"""Both sinks, below a folder of the test."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from cdcavro.spark.lake.sinks import Delta, Iceberg, Sink

HERE = Path(__file__).parent


@pytest.fixture(params=["delta", "iceberg"])
def sink(request: pytest.FixtureRequest, spark: SparkSession, tmp_path: Path) -> Sink:
    """A sink; tables in Iceberg's one catalog are told apart by their databases."""
    return Delta(str(tmp_path / "lake")) if request.param == "delta" else Iceberg("ice")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what another pair of a sink and a producer shows; with CDCAVRO_EVERY_MESSAGE, nothing."""
    if os.environ.get("CDCAVRO_EVERY_MESSAGE"):
        return
    left = {item for item in items if item.path.parent == HERE and _is_shown_by_another(item)}
    items[:] = [item for item in items if item not in left]
    config.hook.pytest_deselected(items=[*left])


def _is_shown_by_another(item: pytest.Item) -> bool:
    params = item.callspec.params if isinstance(item, pytest.Function) and hasattr(item, "callspec") else {}
    sink, producer = params.get("sink"), params.get("producer")
    if producer is not None:
        # Batches between which tables change: each sink, and each producer.
        return (sink, producer) not in {("delta", "debezium"), ("iceberg", "canal")}
    return params.get("seed") == 1
