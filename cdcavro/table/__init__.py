"""Layer 3, table: typed tables whose schemas follow their columns and DDL statements.

Names are imported when first used, since not every program needs tables.
"""

from importlib import import_module as _import_module
from typing import TYPE_CHECKING as _TYPE_CHECKING

if _TYPE_CHECKING:
    from cdcavro.table.columns.column_type import TypeOverrides
    from cdcavro.table.ddl.steps import TableName
    from cdcavro.table.evolution.evolve import create_table, evolve, table_schema_of
    from cdcavro.table.table_schema import TableSchema
    from cdcavro.table.tables import Tables, TypedChange, TypedPayload
    from cdcavro.table.writing.message_typer import MessageTyper

__all__ = [
    "MessageTyper",
    "TableName",
    "TableSchema",
    "Tables",
    "TypeOverrides",
    "TypedChange",
    "TypedPayload",
    "create_table",
    "evolve",
    "table_schema_of",
]

_HOMES = {
    "MessageTyper": "writing.message_typer",
    "TableName": "ddl.steps",
    "TableSchema": "table_schema",
    "Tables": "tables",
    "TypeOverrides": "columns.column_type",
    "TypedChange": "tables",
    "TypedPayload": "tables",
    "create_table": "evolution.evolve",
    "evolve": "evolution.evolve",
    "table_schema_of": "evolution.evolve",
}


def __getattr__(name: str) -> object:
    """Return a public name, importing its module on first use."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(_import_module(f"{__name__}.{_HOMES[name]}"), name)
