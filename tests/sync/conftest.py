"""Pipelines of the local runner, into a lake of the test's own, and a broker of Kafka's."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest

from support.jobs import LocalJob, local_job
from support.kafka_server import Broker, broker


@pytest.fixture
def job(tmp_path: Path) -> Callable[..., LocalJob]:
    """Make a job of the local runner: its lake is Delta Lake, or Iceberg, and its source are files, or another one."""
    return partial(local_job, tmp_path)


@pytest.fixture(scope="session")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    """A broker of Kafka's that runs."""
    with broker(tmp_path_factory.mktemp("broker")) as made:
        yield made


@pytest.fixture(autouse=True)
def no_pyspark(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a test that starts no Java find no pyspark either: `tox -e local` runs it where there is none."""
    if not request.node.get_closest_marker("jvm"):
        monkeypatch.setitem(sys.modules, "pyspark", None)
