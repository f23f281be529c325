"""The actions of ALTER TABLE, each as an edit of a row's record."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from msgspec import structs

from cdcavro.change.model import Column
from cdcavro.errors import shown
from cdcavro.exact.members import ABSENT
from cdcavro.exact.sqltype import is_same_type
from cdcavro.table.columns.column_type import column_type
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
    ModifyColumn,
    RenameColumn,
    RenameTo,
    SetDefault,
    SetNullable,
)
from cdcavro.table.ddl.tokens import dialect_of
from cdcavro.table.evolution.defaults import constant_of, default_text, filling
from cdcavro.table.evolution.promotion import without_attributes
from cdcavro.table.evolution.row_edit import RowEdit
from cdcavro.table.fields import avro_of, column_name, said_of
from cdcavro.table.names import completed, source_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from cdcavro.change.model import Source
    from cdcavro.table.columns.column_type import ColumnType
    from cdcavro.table.columns.overrides import TypeOverrides
    from cdcavro.table.ddl.steps import Action
    from cdcavro.table.ddl.tokens import Dialect
    from cdcavro.table.schema import TableSchema


def apply_actions(maker: AlterContext, actions: Sequence[Action]) -> None:
    """Take the actions of one statement. Raises `SchemaError`.

    Databases look columns up as they were before it: it may drop and add one name, or swap two.
    """
    _drop_all(maker, [one for one in actions if isinstance(one, DropColumn)])
    _rename_all(maker, [one for one in actions if isinstance(one, (RenameColumn, ChangeColumn))])
    for action in actions:
        _ACTIONS[type(action)](maker, action)


class AlterContext:
    """What actions need beside the edit: how types are read."""

    def __init__(self, table: TableSchema, source: Source, given: TypeOverrides, edit: RowEdit | None = None) -> None:
        self.table = table.table
        self._db_type = source.db_type
        self.edit = RowEdit(table.record, is_folded=self.dialect.is_mysql) if edit is None else edit
        self._source = source_of(source, table.table)
        self._given = given

    @property
    def dialect(self) -> Dialect:
        """That of the statement. Raises `DdlError`."""
        return dialect_of(self._db_type)

    def add(self, column: Column, default: Any = None, *, first: bool = False, after: str | None = None) -> None:
        """Add a column."""
        given = self._given.of(self._source, column.name)
        held = column_type(column, self._source, given=given)
        said, fill = said_by(column, held, given), filling(default, held)
        if default is not None:
            said["default"] = default_text(default)
        self.edit.add(column.name or "", held.avro, said, fill=fill, first=first, after=after)
        if fill is ABSENT and default not in (None, Constant(None)):
            self.edit.steps.append(f"what {shown(column.name)} is in older rows is not known: {default_text(default)}")

    def retype(self, name: str, column: Column) -> None:
        """Return a column another type, if it is another."""
        field = self.edit.need(name)
        said = said_of(field)
        given = self._given.of(self._source, name) or said.get("given")
        held = column_type(column, self._source, given=given)
        is_alike = without_attributes(avro_of(field)) == without_attributes(held.avro)
        if is_alike and is_same_type(said.get("type"), column.type) and column.code in (None, said.get("code")):
            return
        default = said.get("default")
        fill = ABSENT if default is None else filling(constant_of(default), held)
        self.edit.retype(name, held.avro, said_by(column, held, given), fill=fill)


def _drop_all(maker: AlterContext, actions: Sequence[DropColumn]) -> None:
    maker.edit.drop_all([one.name for one in actions if not one.if_exists or maker.edit.find(one.name) is not None])


def _rename_all(maker: AlterContext, actions: Sequence[RenameColumn | ChangeColumn]) -> None:
    pairs = [(one.old, one.new if isinstance(one, RenameColumn) else one.column.name, one.if_exists) for one in actions]
    maker.edit.rename_all([(old, new) for old, new, may in pairs if not may or maker.edit.find(old) is not None])


def _add(maker: AlterContext, action: AddColumn) -> None:
    column = action.column
    if action.if_not_exists and maker.edit.find(column.name) is not None:
        return
    maker.add(column_of(column, maker.dialect), column.default, first=action.first, after=action.after)
    if column.key:
        maker.edit.set_key([column.name])


def _modify(maker: AlterContext, action: ModifyColumn) -> None:
    column = action.column
    if action.if_exists and maker.edit.find(column.name) is None:
        return
    name = column_name(maker.edit.need(column.name))
    if column.type is not None:
        maker.retype(name, structs.replace(column_of(column, maker.dialect), name=name))
    if column.default is not None or action.whole:
        _default(maker, name, column.default)
    if column.key:
        maker.edit.set_key([name])
    maker.edit.move(name, first=action.first, after=action.after)


def _change(maker: AlterContext, action: ChangeColumn) -> None:
    _modify(maker, ModifyColumn(action.column, action.first, action.after, whole=True, if_exists=action.if_exists))


def _set_default(maker: AlterContext, action: SetDefault) -> None:
    _default(maker, action.name, action.default)


def _drop_default(maker: AlterContext, action: DropDefault) -> None:
    _default(maker, action.name, None)


def _default(maker: AlterContext, name: str, default: Any) -> None:
    made = None if default is None else default_text(default)
    if said_of(maker.edit.need(name)).get("default") != made:
        maker.edit.set_default(name, made)


def _set_nullable(maker: AlterContext, action: SetNullable) -> None:
    # Every column may be null in Avro: a value that its type cannot carry is.
    maker.edit.need(action.name)


def _add_key(maker: AlterContext, action: AddKey) -> None:
    maker.edit.set_key(action.names)


def _drop_key(maker: AlterContext, _: DropKey) -> None:
    maker.edit.set_key([])


def _nothing(_maker: AlterContext, _action: Any) -> None:
    """Change nothing: it is done already, or a constraint's name alone does not say whether it was the key."""


def _rename_to(maker: AlterContext, action: RenameTo) -> None:
    maker.edit.rename_table(completed(action.new, maker.table))


def column_of(declared: ColumnDef, dialect: Dialect) -> Column:
    """Return a column as changes state it: MySQL makes TINYINT(1) of BOOL."""
    is_bool = dialect.is_mysql and declared.type is not None and declared.type.upper() in ("BOOL", "BOOLEAN")
    return Column(name=declared.name, type="tinyint(1)" if is_bool else declared.type)


def said_by(column: Column, held: ColumnType, given: str | None) -> dict[str, Any]:
    """Return what the attribute says of a column."""
    said = {"type": column.type, "code": column.code, "note": held.note, "given": given}
    return {key: value for key, value in said.items() if value is not None}


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
}
