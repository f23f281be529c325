"""Batches of a pipeline, one after another: messages are converted, their statements learned, and rows written."""

from __future__ import annotations

import time
from collections import Counter
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol

from cdcavro.change.order import Clock
from cdcavro.errors import FileError, JobError, SchemaError, number_of, plain
from cdcavro.files.rejects import has_rejects_only
from cdcavro.lake.account import BatchFacts, NewVersions, Unparsed
from cdcavro.lake.lakes import Attempt
from cdcavro.lake.merge import changelog_reason
from cdcavro.sync.conversion.rounds import convert
from cdcavro.sync.conversion.waiting_halves import HALVES, JoinedHalves, KeptHalves, WaitingHalf
from cdcavro.sync.outputs.completeness import Completeness, instant_text, partitions_of
from cdcavro.sync.outputs.reject_places import Rejects, write_to_places
from cdcavro.sync.outputs.schema_changes import sentences
from cdcavro.sync.outputs.sink_settings import LakeNames
from cdcavro.sync.outputs.table_rows import WAITING, TableRows, WaitingRows, paused_tables, table_resets
from cdcavro.sync.pipeline import CHECKPOINT
from cdcavro.table.columns.column_type import UNTYPED
from cdcavro.wire.sniff import MIXED, other_format

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from cdcavro.change.model import Change
    from cdcavro.lake.account import AccountFile, RejectReason
    from cdcavro.lake.job_state import JobState
    from cdcavro.lake.typed_rows import TypedRows
    from cdcavro.sync.conversion.knowledge import Knowledge
    from cdcavro.sync.conversion.rounds import Outcomes, RowFiles
    from cdcavro.sync.outputs.reject_places import RejectOutput
    from cdcavro.sync.outputs.schema_changes import SchemaChange, SchemaChanges
    from cdcavro.sync.outputs.writer import Writer, WriteResult
    from cdcavro.sync.settings import Settings
    from cdcavro.table.ddl.steps import TableName
    from cdcavro.table.history import Table
    from cdcavro.table.table_schema import TableSchema
    from cdcavro.table.tables import Tables

# What the account has of a report.
_ACCOUNTED: Final = ("counts", "operations", "seconds", "steps", "waiting", "rejects", "unparsed")
# What the facts of a report have of it as it is, and of its rejects.
_FACTS: Final = ("counts", "operations", "steps", "waiting", "seconds", "notes")
_OF_REJECTS: Final = ("format", "path", "reason", "count", "place")
# How many reasons an error about too many rejects names.
_EXAMPLES: Final = 3
_LOOKED_AT: Final = 20
# How many looks at topics are kept.
_LOOKS: Final = 100
_NO_DELETES: Final = (
    "its records without a value are not applied as deletes, though its rows are of a format in which they are:"
    " state the format (format, or formats for this topic)"
)
_SERVERS: Final = (
    "its rows come from {}, and are rows of one table: if these are tables of several servers, rows with equal keys"
    " overwrite each other, so read each topic in a pipeline of its own, which gives the table another name (a [[route]],"
    " or name in [lake])"
)
# What is said of a table whose messages state no types.
ALL_TEXT: Final = "its messages state no types, so all its columns are texts: [tables.types] states them"
# What becomes of messages: each is read, and is exactly one of the others.
COUNTS: Final = ("read", "written", "rejected", "statements", "left out", "tombstones")


class Lag(NamedTuple):
    """How much is left to read."""

    left: int
    # "messages" or "files".
    unit: str


class Arrivals:
    """What topics had when it was looked, and so since when at least the oldest message waits that is left to read."""

    def __init__(self) -> None:
        self._looks: list[tuple[float, dict[str, dict[str, int]]]] = []

    def look(self, latest: dict[str, dict[str, int]], at: float) -> None:
        """Note the offsets behind the last messages by topic and partition; `at` is in seconds since 1970."""
        if not self._looks or self._looks[-1][1] != latest:
            self._looks.append((at, latest))
        if len(self._looks) > _LOOKS:
            # The first one stays, by which a stream that is stuck is told; what is between is then not as fine.
            del self._looks[1:-1:2]

    def since(self, end: dict[str, dict[str, int]]) -> float | None:
        """Return when a message behind some offsets was first seen, None if none was; the offsets only grow."""
        while self._looks and not _has_more(self._looks[0][1], end):
            del self._looks[0]
        return self._looks[0][0] if self._looks else None


