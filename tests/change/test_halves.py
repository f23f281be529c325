"""Halves of updates, joined."""

from __future__ import annotations

import pytest

import cdcavro
from cdcavro.change.model import Change, Source, replace
from cdcavro.change.order import MAX_PENDING, HalfJoiner, join_halves
from cdcavro.errors import StructureError
from support.messages import HALVED
from support.roundtrip import error_of

BEFORE = Change(op="UPDATE", half="BEFORE", operation="UPDATE_BEFOR", before={"a": 1}, position=(5,), event_time=1)
AFTER = Change(op="UPDATE", half="AFTER", operation="UPDATE_AFTER", after={"a": 2}, position=(5,), event_time=2)


BLOB = (
    '{"schema":{},"payload":{"op":"UPDATE_BEFOR","before":{"dataColumn":{"id":1}},"sequenceId":"5"},"version":"0.0.1"}'
)


@pytest.mark.parametrize("format", sorted(set(cdcavro.FORMATS) - HALVED))
def test_a_half_is_no_message_of_a_format_without_halves(format):
    """An update with one image of two would be taken for a whole one."""
    half = cdcavro.to_changes(BLOB, "datahub_blob")
    expected = f"datahub_blob: $: expected both halves of the update, joined, for {format}, got the BEFORE half alone"
    assert error_of(cdcavro.from_changes, half, format) == expected


@pytest.mark.parametrize("format", sorted(HALVED))
def test_a_half_is_a_message_of_a_format_with_halves(format):
    """Its own, and the other one."""
    (text,) = cdcavro.from_changes(cdcavro.to_changes(BLOB, "datahub_blob"), format)
    assert [one.half for one in cdcavro.to_changes(text, format)] == ["BEFORE"]


@pytest.mark.parametrize("order", [[BEFORE, AFTER], [AFTER, BEFORE]])
def test_halves_join_in_either_order(order):
    """The images of both, the rest of the AFTER half: so the same change is made whichever came first."""
    (joined,) = join_halves(order)
    assert (joined.op, joined.half, joined.before, joined.after) == ("UPDATE", None, {"a": 1}, {"a": 2})
    assert joined.event_time == AFTER.event_time


def test_halves_of_different_tables_are_not_joined():
    """A number belongs to one table."""
    other = replace(AFTER, source=Source(table="t"))
    with pytest.raises(StructureError, match="expected the AFTER half of the update too, got the BEFORE half alone"):
        list(join_halves([BEFORE, other]))


def test_a_half_that_comes_twice_is_refused():
    """One of the two would be lost."""
    with pytest.raises(StructureError, match="expected the other half of the update, got the BEFORE half twice"):
        list(join_halves([BEFORE, BEFORE]))


@pytest.mark.slow
def test_memory_for_waiting_halves_is_bounded():
    """10,000 may wait."""
    halves = HalfJoiner()
    half = [replace(BEFORE, position=(i,)) for i in range(MAX_PENDING + 1)]
    for one in half[:-1]:
        assert list(halves.add(one)) == []
    with pytest.raises(StructureError, match="at most 10000 halves without their other half"):
        list(halves.add(half[-1]))


@pytest.mark.parametrize(
    ("half", "expected"),
    [
        (replace(AFTER, after=None), "expected a row in the AFTER half of an update, got none"),
        (replace(BEFORE, before=None), "expected a row in the BEFORE half of an update, got none"),
        (replace(AFTER, half="OTHER"), "expected BEFORE or AFTER as the half of an update, got OTHER"),
        (replace(AFTER, position=None), "expected a number for the halves of an update to share, got none"),
    ],
)
def test_a_half_that_is_none_is_refused(half, expected):
    """Joined, it would be an update without a row; what waits still waits."""
    halves = HalfJoiner()
    assert list(halves.add(BEFORE)) == []
    with pytest.raises(StructureError) as caught:
        list(halves.add(half))
    assert str(caught.value) == f"message: $: {expected}"
    assert halves.pending() == [BEFORE]
