"""What stands among a table's columns without being a column: keys, indexes, constraints."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from cdcavro.table.ddl.column_definition import column
from cdcavro.table.ddl.cursor import MAX_COLUMNS
from cdcavro.table.ddl.keywords import STOPS
from cdcavro.table.ddl.steps import AddKey

if TYPE_CHECKING:
    from collections.abc import Callable

    from cdcavro.table.ddl.cursor import TokenCursor
    from cdcavro.table.ddl.steps import ColumnDef

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
_MYSQL: Final = (
    ("INDEX",),
    ("KEY",),
    ("FULLTEXT",),
    ("SPATIAL",),
    ("VECTOR", "INDEX"),
    ("VECTOR", "KEY"),
    ("CLUSTERING", "INDEX"),
    ("CLUSTERING", "KEY"),
)
_POSTGRES: Final = (("EXCLUDE", "USING"), ("EXCLUDE", "("))
_FIRST: Final = frozenset(words[0] for words in (*_ANYWHERE, *_MYSQL, *_POSTGRES))
_KINDS: Final = {
    **dict.fromkeys(("INDEX", "KEY", "FULLTEXT", "SPATIAL", "VECTOR", "CLUSTERING", "UNIQUE"), "index"),
    "SUPPLEMENTAL": "log",
    "PERIOD": "versioning",
}
_AFTER_NAME: Final = frozenset({"PRIMARY", "UNIQUE", "FOREIGN", "CHECK", "EXCLUDE", "NOT"})


def sees_constraint(cursor: TokenCursor) -> bool:
    """Return whether the next element among the columns is not a column."""
    if cursor.token.key not in _FIRST:
        return False
    own = _MYSQL if cursor.dialect.is_mysql else _POSTGRES if cursor.dialect.is_postgres else ()
    return any(cursor.sees(*words) for words in (*_ANYWHERE, *own))


def constraint(cursor: TokenCursor) -> AddKey | str:
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
        key_or_kind = AddKey(key_names(cursor), if_not_exists)
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


def key_names(cursor: TokenCursor) -> tuple[str, ...]:
    """Parse a key's columns in parentheses, each with an optional length and direction; return their names."""
    cursor.expect("(")
    names = cursor.listed(lambda: _part(cursor), MAX_COLUMNS, "columns")
    cursor.expect(")")
    return names


def _part(cursor: TokenCursor) -> str:
    name = cursor.name("column's name")
    if cursor.sees("("):
        cursor.group()
    cursor.accept_one_of({"ASC", "DESC"})
    cursor.accept("WITHOUT", "OVERLAPS")
    return name


def elements(
    cursor: TokenCursor, define: Callable[[], ColumnDef] | None = None
) -> tuple[list[ColumnDef], tuple[str, ...]]:
    """Parse columns, keys and constraints up to a `)`; return the columns and the names of the primary key.

    `define` parses a column, instead of `column`.
    """
    columns: list[ColumnDef] = []
    key: tuple[str, ...] = ()

    def element() -> None:
        nonlocal key
        if not sees_constraint(cursor):
            cursor.bound(len(columns) + 1, MAX_COLUMNS, "columns")
            columns.append(column(cursor) if define is None else define())
            return
        key_or_kind = constraint(cursor)
        if not isinstance(key_or_kind, str):
            if key:
                raise cursor.fail("one primary key", "two")
            key = key_or_kind.names

    cursor.listed(element)
    return columns, key
