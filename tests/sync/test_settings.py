"""A registry that a pipeline uses: how subjects are named, how long it may be down, and what is never shown."""

from __future__ import annotations

import time
from typing import Any

import pytest

from cdcavro.errors import JobError, RegistryError
from cdcavro.sync.settings import RegistrySettings
from support.faulty_server import Answer, serving

PASSWORD = "hunter2 behind seven seals"


@pytest.mark.parametrize(
    ("given", "topic", "strategy"),
    [
        ({}, None, "record"),
        ({}, "{name}", "topic"),
        ({}, "all", "topic-record"),
        ({"strategy": "record"}, "{name}", "record"),
        ({"strategy": "topic-record"}, "{name}", "topic-record"),
    ],
)
def test_subjects_are_named_after_topics_where_there_are_some(given: dict[str, Any], topic: str | None, strategy: str):
    """As `cdcavro publish` does; the subject of one topic for all tables cannot be that of one table."""
    assert RegistrySettings("file:x", **given).strategy_for(topic) == strategy


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"strategy": "table"}, "the strategies are topic, record, topic-record, not 'table'"),
        ({"strategy": "topic", "topic": "all"}, "holds the versions of one table"),
        ({"topic": "a b"}, "a topic has letters"),
        ({"compatibility": "some"}, "a compatibility level is one of"),
    ],
)
def test_what_cannot_be_is_refused_at_once(given: dict[str, Any], said: str):
    """Before a stream is started."""
    with pytest.raises(ValueError, match=said):
        RegistrySettings("file:x", **given)
    with pytest.raises(RegistryError):
        RegistrySettings("ftp://x")
    with pytest.raises(ValueError, match="the strategy topic needs a topic"):
        RegistrySettings("file:x", strategy="topic").strategy_for(None)


@pytest.mark.slow
def test_a_registry_that_comes_back_is_waited_for():
    """Whatever was asked is asked again."""
    down = [Answer(503, headers={"Retry-After": "0"})] * 4
    with serving([*down, Answer(200, {"compatibilityLevel": "FULL"})]) as server:
        access = RegistrySettings(server.url, patience=30)
        with access.connect() as registry:
            assert access.ask_patiently(lambda: registry.compatibility("s")) == "FULL"


@pytest.mark.slow
def test_one_that_stays_down_longer_than_its_patience_is_an_error_without_the_password():
    """In bounded time; what it refuses is not asked again."""
    access = RegistrySettings("http://127.0.0.1:9", auth=("me", PASSWORD), patience=1.5)
    since = time.monotonic()
    with access.connect() as registry, pytest.raises(JobError, match=r"cannot be reached.*, for 1\.5 seconds") as gone:
        access.ask_patiently(lambda: registry.compatibility("s"))
    assert time.monotonic() - since < 20
    assert PASSWORD not in str(gone.value) + repr(access)
    with serving([Answer(401, {"message": "who?"})]) as server:
        secured = RegistrySettings(server.url, auth=("me", PASSWORD))
        with secured.connect() as registry, pytest.raises(RegistryError, match="user and password"):
            secured.ask_patiently(lambda: registry.compatibility("s"))
        assert len(server.asked) == 1
