"""Times of lanes: up to which time of its source a topic partition was read in a batch, and which changes came late.

A message of a time says that its lane has all that was made before: changes are sent as they were committed. Which
message says it, its format decides: a change has the time of its source, a heartbeat the time up to which it was sent.
TiCDC sorts no changes, so only its watermarks count; a heartbeat of Debezium says when the connector ran, and nothing.

Source: TiCDC's documentation, "TiCDC Canal-JSON Protocol"; Debezium reference, "Heartbeats".
"""

from __future__ import annotations

import json
import time
from dataclasses import dataclass, field, replace
from functools import cache
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from cdcavro.arrow.record_batches import VersionPayloads, read_batch, reading_of
from cdcavro.avro.schema import parse_schema
from cdcavro.change.model import DDL
from cdcavro.change.order import NUMBERED

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from cdcavro.arrow.record_batches import Reading
    from cdcavro.change.model import Arrival, Change
    from cdcavro.table.history import Table
    from cdcavro.table.table_schema import TableSchema

_FIELDS: Final = ("connector", "ts_us")
# The bits of a number of TiDB's below its milliseconds.
_LOGICAL_BITS: Final = 18
_MILLISECOND: Final = 1_000
# How far the clock of a source may be ahead of this machine's, in microseconds: a time further on is none.
_AHEAD: Final = 3_600_000_000
# The bits of a number of a version beside that of its table.
_VERSION_BITS: Final = 32
_HEARTBEAT: Final = "HEARTBEAT"
_LOADED: Final = "r"


def time_stated(change: Change) -> int | None:
    """Return up to when a lane has all changes, as a statement or a heartbeat says it; None if it does not.

    The time is in microseconds since the epoch. What a row says, `LaneTimes` reads from its payload.
    """
    is_numbered = change.source.db_type == NUMBERED
    if change.op == _HEARTBEAT:
        if is_numbered:
            return (change.position[0] >> _LOGICAL_BITS) * _MILLISECOND if change.position else None
        return change.event_time if change.checkpoint_time is None else change.checkpoint_time
    return change.event_time if change.op in DDL and not (is_numbered or change.snapshot) else None


@dataclass
class _LaneTime:
    """What a batch says of a lane; times are in microseconds since the epoch, None where there are none."""

    until: int | None = None
    # How many messages were rejected, and up to when the lane had all before the first of them.
    rejects: int = 0
    before: int | None = None
    # How many messages that were rejected once were read again, and not rejected.
    mended: int = 0


@dataclass
class _TableTimes:
    """The topics of a table's changes, and how many of these came late."""

    topics: frozenset[str] = frozenset()
    late: int = 0


@dataclass
class _Run:
    """What a run of messages has said so far, by the indexes of messages; `lane` is None for what is in no topic."""

    lane: tuple[str, int] | None = None
    found: list[tuple[int, int]] = field(default_factory=list)
    rows: list[tuple[pa.Array, pa.Array]] = field(default_factory=list)
    rejects: set[int] = field(default_factory=set)
    # Messages that are read again, with their lanes.
    again: dict[int, tuple[str, int]] = field(default_factory=dict)


