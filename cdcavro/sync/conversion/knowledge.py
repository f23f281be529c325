"""Knowledge of a task: what it knows, asks for and learns, the evidence that this was enough, and the times of lanes.

A task knows something when it begins, asks the driver to learn more, and learns itself.

The evidence of a task is what it did with messages like others, for a look whether more knowledge would do the same. A
task learns the statements of its lanes as it reads them. The driver knows those of all lanes, and may know a table
otherwise. So its rows count only if all that the batch says makes the same of each message that went the exact way, and
the same programs of the patterns by which the engine typed all others, and if the rules for rows decide the same of the
versions that they have; else the batch is converted again.

The times of lanes say up to which time of its source a topic partition was read in a batch, and which changes came
late. A message of a time says that its lane has all that was made before: changes are sent as they were committed.
Which message says it, its format decides: a change has the time of its source, a heartbeat the time up to which it was
sent. TiCDC sorts no changes, so only its watermarks count; a heartbeat of Debezium says when the connector ran, and
nothing.

Source: TiCDC's documentation, "TiCDC Canal-JSON Protocol"; Debezium reference, "Heartbeats".
"""

from __future__ import annotations

import json
import pickle
import time
from dataclasses import dataclass, field, fields, replace
from functools import cache
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from cdcavro.arrow.record_batches import VersionPayloads, read_batch, reading_of
from cdcavro.avro.schema import parse_schema
from cdcavro.change.model import DDL
from cdcavro.change.order import NUMBERED
from cdcavro.engine.program import RowProgram
from cdcavro.errors import CdcAvroError, JobError
from cdcavro.lake.learning import Learner, NewTables, identity_of, outline_of
from cdcavro.sync.conversion.outcome_rows import STATEMENT, message_row
from cdcavro.sync.conversion.waiting_halves import JoinedHalves
from cdcavro.sync.protection import Protection
from cdcavro.sync.settings import Chosen

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from cdcavro.arrow.record_batches import Reading
    from cdcavro.change.model import Arrival, Change
    from cdcavro.lake.placing import Placing
    from cdcavro.lake.typed_rows import TypedRow
    from cdcavro.sync.conversion.outcome_rows import Fault, Message
    from cdcavro.sync.outputs.reject_places import RejectCipher
    from cdcavro.sync.settings import Formats, RegistrySettings
    from cdcavro.table.history import Table
    from cdcavro.table.table_schema import TableSchema
    from cdcavro.table.tables import Tables
    from cdcavro.table.writing.message_typer import Journal

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


# How many bytes are kept at most, with so many beside each message, and for the facts of each of its rows.
_MOST: Final = 1 << 24
_BESIDE: Final = 1 << 10
_OF_ROW: Final = 1 << 8
# How many messages one `Placing` types once more: it tries some hundreds of patterns where the engine takes nothing.
_AT_ONCE: Final = 256
# How many bytes of all tasks a driver looks at, at most.
_MOST_OF_TASKS: Final = 1 << 26
# What is decided of a version that is not there.
UNKNOWN: Final = "unknown"
_ALIKE: Final = tuple(one.name for one in fields(RowProgram) if one.name != "latest")


class ExactMessage(NamedTuple):
    """A message that became rows the exact way."""

    format: str
    # As `Placing.rows` takes them.
    message: bytes
    place: Arrival | None
    alike: bytes | None
    # As `_facts_of` returns them.
    facts: tuple[tuple[Any, ...], ...]

    @classmethod
    def of(cls, message: bytes, own: Message, rows: Sequence[TypedRow]) -> ExactMessage:
        """Return a message as it was placed, and as it came, with what became of it."""
        return cls(own.format or "", message, own.place, own.alike, _facts_of(rows))

    @property
    def size(self) -> int:
        """How many bytes it takes, at most."""
        return _BESIDE + len(self.message) + len(self.alike or b"") + _OF_ROW * len(self.facts)


@dataclass
class _Placed:
    """What one `Placing` did."""

    format: str
    messages: list[ExactMessage] = field(default_factory=list)
    # How many patterns of its journal count, and how many bytes all of them take.
    count: int = 0
    size: int = 0
    # The greatest first number of a message that it placed.
    latest: int | None = None


class _Given(NamedTuple):
    """What one `Placing` did, as a task hands it over."""

    format: str
    messages: list[ExactMessage]
    # The programs of patterns, and of which table and version their messages are, by their numbers.
    patterns: dict[bytes, tuple[RowProgram, int, int]]
    latest: int | None


