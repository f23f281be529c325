"""Typed rows of batches of changes: what statements and rows say is learned in order, then every row is placed."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from cdcavro.change.clock import Clock
from cdcavro.change.model import DDL, DML, Change, replace
from cdcavro.change.order_value import order_value
from cdcavro.errors import CdcAvroError
from cdcavro.lake.learning import Learner, identity_of
from cdcavro.lake.row import DROP, TypedRow
from cdcavro.table.writing.writer import OPERATIONS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from cdcavro.table.tables import Tables
    from cdcavro.table.writing.typed import TypedChange


class Batch(NamedTuple):
    """What becomes of a batch of messages.

    Attributes: `rows` (list of `TypedRow`), in the order of arrival; `rejects` (list of pairs of `Change` and
    error), changes that contradict their table, and statements that were not understood and changed nothing;
    `statements` (int), how many changes were no rows; `learned` (list of `Change`), what the batch said of
    tables, in order: who learns it in this order knows what this batch knows. Its rows have no values.
    """

    rows: list[TypedRow]
    rejects: list[tuple[Change, CdcAvroError]]
    statements: int
    learned: list[Change]


class TypedRows:
    """Turns batches of changes into typed rows; `tables` (`Tables`) follows their tables, and `clock` the lanes.

    A row waits for nothing: it is placed by its own columns and its place in the order, among what is known
    once its batch is learned. So a batch with a statement between rows gives what any other cut gives.
    """

    def __init__(self, tables: Tables, clock: Clock | None = None) -> None:
        self.tables = tables
        self.clock = Clock() if clock is None else clock
        self.learner = Learner(tables)

    def of_batch(self, messages: Sequence[Sequence[Change]]) -> Batch:
        """Return the typed rows of messages, each a list of its changes, in the order of arrival of each lane."""
        named = [[self.tables.named(change) for change in changes] for changes in messages]
        learned = self.learner.learn([change for changes in named for change in changes])
        batch = Batch([], learned.faults, 0, learned.changes)
        faulty = {id(change) for change, _ in learned.faults}
        statements = 0
        for changes in named:
            typed = [(one, self._typed(one, batch)) for one in changes if id(one) not in faulty]
            statements += sum(one.op not in DML for one in changes)
            batch.rows.extend(self._ordered(typed, learned.dropped))
        return batch._replace(statements=statements)

    def of_message(self, changes: Sequence[Change], dropped: Mapping[bytes, tuple[int, ...]]) -> list[TypedRow]:
        """Return the typed rows of one message, of which all is learned: `dropped` is what `Learned` has.

        Raises for the first change that contradicts its table, with nothing of the message placed.
        """
        named = [self.tables.named(change) for change in changes]
        return self._ordered([(one, self._found(one)) for one in named], dropped)

    def _found(self, change: Change) -> list[TypedChange]:
        if change.half is not None:
            # The row before an update goes and the one after it comes, whatever message brings them.
            change = replace(change, op="DELETE" if change.half == "BEFORE" else "INSERT", half=None)
        is_written = change.op in DML or change.op == "TRUNCATE"
        return self.tables.write(change, self.tables.find(change)) if is_written else []

    def _typed(self, change: Change, batch: Batch) -> list[TypedChange]:
        try:
            return self._found(change)
        except CdcAvroError as error:
            batch.rejects.append((change, error))
            return []

    def _ordered(
        self, message: Sequence[tuple[Change, Sequence[TypedChange]]], dropped: Mapping[bytes, tuple[int, ...]]
    ) -> list[TypedRow]:
        """Return the rows of one message, all at one time of its lane."""
        ordered = [(one, typed, _dropped(one, dropped)) for one, typed in message]
        ordered = [parts for parts in ordered if parts[1] or parts[2]]
        if not ordered:
            return []
        is_moving = any(_is_left(change, one) for change, typed, _ in ordered for one in typed)
        time = self.clock.time(ordered[0][0], is_moving=is_moving)
        rows = []
        for change, typed, gone in ordered:
            for one in typed:
                order = order_value(one.change, time=time, is_left=_is_left(change, one))
                rows.append(_row(one, order))
            for number in gone:
                version = self.tables.tables[number].schema.version
                rows.append(TypedRow(number, version, DROP, order_value(change, time=time), None, b""))
        return rows


def _dropped(change: Change, dropped: Mapping[bytes, tuple[int, ...]]) -> tuple[int, ...]:
    return dropped.get(identity_of(change), ()) if dropped and change.op in DDL else ()


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
