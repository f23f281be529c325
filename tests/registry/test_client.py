"""The registry in a folder does what every registry does."""

from __future__ import annotations

import pytest

from support.registry_suite import *  # noqa: F403
from support.registry_suite import KNOWN, Place


@pytest.fixture
def place(tmp_path, monkeypatch) -> Place:
    """A new folder, that does not wait for the disk."""
    monkeypatch.setattr("cdcavro.registry.folder.os.fsync", lambda _handle: None)
    return Place(f"file:{tmp_path / 'schemas'}", KNOWN["file"])
