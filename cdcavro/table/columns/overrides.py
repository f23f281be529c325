"""Types that the user gives for columns, in a file or a mapping.

    {"shop.orders": {"amount": "decimal(10,2)"}, "orders": {"id": "int"}, "*": {"created_at": "timestamp"}}

A table is given as `database.table`, as `table` for any database, or as `*` for all tables. For each
column the most specific entry counts. A column's name matches exactly, or else regardless of case.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from cdcavro.errors import FileError, TextError, shown
from cdcavro.exact.jsontext import parse
from cdcavro.table.columns.column_type import is_known

if TYPE_CHECKING:
    from cdcavro.change.model import Source

ALL: Final = "*"


@dataclass(frozen=True, slots=True)
class TypeOverrides:
    """The types that the user gives for columns.

    Attributes: `tables`, a mapping from `database.table`, `table` or `*` (str) to a mapping from column
    name (str) to type (str). Use `from_mapping` to make one, since it checks the types.

    >>> from cdcavro.change.model import Source
    >>> given = TypeOverrides.from_mapping({"shop.orders": {"amount": "decimal(10,2)"}, "*": {"AMOUNT": "double"}})
    >>> given.of(Source(database="shop", table="orders"), "amount"), given.of(Source(table="orders"), "amount")
    ('decimal(10,2)', 'double')
    """

    tables: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    _folded: Mapping[str, Mapping[str, str]] = field(default_factory=dict, repr=False, compare=False)

    @classmethod
    def from_mapping(cls, tables: Mapping[str, Mapping[str, str]], *, file: str = "types") -> TypeOverrides:
        """Return the types of a mapping, checked and copied. Raises `FileError`, which names `file`."""
        if not isinstance(tables, Mapping):
            raise FileError(file, "an object from table to columns", shown(repr(tables)))
        for table, columns in tables.items():
            _check_columns(file, table, columns)
        return cls(
            {table: dict(columns) for table, columns in tables.items()},
            {table: _folded(columns) for table, columns in tables.items()},
        )

    def of(self, source: Source, column: str | None) -> str | None:
        """Return the type given for a column of a source's table, or None."""
        if column is None or not self.tables:
            return None
        for table in _names(source):
            type = self.tables.get(table, {}).get(column) or self._folded.get(table, {}).get(column.casefold())
            if type is not None:
                return type
        return None


def read_types(file: str | Path) -> TypeOverrides:
    """Return the types in a JSON file. Raises `FileError`, and `OSError` for a file that cannot be read."""
    raw = Path(file).read_bytes()
    try:
        tables = parse(raw)
    except TextError as error:
        raise FileError(str(file), error.expected, error.got) from error
    return TypeOverrides.from_mapping(tables, file=str(file))


def _check_columns(file: str, table: Any, columns: Any) -> None:
    if not isinstance(table, str) or not table:
        raise FileError(file, "a table's name, database.table or *", shown(repr(table)))
    if not isinstance(columns, Mapping):
        raise FileError(file, f"an object from column to type for {shown(table)}", shown(repr(columns)))
    for name, type in columns.items():
        if not isinstance(name, str) or not isinstance(type, str):
            raise FileError(file, f"the text of a type for {shown(table)} {shown(name)}", shown(repr(type)))
        if not _is_known(type):
            raise FileError(file, f"a type that is known for {shown(table)} {shown(name)}", shown(type))


def _names(source: Source) -> list[str]:
    """Return the names under which a table may be listed, most specific first."""
    if source.table is None:
        return [ALL]
    return [*([] if source.database is None else [f"{source.database}.{source.table}"]), source.table, ALL]


def _folded(columns: Mapping[str, str]) -> dict[str, str]:
    """Return the types by case-folded name, without names that differ in case only."""
    times = Counter(name.casefold() for name in columns)
    return {name.casefold(): type for name, type in columns.items() if times[name.casefold()] == 1}


_is_known: Final = lru_cache(maxsize=256)(is_known)
