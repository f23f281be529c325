"""Explanations: a late statement explains columns that a list of columns had added or dropped before it.

A list says that one column was dropped and another added; the statement says that one was renamed to the other. Such a
statement changes no column. It adds the alias under which older rows are read, the default that they have, or a type
or key that nothing has declared.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from cdcavro.errors import shown
from cdcavro.exact.jsontext import ABSENT
from cdcavro.exact.sqltype import is_same_type
from cdcavro.table.ddl.cursor import dialect_of
from cdcavro.table.ddl.steps import (
    AddColumn,
    AddKey,
    ChangeColumn,
    Constant,
    DropColumn,
    DropDefault,
    ModifyColumn,
    RenameColumn,
    SetDefault,
    SetNullable,
)
from cdcavro.table.evolution.actions import AlterContext, column_of, newest_fields
from cdcavro.table.evolution.row_edit import RowEdit, is_promotion, promote_default
from cdcavro.table.older_fields import avro_default, default_text, older_value
from cdcavro.table.table_schema import (
    ATTRIBUTE,
    OLDER,
    TableSchema,
    as_schema,
    attributes_of,
    avro_of,
    column_fields,
    column_name,
    field_with_type,
    without_attributes,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from cdcavro.change.model import Source
    from cdcavro.table.columns.column_type import TypeOverrides
    from cdcavro.table.ddl.cursor import Dialect
    from cdcavro.table.ddl.steps import Action

    _Types = dict[str, str | None]

# Bytes that a dropped column takes beside its name and its field.
_BESIDE: Final = 250


class UnexplainedColumns:
    """The columns of a table that were added or dropped without a statement.

    Both properties return copies, which must be set again to change them: what is kept is packed, so it takes little
    room, and another dropped column is noted without a look at those before.

    Fields:

    * `added` (set of str), names of columns
    * `dropped` (dict from str to a field's JSON value), names of columns and what they were last
    """

    __slots__ = ("_added", "_dropped", "_size")

    def __init__(self) -> None:
        self._added = b""
        self._size = 0
        self._dropped: dict[str, bytes] | None = None

    @property
    def added(self) -> set[str]:  # noqa: D102
        return set(json.loads(self._added or b"[]"))

    @added.setter
    def added(self, names: set[str]) -> None:
        self._added = json.dumps([*names]).encode() if names else b""

    @property
    def dropped(self) -> dict[str, dict[str, Any]]:  # noqa: D102
        return {name: json.loads(field) for name, field in (self._dropped or {}).items()}

    @dropped.setter
    def dropped(self, fields: dict[str, dict[str, Any]]) -> None:
        self._dropped = _pack(fields) or None
        self._size = _size_of(self._dropped or {})

    def with_differences(self, old: TableSchema | None, new: TableSchema) -> UnexplainedColumns:
        """Return these columns and those that differ between two versions, of which a list has made the second."""
        before = {} if old is None else newest_fields(old)
        after, found = newest_fields(new), UnexplainedColumns()
        found.added = self.added | (after.keys() - before.keys())
        dropped, lost = self._dropped or {}, _pack({name: field for name, field in before.items() if name not in after})
        back = {name: dropped[name] for name in (*after, *lost) if name in dropped}
        found._dropped = {name: field for name, field in (dropped | lost).items() if name not in after} or None
        found._size = self._size + _size_of(lost) - _size_of(back)
        return found

    @property
    def size(self) -> int:
        """How many bytes are kept."""
        return len(self._added) + self._size

    def copy(self) -> UnexplainedColumns:
        """Return a copy that does not change with this one."""
        copy = UnexplainedColumns()
        copy._added, copy._dropped, copy._size = self._added, self._dropped, self._size
        return copy

    def explains(self, schema: TableSchema, actions: Sequence[Action], dialect: Dialect) -> bool:
        """Return whether lists of columns have already done all that these actions do."""
        types = {column.name: column.type for column in schema.columns}
        done = [_DONE[type(action)](action, self, types, dialect) for action in actions if type(action) in _DONE]
        been = {name.lower() for name in (*types, *self.dropped)}
        return (
            any(done)
            and all(done)
            and been.issuperset(name.lower() for action in actions for name in _columns_of(action))
        )


def _pack(fields: dict[str, dict[str, Any]]) -> dict[str, bytes]:
    return {name: json.dumps(field).encode() for name, field in fields.items()}


def _size_of(dropped: dict[str, bytes]) -> int:
    return sum([_BESIDE + 2 * len(name) + len(field) for name, field in dropped.items()])


def explain_columns(
    table: TableSchema,
    actions: Sequence[Action],
    unexplained: UnexplainedColumns,
    source: Source,
    given: TypeOverrides,
    *,
    is_new: bool,
) -> tuple[TableSchema, list[str]]:
    """Return the version with what late actions explain about it, and sentences on that; the same version if nothing.

    Unless `is_new`, the result replaces the same version, with which nothing has been written yet.
    """
    is_folded = dialect_of(source.db_type).is_mysql
    context = AlterContext(table, source, given, RowEdit(table.record, is_new=is_new, is_folded=is_folded))
    for action in actions:
        explain = _EXPLAIN.get(type(action))
        if explain is not None:
            explain(context, action, unexplained)
    if not context.edit.steps:
        return table, []
    record = context.edit.finish()
    attributes, held = (
        attributes_of(record),
        {name for field in column_fields(record) for name in (field["name"], *field.get("aliases", ()))},
    )
    if "gone" in attributes:
        record[ATTRIBUTE] = attributes | {"gone": [name for name in attributes["gone"] if name not in held]}
    return TableSchema(as_schema(record)), context.edit.steps


def _add(
    context: AlterContext, action: AddColumn | ChangeColumn | ModifyColumn, unexplained: UnexplainedColumns
) -> None:
    """Give a column the type that it lacks, and the default that it has in older rows."""
    declared, field = action.column, context.edit.find(action.column.name)
    if field is None or declared.type is None or column_name(field) not in unexplained.added:
        return
    name, column = column_name(field), column_of(declared, context.dialect)
    if attributes_of(field).get("type") is None:
        context.retype(name, column)
        field = context.edit.need(name)
    is_older = (
        isinstance(action, AddColumn) and attributes_of(field).get("since", 1) > 1 and field.get("default") is None
    )
    older = older_value(declared, context.dialect) if is_older else declared.default
    if older is None or "default" in attributes_of(field) or OLDER in attributes_of(field):
        return
    text, resolved, avro = default_text(older), context.resolve(column).avro, avro_of(field)
    fill = _convert_default(avro_default(older, context.resolve(column)), resolved, avro)
    if declared.default is not None or isinstance(older, Constant):
        field[ATTRIBUTE] = attributes_of(field) | {"default" if declared.default is not None else OLDER: text}
    if is_older and fill is not ABSENT:
        field.update(field_with_type(field, avro, fill))
        context.edit.steps.append(f"column {shown(name)} was added: {text} in older rows")
    elif is_older and older != Constant(None):
        context.edit.steps.append(f"what {shown(name)} is in older rows is not known: {text}")
    else:
        context.edit.steps.append(f"column {shown(name)} has the default {shown(text)}")


def _convert_default(fill: Any, declared: Any, present: Any) -> Any:
    """Return a default of the type that a statement declares as one of the present type; `ABSENT` if it is none."""
    if without_attributes(declared) == without_attributes(present):
        return fill
    return promote_default(fill, declared, present) if is_promotion(declared, present) else ABSENT


def _drop(_: AlterContext, action: DropColumn, unexplained: UnexplainedColumns) -> None:
    unexplained.dropped = {name: field for name, field in unexplained.dropped.items() if name != action.name}


def _rename(context: AlterContext, action: RenameColumn, unexplained: UnexplainedColumns) -> None:
    _link(context, action.old, action.new, unexplained)


def _change(context: AlterContext, action: ChangeColumn, unexplained: UnexplainedColumns) -> None:
    _link(context, action.old, action.column.name, unexplained)
    _add(context, action, unexplained)


def _link(context: AlterContext, old: str, new: str, unexplained: UnexplainedColumns) -> None:
    """Let the column that was added read the values that older rows have of a dropped one, if its type can."""
    dropped, field = unexplained.dropped, context.edit.find(new)
    was = dropped.pop(old, None)
    if was is None:
        return
    unexplained.dropped = dropped if field is not None else dropped | {new: was}
    if field is None:
        return
    one, other = without_attributes(avro_of(was)), without_attributes(avro_of(field))
    if column_name(field) not in unexplained.added or not (one == other or is_promotion(avro_of(was), avro_of(field))):
        return
    names = [*was.get("aliases", ()), was["name"]]
    field["aliases"] = [name for name in dict.fromkeys([*field.get("aliases", ()), *names]) if name != field["name"]]
    context.edit.steps.append(f"column {shown(column_name(was))} was renamed to {shown(column_name(field))}")


def _key(context: AlterContext, action: AddKey, _: UnexplainedColumns) -> None:
    if not context.edit.key and all(context.edit.find(name) is not None for name in action.names):
        context.edit.set_key(action.names)


def _is_modified(action: ModifyColumn, _: UnexplainedColumns, types: _Types, dialect: Dialect) -> bool:
    declared = column_of(action.column, dialect)
    return declared.name in types and (declared.type is None or is_same_type(types[declared.name], declared.type))


def _has_come(name: str, known: UnexplainedColumns, types: _Types) -> bool:
    return name in known.added and name in types


def _columns_of(action: Action) -> Sequence[str]:
    """Return the columns of an action that no list of columns can show; they must exist or have existed."""
    if isinstance(action, AddKey):
        return action.names
    return (action.name,) if isinstance(action, (DropDefault, SetDefault, SetNullable)) else ()


_EXPLAIN: Final[dict[type, Callable[[AlterContext, Any, UnexplainedColumns], None]]] = {
    AddColumn: _add,
    AddKey: _key,
    ChangeColumn: _change,
    DropColumn: _drop,
    ModifyColumn: _add,
    RenameColumn: _rename,
}
# Whether lists have already done what an action does, by the types of the columns that there are.
_DONE: Final[dict[type, Callable[[Any, UnexplainedColumns, _Types, Dialect], bool]]] = {
    AddColumn: lambda action, known, types, _: _has_come(action.column.name, known, types),
    ChangeColumn: lambda action, known, types, _: (
        action.old not in types and _has_come(action.column.name, known, types)
    ),
    DropColumn: lambda action, known, types, _: action.name not in types and action.name in known.dropped,
    ModifyColumn: _is_modified,
    RenameColumn: lambda action, known, types, _: action.old not in types and _has_come(action.new, known, types),
}