class LaneTimes:
    """The times of the lanes that a task reads. `marks` has, by the numbers of tables, up to when all of them was in.

    Between `begin` and `end` stands what a run of messages of one lane says.
    """

    def __init__(self, marks: Mapping[int, int]) -> None:
        self._marks = marks
        self._latest = time.time_ns() // 1_000 + _AHEAD
        self._lanes: dict[tuple[str, int], _LaneTime] = {}
        self._tables: dict[int, _TableTimes] = {}
        # What reads payloads, and the schemas that it knows, by the numbers of tables and versions.
        self._payloads = VersionPayloads()
        self._schemas: dict[tuple[int, int], tuple[TableSchema, int]] = {}
        self._run = _Run()

    def copy(self) -> LaneTimes:
        """Return times with the same state, which go on independently."""
        other = LaneTimes(self._marks)
        other._payloads, other._schemas, other._latest = self._payloads, self._schemas, self._latest
        other._lanes = {lane: replace(one) for lane, one in self._lanes.items()}
        other._tables = {number: replace(one) for number, one in self._tables.items()}
        return other

    def begin(self, topic: str | None = None, partition: int | None = None) -> None:
        """Begin a run of messages of a topic partition, or of messages in none."""
        self._run = _Run(None if topic is None or partition is None else (topic, partition))

    def read_again(self, i: int, place: Arrival) -> None:
        """Note that a message was rejected once, when it arrived at a place."""
        if place.topic is not None and place.partition is not None:
            self._run.again[i] = place.topic, place.partition

    def reject(self, i: int) -> None:
        """Note that a message is rejected, unless it is learned."""
        self._run.rejects.add(i)

    def mend(self, place: Arrival | None) -> None:
        """Note that a message is a row now that was to be rejected, when it arrived at a place."""
        if place is not None and place.topic is not None and place.partition is not None:
            self._lanes.setdefault((place.topic, place.partition), _LaneTime()).mended += 1

    def hear(self, i: int, changes: Sequence[Change]) -> None:
        """Note what statements and heartbeats of a message say."""
        if self._run.lane is not None:
            stated = (time_stated(change) for change in changes)
            self._run.found += [(i, one) for one in stated if one is not None and one <= self._latest]

    def add(self, rows: pa.RecordBatch, tables: Sequence[Table]) -> None:
        """Note what rows say, in a batch of `placing.ROWS`."""
        if self._run.lane is None:
            return
        # The row of a DROP has no payload; its time was heard with the statement.
        has_payload = pc.greater(pc.binary_length(rows.column("payload")), 0)
        if not pc.all(has_payload).as_py():
            rows = rows.filter(has_payload)
        if not rows.num_rows:
            return
        numbers = rows.column("number")
        coded = pc.add(pc.shift_left(numbers.cast(pa.int64()), _VERSION_BITS), rows.column("version"))
        coded = coded.dictionary_encode()
        kinds = [divmod(one, 1 << _VERSION_BITS) for one in coded.dictionary.to_pylist()]
        schemas = pa.array([self._schema(number, version, tables[number]) for number, version in kinds], pa.int32())
        times = self._times_of(rows, schemas.take(coded.indices))
        self._run.rows.append((rows.column("message"), times))
        for number in {number for number, _ in kinds}:
            self._tables.setdefault(number, _TableTimes()).topics |= {self._run.lane[0]}
        marks = pa.array([self._marks.get(number) for number, _ in kinds], pa.int64()).take(coded.indices)
        for late in pc.value_counts(numbers.filter(pc.less(times, marks))).to_pylist():
            self._tables[late["values"]].late += late["counts"]

    def _times_of(self, rows: pa.RecordBatch, schemas: pa.Array) -> pa.Array:
        """Return the times of rows, whose schemas have these numbers; null where a row says none of its lane."""
        read = self._payloads.translate(schemas, rows.column("payload"))
        connector, times = read_batch(read, _reading()).field(0).flatten()
        is_sorted = pc.fill_null(pc.not_equal(connector, NUMBERED), fill_value=True)
        is_sorted = pc.and_(is_sorted, pc.fill_null(pc.less_equal(times, self._latest), fill_value=False))
        is_sorted = pc.and_(is_sorted, pc.not_equal(rows.column("operation"), _LOADED))
        return pc.if_else(is_sorted, times, None)

    def _schema(self, number: int, version: int, table: Table) -> int:
        """Return the number under which payloads of a version of a table say of their sources what is wanted."""
        schema, known = table.versions[version - 1], self._schemas.get((number, version))
        if known is None or known[0] is not schema:
            envelope = schema.envelope.json
            known = self._schemas[number, version] = (schema, self._payloads.add(envelope, _source_schema(envelope)))
        return known[1]

    def end(self) -> None:
        """End a run of messages."""
        run, self._run = self._run, _Run()
        for i, own in run.again.items():
            self._lanes.setdefault(own, _LaneTime()).mended += i not in run.rejects
        if run.lane is None:
            return
        lane = self._lanes.setdefault(run.lane, _LaneTime())
        if run.rejects and not lane.rejects:
            first = min(run.rejects)
            earlier = [time for i, time in run.found if i < first]
            earlier += [pc.max(times.filter(pc.less(messages, first))).as_py() for messages, times in run.rows]
            lane.before = _latest(lane.until, *earlier)
        lane.rejects += len(run.rejects)
        lane.until = _latest(
            lane.until, *(time for _, time in run.found), *(pc.max(one).as_py() for _, one in run.rows)
        )

    @property
    def lanes(self) -> list[list[Any]]:
        """What the batch says of each lane, as `Completeness.take` reads it."""
        return [[*lane, one.until, one.rejects, one.before, one.mended] for lane, one in sorted(self._lanes.items())]

    def of_table(self, number: int) -> dict[str, Any]:
        """Return the facts of a table, as JSON."""
        one = self._tables.get(number, _TableTimes())
        return {"topics": sorted(one.topics), "late": one.late}


def _latest(*times: int | None) -> int | None:
    return max((one for one in times if one is not None), default=None)


def _source_schema(envelope: str) -> str:
    """Return the schema of those fields of an envelope that say when and where a change was made."""
    record = json.loads(envelope)
    source = next(one for one in record["fields"] if one["name"] == "source")
    fields = [one for one in source["type"]["fields"] if one["name"] in _FIELDS]
    kept = {"name": "source", "type": {**source["type"], "fields": fields}}
    return json.dumps(
        {**{name: record[name] for name in ("type", "name", "namespace") if name in record}, "fields": [kept]}
    )


@cache
def _reading() -> Reading:
    """Return how these fields are read, of whatever table."""
    fields = [{"name": name, "type": ["null", kind]} for name, kind in zip(_FIELDS, ("string", "long"), strict=True)]
    source = {"name": "source", "type": {"type": "record", "name": "Source", "fields": fields}}
    return reading_of(parse_schema(json.dumps({"type": "record", "name": "Envelope", "fields": [source]})), {})
