"""CREATE TABLE: columns and key, a table to copy them from, or a query that does not state them.

Of what follows the columns, only what affects them is parsed: a query, INHERITS, and a binary
character set, which turns text into bytes. The rest is skipped.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final

from cdcavro.errors import shown
from cdcavro.table.ddl.column_definition import charset, column, of_binary_table
from cdcavro.table.ddl.constraints import elements
from cdcavro.table.ddl.steps import ColumnDef, CreateTable, TableName

if TYPE_CHECKING:
    from cdcavro.table.ddl.cursor import TokenCursor

_QUERIES: Final = frozenset({"SELECT", "WITH", "VALUES", "TABLE", "(", "EXECUTE"})
_STORED: Final = frozenset({"STORE", "SECUREFILE", "BASICFILE"})
_CHARSETS: Final = frozenset({"CHARACTER", "CHAR", "CHARSET", "COLLATE"})


def parse_create_table(cursor: TokenCursor) -> CreateTable:
    """Parse what follows CREATE TABLE."""
    if_not_exists = cursor.accept("IF", "NOT", "EXISTS")
    table = cursor.table()
    if_not_exists |= cursor.dialect.is_oracle and cursor.accept("IF", "NOT", "EXISTS")
    if cursor.accept("LIKE") or cursor.accept("PARTITION", "OF"):
        lender = cursor.table()
        cursor.skip()
        return CreateTable(table, like=lender, if_not_exists=if_not_exists)
    like, columns, key = _body(cursor) if _sees_body(cursor) else (None, (), ())
    place = cursor.at
    parent, as_select, is_binary = _tail(cursor)
    cursor.at, end = place, cursor.at
    if like is None and parent is None and not columns and not as_select:
        raise cursor.fail("columns, LIKE or AS SELECT")
    if like is not None and parent is not None:
        raise cursor.fail("one table to take columns from")
    if not as_select and any(definition.type is None and not definition.generated for definition in columns):
        raise cursor.fail("AS SELECT, since columns have no type")
    cursor.at = end
    if is_binary:
        columns = tuple(map(of_binary_table, columns))
    return CreateTable(table, columns, key, like or parent, if_not_exists, as_select)


def _sees_body(cursor: TokenCursor) -> bool:
    return cursor.sees("(") and cursor.ahead().key not in {"SELECT", "WITH", "("}


def _body(cursor: TokenCursor) -> tuple[TableName | None, tuple[ColumnDef, ...], tuple[str, ...]]:
    cursor.expect("(")
    like = None
    if cursor.accept("LIKE"):
        like = cursor.table()
        cursor.skip({","})
        if not cursor.accept(","):
            cursor.expect(")")
            return like, (), ()
    if cursor.accept(")"):
        return like, (), ()  # all its columns are inherited
    columns, key = elements(cursor, lambda: column(cursor, typed=False))
    names = Counter(definition.name for definition in columns)
    if len(names) != len(columns):
        raise cursor.fail("each column once", f"{shown(next(name for name in names if names[name] > 1))} twice")
    cursor.expect(")")
    if cursor.dialect.is_mysql:  # a key may spell a column in another case than the column's definition
        spelled = {name.lower(): name for name in names}
        key = tuple(name if name in names else spelled.get(name.lower(), name) for name in key)
    return like, tuple(columns), key or tuple(definition.name for definition in columns if definition.key)


def _tail(cursor: TokenCursor) -> tuple[TableName | None, bool, bool]:
    """Skip what follows the columns.

    Return the table whose columns are inherited, whether a query adds some, and whether the character set is binary.
    """
    parent, is_binary = None, False
    while True:
        cursor.skip({"AS", "SELECT", "(", "VALUES", "TABLE", "INHERITS", *_CHARSETS})
        if cursor.ends() or cursor.sees(")"):
            return parent, False, is_binary
        if _sees_query(cursor):
            cursor.skip()
            return parent, True, is_binary
        if cursor.accept("INHERITS", "("):
            parent = cursor.table()
            cursor.expect(")")
        elif cursor.sees("("):
            cursor.group()
        elif cursor.take().key in _CHARSETS and cursor.dialect.is_mysql:
            is_binary |= charset(cursor)


def _sees_query(cursor: TokenCursor) -> bool:
    key, ahead = cursor.token.key, cursor.ahead().key
    if key == "AS":
        return ahead in _QUERIES and cursor.tokens[cursor.at - 1].key not in _STORED
    if key == "(":
        return ahead in {"SELECT", "WITH"}
    return key == "SELECT" or (cursor.dialect.is_mysql and key in {"VALUES", "TABLE"})