class Evidence:
    """What a task keeps of its messages while it learns on its own.

    Fields:

    * `is_ahead` (bool), whether it learned more than new tables, so that its rows are to be confirmed
    * `is_void` (bool), whether it was given up, so that nothing more need be kept
    * `size` (int), how many bytes it keeps, at most
    """

    def __init__(self) -> None:
        self.is_ahead = self.is_void = False
        self._placed: dict[Journal, _Placed] = {}
        self.size = 0
        # As `Protection.decisions`.
        self._decisions: dict[tuple[int, int], Any] = {}

    def void(self) -> None:
        """Give up: there is something of which no evidence is kept."""
        self.is_void = True
        self._placed.clear()
        self.size = 0

    def keep(
        self, messages: Iterable[tuple[Placing, ExactMessage]], placings: Iterable[Placing], latest: int | None
    ) -> None:
        """Keep messages that count from now on, and note up to where what places others was used.

        `latest` is the greatest first number of a message so far.
        """
        for placing, one in () if self.is_void else messages:
            self._placed.setdefault(placing.journal, _Placed(one.format)).messages.append(one)
            self.size += one.size
        for journal in (placing.journal for placing in placings):
            if journal in self._placed:
                placed = self._placed[journal]
                self.size += journal.size - placed.size
                placed.count, placed.size, placed.latest = len(journal), journal.size, latest
        if self.size > _MOST:
            self.void()

    def keep_decisions(self, decisions: Iterable[Mapping[tuple[int, int], Any]]) -> None:
        """Keep what rules decided of rows that count; give up where it is not what they decided of others alike."""
        for own in decisions:
            if any(self._decisions.setdefault(version, one) != one for version, one in own.items()):
                self.void()

    def to_bytes(self, names: Sequence[str]) -> bytes | None:
        """Return it as `is_confirmed` reads it, None if it was given up; `names` are those of tables by number, as in rows."""
        if self.is_void:
            return None
        given = [
            _Given(placed.format, placed.messages, _patterns_of(journal, placed.count), placed.latest)
            for journal, placed in self._placed.items()
        ]
        return pickle.dumps((names, self._decisions, given))


def _patterns_of(journal: Journal, count: int) -> dict[bytes, tuple[RowProgram, int, int]]:
    found = journal.patterns(count).items()
    return {fixed: (program, table.number, schema.version) for fixed, (program, table, schema) in found}


def has_evidence(notes: Iterable[Mapping[str, Any]]) -> bool:
    """Return whether a task has learned more than new tables, by the summaries of all, and evidence of all can be looked at."""
    notes = list(notes)
    sizes = [note.get("evidence") for note in notes]
    is_ahead = any(note.get("is ahead") for note in notes)
    return is_ahead and None not in sizes and sum(filter(None, sizes)) <= _MOST_OF_TASKS


def is_confirmed(
    evidence: bytes, new_placing: Callable[[str], Placing], names: Sequence[str], decide: Callable[[str, int], Any]
) -> bool:
    """Return whether what places messages by all that was learned, of a format, does the same as a task did.

    `evidence` is that of the task. `names` are those of tables by number, by all that was learned. `decide` returns what
    rules decide by that of a version of the table with a name, and raises `JobError` if its rows may not be written.
    """
    named, decisions, given = pickle.loads(evidence)  # noqa: S301  a task that this process has sent pickled it
    try:
        is_same = all(decide(named[number], version) == one for (number, version), one in decisions.items())
    except JobError:
        return False
    return is_same and all(_is_same(one, named, new_placing, names) for one in given)


def _is_same(given: _Given, named: Sequence[str], new_placing: Callable[[str], Placing], names: Sequence[str]) -> bool:
    found: dict[bytes, tuple[RowProgram, int, int]] = {}
    for start in range(0, len(given.messages), _AT_ONCE):
        placing = new_placing(given.format)
        for one in given.messages[start : start + _AT_ONCE]:
            try:
                rows = placing.rows(one.message, placing.changes(one.message), one.place, one.alike)
            except CdcAvroError:
                return False
            if _named(_facts_of(rows), names) != _named(one.facts, named):
                return False
        found |= _patterns_of(placing.journal, len(placing.journal))
    return all(
        fixed in found
        and (named[table], version) == (names[found[fixed][1]], found[fixed][2])
        and _is_alike(program, found[fixed][0], given.latest)
        for fixed, (program, table, version) in given.patterns.items()
    )


def _facts_of(rows: Sequence[TypedRow]) -> tuple[tuple[Any, ...], ...]:
    """Return what the knowledge of tables decides of the rows of a message; their orders are not part of it."""
    return tuple(
        (one.table, one.version, one.operation, sha256(repr((one.key, one.payload, one.absent)).encode()).digest())
        for one in rows
    )


def _named(facts: Sequence[Sequence[Any]], names: Sequence[str]) -> list[tuple[Any, ...]]:
    return [(names[number], *others) for number, *others in facts]


def _is_alike(program: RowProgram, other: RowProgram, latest: int | None) -> bool:
    """Return whether two programs do the same to all messages of a pattern, of which `latest` is the greatest number."""
    is_same = all(getattr(program, name) == getattr(other, name) for name in _ALIKE)
    return is_same and (other.latest >= program.latest or (latest is not None and other.latest >= latest))


