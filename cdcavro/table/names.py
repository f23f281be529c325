"""Names of tables: in statements, in changes, and as namespaces of Avro."""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING, Final

from msgspec import structs

from cdcavro.avro.types import PRIMITIVES
from cdcavro.errors import StructureError, shown
from cdcavro.table.ddl.steps import TableName

if TYPE_CHECKING:
    from collections.abc import Iterable

    from cdcavro.change.model import Source

ROW: Final = "Value"
# Where a table is in a schema and the database is not known: as no name is written.
_NO_DATABASE: Final = "_x_0"


MAX_LENGTH: Final = 255
_RESERVED: Final = PRIMITIVES | {"record", "enum", "array", "map", "union", "fixed", "error", "request"}
_UNFIT: Final = re.compile(r"_(?=x[0-9a-f]*[^A-Za-z0-9])|[^A-Za-z0-9_]|^[0-9]|^\Z")
_EMPTY: Final = "_x_"
_GROUP: Final = re.compile(r"_x([0-9a-f]{1,5}|10[0-9a-f]{4})_|_x_[0-9]+\Z")


def namespace_of(table: TableName) -> str:
    """Return the namespace of a table's records, one for each table: how many names it has tells which are missing."""
    parts = [mangle(one) for one in (table.database, table.schema, table.table) if one is not None]
    if table.schema is not None and table.database is None:
        parts = [_NO_DATABASE, *parts]
    return ".".join(parts)


def renamed(full: str, table: TableName) -> str:
    """Return the full name of a record of others under a table's new name.

    >>> renamed("shop.orders", TableName(None, None, "o2")), renamed("srv.shop.orders.Value", TableName("b", None, "o2"))
    ('shop.o2', 'srv.b.o2.Value')
    """
    above, container, name, below = taken_apart(full)
    into = table.database if table.schema is None else table.schema
    container = container if into in (None, container) or container is None else mangle(into or "")
    parts = [*above, *([] if container is None else [container]), name if name == table.table else mangle(table.table)]
    return ".".join([*parts, *below])


def taken_apart(full: str) -> tuple[list[str], str | None, str, list[str]]:
    """Take the full name of a row's record apart: what is above, database or schema, table, and what is below.

    A record named `Value` is the row of the table that its namespace names, as Debezium has it.
    """
    parts = full.split(".")
    below = [parts.pop()] if parts[-1] == ROW and len(parts) > 1 else []
    name = parts.pop()
    return parts[:-1], parts[-1] if parts else None, name, below


def table_name_parts(table: TableName) -> dict[str, str]:
    """Return the true names of a table that there are."""
    statement_table = {"database": table.database, "schema": table.schema, "table": table.table}
    return {name: value for name, value in statement_table.items() if value is not None}


def table_name_of(source: Source) -> TableName | None:
    """Return the name of the table that a change is about; on OceanBase a tenant stands before the database."""
    if source.table is None:
        return None
    database = source.database if source.tenant is None else f"{source.tenant}.{source.database or ''}"
    return TableName(database, source.schema, source.table)


def statement_table(name: TableName, source: Source) -> TableName:
    """Return a statement's name with what it leaves out; on OceanBase with the tenant, as the changes of rows have it."""
    full = completed(name, TableName(source.database, source.schema, name.table))
    if source.tenant is None:
        return full
    return TableName(f"{source.tenant}.{full.database or ''}", full.schema, full.table)


def is_about(statement_table: TableName, table: TableName) -> bool:
    """Return whether a statement's name is that of a table; what one of the two leaves out is not compared."""
    pairs = ((statement_table.database, table.database), (statement_table.schema, table.schema))
    return statement_table.table == table.table and all(
        one is None or other is None or one == other for one, other in pairs
    )


def completed(name: TableName, other: TableName) -> TableName:
    """Return a statement's name with what it leaves out of another."""
    database = other.database if name.database is None else name.database
    return TableName(database, other.schema if name.schema is None else name.schema, name.table)


def source_of(source: Source, table: TableName) -> Source:
    """Return a source with the names of a table; its database, on OceanBase, without the tenant."""
    database = table.database
    if source.tenant is not None and database is not None:
        database = database.removeprefix(f"{source.tenant}.")
    return structs.replace(source, database=database, schema=table.schema, table=table.table)


class NameAllocator:
    """Names in Avro's form that no other may have, in capitals or not, since Spark does not tell those apart.

    >>> taken = NameAllocator(["id"])
    >>> taken.give("ID"), taken.give("id"), taken.give("name")
    ('_x49__x44_', 'id_x_2', 'name')
    """

    def __init__(self, names: Iterable[str] = ()) -> None:
        self._names = set(names)
        self._lowered = Counter(one.lower() for one in self._names)

    def __len__(self) -> int:
        return len(self._names)

    def give(self, name: str, *, own: Iterable[str] = ()) -> str:
        """Return a name in Avro's form, which is taken from now on.

        `own` are those that whoever it is given to has had, and may have again. Raises as `mangle`.
        """
        made = mangle(name)
        for one in own:
            self._release(one)
        if made.lower() in self._lowered:
            made = self._apart(name, made)
        for one in (*own, made):
            self.add(one)
        return made

    def add(self, made: str) -> None:
        """Take a name that is in Avro's form already."""
        if made not in self._names:
            self._names.add(made)
            self._lowered[made.lower()] += 1

    def _release(self, made: str) -> None:
        self._names.remove(made)
        self._lowered[made.lower()] -= 1
        if not self._lowered[made.lower()]:
            del self._lowered[made.lower()]

    def _apart(self, name: str, made: str) -> str:
        """Return a name with all letters as groups; where it is taken itself, or that is too, with a number behind it."""
        if made not in self._names:
            spelled = "".join(_group_of(one) if one.isalpha() or one == "_" else one for one in name)
            spelled = re.sub(r"[^A-Za-z0-9_]|^[0-9]", _group, spelled)
            if spelled.lower() not in self._lowered:
                return spelled
        number = 2
        while f"{made}_x_{number}".lower() in self._lowered:
            number += 1
        return f"{made}_x_{number}"


def mangle(name: str) -> str:
    """Return a name as one of Avro's.

    Avro's own words (`string`, `null`, …) are written with a group in front. Raises `StructureError`
    for a name of more than 255 characters.

    >>> mangle("customer_id"), mangle("we ird"), mangle("1st"), mangle("string")
    ('customer_id', 'we_x20_ird', '_x31_st', '_x73_tring')
    """
    if len(name) > MAX_LENGTH:
        raise StructureError(f"a name of at most {MAX_LENGTH} characters", f"{shown(name)} of {len(name)}")
    if name in _RESERVED:
        return _group_of(name[0]) + name[1:]
    return _UNFIT.sub(_group, name) or _EMPTY


def unmangle(name: str) -> str:
    """Undo `mangle`.

    >>> unmangle("we_x20_ird"), unmangle("id_x_2")
    ('we ird', 'id')
    """
    if name == _EMPTY:
        return ""
    return _GROUP.sub(lambda found: chr(int(found[1], 16)) if found[1] else "", name)


def _group(found: re.Match[str]) -> str:
    return _group_of(found[0]) if found[0] else _EMPTY


def _group_of(char: str) -> str:
    return f"_x{ord(char):x}_"
