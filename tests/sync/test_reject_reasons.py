"""Reasons of rejects: sentences without the values of messages, and places without a login."""

from __future__ import annotations

from typing import Any

import pytest

from cdcavro.sync.reject_reasons import LONGEST, kind_of, place_of, reason_key
from support.messages import SENTENCES

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


@pytest.mark.parametrize("same", SENTENCES)
def test_sentences_that_differ_by_their_values_only_are_one_reason(same: list[str]):
    """What is masked is the whole value: no digit of a hexadecimal number stays."""
    assert len({kind_of(one) for one in same}) == 1
    assert kind_of("expected int, got string") == "expected int, got string"


def test_a_reason_has_neither_its_place_in_the_message_nor_what_stands_before_every_sentence():
    """And is bounded; of a reject without a format it is about the message."""
    assert reason_key("canal", "$.data[3].id", "canal: $.data[3].id: no") == ("canal", "$.data[*].id", "no")
    assert reason_key(None, None, "message: $: no") == ("", "", "no")
    assert len(reason_key(None, None, "x" * 1_000)[2]) == LONGEST