@dataclass(frozen=True)
class Knowledge:
    """What a task knows when it begins: all that was learned in batches before, and maybe in its own."""

    tables: Tables
    # As `Clock.state`.
    clock: list[Any]
    formats: Formats
    # As in `to_changes`.
    unavailable: str | None
    # As in `Learned`.
    dropped: Mapping[bytes, tuple[int, ...]] = field(default_factory=dict)
    # Why statements were refused, by their `identity_of`.
    faults: Mapping[bytes, Fault] = field(default_factory=dict)
    # Which tables are wanted, and the numbers of known tables that are not.
    chosen: Chosen = field(default_factory=Chosen)
    left_out: frozenset[int] = frozenset()
    # Whether all of the batch was learned.
    is_all: bool = False
    # Whether a misfit ends the job.
    is_strict: bool = False
    # Whether only the last change of each key is wanted.
    is_reduced: bool = False
    # Whether current states are wanted.
    has_states: bool = False
    # As in `Settings`.
    framed: RegistrySettings | None = None
    # What is written of rows, whether rejects have the bytes of their messages, and what encrypts and decrypts these.
    protection: Protection = field(default_factory=Protection)
    has_raw: bool = True
    cipher: RejectCipher | None = None
    # As in `LaneTimes`.
    marks: Mapping[int, int] = field(default_factory=dict)
    # How halves of updates are joined.
    halves: JoinedHalves = field(default_factory=JoinedHalves)

    @property
    def of_tasks(self) -> Knowledge:
        """The same without the halves that the batch before left, which one more task joins."""
        return replace(self, halves=self.halves._replace(kept=())) if self.halves.kept else self

    @property
    def is_hiding(self) -> bool:
        """Whether messages may hold what nobody but a task is to have: what rules leave out, or rejects do not show."""
        is_encrypting = self.cipher is not None and self.cipher.is_encrypting
        return bool(self.protection.rules) or not self.has_raw or is_encrypting

    def copier(self) -> Callable[[], Knowledge]:
        """Return what makes copies of the knowledge as it is now. Rules may have functions, which are not pickled."""
        given, rules = pickle.dumps(replace(self, protection=Protection())), self.protection.rules

        def copy() -> Knowledge:
            known: Knowledge = pickle.loads(given)  # noqa: S301  it was dumped some lines above
            return replace(known, protection=Protection(rules))

        return copy


class Questions:
    """What a task asks the driver to learn, once for all messages that say the same, and learns itself meanwhile."""

    def __init__(self, knowledge: Knowledge, evidence: Evidence | None = None) -> None:
        self._tables, self._is_all, self._evidence = knowledge.tables, knowledge.is_all, evidence
        self._learner, self._new = Learner(knowledge.tables), NewTables(knowledge.tables)
        self._is_wanted = knowledge.chosen.has
        self._asked: set[bytes] = set()
        # The statements that were asked about, each of them once, as messages are converted once more.
        self._stated: set[bytes] = set()
        self._unlearned: list[Change] = []
        # The new tables that the task has learned and the driver will number, as `NewTables` marks them.
        self.marks: dict[int, str] = {}
        # Whether the task learned anything else. The driver knows other lanes and may learn it differently, so what the
        # task converts from then on does not count, unless there is evidence of it.
        self.is_ahead = False

    def ask(self, changes: Sequence[Change], message: Message, error: Fault) -> list[dict[str, Any]]:
        """Return the row that asks about a message; none if the same was asked in its lane since the last statement.

        `error` is why it was not placed: then there always is a row, which becomes a reject if nothing is learned.
        """
        outlines: list[bytes] = []
        if any(change.op in DDL for change in changes):
            said = b"".join(map(identity_of, changes))
            if said in self._stated:
                return [message_row(STATEMENT, message, error, outlines)] if error else []
            self._stated.add(said)
            # Behind a statement, the same may say more.
            self._asked.clear()
        for digest, outline in filter(None, map(outline_of, changes)):
            lane = message.place and (message.place.topic, message.place.partition, message.place.file)
            same = digest + repr(lane).encode()
            outlines += [] if same in self._asked else [outline.to_avro()]
            self._asked.add(same)
        if outlines and not self._is_all:
            self._unlearned += changes
        return [message_row(STATEMENT, message, error, outlines)] if outlines or error else []

    def learn(self) -> bool:
        """Learn what was asked since the last call; return whether any of it was new."""
        asked, self._unlearned = self._unlearned, []
        edits = self._tables.edits
        self._learner.learn(asked, self._is_wanted)
        if self._tables.edits == edits:
            return False
        marks = None if any(change.op in DDL for change in asked) else self._new.marks
        if marks is None and self._evidence is not None:
            marks, self._evidence.is_ahead = self._new.marks_beside_others, True
        if marks is None:
            self.is_ahead = True
        else:
            self.marks = marks
        return True
