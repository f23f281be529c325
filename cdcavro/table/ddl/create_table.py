"""CREATE TABLE: columns, key and constraints, a table to copy them from, or a query that does not state them.

Of what follows the columns, only what affects them is parsed: a query, INHERITS, and a binary
character set, which turns text into bytes. The rest is skipped.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final

from cdcavro.errors import shown
from cdcavro.table.ddl.column_definition import in_binary_table, parse_column, skip_charset
from cdcavro.table.ddl.cursor import MAX_COLUMNS, STOPS
from cdcavro.table.ddl.steps import AddKey, ColumnDef, CreateTable, TableName

if TYPE_CHECKING:
    from collections.abc import Callable

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
        columns = tuple(map(in_binary_table, columns))
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
    columns, key = parse_elements(cursor, lambda: parse_column(cursor, typed=False))
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
            is_binary |= skip_charset(cursor)


def _sees_query(cursor: TokenCursor) -> bool:
    key, ahead = cursor.token.key, cursor.ahead().key
    if key == "AS":
        return ahead in _QUERIES and cursor.tokens[cursor.at - 1].key not in _STORED
    if key == "(":
        return ahead in {"SELECT", "WITH"}
    return key == "SELECT" or (cursor.dialect.is_mysql and key in {"VALUES", "TABLE"})


# Words that begin an element other than a column. Outside MySQL's dialect most are ordinary names.
_ANYWHERE: Final = (
    ("CONSTRAINT",),
    ("PRIMARY", "KEY"),
    ("FOREIGN", "KEY"),
    ("UNIQUE",),
    ("CHECK",),
    ("SUPPLEMENTAL", "LOG"),
    ("PERIOD", "FOR"),
    ("PERIOD", "IF", "NOT", "EXISTS", "FOR"),
)
_MYSQL_WORDS: Final = (
    ("INDEX",),
    ("KEY",),
    ("FULLTEXT",),
    ("SPATIAL",),
    ("VECTOR", "INDEX"),
    ("VECTOR", "KEY"),
    ("CLUSTERING", "INDEX"),
    ("CLUSTERING", "KEY"),
)
_POSTGRES_WORDS: Final = (("EXCLUDE", "USING"), ("EXCLUDE", "("))
_FIRST_WORDS: Final = frozenset(words[0] for words in (*_ANYWHERE, *_MYSQL_WORDS, *_POSTGRES_WORDS))
_KINDS: Final = {
    **dict.fromkeys(("INDEX", "KEY", "FULLTEXT", "SPATIAL", "VECTOR", "CLUSTERING", "UNIQUE"), "index"),
    "SUPPLEMENTAL": "log",
    "PERIOD": "versioning",
}
_AFTER_NAME: Final = frozenset({"PRIMARY", "UNIQUE", "FOREIGN", "CHECK", "EXCLUDE", "NOT"})


def sees_constraint(cursor: TokenCursor) -> bool:
    """Return whether the next element among the columns is not a column."""
    if cursor.token.key not in _FIRST_WORDS:
        return False
    of_dialect = _MYSQL_WORDS if cursor.dialect.is_mysql else _POSTGRES_WORDS if cursor.dialect.is_postgres else ()
    return any(cursor.sees(*words) for words in (*_ANYWHERE, *of_dialect))


def parse_constraint(cursor: TokenCursor) -> AddKey | str:
    """Parse a key, index or constraint; return a primary key, or the kind of anything else."""
    what = _KINDS.get(cursor.token.key, "constraint")
    if cursor.accept("CONSTRAINT"):
        if not cursor.sees_one_of(_AFTER_NAME - {"EXCLUDE"}):
            cursor.name("constraint's name")
        if not cursor.sees_one_of(_AFTER_NAME):
            raise cursor.fail("PRIMARY KEY, UNIQUE, FOREIGN KEY or CHECK")
    key_or_kind: AddKey | str = what
    if cursor.accept("PRIMARY", "KEY"):
        if_not_exists = cursor.accept("IF", "NOT", "EXISTS")
        if cursor.dialect.is_mysql:
            _index_name(cursor)
        key_or_kind = AddKey(parse_key_names(cursor), if_not_exists)
    else:
        cursor.take()
    cursor.skip(STOPS)
    return key_or_kind


def _index_name(cursor: TokenCursor) -> None:
    """Skip a name, which MySQL accepts for a primary key and ignores, and the kind of index."""
    if cursor.token.kind in ("word", "name") and not cursor.sees("USING"):
        cursor.name("key's name")
    if cursor.accept("USING"):
        cursor.take()


def parse_key_names(cursor: TokenCursor) -> tuple[str, ...]:
    """Parse a key's columns in parentheses, each with an optional length and direction; return their names."""
    cursor.expect("(")
    names = cursor.items(lambda: _part(cursor), MAX_COLUMNS, "columns")
    cursor.expect(")")
    return names


def _part(cursor: TokenCursor) -> str:
    name = cursor.name("column's name")
    if cursor.sees("("):
        cursor.group()
    cursor.accept_one_of({"ASC", "DESC"})
    cursor.accept("WITHOUT", "OVERLAPS")
    return name


def parse_elements(
    cursor: TokenCursor, define: Callable[[], ColumnDef] | None = None
) -> tuple[list[ColumnDef], tuple[str, ...]]:
    """Parse columns, keys and constraints up to a `)`; return the columns and the names of the primary key.

    `define` parses a column, instead of `parse_column`.
    """
    columns: list[ColumnDef] = []
    key: tuple[str, ...] = ()

    def element() -> None:
        nonlocal key
        if not sees_constraint(cursor):
            cursor.bound(len(columns) + 1, MAX_COLUMNS, "columns")
            columns.append(parse_column(cursor) if define is None else define())
            return
        key_or_kind = parse_constraint(cursor)
        if not isinstance(key_or_kind, str):
            if key:
                raise cursor.fail("one primary key", "two")
            key = key_or_kind.names

    cursor.items(element)
    return columns, key
