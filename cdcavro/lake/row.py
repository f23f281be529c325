"""A typed row: one change of a table's row with its order, as it goes into a lake table."""

from __future__ import annotations

from typing import Final

from msgspec import Struct

UPSERTS: Final = ("c", "u", "r")
DELETE: Final = "d"
TRUNCATE: Final = "t"
DROP: Final = "x"


class TypedRow(Struct, frozen=True):
    """One change of a row of a table, or the end of all its rows so far.

    Attributes: `table` (int), the table's number; `version` (int), that of the schema it was written with;
    `operation` (str), as in the envelope, c, u, r or d, or t for a TRUNCATE and x for a DROP of the table;
    `order` (bytes), as `order_value` returns it; `key` (bytes or None), a payload of the key's schema, None
    without a primary key; `payload` (bytes), one of the envelope's schema, empty for a DROP; `absent` (tuple
    of str), the columns that the row after the change does not have.
    """

    table: int
    version: int
    operation: str
    order: bytes
    key: bytes | None
    payload: bytes
    absent: tuple[str, ...] = ()
