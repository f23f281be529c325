"""A standalone cluster of Spark's on this machine: a master and workers, each a process of its own, which can be killed."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyspark

from cdcavro.spark.session import settings

_BIN = Path(pyspark.__file__).parent / "bin"
_SECONDS = 120
_JAVA = "-XX:+UseSerialGC -XX:TieredStopAtLevel=1"
_MASTER = re.compile(r"Starting Spark master at (spark://\S+)")
_REGISTERED = re.compile(r"Successfully registered with master")
# An empty folder of its own over the one that is named.
_BLIND = 'mount -t tmpfs none "$0" && exec "$@"'


@dataclass
class Cluster:
    """A cluster that runs. Attributes: `url`, its master's; `workers`, their processes, each the first of its group."""

    folder: Path
    url: str
    workers: list[subprocess.Popen[bytes]] = field(default_factory=list)
    _started: int = 0

    def add_worker(self, hidden: Path | None = None) -> None:
        """Start a worker with one core, and wait until the master knows it; it does not see what is in a hidden folder."""
        self._started += 1
        own = self.folder / f"worker-{self._started}"
        said = ("--host", "127.0.0.1", "--webui-port", "0", "--cores", "1", "--memory", "1g", "--work-dir", own)
        blind = [] if hidden is None else ["unshare", "-rm", "sh", "-c", _BLIND, str(hidden)]
        worker = _start(own, "org.apache.spark.deploy.worker.Worker", *said, self.url, before=blind)
        self.workers.append(worker)
        _wait_for(worker, own, _REGISTERED)

    def submit(self, program: Path, *arguments: Any, packages: str, config: Mapping[str, str]) -> list[Any]:
        """Return the command that runs a program on the cluster, as a user would spell it."""
        small = {"spark.driver.memory": "600m", "spark.executor.memory": "600m", "spark.cores.max": "2"}
        # The first task waits until all workers are there.
        waits = {
            "spark.scheduler.minRegisteredResourcesRatio": "1.0",
            "spark.ui.enabled": "false",
            "spark.ui.showConsoleProgress": "false",
        }
        every = {**small, **waits, **settings({**config, "spark.jars.packages": packages})}
        every |= {name: f"{every[name]} {_JAVA}" for name in every if name.endswith("extraJavaOptions")}
        every["spark.driver.host"] = "127.0.0.1"
        confs = [part for name, value in every.items() for part in ("--conf", f"{name}={value}")]
        return [_BIN / "spark-submit", "--master", self.url, *confs, program, *arguments]


@contextmanager
def cluster(folder: Path, workers: int = 2) -> Iterator[Cluster]:
    """Run a cluster whose logs and data are in a folder."""
    own = folder / "master"
    master = _start(
        own, "org.apache.spark.deploy.master.Master", "--host", "127.0.0.1", "--port", "0", "--webui-port", "0"
    )
    made = None
    try:
        made = Cluster(folder, _wait_for(master, own, _MASTER)[1])
        for _ in range(workers):
            made.add_worker()
        yield made
    finally:
        for process in [*([] if made is None else made.workers), master]:
            kill_group(process.pid)
            process.wait()


def kill_group(group: int) -> None:
    """Kill a worker with its executors, as a machine that is gone."""
    try:
        os.killpg(group, signal.SIGKILL)
    except ProcessLookupError:
        return


def environment(**more: str) -> dict[str, str]:
    """Return the environment of programs on the cluster."""
    return {**os.environ, "PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1", **more}


def _start(own: Path, name: str, *arguments: Any, before: Sequence[str] = ()) -> subprocess.Popen[bytes]:
    shutil.rmtree(own, ignore_errors=True)
    own.mkdir(parents=True)
    small = {"SPARK_DAEMON_MEMORY": "160m", "SPARK_DAEMON_JAVA_OPTS": _JAVA, "SPARK_LOCAL_DIRS": str(own)}
    command = [*before, _BIN / "spark-class", name, *map(str, arguments)]
    with (own / "log").open("wb") as log:
        return subprocess.Popen(command, stdout=log, stderr=log, env=environment(**small), start_new_session=True)


def _wait_for(process: subprocess.Popen[bytes], own: Path, pattern: re.Pattern[str]) -> re.Match[str]:
    until = time.monotonic() + _SECONDS
    while time.monotonic() < until and process.poll() is None:
        found = pattern.search((own / "log").read_text(encoding="utf-8", errors="replace"))
        if found:
            return found
        time.sleep(0.1)
    raise AssertionError((own / "log").read_text(encoding="utf-8", errors="replace")[-2000:])