def _has_more(latest: dict[str, dict[str, int]], end: dict[str, dict[str, int]]) -> bool:
    return any(
        offset > end.get(topic, {}).get(partition, 0)
        for topic, partitions in latest.items()
        for partition, offset in partitions.items()
    )


class WrittenTable(NamedTuple):
    """A table whose rows were written."""

    # What it is called in the lake.
    name: TableName
    # The newest version, as it is written.
    schema: TableSchema
    # Whether it has a current state, in a lake that keeps them.
    has_key: bool
    # What it is called for people, and as a shard, if it is one; whether there were rows that had been pending.
    label: str
    shard: str | None = None
    has_waited: bool = False


@dataclass
class BatchReport:
    """What a batch did.

    * `number` (int)
    * `counts` (dict[str, int]): the messages by what became of them, as in `COUNTS`.
    * `operations` (dict[str, dict[str, int]]): the rows by operation, as in the envelope, by table.
    * `steps` (list[str]): how lake tables changed.
    * `waiting` (dict[str, str]): the tables whose rows are pending, and why.
    * `seconds` (dict[str, float]): how long the parts of the batch took.
    * `rejects` (list[RejectReason]): why messages were rejected.
    * `lag` (Lag or None): how much was left to read after the batch.
    * `lag_since` (float or None): when a message that is still left was first seen, in seconds since 1970; None if none is
      left, and for files.
    * `look` (str or None): what is said of what the messages seem to be, if all were rejected and read as something else.
    * `notes` (list[str]): remarks about files.
    * `unparsed` (Unparsed): values that their columns' types cannot carry, and that are kept as text.
    * `pending` (dict[str, int]): how many rows are pending in the state, by table, for whatever reason.
    * `versions` (dict[str, int]): the newest version of each table that was ever written.
    * `complete` (dict[str, int]): up to when all changes of a table are in, in microseconds since 1970, if that is known.
    * `late` (dict[str, int]): how many changes of a table are from before the time up to which it was complete.
    * `topics` (list[str]): the topics of its messages.
    * `written` (list[WrittenTable]): the tables whose rows were all written.
    * `began` and `ended` (float or None): when the batch began and was written, in seconds since 1970.
    """

    number: int
    counts: dict[str, int]
    operations: dict[str, dict[str, int]] = field(default_factory=dict)
    steps: list[str] = field(default_factory=list)
    waiting: dict[str, str] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)
    rejects: list[RejectReason] = field(default_factory=list)
    lag: Lag | None = None
    lag_since: float | None = None
    look: str | None = None
    notes: list[str] = field(default_factory=list)
    unparsed: Unparsed = field(default_factory=Unparsed)
    pending: dict[str, int] = field(default_factory=dict)
    versions: dict[str, int] = field(default_factory=dict)
    complete: dict[str, int] = field(default_factory=dict)
    late: dict[str, int] = field(default_factory=dict)
    topics: list[str] = field(default_factory=list)
    written: list[WrittenTable] = field(default_factory=list)
    began: float | None = None
    ended: float | None = None

    @property
    def facts(self) -> dict[str, Any]:
        """What the batch did, as a value of JSON."""
        facts = {name: getattr(self, name) for name in _FACTS}
        rejects = [{name: getattr(one, name) for name in _OF_REJECTS} for one in self.rejects]
        lag = None if self.lag is None else {self.lag.unit: self.lag.left}
        unparsed = {"count": self.unparsed.count, "example": self.unparsed.example or None}
        complete = {name: instant_text(mark) for name, mark in self.complete.items()}
        of_tables = {"complete_until": complete, "late": self.late}
        return {"batch": self.number, **facts, "rejects": rejects, "lag": lag, "unparsed": unparsed, **of_tables}


