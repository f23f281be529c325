"""A cursor in the tokens of a DDL text, with the building blocks of its grammar: words, names, lists; and these tokens.

The words that are listed rather than parsed stand before the cursor, by their role.

The tokens of a text are those of sqlglot's tokenizer for the dialect, within bounds. Only the tokenizer of sqlglot is
used. Its parser can read many of these statements too, but it gives up on others (RENAME TABLE; Oracle's MODIFY), takes
PostgreSQL's `RENAME a TO b` for a table's new name, and respells types. sqlglot is imported only when the first
statement is parsed.

MySQL's executable comments (`/*!50100 … */`) are opened first, in place, so that positions in the
text stay the same. Those for a version that no server has (`/*!99999 … */`) remain comments, and
`/*M! … */` is opened for MariaDB only.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from threading import Lock
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple, Protocol, TypeVar

from cdcavro.errors import DdlError, shown
from cdcavro.table.ddl.steps import TableName

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator


class Lexeme(Protocol):
    """A token as sqlglot returns it; `end` is the index of its last character."""

    token_type: Any
    text: str
    start: int
    end: int


Kind = Literal["word", "name", "string", "bytes", "number", "other", "end"]

MAX_TEXT: Final = 2**20
MAX_TOKENS: Final = 100_000
MAX_DEPTH: Final = 128
MAX_WORD: Final = 2**16
_MYSQL_PIECE: Final = r"""
      '(?:[^'\\]++|\\.|'')*+'? | "(?:[^"\\]++|\\.|"")*+"? | `[^`]*+`?
    | /\*!(?:IGNORED)(?![0-9]).*?(?:\*/|\Z) | (?P<open>/\*MARK!(?:[0-9]{5,6})?) | /\*.*?(?:\*/|\Z)
    | --(?=[\s\x00-\x1f]|\Z)[^\n]*+ | \#[^\n]*+ | (?P<close>\*/) | [\w$]++ | \S"""
_PIECE: Final = re.compile(
    r"""'(?:[^']++|'')*+'? | "[^"]*+"? | /\*.*?(?:\*/|\Z) | --[^\n]*+ | \w++ | \S""",
    re.DOTALL | re.VERBOSE,
)

# MariaDB ignores executable comments for MySQL's versions from 5.7 on.
_IGNORED: Final = {"MySQL": "9{5,6}", "MariaDB": "9{6}|50[7-9][0-9]{2}|5[1-9][0-9]{3}|[6-9][0-9]{4}"}


class Token(NamedTuple):
    """A token of a DDL text."""

    kind: Kind
    # The name, the string or the digits (after `0x` for bytes in base 16).
    text: str
    # A word in upper case or a symbol, empty for quoted names and for literals.
    key: str
    # The text as written.
    raw: str
    # The index at which it starts.
    start: int

    @property
    def end(self) -> int:
        """The index just after the token."""
        return self.start + len(self.raw)


@dataclass(frozen=True, slots=True)
class Dialect:
    """How the databases of one family write DDL."""

    # For error messages.
    name: str
    # The name that sqlglot has for the dialect.
    tokenizer: str
    # The function that turns an unquoted name into its stored case.
    fold: Callable[[str], str]
    is_mysql: bool = False
    is_oracle: bool = False
    is_postgres: bool = False


def _upper(name: str) -> str:
    return "".join(char.upper() if len(char.upper()) == 1 else char for char in name)


def _lower(name: str) -> str:
    return "".join(char.lower() if char.isascii() else char for char in name)


_MYSQL: Final = Dialect("MySQL", "mysql", str, is_mysql=True)
_MARIADB: Final = Dialect("MariaDB", "mysql", str, is_mysql=True)
_ORACLE: Final = Dialect("Oracle", "oracle", _upper, is_oracle=True)
_POSTGRES: Final = Dialect("PostgreSQL", "postgres", _lower, is_postgres=True)
_DB2: Final = Dialect("DB2", "oracle", _upper)
_DIALECTS: Final = {
    "MYSQL": _MYSQL,
    "MARIADB": _MARIADB,
    "OCEANBASE": _MYSQL,
    "OB_MYSQL": _MYSQL,
    "TIDB": _MYSQL,
    "TICDC": _MYSQL,
    "POLARDB_X": _MYSQL,
    "DRDS": _MYSQL,
    "OB_ORACLE": _ORACLE,
    "ORACLE": _ORACLE,
    "POSTGRESQL": _POSTGRES,
    "POSTGRES": _POSTGRES,
    "DB2": _DB2,
    "DB2_LUW": _DB2,
}


