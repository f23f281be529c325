"""Typed rows: the changes of tables' rows with their order, as they go into a lake table, and how batches become them.

What the statements and rows of a batch say of tables is learned in order; then every row is placed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from msgspec import Struct

from cdcavro.change.clock import Clock
from cdcavro.change.model import DDL, DML, Change, replace
from cdcavro.change.order_value import order_value
from cdcavro.errors import CdcAvroError
from cdcavro.lake.learning import Learner, identity_of
from cdcavro.table.ddl.contents import empties
from cdcavro.table.writing.table_writer import OPERATIONS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from cdcavro.table.history import Table
    from cdcavro.table.tables import Tables, TypedChange

UPSERTS: Final = ("c", "u", "r")
DELETE: Final = "d"
TRUNCATE: Final = "t"
DROP: Final = "x"


class TypedRow(Struct, frozen=True):
    """One change of a row of a table, or the end of all its rows so far.

    * `table` and `version` (int): the number of the table, and the version of the schema that the row was written with.
    * `operation` (str): as in the envelope, c, u, r or d; or t for a TRUNCATE and x for a DROP of the table.
    * `order` (bytes): as `order_value` returns it.
    * `key` (bytes or None): a payload of the key's schema; None without a primary key.
    * `payload` (bytes): a payload of the envelope's schema; empty for a DROP.
    * `absent` (tuple[str, ...]): the columns that the row after the change does not have.
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

    `message` has each change with what `Tables.write` made of it, and `dropped` returns the tables that a change
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


def write_change(tables: Tables, change: Change) -> list[TypedChange]:
    """Return what `Tables.write` makes of a change that is learned; nothing if the change is no row.

    Raises as `Tables.find` and `Tables.write` do.
    """
    if change.half is not None:
        # The row before an update goes and the one after it comes, whatever message brings them.
        change = replace(change, op="DELETE" if change.half == "BEFORE" else "INSERT", half=None)
    return tables.write(change, tables.find(change)) if change.op in DML or empties(change) else []


def drop_lookup(dropped: Mapping[bytes, Sequence[int]], tables: Tables) -> Callable[[Change], Sequence[Table]]:
    """Return a function that returns the tables which a change dropped; `dropped` is `Learned.dropped`."""

    def look_up(change: Change) -> list[Table]:
        numbers = dropped.get(identity_of(change), ()) if dropped and change.op in DDL else ()
        return [tables.tables[number] for number in numbers]

    return look_up


def _is_left(change: Change, typed: TypedChange) -> bool:
    return change.op == "UPDATE" and typed.change.op == "DELETE"


class Batch(NamedTuple):
    """What becomes of a batch of messages.

    * `rows` (list[TypedRow]): in the order of arrival.
    * `rejects` (list[tuple[Change, CdcAvroError]]): changes that contradict their table, and statements that were not
      understood and changed nothing.
    * `statements` (int): how many changes were no rows.
    * `learned` (list[Change]): what the batch said of tables, without values: whoever learns it in this order knows
      what the batch knows.
    * `dropped` (dict[bytes, tuple[int, ...]]): as in `Learned`.
    """

    rows: list[TypedRow]
    rejects: list[tuple[Change, CdcAvroError]]
    statements: int
    learned: list[Change]
    dropped: dict[bytes, tuple[int, ...]]


class TypedRows:
    """Turns batches of changes into typed rows; `tables` (`Tables`) follows their tables, and `clock` the lanes.

    A row waits for nothing: its own columns and its place in the order say which version it is of, once its batch is
    learned. So it does not matter where a stream is cut into batches, even between a statement and the rows around it.
    """

    def __init__(self, tables: Tables, clock: Clock | None = None) -> None:
        self.tables = tables
        self.clock = Clock() if clock is None else clock
        self.learner = Learner(tables)

    def of_batch(self, messages: Sequence[Sequence[Change]]) -> Batch:
        """Return the typed rows of messages, each a list of its changes, in the order of arrival of each lane."""
        named = [[self.tables.with_given_table(change) for change in changes] for changes in messages]
        learned = self.learner.learn([change for changes in named for change in changes])
        batch = Batch([], learned.faults, 0, learned.changes, learned.dropped)
        faulty = {id(change) for change, _ in learned.faults}
        dropped = drop_lookup(learned.dropped, self.tables)
        statements = 0
        for changes in named:
            typed = [(change, self._write(change, batch)) for change in changes if id(change) not in faulty]
            statements += sum(change.op not in DML for change in changes)
            batch.rows.extend(rows_of_message(typed, self.clock, dropped))
        return batch._replace(statements=statements)

    def _write(self, change: Change, batch: Batch) -> list[TypedChange]:
        try:
            return write_change(self.tables, change)
        except CdcAvroError as error:
            batch.rejects.append((change, error))
            return []
