"""Fingerprints of a server's versions: each is read once, and the versions are not listed for each question."""

from __future__ import annotations

import pytest

from cdcavro.registry import fingerprints
from cdcavro.registry.backend import UnusableError
from cdcavro.registry.fingerprints import FingerprintIndex


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
    monkeypatch.setattr(fingerprints, "MAX_FINGERPRINTED", 2)
    index = FingerprintIndex("http://host")
    with pytest.raises(UnusableError, match="more than 2 versions, too many to look for a fingerprint in"):
        index.find("a", lambda: [("s", i) for i in range(3)], lambda _: ("a", 1))