def dialect_of(db_type: str | None) -> Dialect:
    """Return the dialect of a database type as formats spell it, in any case; MySQL's for None.

    Raises `DdlError` for a type whose DDL is unknown.

    >>> dialect_of("ob_mysql").name
    'MySQL'
    """
    dialect = _DIALECTS.get("MYSQL" if db_type is None else db_type.upper().replace("-", "_"))
    if dialect is None:
        raise DdlError("SQL", f"a database type of {', '.join(_DIALECTS)}", shown(db_type), 1, 1)
    return dialect


def has_dialect(db_type: str | None) -> bool:
    """Return whether the DDL of a database type is known."""
    return db_type is None or db_type.upper().replace("-", "_") in _DIALECTS


def is_mysql(db_type: str | None) -> bool:
    """Return whether a database type writes MySQL's dialect, which does not hold for an unknown one."""
    dialect = _DIALECTS.get("MYSQL" if db_type is None else db_type.upper().replace("-", "_"))
    return dialect is not None and dialect.is_mysql


def place(text: str, at: int) -> tuple[int, int]:
    """Return the line and column, both from 1, of an index in a text."""
    return text.count("\n", 0, at) + 1, at - text.rfind("\n", 0, at)


def tokenize(text: str, dialect: Dialect) -> list[Token]:
    """Split a text into tokens. Raises `DdlError`, also beyond 1 MiB, 100,000 tokens or 128 nested brackets."""
    if len(text) > MAX_TEXT:
        raise DdlError(dialect.name, f"at most {MAX_TEXT} characters", str(len(text)), 1, 1)
    if len(text) > MAX_WORD:
        _refuse_costly_text(text, dialect)
    opened = _open_comments(text, dialect) if dialect.is_mysql else text
    tokens = [token for lexeme in _lexemes(opened, dialect) for token in _tokens(lexeme, opened)]
    _check(tokens, opened, dialect)
    return tokens


def _refuse_costly_text(text: str, dialect: Dialect) -> None:
    """Refuse what would take sqlglot seconds: too many tokens, and very long words that begin like numbers."""
    pattern = _mysql_piece(dialect.name) if dialect.is_mysql else _PIECE
    for i, piece in enumerate(pattern.finditer(text)):
        if i == MAX_TOKENS:
            raise DdlError(dialect.name, f"at most {MAX_TOKENS} tokens", "more", *place(text, piece.start()))
        if piece.end() - piece.start() > MAX_WORD and piece[0][0].isdigit() and piece[0][:2] not in ("0x", "0X"):
            raise DdlError(dialect.name, f"words of at most {MAX_WORD} characters", "more", *place(text, piece.start()))


@cache
def _mysql_piece(name: str) -> re.Pattern[str]:
    pattern = _MYSQL_PIECE.replace("IGNORED", _IGNORED[name]).replace("MARK", "M?" if name == "MariaDB" else "")
    return re.compile(pattern, re.DOTALL | re.VERBOSE)


def _open_comments(text: str, dialect: Dialect) -> str:
    """Return the text with the marks around executable comments replaced by spaces."""
    if "/*!" not in text and "/*M!" not in text:
        return text
    parts, done, depth = [], 0, 0
    for piece in _mysql_piece(dialect.name).finditer(text):
        if piece["open"] or (piece["close"] and depth):
            depth += 1 if piece["open"] else -1
            parts += [text[done : piece.start()], " " * len(piece[0])]
            done = piece.end()
    return "".join([*parts, text[done:]]) if depth == 0 else text


