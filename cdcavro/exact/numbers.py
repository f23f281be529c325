"""Numbers that are exact: JSON numbers as values that render to the same text, and texts as unscaled integers.

A number is a `float` only if its text has no exponent and equals the float's `repr`, and an `int`
only if it is canonical and fits in 64 bits; every other number is an `ExactNumber`.
"""

from __future__ import annotations

import re
import sys
from decimal import MAX_EMAX, Context, Decimal, InvalidOperation
from numbers import Number
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct
from msgspec.structs import force_setattr

from cdcavro.errors import StructureError, shown

if TYPE_CHECKING:
    from collections.abc import Callable

MIN_LONG: Final = -(2**63)
MAX_LONG: Final = 2**63 - 1
_NUMBER: Final = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?", re.ASCII)
_LONG_DIGITS: Final = 20
# No `repr` of a float without an exponent is longer.
_DOUBLE_CHARACTERS: Final = 25
# 15 digits and a point.
_SURE_CHARACTERS: Final = 16
_FIRST_WITHOUT_EXPONENT: Final = 0.0001
_MAX_DOUBLE: Final = sys.float_info.max
# The most digits in the exponent of an integer, since no message has more than 64 Mi digits.
_EXPONENT: Final = 8
_SHORT: Final = 60
# How many digits an int may have that are not in the number's text: its exponent can stand for a billion.
_MOST_ZEROS: Final = 10_000
_ZERO: Final = Decimal(0)
# Numbers other than 0, whatever their exponent is.
_IS_SOME: Final = re.compile(r"-?[0.]*[1-9]")
# The most places behind the point that a Decimal is written with; more are written with an exponent.
_PLACES: Final = 4_096
_POWERS: Final = tuple([10**count for count in range(80)])
_LEAST: Final = tuple([-power for power in _POWERS])


def _operation(operate: Callable[[Decimal, Any], Any]) -> Callable[[ExactNumber, Any], Any]:
    """Return an operation on an exact number, which is that on its Decimal value; the result is a Decimal or a bool."""

    def apply(self: ExactNumber, other: Any) -> Any:
        return operate(self.decimal, other.decimal if type(other) is ExactNumber else other)

    return apply


def _comparison(operate: Callable[[Decimal, Any], Any]) -> Callable[[ExactNumber, Any], Any]:
    """Return a comparison of an exact number, which is that of its value even where a Decimal cannot hold it."""

    def apply(self: ExactNumber, other: Any) -> Any:
        try:
            return operate(self.decimal, other.decimal if type(other) is ExactNumber else other)
        except OverflowError:
            if type(other) is ExactNumber:
                return operate(Decimal(_order(self.text, other.text)), _ZERO)
            if not isinstance(other, (int, float, Decimal)):
                return NotImplemented
            value = Decimal(other)
            if not value.is_finite():
                return operate(_ZERO, other)
            return operate(Decimal(_order(self.text, str(value))), _ZERO)

    return apply


def _order(left: str, right: str) -> int:
    """Return -1, 0 or 1 as the number of a text is less than that of another one, the same or greater."""
    (sign, *size), (other_sign, *other_size) = _magnitude(left), _magnitude(right)
    if sign != other_sign:
        return 1 if sign > other_sign else -1
    return sign * ((size > other_size) - (size < other_size))


def _magnitude(text: str) -> tuple[int, Decimal, str]:
    """Return a number's sign, the power of ten above its first digit, and its digits, whatever its exponent is."""
    mantissa, _, exponent = text.replace("E", "e").partition("e")
    whole, _, part = mantissa.lstrip("-").partition(".")
    digits = (whole + part).lstrip("0")
    if not digits:
        return 0, _ZERO, ""
    above = len(digits) - len(part)
    # An int of so many digits takes Python long, or is refused.
    power = Context(prec=len(exponent) + _DOUBLE_CHARACTERS, Emax=MAX_EMAX).add(Decimal(exponent or 0), above)
    return -1 if text.startswith("-") else 1, power, digits.rstrip("0")


