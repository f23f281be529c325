"""Evidence of a task: what it did with messages like others, for a look whether more knowledge would do the same.

A task learns the statements of its lanes as it reads them. The driver knows those of all lanes, and may know a table
otherwise. So its rows count only if all that the batch says makes the same of each message that went the exact way, and
the same programs of the patterns by which the engine typed all others, and if the rules for rows decide the same of the
versions that they have; else the batch is converted again.
"""

from __future__ import annotations

import pickle
from dataclasses import dataclass, field, fields
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from cdcavro.engine.row_program import RowProgram
from cdcavro.errors import CdcAvroError, JobError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from cdcavro.change.model import Arrival
    from cdcavro.lake.placing import Placing
    from cdcavro.lake.typed_rows import TypedRow
    from cdcavro.sync.conversion.outcome_rows import Message
    from cdcavro.table.writing.message_typer import Journal

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
