"""What a task asks the driver to learn, and learns itself meanwhile, to go on with it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cdcavro.change.model import DDL
from cdcavro.lake.learning import Learner, NewTables
from cdcavro.spark.pipeline.conversion.outcome_columns import STATEMENT, told
from cdcavro.spark.survey import outline_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cdcavro.change.model import Change
    from cdcavro.spark.pipeline.conversion.facts import Fault, Knowledge
    from cdcavro.spark.pipeline.conversion.outcome_columns import Message


class Asking:
    """Asks for what messages say of tables, once of all that say the same.

    Attributes: `marks` (dict from int to str), the tables that the task has learned of and the driver numbers, as
    `NewTables` marks them; `is_ahead` (bool), whether it learned something else, of which the driver, which knows other
    lanes, may make something else: then what the task converts counts for nothing.
    """

    def __init__(self, knowledge: Knowledge) -> None:
        self._tables, self._is_all = knowledge.tables, knowledge.is_all
        self._learner, self._new = Learner(knowledge.tables), NewTables(knowledge.tables)
        self._asked: set[bytes] = set()
        self._news: list[Change] = []
        self.marks: dict[int, str] = {}
        self.is_ahead = False

    def ask(self, changes: Sequence[Change], own: Message, error: Fault) -> list[dict[str, Any]]:
        """Return the row that asks what a message says, none if that was asked in its lane since the last statement.

        `error` is why it was not placed: then there is a row in any case, which becomes a reject if nothing is learned.
        """
        outlines = []
        if any(change.op in DDL for change in changes):
            # Behind a statement the same may mean more.
            self._asked.clear()
        for made in filter(None, map(outline_of, changes)):
            lane = own.place and (own.place.topic, own.place.partition, own.place.file)
            same = made["digest"] + repr(lane).encode()
            outlines += [] if same in self._asked else [made["outline"]]
            self._asked.add(same)
        if outlines and not self._is_all:
            self._news += changes
        return [told(STATEMENT, own, error, outlines)] if outlines or error else []

    def learn(self) -> bool:
        """Learn what was asked since the last call; return whether it was new."""
        news, self._news = self._news, []
        edits = self._tables.edits
        self._learner.learn(news)
        if self._tables.edits == edits:
            return False
        marks = None if any(change.op in DDL for change in news) else self._new.marks
        if marks is None:
            self.is_ahead = True
        else:
            self.marks = marks
        return True
