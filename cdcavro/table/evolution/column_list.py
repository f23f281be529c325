"""Lists of columns in a form that compares equal however statements and messages spell their types."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, NamedTuple

from cdcavro.change.model import Column
from cdcavro.change.values.unsigned import with_unsigned
from cdcavro.errors import SchemaError, shown
from cdcavro.exact.sqltype import canonical
from cdcavro.table.evolution.promotion import without_attributes

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cdcavro.change.model import Change
    from cdcavro.table.schema import TableSchema


ColumnMarks = frozenset[tuple[Any, ...]]


class ColumnList(NamedTuple):
    """What a list of columns states.

    Attributes: `declared` (set of marks), each column's name, its Avro type, and its declared type in
    canonical spelling; `resolved` (set of marks), each column's name and Avro type: a list fits every
    version with an equal `resolved`.
    """

    declared: ColumnMarks
    resolved: ColumnMarks


def mark_of(name: str | None, declared: str | None, avro: Any) -> tuple[Any, ...]:
    """Return the mark of a column, which is the same however a statement spells the column's type."""
    return name, json.dumps(without_attributes(avro), sort_keys=True), canonical(declared)


def listed_of(marks: Sequence[tuple[Any, ...]]) -> ColumnList:
    """Return the `ColumnList` of columns with these marks."""
    return ColumnList(frozenset(marks), frozenset(mark[:2] for mark in marks))


def columns_of_version(schema: TableSchema) -> list[Column]:
    """Return the columns of a version as they were declared."""
    return [Column(name=column.name, type=column.type, code=column.code) for column in schema.columns]


def list_of_version(schema: TableSchema) -> ColumnList:
    """Return the columns of a version as a list that others are held against."""
    return listed_of([mark_of(column.name, column.type, column.avro) for column in schema.columns])


def only_version(versions: Sequence[TableSchema], listed: ColumnList, change: Change) -> TableSchema | None:
    """Return the version that the columns of a change fit, whose list is given, if it is one whatever the time."""
    columns = change.columns or ()
    if any(with_unsigned(columns, version.columns) is not columns for version in versions):
        return None
    fitting = [version for version in versions if list_of_version(version).resolved == listed.resolved]
    return fitting[0] if len(fitting) == 1 else None


def contradiction(listed: ColumnList, schema: TableSchema) -> SchemaError:
    """Return the error for a list of columns that no version has; `schema` is the version of its time."""
    own = list_of_version(schema)
    name = min(str(mark[0]) for mark in listed.resolved ^ own.resolved) if listed.resolved != own.resolved else ""
    return SchemaError(schema.table.table, f"column {shown(name)} is not as in version {schema.version}, nor any other")
