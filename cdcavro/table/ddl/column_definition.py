"""A column's definition: its name, its type as spelled, and its attributes."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from cdcavro.table.ddl.default_clause import default
from cdcavro.table.ddl.keywords import ALONE, IDENTITY_OPTIONS, STOPS, VALUED
from cdcavro.table.ddl.steps import ColumnDef, Constant, Expression
from cdcavro.table.ddl.type_text import binary_type, states_charset, type_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from cdcavro.table.ddl.cursor import TokenCursor


@dataclass(slots=True)
class _Stated:
    """What the definition has stated so far."""

    type: str | None
    nullable: bool | None = None
    default: Constant | Expression | None = None
    key: bool = False
    generated: bool = False
    numbered: bool = False
    charset: bool = False


def column(cursor: TokenCursor, *, typed: bool = True) -> ColumnDef:
    """Parse a column's definition. With `typed`, it must have a type, unless the column is computed."""
    name = cursor.column_name()
    has_type = cursor.token.kind in ("word", "name") and not cursor.sees_one_of(_NO_TYPES)
    stated = _Stated(type_of(cursor) if has_type else None)
    place = cursor.at
    while cursor.sees_one_of(_ATTRIBUTES):
        _ATTRIBUTES[cursor.take().key](cursor, stated)
    if stated.type is None and not stated.generated and (typed or cursor.dialect.is_mysql):
        cursor.at = place
        raise cursor.fail("a type")
    charset = stated.charset or (stated.type is not None and states_charset(stated.type))
    return ColumnDef(
        name,
        stated.type,
        stated.nullable,
        stated.default,
        stated.key,
        stated.generated,
        numbered=stated.numbered,
        charset=charset,
    )


def charset(cursor: TokenCursor) -> bool:
    """Skip the character set that follows CHARACTER or CHARSET, or the collation that follows COLLATE.

    Return whether it is MySQL's `binary`, which turns characters into bytes.
    """
    if cursor.tokens[cursor.at - 1].key not in {"CHARSET", "COLLATE"}:
        cursor.expect("SET")
    cursor.accept("=")
    is_binary = cursor.take().text.lower() == "binary" and cursor.dialect.is_mysql
    while cursor.accept("."):
        cursor.take()
    return is_binary


def of_binary_table(column: ColumnDef) -> ColumnDef:
    """Return a column as MySQL makes it in a table of the character set `binary`: bytes, unless it states another one."""
    type = None if column.type is None or column.charset else binary_type(column.type)
    return column if type is None else replace(column, type=type)


def _charset(cursor: TokenCursor, stated: _Stated) -> None:
    stated.charset = True
    if charset(cursor) and stated.type is not None:
        stated.type = binary_type(stated.type) or stated.type


def _own_charset(_: TokenCursor, stated: _Stated) -> None:
    stated.charset = True  # ASCII and UNICODE


def _not(cursor: TokenCursor, stated: _Stated) -> None:
    if cursor.accept("NULL"):
        stated.nullable = False
    elif not cursor.accept_one_of({"DEFERRABLE", "ENFORCED", "VALID", "VISIBLE", "HIDDEN", "SECONDARY"}):
        raise cursor.fail("NULL")


def _null(_: TokenCursor, stated: _Stated) -> None:
    stated.nullable = True


def _default(cursor: TokenCursor, stated: _Stated) -> None:
    if cursor.accept("ON", "NULL"):  # Oracle: the default stands for NULL too
        stated.nullable = False
        if cursor.accept("FOR", "INSERT") and not cursor.accept("ONLY"):
            cursor.expect("AND", "UPDATE")
    stated.default = default(cursor, DEFAULT_STOPS, stated.type)


def _key(_: TokenCursor, stated: _Stated) -> None:
    stated.key = True


def _primary(cursor: TokenCursor, stated: _Stated) -> None:
    cursor.expect("KEY")
    stated.key = True


def _unique(cursor: TokenCursor, _: _Stated) -> None:
    cursor.accept("KEY")
    if cursor.accept("NULLS"):
        cursor.accept("NOT")
        cursor.expect("DISTINCT")


def _serial(cursor: TokenCursor, stated: _Stated) -> None:
    cursor.expect("DEFAULT", "VALUE")
    stated.nullable, stated.numbered = False, True


def _generated(cursor: TokenCursor, stated: _Stated) -> None:
    if cursor.accept("BY", "DEFAULT"):
        cursor.accept("ON", "NULL")
    else:
        cursor.expect("ALWAYS")
    cursor.expect("AS")
    _as(cursor, stated)


def _as(cursor: TokenCursor, stated: _Stated) -> None:
    if cursor.accept("IDENTITY"):
        _identity(cursor, stated)
        return
    if cursor.accept("ROW"):
        if not cursor.accept_one_of({"START", "END", "BEGIN"}):
            raise cursor.fail("START or END")
    else:
        cursor.group()
    stated.generated = True


