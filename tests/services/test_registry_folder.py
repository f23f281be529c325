"""The folder under load: many publications at once, many crashes, many versions. No server, but seconds."""

from __future__ import annotations

import json
import time

import pytest

from cdcavro import registry
from support.registry_writers import kill_at_random, many, publish_at_once
from support.wire import field, record


@pytest.mark.parametrize(("count", "synced"), [(200, "no"), (40, "yes")])
def test_two_programs_publish_at_once_and_nothing_is_lost(tmp_path, count, synced):
    """Half of them the same; without waiting for the disk, when they meet most, and with it."""
    publish_at_once(tmp_path / "s", count, synced=synced)


@pytest.mark.parametrize("seed", range(5))
def test_a_program_killed_again_and_again_leaves_a_folder_that_loads(tmp_path, seed):
    """Killed anywhere: what was told is there, and the next one goes on."""
    kill_at_random(tmp_path / "s", seed, times=4)


def test_ten_thousand_versions_are_fetched_and_published_at_once(tmp_path):
    """Within two seconds, most of which goes to the disk."""
    many(tmp_path, 10_000)
    started = time.perf_counter()
    schemas = registry.connect(f"file:{tmp_path}")
    assert schemas.fetch(subject="s").version == 10_000
    assert schemas.fetch(id=5_000).id == 5_000
    made = schemas.publish(json.dumps(record(field("x"), name="R10000", aliases=("Q",))), "s")
    assert (made.id, made.version) == (10_001, 10_001)
    assert time.perf_counter() - started < 2
