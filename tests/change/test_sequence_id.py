"""Positions as one number each, and back."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cdcavro.change.sequence_id import sequence_id, sequence_position
from cdcavro.exact.numbers import MAX_LONG

NUMBERS = st.integers(0, MAX_LONG) | st.integers(0, 20)
POSITIONS = st.lists(NUMBERS, min_size=1, max_size=9).map(tuple)


@given(POSITIONS)
def test_a_position_comes_back_from_its_id(position):
    """However many numbers it has, and however long they are."""
    assert sequence_position(sequence_id(position)) == position


@given(st.integers(1, 5).flatmap(lambda size: st.lists(st.tuples(*[NUMBERS] * size), min_size=2, max_size=9)))
def test_ids_are_ordered_as_their_positions(positions):
    """As numbers, for positions of one length."""
    assert sorted(positions) == sorted(positions, key=lambda one: int(sequence_id(one)))


@pytest.mark.parametrize("position", [None, (), (-1,), (5, -1), (MAX_LONG + 1,), (10**5000, 1)])
def test_what_has_no_place_in_an_id_has_none(position):
    """Numbers are from 0, and of 64 bits."""
    assert sequence_id(position) is None


@pytest.mark.parametrize("text", [None, "", "-1", "null", "1.5", "٣", str(MAX_LONG + 1), "9" * 20, "1" * 20 + "x"])
def test_text_that_is_no_id_has_no_position(text):
    """Nor a number of 19 digits beyond 64 bits, anywhere in it."""
    assert sequence_position(text) is None


def test_the_length_of_an_id_is_bounded():
    """Of 32 numbers each; text is not read further."""
    assert len(sequence_position("1" * 19 * 32)) == 32
    assert sequence_position("1" * (19 * 32 + 1)) is None
