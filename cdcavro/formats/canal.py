"""Alibaba Canal's flat messages (`avsc/canal.avsc`).

Source: Canal, class `FlatMessage`; 188 messages that Canal 1.1.7 produced from a MySQL binlog; TiCDC, package `canal`
of its codecs, and TiDB documentation, "TiCDC Canal-JSON Protocol".

* Like `oms_canal`, plus `id`, the number of a batch, and `gtid`, empty where there is none: either of
  them identifies the format.
* Every column value is a string. `mysqlType` says how to read it: an ENUM is its index, a SET its
  bitmask, a BIT its number, a binary value ISO-8859-1 characters, and a geometry the characters of
  MySQL's internal form. A change has JSON numbers, labels and base64 instead, as other formats send them.
* A string that its type cannot have (an index beyond the labels, a zero date) stays as it is.
* TiCDC writes this form, too, with the number of the commit in `_tidb`, which is the order. Unless it is told to
  (`content-compatible`), its types lack their arguments, which the table then has from its statements. A row that was
  too large for a message has its key alone there, and is refused.
* A TIMESTAMP is local time: with `zone`, a change has seconds since the epoch, as OMS sends them.
* An update of the primary key is one UPDATE.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from cdcavro.change.canal_values import CanalRowReader, CanalRowWriter
from cdcavro.exact.caching import IdentityCache
from cdcavro.exact.sqltype import parse_sql_type
from cdcavro.formats.bridge import Bridge
from cdcavro.formats.oms_canal import changes_of, records_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from datetime import tzinfo

    from cdcavro.change.model import Change, Column
    from cdcavro.exact.sqltype import SqlType

FORMAT: Final = "canal"


def to_changes(record: dict[str, Any], zone: tzinfo | None = None) -> list[Change]:
    """Return a change for each row of a flat message, or one change for a statement."""
    return changes_of(record, FORMAT, _READERS, zone)


def from_changes(changes: Sequence[Change], zone: tzinfo | None = None) -> list[dict[str, Any]]:
    """Return the flat messages of changes, joining the rows that came in one message."""
    records = records_of(changes, FORMAT, _WRITERS, zone)
    return [{"gtid": ""} | record for record in records]


def _reader(columns: tuple[Column, ...] | None, zone: tzinfo | None) -> CanalRowReader:
    """Return the converter of a row that Canal sent to the row of a change."""
    return CanalRowReader(_types(columns), zone)


def _writer(columns: tuple[Column, ...] | None, zone: tzinfo | None) -> CanalRowWriter:
    """Return the converter of the row of a change to a row as Canal sends it."""
    return CanalRowWriter(_types(columns), zone)


def _types(columns: tuple[Column, ...] | None) -> Iterator[tuple[str, SqlType]]:
    for column in columns or ():
        if column.name is not None and column.type is not None:
            yield column.name, parse_sql_type(column.type)


_READERS: Final = IdentityCache(_reader)
_WRITERS: Final = IdentityCache(_writer)


BRIDGE: Final = Bridge(to_changes=to_changes, from_changes=from_changes)
