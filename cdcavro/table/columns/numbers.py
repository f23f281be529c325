"""JSON numbers of columns as Avro data: exactly, or `MISFIT`.

Each function here returns the reader of one type: a closure that takes a JSON value, never None, and
returns the datum of an Avro primitive. A number may come as its JSON text in a string, as in Canal's
messages, in every column where no other text can occur. Trailing zeros make no difference; but only a
float can hold a negative zero, and a number that is neither the shortest nor the exact text of a
float is not rounded to one.

Source: MySQL reference manual, "Numeric Data Types"; Avro 1.8.2, "Logical Types".
"""

from __future__ import annotations

from decimal import Decimal, InvalidOperation
from math import isfinite
from typing import TYPE_CHECKING, Any, Final

from cdcavro.avro.binary import nearest_float
from cdcavro.exact.numbers import minimal_bytes, number_text, unscaled
from cdcavro.table.columns.reader_rules import ruled
from cdcavro.table.columns.strings import MISFIT

if TYPE_CHECKING:
    from collections.abc import Callable

MAX_PRECISION: Final = 38
# The exact expansion of a double has at most 1,075 digits and as many places.
_MOST_DIGITS: Final = 2_000
_SMALLEST_NORMAL: Final = 2.0**-126
_SIX_TO_NINE: Final = (".6g", ".7g", ".8g", ".9g")
_ONE_TO_NINE: Final = (".1g", ".2g", ".3g", ".4g", ".5g", *_SIX_TO_NINE)


def read_boolean() -> Callable[[Any], Any]:
    """Return a reader of booleans: true and false, 1 and 0."""

    def read(value: Any) -> Any:
        if type(value) is bool:
            return value
        text = number_text(value)
        whole = None if text is None else unscaled(text, 0, 1)
        return bool(whole) if whole in (0, 1) else MISFIT

    return ruled(read, "flag")


def read_whole(least: int, most: int) -> Callable[[Any], Any]:
    """Return a reader of integers within bounds: 1.0 and 1E0 are 1, true is not."""
    precision = len(str(max(-least, most)))

    def read(value: Any) -> Any:
        if type(value) is not int:
            text = number_text(value)
            value = None if text is None else unscaled(text, 0, precision)
        return value if value is not None and least <= value <= most else MISFIT

    return ruled(read, "whole", least, most)


def read_double() -> Callable[[Any], Any]:
    """Return a reader of doubles: numbers whose text is the shortest or the exact one of a double."""

    def read(value: Any) -> Any:
        if type(value) is float:
            return value
        text = number_text(value)
        nearest = _nearest(text)
        return nearest if nearest is not None and _is_text_of(text, repr(nearest), nearest) else MISFIT

    return ruled(read, "double")


def read_single() -> Callable[[Any], Any]:
    """Return a reader of floats: numbers whose text is the shortest or the exact one of a float.

    The shortest text is the float's own or that of the equal double.
    """

    def read(value: Any) -> Any:
        text = None if type(value) is float else number_text(value)
        near = value if type(value) is float else _nearest(text)
        single = None if near is None else _rounded(near)
        if single is None:
            return MISFIT
        shortest = _shortest_single(single)
        if text is None:
            return single if single == near or float(shortest) == near else MISFIT
        is_own = _is_text_of(text, shortest, single) or (near == single and _is_text_of(text, repr(near), near))
        return single if is_own else MISFIT

    return ruled(read, "single")


def _nearest(text: str | None) -> float | None:
    nearest = None if text is None or len(text) > _MOST_DIGITS else float(text)
    return nearest if nearest is not None and isfinite(nearest) else None


def _rounded(value: float) -> float | None:
    try:
        return nearest_float(value)
    except OverflowError:
        return None


def _shortest_single(value: float) -> str:
    """Return the shortest text of a float (of 32 bits) from which no other float is nearer."""
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


def read_decimal(precision: int, scale: int, *, is_text: bool = True) -> Callable[[Any], Any]:
    """Return a reader of decimals: zeros at the end may be added or removed, but no other digit."""
    power, bound = 10**scale, 10**precision

    def read(value: Any) -> Any:
        if type(value) is int:
            whole: int | None = value * power
            return minimal_bytes(whole) if whole is not None and -bound < whole < bound else MISFIT
        text = number_text(value, is_text)
        whole = None if text is None else unscaled(text, scale, precision)
        return MISFIT if whole is None else minimal_bytes(whole)

    return ruled(read, "decimal", 1 - bound, bound - 1, scale, is_text)


def read_bounded_decimal(least: int, most: int, *, is_text: bool = True) -> Callable[[Any], Any]:
    """Return a reader of whole decimals of up to 20 digits, within bounds."""
    precision = len(str(most))

    def read(value: Any) -> Any:
        if type(value) is not int:
            text = number_text(value, is_text)
            value = None if text is None else unscaled(text, 0, precision)
        return minimal_bytes(value) if value is not None and least <= value <= most else MISFIT

    return ruled(read, "decimal", least, most, 0, is_text)


def read_digits(*, is_text: bool = True) -> Callable[[Any], Any]:
    """Return a reader of numbers as strings: the digits as they were sent."""

    def read(value: Any) -> Any:
        text = number_text(value, is_text)
        return MISFIT if text is None else text

    return ruled(read, "digits", is_text)
