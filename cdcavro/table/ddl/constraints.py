"""What stands among a table's columns without being one: keys, indexes, constraints."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from cdcavro.table.ddl.column_definition import column
from cdcavro.table.ddl.keywords import STOPS

if TYPE_CHECKING:
    from collections.abc import Callable

    from cdcavro.table.ddl.cursor import TokenCursor
    from cdcavro.table.ddl.steps import ColumnDef

# Words that begin an element which is no column. In other dialects than MySQL's most are ordinary names.
_ANYWHERE: Final = (
    ("CONSTRAINT",),
    ("PRIMARY", "KEY"),
    ("FOREIGN", "KEY"),
    ("UNIQUE",),
    ("CHECK",),
    ("SUPPLEMENTAL", "LOG"),
    ("PERIOD", "FOR"),
)
_MYSQL: Final = (("INDEX",), ("KEY",), ("FULLTEXT",), ("SPATIAL",), ("VECTOR", "INDEX"), ("VECTOR", "KEY"))
_POSTGRES: Final = (("EXCLUDE", "USING"), ("EXCLUDE", "("))
_KINDS: Final = {
    **dict.fromkeys(("INDEX", "KEY", "FULLTEXT", "SPATIAL", "VECTOR", "UNIQUE"), "index"),
    "SUPPLEMENTAL": "log",
    "PERIOD": "versioning",
}
_AFTER_NAME: Final = frozenset({"PRIMARY", "UNIQUE", "FOREIGN", "CHECK", "EXCLUDE", "NOT"})


def sees_constraint(cursor: TokenCursor) -> bool:
    """Return whether what comes next among columns is none."""
    own = _MYSQL if cursor.dialect.is_mysql else _POSTGRES if cursor.dialect.is_postgres else ()
    return any(cursor.sees(*words) for words in (*_ANYWHERE, *own))


def constraint(cursor: TokenCursor) -> tuple[str, ...] | str:
    """Take a key, an index or a constraint; give the columns of a primary key, or what any other is."""
    what = _KINDS.get(cursor.token.key, "constraint")
    if cursor.accept("CONSTRAINT"):
        if not cursor.sees_one_of(_AFTER_NAME - {"EXCLUDE"}):
            cursor.name("constraint's name")
        if not cursor.sees_one_of(_AFTER_NAME):
            raise cursor.fail("PRIMARY KEY, UNIQUE, FOREIGN KEY or CHECK")
    found: tuple[str, ...] | str = what
    if cursor.accept("PRIMARY", "KEY"):
        if cursor.dialect.is_mysql and cursor.accept("USING"):
            cursor.take()
        found = key_names(cursor)
    else:
        cursor.take()
    cursor.skip(STOPS)
    return found


def key_names(cursor: TokenCursor) -> tuple[str, ...]:
    """Take the columns of a key, in parentheses, each with its length and direction."""
    cursor.expect("(")
    names = cursor.listed(lambda: _part(cursor))
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
    """Take columns, keys and constraints, up to a `)`; give the columns and the primary key's names.

    `define` takes a column, if another way than usual.
    """
    columns: list[ColumnDef] = []
    key: tuple[str, ...] = ()

    def element() -> None:
        nonlocal key
        if not sees_constraint(cursor):
            columns.append(column(cursor) if define is None else define())
            return
        found = constraint(cursor)
        if isinstance(found, tuple):
            if key:
                raise cursor.fail("one primary key", "two")
            key = found

    cursor.listed(element)
    return columns, key
