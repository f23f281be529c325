"""Columns of bytes as Arrow lays them out: read value by value, turned into others, and nothing outside of them."""

from __future__ import annotations

from array import array

import pytest
from hypothesis import given
from hypothesis import strategies as st

import cdcavro
from cdcavro.engine.payloads import Slices, pack
from support.columns import column, listed, read
from support.roundtrip import outcome

columns = st.lists(st.none() | st.binary(max_size=20), max_size=40)


def reversed_bytes(raw: bytes) -> bytes:
    """Stand for a conversion; a value that holds a 0 is at fault."""
    if b"\0" in raw:
        raise cdcavro.TextError("no zero", "one")
    return raw[::-1] * 2


@given(columns, columns)
def test_a_column_gives_its_values_wherever_it_begins(values, before):
    """Also behind values of other rows, and among nulls."""
    assert listed(column(values, before)) == values


@given(columns, columns)
def test_each_value_is_converted_and_null_stays_null(values, before):
    """Faults become nulls, and are handed over with their places."""
    faults = {}
    packed = pack(column(values, before), reversed_bytes, faults.__setitem__)
    wanted = [None if value is None or b"\0" in value else value[::-1] * 2 for value in values]
    assert read(packed) == wanted
    assert packed.nulls == wanted.count(None)
    assert {i: str(error) for i, error in faults.items()} == {
        i: "message: $: expected no zero, got one" for i, value in enumerate(values) if value and b"\0" in value
    }


def test_a_fault_that_nobody_catches_is_raised():
    """The first one, as it is."""
    with pytest.raises(cdcavro.TextError) as caught:
        pack(column([b"a", b"\0"]), reversed_bytes)
    assert str(caught.value) == "message: $: expected no zero, got one"


def test_errors_of_other_kinds_are_not_caught():
    """A mistake in a program is no message at fault."""
    with pytest.raises(ZeroDivisionError):
        pack(column([b"a"]), lambda raw: len(raw) // 0, {}.__setitem__)


def test_a_column_holds_as_much_as_its_offsets_can_say():
    """Up to the bound, and not a byte more."""
    assert read(pack(column([b"a", None, b"b"]), reversed_bytes, None, 4)) == [b"aa", None, b"bb"]
    with pytest.raises(OverflowError) as caught:
        pack(column([b"a", b"b"]), reversed_bytes, None, 3)
    assert str(caught.value) == "a column of more than 3 bytes"


def test_long_values_and_many_make_the_buffers_grow():
    """More than any first room."""
    values = [b"x" * 100_000, *[b"y"] * 10_000, None]
    assert read(pack(column(values), bytes)) == values


@pytest.mark.parametrize(
    ("offsets", "validity", "first", "count", "sentence"),
    [
        ([0, 1], None, 0, 2, "a column has no 2 values behind 0"),
        ([0, 1], None, 1, 1, "a column has no 1 values behind 1"),
        ([0, 1], None, -1, 1, "a column has no 1 values behind -1"),
        ([0, 1], None, 0, -1, "a column has no -1 values behind 0"),
        ([0, 1], None, 2**62, 2**62, f"a column has no {2**62} values behind {2**62}"),
        ([], None, 0, 0, "a column has no 0 values behind 0"),
        ([0] * 10, b"\xff", 0, 9, "a column has no 9 values behind 0"),
        ([0] * 10, b"\xff", 8, 1, "a column has no 1 values behind 8"),
    ],
)
def test_a_column_that_is_shorter_than_said_is_refused(offsets, validity, first, count, sentence):
    """Before anything is read."""
    with pytest.raises(IndexError) as caught:
        Slices(b"abc", array("i", offsets).tobytes(), validity, first, count)
    assert str(caught.value) == sentence


@pytest.mark.parametrize("offsets", [[-1, 1], [0, 4], [2, 1], [2**31 - 1, 2**31 - 1], [-(2**31), 0], [4, 4]])
def test_a_value_outside_of_the_bytes_is_refused(offsets):
    """Whatever the offsets say, nothing else is read."""
    values = Slices(b"abc", array("i", offsets).tobytes(), None, 0, 1)
    with pytest.raises(IndexError) as caught:
        values.get(0)
    assert str(caught.value) == "value 0 is not within the bytes of its column"


@pytest.mark.parametrize("place", [-1, 1, 2**40])
def test_a_place_that_is_none_is_refused(place):
    """Places count from 0, and only from there."""
    with pytest.raises(IndexError) as caught:
        column([b"a"], [b"b"]).get(place)
    assert str(caught.value) == f"value {place} is not within the bytes of its column"


def in_batches(values, first, base, most):
    """Stand for the engine: it leaves values that hold a 0, or a 1, or that come to too much."""
    data, ends = b"", array("i")
    for i in range(first, values.count):
        raw = values.get(i) or b""
        if b"\0" in raw or b"\1" in raw or base + len(data) + 2 * len(raw) > most:
            return data, ends.tobytes(), i
        data += reversed_bytes(raw)
        ends.append(base + len(data))
    return data, ends.tobytes(), values.count


@given(st.lists(st.none() | st.text("\0\1ab", max_size=3).map(str.encode), max_size=40), columns, st.integers(0, 60))
def test_what_a_batch_leaves_is_put_in_its_place(values, before, most):
    """Faults, nulls and the bound are as without batches."""

    def packed(batch):
        faults = {}
        try:
            found = read(pack(column(values, before), reversed_bytes, faults.__setitem__, most, batch))
        except OverflowError as error:
            found = str(error)
        return found, {i: str(error) for i, error in faults.items()}

    assert packed(in_batches) == packed(None)


def _value_at(data, places, validity, i):
    """Return the value that Arrow's layout has at a place, None for a null, or the error outside of it."""
    if validity is not None and not validity[i // 8] >> i % 8 & 1:
        return None
    start, end = places[i : i + 2]
    return data[start:end] if 0 <= start <= end <= len(data) else IndexError


@given(
    st.binary(max_size=8),
    st.lists(st.integers(-2, 9) | st.sampled_from([2**31 - 1, -(2**31)]), max_size=6),
    st.none() | st.binary(max_size=2),
    st.integers(-2, 6) | st.just(2**62),
    st.integers(-2, 6) | st.just(2**62),
    st.integers(-2, 6),
)
def test_columns_are_read_however_they_lie(data, places, validity, first, count, place):
    """Values, nulls, and nothing outside of what is there."""
    made = outcome(IndexError, Slices, data, array("i", places).tobytes(), validity, first, count)
    is_there = min(first, count) >= 0 and first + count < len(places)
    if not is_there or (validity is not None and first + count > 8 * len(validity)):
        assert isinstance(made, IndexError)
        return
    expected = _value_at(data, places, validity, first + place) if 0 <= place < count else IndexError
    found = outcome(IndexError, made.get, place)
    assert made.count == count
    assert isinstance(found, IndexError) if expected is IndexError else found == expected
