"""What was made of something, remembered while it comes again: bounded by its size, since messages are hostile."""

from __future__ import annotations

from functools import lru_cache, wraps
from typing import TYPE_CHECKING, Any, Final, ParamSpec, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

Arguments = ParamSpec("Arguments")
Made = TypeVar("Made")

# One of many tables of a database has a few dozen columns, and costs about a kilobyte for each.
MOST_COLUMNS: Final = 50_000
_SHARE: Final = 8
_CHARACTERS: Final = 64
_LONGEST: Final = 1_000


class WeightedCache:
    """Values by key, the oldest of which go when all together weigh more than a bound, and which hold nothing that is too heavy."""

    __slots__ = ("_left", "_most", "_values")

    def __init__(self, most: int) -> None:
        self._most = most
        self._left = most
        self._values: dict[Any, tuple[Any, int]] = {}

    def get(self, key: Any) -> Any:
        """Return a value, or None."""
        found = self._values.get(key)
        return None if found is None else found[0]

    def put(self, key: Any, value: Any, weight: int) -> None:
        """Keep a value instead of another of its key, unless it weighs more than an eighth of the bound."""
        self._drop(key)
        if weight > self._most // _SHARE:
            return
        while self._left < weight:
            oldest = next(iter(self._values), None)
            if oldest is None:
                break
            self._drop(oldest)
        self._values[key] = (value, weight)
        self._left -= weight

    def _drop(self, key: Any) -> None:
        found = self._values.pop(key, None)
        if found is not None:
            self._left += found[1]


def weight_of(columns: tuple[Any, ...]) -> int:
    """Return what columns weigh: one each, and one for every 64 characters of their names and types."""
    characters = sum([len(one.name or "") + len(one.type or "") for one in columns])
    return 1 + len(columns) + characters // _CHARACTERS


class IdentityCache:
    """A function of the columns of a table, a tuple or None, and another immutable object, called once for each such pair.

    Objects are told by what they are, not by what they equal: the columns of a table are one tuple in
    all its changes, and to compare them would take longer than what is made of them saves.
    """

    __slots__ = ("_function", "_kept", "_last")

    def __init__(self, function: Callable[[Any, Any], Any], most: int = MOST_COLUMNS) -> None:
        self._function = function
        self._kept = WeightedCache(most)
        self._last: tuple[Any, Any, Any] | None = None

    def of(self, first: Any, second: Any = None) -> Any:
        """Return what the function makes of the objects."""
        last = self._last
        if last is not None and last[0] is first and last[1] is second:
            return last[2]
        if first is not None and type(first) is not tuple:
            return self._function(first, second)
        place = id(first), id(second)
        found = self._kept.get(place)
        if found is None:
            found = first, second, self._function(first, second)
            # The objects are kept, so that no others get their numbers.
            self._kept.put(place, found, weight_of(first or ()))
        self._last = found
        return found[2]


def bounded_cache(
    size: int, *, longest: int = _LONGEST
) -> Callable[[Callable[Arguments, Made]], Callable[Arguments, Made]]:
    """Return a decorator that remembers the last `size` results of a function, but none whose first argument, a text, is longer than `longest`.

    >>> @bounded_cache(2)
    ... def half(text):
    ...     return text[: len(text) // 2]
    >>> half("abcd")
    'ab'
    """

    def decorate(function: Callable[Arguments, Made]) -> Callable[Arguments, Made]:
        remembered: Any = lru_cache(maxsize=size)(function)

        @wraps(function)
        def call(text: str, *others: Any) -> Made:
            made: Made = remembered(text, *others) if len(text) <= longest else function(text, *others)  # type: ignore[call-arg, arg-type]
            return made

        return call  # type: ignore[return-value]

    return decorate
