"""Rounds of the conversion of a batch: one with what is known and its new tables, more with all that it says.

The outcomes of tasks are kept, and their summaries are put together.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol

from cdcavro.change.model import DDL, Change
from cdcavro.errors import JobError
from cdcavro.lake.learning import Learned, NewTables, identity_of, refusal_fields
from cdcavro.sync.conversion.knowledge import Knowledge
from cdcavro.sync.conversion.outcome_rows import FAILURE
from cdcavro.sync.conversion.task import are_confirmed
from cdcavro.sync.conversion.waiting_halves import JoinedHalves
from cdcavro.sync.settings import Chosen
from cdcavro.table.ddl.parse import empties
from cdcavro.table.tables import ERROR

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from datetime import datetime
    from pathlib import Path

    from cdcavro.lake.account import RejectReason
    from cdcavro.lake.typed_rows import TypedRows
    from cdcavro.sync.settings import Settings

# How often a batch is converted again at most, each time with something new.
_ROUNDS: Final = 4


def convert(
    run: Callable[[Knowledge], Outcomes],
    maker: TypedRows,
    settings: Settings,
    *,
    is_reduced: bool,
    has_states: bool = False,
    marks: Mapping[int, int] | None = None,
    halves: JoinedHalves | None = None,
) -> tuple[Outcomes, list[Change]]:
    """Return the outcomes of a batch that `run` converts, and what it said of tables, which `maker` learns.

    `is_reduced`, `has_states`, `marks` and `halves` are as in `Knowledge`.

    The batch is converted with what was known before. Tasks learn themselves what is new; if that is only new tables,
    the driver and the tasks then know the same of them, and one round is enough; it is, too, where tasks have evidence
    that all that was learned makes the same of their messages. Otherwise the batch is converted again with all that was
    learned; a message that is then not placed may be of a table that began behind a statement, and is learned in the
    next round.

    A misfit that is to end the job ends it when nothing more is learned: `run` then raises `MisfitError`, or what its
    runner makes of it, such as `PythonException` of Spark.
    """
    know = partial(
        _knowledge, maker, settings, is_reduced=is_reduced, has_states=has_states, marks=marks, halves=halves
    )
    new, learned, faults = NewTables(maker.tables), Learned([], [], {}), {}
    outcomes = run(know(None))
    for _ in range(_ROUNDS):
        edits = maker.tables.edits
        more = maker.learner.learn(outcomes.store.questions(), settings.chosen.has)
        own = {identity_of(change): refusal_fields(change, error) for change, error in more.faults if change.op in DDL}
        learned.changes.extend(more.changes)
        learned.dropped.update(more.dropped)
        faults.update(own)
        # A TRUNCATE edits no table, nor does a DROP that arrives again, but its row ends other rows.
        is_ending = any(map(empties, more.changes)) or bool(more.dropped)
        is_new = maker.tables.edits != edits or own or is_ending
        if not (is_new or outcomes.counts["given up"] or outcomes.begun or outcomes.is_ahead):
            break
        known = None if more.faults or is_ending else _numbered(outcomes, new, learned, know)
        if known is not None:
            outcomes = known
            break
        outcomes.store.free()
        outcomes = run(know((learned, faults)))
    if outcomes.counts["misfits"] and settings.options.get("on_misfit") == ERROR:
        outcomes.store.free()
        outcomes = run(replace(know((learned, faults)), is_strict=True))
    # A message that was not placed, and about which nothing was learned, is a reject.
    outcomes.counts["rejected"] += outcomes.counts["unplaced"]
    # While rows are written, nobody asks for evidence.
    return outcomes._replace(evidence=()), learned.changes


def _numbered(
    outcomes: Outcomes, new: NewTables, learned: Learned, know: Callable[[Any], Knowledge]
) -> Outcomes | None:
    """Return outcomes with numbers for new tables, if all that was learned would make the same rows, else None."""
    if not (outcomes.is_ahead or _has_statements(learned)):
        return outcomes.with_numbers(new.marks)
    marks = new.marks_beside_others if outcomes.evidence else None
    numbered = outcomes.with_numbers(marks)
    if marks is None or numbered is None:
        return None
    return numbered if are_confirmed(outcomes.evidence, know((learned, {})), marks) else None


def _has_statements(learned: Learned) -> bool:
    return any(change.op in DDL for change in learned.changes)


def _knowledge(
    maker: TypedRows,
    settings: Settings,
    learned: tuple[Learned, Mapping[bytes, Mapping[str, str | None]]] | None,
    *,
    is_reduced: bool,
    has_states: bool,
    marks: Mapping[int, int] | None,
    halves: JoinedHalves | None,
) -> Knowledge:
    chosen = settings.chosen
    left_out = (table.number for table in maker.tables.tables if not chosen.has(table.schema.table))
    return Knowledge(
        maker.tables,
        maker.clock.state,
        settings.formats,
        settings.unavailable,
        {} if learned is None else learned[0].dropped,
        {} if learned is None else learned[1],
        chosen,
        frozenset(left_out) if chosen != Chosen() else frozenset(),
        is_all=learned is not None,
        is_reduced=is_reduced,
        has_states=has_states,
        framed=settings.framed,
        protection=settings.protection,
        has_raw=settings.has_raw,
        cipher=settings.cipher,
        marks=marks or {},
        halves=halves or JoinedHalves(),
    )


class RowFiles(Protocol):
    """Reads and writes folders of Parquet files with the rows of one table, as a runner holds rows."""

    def read(self, folder: Path) -> Any:
        """Return the rows in a folder."""

    def write(self, rows: Any, folder: Path) -> int:
        """Write rows to a folder that is not there; return how many there are."""

    def versions(self, rows: Any) -> Iterable[int]:
        """Return the versions of rows."""

    def behind(self, rows: Any, order: bytes) -> Any:
        """Return rows whose orders come behind one, with which they begin then."""


class OutcomeStore(Protocol):
    """Keeps the outcomes of the tasks of a batch, as a runner holds them, until it is freed."""

    @property
    def files(self) -> RowFiles:
        """Reads and writes rows such as these."""

    def questions(self) -> list[Change]:
        """Return the changes that tasks ask to learn."""

    def rows(self, name: str, count: int) -> Any:
        """Return the rows of the table with a name, at most `count`, with the columns of `table_rows.OF_ROWS`.

        That is what `BatchRows.kept` may be.
        """

    def write_rows(self, folder: Path) -> int:
        """Write the rows of all tables below a folder, those of each to `number=NAME`; return how many there are."""

    def rejects(self) -> Any:
        """Return the rejects, with the columns of `outcome_rows`, for `Rejects.rows`; all of the batch is learned."""

    def write_rejects(self, folder: str, batch: int, now: datetime, count: int) -> None:
        """Write the `count` rejects of a batch, which replace those that it wrote when it was run before."""

    def reject_reasons(self) -> list[RejectReason]:
        """Return the rejects by reason, at most 200 reasons, each with an example."""

    def first_rejects(self, count: int) -> list[bytes]:
        """Return the bytes of some rejects, at most `count`."""

    def free(self) -> None:
        """Let the outcomes go."""


class Outcomes(NamedTuple):
    """The outcomes of a batch, kept, and the summaries of its tasks together."""

    store: OutcomeStore
    # How many messages there were, by what became of them.
    counts: Counter[str]
    # Each lane with the first and the last place that was read.
    lanes: list[list[Any]]
    # As `Clock.state`, of the lanes that were moved on.
    clock: list[Any]
    # The facts of rows by table.
    tables: dict[int, dict[str, Any]]
    # The names of tables in the frame.
    names: dict[int, str]
    # The facts of tables without a number, by mark.
    begun: dict[str, dict[str, Any]]
    # What is to be said of files.
    notes: list[str]
    # A value that is kept as text, with its table and column.
    misfit: str = ""
    # As `LaneTimes.lanes`, of all tasks.
    times: list[list[Any]] = []  # noqa: RUF012  nobody changes it
    # The halves of updates that wait for a later batch, as rows of `outcome_rows`.
    halves: Sequence[Mapping[str, Any]] = ()
    # Of the topics whose messages tell their format: those with rows of a format in which a record without a value is a
    # delete, and those with records without a value.
    rows_alone: frozenset[str] = frozenset()
    without_value: frozenset[str] = frozenset()
    # Whether rows are to be confirmed: a task has learned more than new tables, and kept what it made of it.
    is_ahead: bool = False
    # The evidence of all tasks, if rows are to be confirmed and there is some of each; else empty.
    evidence: Sequence[bytes] = ()

    def with_numbers(self, marks: Mapping[int, str] | None) -> Outcomes | None:
        """Return the same with numbers for new tables; `marks` has their marks by number.

        Return None if tasks did not place all messages of tables, or know tables that have no mark.
        """
        if (
            marks is None
            or self.counts["unplaced"]
            or self.counts["given up"]
            or not self.begun.keys() <= {*marks.values()}
        ):
            return None
        came = {number: mark for number, mark in marks.items() if mark in self.begun}
        tables = self.tables | {number: self.begun[mark] for number, mark in came.items()}
        return self._replace(tables=tables, names=self.names | came, begun={})


def merge_notes(store: OutcomeStore, notes: Sequence[dict[str, Any]]) -> Outcomes:
    """Return the summaries of all tasks together.

    Raises `JobError` if one failed, or two read of one partition or file.
    """
    counts: Counter[str] = Counter()
    lanes: dict[tuple[Any, ...], list[int]] = {}
    clock: list[Any] = []
    tables: dict[str, dict[str, Any]] = {}
    sentences = sorted(one for note in notes for one in note.get("notes", ()))
    for note in notes:
        if FAILURE in note:
            raise JobError(note[FAILURE])
        counts.update(note["counts"])
        clock += note["clock"]
        for *lane, first, last in note["lanes"]:
            if tuple(lane) in lanes:
                raise JobError(
                    f"{lane[2] or f'partition {lane[1]} of {lane[0]}'} was read by two tasks: its order is not known"
                )
            lanes[tuple(lane)] = [first, last]
        for name, facts in note["tables"].items():
            _add(tables.setdefault(name, {"floor": "", "begins": [], "partial": 0, "keyless": 0, "ops": {}}), facts)
    numbers = {int(name): name for name in tables if name.isdecimal()}
    known = {number: tables.pop(name) for number, name in numbers.items()}
    # Tasks end in any order; files are in that in which they are read.
    read = sorted(([*lane, *ends] for lane, ends in lanes.items()), key=_partition_of)
    misfit = min((one for note in notes if (one := note.get("misfit"))), default="")
    times = [one for note in notes for one in note["times"]]
    rows_alone, without_value = (
        frozenset(one for note in notes for one in note.get(name, ())) for name in ("rows alone", "without value")
    )
    is_ahead = any(note["is ahead"] for note in notes)
    of_topics = rows_alone, without_value
    return Outcomes(
        store, counts, read, clock, known, numbers, tables, sentences, misfit, times, (), *of_topics, is_ahead
    )


def _partition_of(lane: Sequence[Any]) -> tuple[str, int]:
    topic, partition, *_ = lane
    return topic or "", -1 if partition is None else partition


def _add(whole: dict[str, Any], facts: Mapping[str, Any]) -> None:
    whole["floor"] = max(whole["floor"], facts["floor"])
    whole["begins"] = sorted({*whole["begins"], *facts["begins"]})
    whole["ops"] = dict(Counter(whole["ops"]) + Counter(facts["ops"]))
    whole["partial"] += facts["partial"]
    whole["keyless"] += facts["keyless"]
    whole["topics"] = sorted({*whole.get("topics", ()), *facts["topics"]})
    whole["late"] = whole.get("late", 0) + facts["late"]
    if "first" in facts:
        whole["first"] = min(facts["first"], whole.get("first", facts["first"]))
