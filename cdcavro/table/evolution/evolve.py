"""The next version of a table's schema, made by a statement or from a list of columns, and the limits of all tables.

A renamed column keeps its values through an alias. If a column's type changes so that old values do
not read as the new type, its field ends and a new field begins: nothing is lost, and nothing is
misread. An added column has, in older rows, the constant default it was added with; a default that
is set later applies to newer rows only.

What is remembered of lists of columns is within limits of memory that all tables of a stream share.
"""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from msgspec import structs

from cdcavro.avro.compatibility import Remark, Verdict, verdict
from cdcavro.avro.schema import define_at_first_use, defined_name, definitions, write_full_names
from cdcavro.change.model import Column, Source
from cdcavro.errors import SchemaError, shown
from cdcavro.exact.caching import WeightedCache, text_size, weight_of
from cdcavro.table.columns.column_type import TypeOverrides, column_type
from cdcavro.table.ddl.cursor import MAX_COLUMNS, dialect_of
from cdcavro.table.ddl.parse import parse_ddl
from cdcavro.table.ddl.steps import AlterTable, RenameTable, TableName
from cdcavro.table.evolution.actions import AlterContext, apply_actions, column_attributes, column_of
from cdcavro.table.evolution.row_edit import RowEdit
from cdcavro.table.table_names import NameAllocator, complete_name, is_about, source_of, table_name_of
from cdcavro.table.table_schema import (
    MISSING,
    UNPARSED,
    TableSchema,
    as_schema,
    column_field,
    from_schema,
    is_envelope,
    row_of,
    states_true_names,
    table_schema,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from cdcavro.avro.schema import Schema
    from cdcavro.change.model import Change
    from cdcavro.table.ddl.steps import CreateTable, Step

MAX_KEPT: Final = 256 << 20
# In characters of the schemas that one text of statements makes, since each version costs as much as its whole schema.
MAX_AT_ONCE: Final = 2 << 20
_UNCOUNTED: Final = -1
# What is remembered of a list of columns: the indexes of the versions of its changes, and its `ColumnDigests`.
SETTLED: Final = "ready"
DIGESTS: Final = "listed"
# In columns, as `weight_of` counts them; each takes about half a kilobyte.
_REMEMBERED: Final = 50_000
_CHARACTERS: Final = 500
# What a count takes beside the name that is counted.
_COUNT: Final = 150
OTHERS: Final = "other columns"


class SharedLimits:
    """What all tables of a stream share.

    Fields:

    * `left` (int), how many bytes may still be kept
    * `edits` (int), how often a table, its versions or its name were changed
    * `remembered` (`WeightedCache`), facts of lists of columns, as long as there is room
    * `counted` (int), how many names were counted in this process
    """

    __slots__ = ("_taken", "counted", "edits", "left", "remembered")

    def __init__(self) -> None:
        self.left = MAX_KEPT
        self.edits = self.counted = 0
        self._taken = _UNCOUNTED
        self.remembered = WeightedCache(_REMEMBERED)

    def __getstate__(self) -> tuple[int, int]:
        """Return the state for another process, which remembers for itself."""
        return self.left, self.edits

    def __setstate__(self, state: tuple[int, int]) -> None:
        """Restore the state that another process returned from `__getstate__`."""
        self.__init__()  # type: ignore[misc]
        self.left, self.edits = state

    def begin(self) -> None:
        """Begin a text of statements, whose schemas are counted until `end`."""
        self._taken = 0

    def end(self) -> None:
        """End a text of statements."""
        self._taken = _UNCOUNTED

    def take(self, schema: TableSchema, texts: Iterable[str | None] = (), more: int = 0) -> None:
        """Reserve the bytes of a version, of the texts that are kept with it, and `more` bytes.

        Raises `SchemaError` if too few are left, or if one text makes many schemas of more than 2 Mi characters in all.
        """
        length = len(schema.row.json)
        if self._taken > 0 and self._taken + length > MAX_AT_ONCE:
            raise SchemaError(schema.table.table, f"one text makes schemas of more than {MAX_AT_ONCE} characters")
        self.reserve(schema.size + text_size(texts) + more, schema.table.table)
        if self._taken != _UNCOUNTED:
            self._taken += length

    def recall(self, of: str, edit: int, columns: tuple[Column, ...], source: Source) -> Any:
        """Return what is remembered of the columns of a source since an edit of a table, or None."""
        return self.remembered.get((of, edit, columns, source))

    def remember(self, of: str, edit: int, columns: tuple[Column, ...], source: Source, value: object) -> None:
        """Remember something of the columns of a source since an edit of a table."""
        weight = weight_of(columns) + text_size(structs.astuple(source)) // _CHARACTERS
        self.remembered.put((of, edit, columns, source), value, weight)

    def check(self, size: int, table: str) -> None:
        """Raise `SchemaError` if fewer bytes are left."""
        if size > self.left:
            raise SchemaError(table, f"all tables and their versions take more than {MAX_KEPT} bytes")

    def reserve(self, size: int, table: str) -> None:
        """Reserve bytes for a table, or give some back. Raises `SchemaError` if too few are left."""
        self.check(size, table)
        self.left -= size

    def count(self, counts: Counter[str], names: Iterable[str]) -> None:
        """Count names, those for which there is no room together as `OTHERS`."""
        for name in names:
            known = name if name in counts or self._has_room(name) else OTHERS
            counts[known] += 1
            self.counted += 1

    def _has_room(self, name: str) -> bool:
        size = _COUNT + text_size([name])
        is_room = size <= self.left
        self.left -= size if is_room else 0
        return is_room


NONE_GIVEN: Final = TypeOverrides.from_mapping({})


@dataclass(frozen=True, slots=True)
class Evolution:
    """The next version of a schema."""

    # Of the same kind as the schema that evolved: a `TableSchema`, or a `Schema` of a row or an envelope.
    schema: Any
    # What was done, in sentences; empty if nothing changed.
    steps: tuple[str, ...]
    # Whether the new schema reads what the old one wrote, and the other way round.
    verdict: Verdict


def evolve(
    schema: TableSchema | Schema,
    by: str | Sequence[Column],
    *,
    source: Source | None = None,
    given: TypeOverrides = NONE_GIVEN,
) -> Evolution:
    """Return the next version of a table's schema, given a DDL statement or a list of the table's columns.

    `source` (`Source`) names the database type, which selects the dialect, and the format, which decides
    how types are read; `given` (`TypeOverrides`) holds types that replace the stated ones. What a
    statement says about other tables has no effect. A list of columns cannot express a rename: the old
    name is dropped and the new one added. Raises `DdlError`, `SchemaError`.

    >>> from cdcavro.avro.schema import parse_schema
    >>> row = '{"type":"record","name":"t","fields":[{"name":"a","type":["null","int"],"default":null}]}'
    >>> evolution = evolve(parse_schema(row), "ALTER TABLE t RENAME COLUMN a TO b, ADD c INT NOT NULL DEFAULT 5")
    >>> evolution.steps
    ("column 'a' renamed to 'b'", "column 'c' added: 5 in older rows")
    >>> evolution.verdict.name
    'full'
    """
    table = schema if isinstance(schema, TableSchema) else from_schema(schema)
    source = source or Source()
    if isinstance(by, str):
        evolved_table, steps = by_statement(table, by, source, given)
    else:
        evolved_table, steps = by_columns(table, by, source, given)
    if evolved_table is table:
        return Evolution(schema, (), verdict(table.row, table.row))
    if isinstance(schema, TableSchema):
        return Evolution(evolved_table, tuple(steps), _judge(evolved_table.row, table.row, evolved_table, table))
    evolved = with_row(schema, evolved_table)
    return Evolution(evolved, tuple(steps), _judge(evolved, schema, evolved_table, table))


def by_statement(
    table: TableSchema, ddl: str, source: Source, given: TypeOverrides = NONE_GIVEN
) -> tuple[TableSchema, list[str]]:
    """Return the version after a statement, and sentences on what was done. Raises `DdlError`, `SchemaError`."""
    done: list[str] = []
    room = SharedLimits()
    room.begin()
    for step in parse_ddl(ddl, source.db_type, database=table.table.database):
        table, steps = by_step(table, step, source, given)
        done += steps
        if steps:
            room.take(table)
    return table, done


def by_step(
    table: TableSchema, step: Step, source: Source, given: TypeOverrides = NONE_GIVEN
) -> tuple[TableSchema, list[str]]:
    """Return the version after a step, and sentences on what was done.

    If the step is about another table, return the same version. Raises `SchemaError`.
    """
    if isinstance(step, RenameTable) and is_about(step.old, table.table):
        edit = RowEdit(table.record)
        edit.rename_table(complete_name(step.new, table.table))
        return _finish(table, edit)
    if isinstance(step, AlterTable) and is_about(step.table, table.table):
        context = AlterContext(table, source, given)
        apply_actions(context, step.actions)
        return _finish(table, context.edit)
    return table, []


def by_columns(
    table: TableSchema,
    columns: Sequence[Column],
    source: Source,
    given: TypeOverrides = NONE_GIVEN,
    *,
    key: Sequence[str] | None = None,
    is_new: bool = True,
) -> tuple[TableSchema, list[str]]:
    """Return the version with exactly these columns in this order, and sentences on what was done.

    `key` are the names of the key columns, None if unknown. Unless `is_new`, the result replaces the same
    version, with which nothing has been written yet. Raises `SchemaError`.
    """
    check_columns(columns)
    context = AlterContext(table, source, given, RowEdit(table.record, is_new=is_new, is_folded=False))
    wanted = {column.name: column for column in columns if column.name is not None}
    known = {column.name for column in table.columns}
    context.edit.drop_all([column.name for column in table.columns if column.name not in wanted])
    for name, column in wanted.items():
        if name in known:
            context.retype(name, column)
        else:
            context.add(column)
    context.edit.arrange(list(wanted))
    # In another order it is the same key.
    if key is not None and wanted.keys() >= set(key) != {*context.edit.key}:
        context.edit.set_key(key)
    return _finish(table, context.edit)


def create_table(
    table: TableName,
    columns: Sequence[Column],
    key: Sequence[str] = (),
    source: Source | None = None,
    given: TypeOverrides = NONE_GIVEN,
) -> TableSchema:
    """Return the first version of a table's schema, made from its name and columns.

    `key` are the names of the key columns, ignored unless all of them are among the columns; duplicates count once.
    `source` (`Source`) decides how types are read; `given` (`TypeOverrides`) holds types that replace the stated ones.
    Raises `SchemaError`.
    """
    check_columns(columns)
    source = source_of(source or Source(), table)
    names = NameAllocator((UNPARSED, MISSING))
    fields: list[dict[str, Any]] = []
    for column in columns:
        given_type = given.of(source, column.name)
        resolved = column_type(column, source, given=given_type)
        attributes = column_attributes(column, resolved, given_type)
        fields.append(column_field(column.name or "", names, resolved.avro, since=1, attributes=attributes))
    own = dict.fromkeys(key) if {column.name for column in columns}.issuperset(key) else ()
    return table_schema(table, fields, list(own))


def table_schema_of(change: Change, *, given: TypeOverrides = NONE_GIVEN) -> TableSchema:
    """Return the first version of a table's schema, made from one change.

    Its columns are those that the change states, or else those that its rows have; `given`
    (`TypeOverrides`) holds types that replace the stated ones. Raises `SchemaError`, also for a change
    without a table.

    >>> from cdcavro.transcoding.mapping import to_changes
    >>> text = '{"type":"INSERT","table":"t","pkNames":["id"],"mysqlType":{"id":"int"},"data":[{"id":7}]}'
    >>> table_schema_of(to_changes(text, "oms_canal")[0]).columns[0].avro
    'int'
    """
    table = table_name_of(change.source)
    if table is None:
        raise SchemaError("$", "the change is of no table")
    names = dict.fromkeys(name for image in (change.before, change.after) for name in image or ())
    columns = change.columns or [Column(name=name) for name in names]
    return create_table(table, columns, change.key or (), change.source, given)


def columns_of_statement(step: CreateTable, source: Source) -> tuple[Column, ...]:
    """Return the columns with which a statement creates a table."""
    dialect = dialect_of(source.db_type)
    return tuple(column_of(column, dialect) for column in step.columns)


def check_columns(columns: Sequence[Column]) -> None:
    """Check a list of columns: at most 4,096, each with a name of its own. Raises `SchemaError`."""
    names = [column.name for column in columns]
    if len(names) > MAX_COLUMNS:
        raise SchemaError("columns", f"more than {MAX_COLUMNS}")
    if None in names:
        raise SchemaError("columns", "one has no name")
    if len(set(names)) != len(names):
        (name, _), *_ = Counter(names).most_common(1)
        raise SchemaError("columns", f"{shown(name)} stands there twice")


def _judge(new: Schema, old: Schema, new_table: TableSchema, old_table: TableSchema) -> Verdict:
    judged = verdict(new, old)
    return replace(judged, notes=(*judged.notes, *_remarks_on_older_fields(new_table, old_table)))


def _finish(table: TableSchema, edit: RowEdit) -> tuple[TableSchema, list[str]]:
    record = edit.finish()
    return (TableSchema(as_schema(record)) if edit.steps else table), edit.steps


def _remarks_on_older_fields(new_table: TableSchema, old_table: TableSchema) -> list[Remark]:
    """Return remarks on columns that a new field took over: their old data is read under another name."""
    written = {column.field for column in old_table.columns}
    newer = {column.name: column.field for column in new_table.columns}
    return [
        Remark("backward", f"$.{column.field}", f"column {shown(column.name)} is in {newer[column.name]} from now on")
        for column in new_table.all_columns
        if column.until is not None and column.field in written and column.name in newer
    ]


def with_row(schema: Schema, table: TableSchema) -> Schema:
    """Return a row's or an envelope's schema with the next version of its row. Raises `SchemaError`."""
    declared = json.loads(schema.json)
    if not is_envelope(declared):
        return table.row
    if states_true_names(table.record):
        return table.envelope
    write_full_names(declared)
    known = definitions(declared)
    old, new = _full_name(row_of(declared) or {}), _full_name(table.record)
    for field in declared["fields"]:
        field["type"] = _replace_row(field["type"], old, new, table.record)
    known = {name: record for name, record in known.items() if name != old} | definitions(table.record)
    space, _, name = _full_name(declared).rpartition(".")
    if space == old.rpartition(".")[0] != new.rpartition(".")[0]:
        aliases = [alias if "." in alias or not space else f"{space}.{alias}" for alias in declared.get("aliases", ())]
        declared["aliases"] = list(dict.fromkeys([*aliases, f"{space}.{name}".lstrip(".")]))
        declared["namespace"], declared["name"] = new.rpartition(".")[0], name
    return as_schema(define_at_first_use(declared, known))


def _full_name(declared: dict[str, Any]) -> str:
    return defined_name(declared, "") or ""


def _replace_row(declared: Any, old: str, new: str, row: dict[str, Any]) -> Any:
    """Return a type with the old record's definition replaced by the new record, and its name by the new name."""
    if isinstance(declared, list):
        return [_replace_row(branch, old, new, row) for branch in declared]
    if declared == old:
        return new
    return (
        row
        if isinstance(declared, dict) and declared.get("type") == "record" and _full_name(declared) == old
        else declared
    )
