"""Facts of typed rows: what a summary says of a batch, and what several batches hold together."""

from __future__ import annotations

from cdcavro.lake.row_facts import RowFacts, facts_of_parts, facts_of_summary


def test_a_summary_is_read_as_facts():
    """A table that nothing ended has no floor."""
    summary = {"floor": "", "ops": {"c": 7, "d": 2}, "keyless": 1, "partial": 3, "begins": ["0201"]}
    assert facts_of_summary(summary) == RowFacts(None, 2, 1, 3, [b"\x02\x01"])
    assert facts_of_summary(summary | {"floor": "0a", "ops": {}}) == RowFacts(b"\x0a", 0, 1, 3, [b"\x02\x01"])


def test_batches_hold_together_what_each_holds():
    """The last end of their rows counts, and each beginning of an order once."""
    parts = [
        RowFacts(None, 1, 2, 3, [b"b", b"c"]),
        RowFacts(b"\x02", 10, 20, 30, [b"a", b"b"]),
        RowFacts(b"\x01", 0, 0, 0, []),
    ]
    assert facts_of_parts(parts) == RowFacts(b"\x02", 11, 22, 33, [b"a", b"b", b"c"])
    assert facts_of_parts(parts[:1]) == parts[0]