# Two threads that import parts of sqlglot at once wait for each other.
_IMPORTING: Final = Lock()


@cache
def _tokenizer(name: str) -> Any:
    """Return sqlglot's tokenizer class, without the commands after which it would not split the text."""
    with _IMPORTING:
        from sqlglot.dialects.dialect import Dialect as Known  # noqa: PLC0415  start-up is faster without it

    return type("Tokenizer", (Known.get_or_raise(name).tokenizer_class,), {"COMMANDS": set()})


def _lexemes(text: str, dialect: Dialect) -> list[Lexeme]:
    with _IMPORTING:
        from sqlglot.errors import TokenError  # noqa: PLC0415  see _tokenizer

    tokenizer = _tokenizer(dialect.tokenizer)(dialect=dialect.tokenizer)
    try:
        lexemes: list[Lexeme] = tokenizer.tokenize(text)
    except TokenError as error:
        done = tokenizer.tokens[-1].end + 1 if tokenizer.tokens else 0
        rest = text[done:].lstrip()
        line, column = place(text, len(text) - len(rest))
        raise DdlError(dialect.name, "whole literals, names and comments", shown(rest), line, column) from error
    return lexemes


_LITERALS: Final[dict[str, Kind]] = {
    "STRING": "string",
    "NATIONAL_STRING": "string",
    "RAW_STRING": "string",
    "HEREDOC_STRING": "string",
    "BYTE_STRING": "string",  # PostgreSQL's E'…'
    "UNICODE_STRING": "string",
    "NUMBER": "number",
    "BIT_STRING": "bytes",
    "HEX_STRING": "bytes",
}


def _tokens(lexeme: Lexeme, text: str) -> Iterator[Token]:
    raw = text[lexeme.start : lexeme.end + 1]
    name = lexeme.token_type.name
    kind = _LITERALS.get(name)
    if kind == "bytes":
        yield Token(kind, ("0x" if name == "HEX_STRING" else "") + lexeme.text, "", raw, lexeme.start)
    elif name == "UNICODE_STRING" and "\\" in raw:
        yield Token("other", raw, "", raw, lexeme.start)
    elif kind is not None:
        yield Token(kind, lexeme.text, "", raw, lexeme.start)
    elif name == "IDENTIFIER":
        yield Token("name", lexeme.text, "", raw, lexeme.start)
    elif raw.isidentifier() or len(raw) == 1:
        yield _word(raw, lexeme.start)
    else:
        # sqlglot makes one token of some pairs of words, such as PRIMARY KEY.
        for word in re.finditer(r"\S+", raw):
            yield _word(word[0], lexeme.start + word.start())


def _word(raw: str, start: int) -> Token:
    is_word = raw[0].isalnum() or raw[0] in "_$#@" or not raw[0].isascii()
    return Token("word" if is_word else "other", raw, raw.upper(), raw, start)


_DEPTHS: Final = {"(": 1, "[": 1, "{": 1, ")": -1, "]": -1, "}": -1}


def _check(tokens: list[Token], text: str, dialect: Dialect) -> None:
    """Refuse too many tokens, too deep nesting, and non-ASCII white space, which databases take as part of names."""
    if len(tokens) > MAX_TOKENS:
        raise DdlError(dialect.name, f"at most {MAX_TOKENS} tokens", "more", *place(text, tokens[MAX_TOKENS].start))
    depth = 0
    for token in tokens:
        depth += _DEPTHS.get(token.key, 0)
        if depth > MAX_DEPTH:
            raise DdlError(dialect.name, f"at most {MAX_DEPTH} open brackets", "more", *place(text, token.start))
        behind = text[token.end : token.end + 1]
        if behind.isspace() and not behind.isascii():
            raise DdlError(dialect.name, "white space of ASCII", shown(behind), *place(text, token.end))


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


# Words that no dialect accepts as a name without quotes.
RESERVED: Final = _words("""
    AND AS CHECK CREATE DEFAULT FROM GROUP HAVING IN INTO NOT NULL ON OR ORDER SELECT TABLE THEN TO UNION UNIQUE WHERE
    WITH
""")

