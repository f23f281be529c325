"""Typed rows of batches of changes: what statements and rows say is learned in order, then every row is placed."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from cdcavro.change.clock import Clock
from cdcavro.change.model import DML, Change
from cdcavro.errors import CdcAvroError
from cdcavro.lake.learning import Learner
from cdcavro.lake.row import TypedRow, dropped_by, rows_of_message, written

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cdcavro.table.tables import Tables
    from cdcavro.table.writing.typed import TypedChange


class Batch(NamedTuple):
    """What becomes of a batch of messages.

    Attributes: `rows` (list of `TypedRow`), in the order of arrival; `rejects` (list of pairs of `Change` and
    error), changes that contradict their table, and statements that were not understood and changed nothing;
    `statements` (int), how many changes were no rows; `learned` (list of `Change`), what the batch said of
    tables, in order: who learns it in this order knows what this batch knows. Its rows have no values;
    `dropped` (dict), as in `Learned`.
    """

    rows: list[TypedRow]
    rejects: list[tuple[Change, CdcAvroError]]
    statements: int
    learned: list[Change]
    dropped: dict[bytes, tuple[int, ...]]


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
        batch = Batch([], learned.faults, 0, learned.changes, learned.dropped)
        faulty = {id(change) for change, _ in learned.faults}
        gone = dropped_by(learned.dropped, self.tables)
        statements = 0
        for changes in named:
            typed = [(one, self._typed(one, batch)) for one in changes if id(one) not in faulty]
            statements += sum(one.op not in DML for one in changes)
            batch.rows.extend(rows_of_message(typed, self.clock, gone))
        return batch._replace(statements=statements)

    def _typed(self, change: Change, batch: Batch) -> list[TypedChange]:
        try:
            return written(self.tables, change)
        except CdcAvroError as error:
            batch.rejects.append((change, error))
            return []
