"""Pipelines of tests, whichever runner runs them, and those that the local runner runs: what they are sent, and what they made."""

from __future__ import annotations

import io
import os
from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from datetime import UTC
from pathlib import Path
from typing import Any

import duckdb
import fastavro

from cdcavro.lake.escaped_names import folder_names
from cdcavro.lake.job_state import JobState
from cdcavro.lake.lakes import DeltaLake, IcebergLake
from cdcavro.sync.batches import BatchReport
from cdcavro.sync.local.local_runner import Pipeline
from cdcavro.sync.local.local_sinks import native_lake
from cdcavro.sync.native.native_columns import NativeTable
from cdcavro.sync.native.native_tables import locate
from cdcavro.sync.outputs.sink_settings import LakeSettings
from cdcavro.sync.settings import RegistrySettings, Settings
from cdcavro.sync.sources import Files, Kafka
from cdcavro.table import TableName
from cdcavro.table.table_names import parse_table_name
from cdcavro.table.tables import Tables
from support.lake_values import as_in_lake, rows_of, shown
from support.shop_state import whole
from support.shop_tables import Row

DELTA, ICEBERG = "delta", "iceberg"


@dataclass
class PipelineJob(ABC):
    """A pipeline over a folder of files, or another source; each run goes on with what came since.

    Rows go into the lake of `sink`, or to `out`.
    """

    folder: Path
    sink: DeltaLake | IcebergLake
    # Settings of the lake.
    lake: dict[str, Any] = field(default_factory=dict)
    source: Kafka | Files | None = None
    out: Any = None
    registry: RegistrySettings | None = None
    # The address of its state, if that is in an object store.
    state: str | None = None
    reports: list[BatchReport] = field(default_factory=list)
    # How many files were sent.
    files: int = 0

    @abstractmethod
    def pipeline(self, **settings: Any) -> Any:
        """Return the pipeline."""

    @abstractmethod
    def start(self, pipeline: Any, **how: Any) -> None:
        """Run a pipeline."""

    @abstractmethod
    def check(self, pipeline: Any = None) -> None:
        """Check a pipeline, by default the job's own."""

    @abstractmethod
    def rows(self, table: str, *columns: str, suffix: str = "") -> list[tuple[Any, ...]]:
        """Return rows of a lake table, ordered: columns and expressions of SQL."""

    @abstractmethod
    def whole_rows(self, table: TableName) -> list[Row]:
        """Return the rows of a current state by true names, as `lake_values.rows_of` does."""

    @property
    def folder_of_lake(self) -> Path:
        """The folder around the tables of the lake."""
        return self.folder / "lake"

    def send(self, *messages: bytes) -> None:
        """Put messages into a new file."""
        (self.folder / "in").mkdir(exist_ok=True)
        hidden = self.folder / "in" / "_new"
        hidden.write_bytes(b"".join(message + b"\n" for message in messages))
        # Files are taken in the order of their times.
        os.utime(hidden, (1_700_000_000 + self.files,) * 2)
        hidden.rename(self.folder / "in" / f"{self.files:04}.jsonl")
        self.files += 1

    def parts(self, lake: dict[str, Any], settings: dict[str, Any]) -> tuple[Any, ...]:
        """Return what a pipeline is made of; `lake` are further settings of it."""
        options = {"zone": UTC, **settings.pop("options", {})}
        out = self.out or LakeSettings(self.sink, **{"parallel": 2, **lake, **self.lake})
        source = self.source or Files(str(self.folder / "in"), most=1)
        return (
            source,
            out,
            self.state or str(self.folder / "state"),
            Settings(options=options, **settings),
            self.registry,
        )

    def run(self, **settings: Any) -> list[BatchReport]:
        """Run until nothing is left, and return the reports of the batches."""
        reports: list[BatchReport] = []
        self.start(self.pipeline(**settings), once=True, say=reports.append)
        self.reports += reports
        return reports

    def run_again(self, **settings: Any) -> list[BatchReport]:
        """Run the last batch once more, as if the process had been killed before the checkpoint's commit."""
        commits = self.folder / "state" / "checkpoint" / "commits"
        last = max(int(path.name) for path in commits.iterdir() if path.name.isdecimal())
        for name in (str(last), f".{last}.crc"):
            (commits / name).unlink(missing_ok=True)
        return self.run(**settings)

    def changes(self, table: str) -> list[dict[str, Any]]:
        """Return the changes of a table in Avro files, those of its batches one behind another, as fastavro reads them."""
        found = (self.folder / "out").joinpath(*folder_names(parse_table_name(table))).rglob("*.avro")
        return [change for path in sorted(found) for change in fastavro.reader(io.BytesIO(path.read_bytes()))]

    def check_shop(self, producer: str) -> None:
        """Check that every table of the shop that there is in the end has the rows of the server."""
        state = JobState(self.folder / "state" / "batches")
        last = state.batches()[-1] + 1
        names = {number: TableName(*name) for number, *name in state.facts(last)["names"]}
        tables = state.resume(last, Tables(**self.pipeline().settings.options)).tables.tables
        live = {one.schema.table.table: one for one in tables if not one.is_gone and one.schema.key is not None}
        assert set(live) == set(whole(producer))
        for name, table in live.items():
            wanted = [as_in_lake(row, table.schema) for row in whole(producer)[name].values()]
            there = {column for row in wanted for column in row}
            # A table of which no row has come has none in the lake.
            rows = self.whole_rows(names[table.number]) if table.number in names else []
            # Columns that were dropped stay in the lake.
            kept = [{column: value for column, value in row.items() if column in there} for row in rows]
            found, expected = shown(kept), shown(wanted)
            assert [one for one in found if one not in expected] == [one for one in expected if one not in found], name
            assert found == expected, name


