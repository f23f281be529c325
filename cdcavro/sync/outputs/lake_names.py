"""Names of a pipeline's tables in the lake, and what identifies the pipeline there."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from cdcavro.lake.escaped_names import caseless_name
from cdcavro.table.ddl.steps import TableName

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from cdcavro.table.history import Table


class Job(NamedTuple):
    """What identifies a pipeline."""

    id: str
    # The tables that it wrote when lake tables did not say whose they are.
    unmarked: frozenset[TableName]


class LakeNames:
    """What each table is called in the lake; `names` maps numbers to names, as another one had them.

    A table keeps the name that it had when it was first written. A table that takes the name of one that was dropped
    goes on with its lake table. A number is put behind a name that another table still has, or that differs from
    another's only in letter case or in the normal form of Unicode.
    """

    def __init__(self, names: Mapping[int, TableName] | None = None) -> None:
        self.names: dict[int, TableName] = dict(names or {})
        self._numbers: dict[tuple[str | None, ...], list[int]] = {}
        for number, name in self.names.items():
            self._numbers.setdefault(caseless_name(name), []).append(number)

    def name(self, table: Table, tables: Sequence[Table]) -> TableName:
        """Return the name of a table in the lake."""
        known = self.names.get(table.number)
        if known is not None:
            return known
        own = table.schema.table
        name, count = own, 1
        while self._is_taken(name, tables):
            count += 1
            name = TableName(own.database, own.schema, f"{own.table}~{count}")
        self.names[table.number] = name
        self._numbers.setdefault(caseless_name(name), []).append(table.number)
        return name

    def _is_taken(self, name: TableName, tables: Sequence[Table]) -> bool:
        """Return whether an existing table has a name, or any has one that differs in letter case or normal form."""
        numbers = self._numbers.get(caseless_name(name), ())
        return any(name != self.names[number] or not tables[number].is_gone for number in numbers)

    def label(self, table: Table) -> str:
        """Return the name of a table in the lake for people: its own if it is not written yet."""
        name = self.names.get(table.number, table.schema.table)
        return ".".join(part for part in (name.database, name.schema, name.table) if part is not None)

    @property
    def state(self) -> list[list[Any]]:
        """The names as a JSON value."""
        return [[number, name.database, name.schema, name.table] for number, name in sorted(self.names.items())]

    @classmethod
    def of(cls, state: Sequence[Sequence[Any]]) -> LakeNames:
        """Return the names that `state` returned."""
        return cls({number: TableName(*parts) for number, *parts in state})
