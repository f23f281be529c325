"""What a message leaves for `extras` while it is written."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from cdcavro.errors import StructureError

if TYPE_CHECKING:
    from cdcavro.avro.buffer import Buffer

MAX_NOTES: Final = 100_000


class Notes:
    """What one message leaves for `extras`, and how many JSON members of it were written.

    Attributes: `count` (int), of the notes; `members` (int).
    """

    __slots__ = ("_entries", "count", "members")

    def __init__(self) -> None:
        self._entries: list[tuple[str, str]] | None = None
        self.count = 0
        self.members = 0

    def note(self, pointer: str, value: str) -> None:
        """Note a text for a place. Raises `StructureError` beyond 100,000 notes: each costs much memory."""
        if self.count >= MAX_NOTES:
            raise StructureError(f"at most {MAX_NOTES} values that the schema has no place for", "one more")
        if self._entries is None:
            self._entries = []
        self._entries.append((pointer, value))
        self.count += 1

    def below(self, pointer: str, since: int) -> None:
        """Put a pointer before the notes made since there were so many."""
        entries = self._entries
        if entries is not None:
            entries[since:] = [(pointer + place, value) for place, value in entries[since:]]

    def first(self, since: int, middle: int) -> None:
        """Put the notes made since there were `middle` before those made since there were `since`."""
        entries = self._entries
        if entries is not None and since < middle:
            entries[since:] = entries[middle:] + entries[since:middle]

    def write(self, out: Buffer) -> None:
        """Append the notes as a map of strings."""
        if self._entries is not None:
            out.write_long(self.count)
            for pointer, value in self._entries:
                out.write_string(pointer)
                out.write_string(value)
        out.append(0)
