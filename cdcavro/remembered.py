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

    __slots__ = ("_found", "_function", "_last")

    def __init__(self, function: Callable[[Any, Any], Any]) -> None:
        self._function = function
        self._found: dict[tuple[int, int], tuple[Any, Any, Any]] = {}
        self._last: tuple[Any, Any, Any] | None = None

    def of(self, first: Any, second: Any = None) -> Any:
        """Give what the function makes of the objects."""
        last = self._last
        if last is not None and last[0] is first and last[1] is second:
            return last[2]
        place = id(first), id(second)
        found = self._found.get(place)
        if found is None:
            if len(self._found) >= _MANY:
                self._found.clear()
            # The objects are kept, so that no others get their numbers.
            found = self._found[place] = (first, second, self._function(first, second))
        self._last = found
        return found[2]
