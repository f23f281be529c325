"""Avro's binary encoding: the bytes of the specification, and what is refused before anything is built from it."""

from __future__ import annotations

import io
import math

import fastavro
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cdcavro import PayloadError
from cdcavro.avro.binary import Buffer, Decoder, write_double, write_long, write_string
from support.roundtrip import error_of, outcome
from support.strategies import strings

_HUGE = b"\xfe\xff\xff\xff\xff\xff\xff\xff\xff\x01"
_LOWEST = b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"


def _written(write, value) -> bytes:
    out = bytearray()
    write(out, value)
    return bytes(out)


@pytest.mark.parametrize(
    ("value", "raw"),
    [
        (0, b"\x00"),
        (-1, b"\x01"),
        (1, b"\x02"),
        (-64, b"\x7f"),
        (64, b"\x80\x01"),
        (2**63 - 1, _HUGE),
        (-(2**63), _LOWEST),
    ],
)
def test_long_is_zig_zag(value, raw):
    """The examples of the specification and the two ends of 64 bits."""
    assert _written(write_long, value) == raw
    assert Decoder(raw).read_long() == value


@pytest.mark.parametrize(("value", "raw"), [("", b"\x00"), ("foo", b"\x06foo"), ("\0é", b"\x06\x00\xc3\xa9")])
def test_string_is_a_length_and_utf_8(value, raw):
    """The length counts bytes, not characters."""
    assert _written(write_string, value) == raw
    assert Decoder(raw).read_string() == value


@pytest.mark.parametrize("length", [63, 64, 65, 8191, 8192])
def test_length_of_a_string_may_take_more_than_a_byte(length):
    """The short way for short strings ends where it must."""
    raw = _written(write_string, "x" * length)
    assert Decoder(raw).read_string() == "x" * length


@pytest.mark.slow
@given(st.integers(-(2**63), 2**63 - 1), st.text(), st.floats(allow_nan=False))
def test_fastavro_writes_the_same_bytes(whole, string, real):
    """An independent writer agrees to the byte."""
    for schema, write, value in (
        ("long", write_long, whole),
        ("string", write_string, string),
        ("double", write_double, real),
    ):
        out = io.BytesIO()
        fastavro.schemaless_writer(out, schema, value)
        assert _written(write, value) == out.getvalue()


def test_reading_moves_on():
    """A source reads one value behind another and knows when all is read."""
    source = Decoder(b"\x06foo\x01\x02\x00\x00\x80\x3f" + _written(write_double, -0.0))
    assert source.read_string() == "foo"
    assert source.read_boolean() is True
    assert source.read_long() == 1
    assert source.read_float() == 1.0
    assert math.copysign(1, source.read_double()) == -1
    source.finish()


def test_block_counts():
    """A block says how many items follow; a negative count has the block's size in bytes behind it."""
    assert Decoder(b"\x00").read_block() == 0
    assert Decoder(b"\x04ab").read_block() == 2
    assert Decoder(b"\x03\x04ab").read_block() == 2


@pytest.mark.parametrize(
    ("raw", "read", "sentence"),
    [
        (b"", Decoder.read_byte, "expected 1 byte, got 0 at byte 0, where the payload ends"),
        (b"\x80", Decoder.read_long, "expected 1 byte, got 0 at byte 1, where the payload ends"),
        (b"\xff" * 11, Decoder.read_long, "expected an integer of at most 64 bits, got more at byte 10"),
        (
            b"\x80\x80\x80\x80\x80\x80\x80\x80\x80\x02",
            Decoder.read_long,
            "expected an integer of at most 64 bits, got more at byte 10",
        ),
        (b"\x80\x80\x80\x80\x10", Decoder.read_int, "expected an integer of at most 32 bits, got 2147483648 at byte 5"),
        (b"\x08ab", Decoder.read_string, "expected 4 bytes, got 2 at byte 1, where the payload ends"),
        (b"\x01ab", Decoder.read_string, "expected -1 bytes, got 2 at byte 1, where the payload ends"),
        (
            _HUGE,
            Decoder.read_bytes,
            "expected 9223372036854775807 bytes, got 0 at byte 10, where the payload ends",
        ),
        (b"\x02\xff", Decoder.read_string, "expected UTF-8, got byte 0xff before byte 2"),
        (b"\x06\xed\xa0\x80", Decoder.read_string, "expected UTF-8, got byte 0xed before byte 4"),
        (b"\x02", Decoder.read_boolean, "expected a boolean, 0 or 1, got 2 at byte 0"),
        (b"\x00" * 3, Decoder.read_float, "expected 4 bytes, got 3 at byte 0, where the payload ends"),
        (b"\x00" * 7, Decoder.read_double, "expected 8 bytes, got 7 at byte 0, where the payload ends"),
        (b"\x06", lambda source: source.read_index(3, "a branch"), "expected a branch from 0 to 2, got 3 at byte 1"),
        (b"\x01", lambda source: source.read_index(3, "a symbol"), "expected a symbol from 0 to 2, got -1 at byte 1"),
        (b"\x06ab", Decoder.read_block, "expected 3 items, got 2 at byte 1, where the payload ends"),
        (
            _HUGE,
            Decoder.read_block,
            "expected 9223372036854775807 items, got 0 at byte 10, where the payload ends",
        ),
        (
            _LOWEST + b"\x00",
            Decoder.read_block,
            "expected 9223372036854775808 items, got 0 at byte 11, where the payload ends",
        ),
        (b"\x01\x06ab", Decoder.read_block, "expected a block of 3 bytes, got 2 at byte 2, where the payload ends"),
        (b"\x01\x01ab", Decoder.read_block, "expected a block of -1 bytes, got 2 at byte 2, where the payload ends"),
        (b"\x00", Decoder.finish, "expected the end of the payload at byte 0, got 1 more"),
    ],
)
def test_bytes_that_are_no_value(raw, read, sentence):
    """Every length, count and index is held against what is there, before anything is built from it."""
    assert error_of(read, Decoder(raw)) == f"message: $: {sentence}"


def test_many_blocks_hold_no_more_items_than_bytes():
    """Items without bytes, as of a hostile writer's schema, cannot make a few bytes into millions of values."""
    source = Decoder(b"\x06" * 6)
    assert [source.read_block(), source.read_block()] == [3, 3]
    assert error_of(source.read_block) == "message: $: expected at most one item to a byte, got 9 items by byte 3"


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


@pytest.mark.slow
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
    cursor = Decoder(raw)
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
