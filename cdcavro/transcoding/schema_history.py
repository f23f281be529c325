"""The schema history: columns of tables, learned from Debezium's schema changes and applied to row changes.

Without an embedded schema, a Debezium message does not state how its values are to be read: `AkY=` is
a DECIMAL or a BLOB. The connector's schema changes state it, if all messages are read in their order.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from cdcavro.change.connect_values import with_unsigned
from cdcavro.change.model import DML, Change, Column, replace
from cdcavro.change.modes import (
    ADAPTIVE_TIME_MICROSECONDS,
    BYTES,
    PRECISE,
    USUAL_MODES,
    Modes,
    check_modes,
)
from cdcavro.errors import StructureError
from cdcavro.exact.jsontext import parse
from cdcavro.formats import BRIDGES
from cdcavro.formats.connect_columns import (
    Table,
    changed_table,
    read_row,
    table_columns,
    table_key,
)
from cdcavro.formats.connect_messages import has_connect_values
from cdcavro.transcoding.mapping import records, with_members

if TYPE_CHECKING:
    from collections.abc import Sequence

MAX_TABLES: Final = 100_000
MAX_COLUMNS: Final = 500_000
_TABLE_CHANGES: Final = tuple(f"{above}/tableChanges" for above in ("", "/payload", "/value", "/value/payload"))


class SchemaHistory:
    """Learns the columns and keys of tables from Debezium's changes as they pass, and adds them to row changes.

    `decimals` is the connector's `decimal.handling.mode`, "precise" or "string"; `times` its
    `time.precision.mode`; `binaries` its `binary.handling.mode`; each by default the connector's own default.
    Only values of the MySQL and MariaDB connectors are converted. A renamed table is known by both names
    until the old name is created again or dropped. Raises `ValueError` for a mode that is not known.
    """

    def __init__(
        self, *, decimals: str = PRECISE, times: str = ADAPTIVE_TIME_MICROSECONDS, binaries: str = BYTES
    ) -> None:
        self._modes = check_modes(decimals, times, binaries)
        self._tables: dict[Table, tuple[tuple[Column, ...], tuple[str, ...] | None]] = {}
        self._count = 0

    def add(self, change: Change) -> Change:
        """Learn from a statement, and return a row change with its table's columns, any other change as it is.

        Raises `StructureError` for a schema change of a table for which there is no room: 100,000 tables and
        500,000 columns are remembered.
        """
        if not has_connect_values(change):
            return change
        for table_change in _table_changes(change):
            self._learn(table_change, change.source.format)
        table = self._tables.get(_table(change)) if change.op in DML else None
        if table is None:
            return change
        columns, key = table
        converted = with_columns(change, columns, modes=self._modes)
        return converted if converted.key is not None else replace(converted, key=key)

    def columns(self, database: str | None, table: str, schema: str | None = None) -> tuple[Column, ...] | None:
        """Return the columns that a table has now; None if it is unknown or was dropped."""
        known = self._tables.get((database, schema, table))
        return None if known is None else known[0]

    def _learn(self, table_change: Any, format: str | None) -> None:
        table, columns = changed_table(table_change), table_columns(table_change)
        if table is None:
            return
        known = self._tables.get(table)
        count = self._count - (0 if known is None else len(known[0]))
        if columns is None:
            self._tables.pop(table, None)
        elif (known is None and len(self._tables) >= MAX_TABLES) or count + len(columns) > MAX_COLUMNS:
            expected = f"at most {MAX_COLUMNS} columns of {MAX_TABLES} tables in all schema changes"
            raise StructureError(expected, "more", format=format)
        else:
            self._tables[table] = columns, table_key(table_change)
            count += len(columns)
        self._count = count


def lacks_columns(change: Change) -> bool:
    """Return whether the values of a change are still as Debezium sent them, because its columns are unknown."""
    return change.columns is None and has_connect_values(change)


def with_columns(change: Change, columns: Sequence[Column], *, modes: Modes = USUAL_MODES) -> Change:
    """Return a row change of Debezium with its columns, and with its values converted from how they were sent.

    Values that do not fit their column's type stay as they were sent, as do all values of connectors
    other than MySQL's and MariaDB's. The change still yields its whole message. A change of another
    format stays as it is, and so does one that has columns already, but for integers that are unsigned.
    """
    format, stated = change.source.format, tuple(columns) if lacks_columns(change) else _known(change, columns)
    if format is None or stated is None or stated is change.columns:
        return change
    known = frozenset(change.columns or ())
    unread = [column for column in stated if column not in known]
    (record,) = records([change], format)
    (unconverted,) = BRIDGES[format].to_changes(record, None)
    connector = change.source.db_type
    converted = replace(
        change,
        columns=stated,
        before=read_row(change.before, unread, connector, modes),
        after=read_row(change.after, unread, connector, modes),
        members=unconverted.members,
    )
    return with_members([converted], record, format)[0]


def _known(change: Change, known: Sequence[Column]) -> tuple[Column, ...] | None:
    return with_unsigned(change.columns, known) if change.columns is not None and has_connect_values(change) else None


def _table(change: Change) -> Table:
    return change.source.database, change.source.schema, change.source.table


def _table_changes(change: Change) -> list[Any]:
    """Return the table changes of a statement, which are among its members."""
    members = change.members or {}
    texts = [members[pointer] for pointer in _TABLE_CHANGES if members.get(pointer)]
    table_changes = parse(texts[0]) if texts else None
    return table_changes if type(table_changes) is list else []
