"""A column's type as it is stated: its names, its parts, and what else decides how its values come.

The same word means different things: INT8 has 64 bits in SQL and 8 in Kafka Connect, DATE is a day
in MySQL, a local time in Oracle and an instant in DataHub. So a word is looked up first among those
of the format, then of the database, then of all.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from cdcavro.exact.sqltype import Declared, declared_type

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import tzinfo

_PARENTHESES: Final = re.compile(r"\([^()]*+\)")
_SEMANTIC: Final = re.compile(r"(?P<name>\w+(?:\.\w+)+)(?:\((?P<given>[^()]*+)\))?", re.ASCII)
_PARAMETER: Final = re.compile(r"(\w+)=([0-9]{1,9})", re.ASCII)
_LABELLED: Final = re.compile(r"\s*(ENUM|SET)\s*\(", re.ASCII | re.IGNORECASE)
_MOST_WORDS: Final = 5
# What may stand behind the words of a type; anything else there makes it another type.
_MODIFIERS: Final = frozenset(
    {"UNSIGNED", "SIGNED", "ZEROFILL", "CHARACTER", "CHARSET", "COLLATE", "NOT", "NULL", "DEFAULT", "COMMENT"}
)
_INTERVAL: Final = "INTERVAL"
_DATABASES: Final = {"postgres": "postgresql", "oracle": "oracle", "sqlserver": "sqlserver"}
# java.sql.Types; 93 is DATETIME as well as TIMESTAMP, and not among them.
CODES: Final = {
    -7: "BIT",
    -6: "TINYINT",
    5: "SMALLINT",
    4: "INT",
    -5: "BIGINT",
    # Both have 64 bits there, whatever the column has: a double holds a float's digits.
    6: "DOUBLE",
    8: "DOUBLE",
    7: "FLOAT",
    2: "DECIMAL",
    3: "DECIMAL",
    16: "BOOLEAN",
    91: "DATE",
    92: "TIME",
    2014: "TIMESTAMP WITH TIME ZONE",
    **dict.fromkeys((1, 12, -1, -15, -9, -16, 2005, 2011), "VARCHAR"),
    **dict.fromkeys((-2, -3, -4, 2004), "BLOB"),
}


@dataclass(frozen=True, slots=True)
class Stated:
    """A type as it is stated.

    Attributes: `names` (tuple of str), the words that may name it, in upper case, the longest first,
    or a semantic type's name; `parts` (`Declared`); `parameters` (mapping), those of a semantic type;
    `words` and `database` (str or None), the format and the database whose words they may be;
    `format` (str or None), in which the values come; `zone`, the source's; `is_sent`
    (bool), whether values are still as the sender spelled them, for want of a way to read them;
    `is_digits` (bool), whether a number may come as a string: not where that can be base64.
    """

    names: tuple[str, ...]
    parts: Declared
    parameters: Mapping[str, int]
    words: str | None = None
    format: str | None = None
    database: str | None = None
    zone: tzinfo | None = None
    is_sent: bool = False
    is_digits: bool = True

    def argument(self, place: int) -> int | None:
        """Give an argument of the type, from 0."""
        return self.parts.arguments[place] if place < len(self.parts.arguments) else None


def database_of(db_type: str | None) -> str | None:
    """Give the family of databases whose words differ from MySQL's, from a format's `dbType` or a connector's name.

    >>> database_of("OB_ORACLE"), database_of("OCEANBASE")
    ('oracle', None)
    """
    text = "" if db_type is None else db_type[:64].lower().replace(" ", "").replace("_", "")
    return next((family for word, family in _DATABASES.items() if word in text), None)


def names_of(text: str) -> tuple[str, ...]:
    """Give the words that may name a declared type, the longest first.

    >>> names_of("timestamp(6) without time zone"), names_of("int(11) unsigned")
    (('TIMESTAMP WITHOUT TIME ZONE',), ('INT UNSIGNED', 'INT'))
    """
    found = _SEMANTIC.fullmatch(text)
    if found is not None:
        return (found["name"],)
    labelled = _LABELLED.match(text)
    if labelled is not None:
        return (labelled[1].upper(),)
    words = _PARENTHESES.sub(" ", text).upper().split(maxsplit=_MOST_WORDS + 1)[: _MOST_WORDS + 1]
    names = [
        " ".join(words[:count])
        for count in range(min(len(words), _MOST_WORDS), 0, -1)
        if count == len(words) or words[count] in _MODIFIERS
    ]
    return (*names, _INTERVAL) if words[:1] == [_INTERVAL] else tuple(names)


def parameters_of(text: str) -> dict[str, int]:
    """Give the parameters behind a semantic type's name.

    >>> parameters_of("org.apache.kafka.connect.data.Decimal(precision=20,scale=0)")
    {'precision': 20, 'scale': 0}
    """
    found = _SEMANTIC.fullmatch(text)
    given = "" if found is None else found["given"] or ""
    return {name: int(value) for name, value in _PARAMETER.findall(given)}


def stated(text: str) -> Stated:
    """Take a type apart as it is stated, without what decides how its values come."""
    return Stated(names=names_of(text), parts=declared_type(text), parameters=parameters_of(text))
