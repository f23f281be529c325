"""Task of a batch: it converts messages to typed rows with their order, and says what becomes of all others.

Messages of known patterns go through the engine in columns, the others the exact way. The task asks the driver to learn
what is new. If that is only new tables, the task has learned of them what the driver will, and its rows count.
"""

from __future__ import annotations

import json
import sys
from collections import deque
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from cdcavro.change.model import DDL, DML, Arrival
from cdcavro.change.operations import check_operation
from cdcavro.change.order import Clock, LaneTime, join_pair, lane_at, place_before
from cdcavro.errors import (
    CdcAvroError,
    FileError,
    JobError,
    MessageError,
    MisfitError,
    OrderError,
    PayloadError,
    StructureError,
    shown,
)
from cdcavro.files.lines import Line
from cdcavro.lake.learning import identity_of, refusal_fields
from cdcavro.lake.placing import Placing, rows_batch
from cdcavro.sync.conversion.framed_messages import Opener, open_framed, with_stated, with_true_lengths
from cdcavro.sync.conversion.knowledge import UNKNOWN, Evidence, ExactMessage, LaneTimes, Questions, is_confirmed
from cdcavro.sync.conversion.outcome_rows import (
    HALF,
    REJECT,
    SCHEMA,
    STATEMENT,
    SUMMARY,
    Message,
    TaskOutput,
    failure_summary,
    message_row,
)
from cdcavro.sync.conversion.runs import MIXED_RUN, MessageRun, check_key, replayed_text, runs_of
from cdcavro.sync.conversion.waiting_halves import Half, TaskHalves, alone, half_batch
from cdcavro.sync.outputs.reject_places import check_decrypted
from cdcavro.sync.protection import HIDDEN
from cdcavro.sync.reading.message_columns import MOST_ROWS
from cdcavro.wire.formats import get_format
from cdcavro.wire.marked_members import TOMBSTONE
from cdcavro.wire.sniff import MIXED

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from cdcavro.change.model import Change
    from cdcavro.lake.typed_rows import TypedRow
    from cdcavro.sync.conversion.knowledge import Knowledge
    from cdcavro.sync.conversion.outcome_rows import Converted, Fault
    from cdcavro.sync.conversion.runs import KnownKeys, MessageHeaders

    Unpack = Callable[[Iterable[pa.RecordBatch], Callable[[str], None]], Iterator[pa.RecordBatch]]

# How many messages are converted before what they say is learned, at first and at most.
_FIRST: Final = 256
_MOST: Final = 1 << 20
# How many messages are left without a place at most before what they say is learned: each is tried the exact way. So often
# at most, since the messages before them are converted again each time.
_UNPLACED: Final = 64
_CUTS: Final = 8
# How many kinds of messages are placed in their own way at a time.
_PLACINGS: Final = 64
_PLACE: Final = ("topic", "partition", "offset", "file", "line")
_RANKS: Final = range(3)


