"""What a registry remembers: a bounded number of schemas, and for a short time what it had not."""

from __future__ import annotations

import time
from collections import OrderedDict
from threading import Lock
from typing import TYPE_CHECKING, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable

T = TypeVar("T")


class Cache(Generic[T]):
    """At most `size` values, of which the longest unused makes room, and as many keys without one. For many threads.

    Made from `size` and the seconds for which a missing key is remembered; `now` is a clock.
    """

    def __init__(self, size: int, missing_for: float, now: Callable[[], float] = time.monotonic) -> None:
        self._size, self._missing_for, self._now = size, missing_for, now
        self._values: OrderedDict[Hashable, T] = OrderedDict()
        self._missing: OrderedDict[Hashable, tuple[float, str]] = OrderedDict()
        self._lock = Lock()

    def get(self, key: Hashable) -> T | None:
        """Return a value; None if it is not here."""
        with self._lock:
            if key in self._values:
                self._values.move_to_end(key)
            return self._values.get(key)

    def put(self, key: Hashable, value: T) -> None:
        """Keep a value."""
        with self._lock:
            self._values[key] = value
            self._values.move_to_end(key)
            if len(self._values) > self._size:
                self._values.popitem(last=False)

    def missing(self, key: Hashable) -> str | None:
        """Say what was missing if a key was found so a short time ago; None if not."""
        with self._lock:
            until, what = self._missing.get(key, (float("-inf"), ""))
            return what if until > self._now() else None

    def put_missing(self, key: Hashable, what: str) -> None:
        """Remember that there is no value, and what is said of that."""
        with self._lock:
            self._missing[key] = self._now() + self._missing_for, what
            self._missing.move_to_end(key)
            if len(self._missing) > self._size:
                self._missing.popitem(last=False)

    def forget_missing(self) -> None:
        """Forget all that was found missing."""
        with self._lock:
            self._missing.clear()
