"""A task's part of a batch: messages to typed rows with their order, and what becomes of all others.

Messages of known patterns go through the engine in columns, the others the exact way. What the driver has to learn is told
to it; where that is nothing but new tables, the task has learned of them what the driver will, and its rows count.
"""

from __future__ import annotations

import json
from collections import deque
from functools import partial
from typing import TYPE_CHECKING, Final

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from cdcavro.change.clock import Clock, LaneTime, lane_at, place_before
from cdcavro.change.model import DDL, DML, Arrival
from cdcavro.errors import CdcAvroError, FileError, MessageError, MisfitError, OrderError, PayloadError, shown
from cdcavro.files.lines import Line
from cdcavro.lake.learning import identity_of
from cdcavro.lake.placing import Placing, rows_batch
from cdcavro.spark.functions import error_fields, refusal_fields
from cdcavro.spark.job.packed_lines import unpack_lines
from cdcavro.spark.pipeline.conversion.asking import Asking
from cdcavro.spark.pipeline.conversion.framed_messages import opening
from cdcavro.spark.pipeline.conversion.keeping import Keeping
from cdcavro.spark.pipeline.conversion.outcome_columns import REJECT, SCHEMA, SUMMARY, Message, failed, told
from cdcavro.spark.pipeline.conversion.runs import MIXED_RUN, Run, check_key, replayed, runs_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from cdcavro.change.model import Change
    from cdcavro.lake.typed_rows import TypedRow
    from cdcavro.spark.pipeline.conversion.facts import Fault, Knowledge
    from cdcavro.spark.pipeline.conversion.keeping import Made


# How many messages are converted before what they said is learned, at first and at most.
_FIRST: Final = 256
_MOST: Final = 1 << 20
_PLACE: Final = ("topic", "partition", "offset", "file", "line")
_RANKS: Final = range(3)


