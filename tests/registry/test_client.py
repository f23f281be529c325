"""The registry in a folder does what every registry does."""

from __future__ import annotations

from uuid import UUID

import pytest

from cdcavro import registry
from cdcavro.errors import PayloadError
from support.registry_suite import *  # noqa: F403
from support.registry_suite import KNOWN, Place


@pytest.fixture
def place(tmp_path, monkeypatch) -> Place:
    """A new folder, that does not wait for the disk."""
    monkeypatch.setattr("cdcavro.registry.folder.os.fsync", lambda _handle: None)
    return Place(f"file:{tmp_path / 'schemas'}", KNOWN["file"])


class _Asked:
    """A backend that counts what it is asked for by prefixes of payloads."""

    def __init__(self, backend):
        self._backend, self.count = backend, 0

    def __getattr__(self, name):
        self.count += name in ("by_id", "by_guid", "by_fingerprint")
        return getattr(self._backend, name)


def test_ever_new_prefixes_do_not_keep_a_registry_busy(place):
    """Whoever writes payloads may make them up; after so many that are missing, none is asked for, for a while."""
    made = place.registry.publish('"int"', place.subject)
    backend = _Asked(place.registry._backend)
    schemas = registry.Registry(backend, cached=20, forget_after=60)
    assert schemas.open(registry.frame(b"\x0e", made.id))[1] == b"\x0e"
    for i in range(1_000):
        for prefix in (1_000_000 + i, registry.Fingerprint(f"{i:016x}"), registry.Guid(UUID(int=i))):
            with pytest.raises(PayloadError, match=r"expected a schema that .* has, got "):
                schemas.open(registry.frame(b"\x0e", prefix))
    assert backend.count == 21
    assert len(schemas._cache._missing) == 20
    assert schemas.open(registry.frame(b"\x0e", made.id))[1] == b"\x0e"
    assert schemas.publish('"long"', f"{place.subject}-2").version == 1
