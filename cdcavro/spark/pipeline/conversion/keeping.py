"""What became of a task's messages, kept until it is handed over."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from cdcavro.lake.placing import group_by_table, rows_batch
from cdcavro.spark.pipeline.conversion.facts import TaskFacts
from cdcavro.spark.pipeline.conversion.outcome_columns import OF_ROWS, ROW, SCHEMA, asked_only, placed_rows

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from cdcavro.lake.typed_rows import TypedRow
    from cdcavro.spark.pipeline.conversion.asking import Asking
    from cdcavro.spark.pipeline.conversion.facts import Knowledge

# How many bytes of rows a task holds before it hands them over.
_HELD: Final = 1 << 26


@dataclass
class Made:
    """What became of messages: `counts` of them, `rows` of tables, in batches of `placing.ROWS`, and `others`, outcomes that are none."""

    counts: Counter[str] = field(default_factory=Counter)
    rows: list[pa.RecordBatch] = field(default_factory=list)
    others: list[dict[str, Any]] = field(default_factory=list)


class Keeping:
    """Keeps what becomes of messages, some at a time, which may be taken back and converted once more.

    Attributes: `made` (`Made`), of those that are being converted; `counts` (Counter), of those before.
    """

    def __init__(self, knowledge: Knowledge, asking: Asking) -> None:
        self._knowledge, self._asking = knowledge, asking
        self.made, self._all = Made(), Made()
        self._facts = TaskFacts()
        self._looked, self._unwanted = len(knowledge.tables.tables), knowledge.left_out

    @property
    def counts(self) -> Counter[str]:
        """How many messages there were, by what became of them."""
        return self._all.counts

    def take_back(self) -> None:
        """Forget what was made of some messages but what they ask: they are converted once more."""
        self._all.others += [asked_only(row) for row in self.made.others if row.get("outlines")]
        self.made = Made()

    def settle(self) -> None:
        """Keep what was made of some messages for good."""
        made, self.made = self.made, Made()
        self._all.counts.update(made.counts)
        self._all.rows += made.rows
        self._all.others += made.others

    def keep(self, rows: pa.RecordBatch) -> None:
        """Keep rows of tables that are wanted, and count their messages."""
        if self._asking.is_ahead:
            return
        count = pc.count_distinct(rows.column("message")).as_py()
        left_out = self._left_out()
        if left_out:
            rows = rows.filter(pc.invert(pc.is_in(rows.column("number"), pa.array(sorted(left_out), pa.int32()))))
        wanted = pc.count_distinct(rows.column("message")).as_py()
        self.made.counts["written"] += wanted
        self.made.counts["left out"] += count - wanted
        if rows.num_rows:
            self.made.rows.append(rows)

    def keep_statement(self, rows: Sequence[TypedRow]) -> None:
        """Keep the rows of a statement that ends all rows of tables so far."""
        for row in rows:
            if row.table not in self._left_out():
                self._facts.add(rows_batch([(0, row)]))
                facts = (str(row.table), row.version, row.operation, row.order, row.key, row.payload)
                self.made.others.append({"what": ROW, **dict(zip(OF_ROWS, facts, strict=True))})

    def ready(self) -> Iterator[pa.RecordBatch]:
        """Yield what is not kept any longer: rows only where there are many."""
        others, self._all.others = self._all.others, []
        if others:
            yield pa.RecordBatch.from_pylist(others, schema=SCHEMA)
        if sum(rows.nbytes for rows in self._all.rows) > _HELD:
            yield from self.rows()

    def rows(self) -> Iterator[pa.RecordBatch]:
        """Yield the rows, as far as they are wanted."""
        held, self._all.rows = self._all.rows, []
        if held:
            self._facts.add(pa.Table.from_batches(held))
            yield from placed_rows(group_by_table(held, self._reduced()), self._names())

    @property
    def tables(self) -> dict[str, dict[str, Any]]:
        """The facts of the rows, by what their tables are called."""
        names = self._names()
        return {names[number]: facts for number, facts in self._facts.tables.items()}

    def _names(self) -> list[str]:
        """Return what tables are called, by number."""
        marks = self._asking.marks
        return [marks.get(table.number, str(table.number)) for table in self._knowledge.tables.tables]

    def _left_out(self) -> frozenset[int]:
        """Return the numbers of the tables that are not wanted; those that began since are looked at once."""
        tables, chosen = self._knowledge.tables.tables, self._knowledge.chosen
        if self._looked < len(tables):
            new, self._looked = tables[self._looked :], len(tables)
            self._unwanted |= {one.number for one in new if not chosen.has(one.schema.table)}
        return self._unwanted

    def _reduced(self) -> list[int]:
        """Return the numbers of tables of whose keys only the last change is wanted: without a key, a table has all."""
        numbers = self._facts.tables if self._knowledge.is_reduced else ()
        tables = self._knowledge.tables.tables
        return [one for one in numbers if all(schema.key is not None for schema in tables[one].versions)]