@dataclass
class LocalJob(PipelineJob):
    """A pipeline that this process runs; its rows are read through the libraries that wrote them."""

    def pipeline(self, **settings: Any) -> Pipeline:
        """Return the pipeline."""
        has_files = isinstance(self.sink, IcebergLake) and "catalog" not in self.lake
        files = {"warehouse": str(self.folder_of_lake)} if has_files else {}
        return Pipeline(*self.parts(files, settings))

    def start(self, pipeline: Pipeline, **how: Any) -> None:
        """Run a pipeline."""
        pipeline.run(**how)

    def check(self, pipeline: Pipeline | None = None) -> None:
        """Check a pipeline, by default the job's own."""
        (pipeline or self.pipeline()).check()

    def lake_table(self, table: TableName, suffix: str = "") -> NativeTable:
        """Return a lake table."""
        settings = self.pipeline().sink
        assert isinstance(settings, LakeSettings)
        return locate(native_lake(settings), table).table(table, suffix)

    def rows(self, table: str, *columns: str, suffix: str = "") -> list[tuple[Any, ...]]:
        """Return rows of a lake table, as DuckDB selects them."""
        own = self.lake_table(parse_table_name(table), suffix)
        names = own.schema().names
        selected = ", ".join(f'"{one}"' if one in names else one for one in columns)
        with duckdb.connect() as connection:
            connection.register("held", own.read(names))
            return connection.execute(f"SELECT {selected} FROM held ORDER BY ALL NULLS FIRST").fetchall()

    def whole_rows(self, table: TableName) -> list[Row]:
        """Return the rows of a current state by true names, as `lake_values.rows_of` does."""
        own = self.lake_table(table)
        return rows_of(own.read(own.schema().names))


def local_job(folder: Path, kind: str = DELTA, source: Kafka | Files | None = None, **lake: Any) -> LocalJob:
    """Return a pipeline of the local runner, into a lake below a folder."""
    sink = DeltaLake(str(folder / "lake")) if kind == DELTA else IcebergLake("ice")
    return LocalJob(folder, sink, lake, source)
