"""Unsigned integers of 64 bits, which Kafka Connect has no type for: a column of plain integers may have been one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Protocol

from cdcavro.change.model import replace
from cdcavro.exact.caching import IdentityCache
from cdcavro.exact.sqltype import parse_sql_type

if TYPE_CHECKING:
    from collections.abc import Container, Sequence

    from cdcavro.change.model import Column

PLAIN_LONG: Final = "int64"


class Declared(Protocol):
    """A column with its declared type, a `Column` or a table's own."""

    @property
    def name(self) -> str | None:
        """The name."""

    @property
    def type(self) -> str | None:
        """The declared type."""


def with_unsigned(columns: tuple[Column, ...], known: Sequence[Declared]) -> tuple[Column, ...]:
    """Return the columns of a change, plain 64-bit integers being unsigned where the table's known columns are.

    >>> from cdcavro.change.model import Column
    >>> with_unsigned((Column(name="n", type="int64"),), [Column(name="n", type="BIGINT(20) UNSIGNED")])
    (Column(name='n', type='BIGINT(20) UNSIGNED', code=None),)
    """
    if not _HAVE_PLAIN_LONGS.of(columns):
        return columns
    types = unsigned_types(known)
    if not may_be_unsigned(columns, types):
        return columns
    return tuple(
        replace(column, type=types.get(column.name, PLAIN_LONG)) if column.type == PLAIN_LONG else column
        for column in columns
    )


def may_be_unsigned(columns: Sequence[Column], names: Container[str | None]) -> bool:
    """Return whether a plain 64-bit integer among the columns has one of these names, those of unsigned columns."""
    return any(column.type == PLAIN_LONG and column.name in names for column in columns)


def unsigned_types(columns: Sequence[Declared]) -> dict[str | None, str]:
    """Return the types of the columns that are declared as unsigned integers of 64 bits, by their names."""
    return {column.name: column.type for column in columns if column.type is not None and is_unsigned(column.type)}


def is_unsigned(declared: str) -> bool:
    """Return whether a declared type is an unsigned integer of 64 bits."""
    sql_type = parse_sql_type(declared)
    return sql_type.unsigned and sql_type.name in ("BIGINT", "SERIAL")


def _have_plain_longs(columns: tuple[Column, ...], _: object) -> bool:
    return any(column.type == PLAIN_LONG for column in columns)


_HAVE_PLAIN_LONGS: Final = IdentityCache(_have_plain_longs)