# Words that continue a type.
TYPE_WORDS: Final = _words("""
    ARRAY BYTE CHAR CHARACTER INTEGER LARGE OBJECT PRECISION RAW SIGNED UNSIGNED VARBINARY VARCHAR VARCHARACTER
    VARGRAPHIC VARYING ZEROFILL
""")
INTERVAL_WORDS: Final = _words("YEAR MONTH DAY HOUR MINUTE SECOND TO")
TYPE_ENDS: Final = (
    ("WITH", "TIME", "ZONE"),
    ("WITHOUT", "TIME", "ZONE"),
    ("WITH", "LOCAL", "TIME", "ZONE"),
    ("FOR", "BIT", "DATA"),
    ("FOR", "SBCS", "DATA"),
    ("FOR", "MIXED", "DATA"),
)

# Attributes of a column that affect neither its values nor its key: those with a value, and those without.
VALUED: Final = _words("""
    COLUMN_FORMAT COMMENT COMPRESSION ENGINE_ATTRIBUTE INITIALLY MATCH SECONDARY_ENGINE_ATTRIBUTE SRID STORAGE
""")
ALONE: Final = _words("""
    ASCII AUTOINCREMENT AUTO_INCREMENT BINARY CLUSTERED DEFERRABLE DISABLE ENABLE ENFORCED GLOBAL HIDDEN INVISIBLE
    NONCLUSTERED NORELY NOVALIDATE PERSISTENT RELY STORED UNICODE VALIDATE VIRTUAL VISIBLE
""")

# ALTER TABLE: words that begin an action that may change columns.
ACTIONS: Final = _words("ADD ALTER CHANGE DROP MODIFY RENAME")
STOPS: Final = ACTIONS | {","}

# ALTER TABLE: words that begin an action that changes no column, by what the action is about.
UNCHANGED: Final = {
    "partition": _words("""
        ANALYZE ATTACH CHECK COALESCE DETACH EXCHANGE MERGE OPTIMIZE PARTITION REBUILD REMOVE REORGANIZE REPAIR SPLIT
        TRUNCATE UPGRADE
    """),
    "order": _words("ORDER"),
    "comment": _words("ANNOTATIONS COMMENT"),
    "constraint": _words("VALIDATE"),
    "table option": _words("""
        ACTIVATE ALGORITHM ALLOCATE APPEND ATTRIBUTES AUTOEXTEND_SIZE AUTO_ID_CACHE AUTO_INCREMENT AUTO_RANDOM_BASE
        AVG_ROW_LENGTH BLOCK_SIZE CACHE CHARACTER CHARSET CHECKSUM CLUSTER COLLATE COMPACT COMPRESS COMPRESSION
        CONNECTION DATA DEALLOCATE DEFAULT DELAY_KEY_WRITE DISABLE DISCARD DUPLICATE_SCOPE ENABLE ENCRYPTION ENGINE
        ENGINE_ATTRIBUTE EXPIRE_INFO FLASHBACK FORCE IMPORT INDEX INHERIT INITRANS INMEMORY INSERT_METHOD KEY_BLOCK_SIZE
        LOB LOCALITY LOCK LOGGING MAXTRANS MAX_ROWS MEMOPTIMIZE MINIMIZE MIN_ROWS MONITORING MOVE NESTED NO NOCACHE
        NOCOMPRESS NOLOGGING NOMONITORING NOPARALLEL NOT OF OVERFLOW OWNER PACK_KEYS PAGE_CHECKSUM PARALLEL PASSWORD
        PCTFREE PCTUSED PLACEMENT PRE_SPLIT_REGIONS PRIMARY_ZONE PROGRESSIVE_MERGE_NUM PROGRESSIVE_MERGE_ROUND READ
        RECORD REPLICA REPLICA_NUM RESET RESULT_CACHE ROW ROW_FORMAT SECONDARY_ENGINE SECONDARY_ENGINE_ATTRIBUTE
        SECONDARY_LOAD SECONDARY_UNLOAD SHARD_ROW_ID_BITS SHRINK STATS_AUTO_RECALC STATS_PERSISTENT STATS_SAMPLE_PAGES
        STORAGE STORAGE_FORMAT_VERSION TABLEGROUP TABLESPACE TABLET_SIZE TABLE_MODE TRANSACTIONAL TTL TTL_ENABLE
        TTL_JOB_INTERVAL UNION USE_BLOOM_FILTER VARRAY WITH WITHOUT XMLTYPE
    """),
}
SETTINGS: Final = _words("( ACCESS INTERVAL LOGGED STATISTICS STORE TABLEGROUP TABLESPACE UNLOGGED WITH WITHOUT")

