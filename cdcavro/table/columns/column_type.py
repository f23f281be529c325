"""The type of a column: how its values are stored in Avro, by its declared type or the one that the user gives.

A column has one Avro type, whatever its values are; a value that the type cannot carry exactly is
a misfit. Dict literals say what a type name means; they are searched in this order: the format's own
names, the database's, the common ones. A type that none of them knows is a string, with a note.

* OMS's BIGINT may exceed 64 bits, so it is a decimal; its INT64 is a long.
* DataHub sends both DECIMAL and DOUBLE as DOUBLE, the former in strings, the latter as numbers:
  either is a string of the digits sent, unless the user gives a type.
* A DATETIME is a local time. An instant sent for it (Dataworks' numbers, a text with a zone after
  it) becomes a local time only if the source's zone is known; if the user gives TIMESTAMP, the
  column holds instants.
* A string column takes strings only; a JSON column takes anything; so does a column of an unknown
  type, which does not distinguish 1 from "1".
* A zone that is part of the value (ZONED_DATETIME, Oracle's TIMESTAMP WITH TIME ZONE) would be lost
  in an instant: such a column is a string.

Source: MySQL reference manual, "Data Types"; OMS data formats, the table of data types and the
changes with V3.3.0; DataHub message formats, "Field types"; Debezium reference, "Data type mappings".

A `Declaration` is a column's type as stated: its possible names, its parts, and what else decides the form of its
values. The same name means different things: INT8 has 64 bits in SQL and 8 in Kafka Connect; DATE is a day in MySQL, a
local time in Oracle and an instant in DataHub. So a name is looked up first among the format's, then among the
database's, then among the common ones.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from cdcavro.change.model import Rule
from cdcavro.change.operations import USUAL_MODES, Modes
from cdcavro.errors import FileError, TextError, shown
from cdcavro.exact.jsontext import parse
from cdcavro.exact.sqltype import MYSQL_FAMILY, SqlType, parse_sql_type
from cdcavro.table.columns import readers, times
from cdcavro.table.columns.format_rules import RULES, USUAL, FormatRules, GivenType
from cdcavro.table.columns.type_names import TYPES, Storage, storage_of

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import tzinfo

    from cdcavro.change.model import Column, Source
    from cdcavro.table.columns.readers import Reader
    from cdcavro.table.columns.type_names import Entry
    from cdcavro.table.ddl.steps import TableName

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


ALL: Final = "*"
# The note on a column for which neither a type nor a code is stated.
UNTYPED: Final = "no type is stated: a string"
_TIMESTAMP: Final = 93
_SHORT: Final = 1_000


@dataclass(frozen=True, slots=True)
class ColumnType:
    """How the values of a column are stored."""

    # The Avro type as a JSON value, neither a union nor null.
    avro: Any
    # The declared type as spelled.
    declared: str | None
    # A remark for the user.
    note: str | None
    # How values are converted.
    rule: Rule
    # Turns a JSON value, never None, into the datum of the Avro primitive (int, float, bool, str, bytes; a decimal's
    # bytes), or into `MISFIT`.
    read: Reader


class _Facts(NamedTuple):
    """Everything that the type of a column depends on."""

    type: str | None
    code: int | None
    format: str | None
    database: str | None
    connector: str | None
    given: str | None
    zone: tzinfo | None
    modes: Modes


def column_type(
    column: Column,
    source: Source,
    *,
    given: str | None = None,
    zone: tzinfo | None = None,
    modes: Modes = USUAL_MODES,
) -> ColumnType:
    """Return how a column's values are stored, as they come in the changes of a format.

    `given` is a type that replaces the declared one; `zone` is the source's time zone; `modes` say how
    Debezium sends the values of a type that only the user gives. Equal arguments
    usually return the same object, since results are cached.

    >>> from cdcavro.change.model import Column, Source
    >>> column = column_type(Column(name="n", type="int unsigned"), Source(format="canal"))
    >>> column.avro, column.read(4294967295), column.read(-1)
    ('long', 4294967295, MISFIT)
    """
    rules = RULES.get(source.format or "", USUAL)
    connector = source.db_type if rules.is_connect and source.db_type in MYSQL_FAMILY else None
    database = database_of(source.db_type)
    facts = _Facts(column.type, column.code, source.format, database, connector, given, zone, modes)
    return (_remembered if len(column.type or "") + len(given or "") <= _SHORT else _remembered_few)(facts)


def is_known(text: str) -> bool:
    """Return whether a type is known in any database.

    >>> is_known("decimal(10,2)"), is_known("decmal(10,2)")
    (True, False)
    """
    declaration = stated(text, USUAL)
    return any(storage_of(replace(declaration, database=database)) is not None for database in TYPES)


def _column_type(facts: _Facts) -> ColumnType:
    rules = RULES.get(facts.format or "", USUAL)
    if facts.given is not None:
        storage = _stored(facts, rules, facts.given)
        convert = rules.conversion(GivenType(facts.given, facts.type, facts.connector, facts.zone, facts.modes))
        if convert is not None:
            storage = storage._replace(rule=Rule("converted", convert, storage.rule))
    else:
        storage = _by_code(facts, rules) if facts.type is None else _stored(facts, rules, facts.type)
    return ColumnType(storage.avro, facts.type, storage.note, storage.rule, reader_of(storage.rule))


def reader_of(rule: Rule) -> Reader:
    """Return the reader of a rule: a function from a JSON value, never None, to an Avro datum or `MISFIT`.

    >>> reader_of(Rule("whole", 0, 255))("255"), reader_of(Rule("whole", 0, 255))(256)
    (255, MISFIT)
    """
    return READERS[rule.name](*rule.operands)


def _converted(convert: Callable[[Any], Any], rule: Rule) -> Reader:
    """Return a reader of values that pass a function before the reader of a rule."""
    read = reader_of(rule)
    return lambda value: read(convert(value))


def _stored(facts: _Facts, rules: FormatRules, text: str) -> Storage:
    is_given = facts.given is not None
    # Kafka Connect's names mean its own types; a database's names come with a code, or are given by the user.
    is_embedded = rules.is_connect and facts.code is None and not is_given
    is_of_a_database = is_given or (rules.is_connect and not is_embedded)
    declaration = replace(
        stated(text, rules),
        words=USUAL.words if is_of_a_database else rules.words,
        database=facts.database,
        zone=facts.zone,
        is_sent=rules.is_connect and not is_embedded and facts.connector is None,
        is_digits=not rules.is_connect or facts.type == "string",
    )
    return storage_of(declaration) or _anything(f"unknown type {shown(text)}: a string")


def _anything(note: str) -> Storage:
    return Storage("string", Rule("anything"), note)


def _by_code(facts: _Facts, rules: FormatRules) -> Storage:
    """Return how values are stored if only a code of java.sql.Types is stated, or nothing at all."""
    if facts.code is None:
        return _anything(UNTYPED)
    if facts.code == _TIMESTAMP:
        return _anything("code 93 of java.sql.Types is DATETIME or TIMESTAMP: a string")
    if facts.code not in CODES:
        return _anything(f"unknown code {facts.code} of java.sql.Types: a string")
    storage = _stored(facts, rules, CODES[facts.code])
    if storage.avro == "bytes" and rules.binary_is_text:
        return _anything(f"code {facts.code} of java.sql.Types does not say how bytes are sent: a string")
    return storage


@dataclass(frozen=True, slots=True)
class TypeOverrides:
    """The types that the user gives for columns, in a file or a mapping.

        {"shop.orders": {"amount": "decimal(10,2)"}, "orders": {"id": "int"}, "*": {"created_at": "timestamp"}}

    A table is given as `database.schema.table`, as `database.table` whatever its schema, as `table` for any database, or
    as `*` for all tables. For each column the most specific entry counts. A column's name matches exactly, or else
    regardless of case. Use `from_mapping` to make one, since it checks the types.

    >>> from cdcavro.change.model import Source
    >>> given = TypeOverrides.from_mapping({"shop.orders": {"amount": "decimal(10,2)"}, "*": {"AMOUNT": "double"}})
    >>> given.of(Source(database="shop", table="orders"), "amount"), given.of(Source(table="orders"), "amount")
    ('decimal(10,2)', 'double')
    """

    # The types by the names of columns, by that of their table.
    tables: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    # The same by case-folded names of columns.
    _folded: Mapping[str, Mapping[str, str]] = field(default_factory=dict, repr=False, compare=False)

    @classmethod
    def from_mapping(cls, tables: Mapping[str, Mapping[str, str]], *, file: str = "types") -> TypeOverrides:
        """Return the types of a mapping, checked and copied. Raises `FileError`, which names `file`."""
        if not isinstance(tables, Mapping):
            raise FileError(file, "an object from table to columns", shown(repr(tables)))
        for table, columns in tables.items():
            _check_columns(file, table, columns)
        return cls(
            {table: dict(columns) for table, columns in tables.items()},
            {table: _folded(columns) for table, columns in tables.items()},
        )

    def of(self, source: Source, column: str | None) -> str | None:
        """Return the type given for a column of a source's table, or None."""
        if column is None or not self.tables:
            return None
        for table in (*names_of_table(source), ALL):
            type = self.tables.get(table, {}).get(column) or self._folded.get(table, {}).get(column.casefold())
            if type is not None:
                return type
        return None


