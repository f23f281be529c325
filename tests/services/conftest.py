"""Real servers, each started once, as a Java process on a free port of this machine."""

from __future__ import annotations

import hashlib
import socket
import subprocess
import tarfile
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

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
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    settings = ["-Dquarkus.http.host=127.0.0.1", f"-Dquarkus.http.port={port}"]
    said = tmp_path_factory.mktemp("log") / "apicurio.log"
    with said.open("wb") as log:
        server = subprocess.Popen(
            [*_JAVA, *settings, "-jar", apicurio_jar], cwd=apicurio_jar.parent, stdout=log, stderr=log
        )
    url = f"http://127.0.0.1:{port}/apis/ccompat/v7"
    try:
        _wait_for(url, server, said)
        yield url
    finally:
        server.kill()
        server.wait()


def _wait_for(url: str, server: subprocess.Popen, said: Path) -> None:
    until = time.monotonic() + _SECONDS
    while time.monotonic() < until and server.poll() is None:
        try:
            with urllib.request.urlopen(f"{url}/subjects", timeout=5):
                return
        except OSError:
            time.sleep(0.2)
    pytest.fail(f"Apicurio did not start:\n{said.read_text(errors='replace')[-2000:]}")