# ALTER TABLE … DROP, MODIFY, ALTER COLUMN: likewise.
DROPPED: Final = {
    ("FOREIGN", "KEY"): "constraint",
    ("UNIQUE",): "constraint",
    ("SYSTEM", "VERSIONING"): "versioning",
    ("PERIOD", "FOR"): "versioning",
    ("PERIOD", "IF", "EXISTS", "FOR"): "versioning",
    ("SUPPLEMENTAL", "LOG"): "log",
    ("UNUSED", "COLUMNS"): "column option",
    ("COLUMNS", "CONTINUE"): "column option",
}
MODIFIED: Final = {
    ("CONSTRAINT",): "constraint",
    ("PRIMARY", "KEY"): "constraint",
    ("UNIQUE",): "constraint",
    ("PARTITION",): "partition",
    ("SUBPARTITION",): "partition",
    ("DEFAULT", "ATTRIBUTES"): "partition",
    ("LOB", "("): "table option",
    ("NESTED", "TABLE"): "table option",
}
COLUMN_SETTINGS: Final = _words("""
    ( CACHE COMPRESSION CYCLE EXPRESSION GENERATED INCREMENT INVISIBLE MAXVALUE MINVALUE NO START STATISTICS STORAGE
    VISIBLE
""")
COLUMN_UNCHANGED: Final = (
    *(("SET", word) for word in sorted(COLUMN_SETTINGS)),
    ("RESET",),
    ("RESTART",),
    ("ADD", "GENERATED"),
    ("DROP", "IDENTITY"),
    ("DROP", "EXPRESSION"),
)

# What may follow AS IDENTITY without brackets, as Oracle's DBMS_METADATA prints it, each before a number or not.
IDENTITY_OPTIONS: Final = _words("""
    CACHE CYCLE EXTEND GLOBAL INCREMENT KEEP MAXVALUE MINVALUE NOCACHE NOCYCLE NOEXTEND NOKEEP NOMAXVALUE NOMINVALUE
    NOORDER NOSCALE NOSHARD ORDER SCALE SESSION SHARD START
""")

# CREATE, ALTER and DROP: the kinds of objects that they are about.
ROUTINES: Final = _words("EVENT FUNCTION PACKAGE PROCEDURE TRIGGER")
NOUNS: Final = ROUTINES | _words("""
    ACCESS AGGREGATE ALIAS BUFFERPOOL CAST CLUSTER COLLATION CONTEXT CONVERSION DATABASE DIMENSION DIRECTORY DISKGROUP
    DOMAIN EDITION EXTENSION GROUP INDEX INSTANCE JAVA LANGUAGE LIBRARY LOGFILE MASK NICKNAME OPERATOR OUTLINE OWNED
    PERMISSION PLUGGABLE POLICY PRIVILEGES PROFILE PUBLICATION REFERENCE RESOURCE ROLE ROLLBACK RULE SCHEMA SEARCH
    SEQUENCE SERVER SESSION STATISTICS SUBSCRIPTION SYNONYM SYSTEM TABLE TABLEGROUP TABLES TABLESPACE TENANT TRANSFORM
    TYPE USER VARIABLE VIEW
""")
ORACLE_NOUNS: Final = NOUNS | _words("FLASHBACK HIERARCHY INDEXTYPE PFILE PMEM RESTORE SPFILE ZONEMAP")