class ExactNumber(Struct, frozen=True, gc=False):
    """A JSON number kept as its text, which acts as the `Decimal` of that text.

    It compares exactly with exact numbers, int, float and Decimal, hashes as they do, and calculates as a Decimal does:
    not with a float. `str()` returns the text, digit for digit; `float()` and `int()` return what they return for the
    Decimal. A number whose exponent is beyond a Decimal's is compared, too, but equals only numbers of the same text, and
    calculating with it raises `OverflowError`, as `int()` does for a number that is far longer than its text.
    Raises `ValueError` for a text that is no number by JSON's grammar, such as `1,2`, `01`, `NaN` or an empty one.

    It is not a subclass of Decimal: one takes seven times as long to create, and cannot hold every JSON number.

    >>> ExactNumber("1.20") == ExactNumber("1.2"), ExactNumber("1.20") + 1, str(ExactNumber("1E400"))
    (True, Decimal('2.20'), '1E400')
    """

    # The garbage collector leaves these values alone: a message may have a hundred thousand of them.
    # A number by JSON's grammar.
    text: str

    def __post_init__(self) -> None:
        """Check the text. What reads messages has done so, and calls `exact_number`."""
        if not is_number(self.text):
            raise ValueError(f"expected a JSON number, got {shown(self.text)}")

    def __repr__(self) -> str:
        return f"ExactNumber({self.text!r})"

    def __str__(self) -> str:
        return self.text

    @property
    def decimal(self) -> Decimal:
        """The value as a `Decimal`, exactly. Raises `OverflowError` if its exponent is beyond what a Decimal can hold."""
        try:
            return Decimal(self.text)
        except InvalidOperation:
            raise OverflowError(f"a Decimal cannot hold the number {shown(self.text)}") from None

    def __eq__(self, other: object) -> bool:
        if type(other) is ExactNumber and self.text == other.text:
            return True
        try:
            return bool(self.decimal == (other.decimal if type(other) is ExactNumber else other))
        except OverflowError:
            return False

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __hash__(self) -> int:
        try:
            return hash(self.decimal)
        except OverflowError:
            return hash(self.text)

    __lt__, __le__ = _comparison(Decimal.__lt__), _comparison(Decimal.__le__)
    __gt__, __ge__ = _comparison(Decimal.__gt__), _comparison(Decimal.__ge__)
    __add__, __radd__ = _operation(Decimal.__add__), _operation(Decimal.__radd__)
    __sub__, __rsub__ = _operation(Decimal.__sub__), _operation(Decimal.__rsub__)
    __mul__, __rmul__ = _operation(Decimal.__mul__), _operation(Decimal.__rmul__)
    __truediv__, __rtruediv__ = _operation(Decimal.__truediv__), _operation(Decimal.__rtruediv__)
    __floordiv__, __rfloordiv__ = _operation(Decimal.__floordiv__), _operation(Decimal.__rfloordiv__)
    __mod__, __rmod__ = _operation(Decimal.__mod__), _operation(Decimal.__rmod__)
    __divmod__, __rdivmod__ = _operation(Decimal.__divmod__), _operation(Decimal.__rdivmod__)
    __pow__, __rpow__ = _operation(Decimal.__pow__), _operation(Decimal.__rpow__)

    def __neg__(self) -> Decimal:
        return -self.decimal

    def __pos__(self) -> Decimal:
        return +self.decimal

    def __abs__(self) -> Decimal:
        return abs(self.decimal)

    def __bool__(self) -> bool:
        return _IS_SOME.match(self.text) is not None

    def __float__(self) -> float:
        return float(self.text)

    def __int__(self) -> int:
        return int(self._bounded)

    def __round__(self, places: int | None = None) -> int | Decimal:
        return round(self._bounded) if places is None else round(self.decimal, places)

    @property
    def _bounded(self) -> Decimal:
        """The value as a `Decimal`. Raises `OverflowError` if as an integer it is far longer than its text."""
        value = self.decimal
        if not value:
            return _ZERO
        if value.adjusted() > len(self.text) + _MOST_ZEROS:
            expected = f"a number of at most {_MOST_ZEROS:,} digits more than its text has, for an int"
            raise OverflowError(f"{expected}; got {shown(self.text)}")
        return value

    def __format__(self, form: str) -> str:
        return format(self.decimal, form) if form else self.text


