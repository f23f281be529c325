"""Real servers, each started once, as a Java process on a free port of this machine."""

from __future__ import annotations

import hashlib
import subprocess
import tarfile
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.kafka_server import Broker, broker
from support.processes import die_with_parent, free_ports, is_port_taken

APICURIO = "2.6.13.Final"
_URL = (
    "https://repo1.maven.org/maven2/io/apicurio/apicurio-registry-app/"
    f"{APICURIO}/apicurio-registry-app-{APICURIO}-all.tar.gz"
)
_SHA256 = "3cda1b34aa020fb4ac4dd6a66018d757e81e437f97e20a1f92d366b70091c6ba"
_JAVA = ["java", "-Xmx384m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"]
_SECONDS = 240  # less than the limit on a test, so that what the server said is seen


@pytest.fixture(scope="session")
def apicurio_jar(request, tmp_path_factory) -> Path:
    """Apicurio's jar; what was fetched from Maven Central (142 MB) stays in pytest's cache."""
    archive = request.config.cache.mkdir("apicurio") / f"{APICURIO}.tar.gz"
    if not archive.is_file() or hashlib.sha256(archive.read_bytes()).hexdigest() != _SHA256:
        urllib.request.urlretrieve(_URL, archive)
    assert hashlib.sha256(archive.read_bytes()).hexdigest() == _SHA256
    folder = tmp_path_factory.mktemp("apicurio")
    with tarfile.open(archive) as packed:
        # Its digest is known; the first releases of Python 3.11 have no filters.
        packed.extraction_filter = getattr(tarfile, "data_filter", None)
        packed.extractall(folder)
    return folder / f"apicurio-registry-app-{APICURIO}-runner.jar"


@pytest.fixture(scope="session")
def apicurio(apicurio_jar, tmp_path_factory) -> Iterator[str]:
    """The address of a running Apicurio, with nothing in it; it keeps all in memory."""
    log = tmp_path_factory.mktemp("log") / "apicurio.log"
    url, server = _start(apicurio_jar, log)
    while not _is_ready(url, server):
        said = log.read_text(errors="replace")
        _stop(server)
        assert is_port_taken(said), f"Apicurio did not start:\n{said[-2000:]}"
        url, server = _start(apicurio_jar, log)
    try:
        yield url
    finally:
        _stop(server)


@pytest.fixture(scope="session")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    """A broker of Kafka's that runs."""
    with broker(tmp_path_factory.mktemp("broker")) as made:
        yield made


def _start(jar: Path, log: Path) -> tuple[str, subprocess.Popen]:
    """Start it on a free port."""
    (port,) = free_ports(1)
    settings = ["-Dquarkus.http.host=127.0.0.1", f"-Dquarkus.http.port={port}"]
    command = [*_JAVA, *settings, "-jar", jar]
    with log.open("wb") as output:
        server = subprocess.Popen(command, cwd=jar.parent, stdout=output, stderr=output, preexec_fn=die_with_parent)  # noqa: PLW1509
    return f"http://127.0.0.1:{port}/apis/ccompat/v7", server


def _is_ready(url: str, server: subprocess.Popen) -> bool:
    """Wait until it answers, or has ended."""
    until = time.monotonic() + _SECONDS
    while time.monotonic() < until and server.poll() is None:
        try:
            with urllib.request.urlopen(f"{url}/subjects", timeout=5):
                return True
        except OSError:
            time.sleep(0.2)
    return False


def _stop(server: subprocess.Popen) -> None:
    server.kill()
    server.wait()
