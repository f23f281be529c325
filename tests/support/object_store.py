"""A server of S3 in this process, moto's: what is in it stays when it is stopped and started again."""

from __future__ import annotations

import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

BUCKET = "bucket"
LOGIN = ("tests", "hidden-from-all")


@dataclass
class ObjectStore:
    """A server of S3 with one bucket."""

    server: Any
    port: int

    @property
    def environment(self) -> dict[str, str]:
        """The variables by which a process finds it."""
        return {
            "AWS_ACCESS_KEY_ID": LOGIN[0],
            "AWS_SECRET_ACCESS_KEY": LOGIN[1],
            "AWS_REGION": "us-east-1",
            "AWS_ENDPOINT_URL": f"http://127.0.0.1:{self.port}",
            "AWS_ALLOW_HTTP": "true",
        }

    def stop(self) -> None:
        """Let nobody reach it."""
        self.server.stop()

    def start(self) -> None:
        """Let it be reached again."""
        self.server = _started(self.port)


def _started(port: int) -> Any:
    from moto.server import ThreadedMotoServer  # noqa: PLC0415  it takes a while to import

    server = ThreadedMotoServer(ip_address="127.0.0.1", port=port, verbose=False)
    server.start()
    return server


@contextmanager
def object_store() -> Iterator[ObjectStore]:
    """Yield a server of S3 that runs."""
    server = _started(0)
    store = ObjectStore(server, server.get_host_and_port()[1])
    try:
        made = urllib.request.Request(f"http://127.0.0.1:{store.port}/{BUCKET}", method="PUT")
        urllib.request.urlopen(made).close()
        yield store
    finally:
        store.stop()