# Words that may follow the tables' names.
AFTER_DROPPED: Final = _words("CASCADE CONSTRAINT CONSTRAINTS FORCE NOWAIT PURGE RESTRICT WAIT")
AFTER_TRUNCATED: Final = _words("""
    ALL CASCADE CONTINUE DELETE DROP IDENTITY IGNORE IMMEDIATE LOG MATERIALIZED NOWAIT PRESERVE PURGE RESTART RESTRICT
    REUSE STORAGE TRIGGERS VIEW WAIT
""")

# Statements other than DDL of tables: their first words, by what the statements are about.
STATEMENTS: Final = {
    "data": _words("""
        ( CALL COPY DELETE DO EXECUTE EXPLAIN HANDLER INSERT LOAD MERGE REPLACE SELECT TABLE UPDATE VALUES WITH
    """),
    "transaction": _words("ABORT BEGIN COMMIT END RELEASE ROLLBACK SAVEPOINT START XA"),
    "setting": _words("RESET SET SHOW"),
    "diagnostics": _words("GET RESIGNAL SIGNAL"),
    "privilege": _words("AUDIT GRANT NOAUDIT REASSIGN REVOKE"),
    "comment": _words("COMMENT"),
    "lock": _words("LOCK UNLOCK"),
    "upkeep": _words("""
        ANALYZE CHECK CHECKSUM CLUSTER DISCARD FLUSH INSTALL KILL OPTIMIZE PURGE REFRESH REINDEX REPAIR UNINSTALL VACUUM
    """),
    "prepared statement": _words("DEALLOCATE PREPARE"),
    "notification": _words("LISTEN NOTIFY UNLISTEN"),
}


Item = TypeVar("Item")

# As many as MySQL, OceanBase, TiDB and Oracle allow; PostgreSQL and DB2 allow fewer.
MAX_COLUMNS: Final = 4_096
# A table may lose all its columns and get others.
MAX_ACTIONS: Final = 2 * MAX_COLUMNS
# Each is written into all types of the table, and none but the last one holds.
MAX_NAMES: Final = 8
MAX_TABLES: Final = 1_000
MAX_STATEMENTS: Final = 1_000


