"""Rows that wait because their table does not take them: kept in files until it does."""

from __future__ import annotations

import json
import shutil
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import msgspec
from pyarrow.parquet import ParquetFile

from cdcavro.errors import FileError
from cdcavro.spark.pipeline.lake_tables import Part, facts_of_summary
from cdcavro.spark.pipeline.rejects import batch_of
from cdcavro.spark.pipeline.shared import check_written

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

    from cdcavro.spark.lake.current_state import RowFacts

_GONE: Final = " gone"
_NEW: Final = " new"


WAITING: Final = "waiting"


@dataclass(frozen=True)
class WaitingRows:
    """The rows that wait, in a folder, by table and batch. Attributes: `folder` (`Path`)."""

    folder: Path

    def tables(self) -> list[int]:
        """Return the numbers of the tables that have some."""
        found = self.folder.iterdir() if self.folder.is_dir() else ()
        return sorted(int(path.name) for path in found if path.name.isdecimal())

    def read(self, spark: SparkSession, table: int, before: int) -> list[Part]:
        """Return the rows of a table from the batches before one, in order."""
        folders = (self.folder / str(table)).glob("batch=*")
        found = sorted((number, path) for path in folders if (number := batch_of(path)) is not None and number < before)
        return [
            Part(number, spark.read.parquet(f"file://{path.resolve() / 'rows'}"), _facts_in(path / "facts.json"))
            for number, path in found
            if (path / "facts.json").exists()
        ]

    def keep(self, table: int, part: Part) -> None:
        """Keep the rows of a batch, instead of those that it kept when it was run before."""
        batch, rows, facts, _ = part
        own = self.folder / str(table) / f"batch={batch}"
        shutil.rmtree(own, ignore_errors=True)
        own.mkdir(parents=True)
        rows.write.parquet(f"file://{own.resolve() / 'rows'}")
        check_written(own, _rows_in(own), rows.count())
        (own / "facts.json").write_text(json.dumps(_summary(facts)), encoding="utf-8")

    def keep_all(self, batch: int, rows: DataFrame, facts: Mapping[int, RowFacts], names: Mapping[int, str]) -> None:
        """Keep the rows of all tables of a batch, as `keep` does, in one job; in their column `number` each is called by its name."""
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
        """Forget the rows of a table, which are written: in one step, of which a kill leaves no half."""
        own, gone = self.folder / str(table), self.folder / f"{table}{_GONE}"
        shutil.rmtree(gone, ignore_errors=True)
        if own.is_dir():
            own.rename(gone)
            shutil.rmtree(gone, ignore_errors=True)


class _Shape(msgspec.Struct):
    """The shape of a file of facts."""

    floor: str
    ops: dict[str, int]
    keyless: int
    partial: int
    begins: list[str]


def _facts_in(path: Path) -> RowFacts:
    """Return the facts of rows that wait. Raises `FileError` for what `keep` did not write."""
    try:
        return facts_of_summary(msgspec.structs.asdict(msgspec.json.decode(path.read_bytes(), type=_Shape)))
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