def converter(
    knowledge: Knowledge, unpack: Unpack | None = None, *, is_evident: bool = True
) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """Return the function that converts batches of `sources.COLUMNS` into batches of `COLUMNS`.

    `unpack` is what the batches go through first; it is called with them, and with a function that takes what is to be
    said of files. Its `FileError` ends the task. With `is_evident`, rows that are made of what the task has learned itself
    are kept, and its summary has evidence of them, with messages as they came, for `are_confirmed`.
    """

    def convert(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        task = _Task(knowledge, Evidence() if is_evident and not knowledge.is_all else None)
        messages = iter(batches)
        try:
            for batch in messages if unpack is None else unpack(messages, task.notes.append):
                yield from task.convert(batch)
        except (FileError, JobError) as error:
            yield failure_summary(error)
            # Spark wants all to be read.
            deque(messages, maxlen=0)
            return
        yield from task.halves()
        yield from task.rows()
        yield task.summary()

    opened = convert if knowledge.framed is None else open_framed(convert, knowledge.framed, knowledge.formats)
    cipher = knowledge.cipher

    def prepared(batch: pa.RecordBatch) -> pa.RecordBatch:
        stated = with_stated(batch, knowledge.formats)
        return with_true_lengths(stated if cipher is None else cipher.decrypted(stated))

    return lambda batches: opened(map(prepared, batches))


def are_confirmed(evidence: Sequence[bytes], knowledge: Knowledge, marks: Mapping[int, str]) -> bool:
    """Return whether tasks with `knowledge`, which has all that a batch says, would make the rows that others made.

    `evidence` is that of the others, and `marks` has the marks of new tables by number.
    """
    own = knowledge.copier()()
    names = [marks.get(table.number, str(table.number)) for table in own.tables.tables]
    tables = dict(zip(names, own.tables.tables, strict=True))

    def decide(name: str, version: int) -> Any:
        table = tables.get(name)
        is_known = table is not None and version <= len(table.versions)
        return own.protection.decision(table, version) if table is not None and is_known else UNKNOWN

    return all(is_confirmed(one, _Task(own).placing_of_lanes, names, decide) for one in evidence)


def left_outcomes(knowledge: Knowledge, rows: Iterable[Mapping[str, Any]]) -> Iterator[pa.RecordBatch]:
    """Yield what becomes of the halves of updates that the tasks of a batch left, and the batch before.

    `rows` are the former, as rows of `outcome_rows`. Halves that still wait are outcomes again.
    """
    halves = [*knowledge.halves.kept, *knowledge.halves.waiting(rows)]
    # As each task has, this one has knowledge of its own.
    return converter(knowledge.copier()())(
        half_batch(halves[i : i + MOST_ROWS]) for i in range(0, len(halves), MOST_ROWS)
    )


class _Task:
    """Messages of some topic partitions or files, each from its first one in the batch on."""

    def __init__(self, knowledge: Knowledge, evidence: Evidence | None = None) -> None:
        self._knowledge, self._evidence = knowledge, evidence
        self._begun = Clock(knowledge.clock)
        # What is to be said of the files.
        self.notes: list[str] = []
        self._clock = Clock(knowledge.clock)
        # By format, by topic if that names tables, and by whether messages stand without keys that they have.
        self._placings: dict[tuple[str, str | None, bool], Placing] = {}
        self._lanes: dict[tuple[str | None, int | None, str | None], list[int]] = {}
        self._lines: dict[str, int] = {}
        self._keys: KnownKeys = {}
        # What opens messages that the engine leaves.
        self._opener: Opener | None = None
        # Of the topics whose messages tell their format: those with rows of a format in which a record without a value is
        # a delete, and those with records without a value.
        self._rows_alone: set[str] = set()
        self._without_value: set[str] = set()
        self._questions = Questions(knowledge, evidence)
        self._output = TaskOutput(knowledge, self._questions)
        self._exact: list[tuple[int, TypedRow]] = []
        # Of the messages that are being converted: the index of the first one of the run, and the errors of those for
        # which no condition on rows can be decided, by their indexes.
        self._first = 0
        self._undecided: dict[int, MessageError] = {}
        # Those of them with which an update of two messages was whole.
        self._undecided_updates: set[int] = set()
        self._times = LaneTimes(knowledge.marks)
        self._halves = TaskHalves()
        # How many other messages are rows of a message, by its index: those of the other half.
        self._joined: dict[int, int] = {}
        # The headers of the messages that are being converted; None where they are not read.
        self._headers: MessageHeaders | None = None
        self._size = _FIRST
        # With how many messages without a place the rest goes by, until what these say is learned.
        self._most_unplaced = sys.maxsize

    def convert(self, batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        """Yield what becomes of a batch of messages."""
        is_replayed = batch.column("clock").is_valid()
        if pc.any(is_replayed).as_py():
            self._void_evidence()
            self._convert_and_learn(partial(self._replay, batch.filter(is_replayed)))
            batch = batch.filter(pc.invert(is_replayed))
        for piece in self._pieces(batch):
            self._convert_and_learn(partial(self._convert_runs, piece))
        yield from self._output.ready()

    def _pieces(self, batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        """Yield the parts of a batch, small ones as long as they say something new."""
        start = 0
        while start < batch.num_rows:
            edits, size = self._knowledge.tables.edits, self._size
            yield batch.slice(start, size)
            start += size
            self._size = min(size * 2, _MOST) if self._knowledge.tables.edits == edits else _FIRST

    def _convert_and_learn(self, convert: Callable[[], None]) -> None:
        """Convert some messages, and learn what the driver is asked, so that it is not asked the same again.

        If anything was new, more of the messages have a place, so they are converted once more. They are, too, without
        those of which it turns out that no condition can be decided for their rows: these become rejects, with the time of
        their lane before them, and must not move it.
        """
        self._forget_undecided()
        was_ahead, cuts = self._questions.is_ahead, 0 if self._evidence is None else _CUTS
        while True:
            self._most_unplaced = _UNPLACED if cuts else sys.maxsize
            clock, lines, times = self._clock.copy(), dict(self._lines), self._times.copy()
            halves = self._halves.copy()
            known = len(self._undecided)
            convert()
            is_cut = self._current.counts["unplaced"] >= self._most_unplaced
            is_new = self._questions.learn()
            cuts = cuts - 1 if cuts and is_new and not self._questions.is_ahead else 0
            if is_new:
                # What was learned may decide.
                self._forget_undecided()
            # Rows behind a DROP of which nothing was known say what is new only now, though they do not count any more.
            is_behind = is_new and self._current.counts["statements"] > 0
            is_again = (
                is_cut or is_behind or ((is_new or len(self._undecided) > known) and not self._questions.is_ahead)
            )
            if is_new or is_again:
                # They were made for tables that learn nothing more, and for another clock.
                self._placings.clear()
            if not is_again:
                break
            self._clock, self._lines, self._times, self._halves = clock, lines, times, halves
            self._output.take_back()
        if is_new or self._questions.is_ahead > was_ahead:
            self._current.counts["given up"] += 1
        if self._evidence is not None:
            latest = self._clock.latest_since(self._begun)
            self._evidence.keep(self._current.exact, self._placings.values(), latest)
            self._evidence.keep_decisions(self._current.decisions)
        self._output.commit()

    def _void_evidence(self) -> None:
        if self._evidence is not None:
            self._evidence.void()

    def _forget_undecided(self) -> None:
        self._undecided.clear()
        self._undecided_updates.clear()

    @property
    def _current(self) -> Converted:
        return self._output.current

    def _convert_runs(self, piece: pa.RecordBatch) -> None:
        for run in runs_of(piece, self._knowledge.formats, self._lines, self._keys, self._open_texts):
            self._first, self._headers = self._current.counts["read"], run.headers
            self._current.counts["read"] += run.count
            self._current.counts["tombstones"] += run.tombstones
            self._lanes.setdefault(run.lane, [run.first, 0])[1] = run.last
            self._times.begin(*run.lane[:2])
            self._note_tombstones(run)
            if run.format == MIXED_RUN:
                self._reject_run(run)
            else:
                self._convert_run(run)
            self._times.end()

    def _note_tombstones(self, run: MessageRun) -> None:
        topic = run.lane[0]
        if topic is None or self._knowledge.formats.format_of(topic) != MIXED:
            return
        if run.tombstones:
            self._without_value.add(topic)
        if run.format != MIXED_RUN and get_format(run.format).rule.has_tombstones and run.tombstones < run.count:
            self._rows_alone.add(topic)

    def _keep(self, rows: pa.RecordBatch, joined: Mapping[int, int] | None = None) -> None:
        if not self._questions.is_ahead:
            self._times.add(rows, self._knowledge.tables.tables)
        joined = joined or {}
        undecided = self._output.keep(rows, joined, self._headers)
        if undecided and self._knowledge.protection.rules:
            # Of messages that are refused for their rows, nothing says that they still would be.
            self._void_evidence()
        self._undecided |= {self._first + i: error for i, error in undecided.items()}
        self._undecided_updates |= {self._first + i for i in undecided if i in joined}

    def _keep_exact(self) -> None:
        exact, self._exact = self._exact, []
        joined, self._joined = self._joined, {}
        if exact:
            self._keep(rows_batch(exact), joined)

    def _convert_run(self, run: MessageRun) -> None:
        """Convert messages of one lane and one format."""
        placing, stop = self._placing_of(run), self._first + run.count
        single = {i: error for i, error in self._undecided.items() if i not in self._undecided_updates}
        refused = {i - self._first: error for i, error in single.items() if self._first <= i < stop}

        def left(i: int, text: bytes, place: Arrival | None) -> None:
            if self._current.counts["unplaced"] >= self._most_unplaced:
                return
            message, record = run.text(i, text), run.record(i)
            alike = None if record is None else message
            own = Message(run.raw(i) or b"", run.key(i), place, run.format, self._time_at(place), alike)
            if i in refused:
                self._refuse_undecided(i, own, refused[i])
                return
            self._take(placing, i, message if record is None else record, own, run.length(i))

        for rows in placing.take(run.messages_without(refused), left, run.head, is_read=run.is_read):
            self._keep(rows)
        self._keep_exact()

    def _open_texts(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Return messages that are framed with their texts."""
        own = self._knowledge
        if self._opener is None and own.framed is not None:
            self._opener = Opener(own.framed, own.formats, is_brief=True)
        return batch if self._opener is None else self._opener.open(batch)

    def _placing_of(self, run: MessageRun) -> Placing:
        """Return what places messages like those of a run; what it has learned holds for all of them."""
        topic = run.lane[0] if self._knowledge.tables.given_table.by_topic else None
        placing = self._placings.get(kind := (run.format, topic, run.records is not None))
        if placing is None:
            if len(self._placings) >= _PLACINGS:
                self._placings.clear()
                self._void_evidence()
            placing = self._placings[kind] = self._new_placing(run.format, self._clock, is_of_one_topic=True)
        return placing

    def placing_of_lanes(self, format: str) -> Placing:
        """Return what places messages of a format, none of which was placed before."""
        return self._new_placing(format, Clock(), is_of_one_topic=True)

    def _new_placing(self, format: str, clock: Clock, *, is_of_one_topic: bool = False) -> Placing:
        own = self._knowledge
        return Placing(
            format,
            own.tables,
            clock,
            unavailable=own.unavailable,
            dropped=own.dropped,
            is_of_one_topic=is_of_one_topic,
            has_state=self._output.has_state if own.has_states else None,
        )

    def _replay(self, batch: pa.RecordBatch) -> None:
        """Convert messages that were rejected once, each at the time that its lane had then."""
        self._times.begin()
        self._first, self._headers = 0, None
        for i, row in enumerate(batch.to_pylist()):
            self._current.counts["read"] += 1
            place, clock = Arrival(**{name: row[name] for name in _PLACE}), Clock()
            self._times.read_again(i, place)
            own = Message(row["raw"], row["key"], place, None)
            try:
                time = _time_of(row["clock"])
                if time is not None:
                    clock.put(lane_at(place), place_before(place), time)
                own = own._replace(clock=time)
                check_decrypted(own.raw, self._knowledge.cipher)
                format, message = replayed_text(own, self._knowledge.formats, row)
            except (MessageError, OrderError) as error:
                fields = error.fields if isinstance(error, MessageError) else {"message": str(error)}
                self._refuse(i, own, fields)
                continue
            own = own._replace(format=format)
            if i in self._undecided and i not in self._undecided_updates:
                self._refuse_undecided(i, own, self._undecided[i])
                continue
            length = max(len(own.raw), row["length"] or 0)
            self._take(self._new_placing(format, clock), i, message, own, length)
        self._keep_exact()
        self._times.end()

    def _reject_run(self, run: MessageRun) -> None:
        """Reject messages whose format is not known."""
        for i, error in run.errors:
            place = run.place(i)
            own = Message(run.raw(i) or b"", run.key(i), place, None, self._time_at(place))
            self._refuse(i, own, error.fields)

    def _time_at(self, place: Arrival | None) -> LaneTime | None:
        """Return the time that the lane of a place has by now, None if nothing is known of it."""
        found = None if place is None else self._clock.get(lane_at(place))
        return None if found is None else found[1]

    def rows(self) -> Iterator[pa.RecordBatch]:
        """Yield the rows of tables that are still kept."""
        yield from self._output.rows()

    def summary(self) -> pa.RecordBatch:
        """Return what was done, as the one row of a batch."""
        before = {tuple(lane[0]): lane for lane in self._knowledge.clock}
        evidence = None if self._evidence is None else self._evidence.to_bytes(self._output.names)
        note = {
            "counts": self._output.counts,
            "lanes": [[*lane, *ends] for lane, ends in self._lanes.items()],
            "times": self._times.lanes,
            "clock": [lane for lane in self._clock.state if before.get(tuple(lane[0])) != lane],
            "tables": self._output.tables(self._times),
            "notes": self.notes,
            "rows alone": sorted(self._rows_alone),
            "without value": sorted(self._without_value),
            "bytes": self._output.size,
            "misfit": self._output.misfit,
            "is ahead": self._evidence is not None and self._evidence.is_ahead,
            "evidence": None if evidence is None else len(evidence),
        }
        return pa.RecordBatch.from_pylist([{"what": SUMMARY, "raw": evidence, "note": json.dumps(note)}], schema=SCHEMA)

    def _take(self, placing: Placing, i: int, message: bytes, own: Message, length: int) -> None:
        """Take a message the exact way: all of it becomes rows, a reject or a statement."""
        knowledge = self._knowledge
        try:
            Line(0, own.raw, length).message()
            check_key(own, message)
            changes = placing.changes(message)
            for change in changes:
                if change.op not in (*DML, *DDL, TOMBSTONE):
                    check_operation(change)
        except MessageError as error:
            unread = [] if error.change is None else placing.at_place([error.change], own.place)
            if unread and self._output.is_left_out(unread[0].source):
                self._current.counts["left out"] += 1
                return
            fields = error.fields
            self._refuse(i, own, {**fields, "format": fields["format"] or own.format})
            return
        placed = placing.at_place(changes, own.place)
        fault = self._fault(placed)
        if fault is not None:
            self._refuse(i, own, fault)
        elif not knowledge.is_all and any(change.op in DDL for change in placed):
            self._current.counts["statements"] += 1
            self._current.others += self._questions.ask(placed, own, {})
            self._times.hear(i, placed)
            # Its rows are made with what it states, also if that is nothing new.
            self._current.counts["given up"] += any(change.op in DML for change in placed)
        elif knowledge.halves.takes(placed, knowledge.chosen):
            self._join(placing, i, own, placed[0])
        else:
            self._place(placing, i, message, changes, placed, own)

    def _join(self, placing: Placing, i: int, own: Message, change: Change) -> None:
        """Take the half of an update, which waits unless the other one came."""
        try:
            others = self._halves.add(Half(change, own))
        except StructureError as error:
            self._refuse(i, own, error.fields)
            return
        if not others:
            # Its lane is complete up to what was before it, as if it were rejected, until it is joined.
            self._times.reject(i)
            for half, too_late in self._halves.give_up():
                self._reject_half(half, too_late)
            return
        undecided = self._undecided.get(self._first + i)
        if undecided is not None:
            # The other half would wait for nothing.
            self._refuse_undecided(i, own, undecided)
            for half in others:
                self._reject_half(half, undecided)
            return
        update = [join_pair(others[-1].change, change)]
        messages = [*(one.message for one in others), own]
        # The place, and all else that there is once, is that of the row after the update.
        after = messages.pop() if change.half == "AFTER" else messages.pop(-2)
        # No other message is like it.
        if self._place(placing, i, b"", update, update, after._replace(alike=b""), messages):
            for one in others:
                self._times.mend(one.message.place)

    def _reject_half(self, half: Half, error: MessageError) -> None:
        self._current.counts["rejected"] += 1
        self._current.others.append(message_row(REJECT, half.message, error.fields, None))

    def halves(self) -> Iterator[pa.RecordBatch]:
        """Yield the halves that still wait, and the rejects of those that have waited for too long."""
        late = self._knowledge.halves.late
        for half in self._halves.waiting:
            if half.place in late:
                self._reject_half(half, alone(half.change, f"within {self._knowledge.halves.minutes:g} minutes"))
            else:
                # It is read with the batch in which it is decided.
                self._current.counts.update({"read": -1, "waiting": 1})
                self._current.others.append(message_row(HALF, half.message, {}, None))
        self._output.commit()
        yield from self._output.ready()

    def _place(
        self,
        placing: Placing,
        i: int,
        message: bytes,
        changes: Sequence[Change],
        placed: Sequence[Change],
        own: Message,
        others: Sequence[Message] = (),
    ) -> bool:
        """Make rows of a message, and of `others` that are the same change; return whether they could be made."""
        before = self._knowledge.tables.misfit_count
        try:
            rows = placing.rows(message, changes, own.place, own.alike)
        except CdcAvroError as error:
            if isinstance(error, MisfitError):
                if self._knowledge.is_strict and self._knowledge.protection.is_protecting:
                    raise MisfitError(error.expected, HIDDEN, pointer=error.pointer, format=error.format) from None
                if self._knowledge.is_strict:
                    raise
                self._current.counts["misfits"] += 1
            self._current.counts["unplaced"] += 1 + len(others)
            self._times.reject(i)
            fault = refusal_fields(placed[0], error)
            self._current.others += self._questions.ask(placed, own, fault)
            self._current.others += [message_row(STATEMENT, one, fault, []) for one in others]
            return False
        self._times.hear(i, placed)
        if not self._knowledge.is_all and any(not self._knowledge.tables.tables[row.table].is_used for row in rows):
            # The driver may change a version, but none with which data is written.
            self._current.others += self._questions.ask(placed, own, {})
        kept = self._knowledge.tables.misfit_count - before
        if kept:
            self._output.note_misfits(kept, rows, placed)
        if rows and any(change.op in DML for change in placed):
            self._exact.extend((i, row) for row in rows)
            self._joined |= {i: len(others)} if others else {}
            self._keep_evidence(placing, message, own, rows, others)
        else:
            self._keep_statement(placed, rows, 1 + len(others))
        return True

    def _keep_evidence(
        self, placing: Placing, message: bytes, own: Message, rows: Sequence[TypedRow], others: Sequence[Message]
    ) -> None:
        if self._evidence is not None and others:
            self._evidence.void()
        elif self._evidence is not None and not self._evidence.is_void:
            self._current.exact.append((placing, ExactMessage.of(message, own, rows)))

    def _keep_statement(self, changes: Sequence[Change], rows: Sequence[TypedRow], count: int) -> None:
        """Keep the rows of what is no row itself, and count its messages."""
        # In a topic, a record without a value is counted before it is converted.
        is_tombstone = all(change.op == TOMBSTONE for change in changes)
        self._current.counts["tombstones" if is_tombstone else "statements"] += count
        self._output.keep_statement(rows)

    def _fault(self, changes: Sequence[Change]) -> Fault | None:
        """Return why a statement among the changes was refused, if one was."""
        faults = self._knowledge.faults
        if not faults:
            return None
        found = (faults.get(identity_of(change)) for change in changes if change.op in DDL)
        return next((fault for fault in found if fault is not None), None)

    def _refuse_undecided(self, i: int, own: Message, error: MessageError) -> None:
        error.format = own.format
        self._refuse(i, own, error.fields)

    def _refuse(self, i: int, own: Message, error: Fault) -> None:
        self._times.reject(i)
        self._current.counts["rejected"] += 1
        self._current.others.append(message_row(REJECT, own, error, None))


def _time_of(text: str) -> LaneTime | None:
    """Return the time that a lane had when a message was rejected, None for none.

    Raises `PayloadError` for other texts.
    """
    try:
        rank, numbers, moves = msgspec.json.decode(text, type=tuple[int, list[int], int] | None) or (0, [], -1)
    except (msgspec.MsgspecError, RecursionError) as error:
        raise PayloadError("the time of a lane as the clock of a reject", shown(text)) from error
    if moves < 0:
        return None
    if rank not in _RANKS:
        raise PayloadError("the time of a lane as the clock of a reject", shown(text))
    return LaneTime(rank, tuple(numbers), moves)
