"""What a message leaves for `extras` while it is written."""

from __future__ import annotations


class Notes:
    """What one message leaves for `extras`, and how many JSON members of it were written."""

    __slots__ = ("entries", "members")

    def __init__(self) -> None:
        self.entries: list[tuple[str, str]] = []
        self.members = 0

    def note(self, pointer: str, value: str) -> None:
        """Note a text for a place."""
        self.entries.append((pointer, value))

    def below(self, pointer: str, since: int) -> None:
        """Put a pointer before the notes made since there were so many."""
        entries = self.entries
        entries[since:] = [(pointer + place, value) for place, value in entries[since:]]
