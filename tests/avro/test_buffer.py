"""Buffers and cursors: the bytes of Avro, whole columns, and nothing outside of what is there."""

from __future__ import annotations

import io
from array import array

import fastavro
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cdcavro import PayloadError
from cdcavro.avro.buffer import Buffer, ByteReader, Slices
from support.roundtrip import outcome
from support.strategies import strings

_LONGS = st.integers(-(2**63), 2**63 - 1) | st.sampled_from([0, -1, 2**63 - 1, -(2**63), 63, 64, -64, -65])
_WRITES = {
    int: ("long", Buffer.write_long),
    float: ("double", Buffer.write_double),
    str: ("string", Buffer.write_string),
}


def _appended(value) -> bytes:
    out = Buffer()
    _WRITES[type(value)][1](out, value)
    return out.taken()


@given(_LONGS | st.floats() | strings | st.sampled_from(["x" * 5000, "é" * 70, "\U0001f600" * 9]))
def test_buffers_append_what_fastavro_writes(value):
    """However long it is."""
    theirs = io.BytesIO()
    fastavro.schemaless_writer(theirs, _WRITES[type(value)][0], value)
    assert _appended(value) == theirs.getvalue()


def test_buffer_takes_no_lone_surrogate():
    """No UTF-8 is written that nobody could read."""
    with pytest.raises(UnicodeEncodeError):
        Buffer().write_string("\ud800")


@pytest.mark.parametrize("most", [2**31 - 1, 2**63 - 1])
def test_bounds_of_integers_are_exact(most):
    """What fits is told exactly at both ends of 32 and 64 bits."""
    fits = Buffer().fits
    assert [fits(most, most), fits(most + 1, most), fits(-most - 1, most), fits(-most - 2, most)] == [True, False] * 2


def test_bytes_are_cut_and_repeated():
    """Rows that are the same in part are copied in part."""
    out = Buffer()
    out.write_raw(b"raw")
    out.write_again(1, 3)
    out.cut(4)
    out.append(7)
    assert out.taken() == b"rawa\x07"


@pytest.mark.parametrize(
    "step",
    [
        lambda out: out.append(7),
        lambda out: out.write_long(7),
        lambda out: out.write_string("text"),
        lambda out: out.write_raw(b"x" * 5000),
        lambda out: out.write_int32(-7),
        lambda out: out.cut(1),
    ],
)
def test_bytes_that_are_looked_at_stay_where_they_are(step):
    """Arrow keeps the memory of a buffer, which nothing moves then."""
    out = Buffer()
    out.write_raw(b"raw")
    with memoryview(out) as view:
        kept = outcome(BufferError, step, out)
        assert bytes(view) == b"raw"
    assert str(kept) == "Existing exports of data: object cannot be re-sized"


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


_LENGTHS = st.sampled_from([b"", b"\x80", b"\xff" * 9, b"\xff" * 10, b"\x80" * 9 + b"\x02", b"\xff" * 8 + b"\x01"])


@given(
    st.lists(st.binary(max_size=12) | _LENGTHS | strings.map(_appended), max_size=4).map(b"".join), st.text("blsndt")
)
def test_cursors_stay_within_the_bytes(raw, steps):
    """Each step takes bytes that are there, or is an error of the project and leaves the rest alone."""
    cursor = ByteReader(raw)
    ways = {
        "b": cursor.read_byte,
        "l": cursor.read_long,
        "s": cursor.read_string,
        "n": cursor.read_name,
        "d": cursor.read_double,
        "t": lambda: cursor.take(2),
    }
    for step in steps:
        before = cursor.position
        if isinstance(outcome(PayloadError, ways[step]), PayloadError):
            break
        assert before < cursor.position <= len(raw)
