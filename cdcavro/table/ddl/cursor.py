"""A position in the tokens of a DDL text, with the building blocks of its grammar: words, names, lists."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypeVar

from cdcavro.errors import DdlError, shown
from cdcavro.table.ddl.keywords import RESERVED
from cdcavro.table.ddl.steps import TableName
from cdcavro.table.ddl.tokens import Token, place

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from cdcavro.table.ddl.tokens import Dialect

Item = TypeVar("Item")

# What MySQL, OceanBase, TiDB and Oracle allow at the most; PostgreSQL and DB2 allow fewer.
MAX_COLUMNS: Final = 4_096
# A table may lose all its columns and get others.
MAX_ACTIONS: Final = 2 * MAX_COLUMNS
# Each is written into all types of the table, and none but the last one holds.
MAX_NAMES: Final = 8
MAX_TABLES: Final = 1_000
MAX_STATEMENTS: Final = 1_000

_OPENING: Final = {"(": 1, "[": 1, "{": 1}
_CLOSING: Final = {")": 1, "]": 1, "}": 1}


class TokenCursor:
    """A position in a text's tokens.

    Attributes: `text` (str); `tokens` (list of `Token`), with one of the kind `end` at the end; `dialect`
    (`Dialect`); `database` (str or None), which applies to names without a database; `at` (int), the
    position; `ends_behind` (dict from int to int, None as long as no routine needed it), by a semicolon's
    index that of the END that closes what it stands in. Words are compared in upper case. Every refusal
    is a `DdlError`.
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
        """Raise `DdlError` if there is more of something than is read."""
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
        name = self._qualified() if self.accept(".") else self.name("column's name")
        while self.accept("."):
            name = self._qualified()
        return name

    def _qualified(self) -> str:
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
            parts.append(self._qualified())
        if len(parts) > (2 if self.dialect.is_mysql else 3):
            raise self.fail("a table's name of fewer parts")
        if self.dialect.is_mysql:
            return TableName(parts[0] if len(parts) > 1 else self.database, None, parts[-1])
        database, schema = (None, None, *parts[:-1])[-2:]
        return TableName(self.database if database is None else database, schema, parts[-1])

    def listed(self, item: Callable[[], Item], most: int = MAX_ACTIONS, what: str = "items") -> tuple[Item, ...]:
        """Parse items separated by commas, at most so many, each by calling `item`; return the results."""
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
        while not self.ends() and not (depth == 0 and (self.sees_one_of(stops) or self.token.key in _CLOSING)):
            depth += _OPENING.get(self.token.key, 0) - _CLOSING.get(self.token.key, 0)
            self.at += 1
        if depth:
            raise self.fail("')'")

    def spelled(self, start: int) -> str:
        """Return the text from a token up to the position, with single spaces and without comments."""
        return "".join(
            (" " if i > start and self.tokens[i - 1].end != self.tokens[i].start else "") + self.tokens[i].raw
            for i in range(start, self.at)
        )
