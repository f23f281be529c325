"""Pipelines over files or Kafka, into a lake of the test's own."""

from __future__ import annotations

import os
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

HERE = Path(__file__).parent
# Of tests that the local runner runs as well, what Spark has code of its own for; the others' code is both runners'.
OF_SPARK = {
    "test_a_file_that_changes_behind_its_reading_is_an_error": {"True"},
    "test_a_reset_keeps_rows_until_they_are_read_again_or_it_is_finished": {"delta-current"},
    "test_a_table_that_a_key_change_stopped_begins_again_behind_its_reset": {"delta-current"},
    "test_each_statement_is_in_the_table_once_with_what_was_decided": {"delta"},
    "test_statements_that_are_excluded_are_not_followed_and_rows_go_on": {"delta"},
    "test_values_that_are_no_finite_numbers_are_those_of_the_lake": {"delta"},
}


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out the parameters that show nothing of Spark's; with CDCAVRO_EVERY_MESSAGE, nothing."""
    if os.environ.get("CDCAVRO_EVERY_MESSAGE"):
        return
    left = {item for item in items if item.path.parent == HERE and _is_shown_without_spark(item)}
    items[:] = [item for item in items if item not in left]
    config.hook.pytest_deselected(items=[*left])


def _is_shown_without_spark(item: pytest.Item) -> bool:
    name, _, parameters = item.name.partition("[")
    return name in OF_SPARK and parameters.removesuffix("]") not in OF_SPARK[name]


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
