"""A column's type as it is stated: its names, its parts, and what else decides how its values come.

The same word means different things: INT8 has 64 bits in SQL and 8 in Kafka Connect, DATE is a day
in MySQL, a local time in Oracle and an instant in DataHub. So a word is looked up first among those
of the format, then of the database, then of all.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from cdcavro.exact.sqltype import SqlType, parse_sql_type
from cdcavro.table.columns.times import from_seconds_text, no_count

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
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


@dataclass(frozen=True, slots=True, kw_only=True)
class FormatRules:
    """How a format declares columns, and in what form their values come.

    Attributes: `words`, what it calls types, before anybody else's words; `datetime` and `instant`,
    what a number, or the text of one, is in a column of local times and of instants; `date_is_days`
    (bool), a number in a DATE column is days; `binary_is_text` (bool), binary of MySQL's types comes
    as ISO-8859-1 text without the zeros that fill BINARY up, and other binary in no known form;
    `bit_width` (int or None), the width of a BIT that states none; `is_connect` (bool), types are
    Kafka Connect's where they are not a database's; `reader_of_given`, the reader of a type that the
    user gave, where values come in a form that depends on their declared type.
    """

    words: Mapping[str, Callable[[Declaration], Any]] = field(default_factory=dict)
    datetime: Callable[[Any], Any] = no_count
    instant: Callable[[Any], Any] = from_seconds_text
    date_is_days: bool = False
    binary_is_text: bool = False
    bit_width: int | None = None
    is_connect: bool = False
    reader_of_given: Callable[[Given], Callable[[Any], Any]] = attrgetter("read")


class Given(NamedTuple):
    """A type that the user gave for a column: the type, the declared one, the connector, the zone, and the reader."""

    type: str
    declared: str | None
    connector: str | None
    zone: tzinfo | None
    read: Callable[[Any], Any]


USUAL: Final = FormatRules()


@dataclass(frozen=True, slots=True)
class Declaration:
    """A type as it is stated.

    Attributes: `names` (tuple of str), the words that may name it, in upper case, the longest first,
    or a semantic type's name; `parts` (`SqlType`); `parameters` (mapping), those of a semantic type;
    `words`, those of the format, and `database` (str or None), the database whose words they may be;
    `rules`, those of the format in which the values come; `zone`, the source's; `is_sent`
    (bool), whether values are still as the sender spelled them, for want of a way to read them;
    `is_digits` (bool), whether a number may come as a string: not where that can be base64.
    """

    names: tuple[str, ...]
    parts: SqlType
    parameters: Mapping[str, int]
    words: Mapping[str, Callable[[Declaration], Any]] = field(default_factory=dict)
    rules: FormatRules = USUAL
    database: str | None = None
    zone: tzinfo | None = None
    is_sent: bool = False
    is_digits: bool = True

    def argument(self, place: int) -> int | None:
        """Return an argument of the type, from 0."""
        return self.parts.arguments[place] if place < len(self.parts.arguments) else None


def database_of(db_type: str | None) -> str | None:
    """Return the family of databases whose words differ from MySQL's, from a format's `dbType` or a connector's name.

    >>> database_of("OB_ORACLE"), database_of("OCEANBASE")
    ('oracle', None)
    """
    text = "" if db_type is None else db_type[:64].lower().replace(" ", "").replace("_", "")
    return next((family for word, family in _DATABASES.items() if word in text), None)


def column_type_names(text: str) -> tuple[str, ...]:
    """Return the words that may name a declared type, the longest first.

    >>> column_type_names("timestamp(6) without time zone"), column_type_names("int(11) unsigned")
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
    """Return the parameters behind a semantic type's name.

    >>> parameters_of("org.apache.kafka.connect.data.Decimal(precision=20,scale=0)")
    {'precision': 20, 'scale': 0}
    """
    found = _SEMANTIC.fullmatch(text)
    given = "" if found is None else found["given"] or ""
    return {name: int(value) for name, value in _PARAMETER.findall(given)}


def stated(text: str) -> Declaration:
    """Take a type apart as it is stated, without what decides how its values come."""
    return Declaration(names=column_type_names(text), parts=parse_sql_type(text), parameters=parameters_of(text))
