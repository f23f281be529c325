"""Readers of numbers, texts and bytes: JSON values of columns as Avro data, exactly, or `MISFIT`.

Each `read_…` returns the reader of one rule: a closure that takes a JSON value, never None, and returns
the datum of an Avro primitive. Values are never cut, rounded, guessed or put in another form.

A number may come as its JSON text in a string, as in Canal's messages, in every column where no other
text can occur. Trailing zeros make no difference; but only a float can hold a negative zero. A number is
not rounded to a float: its text is one that the float is printed with, which is the shortest, the exact one, or
that of its first figures, up to so many as are always enough, as of C's `%.17g` and of Java's `toString`.

Source: MySQL reference manual, "Data Types"; OMS data formats, the table of data types; Avro 1.8.2,
"Logical Types".
"""

from __future__ import annotations

import re
from decimal import Decimal, InvalidOperation
from math import inf, isfinite, nan
from typing import TYPE_CHECKING, Any, Final

from cdcavro.avro.binary import nearest_float
from cdcavro.exact.jsontext import base64_bytes, render
from cdcavro.exact.numbers import ExactNumber, minimal_bytes, number_text, plain_text, unscaled

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    Reader = Callable[[Any], Any]


class _Misfit:
    """The class of `MISFIT`, which stands for a value that a type cannot carry."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "MISFIT"


MISFIT: Final = _Misfit()
# The exact expansion of a double has at most 1,075 digits and as many places.
_MOST_DIGITS: Final = 2_000
_SMALLEST_NORMAL: Final = 2.0**-126
_SIX_TO_NINE: Final = (".6g", ".7g", ".8g", ".9g")
_ONE_TO_NINE: Final = (".1g", ".2g", ".3g", ".4g", ".5g", *_SIX_TO_NINE)
# How many figures are enough for every float of 32 bits, and for every double.
_SINGLE_FIGURES: Final = 9
_DOUBLE_FIGURES: Final = 17
_INTEGER: Final = re.compile(r"0|[1-9][0-9]{0,19}", re.ASCII)
# As PostgreSQL, Java and Kafka Connect spell what JSON has no numbers for.
_NOT_FINITE: Final = {"NaN": nan, "Infinity": inf, "-Infinity": -inf}
_LONG: Final = 64
_WKB_HEADER: Final = 5


def read_boolean() -> Reader:
    """Return a reader of booleans: true and false, 1 and 0."""

    def read(value: Any) -> Any:
        if type(value) is bool:
            return value
        text = number_text(value)
        whole = None if text is None else unscaled(text, 0, 1)
        return bool(whole) if whole in (0, 1) else MISFIT

    return read


def read_whole(least: int, most: int) -> Reader:
    """Return a reader of integers within bounds: 1.0 and 1E0 are 1, true is not."""
    precision = len(str(max(-least, most)))

    def read(value: Any) -> Any:
        if type(value) is not int:
            text = number_text(value)
            value = None if text is None else unscaled(text, 0, precision)
        return value if value is not None and least <= value <= most else MISFIT

    return read


def read_double() -> Reader:
    """Return a reader of doubles: numbers whose text is one that a double is printed with, NaN and the infinities."""

    def read(value: Any) -> Any:
        if type(value) is float:
            return value
        text = number_text(value)
        if text is None:
            return _NOT_FINITE.get(value, MISFIT) if type(value) is str else MISFIT
        nearest = _nearest(text)
        return nearest if nearest is not None and _is_text_of(text, repr(nearest), nearest, _DOUBLE_FIGURES) else MISFIT

    return read


def read_single() -> Reader:
    """Return a reader of floats: numbers whose text is one that a float is printed with, or the equal double.

    NaN and the infinities are floats, too.
    """

    def read(value: Any) -> Any:
        if type(value) is str and value in _NOT_FINITE:
            return _NOT_FINITE[value]
        text = None if type(value) is float else number_text(value)
        near = value if type(value) is float else _nearest(text)
        single = None if near is None else _rounded(near)
        if single is None:
            return MISFIT
        shortest = _shortest_single(single)
        if text is None:
            if single == near or float(shortest) == near:
                return single
            text = repr(near)
        is_own = _is_text_of(text, shortest, single, _SINGLE_FIGURES)
        return single if is_own or (near == single and _is_text_of(text, repr(near), near)) else MISFIT

    return read


def finite(read: Reader) -> Reader:
    """Return a reader of the same values, but for NaN and infinities."""

    def read_finite(value: Any) -> Any:
        datum = read(value)
        return MISFIT if type(datum) is float and not isfinite(datum) else datum

    return read_finite


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


def _is_text_of(text: str | None, shortest: str, value: float, most: int = 0) -> bool:
    """Return whether a text is the shortest or the exact one of a value, or has its first figures, at most `most`."""
    try:
        sent = Decimal(text or "")
    except InvalidOperation:  # an exponent of too many digits
        return False
    if sent == Decimal(shortest) or sent == Decimal(value):
        return True
    figures = len("".join(map(str, sent.as_tuple().digits)).strip("0"))
    return 0 < figures <= most and sent == Decimal(f"{value:.{figures - 1}e}")


def read_decimal(least: int, most: int, scale: int, is_text: bool) -> Reader:  # noqa: FBT001  as the rule has it
    """Return a reader of decimals within unscaled bounds: zeros at the end may be added or removed, but no other digit."""
    power, precision = 10**scale, len(str(max(-least, most)))

    def read(value: Any) -> Any:
        if type(value) is int:
            whole: int | None = value * power
        else:
            text = number_text(value, is_text)
            whole = None if text is None else unscaled(text, scale, precision)
        return minimal_bytes(whole) if whole is not None and least <= whole <= most else MISFIT

    return read


def read_digits(is_text: bool) -> Reader:  # noqa: FBT001  as the rule has it
    """Return a reader of numbers as strings: the digits as they were sent."""

    def read(value: Any) -> Any:
        text = number_text(value, is_text)
        return MISFIT if text is None else text

    return read


def read_string() -> Reader:
    """Return a reader of strings, and of nothing else, since 1 is not "1"."""

    def read(value: Any) -> Any:
        return value if type(value) is str else MISFIT

    return read


def read_label(members: Collection[str]) -> Reader:
    """Return a reader of an ENUM's labels, and of the empty string, which stands for an invalid label."""
    labels = frozenset(members) | {""}

    def read(value: Any) -> Any:
        return value if type(value) is str and (len(labels) == 1 or value in labels) else MISFIT

    return read