class BatchMessages(Protocol):
    """The messages of a batch, which can be converted more than once."""

    def convert(self, knowledge: Knowledge) -> Outcomes:
        """Convert the messages with what is known. Raises `JobError` for what is no message's fault."""

    def marks(self, files: Iterable[str]) -> list[str]:
        """Return what is to be said of byte order marks in files, beside what tasks say."""


class Batches:
    """Runs the batches of a pipeline; its runner calls `run` with each."""

    def __init__(
        self,
        settings: Settings,
        state: JobState,
        writer: Writer,
        account: AccountFile,
        say: Callable[[BatchReport], None],
        rejects: Sequence[RejectOutput] = (),
        template: str | None = None,
        schema_changes: SchemaChanges | None = None,
    ) -> None:
        self._settings, self._state, self._writer, self._account, self._say = settings, state, writer, account, say
        self._rejects, self._protection, self._schema_changes = rejects, settings.protection, schema_changes
        self._next = -1
        self._maker: TypedRows | None = None
        self._template = template
        self._names = LakeNames(template=template, routes=settings.routes)
        self._totals: Counter[str] = Counter()
        self._complete = Completeness(settings.rejects_hold)
        self._versions = NewVersions()
        # How many findings of each table were said.
        self._said: dict[int, int] = {}
        folder = state.folder.parent
        waiting = WaitingRows(folder / WAITING)
        # The halves of updates that the last batch left.
        self._halves, self._kept = KeptHalves(folder / HALVES), tuple[WaitingHalf, ...]()
        named = paused_tables(folder), table_resets(folder)
        self._rows = TableRows(writer, waiting, settings.merge_every, *named, self._protection.public, account.lake)
        # The topics whose messages tell their format: those with rows of a format in which a record without a value is a
        # delete, and those of which it was said that such records are none.
        self._rows_alone, self._undeleted = frozenset[str](), frozenset[str]()
        # The tables that refused their rows when they were last written, and why.
        self._refused = account.waiting
        # Those that refused them in this run: what an earlier one was refused may have been a full disk.
        self._tried: set[str] = set()
        self._is_looked_at = False
        self.failure: Exception | None = None

    def run(self, messages: BatchMessages, number: int) -> None:
        """Run a batch, which may have been run before in part or completely.

        Raises `JobError` and others, which end a stream.
        """
        try:
            self._say(self._run(messages, number))
        except Exception as error:
            # Spark passes only its text on.
            self.failure = error
            raise

    def _run(self, messages: BatchMessages, number: int) -> BatchReport:
        began, maker, since = time.time(), self._resume(number), self._first_attempt(number)
        # As the state has it, so that a batch that is run again decides the same.
        begun = since or datetime.now(UTC).replace(microsecond=0)
        halves = JoinedHalves(self._settings.halves_minutes, begun.timestamp(), self._kept)
        seconds: dict[str, float] = {}
        with _measure_time(seconds, "convert"):
            outcomes, learned = self._convert(messages, maker, halves)
        try:
            report = BatchReport(number, {name: outcomes.counts[name] for name in COUNTS}, seconds=seconds)
            report.notes = [*outcomes.notes, *messages.marks(_files_of(outcomes.lanes))]
            report.unparsed = Unparsed(outcomes.counts["unparsed"], outcomes.misfit)
            self._check(report, outcomes)
            maker.clock = _merge_clock(maker.clock, outcomes.clock)
            tables = maker.tables.tables
            rows = self._operations(outcomes, self._named(outcomes, tables))
            report.notes += self._slips(tables)
            report.steps += self._deletes_not_applied(outcomes)
            self._take_times(outcomes, number, begun, tables, report)
            kept = halves.waiting(outcomes.halves)
            report.notes += _notes_of_halves(kept)
            facts = self._facts(report, outcomes, rows, begun, kept)
            facts |= self._facts_of_tables(outcomes, tables)
            decided = self._decide(learned, maker, report)
            with _measure_time(seconds, "state"):
                self._halves.write(number, kept)
                self._state.write(number, learned, maker.clock, facts)
            with _measure_time(seconds, "rejects"):
                self._put_aside(outcomes, report, since, decided)
            with _measure_time(seconds, "write"):
                written = self._rows.write(outcomes, number, tables, self._names, since, self._complete.goals)
            self._tell(report, written, tables, number)
            self._tell_of_messages(report, outcomes)
            self._totals, self._next, self._kept = facts["totals"], number + 1, tuple(kept)
            report.operations = {name: dict(operations) for name, operations in rows.items()}
            self._note(report, began, maker.tables, learned)
        finally:
            outcomes.store.free()
        return report

    def _take_times(
        self, outcomes: Outcomes, number: int, begun: datetime, tables: Sequence[Table], report: BatchReport
    ) -> None:
        """Note up to when tables are complete with a batch, and say once of which table changes come from several servers."""
        partitions = partitions_of(self._state.folder.parent / CHECKPOINT, number)
        before = {one: self._complete.servers(one, tables[one].schema.table) for one in outcomes.tables}
        self._complete.take(outcomes.times, outcomes.tables, partitions, begun)
        for one, topics in sorted(before.items()):
            found = [] if topics else self._complete.servers(one, tables[one].schema.table)
            if found:
                report.steps.append(
                    f"{self._names.label(tables[one])}: {_SERVERS.format(' and '.join(map(plain, found)))}"
                )

    def _convert(
        self, messages: BatchMessages, maker: TypedRows, halves: JoinedHalves
    ) -> tuple[Outcomes, list[Change]]:
        return convert(
            messages.convert,
            maker,
            self._settings,
            is_reduced=not self._writer.has_changes,
            has_states=self._writer.has_states,
            marks=self._complete.marks,
            halves=halves,
        )

    def _facts(
        self,
        report: BatchReport,
        outcomes: Outcomes,
        rows: dict[str, dict[str, int]],
        begun: datetime,
        halves: Sequence[WaitingHalf],
    ) -> dict[str, Any]:
        """Return what the state says of the messages of a batch, and when it was begun."""
        return {
            "counts": report.counts,
            "totals": self._totals + Counter(report.counts),
            "read": outcomes.lanes,
            "halves": len(halves),
            "rows": rows,
            "begun": begun.isoformat(timespec="seconds"),
        }

    def _facts_of_tables(self, outcomes: Outcomes, tables: Sequence[Table]) -> dict[str, Any]:
        """Return what the state says of names in the lake, of tables that are refused one, and of their versions."""
        nameless = [one for one in self._with_rows(outcomes) if one not in self._names.names]
        return {
            "names": self._names.state,
            "nameless": [[one, self._names.label(tables[one])] for one in nameless],
            "versions": self._newest_versions(tables),
            "protection": self._protection.layout,
            "is_reduced": not self._writer.has_changes,
            "rows alone": [sorted(self._rows_alone), sorted(self._undeleted)],
            **self._complete.facts,
        }

    def _decide(self, learned: Sequence[Change], maker: TypedRows, report: BatchReport) -> list[SchemaChange]:
        """Return what is decided for the statements of a batch, and say which are not followed."""
        if self._schema_changes is None:
            return []
        found = self._schema_changes.find(learned, maker.learner, maker.tables.tables, self._names)
        report.steps += sentences(found)
        return found

    def _put_aside(
        self, outcomes: Outcomes, report: BatchReport, since: datetime | None, decided: Sequence[SchemaChange]
    ) -> None:
        """Write the rejects of a batch, and what was decided for its statements."""
        self._reject(outcomes, report, since)
        if self._schema_changes is not None:
            self._schema_changes.write(decided, report.number, datetime.now(UTC), Attempt(since is None, since))

    def _named(self, outcomes: Outcomes, tables: Sequence[Table]) -> list[Table]:
        """Return the tables of a batch's rows, each of which has a name in the lake then, unless the write refuses it."""
        # What the state does not say the next run may name otherwise: no table gets its name later in the batch.
        for number in self._with_rows(outcomes):
            with suppress(SchemaError):
                first = outcomes.tables.get(number, {}).get("first")
                self._names.name(tables[number], tables, first)
        return [tables[one] for one in sorted(outcomes.tables)]

    def _with_rows(self, outcomes: Outcomes) -> list[int]:
        """Return the numbers of the tables that have rows in a batch, or rows that wait."""
        return sorted({*outcomes.tables, *self._rows.waiting.tables()})

    def _slips(self, tables: Sequence[Table]) -> list[str]:
        """Return which rules of tables nothing fits, once: a stream may write what they should protect until it ends."""
        is_time = bool(tables) and not self._is_looked_at
        self._is_looked_at |= is_time
        return self._settings.unmatched_rules(tables) if is_time else []

    def _deletes_not_applied(self, outcomes: Outcomes) -> list[str]:
        """Return of which topics records without a value are no deletes, for want of a format; each topic once."""
        self._rows_alone |= outcomes.rows_alone
        found = (outcomes.without_value & self._rows_alone) - self._undeleted
        self._undeleted |= found
        return [f"topic {plain(topic)}: {_NO_DELETES}" for topic in sorted(found)]

    def _resume(self, number: int) -> TypedRows:
        """Return what has learned all that the batches before said."""
        if self._maker is None or self._next != number:
            later = [one for one in self._state.batches() if one > number]
            if later:
                found = f"one that is behind batch {later[-1]}: its checkpoint is gone, or an older one"
                raise FileError(str(self._state.folder), f"a state that is behind batch {number} at most", found)
            self._maker = self._state.resume(number, self._settings.tables())
            facts = self._state.facts(number)
            self._check_rules(number, facts.get("protection", ""))
            self._check_kept(is_reduced=facts.get("is_reduced", False))
            self._names = LakeNames.of(facts.get("names", []), self._template, self._settings.routes)
            self._totals = Counter(facts.get("totals", {}))
            self._rows_alone, self._undeleted = map(frozenset, facts.get("rows alone", ((), ())))
            self._kept = self._halves.read(number - 1, facts.get("halves", 0))
            self._complete = Completeness.of(facts, is_held=self._settings.rejects_hold)
            self._complete.settle(self._rows.waiting.tables())
            self._versions = NewVersions(self._maker.tables.tables, self._maker.tables.edits)
            self._said = {table.number: len(table.findings) for table in self._maker.tables.tables}
            for table in self._maker.tables.tables:
                # They were said by the run before.
                self._names.renamed_remark(table)
        return self._maker

    def _check_rules(self, number: int, layout: str) -> None:
        """Raise `JobError` if rows wait that were made by other rules than those of now.

        `layout` is that of the batches before `number`; an attempt of this one may have left rows, too.
        """
        batches = self._rows.waiting.batches()
        layouts = {layout} if any(one < number for one in batches) else set()
        if any(one >= number for one in batches):
            layouts.add(self._state.facts(number + 1).get("protection", ""))
        if layouts - {self._protection.layout}:
            raise JobError(
                f"pending rows in {self._rows.waiting.folder} were made before [[table]] was changed: restore the rules"
                " until these rows are written, then change them"
            )

    def _check_kept(self, *, is_reduced: bool) -> None:
        """Raise `JobError` if every change is wanted, and rows wait of which only the last change of each key was kept."""
        if is_reduced and self._writer.has_changes and self._rows.waiting.has_rows:
            raise JobError(
                f"pending rows in {self._rows.waiting.folder} have only the last change of each key, and changelog or"
                " form now needs all: restore the settings until these rows are written, then change them"
            )

    def _first_attempt(self, number: int) -> datetime | None:
        """Return when a batch was first begun to be written; None if it never was."""
        if number not in self._state.batches():
            return None
        return datetime.fromisoformat(self._state.facts(number + 1)["begun"])

    def _check(self, report: BatchReport, outcomes: Outcomes) -> None:
        """Raise `JobError` if messages were lost, or more were rejected than are allowed."""
        counts = report.counts
        if counts["read"] != sum(counts[name] for name in COUNTS[1:]):
            raise JobError(f"batch {report.number} read {counts['read']} messages, and not as many were found again")
        total = self._totals + Counter(counts)
        limit = self._settings.max_rejects
        if limit is not None and not limit.allows(total["rejected"], total["read"]):
            few = outcomes.store.reject_reasons()[:_EXAMPLES]
            shown = "".join(
                f"\n{one.count:,} such as {plain(one.place)}: {plain(one.path or '$')}: {plain(one.example)}"
                for one in few
            )
            raise JobError(
                f"batch {report.number} brings the rejects to {total['rejected']:,} of {total['read']:,} messages, which"
                f" is more than are allowed: nothing of it was written{shown}"
            )

    def _reject(self, outcomes: Outcomes, report: BatchReport, since: datetime | None) -> None:
        if report.counts["rejected"]:
            folder = self._settings.rejects or str(self._state.folder.parent / "rejects")
            if "://" not in folder:
                # Spark's own default may be another file system, and a relative path is that of this process.
                folder = f"file://{Path(folder).absolute()}"
            found = Rejects(outcomes.store.rejects(), report.number, datetime.now(UTC), Attempt(since is None, since))
            outcomes.store.write_rejects(folder, report.number, found.time, report.counts["rejected"])
            write_to_places(self._rejects, found)
            report.rejects = outcomes.store.reject_reasons()
            if has_rejects_only(report.counts) and self._settings.has_raw:
                report.look = other_look(outcomes.store.first_rejects(_LOOKED_AT), self._settings)

    def _note(self, report: BatchReport, began: float, tables: Tables, learned: Sequence[Change]) -> None:
        """Add a batch that is written completely to the account."""
        report.began, report.ended = began, (now := time.time())
        versions = self._versions.find(
            tables, learned, report.number, now, self._names.label, self._settings.chosen.has
        )
        own = {name: getattr(report, name) for name in _ACCOUNTED}
        self._account.add(BatchFacts(report.number, began, now, versions=versions, **own))

    def finish(self, files: RowFiles) -> None:
        """Write the rows that wait for a later batch, as no batch will come for now."""
        if not self._rows.waiting.tables():
            return
        number = max(self._state.batches()) + 1
        tables = self._resume(number).tables.tables
        if self._rows.are_delayed(self._names, self._tried):
            report = BatchReport(number, dict.fromkeys(COUNTS, 0))
            with _measure_time(report.seconds, "write"):
                written = self._rows.write_delayed(files, number, tables, self._names)
            self._tell(report, written, tables, None)
            self._account.note_written(number, report.steps, report.waiting)
            self._say(report)

    def _tell(
        self, report: BatchReport, written: Sequence[WriteResult], tables: Sequence[Table], number: int | None
    ) -> None:
        """Say what became of rows, which were all written but those of a batch `number` whose rows wait for a later one."""
        self._tell_findings(report, tables)
        if number is None or self._rows.are_written_with(number):
            self._refused = {}
        for one in written:
            name = self._names.label(tables[one.number])
            # The current state and the changelog of a table take the same steps.
            report.steps += [f"{name}: {step}" for step in dict.fromkeys(one.steps)]
            if one.error is not None:
                self._refused[name] = one.error
                self._tried.add(name)
            else:
                own, has_waited = self._protection.public(tables[one.number]), one.number in self._rows.late
                has_key = changelog_reason(own.versions) is None
                known, shard = self._names.names[one.number], self._names.shards.get(one.number)
                report.written.append(WrittenTable(known, own.schema, has_key, name, shard, has_waited))
        report.waiting = dict(self._refused)
        pending: Counter[str] = Counter()
        waiting = self._rows.waiting.counts()
        self._complete.settle(waiting)
        marks, named = self._complete.marks, sorted(self._names.names)
        report.complete = {self._names.label_of(one): marks[one] for one in named if one in marks}
        for table, count in waiting.items():
            # Tables that had a name one after another may all have some.
            pending[self._names.label(tables[table])] += count
        report.pending = dict(pending)
        newest = self._newest_versions(tables)
        report.versions = {self._names.label(tables[one]): version for one, version in newest}

    def _tell_of_messages(self, report: BatchReport, outcomes: Outcomes) -> None:
        """Say of which topics they were, and which changes came though their table was said to be complete up to a later time."""
        report.topics = sorted({topic for topic, *_ in outcomes.lanes if topic is not None})
        for number, facts in sorted(outcomes.tables.items()):
            late = facts["late"]
            if late:
                name = self._names.label_of(number)
                report.late[name] = report.late.get(name, 0) + late
                report.notes.append(f"{name}: {number_of(late, 'change')} came late, of times up to which all were in")

    def _newest_versions(self, tables: Sequence[Table]) -> list[tuple[int, int]]:
        """Return the newest version of each table that has a name in the lake, with the table's number, in their order."""
        return [(one, tables[one].schema.version) for one in sorted(self._names.names)]

    def _tell_findings(self, report: BatchReport, tables: Sequence[Table]) -> None:
        """Add what the batch's statements left open, such as a text that is not understood, and how that was decided.

        Also that no column of a new table has a type, as its messages state none.
        """
        chosen = self._settings.chosen
        for table in tables:
            is_new, columns = table.number not in self._said, table.schema.columns
            if is_new and columns and chosen.has(table.schema.table):
                is_untyped = all(column.note == UNTYPED for column in columns)
                report.steps += [f"{self._names.label(table)}: {ALL_TEXT}"] if is_untyped else []
            new = table.findings[self._said.get(table.number, 0) :] if chosen.has(table.schema.table) else []
            new += self._names.renamed_remark(table) if chosen.has(table.schema.table) else []
            report.steps += [f"{self._names.label(table)}: {finding}" for finding in new]
            self._said[table.number] = len(table.findings)

    def _operations(self, outcomes: Outcomes, wanted: Sequence[Table]) -> dict[str, dict[str, int]]:
        """Return the rows by operation of each lake table, which several tables may have had one after another."""
        rows: dict[str, Counter[str]] = {}
        for table in wanted:
            rows.setdefault(self._names.label(table), Counter()).update(outcomes.tables[table.number]["ops"])
        return {name: dict(operations) for name, operations in rows.items()}


