"""Explanations of columns that came or went with a list of columns, by a statement that arrives behind them.

A list says that one column went and another came; the statement, that one became the other. Taken
late, it changes no column: it adds the alias under which older rows are read, the default that they
have, or a type or key that nothing has declared.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from cdcavro.errors import shown
from cdcavro.exact.members import ABSENT
from cdcavro.exact.sqltype import is_same_type
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
from cdcavro.table.ddl.tokens import dialect_of
from cdcavro.table.evolution.alter import AlterContext, column_of
from cdcavro.table.evolution.defaults import default_text, filling, older_value
from cdcavro.table.evolution.promotion import is_promotion, promoted, without_attributes
from cdcavro.table.evolution.row_edit import RowEdit
from cdcavro.table.fields import ATTRIBUTE, OLDER, avro_of, column_fields, column_name, filled, said_of
from cdcavro.table.schema import TableSchema, as_schema

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from cdcavro.change.model import Source
    from cdcavro.table.columns.overrides import TypeOverrides
    from cdcavro.table.ddl.steps import Action
    from cdcavro.table.ddl.tokens import Dialect

    _Types = dict[str, str | None]

# What a column that went takes beside its name and its field.
_BESIDE: Final = 250


class Unexplained:
    """The columns of a table that came or went without a statement.

    Attributes: `came` (set of str), those that came; `went` (dict from str to a field's JSON value),
    those that went, as they were last. Both are copies, which are set again to change them: what is kept takes
    little room, and another column that went is noted without a look at those before.
    """

    __slots__ = ("_came", "_size", "_went")

    def __init__(self) -> None:
        self._came = b""
        self._size = 0
        self._went: dict[str, bytes] | None = None

    @property
    def came(self) -> set[str]:  # noqa: D102
        return set(json.loads(self._came or b"[]"))

    @came.setter
    def came(self, names: set[str]) -> None:
        self._came = json.dumps([*names]).encode() if names else b""

    @property
    def went(self) -> dict[str, dict[str, Any]]:  # noqa: D102
        return {name: json.loads(own) for name, own in (self._went or {}).items()}

    @went.setter
    def went(self, fields: dict[str, dict[str, Any]]) -> None:
        self._went = _packed(fields) or None
        self._size = _size_of(self._went or {})

    def taken(self, old: TableSchema | None, new: TableSchema) -> Unexplained:
        """Return these and the columns that differ between two versions, of which a list has made the second."""
        before = {} if old is None else _written(old)
        after, taken = _written(new), Unexplained()
        taken.came = self.came | (after.keys() - before.keys())
        went, lost = self._went or {}, _packed({name: own for name, own in before.items() if name not in after})
        back = {name: went[name] for name in (*after, *lost) if name in went}
        taken._went = {name: own for name, own in (went | lost).items() if name not in after} or None
        taken._size = self._size + _size_of(lost) - _size_of(back)
        return taken

    @property
    def size(self) -> int:
        """How many bytes are kept."""
        return len(self._came) + self._size

    def copy(self) -> Unexplained:
        """Return a copy that does not change with this one."""
        copy = Unexplained()
        copy._came, copy._went, copy._size = self._came, self._went, self._size
        return copy

    def explains(self, schema: TableSchema, actions: Sequence[Action], dialect: Dialect) -> bool:
        """Return whether lists did already what all of these actions do to the columns that there are."""
        types = {column.name: column.type for column in schema.columns}
        done = [_DONE[type(action)](action, self, types, dialect) for action in actions if type(action) in _DONE]
        been = {name.lower() for name in (*types, *self.went)}
        return (
            any(done) and all(done) and been.issuperset(name.lower() for action in actions for name in _about(action))
        )


def _packed(fields: dict[str, dict[str, Any]]) -> dict[str, bytes]:
    return {name: json.dumps(own).encode() for name, own in fields.items()}


def _size_of(went: dict[str, bytes]) -> int:
    return sum([_BESIDE + 2 * len(name) + len(own) for name, own in went.items()])


def explained(
    table: TableSchema,
    actions: Sequence[Action],
    unexplained: Unexplained,
    source: Source,
    given: TypeOverrides,
    *,
    is_new: bool,
) -> tuple[TableSchema, list[str]]:
    """Return the version with what late actions explain about it, and sentences on that; the same if nothing.

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
    said, held = (
        said_of(record),
        {name for own in column_fields(record) for name in (own["name"], *own.get("aliases", ()))},
    )
    if "gone" in said:
        record[ATTRIBUTE] = said | {"gone": [name for name in said["gone"] if name not in held]}
    return TableSchema(as_schema(record)), context.edit.steps


def _written(schema: TableSchema) -> dict[str, dict[str, Any]]:
    return {column_name(own): own for own in column_fields(schema.record) if "until" not in said_of(own)}


def _add(context: AlterContext, action: AddColumn | ChangeColumn | ModifyColumn, unexplained: Unexplained) -> None:
    """Give a column the type that it lacks, and the default that rows older than it have."""
    declared, own = action.column, context.edit.find(action.column.name)
    if own is None or declared.type is None or column_name(own) not in unexplained.came:
        return
    name, column = column_name(own), column_of(declared, context.dialect)
    if said_of(own).get("type") is None:
        context.retype(name, column)
        own = context.edit.need(name)
    is_older = isinstance(action, AddColumn) and said_of(own).get("since", 1) > 1 and own.get("default") is None
    older = older_value(declared, context.dialect) if is_older else declared.default
    if older is None or "default" in said_of(own) or OLDER in said_of(own):
        return
    text, resolved, avro = default_text(older), context.resolved(column).avro, avro_of(own)
    fill = _as(filling(older, context.resolved(column)), resolved, avro)
    if declared.default is not None or isinstance(older, Constant):
        own[ATTRIBUTE] = said_of(own) | {"default" if declared.default is not None else OLDER: text}
    if is_older and fill is not ABSENT:
        own.update(filled(own, avro, fill))
        context.edit.steps.append(f"column {shown(name)} was added: {text} in older rows")
    elif is_older and older != Constant(None):
        context.edit.steps.append(f"what {shown(name)} is in older rows is not known: {text}")
    else:
        context.edit.steps.append(f"column {shown(name)} has the default {shown(text)}")


def _as(fill: Any, declared: Any, present: Any) -> Any:
    """Return a default of the type that a statement declares as one of the present type; `ABSENT` if it is none."""
    if without_attributes(declared) == without_attributes(present):
        return fill
    return promoted(fill, declared, present) if is_promotion(declared, present) else ABSENT


def _drop(_: AlterContext, action: DropColumn, unexplained: Unexplained) -> None:
    unexplained.went = {name: own for name, own in unexplained.went.items() if name != action.name}


def _rename(context: AlterContext, action: RenameColumn, unexplained: Unexplained) -> None:
    _link(context, action.old, action.new, unexplained)


def _change(context: AlterContext, action: ChangeColumn, unexplained: Unexplained) -> None:
    _link(context, action.old, action.column.name, unexplained)
    _add(context, action, unexplained)


def _link(context: AlterContext, old: str, new: str, unexplained: Unexplained) -> None:
    """Read older rows' values of a column that went as those of the one that came, if these types do."""
    went, own = unexplained.went, context.edit.find(new)
    was = went.pop(old, None)
    if was is None:
        return
    unexplained.went = went if own is not None else went | {new: was}
    if own is None:
        return
    one, other = without_attributes(avro_of(was)), without_attributes(avro_of(own))
    if column_name(own) not in unexplained.came or not (one == other or is_promotion(avro_of(was), avro_of(own))):
        return
    names = [was["name"], *was.get("aliases", ())]
    own["aliases"] = [name for name in dict.fromkeys([*own.get("aliases", ()), *names]) if name != own["name"]]
    context.edit.steps.append(f"column {shown(column_name(was))} was renamed to {shown(column_name(own))}")


def _key(context: AlterContext, action: AddKey, _: Unexplained) -> None:
    if not context.edit.key and all(context.edit.find(name) is not None for name in action.names):
        context.edit.set_key(action.names)


def _is_modified(action: ModifyColumn, _: Unexplained, types: _Types, dialect: Dialect) -> bool:
    declared = column_of(action.column, dialect)
    return declared.name in types and (declared.type is None or is_same_type(types[declared.name], declared.type))


def _has_come(name: str, known: Unexplained, types: _Types) -> bool:
    return name in known.came and name in types


def _about(action: Action) -> Sequence[str]:
    """Return the columns, which there are or were, that an action which lists cannot show is about."""
    if isinstance(action, AddKey):
        return action.names
    return (action.name,) if isinstance(action, (DropDefault, SetDefault, SetNullable)) else ()


_EXPLAIN: Final[dict[type, Callable[[AlterContext, Any, Unexplained], None]]] = {
    AddColumn: _add,
    AddKey: _key,
    ChangeColumn: _change,
    DropColumn: _drop,
    ModifyColumn: _add,
    RenameColumn: _rename,
}
# Whether lists did already what an action does, given the columns that there are, with their types.
_DONE: Final[dict[type, Callable[[Any, Unexplained, _Types, Dialect], bool]]] = {
    AddColumn: lambda action, known, types, _: _has_come(action.column.name, known, types),
    ChangeColumn: lambda action, known, types, _: (
        action.old not in types and _has_come(action.column.name, known, types)
    ),
    DropColumn: lambda action, known, types, _: action.name not in types and action.name in known.went,
    ModifyColumn: _is_modified,
    RenameColumn: lambda action, known, types, _: action.old not in types and _has_come(action.new, known, types),
}
