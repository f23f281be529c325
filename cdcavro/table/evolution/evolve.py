"""The next version of a table's schema, by a statement or by a list of columns.

A renamed column keeps its values through an alias. One whose type became another that its values do
not read as ends, and a new field begins, so that nothing is lost and nothing read as what it is not.
A column that is added has, in older rows, the constant that it was added with; a default that is set
later is for newer rows only.
"""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from cdcavro.avro.compatibility import Remark, Verdict, verdict
from cdcavro.avro.definitions import defined_name, definitions, pin, settled
from cdcavro.change.model import Column, Source
from cdcavro.errors import SchemaError, shown
from cdcavro.table.columns.column_type import column_type
from cdcavro.table.columns.overrides import TypeOverrides
from cdcavro.table.ddl.parse import parse_ddl
from cdcavro.table.ddl.steps import AlterTable, RenameTable, TableName
from cdcavro.table.ddl.tokens import dialect_of
from cdcavro.table.evolution.alter import AlterContext, apply_actions, column_of, said_by
from cdcavro.table.evolution.row_edit import MAX_COLUMNS, RowEdit
from cdcavro.table.fields import MISSING, UNPARSED, column_field, is_own
from cdcavro.table.names import NameAllocator, completed, is_about, source_of, table_name_of
from cdcavro.table.schema import TableSchema, as_schema, from_schema, is_envelope, row_of, table_schema

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cdcavro.avro.schema import Schema
    from cdcavro.change.model import Change
    from cdcavro.table.ddl.steps import CreateTable, Step

NONE_GIVEN: Final = TypeOverrides.from_mapping({})


@dataclass(frozen=True, slots=True)
class Evolution:
    """The next version of a schema.

    Attributes: `schema`, as what was given: a `TableSchema`, or a `Schema` of a row or an envelope;
    `steps` (tuple of str), what was done, in sentences, empty if nothing changed; `verdict`, whether
    the new schema reads what the old one wrote, and the other way round.
    """

    schema: Any
    steps: tuple[str, ...]
    verdict: Verdict


def evolve(
    schema: TableSchema | Schema,
    by: str | Sequence[Column],
    *,
    source: Source | None = None,
    given: TypeOverrides = NONE_GIVEN,
) -> Evolution:
    """Return the next version of a table's schema, by a DDL statement or by a list of the table's columns.

    `source` says the database type, which tells the dialect, and the format, which tells how types
    are to be read. What a statement says of other tables changes nothing. A list of columns does not
    tell a rename: the old name is dropped and the new one added. Raises `DdlError`, `SchemaError`.

    >>> from cdcavro.avro.schema import parse_schema
    >>> row = '{"type":"record","name":"t","fields":[{"name":"a","type":["null","int"],"default":null}]}'
    >>> made = evolve(parse_schema(row), "ALTER TABLE t RENAME COLUMN a TO b, ADD c INT NOT NULL DEFAULT 5")
    >>> made.steps
    ("column 'a' renamed to 'b'", "column 'c' added: 5 in older rows")
    >>> made.verdict.name
    'full'
    """
    table = schema if isinstance(schema, TableSchema) else from_schema(schema)
    source = source or Source()
    if isinstance(by, str):
        made, steps = by_statement(table, by, source, given)
    else:
        made, steps = by_columns(table, by, source, given)
    if made is table:
        return Evolution(schema, (), verdict(table.row, table.row))
    if isinstance(schema, TableSchema):
        return Evolution(made, tuple(steps), _judged(made.row, table.row, made, table))
    evolved = with_row(schema, made)
    return Evolution(evolved, tuple(steps), _judged(evolved, schema, made, table))


def by_statement(
    table: TableSchema, ddl: str, source: Source, given: TypeOverrides = NONE_GIVEN
) -> tuple[TableSchema, list[str]]:
    """Return the version after a statement, and what was done. Raises `DdlError`, `SchemaError`."""
    done: list[str] = []
    for step in parse_ddl(ddl, source.db_type, database=table.table.database):
        table, steps = by_step(table, step, source, given)
        done += steps
    return table, done


def by_step(
    table: TableSchema, step: Step, source: Source, given: TypeOverrides = NONE_GIVEN
) -> tuple[TableSchema, list[str]]:
    """Return the version after a step, and what was done; the same version if the step is not about it. Raises `SchemaError`."""
    if isinstance(step, RenameTable) and is_about(step.old, table.table):
        edit = RowEdit(table.record)
        edit.rename_table(completed(step.new, table.table))
        return _finished(table, edit)
    if isinstance(step, AlterTable) and is_about(step.table, table.table):
        maker = AlterContext(table, source, given)
        apply_actions(maker, step.actions)
        return _finished(table, maker.edit)
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
    """Return the version with exactly these columns in this order, and what was done.

    `key` is the names of its key, None if they are not known. Unless it `is_new`, it is the same
    version, which nothing was written in yet. Raises `SchemaError`.
    """
    check_columns(columns)
    maker = AlterContext(table, source, given, RowEdit(table.record, is_new=is_new, is_folded=False))
    wanted = {one.name: one for one in columns if one.name is not None}
    known = {one.name for one in table.columns}
    maker.edit.drop_all([one.name for one in table.columns if one.name not in wanted])
    for name, column in wanted.items():
        if name in known:
            maker.retype(name, column)
        else:
            maker.add(column)
    maker.edit.arrange(list(wanted))
    if key is not None and wanted.keys() >= set(key):
        maker.edit.set_key(key)
    return _finished(table, maker.edit)


