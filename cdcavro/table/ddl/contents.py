"""Contents of statements: the steps that they consist of, and the tables that they empty."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from cdcavro.change.model import DDL, replace
from cdcavro.errors import DdlError, shown
from cdcavro.table.ddl.parse import parse_ddl
from cdcavro.table.ddl.steps import (
    AlterTable,
    ChangeColumn,
    CreateTable,
    DropTable,
    RenameColumn,
    RenameTable,
    RenameTo,
    TableName,
    Truncate,
)
from cdcavro.table.ddl.tokens import has_dialect
from cdcavro.table.names import statement_table, table_name_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cdcavro.change.model import Change, Column, Source
    from cdcavro.table.ddl.steps import Action, Step

# Words of statements that do what no list of columns shows.
_HIDDEN: Final = ("CHANGE", "RENAME", "TRUNCATE")


def steps_of(change: Change) -> tuple[Step, ...]:
    """Return the steps that a change's statement consists of. Raises `DdlError`.

    Of a statement without a text, which states the columns that it leads to, it is one step about its table.
    """
    name = table_name_of(change.source)
    if change.ddl is not None:
        return parse_ddl(change.ddl, change.source.db_type, database=change.source.database)
    if name is None:
        return ()
    table = TableName(change.source.database, name.schema, name.table)
    if change.op == "ERASE":
        return (DropTable((table,)),)
    return (CreateTable(table),) if change.op == "CREATE" else (AlterTable(table, ()),)


def told(change: Change) -> Change:
    """Return a statement as one without a text if it says what its table becomes, and its text is not understood.

    The text of a known dialect stays, and is refused, if it may do what its columns do not show: rename or empty
    something, or speak of more than one table.
    """
    if change.ddl is None or change.op == "TRUNCATE" or (change.columns is None and change.op != "ERASE"):
        return change
    if not has_dialect(change.source.db_type):
        return replace(change, ddl=None)
    try:
        steps_of(change)
    except DdlError:
        text = change.ddl.upper()
        if not _shows_all(change, text):
            return change
        # What a table is that was there already, its columns say.
        op = "ALTER" if change.op == "CREATE" and "EXISTS" in text else change.op
        return replace(change, ddl=None, op=op)
    return change


def _shows_all(change: Change, text: str) -> bool:
    """Return whether the columns of a statement show all that its text, in capital letters, can have done."""
    table, words = (change.source.table or "").upper(), _HIDDEN if change.op == "CREATE" else (*_HIDDEN, "PARTITION")
    is_single = ";" not in text.rstrip("; \t\r\n")
    if change.op == "ERASE":
        is_single &= "," not in text and text.split()[:2] == ["DROP", "TABLE"]
    is_named = re.search(rf"(?<![\w$#]){re.escape(table)}(?![\w$#])", text) is not None
    return is_single and bool(table) and is_named and not any(word in text for word in words)


def empties(change: Change) -> bool:
    """Return whether a change empties tables: its text says so, whatever the format calls it. Raises `DdlError`."""
    if change.op not in DDL or change.ddl is None:
        return change.op == "TRUNCATE"
    if change.op == "TRUNCATE":
        return True
    return "truncate" in change.ddl.lower() and has_dialect(change.source.db_type) and bool(truncated(change))


def truncated(change: Change) -> list[TableName]:
    """Return the names of the tables that a change empties, as they are called behind it. Raises `DdlError`."""
    if change.ddl is None:
        name = table_name_of(change.source)
        return [] if name is None else [name]
    names: dict[TableName, None] = {}
    for step in steps_of(change):
        for old, new in _renames(step, change.source):
            names = dict.fromkeys(new if name == old else name for name in names)
        if isinstance(step, Truncate):
            names |= dict.fromkeys(statement_table(table, change.source) for table in step.tables)
    return list(names)


def _renames(step: Step, source: Source) -> list[tuple[TableName, TableName]]:
    """Return the old and the new name of each table that a step renames."""
    pairs = [(step.old, step.new)] if isinstance(step, RenameTable) else []
    if isinstance(step, AlterTable):
        pairs = [(step.table, action.new) for action in step.actions if isinstance(action, RenameTo)]
    return [(statement_table(old, source), statement_table(new, source)) for old, new in pairs]


def sentence(name: TableName, columns: Sequence[Column]) -> str:
    """Return the sentence that says a table was made."""
    return f"table {shown(name.table)} with {len(columns)} columns"


def renamed_column(action: Action) -> tuple[str, str] | None:
    """Return the old and the new name of a column that an action renames, or None."""
    if not isinstance(action, (RenameColumn, ChangeColumn)):
        return None
    new = action.new if isinstance(action, RenameColumn) else action.column.name
    return None if new == action.old else (action.old, new)


def full_actions(actions: Sequence[Action], source: Source) -> tuple[Action, ...]:
    """Return actions in which a table's new name is written as row changes have it."""
    return tuple(
        RenameTo(statement_table(action.new, source)) if isinstance(action, RenameTo) else action for action in actions
    )
