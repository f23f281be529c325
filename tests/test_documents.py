"""The golden messages are the samples of the format documents, no more and no fewer."""

from __future__ import annotations

import pytest

import cdcavro
from support.documents import REFERENCE, documented, repair
from support.messages import golden_files
from support.roundtrip import exact


@pytest.fixture(scope="module")
def printed():
    """The samples as the documents print them; skipped where the documents are not at hand."""
    if not REFERENCE.is_dir():
        pytest.skip("the documents in ../shared are not here")
    return documented()


def _goldens():
    return {(format, name): text.decode() for format in cdcavro.FORMATS for name, text in golden_files(format).items()}


def test_golden_messages_are_the_samples_of_the_documents(printed):
    """Each golden message is the printed sample, repaired only where that is not JSON."""
    goldens = _goldens()
    for name, text in printed.items():
        assert exact(goldens[name]) == exact(text), name


def test_no_golden_message_is_missing_or_extra(printed):
    """A sample without a golden message, or a golden message that no document prints, fails."""
    formats = {format for format, _ in printed}
    assert {(format, name) for format, name in _goldens() if format in formats} == set(printed)


def test_every_golden_message_is_one_line():
    """A golden message is a JSON line, so that a folder of them is an input as any other."""
    for name, text in _goldens().items():
        assert text.endswith("}\n"), name
        assert text.count("\n") == 1, name


@pytest.mark.parametrize(
    ("block", "repaired"),
    [
        ('{"a": 1, "b": [1, 2,],}', '{"a":1,"b":[1,2]}'),
        ('{"a" 1 "b": {"c": 2} "d": null}', '{"a":1,"b":{"c":2},"d":null}'),
        ('{"a": LONG, "b": BOOLEAN // why\n, "c": -1.50E3}', '{"a":1609344671000,"b":false,"c":-1.50E3}'),
        ('{"a": "x // y, ]", "b": "split\nword"}', '{"a":"x // y, ]","b":"splitword"}'),
    ],
)
def test_repair_touches_only_what_is_no_json(block, repaired):
    """Commas, colons, comments, words for types, and line breaks inside a word; numbers keep their digits."""
    assert repair(block) == repaired
