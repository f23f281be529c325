"""Fingerprints of the versions on a server, which has none itself: each version is read once to know its own."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final

from cdcavro.exact.locks import ForkedLock
from cdcavro.registry.backend import UnusableError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    Place = tuple[str, int]

MAX_FINGERPRINTED: Final = 10_000
LISTED_FOR: Final = 5.0


class FingerprintIndex:
    """The fingerprints of a server's versions, by subject and version. Several threads may use it.

    `url` is the server's address for errors, `now` the clock.
    """

    def __init__(self, url: str, now: Callable[[], float] = time.monotonic) -> None:
        self._url, self._now = url, now
        self._lock = ForkedLock()
        self._known: dict[Place, tuple[str, int | None]] = {}
        self._listed_at = float("-inf")

    def find(
        self, fingerprint: str, places: Callable[[], Iterable[Place]], read: Callable[[Place], tuple[str, int | None]]
    ) -> list[Place]:
        """Return a place of each schema with a fingerprint.

        `places` lists all that there are, but not again within a few seconds, whatever is asked for; `read` returns
        the fingerprint and the id at a place. Raises `UnusableError` for more than 10,000 places.
        """
        with self._lock:
            if self._now() - self._listed_at > LISTED_FOR:
                for place in places():
                    self._learn(place, read)
                self._listed_at = self._now()
            return list({id: place for place, (own, id) in self._known.items() if own == fingerprint}.values())

    def forget(self) -> None:
        """List the places again at the next question."""
        self._listed_at = float("-inf")

    def _learn(self, place: Place, read: Callable[[Place], tuple[str, int | None]]) -> None:
        if place not in self._known:
            if len(self._known) >= MAX_FINGERPRINTED:
                reason = f"more than {MAX_FINGERPRINTED:,} versions, too many to look for a fingerprint in"
                raise UnusableError(self._url, reason)
            self._known[place] = read(place)
