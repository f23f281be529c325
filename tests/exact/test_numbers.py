"""Numbers: the value that gives a number's text back, and digits moved to a scale."""

from __future__ import annotations

import copy
import gc
import json
import operator
import pickle
from decimal import Decimal
from numbers import Number

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cdcavro.engine import machine
from cdcavro.errors import StructureError
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
    assert (type(parsed), parsed, str(parsed)) == (type(value), value, str(value))
    assert jsontext.render(parsed) == sent.encode()


VALUES = [
    0,
    1,
    -7,
    2**64,
    1.5,
    0.1,
    -0.0,
    1e300,
    *map(Decimal, ("1.2", "1.20", "0.10", "1E+5", "-0", "1E-400", "1E400")),
]
TEXTS = [
    "1.20",
    "1.2",
    "1.50",
    "0.10",
    "1e5",
    "1E5",
    "100000.0",
    "-0",
    "1E400",
    "1E-400",
    "18446744073709551616",
    "1e300",
]


@pytest.mark.parametrize("operate", [operator.eq, operator.ne, operator.lt, operator.le, operator.gt, operator.ge])
def test_an_exact_number_compares_as_its_decimal(operate):
    """It is compared with int, float, Decimal and exact numbers exactly, whichever stands first."""
    for text in TEXTS:
        for value in [*VALUES, *map(ExactNumber, TEXTS)]:
            plain = value.decimal if type(value) is ExactNumber else value
            assert operate(ExactNumber(text), value) is operate(Decimal(text), plain), (text, value)
            assert operate(value, ExactNumber(text)) is operate(plain, Decimal(text)), (value, text)


def test_equal_numbers_have_one_hash():
    """An exact number finds the int, float or Decimal of its value in a dict, and has the hash of equal ones."""
    assert {1.5: "a", 100000: "b", Decimal("1.2"): "c"}[ExactNumber("1.50")] == "a"
    assert len({ExactNumber("1e5"), ExactNumber("1E5"), 100000}) == 1
    assert all(hash(ExactNumber(text)) == hash(Decimal(text)) for text in TEXTS)
    assert ExactNumber("1.0") != "1.0"
    assert ExactNumber("1.0") != None  # noqa: E711  the comparison itself


_BINARY = (
    operator.add,
    operator.sub,
    operator.mul,
    operator.truediv,
    operator.floordiv,
    operator.mod,
    operator.pow,
    divmod,
)


@pytest.mark.parametrize("operate", _BINARY)
def test_an_exact_number_calculates_as_its_decimal(operate):
    """Results are Decimals, with an int, a Decimal or another exact number on either side."""
    one = ExactNumber("7.50")
    for other in (2, Decimal("2.5"), ExactNumber("2.50")):
        plain = other.decimal if type(other) is ExactNumber else other
        assert repr(operate(one, other)) == repr(operate(Decimal("7.50"), plain))
        assert repr(operate(other, one)) == repr(operate(plain, Decimal("7.50")))
    with pytest.raises(TypeError):
        operate(one, 1.5)


def test_an_exact_number_becomes_what_other_numbers_become():
    """It is a number to sum, round, float, int, format, sort and JSON, and its text is that which was sent."""
    one = ExactNumber("-1.250")
    assert (float(one), int(one), -one, abs(one), +one) == (-1.25, -1, Decimal("1.250"), Decimal("1.250"), one.decimal)
    assert (round(one), round(one, 1), f"{one}", f"{one:.1f}") == (-1, Decimal("-1.2"), "-1.250", "-1.2")
    assert (str(one), repr(one), one.text, Decimal(str(one))) == ("-1.250", "ExactNumber('-1.250')", "-1.250", one)
    assert str(sum([one, 1, ExactNumber("1.20")])) == "0.950"
    assert max([ExactNumber("10.0"), 9, 9.5]).text == "10.0"
    assert isinstance(one, Number)
    assert [bool(ExactNumber(text)) for text in ("0.00", "-0", "0e5", f"-0.0E{'9' * 20}")] == [False] * 4
    assert all(ExactNumber(text) for text in ("0.01", "-10", "5E-9", f"1E{'9' * 20}"))
    assert json.dumps({"a": one}, default=float) == '{"a": -1.25}'
    assert json.dumps({"a": one}, default=str) == '{"a": "-1.250"}'
    assert orjson.dumps({"a": one}, default=lambda value: orjson.Fragment(str(value))) == b'{"a":-1.250}'
    assert type(pickle.loads(pickle.dumps(one))) is ExactNumber
    assert not gc.is_tracked(one)


@pytest.mark.parametrize("text", ["1E9999999999999999999999", "1E-9999999999999999999999"])
def test_a_number_beyond_decimals_is_still_a_value(text):
    """It equals itself and nothing else, can be hashed, and is refused where its value is asked for."""
    one = ExactNumber(text)
    assert one == ExactNumber(text) != ExactNumber("1.20")
    assert ExactNumber("1.20") != one != 1
    assert len({one, ExactNumber(text), 1}) == 2
    for ask in (lambda: one + 1, lambda: divmod(one, 7), lambda: one.decimal, lambda: int(one)):
        with pytest.raises(OverflowError, match="a Decimal cannot hold the number '1E"):
            ask()
    with pytest.raises(StructureError, match="expected a number that a Decimal can hold, got '1E"):
        numbers.decimals({"a": [one]})


