"""A registry's cache: a bounded number of schemas and, for a short time, of lookups that found nothing."""

from __future__ import annotations

import time
from collections import OrderedDict
from typing import TYPE_CHECKING, Generic, TypeVar

from cdcavro.exact.locks import ForkedLock

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable

T = TypeVar("T")


class Cache(Generic[T]):
    """A thread-safe LRU cache of at most `size` values, and of at most `size` keys known to have no value.

    `missing_for` is how long a missing key is remembered, in seconds; `now` is the clock.
    """

    def __init__(self, size: int, missing_for: float, now: Callable[[], float] = time.monotonic) -> None:
        self._size, self._missing_for, self._now = size, missing_for, now
        self._values: OrderedDict[Hashable, T] = OrderedDict()
        self._missing: OrderedDict[Hashable, tuple[float, str]] = OrderedDict()
        self._lock = ForkedLock()

    def get(self, key: Hashable) -> T | None:
        """Return the value of a key; None if it is not cached."""
        with self._lock:
            if key in self._values:
                self._values.move_to_end(key)
            return self._values.get(key)

    def put(self, key: Hashable, value: T) -> None:
        """Cache a value."""
        with self._lock:
            self._values[key] = value
            self._values.move_to_end(key)
            if len(self._values) > self._size:
                self._values.popitem(last=False)

    def missing(self, key: Hashable) -> str | None:
        """Return the description of a key that was found missing a short time ago; None for any other key."""
        with self._lock:
            until, what = self._missing.get(key, (float("-inf"), ""))
            return what if until > self._now() else None

    def put_missing(self, key: Hashable, what: str) -> None:
        """Remember that a key has no value; `what` describes, for the error, what is missing."""
        with self._lock:
            self._missing[key] = self._now() + self._missing_for, what
            self._missing.move_to_end(key)
            if len(self._missing) > self._size:
                self._missing.popitem(last=False)

    def is_full_of_missing(self) -> bool:
        """Return whether as many keys as are remembered were found missing a short time ago."""
        with self._lock:
            until, _ = next(iter(self._missing.values()), (float("-inf"), ""))
            return len(self._missing) >= self._size and until > self._now()

    def forget_missing(self) -> None:
        """Forget all missing keys."""
        with self._lock:
            self._missing.clear()
