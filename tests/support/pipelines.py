"""Pipelines over files or another source, what their lake tables hold, and messages of Canal for them."""

from __future__ import annotations

import io
import json
import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC
from pathlib import Path
from typing import Any

import fastavro
from pyspark.sql import SparkSession

from cdcavro.lake.escaped_names import folder_names
from cdcavro.lake.job_state import JobState
from cdcavro.spark.lake.sinks import Sink
from cdcavro.spark.pipeline import BatchReport, Files, Kafka, LakeSettings, Pipeline, RegistrySettings, Settings
from cdcavro.table import TableName
from cdcavro.table.table_names import parse_table_name
from cdcavro.table.tables import Tables
from support.shop_lake import as_in_lake, rows_in, shown
from support.shop_state import whole


@dataclass
class Job:
    """A pipeline over a folder of files, or another source; each run goes on with what came since.

    Rows go into the lake of `sink`, or to `out`.
    """

    spark: SparkSession
    folder: Path
    sink: Sink
    lake: dict[str, Any] = field(default_factory=dict)
    source: Kafka | Files | None = None
    out: Any = None
    registry: RegistrySettings | None = None
    reports: list[BatchReport] = field(default_factory=list)
    files: int = 0

    def send(self, *messages: bytes) -> None:
        """Put messages into a new file."""
        (self.folder / "in").mkdir(exist_ok=True)
        hidden = self.folder / "in" / "_new"
        hidden.write_bytes(b"".join(message + b"\n" for message in messages))
        # Spark takes files in the order of their times.
        os.utime(hidden, (1_700_000_000 + self.files,) * 2)
        hidden.rename(self.folder / "in" / f"{self.files:04}.jsonl")
        self.files += 1

    def pipeline(self, **settings: Any) -> Pipeline:
        """Return the pipeline."""
        options = {"zone": UTC, **settings.pop("options", {})}
        out = self.out or LakeSettings(self.sink, **{"parallel": 2, **self.lake})
        return Pipeline(
            self.source or Files(str(self.folder / "in"), most=1),
            out,
            str(self.folder / "state"),
            Settings(options=options, **settings),
            self.registry,
        )

    def run(self, **settings: Any) -> list[BatchReport]:
        """Run until nothing is left, and return the reports of the batches."""
        reports: list[BatchReport] = []
        self.pipeline(**settings).run(self.spark, once=True, say=reports.append)
        self.reports += reports
        return reports

    def run_again(self, **settings: Any) -> list[BatchReport]:
        """Run the last batch once more, as if the process had been killed before the checkpoint's commit."""
        commits = self.folder / "state" / "checkpoint" / "commits"
        last = max(int(path.name) for path in commits.iterdir() if path.name.isdecimal())
        for name in (str(last), f".{last}.crc"):
            (commits / name).unlink(missing_ok=True)
        return self.run(**settings)

    def rows(self, table: str, *columns: str, suffix: str = "") -> list[tuple[Any, ...]]:
        """Return rows of a lake table."""
        identifier = self.sink.identifier(parse_table_name(table), suffix)
        found = self.spark.sql(f"SELECT {', '.join(columns)} FROM {identifier} ORDER BY ALL").collect()
        return [tuple(row) for row in found]

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
            rows = rows_in(self.spark, self.sink.identifier(names[table.number])) if table.number in names else []
            # Columns that were dropped stay in the lake.
            kept = [{column: value for column, value in row.items() if column in there} for row in rows]
            found, expected = shown(kept), shown(wanted)
            assert [one for one in found if one not in expected] == [one for one in expected if one not in found], name
            assert found == expected, name


def canal(
    type: str, rows: Sequence[dict[str, str]], *, id: int, old: Sequence[dict[str, str]] = (), **members: Any
) -> bytes:
    """Return a message of Canal's about the table `d.t`."""
    names = list(rows[0]) if rows else []
    said = {
        "type": type,
        "database": "d",
        "table": "t",
        "id": id,
        "es": 1_700_000_000_000 + id * 1000,
        "pkNames": ["id"],
        "mysqlType": dict.fromkeys(names, "int") or None,
        "data": list(rows) or None,
        "old": list(old) or None,
        "isDdl": False,
        "sql": "",
        **members,
    }
    return json.dumps(said).encode()
