"""Knowledge of a task: what it knows when it begins, and what it asks the driver to learn and learns itself."""

from __future__ import annotations

import pickle
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from cdcavro.change.model import DDL
from cdcavro.lake.learning import Learner, NewTables, identity_of, outline_of
from cdcavro.sync.conversion.outcome_rows import STATEMENT, message_row
from cdcavro.sync.conversion.waiting_halves import JoinedHalves
from cdcavro.sync.protection import Protection
from cdcavro.sync.settings import Chosen

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from cdcavro.change.model import Change
    from cdcavro.sync.conversion.evidence import Evidence
    from cdcavro.sync.conversion.outcome_rows import Fault, Message
    from cdcavro.sync.outputs.reject_cipher import RejectCipher
    from cdcavro.sync.settings import Formats, RegistrySettings
    from cdcavro.table.tables import Tables


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
