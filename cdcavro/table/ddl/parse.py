"""DDL text parsed into steps: what its statements do to tables and their columns.

One grammar covers the statements of MySQL and its kin (MariaDB, OceanBase, TiDB), Oracle (OceanBase's
Oracle mode too), PostgreSQL and DB2. It assumes that a database has executed them, so it does not
check that tables and columns exist; but whatever it does not understand is an error and is never
ignored.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from cdcavro.table.ddl.alter_table import new_name, parse_alter_table
from cdcavro.table.ddl.create_table import parse_create_table
from cdcavro.table.ddl.cursor import (
    AFTER_DROPPED,
    AFTER_TRUNCATED,
    MAX_STATEMENTS,
    MAX_TABLES,
    NOUNS,
    ORACLE_NOUNS,
    ROUTINES,
    STATEMENTS,
    TokenCursor,
)
from cdcavro.table.ddl.steps import DropDatabase, DropTable, NoChange, RenameTable, TableName, Truncate
from cdcavro.table.ddl.tokens import dialect_of, tokenize

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence

    from cdcavro.table.ddl.steps import Step
    from cdcavro.table.ddl.tokens import Token

    Steps = list[Step]

_LOOKED_AT: Final = 32


def parse_ddl(ddl: str, dialect: str | None = None, *, database: str | None = None) -> tuple[Step, ...]:
    """Parse the text of one or more DDL statements into steps, in their order.

    `dialect` is a database type as formats spell it (`OB_ORACLE`, `mysql`), None for MySQL; `database`
    applies to names without a database. Data statements, settings, and definitions of anything but
    tables become a `NoChange`; so do temporary and foreign tables.

    Raises `DdlError` for text that it does not understand, an unknown dialect, and text beyond 1 MiB,
    100,000 tokens, 128 open brackets, 1,000 statements, 1,000 tables of a statement, 4,096 columns of a table
    or 8,192 actions.

    >>> parse_ddl("RENAME TABLE a TO b", database="shop")[0].new
    TableName(database='shop', schema=None, table='b')
    >>> parse_ddl('ALTER TABLE T MODIFY (C NUMBER(12, 2), D DEFAULT 0)', "OB_ORACLE")[0].actions[0].column.type
    'NUMBER(12,2)'
    """
    family = dialect_of(dialect)
    cursor = TokenCursor(ddl, tokenize(ddl, family), family, database)
    steps: Steps = []
    count = 0
    while cursor.token.kind != "end":
        if not (cursor.accept(";") or (family.is_oracle and cursor.accept("/"))):
            count += 1
            cursor.bound(count, MAX_STATEMENTS, "statements")
            steps += _statement(cursor)
            if not cursor.ends():
                raise cursor.fail("the end of the statement")
    return tuple(steps)


def _statement(cursor: TokenCursor) -> Steps:
    word = cursor.token.key
    if (cursor.dialect.is_oracle and word in {"BEGIN", "DECLARE"}) or cursor.sees("BEGIN", "NOT", "ATOMIC"):
        return skip_routine(cursor)
    if word in _STATEMENTS:
        cursor.take()
        return _STATEMENTS[word](cursor)
    what = next((what for what, words in STATEMENTS.items() if word in words), None)
    if what is None:
        raise cursor.fail("a statement")
    if word == "SELECT" and cursor.dialect.is_postgres:
        cursor.skip({"INTO"})  # which would make a table, and is refused
    else:
        cursor.skip()
    return [NoChange(what)]


def _create(cursor: TokenCursor) -> Steps:
    noun = _noun(cursor)
    if noun in ROUTINES:
        return skip_routine(cursor)
    if noun != "TABLE":
        return _skip_other(cursor, noun)
    replaces = cursor.accept("OR", "REPLACE")
    kind = _kind(cursor)
    cursor.expect("TABLE")
    if kind is not None:
        return _skip_other(cursor, kind)
    step = parse_create_table(cursor)
    return [DropTable((step.table,), if_exists=True), step] if replaces else [step]


def _kind(cursor: TokenCursor) -> str | None:
    """Skip the words before TABLE; return the kind of a table whose rows are not sent, None for ordinary tables."""
    if cursor.accept_one_of({"GLOBAL", "LOCAL", "PRIVATE"}) and not cursor.sees_one_of({"TEMPORARY", "TEMP"}):
        raise cursor.fail("TEMPORARY")
    if cursor.accept_one_of({"TEMPORARY", "TEMP"}):
        return "temporary table"
    if cursor.accept_one_of({"FOREIGN", "EXTERNAL"}):
        return "foreign table"
    while cursor.accept_one_of({"UNLOGGED", "SHARDED", "DUPLICATED", "IMMUTABLE", "BLOCKCHAIN"}):
        pass
    return None


def _alter(cursor: TokenCursor) -> Steps:
    noun = _noun(cursor)
    if noun != "TABLE":
        return _skip_other(cursor, noun)
    cursor.accept_one_of({"ONLINE", "OFFLINE"})
    cursor.accept("IGNORE")
    kind = _kind(cursor)
    cursor.expect("TABLE")
    return [parse_alter_table(cursor)] if kind is None else _skip_other(cursor, kind)


def _drop(cursor: TokenCursor) -> Steps:
    noun = _noun(cursor)
    if noun in {"DATABASE", "SCHEMA"} and (cursor.dialect.is_mysql or cursor.dialect.is_postgres):
        return _drop_database(cursor, noun)
    if noun not in {"TABLE", "TABLES"}:
        return _skip_other(cursor, noun)
    kind = _kind(cursor)
    cursor.expect(noun)
    if kind is not None:
        return _skip_other(cursor, kind)
    if_exists = cursor.accept("IF", "EXISTS")
    tables = cursor.items(cursor.table, MAX_TABLES, "tables")
    if_exists |= cursor.dialect.is_oracle and cursor.accept("IF", "EXISTS")
    _skip_trailing(cursor, AFTER_DROPPED)
    if cursor.dialect.is_oracle and cursor.accept("AS"):  # the name in the recycle bin, in Oracle's redo log
        cursor.take()
    return [DropTable(tables, if_exists)]


def _drop_database(cursor: TokenCursor, noun: str) -> Steps:
    cursor.expect(noun)
    cursor.accept("IF", "EXISTS")
    names = cursor.items(lambda: cursor.name(f"{noun.lower()}'s name"), MAX_TABLES, f"{noun.lower()}s")
    cursor.skip()
    if noun == "SCHEMA" and cursor.dialect.is_postgres:
        return [DropDatabase(cursor.database, name) for name in names]
    return [DropDatabase(name) for name in names]


def _truncate(cursor: TokenCursor) -> Steps:
    if cursor.accept("CLUSTER"):
        return _skip_other(cursor, "cluster")
    cursor.accept("TABLE")
    tables = cursor.items(lambda: _truncated_table(cursor), MAX_TABLES, "tables")
    _skip_trailing(cursor, AFTER_TRUNCATED)
    return [Truncate(tables)]


def _truncated_table(cursor: TokenCursor) -> TableName:
    if cursor.dialect.is_postgres:
        cursor.accept("ONLY")
    table = cursor.table()
    cursor.accept("*")
    return table


def _skip_trailing(cursor: TokenCursor, words: Collection[str]) -> None:
    while cursor.accept_one_of(words):
        if cursor.token.kind == "number":  # WAIT 5
            cursor.take()


def _rename(cursor: TokenCursor) -> Steps:
    if not cursor.dialect.is_mysql:
        cursor.accept("TABLE")
        return [_renaming(cursor, if_exists=False)]
    if cursor.accept("USER"):
        return _skip_other(cursor, "user")
    if not cursor.accept_one_of({"TABLE", "TABLES"}):
        raise cursor.fail("TABLE or USER")
    if_exists = cursor.accept("IF", "EXISTS")
    return [*cursor.items(lambda: _renaming(cursor, if_exists=if_exists), MAX_TABLES, "tables")]


def _renaming(cursor: TokenCursor, *, if_exists: bool) -> RenameTable:
    old = cursor.table()
    _skip_trailing(cursor, {"WAIT", "NOWAIT"})
    cursor.expect("TO")
    return RenameTable(old, new_name(cursor, old), if_exists)


def _use(cursor: TokenCursor) -> Steps:
    cursor.database = cursor.name("database's name")
    return [NoChange("database")]


def _skip_other(cursor: TokenCursor, noun: str) -> Steps:
    cursor.skip()
    return [NoChange(noun.lower())]


def _noun(cursor: TokenCursor) -> str:
    """Return the kind of object that CREATE, ALTER or DROP is about: the first noun among the words that follow."""
    nouns = ORACLE_NOUNS if cursor.dialect.is_oracle else NOUNS
    for i in range(_LOOKED_AT):
        if cursor.ahead(i).key in nouns:
            return cursor.ahead(i).key
        if cursor.ahead(i).key == ";":
            break
    raise cursor.fail("TABLE or another noun")


_STATEMENTS: Final[dict[str, Callable[[TokenCursor], Steps]]] = {
    "ALTER": _alter,
    "CREATE": _create,
    "DROP": _drop,
    "RENAME": _rename,
    "TRUNCATE": _truncate,
    "USE": _use,
}


_LOOPS: Final = frozenset({"LOOP", "WHILE", "REPEAT"})
_CLOSED: Final = frozenset({"IF", *_LOOPS})
# What stands before a statement within a routine.
_STARTS: Final = frozenset({";", ":", "ATOMIC", "BEGIN", "DO", "ELSE", "LOOP", "REPEAT", "THEN"})


def skip_routine(cursor: TokenCursor) -> list[Step]:
    """Skip a routine with the statements in it: to its END, or in Oracle to the end of the text."""
    depth = 0
    while cursor.token.kind != "end" and (depth > 0 or cursor.dialect.is_oracle or not _is_over(cursor)):
        before, key = cursor.tokens[cursor.at - 1].key, cursor.token.key
        if key in {"BEGIN", "CASE"} and before not in {"END", "."}:
            depth += 1
        elif key == "END" and before != "." and cursor.ahead().key not in {"FOR", *_CLOSED}:
            depth -= 1
        cursor.at += 1
    if depth > 0 and not cursor.dialect.is_oracle:
        raise cursor.fail("END")
    return [NoChange("routine")]


def _is_over(cursor: TokenCursor) -> bool:
    """Return whether a routine ends here; move on to the END of an IF or a loop that is all of its body."""
    if not cursor.sees(";"):
        return False
    if cursor.ends_behind is None:
        cursor.ends_behind = _ends_behind(cursor.tokens)
    end = cursor.ends_behind.get(cursor.at)
    cursor.at = end or cursor.at
    return end is None


def _ends_behind(tokens: Sequence[Token]) -> dict[int, int]:
    """Return for each semicolon within an IF or a loop the index of the END that closes it.

    They are found in one go, since a text may have a semicolon in every other place. What opens is not always
    known from its place (it follows what a routine declares), but what opens behind a semicolon is.
    """
    found: dict[int, int] = {}
    within: list[list[int]] = [[]]
    for i in range(1, len(tokens)):
        before, key = tokens[i - 1].key, tokens[i].key
        if key == ";":
            within[-1].append(i)
        elif key == "CREATE" and _is_of_routine(tokens[i : i + _LOOKED_AT]):
            within = [[]]  # a routine cannot create another, so this begins the next statement
        elif key in _CLOSED and before == "END":
            found.update(dict.fromkeys(within.pop(), i - 1))
            within = within or [[]]
        elif key in _CLOSED and before in _STARTS:
            within.append([])
    return found


def _is_of_routine(tokens: Sequence[Token]) -> bool:
    return next((token.key for token in tokens if token.key in NOUNS), "") in ROUTINES
