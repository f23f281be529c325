"""Typed rows of batches of changes: what statements and rows say is learned in order, then every row is placed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from cdcavro.change.clock import Clock
from cdcavro.change.model import DDL, DML, Change, Source, replace, seen_columns
from cdcavro.change.order import in_order, order_key
from cdcavro.change.order_value import order_kind, order_value
from cdcavro.errors import CdcAvroError, OrderError
from cdcavro.lake.row import DROP, TypedRow
from cdcavro.table.catalog import MAX_TABLES
from cdcavro.table.writing.writer import OPERATIONS

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

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
        self.outlines = Outlines()

    def of_batch(self, messages: Sequence[Sequence[Change]]) -> Batch:
        """Return the typed rows of messages, each a list of its changes, in the order of arrival of each lane."""
        named = [[self.tables.named(change) for change in changes] for changes in messages]
        batch = Batch([], [], 0, [])
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
        rows = [one for changes in messages for one in changes if one.op in DML or one.op in DDL]
        for change, unordered in _in_time(rows):
            gone = {table.number for table in self.tables.tables if table.is_gone} if change.op in DDL else set()
            try:
                if unordered is not None:
                    raise unordered
                self.tables.learn(change)
                outline = self.outlines.take(change)
                batch.learned.extend([] if outline is None else [outline])
            except CdcAvroError as error:
                faulty.add(id(change))
                batch.rejects.append((change, error))
            if change.op in DDL:
                now_gone = (table.number for table in self.tables.tables if table.is_gone)
                dropped[id(change)] = tuple(number for number in now_gone if number not in gone)
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


class Outlines:
    """What changes say of their tables, one behind another, without what the change before said already."""

    def __init__(self) -> None:
        self._last: dict[Source, Change] = {}

    def take(self, change: Change) -> Change | None:
        """Return a statement, or a row without values; None if the rows of its table said the same last."""
        if change.op not in DML:
            self._last.clear()
            return change
        names = {} if change.columns is not None else dict.fromkeys(seen_columns(change))
        op = change.op if change.op == "SNAPSHOT" else "INSERT"
        said = Change(op=op, source=change.source, key=change.key, columns=change.columns, after=names)
        if self._last.get(change.source) == said:
            return None
        if len(self._last) >= MAX_TABLES:
            self._last.clear()
        self._last[change.source] = said
        return replace(said, **{name: getattr(change, name) for name in _OF_TIME})


_OF_TIME: Final = ("position", "event_time", "snapshot", "place", "row", "rows")


def _in_time(changes: Iterable[Change]) -> list[tuple[Change, OrderError | None]]:
    """Return changes in order, rows of a full load where their source says that they were read; first those without an order.

    What orders them may differ between tables. Where it does within one, merging refuses it.
    """
    groups: dict[tuple[str | None, str], list[tuple[Change, Change]]] = {}
    found: list[tuple[Change, OrderError | None]] = []
    for change in changes:
        is_read = change.op == "SNAPSHOT" and change.position is not None
        read = replace(change, op="INSERT") if is_read else change
        try:
            kind = order_kind(order_value(read))
        except OrderError as error:
            found.append((change, error))
        else:
            groups.setdefault((change.source.format, kind), []).append((read, change))
    for pairs in sorted(groups.values(), key=lambda pairs: pairs[0][0].op != "SNAPSHOT"):
        came = {id(read): change for read, change in pairs}
        found += [(came[id(read)], None) for read in _sorted([read for read, _ in pairs])]
    return found


def _sorted(changes: list[Change]) -> list[Change]:
    try:
        return in_order(changes)
    except OrderError:
        # Partitions whose numbers are of different kinds: each has its own order at least.
        return sorted(changes, key=order_key)


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