def read_types(file: str | Path) -> TypeOverrides:
    """Return the types in a JSON file. Raises `FileError`, and `OSError` for a file that cannot be read."""
    raw = Path(file).read_bytes()
    try:
        tables = parse(raw)
    except TextError as error:
        raise FileError(str(file), error.expected, error.got) from error
    return TypeOverrides.from_mapping(tables, file=str(file))


def _check_columns(file: str, table: Any, columns: Any) -> None:
    if not isinstance(table, str) or not table:
        raise FileError(file, "a table's name, database.schema.table, database.table or *", shown(repr(table)))
    if not isinstance(columns, Mapping):
        raise FileError(file, f"an object from column to type for {shown(table)}", shown(repr(columns)))
    for name, type in columns.items():
        if not isinstance(name, str) or not isinstance(type, str):
            raise FileError(file, f"the text of a type for {shown(table)} {shown(name)}", shown(repr(type)))
        if not _is_known(type):
            raise FileError(file, f"a type that is known for {shown(table)} {shown(name)}", shown(type))


def names_of_table(table: Source | TableName) -> list[str]:
    """Return the names under which types are given for a table, besides `*`, most specific first; none for no table.

    Without a database, the first one is of schema and table, as the table is called everywhere else.

    >>> from cdcavro.change.model import Source
    >>> names_of_table(Source(database="d", schema="public", table="t"))
    ['d.public.t', 'd.t', 't']
    """
    if table.table is None:
        return []
    whole = ".".join(part for part in (table.database, table.schema, table.table) if part is not None)
    pair = [] if table.database is None else [f"{table.database}.{table.table}"]
    return [*dict.fromkeys([whole, *pair, table.table])]


def _folded(columns: Mapping[str, str]) -> dict[str, str]:
    """Return the types by case-folded name, without names that differ in case only."""
    times = Counter(name.casefold() for name in columns)
    return {name.casefold(): type for name, type in columns.items() if times[name.casefold()] == 1}


READERS: Final[dict[str, Callable[..., Reader]]] = {**readers.READERS, **times.READERS, "converted": _converted}
"""What makes the reader of a rule from its operands, by the name of the rule."""
_remembered: Final = lru_cache(maxsize=4096)(_column_type)
_remembered_few: Final = lru_cache(maxsize=64)(_column_type)
_is_known: Final = lru_cache(maxsize=256)(is_known)
