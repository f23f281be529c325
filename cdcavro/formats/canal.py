"""Alibaba Canal's flat messages (`avsc/canal.avsc`).

Source: Canal, class `FlatMessage`; 188 messages that Canal 1.1.7 made of a MySQL binlog.

* As `oms_canal`, with `id`, the number of a batch, and `gtid`, empty where there is none: one of them tells it.
* Every column value is a string. `mysqlType` says how to read it: ENUM is its index, SET its bitmask,
  BIT its number, binary values ISO-8859-1 characters, and a geometry those of MySQL's own form. A
  change has JSON numbers, labels and base64 instead, as other formats send them.
* A string that its type cannot have (an index beyond the labels, a zero date) stays as it is.
* TIMESTAMP is local time: with `zone` a change has seconds since the epoch, as OMS sends them.
* An update of the primary key is one UPDATE.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any

from cdcavro.change import Change, Column, Row, replace
from cdcavro.declared import declared_type
from cdcavro.format import Format
from cdcavro.formats.oms_canal import changes_of, records_of
from cdcavro.values import read_value, write_value

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from datetime import tzinfo

    from cdcavro.declared import Declared

FORMAT = Format("canal")


def to_changes(record: dict[str, Any], zone: tzinfo | None = None) -> list[Change]:
    """Give a change for each row of a flat message, or one for a statement."""

    def turner(columns: tuple[Column, ...] | None) -> Callable[[Row], Row]:
        types = _types(columns)
        return lambda row: {name: read_value(value, types.get(name), zone) for name, value in row.items()}

    changes = changes_of(record, FORMAT.name, turner)
    return [change if change.transaction else replace(change, transaction=None) for change in changes]


def from_changes(changes: Sequence[Change], zone: tzinfo | None = None) -> list[dict[str, Any]]:
    """Give the flat messages of changes; the rows of one message are put together again."""
    written = []
    columns, types = None, _types(None)
    for change in changes:
        if change.columns is not columns:
            columns, types = change.columns, _types(change.columns)
        written.append(_written(change, types, zone))
    return [{"gtid": ""} | record for record in records_of(written, FORMAT.name)]


@lru_cache(maxsize=512)
def _types(columns: tuple[Column, ...] | None) -> dict[str, Declared]:
    named = ((one.name, one.type) for one in columns or ())
    return {name: declared_type(type) for name, type in named if name is not None and type is not None}


def _written(change: Change, types: dict[str, Declared], zone: tzinfo | None) -> Change:
    """Give a change with every column value as Canal sends it."""
    before, after = (
        image and {name: write_value(value, types.get(name), zone) for name, value in image.items()}
        for image in (change.before, change.after)
    )
    return replace(change, before=before, after=after)
