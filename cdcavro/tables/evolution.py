"""The next version of a table's schema, by a statement or by a list of columns.

A renamed column keeps its values through an alias. One whose type became another that its values do
not read as ends, and a new field begins, so that nothing is lost and nothing read as what it is not.
A column that is added has, in older rows, the constant that it was added with; a default that is set
later is for newer rows only.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from msgspec import structs

from cdcavro.change import Column, Source
from cdcavro.columns.constants import constant
from cdcavro.columns.given import GivenTypes
from cdcavro.columns.types import column_type
from cdcavro.columns.values import MISFIT
from cdcavro.ddl import parse_ddl
from cdcavro.ddl_steps import (
    AddColumn,
    AddKey,
    AlterTable,
    ChangeColumn,
    ColumnDef,
    Constant,
    DropColumn,
    DropConstraint,
    DropDefault,
    DropKey,
    Expression,
    ModifyColumn,
    RenameColumn,
    RenameTable,
    RenameTo,
    SetDefault,
    SetNullable,
    TableName,
)
from cdcavro.declared import declared_type
from cdcavro.errors import SchemaError, shown
from cdcavro.scalars import plain_text
from cdcavro.tables.edits import RowEdit, column_name
from cdcavro.tables.schema import ENVELOPE, TableSchema, as_schema, column_field, from_schema, said_of, table_schema
from cdcavro.types import ABSENT, Record
from cdcavro.verdict import Note, Verdict, verdict

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from cdcavro.columns.types import ColumnType
    from cdcavro.ddl_steps import CreateTable, Step
    from cdcavro.schema import Schema

MAX_COLUMNS: Final = 10_000
NONE_GIVEN: Final = GivenTypes.from_mapping({})


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
    given: GivenTypes = NONE_GIVEN,
) -> Evolution:
    """Give the next version of a table's schema, by a DDL statement or by a list of the table's columns.

    `source` says the database type, which tells the dialect, and the format, which tells how types
    are to be read. What a statement says of other tables changes nothing. A list of columns does not
    tell a rename: the old name is dropped and the new one added. Raises `DdlError`, `SchemaError`.

    >>> from cdcavro.schema import parse_schema
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
    found = verdict(made.row, table.row)
    found = replace(found, notes=(*found.notes, *_ended(made, table)))
    return Evolution(_as_given(schema, made), tuple(steps), found)


def by_statement(
    table: TableSchema, ddl: str, source: Source, given: GivenTypes = NONE_GIVEN
) -> tuple[TableSchema, list[str]]:
    """Give the version after a statement, and what was done. Raises `DdlError`, `SchemaError`."""
    done: list[str] = []
    for step in parse_ddl(ddl, source.db_type, database=table.table.database):
        table, steps = by_step(table, step, source, given)
        done += steps
    return table, done


def by_step(
    table: TableSchema, step: Step, source: Source, given: GivenTypes = NONE_GIVEN
) -> tuple[TableSchema, list[str]]:
    """Give the version after a step, and what was done; the same version if the step is not about it. Raises `SchemaError`."""
    if isinstance(step, RenameTable) and is_about(step.old, table.table):
        edit = RowEdit(table.record)
        edit.rename_table(completed(step.new, table.table))
        return _finished(table, edit)
    if isinstance(step, AlterTable) and is_about(step.table, table.table):
        edit = RowEdit(table.record)
        maker = _Maker(edit, source, given, table.table)
        for action in step.actions:
            _ACTIONS[type(action)](maker, action)
        return _finished(table, edit)
    return table, []


def by_columns(
    table: TableSchema,
    columns: Sequence[Column],
    source: Source,
    given: GivenTypes = NONE_GIVEN,
    *,
    is_new: bool = True,
) -> tuple[TableSchema, list[str]]:
    """Give the version with exactly these columns in this order, and what was done.

    Unless it `is_new`, it is the same version, which nothing was written in yet. Raises `SchemaError`.
    """
    check_columns(columns)
    edit = RowEdit(table.record, is_new=is_new)
    maker = _Maker(edit, source, given, table.table)
    wanted = {one.name: one for one in columns if one.name is not None}
    for old in table.columns:
        if old.name not in wanted:
            edit.drop(old.name)
    before: str | None = None
    for name, column in wanted.items():
        found = edit.find(name)
        if found is None or column_name(found) != name:
            maker.add(column, first=before is None, after=before)
        else:
            maker.retype(name, column)
            edit.move_behind(name, before)
        before = name
    return _finished(table, edit)


