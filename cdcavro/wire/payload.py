"""A payload on its way to a record."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cdcavro.avro.decoder import Decoder
from cdcavro.exact.jsontext import escape

if TYPE_CHECKING:
    from cdcavro.errors import MessageError


class PayloadDecoder(Decoder):
    """One payload on its way to a record.

    `place` is a pointer to what is being read, below the innermost item of an array or a map: whoever
    catches an error there puts it before the error's own. `extras` holds what was read of the envelope's
    `extras`, where they were read; `start` and `stop` are where they stand.
    """

    __slots__ = ("extras", "place", "start", "stop")

    place: str
    extras: dict[str, str] | None
    start: int
    stop: int

    def skip_texts(self) -> None:
        """Pass a map of strings by, and note where it stands. Raises `PayloadError`."""
        self.start = self.position
        while count := self.read_block():
            for _ in range(2 * count):
                self.skip_string()
        self.stop = self.position

    def leave(self, error: MessageError, place: str, name: str) -> None:
        """Leave an item of the array or map at a place, by its name, with an error on its way up."""
        error.below(f"/{escape(name)}{self.place}")
        self.place = place

    def back(self) -> PayloadDecoder:
        """Go back to where the extras stand."""
        self.position = self.start
        return self

    def tail(self) -> bytes:
        """Return the bytes of the extras."""
        return self.slice(self.start, self.stop)
