"""A typed row: one change of a table's row with its order, as it goes into a lake table."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from msgspec import Struct

from cdcavro.change.model import DDL, DML, replace
from cdcavro.change.order_value import order_value
from cdcavro.lake.learning import identity_of
from cdcavro.table.ddl.contents import empties
from cdcavro.table.writing.writer import OPERATIONS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from cdcavro.change.clock import Clock
    from cdcavro.change.model import Change
    from cdcavro.table.history import Table
    from cdcavro.table.tables import Tables
    from cdcavro.table.writing.typed import TypedChange

UPSERTS: Final = ("c", "u", "r")
DELETE: Final = "d"
TRUNCATE: Final = "t"
DROP: Final = "x"


class TypedRow(Struct, frozen=True):
    """One change of a row of a table, or the end of all its rows so far.

    Attributes: `table` (int), the table's number; `version` (int), that of the schema it was written with;
    `operation` (str), as in the envelope, c, u, r or d, or t for a TRUNCATE and x for a DROP of the table;
    `order` (bytes), as `order_value` returns it; `key` (bytes or None), a payload of the key's schema, None
    without a primary key; `payload` (bytes), one of the envelope's schema, empty for a DROP; `absent` (tuple
    of str), the columns that the row after the change does not have.
    """

    table: int
    version: int
    operation: str
    order: bytes
    key: bytes | None
    payload: bytes
    absent: tuple[str, ...] = ()


def rows_of_message(
    message: Iterable[tuple[Change, Sequence[TypedChange]]], clock: Clock, dropped: Callable[[Change], Sequence[Table]]
) -> list[TypedRow]:
    """Return the rows of one message, all at one time of its lane.

    `message` has each change with what `Tables.write` made of it, and `dropped` tells the tables that a change
    dropped. Raises `OrderError` as `Clock.time` does.
    """
    ordered = [(change, typed, gone) for change, typed in message if (gone := dropped(change)) or typed]
    if not ordered:
        return []
    is_moving = any(_is_left(change, one) for change, typed, _ in ordered for one in typed)
    time = clock.time(ordered[0][0], is_moving=is_moving)
    rows = []
    for change, typed, gone in ordered:
        for one in typed:
            order = order_value(one.change, time=time, is_left=_is_left(change, one))
            number, version = one.table.number, one.schema.version
            rows.append(TypedRow(number, version, OPERATIONS[one.change.op], order, one.key, one.payload, one.absent))
        for table in gone:
            order = order_value(change, time=time)
            rows.append(TypedRow(table.number, table.schema.version, DROP, order, None, b""))
    return rows


def written(tables: Tables, change: Change) -> list[TypedChange]:
    """Return what `Tables.write` makes of a change that is learned, nothing of what is no row. Raises as that and `find`."""
    if change.half is not None:
        # The row before an update goes and the one after it comes, whatever message brings them.
        change = replace(change, op="DELETE" if change.half == "BEFORE" else "INSERT", half=None)
    return tables.write(change, tables.find(change)) if change.op in DML or empties(change) else []


def dropped_by(dropped: Mapping[bytes, Sequence[int]], tables: Tables) -> Callable[[Change], Sequence[Table]]:
    """Return the function that tells the tables that a change dropped, by what `Learned.dropped` has."""

    def gone(change: Change) -> list[Table]:
        numbers = dropped.get(identity_of(change), ()) if dropped and change.op in DDL else ()
        return [tables.tables[number] for number in numbers]

    return gone


def _is_left(change: Change, typed: TypedChange) -> bool:
    return change.op == "UPDATE" and typed.change.op == "DELETE"
