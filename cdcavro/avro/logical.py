"""Logical types: which one a type really has, and which data are values of it.

Source: Avro 1.8.2, "Logical Types". Those that later versions added are known too, because today's
readers apply them. What the specification tells readers to ignore is ignored: a name that it does
not define, a logical type on a type to which it does not belong, a decimal whose scale exceeds its
precision or whose precision exceeds its fixed size.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from cdcavro.avro.types import Primitive
from cdcavro.errors import PayloadError

if TYPE_CHECKING:
    from collections.abc import Callable

    from cdcavro.avro.types import Fixed

# A decimal of more digits is taken for plain bytes: ten to the power of its precision may be absurdly long.
MAX_DIGITS: Final = 1000

_FIXED: Final = "fixed"
_BASES: Final = {
    "decimal": ("bytes", _FIXED),
    "big-decimal": ("bytes",),
    "uuid": ("string", _FIXED),
    "date": ("int",),
    "time-millis": ("int",),
    "time-micros": ("long",),
    "timestamp-millis": ("long",),
    "timestamp-micros": ("long",),
    "timestamp-nanos": ("long",),
    "local-timestamp-millis": ("long",),
    "local-timestamp-micros": ("long",),
    "local-timestamp-nanos": ("long",),
    "duration": (_FIXED,),
}
_SIZES: Final = {"uuid": 16, "duration": 12}
# From the beginning of the year 1 to the end of 9999, the years that Python and Spark's types hold.
_DAYS: Final = range(-719_162, 2_932_897)
_DAY_MILLIS: Final = 86_400_000


@dataclass(frozen=True, slots=True)
class Logical:
    """A logical type."""

    # As the specification spells it.
    name: str
    # In digits; 0 for all but decimals.
    precision: int = 0
    # In digits behind the point; 0 for all but decimals.
    scale: int = 0

    def __str__(self) -> str:
        return f"{self.name}({self.precision},{self.scale})" if self.precision else self.name


def logical_type(declared: Primitive | Fixed) -> Logical | None:
    """Return the logical type of a type; None if it has none or has one that must be ignored.

    >>> str(logical_type(Primitive("bytes", {"logicalType": "decimal", "precision": 10, "scale": 2})))
    'decimal(10,2)'
    >>> logical_type(Primitive("int", {"logicalType": "timestamp-millis"}))
    """
    name = declared.attributes.get("logicalType")
    base = declared.name if isinstance(declared, Primitive) else _FIXED
    if not isinstance(name, str) or base not in _BASES.get(name, ()):
        return None
    if name == "decimal":
        return _decimal(declared)
    if not isinstance(declared, Primitive) and declared.size != _SIZES[name]:
        return None
    return Logical(name)


def _decimal(declared: Primitive | Fixed) -> Logical | None:
    precision, scale = declared.attributes.get("precision"), declared.attributes.get("scale", 0)
    if type(precision) is not int or type(scale) is not int or not 0 <= scale <= precision or precision == 0:
        return None
    if not isinstance(declared, Primitive) and precision > _digits(declared.size):
        return None
    return Logical("decimal", precision, scale)


def _digits(size: int) -> int:
    """Return how many decimal digits always fit in a signed integer of `size` bytes."""
    return math.floor(math.log10(2) * (8 * size - 1)) if size else 0


def value_check(declared: Primitive | Fixed) -> Callable[[Any], None] | None:
    """Return a function that raises `PayloadError` for a datum that is no value of its type's logical type.

    A datum is an int or bytes. None is returned for a type all of whose data are values.

    >>> value_check(Primitive("int", {"logicalType": "date"}))(2_932_897)
    Traceback (most recent call last):
        ...
    cdcavro.errors.PayloadError: message: $: expected a date of the years 1 to 9999, got day 2932897 of 1970
    """
    logical, values = logical_type(declared), value_range(declared)
    if logical is None or values is None:
        return None
    if logical.name == "decimal":
        return _decimal_check(logical, values)
    return _range_check(values, *_BOUNDS[logical.name][1:])


def value_range(declared: Primitive | Fixed) -> range | None:
    """Return the integers that are values of a type's logical type; bytes encode them, too, if it is a decimal.

    None is returned for a type all of whose data are values.
    """
    logical = logical_type(declared)
    if logical is None:
        return None
    if logical.name != "decimal":
        return _BOUNDS[logical.name][0] if logical.name in _BOUNDS else None
    least: int = 10**logical.precision if logical.precision <= MAX_DIGITS else 0
    return range(1 - least, least) if least else None


def _decimal_check(declared: Logical, values: range) -> Callable[[Any], None]:
    first, end = values.start, values.stop

    def check(raw: Any) -> None:
        if not raw or not first <= int.from_bytes(raw, "big", signed=True) < end:
            raise PayloadError(str(declared), f"{len(raw)} bytes that are none")

    return check


def _range_check(values: range, expected: str, got: str) -> Callable[[Any], None]:
    first, end = values.start, values.stop

    def check(value: Any) -> None:
        if not first <= value < end:
            raise PayloadError(expected, got.format(value))

    return check


def _instants(units_of_a_day: int) -> tuple[range, str, str]:
    values = range(_DAYS.start * units_of_a_day, _DAYS.stop * units_of_a_day)
    return values, "an instant of the years 1 to 9999", "{}"


_MILLIS: Final = _instants(_DAY_MILLIS)
_MICROS: Final = _instants(_DAY_MILLIS * 1000)
_BOUNDS: Final = {
    "date": (_DAYS, "a date of the years 1 to 9999", "day {} of 1970"),
    "time-millis": (range(_DAY_MILLIS), "a time of a day", "{}"),
    "time-micros": (range(_DAY_MILLIS * 1000), "a time of a day", "{}"),
    "timestamp-millis": _MILLIS,
    "timestamp-micros": _MICROS,
    "local-timestamp-millis": _MILLIS,
    "local-timestamp-micros": _MICROS,
}
