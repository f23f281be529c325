"""The state of reading one payload into a record."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cdcavro.engine.machine import Decoder
from cdcavro.exact.jsontext import escape

if TYPE_CHECKING:
    from cdcavro.errors import MessageError


class PayloadDecoder(Decoder):
    """A decoder of one payload that keeps track of the place in the record.

    Attributes: `place` (str), a pointer to what is being read, relative to the innermost item of an array
    or a map; whoever catches an error there prepends it to the error's own pointer. `extras` (dict or
    None), the envelope's `extras` if they were read; `start` and `stop` (int), the positions of their bytes.
    """

    __slots__ = ("extras", "place", "start", "stop")

    place: str
    extras: dict[str, str] | None
    start: int
    stop: int

    def skip_texts(self) -> None:
        """Skip a map of strings and note its position. Raises `PayloadError`."""
        self.start = self.position
        for count in self.blocks():
            for _ in range(2 * count):
                self.skip_string()
        self.stop = self.position

    def leave(self, error: MessageError, place: str, name: str) -> None:
        """Leave the item `name` of the array or map at `place`, and add the item's pointer to an error from it."""
        error.below(f"/{escape(name)}{self.place}")
        self.place = place

    def back(self) -> PayloadDecoder:
        """Return this decoder, moved back to the start of the extras."""
        self.position = self.start
        return self

    def tail(self) -> bytes:
        """Return the bytes of the extras."""
        return self.slice(self.start, self.stop)
