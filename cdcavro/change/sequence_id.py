"""Converting positions to the sequence ids of DataHub's messages, one number each, and back.

Source: DataHub message formats, "a unique numeric ID for each message": a string, which the two
messages of an update share.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from cdcavro.exact.members import whole_number
from cdcavro.exact.numbers import MAX_LONG

if TYPE_CHECKING:
    from collections.abc import Sequence

_DIGITS: Final = 19
_MOST: Final = 32


def sequence_id(position: Sequence[int] | None) -> str | None:
    """Return the id of a position: its first number, then every further number padded to 19 digits.

    19 digits hold any 64-bit integer, so ids of positions of the same length sort as the positions do.
    None without a position, or if one of its numbers is negative or exceeds a signed 64-bit integer.

    >>> sequence_id((1605339516000000004,)), sequence_id((2, 704))
    ('1605339516000000004', '20000000000000000704')
    """
    if not position or not all(0 <= part <= MAX_LONG for part in position):
        return None
    first, *rest = position
    return str(first) + "".join(f"{part:0{_DIGITS}}" for part in rest)


def sequence_position(text: str | None) -> tuple[int, ...] | None:
    """Return the position of an id that `sequence_id` made; None if it is not a number or has more than 32 parts.

    >>> sequence_position("20000000000000000704"), sequence_position("-1")
    ((2, 704), None)
    """
    if text is None or len(text) > _MOST * _DIGITS:
        return None
    first = len(text) % _DIGITS or min(len(text), _DIGITS)
    texts = [text[:first], *(text[i : i + _DIGITS] for i in range(first, len(text), _DIGITS))]
    parts = [part for digits in texts for part in whole_number(digits) or ()]
    return tuple(parts) if len(parts) == len(texts) else None
