"""Column types: all Avro types that the columns of any format and database can have, and a version that has them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from cdcavro.change.model import Column, Source
from cdcavro.table import TableName
from cdcavro.table.columns.column_type import column_type
from cdcavro.table.columns.format_rules import RULES, USUAL
from cdcavro.table.columns.type_names import TYPES
from cdcavro.table.table_names import NameAllocator
from cdcavro.table.table_schema import column_field, table_schema

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cdcavro.table.table_schema import TableSchema

ARGUMENTS = ("", "(1)", "(9)", "(20)", "(38,18)", "(40,2)", "(12,4)")
ENDS = ("", " unsigned", "[]", " with time zone")


def typed_columns() -> list[Any]:
    """Return the Avro types, as JSON values, each once."""
    found: dict[str, Any] = {}
    for format in RULES:
        words = {**RULES[format].words, **USUAL.words}
        for database, named in TYPES.items():
            source = Source(format=format, db_type=database or "mysql")
            for name in {*named, *words, *TYPES[None], "geography"}:
                for type in (f"{name}{arguments}{end}" for arguments in ARGUMENTS for end in ENDS):
                    avro = column_type(Column(name="c", type=type), source).avro
                    found.setdefault(json.dumps(avro, sort_keys=True), avro)
    return list(found.values())


def version_of(types: Sequence[Any], table: TableName | None = None) -> TableSchema:
    """Return a version of a table with a key, `id`, and a column of each type, `c0` and so on."""
    names = NameAllocator(())
    columns = {"id": "int"} | {f"c{i}": avro for i, avro in enumerate(types)}
    fields = [column_field(name, names, avro, since=1, attributes={}) for name, avro in columns.items()]
    return table_schema(table or TableName("shop", None, "t"), fields, ["id"])
