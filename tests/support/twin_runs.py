"""Two pipelines of one configuration, of which this process runs one and Spark the other, and what each of them left."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec
from click.testing import CliRunner
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from cdcavro.cli import main
from cdcavro.lake.escaped_names import folder_names
from cdcavro.lake.lakes import SUFFIXES
from cdcavro.lake.sql_statements import AT
from cdcavro.spark.pipeline import Pipeline as SparkPipeline
from cdcavro.sync.batches import BatchReport
from cdcavro.sync.config import read_config
from cdcavro.sync.local.local_runner import Pipeline as LocalPipeline
from cdcavro.sync.pipeline import JOB
from cdcavro.table.table_names import parse_table_name
from support.local_pipelines import ICEBERG, LocalJob, lake_section
from support.messages import put_messages

LOCAL, SPARK = "local", "spark"
# What each lake table has of its own, or a library writes of itself.
_OWN = re.compile(
    r"cdcavro\.(created|begun)|owner|current-snapshot-id|delta\.(minReader|minWriter|feature|columnMapping)"
)
# The columns that say when a row was written: those of deletes, and of schema changes.
_WHEN = {AT, "time"}
# The times at which something was done, which status and reports have.
_TIMES = ("began", "ended", "seconds", "lag_since")


def _compare(what: str, here: Sequence[Any], there: Sequence[Any]) -> None:
    """Check that two lists have the same values, and say which are in one of them alone."""
    only = [[one for one in own if one not in other] for own, other in ((here, there), (there, here))]
    assert there == here, f"{what}: {only[0]} and {only[1]}"


@dataclass
class Twins:
    """The two pipelines, below one folder, in which `in` has the files that both read unless they have another source.

    * `lake` (dict): settings of the section of their lake; `more` are other sections.
    """

    spark: SparkSession
    folder: Path
    kind: str
    lake: dict[str, Any] = field(default_factory=dict)
    more: dict[str, Any] = field(default_factory=dict)
    files: int = 0

    def __post_init__(self) -> None:
        """Begin with empty lakes, whatever other tests have left."""
        self.clear()
        source = {"source": {"files": str(self.folder / "in"), "most": 1}}
        (self.folder / "in").mkdir()
        self.jobs: dict[str, LocalJob] = {}
        for runner in (LOCAL, SPARK):
            own = self.folder / runner
            own.mkdir()
            # Spark's one catalog of Iceberg has a folder of its own.
            warehouse = self.warehouse if runner == SPARK else None
            section = lake_section(self.kind, own, warehouse, **self.lake)
            self.jobs[runner] = LocalJob(own, section, {**source, **self.more})

    @property
    def warehouse(self) -> str:
        """The folder of Spark's catalog of Iceberg."""
        return self.spark.conf.get("spark.sql.catalog.ice.warehouse") or ""

    @staticmethod
    def prefix(runner: str) -> str:
        """Return the beginning of the names of topics into which a runner writes."""
        return f"of-{runner}."

    def clear(self) -> None:
        """Leave no table in Spark's catalog of Iceberg."""
        for left in Path(self.warehouse).iterdir() if self.kind == ICEBERG else ():
            shutil.rmtree(left)

    def send(self, *messages: bytes) -> None:
        """Put messages into a new file."""
        put_messages(self.folder / "in", self.files, messages)
        self.files += 1

    def run(self, beside: Callable[[Any], AbstractContextManager[Any]] | None = None, **more: Any) -> list[BatchReport]:
        """Let both run until nothing is left, and return the reports of Spark's, which are those of the other.

        `beside` makes of a pipeline what runs beside it, in whose context are functions that are called with each report.
        """
        found: dict[str, list[BatchReport]] = {}
        unmatched = []
        for runner, job in self.jobs.items():
            path = job.config(**more, run=runner)
            kind = SparkPipeline if runner == SPARK else LocalPipeline
            pipeline: Any = read_config(path).pipeline(str(path), kind)
            reports = found[runner] = []
            with beside(pipeline) if beside else nullcontext(()) as listeners:

                def say(report: BatchReport, told: Sequence[Any] = (reports.append, *listeners)) -> None:
                    for one in told:
                        one(report)

                pipeline.run(*([self.spark] if runner == SPARK else []), once=True, say=say)
            unmatched.append(pipeline.unmatched)
        facts = [[self._alike(one.facts, runner) for one in found[runner]] for runner in (LOCAL, SPARK)]
        _compare("a report", *facts)
        assert unmatched[1] == unmatched[0], unmatched
        return found[SPARK]

    def command(self, *arguments: str) -> str:
        """Return what a command says of each of the pipelines, which is the same."""
        said = []
        for runner, job in self.jobs.items():
            done = CliRunner().invoke(main, [*arguments, "--config", str(job.folder / "sync.toml")])
            assert done.exception is None or isinstance(done.exception, SystemExit), done.output
            text = done.output
            if "--json" in arguments:
                text = json.dumps(self._alike(json.loads(text), runner), sort_keys=True)
            said.append((done.exit_code, str(self._alike(text, runner))))
        assert said[1] == said[0], said
        return said[1][1]

    def check(self, *tables: str) -> None:
        """Check that the lakes of both have these tables alone, with the same rows, columns and properties."""
        found = [dict(self._tables(runner, tables)) for runner in (LOCAL, SPARK)]
        assert [*found[1]] == [*found[0]], [[*one] for one in found]
        for name, table in found[0].items():
            for part, here in table.items():
                _compare(f"{name}, {part}", here, found[1][name][part])
        names = {"/".join(folder_names(parse_table_name(name))) for name in tables}
        for runner in (LOCAL, SPARK):
            assert self._folders(runner) == names, self._folders(runner)

    def _folders(self, runner: str) -> set[str]:
        """Return the folders of tables in a lake, without those of a table's deletes and changes."""
        root = self._root(runner)
        marks = [*root.rglob("_delta_log"), *root.rglob("metadata")]
        found = {str(mark.parent.relative_to(root)) for mark in marks}
        return {name for name in found if not re.search(r"~~(changes|deletes)$", name)}

    def _root(self, runner: str) -> Path:
        lake = self.jobs[runner].lake
        return Path(lake.get("delta") or lake["warehouse"])

    def _shape(self, runner: str, name: str, suffix: str) -> list[Any]:
        """Return by what rows are partitioned and sorted, as the lake's own files say."""
        folder = self._root(runner) / ("/".join(folder_names(parse_table_name(name))) + (suffix and f"~~{suffix}"))
        if self.kind != ICEBERG:
            return DeltaTable(folder).metadata().partition_columns
        files = (folder / "metadata").glob("v*.metadata.json")
        said = json.loads(max(files, key=lambda path: int(path.name[1:].partition(".")[0])).read_bytes())
        names = {one["id"]: one["name"] for of in said["schemas"] for one in of["fields"]}
        (spec,) = [one for one in said["partition-specs"] if one["spec-id"] == said["default-spec-id"]]
        (order,) = [one for one in said["sort-orders"] if one["order-id"] == said["default-sort-order-id"]]
        return [
            (one["transform"], names[one["source-id"]], one.get("direction"))
            for one in (*spec["fields"], *order["fields"])
        ]

    def _tables(self, runner: str, tables: Sequence[str]) -> Iterator[tuple[str, dict[str, Any]]]:
        job = self.jobs[runner]
        for name in tables:
            for suffix in SUFFIXES:
                table = job.table(name, suffix)
                said = table.properties()
                if said is None:
                    continue
                names = sorted({*table.schema().names} - _WHEN)
                yield (
                    f"{name} {suffix}",
                    {
                        "columns": sorted((one.name, one.type) for one in table.columns()),
                        "properties": sorted(
                            self._alike([f"{k}={v}" for k, v in said.items() if not _OWN.match(k)], runner)
                        ),
                        "shape": self._shape(runner, name, suffix),
                        "rows": [dict(zip(names, row, strict=True)) for row in job.rows(name, *names, suffix=suffix)],
                    },
                )

    def _alike(self, value: Any, runner: str) -> Any:
        """Return a value without what differs between the two: times, the folder, and what identifies a pipeline."""
        value = msgspec.to_builtins(value)
        if isinstance(value, dict):
            return {key: self._alike(one, runner) for key, one in value.items() if key not in _TIMES}
        if isinstance(value, list):
            return [self._alike(one, runner) for one in value]
        if isinstance(value, str):
            state = self.jobs[runner].folder / "state"
            id = json.loads((state / JOB).read_bytes())["job"]
            text = value.replace(str(self.jobs[runner].folder), "FOLDER").replace(id, "PIPELINE")
            text = text.replace(self.warehouse, "FOLDER/wh").replace(self.prefix(runner), "PREFIX")
            # Where a table began, which is in a digest there, names the file.
            return re.sub(r"^(cdcavro\.origin=PIPELINE \d+) \w+$", r"\1 BEGINNING", text)
        return value
