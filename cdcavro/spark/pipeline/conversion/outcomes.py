"""The outcomes of a batch of messages, kept, and what the summaries of its tasks say together."""

from __future__ import annotations

import json
from collections import Counter
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from pyspark import StorageLevel
from pyspark.sql import functions as sf

from cdcavro.change.model import Change
from cdcavro.errors import JobError
from cdcavro.spark.arrow_udf import in_worker
from cdcavro.spark.pipeline.conversion.outcome_columns import COLUMNS, FAILURE, STATEMENT, SUMMARY
from cdcavro.spark.pipeline.conversion.task import converter

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pyspark.sql import DataFrame

    from cdcavro.spark.pipeline.conversion.facts import Knowledge

# A task keeps its rows one table behind the other, and Spark cuts what it keeps into pieces of 10,000 rows, of which each
# table reads all that have a row of its own: with 20 files and 20 tables, writing took a tenth longer.
PIECES: Final = {"spark.sql.inMemoryColumnarStorage.batchSize": "1000"}


class Outcomes(NamedTuple):
    """The outcomes of a batch, kept, and the summaries of its tasks together.

    Attributes: `frame`; `counts` (Counter), of messages by what became of them; `lanes`, the first and last place of each;
    `clock`, as `Clock.state`, of the lanes that were moved on; `tables` (dict), the facts of rows by table; `names` (dict
    from int to str), what tables are called in the frame; `begun` (dict), the facts of tables without a number, by mark;
    `notes` (list of str), what is to be said of files.
    """

    frame: DataFrame
    counts: Counter[str]
    lanes: list[list[Any]]
    clock: list[Any]
    tables: dict[int, dict[str, Any]]
    names: dict[int, str]
    begun: dict[str, dict[str, Any]]
    notes: list[str]

    def numbered(self, marks: Mapping[int, str] | None) -> Outcomes | None:
        """Return the same with numbers for the tables that began, of which `marks` has the marks.

        None if tasks did not place all messages that are any table's, or know of tables what the marks do not.
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


def outcomes_of(frame: DataFrame, knowledge: Knowledge) -> Outcomes:
    """Convert a batch of messages; the frame of outcomes stays until it is unpersisted. Raises as `_together` does."""
    outcomes = frame.mapInArrow(in_worker(converter(knowledge)), COLUMNS).persist(StorageLevel.MEMORY_AND_DISK)
    try:
        notes = outcomes.where(sf.col("what") == SUMMARY).select("note").collect()
        return _together(outcomes, [json.loads(row["note"]) for row in notes])
    except BaseException:
        outcomes.unpersist()
        raise


def asked(outcomes: DataFrame) -> list[Change]:
    """Return the changes that tasks ask to learn."""
    rows = outcomes.where(sf.col("what") == STATEMENT).select(sf.explode("outlines").alias("outline")).collect()
    return [Change.from_avro(bytes(row["outline"])) for row in rows]


def _together(frame: DataFrame, notes: Sequence[dict[str, Any]]) -> Outcomes:
    """Return the summaries of all tasks together. Raises `JobError` if one failed, or two read of one partition or file."""
    counts: Counter[str] = Counter()
    lanes: dict[tuple[Any, ...], list[int]] = {}
    clock: list[Any] = []
    tables: dict[str, dict[str, Any]] = {}
    said = sorted(one for note in notes for one in note.get("notes", ()))
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
    return Outcomes(
        frame, counts, [[*lane, *ends] for lane, ends in lanes.items()], clock, known, numbers, tables, said
    )


def _add(whole: dict[str, Any], facts: Mapping[str, Any]) -> None:
    whole["floor"] = max(whole["floor"], facts["floor"])
    whole["begins"] = sorted({*whole["begins"], *facts["begins"]})
    whole["ops"] = dict(Counter(whole["ops"]) + Counter(facts["ops"]))
    whole["partial"] += facts["partial"]
    whole["keyless"] += facts["keyless"]