def converter(knowledge: Knowledge) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """Return the function that converts batches of `sources.COLUMNS` into batches of `COLUMNS`."""

    def converted(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        task, messages = _Task(knowledge), iter(batches)
        try:
            for batch in unpack_lines(messages, task.notes.append):
                yield from task.converted(batch)
        except FileError as error:
            yield failed(error)
            # Spark wants all to be read.
            deque(messages, maxlen=0)
            return
        yield from task.rows()
        yield task.summary()

    return converted if knowledge.framed is None else opening(converted, knowledge.framed, knowledge.formats)


class _Task:
    """Messages of some topic partitions or files, each from its first one in the batch on.

    Attributes: `notes` (list of str), what is to be said of the files.
    """

    def __init__(self, knowledge: Knowledge) -> None:
        self._knowledge = knowledge
        self.notes: list[str] = []
        self._clock = Clock(knowledge.clock)
        self._placings: dict[str, Placing] = {}
        self._lanes: dict[tuple[str | None, int | None, str | None], list[int]] = {}
        self._lines: dict[str, int] = {}
        self._asking = Asking(knowledge)
        self._keeping = Keeping(knowledge, self._asking)
        self._exact: list[tuple[int, TypedRow]] = []
        self._size = _FIRST

    def converted(self, batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        """Yield what becomes of a batch of messages."""
        is_replayed = batch.column("clock").is_valid()
        if pc.any(is_replayed).as_py():
            self._learning(partial(self._replayed, batch.filter(is_replayed)))
            batch = batch.filter(pc.invert(is_replayed))
        for piece in self._pieces(batch):
            self._learning(partial(self._runs, piece))
        yield from self._keeping.ready()

    def _pieces(self, batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        """Yield the parts of a batch: small ones as long as they say something new."""
        start = 0
        while start < batch.num_rows:
            edits, size = self._knowledge.tables.edits, self._size
            yield batch.slice(start, size)
            start += size
            self._size = min(size * 2, _MOST) if self._knowledge.tables.edits == edits else _FIRST

    def _learning(self, convert: Callable[[], None]) -> None:
        """Convert some messages, and learn what the driver is asked to learn, so that it is not asked of each like them.

        What is new gives more of them a place, so they are converted once more with it.
        """
        while True:
            clock, lines = self._clock.copy(), dict(self._lines)
            convert()
            is_new = self._asking.learn()
            if is_new:
                # They take it that nothing more is learned.
                self._placings.clear()
            if not is_new or self._asking.is_ahead:
                break
            self._clock, self._lines = clock, lines
            self._keeping.take_back()
        if is_new:
            self._made.counts["given up"] += 1
        self._keeping.settle()

    @property
    def _made(self) -> Made:
        return self._keeping.made

    def _runs(self, piece: pa.RecordBatch) -> None:
        for run in runs_of(piece, self._knowledge.formats, self._lines):
            self._made.counts["read"] += run.count
            self._made.counts["tombstones"] += run.tombstones
            self._lanes.setdefault(run.lane, [run.first, 0])[1] = run.last
            if run.format == MIXED_RUN:
                self._unknown(run)
            else:
                self._run(run)

    def _keep_exact(self) -> None:
        exact, self._exact = self._exact, []
        if exact:
            self._keeping.keep(rows_batch(exact))

    def _run(self, run: Run) -> None:
        """Convert messages of one lane and one format."""
        placing = self._placings.get(run.format)
        if placing is None:
            placing = self._placings[run.format] = self._placing(run.format, self._clock)

        def left(i: int, message: bytes, place: Arrival | None) -> None:
            time = None if place is None else self._clock.get(lane_at(place))
            own = Message(run.raw(i) or b"", run.key(i), place, run.format, time and time[1])
            self._take(placing, i, message, own, run.length(i))

        for rows in placing.take(run.messages, left):
            self._keeping.keep(rows)
        self._keep_exact()

    def _placing(self, format: str, clock: Clock) -> Placing:
        own = self._knowledge
        return Placing(format, own.tables, clock, unavailable=own.unavailable, dropped=own.dropped)

    def _replayed(self, batch: pa.RecordBatch) -> None:
        """Convert messages that were rejected once, each at the time that its lane had then."""
        for i, row in enumerate(batch.to_pylist()):
            self._made.counts["read"] += 1
            place, clock = Arrival(**{name: row[name] for name in _PLACE}), Clock()
            own = Message(row["raw"], row["key"], place, None)
            try:
                time = _time_of(row["clock"])
                if time is not None:
                    clock.put(lane_at(place), place_before(place), time)
                own = own._replace(clock=time)
                format, message = replayed(own, self._knowledge.formats, row)
            except (MessageError, OrderError) as error:
                fields = error_fields(error) if isinstance(error, MessageError) else {"message": str(error)}
                self._refuse(own, fields)
                continue
            self._take(self._placing(format, clock), i, message, own._replace(format=format), len(own.raw))
        self._keep_exact()

    def _unknown(self, run: Run) -> None:
        """Reject messages of which no format is known."""
        for i, error in run.errors:
            self._refuse(Message(run.raw(i) or b"", run.key(i), run.place(i), None), error_fields(error))

    def rows(self) -> Iterator[pa.RecordBatch]:
        """Yield the rows of tables that are kept yet."""
        yield from self._keeping.rows()

    def summary(self) -> pa.RecordBatch:
        """Return what was done, as the one row of a batch."""
        before = {tuple(lane[0]): lane for lane in self._knowledge.clock}
        note = {
            "counts": self._keeping.counts,
            "lanes": [[*lane, *ends] for lane, ends in self._lanes.items()],
            "clock": [lane for lane in self._clock.state if before.get(tuple(lane[0])) != lane],
            "tables": self._keeping.tables,
            "notes": self.notes,
        }
        return pa.RecordBatch.from_pylist([{"what": SUMMARY, "note": json.dumps(note)}], schema=SCHEMA)

    def _take(self, placing: Placing, i: int, message: bytes, own: Message, length: int) -> None:
        """Take a message the exact way: rows, or else a reject or a statement, whole."""
        knowledge = self._knowledge
        try:
            Line(0, own.raw, length).message()
            check_key(own)
            changes = placing.changes(message)
        except MessageError as error:
            fields = error_fields(error)
            self._refuse(own, {**fields, "format": fields["format"] or own.format})
            return
        placed = placing.at_place(changes, own.place)
        fault = self._fault(placed)
        if fault is not None:
            self._refuse(own, fault)
        elif not knowledge.is_all and any(change.op in DDL for change in placed):
            self._made.counts["statements"] += 1
            self._made.others += self._asking.ask(placed, own, {})
        else:
            self._place(placing, i, message, changes, placed, own)

    def _place(
        self,
        placing: Placing,
        i: int,
        message: bytes,
        changes: Sequence[Change],
        placed: Sequence[Change],
        own: Message,
    ) -> None:
        try:
            rows = placing.rows(message, changes, own.place)
        except CdcAvroError as error:
            if isinstance(error, MisfitError):
                if self._knowledge.is_strict:
                    raise
                self._made.counts["misfits"] += 1
            self._made.counts["unplaced"] += 1
            self._made.others += self._asking.ask(placed, own, refusal_fields(placed[0], error))
            return
        if not self._knowledge.is_all and any(not self._knowledge.tables.tables[row.table].is_used for row in rows):
            # The driver may change a version, but none with which data is written.
            self._made.others += self._asking.ask(placed, own, {})
        if rows and any(change.op in DML for change in placed):
            self._exact.extend((i, row) for row in rows)
        else:
            self._made.counts["statements"] += 1
            self._keeping.keep_statement(rows)

    def _fault(self, changes: Sequence[Change]) -> Fault | None:
        """Return why a statement among the changes was refused, if one was."""
        faults = self._knowledge.faults
        if not faults:
            return None
        found = (faults.get(identity_of(change)) for change in changes if change.op in DDL)
        return next((fault for fault in found if fault is not None), None)

    def _refuse(self, own: Message, error: Fault) -> None:
        self._made.counts["rejected"] += 1
        self._made.others.append(told(REJECT, own, error, None))


def _time_of(text: str) -> LaneTime | None:
    """Return the time that a lane had when a message was rejected, None for none. Raises `PayloadError` for what is no such time."""
    try:
        rank, numbers, moves = msgspec.json.decode(text, type=tuple[int, list[int], int] | None) or (0, [], -1)
    except (msgspec.MsgspecError, RecursionError) as error:
        raise PayloadError("the time of a lane as the clock of a reject", shown(text)) from error
    if moves < 0:
        return None
    if rank not in _RANKS:
        raise PayloadError("the time of a lane as the clock of a reject", shown(text))
    return LaneTime(rank, tuple(numbers), moves)
