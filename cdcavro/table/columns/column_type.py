"""How the values of a column are held in Avro, by its declared type.

A column has one Avro type, whatever its values are; a value that the type does not carry exactly is
a misfit. What a word declares is in dict literals, which are looked up in this order: the format's
own words, the database's, everyone's. A type that none of them knows is a string, and says so.

* OMS's BIGINT may pass 64 bits, so it is a decimal; its INT64 is a long.
* DataHub sends a DECIMAL as DOUBLE, in strings, and a DOUBLE as numbers: either is a string of the
  digits sent. Given types tell them apart.
* A DATETIME is a local time. An instant sent for one (Dataworks' numbers, a text with a zone behind
  it) is one only with the source's zone; given as TIMESTAMP, the column holds instants.
* Strings are strings only, JSON columns take anything; types that are not known take anything, and
  do not tell 1 from "1".
* A zone that belongs to the value (ZONED_DATETIME, Oracle's TIMESTAMP WITH TIME ZONE) would be lost
  in an instant: such a column is a string.

Source: MySQL reference manual, "Data Types"; OMS data formats, the table of data types and the
changes with V3.3.0; DataHub message formats, "Field types"; Debezium reference, "Data type mappings".
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from cdcavro.change.values.canal import read_value, write_value
from cdcavro.change.values.connect import codec_of
from cdcavro.change.values.connect import read_value as connect_value
from cdcavro.errors import shown
from cdcavro.exact.sqltype import declared_type
from cdcavro.table.columns.declaration import CODES, database_of, stated
from cdcavro.table.columns.storage import Held
from cdcavro.table.columns.strings import anything
from cdcavro.table.columns.type_names import CONNECT, DATABASES, held

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import tzinfo

    from cdcavro.change.model import Column, Source

_CANAL: Final = "canal"
_DEBEZIUM: Final = "debezium"
_MYSQL: Final = frozenset({"mysql", "mariadb"})
_TIMESTAMP: Final = 93
_SHORT: Final = 1_000


@dataclass(frozen=True, slots=True)
class ColumnType:
    """How the values of a column are held.

    Attributes: `avro`, the Avro type as a JSON value, neither a union nor null; `declared` (str or
    None), the declared type as spelled; `note` (str or None), what a user should be told; `read`,
    from a JSON value, never None, to the datum of the Avro primitive (int, float, bool, str, bytes;
    a decimal's bytes), or `column_values.MISFIT`.
    """

    avro: Any
    declared: str | None
    note: str | None
    read: Callable[[Any], Any]


class _Facts(NamedTuple):
    """All that the type of a column depends on."""

    type: str | None
    code: int | None
    format: str | None
    database: str | None
    connector: str | None
    given: str | None
    zone: tzinfo | None


def column_type(column: Column, source: Source, *, given: str | None = None, zone: tzinfo | None = None) -> ColumnType:
    """Give how a column's values are held, as the changes of a format have them.

    `given` is a type that stands in for the declared one; `zone` is that of the source. The same
    facts give the same object.

    >>> from cdcavro.change.model import Column, Source
    >>> made = column_type(Column(name="n", type="int unsigned"), Source(format="canal"))
    >>> made.avro, made.read(4294967295), made.read(-1)
    ('long', 4294967295, MISFIT)
    """
    connector = source.db_type if source.format == _DEBEZIUM and source.db_type in _MYSQL else None
    database = database_of(source.db_type)
    facts = _Facts(column.type, column.code, source.format, database, connector, given, zone)
    return (_remembered if len(column.type or "") + len(given or "") <= _SHORT else _remembered_few)(facts)


def is_known(text: str) -> bool:
    """Tell whether a type means something in any database.

    >>> is_known("decimal(10,2)"), is_known("decmal(10,2)")
    (True, False)
    """
    taken = stated(text)
    return any(held(replace(taken, database=database)) is not None for database in DATABASES)


def _made(facts: _Facts) -> ColumnType:
    if facts.given is not None:
        made = _held(facts, facts.given)
        return ColumnType(made.avro, facts.type, made.note, _given_reader(facts, facts.given, made.read))
    made = _by_code(facts) if facts.type is None else _held(facts, facts.type)
    return ColumnType(made.avro, facts.type, made.note, made.read)


def _held(facts: _Facts, text: str) -> Held:
    is_debezium, is_given = facts.format == _DEBEZIUM, facts.given is not None
    is_embedded = is_debezium and facts.code is None and not is_given
    taken = replace(
        stated(text),
        # A type that is given is one of the database, in no format's words.
        words=None if is_given else CONNECT if is_embedded else facts.format,
        format=facts.format,
        database=facts.database,
        zone=facts.zone,
        is_sent=is_debezium and not is_embedded and facts.connector is None,
        is_digits=not is_debezium or facts.type == "string",
    )
    return held(taken) or Held("string", anything(), f"unknown type {shown(text)}: a string")


def _by_code(facts: _Facts) -> Held:
    """Give how values are held where only the code of java.sql.Types is stated, or nothing."""
    if facts.code is None:
        return Held("string", anything(), "no type is stated: a string")
    if facts.code == _TIMESTAMP:
        return Held("string", anything(), "code 93 of java.sql.Types is DATETIME or TIMESTAMP: a string")
    if facts.code not in CODES:
        return Held("string", anything(), f"unknown code {facts.code} of java.sql.Types: a string")
    made = _held(facts, CODES[facts.code])
    if made.avro == "bytes" and facts.format == _CANAL:
        return Held(
            "string", anything(), f"code {facts.code} of java.sql.Types does not say how bytes are sent: a string"
        )
    return made


def _given_reader(facts: _Facts, given: str, read: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Let values be turned by the type that is given, where their format turns them by type."""
    zone, new = facts.zone, declared_type(given)
    if facts.format == _CANAL:
        own = None if facts.type is None else declared_type(facts.type)
        return lambda value: read(read_value(write_value(value, own, zone), new, zone))
    codec = codec_of(given, facts.connector) if facts.format == _DEBEZIUM and facts.type is None else None
    return read if codec is None else lambda value: read(connect_value(value, codec))


_remembered: Final = lru_cache(maxsize=4096)(_made)
_remembered_few: Final = lru_cache(maxsize=64)(_made)
