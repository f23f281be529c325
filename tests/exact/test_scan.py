"""Scans of JSON text: they are never wrong about what the fast parser would miss."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

import cdcavro
from cdcavro.exact import jsontext, scan
from support.strategies import numbers, strings, texts


def _is_number(value: str) -> bool:
    """Return whether the standard library takes a text for a number, and nothing but a number."""
    try:
        parsed = json.loads(value)
    except ValueError:
        return False
    return type(parsed) in (int, float) and value[-1:].isdigit() and value[:1] in set("-0123456789")


@given(numbers | strings | st.text("-+.eE0123456789", max_size=8) | st.sampled_from(["1\ud800", "٣", "1\n", "-", ""]))
def test_a_number_is_what_json_says(value):
    """The grammar of RFC 8259."""
    assert scan.is_number(value) is _is_number(value)


@given(st.text("019a", max_size=60) | st.integers(17, 20).map(lambda count: "x" * 7 + "5" * count + "y" * 9))
def test_long_numbers_are_found(value):
    """Nineteen digits on end, wherever they stand."""
    raw = value.encode()
    assert scan.has_long_number(raw) is any(raw[i : i + 19].isdigit() and len(raw) >= i + 19 for i in range(len(raw)))


@pytest.mark.slow
@given(st.sampled_from(cdcavro.FORMATS).flatmap(texts))
def test_members_are_never_counted_wrongly(sent):
    """Where it is hard to tell, the answer is no."""
    raw = sent.encode()
    members = _members(jsontext.parse(raw))
    for count in range(max(0, members - 2), members + 3):
        assert scan.has_members(raw, count) <= (count == members)


def _members(value) -> int:
    if type(value) is dict:
        return len(value) + sum(map(_members, value.values()))
    return sum(map(_members, value)) if type(value) is list else 0


@pytest.mark.parametrize("raw", [b"", b"-", b'"', b'"\\', b"-0", b'{"a":-0', b'":', b'{"a":1}'])
def test_other_texts_have_other_numbers_of_members(raw):
    """None of these has 99."""
    assert scan.has_members(raw, 99) is False


@pytest.mark.parametrize(("raw", "members"), [(b'{"a":1,"b":{"c":2}}', 3), (b"[]", 0), (b'{"a\\":":1}', 1)])
def test_members_of_plain_texts_are_counted(raw, members):
    """What the fast parser takes."""
    assert scan.has_members(raw, members) is True
