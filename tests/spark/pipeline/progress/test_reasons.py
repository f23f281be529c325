"""Where a reject is, as the report says it; the reasons themselves are those of pipelines that run."""

from __future__ import annotations

from typing import Any

import pytest

from cdcavro.spark.pipeline.progress.reasons import place_of

NOWHERE: dict[str, Any] = dict.fromkeys(("topic", "partition", "offset", "file", "line"))


@pytest.mark.parametrize(
    ("place", "said"),
    [
        ({"topic": "shop", "partition": 2, "offset": 70}, "shop partition 2 offset 70"),
        ({"file": "file:///in/a%20b.jsonl", "line": 3}, "/in/a b.jsonl line 3"),
        ({"file": "s3a://key:secret@bucket/a.jsonl", "line": 3}, "s3a://bucket/a.jsonl line 3"),
        ({}, ""),
    ],
)
def test_the_place_of_a_reject_has_no_login(place: dict[str, Any], said: str):
    """The address of a bucket may have one."""
    assert place_of(NOWHERE | place) == said
