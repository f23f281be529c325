"""A cursor in the tokens of a DDL text, with the building blocks of its grammar: words, names, lists.

The words that are listed rather than parsed stand first, by their role.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypeVar

from cdcavro.errors import DdlError, shown
from cdcavro.table.ddl.steps import TableName
from cdcavro.table.ddl.tokens import Token, place

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from cdcavro.table.ddl.tokens import Dialect


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

_DEEPER: Final = {"(": 1, "[": 1, "{": 1}
_LESS_DEEP: Final = {")": 1, "]": 1, "}": 1}


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
        while not self.ends() and not (depth == 0 and (self.sees_one_of(stops) or self.token.key in _LESS_DEEP)):
            depth += _DEEPER.get(self.token.key, 0) - _LESS_DEEP.get(self.token.key, 0)
            self.at += 1
        if depth:
            raise self.fail("')'")

    def spell(self, start: int) -> str:
        """Return the text from a token up to the position, with single spaces and without comments."""
        return "".join(
            (" " if i > start and self.tokens[i - 1].end != self.tokens[i].start else "") + self.tokens[i].raw
            for i in range(start, self.at)
        )
