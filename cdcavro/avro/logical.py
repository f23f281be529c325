"""Logical types: which one a type really has.

Source: Avro 1.8.2, "Logical Types". Those that later versions added are known too, because today's
readers apply them. What the specification tells readers to ignore is ignored: a name that it does
not define, a logical type on a type to which it does not belong, a decimal whose scale exceeds its
precision or whose precision exceeds its fixed size.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from cdcavro.avro.types import Primitive

if TYPE_CHECKING:
    from cdcavro.avro.types import Fixed

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


@dataclass(frozen=True, slots=True)
class Logical:
    """A logical type: its `name` (str), and the `precision` and `scale` (int) of a decimal, 0 for all others."""

    name: str
    precision: int = 0
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
