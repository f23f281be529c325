"""Measures changes to typed payloads, as `to_tables` on Spark takes them: by the engine, and each the exact way.

    python tests/benchmarks/changes.py [COUNT]

makes an Arrow array of so many updates of Canal with their places, as payloads of `change.avsc`, and takes it through
both passes in this process: what the changes state about their table, and their typed payloads. Each figure is the
median of the processor time of rounds, in microseconds a change; the exact way has a tenth of the changes.
"""

from __future__ import annotations

import statistics
import sys
import time
from datetime import UTC
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa

sys.path.insert(0, str(Path(__file__).parents[1]))

import cdcavro
from benchmarks.tables import messages
from cdcavro.change.model import Arrival, Change, replace
from cdcavro.spark.typed_tables import ChangeBatch, ChangeSurvey, outline_of
from cdcavro.table.writing.message_typer import ChangeTyper

if TYPE_CHECKING:
    from collections.abc import Callable

ROUNDS = 7
DISTINCT = 5_000


def changes_of(columns: int) -> list[bytes]:
    """Return updates with a number of columns, each at its own place."""
    made = []
    for offset, text in enumerate(messages(DISTINCT, columns)):
        place = Arrival(topic="shop.orders", partition=3, offset=10**9 + offset)
        made += [replace(one, place=place).to_avro() for one in cdcavro.to_changes(text, "canal", zone=UTC)]
    return made


class Ways:
    """Both passes over a batch, each both ways."""

    def __init__(self, changes: list[bytes]) -> None:
        self.tables = cdcavro.Tables(zone=UTC)
        self.tables.learn(Change.from_avro(changes[0]))
        self.changes = changes
        self.batch = pa.RecordBatch.from_arrays([pa.array(changes, pa.binary())], ["change"])

    def surveyed(self) -> int:
        """Return how many outlines the survey has of the changes."""
        return len(list(ChangeSurvey(self.tables.given_table).outlines(self.batch)))

    def typed(self) -> int:
        """Return how many rows a batch of changes becomes."""
        made = ChangeBatch(ChangeTyper(self.tables), self.batch, is_strict=False).batches()
        return sum(one.num_rows for one in made)

    def outlined(self) -> int:
        """Return how many outlines the changes have, one after the other."""
        return len([outline_of(self.tables.with_given_table(Change.from_avro(one))) for one in self.changes])

    def written(self) -> int:
        """Return how many rows the changes become, one after the other."""
        read = [Change.from_avro(one) for one in self.changes]
        return len([row for one in read for row in self.tables.write(one, self.tables.find(one))])


def timed(step: Callable[[], int], count: int, most: int) -> float:
    """Return the microseconds per change of a step, which makes at most so many outlines or rows."""
    start = time.process_time()
    if step() > most:
        raise SystemExit("nothing is compiled, so all changes go the exact way")
    return (time.process_time() - start) / count * 1e6


def main() -> None:
    """Print the table."""
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 100_000
    print(f"{'columns':>7}{'bytes':>7}  {'pass':10}{'engine':>8}{'exact':>8}{'ratio':>7}")
    for columns in (8, 16):
        changes = changes_of(columns)
        whole, part = (Ways((changes * (size // DISTINCT + 1))[:size]) for size in (count, count // 10))
        size = sum(map(len, changes)) // len(changes)
        for name, ours, theirs in (
            (
                "survey",
                partial(timed, whole.surveyed, count, 2),
                partial(timed, part.outlined, count // 10, count // 10),
            ),
            (
                "typing",
                partial(timed, whole.typed, count, count),
                partial(timed, part.written, count // 10, count // 10),
            ),
        ):
            rounds = [(ours(), theirs()) for _ in range(ROUNDS)]
            own, other = (statistics.median(side) for side in zip(*rounds, strict=True))
            print(f"{columns:>7}{size:>7}  {name:10}{own:>8.2f}{other:>8.1f}{other / own:>7.1f}")


if __name__ == "__main__":
    main()
