"""A rule: what is done with each value of a column, as data from which Python and the engine make what does it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final


@dataclass(frozen=True, slots=True, init=False)
class Rule:
    """What is done with each value of a column: `Rule("whole", 0, 255)`.

    Python's readers and the engine's cells are found by its name.
    """

    # What is done.
    name: str
    # What it is done with: bounds, labels, a time zone and the like.
    operands: tuple[Any, ...]

    def __init__(self, name: str, *operands: Any) -> None:
        object.__setattr__(self, "name", name)
        object.__setattr__(self, "operands", operands)


AS_SENT: Final = Rule("as sent")
"""The rule of values that a format sends as all formats have them."""
