"""Limits that all tables of a stream share."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from cdcavro.errors import SchemaError

if TYPE_CHECKING:
    from cdcavro.table.schema import TableSchema

MAX_TEXT: Final = 128 << 20
# Of the versions that one text of statements makes, since each costs what its whole schema does.
MAX_AT_ONCE: Final = 2 << 20
_UNCOUNTED: Final = -1


class SharedLimits:
    """What all tables share: how many characters of schema text are `left`, and a count of `edits`.

    An edit is any change of a table, of its versions, or of its name.
    """

    __slots__ = ("_taken", "edits", "left")

    def __init__(self) -> None:
        self.left = MAX_TEXT
        self.edits = 0
        self._taken = _UNCOUNTED

    def begin(self) -> None:
        """Begin a text of statements, whose schemas are counted until `end`."""
        self._taken = 0

    def end(self) -> None:
        """End a text of statements."""
        self._taken = _UNCOUNTED

    def take(self, schema: TableSchema) -> None:
        """Reserve the characters of a schema.

        Raises `SchemaError` if too few are left, or if one text makes many schemas of more than 2 Mi characters in all.
        """
        length = len(schema.row.json)
        if length > self.left:
            raise SchemaError(schema.table.table, f"the schemas of all tables have more than {MAX_TEXT} characters")
        if self._taken > 0 and self._taken + length > MAX_AT_ONCE:
            raise SchemaError(schema.table.table, f"one text makes schemas of more than {MAX_AT_ONCE} characters")
        if self._taken != _UNCOUNTED:
            self._taken += length
        self.left -= length