def test_numbers_are_ordered_by_value_whatever_their_exponents_are():
    """Also where no Decimal can hold one of them, and the exponent has more digits than Python makes an int of."""
    huge, few = "9" * 20, f"1{'0' * 19}"
    ascending = [
        f"-1E{'9' * 5000}",
        f"-1.2E{huge}",
        f"-1.1E{huge}",
        -(10**5000),
        "-1E400",
        f"-1E-{few}",
        f"-1E-{huge}",
        f"0E{huge}",
        f"1E-{'9' * 5000}",
        f"123E-{huge}",
        f"0.2E-{few}",
        f"1E-{few}",
        Decimal("1E-1999999999999999997"),
        1.5,
        Decimal("9E999999999999999999"),
        f"1E{few}",
        f"0.001E{huge}",
        f"1.2E{huge}",
        f"12.1E{huge}",
        f"1{'0' * 30}E{huge}",
        f"1E{'9' * 5000}",
    ]
    values = [ExactNumber(one) if type(one) is str else one for one in ascending]
    for i, left in enumerate(values):
        for j, right in enumerate(values):
            if ExactNumber in (type(left), type(right)):
                assert ((left < right), (left >= right)) == (i < j, i >= j), (i, j)
                assert ((left > right), (left <= right)) == (i > j, i <= j), (i, j)
    assert ExactNumber(f"10E{huge}") <= ExactNumber(f"1.0E{few}0") <= ExactNumber(f"10E{huge}")
    assert Decimal("-Infinity") < ExactNumber(f"-1E{huge}") < float("inf")
    assert ExactNumber(f"1E{'9' * 1_500_000}") > ExactNumber(f"1E{'8' * 1_500_000}")
    with pytest.raises(TypeError):
        ExactNumber(f"1E{huge}") < "1"  # noqa: B015  the comparison itself


@pytest.mark.parametrize("text", ["abc", "1,2", "", "NaN", "01", "1_0", "+1", " 1", "1\n", ".5", "1.", "Infinity"])
def test_a_text_that_is_no_number_makes_none(text):
    """`from_changes` writes it as it is, and it would be other JSON, or none."""
    with pytest.raises(ValueError, match="expected a JSON number, got"):
        ExactNumber(text)
    with pytest.raises(TypeError):
        ExactNumber(1.5)
    one = ExactNumber("1.20")
    assert (copy.copy(one), copy.deepcopy(one), type(copy.copy(one))) == (one, one, ExactNumber)


def test_what_is_read_is_an_exact_number_that_is_not_checked_again(monkeypatch):
    """It is one like any other, and those made before stay what they are."""
    first = numbers.number("1.20")
    monkeypatch.setattr(numbers, "is_number", lambda _: pytest.fail("a check"))
    second = numbers.number("-1E400")
    assert (repr(first), repr(second), type(second)) == ("ExactNumber('1.20')", "ExactNumber('-1E400')", ExactNumber)
    assert not gc.is_tracked(second)
    assert jsontext.parse("[18446744073709551616,1.50]")[1].text == "1.50"


@pytest.mark.parametrize("convert", [int, round])
def test_an_int_is_not_far_longer_than_the_text_of_its_number(convert):
    """A few characters can stand for a billion digits."""
    assert convert(ExactNumber("-12E400")) == -12 * 10**400
    assert convert(ExactNumber("1" * 20_000)) == int(Decimal("1" * 20_000))
    assert (convert(ExactNumber("0E999999999")), convert(ExactNumber("1E-999999999"))) == (0, 0)
    with pytest.raises(OverflowError, match=r"at most 10,000 digits more than its text has, .*; got '-1E999999999'"):
        convert(ExactNumber("-1E999999999"))


@given(st.from_regex(r"-?(0|[1-9][0-9]{0,25})(\.[0-9]{1,25})?", fullmatch=True))
def test_a_decimal_has_the_digits_and_becomes_the_number_again(text):
    """`decimals` and `without_decimals` are inverse for every number without an exponent."""
    value = [numbers.number(text)]
    (decimal,) = numbers.decimals(value)
    assert (type(decimal), f"{decimal:f}", numbers.number_text(decimal)) == (Decimal, text, text)
    assert jsontext.same(numbers.without_decimals([decimal]), value)
    assert jsontext.render(decimal) == numbers.plain_text(decimal).encode() == text.encode()


def test_exponents_of_decimals_are_bounded():
    """A short Decimal does not become a long text."""
    assert numbers.decimal_text(Decimal("1E-4096")) == "0." + "0" * 4_095 + "1"
    assert numbers.decimal_text(Decimal("1E-4097")) == "1E-4097"
    assert numbers.decimal_text(Decimal("12E+1")) == "1.2E+2"


@pytest.mark.parametrize("text", ["NaN", "Infinity", "-Infinity", "sNaN"])
def test_a_decimal_that_is_no_number_is_refused(text):
    """JSON has neither NaN nor infinities."""
    assert numbers.number_text(Decimal(text)) is None
    for write in (numbers.without_decimals, numbers.plain_text, jsontext.render):
        with pytest.raises((StructureError, TypeError), match=r"a JSON number|not JSON serializable"):
            write(Decimal(text))


@pytest.mark.parametrize("same", [jsontext.same, machine.same])
def test_exact_numbers_are_the_same_by_their_digits(same):
    """Equal numbers of other digits are other JSON values."""
    assert same(ExactNumber("1.0"), ExactNumber("1.0"))
    assert not same([ExactNumber("1.0")], [ExactNumber("1.00")])
    assert not same({"a": ExactNumber("1.50")}, {"a": 1.5})
    assert not same(Decimal(1), 1)


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
