"""Names of tables: in statements, in changes, and as namespaces of Avro."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from msgspec import structs

from cdcavro.table.ddl.steps import TableName
from cdcavro.table.mangling import mangle

if TYPE_CHECKING:
    from cdcavro.change.model import Source

ROW: Final = "Value"
# Where a table is in a schema and the database is not known: as no name is written.
_NO_DATABASE: Final = "_x_0"


def namespace_of(table: TableName) -> str:
    """Give the namespace of a table's records, one for each table: how many names it has tells which are missing."""
    parts = [mangle(one) for one in (table.database, table.schema, table.table) if one is not None]
    if table.schema is not None and table.database is None:
        parts = [_NO_DATABASE, *parts]
    return ".".join(parts)


def renamed(full: str, table: TableName) -> str:
    """Give the full name of a record of others under a table's new name.

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


def names_of(table: TableName) -> dict[str, str]:
    """Give the true names of a table that there are."""
    named = {"database": table.database, "schema": table.schema, "table": table.table}
    return {name: value for name, value in named.items() if value is not None}


def table_of(source: Source) -> TableName | None:
    """Give the name of the table that a change is about; on OceanBase a tenant stands before the database."""
    if source.table is None:
        return None
    database = source.database if source.tenant is None else f"{source.tenant}.{source.database or ''}"
    return TableName(database, source.schema, source.table)


def named(name: TableName, source: Source) -> TableName:
    """Give a statement's name with what it leaves out; on OceanBase with the tenant, as the changes of rows have it."""
    full = completed(name, TableName(source.database, source.schema, name.table))
    if source.tenant is None:
        return full
    return TableName(f"{source.tenant}.{full.database or ''}", full.schema, full.table)


def is_about(named: TableName, table: TableName) -> bool:
    """Tell whether a statement's name is that of a table; what one of the two leaves out is not compared."""
    pairs = ((named.database, table.database), (named.schema, table.schema))
    return named.table == table.table and all(one is None or other is None or one == other for one, other in pairs)


def completed(name: TableName, other: TableName) -> TableName:
    """Give a statement's name with what it leaves out of another."""
    database = other.database if name.database is None else name.database
    return TableName(database, other.schema if name.schema is None else name.schema, name.table)


def source_of(source: Source, table: TableName) -> Source:
    """Give a source with the names of a table; its database, on OceanBase, without the tenant."""
    database = table.database
    if source.tenant is not None and database is not None:
        database = database.removeprefix(f"{source.tenant}.")
    return structs.replace(source, database=database, schema=table.schema, table=table.table)