Number.register(ExactNumber)


def is_number(text: str) -> bool:
    """Return whether a text is exactly one JSON number (RFC 8259, section 6)."""
    return _NUMBER.fullmatch(text) is not None


# A copy is not checked; msgspec's stubs do not declare how one is made.
_copied: Final[Callable[[], ExactNumber]] = ExactNumber("0").__copy__  # type: ignore[attr-defined]


def exact_number(text: str) -> ExactNumber:
    """Return an exact number of a text that is known to be one: a check takes four times as long as all else.

    >>> exact_number("1.20")
    ExactNumber('1.20')
    """
    value = _copied()
    force_setattr(value, "text", text)
    return value


def decimals(value: Any) -> Any:
    """Return a JSON value with a `Decimal` of the same digits in place of each number; 1.5 becomes Decimal('1.5').

    Raises `StructureError` for a number whose exponent no Decimal can hold.

    >>> decimals({"id": 7, "price": 1.5, "more": [ExactNumber("1.20"), None, True, "1"]})
    {'id': Decimal('7'), 'price': Decimal('1.5'), 'more': [Decimal('1.20'), None, True, '1']}
    """
    if type(value) is dict:
        return {name: decimals(member) for name, member in value.items()}
    if type(value) is list:
        return [decimals(item) for item in value]
    if type(value) in (int, float):
        return Decimal(repr(value))
    try:
        return value.decimal if type(value) is ExactNumber else value
    except OverflowError:
        raise StructureError("a number that a Decimal can hold", shown(value.text)) from None


def without_decimals(value: Any) -> Any:
    """Return a JSON value in which each `Decimal` is the number that renders as its digits; the inverse of `decimals`.

    Raises `StructureError` for a Decimal or a float that is not finite.

    >>> without_decimals([Decimal("1.5"), Decimal("1.20"), Decimal(7)])
    [1.5, ExactNumber('1.20'), 7]
    """
    if isinstance(value, dict):
        return {name: without_decimals(member) for name, member in value.items()}
    if isinstance(value, list | tuple):
        return [without_decimals(item) for item in value]
    if isinstance(value, float):
        check_finite(value)
        return float(value)
    return number(decimal_text(value)) if isinstance(value, Decimal) else value


def decimal_text(value: Decimal) -> str:
    """Return a Decimal as the text of a JSON number, digit for digit. Raises `StructureError` for NaN and infinities.

    That is the text without an exponent if the number has at most 4,096 places and no zeros are to be added.

    >>> decimal_text(Decimal("0.0000000001")), decimal_text(Decimal("1E+5"))
    ('0.0000000001', '1E+5')
    """
    if not value.is_finite():
        raise StructureError("a JSON number", str(value))
    exponent = value.as_tuple().exponent
    return f"{value:f}" if isinstance(exponent, int) and -_PLACES <= exponent <= 0 else str(value)


def number(text: str) -> int | float | ExactNumber:
    """Return a JSON number's text as the value that renders to the same text.

    >>> number("1.5"), number("1.20"), number("-0")
    (1.5, ExactNumber('1.20'), ExactNumber('-0'))
    """
    return fraction(text) if "." in text or "e" in text or "E" in text else integer(text)


def integer(text: str) -> int | ExactNumber:
    """Return the text of a JSON number without fraction and exponent as a value."""
    if len(text) <= _LONG_DIGITS and text != "-0":
        value = int(text)
        if MIN_LONG <= value <= MAX_LONG:
            return value
    return exact_number(text)


def fraction(text: str) -> float | ExactNumber:
    """Return the text of a JSON number with a fraction or an exponent as a value."""
    if len(text) <= _DOUBLE_CHARACTERS and "e" not in text and "E" not in text:
        value = float(text)
        if _is_shortest(text, value) if len(text) <= _SURE_CHARACTERS else repr(value) == text:
            return value
    return exact_number(text)


