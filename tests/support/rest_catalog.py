"""An Iceberg REST catalog: the server that Iceberg's own tests have, as a Java process on a free port of this machine."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.error import URLError
from urllib.request import urlopen

from support.kafka_server import fetched
from support.processes import die_with_parent, free_ports

_SERVER = ("org.apache.iceberg", "iceberg-open-api", "1.10.0")
_JAVA = ["java", "-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"]
_SECONDS = 240


@contextmanager
def rest_catalog(folder: Path) -> Iterator[str]:
    """Run a server whose tables and database are in a folder, give its address, and stop it."""
    jars = fetched(folder / "jars", [_SERVER], is_whole=False)
    (port,) = free_ports(1)
    stated = {
        "CATALOG_REST_PORT": str(port),
        "CATALOG_URI": f"jdbc:sqlite:{folder}/catalog.db",
        "CATALOG_WAREHOUSE": str(folder / "warehouse"),
    }
    with (folder / "catalog.log").open("wb") as log:
        server = subprocess.Popen(
            [*_JAVA, "-jar", *jars],
            env={**os.environ, **stated},
            stdout=log,
            stderr=log,
            preexec_fn=die_with_parent,  # noqa: PLW1509
        )
    try:
        _await(f"http://127.0.0.1:{port}", server, folder / "catalog.log")
        yield f"http://127.0.0.1:{port}"
    finally:
        server.kill()
        server.wait()


def _await(address: str, server: subprocess.Popen, log: Path) -> None:
    until = time.monotonic() + _SECONDS
    while time.monotonic() < until and server.poll() is None:
        try:
            with urlopen(f"{address}/v1/config", timeout=5):
                return
        except (URLError, OSError):
            time.sleep(0.2)
    raise AssertionError(f"the catalog did not start:\n{log.read_text(errors='replace')[-2000:]}")
