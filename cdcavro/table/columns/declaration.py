"""A column's type as stated: its possible names, its parts, and what else decides the form of its values.

The same name means different things: INT8 has 64 bits in SQL and 8 in Kafka Connect; DATE is a day
in MySQL, a local time in Oracle and an instant in DataHub. So a name is looked up first among the
format's, then among the database's, then among the common ones.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from cdcavro.exact.sqltype import SqlType, parse_sql_type

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import tzinfo

    from cdcavro.table.columns.format_rules import FormatRules
    from cdcavro.table.columns.type_names import Entry

_PARENTHESES: Final = re.compile(r"\([^()]*+\)")
_SEMANTIC: Final = re.compile(r"(?P<name>\w+(?:\.\w+)+)(?:\((?P<given>[^()]*+)\))?", re.ASCII)
_PARAMETER: Final = re.compile(r"(\w+)=(-?[0-9]{1,9})", re.ASCII)
_LABELLED: Final = re.compile(r"\s*(ENUM|SET)\s*\(", re.ASCII | re.IGNORECASE)
_MOST_WORDS: Final = 5
# What may follow the words of a type; anything else there makes it another type.
_MODIFIERS: Final = frozenset(
    {"UNSIGNED", "SIGNED", "ZEROFILL", "CHARACTER", "CHARSET", "COLLATE", "NOT", "NULL", "DEFAULT", "COMMENT"}
)
_INTERVAL: Final = "INTERVAL"
_DATABASES: Final = {"postgres": "postgresql", "oracle": "oracle", "sqlserver": "sqlserver"}
# Codes of java.sql.Types, without 93, which is DATETIME as well as TIMESTAMP.
CODES: Final = {
    -7: "BIT",
    -6: "TINYINT",
    5: "SMALLINT",
    4: "INT",
    -5: "BIGINT",
    # Both have 64 bits there, whatever the column has, and a double also holds a float's digits.
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
class Declaration:
    """A type as stated."""

    # The possible names, in upper case and longest first, or the name of a semantic type.
    names: tuple[str, ...]
    parts: SqlType
    # Those of a semantic type.
    parameters: Mapping[str, int]
    # The rules of the format in which the values come.
    rules: FormatRules
    # The type names of the format, which take precedence.
    words: Mapping[str, Entry] = field(default_factory=dict)
    # The database whose names apply.
    database: str | None = None
    # The source's time zone.
    zone: tzinfo | None = None
    # Whether values are still as the sender wrote them, since their encoding is unknown.
    is_sent: bool = False
    # Whether a number may come as a string, which it may not where that could be base64.
    is_digits: bool = True

    def argument(self, place: int) -> int | None:
        """Return the type's argument at a place, counted from 0; None if it has fewer."""
        return self.parts.arguments[place] if place < len(self.parts.arguments) else None


def database_of(db_type: str | None) -> str | None:
    """Return the family of databases whose type names differ from MySQL's; None for MySQL's own family and others.

    `db_type` is a format's `dbType` or the name of a connector.

    >>> database_of("OB_ORACLE"), database_of("OCEANBASE")
    ('oracle', None)
    """
    text = "" if db_type is None else db_type[:64].lower().replace(" ", "").replace("_", "")
    return next((family for word, family in _DATABASES.items() if word in text), None)


def column_type_names(text: str) -> tuple[str, ...]:
    """Return the possible names of a declared type, longest first.

    >>> column_type_names("timestamp(6) without time zone"), column_type_names("int(11) unsigned")
    (('TIMESTAMP WITHOUT TIME ZONE',), ('INT UNSIGNED', 'INT'))
    """
    semantic = _SEMANTIC.fullmatch(text)
    if semantic is not None:
        return (semantic["name"],)
    if text.startswith("array<"):
        return ("ARRAY",)
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
    """Return the parameters that follow a semantic type's name.

    >>> parameters_of("org.apache.kafka.connect.data.Decimal(precision=20,scale=0)")
    {'precision': 20, 'scale': 0}
    """
    semantic = _SEMANTIC.fullmatch(text)
    arguments = "" if semantic is None else semantic["given"] or ""
    return {name: int(value) for name, value in _PARAMETER.findall(arguments)}


def stated(text: str, rules: FormatRules) -> Declaration:
    """Return the declaration of a type's text, without what else decides the form of its values."""
    return Declaration(column_type_names(text), parse_sql_type(text), parameters_of(text), rules)
