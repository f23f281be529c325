"""A place in the tokens of a DDL text, and what all its grammar is made of: words, names, lists."""

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

_OPENING: Final = {"(": 1, "[": 1, "{": 1}
_CLOSING: Final = {")": 1, "]": 1, "}": 1}


class TokenCursor:
    """A place in a text's tokens.

    Attributes: `dialect`; `database` (str or None), which names without one are in; `at` (int), the
    place. Words are compared in upper case. Every refusal is a `DdlError`.
    """

    def __init__(self, text: str, tokens: list[Token], dialect: Dialect, database: str | None) -> None:
        self.text = text
        self.tokens = [*tokens, Token("end", "", "", "", len(text))]
        self.dialect = dialect
        self.database = database
        self.at = 0

    @property
    def token(self) -> Token:
        """The token here; at the end, one of the kind `end`."""
        return self.tokens[self.at]

    def ahead(self, count: int = 1) -> Token:
        """Return the token so many further on."""
        return self.tokens[min(self.at + count, len(self.tokens) - 1)]

    def fail(self, expected: str, got: str | None = None) -> DdlError:
        """Make the error that something else was expected here."""
        token = self.token
        if got is None:
            got = "the end" if token.kind == "end" else shown(token.raw)
        return DdlError(self.dialect.name, expected, got, *place(self.text, token.start))

    def take(self) -> Token:
        """Go on by one token, and give that."""
        token = self.token
        if token.kind == "end":
            raise self.fail("more")
        self.at += 1
        return token

    def sees(self, *keys: str) -> bool:
        """Return whether these words or symbols come next."""
        return all(self.ahead(i).key == key for i, key in enumerate(keys))

    def sees_one_of(self, keys: Collection[str]) -> bool:
        """Return whether one of these comes next."""
        return self.token.key != "" and self.token.key in keys

    def ends(self) -> bool:
        """Return whether the statement ends here."""
        return self.token.kind == "end" or self.token.key == ";"

    def accept(self, *keys: str) -> bool:
        """Go past these words or symbols, if all of them come next."""
        if not self.sees(*keys):
            return False
        self.at += len(keys)
        return True

    def accept_one_of(self, keys: Collection[str]) -> bool:
        """Go past one of these, if it comes next."""
        if not self.sees_one_of(keys):
            return False
        self.at += 1
        return True

    def expect(self, *keys: str) -> None:
        """Go past these, which must come next."""
        for key in keys:
            if not self.accept(key):
                raise self.fail(shown(key) if not key.isalpha() else key)

    def name(self, what: str = "name") -> str:
        """Take a name: folded as the dialect folds one without quotes, as it is within quotes."""
        token = self.token
        if token.kind == "name":
            found = token.text
        elif token.kind == "word" and token.key not in RESERVED:
            found = self.dialect.fold(token.text)
        elif self.dialect.is_mysql and token.kind == "string" and token.raw[0] == '"':
            # Where a name belongs there is no string: the source runs with ANSI_QUOTES.
            found = token.raw[1:-1].replace('""', '"')
        else:
            raise self.fail(f"a {what}")
        self.at += 1
        return found

    def _qualified(self) -> str:
        """Take what stands behind a dot, where words are not reserved and a number is a name."""
        token = self.token
        if token.kind == "word" or (token.kind == "number" and self.dialect.is_mysql and token.raw.isalnum()):
            self.at += 1
            return self.dialect.fold(token.raw)
        return self.name()

    def table(self) -> TableName:
        """Take a table's name, with what qualifies it."""
        parts = [self.name("table's name")]
        while self.accept("."):
            parts.append(self._qualified())
        if len(parts) > (2 if self.dialect.is_mysql else 3):
            raise self.fail("a table's name of fewer parts")
        if self.dialect.is_mysql:
            return TableName(parts[0] if len(parts) > 1 else self.database, None, parts[-1])
        database, schema = (None, None, *parts[:-1])[-2:]
        return TableName(self.database if database is None else database, schema, parts[-1])

    def listed(self, item: Callable[[], Item]) -> tuple[Item, ...]:
        """Take items with commas between them."""
        items = [item()]
        while self.accept(","):
            items.append(item())
        return tuple(items)

    def group(self) -> None:
        """Go past a pair of parentheses and all that is within."""
        self.expect("(")
        self.skip()
        self.expect(")")

    def skip(self, stops: Collection[str] = ()) -> None:
        """Go on to the first of these words or symbols that no bracket holds, or to the end of what holds this place."""
        depth = 0
        while not self.ends() and not (depth == 0 and (self.sees_one_of(stops) or self.token.key in _CLOSING)):
            depth += _OPENING.get(self.token.key, 0) - _CLOSING.get(self.token.key, 0)
            self.at += 1
        if depth:
            raise self.fail("')'")

    def spelled(self, start: int) -> str:
        """Return what was written from a token on up to here, with single spaces, without comments."""
        return "".join(
            (" " if i > start and self.tokens[i - 1].end != self.tokens[i].start else "") + self.tokens[i].raw
            for i in range(start, self.at)
        )
