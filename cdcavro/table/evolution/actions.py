"""Actions of ALTER TABLE, each as an edit of a row's record."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from msgspec import structs

from cdcavro.change.model import Column
from cdcavro.errors import shown
from cdcavro.exact.jsontext import ABSENT
from cdcavro.exact.sqltype import is_same_type
from cdcavro.table.columns.column_type import column_type
from cdcavro.table.ddl.column_definition import binary_type
from cdcavro.table.ddl.cursor import dialect_of
from cdcavro.table.ddl.steps import (
    AddColumn,
    AddKey,
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
    RenameTo,
    SetDefault,
    SetNullable,
    TextToBytes,
)
from cdcavro.table.evolution.row_edit import RowEdit
from cdcavro.table.older_fields import avro_default, constant_of, default_text, older_value
from cdcavro.table.table_names import complete_name, source_of
from cdcavro.table.table_schema import (
    ATTRIBUTE,
    OLDER,
    attributes_of,
    avro_of,
    column_fields,
    column_name,
    without_attributes,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from cdcavro.change.model import Source
    from cdcavro.table.columns.column_type import ColumnType, TypeOverrides
    from cdcavro.table.ddl.cursor import Dialect
    from cdcavro.table.ddl.steps import Action
    from cdcavro.table.table_schema import TableColumn, TableSchema


def apply_actions(context: AlterContext, actions: Sequence[Action]) -> None:
    """Apply the actions of one statement. Raises `SchemaError`.

    Databases look up columns as they were before the statement: it may drop and add the same name, or
    swap two names.
    """
    _drop_all(context, [action for action in actions if isinstance(action, DropColumn)])
    _rename_all(context, [action for action in actions if isinstance(action, (RenameColumn, ChangeColumn))])
    for action in actions:
        _ACTIONS[type(action)](context, action)


class AlterContext:
    """What actions work with: the edit of the row's record, and how types are read.

    Fields:

    * `table` (`TableName`), the name of the table
    * `edit` (`RowEdit`), the edit of the row's record
    """

    def __init__(self, table: TableSchema, source: Source, given: TypeOverrides, edit: RowEdit | None = None) -> None:
        self.table = table.table
        self._db_type = source.db_type
        self.edit = RowEdit(table.record, is_folded=self.dialect.is_mysql) if edit is None else edit
        self._source = source_of(source, table.table)
        self._given = given

    @property
    def dialect(self) -> Dialect:
        """The dialect of the statement. Raises `DdlError`."""
        return dialect_of(self._db_type)

    def resolve(self, column: Column) -> ColumnType:
        """Return how the values of a column are read and stored."""
        return column_type(column, self._source, given=self._given.of(self._source, column.name))

    def add(
        self, column: Column, declared: ColumnDef | None = None, *, first: bool = False, after: str | None = None
    ) -> None:
        """Add a column with its type and default, and with the value that its definition gives it in older rows."""
        given = self._given.of(self._source, column.name)
        resolved = column_type(column, self._source, given=given)
        older = None if declared is None else older_value(declared, self.dialect)
        attributes, fill = column_attributes(column, resolved, given), avro_default(older, resolved)
        if declared is not None and declared.default is not None:
            attributes["default"] = default_text(declared.default)
        elif isinstance(older, Constant):
            attributes[OLDER] = default_text(older)
        self.edit.add(column.name or "", resolved.avro, attributes, fill=fill, first=first, after=after)
        if fill is ABSENT and older is not None and older != Constant(None):
            self.edit.steps.append(
                f"what {shown(column.name or '')} is in older rows is not known: {default_text(older)}"
            )

    def retype(self, name: str, column: Column) -> None:
        """Change the type of a column, if it differs."""
        field = self.edit.need(name)
        attributes = attributes_of(field)
        given = self._given.of(self._source, name) or attributes.get("given")
        resolved = column_type(column, self._source, given=given)
        is_alike = without_attributes(avro_of(field)) == without_attributes(resolved.avro)
        if (
            is_alike
            and is_same_type(attributes.get("type"), column.type)
            and column.code in (None, attributes.get("code"))
        ):
            return
        default = attributes.get(OLDER, attributes.get("default"))
        fill = ABSENT if default is None else avro_default(constant_of(default), resolved)
        changed = column_attributes(column, resolved, given)
        if fill is ABSENT and self._is_filled(field):
            # Another type, in the same version, may hold it again.
            changed[OLDER] = default
        self.edit.retype(name, resolved.avro, changed, fill=fill)

    def set_default(self, name: str, default: str | None) -> None:
        """Set a column's default for new rows. Older rows keep the default with which this version added the column."""
        field = self.edit.need(name)
        old = attributes_of(field)
        self.edit.set_default(name, default)
        if self._is_filled(field) and OLDER not in old and "default" in old:
            field[ATTRIBUTE] = attributes_of(field) | {OLDER: old["default"]}

    def _is_filled(self, field: dict[str, Any]) -> bool:
        """Return whether this very version added a column with a value in older rows."""
        return field.get("default") is not None and attributes_of(field).get("since", 1) == self.edit.version


