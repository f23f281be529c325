"""Columns of bytes, laid out as Arrow does."""

from __future__ import annotations

from array import array
from itertools import accumulate
from typing import TYPE_CHECKING

from cdcavro.engine.payloads import Slices

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cdcavro.engine.payloads import Packed


def column(values: Sequence[bytes | None], before: Sequence[bytes | None] = ()) -> Slices:
    """Lay out values, behind others that are none of the column's."""
    every = [*before, *values]
    bits = sum(1 << i for i, value in enumerate(every) if value is not None)
    places = array("i", accumulate((len(value or b"") for value in every), initial=0))
    validity = bits.to_bytes(len(every) // 8 + 1, "little")
    return Slices(b"".join(value or b"" for value in every), places.tobytes(), validity, len(before), len(values))


def read(packed: Packed) -> list[bytes | None]:
    """Read a packed column back."""
    return listed(Slices(packed.data, packed.offsets, packed.validity, 0, len(packed.offsets) // 4 - 1))


def listed(values: Slices) -> list[bytes | None]:
    """Return the values of a column."""
    return [values.get(i) for i in range(values.count)]
