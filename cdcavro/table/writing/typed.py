"""Typed changes and typed rows: changes as payloads of their tables' versions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

from cdcavro.change.model import Change  # noqa: TC001  msgspec reads the types of fields
from cdcavro.change.order import split_key_change
from cdcavro.table.history import Table  # noqa: TC001
from cdcavro.table.schema import TableSchema  # noqa: TC001

if TYPE_CHECKING:
    from collections.abc import Sequence


class TypedChange(Struct, frozen=True):
    """A change of a table's rows as Avro payloads.

    Attributes: `table` (`Table`); `schema` (`TableSchema`), the version it was written with; `key` (bytes
    or None), a payload of the key's schema, None without a primary key; `payload` (bytes), a payload of
    the envelope's schema; `change` (`Change`), the change itself.
    """

    table: Table
    schema: TableSchema
    key: bytes | None
    payload: bytes
    change: Change

    @property
    def absent(self) -> tuple[str, ...]:
        """The columns that the row after the change does not have; none where there is no such row."""
        after = self.change.after
        return () if after is None else tuple(one.name for one in self.schema.columns if one.name not in after)


class TypedPayload(Struct, frozen=True):
    """A row of a message as Avro payloads.

    Attributes: `table` (`Table`); `schema` (`TableSchema`), the version it was written with; `op` (str), what the
    change did, as in `Change`; `key` (bytes or None), a payload of the key's schema, None without a primary key;
    `payload` (bytes), a payload of the envelope's schema.
    """

    table: Table
    schema: TableSchema
    op: str
    key: bytes | None
    payload: bytes


def row_changes(change: Change) -> list[Change]:
    """Return a change as it is written: an update of its key as a delete and an insert."""
    return [change] if change.op == "TRUNCATE" else split_key_change(change)


def has_all(change: Change, key: Sequence[str]) -> bool:
    """Return whether the rows before and after a change both have all columns of a key."""
    return all(image is not None and name in image for name in key for image in (change.before, change.after))