def _drop_all(context: AlterContext, actions: Sequence[DropColumn]) -> None:
    context.edit.drop_all(
        [action.name for action in actions if not action.if_exists or context.edit.find(action.name) is not None]
    )


def _rename_all(context: AlterContext, actions: Sequence[RenameColumn | ChangeColumn]) -> None:
    pairs = [
        (action.old, action.new if isinstance(action, RenameColumn) else action.column.name, action.if_exists)
        for action in actions
    ]
    context.edit.rename_all([(old, new) for old, new, may in pairs if not may or context.edit.find(old) is not None])


def _add(context: AlterContext, action: AddColumn) -> None:
    column = action.column
    if action.if_not_exists and context.edit.find(column.name) is not None:
        return
    context.add(column_of(column, context.dialect), column, first=action.first, after=action.after)
    if column.key:
        context.edit.set_key([column.name])


def _modify(context: AlterContext, action: ModifyColumn) -> None:
    column = action.column
    if action.if_exists and context.edit.find(column.name) is None:
        return
    name = column_name(context.edit.need(column.name))
    if column.type is not None:
        context.retype(name, structs.replace(column_of(column, context.dialect), name=name))
    if column.default is not None or action.whole:
        _default(context, name, column.default)
    if column.key:
        context.edit.set_key([name])
    context.edit.move(name, first=action.first, after=action.after)


def _change(context: AlterContext, action: ChangeColumn) -> None:
    _modify(context, ModifyColumn(action.column, action.first, action.after, whole=True, if_exists=action.if_exists))


def _set_default(context: AlterContext, action: SetDefault) -> None:
    _default(context, action.name, action.default)


def _drop_default(context: AlterContext, action: DropDefault) -> None:
    _default(context, action.name, None)


def _default(context: AlterContext, name: str, default: Any) -> None:
    text = None if default is None else default_text(default)
    if attributes_of(context.edit.need(name)).get("default") != text:
        context.set_default(name, text)


def _set_nullable(context: AlterContext, action: SetNullable) -> None:
    # Every column is nullable in Avro, since a value that its type cannot carry becomes null.
    context.edit.need(action.name)


def _text_to_bytes(context: AlterContext, _: TextToBytes) -> None:
    for field in column_fields(context.edit.record):
        name, declared = column_name(field), str(attributes_of(field).get("type"))
        type = binary_type(declared)
        # LONG is MySQL's name of MEDIUMTEXT, and that of a number where a format states it.
        if type is not None and declared.upper() != "LONG" and context.edit.find(name) is field:
            context.retype(name, Column(name=name, type=type))


def _add_key(context: AlterContext, action: AddKey) -> None:
    if not (action.if_not_exists and context.edit.key):
        context.edit.set_key(action.names)


def _drop_key(context: AlterContext, _: DropKey) -> None:
    context.edit.set_key([])


def _nothing(_context: AlterContext, _action: Any) -> None:
    """Do nothing: the action was applied before, or a constraint's name does not tell whether it was the key."""


def _rename_to(context: AlterContext, action: RenameTo) -> None:
    context.edit.rename_table(complete_name(action.new, context.table))


