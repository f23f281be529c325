"""JSON numbers of columns as Avro data: exactly, or `MISFIT`.

Each function here makes the reader of one type: a closure that takes a JSON value, never None, and
gives the datum of an Avro primitive. A number may come as the JSON text of a number in a string,
as Canal's messages have it, wherever no other text can come in the column. Equal numbers are one
value, however many zeros end them; but a negative zero has no place except in a float, and a
number that is neither the shortest nor the exact text of a float is not rounded to one.

Source: MySQL reference manual, "Numeric Data Types"; Avro 1.8.2, "Logical Types".
"""

from __future__ import annotations

import struct
from decimal import Decimal, InvalidOperation
from math import isfinite
from typing import TYPE_CHECKING, Any, Final

from cdcavro.avro.buffer import is_number
from cdcavro.exact.jsontext import ExactNumber
from cdcavro.table.columns.strings import MISFIT

if TYPE_CHECKING:
    from collections.abc import Callable

MAX_PRECISION: Final = 38
_EXPONENT: Final = 6
_SHORT: Final = 60
_POWERS: Final = tuple([10**count for count in range(80)])
_LEAST: Final = tuple([-power for power in _POWERS])
# The exact expansion of a double has at most 1,075 digits and as many places.
_MOST_DIGITS: Final = 2_000
_SINGLE: Final = struct.Struct("<f")
_SMALLEST_NORMAL: Final = 2.0**-126
_SIX_TO_NINE: Final = (".6g", ".7g", ".8g", ".9g")
_ONE_TO_NINE: Final = (".1g", ".2g", ".3g", ".4g", ".5g", *_SIX_TO_NINE)


def number_text(value: Any, is_text: bool = True) -> str | None:  # noqa: FBT001, FBT002  compiled code takes no keywords
    """Give the text of a number, or of a string that is one unless `is_text` is false.

    >>> from cdcavro.exact.jsontext import ExactNumber
    >>> number_text(ExactNumber("1.20")), number_text("1e5"), number_text(True), number_text("0x1")
    ('1.20', '1e5', None, None)
    """
    if type(value) is ExactNumber:
        return value.text
    if type(value) is str:
        return value if is_text and is_number(value) else None
    return repr(value) if type(value) in (int, float) else None


def unscaled(text: str, scale: int, precision: int) -> int | None:
    """Give a number's value times ten to the power of `scale` if that is whole and has at most `precision` digits.

    In time linear in the text. None for a negative zero.

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
    """Do what `unscaled` does, for any exponent and zeros at the end."""
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
    r"""Give the shortest two's complement of an integer, big-endian: a decimal of Avro.

    >>> minimal_bytes(128), minimal_bytes(-128)
    (b'\x00\x80', b'\x80')
    """
    return value.to_bytes((value if value >= 0 else ~value).bit_length() // 8 + 1, "big", signed=True)


def boolean() -> Callable[[Any], Any]:
    """Make the reader of booleans: true and false, and 1 and 0."""

    def read(value: Any) -> Any:
        if type(value) is bool:
            return value
        text = number_text(value)
        found = None if text is None else unscaled(text, 0, 1)
        return bool(found) if found in (0, 1) else MISFIT

    return read


def whole(least: int, most: int) -> Callable[[Any], Any]:
    """Make the reader of integers within bounds: 1.0 and 1E0 are 1, true is not."""
    precision = len(str(max(-least, most)))

    def read(value: Any) -> Any:
        if type(value) is not int:
            text = number_text(value)
            value = None if text is None else unscaled(text, 0, precision)
        return value if value is not None and least <= value <= most else MISFIT

    return read


def double() -> Callable[[Any], Any]:
    """Make the reader of doubles: a number that is the shortest or the exact text of one."""

    def read(value: Any) -> Any:
        if type(value) is float:
            return value
        text = number_text(value)
        found = _nearest(text)
        return found if found is not None and _is_text_of(text, repr(found), found) else MISFIT

    return read


def single() -> Callable[[Any], Any]:
    """Make the reader of floats: a number that is the shortest or the exact text of one.

    The shortest text is that of the float, or that of the double which it equals.
    """

    def read(value: Any) -> Any:
        text = None if type(value) is float else number_text(value)
        near = value if type(value) is float else _nearest(text)
        found = None if near is None else _rounded(near)
        if found is None:
            return MISFIT
        shortest = _shortest_single(found)
        if text is None:
            return found if found == near or float(shortest) == near else MISFIT
        is_own = _is_text_of(text, shortest, found) or (near == found and _is_text_of(text, repr(near), near))
        return found if is_own else MISFIT

    return read


def _nearest(text: str | None) -> float | None:
    found = None if text is None or len(text) > _MOST_DIGITS else float(text)
    return found if found is not None and isfinite(found) else None


def _rounded(value: float) -> float | None:
    try:
        found: float = _SINGLE.unpack(_SINGLE.pack(value))[0]
    except OverflowError:
        return None
    return found


def _shortest_single(value: float) -> str:
    """Give the shortest digits that no other float is nearer to, of a number that is a float already."""
    for style in _SIX_TO_NINE if abs(value) >= _SMALLEST_NORMAL else _ONE_TO_NINE:
        text = format(value, style)
        if _rounded(float(text)) == value:
            return text
    return repr(value)


def _is_text_of(text: str | None, shortest: str, value: float) -> bool:
    try:
        sent = Decimal(text or "")
    except InvalidOperation:  # an exponent of too many digits
        return False
    return sent == Decimal(shortest) or sent == Decimal(value)


def decimal(precision: int, scale: int, *, is_text: bool = True) -> Callable[[Any], Any]:
    """Make the reader of decimals: zeros at the end come and go, no other digit does."""
    power, bound = 10**scale, 10**precision

    def read(value: Any) -> Any:
        if type(value) is int:
            found: int | None = value * power
            return minimal_bytes(found) if found is not None and -bound < found < bound else MISFIT
        text = number_text(value, is_text)
        found = None if text is None else unscaled(text, scale, precision)
        return MISFIT if found is None else minimal_bytes(found)

    return read


def bounded_decimal(least: int, most: int, *, is_text: bool = True) -> Callable[[Any], Any]:
    """Make the reader of whole decimals of 20 digits, within bounds."""
    precision = len(str(most))

    def read(value: Any) -> Any:
        if type(value) is not int:
            text = number_text(value, is_text)
            value = None if text is None else unscaled(text, 0, precision)
        return minimal_bytes(value) if value is not None and least <= value <= most else MISFIT

    return read


def digits(*, is_text: bool = True) -> Callable[[Any], Any]:
    """Make the reader of numbers as strings: the digits as they were sent."""

    def read(value: Any) -> Any:
        text = number_text(value, is_text)
        return MISFIT if text is None else text

    return read
