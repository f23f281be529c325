"""Numbers: the value that gives a number's text back, and digits moved to a scale."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cdcavro.exact import jsontext, numbers
from cdcavro.exact.numbers import ExactNumber

_MILLION = "1" * 1_000_000


@pytest.mark.parametrize(
    ("sent", "value"),
    [
        ("0", 0),
        ("-1", -1),
        (str(2**63 - 1), 2**63 - 1),
        (str(-(2**63)), -(2**63)),
        (str(2**63), ExactNumber(str(2**63))),
        (str(-(2**63) - 1), ExactNumber(str(-(2**63) - 1))),
        ("-0", ExactNumber("-0")),
        ("-0.0", -0.0),
        ("1.5", 1.5),
        ("1.50", ExactNumber("1.50")),
        ("0.1", 0.1),
        ("0.00001", ExactNumber("0.00001")),
        ("1e5", ExactNumber("1e5")),
        ("1E400", ExactNumber("1E400")),
        ("5e-324", ExactNumber("5e-324")),
        ("9007199254740993.0", ExactNumber("9007199254740993.0")),
        (_MILLION, ExactNumber(_MILLION)),
        (f"0.{_MILLION}", ExactNumber(f"0.{_MILLION}")),
    ],
    ids=lambda given: str(given)[:24],
)
def test_number_becomes_the_value_that_gives_its_text_back(sent, value):
    """A number is a long or a double only if that renders to the same digits."""
    parsed = jsontext.parse(sent)
    assert (type(parsed), parsed) == (type(value), value)
    assert jsontext.render(parsed) == sent.encode()


def test_exact_number_is_a_value():
    """Two exact numbers are equal if their texts are; a string of the same text is something else."""
    assert ExactNumber("1.0") == ExactNumber("1.0")
    assert ExactNumber("1.0") != ExactNumber("1.00")
    assert ExactNumber("1.0") != "1.0"
    assert len({ExactNumber("1.0"), ExactNumber("1.0")}) == 1
    assert repr(ExactNumber("1.20")) == "ExactNumber('1.20')"


@pytest.mark.parametrize("sent", ["1.", ".5", "01", "+1", "1e", "0x1", "1_0", "--1", "", "Infinity", "١", "1 ", "1\n"])
def test_what_is_no_number(sent):
    """`is_number` holds a whole text against JSON's grammar."""
    assert not numbers.is_number(sent)


@given(
    st.from_regex(r"-?(0|[1-9][0-9]{0,40})(\.[0-9]{1,40})?([eE][+-]?[0-9]{1,3})?", fullmatch=True),
    st.integers(0, 40) | st.integers(0, 1000),
    st.integers(0, 90),
)
def test_digits_of_short_numbers_are_moved_as_those_of_all(text, scale, precision):
    """The way without exponents gives what the way for every number gives."""
    assert numbers.unscaled(text, scale, precision) == numbers._unscaled(text, scale, precision)
