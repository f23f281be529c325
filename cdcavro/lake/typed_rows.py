"""Typed rows of batches of changes: what statements and rows say is learned in order, then every row is placed."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from cdcavro.change.clock import Clock
from cdcavro.change.model import DDL, DML, Change, replace
from cdcavro.change.order import in_order
from cdcavro.change.order_value import order_value
from cdcavro.errors import CdcAvroError
from cdcavro.lake.row import DROP, TypedRow
from cdcavro.table.writing.writer import OPERATIONS

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from cdcavro.table.tables import Tables
    from cdcavro.table.writing.typed import TypedChange


class Batch(NamedTuple):
    """What becomes of a batch of messages.

    Attributes: `rows` (list of `TypedRow`), in the order of arrival; `rejects` (list of pairs of `Change` and
    error), changes that contradict their table, and statements that were not understood and changed nothing;
    `statements` (int), how many changes were no rows.
    """

    rows: list[TypedRow]
    rejects: list[tuple[Change, CdcAvroError]]
    statements: int


class TypedRows:
    """Turns batches of changes into typed rows; `tables` (`Tables`) follows their tables, and `clock` the lanes.

    A row waits for nothing: it is placed by its own columns and its place in the order, among what is known
    once its batch is learned. So a batch with a statement between rows gives what any other cut gives.
    """

    def __init__(self, tables: Tables, clock: Clock | None = None) -> None:
        self.tables = tables
        self.clock = Clock() if clock is None else clock

    def of_batch(self, messages: Sequence[Sequence[Change]]) -> Batch:
        """Return the typed rows of messages, each a list of its changes, in the order of arrival of each lane."""
        named = [[self.tables.named(change) for change in changes] for changes in messages]
        batch = Batch([], [], 0)
        faulty, dropped = self._learned(named, batch)
        statements = 0
        for changes in named:
            typed = [(one, self._typed(one, batch)) for one in changes if id(one) not in faulty]
            statements += sum(one.op not in DML for one in changes)
            batch.rows.extend(self._ordered(typed, dropped))
        return batch._replace(statements=statements)

    def _learned(
        self, messages: Sequence[Sequence[Change]], batch: Batch
    ) -> tuple[set[int], dict[int, tuple[int, ...]]]:
        """Learn what changes state, in order; return those that failed, and the tables that each statement dropped."""
        faulty: set[int] = set()
        dropped: dict[int, tuple[int, ...]] = {}
        for change in _at_their_times(one for changes in messages for one in changes if one.op in DML or one.op in DDL):
            gone = {table.number for table in self.tables.tables if table.is_gone} if change.op in DDL else set()
            try:
                self.tables.learn(change)
            except CdcAvroError as error:
                faulty.add(id(change))
                batch.rejects.append((change, error))
            if change.op in DDL:
                dropped[id(change)] = tuple(
                    one.number for one in self.tables.tables if one.is_gone and one.number not in gone
                )
        return faulty, dropped

    def _typed(self, change: Change, batch: Batch) -> list[TypedChange]:
        if change.op not in DML and change.op != "TRUNCATE":
            return []
        try:
            return self.tables.write(change, self.tables.find(change))
        except CdcAvroError as error:
            batch.rejects.append((change, error))
            return []

    def _ordered(
        self, message: Sequence[tuple[Change, Sequence[TypedChange]]], dropped: dict[int, tuple[int, ...]]
    ) -> list[TypedRow]:
        """Return the rows of one message, all at one time of its lane."""
        ordered = [(change, typed) for change, typed in message if typed or dropped.get(id(change))]
        if not ordered:
            return []
        is_moving = any(_is_left(change, one) for change, typed in ordered for one in typed)
        time = self.clock.time(ordered[0][0], is_moving=is_moving)
        rows = []
        for change, typed in ordered:
            for one in typed:
                order = order_value(one.change, time=time, is_left=_is_left(change, one))
                rows.append(_row(one, order))
            for number in dropped.get(id(change), ()):
                version = self.tables.tables[number].schema.version
                rows.append(TypedRow(number, version, DROP, order_value(change, time=time), None, b""))
        return rows


def _at_their_times(changes: Iterable[Change]) -> list[Change]:
    """Return changes in order, rows of a full load where their source says that they were read."""
    timed = {}
    for change in changes:
        is_read = change.op == "SNAPSHOT" and change.position is not None
        read = replace(change, op="INSERT") if is_read else change
        timed[id(read)] = read, change
    return [timed[id(read)][1] for read in in_order(read for read, _ in timed.values())]


def _is_left(change: Change, typed: TypedChange) -> bool:
    return change.op == "UPDATE" and typed.change.op == "DELETE"


def _row(typed: TypedChange, order: bytes) -> TypedRow:
    after = typed.change.after
    absent = () if after is None else tuple(one.name for one in typed.schema.columns if one.name not in after)
    return TypedRow(
        typed.table.number,
        typed.schema.version,
        OPERATIONS[typed.change.op],
        order,
        typed.key,
        typed.payload,
        absent,
    )
