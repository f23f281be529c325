"""Table rows of batches, which are written to their tables, or wait in files for a later batch or a mended table."""

from __future__ import annotations

import json
import shutil
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import msgspec
from pyarrow.parquet import ParquetFile
from pyspark.sql import functions as sf

from cdcavro.errors import FileError
from cdcavro.spark.lake.sinks import Attempt
from cdcavro.spark.pipeline.conversion.outcome_rows import ROW
from cdcavro.spark.pipeline.outputs.writer import BatchRows, facts_of_summary
from cdcavro.spark.pipeline.pipeline_rejects import batch_of
from cdcavro.spark.pipeline.shared_folders import check_written

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

    from cdcavro.spark.lake.current_state import RowFacts
    from cdcavro.spark.pipeline.conversion.rounds import Outcomes
    from cdcavro.spark.pipeline.outputs.lake_tables import LakeNames
    from cdcavro.spark.pipeline.outputs.writer import Writer, WriteResult
    from cdcavro.table.history import Table

_OF_ROWS: Final = ("version", "operation", "order", "key", "payload")
# How many rows of one table are written by one task, if there are fewer than one reads.
_ROWS_OF_TASK: Final = 100_000
_GONE: Final = " gone"
_NEW: Final = " new"
WAITING: Final = "waiting"


class TableRows:
    """Writes rows to their tables, with every n-th batch (`every`); rows that a table refuses wait."""

    def __init__(self, writer: Writer, waiting: WaitingRows, every: int) -> None:
        self._writer, self.waiting, self._every = writer, waiting, every

    def write(
        self, outcomes: Outcomes, number: int, tables: Sequence[Table], names: LakeNames, since: datetime | None
    ) -> list[WriteResult]:
        """Write the rows of a batch and those that wait; `since` is when the batch was first attempted, if it was."""
        rows = outcomes.frame.where(sf.col("what") == ROW)
        facts = {table: facts_of_summary(summary) for table, summary in outcomes.tables.items()}
        if (number + 1) % self._every:
            self.waiting.keep_all(number, rows.select("number", *_OF_ROWS), facts, outcomes.names)
            return []
        parts = {}
        for table, summary in outcomes.tables.items():
            own = rows.where(sf.col("number") == outcomes.names[table]).select(*_OF_ROWS)
            # A task and a file cost more than a few rows.
            own = own.coalesce(-(-sum(summary["ops"].values()) // _ROWS_OF_TASK))
            parts[table] = BatchRows(number, own, facts[table], Attempt(since is None, since))
        return self._write(outcomes.frame.sparkSession, number, tables, names, parts)

    @property
    def are_delayed(self) -> bool:
        """Whether there are rows that wait for a later batch."""
        return self._every > 1 and bool(self.waiting.tables())

    def write_delayed(
        self, spark: SparkSession, number: int, tables: Sequence[Table], names: LakeNames
    ) -> list[WriteResult]:
        """Write the rows of batches before one that wait for a later one."""
        # The batch of this number is still to come, and is another one.
        return self._write(spark, number, tables, names, {})

    def _write(
        self,
        spark: SparkSession,
        number: int,
        tables: Sequence[Table],
        names: LakeNames,
        parts: Mapping[int, BatchRows],
    ) -> list[WriteResult]:
        work = []
        for table in sorted({*parts, *self.waiting.tables()}):
            waiting = self.waiting.read(spark, table, number)
            waiting += [parts[table]] if table in parts else []
            if waiting:
                work.append((tables[table], names.name(tables[table], tables), waiting))
        written = self._writer.write(spark, work)
        for one in written:
            if one.error is None:
                self.waiting.forget(one.number)
            elif one.number in parts:
                self.waiting.keep(one.number, parts[one.number])
        return sorted(written)


@dataclass(frozen=True)
class WaitingRows:
    """The rows that wait, by table and batch."""

    # Where they are kept.
    folder: Path

    def tables(self) -> list[int]:
        """Return the numbers of the tables that have some."""
        found = self.folder.iterdir() if self.folder.is_dir() else ()
        return sorted(int(path.name) for path in found if path.name.isdecimal())

    def read(self, spark: SparkSession, table: int, before: int) -> list[BatchRows]:
        """Return the rows of a table from the batches before one, in order."""
        folders = (self.folder / str(table)).glob("batch=*")
        found = sorted((number, path) for path in folders if (number := batch_of(path)) is not None and number < before)
        return [
            BatchRows(number, spark.read.parquet(f"file://{path.resolve() / 'rows'}"), _facts_in(path / "facts.json"))
            for number, path in found
            if (path / "facts.json").exists()
        ]

    def keep(self, table: int, part: BatchRows) -> None:
        """Keep the rows of a batch, instead of those that it kept when it was run before."""
        batch, rows, facts, _ = part
        own = self.folder / str(table) / f"batch={batch}"
        shutil.rmtree(own, ignore_errors=True)
        own.mkdir(parents=True)
        rows.write.parquet(f"file://{own.resolve() / 'rows'}")
        check_written(own, _rows_in(own), rows.count())
        (own / "facts.json").write_text(json.dumps(_summary(facts)), encoding="utf-8")

    def keep_all(self, batch: int, rows: DataFrame, facts: Mapping[int, RowFacts], names: Mapping[int, str]) -> None:
        """Keep the rows of all tables of a batch, as `keep` does, in one job; `number` has the tables' names."""
        new = self.folder / f"batch={batch}{_NEW}"
        shutil.rmtree(new, ignore_errors=True)
        rows.write.partitionBy("number").parquet(f"file://{new.resolve()}")
        check_written(new, _rows_in(new), rows.count())
        for table, known in facts.items():
            own = self.folder / str(table) / f"batch={batch}"
            shutil.rmtree(own, ignore_errors=True)
            own.mkdir(parents=True)
            (new / f"number={names[table]}").rename(own / "rows")
            (own / "facts.json").write_text(json.dumps(_summary(known)), encoding="utf-8")
        shutil.rmtree(new)

    def forget(self, table: int) -> None:
        """Forget the rows of a table, which are written, in one step: a kill leaves all or none of them."""
        own, gone = self.folder / str(table), self.folder / f"{table}{_GONE}"
        shutil.rmtree(gone, ignore_errors=True)
        if own.is_dir():
            own.rename(gone)
            shutil.rmtree(gone, ignore_errors=True)


class _FactsShape(msgspec.Struct):
    """The shape of a file with the facts of rows that wait."""

    floor: str
    ops: dict[str, int]
    keyless: int
    partial: int
    begins: list[str]


def _facts_in(path: Path) -> RowFacts:
    """Return the facts of rows that wait. Raises `FileError` for what `keep` did not write."""
    try:
        return facts_of_summary(msgspec.structs.asdict(msgspec.json.decode(path.read_bytes(), type=_FactsShape)))
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        raise FileError(str(path), "the facts of rows that wait", str(error)) from error


def _rows_in(folder: Path) -> int:
    return sum(ParquetFile(path).metadata.num_rows for path in folder.rglob("*.parquet"))


def _summary(facts: RowFacts) -> dict[str, object]:
    return {
        "floor": (facts.floor or b"").hex(),
        "ops": {"d": facts.deletes},
        "keyless": facts.keyless,
        "partial": facts.partial,
        "begins": [begin.hex() for begin in facts.begins],
    }
