"""What was made of objects, remembered while the same objects come again."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Callable

_MANY: Final = 512


class Remembered:
    """A function of two immutable objects, called once for each of the last 512 pairs.

    Objects are told by what they are, not by what they equal: the columns of a table are one tuple in
    all its changes, and to compare them would take longer than what is made of them saves.
    """

    __slots__ = ("_found", "_function")

    def __init__(self, function: Callable[[Any, Any], Any]) -> None:
        self._function = function
        self._found: dict[tuple[int, int], tuple[Any, Any, Any]] = {}

    def of(self, first: Any, second: Any = None) -> Any:
        """Give what the function makes of the objects."""
        place = id(first), id(second)
        found = self._found.get(place)
        if found is not None:
            return found[2]
        made = self._function(first, second)
        if len(self._found) >= _MANY:
            self._found.clear()
        # The objects are kept, so that no others get their numbers.
        self._found[place] = (first, second, made)
        return made