def other_look(found: Sequence[bytes], settings: Settings) -> str | None:
    """Say what the first rejects of a batch, or some of them, look like, if they were read as something else."""
    given = settings.formats.given
    if found and settings.framed is None and all(raw[:1] == b"\0" for raw in found):
        return "all rejects look like Avro by a registry's schemas, which is read with framed = true in [source]"
    if found and settings.framed is not None and all(raw.lstrip()[:1] == b"{" for raw in found):
        return "all rejects look like JSON, which is read without framed in [source]"
    if not isinstance(given, str) or given == MIXED or (look := other_format(found, given)) is None:
        return None
    alike = sum(other_format([raw], given) is not None for raw in found)
    those = "all rejects" if alike < _LOOKED_AT else f"the first {alike} rejects"
    those = those if alike == len(found) else f"{alike} of {len(found)} rejects"
    return f"{those} look{'s' * (1 == alike < len(found))} like {look}, unlike the --format given"


def _notes_of_halves(halves: Sequence[WaitingHalf]) -> list[str]:
    """Return what is to be said of halves that wait."""
    count = number_of(len(halves), "half of an update waits/halves of updates wait")
    return [f"{count} for the other half"] if halves else []


def _files_of(lanes: Sequence[Sequence[Any]]) -> list[str]:
    return [file for _, _, file, *_ in lanes if file is not None]


def _merge_clock(clock: Clock, lanes: Sequence[Any]) -> Clock:
    """Return a clock with the lanes that tasks moved on."""
    # A file is read once, as a whole: its time is of no use behind the batch.
    known = {tuple(lane[0]): lane for lane in clock.state if not lane[0][2]}
    return Clock((known | {tuple(lane[0]): lane for lane in lanes}).values())


@contextmanager
def _measure_time(seconds: dict[str, float], part: str) -> Iterator[None]:
    begin = time.monotonic()
    yield
    seconds[part] = round(time.monotonic() - begin, 3)
