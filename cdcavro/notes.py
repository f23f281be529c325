"""What a message leaves for `extras` while it is written."""

from __future__ import annotations

from typing import Final

from cdcavro.errors import StructureError

MAX_NOTES: Final = 100_000


class Notes:
    """What one message leaves for `extras`, and how many JSON members of it were written."""

    __slots__ = ("entries", "members")

    def __init__(self) -> None:
        self.entries: list[tuple[str, str]] = []
        self.members = 0

    def note(self, pointer: str, value: str) -> None:
        """Note a text for a place. Raises `StructureError` beyond 100,000 notes: each costs much memory."""
        if len(self.entries) >= MAX_NOTES:
            raise StructureError(f"at most {MAX_NOTES} values that the schema has no place for", "one more")
        self.entries.append((pointer, value))

    def below(self, pointer: str, since: int) -> None:
        """Put a pointer before the notes made since there were so many."""
        entries = self.entries
        entries[since:] = [(pointer + place, value) for place, value in entries[since:]]
