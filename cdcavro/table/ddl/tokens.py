"""DDL text as tokens: sqlglot's tokenizer for the dialect, within bounds.

Only the tokenizer of sqlglot is used. Its parser can read many of these statements too, but it gives
up on others (RENAME TABLE; Oracle's MODIFY), takes PostgreSQL's `RENAME a TO b` for a table's new
name, and respells types. sqlglot is imported only when the first statement is parsed.

MySQL's executable comments (`/*!50100 … */`) are opened first, in place, so that positions in the
text stay the same. Those for a version that no server has (`/*!99999 … */`) remain comments, and
`/*M! … */` is opened for MariaDB only.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from threading import Lock
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple, Protocol

from cdcavro.errors import DdlError, shown

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


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
