"""Lists of columns in a form that compares equal however statements and messages spell their types."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from cdcavro.change.connect_values import with_unsigned
from cdcavro.change.model import Column
from cdcavro.errors import SchemaError, shown
from cdcavro.exact.sqltype import canonical
from cdcavro.table.columns.column_type import column_type
from cdcavro.table.evolution.promotion import without_attributes

if TYPE_CHECKING:
    from cdcavro.change.model import Change, Source
    from cdcavro.table.columns.overrides import TypeOverrides
    from cdcavro.table.schema import TableSchema


Marks = Sequence[tuple[Any, ...]]


class ColumnList(NamedTuple):
    """What a list of columns states, as digests, which take little room for any number of columns.

    Attributes: `declared` (bytes), of each column's name, its Avro type, and its declared type in canonical
    spelling; `resolved` (bytes), of each column's name and Avro type: a list fits every version with an equal
    `resolved`.
    """

    declared: bytes
    resolved: bytes


def mark_of(name: str | None, declared: str | None, avro: Any) -> tuple[Any, ...]:
    """Return the mark of a column, which is the same however a statement spells the column's type."""
    return name, json.dumps(without_attributes(avro), sort_keys=True), canonical(declared)


def marks_of(columns: Sequence[Column], source: Source, given: TypeOverrides, schema: TableSchema) -> Marks:
    """Return the marks of columns as a source means them; types that the user gave for a version's columns hold."""
    known = {column.name: column.given for column in schema.columns if column.given is not None}
    marks = []
    for column in columns:
        own = given.of(source, column.name) or known.get(column.name or "")
        marks.append(mark_of(column.name, column.type, column_type(column, source, given=own).avro))
    return marks


def listed_of(marks: Marks) -> ColumnList:
    """Return the `ColumnList` of columns with these marks."""
    return ColumnList(_digest(marks), _digest([mark[:2] for mark in marks]))


def _digest(marks: Marks) -> bytes:
    return hashlib.blake2b("\n".join(sorted({repr(mark) for mark in marks})).encode(), digest_size=16).digest()


def columns_of_version(schema: TableSchema) -> list[Column]:
    """Return the columns of a version as they were declared."""
    return [Column(name=column.name, type=column.type, code=column.code) for column in schema.columns]


def list_of_version(schema: TableSchema) -> ColumnList:
    """Return the columns of a version as a list that others are held against."""
    return listed_of(_marks_of_version(schema))


def _marks_of_version(schema: TableSchema) -> Marks:
    return [mark_of(column.name, column.type, column.avro) for column in schema.columns]


def only_version(versions: Sequence[TableSchema], listed: ColumnList, change: Change) -> TableSchema | None:
    """Return the version that the columns of a change fit, whose list is given, if it is one whatever the time."""
    columns = change.columns or ()
    if any(with_unsigned(columns, version.columns) is not columns for version in versions):
        return None
    fitting = [version for version in versions if list_of_version(version).resolved == listed.resolved]
    return fitting[0] if len(fitting) == 1 else None


def contradiction(marks: Marks, schema: TableSchema) -> SchemaError:
    """Return the error for columns with marks that no version has; `schema` is the version of their time."""
    differing = {mark[:2] for mark in marks} ^ {mark[:2] for mark in _marks_of_version(schema)}
    name = min((str(mark[0]) for mark in differing), default="")
    return SchemaError(schema.table.table, f"column {shown(name)} is not as in version {schema.version}, nor any other")