def create_table(
    table: TableName,
    columns: Sequence[Column],
    key: Sequence[str] = (),
    source: Source | None = None,
    given: TypeOverrides = NONE_GIVEN,
) -> TableSchema:
    """Make the first version of a table's schema of its columns and the names of its key, if it has all of those.

    Raises `SchemaError`.
    """
    check_columns(columns)
    source = source_of(source or Source(), table)
    taken = NameAllocator((UNPARSED, MISSING))
    fields: list[dict[str, Any]] = []
    for column in columns:
        own = given.of(source, column.name)
        held = column_type(column, source, given=own)
        fields.append(column_field(column.name or "", taken, held.avro, since=1, said=said_by(column, held, own)))
    return table_schema(table, fields, key if {one.name for one in columns}.issuperset(key) else ())


def table_schema_of(change: Change, *, given: TypeOverrides = NONE_GIVEN) -> TableSchema:
    """Make the first version of a table's schema from one change: of its columns, or of those that its rows have.

    Raises `SchemaError`, also for a change of no table.

    >>> from cdcavro.transcoding.mapping import to_changes
    >>> text = '{"type":"INSERT","table":"t","pkNames":["id"],"mysqlType":{"id":"int"},"data":[{"id":7}]}'
    >>> table_schema_of(to_changes(text, "oms_canal")[0]).columns[0].avro
    'int'
    """
    table = table_name_of(change.source)
    if table is None:
        raise SchemaError("$", "the change is of no table")
    names = dict.fromkeys(name for image in (change.before, change.after) for name in image or ())
    columns = [Column(name=name) for name in names] if change.columns is None else change.columns
    return create_table(table, columns, change.key or (), change.source, given)


def columns_of_statement(step: CreateTable, source: Source) -> tuple[Column, ...]:
    """Return the columns that a statement creates a table with."""
    dialect = dialect_of(source.db_type)
    return tuple(column_of(one, dialect) for one in step.columns)


def check_columns(columns: Sequence[Column]) -> None:
    """Check a list of columns: at most 10,000, each with a name of its own. Raises `SchemaError`."""
    names = [one.name for one in columns]
    if len(names) > MAX_COLUMNS:
        raise SchemaError("columns", f"more than {MAX_COLUMNS}")
    if None in names:
        raise SchemaError("columns", "one has no name")
    if len(set(names)) != len(names):
        (name, _), *_ = Counter(names).most_common(1)
        raise SchemaError("columns", f"{shown(name)} stands there twice")


def _judged(new: Schema, old: Schema, made: TableSchema, table: TableSchema) -> Verdict:
    found = verdict(new, old)
    return replace(found, notes=(*found.notes, *_ended(made, table)))


def _finished(table: TableSchema, edit: RowEdit) -> tuple[TableSchema, list[str]]:
    record = edit.finish()
    return (TableSchema(as_schema(record)) if edit.steps else table), edit.steps


def _ended(made: TableSchema, table: TableSchema) -> list[Remark]:
    """Say which columns a new field takes over from: data is read, but under another name."""
    written = {one.field for one in table.columns}
    newer = {one.name: one.field for one in made.columns}
    return [
        Remark("backward", f"$.{one.field}", f"column {shown(one.name)} is in {newer[one.name]} from now on")
        for one in made.all_columns
        if one.until is not None and one.field in written and one.name in newer
    ]


def with_row(schema: Schema, made: TableSchema) -> Schema:
    """Return a schema, of which `from_schema` gave the table, with the next version of its row. Raises `SchemaError`."""
    declared = json.loads(schema.json)
    if not is_envelope(declared):
        return made.row
    if is_own(made.record):
        return made.envelope
    pin(declared)
    known = definitions(declared)
    old, new = _full(row_of(declared) or {}), _full(made.record)
    for one in declared["fields"]:
        one["type"] = _with(one["type"], old, new, made.record)
    known = {name: one for name, one in known.items() if name != old} | definitions(made.record)
    space, _, name = _full(declared).rpartition(".")
    if space == old.rpartition(".")[0] != new.rpartition(".")[0]:
        aliases = [one if "." in one or not space else f"{space}.{one}" for one in declared.get("aliases", ())]
        declared["aliases"] = list(dict.fromkeys([*aliases, f"{space}.{name}".lstrip(".")]))
        declared["namespace"], declared["name"] = new.rpartition(".")[0], name
    return as_schema(settled(declared, known))


def _full(declared: dict[str, Any]) -> str:
    return defined_name(declared, "") or ""


def _with(declared: Any, old: str, new: str, row: dict[str, Any]) -> Any:
    """Put a row's record where the old one is defined, and its name where that is named."""
    if isinstance(declared, list):
        return [_with(one, old, new, row) for one in declared]
    if declared == old:
        return new
    return (
        row if isinstance(declared, dict) and declared.get("type") == "record" and _full(declared) == old else declared
    )
