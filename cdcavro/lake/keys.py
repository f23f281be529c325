"""The keys of a table's versions: whether a row has the same key in all of them."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final

from cdcavro.errors import SchemaError
from cdcavro.table.fields import avro_of, column_name

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cdcavro.table.schema import TableSchema

# Avro writes both in the same way.
_INTEGERS: Final = ("int", "long")


def check_keys(versions: Sequence[TableSchema]) -> None:
    """Raise `SchemaError` unless the keys of all versions of a table have the same bytes for the same row.

    A column of the key may be renamed, and an int may become a long. With other columns, or in another type,
    rows of older versions would not be found by the keys of newer ones.
    """
    keyed = [schema for schema in versions if schema.key is not None]
    for old, new in pairwise(keyed):
        fields, others = _key_fields(old), _key_fields(new)
        if len(fields) != len(others) or not all(map(_is_same, fields, others)):
            was, now = (", ".join(map(column_name, listed)) for listed in (fields, others))
            reason = f"its key ({was}) is ({now}) from version {new.version} on, under which older rows are not found"
            raise SchemaError(new.table.table, reason)


def _key_fields(schema: TableSchema) -> list[dict[str, Any]]:
    by_field = {field["name"]: field for field in schema.record["fields"]}
    names = {column.name: column.field for column in schema.columns}
    return [by_field[names[name]] for name in schema.key_names]


def _is_same(old: dict[str, Any], new: dict[str, Any]) -> bool:
    kept = old["name"] == new["name"] or old["name"] in new.get("aliases", ())
    types = avro_of(old), avro_of(new)
    return kept and (types[0] == types[1] or (types[0] in _INTEGERS and types[1] in _INTEGERS))