def _is_shortest(text: str, value: float) -> bool:
    # Up to 15 digits survive the trip through a double, so only the spelling of `repr` matters here.
    if text[-1] == "0":
        return text[-2] == "."
    return not -_FIRST_WITHOUT_EXPONENT < value < _FIRST_WITHOUT_EXPONENT


def check_finite(value: float, pointer: str = "") -> None:
    """Raise `StructureError` for a number that JSON cannot express: NaN or an infinity."""
    if not -_MAX_DOUBLE <= value <= _MAX_DOUBLE:
        raise StructureError("a JSON number", repr(value), pointer=pointer)


def plain_text(value: Any) -> str:
    """Return a scalar as the text that a string column would hold. Raises `TypeError` for what is none of JSON's."""
    if type(value) is str:
        return value
    if type(value) is ExactNumber:
        return value.text
    if type(value) is bool:
        return "true" if value else "false"
    if type(value) is int or type(value) is float:
        return repr(value)
    if type(value) is Decimal:
        return decimal_text(value)
    raise TypeError(f"{type(value).__name__} is no JSON value")


def number_text(value: Any, is_text: bool = True) -> str | None:  # noqa: FBT001, FBT002  compiled code takes no keywords
    """Return the text of a number, or of a string that is a number unless `is_text` is false; None for anything else.

    >>> number_text(ExactNumber("1.20")), number_text("1e5"), number_text(True), number_text("0x1")
    ('1.20', '1e5', None, None)
    """
    if type(value) is ExactNumber:
        return value.text
    if type(value) is str:
        return value if is_text and is_number(value) else None
    if type(value) is Decimal:
        return decimal_text(value) if value.is_finite() else None
    return repr(value) if type(value) in (int, float) else None


def unscaled(text: str, scale: int, precision: int) -> int | None:
    """Return a number times ten to the power of `scale` if that is an integer of at most `precision` digits, else None.

    Takes time linear in the length of the text. Return None for a negative zero.

    >>> unscaled("1.200", 2, 10), unscaled("1E5", 0, 6), unscaled("1.234", 2, 10), unscaled("-0", 0, 1)
    (120, 100000, None, None)
    """
    point = text.find(".")
    places = 0 if point < 0 else len(text) - point - 1
    if len(text) > _SHORT or places > scale or scale >= len(_POWERS) or precision >= len(_POWERS):
        return _unscaled(text, scale, precision)
    try:
        size = int(text) if point < 0 else int(text.replace(".", ""))
    except ValueError:  # an exponent
        return _unscaled(text, scale, precision)
    if places < scale:
        size *= _POWERS[scale - places]
    return size if _LEAST[precision] < size < _POWERS[precision] and (size or text[0] != "-") else None


def _unscaled(text: str, scale: int, precision: int) -> int | None:
    """Return the same as `unscaled`, for any exponent and any number of trailing zeros."""
    mantissa, _, exponent = text.replace("E", "e").partition("e")
    whole, _, part = mantissa.lstrip("-").partition(".")
    digits = (whole + part).lstrip("0")
    if not digits:
        return None if text.startswith("-") else 0
    power = exponent.lstrip("+-0") or "0"
    if len(power) > _EXPONENT:
        return None
    zeros = (-int(power) if exponent.startswith("-") else int(power)) + scale - len(part)
    if zeros < 0:
        digits, rest = digits[:zeros], digits[zeros:]
        if rest.strip("0"):
            return None
        zeros = 0
    if not digits or len(digits) + zeros > precision:
        return None
    size: int = int(digits) * 10**zeros
    return -size if text.startswith("-") else size


def minimal_bytes(value: int) -> bytes:
    r"""Return the shortest big-endian two's complement of an integer, as Avro stores a decimal.

    >>> minimal_bytes(128), minimal_bytes(-128)
    (b'\x00\x80', b'\x80')
    """
    return value.to_bytes((value if value >= 0 else ~value).bit_length() // 8 + 1, "big", signed=True)
