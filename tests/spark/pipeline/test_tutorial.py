"""The tutorial with a broker: every command and every line of it, with the broker that it starts."""

from __future__ import annotations

import os
import signal
from contextlib import suppress
from pathlib import Path

import pytest

from support.kafka_server import spark_settings
from support.pages import DOCS, run_page
from support.processes import free_ports

TUTORIAL = DOCS / "tutorial-pipeline.md"


@pytest.mark.jvm
@pytest.mark.timeout(600)
def test_the_tutorial_with_a_broker_runs_and_says_what_is_shown(
    jars: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """On ports that are free; what Spark's source of Kafka lacks here is told to Spark, and to no reader."""
    defaults = {name: value for name, value in spark_settings(jars).items() if name != "spark.jars.packages"}
    (jars / "spark-defaults.conf").write_text("".join(f"{name} {value}\n" for name, value in defaults.items()))
    monkeypatch.setenv("SPARK_CONF_DIR", str(jars))
    port, controller = free_ports(2)
    try:
        assert run_page(TUTORIAL, tmp_path, {"9092": str(port), "9093": str(controller)}) > 10
    finally:
        with suppress(FileNotFoundError, ProcessLookupError):
            os.kill(int((tmp_path / "broker.pid").read_text()), signal.SIGKILL)
