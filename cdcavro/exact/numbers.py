"""Numbers that are exact: JSON numbers as values that render to the same text, and texts as unscaled integers.

A number is a `float` only if its text has no exponent and equals the float's `repr`, and an `int`
only if it is canonical and fits in 64 bits; every other number is an `ExactNumber`.
"""

from __future__ import annotations

import re
import sys
from typing import Any, Final

from msgspec import Struct

from cdcavro.errors import StructureError

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
_POWERS: Final = tuple([10**count for count in range(80)])
_LEAST: Final = tuple([-power for power in _POWERS])


class ExactNumber(Struct, frozen=True, gc=False):
    """A JSON number kept as its text."""

    # The garbage collector leaves these values alone: a message may have a hundred thousand of them.
    # A number by JSON's grammar.
    text: str

    def __repr__(self) -> str:
        return f"ExactNumber({self.text!r})"


def is_number(text: str) -> bool:
    """Return whether a text is exactly one JSON number (RFC 8259, section 6)."""
    return _NUMBER.fullmatch(text) is not None


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
    return ExactNumber(text)


def fraction(text: str) -> float | ExactNumber:
    """Return the text of a JSON number with a fraction or an exponent as a value."""
    if len(text) <= _DOUBLE_CHARACTERS and "e" not in text and "E" not in text:
        value = float(text)
        if _is_shortest(text, value) if len(text) <= _SURE_CHARACTERS else repr(value) == text:
            return value
    return ExactNumber(text)


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
    """Return a scalar as the text that a string column would hold."""
    if type(value) is str:
        return value
    if type(value) is ExactNumber:
        return value.text
    if type(value) is bool:
        return "true" if value else "false"
    return repr(value)


def number_text(value: Any, is_text: bool = True) -> str | None:  # noqa: FBT001, FBT002  compiled code takes no keywords
    """Return the text of a number, or of a string that is a number unless `is_text` is false; None for anything else.

    >>> number_text(ExactNumber("1.20")), number_text("1e5"), number_text(True), number_text("0x1")
    ('1.20', '1e5', None, None)
    """
    if type(value) is ExactNumber:
        return value.text
    if type(value) is str:
        return value if is_text and is_number(value) else None
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
