"""How the values of a column are stored in Avro, by its declared type.

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
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from cdcavro.change.modes import USUAL_MODES, Modes
from cdcavro.errors import shown
from cdcavro.exact.sqltype import MYSQL_FAMILY
from cdcavro.table.columns.declaration import CODES, USUAL, FormatRules, Given, database_of, stated
from cdcavro.table.columns.format_rules import RULES
from cdcavro.table.columns.storage import Storage
from cdcavro.table.columns.strings import read_anything
from cdcavro.table.columns.type_names import DATABASES, storage_of

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import tzinfo

    from cdcavro.change.model import Column, Source

_TIMESTAMP: Final = 93
_SHORT: Final = 1_000


@dataclass(frozen=True, slots=True)
class ColumnType:
    """How the values of a column are stored.

    Attributes: `avro`, the Avro type as a JSON value, neither a union nor null; `declared` (str or
    None), the declared type as spelled; `note` (str or None), a remark for the user; `read`, a function
    from a JSON value, never None, to the datum of the Avro primitive (int, float, bool, str, bytes;
    a decimal's bytes), or to `columns.strings.MISFIT`.
    """

    avro: Any
    declared: str | None
    note: str | None
    read: Callable[[Any], Any]


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
    declaration = stated(text)
    return any(storage_of(replace(declaration, database=database)) is not None for database in DATABASES)


def _column_type(facts: _Facts) -> ColumnType:
    rules = RULES.get(facts.format or "", USUAL)
    if facts.given is not None:
        storage = _stored(facts, rules, facts.given)
        read = rules.reader_of_given(
            Given(facts.given, facts.type, facts.connector, facts.zone, storage.read, facts.modes)
        )
        return ColumnType(storage.avro, facts.type, storage.note, read)
    storage = _by_code(facts, rules) if facts.type is None else _stored(facts, rules, facts.type)
    return ColumnType(storage.avro, facts.type, storage.note, storage.read)


def _stored(facts: _Facts, rules: FormatRules, text: str) -> Storage:
    is_given = facts.given is not None
    # Kafka Connect's names mean its own types; a database's names come with a code, or are given by the user.
    is_embedded = rules.is_connect and facts.code is None and not is_given
    is_of_a_database = is_given or (rules.is_connect and not is_embedded)
    declaration = replace(
        stated(text),
        words=USUAL.words if is_of_a_database else rules.words,
        rules=rules,
        database=facts.database,
        zone=facts.zone,
        is_sent=rules.is_connect and not is_embedded and facts.connector is None,
        is_digits=not rules.is_connect or facts.type == "string",
    )
    return storage_of(declaration) or Storage("string", read_anything(), f"unknown type {shown(text)}: a string")


def _by_code(facts: _Facts, rules: FormatRules) -> Storage:
    """Return how values are stored if only a code of java.sql.Types is stated, or nothing at all."""
    if facts.code is None:
        return Storage("string", read_anything(), "no type is stated: a string")
    if facts.code == _TIMESTAMP:
        return Storage("string", read_anything(), "code 93 of java.sql.Types is DATETIME or TIMESTAMP: a string")
    if facts.code not in CODES:
        return Storage("string", read_anything(), f"unknown code {facts.code} of java.sql.Types: a string")
    storage = _stored(facts, rules, CODES[facts.code])
    if storage.avro == "bytes" and rules.binary_is_text:
        return Storage(
            "string", read_anything(), f"code {facts.code} of java.sql.Types does not say how bytes are sent: a string"
        )
    return storage


_remembered: Final = lru_cache(maxsize=4096)(_column_type)
_remembered_few: Final = lru_cache(maxsize=64)(_column_type)
