"""Iceberg REST catalogs, each a Java process on a free port of this machine: the server of Iceberg's own tests, and Nessie."""

from __future__ import annotations

import os
import re
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from urllib.error import URLError
from urllib.request import urlopen

import pytest

from support.kafka_server import fetched
from support.object_store import BUCKET
from support.processes import die_with_parent, free_ports

_SERVER = ("org.apache.iceberg", "iceberg-open-api", "1.10.0")
# It has 245 MB, and needs a newer Java than all else here.
_NESSIE = ("org.projectnessie.nessie", "nessie-quarkus", "0.99.0")
_NESSIES_JAVA = 21
_OPTIONS = ["-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"]
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
    with _running(
        folder, ["java", "-Xmx256m", *_OPTIONS, "-jar", *jars], stated, f"http://127.0.0.1:{port}"
    ) as address:
        yield address


@contextmanager
def nessie(folder: Path, store: str, login: tuple[str, str]) -> Iterator[str]:
    """Run Nessie, which has a warehouse `lake` in a store of S3 at an address, give that of its catalog, and stop it."""
    java = _newer_java()
    jars = fetched(folder / "jars", [_NESSIE], is_whole=False, classifier="runner")
    port, management = free_ports(2)
    s3 = "nessie.catalog.service.s3.default-options"
    stated = {
        "quarkus.http.host": "127.0.0.1",
        "quarkus.http.port": port,
        "quarkus.management.host": "127.0.0.1",
        "quarkus.management.port": management,
        "nessie.version.store.type": "IN_MEMORY",
        "nessie.catalog.default-warehouse": "lake",
        "nessie.catalog.warehouses.lake.location": f"s3://{BUCKET}/nessie",
        f"{s3}.endpoint": store,
        f"{s3}.region": "us-east-1",
        f"{s3}.path-style-access": "true",
        f"{s3}.access-key": "urn:nessie-secret:quarkus:login",
        "login.name": login[0],
        "login.secret": login[1],
    }
    command = [java, "-Xmx384m", *_OPTIONS, *[f"-D{name}={value}" for name, value in stated.items()], "-jar", *jars]
    with _running(folder, command, {}, f"http://127.0.0.1:{port}/iceberg") as address:
        yield address


def _newer_java() -> Path:
    """Return a Java that Nessie runs on; a test is skipped where there is none."""
    for release in sorted(Path("/usr/lib/jvm").glob("*/release")):
        found = re.search(r'^JAVA_VERSION="(\d+)', release.read_text(), re.MULTILINE)
        if found and int(found[1]) >= _NESSIES_JAVA:
            return release.with_name("bin") / "java"
    pytest.skip(f"Nessie needs Java {_NESSIES_JAVA} in /usr/lib/jvm")


@contextmanager
def _running(folder: Path, command: Sequence[str | Path], variables: Mapping[str, str], address: str) -> Iterator[str]:
    """Run a server, and give its address once it answers there."""
    with (folder / "catalog.log").open("wb") as log:
        server = subprocess.Popen(
            command,
            env={**os.environ, **variables},
            stdout=log,
            stderr=log,
            preexec_fn=die_with_parent,  # noqa: PLW1509
        )
    try:
        _await(address, server, folder / "catalog.log")
        yield address
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
