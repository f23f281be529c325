"""DDL text parsed into steps: what its statements do to tables and their columns.

One grammar covers the statements of MySQL and its kin (MariaDB, OceanBase, TiDB), Oracle (OceanBase's
Oracle mode too), PostgreSQL and DB2. It assumes that a database has executed them, so it does not
check that tables and columns exist; but whatever it does not understand is an error and is never
ignored.

The contents of statements are the steps that they consist of, and the tables that they empty. Where a text is not
understood, what the statement says that its tables become counts in place of the text, as far as it shows all that the
text can have done. The text is refused where it may have emptied something, renamed what has only its new name, or done
something to tables of which nothing is said.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, NamedTuple

from cdcavro.change.model import DDL, Change, ChangedTable, replace
from cdcavro.errors import DdlError, shown
from cdcavro.table.ddl.cursor import (
    AFTER_DROPPED,
    AFTER_TRUNCATED,
    MAX_STATEMENTS,
    MAX_TABLES,
    NOUNS,
    ORACLE_NOUNS,
    ROUTINES,
    STATEMENTS,
    Token,
    TokenCursor,
    dialect_of,
    has_dialect,
    tokenize,
)
from cdcavro.table.ddl.steps import (
    AlterTable,
    ChangeColumn,
    CreateTable,
    DropDatabase,
    DropTable,
    NoChange,
    RenameColumn,
    RenameTable,
    RenameTo,
    TableName,
    Truncate,
)
from cdcavro.table.ddl.table_statements import new_name, parse_alter_table, parse_create_table
from cdcavro.table.table_names import statement_table, table_name_of

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Sequence

    from cdcavro.change.model import Column, Source
    from cdcavro.table.ddl.steps import Action, Step

    Steps = list[Step]

# Words of statements that do what no list of columns shows.
_HIDDEN: Final = frozenset({"CHANGE", "TRUNCATE"})
_PARTITIONS: Final = frozenset({"EXCHANGE", "PARTITION", "PARTITIONS", "SUBPARTITION", "SUBPARTITIONS"})
# Statements with a list of tables.
_LISTING: Final = frozenset({"DROP", "RENAME"})
_DEPTHS: Final = {"(": 1, ")": -1}
_WORD: Final = re.compile(r"[\w$#]+|\S")


class _Piece(NamedTuple):
    """The part of a statement that is about one table."""

    # The first two words of the statement.
    verb: str
    noun: str
    tokens: tuple[Token, ...]
    # The whole text, in which the tokens stand.
    text: str


def steps_of(change: Change) -> tuple[Step, ...]:
    """Return the steps that a change's statement consists of. Raises `DdlError`.

    Of a statement without a text, which states the columns that it leads to, it is one step about its table, behind a
    renaming of the table if its former name is stated.
    """
    name = table_name_of(change.source)
    if change.ddl is not None:
        return parse_ddl(change.ddl, change.source.db_type, database=change.source.database)
    if name is None:
        return ()
    table = TableName(change.source.database, name.schema, name.table)
    if change.op == "ERASE":
        return (DropTable((table,)),)
    for old in change.tables or ():
        if old.old_table is not None:
            return RenameTable(TableName(old.old_database, old.old_schema, old.old_table), table), AlterTable(table, ())
    return (CreateTable(table),) if change.op == "CREATE" else (AlterTable(table, ()),)


def states_key_only(change: Change) -> bool:
    """Return whether a statement says nothing but which key its table has."""
    return (
        bool(change.key) and change.op == "CREATE" and (change.ddl, change.columns, change.tables) == (None, None, None)
    )


def parts_of(change: Change) -> list[Change]:
    """Return what to follow of a statement: the statement, or one without a text for each table that it changed.

    These stand for one that has no text, or none of a known dialect, and for one that is not understood and shows all
    that it did; otherwise such a text stays, and is refused.
    """
    tables = _tables(change)
    if not tables or change.op == "TRUNCATE" or (change.ddl is None and change.tables is None):
        return [change]
    if change.ddl is None or not has_dialect(change.source.db_type):
        return [_statement_about(change, table) for table in tables]
    try:
        steps_of(change)
    except DdlError:
        pieces = list(_pieces(change.ddl, change.source.db_type))
        if len(pieces) == len(tables) and all(map(_shows_all, pieces, tables)):
            return [
                _statement_about(change, _as_altered(piece, table)) for piece, table in zip(pieces, tables, strict=True)
            ]
    return [change]


def _tables(change: Change) -> Sequence[ChangedTable]:
    """Return what a statement says that it makes of its tables."""
    if change.tables is not None:
        return change.tables
    if change.columns is None and change.op != "ERASE":
        return ()
    names = {"database": change.source.database, "schema": change.source.schema, "table": change.source.table}
    return (ChangedTable(op=change.op, **names, key=change.key, columns=change.columns),)


def _statement_about(change: Change, table: ChangedTable) -> Change:
    """Return a statement without a text about one of the tables of another."""
    source = replace(change.source, database=table.database, schema=table.schema, table=table.table)
    tables = None if table.old_table is None else (table,)
    op = table.op or change.op
    return replace(change, op=op, source=source, key=table.key, columns=table.columns, tables=tables, ddl=None)


def _as_altered(piece: _Piece, table: ChangedTable) -> ChangedTable:
    """Return a table that may have been there already as one that is altered: its columns say what it is."""
    may_be = table.op == "CREATE" and any(token.key == "EXISTS" for token in piece.tokens)
    return replace(table, op="ALTER") if may_be else table


def _pieces(text: str, db_type: str | None) -> Iterator[_Piece]:
    try:
        tokens = tokenize(text, dialect_of(db_type))
    except DdlError:
        tokens = [Token("word", match[0], match[0].upper(), match[0], match.start()) for match in _WORD.finditer(text)]
    for sentence in _split(tokens, ";"):
        verb, noun = sentence[0].key, sentence[min(1, len(sentence) - 1)].key
        for piece in _split(sentence, ",") if verb in _LISTING else [sentence]:
            yield _Piece(verb, noun, tuple(piece), text)


def _split(tokens: Sequence[Token], mark: str) -> list[list[Token]]:
    """Return the tokens between marks outside brackets, without what is empty."""
    parts: list[list[Token]] = [[]]
    depth = 0
    for token in tokens:
        depth += _DEPTHS.get(token.key, 0)
        if token.key == mark and depth == 0:
            parts.append([])
        else:
            parts[-1].append(token)
    return [part for part in parts if part]


def _shows_all(piece: _Piece, table: ChangedTable) -> bool:
    """Return whether what is said of a table shows all that a statement can have done to it."""
    words = {token.key for token in piece.tokens}
    if words & (_HIDDEN if table.op == "CREATE" else _HIDDEN | _PARTITIONS) or not _names(piece, table.table):
        return False
    if table.op == "ERASE" or piece.verb == "DROP":
        return table.op == "ERASE" and (piece.verb, piece.noun) == ("DROP", "TABLE")
    if table.old_table is None:
        return "RENAME" not in words and piece.verb != "RENAME"
    return _renames(piece, table)


def _renames(piece: _Piece, table: ChangedTable) -> bool:
    """Return whether a statement renames a table from its former name to its present one, and does nothing else."""
    keys = [token.key for token in piece.tokens]
    mark = "TO" if piece.verb == "RENAME" else "RENAME"
    if keys.count(mark) != 1 or piece.verb not in {"ALTER", "RENAME"}:
        return False
    at = keys.index(mark)
    if mark == "RENAME" and keys[at + 1 : at + 2] not in (["TO"], ["AS"]):
        return False
    before, behind = piece._replace(tokens=piece.tokens[:at]), piece._replace(tokens=piece.tokens[at + 1 :])
    return _names(before, table.old_table) and _names(behind, table.table)


def _names(piece: _Piece, table: str | None) -> bool:
    """Return whether a part of a text names a table, in any case."""
    if not piece.tokens or not table:
        return False
    text = piece.text[piece.tokens[0].start : piece.tokens[-1].end].upper()
    return re.search(rf"(?<![\w$#]){re.escape(table.upper())}(?![\w$#])", text) is not None


def empties(change: Change) -> bool:
    """Return whether a change empties tables: its text says so, whatever the format calls it. Raises `DdlError`."""
    if change.op not in DDL or change.ddl is None:
        return change.op == "TRUNCATE"
    if change.op == "TRUNCATE":
        return True
    return "truncate" in change.ddl.lower() and has_dialect(change.source.db_type) and bool(emptied_tables(change))


def emptied_tables(change: Change) -> list[TableName]:
    """Return the names of the tables that a change empties, as they are called afterwards. Raises `DdlError`."""
    if change.ddl is None:
        name = table_name_of(change.source)
        return [] if name is None else [name]
    names: dict[TableName, None] = {}
    for step in (step for part in parts_of(change) for step in steps_of(part)):
        for pair in _renamings(step):
            old, new = (statement_table(name, change.source) for name in pair)
            names = dict.fromkeys(new if name == old else name for name in names)
        if isinstance(step, Truncate):
            names |= dict.fromkeys(statement_table(table, change.source) for table in step.tables)
    return list(names)


def renamings(change: Change) -> list[tuple[TableName, TableName]]:
    """Return the old and the new name of each renaming of a table by a statement, in order, as it writes them.

    There are none of a statement that is not understood.
    """
    try:
        return [pair for part in parts_of(change) for step in steps_of(part) for pair in _renamings(step)]
    except DdlError:
        return []


def joined_renamings(pairs: Iterable[tuple[TableName, TableName]]) -> list[tuple[TableName, TableName]]:
    """Return the first and the last name of each table that one statement renames, once or more often.

    >>> a, b, c = (TableName(None, None, name) for name in "abc")
    >>> [(old.table, new.table) for old, new in joined_renamings([(a, c), (b, a), (c, b)])]
    [('b', 'a'), ('a', 'b')]
    """
    firsts: dict[TableName, TableName] = {}
    for old, new in pairs:
        firsts[new] = firsts.pop(old, old)
    return [(first, last) for last, first in firsts.items()]


def _renamings(step: Step) -> list[tuple[TableName, TableName]]:
    if isinstance(step, AlterTable):
        return [(step.table, action.new) for action in step.actions if isinstance(action, RenameTo)]
    return [(step.old, step.new)] if isinstance(step, RenameTable) else []


def sentence(name: TableName, columns: Sequence[Column]) -> str:
    """Return the sentence that says a table was made."""
    return f"table {shown(name.table)} with {len(columns)} columns"


def column_renaming(action: Action) -> tuple[str, str] | None:
    """Return the old and the new name of a column that an action renames, or None."""
    if not isinstance(action, (RenameColumn, ChangeColumn)):
        return None
    new = action.new if isinstance(action, RenameColumn) else action.column.name
    return None if new == action.old else (action.old, new)


def complete_actions(actions: Sequence[Action], source: Source) -> tuple[Action, ...]:
    """Return actions in which a table's new name is written as row changes have it."""
    return tuple(
        RenameTo(statement_table(action.new, source)) if isinstance(action, RenameTo) else action for action in actions
    )


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
