"""The folder under load: many publications at once, many crashes, many versions. No server, but seconds."""

from __future__ import annotations

import json

import pytest

from cdcavro import registry
from support.calls import calls
from support.registry_writers import kill_at_random, many, publish_at_once
from support.wire import field, record


@pytest.mark.slow
@pytest.mark.parametrize(("count", "synced"), [(200, "no"), (40, "yes")])
def test_two_programs_publish_at_once_and_nothing_is_lost(tmp_path, count, synced):
    """Half of them the same; without waiting for the disk, when they meet most, and with it."""
    publish_at_once(tmp_path / "s", count, synced=synced)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(5))
def test_a_program_killed_again_and_again_leaves_a_folder_that_loads(tmp_path, seed):
    """Killed anywhere: what was told is there, and the next one goes on."""
    kill_at_random(tmp_path / "s", seed, times=4)


@pytest.mark.slow
def test_ten_thousand_versions_take_hardly_more_steps_than_a_hundred(tmp_path):
    """To fetch one and to publish another; half as many again, for the search goes by halves."""

    def work(count):
        schemas = registry.connect(f"file:{tmp_path / str(count)}")
        assert schemas.fetch(subject="s").version == count
        assert schemas.fetch(id=count // 2).id == count // 2
        made = schemas.publish(json.dumps(record(field("x"), name=f"R{count}", aliases=("Q",))), "s")
        assert (made.id, made.version) == (count + 1, count + 1)

    many(tmp_path / "100", 100)
    many(tmp_path / "10000", 10_000)
    assert calls(lambda: work(10_000)) < 2 * calls(lambda: work(100))
