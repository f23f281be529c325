"""The registry in a folder does what every registry does."""

from __future__ import annotations

from uuid import UUID

import pytest

from cdcavro import registry
from cdcavro.errors import PayloadError
from cdcavro.registry import server_backend
from cdcavro.registry.backend import UnusableError
from cdcavro.registry.server_backend import FingerprintIndex
from support.registry_suite import *  # noqa: F403
from support.registry_suite import KNOWN, Place


@pytest.fixture
def place(tmp_path, monkeypatch) -> Place:
    """A new folder, that does not wait for the disk."""
    monkeypatch.setattr("cdcavro.registry.folder_backend.os.fsync", lambda _handle: None)
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


def test_ever_new_fingerprints_do_not_list_the_versions_again():
    """Whoever writes payloads may make up any number of them."""
    clock, asked = [0.0], []
    index = FingerprintIndex("http://host", now=lambda: clock[0])

    def places():
        asked.append("list")
        return [("s", 1), ("s", 2), ("t", 1)]

    def read(place):
        asked.append(place)
        return ("a" if place[0] == "s" else "b"), place[1]

    for i in range(1_000):
        assert index.find(f"made up {i}", places, read) == []
    assert index.find("a", places, read) == [("s", 1), ("s", 2)]
    assert asked == ["list", ("s", 1), ("s", 2), ("t", 1)]
    clock[0] = 6.0
    index.find("b", places, read)
    assert asked[4:] == ["list"]
    index.forget()
    index.find("b", places, read)
    assert asked[5:] == ["list"]


def test_too_many_versions_are_not_read(monkeypatch):
    """A server has many."""
    monkeypatch.setattr(server_backend, "MAX_FINGERPRINTED", 2)
    index = FingerprintIndex("http://host")
    with pytest.raises(UnusableError, match="more than 2 versions, too many to look for a fingerprint in"):
        index.find("a", lambda: [("s", i) for i in range(3)], lambda _: ("a", 1))
