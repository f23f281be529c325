"""Caching of results that are needed again and again, bounded in size because messages may be hostile."""

from __future__ import annotations

import sys
from collections import OrderedDict
from functools import lru_cache, wraps
from typing import TYPE_CHECKING, Any, Final, ParamSpec, TypeVar

from cdcavro.exact.locks import ForkedLock

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")

# A typical table has a few dozen columns, and each costs about a kilobyte.
MOST_COLUMNS: Final = 50_000
_SHARE: Final = 8
_CHARACTERS: Final = 64
_LONGEST: Final = 1_000


class WeightedCache:
    """A cache of values by key with a bound on their total weight: the oldest values make room for new ones.

    A value that weighs more than the bound divided by `share` is not kept. Several threads may use the cache.
    """

    __slots__ = ("_heaviest", "_left", "_lock", "_most", "_values")

    def __init__(self, most: int, *, share: int = _SHARE) -> None:
        self._lock = ForkedLock()
        self._most = most
        self._heaviest = most // share
        self._left = most
        # A plain dictionary takes longer to find its oldest key with each one that was removed.
        self._values: OrderedDict[Any, tuple[Any, int]] = OrderedDict()

    def __getstate__(self) -> tuple[Any, ...]:
        """Return the state for another process."""
        return self._most, self._heaviest, self._left, self._values

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        """Restore the state that another process returned from `__getstate__`."""
        self._lock = ForkedLock()
        self._most, self._heaviest, self._left, self._values = state

    def get(self, key: Any) -> Any:
        """Return the value of a key, or None."""
        entry = self._values.get(key)
        return None if entry is None else entry[0]

    def put(self, key: Any, value: Any, weight: int) -> None:
        """Keep a value in place of any other with its key, unless it is too heavy."""
        with self._lock:
            self._drop(key)
            if weight > self._heaviest:
                return
            while self._left < weight:
                if not self._values:
                    break
                _, (_, freed) = self._values.popitem(last=False)
                self._left += freed
            self._values[key] = (value, weight)
            self._left -= weight

    def drop(self, key: Any) -> None:
        """Forget the value of a key."""
        with self._lock:
            self._drop(key)

    def clear(self) -> None:
        """Forget all values."""
        with self._lock:
            for key in [*self._values]:
                self._drop(key)

    def _drop(self, key: Any) -> None:
        entry = self._values.pop(key, None)
        if entry is not None:
            self._left += entry[1]


if TYPE_CHECKING:
    derived_property = property
else:

    class derived_property(property):  # noqa: N801  a decorator
        """A property whose value is kept in the dict that the object's `derived` returns, until that is forgotten."""

        def __get__(self, instance: Any, owner: type | None = None) -> Any:
            """Return the value."""
            if instance is None:
                return self
            values, name = instance.derived(), self.fget.__name__
            value = values.get(name, self)
            if value is self:
                value = values[name] = self.fget(instance)
            return value


def weight_of(columns: tuple[Any, ...]) -> int:
    """Return the weight of columns: 1 for the tuple, 1 for each column and 1 per 64 characters of names and types."""
    characters = sum([len(column.name or "") + len(column.type or "") for column in columns])
    return 1 + len(columns) + characters // _CHARACTERS


def text_size(texts: Iterable[str | None]) -> int:
    """Return how many bytes texts take."""
    return sum([sys.getsizeof(text) for text in texts if text is not None])


class IdentityCache:
    """A cache of a function's results by the identity of its two arguments.

    The function takes the columns of a table (a tuple, or None) and another immutable object. Arguments
    are compared by identity, not by equality: a table's columns are the same tuple in all its changes,
    and comparing them would take longer than the cache saves.
    """

    __slots__ = ("_function", "_kept", "_last")

    def __init__(self, function: Callable[[Any, Any], Any], most: int = MOST_COLUMNS) -> None:
        self._function = function
        self._kept = WeightedCache(most)
        self._last: tuple[Any, Any, Any] | None = None

    def of(self, first: Any, second: Any = None) -> Any:
        """Return the function's result for two objects."""
        last = self._last
        if last is not None and last[0] is first and last[1] is second:
            return last[2]
        if first is not None and type(first) is not tuple:
            return self._function(first, second)
        key = id(first), id(second)
        entry = self._kept.get(key)
        if entry is None:
            entry = first, second, self._function(first, second)
            # The entry keeps the objects alive, so that no other object can get their ids.
            self._kept.put(key, entry, weight_of(first or ()))
        self._last = entry
        return entry[2]


def bounded_cache(
    size: int, *, longest: int = _LONGEST
) -> Callable[[Callable[Arguments, Result]], Callable[Arguments, Result]]:
    """Return a decorator that caches a function's last `size` results by its arguments.

    A call whose first argument, a text, is longer than `longest` characters is not cached.

    >>> @bounded_cache(2)
    ... def half(text):
    ...     return text[: len(text) // 2]
    >>> half("abcd")
    'ab'
    """

    def decorate(function: Callable[Arguments, Result]) -> Callable[Arguments, Result]:
        cached: Any = lru_cache(maxsize=size)(function)

        @wraps(function)
        def call(text: str, *others: Any) -> Result:
            result: Result = cached(text, *others) if len(text) <= longest else function(text, *others)  # type: ignore[call-arg, arg-type]
            return result

        return call  # type: ignore[return-value]

    return decorate
