"""Ivy, one process at a time: two that fetch the same for the first time into one cache both fail."""

from __future__ import annotations

import fcntl
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def alone() -> Iterator[None]:
    """Wait until no other test of this machine fetches, and keep others waiting."""
    with Path(tempfile.gettempdir(), "cdcavro-tests-ivy.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