def actions_between(first: TableSchema, last: TableSchema, names: frozenset[str]) -> tuple[Action, ...]:
    """Return what makes of a table with the columns of one version one with those of a later version.

    `names` are those of the table's columns. If they are others than in the first version, nothing is known but the names
    of columns: those that the later version lacks are dropped, and those that it has besides are added.
    """
    known: dict[str, TableColumn | None] = {column.name: column for column in first.columns}
    origins = {new: old for old, new in _descents(first, last).items()}
    if names not in (first.names, last.names):
        known, origins = dict.fromkeys(sorted(names)), {name: name for name in names & last.names}
    actions: list[Action] = [DropColumn(name) for name in known if name not in origins.values()]
    actions += [RenameColumn(old, new) for new, old in origins.items() if old != new]
    fields, others = newest_fields(last), newest_fields(first)
    for column, before in zip(last.columns, (None, *last.columns), strict=False):
        name, stated = column.name, attributes_of(fields[column.name])
        old = known.get(origins.get(name, ""))
        default = stated.get("default") if old is None else attributes_of(others[old.name]).get("default")
        if name not in origins:
            definition, default = _definition(fields[name])
            actions.append(AddColumn(definition, first=before is None, after=None if before is None else before.name))
        elif old is not None and column.type and (old.avro, old.type) != (column.avro, column.type):
            actions.append(ModifyColumn(ColumnDef(name, column.type)))
        if default != stated.get("default"):
            actions.append(SetDefault(name, _constant(stated["default"])) if "default" in stated else DropDefault(name))
    if {*last.key_names} != {name for name, old in origins.items() if old in first.key_names}:
        actions.append(AddKey(last.key_names) if last.key_names else DropKey())
    return tuple(actions)


def newest_fields(schema: TableSchema) -> dict[str, dict[str, Any]]:
    """Return the fields of the columns that a version writes, by their names."""
    return {column_name(field): field for field in column_fields(schema.record) if "until" not in attributes_of(field)}


def _definition(field: dict[str, Any]) -> tuple[ColumnDef, str | None]:
    """Return how a column was added, as far as its field shows it, and its default then, which is that of older rows."""
    stated = attributes_of(field)
    # What has no default is null in older rows, or what its type implies.
    is_implied = "default" not in stated and field.get("default") is None and OLDER in stated
    default = None if is_implied else stated.get(OLDER, stated.get("default"))
    nullable, value = False if is_implied else None, None if default is None else _constant(default)
    return ColumnDef(column_name(field), stated.get("type"), nullable, value), default


def _constant(text: str) -> Constant | Expression:
    return constant_of(text) or Expression(text)


def _descents(first: TableSchema, last: TableSchema) -> dict[str, str]:
    """Return what those columns of a version are called in a later one that it still has."""
    names = {
        own: column_name(field)
        for field in column_fields(last.record)
        for own in (field["name"], *field.get("aliases", ()))
    }
    found = {column.name: names.get(column.field) for column in first.columns}
    return {old: new for old, new in found.items() if new in last.names and new is not None}


def column_of(declared: ColumnDef, dialect: Dialect) -> Column:
    """Return a column as changes state it: MySQL turns BOOL into TINYINT(1)."""
    is_bool = dialect.is_mysql and declared.type is not None and declared.type.upper() in ("BOOL", "BOOLEAN")
    return Column(name=declared.name, type="tinyint(1)" if is_bool else declared.type)


def column_attributes(column: Column, resolved: ColumnType, given: str | None) -> dict[str, Any]:
    """Return the content of the attribute `cdc` of a column."""
    attributes = {"type": column.type, "code": column.code, "note": resolved.note, "given": given}
    return {key: value for key, value in attributes.items() if value is not None}


_ACTIONS: Final[dict[type, Callable[[AlterContext, Any], None]]] = {
    AddColumn: _add,
    DropColumn: _nothing,
    RenameColumn: _nothing,
    ModifyColumn: _modify,
    ChangeColumn: _change,
    SetDefault: _set_default,
    DropDefault: _drop_default,
    SetNullable: _set_nullable,
    AddKey: _add_key,
    DropKey: _drop_key,
    DropConstraint: _nothing,
    RenameTo: _rename_to,
    TextToBytes: _text_to_bytes,
}
