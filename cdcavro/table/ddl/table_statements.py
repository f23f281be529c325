"""Statements on tables: CREATE TABLE and ALTER TABLE, as steps.

Each action of ALTER TABLE becomes a step or is known to change no column; anything else is refused.

CREATE TABLE has columns, key and constraints, a table to copy them from, or a query that does not state them. Of what
follows the columns, only what affects them is parsed: a query, INHERITS, and a binary character set, which turns text
into bytes. The rest is skipped.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING, Final

from cdcavro.errors import shown
from cdcavro.table.ddl.column_definition import in_binary_table, parse_column, parse_default, parse_type, skip_charset
from cdcavro.table.ddl.cursor import (
    COLUMN_UNCHANGED,
    DROPPED,
    MAX_ACTIONS,
    MAX_COLUMNS,
    MAX_NAMES,
    MODIFIED,
    SETTINGS,
    STOPS,
    UNCHANGED,
)
from cdcavro.table.ddl.steps import (
    AddColumn,
    AddKey,
    AlterTable,
    ChangeColumn,
    ColumnDef,
    CreateTable,
    DropColumn,
    DropConstraint,
    DropDefault,
    DropKey,
    ModifyColumn,
    NoChange,
    RenameColumn,
    RenameTo,
    SetDefault,
    SetNullable,
    TableName,
    TextToBytes,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from cdcavro.table.ddl.cursor import Token, TokenCursor
    from cdcavro.table.ddl.steps import Action

    Actions = list[Action] | str  # a str says what the action is about if it changes no column

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


def parse_alter_table(cursor: TokenCursor) -> AlterTable | NoChange:
    """Parse what follows ALTER TABLE."""
    if_exists = cursor.accept("IF", "EXISTS")
    table = _altered_table(cursor)
    if cursor.dialect.is_mysql and cursor.ends():
        return NoChange("table option")
    actions: list[Action] = []
    unchanged: list[str] = []
    while True:
        result = _action(cursor, table)
        if isinstance(result, str):
            unchanged.append(result)
        else:
            actions += result
        cursor.bound(len(actions) + len(unchanged), MAX_ACTIONS, "actions")
        if not (cursor.accept(",") or _goes_on(cursor)):
            break
    cursor.bound(sum(isinstance(action, RenameTo) for action in actions), MAX_NAMES, "new names of a table")
    if _BINARY in unchanged or TextToBytes() in actions:
        actions = [
            replace(action, column=in_binary_table(action.column))
            if isinstance(action, (AddColumn, ChangeColumn, ModifyColumn))
            else action
            for action in actions
        ]
    if actions:
        return AlterTable(table, tuple(actions), if_exists)
    if unchanged[0] == _ROWS:
        return NoChange("partition", table)
    return NoChange("table option" if unchanged[0] == _BINARY else unchanged[0])


def _altered_table(cursor: TokenCursor) -> TableName:
    if cursor.dialect.is_postgres and cursor.accept("ONLY") and cursor.accept("("):
        table = cursor.table()
        cursor.expect(")")
        return table
    table = cursor.table()
    cursor.accept("*")
    if cursor.dialect.is_mysql and not cursor.accept("NOWAIT") and cursor.accept("WAIT"):
        cursor.take()
    return table


def _goes_on(cursor: TokenCursor) -> bool:
    """Return whether another action follows without a comma, as Oracle's actions and MySQL's partitions do."""
    if cursor.ends():
        return False
    if cursor.dialect.is_oracle or cursor.dialect.name == "DB2" or cursor.sees_one_of({"PARTITION", "REMOVE"}):
        return True
    raise cursor.fail("',' or the end")


def _action(cursor: TokenCursor, table: TableName) -> Actions:
    word = cursor.token.key
    if word in _VERBS:
        cursor.take()
        return _VERBS[word](cursor, table)
    for what, starts in UNCHANGED.items():
        if cursor.sees_one_of(starts):
            cursor.take()
            return _skip_unchanged(cursor, _ROWS if word in _REMOVING else what)
    raise cursor.fail("an action of ALTER TABLE")


_BINARY: Final = "a binary character set"
# Of a partition that goes, its rows go with it.
_ROWS: Final = "rows of a partition"
_REMOVING: Final = frozenset({"TRUNCATE", "EXCHANGE", "DETACH"})


def _skip_unchanged(cursor: TokenCursor, what: str) -> str:
    if what in {"partition", "order", _ROWS}:
        cursor.skip()  # its lists have commas, and nothing follows it
    else:
        start = cursor.at - 1
        cursor.skip(STOPS)
        if cursor.dialect.is_mysql and _is_binary(cursor.tokens[start : cursor.at]):
            return _BINARY
    return what


def _is_binary(options: Sequence[Token]) -> bool:
    """Return whether options of a table in MySQL make `binary` its character set, which new columns have then."""
    return any(
        was.key in {"CHARSET", "SET", "COLLATE"} and token.text.upper() == "BINARY"
        for was, token in pairwise(token for token in options if token.key != "=")
    )


def _position(cursor: TokenCursor) -> tuple[bool, str | None]:
    if cursor.accept("FIRST"):
        return True, None
    return False, cursor.name("column's name") if cursor.accept("AFTER") else None


def _add(cursor: TokenCursor, _: TableName) -> Actions:
    if sees_constraint(cursor):
        key_or_kind = parse_constraint(cursor)
        return key_or_kind if isinstance(key_or_kind, str) else [key_or_kind]
    if cursor.accept("SYSTEM", "VERSIONING"):
        return "versioning"
    if not cursor.dialect.is_postgres and cursor.accept_one_of({"PARTITION", "SUBPARTITION"}):
        return _skip_unchanged(cursor, "partition")
    is_column = cursor.accept("COLUMN")
    if is_column and cursor.accept("GROUP"):
        cursor.group()
        return "column group"
    if_not_exists = cursor.accept("IF", "NOT", "EXISTS")
    if cursor.accept("("):
        return _add_several(cursor, if_not_exists=if_not_exists)
    return [AddColumn(parse_column(cursor), *_position(cursor), if_not_exists)]


def _add_several(cursor: TokenCursor, *, if_not_exists: bool) -> Actions:
    columns, key = parse_elements(cursor)
    cursor.expect(")")
    added: list[Action] = [AddColumn(definition, if_not_exists=if_not_exists) for definition in columns]
    return [*added, AddKey(key)] if key else added or "constraint"


def _drop(cursor: TokenCursor, _: TableName) -> Actions:
    if cursor.accept("PRIMARY", "KEY"):
        _drop_tail(cursor)
        return [DropKey()]
    for words, what in DROPPED.items():
        if cursor.accept(*words):
            return _skip_unchanged(cursor, what)
    if cursor.dialect.is_mysql and cursor.accept_one_of({"INDEX", "KEY", "CHECK"}):
        return _skip_unchanged(cursor, "index")
    if not cursor.dialect.is_postgres and cursor.accept_one_of({"PARTITION", "SUBPARTITION"}):
        return _skip_unchanged(cursor, _ROWS)
    if cursor.accept("CONSTRAINT"):
        return _drop_constraint(cursor)
    return _drop_column(cursor)


def _drop_constraint(cursor: TokenCursor) -> Actions:
    cursor.accept("IF", "EXISTS")
    name = cursor.name("constraint's name")
    _drop_tail(cursor)
    if not cursor.dialect.is_mysql:
        return [DropConstraint(name)]
    return [DropKey()] if name.upper() == "PRIMARY" else "constraint"


def _drop_column(cursor: TokenCursor) -> Actions:
    is_column = cursor.accept("COLUMN")
    if is_column and cursor.accept("GROUP"):
        cursor.group()
        return "column group"
    if_exists = cursor.accept("IF", "EXISTS")
    names = parse_key_names(cursor) if cursor.sees("(") else (cursor.name("column's name"),)
    _drop_tail(cursor)
    return [DropColumn(name, if_exists) for name in names]


def _drop_tail(cursor: TokenCursor) -> None:
    while True:
        if cursor.accept("CHECKPOINT"):
            cursor.take()
        elif not (
            cursor.accept_one_of({"CASCADE", "RESTRICT", "CONSTRAINTS", "INVALIDATE", "ONLINE"})
            or cursor.accept("KEEP", "INDEX")
            or cursor.accept("DROP", "INDEX")
        ):
            return


def _modify(cursor: TokenCursor, _: TableName) -> Actions:
    if not cursor.dialect.is_mysql:
        for words, what in MODIFIED.items():
            if cursor.sees(*words):
                cursor.take()
                cursor.skip(STOPS if what == "table option" else ())
                return what
    cursor.accept("COLUMN")
    if_exists = cursor.accept("IF", "EXISTS")
    if not cursor.dialect.is_mysql and cursor.accept("("):
        columns, _key = parse_elements(cursor, lambda: parse_column(cursor, typed=False))
        cursor.expect(")")
        return [ModifyColumn(definition) for definition in columns] or "constraint"
    definition = parse_column(cursor, typed=False)
    return [ModifyColumn(definition, *_position(cursor), cursor.dialect.is_mysql, if_exists)]


def _change(cursor: TokenCursor, _: TableName) -> Actions:
    cursor.accept("COLUMN")
    if_exists = cursor.accept("IF", "EXISTS")
    old = cursor.name("column's name")
    return [ChangeColumn(old, parse_column(cursor), *_position(cursor), if_exists)]


def _alter(cursor: TokenCursor, _: TableName) -> Actions:
    if cursor.accept_one_of({"CONSTRAINT"}) or (
        cursor.dialect.is_mysql and cursor.accept_one_of({"INDEX", "KEY", "CHECK"})
    ):
        return _skip_unchanged(cursor, "constraint")
    cursor.accept("COLUMN")
    cursor.accept("IF", "EXISTS")
    name = cursor.name("column's name")
    if cursor.dialect.is_mysql and cursor.accept("SET"):
        if cursor.accept_one_of({"VISIBLE", "INVISIBLE"}):
            return _alter_column(cursor, name) if cursor.sees_one_of({"SET", "DROP"}) else "column option"
        cursor.at -= 1
    return _alter_column(cursor, name)


def _alter_column(cursor: TokenCursor, name: str) -> Actions:
    for words, make in _ALTERED.items():
        if cursor.accept(*words):
            return make(cursor, name)
    for words in COLUMN_UNCHANGED:
        if cursor.accept(*words):
            return _skip_unchanged(cursor, "column option")
    raise cursor.fail("SET, DROP or TYPE")


def _retype(cursor: TokenCursor, name: str) -> Actions:
    type = parse_type(cursor)
    if cursor.accept("COLLATE"):
        cursor.table()
    if cursor.accept("USING"):
        cursor.skip(STOPS)
    return [ModifyColumn(ColumnDef(name, type))]


def _set_default(cursor: TokenCursor, name: str) -> Actions:
    return [SetDefault(name, parse_default(cursor, STOPS))]


def _rename(cursor: TokenCursor, table: TableName) -> Actions:
    if cursor.accept("COLUMN"):
        if_exists = cursor.accept("IF", "EXISTS")
        return [_rename_column(cursor, cursor.name("column's name"), if_exists=if_exists)]
    if cursor.accept_one_of({"CONSTRAINT", "PARTITION", "SUBPARTITION"}) or (
        cursor.dialect.is_mysql and cursor.accept_one_of({"INDEX", "KEY"})
    ):
        return _skip_unchanged(cursor, "constraint")
    if cursor.accept_one_of({"TO", "AS", "="}) or cursor.dialect.is_mysql:
        return [RenameTo(new_name(cursor, table))]
    return [_rename_column(cursor, cursor.name("column's name"), if_exists=False)]


def _rename_column(cursor: TokenCursor, old: str, *, if_exists: bool) -> RenameColumn:
    cursor.expect("TO")
    return RenameColumn(old, cursor.name("column's name"), if_exists)


def new_name(cursor: TokenCursor, old: TableName) -> TableName:
    """Parse a table's new name: without a qualifier, it is in the old schema, but in MySQL in the current database."""
    new = cursor.table()
    if cursor.dialect.is_mysql or new.schema is not None:
        return new
    return TableName(old.database, old.schema, new.table)