def created(
    table: TableName,
    columns: Sequence[Column],
    key: Sequence[str] = (),
    source: Source | None = None,
    given: GivenTypes = NONE_GIVEN,
) -> TableSchema:
    """Make the first version of a table's schema of its columns and the names of its key. Raises `SchemaError`."""
    source = source or Source()
    check_columns(columns)
    fields: list[dict[str, Any]] = []
    for column in columns:
        name = column.name or ""
        held = column_type(column, source, given=given.of(source, name))
        taken = [*RESERVED, *(one["name"] for one in fields)]
        fields.append(column_field(name, taken, held.avro, since=1, said=_said(column, held)))
    return table_schema(table, fields, [name for name in key if any(one.name == name for one in columns)])


def columns_of(step: CreateTable) -> tuple[Column, ...]:
    """Give the columns that a statement creates a table with."""
    return tuple(Column(name=one.name, type=one.type) for one in step.columns)


RESERVED: Final = ("unparsed", "absent")


def check_columns(columns: Sequence[Column]) -> None:
    """Check a list of columns: at most 10,000, each with a name of its own. Raises `SchemaError`."""
    names = [one.name for one in columns]
    if len(names) > MAX_COLUMNS:
        raise SchemaError("columns", f"more than {MAX_COLUMNS}")
    if None in names:
        raise SchemaError("columns", "one has no name")
    if len(set(names)) != len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise SchemaError("columns", f"{shown(twice)} stands there twice")


def is_about(named: TableName, table: TableName) -> bool:
    """Tell whether a statement's name is that of a table; what one of the two leaves out is not compared."""
    pairs = ((named.database, table.database), (named.schema, table.schema))
    return named.table == table.table and all(one is None or other is None or one == other for one, other in pairs)


def completed(name: TableName, other: TableName) -> TableName:
    """Give a statement's name with what it leaves out of another."""
    database = other.database if name.database is None else name.database
    return TableName(database, other.schema if name.schema is None else name.schema, name.table)


class _Maker:
    """What actions need beside the edit: how types are read."""

    def __init__(self, edit: RowEdit, source: Source, given: GivenTypes, table: TableName) -> None:
        self.edit = edit
        self.table = table
        self._source = structs.replace(source, database=table.database, schema=table.schema, table=table.table)
        self._given = given

    def held(self, column: Column) -> ColumnType:
        """Give how a column's values are held."""
        return column_type(column, self._source, given=self._given.of(self._source, column.name or ""))

    def add(self, column: Column, default: Any = None, *, first: bool = False, after: str | None = None) -> None:
        """Add a column."""
        held = self.held(column)
        fill, said = ABSENT, _said(column, held)
        if isinstance(default, (Constant, Expression)):
            said["default"] = _spelled(default)
        if isinstance(default, Constant) and default.value is not None:
            fill = _fill(default, held)
        self.edit.add(column.name or "", held.avro, said, fill=fill, first=first, after=after)
        if isinstance(default, Expression) or (fill is ABSENT and _is_value(default)):
            self.edit.steps.append(f"what {shown(column.name)} is in older rows is not known: {_spelled(default)}")

    def retype(self, name: str, column: Column) -> bool:
        """Give a column another type, if it is another."""
        field = self.edit.need(name)
        said, held = said_of(field), self.held(column)
        if is_same_type(said.get("type"), column.type) and said.get("code") == column.code:
            return False
        return self.edit.retype(name, held.avro, _said(column, held))


def is_same_type(one: str | None, other: str | None) -> bool:
    """Tell whether two declared types are one, spelled in two ways.

    >>> is_same_type("DECIMAL(10, 2)", "decimal(10,2)"), is_same_type("int", "bigint")
    (True, False)
    """
    if one is None or other is None:
        return one == other
    return one == other or declared_type(one) == declared_type(other)


def _add(maker: _Maker, action: AddColumn) -> None:
    column = action.column
    if action.if_not_exists and maker.edit.find(column.name) is not None:
        return
    maker.add(_column(column), column.default, first=action.first, after=action.after)
    if column.key:
        maker.edit.set_key([column.name])


def _drop(maker: _Maker, action: DropColumn) -> None:
    if not action.if_exists or maker.edit.find(action.name) is not None:
        maker.edit.drop(action.name)


def _rename(maker: _Maker, action: RenameColumn) -> None:
    if not action.if_exists or maker.edit.find(action.old) is not None:
        maker.edit.rename(action.old, action.new)


