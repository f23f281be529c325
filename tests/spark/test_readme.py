"""README's Spark examples run, and show what they say."""

from __future__ import annotations

import re

import pytest
from readme import blocks, is_spark


@pytest.fixture(scope="module")
def names(spark) -> dict:
    """The names that README's Python blocks define, run one behind another on the session of the tests."""
    names: dict = {}
    for block in blocks("python"):
        exec(compile(block, "README.md", "exec"), names)
    return names


def test_all_examples_run_and_nothing_is_lost(names):
    """Two messages in, one good and one bad out; the good one comes back through from_avro and to_avro."""
    assert (names["good"].count(), names["bad"].count()) == (1, 1)
    assert names["bad"].first().message.startswith("oms_canal: $: expected JSON, got 'not a message'")
    assert names["again"].count() == 1


def test_tables_are_shown_as_the_comments_say(names, capsys):
    """Each `show()` prints the row in the comment beside it."""
    code = "".join(block for block in blocks("python") if is_spark(block))
    said = re.findall(r"show\(.*?\) +# (\|.*\|)$", code, re.MULTILINE)
    assert len(said) == 2
    for block in blocks("python"):
        if ".show(" in block:
            exec(compile(block, "README.md", "exec"), names)
    shown = capsys.readouterr().out
    for row in said:
        assert row in shown