class TokenCursor:
    """A position in a text's tokens. Words are compared in upper case. Every refusal is a `DdlError`.

    Fields:

    * `text` (str), the text
    * `tokens` (list of `Token`), with one of the kind `end` at the end
    * `dialect` (`Dialect`)
    * `database` (str or None), which applies to names without a database
    * `at` (int), the position
    * `ends_behind` (dict from int to int, None as long as no routine needed it), by the index of a semicolon within
      an IF or a loop the index of the END that closes it
    """

    def __init__(self, text: str, tokens: list[Token], dialect: Dialect, database: str | None) -> None:
        self.text = text
        self.tokens = [*tokens, Token("end", "", "", "", len(text))]
        self.dialect = dialect
        self.database = database
        self.at = 0
        self.ends_behind: dict[int, int] | None = None

    @property
    def token(self) -> Token:
        """The current token; at the end of the text, a token of the kind `end`."""
        return self.tokens[self.at]

    def ahead(self, count: int = 1) -> Token:
        """Return the token `count` tokens ahead, or the last one."""
        return self.tokens[min(self.at + count, len(self.tokens) - 1)]

    def bound(self, count: int, most: int, what: str) -> None:
        """Raise `DdlError` if a count of something is beyond its bound."""
        if count > most:
            raise self.fail(f"at most {most} {what}", "more")

    def fail(self, expected: str, got: str | None = None) -> DdlError:
        """Return the error that something else was expected here."""
        token = self.token
        if got is None:
            got = "the end" if token.kind == "end" else shown(token.raw)
        return DdlError(self.dialect.name, expected, got, *place(self.text, token.start))

    def take(self) -> Token:
        """Return the current token and move past it."""
        token = self.token
        if token.kind == "end":
            raise self.fail("more")
        self.at += 1
        return token

    def sees(self, *keys: str) -> bool:
        """Return whether these words or symbols come next."""
        if self.tokens[self.at].key != keys[0]:
            return False
        return len(keys) == 1 or all(self.ahead(i).key == key for i, key in enumerate(keys))

    def sees_one_of(self, keys: Collection[str]) -> bool:
        """Return whether one of these words or symbols comes next."""
        return self.token.key != "" and self.token.key in keys

    def ends(self) -> bool:
        """Return whether the statement ends here."""
        return self.token.kind == "end" or self.token.key == ";"

    def accept(self, *keys: str) -> bool:
        """Skip these words or symbols if all of them come next; return whether they did."""
        if not self.sees(*keys):
            return False
        self.at += len(keys)
        return True

    def accept_one_of(self, keys: Collection[str]) -> bool:
        """Skip one of these words or symbols if it comes next; return whether it did."""
        if not self.sees_one_of(keys):
            return False
        self.at += 1
        return True

    def expect(self, *keys: str) -> None:
        """Skip these words or symbols, which must come next."""
        for key in keys:
            if not self.accept(key):
                raise self.fail(shown(key) if not key.isalpha() else key)

    def name(self, what: str = "name") -> str:
        """Parse a name: without quotes, in the case that the dialect folds it to; in quotes, exactly as written."""
        token = self.token
        if token.kind == "name":
            name = token.text
        elif token.kind == "word" and token.key not in RESERVED:
            name = self.dialect.fold(token.text)
        elif self.dialect.is_mysql and token.kind == "string" and token.raw[0] == '"':
            # A string cannot stand where a name belongs, so the source runs with ANSI_QUOTES.
            name = token.raw[1:-1].replace('""', '"')
        else:
            raise self.fail(f"a {what}")
        self.at += 1
        return name

    def column_name(self) -> str:
        """Parse a column's name where it is defined; MySQL until 5.7 accepts the table's name, or a dot, before it."""
        if not self.dialect.is_mysql:
            return self.name("column's name")
        name = self._qualified_name() if self.accept(".") else self.name("column's name")
        while self.accept("."):
            name = self._qualified_name()
        return name

    def _qualified_name(self) -> str:
        """Parse a name after a dot, where no word is reserved and, in MySQL, a number is a name."""
        token = self.token
        if token.kind == "word" or (token.kind == "number" and self.dialect.is_mysql and token.raw.isalnum()):
            self.at += 1
            return self.dialect.fold(token.raw)
        return self.name()

    def table(self) -> TableName:
        """Parse a table's name with its qualifiers."""
        parts = [self.name("table's name")]
        while self.accept("."):
            parts.append(self._qualified_name())
        if len(parts) > (2 if self.dialect.is_mysql else 3):
            raise self.fail("a table's name of fewer parts")
        if self.dialect.is_mysql:
            return TableName(parts[0] if len(parts) > 1 else self.database, None, parts[-1])
        database, schema = (None, None, *parts[:-1])[-2:]
        return TableName(self.database if database is None else database, schema, parts[-1])

    def items(self, item: Callable[[], Item], most: int = MAX_ACTIONS, what: str = "items") -> tuple[Item, ...]:
        """Parse at most `most` items separated by commas, each by calling `item`; return the results."""
        items = [item()]
        while self.accept(","):
            self.bound(len(items) + 1, most, what)
            items.append(item())
        return tuple(items)

    def group(self) -> None:
        """Skip a pair of parentheses and everything in it."""
        self.expect("(")
        self.skip()
        self.expect(")")

    def skip(self, stops: Collection[str] = ()) -> None:
        """Skip to the first of these words or symbols outside brackets, or to the end of the enclosing brackets."""
        depth = 0
        while not self.ends() and not (depth == 0 and (self.sees_one_of(stops) or _DEPTHS.get(self.token.key, 0) < 0)):
            depth += _DEPTHS.get(self.token.key, 0)
            self.at += 1
        if depth:
            raise self.fail("')'")

    def spell(self, start: int) -> str:
        """Return the text from a token up to the position, with single spaces and without comments."""
        return "".join(
            (" " if i > start and self.tokens[i - 1].end != self.tokens[i].start else "") + self.tokens[i].raw
            for i in range(start, self.at)
        )
