"""Both sinks, below a folder of the test."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from cdcavro.spark.lake.sinks import Delta, Iceberg, Sink


@pytest.fixture(params=["delta", "iceberg"])
def sink(request: pytest.FixtureRequest, spark: SparkSession, tmp_path: Path) -> Sink:
    """A sink; tables in Iceberg's one catalog are told apart by their databases."""
    return Delta(str(tmp_path / "lake")) if request.param == "delta" else Iceberg("ice")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what takes most of a minute, of which there is as much in Iceberg; with CDCAVRO_EVERY_MESSAGE, nothing."""
    if os.environ.get("CDCAVRO_EVERY_MESSAGE"):
        return
    left = [item for item in items if _is_long(item)]
    items[:] = [item for item in items if not _is_long(item)]
    config.hook.pytest_deselected(items=left)


def _is_long(item: pytest.Item) -> bool:
    is_here = Path(__file__).parent in item.path.parents and hasattr(item, "callspec")
    params = item.callspec.params if is_here and isinstance(item, pytest.Function) else {}
    is_wide = params.get("producer") == "canal" and params.get("name", "all_types") in {"all_types", "big"}
    return params.get("seed") == 1 or (params.get("sink") == "delta" and is_wide and "batches" not in item.name)