def _set(cursor: TokenCursor, table: TableName) -> Actions:
    if cursor.accept("SCHEMA"):
        return [RenameTo(TableName(table.database, cursor.name("schema's name"), table.table))]
    if cursor.accept("UNUSED"):  # Oracle: gone for all statements, though not yet from disk
        return _drop_column(cursor)
    if cursor.accept("TIFLASH"):  # TiDB: its replicas, with a list of labels behind them
        cursor.skip()
        return "table option"
    if cursor.sees_one_of(SETTINGS):
        return _skip_unchanged(cursor, "table option")
    raise cursor.fail("SCHEMA, UNUSED or an option")


def _convert(cursor: TokenCursor, _: TableName) -> Actions:
    cursor.expect("TO")
    if not cursor.sees_one_of({"CHARACTER", "CHAR", "CHARSET"}):
        raise cursor.fail("CHARACTER SET")
    cursor.take()
    is_binary = skip_charset(cursor)
    _skip_unchanged(cursor, "character set")
    return [TextToBytes()] if is_binary else "character set"


_VERBS: Final[dict[str, Callable[[TokenCursor, TableName], Actions]]] = {
    "ADD": _add,
    "ALTER": _alter,
    "CHANGE": _change,
    "CONVERT": _convert,
    "DROP": _drop,
    "MODIFY": _modify,
    "RENAME": _rename,
    "SET": _set,
}
_ALTERED: Final[dict[tuple[str, ...], Callable[[TokenCursor, str], Actions]]] = {
    ("SET", "DATA", "TYPE"): _retype,
    ("TYPE",): _retype,
    ("SET", "DEFAULT"): _set_default,
    ("DROP", "DEFAULT"): lambda _, name: [DropDefault(name)],
    ("SET", "NOT", "NULL"): lambda _, name: [SetNullable(name, nullable=False)],
    ("DROP", "NOT", "NULL"): lambda _, name: [SetNullable(name, nullable=True)],
}
