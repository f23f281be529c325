"""Limits that all tables of a stream share."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from cdcavro.errors import SchemaError

if TYPE_CHECKING:
    from cdcavro.table.schema import TableSchema

MAX_TEXT: Final = 128 << 20


class SharedLimits:
    """What all tables share: how many characters of schema text are `left`, and a count of `edits`.

    An edit is any change of a table, of its versions, or of its name.
    """

    __slots__ = ("edits", "left")

    def __init__(self) -> None:
        self.left = MAX_TEXT
        self.edits = 0

    def take(self, schema: TableSchema) -> None:
        """Reserve the characters of a schema. Raises `SchemaError` if too few are left."""
        if len(schema.row.json) > self.left:
            raise SchemaError(schema.table.table, f"the schemas of all tables have more than {MAX_TEXT} characters")
        self.left -= len(schema.row.json)
