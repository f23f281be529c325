"""Buffers and cursors: the bytes of Avro, and nothing outside of what is there."""

from __future__ import annotations

import io

import fastavro
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cdcavro import PayloadError
from cdcavro.avro.buffer import Buffer, ByteReader
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


def test_bytes_are_repeated():
    """Rows that are the same in part are copied in part."""
    out = Buffer()
    out.write_raw(b"raw")
    out.write_again(1, 3)
    out.append(7)
    assert out.taken() == b"rawaw\x07"


@pytest.mark.parametrize(
    "step",
    [
        lambda out: out.append(7),
        lambda out: out.write_long(7),
        lambda out: out.write_string("text"),
        lambda out: out.write_raw(b"x" * 5000),
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