def read_labels(members: Collection[str]) -> Reader:
    """Return a reader of a SET's labels, separated by commas; an array of them, none with a comma, is the same."""
    known = frozenset(members)

    def read(value: Any) -> Any:
        if type(value) is list and all(type(label) is str and "," not in label for label in value):
            # An empty set may be sent as an array of an empty text.
            value = ",".join(value) if value == [""] or "" not in value else value
        if type(value) is not str or (known and value and not known.issuperset(value.split(","))):
            return MISFIT
        return value

    return read


def read_json() -> Reader:
    """Return a reader of JSON: a string is taken as the text itself, anything else is rendered compactly, exactly."""

    def read(value: Any) -> Any:
        return value if type(value) is str else render(value).decode()

    return read


def read_anything() -> Reader:
    """Return a reader for an unknown type: a scalar as its own text, anything else as compact JSON text.

    As a consequence, 1 and "1" become the same text.
    """

    def read(value: Any) -> Any:
        return render(value).decode() if type(value) in (dict, list) else plain_text(value)

    return read


def read_binary(width: int | None) -> Reader:
    """Return a reader of bytes in base64; with a width, zero bytes pad them to it."""

    def read(value: Any) -> Any:
        raw = base64_bytes(value)
        if raw is None or (width is not None and len(raw) > width):
            return MISFIT
        return raw if width is None else raw.ljust(width, b"\0")

    return read


def read_bits(width: int | None) -> Reader:
    """Return a reader of BIT: big-endian bytes in base64, or an integer; without a width, as many bytes as come."""
    size = None if width is None else -(-width // 8)

    def read(value: Any) -> Any:
        raw = base64_bytes(value)
        if raw is None:
            count = _count(value)
            raw = None if count is None else count.to_bytes(size or max(1, -(-count.bit_length() // 8)), "big")
        if raw is None or (size is not None and len(raw) != size):
            return MISFIT
        return raw if width is None or not int.from_bytes(raw, "big") >> width else MISFIT

    def _count(value: Any) -> int | None:
        if type(value) is bool:
            return int(value) if width == 1 else None
        count = int(value.text) if type(value) is ExactNumber and _INTEGER.fullmatch(value.text) else value
        return count if type(count) is int and count >= 0 and not count >> (width or _LONG) else None

    return read


def read_geometry() -> Reader:
    """Return a reader of geometries: EWKB in base64."""

    def read(value: Any) -> Any:
        raw = base64_bytes(value)
        return raw if raw is not None and len(raw) >= _WKB_HEADER and raw[0] in (0, 1) else MISFIT

    return read


READERS: Final[dict[str, Callable[..., Reader]]] = {
    "flag": read_boolean,
    "whole": read_whole,
    "double": read_double,
    "single": read_single,
    "decimal": read_decimal,
    "digits": read_digits,
    "string": read_string,
    "label": read_label,
    "labels": read_labels,
    "json": read_json,
    "anything": read_anything,
    "binary": read_binary,
    "bits": read_bits,
    "geometry": read_geometry,
}
"""What makes the reader of a rule from its operands, by the name of the rule."""