def _identity(cursor: TokenCursor, stated: _Stated) -> None:
    stated.numbered = True
    _maybe_group(cursor, stated)
    while cursor.dialect.is_oracle and cursor.accept_one_of(IDENTITY_OPTIONS):
        cursor.accept_one_of({"BY", "WITH"})
        if not cursor.accept("LIMIT", "VALUE"):
            cursor.accept_one_of({"+", "-"})
            if cursor.token.kind == "number":
                cursor.take()


def _encrypt(cursor: TokenCursor, _: _Stated) -> None:
    """Skip Oracle's ENCRYPT: its algorithm, password, integrity check and salt."""
    if cursor.accept("USING"):
        cursor.take()
    if cursor.accept("IDENTIFIED", "BY"):
        cursor.take()
    if cursor.token.kind == "string":
        cursor.take()
    if not cursor.accept("SALT"):
        cursor.accept("NO", "SALT")


def _annotations(cursor: TokenCursor, _: _Stated) -> None:
    cursor.group()


def _virtual(cursor: TokenCursor, _: _Stated) -> None:
    cursor.accept("BY", "USER", "FOR", "STATISTICS")  # Oracle's own, for statistics of an expression


def _numbered(_: TokenCursor, stated: _Stated) -> None:
    stated.numbered = True


def _maybe_group(cursor: TokenCursor, _: _Stated) -> None:
    if cursor.sees("("):
        cursor.group()


def _constraint(cursor: TokenCursor, _: _Stated) -> None:
    if not cursor.sees_one_of({"NOT", "NULL", "UNIQUE", "PRIMARY", "CHECK", "REFERENCES", "DEFAULT", "GENERATED"}):
        cursor.name("constraint's name")


def _check(cursor: TokenCursor, _: _Stated) -> None:
    cursor.group()


def _references(cursor: TokenCursor, stated: _Stated) -> None:
    cursor.table()
    _maybe_group(cursor, stated)


def _on(cursor: TokenCursor, _: _Stated) -> None:
    if not cursor.accept_one_of({"UPDATE", "DELETE"}):
        raise cursor.fail("UPDATE or DELETE")
    if cursor.accept("SET"):
        cursor.take()
    elif cursor.accept("NO"):
        cursor.expect("ACTION")
    else:
        cursor.name("function or RESTRICT or CASCADE")
        if cursor.sees("("):
            cursor.group()


def _value(cursor: TokenCursor, _: _Stated) -> None:
    cursor.accept("=")
    cursor.take()


def _word(_: TokenCursor, __: _Stated) -> None:
    """Do nothing, since nothing follows this word."""


def _compressed(cursor: TokenCursor, _: _Stated) -> None:
    if cursor.accept("="):
        cursor.take()


def _using(cursor: TokenCursor, stated: _Stated) -> None:
    cursor.expect("INDEX")
    if cursor.accept("TABLESPACE"):
        cursor.name("tablespace's name")
    _maybe_group(cursor, stated)


def _with(cursor: TokenCursor, stated: _Stated) -> None:
    if cursor.accept("SYSTEM", "VERSIONING"):
        return
    if not cursor.accept("DEFAULT"):
        cursor.group()
    elif cursor.ends() or cursor.sees_one_of(DEFAULT_STOPS) or cursor.sees(")"):
        stated.default = Expression("WITH DEFAULT")  # DB2: the default of the type
    else:
        _default(cursor, stated)


def _no(cursor: TokenCursor, _: _Stated) -> None:
    cursor.expect("INHERIT")


def _without(cursor: TokenCursor, _: _Stated) -> None:
    cursor.expect("SYSTEM", "VERSIONING")


_ATTRIBUTES: Final[dict[str, Callable[[TokenCursor, _Stated], None]]] = {
    "ANNOTATIONS": _annotations,
    "AS": _as,
    "CHAR": _charset,
    "CHARACTER": _charset,
    "CHARSET": _charset,
    "CHECK": _check,
    "COLLATE": _charset,
    "COMPRESSED": _compressed,
    "CONSTRAINT": _constraint,
    "DEFAULT": _default,
    "DECRYPT": _word,
    "ENCRYPT": _encrypt,
    "GENERATED": _generated,
    "IDENTITY": _identity,
    "KEY": _key,
    "NO": _no,
    "NOT": _not,
    "NULL": _null,
    "ON": _on,
    "PRIMARY": _primary,
    "REFERENCES": _references,
    "SERIAL": _serial,
    "SKIP_INDEX": _maybe_group,
    "UNIQUE": _unique,
    "USING": _using,
    "WITH": _with,
    "WITHOUT": _without,
    **dict.fromkeys(VALUED, _value),
    **dict.fromkeys(ALONE, _word),
    **dict.fromkeys(("AUTOINCREMENT", "AUTO_INCREMENT"), _numbered),
    **dict.fromkeys(("ASCII", "UNICODE"), _own_charset),
    "VIRTUAL": _virtual,
}
# Words that begin attributes but no types; the subtracted ones begin both.
_NO_TYPES: Final = frozenset(_ATTRIBUTES) - {"BINARY", "CHAR", "CHARACTER", "SERIAL"}
DEFAULT_STOPS: Final = frozenset(_ATTRIBUTES) | STOPS | {"FIRST", "AFTER", "PARTITION", "REMOVE"}