def _modify(maker: _Maker, action: ModifyColumn) -> None:
    column = action.column
    if action.if_exists and maker.edit.find(column.name) is None:
        return
    name = column_name(maker.edit.need(column.name))
    if column.type is not None:
        maker.retype(name, Column(name=name, type=column.type))
    if column.default is not None or action.whole:
        _default(maker, name, column.default)
    maker.edit.move(name, first=action.first, after=action.after)


def _change(maker: _Maker, action: ChangeColumn) -> None:
    if action.if_exists and maker.edit.find(action.old) is None:
        return
    maker.edit.rename(action.old, action.column.name)
    _modify(maker, ModifyColumn(action.column, first=action.first, after=action.after, whole=True))


def _set_default(maker: _Maker, action: SetDefault) -> None:
    _default(maker, action.name, action.default)


def _drop_default(maker: _Maker, action: DropDefault) -> None:
    _default(maker, action.name, None)


def _default(maker: _Maker, name: str, default: Any) -> None:
    spelled = None if default is None else _spelled(default)
    if said_of(maker.edit.need(name)).get("default") != spelled:
        maker.edit.set_default(name, spelled)


def _set_nullable(maker: _Maker, action: SetNullable) -> None:
    # Every column may be null in Avro: a value that its type cannot carry is.
    maker.edit.need(action.name)


def _add_key(maker: _Maker, action: AddKey) -> None:
    maker.edit.set_key(list(action.names))


def _drop_key(maker: _Maker, _: DropKey) -> None:
    maker.edit.set_key([])


def _drop_constraint(_maker: _Maker, _action: DropConstraint) -> None:
    """Change nothing: by its name alone it is not known whether it was the key."""


def _rename_to(maker: _Maker, action: RenameTo) -> None:
    maker.edit.rename_table(completed(action.new, maker.table))


_ACTIONS: Final[dict[type, Callable[[_Maker, Any], None]]] = {
    AddColumn: _add,
    DropColumn: _drop,
    RenameColumn: _rename,
    ModifyColumn: _modify,
    ChangeColumn: _change,
    SetDefault: _set_default,
    DropDefault: _drop_default,
    SetNullable: _set_nullable,
    AddKey: _add_key,
    DropKey: _drop_key,
    DropConstraint: _drop_constraint,
    RenameTo: _rename_to,
}


def _finished(table: TableSchema, edit: RowEdit) -> tuple[TableSchema, list[str]]:
    record = edit.finish()
    return (TableSchema(as_schema(record)) if edit.steps else table), edit.steps


def _ended(made: TableSchema, table: TableSchema) -> list[Note]:
    """Say which columns a new field takes over from: data is read, but under another name."""
    written = {one.field for one in table.columns}
    newer = {one.name: one.field for one in made.columns}
    return [
        Note("backward", f"$.{one.field}", f"column {shown(one.name)} is in {newer[one.name]} from now on")
        for one in made.all_columns
        if one.until is not None and one.field in written and one.name in newer
    ]


def _as_given(schema: TableSchema | Schema, made: TableSchema) -> TableSchema | Schema:
    if isinstance(schema, TableSchema):
        return made
    is_envelope = isinstance(schema.root, Record) and schema.root.name.rpartition(".")[2] == ENVELOPE
    return made.envelope if is_envelope else made.row


def _column(declared: ColumnDef) -> Column:
    return Column(name=declared.name, type=declared.type)


def _said(column: Column, held: ColumnType) -> dict[str, Any]:
    said = {"type": column.type, "code": column.code, "note": held.note}
    return {key: value for key, value in said.items() if value is not None}


def _fill(default: Constant, held: ColumnType) -> Any:
    """Give a constant as the default of an Avro field; `ABSENT` where its type cannot carry it."""
    value = default.value
    datum = constant(f"x'{value.hex()}'" if isinstance(value, bytes) else value, held)  # type: ignore[arg-type]
    if datum is MISFIT:
        return ABSENT
    return datum.decode("iso-8859-1") if isinstance(datum, bytes) else datum


def _is_value(default: Any) -> bool:
    return isinstance(default, Constant) and default.value is not None


def _spelled(default: Constant | Expression) -> str:
    if isinstance(default, Expression):
        return default.text
    value = default.value
    if isinstance(value, str):
        return "'" + value.replace("'", "''") + "'"
    if isinstance(value, bytes):
        return f"x'{value.hex()}'"
    return "NULL" if value is None else str(value).upper() if isinstance(value, bool) else plain_text(value)
