"""Logical types: which one a type really has.

Source: Avro 1.8.2, "Logical Types". Those that later versions added are known too, because the
readers of today apply them. What the specification tells readers to ignore counts for nothing: a
name that it does not define, a logical type on another type than its own, a decimal whose scale
exceeds its precision, or whose precision exceeds its fixed size.
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
    """A logical type; `precision` and `scale` are those of a decimal, 0 for all others."""

    name: str
    precision: int = 0
    scale: int = 0

    def __str__(self) -> str:
        return f"{self.name}({self.precision},{self.scale})" if self.precision else self.name


def logical_type(declared: Primitive | Fixed) -> Logical | None:
    """Return the logical type that a type has; None for a plain one, and where it is to be ignored.

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
    """Return how many decimal digits a signed integer of so many bytes always has."""
    return math.floor(math.log10(2) * (8 * size - 1)) if size else 0
